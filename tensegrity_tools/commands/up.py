"""`tensegrity up`: start a robot's nodes as processes, watch them, and end them together."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import typer

from tensegrity_dynamics.errors import TensegrityError

from ..output import console, table
from ..runtime.node_graph import Choice, Source, choose, hardware, simulated
from ..runtime.processes import NodeProcesses, own_domain
from .arguments import RobotArgument
from .running_robot import need_ros


def up(
    what: Annotated[str, typer.Argument(help="sim or hardware")],
    robot: RobotArgument = "tensebot",
    tour: Annotated[bool, typer.Option(help="drive through the tour of the robot file, then print a summary")] = False,
    lockstep: Annotated[bool, typer.Option(help="simulator and controller wait for each other")] = False,
    real_time_factor: Annotated[float, typer.Option(help="simulated seconds per second")] = 1.0,
    controller: Annotated[str, typer.Option(help="which, see docs/control.md; empty for the usual one")] = "",
    state: Annotated[
        str, typer.Option(help="sim: rest (shapes at rest), observer or truth; empty for what the controller needs")
    ] = "",
    control_period: Annotated[float, typer.Option(help="sim: s between commands; 0 for what the controller needs")] = 0,
    view: Annotated[bool, typer.Option(help="the browser view")] = True,
    view_port: Annotated[int, typer.Option(help="where browsers find the view")] = 8080,
    port: Annotated[str, typer.Option(help="hardware: serial port of the servos, or 'emulated'")] = "",
    board: Annotated[str, typer.Option(help="hardware: serial port of the potentiometer board")] = "",
    calibration: Annotated[str, typer.Option(help="hardware: calibration file, by default the robot's own")] = "",
    stay: Annotated[bool | None, typer.Option(help="keep running after the tour; by default on a terminal")] = None,
) -> None:
    """Start a robot: `tensegrity up sim tensebot --tour`, or `tensegrity up hardware tensebot --port /dev/ttyUSB0`.

    Ctrl-C ends everything.
    """
    if what not in ("sim", "hardware"):
        raise TensegrityError(f"there is no `up {what}`; known: sim, hardware. (replay is not built yet)")
    if what == "sim" and (port or board or calibration):
        raise TensegrityError("--port, --board and --calibration are for `up hardware`; the view has its --view-port.")
    loaded = _checked(robot, tour)
    choice = choose(loaded, controller, state, control_period)
    if what == "sim":
        source = simulated(lockstep, real_time_factor, choice.period, choice.state == "truth")
    else:
        source = hardware(loaded, robot, port, board, calibration, lockstep)
    need_ros()
    environment = own_domain()
    os.environ.update(environment)
    os.environ.setdefault("RCUTILS_COLORIZED_OUTPUT", "0")
    signal.signal(signal.SIGTERM, _interrupt)
    nodes = NodeProcesses()
    status = 1
    try:
        status = _run(nodes, source, choice, loaded, robot, tour, lockstep, view, view_port, stay)
    except KeyboardInterrupt:
        console.print("\nending all nodes")
        status = 130
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        nodes.stop()
    if status:
        sys.exit(status)


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


def _checked(name: str, tour: bool) -> Any:
    """The robot, or a plain word on why it cannot be driven."""
    from tensegrity_dynamics import load_robot
    from tensegrity_dynamics.estimation import make_estimator
    from tensegrity_dynamics.robots.robot_types import type_of

    loaded = load_robot(name)
    with console.status("finding the robot's shape (the first time its kernels are compiled, about a minute)"):
        stable = make_estimator(loaded).solve({}).stable
    if not stable:
        raise TensegrityError(type_of(loaded).report(loaded).not_stable(name))
    if tour and not loaded.tour:
        raise TensegrityError(
            f"{loaded.name} has no tour; add goals under 'tour' in its robot file, or leave --tour out."
        )
    return loaded


def _run(
    nodes: NodeProcesses, source: Source, choice: Choice, loaded: Any, name: str, tour: bool, lockstep: bool,
    view: bool, port: int, stay: bool | None,
) -> int:  # fmt: skip
    from ..runtime.robot_client import Watcher
    from ..runtime.tour import run_tour

    time_of = {"use_sim_time": source.simulated_time}
    began = time.monotonic()
    if not source.waits:
        _start_source(nodes, source, name)
    if choice.state != "truth":
        nodes.start("estimator", {"robot": name, "lockstep": lockstep, "method": choice.state, **time_of})
    given = {"controller": choice.controller, "control_period": choice.period}
    nodes.start("controller", {"robot": name, "lockstep": lockstep, **given, **time_of})
    nodes.start("markers", {"robot": name, **time_of})
    if view:
        nodes.start("view", {"robot": name, "port": port, **time_of})
    watcher = Watcher()
    try:
        if source.waits:
            _wait(nodes, watcher, lambda: _absent(watcher, ("estimator", "controller")))
            _start_source(nodes, source, name)
        _wait(nodes, watcher, lambda: _not_ready(watcher, source, view))
        domain = os.environ.get("ROS_DOMAIN_ID", "0")
        console.print(f"{loaded.name} is running after {time.monotonic() - began:.0f} s in ROS domain {domain}.")
        if view:
            values = {value.key: value.value for value in watcher.diagnostics["view"].values}
            console.print(f"watch it in a browser: [bold]{values.get('url', '?')}[/bold]")
        line = StatusLine(watcher, loaded)
        status = 0
        if tour:
            arrivals = run_tour(loaded, watcher, line.show, lambda: _alive(nodes))
            line.end()
            status = 0 if _summary(arrivals) else 1
        terminal = sys.stdin.isatty() and sys.stdout.isatty()
        if stay if stay is not None else terminal or not tour:
            console.print("It keeps running; Ctrl-C ends it.")
            while True:
                watcher.spin(0.2)
                _alive(nodes)
                line.show("", None)
        return status
    finally:
        watcher.close()


def _start_source(nodes: NodeProcesses, source: Source, name: str) -> None:
    source.prepare(nodes)
    nodes.start(source.node, {"robot": name, **source.parameters})


def _absent(watcher: Any, names: tuple[str, ...]) -> list[str]:
    return [f"the {name}" for name in names if name not in watcher.diagnostics]


def _not_ready(watcher: Any, source: Source, view: bool) -> list[str]:
    """What is still missing: the first state, the controller's service and the view."""
    own = watcher.diagnostics.get(source.node)
    if own is not None and own.message.startswith("cannot be"):
        raise TensegrityError(f"the {source.node} {own.message}")
    there = watcher.estimate is not None and (source.node != "simulator" or watcher.truth is not None)
    goals = [] if watcher.offered("set_goal_pose") and "controller" in watcher.diagnostics else ["the controller"]
    page = watcher.diagnostics.get("view")
    shown = [] if not view or (page and any(v.key == "url" for v in page.values)) else ["the browser view"]
    ready = watcher.diagnostics.get("controller")
    taken = [] if ready is not None and ready.message in ("holding", "moving") else ["the controller's first answer"]
    return ([] if there else ["the first state"]) + (goals or taken) + shown


