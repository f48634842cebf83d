"""Routed cables at the start of a mechanism: marks on the pulleys, wrap angles and rest lengths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError, unknown_name
from ..numerics.rotations import matrix_from_vector
from .dynamics.equations_of_motion import evaluate
from .mechanism import Mechanism
from .routing.columns import (
    ANGLE,
    AXIS,
    BEFORE,
    BODY,
    CENTRE,
    ELEMENT_COLUMNS,
    FINE,
    FRICTION,
    HOLDS,
    KIND,
    LAYER_TURN,
    LAYERS,
    LENGTH,
    MARK,
    PITCH,
    POINT,
    PULLEY,
    RADIUS,
    RAMP,
    REST,
    SIDE,
    STATUS,
    TOUCHES,
    TURN_IN,
    TURN_OUT,
    TURNED_TOO_FAR,
    TURNING_Q,
    TURNING_V,
    W_AXIS,
    W_CENTRE,
    W_IN,
    W_OUT,
    WHERE,
    WIDTH,
    WOUND,
)  # fmt: skip
from .routing.route import MOST_STRAIN, RoutedCable, RoutePoint, route_problem
from .routing.route_model import RouteModel
from .workspace import Workspace, make_workspace

ROUNDING = 1e-9
"""Tolerance of the apparent strain of an inextensible cable at the start."""
FAR = 20.0 * np.pi
"""Turn [rad] so large that the cable cannot count as being without contact to its pulley."""


def initialize_routes(mechanism: Mechanism, q: NDArray[np.float64], cables: Sequence[RoutedCable]) -> Mechanism:
    """Mechanism with its routed cables, which start at configuration q (nq,) as given in the file.

    Raises:
        RouteError: a route is not feasible; `cable` is the number of the cable.
    """
    models = []
    for number, cable in enumerate(cables):
        try:
            models.append(_initialize(mechanism, q, cable))
        except TensegrityError as error:
            raise RouteError(str(error), number) from None
    return replace(mechanism, routes=tuple(models))


class RouteError(TensegrityError):
    """Error for a routed cable whose given route is not feasible."""

    def __init__(self, message: str, cable: int) -> None:
        super().__init__(message)
        self.cable = cable


def _initialize(mechanism: Mechanism, q: NDArray[np.float64], cable: RoutedCable) -> RouteModel:
    rows = np.array([_row(mechanism, q, point) for point in cable.route])
    rows[[0, -1], HOLDS] = 1.0
    rubbing = rows[1:-1][(rows[1:-1, FRICTION] > 0.0) & np.isfinite(rows[1:-1, FRICTION])]
    if rubbing[:, WIDTH].any() and not rubbing[:, WIDTH].all():
        raise TensegrityError("give friction_speed to all points of its route that have friction, or to none.")
    holding = [0]
    for e in range(1, len(rows)):
        rows[e, BEFORE] = holding[-1]
        if rows[e, HOLDS]:
            holding.append(e)
    rows[:, REST] = 1.0
    rows[1:, TURN_IN] = rows[:-1, TURN_OUT] = FAR
    # treated as elastic until its rest lengths are determined
    route = RouteModel(cable.name, rows, cable.stiffness, cable.damping * cable.area)
    work = _evaluated(mechanism, q, route)
    if int(work.route_results[0, STATUS]) != TURNED_TOO_FAR:  # without marks, turns are not defined yet
        _refuse(cable, work)
    _set_marks(cable, rows, work, np.ones(len(rows), dtype=np.bool_))
    work = _evaluated(mechanism, q, route)
    _refuse(cable, work)
    touches = work.route_state[:, TOUCHES] != 0.0
    if any(point.is_pulley and not touching for point, touching in zip(cable.route, touches, strict=True)):
        _set_marks(cable, rows, work, touches)  # arcs are different if some pulleys are not touched
        work = _evaluated(mechanism, q, route)
    _refuse_overlap(cable, touches, work)
    lengths = work.route_state[holding[:-1], LENGTH]
    total = float(lengths.sum())
    strain = cable.strain if cable.length is None else total / cable.length - 1.0
    if cable.rigid and strain > ROUNDING:
        raise TensegrityError(
            f"it is too short: its route is {total:.6g} m long, it has {cable.length:.6g} m, and it does not stretch; "
            "make it longer, or start nearer."
        )
    if strain > MOST_STRAIN:
        raise TensegrityError(
            f"it is too short: over its route of {total:.4g} m it would be stretched by {100.0 * strain:.3g} %; give "
            f"it a length of at least {total / (1.0 + MOST_STRAIN):.4g} m."
        )
    if not lengths.min() > 0.0:
        raise TensegrityError("two points of its route that hold it lie upon each other; leave some cable between.")
    rows[holding[:-1], REST] = lengths / (1.0 + strain)
    return replace(route, rigid=cable.rigid, line_mass=cable.line_mass)


def _row(mechanism: Mechanism, q: NDArray[np.float64], point: RoutePoint) -> NDArray[np.float64]:
    row = np.zeros(ELEMENT_COLUMNS)
    row[KIND] = PULLEY if point.is_pulley else POINT
    row[RADIUS], row[SIDE] = point.radius, point.side
    row[TURNING_Q] = row[TURNING_V] = -1
    row[LAYERS] = row[LAYER_TURN] = np.inf
    row[WOUND] = 2.0 * np.pi * point.wound
    row[RAMP], row[WIDTH] = 1.0, point.friction_speed
    friction = point.friction
    axis: NDArray[np.float64] | None
    origin: NDArray[np.float64] | None
    if point.joint:
        joint = mechanism.joint(point.joint)
        if joint.kind != "revolute":
            raise TensegrityError(
                f"joint {joint.name} is {joint.kind}; a pulley or drum of a route turns with a revolute one."
            )
        body, origin, axis = joint.parent, joint.placement.origin, joint.placement.axes @ joint.axis
        row[TURNING_Q] = mechanism.positions_of(joint.name).start
        row[TURNING_V] = mechanism.velocities_of(joint.name).start
        row[ANGLE] = q[int(row[TURNING_Q])]
        friction = np.inf if friction is None else friction
        row[HOLDS] = 1.0
    else:
        body, origin, axis = point.body, point.at, point.axis
        friction = 0.0 if friction is None else friction
        row[HOLDS] = float(friction > 0.0)
    if body not in mechanism.body_index:
        raise TensegrityError(unknown_name("body", body, mechanism.body_index))
    row[BODY], row[CENTRE : CENTRE + 3], row[FRICTION] = mechanism.body_index[body], origin, friction
    if axis is not None:
        row[AXIS : AXIS + 3] = axis / np.linalg.norm(axis)
    if point.layers is not None:
        row[PITCH], row[LAYER_TURN] = point.layers.pitch, 2.0 * np.pi * point.layers.turns
        row[LAYERS], row[RAMP] = point.layers.count, 2.0 * np.pi * point.layers.ramp
    return row


def _evaluated(mechanism: Mechanism, q: NDArray[np.float64], route: RouteModel) -> Workspace:
    alone = replace(mechanism, routes=(route,))
    work = make_workspace(alone.flat)
    evaluate(alone.flat, np.ascontiguousarray(q), np.zeros(mechanism.velocity_count), work)
    return work


def _set_marks(cable: RoutedCable, rows: NDArray[np.float64], work: Workspace, chosen: NDArray[np.bool_]) -> None:
    """Set the mark of every chosen pulley (n,) to the middle of its arc at the start."""
    last = len(rows) - 1
    for e, point in enumerate(cable.route):
        if not chosen[e]:
            continue
        rows[e, [TURN_IN, TURN_OUT]] = 0.0
        if not point.is_pulley:
            continue
        state = work.route_state[e]
        axis, arrives, leaves = (state[k : k + 3] for k in (W_AXIS, W_IN, W_OUT))
        wrap = 0.0
        if e == 0:
            mark = leaves
        elif e == last:
            mark = arrives
        else:
            wrap = point.side * float(np.arctan2(axis @ np.cross(arrives, leaves), arrives @ leaves)) % (2.0 * np.pi)
            if wrap > 2.0 * np.pi - 1e-9:
                wrap = 0.0
            if point.turns == 0 and wrap > 1.5 * np.pi:
                wrap -= 2.0 * np.pi
                if not point.may_be_clear:
                    raise TensegrityError(
                        f"at {cable.point_name(e)} it runs clear of the pulley on this side ({point.side:+d}), which "
                        "it would have to pull; take the other side, or say may_be_clear: true."
                    )
            wrap += 2.0 * np.pi * point.turns
            mark = matrix_from_vector(0.5 * point.side * wrap * axis) @ arrives
            rows[e, [TURN_IN, TURN_OUT]] = 0.5 * wrap
        body = int(rows[e, BODY])
        axes = np.eye(3) if body < 0 else work.rotation[body]
        rows[e, MARK : MARK + 3] = axes.T @ mark


def _refuse_overlap(cable: RoutedCable, touches: NDArray[np.bool_], work: Workspace) -> None:
    """Refuse two pulleys in a row that intersect; fixed ones on one body may form one solid."""
    centres = work.route_state[:, W_CENTRE : W_CENTRE + 3]
    for e, (point, beyond) in enumerate(zip(cable.route, cable.route[1:], strict=False)):
        if not (point.is_pulley and beyond.is_pulley and touches[e] and touches[e + 1]):
            continue
        if not (point.joint or beyond.joint) and point.body == beyond.body:
            continue
        apart, least = float(np.linalg.norm(centres[e + 1] - centres[e])), point.radius + beyond.radius
        if apart < least * (1.0 - ROUNDING):
            raise TensegrityError(
                f"the pulleys at {cable.point_name(e)} and {cable.point_name(e + 1)} overlap: their centres are "
                f"{apart:.4g} m apart, their radii are {least:.4g} m together; move them apart, or make one smaller."
            )


def _refuse(cable: RoutedCable, work: Workspace) -> None:
    status, number = int(work.route_results[0, STATUS]), int(work.route_results[0, WHERE])
    if status != FINE:
        raise TensegrityError(route_problem(cable, status, number))
