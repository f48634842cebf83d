"""The nodes of a replay: the player instead of a robot, and with it estimator and controller as they were recorded.

In lock-step all of it is in the namespace `replay`, what the player sends and the clock included: no node of a robot
hears or serves anything there, whether it has been found in the domain or not.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import TensegrityError

from ..bags.contents import Contents, read_contents
from ..bags.reader import Bag
from ..bags.replay_plan import NAMESPACE, RECORDED, STATE, TAKEN, make_plan
from .node_graph import Choice, NodeDescription, NodeGraph, Watching, choose

NOT_SET = ("use_sim_time", "start_type_description_service", "robot", "lockstep")


def replay_graph(
    bag: Path | str,
    folder: Path,
    *,
    rate: float = 0.0,
    loop: bool = False,
    start: float = 0.0,
    paused: bool = False,
    mount: str = "",
    watching: Watching | None = None,
) -> NodeGraph:
    """The nodes of a replay.

    Args:
        bag: to be replayed. folder: where the recorded robot file is put.
        rate: robot seconds per second at which it is shown; 0: estimator and controller answer again, in lock-step.
        loop, start, paused: of a replay at a rate; start in s. mount: where the robot stands, see `parse_mount`.

    Raises:
        TensegrityError: there is no bag, no robot in it, or nothing to compare; one sentence.
    """
    if rate < 0.0:
        raise TensegrityError(f"--rate is {rate:g}; give a number above 0, or 0 for a comparison in lock-step.")
    if not rate and (loop or paused or start):
        raise TensegrityError("--loop, --paused and --start are for a replay at a rate; add --rate 1.")
    with Bag(bag) as opened:
        contents = read_contents(opened)
        robot = _robot(opened, contents, folder)
        plan = None if rate else make_plan(opened, contents)
        clock = "/clock" in opened.topics and opened.topics["/clock"].count > 0
    shown = watching or Watching()
    common: dict[str, Any] = {"robot": robot, "use_sim_time": clock}
    player: dict[str, Any] = {"bag": str(Path(bag).resolve()), "lockstep": plan is not None}
    if plan is None:
        player |= {"rate": rate, "loop": loop, "position": float(start), "paused": paused}
        player["listeners"] = int((watching or Watching()).markers) + int((watching or Watching()).view)
    nodes = [NodeDescription("player", player)]
    mounted = {"mount": mount} if mount else {}
    choice = choose(load_robot(robot))
    if plan is not None:
        for name, runs in (("estimator", plan.estimator), ("controller", plan.controller)):
            if runs:
                own = _parameters(contents, name, choice)
                # an estimator by the clock waits for no readings of IMUs, which come at rates of their own
                waits = name == "controller" or bool((contents.of_node(name) or {}).get("lockstep", True))
                nodes.append(NodeDescription(name, {**own, **common, "lockstep": waits}))
    if shown.markers:
        # nobody's goals go out of a replay
        nodes.append(NodeDescription("markers", {**common, "goal_marker": False, **mounted}, may_end=True))
    if shown.view:
        steered = {"replay": True} if plan is None else {}
        nodes.append(NodeDescription("view", {**common, "port": shown.view_port, **steered}, may_end=True))
    graph = NodeGraph(robot, choice, tuple(nodes), simulated_time=clock)
    if plan is None:
        return graph
    heard = ((STATE, RECORDED + STATE),)  # the player names it itself
    nodes = [each if each.name in ("estimator", "player") else replace(each, remappings=heard) for each in nodes]
    for name in TAKEN:
        node, topic = name.split("/")
        nodes = [
            replace(each, remappings=(*each.remappings, (topic, RECORDED + name))) if each.name == node else each
            for each in nodes
        ]
    return replace(graph, nodes=tuple(nodes)).in_namespace(NAMESPACE)


def _robot(bag: Bag, contents: Contents, folder: Path) -> str:
    """File of the recorded robot, else the name that the nodes had. Raises TensegrityError where neither is there."""
    if contents.robot_text:
        path = contents.robot_path
        with contextlib.suppress(OSError):
            if path is not None and path.read_text(encoding="utf-8", errors="replace") == contents.robot_text:
                return str(path)
        file = folder / "recorded_robot.yaml"
        file.write_text(contents.robot_text, encoding="utf-8")
        return str(file)
    for name in ("controller", "estimator", "simulator", "driver"):
        robot = (contents.of_node(name) or {}).get("robot")
        if robot:
            return str(robot)
    raise TensegrityError(f"{bag.path} does not name its robot: it has neither robot_file nor the nodes' parameters.")


def _parameters(contents: Contents, name: str, choice: Choice) -> dict[str, Any]:
    """The recorded parameters of a node; the usual ones where they are not in the bag."""
    recorded = contents.of_node(name)
    if recorded is None:
        if name == "estimator":
            return {"method": choice.state}
        return {"controller": choice.controller, "control_period": choice.period}
    return {
        key: value for key, value in recorded.items()
        if isinstance(value, (bool, int, float, str)) and value != "" and key not in NOT_SET and "qos_over" not in key
    }  # fmt: skip
