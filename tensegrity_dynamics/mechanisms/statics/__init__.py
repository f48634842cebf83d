"""Equilibrium of mechanisms and its sensitivity."""
