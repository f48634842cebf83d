"""Rotations as roll, pitch and yaw."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tensegrity_dynamics.numerics.rotations import matrix_from_roll_pitch_yaw, matrix_from_vector, roll_pitch_yaw

angles = st.floats(-3.0, 3.0, allow_nan=False)
tiny = st.floats(-1e-6, 1e-6, allow_nan=False)


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
