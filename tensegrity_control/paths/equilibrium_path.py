"""A smooth curve of rest lengths through the shapes of a plan, with the pose of every point on it.

Rest lengths follow a monotone cubic (C1, no overshoot between two shapes, so limits kept at the shapes are kept between
them). Its parameter runs from 0 to 1 in proportion to the time that the slowest actuator needs at its full rate. The
points between the shapes are solved as equilibria, too: each must be stable and keep every tendon tight. Poses follow
cubic Hermite pieces from the poses there and their exact rates J dd/ds; each rotation piece runs in the rotation
vector from its own start, r, with dr/ds = J_l(r)^-1 w.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator

from tensegrity_dynamics.errors import NoEquilibriumError, TensegrityError
from tensegrity_dynamics.numerics.rotations import (
    matrix_from_quaternion,
    matrix_from_vector,
    quaternion_from_matrix,
    rotation_vector,
)
from tensegrity_dynamics.robots.output_frame import Pose
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.structures.form_finding.equilibrium import StructureEquilibrium
from tensegrity_dynamics.structures.form_finding.equilibrium_solver import StructureEquilibriumSolver

from ..inverse_kinematics.pose_goal import rotation_error_rate
from ..inverse_kinematics.structure_jacobian import longest_period, sensitivity

Array = NDArray[np.float64]

SPACING = 0.02
BETWEEN = 3


class EquilibriumPath:
    """Rest lengths and poses along a path of shapes.

    Args:
        robot: whose actuators move along the path.
        path: at least one shape; the curve passes exactly through the first, the last and those to keep. Others
            closer to a neighbour than 2 % of the way are left out.
        solver: that the path was planned with.
        keep: indices of shapes to pass through, in order.

    Attributes:
        span: s, the time that the way takes when the slowest actuator always runs at its full rate.
        places: (k,) parameter of the solved shapes.
        path_places: parameter of each shape of the path as it was given.

    Raises:
        TensegrityError: a point between two shapes is no stable equilibrium, or a tendon goes slack there.
    """

    def __init__(
        self,
        robot: Robot,
        path: Sequence[StructureEquilibrium],
        solver: StructureEquilibriumSolver,
        keep: Sequence[int] = (),
    ) -> None:
        self.robot, self.solver = robot, solver
        self.members = robot.actuated_members()
        self.first, self.last = path[0], path[-1]
        rates = np.array([actuator.rate for actuator in robot.actuators])
        lengths = np.array([shape.rest_lengths[self.members] for shape in path])
        steps = np.max(np.abs(np.diff(lengths, axis=0)) / rates, axis=1) if len(path) > 1 else np.zeros(0)
        distance = np.concatenate(([0.0], np.cumsum(steps)))
        self.span = float(distance[-1])
        self.path_places = distance / self.span if self.span > 0.0 else np.linspace(0.0, 1.0, len(path))
        self._start, self._end = lengths[0], lengths[-1]
        self._start_pose, self._end_pose = self.first.pose, self.last.pose
        if self.span <= 0.0:
            self.places = np.array([0.0, 1.0])
            self.shapes: tuple[StructureEquilibrium, ...] = (self.first, self.last)
            return
        kept = self._chosen(sorted({0, len(path) - 1, *keep}))
        self._tabulate(self.path_places[kept], lengths[kept], [path[k] for k in kept])

    # -- values ---------------------------------------------------------------------------------------------------

    def lengths(self, place: float) -> Array:
        """(a,) m; at 0 and 1 bit for bit those of the first and the last shape."""
        if place <= 0.0 or self.span <= 0.0:
            return self._start if place < 1.0 else self._end
        if place >= 1.0:
            return self._end
        k, s = self._piece(place)
        c = self._length_pieces[k]
        return c[0] + s * (c[1] + s * (c[2] + s * c[3]))

    def length_slopes(self, place: float) -> Array:
        """(a,) m per unit of the parameter."""
        if self.span <= 0.0:
            return np.zeros(self.members.size)
        k, s = self._piece(min(max(place, 0.0), 1.0))
        c = self._length_pieces[k]
        return c[1] + s * (2.0 * c[2] + s * (3.0 * c[3]))

    def pose(self, place: float) -> Pose:
        """Pose of the output frame."""
        if place <= 0.0 or self.span <= 0.0:
            return self._start_pose if place < 1.0 else self._end_pose
        if place >= 1.0:
            return self._end_pose
        k, s = self._piece(place)
        c = self._pose_pieces[k]
        value = c[0] + s * (c[1] + s * (c[2] + s * c[3]))
        return value[:3], quaternion_from_matrix(matrix_from_vector(value[3:]) @ self._turns[k])

    def pose_slopes(self, place: float) -> Array:
        """(6,) m and rad (about world axes) per unit of the parameter."""
        if self.span <= 0.0:
            return np.zeros(6)
        k, s = self._piece(min(max(place, 0.0), 1.0))
        c = self._pose_pieces[k]
        value = c[0] + s * (c[1] + s * (c[2] + s * c[3]))
        slope = c[1] + s * (2.0 * c[2] + s * (3.0 * c[3]))
        # The left Jacobian is the inverse of the matrix that takes w to dr; the pieces are short, so it always exists.
        slope[3:] = np.linalg.solve(rotation_error_rate(-value[3:]), slope[3:])
        return slope

    def largest_rate(self, places: Array, rates: Array) -> tuple[float, int]:
        """Largest actuator speed over its limit for places (k,) and their rates (k,) 1/s, and the actuator's index."""
        limits = np.array([actuator.rate for actuator in self.robot.actuators])
        used = np.array([np.abs(self.length_slopes(s)) * abs(v) for s, v in zip(places, rates, strict=True)]) / limits
        worst = int(np.argmax(used.max(axis=0)))
        return float(used[:, worst].max()), worst

    def longest_period(self) -> float:
        """s, of the small oscillations about the shapes at both ends."""
        rigid = self.solver.rigid_bars
        return max(longest_period(shape, rigid_bars=rigid) for shape in (self.first, self.last))

    def shape_at(self, place: float) -> StructureEquilibrium:
        """The equilibrium at a place, solved anew from the nearest known shape; its lengths equal `lengths(place)`."""
        if place <= 0.0 or place >= 1.0 or self.span <= 0.0:
            return self.first if place < 1.0 else self.last
        nearest = self.shapes[int(np.argmin(np.abs(self.places - place)))]
        return self._solve(self.lengths(place), nearest)

    # -- making ---------------------------------------------------------------------------------------------------

    def _chosen(self, anchors: list[int]) -> list[int]:
        """Indices of the shapes that the curve passes through: the anchors, and others with room around them."""
        place, kept = self.path_places, [0]
        for begin, end in pairwise(anchors):
            for k in range(begin + 1, end):
                if min(place[k] - place[kept[-1]], place[end] - place[k]) >= SPACING:
                    kept.append(k)
            if place[end] - place[kept[-1]] > 1e-9:
                kept.append(end)
            elif end == len(place) - 1:
                kept[-1] = end
        return kept

    def _piece(self, place: float) -> tuple[int, float]:
        k = min(max(bisect_right(self._knots, place) - 1, 0), len(self._knots) - 2)
        return k, place - self._knots[k]

    def _tabulate(self, places: Array, lengths: Array, shapes: list[StructureEquilibrium]) -> None:
        curve = PchipInterpolator(places, lengths)
        slopes = curve.derivative()
        knots, solved = [0.0], [shapes[0]]
        for k in range(len(places) - 1):
            for part in range(1, BETWEEN + 1):
                place = places[k] + part / (BETWEEN + 1) * (places[k + 1] - places[k])
                knots.append(float(place))
                solved.append(self._solve(curve(place), solved[-1]))
            knots.append(float(places[k + 1]))
            solved.append(shapes[k + 1])
        self.places, self.shapes = np.array(knots), tuple(solved)
        self._knots = knots
        values = np.array([shape.rest_lengths[self.members] for shape in solved])
        rates = np.array([slopes(place) for place in knots])
        steps = np.diff(self.places)[:, None]
        self._length_pieces = hermite_pieces(values[:-1], values[1:], rates[:-1], rates[1:], steps)

        poses = [shape.pose for shape in solved]
        moves = []
        for shape, rate in zip(solved, rates, strict=True):
            pose = sensitivity(shape, self.members, rigid_bars=self.solver.rigid_bars).pose
            assert pose is not None
            moves.append(pose @ rate)
        motion = np.array(moves)
        position = np.array([pose[0] for pose in poses])
        self._turns = [matrix_from_quaternion(pose[1]) for pose in poses]
        turned = np.array([rotation_vector(b @ a.T) for a, b in zip(self._turns[:-1], self._turns[1:], strict=True)])
        end = np.array([rotation_error_rate(-r) @ w for r, w in zip(turned, motion[1:, 3:], strict=True)])
        self._pose_pieces = hermite_pieces(
            np.hstack((position[:-1], np.zeros_like(turned))),
            np.hstack((position[1:], turned)),
            motion[:-1],
            np.hstack((motion[1:, :3], end)),
            steps,
        )

    def _solve(self, lengths: Array, start: StructureEquilibrium) -> StructureEquilibrium:
        full = np.array(start.rest_lengths)
        full[self.members] = lengths
        try:
            shape = self.solver.solve(full, start=start)
        except NoEquilibriumError as error:
            raise TensegrityError(f"the way between two shapes of the plan has no equilibrium: {error}") from error
        structure = start.structure
        movable = ~np.all(structure.fixed[structure.members], axis=1)
        tight = structure.unilateral & movable & (start.tensions > 0.0)
        slack = [structure.member_names[k] for k in np.flatnonzero(tight & (shape.tensions <= 0.0))]
        if not (shape.converged and shape.stable) or slack:
            what = f"{', '.join(slack)} goes slack" if slack else f"softest stiffness {shape.softest:.3g} N/m"
            raise TensegrityError(f"the way between two shapes of the plan is not safe: {what}; take a smaller motion.")
        return shape


def hermite_pieces(values: Array, next_values: Array, slopes: Array, next_slopes: Array, steps: Array) -> Array:
    """(k, 4, n) coefficients of the cubic pieces, constant first."""
    rise = (next_values - values) / steps
    square = (3.0 * rise - 2.0 * slopes - next_slopes) / steps
    cube = (slopes + next_slopes - 2.0 * rise) / steps**2
    return np.stack((values, slopes, square, cube), axis=1)
