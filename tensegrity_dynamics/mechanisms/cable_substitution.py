"""Replacement of the cables of a mechanism: variant of the involute joint, elasticity, damping, initial strain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..numerics.rotations import matrix_from_vector
from .body_poses import BodyPoses
from .frame import Frame
from .mechanism_model import MechanismModel


def with_zeroed_pulleys(model: MechanismModel) -> MechanismModel:
    """Shift the pulley joint frames so that all pulley angles are zero at the start; the pose stays the same."""
    mechanism, q = model.mechanism, np.array(model.start)
    joints = list(mechanism.joints)
    pulleys = {entry.joints[1] for entry in model.entries}
    for k, joint in enumerate(joints):
        if joint.name in pulleys:
            at = mechanism.positions_of(joint.name)
            turn = matrix_from_vector(joint.axis * q[at][0])
            joints[k] = replace(joint, placement=Frame(joint.placement.origin, joint.placement.axes @ turn))
            q[at] = 0.0
    return replace(model, mechanism=replace(mechanism, joints=tuple(joints)), start=q)


def with_cables(
    model: MechanismModel,
    *,
    variant: str | None = None,
    young: float | None = None,
    damping: float | None = None,
    strain: float | None = None,
) -> MechanismModel:
    """Replace the cables of a mechanism at the same initial pose; None keeps the value of the cables.

    Args:
        variant: "rigid", "u", "epsilon" or "length".
        young: Young's modulus E [Pa]. damping: mu [Pa s].
        strain: initial strain of every cable. The taut lengths stay; a higher strain reduces the free rest length.
    """
    requested = {"variant": variant, "young": young, "damping": damping, "strain": strain}
    changes = {name: value for name, value in requested.items() if value is not None}
    old, poses = model.mechanism, BodyPoses(model).update(model.start)
    lengths, strains = poses.lengths(), poses.strains()
    entries = tuple(replace(entry, **changes) for entry in model.entries)  # type: ignore[arg-type]
    joints, cables = {joint.name: joint for joint in old.joints}, []
    for entry in entries:
        _, made, _, cable = entry.parts()
        joints[made[2].name] = made[2]
        cables += [cable] if cable is not None else []
    mechanism = replace(old, joints=tuple(joints.values()), cables=tuple(cables))
    q = mechanism.neutral()
    for joint in old.joints:
        if not joint.kind.startswith("involute"):
            q[mechanism.positions_of(joint.name)] = model.start[old.positions_of(joint.name)]
    for k, entry in enumerate(entries):
        own = 0.0 if entry.variant == "rigid" else float(strains[k] if strain is None else strain)
        rest = lengths[k] / (1.0 + own)
        _, pulley, involute = entry.joints
        # The removed free length is wound onto the pulley.
        q[mechanism.positions_of(pulley)] += model.start[old.positions_of(involute)][0] - rest / entry.radius
        second = {"rigid": [], "u": [lengths[k] - rest], "epsilon": [own], "length": [lengths[k]]}[entry.variant]
        q[mechanism.positions_of(involute)] = [rest / entry.radius, *second]
    return with_zeroed_pulleys(MechanismModel(mechanism, q, entries))
