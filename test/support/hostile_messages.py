"""Messages that nobody sends on purpose, made from the interface definitions: any type, any field, any number.

Half of the values are of the kind that passes for sound: names that the robot has, stamps near now, small numbers,
lists of the right length. The other half breaks one habit after another. A field may also be cut short, so that lists
that belong together are not equally long.
"""

from __future__ import annotations

import array
import importlib
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

FLOATS = (
    0.0, -0.0, 1e-300, 1e-9, 0.5, 1.0, -1.0, 600.0, 601.0, 3e9, 1e18, 1e300, -1e300, 1.7976931348623157e308, 5e-324,
    float("nan"), float("inf"), float("-inf"), 2.0**31, 2.0**63, -5.0,
)  # fmt: skip
TEXTS = (
    "", " ", "\n", "a" * 5000, "../../etc/passwd", "{}", "%s%n", "\u202e", "\U0001f916", "None", "nan", "-1", "\x00x",
    "world", "map", "smooth", "cubic", "crossing", "minimum_jerk", "newton", "relaxation", "kinetic",
)  # fmt: skip


@cache
def _type(name: str) -> Any:
    package, kind = name.split("/")
    return getattr(importlib.import_module(f"{package}.msg"), kind)


@cache
def _fields(kind: Any) -> tuple[tuple[str, str], ...]:
    return tuple(kind.get_fields_and_field_types().items())


class HostileMessages:
    """Makes messages.

    Args:
        seed: of all random choices. names: that pass for sound. stamp: nanoseconds that pass for now.
    """

    def __init__(self, seed: int, names: Sequence[str], stamp: Callable[[], int] = lambda: 0) -> None:
        self.random, self._names, self._stamp = np.random.default_rng(seed), tuple(names), stamp
        self._calm, self._within = 0.5, 0

    def make(self, kind: Any) -> Any:
        """A message of a class, such as `ActuatorCommand` or `SetGoalPose.Request`."""
        self._calm = float(self.random.choice([0.0, 0.5, 0.9, 1.0]))
        return self._message(kind)

    def _message(self, kind: Any) -> Any:
        if kind.__name__ == "Time" and self._is_calm():
            now = max(0, self._stamp() + int(self.random.choice([0, 0, 0, 1, -1, 20_000_000, -20_000_000])))
            return kind(sec=min(now // 10**9, 2**31 - 1), nanosec=now % 10**9)
        message = kind()
        size = int(self.random.choice([0, 1, 2, 3, len(self._names), 20]))
        for name, field in _fields(kind):
            if self.random.random() < 0.9:
                setattr(message, name, self._value(field, size))
        if kind.__name__ == "ParameterValue":  # the type names the field that counts: each of them, and none
            message.type = int(self.random.integers(12))
        return message

    def _is_calm(self) -> bool:
        return bool(self.random.random() < self._calm)

    def _value(self, field: str, size: int) -> Any:
        many = re.fullmatch(r"sequence<(.+?)(?:, \d+)?>", field)
        if many:
            length = size if self._is_calm() else int(self.random.choice([0, 1, 7, 600]))
            # long lists of long lists take minutes to make and say no more than long lists
            length = min(length, 7) if self._within else length
            if many[1] == "double":
                return array.array("d", [self._float() for _ in range(length)])
            if many[1] == "string" and self._is_calm():
                return list(self._names[:length])
            self._within += 1
            values = [self._value(many[1], size) for _ in range(length)]
            self._within -= 1
            return values
        fixed = re.fullmatch(r"(.+)\[(\d+)\]", field)
        if fixed:
            return [self._value(fixed[1], size) for _ in range(int(fixed[2]))]
        if field in ("double", "float"):
            return self._float() if field == "double" else float(np.clip(self._float(), -1e30, 1e30))
        if field == "boolean":
            return bool(self.random.integers(2))
        if field.startswith("string"):
            return str(self.random.choice(self._names if self._is_calm() else TEXTS))
        if field in ("octet", "byte"):
            return bytes([int(self.random.integers(256))])
        if field.startswith(("int", "uint")):
            return self._integer(field)
        return self._message(_type(field))

    def _float(self) -> float:
        return float(self.random.normal(0.0, 0.3) if self._is_calm() else self.random.choice(FLOATS))

    def _integer(self, field: str) -> int:
        bits = int(re.sub(r"\D", "", field))
        low, high = (0, 2**bits - 1) if field.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        chosen = [low, high, 0, 1, 2, 3] if not self._is_calm() else [0, 1, 2, 3]
        return max(low, min(high, int(chosen[int(self.random.integers(len(chosen)))])))
