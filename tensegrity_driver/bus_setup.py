"""Which hardware a driver opens: the servos and the board behind serial ports, or emulated ones inside the program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robot import Robot

from .calibration_file import BusIdentity, RobotCalibration
from .driver_setup import HardwareLink
from .hardware_settings import HardwareSettings

EMULATED = "emulated"
"""The port that stands for emulated servos inside the program."""


class Hardware(Protocol):
    """What is driven, before it is opened."""

    @property
    def known(self) -> Callable[[BusIdentity], RobotCalibration] | None:
        """Makes the calibration where the lines are known without measuring; None: it is loaded from its file."""

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
    """

    known = None

    def __init__(self, port: str, board: str | None = None) -> None:
        self.port, self.board = port, board

    def open_bus(self, robot: Robot, settings: HardwareSettings) -> HardwareLink:
        """Open both ports and check every servo; raises BusError."""
        from .servo_bus import open_servo_bus

        return open_servo_bus(robot, settings, self.port, self.board)

    def advance(self, seconds: float) -> None:
        """Time passes by itself."""

    def close(self) -> None:
        """Nothing is held between openings."""


def choose_hardware(robot: Robot, port: str, board: str | None, *, own_time: bool = False) -> Hardware:
    """The hardware behind a port.

    Args:
        robot: with servos. port, board: serial ports, or EMULATED and None.
        own_time: the hardware's time passes only by `advance`; only emulated servos can do that.

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
    return SerialHardware(port, board)
