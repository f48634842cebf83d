"""Readings of routed cables after `evaluate`: lengths, tensions, paths, and slip."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .mechanism import Mechanism
from .routing.columns import (
    ANGLE,
    COUNT,
    CREEP,
    FIRST,
    FRICTION,
    HIGHEST,
    HOLDS,
    KIND,
    LINE_MASS,
    MODE,
    PATH_LENGTH,
    POINT,
    RATE,
    REST,
    REST_NOW,
    SIDE,
    SLIP,
    STIFFNESS,
    STRAIN,
    TENSION,
    TOUCHES,
    TRIAL,
    TURNING_Q,
    W_AXIS,
    W_CENTRE,
    W_ENTRY,
    W_EXIT,
    W_IN,
    W_OUT,
    W_RADIUS,
    WIDTH,
    WOUND,
    WRAP,
)  # fmt: skip
from .routing.route_model import RouteModel
from .workspace import Workspace

ARC_PIECES = 24
"""Number of straight segments with which an arc is drawn."""


@dataclass(frozen=True)
class RouteReading:
    """Reading of a routed cable at one state.

    Attributes:
        length, rest_length: length and rest length of the path between both ends [m].
        tension: highest tension along the cable [N]. strain: highest strain.
        tensions: tensions of its strands from the first to the last end [N]; for a sagging cable those at both ends.
        wraps: wrap angle at each element of the route [rad].
        contacts: state at each element: "sticks", "slips", "creeps" (regularised friction below its speed) or "clear"
            (no contact); empty without friction.
        slipped: rest length that has slipped over each element towards the last end [m]. slip_speeds: slip speeds
            [m/s].
        sag: sag below the straight line between the ends [m]; zero for cables without weight.
    """

    length: float
    rest_length: float
    tension: float
    strain: float
    tensions: tuple[float, ...]
    wraps: tuple[float, ...]
    contacts: tuple[str, ...] = ()
    slipped: tuple[float, ...] = ()
    slip_speeds: tuple[float, ...] = ()
    sag: float = 0.0


def read_routes(
    mechanism: Mechanism, work: Workspace, gravity: NDArray[np.float64] | None = None
) -> dict[str, RouteReading]:
    """Readings by name, from the results of `evaluate`; gravity (3,) [m/s^2], by default that of the mechanism."""
    readings, pulls = {}, strand_tensions(mechanism, work)
    gravity = mechanism.gravity if gravity is None else gravity
    for cable, route, result in zip(mechanism.flat.routed_cables, mechanism.routes, work.route_results, strict=True):
        first = int(cable[FIRST])
        rows = first + route.holding
        strands = work.route_state[rows]
        state = work.route_state[first : first + int(cable[COUNT])]
        sag = _sag(cable, state, gravity) if route.line_mass else 0.0
        readings[route.name] = RouteReading(
            float(result[PATH_LENGTH]), float(strands[:, REST_NOW].sum()), float(result[HIGHEST]),
            float(strands[:, STRAIN].max()), pulls[route.name], tuple(state[:, WRAP].tolist()),
            tuple(_contact(row, own) for row, own in zip(route.elements, state, strict=True)),
            tuple(state[:, TRIAL].tolist()), tuple(state[:, RATE].tolist()), sag,
        )  # fmt: skip
    return readings


def strand_tensions(mechanism: Mechanism, work: Workspace) -> dict[str, tuple[float, ...]]:
    """`RouteReading.tensions` by name, from the results of `evaluate`; quick, for finite differences."""
    found = {}
    for cable, route in zip(mechanism.flat.routed_cables, mechanism.routes, strict=True):
        first = int(cable[FIRST])
        rows = first + np.arange(int(cable[COUNT])) if route.line_mass else first + route.holding
        found[route.name] = tuple(work.route_state[rows, TENSION].tolist())
    return found


def _contact(row: NDArray[np.float64], own: NDArray[np.float64]) -> str:
    """Contact state of the cable at an element, from the row and the state of the element."""
    if not row[HOLDS] or not 0.0 < row[FRICTION] < np.inf:
        return ""
    if not own[TOUCHES]:
        return "clear"
    if own[CREEP]:
        return "slips" if abs(own[RATE]) > row[WIDTH] else "creeps"
    return "slips" if own[MODE] and own[RATE] else "sticks"


def slip_words(routes: Mapping[str, RouteReading]) -> dict[str, str]:
    """Text for users and diagnostics, by cable: state of each of its contacts with friction."""
    words = {}
    for name, each in routes.items():
        parts = [
            f"route[{k}] {contact}" + (f" at {1e3 * speed:.3g} mm/s" if contact in ("slips", "creeps") else "")
            + (f", {1e3 * slipped:.4g} mm so far" if slipped else "")
            for k, contact, slipped, speed in zip(
                range(len(each.contacts)), each.contacts, each.slipped, each.slip_speeds, strict=True
            )
            if contact
        ]  # fmt: skip
        if parts:
            words[name] = "; ".join(parts)
    return words


def _hanging(
    cable: NDArray[np.float64], state: NDArray[np.float64], gravity: NDArray[np.float64], shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(n, 3) points of a sagging cable [m] at fractions (n,) of its rest length from its first end (Irvine 1981,
    1.3)."""
    begin, pull = state[0, W_EXIT : W_EXIT + 3], state[0, TENSION] * state[0, W_OUT : W_OUT + 3]
    weight, along = -cable[LINE_MASS] * gravity, shares[:, None] * state[0, REST_NOW]
    whole = float(np.linalg.norm(weight))
    tension = np.linalg.norm(pull + along * weight, axis=1)[:, None]
    rise = float(pull @ weight) / whole if whole else 0.0
    up = weight / whole if whole else np.zeros(3)
    level = pull - rise * up
    ends = rise + along * whole
    size = max(float(np.linalg.norm(level)), 1e-300)
    first, rises = np.hypot(size, rise), rise * ends > 0.0
    cross = np.where(
        rises,
        size**2 * along * whole * (rise + ends) / np.where(rises, ends * first + rise * tension, 1.0),
        ends * first - rise * tension,
    )
    bend = np.arcsinh(cross / size**2) / whole if whole else along / size
    height = along * (rise + ends) * (0.5 / cable[STIFFNESS] + 1.0 / (first + tension))
    return np.asarray(begin + level * (along / cable[STIFFNESS] + bend) + height * up)


