"""The shape of a structure that is free on its ground, and where it has rolled to, from its rest lengths alone.

While it keeps its feet the shape is the equilibrium for the rest lengths, laid onto the last one so that the feet stay
where they were. Where it loses its face the equilibrium does not say how it falls: the model is let fall from the last
shape until it rests, edge by edge, and the equilibrium is sought there. The place is dead reckoning: what the model
does not know of a fall (friction, unlike masses) adds up and nothing corrects it.
"""

from __future__ import annotations

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
from ..structure import Structure
from .quasi_static_estimator import StructureEstimator

LOOK, WINDOW, LONGEST = 0.05, 0.5, 20.0
"""s between looks at the falling model, s for which it must rest, and s after which it counts as resting anyway."""
STILL, JUMP = 0.004, 0.1
"""In parts of the structure's size: what may move at rest, and what may move between two readings on the same feet."""


class RollingEstimator(StructureEstimator):
    """See the module. Args as `StructureEstimator`; the robot's structure is free on a ground.

    Attributes:
        falls: how often the model fell.
    """

    def __init__(self, robot: Robot, *, rigid_bars: bool = True) -> None:
        self._reader, self.falls = FootingReader(robot.model_as(Structure)), 0
        super().__init__(robot, rigid_bars=rigid_bars)

    def _solve_from(self, lengths: NDArray[np.float64], last: StructureEquilibrium) -> StructureEquilibrium:
        feet = self._reader.touching(last.nodes)
        try:
            found = self._solver.solve(lengths, start=last)
        except NoEquilibriumError:
            return self._fallen(lengths, last)
        if not found.stable or self._reader.touching(found.nodes) != feet:
            return self._fallen(lengths, last)
        if len(feet) > 1:
            found = self._kept_in_place(lengths, found, last, feet)
        if np.abs(found.nodes - last.nodes).max() > JUMP * self._reader.size:
            return self._fallen(lengths, last)
        return found

    def _kept_in_place(
        self, lengths: NDArray[np.float64], found: StructureEquilibrium, last: StructureEquilibrium,
        feet: tuple[int, ...],
    ) -> StructureEquilibrium:  # fmt: skip
        """The same shape where its feet are nearest to where they were; on hills, which differ, as it was found."""
        ground = self._structure.ground
        assert ground is not None
        if ground.hills is not None:
            return found
        nodes, rotation = _laid_onto(found.nodes, last.nodes, feet, ground.normal)
        if ground.slope == 0.0:  # turned and shifted it is in balance as before
            return replace(found, nodes=nodes, softest_direction=found.softest_direction @ rotation.T)
        return self._solver.solve(lengths, start=nodes)

    def _fallen(self, lengths: NDArray[np.float64], last: StructureEquilibrium) -> StructureEquilibrium:
        self.falls += 1
        simulator = StructureSimulator(self.robot, None, "rattle", rigid_bars=self._rigid, start=last)
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
    arms, wanted = nodes[rows] - middle, before[rows] - aim
    across = np.cross(arms, wanted) @ up
    along = np.einsum("ij,ij->i", arms, wanted) - (arms @ up) * (wanted @ up)
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
