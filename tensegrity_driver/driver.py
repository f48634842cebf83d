"""Driver of a robot: an open bus with its calibration, checked before any motion, then run once per period.

    driver = open_driver(robot, hardware.open_bus)      bus, servos and their calibration
    driver.begin(time)                                  servos prepared, lengths measured, every tendon holds
    driver.command(names, values, mode, ...)            whenever a command arrives
    driver.run(period, time())                          once per period
    driver.end(); driver.close()

The driver contains no ROS, no clock and no thread.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tensegrity_dynamics.command_gate import CommandGate, Mode, Verdict
from tensegrity_dynamics.errors import BusError, CommandRefused, TensegrityError, unknown_name
from tensegrity_dynamics.robots.robot import Robot

from .bus.identity import BusIdentity
from .calibration.calibrated_spools import fit_spool, make_loops, make_spools, slope_warnings
from .calibration.calibration_file import RobotCalibration
from .calibration.calibration_store import CalibrationStore, with_fit
from .calibration.line_fit import CalibrationCheck, CalibrationError
from .calibration.turn_counter import MAX_LOOSE_TENSION, check_turns, load_turns, save_turns, void_turns
from .driver_cycle import DriverCycle
from .hardware.hardware import HardwareLink
from .hardware.settings import HardwareSettings, hardware_settings
from .safety.faults import UNTRUSTED_LENGTH, Fault, FaultKind
from .safety.safety_layer import SafetyStep
from .servos.board_group import BoardGroup
from .spools.position_loop import CycleCounter
from .spools.readings import DriveCommand, Readings, ServoReading
from .spools.spool import Spool

MAX_FIRST_READINGS = 5
"""Number of bus readings within which every length must be valid once; else `begin` fails."""
PREPARED_AGAIN = frozenset(
    {FaultKind.SERVO_RESTARTED, FaultKind.WATCHDOG_UNARMED, FaultKind.OVERLOAD, FaultKind.HARDWARE_ERROR}
)
"""Faults after which a servo must be prepared again."""


class Driver:
    """An open bus and its spools.

    Args:
        robot: robot with servos.
        link: open and checked bus.
        settings: settings of the hardware.
        calibration: calibration for this robot and this bus.
        store: store that saves it.

    Attributes:
        active: whether the driver is between `begin` and `end`.
    """

    def __init__(
        self,
        robot: Robot,
        link: HardwareLink,
        settings: HardwareSettings,
        calibration: RobotCalibration,
        store: CalibrationStore,
    ) -> None:
        self.robot, self.link, self.settings, self.store = robot, link, settings, store
        self.calibration = calibration
        self.active = False
        store.read = lambda: {} if self.active else self._positions()
        self._gate: CommandGate | None = None
        self._gains: dict[str, float] = robot.servos.get("gains") or {}
        self._cycle = self._make_cycle(calibration)
        self._gate = self._cycle.gate

    def _make_cycle(self, calibration: RobotCalibration) -> DriverCycle:
        spools = make_spools(self.robot, calibration)
        loops = make_loops(spools, self.period, self._gains)
        return DriverCycle(self.link, spools, loops, self.settings.safety, self._gate)

    # -- state -----------------------------------------------------------------------------------------------------

    @property
    def period(self) -> float:
        """Planned period of the bus cycle [s]."""
        return self.settings.safety.period

    @property
    def spools(self) -> dict[str, Spool]:
        """Spools by actuator, with the present calibration."""
        return dict(self._cycle.spools)

    @property
    def readings(self) -> Readings:
        """Readings of the last cycle."""
        return self._cycle.readings

    @property
    def sent(self) -> Mapping[str, DriveCommand]:
        """Last command written to each tendon."""
        return self._cycle.sent

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Present faults, including latched ones."""
        return self._cycle.faults

    @property
    def counter(self) -> CycleCounter:
        """Number, periods and overruns of the cycles so far."""
        return self._cycle.counter

    @property
    def identifying(self) -> bool:
        """Whether the spools are still being identified by small motions, one by one, and ignore commands."""
        return self._cycle.layer.identification is not None

    def warnings(self) -> tuple[str, ...]:
        """Properties of the bus and doubtful slopes of the calibration, one sentence each."""
        return (*self.link.warnings(), *slope_warnings(self.robot, self.calibration))

    def tension(self, name: str) -> float:
        """Estimated tension of a tendon [N]; nan if load and current do not indicate it at present.

        The faults of tension use this value: a servo in wheel mode must have wound in for some cycles before.
        """
        return self._cycle.layer.tension(name)

    def tendon_tension(self, name: str) -> float:
        """Estimated tension of a tendon [N]: the larger of the values with and without the force that accelerates its
        servo, as for faults."""
        tension, spool = self.tension(name), self._cycle.spools[name]
        carried = self._cycle.layer.carried_force(name)
        if not (spool.inertia and spool.pulls) or math.isnan(tension) or math.isnan(carried):
            return tension
        return max(tension, carried)

    # -- running ---------------------------------------------------------------------------------------------------

    def begin(self, clock: Callable[[], float]) -> None:
        """Prepare the servos and start from the measured lengths, at which all tendons hold.

        Args:
            clock: returns the time that stamps commands [s]; it is called after the preparation, which takes some time.

        Raises:
            BusError: a servo could not be prepared.
            CommandRefused: a length could not be read, turns were lost while a servo was off, or an earlier fault is
                latched. Torque is off in both cases.
        """
        try:
            self._check_turns()
            self._prepare()
            for left in reversed(range(MAX_FIRST_READINGS)):
                try:
                    self._cycle.begin(clock(), identify=True)
                    break
                except CommandRefused:  # a single answer may be lost
                    if left == 0:
                        raise
        except TensegrityError:
            with contextlib.suppress(BusError):  # report the first error, not its consequences
                self.link.torque_off()
            raise
        self.active = True

    def _prepare(self, names: Sequence[str] | None = None) -> None:
        """Prepare servos, and pass the limits of the spools to a board that closes the position loops. Raises
        BusError."""
        if isinstance(self.link, BoardGroup):
            self.link.spools = self.spools
        self.link.prepare(names)

    def _check_turns(self) -> None:
        """Compare servos that were switched off with their last positions, and void these, before torque is switched
        on.

        Raises:
            CommandRefused: a spool may have lost turns.
            CalibrationError: the file of turn counts cannot be read or written.
        """
        path = self.store.path
        if path is None:
            return
        if self.link.switched_off:
            turns = load_turns(path, self.calibration)
            check_turns(
                [name for name in self.link.switched_off if name in turns], self.spools, turns, self._positions()
            )
        void_turns(path, self.calibration, self.spools)

    def _positions(self) -> Mapping[str, ServoReading]:
        """Readings of all servos, repeated if an answer is missing."""
        readings = self.link.read()[0]
        for _ in range(MAX_FIRST_READINGS):
            if all(reading.age == 0 for reading in readings.values()):
                break
            readings = self.link.read()[0]
        return readings

    def command(
        self,
        names: Sequence[str],
        values: Sequence[Any],
        mode: Mode,
        *,
        source: str,
        stamp: float,
        now: float,
        session: int = 0,
        period: float = 0.0,
    ) -> Verdict:
        """Check one command; accepted set points are followed from the next cycle on.

        Args:
            names: actuators.
            values: one per actuator, in its own units by mode (also a `MovingPosition`), or an `ImpedanceSetPoint`.
            source: name of the sender; only one source may command at a time.
            stamp: time of the command [s].
            now: present time of the same clock [s].
            session: random number that the sender draws with every accepted goal and `hold`; 0 if it draws none.
            period: period of the sender [s], 0 for irregular commands.
        """
        return self._cycle.command(
            names, values, mode, source=source, session=session, stamp=stamp, now=now, period=period
        )

    def hear(self, source: str, session: int, now: float, names: Sequence[str]) -> None:
        """Note a command that arrived but was not checked; see `CommandStreams`."""
        streams = self._cycle.gate.streams
        if len(names) or not streams.announce(source, session, now):
            streams.hear(source, session, now)

    def see_publishers(self, names: Sequence[str]) -> None:
        """Set the present publishers of commands; with more than one the robot holds."""
        self._cycle.gate.streams.publishers = tuple(names)

    def run(self, period: float, clock: float, since_begin: Callable[[], float] | None = None) -> SafetyStep:
        """Run one bus cycle: read, detect faults, limit, write; see `DriverCycle.run`."""
        return self._cycle.run(period, clock, since_begin)

    def jog(self, name: str, length: float) -> None:
        """Move one tendon with a fault slowly to a length [m] within its limits, to remove the cause.

        Raises:
            CommandRefused: the tendon has no fault, or a fault after which its sensor or servo cannot be trusted.
        """
        self._cycle.layer.jog(name, length)

    def stop(self, reason: str) -> None:
        """Latch the emergency stop; all tendons hold from the next cycle on."""
        self._cycle.gate.stop(reason)

    def release_stop(self, now: float | None = None) -> bool:
        """Accept commands again after an emergency stop; returns whether one was latched. `clear` clears its fault.

        Streams of commands that began before are ignored, see `CommandStreams`.

        Args:
            now: present time of the clock that stamps commands [s], to recognise earlier commands by their stamps.
        """
        if self._cycle.gate.stopped is None:
            return False
        self._cycle.gate.release(now)
        return True

    def recover(self) -> None:
        """Prepare the servos again that have rebooted, or that switched themselves off and may continue.

        A spool that ran out without torque holds where it is then; it does not return to where its fault was found. If
        spools did not respond as commanded, all are identified again after the faults are cleared.

        Raises:
            BusError: a servo does not accept it.
        """
        faulty = {fault.tendon for fault in self.faults if fault.kind in PREPARED_AGAIN}
        again = [name for name in self._cycle.spools if name in faulty or name in self.link.unprepared()]
        if self.active and again:
            self._prepare(again)
            readings = self._cycle.readings.tendons
            loose = [name for name in again if name in readings and readings[name].raw.torque_on is False]
            self._cycle.layer.hold_here(again, loose)
        if any(fault.kind is FaultKind.WRONG_SPOOL for fault in self.faults):
            self._cycle.layer.identify()

    def clear(self) -> tuple[Fault, ...]:
        """Clear latched faults after a cycle without their causes; returns the cleared ones.

        An inactive driver drops them, since `begin` checks everything again.

        Raises:
            CommandRefused: a cause is still present, or a length could not be read; the faults remain latched.
        """
        if self.active:
            return self._cycle.clear()
        cleared = self._cycle.latched
        self._cycle = self._make_cycle(self.calibration)
        self._cycle.gate.begin_again()
        return cleared

    def end(self, *, release_torque: bool = False) -> None:
        """Write the last commands: hold, or torque off, verified by the bus; save the turn counts.

        Raises:
            BusError: torque could not be switched off.
        """
        if not self.active:
            return
        self.active = False
        doubtful = {
            fault.tendon for fault in self.faults if fault.kind in UNTRUSTED_LENGTH or fault.kind in PREPARED_AGAIN
        }
        for name, spool in self.spools.items():
            if not self.tension(name) <= MAX_LOOSE_TENSION * spool.actuator.effort:
                doubtful.add(name)  # it unwinds without torque or, later, without supply
        self._cycle.end(release_torque=release_torque)
        if release_torque:
            self.link.torque_off()
        if self.store.path is None or None in doubtful:
            return
        # a full disk must not prevent the end of a driver; without the file the turns remain void
        with contextlib.suppress(CalibrationError, BusError):
            names = [str(name) for name in doubtful]
            save_turns(self.store.path, self.calibration, self.spools, self._positions(), doubtful=names)

    def close(self) -> None:
        """Close the ports; the servos keep the last command."""
        self.link.close()

    # -- calibrating -----------------------------------------------------------------------------------------------

    def calibrate(
        self, name: str, readings: Sequence[float], lengths: Sequence[float], *, save: bool = False
    ) -> CalibrationCheck:
        """Calibrate the sensor of the position loop of one spool, and use it from now on.

        Args:
            name: name of its actuator.
            readings: (n,) counts or rad.
            lengths: (n,) m.
            save: whether to save it to the calibration file as well.

        Raises:
            CalibrationError: no line fits these points, or the file could not be saved; nothing has changed.
            CommandRefused: the driver is running and no fault holds the tendons.
        """
        spool = self._cycle.spools.get(name)
        if spool is None:
            raise TensegrityError(unknown_name("actuator with a servo", name, self._cycle.spools))
        if self.active and not self.faults:
            raise CommandRefused(
                f"{name} is in use by the running driver; call emergency_stop or deactivate the driver, then calibrate."
            )
        check = fit_spool(self.robot, spool, readings, lengths)
        changed = with_fit(self.calibration, name, spool.measured_by, check.fit)
        fresh = make_spools(self.robot, changed)[name]
        loop = make_loops({name: fresh}, self.period, self._gains)[name]
        if save:
            changed = self.store.save(changed)
        self.calibration = changed
        if self.active:
            self._cycle.layer.replace_spool(fresh, loop)
        else:
            self._cycle = self._make_cycle(changed)
        return check


