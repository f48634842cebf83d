"""Dynamics of class-1 networks: point masses joined by rigid or elastic bars, pulled by strings (003, chapter 3)."""
