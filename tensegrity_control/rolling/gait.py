"""One roll of a free structure: wind a cable in until the structure tips, let the cable out again, wait for rest.

Winding a cable moves the centre of mass across an edge of the face on which the structure stands. As soon as the centre
of mass is outside, winding stops. When another node has touched down and the time of a fall has passed, the cable
returns to its initial rest length, so that every roll starts with the same rest lengths. The same code runs on the
robot and in the simulation that predicts the result of a cable (`roll_map`).
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
"""Upper bound of the duration of a fall over an edge, in sqrt(size / g), without the very beginning of the fall."""


@dataclass(frozen=True)
class GaitSettings:
    """Settings of rolls.

    Attributes:
        rate_margin: fraction of the rate limits of the actuators that is used.
        patience: s, time at the shortest rest length of a cable after which the roll is given up.
        window: s, time during which no node may move by more than `stillness` before the structure counts as resting.
        stillness: displacement as a fraction of the size of the structure; a common translation does not count, since
            friction creeps.
        settling: s, time after which the structure counts as resting in any case.
    """

    rate_margin: float = 0.9
    patience: float = 1.0
    window: float = 0.5
    stillness: float = 0.004
    settling: float = 10.0


class RollingBody:
    """Data of a robot that rolls need.

    Args:
        robot: a structure that is free on its ground, with actuators.

    Attributes:
        reader: reads the footing from the nodes.
        fall: s, duration of a fall. An estimator that has shapes at rest only is ahead by this time.
        neutral: (a,) m, rest lengths of the robot file, with which every roll starts and ends.
        low, high: (a,) m, position limits of the actuators.
        rate: (a,) m/s, their rate limits.

    Raises:
        TensegrityError: the robot is no structure, or has no ground, a fixed node or no actuators.
    """

    def __init__(self, robot: Robot) -> None:
        structure = robot.model_as(Structure)
        try:
            self.reader = FootingReader(structure)
        except TensegrityError as error:
            raise TensegrityError(f"{robot.name}: {error}") from None
        if not robot.actuators:
            raise TensegrityError(f"{robot.name} has no actuators and cannot roll; add `actuators` to its robot file.")
        self.robot, self.structure = robot, structure
        self.fall = FALL * float(np.sqrt(self.reader.size / np.linalg.norm(structure.gravity)))
        self.names = tuple(each.name for each in robot.actuators)
        self.low, self.high = np.array([each.position for each in robot.actuators]).T
        self.rate = np.array([each.rate for each in robot.actuators])
        self.neutral = np.clip(structure.rest_lengths[robot.actuated_members()], self.low, self.high)

    def position(self, nodes: Array) -> Array:
        """(2,) m, x and y of the output, or of the centre of mass if the robot has no output."""
        position = self.robot.output_pose(nodes)[0] if self.robot.outputs else self.reader.centre(nodes)
        return np.asarray(position[:2])

    def face_words(self, feet: tuple[int, ...]) -> str:
        """Name of a face for messages: "n1-n5-n9"."""
        return "-".join(self.structure.node_names[i] for i in feet) or "nothing"


class Roll:
    """One roll, step by step.

    Args:
        body: the body that rolls.
        cable: index of the actuator that tips the structure. None: only return to the neutral rest lengths and wait for
            rest.
        settings: settings of the gait.
        time: s.
        nodes: (n, 3) m, at rest.
        positions: (a,) m, last commanded rest lengths.

    Attributes:
        phase: wind, release, settle or done.
        tipped: whether the structure has left its face.
        late: whether it did not rest in time.
        start: face at the start.
    """

    _face: tuple[int, ...]  # from which it tips

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
        """(a,) m, rest lengths at a time [s] with the nodes at (n, 3) m."""
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
        """Wind for a step [s]; False if the cable is at its limit."""
        k, body = self.cable, self._body
        assert k is not None
        if self._positions[k] <= body.low[k]:
            return False
        most = self._settings.rate_margin * body.rate[k] * step
        self._positions[k] = max(body.low[k], self._positions[k] - most)
        return True

    def _falls(self, step: float) -> None:
        """Called for each step [s] of a fall; winds nothing."""

    def _fallen(self, time: float, nodes: Array, step: float) -> None:
        """Called when the fall is over."""
        self._enter(RELEASE, time)

    def give_up(self, time: float) -> None:
        """Stop winding; let the cable out and wait for rest."""
        if self.phase == WIND:
            self._enter(RELEASE, time)

    def _enter(self, phase: str, time: float) -> None:
        self.phase, self._since = phase, time
