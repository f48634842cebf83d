"""Every error of the stack: each says what happened, to what, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from math import isfinite
from typing import Any


class TensegrityError(Exception):
    """Base of every error that this project raises on purpose."""


class RobotFileError(TensegrityError):
    """A robot file is wrong; the message names file, line, field, what was found and what is allowed."""


class PartError(TensegrityError):
    """A part of a robot does not suit what is asked of it.

    Attributes:
        part: block and name in a robot file, such as ("nodes", "a").
    """

    def __init__(self, message: str, *part: str) -> None:
        super().__init__(message)
        self.part = part

    def __reduce__(self) -> tuple[type[PartError], tuple[str, ...]]:
        return PartError, (str(self), *self.part)


class NoEquilibriumError(TensegrityError):
    """No equilibrium was found for the stated lengths and forces."""


class UnreachableGoalError(TensegrityError):
    """A goal pose is out of reach; has the nearest reachable pose and the tendons whose limits are active.

    Attributes:
        nearest: the nearest reachable shape (`StructureEquilibrium`), or None where none was found.
        rest_lengths: rest lengths of that shape by tendon name [m].
        binding: names of the tendons whose limit or tension floor stops the motion.
        cause: what stops the motion, in words; empty where only the message says so.
    """

    def __init__(
        self, message: str, *, nearest=None, rest_lengths=None, binding: Iterable[str] = (), cause: str = ""
    ) -> None:
        super().__init__(message)
        self.cause = cause
        self.nearest = nearest
        self.rest_lengths = dict(rest_lengths or {})
        self.binding = tuple(binding)


class InfeasibleControlError(TensegrityError):
    """A control problem is infeasible within its limits."""


class BusError(TensegrityError):
    """The servo bus failed: port, servo and instruction are named."""


class CommandRefused(TensegrityError):
    """The command gate refused a command; the message names the actuator and the reason."""


def is_finite_number(value: Any) -> bool:
    """Whether a value can be taken for one finite number; texts, lists and arrays of several cannot."""
    try:
        return isfinite(value)
    except (TypeError, ValueError, OverflowError):
        return False


def unknown_name(what: str, name: object, available: Iterable[str]) -> str:
    """Text for an unknown name: what was asked, the nearest valid name, and all that exist."""
    available = list(available)
    near = get_close_matches(str(name), available, n=1, cutoff=0.5)
    guess = f" Did you mean {near[0]!r}?" if near else ""
    listed = ", ".join(available[:30]) + (", ..." if len(available) > 30 else "")
    return f"There is no {what} {name!r}.{guess} There are: {listed or 'none'}."


class AccuracyWarning(UserWarning):
    """A result that is worse than it looks: what happened, how much, and what to do."""
