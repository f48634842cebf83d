"""A controller node in this process that gets its states one by one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import rclpy
from node_messages import ask, give, published_by
from patience import PATIENCE_S
from rclpy.executors import SingleThreadedExecutor
from sensor_msgs.msg import JointState
from tensegrity.srv import SetGoalPose

from tensegrity_control.cancellation import checkpoint
from tensegrity_control.ros.controller_node import ControllerNode
from tensegrity_dynamics import Simulation, load_robot
from tensegrity_dynamics.robots.robot_types import type_of
from tensegrity_dynamics.ros.geometry_messages import fill_pose, time_message
from tensegrity_dynamics.ros.state_encoding import state_message

PERIOD = 10_000_000  # ns


class Cell:
    """A controller node and the robot at rest whose states it gets."""

    def __init__(self, robot: str, controller: str, lockstep: bool) -> None:
        words = ["-p", f"robot:={robot}", "-p", "control_period:=0.01"]
        words += ["-p", f"controller:={controller}"] if controller else []
        words += ["-p", f"lockstep:={str(lockstep).lower()}"]
        rclpy.init(args=["--ros-args", "--log-level", "FATAL", *words])
        self.node = ControllerNode()
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(self.node)
        loaded = load_robot(robot)
        self._codec = type_of(loaded).codec(loaded)
        simulation = Simulation(loaded)
        self.seen, self._state = simulation.observe(), simulation.state
        self.stamp, self.home = 0, self.seen.pose
        self.commands = published_by(self.node, "actuator_command")

    def give_state(self, stamp: int | None = None) -> int:
        """Give the next state; returns how many commands answered it."""
        before = len(self.commands)
        self.stamp = self.stamp + PERIOD if stamp is None else stamp
        joints = JointState(name=list(self.seen.positions), position=list(self.seen.positions.values()))
        joints.header.stamp = time_message(self.stamp)
        record = self._codec.encode(self._state, self.seen.pose, self.seen.twist)
        give(self.node, "joint_states", joints)
        give(self.node, "structure_state", state_message(record, time_message(self.stamp), "simulator"))
        return len(self.commands) - before

    def ask(self, move: tuple[float, float, float], duration: float = 0.0) -> Any:
        """Ask for a goal; the task ends with the answer."""
        request = SetGoalPose.Request(duration=duration)
        fill_pose(request.target.pose, self.home[0] + np.array(move), (1.0, 0.0, 0.0, 0.0))
        return self.executor.create_task(ask(self.node, "set_goal_pose", request))

    def spin_until(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < end
            self.executor.spin_once(timeout_sec=0.01)

    def call(self, name: str) -> Any:
        return ask(self.node, name)

    @property
    def phase(self) -> str:
        return str(self.node.controller.status(self.node.now).phase)

    def close(self) -> None:
        self.node.close()
        self.node.destroy_node()
        self.executor.shutdown()
        rclpy.try_shutdown()


@contextmanager
def cell(robot: str, controller: str = "", lockstep: bool = False) -> Iterator[Cell]:
    made = None
    try:
        made = Cell(robot, controller, lockstep)
        made.give_state(PERIOD)
        yield made
    finally:
        if made is not None:
            made.close()
        rclpy.try_shutdown()


class WaitingPlan:
    """The controller's own plan, which begins once `may_begin` is set."""

    def __init__(self, cell: Cell) -> None:
        self.may_begin, self._plan_goal = threading.Event(), cell.node.controller.plan_goal
        cell.node.controller.plan_goal = self._plan

    def _plan(self, *words: Any, **options: Any) -> Any:
        assert self.may_begin.wait(PATIENCE_S)
        return self._plan_goal(*words, **options)


class EndlessPlan:
    """A plan that goes on until it is called off."""

    def __init__(self, cell: Cell) -> None:
        self.began, self.left = threading.Event(), threading.Event()
        cell.node.controller.plan_goal = self._plan

    def _plan(self, *_: Any, **__: Any) -> Any:
        self.began.set()
        try:
            while True:
                checkpoint()
                time.sleep(0.001)
        finally:
            self.left.set()
