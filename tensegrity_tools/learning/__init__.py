"""Environments for reinforcement learning: batches over threads, and the gymnasium interface (extra `gymnasium`)."""
