"""The machines of documents 000 and 002, built in Python as their texts and the deduced facts describe them."""

from __future__ import annotations

import numpy as np

from tensegrity_dynamics.mechanisms.body_frame import BodyFrame
from tensegrity_dynamics.mechanisms.cable_routing import CableEntry
from tensegrity_dynamics.mechanisms.frame import Frame
from tensegrity_dynamics.mechanisms.kinematics.body_kinematics import body_kinematics
from tensegrity_dynamics.mechanisms.kinematics.loop_closure import assemble
from tensegrity_dynamics.mechanisms.kinematics.parallel_kinematics import LoopKinematics
from tensegrity_dynamics.mechanisms.loop_joints import Loop
from tensegrity_dynamics.mechanisms.mechanism import Body, Joint, Mechanism
from tensegrity_dynamics.mechanisms.primitives import Primitive, body_from
from tensegrity_dynamics.mechanisms.workspace import make_workspace

DENSITY = 2700.0
UP = np.array([0.0, 0.0, 1.0])


def _wound(mechanism, entries, q):
    """q with block, pulley and cable of every entry where the bodies' present positions want them."""
    work = make_workspace(mechanism.flat)
    body_kinematics(mechanism.flat, q, np.zeros(mechanism.velocity_count), work)
    for entry in entries:
        carrier, anchor = mechanism.body_index[entry.carrier], mechanism.body_index[entry.anchor_body]
        target = work.position[anchor] + work.rotation[anchor] @ entry.anchor
        if carrier >= 0:
            target = work.rotation[carrier].T @ (target - work.position[carrier])
        block, pulley, involute = entry.start(target)
        for joint, value in (("blockJt", block), ("pulleyJt", pulley), ("involuteJt", involute)):
            q[mechanism.positions_of(f"{entry.name}-{joint}")] = value
    return q


def single_strut(variant="epsilon", *, young=50e6, damping=0.0, gravity=9.81, torque=0.1):
    """000, section 5.1.1; the initial strain balances the pulley torque. Returns mechanism and position."""
    length, radius, height, diameter = 1.0, 0.07, 0.01, 0.04
    side = np.sqrt(2.0) * radius
    strain = torque / (radius * young * np.pi * 0.001**2)
    bodies = [
        Body("cross-shaft"),
        body_from(
            "strut", [Primitive("cylinder", (diameter / 2, length), DENSITY, placement=Frame(0.5 * length * UP))]
        ),
    ]
    made = [
        Joint("x-revoluteJt", "revolute", "world", "cross-shaft", axis=[1, 0, 0]),
        Joint("y-revoluteJt", "revolute", "cross-shaft", "strut", axis=[0, 1, 0]),
    ]
    loops, cables, entries = [], [], []
    for i, azimuth in enumerate(np.radians([0.0, 120.0, 240.0])):
        outward = np.array([np.cos(azimuth), np.sin(azimuth), 0.0])
        entry = CableEntry(
            f"B{i + 1}", "world", (length - side) * outward, UP, np.cross(UP, outward), radius, "strut", length * UP,
            young, 0.001, damping, variant, strain=strain, block=(Primitive("cube", (side,), DENSITY),),
            pulley=(Primitive("cylinder", (radius, height), DENSITY),),
        )  # fmt: skip
        entries.append(entry)
        more, joints, loop, cable = entry.parts()
        bodies, made = bodies + more, made + joints
        loops.append(loop)
        cables.append(cable)
    mechanism = Mechanism(tuple(bodies), tuple(made), tuple(loops), tuple(cables), -gravity * UP)
    return mechanism, assemble(mechanism, _wound(mechanism, entries, mechanism.neutral()))


