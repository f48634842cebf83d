"""Small bags for tests: a type of their own, which needs no ROS, and messages of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tensegrity_tools.bags.decoding import type_store
from tensegrity_tools.bags.message_types import SEPARATOR, Definition
from tensegrity_tools.bags.writer import BagWriter, Quality

TEXT = f"""std_msgs/Header header
float64[] value
geometry_msgs/Quaternion orientation
string word
{SEPARATOR}
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
{SEPARATOR}
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
{SEPARATOR}
MSG: geometry_msgs/Quaternion
float64 x
float64 y
float64 z
float64 w
"""
NAME = "examples/msg/Sample"
STORE = type_store(Definition(NAME, TEXT, ""))
SAMPLE = Definition(NAME, TEXT, STORE.hash_rihs01(NAME))


def sample(
    stamp: int, value: Sequence[float] = (), word: str = "", quaternion: Sequence[float] = (0.0, 0.0, 0.0, 1.0),
    frame: str = "world",
) -> bytes:  # fmt: skip
    """A serialised message; stamp in ns, quaternion xyzw."""
    return bytes(STORE.serialize_cdr(sample_message(stamp, value, word, quaternion, frame), NAME))


def sample_message(
    stamp: int, value: Sequence[float] = (), word: str = "", quaternion: Sequence[float] = (0.0, 0.0, 0.0, 1.0),
    frame: str = "world",
) -> Any:  # fmt: skip
    """The same as an object."""
    import numpy as np

    types = STORE.types
    time = types["builtin_interfaces/msg/Time"](sec=stamp // 10**9, nanosec=stamp % 10**9)
    header = types["std_msgs/msg/Header"](stamp=time, frame_id=frame)
    x, y, z, w = quaternion
    turned = types["geometry_msgs/msg/Quaternion"](x=x, y=y, z=z, w=w)
    return types[NAME](header=header, value=np.array(value, dtype=np.float64), orientation=turned, word=word)


def write_samples(path: Path, messages: Sequence[tuple[str, int, bytes]], storage: str = "mcap") -> None:
    """A whole bag of (topic, time [ns], message)."""
    with BagWriter(path, storage) as writer:
        for topic, time, data in messages:
            if topic not in writer:
                writer.add_topic(topic, SAMPLE, Quality(latched=topic == "/latched", depth=1))
            writer.write(topic, time, data)
