"""The document's law for mechanisms with free motions, and the rest at its floor from which it begins."""

from __future__ import annotations

import numpy as np
import pytest

from tensegrity_control.laws.least_effort_equilibrium import least_effort_equilibrium
from tensegrity_control.laws.near_rigid_extended_law import ExtendedNearRigidLaw
from tensegrity_control.motion_planning.near_rigid_model import NearRigidModel
from tensegrity_control.motion_planning.output_model import OutputModel
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import InfeasibleControlError
from tensegrity_dynamics.mechanisms.dynamics.reduced_model import ReducedModel

STRUTS = tuple(f"B{i}-{part}Jt" for i in (1, 2, 3) for part in ("dummy", "strut"))
FLOOR = 8e-4


@pytest.fixture(scope="module")
def robot():
    return load_robot("manipulator")


@pytest.fixture(scope="module")
def rest(robot):
    """Model, position and torques of the rest with the least torques, 2 cm beside the start."""
    model = OutputModel(robot, NearRigidModel(robot, STRUTS).names)
    start = np.array(robot.model.start)
    goal = model.output_position(start) + [0.02, 0.0, -0.03]
    return model, goal, *least_effort_equilibrium(model, start, np.full(6, 1.0), goal, np.arange(6, 12), FLOOR)


def moving_state(robot, q):
    """A position near q and velocities there."""
    random, model = np.random.default_rng(3), NearRigidModel(robot, STRUTS)
    w = q[model.q_index] + np.concatenate((0.05 * random.normal(size=6), 1e-4 * random.normal(size=6)))
    q = model.closed_configuration(q, w)
    return q, model.velocity(q, np.concatenate((0.3 * random.normal(size=6), 1e-3 * random.normal(size=6))))


def test_rest_at_the_floor_is_an_equilibrium_with_a_cable_on_the_floor_and_none_below(rest):
    model, goal, q, effort = rest
    assert np.max(np.abs(model.accelerations(q, np.zeros(12), effort))) < 1e-8
    np.testing.assert_allclose(model.output_position(q), goal, atol=1e-9)
    strains = q[model.q_index[6:]]
    assert np.min(strains) == pytest.approx(FLOOR, rel=1e-9)


def test_rest_at_the_floor_takes_less_torque_than_equilibria_near_it(rest):
    model, goal, q, effort = rest
    for k in range(6, 12):
        floor = np.full(6, FLOOR)
        floor[k - 6] = 1.05 * q[model.q_index[k]]
        _, other = least_effort_equilibrium(model, q, effort, goal, np.arange(6, 12), floor)
        assert effort @ effort < other @ other


def test_a_floor_that_no_equilibrium_keeps_is_refused(rest):
    model, goal, q, effort = rest
    with pytest.raises(InfeasibleControlError, match="no equilibrium"):
        least_effort_equilibrium(model, q, effort, goal + [0.0, 0.0, 5.0], np.arange(6, 12), FLOOR)


def test_what_the_law_decides_does_not_depend_on_the_free_coordinates(robot, rest):
    q, v = moving_state(robot, rest[2])
    strains = NearRigidModel(robot, STRUTS).strains
    index = ReducedModel(robot).best_coordinates(q, strains)
    names = robot.mechanism.coordinate_names()
    others = [names[k] for k in index if k not in strains]
    assert set(others) != set(STRUTS)
    acceleration = np.array([0.3, -0.2, 0.5])
    efforts = [ExtendedNearRigidLaw(robot, each, FLOOR).effort(q, v, acceleration) for each in (STRUTS, others)]
    np.testing.assert_allclose(efforts[0], efforts[1], rtol=1e-6, atol=1e-6)


def test_part_of_the_outputs_acceleration_that_velocities_make_is_its_derivative(robot, rest):
    q, v = moving_state(robot, rest[2])
    law, model, h = ExtendedNearRigidLaw(robot, STRUTS, FLOOR), NearRigidModel(robot, STRUTS), 1e-6
    law.effort(q, v, np.zeros(3))
    jacobian, rate = law.task(law.model.basis(q, v))
    sides = []
    for sign in (1.0, -1.0):
        moved = model.closed_configuration(q, q[model.q_index] + sign * h * v[model.index])
        sides.append(law.output(moved, model.velocity(moved, v[model.index]))[1])
    np.testing.assert_allclose(rate, (sides[0] - sides[1]) / (2 * h), atol=1e-6)
    np.testing.assert_allclose(jacobian @ v[model.index], law.output(q, v)[1], atol=1e-12)
