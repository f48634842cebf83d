"""Motions of the output from files, and the waypoints that stand for them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import CubicSpline

from tensegrity_control.trajectories.pose_trajectory import MAX_WAYPOINTS, pose_waypoints
from tensegrity_control.trajectories.trajectory_file import parse_trajectory
from tensegrity_dynamics.errors import RobotFileError, TensegrityError

POSE = """
kind: pose
units: {length: mm}
columns: [t, x, y, z, qw, qx, qy, qz]
rows:
- [1, 0, 0, 0, 1, 0, 0, 0]
- [2, 10, 0, 5, 1, 0, 0, 0.1]
- [4, 0, 0, 0, 1, 0, 0, 0]
"""


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.floats(-0.05, 0.05), min_size=2, max_size=6),
    st.floats(0.2, 5.0),
    st.sampled_from(["quintic", "minimum jerk", "cubic Hermite"]),
)
def test_a_smooth_curve_through_the_waypoints_is_the_motion_of_the_file(positions, spacing, kind) -> None:
    rows = "\n".join(f"- [{k * spacing}, {p}, {-p}, {p * p}]" for k, p in enumerate(positions))
    motion = parse_trajectory(f"kind: {kind}\ncolumns: [t, x, y, z]\nrows:\n{rows}")
    waypoints = pose_waypoints(motion.names, motion.trajectory, motion.knots)
    times = np.array([when for when, *_ in waypoints])
    assert times[0] == 0.0 and times[-1] == pytest.approx(motion.trajectory.end)
    assert set(motion.knots) <= set(times.tolist()), "the waypoints of the file are among them"
    curve = CubicSpline(times, [position for _, position, _ in waypoints], bc_type=((1, np.zeros(3)),) * 2)
    samples = np.linspace(times[1], times[-2], 200)
    assert np.max(np.abs(curve(samples) - motion.trajectory.value(samples))) < 3e-4
    assert all(quaternion is None for *_, quaternion in waypoints)


def test_a_pose_moves_its_position_and_turns_at_once_in_the_units_of_the_file() -> None:
    motion = parse_trajectory(POSE)
    assert motion.trajectory.value(2.0) == pytest.approx(
        [0.01, 0.0, 0.005, *(np.array([1.0, 0.0, 0.0, 0.1]) / np.hypot(1.0, 0.1))]
    )
    assert motion.trajectory.value(1.5, 1).shape == (6,)
    first, *_, last = pose_waypoints(motion.names, motion.trajectory, motion.knots)
    assert (first[0], last[0]) == (0.0, 3.0)
    assert first[2] == pytest.approx([1.0, 0.0, 0.0, 0.0])


def test_limits_of_a_pose_are_those_of_its_axes_and_of_its_turning() -> None:
    free = parse_trajectory(POSE).trajectory.largest(1)
    held = parse_trajectory(POSE + f"limits: {{velocity: [1 m/s, 1 m/s, 1 m/s, {free[3] / 2.0} rad/s]}}\n")
    assert held.stretched == pytest.approx(2.0)
    assert held.trajectory.largest(1)[3] == pytest.approx(free[3] / 2.0)
    assert held.knots == pytest.approx((1.0, 3.0, 7.0))


def test_what_is_no_motion_of_an_output_is_refused_by_its_columns() -> None:
    with pytest.raises(RobotFileError, match=r"columns: pose has the columns t, x, y, z, qw, qx, qy, qz; found t, x"):
        parse_trajectory("kind: pose\ncolumns: [t, x]\nrows:\n- [0, 0]\n- [1, 1]")
    motion = parse_trajectory("columns: [t, phi]\nrows:\n- [0, 0]\n- [1, 1]")
    with pytest.raises(TensegrityError, match="found phi"):
        pose_waypoints(motion.names, motion.trajectory, motion.knots)


def test_a_motion_that_would_take_too_many_waypoints_is_refused_with_the_cure() -> None:
    rows = "\n".join(f"- [{0.1 * k}, {0.5 * (-1) ** k}, 0, 0]" for k in range(MAX_WAYPOINTS // 2 + 2))
    motion = parse_trajectory(f"kind: minimum jerk\ncolumns: [t, x, y, z]\nrows:\n{rows}")
    with pytest.raises(TensegrityError, match="cut the file into shorter ones"):
        pose_waypoints(motion.names, motion.trajectory, motion.knots)


RATED = """
kind: pose
columns: [t, x, y, z, qw, qx, qy, qz, x_rate, y_rate, z_rate, rx_rate, ry_rate, rz_rate]
rows:
- [0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]
- [1, 0.01, 0, 0, 1, 0, 0.1, 0, 0.02, 0, 0.01, "10 deg/s", 0, 0.3]
- [2, 0, 0, 0.02, 1, 0.1, 0, 0, 0, 0, 0, 0, 0, 0]
"""


def test_a_pose_passes_its_waypoints_with_the_rates_of_the_file() -> None:
    motion = parse_trajectory(RATED).trajectory
    assert motion.value(1.0, 1) == pytest.approx([0.02, 0.0, 0.01, np.radians(10.0), 0.0, 0.3])
    h = 1e-6
    turned = (motion.value(1.0 + h)[3:] - motion.value(1.0 - h)[3:]) / (2.0 * h)
    w, x, y, z = motion.value(1.0)[3:]
    # rate of a quaternion under an angular velocity in world axes: half of (0, omega) times it
    spin = np.array([[-x, -y, -z], [w, z, -y], [-z, w, x], [y, -x, w]])
    assert turned == pytest.approx(0.5 * spin @ motion.value(1.0, 1)[3:], abs=1e-6)


def test_rates_of_a_turn_are_given_for_all_axes_or_for_none() -> None:
    with pytest.raises(RobotFileError, match=r"columns: the column 'rz_rate' is missing"):
        parse_trajectory(RATED.replace(", rz_rate", "").replace(", 0.3]", "]").replace(", 0, 0]", ", 0]"))
    with pytest.raises(RobotFileError, match=r"'qx_rate' has no coordinate 'qx' to belong to"):
        parse_trajectory(RATED.replace("rx_rate", "qx_rate"))


def test_an_orientation_alone_has_waypoints_without_a_position_of_its_own() -> None:
    rows = "- [0, 1, 0, 0, 0, 0, 0, 0]\n- [1, 1, 0.2, 0, 0, 0.1, 0, 0]\n- [3, 1, 0, 0.2, 0, 0, 0, 0]"
    motion = parse_trajectory(f"kind: orientation\ncolumns: [t, w, x, y, z, rx_rate, ry_rate, rz_rate]\nrows:\n{rows}")
    waypoints = pose_waypoints(motion.names, motion.trajectory, motion.knots)
    assert all(not np.any(position) for _, position, _ in waypoints)
    for when, _, quaternion in waypoints:
        assert quaternion == pytest.approx(motion.trajectory.value(when))
    assert motion.trajectory.value(1.0, 1) == pytest.approx([0.1, 0.0, 0.0])
