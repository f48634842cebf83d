"""Emulated servos as hardware: the same bytes as real servos over pseudo-terminals, with an exact calibration.

The calibration of emulated spools follows from their geometry. A driver in the same process receives it directly, a
driver in another process through a file.
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
"""Date of exact calibrations, constant so that a robot always yields the same file."""
PACKET_PATIENCE_S = 0.03
"""Time to wait for the thread of the emulated servos before the port executes their instructions itself [s]."""
TERMINAL_PATIENCE_S = 0.07
"""Time for bytes to pass a pseudo-terminal [s]; the kernel may delay them on a busy computer."""
LONGEST_CYCLE_PERIODS = 50.0
"""Longest bus cycle in planned periods. Emulated servos wait, so a delay on a busy computer is not a fault."""


def exact_calibration(robot: Robot, lines: Mapping[str, Mapping[str, Line]], identity: BusIdentity) -> RobotCalibration:
    """Calibration from exact lines by actuator and sensor; its confidence intervals have zero width."""
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
    """Port to servos emulated in this process: a missing answer counts only after the servos have executed all packets.

    Args:
        path, baud_rate: path and speed of the pseudo-terminal [bit/s].
        emulated: emulated robot at its other end.
    """

    def __init__(self, path: str, baud_rate: int, emulated: EmulatedRobot) -> None:
        super().__init__(path, baud_rate, patience=PACKET_PATIENCE_S)
        self._emulated = emulated

    def grace(self) -> float:
        """Execute packets that the thread of the servos has not executed yet; returns the time for the answer [s]."""
        self._emulated.execute_pending()
        return TERMINAL_PATIENCE_S


class EmulatedHardware(SerialHardware):
    """Robot emulated in this process, at pseudo-terminals for its servos and its board.

    Args:
        robot: structure with servos.
        realtime: whether its time follows the clock. The time then still waits for a driver that is delayed, so that no
            servo stops because of a busy computer. False: the time passes only by `advance`.
        make_board: see `EmulatedRobot`.

    Raises:
        BusError: a robot that cannot be emulated.
    """

    overrun, last_words = LONGEST_CYCLE_PERIODS, False

    def __init__(self, robot: Robot, *, realtime: bool = False, make_board: MakeBoard | None = None) -> None:
        self.steps_time = not realtime
        self.emulated = EmulatedRobot(robot, realtime=realtime, make_board=make_board, waits=True)
        super().__init__(self.emulated.servo_port, self.emulated.board_port, patience=PACKET_PATIENCE_S)

    def make_port(self, path: str, baud_rate: int) -> SerialPort:
        """Port of the servos or the board, not yet open."""
        return EmulatedPort(path, baud_rate, self.emulated)

    def make_calibration(self, identity: BusIdentity) -> RobotCalibration:
        """Exact calibration at the present turn counts of the servos."""
        return exact_calibration(self.emulated.robot, _lines(self.emulated), identity)

    def advance(self, seconds: float) -> None:
        """Advance the emulated robot, up to the present if it follows the clock; raises the error that ended it."""
        if self.steps_time:
            self.emulated.advance(seconds)
        else:
            self.emulated.catch_up()

    def close(self) -> None:
        """End the emulated robot."""
        self.emulated.close()


def calibrate_emulated(robot: Robot, path: Path) -> RobotCalibration:
    """Save the initial calibration of an emulated robot for a driver in another process.

    Args:
        robot: structure with servos. path: path of the calibration file.

    Raises:
        BusError: a robot that cannot be emulated. CalibrationError: the file could not be written.
    """
    with EmulatedRobot(robot) as emulated:
        identity = BusIdentity(EMULATED_ADAPTER, tuple((each.id, each.number) for each in emulated.identity))
        lines = _lines(emulated)
    return save_calibration(path, exact_calibration(robot, lines, identity))


def _lines(emulated: EmulatedRobot) -> dict[str, dict[str, Line]]:
    return {each.actuator: emulated.lines(each.actuator) for each in emulated.identity}
