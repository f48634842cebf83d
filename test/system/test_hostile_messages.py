"""No message, service, action, parameter or frame ends a node, and none is a surprise to it.

The callbacks of every node are called in this process, which is some hundred times as fast as through DDS. A million
messages per node: `HOSTILE=1000000 python -m pytest test/system/test_hostile_messages.py -m "not long"`.
"""

from __future__ import annotations

import contextlib
import os
import resource
import threading
import time
import traceback
from types import SimpleNamespace
from typing import Any

import pytest
from endings import Until
from patience import until

rclpy = pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("tensegrity.msg", reason="the interfaces of this project are not built")

from bag_examples import sample, write_samples  # noqa: E402
from builtin_interfaces.msg import Time  # noqa: E402
from geometry_msgs.msg import WrenchStamped  # noqa: E402
from hostile_messages import FLOATS, TEXTS, HostileMessages  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402
from rclpy.serialization import serialize_message  # noqa: E402
from rosgraph_msgs.msg import Clock as ClockMessage  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from single_node import node_of  # noqa: E402
from std_msgs.msg import Header  # noqa: E402
from std_srvs.srv import SetBool, Trigger  # noqa: E402
from tensegrity.action import FollowActuators, FollowTrajectory  # noqa: E402
from tensegrity.msg import ActuatorCommand, TendonState  # noqa: E402

from tensegrity_control.ros.controller_node import ControllerNode  # noqa: E402
from tensegrity_driver.ros.driver_node import DriverNode  # noqa: E402
from tensegrity_dynamics import load_robot  # noqa: E402
from tensegrity_dynamics.errors import TensegrityError  # noqa: E402
from tensegrity_dynamics.ros.estimator_node import EstimatorNode  # noqa: E402
from tensegrity_dynamics.ros.geometry_messages import time_message  # noqa: E402
from tensegrity_dynamics.ros.markers_node import MarkersNode  # noqa: E402
from tensegrity_dynamics.ros.paced_node import PacedNode  # noqa: E402
from tensegrity_dynamics.ros.robot_node import COMMAND, ERROR, OK, STOPPED, WARN, RobotNode  # noqa: E402
from tensegrity_dynamics.ros.simulator_node import SimulatorNode  # noqa: E402
from tensegrity_tools.bags.reader import Bag  # noqa: E402
from tensegrity_tools.ros.player_node import PlayerNode  # noqa: E402
from tensegrity_tools.ros.recorder_node import RecorderNode  # noqa: E402
from tensegrity_tools.ros.view_node import ViewNode  # noqa: E402

BAG = "a bag"
"""Stands for a small one that is made for the test."""
MANY = int(os.environ.get("HOSTILE", "1000"))
NODES = {
    "simulator": (SimulatorNode, "three_prism", {}),
    "simulator of a mechanism": (SimulatorNode, "single_strut", {}),
    "simulator in lock-step": (SimulatorNode, "three_prism", {"lockstep": True}),
    "estimator": (EstimatorNode, "three_prism", {}),
    "observer": (EstimatorNode, "single_strut", {"method": "observer", "measured_tensions": True}),
    "controller": (ControllerNode, "three_prism", {}),
    "controller of a mechanism": (ControllerNode, "biglide", {"control_period": 0.01}),
    "markers": (MarkersNode, "tensebot", {}),
    "view": (ViewNode, "tensebot", {"port": 18190}),
    "driver": (DriverNode, "tensebot", {"port": "emulated", "lockstep": True}),
    "estimator with IMUs": (EstimatorNode, "six_bar", {}),
    "player": (PlayerNode, "three_prism", {"bag": BAG, "lockstep": False}),
}
SHARES = {
    "estimator with IMUs": 0.1, "player": 0.1,
    "estimator": 0.3, "observer": 0.5, "controller": 0.5, "controller of a mechanism": 0.5, "markers": 0.5, "view": 0.5,
    "driver": 0.5,
}  # fmt: skip
"""Of the messages, for nodes that solve an equilibrium, plan, draw a picture or run a cycle for many of them."""


class FakeGoal:
    """What an action server hands to its callback."""

    def __init__(self, request: Any) -> None:
        self.request, self.is_cancel_requested = request, False

    def __getattr__(self, name: str) -> Any:  # abort, succeed, canceled, publish_feedback
        return lambda *_: None


