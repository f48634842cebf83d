"""Monitors of the motion of a spool against its commands, and what a spool can move at all.

From cause to fault it takes, in bus cycles,

    runaway, wrong sign: lag + ceil(tolerance / (speed · period)) + 1, at most lag + window + 1 where the speed is at
                         least tolerance / ((window − 1) · period)
    stuck:               lag + ceil(distance / (commanded speed · period)) + 1
    disobeys hold:       as a runaway, from the first command to stand
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from ...spools.own_set_point import OwnSetPoint
from ...spools.position_loop import BoardLoopModel
from ...spools.readings import Drive, DriveCommand, Readings, TendonReading, finite
from ...spools.spool import Spool
from ..faults import Fault, FaultKind
from ..settings import SafetySettings
from ..spool_identification import BOARD_SETTLING_S
from .limits import wrong_pull
from .monitor import Commands, TendonFindingMonitor, TendonMonitor, elapsed, tendon_monitor

STANDING_STILL = 0.1
"""Fraction of the commanded motion below which a spool counts as standing still."""
SHORT_CYCLES = 4
"""How many times shorter than planned the cycles after a long one may be."""
STANDS = 1.0e-4
"""m by which a servo that was commanded to stand may be off that by the resolution of its sensors."""
DRIVEN = 0.1
"""Part of its ceiling that a joint's servo must give along a motion that it makes itself, rather than resists."""
OWN_SHARE = 0.5
"""Part of a motion that the speed of a servo must confirm, where it tells one: else the sensor moves, not the spool."""
ALONG = 0.1
"""Fraction of the motion commanded against the observed one that may be commanded along it: a wrong sign still."""


@tendon_monitor(FaultKind.RUNAWAY, FaultKind.WRONG_SIGN)
class FollowingErrorMonitor(TendonMonitor):
    """Motion that no command of the last cycles explains: without a command (runaway), or against it (wrong sign).

    Servos are read at some time between the begin of a cycle and the last answer. On a busy computer that is long, so
    that more time may lie between two readings than between the cycles; a spool may use it at the commanded speed.
    """

    def __init__(self, kind: FaultKind, settings: SafetySettings, spool: Spool) -> None:
        super().__init__(kind, settings, spool)
        # (length, rise, fall, time, speed) of each cycle; rise and fall are sums of all commanded motion up to then
        self._past: deque[tuple[float, float, float, float, float]] = deque(
            maxlen=settings.window + SHORT_CYCLES * settings.lag + 2
        )
        self._commanded_speed = commanded_speed_of(spool, settings)
        self._own = OwnSetPoint()
        self._before = math.nan
        self._unexplained = 0  # newest cycles of these, since the servo last complied: from them motion is judged

    def update(self, cycle: int, readings: Readings, commands: Commands) -> Fault | None:
        tendon, command = readings.tendons.get(self.spool.name), commands.get(self.spool.name)
        if command is not None and command.kind is Drive.TORQUE_OFF:
            self._past.clear()  # a spool without torque goes where its tendon pulls it
            self._before = math.nan
            return None
        length = math.nan if tendon is None else tendon.length
        before, self._before = self._before, length
        period = elapsed(readings, self.settings)
        speed = self._commanded_speed(command, before, period)
        step = speed * period
        if abs(length - before) > possible_step(self.spool, self.settings, readings, 1):
            self._past.clear()  # no spool turns like that: the sensor jumped, which is another fault
        rise, fall, time = self._past[-1][1:4] if self._past else (0.0, 0.0, 0.0)
        # a soft servo goes where it is pushed, as far as its stiffness lets it
        explained = command is not None and tendon is not None and self._complies(command, tendon, period)
        self._unexplained = 0 if explained else self._unexplained + 1
        self._past.append((length, rise + max(step, 0.0), fall + min(step, 0.0), time + period, speed))
        return None if explained or math.isnan(length) else self._compare(cycle, length, readings.read_time)

    def _complies(self, command: DriveCommand, tendon: TendonReading, period: float) -> bool:
        """Whether the stiffness of a soft servo explains where it is.

        It pulls at its own set point, which moves at its speed limit from where it was to where the servo is sent: the
        servo may be as far from any point between, as from where it is sent, as its ceiling lets it.
        """
        if command.impedance is None:
            self._own.restart(math.nan)
            return False
        length, begin = tendon.length, self._own.at
        self._own.advance(command, period)
        self._own.correct(self.spool, command, tendon, period)
        points = [each for each in (begin, self._own.at, command.value) if finite(each)]
        return min(points) - command.compliance <= length <= max(points) + command.compliance

    def _compare(self, cycle: int, length: float, read_time: float) -> Fault | None:
        """Compare the motion since each cycle of the window with what was commanded since then, and lag before.

        The lag is time that a servo needs, so that short cycles after a long one are more of them.

        Args:
            read_time: s of this cycle within which the servos were read.
        """
        settings, past = self.settings, list(self._past)
        newest = len(past) - 1
        oldest = max(newest - min(settings.window, self._unexplained - 1), 0)
        for start in range(newest - 1, oldest - 1, -1):
            moved = length - past[start][0]
            if not abs(moved) > settings.motion_tolerance:  # nan where nothing was read
                continue
            first = max(start - settings.lag, 0)
            while first > 0 and past[start][3] - past[first][3] < (settings.lag - 0.5) * settings.period:
                first -= 1
            before = past[first]
            speeds = [each[4] for each in past[first + 1 :]]
            rise = settings.speed_gain * (past[newest][1] - before[1] + read_time * max(0.0, *speeds))
            fall = settings.speed_gain * (past[newest][2] - before[2] + read_time * min(0.0, *speeds))
            if fall - settings.motion_tolerance <= moved <= rise + settings.motion_tolerance:
                continue
            direction = "paid out" if moved > 0.0 else "wound in"
            against, along = (-fall, rise) if moved > 0.0 else (rise, -fall)
            if against > settings.motion_tolerance and along < ALONG * against:
                return self._fault(
                    cycle,
                    f"it {direction} {abs(moved) * 1e3:.1f} mm while the opposite was commanded",
                    FaultKind.WRONG_SIGN,
                )
            return self._fault(
                cycle,
                f"it {direction} {abs(moved) * 1e3:.1f} mm in {newest - start} cycles without a command for it",
            )
        return None


