"""Environments for reinforcement learning: batches in threads, and the gymnasium interface (extra `gymnasium`)."""
