"""Trajectories: splines, quintic point-to-point motion, orientation, smoothing, time scaling, files."""
