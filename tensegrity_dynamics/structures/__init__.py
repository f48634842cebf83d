"""Structures: nodes connected by bars, tendons and springs (pin-jointed networks)."""
