"""Nodes that need only the newest messages: they are processed a few times per second, not for every message.

A subscription of depth 1 drops older messages before Python processes them: for a node with 30 pictures per second, a
robot with 200 messages per second causes no more load than one with 30.
"""

from __future__ import annotations

import time

from rclpy.executors import SingleThreadedExecutor

from ..beat import Beat
from ..ending import Ending
from .robot_node import RobotNode, handle_waiting


class PacedNode(RobotNode):
    """Node whose work is executed `rate` times per second of wall time, if the machine is fast enough (`Beat`)."""

    rate: float = 30.0

    def work(self) -> None:
        """Work to do after the waiting messages were stored."""
        raise NotImplementedError

    def spin(self, executor: SingleThreadedExecutor, ending: Ending) -> None:
        """Store messages, work and wait, until the end is requested."""
        beat = Beat(self.rate)
        while not ending.asked and self.context.ok():
            began = time.monotonic()
            handle_waiting(executor, 0.0, lambda _, step: self.survive(step))
            self.work()
            ended = time.monotonic()
            ending.wait(beat.next(began, ended) - ended)

    def begin_inside(self) -> None:
        """Execute the work with a timer of the common executor."""
        self.create_timer(1.0 / self.rate, self.work, clock=self.wall_clock)
