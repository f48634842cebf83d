"""Control of mechanisms whose cables are stiff but not rigid (000, sections 3.2 and 5.3).

`NearRigidLaw` is the document's: at every instant the inputs that would give the wanted accelerations if the cables
were rigid, with fictitious changes of strain that restore the equations of motion,

    min |u|^2   s.t.   B u - A_s ds = M_d y'' + c - p,   strain_min <= strain + ds        (000, 3.2.5 to 3.2.8)

with the sign of A_s ds corrected: e restores, so the passive effort of a larger strain is -A_s ds. As printed, with +,
the floor acts the wrong way.

`NearRigidControl` plans the strains along the whole path (`strain_plan`) and holds the plan by a discrete-time linear
quadratic regulator on the measured state, made for the control period and for every part of the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import expm, solve_discrete_are

from tensegrity_dynamics.errors import InfeasibleControlError, TensegrityError
from tensegrity_dynamics.robot import Robot

from .near_rigid_model import NearRigidModel
from .qp_solvers import SOLVED, QuadraticProgram, Sizes, make_solver
from .strain_plan import StrainPlan, plan_strains
from .trajectories import PiecewisePolynomial

Array = NDArray[np.float64]


class NearRigidLaw:
    """The law of 000 (3.2.5) to (3.2.8), evaluated at a state; no feedback of its own.

    Args:
        robot: see `NearRigidModel`. tracked: names of the tracked coordinates.
        floor: strain (one, or one per cable) that stays the least. corrected: False takes the printed sign.
        solver: of `qp_solvers`.
    """

    def __init__(
        self, robot: Robot, tracked: Sequence[str], floor: ArrayLike, *, corrected: bool = True,
        solver: str = "active_set",
    ) -> None:  # fmt: skip
        self.model = NearRigidModel(robot, tracked)
        cables, inputs = self.model.radii.size, len(self.model.drives)
        self.floor = np.broadcast_to(np.asarray(floor, dtype=np.float64), (cables,)).copy()
        self.sign = 1.0 if corrected else -1.0
        self.names = tuple(each.name for each in robot.actuators)
        self._solver = make_solver(solver, Sizes(inputs + cables, self.model.index.size, 0))
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
            if not (np.isfinite(value) and value > 0.0):
                raise TensegrityError(f"weight {name} is {value}; give a deviation above zero.")


class NearRigidControl:
    """Follows a path of the tracked coordinates with tight cables; see the module.

    Args:
        robot: see `NearRigidModel`. tracked: names of the tracked coordinates.
        trajectory: their path. period: s, of the control; inputs are held in between.
        floor: tension [N] of every cable that the plan keeps (one, or one per cable).
        smoothing: s over which jumps of the path's acceleration are spread; 16 periods, or 6 where they are longer
            than 2 ms.
        weights: of the regulator. spacing: s between two linearisations along the path.

    Attributes:
        plan: the planned motion.

    Raises:
        InfeasibleControlError, TensegrityError: no such motion, see `plan_strains`.
    """

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
    ) -> None:
        if not (np.isfinite(period) and period > 0.0):
            raise TensegrityError(f"the control period is {period} s; give a time above zero.")
        self.model, self.period = NearRigidModel(robot, tracked), period
        self.names, self.trajectory = tuple(each.name for each in robot.actuators), trajectory
        self.limits = np.array([each.effort for each in robot.actuators])
        width = smoothing or (16.0 if period <= 2e-3 else 6.0) * period
        self._parts = max(1, int(np.ceil(period / min(1e-3, width / 12.0))))
        step = period / self._parts
        self.plan: StrainPlan = plan_strains(self.model, trajectory, step, np.asarray(floor), width)
        # the mean over a period does what a changing input would
        sums = np.cumsum(
            np.vstack((np.zeros(len(self.names)), 0.5 * (self.plan.inputs[1:] + self.plan.inputs[:-1]))), 0
        )
        last = len(sums) - 1
        self._means = np.array([
            (sums[min(k + self._parts, last)] - sums[k]) / max(1, min(k + self._parts, last) - k)
            if k < last else self.plan.inputs[-1] for k in range(0, last + 1, self._parts)
        ])  # fmt: skip
        self._every = max(1, round(spacing / step))
        self._gains = self._regulator(weights or Weights(), np.asarray(floor, dtype=np.float64))

    def effort(self, time: float, q: Array, v: Array) -> Array:
        """(u,) N m or N, within the actuators' limits, to be held from `time` [s] for one period."""
        plan = self.plan
        tick = min(max(round((time - plan.times[0]) / self.period), 0), len(self._means) - 1)
        k = min(tick * self._parts, len(plan.times) - 1)
        place = min(k / self._every, len(self._gains) - 1.0)
        low = min(int(place), len(self._gains) - 2) if len(self._gains) > 1 else 0
        share = place - low
        gain = self._gains[low] if share == 0.0 else (1.0 - share) * self._gains[low] + share * self._gains[low + 1]
        wanted = np.concatenate((plan.coordinates[k], plan.rates[k]))
        return np.clip(self._means[tick] - gain @ (self.model.state(q, v) - wanted), -self.limits, self.limits)

    def as_dict(self, effort: Array) -> dict[str, float]:
        """Efforts by actuator name."""
        return dict(zip(self.names, effort.tolist(), strict=True))

    def _regulator(self, weights: Weights, floor: Array) -> list[Array]:
        """Gains (u, 2n) every `spacing` seconds."""
        model, plan = self.model, self.plan
        tracked, unit = len(model.tracked), np.mean(floor / model.stiffness)
        cables = model.radii.size
        scale = np.concatenate((
            np.full(tracked, weights.position), np.full(cables, weights.strain * unit),
            np.full(tracked, weights.rate), np.full(cables, weights.strain_rate * unit),
        ))  # fmt: skip
        cost, price = np.diag(scale**-2.0), np.eye(len(self.names)) / weights.effort**2
        gains = []
        for k in range(0, len(plan.times), self._every):
            matrix, inputs, _ = model.linearised(plan.positions[k], plan.rates[k], plan.inputs[k])
            size, drives = inputs.shape
            block = np.zeros((size + drives, size + drives))
            block[:size, :size], block[:size, size:] = matrix, inputs
            step = expm(self.period * block)
            ahead, push = step[:size, :size], step[:size, size:]
            value = solve_discrete_are(ahead, push, cost, price)
            gains.append(np.linalg.solve(price + push.T @ value @ push, push.T @ value @ ahead))
        return gains
