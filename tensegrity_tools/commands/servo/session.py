"""Session of a servo command: open bus of a robot, one reading per cycle, and its calibration.

Emulated servos live in this process; their time advances by one period per reading.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tensegrity_driver.bus.control_tables import model_named
from tensegrity_driver.bus.identity import PSEUDO_TERMINALS, BusIdentity
from tensegrity_driver.bus.statistics import BusReading
from tensegrity_driver.calibration.calibrated_spools import make_spools, servo_rows
from tensegrity_driver.calibration.calibration_store import CalibrationStore
from tensegrity_driver.hardware.open_hardware import EMULATED, choose_hardware
from tensegrity_driver.hardware.serial_hardware import SerialHardware
from tensegrity_driver.hardware.settings import HardwareSettings, hardware_settings
from tensegrity_driver.servos.servo_group import ServoGroup
from tensegrity_driver.spools.readings import ServoReading
from tensegrity_driver.spools.spool import Spool
from tensegrity_dynamics.errors import BusError, TensegrityError, unknown_name
from tensegrity_dynamics.robots.robot import Robot

from ...output import progress

PSEUDO_TERMINAL_PATIENCE_S = 0.1
"""Time to wait for an answer through a pseudo-terminal [s], as the other program may be delayed."""
NO_FILE = "emulated servos have no calibration file of their own; name one with --calibration."
COMPILING = "starting the emulated robot (the first time its kernels are compiled)"


@dataclass(frozen=True)
class BusOptions:
    """Options of all commands that open the bus of a robot.

    Attributes:
        port, board: serial ports of servos and potentiometer board, see `choose_port`.
        calibration: path of the calibration file; None: the one of the robot file.
    """

    port: str = ""
    board: str = ""
    calibration: Path | None = None


def choose_port(port: str) -> str:
    """Named port, or the only USB serial adapter; raises TensegrityError if there is none or more than one."""
    if port:
        return port
    from serial.tools.list_ports import comports

    adapters = sorted(each.device for each in comports() if each.vid is not None)
    if len(adapters) == 1:
        return str(adapters[0])
    if not adapters:
        raise TensegrityError(
            "no USB serial adapter is plugged in; plug it in, or name the port: --port /dev/ttyUSB0, or --port "
            "emulated to try without hardware."
        )
    raise TensegrityError(f"there are several serial adapters ({', '.join(adapters)}); choose one with --port.")


def patience_for(port: str) -> float | None:
    """Time to wait for packets beyond their wire time [s]; None: determined by the latency timer of the adapter."""
    return PSEUDO_TERMINAL_PATIENCE_S if os.path.realpath(port).startswith(PSEUDO_TERMINALS) else None


@dataclass
class ServoSession:
    """Open bus of a robot.

    Attributes:
        robot: robot with servos. settings: hardware settings. hardware: hardware at the ports. bus: servos and board.
        store: store of the calibration; its path is None if nothing can be saved.
        problems: errors of the check of the bus; empty without errors. health: state of the bus in the last cycle.
    """

    robot: Robot
    settings: HardwareSettings
    hardware: SerialHardware
    bus: ServoGroup
    store: CalibrationStore
    problems: str = ""
    health: BusReading = field(default_factory=BusReading)

    @property
    def period(self) -> float:
        """Period of the bus cycle [s]."""
        return self.settings.safety.period

    def read(self) -> Mapping[str, ServoReading]:
        """Wait for one period and read all servos, by actuator; raises BusError while the port is missing."""
        if self.hardware.steps_time:
            self.hardware.advance(self.period)
        else:
            time.sleep(self.period)
        readings, self.health = self.bus.read()
        return readings

    def uncalibrated_spools(self) -> dict[str, Spool]:
        """Spools by actuator with slopes by their radii, valid only for changes of length."""
        return make_spools(self.robot, None)


def select_actuators(robot: Robot, names: list[str]) -> list[str]:
    """Named actuators, or all with a servo; raises TensegrityError for an unknown one."""
    available = [str(row["actuator"]) for row in servo_rows(robot)]
    for name in names:
        if name not in available:
            raise TensegrityError(unknown_name("actuator with a servo", name, available))
    return list(dict.fromkeys(names)) or available


@contextlib.contextmanager
def open_session(robot: Robot, options: BusOptions, *, allow_problems: bool = False) -> Iterator[ServoSession]:
    """Open the bus of a robot; at the end it is closed, and the servos keep the last command.

    Args:
        robot: robot with servos. options: ports and calibration file.
        allow_problems: whether errors of single servos are stored in `problems` instead of raised.

    Raises:
        TensegrityError: no servos. BusError: error of the port, a servo or the board.
    """
    settings = hardware_settings(robot, calibration=options.calibration)
    port = choose_port(options.port)
    emulated = port == EMULATED
    if emulated and options.board:
        raise TensegrityError("emulated servos bring their potentiometer board along; leave --board out.")
    with progress.status(COMPILING) if emulated else contextlib.nullcontext():
        hardware = choose_hardware(
            robot, port, options.board or None, own_time=emulated, patience=None if emulated else patience_for(port)
        )
    try:
        bus = hardware.make_bus(robot, settings)
        try:
            with progress.status("looking at every servo"):
                bus.open()
                problems = _check(bus, allow_problems)
            store = _calibration_store(robot, bus, hardware, options.calibration if emulated else settings.calibration)
            yield ServoSession(robot, settings, hardware, bus, store, problems)
        finally:
            bus.close()
    finally:
        hardware.close()


def _check(bus: ServoGroup, allow_problems: bool) -> str:
    try:
        bus.check()
    except BusError as error:
        if not allow_problems or not bus.bus.port.is_open:
            raise
        return str(error)
    return ""


def _calibration_store(robot: Robot, bus: ServoGroup, hardware: SerialHardware, path: Path | None) -> CalibrationStore:
    """Calibration store for the adapter of the bus and the servos of the file; exact, without file, for emulated
    servos."""
    numbers = tuple((int(row["id"]), model_named(row["model"]).number) for row in servo_rows(robot))
    identity = BusIdentity(bus.identity.adapter, numbers)
    exact = hardware.make_calibration(identity) if path is None else None
    store = CalibrationStore(robot, identity, path, exact)
    store.read = lambda: bus.read()[0]
    return store
