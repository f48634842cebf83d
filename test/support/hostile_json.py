"""Documents of JSON in which one value is what nobody writes on purpose: of a wrong kind, sign, size or unit."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np

HOSTILE: tuple[Any, ...] = (
    None, True, False, "", "1", "nan", "\x00", [], {}, [[]], [1.0], {"a": 1}, 0, -1, 1, 0.5, -0.5, 1e-300, 1e300,
    -1e300, float("nan"), float("inf"), float("-inf"), 10**400, 2**63, "encoder", "potentiometer",
)  # fmt: skip
FACTORS = (-1.0, 1e3, 1e-3, 180.0 / np.pi, 25.4)
"""Other signs and units: mm for m, degrees for radians, inches."""


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Keys that lead to every value of a document, the innermost too."""
    entries = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in entries:
        yield (*path, key)
        yield from places(value, (*path, key))


def damaged(document: Any, random: np.random.Generator, near: bool = False) -> Any:
    """A copy in which one value is another one, is gone, or is there twice under another name.

    Args:
        near: a number becomes one of another sign or unit, wherever that can be.
    """
    result = copy.deepcopy(document)
    found = list(places(result))
    path = found[random.integers(len(found))]
    parent = result
    for key in path[:-1]:
        parent = parent[key]
    old, kind = parent[path[-1]], random.integers(8)
    if isinstance(old, (int, float)) and not isinstance(old, bool) and (near or kind < 3):
        parent[path[-1]] = type(old)(old * FACTORS[random.integers(len(FACTORS))])
    elif kind == 3:
        del parent[path[-1]]
    elif kind == 4 and isinstance(parent, dict):
        parent[f"{path[-1]}_"] = parent.pop(path[-1])
    else:
        parent[path[-1]] = copy.deepcopy(HOSTILE[random.integers(len(HOSTILE))])
    return result
