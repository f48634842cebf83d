"""Motions of actuators go around the controller and give the robot back to it; states of another robot change nothing.

The node runs in this process and gets its states one by one; the actuators of this robot are where they were sent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("tensegrity.msg", reason="the interfaces of this project are not built")

from builtin_interfaces.msg import Duration  # noqa: E402
from node_messages import ask, give, published_by  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from tensegrity.action import FollowActuators  # noqa: E402
from trajectory_msgs.msg import JointTrajectoryPoint  # noqa: E402

from tensegrity_control.ros.controller_node import ControllerNode  # noqa: E402
from tensegrity_dynamics import Simulation, load_robot  # noqa: E402
from tensegrity_dynamics.robots.robot_types import type_of  # noqa: E402
from tensegrity_dynamics.ros.geometry_messages import time_message  # noqa: E402
from tensegrity_dynamics.ros.state_encoding import state_message  # noqa: E402

PERIOD = 0.02
PRISM = load_robot("three_prism")


class Handle:
    """What an action server gives for a goal; keeps what became of it."""

    def __init__(self, goal: FollowActuators.Goal) -> None:
        self.request, self.goal_id, self.is_cancel_requested = goal, object(), False
        self.state, self.feedback = "", []
        self.succeed, self.abort, self.canceled = (lambda name=name: self._end(name) for name in ("s", "a", "c"))

    def _end(self, name: str) -> None:
        self.state = name

    def publish_feedback(self, message: Any) -> None:
        self.feedback.append(message)


class Cell:
    """A controller node and a robot whose actuators are where they were sent, `lag` m beside it."""

    def __init__(self) -> None:
        rclpy.init(args=["--ros-args", "--log-level", "FATAL", "-p", "robot:=three_prism"])
        self.node, self.executor = ControllerNode(), SingleThreadedExecutor()
        self.executor.add_node(self.node)
        self.codec = type_of(PRISM).codec(PRISM)
        simulation = Simulation(PRISM)
        self.seen, self.state = simulation.observe(), simulation.state
        self.positions, self.ticks, self.lag = dict(self.seen.positions), 0, 0.0
        self.sent = published_by(self.node, "actuator_command")
        self.goals = published_by(self.node, "goal")

    def step(self, count: int = 1) -> Any:
        """Give states; the last command."""
        for _ in range(count):
            self.ticks += 1
            stamp = time_message(round(1e9 * PERIOD * self.ticks))
            joints = JointState(name=list(self.positions), position=[x + self.lag for x in self.positions.values()])
            joints.header.stamp = stamp
            give(self.node, "joint_states", joints)
            record = self.codec.encode(self.state, self.seen.pose, self.seen.twist)
            give(self.node, "structure_state", state_message(record, stamp, "simulator"))
            command = self.sent[-1]
            self.positions.update(zip(command.name, command.value, strict=True))
            self.executor.spin_once(timeout_sec=0.0)
        return command

    def follow(
        self, rows: list[tuple[float, list[float]]], names: list[str], tolerance: float = 0.0
    ) -> tuple[Any, Any]:
        goal = FollowActuators.Goal(tolerance=tolerance)
        goal.trajectory.joint_names = names
        for when, values in rows:
            point = JointTrajectoryPoint(positions=values)
            point.time_from_start = Duration(sec=int(when), nanosec=round(1e9 * (when % 1.0)))
            goal.trajectory.points.append(point)
        handle = Handle(goal)
        task = self.executor.create_task(self.node.actuator_motions.follow(handle))
        for _ in range(1000):
            if task.done() or self.node.actuator_motions.moving:
                break
            self.executor.spin_once(timeout_sec=0.01)
        return handle, task

    def settle(self, task: Any) -> Any:
        for _ in range(1000):
            if task.done():
                return task.result()
            self.executor.spin_once(timeout_sec=0.01)
        raise AssertionError("the action never ended")


@pytest.fixture
def cell():
    made = None
    try:
        made = Cell()
        made.step(2)
        yield made
    finally:
        if made is not None:
            made.node.close()
            made.node.destroy_node()
            made.executor.shutdown()
        rclpy.try_shutdown()


def test_actuators_pass_their_waypoints_and_the_controller_takes_over_where_they_end(cell: Cell) -> None:
    one, two = list(cell.positions)[:2]
    start = dict(cell.positions)
    handle, task = cell.follow([(0.5, [start[one] - 1e-3]), (1.0, [start[one] - 2e-3])], [one])
    assert cell.node.actuator_motions.moving
    cell.step(25)
    assert cell.positions[one] == pytest.approx(start[one] - 1e-3, abs=1e-6)
    assert cell.positions[two] == start[two]
    assert handle.feedback[-1].progress == pytest.approx(0.5)
    with pytest.raises(Exception, match="follow a trajectory"):
        cell.node.ready(whole=True)
    cell.step(27)
    result = cell.settle(task)
    assert result.success and handle.state == "s" and np.abs(result.error).max() < 1e-6
    command = cell.step(3)
    assert not cell.node.actuator_motions.moving and cell.node.failed is None
    assert cell.node.controller_status().phase == "holding"
    held = dict(zip(command.name, command.value, strict=True))
    assert held[one] == pytest.approx(start[one] - 2e-3, abs=1e-9)
    (goal,) = cell.goals
    assert goal.accepted and goal.request == goal.ACTUATORS and goal.trajectory == handle.request.trajectory


def test_hold_brakes_a_motion_of_actuators_and_stop_keeps_goals_away_afterwards(cell: Cell) -> None:
    (one, *_) = cell.positions
    start = cell.positions[one]
    handle, task = cell.follow([(4.0, [start + 8e-3])], [one])
    cell.step(100)
    assert ask(cell.node, "stop").success
    cell.step(20)
    assert handle.state == "a" and "stopped" in cell.settle(task).reason
    rest = cell.positions[one]
    assert start + 3e-3 < rest < start + 6e-3
    cell.step(5)
    assert cell.positions[one] == pytest.approx(rest, abs=1e-12)
    refused, again = cell.follow([(1.0, [start])], [one])
    assert refused.state == "a" and "call hold" in cell.settle(again).reason


def test_an_actuator_that_does_not_arrive_is_named(cell: Cell) -> None:
    (one, *_) = cell.positions
    handle, task = cell.follow([(0.2, [cell.positions[one]])], [one], tolerance=1e-4)
    cell.lag = 3e-3
    cell.positions = {name: value - cell.lag for name, value in cell.positions.items()}
    cell.step(80)
    result = cell.settle(task)
    assert handle.state == "a" and not result.success and one in result.reason and "0.003" in result.reason


@pytest.mark.parametrize(
    ("rows", "names", "words"),
    [([(1.0, [0.1])], ["x"], "actuator"), ([(1.0, [0.1, 0.2])], ["side_1"], "2 positions for 1 joint_names"),
     ([], ["side_1"], "0 waypoints"), ([(1.0, [99.0])], ["side_1"], "limits")],
)  # fmt: skip
def test_what_is_no_trajectory_is_refused_and_nothing_moves(cell: Cell, rows: Any, names: Any, words: str) -> None:
    before = dict(cell.positions)
    handle, task = cell.follow(rows, [next(iter(before))] if names == ["side_1"] else names)
    assert words in cell.settle(task).reason and handle.state == "a"
    cell.step(3)
    assert cell.positions == before and not cell.goals[0].accepted


def test_a_state_of_another_layout_gets_no_answer_and_is_said(cell: Cell) -> None:
    other = load_robot("four_prism")
    record = type_of(other).codec(other).encode(Simulation(other).state)
    count = len(cell.sent)
    give(cell.node, "structure_state", state_message(record, time_message(10**9), "simulator"))
    assert len(cell.sent) == count and "belong to other names" in cell.node.status_text
    cell.step()
    assert len(cell.sent) == count + 1
