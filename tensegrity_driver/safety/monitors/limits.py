"""Monitors that compare one value with its limit: length, tension, load, temperature and voltage."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import deque
from dataclasses import replace

from ...spools.readings import Drive, DriveCommand, Readings, TendonReading, finite
from ...spools.spool import MIN_LOADED_RATE, Spool
from ..faults import Fault, FaultKind
from ..settings import SafetySettings
from .carried_force import CarriedForce
from .monitor import Commands, TendonFindingMonitor, elapsed, tendon_monitor


@tendon_monitor(FaultKind.SPOOL_LIMIT)
def spool_limit(tendon: TendonReading, spool: Spool, settings: SafetySettings) -> str | None:
    low, high = spool.actuator.position
    if not finite(tendon.length) or low - settings.limit_margin <= tendon.length <= high + settings.limit_margin:
        return None
    return f"its rest length is {tendon.length * 1e3:.1f} mm, outside {low * 1e3:.1f} to {high * 1e3:.1f} mm"


AT_REST = 0.5
"""Part of `wrong_pull` that shows a tendon on the wrong side of its spool while the spool stands for a whole window."""
PULLED_IN = 0.2
"""Part of `wrong_pull` that shows a tendon on the wrong side of its spool while the spool winds in."""
PULLED_IN_CYCLES = 2
"""Consecutive cycles that show it: a stiff tendon that is paid out in the belief that it is wound in is soon slack."""
LEAST_WINDING = 0.03
"""Speed [fraction of the rate limit] above which a spool certainly winds in."""
STEADY = 0.1
"""Part of its speed that a spool may lose in a cycle without braking; the resolution of its sensor is added."""


# -- tension -----------------------------------------------------------------------------------------------------------


def slack_tension(spool: Spool, settings: SafetySettings) -> float:
    """Tension [N] below which a tendon is slack; -inf for a joint that can push."""
    if not spool.pulls:
        return -math.inf
    return 0.5 * spool.actuator.minimum_tension if settings.slack_tension is None else settings.slack_tension


def wrong_pull(spool: Spool, settings: SafetySettings) -> float:
    """Force [N] in the direction of paying out above which the tendon is on the wrong side of its spool."""
    if not spool.pulls:
        return math.inf
    return 0.25 * spool.actuator.effort if settings.wrong_pull is None else settings.wrong_pull


def pulled_in(spool: Spool, settings: SafetySettings) -> float:
    """Force [N] in the direction of paying out that shows a wrong side of the spool while the spool winds in.

    Friction opposes the motion: a servo that winds in has to pull against it. The limit is therefore much smaller than
    `wrong_pull`, but above the resolution of a current and the inertia of a drum.
    """
    return max(PULLED_IN * wrong_pull(spool, settings), slack_tension(spool, settings))


class TensionEstimate:
    """Tension of a tendon from the load of its servo: a servo in wheel mode must have wound in for `lag` cycles before.

    A servo that pushes outwards gives no estimate: its tendon is wound the other way round, and may be tight.
    """

    def __init__(self, spool: Spool, settings: SafetySettings) -> None:
        self.spool, self.settings = spool, settings
        self._cycles = 0

    def update(self, tendon: TendonReading, command: DriveCommand | None) -> float:
        """Tension [N], or nan where the load does not show it; call once per cycle."""
        self._cycles = self._cycles + 1 if self.spool.reports_tension(command) else 0
        if self.spool.pull(tendon.raw) < -wrong_pull(self.spool, self.settings):
            return math.nan
        return tendon.tension if self.spool.load_at_rest or self._cycles > self.settings.lag else math.nan


class CeilingMemory:
    """Memory of a tendon at its tension ceiling, for the time after its servo has stopped and its load has vanished.

    Without this memory such a servo would wind in again as soon as it stops, and stop as soon as it winds in, a little
    further each time. It waits for one window before the next slow attempt, and twice as long after each attempt that
    reaches the ceiling.

    Attributes:
        tension: of the last cycle [N]; nan where the load does not show it.
    """

    def __init__(self, spool: Spool, settings: SafetySettings) -> None:
        self.spool, self.settings = spool, settings
        self.tension = math.nan
        self._tension = TensionEstimate(spool, settings)
        self._met: tuple[float, int] | None = None
        self._wait = settings.window

    def slowed(self, command: DriveCommand) -> DriveCommand:
        """Command slowed to the speed that a servo needs to push, as long as the tendon may still be at its ceiling."""
        slow = 1.2 * MIN_LOADED_RATE * self.spool.actuator.rate
        if self._met is None or command.kind is not Drive.VELOCITY or not command.value < -slow:
            return command
        return replace(command, value=-slow)

    def update(self, cycle: int, tendon: TendonReading, command: DriveCommand | None) -> TendonReading:
        """The reading of the tendon, with the ceiling as its tension as long as the tendon must be assumed there."""
        ceiling = self.spool.actuator.effort
        self.tension = tension = self._tension.update(tendon, command)
        if self.spool.load_at_rest:
            return tendon
        if tendon.tension >= ceiling:
            if self._met is not None and cycle - self._met[1] > self.settings.lag:
                self._wait *= 2
            self._met = (tendon.length, cycle)
        elif self._met is not None:
            paid_out = tendon.length > self._met[0] + self.settings.motion_tolerance
            if paid_out or tension < ceiling:
                self._met, self._wait = None, self.settings.window
        if self._met is None or cycle - self._met[1] > self._wait:
            return tendon
        return replace(tendon, tension=max(ceiling, tendon.tension))


class TensionMonitor(TendonFindingMonitor):
    """Monitor of a tendon's tension: a fault is a tension that the motion of its servo does not explain.

    The finding comes from the current and must persist. It is a fault only if the carried force over the same cycles
    confirms it.
    """

    def __init__(self, kind: FaultKind, settings: SafetySettings, spool: Spool) -> None:
        super().__init__(kind, settings, spool)
        self._tension = TensionEstimate(spool, settings)
        self._carried = CarriedForce(spool, self.persistence)

    def update(self, cycle: int, readings: Readings, commands: Commands) -> Fault | None:
        tendon = readings.tendons.get(self.spool.name)
        if tendon is not None:
            self._carried.update(tendon, commands.get(self.spool.name), elapsed(readings, self.settings))
        fault = super().update(cycle, readings, commands)
        if fault is None:
            return None
        carried = self.carried
        return None if not math.isnan(carried) and self.explains(carried) else fault

    @property
    def carried(self) -> float:
        """Force [N] that the tendon carries, a mean over the cycles of the persistence; nan where unknown."""
        return self._carried.mean

    @abstractmethod
    def explains(self, carried: float) -> bool:
        """Whether a carried force [N], positive for winding in, means that nothing is wrong."""


@tendon_monitor(FaultKind.TENSION_CEILING)
class TensionCeilingMonitor(TensionMonitor):
    """Tension above the actuator's ceiling."""

    def finding(self, tendon: TendonReading, readings: Readings, command: DriveCommand | None) -> str | None:
        ceiling, tension = self.spool.actuator.effort, self._tension.update(tendon, command)
        if not abs(tension) > ceiling * self.settings.tension_margin:
            return None
        return f"its tension is about {tension:.0f} N, above its ceiling of {ceiling:.0f} N"

    def explains(self, carried: float) -> bool:
        return abs(carried) <= self.spool.actuator.effort * self.settings.tension_margin


