"""The `tensegrity servo` commands."""
