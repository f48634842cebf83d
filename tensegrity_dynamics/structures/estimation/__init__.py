"""Estimation of the configuration of a structure from its spool readings."""
