"""Type 2 singularities on paths, on the machine of document 002, chapter 4."""

from __future__ import annotations

import numpy as np
import pytest
from multibody_machines import LEG, WIDTH
from scipy.integrate import trapezoid
from scipy.interpolate import BPoly

from tensegrity_control.motion_planning.singularity_crossing import (
    SingularPathError,
    check_path,
    criterion,
    crossing_trajectory,
    crossings,
    distances,
    efforts_along,
    smooth_crossing,
)
from tensegrity_control.trajectories.quintic import QuinticSpline
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.mechanisms.robot_kinematics import loop_kinematics

TANGENT = -np.sqrt(LEG**2 - 0.25 * WIDTH**2) / (0.5 * WIDTH)
"""tan phi_1 at x = 0 with the first foot above the tip and the second below."""


@pytest.fixture(scope="module")
def machine():
    """Kinematics, and a position at (0.1, 0.3) on the working mode (+, -)."""
    robot = load_robot("biglide")
    kinematics = loop_kinematics(robot)
    q = kinematics.inverse([0.1, 0.3], robot.model.start)
    q[:2] = 0.6 - q[0], -q[1]  # the first slider on the other side of the tip: another working mode
    assert q[0] > 0.3 > q[2]
    np.testing.assert_allclose(kinematics.output_values(q), [0.1, 0.3], atol=1e-9)
    return kinematics, q


def straight(first, last, duration=2.0):
    return QuinticSpline([0.0, duration], [first, last], rates=np.zeros((2, 2)), accelerations=np.zeros((2, 2)))


def test_criterion_is_the_one_of_the_document(machine):
    """y'' = x'' tan phi_1 (002, 4.2)."""
    kinematics, start = machine
    q = kinematics.inverse([0.0, 1.0], start)
    rate = np.array([-0.05, 0.4])
    for x in (-2.0, 0.7, 1.5):
        force, scale = criterion(kinematics, q, rate, np.array([x, x * TANGENT]))
        assert abs(force) < 1e-7 * max(scale, 1.0)
        assert abs(criterion(kinematics, q, rate, np.array([x, x * TANGENT + 0.1]))[0]) > 1e-2


def test_distance_changes_its_sign_where_the_legs_line_up(machine):
    kinematics, start = machine
    path = straight((0.1, 0.3), (-0.1, 0.5))
    times, signs = distances(kinematics, path, start)
    assert signs[0] * signs[-1] < 0.0
    position = path.value(times[int(np.argmin(np.abs(signs)))])
    assert abs(position[0]) < 0.01


def test_path_that_crosses_without_the_criterion_is_refused_with_time_and_place(machine):
    kinematics, start = machine
    path = QuinticSpline(
        [0.0, 1.0, 2.0], [(0.1, 0.3), (0.0, 1.0), (-0.1, 1.8)], rates=[(0, 0), (-0.1, 0.75), (0, 0)],
        accelerations=[(0, 0), (0.5, 0.0), (0, 0)],
    )  # fmt: skip
    with pytest.raises(SingularPathError, match=r"crosses a Type 2 singularity at 1 s, at \(.*, 1\)") as caught:
        check_path(kinematics, path, start)
    assert abs(caught.value.time - 1.0) < 1e-6
    np.testing.assert_allclose(caught.value.position, [0.0, 1.0], atol=1e-6)
    assert abs(caught.value.force) > 0.1


def test_planned_crossing_satisfies_the_criterion_and_needs_bounded_forces(machine):
    kinematics, start = machine
    path = crossing_trajectory(kinematics, [(0.1, 0.3), (0.0, 1.0), (-0.1, 1.8)], [0.0, 1.0, 2.0], start)
    check_path(kinematics, path, start)
    (crossing,) = crossings(kinematics, path, start)
    assert abs(crossing.time - 1.0) < 1e-6 and crossing.is_satisfied
    x, y = path.value(1.0, 2)
    assert abs(y - x * TANGENT) < 1e-6 and abs(x) > 0.1  # with 0 the criterion reads 0 = 0
    near = 1.0 + np.array([-1e-2, -1e-3, -1e-4, 1e-4, 1e-3, 1e-2])
    good = efforts_along(kinematics, path, start, near)
    assert np.max(np.abs(good)) < 100.0
    bad_path = QuinticSpline(
        [0.0, 1.0, 2.0], [(0.1, 0.3), (0.0, 1.0), (-0.1, 1.8)], rates=[(0, 0), (-0.1, 0.75), (0, 0)],
        accelerations=[(0, 0), (x + 0.5, y), (0, 0)],
    )  # fmt: skip
    bad = efforts_along(kinematics, bad_path, start, near)
    assert np.max(np.abs(bad)) > 50.0 * np.max(np.abs(good))


