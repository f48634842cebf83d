"""Sweeps over poses, loads or parameters of one robot, on all cores, with continuous saving and a report."""
