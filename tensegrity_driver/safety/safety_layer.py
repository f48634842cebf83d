"""Last layer before the bus: it checks every cycle, reacts to faults, and limits every command.

Whatever is read and whatever is commanded, a command from this layer is finite and fulfils

    velocity:  |v| <= rate,  low <= length + v · lead <= high,  v >= 0 above the tension ceiling
    position:  within the limits, at most rate · lead away from the measured length, at no more than rate and effort

except that a tendon outside its limits may stay there or move back. If the tendon's stiffness k is known, winding in is
also slowed to v >= −(effort − tension) / (k · tension lead). The leads are the settings `lag` and `tension_lag`: the
time for which a servo may continue with its previous command. A tendon without a measured length does not move.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tensegrity_dynamics.command_gate import Mode
from tensegrity_dynamics.errors import CommandRefused, TensegrityError
from tensegrity_dynamics.impedance import ImpedanceSetPoint, MovingPosition

from ..spools.moving_set_points import MovingSetPoint, MovingSetPoints, impedance_now
from ..spools.position_loop import Loop, SetPoint, usable_period
from ..spools.readings import Drive, DriveCommand, Readings, TendonReading
from ..spools.spool import Spool
from .fault_latch import FaultLatch
from .faults import (
    JOG_ALLOWED,
    OWN_ENCODER_HOLDS,
    UNTRUSTED_ENCODER,
    UNTRUSTED_LENGTH,
    Fault,
    FaultKind,
    Reaction,
)
from .monitors import Monitor, make_monitors, tendon_monitors
from .monitors.limits import CeilingMemory, TensionMonitor, slack_tension
from .monitors.motion import DisobeysHoldMonitor
from .settings import SafetySettings
from .spool_identification import SpoolIdentification


def plausible(length: float, spool: Spool) -> bool:
    """Whether a length [m] is finite and outside the limits of the spool by at most the width of their range."""
    low, high = spool.actuator.position
    return math.isfinite(length) and low - (high - low) <= length <= high + (high - low)


def length_age(tendon: TendonReading, spool: Spool) -> int:
    """Bus cycles since the last measurement of a tendon's length."""
    return max(tendon.raw.age, tendon.raw.sensor_age if spool.measured_by == "potentiometer" else 0)


def limit_command(
    command: DriveCommand,
    spool: Spool,
    tendon: TendonReading | None,
    lead: float,
    period: float,
    tension_lead: float | None = None,
) -> DriveCommand | None:
    """Command within the limits of its spool; None for a position without a plausible length.

    Args:
        command: requested of the servo. spool: with its limits. tendon: reading of this cycle.
        lead: time for which the command must stay within the limits [s]; a longer one slows down earlier before them.
        period: bus cycle [s].
        tension_lead: time for which the command must stay below the tension ceiling [s]; None: `lead`.
    """
    actuator = spool.actuator
    low, high = actuator.position
    rate = actuator.rate if not 0.0 < command.rate <= actuator.rate else command.rate
    ceiling = actuator.effort if not 0.0 < command.tension <= actuator.effort else command.tension
    if command.kind is Drive.TORQUE_OFF:
        return DriveCommand(Drive.TORQUE_OFF)
    goal = command.goal if command.goal is not None and math.isfinite(command.goal) else None
    length = math.nan if tendon is None else tendon.length
    measured = plausible(length, spool)
    tension = math.nan if tendon is None else tendon.tension
    tight, pushed = tension >= ceiling, tension <= -ceiling
    if command.kind is Drive.VELOCITY:
        speed = command.value if measured and math.isfinite(command.value) else 0.0
        speed = min(max(speed, -rate), rate)
        if measured and tendon is not None:
            drift = actuator.rate * length_age(tendon, spool) * period
            slowest, fastest = min(0.0, (low + drift - length) / lead), max(0.0, (high - drift - length) / lead)
            if spool.stiffness is not None and math.isfinite(tension):
                ahead = lead if tension_lead is None else tension_lead
                slowest = max(slowest, min(0.0, (tension - ceiling) / (spool.stiffness * ahead)))
            speed = min(max(speed, 0.0 if tight else slowest), 0.0 if pushed else fastest)
        return DriveCommand(Drive.VELOCITY, speed, rate, ceiling, goal)
    if not measured:
        return None
    position = command.value if math.isfinite(command.value) else length
    if tight:
        position = max(position, length)
    if pushed:
        position = min(position, length)
    reach = actuator.rate * lead + command.compliance
    position = min(max(position, length - reach), length + reach)
    position = min(max(position, min(low, length)), max(high, length))
    return DriveCommand(Drive.POSITION, position, rate, ceiling, goal, command.impedance)


