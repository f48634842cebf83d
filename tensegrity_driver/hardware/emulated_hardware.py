"""Emulated servos as the hardware of a driver: the same bytes over pseudo-terminals, and lines that are known.

Nobody has to measure what an emulated spool does: its calibration is written down here, for the driver that runs it in
its own process, and for one that finds it behind the ports of another process.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tensegrity_dynamics.robots.robot import Robot

from ..calibration.calibration_file import (
    BusIdentity,
    RobotCalibration,
    SensorCalibration,
    hardware_fingerprint,
    save_calibration,
)
from ..driver import HardwareLink
from ..emulator.emulated_robot import EmulatedRobot
from ..servos.servo_group import EMULATED
from ..spools.readings import Line
from .serial_hardware import SerialHardware
from .settings import HardwareSettings

BEGINNING = "2000-01-01T00:00:00+00:00"
"""Date of calibrations that nobody measured, so that the same robot always gets the same file."""

PATIENCE = 0.1
"""s for an answer of servos in the same program: no wire, but a machine that may have much else to do."""
OVERRUN = 50.0
"""Periods that a cycle may take: emulated servos wait, and a busy machine is no fault of theirs."""


def known_calibration(robot: Robot, lines: Mapping[str, Mapping[str, Line]], identity: BusIdentity) -> RobotCalibration:
    """The calibration of spools whose lines are known exactly: by actuator, then by sensor."""
    sensors = {
        name: {
            sensor: SensorCalibration(
                sensor=sensor,
                slope=line.slope,
                intercept=line.intercept,
                slope_interval=(line.slope, line.slope),
                intercept_interval=(line.intercept, line.intercept),
                confidence=0.95,
                deviation=0.0,
                points=2,
                outliers=0,
                date=BEGINNING,
            )
            for sensor, line in of.items()
        }
        for name, of in lines.items()
    }
    return RobotCalibration(robot.name, hardware_fingerprint(robot.servos), identity, sensors, BEGINNING)


class EmulatedHardware:
    """A robot emulated in this process.

    Args:
        robot: a structure with servos.
        realtime: its time passes with the clock; else only by `advance`.

    Raises:
        BusError: a robot that cannot be emulated.
    """

    overrun = OVERRUN

    def __init__(self, robot: Robot, *, realtime: bool = False) -> None:
        self._realtime = realtime
        self.emulated = EmulatedRobot(robot, realtime=realtime)
        self._serial = SerialHardware(self.emulated.servo_port, self.emulated.board_port, patience=PATIENCE)

    def open_bus(self, robot: Robot, settings: HardwareSettings) -> HardwareLink:
        """Open the ports of the emulated robot."""
        return self._serial.open_bus(robot, settings)

    def known(self, identity: BusIdentity) -> RobotCalibration:
        """The true calibration, as it is now."""
        lines = {each.actuator: self.emulated.lines(each.actuator) for each in self.emulated.identity}
        return known_calibration(self.emulated.robot, lines, identity)

    def advance(self, seconds: float) -> None:
        """Move the emulated world; one that moves with the clock has moved already."""
        if self._realtime:
            self.emulated.check()
        else:
            self.emulated.advance(seconds)

    def close(self) -> None:
        """End the emulated robot."""
        self.emulated.close()


def calibrate_emulated(robot: Robot, path: Path) -> RobotCalibration:
    """Save the calibration that an emulated robot has when it starts, for a driver in another process.

    Args:
        robot: a structure with servos. path: of the file.

    Raises:
        BusError: a robot that cannot be emulated. CalibrationError: the file could not be written.
    """
    with EmulatedRobot(robot) as emulated:
        identity = BusIdentity(EMULATED, tuple((each.id, each.number) for each in emulated.identity))
        lines = {each.actuator: emulated.lines(each.actuator) for each in emulated.identity}
    return save_calibration(path, known_calibration(robot, lines, identity))
