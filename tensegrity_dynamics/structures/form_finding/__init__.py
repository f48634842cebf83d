"""Equilibrium of structures: Newton, relaxation, force density, forward kinematics."""
