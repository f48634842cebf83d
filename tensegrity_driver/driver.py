"""From a robot, its port and its calibration to a driver that runs; everything is checked before anything moves.

    driver = open_driver(robot, open_bus)      the bus, its servos, and the calibration made for them
    driver.begin(time)                         servos prepared, lengths measured, every tendon holds where it is
    driver.run(period, time())                 once per period
    driver.end(); driver.close()

No ROS, no clock and no thread is in here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Protocol

from tensegrity_dynamics.command_gate import Mode, Verdict
from tensegrity_dynamics.errors import BusError, CommandRefused, TensegrityError, unknown_name
from tensegrity_dynamics.robots.robot import Robot

from .calibration.calibrated_spools import make_loops, make_spools, rough_lines
from .calibration.calibration_file import (
    BusIdentity,
    RobotCalibration,
    SensorCalibration,
    hardware_fingerprint,
    load_calibration,
    save_calibration,
)
from .calibration.line_fit import CalibrationCheck, CalibrationError, calibrate_spool
from .calibration.turn_counter import check_turns, recall_turns, remember_turns
from .driver_cycle import DriverCycle
from .hardware.settings import HardwareSettings, hardware_settings, servo_rows
from .safety.faults import Fault, FaultKind
from .safety.safety_layer import SafetyStep
from .spools.readings import ServoLink, Spool

TRIES = 5
"""Readings in which all lengths must be known once before a robot is taken over."""
PREPARED_AGAIN = frozenset(
    {FaultKind.SERVO_RESTARTED, FaultKind.WATCHDOG_UNARMED, FaultKind.OVERLOAD, FaultKind.HARDWARE_ERROR}
)
"""Faults after which a servo must be set up again."""


class HardwareLink(ServoLink, Protocol):
    """What a driver needs of a bus beyond reading and writing."""

    @property
    def identity(self) -> BusIdentity:
        """Which bus this is: adapter, ids and models as found on it."""

    @property
    def switched_off(self) -> Sequence[str]:
        """Actuators whose servos count turns and were switched off since they were last driven, as found on opening."""

    def prepare(self, names: Iterable[str] | None = None) -> None:
        """Modes, limits, watchdogs and torque on, so that nothing moves; raises BusError naming what failed."""

    def unprepared(self) -> Sequence[str]:
        """Actuators whose servos have restarted and get no commands until they are prepared."""

    def torque_off(self) -> None:
        """All servos without torque."""

    def close(self) -> None:
        """Let go of the port."""

    def notes(self) -> Sequence[str]:
        """What a builder should know about this bus, such as settings that make it slow."""

    def statistics(self) -> Mapping[str, object]:
        """How the bus has done so far, for people."""


class Driver:
    """An open bus and everything that drives it.

    Args:
        robot: with servos. link: open and checked. settings: of the hardware. calibration: for this robot and bus.
        path: of the calibration file, or None where there is none to save to.
    """

    def __init__(
        self,
        robot: Robot,
        link: HardwareLink,
        settings: HardwareSettings,
        calibration: RobotCalibration,
        path: Path | None,
    ) -> None:
        self.robot, self.link, self.settings, self.path = robot, link, settings, path
        self.calibration = calibration
        self.cycle = self._make_cycle(calibration)
        self.active = False

    def _make_cycle(self, calibration: RobotCalibration) -> DriverCycle:
        spools = make_spools(self.robot, calibration)
        return DriverCycle(self.link, spools, make_loops(spools, self.period), self.settings.safety)

    @property
    def period(self) -> float:
        """Of a bus cycle as planned [s]."""
        return self.settings.safety.period

    @property
    def spools(self) -> dict[str, Spool]:
        """By actuator, as calibrated at present."""
        return dict(self.cycle.layer.spools)

    # -- running ---------------------------------------------------------------------------------------------------

    def begin(self, clock: Callable[[], float]) -> None:
        """Prepare the servos and take over from the measured lengths.

        Args:
            clock: tells the time that stamps commands [s]; preparing takes some of it.

        Raises:
            BusError: a servo could not be prepared. CommandRefused: a length is not known, turns were lost while a
                servo was off, or a fault is latched from before. Torque is off then.
        """
        try:
            self._check_turns()
            self.link.prepare()
            for left in reversed(range(TRIES)):
                try:
                    self.cycle.begin(clock())
                    break
                except CommandRefused:  # a single answer may be lost
                    if left == 0:
                        raise
        except TensegrityError:
            with contextlib.suppress(BusError):  # the first error is the one to tell
                self.link.torque_off()
            raise
        self.active = True

    def _check_turns(self) -> None:
        """Before torque comes on: servos that were switched off must stand where they stood. Raises CommandRefused."""
        memory = {} if self.path is None else recall_turns(self.path, self.calibration)
        doubtful = [name for name in self.link.switched_off if name in memory]
        if doubtful:
            check_turns(doubtful, self.spools, memory, self.link.read()[0])

    def command(
        self, names: Sequence[str], values: Sequence[float], mode: Mode, *, source: str, stamp: float, now: float
    ) -> Verdict:
        """Give one command to the gate; see `DriverCycle.command`."""
        return self.cycle.command(names, values, mode, source=source, stamp=stamp, now=now)

    def run(self, period: float, clock: float) -> SafetyStep:
        """One cycle; see `DriverCycle.run`."""
        return self.cycle.run(period, clock)

    def stop(self, reason: str) -> None:
        """Latch the emergency stop; all tendons hold from the next cycle on."""
        self.cycle.gate.stop(reason)

    def release_stop(self) -> bool:
        """Take commands again after an emergency stop; whether one was latched. Its fault is cleared by `clear`."""
        if self.cycle.gate.stopped is None:
            return False
        self.cycle.gate.release()
        return True

    def recover(self) -> None:
        """Prepare the servos again that have restarted, or that switched themselves off and can be asked to go on.

        Raises:
            BusError: a servo that does not take it.
        """
        kinds = {fault.tendon for fault in self.cycle.layer.latch.faults if fault.kind in PREPARED_AGAIN}
        again = [name for name in self.cycle.layer.spools if name in kinds or name in self.link.unprepared()]
        if self.active and again:
            self.link.prepare(again)

    def clear(self) -> tuple[Fault, ...]:
        """Clear the latched faults after a cycle in which their causes were gone; see `DriverCycle.clear`.

        A driver that is not active forgets them: it looks at everything anew before it takes over again.
        """
        if self.active:
            return self.cycle.clear()
        held = self.cycle.layer.latch.latched
        self.cycle = self._make_cycle(self.calibration)
        return held

    def end(self, *, release_torque: bool = False) -> None:
        """The last thing sent: hold, or torque off where asked for, verified by the bus.

        Raises:
            BusError: torque could not be switched off.
        """
        if not self.active:
            return
        self.active = False
        if self.path is not None:
            readings = {name: tendon.raw for name, tendon in self.cycle.readings.tendons.items()}
            with contextlib.suppress(CalibrationError):  # a full disk must not keep a robot from its end
                remember_turns(self.path, self.calibration, self.spools, readings)
        self.cycle.end(release_torque=release_torque)
        if release_torque:
            self.link.torque_off()

    def close(self) -> None:
        """Let go of the port; what was sent last holds."""
        self.link.close()

    def notes(self) -> Sequence[str]:
        """What a builder should know about the bus."""
        return self.link.notes()

    def statistics(self) -> Mapping[str, object]:
        """How the bus has done so far, for people."""
        return self.link.statistics()

    # -- calibrating -----------------------------------------------------------------------------------------------

    def calibrate(
        self, name: str, readings: Sequence[float], lengths: Sequence[float], *, save: bool = False
    ) -> CalibrationCheck:
        """Calibrate the sensor that measures one spool, and use it from now on.

        Args:
            name: its actuator. readings: counts or rad. lengths: m. save: to the calibration file as well.

        Raises:
            CalibrationError: no line through these points, or the file could not be saved; nothing has changed then.
            CommandRefused: the driver is running and no fault holds the tendon.
        """
        spool = self.cycle.layer.spools.get(name)
        if spool is None:
            raise TensegrityError(unknown_name("actuator with a servo", name, self.cycle.layer.spools))
        if self.active and not self.cycle.layer.latch.faults:
            raise CommandRefused(f"{name} is in use; call emergency_stop or deactivate the driver, then calibrate.")
        row = next(each for each in servo_rows(self.robot) if each["actuator"] == name)
        check = calibrate_spool(
            name, readings, lengths,
            expected_slope=rough_lines(row)[spool.measured_by].slope, limits=spool.actuator.position,
        )  # fmt: skip
        date = datetime.now(timezone.utc).isoformat(timespec="seconds")
        changed = self.calibration.with_sensor(name, SensorCalibration.of(spool.measured_by, check.fit, date))
        fresh = make_spools(self.robot, changed)[name]
        loop = make_loops({name: fresh}, self.period)[name]
        if save:
            changed = self._save(changed)
        self.calibration = changed
        if self.active:
            self.cycle.layer.replace_spool(fresh, loop)
        else:
            self.cycle = self._make_cycle(changed)
        return check

    def _save(self, calibration: RobotCalibration) -> RobotCalibration:
        if self.path is None:
            raise CalibrationError("an emulated bus has no calibration file of its own; name one to save to.")
        return save_calibration(self.path, calibration)


def open_driver(
    robot: Robot,
    open_bus: Callable[[Robot, HardwareSettings], HardwareLink],
    *,
    period: float | None = None,
    overrun: float | None = None,
    calibration: str | Path | None = None,
    known: Callable[[BusIdentity], RobotCalibration] | None = None,
) -> Driver:
    """Open the bus of a robot and check that it is the one that its calibration was made for.

    Args:
        robot: with servos.
        open_bus: opens the bus and checks every servo on it.
        period, overrun: of a bus cycle, see `hardware_settings`; None for those of the robot's file.
        calibration: path of the calibration file, or None for the one that the robot's file names.
        known: makes the calibration of a bus whose lines are known, such as an emulated one; None loads the file.

    Raises:
        TensegrityError: no servos or bad settings. BusError: the bus or a servo. CalibrationError: the calibration.
    """
    settings = hardware_settings(robot, period=period, overrun=overrun, calibration=calibration)
    link = open_bus(robot, settings)
    try:
        path: Path | None = settings.calibration
        if known is not None:
            loaded, path = known(link.identity), None if calibration is None else settings.calibration
        else:
            hardware = hardware_fingerprint(robot.servos)
            loaded = load_calibration(settings.calibration, robot=robot.name, hardware=hardware, bus=link.identity)
        return Driver(robot, link, settings, loaded, path)
    except TensegrityError:
        link.close()
        raise
