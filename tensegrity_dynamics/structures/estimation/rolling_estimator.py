"""Shape and position of a structure that rolls freely on its ground, estimated from rest lengths and IMUs.

A model is simulated in parallel with the robot: between two readings, the model's rest lengths move from the old to the
new values. The simulation contains effects that no equilibrium shows: feet that slide while a cable is wound, feet that
slide downhill, friction creep, when a shape falls and onto which face. The position is dead reckoning: modelling errors
(friction, unequal masses, pushes) accumulate, and no measurement corrects them.

IMUs on rods (`imu` of the robot file) measure the elevation of the rods. There are four cases:

* IMUs and model agree: the estimate is the model.
* The model has fallen, but the IMUs show that the robot still stands: the estimate is the last shape, until the robot
  falls, too.
* Neither agrees, and the readings are at rest: the faces that are reached by tipping from the last confirmed shape are
  searched (`face_search`). Among the faces that agree with the IMUs, the one whose path fits the past readings best is
  taken, and the model continues from the equilibrium on it.
* No face agrees: the estimate is reported as lost.

An estimate that contradicts fresh readings is never `converged`. Headings and positions are not measured: the estimator
does not notice that a robot is pushed sideways or turned about the vertical. IMUs on rods of one direction alone cannot
distinguish some faces.
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
"""Settling of a model to rest [s]: interval between two checks, duration of rest that is required, and duration after
which the model counts as resting in any case. The last one is also the longest gap between readings."""
STILL, JUMP = 0.004, 0.1
"""Fractions of the structure's size: largest motion at rest, and largest motion without a fall if there is no past."""
BEHIND = 0.01
"""Fraction of the structure's size by which the model's rest lengths may differ from the readings. The model winds no
faster than the actuators, so that one wrong reading has little effect."""
FIT, NOISE, NEAR = 0.1, 4.0, 0.35
"""Angle between rods of an equilibrium and their IMU readings that is tolerated [rad], plus this multiple of the noise;
and the angle that is tolerated for a shape that is tipped without its cables being relaxed [rad]."""
MOST_TIPS, TIP, AS_WELL, TRAIL, AGAIN, LOST = 4, 0.02, 0.1, 0.05, 0.25, 1.0
"""Largest number of tipped edges (a roll has two), misfit that one more tip counts as [rad], misfit above the best path
that is still accepted [rad], change between two readings that is stored in the path [rad], interval between two
searches [s], and duration of unsuccessful searches after which the robot is lost [s]."""


