"""Robots whose actuators are too weak to stay where they are: refused by name, or held with efforts that they have."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tensegrity_control import make_controller
from tensegrity_control.inverse_kinematics.mechanism_equilibria import MechanismEquilibriumMap
from tensegrity_control.motion_planning.trajectory_tracking import check_efforts
from tensegrity_control.registry import controller_class
from tensegrity_control.trajectories.time_scaling import TooFastError
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_tools.runtime.delayed_loop import DelayedLoop

PERIOD = 0.005
CASES = [
    ("stewart", "joint_position"),
    ("stewart", "task"),
    pytest.param("stewart", "computed_torque", marks=pytest.mark.long),
    pytest.param("stewart", "kinematic", marks=pytest.mark.long),
    pytest.param("stewart", "qp", marks=pytest.mark.long),
    ("single_strut", "joint_position"),
    pytest.param("single_strut", "near_rigid", marks=pytest.mark.long),
    ("single_strut", "qp"),
]

HELD = {("single_strut", "qp")}
"""With less tension in the cables, which takes less effort."""


@cache
def with_share(name, share):
    """A robot whose actuators have a share of the largest effort that its start needs at rest."""
    robot = load_robot(name)
    equilibria = MechanismEquilibriumMap(robot)
    effort = share * float(np.max(np.abs(equilibria.efforts(equilibria.home))))
    return replace(robot, actuators=tuple(replace(each, effort=effort) for each in robot.actuators))


def moved(name, share, controller):
    """How far the output of such a robot goes under a controller [m] in 0.15 s. Raises TensegrityError."""
    robot = with_share(name, share)
    parameters = {"period": PERIOD} if "period" in controller_class(controller).parameters() else {}
    loop = DelayedLoop(robot, make_controller(controller, robot, **parameters), PERIOD)
    begin = np.array(loop.simulation.observe().pose[0])
    loop.run(0.15)
    return float(np.linalg.norm(loop.simulation.observe().pose[0] - begin))


@pytest.mark.parametrize(("name", "controller"), CASES)
def test_what_cannot_be_held_is_refused_and_what_can_be_held_rests(name, controller):
    assert moved(name, 1.02, controller) < 1e-5
    if (name, controller) in HELD:
        assert moved(name, 0.8, controller) < 1e-5
        return
    with pytest.raises(TensegrityError, match=r"cannot be held .*effort.* (leg_1_(left|right)|B1)\b"):
        moved(name, 0.8, controller)


@pytest.mark.parametrize("controller", ["task", "near_rigid"])
def test_a_duration_that_takes_more_effort_than_there_is_is_lengthened(controller):
    robot = with_share("single_strut", 1.05)
    loop = DelayedLoop(robot, make_controller(controller, robot, period=PERIOD), PERIOD)
    loop.run(5 * PERIOD)
    end = loop.simulation.observe().pose[0] - [0.01, 0.0, 0.0]
    planned = loop.control.plan_goal(loop.stamp, loop.control.make_goal(loop.stamp, end), duration=0.1)
    assert "0.1 s requested" in planned.note and "needed by the effort limit of B" in planned.note
    used = np.max(np.abs(planned.tracker.plan.inputs), axis=0)
    assert np.all(used <= [each.effort for each in robot.actuators])
    assert planned.duration < 1.5


def test_poses_that_no_duration_makes_light_enough_are_refused_as_that():
    robot = load_robot("single_strut")
    held = np.array([[2.0, 1.0, 1.0], [3.0, 1.0, 1.0]])
    weak = replace(robot, actuators=tuple(replace(each, effort=2.5) for each in robot.actuators))
    with pytest.raises(TensegrityError, match=r"need 3 N m of B1 at rest, above its limit of 2\.5, however slow"):
        check_efforts(weak, held, held)
    with pytest.raises(TooFastError, match="take more time") as fast:
        check_efforts(weak, held, held - [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    assert fast.value.factor == pytest.approx(np.sqrt(2.0))