def _wait(nodes: NodeProcesses, watcher: Any, missing: Callable[[], list[str]]) -> None:
    """Wait until nothing is missing any more, saying what still is."""
    with console.status("starting the nodes") as note:
        began = time.monotonic()
        while waiting := missing():
            watcher.spin(0.2)
            _alive(nodes)
            note.update(f"starting the nodes: waiting for {', '.join(waiting)} ({time.monotonic() - began:.0f} s)")
            if time.monotonic() - began > 300.0:
                raise TensegrityError(f"after five minutes there is still no sign of {', '.join(waiting)}.")


def _alive(nodes: NodeProcesses) -> None:
    """Raise where a node has ended."""
    for name, status in nodes.ended().items():
        words = nodes.last_words(name)
        raise TensegrityError(
            f"the {name} ended with status {status}; all others are ended too. Its last words:\n{words}"
        )


def _summary(arrivals: list[Any]) -> bool:
    rows = [
        (a.name, "reached" if a.reached else "NOT reached", f"{1e3 * a.position_error:.3f}",
         f"{np.degrees(a.orientation_error):.4f}", f"{a.duration:.2f}", a.reason)
        for a in arrivals
    ]  # fmt: skip
    console.print(table("tour", ("goal", "", "error mm", "error deg", "time s", ""), rows))
    reached = sum(a.reached for a in arrivals)
    console.print(f"{reached} of {len(arrivals)} goals reached")
    return reached == len(arrivals) > 0


class StatusLine:
    """One line that is written over on a terminal, and now and then a line elsewhere."""

    def __init__(self, watcher: Any, robot: Any) -> None:
        self._watcher, self._robot = watcher, robot
        self._terminal, self._last, self._open = console.is_terminal, 0.0, False
        self._start: float | None = None

    def show(self, name: str, goal: Any) -> None:
        """Write the present state."""
        from ..runtime.tour import errors

        now = time.monotonic()
        if now - self._last < (0.2 if self._terminal else 2.0):
            return
        self._last = now
        watcher = self._watcher
        with contextlib.suppress(TensegrityError):
            pose, pulls = watcher.pose, watcher.tensions[np.isfinite(watcher.tensions)]
            self._start = watcher.time if self._start is None else self._start
            text = (
                f"t {watcher.time - (self._start if watcher.truth is None else 0.0):7.2f} s  pose "
                + " ".join(f"{1e3 * x:7.2f}" for x in pose[0])
                + " mm"
            )
            if goal is not None:
                position, orientation = errors(self._robot, goal, pose)
                text += f"  to '{name}' {1e3 * position:6.2f} mm {np.degrees(orientation):5.2f} deg"
            if pulls.size:
                text += f"  tension {pulls.min():.3g} to {pulls.max():.3g} N"
            if watcher.truth is not None:
                text += f"  real time x {watcher.real_time_factor:.2f}"
            worst = [s for s in watcher.diagnostics.values() if s.level > b"\x00" and s.name != "markers"]
            if worst:
                text += f"  ! {worst[0].name}: {worst[0].message}"
            if self._terminal:
                width = max(20, console.width - 1)
                sys.stdout.write("\r" + text[:width].ljust(width))
                sys.stdout.flush()
                self._open = True
            else:
                print(text, flush=True)

    def end(self) -> None:
        """Go on below the line."""
        if self._open:
            sys.stdout.write("\n")
            self._open = False