def open_driver(
    robot: Robot,
    open_bus: Callable[[Robot, HardwareSettings], HardwareLink],
    *,
    period: float | None = None,
    overrun: float | None = None,
    calibration: str | Path | None = None,
    make_calibration: Callable[[BusIdentity], RobotCalibration | None] | None = None,
) -> Driver:
    """Open the bus of a robot and check that its calibration was made for it.

    Args:
        robot: robot with servos.
        open_bus: opens the bus and checks every servo on it, such as `Hardware.open_bus`.
        period, overrun: period and overrun tolerance of a bus cycle, see `hardware_settings`; None: those of the robot
            file.
        calibration: path of the calibration file; None: the one of the robot file.
        make_calibration: returns the exact calibration of emulated spools, such as `Hardware.make_calibration`. If it
            is None or returns None, the file is loaded.

    Raises:
        TensegrityError: there are no servos, or settings are invalid.
        BusError: the bus or a servo is faulty.
        CalibrationError: the calibration is missing or invalid.
    """
    settings = hardware_settings(robot, period=period, overrun=overrun, calibration=calibration)
    link = open_bus(robot, settings)
    try:
        exact = None if make_calibration is None else make_calibration(link.identity)
        path = None if exact is not None and calibration is None else settings.calibration
        store = CalibrationStore(robot, link.identity, path, exact)
        return Driver(robot, link, settings, store.load(), store)
    except TensegrityError:
        link.close()
        raise
