"""Robots for tests of pictures: the shipped mechanisms, and a small structure.

The structure is a prism of three bars, nine tendons (three of them driven) and one spring.
"""

from __future__ import annotations

import numpy as np

from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel
from tensegrity_dynamics.robots.load_robot import load_robot, shipped_robots
from tensegrity_dynamics.robots.robot import Actuator, Robot
from tensegrity_dynamics.structures.node_frame import NodeFrame
from tensegrity_dynamics.structures.structure import make_structure

MECHANISMS = [name for name in shipped_robots() if isinstance(load_robot(name).model, MechanismModel)]
WITH_CABLES = [name for name in MECHANISMS if load_robot(name).model.entries]
WITHOUT_CABLES = [name for name in MECHANISMS if name not in WITH_CABLES]

BOTTOM, TOP = ("a", "b", "c"), ("d", "e", "f")


def prism_robot() -> Robot:
    angles = 2.0 * np.pi * np.arange(3) / 3.0
    ring = 0.1 * np.column_stack((np.cos(angles), np.sin(angles)))
    turned = 0.1 * np.column_stack((np.cos(angles + 2.6), np.sin(angles + 2.6)))
    nodes = {name: (*position, 0.0) for name, position in zip(BOTTOM, ring, strict=True)}
    nodes |= {name: (*position, 0.2) for name, position in zip(TOP, turned, strict=True)}
    members: list[tuple[str, str, str, str, float, float]] = []
    for k in range(3):
        members.append((f"bar_{k}", "bar", BOTTOM[k], TOP[k], 1e5, 0.27))
        members.append((f"low_{k}", "bar", BOTTOM[k], BOTTOM[(k + 1) % 3], 1e5, 0.17))
        members.append((f"high_{k}", "tendon", TOP[k], TOP[(k + 1) % 3], 1e4, 0.16))
        members.append((f"side_{k}", "tendon", BOTTOM[k], TOP[(k + 1) % 3], 1e4, 0.2))
    members.append(("coil", "spring", "a", "f", 500.0, 0.1))
    structure = make_structure(nodes, members, fixed=BOTTOM, masses={f"bar_{k}": 0.05 for k in range(3)})
    tops = np.array([structure.node(name) for name in TOP])
    points = structure.nodes[tops] - structure.nodes[tops].mean(axis=0)
    return Robot(
        name="prism <3>",  # a name that HTML and URDF must escape
        model=structure,
        actuators=tuple(Actuator(f"spool_{k}", f"side_{k}", (0.1, 0.3), 0.05, 50.0) for k in range(3)),
        outputs=(NodeFrame("flange", tops, points),),
    )


def moved(robot: Robot, seed: int = 1) -> np.ndarray:
    """The start with all coordinates but quaternions a little elsewhere; loops stand open, which no picture minds."""
    mechanism = robot.mechanism
    q = np.array(robot.model.start)
    random = np.random.default_rng(seed)
    for joint in mechanism.joints:
        if joint.kind not in ("floating", "spherical"):
            part = q[mechanism.positions_of(joint.name)]
            part += 0.02 * random.standard_normal(part.size)
    return q
