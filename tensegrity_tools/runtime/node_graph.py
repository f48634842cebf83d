"""The nodes of a running robot with their parameters, in one list.

`tensegrity up`, the launch files, lock-step runs and the system tests read this list. It alone decides which controller
runs, what the controller needs, and which nodes continue when another one ends.

A graph is data. The program that starts it (`up` or the launch system) starts its nodes in their order.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import TensegrityError, unknown_name
from tensegrity_dynamics.estimation import estimator_methods
from tensegrity_dynamics.robots.robot import Robot

MODULES = {
    "simulator": "tensegrity_dynamics.ros.simulator_node",
    "driver": "tensegrity_driver.ros.driver_node",
    "estimator": "tensegrity_dynamics.ros.estimator_node",
    "controller": "tensegrity_control.ros.controller_node",
    "markers": "tensegrity_dynamics.ros.markers_node",
    "view": "tensegrity_tools.ros.view_node",
    "recorder": "tensegrity_tools.ros.recorder_node",
    "player": "tensegrity_tools.ros.player_node",
    "composed": "tensegrity_tools.ros.composed_node",
}
COMPOSED = "composed"
"""Name of a process that holds several nodes."""
COMPOSABLE = ("simulator", "estimator", "controller", "markers")
"""Nodes that can share one process. The driver must meet its deadlines, the view serves browsers, and a recorder must
outlive the other nodes."""
EMULATED = "emulated"
NAMESPACE = r"[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*"
STATES = ("rest", "observer", "truth")
KEPT_PERIOD = 0.005
"""Control period that nodes can usually keep in real time on a present computer [s]."""
SHORTEST_PERIOD, LONGEST_PERIOD = 0.0005, 1.0
"""Limits of the control period [s]."""


def checked_namespace(namespace: str) -> str:
    """A namespace without slashes at its ends. Raises TensegrityError if ROS does not accept it."""
    name = namespace.strip("/")
    if name and not re.fullmatch(NAMESPACE, name):
        raise TensegrityError(
            f"the namespace {namespace!r} is none: letters, digits and _ between slashes, no digit first."
        )
    return name


def _as_yaml(value: Any) -> str:
    """Value as rcl reads it on a command line: texts in quotes, so that none is a number, a comment or a mapping."""
    if isinstance(value, str):
        # JSON, except that YAML writes each character as one number
        return '"' + "".join(f"\\U{ord(c):08x}" if c >= "\x7f" else json.dumps(c)[1:-1] for c in value) + '"'
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class NodeDescription:
    """One node.

    Attributes:
        name: of the node; its module is `MODULES[name]`, its executable `<name>_node`.
        parameters: ROS parameters, in the types that the node declares.
        may_end: whether the other nodes continue without it, since no motion depends on it.
        remappings: ROS names in the node, and their replacements.
    """

    name: str
    parameters: dict[str, Any]
    may_end: bool = False
    remappings: tuple[tuple[str, str], ...] = ()

    def arguments(self, prefix: str = "") -> list[str]:
        """Parameters and remappings as words after `--ros-args`; prefix: "node:" if several nodes share a process."""
        words = []
        for key, value in self.parameters.items():
            words += ["-p", f"{prefix}{key}:={_as_yaml(value)}"]
        for used, given in self.remappings:
            words += ["-r", f"{prefix}{used}:={given}"]
        return words


@dataclass(frozen=True)
class ProcessDescription:
    """One process with one node or several composed nodes.

    Attributes:
        name: of its node, or `COMPOSED`. nodes: of the process. namespace: of all of them.
    """

    name: str
    nodes: tuple[NodeDescription, ...]
    namespace: str = ""

    @property
    def module(self) -> str:
        """Python module that the process runs."""
        return MODULES[self.name]

    @property
    def may_end(self) -> bool:
        """Whether the other processes continue without it."""
        return all(node.may_end for node in self.nodes)

    @property
    def words(self) -> list[str]:
        """Names of its nodes as arguments, if the process can hold several."""
        if self.name != COMPOSED:
            return []
        free = [node.name for node in self.nodes if node.may_end]
        return [*(node.name for node in self.nodes if not node.may_end), *(["--may-end", *free] if free else [])]

    @property
    def arguments(self) -> list[str]:
        """All arguments after the module on the command line."""
        prefixes = {node.name: f"{node.name}:" if self.name == COMPOSED else "" for node in self.nodes}
        ros = [word for node in self.nodes for word in node.arguments(prefixes[node.name])]
        return [*self.words, "--ros-args", *(["-r", f"__ns:=/{self.namespace}"] if self.namespace else []), *ros]


@dataclass(frozen=True)
class Choice:
    """Controller, state and period: controller name, one of `STATES`, period [s], and the reason for the period."""

    controller: str
    state: str
    period: float
    why: str = ""

    def __str__(self) -> str:
        return f"controller {self.controller}, a command every {1e3 * self.period:g} ms: {self.why}"


@dataclass(frozen=True)
class Emulator:
    """Process that emulates servos and potentiometer board, with pseudo-terminals in a folder.

    Attributes:
        robot: name or file. folder: of the pseudo-terminals and the calibration.
    """

    robot: str
    folder: Path

    @property
    def is_ready(self) -> bool:
        """Whether its servos can be reached."""
        return (self.folder / "servos").exists()


@dataclass(frozen=True)
class NodeGraph:
    """Nodes of one robot, in the order in which they start.

    Attributes:
        robot: name or file, as the nodes receive it. choice: of the controller. nodes: in starting order.
        simulated_time: the source publishes /clock, and all other nodes use it. emulator: starts before the driver, or
            None.
        composed: one process for all nodes that can share one (`COMPOSABLE`), instead of one process per node.
        namespace: of all nodes, so that several robots can share a ROS domain; "" for none.
    """

    robot: str
    choice: Choice
    nodes: tuple[NodeDescription, ...]
    simulated_time: bool
    emulator: Emulator | None = None
    composed: bool = False
    namespace: str = ""

    def __iter__(self) -> Iterator[NodeDescription]:
        return iter(self.nodes)

    def __getitem__(self, name: str) -> NodeDescription:
        for node in self.nodes:
            if node.name == name:
                return node
        raise KeyError(unknown_name("node of this graph", name, [node.name for node in self.nodes]))

    def __contains__(self, name: str) -> bool:
        return any(node.name == name for node in self.nodes)

    @property
    def source(self) -> NodeDescription:
        """The node that represents the robot: simulator or driver."""
        return self["simulator"] if "simulator" in self else self["driver"]

    def processes(self) -> tuple[ProcessDescription, ...]:
        """Processes that run the nodes, in the order in which they start."""
        together = tuple(node for node in self.nodes if self.composed and node.name in COMPOSABLE)
        groups = [(COMPOSED, together)] if together else []
        groups += [(node.name, (node,)) for node in self.nodes if node not in together]
        return tuple(ProcessDescription(name, nodes, self.namespace) for name, nodes in groups)

    def waits(self, process: ProcessDescription) -> bool:
        """Whether a process starts only when the servos of the emulator can be reached, and not at once.

        Servos do not wait for other nodes: a driver in real time begins when the nodes that answer it are present, by
        its parameter `wait_for`.
        """
        return self.emulator is not None and any(node.name == "driver" for node in process.nodes)

    def process(self, name: str) -> str:
        """Name of a process in messages: its nodes, or its own name."""
        found = [each for each in self.processes() if each.name == name == COMPOSED]
        return f"process of {', '.join(node.name for node in found[0].nodes)}" if found else name

    def as_composed(self) -> NodeGraph:
        """The same graph with one process for the nodes that can share one.

        Raises:
            TensegrityError: the source cannot share a process.
        """
        if self.source.name not in COMPOSABLE:
            raise TensegrityError("servos have a process of their own: --composed is for simulations.")
        return replace(self, composed=True)

    def in_namespace(self, namespace: str, frame_prefix: str = "") -> NodeGraph:
        """The same graph for use beside those of other robots, with its own names, frames and clock.

        Args:
            namespace: such as "left" or "cell/left"; "" changes nothing.
            frame_prefix: of the names of its frames; "" for the namespace with a slash.

        Raises:
            TensegrityError: ROS does not accept a name.
        """
        name = checked_namespace(namespace)
        if not name and (namespace or not frame_prefix):
            return self
        prefix = {"frame_prefix": frame_prefix or f"{name}/"}
        own_clock = (("/clock", "clock"),) if name else ()
        nodes = tuple(
            replace(
                node, remappings=(*node.remappings, *own_clock),
                parameters={**node.parameters, **(prefix if node.name == "markers" else {})},
            )
            for node in self.nodes
        )  # fmt: skip
        return replace(self, nodes=nodes, namespace=name)

    def with_parameters(self, name: str, **parameters: Any) -> NodeGraph:
        """The same graph with more parameters of one node."""
        changed = replace(self[name], parameters={**self[name].parameters, **parameters})
        return replace(self, nodes=tuple(changed if node.name == name else node for node in self.nodes))

    def without(self, name: str) -> NodeGraph:
        """The same graph without one node."""
        return replace(self, nodes=tuple(node for node in self.nodes if node.name != name))

    def only(self, *names: str) -> NodeGraph:
        """The same graph with only these nodes, as far as they exist in it."""
        return replace(self, nodes=tuple(node for node in self.nodes if node.name in names))


@dataclass(frozen=True)
class Watching:
    """Nodes for display only.

    Attributes:
        markers: for RViz. view: the browser view. view_port: port of the view, or the next free one.
        view_address: address on which the view listens; by default only this computer.
    """

    markers: bool = True
    view: bool = True
    view_port: int = 8080
    view_address: str = "127.0.0.1"


def choose(robot: Robot, controller: str = "", state: str = "", period: float = 0.0, bus: float = 0.0) -> Choice:
    """The requested controller, state and period, with defaults by the needs of the controller.

    Args:
        controller: name, or "" for the usual one of the robot. state: one of `STATES`, or "". period: s, or 0.
        bus: period in which servos report states [s], for controllers that are designed for one period; 0 without.

    Raises:
        TensegrityError: a name is unknown, or the state does not fit the controller or the robot.
    """
    from tensegrity_control.registry import controller_class, suitable

    names = suitable(robot)
    if not names:
        raise TensegrityError(f"no controller drives a robot of this kind ({robot.name}).")
    name = controller or names[0]
    if name not in names:
        raise TensegrityError(unknown_name("controller", name, names, f"for {robot.name}"))
    chosen = controller_class(name)
    kind = state or ("observer" if chosen.needs_velocities else "rest")
    if kind not in STATES:
        raise TensegrityError(unknown_name("state", kind, STATES))
    if kind == "observer" and kind not in estimator_methods(robot):
        raise TensegrityError(
            f"{robot.name} is a {robot.kind}, whose state is estimated from equilibria; choose --state rest or truth."
        )
    if chosen.needs_velocities and kind == "rest":
        raise TensegrityError(f"{name} needs velocities; choose --state observer or truth.")
    if period != 0.0 and not SHORTEST_PERIOD <= period <= LONGEST_PERIOD:
        raise TensegrityError(
            f"--control-period is {period} s; give {SHORTEST_PERIOD:g} to {LONGEST_PERIOD:g}, or 0 for what the "
            "controller needs."
        )
    if given := period or (bus if chosen.is_sampled else 0.0):
        why = "as given" if period else "the driver reports states so often"
        caution = chosen.caution_for(robot, given)
        return Choice(name, kind, given, f"{why}. Caution: {caution}" if caution else why)
    return Choice(name, kind, *chosen.period_for(robot))


def slower_than_real_time(robot: Robot, controller: str) -> str:
    """Why nodes do not run a controller in real time with a simulated robot; "" if they do."""
    try:
        choice = choose(robot, controller)
    except TensegrityError as error:  # the nodes have no states for it
        return str(error)
    return _too_fast(choice) if choice.period < KEPT_PERIOD else ""


def _too_fast(choice: Choice) -> str:
    return (
        f"{choice}; in real time these nodes sustain {1e3 * KEPT_PERIOD:g} ms. Take --lockstep, --real-time-factor "
        f"{choice.period / KEPT_PERIOD:g} or another controller (joint_position); --control-period overrides this."
    )


def simulation_graph(
    robot: str,
    *,
    controller: str = "",
    state: str = "",
    control_period: float = 0.0,
    lockstep: bool = False,
    real_time_factor: float = 1.0,
    command_delay: float = 0.0,
    state_delay: float = 0.0,
    delay_jitter: float = 0.0,
    paused: bool = False,
    watching: Watching | None = None,
    bag: str = "",
) -> NodeGraph:
    """The nodes of a simulated robot.

    Args:
        robot: name of a shipped robot, or a file. controller, state, control_period: see `choose`.
        lockstep: simulator and controller wait for each other, so that every run gives the same numbers.
        real_time_factor: simulated seconds per second, outside lock-step.
        command_delay, state_delay: artificial delay of commands and states [s], rounded to whole periods.
        delay_jitter: largest additional delay of each message [s], a random number for each.
        paused: the simulator waits for `set_paused`.
        bag: folder of a bag that records everything from the first state on; "" records nothing.

    Raises:
        TensegrityError: something does not exist, or the options contradict each other; one sentence.
    """
    choice = choose(load_robot(robot), controller, state, control_period)
    if not (lockstep or control_period) and choice.period < KEPT_PERIOD * real_time_factor:
        raise TensegrityError(_too_fast(choice))
    name = str(robot)
    simulator = {
        "robot": name,
        "lockstep": lockstep,
        "real_time_factor": float(real_time_factor),
        "control_period": choice.period,
        "truth_as_state": choice.state == "truth",
        "command_delay": float(command_delay),
        "state_delay": float(state_delay),
        "delay_jitter": float(delay_jitter),
    }
    if paused:
        simulator["paused"] = True
    followers = _followers(name, choice, lockstep, True, watching or Watching())
    if command_delay or state_delay:
        late = {"command_delay": float(command_delay + state_delay)}
        followers = [
            replace(each, parameters={**each.parameters, **late}) if each.name == "controller" else each
            for each in followers
        ]
    recorder = []
    if bag:  # the simulator waits until the recorder has subscribed to everything
        simulator["paused"] = True
        recorder = [recorder_node(name, bag, wait_for=HEARD_FIRST, release=not paused)]
    return NodeGraph(name, choice, (NodeDescription("simulator", simulator), *recorder, *followers), True)


def hardware_graph(
    robot: str,
    *,
    port: str,
    board: str = "",
    calibration: str = "",
    deactivate: str = "hold",
    controller: str = "",
    state: str = "",
    control_period: float = 0.0,
    lockstep: bool = False,
    emulator_folder: Path | None = None,
    watching: Watching | None = None,
    bag: str = "",
) -> NodeGraph:
    """The nodes of a robot with servos.

    Args:
        robot: name of a shipped robot with servos, or a file.
        port, board: serial ports of servos and potentiometer board; `EMULATED` means servos without hardware.
        calibration: file, or "" for the robot's own. deactivate: servos at the end ("hold", "torque off").
        lockstep: emulated servos and controller wait for each other.
        emulator_folder: of a separate process that emulates the servos; None: inside the driver.
        bag: folder of a bag that records everything; "" records nothing.

    Raises:
        TensegrityError: no servos, no port, or contradicting options; one sentence.
    """
    loaded = load_robot(robot)
    choice = choose(loaded, controller, state, control_period, _bus_period(loaded))
    if not loaded.servos:
        raise TensegrityError(
            f"{loaded.name} has no servos; add a `servos` block to its robot file (docs/robot_file.md)."
        )
    if not port:
        raise TensegrityError("name the port of the servos: --port /dev/ttyUSB0, or --port emulated.")
    if calibration and not Path(calibration).expanduser().is_file():
        raise TensegrityError(f"there is no calibration file {calibration}; `tensegrity servo calibrate` writes one.")
    if lockstep and port != EMULATED:
        raise TensegrityError("real servos do not wait: lock-step goes with --port emulated alone.")
    if choice.state == "truth":
        raise TensegrityError("only a simulation knows the true state; choose --state rest or observer.")
    name = str(robot)
    driver: dict[str, Any] = {"robot": name, "lockstep": lockstep, "deactivate": deactivate}
    if not lockstep:
        driver["wait_for"] = "estimator controller recorder" if bag else "estimator controller"
    emulator = None
    if port == EMULATED and emulator_folder is not None and not lockstep:
        emulator = Emulator(name, emulator_folder)
        driver |= _at_pseudo_terminals(loaded, emulator_folder)
    else:
        named = {"port": port, "board_port": board, "calibration": calibration}
        driver |= {key: text for key, text in named.items() if text}
    source = NodeDescription("driver", driver)
    followers = _followers(name, choice, lockstep, lockstep, watching or Watching())
    recorder = [recorder_node(name, bag)] if bag else []
    graph = NodeGraph(name, choice, (source, *recorder, *followers), lockstep, emulator)
    graph = graph.with_parameters("controller", servo_motors=True).with_parameters("estimator", keeps_payloads=True)
    # efforts are currents of geared servos, whose friction looks like a load that reacts to the control
    if choice.state == "observer":
        graph = graph.with_parameters("estimator", unknown_loads=False)
    return graph


def _bus_period(robot: Robot) -> float:
    """Period in which the driver of a robot reports states [s]; 0 without servos."""
    from tensegrity_driver.hardware.settings import hardware_settings

    return hardware_settings(robot).safety.period if robot.servos else 0.0


def _followers(
    robot: str, choice: Choice, lockstep: bool, simulated_time: bool, watching: Watching
) -> list[NodeDescription]:
    """Estimator, controller and the nodes for display."""
    common = {"robot": robot, "use_sim_time": simulated_time}
    nodes = []
    if choice.state != "truth":
        nodes.append(NodeDescription("estimator", {**common, "lockstep": lockstep, "method": choice.state}))
    own = {"lockstep": lockstep, "controller": choice.controller, "control_period": choice.period}
    nodes.append(NodeDescription("controller", {**common, **own}))
    if watching.markers:
        nodes.append(NodeDescription("markers", common, may_end=True))
    if watching.view:
        nodes.append(
            NodeDescription("view", {**common, "port": watching.view_port, "host": watching.view_address}, may_end=True)
        )
    return nodes


HEARD_FIRST = "/clock joint_states tendon_states simulator/truth structure_state actuator_command"
"""Topics that a recorder must receive before it lets a simulator start."""


def recorder_node(robot: str, bag: str, **parameters: Any) -> NodeDescription:
    """The recorder. Raises TensegrityError: the path of the bag exists already."""
    path = Path(bag).expanduser().resolve()
    if path.exists():
        raise TensegrityError(f"the bag {bag} exists already; name another one or move it away.")
    if not path.parent.is_dir():
        raise TensegrityError(f"the bag {bag} cannot be made: there is no folder {path.parent}.")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise TensegrityError(f"the bag {bag} cannot be made: you may not write into {path.parent}.")
    named = {"robot": robot} if robot else {}  # otherwise the recorder asks the nodes
    return NodeDescription("recorder", {**named, "bag": str(path), **parameters}, may_end=True)


PACKET_TIMEOUT = 0.5
"""Longest wait for the answer of an emulated servo [s], which always arrives. On a busy computer (fifty programs on two
processors) its process sometimes waits longer than 0.1 s, and the configuration of a robot takes some hundred answers.
"""


def _at_pseudo_terminals(robot: Robot, folder: Path) -> dict[str, Any]:
    """Parameters of the driver if a separate process emulates the servos."""
    from tensegrity_driver.hardware.emulated_hardware import LONGEST_CYCLE_PERIODS

    parameters: dict[str, Any] = {"port": str(folder / "servos"), "calibration": str(folder / "calibration.json")}
    parameters.update(packet_timeout=PACKET_TIMEOUT, overrun=LONGEST_CYCLE_PERIODS)
    if any(servo["potentiometer"] is not None for servo in robot.servos["servos"]):
        parameters["board_port"] = str(folder / "potentiometers")
    return parameters
