"""Decoding of serialised messages: fields by path, comparison of two messages, time of the header."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from .message_types import Definition

RUN_FIELDS = {"tensegrity/msg/ActuatorCommand": frozenset({"session"})}
"""Fields that identify a run and contain no data of the robot; comparisons ignore them."""


def type_store(*definitions: Definition) -> Any:
    """Type store of rosbags with these types."""
    store = get_typestore(Stores.EMPTY)
    types: dict[str, Any] = {}
    for each in definitions:
        types.update(get_types_from_msg(each.text, each.name))
    store.register(types)
    return store


def without_surplus(definition: Definition, data: bytes) -> bytes:
    """Serialised message without surplus bytes at its end.

    `rclpy.serialization` sometimes returns buffers that are longer than the message; the surplus is undefined.
    """
    store = type_store(definition)
    kind = store.get_msgdef(definition.name)
    _, end = kind.deserialize_cdr_le(memoryview(data)[4:], 0, kind.cls, store)
    return data[: 4 + end]


def stamp_of(message: Any) -> int | None:
    """Time [ns] of the header or clock of a decoded message; None if it has neither."""
    stamp = getattr(getattr(message, "header", None), "stamp", None)
    if stamp is None:
        stamp = getattr(message, "clock", None) or getattr(message, "stamp", None)
    if stamp is None or not hasattr(stamp, "nanosec"):
        return None
    return nanoseconds(stamp)


def nanoseconds(stamp: Any) -> int:
    """Time [ns] of a decoded builtin_interfaces/Time."""
    return int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)


def leaves(message: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """(path, value) of every field of a decoded message; numeric sequences stay arrays, others are split by index."""
    for name in message.__dataclass_fields__:
        if name == "__msgtype__":
            continue
        value, where = getattr(message, name), f"{path}.{name}" if path else name
        if hasattr(value, "__dataclass_fields__"):
            yield from leaves(value, where)
        elif isinstance(value, list) and value and hasattr(value[0], "__dataclass_fields__"):
            for k, item in enumerate(value):
                yield from leaves(item, f"{where}[{k}]")
        else:
            yield where, value


def same(a: Any, b: Any) -> bool:
    """Whether two field values are equal bit for bit; NaN equals NaN, and 0 differs from -0."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        first, second = np.asarray(a), np.asarray(b)
        return first.shape == second.shape and first.dtype == second.dtype and first.tobytes() == second.tobytes()
    if isinstance(a, float) and isinstance(b, float):
        return np.float64(a).tobytes() == np.float64(b).tobytes()
    return type(a) is type(b) and bool(a == b)


def first_difference(a: Any, b: Any) -> tuple[str, Any, Any] | None:
    """(path, value, value) of the first field in which two decoded messages of one type differ; None if all are
    equal."""
    passed = RUN_FIELDS.get(a.__msgtype__, frozenset())
    first = [each for each in leaves(a) if each[0] not in passed]
    second = [each for each in leaves(b) if each[0] not in passed]
    for (path, left), (other, right) in zip(first, second, strict=False):
        if path != other:
            return path, "there", f"not there, but {other}"
        if not same(left, right):
            if isinstance(left, np.ndarray) and isinstance(right, np.ndarray) and left.shape == right.shape:
                k = next(k for k in range(left.size) if not same(left.flat[k : k + 1], right.flat[k : k + 1]))  # type: ignore[index]
                return f"{path}[{k}]", left.flat[k].item(), right.flat[k].item()
            return path, left, right
    if len(first) != len(second):
        longer = first if len(first) > len(second) else second
        return longer[min(len(first), len(second))][0], f"{len(first)} fields", f"{len(second)} fields"
    return None


def largest_difference(a: Any, b: Any) -> float:
    """Largest difference of numbers in the same field of two messages; infinite if other data differ."""
    passed = RUN_FIELDS.get(a.__msgtype__, frozenset())
    largest = 0.0
    first, second = dict(leaves(a)), dict(leaves(b))
    if first.keys() != second.keys():
        return float("inf")
    for path, left in first.items():
        right = second[path]
        if path in passed or same(left, right):
            continue
        numbers = [np.atleast_1d(np.asarray(each)) for each in (left, right)]
        if any(each.dtype.kind != "f" for each in numbers) or numbers[0].shape != numbers[1].shape:
            return float("inf")
        with np.errstate(invalid="ignore"):
            difference = np.abs(numbers[0] - numbers[1])
        difference[np.isnan(numbers[0]) & np.isnan(numbers[1])] = 0.0
        largest = max(largest, float(np.max(np.nan_to_num(difference, nan=np.inf))))
    return largest
