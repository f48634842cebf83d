"""Calibration: line fits, files, homing, turns, spring rates."""
