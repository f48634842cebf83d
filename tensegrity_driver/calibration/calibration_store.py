"""Store of the calibration of one robot on one open bus: loading, saving, and replacing the calibration of one sensor.

The driver and the servo commands use the same store, so that each of them can read files written by the other.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from pathlib import Path

from tensegrity_dynamics.errors import BusError
from tensegrity_dynamics.robots.robot import Robot

from ..bus.identity import BusIdentity
from ..spools.readings import ServoReading
from .calibrated_spools import check_calibration, make_spools
from .calibration_file import (
    RobotCalibration,
    SensorCalibration,
    hardware_fingerprint,
    load_calibration,
    save_calibration,
)
from .line_fit import CalibrationError, LineFit
from .turn_counter import renew_turns


def timestamp() -> str:
    """Present date and time in UTC in the format of calibrations (ISO 8601), with microseconds, so that all are
    different."""
    return datetime.now(timezone.utc).isoformat(timespec="microseconds")


class CalibrationStore:
    """Loads and saves the calibration of one robot on one bus.

    Args:
        robot: robot with servos.
        identity: identity of the open bus.
        path: path of the calibration file; None if nothing can be saved.
        exact: calibration of simulated spools, used instead of the file; None: the file is loaded.

    Attributes:
        read: function that reads the servos, for the turns of a calibrated spool; by default it returns nothing.
    """

    def __init__(
        self, robot: Robot, identity: BusIdentity, path: Path | None, exact: RobotCalibration | None = None
    ) -> None:
        self.robot, self.identity, self.path, self.exact = robot, identity, path, exact
        self.read: Callable[[], Mapping[str, ServoReading]] = dict

    @property
    def exists(self) -> bool:
        """Whether there is anything to load."""
        return self.exact is not None or (self.path is not None and self.path.exists())

    def load(self) -> RobotCalibration:
        """Calibration of this robot on this bus.

        Raises:
            CalibrationError: there is no file, or it is damaged, belongs to another robot, wiring or bus, or contains
                impossible lines.
        """
        if self.exact is not None:
            return self.exact
        if self.path is None:
            raise self._no_file()
        hardware = hardware_fingerprint(self.robot.servos)
        loaded = load_calibration(self.path, robot=self.robot.name, hardware=hardware, bus=self.identity)
        try:
            check_calibration(self.robot, loaded)
        except CalibrationError as error:
            raise CalibrationError(f"{self.path}: {error}") from None
        return loaded

    def empty(self, revision: int = 0) -> RobotCalibration:
        """Calibration without any sensor; `revision` is the revision of the file to be replaced."""
        hardware = hardware_fingerprint(self.robot.servos)
        return RobotCalibration(self.robot.name, hardware, self.identity, {}, timestamp(), revision)

    def save(self, calibration: RobotCalibration) -> RobotCalibration:
        """Save a calibration to the file; returns it with its new revision.

        The saved turns of the servos are kept for the new revision, except for spools that were calibrated.

        Raises:
            CalibrationError: there is no file to save to, or it could not be written.
        """
        if self.path is None:
            raise self._no_file()
        return save_calibration(self.path, calibration, before_it_counts=self._renew_turns)

    def _renew_turns(self, before: RobotCalibration | None, saved: RobotCalibration) -> None:
        assert self.path is not None
        readings: Mapping[str, ServoReading] = {}
        with contextlib.suppress(BusError):
            readings = self.read()
        renew_turns(self.path, before, saved, make_spools(self.robot, None), readings)

    @staticmethod
    def _no_file() -> CalibrationError:
        return CalibrationError("an emulated bus has no calibration file of its own; name one to save to.")


def with_fit(calibration: RobotCalibration, actuator: str, sensor: str, fit: LineFit) -> RobotCalibration:
    """Copy of a calibration in which the sensor of one actuator has a new line, dated now."""
    return calibration.with_sensor(actuator, SensorCalibration.of(sensor, fit, timestamp()))
