"""Servos behind a serial port with the potentiometer board behind a second one, or all of them behind the board."""

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
        port: of the servos, such as /dev/ttyUSB0. board: of the board, or None. Where the board drives the servos
            (`position_loop: board`), its port is the only one: `board`, or `port` where that is None.
        patience: s to wait for a packet beyond its time on the wire; None: by the latency timer of the USB adapter.
    """

    def __init__(self, port: str, board: str | None = None, *, patience: float | None = None) -> None:
        self.port, self.board, self.patience = port, board, patience

    def check_ports(self, robot: Robot) -> None:
        """Refuse ports that are none, before anything is started; nothing is opened, so no board begins anew.

        Raises:
            BusError: a port is missing, is no serial port or may not be used.
        """
        if robot.servos.get("position_loop") == "board":
            check_port(self.board or self.port)
            return
        check_port(self.port)
        self._check_board(robot)
        if self.board is not None:
            check_port(self.board)

    def open_bus(self, robot: Robot, settings: HardwareSettings) -> HardwareLink:
        """Open the ports and check every servo (a board that drives them checks them itself); nothing moves.

        Raises:
            BusError: a port, a servo or the board; lists everything that is wrong.
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
        """The board that drives the servos, not yet open."""
        port = self.make_port(self.board or self.port, settings.board_baud_rate)
        return BoardGroup(servo_rows(robot), PotentiometerBoard(port, settings.board_channels))

    def make_bus(self, robot: Robot, settings: HardwareSettings) -> ServoGroup:
        """The servo group, not yet open.

        Raises:
            BusError: spools measured by potentiometers, and no port for their board.
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
        )
        if board is not None and robot.servos.get("position_loop") == "board":
            group.identity_port = board.port  # servos at an adapter for a while: their calibration is the board's
        return group

    def _check_board(self, robot: Robot) -> dict[str, Spool]:
        """The spools; raises BusError where potentiometers measure some, and no port of their board is given."""
        spools = make_spools(robot, None)
        by_board = [name for name, spool in spools.items() if spool.measured_by == "potentiometer"]
        if by_board and self.board is None:
            raise BusError(
                f"the lengths of {', '.join(by_board)} are measured by potentiometers, but no port is given for their "
                "board; name it by `--board` (commands) or `board_port` (nodes and launch files)."
            )
        return spools

    def make_port(self, path: str, baud_rate: int) -> SerialPort:
        """One of the ports, not yet open."""
        return SerialPort(path, baud_rate, patience=self.patience)


def _at_rest(spool: Spool) -> DriveCommand:
    """Zero velocity with the rate and effort limits of the actuator."""
    return DriveCommand(Drive.VELOCITY, 0.0, spool.actuator.rate, spool.actuator.effort)