class Attack:
    """One node with everything that can be sent to it."""

    def __init__(self, node: RobotNode, executor: SingleThreadedExecutor, robot: str, seed: int) -> None:
        loaded = load_robot(robot)
        names = [*(each.name for each in loaded.actuators), *loaded.model.tension_names]
        names += loaded.model.load_names  # bodies or nodes
        self.node, self.executor = node, executor
        self.messages = HostileMessages(seed, names, lambda: getattr(node, "stamp", 0) or 0)
        self._tasks: list[Any] = []
        self.targets = [self._topic(each) for each in node.subscriptions if "/tensegrity" not in each.topic_name]
        own = HostileMessages(seed + 1, sorted(node.list_parameters([], 0).names))
        calls: dict[str, list[Any]] = {"own": [], "parameters": [], "lifecycle": []}
        for service in node.services:
            name = service.srv_name.split("/")[-1]
            kind = "parameters" if name in PARAMETER_SERVICES else "lifecycle" if name in LIFECYCLE_SERVICES else "own"
            if name not in RCL_SERVICES:
                calls[kind].append(self._service(service, own if kind == "parameters" else self.messages))
        # those that every node has are one target together
        self.targets += [
            *calls["own"],
            *(self._one_of(calls[each]) for each in ("parameters", "lifecycle") if calls[each]),
        ]
        self.targets.append(self._parameter)
        if isinstance(node, ControllerNode):
            self.targets += [self.follow, self._follow_actuators]

    def _topic(self, subscription: Any) -> Any:
        kind = subscription.msg_type

        def send() -> None:
            subscription.callback(self.messages.make(kind))
            if subscription.topic_name.endswith(STOPPED):  # else every goal from here on is refused at once
                subscription.callback(kind())

        return send

    def _service(self, service: Any, messages: HostileMessages) -> Any:
        kind = service.srv_type

        def call() -> None:
            answer = service.callback(messages.make(kind.Request), kind.Response())
            if not hasattr(answer, "send"):
                serialize_message(answer)  # as the answer goes out
            elif len(self._tasks) < 20:
                self._tasks.append(self.executor.create_task(answer))
            else:
                answer.close()

        return call

    def _one_of(self, calls: list[Any]) -> Any:
        return lambda: calls[self.messages.random.integers(len(calls))]()

    def follow(self) -> None:
        if self.messages.random.random() < 0.2:
            self.node.trajectories.cancel(None)
            return
        goal = FakeGoal(self.messages.make(FollowTrajectory.Goal))
        self._tasks.append(self.executor.create_task(self.node.trajectories.follow(goal)))

    def _follow_actuators(self) -> None:
        if self.messages.random.random() < 0.2:
            self.node.actuator_motions.cancel(None)
            return
        goal = FakeGoal(self.messages.make(FollowActuators.Goal))
        self._tasks.append(self.executor.create_task(self.node.actuator_motions.follow(goal)))

    def _parameter(self) -> None:
        random = self.messages.random
        names = sorted(self.node.list_parameters([], 0).names)
        value = random.choice([*FLOATS, 0.1, 0.02]).item() if random.random() < 0.5 else str(random.choice(TEXTS))
        value = [value, True, 7, [value]][random.integers(4)]
        self.node.set_parameters([Parameter(str(random.choice(names)), value=value)])

    def run(self, count: int) -> None:
        for k in range(count):
            self.targets[self.messages.random.integers(len(self.targets))]()
            if self._tasks or k % 100 == 0:
                self.executor.spin_once(timeout_sec=0.0)
                self._tasks = [each for each in self._tasks if not each.done()]
            if isinstance(self.node, PacedNode) and k % 5 == 0:
                self.node.work()


PARAMETER_SERVICES = {
    "describe_parameters", "get_parameter_types", "get_parameters", "list_parameters", "set_parameters",
    "set_parameters_atomically",
}  # fmt: skip
LIFECYCLE_SERVICES = {
    "change_state", "get_available_states", "get_available_transitions", "get_state", "get_transition_graph",
}  # fmt: skip
RCL_SERVICES = {"get_type_description"}
"""Answered without Python."""


