"""Estimation of the configuration of a mechanism from its sensors."""
