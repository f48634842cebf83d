"""Servos at a serial port and the potentiometer board at a second one, or all servos at the board."""

from __future__ import annotations

from tensegrity_dynamics.errors import BusError
from tensegrity_dynamics.robots.robot import Robot

from ..bus.dynamixel_bus import Bus
from ..bus.potentiometer_board import PotentiometerBoard
from ..bus.serial_port import SerialPort, check_port
from ..calibration.calibrated_spools import make_spools, servo_rows
from ..servos.board_group import BoardGroup
from ..servos.servo_group import ServoGroup
from ..spools.readings import Drive, DriveCommand
from ..spools.spool import Spool
from .hardware import Hardware, HardwareLink
from .settings import HardwareSettings


class SerialHardware(Hardware):
    """Servos and potentiometer board at serial ports.

    Args:
        port: port of the servos, such as /dev/ttyUSB0. board: port of the board, or None. If the board drives the
            servos (`position_loop: board`), its port is the only one: `board`, or `port` if `board` is None.
        patience: time to wait for a packet beyond its wire time [s]; None: determined by the latency timer of the USB
            adapter.

    Attributes:
        last_words: wheels stop if this process ends or stands still; emulated servos in this process end with it.
    """

    last_words = True

    def __init__(self, port: str, board: str | None = None, *, patience: float | None = None) -> None:
        self.port, self.board, self.patience = port, board, patience

    def check_ports(self, robot: Robot) -> None:
        """Check the ports before anything is started; no port is opened, since opening resets a board.

        Raises:
            BusError: a port is missing, is not a serial port or may not be used.
        """
        if robot.servos.get("position_loop") == "board":
            check_port(self.board or self.port)
            return
        check_port(self.port)
        self._check_board(robot)
        if self.board is not None:
            check_port(self.board)

    def open_bus(self, robot: Robot, settings: HardwareSettings) -> HardwareLink:
        """Open the ports and check every servo (a board that drives servos checks them itself); nothing moves.

        Raises:
            BusError: error of a port, a servo or the board; the message lists all errors.
        """
        by_board = robot.servos.get("position_loop") == "board"
        bus = self.make_board(robot, settings) if by_board else self.make_bus(robot, settings)
        try:
            bus.open()
            bus.check()
        except BusError:
            bus.close()
            raise
        return bus

    def make_board(self, robot: Robot, settings: HardwareSettings) -> BoardGroup:
        """Board that drives the servos, not yet open."""
        port = self.make_port(self.board or self.port, settings.board_baud_rate)
        return BoardGroup(servo_rows(robot), PotentiometerBoard(port, settings.board_channels))

    def make_bus(self, robot: Robot, settings: HardwareSettings) -> ServoGroup:
        """Servo group, not yet open.

        Raises:
            BusError: spools are measured by potentiometers, but no port is given for the board.
        """
        spools = self._check_board(robot)
        board = None
        if self.board is not None and settings.board_channels:
            board = PotentiometerBoard(self.make_port(self.board, settings.board_baud_rate), settings.board_channels)
        rate, protocol = int(robot.servos["baud_rate"]), int(robot.servos["protocol"])
        group = ServoGroup(
            robot.servos,
            Bus(self.make_port(self.port, rate), protocol),
            board,
            ceilings={name: spool.command(_at_rest(spool)) for name, spool in spools.items()},
            last_words=self.last_words,
        )
        if board is not None and robot.servos.get("position_loop") == "board":
            group.identity_port = board.port  # servos temporarily at an adapter: calibration of the board
        return group

    def _check_board(self, robot: Robot) -> dict[str, Spool]:
        """Spools by actuator; raises BusError if potentiometers measure some, but no port is given for the board."""
        spools = make_spools(robot, None)
        by_board = [name for name, spool in spools.items() if spool.measured_by == "potentiometer"]
        if by_board and self.board is None:
            raise BusError(
                f"the lengths of {', '.join(by_board)} are measured by potentiometers, but no port is given for their "
                "board; name it by `--board` (commands) or `board_port` (nodes and launch files)."
            )
        return spools

    def make_port(self, path: str, baud_rate: int) -> SerialPort:
        """Port of the servos or the board, not yet open."""
        return SerialPort(path, baud_rate, patience=self.patience)


def _at_rest(spool: Spool) -> DriveCommand:
    """Command of zero velocity with the rate and effort limits of the actuator."""
    return DriveCommand(Drive.VELOCITY, 0.0, spool.actuator.rate, spool.actuator.effort)
