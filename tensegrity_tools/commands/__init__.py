"""Commands of `tensegrity`, one module per command or group of related commands."""
