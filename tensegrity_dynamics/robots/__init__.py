"""Robots as data: schema, units, errors with file and line, and the shipped robot files."""
