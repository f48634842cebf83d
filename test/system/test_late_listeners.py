"""Who begins late hears what the robot carries: from the simulator, and from the estimator where servos move it."""

from __future__ import annotations

import pytest

rclpy = pytest.importorskip("rclpy")
pytest.importorskip("tensegrity.msg")

from geometry_msgs.msg import InertiaStamped  # noqa: E402
from patience import until  # noqa: E402
from single_node import node_of  # noqa: E402
from tensegrity.msg import CarriedPayloads  # noqa: E402

from tensegrity_control.ros.controller_node import ControllerNode  # noqa: E402
from tensegrity_dynamics.ros.estimator_node import EstimatorNode  # noqa: E402
from tensegrity_dynamics.ros.robot_node import CARRIED, LATCHED, WRENCHES  # noqa: E402


def carried_by(node):
    return (node._payloads if isinstance(node, EstimatorNode) else node._loads._payloads).carried


@pytest.mark.parametrize("kind", [ControllerNode, EstimatorNode])
def test_a_node_that_begins_late_takes_what_is_carried_and_tells_it_once(kind):
    with node_of(kind, "single_strut", {"method": "observer", "controller": "qp"}) as (node, executor):
        before = rclpy.create_node("before")
        executor.add_node(before)
        told = []
        echo = f"{node.get_name()}/payload"
        before.create_subscription(InertiaStamped, echo, told.append, WRENCHES)
        until(lambda: executor.spin_once(timeout_sec=0.1) or node.count_subscribers(echo))
        latched = before.create_publisher(CarriedPayloads, CARRIED, LATCHED)
        inertia = [0.02, 0.001, 0.0, 0.03, 0.0, 0.04]
        latched.publish(CarriedPayloads(name=["strut"], mass=[0.2], centre=[0.0, 0.0, 0.05], inertia=inertia))
        until(lambda: executor.spin_once(timeout_sec=0.1) or told)
        assert [(*each,) for each in carried_by(node).values()] == [("strut", 0.2, (0.0, 0.0, 0.05), tuple(inertia))]
        assert (told[0].inertia.ixy, told[0].inertia.izz) == (0.001, 0.04)
        assert (told[0].header.frame_id, told[0].inertia.m, told[0].inertia.com.z) == ("strut", 0.2, 0.05)
        # later ones are told by `payload`, in the order in which they come: this topic only says how it was
        node._begin_with(CarriedPayloads(name=["strut"], mass=[0.9], centre=[0.0, 0.0, 0.0]))
        assert carried_by(node)["strut"].mass == 0.2
        before.destroy_node()


def test_an_estimator_that_keeps_payloads_tells_them_to_those_who_come_after_it():
    with node_of(EstimatorNode, "single_strut", {"method": "observer", "keeps_payloads": True}) as (node, executor):
        weigh = next(each for each in node.subscriptions if each.topic_name.endswith("/payload"))
        message = InertiaStamped()
        message.header.frame_id, message.inertia.m = "strut", 0.3
        message.inertia.ixx = message.inertia.iyy = message.inertia.izz = 0.01
        weigh.callback(message)
        after, told = rclpy.create_node("after"), []
        executor.add_node(after)
        after.create_subscription(CarriedPayloads, CARRIED, told.append, LATCHED)
        until(lambda: executor.spin_once(timeout_sec=0.1) or told)
        assert (list(told[0].name), list(told[0].mass)) == (["strut"], [0.3])
        assert list(told[0].inertia) == [0.01, 0.0, 0.0, 0.01, 0.0, 0.01]
        after.destroy_node()
