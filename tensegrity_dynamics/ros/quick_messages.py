"""Messages that are made in every period, without what the constructors of rosidl make and throw away.

These import the types of their parts again and make default values of all fields, at each call: of the six messages of
a lock-step period as long as what a controller computes.
"""

from __future__ import annotations

from array import array
from functools import cache
from typing import Any, TypeVar

from builtin_interfaces.msg import Time
from std_msgs.msg import Header

Message = TypeVar("Message")
PLAIN = (str, int, float, bool)


@cache
def _fields(kind: Any) -> tuple[tuple[str, str, Any], ...]:
    """Slot, name and value of each field of a fresh message; None of those that are messages themselves."""
    fresh = kind()
    found = []
    for slot in kind.__slots__:
        value = getattr(fresh, slot)
        usual = value if isinstance(value, (*PLAIN, array, list)) else None
        found.append((slot, slot.removeprefix("_"), usual))
    return tuple(found)


def quick_message(kind: type[Message], **fields: Any) -> Message:
    """As `kind(**fields)`, for a message without fields that are messages and not given.

    Nothing is looked at: every value is of the type that its field has, arrays of numbers may be lists.

    Raises:
        TypeError: there is no such field, or one that is a message is missing.
    """
    made, given = object.__new__(kind), 0
    for slot, name, usual in _fields(kind):  # type: ignore[arg-type]
        if name in fields:
            given += 1
            setattr(made, slot, fields[name])
        elif isinstance(usual, PLAIN):
            setattr(made, slot, usual)
        elif usual is None:
            raise TypeError(f"{kind.__name__} needs {name}.")
        else:
            setattr(made, slot, usual[:])
    if given != len(fields):
        raise TypeError(f"{kind.__name__} has not all of the fields {', '.join(fields)}.")
    return made


def header(stamp: Time, frame: str) -> Header:
    """A header of a frame."""
    return quick_message(Header, stamp=stamp, frame_id=frame)
