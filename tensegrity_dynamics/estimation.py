"""Shape from tendon lengths over time: what the robot looks like, from what its spools say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import TensegrityError
from .robots.output_frame import Pose
from .robots.robot import Robot
from .structures.form_finding.equilibrium import StructureEquilibrium
from .structures.form_finding.equilibrium_solver import StructureEquilibriumSolver
from .structures.form_finding.forward_kinematics import METHODS, forward_kinematics
from .structures.structure import Structure


@dataclass(frozen=True, eq=False)
class Estimate:
    """An estimated shape in motion.

    Attributes:
        time: s. shape: the equilibrium for the lengths read. velocities: (n, 3) m/s, from the last two shapes.
        twist: (6,) of the output frame, m/s and rad/s, or None without one.
        converged: the shape belongs to the lengths of this time; False: it is the last one that did.
        reason: why not, or empty.
    """

    time: float
    shape: StructureEquilibrium
    velocities: NDArray[np.float64]
    twist: NDArray[np.float64] | None
    converged: bool
    reason: str = ""

    @property
    def nodes(self) -> NDArray[np.float64]:
        """(n, 3) m."""
        return self.shape.nodes

    @property
    def pose(self) -> Pose | None:
        """Of the output, or None without one."""
        return None if self.shape.output is None else self.shape.pose

    @property
    def residual(self) -> float:
        """Largest force left [N]."""
        return self.shape.residual

    @property
    def softest(self) -> float:
        """Lowest stiffness [N/m]."""
        return self.shape.softest

    @property
    def slack(self) -> tuple[str, ...]:
        """Tendons that carry nothing."""
        return tuple(self.shape.slack)

    @property
    def tensions(self) -> dict[str, float]:
        """N by member."""
        return dict(zip(self.shape.structure.member_names, self.shape.tensions.tolist(), strict=True))


class StructureEstimator:
    """Quasi-static estimator: every reading of the spools is solved for its equilibrium, from the last one.

    Args:
        robot: a pin-jointed robot.
        rigid_bars: bars keep their length, as in simulation.

    Raises:
        NoEquilibriumError: the robot has no shape at its own lengths.
    """

    def __init__(self, robot: Robot, *, rigid_bars: bool = True) -> None:
        output = robot.outputs[0] if robot.outputs else None
        self.robot, self._rigid = robot, rigid_bars
        self._solver = StructureEquilibriumSolver(robot.structure, rigid_bars=rigid_bars, output=output)
        self._home = self._solver.solve()
        self._drives = {each.name: robot.structure.member(each.drives) for each in robot.actuators}
        self.reset()

    @property
    def actuators(self) -> tuple[str, ...]:
        """Names of what `update` wants to know."""
        return tuple(self._drives)

    def reset(self) -> None:
        """Forget the past; the next shape is sought from the one at rest."""
        self._last = Estimate(
            -np.inf,
            self._home,
            np.zeros_like(self._home.nodes),
            None if self._home.output is None else np.zeros(6),
            True,
        )

    def solve(self, rest_lengths: Mapping[str, float], method: str = "newton") -> Estimate:
        """The shape at rest for rest lengths [m] by actuator or tendon; the others keep the file's.

        Raises:
            TensegrityError: a name or the method is unknown. NoEquilibriumError: there is no shape.
        """
        rigid = self._rigid and method == METHODS[0]
        tendons = {each.name: each.drives for each in self.robot.actuators}
        lengths = {tendons.get(name, name): value for name, value in rest_lengths.items()}
        shape = forward_kinematics(self.robot, lengths, method=method, rigid_bars=rigid)
        return Estimate(0.0, shape, 0.0 * shape.nodes, None, True)

    def update(self, time: float, rest_lengths: Mapping[str, float]) -> Estimate:
        """The estimate for rest lengths [m] by actuator name at a time [s].

        The same time again gives the same answer. A time before the last one starts anew. Readings that are not finite,
        unknown or without an equilibrium give the last shape with `converged` False and the reason.
        """
        last = self._last
        if time == last.time:
            return last
        if time < last.time:
            self.reset()
            last = self._last
        try:
            lengths = np.array(self.robot.structure.rest_lengths)
            for name, value in rest_lengths.items():
                if name not in self._drives:
                    raise TensegrityError(f"there is no actuator {name!r}; known: {', '.join(self._drives)}.")
                lengths[self._drives[name]] = value
            shape = self._solver.solve(lengths, start=last.shape)
        except TensegrityError as error:
            zero = np.zeros_like(last.velocities)
            twist = None if last.twist is None else np.zeros(6)
            self._last = Estimate(time, last.shape, zero, twist, False, str(error))
            return self._last
        interval = time - last.time
        moving = np.isfinite(interval) and last.converged
        velocities = (shape.nodes - last.shape.nodes) / interval if moving else np.zeros_like(shape.nodes)
        twist = None
        if shape.output is not None:
            twist = shape.output.jacobian(shape.nodes) @ velocities.ravel()
        self._last = Estimate(time, shape, velocities, twist, True)
        return self._last


def make_estimator(robot: Robot, *, rigid_bars: bool = True, observer: bool = False) -> Any:
    """The `StructureEstimator` of a structure; of a mechanism the `MechanismEstimator` or `MechanismObserver`.

    Raises:
        TensegrityError: an observer is wanted for a structure.
    """
    if isinstance(robot.model, Structure):
        if observer:
            raise TensegrityError(
                f"{robot.name} is a structure, known by its shapes at rest; observers are for mechanisms."
            )
        return StructureEstimator(robot, rigid_bars=rigid_bars)
    if observer:
        from .mechanisms.estimation.kalman_observer import MechanismObserver

        return MechanismObserver(robot)
    from .mechanisms.estimation.quasi_static_estimator import MechanismEstimator

    return MechanismEstimator(robot)
