"""Messages between nodes of one process, handed over as they are: no bytes, no bus.

The law: a topic is *inside* as long as every publisher of it lives in this process. Then its messages go from publisher
to subscription in the order in which they were published, and on the bus only where somebody else subscribes. As soon
as a publisher from elsewhere is seen (a second commander, another clock), the subscriptions of that topic join the bus
and everything goes that way, as between processes; it comes back inside once that publisher is gone.

While a topic is inside its subscriptions here are not on the bus, so `ros2 topic info` does not count them.

Who publishes must not change a message afterwards, nor may who gets it: both have the same one.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSCompatibility, QoSProfile, qos_check_compatible
from rclpy.serialization import deserialize_message

COUNTED = 0.02
"""s for which a publisher knows who listens elsewhere; whoever comes is known long after it began to ask."""
LEAST = 64
"""Messages that are handed over at a time, where so many wait, however long it takes."""


def profile(quality: QoSProfile | int) -> QoSProfile:
    """Quality of service as rclpy understands it: of a number it is the depth."""
    return quality if isinstance(quality, QoSProfile) else QoSProfile(depth=quality)


class HandOver:
    """The topics of one process. Nodes made within `with hand_over.nodes():` take part."""

    current: HandOver | None = None

    def __init__(self) -> None:
        self._topics: dict[str, Topic] = {}
        self._waiting: deque[InsideSubscription] = deque()
        self.arguments: Sequence[str] = ()

    @contextmanager
    def nodes(self, arguments: Sequence[str] = ()) -> Iterator[None]:
        """The nodes made in this context hand over what they publish; ROS arguments are theirs alone."""
        before, HandOver.current = HandOver.current, self
        self.arguments = arguments
        try:
            yield
        finally:
            HandOver.current = before

    def topic(self, name: str) -> Topic:
        """The topic of a resolved name."""
        return self._topics.setdefault(name, Topic(self._waiting))

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be handed over."""
        return not self._waiting

    def deliver(self, duration: float) -> None:
        """Hand over what waits, and what comes of it, for `duration` s of wall time, but `LEAST` messages in any case.

        So a process that did not get the processor for a while finds its answers before its timers miss them.
        """
        until = time.monotonic() + duration
        waiting, count = self._waiting, 0
        while waiting:
            waiting.popleft().take()
            count += 1
            if count >= LEAST and time.monotonic() > until:
                return

    def look(self, node: Node) -> None:
        """Look for publishers from elsewhere, and move topics onto the bus or back."""
        for name, topic in self._topics.items():
            if topic.subscriptions:
                topic.move(on_bus=not topic.publishers or node.count_publishers(name) > len(topic.publishers))


class Topic:
    """Publishers and subscriptions of one topic in this process.

    Args:
        waiting: where subscriptions stand in line.

    Attributes:
        on_bus: its messages go over the bus alone.
    """

    def __init__(self, waiting: deque[InsideSubscription]) -> None:
        self.publishers: list[InsidePublisher] = []
        self.subscriptions: list[InsideSubscription] = []
        self.waiting, self.on_bus = waiting, False

    def move(self, *, on_bus: bool) -> None:
        """Onto the bus or inside."""
        if on_bus != self.on_bus:
            self.on_bus = on_bus
            for each in self.subscriptions:
                each.move(on_bus=on_bus)

    def connect(self) -> None:
        """Find out anew who hears whom; one that is heard late gets what is latched."""
        for publisher in self.publishers:
            before = publisher.heard_by
            publisher.heard_by = [each for each in self.subscriptions if each.hears(publisher)]
            if publisher.latched is not None:
                for each in publisher.heard_by:
                    if each not in before and each.requests_latched:
                        each.put(publisher.latched, self.waiting)


