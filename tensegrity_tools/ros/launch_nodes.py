"""A node graph for the launch system: what both launch files share."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ament_index_python.packages import PackageNotFoundError, get_package_prefix
from launch import LaunchContext, LaunchDescription  # type: ignore[attr-defined]
from launch.actions import DeclareLaunchArgument, OpaqueFunction, Shutdown
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from tensegrity_dynamics.ending import END_WITH_PARENT
from tensegrity_dynamics.errors import TensegrityError

from ..runtime.node_graph import COMPOSED, STATES, NodeGraph, ProcessDescription, Watching

YES_NO = ("true", "false")

Arguments = Mapping[str, str]


def argument(name: str, default: str, text: str, choices: tuple[str, ...] | None = None) -> DeclareLaunchArgument:
    """A launch argument with its default, described, and restricted to choices where there are some."""
    return DeclareLaunchArgument(name, default_value=default, description=text, choices=choices)


VIEW_ARGUMENTS = (
    argument("view", "true", "the browser view", YES_NO),
    argument("view_port", "8080", "where browsers find the view; the next free port where it is taken"),
    argument("view_address", "127.0.0.1", "that the view listens on; 0.0.0.0 lets other machines in, with the token"),
    argument("rviz", "false", "start rviz2 too", YES_NO),
)
COMMON_ARGUMENTS = (
    argument("robot", "tensebot", "a shipped robot, or the path of a robot file"),
    argument("controller", "", "which (docs/control.md); empty: the usual one of the robot"),
    argument("state", "", "where the state comes from; empty: what the controller needs", ("", *STATES)),
    argument("control_period", "0", "s between two commands; 0: what the controller needs"),
    argument("namespace", "", "of all nodes, where several robots share a ROS domain; then the clock is theirs, too"),
    argument("frame_prefix", "", "before the names of the robot's frames; empty: the namespace with a slash"),
    *VIEW_ARGUMENTS,
)
BAG_ARGUMENT = argument("bag", "", "folder of a bag that everything is recorded into; empty: none")


def description(
    arguments: tuple[DeclareLaunchArgument, ...],
    graph: Callable[[Arguments], NodeGraph],
    common: tuple[DeclareLaunchArgument, ...] = COMMON_ARGUMENTS,
) -> LaunchDescription:
    """A launch description that starts the nodes of a graph.

    Args:
        arguments: besides the common ones. common: those that several launch files have.
        graph: makes the graph of the arguments' texts; what it refuses ends the launch with its sentence before any
            process starts.
    """
    declared = (*common, *arguments)

    def start(context: LaunchContext) -> list[Any]:
        texts = {each.name: LaunchConfiguration(each.name).perform(context) for each in declared}
        try:
            if texts["rviz"] == "true":
                _check_rviz()
            made = graph(texts)
            if "namespace" in texts:
                made = made.in_namespace(texts["namespace"], texts["frame_prefix"])
        except TensegrityError as error:
            raise RuntimeError(str(error)) from None
        return [*_nodes(made), *_rviz(made, texts)]

    return LaunchDescription([*declared, OpaqueFunction(function=start)])


def common_choices(texts: Arguments) -> dict[str, Any]:
    """What the arguments that both launch files have mean to a graph."""
    return {
        "controller": texts["controller"],
        "state": texts["state"],
        "control_period": number(texts, "control_period"),
        "watching": watching(texts),
    }


def watching(texts: Arguments) -> Watching:
    """Who shows what happens."""
    return Watching(
        view=texts["view"] == "true",
        view_port=int(number(texts, "view_port")),
        view_address=texts["view_address"],
    )


def number(texts: Arguments, name: str) -> float:
    """The number of an argument. Raises TensegrityError where it is none."""
    try:
        return float(texts[name])
    except ValueError:
        raise TensegrityError(f"{name}:={texts[name]} is no number.") from None


def _nodes(graph: NodeGraph) -> list[Node]:
    """The nodes; all end with one that the others need, none with one that only shows."""
    return [
        Node(
            package="tensegrity",
            executable=f"{process.name}_node",
            namespace=graph.namespace or None,
            output="screen",
            # whatever ends launch, even SIGKILL, ends its nodes
            additional_env={END_WITH_PARENT: str(os.getpid())},
            on_exit=None if process.may_end else Shutdown(reason=f"the {graph.process(process.name)} ended"),
            **_settings(process),
        )
        for process in graph.processes()
    ]


def _settings(process: ProcessDescription) -> dict[str, Any]:
    """Name, parameters and remappings of a node alone; of nodes in one process words that name each of them."""
    if process.name == COMPOSED:
        return {"arguments": replace(process, namespace="").arguments}
    (node,) = process.nodes
    values = {key: ParameterValue(value, value_type=type(value)) for key, value in node.parameters.items()}
    return {"name": node.name, "remappings": list(node.remappings), "parameters": [values]}


def _check_rviz() -> None:
    """Raise TensegrityError where rviz2 is not installed; launch would say so only when all others run."""
    try:
        found = (Path(get_package_prefix("rviz2")) / "lib" / "rviz2" / "rviz2").exists()
    except (PackageNotFoundError, ValueError):
        found = False
    if not found:
        raise TensegrityError("rviz:=true, but rviz2 is not installed; install ros-$ROS_DISTRO-rviz2, or leave it out.")


def _rviz(graph: NodeGraph, texts: Arguments) -> list[Node]:
    if texts["rviz"] != "true":
        return []
    node = Node(
        package="rviz2",
        executable="rviz2",
        arguments=["-d", PathJoinSubstitution([FindPackageShare("tensegrity"), "rviz", "tensegrity.rviz"])],
        parameters=[{"use_sim_time": graph.simulated_time}],
    )
    return [node]
