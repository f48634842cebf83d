"""Where the output rests: what is off is said, once it should be there."""

from __future__ import annotations

import numpy as np
import pytest

from tensegrity_control.controller import Status
from tensegrity_control.resting_error import ORIENTATION_TOLERANCE, POSITION_TOLERANCE, SETTLING, RestingError
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.numerics.rotations import matrix_from_vector, quaternion_from_matrix

HELD = np.array([0.1, 0.2, 0.3]), np.array([1.0, 0.0, 0.0, 0.0])


def status(phase="holding"):
    return Status(phase, 1.0, 2.0, HELD)


def turned(angle):
    return HELD[0], quaternion_from_matrix(matrix_from_vector([0.0, 0.0, angle]))


@pytest.mark.parametrize("phase", ["holding", "stopped"])
def test_an_output_that_rests_elsewhere_is_said_after_it_settled(phase):
    watch, away = RestingError(load_robot("cable_robot")), (HELD[0] + [0.0, -0.0046, 0.0], HELD[1])
    assert watch.look(2.0 + 0.9 * SETTLING, status(phase), HELD, away) == ""
    assert "4.60 mm" in watch.look(2.0 + SETTLING, status(phase), HELD, away)
    assert watch.look(99.0, status("moving"), HELD, away) == "" == watch.look(99.0, status("idle"), HELD, away)
    assert "1.00 deg" in watch.look(99.0, status(phase), HELD, turned(np.radians(1.0)))


def test_what_is_within_tolerance_not_known_or_not_controlled_is_not_said():
    watch = RestingError(load_robot("cable_robot"))
    near = HELD[0] + [0.9 * POSITION_TOLERANCE, 0.0, 0.0], HELD[1]
    for seen in (HELD, near, turned(0.9 * ORIENTATION_TOLERANCE), None, (HELD[0] * np.nan, HELD[1])):
        assert watch.look(99.0, status(), HELD, seen) == ""
    strut = RestingError(load_robot("single_strut"))  # controls x and y
    assert strut.look(99.0, status(), HELD, (HELD[0] + [0.0, 0.0, 0.1], turned(1.0)[1])) == ""
    assert strut.look(99.0, status(), HELD, (HELD[0] + [0.0, 0.1, 0.0], HELD[1])) != ""
