"""Options for the start of a robot, by `tensegrity up` or by a launch file.

Both create a `Choices`; `resolve` converts it to the node graph. Before any process starts it refuses contradicting
options, with an error of one sentence. Texts and defaults of launch arguments are defined only here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import TensegrityError, unknown_name
from tensegrity_dynamics.robots.quantities import read_quantity
from tensegrity_dynamics.visualization.mount import parse_mount

from ..network_address import check_address
from .node_graph import EMULATED, STATES, NodeGraph, Watching, hardware_graph, simulation_graph
from .replay_graph import replay_graph

USES = ("sim", "hardware", "replay")
YES_NO = ("true", "false")
LONGEST_DELAY = 1.0
"""Largest artificial delay of commands [s]."""


def _choice(
    default: Any, text: str, uses: str = "sim hardware", among: tuple[str, ...] | None = None, kind: str = "number"
) -> Any:
    """Dataclass field of an option: default, description, the uses that have it, the allowed values, and the kind of
    quantity of a number: texts may have a unit, as in "10 ms"."""
    return field(default=default, metadata={"text": text, "uses": tuple(uses.split()), "among": among, "kind": kind})


@dataclass(frozen=True)
class Choices:
    """Options of a start; the names are those of the launch arguments.

    Args:
        use: one of `USES`. folder: folder of the pseudo-terminals of emulated servos, or of the robot file of a bag;
            the program that starts the nodes creates and removes it.
    """

    use: str
    folder: Path | None = None
    robot: str = _choice("tensebot", "name of a shipped robot, or path of a robot file")
    controller: str = _choice("", "name of the controller (docs/control.md); empty: the default of the robot")
    state: str = _choice("", "source of the state; empty: as the controller needs", among=("", *STATES))
    control_period: float = _choice(0.0, "period of the commands [s]; 0: as the controller needs", kind="time")
    lockstep: bool = _choice(
        False, "true: simulator (or emulated servos) and controller wait for each other; every run gives the same "
        "numbers",
    )  # fmt: skip
    composed: bool = _choice(
        False, "true: one process for simulator, estimator, controller and markers; faster in lock-step and at "
        "start-up", "sim",
    )  # fmt: skip
    real_time_factor: float = _choice(1.0, "simulated seconds per second of real time, if lockstep is false", "sim")
    command_delay: float = _choice(
        0.0, "artificial delay of commands [s], rounded to control periods", "sim", kind="time"
    )
    state_delay: float = _choice(0.0, "artificial delay of states [s], rounded to control periods", "sim", kind="time")
    delay_jitter: float = _choice(
        0.0, "largest additional delay of each state and command [s], drawn at random for each", "sim", kind="time"
    )
    paused: bool = _choice(
        False, "start paused; the service simulator/set_paused, for a replay `ros2 param set /player paused false`, "
        "continues", "sim replay",
    )  # fmt: skip
    port: str = _choice("", "serial port of the servos, or `emulated` for servos without hardware", "hardware")
    board_port: str = _choice("", "serial port of the potentiometer board, if there is one", "hardware")
    calibration: str = _choice("", "calibration file; empty: that of the robot file", "hardware")
    deactivate: str = _choice(
        "hold", "state of the servos after the driver is deactivated or ends", "hardware", ("hold", "torque off")
    )
    bag: str = _choice(
        "", "new folder of a bag that records all topics, or the bag to replay (folder, .mcap or .db3)",
        "sim hardware replay",
    )  # fmt: skip
    rate: float = _choice(
        1.0, "robot seconds per second of real time; 0: run estimator and controller again and compare", "replay"
    )
    start: float = _choice(0.0, "start time in the bag [s]", "replay", kind="time")
    loop: bool = _choice(False, "start again at the end of the bag", "replay")
    namespace: str = _choice("", "namespace of all nodes and of the clock, if several robots share a ROS domain")
    frame_prefix: str = _choice("", "prefix of the robot's frame names; empty: the namespace with a slash")
    mount: str = _choice(
        "", "pose of the robot's base_link in the world: x y z in m, then roll pitch yaw in degrees",
        "sim hardware replay",
    )  # fmt: skip
    view: bool = _choice(True, "start the browser view", "sim hardware replay")
    view_port: int = _choice(
        8080, "port of the browser view; the next free port if it is in use", "sim hardware replay"
    )
    view_address: str = _choice(
        "127.0.0.1",
        "address on which the view listens; 0.0.0.0 admits other machines, with the token",
        "sim hardware replay",
    )

    @property
    def watching(self) -> Watching:
        """Nodes for display."""
        if self.use == "replay" and not self.rate:  # comparison at full speed: no display
            return Watching(markers=False, view=False)
        return Watching(view=self.view, view_port=self.view_port, view_address=self.view_address)


def choices_for(use: str) -> tuple[dataclasses.Field[Any], ...]:
    """Options of a use."""
    return tuple(each for each in dataclasses.fields(Choices) if use in each.metadata.get("uses", ()))


def choices_from_texts(use: str, texts: Mapping[str, str], folder: Path | None = None) -> Choices:
    """Options from texts by name (`name:=text`); missing options keep their defaults.

    Raises:
        TensegrityError: a text is not a number or time, or not an allowed value.
    """
    by_name = {each.name: each for each in choices_for(use)}
    return Choices(
        use, folder, **{name: _value(by_name[name], text) for name, text in texts.items() if name in by_name}
    )


def values_of(choice: dataclasses.Field[Any]) -> tuple[str, ...]:
    """Allowed texts of an option; empty if it is not restricted to a few values."""
    return YES_NO if isinstance(choice.default, bool) else choice.metadata["among"] or ()


def check_among(name: str, text: str, among: tuple[str, ...]) -> None:
    """Raise TensegrityError for a text that is not in `among`; an empty `among` allows all texts."""
    if among and text not in among:
        raise TensegrityError(f"{name}:={text} is none of {', '.join(repr(each) for each in among)}.")


def _value(choice: dataclasses.Field[Any], text: str) -> Any:
    check_among(choice.name, text, values_of(choice))
    if isinstance(choice.default, bool):
        return text == "true"
    if isinstance(choice.default, float):
        return read_quantity(text, choice.metadata["kind"], choice.name)
    if not isinstance(choice.default, int):
        return text
    try:
        return int(text)
    except ValueError:
        raise TensegrityError(f"{choice.name}:={text} is no whole number.") from None


def resolve(choices: Choices) -> NodeGraph:
    """Node graph of the options, with all parameters.

    Raises:
        TensegrityError: an option does not exist, or options contradict each other; one sentence.
    """
    if choices.use not in USES:
        raise TensegrityError(unknown_name("use", choices.use, USES))
    if not 1 <= choices.view_port <= 65535:
        raise TensegrityError(f"the view cannot listen at port {choices.view_port}; give 1 to 65535.")
    if choices.view:
        check_address(choices.view_address)
    parse_mount(choices.mount)
    if choices.use == "replay":
        return _replay(choices)
    common: dict[str, Any] = {
        name: getattr(choices, name) for name in ("controller", "state", "control_period", "lockstep", "bag")
    }
    if choices.use == "sim":
        for name in ("command_delay", "state_delay", "delay_jitter"):
            if not 0.0 <= getattr(choices, name) <= LONGEST_DELAY:
                what = name.replace("_", " ")
                raise TensegrityError(f"the {what} is {getattr(choices, name)} s; give 0 to {LONGEST_DELAY:g}.")
        if not 0.01 <= choices.real_time_factor <= 100.0:
            raise TensegrityError(f"the real time factor is {choices.real_time_factor:g}; give 0.01 to 100.")
        graph = simulation_graph(
            choices.robot, real_time_factor=choices.real_time_factor, command_delay=choices.command_delay,
            state_delay=choices.state_delay, delay_jitter=choices.delay_jitter, paused=choices.paused,
            watching=choices.watching, **common,
        )  # fmt: skip
    else:
        graph = hardware_graph(
            choices.robot, port=choices.port, board=choices.board_port, calibration=choices.calibration,
            deactivate=choices.deactivate, emulator_folder=choices.folder, watching=choices.watching, **common,
        )  # fmt: skip
    graph = graph.in_namespace(choices.namespace, choices.frame_prefix)
    if choices.mount:
        graph = graph.with_parameters("markers", mount=choices.mount)
    return graph.as_composed() if choices.composed else graph


def _replay(choices: Choices) -> NodeGraph:
    if not choices.bag:
        raise TensegrityError("name the bag to replay: its folder, or a .mcap or .db3 file.")
    if choices.folder is None:
        raise TensegrityError("a replay needs a folder for the robot file of its bag.")
    return replay_graph(
        choices.bag, choices.folder, rate=choices.rate, start=choices.start, loop=choices.loop, paused=choices.paused,
        mount=choices.mount, watching=choices.watching,
    )  # fmt: skip


def check_ports(graph: NodeGraph) -> None:
    """Check the serial ports before the first process starts; `resolve` alone does not check them.

    Raises:
        TensegrityError: a port of the driver is missing, is not a serial port or may not be used.
    """
    if "driver" not in graph or graph.emulator is not None:  # the process of the emulator creates its ports
        return
    given = graph["driver"].parameters
    port, board = given.get("port", ""), given.get("board_port") or None
    if port == EMULATED:
        return
    from tensegrity_driver.hardware.serial_hardware import SerialHardware

    SerialHardware(port, board).check_ports(load_robot(graph.robot))


def parameter_table(graph: NodeGraph) -> list[tuple[str, str, str]]:
    """(node, parameter, value) of all parameters of a graph, in order; the folder of this run is shown as `FOLDER`."""
    folder = graph.emulator.folder if graph.emulator is not None else None
    rows = []
    for node in graph:
        for name, value in sorted(node.parameters.items()):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            rows.append((node.name, name, text.replace(str(folder), "FOLDER") if folder else text))
        rows += [(node.name, "remapping", f"{used} -> {given}") for used, given in node.remappings]
    return rows
