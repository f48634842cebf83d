"""Monitors of one tendon each that compare one value with its limit: lengths, tensions, load, heat, voltage, state."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace

from ...spools.readings import PUSHING, Drive, DriveCommand, Readings, Spool, TendonReading, finite
from ..faults import FaultKind, SafetySettings
from .sensors import HARDWARE_ERRORS, TendonMonitor

AT_ONCE = 2
"""Cycles that make a fault where one reading alone could still be a damaged one."""


class SpoolLimit(TendonMonitor):
    """A rest length outside the position limits of its actuator."""

    kind = FaultKind.SPOOL_LIMIT
    remedy = "wind it back by hand or by release, and check calibration and limits"

    @property
    def cycles(self) -> int:
        """Cycles in a row that make a fault."""
        return AT_ONCE

    def finding(self, tendon: TendonReading, readings: Readings, command: DriveCommand | None) -> str | None:
        """What is wrong in this cycle, or None."""
        low, high = self.spool.actuator.position
        margin = self.settings.limit_margin
        if not finite(tendon.length) or low - margin <= tendon.length <= high + margin:
            return None
        return f"its rest length is {tendon.length * 1e3:.1f} mm, outside {low * 1e3:.1f} to {high * 1e3:.1f} mm"


class Pushing:
    """Since when a servo that pushes only while it winds in has been winding in: its load tells nothing before."""

    def __init__(self, spool: Spool, settings: SafetySettings) -> None:
        self.spool, self.settings = spool, settings
        self._cycles = 0

    def tension(self, tendon: TendonReading, command: DriveCommand | None) -> float:
        """The tension [N], or nan; to be asked once in every cycle."""
        self._cycles = self._cycles + 1 if self.spool.tells_tension(command) else 0
        return tendon.tension if self.spool.load_at_rest or self._cycles > self.settings.lag else math.nan


class CeilingMemory:
    """Remembers that a tendon met its ceiling after its servo has stopped pushing, and its load with it.

    Without this such a servo would wind in again as soon as it stops, and stop as soon as it winds in, a little further
    every time. It waits for a window before it tries again, slowly, and twice as long after every try that meets the
    ceiling.
    """

    def __init__(self, spool: Spool, settings: SafetySettings) -> None:
        self.spool, self.settings = spool, settings
        self._pushing = Pushing(spool, settings)
        self._met: tuple[float, int] | None = None
        self._wait = settings.window

    def slowed(self, asked: DriveCommand) -> DriveCommand:
        """A command no faster than a servo needs to push, as long as the ceiling may still be there."""
        slow = 1.2 * PUSHING * self.spool.actuator.rate
        if self._met is None or asked.kind is not Drive.VELOCITY or not asked.value < -slow:
            return asked
        return replace(asked, value=-slow)

    def update(self, cycle: int, tendon: TendonReading, command: DriveCommand | None) -> TendonReading:
        """The tendon as read, with the ceiling for its tension as long as it must be taken to be there."""
        ceiling = self.spool.actuator.effort
        known = self._pushing.tension(tendon, command)
        if self.spool.load_at_rest:
            return tendon
        if tendon.tension >= ceiling:
            if self._met is not None and cycle - self._met[1] > self.settings.lag:
                self._wait *= 2
            self._met = (tendon.length, cycle)
        elif self._met is not None:
            paid_out = tendon.length > self._met[0] + self.settings.motion_tolerance
            if paid_out or known < ceiling:
                self._met, self._wait = None, self.settings.window
        if self._met is None or cycle - self._met[1] > self._wait:
            return tendon
        return replace(tendon, tension=max(ceiling, tendon.tension))


class _OfTension(TendonMonitor):
    """Something about tension; nothing is found as long as it is not known."""

    def __init__(self, spool: Spool, settings: SafetySettings) -> None:
        super().__init__(spool, settings)
        self.pushing = Pushing(spool, settings)


class TensionCeiling(_OfTension):
    """More tension than the actuator may take."""

    kind = FaultKind.TENSION_CEILING
    remedy = "pay out this tendon or one that pulls against it, then clear the fault"

    def finding(self, tendon: TendonReading, readings: Readings, command: DriveCommand | None) -> str | None:
        """What is wrong in this cycle, or None."""
        ceiling = self.spool.actuator.effort
        tension = self.pushing.tension(tendon, command)
        if not tension > ceiling * self.settings.tension_margin:
            return None
        return f"its tension is about {tension:.0f} N, above its ceiling of {ceiling:.0f} N"


def slack_tension(spool: Spool, settings: SafetySettings) -> float:
    """Tension [N] below which a tendon is called slack."""
    return 0.5 * spool.actuator.minimum_tension if settings.slack_tension is None else settings.slack_tension


class Slack(_OfTension):
    """A tendon that carries nothing."""

    kind = FaultKind.SLACK
    remedy = "wind it in until it carries again before you move far"

    def finding(self, tendon: TendonReading, readings: Readings, command: DriveCommand | None) -> str | None:
        """What is wrong in this cycle, or None."""
        least = slack_tension(self.spool, self.settings)
        tension = self.pushing.tension(tendon, command)
        if not tension < least:
            return None
        return f"it is slack (about {tension:.1f} N, below {least:.1f} N)"


class Snapped(_OfTension):
    """Tension that is gone at once although the tendon was not paid out."""

    kind = FaultKind.SNAPPED
    remedy = "look at this tendon before anything moves; if it is whole, tighten its knot and home it"

    def __init__(self, spool: Spool, settings: SafetySettings) -> None:
        super().__init__(spool, settings)
        self._past: deque[tuple[float, float]] = deque(maxlen=2 * settings.snap_cycles)
        self._before: tuple[float, float] | None = None

    @property
    def detects_within(self) -> int:
        """Bus cycles from cause to fault."""
        return self.settings.snap_cycles

    @property
    def cycles(self) -> int:
        """Cycles in a row that make a fault."""
        return self.settings.snap_cycles

    def finding(self, tendon: TendonReading, readings: Readings, command: DriveCommand | None) -> str | None:
        """What is wrong in this cycle, or None."""
        tension = self.pushing.tension(tendon, command)
        if math.isnan(tension):
            return None
        least = slack_tension(self.spool, self.settings)
        if tension > least:
            self._before = None
            self._past.append((tension, tendon.length))
            return None
        if self._before is None and self._past:
            self._before = max(self._past)  # the tightest of the last cycles, with its length
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


class Overload(TendonMonitor):
    """The servo pushes at its limit, or says that it is overloaded."""

    kind = FaultKind.OVERLOAD
    remedy = "pay out what pulls against it; AX-12A: set its torque limit again before torque on"

    def finding(self, tendon: TendonReading, readings: Readings, command: DriveCommand | None) -> str | None:
        """What is wrong in this cycle, or None."""
        if "overload" in tendon.raw.errors:
            return "its servo reports overload"
        load = tendon.raw.load
        if load is None or not abs(load) > self.settings.largest_load:
            return None
        return f"its servo pushes with {abs(load) * 100:.0f} % of its stall torque"


class Overheating(TendonMonitor):
    """The servo is too hot, or says so."""

    kind = FaultKind.OVERHEATING
    remedy = "let it cool down, lower the pretension and look for rubbing"

    def finding(self, tendon: TendonReading, readings: Readings, command: DriveCommand | None) -> str | None:
        """What is wrong in this cycle, or None."""
        limit, heat = self.settings.temperatures[1], tendon.raw.temperature
        if "overheating" in tendon.raw.errors:
            return "its servo reports overheating"
        return f"its servo is at {heat:.0f} °C, limit {limit:.0f} °C" if heat is not None and heat >= limit else None


class Warm(TendonMonitor):
    """The servo will be too hot before long."""

    kind = FaultKind.WARM
    remedy = "rest it soon or lower the pretension"

    def finding(self, tendon: TendonReading, readings: Readings, command: DriveCommand | None) -> str | None:
        """What is wrong in this cycle, or None."""
        (warning, limit), heat = self.settings.temperatures, tendon.raw.temperature
        if heat is None or not warning <= heat < limit:
            return None
        return f"its servo is at {heat:.0f} °C and stops at {limit:.0f} °C"


class Undervoltage(TendonMonitor):
    """Too little voltage at the servo, or its voltage error bit with a voltage that is not too high."""

    kind = FaultKind.UNDERVOLTAGE
    remedy = "check supply, cable lengths and how many servos push at once"

    def finding(self, tendon: TendonReading, readings: Readings, command: DriveCommand | None) -> str | None:
        """What is wrong in this cycle, or None."""
        (low, high), voltage = self.settings.voltages, tendon.raw.voltage
        if voltage is not None and voltage < low:
            return f"its servo gets {voltage:.1f} V, less than {low:.1f} V"
        if "voltage" in tendon.raw.errors and not (voltage is not None and voltage > high):
            return "its servo reports a voltage outside its limits"
        return None


class Overvoltage(TendonMonitor):
    """Too much voltage at the servo."""

    kind = FaultKind.OVERVOLTAGE
    remedy = "switch the supply off and set it to the voltage of the servo"

    def finding(self, tendon: TendonReading, readings: Readings, command: DriveCommand | None) -> str | None:
        """What is wrong in this cycle, or None."""
        high, voltage = self.settings.voltages[1], tendon.raw.voltage
        too_high = voltage is not None and voltage > high
        return f"its servo gets {voltage:.1f} V, more than {high:.1f} V" if too_high else None


class HardwareError(TendonMonitor):
    """Error bits of the servo that no other monitor explains."""

    kind = FaultKind.HARDWARE_ERROR
    remedy = "switch it off and on; if the error comes back, replace the servo"

    @property
    def cycles(self) -> int:
        """Cycles in a row that make a fault."""
        return AT_ONCE

    def finding(self, tendon: TendonReading, readings: Readings, command: DriveCommand | None) -> str | None:
        """What is wrong in this cycle, or None."""
        bits = sorted(tendon.raw.errors & HARDWARE_ERRORS)
        return f"its servo reports {', '.join(bits).replace('_', ' ')}" if bits else None


class _WithTorque(TendonMonitor):
    """Something that a servo with torque must have; the state from before torque was first on says nothing."""

    def __init__(self, spool: Spool, settings: SafetySettings) -> None:
        super().__init__(spool, settings)
        self._was = False

    @property
    def cycles(self) -> int:
        """Cycles in a row that make a fault."""
        return AT_ONCE

    def lost(self, value: bool | None, command: DriveCommand | None) -> bool:
        """Whether a value that was true is false although torque is wanted."""
        if command is None or command.kind is Drive.TORQUE_OFF:
            self._was = False
            return False
        self._was = self._was or bool(value)
        return self._was and value is False


class ServoRestarted(_WithTorque):
    """Torque went off by itself: the servo restarted or shut itself down."""

    kind = FaultKind.SERVO_RESTARTED
    remedy = "check supply and plug, home this tendon again, then clear the fault"

    def finding(self, tendon: TendonReading, readings: Readings, command: DriveCommand | None) -> str | None:
        """What is wrong in this cycle, or None."""
        lost = self.lost(tendon.raw.torque_on, command)
        return "its servo switched torque off by itself; it restarted or shut down" if lost else None


class WatchdogUnarmed(_WithTorque):
    """The servo's own watchdog is off: it would go on after the driver had died."""

    kind = FaultKind.WATCHDOG_UNARMED
    remedy = "deactivate and activate the driver, which arms it again"

    def finding(self, tendon: TendonReading, readings: Readings, command: DriveCommand | None) -> str | None:
        """What is wrong in this cycle, or None."""
        lost = self.lost(tendon.raw.watchdog, command)
        return "the bus watchdog of its servo is off, so that a killed driver would not stop it" if lost else None


THRESHOLD_MONITORS: tuple[type[TendonMonitor], ...] = (
    SpoolLimit,
    TensionCeiling,
    Slack,
    Snapped,
    Overload,
    Overheating,
    Warm,
    Undervoltage,
    Overvoltage,
    HardwareError,
    ServoRestarted,
    WatchdogUnarmed,
)
