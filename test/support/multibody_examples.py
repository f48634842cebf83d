"""Small and large mechanisms for the tests, random but reproducible."""

from __future__ import annotations

import numpy as np

from tensegrity_dynamics.mechanisms import joints
from tensegrity_dynamics.mechanisms.frame import Frame
from tensegrity_dynamics.mechanisms.joints import position_rate
from tensegrity_dynamics.mechanisms.loop_joints import Loop
from tensegrity_dynamics.mechanisms.mechanism import Body, Cable, Joint, Mechanism
from tensegrity_dynamics.numerics.rotations import matrix_from_vector

GRAVITY = np.array([0.3, -0.2, -9.81])


def random_body(name, random, mass=None):
    root = random.normal(size=(3, 3))
    inertia = 0.1 * root @ root.T + 0.05 * np.eye(3)
    return Body(name, random.uniform(0.5, 2.0) if mass is None else mass, 0.2 * random.normal(size=3), inertia)


def random_frame(random):
    return Frame(0.5 * random.normal(size=3), matrix_from_vector(random.normal(size=3)))


def random_tree(kinds, parents, seed, *, loops=(), cables=False, gravity=GRAVITY):
    """A mechanism with joints of the given kinds; loops are (kind, before, after) with random frames."""
    random = np.random.default_rng(seed)
    bodies = [random_body(f"b{i}", random) for i in range(len(kinds))]
    made = [
        Joint(f"j{i}", kind, parents[i], f"b{i}", random_frame(random), random.normal(size=3), 0.3)
        for i, kind in enumerate(kinds)
    ]
    closed = tuple(
        Loop(f"l{i}", kind, before, after, random_frame(random), random_frame(random))
        for i, (kind, before, after) in enumerate(loops)
    )
    pulled = tuple(
        Cable(f"c{i}", f"j{i}", 1e-4, 1e6, 1e3)
        for i, kind in enumerate(kinds)
        if cables and kind.startswith("involute") and kind != "involute_rigid"
    )
    return Mechanism(tuple(bodies), tuple(made), closed, pulled, gravity)


def random_state(mechanism, seed):
    """A position with valid quaternions and stretched cables, and a velocity."""
    random = np.random.default_rng(seed)
    q = mechanism.neutral() + 0.3 * random.normal(size=mechanism.position_count)
    for joint in mechanism.joints:
        at = mechanism.positions_of(joint.name)
        if joint.kind in ("spherical", "floating"):
            q[at.stop - 4 : at.stop] /= np.linalg.norm(q[at.stop - 4 : at.stop])
        elif joint.kind.startswith("involute"):
            q[at.start] = random.uniform(2.0, 5.0)
            strain = random.uniform(0.01, 0.2)
            rest = joint.radius * q[at.start]
            second = {"involute_u": strain * rest, "involute_epsilon": strain, "involute_length": rest * (1 + strain)}
            if joint.kind in second:
                q[at.start + 1] = second[joint.kind]
    return q, random.normal(size=mechanism.velocity_count)


def flow(mechanism, q, v, time, steps=4):
    """Position after moving for `time` with constant velocity coordinates v, by Runge-Kutta."""

    def rate(position):
        out = np.zeros_like(position)
        for joint in mechanism.joints:
            at = mechanism.positions_of(joint.name)
            kind = joints.JOINT_KINDS[joint.kind]
            position_rate(kind, position[at], v[mechanism.velocities_of(joint.name)], out[at])
        return out

    h = time / steps
    for _ in range(steps):
        a = rate(q)
        b = rate(q + h / 2 * a)
        c = rate(q + h / 2 * b)
        d = rate(q + h * c)
        q = q + h / 6 * (a + 2 * b + 2 * c + d)
    return q


MIXED_KINDS = [
    "floating", "revolute", "prismatic", "universal", "spherical", "fixed", "involute_u", "involute_epsilon",
    "involute_length", "involute_rigid", "revolute",
]  # fmt: skip
MIXED_PARENTS = ["world", "b0", "b1", "b1", "b3", "b4", "b5", "b2", "b3", "b0", "b9"]
MIXED_LOOPS = (
    ("revolute", "b6", "b10"),
    ("point", "b7", "world"),
    ("prismatic", "b5", "b8"),
    ("universal", "b4", "world"),
)


def mixed_mechanism(seed=1, **options):
    """Every kind of joint on one tree, with four loops."""
    return random_tree(MIXED_KINDS, MIXED_PARENTS, seed, loops=MIXED_LOOPS, **options)
