"""Numbers with units in robot files and on the command line: "8.5 in", "2 GPa", "300 deg/s"; inside everything is SI.

A plain number is in the file's own base units (`units:` block, SI by default), combined as the field needs: a
stiffness in a file with inches and pounds-force is in lbf/in. Angles count as a dimension of their own, so that 5 Hz is
no angular speed and 3 deg no plain number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from keyword import iskeyword
from typing import Any

from .parameters import CONSTANTS, FUNCTIONS, Value, evaluate, is_expression

STANDARD_GRAVITY = 9.80665
"""m/s^2, by which weights are reported where no robot's own gravity is meant."""

SI = {"length": "m", "mass": "kg", "force": "N", "time": "s", "angle": "rad"}

# What a quantity is made of: exponents of length, mass, force, time, angle.
QUANTITIES: dict[str, dict[str, int]] = {
    "length": {"length": 1},
    "mass": {"mass": 1},
    "force": {"force": 1},
    "angle": {"angle": 1},
    "time": {"time": 1},
    "stiffness": {"force": 1, "length": -1},
    "damping": {"force": 1, "time": 1, "length": -1},
    "acceleration": {"length": 1, "time": -2},
    "speed": {"length": 1, "time": -1},
    "angular speed": {"angle": 1, "time": -1},
    "torque": {"force": 1, "length": 1},
    "stress": {"force": 1, "length": -2},
    "viscosity": {"force": 1, "time": 1, "length": -2},
    "density": {"mass": 1, "length": -3},
    "inertia": {"mass": 1, "length": 2},
    "torsional stiffness": {"force": 1, "length": 1, "angle": -1},
    "torsional damping": {"force": 1, "length": 1, "time": 1, "angle": -1},
    "number": {},
}

EXAMPLES = {
    "length": "0.2 m, 8.5 in", "mass": "0.1 kg, 3.5 lb", "force": "20 N, 5 lbf", "angle": "0.1 rad, 5 deg",
    "time": "2 s", "stiffness": "1000 N/m, 11.36 lbf/in", "damping": "5 N s/m", "acceleration": "9.81 m/s^2",
    "speed": "0.05 m/s", "angular speed": "2 rad/s, 300 deg/s", "torque": "1.5 N m", "stress": "2 GPa",
    "viscosity": "10 MPa s", "density": "2700 kg/m^3", "inertia": "1e-4 kg m^2", "number": "1.5",
    "torsional stiffness": "2 N m/rad", "torsional damping": "0.1 N m s/rad",
}  # fmt: skip

LARGEST, LEAST = 1e15, 1e-30
"""Largest size of a number in SI; beyond it sums and products of several lose all digits or overflow. What is smaller
than the least counts as zero, for the same reason."""
LONGEST = 60  # characters of a number with its unit
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_WORD = r"(?:[A-Za-zµμΩ°][A-Za-z_]*)(?:\s*(?:\^|\*\*)\s*-?\d|[²³])?"
# Words and small powers alone: what is handed on can neither be code nor take for ever.
_UNIT = re.compile(rf"(?:1\s*/\s*)?{_WORD}(?:(?:\s*[*/·]\s*|\s+){_WORD})*")


