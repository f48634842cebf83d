"""The one gate that every actuator command passes, in simulation and on hardware alike (DESIGN section 7).

A command is looked at as a whole (source, time, names, numbers) and then actuator by actuator (limits). What is
refused is refused with a reason that names the actuator; what may pass is limited so that no position, rate or effort
limit is ever exceeded. Without a fresh command the motion stops; an emergency stop latches until it is released.

An actuator whose value is refused keeps its last set point, but a command of which nothing passes does not count as
fresh: a source that sends only what is refused is stopped like one that is silent. A command without names is a sign of
life and keeps all set points. Which streams of commands count at all is the matter of `CommandStreams`: one sender at a
time, none that began before a release, none that broke off.
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
    """What the values of a command mean."""

    POSITION = "position"
    VELOCITY = "velocity"
    EFFORT = "effort"
    IMPEDANCE = "impedance"


MODE_INDEX = {Mode.POSITION: 0, Mode.VELOCITY: 1, Mode.EFFORT: 2}
LARGEST_JUMP = 5.0
"""s by which stamp and now may differ before the clocks, not the command, are called wrong."""
OLDEST_PERIODS = 3.0
"""Periods of the sender after which an effort is too old: late feedback destroys, missing feedback does not."""
STIFFEST, MOST_DAMPED = 1e-4, 1e-3
"""Parts of an actuator's position range and rate at which an impedance may give all of its effort; no stiffer."""

SetPoint = float | ImpedanceSetPoint


@dataclass(frozen=True)
class Refusal:
    """One thing that was refused or limited: which actuator (or None for the whole command), and why."""

    actuator: str | None
    reason: str

    def __str__(self) -> str:
        return self.reason if self.actuator is None else f"{self.actuator}: {self.reason}"


@dataclass(frozen=True)
class Verdict:
    """What the gate made of a command.

    Attributes:
        accepted: the command as a whole was taken.
        set_points: (mode, value) by actuator that may now be applied, of impedances (mode, `ImpedanceSetPoint`);
            actuators not named keep theirs.
        refusals: everything that was refused or limited.
        holds: why no command of this stream counts at present, or None; then the actuators hold.
    """

    accepted: bool
    set_points: Mapping[str, tuple[Mode, Any]] = field(default_factory=dict)
    refusals: tuple[Refusal, ...] = ()
    holds: str | None = None


