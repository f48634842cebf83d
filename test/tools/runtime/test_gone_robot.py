"""A client never waits for ever for a robot that is gone; the time is the test's own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from patience import PATIENCE_S, until

pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("tensegrity.msg", reason="the interfaces of this project are not built")

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.task import Future
from std_srvs.srv import Trigger
from tensegrity.action import FollowTrajectory
from tensegrity.srv import SetGoalPose

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_tools.commands.running_robot import watching
from tensegrity_tools.runtime import robot_client, watched_action


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Clock]:
    clock = Clock()
    monkeypatch.setattr(robot_client, "time", clock)
    watcher = object.__new__(robot_client.Watcher)  # without a node
    watcher._there = watcher._spun = clock.now
    watcher._states = watcher._states_then = 0
    return watcher, clock


def look(watcher: Any, clock: Clock, seconds: float, *, answering: bool, states: bool) -> None:
    for _ in range(round(seconds / 0.1)):
        clock.now += 0.1
        watcher._states += states
        watcher.check_there(answering)


def test_a_robot_that_answers_is_waited_for_without_end(waiting):
    look(*waiting, 3600.0, answering=True, states=True)


@pytest.mark.parametrize(
    ("answering", "states", "word"), [(False, True, "controller"), (True, False, "no more states")]
)
def test_a_controller_or_robot_that_is_gone_ends_the_wait_with_this_reason(waiting, answering, states, word):
    look(*waiting, robot_client.GONE - 1.0, answering=answering, states=states)
    look(*waiting, 5.0, answering=True, states=True)  # it was only late
    with pytest.raises(TensegrityError, match=word):
        look(*waiting, robot_client.GONE + 1.0, answering=answering, states=states)


def test_a_client_that_was_asleep_does_not_take_the_robot_for_gone(waiting):
    watcher, clock = waiting
    look(watcher, clock, 1.0, answering=True, states=True)
    clock.now += 3600.0
    look(watcher, clock, robot_client.GONE - 1.0, answering=False, states=False)


@pytest.mark.parametrize(("inside", "where"), [("/left", " in the namespace left;"), ("/", ";")])
def test_a_robot_that_is_not_there_is_named_with_its_namespace(waiting, inside, where):
    watcher, _ = waiting
    watcher.node = SimpleNamespace(get_namespace=lambda: inside)
    watcher._clients = {"hold": SimpleNamespace(wait_for_service=lambda timeout_sec: False)}
    with pytest.raises(TensegrityError, match=f"no node offers the service hold{where}"):
        watcher.call("hold")
    watcher.truth = watcher.estimate = None
    with pytest.raises(TensegrityError, match=f"no state of the robot has come yet{where}"):
        print(watcher.pose)


@pytest.mark.parametrize("namespace", ["left/../x", "1a", "a b", "ä", "a//b", "~/x", "x" + chr(10)])
def test_a_namespace_that_ros_does_not_accept_is_refused_in_words(namespace: str) -> None:
    with pytest.raises(TensegrityError, match=r"the namespace .* is none"), watching(namespace):
        pass


@pytest.mark.parametrize("asked", ["goal", "trajectory"])
@pytest.mark.parametrize("ends", [KeyboardInterrupt, TensegrityError])
def test_what_nobody_waits_for_any_more_is_called_off(monkeypatch, asked, ends) -> None:
    """As by Ctrl-C while the controller plans, which would begin the motion afterwards."""
    monkeypatch.setattr(robot_client, "PLANNING", 0.5)
    monkeypatch.setattr(watched_action, "PLANNING", 0.5)
    watcher = robot_client.Watcher("gone_robot_client")
    context, held = rclpy.Context(), []  # of its own: the program ends before it
    context.init()
    controller = Node("busy_controller", context=context)
    controller.create_service(SetGoalPose, "set_goal_pose", lambda _, response: response)
    controller.create_service(Trigger, "call_off", lambda _, response: held.append(1) or response)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(controller)

    silent = SimpleNamespace(server_is_ready=lambda: True, send_goal_async=lambda *_, **__: Future())

    arguments = FollowTrajectory.Goal(), lambda _: None, lambda _: None

    def interrupt() -> None:
        if ends is KeyboardInterrupt:
            raise ends

    try:
        assert watcher.wait_until(lambda: watcher.offered("call_off") and watcher.offered("set_goal_pose"), PATIENCE_S)
        watcher._check = interrupt
        action = watched_action.WatchedAction(watcher, FollowTrajectory, "follow_trajectory", "trajectories")
        action._client = silent
        with pytest.raises(ends):
            _ = watcher.send_goal(np.zeros(3), None) if asked == "goal" else action.run(*arguments)
        watcher.close()  # as the program ends
        until(lambda: executor.spin_once(timeout_sec=0.01) or bool(held))
    finally:
        watcher.close()
        executor.shutdown()
        controller.destroy_node()
        context.try_shutdown()
