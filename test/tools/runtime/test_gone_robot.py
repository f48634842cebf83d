"""A client never waits for ever for a robot that is gone; the time is the test's own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("tensegrity.msg", reason="the interfaces of this project are not built")

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_tools.runtime import robot_client


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