class CommandGate:
    """Checks commands for one set of actuators. Times are seconds of whatever clock the caller uses.

    Args:
        actuators: with their limits.
        freshness: s without a command after which the motion is stopped and another source may command; also the
            largest age of a command, and how far ahead of now its stamp may be.
        lead: s for which a set point must stay within limits without another check, for drives that do not limit
            themselves: a position further than rate times lead from the present one is brought nearer, a velocity is
            slowed where it would pass a position limit within that time; both need the present positions. None leaves
            both to the drive (the spools of the simulation).
        limits: "refuse" refuses a value outside the position or effort limits; "clip" brings it to the limit. Both
            are reported.
        without_impedance: why an actuator takes no impedance, by name.

    Attributes:
        streams: who commands.
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
        """Why the emergency stop holds, or None."""
        return self._stopped

    def stop(self, reason: str) -> None:
        """Latch the emergency stop; the first reason stays."""
        self._stopped = self._stopped or reason

    def release(self, now: float | None = None) -> None:
        """Release the emergency stop; see `begin_again`. Raises CommandRefused where none is latched."""
        if self._stopped is None:
            raise CommandRefused("there is no emergency stop to release.")
        self._stopped = None
        self.begin_again(now)

    def begin_again(self, now: float | None = None) -> None:
        """Nothing that was desired before `now` [s] counts any more: a goal or `hold` must come, or another sender."""
        self._stream = self._last = self._stamp = None
        self.streams.end(now)

    def forget(self) -> None:
        """Forget all commands, as after a reset: any source may command next."""
        self._stream = self._last = self._stamp = None
        self.streams.forget()

    def leave(self, source: str) -> None:
        """A source gives up its command: the motion stops and any other may take over at once.

        Raises:
            CommandRefused: another source commands, or none.
        """
        if source != self.source:
            raise CommandRefused(f"{source!r} does not command; {self.source!r} does.")
        self.forget()

    # -- freshness -------------------------------------------------------------------------------------------------

    @property
    def source(self) -> str | None:
        """Who commands, or None."""
        return None if self._stream is None else self._stream[0]

    def is_fresh(self, now: float) -> bool:
        """Whether the last accepted command is recent; where it is not, spools must hold.

        A clock that has gone back says nothing about the age of a command: then none is fresh.
        """
        return self._last is not None and 0.0 <= now - self._last <= self.freshness

    def must_hold(self, now: float) -> str | None:
        """Why every actuator must hold its position now, or None."""
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
            names, values, mode: what is asked; position m (also a `MovingPosition`), velocity m/s, effort N (joints:
                rad, rad/s, N m), or an `ImpedanceSetPoint` each.
            source: who asks. stamp: when it was asked; now: the present time; both in s.
            session: of the source, see `CommandStreams`; 0: it draws none.
            positions: present positions by actuator, for the velocity check at the limits and for `lead`.
            period: s between two commands of the source, 0 where they do not come regularly; efforts that are older
                than three are refused.
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
                if allowed is not None and isinstance(value, MovingPosition):  # what is limited stays at the limit
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
        """Why no command of a stream counts, whatever it says, or None."""
        if self._stopped is not None:
            return f"emergency stop ({self._stopped}); release it first."
        return self.streams.contest(now) or self.streams.ended(source, session, stamp)

    def _whole(
        self, names: Sequence[str], values: Sequence[SetPoint], stream: tuple[str, int], stamp: float, now: float
    ) -> str | None:
        """Why the command as a whole is refused, or None."""
        if len(names) != len(values):
            return f"{len(names)} names for {len(values)} values; give one value for each name."
        if len(set(names)) != len(names):
            twice = next(name for name in names if list(names).count(name) > 1)
            return f"actuator {twice} is commanded twice in one message; name it once."
        for name, value in zip(names, values, strict=True):
            if name not in self._actuators:
                return unknown_name("actuator", name, self._actuators)
            if isinstance(value, ImpedanceSetPoint):
                continue  # it has been checked when it was made
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
        """As `_one`, for all that an impedance consists of."""
        if actuator.name in self._without_impedance:
            return None, f"{self._without_impedance[actuator.name]}; refused."
        low, high = actuator.position
        stiffest, most_damped = self._ceilings[actuator.name]
        if (
            self.lead is None and low <= asked.position <= high and abs(asked.velocity) <= actuator.rate
            and abs(asked.effort) <= actuator.effort and (position is None or low < position < high)
            and asked.stiffness <= stiffest and asked.damping <= most_damped and actuator.motion != "tendon"
        ):  # fmt: skip
            return asked, None  # what nearly always comes: each part of it passes as it is
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
        """The value that may be applied (None: nothing), and what is wrong with the one asked for (None: nothing)."""
        low, high = actuator.position
        unit = actuator.units[MODE_INDEX[mode]]
        if self.lead is not None and mode is not Mode.EFFORT and not (position is not None and math.isfinite(position)):
            return None, f"its present position is {position}, so that its motion cannot be limited; refused."
        if mode is Mode.POSITION:
            if self.lead is not None and position is not None and low <= value <= high:
                reach = actuator.rate * self.lead
                near = min(max(value, position - reach), position + reach)
                if near != value:
                    near = min(max(near, low), high)  # it may stand outside
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
    """The largest stiffness and damping of an impedance that an actuator takes."""
    low, high = actuator.position
    return actuator.effort / (STIFFEST * (high - low)), actuator.effort / (MOST_DAMPED * actuator.rate)


def _kind(mode: Mode, values: Sequence[SetPoint]) -> str | None:
    """Why values do not go with the mode, or None."""
    if all(isinstance(value, ImpedanceSetPoint) == (mode is Mode.IMPEDANCE) for value in values):
        return None
    what = "a whole impedance set point" if mode is Mode.IMPEDANCE else "a number"
    return f"mode {mode.value} takes {what} for each name."


def _age(mode: Mode, stamp: float, now: float, period: float) -> str | None:
    """Why a command is too old for its kind, or None."""
    if not (math.isfinite(period) and period >= 0.0):
        return f"the period of the source is {period} s; it must be zero (unknown) or a finite time above zero."
    if mode is Mode.EFFORT and period > 0.0 and now - stamp > OLDEST_PERIODS * period * (1.0 + 1e-6):
        return (
            f"the efforts are {now - stamp:.3f} s old, more than {OLDEST_PERIODS:g} of the source's periods of "
            f"{period:g} s; late efforts destroy what they should control."
        )
    return None
