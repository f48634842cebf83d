"""Construction of the `MechanismModel` and the outputs from a robot file that satisfies the schema of mechanisms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError, unknown_name
from ..numerics.rotations import matrix_from_vector
from ..robots.file_errors import Problems
from ..robots.robot_types import BuiltModel
from .body_frame import BodyFrame
from .cable_routing import LEAST_SQUARE, CableEntry
from .file_contact import read_contact_parts, stand_on_ground
from .file_elasticity import stretch_fits
from .file_loads import read_loads, with_drive_trains
from .file_meshes import read_meshes
from .file_resistance import ResistanceReader
from .file_routes import read_routes, with_routes
from .file_schema import BodyBlock, CableBlock, FrameBlock, JointBlock, MechanismFile, PrimitiveBlock
from .frame import Frame
from .initial_position import closed_start, rough_start
from .loop_joints import Loop
from .mechanism import WORLD, Body, Cable, Joint, Mechanism
from .mechanism_model import MechanismModel
from .primitives import DIMENSIONS, Primitive, body_from

Path = tuple[Any, ...]


def build_mechanism(block: MechanismFile, problems: Problems) -> BuiltModel:
    """Build the mechanism with closed loops, the list of drivable parts, and the outputs.

    Raises:
        RobotFileError: a name is unknown or repeated, a body has no joint or two, cables share a pulley or are too
            short, loops cannot close or are redundant, or a mass is missing.
    """
    _check_names(block, problems)
    reader = ResistanceReader(block, problems)
    bodies = [
        _stated(
            _body(name, item, block.density, ("bodies", name), problems),
            item,
            ("bodies", name),
            problems,
        )
        for name, item in block.bodies.items()
    ]
    joints = [_joint(item, ("joints", i), reader, problems) for i, item in enumerate(block.joints)]
    payloads, loads = read_loads(block, problems)
    order = _parents_first(block, problems)
    loops = [each for i in range(len(block.loops)) if (each := _loop(block, i, reader, problems)) is not None]
    entries = [entry for i in range(len(block.cables)) if (entry := _entry(block, i, reader, problems)) is not None]
    _check_pulleys(block, problems)
    outputs = _outputs(block, problems)
    routes = read_routes(block, problems)
    contact_parts = read_contact_parts(block, frame_of, problems)
    problems.stop_if_any()

    entries, joints = with_drive_trains(block, entries, joints, problems)
    problems.stop_if_any()
    all_joints = [joints[i] for i in order]
    all_loops: list[Loop] = []
    cables: list[Cable] = []
    for i, entry in enumerate(entries):
        try:
            more, turning, loop, cable = entry.parts()
        except TensegrityError as error:
            problems.add(("cables", i), str(error))
            continue
        bodies += more
        all_joints += turning
        all_loops.append(loop)
        cables += [cable] if cable is not None else []
    problems.stop_if_any()
    try:
        mechanism = Mechanism(
            tuple(bodies),
            tuple(all_joints),
            (*all_loops, *loops),
            tuple(cables),
            np.array(block.gravity),  # type: ignore[arg-type]
            payloads,
            loads,
        )
    except TensegrityError as error:
        problems.add(("joints",), str(error))
    problems.stop_if_any()
    whole = MechanismModel(mechanism, mechanism.neutral(), tuple(entries))
    rough = rough_start(block, whole, problems)
    problems.stop_if_any()
    model = closed_start(block, whole, rough, problems)
    problems.stop_if_any()
    model = with_routes(model, routes, problems)
    model = stand_on_ground(block, model, contact_parts, problems)
    problems.stop_if_any()
    start_of = {name: model.start[model.mechanism.positions_of(model.joint_of(name))][0] for name in model.drivable}
    starts = {name: round(float(value), 12) + 0.0 for name, value in start_of.items()}  # avoids -0 from rounding
    return BuiltModel(model, model.drivable, outputs, starts, model.driven_ranges())


# -- names ----------------------------------------------------------------------------------------------------------


def _check_names(block: MechanismFile, problems: Problems) -> None:
    bodies = (WORLD, *block.bodies)
    for name in block.bodies:
        if name == WORLD:
            problems.add(("bodies", name), "the world is there already; give the body another name.")
    for i, joint in enumerate(block.joints):
        for field in ("parent", "body"):
            name = getattr(joint, field)
            if name not in bodies:
                problems.add(("joints", i, field), unknown_name("body", name, bodies))
        if joint.body == WORLD:
            problems.add(("joints", i, "body"), "a joint cannot carry the world; make it the parent.")
    for i, loop in enumerate(block.loops):
        for field in ("before", "after"):
            name = getattr(loop, field)
            if name not in bodies:
                problems.add(("loops", i, field), unknown_name("body", name, bodies))
    for i, cable in enumerate(block.cables):
        for path, name in (((), cable.body), (("anchor",), cable.anchor.body)):
            if name not in bodies:
                problems.add(("cables", i, *path, "body"), unknown_name("body", name, bodies))
        if cable.body == cable.anchor.body:
            problems.add(
                ("cables", i, "anchor", "body"), f"the cable ends on {cable.body}, which also carries its pulley."
            )
    for field in ("joints", "loops", "cables", "outputs"):
        seen: dict[str, int] = {}
        for i, item in enumerate(getattr(block, field)):
            if item.name in seen:
                problems.add(
                    (field, i, "name"), f"the name {item.name!r} is used by {field}[{seen[item.name]}] already."
                )
            seen.setdefault(item.name, i)
    made = {f"{cable.name}-{part}": i for i, cable in enumerate(block.cables) for part in ("block", "pulley", "cable")}
    for name in block.bodies:
        if name in made:
            problems.add(("bodies", name), f"cables[{made[name]}] makes a body of that name; give this one another.")
    problems.stop_if_any()


def _parents_first(block: MechanismFile, problems: Problems) -> list[int]:
    """Order of the joints in which the joint of every parent comes first; the order of the file if it is valid."""
    carried: dict[str, int] = {}
    for i, joint in enumerate(block.joints):
        if joint.body in carried:
            first = block.joints[carried[joint.body]].name
            problems.add(
                ("joints", i, "body"),
                f"{joint.body} is carried by joint {first} already; what closes a loop belongs under 'loops'.",
            )
        carried.setdefault(joint.body, i)
    for name in block.bodies:
        if name not in carried:
            problems.add(("bodies", name), "no joint carries it; add one under 'joints' whose body it is.")
    carried_bodies, order, left = {WORLD}, [], list(range(len(block.joints)))
    while left:
        ready = [i for i in left if block.joints[i].parent in carried_bodies]
        if not ready:
            for i in left:
                if block.joints[i].parent in carried:
                    problems.add(("joints", i), "it hangs on itself through its parents; let one of them be the world.")
            break
        order.append(ready[0])
        carried_bodies.add(block.joints[ready[0]].body)
        left.remove(ready[0])
    return order


def _check_pulleys(block: MechanismFile, problems: Problems) -> None:
    for i, cable in enumerate(block.cables):
        for other in block.cables[:i]:
            if cable.body == other.body and np.allclose(cable.at, other.at, rtol=0.0, atol=1e-9):
                problems.add(
                    ("cables", i, "at"),
                    f"the pulley of cable {other.name} is at this point of {cable.body} already, and one pulley "
                    "carries one cable; give each its own.",
                )


# -- parts ----------------------------------------------------------------------------------------------------------


def frame_of(block: FrameBlock, path: Path, problems: Problems) -> Frame:
    """Frame given by a rotation vector, by the directions of z and y, or by z alone (with the smallest rotation)."""
    axes = np.eye(3)
    if block.turn is not None and (block.z is not None or block.y is not None):
        problems.add(path, "give either 'turn' or the directions 'z' and 'y', not both.")
    elif block.turn is not None:
        axes = matrix_from_vector(np.array(block.turn))
    elif block.z is not None or block.y is not None:
        z, y = (_direction(getattr(block, name), (*path, name), problems) for name in ("z", "y"))
        if z is not None and y is not None:
            if abs(z @ y) > 1e-6:
                problems.add(path, f"z and y must be square to each other; their product is {z @ y:.3g}.")
            y = y - (z @ y) * z
            y /= np.linalg.norm(y) or 1.0
            axes = np.column_stack((np.cross(y, z), y, z))
        elif z is not None:
            axes = smallest_rotation(np.array([0.0, 0.0, 1.0]), z)
        elif y is not None:
            axes = smallest_rotation(np.array([0.0, 1.0, 0.0]), y)
    try:
        return Frame(np.array(block.at), axes)
    except TensegrityError as error:
        problems.add(path, str(error))
        return Frame()


def smallest_rotation(start: NDArray[np.float64], end: NDArray[np.float64]) -> NDArray[np.float64]:
    """(3, 3) rotation with the smallest angle that maps one unit vector to another."""
    axis, cosine = np.cross(start, end), float(start @ end)
    if cosine < -1.0 + 1e-12:  # opposite vectors: any perpendicular axis is valid
        across = np.cross(start, [1.0, 0.0, 0.0] if abs(start[0]) < 0.5 else [0.0, 1.0, 0.0])
        return matrix_from_vector(np.pi * across / np.linalg.norm(across))
    sine = float(np.linalg.norm(axis))
    return np.eye(3) if sine < 1e-15 else matrix_from_vector(axis / sine * np.arctan2(sine, cosine))


def _direction(value: Sequence[float] | None, path: Path, problems: Problems) -> NDArray[np.float64] | None:
    if value is None:
        return None
    norm = float(np.linalg.norm(value))
    if norm < 1e-9:
        problems.add(path, "a direction cannot be all zero.")
        return np.array([0.0, 0.0, 1.0])
    return np.array(value) / norm


def _body(name: str, item: BodyBlock, density: float, path: Path, problems: Problems) -> Body:
    primitives = _primitives(item.shapes, density, (*path, "shapes"), problems)
    return body_from(name, primitives, read_meshes(item, frame_of, path, problems))


def _stated(body: Body, item: BodyBlock, path: Path, problems: Problems) -> Body:
    """Body with the mass, centre and inertia given in the file, in place of those of its shapes."""
    if item.mass is None and item.centre is None and item.inertia is None:
        return body
    if item.mass is None:
        problems.add(path, "give the body's mass, too: its centre and inertia stand instead of what its shapes have.")
        return body
    inertia = np.zeros((3, 3))
    if item.inertia is not None:
        if len(item.inertia) not in (3, 6):
            problems.add(
                (*path, "inertia"), f"give 3 numbers (xx, yy, zz) or 6 (and xy, xz, yz); found {len(item.inertia)}."
            )
            return body
        xx, yy, zz, xy, xz, yz = (*item.inertia, 0.0, 0.0, 0.0)[:6]
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        moments = np.linalg.eigvalsh(inertia)
        if moments[2] > (moments[0] + moments[1]) * (1.0 + 1e-9):
            problems.add(
                (*path, "inertia"),
                f"no body has it: the largest principal moment {moments[2]:.4g} kg m^2 is above the sum of the others, "
                f"{moments[0] + moments[1]:.4g}.",
            )
            return body
        if item.mass == 0.0:
            problems.add((*path, "inertia"), "a body without mass has no inertia; give its mass.")
            return body
    elif body.mass > 0.0:  # same mass distribution as the shapes
        inertia = body.inertia * (item.mass / body.mass)
    try:
        centre = body.centre if item.centre is None else np.array(item.centre)
        return Body(body.name, item.mass, centre, inertia, body.shapes, body.meshes)
    except TensegrityError as error:
        problems.add(path, str(error))
        return body


def _primitives(
    shapes: Sequence[PrimitiveBlock], density: float, path: Path, problems: Problems
) -> tuple[Primitive, ...]:
    made = []
    for i, shape in enumerate(shapes):
        if shape.density is not None and shape.mass is not None:
            problems.add((*path, i), "give either its density or its mass, not both.")
            continue
        dimensions = DIMENSIONS[shape.kind]
        if len(shape.size) != len(dimensions):
            problems.add(
                (*path, i, "size"),
                f"a {shape.kind} has {len(dimensions)} dimensions ({', '.join(dimensions) or 'none'}); "
                f"found {len(shape.size)}.",
            )
            continue
        own = density if shape.density is None else shape.density
        try:
            made.append(
                Primitive(
                    shape.kind, tuple(shape.size), own, shape.mass, frame_of(shape.frame, (*path, i, "frame"), problems)
                )
            )
        except TensegrityError as error:
            problems.add((*path, i), str(error))
    return tuple(made)


def _joint(item: JointBlock, path: Path, reader: ResistanceReader, problems: Problems) -> Joint:
    axis = _direction(item.axis, (*path, "axis"), problems)
    frame = frame_of(item.frame, (*path, "frame"), problems)
    resistance = reader.of_joint(item, path)
    try:
        return Joint(item.name, item.kind, item.parent, item.body, frame, axis, resistance=resistance)  # type: ignore[arg-type]
    except TensegrityError as error:
        problems.add((*path, "resistance"), str(error))
        return Joint(item.name, item.kind, item.parent, item.body, frame, axis)  # type: ignore[arg-type]


def _loop(block: MechanismFile, i: int, reader: ResistanceReader, problems: Problems) -> Loop | None:
    item = block.loops[i]
    frames = [frame_of(getattr(item, name), ("loops", i, name), problems) for name in ("frame_before", "frame_after")]
    try:
        turning = reader.read(item.turning, True, ("loops", i, "turning"))
        sliding = reader.read(item.sliding, False, ("loops", i, "sliding"))
        return Loop(item.name, item.kind, item.before, item.after, frames[0], frames[1], turning, sliding)
    except TensegrityError as error:
        problems.add(("loops", i), str(error))
        return None


def _entry(block: MechanismFile, i: int, reader: ResistanceReader, problems: Problems) -> CableEntry | None:
    item: CableBlock = block.cables[i]
    block_axis = _direction(item.block_axis, ("cables", i, "block_axis"), problems)
    pulley_axis = _direction(item.pulley_axis, ("cables", i, "pulley_axis"), problems)
    assert block_axis is not None and pulley_axis is not None
    if abs(block_axis @ pulley_axis) > 1e-6 and not item.skew:
        problems.add(
            ("cables", i, "pulley_axis"),
            f"it must be square to block_axis; their product is {block_axis @ pulley_axis:.3g}. Where that is meant, "
            "say skew: true.",
        )
        return None
    if np.linalg.norm(np.cross(block_axis, pulley_axis)) < LEAST_SQUARE:
        problems.add(
            ("cables", i, "pulley_axis"),
            "it lies along block_axis, so that the block cannot turn the pulley towards its anchor; turn one of them.",
        )
        return None
    if not stretch_fits(item, item.variant == "rigid", ("young",), ("cables", i), problems):
        return None
    if not item.skew:
        pulley_axis = pulley_axis - (pulley_axis @ block_axis) * block_axis
    return CableEntry(
        item.name, item.body, np.array(item.at), block_axis, pulley_axis, item.pulley_radius, item.anchor.body,
        np.array(item.anchor.at), item.young or 1.0, item.cable_radius, item.damping, item.variant,
        np.inf if item.length is None else item.length, item.strain or 0.0,
        _primitives(item.block, block.density, ("cables", i, "block"), problems),
        _primitives(item.pulley, block.density, ("cables", i, "pulley"), problems),
        item.pulley_joint or "",
        reader.of_cable(item, "block", ("cables", i)), reader.of_cable(item, "pulley", ("cables", i)),
        swivel=np.array(item.swivel),
    )  # fmt: skip


def _outputs(block: MechanismFile, problems: Problems) -> tuple[BodyFrame, ...]:
    made = []
    for i, item in enumerate(block.outputs):
        if item.body not in block.bodies:
            problems.add(("outputs", i, "body"), unknown_name("body", item.body, block.bodies))
            continue
        frame = frame_of(item.frame, ("outputs", i, "frame"), problems)
        try:
            made.append(BodyFrame(item.name, item.body, frame, tuple(item.controlled)))
        except TensegrityError as error:
            problems.add(("outputs", i), str(error))
    return tuple(made)
