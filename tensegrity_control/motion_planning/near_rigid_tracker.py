"""Tracking of a planned motion of a mechanism whose cables are stiff but not rigid (000, sections 3.2 and 5.3).

The strains are planned along the whole path (`strain_planner`), and the plan is held by a discrete-time linear
quadratic regulator on the measured state, made for the control period and for every part of the path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.mechanisms.dynamics.reduced_model import steady
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.robot import Robot

from ..cancellation import checkpoint
from ..trajectories.splines import PiecewisePolynomial
from .lqr import discretized, regulator
from .near_rigid_model import NearRigidModel
from .strain_planner import StrainPlan, plan_strains, rest_along
from .trajectory_tracking import LinearFeedbackTracker, TrackingPlan


@dataclass(frozen=True)
class NearRigidWeights:
    """Scales of the quadratic cost (Bryson's rule): deviations of equal cost. A larger value tolerates a larger
    deviation.

    Args:
        position: rad or m, deviation of the tracked coordinates. Smaller: closer tracking with stiffer feedback.
        rate: rad/s or m/s, deviation of their rates. Smaller: more damping.
        strain: deviation of the strains of the cables, relative to the strain at the floor. Smaller: tensions are held
            more tightly.
        strain_rate: deviation of the strain rates, 1/s, relative in the same way. Smaller: more damping of the cables.
        effort: N m or N, deviation of the inputs. Larger: stronger feedback.

    Raises:
        TensegrityError: a value is outside 1e-9 to 1e9.
    """

    position: float = 1e-5
    rate: float = 1e-2
    strain: float = 0.1
    strain_rate: float = 100.0
    effort: float = 0.05

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 1e-9 <= value <= 1e9:
                raise TensegrityError(f"weight {name} is {value}; give a deviation above zero, from 1e-9 to 1e9.")


class NearRigidTracker(LinearFeedbackTracker):
    """Follows a path of the tracked coordinates with tight cables; see the module.

    Args:
        robot: see `NearRigidModel`.
        tracked: names of the tracked coordinates.
        trajectory: their path; times count from its start.
        period: s, control period, with constant inputs.
        floor: tension floor [N] of the cables (one value, or one per cable).
        smoothing: s over which jumps of the acceleration of the path are smoothed; default 16 periods, or 6 for periods
            above 2 ms.
        weights: weights of the regulator.
        spacing: s between two linearisations along the path.
        model: model of the robot; None to create it.
        start: (nq,) near the start of the path; None for the initial configuration of the robot.

    Attributes:
        strains: the planned motion on its own, finer grid.

    Raises:
        InfeasibleControlError, TensegrityError: there is no such motion, see `plan_strains`.
    """

    model: NearRigidModel

    def __init__(
        self,
        robot: Robot,
        tracked: Sequence[str],
        trajectory: PiecewisePolynomial,
        *,
        period: float,
        floor: ArrayLike,
        smoothing: float | None = None,
        weights: NearRigidWeights | None = None,
        spacing: float = 0.04,
        model: NearRigidModel | None = None,
        start: Array | None = None,
    ) -> None:
        if not (np.isfinite(period) and period > 0.0):
            raise TensegrityError(f"the control period is {period} s; give a time above zero.")
        model = model or NearRigidModel(robot, tracked)
        self.weights = weights or NearRigidWeights()
        self.trajectory, self.floor = (
            trajectory,
            np.broadcast_to(np.asarray(floor, dtype=np.float64), model.radii.shape),
        )
        width = smoothing or (16.0 if period <= 2e-3 else 6.0) * period
        parts = max(1, int(np.ceil(period / min(1e-3, width / 12.0))))
        step = period / parts
        self.strains: StrainPlan = plan_strains(model, trajectory, step, self.floor, width, start)
        self._every = max(1, round(spacing / step))
        self._grid, self._parts = np.arange(0, len(self.strains.times), parts), parts
        rest_coordinates, rest_inputs = self._rest(model)
        states = np.hstack((self.strains.coordinates, self.strains.rates))[self._grid]
        plan = TrackingPlan(
            np.asarray(self._grid * step, dtype=np.float64), states, self._means(),
            self._regulator(model, self.weights, period), rest_coordinates, rest_inputs,
            self.strains.positions[self._grid],
        )  # fmt: skip
        super().__init__(model, plan)
        self.period = period

    def reweigh(self, weights: NearRigidWeights) -> None:
        """Use other weights for the rest of the path. Raises InfeasibleControlError without a change."""
        if weights == self.weights:
            return
        gains = self._regulator(self.model, weights, self.period)
        self.plan, self.weights = replace(self.plan, gains=gains), weights

    def _means(self) -> Array:
        """(k, u) mean inputs over the periods, with the same effect as the varying inputs."""
        inputs, last = self.strains.inputs, len(self.strains.inputs) - 1
        sums = np.cumsum(np.vstack((np.zeros(inputs.shape[1]), 0.5 * (inputs[1:] + inputs[:-1]))), 0)
        ends = np.minimum(self._grid + self._parts, last)
        means = (sums[ends] - sums[self._grid]) / np.maximum(1, ends - self._grid)[:, None]
        means[self._grid == last] = inputs[-1]
        return np.asarray(means)

    def _rest(self, model: NearRigidModel) -> tuple[Array, Array]:
        """Equilibria along the path (k, n), and the inputs (k, u) that hold them."""
        knots = np.unique(np.append(np.arange(0, len(self.strains.times), self._every), len(self.strains.times) - 1))
        is_free = model.held_stiffness is None  # the search for a stiffness may fail from the tensions of a motion
        near = self.strains.tensions[knots] if is_free else None
        coordinates, inputs = rest_along(model, self.strains.positions[knots], self.floor, near)
        return _between(knots, coordinates, self._grid), _between(knots, inputs, self._grid)

    def _regulator(self, model: NearRigidModel, weights: NearRigidWeights, period: float) -> Array:
        """Gains (k, u, 2n), computed every `spacing` s and interpolated."""
        plan = self.strains
        knots = np.arange(0, len(plan.times), self._every)
        checkpoint()
        gains = regulator_gains(
            model, plan.positions[knots], plan.rates[knots], plan.inputs[knots], weights, self.floor, period
        )
        return _between(knots, gains, self._grid)


def regulator_gain(
    model: NearRigidModel, q: Array, rate: Array, effort: Array, weights: NearRigidWeights, floor: Array, period: float
) -> Array:
    """(u, 2n) gain of the linear quadratic regulator at a state, for inputs that are constant over `period` s."""
    return regulator_gains(model, q[None], rate[None], effort[None], weights, floor, period)[0]


def regulator_gains(
    model: NearRigidModel, q: Array, rate: Array, effort: Array, weights: NearRigidWeights, floor: Array, period: float
) -> Array:
    """(k, u, 2n) gains of `regulator_gain` at configurations (k, nq), rates (k, n) and inputs (k, u)."""
    tracked, cables, unit = len(model.tracked), model.radii.size, float(np.mean(floor / model.stiffness))
    scale = np.concatenate((
        np.full(tracked, weights.position), np.full(cables, weights.strain * unit),
        np.full(tracked, weights.rate), np.full(cables, weights.strain_rate * unit),
    ))  # fmt: skip
    matrices, inputs, _ = model.linearised_along(q, rate, effort)
    if model.idle_count:
        for each, matrix in zip(q, matrices, strict=True):
            steady(matrix, *model.left_alone(each))
    ahead, push = discretized(matrices, inputs, period)
    return regulator(ahead, push, np.diag(scale**-2.0), np.eye(inputs.shape[2]) / weights.effort**2)[1]


def _between(knots: NDArray[np.int64], values: Array, grid: NDArray[np.int64]) -> Array:
    """Values (m, ...) at knots, interpolated linearly at the points of a grid; constant after the last knot."""
    row = np.interp(grid, knots, np.arange(len(knots)))
    low = np.minimum(row.astype(np.int64), max(len(knots) - 2, 0))
    share = (row - low).reshape(-1, *([1] * (values.ndim - 1)))
    return np.asarray((1.0 - share) * values[low] + share * values[np.minimum(low + 1, len(knots) - 1)])
