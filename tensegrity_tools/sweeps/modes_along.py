"""Modes of a robot along a path of its output: frequencies, damping and stretched parts at several poses."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensegrity_control.inverse_kinematics.equilibrium_map import equilibrium_map
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.linear_models.modes import mode_section
from tensegrity_dynamics.robots.output_frame import AXES
from tensegrity_dynamics.robots.report import Report, Section
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.structures.structure import Structure

from .axes import SweepAxis
from .samples import reach_beside

SHOWN = 6
"""Number of modes per pose in a table."""


def modes_along(robot: Robot, axis: SweepAxis) -> Report:
    """Modes with held actuators at poses along one axis of the output, relative to its pose at rest.

    Raises:
        TensegrityError: the axis is not a controlled axis of the output, or the robot has no plans or no modes.
    """
    if not axis.is_pose or axis.name not in robot.output.controlled:
        raise TensegrityError(
            f"--along {axis.name}: {robot.output.name} does not control it; it controls "
            f"{', '.join(robot.output.controlled)}."
        )
    if robot.model.takes_no_goals:
        raise TensegrityError(f"{robot.name} {robot.model.takes_no_goals}.")
    bars = isinstance(robot.model, Structure) and "bar" in robot.model.kinds
    equilibria = equilibrium_map(robot.model, robot, **({"rigid_bars": True} if bars else {}))
    home = equilibria.start()
    turning = axis.name.startswith("r")
    scale, unit = (180.0 / np.pi, "deg") if turning else (1e3, "mm")
    parts: list[Section | str] = []
    path: list[dict[str, Any]] = []
    last = home
    for value in axis.values:
        found, why = reach_beside(equilibria, last, home, [AXES.index(axis.name)], [value])
        at = f"{axis.name} {scale * value:+.4g} {unit}"
        entry: dict[str, Any] = {"axis": axis.name, "offset": float(value), "reached": found is not None}
        path.append(entry)
        if found is None:
            entry["stopped_by"] = why
            parts.append(f"{at}: out of reach ({why}).")
            continue
        last, modes = found, equilibria.modes(found)
        positions = equilibria.positions(found).tolist()
        entry["positions"] = dict(zip((each.name for each in robot.actuators), positions, strict=True))
        entry["modes"] = [mode.figures() for mode in modes]
        parts.append(mode_section(f"modes at {at}, actuators held", modes, SHOWN) if modes else f"{at}: nothing moves.")
    note = f"The first {SHOWN} modes of each pose are shown; --json has them all."
    return Report({"robot": robot.name, "path": path}, [*parts, note], heading=(robot.name, robot.description))
