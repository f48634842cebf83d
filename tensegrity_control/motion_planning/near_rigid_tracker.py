"""Control of mechanisms whose cables are stiff but not rigid (000, sections 3.2 and 5.3).

`NearRigidLaw` is the document's: at every instant the inputs that would give the wanted accelerations if the cables
were rigid, with fictitious changes of strain that restore the equations of motion,

    min |u|^2   s.t.   B u - A_s ds = M_d y'' + c - p,   strain_min <= strain + ds        (000, 3.2.5 to 3.2.8)

with the sign of A_s ds corrected: e restores, so the passive effort of a larger strain is -A_s ds. As printed, with +,
the floor acts the wrong way.

`NearRigidTracker` plans the strains along the whole path (`strain_plan`) and holds the plan by a discrete-time linear
quadratic regulator on the measured state, made for the control period and for every part of the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import expm, solve_discrete_are

from tensegrity_dynamics.errors import InfeasibleControlError, TensegrityError
from tensegrity_dynamics.robots.robot import Robot

from ..optimization.infeasibility import CheckedSolver
from ..optimization.quadratic_program import SOLVED, QuadraticProgram, Sizes
from ..optimization.solvers import DEFAULT_SOLVER
from ..trajectories.splines import PiecewisePolynomial
from .near_rigid_model import NearRigidModel
from .strain_planner import StrainPlan, plan_strains, rest_at
from .trajectory_tracking import LinearFeedbackTracker, TrackingPlan

Array = NDArray[np.float64]


class NearRigidLaw:
    """The law of 000 (3.2.5) to (3.2.8), evaluated at a state; no feedback of its own.

    Args:
        robot: see `NearRigidModel`. tracked: names of the tracked coordinates.
        floor: strain (one, or one per cable) that stays the least. corrected: False takes the printed sign.
        solver: of `optimization.solvers`.
    """

    def __init__(
        self, robot: Robot, tracked: Sequence[str], floor: ArrayLike, *, corrected: bool = True,
        solver: str = DEFAULT_SOLVER,
    ) -> None:  # fmt: skip
        self.model = NearRigidModel(robot, tracked)
        cables, inputs = self.model.radii.size, len(self.model.drives)
        self.floor = np.broadcast_to(np.asarray(floor, dtype=np.float64), (cables,)).copy()
        self.sign = 1.0 if corrected else -1.0
        self.names = tuple(each.name for each in robot.actuators)
        self._solver = CheckedSolver(solver, Sizes(inputs + cables, self.model.index.size, 0))
        self._cost = np.diag(np.concatenate((np.ones(inputs), np.zeros(cables))))
        self._free = np.full(inputs, np.inf)

    def effort(self, q: Array, v: Array, acceleration: Array) -> Array:
        """(u,) N m or N for wanted accelerations (y,) of the tracked coordinates at a state.

        Raises:
            InfeasibleControlError: the program has no solution.
        """
        model, inputs = self.model, len(self.names)
        reduced = model.reduced(q, v[model.index])
        wanted = np.concatenate((acceleration, np.zeros(model.radii.size)))  # strains: M_s strain'' is neglected
        right = reduced.mass @ wanted + reduced.bias - reduced.passive
        # A_s ds as an effort of the reduced coordinates: more strain is E A more tension
        matrix = np.hstack((reduced.inputs, self.sign * reduced.cables * model.stiffness))
        room = self.floor - q[model.q_strains]
        found = self._solver.solve(
            QuadraticProgram(
                self._cost, np.zeros(matrix.shape[1]), np.ascontiguousarray(matrix), right,
                np.zeros((0, matrix.shape[1])), np.zeros(0), np.zeros(0), np.concatenate((-self._free, room)),
                np.full(matrix.shape[1], np.inf),
            )
        )  # fmt: skip
        if found.status != SOLVED:
            raise InfeasibleControlError(
                f"the inputs have no solution ({found.status}) within the floor of the strains."
            )
        return np.array(found.x[:inputs])


@dataclass(frozen=True)
class Weights:
    """What deviations cost the regulator, each as the deviation that counts as much as one unit of the others.

    Args:
        position: rad or m of the tracked coordinates. rate: of their rates, per s.
        strain: part of the floor's strain. strain_rate: parts per s. effort: N m or N of the inputs.
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
        robot: see `NearRigidModel`. tracked: names of the tracked coordinates.
        trajectory: their path; its times count from its start. period: s, of the control; inputs are held in between.
        floor: tension [N] of every cable that the plan keeps (one, or one per cable).
        smoothing: s over which jumps of the path's acceleration are spread; 16 periods, or 6 where they are longer
            than 2 ms.
        weights: of the regulator. spacing: s between two linearisations along the path.
        model: of the robot, where there is one already. start: (nq,) near the path's start; the robot's own without.

    Attributes:
        strains: the planned motion on its own, finer grid.

    Raises:
        InfeasibleControlError, TensegrityError: no such motion, see `plan_strains`.
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
        weights: Weights | None = None,
        spacing: float = 0.04,
        model: NearRigidModel | None = None,
        start: Array | None = None,
    ) -> None:
        if not (np.isfinite(period) and period > 0.0):
            raise TensegrityError(f"the control period is {period} s; give a time above zero.")
        model = model or NearRigidModel(robot, tracked)
        self.weights = weights or Weights()
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
        rest_places, rest_inputs = self._rest(model)
        states = np.hstack((self.strains.coordinates, self.strains.rates))[self._grid]
        plan = TrackingPlan(
            np.asarray(self._grid * step, dtype=np.float64), states, self._means(),
            self._regulator(model, self.weights, period), rest_places, rest_inputs,
            self.strains.positions[self._grid],
        )  # fmt: skip
        super().__init__(model, plan)
        self.period = period

    def reweigh(self, weights: Weights) -> None:
        """Take other weights for the rest of the way. Raises InfeasibleControlError; nothing changes then."""
        if weights == self.weights:
            return
        gains = self._regulator(self.model, weights, self.period)
        self.plan, self.weights = replace(self.plan, gains=gains), weights

    def _means(self) -> Array:
        """(k, u) means over the periods: what a changing input would do."""
        inputs, last = self.strains.inputs, len(self.strains.inputs) - 1
        sums = np.cumsum(np.vstack((np.zeros(inputs.shape[1]), 0.5 * (inputs[1:] + inputs[:-1]))), 0)
        ends = np.minimum(self._grid + self._parts, last)
        means = (sums[ends] - sums[self._grid]) / np.maximum(1, ends - self._grid)[:, None]
        means[self._grid == last] = inputs[-1]
        return np.asarray(means)

    def _rest(self, model: NearRigidModel) -> tuple[Array, Array]:
        """Shapes at rest along the way (k, n), and the inputs (k, u) that hold them."""
        knots = np.unique(np.append(np.arange(0, len(self.strains.times), self._every), len(self.strains.times) - 1))
        places, inputs = [], []
        for k in knots:
            place, given = rest_at(model, self.strains.positions[k], self.floor)
            places.append(place)
            inputs.append(given)
        return _between(knots, np.array(places), self._grid), _between(knots, np.array(inputs), self._grid)

    def _regulator(self, model: NearRigidModel, weights: Weights, period: float) -> Array:
        """Gains (k, u, 2n), made every `spacing` seconds."""
        plan = self.strains
        knots = np.arange(0, len(plan.times), self._every)
        gains = [
            regulator_gain(model, plan.positions[k], plan.rates[k], plan.inputs[k], weights, self.floor, period)
            for k in knots
        ]
        return _between(knots, np.array(gains), self._grid)


