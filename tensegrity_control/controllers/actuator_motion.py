"""Motion of actuators along a spline of their own positions (joint space), without the inverse kinematics of a
controller.

The data of the waypoints determine the interpolation, as in ros2_control's joint_trajectory_controller:

    positions alone                     minimum jerk through all of them, at rest at the end
    and velocities                      cubic Hermite spline, 000 (4.3.1)-(4.3.3)
    and velocities and accelerations    quintic spline

The motion starts at the present set points and at their present rates; a first waypoint at time 0 must agree with them.
It ends at rest. The limits of the actuators are kept; tensions of tendons are not checked.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from tensegrity_dynamics.errors import TensegrityError, unknown_name
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.motor_limits import MotorLimits
from tensegrity_dynamics.robots.robot import Robot

from ..controller import Command
from ..trajectories.quintic import QuinticSpline, remaining
from ..trajectories.splines import HermiteSpline, PiecewisePolynomial, checked_rows, checked_times
from ..trajectories.time_scaling import PathClock
from .goal_controller import MAX_DURATION, MAX_WAYPOINTS

REACH = 0.1
"""s; a first waypoint at time 0 may differ from the present position by the distance an actuator can move in this time.
The motion starts at the present position."""
COAST = 0.3
"""s within which actuators that the motion does not name come to rest if they move at its beginning."""
SLACK = 1e-9
"""Relative tolerance of rates, and tolerance [m or rad] of positions, at their limits: rounding."""


class ActuatorMotion:
    """One motion of some or all actuators; the others keep their positions, or come to rest within `COAST` s.

    Args:
        robot: robot with the actuators.
        begin: time [s] at which the motion begins.
        positions, rates: (a,) set points of all actuators at that time, and their rates.
        names: names of the k actuators that move.
        times: (w,) s from `begin`, increasing.
        values: (w, k) m or rad.
        velocities, accelerations: (w, k), or None.

    Attributes:
        names, rows: its actuators and their indices in the order of the robot.
        goal: (k,) positions at its end.
        clock: clock that brakes the motion.

    Raises:
        TensegrityError: names, times or values are invalid, a limit is violated, or the motion does not begin at the
            present position or does not end at rest.
    """

    def __init__(
        self, robot: Robot, begin: float, positions: ArrayLike, rates: ArrayLike | None, names: Sequence[str],
        times: ArrayLike, values: ArrayLike, velocities: ArrayLike | None = None,
        accelerations: ArrayLike | None = None,
    ) -> None:  # fmt: skip
        available = [each.name for each in robot.actuators]
        self.names = tuple(names)
        for name in self.names:
            if name not in available:
                raise TensegrityError(unknown_name("actuator", name, available))
            if self.names.count(name) > 1:
                raise TensegrityError(f"actuator {name} is named twice; name each actuator once.")
        if not self.names:
            raise TensegrityError(f"the trajectory names no actuator; name some of {', '.join(available)}.")
        self.rows = np.array([available.index(name) for name in self.names])
        self._all, self._actuators = tuple(available), [robot.actuators[row] for row in self.rows]
        self._held = np.array(positions, dtype=np.float64)
        moving = np.zeros(len(available)) if rates is None else np.asarray(rates, dtype=np.float64)
        spline = self._spline(self._held[self.rows], moving[self.rows], times, values, velocities, accelerations)
        self._check(spline)
        self._sample, self._trajectory = np.empty((3, len(self.names))), spline
        self.goal: Array = spline.value(spline.end)
        self.clock = PathClock(begin, spline.end)
        self._begin, self._coasting = begin, np.where(np.isin(np.arange(len(available)), self.rows), 0.0, moving)
        low, high = np.array([each.position for each in robot.actuators]).T
        room = np.maximum(np.where(self._coasting > 0.0, high - self._held, self._held - low), 0.0)
        speed = np.abs(self._coasting)
        self._coast = np.where(speed > 0.0, COAST, 0.0)
        near = 2.0 * room < COAST * speed  # a brake passes half of speed times time
        self._coast[near] = 2.0 * room[near] / speed[near]
        self._coast[self._coast < SLACK] = 0.0

    def _spline(
        self, start: Array, moving: Array, times: ArrayLike, values: ArrayLike, velocities: ArrayLike | None,
        accelerations: ArrayLike | None,
    ) -> PiecewisePolynomial:  # fmt: skip
        when = np.atleast_1d(np.asarray(times, dtype=np.float64))
        if not 0 < when.size <= MAX_WAYPOINTS:
            raise TensegrityError(f"{when.size} waypoints; send 1 to {MAX_WAYPOINTS} at once.")
        if not when[0] >= 0.0:
            raise TensegrityError(
                f"the first waypoint is at {when[0]:g} s; times count from the start of the motion, so give 0 s or "
                "later."
            )
        if when[-1] > MAX_DURATION:
            raise TensegrityError(f"the last waypoint is at {when[-1]:g} s; give up to {MAX_DURATION:g} s.")
        shape = (when.size, len(self.names))
        if accelerations is not None and velocities is None:
            raise TensegrityError("the waypoints have accelerations without velocities; give both, or neither.")
        begun = when[0] > 0.0
        knots = checked_times(np.concatenate(([0.0], when)) if begun else when)
        tables: list[Array | None] = []
        for rows, what, first in (
            (values, "positions", start), (velocities, "velocities", moving),
            (accelerations, "accelerations", 0.0 * moving),
        ):  # fmt: skip
            if rows is None:
                tables.append(None)
                continue
            given = checked_rows(rows, when, what, shape)
            tables.append(np.vstack((first, given)) if begun else given)
        points, speeds, bends = tables
        assert points is not None
        if not begun:
            self._begins_at(points[0], start)
            points[0] = start
            if speeds is not None and np.any(np.abs(speeds[0] - moving) > SLACK + 1e-3 * np.abs(moving)):
                raise TensegrityError(
                    "the velocities of the waypoint at 0 s are not the present ones; start with these, or at a later "
                    "time."
                )
        if speeds is not None:
            left = np.abs(speeds[-1]) > SLACK * np.array([each.rate for each in self._actuators])
            if np.any(left):
                name = self.names[int(np.argmax(left))]
                raise TensegrityError(f"{name} still moves at the last waypoint; end with zero velocities.")
            speeds[-1] = 0.0
        if speeds is None:
            ends = [moving, *[None] * (len(points) - 2), np.zeros(len(self.names))]
            return QuinticSpline(knots, points, ends, None)
        return HermiteSpline(knots, points, speeds) if bends is None else QuinticSpline(knots, points, speeds, bends)

    def _begins_at(self, first: Array, start: Array) -> None:
        for actuator, desired, found in zip(self._actuators, first.tolist(), start.tolist(), strict=True):
            if abs(desired - found) > REACH * actuator.rate:
                raise TensegrityError(
                    f"the waypoint at 0 s has {actuator.name} at {desired:.6g} {actuator.units[0]}, but it is at "
                    f"{found:.6g}; start at its present position, or give the first waypoint a later time."
                )

    def _check(self, spline: PiecewisePolynomial) -> None:
        low, high = _range(spline)
        fastest = spline.largest(1)
        for k, actuator in enumerate(self._actuators):
            least, most = actuator.position
            if low[k] < least - SLACK or high[k] > most + SLACK:
                raise TensegrityError(
                    f"{actuator.name} would go from {low[k]:.6g} to {high[k]:.6g} {actuator.units[0]}; its position "
                    f"limits are {least:g} to {most:g}."
                )
        over = fastest / np.array([each.rate for each in self._actuators])
        worst = int(np.argmax(over))
        if over[worst] > 1.0 + SLACK:
            raise TensegrityError(
                f"{self.names[worst]} would move at {fastest[worst]:.4g} {self._actuators[worst].units[1]}, above its "
                f"rate limit of {self._actuators[worst].rate:g}; stretch all times by a factor of {over[worst]:.3g} or "
                "more."
            )

        motor = MotorLimits(self._actuators).use(fastest)
        if motor.factor > 1.0 + SLACK:
            raise TensegrityError(
                f"{self.names[motor.row]} would move at {fastest[motor.row]:.4g} "
                f"{self._actuators[motor.row].units[1]}, too fast for {motor.words}; stretch all times by a factor of "
                f"{motor.factor:.3g} or more."
            )

    @property
    def duration(self) -> float:
        """s, without braking."""
        return self.clock.duration

    @property
    def end(self) -> float:
        """Time [s] at which it rests."""
        return max(self.clock.end, self._begin + float(self._coast.max()))

    def progress(self, now: float) -> float:
        """Completed fraction of the motion, 0 to 1."""
        return self.clock.at(now).time / self.duration if self.duration > 0.0 else 1.0

    def set_points(self, now: float) -> tuple[Array, Array]:
        """(a,) positions of all actuators and (a,) their rates at a time [s]."""
        progress = self.clock.at(now)
        self._trajectory.sample(progress.time, self._sample)
        positions, rates = self._held.copy(), np.zeros_like(self._held)
        if self._coast.any():
            x = np.divide(now - self._begin, self._coast, where=self._coast > 0.0, out=np.ones_like(positions))
            x = np.clip(x, 0.0, 1.0)
            rates = self._coasting * np.array([remaining(each) for each in x.tolist()])
            positions += self._coasting * self._coast * (x - x**4 * (2.5 - 3.0 * x + x * x))  # its integral
        positions[self.rows], rates[self.rows] = self._sample[0], progress.pace * self._sample[1]
        return positions, rates

    def command(self, now: float) -> Command:
        """The set points at a time [s] in the format of controllers."""
        positions, rates = self.set_points(now)
        return Command("position", self._all, positions, velocity=rates)

    def brake(self, now: float, longest: float) -> None:
        """Come to rest on the path within `longest` s."""
        self.clock.brake(now, longest)


def _range(spline: PiecewisePolynomial) -> tuple[Array, Array]:
    """(k,) smallest and largest values of a spline; exact."""
    ends = spline.value(spline.knots)
    low, high = ends.min(axis=0), ends.max(axis=0)
    for component, roots in enumerate(spline.polynomial.derivative().roots(extrapolate=False)):
        inside = roots[np.isfinite(roots)]  # a constant piece has NaN
        if inside.size:
            values = spline.value(inside)[:, component]
            low[component], high[component] = min(low[component], values.min()), max(high[component], values.max())
    return low, high
