"""Shape from tendon lengths over time: what the robot looks like, from what its spools say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .errors import TensegrityError
from .robot import Robot
from .statics.shape import Shape
from .statics.solver import ShapeSolver


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
    shape: Shape
    velocities: NDArray[np.float64]
    twist: NDArray[np.float64] | None
    converged: bool
    reason: str = ""


class ShapeEstimator:
    """Quasi-static estimator: every reading of the spools is solved for its equilibrium, from the last one.

    Args:
        robot: a pin-jointed robot.
        rigid_bars: bars keep their length, as in simulation.

    Raises:
        NoEquilibriumError: the robot has no shape at its own lengths.
    """

    def __init__(self, robot: Robot, *, rigid_bars: bool = True) -> None:
        output = robot.outputs[0] if robot.outputs else None
        self.robot = robot
        self._solver = ShapeSolver(robot.structure, rigid_bars=rigid_bars, output=output)
        self._home = self._solver.solve()
        self._drives = {each.name: robot.structure.member(each.drives) for each in robot.actuators}
        self.reset()

    def reset(self) -> None:
        """Forget the past; the next shape is sought from the one at rest."""
        self._last = Estimate(
            -np.inf,
            self._home,
            np.zeros_like(self._home.nodes),
            None if self._home.output is None else np.zeros(6),
            True,
        )

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