@dataclass(frozen=True)
class SafetyStep:
    """Result of one cycle.

    Attributes:
        commands: for the bus, by tendon; a tendon without an entry keeps its last command.
        new: faults that were first detected in this cycle. faults: all present faults.
        reactions: of the tendons that are not free to follow commands.
        notes: further messages for people.
    """

    commands: Mapping[str, DriveCommand]
    new: tuple[Fault, ...]
    faults: tuple[Fault, ...]
    reactions: Mapping[str, Reaction]
    notes: tuple[str, ...] = ()


class SafetyLayer:
    """Monitors, reactions and limits for the spools of one bus.

    Args:
        spools: in any order.
        loops: position loop of every spool, by tendon.
        settings: thresholds and reactions.
    """

    def __init__(
        self, spools: Sequence[Spool], loops: Mapping[str, Loop], settings: SafetySettings | None = None
    ) -> None:
        self.settings = settings or SafetySettings()
        self._spools = {spool.name: spool for spool in spools}
        missing = [name for name in self._spools if name not in loops]
        if missing:
            raise TensegrityError(f"there is no position loop for {', '.join(missing)}; give one for every spool.")
        self._loops = loops
        self.lead = self.settings.lag * self.settings.period
        self.tension_lead = self.settings.tension_lag * self.settings.period
        self._points = {spool.name: SetPoint(spool, 2.0 * self.lead) for spool in spools}
        self._reset()
        self.identification: SpoolIdentification | None = None
        self.latch = FaultLatch(self.settings)

    def _reset(self) -> None:
        self.monitors: list[Monitor] = make_monitors(tuple(self._spools.values()), self.settings)
        self._sent: dict[str, DriveCommand] = {}
        self._follow: dict[str, tuple[Mode, Any]] = {}
        self._moves: Mapping[str, MovingSetPoint] = {}
        self._doing: dict[str, Reaction] = {}
        self._released: dict[str, float] = {}
        self._jogs: dict[str, float] = {}
        self._ceilings = {name: CeilingMemory(spool, self.settings) for name, spool in self._spools.items()}
        for point in self._points.values():
            point.hold(math.nan)
        self._moving = MovingSetPoints(self._spools)

    @property
    def sent(self) -> Mapping[str, DriveCommand]:
        """Last command of each tendon."""
        return self._sent

    @property
    def spools(self) -> Mapping[str, Spool]:
        """By tendon, as calibrated at present."""
        return self._spools

    # -- begin and end ---------------------------------------------------------------------------------------------

    def identify(self) -> None:
        """Move every spool a little from the next cycle on, before commands are followed (`SpoolIdentification`)."""
        if self.settings.identify > 0.0:
            spools = tuple(self._spools.values())
            self.identification = SpoolIdentification(spools, self.settings.identify, self.settings.period)

    def take_over(self, readings: Readings) -> None:
        """Start, or start again, from the measured lengths: every tendon holds its length until it is commanded.

        Raises:
            CommandRefused: a length is missing, old or impossible, or a fault is latched; the state is unchanged then.
        """
        held = self.latch.latched
        if held:
            raise CommandRefused("clear the faults first: " + " | ".join(each.line for each in held))
        wrong = []
        for name, spool in self._spools.items():
            tendon = readings.tendons.get(name)
            if tendon is None or length_age(tendon, spool) > 0 or not plausible(tendon.length, spool):
                wrong.append(f"{name} ({'silent' if tendon is None else f'{tendon.length:.4g} m'})")
        if wrong:
            raise CommandRefused(
                f"the rest lengths of {', '.join(wrong)} are not known or impossible; check sensors and calibration, "
                "or home these tendons."
            )
        self._reset()
        for name in self._spools:
            self._hold(name, readings.tendons[name].length)

    def clear(self, readings: Readings) -> tuple[Fault, ...]:
        """Clear the latched faults, start again from the measured lengths, and return the cleared faults.

        Raises:
            CommandRefused: a cause persists, or a length is unknown; the faults stay latched then.
        """
        held = self.latch.clear()
        try:
            self.take_over(readings)
        except CommandRefused:
            self.latch.restore(held)
            raise
        return held

    def jog(self, name: str, length: float) -> None:
        """Move one tendon that has a fault slowly to a length [m] within its limits, to remove the cause.

        Raises:
            CommandRefused: the tendon has no fault, or a fault that does not allow it (see the table of faults).
        """
        own = [fault for fault in self.latch.faults if fault.tendon == name]
        forbidding = [fault for fault in own if fault.kind not in JOG_ALLOWED]
        low, high = self._spools[name].actuator.position
        if not own or forbidding or self._doing.get(name) is Reaction.TORQUE_OFF or not low <= length <= high:
            why = (
                forbidding[0].line
                if forbidding
                else "it has no fault, no torque, or the length lies outside its limits"
            )
            raise CommandRefused(f"{name} may not be moved by hand: {why}.")
        self._jogs[name] = length

    def hold_here(self, names: Iterable[str], loose: Collection[str] = ()) -> None:
        """Hold tendons whose servos were prepared again at the lengths that the next cycle measures.

        Their former commands are forgotten: a tendon without a reliable length gets none until it has one.

        Args:
            names: of the tendons. loose: those whose servos were without torque, so that their motion was not theirs.
        """
        for name in names:
            self._hold(name, math.nan)
            self._sent.pop(name, None)
        for each in self.monitors:
            if each.name in loose:
                each.restart()

    def replace_spool(self, spool: Spool, loop: Loop) -> None:
        """Replace a spool after calibration or homing; its monitors start again, and its faults can then be cleared.

        Raises:
            CommandRefused: the tendon has no fault and may therefore be moving; hold it first.
        """
        if not self.latch.faults:
            raise CommandRefused(f"{spool.name} is in use; stop it before its calibration is changed.")
        self._spools[spool.name] = spool
        self._loops = {**self._loops, spool.name: loop}
        self._points[spool.name] = SetPoint(spool, 2.0 * self.lead)
        self._ceilings[spool.name] = CeilingMemory(spool, self.settings)
        others = [each for each in self.monitors if each.name != spool.name]
        self.monitors = others + tendon_monitors(spool, self.settings)

    # -- one cycle -------------------------------------------------------------------------------------------------

    def tension(self, name: str) -> float:
        """Tension [N] of a tendon from load or current; nan where unknown, as just after a servo began to wind."""
        return self._ceilings[name].tension

    def carried_force(self, name: str) -> float:
        """Force [N] that the tendon of a spool carries, without what accelerates its servo; nan where unknown."""
        found = (each.carried for each in self.monitors if each.name == name and isinstance(each, TensionMonitor))
        return next(found, math.nan)

    def step(
        self,
        cycle: int,
        readings: Readings,
        set_points: Mapping[str, tuple[Mode, Any]],
        age: float = 0.0,
        command_period: float = 0.0,
    ) -> SafetyStep:
        """Process one cycle: its readings and the set points that the gate accepted since the previous cycle.

        Args:
            age: time since the set points were commanded [s]. command_period: of their sender [s], 0 if unknown.
        """
        updates = (monitor.update(cycle, readings, self._sent) for monitor in self.monitors)
        found = [fault for fault in updates if fault is not None]
        moves: Mapping[str, DriveCommand] = {}
        if self.identification is not None:
            # no command is followed during the identification, so none can be missed
            found = [fault for fault in found if fault.kind is not FaultKind.STALE_COMMAND]
            if any(self.latch.reaction(name) is not None for name in self._spools):
                self.identification.restart()
            else:
                moves = self.identification.update(cycle, readings)
            found += self.identification.faults
            if self.identification.done:
                self.identification = None
        new = self.latch.update(found)
        blind = {fault.tendon for fault in self.latch.faults if self._blinds(fault)}
        reactions = self._reactions()
        for each in self.monitors:
            if isinstance(each, DisobeysHoldMonitor):
                each.held = reactions[each.spool.name] is not None
        period = usable_period(readings.period, self.settings.period)
        commands: dict[str, DriveCommand] = {}
        notes: list[str] = []
        if self.identification is None:
            free = {name: each for name, each in set_points.items() if self.latch.reaction(name) is None}
            self._take_moving(free, readings, age, command_period)
        self._moves = self._moving.advance(period)
        for name, spool in self._spools.items():
            tendon = readings.tendons.get(name)
            reaction = reactions[name]
            if name in set_points and reaction is None and self.identification is None:
                self._follow[name] = set_points[name]
            command = self._choose(name, tendon, reaction, name in blind, period, notes)
            if reaction is None and name in moves:
                command = moves[name]
                self._loops[name].take_over(math.nan)
            memory = self._ceilings[name]
            observed = None if tendon is None else memory.update(cycle, tendon, self._sent.get(name))
            observed = None if name in blind else observed
            if command is not None:
                command = memory.slowed(command)
                command = limit_command(command, spool, observed, self.lead, self.settings.period, self.tension_lead)
            if command is None:  # a servo in position mode stays at the last position
                command = self._sent.get(name)
            if command is not None:
                commands[name] = self._sent[name] = command
        return SafetyStep(commands, new, self.latch.faults, dict(self._doing), tuple(notes))

    def _blinds(self, fault: Fault) -> bool:
        """Whether a fault leaves a spool without a length by which it may be moved or held."""
        spool = self._spools.get(fault.tendon or "")
        by_itself = spool is not None and spool.measured_by == "encoder" and not spool.on_board
        return fault.kind in UNTRUSTED_LENGTH and not (by_itself and fault.kind in OWN_ENCODER_HOLDS)

    def _reactions(self) -> dict[str, Reaction | None]:
        """Reaction of every tendon to the present faults; see `faults` for when a servo is switched off."""
        faults = self.latch.faults
        lost = {fault.tendon for fault in faults if fault.kind in UNTRUSTED_ENCODER}
        # a board has no zero speed for one servo: the servo would go on to its position, by the doubtful sensor
        chosen = self.settings.reactions
        astray = {each.tendon for each in faults if each.kind in OWN_ENCODER_HOLDS and each.kind not in chosen}
        reactions = {name: self.latch.reaction(name) for name in self._spools}
        for name, spool in self._spools.items():
            if (name in lost and spool.measured_by == "encoder") or (name in astray and spool.on_board):
                reactions[name] = Reaction.TORQUE_OFF
        stays = self.settings.others is not None or any(fault.kind is FaultKind.EMERGENCY_STOP for fault in faults)
        if Reaction.TORQUE_OFF in reactions.values() and not stays:
            return {name: Reaction.RELEASE if each is Reaction.HOLD else each for name, each in reactions.items()}
        return reactions

    def _choose(
        self,
        name: str,
        tendon: TendonReading | None,
        reaction: Reaction | None,
        blind: bool,
        period: float,
        notes: list[str],
    ) -> DriveCommand | None:
        """Command of one tendon by its reaction, its jog or its set point; before the limits are applied."""
        length = math.nan if tendon is None else tendon.length
        if reaction is not None and self._doing.get(name) is not reaction:
            self._hold(name, length)
            self._doing[name] = reaction
            self._released[name] = length
            self._jogs.pop(name, None)
        elif reaction is None and self._doing.pop(name, None) is not None:
            self._hold(name, length)
        if reaction is Reaction.TORQUE_OFF:
            return DriveCommand(Drive.TORQUE_OFF)
        point, loop = self._points[name], self._loops[name]
        if not math.isfinite(point.goal) and not blind:
            self._hold(name, length)
        if reaction is not None and name in self._jogs and not blind:
            step = self.settings.release_rate * period
            point.hold(min(max(self._jogs[name], point.goal - step), point.goal + step))
        elif reaction is Reaction.RELEASE and tendon is not None and not blind:
            self._release(name, tendon, period)
        elif reaction is None and name in self._follow and math.isfinite(length):
            try:
                assert tendon is not None
                tension = tendon.tension if self._spools[name].load_at_rest else math.nan
                moving = self._moves.get(name)
                if moving is not None:
                    point.hold(moving.position)
                else:
                    point.update(self._follow[name], length, tension, period)
            except TensegrityError as problem:
                notes.append(str(problem))
                del self._follow[name]
        if blind:
            length = math.nan
        seen = None if blind else tendon
        moving = self._moves.get(name)
        if moving is None or reaction is not None:
            return loop.update(point.goal, length, period, self._sent.get(name), tendon=seen)
        ahead = (moving.ahead(self.settings.period), moving.ahead(self.lead)) if self._moving.quick else None
        soft = impedance_now(moving)
        return loop.update(point.goal, length, period, self._sent.get(name), moving.rate, ahead, soft, seen)

    def _take_moving(
        self, set_points: Mapping[str, tuple[Mode, Any]], readings: Readings, age: float, period: float
    ) -> None:
        """Take new set points that move on by themselves; other new set points end the present ones."""
        for name, (_, value) in set_points.items():
            tendon = readings.tendons.get(name)
            if isinstance(value, MovingPosition | ImpedanceSetPoint) and tendon is not None:
                goal = self._points[name].goal
                feed = 0.0 if math.isnan(tendon.tension) else -tendon.tension
                self._moving.take(name, value, goal if math.isfinite(goal) else tendon.length, feed, age, period)
            else:
                self._moving.drop(name)

    def _hold(self, name: str, length: float) -> None:
        """Hold one tendon at a length [m], and discard its set point."""
        self._follow.pop(name, None)
        self._moving.drop(name)
        self._points[name].hold(length)
        self._loops[name].take_over(length)

    def _release(self, name: str, tendon: TendonReading, period: float) -> None:
        """Pay out slowly until the tendon is nearly slack, at its limit, or paid out by the allowed distance.

        Where the load of a servo is measured only while it winds in, the load does not show slackness, and the tendon
        is paid out by the whole distance.
        """
        spool, settings, point = self._spools[name], self.settings, self._points[name]
        least = max(spool.actuator.minimum_tension, slack_tension(spool, settings))
        enough = spool.load_at_rest and abs(tendon.tension) <= least
        start = self._released.get(name, math.nan)
        if enough or not math.isfinite(start) or not math.isfinite(tendon.length):
            return
        step = settings.release_rate * period
        if tendon.tension < 0.0:  # a joint in compression
            end = max(start - settings.release_distance, spool.actuator.position[0])
            point.hold(min(point.goal, max(point.goal - step, end)))
            return
        end = min(start + settings.release_distance, spool.actuator.position[1])
        point.hold(max(point.goal, min(point.goal + step, end)))


def torque_off(spools: Sequence[Spool]) -> dict[str, DriveCommand]:
    """Torque off for all spools: the last commands of a driver that shall release the robot."""
    return {spool.name: DriveCommand(Drive.TORQUE_OFF) for spool in spools}


def at_rest(commands: Mapping[str, DriveCommand]) -> dict[str, DriveCommand]:
    """The commands with zero velocities: the last commands of a driver whose tendons shall hold."""
    return {
        name: replace(command, value=0.0) if command.kind is Drive.VELOCITY else command
        for name, command in commands.items()
    }
