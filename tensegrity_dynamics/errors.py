"""Errors of the stack: each message contains the cause, the affected part and a remedy."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from math import isfinite
from typing import Any


class TensegrityError(Exception):
    """Base class of all errors that this project raises."""


class RobotFileError(TensegrityError):
    """Invalid robot file; the message contains file, line, field, the given value and the allowed values."""


class PartError(TensegrityError):
    """A part of a robot does not support a requested operation.

    Attributes:
        part: block and name in a robot file, such as ("nodes", "a").
    """

    def __init__(self, message: str, *part: str) -> None:
        super().__init__(message)
        self.part = part

    def __reduce__(self) -> tuple[type[PartError], tuple[str, ...]]:
        return PartError, (str(self), *self.part)


class StepTooShortError(PartError):
    """A part of a robot is so stiff that explicit steps would take too long; the message names it and what to do."""

    def __reduce__(self) -> tuple[type[PartError], tuple[str, ...]]:
        return StepTooShortError, (str(self), *self.part)


class NoEquilibriumError(TensegrityError):
    """No equilibrium was found for the given lengths and forces."""


class UnreachableGoalError(TensegrityError):
    """Goal pose out of reach, with the nearest reachable pose and the tendons with active limits.

    Attributes:
        nearest: nearest reachable shape (`StructureEquilibrium`), or None if none was found.
        rest_lengths: rest lengths of this shape by tendon name [m].
        binding: names of the tendons whose limit or least tension stops the motion.
        cause: text on the cause that stops the motion; empty if only the message contains it.
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
    """Failure of the servo bus; the message contains port, servo and instruction."""


class CommandRefused(TensegrityError):
    """The command gate rejected a command; the message contains the actuator and the reason."""


def is_finite_number(value: Any) -> bool:
    """Whether a value is one finite number; texts, lists and arrays with several entries are not."""
    try:
        return isfinite(value)
    except (TypeError, ValueError, OverflowError):
        return False


def unknown_name(what: str, name: object, available: Iterable[str], of: str = "") -> str:
    """Text for an unknown name: the given name, the nearest valid name, and all valid names.

    Args:
        what: kind of thing that is named, such as "controller".
        name: the unknown name.
        available: the valid names.
        of: what has these names, such as "of tensebot"; empty: nothing to say.
    """
    available = list(available)
    near = get_close_matches(str(name), available, n=1, cutoff=0.5)
    guess = f" Did you mean {near[0]!r}?" if near else ""
    listed = ", ".join(available[:30]) + (", ..." if len(available) > 30 else "")
    owner = f" {of}" if of else ""
    return f"There is no {what} {name!r}{owner}.{guess} There are: {listed or 'none'}."


class AccuracyWarning(UserWarning):
    """Warning on a result of reduced accuracy, with cause, size of the error, and remedy."""
