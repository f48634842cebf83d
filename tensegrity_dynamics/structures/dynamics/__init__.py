"""Dynamics of class-1 networks: point masses connected by rigid or elastic bars and by strings (003, chapter 3)."""
