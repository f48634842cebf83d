"""Equilibria of a structure over time, from the rest lengths of its tendons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import TensegrityError
from ...estimation_interface import Estimate, Estimator, check_readings, without_time
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
        """(n, 3) m."""
        return self.configuration

    @property
    def velocities(self) -> NDArray[np.float64]:
        """(n, 3) m/s."""
        return self.velocity


class StructureEstimator(Estimator):
    """Quasi-static estimator: every reading of the spools is solved for its equilibrium, from the last one.

    Args:
        robot: a pin-jointed robot.
        rigid_bars: bars keep their length, as in simulation.

    Raises:
        NoEquilibriumError: the robot has no equilibrium at its own lengths.
    """

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
        self._last = _estimate(-np.inf, self._home, np.zeros_like(self._home.nodes))

    def solve(self, positions: Mapping[str, float], method: str = "newton") -> StructureEstimate:
        """The equilibrium for rest lengths [m] by actuator or tendon; the others keep the file's.

        Raises:
            TensegrityError: a name or the method is unknown, or a length is none. NoEquilibriumError: there is no
            equilibrium.
        """
        check_readings(positions)
        rigid = self._rigid and method == METHODS[0]
        tendons = {each.name: each.drives for each in self.robot.actuators}
        lengths = {tendons.get(name, name): value for name, value in positions.items()}
        found = forward_kinematics(self.robot, lengths, method=method, rigid_bars=rigid)
        return _estimate(0.0, found, 0.0 * found.nodes)

    def update(
        self,
        time: float,
        positions: Mapping[str, float],
        efforts: Mapping[str, float] | None = None,
        tensions: Mapping[str, float] | None = None,
    ) -> StructureEstimate:
        """See `Estimator.update`; positions are rest lengths [m] by actuator."""
        last = self._last
        if time == last.time:
            return last
        if not np.isfinite(time):
            return without_time(last, time)
        if time < last.time:
            self.reset()
            last = self._last
        try:
            check_readings(positions)
            lengths = np.array(self._structure.rest_lengths)
            for name, value in positions.items():
                if name not in self._drives:
                    raise TensegrityError(f"there is no actuator {name!r}; there are {', '.join(self._drives)}.")
                lengths[self._drives[name]] = value
            found = self._solve_from(lengths, last.equilibrium)
        except TensegrityError as error:
            self._last = _estimate(time, last.equilibrium, np.zeros_like(last.velocity), str(error))
            return self._last
        interval = time - last.time
        moving = np.isfinite(interval) and last.converged
        velocities = (found.nodes - last.nodes) / interval if moving else np.zeros_like(found.nodes)
        self._last = _estimate(time, found, velocities)
        return self._last

    def _solve_from(self, lengths: NDArray[np.float64], last: StructureEquilibrium) -> StructureEquilibrium:
        """The equilibrium for rest lengths (m,) m after the last one. Raises NoEquilibriumError."""
        return self._solver.solve(lengths, start=last)


def _estimate(
    time: float, found: StructureEquilibrium, velocities: NDArray[np.float64], reason: str = ""
) -> StructureEstimate:
    output = found.output
    return StructureEstimate(
        time=time, configuration=found.nodes, velocity=velocities,
        pose=None if output is None else found.pose,
        twist=None if output is None else output.jacobian(found.nodes) @ velocities.ravel(),
        tensions=dict(zip(found.structure.member_names, found.tensions.tolist(), strict=True)),
        slack=tuple(found.slack), residual=found.residual, softest=found.softest, stable=bool(found.stable),
        converged=not reason, reason=reason, equilibrium=found,
    )  # fmt: skip
