"""Several nodes of a graph in one process, by their names.

    python -m tensegrity_tools.ros.composed_node simulator estimator controller --ros-args -p simulator:robot:=tensebot

Parameters and remappings start with the name of their node, as usual in ROS: `-p node:parameter:=value`,
`-r node:from:=to`. Nodes after `--may-end` are not required by the others.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import pairwise

from rclpy.utilities import remove_ros_args

from tensegrity_dynamics.ros.composition import run_composed
from tensegrity_dynamics.ros.robot_node import RobotNode

from ..runtime.node_graph import COMPOSABLE, MODULES


def maker(name: str) -> Callable[[], RobotNode]:
    """Function that creates a node, by its name in the graph."""

    def make() -> RobotNode:
        node: RobotNode = getattr(import_module(MODULES[name]), f"{name.title()}Node")()
        return node

    return make


def own_arguments(name: str, words: Sequence[str]) -> list[str]:
    """ROS arguments of a node, without its name.

    ROS applies `-p node:parameter:=value` only to `/node`, not to the same node in a namespace.
    """
    own = []
    for flag, text in pairwise(words):
        if flag in ("-p", "--param", "-r", "--remap") and text.startswith(f"{name}:"):
            own += [flag, text[len(name) + 1 :]]
    return ["--ros-args", *own] if own else []


def main() -> int:
    """Run the nodes."""
    names = remove_ros_args(sys.argv)[1:]
    needed, may_end = names, []
    if "--may-end" in names:
        cut = names.index("--may-end")
        needed, may_end = names[:cut], names[cut + 1 :]
    unknown = sorted({*needed, *may_end} - set(COMPOSABLE))
    if unknown or not needed:
        print(f"cannot compose {', '.join(unknown) or 'nothing'}; there are {', '.join(COMPOSABLE)}", file=sys.stderr)
        return 1
    everybody = (*needed, *may_end)
    arguments = {name: own_arguments(name, sys.argv) for name in everybody}
    return run_composed({name: maker(name) for name in everybody}, may_end, arguments)


if __name__ == "__main__":
    sys.exit(main())
