"""Numbers with units in robot files and on the command line: "8.5 in", "2 GPa", "300 deg/s"; internally all are SI.

A plain number is in the base units of the file (`units:` block, SI by default), combined as the field requires: a
stiffness in a file with inches and pounds-force is in lbf/in. The angle is a separate dimension, so that 5 Hz is not an
angular speed and 3 deg is not a plain number.
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
"""Gravity [m/s^2] for the report of weights, if no gravity of a robot is given."""

SI = {"length": "m", "mass": "kg", "force": "N", "time": "s", "angle": "rad"}
BASE = {"length": "meter", "mass": "kilogram", "time": "second", "angle": "radian"}
"""Base units of all units, with their names in pint."""

# Dimensions of a quantity: exponents of length, mass, force, time, angle.
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
    "turning per length": {"angle": 1, "length": -1},
    "number": {},
}

EXAMPLES = {
    "length": "0.2 m, 8.5 in", "mass": "0.1 kg, 3.5 lb", "force": "20 N, 5 lbf", "angle": "0.1 rad, 5 deg",
    "time": "2 s", "stiffness": "1000 N/m, 11.36 lbf/in", "damping": "5 N s/m", "acceleration": "9.81 m/s^2",
    "speed": "0.05 m/s", "angular speed": "2 rad/s, 300 deg/s", "torque": "1.5 N m", "stress": "2 GPa",
    "viscosity": "10 MPa s", "density": "2700 kg/m^3", "inertia": "1e-4 kg m^2", "number": "1.5",
    "torsional stiffness": "2 N m/rad", "torsional damping": "0.1 N m s/rad",
    "turning per length": "600 rad/m, 0.2 rev/mm",
}  # fmt: skip

USUAL: dict[str, dict[str, float]] = {
    "length": {"m": 1.0, "cm": 0.01, "mm": 0.001, "um": 1e-06, "in": 0.0254, "ft": 0.30479999999999996},
    "mass": {"kg": 1.0, "g": 0.001, "mg": 1e-06, "lb": 0.4535923700000001},
    "force": {"N": 1.0, "kN": 1000.0, "mN": 0.001, "lbf": 4.4482216152605005},
    "angle": {"rad": 1.0, "deg": 0.017453292519943295, "rev": 6.283185307179586},
    "time": {"s": 1.0, "ms": 0.001, "min": 60.0},
    "stiffness": {"N/m": 1.0, "kN/m": 1000.0, "N/mm": 1000.0, "lbf/in": 175.12683524647645},
    "damping": {"N s/m": 1.0, "N*s/m": 1.0, "N s/mm": 1000.0},
    "acceleration": {"m/s^2": 1.0},
    "speed": {"m/s": 1.0, "cm/s": 0.01, "mm/s": 0.001, "in/s": 0.0254},
    "angular speed": {"rad/s": 1.0, "deg/s": 0.017453292519943295, "rpm": 0.10471975511965977},
    "torque": {"N m": 1.0, "N*m": 1.0, "N mm": 0.001, "mN m": 0.001},
    "stress": {"Pa": 1.0, "kPa": 1000.0, "MPa": 1000000.0, "GPa": 1000000000.0},
    "viscosity": {"Pa s": 1.0, "kPa s": 1000.0, "MPa s": 1000000.0, "GPa s": 1000000000.0},
    "density": {"kg/m^3": 1.0, "g/cm^3": 999.9999999999999},
    "inertia": {"kg m^2": 1.0, "kg*m^2": 1.0, "kg mm^2": 1e-06, "g cm^2": 1.0000000000000001e-07, "g mm^2": 1e-09},
    "torsional stiffness": {"N m/rad": 1.0, "N mm/rad": 0.001},
    "torsional damping": {"N m s/rad": 1.0, "N mm s/rad": 0.001},
}  # fmt: skip
"""Common units in SI, with exactly the values of pint, because loading pint takes as long as loading the robot. All
other units are read with pint."""
_QUANTITY_OF = {unit: quantity for quantity, units in USUAL.items() for unit in units}

LARGEST, LEAST = 1e15, 1e-30
"""Largest absolute value of a number in SI; above it sums and products lose all digits or overflow. Values below the
least one count as zero, for the same reason."""
LONGEST = 60  # largest number of characters of a number with its unit
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_WORD = r"(?:[A-Za-zµμΩ°][A-Za-z_]*)(?:\s*(?:\^|\*\*)\s*-?\d|[²³])?"
# Only words and small powers are allowed, so that the text passed to pint is neither code nor slow to evaluate.
_UNIT = re.compile(rf"(?:1\s*/\s*)?{_WORD}(?:(?:\s*[*/·]\s*|\s+){_WORD})*")


class RefusedParametersError(ValueError):
    """Error for parameters of a robot file that cannot be evaluated.

    Attributes:
        reasons: (name, reason) of each parameter.
    """

    def __init__(self, reasons: Sequence[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{name}: {reason}" for name, reason in reasons))
        self.reasons = tuple(reasons)


@dataclass(frozen=True)
class BaseUnits:
    """Units of plain numbers in a file, by dimension (SI if not named), and parameters of the file.

    Raises:
        ValueError: a dimension or unit is unknown, or a unit has another dimension.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for dimension, unit in self.names.items():
            if dimension not in SI:
                raise ValueError(f"unknown dimension {dimension!r}; allowed: {', '.join(SI)}")
            _factor(str(unit), dimension)

    def to_si(self, value: Any, quantity: str) -> float:
        """Value in SI units of a number, a text with a unit, or an expression of the parameters.

        Raises:
            ValueError: the value is not a finite number, is above `LARGEST`, or has a unit of another dimension; the
                message contains the required quantity.
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
        """Same units with parameters; each can be an expression of the previous ones.

        Raises:
            RefusedParametersError: some parameters are invalid; the error contains all of them.
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
            return evaluate(value, self.parameters, _quantity)
        return _quantity(value, 'a number is needed, such as 0.5, "70 mm" or "2 * radius"')

    def _expression(self, text: str, quantity: str, needed: str) -> float:
        value = evaluate(text, self.parameters, _quantity)
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


