"""Nodes of a replay: the player in place of a robot, with estimator and controller as in the recording.

In lock-step all nodes, the messages of the player and the clock are in the namespace `replay`. No node of a robot
receives messages or offers services there, whether it has been discovered in the domain or not.
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
from ..bags.replay_plan import FASTEST, NAMESPACE, READING, RECORDED, SLOWEST, STATE, TAKEN, make_plan
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
    """Node graph of a replay.

    Args:
        bag: bag to replay. folder: folder to which the recorded robot file is written.
        rate: playback rate, robot seconds per second; 0: estimator and controller compute their answers again, in
            lock-step.
        loop, start, paused: options of a replay at a rate; start in s. mount: pose of the base, see `parse_mount`.

    Raises:
        TensegrityError: there is no bag, it contains no robot, or there is nothing to compare; one sentence.
    """
    if rate and not SLOWEST <= rate <= FASTEST:  # NaN is outside, too
        raise TensegrityError(
            f"--rate is {rate:g}; give {SLOWEST:g} to {FASTEST:g}, or 0 for a comparison in lock-step."
        )
    if not 0.0 <= start < float("inf"):
        raise TensegrityError(f"--start is {start:g}; give a time in the bag from 0 s on.")
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
                # an estimator in real time does not wait for IMU readings, which arrive at separate rates
                waits = name == "controller" or bool((contents.of_node(name) or {}).get("lockstep", True))
                nodes.append(NodeDescription(name, {**own, **common, "lockstep": waits}))
    if shown.markers:
        # a replay publishes no goals
        nodes.append(NodeDescription("markers", {**common, "goal_marker": False, **mounted}, may_end=True))
    if shown.view:
        steered = {"replay": True} if plan is None else {}
        nodes.append(NodeDescription("view", {**common, "port": shown.view_port, **steered}, may_end=True))
    graph = NodeGraph(robot, choice, tuple(nodes), simulated_time=clock)
    if plan is None:
        return graph
    heard = ((STATE, RECORDED + STATE),)  # the player uses this name
    nodes = [each if each.name in ("estimator", "player") else replace(each, remappings=heard) for each in nodes]
    for name in (*TAKEN, READING):
        node, topic = name.split("/")
        nodes = [
            replace(each, remappings=(*each.remappings, (topic, RECORDED + name))) if each.name == node else each
            for each in nodes
        ]
    return replace(graph, nodes=tuple(nodes)).in_namespace(NAMESPACE)


def _robot(bag: Bag, contents: Contents, folder: Path) -> str:
    """File of the recorded robot, else the robot name of the nodes. Raises TensegrityError if neither exists."""
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
    """Recorded parameters of a node; the default ones if the bag does not contain them."""
    recorded = contents.of_node(name)
    if recorded is None:
        if name == "estimator":
            return {"method": choice.state}
        return {"controller": choice.controller, "control_period": choice.period}
    return {
        key: value for key, value in recorded.items()
        if isinstance(value, (bool, int, float, str)) and value != "" and key not in NOT_SET and "qos_over" not in key
    }  # fmt: skip
