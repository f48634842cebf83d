"""A smooth path through the equilibria of the inverse kinematics, with the pose at every point.

Actuator positions are a monotone cubic (C1, without overshoot between two equilibria, so that limits kept at equilibria
are kept in between) of the path parameter. The parameter runs from 0 to 1 in proportion to the time that the slowest
actuator needs at its rate limit.

Poses are cubic Hermite pieces from the poses at the equilibria and their exact derivatives J dd/ds. Each rotation piece
interpolates the rotation vector r from its own start, with dr/ds = J_l(r)^-1 w. If a piece differs from the equilibrium
at its middle by more than the `path_tolerance` of the map, it is halved.

Between two equilibria the cubic deviates from the straight line. If a tendon would become slack or fall below its
minimum tension there, equilibria on that line are added.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.interpolate import PchipInterpolator, PPoly

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.numerics.rotations import (
    matrix_from_quaternion,
    matrix_from_vector,
    quaternion_from_matrix,
    rotation_vector,
)
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.motor_limits import MotorLimits, MotorUse
from tensegrity_dynamics.robots.output_frame import Pose, pose_error

from ..inverse_kinematics.equilibrium_map import EquilibriumMap
from ..inverse_kinematics.pose_goal import rotation_error_rate
from ..tension_floor import TOLERANCE as FLOOR_TOLERANCE
from ..trajectories.splines import PiecewisePolynomial

SPACING = 0.02
"""Smallest distance of equilibria in the path parameter; nearer ones are left out, except those to keep."""
SMALLEST_PIECE = 1e-3
"""Length in the path parameter below which pieces are not halved any more."""


class EquilibriumPath:
    """Actuator positions and poses along a path of equilibria.

    Args:
        equilibria: map that computed the path.
        path: at least one equilibrium; the path passes exactly through the first, the last and those to keep.
        keep: indices of equilibria through which the path passes, in order.

    Attributes:
        span: s, duration of the path with the slowest actuator always at its rate limit.
        parameters: (k,) path parameters of the solved equilibria, `equilibria_on_it`.
        parameters_of_path: parameter of each equilibrium of the argument `path`.

    Raises:
        TensegrityError: a point between two equilibria has no stable equilibrium, or a tendon is slack or below its
            minimum tension there in spite of refinement.
    """

    def __init__(self, equilibria: EquilibriumMap[Any], path: Sequence[Any], keep: Sequence[int] = ()) -> None:
        self.equilibria, self.robot = equilibria, equilibria.robot
        self.first, self.last = path[0], path[-1]
        self._rates = np.array([actuator.rate for actuator in self.robot.actuators])
        positions = np.array([equilibria.positions(each) for each in path])
        steps = np.max(np.abs(np.diff(positions, axis=0)) / self._rates, axis=1) if len(path) > 1 else np.zeros(0)
        distance = np.concatenate(([0.0], np.cumsum(steps)))
        self.span = float(distance[-1])
        moves = self.span > 0.0
        self.parameters_of_path = distance / self.span if moves else np.linspace(0.0, 1.0, len(path))
        self._ends = (positions[0], positions[-1])
        self.parameters, self.equilibria_on_it = np.array([0.0, 1.0]), (self.first, self.last)
        if moves:
            self._floors = equilibria.tension_floors
            kept = self._spaced(sorted({0, len(path) - 1, *keep}))
            self._tabulate(self.parameters_of_path[kept], positions[kept], [path[k] for k in kept])

    # -- values ---------------------------------------------------------------------------------------------------

    def positions(self, parameter: float) -> Array:
        """(a,) m or rad; at 0 and 1 exactly those of the first and the last equilibrium."""
        if self._is_end(parameter):
            return self._ends[0] if parameter < 1.0 else self._ends[1]
        return self._positions.sample(parameter)[0]

    def position_rates(self, parameter: float) -> Array:
        """(a,) m or rad per unit of the path parameter."""
        if self.span <= 0.0:
            return np.zeros(self._rates.size)
        return self._positions.sample(min(max(parameter, 0.0), 1.0))[1]

    def pose(self, parameter: float) -> Pose:
        """Pose of the output frame."""
        if self._is_end(parameter):
            return self._end_poses[0] if parameter < 1.0 else self._end_poses[1]
        value = self._poses.sample(parameter)[0]
        return value[:3], quaternion_from_matrix(matrix_from_vector(value[3:]) @ self._turn(parameter))

    def pose_rates(self, parameter: float) -> Array:
        """(6,) m and rad (about world axes) per unit of the path parameter."""
        if self.span <= 0.0:
            return np.zeros(6)
        value, slope, _ = self._poses.sample(min(max(parameter, 0.0), 1.0))
        # The left Jacobian is the inverse of the matrix from w to dr; it exists, since the pieces are short.
        slope[3:] = np.linalg.solve(rotation_error_rate(-value[3:]), slope[3:])
        return slope

    def position_slopes(self, parameters: Array) -> tuple[Array, Array]:
        """(k, a) first and second derivative of the positions [m or rad] by the path parameter, at parameters (k,)."""
        if self.span <= 0.0:
            none = np.zeros((len(parameters), self._rates.size))
            return none, none
        inside = np.clip(parameters, 0.0, 1.0)
        return self._positions.value(inside, 1), self._positions.value(inside, 2)

    def largest_rate(self, parameters: Array, rates: Array) -> tuple[float, int]:
        """Largest ratio of an actuator speed to its limit, for path parameters and their rates (k,) 1/s; and the
        actuator."""
        if self.span <= 0.0:
            return 0.0, 0
        slopes = self._positions.value(np.clip(parameters, 0.0, 1.0), 1)
        used = np.abs(slopes * np.asarray(rates)[:, None]) / self._rates
        worst = int(np.argmax(used.max(axis=0)))
        return float(used[:, worst].max()), worst

    def motor_use(self, parameters: Array, rates: Array) -> MotorUse:
        """Use of the motors for path parameters and their rates (k,) 1/s, including the efforts that hold the
        equilibria."""
        limits = MotorLimits(self.robot.actuators)
        if self.span <= 0.0 or not limits.any_motor:
            return limits.use(np.zeros((1, self._rates.size)))
        inside = np.clip(parameters, 0.0, 1.0)
        held = np.array([self.equilibria.efforts(each) for each in self.equilibria_on_it])
        efforts = np.array([np.interp(inside, self.parameters, column) for column in held.T]).T
        return limits.use(self._positions.value(inside, 1) * np.asarray(rates)[:, None], efforts)

    def slowest_period(self) -> float:
        """s, slowest period of small oscillations about the equilibria at both ends."""
        return max(self.equilibria.slowest_period(each) for each in (self.first, self.last))

    def equilibrium(self, parameter: float) -> Any:
        """Equilibrium for exactly `positions(parameter)`; solved if it is between those of the path."""
        if self._is_end(parameter):
            return self.first if parameter < 1.0 else self.last
        nearest = self.equilibria_on_it[int(np.argmin(np.abs(self.parameters - parameter)))]
        return self.equilibria.solve(self.positions(parameter), nearest)

    # -- making ---------------------------------------------------------------------------------------------------

    @property
    def _end_poses(self) -> tuple[Pose, Pose]:
        return self.first.pose, self.last.pose

    def _is_end(self, parameter: float) -> bool:
        return parameter <= 0.0 or parameter >= 1.0 or self.span <= 0.0

    def _turn(self, parameter: float) -> Array:
        return self._turns[min(max(bisect_right(self._knots, parameter) - 1, 0), len(self._turns) - 1)]

    def _spaced(self, anchors: list[int]) -> list[int]:
        """Indices of the equilibria on the path: the anchors, and others with sufficient distance from their
        neighbours."""
        parameters, kept = self.parameters_of_path, [0]
        for begin, end in pairwise(anchors):
            for k in range(begin + 1, end):
                if min(parameters[k] - parameters[kept[-1]], parameters[end] - parameters[k]) >= SPACING:
                    kept.append(k)
            if parameters[end] - parameters[kept[-1]] > 1e-9:
                kept.append(end)
            elif end == len(parameters) - 1:
                kept[-1] = end
        return kept

    def _tabulate(self, parameters: Array, positions: Array, path: list[Any]) -> None:
        self._positions = PiecewisePolynomial(PchipInterpolator(parameters, positions))
        knots = [(float(s), each, self._motion(float(s), each)) for s, each in zip(parameters, path, strict=True)]
        pieces: list[tuple[Any, Any, Array]] = []
        failed: list[int] = []
        for number, (before, after) in enumerate(pairwise(knots)):
            try:
                pieces += self._halved(before, after)
            except TensegrityError:
                if after[0] - before[0] < SMALLEST_PIECE:
                    raise
                failed.append(number)
        if failed:
            self._tabulate(*self._with_middles(parameters, positions, path, failed))
            return
        knots = [knots[0], *(after for _, after, _ in pieces)]
        self._knots = [s for s, _, _ in knots]
        self.parameters, self.equilibria_on_it = np.array(self._knots), tuple(each for _, each, _ in knots)
        self._turns = [matrix_from_quaternion(before[1].pose[1]) for before, _, _ in pieces]
        coefficients = np.stack([coefficients for _, _, coefficients in pieces], axis=1)
        self._poses = PiecewisePolynomial(PPoly(coefficients, self.parameters))

    def _with_middles(
        self, parameters: Array, positions: Array, path: list[Any], pieces: list[int]
    ) -> tuple[Array, Array, list[Any]]:
        """The same knots with one more in the middle of some pieces, on the straight line between the two equilibria.

        The cubic is too far from that line there: tendons would become slack, or fall below their floors.
        """
        ends = np.array(pieces) + 1
        middles = 0.5 * (positions[ends - 1] + positions[ends])
        path = list(path)
        for end, middle in zip(ends[::-1].tolist(), middles[::-1], strict=True):
            path.insert(end, self.equilibria.solve(middle, path[end - 1]))
        halfway = 0.5 * (parameters[ends - 1] + parameters[ends])
        return np.insert(parameters, ends, halfway), np.insert(positions, ends, middles, axis=0), path

    def _motion(self, parameter: float, equilibrium: Any) -> Array:
        """(6,) derivative of the pose by the path parameter."""
        return np.asarray(self.equilibria.pose_jacobian(equilibrium) @ self.position_rates(parameter))

    def _halved(self, before: tuple[Any, ...], after: tuple[Any, ...]) -> list[tuple[Any, Any, Array]]:
        """Pieces between two knots (parameter, equilibrium, motion) whose poses agree with equilibria within the
        tolerance."""
        piece, tolerance = _pose_piece(before, after), self.equilibria.path_tolerance
        if tolerance is None:
            return [(before, after, piece)]
        middle = 0.5 * (before[0] + after[0])
        equilibrium = self.equilibria.solve(self.positions(middle), before[1])
        self._check_floors(equilibrium, before[1], after[1])
        knot = (middle, equilibrium, self._motion(middle, equilibrium))
        value = np.array([(middle - before[0]) ** k for k in (3, 2, 1, 0)]) @ piece
        turn = matrix_from_vector(value[3:]) @ matrix_from_quaternion(before[1].pose[1])
        error = pose_error((value[:3], quaternion_from_matrix(turn)), equilibrium.pose)
        # the error of a cubic is proportional to the fourth power of its length
        if np.max(np.abs(error)) <= 2.0**4 * tolerance or after[0] - before[0] < SMALLEST_PIECE:
            return [(before, knot, _pose_piece(before, knot)), (knot, after, _pose_piece(knot, after))]
        return self._halved(before, knot) + self._halved(knot, after)

    def _check_floors(self, equilibrium: Any, before: Any, after: Any) -> None:
        """Raise TensegrityError if a tendon falls below its floor between two equilibria that keep it."""
        floors = self._floors
        if not any(floors.values()):
            return
        ends = np.minimum(self.equilibria.tensions(before), self.equilibria.tensions(after))
        low = (1.0 - FLOOR_TOLERANCE) * np.minimum(list(floors.values()), ends)
        tensions = self.equilibria.tensions(equilibrium)
        broken = [name for name, each, least in zip(floors, tensions, low, strict=True) if each < least]
        if broken:
            raise TensegrityError(
                f"on the path {', '.join(broken)} would fall below the minimum tension; choose a smaller motion."
            )


def _pose_piece(before: tuple[Any, ...], after: tuple[Any, ...]) -> Array:
    """(4, 6) coefficients of position and rotation vector between two knots, the cubic ones first."""
    (begin, first, first_motion), (end, last, last_motion) = before, after
    turn = rotation_vector(matrix_from_quaternion(last.pose[1]) @ matrix_from_quaternion(first.pose[1]).T)
    values = np.concatenate((first.pose[0], np.zeros(3))), np.concatenate((last.pose[0], turn))
    slope = np.concatenate((last_motion[:3], rotation_error_rate(-turn) @ last_motion[3:]))
    step = end - begin
    rise = (values[1] - values[0]) / step
    square = (3.0 * rise - 2.0 * first_motion - slope) / step
    cube = (first_motion + slope - 2.0 * rise) / step**2
    return np.stack((cube, square, first_motion, values[0]))