def _quantity(value: float | str, needed: str = "") -> Value:
    """Value with unit from a number or a text such as "70 mm" of any dimension; `needed` is part of the error
    message."""
    try:
        number, unit = _split(value) if isinstance(value, str) else (float(value), "")
    except (ValueError, OverflowError):
        raise ValueError(
            needed or f'"{value}" is no quantity; write a number with its unit in quotes, such as "60 mm"'
        ) from None
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
    wanted = _how_to_join(unit) or f"write {_with_article('length')} such as {EXAMPLES['length']}, for example"
    raise ValueError(f"{unit!r} is not a unit of anything in a robot file; {wanted}")


def _how_to_join(unit: str) -> str:
    """Hint if the text after a number is the rest of an expression and not a unit; empty otherwise."""
    if not re.search(r"[+(]|\s-\s", unit):
        return ""
    return """in an expression a number with a unit must be in quotes, as in '"60 mm" + radius'"""


def _split(text: str) -> tuple[float, str]:
    """Number and unit of a text such as "8.5 in"; nan and inf are read as numbers."""
    text = text.strip()
    if len(text) > LONGEST:
        raise ValueError("too long")
    match = _NUMBER.match(text)
    if match is None:
        return float(text), ""
    return float(match[0]), text[match.end() :].strip()


@lru_cache(maxsize=256)
def _factor(unit: str, quantity: str) -> float:
    """Value of one `unit` in SI units; it must be a unit of `quantity`."""
    usual = _QUANTITY_OF.get(unit)
    if usual is not None:
        factor, found = USUAL[usual][unit], _base_units_of(usual)
    else:
        factor, found = _read(unit, quantity)
    if found != _base_units_of(quantity):
        kinds = [name for name in QUANTITIES if found == _base_units_of(name)]
        what = f"a unit of {kinds[0]}" if kinds else "another kind of unit"
        raise ValueError(f"{unit!r} is {what}; {_with_article(quantity)} is needed, such as {EXAMPLES[quantity]}")
    return factor


@lru_cache(maxsize=64)
def _base_units_of(quantity: str) -> dict[str, float]:
    """Nonzero powers of meter, kilogram, second and radian in a quantity."""
    powers = dict(QUANTITIES[quantity])
    force = powers.pop("force", 0)  # kg m/s^2
    for dimension, power in (("mass", force), ("length", force), ("time", -2 * force)):
        powers[dimension] = powers.get(dimension, 0) + power
    return {BASE[dimension]: float(power) for dimension, power in powers.items() if power}


def _read(unit: str, quantity: str) -> tuple[float, dict[str, float]]:
    """Value of a unit in SI units, and its powers of meter, kilogram, second and radian, computed with pint."""
    registry = _registry()  # outside of the try block, so that a broken installation is not reported as a wrong unit
    try:
        if len(unit) > LONGEST or not _UNIT.fullmatch(unit):
            raise ValueError(unit)
        text = unit.replace("^", "**")
        magnitude, units = registry.Quantity("1 * " + text if text[:1] != "1" else text).to_base_units().to_tuple()
        factor = float(magnitude)
        if not (math.isfinite(factor) and factor > 0.0):
            raise ValueError(unit)
    except Exception:  # pint raises many unrelated errors for unreadable text
        wanted = _how_to_join(unit) or f"write {_with_article(quantity)} such as {EXAMPLES[quantity]}"
        raise ValueError(f"{unit!r} is not a unit; {wanted}") from None
    return factor, {name: float(power) for name, power in units}


@lru_cache(maxsize=1)
def _registry() -> Any:
    import pint  # slow to load, and many files do not need it

    registry: Any = pint.UnitRegistry()
    registry.define("rev = revolution")
    return registry
