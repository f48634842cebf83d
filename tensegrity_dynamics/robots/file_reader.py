"""Reader of robot files: from text to `Robot`, with all errors of a file in one report; see `load_robot`."""

from __future__ import annotations

import math
from pathlib import Path

from pydantic import ValidationError

from ..errors import TensegrityError, unknown_name
from .actuator import Actuator, Motor
from .default_values import fill_defaults
from .extensions import import_extensions, motors_of, read_blocks, with_blocks
from .file_errors import Problems, spell
from .repetition import expand
from .robot import Provenance, Robot, TourStop
from .robot_types import BuiltModel, RobotType, robot_type, robot_types
from .schema import ActuatorBlock, CommonBlock
from .units import SI, BaseUnits, RefusedParametersError
from .yaml_source import YamlSource, read_text


def read_robot(text: str, source_name: str, path: Path | None) -> Robot:
    """See `parse_robot`."""
    source = YamlSource(text, source_name)
    problems = Problems(source, Path() if path is None else path.parent)
    kind = _kind(source, problems)
    units = _units(source, problems)
    problems.stop_if_any()
    units = _parameters(source, units, problems)
    robot_kind = robot_type(kind)
    fill_defaults(source, robot_kind.schema, problems)
    problems.stop_if_any()
    repetitions = expand(source, units, robot_kind.schema, problems)
    block = _validated(source, robot_kind, units, problems)
    repetitions.move(block)
    built = robot_kind.builder(block, problems)
    actuators = _actuators(block, built, problems)
    problems.stop_if_any()  # avoids reports of consequential errors
    _check_tour(block, built, problems)
    blocks = read_blocks(block, actuators, problems)
    problems.stop_if_any()
    return Robot(
        name=block.name,
        model=built.model,
        actuators=actuators,
        servo_motors=motors_of(actuators, blocks),
        outputs=built.outputs,
        tour=tuple(TourStop(t.name, tuple(t.move), tuple(t.turn), t.duration, t.tolerance) for t in block.tour),  # type: ignore[arg-type]
        servos=blocks.pop("servos", {}),
        blocks=blocks,
        provenance=tuple(Provenance(p.fields, p.status, p.note) for p in block.provenance),
        description=block.description.strip(),
        source=block.source.strip(),
        path=path,
    )


def line_of(robot: Robot, part: tuple[str, ...]) -> str:
    """Prefix "file:line: nodes.a: " of a part, or an empty text if it is not in the file.

    The file is read again, because errors are rare.
    """
    if robot.path is None or not part:
        return ""
    try:
        source = YamlSource(read_text(robot.path), str(robot.path))
        problems = Problems(source, robot.path.parent)
        units = _parameters(source, _units(source, problems), problems)
        schema = robot_type(_kind(source, problems)).schema
        fill_defaults(source, schema, problems)
        expand(source, units, schema, problems)
    except TensegrityError:
        return ""
    block, *names = part
    found = source.data.get(block)
    path: list[str | int] = [block]
    if names and isinstance(found, list):  # lists such as members, whose items have a name
        path += [k for k, each in enumerate(found) if isinstance(each, dict) and each.get("name") == names[0]][:1]
    elif names and isinstance(found, dict):
        path += [name for name in names[:1] if name in found]
    if found is None or len(path) <= len(names):
        return ""
    return f"{source.name}:{source.line(path)}: {spell(source.data, path)}: "


# -- fields that are needed before the others can be read -----------------------------------------------------------


def _kind(source: YamlSource, problems: Problems) -> str:
    kind = source.data.get("kind")
    if isinstance(kind, str) and kind not in robot_types():
        import_extensions()
    available = robot_types()
    if kind is None:
        # kind with the most fields in the file
        likely = max(available, key=lambda name: len(source.data.keys() & robot_type(name).schema.model_fields.keys()))
        problems.add(("kind",), f"missing; add 'kind: {likely}'. Allowed: {', '.join(available)}.")
    elif not isinstance(kind, str) or kind not in available:
        problems.add(("kind",), unknown_name("kind of robot", str(kind)[:60], available))
    return str(kind)


def _units(source: YamlSource, problems: Problems) -> BaseUnits:
    found = source.data.get("units", {})
    if not isinstance(found, dict):
        problems.add(("units",), "a mapping is needed, such as {length: in, force: lbf}.")
        return BaseUnits()
    for dimension, unit in found.items():
        if dimension not in SI:
            problems.add(("units", dimension), unknown_name("dimension", dimension[:60], SI))
        else:
            try:
                BaseUnits({dimension: str(unit)})
            except ValueError as error:
                problems.add(("units", dimension), f"{error}.")
    problems.stop_if_any()
    return BaseUnits(found)


