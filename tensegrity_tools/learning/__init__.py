"""Robots as environments for learning: batches over threads, and faces for gymnasium (extra `gymnasium`)."""
