"""What people see of the coordinates of a joint: their names, what `start` means, and how many resistances it takes.

The numbers of a kind, its counts and its kernels stand in `joints`; a new kind needs a row in each.
"""

from __future__ import annotations

from typing import NamedTuple


class JointCoordinates(NamedTuple):
    """The coordinates of one kind of joint.

    Attributes:
        start: quantity of each number of `start` in a robot file; orientations are rotation vectors. Robot files name
            no involute joints: these have none.
        parts: names of the velocity coordinates, after that of the joint; empty where its own name will do.
        resistances: how many laws of friction, springs and limits it takes.
    """

    start: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    resistances: int = 0


JOINT_COORDINATES = {
    "fixed": JointCoordinates(),
    "revolute": JointCoordinates(("angle",), resistances=1),
    "prismatic": JointCoordinates(("length",), resistances=1),
    "universal": JointCoordinates(("angle", "angle"), ("x", "y"), 2),
    "spherical": JointCoordinates(("angle",) * 3, ("wx", "wy", "wz"), 1),
    "floating": JointCoordinates(("length",) * 3 + ("angle",) * 3, ("wx", "wy", "wz", "vx", "vy", "vz")),
    "involute_rigid": JointCoordinates(parts=("angle",)),
    "involute_u": JointCoordinates(parts=("angle", "elongation")),
    "involute_epsilon": JointCoordinates(parts=("angle", "strain")),
    "involute_length": JointCoordinates(parts=("angle", "length")),
}
SPEEDS = {**dict.fromkeys(("vx", "vy", "vz", "length", "elongation"), "speed"), "strain": "number"}
"""Quantity of the rate of a part of a joint, where that is no angular speed."""
