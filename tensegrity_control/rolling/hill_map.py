"""Rolls over a height field: guessed from level ground, checked against the ground along their path, then simulated.

No two stands on hills are alike, and simulating every cable on each of them takes too long. So the first guess of a
roll is the roll on level ground (`RollMap`, with its symmetries), laid onto the field: its path is raised by the planes
through the feet before and after the roll. The guess is discarded if

* the ground is higher than a node or bar of the path by more than `CLEARANCE` times the size of the structure,
* the feet at the end are on a plane steeper than friction holds, or on which the structure tips by itself, or
* the roll ends outside the field.

A plan of guesses is simulated roll by roll from its start, each roll from the shape at rest after the roll before
(`roll_search`). The simulated result replaces the guess. If the simulation does not tip uphill on even ground, rolls of
the same kind with the same or a larger rise are not guessed any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from tensegrity_dynamics.contact.ground_forces import flatten
from tensegrity_dynamics.contact.ground_sweep import field_heights, highest_above
from tensegrity_dynamics.numerics.rotations import matrix_from_vector
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.structures.structure import Structure

from .gait import GaitSettings, Roll, RollingBody
from .roll_map import Outcome, RollMap, Stand

CLEARANCE = 0.3
"""Height by which the ground may exceed a body laid onto it, as a fraction of the size of the structure. The tolerance
is wide because feet, bars and cables yield and the roll differs from the one on level ground."""
EVEN = 0.25
"""Fraction of the clearance up to which ground counts as even."""
LEAST_RISE = 0.05
"""Slope up to which a failed roll is not attributed to the slope."""
BAR_STEP = 0.1
"""Distance between the points of a bar that are checked, as a fraction of the size of the structure."""
POSITION_STEP, TURN_STEP = 0.02, np.radians(2.0)
"""m and rad, size of the cells within which stands on the same face share one simulation."""
FINEST = 1
"""Number of cell sizes with which stands are distinguished; guesses are not accurate enough for more."""
MOST_JUDGED = 200_000
"""Number of rolls for which the check against the ground is cached."""


class HillMap(RollMap):
    """Rolls of one robot over its height field.

    Args:
        robot, settings, rigid_bars, tipped_by: as in `RollMap`.

    Attributes:
        level: rolls on level ground.
        runs: number of simulations over the hills so far.
    """

    def __init__(
        self, robot: Robot, settings: GaitSettings | None = None, *, rigid_bars: bool = True,
        tipped_by: Callable[[RollingBody, int, Array, Array], Roll] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(robot, settings, rigid_bars=rigid_bars, tipped_by=tipped_by)
        structure = self.body.structure
        assert structure.ground is not None and structure.ground.hills is not None
        self._field, self._friction = structure.ground.hills, structure.ground.friction
        self._lowest = float(structure.nodes[:, 2].min())
        level = replace(structure, ground=replace(structure.ground, hills=None, height=self._lowest))
        self.level = RollMap(replace(robot, model=level), settings, rigid_bars=rigid_bars, tipped_by=tipped_by)
        self._ground = flatten(structure.ground)
        self._bars = structure.members[~structure.unilateral].astype(np.int64)
        self._tried: dict[tuple[object, ...], Outcome] = {}
        self._judged: dict[tuple[object, ...], str] = {}
        self._too_steep: dict[tuple[object, ...], float] = {}

    @property
    def is_partial(self) -> bool:
        return self.level.is_partial

    @property
    def finest(self) -> int:
        return FINEST

    def alike(self, stand: Stand, turns: int) -> Stand:
        return self.level.alike(stand, turns)

    def stand(self, nodes: Array) -> Stand:
        return replace(super().stand(nodes), nodes=nodes)

    def standing(self, stand: Stand) -> Array | None:
        """(n, 3) m: shape at rest on the stand, or None if it is not available."""
        return stand.nodes

    def note_rest(self, nodes: Array) -> None:
        """Without effect: stands on hills contain their nodes."""

    def outcome(self, stand: Stand, cable: int) -> Outcome | None:
        """Simulated result of winding a cable; None if the shape at rest on the stand is not available."""
        if stand.nodes is None:
            return None
        key = (*self._key(stand), cable)
        if key not in self._tried:
            run = self._rolled(stand.nodes, cable)
            found = self._seen_by(self.symmetries[0], run, cable, ())
            self._tried[key] = replace(found, end=run.after, path=None)
        return self._tried[key]

    def try_roll(self, stand: Stand, roll: Outcome) -> None:
        """Simulate a guessed roll from a stand with nodes."""
        found = self.outcome(stand, roll.cable)
        if found is None or found.feet != stand.feet:
            return
        rise, above = self._rise(stand, roll), self._laid(stand, roll)[1]
        if rise > LEAST_RISE and above < EVEN * CLEARANCE * self.body.reader.size:
            self._too_steep[roll.kind] = min(rise, self._too_steep.get(roll.kind, np.inf))

    def rolls(self, stand: Stand, thorough: bool = False) -> Iterator[Outcome | None]:
        """The rolls that leave a face, as guesses unless they were simulated; yields None after each simulation.

        If no roll of level ground remains, all cables are simulated, provided that the shape at rest on the stand is
        available.
        """
        left = False
        for guess in self.level.rolls(Stand(stand.feet, stand.heading, stand.position), thorough):
            if guess is None:
                yield None
                continue
            found = self._tried.get((*self._key(stand), guess.cable))
            if found is None and not self._hinders(stand, guess):
                found = replace(guess, is_guess=True)
            if found is not None and _leads_on(stand, found):
                left = True
                yield found
        for cable in () if left or stand.nodes is None else range(len(self.body.names)):
            before = self.runs
            found = self.outcome(stand, cable)
            if self.runs > before:
                yield None
            if found is not None and _leads_on(stand, found):
                yield found

    def hindrance(self, stand: Stand) -> str:
        for guess in self.level.rolls(Stand(stand.feet, stand.heading, stand.position)):
            if guess is None:
                continue
            words = self._hinders(stand, guess)
            found = self._tried.get((*self._key(stand), guess.cable))
            if not words and found is not None and not _leads_on(stand, found):
                rise = np.degrees(np.arctan(self._rise(stand, guess)))
                words = f"in simulation a roll onto ground that rises at {rise:.2g} deg does not end at rest"
            if words:
                return words
        return ""

    def learn_failure(self, stand: Stand, cable: int) -> None:
        key = (*self._key(stand), cable)
        self._tried[key] = Outcome(cable, stand.feet, np.zeros(2), 0.0, 0.0, np.inf, -np.inf, np.inf, True)

    def after(self, stand: Stand, roll: Outcome) -> Stand:
        return super().after(stand, roll) if roll.end is None else self.stand(roll.end)

    # -- inside ---------------------------------------------------------------------------------------------------

    def _key(self, stand: Stand) -> tuple[object, ...]:
        cell = np.round(stand.position / POSITION_STEP).astype(int).tolist()
        return (stand.feet, round(stand.heading / TURN_STEP) % round(2.0 * np.pi / TURN_STEP), *cell)

    def _hinders(self, stand: Stand, guess: Outcome) -> str:
        """Text that says why a roll is discarded; "" if it is not."""
        steep = self._too_steep.get(guess.kind, np.inf)
        if steep < np.inf and (rise := self._rise(stand, guess)) >= steep:
            return (
                f"the ground rises at {np.degrees(np.arctan(rise)):.2g} deg, and in simulation the robot does not tip "
                f"over at {np.degrees(np.arctan(steep)):.2g} deg"
            )
        key = (stand.feet, guess.cable, round(stand.heading, 6), *np.round(stand.position, 6).tolist())
        if key not in self._judged:
            if len(self._judged) >= MOST_JUDGED:
                self._judged.clear()
            self._judged[key] = self._judge(stand, guess)
        return self._judged[key]

    def _judge(self, stand: Stand, guess: Outcome) -> str:
        after = super().after(stand, guess)
        x, y = after.position.tolist()
        if not self._field.holds(x, y):
            return "the height field ends there"
        path, above, (x, y) = self._laid(stand, guess)
        if above > CLEARANCE * self.body.reader.size:
            return (
                f"at ({x:.2f}, {y:.2f}) m the ground reaches {above:.2g} m into the path of the robot, more than "
                f"the allowed {CLEARANCE * self.body.reader.size:.2g} m"
            )
        feet = list(guess.feet)
        _, slope = self._plane(path[-1, feet, :2])
        steep = float(np.hypot(*slope))
        words = f"at ({x:.2f}, {y:.2f}) m its feet would stand on a slope of {np.degrees(np.arctan(steep)):.2g} deg, "
        if steep > self._friction:
            return words + f"steeper than the {np.degrees(np.arctan(self._friction)):.2g} deg that friction holds"
        assert guess.path is not None
        level = guess.path[-1]
        if steep > 0.0:  # as one body: turned about the contour line
            axis = np.array([slope[1], -slope[0], 0.0]) / steep
            turn = np.arctan(steep)
            cosine, sine = np.cos(stand.heading), np.sin(stand.heading)
            axis[:2] = cosine * axis[0] + sine * axis[1], -sine * axis[0] + cosine * axis[1]
            level = level @ matrix_from_vector(turn * axis).T
        if self.body.reader.margin(level, feet) < 0.0:
            return words + "on which it tips over again by itself"
        return ""

    def _laid(self, stand: Stand, guess: Outcome) -> tuple[Array, float, Array]:
        """Path (k, n, 3) m of a roll laid onto the field, largest height [m] of the ground above it, and the point (2,)
        m there."""
        assert guess.path is not None
        path = guess.path.copy()
        cosine, sine = np.cos(stand.heading), np.sin(stand.heading)
        path[..., :2] = path[..., :2] @ np.array([[cosine, sine], [-sine, cosine]]) + stand.position
        planes = [self._plane(path[k, list(feet), :2]) for k, feet in ((0, stand.feet), (-1, guess.feet))]
        middle = path[..., :2].mean(axis=1)
        along = middle[-1] - middle[0]
        done = np.clip((middle - middle[0]) @ along / max(float(along @ along), 1e-12), 0.0, 1.0)[:, None]
        before, beyond = (height + path[..., :2] @ slope for height, slope in planes)
        path[..., 2] += (1.0 - done) * before + done * beyond - self._lowest
        where = np.zeros(2)
        above = float(highest_above(self._ground, path, self._bars, BAR_STEP * self.body.reader.size, where))
        return path, above, where

    def _rise(self, stand: Stand, guess: Outcome) -> float:
        """Slope in the direction of a roll: the larger of the slopes of the planes through the feet before and after
        it; negative downhill."""
        assert guess.path is not None
        cosine, sine = np.cos(stand.heading), np.sin(stand.heading)
        own = np.array([[cosine, sine], [-sine, cosine]])
        along = guess.shift @ own / float(np.linalg.norm(guess.shift))
        ends = ((guess.path[0], stand.feet), (guess.path[-1], guess.feet))
        return max(
            float(self._plane(nodes[list(feet), :2] @ own + stand.position)[1] @ along) for nodes, feet in ends
        )  # fmt: skip

    def _plane(self, points: Array) -> tuple[float, Array]:
        """Height [m] at x = y = 0 and slope (2,) of the plane fitted to the field at points (m, 2) m."""
        heights = np.empty(len(points))
        field_heights(self._ground, np.ascontiguousarray(points), heights)
        middle, height = points.mean(axis=0), heights.mean()
        spread = points - middle
        slope = np.linalg.pinv(spread.T @ spread, 1e-6) @ (spread.T @ (heights - height))
        return float(height - slope @ middle), slope


def make_roll_map(
    robot: Robot, settings: GaitSettings | None = None, *, rigid_bars: bool = True,
    tipped_by: Callable[[RollingBody, int, Array, Array], Roll] | None = None,
) -> RollMap:  # fmt: skip
    """Map of the rolls of a robot on its ground, a `RollMap` or a `HillMap`; raises the errors of these."""
    model = robot.model
    on_hills = isinstance(model, Structure) and model.ground is not None and model.ground.hills is not None
    return (HillMap if on_hills else RollMap)(robot, settings, rigid_bars=rigid_bars, tipped_by=tipped_by)


def _leads_on(stand: Stand, roll: Outcome) -> bool:
    return roll.feet != stand.feet and roll.rests and len(roll.feet) > 2
