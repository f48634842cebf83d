"""What a lock-step period costs, with a process for every node and with one for all, and where the time goes.

    python benchmarks/lockstep_period.py [--json] [--seconds 8] [--robot manipulator] [--controller task]
    python benchmarks/lockstep_period.py --robot examples/tendon_hand.yaml --controller "" --period 0 --shown --clock
    python benchmarks/lockstep_period.py --controller task --beside qp

Nobody but one watcher listens; with --shown markers and the browser view run, too, as `tensegrity up sim` has them, and
with --clock all run at real time. Processor time counts what the nodes do, whatever else the machine does; the table is
that of the composed nodes that nobody watches, by looking every millisecond of processor time where they are, which
makes nothing dearer. With --beside all of this runs with one controller and with the other in turn, `ROUNDS` times. A
busy machine makes periods dearer: the cheapest round counts, and without a watcher the cheapest 100 periods in a row.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter

import rclpy
from rclpy.executors import SingleThreadedExecutor

from tensegrity_dynamics.ros.composition import Composition
from tensegrity_tools.ros.composed_node import maker
from tensegrity_tools.runtime.node_graph import Watching, simulation_graph
from tensegrity_tools.runtime.processes import NodeProcesses, own_domain
from tensegrity_tools.runtime.robot_client import Watcher

PARTS = {
    "physics (Simulation.advance)": ("simulation.py", "advance"),
    "what sensors see (observe_sensors)": ("simulation.py", "observe_sensors"),
    "estimator (update)": ("kalman_observer.py", "update"),
    "compiled steps, of physics and of the estimator's copy": ("mechanism_simulator.py", "_advance_steps"),
    "simulator node": ("simulator_node.py", "_command"),
    "estimator node": ("estimator_node.py", "_estimate"),
    "controller node": ("controller_node.py", "_control"),
    "commands from messages": ("command_decoding.py", "mode_and_values"),
    "commands to messages": ("state_conversion.py", "command_message"),
    "set points to the simulation": ("simulator_node.py", "_apply"),
    "handing over, and looking who listens": ("hand_over.py", "publish"),
    "the clock of the nodes": ("time_source.py", "clock_callback"),
    "estimator (update), shapes at rest": ("quasi_static_estimator.py", "update"),
    "controller (command)": ("controller_node.py", "_command"),
    "command gate": ("command_gate.py", "check"),
    "states to messages": ("state_encoding.py", "state_message"),
    "bodies of states (encode)": ("state_codec.py", "encode"),
    "messages to states": ("state_conversion.py", "observe"),
    "reference": ("controller_node.py", "_publish_reference"),
    "looking for what comes from elsewhere": ("robot_node.py", "handle_waiting"),
    "all": ("composition.py", "spin"),
}
"""Rows of the table: file and function; those within others count in both."""


ROUNDS = 5


def processor_time(processes):
    """s of processor time by process."""
    ticks = os.sysconf("SC_CLK_TCK")
    found = {}
    for name, process in processes.items():
        with open(f"/proc/{process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        found[name] = (int(fields[11]) + int(fields[12])) / ticks
    return found


def run(graph, seconds):
    """Simulated seconds per second of wall time, and ms of processor time a period by process."""
    nodes = NodeProcesses()
    nodes.start_all(graph)
    watcher = Watcher("benchmark")
    try:
        if not watcher.wait_until(lambda: "controller" in watcher.diagnostics and watcher.time > 0.5, 300.0):
            raise SystemExit("the nodes did not start")
        before, began, start = processor_time(nodes.running), time.perf_counter(), watcher.time
        watcher.spin(seconds)
        moved = watcher.time - start
        periods, after = moved / graph.choice.period, processor_time(nodes.running)
        each = {name: 1e3 * (after[name] - before[name]) / periods for name in after}
        return {
            "simulated_seconds_per_second": moved / (time.perf_counter() - began),
            "processor_ms": each,
            "processor_s_per_simulated_s": sum(each.values()) / (1e3 * graph.choice.period),
        }
    finally:
        watcher.close()
        nodes.stop()


class Count:
    """An ending after so many periods."""

    def __init__(self, simulator, periods):
        self._simulator, self._last = simulator, simulator.ticks + periods

    @property
    def asked(self):
        return self._simulator.ticks >= self._last


class Looks:
    """Looks at the stack every millisecond of processor time; `found` counts files and functions that stood in it."""

    def __init__(self):
        self.count, self.found = 0, Counter()

    def __enter__(self):
        self._before = signal.signal(signal.SIGPROF, self._look)
        signal.setitimer(signal.ITIMER_PROF, 1e-3, 1e-3)
        return self

    def __exit__(self, *_):
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, self._before)

    def _look(self, _, frame):
        self.count += 1
        here = set()
        while frame is not None:
            here.add((os.path.basename(frame.f_code.co_filename), frame.f_code.co_name))
            frame = frame.f_back
        self.found.update(here)


def profile(graph, periods, looks):
    """ms of processor time of composed nodes that nobody watches: of the cheapest 100 periods in a row, and its parts.

    periods: without the profiler; looks: periods with it.
    """
    (process,) = graph.as_composed().processes()
    sys.argv = ["benchmark", *process.arguments]
    rclpy.init()
    executor = SingleThreadedExecutor()
    composition = Composition({node.name: maker(node.name) for node in process.nodes})
    try:
        simulator = composition.nodes["simulator"]
        composition.spin(executor, Count(simulator, 100))
        bare = float("inf")
        for _ in range(periods // 100):
            begun, began = simulator.ticks, time.process_time()
            composition.spin(executor, Count(simulator, 100))
            bare = min(bare, 1e3 * (time.process_time() - began) / (simulator.ticks - begun))
        seen = Looks()
        with seen:
            composition.spin(executor, Count(simulator, looks))
    finally:
        composition.close()
        executor.shutdown()
        rclpy.try_shutdown()
    share = {part: seen.found[each] / max(seen.count, 1) for part, each in PARTS.items()}
    return bare, {part: bare * each for part, each in share.items() if each > 0.0}


def beside(options):
    """Print what a period costs with two controllers, and the ratio: with a process for every node, and with one."""
    least = {}  # ms by what is measured and by controller

    def measured(what, controller, spent):
        kept = least.setdefault(what, {})
        kept[controller] = min(kept.get(controller, float("inf")), spent)

    for _ in range(ROUNDS):
        for controller in (options.controller, options.beside):
            words = ["--json", "--robot", options.robot, "--controller", controller, "--state", options.state]
            words += ["--period", str(options.period), "--seconds", str(options.seconds)]
            made = subprocess.run([sys.executable, __file__, *words], capture_output=True, text=True, check=True)
            figures = json.loads(made.stdout)
            measured("one process, unwatched, processor time", controller, figures["unwatched_ms"])
            for mode, nodes in (("processes", "a process for every node"), ("composed", "one process")):
                pace = figures[mode]["simulated_seconds_per_second"]
                measured(f"{nodes}, wall time", controller, 1e3 * figures["period_s"] / pace)
                measured(f"{nodes}, processor time", controller, sum(figures[mode]["processor_ms"].values()))
    print(f"{'ms per period':<42} {options.controller:>12} {options.beside:>12}  ratio")
    for what, spent in sorted(least.items()):
        one, other = spent[options.controller], spent[options.beside]
        print(f"{what:<42} {one:12.3f} {other:12.3f}  {other / one:.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--robot", default="manipulator")
    parser.add_argument("--controller", default="task", help="empty: the usual one of the robot")
    parser.add_argument("--state", default="")
    parser.add_argument("--period", type=float, default=0.005, help="s; 0: what the controller needs")
    parser.add_argument("--clock", action="store_true", help="the nodes run by the clock, as in use, not in lock-step")
    parser.add_argument("--shown", action="store_true", help="with markers and the browser view")
    parser.add_argument("--only-profile", action="store_true", help="the table alone")
    parser.add_argument("--beside", default="", help="a second controller, to compare what periods cost")
    options = parser.parse_args()
    os.environ.update(own_domain())
    if options.beside:
        beside(options)
        return
    chosen = {"controller": options.controller, "state": options.state, "control_period": options.period}
    bare, shown = (Watching(markers=each, view=each) for each in (False, options.shown))
    graph = simulation_graph(options.robot, lockstep=not options.clock, watching=shown, **chosen)
    period = graph.choice.period
    figures = {"robot": options.robot, "controller": options.controller, "period_s": period}
    if not options.only_profile:
        figures["processes"] = run(graph, options.seconds)
        figures["composed"] = run(graph.as_composed(), options.seconds)
    figures["unwatched_ms"], figures["parts_ms"] = profile(
        simulation_graph(options.robot, lockstep=True, watching=bare, **chosen),
        max(100, round(options.seconds / period)),
        100 if options.json else 1500,
    )
    if options.json:
        print(json.dumps(figures, indent=2))
        return
    for mode in ("processes", "composed"):
        if mode in figures:
            each = ", ".join(f"{name} {spent:.2f} ms" for name, spent in figures[mode]["processor_ms"].items())
            pace = figures[mode]["simulated_seconds_per_second"]
            whole = figures[mode]["processor_s_per_simulated_s"]
            print(f"{mode}: {pace:.2f} simulated seconds per second; processor time a period: {each}")
            print(f"{mode}: {whole:.2f} s of processor time a simulated second")
    pace = period / (1e-3 * figures["unwatched_ms"])
    print(f"composed, unwatched: {figures['unwatched_ms']:.2f} ms, {pace:.2f} simulated s per s of processor time")
    for part, spent in sorted(figures["parts_ms"].items(), key=lambda row: -row[1]):
        print(f"  {part:<56} {spent:6.3f} ms")


if __name__ == "__main__":
    main()
