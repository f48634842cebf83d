"""Construction of a `Structure` and its output frames from a robot file that satisfies the schema."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..contact.collision import Collision
from ..contact.file_schema import build_ground, check_start
from ..errors import TensegrityError, unknown_name
from ..robots.file_errors import Problems
from ..robots.robot_types import BuiltModel
from .analysis.desired_shape import find_rest_lengths
from .file_schema import StructureFile
from .imu import Imu
from .node_frame import NodeFrame
from .structure import Structure


def build_structure(block: StructureFile, problems: Problems) -> BuiltModel:
    """Build the pin-jointed model, the list of drivable tendons, and the output frames.

    Raises:
        RobotFileError: a name is unknown or repeated, a value is missing, or nodes have the same position.
    """
    _check_members(block, problems)
    values = {
        name: _values(block, name, otherwise, problems)
        for name, otherwise in (
            ("rest_length", None if block.form is None else np.nan),
            ("stiffness", None),
            ("mass", 0.0),
            ("damping", 0.0),
            ("initial_tension", 0.0),
        )
    }
    names = tuple(block.nodes)
    for i, output in enumerate(block.outputs):
        for name in output.nodes:
            if name not in names:
                problems.add(("outputs", i, "nodes", name), unknown_name("node", name, names))
        if output.name in [other.name for other in block.outputs[:i]]:
            problems.add(("outputs", i, "name"), f"the name {output.name!r} is used twice; give each output its own.")
    for i, member in enumerate(block.members):
        if values["initial_tension"][i] > 0.0 and (member.kind == "bar" or block.tension.law == "softplus"):
            why = "a bar has none" if member.kind == "bar" else "it goes with the hard law of tension alone"
            problems.add(("members", i), f"an initial tension is given, here or under defaults, but {why}.")
    carried, pushed = _loads(block, problems)
    imus = _imus(block, problems)
    held = np.array([node.held for node in block.nodes.values()], dtype=np.bool_).reshape(-1, 3)
    _check_rollers(block, held, problems)
    ground = build_ground(block.contact, problems)
    problems.stop_if_any()

    index = {name: row for row, name in enumerate(names)}
    structure = Structure(
        node_names=names,
        nodes=np.array([node.position for node in block.nodes.values()]),
        member_names=tuple(member.name for member in block.members),
        kinds=tuple(member.kind for member in block.members),
        members=np.array([[index[node] for node in member.nodes] for member in block.members], dtype=np.int64),
        stiffness=values["stiffness"],
        rest_lengths=np.where(np.isnan(values["rest_length"]), 1.0, values["rest_length"]),
        masses=values["mass"],
        damping=values["damping"],
        fixed=np.all(held, axis=1),
        node_masses=np.array([node.mass for node in block.nodes.values()]) + carried,
        gravity=np.array(block.gravity),
        ground=ground,
        smoothness=block.tension.smoothness if block.tension.law == "softplus" else 0.0,
        loads=pushed,
        collision=None if block.collision is None else Collision(**block.collision.model_dump()),
        initial_tensions=values["initial_tension"],
        imus=imus,
        rollers=held,
    )
    if block.form is not None:
        structure = _formed(structure, block, ~np.isnan(values["rest_length"]), problems)
    if ground is not None:
        weight = float(np.linalg.norm(structure.weights().sum(axis=0)))
        under = check_start(ground, names, structure.nodes, ~structure.fixed, weight)
        for i, message in under.items():
            problems.add(("nodes", names[i], "position"), message)
    if structure.collision is not None and structure.unilateral.all():
        problems.add(("collision",), "it is between bars, and this structure has none; leave it out.")
    bars = {member.name for member in block.members if member.kind == "bar"}
    for i, item in enumerate(block.actuators):
        if item.drives in bars and item.position[0] <= 0.0:
            problems.add(
                ("actuators", i, "position"),
                f"{item.drives} is a bar, whose length stays above zero; its lowest length is {item.position[0]:g} m.",
            )
    drivable = {member.name: "prismatic" if member.kind == "bar" else "tendon" for member in block.members}
    starts = dict(zip(structure.member_names, structure.rest_lengths.tolist(), strict=True))
    return BuiltModel(structure, drivable, _outputs(block, index, problems), starts)


def _formed(structure: Structure, block: StructureFile, stated: np.ndarray, problems: Problems) -> Structure:
    """Structure in equilibrium at its nodes, with computed rest lengths that are not given in the file."""
    assert block.form is not None
    for name in block.form.tensions:
        if name not in structure.member_names:
            problems.add(("form", "tensions", name), unknown_name("member", name, structure.member_names))
    problems.stop_if_any()
    try:
        found = find_rest_lengths(
            structure, prestress=block.form.prestress, tensions=block.form.tensions, kept=stated, move=block.form.move
        )
    except TensegrityError as error:
        problems.add(("form",), str(error))
        problems.stop_if_any()
    return replace(structure, nodes=found.nodes, rest_lengths=found.rest_lengths)


def _check_members(block: StructureFile, problems: Problems) -> None:
    seen: dict[str, int] = {}
    bars = {frozenset(member.nodes): member.name for member in block.members if member.kind == "bar"}
    for i, member in enumerate(block.members):
        if member.name in seen:
            row = seen[member.name]
            problems.add(("members", i, "name"), f"the name {member.name!r} is used by members[{row}] already.")
        seen.setdefault(member.name, i)
        unknown = [k for k, node in enumerate(member.nodes) if node not in block.nodes]
        for k in unknown:
            problems.add(("members", i, "nodes", k), unknown_name("node", member.nodes[k], block.nodes))
        if unknown:
            continue
        first, second = member.nodes
        if first == second:
            problems.add(("members", i, "nodes"), f"both ends are {first}; name two nodes.")
        elif block.nodes[first].position == block.nodes[second].position:
            problems.add(
                ("members", i, "nodes"),
                f"{first} and {second} start at the same position; move one, or the member has no direction.",
            )
        elif member.kind != "bar" and frozenset(member.nodes) in bars:
            problems.add(
                ("members", i, "nodes"),
                f"{first} and {second} are the ends of {bars[frozenset(member.nodes)]} already: a {member.kind} there "
                "only presses the bar; leave it out, or join other nodes.",
            )


def _check_rollers(block: StructureFile, held: np.ndarray, problems: Problems) -> None:
    for row, (name, node) in enumerate(block.nodes.items()):
        if node.is_slanted:
            problems.add(
                ("nodes", name, "fixed"),
                "this copy is turned, so that what it is held along is no axis of the world; write it beside `repeat`, "
                "or fix it whole.",
            )
        elif block.contact is not None and held[row].any() and not held[row].all():
            problems.add(
                ("nodes", name, "fixed"),
                "with a ground (contact) nodes are free or fixed whole; write true or false, or leave out the ground.",
            )


def _loads(block: StructureFile, problems: Problems) -> tuple[np.ndarray, np.ndarray]:
    """Masses (n,) [kg] and forces (n, 3) [N] on the nodes, from the block `loads`."""
    rows = {name: row for row, name in enumerate(block.nodes)}
    masses, forces, seen = np.zeros(len(rows)), np.zeros((len(rows), 3)), dict[str, int]()
    for i, item in enumerate(block.loads):
        if item.name in seen:
            problems.add(("loads", i, "name"), f"the name {item.name!r} is used by loads[{seen[item.name]}] already.")
        seen.setdefault(item.name, i)
        if item.node not in rows:
            problems.add(("loads", i, "node"), unknown_name("node", item.node, rows))
        elif (item.mass is None) == (item.force is None):
            problems.add(("loads", i), "give either a mass or a force.")
        else:
            masses[rows[item.node]] += item.mass or 0.0
            forces[rows[item.node]] += np.zeros(3) if item.force is None else np.array(item.force)
    return masses, forces


def _imus(block: StructureFile, problems: Problems) -> tuple[Imu, ...]:
    """IMUs from the block `imu`."""
    kinds = {member.name: member.kind for member in block.members}
    seen: dict[str, int] = {}
    for i, item in enumerate(block.imu):
        if kinds.get(item.bar) != "bar":
            bars = [name for name, kind in kinds.items() if kind == "bar"]
            why = f"{item.bar} is a {kinds[item.bar]}, and an IMU sits on a bar. " if item.bar in kinds else ""
            problems.add(("imu", i, "bar"), why + unknown_name("bar", item.bar, bars))
        elif item.bar in seen:
            problems.add(("imu", i, "bar"), f"{item.bar} carries imu[{seen[item.bar]}] already; one says all.")
        seen.setdefault(item.bar, i)
    if block.imu and not any(block.gravity):
        problems.add(("imu",), "it measures the direction of gravity, and there is none; leave it out.")
    return tuple(Imu(each.bar, each.noise, each.rate or 0.0, each.seed) for each in block.imu)


def _values(block: StructureFile, what: str, otherwise: float | None, problems: Problems) -> np.ndarray:
    """(m,) values of the members, from their blocks or from the defaults of their kind."""
    values = np.ones(len(block.members))
    for i, member in enumerate(block.members):
        for value in (getattr(member, what), getattr(getattr(block.defaults, member.kind), what), otherwise):
            if value is not None:
                values[i] = value
                break
        else:
            hint = _distance_hint(block, member.nodes) if what == "rest_length" else ""
            problems.add(("members", i), f"no {what} is given, here or under defaults.{member.kind}; add one{hint}.")
    return values


def _distance_hint(block: StructureFile, nodes: Sequence[str]) -> str:
    """Hint on a missing rest length, with the distance of the nodes in the file."""
    if any(name not in block.nodes for name in nodes):
        return ""
    one, other = (np.array(block.nodes[name].position) for name in nodes)
    return f" (its nodes are {np.linalg.norm(other - one):.6g} m apart), or a block `form`, which finds them"


def _outputs(block: StructureFile, index: dict[str, int], problems: Problems) -> tuple[NodeFrame, ...]:
    made = []
    for i, output in enumerate(block.outputs):
        nodes = np.array([index[name] for name in output.nodes], dtype=np.int64)
        try:
            made.append(NodeFrame(output.name, nodes, np.array(list(output.nodes.values())), tuple(output.controlled)))
        except TensegrityError as error:
            problems.add(("outputs", i), str(error))
    return tuple(made)
