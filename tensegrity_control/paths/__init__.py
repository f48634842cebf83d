"""Paths of equilibria and their timing."""
