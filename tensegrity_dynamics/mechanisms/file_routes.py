"""Reader for the routed cables of the robot file of a mechanism."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..errors import TensegrityError, unknown_name
from ..robots.file_errors import Problems
from .file_elasticity import stretch_fits
from .file_schema import MechanismFile, RoutedCableBlock, RoutePointBlock
from .mechanism import WORLD
from .mechanism_model import MechanismModel
from .routing.route import Layers, RoutedCable, RoutePoint

Path = tuple[str | int, ...]


def read_routes(block: MechanismFile, problems: Problems) -> tuple[RoutedCable, ...]:
    """Routed cables; errors are added to the problems with their field."""
    taken = {cable.name: f"cables[{i}]" for i, cable in enumerate(block.cables)}
    joints = {joint.name: joint.kind for joint in block.joints}
    made = []
    for i, item in enumerate(block.routed_cables):
        if item.name in taken:
            problems.add(("routed_cables", i, "name"), f"the name {item.name!r} is used by {taken[item.name]} already.")
        taken.setdefault(item.name, f"routed_cables[{i}]")
        if (cable := _cable(item, block, joints, ("routed_cables", i), problems)) is not None:
            made.append(cable)
    return tuple(made)


def with_routes(model: MechanismModel, routes: tuple[RoutedCable, ...], problems: Problems) -> MechanismModel:
    """Model with its routed cables, initialised at its start."""
    if not routes:
        return model
    from .route_initialization import RouteError, initialize_routes  # imported here to keep other imports fast

    try:
        mechanism = initialize_routes(model.mechanism, model.start, routes)
    except RouteError as error:
        problems.add(("routed_cables", error.cable), str(error))
        return model
    return MechanismModel(mechanism, model.start, model.entries, routes)


def _cable(
    item: RoutedCableBlock, block: MechanismFile, joints: Mapping[str, str], path: Path, problems: Problems
) -> RoutedCable | None:
    given = [name for name in ("strain", "tension", "length") if getattr(item, name) is not None]
    if len(given) > 1:
        problems.add(path, f"give one of strain, tension and length; found {' and '.join(given)}.")
        return None
    if not _fits_its_kind(item, path, problems):
        return None
    last = len(item.route) - 1
    points = [
        _point(each, k in (0, last), block, joints, (*path, "route", k), problems) for k, each in enumerate(item.route)
    ]
    if any(point is None for point in points):
        return None
    route = tuple(point for point in points if point is not None)
    if not item.sag and len({point.joint or point.body for point in route}) == 1:
        problems.add((*path, "route"), f"all its points are on {route[0].body}; a cable connects two bodies.")
        return None
    young, radius = item.young or 1.0, item.cable_radius or 0.0
    area = np.pi * radius**2
    strain = item.strain or 0.0
    if item.tension is not None:
        strain = item.tension / (young * area)
    line_mass = area * item.density if item.sag and item.density is not None else 0.0
    return RoutedCable(item.name, route, young, radius, item.damping, strain, item.length, item.rigid, line_mass)


def _fits_its_kind(item: RoutedCableBlock, path: Path, problems: Problems) -> bool:
    """Whether an elastic, inextensible or sagging cable has exactly the fields that it needs."""
    wrong: list[str] = []

    def refuse(message: str, *field: str | int) -> None:
        wrong.append(message)
        problems.add((*path, *field), message)

    if item.rigid and item.sag:
        refuse("a cable that sags stretches; take one of rigid and sag.", "sag")
    if item.rigid:
        for k, point in enumerate(item.route):
            if point.friction_speed:
                refuse(
                    "a rigid cable slips by the exact law; take one that stretches, or leave it out.",
                    "route", k, "friction_speed",
                )  # fmt: skip
            if point.layers is not None:
                refuse(
                    "a rigid cable lies on its drum in one layer; take one that stretches, or no layers.",
                    "route", k, "layers",
                )  # fmt: skip
    if item.sag:
        if len(item.route) > 2 or any(point.radius is not None for point in item.route):
            refuse("a cable that sags hangs between two points of bodies; pulleys, holes and drums are not for it.")
        if item.density is None:
            refuse("a cable that sags needs its density (kg/m^3).", "density")
        if item.damping:
            refuse("a cable that sags moves through its shapes at rest, without damping; leave it out.", "damping")
        if item.length is None:
            refuse("a cable that sags needs its rest length.", "length")
    elif item.density is not None:
        refuse("only a cable that sags has weight; say sag: true, or leave it out.", "density")
    return stretch_fits(item, item.rigid, ("young", "cable_radius"), path, problems) and not wrong


def _point(
    item: RoutePointBlock, is_end: bool, block: MechanismFile, joints: Mapping[str, str], path: Path,
    problems: Problems,
) -> RoutePoint | None:  # fmt: skip
    wrong = []

    def refuse(message: str, *field: str) -> None:
        wrong.append(field)
        problems.add((*path, *field), message)

    if (item.joint is None) == (item.body is None):
        refuse("give either a body and the point 'at' on it, or the joint of a pulley that turns.")
        return None
    if item.joint is not None:
        if item.joint not in joints:
            refuse(unknown_name("joint", item.joint, joints), "joint")
        elif joints[item.joint] != "revolute":
            refuse(f"{item.joint} is {joints[item.joint]}; a pulley turns with a revolute one.", "joint")
        for name in ("at", "axis"):
            if getattr(item, name) is not None:
                refuse("the joint says where the pulley is; leave it out.", name)
    else:
        if item.body != WORLD and item.body not in block.bodies:
            refuse(unknown_name("body", item.body, (WORLD, *block.bodies)), "body")
        if item.at is None:
            refuse("give the point 'at' on the body.")
        if item.axis is not None and not np.linalg.norm(item.axis) > 1e-9:
            refuse("a direction cannot be all zero.", "axis")
        if (item.radius is None) != (item.axis is None):
            refuse("a pulley needs its radius and its axis; a point has neither.")
        if item.friction and item.radius is None and not is_end:
            refuse("a point has no wrap angle to rub on; make it a pulley of small radius.", "friction")
    if item.joint is not None and item.radius is None:
        refuse("give the radius at which the cable lies.")
    if item.friction_speed is not None and not item.friction:
        refuse("regularises friction; give friction, too, or leave it out.", "friction_speed")
    if is_end and item.joint is None and item.radius is not None:
        refuse("the end of a cable is a point of a body, or a drum: the joint that turns it.")
    if is_end and item.friction is not None:
        refuse("the end of a cable is held; friction is for what it passes.", "friction")
    if item.layers is not None or item.wound is not None:
        field = "layers" if item.layers is not None else "wound"
        if not is_end or item.joint is None:
            refuse("is for drums: ends of a cable with a joint.", field)
        elif item.wound is None:
            refuse("give the turns that are wound at the start, 'wound'.")
    layers = None
    if item.layers is not None:
        each = item.layers
        try:
            layers = Layers(each.turns, each.pitch, each.count, each.ramp)
        except TensegrityError as error:
            refuse(str(error), "layers")
        if item.wound is not None and item.wound > each.turns * each.count:
            refuse(f"its layers hold {each.turns * each.count:g} turns; found {item.wound:g}.", "wound")
    if wrong:
        return None
    return RoutePoint(
        item.body or "", None if item.at is None else np.array(item.at), item.joint or "", item.radius or 0.0,
        None if item.axis is None else np.array(item.axis), item.side, item.friction,
        item.friction_speed or 0.0,
        np.inf if item.wound is None else item.wound, layers, item.may_be_clear, item.turns,
    )  # fmt: skip
