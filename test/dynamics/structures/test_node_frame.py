"""Frames fitted to nodes, beside singular value decompositions and finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from tensegrity_dynamics import NodeFrame
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.numerics.rotations import matrix_from_quaternion


def by_singular_values(frame, nodes):
    """Position and rotation of a frame, by the decomposition of Arun, Huang and Blostein (1987)."""
    points, middle = nodes[frame.nodes], frame.points.mean(axis=0)
    u, _, vt = np.linalg.svd((points - points.mean(axis=0)).T @ (frame.points - middle))
    u[:, 2] *= np.sign(np.linalg.det(u @ vt))
    return points.mean(axis=0) - u @ vt @ middle, u @ vt


def drawn(random, count, planar, moved):
    """A frame of some nodes in any order, and the positions of these and other nodes in any pose."""
    points = random.normal(size=(count, 3)) * (1.0, 1.0, 0.0 if planar else 1.0)
    frame = NodeFrame("hand", random.permutation(count + 2)[:count], points)
    nodes = random.normal(size=(count + 2, 3))
    turn = matrix_from_quaternion(random.normal(size=4))
    nodes[frame.nodes] = points @ turn.T + random.normal(size=3) + moved * random.normal(size=(count, 3))
    return frame, nodes


@pytest.mark.parametrize("planar", [False, True])
@pytest.mark.parametrize("count", [3, 4, 9])
@pytest.mark.parametrize("moved", [0.0, 0.1, 1.0])
def test_a_frame_has_the_least_squares_fit_and_the_twist_of_its_jacobian(count, planar, moved):
    random = np.random.default_rng(count)
    for _ in range(20):
        frame, nodes = drawn(random, count, planar, moved)
        velocities = random.normal(size=nodes.shape)
        (position, quaternion), twist = frame.motion(nodes, velocities)
        expected = by_singular_values(frame, nodes)
        np.testing.assert_allclose(position, expected[0], atol=1e-9)
        np.testing.assert_allclose(matrix_from_quaternion(quaternion), expected[1], atol=1e-9)
        np.testing.assert_allclose(frame.fit(nodes)[1], expected[1], atol=1e-9)
        from_jacobian = frame.jacobian(nodes) @ velocities.ravel()
        np.testing.assert_allclose(twist, from_jacobian, atol=1e-9 * max(1.0, float(np.abs(from_jacobian).max())))


def test_mirrored_nodes_give_a_rotation_and_no_reflection():
    random = np.random.default_rng(4)
    frame, nodes = drawn(random, 5, False, 0.0)
    _, rotation = frame.fit(nodes * (1.0, 1.0, -1.0))
    assert np.linalg.det(rotation) == pytest.approx(1.0)


def test_the_twist_of_a_frame_is_the_difference_of_its_poses():
    random = np.random.default_rng(5)
    frame, nodes = drawn(random, 4, False, 0.1)
    velocities, step = random.normal(size=nodes.shape), 1e-6
    twist = frame.motion(nodes, velocities)[1]
    (ahead, turned), (behind, before) = (frame.fit(nodes + sign * step * velocities) for sign in (1.0, -1.0))
    np.testing.assert_allclose(twist[:3], (ahead - behind) / (2.0 * step), atol=1e-8)
    spin = (turned @ before.T - before @ turned.T) / (4.0 * step)
    np.testing.assert_allclose(twist[3:], (spin[2, 1], spin[0, 2], spin[1, 0]), atol=1e-8)


def test_a_frame_of_one_node_moves_with_it_and_does_not_turn():
    frame = NodeFrame("tip", np.array([1]), np.array([[0.1, 0.0, 0.0]]), ("x", "y", "z"))
    nodes, velocities = np.arange(6.0).reshape(2, 3), np.ones((2, 3))
    (position, quaternion), twist = frame.motion(nodes, velocities)
    np.testing.assert_allclose(position, nodes[1] - (0.1, 0.0, 0.0))
    np.testing.assert_allclose(quaternion, (1.0, 0.0, 0.0, 0.0))
    np.testing.assert_allclose(twist, (1.0, 1.0, 1.0, 0.0, 0.0, 0.0))


def frame_on_line(random, count, moved):
    """A frame on nodes of one line, and the positions of these and another node."""
    points = np.outer(random.normal(size=count), random.normal(size=3)) + random.normal(size=3)
    frame = NodeFrame("strut", np.arange(count), points, ("x", "y", "z", "rx"))
    turn = matrix_from_quaternion(random.normal(size=4))
    nodes = np.vstack((points @ turn.T + random.normal(size=3), random.normal(size=3)))
    return frame, nodes + moved * random.normal(size=nodes.shape)


@pytest.mark.parametrize("moved", [0.0, 0.2])
@pytest.mark.parametrize("count", [2, 4])
def test_a_frame_on_a_line_turns_with_it_by_the_smallest_angle(count, moved):
    random = np.random.default_rng(count)
    for _ in range(20):
        frame, nodes = frame_on_line(random, count, moved)
        position, rotation = frame.fit(nodes)
        before = frame.points - frame.points.mean(axis=0)
        along = np.linalg.svd(before)[2][0]
        now = (nodes[:count] - nodes[:count].mean(axis=0)).T @ before @ along
        now /= np.linalg.norm(now)
        np.testing.assert_allclose(rotation @ along, now, atol=1e-9)
        np.testing.assert_allclose(position + rotation @ frame.points.mean(axis=0), nodes[:count].mean(axis=0))
        angle = np.arccos(np.clip(0.5 * (np.trace(rotation) - 1.0), -1.0, 1.0))
        assert angle == pytest.approx(np.arccos(np.clip(along @ now, -1.0, 1.0)), abs=1e-7)


@pytest.mark.parametrize("moved", [0.0, 0.2])
def test_twist_and_jacobian_of_a_frame_on_a_line_are_the_differences_of_its_poses(moved):
    random, step = np.random.default_rng(6), 1e-6
    for _ in range(10):
        frame, nodes = frame_on_line(random, 2, moved)
        velocities = random.normal(size=nodes.shape)
        twist = frame.motion(nodes, velocities)[1]
        (ahead, turned), (behind, before) = (frame.fit(nodes + sign * step * velocities) for sign in (1.0, -1.0))
        spin = (turned @ before.T - before @ turned.T) / (4.0 * step)
        size = max(1.0, float(np.abs(twist).max()))
        np.testing.assert_allclose(twist[:3], (ahead - behind) / (2.0 * step), atol=1e-7 * size**2)
        np.testing.assert_allclose(twist[3:], (spin[2, 1], spin[0, 2], spin[1, 0]), atol=1e-7 * size**2)
        np.testing.assert_allclose(frame.jacobian(nodes) @ velocities.ravel(), twist, atol=1e-9 * size)


def test_nodes_at_one_point_carry_no_frame():
    with pytest.raises(TensegrityError, match="output hand: name one node, or several that are not all at one point"):
        NodeFrame("hand", np.arange(2), np.ones((2, 3)))