def _parameters(source: YamlSource, units: BaseUnits, problems: Problems) -> BaseUnits:
    found = source.data.get("parameters", {})
    if not isinstance(found, dict):
        problems.add(("parameters",), 'a mapping is needed, such as {radius: "70 mm", side: 2 * radius}.')
        found = {}
    try:
        units = units.with_parameters(found)
    except RefusedParametersError as error:
        for name, reason in error.reasons:
            problems.add(("parameters", name), f"{reason}.")
    problems.stop_if_any()
    return units


def _validated(source: YamlSource, kind: RobotType, units: BaseUnits, problems: Problems) -> CommonBlock:
    schema = with_blocks(kind.schema, source.data)
    context = {"units": units, "motion": kind.motions(source.data)}
    try:
        return schema.model_validate(source.data, context=context)
    except ValidationError as error:
        for item in error.errors():
            problems.add_invalid(schema, item)
    problems.stop_if_any()
    raise AssertionError("a validation error without problems")


# -- parts of all robots --------------------------------------------------------------------------------------------


def _actuators(block: CommonBlock, built: BuiltModel, problems: Problems) -> tuple[Actuator, ...]:
    made: list[Actuator] = []
    for i, item in enumerate(block.actuators):
        if item.drives not in built.drivable:
            problems.add(("actuators", i, "drives"), unknown_name("drivable part", item.drives, built.drivable))
            continue
        name = item.name or item.drives
        part = built.model.joint_of(item.drives)
        clash = [other for other in made if name == other.name or part == built.model.joint_of(other.drives)]
        if clash:
            problems.add(("actuators", i), f"{item.drives} is driven by actuator {clash[0].name} already.")
            continue
        low, high = item.position
        start = built.starts.get(item.drives)
        if start is not None and low <= start <= high:
            least, most = built.ranges.get(item.drives, (low, high))
            low, high = max(low, least), min(high, most)
        try:
            actuator = Actuator(
                name,
                item.drives,
                (low, high),
                item.rate,
                item.effort,
                item.minimum_tension,
                built.drivable[item.drives],
                _motor(item, name, ("actuators", i), problems),
            )
        except TensegrityError as error:
            problems.add(("actuators", i), str(error))
            continue
        drive = ("rotor_inertia", "motor_damping", "motor_friction", "efficiency")
        given = [field for field in drive if field in item.model_fields_set]
        if actuator.motion == "tendon" and given:
            problems.add(
                ("actuators", i, given[0]),
                "the spools of a structure have neither inertia nor friction; leave it out.",
            )
        made.append(actuator)
        if start is not None and not low <= start <= high:
            what = "rest length" if actuator.motion == "tendon" else "start"
            unit = actuator.units[0]
            problems.add(
                ("actuators", i, "position"),
                f"the {what} of {item.drives}, {start:g} {unit}, is outside its limits {low:g} to {high:g} {unit}; "
                "widen the limits.",
            )
    return tuple(made)


def _motor(item: ActuatorBlock, name: str, path: tuple[str | int, ...], problems: Problems) -> Motor | None:
    """Motor defined in the block of an actuator."""
    if item.free_rate is not None and item.stall_effort is not None:
        return Motor(f"the motor of {name}", item.free_rate, item.stall_effort)
    if item.free_rate is not None or item.stall_effort is not None:
        missing = "stall_effort" if item.stall_effort is None else "free_rate"
        problems.add(path, f"speed over torque takes free_rate and stall_effort; give {missing}, too.")
    return None


def _check_tour(block: CommonBlock, built: BuiltModel, problems: Problems) -> None:
    if block.tour and not built.outputs:
        problems.add(("tour",), "goals need an output to move; add one under 'outputs'.")
        return
    for i, stop in enumerate(block.tour):
        turned = math.hypot(*stop.turn)
        if turned > math.pi * (1.0 + 1e-9):
            problems.add(
                ("tour", i, "turn"),
                f"{math.degrees(turned):.6g} deg is more than half a turn, which no pose tells from a shorter turn the "
                "other way. Numbers without a unit are rad; for degrees write '5 deg', or units: {angle: deg}.",
            )
        for field, axes in (("move", ("x", "y", "z")), ("turn", ("rx", "ry", "rz"))):
            for k, axis in enumerate(axes):
                controlled = built.outputs[0].controlled
                if getattr(stop, field)[k] != 0.0 and axis not in controlled:
                    problems.add(
                        ("tour", i, field, k),
                        f"{axis} is not controlled by the output; it controls {', '.join(controlled)}.",
                    )
