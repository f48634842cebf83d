"""Monitors of the motion of a spool compared with its commands, and the largest possible motion of a spool.

The time from cause to fault is, in bus cycles,

    runaway, wrong sign: lag + ceil(tolerance / (speed · period)) + 1, at most lag + window + 1 where the speed is at
                         least tolerance / ((window − 1) · period)
    stuck:               lag + ceil(distance / (commanded speed · period)) + 1
    disobeys hold:       as for a runaway, from the first hold command
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
"""Factor by which the cycles after a long one may be shorter than planned."""
STANDS = 1.0e-4
"""Deviation [m] from a commanded hold that the resolution of the sensors explains."""
DRIVEN = 0.1
"""Fraction of its ceiling that a joint's servo must give along a motion that it drives and does not resist."""
OWN_SHARE = 0.5
"""Fraction of a motion that a reported servo speed must confirm; else the sensor moves, not the spool."""
ALONG = 0.1
"""Largest motion commanded along the observed one, as a fraction of the motion commanded against it, that is still a
wrong sign."""


@tendon_monitor(FaultKind.RUNAWAY, FaultKind.WRONG_SIGN)
class FollowingErrorMonitor(TendonMonitor):
    """Motion that no command of the last cycles explains: without a command (runaway), or against it (wrong sign).

    A servo is read at an unknown time between the start of a cycle and the last answer. On a busy computer this
    interval is long, so that the time between two readings may exceed that between two cycles; the spool may move at
    the commanded speed during that time.
    """

    def __init__(self, kind: FaultKind, settings: SafetySettings, spool: Spool) -> None:
        super().__init__(kind, settings, spool)
        # (length, rise, fall, time, speed) of each cycle; rise and fall are sums of all previously commanded motion
        self._past: deque[tuple[float, float, float, float, float]] = deque(
            maxlen=settings.window + SHORT_CYCLES * settings.lag + 2
        )
        self._commanded_speed = commanded_speed_of(spool, settings)
        self._own = OwnSetPoint()
        self._before = math.nan
        self._unexplained = 0  # number of cycles since the servo last complied; motion is judged from there

    def restart(self) -> None:
        """Forget the motion up to now; without torque, a spool follows its tendon."""
        self._past.clear()
        self._before = math.nan

    def update(self, cycle: int, readings: Readings, commands: Commands) -> Fault | None:
        tendon, command = readings.tendons.get(self.spool.name), commands.get(self.spool.name)
        if command is not None and command.kind is Drive.TORQUE_OFF:
            self.restart()
            return None
        length = math.nan if tendon is None else tendon.length
        before, self._before = self._before, length
        period = elapsed(readings, self.settings)
        speed = self._commanded_speed(command, before, period)
        step = speed * period
        if abs(length - before) > possible_step(self.spool, self.settings, readings, 1):
            self._past.clear()  # no spool turns that fast: the sensor jumped, which is another fault
        rise, fall, time = self._past[-1][1:4] if self._past else (0.0, 0.0, 0.0)
        # an external force displaces a compliant servo as far as its stiffness allows
        explained = command is not None and tendon is not None and self._complies(command, tendon, period)
        self._unexplained = 0 if explained else self._unexplained + 1
        self._past.append((length, rise + max(step, 0.0), fall + min(step, 0.0), time + period, speed))
        return None if explained or math.isnan(length) else self._compare(cycle, length, readings.read_time)

    def _complies(self, command: DriveCommand, tendon: TendonReading, period: float) -> bool:
        """Whether the stiffness of a compliant servo explains its position.

        The servo pulls towards its own set point, which moves at its speed limit from the previous set point to the
        commanded one. From any point between them the servo may be as far away as its ceiling allows.
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
        """Compare the motion since each cycle of the window with the motion commanded since then, extended by the lag.

        The lag is a time that a servo needs, so that it covers more cycles where short cycles follow a long one.

        Args:
            read_time: time within this cycle at which the servos were read [s].
        """
        settings, past = self.settings, list(self._past)
        newest = len(past) - 1
        oldest = max(newest - min(settings.window, self._unexplained - 1), 0)
        for start in range(newest - 1, oldest - 1, -1):
            moved = length - past[start][0]
            if not abs(moved) > settings.motion_tolerance:  # nan without a reading
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
    """A motor that continues although its servo was commanded to stand still, for longer than a command needs to act.

    Paying out is no such motion as long as the servo pulls: the servo is overpowered, and torque off would only let the
    tendon run. What counts is winding in, which only a motor can cause, and paying out by the servo's own torque.
    Before a fault holds the tendon, such a motion is a motion without a command, whose reason is unknown.

    Attributes:
        held: whether a fault holds the tendon.
    """

    held = False

    def __init__(self, kind: FaultKind, settings: SafetySettings, spool: Spool) -> None:
        super().__init__(kind, settings, spool)
        # by direction (in, out): lengths and own motion [m] of the cycles since motion was last commanded that way
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
        """Whether a command to a stiff servo requests no motion in a direction."""
        if command is None or command.kind is Drive.TORQUE_OFF or command.impedance is not None:
            return False
        if command.kind is Drive.VELOCITY:
            return sign * command.value <= 0.0 and not math.isnan(length)
        return sign * (command.value - length) <= STANDS

    def _drives(self, tendon: TendonReading, sign: float) -> bool:
        """Whether the motor itself causes the motion: it winds in a tendon, or it pushes in that direction."""
        if sign < 0.0 and self.spool.pulls:
            return True
        least = wrong_pull(self.spool, self.settings) if self.spool.pulls else DRIVEN * self.spool.actuator.effort
        return -sign * self.spool.pull(tendon.raw) > least


@tendon_monitor(FaultKind.STUCK)
class StuckMonitor(TendonFindingMonitor):
    """Standing still although motion is commanded, while the other sensor does not move either.

    For an impedance, the command that counts is the goal of the spool, before the safety layer limits it: a caught
    spool pulls at its ceiling at once, and a servo at its ceiling is commanded to stand still in every second cycle.
    """

    def __init__(self, kind: FaultKind, settings: SafetySettings, spool: Spool) -> None:
        super().__init__(kind, settings, spool)
        self._first = self._second = math.nan
        self._commanded = 0.0
        self._steps: deque[tuple[float, float]] = deque(maxlen=SHORT_CYCLES * settings.lag)  # last (step, time)
        self._commanded_speed = commanded_speed_of(spool, settings)

    def finding(self, tendon: TendonReading, readings: Readings, command: DriveCommand | None) -> str | None:
        length, settings = tendon.length, self.settings
        period = elapsed(readings, settings)
        step = self._commanded_speed(self._delayed_command(command), length, period) * period
        if not finite(length) or command is None or command.kind is Drive.TORQUE_OFF:
            self._first, self._commanded = length, 0.0
            return None
        if distance_beyond_load(command, length, self.spool) <= settings.stuck_distance:
            step = 0.0  # near its goal a loaded spool may stand still
        moved = abs(length - self._first)
        other = sensor_distance(self.spool, tendon.second_length, self._second)
        if step == 0.0 or step * self._commanded < 0.0 or not moved <= STANDING_STILL * settings.stuck_distance:
            self._first, self._second, self._commanded = length, tendon.second_length, step
            self._steps.clear()
            self._steps.append((step, period))
            return None
        self._commanded += step
        self._steps.append((step, period))
        due = abs(self._commanded - self._within_lag())
        if due <= settings.stuck_distance or other > STANDING_STILL * settings.stuck_distance:
            return None
        return f"it stands still although {abs(self._commanded) * 1e3:.1f} mm were commanded"

    def _within_lag(self) -> float:
        """Motion [m] commanded so lately that the servo need not have begun it: in `lag` cycles, and for their time.

        Cycles differ in length: one long cycle commands as much as many short ones.
        """
        lag = self.settings.lag
        motion = time = 0.0
        for count, (step, period) in enumerate(reversed(self._steps)):
            if count >= lag and time >= (lag - 0.5) * self.settings.period:
                break
            motion, time = motion + step, time + period
        return motion

    def _delayed_command(self, command: DriveCommand | None) -> DriveCommand | None:
        """Delayed command: an impedance is limited by its range alone; other commands are taken as sent, since they
        may stay at the ceiling."""
        if command is None or command.impedance is None or command.goal is None:
            return command
        return replace(command, value=within_range(command.goal, self.spool))


# -- what a spool can move ---------------------------------------------------------------------------------------------


def possible_step(spool: Spool, settings: SafetySettings, readings: Readings, cycles: int) -> float:
    """Largest possible change of length [m] in a number of cycles, sensor error included."""
    time = max(settings.period, elapsed(readings, settings)) * cycles + readings.read_time
    return spool.actuator.rate * settings.speed_gain * time + settings.jump


def commanded_speed(command: DriveCommand | None, length: float, spool: Spool, period: float) -> float:
    """Commanded speed [m/s] at a length [m]; zero without a command."""
    if command is None or command.kind is Drive.TORQUE_OFF:
        return 0.0
    if command.kind is Drive.VELOCITY:
        return command.value
    rate = min(command.rate or spool.actuator.rate, spool.actuator.rate)
    return min(max((command.value - length) / period, -rate), rate) if finite(length) else 0.0


def commanded_speed_of(spool: Spool, settings: SafetySettings) -> Callable[[DriveCommand | None, float, float], float]:
    """Function for the commanded speed [m/s] at a length [m] in a cycle [s]; it depends on where the loop is closed."""
    if spool.on_board:
        return BoardLoopModel(spool, settings.period).speed
    return lambda command, length, period: commanded_speed(command, length, spool, period)


def within_range(length: float, spool: Spool) -> float:
    """Nearest length [m] within the limits of a spool, to which the safety layer limits it."""
    low, high = spool.actuator.position
    return min(max(length, low), high)


def distance_beyond_load(command: DriveCommand, length: float, spool: Spool) -> float:
    """Distance [m] from a length to the goal of a command, minus what a load within the ceiling explains.

    A servo with an impedance pulls with k (length - goal) - effort. Up to its ceiling, a load of the same size may hold
    it in place; beyond that, the servo pulls with its ceiling and must move.
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
    """Difference of lengths [m], nearest to zero where the sensor repeats after `wrap` [m]."""
    return difference if wrap is None else (difference + 0.5 * wrap) % wrap - 0.5 * wrap


def sensor_distance(spool: Spool, first: float, second: float) -> float:
    """Distance [m] between the lengths of two sensors; nan where one is unknown."""
    return abs(wrapped(first - second, spool.wrap))
