"""Servos: registers, configuration, groups that are read and written together."""
