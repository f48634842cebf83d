"""Structures: nodes joined by bars, tendons and springs (pin-jointed networks)."""
