"""Which rolls lead to a position: the fewest, of those the ones that end nearest (A*; Hart, Nilsson and Raphael 1968).

Which positions can be reached depends on the structure: where headings turn by odd angles they lie ever denser the more
rolls are made, where faces repeat like those of a regular body they are a pattern with holes. Six bars roll over a
honeycomb, whose holes are a whole roll from the nearest position. So what is asked for is a position within a
tolerance; by default within half a roll, and where no reasonable detour leads so near, the nearest one within a whole
roll.

On hills rolls are guesses until the model has made them (`hill_map`): the plan that guesses lead to is tried in the
model roll by roll, and sought anew after each roll that it has not made yet.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tensegrity_dynamics.errors import UnreachableGoalError
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.output_frame import Pose

from ..cancellation import checkpoint
from .roll_map import Outcome, RollMap, Stand

MAX_STANDS = 20_000
"""Stands that are looked at before a goal counts as out of reach."""
MAX_RUNS = 100
"""Runs of the model over hills after which it does, too."""
AT_A_TIME = 20
"""Stands after which a caller may pause."""
DETOUR, EXTRA = 1.5, 6
"""Rolls that are made to come within half a roll rather than a whole one: so many times the fewest, and some more."""
MORE_ROLLS = 1
"""Rolls beyond the fewest among which the nearest end is sought."""
WORTH = 0.1
"""Of a roll: how much nearer to the goal each roll must lead, where half a roll cannot be reached."""
CELL, TURN = 0.25, np.radians(10.0)
"""Positions nearer to each other than this part of a roll (and of the tolerance, where that is below half a roll), on
the same face turned alike, count as one at first; by a quarter each time that nothing is found."""
FINER = 0.25
SAME = 0.02
"""Of a roll, and rad, below which two sequences of rolls lead to the same stand: as exact as rolls repeat."""


@dataclass(frozen=True, eq=False)
class RollPlan:
    """Rolls from a stand towards a position.

    Attributes:
        rolls: one after the other; none where it is there already. end: where the last one leads. distance: m, from
            there to the goal. duration: s. is_short: whether it ends farther away than was asked for.
    """

    rolls: tuple[Outcome, ...]
    end: Stand
    distance: float
    duration: float
    is_short: bool = False


@dataclass(frozen=True, eq=False)
class NearestStand:
    """Where rolls would lead at best, of a goal that they do not reach."""

    pose: Pose


def search_rolls(
    rolls: RollMap, start: Stand, goal: Array, tolerance: float | None = None
) -> Iterator[RollPlan | None]:
    """Search: yields None after every run of the model and now and then, for a caller to pause, and the plan at last.

    Args:
        goal: (2,) m. tolerance: m; None for half a roll, the shortest there is from where it stands, or else the
            nearest position within a whole one.

    Raises:
        UnreachableGoalError: no cable tips the face, or no rolls lead to the goal; the nearest position is named, and
            what of the ground blocks the path.
    """
    last_run = rolls.runs + MAX_RUNS
    while True:
        plan = None
        for plan in _search_once(rolls, start, np.asarray(goal, dtype=np.float64), tolerance):
            if plan is None:
                yield None
        assert plan is not None
        stand = start
        for roll in plan.rolls:
            if roll.is_guess:
                break
            stand = rolls.after(stand, roll)
        else:
            yield plan
            return
        if rolls.runs >= last_run:
            raise UnreachableGoalError(
                f"no rolls to ({goal[0]:.3g}, {goal[1]:.3g}) m were found within {MAX_RUNS} runs of the model over the "
                f"hills{_blocked_by(rolls, [stand])}. Choose a nearer goal.", nearest=_nearest_pose(stand),
            )  # fmt: skip
        rolls.try_roll(stand, roll)
        yield None


def _search_once(rolls: RollMap, start: Stand, goal: Array, tolerance: float | None) -> Iterator[RollPlan | None]:
    """As `search_rolls`, with what is known of the rolls now."""
    words = rolls.body.face_words
    first: list[Outcome] = []
    for found in rolls.rolls(start):
        if found is None:
            yield None
        else:
            first.append(found)
    shifts = [float(np.linalg.norm(each.shift)) for each in first]
    allowed = (0.5 * min(shifts) if shifts else 0.0) if tolerance is None else tolerance
    away = float(np.linalg.norm(goal - start.position))
    if away <= allowed:
        yield RollPlan((), start, away, 0.0)
        return
    if not first:
        raise UnreachableGoalError(_why_not(rolls, start), nearest=_nearest_pose(start))
    looked, stride = 0, max(shifts)
    nearest = worth = RollPlan((), start, away, 0.0, is_short=True)
    most_rolls = DETOUR * away / stride + EXTRA if tolerance is None else np.inf
    for bound, levels in ((most_rolls, 2), (np.inf, rolls.finest)) if tolerance is None else ((np.inf, rolls.finest),):
        for level in range(levels):
            search = _Search(rolls, start, goal, allowed, stride, level, bound, MAX_STANDS - looked)
            yield from search.run()
            if search.plan is not None:
                yield search.plan
                return
            looked += search.count
            nearest = min(nearest, search.nearest, key=lambda each: each.distance)
            worth = min(worth, search.worth, key=lambda each: _effort(each, stride))
            if looked >= MAX_STANDS or not (search.merged or (level == 0 and rolls.is_partial)):
                break
        if tolerance is None and nearest.distance <= stride:
            yield worth
            return
        if looked >= MAX_STANDS or not (search.merged or search.bounded):
            break
    x, y = nearest.end.position
    everything = "these are all" if not (search.merged or search.bounded or search.queue) else "that were looked at"
    raise UnreachableGoalError(
        f"no rolls lead within {allowed:.2g} m of ({goal[0]:.3g}, {goal[1]:.3g}) m from where it stands, on "
        f"{words(start.feet)}: of the {search.count} stands that rolls lead to, {everything}, the nearest is at "
        f"({x:.3g}, {y:.3g}) m, {nearest.distance:.2g} m away{_blocked_by(rolls, search.stands)}. Choose a goal there, "
        "a larger tolerance, or drive more cables.", nearest=_nearest_pose(nearest.end),
    )  # fmt: skip


class _Search:
    """One search with cells of one size.

    Attributes:
        plan: what was found. count: stands that were looked at. merged: whether two stands counted as one that are
            not the same. bounded: whether paths were left out that take too many rolls. queue: what was not looked at.
        nearest: rolls to the stand that is nearest to the goal. worth: the same, if each roll counts for a part of it.
    """

    def __init__(
        self, rolls: RollMap, start: Stand, goal: Array, allowed: float, stride: float, level: int,
        most_rolls: float, most: int,
    ) -> None:  # fmt: skip
        self._rolls, self._start, self._goal, self._allowed = rolls, start, goal, allowed
        self._stride, self._thorough, self._most_rolls, self._most = stride, level > 0, most_rolls, most
        part = FINER**level
        self._cell = part * min(CELL * stride, 0.5 * allowed if allowed > 0.0 else np.inf)
        self._turns = max(1, round(2.0 * np.pi / (part * TURN)))
        self.plan: RollPlan | None = None
        self.count, self.merged, self.bounded = 0, False, False
        self.queue: list[tuple[float, float, int, int, Stand, tuple[Outcome, ...]]] = []
        self.nearest = RollPlan((), start, float(np.linalg.norm(goal - start.position)), 0.0, is_short=True)
        self.worth = self.nearest
        self._seen: dict[tuple[object, ...], tuple[Stand, Stand]] = {}

    @property
    def stands(self) -> list[Stand]:
        """All that were looked at, the nearest to the goal first."""
        stands = (stand for _, stand in self._seen.values())
        return sorted(stands, key=lambda each: float(np.linalg.norm(each.position - self._goal)))

    def run(self) -> Iterator[None]:
        """Look until the fewest rolls are found, or nothing is left; pauses after runs of the model and in between."""
        away, queue = self.nearest.distance, self.queue
        heapq.heappush(queue, (away / self._stride, away, 0, 0, self._start, ()))
        seen, order = self._seen, 0
        while queue and self.count < self._most:
            _, distance, _, depth, stand, path = heapq.heappop(queue)
            left = depth + max(0.0, distance - self._allowed) / self._stride
            fewest = np.inf if self.plan is None else len(self.plan.rolls) + MORE_ROLLS
            if left > fewest:
                break
            if left > self._most_rolls:
                self.bounded = True
                continue
            like = self._rolls.alike(stand, self._turns)
            key = self._key(like)
            if key in seen:
                self.merged = self.merged or not self._is_same(seen[key][0], like)
                continue
            seen[key] = like, stand
            self.count += 1
            if self.count % AT_A_TIME == 0:
                checkpoint()
                yield None
            here = RollPlan(path, stand, distance, sum(each.duration for each in path), is_short=True)
            self.nearest = min(self.nearest, here, key=lambda each: each.distance)
            self.worth = min(self.worth, here, key=lambda each: _effort(each, self._stride))
            if path and distance <= self._allowed and (self.plan is None or distance < self.plan.distance):
                self.plan = RollPlan(path, stand, distance, sum(each.duration for each in path))
            if depth >= fewest:
                continue
            for roll in self._rolls.rolls(stand, self._thorough):
                if roll is None:
                    yield None
                    continue
                self._stride = max(self._stride, float(np.linalg.norm(roll.shift)))
                after = self._rolls.after(stand, roll)
                gap = float(np.linalg.norm(self._goal - after.position))
                order += 1
                heapq.heappush(queue, (depth + 1 + gap / self._stride, gap, order, depth + 1, after, (*path, roll)))

    def _key(self, stand: Stand) -> tuple[object, ...]:
        turn = round(stand.heading * self._turns / (2.0 * np.pi)) % self._turns
        return (stand.feet, turn, *np.round(stand.position / self._cell).astype(int).tolist())

    def _is_same(self, one: Stand, other: Stand) -> bool:
        turn = abs((one.heading - other.heading + np.pi) % (2.0 * np.pi) - np.pi)
        return bool(turn < SAME and np.abs(one.position - other.position).max() < SAME * self._stride)


def _effort(plan: RollPlan, stride: float) -> float:
    """m: what is left to the goal, and what its rolls must be worth."""
    return plan.distance + WORTH * stride * len(plan.rolls)


def _nearest_pose(stand: Stand) -> NearestStand:
    return NearestStand((np.append(stand.position, 0.0), np.eye(4)[0]))


def _blocked_by(rolls: RollMap, stands: list[Stand]) -> str:
    """What the ground does to a roll from the first of the stands where it does anything, as the end of a sentence."""
    for stand in stands:
        words = rolls.hindrance(stand)
        if words:
            x, y = stand.position
            return f"; it rolls no further from ({x:.3g}, {y:.3g}) m, where {words}"
    return ""


def _why_not(rolls: RollMap, start: Stand) -> str:
    body = rolls.body
    face = body.face_words(start.feet)
    if len(start.feet) < 3:
        return f"it stands on {face} alone, no face: rolls begin on three feet or more. Wait until it rests."
    if rolls.standing(start) is None:
        return f"it does not stay on {face} with the rest lengths of its file, where every roll begins."
    if words := rolls.hindrance(start):
        return f"it stands on {face}, and none of its {len(body.names)} cables rolls it away: {words}."
    return (
        f"it stands on {face}, which none of its {len(body.names)} cables tips within its limits: give the actuators a "
        "shorter rest length or a larger effort, or put it down on another face."
    )
