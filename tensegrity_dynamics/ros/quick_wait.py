"""Waiting of one node for its messages and timers, at a tenth of what the executor takes for it.

rclpy's executor builds a wait set of everything that a node has for each callback, twice, with the events of every
publisher and subscription, and runs the callback as a task. Here one wait set stays; what nearly always comes, messages
and timers, is taken from it at once. Everything else (services, answers, actions, events, tasks) is left to the
executor: as soon as it shows in the wait set, or within `LOOK` s where it does not.

Callbacks run one after the other in the thread that calls, as with the single-threaded executor, and groups of
callbacks keep their rules.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation as _rclpy
from rclpy.node import Node
from rclpy.subscription import Subscription

LOOK = 0.03
"""s of wall time after which the executor looks at everything, whatever comes."""
SHARE = 20.0
"""That takes one part of so many of the time."""
BUSY = 1e-3
"""s after which it looks where tasks are under way, of which nobody tells when they may go on."""


class QuickWait:
    """The waiting of a node.

    Args:
        node: that has been added to the executor. executor: that does the rest. look: lets the executor do what waits,
            without waiting. survive: does one step of the node, see `RobotNode.survive`.
    """

    def __init__(
        self, node: Node, executor: SingleThreadedExecutor, look: Callable[[], None],
        survive: Callable[[Callable[[], Any]], None],
    ) -> None:  # fmt: skip
        self._node, self._executor, self._look, self._survive = node, executor, look, survive
        self._set: Any = None
        self._sizes: tuple[int, ...] = ()
        self._heard: dict[int, Any] = {}
        self._ticking: dict[int, Any] = {}
        self._next_look = 0.0

    def turn(self) -> bool:
        """Do what comes next; False where nothing came for `LOOK` s, so that the executor may wait for ever."""
        now = time.monotonic()
        if now >= self._next_look:
            self._look()
            after = time.monotonic()
            self._next_look = after + max(LOOK, SHARE * (after - now))
        waiting = bool(self._executor._tasks)
        left = BUSY if waiting else max(self._next_look - time.monotonic(), 0.0)
        subscriptions, timers, others = self._wait(left)
        for pointer in timers:
            self._survive(partial(self._tick, self._ticking[pointer]))
        for pointer in subscriptions:
            self._survive(partial(self._take, self._heard[pointer]))
        if others or waiting:
            self._next_look = 0.0
        return bool(subscriptions or timers or others or waiting)

    def _wait(self, seconds: float) -> tuple[list[int], list[int], bool]:
        """Pointers of subscriptions and timers that are ready, and whether anything else is."""
        node, executor = self._node, self._executor
        subscriptions = [each for each in node.subscriptions if each.callback_group.can_execute(each)]
        timers = [each for each in node.timers if each.callback_group.can_execute(each)]
        guards, clients, services = list(node.guards), list(node.clients), list(node.services)
        sizes = len(subscriptions), len(guards) + 1, len(timers), len(clients), len(services)
        if sizes != self._sizes:
            self._set = _rclpy.WaitSet(*sizes, 0, node.context.handle)
            self._sizes = sizes
        waiting = self._set
        waiting.clear_entities()
        self._heard, self._ticking = {}, {}
        for heard in subscriptions:
            self._heard[heard.handle.pointer] = heard
            waiting.add_subscription(heard.handle)
        for timer in timers:
            self._ticking[timer.handle.pointer] = timer
            waiting.add_timer(timer.handle)
        for guard in guards:
            waiting.add_guard_condition(guard.handle)
        waiting.add_guard_condition(executor._guard.handle)
        for client in clients:
            waiting.add_client(client.handle)
        for service in services:
            waiting.add_service(service.handle)
        waiting.wait(int(1e9 * seconds))
        if not node.context.ok():
            raise ExternalShutdownException()
        ready = waiting.get_ready_entities
        triggered = ready("guard_condition")
        for guard in guards:  # waiting has taken them
            if guard.handle.pointer in triggered:
                guard._executor_triggered = True
        return ready("subscription"), ready("timer"), bool(triggered or ready("client") or ready("service"))

    def _tick(self, timer: Any) -> None:
        group = timer.callback_group
        if not timer.handle.is_timer_ready() or not group.can_execute(timer) or not group.beginning_execution(timer):
            return
        try:
            with timer.handle:
                timer.handle.call_timer()
            timer.callback()
        finally:
            group.ending_execution(timer)

    def _take(self, heard: Any) -> None:
        group = heard.callback_group
        if not group.can_execute(heard) or not group.beginning_execution(heard):
            return
        try:
            with heard.handle:
                taken = heard.handle.take_message(heard.msg_type, heard.raw)
            if taken is not None:
                alone = heard._callback_type is Subscription.CallbackType.MessageOnly
                heard.callback(*taken[:1] if alone else taken)
        finally:
            group.ending_execution(heard)


def can_wait_quickly(node: Node, executor: SingleThreadedExecutor) -> bool:
    """Whether this rclpy has what is needed, and the node no coroutines among its callbacks."""
    parts: list[Any] = [*node.subscriptions, *node.timers]
    return (
        hasattr(_rclpy, "WaitSet")
        and hasattr(executor, "_tasks")
        and hasattr(executor, "_guard")
        and all(hasattr(timer.handle, "call_timer") for timer in node.timers)
        and all(hasattr(each, "_callback_type") for each in node.subscriptions)
        and not any(inspect.iscoroutinefunction(each.callback) for each in parts)
    )
