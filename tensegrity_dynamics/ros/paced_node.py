"""Run a node that only wants the newest messages: look a few times per second instead of once per message.

A subscription of depth 1 then drops what nobody would look at before Python sees it: a robot that reports 200 times per
second costs a node that draws 30 pictures no more than one that reports 30 times.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable

import rclpy
from rclpy._rclpy_pybind11 import RCLError
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor, TimeoutException

from ..errors import TensegrityError
from .robot_node import RobotNode

MOST = 50  # callbacks per round, so that a flood cannot keep the round from its end


class PacedNode(RobotNode):
    """A node whose work is done `rate` times per second of wall time."""

    rate: float = 30.0

    def work(self) -> None:
        """What to do once the waiting messages have been taken note of."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of what is not ROS; called once at the end."""


def run_paced(make: Callable[[], PacedNode]) -> int:
    """Run a node until SIGINT or SIGTERM; exit status 0, or 1 with one line where it cannot start."""
    rclpy.init()
    node = executor = None

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)
    try:
        node = make()
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        _spin(node, executor)
    except TensegrityError as error:
        print(f"{getattr(make, '__name__', 'node')}: {error}", file=sys.stderr)
        return 1
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if node is not None:
            node.close()
            node.destroy_node()
        if executor is not None:
            executor.shutdown()
        rclpy.try_shutdown()
    return 0


def _spin(node: PacedNode, executor: SingleThreadedExecutor) -> None:
    while node.context.ok():
        until = time.monotonic() + 1.0 / node.rate
        _handle_waiting(executor)
        try:
            node.work()
        except RCLError:
            if node.context.ok():
                raise  # else the end came in the middle of the work, and publishing into nothing is no error
        time.sleep(max(0.0, until - time.monotonic()))


def _handle_waiting(executor: SingleThreadedExecutor) -> None:
    for _ in range(MOST):
        try:
            handler, _, _ = executor.wait_for_ready_callbacks(timeout_sec=0.0)
        except TimeoutException:
            return
        handler()
        if (problem := handler.exception()) is not None:
            raise problem
