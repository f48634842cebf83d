"""What is known of routed cables after `evaluate`: lengths, tensions, paths, and what has slipped."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .mechanism import Mechanism
from .routing.columns import (
    COUNT,
    FIRST,
    HIGHEST,
    KIND,
    PATH_LENGTH,
    POINT,
    REST,
    REST_NOW,
    SLIP,
    STRAIN,
    TENSION,
    TOUCHES,
    TRIAL,
    W_AXIS,
    W_ENTRY,
    W_EXIT,
    W_IN,
    W_RADIUS,
    WRAP,
)  # fmt: skip
from .workspace import Workspace

ARC_PIECES = 24
"""Straight pieces in which an arc is drawn."""


@dataclass(frozen=True)
class RouteReading:
    """A routed cable at one state.

    Attributes:
        length, rest_length: m, of the path between both ends. tension: N, the highest along it. strain: the highest.
        tensions: N of its strands, from the first end to the last. wraps: rad, at each element of the route.
    """

    length: float
    rest_length: float
    tension: float
    strain: float
    tensions: tuple[float, ...]
    wraps: tuple[float, ...]


def read_routes(mechanism: Mechanism, work: Workspace) -> dict[str, RouteReading]:
    """Readings by name, from what `evaluate` left in the arrays."""
    readings = {}
    for cable, route, result in zip(mechanism.flat.routed_cables, mechanism.routes, work.route_results, strict=True):
        first = int(cable[FIRST])
        rows = first + route.holding
        strands = work.route_state[rows]
        readings[route.name] = RouteReading(
            float(result[PATH_LENGTH]), float(strands[:, REST_NOW].sum()), float(result[HIGHEST]),
            float(strands[:, STRAIN].max()), tuple(strands[:, TENSION].tolist()),
            tuple(work.route_state[first : first + int(cable[COUNT]), WRAP].tolist()),
        )  # fmt: skip
    return readings


def slips(work: Workspace) -> NDArray[np.float64]:
    """(e,) m of rest length that has slipped over every element by now."""
    return np.array(work.route_state[:, TRIAL])


def set_slips(work: Workspace, slip: NDArray[np.float64]) -> None:
    """Let what has slipped (e,) be the start from which elements stick."""
    if work.route_state.size:
        work.route_state[:, SLIP] = slip


def with_slips(mechanism: Mechanism, slip: NDArray[np.float64]) -> Mechanism:
    """The mechanism whose routed cables start with what has slipped (e,)."""
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


def polylines(mechanism: Mechanism, work: Workspace) -> list[NDArray[np.float64]]:
    """(n, 3) m for every routed cable: its straight pieces, and arcs as ARC_PIECES, from what `evaluate` left."""
    lines = []
    for cable, route in zip(mechanism.flat.routed_cables, mechanism.routes, strict=True):
        first, count = int(cable[FIRST]), int(cable[COUNT])
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
