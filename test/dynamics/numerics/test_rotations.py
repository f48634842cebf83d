"""Rotations: roll, pitch and yaw, and every conversion and kernel against transforms3d."""

from __future__ import annotations

import numpy as np
import transforms3d.axangles
import transforms3d.quaternions
from hypothesis import given
from hypothesis import strategies as st

from tensegrity_dynamics.mechanisms import joints
from tensegrity_dynamics.numerics.rotations import (
    cross_matrix,
    matrix_from_quaternion,
    matrix_from_roll_pitch_yaw,
    matrix_from_vector,
    quaternion_from_matrix,
    quaternions_from_matrices,
    roll_pitch_yaw,
    rotation_vector,
    turned_by,
    vectors_between,
)

angles = st.floats(-3.0, 3.0, allow_nan=False)
tiny = st.floats(-1e-6, 1e-6, allow_nan=False)


@given(st.integers(0, 1000), st.sampled_from([0.0, 1e-14, 1e-5, 1.0, 3.1]), st.sampled_from([1.0, -2.0]))
def test_vectors_between_quaternions_are_those_of_the_turns(seed, angle, norm):
    random = np.random.default_rng(seed)
    axes = random.normal(size=(3, 3))
    vectors = angle * axes / np.linalg.norm(axes, axis=1)[:, None]
    centre = quaternion_from_matrix(matrix_from_vector(random.normal(size=3)))
    turned = turned_by(centre, vectors)
    for quaternion, vector in zip(turned, vectors, strict=True):
        expected = matrix_from_quaternion(centre) @ matrix_from_vector(vector)
        np.testing.assert_allclose(matrix_from_quaternion(quaternion), expected, atol=1e-14)
    np.testing.assert_allclose(vectors_between(centre, norm * turned), vectors, atol=1e-14)


@given(angles, angles, angles)
def test_roll_pitch_yaw_gives_the_rotation_back(x, y, z):
    axes = matrix_from_vector(np.array([x, y, z]))
    roll, pitch, yaw = angles_ = roll_pitch_yaw(axes)
    again = (
        matrix_from_vector(np.array([0.0, 0.0, yaw]))
        @ matrix_from_vector(np.array([0.0, pitch, 0.0]))
        @ matrix_from_vector(np.array([roll, 0.0, 0.0]))
    )
    np.testing.assert_allclose(again, axes, atol=1e-7)
    np.testing.assert_allclose(matrix_from_roll_pitch_yaw(angles_), again, atol=1e-12)


@given(angles, tiny, angles)
def test_roll_pitch_yaw_gives_the_rotation_back_close_to_straight_up(roll, offset, yaw):
    axes = matrix_from_roll_pitch_yaw([roll, 0.5 * np.pi + offset, yaw])
    np.testing.assert_allclose(matrix_from_roll_pitch_yaw(roll_pitch_yaw(axes)), axes, atol=1e-7)


def test_roll_pitch_yaw_of_a_quarter_turn_about_y():
    axes = matrix_from_vector(np.array([0.0, 0.5 * np.pi, 0.0]))
    np.testing.assert_allclose(roll_pitch_yaw(axes), [0.0, 0.5 * np.pi, 0.0], atol=1e-12)


# -- the conversions and the compiled kernels against transforms3d ---------------------------------------------------

components = st.floats(-1.0, 1.0, allow_nan=False)
quaternions = (
    st.tuples(components, components, components, components)
    .filter(lambda q: np.linalg.norm(q) > 1e-3)
    .map(lambda q: np.array(q) / np.linalg.norm(q))
)
vectors = st.tuples(components, components, components).map(np.array)
turns = vectors.filter(lambda v: np.linalg.norm(v) > 1e-6).map(lambda v: 0.99 * np.pi * v / np.sqrt(3.0))


def same_rotation(first, second):
    np.testing.assert_allclose(first * np.sign(first @ second), second, atol=1e-12)


@given(quaternions)
def test_matrices_and_quaternions_are_those_of_transforms3d(q):
    np.testing.assert_allclose(matrix_from_quaternion(q), transforms3d.quaternions.quat2mat(q), atol=1e-14)
    same_rotation(quaternion_from_matrix(transforms3d.quaternions.quat2mat(q)), q)
    assert quaternion_from_matrix(matrix_from_quaternion(q))[0] >= 0.0


@given(st.lists(quaternions, max_size=5))
def test_many_quaternions_at_once_are_those_one_by_one(qs):
    matrices = np.array([matrix_from_quaternion(q) for q in qs]).reshape(-1, 3, 3)
    one_by_one = np.array([quaternion_from_matrix(each) for each in matrices]).reshape(-1, 4)
    np.testing.assert_allclose(quaternions_from_matrices(matrices), one_by_one, atol=1e-15)


@given(turns)
def test_rotation_vectors_are_axis_and_angle_of_transforms3d(turn):
    angle = float(np.linalg.norm(turn))
    matrix = transforms3d.axangles.axangle2mat(turn / angle, angle, is_normalized=True)
    np.testing.assert_allclose(matrix_from_vector(turn), matrix, atol=1e-14)
    np.testing.assert_allclose(rotation_vector(matrix), turn, atol=1e-9)


@given(vectors, vectors)
def test_the_cross_matrix_is_the_cross_product(a, b):
    np.testing.assert_allclose(cross_matrix(a) @ b, np.cross(a, b), atol=1e-15)


@given(turns, angles)
def test_the_compiled_rotation_of_a_joint_is_that_of_transforms3d(turn, angle):
    out, axis = np.zeros((3, 3)), turn / np.linalg.norm(turn)
    joints.rotation_about(axis, angle, out)
    np.testing.assert_allclose(out, transforms3d.axangles.axangle2mat(axis, angle, is_normalized=True), atol=1e-14)


@given(quaternions)
def test_the_compiled_rotation_of_a_quaternion_is_that_of_transforms3d(q):
    out = np.zeros((3, 3))
    joints.rotation_of(*q, out)
    np.testing.assert_allclose(out, transforms3d.quaternions.quat2mat(q), atol=1e-14)


@given(quaternions, vectors)
def test_the_rate_of_a_quaternion_is_half_its_product_with_the_angular_velocity(q, velocity):
    rate = np.zeros(4)
    joints.quaternion_rate(q, velocity, rate)
    expected = 0.5 * transforms3d.quaternions.qmult(q, np.concatenate(([0.0], velocity)))
    np.testing.assert_allclose(rate, expected, atol=1e-15)
