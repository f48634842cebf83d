"""The browser view of a robot: `View(robot, port)`, `.show(ViewState(...))`, and callbacks for goal, hold and stop."""

from .state import Answer, ViewState
from .view import View

__all__ = ["Answer", "View", "ViewState"]
