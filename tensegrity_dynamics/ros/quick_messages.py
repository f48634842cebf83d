"""Fast creation of messages that are published in every period, without the overhead of the rosidl constructors.

These constructors import the types of their parts and create default values of all fields in every call. For the six
messages of a lock-step period, this takes as long as the computations of a controller.
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
    """Slot, name and default value of each field of a message; the value is None for fields that are messages."""
    fresh = kind()
    found = []
    for slot in kind.__slots__:
        value = getattr(fresh, slot)
        usual = value if isinstance(value, (*PLAIN, array, list)) else None
        found.append((slot, slot.removeprefix("_"), usual))
    return tuple(found)


def quick_message(kind: type[Message], **fields: Any) -> Message:
    """As `kind(**fields)`; all fields that are messages must be given.

    Nothing is checked: every value must have the type of its field; arrays of numbers can be lists.

    Raises:
        TypeError: a field does not exist, or a field that is a message is missing.
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
    """Header with a stamp and a frame."""
    return quick_message(Header, stamp=stamp, frame_id=frame)
