"""Configurations of a structure from what its spools say."""
