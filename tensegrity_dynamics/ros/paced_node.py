"""Run a node that only wants the newest messages: look a few times per second instead of once per message.

A subscription of depth 1 then drops what nobody would look at before Python sees it: a robot that reports 200 times per
second costs a node that draws 30 pictures no more than one that reports 30 times.
"""

from __future__ import annotations

import time

from rclpy.executors import SingleThreadedExecutor

from ..beat import Beat
from ..ending import Ending
from .robot_node import RobotNode, handle_waiting


class PacedNode(RobotNode):
    """A node whose work is done `rate` times per second of wall time, as far as the machine can (`Beat`)."""

    rate: float = 30.0

    def work(self) -> None:
        """What to do once the waiting messages have been taken note of."""
        raise NotImplementedError

    def spin(self, executor: SingleThreadedExecutor, ending: Ending) -> None:
        """Take note of the messages, work, rest; until the end is asked for."""
        beat = Beat(self.rate)
        while not ending.asked and self.context.ok():
            began = time.monotonic()
            handle_waiting(executor, 0.0, lambda _, step: self.survive(step))
            self.work()
            ended = time.monotonic()
            ending.wait(beat.next(began, ended) - ended)

    def begin_inside(self) -> None:
        """Work by a timer of the common executor."""
        self.create_timer(1.0 / self.rate, self.work, clock=self.wall_clock)