class InsidePublisher(Publisher):
    """A publisher whose messages are handed over while its topic is inside.

    Args:
        topic_of: the topic in this process; the others are those of a publisher.

    Attributes:
        heard_by: subscriptions here. latched: the last message, where late ones want it.
    """

    def __init__(self, *words: Any, topic_of: Topic, **more: Any) -> None:
        super().__init__(*words, **more)
        self._topic = topic_of
        self._latches = self.qos_profile.durability == DurabilityPolicy.TRANSIENT_LOCAL
        self.heard_by: list[InsideSubscription] = []
        self.latched: Any = None
        self._count, self._counted = 0, -COUNTED
        topic_of.publishers.append(self)
        topic_of.connect()

    def publish(self, message: Any, serialised: Callable[[], bytes] | None = None) -> None:
        """Hand a message over, and publish it where somebody else may hear it.

        Args:
            serialised: makes its bytes, where that is quicker than to convert it.
        """
        if self._latches:
            self.latched = message
        if not self._topic.on_bus:
            for each in self.heard_by:
                each.put(message, self._topic.waiting)
            if not self._latches and not self._elsewhere():
                return
        super().publish(message if serialised is None else serialised())

    def get_subscription_count(self) -> int:
        """How many subscriptions hear this publisher, here and elsewhere."""
        return self._elsewhere() + (0 if self._topic.on_bus else len(self.heard_by))

    def _elsewhere(self) -> int:
        """How many subscriptions on the bus; asked for anew after `COUNTED` s."""
        now = time.monotonic()
        if now > self._counted + COUNTED:
            self._count, self._counted = super().get_subscription_count(), now
        return self._count

    def destroy(self) -> None:
        """As a publisher's."""
        if self in self._topic.publishers:
            self._topic.publishers.remove(self)
        super().destroy()


class InsideSubscription:
    """A subscription that is on the bus only while its topic is.

    Args:
        topic: in this process. msg_type, qos, callback: as of a subscription.
        join: makes the subscription on the bus. leave: removes it.

    Attributes:
        joined: the subscription on the bus, None while its topic is inside.
    """

    def __init__(
        self, topic: Topic, msg_type: Any, qos: QoSProfile, callback: Callable[[Any], None],
        join: Callable[[], Any], leave: Callable[[Any], Any],
    ) -> None:  # fmt: skip
        self._topic, self._type, self._qos, self._callback = topic, msg_type, qos, callback
        self._join, self._leave = join, leave
        self.joined: Any = None
        self._depth, self._pending = max(1, qos.depth), deque[Any]()
        self.requests_latched = qos.durability == DurabilityPolicy.TRANSIENT_LOCAL
        topic.subscriptions.append(self)
        topic.connect()
        if topic.on_bus:
            self.move(on_bus=True)

    def hears(self, publisher: InsidePublisher) -> bool:
        """Whether type and quality of service go together."""
        compatible = qos_check_compatible(publisher.qos_profile, self._qos)[0]
        return publisher.msg_type is self._type and compatible != QoSCompatibility.ERROR

    def put(self, message: Any, waiting: deque[InsideSubscription]) -> None:
        """Stand in line with a message; of more than the depth the oldest is dropped, as on the bus."""
        if len(self._pending) == self._depth:
            self._pending.popleft()
        else:
            waiting.append(self)
        self._pending.append(deserialize_message(message, self._type) if isinstance(message, bytes) else message)

    def take(self) -> None:
        """Give the oldest message that waits to the callback."""
        if self._pending:
            self._callback(self._pending.popleft())

    def move(self, *, on_bus: bool) -> None:
        """Join the bus, or leave it."""
        if on_bus and self.joined is None:
            self.joined = self._join()
        elif not on_bus and self.joined is not None:
            self._leave(self.joined)
            self.joined = None

    def destroy(self) -> None:
        """Hear nothing any more."""
        if self in self._topic.subscriptions:
            self._topic.subscriptions.remove(self)
            self._topic.connect()
        self._pending.clear()
        self.move(on_bus=False)
