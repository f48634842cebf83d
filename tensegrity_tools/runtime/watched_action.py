"""Client for an action of the running controller: sends one goal, waits for the end, and cancels on interruption."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from action_msgs.msg import GoalStatus
from rclpy.action import ActionClient

from tensegrity_dynamics.errors import TensegrityError

from .robot_client import PLANNING, Watcher


class WatchedAction:
    """Action client, see the module docstring.

    Args:
        watcher: client of the robot. kind, name: type and name of the action; its feedback has a field `progress`.
            what: noun for the goals, in the plural.
    """

    def __init__(self, watcher: Watcher, kind: Any, name: str, what: str) -> None:
        self.watcher, self._what = watcher, what
        self._client = ActionClient(watcher.node, kind, name)
        self._progress = 0.0

    def close(self) -> None:
        """Close the client."""
        self._client.destroy()

    def run(self, goal: Any, keep: Callable[[Any], None], show: Callable[[float], None]) -> tuple[Any, str]:
        """Send a goal and wait for its end; returns the result, and the reason of a failure.

        Args:
            keep: function that receives every feedback. show: function that is called often with the progress, 0 to 1.

        Raises:
            TensegrityError: no node offers the action, the goal is refused, or its node is gone.
            KeyboardInterrupt: interrupted by the user; the goal is cancelled and the robot holds.
        """
        if not self.watcher.wait_until(self._client.server_is_ready, 5.0):
            raise TensegrityError(f"no robot takes {self._what}; start one with `tensegrity up`.")
        self._progress = 0.0

        def take(message: Any) -> None:
            self._progress = message.feedback.progress
            keep(message.feedback)

        sent = self._client.send_goal_async(goal, feedback_callback=take)
        try:
            if not self.watcher.wait_until(sent.done, PLANNING):
                raise TensegrityError("the controller does not answer; see `tensegrity status`.")
        except BaseException:
            self.watcher.call_off()
            raise
        handle = sent.result()
        if not handle.accepted:
            raise TensegrityError(f"the controller does not take {self._what} now; see `tensegrity status`.")
        ended = handle.get_result_async()
        try:
            while not ended.done():
                self.watcher.spin(0.05)
                self.watcher.check_there(self._client.server_is_ready())
                show(self._progress)
        except BaseException:
            handle.cancel_goal_async()
            raise
        result, status = ended.result().result, ended.result().status
        return result, result.reason or ("" if status == GoalStatus.STATUS_SUCCEEDED else "it was broken off")
