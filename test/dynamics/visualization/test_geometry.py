"""Geometry that all pictures share: cylinders, dashes, box edges, patches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensegrity_dynamics.numerics.rotations import matrix_from_quaternion, matrix_from_vector
from tensegrity_dynamics.visualization.geometry import box_edges, cylinders_between, dashes, patch

coordinates = st.floats(-3.0, 3.0, allow_nan=False)
points = st.tuples(coordinates, coordinates, coordinates)


@given(points, points)
def test_cylinder_runs_from_point_to_point(first, second):
    (centre,), (quaternion,), (length,) = cylinders_between(np.array([first]), np.array([second]))
    half = 0.5 * length * matrix_from_quaternion(quaternion)[:, 2]
    np.testing.assert_allclose([centre - half, centre + half], [first, second], atol=1e-6)


def test_cylinder_can_point_straight_down_and_have_no_length():
    high, low = [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]
    _, quaternions, lengths = cylinders_between(np.array([high, low]), np.array([low, low]))
    np.testing.assert_allclose(matrix_from_quaternion(quaternions[0])[:, 2], [0.0, 0.0, -1.0], atol=1e-12)
    assert lengths.tolist() == [1.0, 0.0]
    assert np.all(np.isfinite(quaternions))


def test_dashes_cover_half_of_the_line_and_both_its_ends():
    line = np.array([[0.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    lines = dashes(line[None], count=5)
    np.testing.assert_allclose(lines[0, 0], line[0])
    np.testing.assert_allclose(lines[-1, 1], line[1], atol=1e-12)
    assert np.linalg.norm(lines[:, 1] - lines[:, 0], axis=1).sum() == pytest.approx(2.0 * 5 / 9)


@given(points, points)
def test_box_has_four_edges_of_each_side(position, vector):
    size = np.array([0.1, 0.2, 0.3])
    edges = box_edges(np.array(position), matrix_from_vector(vector), size)
    lengths = np.sort(np.linalg.norm(edges[:, 1] - edges[:, 0], axis=1))
    np.testing.assert_allclose(lengths, np.repeat(size, 4), atol=1e-9)
    np.testing.assert_allclose(edges.mean(axis=(0, 1)), position, atol=1e-9)


@given(st.permutations(range(5)), points)
def test_patch_covers_a_convex_polygon_whatever_the_order_of_its_corners(order, vector):
    angles = 2.0 * np.pi * np.arange(5) / 5.0
    corners = np.column_stack((np.cos(angles), np.sin(angles), np.zeros(5))) @ matrix_from_vector(vector).T
    vertices, triangles = patch(corners[list(order)])
    a, b, c = (vertices[triangles[:, k]] for k in range(3))
    area = 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1).sum()
    assert area == pytest.approx(2.5 * np.sin(2.0 * np.pi / 5.0))
