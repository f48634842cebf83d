"""The shape of a structure that is free on its ground, and where it has rolled to, from its rest lengths.

While it keeps its feet the shape is the equilibrium for the rest lengths, laid onto the last one so that the feet stay
where they were. Where it loses its face the equilibrium does not say how it falls: the model is let fall from the last
shape until it rests, edge by edge, and the equilibrium is sought there. The position is dead reckoning: what the model
does not know of a fall (friction, unlike masses) adds up and nothing corrects it.

IMUs on rods (`imu` of the robot file) say how the rods lie. While that agrees with the model, nothing changes but that
a fall is shown when it happens. Where it does not, and the readings are still, the faces are looked through that the
last sure shape tips onto (`face_search`); of those that agree the one counts whose way there fits the readings since
best. Where none agrees the estimate is lost and says so. Whatever the reason, an estimate that fresh readings
contradict is not `converged`, as while the robot falls and the model has come to rest already. Heading and position are
never seen: a robot that slides, or that turns about the vertical, is not noticed, and rods of one direction alone
leave several faces alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...errors import NoEquilibriumError
from ...estimation_interface import Estimator
from ...robots.robot import Robot
from ..analysis.footing import FootingReader
from ..analysis.rest_watch import RestWatch
from ..dynamics.structure_simulator import StructureSimulator
from ..form_finding.equilibrium import StructureEquilibrium
from ..imu import elevations
from ..structure import Structure
from .face_search import TipSequence, tip_sequences
from .imu_readings import ImuReadings
from .quasi_static_estimator import StructureEstimate, StructureEstimator

LOOK, WINDOW, LONGEST = 0.05, 0.5, 20.0
"""s between looks at the falling model, s for which it must rest, and s after which it counts as resting anyway."""
STILL, JUMP = 0.004, 0.1
"""In parts of the structure's size: what may move at rest, and what may move between two readings on the same feet."""
FIT, NOISE, NEAR = 0.1, 4.0, 0.35
"""rad by which rods of an equilibrium may lie otherwise than the IMUs say, beside so many deviations of their noise;
and by how much those of a shape that is tipped as it was, before its cables are let out."""
MOST_TIPS, TIP, AS_WELL, TRAIL, AGAIN, LOST = 4, 0.02, 0.1, 0.05, 0.25, 1.0
"""Edges that it may have fallen over, two for each roll; what one more counts for, and by how much a way may fit worse
than the best one and be taken [rad]; rad from one reading to the
next that is remembered on the way; s between two searches, and s for which they find nothing until it is lost."""


