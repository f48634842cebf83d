"""Transfer of messages between nodes of one process without serialisation and without the middleware (bus).

Rule: a topic is *inside* as long as all of its publishers are in this process. Then its messages are passed from
publisher to subscription in the order of publication, and are sent on the bus only for external subscribers. When an
external publisher appears (a second commander, another clock), the subscriptions of this topic join the bus, and all
messages use the bus, as between processes. The topic becomes inside again when this publisher disappears.

While a topic is inside, its subscriptions in this process are not on the bus, so that `ros2 topic info` does not count
them.

Neither publisher nor receivers may change a message after its publication, because they share the same object.
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
"""Time [s] for which a publisher caches the number of external subscribers; discovery takes much longer than this."""
LEAST = 64
"""Least number of waiting messages that are delivered in one call, independent of the duration."""


def profile(quality: QoSProfile | int) -> QoSProfile:
    """Quality of service profile as in rclpy: a number is the depth."""
    return quality if isinstance(quality, QoSProfile) else QoSProfile(depth=quality)


class HandOver:
    """Topics of one process, for nodes created inside `with hand_over.nodes():`."""

    current: HandOver | None = None

    def __init__(self) -> None:
        self._topics: dict[str, Topic] = {}
        self._waiting: deque[InsideSubscription] = deque()
        self.arguments: Sequence[str] = ()

    @contextmanager
    def nodes(self, arguments: Sequence[str] = ()) -> Iterator[None]:
        """Context in which created nodes use this transfer; the ROS arguments apply to these nodes only."""
        before, HandOver.current = HandOver.current, self
        self.arguments = arguments
        try:
            yield
        finally:
            HandOver.current = before

    def topic(self, name: str) -> Topic:
        """Topic with a resolved name."""
        return self._topics.setdefault(name, Topic(self._waiting))

    @property
    def idle(self) -> bool:
        """Whether no messages wait for delivery."""
        return not self._waiting

    def deliver(self, duration: float) -> None:
        """Deliver waiting and resulting messages for `duration` [s] of wall time, but at least `LEAST` messages.

        So a process that was not scheduled for a while processes its replies before its timers report them as missing.
        """
        until = time.monotonic() + duration
        waiting, count = self._waiting, 0
        while waiting:
            waiting.popleft().take()
            count += 1
            if count >= LEAST and time.monotonic() > until:
                return

    def look(self, node: Node) -> None:
        """Check for external publishers, and move topics to the bus or back."""
        for name, topic in self._topics.items():
            if topic.subscriptions:
                topic.move(on_bus=not topic.publishers or node.count_publishers(name) > len(topic.publishers))


class Topic:
    """Publishers and subscriptions of one topic in this process.

    Args:
        waiting: queue of subscriptions with waiting messages.

    Attributes:
        on_bus: whether its messages use the bus only.
    """

    def __init__(self, waiting: deque[InsideSubscription]) -> None:
        self.publishers: list[InsidePublisher] = []
        self.subscriptions: list[InsideSubscription] = []
        self.waiting, self.on_bus = waiting, False

    def move(self, *, on_bus: bool) -> None:
        """Move the topic to the bus or inside."""
        if on_bus != self.on_bus:
            self.on_bus = on_bus
            for each in self.subscriptions:
                each.move(on_bus=on_bus)

    def connect(self) -> None:
        """Update the connections of publishers and subscriptions; a late subscription gets the latched message."""
        for publisher in self.publishers:
            before = publisher.heard_by
            publisher.heard_by = [each for each in self.subscriptions if each.hears(publisher)]
            if publisher.latched is not None:
                for each in publisher.heard_by:
                    if each not in before and each.requests_latched:
                        each.put(publisher.latched, self.waiting)


class InsidePublisher(Publisher):
    """Publisher whose messages are passed inside the process while its topic is inside.

    Args:
        topic_of: topic in this process; the other arguments are those of a publisher.

    Attributes:
        heard_by: connected subscriptions in this process. latched: last message, for late subscriptions.
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
        """Pass a message on, and publish it if there can be external subscribers.

        Args:
            serialised: function that returns its bytes, if this is faster than the conversion of the message.
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
        """Number of subscriptions of this publisher, inside and outside the process."""
        return self._elsewhere() + (0 if self._topic.on_bus else len(self.heard_by))

    def _elsewhere(self) -> int:
        """Number of subscriptions on the bus; updated after `COUNTED` [s]."""
        now = time.monotonic()
        if now > self._counted + COUNTED:
            self._count, self._counted = super().get_subscription_count(), now
        return self._count

    def destroy(self) -> None:
        """As the method of a publisher."""
        if self in self._topic.publishers:
            self._topic.publishers.remove(self)
        super().destroy()


class InsideSubscription:
    """Subscription that is on the bus only while its topic is on the bus.

    Args:
        topic: topic in this process. msg_type, qos, callback: as for a subscription.
        join: function that creates the subscription on the bus. leave: function that removes it.

    Attributes:
        joined: subscription on the bus, None while its topic is inside.
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
        """Whether type and quality of service are compatible."""
        compatible = qos_check_compatible(publisher.qos_profile, self._qos)[0]
        return publisher.msg_type is self._type and compatible != QoSCompatibility.ERROR

    def put(self, message: Any, waiting: deque[InsideSubscription]) -> None:
        """Add a message to the queue; above the depth the oldest message is dropped, as on the bus."""
        if len(self._pending) == self._depth:
            self._pending.popleft()
        else:
            waiting.append(self)
        self._pending.append(deserialize_message(message, self._type) if isinstance(message, bytes) else message)

    def take(self) -> None:
        """Pass the oldest waiting message to the callback."""
        if self._pending:
            self._callback(self._pending.popleft())

    def move(self, *, on_bus: bool) -> None:
        """Join or leave the bus."""
        if on_bus and self.joined is None:
            self.joined = self._join()
        elif not on_bus and self.joined is not None:
            self._leave(self.joined)
            self.joined = None

    def destroy(self) -> None:
        """End the subscription."""
        if self in self._topic.subscriptions:
            self._topic.subscriptions.remove(self)
            self._topic.connect()
        self._pending.clear()
        self.move(on_bus=False)
