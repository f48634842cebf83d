"""What a page of the view sets in motion, through the real nodes: an actuator, a push, and a stream of goals."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from patience import PATIENCE_S, until
from view_visitor import Visitor, free_port, knock

pytest.importorskip("rclpy")
pytest.importorskip("tensegrity.msg")

from geometry_msgs.msg import PoseStamped, WrenchStamped
from patient_watcher import PatientWatcher
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from single_node import node_of
from std_srvs.srv import Trigger
from tensegrity.srv import SetGoalPose

from tensegrity_tools.ros import view_node
from tensegrity_tools.ros.view_node import ViewNode
from tensegrity_tools.runtime.node_graph import Watching, simulation_graph
from tensegrity_tools.runtime.processes import NodeProcesses
from tensegrity_tools.view import Answer

pytestmark = pytest.mark.system


def address(watcher: PatientWatcher) -> tuple[int, str]:
    """Port and token of the view."""
    url = next(each.value for each in watcher.diagnostics["view"].values if each.key == "url")
    port, token = url.removeprefix("http://localhost:").split("/?token=")
    return int(port), token


def test_a_page_moves_an_actuator_pushes_the_robot_and_lets_it_follow_the_handle() -> None:
    watching = Watching(markers=False, view=True, view_port=free_port())
    nodes = NodeProcesses()
    nodes.start_all(simulation_graph("three_prism", lockstep=True, watching=watching))
    watcher = PatientWatcher("view_test")
    wrenches: list[Any] = []
    goals: list[Any] = []
    watcher.node.create_subscription(WrenchStamped, "external_wrench", wrenches.append, QoSProfile(depth=50))
    watcher.node.create_subscription(PoseStamped, "goal_pose", goals.append, QoSProfile(depth=50))
    try:
        shows = lambda: "view" in watcher.diagnostics and watcher.diagnostics["view"].message == "showing the robot"  # noqa: E731
        assert watcher.wait_until(shows, PATIENCE_S), watcher.diagnostics
        port, token = address(watcher)
        view = SimpleNamespace(port=port, guard=SimpleNamespace(token=token))
        with knock(view) as connection:
            visitor = Visitor(connection)
            until(lambda: visitor.has_all and watcher.spin(0.01) is None and visitor.part("To [mm]")["value"] > 0.0)

            desired = visitor.part("To [mm]")["value"] - 1.0
            visitor.type("To [mm]", desired)

            def moved() -> bool:
                """Pressed again while the view has not found the controller's action yet."""
                if "Moved side" not in visitor.text() and "Moving" not in visitor.text():
                    visitor.press("Move actuator")
                watcher.spin(0.1)
                return "Moved side" in visitor.text()

            until(moved)
            assert f"to {desired:.1f} mm" in visitor.text()

            visitor.type("Push handle", True)
            part = visitor.part("Part")["value"]
            until(lambda: watcher.spin(0.01) is None and "position" in visitor.scene["/push/handle"])
            place = np.array(visitor.scene["/push/handle"]["position"]) + (0.05, 0.0, 0.0)

            def pull() -> bool:
                visitor.send(
                    "TransformControlsUpdateMessage", name="/push/handle", owner="", wxyz=[1.0, 0.0, 0.0, 0.0],
                    position=place.tolist(),
                )  # fmt: skip
                watcher.spin(0.02)
                return any(each.header.frame_id == part and each.wrench.force.x > 0.1 for each in wrenches)

            until(pull)
            visitor.send("TransformControlsDragEndMessage", name="/push/handle", owner="")
            until(lambda: watcher.spin(0.01) is None and wrenches[-1].wrench.force.x == 0.0)
            visitor.type("Push handle", False)

            visitor.type("Follow handle", True)
            goal = np.round(watcher.pose[0] + (0.001, 0.0, 0.0), 4)  # as the fields show it
            visitor.drag_goal(goal.tolist(), watcher.pose[1].tolist())
            visitor.let_go()
            until(lambda: watcher.spin(0.01) is None and bool(goals))
            assert abs(goals[-1].pose.position.x - goal[0]) < 1e-6
    finally:
        watcher.close()
        nodes.stop()


@pytest.mark.parametrize("accepted", [True, False])
def test_a_goal_that_begins_after_its_page_was_told_of_no_answer_is_held(monkeypatch, accepted: bool) -> None:
    monkeypatch.setattr(view_node, "ANSWER_TIME", 0.05)
    begun, held = threading.Event(), []

    def answer_late(_: SetGoalPose.Request, response: SetGoalPose.Response) -> SetGoalPose.Response:
        begun.wait(PATIENCE_S)
        response.accepted = accepted
        return response

    with node_of(ViewNode, "three_prism", {"port": free_port()}) as (node, executor):
        controller = Node("late_controller")
        controller.create_service(SetGoalPose, "set_goal_pose", answer_late)
        controller.create_service(Trigger, "call_off", lambda _, response: held.append(1) or response)
        spinning = SingleThreadedExecutor()
        spinning.add_node(controller)
        answers: list[Answer] = []

        def spin() -> None:
            executor.spin_once(timeout_sec=0.01)

        threads = [
            threading.Thread(target=spinning.spin, daemon=True),
            threading.Thread(target=lambda: answers.append(node.view.goal.send()), daemon=True),
        ]
        try:
            threads[0].start()
            until(lambda: spin() or (node._goal_service.service_is_ready() and node._late_service.service_is_ready()))
            threads[1].start()
            until(lambda: spin() or bool(answers))
            assert not answers[0].accepted and "should it begin later, it is held" in answers[0].text
            assert not held
            begun.set()
            until(lambda: spin() or not node._goal_service._pending_requests)
            if accepted:
                until(lambda: spin() or bool(held))
            for _ in range(20):
                spin()
            assert len(held) == int(accepted)
        finally:
            begun.set()
            spinning.shutdown()
            controller.destroy_node()
