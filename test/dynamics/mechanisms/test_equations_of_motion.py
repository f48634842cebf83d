"""Equations of motion of mechanisms against energies, differences, Pinocchio and the full linear system."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from multibody_examples import MIXED_KINDS, MIXED_PARENTS, flow, mixed_mechanism, random_state, random_tree

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.mechanisms.dynamics.equations_of_motion import equations
from tensegrity_dynamics.mechanisms.dynamics.forward_dynamics import forward_dynamics
from tensegrity_dynamics.mechanisms.frame import Frame
from tensegrity_dynamics.mechanisms.mechanism import Body, Joint, Mechanism

SEEDS = [1, 2, 3]
KINDS = ["revolute", "prismatic", "universal", "involute_u", "involute_epsilon", "involute_length", "revolute"]
PARENTS = ["world", "b0", "b1", "b2", "b1", "b2", "b5"]


@pytest.mark.parametrize("seed", SEEDS)
def test_loop_jacobian_is_the_derivative_of_the_loop_error(seed):
    mechanism = mixed_mechanism(seed)
    q, _ = random_state(mechanism, seed)
    matrix, h = equations(mechanism, q, np.zeros(mechanism.velocity_count)).loop, 1e-5
    for d in range(mechanism.velocity_count):
        unit = np.eye(mechanism.velocity_count)[d]
        ahead, behind = (equations(mechanism, flow(mechanism, q, unit, s * h), 0 * unit).loop_error for s in (1, -1))
        np.testing.assert_allclose(matrix[:, d], (ahead - behind) / (2 * h), rtol=1e-7, atol=2e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_loop_bias_is_minus_the_rate_of_the_loop_jacobian_times_velocity(seed):
    mechanism = mixed_mechanism(seed)
    q, v = random_state(mechanism, seed)
    h = 1e-5
    ahead, behind = (equations(mechanism, flow(mechanism, q, v, s * h), v).loop for s in (1, -1))
    expected = -(ahead - behind) @ v / (2 * h)
    np.testing.assert_allclose(equations(mechanism, q, v).loop_bias, expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("seed", SEEDS)
def test_kinetic_energy_of_the_bodies_is_half_v_m_v(seed):
    mechanism = mixed_mechanism(seed)
    q, v = random_state(mechanism, seed)
    kinetic, _ = energies_by_differences(mechanism, q, v)
    assert 0.5 * v @ equations(mechanism, q, v).mass @ v == pytest.approx(kinetic, rel=1e-9)


def energies_by_differences(mechanism, q, v, h=1e-3):
    """Kinetic and potential energy from body places alone, velocities by sixth-order differences in time."""
    from tensegrity_dynamics.mechanisms.kinematics.body_kinematics import body_kinematics
    from tensegrity_dynamics.mechanisms.workspace import make_workspace

    def positions(time):
        work = make_workspace(mechanism.flat)
        body_kinematics(mechanism.flat, flow(mechanism, q, v, time), np.zeros_like(v), work)
        centres = work.position + np.einsum("bij,bj->bi", work.rotation, mechanism.flat.centre)
        return work.rotation.copy(), centres

    weights = {-3: -1 / 60, -2: 3 / 20, -1: -3 / 4, 1: 3 / 4, 2: -3 / 20, 3: 1 / 60}
    rotation, centres = positions(0.0)
    rotation_rate = sum(weight * positions(k * h)[0] for k, weight in weights.items()) / h
    velocity = sum(weight * positions(k * h)[1] for k, weight in weights.items()) / h
    spin = np.einsum("bji,bjk->bik", rotation, rotation_rate)  # body-frame cross matrix of the angular velocity
    omega = np.stack((spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]), axis=1)
    flat = mechanism.flat
    kinetic = 0.5 * np.sum(flat.mass * np.sum(velocity**2, axis=1))
    kinetic += 0.5 * np.einsum("bi,bij,bj->", omega, flat.inertia, omega)
    return kinetic, -np.sum(flat.mass * (centres @ flat.gravity))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", SEEDS)
def test_mass_and_bias_follow_from_the_lagrangian(seed):
    """M = d2T/dv2 and c = dM/dt v - d(v'Mv/2)/dq + dV/dq, differentiated to sixth order from the energies."""
    mechanism = random_tree(KINDS, PARENTS, seed)
    q, v = random_state(mechanism, seed)
    n = v.size
    weights = {-3: -1 / 60, -2: 3 / 20, -1: -3 / 4, 1: 3 / 4, 2: -3 / 20, 3: 1 / 60}
    h = 2e-2

    def slope(function, direction):
        return sum(weight * function(q + k * h * direction) for k, weight in weights.items()) / h

    zero = np.zeros(n)

    def mass(position):
        return equations(mechanism, position, zero).mass

    unit = np.eye(n)
    gradients = [slope(mass, unit[i]) for i in range(n)]
    potential = [slope(lambda p: energies_by_differences(mechanism, p, zero)[1], unit[i]) for i in range(n)]
    rate = sum(v[i] * gradients[i] for i in range(n))
    expected = rate @ v - np.array([0.5 * v @ g @ v for g in gradients]) + np.array(potential)
    result = equations(mechanism, q, v)
    scale = np.max(np.abs(expected))
    np.testing.assert_allclose(result.bias / scale, expected / scale, rtol=0, atol=1e-10)
    for i in range(n):
        for j in range(i + 1):
            both = energies_by_differences(mechanism, q, unit[i] + unit[j])[0]
            apart = sum(energies_by_differences(mechanism, q, unit[k])[0] for k in (i, j))
            assert result.mass[i, j] == pytest.approx(both - apart, abs=1e-10 * np.max(np.abs(result.mass)))


def test_trees_of_ordinary_joints_agree_with_pinocchio():
    pinocchio = pytest.importorskip("pinocchio", reason="the peer library is a test dependency")
    mechanism = random_tree(
        ["floating", "revolute", "prismatic", "spherical", "revolute"], ["world", "b0", "b1", "b1", "b3"], 7
    )
    flat = mechanism.flat
    model = pinocchio.Model()
    ids = []
    for i, joint in enumerate(mechanism.joints):
        made = {
            "floating": lambda joint=joint: pinocchio.JointModelFreeFlyer(),
            "revolute": lambda joint=joint: pinocchio.JointModelRevoluteUnaligned(joint.axis.copy()),
            "prismatic": lambda joint=joint: pinocchio.JointModelPrismaticUnaligned(joint.axis.copy()),
            "spherical": lambda joint=joint: pinocchio.JointModelSpherical(),
        }[joint.kind]()
        parent = 0 if flat.parent[i] < 0 else ids[flat.parent[i]]
        placement = pinocchio.SE3(joint.placement.axes.copy(), joint.placement.origin.copy())
        ids.append(model.addJoint(parent, made, placement, joint.name))
        inertia = pinocchio.Inertia(float(flat.mass[i]), flat.centre[i].copy(), flat.inertia[i].copy())
        model.appendBodyToJoint(ids[-1], inertia, pinocchio.SE3.Identity())
    model.gravity.linear = mechanism.gravity.copy()
    q, v = random_state(mechanism, 8)
    theirs_q, theirs_v, order = q.copy(), v.copy(), np.arange(v.size)
    for joint in mechanism.joints:
        at = mechanism.positions_of(joint.name)
        if joint.kind in ("floating", "spherical"):  # they write x, y, z, w
            theirs_q[at.stop - 4 : at.stop] = np.roll(q[at.stop - 4 : at.stop], -1)
        if joint.kind == "floating":  # and the linear part first
            here = mechanism.velocities_of(joint.name)
            order[here] = np.roll(np.arange(here.start, here.stop), 3)
    theirs_v = v[order]
    data = model.createData()
    theirs_mass = pinocchio.crba(model, data, theirs_q)
    theirs_mass = np.triu(theirs_mass) + np.triu(theirs_mass, 1).T
    theirs_bias = pinocchio.nonLinearEffects(model, data, theirs_q, theirs_v)
    ours = equations(mechanism, q, v)
    np.testing.assert_allclose(ours.mass[np.ix_(order, order)], theirs_mass, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(ours.bias[order], theirs_bias, rtol=1e-10, atol=1e-10)


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_accelerations_solve_the_full_linear_system(seed):
    mechanism = mixed_mechanism(seed, cables=True)
    q, v = random_state(mechanism, seed)
    random = np.random.default_rng(seed)
    effort = random.normal(size=v.size)
    parts = equations(mechanism, q, v)
    rows = parts.loop.shape[0]
    matrix = np.block([[parts.mass, -parts.loop.T], [parts.loop, np.zeros((rows, rows))]])
    right = np.concatenate((effort + parts.passive - parts.bias, parts.loop_bias))
    solved = np.linalg.solve(matrix, right)
    result = forward_dynamics(mechanism, q, v, effort)
    condition = np.linalg.cond(parts.loop @ np.linalg.solve(parts.mass, parts.loop.T))
    assume(condition < 1e8)  # nearer to a singular place the dense solver itself loses the digits
    scale = condition * 1e-15
    both = np.concatenate((result.acceleration, result.multipliers))
    np.testing.assert_allclose(both, solved, rtol=0, atol=max(1e-9, scale) * np.max(np.abs(solved)))


@pytest.mark.parametrize("seed", SEEDS)
def test_cable_efforts_deliver_force_times_elongation_rate(seed):
    """p . v = -F u' with u the elongation of the rest length that is unwound (000, 3.1.15), whatever the variant."""
    for kind in ("involute_u", "involute_epsilon", "involute_length"):
        mechanism = random_tree([kind], ["world"], seed, cables=True)
        q, v = random_state(mechanism, seed)
        parts, r = equations(mechanism, q, v), 0.3
        rate = {
            "involute_u": v[1],
            "involute_epsilon": r * (v[0] * q[1] + q[0] * v[1]),
            "involute_length": v[1] - r * v[0],
        }[kind]
        assert parts.passive @ v == pytest.approx(-parts.tension[0] * rate, rel=1e-12)


def test_elastic_efforts_miss_the_gradient_of_stored_energy_only_by_the_wound_up_part():
    """-(e) + dU/dq = [1/2 E A strain^2 r, 0] for the strain variant: what winding takes along (CORRECTIONS, 3.1.9)."""
    mechanism = random_tree(["involute_epsilon"], ["world"], 3, cables=True)
    q, v = random_state(mechanism, 3)
    r, cable = 0.3, mechanism.cables[0]

    def energy(position):
        return 0.5 * cable.young * cable.area * position[1] ** 2 * r * position[0]

    gradient = [(energy(q + h) - energy(q - h)) / 2e-6 for h in 1e-6 * np.eye(2)]
    elastic = equations(mechanism, q, 0 * v).passive
    expected = [-0.5 * cable.young * cable.area * q[1] ** 2 * r, 0.0]
    np.testing.assert_allclose(elastic + gradient, expected, rtol=1e-6, atol=1e-7)


def test_slack_cable_carries_nothing_and_a_damper_never_pushes():
    mechanism = random_tree(["involute_epsilon"], ["world"], 3, cables=True)
    slack = equations(mechanism, np.array([3.0, -0.01]), np.array([0.0, 5.0]))
    assert slack.tension[0] == 0.0 and not slack.passive.any()
    relaxing = equations(mechanism, np.array([3.0, 1e-4]), np.array([0.0, -50.0]))
    assert relaxing.tension[0] == 0.0 and not relaxing.passive.any()


def test_massless_bodies_are_fine_where_loops_hold_them_and_named_where_not():
    bodies = (Body("arm", 1.0, np.array([0.5, 0, 0]), 0.1 * np.eye(3)), Body("tip"))
    hinges = (
        Joint("shoulder", "revolute", "world", "arm"),
        Joint("wrist", "revolute", "arm", "tip", Frame(np.array([1.0, 0, 0]))),
    )
    with pytest.raises(TensegrityError, match=r"wrist .*body tip"):
        forward_dynamics(Mechanism(bodies, hinges), np.zeros(2), np.zeros(2))


def test_dependent_loops_warn_and_keep_the_motion():
    from tensegrity_dynamics.mechanisms.loop_joints import Loop

    bodies = (Body("arm", 1.0, np.array([0.5, 0, 0]), 0.1 * np.eye(3)),)
    hinges = (Joint("shoulder", "revolute", "world", "arm"),)
    twice = (Loop("a", "point_z", "world", "arm"), Loop("b", "point_z", "world", "arm"))
    gravity = np.array([0.0, -10.0, 0.0])
    free = forward_dynamics(Mechanism(bodies, hinges, (), (), gravity), np.zeros(1), np.zeros(1))
    with pytest.warns(RuntimeWarning, match="depend on the others"):
        held = forward_dynamics(Mechanism(bodies, hinges, twice, (), gravity), np.zeros(1), np.zeros(1))
    np.testing.assert_allclose(held.acceleration, free.acceleration, rtol=1e-12)
    assert free.acceleration[0] == pytest.approx(-10.0 * 0.5 / 0.35)


def test_topology_lists_tree_and_loops():
    mechanism = random_tree(MIXED_KINDS, MIXED_PARENTS, 1, loops=(("point", "b7", "world"),))
    lines = mechanism.topology().splitlines()
    assert lines[:3] == ["Spanning tree:", "Vertex: world (root)", "  Vertex: b0, Edge: j0"]
    assert lines[-1] == "l0, predecessor: b7, successor: world"
