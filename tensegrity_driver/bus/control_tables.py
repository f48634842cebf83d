"""The registers of the servos by name, and the only place where their counts become SI units and back.

The tables themselves are data, in `control_tables.yaml` beside this file, in the units of the manuals. A field turns

    value = offset + factor · number,   number = the raw unsigned integer read as the field's coding says

so that everybody else sees rad, rad/s, A, V, s and fractions (temperature in degrees Celsius).
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
DIRECTION = 1 << 10
"""The bit that means clockwise where a field is coded with a direction bit."""
ANY = 1 << 32
"""Stands for the largest number that a register could hold."""
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
"""Units of the manuals: factor to ours, and the name of ours."""


@dataclass(frozen=True)
class Field:
    """One register.

    Attributes:
        name: the same for all models where the meaning is the same.
        address: of its first byte. size: in bytes, least significant first.
        factor, offset: value = offset + factor · number.
        coding: "unsigned", "signed" (two's complement) or "direction bit" (bit 10 is the sign, ten bits of magnitude).
        unit: of the value, or an empty string. eeprom: kept without supply, wears out. writable: may be written.
        low, high: smallest and largest number that may be written. initial: raw factory value, where known.
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
    low: int = -ANY
    high: int = ANY
    initial: int | None = None

    def __post_init__(self) -> None:
        if self.coding not in CODINGS:
            raise BusError(f"register {self.name}: " + unknown_name("coding", self.coding, CODINGS))
        most = (1 << 8 * self.size - (self.coding == "signed")) - 1
        if self.coding == "direction bit":
            most = DIRECTION - 1
        high = min(self.high, most)
        object.__setattr__(self, "high", high)
        object.__setattr__(self, "low", max(self.low, 0 if self.coding == "unsigned" else -high))

    @property
    def end(self) -> int:
        """Address behind its last byte."""
        return self.address + self.size

    def number(self, raw: int) -> int:
        """The signed number in a raw unsigned integer."""
        if self.coding == "signed":
            half = 1 << 8 * self.size - 1
            return raw - 2 * half if raw >= half else raw
        if self.coding == "direction bit":
            magnitude = raw & DIRECTION - 1
            return -magnitude if raw & DIRECTION else magnitude
        return raw

    def decode(self, raw: int) -> float:
        """Value of a raw unsigned integer, in `unit`."""
        return self.offset + self.factor * self.number(raw)

    def decode_bytes(self, data: bytes, start: int = 0) -> float:
        """Value in a block of registers that begins at address `start`."""
        at = self.address - start
        return self.decode(int.from_bytes(data[at : at + self.size], "little"))

    def encode(self, value: float) -> int:
        """Raw unsigned integer of the number nearest to a value.

        Raises:
            BusError: not a number, or outside what the register takes.
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
        """The bytes of a value, least significant first; raises BusError as `encode` does."""
        return self.encode(value).to_bytes(self.size, "little")

    def nearest(self, value: float) -> float:
        """The value nearest to the one asked for that the register can hold; raises BusError for no number."""
        return self.decode(self.encode_nearest(value))

    def encode_nearest(self, value: float) -> int:
        """Raw unsigned integer of the nearest value that the register can hold; raises BusError for no number."""
        exact = (value - self.offset) / self.factor
        if not math.isfinite(value):
            raise BusError(f"{value} cannot be written to {self.name}: it is not a number. Mend the command.")
        return self._raw(round(min(max(exact, self.low), self.high)))

    def _raw(self, number: int) -> int:
        if number >= 0:
            return number
        return DIRECTION | -number if self.coding == "direction bit" else number & (1 << 8 * self.size) - 1


@dataclass(frozen=True)
class ServoModel:
    """A model of servo.

    Attributes:
        name: as in robot files. number: its model number. protocol: 1 or 2.
        fields: its registers by name.
        error_bits: names of the bits of its error byte (protocol 1) or of `hardware_error` (protocol 2).
        baud_rates: bit/s by raw value of `baud_rate`.
        counts_turns: it goes to positions over many turns; else it follows speeds and its angle has a dead zone.
    """

    name: str
    number: int
    protocol: int
    fields: Mapping[str, Field]
    error_bits: Mapping[int, str]
    baud_rates: Mapping[int, int]
    counts_turns: bool

    def field(self, name: str) -> Field:
        """A register by name; raises BusError where this model has none."""
        try:
            return self.fields[name]
        except KeyError:
            raise BusError(f"{self.name}: " + unknown_name("register", name, self.fields)) from None

    def block(self, first: str, last: str) -> tuple[int, int]:
        """Address and size of all registers from one to another."""
        start = self.field(first).address
        return start, self.field(last).end - start

    def errors(self, bits: int) -> frozenset[str]:
        """Names of the error bits that are set."""
        return frozenset(name for bit, name in self.error_bits.items() if bits >> bit & 1)


def _factor(unit: str) -> tuple[float, str]:
    number, _, name = unit.partition(" ")
    scale, ours = UNITS[name]
    return float(Fraction(number)) * scale, ours


def _field(name: str, row: Mapping[str, Any], ram: int) -> Field:
    factor, unit = _factor(row["unit"]) if "unit" in row else (1.0, "")
    coding = "signed" if row.get("signed") else "direction bit" if row.get("direction_bit") else "unsigned"
    return Field(
        name=name,
        address=row["address"],
        size=row["size"],
        factor=factor,
        coding=coding,
        unit=unit,
        eeprom=row["address"] < ram,
        writable=not row.get("read_only", False),
        low=row.get("low", -ANY),
        high=row.get("high", ANY),
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
        fields = {key: _field(key, row, family["ram"]) for key, row in rows.items()}
        models[name] = ServoModel(
            name=name,
            number=own["number"],
            protocol=family["protocol"],
            fields=MappingProxyType(dict(sorted(fields.items(), key=lambda item: item[1].address))),
            error_bits=MappingProxyType(dict(family["error_bits"])),
            baud_rates=MappingProxyType(dict(family["baud_rates"])),
            counts_turns=family["counts_turns"],
        )
    return MappingProxyType(models)


MODELS: Mapping[str, ServoModel] = _load()
"""All models that are known, by the name that robot files use."""


def model_named(name: str) -> ServoModel:
    """A model by name; raises BusError for an unknown one."""
    try:
        return MODELS[name]
    except KeyError:
        raise BusError(unknown_name("servo model", name, MODELS)) from None


def model_of_number(number: int) -> ServoModel:
    """The model with a model number; raises BusError for one without control table."""
    for model in MODELS.values():
        if model.number == number:
            return model
    known = ", ".join(f"{model.name} ({model.number})" for model in MODELS.values())
    raise BusError(
        f"There is no control table for servos of model number {number}. Known: {known}. Add its registers to "
        "control_tables.yaml."
    )
