"""Initial configuration of a mechanism from its file: given coordinates, cables wound to their anchors, closed
loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError
from ..numerics.rotations import matrix_from_vector, quaternion_from_matrix
from ..robots.file_errors import Problems
from ..robots.units import BaseUnits
from .body_poses import BodyPoses
from .cable_substitution import with_zeroed_pulleys
from .dynamics.equations_of_motion import equations
from .dynamics.forward_dynamics import SINGULAR_MASS, accelerate, massless_message
from .file_schema import MechanismFile
from .joint_coordinates import JOINT_COORDINATES
from .kinematics.configuration_space import displaced
from .kinematics.loop_closure import assemble, loop_of_row
from .kinematics.loop_reduction import make_reduction_workspace
from .mechanism_model import MechanismModel
from .workspace import make_workspace


def rough_start(block: MechanismFile, model: MechanismModel, problems: Problems) -> NDArray[np.float64]:
    """(nq,) configuration with the joint positions of the file, and every cable wound so that it reaches its anchor."""
    mechanism = model.mechanism
    units = BaseUnits(block.units.model_dump()).with_parameters(block.parameters)
    q = mechanism.neutral()
    for i, item in enumerate(block.joints):
        if item.start is None:
            continue
        quantities = JOINT_COORDINATES[item.kind].start
        if len(item.start) != len(quantities) and not (item.kind == "floating" and len(item.start) == 3):
            problems.add(
                ("joints", i, "start"),
                f"a {item.kind} joint starts at {len(quantities)} numbers ({', '.join(quantities) or 'none'}); "
                f"found {len(item.start)}.",
            )
            continue
        numbers = _numbers(item.start, quantities, ("joints", i, "start"), units, problems)
        at = mechanism.positions_of(item.name)
        if item.kind in ("spherical", "floating"):
            origin, turn = (numbers[:3], numbers[3:]) if item.kind == "floating" else (np.zeros(0), numbers)
            rotation = matrix_from_vector(turn if turn.size else np.zeros(3))
            q[at] = np.concatenate((origin, quaternion_from_matrix(rotation)))
        else:
            q[at] = numbers
    poses = BodyPoses(model)
    for i, entry in enumerate(model.entries):
        poses.update(q)
        index = mechanism.body_index
        target = np.array(entry.anchor)
        anchor, carrier = index[entry.anchor_body], index[entry.carrier]
        if anchor >= 0:
            target = poses.positions[anchor] + poses.rotations[anchor] @ target
        if carrier >= 0:
            target = poses.rotations[carrier].T @ (target - poses.positions[carrier])
        try:
            values = entry.start(target)
        except TensegrityError as error:
            problems.add(("cables", i), str(error))
            continue
        for name, value in zip(entry.joints, values, strict=True):
            q[mechanism.positions_of(name)] = np.asarray(value)
    return q


def _numbers(
    values: Sequence[Any], quantities: Sequence[str], path: tuple[Any, ...], units: BaseUnits, problems: Problems
) -> NDArray[np.float64]:
    made = np.zeros(len(values))
    for k, (value, quantity) in enumerate(zip(values, quantities, strict=False)):
        try:
            made[k] = units.to_si(value, quantity)
        except ValueError as error:
            problems.add((*path, k), f"{error}; found {str(value)[:60]!r}.")
    return made


def closed_start(
    block: MechanismFile, model: MechanismModel, rough: NDArray[np.float64], problems: Problems
) -> MechanismModel:
    """Model with closed loops near a rough start; dependent loops and missing masses are reported."""
    mechanism = model.mechanism
    wide = _gap(model, rough)
    try:
        start = assemble(mechanism, rough)
    except TensegrityError as error:
        name = loop_name(str(error))
        problems.add(_loop_path(block, name), f"{error}" + wide)
        return model
    if _is_dependent(block, model, start, problems):
        return model
    flat = mechanism.flat
    work, reduction = make_workspace(flat), make_reduction_workspace(flat)
    still = np.zeros(mechanism.velocity_count)
    status, coordinate = accelerate(flat, start, still, still, 0.0, work, reduction, False)
    if status == SINGULAR_MASS:
        problems.add(("bodies",), massless_message(mechanism, int(coordinate)))
    return with_zeroed_pulleys(replace(model, start=start))


def loop_name(message: str) -> str:
    """Name of the loop in a message of `assemble`."""
    return message.split()[1]


def _gap(model: MechanismModel, rough: NDArray[np.float64]) -> str:
    errors = np.abs(equations(model.mechanism, rough, np.zeros(model.mechanism.velocity_count)).loop_error)
    if not errors.size:
        return ""
    worst = int(np.argmax(errors))
    return f" At the stated start the widest gap is {errors[worst]:.3g} in loop {loop_of_row(model.mechanism, worst)}."


def _loop_path(block: MechanismFile, loop: str) -> tuple[Any, ...]:
    """Path in the file to the entry of a loop."""
    for i, item in enumerate(block.loops):
        if item.name == loop:
            return ("loops", i)
    for i, cable in enumerate(block.cables):
        if f"{cable.name}-loopJt" == loop:
            return ("cables", i)
    return ("loops",)


def _is_dependent(block: MechanismFile, model: MechanismModel, start: NDArray, problems: Problems) -> bool:
    """Report loops that are redundant, or singular at the start only; returns True if there are any.

    A row that depends on the previous rows both at the start and at a nearby configuration is redundant everywhere.
    """
    mechanism = model.mechanism
    here = dependent_rows(model, start)
    if not here:
        return False
    nudge = np.random.default_rng(0).normal(scale=1e-2, size=mechanism.velocity_count)
    try:
        beside = assemble(mechanism, displaced(mechanism, start, nudge))
        always = [row for row in dependent_rows(model, beside) if row in here]
    except TensegrityError:
        always = here
    for name in dict.fromkeys(loop_of_row(mechanism, row) for row in (always or here)):
        count = sum(loop_of_row(mechanism, row) == name for row in (always or here))
        if always:
            problems.add(
                _loop_path(block, name),
                f"{count} of the motions that loop {name} holds are held by the other loops already, so that their "
                "forces are not determined; use a kind of loop that leaves them free, or take it out.",
            )
        else:
            problems.add(
                _loop_path(block, name),
                f"loop {name} is singular at the start ({count} of its rows depend on others, but only "
                "there); start elsewhere.",
            )
    return True


def dependent_rows(model: MechanismModel, q: NDArray) -> list[int]:
    """Constraint rows that depend on the previous rows at a configuration q (nq,)."""
    rows = equations(model.mechanism, q, np.zeros(model.mechanism.velocity_count)).loop
    kept: list[NDArray[np.float64]] = []
    dependent = []
    for i, row in enumerate(rows):
        rest = row / (np.linalg.norm(row) or 1.0)
        for _ in range(2):  # twice, so that rounding errors do not count as independence
            for each in kept:
                rest = rest - (each @ rest) * each
        size = float(np.linalg.norm(rest))
        if size < 1e-7:
            dependent.append(i)
        else:
            kept.append(rest / size)
    return dependent