@tendon_monitor(FaultKind.SLACK)
class SlackMonitor(TensionMonitor):
    """A tendon without tension."""

    def finding(self, tendon: TendonReading, readings: Readings, command: DriveCommand | None) -> str | None:
        least, tension = slack_tension(self.spool, self.settings), self._tension.update(tendon, command)
        if not tension < least:
            return None
        pull = self.spool.pull(tendon.raw)
        if pull < -pulled_in(self.spool, self.settings):  # winding in would pay out a tendon that is wound backwards
            return f"it is slack or wound on backwards (its servo pushes outwards with about {-pull:.0f} N)"
        return f"it is slack (about {tension:.1f} N, below {least:.1f} N)"

    def explains(self, carried: float) -> bool:
        return carried >= slack_tension(self.spool, self.settings)


LATE_CYCLE, LATE_COMMAND = 1.5, 3.0
"""Planned periods beyond which a bus cycle, or the time since the last command, is late."""


@tendon_monitor(FaultKind.SNAPPED)
class SnappedMonitor(TensionMonitor):
    """Tension that vanishes at once although the tendon was not paid out, and does not return.

    A late computer stops and starts all spools abruptly, so that the robot swings, and intact tendons become slack for
    a moment. They carry again within the same swing; a snapped tendon never does. While cycles or commands are late,
    and for `window` cycles after that, the tension must therefore have been gone for `window` cycles in a row.
    """

    def __init__(self, kind: FaultKind, settings: SafetySettings, spool: Spool) -> None:
        super().__init__(kind, settings, spool)
        self._swings = 0  # cycles for which the robot may still swing
        self._past: deque[tuple[float, float]] = deque(maxlen=2 * settings.snap_cycles)
        self._before: tuple[float, float] | None = None

    def update(self, cycle: int, readings: Readings, commands: Commands) -> Fault | None:
        settings, age = self.settings, readings.command.age
        waited = 0.0 if age is None else age / settings.period
        late = readings.period > LATE_CYCLE * settings.period or LATE_COMMAND < waited <= settings.stale
        self._swings = settings.window if late else max(self._swings - 1, 0)
        self.persistence = settings.window if self._swings else settings.persistence(self.kind)
        return super().update(cycle, readings, commands)

    def finding(self, tendon: TendonReading, readings: Readings, command: DriveCommand | None) -> str | None:
        tension = self._tension.update(tendon, command)
        if math.isnan(tension):
            return None
        if tension > slack_tension(self.spool, self.settings):
            self._before = None
            self._past.append((tension, tendon.length))
            return None
        if self._before is None and self._past:
            self._before = max(self._past)  # highest tension of the last cycles, with its length
        self._past.clear()
        if self._before is None:
            return None
        tight, length = self._before
        paid_out = tendon.length - length
        if self.spool.stiffness is None:
            explained = math.inf if paid_out > 0.2 * self.settings.motion_tolerance else 0.0
        else:
            explained = 1.5 * self.spool.stiffness * max(paid_out, 0.0)
        if not tight - tension >= self.settings.snap_drop + explained:
            return None
        return (
            f"its tension fell from about {tight:.0f} N to {tension:.0f} N without being paid out; it may have snapped"
        )

    def explains(self, carried: float) -> bool:
        return carried > slack_tension(self.spool, self.settings)


