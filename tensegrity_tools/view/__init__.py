"""The browser view of a robot: `View(robot, port)`, `.show(state)`, and what to do when people ask for something."""

from .state import Answer, ViewState
from .view import View

__all__ = ["Answer", "View", "ViewState"]
