"""Quasi-static estimation of a structure from the rest lengths of its tendons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import TensegrityError
from ...estimation_interface import Estimate, QuasiStaticEstimator, check_readings
from ...robots.robot import Robot
from ..form_finding.equilibrium import StructureEquilibrium
from ..form_finding.equilibrium_solver import StructureEquilibriumSolver
from ..form_finding.forward_kinematics import METHODS, forward_kinematics
from ..structure import Structure


@dataclass(frozen=True, eq=False, repr=False)
class StructureEstimate(Estimate):
    """An `Estimate` whose `equilibrium` is a `StructureEquilibrium`."""

    @property
    def nodes(self) -> NDArray[np.float64]:
        """(n, 3) node positions [m]."""
        return self.configuration

    @property
    def velocities(self) -> NDArray[np.float64]:
        """(n, 3) node velocities [m/s]."""
        return self.velocity


class StructureEstimator(QuasiStaticEstimator):
    """Quasi-static estimator: for every reading of the spools, the equilibrium is computed from the last one.

    Args:
        robot: robot with a pin-jointed structure.
        rigid_bars: whether bars have constant length, as in simulation.

    Raises:
        NoEquilibriumError: the robot has no equilibrium at the rest lengths of its file.
    """

    last: StructureEstimate

    def __init__(self, robot: Robot, *, rigid_bars: bool = True) -> None:
        output = robot.outputs[0] if robot.outputs else None
        self.robot, self._rigid, self._structure = robot, rigid_bars, robot.model_as(Structure)
        self._solver = StructureEquilibriumSolver(self._structure, rigid_bars=rigid_bars, output=output)
        self._home = self._solver.solve()
        self._drives = {each.name: self._structure.member(each.drives) for each in robot.actuators}
        self.reset()

    @property
    def actuators(self) -> tuple[str, ...]:
        return tuple(self._drives)

    def reset(self) -> None:
        self.last = self._estimate(-np.inf, self._home, np.zeros_like(self._home.nodes))

    def solve(self, positions: Mapping[str, float], method: str = "newton") -> StructureEstimate:
        """Equilibrium for rest lengths by actuator or tendon [m]; the others have the rest lengths of the file.

        Raises:
            TensegrityError: a name or the method is unknown, or a length is invalid.
            NoEquilibriumError: there is no equilibrium.
        """
        check_readings(positions)
        rigid = self._rigid and method == METHODS[0]
        tendons = {each.name: each.drives for each in self.robot.actuators}
        lengths = {tendons.get(name, name): value for name, value in positions.items()}
        found = forward_kinematics(self.robot, lengths, method=method, rigid_bars=rigid)
        return self._estimate(0.0, found, 0.0 * found.nodes)

    def _next(self, positions: Mapping[str, float], last: StructureEstimate) -> StructureEquilibrium:
        lengths = np.array(self._structure.rest_lengths)
        for name, value in positions.items():
            if name not in self._drives:
                raise TensegrityError(f"there is no actuator {name!r}; there are {', '.join(self._drives)}.")
            lengths[self._drives[name]] = value
        return self._solve_from(lengths, last.equilibrium)

    def _travel(self, last: StructureEstimate, equilibrium: StructureEquilibrium) -> NDArray[np.float64]:
        return np.asarray(equilibrium.nodes - last.nodes)

    def _solve_from(self, lengths: NDArray[np.float64], last: StructureEquilibrium) -> StructureEquilibrium:
        """Equilibrium for rest lengths (m,) [m], starting from the last one. Raises NoEquilibriumError."""
        return self._solver.solve(lengths, start=last)

    def _estimate(
        self, time: float, equilibrium: StructureEquilibrium, velocity: NDArray[np.float64], reason: str = ""
    ) -> StructureEstimate:
        output = equilibrium.output
        return StructureEstimate(
            time=time, configuration=equilibrium.nodes, velocity=velocity,
            pose=None if output is None else equilibrium.pose,
            twist=None if output is None else output.jacobian(equilibrium.nodes) @ velocity.ravel(),
            tensions=dict(zip(equilibrium.structure.member_names, equilibrium.tensions.tolist(), strict=True)),
            slack=tuple(equilibrium.slack), residual=equilibrium.residual, softest=equilibrium.softest,
            stable=bool(equilibrium.stable),
            converged=not reason, reason=reason, equilibrium=equilibrium,
        )  # fmt: skip
