"""Compiled functions, linear algebra of small dense matrices, rotations."""
