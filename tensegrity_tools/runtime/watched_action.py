"""An action of the running controller that is sent once, watched to its end and cancelled where somebody breaks off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from action_msgs.msg import GoalStatus
from rclpy.action import ActionClient

from tensegrity_dynamics.errors import TensegrityError

from .robot_client import PLANNING, Watcher


class WatchedAction:
    """See the module.

    Args:
        watcher: hears the robot. kind, name: of the action, whose feedback has `progress`. what: it is, in the plural.
    """

    def __init__(self, watcher: Watcher, kind: Any, name: str, what: str) -> None:
        self.watcher, self._what = watcher, what
        self._client = ActionClient(watcher.node, kind, name)
        self._progress = 0.0

    def close(self) -> None:
        """End the client."""
        self._client.destroy()

    def run(self, goal: Any, keep: Callable[[Any], None], show: Callable[[float], None]) -> tuple[Any, str]:
        """Send a goal and wait for its end; gives the result and the reason where it did not succeed.

        Args:
            keep: gets every feedback. show: called often with the part that is done, 0 to 1.

        Raises:
            TensegrityError: nobody offers the action, or the goal is not taken.
            KeyboardInterrupt: asked to end; the goal is cancelled, the robot holds.
        """
        if not self.watcher.wait_until(self._client.server_is_ready, 5.0):
            raise TensegrityError(f"no robot takes {self._what}; start one with `tensegrity up`.")
        self._progress = 0.0

        def take(message: Any) -> None:
            self._progress = message.feedback.progress
            keep(message.feedback)

        sent = self._client.send_goal_async(goal, feedback_callback=take)
        if not self.watcher.wait_until(sent.done, PLANNING):
            raise TensegrityError("the controller does not answer; see `tensegrity status`.")
        handle = sent.result()
        if not handle.accepted:
            raise TensegrityError(f"the controller does not take {self._what} now; see `tensegrity status`.")
        ended = handle.get_result_async()
        try:
            while not ended.done():
                self.watcher.spin(0.05)
                show(self._progress)
        except BaseException:
            handle.cancel_goal_async()
            raise
        result, status = ended.result().result, ended.result().status
        return result, result.reason or ("" if status == GoalStatus.STATUS_SUCCEEDED else "it was broken off")
