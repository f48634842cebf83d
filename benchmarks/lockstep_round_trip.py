"""One lock-step period of the real nodes beside a bare ping-pong of a message of the same size, in one run.

    python benchmarks/lockstep_round_trip.py [--json] [--seconds 8] [--robot tensebot]

The ping-pong bounces one StructureState of the robot between two processes; the period is simulator -> estimator ->
controller -> simulator, with all they compute and publish besides. Both are wall time per round, from counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from tensegrity.msg import StructureState

from tensegrity_dynamics import load_robot
from tensegrity_dynamics.estimation import make_estimator
from tensegrity_dynamics.robots.robot_types import type_of
from tensegrity_dynamics.ros.geometry_messages import time_message
from tensegrity_dynamics.ros.robot_node import STATE
from tensegrity_dynamics.ros.state_encoding import state_message
from tensegrity_tools.runtime.processes import NodeProcesses, own_domain
from tensegrity_tools.runtime.robot_client import Watcher


def echo():
    """The other process of the ping-pong."""
    rclpy.init()
    node = Node("echo")
    back = node.create_publisher(StructureState, "pong", STATE)
    node.create_subscription(StructureState, "ping", back.publish, STATE)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    executor.spin()


def ping_pong(robot, seconds):
    """Rounds per second of a bare ping-pong."""
    other = subprocess.Popen([sys.executable, __file__, "--echo"])
    node = Node("ping")
    record = type_of(robot).codec(robot).encode(make_estimator(robot).solve({}))
    message = state_message(record, time_message(0), "benchmark")
    rounds = 0
    publisher = node.create_publisher(StructureState, "ping", STATE)

    def answer(received):
        nonlocal rounds
        rounds += 1
        publisher.publish(received)

    node.create_subscription(StructureState, "pong", answer, STATE)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    try:
        while rounds == 0:  # until both know each other
            publisher.publish(message)
            executor.spin_once(timeout_sec=0.2)
        # several first messages may be on their way: let one survive
        flying = rounds
        begin, start = time.perf_counter(), rounds
        while time.perf_counter() - begin < seconds:
            executor.spin_once(timeout_sec=0.5)
        return (rounds - start) / (time.perf_counter() - begin) / max(1, flying)
    finally:
        other.kill()
        other.wait()
        executor.shutdown()
        node.destroy_node()


def lockstep(name, seconds):
    """Control periods per second of the real nodes."""
    nodes = NodeProcesses()
    for node in ("simulator", "estimator", "controller"):
        nodes.start(node, {"robot": name, "lockstep": True})
    watcher = Watcher("benchmark")
    try:
        ready = lambda: "controller" in watcher.diagnostics and watcher.time > 1.0  # noqa: E731
        if not watcher.wait_until(ready, 120.0):
            raise SystemExit("the nodes did not start")
        begin, start = time.perf_counter(), watcher.time
        watcher.spin(seconds)
        return (watcher.time - start) / 0.02 / (time.perf_counter() - begin)
    finally:
        watcher.close()
        nodes.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--robot", default="tensebot")
    parser.add_argument("--echo", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.echo:
        echo()
        return
    os.environ.update(own_domain())
    periods = lockstep(options.robot, options.seconds)
    rclpy.init()
    bare = ping_pong(load_robot(options.robot), options.seconds)
    rclpy.try_shutdown()
    figures = {
        "robot": options.robot, "period_ms": 1e3 / periods, "ping_pong_ms": 1e3 / bare, "ratio": bare / periods,
        "simulated_seconds_per_second": 0.02 * periods,
    }  # fmt: skip
    if options.json:
        print(json.dumps(figures, indent=2))
        return
    print(f"one lock-step period of 20 ms ({options.robot}): {figures['period_ms']:.2f} ms of wall time")
    print(f"a bare ping-pong of one message:         {figures['ping_pong_ms']:.2f} ms")
    print(f"ratio {figures['ratio']:.1f}; {figures['simulated_seconds_per_second']:.2f} simulated seconds per second")


if __name__ == "__main__":
    main()
