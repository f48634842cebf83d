"""A tower of class 1: three of its six struts float in cables alone, all of them spin freely."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import qp_loop

from tensegrity_control import make_controller
from tensegrity_control.inverse_kinematics.mechanism_equilibria import MechanismEquilibriumMap
from tensegrity_control.motion_planning.output_model import OutputModel
from tensegrity_dynamics import Simulation, load_robot
from tensegrity_dynamics.mechanisms.kinematics.independent_coordinates import wrench_jacobian

FLOOR = 3.0


@cache
def tower():
    return load_robot(str(Path(__file__).parents[3] / "examples" / "strut_tower.yaml"))


def test_six_spins_are_told_from_all_motions_that_cables_hold():
    robot = tower()
    rest = MechanismEquilibriumMap(robot).home
    assert rest.statics.stable and np.min(rest.tensions) > FLOOR
    model = OutputModel(robot)
    still = np.zeros(model.index.size)
    matrix, push, _ = model.linearised(rest.q, still, rest.effort[model.drives])
    spins, _ = model.idle_motions(rest.q, matrix, push)
    assert spins.shape[1] == 6
    mechanism, moved = robot.mechanism, np.array([model.velocity(rest.q, spin) for spin in spins.T]).T
    for name in [f"{stage}{k}" for stage in ("low", "high") for k in (1, 2, 3)]:
        axis = rest.statics.rotations[mechanism.body_index[name]][:, 2]
        twist = wrench_jacobian(mechanism, rest.q, name, np.zeros(3)) @ moved  # angular first
        across = twist[:3] - np.outer(axis, axis @ twist[:3])
        size = np.max(np.abs(twist[:3]))
        assert np.max(np.abs(across)) < 1e-5 * size and np.max(np.abs(twist[3:])) < 1e-5 * size


@pytest.mark.long
@pytest.mark.parametrize(("kind", "period"), [("qp", 0.005), ("task", 0.01), ("near_rigid", 0.01)])
def test_its_top_follows_and_its_cables_stay_tight(kind, period):
    robot = tower()
    control = make_controller(kind, robot, period=period)
    made = qp_loop.Loop(Simulation(robot, 5e-4), control)
    control.reset(0.0, made.look())
    goal = made.look().pose[0] + [0.02, 0.01, 0.01]
    accepted = control.set_goal(0.0, goal)
    worst, least = 0.0, np.inf
    while made.time < accepted.duration + 0.2:
        outputs, tensions = made.run(4 * period)
        worst = max(worst, np.linalg.norm(outputs[-1] - control.reference(made.time).pose[0]))
        least = min(least, np.min(tensions))
    assert worst < 1e-4 and np.linalg.norm(outputs[-1] - goal) < 5e-5 and least > FLOOR
    assert not control.status(made.time).relaxed