class RollingEstimator(StructureEstimator):
    """See the module. Args as `StructureEstimator`; the robot's structure is free on a ground.

    Attributes:
        falls: how often the model fell. corrections: how often readings of IMUs led to another face than the model.
        readings: of the IMUs of the robot file; `readings.take` adds one, which the next `update` looks at.
    """

    def __init__(self, robot: Robot, *, rigid_bars: bool = True) -> None:
        structure = robot.model_as(Structure)
        self._reader, self.falls, self.corrections = FootingReader(structure), 0, 0
        self.readings = ImuReadings(structure.imus, float(np.linalg.norm(structure.gravity)))
        rods = [structure.member(name) for name in self.readings.names]
        self._rods = structure.members[rods].reshape(-1, 2)
        super().__init__(robot, rigid_bars=rigid_bars)

    def reset(self) -> None:
        super().reset()
        self.readings.clear()
        self._now, self._lost, self._searched, self._failing = -np.inf, "", -np.inf, np.inf
        self._sure: StructureEquilibrium = self._home  # the last shape that the readings agreed with
        self._ahead: StructureEquilibrium | None = None  # where the model has fallen to, while the robot still stands
        self._trail: list[NDArray[np.float64]] = []  # elevations since then

    @property
    def notes(self) -> dict[str, str]:
        rods = ", ".join(self.readings.names)
        if not rods:
            return {"position": "dead reckoning by rest lengths; a fall that the model does not expect is not seen"}
        notes = {"position": f"dead reckoning, faces checked by IMUs on {rods}; corrected: {self.corrections}"}
        if stale := self.readings.stale(self._now):
            notes["imu"] = f"no fresh reading of {', '.join(stale)}"
        if self.readings.refused:
            notes["imu_refused"] = f"{self.readings.refused}, the last: {self.readings.why}"
        return notes

    def update(
        self,
        time: float,
        positions: Mapping[str, float],
        efforts: Mapping[str, float] | None = None,
        tensions: Mapping[str, float] | None = None,
    ) -> StructureEstimate:
        """See `Estimator.update`; `converged` is False, too, while the shape is not what the IMUs say."""
        if time < self._last.time:
            self.reset()
        self._now = time
        estimate = super().update(time, positions, efforts, tensions)
        if estimate.converged and (reason := self._lost or self._contradiction(estimate.nodes)):
            estimate = self._last = replace(estimate, converged=False, reason=reason)
        return estimate

    def _contradiction(self, nodes: NDArray[np.float64]) -> str:
        """Which rods lie otherwise at nodes (n, 3) m than their IMUs say, in words; "" where none does."""
        if not self.readings.names:
            return ""
        seen = self.readings.at(self._now)
        off = np.abs(elevations(nodes, self._rods, self._reader.up) - seen)
        wrong = [
            f"{name} by {np.degrees(angle):.0f} deg"
            for name, angle, noise in zip(self.readings.names, off, self.readings.noise, strict=True)
            if angle > FIT + NOISE * noise  # never for NaN
        ]
        return f"the IMUs say otherwise: {', '.join(wrong)}" if wrong else ""

    def _solve_from(self, lengths: NDArray[np.float64], last: StructureEquilibrium) -> StructureEquilibrium:
        if not self.readings.names:
            return self._predicted(lengths, last)
        seen = self.readings.at(self._now)
        if self._ahead is not None and self._agrees(self._sure.nodes, seen):
            return self._still_standing(lengths)
        falls = self.falls
        found = self._predicted(lengths, self._ahead or last)
        self._ahead = None
        if not np.isfinite(seen).any() or self._agrees(found.nodes, seen):
            return self._believed(found)
        if self.falls > falls and self._agrees(self._sure.nodes, seen):
            self._ahead = found  # the model is quicker than the robot
            return self._sure
        if not self._trail or np.nanmax(np.abs(seen - self._trail[-1])) > TRAIL:
            self._trail.append(seen)
        still = self.readings.still()
        if still is None or self._now < self._searched + AGAIN:
            return found
        self._searched = self._now
        return self._found_by(lengths, still) or found

    def _predicted(self, lengths: NDArray[np.float64], last: StructureEquilibrium) -> StructureEquilibrium:
        """By the model alone."""
        feet = self._reader.touching(last.nodes)
        try:
            found = self._solver.solve(lengths, start=last)
        except NoEquilibriumError:
            return self._fallen(lengths, last)
        if not found.stable or self._reader.touching(found.nodes) != feet:
            return self._fallen(lengths, last)
        if len(feet) > 1:
            found = self._held_fixed(lengths, found, last.nodes, feet)
        if np.abs(found.nodes - last.nodes).max() > JUMP * self._reader.size:
            return self._fallen(lengths, last)
        return found

    def _agrees(self, nodes: NDArray[np.float64], seen: NDArray[np.float64]) -> bool:
        """Whether rods lie as their IMUs say, as far as these say anything, within what noise and shapes explain."""
        finite = np.isfinite(seen)
        off = np.abs(elevations(nodes, self._rods, self._reader.up) - seen)[finite]
        return bool(finite.any() and (off <= FIT + NOISE * self.readings.noise[finite]).all())

    def _believed(self, found: StructureEquilibrium) -> StructureEquilibrium:
        self._sure, self._lost, self._trail, self._failing = found, "", [], np.inf
        return found

    def _still_standing(self, lengths: NDArray[np.float64]) -> StructureEquilibrium:
        """The model has fallen, the robot has not: the last shape, until it falls or the cable is let out again."""
        if self._now >= self._searched + AGAIN:
            self._searched = self._now
            found = self._standing_on(lengths, self._sure.nodes, self._reader.touching(self._sure.nodes))
            if found is not None:
                self._ahead = None
                return self._believed(found)
        return self._sure

    def _found_by(self, lengths: NDArray[np.float64], seen: NDArray[np.float64]) -> StructureEquilibrium | None:
        """The shape on the face that the readings at rest (k,) rad tell; None where no face near does."""
        sequences = [
            (self._misfit(sequence, seen), sequence)
            for sequence in tip_sequences(self._reader, self._sure.nodes, self._rods, MOST_TIPS)
            if np.nanmax(np.abs(sequence.passed[-1] - seen)) <= NEAR
        ]
        sequences.sort(key=lambda each: each[0])
        sequences = [
            each for each in sequences if each[0] <= sequences[0][0] + AS_WELL
        ]  # no other way because it settles better
        for _, sequence in sequences:
            found = self._standing_on(lengths, sequence.nodes, sequence.faces[-1])
            if found is not None and self._agrees(found.nodes, seen):
                self.corrections += 1
                return self._believed(found)
        for _, sequence in sequences[:1]:  # it does not stay there with these rest lengths, and may have moved on
            fallen = self._fallen(lengths, sequence.nodes)
            if self._agrees(fallen.nodes, seen):
                self.corrections += 1
                return self._believed(fallen)
        self._failing = min(self._failing, self._now)
        if self._now < self._failing + LOST:
            return None  # it may rock on an edge
        feet = self._reader.touching(self._sure.nodes)
        self._lost = (
            f"lost: no face within {MOST_TIPS} tips of {'-'.join(self._structure.node_names[i] for i in feet)} lies as "
            "the IMUs say; put the robot where its file says, and reset"
        )
        return None

    def _misfit(self, sequence: TipSequence, seen: NDArray[np.float64]) -> float:
        """rad, by which readings at the end and on the way differ from those of a way, and a little for each tip."""
        off = float(np.nanmax(np.abs(sequence.passed[-1] - seen)))
        passed = [float(np.nanmin(np.nanmax(np.abs(sequence.passed - each), axis=1))) for each in self._trail]
        return off + (float(np.mean(passed)) if passed else 0.0) + TIP * sequence.tips

    def _standing_on(
        self, lengths: NDArray[np.float64], nodes: NDArray[np.float64], feet: tuple[int, ...]
    ) -> StructureEquilibrium | None:
        """The equilibrium near nodes (n, 3) m on these feet, or None."""
        try:
            found = self._solver.solve(lengths, start=nodes)
            if found.stable and self._reader.touching(found.nodes) == feet:
                return self._held_fixed(lengths, found, nodes, feet)
        except NoEquilibriumError:
            pass
        return None

    def _held_fixed(
        self, lengths: NDArray[np.float64], found: StructureEquilibrium, before: NDArray[np.float64],
        feet: tuple[int, ...],
    ) -> StructureEquilibrium:  # fmt: skip
        """The same shape where its feet are nearest to where they were; on hills, which differ, as it was found."""
        ground = self._structure.ground
        assert ground is not None
        if ground.hills is not None:
            return found
        nodes, rotation = _laid_onto(found.nodes, before, feet, ground.normal)
        if ground.slope == 0.0:  # turned and shifted it is in balance as before
            return replace(found, nodes=nodes, softest_direction=found.softest_direction @ rotation.T)
        return self._solver.solve(lengths, start=nodes)

    def _fallen(
        self, lengths: NDArray[np.float64], last: StructureEquilibrium | NDArray[np.float64]
    ) -> StructureEquilibrium:
        self.falls += 1
        simulator = StructureSimulator(self.robot, None, "rattle", rigid_bars=self._rigid, start=last)
        if not isinstance(last, StructureEquilibrium):
            simulator.set_rest_lengths(lengths)
        targets = {name: float(lengths[row]) for name, row in self._drives.items()}
        simulator.command("position", targets)
        steps = max(1, round(LOOK / simulator.time_step))
        watch = RestWatch(WINDOW, STILL * self._reader.size)
        while not watch.rests(simulator.time, simulator.state.nodes) and simulator.time < LONGEST:
            simulator.advance(steps)
        return self._solver.solve(lengths, start=simulator.state.nodes)


