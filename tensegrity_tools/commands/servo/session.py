"""What the servo commands work on: the bus of a robot, opened and looked at, one reading per cycle, small motions.

Emulated servos live in this process and move only while they are read, one period per cycle.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tensegrity_driver.bus.control_tables import model_named
from tensegrity_driver.calibration.calibrated_spools import make_spools
from tensegrity_driver.calibration.calibration_file import (
    BusIdentity,
    RobotCalibration,
    hardware_fingerprint,
    load_calibration,
    save_calibration,
)
from tensegrity_driver.calibration.line_fit import CalibrationError
from tensegrity_driver.hardware.serial_hardware import EMULATED, SerialHardware
from tensegrity_driver.hardware.settings import HardwareSettings, hardware_settings, servo_rows
from tensegrity_driver.servos.servo_group import PSEUDO, ServoGroup
from tensegrity_driver.spools.readings import BusReading, ServoReading, Spool
from tensegrity_dynamics.errors import BusError, TensegrityError, unknown_name
from tensegrity_dynamics.robots.robot import Robot

from ...output import progress

PATIENCE = 0.1
"""s for an answer through a pseudo-terminal: another program answers there, which may have much else to do."""
NO_FILE = "emulated servos have no calibration file of their own; name one with --calibration."
MOST_LENGTH = 10.0
"""m above which a length without a unit was surely meant in another one."""


def choose_port(port: str) -> str:
    """The port asked for, or the only serial adapter there is; raises TensegrityError where that is not clear."""
    if port:
        return port
    from serial.tools.list_ports import comports

    found = sorted(each.device for each in comports() if each.vid is not None)
    if len(found) == 1:
        return str(found[0])
    if not found:
        raise TensegrityError(
            "no USB serial adapter is plugged in; plug it in, or name the port: --port /dev/ttyUSB0, or --port "
            "emulated to try without hardware."
        )
    raise TensegrityError(f"there are several serial adapters ({', '.join(found)}); choose one with --port.")


def patience_for(port: str) -> float | None:
    """s to wait for packets beyond their time on the wire; None: what the adapter needs."""
    return PATIENCE if os.path.realpath(port).startswith(PSEUDO) else None


@dataclass
class Rig:
    """The bus of a robot, open.

    Attributes:
        robot: with servos. settings: of its hardware. bus: its servos and board. path: of the calibration file; None
            where nothing is saved. emulated: the hardware inside this process, or None.
        problems: what was wrong when the bus was looked at; empty where all is well.
    """

    robot: Robot
    settings: HardwareSettings
    bus: ServoGroup
    path: Path | None
    emulated: Any = None
    problems: str = ""
    health: BusReading = field(default_factory=BusReading)

    @property
    def period(self) -> float:
        """s of a bus cycle."""
        return self.settings.safety.period

    @property
    def identity(self) -> BusIdentity:
        """The bus as the robot's file says, behind the adapter that is there."""
        numbers = tuple((int(row["id"]), model_named(row["model"]).number) for row in servo_rows(self.robot))
        return BusIdentity(self.bus.identity.adapter, numbers)

    def read(self) -> Mapping[str, ServoReading]:
        """One cycle: let a period pass, then read everything; raises BusError while the port is gone."""
        if self.emulated is None:
            time.sleep(self.period)
        else:
            self.emulated.advance(self.period)
        readings, self.health = self.bus.read()
        return readings

    def rough_spools(self) -> dict[str, Spool]:
        """Spools by actuator with slopes from their radii: good for changes of length only."""
        return make_spools(self.robot, None)

    def names(self, asked: list[str]) -> list[str]:
        """The actuators asked for, or all; raises TensegrityError for one without a servo."""
        known = [row["actuator"] for row in servo_rows(self.robot)]
        return known_names(known, asked)

    def calibration(self) -> RobotCalibration | None:
        """The calibration of this robot and bus, or None where there is none yet.

        Raises:
            CalibrationError: the file is damaged, or for another robot, wiring or bus.
        """
        if self.path is None and self.emulated is not None:
            known: RobotCalibration = self.emulated.known(self.identity)
            return known
        if self.path is None or not self.path.exists():
            return None
        hardware = hardware_fingerprint(self.robot.servos)
        return load_calibration(self.path, robot=self.robot.name, hardware=hardware, bus=self.identity)

    def empty_calibration(self, revision: int = 0) -> RobotCalibration:
        """A calibration of nothing yet."""
        hardware = hardware_fingerprint(self.robot.servos)
        return RobotCalibration(self.robot.name, hardware, self.identity, {}, now(), revision)

    def save(self, calibration: RobotCalibration) -> RobotCalibration:
        """Save it to the file of this rig; raises CalibrationError."""
        if self.path is None:
            raise CalibrationError(NO_FILE)
        return save_calibration(self.path, calibration)


def known_names(known: list[str], asked: list[str]) -> list[str]:
    """Those asked for, or all; raises TensegrityError for an unknown one."""
    for name in asked:
        if name not in known:
            raise TensegrityError(unknown_name("actuator with a servo", name, known))
    return list(dict.fromkeys(asked)) or known


def now() -> str:
    """The date as calibrations carry it."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


@contextlib.contextmanager
def open_rig(robot: Robot, port: str, board: str, calibration: Path | None, *, lenient: bool = False) -> Iterator[Rig]:
    """The bus of a robot; closed at the end, with its servos as they were told last.

    Args:
        robot: with servos. port, board: serial ports, or EMULATED and "". calibration: file; None: the robot's own.
        lenient: what is wrong with servos is told in `problems` instead of raised.

    Raises:
        TensegrityError: no servos. BusError: the port, a servo or the board.
    """
    settings = hardware_settings(robot, calibration=calibration)
    port = choose_port(port)
    emulated: Any = None
    path: Path | None = settings.calibration
    if port == EMULATED:
        if board:
            raise TensegrityError("emulated servos bring their potentiometer board along; leave --board out.")
        from tensegrity_driver.hardware.emulated_hardware import EmulatedHardware

        with progress.status("starting the emulated robot (the first time its kernels are compiled)"):
            emulated = EmulatedHardware(robot)
        serial = SerialHardware(emulated.emulated.servo_port, emulated.emulated.board_port, patience=PATIENCE)
        path = calibration
    else:
        serial = SerialHardware(port, board or None, patience=patience_for(port))
    try:
        bus = serial.make_bus(robot, settings)
        try:
            with progress.status("looking at every servo"):
                bus.open()
                problems = _look(bus, lenient)
            yield Rig(robot, settings, bus, path, emulated, problems)
        finally:
            bus.close()
    finally:
        if emulated is not None:
            emulated.close()


def _look(bus: ServoGroup, lenient: bool) -> str:
    try:
        bus.check()
    except BusError as problem:
        if not lenient or not bus.bus.port.is_open:
            raise
        return str(problem)
    return ""
