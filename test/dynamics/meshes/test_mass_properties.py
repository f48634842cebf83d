"""Mass properties of meshes against closed forms, and the surfaces that have none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from solids import ball, box, joined, tetrahedron

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.meshes.mass_properties import solid_properties
from tensegrity_dynamics.meshes.mesh import Mesh, make_mesh
from tensegrity_dynamics.numerics.rotations import matrix_from_vector

LENGTHS = st.floats(0.01, 10.0)
NUMBERS = st.floats(-3.0, 3.0)


def turned(mesh, vector, shift):
    return make_mesh(mesh.vertices @ matrix_from_vector(np.array(vector)).T + shift, mesh.triangles)


def inside_out(mesh):
    return Mesh(mesh.vertices, mesh.triangles[:, ::-1])


@settings(max_examples=10, deadline=None)
@given(st.tuples(LENGTHS, LENGTHS, LENGTHS), st.tuples(NUMBERS, NUMBERS, NUMBERS), st.tuples(NUMBERS, NUMBERS, NUMBERS))
def test_a_box_in_any_pose_has_the_inertia_of_the_formula(sides, vector, shift):
    x, y, z = np.array(sides) ** 2
    axes = matrix_from_vector(np.array(vector))
    found = solid_properties(turned(box(sides), vector, shift))
    assert found.volume == pytest.approx(np.prod(sides), rel=1e-9)
    np.testing.assert_allclose(found.centre, shift, atol=1e-11 * (1.0 + np.linalg.norm(sides)))
    formula = axes @ np.diag([y + z, x + z, x + y]) @ axes.T / 12.0
    np.testing.assert_allclose(found.inertia, formula, atol=1e-9 * formula.max())


def test_a_tetrahedron_has_the_moments_of_its_corners():
    corners = np.array([[0.1, 0.2, -0.3], [1.3, 0.1, 0.0], [0.2, 0.9, 0.1], [0.3, 0.4, 1.7]])
    found = solid_properties(tetrahedron(corners))
    assert found.volume == pytest.approx(np.linalg.det(corners[1:] - corners[0]) / 6.0)
    np.testing.assert_allclose(found.centre, corners.mean(axis=0), atol=1e-14)
    # about its centre a tetrahedron moves as four points at its corners of 1/20 of its mass each
    arms = corners - corners.mean(axis=0)
    second = arms.T @ arms / 20.0
    np.testing.assert_allclose(found.inertia, np.trace(second) * np.eye(3) - second, atol=1e-14)


def test_a_ball_of_triangles_comes_nearer_to_the_ball_in_quarters():
    errors = []
    for rings in (8, 16, 32):
        found = solid_properties(ball(0.3, rings))
        volume = 4.0 / 3.0 * np.pi * 0.3**3
        errors.append([1.0 - found.volume / volume, *(1.0 - np.diag(found.inertia) / (0.4 * 0.3**2))])
        np.testing.assert_allclose(found.centre, 0.0, atol=1e-15)
    errors = np.array(errors)
    assert (errors > 0.0).all()  # it stands in the ball
    np.testing.assert_allclose(errors[:-1] / errors[1:], 4.0, rtol=0.05)
    assert errors[-1].max() < 8e-3


def test_a_cavity_is_taken_away_and_a_ball_in_it_added():
    hollow = joined(box(), inside_out(box((0.6, 0.6, 0.6))), box((0.2, 0.2, 0.2)))
    found = solid_properties(hollow)
    assert found.volume == pytest.approx(1.0 - 0.6**3 + 0.2**3)
    moment = (1.0 - 0.6**5 + 0.2**5) / 6.0 / found.volume
    np.testing.assert_allclose(found.inertia, moment * np.eye(3), atol=1e-14)


def test_parts_beside_each_other_add_up():
    found = solid_properties(joined(box(), box(centre=(3.0, 0.0, 0.0))))
    assert found.volume == pytest.approx(2.0)
    np.testing.assert_allclose(np.diag(found.inertia), [1 / 6, 1 / 6 + 2.25, 1 / 6 + 2.25])


def test_corners_that_rounding_set_apart_are_one():
    whole = box()
    corners = whole.vertices[whole.triangles].reshape(-1, 3)
    corners = corners + 1e-8 * np.random.default_rng(0).normal(size=corners.shape)
    apart = make_mesh(corners, np.arange(len(corners)))
    assert len(apart.vertices) > 30
    assert solid_properties(apart).volume == pytest.approx(1.0, abs=1e-6)


REFUSED = {
    "not closed: 3 of": lambda: Mesh(box().vertices, box().triangles[1:]),
    "not all oriented alike": lambda: Mesh(box().vertices, np.vstack((box().triangles[1:], box().triangles[:1, ::-1]))),
    "is inside out: its triangles": lambda: inside_out(box()),
    "a part of it is inside out": lambda: joined(box(), inside_out(box((0.5, 0.5, 0.5), (3.0, 0.0, 0.0)))),
    "stand in each other": lambda: joined(box(), box((0.5, 0.5, 0.5))),
    "encloses no volume": lambda: make_mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [(0, 1, 2), (0, 2, 1)]),
}


@pytest.mark.parametrize("message", REFUSED)
def test_a_surface_that_encloses_no_solid_is_refused_by_its_fault(message):
    with pytest.raises(TensegrityError, match=message):
        solid_properties(REFUSED[message]())
