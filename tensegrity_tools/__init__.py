"""The `tensegrity` command, the processes that it starts, the browser view, and the experiments."""

from __future__ import annotations

from .start_up import guard_imports

guard_imports()
