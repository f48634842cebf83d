"""Weight and prestress take stiffness from a shape; the loops of its actuators must not take the rest."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from elbow import ELBOW

from tensegrity_control import make_controller
from tensegrity_control.inverse_kinematics.pose_goal import PoseGoal
from tensegrity_control.inverse_kinematics.solve_ik import plan_path
from tensegrity_control.motion_planning.impedance_gains import (
    KEPT,
    _vanishes,
    driven_rows,
    gains_for_motion,
    impedance_gains,
)
from tensegrity_dynamics.robots.load_robot import parse_robot
from tensegrity_tools.runtime.delayed_loop import DelayedLoop, Delays

PERIOD = 0.01
ASIDE = np.array([0.02, 0.0, -0.01])


@pytest.mark.parametrize("radius", [0.5, 0.999, 1.001, 2.0])
def test_a_loop_is_stable_where_its_eigenvalues_are_inside_of_the_unit_circle(radius):
    for seed in range(10):
        matrix = np.random.default_rng(seed).normal(size=(12, 12)) * np.geomspace(1e-3, 1e3, 12)  # far from normal
        scaled = matrix * radius / np.max(np.abs(np.linalg.eigvals(matrix)))
        assert _vanishes(scaled) == (radius < 1.0)


@cache
def elbow():
    """Controller, and equilibria from its start to 2 cm aside."""
    control = make_controller("task", parse_robot(ELBOW), period=PERIOD)
    start = control.equilibria.start()
    pose = start.pose[0] + ASIDE, start.pose[1]
    return control, plan_path(control.equilibria, start, PoseGoal(*pose, control.robot.output)).path


def softest(model, equilibrium, stiffness):
    """1/s^2 of the softest motion with loops of the given stiffness."""
    rows, _ = driven_rows(model, equilibrium.q)
    dynamics, push, _ = model.linearised(
        equilibrium.q, np.zeros(model.index.size), equilibrium.effort[model.drives]
    )  # fmt: skip
    count = model.index.size
    return np.min(np.linalg.eigvals(-dynamics[count:, :count] + push[count:] @ (stiffness[:, None] * rows)).real)


@pytest.mark.parametrize("at", [0, -1])
def test_a_shape_keeps_half_of_the_stiffness_that_it_has_with_locked_drums(at):
    control, path = elbow()
    equilibrium, model = path[at], control.model
    gains = impedance_gains(model, equilibrium.q, equilibrium.effort[model.drives])
    locked = (2.0 * np.pi / control.equilibria.slowest_period(equilibrium)) ** 2
    assert softest(model, equilibrium, gains.stiffness) >= KEPT * locked
    assert gains.kept == pytest.approx(softest(model, equilibrium, gains.stiffness) / locked, rel=1e-3)
    # drums that are stiff without end are locked, so that both ways to see it agree
    assert softest(model, equilibrium, 1e6 * gains.stiffness) == pytest.approx(locked, rel=1e-3)


@pytest.mark.parametrize("leaves", [False, True])
def test_gains_of_a_motion_hold_its_softer_end(leaves):
    control, path = elbow()
    model, ends = control.model, [path[0], path[-1]]
    pairs = [(each.q, each.effort[model.drives]) for each in ends]
    gains = gains_for_motion(model, *(pairs[::-1] if leaves else pairs))
    for each in ends:
        locked = (2.0 * np.pi / control.equilibria.slowest_period(each)) ** 2
        assert softest(model, each, gains.stiffness) >= 0.9 * KEPT * locked


@pytest.mark.parametrize(
    "delays",
    [
        Delays(states=(0, 3), commands=(0, 3)),
        Delays(busy=(1, 3)),
        Delays(freezes=((0.5, 0.1),)),
        Delays(freezes=((0.45, 0.3),)),
    ],
    ids=["0 to 3 periods", "busy", "0.1 s without", "0.3 s without"],
)
def test_an_arm_near_a_fold_is_not_lost_by_late_commands(delays):
    control = make_controller("task", elbow()[0].robot, period=PERIOD)
    loop = DelayedLoop(control.robot, control, PERIOD, delays, observer=True)
    loop.run(0.3)
    home = loop.simulation.observe().pose
    control.set_goal(loop.time, home[0] + ASIDE, home[1])
    loop.forget()
    loop.run(2.0)
    error = (loop.simulation.observe().pose[0] - home[0] - ASIDE)[[0, 2]]
    assert np.linalg.norm(error) < 1e-3 and loop.least() > 1.0
