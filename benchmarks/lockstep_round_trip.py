"""One lock-step period of the real nodes beside a bare ping-pong of a message of the same size, in one run.

    python benchmarks/lockstep_round_trip.py [--json] [--seconds 8] [--robot manipulator]
        [--controller task] [--period 0.005]

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

from tensegrity_dynamics import Simulation, load_robot
from tensegrity_dynamics.estimation import make_estimator
from tensegrity_dynamics.robots.robot_types import type_of
from tensegrity_dynamics.ros.geometry_messages import time_message
from tensegrity_dynamics.ros.robot_node import STATE
from tensegrity_dynamics.ros.state_encoding import state_message
from tensegrity_tools.runtime.node_graph import Watching, simulation_graph
from tensegrity_tools.runtime.processes import NodeProcesses, own_domain
from tensegrity_tools.runtime.robot_client import Watcher

HOPS = 3
"""Messages of a period: simulator to estimator to controller to simulator, one and a half round trips."""


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


def physics(robot, period, seconds):
    """s that the steps of one period take, in this process."""
    simulation = Simulation(robot)
    steps = max(1, round(period / simulation.time_step))
    simulation.advance(steps)
    count, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        simulation.advance(steps)
        count += 1
    return (time.perf_counter() - begin) / count


def lockstep(options):
    """Control periods per second of the real nodes, and the period [s]."""
    seconds = options.seconds
    graph = simulation_graph(
        options.robot, controller=options.controller, control_period=options.period, lockstep=True,
        watching=Watching(markers=False, view=False),
    )  # fmt: skip
    nodes = NodeProcesses()
    nodes.start_all(graph)
    watcher = Watcher("benchmark")
    try:
        ready = lambda: "controller" in watcher.diagnostics and watcher.time > 1.0  # noqa: E731
        if not watcher.wait_until(ready, 120.0):
            raise SystemExit("the nodes did not start")
        begin, start = time.perf_counter(), watcher.time
        watcher.spin(seconds)
        return (watcher.time - start) / graph.choice.period / (time.perf_counter() - begin), graph.choice.period
    finally:
        watcher.close()
        nodes.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--robot", default="tensebot")
    parser.add_argument("--controller", default="")
    parser.add_argument("--period", type=float, default=0.02)
    parser.add_argument("--echo", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.echo:
        echo()
        return
    os.environ.update(own_domain())
    periods, period = lockstep(options)
    rclpy.init()
    robot = load_robot(options.robot)
    bare = ping_pong(robot, options.seconds)
    rclpy.try_shutdown()
    steps = physics(robot, period, min(2.0, options.seconds))
    least = HOPS / 2.0 / bare + steps
    figures = {
        "robot": options.robot, "period_ms": 1e3 / periods, "ping_pong_ms": 1e3 / bare, "physics_ms": 1e3 * steps,
        "least_ms": 1e3 * least, "times_the_least": 1.0 / periods / least,
        "simulated_seconds_per_second": period * periods,
    }  # fmt: skip
    if options.json:
        print(json.dumps(figures, indent=2))
        return
    print(f"one lock-step period of {1e3 * period:g} ms ({options.robot}): {figures['period_ms']:.2f} ms of wall time")
    print(f"a bare ping-pong: {figures['ping_pong_ms']:.2f} ms; physics of a period: {1e3 * steps:.2f} ms")
    print(
        f"{figures['times_the_least']:.2f} times {HOPS} bare messages and the physics; "
        f"{figures['simulated_seconds_per_second']:.2f} simulated seconds per second"
    )


if __name__ == "__main__":
    main()
