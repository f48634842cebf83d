"""Receding-horizon planning: a motion is planned again while it runs, from the measured state over a limited horizon.

The plan made before the motion is the first guess, and each new plan is the guess of the next one. A new plan is one
Newton step of `output_planner` (linearised along the guess, Riccati sweep backward and forward) over `horizon` s,
starting from the predicted state at the time when the new plan is ready, with

    x_0 = deviation of that state from the guess,   x_k+1 = A x_k + B n_k + d_k + D f

and the value matrix of the plan before the motion as the cost beyond the horizon. f (n,) are accelerations that the
model does not contain (disturbances, loads, other masses), learned from the difference between measured and expected
changes of the rates. Without f the new plans do near the guess what the feedback of the plan does anyway: u = u_plan -
K x solves the same quadratic program. New plans add f and equations at the actual state.

With impedance actuators nothing else acts between two plans. Deviations follow the equations with these loops closed,
and a new plan consists of new positions, rates and efforts for the actuators. This is a slow feedback around a fast
loop, so that a late computer does no harm.

A new plan changes the tensions abruptly, also for a disturbance that is over already. So only a fraction of its
changes, one of `PARTS`, is applied: the largest one that keeps the tension floors, or else the one with the highest
minimum tension. Tensions are evaluated at the predicted states of the robot, not at those of the plan.
"""

from __future__ import annotations

import math
from dataclasses import replace
from time import process_time

import numpy as np

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.numerics.types import Array

from .impedance_gains import ImpedanceGains, closed_loop, driven_rows
from .lqr import RiccatiSweep, discretized_with_drift
from .output_model import OutputModel
from .output_planner import OutputPlan, OutputWeights, costs_of, defects_of, pieces_at
from .trajectory_tracking import TrackingPlan

LEAD = 2
"""Number of periods from the state that a new plan answers to the start of the plan; the time for planning."""
LINEARIZATIONS = 4
"""Number of intervals between linearisations over the horizon."""
LEARNED = 0.1
"""Fraction of the error of the unknown accelerations that is corrected per period."""
PARTS = (1.0, 0.5, 0.25, 0.125, 0.0)
"""Fractions of the changes of a new plan that are tried."""
JOLT = 6
"""Number of periods after the start of a plan in which tensions are checked, and spacing of later checks in periods."""
FORESEEN = 0.5
"""Smallest fraction of the effect of a new plan on the tensions that the prediction contains."""
LEAST_ROWS = 8
"""Smallest number of remaining periods for which a new plan is made."""


