"""Motion of a mechanism from its pulley angles and the efforts behind them: positions, velocities and strains.

A copy of the mechanism is simulated with the efforts that were applied, and corrected by the sensors:

    x = simulated(x, u);   x = x + K (y - h(x)),   x = (w, w')

in independent coordinates (`ReducedModel`). K is the steady gain of the Kalman filter for the linear system around the
present shape, solved again when the shape has moved on or readings come at another rhythm. What is measured is the
position of every actuator and, where there are load cells, the tension of cables.

Where readings are missed the efforts of the time between are not known. The copy's actuators are then led from the
positions before to those after, which are, and the same gain serves: to solve for another would take the time of
several more readings.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ...errors import TensegrityError, unknown_name
from ...impedance import MovingPosition
from ...numerics.types import Array
from ...robots.robot import Robot
from ..dynamics.equations_of_motion import evaluate
from ..dynamics.reduced_model import ReducedModel
from ..simulation.mechanism_simulator import MechanismSimulator
from ..workspace import make_workspace
from .quasi_static_estimator import MechanismEstimate, MechanismEstimator

MAX_INTERVAL_S = 1.0
"""s between two readings after which nothing is predicted any more."""
MAX_COORDINATE_CHANGE = 0.1
"""rad or m by which a coordinate moves before the gain is made anew."""
MISSED = 1.5
"""Intervals between two readings from which on one is missing."""
RHYTHM = 5
"""Readings in a row at another interval after which the gain is made for that one."""


@dataclass(frozen=True)
class Noise:
    """How far the model and the sensors are trusted.

    Args:
        position: rad or m, of the actuators' sensors. tension: N, of load cells.
        effort: N m or N, of unknown disturbances at every coordinate, steady over a period.
        lost: rad or m between sensor and model beyond which the observer starts anew from the shape at rest.
    """

    position: float = 1e-5
    tension: float = 0.1
    effort: float = 0.05
    lost: float = 0.2

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not (np.isfinite(value) and value > 0.0):
                raise TensegrityError(f"noise {name} is {value}; give a number above zero.")


class MechanismObserver(MechanismEstimator):
    """See the module. Without efforts it answers as `MechanismEstimator` does: with shapes at rest.

    Args:
        robot: a mechanism with actuators.
        noise: of model and sensors. time_step: s, longest step of the simulated copy; None for the model's own.

    Raises:
        NoEquilibriumError: the robot has no shape with its actuators at their start.
        TensegrityError: its independent coordinates belong to spherical or floating joints.
    """

    def __init__(self, robot: Robot, noise: Noise | None = None, time_step: float | None = None) -> None:
        self.noise = noise or Noise()
        self._reduced = ReducedModel(robot)
        self._copy = MechanismSimulator(robot, time_step, "rk4", start="file")
        self._work = make_workspace(robot.mechanism.flat)
        mechanism = robot.mechanism
        self._cables = {cable.name: k for k, cable in enumerate(mechanism.cables)}
        self._drive_rows = [int(np.flatnonzero(self._reduced.index == k)[0]) for k in self._reduced.drives]
        self._followed: MechanismEstimate | None = None  # the last one that was not a shape at rest
        # interval and cables that it was made for, w there, K
        self._gain: tuple[float, tuple[str, ...], Array, Array] | None = None
        self._other_interval, self._others = 0.0, 0
        super().__init__(robot)

    def reset(self) -> None:
        """Forget the past."""
        super().reset()
        self._running, self._gain, self._followed = False, None, None

    def update(
        self,
        time: float,
        positions: Mapping[str, float],
        efforts: Mapping[str, float] | None = None,
        tensions: Mapping[str, float] | None = None,
    ) -> MechanismEstimate:
        """The estimate at a time [s].

        Args:
            positions: rad or m by actuator. efforts: N m or N by actuator, held since the last time.
            tensions: N by cable where they are measured; numbers that are not finite are passed over.

        The same time again gives the same answer; a time before the last one starts anew. Where the model has lost the
        readings, or some of them are missing or not finite, the answer is the shape at rest, and the next one starts
        from it.

        Raises:
            TensegrityError: a tension names no cable.
        """
        last = self._last
        if time == last.time:
            return last
        for name in tensions or ():
            if name not in self._cables:
                raise TensegrityError(unknown_name("cable", name, self._cables))
        measured = np.array([positions.get(name, np.nan) for name in self.actuators])
        applied = np.array([(efforts or {}).get(name, np.nan) for name in self.actuators])
        usable = math.isfinite(measured.sum() + applied.sum())
        if not usable or not 0.0 < time - last.time < MAX_INTERVAL_S or not self._running:
            still = super().update(time, positions)
            self._running = usable and still.converged
            return still
        try:
            estimate = self._follow(time, measured, applied, tensions or {})
        except TensegrityError:
            estimate = None
        if estimate is None:
            still = super().update(time, positions)
            self._last = replace(
                still, velocity=0.0 * still.v, twist=None if still.twist is None else 0.0 * still.twist
            )
            self._gain = None
            return self._last
        self._last = estimate
        return estimate

    # -- parts ----------------------------------------------------------------------------------------------------

    def _follow(
        self, time: float, measured: Array, applied: Array, tensions: Mapping[str, float]
    ) -> MechanismEstimate | None:
        """Predict and correct; None where the readings are too far from the model."""
        last, model = self._last, self._reduced
        copy = self._copy
        if last is self._followed:  # its loops are closed
            copy.place(last.q, last.v)
        else:
            copy.set_state(last.q, last.v)
        interval = time - last.time
        if self._gain is not None and interval > MISSED * self._gain[0]:
            before = last.q[model.q_index[self._drive_rows]]
            rates = (measured - before) / interval
            moving = [MovingPosition(*pair) for pair in zip(before.tolist(), rates.tolist(), strict=True)]
            copy.command("position", dict(zip(self.actuators, moving, strict=True)), period=interval)
        else:
            copy.give_efforts(applied)
        steps = max(1, int(np.ceil(interval / copy.time_step - 1e-9)))
        usual, copy.time_step = copy.time_step, interval / steps
        try:
            copy.advance(steps)
        finally:
            copy.time_step = usual
        state = copy.state
        measured_cables = tuple(name for name in sorted(tensions) if np.isfinite(tensions[name]))
        deviation = measured - state.q[model.q_index[self._drive_rows]]
        if max(map(abs, deviation.tolist())) > self.noise.lost:
            return None
        if measured_cables:
            predicted = self._tensions(state.q, state.v)
            extra = [tensions[name] - predicted[self._cables[name]] for name in measured_cables]
            deviation = np.concatenate((deviation, extra))
        w = model.state(state.q, state.v)
        change = self._kalman(state.q, w, applied, interval, measured_cables) @ deviation
        count, w = model.index.size, w + change
        q, v, tension = model.state_at(state.q, w[:count], w[count:])
        if not (np.isfinite(q).all() and np.isfinite(v).all()):
            return None
        shape = replace(last.equilibrium, q=q, tension=tension, residual=float("nan"), softest=float("nan"))
        self._followed = self._estimate(time, shape, v)
        return self._followed

    def _tensions(self, q: Array, v: Array) -> Array:
        """(c,) N, with what the cables' damping carries."""
        evaluate(self._reduced.mechanism.flat, q, v, self._work)
        return np.array(self._work.tension)

    def _has_new_rhythm(self, interval: float, usual: float) -> bool:
        """Whether readings come at another interval [s] than usual, again and again the same one."""
        if abs(interval - usual) < 1e-9:
            self._others = 0
            return False
        same = abs(interval - self._other_interval) < 1e-9
        self._other_interval, self._others = interval, self._others + 1 if same else 1
        return self._others >= RHYTHM

    def _kalman(self, q: Array, w: Array, effort: Array, interval: float, measured_cables: tuple[str, ...]) -> Array:
        """K (2n, y) for the shape, made again where it has moved, or where other things are measured."""
        model, count = self._reduced, self._reduced.index.size
        if self._gain is not None and self._gain[1] == measured_cables:
            usual, _, shape, gain = self._gain
            if not self._has_new_rhythm(interval, usual):
                interval = usual
                if max(map(abs, (w[:count] - shape).tolist())) < MAX_COORDINATE_CHANGE:
                    return gain
        from scipy.linalg import expm, solve_discrete_are  # here, so that importing the package stays quick

        matrix, _, _ = model.linearised(q, np.zeros(count), effort)
        ahead = expm(interval * matrix)
        unit = np.zeros((2 * count, count))
        unit[count:] = np.linalg.inv(model.mass(q))
        block = np.zeros((3 * count, 3 * count))
        block[: 2 * count, : 2 * count], block[: 2 * count, 2 * count :] = matrix, unit
        push = expm(interval * block)[: 2 * count, 2 * count :]  # of a disturbance that is steady over the interval
        rows = np.zeros((len(self._drive_rows) + len(measured_cables), 2 * count))
        rows[np.arange(len(self._drive_rows)), self._drive_rows] = 1.0
        if measured_cables:
            rows[len(self._drive_rows) :] = self._tension_rows(q)[[self._cables[name] for name in measured_cables]]
        spread = np.concatenate((
            np.full(len(self._drive_rows), self.noise.position), np.full(len(measured_cables), self.noise.tension)
        ))  # fmt: skip
        process = self.noise.effort**2 * push @ push.T
        # scaled, so that tiny covariances do not drown in rounding
        unit_of = np.sqrt(np.maximum(np.diag(process), 1e-30))
        scaled, seen = ahead / unit_of[:, None] * unit_of, rows * unit_of
        disturbed = process / np.outer(unit_of, unit_of) + 1e-9 * np.eye(2 * count)
        try:
            value = solve_discrete_are(scaled.T, seen.T, disturbed, np.diag(spread**2))
        except (ValueError, np.linalg.LinAlgError) as error:  # so near to a border of rounding
            raise TensegrityError(f"there is no gain for this shape: {error}") from error
        gain = unit_of[:, None] * np.linalg.solve(seen @ value @ seen.T + np.diag(spread**2), seen @ value).T
        self._gain = (interval, measured_cables, w[:count].copy(), gain)
        return gain

    def _tension_rows(self, q: Array) -> Array:
        """(c, 2n) how tensions follow w and w', by central differences."""
        model, count, h = self._reduced, self._reduced.index.size, 1e-6
        rows = np.zeros((len(self._cables), 2 * count))
        w = q[model.q_index]
        for k in range(count):
            step = np.zeros(count)
            step[k] = h
            closed = [model.closed_configuration(q, w + sign * step) for sign in (1.0, -1.0)]
            sides = [self._tensions(each, np.zeros(model.mechanism.velocity_count)) for each in closed]
            rows[:, k] = (sides[0] - sides[1]) / (2.0 * h)
            moving = [self._tensions(q, model.velocity(q, sign * step)) for sign in (1.0, -1.0)]
            rows[:, count + k] = (moving[0] - moving[1]) / (2.0 * h)
        return rows
