"""Feedback on a planned motion: inputs of the plan, and gains on what the measured state is away from it.

    u = u_plan + K (x_plan - x),   x = (w, w')

A motion that is broken off goes through the same places at a pace s' below 1. What inertia asks for shrinks with s'^2,
so plan and inputs go over into the shapes at rest along the way, (w_0, u_0), which every plan knows:

    x_plan = (w_0 + s'^2 (w - w_0), s' w'),   u_plan = u_0 + s'^2 (u - u_0)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.mechanisms.dynamics.reduced_model import ReducedModel

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TrackingPlan:
    """A motion on a grid of times that begin at 0, one control period apart, with its feedback.

    Attributes:
        times: (k,) s. states: (k, 2n) w and w'. inputs: (k, u) N m or N, held until the next time. gains: (k, u, 2n).
        rest_places, rest_inputs: (k, n) and (k, u), w of the shape at rest there, and what holds it.
        positions: (k, nq) of the whole mechanism.
    """

    times: Array
    states: Array
    inputs: Array
    gains: Array
    rest_places: Array
    rest_inputs: Array
    positions: Array

    @property
    def position(self) -> Array:
        """(nq,) at the start."""
        return np.asarray(self.positions[0])


class LinearFeedbackTracker:
    """Follows a plan, and holds its end.

    Args:
        model: the model that was planned with. plan: the motion.
    """

    def __init__(self, model: ReducedModel, plan: TrackingPlan) -> None:
        self.model, self.plan = model, plan
        self.period = float(plan.times[1] - plan.times[0]) if plan.times.size > 1 else 1.0
        self.names = tuple(each.name for each in model.robot.actuators)
        self.limits = np.array([each.effort for each in model.robot.actuators])
        self._fade: tuple[Array, Array, float] | None = None

    @property
    def duration(self) -> float:
        """s of the plan."""
        return float(self.plan.times[-1])

    def effort(self, time: float, q: Array, v: Array, pace: float = 1.0) -> Array:
        """(u,) N m or N within the actuators' limits, to be held for one period.

        Args:
            time: s, of the plan. q, v: measured. pace: at which the plan's time runs.
        """
        wanted, given, gain = self._at(time, pace)
        return np.clip(given - gain @ (self.model.state(q, v) - wanted), -self.limits, self.limits)

    def distance(self, time: float, q: Array, pace: float = 1.0) -> float:
        """rad or m, the largest deviation of a coordinate from the plan at a time [s]."""
        count = self.model.index.size
        return float(np.max(np.abs(q[self.model.q_index] - self._at(time, pace)[0][:count]), initial=0.0))

    def feed_forward(self, time: float, pace: float = 1.0) -> Array:
        """(u,) N m or N of the plan alone, within the limits: for a period in which no state is known."""
        return np.clip(self._at(time, pace)[1], -self.limits, self.limits)

    def motion(self, time: float, pace: float = 1.0) -> tuple[Array, Array]:
        """Position (nq,) and velocity (nv,) of the mechanism on the plan."""
        wanted, _, _ = self._at(time, pace)
        count, last = self.model.index.size, self.plan.times.size - 1
        near = self.plan.positions[min(max(round(time / self.period), 0), last)]
        q = self.model.closed_configuration(near, wanted[:count])
        return q, self.model.velocity(q, wanted[count:])

    def fade_from(self, q: Array, effort: Array, duration: float) -> None:
        """Begin at a shape at rest q (nq,) that `effort` (u,) holds, and go over to the plan in `duration` s."""
        place = q[self.model.q_index] - self.plan.rest_places[0]
        self._fade = (np.concatenate((place, np.zeros(place.size))), effort - self.plan.rest_inputs[0], duration)

    def as_dict(self, effort: Array) -> dict[str, float]:
        """Efforts by actuator name."""
        return dict(zip(self.names, effort.tolist(), strict=True))

    def _at(self, time: float, pace: float) -> tuple[Array, Array, Array]:
        """State (2n,), inputs (u,) and gain (u, 2n) of the plan."""
        plan, last, count = self.plan, self.plan.times.size - 1, self.model.index.size
        place = min(max(time / self.period, 0.0), float(last))
        k = min(int(place + 1e-6), last)
        share = place - k if place - k > 1e-6 else 0.0

        def between(rows: Array) -> Array:
            return rows[k] if share == 0.0 else (1.0 - share) * rows[k] + share * rows[k + 1]

        state, given = between(plan.states), between(plan.inputs)
        pace = 0.0 if k == last else pace
        if pace != 1.0:
            low, held = between(plan.rest_places), between(plan.rest_inputs)
            place_now = low + pace**2 * (state[:count] - low)
            state = np.concatenate((place_now, pace * state[count:]))
            given = held + pace**2 * (given - held)
        if self._fade is not None and time < self._fade[2]:
            away, more, duration = self._fade
            x = max(time, 0.0) / duration
            left = 1.0 - x**3 * (10.0 - 15.0 * x + 6.0 * x * x)
            state, given = state + left * away, given + left * more
        return state, given, between(plan.gains)
