"""Node `recorder`: writes all published messages to a bag, unchanged.

Messages are stored in serialised form and are never decoded. The bag also contains the text of the robot file (topic
`robot_file`) and the parameters of every node (on `/parameter_events`, as if each node had just declared them).
If `release` is set, the recorder starts a paused simulator when it has subscribed to all topics in `wait_for`, so that
the bag contains the first state. If the disk is full, it reports this and keeps the recorded data; the robot continues.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections import Counter
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any

from rcl_interfaces.msg import Parameter, ParameterEvent
from rcl_interfaces.srv import GetParameters, ListParameters
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import serialize_message
from rclpy.task import Future
from std_msgs.msg import String
from std_srvs.srv import SetBool

from tensegrity_dynamics.ending import Ending
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robots.load_robot import load_robot
from tensegrity_dynamics.ros.robot_node import ERROR, OK, WARN, RobotNode, run_node

from ..bags import RECORDING
from ..bags.contents import PARAMETERS, ROBOT_FILE
from ..bags.decoding import without_surplus
from ..bags.message_times import MessageTimes
from ..bags.message_types import MessageTypes
from ..bags.replay_plan import GOAL, TAKEN
from ..bags.writer import BagWriteError, BagWriter, Quality

EXPECTED = {
    "joint_states": ("sensor_msgs/msg/JointState", False),
    "tendon_states": ("tensegrity/msg/TendonState", False),
    "structure_state": ("tensegrity/msg/StructureState", False),
    "estimated_wrench": ("geometry_msgs/msg/WrenchStamped", False),
    "actuator_command": ("tensegrity/msg/ActuatorCommand", False),
    "reference": ("tensegrity/msg/Reference", True),
    "goal": ("tensegrity/msg/Goal", True),
    "robot_layout": ("tensegrity/msg/RobotLayout", True),
    **{name: (kind, False) for name, kind in TAKEN.items()},
}
"""Topics that every robot publishes: type, and whether the topic is latched. They are recorded from the first message
on, since the recorder subscribes before they are published. Other topics are subscribed when they are discovered."""
DEPTH = 10000
"""Queue length of subscriptions [messages]; the robot never waits for the recorder."""
ROUND = 0.02
"""Interval between two checks for messages [s]."""
LOOK = 0.2
"""Interval between two searches for new topics and nodes [s]."""
SCARCE = 2**28
"""Free disk space below which the recorder warns [bytes]."""
ANSWER_TIME = 5.0
"""Longest time for the answer of a node about its parameters [s]."""


def message_class(name: str) -> Any:
    """Python class of a type such as "sensor_msgs/msg/JointState", including the message types of actions."""
    package, kind, short = name.split("/")
    module = import_module(f"{package}.{kind}")
    if kind == "action":
        stem, _, part = short.rpartition("_")
        action = getattr(module, stem)
        return action.Impl.FeedbackMessage if part == "FeedbackMessage" else getattr(action, part)
    return getattr(module, short)


class RecorderNode(RobotNode):
    """Node of the recorder. Parameters: bag, storage, robot, exclude, wait_for, release, flush_period."""

    def __init__(self) -> None:
        super().__init__("recorder")
        path = self.parameter("bag", "", "folder of the bag; it must not exist yet")
        if not path:
            raise TensegrityError("parameter bag is empty; name the folder of the bag, such as bag:=run_1.")
        storage = self.parameter("storage", "mcap", "storage format", choices=("mcap", "sqlite3"))
        robot = self.parameter("robot", "", "robot file to store in the bag: name of a shipped robot, or path")
        excluded = self.parameter(
            "exclude", "markers /tf /tf_static robot_description", "topics to leave out, separated by blanks"
        )
        self._expected = {
            self.resolve_topic_name(each)
            for each in self.parameter(
                "wait_for", "", "topics, separated by blanks, to wait for before the recorder is ready"
            ).split()
        }
        self._release = self.parameter("release", False, "release a paused simulator once the recorder is ready")
        self._flush_period = self.parameter(
            "flush_period",
            1.0,
            "period of writing received messages to the file [s of wall time]; larger loses more after a kill",
            low=0.05,
            high=60.0,
        )
        self._excluded = {self.resolve_topic_name(each) for each in excluded.split()}
        text = _robot_text(robot) if robot else ""
        self._types, self._times = MessageTypes(), MessageTimes()
        self.writer: BagWriter | None = BagWriter(path, storage)
        self._topics: dict[str, Any] = {}
        self._unknown: set[str] = set()
        self._heard: set[str] = set()
        self._single: set[str] = set()  # topics with one publisher: consecutive sequence numbers
        self._numbers: dict[str, int] = {}
        self._lost = Counter[str]()  # by topic
        self._latched = set[str]()  # topics on which a newer message replaces an unread one
        self._asked: dict[str, float] = {}
        self._waiting: set[str] = set()
        self._looked = self._flushed = 0.0
        self._began = time.monotonic()
        self._released = self._ready = False
        self._unpause = self.create_client(SetBool, "simulator/set_paused") if self._release else None
        self._path, self._bytes = path, 0
        self.set_status(OK, "waiting for the robot", bag=path)
        self._keep_robot(text)
        self._add(PARAMETERS, "rcl_interfaces/msg/ParameterEvent", Quality(depth=1000))
        for name, (kind, latched) in EXPECTED.items():
            topic = self.resolve_topic_name(name)
            if topic not in self._excluded:
                self._subscribe(topic, kind, Quality(latched=latched, depth=1 if latched else 5))

    # -- running --------------------------------------------------------------------------------------------------

    def spin(self, executor: SingleThreadedExecutor, ending: Ending) -> None:
        """Process arrived messages, many at a time, until the end is requested."""
        while not ending.asked and self.context.ok():
            until = time.monotonic() + ROUND
            for _ in range(20):  # answers of services, timers
                executor.spin_once(timeout_sec=0.0)
            self.take_all()
            now = time.monotonic()
            if now - self._looked > LOOK:
                self._looked = now
                self._look()
            if self.writer is not None and now - self._flushed > self._flush_period:
                self._flushed = now
                self._flush()
            ending.wait(until - time.monotonic())

    def close(self) -> None:
        """Store all arrived messages, and close the bag."""
        self.take_all()
        if self.writer is not None:
            try:
                self.writer.close()
            except BagWriteError as error:
                print(error, file=sys.stderr)
            self.writer = None

    def take_all(self) -> None:
        self._times.begin_round()
        for topic, subscription in list(self._topics.items()):
            while True:
                with subscription.handle:
                    taken = subscription.handle.take_message(subscription.msg_type, True)
                if taken is None:
                    break
                self._keep(topic, *taken)

    def _keep(self, topic: str, data: bytes, info: Any) -> None:
        """Write a message with its publication time, if the middleware reports it (`MessageTimes`)."""
        number = info["publication_sequence_number"]
        if number is not None and topic in self._single and topic not in self._latched:
            self._lost[topic] += max(0, number - self._numbers.get(topic, number - 1) - 1)
            self._numbers[topic] = number
        self._heard.add(topic)
        self._write(topic, self._times.of(info["received_timestamp"], info["source_timestamp"]), data)

    def _write(self, topic: str, when: int, data: bytes) -> None:
        if self.writer is None:
            return
        try:
            self.writer.write(topic, when, data)
            self._bytes += len(data)
        except BagWriteError as error:
            self._give_up(error)

    def _write_own(self, topic: str, message: Any, kind: str) -> None:
        """Write a message of the recorder itself."""
        self._write(topic, self._times.now, without_surplus(self._types[kind], serialize_message(message)))

    def _flush(self) -> None:
        assert self.writer is not None
        try:
            self.writer.flush()
            free = shutil.disk_usage(self._path).free
        except (BagWriteError, OSError) as error:
            self._give_up(error)
            return
        lost = {topic: count for topic, count in self._lost.items() if count}
        values: dict[str, Any] = {"lost": sum(lost.values())}
        values |= {
            "messages": self.writer.count,
            "topics": len(self._topics),
            "megabytes": f"{1e-6 * self._bytes:.1f}",
        }
        if free < SCARCE:
            self.set_status(WARN, f"the disk of the bag is nearly full: {1e-6 * free:.0f} MB are free", **values)
        elif lost:
            which = ", ".join(sorted(lost))
            text = f"messages of {which} were lost on the way to the recorder; the machine is too busy"
            self.set_status(WARN, text, **values)
        elif self._ready:
            self.set_status(OK, "recording", **values)

    def _give_up(self, error: Exception) -> None:
        self.writer = None
        for subscription in self._topics.values():
            self.destroy_subscription(subscription)
        self._topics.clear()
        self.set_status(ERROR, f"{error} The robot goes on without a recording.")

    # -- topics to record -----------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Search for new topics and nodes; start the simulator when all topics are subscribed."""
        if self.writer is not None:
            for topic, kinds in self.get_topic_names_and_types():
                if topic not in self._topics and topic not in self._excluded and topic not in self._unknown:
                    self._listen(topic, kinds[0])
            self._single = {topic for topic in self._topics if self.count_publishers(topic) == 1}
            for name, namespace in self.get_node_names_and_namespaces():
                self._ask(f"{namespace.rstrip('/')}/{name}")
        late = time.monotonic() - self._began
        if not self._ready:
            missing = self._expected - self._heard
            waiting = [each for each in self._waiting if time.monotonic() - self._asked[each] < ANSWER_TIME]
            self._ready = self.writer is None or (bool(self._heard) and not (missing or waiting))
            if self._ready and self.writer is not None:
                self.get_logger().info(f"{RECORDING} {self._path}")
                self.set_status(OK, "recording")
                self.report()
            if missing and late > 5.0:
                self.set_status(WARN, f"nothing has come yet on {', '.join(sorted(missing))}")
        if self._ready and self._unpause is not None and not self._released and self._unpause.service_is_ready():
            self._released = True
            self._unpause.call_async(SetBool.Request(data=False))

    def _listen(self, topic: str, kind: str) -> None:
        publishers = [each for each in self.get_publishers_info_by_topic(topic) if each.node_name != self.get_name()]
        if not publishers:
            return
        profiles = [each.qos_profile for each in publishers]
        reliable = all(each.reliability == ReliabilityPolicy.RELIABLE for each in profiles)
        latched = all(each.durability == DurabilityPolicy.TRANSIENT_LOCAL for each in profiles)
        depth = max((each.depth for each in profiles), default=0) or (1 if latched else 10)
        self._subscribe(topic, kind, Quality(reliable, latched, depth))

    def _subscribe(self, topic: str, kind: str, offered: Quality) -> None:
        try:
            made = message_class(kind)
            if topic not in (self.writer or ()):
                self._add(topic, kind, offered)
        except (TensegrityError, ImportError, AttributeError, ValueError) as error:
            self._unknown.add(topic)
            self.set_status(WARN, f"{topic} is not recorded: {error}")
            return
        quality = QoSProfile(
            history=HistoryPolicy.KEEP_LAST,
            depth=DEPTH,
            reliability=ReliabilityPolicy.RELIABLE if offered.reliable else ReliabilityPolicy.BEST_EFFORT,
            durability=DurabilityPolicy.TRANSIENT_LOCAL if offered.latched else DurabilityPolicy.VOLATILE,
        )
        if offered.latched and topic != self.resolve_topic_name(GOAL):
            self._latched.add(topic)
        keep: Any = partial(self._keep, topic)  # with the message information of the middleware
        self._topics[topic] = self.create_subscription(made, topic, keep, quality, raw=True)

    def _add(self, topic: str, kind: str, quality: Quality) -> None:
        if self.writer is not None:
            try:
                self.writer.add_topic(topic, self._types[kind], quality)
            except BagWriteError as error:
                self._give_up(error)

    def _keep_robot(self, text: str) -> None:
        """Write the robot file once, unless a node publishes it."""
        topic = self.resolve_topic_name(ROBOT_FILE)
        if text and topic not in (self.writer or ()) and not self.count_publishers(topic):
            self._add(topic, "std_msgs/msg/String", Quality(latched=True, depth=1))
            self._write_own(topic, String(data=text), "std_msgs/msg/String")
            self._excluded.add(topic)  # the robot publishes the same text

    # -- parameters of other nodes --------------------------------------------------------------------------------

    def _ask(self, node: str) -> None:
        """Request the parameters of a node, once."""
        if node in self._asked or node == self.get_fully_qualified_name() or "/_" in node:
            return
        lister = self.create_client(ListParameters, f"{node}/list_parameters")
        getter = self.create_client(GetParameters, f"{node}/get_parameters")
        if not (lister.service_is_ready() and getter.service_is_ready()):
            self.destroy_client(lister)
            self.destroy_client(getter)
            return
        self._asked[node] = time.monotonic()
        self._waiting.add(node)

        def listed(answer: Future) -> None:
            names = list(answer.result().result.names)
            getter.call_async(GetParameters.Request(names=names)).add_done_callback(lambda given: got(names, given))

        def got(names: list[str], answer: Future) -> None:
            event = ParameterEvent(node=node, stamp=self.get_clock().now().to_msg())
            event.new_parameters = [
                Parameter(name=name, value=value) for name, value in zip(names, answer.result().values, strict=False)
            ]
            self._write_own(PARAMETERS, event, "rcl_interfaces/msg/ParameterEvent")
            self._waiting.discard(node)
            for each in event.new_parameters:
                if each.name == "robot" and each.value.string_value:
                    with suppress(TensegrityError, OSError):  # a file of another computer
                        self._keep_robot(_robot_text(each.value.string_value))

        lister.call_async(ListParameters.Request()).add_done_callback(listed)


def _robot_text(name: str) -> str:
    """Text of the file of a robot. Raises TensegrityError if there is no such robot."""
    source = load_robot(name).path
    return "" if source is None else source.read_text(encoding="utf-8")


def main() -> int:
    """Run the node."""
    return run_node(RecorderNode)


if __name__ == "__main__":
    sys.exit(main())
