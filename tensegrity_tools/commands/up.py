"""`tensegrity up`: start the nodes of a robot as processes, monitor them, and end them together."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from tensegrity_dynamics.ending import Ending, leave
from tensegrity_dynamics.errors import TensegrityError

from ..output import console, print_json, print_table, table
from ..runtime.choices import USES, Choices, check_ports, parameter_table, resolve
from ..runtime.compiled_kernels import CompiledKernels
from ..runtime.node_graph import NodeGraph
from ..runtime.processes import NodeProcesses, own_domain, temporary_folder, usual_domain
from ..runtime.tour_time import for_tours
from .arguments import JsonOption, quantity
from .running_robot import need_ros


def up(
    context: typer.Context,
    what: Annotated[str, typer.Argument(help="what to start: sim, hardware or replay")],
    robot: Annotated[
        str,
        typer.Argument(
            help="name of a shipped robot, or path of a .yaml file (default: tensebot); replay: path of a bag",
            show_default=False,
        ),
    ] = "tensebot",
    tour: Annotated[bool, typer.Option(help="drive through the tour of the robot file, then print a summary")] = False,
    lockstep: Annotated[bool, typer.Option(help="lock-step: simulator and controller wait for each other")] = False,
    composed: Annotated[
        bool, typer.Option(help="sim: one process for simulator, estimator, controller and markers, see docs/nodes.md")
    ] = False,
    real_time_factor: Annotated[
        float,
        quantity("number", "--real-time-factor", "sim: simulated seconds per second of real time"),
    ] = 1.0,
    controller: Annotated[
        str, typer.Option(help="name of the controller, see docs/control.md; empty: the default of the robot")
    ] = "",
    state: Annotated[
        str,
        typer.Option(
            help="sim: state source: rest (equilibrium shapes), observer or truth; empty: as the controller needs"
        ),
    ] = "",
    control_period: Annotated[
        float,
        quantity("time", "--control-period", "sim: period of the commands [s]; 0: as the controller needs"),
    ] = 0,
    command_delay: Annotated[
        float,
        quantity("time", "--command-delay", "sim: artificial delay of commands [s], rounded to control periods"),
    ] = 0.0,
    state_delay: Annotated[
        float,
        quantity("time", "--state-delay", "sim: artificial delay of states [s], rounded to control periods"),
    ] = 0.0,
    delay_jitter: Annotated[
        float,
        quantity("time", "--delay-jitter", "sim: largest additional random delay of each state and command [s]"),
    ] = 0.0,
    view: Annotated[bool, typer.Option(help="start the browser view")] = True,
    view_port: Annotated[int, typer.Option(help="port of the browser view")] = 8080,
    view_address: Annotated[
        str,
        typer.Option(
            help="address on which the view listens; 0.0.0.0 admits other machines, with the token, unencrypted"
        ),
    ] = "127.0.0.1",
    port: Annotated[str, typer.Option(help="hardware: serial port of the servos, or 'emulated'")] = "",
    board: Annotated[
        str, typer.Option("--board", "--board-port", help="hardware: serial port of the potentiometer board")
    ] = "",
    calibration: Annotated[str, typer.Option(help="hardware: calibration file; default: that of the robot")] = "",
    deactivate: Annotated[
        str, typer.Option(help="hardware: state of the servos at the end, 'hold' or 'torque off'")
    ] = "hold",
    bag: Annotated[str, typer.Option(help="new folder of a bag that records all topics")] = "",
    rate: Annotated[
        float,
        quantity(
            "number",
            "--rate",
            "replay: robot seconds per second of real time; 0: compare in lock-step, as fast as possible",
        ),
    ] = 0.0,
    loop: Annotated[bool, typer.Option(help="replay at a rate: start again at the end")] = False,
    start: Annotated[
        float,
        quantity("time", "--start", "replay at a rate: start time in the bag [s]"),
    ] = 0.0,
    paused: Annotated[
        bool, typer.Option(help="start paused: a simulation (until simulator/set_paused), or a replay at a rate")
    ] = False,
    namespace: Annotated[str, typer.Option(help="namespace of all nodes, if several robots share a ROS domain")] = "",
    frame_prefix: Annotated[
        str, typer.Option(help="prefix of the robot's frame names; empty: the namespace with a slash")
    ] = "",
    mount: Annotated[
        str, typer.Option(help="pose of base_link in the world: x y z in m, then roll pitch yaw in degrees")
    ] = "",
    parameters: Annotated[
        bool, typer.Option("--parameters", help="print the parameters of all nodes, and start nothing")
    ] = False,
    as_json: JsonOption = False,
    stay: Annotated[bool | None, typer.Option(help="keep running after the tour; default: only on a terminal")] = None,
) -> None:
    """Start a robot: `tensegrity up sim tensebot --tour`, or `tensegrity up hardware manipulator --port /dev/ttyUSB0`.

    `tensegrity up replay BAG` runs estimator and controller again with recorded inputs and compares the answers; with
    --rate it plays the bag for the view. Ctrl-C ends all processes.
    """
    if what not in USES:
        raise TensegrityError(f"there is no `up {what}`; there are sim, hardware and replay.")
    source = context.get_parameter_source("robot")
    if what == "replay" and source is not None and source.name == "DEFAULT":
        raise TensegrityError("name the bag: tensegrity up replay BAG.")
    _refuse_foreign(what, port=port, board=board, calibration=calibration, tour=tour, lockstep=lockstep, rate=rate,
                    composed=composed, namespace=namespace, frame_prefix=frame_prefix, controller=controller,
                    state=state, bag=bag, loop=loop, start=start, command_delay=command_delay,
                    state_delay=state_delay, delay_jitter=delay_jitter,
                    paused=paused, deactivate=deactivate != "hold", control_period=control_period)  # fmt: skip
    choices = Choices(
        what, robot=robot, controller=controller, state=state, control_period=control_period, lockstep=lockstep,
        composed=composed, real_time_factor=real_time_factor, command_delay=command_delay,
        state_delay=state_delay, delay_jitter=delay_jitter, paused=paused, port=port,
        board_port=board, calibration=calibration, deactivate=deactivate, bag=robot if what == "replay" else bag,
        rate=rate, start=start, loop=loop, namespace=namespace, frame_prefix=frame_prefix, mount=mount, view=view,
        view_port=view_port, view_address=view_address,
    )  # fmt: skip
    if paused and tour:
        raise TensegrityError("--paused and --tour exclude each other: a paused simulation reaches no goals.")
    if parameters:
        _print_parameters(choices, as_json)
        return
    if what == "replay":
        _replay(choices)
        return
    ended: int | None = None
    with contextlib.ExitStack() as release:
        with Ending() as ending:
            kernels = CompiledKernels(robot, controller)
            compiles = not kernels.are_ready
            folder = release.enter_context(temporary_folder("emulated")) if what == "hardware" else None
            with console.status(kernels.why if compiles else "loading the robot"):  # loading compiles some functions
                loaded = _with_tour(robot) if tour else None  # refused before the rest is loaded and compiled
                graph = resolve(replace(choices, folder=Path(folder) if folder else None))
                check_ports(graph)
            if compiles:  # printed permanently when all options are valid
                console.print(kernels.why, soft_wrap=True, highlight=False)
            loaded, loose = _checked(robot, loaded)
            if loose:
                if tour or what != "sim":
                    raise TensegrityError(loose)
                console.print(f"{loose} It is shown without control.", style="yellow", soft_wrap=True)
                graph = graph.without("controller")
            if tour and not loaded.tour:  # the robot accepts no goals and is shown at rest
                console.print(f"no tour: {loaded.name} {loaded.model.takes_no_goals}.")
                tour = False
            graph = for_tours(graph) if tour else graph
            need_ros()
            compile_missing(kernels, robot, ending.check)
            chosen = "ROS_DOMAIN_ID" in os.environ
            os.environ.update(usual_domain(shared=bool(namespace)))
            os.environ.setdefault("RCUTILS_COLORIZED_OUTPUT", "0")
            if not chosen and (domain := os.environ.get("ROS_DOMAIN_ID", "0")) != "0":
                console.print(
                    f"another robot runs on this computer, so that this one takes ROS domain {domain}; "
                    f"in other terminals: export ROS_DOMAIN_ID={domain}",
                    soft_wrap=True,
                )  # fmt: skip
            nodes = NodeProcesses()
            release.callback(nodes.stop)
            ended = _run(nodes, graph, loaded, tour, stay, ending.check)
        if ending.asked:
            console.print("\nending all nodes")
        if ended is None:  # a robot without a task ends by a signal
            ended = 128 + ending.asked if tour else 0
    leave(ending, ended)


FOREIGN = {
    "sim": ("port", "board", "calibration", "deactivate", "rate", "loop", "start"),
    "hardware": ("composed", "command_delay", "state_delay", "delay_jitter", "paused", "rate", "loop", "start"),
    "replay": ("tour", "lockstep", "composed", "namespace", "frame_prefix", "controller", "state", "port", "board",
               "calibration", "deactivate", "bag", "command_delay", "state_delay", "delay_jitter", "control_period"),
}  # fmt: skip
"""Options that do not exist for a use."""


def _refuse_foreign(what: str, **given: Any) -> None:
    """Refuse options of another use, instead of ignoring them."""
    foreign = []
    for name in FOREIGN[what]:
        if given[name]:
            uses = " and ".join(f"`up {use}`" for use in FOREIGN if name not in FOREIGN[use])
            foreign.append(f"--{name.replace('_', '-')} is for {uses}, not for `up {what}`")
    if foreign:
        hint = "; the view has its --view-port" if given["port"] and what == "sim" else ""
        raise TensegrityError(f"{'; '.join(foreign)}{hint}.")


def _print_parameters(choices: Choices, as_json: bool) -> None:
    with temporary_folder("parameters") as folder:
        rows = parameter_table(resolve(replace(choices, folder=Path(folder))))
    if as_json:
        print_json([{"node": node, "parameter": name, "value": value} for node, name, value in rows])
    else:
        print_table(table("parameters", ("node", "parameter", "value"), rows))


def _replay(choices: Choices) -> None:
    """Run a replay; the exit status is 1 if it differs from the recording."""
    from ..runtime.replay_run import run_replay

    status = 0
    with contextlib.ExitStack() as release:
        with Ending() as ending:
            folder = release.enter_context(temporary_folder("replay"))
            graph = resolve(replace(choices, folder=Path(folder)))
            need_ros()
            os.environ.update(own_domain())
            os.environ.setdefault("RCUTILS_COLORIZED_OUTPUT", "0")
            nodes = NodeProcesses()
            release.callback(nodes.stop)
            status = run_replay(nodes, graph, ending.check, lambda text: console.print(text, markup=False))
        if ending.asked:
            console.print("\nending all nodes")
            status = 0 if choices.rate else 128 + ending.asked  # playback ended by the user; comparison interrupted
    leave(ending, status)


def compile_missing(kernels: CompiledKernels, robot: str, check: Callable[[], None]) -> None:
    """Compile what the nodes would else compile while they move the robot, where the code has changed."""
    if kernels.are_ready:
        return
    programs, shown = NodeProcesses(), 0
    try:
        programs.run("compile", kernels.command[1:])
        ended = False
        while not ended:
            check()
            time.sleep(0.1)
            ended = bool(programs.ended())
            lines = programs.log_path("compile").read_text(errors="replace").splitlines(keepends=True)
            whole = [line.rstrip() for line in lines if line.endswith("\n")]
            for line in whole[shown:]:
                if line.startswith(f"{robot}: "):  # excludes warnings of libraries
                    console.print(f"  {line}", soft_wrap=True, highlight=False, markup=False)
            shown = len(whole)
    finally:
        programs.stop(patience=1.0)


def _with_tour(name: str) -> Any:
    """Robot with a tour, or one that takes no goals. Raises TensegrityError: it could have a tour, but has none."""
    from tensegrity_dynamics import load_robot

    loaded = load_robot(name)
    if not loaded.tour and not loaded.model.takes_no_goals:
        raise TensegrityError(
            f"{loaded.name} has no tour; add goals under 'tour' in its robot file, or leave --tour out."
        )
    return loaded


def _checked(name: str, loaded: Any) -> tuple[Any, str]:
    """Robot, loaded here if None, and the reason why it cannot be driven; "" if it can."""
    from tensegrity_dynamics import load_robot
    from tensegrity_dynamics.estimation import make_estimator
    from tensegrity_dynamics.robots.robot_types import type_of

    loaded = load_robot(name) if loaded is None else loaded
    with console.status("finding the robot's shape"):
        stable = make_estimator(loaded).solve({}).stable
    return loaded, "" if stable else type_of(loaded).report(loaded).not_stable(name)


def _run(
    nodes: NodeProcesses, graph: NodeGraph, loaded: Any, tour: bool, stay: bool | None, check: Callable[[], None]
) -> int:
    from std_srvs.srv import SetBool

    from ..runtime.emulator_process import start_emulator
    from ..runtime.robot_client import Watcher
    from ..runtime.tour import run_tour
    from ..runtime.tour_time import tour_time

    began = time.monotonic()
    alive = Living(nodes, graph)
    nodes.start_all(graph)

    def look() -> None:
        """In every wait, also for the answer of a node that has just ended."""
        check()
        alive.check()

    watcher = Watcher(check=look, namespace=graph.namespace)
    try:
        if graph.emulator is not None:
            start_emulator(nodes, graph.emulator, check)
            for process in filter(graph.waits, graph.processes()):
                nodes.start_process(process)
        _wait(alive, watcher, lambda: _not_ready(watcher, graph, alive))
        if tour and not alive.runs("controller"):
            return 1
        if "recorder" in graph and not alive.runs("recorder") and graph["recorder"].parameters.get("release"):
            watcher.call("simulator/set_paused", SetBool.Request(data=False))  # no other program does
        alive.began = True
        domain = os.environ.get("ROS_DOMAIN_ID", "0")
        console.print(f"{loaded.name} is running after {time.monotonic() - began:.0f} s in ROS domain {domain}.")
        if alive.runs("controller"):
            console.print(str(graph.choice), soft_wrap=True, highlight=False)
        if "view" in watcher.diagnostics and alive.runs("view"):
            values = {value.key: value.value for value in watcher.diagnostics["view"].values}
            # on a separate line, so that a narrow terminal does not cut the token
            console.print("watch it in a browser:")
            console.print(values.get("url", "?"), style="bold", soft_wrap=True, highlight=False)
            from ..view.guard import EXPOSED, Guard

            if not Guard(graph["view"].parameters["host"]).is_local:
                console.print(f"The view is open to other machines: {EXPOSED}.", style="yellow")
        line = StatusLine(watcher, loaded)
        status = 0
        if tour:
            arrivals = run_tour(loaded, watcher, line.show, alive.check, tour_time(watcher, graph))
            line.end()
            status = 0 if tour_summary(arrivals) else 1
            if not graph.source.parameters.get("lockstep"):
                watcher.spin(1.5)  # diagnostics are published once per second
                console.print(pace(watcher.diagnostics), soft_wrap=True)
        terminal = sys.stdin.isatty() and sys.stdout.isatty()
        if stay if stay is not None else terminal or not tour:
            console.print("It keeps running; Ctrl-C ends it.")
            with contextlib.suppress(KeyboardInterrupt):
                while True:
                    watcher.spin(0.2)
                    alive.check()
                    line.show("", None)
        elif not tour:
            console.print("--no-stay: all nodes end now, the robot was not moved (--tour moves it).", soft_wrap=True)
        return status
    finally:
        watcher.close()


def _not_ready(watcher: Any, graph: NodeGraph, alive: Living) -> list[str]:
    """Missing parts before the robot is ready: first state, service of the controller, view."""
    source = graph.source.name
    own = watcher.diagnostics.get(source)
    if own is not None and own.message.startswith("cannot be"):
        raise TensegrityError(f"the {source} {own.message}")
    there = watcher.estimate is not None and (source != "simulator" or watcher.truth is not None)
    goals = (
        []
        if not alive.runs("controller") or (watcher.offered("set_goal_pose") and "controller" in watcher.diagnostics)
        else ["the controller"]
    )
    page = watcher.diagnostics.get("view")
    shown = page is not None and any(v.key == "url" for v in page.values)
    hidden = ["start the browser view"] if alive.runs("view") and not shown else []
    taken = [] if not alive.runs("controller") or watcher.answered else ["the controller's first answer"]
    noted = watcher.diagnostics.get("recorder")
    listening = noted is not None and (noted.message == "recording" or noted.level > b"\x00")
    deaf = ["the recorder"] if alive.runs("recorder") and not listening else []
    return ([] if there else ["the first state"]) + (goals or taken) + hidden + deaf


REFUSED_S = 20.0
"""Time for which a controller may refuse every state before this is an error [s], since it may accept a later state."""


def _wait(alive: Living, watcher: Any, missing: Callable[[], list[str]]) -> None:
    """Wait until no part is missing, and print the missing parts meanwhile."""
    with console.status("starting the nodes") as note:
        began = refused = time.monotonic()
        while waiting := missing():
            watcher.spin(0.2)
            alive.check()
            control = watcher.diagnostics.get("controller")
            if control is None or not control.message.startswith("cannot take over"):
                refused = time.monotonic()
            elif time.monotonic() - refused > REFUSED_S:
                raise TensegrityError(
                    f"the controller {control.message} Which ones take this robot: tensegrity check ROBOT --controllers"
                )
            note.update(f"starting the nodes: waiting for {', '.join(waiting)} ({time.monotonic() - began:.0f} s)")
            if time.monotonic() - began > 300.0:
                raise TensegrityError(f"after five minutes there is still no sign of {', '.join(waiting)}.")


class Living:
    """Monitoring of the nodes: the end of a required node is an error; the end of a display node is reported once.

    Attributes:
        began: whether all nodes are ready and the robot is driven.
    """

    def __init__(self, nodes: NodeProcesses, graph: NodeGraph) -> None:
        self._nodes, self._graph = nodes, graph
        self._missed: set[str] = set()
        self.began = False

    def runs(self, name: str) -> bool:
        """Whether a node belongs to the graph and has not ended."""
        return name in self._graph and name not in self._missed

    def _may_end(self, name: str, status: int, words: str) -> bool:
        """Whether the other nodes continue. A simulated robot that no controller can hold is shown without a
        controller."""
        if name not in self._graph:
            return False
        unfit = name == "controller" and "simulator" in self._graph and not self.began
        return self._graph[name].may_end or (unfit and status == 1 and "Traceback" not in words)

    def check(self) -> None:
        """Raise an error if a required node has ended."""
        for name, status in self._nodes.ended().items():
            words = self._nodes.last_words(name)
            if name not in self._missed and not self._may_end(name, status, words):
                who = self._graph.process(name)
                raise TensegrityError(
                    f"the {who} ended with status {status}; all others are ended too. Its last words:\n{words}"
                )
            if name not in self._missed:
                self._missed.add(name)
                console.print(f"the {name} ended with status {status}; the robot continues without it. {words}".strip())


def tour_summary(arrivals: list[Any]) -> bool:
    rows = [
        (a.name, "reached, BUT" if a.reached and a.fault else "reached" if a.reached else "NOT reached",
         f"{1e3 * a.position_error:.3f}",
         f"{np.degrees(a.orientation_error):.4f}", f"{a.duration:.2f}", a.reason or a.fault)
        for a in arrivals
    ]  # fmt: skip
    print_table(table("tour", ("goal", "", "error mm", "error deg", "time s", ""), rows))
    reached = sum(a.reached for a in arrivals)
    faults = [each for each in arrivals if each.fault]
    console.print(f"{reached} of {len(arrivals)} goals reached" + (f", {len(faults)} not as planned" if faults else ""))
    for each in faults:
        console.print(f"during the motion to '{each.name}': {each.fault}", soft_wrap=True)
    if unreported := sorted({name for each in arrivals for name in each.unreported}):
        console.print(
            f"unclear whether {', '.join(unreported)} kept their tension floors: during some motions their servos "
            "measured no tension (an AX-12A does so only while it winds in)",
            soft_wrap=True,
        )
    return all(each.success for each in arrivals) and len(arrivals) > 0


MANY_LATE = 0.02
"""Fraction of late answers to states above which remedies are printed."""


def pace(diagnostics: Mapping[str, Any]) -> str:
    """Text about missed real-time deadlines, from the diagnostics (DiagnosticStatus by node)."""
    controller, simulator = (
        {value.key: value.value for value in diagnostics[name].values} if name in diagnostics else {}
        for name in ("controller", "simulator")
    )
    words = [
        f"{controller.get('missed deadlines', '?')} of {controller.get('answered states', '?')} states were answered "
        f"later than a period",
        f"{controller.get('late states', '?')} states came late",
    ]
    if simulator:
        words += [f"the simulator left out {simulator.get('lost periods', '?')} periods"]
        words += [f"real-time factor {simulator.get('real time factor', '?')}"]
    missed, answered = (float(controller.get(name, "nan")) for name in ("missed deadlines", "answered states"))
    hint = "; a longer --control-period gives this computer more time" if missed > MANY_LATE * answered else ""
    return f"real time: {', '.join(words)}{hint}"


class StatusLine:
    """Status line that is overwritten on a terminal; other outputs receive occasional lines."""

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
                text += f"  real-time factor {watcher.real_time_factor:.2f}"
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
        """Finish the line, so that further output starts on a new one."""
        if self._open:
            sys.stdout.write("\n")
            self._open = False
