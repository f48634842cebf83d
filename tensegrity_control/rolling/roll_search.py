"""Search for the rolls that lead to a position: fewest rolls, then nearest end (A*; Hart, Nilsson and Raphael 1968).

The reachable positions depend on the structure. If headings change by angles that are no fraction of a turn, more rolls
reach ever denser positions. If faces repeat like those of a regular body, the positions form a pattern with holes:
six-bar structures roll over a honeycomb, and the centre of a hole is a whole roll away from the nearest position. So a
goal is a position with a tolerance. The default tolerance is half a roll; if no reasonable detour leads so near, the
nearest position within a whole roll is taken.

On hills rolls are guesses until they are simulated (`hill_map`). The rolls of a plan are simulated one by one, and
after each new simulation the search starts again.
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
"""Number of stands after which a search fails."""
MAX_RUNS = 100
"""Number of simulations over hills after which a search fails."""
AT_A_TIME = 20
"""Number of stands between two pauses for the caller."""
DETOUR, EXTRA = 1.5, 6
"""Largest number of rolls to end within half a roll instead of a whole one: this factor times distance / roll, plus
extra ones."""
MORE_ROLLS = 1
"""Number of rolls beyond the fewest among which the nearest end is searched."""
WORTH = 0.1
"""Decrease of the distance to the goal that each roll must bring if half a roll cannot be reached, as a fraction of a
roll."""
CELL, TURN = 0.25, np.radians(10.0)
"""Initial size of the cells: fraction of a roll (at most half the tolerance) for positions, rad for headings. Two
stands on the same face and in the same cell count as one. If nothing is found, cells shrink by `FINER`."""
FINER = 0.25
SAME = 0.02
"""Fraction of a roll, and rad, below which two stands are identical; rolls repeat with this accuracy."""


@dataclass(frozen=True, eq=False)
class RollPlan:
    """Rolls from a stand towards a position.

    Attributes:
        rolls: the rolls in order; empty if the structure is at the goal already.
        end: stand after the last roll.
        distance: m, from that stand to the goal.
        duration: s, of all rolls.
        is_short: whether the plan ends outside the tolerance.
    """

    rolls: tuple[Outcome, ...]
    end: Stand
    distance: float
    duration: float
    is_short: bool = False


@dataclass(frozen=True, eq=False)
class NearestStand:
    """Pose nearest to a goal that rolls do not reach."""

    pose: Pose


def search_rolls(
    rolls: RollMap, start: Stand, goal: Array, tolerance: float | None = None
) -> Iterator[RollPlan | None]:
    """Search the rolls to a goal: yields None after every simulation and at intervals, for a caller to pause, and the
    plan last.

    Args:
        goal: (2,) m.
        tolerance: m; None for half of the shortest roll from the start, or else the nearest position within a whole
            roll.

    Raises:
        UnreachableGoalError: no cable tips the face, or no rolls lead to the goal. The message contains the nearest
            position and what of the ground blocks the path.
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
                f"no sequence of rolls to ({goal[0]:.3g}, {goal[1]:.3g}) m was found in {MAX_RUNS} simulated rolls on "
                f"the height field{_blocked_by(rolls, [stand])}. Choose a goal closer to the robot.",
                nearest=_nearest_pose(stand),
            )  # fmt: skip
        rolls.try_roll(stand, roll)
        yield None


def _search_once(rolls: RollMap, start: Stand, goal: Array, tolerance: float | None) -> Iterator[RollPlan | None]:
    """As `search_rolls`, with the results of rolls that are available now."""
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
    everything = "all of them" if not (search.merged or search.bounded or search.queue) else "as far as searched"
    raise UnreachableGoalError(
        f"no sequence of rolls ends within {allowed:.2g} m of the goal ({goal[0]:.3g}, {goal[1]:.3g}) m. The robot "
        f"rests on face {words(start.feet)}; of the {search.count} resting positions that it can roll to "
        f"({everything}), the nearest to the goal is ({x:.3g}, {y:.3g}) m, {nearest.distance:.2g} m away"
        f"{_blocked_by(rolls, search.stands)}. Choose a goal there, a larger tolerance, or drive more cables.",
        nearest=_nearest_pose(nearest.end),
    )  # fmt: skip


class _Search:
    """One search with cells of one size.

    Attributes:
        plan: the plan, or None.
        count: number of stands examined.
        merged: whether two stands that differ were treated as one.
        bounded: whether paths with too many rolls were discarded.
        queue: stands that were not examined yet.
        nearest: rolls to the stand nearest to the goal.
        worth: the same if each roll costs a fraction of its length, see `WORTH`.
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
        """All stands examined, the nearest to the goal first."""
        stands = (stand for _, stand in self._seen.values())
        return sorted(stands, key=lambda each: float(np.linalg.norm(each.position - self._goal)))

    def run(self) -> Iterator[None]:
        """Search until the fewest rolls are found or no stand is left; pauses after simulations and at intervals."""
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
    """m: distance left to the goal plus the cost of the rolls."""
    return plan.distance + WORTH * stride * len(plan.rolls)


def _nearest_pose(stand: Stand) -> NearestStand:
    return NearestStand((np.append(stand.position, 0.0), np.eye(4)[0]))


def _blocked_by(rolls: RollMap, stands: list[Stand]) -> str:
    """What of the ground blocks a roll from the first stand at which it blocks any, as the end of a sentence."""
    for stand in stands:
        words = rolls.hindrance(stand)
        if words:
            x, y = stand.position
            return f"; rolls are blocked at ({x:.3g}, {y:.3g}) m: {words}"
    return ""


def _why_not(rolls: RollMap, start: Stand) -> str:
    body = rolls.body
    face = body.face_words(start.feet)
    if len(start.feet) < 3:
        return (
            f"the robot touches the ground with {face} only, and a roll starts on three feet or more. Wait until it "
            "rests."
        )
    if rolls.standing(start) is None:
        return (
            f"the robot does not stay at rest on face {face} with the rest lengths of its robot file, with which every "
            "roll starts. Change these rest lengths, or put the robot down on another face."
        )
    if words := rolls.hindrance(start):
        return (
            f"the robot rests on face {face}, and none of its {len(body.names)} driven cables can make it roll: "
            f"{words}. Put it down elsewhere."
        )
    return (
        f"the robot rests on face {face}, and none of its {len(body.names)} driven cables can tip it over within the "
        "limits of the actuators: allow shorter rest lengths (`position`) or a larger `effort` in the robot file, or "
        "put it down on another face."
    )
