"""Inverse kinematics of a body suspended by cables only, in closed form: block, pulley and involute angles.

Every cable runs from a pulley fixed to the world to the body, so that its angles follow from the pose of the body
independently of the other cables (`CableEntry.start`). The block turns towards the anchor. The taut length is
sqrt(d^2 - r^2), with the distance d between pulley and anchor and the pulley radius r. The length that the pulley has
unwound is the taut length without the elastic elongation.
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
    """Whether only cables from pulleys fixed to the world hold the body of the output, and all cables end at this
    body."""
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
    """Configuration q (nq,) with the output at a given pose, the cables at given strains, and closed loops.

    Args:
        position: (3,) m. quaternion: (4,) w, x, y, z.
        strains: strains of the cables in the order of the entries; by default those of the robot file.

    Raises:
        TensegrityError: the body is not held by cables only (`hangs_on_cables`), or a cable cannot reach its anchor.
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
        # direction of the cable in the plane of the block; the number of full turns stays that of the start
        leaving, before_leaving = pulley + winding[0], before_pulley + before_winding[0]
        change = (leaving - before_leaving + np.pi) % (2.0 * np.pi) - np.pi
        q[names[0]] = block
        q[names[1]] = home[names[1]] + change - (winding[0] - before_winding[0])
        q[names[2]] = winding
    return q
