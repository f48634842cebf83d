"""A copy with some fields changed leaves the record as it is."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensegrity_dynamics.numerics.changed_record import changed


@dataclass(frozen=True)
class Point:
    x: float
    y: float = 2.0


def test_a_changed_record_is_that_of_replace_and_the_first_stays() -> None:
    point = Point(1.0)
    assert changed(point, y=5.0) == replace(point, y=5.0)
    assert point == Point(1.0, 2.0)