class RecedingHorizon:
    """New plans for one motion; see the module.

    Args:
        model: model of the robot for this object alone, since its arrays are overwritten.
        plan: plan made before the motion, with its sweep.
        targets: (k, p) targets of the output at the times of the plan.
        weights: weights of the plan.
        horizon: s, at least `LEAST_ROWS` periods.
        impedance: gains of the actuators' own loops; None if efforts are commanded, with the feedback of the plan.

    Attributes:
        unknown: f (n,) rad/s^2 or m/s^2.
        times: s of processor time of each new plan.

    Raises:
        TensegrityError: the horizon is not finite or shorter than `LEAST_ROWS` periods.
    """

    def __init__(
        self, model: OutputModel, plan: OutputPlan, targets: Array, weights: OutputWeights, horizon: float,
        impedance: ImpedanceGains | None = None,
    ) -> None:  # fmt: skip
        self.model, self.first, self._targets, self._weights = model, plan, targets, weights
        self.period = float(plan.times[1] - plan.times[0])
        if not (np.isfinite(horizon) and horizon >= LEAST_ROWS * self.period):
            raise TensegrityError(
                f"the horizon is {horizon} s; give {LEAST_ROWS} periods of {self.period:g} s or more."
            )
        self._rows = round(horizon / self.period)
        self.unknown, self._newest = np.zeros(model.index.size), np.zeros(model.index.size)
        self.times: list[float] = []
        self._seen: tuple[int, Array] | None = None
        self._impedance = impedance
        self._floors = model.robot.model.tension_floors(model.robot.actuators)
        self._with_loops: tuple[Array, Array] | None = None
        self._reckoned: list[tuple[TrackingPlan, Array]] = []  # the last plans and the f of each

    def _closed(self, row: int, plan: TrackingPlan) -> tuple[Array, Array] | None:
        """Transition matrix (2n, 2n) of deviations from a row of a plan to the next one, and the effect (2n, 2n) of
        accelerations; None before the loops of impedances were closed for the first time."""
        if self._impedance is not None:
            return self._with_loops
        pieces = self.first.sweep.pieces
        return pieces.ahead[row] - pieces.push[row] @ plan.gains[row], self.first.drifts[row]

    def _reckons(self, plan: TrackingPlan) -> Array:
        """f (n,) with which a plan was made."""
        return next((unknown for made, unknown in self._reckoned if made is plan), np.zeros(self.model.index.size))

    def _close_loops(self, row: int, plan: TrackingPlan) -> None:
        size, gains = self.model.index.size, self._impedance
        assert gains is not None
        q = plan.positions[row]
        matrix, push, _ = self.model.linearised(q, plan.states[row, size:], plan.inputs[row])
        rows, _ = driven_rows(self.model, q)
        closed = closed_loop(matrix, push, rows, gains.stiffness, gains.damping)
        ahead, _, drift = discretized_with_drift(closed, push, self.period)
        self._with_loops = ahead, drift

    def see(self, row: int, state: Array, plan: TrackingPlan) -> None:
        """Learn f from a state (2n,) at a row of the plan, one period after the last one."""
        before, self._seen = self._seen, (row, state - plan.states[row])
        if before is None or before[0] != row - 1 or row >= len(plan.times):
            return
        size, closed = self.model.index.size, self._closed(row - 1, plan)
        if closed is None:
            return
        missed = self._seen[1] - closed[0] @ before[1]
        found = self._reckons(plan) + missed[size:] / self.period
        self.unknown, self._newest = self.unknown + LEARNED * (found - self.unknown), found

    def replanned(self, row: int, state: Array, plan: TrackingPlan, lead: int = LEAD) -> TrackingPlan | None:
        """Plan with new states, inputs and gains over a horizon that starts `lead` periods after a row; None near its
        end.

        Args:
            row: row of the plan at which the state (2n,) was measured.
            lead: number of periods, including the lateness of commands.

        Raises:
            TensegrityError: the guess leaves the range of the model.
        """
        began = process_time()
        first, last = row + lead, min(row + lead + self._rows, len(plan.times) - 1)
        if last - first < LEAST_ROWS:
            return None
        sweep, size, model = self.first.sweep, self.model.index.size, self.model
        if self._impedance is not None:
            self._close_loops(row, plan)
        start, unknown = state - plan.states[row], self.unknown
        lasting = np.concatenate((np.zeros(size), unknown))
        news = np.concatenate((np.zeros(size), unknown - self._reckons(plan)))
        for k in range(row, first):
            closed = self._closed(k, plan)
            assert closed is not None
            start = closed[0] @ start + closed[1] @ news
        here = slice(first, last + 1)
        states, inputs = plan.states[here], plan.inputs[here]
        moved = model.outputs_along(plan.positions[first], states, inputs)
        at = np.unique(np.round(np.linspace(0, last - first, LINEARIZATIONS + 1)).astype(np.int64))
        drifts, pieces, _ = pieces_at(model, moved, states, inputs, self.period, at)
        state_cost, input_cost = costs_of(self._weights, size, inputs.shape[1])
        value = sweep.values[last]
        ahead = RiccatiSweep(
            pieces, state_cost, input_cost, self._weights.output, (value, self.first.gains[last]), last=value
        )
        deviations, changes = ahead.deviations(
            defects_of(moved, states, drifts) + drifts @ lasting, model.errors_along(moved, self._targets[here]), start,
            value @ (states[-1] - self.first.states[last]),
        )  # fmt: skip
        newest = np.concatenate((np.zeros(size), self._newest - self._reckons(plan)))
        left = self._left(row, last, plan, state - plan.states[row], newest)[lead:]
        part = self._kept_part(plan.positions[first], states, deviations, left)
        states, inputs = states + part * deviations, inputs + part * changes
        found = model.outputs_along(plan.positions[first], states, inputs)
        whole = [np.array(each) for each in (plan.states, plan.inputs, plan.gains, plan.positions)]
        for rows, new in zip(whole, (states, inputs, ahead.gains, found.positions), strict=True):
            rows[here] = new
        self.times.append(process_time() - began)
        made = replace(plan, states=whole[0], inputs=whole[1], gains=whole[2], positions=whole[3])
        before = self._reckons(plan)
        self._reckoned = [*self._reckoned[-1:], (made, before + part * (unknown - before))]
        return made

    def _left(self, first: int, last: int, plan: TrackingPlan, start: Array, news: Array) -> Array:
        """(k, 2n) predicted deviations from the rows of the present plan if it continues, from `start` (2n,), under the
        accelerations that were missing in the last period, since f has not learned a new disturbance yet."""
        found = np.empty((last - first + 1, start.size))
        found[0] = start
        for k in range(first, last):
            closed = self._closed(k, plan)
            assert closed is not None
            found[k - first + 1] = closed[0] @ found[k - first] + closed[1] @ news
        return found

    def _kept_part(self, q: Array, states: Array, deviations: Array, left: Array) -> float:
        """Largest fraction of deviations (k, 2n) from states (k, 2n), near q (nq,), that keeps the tension floors; see
        the module.

        Args:
            left: (k, 2n) predicted deviations of the robot from these states without a new plan. With a fraction p of
                the new plan they are left + p (deviations - left), in linear approximation.
        """
        at, best = np.append(np.arange(min(JOLT, len(states))), np.arange(2 * JOLT, len(states), JOLT)), (-np.inf, 0.0)
        robot, change = (states + left)[at], (deviations - left)[at]
        for part in PARTS:
            least = self._least(q, robot + part / FORESEEN * change)
            if least >= 0.0:
                return part
            best = max(best, (least, part))
        return best[1]

    def _least(self, q: Array, states: Array) -> float:
        """N, smallest distance of a tension from its floor at states (k, 2n), near q (nq,)."""
        count = self.model.index.size
        tensions = [self.model.least_tensions(q, each[:count], each[count:]) for each in states]
        above = [pull - self._floors.get(name, 0.0) for each in tensions for name, pull in each.items()]
        return min(above, default=math.inf)
