"""Control tables of the servo models: registers by name, with the conversion between raw integers and SI units.

The tables are data, in `control_tables.yaml` beside this file, in the units of the manuals. A register converts

    value = offset + factor · number,   number = the raw unsigned integer decoded by the coding of the register

to rad, rad/s, A, V, s and fractions (temperature in degrees Celsius). No other module converts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from importlib import resources
from types import MappingProxyType
from typing import Any

from tensegrity_dynamics.errors import BusError, unknown_name

CODINGS = ("unsigned", "signed", "direction bit")
DIRECTION_BIT = 1 << 10
"""Bit for clockwise in registers coded with a direction bit."""
UNLIMITED = 1 << 32
"""Upper bound (exclusive) of the numbers of all registers; means no limit."""
UNITS: Mapping[str, tuple[float, str]] = {
    "one": (1.0, ""),
    "%": (0.01, ""),
    "deg": (math.pi / 180.0, "rad"),
    "turn": (2.0 * math.pi, "rad"),
    "rpm": (2.0 * math.pi / 60.0, "rad/s"),
    "rpm/min": (2.0 * math.pi / 3600.0, "rad/s²"),
    "V": (1.0, "V"),
    "mA": (1e-3, "A"),
    "ms": (1e-3, "s"),
    "us": (1e-6, "s"),
    "degC": (1.0, "degree Celsius"),
}
"""Units of the manuals: factor to the SI unit, and its name."""


@dataclass(frozen=True)
class Register:
    """One register of a control table.

    Attributes:
        name: common to all models in which it has the same meaning.
        address: of the first byte. size: number of bytes, least significant first.
        factor, offset: value = offset + factor · number.
        coding: "unsigned", "signed" (two's complement) or "direction bit" (bit 10 is the sign, ten bits of magnitude).
        unit: unit of the value, or an empty string.
        eeprom: whether the value is kept without supply; the number of writes is limited.
        writable: whether it may be written. low, high: smallest and largest number that may be written.
        initial: raw factory value, or None if the manual gives none.
    """

    name: str
    address: int
    size: int
    factor: float = 1.0
    offset: float = 0.0
    coding: str = "unsigned"
    unit: str = ""
    eeprom: bool = False
    writable: bool = True
    low: int = -UNLIMITED
    high: int = UNLIMITED
    initial: int | None = None

    def __post_init__(self) -> None:
        if self.coding not in CODINGS:
            raise BusError(f"register {self.name}: " + unknown_name("coding", self.coding, CODINGS))
        most = (1 << 8 * self.size - (self.coding == "signed")) - 1
        if self.coding == "direction bit":
            most = DIRECTION_BIT - 1
        high = min(self.high, most)
        object.__setattr__(self, "high", high)
        object.__setattr__(self, "low", max(self.low, 0 if self.coding == "unsigned" else -high))

    @property
    def end(self) -> int:
        """Address after its last byte."""
        return self.address + self.size

    def number(self, raw: int) -> int:
        """Signed number of a raw unsigned integer."""
        if self.coding == "signed":
            half = 1 << 8 * self.size - 1
            return raw - 2 * half if raw >= half else raw
        if self.coding == "direction bit":
            magnitude = raw & DIRECTION_BIT - 1
            return -magnitude if raw & DIRECTION_BIT else magnitude
        return raw

    def decode(self, raw: int) -> float:
        """Value of a raw unsigned integer, in `unit`."""
        return self.offset + self.factor * self.number(raw)

    def encode(self, value: float) -> int:
        """Raw unsigned integer of the number nearest to a value.

        Raises:
            BusError: not a finite number, or outside the range of the register.
        """
        exact = (value - self.offset) / self.factor
        if not math.isfinite(exact) or not self.low <= round(exact) <= self.high:
            unit = f" {self.unit}" if self.unit else ""
            lowest, highest = sorted(self.offset + self.factor * each for each in (self.low, self.high))
            raise BusError(
                f"{value:g}{unit} cannot be written to {self.name}: it takes {lowest:g} to {highest:g}{unit}. Mend the "
                "command or the limits."
            )
        return self._raw(round(exact))

    def encode_bytes(self, value: float) -> bytes:
        """Bytes of a value, least significant first; raises BusError as `encode` does."""
        return self.encode(value).to_bytes(self.size, "little")

    def nearest(self, value: float) -> float:
        """Value of the register nearest to the requested one; raises BusError if the latter is not finite."""
        return self.decode(self.encode_nearest(value))

    def encode_nearest(self, value: float) -> int:
        """Raw unsigned integer of `nearest`; raises BusError for a value that is not finite."""
        exact = (value - self.offset) / self.factor
        if not math.isfinite(value):
            raise BusError(f"{value} cannot be written to {self.name}: it is not a number. Mend the command.")
        return self._raw(round(min(max(exact, self.low), self.high)))

    def _raw(self, number: int) -> int:
        if number >= 0:
            return number
        return DIRECTION_BIT | -number if self.coding == "direction bit" else number & (1 << 8 * self.size) - 1


@dataclass(frozen=True)
class ServoModel:
    """A servo model.

    Attributes:
        name: as in robot files. number: model number. protocol: 1 or 2.
        registers: by name, in the order of their addresses.
        error_bits: names of the bits of its error byte (protocol 1) or of `hardware_error` (protocol 2).
        baud_rates: bit/s by raw value of `baud_rate`.
        counts_turns: whether it is driven by positions over several turns; otherwise it is driven by velocities, and
            its angle sensor has a dead zone.
    """

    name: str
    number: int
    protocol: int
    registers: Mapping[str, Register]
    error_bits: Mapping[int, str]
    baud_rates: Mapping[int, int]
    counts_turns: bool

    def register(self, name: str) -> Register:
        """Register by name; raises BusError if this model has none."""
        try:
            return self.registers[name]
        except KeyError:
            raise BusError(f"{self.name}: " + unknown_name("register", name, self.registers)) from None

    def block(self, first: str, last: str) -> tuple[int, int]:
        """Address and size of all registers from one to another."""
        start = self.register(first).address
        return start, self.register(last).end - start

    def errors(self, bits: int) -> frozenset[str]:
        """Names of the error bits that are set."""
        return frozenset(name for bit, name in self.error_bits.items() if bits >> bit & 1)


def _factor(unit: str) -> tuple[float, str]:
    number, _, name = unit.partition(" ")
    scale, si_unit = UNITS[name]
    return float(Fraction(number)) * scale, si_unit


def _register(name: str, row: Mapping[str, Any], ram: int) -> Register:
    factor, unit = _factor(row["unit"]) if "unit" in row else (1.0, "")
    coding = "signed" if row.get("signed") else "direction bit" if row.get("direction_bit") else "unsigned"
    return Register(
        name=name,
        address=row["address"],
        size=row["size"],
        factor=factor,
        coding=coding,
        unit=unit,
        eeprom=row["address"] < ram,
        writable=not row.get("read_only", False),
        low=row.get("low", -UNLIMITED),
        high=row.get("high", UNLIMITED),
        initial=row.get("initial"),
    )


@lru_cache(maxsize=1)
def _load() -> Mapping[str, ServoModel]:
    from ruamel.yaml import YAML

    text = resources.files(__package__).joinpath("control_tables.yaml").read_text(encoding="utf-8")
    tables = YAML(typ="safe", pure=True).load(text)
    models: dict[str, ServoModel] = {}
    for name, own in tables["models"].items():
        chain = [own]
        while "like" in chain[0]:
            chain.insert(0, tables["models"][chain[0]["like"]])
        family = tables["families"][chain[0]["family"]]
        rows = dict(family["fields"])
        for each in chain:
            rows.update(each.get("fields", {}))
        rows["model_number"] = {**rows["model_number"], "initial": own["number"]}
        registers = {key: _register(key, row, family["ram"]) for key, row in rows.items()}
        models[name] = ServoModel(
            name=name,
            number=own["number"],
            protocol=family["protocol"],
            registers=MappingProxyType(dict(sorted(registers.items(), key=lambda item: item[1].address))),
            error_bits=MappingProxyType(dict(family["error_bits"])),
            baud_rates=MappingProxyType(dict(family["baud_rates"])),
            counts_turns=family["counts_turns"],
        )
    return MappingProxyType(models)


MODELS: Mapping[str, ServoModel] = _load()
"""All models with a control table, by their names in robot files."""


def model_named(name: str) -> ServoModel:
    """Model by name; raises BusError if it has no control table."""
    try:
        return MODELS[name]
    except KeyError:
        raise BusError(unknown_name("servo model", name, MODELS)) from None


def model_of_number(number: int) -> ServoModel:
    """Model by model number; raises BusError if it has no control table."""
    for model in MODELS.values():
        if model.number == number:
            return model
    available = ", ".join(f"{model.name} ({model.number})" for model in MODELS.values())
    raise BusError(
        f"There is no control table for servos of model number {number}. There are: {available}. Add its registers to "
        "control_tables.yaml."
    )
