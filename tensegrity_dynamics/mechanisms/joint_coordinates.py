"""The kinds of joints: what their coordinates are, how they are named, and how many resistances they take.

The order of the rows is that of the numbers in `joints`, which has the kernels. Units of resistances, names and rates
of coordinates, and the values at which the search for modes starts follow from this table.
"""

from __future__ import annotations

from typing import NamedTuple

RATES = {"angle": "angular speed", "length": "speed", "number": "number"}
"""Quantity of the rate of a coordinate, by the coordinate's own."""


class JointCoordinates(NamedTuple):
    """The coordinates of one kind of joint.

    Attributes:
        quantities: of each velocity coordinate, what its rate is a rate of: "angle", "length" or "number".
        names: of the velocity coordinates, after that of the joint; empty where the joint's own name will do.
        start: quantity of each number of `start` in a robot file; orientations are rotation vectors. Robot files name
            no involute joints: these have none.
        resistances: how many laws of friction, springs and limits it takes: none, one for each coordinate, or a single
            one that acts about any axis.
        quaternion: whether its last four position coordinates are one.
    """

    quantities: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    start: tuple[str, ...] = ()
    resistances: int = 0
    quaternion: bool = False


TURNS, SHIFTS = ("angle",) * 3, ("length",) * 3

JOINT_COORDINATES = {
    "fixed": JointCoordinates(),
    "revolute": JointCoordinates(("angle",), start=("angle",), resistances=1),
    "prismatic": JointCoordinates(("length",), start=("length",), resistances=1),
    "universal": JointCoordinates(("angle", "angle"), ("x", "y"), ("angle", "angle"), 2),
    "spherical": JointCoordinates(TURNS, ("wx", "wy", "wz"), TURNS, 1, quaternion=True),
    "floating": JointCoordinates(TURNS + SHIFTS, ("wx", "wy", "wz", "vx", "vy", "vz"), SHIFTS + TURNS, quaternion=True),
    "involute_rigid": JointCoordinates(("angle",), ("angle",)),
    "involute_u": JointCoordinates(("angle", "length"), ("angle", "elongation")),
    "involute_epsilon": JointCoordinates(("angle", "number"), ("angle", "strain")),
    "involute_length": JointCoordinates(("angle", "length"), ("angle", "length")),
}
QUATERNION_KINDS = tuple(kind for kind, coordinates in JOINT_COORDINATES.items() if coordinates.quaternion)
"""Kinds of joints whose orientation is a quaternion."""
