"""Task of the output: positions and rotations of a reference, and the accelerations of the output that lead to it.

Rotations are elements of SO(3), never differences of angles. With R the frame of the output, R_d that of the reference,
w and a their angular velocities and accelerations about world axes, and W the bandwidth,

    e = log(R_d R'),   a = a_d + 2 W (w_d - w) + W^2 e

since d/dt |e|^2 / 2 = e' (w_d - w) for every R_d. If some of rx, ry, rz are free, e stays large along these, and its
other components do not change as w_d - w does. Then the controlled rows P use their exact kinematics,

    d/dt P e = P (J_l w_d - J_r w),   (P e)'' = - 2 W (P e)' - W^2 P e

with J_l and J_r the inverse left and right Jacobians of SO(3) at e. P J_r are the rows that select the rotation of the
output (`TightWorkspace.selection`). A reference is a rotation vector relative to its start, R_d = exp(r(t)) R_0, and
restarts with every new goal: it is regular up to a whole turn and starts with r' = w, r'' = a.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.numerics.compilation import QuickCall, allocation_free
from tensegrity_dynamics.numerics.rotations import matrix_from_vector, quaternion_from_matrix, rotation_vector
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.output_frame import OutputFrame

from ...inverse_kinematics.pose_goal import rotation_error_rate
from ...trajectories.online import OnlineMotion, astray
from ...trajectories.splines import PiecewisePolynomial
from ...trajectories.time_scaling import Progress
from ...trajectories.turning_path import angular_motion

Limits = tuple[float, float]
"""Limits of rate and acceleration."""

MOST_TURN = 1.9 * np.pi
"""rad, largest rotation of one motion from its start; a rotation vector is singular at a whole turn."""
UNBOUNDED = 1e12
"""Limit for a motion whose duration is given."""
ANGLE_STEP = 1e-6
"""rad, step of the finite differences of the Jacobians along e."""


@allocation_free
def measure_errors(weights, error, rate):
    """Size of errors (k,): weighted norm, weighted norm across the rate, and sum of absolute values without weights.

    If the errors point against the rate (k,), the second value is the norm of their part perpendicular to it; else it
    equals the first value.
    """
    size, square, ahead, total = 0.0, 0.0, 0.0, 0.0
    for k in range(error.shape[0]):
        behind, along = weights[k] * error[k], weights[k] * rate[k]
        size += behind * behind
        square += along * along
        ahead += behind * along
        total += abs(error[k])
    beside = size
    if square > 0.0 and ahead < 0.0:
        beside = 0.0
        for k in range(error.shape[0]):
            beside += (weights[k] * (error[k] - ahead / square * rate[k])) ** 2
    return np.sqrt(size), np.sqrt(beside), total


@allocation_free
def fill_rows(rows, columns, values, position, velocity, back, selection, turn, w, error, rate, desired):
    """Fill errors, rates and accelerations (k,) of rows whose reference values are in columns (k,); see
    `OutputTask.follow`."""
    for k in range(rows.shape[0]):
        axis, column = rows[k], columns[k]
        rate[k] = 0.0
        for r in range(6):
            rate[k] += selection[k, r] * velocity[r]
        if axis < 3:
            error[k] = values[0, column] - (position[axis] - back * velocity[axis])
        else:
            error[k] = turn[axis - 3]
        desired[k] = values[2, column] + 2.0 * w * (values[1, column] - rate[k]) + w * w * error[k]


@allocation_free
def pace_rows(rows, pace, change):
    """Convert derivatives (3, n) by the time of a plan into derivatives by time, for a pace and its rate of change."""
    for i in range(rows.shape[1]):
        rows[2, i] = rows[2, i] * pace**2 + change * rows[1, i]
        rows[1, i] *= pace


_pace_rows = QuickCall(pace_rows)


@dataclass(frozen=True, eq=False)
class OutputPath:
    """Motion of the output over time; `GoalController` runs its clock.

    Attributes:
        motion: controlled positions [m], and a rotation vector [rad] if rotations are controlled.
        rotation: (3, 3) R_0, relative to which the rotation vector counts.
        translations: number of controlled positions.
        shapes: equilibria along the path for the free motions: path parameters (s,) from 0 to 1, q (s, nq) and tensions
            (s, c). None if they were not computed.
    """

    motion: PiecewisePolynomial
    rotation: Array
    translations: int
    shapes: tuple[Array, Array, Array] | None = None

    def shape(self, values: Array) -> tuple[Array, Array]:
        """q (nq,) and tensions (c,), interpolated between the equilibria at value (m,) of the motion."""
        assert self.shapes is not None
        first = self.motion.value(self.motion.start)
        displacement = self.motion.value(self.motion.end) - first
        part = float((values - first) @ displacement) / max(float(displacement @ displacement), 1e-300)
        parts, *rows = self.shapes
        q, tension = (np.array([np.interp(part, parts, column) for column in each.T]) for each in rows)
        return q, tension

    @property
    def duration(self) -> float:
        """s, duration of the motion."""
        return self.motion.end - self.motion.start

    @cached_property
    def demand(self) -> float:
        """Fraction of its bandwidth that the output's loop needs to follow the motion as closely as the quickest one:
        the error that an acceleration a causes is a / w^2."""
        return self.motion.quickest / self.duration if isinstance(self.motion, OnlineMotion) else 1.0

    def values(self, progress: Progress) -> Array:
        """(3, m) value, rate and acceleration at the progress of the clock; for rotations rad, rad/s and rad/s^2
        (angular velocity and acceleration)."""
        rows = self.motion.sample(self.motion.start + min(max(progress.time, 0.0), self.duration))
        if progress.pace != 1.0 or progress.change != 0.0:
            _pace_rows(rows, progress.pace, progress.change)
        if rows.shape[1] > self.translations:
            turn = rows[:, self.translations :]
            turn[1], turn[2] = angular_motion(*turn)
        return rows

    def turned(self, values: Array) -> Array:
        """(3, 3) R_d at the first row of `values`."""
        if values.shape[-1] == self.translations:
            return self.rotation
        return np.asarray(matrix_from_vector(np.atleast_2d(values)[0, self.translations :]) @ self.rotation)

    def begun_anew(self, values: Array) -> tuple[Array, Array]:
        """(3, m) the same values relative to their present rotation, and this rotation (3, 3)."""
        rotation, start = self.turned(values), values.copy()
        start[0, self.translations :] = 0.0
        return start, rotation


class OutputTask:
    """Task of the output; see the module.

    Args:
        output: output frame of the robot with any of x, y, z, rx, ry, rz controlled.

    Attributes:
        rows: (k,) controlled axes of the output.
        translations, turns: indices of the controlled ones among x, y, z and among rx, ry, rz.
        translation_rows, turn_rows: positions of these among the rows.
        partial: whether only some of the rotations are controlled.
    """

    def __init__(self, output: OutputFrame) -> None:
        self.rows = output.rows
        self.translation_rows, self.turn_rows = np.flatnonzero(self.rows < 3), np.flatnonzero(self.rows >= 3)
        self.translations, self.turns = self.rows[self.translation_rows], self.rows[self.turn_rows] - 3
        self.partial = 0 < self.turns.size < 3
        self._columns = np.zeros(self.rows.size, dtype=np.int64)
        self._columns[self.translation_rows] = np.arange(self.translations.size)
        self._columns[self.turn_rows] = self.translations.size + self.turns
        self._fill_rows = QuickCall(fill_rows)

    def coordinates(self, position: Array, rotation: Array, origin: Array, near: Array | None = None) -> Array:
        """(m,) coordinates of a pose: positions [m] and the rotation vector from `origin` (3, 3), the nearest one to
        that of `near` (m,).

        Raises:
            TensegrityError: the rotation from the origin exceeds `MOST_TURN`.
        """
        if not self.turns.size:
            return np.asarray(position[self.translations])
        turn = rotation_vector(rotation @ origin.T)
        if near is not None:
            angle = float(np.linalg.norm(turn))
            other = turn * (1.0 - 2.0 * np.pi / angle) if angle > 1e-9 else turn
            before = near[self.translations.size :]
            turn = min((turn, other), key=lambda each: float(np.linalg.norm(each - before)))
            if float(np.linalg.norm(turn)) > MOST_TURN:
                raise TensegrityError(
                    f"the path turns the output by {np.degrees(np.linalg.norm(turn)):.0f} deg from where it begins, "
                    f"more than {np.degrees(MOST_TURN):.0f}; send it in two parts."
                )
        return np.concatenate((position[self.translations], turn))

    def quaternion(self, rotation: Array) -> Array:
        """(4,) w, x, y, z of a rotation matrix (3, 3)."""
        return quaternion_from_matrix(rotation)

    def motion(
        self,
        start: Array,
        goal: Array,
        limits: Limits,
        turn_limits: Limits,
        duration: float | None,
        least: float,
        brake: float = 0.0,
    ) -> OnlineMotion:
        """Motion from values (3, m) to rest at (m,); positions and rotations use separate limits and end at the same
        time. Rates away from the goal are removed within `brake` s where the motion takes much longer."""
        if not self.turns.size:
            return OnlineMotion(start, goal, *limits, duration=duration, least=least, brake=brake)
        count = self.translations.size
        parts = [(slice(count, None), turn_limits)] + ([(slice(0, count), limits)] if count else [])
        each = [
            OnlineMotion(start[:, k], goal[k], *most, duration=duration, least=least, brake=brake) for k, most in parts
        ]
        strays = np.zeros_like(start[1:])
        for (k, _), one in zip(parts, each, strict=True):
            if one.brake:
                strays[:, k] = astray(start[:, k], goal[k])
        end, brake = max(one.end for one in each), max(one.brake for one in each)
        both = OnlineMotion(start, goal, UNBOUNDED, UNBOUNDED, least=end, brake=brake, strays=strays)
        both.asked_too_short = any(one.asked_too_short for one in each)
        both.quickest = max(one.quickest for one in each)
        return both

    def by_row(self, values: Array) -> Array:
        """(k,) values of the rows, from values (m,)."""
        return values[self._columns] if self.turns.size else values

    def fill_selection(self, turn: Array, selection: Array) -> None:
        """Write the rows P J_r at an error e (3,) into `selection` (k, 6), if only some rotations are controlled."""
        if self.partial:
            selection[self.turn_rows, 3:] = rotation_error_rate(turn)[self.turns]

    def follow(
        self, values: Array, position: Array, velocity: Array, selection: Array, turn: Array, w: float,
        back: float = 0.0,
    ) -> tuple[Array, Array, Array]:  # fmt: skip
        """(k,) errors of the rows (P e for rotations), their rates, and desired accelerations; see the module.

        Args:
            values: (3, m) of the reference, with angular velocities and accelerations.
            position, velocity: (3 or more,) m and (6,) of the output.
            selection: (k, 6), rows that select the controlled axes.
            turn: e (3,) rad.
            w: W [1/s].
            back: s, age at which the errors count: the output was at `position` - `back` * `velocity` then.
        """
        error, rate, desired = np.empty(self.rows.size), np.empty(self.rows.size), np.empty(self.rows.size)
        self._fill_rows(
            self.rows, self._columns, values, position, velocity, back, selection, turn, w, error, rate, desired
        )
        if self.partial:
            count, omega = self.translations.size, velocity[3:]
            of_reference, bend = values[1, count:], values[2, count:]
            left, right = rotation_error_rate(-turn), rotation_error_rate(turn)
            moving = left @ of_reference - right @ omega
            size = ANGLE_STEP / max(1.0, float(np.linalg.norm(moving)))
            ahead, behind = turn + size * moving, turn - size * moving
            left_rate = (rotation_error_rate(-ahead) - rotation_error_rate(-behind)) / (2.0 * size)
            right_rate = (rotation_error_rate(ahead) - rotation_error_rate(behind)) / (2.0 * size)
            free = left @ bend + left_rate @ of_reference - right_rate @ omega
            desired[self.turn_rows] = (free + 2.0 * w * moving + w * w * turn)[self.turns]
        return error, rate, desired
