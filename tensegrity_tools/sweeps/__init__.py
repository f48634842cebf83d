"""Sweeps: many poses, loads or parameters of one robot, on all cores, saved as they finish, with a report."""
