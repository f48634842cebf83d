"""A rehearsal plans and answers as a node does, and leaves other controllers as they are."""

from __future__ import annotations

import numpy as np
import pytest

from tensegrity_control import make_controller
from tensegrity_control.controller import RobotState
from tensegrity_control.rehearsal import rehearse, rehearse_once
from tensegrity_dynamics import Simulation, load_robot


@pytest.mark.parametrize(
    ("name", "robot"), [("task", "single_strut"), ("qp", "biglide"), ("tendon_length", "tensebot")]
)
def test_a_rehearsal_plans_answers_late_states_and_stops(name, robot, monkeypatch):
    loaded, calls = load_robot(robot), []
    control = make_controller(name, loaded)
    for each in ("reset", "set_goal", "command", "stop"):
        method = getattr(control, each)
        monkeypatch.setattr(control, each, lambda *a, m=method, e=each, **k: (calls.append((e, a)), m(*a, **k))[1])
    rehearse(control, loaded)
    assert {each for each, _ in calls} >= {"reset", "set_goal", "command", "stop"}
    assert {arguments[1].age > 0.0 for each, arguments in calls if each == "command"} == {True, False}


def test_a_controller_that_is_made_after_a_rehearsal_gives_the_same_bits():
    loaded = load_robot("single_strut")

    def answers():
        control, simulation = make_controller("task", loaded), Simulation(loaded)
        control.reset(0.0, RobotState.of(simulation))
        control.set_goal(0.0, simulation.observe().pose[0] + np.array([0.02, 0.0, 0.0]))
        return [control.command(0.01 * k, RobotState.of(simulation)).values for k in range(5)]

    before = answers()
    made = []
    for _ in range(2):
        rehearse_once(lambda: made.append(1) or make_controller("task", loaded), "task of this test", loaded)
    assert len(made) == 1
    assert all(np.array_equal(a, b) for a, b in zip(before, answers(), strict=True))
