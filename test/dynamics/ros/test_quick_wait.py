"""Waiting with one wait set: messages and timers at once, everything else by the executor, and the end is heard."""

from __future__ import annotations

import threading
import time

import pytest

rclpy = pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.task import Future  # noqa: E402
from std_msgs.msg import String  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402

from tensegrity_dynamics.ros.quick_wait import can_wait_quickly  # noqa: E402
from tensegrity_dynamics.ros.robot_node import STATE, RobotNode  # noqa: E402

PATIENCE = 60.0


class Worker(RobotNode):
    """Hears, ticks, answers, and answers late when somebody has decided."""

    def __init__(self) -> None:
        super().__init__("worker")
        self.heard: list[str] = []
        self.ticks = 0
        self.decided: Future = Future()
        self.create_subscription(String, "said", self.hear, STATE)
        self.create_timer(0.002, self.tick, clock=self.wall_clock)
        self.create_service(Trigger, "late", self.late, callback_group=rclpy.callback_groups.ReentrantCallbackGroup())

    def hear(self, message: String) -> None:
        if not message.data:
            raise ValueError("nothing was said")
        self.heard.append(message.data)

    def tick(self) -> None:
        self.ticks += 1

    async def late(self, _, response):
        await self.decided
        response.success = True
        return response


class Ending:
    """Asked for when a condition holds."""

    def __init__(self, condition) -> None:
        self._condition, self._end = condition, time.monotonic() + PATIENCE

    @property
    def asked(self) -> bool:
        assert time.monotonic() < self._end
        return bool(self._condition())


@pytest.fixture
def worker():
    rclpy.init()
    executor, node = SingleThreadedExecutor(), Worker()
    executor.add_node(node)
    node.spin_until = lambda condition: node.spin(executor, Ending(condition))
    yield node
    node.destroy_node()
    executor.shutdown()
    rclpy.try_shutdown()


def test_messages_timers_and_answers_that_wait_for_others_are_all_served_and_none_ends_the_node(worker) -> None:
    assert can_wait_quickly(worker, worker.executor)
    other = rclpy.create_node("other")
    publisher, client = other.create_publisher(String, "said", STATE), other.create_client(Trigger, "late")
    worker.spin_until(lambda: publisher.get_subscription_count() and client.service_is_ready())
    for word in ("one", "", "two"):
        publisher.publish(String(data=word))
    worker.spin_until(lambda: worker.heard == ["one", "two"])
    assert worker.survived == 1
    ticks, answer = worker.ticks, client.call_async(Trigger.Request())
    worker.spin_until(lambda: worker.ticks > ticks + 20)  # goes on while the answer waits
    publisher.publish(String(data="three"))
    worker.spin_until(lambda: worker.heard[-1] == "three")
    threading.Timer(0.01, lambda: worker.decided.set_result(None)).start()

    def answered() -> bool:
        rclpy.spin_once(other, timeout_sec=0.0)
        return answer.done()

    worker.spin_until(answered)
    assert answer.result().success
    other.destroy_node()
