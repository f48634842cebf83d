"""Messages of a bag over the robot's time, for playback and reports.

The time of a bag continues while a simulation is paused or a motion is planned; the robot's time does not. It is read
from `/clock`, else from the stamps of joint_states or of the states, else from the bag. After a backward jump (a reset)
it continues without a jump.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from .contents import Contents
from .decoding import stamp_of
from .reader import Bag, Message


def along_robot_time(
    bag: Bag, contents: Contents, topics: Collection[str] | None = None
) -> Iterator[tuple[float, Message]]:
    """(time since the start of the robot's time [s], message) in order; the times never decrease."""
    sources = ("/clock", *(contents.topic(each) for each in ("joint_states", "simulator/truth", "structure_state")))
    source = next((each for each in sources if each in bag.topics and bag.topics[each].count), None)
    read = bag.decoder(source) if source is not None else None
    topics_read = None if topics is None else {*topics, source} - {None}
    first: int | None = None
    now = offset = 0
    for message in bag.messages(topics_read):  # type: ignore[arg-type]
        if read is None:
            now = message.time - bag.start
        elif message.topic == source:
            stamp = stamp_of(read(message.data)) or 0
            first = stamp if first is None else first
            if stamp - first + offset < now:
                offset = now - (stamp - first)
            now = stamp - first + offset
        if topics is None or message.topic in topics:
            yield 1e-9 * now, message
