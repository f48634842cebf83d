"""Independent coordinates, reduced equations, inverse dynamics, wrenches and conversions between cable variants."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from multibody_examples import flow, mixed_mechanism, random_state, random_tree
from multibody_machines import manipulator, single_strut

from tensegrity_dynamics import mechanisms as multibody
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.mechanisms.involute_conversion import convert_cable_state
from tensegrity_dynamics.mechanisms.joints import JOINT_KINDS, joint_motion
from tensegrity_dynamics.mechanisms.kinematics.body_kinematics import body_kinematics
from tensegrity_dynamics.mechanisms.workspace import make_workspace

MANY = settings(max_examples=25, deadline=None)


@given(st.integers(0, 10_000))
@MANY
def test_basis_keeps_the_loops_closed_and_offset_gives_their_bias(seed):
    mechanism = mixed_mechanism(seed, cables=True)
    q, v = random_state(mechanism, seed)
    found = multibody.independent_coordinates(mechanism, q, v)
    parts = multibody.equations(mechanism, q, v)
    size = np.max(np.abs(found.basis)) * np.max(np.abs(parts.loop))
    np.testing.assert_allclose(parts.loop @ found.basis, 0.0, atol=1e-12 * size)
    scale = np.max(np.abs(parts.loop_bias)) * max(1.0, size)
    np.testing.assert_allclose(parts.loop @ found.offset, parts.loop_bias, atol=1e-11 * scale)
    np.testing.assert_array_equal(found.basis[found.index], np.eye(found.index.size))


@given(st.integers(0, 10_000))
@MANY
def test_reduced_equations_give_the_accelerations_of_the_full_ones(seed):
    mechanism = mixed_mechanism(seed, cables=True)
    q, v = random_state(mechanism, seed)
    effort = np.random.default_rng(seed).normal(size=v.size)
    reduced = multibody.reduced_equations(mechanism, q, v)
    full = reduced.full
    rows = full.loop.shape[0]
    assume(np.linalg.cond(full.loop @ np.linalg.solve(full.mass, full.loop.T)) < 1e7)
    matrix = np.block([[full.mass, full.loop.T], [full.loop, np.zeros((rows, rows))]])
    right = np.concatenate((effort + full.passive - full.bias, full.loop_bias))
    whole = np.linalg.solve(matrix, right)[: v.size]
    basis, offset = reduced.coordinates.basis, reduced.coordinates.offset
    own = basis @ np.linalg.solve(reduced.mass, basis.T @ effort - reduced.bias) + offset
    np.testing.assert_allclose(own, whole, rtol=0, atol=1e-9 * np.max(np.abs(whole)))


@pytest.mark.parametrize("machine", [single_strut, manipulator])
def test_reduced_equations_of_the_machines_agree_with_their_forward_dynamics(machine):
    mechanism, q = machine()[:2]
    found = multibody.independent_coordinates(mechanism, q)
    v = found.basis @ np.random.default_rng(3).normal(size=found.index.size)
    reduced = multibody.reduced_equations(mechanism, q, v)
    basis, offset = reduced.coordinates.basis, reduced.coordinates.offset
    own = basis @ np.linalg.solve(reduced.mass, -reduced.bias) + offset
    whole = multibody.forward_dynamics(mechanism, q, v).acceleration
    np.testing.assert_allclose(own, whole, rtol=0, atol=1e-9 * np.max(np.abs(whole)))


@given(st.integers(0, 10_000))
@MANY
def test_inverse_dynamics_undoes_forward_dynamics(seed):
    mechanism = mixed_mechanism(seed, cables=True)
    q, v = random_state(mechanism, seed)
    effort = np.random.default_rng(seed).normal(size=v.size)
    parts = multibody.equations(mechanism, q, v)
    assume(np.linalg.cond(parts.loop @ np.linalg.solve(parts.mass, parts.loop.T)) < 1e6)
    moved = multibody.forward_dynamics(mechanism, q, v, effort).acceleration
    back = multibody.inverse_dynamics(mechanism, q, v, moved)
    scale = 1.0 + np.max(np.abs(moved))
    assert back.impossible < 1e-8 * scale and back.missing < 1e-8 * scale
    again = multibody.forward_dynamics(mechanism, q, v, back.effort).acceleration
    np.testing.assert_allclose(again, moved, atol=1e-8 * scale)


def test_driven_joints_that_cannot_give_an_acceleration_are_told_apart():
    mechanism, q = single_strut()
    basis = multibody.independent_coordinates(mechanism, q).basis
    expected = basis @ np.ones(basis.shape[1])
    pulleys = [f"B{i}-pulleyJt" for i in (1, 2, 3)]
    found = multibody.inverse_dynamics(mechanism, q, np.zeros(14), expected, pulleys)
    assert found.missing > 0.1 and found.impossible < 1e-9
    driven = np.flatnonzero(found.effort)
    assert set(driven) <= {mechanism.velocities_of(name).start for name in pulleys}
    with pytest.raises(TensegrityError, match="There is no joint 'B4-pulleyJt'"):
        multibody.inverse_dynamics(mechanism, q, np.zeros(14), expected, ["B4-pulleyJt"])


@given(st.integers(0, 10_000), st.floats(0.05, 3.0))
@MANY
def test_limited_efforts_give_the_nearest_acceleration_in_the_metric_of_the_inertia(seed, share):
    """Optimal if no effort that may still change would bring the acceleration nearer."""
    mechanism = mixed_mechanism(seed, cables=True)
    q, v = random_state(mechanism, seed)
    parts = multibody.equations(mechanism, q, v)
    assume(np.linalg.cond(parts.loop @ np.linalg.solve(parts.mass, parts.loop.T)) < 1e6)
    effort = np.random.default_rng(seed).normal(size=v.size)
    moved = multibody.forward_dynamics(mechanism, q, v, effort).acceleration
    rows = {joint.name: mechanism.velocities_of(joint.name) for joint in mechanism.joints}
    driven = [name for name, row in rows.items() if row.stop - row.start == 1]
    assume(driven)
    free = multibody.inverse_dynamics(mechanism, q, v, moved, driven)
    most = share * max(float(np.max(np.abs(free.effort))), 1e-3)
    found = multibody.inverse_dynamics(mechanism, q, v, moved, driven, limits=most)
    assert np.max(np.abs(found.effort)) <= most
    if share >= 1.0:
        np.testing.assert_allclose(found.effort, free.effort, atol=1e-9)
        return
    reduced = multibody.reduced_equations(mechanism, q, v)
    basis, force = reduced.coordinates.basis, parts.mass @ moved + parts.bias - parts.passive
    slope = basis @ np.linalg.solve(reduced.mass, basis.T @ (found.effort - force))
    scale = 1e-5 * float(np.max(np.abs(basis @ np.linalg.solve(reduced.mass, basis.T @ force))))
    for name in driven:
        row = rows[name].start
        if name in found.limited:
            assert slope[row] * np.sign(found.effort[row]) < scale
        else:
            assert abs(slope[row]) < scale
    with pytest.raises(TensegrityError, match="limits must be one effort above zero"):
        multibody.inverse_dynamics(mechanism, q, v, moved, limits=0.0)


@given(st.integers(0, 10_000))
@MANY
def test_wrench_jacobian_is_the_derivative_of_the_place_of_a_point(seed):
    kinds, parents = ["floating", "universal", "revolute", "prismatic"], ["world", "b0", "b1", "b2"]
    mechanism = random_tree(kinds, parents, seed)
    q, v = random_state(mechanism, seed)
    point = np.random.default_rng(seed).normal(size=3)
    work = make_workspace(mechanism.flat)

    def location(position):
        body_kinematics(mechanism.flat, position, np.zeros(v.size), work)
        return work.position[3] + work.rotation[3] @ point, work.rotation[3].copy()

    h = 1e-5
    (ahead, turned), (behind, before) = location(flow(mechanism, q, v, h)), location(flow(mechanism, q, v, -h))
    twist = multibody.wrench_jacobian(mechanism, q, "b3", point) @ v
    np.testing.assert_allclose((ahead - behind) / (2 * h), twist[3:], atol=1e-7 * (1 + np.max(np.abs(twist))))
    spin = (turned - before) / (2 * h) @ location(q)[1].T
    np.testing.assert_allclose([spin[2, 1], spin[0, 2], spin[1, 0]], twist[:3], atol=1e-7 * (1 + np.max(np.abs(twist))))


def test_force_on_a_body_accelerates_it_as_newton_says():
    mechanism = random_tree(["floating"], ["world"], 5, gravity=np.zeros(3))
    q, _ = random_state(mechanism, 5)
    body = mechanism.bodies[0]
    force = np.array([0.0, 0.0, 0.0, 3.0, -2.0, 1.0])
    jacobian = multibody.wrench_jacobian(mechanism, q, "b0", body.centre)
    moved = multibody.forward_dynamics(mechanism, q, np.zeros(6), jacobian.T @ force).acceleration
    np.testing.assert_allclose((jacobian @ moved)[3:], force[3:] / body.mass, atol=1e-11)
    np.testing.assert_allclose((jacobian @ moved)[:3], 0.0, atol=1e-11)


VARIANTS = ("u", "epsilon", "length")


@given(st.sampled_from(VARIANTS), st.sampled_from(VARIANTS), st.integers(0, 10_000))
@MANY
def test_converted_cable_states_put_the_end_in_the_same_place_at_the_same_speed(source, target, seed):
    random = np.random.default_rng(seed)
    radius, angle, strain = 0.07, random.uniform(1.0, 20.0), random.uniform(0.0, 0.1)
    q, v = convert_cable_state("epsilon", source, radius, [angle, strain], random.normal(size=2))
    other = convert_cable_state(source, target, radius, q, v)
    ends = []
    for kind, position, velocity in ((source, q, v), (target, *other)):
        rotation, point, subspace, bias = np.zeros((3, 3)), np.zeros(3), np.zeros((6, 6)), np.zeros(6)
        joint_motion(
            JOINT_KINDS[f"involute_{kind}"],
            np.array([0.0, 0.0, 1.0]),
            radius,
            position,
            velocity,
            rotation,
            point,
            subspace,
            bias,
        )
        ends.append(np.concatenate((rotation.ravel(), point, subspace[:, :2] @ velocity)))
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-12)
    back = convert_cable_state(target, source, radius, *other)
    np.testing.assert_allclose(np.concatenate(back), np.concatenate((q, v)), atol=1e-12)


def test_stretched_cable_has_no_rigid_state():
    with pytest.raises(TensegrityError, match=r"stretched by 0\.02 m has no state as a rigid one"):
        convert_cable_state("length", "rigid", 0.1, [10.0, 1.02])
    assert np.allclose(convert_cable_state("u", "rigid", 0.1, [10.0, 0.0], [2.0, 0.0]), [[10.0], [2.0]])


def test_winding_angle_must_be_above_zero():
    with pytest.raises(TensegrityError, match="unwound angle must be above zero"):
        convert_cable_state("u", "length", 0.1, [0.0, 0.1])
