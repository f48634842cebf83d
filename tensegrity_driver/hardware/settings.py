"""What a robot's file says about its hardware, as the driver uses it: safety, homing, place of the calibration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robots.file_errors import validate_block
from tensegrity_dynamics.robots.robot import Robot

from ..calibration.homing_settings import HomingSettings
from ..safety.settings import SafetySettings

HOME_FOLDER = ".tensegrity"
"""Folder in the user's home for the calibrations of robots whose file names no other place."""


@dataclass(frozen=True)
class HardwareSettings:
    """Everything but the servos themselves.

    Attributes:
        safety: with the period of the bus cycle. homing: of tendons. calibration: path of the file.
        board_baud_rate: bit/s of the potentiometer board's own port. board_channels: how many it has; 0 for none.
    """

    safety: SafetySettings
    homing: HomingSettings
    calibration: Path
    board_baud_rate: int = 115_200
    board_channels: int = 0


def servo_rows(robot: Robot) -> tuple[Mapping[str, Any], ...]:
    """The servos of a robot as its file lists them; raises TensegrityError where it has none."""
    rows = tuple(robot.servos.get("servos") or ())
    if not rows:
        raise TensegrityError(f"{robot.name} has no servos; add a servos block to its file.")
    return rows


def calibration_path(robot: Robot) -> Path:
    """Where the calibration of a robot lies: beside its file as that says, else in the user's home by its name."""
    named = robot.servos.get("calibration")
    if named is None:
        return Path.home() / HOME_FOLDER / f"{robot.name}.calibration.json"
    path = Path(named).expanduser()
    return path if path.is_absolute() or robot.path is None else robot.path.parent / path


def hardware_settings(
    robot: Robot,
    *,
    period: float | None = None,
    overrun: float | None = None,
    calibration: str | Path | None = None,
) -> HardwareSettings:
    """Settings of a robot.

    Args:
        robot: with servos.
        period: s of a bus cycle; None takes that of its file.
        overrun: factor on it above which a cycle took too long; None takes that of its file.
        calibration: path; None takes `calibration_path`.

    Raises:
        TensegrityError: no servos, or settings that do not go together.
    """
    used = [row["potentiometer"] + 1 for row in servo_rows(robot) if row.get("potentiometer") is not None]
    board = robot.servos.get("board") or {}
    asked = {name: value for name, value in (("period", period), ("overrun", overrun)) if value is not None}
    return HardwareSettings(
        safety=validate_block(SafetySettings, {**(robot.servos.get("safety") or {}), **asked}, "safety"),
        homing=validate_block(HomingSettings, dict(robot.servos.get("homing") or {}), "homing"),
        calibration=calibration_path(robot) if calibration is None else Path(calibration).expanduser(),
        board_baud_rate=int(board.get("baud_rate") or 115_200),
        board_channels=int(board.get("channels") or max(used, default=0)),
    )