class RollingEstimator(StructureEstimator):
    """See the module. Args as `StructureEstimator`; the robot's structure is free on a ground.

    Attributes:
        falls: number of falls of the model. corrections: number of times that IMU readings changed the model's face.
        readings: of the IMUs of the robot file; `readings.take` adds a reading, which the next `update` uses.
    """

    def __init__(self, robot: Robot, *, rigid_bars: bool = True) -> None:
        structure = robot.model_as(Structure)
        self._reader, self.falls, self.corrections = FootingReader(structure), 0, 0
        self.readings = ImuReadings(structure.imus, float(np.linalg.norm(structure.gravity)))
        rods = [structure.member(name) for name in self.readings.names]
        self._rods = structure.members[rods].reshape(-1, 2)
        self._model_robot = replace(robot, model=replace(structure, imus=()), outputs=())  # not needed in the model
        self._model = StructureSimulator(self._model_robot, None, "rattle", rigid_bars=rigid_bars)
        self._step, self._mass = self._model.time_step, structure.mass_matrix()
        super().__init__(robot, rigid_bars=rigid_bars)
        self._driven = np.array(list(self._drives.values()), dtype=np.int64)

    def reset(self) -> None:
        super().reset()
        self.readings.clear()
        self._now, self._lost, self._searched, self._failing = -np.inf, "", -np.inf, np.inf
        self._at, self._behind = -np.inf, ""  # time of the model [s]; text if its rest lengths differ from the readings
        self._feet = set(self._reader.touching(self._home.nodes))  # feet of the last stable shape of the model
        self._sure: StructureEquilibrium = self._home  # last standing shape that agreed with the readings
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
        """See `Estimator.update`; `converged` is also False while the shape contradicts the IMUs."""
        if time < self.last.time:
            self.reset()
        self._now = time
        estimate = super().update(time, positions, efforts, tensions)
        if estimate.converged and (reason := self._lost or self._behind or self._contradiction(estimate.nodes)):
            estimate = self.last = replace(estimate, converged=False, reason=reason)
        return estimate

    def _contradiction(self, nodes: NDArray[np.float64]) -> str:
        """Text with the rods whose direction at nodes (n, 3) [m] contradicts their IMUs; "" if there is none."""
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
        """Simulate the model up to now while its rest lengths move to `lengths` (m,) [m]; without a past, take its
        shape at rest."""
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
        """Present shape of the model; `residual` is the inertial force of the mean acceleration since `before` (n, 3)
        [m/s]."""
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
        """Continue the model from this shape, at rest."""
        self._model.set_rest_lengths(found.rest_lengths)
        self._model.set_state(found.nodes)
        self._at, self._behind, self._feet = self._now, "", set(self._reader.touching(found.nodes))
        return found

    def _predicted(self, lengths: NDArray[np.float64], last: StructureEquilibrium) -> StructureEquilibrium:
        """Shape at rest: the equilibrium next to the last shape, or the one after a fall from it."""
        feet = self._reader.touching(last.nodes)
        found = self._standing_on(lengths, last.nodes, feet)
        if found is None or np.abs(found.nodes - last.nodes).max() > JUMP * self._reader.size:
            return self._fallen(lengths, last)
        return found

    def _agrees(self, nodes: NDArray[np.float64], seen: NDArray[np.float64]) -> bool:
        """Whether the rods lie as their IMUs measure, within noise and tolerance; False without any reading."""
        finite = np.isfinite(seen)
        off = np.abs(elevations(nodes, self._rods, self._reader.up) - seen)[finite]
        return bool(finite.any() and (off <= FIT + NOISE * self.readings.noise[finite]).all())

    def _believed(self, found: StructureEquilibrium) -> StructureEquilibrium:
        if found.stable:  # a shape that is tipping is no standing shape to return to
            self._sure = found
        self._lost, self._trail, self._failing = "", [], np.inf
        return found

    def _still_standing(self, lengths: NDArray[np.float64]) -> StructureEquilibrium:
        """The last shape, for a model that has fallen while the robot has not, until the robot falls, too, or a stable
        equilibrium near that shape is found."""
        self._trail = []
        if self.readings.still() is not None and self._now >= self._searched + AGAIN:
            self._searched = self._now
            found = self._standing_on(lengths, self._sure.nodes, self._reader.touching(self._sure.nodes))
            if found is not None:
                return self._believed(self._put(found))
        return self._sure

    def _found_by(self, lengths: NDArray[np.float64], seen: NDArray[np.float64]) -> StructureEquilibrium | None:
        """Shape on the face that the readings at rest (k,) [rad] determine; None if no near face agrees."""
        sequences = [
            (self._misfit(sequence, seen), sequence)
            for sequence in tip_sequences(self._reader, self._sure.nodes, self._rods, MOST_TIPS)
            if np.nanmax(np.abs(sequence.passed[-1] - seen)) <= NEAR
        ]
        sequences.sort(key=lambda each: each[0])
        sequences = [
            each for each in sequences if each[0] <= sequences[0][0] + AS_WELL
        ]  # a worse path must not win because its shape settles closer to the readings
        for _, sequence in sequences:
            found = self._standing_on(lengths, sequence.nodes, sequence.faces[-1])
            if found is not None and self._agrees(found.nodes, seen):
                self.corrections += 1
                return self._believed(self._put(found))
        for _, sequence in sequences[:1]:  # no equilibrium on that face with these rest lengths: it may have rolled on
            fallen = self._fallen(lengths, sequence.nodes)
            if self._agrees(fallen.nodes, seen):
                self.corrections += 1
                return self._believed(self._put(fallen))
        self._failing = min(self._failing, self._now)
        if self._now < self._failing + LOST:
            return None  # it may be rocking on an edge
        feet = self._reader.touching(self._sure.nodes)
        self._lost = (
            f"lost: no face within {MOST_TIPS} tips of {'-'.join(self._structure.node_names[i] for i in feet)} lies as "
            "the IMUs say; put the robot where its file says, and reset"
        )
        return None

    def _misfit(self, sequence: TipSequence, seen: NDArray[np.float64]) -> float:
        """Misfit between the readings (final and past ones) and a tip sequence [rad], plus `TIP` for each tip."""
        off = float(np.nanmax(np.abs(sequence.passed[-1] - seen)))
        passed = [float(np.nanmin(np.nanmax(np.abs(sequence.passed - each), axis=1))) for each in self._trail]
        return off + (float(np.mean(passed)) if passed else 0.0) + TIP * sequence.tips

    def _standing_on(
        self, lengths: NDArray[np.float64], nodes: NDArray[np.float64], feet: tuple[int, ...]
    ) -> StructureEquilibrium | None:
        """Equilibrium near nodes (n, 3) [m] that stands on these feet, or None."""
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
        """Same shape, moved such that its feet are nearest to their former positions; on hills it is not moved."""
        ground = self._structure.ground
        assert ground is not None
        if ground.hills is not None:
            return found
        nodes, rotation = _laid_onto(found.nodes, before, feet, ground.normal)
        if ground.slope == 0.0:  # on level ground a rotated and shifted shape is still an equilibrium
            return replace(found, nodes=nodes, softest_direction=found.softest_direction @ rotation.T)
        return self._solver.solve(lengths, start=nodes)

    def _fallen(
        self, lengths: NDArray[np.float64], last: StructureEquilibrium | NDArray[np.float64]
    ) -> StructureEquilibrium:
        """Shape in which a model comes to rest that starts from `last`: an equilibrium, whose actuators then wind to
        these lengths, or nodes (n, 3) [m] that start with these lengths."""
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
    """Nodes (n, 3) [m] rotated about `up` and shifted perpendicular to it such that the feet are nearest to `before`;
    and that rotation (3, 3)."""
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
    """Estimator of shapes at rest; for a structure that is free on its ground, also of its rolling."""
    structure = robot.model_as(Structure)
    is_free = structure.ground is not None and not structure.fixed.any()
    if is_free and structure.gravity.any() and structure.lumped_masses().any():
        return RollingEstimator(robot, rigid_bars=rigid_bars)
    return StructureEstimator(robot, rigid_bars=rigid_bars)
