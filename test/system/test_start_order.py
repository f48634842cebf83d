"""Nodes that start in any order, with any pauses, one of them ended and started again: the robot comes to hold."""

from __future__ import annotations

import random

import pytest

rclpy = pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from endings import Until  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402

from tensegrity_control.ros.controller_node import ControllerNode  # noqa: E402
from tensegrity_dynamics.ros.estimator_node import EstimatorNode  # noqa: E402
from tensegrity_dynamics.ros.markers_node import MarkersNode  # noqa: E402
from tensegrity_dynamics.ros.robot_node import handle_waiting  # noqa: E402
from tensegrity_dynamics.ros.simulator_node import SimulatorNode  # noqa: E402

pytestmark = pytest.mark.system

ROBOT = "three_prism"
KINDS = {"simulator": SimulatorNode, "estimator": EstimatorNode, "controller": ControllerNode, "markers": MarkersNode}


class Cell:
    """All nodes of a robot on the bus, in this process and in lock-step: each can be started and ended at any time."""

    def __init__(self) -> None:
        words = [f"-p robot:={ROBOT}", "-p control_period:=0.02", "-p lockstep:=true"]
        words += [f"-p {name}:use_sim_time:=true" for name in KINDS if name != "simulator"]
        rclpy.init(args=["test", "--ros-args", *(word for each in words for word in each.split())])
        self.executor, self.nodes = SingleThreadedExecutor(), {}

    def start(self, name: str) -> None:
        self.nodes[name] = KINDS[name]()
        self.executor.add_node(self.nodes[name])

    def end(self, name: str) -> None:
        node = self.nodes.pop(name)
        self.executor.remove_node(node)
        node.close()
        node.destroy_node()

    def work(self, rounds: int = 1) -> None:
        for _ in range(rounds):
            handle_waiting(self.executor, 0.02, lambda node, step: node.survive(step) if node else step())

    def until(self, condition) -> None:
        ended = Until(condition)
        while not ended.asked:
            self.work()

    @property
    def holds(self) -> bool:
        """Whether the controller commands what the simulator follows."""
        controller, simulator = self.nodes["controller"], self.nodes["simulator"]
        return controller.status_text == "holding" and not simulator.holding and controller.stamp is not None

    def close(self) -> None:
        for name in list(self.nodes):
            self.end(name)
        self.executor.shutdown()
        rclpy.try_shutdown()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(24))
def test_a_robot_holds_whatever_started_first_and_whatever_was_started_again(seed: int) -> None:
    chance, cell = random.Random(seed), Cell()
    try:
        order = chance.sample(list(KINDS), len(KINDS))
        again = chance.choice(order)
        after = chance.randrange(order.index(again), len(order))
        for k, name in enumerate(order):
            cell.start(name)
            cell.work(chance.choice((0, 0, 5, 40)))
            if k == after:
                cell.end(again)
                cell.work(chance.choice((0, 5, 40)))
                cell.start(again)
        cell.until(lambda: cell.holds)
        simulator = cell.nodes["simulator"]
        began = simulator.ticks
        cell.until(lambda: simulator.ticks >= began + 25)
        assert cell.holds, (order, again, {name: node.status_text for name, node in cell.nodes.items()})
    finally:
        cell.close()


def test_two_nodes_that_publish_states_are_named_until_one_is_left() -> None:
    cell = Cell()
    try:
        for name in ("simulator", "estimator", "controller"):
            cell.start(name)
        cell.until(lambda: cell.holds)
        first = cell.nodes["estimator"]
        cell.start("estimator")
        cell.nodes["second estimator"] = first
        controller = cell.nodes["controller"]
        cell.until(
            lambda: controller.status_text.startswith("2 nodes publish structure_state (/estimator, /estimator)")
        )
        cell.end("second estimator")
        cell.until(lambda: cell.holds)
    finally:
        cell.close()
