"""Several nodes in one process with one executor; what they tell each other is handed over (`hand_over`).

The nodes are the same as those that run as processes of their own. In lock-step the numbers are the same, too: which
message answers which is settled by stamps, not by who comes first.
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
    """An error in a node's own work. Attributes: node."""

    def __init__(self, node: RobotNode, error: Exception) -> None:
        super().__init__(str(error))
        self.node = node


class Composition:
    """Nodes of one process.

    Args:
        makes: how each is made, by name, in the order in which they start.
        may_end: names of those without which the others go on.
        arguments: ROS arguments of single nodes, by name, on top of those of the process.

    Attributes:
        nodes: those that work, by name.

    Raises:
        TensegrityError: a node cannot start; its name comes first.
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
        """Handle what comes, from inside and from elsewhere, until the end is asked for.

        Raises:
            NodeFailure: of a node that the others need.
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
        """Do a step of a node's, or of nobody's known."""
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
    """Run nodes in this process until SIGINT or SIGTERM, and end it; status 0, or 1 with a line that names the node.

    As `run_node` does for one of them.
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
