"""Sweeps: many poses, loads or parameters of one robot, on all cores, kept as they come, with a report."""