@pytest.mark.parametrize("many", [MANY, pytest.param(10 * MANY, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", NODES)
def test_no_message_ends_a_node_or_surprises_it(name, many, tmp_path):
    kind, robot, parameters = NODES[name]
    if "bag" in parameters:
        write_samples(tmp_path / "bag", [("/a", k, sample(k)) for k in range(3)])
        parameters = {**parameters, "bag": tmp_path / "bag"}
    with node_of(kind, robot, parameters) as (node, executor):
        attack = Attack(node, executor, robot, seed=len(name))
        assert len(attack.targets) >= 2
        said: list[str] = []
        note = node.note_survived

        def keep(what: str, error: Exception) -> None:
            said.append(f"{what}: {''.join(traceback.format_exception(error)[-4:])}")
            note(what, error)

        node.note_survived = keep  # type: ignore[method-assign]
        count = round(SHARES.get(name, 1.0) * many)
        attack.run(count // 2)
        size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        began = time.perf_counter()
        attack.run(count // 2)
        passed = time.perf_counter() - began
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - size
        print(f"{name}: {count} messages, {60 * count // 2 / passed:.0f} per minute, memory +{grown} KiB")
        assert not said, said[0]
        assert grown < 50_000


def test_bytes_that_are_no_message_do_not_end_a_node():
    """Through DDS: texts that are no UTF-8, and messages that are cut short, arrive at the node as they are."""
    with node_of(SimulatorNode, "three_prism", {}) as (node, executor):
        sender = rclpy.create_node("sender")
        publisher = sender.create_publisher(ActuatorCommand, "actuator_command", 10)
        names = [each.name for each in load_robot("three_prism").actuators]
        sound = ActuatorCommand(source="me", name=names, value=[0.1] * len(names))
        whole = serialize_message(sound)
        random = HostileMessages(5, names).random

        def spin_until(condition: Any) -> None:
            until(lambda: node.survive(lambda: executor.spin_once(timeout_sec=0.1)) or condition())

        spin_until(lambda: publisher.get_subscription_count() == 1)
        for _ in range(300):
            bad = bytearray(whole[: random.integers(8, len(whole))] if random.random() < 0.5 else whole)
            for _ in range(random.integers(1, 6)):
                bad[random.integers(4, len(bad))] = random.integers(128, 256)
            publisher.publish(bytes(bad))
            node.survive(lambda: executor.spin_once(timeout_sec=0.0))
        publisher.publish(whole.replace(b"me\x00", b"\xff\xfe\x00"))

        def heard() -> bool:  # a sign of life of another source, as soon as whatever came before is no longer fresh
            publisher.publish(ActuatorCommand(source="me", header=Header(stamp=time_message(round(1e9 * node.now)))))
            return node.gate.source == "me"

        spin_until(heard)
        sender.destroy_node()


def test_a_recorder_keeps_whatever_comes_also_what_is_no_message(tmp_path):
    """It takes bytes as they travel: what nobody can decode goes into the bag, and comes out of it the same."""
    with node_of(RecorderNode, "three_prism", {"bag": tmp_path / "bag"}) as (node, _):
        sender = rclpy.create_node("sender")
        messages, sent = HostileMessages(6, ["a", "b"]), []
        topics = {"joint_states": JointState, "actuator_command": ActuatorCommand, "tendon_states": TendonState}
        publishers = {name: sender.create_publisher(kind, name, 1000) for name, kind in topics.items()}
        until(lambda: all(each.get_subscription_count() for each in publishers.values()))
        before = node.writer.count
        for k in range(300):
            name = list(topics)[k % 3]
            data = serialize_message(messages.make(topics[name]))
            if k % 2:
                data = data[: messages.random.integers(5, len(data) + 1)] + messages.random.bytes(k % 7)
            publishers[name].publish(data)
            sent.append((f"/{name}", data))
        until(lambda: node.take_all() or node.writer.count >= before + 300)
        sender.destroy_node()
    with Bag(tmp_path / "bag") as bag:
        kept = [(each.topic, each.data) for each in bag.messages([f"/{name}" for name in topics])]
        for topic, data in kept:
            with contextlib.suppress(TensegrityError):
                bag.decoder(topic)(data)
    assert sorted(kept) == sorted(sent)


def test_a_request_that_surprises_a_service_is_refused_and_answered():
    from std_srvs.srv import Trigger

    rclpy.init(args=["--ros-args", "--log-level", "FATAL"])
    try:
        node = RobotNode("odd")

        def odd(*_: Any) -> Any:
            raise RuntimeError("nobody foresaw this")

        async def odd_later(*_: Any) -> Any:
            raise RuntimeError("nor this")

        at_once = node.create_service(Trigger, "odd", odd).callback(Trigger.Request(), Trigger.Response())
        later = node.create_service(Trigger, "later", odd_later).callback(Trigger.Request(), Trigger.Response())
        with pytest.raises(StopIteration) as stopped:
            later.send(None)
        for answer, word in ((at_once, "foresaw"), (stopped.value.value, "nor this")):
            assert not answer.success and word in answer.message
        assert node.survived == 2
        node.destroy_node()
    finally:
        rclpy.try_shutdown()


def test_an_error_of_a_nodes_own_work_does_end_it():
    rclpy.init(args=["--ros-args", "--log-level", "FATAL"])
    try:
        node, executor = RobotNode("broken"), SingleThreadedExecutor()
        executor.add_node(node)

        def broken() -> None:
            raise ZeroDivisionError

        node.create_timer(0.0, broken, clock=node.wall_clock)

        def spin() -> None:
            for _ in range(100):
                node.survive(lambda: executor.spin_once(timeout_sec=1.0))

        with pytest.raises(ZeroDivisionError):
            spin()
        node.destroy_node()
        executor.shutdown()
    finally:
        rclpy.try_shutdown()


def test_a_flood_of_problems_fills_neither_the_log_nor_the_network():
    rclpy.init(args=["--ros-args", "--log-level", "FATAL"])
    try:
        node, published = RobotNode("flooded"), []
        node.report = lambda: published.append(node.status_text)  # type: ignore[method-assign]
        for k in range(10_000):
            node.set_status(b"\x01", f"problem {k}" + "x" * 100_000)
        assert len(published) <= 40 + 20 and len(node.status_text) < 3000
        assert node.status_text.startswith("problem 9999")
        node.destroy_node()
    finally:
        rclpy.try_shutdown()


def test_a_problem_of_which_only_numbers_change_is_logged_once_and_published_every_time():
    rclpy.init()
    try:
        node, logged, published = RobotNode("trembling"), [], []
        node.report = lambda: published.append(node.status_text)  # type: ignore[method-assign]
        node.get_logger = lambda: SimpleNamespace(warning=logged.append)  # type: ignore[method-assign]
        for k in range(5):
            node.set_status(WARN, f"a carries {0.1 * k:.3g} N, the shape -1e-0{k} N")
            node.set_status(OK, "estimating")
        assert (len(published), logged) == (5, published[:1])
        for _ in range(2):
            node.set_status(WARN, "emergency stop")
            node.set_status(OK, "controlling")
        assert logged[1:] == ["emergency stop"] * 2
        node.destroy_node()
    finally:
        rclpy.try_shutdown()


def test_a_publisher_that_cannot_be_heard_is_said():
    from rclpy.qos import QoSProfile, ReliabilityPolicy

    with node_of(SimulatorNode, "three_prism", {}) as (node, executor):
        sender = rclpy.create_node("sender")
        careless = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
        sender.create_publisher(ActuatorCommand, "actuator_command", careless)
        until(lambda: executor.spin_once(timeout_sec=0.1) or "unheard_publishers" in node.status_values)
        assert node.status_values["unheard_publishers"] == "actuator_command"
        sender.destroy_node()


@pytest.mark.parametrize(("lockstep", "factor", "late"), [(False, 1.0, True), (True, 1.0, False), (False, 0.01, False)])
def test_a_simulator_below_the_pace_that_was_asked_for_says_so(lockstep, factor, late):
    parameters = {"lockstep": lockstep, "real_time_factor": factor, "paused": True}
    with node_of(SimulatorNode, "three_prism", parameters) as (node, _):
        node.judge_pace()  # from here on it counts
        began, before = node.judged_since
        node.ticks = before + 50
        node.judged_since = began - 50 * 1e-9 * node.period / 0.81, before  # 0.81 simulated seconds per second
        node.judge_pace()
        assert ("too slow" in node.status_text) == late


def test_a_simulator_says_which_payloads_it_carries_and_which_it_refuses():
    from std_srvs.srv import Trigger

    with node_of(SimulatorNode, "three_prism", {"paused": True}) as (node, _):
        weigh = next(each for each in node.subscriptions if each.topic_name.endswith("/payload"))
        message, reports, published = weigh.msg_type(), [], []
        node.carried_publisher = SimpleNamespace(
            publish=lambda each: published.append((list(each.name), list(each.mass)))
        )
        node.report = lambda: reports.append(node.later()["payloads"])  # type: ignore[method-assign]
        message.header.frame_id, message.inertia.m = "top_1", 0.2
        weigh.callback(message)
        message.header.frame_id = "top_9"
        weigh.callback(message)
        assert (
            node.status_text.startswith("payload refused: ")
            and "top_9" in node.status_text
            and "top_1" in node.status_text
        )
        message.header.frame_id, message.inertia.m = "top_1", 0.0
        weigh.callback(message)
        message.inertia.m = 0.3
        weigh.callback(message)
        assert reports == ["top_1: 0.2 kg", "top_1: 0.2 kg", "none", "top_1: 0.3 kg"]
        node.reset(None, Trigger.Response())
        assert node.later()["payloads"] == "none"
        assert published == [(["top_1"], [0.2]), ([], []), (["top_1"], [0.3]), ([], [])]


@pytest.mark.parametrize("node_class", [ControllerNode, EstimatorNode])
def test_a_refused_payload_is_named_until_a_good_one_comes_whatever_wrenches_come(node_class):
    with node_of(node_class, "single_strut", {"method": "observer", "controller": "qp"}) as (node, _):
        weigh, push = (
            next(each for each in node.subscriptions if each.topic_name.endswith(f"/{topic}"))
            for topic in ("payload", "external_wrench")
        )
        weight, wrench = weigh.msg_type(), push.msg_type()
        wrench.header.frame_id = weight.header.frame_id = "nobody"
        weight.inertia.m = 0.1
        weigh.callback(weight)
        push.callback(wrench)
        assert all("nobody" in node.refusals[f"{each}_refused"] for each in ("payload", "external_wrench"))
        wrench.header.frame_id = "strut"
        push.callback(wrench)
        assert list(node.refusals) == ["payload_refused"]
        weight.header.frame_id = "strut"
        weigh.callback(weight)
        assert not node.refusals


@pytest.mark.parametrize("event", ["start", "hold", "reset", "pause"])
def test_time_without_commands_counts_for_no_pace(event):
    from std_srvs.srv import SetBool, Trigger

    with node_of(SimulatorNode, "three_prism", {"paused": True}) as (node, _):
        if event != "start":
            node.judge_pace()
            node.judged_since = time.monotonic() - 3600.0, node.ticks
            {"hold": node.hold_actuators, "reset": lambda: node.reset(None, Trigger.Response()),
             "pause": lambda: node.set_paused(SetBool.Request(data=False), SetBool.Response())}[event]()  # fmt: skip
        node.ticks += 500
        node.judge_pace()
        assert "too slow" not in node.status_text and node.judged_since[1] == node.ticks


def test_a_flood_of_commands_never_keeps_the_simulation_from_its_next_step():
    """However fast they come: a step that is due waits for one or two of them and not for the end of the flood."""
    with node_of(SimulatorNode, "three_prism", {}) as (node, executor):
        sender = rclpy.create_node("sender")
        publisher = sender.create_publisher(ActuatorCommand, "actuator_command", COMMAND)
        names = [each.name for each in load_robot("three_prism").actuators]
        waiting, longest, handled, last = 0, 0, 0, -1
        command = node.take_command

        def count(message: ActuatorCommand) -> None:
            nonlocal waiting, longest, handled, last
            handled += 1
            is_due = node.timer.time_until_next_call() <= 0
            waiting, last = (waiting + 1 if is_due and node.ticks == last else int(is_due)), node.ticks
            longest = max(longest, waiting)
            command(message)

        node.take_command = count  # type: ignore[method-assign]
        for subscription in node.subscriptions:
            if subscription.topic_name == "/actuator_command":
                subscription.callback = count
        ended = threading.Event()

        def flood() -> None:
            for k in range(10_000):
                message = ActuatorCommand(source=f"s{k % 3}", name=names, value=[0.001 * (k % 7)] * len(names))
                message.header.stamp = time_message(node.ticks * node.period)
                publisher.publish(message)
            ended.set()

        begun = node.ticks
        sent = threading.Thread(target=flood, daemon=True)
        sent.start()
        all_passed = Until(lambda: ended.is_set() and node.ticks >= begun + 20)
        while not all_passed.asked:
            node.survive(lambda: executor.spin_once(timeout_sec=0.1))
        sent.join()
        assert handled > 0 and longest <= 3, (handled, longest)
        sender.destroy_node()


def test_pauses_resets_and_stops_in_any_order_leave_a_simulator_that_obeys():
    from std_srvs.srv import SetBool, Trigger

    with node_of(SimulatorNode, "three_prism", {}) as (node, _):
        random = HostileMessages(9, ()).random
        names = [each.name for each in load_robot("three_prism").actuators]
        start = dict(node.seen.positions)

        def send(change: float) -> None:
            values = [start[name] + change for name in names]
            message = ActuatorCommand(source="me", name=names, value=values)
            message.header.stamp = time_message(node.ticks * node.period)
            node.take_command(message)

        def call(name: str) -> Trigger.Response:
            return getattr(node, name)(Trigger.Request(), Trigger.Response())

        for _ in range(3000):
            what = random.integers(7)
            if what == 0:
                node.set_paused(SetBool.Request(data=bool(random.integers(2))), SetBool.Response())
            elif what < 4:
                call(("reset", "emergency_stop", "release")[what - 1])
            elif what == 4:
                send(float(random.normal(0.0, 1e-3)))
            else:
                node.tick()
        call("release")
        call("reset")
        node.set_paused(SetBool.Request(data=False), SetBool.Response())
        assert node.now == 0.0
        for _ in range(100):
            send(-1e-3)
            node.tick()
        for name in names:
            assert abs(node.seen.positions[name] - start[name] + 1e-3) < 1e-5
        published: list[str] = []
        node.stop_publisher.publish = lambda message: published.append(message.data)
        call("emergency_stop")
        assert "call simulator/release (`tensegrity release`), then ask again" in published[-1]
        held = dict(node.seen.positions)
        for _ in range(50):
            send(1e-3)
            node.tick()
        assert all(abs(node.seen.positions[name] - held[name]) < 1e-6 for name in names)
        call("release")
        assert published[-1] == ""


@pytest.mark.parametrize("moment", [1e30, 1e300])
@pytest.mark.parametrize("paused", [False, True])
def test_a_simulation_that_an_impossible_load_has_ended_goes_on_after_a_reset(moment, paused):
    with node_of(SimulatorNode, "single_strut", {}) as (node, _):
        push = WrenchStamped(header=Header(frame_id="strut"))
        push.wrench.torque.x = moment
        node._external_wrench(push)
        until(lambda: node.tick() or node.status_text.startswith("paused: "))
        assert "call simulator/reset" in node.status_text and node._said_level == ERROR
        stands = node.ticks
        node.set_paused(SetBool.Request(data=False), SetBool.Response())
        node.tick()
        assert node.status_text.startswith("paused: ") and node.ticks == stands  # it fails again, and says so
        assert node.reset(Trigger.Request(), Trigger.Response()).success
        node.set_paused(SetBool.Request(data=paused), SetBool.Response()) if paused else None
        for _ in range(20):
            node.tick()
        assert node.ticks == (0 if paused else 20)
        node.reset(Trigger.Request(), Trigger.Response())  # it does not end the pause of a person
        node.tick()
        assert node.ticks == (0 if paused else 1)


def test_a_clock_that_jumps_also_to_before_zero_surprises_no_node():
    """rclpy raises an error for negative times: they are not taken, and said."""
    with node_of(EstimatorNode, "three_prism", {"use_sim_time": True}) as (node, executor):
        sender = rclpy.create_node("sender")
        publisher = sender.create_publisher(ClockMessage, "/clock", 10)
        until(lambda: publisher.get_subscription_count() == 2)  # the sender's own is the other one
        for seconds in (5, -1000, 2**31 - 1, -(2**31), 3, -1):
            node.set_status(OK, "waiting")
            publisher.publish(ClockMessage(clock=Time(sec=seconds)))

            def heard(now: int = seconds) -> bool:
                node.survive(lambda: executor.spin_once(timeout_sec=0.1))
                return "negative" in node.status_text or node.get_clock().now().nanoseconds == now * 10**9

            until(heard)
            assert ("negative" in node.status_text) == (seconds < 0) and node.survived == 0
        sender.destroy_node()
