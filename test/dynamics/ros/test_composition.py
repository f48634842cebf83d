"""Nodes in one process: what they tell each other stays inside, what others want is on the bus, as ever."""

from __future__ import annotations

import pytest

rclpy = pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from endings import Until  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from std_msgs.msg import String  # noqa: E402

from tensegrity_dynamics import TensegrityError  # noqa: E402
from tensegrity_dynamics.ros.composition import Composition, NodeFailure  # noqa: E402
from tensegrity_dynamics.ros.hand_over import InsideSubscription  # noqa: E402
from tensegrity_dynamics.ros.robot_node import LATCHED, STATE, RobotNode, heard  # noqa: E402


class Speaker(RobotNode):
    def __init__(self) -> None:
        super().__init__("speaker")
        self.said = self.create_publisher(String, "said", STATE)
        self.notice = self.create_publisher(String, "notice", LATCHED)
        self.fails = False
        self.create_timer(0.01, self.work)

    def work(self) -> None:
        if self.fails:
            raise ZeroDivisionError("no more words")


class Hearer(RobotNode):
    def __init__(self) -> None:
        super().__init__("hearer")
        self.heard: list[String] = []
        self.notices: list[str] = []
        self.create_subscription(String, "said", self.heard.append, STATE)
        self.create_subscription(String, "notice", lambda message: self.notices.append(message.data), LATCHED)


class Shy(RobotNode):
    def __init__(self) -> None:
        raise TensegrityError("it does not want to")


@pytest.fixture
def ros():
    rclpy.init()
    made = []
    executor = SingleThreadedExecutor()

    def compose(may_end=(), arguments=None, **makes):
        made.append(Composition(makes, may_end, arguments))
        return made[-1]

    compose.spin_until = lambda condition: made[-1].spin(executor, Until(condition))
    yield compose
    for each in made:
        each.close()
    executor.shutdown()
    rclpy.try_shutdown()


def test_a_message_inside_is_handed_over_as_it_is_and_in_order(ros) -> None:
    nodes = ros(speaker=Speaker, hearer=Hearer).nodes
    sent = [String(data=str(k)) for k in range(3)]
    for each in sent:
        nodes["speaker"].said.publish(each)
    ros.spin_until(lambda: len(nodes["hearer"].heard) == 3)
    assert all(got is given for got, given in zip(nodes["hearer"].heard, sent, strict=True))
    assert nodes["hearer"].count_subscribers("said") == 0  # nothing of it is on the bus


def test_of_more_messages_than_the_depth_the_newest_stay(ros) -> None:
    nodes = ros(speaker=Speaker, hearer=Hearer).nodes
    for k in range(STATE.depth + 3):
        nodes["speaker"].said.publish(String(data=str(k)))
    ros.spin_until(lambda: nodes["hearer"].heard)
    assert [each.data for each in nodes["hearer"].heard] == ["3", "4", "5", "6", "7"]


def test_what_is_latched_reaches_who_comes_later(ros) -> None:
    class Early(Speaker):
        def __init__(self) -> None:
            super().__init__()
            self.notice.publish(String(data="read this"))
            self.said.publish(String(data="too early"))

    nodes = ros(speaker=Early, hearer=Hearer).nodes
    ros.spin_until(lambda: nodes["hearer"].notices)
    assert nodes["hearer"].notices == ["read this"]
    assert nodes["hearer"].heard == []


def test_who_listens_from_elsewhere_hears_it_on_the_bus_and_nobody_else_costs_a_message(ros) -> None:
    nodes = ros(speaker=Speaker).nodes
    speaker = nodes["speaker"]
    assert not heard(speaker.said)
    listener = rclpy.create_node("listener")
    got = []
    subscription = listener.create_subscription(String, "said", got.append, STATE)

    def arrived() -> bool:
        if heard(speaker.said):
            speaker.said.publish(String(data="hello"))
        rclpy.spin_once(listener, timeout_sec=0.01)
        return bool(got)

    ros.spin_until(arrived)
    assert got[0].data == "hello"
    listener.destroy_subscription(subscription)
    ros.spin_until(lambda: not heard(speaker.said))
    listener.destroy_node()


def test_a_publisher_from_elsewhere_is_heard_and_when_it_is_gone_the_topic_is_inside_again(ros) -> None:
    nodes = ros(speaker=Speaker, hearer=Hearer).nodes
    hearer = nodes["hearer"]
    stranger = rclpy.create_node("stranger")
    publisher = stranger.create_publisher(String, "said", STATE)

    def both() -> bool:
        publisher.publish(String(data="stranger"))
        nodes["speaker"].said.publish(String(data="own"))
        return {"stranger", "own"} <= {each.data for each in hearer.heard}

    ros.spin_until(lambda: hearer.count_subscribers("said") == 1)
    ros.spin_until(both)
    stranger.destroy_node()
    ros.spin_until(lambda: hearer.count_subscribers("said") == 0)
    hearer.heard.clear()
    last = String(data="again")
    nodes["speaker"].said.publish(last)
    ros.spin_until(lambda: hearer.heard)
    assert hearer.heard == [last] and hearer.heard[0] is last


def test_a_node_that_fails_is_named_and_the_others_end_only_if_they_need_it(ros, capsys) -> None:
    nodes = ros(speaker=Speaker, hearer=Hearer).nodes
    nodes["speaker"].fails = True
    with pytest.raises(NodeFailure) as failure:
        ros.spin_until(lambda: False)
    assert failure.value.node.get_name() == "speaker"
    assert "no more words" in str(failure.value)
    unneeded = ros(may_end=("speaker",), speaker=Speaker, hearer=Hearer).nodes
    unneeded["speaker"].fails = True
    ros.spin_until(lambda: "speaker" not in unneeded)
    assert "hearer" in unneeded
    assert "speaker failed: no more words; the others continue without it" in capsys.readouterr().err


def test_a_node_that_cannot_start_is_named(ros, capsys) -> None:
    with pytest.raises(TensegrityError, match="shy: it does not want to"):
        ros(hearer=Hearer, shy=Shy)
    assert list(ros(may_end=("shy",), hearer=Hearer, shy=Shy).nodes) == ["hearer"]
    assert "shy: it does not want to; the others continue" in capsys.readouterr().err


def test_a_callback_that_wants_to_know_where_a_message_came_from_gets_it_from_the_bus(ros) -> None:
    class Curious(RobotNode):
        def __init__(self) -> None:
            super().__init__("curious")
            self.came: list[dict] = []
            self.made = self.create_subscription(String, "said", lambda _, info: self.came.append(info), STATE)

    nodes = ros(speaker=Speaker, curious=Curious).nodes
    assert not isinstance(nodes["curious"].made, InsideSubscription)

    def is_discovered() -> bool:
        nodes["speaker"].said.publish(String(data="who?"))
        return bool(nodes["curious"].came)

    ros.spin_until(is_discovered)
    assert "source_timestamp" in nodes["curious"].came[0]


def test_arguments_of_one_node_are_its_own(ros) -> None:
    class Named(Speaker):
        def __init__(self) -> None:
            super().__init__()
            self.words = self.parameter("words", "none", "what it says")

    own = {"speaker": ["--ros-args", "-p", "words:=many", "-r", "said:=elsewhere"]}
    nodes = ros(arguments=own, speaker=Named, hearer=Hearer).nodes
    assert nodes["speaker"].words == "many"
    assert nodes["speaker"].said.topic_name == "/elsewhere"
    assert nodes["hearer"].resolve_topic_name("said") == "/said"