def _sag(cable: NDArray[np.float64], state: NDArray[np.float64], gravity: NDArray[np.float64]) -> float:
    """Sag [m] of a cable below the line between its ends, at the point where the cable is parallel to this line."""
    whole = float(np.linalg.norm(gravity))
    if not whole:
        return 0.0
    up = -gravity / whole
    reach = state[1, W_ENTRY : W_ENTRY + 3] - state[0, W_EXIT : W_EXIT + 3]
    pull = state[0, TENSION] * state[0, W_OUT : W_OUT + 3]
    across = float(np.linalg.norm(reach - (reach @ up) * up))
    rise, weight = float(pull @ up), float(cable[LINE_MASS]) * whole
    level = float(np.linalg.norm(pull - rise * up))
    if not across > 1e-9 * float(np.linalg.norm(reach)):
        return 0.0
    share = (level * float(reach @ up) / across - rise) / (weight * state[0, REST_NOW])
    point = _hanging(cable, state, gravity, np.array([min(max(share, 0.0), 1.0)]))[0] - state[0, W_EXIT : W_EXIT + 3]
    level_part = float(np.linalg.norm(point - (point @ up) * up))
    return level_part / across * float(reach @ up) - float(point @ up)


def slips(work: Workspace) -> NDArray[np.float64]:
    """(e,) rest length [m] that has slipped over every element up to the present state."""
    return np.array(work.route_state[:, TRIAL])


def set_slips(work: Workspace, slip: NDArray[np.float64]) -> None:
    """Set the slip (e,) [m] as the reference from which elements stick."""
    if work.route_state.size:
        work.route_state[:, SLIP] = slip


