"""Feedback on a planned motion: inputs of the plan, plus gains times the deviation of the measured state from it.

    u = u_plan + K (x_plan - x),   x = (w, w')

A braked motion passes the same configurations at a pace s' below 1. Inertial loads are proportional to s'^2, so plan
and inputs change into the equilibria along the path, (w_0, u_0), which every plan contains:

    x_plan = (w_0 + s'^2 (w - w_0), s' w'),   u_plan = u_0 + s'^2 (u - u_0)

Impedance actuators receive the same plan as positions, rates and efforts, without K, so that a late state has no
effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tensegrity_dynamics.errors import InfeasibleControlError
from tensegrity_dynamics.mechanisms.dynamics.reduced_model import ReducedModel
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.robot import Robot

from ..controller import RobotState
from ..trajectories.quintic import remaining
from ..trajectories.time_scaling import Progress, TooFastError
from .impedance_gains import ImpedanceGains

MAX_DEVIATION = 0.3
"""rad or m, largest deviation of a coordinate from the plan for which the linear feedback is valid."""


@dataclass(frozen=True, eq=False)
class TrackingPlan:
    """A motion with feedback on a grid of times that begins at 0, with steps of one control period.

    Attributes:
        times: (k,) s.
        states: (k, 2n) w and w'.
        inputs: (k, u) N m or N, constant until the next time.
        gains: (k, u, 2n).
        rest_coordinates, rest_inputs: (k, n) and (k, u), w of the equilibrium at that point and the inputs that hold
            it.
        positions: (k, nq) of the whole mechanism.
    """

    times: Array
    states: Array
    inputs: Array
    gains: Array
    rest_coordinates: Array
    rest_inputs: Array
    positions: Array

    @property
    def position(self) -> Array:
        """(nq,) configuration at the start."""
        return np.asarray(self.positions[0])


def check_efforts(robot: Robot, inputs: Array, rest_inputs: Array) -> None:
    """Refuse a plan that exceeds the effort limit of an actuator.

    What moving adds to the efforts at rest is proportional to the square of the speed, as far as it is inertia.

    Args:
        inputs, rest_inputs: (k, u) N m or N, of the motion and at rest at its points.

    Raises:
        TooFastError: a longer motion needs less. InfeasibleControlError: the poses cannot be held either.
    """
    for each, used, held in zip(robot.actuators, *np.max(np.abs([inputs, rest_inputs]), axis=1), strict=True):
        if held > each.effort:
            raise InfeasibleControlError(
                f"poses of the path need {held:.3g} {each.units[2]} of {each.name} at rest, above its limit of "
                f"{each.effort:.3g}, however slow the motion is; choose another goal, or lower tensions."
            )
        if used > each.effort:
            room = max(each.effort - held, 1e-9 * each.effort)
            raise TooFastError(
                f"the path needs {used:.3g} {each.units[2]} of {each.name}, above its limit of {each.effort:.3g}; take "
                "more time for it.",
                each.name, float(np.sqrt(max(used - held, room) / room)), f"the effort limit of {each.name}",
            )  # fmt: skip


class LinearFeedbackTracker:
    """Follows a plan and holds its end.

    Args:
        model: model with which the plan was made.
        plan: the motion.

    Attributes:
        end: equilibrium at the end of the plan, if the equilibrium map computed it; else None.
        loads: announced loads that the plan contains; see `controllers.known_loads`.
        impedance: gains of the actuators' own loops, if they have some.
    """

    def __init__(self, model: ReducedModel, plan: TrackingPlan) -> None:
        self.model, self.plan = model, plan
        self.period = float(plan.times[1] - plan.times[0]) if plan.times.size > 1 else 1.0
        self.names = tuple(each.name for each in model.robot.actuators)
        self.limits = np.array([each.effort for each in model.robot.actuators])
        self.end: Any = None
        self.loads: Any = None
        self.impedance: ImpedanceGains | None = None
        self._drives: tuple[Array, Array] | None = None
        self._fade: tuple[Array, Array, float] | None = None

    @property
    def duration(self) -> float:
        """s, duration of the plan."""
        return float(self.plan.times[-1])

    def command(
        self, progress: Progress, state: RobotState | None = None, shift: tuple[Array, Array] | None = None
    ) -> Array:
        """(u,) N m or N: inputs of the plan, with feedback if there is a state.

        Args:
            shift: (2n,) and (u,), added to the states and inputs of the plan.

        Raises:
            InfeasibleControlError: the deviation from the plan exceeds `MAX_DEVIATION`.
        """
        if state is None:
            effort = self.feed_forward(progress.time, progress.pace)
            return effort if shift is None else np.clip(effort + shift[1], -self.limits, self.limits)
        assert state.q is not None and state.v is not None
        deviation = self.distance(progress.time, state.q, progress.pace)
        if not deviation < MAX_DEVIATION:
            raise InfeasibleControlError(
                f"the robot is {deviation:.2g} rad or m away from its planned motion, too far for this feedback; call "
                "hold, then send the goal again."
            )
        return self.effort(progress.time, state.q, state.v, progress.pace, shift)

    def effort(
        self, time: float, q: Array, v: Array, pace: float = 1.0, shift: tuple[Array, Array] | None = None
    ) -> Array:
        """(u,) N m or N within the limits of the actuators, for one period.

        Args:
            time: s, of the plan.
            q, v: measured.
            pace: rate of the time of the plan.
            shift: see `command`.
        """
        state, inputs, gain = self._at(time, pace)
        if shift is not None:
            state, inputs = state + shift[0], inputs + shift[1]
        return np.clip(inputs - gain @ (self.model.state(q, v) - state), -self.limits, self.limits)

    def distance(self, time: float, q: Array, pace: float = 1.0) -> float:
        """rad or m, largest deviation of a coordinate from the plan at a time [s]."""
        count = self.model.index.size
        return float(np.max(np.abs(self.model.coordinates_at(q) - self._at(time, pace)[0][:count]), initial=0.0))

    def feed_forward(self, time: float, pace: float = 1.0) -> Array:
        """(u,) N m or N of the plan alone, within the limits, for a period without a state."""
        return np.minimum(np.maximum(self._at(time, pace)[1], -self.limits), self.limits)

    def prepare(self, gains: ImpedanceGains) -> None:
        """Prepare `set_points`, for gains of the actuators' loops.

        Raises:
            TensegrityError: the loops of the mechanism cannot close on the plan.
        """
        plan, model = self.plan, self.model
        index = model.q_drives
        columns = {int(k): n for n, k in enumerate(model.index)}
        if all(int(k) in columns for k in model.drives):
            rest = plan.rest_coordinates[:, [columns[int(k)] for k in model.drives]]
        else:
            rest = model.closed_configurations(plan.positions, plan.rest_coordinates)[:, index]
        self.impedance, self._drives = gains, (plan.positions[:, index], rest)

    def set_points(self, time: float, pace: float = 1.0, age: float = 0.0) -> tuple[Array, Array, Array]:
        """Positions and rates of the actuators (a,) at a time of the plan [s], and efforts (u,), for one period.

        The period begins when the command acts, `age` s later. Positions that move at these rates from now on agree
        with the plan at the beginning and at the end of that period.
        """
        begin = time + pace * age
        here = self._at_drives(begin, pace)
        ahead = self._at_drives(begin + pace * self.period, pace) if begin < self.duration else here
        rates = (ahead - here) / self.period
        return here - age * rates, rates, self.feed_forward(begin, pace)

    def accelerations(self, time: float, pace: float = 1.0) -> Array:
        """(a,) rad/s² or m/s² of the actuators at a time of the plan [s], by differences on its grid; call `prepare`
        first."""
        step = self.period
        before, here, after = (self._at_drives(time + each, pace) for each in (-step, 0.0, step))
        return np.asarray(pace**2 * (before - 2.0 * here + after) / step**2)

    def _at_drives(self, time: float, pace: float) -> Array:
        """(a,) rad or m, actuator positions of the plan; call `prepare` first."""
        assert self._drives is not None
        positions, rest = self._drives
        row = min(max(time / self.period, 0.0), float(len(positions) - 1))
        k = min(int(row + 1e-6), len(positions) - 1)
        share = max(row - k, 0.0)
        after = min(k + 1, len(positions) - 1)
        moving, low = ((1.0 - share) * rows[k] + share * rows[after] for rows in (positions, rest))
        result = low + pace**2 * (moving - low)
        if self._fade is not None and time < self._fade[2]:
            result = result + self._fade_left(time) * (self._fade_drives - rest[0])
        return np.asarray(result)

    def motion(self, time: float, pace: float = 1.0) -> tuple[Array, Array]:
        """Configuration (nq,) and velocity (nv,) of the mechanism on the plan."""
        state, _, _ = self._at(time, pace)
        count, last = self.model.index.size, self.plan.times.size - 1
        near = self.plan.positions[min(max(round(time / self.period), 0), last)]
        q = self.model.closed_configuration(near, state[:count])
        return q, self.model.velocity(q, state[count:])

    def planned(self, time: float, pace: float = 1.0) -> tuple[Array, Array, Array]:
        """Positions of the actuators (a,), coordinates (n,) and inputs (u,) of the plan."""
        state, inputs, _ = self._at(time, pace)
        return self.motion(time, pace)[0][self.model.q_drives], state[: self.model.index.size], inputs

    def fade_from(self, q: Array, effort: Array, duration: float) -> None:
        """Start at an equilibrium q (nq,) that `effort` (u,) holds, and change to the plan within `duration` s."""
        self._fade_drives = q[self.model.q_drives]
        offset = self.model.coordinates_at(q) - self.plan.rest_coordinates[0]
        self._fade = (np.concatenate((offset, np.zeros(offset.size))), effort - self.plan.rest_inputs[0], duration)

    def as_dict(self, effort: Array) -> dict[str, float]:
        """Efforts by actuator name."""
        return dict(zip(self.names, effort.tolist(), strict=True))

    def _at(self, time: float, pace: float) -> tuple[Array, Array, Array]:
        """State (2n,), inputs (u,) and gain (u, 2n) of the plan."""
        plan, last, count = self.plan, self.plan.times.size - 1, self.model.index.size
        row = min(max(time / self.period, 0.0), float(last))
        k = min(int(row + 1e-6), last)
        share = row - k if row - k > 1e-6 else 0.0

        def between(rows: Array) -> Array:
            return rows[k] if share == 0.0 else (1.0 - share) * rows[k] + share * rows[k + 1]

        state, inputs = between(plan.states), between(plan.inputs)
        pace = 0.0 if k == last else pace
        if pace != 1.0:
            low, held = between(plan.rest_coordinates), between(plan.rest_inputs)
            state = np.concatenate((low + pace**2 * (state[:count] - low), pace * state[count:]))
            inputs = held + pace**2 * (inputs - held)
        if self._fade is not None and time < self._fade[2]:
            offset, more, _ = self._fade
            left = self._fade_left(time)
            state, inputs = state + left * offset, inputs + left * more
        return state, inputs, between(plan.gains)

    def _fade_left(self, time: float) -> float:
        """Remaining fraction of the initial difference at a time [s] of the plan, from 1 to 0."""
        assert self._fade is not None
        return remaining(time / self._fade[2])
