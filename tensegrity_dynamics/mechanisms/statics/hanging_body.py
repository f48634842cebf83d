"""Poses of a body that hangs on cables alone, in closed form: block, pulley and involute angles for every cable.

A cable runs from a pulley of the world to the body, so each one follows from the pose by itself (`CableEntry.start`):
the block turns towards the anchor, the taut length is sqrt(d^2 - r^2) with d the distance between pulley and anchor,
and what the pulley gives off is that length without its stretch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import TensegrityError
from ...numerics.rotations import matrix_from_quaternion, quaternion_from_matrix
from ..body_frame import BodyFrame
from ..mechanism import WORLD
from ..mechanism_model import MechanismModel


def hangs_on_cables(model: MechanismModel, output: BodyFrame) -> bool:
    """Whether the output's body is held by nothing but cables from pulleys of the world, and all cables hold it."""
    mechanism = model.mechanism
    carried = {joint.body: joint for joint in mechanism.joints}
    joint = carried.get(output.body)
    return bool(
        model.entries
        and joint is not None
        and (joint.kind, joint.parent) == ("floating", WORLD)
        and len(mechanism.loops) == len(model.entries)
        and all((entry.carrier, entry.anchor_body) == (WORLD, output.body) for entry in model.entries)
    )


def hanging_position(
    model: MechanismModel,
    output: BodyFrame,
    position: ArrayLike,
    quaternion: ArrayLike,
    strains: Sequence[float] | NDArray | None = None,
) -> NDArray[np.float64]:
    """q (nq,) with the output at a pose and the cables stretched by given strains, loops closed.

    Args:
        position: (3,) m. quaternion: (4,) w, x, y, z. strains: of the cables in the order of the entries; those of the
            file without.

    Raises:
        TensegrityError: the body is not held by cables alone (`hangs_on_cables`), or a cable cannot reach.
    """
    if not hangs_on_cables(model, output):
        raise TensegrityError(f"{output.body} does not hang on cables of the world alone; take inverse kinematics.")
    mechanism, home = model.mechanism, model.start
    q = np.array(home)
    floating = next(joint for joint in mechanism.joints if joint.body == output.body)

    def body_pose(at: NDArray) -> tuple[NDArray, NDArray]:
        centre, axes = floating.placement.origin, floating.placement.axes
        return axes @ matrix_from_quaternion(at[3:]), centre + axes @ at[:3]

    turned = matrix_from_quaternion(quaternion) @ output.frame.axes.T
    origin = np.asarray(position, dtype=np.float64) - turned @ output.frame.origin
    axes = floating.placement.axes
    at = mechanism.positions_of(floating.name)
    q[at] = np.concatenate((axes.T @ (origin - floating.placement.origin), quaternion_from_matrix(axes.T @ turned)))
    home_turned, home_origin = body_pose(home[at])
    for k, entry in enumerate(model.entries):
        own = replace(entry, strain=entry.strain if strains is None else float(strains[k]))
        block, pulley, winding = own.start(origin + turned @ entry.anchor)
        _, before_pulley, before_winding = entry.start(home_origin + home_turned @ entry.anchor)
        names = [mechanism.positions_of(name) for name in entry.joints]
        # the cable's direction in the block's plane; whole turns stay those of the start
        leaving, before_leaving = pulley + winding[0], before_pulley + before_winding[0]
        change = (leaving - before_leaving + np.pi) % (2.0 * np.pi) - np.pi
        q[names[0]] = block
        q[names[1]] = home[names[1]] + change - (winding[0] - before_winding[0])
        q[names[2]] = winding
    return q