@tendon_monitor(FaultKind.DISOBEYS_HOLD)
class DisobeysHoldMonitor(TendonMonitor):
    """A motor that goes on although its servo was commanded to stand, for longer than a command takes to act.

    That a tendon is paid out is no such motion as long as its servo pulls: it is overpowered, and torque off would only
    let it run. What counts is winding in, which nothing but a motor does, and being pushed out by the servo's own
    torque. Before a fault has held the tendon such a motion is one without a command, whose reason is not known.

    Attributes:
        held: whether a fault holds its tendon.
    """

    held = False

    def __init__(self, kind: FaultKind, settings: SafetySettings, spool: Spool) -> None:
        super().__init__(kind, settings, spool)
        # by direction (in, out): lengths and own motion [m] of the cycles since nothing was commanded that way
        self._past: dict[float, deque[tuple[float, float]]] = {
            sign: deque(maxlen=settings.window + 1) for sign in (-1.0, 1.0)
        }
        self._commanded = {-1.0: 0.0, 1.0: 0.0}
        self._acts = settings.lag + (math.ceil(BOARD_SETTLING_S / settings.period) if spool.on_board else 0)

    def update(self, cycle: int, readings: Readings, commands: Commands) -> Fault | None:
        tendon, command = readings.tendons.get(self.spool.name), commands.get(self.spool.name)
        length = math.nan if tendon is None else tendon.length
        period = elapsed(readings, self.settings)
        for sign, past in self._past.items():
            if tendon is None or not self.held or not self._stands(command, length, sign):
                past.clear()
                self._commanded[sign] = 0.0
                continue
            self._commanded[sign] += period
            if self._commanded[sign] <= (self._acts + 0.5) * self.settings.period:
                continue
            speed = -self.spool.winding_speed(tendon.raw)
            own = past[-1][1] if past else 0.0
            past.append((length, own + (0.0 if math.isnan(speed) else speed * period)))
            moved, by_itself = length - past[0][0], past[-1][1] - past[0][1]
            if sign * moved <= self.settings.motion_tolerance or not self._drives(tendon, sign):
                continue
            if math.isnan(speed) or sign * by_itself >= OWN_SHARE * abs(moved):
                direction = "winds in" if sign < 0.0 else "pays out"
                return self._fault(
                    cycle, f"it {direction} {abs(moved) * 1e3:.1f} mm although it was commanded to stand"
                )
        return None

    def _stands(self, command: DriveCommand | None, length: float, sign: float) -> bool:
        """Whether a command asks for no motion in a direction, of a servo that holds stiffly."""
        if command is None or command.kind is Drive.TORQUE_OFF or command.impedance is not None:
            return False
        if command.kind is Drive.VELOCITY:
            return sign * command.value <= 0.0 and not math.isnan(length)
        return sign * (command.value - length) <= STANDS

    def _drives(self, tendon: TendonReading, sign: float) -> bool:
        """Whether the motor makes a motion itself: it winds a tendon in, or it pushes that way."""
        if sign < 0.0 and self.spool.pulls:
            return True
        least = wrong_pull(self.spool, self.settings) if self.spool.pulls else DRIVEN * self.spool.actuator.effort
        return -sign * self.spool.pull(tendon.raw) > least


