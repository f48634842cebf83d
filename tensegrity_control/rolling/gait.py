"""One roll of a free structure: a cable is wound in until the structure tips, let out again, and rest is waited for.

A winding cable moves the centre of mass across an edge of the face that the structure stands on. Once it is outside
nothing is wound any more, and some time after another node has come down the cable goes back to where it was, so that
every roll begins with the same rest lengths. The same code runs on the robot and in the model that predicts what a
cable does (`roll_map`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.structures.analysis.footing import FootingReader
from tensegrity_dynamics.structures.analysis.rest_watch import RestWatch
from tensegrity_dynamics.structures.structure import Structure

WIND, RELEASE, SETTLE, DONE = "wind", "release", "settle", "done"
FALL = 3.0
"""Times sqrt(size / g), which a fall over an edge takes at most, but for its very beginning."""


@dataclass(frozen=True)
class GaitSettings:
    """How rolls are made.

    Attributes:
        rate_margin: part of the actuators' rate limits that is used.
        patience: s, for which a cable that is wound in as far as it goes is kept there before the roll is given up.
        window: s, for which nothing may move by more than `stillness` before the structure counts as resting.
        stillness: in parts of the structure's size; a shift as a whole does not count, for friction creeps.
        settling: s, after which it counts as resting in any case.
    """

    rate_margin: float = 0.9
    patience: float = 1.0
    window: float = 0.5
    stillness: float = 0.004
    settling: float = 10.0


class RollingBody:
    """What rolling needs to know of a robot.

    Args:
        robot: a structure that is free on its ground, with actuators.

    Attributes:
        reader: of its footings. fall: s, a fall takes; an estimate that knows shapes at rest alone is ahead by it.
        neutral, low, high, rate: (a,) m and m/s of the actuators; neutral is what the robot file says, where every roll
        begins and ends.

    Raises:
        TensegrityError: it is no structure, has no ground, a fixed node or no actuators.
    """

    def __init__(self, robot: Robot) -> None:
        structure = robot.model_as(Structure)
        try:
            self.reader = FootingReader(structure)
        except TensegrityError as error:
            raise TensegrityError(f"{robot.name}: {error}") from None
        if not robot.actuators:
            raise TensegrityError(f"{robot.name}: it cannot roll, for it has no actuators.")
        self.robot, self.structure = robot, structure
        self.fall = FALL * float(np.sqrt(self.reader.size / np.linalg.norm(structure.gravity)))
        self.names = tuple(each.name for each in robot.actuators)
        self.low, self.high = np.array([each.position for each in robot.actuators]).T
        self.rate = np.array([each.rate for each in robot.actuators])
        self.neutral = np.clip(structure.rest_lengths[robot.actuated_members()], self.low, self.high)

    def position(self, nodes: Array) -> Array:
        """(2,) m: where it is in the plane: x and y of its output, or of its centre of mass without one."""
        position = self.robot.output_pose(nodes)[0] if self.robot.outputs else self.reader.centre(nodes)
        return np.asarray(position[:2])

    def face_words(self, feet: tuple[int, ...]) -> str:
        """A face for people: "n1-n5-n9"."""
        return "-".join(self.structure.node_names[i] for i in feet) or "nothing"


class Roll:
    """One roll, step by step.

    Args:
        body: what rolls. cable: index of the actuator that tips it; None only returns to the neutral rest lengths and
            waits for rest. settings: how.
        time: s. nodes: (n, 3) m, at rest. positions: (a,) m, the rest lengths that were commanded last.

    Attributes:
        phase: wind, release, settle, done. tipped: whether it has left its face. late: whether it did not rest in time.
        start: the face it stood on.
    """

    _face: tuple[int, ...]  # that it is tipped from

    def __init__(
        self, body: RollingBody, cable: int | None, settings: GaitSettings, time: float, nodes: Array, positions: Array
    ) -> None:
        self._body, self._settings, self.cable = body, settings, cable
        self.start = self._face = body.reader.touching(nodes)
        self.phase, self.tipped, self.late = (RELEASE if cable is None else WIND), False, False
        self._positions, self._time, self._since = np.array(positions), time, time
        self._landed = np.inf
        self._watch = RestWatch(settings.window, settings.stillness * body.reader.size)

    def command(self, time: float, nodes: Array) -> Array:
        """(a,) m, rest lengths for a time [s] at which the nodes are (n, 3) m."""
        step, self._time = max(0.0, time - self._time), time
        body, settings = self._body, self._settings
        most = settings.rate_margin * body.rate * step
        if self.phase == WIND:
            falls = body.reader.margin(nodes, self._face) < 0.0
            if falls and not set(body.reader.touching(nodes)) <= set(self._face):
                self._landed = min(self._landed, time)
            if time >= self._landed + body.fall:
                self.tipped = True
                self._fallen(time, nodes, step)
            elif falls:
                self._falls(step)
            elif self._winds(time, nodes, step):
                self._since = time
            if time - self._since >= settings.patience and not np.isfinite(self._landed):
                self._enter(RELEASE, time)
        if self.phase == RELEASE:
            self._positions += np.clip(body.neutral - self._positions, -most, most)
            if np.array_equal(self._positions, body.neutral):
                self._enter(SETTLE, time)
        elif self.phase == SETTLE:
            if self._watch.rests(time, nodes):
                self._enter(DONE, time)
            elif time - self._since >= settings.settling:
                self.late = True
                self._enter(DONE, time)
        return self._positions.copy()

    def _winds(self, time: float, nodes: Array, step: float) -> bool:
        """Wind for a step [s]; False where nothing is left to wind."""
        k, body = self.cable, self._body
        assert k is not None
        if self._positions[k] <= body.low[k]:
            return False
        most = self._settings.rate_margin * body.rate[k] * step
        self._positions[k] = max(body.low[k], self._positions[k] - most)
        return True

    def _falls(self, step: float) -> None:
        """While it falls, for a step [s]: nothing is wound."""

    def _fallen(self, time: float, nodes: Array, step: float) -> None:
        """What comes after a fall."""
        self._enter(RELEASE, time)

    def give_up(self, time: float) -> None:
        """Wind no further: let out and wait for rest."""
        if self.phase == WIND:
            self._enter(RELEASE, time)

    def _enter(self, phase: str, time: float) -> None:
        self.phase, self._since = phase, time