def manipulator(variant="epsilon", *, young=2e9, damping=1e7, strain=1e-2, gravity=9.81):
    """000, section 5.1.2, as the square-faced prism of height a. Returns mechanism, position and h0."""
    length, radius, half, outer, inner = 1.0, 0.05, 0.01, 0.035, 0.032
    a, side = length / np.sqrt(2.0), np.sqrt(2.0) * radius
    top = a * (1.0 + np.sqrt(2.0 / 3.0))
    feet = [a / np.sqrt(3.0) * np.array([np.cos(z), np.sin(z), 0.0]) for z in np.radians([0.0, 120.0, 240.0])]
    bodies, made = [Body("end-effector")], [Joint("floatingJt", "floating", "world", "end-effector")]
    loops, cables, entries = [], [], []
    for i, azimuth in enumerate(np.radians([0.0, 120.0, 240.0])):
        y, z = np.array([-np.sin(azimuth), np.cos(azimuth), 0.0]), (feet[i] + (a - top) * UP) / a
        link = Primitive("tube", (outer, inner, a), DENSITY, placement=Frame(0.5 * a * UP))
        bodies.append(body_from(f"B{i + 1}-link", [link]))
        frame = Frame(np.zeros(3), np.column_stack((np.cross(y, z), y, z)))
        made.append(Joint(f"B{i + 1}-linkJt", "revolute", "end-effector", f"B{i + 1}-link", frame, [0, 1, 0]))
    for i in range(3):
        name, before = f"B{i + 1}", f"B{(i - 1) % 3 + 1}-strut"
        edge = (feet[(i + 1) % 3] - feet[i]) / a
        along, y = (edge + UP) / np.sqrt(2.0), np.cross(UP, edge)
        axes = np.column_stack((np.cross(y, along), y, along))
        strut = Primitive("tube", (outer, inner, length), DENSITY, placement=Frame(0.5 * length * UP))
        bodies += [Body(f"{name}-dummy"), body_from(f"{name}-strut", [strut])]
        made += [
            Joint(f"{name}-dummyJt", "revolute", "world", f"{name}-dummy", Frame(feet[i], axes), [1, 0, 0]),
            Joint(f"{name}-strutJt", "revolute", f"{name}-dummy", f"{name}-strut", axis=[0, 1, 0]),
        ]
        for where, at, axis in (("top", length - side, -np.cross(edge, UP)), ("bot", side, np.cross(edge, UP))):
            entry = CableEntry(
                f"{name}-{where}", f"{name}-strut", at * UP, UP, axes.T @ axis, radius, before, length * UP, young,
                0.001, damping, variant, strain=strain, block=(Primitive("box", (3 * half, 2 * side, side), DENSITY),),
                pulley=(Primitive("cylinder", (radius, 2 * half), DENSITY),),
            )  # fmt: skip
            entries.append(entry)
            more, joints, loop, cable = entry.parts()
            bodies, made = bodies + more, made + joints
            loops.append(loop)
            cables.append(cable)
    for i in range(3):
        before = f"B{(i - 1) % 3 + 1}-strut"
        loops.append(
            Loop(f"B{i + 1}-level-loopJt", "point", before, f"B{i + 1}-link", Frame(length * UP), Frame(a * UP))
        )
    mechanism = Mechanism(tuple(bodies), tuple(made), tuple(loops), tuple(cables), -gravity * UP)
    q = mechanism.neutral()
    q[:3] = top * UP
    return mechanism, _wound(mechanism, entries, q), top


WIDTH, LEG, TIP_MASS, FOOT_MASS = 0.4, 0.3606, 3.0, 1.0


def biglide():
    """002, chapter 1, at the first point. Returns its kinematics and position."""
    bodies, made = [], []
    for i, side in ((1, -1.0), (2, 1.0)):
        tip = [Primitive("point", mass=TIP_MASS, placement=Frame([LEG, 0, 0]))] if i == 1 else []
        bodies += [body_from(f"foot_{i}", [Primitive("point", mass=FOOT_MASS)]), body_from(f"leg_{i}", tip)]
        made += [
            Joint(f"rail_{i}", "prismatic", "world", f"foot_{i}", Frame([0.5 * side * WIDTH, 0, 0]), [0, 1, 0]),
            Joint(f"pin_{i}", "revolute", f"foot_{i}", f"leg_{i}"),
        ]
    end = Frame([LEG, 0, 0])
    mechanism = Mechanism(tuple(bodies), tuple(made), (Loop("tip", "point_xy", "leg_1", "leg_2", end, end),))
    height = np.sqrt(LEG**2 - 0.25 * WIDTH**2)
    start = np.array([0.0, np.arctan2(height, 0.5 * WIDTH), 0.0, np.arctan2(height, -0.5 * WIDTH)])
    kinematics = LoopKinematics(mechanism, ("rail_1", "rail_2"), BodyFrame("tip", "leg_1", end, ("x", "y")))
    return kinematics, assemble(mechanism, start)
