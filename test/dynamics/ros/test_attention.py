"""What nodes look at while messages flow, what they say while others still start, and how they leave."""

from __future__ import annotations

import time

import pytest
from patience import until

rclpy = pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from diagnostic_msgs.msg import DiagnosticStatus  # noqa: E402
from endings import Until  # noqa: E402
from node_messages import give  # noqa: E402
from rcl_interfaces.srv import GetParameters  # noqa: E402
from rclpy.action import ActionClient, ActionServer  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_msgs.msg import String  # noqa: E402
from std_srvs.srv import SetBool  # noqa: E402
from tensegrity.action import FollowTrajectory  # noqa: E402
from tensegrity.msg import ActuatorCommand, TendonState  # noqa: E402

from tensegrity_dynamics import TensegrityError, load_robot  # noqa: E402
from tensegrity_dynamics.ros import simulator_node  # noqa: E402
from tensegrity_dynamics.ros.attention import LONGEST_LOOK, LOOK, SHARE, pause  # noqa: E402
from tensegrity_dynamics.ros.estimator_node import EstimatorNode  # noqa: E402
from tensegrity_dynamics.ros.geometry_messages import time_message  # noqa: E402
from tensegrity_dynamics.ros.robot_node import STATE, RobotNode  # noqa: E402
from tensegrity_dynamics.ros.simulator_node import SimulatorNode  # noqa: E402


class Flooded(RobotNode):
    """Sends itself a message as soon as it has one."""

    def __init__(self) -> None:
        super().__init__("flooded")
        self.count, self.hidden = 0, 0
        self._again = self.create_publisher(String, "again", STATE)
        self.create_subscription(String, "again", self.take, STATE)

    def take(self, message: String) -> None:
        self.count += 1
        self.hidden += not self.attention.everything
        self._again.publish(message)


@pytest.fixture
def ros():
    def begin(*words: str) -> None:
        rclpy.init(args=["test", "--ros-args", *words])

    yield begin
    rclpy.try_shutdown()


def test_services_are_answered_while_messages_flow_without_a_pause(ros) -> None:
    ros()
    node, executor = Flooded(), SingleThreadedExecutor()
    executor.add_node(node)
    client = node.create_client(GetParameters, "flooded/get_parameters")
    asked = []

    def answered() -> bool:
        if not node.count:
            node.take(String())
            node.count = 0
        if not asked and node.hidden > 10 and client.service_is_ready():
            asked.append(client.call_async(GetParameters.Request(names=["use_sim_time"])))
        return bool(asked) and asked[0].done()

    node.spin(executor, Until(answered))
    assert len(asked[0].result().values) == 1
    assert node.hidden > node.count // 2  # most were taken while nothing else was looked at
    executor.shutdown()
    node.destroy_node()


def test_looking_takes_a_share_of_the_time_within_bounds() -> None:
    assert pause(0.0) == LOOK
    assert pause(2.0 * LOOK / SHARE) == pytest.approx(2.0 * LOOK)
    assert pause(1.0) == LONGEST_LOOK


def test_nobody_has_commanded_yet_is_no_warning_at_the_start_but_a_controller_that_falls_silent_is(ros) -> None:
    ros("-p", "robot:=single_strut", "-p", "lockstep:=true", "-p", "patience:=0.01", "-p", "silence:=0.1")
    node, said = SimulatorNode(), []
    node.set_status = lambda level, text, **_: said.append((level, text))

    def after(silence: float) -> tuple[bytes, str]:
        node.answered = node.published = time.monotonic() - silence
        node.tick_lockstep()
        return said[-1]

    level, text = after(5.0)
    assert level == DiagnosticStatus.OK and "waiting for the first command" in text
    assert after(100.0)[0] == DiagnosticStatus.WARN
    held = node.seen.positions
    give(
        node,
        "actuator_command",
        ActuatorCommand(source="controller", session=1, name=list(held), value=list(held.values())),
    )
    assert node.ticks == 1
    level, text = after(5.0)
    assert level == DiagnosticStatus.ERROR and "does not answer" in text
    node.destroy_node()


def test_commands_that_come_once_in_a_long_control_period_do_not_break_off(ros) -> None:
    ros("-p", "robot:=single_strut", "-p", "lockstep:=true", "-p", "control_period:=0.5")
    node, said = SimulatorNode(), []
    node.set_status = lambda level, text, **_: said.append(text)
    targets = {name: value + 0.01 for name, value in node.seen.positions.items()}
    for _ in range(4):
        command = ActuatorCommand(source="controller", session=1, name=list(targets), value=list(targets.values()))
        command.header.stamp = time_message(
            node.ticks * node.period if node.last_reading is None else node.last_reading.stamp
        )
        give(node, "actuator_command", command)
    assert node.ticks == 4 and node.seen.positions == pytest.approx(targets, abs=1e-4)
    assert not [text for text in said if "hold" in text]
    node.destroy_node()


