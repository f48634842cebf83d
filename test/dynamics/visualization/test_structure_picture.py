"""Geometry and colours that all pictures share."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from view_robots import prism_robot

from tensegrity_dynamics.numerics.rotations import matrix_from_quaternion
from tensegrity_dynamics.structures.structure import make_structure
from tensegrity_dynamics.visualization import structure_picture as visual

coordinates = st.floats(-3.0, 3.0, allow_nan=False)
points = st.tuples(coordinates, coordinates, coordinates)


@given(points, points)
def test_cylinder_runs_from_node_to_node(first, second):
    nodes = np.array([first, second])
    (centre,), (quaternion,), (length,) = visual.place_cylinders(nodes, np.array([[0, 1]]))
    half = 0.5 * length * matrix_from_quaternion(quaternion)[:, 2]
    np.testing.assert_allclose([centre - half, centre + half], nodes, atol=1e-6)


def test_cylinder_can_point_straight_down_and_have_no_length():
    nodes = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    _, quaternions, lengths = visual.place_cylinders(nodes, np.array([[0, 1], [1, 1]]))
    np.testing.assert_allclose(matrix_from_quaternion(quaternions[0])[:, 2], [0.0, 0.0, -1.0], atol=1e-12)
    assert lengths.tolist() == [1.0, 0.0]
    assert np.all(np.isfinite(quaternions))


def test_more_tension_is_lighter():
    colours = visual.tension_colours(np.linspace(0.0, 10.0, 60), 10.0) / 255.0
    lightness = colours**2.2 @ [0.2126, 0.7152, 0.0722]
    assert np.all(np.diff(lightness) > 0.0)


def test_colours_agree_with_the_published_map():
    matplotlib = pytest.importorskip("matplotlib")
    published = matplotlib.colormaps["plasma"](0.8 * np.linspace(0.0, 1.0, 41))[:, :3] * 255.0
    ours = visual.tension_colours(np.linspace(0.0, 5.0, 41), 5.0)
    assert np.abs(published - ours).max() < 8.0


def test_unknown_tension_has_its_own_colour():
    colours = visual.tension_colours([np.nan, 1.0], 2.0)
    assert tuple(colours[0]) == visual.UNKNOWN_COLOUR
    assert tuple(colours[1]) != visual.UNKNOWN_COLOUR


@given(st.floats(1e-6, 1e9))
def test_round_ceiling_holds_the_value_and_wastes_at_most_half(value):
    ceiling = visual.round_ceiling(value)
    assert value <= ceiling * (1.0 + 1e-8)
    assert ceiling <= 1.5 * value * (1.0 + 1e-8)


def test_only_tendons_and_springs_without_tension_are_slack():
    structure = prism_robot().structure
    tensions = np.full(len(structure.member_names), -5.0)
    tensions[structure.unilateral] = 3.0
    tensions[structure.member("side_1")] = 0.0
    tensions[structure.member("coil")] = np.nan
    slack = visual.slack_members(structure, tensions, 10.0)
    assert [structure.member_names[row] for row in np.flatnonzero(slack)] == ["side_1"]


def test_dashes_cover_half_of_the_member_and_both_its_ends():
    nodes = np.array([[0.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    lines = visual.dashes(nodes, np.array([[0, 1]]), count=5)
    np.testing.assert_allclose(lines[0, 0], nodes[0])
    np.testing.assert_allclose(lines[-1, 1], nodes[1], atol=1e-12)
    assert np.linalg.norm(lines[:, 1] - lines[:, 0], axis=1).sum() == pytest.approx(2.0 * 5 / 9)


def test_three_bars_in_a_ring_are_a_plate():
    structure = prism_robot().structure
    triangles = visual.bar_triangles(structure)
    assert [sorted(structure.node_names[k] for k in row) for row in triangles] == [["a", "b", "c"]]


def test_sizes_follow_the_size_of_the_robot():
    def stick(length: float) -> visual.Sizes:
        nodes = {"a": (0.0, 0.0, 0.0), "b": (0.0, 0.0, length)}
        return visual.Sizes.of(make_structure(nodes, [("bar", "bar", "a", "b", 1.0, length)]))

    assert stick(3.0).bar == pytest.approx(10.0 * stick(0.3).bar)
    assert stick(3.0).tendon < stick(3.0).bar < stick(3.0).node < stick(3.0).span
