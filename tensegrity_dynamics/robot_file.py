"""Robots from YAML files: `load_robot("name")` or `load_robot("my/robot.yaml")`.

Every error names file, line and field, what was found and what is allowed; all errors of a file come together.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from importlib import resources
from pathlib import Path
from typing import Any, get_args

import numpy as np
from pydantic import BaseModel, ValidationError

from .errors import RobotFileError, TensegrityError, unknown_name
from .output_frame import OutputFrame
from .robot import Actuator, Provenance, Robot, TourStop
from .robot_schema import KINDS, CommonBlock, MechanismFile, StructureFile
from .structure import Structure
from .units import SI, BaseUnits
from .yaml_source import YamlSource, read_text


def shipped_robots() -> tuple[str, ...]:
    """Names of the robots that come with the project."""
    folder = resources.files("tensegrity_dynamics") / "robots"
    return tuple(sorted(item.name[:-5] for item in folder.iterdir() if item.name.endswith(".yaml")))


def load_robot(robot: str | Path) -> Robot:
    """A robot by the name of a shipped one, or from a file (anything with a slash or an ending .yaml).

    Raises:
        RobotFileError: there is no such robot, or its file is wrong; see the module.
    """
    text = str(robot)
    if text in shipped_robots():
        path = Path(str(resources.files("tensegrity_dynamics") / "robots" / f"{text}.yaml"))
    elif text.endswith((".yaml", ".yml")) or "/" in text or "\\" in text:
        path = Path(text).expanduser()
        if not path.is_file():
            raise RobotFileError(f"{path}: there is no such file. Shipped robots: {', '.join(shipped_robots())}.")
    else:
        raise RobotFileError(unknown_name("robot", text, shipped_robots()) + " Or give the path of a .yaml file.")
    return parse_robot(read_text(path), str(path), path)


def parse_robot(text: str, name: str = "robot.yaml", path: Path | None = None) -> Robot:
    """A robot from the text of a file; `name` is how errors call it."""
    source = YamlSource(text, name)
    kind = source.data.get("kind")
    if kind not in KINDS:
        found = "it is missing" if kind is None else f"found {kind!r}"
        raise RobotFileError(f"{name}:{source.line(('kind',))}: kind: {found}; allowed: {', '.join(KINDS)}.")
    block = _validate(source, KINDS[kind], _units(source), kind)
    if isinstance(block, MechanismFile):
        from .multibody.model import mechanism_model

        model, outputs = mechanism_model(block, source)
        known = list(model.mechanism.movable_joints())
    else:
        assert isinstance(block, StructureFile)
        model, outputs = _structure(block, source), ()
        known = [m for m, k in zip(model.member_names, model.kinds, strict=True) if k != "bar"]
        outputs = tuple(_output(item, i, model, source) for i, item in enumerate(block.outputs))
    return Robot(
        name=block.name,
        model=model,
        actuators=_actuators(block, known, source),
        outputs=outputs,
        tour=tuple(TourStop(t.name, tuple(t.move), tuple(t.turn), t.duration) for t in block.tour),  # type: ignore[arg-type]
        contact=block.contact.model_dump() if block.contact else {},
        servos=_servos(block, source),
        provenance=tuple(Provenance(p.fields, p.status, p.note) for p in block.provenance),
        description=block.description.strip(),
        source=block.source.strip(),
        path=path,
    )


# -- validation -----------------------------------------------------------------------------------------------------


def _units(source: YamlSource) -> BaseUnits:
    found = source.data.get("units", {})
    if not isinstance(found, dict):
        raise RobotFileError(f"{source.name}:{source.line(('units',))}: units: a mapping such as {{length: in}} is needed.")
    for dimension, unit in found.items():
        line = source.line(("units", dimension))
        if dimension not in SI:
            raise RobotFileError(f"{source.name}:{line}: units: " + unknown_name("dimension", dimension, SI))
        try:
            BaseUnits({dimension: unit})
        except ValueError as error:
            raise RobotFileError(f"{source.name}:{line}: units.{dimension}: {error}.") from None
    return BaseUnits(found)


def _validate(source: YamlSource, schema: type[CommonBlock], units: BaseUnits, kind: str) -> CommonBlock:
    try:
        return schema.model_validate(source.data, context={"units": units, "kind": kind})
    except ValidationError as error:
        lines = sorted({_problem(source, schema, item) for item in error.errors()})
    raise RobotFileError("\n".join(text for _, text in lines))


def _problem(source: YamlSource, schema: type[BaseModel], item: Any) -> tuple[int, str]:
    """Line and text of one validation error."""
    path = [part for part in item["loc"] if part == "[key]" or _present(source.data, item["loc"], part)]
    path = [part for part in path if part != "[key]"]
    line = source.line(path)
    where = _spell(source.data, item["loc"])
    kind, found = item["type"], item.get("input")
    if kind == "extra_forbidden":
        known = _known_fields(schema, item["loc"][:-1])
        near = get_close_matches(str(item["loc"][-1]), known, n=1, cutoff=0.5)
        guess = f" Did you mean {near[0]!r}?" if near else ""
        text = f"{where}: unknown field.{guess} Allowed: {', '.join(known)}."
    elif kind == "missing":
        line = source.line([part for part in item["loc"][:-1]])
        text = f"{where}: missing; add it."
    elif kind == "value_error":
        text = f"{where}: {item['ctx']['error']}, found {_show(found)}."
    elif kind == "string_pattern_mismatch":
        text = f"{where}: {_show(found)} is not a name; use letters, digits, _ and -, starting with a letter."
    else:
        message = item["msg"][0].lower() + item["msg"][1:]
        text = f"{where}: {message}, found {_show(found)}."
    return line, f"{source.name}:{line}: {text}"


def _present(data: Any, location: Sequence[Any], part: Any) -> bool:
    """Whether a part of pydantic's location is one of the file's own keys (and not a name of a validator)."""
    for step in location:
        if isinstance(data, dict) and step in data:
            data = data[step]
        elif isinstance(data, list) and isinstance(step, int) and step < len(data):
            data = data[step]
        else:
            return False
        if step is part:
            return True
    return False


def _spell(data: Any, location: Sequence[Any]) -> str:
    """A field in words: members[3] (draw_1).stiffness."""
    text = ""
    for step in location:
        if isinstance(step, int):
            data = data[step] if isinstance(data, list) and step < len(data) else None
            name = data.get("name") if isinstance(data, dict) else None
            text += f"[{step}]" + (f" ({name})" if isinstance(name, str) else "")
        elif step != "[key]":
            if isinstance(data, dict):
                data = data.get(step)
            elif text:
                continue  # a validator's name, not a field
            text += f".{step}" if text else str(step)
    return text or "file"


def _known_fields(schema: Any, location: Sequence[Any]) -> list[str]:
    """Field names allowed at a place of the schema."""
    current: Any = schema
    for step in location:
        if isinstance(step, str) and isinstance(current, type) and issubclass(current, BaseModel):
            if step in current.model_fields:
                current = _model_in(current.model_fields[step].annotation)
    return list(current.model_fields) if isinstance(current, type) and issubclass(current, BaseModel) else []


def _model_in(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for part in get_args(annotation):
        found = _model_in(part)
        if found is not None:
            return found
    return None


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def fail(source: YamlSource, path: Sequence[Any], message: str) -> RobotFileError:
    """The error for a field of a file."""
    return RobotFileError(f"{source.name}:{source.line(path)}: {_spell(source.data, path)}: {message}")


# -- building -------------------------------------------------------------------------------------------------------


def _structure(block: StructureFile, source: YamlSource) -> Structure:
    names = tuple(block.nodes)
    seen: dict[str, int] = {}
    for i, member in enumerate(block.members):
        if member.name in seen:
            raise fail(source, ("members", i, "name"), f"the name {member.name!r} is used by members[{seen[member.name]}].")
        seen[member.name] = i
        for k, node in enumerate(member.nodes):
            if node not in names:
                raise fail(source, ("members", i, "nodes", k), unknown_name("node", node, names))
        if member.nodes[0] == member.nodes[1]:
            raise fail(source, ("members", i, "nodes"), f"both ends are {member.nodes[0]}; name two nodes.")

    def value(i: int, what: str, otherwise: float | None) -> float:
        member = block.members[i]
        own = getattr(member, what)
        given = own if own is not None else getattr(getattr(block.defaults, member.kind), what)
        if given is None and otherwise is None:
            raise fail(source, ("members", i), f"no {what} is given, here or under defaults.{member.kind}; add one.")
        return float(otherwise if given is None else given)  # type: ignore[arg-type]

    rows = range(len(block.members))
    try:
        return Structure(
            node_names=names,
            nodes=np.array([node.position for node in block.nodes.values()]),
            member_names=tuple(member.name for member in block.members),
            kinds=tuple(member.kind for member in block.members),
            members=np.array([[names.index(node) for node in member.nodes] for member in block.members], dtype=np.int64),
            stiffness=np.array([value(i, "stiffness", None) for i in rows]),
            rest_lengths=np.array([member.rest_length for member in block.members]),
            masses=np.array([value(i, "mass", 0.0) for i in rows]),
            damping=np.array([value(i, "damping", 0.0) for i in rows]),
            fixed=np.array([node.fixed for node in block.nodes.values()], dtype=np.bool_),
            node_masses=np.array([node.mass for node in block.nodes.values()]),
            gravity=np.array(block.gravity),
        )
    except RobotFileError:
        raise
    except TensegrityError as error:
        raise RobotFileError(f"{source.name}:{source.line(('members',))}: {error}") from None


def _output(item: Any, i: int, structure: Structure, source: YamlSource) -> OutputFrame:
    for name in item.nodes:
        if name not in structure.node_names:
            raise fail(source, ("outputs", i, "nodes", name), unknown_name("node", name, structure.node_names))
    nodes = np.array([structure.node_names.index(name) for name in item.nodes], dtype=np.int64)
    try:
        return OutputFrame(item.name, nodes, np.array(list(item.nodes.values())), tuple(item.controlled))
    except TensegrityError as error:
        raise fail(source, ("outputs", i), str(error)) from None


def _actuators(block: CommonBlock, known: list[str], source: YamlSource) -> tuple[Actuator, ...]:
    made: list[Actuator] = []
    for i, item in enumerate(block.actuators):
        if item.drives not in known:
            raise fail(source, ("actuators", i, "drives"), unknown_name("tendon or joint", item.drives, known))
        name = item.name or item.drives
        for other in made:
            if name == other.name or item.drives == other.drives:
                raise fail(source, ("actuators", i), f"{item.drives} is already driven by actuator {other.name}.")
        low, high = item.position
        try:
            made.append(Actuator(name, item.drives, (low, high), item.rate, item.effort, item.minimum_tension))
        except TensegrityError as error:
            raise fail(source, ("actuators", i), str(error)) from None
    return tuple(made)


def _servos(block: CommonBlock, source: YamlSource) -> dict[str, Any]:
    if block.servos is None:
        return {}
    names = [item.name or item.drives for item in block.actuators]
    ids: set[int] = set()
    for i, servo in enumerate(block.servos.servos):
        if servo.actuator not in names:
            raise fail(source, ("servos", "servos", i, "actuator"), unknown_name("actuator", servo.actuator, names))
        if servo.id in ids:
            raise fail(source, ("servos", "servos", i, "id"), f"id {servo.id} is used twice; every servo needs its own.")
        ids.add(servo.id)
    return block.servos.model_dump()
