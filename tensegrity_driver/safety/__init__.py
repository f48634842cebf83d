"""Safety: faults, monitors, reactions, the latch."""
