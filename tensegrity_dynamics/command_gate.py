"""Command gate: check of every actuator command, in simulation and on hardware (DESIGN section 7).

A command is checked as a whole (source, time, names, numbers) and then for each actuator (limits). Rejections have a
reason that contains the actuator. Accepted values are limited so that no position, rate or effort limit is exceeded.
Without a recent command the motion stops. An emergency stop latches until it is released.

An actuator with a rejected value keeps its last set point. A command without accepted values does not count as recent:
a source that sends only rejected values is stopped like a silent one. A command without names is a sign of life and
keeps all set points. `CommandStreams` decides which streams of commands are valid: one sender at a time, no stream that
began before a release, and no interrupted stream.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from numbers import Real
from typing import Any

from .command_streams import FRESHNESS, CommandStreams
from .errors import CommandRefused, TensegrityError, unknown_name
from .impedance import ImpedanceSetPoint, MovingPosition
from .robots.actuator import Actuator


class Mode(Enum):
    """Meaning of the values of a command."""

    POSITION = "position"
    VELOCITY = "velocity"
    EFFORT = "effort"
    IMPEDANCE = "impedance"


MODE_INDEX = {Mode.POSITION: 0, Mode.VELOCITY: 1, Mode.EFFORT: 2}
LARGEST_JUMP = 5.0
"""Difference between stamp and present time [s], above which the message reports wrong clocks and not an old
command."""
OLDEST_PERIODS = 3.0
"""Largest age of an effort command in periods of the sender: late feedback is destabilising, missing feedback is
not."""
STIFFEST, MOST_DAMPED = 1e-4, 1e-3
"""Least deviations at which an impedance gives the full effort, relative to the position range and to the rate of the
actuator. They limit stiffness and damping."""

SetPoint = float | ImpedanceSetPoint


@dataclass(frozen=True)
class Refusal:
    """A rejection or limitation: actuator (None for the whole command), and reason."""

    actuator: str | None
    reason: str

    def __str__(self) -> str:
        return self.reason if self.actuator is None else f"{self.actuator}: {self.reason}"


@dataclass(frozen=True)
class Verdict:
    """Result of the check of a command.

    Attributes:
        accepted: whether the command as a whole was accepted.
        set_points: (mode, value) by actuator that can be applied, for impedances (mode, `ImpedanceSetPoint`); other
            actuators keep their set points.
        refusals: all rejections and limitations.
        holds: reason why no command of this stream is valid at present (then the actuators hold), or None.
    """

    accepted: bool
    set_points: Mapping[str, tuple[Mode, Any]] = field(default_factory=dict)
    refusals: tuple[Refusal, ...] = ()
    holds: str | None = None


class CommandGate:
    """Check of commands for one set of actuators. Times are in seconds of the clock of the caller.

    Args:
        actuators: actuators with their limits.
        freshness: time without a command [s] after which the motion is stopped and another source can command; also the
            largest age of a command, and the largest difference of its stamp into the future.
        lead: time [s] for which a set point must stay within limits without another check, for drives that do not limit
            themselves. A position farther than rate times lead from the present one is moved nearer; a velocity is
            reduced if it would pass a position limit within this time. Both need the present positions. With None, the
            drive does both (spools of the simulation).
        limits: "refuse" rejects values outside the position or effort limits; "clip" limits them. Both are reported.
        without_impedance: reasons why actuators have no impedance mode, by name.

    Attributes:
        streams: streams of commands.
    """

    def __init__(
        self,
        actuators: Sequence[Actuator],
        *,
        freshness: float = FRESHNESS,
        limits: str = "refuse",
        lead: float | None = None,
        without_impedance: Mapping[str, str] | None = None,
    ) -> None:
        if lead is not None and not (math.isfinite(lead) and lead > 0.0):
            raise TensegrityError(f"lead is {lead} s, must be a finite time above zero, or None.")
        if not (math.isfinite(freshness) and freshness > 0.0):
            raise TensegrityError(f"freshness is {freshness} s, must be a finite time above zero.")
        if limits not in ("refuse", "clip"):
            raise TensegrityError(unknown_name("treatment of limits", limits, ("refuse", "clip")))
        self._actuators = {each.name: each for each in actuators}
        self._ceilings = {each.name: gain_ceilings(each) for each in actuators}
        self.freshness, self.limits, self.lead = freshness, limits, lead
        self._without_impedance = dict(without_impedance or {})
        self._last: float | None = None
        self._stamp: float | None = None
        self._stream: tuple[str, int] | None = None
        self._stopped: str | None = None
        self.streams = CommandStreams(freshness)

    # -- emergency stop --------------------------------------------------------------------------------------------

    @property
    def stopped(self) -> str | None:
        """Reason of the active emergency stop, or None."""
        return self._stopped

    def stop(self, reason: str) -> None:
        """Latch the emergency stop; the first reason is kept."""
        self._stopped = self._stopped or reason

    def release(self, now: float | None = None) -> None:
        """Release the emergency stop; see `begin_again`. Raises CommandRefused if none is latched."""
        if self._stopped is None:
            raise CommandRefused("there is no emergency stop to release.")
        self._stopped = None
        self.begin_again(now)

    def begin_again(self, now: float | None = None) -> None:
        """Invalidate all commands requested before `now` [s]: a new goal, a `hold` or another sender is needed."""
        self._stream = self._last = self._stamp = None
        self.streams.end(now)

    def forget(self) -> None:
        """Delete all commands, for example after a reset: any source can command next."""
        self._stream = self._last = self._stamp = None
        self.streams.forget()

    def leave(self, source: str) -> None:
        """End the command of a source: the motion stops, and any other source can command immediately.

        Raises:
            CommandRefused: another source or no source commands.
        """
        if source != self.source:
            raise CommandRefused(f"{source!r} does not command; {self.source!r} does.")
        self.forget()

    # -- freshness -------------------------------------------------------------------------------------------------

    @property
    def source(self) -> str | None:
        """Commanding source, or None."""
        return None if self._stream is None else self._stream[0]

    def is_fresh(self, now: float) -> bool:
        """Whether the last accepted command is recent; if not, the actuators must hold.

        If the clock was set back, the age of a command is unknown: then no command is recent.
        """
        return self._last is not None and 0.0 <= now - self._last <= self.freshness

    def must_hold(self, now: float) -> str | None:
        """Reason why all actuators must hold their positions now, or None."""
        if self._stopped is not None:
            return f"emergency stop ({self._stopped}); release it when it is safe."
        contest = self.streams.contest(now)
        if contest is not None:
            return contest
        if self._last is None:
            return "no command has been accepted yet."
        if not self.is_fresh(now):
            since = now - self._last
            return (
                f"no command from {self.source!r} for {since:.3f} s, longer than the {self.freshness:g} s allowed."
                if since > 0.0
                else f"the clock went back by {-since:.3f} s since the last command."
            )
        return None

    # -- commands --------------------------------------------------------------------------------------------------

    def check(
        self,
        names: Sequence[str],
        values: Sequence[SetPoint],
        mode: Mode,
        *,
        source: str,
        stamp: float,
        now: float,
        session: int = 0,
        positions: Mapping[str, float] | None = None,
        period: float = 0.0,
    ) -> Verdict:
        """Check one command.

        Args:
            names, values, mode: commanded values: position [m] (also a `MovingPosition`), velocity [m/s], effort [N]
                (joints: rad, rad/s, N m), or an `ImpedanceSetPoint` each.
            source: sender. stamp: time of the command [s]. now: present time [s].
            session: session of the source, see `CommandStreams`; 0: the source has no sessions.
            positions: present positions by actuator, for the velocity check at the limits and for `lead`.
            period: period of the commands of the source [s], 0 if they are not periodic; efforts older than three
                periods are rejected.
        """
        if not names and self.streams.announce(source, session, now):
            return Verdict(False)
        self.streams.hear(source, session, now)
        holds = self._holds(source, session, stamp, now)
        if holds is not None:
            return Verdict(False, {}, (Refusal(None, holds),), holds)
        whole = self._whole(names, values, (source, session), stamp, now)
        whole = whole or _kind(mode, values) or _age(mode, stamp, now, period)
        if whole is not None:
            return Verdict(False, {}, (Refusal(None, whole),))
        set_points: dict[str, tuple[Mode, Any]] = {}
        refusals: list[Refusal] = []
        for name, value in zip(names, values, strict=True):
            actuator, position = self._actuators[name], (positions or {}).get(name)
            allowed: SetPoint | None
            if isinstance(value, ImpedanceSetPoint):
                allowed, reason = self._impedance(actuator, value, position)
            else:
                allowed, reason = self._one(actuator, float(value), mode, position)
                if allowed is not None and isinstance(value, MovingPosition):  # a limited position is not extrapolated
                    rate = min(max(value.rate, -actuator.rate), actuator.rate)
                    allowed = MovingPosition(allowed, rate if allowed == value else 0.0)
            if reason is not None:
                refusals.append(Refusal(name, reason))
            if allowed is not None:
                set_points[name] = (mode, allowed)
        if set_points or not names:
            self._stream, self._last, self._stamp = (source, session), now, stamp
        return Verdict(True, set_points, tuple(refusals))

    # -- parts -----------------------------------------------------------------------------------------------------

    def _holds(self, source: str, session: int, stamp: float, now: float) -> str | None:
        """Reason why no command of a stream is valid, independent of its content, or None."""
        if self._stopped is not None:
            return f"emergency stop ({self._stopped}); release it first."
        return self.streams.contest(now) or self.streams.ended(source, session, stamp)

    def _whole(
        self, names: Sequence[str], values: Sequence[SetPoint], stream: tuple[str, int], stamp: float, now: float
    ) -> str | None:
        """Reason for the rejection of the command as a whole, or None."""
        if len(names) != len(values):
            return f"{len(names)} names for {len(values)} values; give one value for each name."
        if len(set(names)) != len(names):
            twice = next(name for name in names if list(names).count(name) > 1)
            return f"actuator {twice} is commanded twice in one message; name it once."
        for name, value in zip(names, values, strict=True):
            if name not in self._actuators:
                return unknown_name("actuator", name, self._actuators)
            if isinstance(value, ImpedanceSetPoint):
                continue  # already checked when it was created
            if not isinstance(value, Real) or not math.isfinite(value):
                return f"the value for {name} is {value}; every value must be a finite number."
        if not math.isfinite(now):
            return f"the clock says {now}; nothing moves without a clock."
        if not math.isfinite(stamp) or abs(now - stamp) > LARGEST_JUMP:
            return (
                f"the command is stamped {stamp:.3f} s, but it is {now:.3f} s now; the clocks differ by more than "
                f"{LARGEST_JUMP:g} s."
            )
        if stamp - now > self.freshness:
            return (
                f"the command is stamped {stamp - now:.3f} s ahead of the clock, more than the {self.freshness:g} s "
                "allowed; set the clocks alike."
            )
        if now - stamp > self.freshness:
            return f"the command is {now - stamp:.3f} s old, older than the {self.freshness:g} s allowed."
        if self._stream == stream and self._stamp is not None and self.is_fresh(now) and stamp < self._stamp:
            return f"the command is stamped {stamp:.3f} s, before the last one ({self._stamp:.3f} s)."
        return None

    def _impedance(
        self, actuator: Actuator, asked: ImpedanceSetPoint, position: float | None
    ) -> tuple[ImpedanceSetPoint | None, str | None]:
        """As `_one`, for all values of an impedance."""
        if actuator.name in self._without_impedance:
            return None, f"{self._without_impedance[actuator.name]}; refused."
        low, high = actuator.position
        stiffest, most_damped = self._ceilings[actuator.name]
        if (
            self.lead is None and low <= asked.position <= high and abs(asked.velocity) <= actuator.rate
            and abs(asked.effort) <= actuator.effort and (position is None or low < position < high)
            and asked.stiffness <= stiffest and asked.damping <= most_damped and actuator.motion != "tendon"
        ):  # fmt: skip
            return asked, None  # common case: all parts are valid without changes
        for name, gain, ceiling, per in (
            ("stiffness", asked.stiffness, stiffest, 0), ("damping", asked.damping, most_damped, 1)
        ):  # fmt: skip
            if gain > ceiling:
                unit = f"{actuator.units[2]} per {actuator.units[per]}"
                return None, f"{name} {gain:.6g} {unit} is above its ceiling of {ceiling:.6g}; refused."
        parts, reasons = {}, []
        for name, value, mode in (
            ("position", asked.position, Mode.POSITION),
            ("velocity", asked.velocity, Mode.VELOCITY),
            ("effort", asked.effort, Mode.EFFORT),
        ):
            allowed, reason = self._one(actuator, value, mode, position)
            if allowed is None:
                return None, reason
            if allowed != value:
                parts[name] = allowed
            if reason is not None:
                reasons.append(reason)
        return replace(asked, **parts) if parts else asked, " ".join(reasons) or None

    def _one(
        self, actuator: Actuator, value: float, mode: Mode, position: float | None
    ) -> tuple[float | None, str | None]:
        """Value that can be applied (None: no value), and error of the commanded value (None: no error)."""
        low, high = actuator.position
        unit = actuator.units[MODE_INDEX[mode]]
        if self.lead is not None and mode is not Mode.EFFORT and not (position is not None and math.isfinite(position)):
            return None, f"its present position is {position}, so that its motion cannot be limited; refused."
        if mode is Mode.POSITION:
            if self.lead is not None and position is not None and low <= value <= high:
                reach = actuator.rate * self.lead
                near = min(max(value, position - reach), position + reach)
                if near != value:
                    near = min(max(near, low), high)  # the present position can be outside
                    return near, (
                        f"{value:.6g} {unit} is further from {position:.6g} {unit} than {self.lead:g} s at its "
                        f"{actuator.rate:.6g} {actuator.units[1]}, limited to {near:.6g} {unit}."
                    )
            if low <= value <= high:
                return value, None
            limit = low if value < low else high
            side = "below its lower" if value < low else "above its upper"
            reason = f"{value:.6g} {unit} is {side} limit of {limit:.6g} {unit}"
            return (limit, reason + ", limited.") if self.limits == "clip" else (None, reason + "; refused.")
        if mode is Mode.VELOCITY:
            allowed = min(max(value, -actuator.rate), actuator.rate)
            slowed: str | None = None
            if allowed != value:
                slowed = f"{value:.6g} {unit} is faster than its {actuator.rate:.6g} {unit}, limited."
            if position is not None and ((position <= low and allowed < 0.0) or (position >= high and allowed > 0.0)):
                limit = low if allowed < 0.0 else high
                return (
                    0.0,
                    f"it stands at its limit of {limit:.6g} {actuator.units[0]} ({position:.6g}) and may not go on.",
                )
            if self.lead is not None and position is not None:
                margin = (low if allowed < 0.0 else high) - position
                if abs(allowed) * self.lead > abs(margin):
                    allowed = margin / self.lead
                    return allowed, f"{value:.6g} {unit} is slowed to {allowed:.6g} {unit} near its position limit."
            return allowed, slowed
        if value < 0.0 and actuator.motion == "tendon":
            return 0.0, f"{value:.6g} {unit} would push a tendon, limited to 0."
        if abs(value) > actuator.effort:
            limit = math.copysign(actuator.effort, value)
            reason = f"{value:.6g} {unit} is above its ceiling of {actuator.effort:.6g} {unit}"
            return (limit, reason + ", limited.") if self.limits == "clip" else (None, reason + "; refused.")
        return value, None


def gain_ceilings(actuator: Actuator) -> tuple[float, float]:
    """Largest stiffness and damping of an impedance that an actuator accepts."""
    low, high = actuator.position
    return actuator.effort / (STIFFEST * (high - low)), actuator.effort / (MOST_DAMPED * actuator.rate)


def _kind(mode: Mode, values: Sequence[SetPoint]) -> str | None:
    """Reason why values do not fit the mode, or None."""
    if all(isinstance(value, ImpedanceSetPoint) == (mode is Mode.IMPEDANCE) for value in values):
        return None
    what = "a whole impedance set point" if mode is Mode.IMPEDANCE else "a number"
    return f"mode {mode.value} takes {what} for each name."


def _age(mode: Mode, stamp: float, now: float, period: float) -> str | None:
    """Reason why a command is too old for its mode, or None."""
    if not (math.isfinite(period) and period >= 0.0):
        return f"the period of the source is {period} s; it must be zero (unknown) or a finite time above zero."
    if mode is Mode.EFFORT and period > 0.0 and now - stamp > OLDEST_PERIODS * period * (1.0 + 1e-6):
        return (
            f"the efforts are {now - stamp:.3f} s old, more than {OLDEST_PERIODS:g} of the source's periods of "
            f"{period:g} s; late efforts destroy what they should control."
        )
    return None
