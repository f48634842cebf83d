"""What commands print of a robot: tables and sentences for people, figures for programs.

A kind of robot makes its reports; the commands lay them out, or print the figures as JSON.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError
from .robot import Robot


@dataclass(frozen=True)
class Section:
    """A table of a report.

    Attributes:
        title: above it. columns: heads, all empty for a list of facts. rows: cells with their units, or plain numbers.
        right: columns that stand to the right.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    right: Sequence[int] = ()


@dataclass(frozen=True)
class Report:
    """Something to print.

    Attributes:
        figures: for programs; arrays and nested mappings are allowed.
        parts: sections and plain sentences, in order.
        heading: (bold, plain) first line, or None.
        notes: what a user should know before driving the robot. verdict: the last sentence, where there are no notes.
        shape: the configuration and the tensions (m,) N that it reports, where it is one shape.
    """

    figures: Any
    parts: Sequence[Section | str]
    heading: tuple[str, str] | None = None
    notes: Sequence[str] = ()
    verdict: str = ""
    shape: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None


@dataclass(frozen=True)
class KinematicsOptions:
    """What `tensegrity fk` was asked for, as the user wrote it.

    Attributes:
        lengths: NAME=VALUE of what is driven. forces: NAME=X,Y,Z. payloads: NAME=MASS. method: "newton", or one that
            the kind has.
        rigid_bars, competing: switches of structures. tolerance: N, largest out-of-balance force; None for the usual
            one. delta, epsilon: of the method "relaxation". gravity: (3,) m/s^2 instead of the robot's own.
        start: node positions (n, 3) m to start from. starts, seed: random starts of `competing`.
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
        """What only structures have, by the names of the options, where it was given."""
        given = {"rigid-bars": self.rigid_bars, "competing": self.competing, "method": self.method != "newton"}
        values = {name: getattr(self, name) for name in ("tolerance", "delta", "epsilon", "gravity", "start")}
        changed = {"starts": self.starts != 200, "seed": self.seed != 0}
        return {k: v for k, v in {**given, **values, **changed}.items() if v is not None and v is not False}


class RobotReport(ABC):
    """Makes the reports of one robot.

    Args:
        robot: of the kind that registered the class.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot

    @abstractmethod
    def check(self) -> Report:
        """What the robot is, and whether it stands (`tensegrity check`)."""

    def modes(self) -> Report:
        """Frequencies, damping and what moves, at rest (`tensegrity check --modes`)."""
        raise TensegrityError(f"{self.robot.name}: robots of kind {self.robot.kind} have no modes to report.")

    def mode_shapes(self) -> Any:
        """The modes of `modes` with the configuration that they belong to, as `linear_models.modes.ModeShapes`."""
        return self.modes()

    def stiffness(self) -> Report:
        """Stiffness of the output at rest, and what its inputs can do (`tensegrity check --stiffness`)."""
        raise TensegrityError(f"{self.robot.name}: robots of kind {self.robot.kind} have no stiffness to report.")

    @abstractmethod
    def forward_kinematics(self, options: KinematicsOptions) -> Report:
        """The equilibrium that belongs to lengths or positions of the actuators (`tensegrity fk`)."""

    @abstractmethod
    def not_stable(self, called: str) -> str:
        """Why a robot that is not stable at rest cannot be driven, and what to do (`tensegrity up`).

        Args:
            called: what the user called the robot, a name or a file.
        """


def beyond_limits(robot: Robot, positions: Mapping[str, float]) -> list[str]:
    """Notes on positions [m or rad] by actuator, or by what it drives, that lie outside of the actuator's limits."""
    notes = []
    for each in robot.actuators:
        value, (low, high) = positions.get(each.name, positions.get(each.drives)), each.position
        if value is not None and not low <= value <= high:
            unit = each.units[0]
            notes.append(f"{each.name} at {value:g} {unit} is outside of its limits, {low:g} to {high:g} {unit}.")
    return notes


def facts(robot: Robot) -> Mapping[str, Any]:
    """Figures that every kind of robot reports alike."""
    return {"name": robot.name, "kind": robot.kind, "source": robot.source, "file": _path(robot)}


def _path(robot: Robot) -> str | None:
    return str(robot.path) if robot.path else None


def closing_rows(robot: Robot) -> list[tuple[str, str]]:
    """Source and file, the last rows of a list of facts."""
    return [("source", robot.source or "not stated"), ("file", _path(robot) or "none")]


def provenance_section(robot: Robot) -> list[Section]:
    """Values that the robot file takes from elsewhere than its source; nothing where there are none."""
    rows = [(p.status, p.fields, p.note) for p in robot.provenance if p.status != "printed"]
    return [Section("values that the source does not print", ("", "fields", "why"), rows)] if rows else []


def provenance_figures(robot: Robot) -> list[dict[str, str]]:
    """The same for programs, with those that it prints."""
    return [{"fields": p.fields, "status": p.status, "note": p.note} for p in robot.provenance]


def drive_notes(robot: Robot) -> list[str]:
    """What keeps a robot of any kind from being driven."""
    notes = []
    if not robot.actuators:
        notes.append("it has no actuators, so it cannot be driven.")
    if robot.actuators and not robot.outputs:
        notes.append("it has no output, so it takes no goal poses.")
    return notes
