"""Reports of a robot for commands: tables and sentences for users, figures for programs.

Every kind of robot creates its reports. The commands format them, or print the figures as JSON.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError, UnreachableGoalError
from .robot import Robot


@dataclass(frozen=True)
class Section:
    """Table of a report.

    Attributes:
        title: title above the table. columns: column headers, all empty for a list of facts.
        rows: cells with units, or plain numbers. right: indices of right-aligned columns.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    right: Sequence[int] = ()


@dataclass(frozen=True)
class Report:
    """Report of a command.

    Attributes:
        figures: data for programs; arrays and nested mappings are allowed.
        parts: sections and plain sentences, in order.
        heading: (bold, plain) first line, or None.
        notes: warnings for the user before driving the robot. verdict: last sentence if there are no notes.
        shape: configuration and tensions (m,) [N] of the report, if it describes a single configuration.
    """

    figures: Any
    parts: Sequence[Section | str]
    heading: tuple[str, str] | None = None
    notes: Sequence[str] = ()
    verdict: str = ""
    shape: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None


@dataclass(frozen=True)
class KinematicsOptions:
    """Options of `tensegrity fk` as text of the user.

    Attributes:
        lengths: NAME=VALUE of driven parts. forces: NAME=X,Y,Z. payloads: NAME=MASS.
        method: "newton", or a method of the kind of robot.
        rigid_bars, competing: switches for structures.
        tolerance: largest out-of-balance force [N]; None for the default.
        delta, epsilon: parameters of the method "relaxation".
        gravity: (3,) gravity [m/s^2] instead of that of the robot.
        start: start node positions (n, 3) [m]. starts, seed: number and seed of the random starts of `competing`.
    """

    lengths: Sequence[str] = ()
    forces: Sequence[str] = ()
    payloads: Sequence[str] = ()
    method: str = "newton"
    rigid_bars: bool = False
    competing: bool = False
    tolerance: float | None = None
    delta: float | None = None
    epsilon: float | None = None
    gravity: Sequence[float] | None = None
    start: NDArray[np.float64] | None = None
    starts: int = 200
    seed: int = 0

    @property
    def for_structures(self) -> dict[str, Any]:
        """Given options that only structures support, by option name."""
        given = {"rigid-bars": self.rigid_bars, "competing": self.competing, "method": self.method != "newton"}
        values = {name: getattr(self, name) for name in ("tolerance", "delta", "epsilon", "gravity", "start")}
        changed = {"starts": self.starts != 200, "seed": self.seed != 0}
        return {k: v for k, v in {**given, **values, **changed}.items() if v is not None and v is not False}


class RobotReport(ABC):
    """Base class of the reports of one robot.

    Args:
        robot: robot of the kind that registered the class.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot

    @abstractmethod
    def check(self) -> Report:
        """Summary and stability of the robot (`tensegrity check`)."""

    def modes(self) -> Report:
        """Frequencies, damping ratios and mode shapes at rest (`tensegrity check --modes`)."""
        raise TensegrityError(f"{self.robot.name}: robots of kind {self.robot.kind} have no modes to report.")

    def mode_shapes(self) -> Any:
        """Modes of `modes` with their configuration, as `linear_models.modes.ModeShapes`."""
        return self.modes()

    def stiffness(self) -> Report:
        """Stiffness of the output at rest, and effect of the inputs on it (`tensegrity check --stiffness`)."""
        raise TensegrityError(f"{self.robot.name}: robots of kind {self.robot.kind} have no stiffness to report.")

    @abstractmethod
    def forward_kinematics(self, options: KinematicsOptions) -> Report:
        """Equilibrium for lengths or positions of the actuators (`tensegrity fk`)."""

    def inverse_kinematics(self, result: Any) -> Report:
        """Actuator positions for a goal pose (`tensegrity ik`).

        Args:
            result: `InverseKinematicsResult` with equilibria of this kind of robot.
        """
        raise TensegrityError(f"{self.robot.name}: robots of kind {self.robot.kind} have no report of a goal pose.")

    def unreachable(self, error: UnreachableGoalError) -> dict[str, Any]:
        """Figures of a goal pose out of reach (`tensegrity ik --json`)."""
        return {"reached": False, "reason": str(error), "binding": list(error.binding)}

    @abstractmethod
    def not_stable(self, called: str) -> str:
        """Message that an unstable robot cannot be driven, with a remedy (`tensegrity up`).

        Args:
            called: name or file of the robot as given by the user.
        """


def beyond_limits(robot: Robot, positions: Mapping[str, float]) -> list[str]:
    """Notes on positions [m or rad], by name of the actuator or of the driven part, outside the actuator limits."""
    notes = []
    for each in robot.actuators:
        value, (low, high) = positions.get(each.name, positions.get(each.drives)), each.position
        if value is not None and not low <= value <= high:
            unit = each.units[0]
            notes.append(f"{each.name} at {value:g} {unit} is outside of its limits, {low:g} to {high:g} {unit}.")
    return notes


def facts(robot: Robot) -> Mapping[str, Any]:
    """Figures in the reports of all kinds of robots."""
    return {"name": robot.name, "kind": robot.kind, "source": robot.source, "file": _path(robot)}


def _path(robot: Robot) -> str | None:
    return str(robot.path) if robot.path else None


def closing_rows(robot: Robot) -> list[tuple[str, str]]:
    """Rows for source and file, at the end of a list of facts."""
    return [("source", robot.source or "not stated"), ("file", _path(robot) or "none")]


def provenance_section(robot: Robot) -> list[Section]:
    """Section of values that are not printed in the source of the robot; empty if there are none."""
    rows = [(p.status, p.fields, p.note) for p in robot.provenance if p.status != "printed"]
    return [Section("values that the source does not print", ("", "fields", "why"), rows)] if rows else []


def provenance_figures(robot: Robot) -> list[dict[str, str]]:
    """Provenance of all values as data, including the printed ones."""
    return [{"fields": p.fields, "status": p.status, "note": p.note} for p in robot.provenance]


def free_axes(robot: Robot, source: str) -> str:
    """Sentence about the axes of a goal pose that the output does not control; empty if it controls all of them.

    Args:
        source: quantity that determines the pose on these axes.
    """
    free = [axis for axis in ("x", "y", "z", "rx", "ry", "rz") if axis not in robot.output.controlled]
    if not free:
        return ""
    return f"{robot.output.name} controls {', '.join(robot.output.controlled)}; {', '.join(free)} follow from {source}."


def drive_notes(robot: Robot) -> list[str]:
    """Reasons that prevent driving a robot, common to all kinds."""
    notes = []
    if not robot.actuators:
        notes.append("it has no actuators, so it cannot be driven.")
    if robot.actuators and not robot.outputs:
        notes.append("it has no output, so it takes no goal poses.")
    return notes
