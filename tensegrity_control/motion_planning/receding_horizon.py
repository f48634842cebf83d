"""A motion that is planned anew while it runs: from the state that is seen, over a limited time ahead.

The plan that was made before the motion is the first guess, and every new plan that of the next: over `horizon` s from
where the robot will be when the new plan is ready, one Newton step of `output_planner` (linearised along the guess,
Riccati sweep back and forth) with

    x_0 = what is seen off the guess,   x_k+1 = A x_k + B n_k + d_k + D f

and, for what lies beyond the horizon, the value matrix of the plan before the motion. f (n,) are accelerations that the
model does not know (pushes, loads, other masses), learned from how rates changed against how they should have. Without
f the new plans are, near the guess, what the feedback of the plan does anyway: u = u_plan - K x is the answer to the
same quadratic program. What they add is f, and the equations where the robot is.
"""

from __future__ import annotations

from dataclasses import replace
from time import process_time

import numpy as np

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.numerics.types import Array

from .lqr import RiccatiSweep
from .output_model import OutputModel
from .output_planner import OutputPlan, OutputWeights, costs_of, defects_of, pieces_at
from .trajectory_tracking import TrackingPlan

LEAD = 2
"""Periods that a new plan may take; it begins that much after the state that it answers."""
LINEARIZATIONS = 4
"""Pieces between linearisations over the horizon."""
LEARNED = 0.1
"""Part of what rates were off in a period by which unknown accelerations are changed."""
LEAST_ROWS = 8
"""Periods of the plan that must be left to plan them anew."""


class RecedingHorizon:
    """New plans for one motion; see the module.

    Args:
        model: of the robot, with arrays that nobody else uses. plan: made before the motion, with its sweep.
        targets: (k, p) of the output at the times of the plan. weights: of the plan. horizon: s, at least some periods.

    Attributes:
        unknown: f (n,) rad/s^2 or m/s^2. times: s of processor time that each new plan took.

    Raises:
        TensegrityError: the horizon is no time, or shorter than `LEAST_ROWS` periods.
    """

    def __init__(
        self, model: OutputModel, plan: OutputPlan, targets: Array, weights: OutputWeights, horizon: float
    ) -> None:
        self.model, self.first, self._targets, self._weights = model, plan, targets, weights
        self.period = float(plan.times[1] - plan.times[0])
        if not (np.isfinite(horizon) and horizon >= LEAST_ROWS * self.period):
            raise TensegrityError(
                f"the horizon is {horizon} s; give {LEAST_ROWS} periods of {self.period:g} s or more."
            )
        self._rows = round(horizon / self.period)
        self.unknown = np.zeros(model.index.size)
        self.times: list[float] = []
        self._seen: tuple[int, Array] | None = None

    def see(self, row: int, state: Array, plan: TrackingPlan) -> None:
        """Learn from a state (2n,) at a row of the plan, one period after the last one."""
        before, self._seen = self._seen, (row, state - plan.states[row])
        if before is None or before[0] != row - 1 or row >= len(plan.times):
            return
        sweep, size = self.first.sweep, self.model.index.size
        foreseen = sweep.pieces.ahead[row - 1] @ before[1] - sweep.pieces.push[row - 1] @ (
            plan.gains[row - 1] @ before[1]
        )
        missed = self._seen[1] - foreseen
        self.unknown += LEARNED * (missed[size:] / self.period)

    def replanned(self, row: int, state: Array, plan: TrackingPlan) -> TrackingPlan | None:
        """The plan with new states, inputs and gains for a horizon from `LEAD` periods after a row on; None at its end.

        Args:
            row: of the plan, at which state (2n,) is seen.

        Raises:
            TensegrityError: the guess leaves what the model can do.
        """
        began = process_time()
        first, last = row + LEAD, min(row + LEAD + self._rows, len(plan.times) - 1)
        if last - first < LEAST_ROWS:
            return None
        sweep, size, model = self.first.sweep, self.model.index.size, self.model
        start = state - plan.states[row]
        lasting = np.concatenate((np.zeros(size), self.unknown))
        for k in range(row, first):
            closed = sweep.pieces.ahead[k] - sweep.pieces.push[k] @ plan.gains[k]
            start = closed @ start + self.first.drifts[k] @ lasting
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
        states, inputs = states + deviations, inputs + changes
        found = model.outputs_along(plan.positions[first], states, inputs)
        whole = [np.array(each) for each in (plan.states, plan.inputs, plan.gains, plan.positions)]
        for rows, new in zip(whole, (states, inputs, ahead.gains, found.positions), strict=True):
            rows[here] = new
        self.times.append(process_time() - began)
        return replace(plan, states=whole[0], inputs=whole[1], gains=whole[2], positions=whole[3])