@tendon_monitor(FaultKind.WOUND_BACKWARDS)
class WoundBackwardsMonitor(TensionMonitor):
    """A tendon can only pull: its servo never pushes outwards, except against the friction of its gear."""

    def finding(self, tendon: TendonReading, readings: Readings, command: DriveCommand | None) -> str | None:
        pull = self.spool.pull(tendon.raw)
        if not pull < -wrong_pull(self.spool, self.settings):
            return None
        force = f"{-pull:.0f} N"
        return f"its servo pushes outwards with about {force}, which no tendon resists that is wound on as configured"

    def explains(self, carried: float) -> bool:
        return carried >= -wrong_pull(self.spool, self.settings)


@tendon_monitor(FaultKind.WOUND_BACKWARDS)
class PulledInMonitor(TendonFindingMonitor):
    """A spool that winds in must pull: against its tendon, and against the friction of its gear.

    A servo that pushes outwards while its spool winds in, without being slowed down, is pulled by a tendon on the wrong
    side of its spool. This shows tensions far below `wrong_pull`, before the tendon is paid out. Only cycles in which a
    stiffly held spool winds in no more slowly than before count: a servo that brakes also pushes outwards.
    """

    def __init__(self, kind: FaultKind, settings: SafetySettings, spool: Spool) -> None:
        super().__init__(kind, settings, spool)
        self.persistence = PULLED_IN_CYCLES
        self._length = self._speed = math.nan

    def restart(self) -> None:
        self._length = self._speed = math.nan
        self._count = 0

    def finding(self, tendon: TendonReading, readings: Readings, command: DriveCommand | None) -> str | None:
        before = self._speed
        speed = self._speed = (self._length - tendon.length) / elapsed(readings, self.settings)
        self._length = tendon.length
        least = LEAST_WINDING * self.spool.actuator.rate
        soft = command is None or command.impedance is not None
        steady = speed > least and speed >= (1.0 - STEADY) * before - 0.5 * least
        if soft or not self.spool.load_at_rest or not steady:
            return None
        pull = self.spool.pull(tendon.raw)
        if not pull < -pulled_in(self.spool, self.settings):
            return None
        return (
            f"its servo is pulled inwards with about {-pull:.0f} N while it winds in, as by a tendon on the other side "
            "of its spool"
        )


