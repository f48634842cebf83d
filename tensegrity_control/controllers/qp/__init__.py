"""Torque control without plans: one quadratic program in every control period."""
