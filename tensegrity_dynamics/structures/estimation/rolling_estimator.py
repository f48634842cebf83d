"""The shape of a structure that is free on its ground, and where it has rolled to, from its rest lengths.

A model goes along with the robot: between two readings it is simulated, while its rest lengths move from one to the
next. So it knows what no equilibrium tells: how feet slide while a cable is wound, how sliding feet are carried
downhill, how friction creeps, when a shape falls and what it falls onto. The position is dead reckoning: what the model
does not know (friction, unlike masses, pushes) adds up and nothing corrects it.

IMUs on rods (`imu` of the robot file) say how the rods lie. While that agrees with the model, nothing changes. Where
the model has fallen and the readings say that the robot still stands, the last shape is kept until it falls, too. Where
neither agrees and the readings are still, the faces are looked through that the last sure shape tips onto
(`face_search`); of those that agree the one counts whose path there fits the readings since best, and the model goes on
from the equilibrium there. Where none agrees the estimate is lost and says so. Whatever the reason, an estimate that
fresh readings contradict is not `converged`. Headings and positions are never seen: a robot that is pushed along, or
turned about the vertical, is not noticed, and rods of one direction alone leave several faces alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...errors import NoEquilibriumError, TensegrityError
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
"""s between looks at a model that is let come to rest, s for which it must rest, and s after which it counts as resting
anyway; after so long without a reading, too."""
STILL, JUMP = 0.004, 0.1
"""In parts of the structure's size: what may move at rest, and what may move without a fall where there is no past."""
BEHIND = 0.01
"""In parts of the structure's size, by which the model's rest lengths may be behind the readings: it winds no faster
than the actuators do, so that one wrong reading does little."""
FIT, NOISE, NEAR = 0.1, 4.0, 0.35
"""rad by which rods of an equilibrium may lie otherwise than the IMUs say, beside so many deviations of their noise;
and by how much those of a shape that is tipped as it was, before its cables are let out."""
MOST_TIPS, TIP, AS_WELL, TRAIL, AGAIN, LOST = 4, 0.02, 0.1, 0.05, 0.25, 1.0
"""Edges that it may have fallen over, two for each roll; what one more counts for, and by how much a path may fit worse
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
        self._model_robot = replace(robot, model=replace(structure, imus=()), outputs=())  # what nobody asks it for
        self._model = StructureSimulator(self._model_robot, None, "rattle", rigid_bars=rigid_bars)
        self._step, self._mass = self._model.time_step, structure.mass_matrix()
        super().__init__(robot, rigid_bars=rigid_bars)
        self._driven = np.array(list(self._drives.values()), dtype=np.int64)

    def reset(self) -> None:
        super().reset()
        self.readings.clear()
        self._now, self._lost, self._searched, self._failing = -np.inf, "", -np.inf, np.inf
        self._at, self._behind = -np.inf, ""  # s, until when the model has gone along; by what readings are ahead of it
        self._feet = set(self._reader.touching(self._home.nodes))  # that the model stood on last
        self._sure: StructureEquilibrium = self._home  # the last standing shape that the readings agreed with
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
        if estimate.converged and (reason := self._lost or self._behind or self._contradiction(estimate.nodes)):
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
        found = self._followed(lengths, last)
        if not self.readings.names:
            return found
        seen = self.readings.at(self._now)
        if not np.isfinite(seen).any() or self._agrees(found.nodes, seen):
            return self._believed(found)
        if self._agrees(self._sure.nodes, seen):
            return self._still_standing(lengths)
        if not self._trail or np.nanmax(np.abs(seen - self._trail[-1])) > TRAIL:
            self._trail.append(seen)
        still = self.readings.still()
        if still is None or self._now < self._searched + AGAIN:
            return found
        self._searched = self._now
        return self._found_by(lengths, still) or found

    def _followed(self, lengths: NDArray[np.float64], last: StructureEquilibrium) -> StructureEquilibrium:
        """The model, simulated on to now while its rest lengths move to (m,) m; from rest where there is no past."""
        model, interval = self._model, self._now - self._at
        if not 0.0 < interval <= LONGEST:
            return self._put(self._predicted(lengths, last))
        before = model.state
        steps = max(1, int(np.ceil(interval / self._step - 1e-9)))
        model.time_step = interval / steps
        rates = (lengths - before.rest_lengths)[self._driven] / interval
        try:
            model.step_arrays(rates, "velocity", steps)
        except TensegrityError:
            self._put(last)
            raise
        self._at = self._now
        found = self._shape(before.velocities, interval)
        feet = set(self._reader.touching(found.nodes))
        if found.stable and not (feet <= self._feet or self._feet <= feet):
            self.falls += 1
        self._feet = feet if found.stable else self._feet
        gaps = lengths - found.rest_lengths
        worst = int(np.argmax(np.abs(gaps)))
        self._behind = ""
        if abs(gaps[worst]) > BEHIND * self._reader.size:
            self._behind = (
                f"{self._structure.member_names[worst]} is read {abs(gaps[worst]):.3g} m away from the model, which "
                "winds no faster than the actuators"
            )
        return found

    def _shape(self, before: NDArray[np.float64], interval: float) -> StructureEquilibrium:
        """The model as it is; `residual` is the force that its mean acceleration since velocities (n, 3) m/s takes."""
        seen, state = self._model.observe(), self._model.state
        contacts = np.zeros_like(state.nodes)
        for name, force in seen.contacts.items():
            contacts[self._structure.node(name)] = force
        feet = self._reader.touching(state.nodes)
        return StructureEquilibrium(
            structure=self._structure.with_rest_lengths(state.rest_lengths), nodes=state.nodes,
            lengths=np.array(list(seen.lengths.values())), tensions=np.array(list(seen.tensions.values())),
            residual=float(np.abs(self._mass @ (state.velocities - before)).max()) / interval, iterations=0,
            converged=True, stable=self._reader.margin(state.nodes, feet) > 0.0, softest=np.nan,
            softest_direction=np.zeros_like(state.nodes), position_error=np.nan, method="simulated",
            output=self._solver.output, contacts=contacts,
        )  # fmt: skip

    def _put(self, found: StructureEquilibrium) -> StructureEquilibrium:
        """The model goes on from there, at rest."""
        self._model.set_rest_lengths(found.rest_lengths)
        self._model.set_state(found.nodes)
        self._at, self._behind, self._feet = self._now, "", set(self._reader.touching(found.nodes))
        return found

    def _predicted(self, lengths: NDArray[np.float64], last: StructureEquilibrium) -> StructureEquilibrium:
        """At rest, by the equilibrium next to the last shape, or where that falls to."""
        feet = self._reader.touching(last.nodes)
        found = self._standing_on(lengths, last.nodes, feet)
        if found is None or np.abs(found.nodes - last.nodes).max() > JUMP * self._reader.size:
            return self._fallen(lengths, last)
        return found

    def _agrees(self, nodes: NDArray[np.float64], seen: NDArray[np.float64]) -> bool:
        """Whether rods lie as their IMUs say, as far as these say anything, within what noise and shapes explain."""
        finite = np.isfinite(seen)
        off = np.abs(elevations(nodes, self._rods, self._reader.up) - seen)[finite]
        return bool(finite.any() and (off <= FIT + NOISE * self.readings.noise[finite]).all())

    def _believed(self, found: StructureEquilibrium) -> StructureEquilibrium:
        if found.stable:  # on the way to another face it shows nothing to come back to
            self._sure = found
        self._lost, self._trail, self._failing = "", [], np.inf
        return found

    def _still_standing(self, lengths: NDArray[np.float64]) -> StructureEquilibrium:
        """The model has fallen, the robot has not: the last shape, until it falls or rests where it can stand."""
        self._trail = []
        if self.readings.still() is not None and self._now >= self._searched + AGAIN:
            self._searched = self._now
            found = self._standing_on(lengths, self._sure.nodes, self._reader.touching(self._sure.nodes))
            if found is not None:
                return self._believed(self._put(found))
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
                return self._believed(self._put(found))
        for _, sequence in sequences[:1]:  # it does not stay there with these rest lengths, and may have moved on
            fallen = self._fallen(lengths, sequence.nodes)
            if self._agrees(fallen.nodes, seen):
                self.corrections += 1
                return self._believed(self._put(fallen))
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
        """Where a model comes to rest from a shape, as its actuators wind; from nodes (n, 3) m with these lengths."""
        self.falls += 1
        fallen = StructureSimulator(self._model_robot, None, "rattle", rigid_bars=self._rigid, start=last)
        if not isinstance(last, StructureEquilibrium):
            fallen.set_rest_lengths(lengths)
        targets = {name: float(lengths[row]) for name, row in self._drives.items()}
        fallen.command("position", targets)
        steps = max(1, round(LOOK / fallen.time_step))
        watch = RestWatch(WINDOW, STILL * self._reader.size)
        while not watch.rests(fallen.time, fallen.state.nodes) and fallen.time < LONGEST:
            fallen.advance(steps)
        return self._solver.solve(lengths, start=fallen.state.nodes)


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
