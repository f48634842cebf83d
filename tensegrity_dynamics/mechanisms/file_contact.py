"""Reader for the ground and the contact parts of the robot file of a mechanism."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..contact.file_schema import build_ground, check_start
from ..errors import TensegrityError, unknown_name
from ..robots.file_errors import Problems
from .contact_readings import point_centres
from .file_schema import ContactPartBlock, FrameBlock, MechanismFile
from .frame import Frame
from .mechanism_model import MechanismModel
from .touch.columns import RADIUS
from .touch.parts import DIMENSIONS, ContactPart

FrameReader = Callable[[FrameBlock, tuple[Any, ...], Problems], Frame]


def read_contact_parts(block: MechanismFile, frame_of: FrameReader, problems: Problems) -> tuple[ContactPart, ...]:
    """Contact parts from the block `contact_parts`; errors are added to the problems."""
    if block.contact is not None and not block.contact_parts:
        problems.add(("contact",), "nothing touches this ground; give contact_parts, the shapes of bodies that do.")
    if block.contact is None and block.contact_parts:
        problems.add(("contact_parts",), "there is no ground that they touch; give contact.")
    made, seen = [], dict[str, int]()
    for i, item in enumerate(block.contact_parts):
        path = ("contact_parts", i)
        name = _name(item, seen)
        if item.name is not None and name in seen:
            problems.add((*path, "name"), f"the name {name!r} is used by contact_parts[{seen[name]}] already.")
        seen.setdefault(name, i)
        bodies = (*block.bodies, *(f"{cable.name}-{part}" for cable in block.cables for part in ("block", "pulley")))
        if item.body not in bodies:
            problems.add((*path, "body"), unknown_name("body", item.body, bodies))
            continue
        needed = DIMENSIONS[item.kind]
        if len(item.size) != len(needed):
            what = ", ".join(needed) or "none"
            found = f"a {item.kind} has {len(needed)} dimensions ({what}); found {len(item.size)}."
            problems.add((*path, "size"), found)
            continue
        frame = frame_of(FrameBlock(at=item.at, turn=item.turn, z=item.z, y=item.y), path, problems)
        try:
            made.append(ContactPart(name, item.body, item.kind, tuple(item.size), frame))
        except TensegrityError as error:
            problems.add((*path, "size"), str(error))
    return tuple(made)


def stand_on_ground(
    block: MechanismFile, model: MechanismModel, parts: tuple[ContactPart, ...], problems: Problems
) -> MechanismModel:
    """Model with its ground and contact parts; no part may penetrate the ground at the start."""
    ground = build_ground(block.contact, problems)
    if ground is None or not parts:
        return model
    mechanism = replace(model.mechanism, ground=ground, contact_parts=parts)
    flat = mechanism.flat
    centres = point_centres(mechanism, model.start)
    lowest = centres - mechanism.contact_points[:, RADIUS : RADIUS + 1] * ground.normal
    owners = [i for i, part in enumerate(parts) for _ in part.balls[0]]
    names = tuple(parts[i].name for i in owners)
    weight = float(flat.mass.sum() * np.linalg.norm(flat.gravity))
    wrong = check_start(ground, names, lowest, np.ones(len(names), dtype=np.bool_), weight)
    for row, message in wrong.items():
        problems.add(("contact_parts", owners[row]), message)
    return replace(model, mechanism=mechanism)


def _name(item: ContactPartBlock, seen: dict[str, int]) -> str:
    if item.name is not None:
        return item.name
    name, number = item.body, 2
    while name in seen:
        name, number = f"{item.body}-{number}", number + 1
    return name
