"""Prestress, self-stress, mechanisms and stability of structures."""