@tendon_monitor(FaultKind.WOUND_BACKWARDS)
class PushingAtRestMonitor(TendonFindingMonitor):
    """A spool that stands although its servo pushes outwards: friction resists, or a tendon on the wrong side of it.

    To wind a tendon in, its servo pulls against the tendon and friction, hence with more than friction can hold at
    rest; a tendon on the wrong side helps instead. A larger push outwards than the pull of the last steady motion
    inwards is therefore not held by friction, however large it is; nor is that of a spool that nobody has paid out yet.
    This holds for impedances as well, whose servos push and brake while they move.
    """

    def __init__(self, kind: FaultKind, settings: SafetySettings, spool: Spool) -> None:
        super().__init__(kind, settings, spool)
        self.persistence = settings.window
        self._length = self._speed = math.nan
        self._first = math.nan  # first set point [m]
        self._winds, self._pulled = False, -math.inf  # whether it winds in, and the largest steady pull of that [N]

    def restart(self) -> None:
        self._length = self._speed = math.nan
        self._count = 0

    def finding(self, tendon: TendonReading, readings: Readings, command: DriveCommand | None) -> str | None:
        pull, spool, before = self.spool.pull(tendon.raw), self.spool, self._speed
        speed = self._speed = (self._length - tendon.length) / elapsed(readings, self.settings)
        self._length = tendon.length
        least = LEAST_WINDING * spool.actuator.rate
        if self._pulled == -math.inf and command is not None and command.kind is Drive.POSITION:
            self._first = command.value if math.isnan(self._first) else self._first
            if command.value > self._first + 0.01 * self.settings.motion_tolerance:
                self._pulled = math.inf  # paid out before it was wound in: friction may hold anything
        if speed > least and abs(speed - before) <= STEADY * before + 0.5 * least:
            self._pulled = max(self._pulled, pull) if self._winds else pull
            self._winds = True
        elif speed < -least:
            self._winds = False
        held = max(AT_REST * wrong_pull(spool, self.settings), self._pulled)
        if not spool.load_at_rest or not abs(speed) <= least or not pull < -held:
            return None
        return f"its servo pushes outwards with about {-pull:.0f} N at rest, as against a tendon on the other side"


# -- the servo ---------------------------------------------------------------------------------------------------------


@tendon_monitor(FaultKind.OVERLOAD)
def overload(tendon: TendonReading, spool: Spool, settings: SafetySettings) -> str | None:
    if "overload" in tendon.raw.errors:
        return "its servo reports overload"
    load = tendon.raw.load
    if load is None or not abs(load) > settings.largest_load:
        return None
    return f"its servo pushes with {abs(load) * 100:.0f} % of its stall torque"


@tendon_monitor(FaultKind.OVERHEATING)
def overheating(tendon: TendonReading, spool: Spool, settings: SafetySettings) -> str | None:
    limit, temperature = settings.temperatures[1], tendon.raw.temperature
    if "overheating" in tendon.raw.errors:
        return "its servo reports overheating"
    if temperature is None or not temperature >= limit:
        return None
    return f"its servo is at {temperature:.0f} °C, limit {limit:.0f} °C"


@tendon_monitor(FaultKind.WARM)
def warm(tendon: TendonReading, spool: Spool, settings: SafetySettings) -> str | None:
    (warning, limit), temperature = settings.temperatures, tendon.raw.temperature
    if temperature is None or not warning <= temperature < limit:
        return None
    return f"its servo is at {temperature:.0f} °C and stops at {limit:.0f} °C"


@tendon_monitor(FaultKind.UNDERVOLTAGE)
def undervoltage(tendon: TendonReading, spool: Spool, settings: SafetySettings) -> str | None:
    """Voltage of the servo too low, or its voltage error bit without a voltage that is too high."""
    (low, high), voltage = settings.voltages, tendon.raw.voltage
    if voltage is not None and voltage < low:
        return f"its servo gets {voltage:.1f} V, less than {low:.1f} V"
    if "voltage" in tendon.raw.errors and not (voltage is not None and voltage > high):
        return "its servo reports a voltage outside its limits"
    return None


@tendon_monitor(FaultKind.OVERVOLTAGE)
def overvoltage(tendon: TendonReading, spool: Spool, settings: SafetySettings) -> str | None:
    high, voltage = settings.voltages[1], tendon.raw.voltage
    too_high = voltage is not None and voltage > high
    return f"its servo gets {voltage:.1f} V, more than {high:.1f} V" if too_high else None
