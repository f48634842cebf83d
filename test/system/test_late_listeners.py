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

INERTIA = (0.003, 0.0003, 0.0, 0.004, -0.0002, 0.0025)
"""kg m^2, xx, xy, xz, yy, yz, zz."""


def carried_by(node):
    return (node.payloads if isinstance(node, EstimatorNode) else node.loads.payloads).carried


@pytest.mark.parametrize("kind", [ControllerNode, EstimatorNode])
def test_a_node_that_begins_late_takes_what_is_carried_and_tells_it_once(kind):
    with node_of(kind, "single_strut", {"method": "observer", "controller": "qp"}) as (node, executor):
        before = rclpy.create_node("before")
        executor.add_node(before)
        received = []
        echo = f"{node.get_name()}/payload"
        before.create_subscription(InertiaStamped, echo, received.append, WRENCHES)
        until(lambda: executor.spin_once(timeout_sec=0.1) or node.count_subscribers(echo))
        latched = before.create_publisher(CarriedPayloads, CARRIED, LATCHED)
        latched.publish(CarriedPayloads(name=["strut"], mass=[0.2], centre=[0.0, 0.0, 0.05], inertia=INERTIA))
        until(lambda: executor.spin_once(timeout_sec=0.1) or received)
        assert [(*each,) for each in carried_by(node).values()] == [("strut", 0.2, (0.0, 0.0, 0.05), INERTIA)]
        inertia = received[0].inertia
        assert (inertia.ixx, inertia.ixy, inertia.ixz, inertia.iyy, inertia.iyz, inertia.izz) == INERTIA
        assert (received[0].header.frame_id, received[0].inertia.m, received[0].inertia.com.z) == ("strut", 0.2, 0.05)
        # later ones are told by `payload`, in the order in which they come: this topic only says how it was
        node.begin_with(CarriedPayloads(name=["strut"], mass=[0.9], centre=[0.0, 0.0, 0.0]))
        assert carried_by(node)["strut"].mass == 0.2
        before.destroy_node()


def test_an_estimator_that_keeps_payloads_tells_them_to_those_who_come_after_it():
    with node_of(EstimatorNode, "single_strut", {"method": "observer", "keeps_payloads": True}) as (node, executor):
        weigh = next(each for each in node.subscriptions if each.topic_name.endswith("/payload"))
        message = InertiaStamped()
        message.header.frame_id, message.inertia.m = "strut", 0.3
        message.inertia.ixx = message.inertia.iyy = message.inertia.izz = 0.002
        weigh.callback(message)
        after, received = rclpy.create_node("after"), []
        executor.add_node(after)
        after.create_subscription(CarriedPayloads, CARRIED, received.append, LATCHED)
        until(lambda: executor.spin_once(timeout_sec=0.1) or received)
        assert (list(received[0].name), list(received[0].mass)) == (["strut"], [0.3])
        assert list(received[0].inertia) == [0.002, 0.0, 0.0, 0.002, 0.0, 0.002]
        after.destroy_node()
