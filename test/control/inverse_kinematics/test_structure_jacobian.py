"""The exact sensitivity of shapes to rest lengths, against differences of forward kinematics."""

from __future__ import annotations

import numpy as np
import pytest

from tensegrity_control.inverse_kinematics.pose_goal import make_goal
from tensegrity_control.inverse_kinematics.structure_jacobian import longest_period, sensitivity
from tensegrity_dynamics import TensegrityError, forward_kinematics, load_robot, make_structure
from tensegrity_dynamics.numerics.rotations import matrix_from_vector, quaternion_from_matrix
from tensegrity_dynamics.robots.output_frame import pose_error


def differences(robot, shape, member, rigid_bars, step=2e-6):
    """Nodes, tensions and pose per rest length by central differences."""
    ends = []
    for sign in (1.0, -1.0):
        lengths = np.array(shape.rest_lengths)
        lengths[member] += sign * step
        ends.append(forward_kinematics(robot, lengths, start=shape, rigid_bars=rigid_bars))
    plus, minus = ends
    return (
        (plus.nodes - minus.nodes).ravel() / (2 * step),
        (plus.tensions - minus.tensions) / (2 * step),
        pose_error(plus.pose, minus.pose) / (2 * step),
    )


@pytest.mark.parametrize("rigid_bars", [False, True])
def test_sensitivity_equals_differences_for_every_kind_of_member(rigid_bars: bool) -> None:
    robot = load_robot("tensebot")
    lengths = {"saddle_1": 0.21, "draw_2": 0.22, "draw_5": 0.212}
    shape = forward_kinematics(robot, lengths, rigid_bars=rigid_bars)
    names = ["saddle_1", "draw_4", "spring_2", "bar_5", "top_3"]
    members = np.array([robot.structure.member(name) for name in names])
    exact = sensitivity(shape, members, rigid_bars=rigid_bars)
    for column, member in enumerate(members):
        nodes, tensions, pose = differences(robot, shape, member, rigid_bars)
        np.testing.assert_allclose(exact.nodes[:, column], nodes, atol=1e-6 * np.abs(nodes).max())
        np.testing.assert_allclose(exact.tensions[:, column], tensions, atol=1e-6 * np.abs(tensions).max())
        np.testing.assert_allclose(exact.pose[:, column], pose, atol=1e-6 * np.abs(pose).max())


def test_sensitivity_skips_slack_tendons() -> None:
    structure = make_structure(
        {"left": (0, 0, 0), "right": (2, 0, 0), "above": (1, 0, 1), "middle": (1, 0, 0)},
        [
            ("one", "tendon", "left", "middle", 100.0, 0.8),
            ("two", "tendon", "right", "middle", 100.0, 0.8),
            ("loose", "tendon", "above", "middle", 100.0, 1.2),
        ],
        fixed=["left", "right", "above"],
    )
    shape = forward_kinematics(structure)
    assert shape.slack == ("loose",)
    exact = sensitivity(shape)
    assert not exact.nodes[:, 2].any()
    assert not exact.tensions[2].any()
    # Equal springs in series: shortening one by a length moves the middle by half of it.
    assert exact.nodes[9, 0] == pytest.approx(0.5)
    assert exact.pose is None


def test_an_unstable_shape_has_no_sensitivity() -> None:
    robot = load_robot("four_prism")
    shape = forward_kinematics(robot)
    assert not shape.stable
    with pytest.raises(TensegrityError, match="not stable"):
        sensitivity(shape)


def test_longest_period_is_that_of_a_bead_on_a_string() -> None:
    structure = make_structure(
        {"left": (-1, 0, 0), "right": (1, 0, 0), "bead": (0, 0, 0)},
        [("one", "tendon", "left", "bead", 500.0, 0.9), ("two", "tendon", "right", "bead", 500.0, 0.9)],
        fixed=["left", "right"],
        node_masses={"bead": 0.3},
    )
    tension, length = 500.0 * 0.1, 1.0
    expected = 2 * np.pi * np.sqrt(0.3 * length / (2 * tension))
    assert longest_period(forward_kinematics(structure)) == pytest.approx(expected, rel=1e-9)


def test_rotation_error_falls_as_its_jacobian_says_even_when_it_is_large() -> None:
    robot = load_robot("tensebot")
    shape = forward_kinematics(robot)
    turn = quaternion_from_matrix(matrix_from_vector((0.9, -0.7, 1.1)))
    goal = make_goal(robot.output, None, turn, shape.pose)
    members = robot.actuated_members()
    jacobian = goal.jacobian(shape.pose, sensitivity(shape, members).pose)
    for column, member in enumerate(members[:3]):
        step, errors = 2e-6, []
        for sign in (1.0, -1.0):
            lengths = np.array(shape.rest_lengths)
            lengths[member] += sign * step
            errors.append(goal.error(forward_kinematics(robot, lengths, start=shape).pose))
        np.testing.assert_allclose((errors[1] - errors[0]) / (2 * step), jacobian[:, column], rtol=1e-5, atol=1e-5)
