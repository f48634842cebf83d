"""Node graph for the launch system: common part of the launch files."""

from __future__ import annotations

import atexit
import os
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ament_index_python.packages import PackageNotFoundError, get_package_prefix
from launch import LaunchContext, LaunchDescription  # type: ignore[attr-defined]
from launch.actions import (
    DeclareLaunchArgument,
    ExecuteProcess,
    LogInfo,
    OpaqueFunction,
    RegisterEventHandler,
    Shutdown,
)
from launch.event_handlers import OnProcessIO, OnProcessStart
from launch.logging import get_logger
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import ExecutableInPackage, FindPackageShare

from tensegrity_dynamics.ending import END_WITH_PARENT
from tensegrity_dynamics.errors import TensegrityError, unknown_name

from ..runtime.choices import YES_NO, check_among, check_ports, choices_for, choices_from_texts, resolve, values_of
from ..runtime.compiled_kernels import CompiledKernels
from ..runtime.emulator_process import emulator_arguments, prepare_emulator
from ..runtime.node_graph import COMPOSED, Emulator, NodeGraph, ProcessDescription
from ..runtime.processes import LastOfNodes, temporary_folder

READY = "ready: "
"""Text in the line that the controller logs when it has taken over."""

PARENT = {END_WITH_PARENT: str(os.getpid())}
"""Environment with which nodes end together with launch, even if launch is killed by SIGKILL."""
SIGTERM_TIMEOUT = "2"
"""Time from Ctrl-C until launch sends SIGTERM to a node that still runs [s] (default of launch: 5). A node that starts
at the moment of Ctrl-C does not receive the SIGINT of the terminal, and all nodes have to end within five seconds."""
RVIZ = "rviz"


def launch_description(use: str) -> LaunchDescription:
    """Launch description of a use: its arguments and the resulting nodes.

    Invalid arguments end the launch with an error of one sentence before any process starts.
    """
    rviz = _argument(RVIZ, False, "start rviz2 with the configuration for this launch file", YES_NO)
    declared = [
        *(_argument(each.name, each.default, each.metadata["text"], values_of(each)) for each in choices_for(use)),
        rviz,
    ]

    def start(context: LaunchContext) -> list[Any]:
        texts = {each.name: LaunchConfiguration(each.name).perform(context) for each in declared}
        folder = temporary_folder("launch")
        atexit.register(folder.cleanup)
        try:
            _check_names(use, [each.name for each in declared])
            check_among(RVIZ, texts[RVIZ], YES_NO)
            if texts[RVIZ] == "true":
                _check_rviz()
            choices = choices_from_texts(use, texts, Path(folder.name))
            kernels = CompiledKernels(choices.robot, choices.controller)
            compiles = use != "replay" and not kernels.are_ready  # a replay controls no robot
            if compiles:  # print it at once: loading the robot starts the compilation
                get_logger("launch").info(kernels.why)
            graph = resolve(choices)
            check_ports(graph)
            if graph.emulator is not None:
                prepare_emulator(graph.emulator)
        except TensegrityError as error:
            raise RuntimeError(in_words_of_launch(str(error))) from None
        said = [LogInfo(msg=str(graph.choice))] if "controller" in graph else []
        last = LastOfNodes()
        atexit.register(last.close)
        started = RegisterEventHandler(OnProcessStart(on_start=lambda event, _: last.add(event.pid)))
        actions = [*said, started, *_actions(graph), *(_rviz(graph, use) if texts[RVIZ] == "true" else [])]
        return _after_compiling(kernels, actions) if compiles else actions

    return LaunchDescription([*declared, OpaqueFunction(function=start)])


def _after_compiling(kernels: CompiledKernels, then: list[Any]) -> list[Any]:
    """Actions that compile the kernels before the nodes start, so that nodes do not compile while the robot moves."""
    process = ExecuteProcess(
        cmd=kernels.command, name="compile", output="screen", additional_env=PARENT,
        on_exit=lambda event, context: [] if context.is_shutdown else then,
    )  # fmt: skip
    return [process]


def _check_names(use: str, names: list[str]) -> None:
    """Raise TensegrityError for a command line argument that this launch file does not have; launch would ignore it.

    This applies only if this launch file was called directly, since a file that includes it may have other arguments.
    """
    if not any(Path(word).name == f"{use}.launch.py" for word in sys.argv[1:]):
        return
    for word in sys.argv[1:]:
        name, assigned, _ = word.partition(":=")
        if assigned and name not in names:
            raise TensegrityError(unknown_name("launch argument", name, names))


def in_words_of_launch(text: str) -> str:
    """Sentence about options of `tensegrity up`, converted to launch arguments: "--view-port" becomes "view_port"."""
    return re.sub(r"(?<![\w-])--([a-z][a-z-]*)", lambda found: found[1].replace("-", "_"), text)


