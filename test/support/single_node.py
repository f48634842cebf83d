"""One node in the process of a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import rclpy
from rclpy.executors import SingleThreadedExecutor

from tensegrity_dynamics.ros.robot_node import RobotNode


@contextmanager
def node_of(kind: Any, robot: str, parameters: dict[str, Any]) -> Iterator[tuple[RobotNode, SingleThreadedExecutor]]:
    words = ["--ros-args", "--log-level", "FATAL", "-p", f"robot:={robot}"]
    for name, value in parameters.items():
        words += ["-p", f"{name}:={str(value).lower() if isinstance(value, bool) else value}"]
    rclpy.init(args=words)
    node = executor = None
    try:
        node = kind()
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        yield node, executor
    finally:
        if node is not None:
            node.close()
            node.destroy_node()
        if executor is not None:
            executor.shutdown()
        rclpy.try_shutdown()
