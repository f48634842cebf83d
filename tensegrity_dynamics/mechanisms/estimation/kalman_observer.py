"""Kalman observer of a mechanism: positions, velocities, strains and unknown loads (`unknown_loads`) from the positions
and efforts of its actuators.

A copy of the mechanism is simulated with the applied efforts, and corrected with the sensors:

    x = simulated(x, u);   x = x + K (y - h(x)),   x = (w, w', d)

with independent coordinates w and unknown loads d. Near a singularity of the coordinates, `ReducedModel` changes to
other coordinates, and the covariance is transformed. K is the gain of the Kalman filter. Its covariance is predicted in
every interval with the linear system about the present configuration. This system is recomputed after a motion, or if
the interval of the readings changes. The measured quantities are the position of every actuator and, with load cells,
the tensions of cables.

If readings are lost, the efforts of the time between are unknown. Then the actuators of the copy are moved from the
last measured positions to the present ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import StepTooShortError, TensegrityError, unknown_name
from ...estimation_interface import is_reading, without_time
from ...impedance import MovingPosition
from ...numerics.changed_record import changed
from ...numerics.compilation import QuickCall, allocation_free
from ...numerics.types import Array
from ...robots.robot import Robot
from ...simulation_interface import IMPLICIT_STEP
from ..dynamics.equations_of_motion import evaluate
from ..dynamics.reduced_model import ReducedModel
from ..dynamics.state_derivative import components
from ..loads import Payload
from ..mechanism import put_on
from ..mechanism_model import MechanismModel
from ..resistance import LAW, SPEED
from ..simulation.mechanism_simulator import MechanismSimulator, load_array
from ..workspace import make_workspace
from .covariance import Covariance, white_noise_system
from .error_growth import efforts_per_force, error_growth
from .quasi_static_estimator import MechanismEstimate, MechanismEstimator
from .unknown_loads import UnknownLoad, UnknownLoads

MAX_INTERVAL_S = 1.0
"""Largest interval between two readings [s] for which a prediction is made."""
MAX_COORDINATE_CHANGE = 0.1
"""Change of a coordinate [rad or m] after which the linear system is recomputed."""
MAX_BASIS_CHANGE = 0.05
"""Change of the transformation from the present coordinates to those at the start, after which the linear system is
recomputed."""
MISSED = 1.5
"""Number of usual intervals between two readings, above which a reading counts as lost."""
SURE, STILL = 0.01, 1.0
"""Initial standard deviations of coordinates [rad or m] and rates [rad/s or m/s] at the start from an equilibrium."""
MOST_GROWTH, SLOW = 1.001, 3.0
"""Largest growth of errors in an interval through a controller (`error_growth`), and the bandwidth of load estimates
[1/s] where that of their prior leads to a larger one."""
AT_REST, RESTED = 3.0, 0.5
"""Deviation of the first reading after the start in standard deviations, up to which a robot counts as at rest, and the
time of rest before the start [s] that the covariance then contains."""
LOOSE = 1e-6
"""Singular value, of actuator motions and of forces relative to the largest, below which nothing holds a motion."""
MOST_GROWN = 1e4
"""Largest growth of the variances between two readings."""
UNLIMITED = 20.0
"""Effort noise of an actuator without effort limit, relative to the noise at other coordinates."""
SAME = 1e-12
"""Difference [rad or m] below which two readings are equal."""
SLIDING = 1.0
"""Speed [rad/s or m/s] over which the linear system spreads the slope of Coulomb friction, at least."""
MAX_STIFFNESS_CHANGE = 0.05
"""Relative change of the stiffness of cables after which the linear system is recomputed."""
RHYTHM = 5
"""Number of successive readings at another interval, after which the linear system is recomputed for this interval."""
ALIKE, LEAST_INTERVAL = 0.1, 1e-4
"""Relative difference of intervals that belong to the same rhythm, since those of hardware vary, and the shortest
interval of the linear system [s]: one from two readings at nearly the same time would take for ever to predict with."""
LESS_WORK = 2.0
"""Ratio of the evaluations of explicit steps to those of implicit steps, above which the copy uses implicit steps."""


@allocation_free
def fill_variances(now, before, first, steps, own, tension, variances):
    """Update the sensor resolutions steps (a,), and fill the variances (a + t,) of positions and tensions.

    `now`, `before` and `first` are the last three readings (a,). A resolution is lowered to the smallest difference of
    successive readings, or of successive differences. The variance of a position is `own` + step^2 / 12."""
    count = now.shape[0]
    for k in range(count):
        move, last = now[k] - before[k], before[k] - first[k]
        for n in range(2):
            each = abs(move) if n == 0 else abs(move - last)
            if SAME < each < steps[k]:
                steps[k] = each
        step = steps[k] if steps[k] < np.inf else 0.0
        variances[k] = own + step * step / 12.0
    for k in range(count, variances.shape[0]):
        variances[k] = tension


@contextmanager
def sliding(resistances: Array) -> Iterator[None]:
    """Within the context the rows of resistances (r, columns) have the slope of Coulomb friction that slides.

    At rest regularised friction is an enormous damper, up to its breakaway at `friction_speed`. A covariance that
    contains this damper takes every motion for noise of the sensors: the observer would not see a robot that slides.
    While friction slides its slope is zero. What it does at rest is left to the copy, which has the whole law."""
    speeds = resistances[:, LAW + SPEED].copy()
    np.maximum(resistances[:, LAW + SPEED], SLIDING, out=resistances[:, LAW + SPEED])
    try:
        yield
    finally:
        resistances[:, LAW + SPEED] = speeds


@dataclass(frozen=True)
class Noise:
    """Standard deviations of model and sensors.

    Args:
        position: noise of the position sensors of the actuators [rad or m]. tension: noise of load cells [N].
        effort: unknown disturbances at every coordinate [N m or N], as the mean over a period; they can change at any
            time within it.
        drive: difference between the reported effort of an actuator and its mean effort since the last reading,
            including friction, relative to its limit.
        load: unknown wrench at the output, relative to the weight of the robot; 0: none. See `UnknownLoads`.
        elasticity: relative deviation of the cable stiffness; 0: none. See `UnknownLoads`.
        friction: slowly changing friction of gears, relative to the effort limits; 0: none. See `UnknownLoads`.
        lost: difference between sensor and model [rad or m], above which the observer restarts from the equilibrium.
    """

    position: float = 1e-5
    tension: float = 0.3
    effort: float = 0.05
    drive: float = 0.05
    lost: float = 0.2
    load: float = 0.3
    elasticity: float = 0.15
    friction: float = 0.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            none = name in ("load", "elasticity", "friction")
            if not (np.isfinite(value) and (value > 0.0 or (none and value == 0.0))):
                raise TensegrityError(
                    f"noise {name} is {value}; give a number above zero{', or zero' if none else ''}."
                )


@dataclass(frozen=True, eq=False)
class System:
    """Linear system about a configuration, x = F x + noise and y = H x + noise.

    Attributes:
        interval: interval of F and Q [s]. cables: cables with measured tensions. shape: (n,) w of the configuration.
        first: (n, n) transformation from w to the coordinates at the start.
        ahead: F (x, x). process: Q (x, x). rows: H (y, x).
        slopes, forces: (n, n) and (n, f) w'' per w and per force at the output.
    """

    interval: float
    cables: tuple[str, ...]
    shape: Array
    first: Array
    values: Array
    ahead: Array
    process: Array
    rows: Array
    slopes: Array
    forces: Array


def simulated_copy(robot: Robot, time_step: float | None, independent: NDArray[np.int64]) -> MechanismSimulator:
    """Copy of the mechanism that an observer simulates.

    Motions of light pulleys and fingers are so fast that a simulation with explicit steps is slower than real time.
    Implicit steps damp them, and need one additional evaluation of the equations for each position and rate of the
    largest component of the mechanism (`components`). The choice depends on the numbers of evaluations, so that it is
    the same on every computer.

    Args:
        time_step: step [s], as in `MechanismObserver`. independent: (n,) indices in v of the independent coordinates.
    """
    try:
        copy = MechanismSimulator(robot, time_step, "rk4", start="file")
    except StepTooShortError:
        return MechanismSimulator(robot, IMPLICIT_STEP, "implicit", start="file")
    parts = components(robot.mechanism.flat)[independent]
    explicit = 4.0 / copy.time_step
    implicit = (8.0 + 2.0 * np.max(np.bincount(parts), initial=0)) / IMPLICIT_STEP
    if time_step is not None or explicit < LESS_WORK * implicit:
        return copy
    try:
        return MechanismSimulator(robot, IMPLICIT_STEP, "implicit", start="file")
    except TensegrityError:  # for example, inextensible slipping cables support explicit steps only
        return copy


class MechanismObserver(MechanismEstimator):
    """Kalman observer, see the module. Without efforts the estimates are equilibria, as of `MechanismEstimator`.

    Args:
        robot: mechanism with actuators.
        noise: standard deviations of model and sensors.
        time_step: longest explicit step of the simulated copy [s]; None for the default of the model, or for implicit
            steps if they need less computation.

    Attributes:
        last: the last estimate. reduced: the equations of motion of its model, with what the robot is known to carry.
        simulated: the copy whose steps predict. system: linear model of the last prediction, or None before the first.
        covariance: of the errors of w, w' and the unknown loads. resolution: (a,) rad or m, smallest change of the
            measured positions so far. load_bandwidth: largest bandwidth of the estimates of loads [1/s]; infinite where
            errors do not grow through a controller with that of the prior.

    Raises:
        NoEquilibriumError: the robot has no equilibrium with its actuators at their start.
        TensegrityError: a spherical or floating joint has some independent coordinates, but not all of them.
    """

    def __init__(self, robot: Robot, noise: Noise | None = None, time_step: float | None = None) -> None:
        self.noise = noise or Noise()
        self.reduced = ReducedModel(robot)
        self.simulated = simulated_copy(robot, time_step, self.reduced.index)
        self._work = make_workspace(robot.mechanism.flat)
        mechanism = robot.mechanism
        self._cables = {cable.name: k for k, cable in enumerate(mechanism.cables)}
        self._at_first = self.reduced.index.copy(), np.array(robot.model_as(MechanismModel).start)
        limits = np.array([each.effort for each in robot.actuators])
        self._drive_noise = np.where(np.isfinite(limits), self.noise.drive * limits, UNLIMITED * self.noise.effort)
        self._followed: MechanismEstimate | None = None  # last estimate that was not an equilibrium
        self.system: System | None = None
        drives = self._drive_noise * (self.noise.friction / self.noise.drive) if self.noise.friction > 0.0 else None
        self.unknown = UnknownLoads(robot, self.noise.load, self.noise.elasticity, drives)
        self._given_loads = load_array(mechanism, None)
        self.covariance = Covariance(2 * self.reduced.index.size + self.unknown.count)
        self._fill_variances = QuickCall(fill_variances)
        self._other_interval, self._others = 0.0, 0
        super().__init__(robot)

    def reset(self) -> None:
        """Reset the observer to its initial state."""
        super().reset()
        self._running, self._followed = False, None
        self.load_bandwidth, self._judged = math.inf, 0.0
        self._begin()

    def _begin(self) -> None:
        """Restart from an equilibrium."""
        self.system, self._values = None, np.zeros(self.unknown.count)
        self.reduced.take_coordinates(*self._at_first)
        self._has_moved = False  # whether the coordinates differ from those at the start
        self._is_poor = True  # not determined yet
        self._read: list[Array] = []
        self.resolution = np.full(self.reduced.drives.size, np.inf)
        count = self.reduced.index.size
        self.covariance.value[:] = 0.0
        sure = np.repeat((SURE**2, STILL**2), count)
        self.covariance.value[: 2 * count, : 2 * count] = np.diag(sure)
        self.covariance.value[2 * count :, 2 * count :] = self.unknown.prior
        self.surprise = float("nan")
        self._is_first = self._followed is None

    def _carry(self, payloads: dict[str, Payload]) -> None:
        """Set known payloads, which are not part of the unknown loads; the state estimate is unchanged."""
        super()._carry(payloads)
        mine = (*self.robot.mechanism.payloads, *payloads.values())
        put_on(self.reduced.flat, self.robot.mechanism, mine)
        self.simulated.carry({each.name: each for each in mine})
        if self.system is not None:
            self.system = replace(self.system, shape=np.full_like(self.system.shape, np.inf))  # to be recomputed

    def set_loads(self, forces: Any) -> None:
        """Set known loads, in the form of `Simulation.apply_forces`; they are not part of the unknown loads."""
        self._given_loads = load_array(self.robot.mechanism, forces)

    def update(
        self,
        time: float,
        positions: Mapping[str, float],
        efforts: Mapping[str, float] | None = None,
        tensions: Mapping[str, float] | None = None,
    ) -> MechanismEstimate:
        """Estimate at a time [s].

        Args:
            positions: positions by actuator [rad or m].
            efforts: efforts by actuator, held since the last time [N m or N].
            tensions: measured tensions by cable [N]; values that are not finite are ignored.

        A call with the same time returns the same estimate. A time before the last one restarts the observer. If the
        readings differ too much from the model, or if readings are missing or not finite, the result is the
        equilibrium, and the next estimate starts from it.

        Raises:
            TensegrityError: a tension has the name of an unknown cable.
        """
        last = self.last
        if time == last.time:
            return last
        if not np.isfinite(time):
            return without_time(last, time)
        for name in tensions or ():
            if name not in self._cables:
                raise TensegrityError(unknown_name("cable", name, self._cables))
        measured = np.array([positions.get(name, np.nan) for name in self.actuators])
        applied = np.array([(efforts or {}).get(name, np.nan) for name in self.actuators])
        usable = all(map(is_reading, (*measured.tolist(), *applied.tolist())))
        if not usable or not 0.0 < time - last.time < MAX_INTERVAL_S or not self._running:
            still = super().update(time, positions)
            self._running = usable and still.converged
            self._begin()
            return still
        try:
            estimate = self._follow(time, measured, applied, tensions or {})
        except TensegrityError:
            estimate = None
        if estimate is None:
            still = super().update(time, positions)
            self.last = replace(still, velocity=0.0 * still.v, twist=None if still.twist is None else 0.0 * still.twist)
            self._begin()
            return self.last
        self.last = estimate
        return estimate

    # -- parts ----------------------------------------------------------------------------------------------------

    def _follow(
        self, time: float, measured: Array, applied: Array, tensions: Mapping[str, float]
    ) -> MechanismEstimate | None:
        """Predict and correct; None where the readings are too far from the model."""
        last, model, unknown = self.last, self.reduced, self.unknown
        copy = self.simulated
        if last is self._followed:  # its loops are closed
            copy.set_closed_state(last.q, last.v)
        else:
            copy.set_state(last.q, last.v)
        loads = unknown.applied(self._values, last.pose, self._given_loads)
        copy.take_loads(*loads)
        interval = time - last.time
        if self.system is not None and interval > MISSED * self.system.interval:
            before = last.q[model.q_drives]
            rates = (measured - before) / interval
            moving = [MovingPosition(*pair) for pair in zip(before.tolist(), rates.tolist(), strict=True)]
            copy.command("position", dict(zip(self.actuators, moving, strict=True)), period=interval)
        else:
            copy.give_efforts(unknown.given(applied, self._values))
        steps = max(1, int(np.ceil(interval / copy.time_step - 1e-9)))
        usual, copy.time_step = copy.time_step, interval / steps
        try:
            copy.advance(steps)
        finally:
            copy.time_step = usual
        state = copy.state
        measured_cables = tuple(name for name in sorted(tensions) if is_reading(tensions[name]))
        deviation = measured - state.q[model.q_drives]
        if max(map(abs, deviation.tolist())) > self.noise.lost:
            return None
        model.take_loads(*loads)
        if measured_cables:
            predicted = self._tensions(state.q, state.v)
            extra = [tensions[name] - predicted[self._cables[name]] for name in measured_cables]
            deviation = np.concatenate((deviation, extra))
        self._rechoose(state.q, state.v)
        w = model.state(state.q, state.v)
        system = self._linear(state.q, w, applied, interval, measured_cables)
        if self._is_first or (self.load_bandwidth < math.inf and system.interval != self._judged):
            still = float(np.max(np.abs(deviation[: measured.size]), initial=0.0)) < AT_REST * self.noise.position
            system = self._limit_loads(system, state.q, w, applied, still=still and self._is_first)
            self._is_first, self._judged = False, system.interval
        self._predict_covariance(system, max(1, round(interval / system.interval)))
        change, self.surprise = self.covariance.correct(
            system.rows, self.variances(measured, len(measured_cables)), deviation
        )
        count = model.index.size
        w += change[: 2 * count]
        self._values = np.minimum(np.maximum(self._values + change[2 * count :], unknown.low), unknown.high)
        model.take_loads(*unknown.applied(self._values, last.pose, self._given_loads))
        q, v, tension = model.state_at(state.q, w[:count], w[count:])
        self._is_poor = model.is_poor(q)
        if not math.isfinite(q.sum() + v.sum()):
            return None
        shape = changed(last.equilibrium, q=q, tension=tension, residual=math.nan, softest=math.nan)
        self._followed = estimate = self._estimate(time, shape, v)
        if unknown.count:
            object.__setattr__(estimate, "unknown", self._found(estimate))  # the estimate is not published yet
        return estimate

    def _limit_loads(self, system: System, q: Array, w: Array, effort: Array, *, still: bool) -> System:
        """Limit `load_bandwidth` where errors of the estimate would grow through a controller (`error_growth`); returns
        the linear system with that limit.

        Then the covariance of a robot that is `still` begins as that after a time of rest, since errors grow with the
        gains for a robot that may move with any rates, too.
        """
        if not self.unknown.forces:
            return system
        interval, cables = system.interval, system.cables
        if self.load_bandwidth < math.inf:
            self.load_bandwidth, self.system = math.inf, None
            system = self._linear(q, w, effort, interval, cables)
        variances = np.repeat((self.noise.position**2, self.noise.tension**2), (self.reduced.drives.size, len(cables)))
        gains = self._rested(system, variances).gains(system.rows, variances)
        linear = system.ahead, system.rows
        if error_growth(self.reduced, q, system.slopes, system.forces, linear, gains, interval) <= MOST_GROWTH:
            return system
        self.load_bandwidth, self.system = SLOW, None
        system = self._linear(q, w, effort, interval, cables)
        if still:
            self.covariance.value[:] = self._rested(system, variances).value
        return system

    def _rested(self, system: System, variances: Array) -> Covariance:
        """Covariance after `RESTED` of rest, with variances (y,) of the readings."""
        rested = Covariance(len(self.covariance.value))
        rested.value[:] = self.covariance.value
        for _ in range(math.ceil(RESTED / system.interval)):
            rested.correct(system.rows, variances, np.zeros(variances.size))
            rested.predict(system.ahead, system.process)
        return rested

    def _predict_covariance(self, system: System, intervals: int) -> None:
        """Predict the covariance over a number of intervals, over lost readings up to `MOST_GROWN`.

        The linear system holds for constant efforts, under which a robot may fall. Its actuators do not let it fall
        between lost readings, and without a limit the covariance would lose all precision.
        """
        variances = np.diagonal(self.covariance.value)
        most = MOST_GROWN * float(np.max(variances))
        for _ in range(intervals):
            self.covariance.predict(system.ahead, system.process)
            if np.max(variances) > most:
                return

    def _rechoose(self, q: Array, v: Array) -> None:
        """Change coordinates near a singularity of the present ones, and transform estimate and covariance."""
        if not self._is_poor:
            return
        change = self.reduced.rechoose(q, v)
        if change is None:
            return
        self._has_moved = not np.array_equal(self.reduced.index, self._at_first[0])
        covariance = self.covariance.value
        whole = np.eye(len(covariance))
        whole[: len(change), : len(change)] = change
        covariance[:] = whole @ covariance @ whole.T
        if self.system is not None:
            self.system = replace(self.system, shape=np.full_like(self.system.shape, np.inf))  # to be recomputed

    def _found(self, estimate: MechanismEstimate) -> UnknownLoad:
        count, unknown = 2 * self.reduced.index.size, self.unknown
        return UnknownLoad(
            unknown.names, self._values, self.covariance.value[count:, count:].copy(), unknown.forces,
            unknown.body,
            unknown.wrench(self._values, estimate.pose),
        )  # fmt: skip

    def variances(self, measured: Array, tensions: int) -> Array:
        """(y,) variances of the readings: those of `Noise`, plus d^2 / 12 for encoders with the resolution d.

        The resolution is the smallest difference of readings, or of successive differences. For a sensor with a fine
        resolution, it becomes very small after a few readings.
        """
        before = self._read or [measured]
        variances = np.empty(measured.size + tensions)
        noise = self.noise
        self._fill_variances(
            measured,
            before[-1],
            before[0],
            self.resolution,
            float(noise.position**2),
            float(noise.tension**2),
            variances,
        )
        self._read = [before[-1], measured] if self._read else before
        return variances

    def _tensions(self, q: Array, v: Array) -> Array:
        """(c,) tensions [N], including the damping forces of the cables."""
        evaluate(self.reduced.flat, q, v, self._work)
        return np.array(self._work.tension)

    def _has_new_rhythm(self, interval: float, usual: float) -> bool:
        """Whether readings repeatedly come at an interval [s] that differs from the usual one."""
        if abs(interval - usual) <= ALIKE * usual:
            self._others = 0
            return False
        same = abs(interval - self._other_interval) <= ALIKE * interval
        self._other_interval, self._others = interval, self._others + 1 if same else 1
        return self._others >= RHYTHM

    def _linear(self, q: Array, w: Array, effort: Array, interval: float, cables: tuple[str, ...]) -> System:
        """Linear system for the configuration; it is recomputed after a motion or for other measured quantities."""
        model, count, unknown = self.reduced, self.reduced.index.size, self.unknown
        interval, basis = max(interval, LEAST_INTERVAL), self._moved_basis(q)
        if self.system is not None and self.system.cables == cables:
            usual, turned = self.system, 0.0
            if basis is not None:  # the effect of the actuators depends on the configuration
                usual.rows[: model.drives.size, :count] = basis[model.drives]
                turned = float(np.max(np.abs(basis[self._at_first[0]] - usual.first)))
            if not self._has_new_rhythm(interval, usual.interval):
                interval = usual.interval
                moved = max(map(abs, (w[:count] - usual.shape).tolist()))
                if (
                    moved < MAX_COORDINATE_CHANGE
                    and turned < MAX_BASIS_CHANGE
                    and self._stiffness_change(usual) < MAX_STIFFNESS_CHANGE
                ):
                    return usual
        size = 2 * count + unknown.count
        loaded = unknown.columns(model, q, effort, self._values, self.last.pose, self._given_loads)
        flow = np.zeros((size, size))
        with sliding(model.flat.resistances):
            matrix, pushed, _ = model.linearised(q, np.zeros(count), unknown.given(effort, self._values))
        flow[: 2 * count, : 2 * count] = model.steadied(q, matrix, pushed)
        flow[count : 2 * count, 2 * count :] = loaded
        flow[2 * count :, 2 * count :] = -np.diag(1.0 / unknown.memory)
        basis = model.basis(q)
        first = basis[self._at_first[0]]
        # Disturbances act on the coordinates at the start, independent of the present ones, so that the model noise
        # does not depend on the choice of coordinates.
        mass, slopes, forces = model.mass(q), matrix[count:, :count], loaded[:, : unknown.forces]
        push = np.linalg.solve(mass, first.T)
        loose = _loose_motions(basis[model.drives], mass @ slopes)
        push -= loose @ np.linalg.solve(loose.T @ mass @ loose, (first @ loose).T)
        driven = {int(k): noise for k, noise in zip(model.drives, self._drive_noise, strict=True)}
        deviation = np.array([driven.get(int(k), self.noise.effort) for k in self._at_first[0]])
        spread = np.zeros((size, size))
        spread[count : 2 * count, count : 2 * count] = interval * (push * deviation**2) @ push.T
        prior = unknown.prior
        if self.load_bandwidth < math.inf:
            held = efforts_per_force(mass, slopes, forces, basis[model.drives])
            prior = unknown.slowed(self.load_bandwidth, held / self._drive_noise[:, None], interval)
        spread[2 * count :, 2 * count :] = (2.0 / np.sqrt(np.outer(unknown.memory, unknown.memory))) * prior
        ahead, process = white_noise_system(flow, spread, interval)
        drives = model.drives.size
        rows = np.zeros((drives + len(cables), size))
        rows[:drives, :count] = basis[model.drives]
        if cables:
            order = [self._cables[name] for name in cables]
            rows[drives:, : 2 * count] = self._tension_rows(q)[order]
            rows[drives:, 2 * count :] = self._loaded_rows(q)[order]
        self.system = System(
            interval, cables, w[:count].copy(), first, self._values, ahead, process, rows, slopes, forces
        )
        return self.system

    def _moved_basis(self, q: Array) -> Array | None:
        """G (nv, n) at a configuration if the coordinates differ from those at the start; else None."""
        return self.reduced.basis(q) if self._has_moved else None

    def _stiffness_change(self, system: System) -> float:
        cables = self.unknown.cables.size
        if not cables:
            return 0.0
        return max(map(abs, (self._values - system.values)[-cables:].tolist()))

    def _loaded_rows(self, q: Array) -> Array:
        """(c, d) direct derivatives of the tensions with respect to d at a configuration.

        The stiffness has a direct effect; forces act through the configuration only."""
        unknown, still = self.unknown, np.zeros(self.reduced.mechanism.velocity_count)
        rows = np.zeros((len(self._cables), unknown.count))
        if unknown.cables.size:
            strained = self._tensions(q, still) / unknown.applied(self._values, None, self._given_loads)[1]
            rows[unknown.cables, unknown.count - unknown.cables.size + np.arange(unknown.cables.size)] = strained[
                unknown.cables
            ]
        return rows

    def _tension_rows(self, q: Array) -> Array:
        """(c, 2n) derivatives of the tensions with respect to w and w', by central differences."""
        model, count, h = self.reduced, self.reduced.index.size, 1e-6
        rows = np.zeros((len(self._cables), 2 * count))
        w = model.coordinates_at(q)
        for k in range(count):
            step = np.zeros(count)
            step[k] = h
            closed = [model.closed_configuration(q, w + sign * step) for sign in (1.0, -1.0)]
            sides = [self._tensions(each, np.zeros(model.mechanism.velocity_count)) for each in closed]
            rows[:, k] = (sides[0] - sides[1]) / (2.0 * h)
            moving = [self._tensions(q, model.velocity(q, sign * step)) for sign in (1.0, -1.0)]
            rows[:, count + k] = (moving[0] - moving[1]) / (2.0 * h)
        return rows


def _loose_motions(drives: Array, slopes: Array) -> Array:
    """(n, m) orthonormal motions that move no actuator and that nothing holds, such as the spin of a strut about the
    line of its cables. No reading tells of them, so that noise on them would make their covariance grow without limit,
    and that of what they mix with when the robot turns.

    Args:
        drives: (a, n) velocities of the actuators. slopes: (n, n) derivative of the forces on the motions.
    """
    largest = float(np.max(np.abs(slopes), initial=1e-300))
    _, values, right = np.linalg.svd(np.concatenate((drives, slopes / largest)))
    return np.asarray(right[values < LOOSE].T)
