"""User-visible data of joint coordinates: names, meaning of `start`, and number of resistances.

The number codes of the kinds, their coordinate counts and their kernels are in `joints`; a new kind needs an entry in
both modules.
"""

from __future__ import annotations

from typing import NamedTuple


class JointCoordinates(NamedTuple):
    """Coordinates of one kind of joint.

    Attributes:
        start: quantity of each number of `start` in a robot file; orientations are rotation vectors. Empty for involute
            joints, which do not occur in robot files.
        parts: suffixes of the names of the velocity coordinates; empty if the name of the joint is sufficient.
        resistances: number of resistance laws (friction, springs and limits).
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
"""Quantity of the rate of a part of a joint, if it is not an angular speed."""