def regulator_gain(
    model: NearRigidModel, q: Array, rate: Array, effort: Array, weights: Weights, floor: Array, period: float
) -> Array:
    """(u, 2n) gain of the linear quadratic regulator around a state, for inputs held over `period` s."""
    tracked, cables, unit = len(model.tracked), model.radii.size, float(np.mean(floor / model.stiffness))
    scale = np.concatenate((
        np.full(tracked, weights.position), np.full(cables, weights.strain * unit),
        np.full(tracked, weights.rate), np.full(cables, weights.strain_rate * unit),
    ))  # fmt: skip
    matrix, inputs, _ = model.linearised(q, rate, effort)
    size, drives = inputs.shape
    block = np.zeros((size + drives, size + drives))
    block[:size, :size], block[:size, size:] = matrix, inputs
    step = expm(period * block)
    ahead, push = step[:size, :size], step[:size, size:]
    price = np.eye(drives) / weights.effort**2
    try:
        value = solve_discrete_are(ahead, push, np.diag(scale**-2.0), price)
    except (ValueError, ArithmeticError) as error:  # of numpy and scipy, LinAlgError among them
        raise InfeasibleControlError(f"no regulator has these weights ({error}); take less extreme ones.") from error
    return np.asarray(np.linalg.solve(price + push.T @ value @ push, push.T @ value @ ahead))


def _between(knots: NDArray[np.int64], values: Array, grid: NDArray[np.int64]) -> Array:
    """Values (m, ...) at knots, linear in between, at the grid's places; beyond the last knot they stay."""
    place = np.interp(grid, knots, np.arange(len(knots)))
    low = np.minimum(place.astype(np.int64), max(len(knots) - 2, 0))
    share = (place - low).reshape(-1, *([1] * (values.ndim - 1)))
    return np.asarray((1.0 - share) * values[low] + share * values[np.minimum(low + 1, len(knots) - 1)])
