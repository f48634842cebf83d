"""Run a node that only wants the newest messages: look a few times per second instead of once per message.

A subscription of depth 1 then drops what nobody would look at before Python sees it: a robot that reports 200 times per
second costs a node that draws 30 pictures no more than one that reports 30 times.
"""

from __future__ import annotations

import time

from rclpy.executors import SingleThreadedExecutor, TimeoutException

from ..ending import Ending
from .robot_node import RobotNode

MOST = 50  # callbacks per round, so that a flood cannot keep the round from its end


class PacedNode(RobotNode):
    """A node whose work is done `rate` times per second of wall time."""

    rate: float = 30.0

    def work(self) -> None:
        """What to do once the waiting messages have been taken note of."""
        raise NotImplementedError

    def spin(self, executor: SingleThreadedExecutor, ending: Ending) -> None:
        """Take note of the messages, work, rest; until the end is asked for."""
        while not ending.asked and self.context.ok():
            until = time.monotonic() + 1.0 / self.rate
            self._handle_waiting(executor)
            self.work()
            ending.wait(until - time.monotonic())

    def _handle_waiting(self, executor: SingleThreadedExecutor) -> None:
        nothing = False

        def take() -> None:
            nonlocal nothing
            try:
                handler, _, _ = executor.wait_for_ready_callbacks(timeout_sec=0.0)
            except TimeoutException:
                nothing = True
                return
            handler()
            if (problem := handler.exception()) is not None:
                raise problem

        for _ in range(MOST):
            self.survive(take)
            if nothing:
                return
