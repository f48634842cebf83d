"""Joints: every printed matrix against differences of the motion it belongs to (000, sections 1.2.1 and 3.1.3)."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.mechanisms import joints
from tensegrity_dynamics.mechanisms.joint_coordinates import JOINT_COORDINATES, JointCoordinates
from tensegrity_dynamics.mechanisms.joints import (
    POSITION_COUNTS,
    VELOCITY_COUNTS,
    force_subspaces,
    joint_motion,
    position_rate,
)
from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel
from tensegrity_dynamics.numerics.rotations import rotation_vector
from tensegrity_dynamics.robots.load_robot import parse_robot

JOINT_KINDS = sorted(joints.JOINT_KINDS)
AXIS = np.array([2.0, -1.0, 3.0]) / np.sqrt(14.0)
RADIUS = 0.07


def state(kind, seed):
    random = np.random.default_rng(seed)
    q = random.normal(size=POSITION_COUNTS[kind])
    if kind in (joints.SPHERICAL, joints.FLOATING):
        q[-4:] /= np.linalg.norm(q[-4:])
    if kind >= joints.INVOLUTE_RIGID:
        q = np.abs(q) + 0.5
    return q, random.normal(size=VELOCITY_COUNTS[kind])


def motion(kind, q, v):
    rotation, translation, subspace, bias = np.empty((3, 3)), np.empty(3), np.empty((6, 6)), np.empty(6)
    joint_motion(kind, AXIS, RADIUS, q, v, rotation, translation, subspace, bias)
    return rotation, translation, subspace[:, : VELOCITY_COUNTS[kind]], bias


def moved(kind, q, v, time):
    """q after `time` at constant v, to fourth order."""

    def rate(position):
        out = np.zeros_like(position)
        position_rate(kind, position, v, out)
        return out

    a = rate(q)
    b = rate(q + time / 2 * a)
    c = rate(q + time / 2 * b)
    d = rate(q + time * c)
    return q + time / 6 * (a + 2 * b + 2 * c + d)


@pytest.mark.parametrize("name", JOINT_KINDS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_motion_subspace_is_the_derivative_of_the_transform(name, seed):
    kind, h = joints.JOINT_KINDS[name], 1e-5
    q, v = state(kind, seed)
    rotation, _, subspace, _ = motion(kind, q, v)
    ahead, behind = moved(kind, q, v, h), moved(kind, q, v, -h)
    turn = rotation_vector(motion(kind, behind, v)[0].T @ motion(kind, ahead, v)[0]) / (2 * h)
    shift = rotation.T @ (motion(kind, ahead, v)[1] - motion(kind, behind, v)[1]) / (2 * h)
    np.testing.assert_allclose(subspace @ v, np.concatenate((turn, shift)), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", JOINT_KINDS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_bias_is_the_apparent_derivative_of_the_joint_velocity(name, seed):
    kind, h = joints.JOINT_KINDS[name], 1e-5
    q, v = state(kind, seed)
    ahead, behind = motion(kind, moved(kind, q, v, h), v)[2], motion(kind, moved(kind, q, v, -h), v)[2]
    np.testing.assert_allclose(motion(kind, q, v)[3], (ahead - behind) @ v / (2 * h), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", JOINT_KINDS)
def test_force_subspaces_complement_the_motion_subspace(name):
    kind = joints.JOINT_KINDS[name]
    q, v = state(kind, 3)
    subspace = motion(kind, q, v)[2]
    forces = force_subspaces(kind, AXIS, RADIUS, q, v, np.zeros(6))
    np.testing.assert_allclose(subspace.T @ forces.active, np.eye(VELOCITY_COUNTS[kind]), atol=1e-12)
    np.testing.assert_allclose(subspace.T @ forces.constraint, 0.0, atol=1e-12)
    together = np.column_stack((forces.active, forces.constraint))
    assert together.shape == (6, 6)
    assert np.linalg.matrix_rank(together) == 6


@pytest.mark.parametrize("name", JOINT_KINDS)
def test_constraint_subspace_changes_as_stated_in_world_axes(name):
    kind, h = joints.JOINT_KINDS[name], 1e-5
    q, v = state(kind, 4)

    def in_world(time):
        # the predecessor stands still at the world's origin, so that force vectors transform by the joint alone
        rotation, translation, subspace, _ = motion(kind, moved(kind, q, v, time), v)
        velocity = subspace @ v
        forces = force_subspaces(kind, AXIS, RADIUS, moved(kind, q, v, time), v, velocity)

        def lift(columns):
            moment, force = rotation @ columns[:3], rotation @ columns[3:]
            return np.vstack((moment + np.cross(translation, force, axis=0), force))

        return lift(forces.constraint), lift(forces.full)

    difference = (in_world(h)[0] - in_world(-h)[0]) / (2 * h)
    np.testing.assert_allclose(in_world(0.0)[1], difference, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", ["involute_u", "involute_epsilon", "involute_length"])
def test_printed_matrices_of_the_involute_variants_hold(name):
    kind = joints.JOINT_KINDS[name]
    (q1, q2), (v1, v2), r = state(kind, 5)[0], state(kind, 5)[1], RADIUS
    printed = {
        "involute_u": ([[0, 0], [r * q1 + q2, 0], [1, 0]], [v1 * (r * v1 + v2), 0.0]),
        "involute_epsilon": (
            [[0, 0], [r * q1 * (1 + q2), 0], [1, 0]],
            [r * (1 + q2) * v1**2 + r * q1 * v1 * v2, 2 * r * v1 * v2],
        ),
        "involute_length": ([[0, 0], [q2, 0], [1, 0]], [v1 * v2, 0.0]),
    }[name]
    along = {
        "involute_u": [0.0, 1.0], "involute_epsilon": [r * q2, r * q1], "involute_length": [-r, 1.0],
    }[name]  # fmt: skip
    _, _, subspace, bias = motion(kind, np.array([q1, q2]), np.array([v1, v2]))
    np.testing.assert_allclose(subspace[3], along, rtol=1e-14)
    np.testing.assert_allclose(subspace[4], printed[0][1], rtol=1e-14)
    np.testing.assert_allclose(subspace[2], printed[0][2], rtol=1e-14)
    np.testing.assert_allclose(bias[[4, 3]], printed[1], rtol=1e-14)


def test_cable_is_tangent_to_the_pulley_and_as_long_as_unwound():
    kind = joints.INVOLUTE_EPSILON
    q = np.array([2.3, 0.04])
    rotation, end, _, _ = motion(kind, q, np.zeros(2))
    along = rotation[:, 0]
    leaving = end - along * RADIUS * q[0] * (1 + q[1])
    assert np.linalg.norm(leaving) == pytest.approx(RADIUS, rel=1e-14)
    assert leaving @ along == pytest.approx(0.0, abs=1e-15)


@pytest.mark.long
def test_kernels_compile_whatever_is_compiled_first(tmp_path):
    """Without a cache, and beginning with a sweep that moves floating bodies on behalf of others."""
    program = (
        "import sys; sys.path.insert(0, 'test/support')\n"
        "import numpy as np\n"
        "from multibody_examples import random_tree\n"
        "from tensegrity_dynamics.mechanisms.kinematics.loop_closure import close_loops\n"
        "from tensegrity_dynamics.mechanisms.kinematics.loop_reduction import make_reduction_workspace\n"
        "from tensegrity_dynamics.mechanisms.workspace import make_stage_workspace, make_workspace\n"
        "kinds, parents = ['floating', 'spherical', 'universal'], ['world', 'b0', 'b1']\n"
        "tree = random_tree(kinds, parents, 1, loops=[('point', 'b2', 'world')])\n"
        "flat, held = tree.flat, np.zeros(tree.velocity_count, dtype=bool)\n"
        "arrays = (make_workspace(flat), make_reduction_workspace(flat), make_stage_workspace(flat))\n"
        "assert np.isfinite(close_loops(flat, tree.neutral(), held, 1e-13, False, *arrays))\n"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run([sys.executable, "-c", program], cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


def test_every_kind_of_joint_names_all_its_coordinates():
    for kind, coordinates in JOINT_COORDINATES.items():
        count = VELOCITY_COUNTS[joints.JOINT_KINDS[kind]]
        assert len(coordinates.names) in ((count,) if count > 1 else (0, count))
        assert len(coordinates.start) == (0 if kind.startswith("involute") else count)
        assert coordinates.resistances in (0, 1, count)


def test_constants_of_the_kernels_number_the_kinds_of_the_table():
    assert all(number == getattr(joints, kind.upper()) for kind, number in joints.JOINT_KINDS.items())


def test_what_a_joint_resists_is_in_the_units_of_each_coordinate(monkeypatch):
    mixed = JointCoordinates(("angle", "length"), ("turn", "shift"), ("angle", "length"), 2)
    monkeypatch.setitem(JOINT_COORDINATES, "universal", mixed)
    text = """
kind: mechanism
name: screw
bodies: {rod: {mass: 1, inertia: [1, 1, 1]}}
joints: [{name: j, kind: universal, parent: world, body: rod, start: ["180 deg", "20 mm"], resistance: LAW}]
"""
    laws = '[{stiffness: "1 N mm/rad"}, {stiffness: "2 N/mm"}]'
    mechanism = parse_robot(text.replace("LAW", laws), "here").model_as(MechanismModel).mechanism
    assert [law.stiffness for law in mechanism.joints[0].resistance] == pytest.approx([1e-3, 2e3])
    assert mechanism.coordinate_speeds() == ("angular speed", "speed")
    with pytest.raises(TensegrityError, match=r"different kinds \(angle, length\): give a list of 2"):
        parse_robot(text.replace("LAW", "{damping: 1}"), "here")