@pytest.mark.parametrize("lockstep", [True, False], ids=["in lock-step", "by the clock"])
def test_a_simulator_that_paused_because_the_simulation_failed_keeps_saying_why(
    ros, monkeypatch: pytest.MonkeyPatch, lockstep: bool
) -> None:
    monkeypatch.setattr(simulator_node, "PACE_PERIODS", 0)  # the pace is judged, and said, in every period
    ros("-p", "robot:=single_strut", "-p", f"lockstep:={str(lockstep).lower()}", "-p", "patience:=0.01")
    node, said = SimulatorNode(), []
    node.set_status = lambda level, text, **_: said.append((level, text))

    def fail(*_: object) -> None:
        raise TensegrityError("it diverged")

    node.simulation.advance = fail
    held = node.seen.positions
    give(
        node,
        "actuator_command",
        ActuatorCommand(source="controller", session=1, name=list(held), value=list(held.values())),
    )
    for _ in range(3):
        node.published = time.monotonic() - 1.0
        node.tick_lockstep() if lockstep else node.tick()
    assert said[-1] == (DiagnosticStatus.ERROR, "paused: it diverged; call simulator/reset to start again")
    node.set_paused(SetBool.Request(data=True), SetBool.Response())
    node.published = time.monotonic() - 1.0
    node.tick_lockstep() if lockstep else node.tick()
    assert said[-1] == (DiagnosticStatus.ERROR, "paused: it diverged; call simulator/reset to start again")
    node.destroy_node()


def test_in_lockstep_the_observer_waits_for_the_tensions_of_the_same_time(ros) -> None:
    ros(*(word for each in ("robot:=single_strut", "lockstep:=true", "method:=observer", "measured_tensions:=true")
          for word in ("-p", each)))  # fmt: skip
    node, times = EstimatorNode(), []
    update = node.estimator.update

    def note(now, read, *forces):
        times.append((now, len(forces)))
        return update(now, read, *forces)

    node.estimator.update = note
    node.count_publishers = lambda topic: int(topic == "tendon_states")
    for k in (1, 2):  # the first ones, too
        joints, tendons = JointState(), TendonState(estimated=False)
        joints.header.stamp = tendons.header.stamp = time_message(k * 10**7)
        give(node, "joint_states", joints)
        assert len(times) == k - 1
        give(node, "tendon_states", tendons)
        assert times[-1] == (0.01 * k, 2)
    node.destroy_node()


def test_the_load_that_counts_from_the_next_state_on_is_published_before_its_own(ros) -> None:
    ros("-p", "robot:=single_strut", "-p", "method:=observer")
    node, order = EstimatorNode(), []
    robot, publish_load = load_robot("single_strut"), node.publish_load
    node.publish_load = lambda *words: order.append("load") or publish_load(*words)
    node.publisher.publish = lambda _: order.append("state")
    joints = JointState(name=[each.name for each in robot.actuators])
    joints.position = joints.effort = [0.0] * len(joints.name)
    joints.header.stamp = time_message(10**7)
    give(node, "joint_states", joints)
    assert order == ["load", "state"]
    node.destroy_node()


def test_a_node_that_ends_leaves_the_graph_with_its_actions_before_its_process_does(ros) -> None:
    ros()
    elsewhere = rclpy.Context()
    elsewhere.init(args=[])
    observer = rclpy.create_node("observer", context=elsewhere)
    node = RobotNode("acting")
    _actions = ActionServer(node, FollowTrajectory, "act", lambda _: None), ActionClient(node, FollowTrajectory, "act")
    until(lambda: "acting" in observer.get_node_names())
    node.destroy_node()
    until(lambda: "acting" not in observer.get_node_names())
    observer.destroy_node()
    elsewhere.shutdown()


def test_what_waits_of_a_subscription_is_taken_in_order_without_a_turn_of_the_executor(ros) -> None:
    ros()
    node, received = RobotNode("told"), []
    said = node.create_publisher(String, "said", STATE)
    news = node.create_subscription(String, "said", lambda message: received.append(message.data), STATE)
    until(said.get_subscription_count)
    for text in ("a", "b", "c"):
        said.publish(String(data=text))
    until(lambda: node.take_waiting(news) or len(received) == 3)
    assert received == ["a", "b", "c"]
    node.take_waiting(news)  # nothing waits: nothing happens
    assert len(received) == 3
    node.destroy_node()