class RefusedParametersError(ValueError):
    """Parameters of a robot file that have no value.

    Attributes:
        reasons: (name, reason) of each.
    """

    def __init__(self, reasons: Sequence[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{name}: {reason}" for name, reason in reasons))
        self.reasons = tuple(reasons)


@dataclass(frozen=True)
class BaseUnits:
    """The units of plain numbers in a file, by dimension (unnamed ones are SI), and the file's named numbers.

    Raises:
        ValueError: an unknown dimension or unit, or a unit of another dimension.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for dimension, unit in self.names.items():
            if dimension not in SI:
                raise ValueError(f"unknown dimension {dimension!r}; allowed: {', '.join(SI)}")
            _factor(str(unit), dimension)

    def to_si(self, value: Any, quantity: str) -> float:
        """A number, a text with a unit, or an expression of the parameters, in SI.

        Raises:
            ValueError: not a finite number, one above `LARGEST`, or a unit of another dimension; says what is needed.
        """
        result = self._in_si(value, quantity)
        if abs(result) > LARGEST:
            raise ValueError(f"a number above {LARGEST:g} in SI, more than can be computed with; look at its unit")
        return result if abs(result) >= LEAST else 0.0

    def _in_si(self, value: Any, quantity: str) -> float:
        needed = f"{_with_article(quantity)} is needed, such as {EXAMPLES[quantity]}"
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise ValueError(needed)
        if isinstance(value, str) and is_expression(value, self.parameters):
            return self._expression(value, quantity, needed)
        try:
            number, unit = _split(value) if isinstance(value, str) else (float(value), "")
        except (ValueError, OverflowError):
            raise ValueError(needed) from None
        result = number * (_factor(unit, quantity) if unit else self._plain(quantity))
        if not math.isfinite(result):
            raise ValueError(f"the number must be finite; {needed}")
        return result

    def with_parameters(self, values: Mapping[str, Any]) -> BaseUnits:
        """The same units with named numbers; each may be an expression of those before it.

        Raises:
            RefusedParametersError: some are refused; carries all of them.
        """
        made: dict[str, Value] = {}
        refused: list[tuple[str, str]] = []
        for name, text in values.items():
            try:
                _check_parameter_name(name)
                made[name] = BaseUnits(self.names, made)._named(text)
            except ValueError as error:
                refused.append((name, str(error)))
        if refused:
            raise RefusedParametersError(refused)
        return BaseUnits(self.names, made)

    def _named(self, value: Any) -> Value:
        """Number and unit of a parameter."""
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise ValueError('a number is needed, such as 0.5, "70 mm" or "2 * radius"')
        if isinstance(value, str) and is_expression(value, self.parameters):
            return evaluate(value, self.parameters)
        try:
            number, unit = _split(value) if isinstance(value, str) else (float(value), "")
        except (ValueError, OverflowError):
            raise ValueError('a number is needed, such as 0.5, "70 mm" or "2 * radius"') from None
        if not math.isfinite(number):
            raise ValueError("the number must be finite")
        if not unit:
            return Value(number)
        for quantity in QUANTITIES:
            try:
                factor = _factor(unit, quantity)
            except ValueError:
                continue
            return Value(number * factor, {base: float(each) for base, each in _base_units_of(quantity).items()})
        raise ValueError(f"{unit!r} is not a unit of anything in a robot file, such as {EXAMPLES['length']}")

    def _expression(self, text: str, quantity: str, needed: str) -> float:
        value = evaluate(text, self.parameters)
        if value.powers is None:
            return value.number * self._plain(quantity)
        if dict(value.powers) != {base: float(each) for base, each in _base_units_of(quantity).items()}:
            kinds = [kind for kind in QUANTITIES if dict(value.powers) == _base_units_of(kind)]
            raise ValueError(f"the expression is {_with_article(kinds[0]) if kinds else 'of another unit'}; {needed}")
        return value.number

    def _plain(self, quantity: str) -> float:
        factor = 1.0
        for dimension, power in QUANTITIES[quantity].items():
            unit = self.names.get(dimension)
            if unit is not None:
                factor *= _factor(str(unit), dimension) ** power
        return factor


def _check_parameter_name(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", name):
        raise ValueError(f"{name[:60]!r} is no name; use up to 64 letters, digits and _, starting with a letter")
    if name in FUNCTIONS or name in CONSTANTS or name in ("nan", "inf") or iskeyword(name):
        raise ValueError(f"{name!r} has a meaning in expressions already; choose another name")


def _with_article(quantity: str) -> str:
    return f"{'an' if quantity[0] in 'aeiou' else 'a'} {quantity}"


def _split(text: str) -> tuple[float, str]:
    """Number and unit of "8.5 in"; both words of a number that is none (nan, inf) are read as such."""
    text = text.strip()
    if len(text) > LONGEST:
        raise ValueError("too long")
    match = _NUMBER.match(text)
    if match is None:
        return float(text), ""
    return float(match[0]), text[match.end() :].strip()


@lru_cache(maxsize=256)
def _factor(unit: str, quantity: str) -> float:
    """SI value of one `unit`, which must be a unit of `quantity`."""
    if unit == SI.get(quantity):
        return 1.0
    _registry()  # outside of what follows, so that a broken installation is not taken for a wrong unit
    try:
        if len(unit) > LONGEST or not _UNIT.fullmatch(unit):
            raise ValueError(unit)
        factor, found = _in_base_units(unit.replace("^", "**"))
        if not (math.isfinite(factor) and factor > 0.0):
            raise ValueError(unit)
    except Exception:  # pint raises a family of unrelated errors for unreadable text
        raise ValueError(
            f"{unit!r} is not a unit; write {_with_article(quantity)} such as {EXAMPLES[quantity]}"
        ) from None
    if found != _base_units_of(quantity):
        kinds = [name for name in QUANTITIES if found == _base_units_of(name)]
        what = f"a unit of {kinds[0]}" if kinds else "another kind of unit"
        raise ValueError(f"{unit!r} is {what}; {_with_article(quantity)} is needed, such as {EXAMPLES[quantity]}")
    return factor


@lru_cache(maxsize=64)
def _base_units_of(quantity: str) -> dict[str, float]:
    text = " * ".join(f"{SI[dimension]}**({power})" for dimension, power in QUANTITIES[quantity].items())
    return _in_base_units(text)[1] if text else {}


def _in_base_units(text: str) -> tuple[float, dict[str, float]]:
    """SI value of a unit, and the powers of kilogram, meter, second and radian in it."""
    base = _registry().Quantity("1 * " + text if text[:1] != "1" else text).to_base_units()
    magnitude, units = base.to_tuple()
    return float(magnitude), dict(units)


@lru_cache(maxsize=1)
def _registry() -> Any:
    import pint  # takes a while to load, and many files need none of it

    registry: Any = pint.UnitRegistry()
    registry.define("rev = revolution")
    return registry
