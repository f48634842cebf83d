"""A motion that is planned anew while it runs: from the state that is seen, over a limited time ahead.

The plan that was made before the motion is the first guess, and every new plan that of the next: over `horizon` s from
where the robot will be when the new plan is ready, one Newton step of `output_planner` (linearised along the guess,
Riccati sweep back and forth) with

    x_0 = what is seen off the guess,   x_k+1 = A x_k + B n_k + d_k + D f

and, for what lies beyond the horizon, the value matrix of the plan before the motion. f (n,) are accelerations that the
model does not know (pushes, loads, other masses), learned from how rates changed against how they should have. Without
f the new plans are, near the guess, what the feedback of the plan does anyway: u = u_plan - K x is the answer to the
same quadratic program. What they add is f, and the equations where the robot is.

Where the actuators close impedances of their own, nothing else acts between two plans: deviations go by the equations
with these loops closed, and a new plan is their new positions, rates and efforts: a slow feedback on a loop that no
late computer upsets.

A new plan begins with a jolt on the cables, for a push that is gone again as well. Of what it changes that part is
taken, of `PARTS`, the largest with which floors of tensions are kept; if there is none, that with which the least
tension is the highest. Looked at is where the robot will be, off its plan by what pushes it, and not where the plan is.
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
"""Periods that a new plan may take; it begins that much after the state that it answers."""
LINEARIZATIONS = 4
"""Pieces between linearisations over the horizon."""
LEARNED = 0.1
"""Part of what rates were off in a period by which unknown accelerations are changed."""
PARTS = (1.0, 0.5, 0.25, 0.125, 0.0)
"""Of what a new plan changes, which are looked at."""
JOLT = 6
"""Periods after its beginning in which tensions are looked at, and again after as many."""
FORESEEN = 0.5
"""Part of what a new plan does to tensions that is foreseen at least."""
LEAST_ROWS = 8
"""Periods of the plan that must be left to plan them anew."""


class RecedingHorizon:
    """New plans for one motion; see the module.

    Args:
        model: of the robot, with arrays that nobody else uses. plan: made before the motion, with its sweep.
        targets: (k, p) of the output at the times of the plan. weights: of the plan. horizon: s, at least some periods.
        impedance: of the actuators' own loops; None where efforts are sent, with the feedback of the plan.

    Attributes:
        unknown: f (n,) rad/s^2 or m/s^2. times: s of processor time that each new plan took.

    Raises:
        TensegrityError: the horizon is no time, or shorter than `LEAST_ROWS` periods.
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
        self._reckoned: list[tuple[TrackingPlan, Array]] = []  # the last plans, and f in each

    def _closed(self, row: int, plan: TrackingPlan) -> tuple[Array, Array] | None:
        """How deviations go on from a row of a plan to the next, and what accelerations do meanwhile (2n, 2n); None
        before the loops of impedances were closed for the first time."""
        if self._impedance is not None:
            return self._with_loops
        pieces = self.first.sweep.pieces
        return pieces.ahead[row] - pieces.push[row] @ plan.gains[row], self.first.drifts[row]

    def _reckons(self, plan: TrackingPlan) -> Array:
        """f (n,) that a plan was made with."""
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
        """Learn from a state (2n,) at a row of the plan, one period after the last one."""
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
        """The plan with new states, inputs and gains for a horizon from `lead` periods after a row on; None at its end.

        Args:
            row: of the plan, at which state (2n,) is seen. lead: periods, commands that come late included.

        Raises:
            TensegrityError: the guess leaves what the model can do.
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
        drifts, pieces = pieces_at(model, moved, states, inputs, self.period, at)
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
        """(k, 2n) by which the robot will be off rows of the plan before, if that goes on, from `start` (2n,): by the
        accelerations that were missed last, of which a push that has just begun is not learned yet."""
        found = np.empty((last - first + 1, start.size))
        found[0] = start
        for k in range(first, last):
            closed = self._closed(k, plan)
            assert closed is not None
            found[k - first + 1] = closed[0] @ found[k - first] + closed[1] @ news
        return found

    def _kept_part(self, q: Array, states: Array, deviations: Array, left: Array) -> float:
        """The part of deviations (k, 2n) from states (k, 2n), near q (nq,), with which floors are kept; see the
        module.

        Args:
            left: (k, 2n) by which the robot will be off these states without a new plan. With a part p of the new one
                it will be off by left + p (deviations - left), as far as all is linear.
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
        """N by which the least tension at states (k, 2n), near q (nq,), is above its floor."""
        count = self.model.index.size
        tensions = [self.model.least_tensions(q, each[:count], each[count:]) for each in states]
        above = [pull - self._floors.get(name, 0.0) for each in tensions for name, pull in each.items()]
        return min(above, default=math.inf)