def _argument(name: str, default: Any, text: str, among: tuple[str, ...]) -> DeclareLaunchArgument:
    """Launch argument with its description; values are checked later, together, as launch prints its errors twice."""
    values = f"; one of {', '.join(repr(each) for each in among)}" if among else ""
    usual = str(default).lower() if isinstance(default, bool) else str(default)
    return DeclareLaunchArgument(name, default_value=usual, description=text + values)


def _actions(graph: NodeGraph) -> list[Any]:
    """Actions of the nodes; the end of a required node ends all nodes, the end of a display node does not."""
    waiting: list[Any] = []
    others: list[Any] = []
    for process in graph.processes():
        (waiting if graph.waits(process) else others).extend(_node(process, graph))
    return [*(_emulator(graph.emulator, waiting) if graph.emulator is not None else []), *others]


def _node(process: ProcessDescription, graph: NodeGraph) -> list[Any]:
    words = _Words()
    node = Node(
        package="tensegrity",
        executable=f"{process.name}_node",
        namespace=graph.namespace or None,
        output="screen",
        additional_env=PARENT,
        on_exit=_at_end(process, graph, words),
        sigterm_timeout=LaunchConfiguration("sigterm_timeout", default=SIGTERM_TIMEOUT),
        **_settings(process),
    )
    listener = OnProcessIO(target_action=node, on_stdout=words.hear, on_stderr=words.hear)
    return [RegisterEventHandler(listener), node]


def _at_end(process: ProcessDescription, graph: NodeGraph, words: _Words) -> Callable[..., list[Any]]:
    """Function for the end of a process: it ends all processes, or prints a line if the others continue.

    Raises:
        RuntimeError: raised by the returned function if a required process failed; the launch then ends with status 1.
    """
    who = graph.process(process.name)

    def ended(event: Any, context: LaunchContext) -> list[Any]:
        if context.is_shutdown:
            return []
        # a simulated robot that no controller can hold is shown without a controller
        unfit = process.name == "controller" and "simulator" in graph and event.returncode == 1 and words.refused
        if process.may_end and not event.returncode:
            return []  # launch reports the end; on Ctrl-C it may end first
        if process.may_end or unfit:
            return [LogInfo(msg=f"the {who} ended with status {event.returncode}; the robot continues without it")]
        if event.returncode:
            raise RuntimeError(f"the {who} ended with status {event.returncode}; all others are ended too")
        return [Shutdown(reason=f"the {who} has ended")]

    return ended


class _Words:
    """Output of a process, as far as it is relevant at its end."""

    def __init__(self) -> None:
        self._began = self._crashed = False

    def hear(self, event: Any) -> None:
        """Evaluate its output."""
        self._began |= READY.encode() in event.text
        self._crashed |= b"Traceback" in event.text

    @property
    def refused(self) -> bool:
        """Whether the process neither started its work nor crashed."""
        return not (self._began or self._crashed)


def _emulator(emulator: Emulator, then: list[Any]) -> list[Any]:
    """Actions for emulated servos in a separate process; the driver starts when their ports exist."""
    process = ExecuteProcess(
        cmd=[ExecutableInPackage("emulator", "tensegrity"), *emulator_arguments(emulator)],
        name="emulator", output="screen",
        additional_env={**PARENT, "PYTHONUNBUFFERED": "1"},
        on_exit=lambda event, context: [] if context.is_shutdown else [Shutdown(reason="the emulator ended")],
    )  # fmt: skip
    waiting = list(then)

    def look(_: Any) -> list[Any]:
        if not waiting or not emulator.is_ready:
            return []
        found = list(waiting)
        waiting.clear()
        return found

    return [RegisterEventHandler(OnProcessIO(target_action=process, on_stdout=look)), process]


def _settings(process: ProcessDescription) -> dict[str, Any]:
    """Name, parameters and remappings of a single node; for nodes in one process, arguments that name each of them."""
    if process.name == COMPOSED:
        return {"arguments": replace(process, namespace="").arguments}
    (node,) = process.nodes
    values = {key: ParameterValue(value, value_type=type(value)) for key, value in node.parameters.items()}
    return {"name": node.name, "remappings": list(node.remappings), "parameters": [values]}


def _check_rviz() -> None:
    """Raise TensegrityError if rviz2 is not installed; launch would report this only when all other nodes run."""
    try:
        found = (Path(get_package_prefix("rviz2")) / "lib" / "rviz2" / "rviz2").exists()
    except (PackageNotFoundError, ValueError):
        found = False
    if not found:
        raise TensegrityError("rviz:=true, but rviz2 is not installed; install ros-$ROS_DISTRO-rviz2, or leave it out.")


def _rviz(graph: NodeGraph, use: str) -> list[Node]:
    node = Node(
        package="rviz2",
        executable="rviz2",
        namespace=graph.namespace or None,
        arguments=["-d", PathJoinSubstitution([FindPackageShare("tensegrity"), "rviz", f"{use}.rviz"])],
        parameters=[{"use_sim_time": graph.simulated_time}],
    )
    return [node]
