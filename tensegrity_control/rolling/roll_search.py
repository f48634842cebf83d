"""Which rolls lead to a place: the fewest, of those the ones that end nearest (A*; Hart, Nilsson and Raphael 1968).

The heading turns with every roll, so that the places that can be reached lie ever denser the more rolls are made. What
is asked for is a place within a tolerance, half a roll by default: nearer than that no roll leads for certain.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tensegrity_dynamics.errors import UnreachableGoalError
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.output_frame import Pose

from .roll_map import Outcome, RollMap, Stand

WITHOUT_PROGRESS = 150
"""Stands that are looked at without coming nearer before a goal counts as out of reach."""
MAX_STANDS = 20_000
CELL = 0.25
"""Places nearer to each other than this part of a roll, on the same face turned alike, count as one."""


@dataclass(frozen=True, eq=False)
class RollPlan:
    """Rolls from a stand towards a place.

    Attributes:
        rolls: one after the other; none where it is there already. end: where the last one leads. distance: m, from
            there to the goal. duration: s.
    """

    rolls: tuple[Outcome, ...]
    end: Stand
    distance: float
    duration: float


@dataclass(frozen=True, eq=False)
class NearestStand:
    """Where rolls would lead at best, of a goal that they do not reach."""

    pose: Pose


def search_rolls(
    rolls: RollMap, start: Stand, goal: Array, tolerance: float | None = None, *, more: int = 1
) -> Iterator[RollPlan | None]:
    """Search: yields None after every run of the model, so that a caller may pause, and the plan at last.

    Args:
        goal: (2,) m. tolerance: m; None for half a roll, the shortest there is from where it stands.
        more: rolls beyond the fewest among which the nearest end is sought.

    Raises:
        UnreachableGoalError: no cable tips the face, or no rolls lead to the goal; the nearest place is named.
    """
    words, goal = rolls.body.face_words, np.asarray(goal, dtype=np.float64)
    stride = 0.0
    first: list[Outcome] = []
    for found in rolls.rolls(start):
        if found is None:
            yield None
        else:
            first.append(found)
    shifts = [float(np.linalg.norm(each.shift)) for each in first]
    allowed = (0.5 * min(shifts) if shifts else 0.0) if tolerance is None else tolerance
    away = float(np.linalg.norm(goal - start.place))
    if away <= allowed:
        yield RollPlan((), start, away, 0.0)
        return
    if not first:
        raise UnreachableGoalError(
            _why_not(rolls, start), nearest=NearestStand((np.append(start.place, 0.0), np.eye(4)[0]))
        )
    stride = max(shifts)
    count, order, idle, nearest = 0, 0, 0, away
    best, best_end = (np.inf, start), None
    queue: list[tuple[float, float, int, int, Stand, tuple[Outcome, ...]]] = []
    heapq.heappush(queue, (away / stride, away, order, 0, start, ()))
    seen: set[tuple[object, ...]] = set()
    plan: RollPlan | None = None
    while queue and count < MAX_STANDS and idle < WITHOUT_PROGRESS:
        _, distance, _, depth, stand, path = heapq.heappop(queue)
        if plan is not None and depth + distance / stride > len(plan.rolls) + more:
            break
        key = _cell(stand, CELL * stride)
        if key in seen:
            continue
        seen.add(key)
        count += 1
        idle = 0 if distance < nearest else idle + 1
        nearest = min(nearest, distance)
        if distance < best[0]:
            best = (distance, stand)
        if path and distance <= allowed and (plan is None or distance < plan.distance):
            plan = RollPlan(path, stand, distance, sum(each.duration for each in path))
            best_end = stand
        if plan is not None and depth >= len(plan.rolls) + more:
            continue
        for roll in rolls.rolls(stand):
            if roll is None:
                yield None
                continue
            stride = max(stride, float(np.linalg.norm(roll.shift)))
            after = rolls.after(stand, roll)
            left = float(np.linalg.norm(goal - after.place))
            order += 1
            heapq.heappush(queue, (depth + 1 + left / stride, left, order, depth + 1, after, (*path, roll)))
    if plan is not None:
        assert best_end is not None
        yield plan
        return
    x, y = best[1].place
    raise UnreachableGoalError(
        f"no rolls were found that lead within {allowed:.2g} m of ({goal[0]:.3g}, {goal[1]:.3g}) m from where it "
        f"stands, on {words(start.feet)}: the nearest place is ({x:.3g}, {y:.3g}) m, {best[0]:.2g} m away. Choose a "
        "goal there, or a larger tolerance.",
        nearest=NearestStand((np.append(best[1].place, 0.0), np.eye(4)[0])),
    )


def _why_not(rolls: RollMap, start: Stand) -> str:
    body = rolls.body
    face = body.face_words(start.feet)
    if len(start.feet) < 3:
        return f"it stands on {face} alone, no face: rolls begin on three feet or more. Wait until it rests."
    if rolls.standing(start) is None:
        return f"it does not stay on {face} with the rest lengths of its file, where every roll begins."
    return (
        f"it stands on {face}, which none of its {len(body.names)} cables tips within its limits: give the actuators a "
        "shorter rest length or a larger effort, or put it down on another face."
    )


def _cell(stand: Stand, size: float) -> tuple[object, ...]:
    turn = round(stand.heading / np.radians(10.0)) % 36
    return (stand.feet, turn, *np.round(stand.place / size).astype(int).tolist())
