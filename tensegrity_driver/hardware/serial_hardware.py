"""Which hardware a driver opens: the servos and the board behind serial ports, or emulated ones inside the program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tensegrity_dynamics.errors import BusError, TensegrityError
from tensegrity_dynamics.robots.robot import Robot

from ..bus.dynamixel_bus import Bus
from ..bus.potentiometer_board import PotentiometerBoard
from ..bus.serial_port import SerialPort
from ..calibration.calibrated_spools import make_spools
from ..calibration.calibration_file import BusIdentity, RobotCalibration
from ..driver import HardwareLink
from ..servos.servo_group import ServoGroup
from ..spools.readings import Drive, DriveCommand, Spool
from .settings import HardwareSettings

EMULATED = "emulated"
"""The port that stands for emulated servos inside the program."""


class Hardware(Protocol):
    """What is driven, before it is opened."""

    @property
    def known(self) -> Callable[[BusIdentity], RobotCalibration] | None:
        """Makes the calibration where the lines are known without measuring; None: it is loaded from its file."""

    @property
    def overrun(self) -> float | None:
        """Periods that a cycle may take where that is no matter of safety; None: as the robot's file says."""

    def open_bus(self, robot: Robot, settings: HardwareSettings) -> HardwareLink:
        """Open the bus and check everything on it; raises BusError."""

    def advance(self, seconds: float) -> None:
        """Let time pass where it does not pass by itself."""

    def close(self) -> None:
        """Let go of everything."""


class SerialHardware:
    """Servos behind a serial port, and the potentiometer board behind another.

    Args:
        port: of the servos, such as /dev/ttyUSB0. board: of the board, or None.
        patience: s to wait for a packet beyond its time on the wire; None takes what the adapter needs.
    """

    known = None
    overrun = None

    def __init__(self, port: str, board: str | None = None, *, patience: float | None = None) -> None:
        self.port, self.board, self.patience = port, board, patience

    def open_bus(self, robot: Robot, settings: HardwareSettings) -> HardwareLink:
        """Open both ports and check every servo; nothing moves.

        Raises:
            BusError: a port, a servo or the board; says all that is wrong.
        """
        bus = self.make_bus(robot, settings)
        try:
            bus.open()
            bus.check()
        except BusError:
            bus.close()
            raise
        return bus

    def make_bus(self, robot: Robot, settings: HardwareSettings) -> ServoGroup:
        """The bus, not yet open.

        Raises:
            BusError: servos that need a potentiometer board, and no port is given for one.
        """
        spools = make_spools(robot, None)
        needy = [name for name, spool in spools.items() if spool.measured_by == "potentiometer"]
        if needy and self.board is None:
            raise BusError(
                f"the lengths of {', '.join(needy)} are measured by potentiometers, but no port is given for their "
                "board; name it by board_port (or --board)."
            )
        board = None
        if self.board is not None and settings.board_channels:
            board = PotentiometerBoard(
                SerialPort(self.board, settings.board_baud_rate, patience=self.patience), settings.board_channels
            )
        rate, protocol = int(robot.servos["baud_rate"]), int(robot.servos["protocol"])
        return ServoGroup(
            robot.servos,
            Bus(SerialPort(self.port, rate, patience=self.patience), protocol),
            board,
            ceilings={name: spool.command(_at_rest(spool)) for name, spool in spools.items()},
        )

    def advance(self, seconds: float) -> None:
        """Time passes by itself."""

    def close(self) -> None:
        """Nothing is held between openings."""


def _at_rest(spool: Spool) -> DriveCommand:
    """At rest, at no more than the rate and the effort of the actuator."""
    return DriveCommand(Drive.VELOCITY, 0.0, spool.actuator.rate, spool.actuator.effort)


def choose_hardware(
    robot: Robot, port: str, board: str | None, *, own_time: bool = False, patience: float | None = None
) -> Hardware:
    """The hardware behind a port.

    Args:
        robot: with servos. port, board: serial ports, or EMULATED and None.
        own_time: the hardware's time passes only by `advance`; only emulated servos can do that.
        patience: s to wait for a packet beyond its time on the wire; None takes what the adapter needs.

    Raises:
        TensegrityError: no port, or one whose time cannot be stopped.
    """
    if not port:
        raise TensegrityError(
            "no port is given; name the serial port of the servos, such as port:=/dev/ttyUSB0, or port:=emulated."
        )
    if port == EMULATED:
        from .emulated_hardware import EmulatedHardware

        return EmulatedHardware(robot, realtime=not own_time)
    if own_time:
        raise TensegrityError(f"lock-step stops the time, which the servos at {port} cannot; it needs port:=emulated.")
    return SerialHardware(port, board, patience=patience)