@tendon_monitor(FaultKind.STUCK)
class StuckMonitor(TendonFindingMonitor):
    """Standing still although motion is commanded, while the other sensor does not move either.

    Of an impedance, what is commanded is where the spool is to go, not what the safety layer leaves of it: one that is
    caught pulls at its ceiling at once, and a servo at its ceiling is commanded to stand in every other cycle.
    """

    def __init__(self, kind: FaultKind, settings: SafetySettings, spool: Spool) -> None:
        super().__init__(kind, settings, spool)
        self._first = self._second = math.nan
        self._commanded = 0.0
        self._commanded_speed = commanded_speed_of(spool, settings)

    def finding(self, tendon: TendonReading, readings: Readings, command: DriveCommand | None) -> str | None:
        length, settings = tendon.length, self.settings
        period = elapsed(readings, settings)
        step = self._commanded_speed(self._delayed_command(command), length, period) * period
        if not finite(length) or command is None or command.kind is Drive.TORQUE_OFF:
            self._first, self._commanded = length, 0.0
            return None
        if distance_beyond_load(command, length, self.spool) <= settings.stuck_distance:
            step = 0.0  # near its goal a loaded spool may well stand
        moved = abs(length - self._first)
        other = sensor_distance(self.spool, tendon.second_length, self._second)
        if step == 0.0 or step * self._commanded < 0.0 or not moved <= STANDING_STILL * settings.stuck_distance:
            self._first, self._second, self._commanded = length, tendon.second_length, step
            return None
        self._commanded += step
        lag = settings.lag * abs(step)
        if abs(self._commanded) <= settings.stuck_distance + lag or other > STANDING_STILL * settings.stuck_distance:
            return None
        return f"it stands still although {abs(self._commanded) * 1e3:.1f} mm were commanded"

    def _delayed_command(self, command: DriveCommand | None) -> DriveCommand | None:
        """An impedance before it is limited, but by its range; others as they are: they may stay at the ceiling."""
        if command is None or command.impedance is None or command.goal is None:
            return command
        return replace(command, value=within_range(command.goal, self.spool))


# -- what a spool can move ---------------------------------------------------------------------------------------------


def possible_step(spool: Spool, settings: SafetySettings, readings: Readings, cycles: int) -> float:
    """Largest change of length [m] in some cycles, sensor error included."""
    time = max(settings.period, elapsed(readings, settings)) * cycles + readings.read_time
    return spool.actuator.rate * settings.speed_gain * time + settings.jump


def commanded_speed(command: DriveCommand | None, length: float, spool: Spool, period: float) -> float:
    """Speed [m/s] that a command asks for at a length [m]; zero without a command."""
    if command is None or command.kind is Drive.TORQUE_OFF:
        return 0.0
    if command.kind is Drive.VELOCITY:
        return command.value
    rate = min(command.rate or spool.actuator.rate, spool.actuator.rate)
    return min(max((command.value - length) / period, -rate), rate) if finite(length) else 0.0


def commanded_speed_of(spool: Spool, settings: SafetySettings) -> Callable[[DriveCommand | None, float, float], float]:
    """What gives the speed [m/s] that a command asks for at a length [m] in a cycle [s], by who closes the loop."""
    if spool.on_board:
        return BoardLoopModel(spool, settings.period).speed
    return lambda command, length, period: commanded_speed(command, length, spool, period)


def within_range(length: float, spool: Spool) -> float:
    """The nearest length [m] within the limits of a spool: no further does the safety layer let it go."""
    low, high = spool.actuator.position
    return min(max(length, low), high)


def distance_beyond_load(command: DriveCommand, length: float, spool: Spool) -> float:
    """Distance [m] from a length to where a command is bound for, beyond what a load within its ceiling explains.

    A servo with an impedance pulls with k (length - goal) - effort. As long as that is within its ceiling it may stand
    where it is, as the load can be that much; beyond it, the servo pulls with its ceiling and must move.
    """
    goal = command.goal if command.goal is not None or command.kind is Drive.VELOCITY else command.value
    if goal is None:
        return math.inf
    soft = command.impedance
    if soft is None:
        return abs(goal - length)
    ceiling, goal = min(command.tension, spool.strongest_pull(0.0)), within_range(goal, spool)
    return max(0.0, abs(soft.stiffness * (length - goal) - soft.effort) - ceiling) / soft.stiffness


def wrapped(difference: float, wrap: float | None) -> float:
    """A difference of lengths [m], nearest to zero where the sensor repeats after `wrap` [m]."""
    return difference if wrap is None else (difference + 0.5 * wrap) % wrap - 0.5 * wrap


def sensor_distance(spool: Spool, first: float, second: float) -> float:
    """Distance [m] between the lengths of two sensors; nan where one is unknown."""
    return abs(wrapped(first - second, spool.wrap))
