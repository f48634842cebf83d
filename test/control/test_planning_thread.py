"""Which thread does what of a goal: what takes long beside the control, the rest at once."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import pytest

from tensegrity_control.ros.planning_thread import PlanningThread
from tensegrity_dynamics.errors import UnreachableGoalError


class Streams:
    """A controller that takes streams of goals; `found` is what it finds, an error to raise, or None where it needs
    none, which takes half a second of the node's time. It keeps in which thread it was asked for what."""

    streams_goals = True

    def __init__(self, node, found):
        self.node, self.found, self.needs_equilibria, self.asked = node, found, found is not None, []

    def note(self, what):
        self.asked.append((what, threading.current_thread() is threading.main_thread()))

    def check_goal(self, *_):
        pass

    def equilibria_to(self, goal):
        self.note("equilibria")
        self.node.now += 0.5
        if isinstance(self.found, Exception):
            raise self.found
        return self.found

    def plan_goal(self, now, goal, *, duration, profile, equilibria=None):
        self.note(f"plan at {now} with {equilibria}")
        return SimpleNamespace(found=equilibria)

    def begin(self, now, planned):
        self.note(f"begin at {now}")
        return planned.found

    def hold(self, now):
        raise AssertionError("nothing has to brake")


@pytest.fixture
def node():
    made = SimpleNamespace(now=3.0, executor=None)
    made.planner = PlanningThread(made, lockstep=False)
    yield made
    made.planner.close()


def answer(node, controller):
    """Runs the coroutine of a goal to its end, as an executor does."""
    goal = node.planner.goal(controller, SimpleNamespace(), 0.0, "")
    try:
        while True:
            goal.send(None)
            time.sleep(0.001)
    except StopIteration as end:
        return end.value


def test_a_goal_that_needs_no_equilibria_begins_in_the_thread_of_the_control(node):
    controller = Streams(node, None)
    assert answer(node, controller) is None
    assert controller.asked == [("plan at 3.0 with None", True), ("begin at 3.0", True)]


def test_equilibria_are_found_beside_the_control_and_the_motion_begins_from_what_the_robot_does_then(node):
    controller = Streams(node, "shapes")
    assert answer(node, controller) == "shapes"
    assert controller.asked == [("equilibria", False), ("plan at 3.5 with shapes", True), ("begin at 3.5", True)]
    assert not node.planner.busy


def test_a_goal_to_which_no_equilibria_lead_is_refused_and_nothing_begins(node):
    controller = Streams(node, UnreachableGoalError("nothing leads there", nearest=None))
    with pytest.raises(UnreachableGoalError, match="nothing leads there"):
        answer(node, controller)
    assert [what for what, _ in controller.asked] == ["equilibria"] and not node.planner.busy