def _laid_onto(
    nodes: NDArray[np.float64], before: NDArray[np.float64], feet: tuple[int, ...], up: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(n, 3) m: nodes turned about `up` and shifted square to it, so that the feet are nearest to before; the turn."""
    rows = list(feet)
    middle, aim = nodes[rows].mean(axis=0), before[rows].mean(axis=0)
    arms, desired = nodes[rows] - middle, before[rows] - aim
    across = np.cross(arms, desired) @ up
    along = np.einsum("ij,ij->i", arms, desired) - (arms @ up) * (desired @ up)
    angle = float(np.arctan2(across.sum(), along.sum()))
    cross = np.array([[0.0, -up[2], up[1]], [up[2], 0.0, -up[0]], [-up[1], up[0], 0.0]])
    rotation = np.eye(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * cross @ cross
    shift = aim - middle
    return (nodes - middle) @ rotation.T + middle + shift - (shift @ up) * up, rotation


def make_shape_estimator(robot: Robot, *, rigid_bars: bool = True) -> Estimator:
    """The estimator of shapes at rest: of a structure that is free on its ground, also of where it rolls to."""
    structure = robot.model_as(Structure)
    is_free = structure.ground is not None and not structure.fixed.any()
    if is_free and structure.gravity.any() and structure.lumped_masses().any():
        return RollingEstimator(robot, rigid_bars=rigid_bars)
    return StructureEstimator(robot, rigid_bars=rigid_bars)
