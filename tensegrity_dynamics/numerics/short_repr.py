"""Short text representation of objects with large arrays, for notebooks and debuggers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from itertools import islice
from typing import Any

import numpy as np

LARGEST = 12
"""Largest number of array entries that are printed; for larger arrays the shape is printed."""
MOST = 3
"""Largest number of printed items of a sequence or a mapping."""
LONGEST = 160
"""Largest number of characters of one field."""


class ShortRepr:
    """Base class of dataclasses (with `repr=False`) whose text contains all fields; for large ones only their size."""

    def __repr__(self) -> str:
        parts = ((each.name, getattr(self, each.name)) for each in fields(self) if each.repr)  # type: ignore[arg-type]
        words = (f"{name}={_short(value)}" for name, value in parts if not _is_empty(value))
        return f"{type(self).__name__}({', '.join(words)})"


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, (str, tuple, list, Mapping)) and not value)


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        if value.size > LARGEST:
            return f"array {value.shape}"
        return " ".join(np.array2string(value, precision=6, separator=", ").split())
    if isinstance(value, Mapping):
        words = [f"{key!r}: {_short(item)}" for key, item in islice(value.items(), MOST)]
        text = "{" + ", ".join((*words, f"... {len(value)} in all") if len(value) > MOST else words) + "}"
    elif isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        words = [_short(item) for item in value[:MOST]]
        text = "(" + ", ".join((*words, f"... {len(value)} in all") if len(value) > MOST else words) + ")"
    else:
        text = repr(value)
    if len(text) <= LONGEST:
        return text
    return f"{type(value).__name__} of {len(value)}" if isinstance(value, (tuple, list, Mapping)) else _name_of(value)


def _name_of(value: Any) -> str:
    """Class and, if available, name of an object that is too long to be printed within another one."""
    name = getattr(value, "name", "")
    named = f" {name}" if isinstance(name, str) and name else ""
    return f"<{type(value).__name__}{named}>" if is_dataclass(value) else repr(value)[:LONGEST] + "..."