def with_slips(mechanism: Mechanism, slip: NDArray[np.float64]) -> Mechanism:
    """Copy of the mechanism whose routed cables start with the slip (e,) [m]."""
    if not mechanism.routes:
        return mechanism
    routes, first = [], 0
    for route in mechanism.routes:
        rows = np.array(route.elements)
        holding = route.holding
        passed = np.append(slip[first + holding], 0.0)
        passed[0] = 0.0
        rows[holding, REST] += passed[:-1] - passed[1:]
        routes.append(replace(route, elements=rows))
        first += len(rows)
    return replace(mechanism, routes=tuple(routes))


def drum_ends(route: RouteModel) -> list[int]:
    """Elements of a routed cable that are drums: ends on a joint that turns."""
    rows = route.elements
    return [e for e in (0, len(rows) - 1) if rows[e, KIND] != POINT and rows[e, TURNING_Q] >= 0]


def wound_lines(
    mechanism: Mechanism, work: Workspace, q: NDArray[np.float64], most: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lines of the wound cable on every drum (d, ARC_PIECES + 1, 3) [m], and the radii (d,) [m] there.

    A line begins at the exit point and has a length of `most` [rad], or less if less is wound. The drums are in the
    order of the cables. The input is the result of `evaluate` at q (nq,)."""
    lines, radii = [], []
    for cable, route in zip(mechanism.flat.routed_cables, mechanism.routes, strict=True):
        for e in drum_ends(route):
            row, state = route.elements[e], work.route_state[int(cable[FIRST]) + e]
            sense = -row[SIDE] if e == 0 else row[SIDE]  # sense of rotation away from the exit point, and of winding
            left = row[WOUND] + sense * (q[int(row[TURNING_Q])] - row[ANGLE])
            leaves = state[W_EXIT : W_EXIT + 3] if e == 0 else state[W_ENTRY : W_ENTRY + 3]
            axis, arm = state[W_AXIS : W_AXIS + 3], leaves - state[W_CENTRE : W_CENTRE + 3]
            arm = arm - (arm @ axis) * axis
            angle = sense * np.linspace(0.0, min(max(left, 0.0), most), ARC_PIECES + 1)[:, None]
            lines.append(leaves + (np.cos(angle) - 1.0) * arm + np.sin(angle) * np.cross(axis, arm))
            radii.append(float(np.linalg.norm(arm)))
    return np.array(lines).reshape(-1, ARC_PIECES + 1, 3), np.array(radii)


def polylines(mechanism: Mechanism, work: Workspace) -> list[NDArray[np.float64]]:
    """(n, 3) points of every routed cable [m]: straight segments, and arcs with ARC_PIECES segments, after
    `evaluate`."""
    lines = []
    for cable, route in zip(mechanism.flat.routed_cables, mechanism.routes, strict=True):
        first, count = int(cable[FIRST]), int(cable[COUNT])
        if route.line_mass:
            shares = np.linspace(0.0, 1.0, ARC_PIECES + 1)
            lines.append(_hanging(cable, work.route_state[first : first + count], mechanism.gravity, shares))
            continue
        points = [work.route_state[first, W_EXIT : W_EXIT + 3]]
        for e in range(first + 1, first + count):
            state, entry = work.route_state[e], work.route_state[e, W_ENTRY : W_ENTRY + 3]
            if route.elements[e - first, KIND] == POINT or e == first + count - 1:
                points.append(entry)
                continue
            axis, along, radius = state[W_AXIS : W_AXIS + 3], state[W_IN : W_IN + 3], state[W_RADIUS]
            turn = np.copysign(state[WRAP], radius) if state[TOUCHES] else 0.0
            for angle in np.linspace(0.0, turn, ARC_PIECES + 1):
                ahead = np.cos(angle) * along + np.sin(angle) * np.cross(axis, along)
                points.append(entry + radius * np.cross(ahead - along, axis))
        lines.append(np.array(points))
    return lines