def test_forces_of_a_planned_crossing_are_the_same_just_before_and_just_after_it(machine):
    """They hang on the jerk there, so that the path is C3; those of a path without the criterion grow like 1/t."""
    kinematics, start = machine
    points, times = np.array([(0.1, 0.3), (0.0, 1.0), (-0.1, 1.8)]), np.array([0.0, 0.9, 2.0])
    rate, acceleration = np.array([-0.2, 0.5]), np.array([0.4, -1.0])
    path = crossing_trajectory(kinematics, points, times, start, rate, acceleration)
    np.testing.assert_allclose(path.value(0.9, 1), rate, atol=1e-12)
    q = kinematics.inverse(points[1], kinematics.inverse(points[0], start))
    free = np.array([1.0, TANGENT]) / np.hypot(1.0, TANGENT)  # along it the criterion leaves the acceleration open
    np.testing.assert_allclose(path.value(0.9, 2) @ free, acceleration @ free, atol=1e-6)
    assert abs(criterion(kinematics, q, rate, path.value(0.9, 2))[0]) < 1e-6
    before, after = efforts_along(kinematics, path, start, [0.9 - 1e-4, 0.9 + 1e-4])
    np.testing.assert_allclose(before, after, atol=2e-2)
    without = smooth_crossing(times, points, rate, acceleration * [1.0, 0.0])
    far, near = np.abs(efforts_along(kinematics, without, start, [0.9 + 1e-3, 0.9 + 1e-4]))
    np.testing.assert_allclose(near / far, 10.0, rtol=0.05)


def test_smooth_crossing_has_the_least_integral_of_squared_jerk():
    times, points = np.array([0.0, 1.0, 3.0]), np.array([(0.0, 1.0), (1.0, 0.0), (2.0, 3.0)])
    path = smooth_crossing(times, points, [0.5, 1.0], [1.0, -2.0])
    for derivative in range(4):
        step = path.value([1.0 - 1e-9, 1.0 + 1e-9], derivative)
        np.testing.assert_allclose(step[0], step[1], atol=1e-6)
        assert derivative == 0 or np.allclose(path.value([0.0, 3.0], derivative), 0.0, atol=1e-9)
    instants = np.linspace(0.0, 3.0, 20001)
    # a change of the jerk at the middle that keeps all else: the integral is least, so that to first order it stands
    bump = smooth_crossing(times, np.zeros((3, 2)), [0.0, 0.0], [0.0, 0.0])
    assert np.allclose(bump.value(instants), 0.0)
    one = BPoly.from_derivatives(times, [[0.0] * 4, [0.0, 0.0, 0.0, 1.0], [0.0] * 4]).derivative(3)(instants)
    slope = trapezoid(path.value(instants, 3) * one[:, None], instants, axis=0)
    np.testing.assert_allclose(slope, 0.0, atol=1e-4)


@pytest.mark.long
def test_paths_that_stay_on_one_side_are_let_through(machine):
    kinematics, start = machine
    check_path(kinematics, straight((0.1, 0.3), (0.05, 0.5)), start)


def test_middle_of_a_crossing_must_be_on_a_singularity(machine):
    kinematics, start = machine
    with pytest.raises(TensegrityError, match="is on no Type 2 singularity"):
        crossing_trajectory(kinematics, [(0.1, 0.3), (0.05, 1.0), (-0.1, 1.8)], [0.0, 1.0, 2.0], start)
    with pytest.raises(TensegrityError, match=r"positions must be \(3, 2\)"):
        crossing_trajectory(kinematics, [(0.1, 0.3), (0.0, 1.0)], [0.0, 1.0], start)
