"""Numbers with units in user input: one quantity, or several separated by commas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import TensegrityError, unknown_name
from .units import BaseUnits


def read_quantity(text: str, kind: str, what: str) -> float:
    """Number in SI units; plain numbers are in SI units. Raises TensegrityError, whose message contains `what`."""
    try:
        return BaseUnits().to_si(text.strip(), kind)
    except ValueError as error:
        raise TensegrityError(f"{what} {text!r}: {error}.") from None


def split_item(item: str, option: str, form: str, what: str, names: Sequence[str]) -> tuple[str, str]:
    """Name and text of the value of an item such as "top_1=0.2kg" of a command line option.

    Args:
        form: form of the items, for the message. what: kind of the named objects. names: allowed names.

    Raises:
        TensegrityError: the item does not have this form, or the name is unknown.
    """
    name, equals, value = (part.strip() for part in item.partition("="))
    if not equals:
        raise TensegrityError(f"{option} {item!r}: write {form}.")
    if name not in names:
        raise TensegrityError(f"{option} {item!r}: " + unknown_name(what, name, names))
    return name, value


def read_payloads(items: Sequence[str], what: str, names: Sequence[str]) -> list[tuple[str, float]]:
    """Name and mass [kg] from texts such as "top_1=0.2kg"; `what` is the kind of the named objects.

    Raises:
        TensegrityError: a text does not have this form, a name is unknown, or a mass is negative.
    """
    result = []
    for item in items:
        name, value = split_item(item, "--payload", f"NAME=MASS, for example {names[-1]}=0.2kg", what, names)
        mass = read_quantity(value, "mass", "--payload")
        if mass < 0.0:
            raise TensegrityError(f"--payload {item!r}: a mass is not below zero.")
        result.append((name, mass))
    return result


def read_vector(text: str | None, what: str, count: int = 3, kind: str = "number", unit: str = "") -> Any:
    """(count,) numbers in SI units from a text, separated by commas or blanks; None for None.

    A unit at the end applies to all numbers without unit: "10, 5, 15 mm". Plain numbers are in `unit`.

    Raises:
        TensegrityError: the number of values is wrong, or they are not numbers of this kind.
    """
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")] if "," in text else text.split()
    if "," not in text and len(parts) == count + 1:
        parts[-2:] = [" ".join(parts[-2:])]
    example = f"write {count} numbers, for example {_example(count, kind)}"
    if len(parts) != count or not all(parts):
        raise TensegrityError(f"{what} {text!r}: {example}.")
    last = "" if _is_number(parts[-1]) else parts[-1].lstrip("+-0123456789.eE ")
    values = []
    for part in parts:
        common = last or unit
        worded = f"{part} {common}" if _is_number(part) and common else part
        values.append(read_quantity(worded, kind, f"{what} {text!r}: {example};"))
    return np.array(values)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _example(count: int, kind: str) -> str:
    if count != 3:
        return "'" + ",".join(["1"] + ["0"] * (count - 1)) + "'"
    return {"length": "'0,0,15mm' or '0,0,0.015'", "angle": "'5,0,0deg'", "force": "'0,0,-5N'"}.get(kind, "'0,0,1'")
