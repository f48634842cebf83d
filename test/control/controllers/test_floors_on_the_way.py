"""Planned motions keep the tension floors where moving itself takes from the tensions: they take longer, and say so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from damped_mast import damped_mast

from tensegrity_control import make_controller
from tensegrity_dynamics import Robot, load_robot
from tensegrity_tools.runtime.delayed_loop import DelayedLoop, Delays


def moved(robot: Robot, step: np.ndarray, **goal: float) -> tuple[DelayedLoop, str]:
    loop = DelayedLoop(robot, make_controller("task", robot), 0.005, Delays())
    loop.run(0.2)
    accepted = loop.control.set_goal(loop.stamp, loop.simulation.observe().pose[0] + step, **goal)
    loop.run(accepted.duration + 0.5)
    return loop, accepted.note


@pytest.mark.parametrize("damping", [1.0, 30.0, 120.0])
def test_a_viscous_joint_makes_a_motion_longer_instead_of_a_cable_slack(damping: float):
    loop, note = moved(damped_mast(damping), np.array([0.08, 0.0, 0.0]))
    assert loop.least() > 0.98
    assert ("tension floor of stay_" in note) == (damping > 100.0)


def test_a_duration_that_breaks_a_floor_is_lengthened_and_both_durations_are_said():
    loop, note = moved(damped_mast(120.0), np.array([0.08, 0.0, 0.0]), duration=0.9)
    assert loop.least() > 0.98
    assert "0.9 s requested" in note and "needed by the tension floor of stay_" in note


def test_floors_of_routed_cables_count_like_those_of_others():
    robot = load_robot("examples/finger.yaml")
    level = float(DelayedLoop(robot, make_controller("task", robot), 0.005).simulation.observe().tensions["flexor"])
    floor = [replace(each, minimum_tension=0.97 * level) for each in robot.actuators]
    loop, note = moved(replace(robot, actuators=tuple(floor)), np.array([0.0, 0.0, 0.004]))
    assert loop.least() > 0.98 and "broken" not in note
