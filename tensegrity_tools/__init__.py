"""The `tensegrity` command, the processes that it starts, the browser view, experiments."""
