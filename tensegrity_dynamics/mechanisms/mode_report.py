"""Report of the working and assembly modes of a robot, as text and as data (`tensegrity assembly-modes`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError
from ..numerics.rotations import rotation_vector
from ..robots.formatting import in_degrees, millimetres
from ..robots.report import Report, Section
from ..robots.robot import Robot
from .kinematics.mode_search import ModeSearch, search_assembly_modes, search_working_modes
from .kinematics.parallel_kinematics import LoopKinematics
from .kinematics.six_leg_modes import six_leg_modes, six_legs
from .mechanism_model import MechanismModel
from .robot_kinematics import determined_kinematics

DISTANCES = (
    "Distances to singularities: type 1, where the output cannot move along one direction though its actuators do "
    "(smallest |b_i| of A p' + B q' = 0); type 2, where the output moves though its actuators stand (smallest singular "
    "value of A, rows of length one)."
)


def mode_report(
    robot: Robot, positions: dict[str, float] | None = None, *, starts: int = 3000, seed: int = 0
) -> Report:
    """Report of all working modes (same output) and all assembly modes (same actuators) of a robot.

    Args:
        positions: actuator positions by name [rad or m], to which the robot is moved first; by default its start.
        starts: largest number of random starts of the search. seed: seed of the random starts.

    Raises:
        TensegrityError: the actuators do not determine the output, or the positions cannot be reached.
    """
    kinematics = determined_kinematics(robot)
    if kinematics is None:
        raise TensegrityError(
            f"{robot.name} has no working and assembly modes: they exist for mechanisms of rigid links that have as "
            "many degrees of freedom as actuators and controlled axes of the output."
        )
    q = robot.model_as(MechanismModel).start
    if positions:
        values = kinematics.active_coordinates.values(q)
        names = [each.name for each in robot.actuators]
        values = np.array([positions.get(name, value) for name, value in zip(names, values, strict=True)])
        q = kinematics.direct(values, q)
    limits = np.array([each.position for each in robot.actuators])
    legs = six_legs(kinematics)
    if legs is None:
        working = search_working_modes(kinematics, q, limits=limits, starts=starts, seed=seed)
    else:  # the length of a leg is the distance of its ends
        working = ModeSearch((q,), (1,), 0)
    figures: dict[str, Any] = {"robot": robot.name, "length_m": kinematics.length}
    here = kinematics.first_order(q)
    figures["singularities"] = {"type_1": here.type_1, "type_2": here.type_2}
    rows, listed = [], []
    for number, mode in enumerate(working.modes, 1):
        first = kinematics.first_order(mode)
        active = _within(kinematics.active_coordinates.values(mode), limits, kinematics)
        rows.append((f"{number}{' here' if number == 1 else ''}", *(f"{x:.4f}" for x in active),
                     f"{first.type_1:.3g}", f"{first.type_2:.3g}"))  # fmt: skip
        listed.append({"positions": active, "q": mode, "type_1": first.type_1, "type_2": first.type_2})
    heads = ("mode", *(f"{each.name} {each.units[0]}" for each in robot.actuators), "type 1", "type 2")
    parts: list[Section | str] = [
        Section("working modes: the same output, within the actuators' limits", heads, rows),
        _search_words(working) if legs is None else "One: the length of a leg is the distance between its ends.",
    ]
    figures["working_modes"] = listed
    figures["working_search"] = {"starts": working.starts, "unseen": working.unseen if legs is None else 0.0}
    poses, distances, words, search = _assembly(kinematics, q, legs, starts, seed)
    heads = ("mode", "output at", "turned by (rotation vector)", "type 2")
    rows = [
        (str(k), millimetres(position), in_degrees(rotation_vector(turn)), f"{distance:.3g}")
        for k, ((turn, position), distance) in enumerate(zip(poses, distances, strict=True), 1)
    ]  # fmt: skip
    rows[0] = (rows[0][0] + " here", *rows[0][1:])
    parts += [Section("assembly modes: the same actuators", heads, rows), words, DISTANCES]
    figures["assembly_modes"] = [
        {"position_m": position, "rotation_vector": rotation_vector(turn), "type_2": distance}
        for (turn, position), distance in zip(poses, distances, strict=True)
    ]
    figures["assembly_search"] = search
    return Report(figures, parts, heading=(robot.name, robot.description))


def _assembly(
    kinematics: LoopKinematics, q: NDArray, legs: tuple[NDArray, NDArray] | None, starts: int, seed: int
) -> tuple[list[tuple[NDArray, NDArray]], list[float], str, dict[str, Any]]:
    """Poses (rotation, position), the present one first, their distances to Type 2, and the method of the search."""
    if legs is None:
        found = search_assembly_modes(kinematics, q, starts=starts, seed=seed)
        poses = [kinematics.output_pose(mode) for mode in found.modes]
        distances = [kinematics.first_order(mode).type_2 for mode in found.modes]
        return poses, distances, _search_words(found), {"starts": found.starts, "unseen": found.unseen}
    ground, platform = legs
    lengths = kinematics.active_coordinates.values(q)
    modes = six_leg_modes(ground, platform, lengths, seed=seed)
    turned, at = kinematics.output_pose(q)
    frame = kinematics.output.frame
    own = turned @ frame.axes.T  # of the body
    present = (own, at - own @ frame.origin)
    pairs = sorted(
        zip(modes.rotations, modes.positions, strict=True),
        key=lambda pose: float(np.abs(pose[0] - present[0]).max() + np.abs(pose[1] - present[1]).max()),
    )
    if not pairs or not np.allclose(pairs[0][0], present[0], atol=1e-5):
        pairs.insert(0, present)  # at a singularity the present pose is not an isolated solution
    poses = [(rotation @ frame.axes, position + rotation @ frame.origin) for rotation, position in pairs]
    distances = []
    for rotation, position in pairs:
        arms = platform @ rotation.T - rotation @ frame.origin
        along = position + platform @ rotation.T - ground
        along /= np.linalg.norm(along, axis=1)[:, None]
        a = np.hstack((along, np.cross(arms, along) / kinematics.length))
        a /= np.linalg.norm(a, axis=1)[:, None]
        distances.append(float(np.linalg.svd(a, compute_uv=False)[-1]))
    words = (
        f"All of them: of {modes.complex_count} poses over the complex numbers, found by polynomial continuation, "
        f"{len(poses)} are real."
    )
    return poses, distances, words, {"complex": modes.complex_count, "real": len(poses)}


def _within(values: NDArray, limits: NDArray, kinematics: LoopKinematics) -> NDArray[np.float64]:
    """Positions of the active joints; full turns are added to revolute joints to bring them within their limits."""
    turning = np.array([kinematics.mechanism.joint(name).kind == "revolute" for name in kinematics.active])
    turns = 2.0 * np.pi * np.ceil((limits[:, 0] - 1e-9 - values) / (2.0 * np.pi))
    return np.asarray(np.where(turning, values + turns, values))


def _search_words(found: ModeSearch) -> str:
    singular = ", ".join(str(k + 1) for k in found.singular)
    return (f"At the singular pose of mode {singular} several modes coincide. " if singular else "") + (
        f"Found from {found.starts} random starts, {sum(found.met) - 1} of which arrived; the rarest was met "
        f"{min(found.met)} times, the chance of a further one per arrival is about {100.0 * found.unseen:.2g} %."
    )


def singularity_rows(robot: Robot) -> list[tuple[str, str]]:
    """Distances to singularities at the start, as rows of a report; empty if they are not defined."""
    kinematics = determined_kinematics(robot)
    if kinematics is None:
        return []
    first = kinematics.first_order(robot.model_as(MechanismModel).start)
    words = f"type 1 {first.type_1:.4g}, type 2 {first.type_2:.4g}"
    if any(axis.startswith("r") for axis in robot.outputs[0].controlled):
        words += f" (turning measured at {kinematics.length:.3g} m)"
    return [("distance to singularities", words)]
