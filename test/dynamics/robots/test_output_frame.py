"""Distances between poses and what was requested of an output."""

from __future__ import annotations

import numpy as np
import pytest

from tensegrity_dynamics.mechanisms.body_frame import BodyFrame

HERE = np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])
TURNED = np.array([np.cos(0.1), 0.0, 0.0, np.sin(0.1)])  # by 0.2 rad about z


def test_a_request_counts_on_all_axes_and_an_open_orientation_on_none():
    plane = BodyFrame("plate", "plate", controlled=("x", "y"))
    assert plane.distance_to_request([0.0, 0.0, 0.05], TURNED, HERE) == pytest.approx((0.05, 0.2))
    assert plane.distance_to_request([0.0, 0.03, 0.0], None, HERE) == pytest.approx((0.03, 0.0))


def test_a_position_is_no_request_for_an_output_that_controls_rotations_alone():
    wrist = BodyFrame("hand", "hand", controlled=("rx", "ry", "rz"))
    assert wrist.distance_to_request([0.1, 0.0, 0.0], TURNED, HERE) == pytest.approx((0.0, 0.2))


def test_a_goal_counts_along_the_controlled_axes_alone():
    plane = BodyFrame("plate", "plate", controlled=("x", "rz"))
    assert plane.distance((np.array([0.01, 0.0, 0.05]), TURNED), HERE) == pytest.approx((0.01, 0.2))
