"""A smooth curve of actuator positions through the shapes of a mechanism's plan, with the pose of every point on it.

Positions follow a monotone cubic (C1, no overshoot between two shapes). Its parameter runs from 0 to 1 in proportion to
the time that the slowest actuator needs at its full rate. Poses between the shapes follow cubics with the exact rates
at the shapes; orientations run in the rotation vector from the nearest shape before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator

from tensegrity_dynamics.numerics.rotations import (
    matrix_from_quaternion,
    matrix_from_vector,
    quaternion_from_matrix,
    rotation_vector,
)
from tensegrity_dynamics.robots.output_frame import Pose

from ..inverse_kinematics.mechanism_equilibria import PathEquilibrium, PathEquilibriumSolver
from ..inverse_kinematics.pose_goal import rotation_error_rate
from .equilibrium_path import hermite_pieces

Array = NDArray[np.float64]


class MechanismEquilibriumPath:
    """Actuator positions and poses along a path of shapes, with the face of `EquilibriumPath`.

    Args:
        shapes: solver of the robot's shapes.
        path: at least one shape; the curve passes exactly through all of them.

    Attributes:
        span: s, the time that the way takes when the slowest actuator always runs at its full rate.
        path_places: parameter of each shape of the path.
    """

    def __init__(self, shapes: PathEquilibriumSolver, path: Sequence[PathEquilibrium]) -> None:
        self.shapes, self.robot = shapes, shapes.robot
        self.first, self.last = path[0], path[-1]
        rates = np.array([actuator.rate for actuator in self.robot.actuators])
        positions = np.array([shape.positions for shape in path])
        steps = np.max(np.abs(np.diff(positions, axis=0)) / rates, axis=1) if len(path) > 1 else np.zeros(0)
        distance = np.concatenate(([0.0], np.cumsum(steps)))
        self.span = float(distance[-1])
        self.path_places = distance / self.span if self.span > 0.0 else np.linspace(0.0, 1.0, len(path))
        self._ends = (positions[0], positions[-1])
        if self.span > 0.0:
            kept = [0, *(1 + np.flatnonzero(np.diff(self.path_places) > 1e-9))]
            self._tabulate(self.path_places[kept], [path[k] for k in kept])

    def lengths(self, place: float) -> Array:
        """(a,) rad or m; at 0 and 1 bit for bit those of the first and the last shape."""
        if place <= 0.0 or place >= 1.0 or self.span <= 0.0:
            return self._ends[0] if place < 1.0 else self._ends[1]
        return np.asarray(self._curve(place))

    def length_slopes(self, place: float) -> Array:
        """(a,) rad or m per unit of the parameter."""
        if self.span <= 0.0:
            return np.zeros(len(self.robot.actuators))
        return np.asarray(self._slopes(min(max(place, 0.0), 1.0)))

    def pose(self, place: float) -> Pose:
        """Pose of the output frame."""
        if place <= 0.0 or place >= 1.0 or self.span <= 0.0:
            return self.first.pose if place < 1.0 else self.last.pose
        k, s = self._piece(place)
        c = self._pieces[k]
        value = c[0] + s * (c[1] + s * (c[2] + s * c[3]))
        return value[:3], quaternion_from_matrix(matrix_from_vector(value[3:]) @ self._turns[k])

    def pose_slopes(self, place: float) -> Array:
        """(6,) m and rad (about world axes) per unit of the parameter."""
        if self.span <= 0.0:
            return np.zeros(6)
        k, s = self._piece(min(max(place, 0.0), 1.0))
        c = self._pieces[k]
        value, slope = c[0] + s * (c[1] + s * (c[2] + s * c[3])), c[1] + s * (2.0 * c[2] + s * (3.0 * c[3]))
        slope[3:] = np.linalg.solve(rotation_error_rate(-value[3:]), slope[3:])
        return slope

    def largest_rate(self, places: Array, rates: Array) -> tuple[float, int]:
        """Largest actuator speed over its limit for places (k,) and their rates (k,) 1/s, and the actuator's index."""
        limits = np.array([actuator.rate for actuator in self.robot.actuators])
        used = np.array([np.abs(self.length_slopes(s)) * abs(v) for s, v in zip(places, rates, strict=True)]) / limits
        worst = int(np.argmax(used.max(axis=0)))
        return float(used[:, worst].max()), worst

    def longest_period(self) -> float:
        """s, of the small vibrations about the shapes at both ends."""
        return max(self.shapes.slopes(shape).slowest_period for shape in (self.first, self.last))

    def shape_at(self, place: float) -> PathEquilibrium:
        """The shape at a place, solved anew from the nearest known one."""
        if place <= 0.0 or place >= 1.0 or self.span <= 0.0:
            return self.first if place < 1.0 else self.last
        nearest = self._solved[int(np.argmin(np.abs(self._knots - place)))]
        return self.shapes.solve(self.lengths(place), nearest)

    def _piece(self, place: float) -> tuple[int, float]:
        k = min(max(bisect_right(self._places, place) - 1, 0), len(self._places) - 2)
        return k, place - self._places[k]

    def _tabulate(self, places: Array, path: list[PathEquilibrium]) -> None:
        self._knots, self._solved = places, path
        self._places = places.tolist()
        self._curve = PchipInterpolator(places, np.array([shape.positions for shape in path]))
        self._slopes = self._curve.derivative()
        motion = np.array([
            self.shapes.slopes(shape).pose @ self._slopes(place) for shape, place in zip(path, places, strict=True)
        ])  # fmt: skip
        place = np.array([shape.pose[0] for shape in path])
        self._turns = [matrix_from_quaternion(shape.pose[1]) for shape in path]
        turned = np.array([rotation_vector(b @ a.T) for a, b in zip(self._turns[:-1], self._turns[1:], strict=True)])
        end = np.array([rotation_error_rate(-r) @ w for r, w in zip(turned, motion[1:, 3:], strict=True)])
        self._pieces = hermite_pieces(
            np.hstack((place[:-1], np.zeros_like(turned))), np.hstack((place[1:], turned)), motion[:-1],
            np.hstack((motion[1:, :3], end)), np.diff(places)[:, None],
        )  # fmt: skip
