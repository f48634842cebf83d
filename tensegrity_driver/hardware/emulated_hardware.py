"""Emulated servos as hardware: the bytes of real ones over pseudo-terminals, with an exact calibration.

The calibration of emulated spools follows from their geometry. It serves the driver in the same process directly, and
a driver in another process through a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tensegrity_dynamics.robots.robot import Robot

from ..bus.identity import EMULATED_ADAPTER, BusIdentity
from ..bus.serial_port import SerialPort
from ..calibration.calibration_file import (
    RobotCalibration,
    SensorCalibration,
    hardware_fingerprint,
    save_calibration,
)
from ..emulator.emulated_robot import EmulatedRobot, MakeBoard
from ..spools.spool import Line
from .serial_hardware import SerialHardware

FIXED_DATE = "2000-01-01T00:00:00+00:00"
"""Date of exact calibrations, constant so that one robot always yields the same file."""
PACKET_PATIENCE_S = 0.03
"""s to wait for the thread of emulated servos in this process before their instructions are executed here."""
TERMINAL_PATIENCE_S = 0.07
"""s for bytes to pass a pseudo-terminal, which the kernel may delay on a busy machine."""
LONGEST_CYCLE_PERIODS = 50.0
"""Longest bus cycle in planned periods: emulated servos wait, so that a busy machine is no fault."""


def exact_calibration(robot: Robot, lines: Mapping[str, Mapping[str, Line]], identity: BusIdentity) -> RobotCalibration:
    """Calibration from exact lines, by actuator, then by sensor; intervals have zero width."""
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
                date=FIXED_DATE,
            )
            for sensor, line in of_actuator.items()
        }
        for name, of_actuator in lines.items()
    }
    return RobotCalibration(robot.name, hardware_fingerprint(robot.servos), identity, sensors, FIXED_DATE)


class EmulatedPort(SerialPort):
    """Port to servos of this process: an answer is missing only if the servos have executed all that was sent.

    Args:
        path, baud_rate: of the pseudo-terminal.
        emulated: the robot behind it.
    """

    def __init__(self, path: str, baud_rate: int, emulated: EmulatedRobot) -> None:
        super().__init__(path, baud_rate, patience=PACKET_PATIENCE_S)
        self._emulated = emulated

    def grace(self) -> float:
        """Execute what was sent, as the thread that does so may not have had its turn; time [s] for the answer."""
        self._emulated.execute_pending()
        return TERMINAL_PATIENCE_S


class EmulatedHardware(SerialHardware):
    """A robot emulated in this process, behind the pseudo-terminals of its servos and its board.

    Args:
        robot: a structure with servos.
        realtime: its time follows the clock, but waits for a driver that stands still, so that a busy machine makes no
            servo stop by itself; else it passes only by `advance`. make_board: see `EmulatedRobot`.

    Raises:
        BusError: a robot that cannot be emulated.
    """

    overrun = LONGEST_CYCLE_PERIODS

    def __init__(self, robot: Robot, *, realtime: bool = False, make_board: MakeBoard | None = None) -> None:
        self.steps_time = not realtime
        self.emulated = EmulatedRobot(robot, realtime=realtime, make_board=make_board, waits=True)
        super().__init__(self.emulated.servo_port, self.emulated.board_port, patience=PACKET_PATIENCE_S)

    def make_port(self, path: str, baud_rate: int) -> SerialPort:
        """One of the ports, not yet open."""
        return EmulatedPort(path, baud_rate, self.emulated)

    def make_calibration(self, identity: BusIdentity) -> RobotCalibration:
        """Exact calibration at the present turn counts of the servos."""
        return exact_calibration(self.emulated.robot, _lines(self.emulated), identity)

    def advance(self, seconds: float) -> None:
        """Advance the emulated robot, up to the present where it follows the clock; reports what ended it."""
        if self.steps_time:
            self.emulated.advance(seconds)
        else:
            self.emulated.catch_up()

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
        identity = BusIdentity(EMULATED_ADAPTER, tuple((each.id, each.number) for each in emulated.identity))
        lines = _lines(emulated)
    return save_calibration(path, exact_calibration(robot, lines, identity))


def _lines(emulated: EmulatedRobot) -> dict[str, dict[str, Line]]:
    return {each.actuator: emulated.lines(each.actuator) for each in emulated.identity}
