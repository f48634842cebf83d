"""Several nodes in one process with one executor; their messages are passed inside the process (`hand_over`).

The nodes are the same as those that run in separate processes. In lock-step the results are also the same, because the
correspondence of messages is defined by stamps, not by their order of arrival.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from typing import NoReturn

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor

from ..ending import Ending
from ..errors import TensegrityError
from .attention import pause
from .hand_over import HandOver
from .robot_node import RobotNode, handle_waiting, run_in_ros, spare_collections


class NodeFailure(Exception):
    """Error in the internal work of a node (attribute `node`)."""

    def __init__(self, node: RobotNode, error: Exception) -> None:
        super().__init__(str(error))
        self.node = node


class Composition:
    """Nodes of one process.

    Args:
        makes: functions that create the nodes, by name, in the order of their start.
        may_end: names of the nodes whose failure does not end the others.
        arguments: ROS arguments of single nodes by name, in addition to those of the process.

    Attributes:
        nodes: active nodes by name.

    Raises:
        TensegrityError: a node cannot start; the message begins with its name.
    """

    def __init__(
        self,
        makes: Mapping[str, Callable[[], RobotNode]],
        may_end: Collection[str] = (),
        arguments: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._hand_over = HandOver()
        self._may_end = may_end
        self.nodes: dict[str, RobotNode] = {}
        for name, make in makes.items():
            try:
                with self._hand_over.nodes((arguments or {}).get(name, ())):
                    self.nodes[name] = make()
            except TensegrityError as error:
                if name not in may_end:
                    self.close()
                    raise TensegrityError(f"{name}: {error}") from None
                print(f"{name}: {error}; the others continue without it", file=sys.stderr, flush=True)

    def spin(self, executor: SingleThreadedExecutor, ending: Ending) -> None:
        """Handle messages from inside and outside the process until the end is requested.

        Raises:
            NodeFailure: a node failed that the others need.
        """
        for node in self.nodes.values():
            executor.add_node(node)
            node.begin_inside()
        took = 0.0
        while not ending.asked and rclpy.ok():
            self._hand_over.deliver(pause(took))
            began, idle = time.monotonic(), self._hand_over.idle
            self._hand_over.look(next(iter(self.nodes.values())))
            try:
                handle_waiting(executor, None if idle else 0.0, self._survive)
            except NodeFailure as failure:
                self._end(failure, executor)
            took = 0.0 if idle else time.monotonic() - began

    def _survive(self, node: RobotNode | None, step: Callable[[], None]) -> None:
        """Execute a step of a node (None if the node is unknown)."""
        owner = node or next(iter(self.nodes.values()))
        try:
            owner.survive(step)
        except ExternalShutdownException:
            raise
        except Exception as error:
            raise NodeFailure(owner, error) from error

    def _end(self, failure: NodeFailure, executor: SingleThreadedExecutor) -> None:
        name = failure.node.get_name()
        traceback.print_exception(failure.__cause__)
        if name not in self._may_end:
            raise failure
        print(f"{name} failed: {failure}; the others continue without it", file=sys.stderr, flush=True)
        executor.remove_node(failure.node)
        self._close(self.nodes.pop(name))

    def close(self) -> None:
        """Close all nodes."""
        while self.nodes:
            self._close(self.nodes.popitem()[1])

    @staticmethod
    def _close(node: RobotNode) -> None:
        node.close()
        node.destroy_node()


def run_composed(
    makes: Mapping[str, Callable[[], RobotNode]],
    may_end: Collection[str] = (),
    arguments: Mapping[str, Sequence[str]] | None = None,
) -> NoReturn:
    """Run nodes in this process until SIGINT or SIGTERM, and end it: status 0, or 1 with a line that contains the node.

    It corresponds to `run_node` for a single node.
    """

    def work(executor: SingleThreadedExecutor, ending: Ending, release: ExitStack) -> None:
        composition = Composition(makes, may_end, arguments)
        release.callback(composition.close)
        spare_collections()
        try:
            composition.spin(executor, ending)
        except NodeFailure as failure:
            raise TensegrityError(f"{failure.node.get_name()} failed: {failure}") from failure

    run_in_ros(work)
