"""Hardware settings of a robot file for the driver: safety, homing, path of the calibration file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tensegrity_dynamics.robots.file_errors import validate_block
from tensegrity_dynamics.robots.robot import Robot

from ..calibration.calibrated_spools import servo_rows
from ..calibration.homing_settings import HomingSettings
from ..safety.settings import SafetySettings

HOME_FOLDER = ".tensegrity"
"""Folder in the home directory for calibration files, if the robot file names none."""


@dataclass(frozen=True)
class HardwareSettings:
    """Settings of the hardware except those of single servos.

    Attributes:
        safety: thresholds of the safety layer and period of the bus cycle.
        homing: settings of the homing of tendons.
        calibration: path of the calibration file.
        board_baud_rate: speed of the serial port of the potentiometer board [bit/s].
        board_channels: number of channels of the board; 0: no board.
    """

    safety: SafetySettings
    homing: HomingSettings
    calibration: Path
    board_baud_rate: int = 115_200
    board_channels: int = 0


def calibration_path(robot: Robot) -> Path:
    """Path of the calibration file, as named in the robot file and relative to it, or in the home directory."""
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
    """Hardware settings of a robot.

    Args:
        robot: robot with servos.
        period: period of the bus cycle [s]; None: value of the robot file.
        overrun: longest cycle, in periods, that does not count as an overrun; None: value of the robot file.
        calibration: path of the calibration file; None: `calibration_path`.

    Raises:
        TensegrityError: no servos, or contradictory settings.
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
