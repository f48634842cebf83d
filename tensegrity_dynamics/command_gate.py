"""The one gate that every actuator command passes, in simulation and on hardware alike (DESIGN section 7).

A command is looked at as a whole (source, time, names, numbers) and then actuator by actuator (limits). What is
refused is refused with a reason that names the actuator; what may pass is limited so that no position, rate or effort
limit is ever exceeded. Without a fresh command the motion stops; an emergency stop latches until it is released.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from .errors import CommandRefused, TensegrityError, unknown_name
from .robot import Actuator


class Mode(Enum):
    """What the values of a command mean."""

    POSITION = "position"
    VELOCITY = "velocity"
    EFFORT = "effort"


UNITS = {Mode.POSITION: "m", Mode.VELOCITY: "m/s", Mode.EFFORT: "N"}


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
        set_points: (mode, value) by actuator that may now be applied; actuators not named keep theirs.
        refusals: everything that was refused or limited.
    """

    accepted: bool
    set_points: Mapping[str, tuple[Mode, float]] = field(default_factory=dict)
    refusals: tuple[Refusal, ...] = ()


class CommandGate:
    """Checks commands for one set of actuators. Times are seconds of whatever clock the caller uses.

    Args:
        actuators: with their limits.
        freshness: s without a command after which the motion is stopped and another source may command.
        largest_jump: s by which a command may be older or newer than now before the clocks are called wrong.
        limits: "refuse" refuses a value outside the position or effort limits; "clip" brings it to the limit. Either
            way the refusal is reported.
    """

    def __init__(
        self,
        actuators: Sequence[Actuator],
        *,
        freshness: float = 0.5,
        largest_jump: float = 5.0,
        limits: str = "refuse",
    ) -> None:
        if not (math.isfinite(freshness) and freshness > 0.0 and math.isfinite(largest_jump) and largest_jump > 0.0):
            raise TensegrityError("freshness and largest_jump must be finite times above zero.")
        if limits not in ("refuse", "clip"):
            raise TensegrityError(unknown_name("way to treat limits", limits, ("refuse", "clip")))
        self._actuators = {each.name: each for each in actuators}
        self.freshness, self.largest_jump, self.limits = freshness, largest_jump, limits
        self._source: str | None = None
        self._last: float | None = None
        self._stamp: float | None = None
        self._stopped: str | None = None

    # -- emergency stop --------------------------------------------------------------------------------------------

    @property
    def stopped(self) -> str | None:
        """Why the emergency stop holds, or None."""
        return self._stopped

    def stop(self, reason: str) -> None:
        """Latch the emergency stop; the first reason stays."""
        self._stopped = self._stopped or reason

    def release(self) -> None:
        """Release the emergency stop and forget who commanded; raises CommandRefused where none is latched."""
        if self._stopped is None:
            raise CommandRefused("there is no emergency stop to release.")
        self._stopped = None
        self.forget()

    def forget(self) -> None:
        """Forget the last command, as after a reset: any source may command next."""
        self._source = self._last = self._stamp = None

    # -- freshness -------------------------------------------------------------------------------------------------

    @property
    def source(self) -> str | None:
        """Who commands, or None."""
        return self._source

    def is_fresh(self, now: float) -> bool:
        """Whether the last accepted command is recent; where it is not, spools must hold."""
        return self._last is not None and -self.largest_jump <= now - self._last <= self.freshness

    # -- commands --------------------------------------------------------------------------------------------------

    def check(
        self,
        names: Sequence[str],
        values: Sequence[float],
        mode: Mode,
        *,
        source: str,
        stamp: float,
        now: float,
        positions: Mapping[str, float] | None = None,
    ) -> Verdict:
        """Check one command.

        Args:
            names, values, mode: what is asked; position m, velocity m/s, effort N (joints: rad, rad/s, N m).
            source: who asks. stamp: when it was asked; now: the present time; both in s.
            positions: present positions by actuator, for the velocity check at the limits.
        """
        whole = self._whole(names, values, source, stamp, now)
        if whole is not None:
            return Verdict(False, {}, (Refusal(None, whole),))
        set_points: dict[str, tuple[Mode, float]] = {}
        refusals: list[Refusal] = []
        for name, value in zip(names, values, strict=True):
            allowed, reason = self._one(self._actuators[name], float(value), mode, (positions or {}).get(name))
            if reason is not None:
                refusals.append(Refusal(name, reason))
            if allowed is not None:
                set_points[name] = (mode, allowed)
        self._source, self._last, self._stamp = source, now, stamp
        return Verdict(True, set_points, tuple(refusals))

    # -- parts -----------------------------------------------------------------------------------------------------

    def _whole(
        self, names: Sequence[str], values: Sequence[float], source: str, stamp: float, now: float
    ) -> str | None:
        """Why the command as a whole is refused, or None."""
        if self._stopped is not None:
            return f"emergency stop ({self._stopped}); release it first."
        if len(names) != len(values):
            return f"{len(names)} names for {len(values)} values; give one value for each name."
        if len(set(names)) != len(names):
            twice = next(name for name in names if list(names).count(name) > 1)
            return f"actuator {twice} is commanded twice in one message; name it once."
        for name, value in zip(names, values, strict=True):
            if name not in self._actuators:
                return unknown_name("actuator", name, self._actuators)
            if not isinstance(value, (int, float)) or not math.isfinite(value):
                return f"the value for {name} is {value}; every value must be a finite number."
        if not math.isfinite(stamp) or abs(now - stamp) > self.largest_jump:
            return (
                f"the command is stamped {stamp:.3f} s, but it is {now:.3f} s now; the clocks differ by more than "
                f"{self.largest_jump:g} s."
            )
        if now - stamp > self.freshness:
            return f"the command is {now - stamp:.3f} s old, older than the {self.freshness:g} s allowed."
        if self._source not in (None, source) and self.is_fresh(now):
            return (
                f"{source!r} commands while {self._source!r} does; stop that one first, or wait {self.freshness:g} s."
            )
        if self._source == source and self._stamp is not None and self.is_fresh(now) and stamp < self._stamp:
            return f"the command is stamped {stamp:.3f} s, before the last one ({self._stamp:.3f} s)."
        return None

    def _one(
        self, actuator: Actuator, value: float, mode: Mode, position: float | None
    ) -> tuple[float | None, str | None]:
        """The value that may be applied (None: nothing), and what is wrong with the one asked for (None: nothing)."""
        low, high = actuator.position
        unit = UNITS[mode]
        if mode is Mode.POSITION:
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
                return 0.0, f"it stands at its limit of {position:.6g} m and may not go on."
            return allowed, slowed
        if value < 0.0 and actuator.minimum_tension >= 0.0 and self._pulls_only(actuator):
            return 0.0, f"{value:.6g} {unit} would push a tendon, limited to 0."
        if abs(value) > actuator.effort:
            limit = math.copysign(actuator.effort, value)
            reason = f"{value:.6g} {unit} is above its ceiling of {actuator.effort:.6g} {unit}"
            return (limit, reason + ", limited.") if self.limits == "clip" else (None, reason + "; refused.")
        return value, None

    @staticmethod
    def _pulls_only(actuator: Actuator) -> bool:
        """A tendon's rest length is above zero; a joint's position range is free."""
        return actuator.position[0] > 0.0
