"""Modes of parallel mechanisms: against closed forms, the sextic of the 3-RRR and a published case of 40 postures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tensegrity_dynamics import load_robot, parse_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.mechanisms.kinematics.mode_search import search_assembly_modes, search_working_modes
from tensegrity_dynamics.mechanisms.kinematics.six_leg_modes import six_leg_modes, six_legs
from tensegrity_dynamics.mechanisms.mode_report import mode_report
from tensegrity_dynamics.mechanisms.robot_kinematics import determined_kinematics, loop_kinematics
from tensegrity_dynamics.numerics.rotations import matrix_from_vector, rotation_vector

GROUND, PLATFORM, NEAR, FAR = 0.30, 0.10, 0.20, 0.20  # of the 3-RRR
AROUND = 2.0 * np.pi / 3.0 * np.arange(3)
FORTY_MODES = Path(__file__).parents[3] / "examples" / "forty_modes.yaml"  # the platform of Dietmaier (1998)


def turned(angle):
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def points(radius):
    return np.array([radius * turned(angle) @ [1.0, 0.0] for angle in AROUND])


@pytest.fixture(scope="module")
def moved():
    """The 3-RRR at a pose without symmetry, with its kinematics."""
    kinematics = loop_kinematics(load_robot("three_rrr"))
    return kinematics, kinematics.inverse([0.02, -0.03, 0.3], load_robot("three_rrr").model.start)


def test_the_3_rrr_has_the_eight_working_modes_of_its_two_circles_a_leg(moved):
    kinematics, q = moved
    x, y, phi = kinematics.output_values(q)
    ends = np.array([x, y]) + points(PLATFORM) @ turned(phi).T
    both = []
    for foot, end, angle in zip(points(GROUND), ends, AROUND, strict=True):
        away = end - foot
        distance = np.linalg.norm(away)
        bend = np.arccos((NEAR**2 + distance**2 - FAR**2) / (2.0 * NEAR * distance))
        both.append([np.arctan2(away[1], away[0]) + sign * bend - angle for sign in (1.0, -1.0)])
    closed_form = np.array([[both[0][i], both[1][j], both[2][k]] for i in (0, 1) for j in (0, 1) for k in (0, 1)])
    found = search_working_modes(kinematics, q)
    assert len(found.modes) == 8
    for mode in found.modes:
        values = kinematics.active_coordinates.values(mode)
        apart = np.abs(np.exp(1j * closed_form) - np.exp(1j * values)).max(axis=1)
        assert apart.min() < 1e-9


def sextic_angles(hinges):
    """Angles of the platform at which three links from fixed elbows close: real roots of the 3-RRR's sextic."""
    elbows = points(GROUND) + np.array([NEAR * turned(a + b) @ [1.0, 0.0] for a, b in zip(AROUND, hinges, strict=True)])
    arms = points(PLATFORM)

    def gap(phi):
        """|p + R c_i - e_i|^2 = l^2 for three i: p from two differences, put into the first one, cleared of its det."""
        c = arms @ turned(phi).T - elbows
        rows = 2.0 * (c[1:] - c[0])
        right = np.sum(c[0] ** 2) - np.sum(c[1:] ** 2, axis=1)
        det = rows[0, 0] * rows[1, 1] - rows[0, 1] * rows[1, 0]
        p = np.array([right[0] * rows[1, 1] - rows[0, 1] * right[1], rows[0, 0] * right[1] - right[0] * rows[1, 0]])
        return np.sum((p + det * c[0]) ** 2) - (FAR * det) ** 2

    # a polynomial in e^(i phi), whose coefficients are a Fourier transform, and its roots
    count = 32
    coefficients = np.fft.fft([gap(2.0 * np.pi * k / count) for k in range(count)]) / count
    degree = max(k for k in range(count // 2) if abs(coefficients[k]) > 1e-12 * np.abs(coefficients).max())
    assert degree == 3  # six roots
    roots = np.roots([coefficients[k] for k in range(degree, -degree - 1, -1)])
    return np.sort(np.angle(roots[np.abs(np.abs(roots) - 1.0) < 1e-7]))


def test_the_assembly_modes_of_the_3_rrr_are_the_real_roots_of_its_sextic(moved):
    kinematics, q = moved
    expected = sextic_angles(kinematics.active_coordinates.values(q))
    found = search_assembly_modes(kinematics, q, starts=150)
    angles = np.sort([kinematics.output_values(mode)[2] for mode in found.modes])
    assert expected.size >= 2
    np.testing.assert_allclose(angles, expected, atol=1e-7)
    assert found.unseen < 0.02


def test_a_published_platform_of_six_legs_has_forty_real_modes():
    robot = load_robot(str(FORTY_MODES))
    ground, platform = six_legs(loop_kinematics(robot))
    lengths = loop_kinematics(robot).active_coordinates.values(robot.model.start)
    modes = six_leg_modes(ground, platform, lengths)
    assert modes.complex_count == 40
    assert len(modes.rotations) == 40
    ends = modes.positions[:, None] + platform @ modes.rotations.transpose(0, 2, 1)
    np.testing.assert_allclose(np.linalg.norm(ends - ground, axis=2), np.tile(lengths, (40, 1)), atol=1e-12)
    apart = np.abs(modes.positions[:, None] - modes.positions).max(axis=2)
    apart += np.abs(modes.rotations[:, None] - modes.rotations).max(axis=(2, 3))
    assert np.min(apart + np.eye(40)) > 1e-4


def test_the_legs_of_a_stewart_platform_are_the_distances_of_their_ends():
    kinematics = loop_kinematics(load_robot("stewart"))
    q = load_robot("stewart").model.start
    pose = np.array([0.03, -0.02, 0.47, 0.1, -0.15, 0.2])
    there = kinematics.inverse(pose, q)
    ground, plate = six_legs(kinematics)
    ends = pose[:3] + plate @ matrix_from_vector(pose[3:]).T
    lengths = np.linalg.norm(ends - ground, axis=1)
    np.testing.assert_allclose(kinematics.active_coordinates.values(there), lengths, atol=1e-11)
    back = kinematics.direct(lengths, q)
    rotation, position = kinematics.output_pose(back)
    np.testing.assert_allclose([*position, *rotation_vector(rotation)], pose, atol=1e-10)


@pytest.mark.long
def test_newtons_method_from_random_starts_finds_no_mode_of_the_stewart_platform_that_the_polynomials_miss():
    kinematics = loop_kinematics(load_robot("stewart"))
    q = load_robot("stewart").model.start
    modes = six_leg_modes(*six_legs(kinematics), kinematics.active_coordinates.values(q))
    found = search_assembly_modes(kinematics, q, starts=1500)
    assert len(found.modes) > 5
    for mode in found.modes:
        rotation, position = kinematics.output_pose(mode)
        apart = np.abs(modes.positions - position).max(axis=1) + np.abs(modes.rotations - rotation).max(axis=(1, 2))
        assert apart.min() < 1e-6


def test_a_report_lists_the_distances_to_singularities_that_the_closed_form_has():
    report = mode_report(load_robot("stewart")).figures
    assert len(report["working_modes"]) == 1
    assert len(report["assembly_modes"]) == report["assembly_search"]["real"] == 16
    assert report["assembly_modes"][0]["type_2"] == pytest.approx(report["singularities"]["type_2"], abs=1e-9)


def test_robots_whose_actuators_do_not_determine_them_have_no_modes():
    assert determined_kinematics(load_robot("single_strut")) is None
    with pytest.raises(TensegrityError, match="no working and assembly modes"):
        mode_report(load_robot("single_strut"))


STRAIGHT_ARM = """
kind: mechanism
name: straight
bodies:
  a: {shapes: [{kind: box, size: [0.3, 0.06, 0.05], mass: 3}]}
  b: {shapes: [{kind: box, size: [0.25, 0.05, 0.05], mass: 2}]}
joints:
  - {name: j1, kind: revolute, parent: world, body: a, axis: [0, 0, 1], start: [0.4]}
  - {name: j2, kind: revolute, parent: a, body: b, axis: [0, 0, 1], frame: {at: [0.3, 0, 0]}, start: [BENT]}
actuators:
  - {drives: j1, position: [-2, 2], rate: 3, effort: 40}
  - {drives: j2, position: [-2.4, 2.4], rate: 4, effort: 20}
outputs: [{name: tool, body: b, frame: {at: [0.25, 0, 0]}, controlled: [x, y]}]
"""


@pytest.mark.parametrize(("bent", "modes", "singular"), [(0.0, 1, (0,)), (0.01, 2, ()), (0.5, 2, ())])
def test_working_modes_that_coincide_at_a_singular_pose_count_once(bent, modes, singular):
    robot = parse_robot(STRAIGHT_ARM.replace("BENT", str(bent)), "arm.yaml")
    found = search_working_modes(determined_kinematics(robot), robot.model.start)
    assert (len(found.modes), found.singular) == (modes, singular)
    assert ("several modes coincide" in str(mode_report(robot).figures) + str(mode_report(robot))) == bool(singular)
