"""Simulator, estimator and markers node of a hoist in one process; prints what they published as JSON.

python hoist_nodes.py FILE
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import rclpy
from hoist import HOIST
from patience import PATIENCE_S
from rclpy.executors import SingleThreadedExecutor
from std_msgs.msg import String
from tensegrity.msg import ActuatorCommand, StructureState, TendonState
from tensegrity.srv import SolveForwardKinematics
from visualization_msgs.msg import MarkerArray

from tensegrity_dynamics import register_robot_type
from tensegrity_dynamics.ros.estimator_node import EstimatorNode
from tensegrity_dynamics.ros.markers_node import MarkersNode
from tensegrity_dynamics.ros.robot_node import LATCHED, STATE
from tensegrity_dynamics.ros.simulator_node import SimulatorNode


def main(path: str) -> int:
    register_robot_type(HOIST)
    rclpy.init(args=["--ros-args", "-p", f"robot:={path}"])
    markers = MarkersNode()
    nodes = (SimulatorNode(), EstimatorNode(), markers)
    watcher = rclpy.create_node("watcher")
    heard: dict[str, Any] = {}
    for kind, topic, quality in (
        (StructureState, "simulator/truth", STATE), (StructureState, "structure_state", STATE),
        (TendonState, "tendon_states", STATE), (MarkerArray, "markers", 1), (String, "robot_description", LATCHED),
    ):  # fmt: skip
        watcher.create_subscription(kind, topic, lambda message, topic=topic: heard.update({topic: message}), quality)
    commands = watcher.create_publisher(ActuatorCommand, "actuator_command", 1)
    kinematics = watcher.create_client(SolveForwardKinematics, "solve_forward_kinematics")
    executor = SingleThreadedExecutor()
    for node in (*nodes, watcher):
        executor.add_node(node)

    def settled() -> bool:
        state, tendons = heard.get("structure_state"), heard.get("tendon_states")
        return (
            state is not None
            and abs(tendons.rest_length[0] - 0.5) < 1e-6
            and {"markers", "robot_description"} <= set(heard)
        )

    end = time.monotonic() + PATIENCE_S
    while not settled() and time.monotonic() < end:
        command = ActuatorCommand(source="test", mode=ActuatorCommand.POSITION, name=["winch"], value=[0.5])
        if "simulator/truth" in heard:
            command.header.stamp = heard["simulator/truth"].header.stamp
        commands.publish(command)
        executor.spin_once(timeout_sec=0.02)
        markers.work()
    future = kinematics.call_async(SolveForwardKinematics.Request(name=["winch"], rest_length=[0.7]))
    while not future.done() and time.monotonic() < end:
        executor.spin_once(timeout_sec=0.02)
    state, tendons = heard["structure_state"], heard["tendon_states"]
    print(json.dumps({
        "settled": settled(), "coordinates": list(state.coordinate_name), "height": state.q[0],
        "true_height": heard["simulator/truth"].q[0], "tendons": list(tendons.name), "tension": tendons.tension[0],
        "solved_height": future.result().state.q[0], "stable": future.result().stable,
        "markers": sorted({each.ns for each in heard["markers"].markers}),
        "description": heard["robot_description"].data,
    }))  # fmt: skip
    executor.shutdown()
    for node in (*nodes, watcher):
        node.destroy_node()
    rclpy.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
