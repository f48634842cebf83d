"""Robots are data: schema, units, errors that name file and line, and the shipped robot files."""
