"""One lock-step period of the real nodes beside a bare ping-pong of a message of the same size, in one run.

    python benchmarks/lockstep_round_trip.py [--json] [--seconds 8] [--robot manipulator]
        [--controller task] [--period 0.005]

The ping-pong bounces one StructureState of the robot between two processes; the period is simulator -> estimator ->
controller -> simulator, with all they compute and publish besides. The relay is three processes that send each other
JointState, StructureState and ActuatorCommand of the same sizes and do nothing else: what rclpy and its executor take.
All are wall time per round, from counts, and processor time of all three processes, which other work on the machine
touches less. What the nodes compute is that of one process for all, in processor time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time

import rclpy
from lockstep_period import processor_time, profile
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import JointState
from tensegrity.msg import ActuatorCommand, StructureState

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
QUIET = 10
"""Waits of 0.1 s without a message after which none is on its way."""


RELAY = (JointState, StructureState, ActuatorCommand)


def messages(robot):
    """One message of each kind, with as many numbers as those of the robot have."""
    record = type_of(robot).codec(robot).encode(make_estimator(robot).solve({}))
    names, joints = [each.name for each in robot.actuators], list(Simulation(robot).observe_sensors().positions)
    values, read = [0.0] * len(names), [0.0] * len(joints)
    return (
        JointState(name=joints, position=read, velocity=read, effort=read),
        state_message(record, time_message(0), "benchmark"),
        ActuatorCommand(source="benchmark", mode=ActuatorCommand.EFFORT, name=names, value=values),
    )


def answer_all(robot, taken, sent, own):
    """A process that answers every message of kind `taken` with one of kind `sent`."""
    rclpy.init()
    node = Node(f"relay_{own}")
    publisher, message = node.create_publisher(RELAY[sent], f"round_{own}", STATE), messages(load_robot(robot))[sent]
    node.create_subscription(RELAY[taken], f"round_{own - 1}", lambda _: publisher.publish(message), STATE)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    executor.spin()


def rounds_per_second(robot, kinds, seconds):
    """Rounds per second of messages that do nothing, by as many processes, and s of processor time of a round.

    Args:
        kinds: of the message that each sends, this one first.
    """
    hops = zip(kinds, kinds[1:], range(1, len(kinds)), strict=False)
    others = [
        subprocess.Popen([sys.executable, __file__, "--robot", robot, "--answer", *map(str, each)]) for each in hops
    ]
    node, rounds, going = Node("relay_0"), 0, True
    publisher, message = node.create_publisher(RELAY[kinds[0]], "round_0", STATE), messages(load_robot(robot))[kinds[0]]

    def answer(_):
        nonlocal rounds
        rounds += 1
        if going:
            publisher.publish(message)

    node.create_subscription(RELAY[kinds[-1]], f"round_{len(kinds) - 1}", answer, STATE)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    try:
        while rounds == 0:  # until all know each other
            publisher.publish(message)
            executor.spin_once(timeout_sec=0.2)
        going, quiet = False, 0  # several may be on their way: let them end, and send one
        while quiet < QUIET:
            before = rounds
            executor.spin_once(timeout_sec=0.1)
            quiet = quiet + 1 if before == rounds else 0
        going = True
        publisher.publish(message)
        running = dict(enumerate(others))
        begin, start, before = time.perf_counter(), rounds, sum(processor_time(running).values()) + time.process_time()
        while time.perf_counter() - begin < seconds:
            executor.spin_once(timeout_sec=0.5)
        spent = sum(processor_time(running).values()) + time.process_time() - before
        return (rounds - start) / (time.perf_counter() - begin), spent / (rounds - start)
    finally:
        for each in others:
            each.kill()
            each.wait()
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
    """Control periods per second of the real nodes, s of processor time of all of them in one, and its length [s]."""
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
        begin, start, before = time.perf_counter(), watcher.time, sum(processor_time(nodes.running).values())
        watcher.spin(seconds)
        periods = (watcher.time - start) / graph.choice.period
        spent = (sum(processor_time(nodes.running).values()) - before) / periods
        return periods / (time.perf_counter() - begin), spent, graph.choice.period
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
    parser.add_argument("--answer", nargs=3, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.answer:
        answer_all(options.robot, *options.answer)
        return
    os.environ.update(own_domain())
    periods, spent, period = lockstep(options)
    rclpy.init()
    (bare, _), (relay, relayed) = (
        rounds_per_second(options.robot, kinds, options.seconds) for kinds in ((1, 1), (0, 1, 2))
    )
    rclpy.try_shutdown()
    steps = physics(load_robot(options.robot), period, min(2.0, options.seconds))
    nodes = simulation_graph(
        options.robot, controller=options.controller, control_period=options.period, lockstep=True,
        watching=Watching(markers=False, view=False),
    )  # fmt: skip
    computed, _ = profile(nodes, 300)
    least = HOPS / 2.0 / bare + steps
    figures = {
        "robot": options.robot, "period_ms": 1e3 / periods, "ping_pong_ms": 1e3 / bare, "relay_ms": 1e3 / relay,
        "physics_ms": 1e3 * steps, "least_ms": 1e3 * least, "times_the_least": 1.0 / periods / least,
        "simulated_seconds_per_second": period * periods,
        "processor_ms": {"period": 1e3 * spent, "relay": 1e3 * relayed, "one process": computed},
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
    print(f"an empty relay of the {HOPS} messages: {figures['relay_ms']:.2f} ms")
    rest = 1e3 * (spent - relayed) - computed
    print(
        f"processor time of a period: {1e3 * spent:.2f} ms; of it an empty relay {1e3 * relayed:.2f}, what the nodes "
        f"compute and convert, in one process, {computed:.2f}, further messages and waits {rest:.2f}"
    )


if __name__ == "__main__":
    main()
