"""Numbers with units in robot files: "8.5 in", "2 GPa", "300 deg/s"; inside everything is SI (and radians).

A plain number is in the file's own base units (`units:` block, SI by default), combined as the field needs: a
stiffness in a file with inches and pounds-force is in lbf/in.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

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
    "number": {},
}

EXAMPLES = {
    "length": "0.2 m, 8.5 in", "mass": "0.1 kg, 3.5 lb", "force": "20 N, 5 lbf", "angle": "0.1 rad, 5 deg",
    "time": "2 s", "stiffness": "1000 N/m, 11.36 lbf/in", "damping": "5 N s/m", "acceleration": "9.81 m/s^2",
    "speed": "0.05 m/s", "angular speed": "2 rad/s, 300 deg/s", "torque": "1.5 N m", "stress": "2 GPa",
    "viscosity": "10 MPa s", "density": "2700 kg/m^3", "inertia": "1e-4 kg m^2", "number": "1.5",
}  # fmt: skip


@dataclass(frozen=True)
class BaseUnits:
    """The units of plain numbers in a file, by dimension; unnamed ones are SI.

    Raises:
        ValueError: an unknown dimension or unit, or a unit of another dimension.
    """

    names: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for dimension, unit in self.names.items():
            if dimension not in SI:
                raise ValueError(f"unknown dimension {dimension!r}; allowed: {', '.join(SI)}")
            _factor(str(unit), dimension)

    def to_si(self, value: Any, quantity: str) -> float:
        """A number, or a text with a unit, in SI.

        Raises:
            ValueError: not a finite number, or a unit of another dimension; says what is needed.
        """
        article = "an" if quantity[0] in "aeiou" else "a"
        needed = f"{article} {quantity} such as {EXAMPLES[quantity]}"
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise ValueError(f"{needed} is needed")
        if isinstance(value, str):
            number, unit = _split(value, needed)
            result = number * _factor(unit, quantity) if unit else number * self._plain(quantity)
        else:
            try:
                result = float(value) * self._plain(quantity)
            except OverflowError:
                raise ValueError(f"{needed} is needed; this number is too large") from None
        if not math.isfinite(result):
            raise ValueError(f"{needed} is needed; it must be finite")
        return result

    def _plain(self, quantity: str) -> float:
        factor = 1.0
        for dimension, power in QUANTITIES[quantity].items():
            unit = self.names.get(dimension)
            if unit is not None:
                factor *= _factor(str(unit), dimension) ** power
        return factor


def _split(text: str, needed: str) -> tuple[float, str]:
    parts = text.strip().split(None, 1)
    for number, unit in ((text.strip(), ""), (parts[0] if parts else "", parts[1] if len(parts) > 1 else "")):
        try:
            return float(number), unit
        except ValueError:
            continue
    # "8.5in" without a space
    head = text.strip()
    for cut in range(len(head), 0, -1):
        try:
            return float(head[:cut]), head[cut:]
        except ValueError:
            continue
    raise ValueError(f"{needed} is needed")


@lru_cache(maxsize=256)
def _factor(unit: str, quantity: str) -> float:
    """SI value of one `unit`, which must be a unit of `quantity`."""
    if unit == " ".join(SI.get(quantity, "").split()):
        return 1.0
    wanted = _registry()(" * ".join(f"({SI[d]})**({p})" for d, p in QUANTITIES[quantity].items()) or "1")
    try:
        found = _registry()("1 " + unit.replace("^", "**"))
        dimension = found.dimensionality
    except Exception:  # pint raises a family of unrelated errors for unreadable text
        raise ValueError(f"{unit!r} is not a unit; write a {quantity} such as {EXAMPLES[quantity]}") from None
    if dimension != wanted.dimensionality:
        kinds = [name for name, powers in QUANTITIES.items() if _same(dimension, powers)]
        what = f"a unit of {kinds[0]}" if kinds else "another kind of unit"
        raise ValueError(f"{unit!r} is {what}, but a {quantity} is needed, such as {EXAMPLES[quantity]}")
    return float(found.to(wanted.units).magnitude)


def _same(dimension: Any, powers: Mapping[str, int]) -> bool:
    text = " * ".join(f"({SI[d]})**({p})" for d, p in powers.items()) or "1"
    return bool(_registry()(text).dimensionality == dimension)


@lru_cache(maxsize=1)
def _registry() -> Any:
    import pint  # takes a while to load, and many files need none of it

    return pint.UnitRegistry().Quantity
