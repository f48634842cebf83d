"""Reader for payloads, constant wrenches and drive trains of the robot file of a mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..errors import TensegrityError, unknown_name
from ..robots.file_errors import Problems
from .cable_routing import CableEntry
from .file_schema import MechanismFile
from .loads import Load, Payload
from .mechanism import Joint
from .resistance import Resistance


def read_loads(block: MechanismFile, problems: Problems) -> tuple[tuple[Payload, ...], tuple[Load, ...]]:
    """Payloads of the bodies and loads on them, from the block `loads`."""
    payloads: list[Payload] = []
    loads: list[Load] = []
    seen: dict[str, int] = {}
    made = {f"{cable.name}-{part}" for cable in block.cables for part in ("block", "pulley")}
    for i, item in enumerate(block.loads):
        if item.name in seen:
            problems.add(("loads", i, "name"), f"the name {item.name!r} is used by loads[{seen[item.name]}] already.")
        seen.setdefault(item.name, i)
        if item.body not in block.bodies and item.body not in made:
            problems.add(("loads", i, "body"), unknown_name("body", item.body, (*block.bodies, *sorted(made))))
            continue
        if item.mass is None and item.force is None and item.moment is None:
            problems.add(("loads", i), "give a mass, or a force or moment.")
            continue
        if item.mass is not None and not (item.force is None and item.moment is None):
            problems.add(("loads", i), "give either a mass or a force and moment; what has both takes two entries.")
            continue
        try:
            if item.mass is not None:
                payloads.append(Payload(item.name, item.body, item.mass, np.array(item.at)))
            else:
                force, moment = (np.zeros(3) if each is None else np.array(each) for each in (item.force, item.moment))
                loads.append(Load(item.name, item.body, force, moment, np.array(item.at)))
        except TensegrityError as error:
            problems.add(("loads", i), str(error))
    return tuple(payloads), tuple(loads)


def with_drive_trains(
    block: MechanismFile, entries: Sequence[CableEntry], joints: Sequence[Joint], problems: Problems
) -> tuple[list[CableEntry], list[Joint]]:
    """Cables and joints with inertia and friction of their motors, reflected by the gear, and with the gear losses."""
    changed, turned = list(entries), list(joints)
    by_cable = {name: i for i, entry in enumerate(entries) for name in (entry.name, entry.joints[1])}
    by_joint = {joint.name: i for i, joint in enumerate(joints)}
    for k, item in enumerate(block.actuators):
        inertia, damping = item.gear**2 * item.rotor_inertia, item.gear**2 * item.motor_damping
        friction = item.gear * item.motor_friction
        if inertia == 0.0 and damping == 0.0 and friction == 0.0 and item.efficiency == 1.0:
            continue
        if item.drives in by_cable:
            entry = changed[by_cable[item.drives]]
            changed[by_cable[item.drives]] = replace(
                entry,
                pulley_resistance=_geared(entry.pulley_resistance, damping, friction, item.efficiency),
                pulley_armature=inertia,
            )
        elif item.drives in by_joint and turned[by_joint[item.drives]].kind in ("revolute", "prismatic"):
            joint = turned[by_joint[item.drives]]
            own = _geared(joint.resistance[0] if joint.resistance else None, damping, friction, item.efficiency)
            turned[by_joint[item.drives]] = replace(
                joint, resistance=() if own is None else (own,), armature=joint.armature + inertia
            )
        elif item.drives in by_joint:  # an unknown name is reported with the driven parts
            problems.add(("actuators", k, "rotor_inertia"), f"{item.drives} has no motor that could turn with it.")
    return changed, turned


def _geared(resistance: Resistance | None, damping: float, friction: float, efficiency: float) -> Resistance | None:
    if damping == 0.0 and friction == 0.0 and efficiency == 1.0:
        return resistance
    own = Resistance() if resistance is None else resistance
    return replace(
        own,
        damping=own.damping + damping,
        friction=own.friction + friction,
        efficiency=own.efficiency * efficiency,
    )
