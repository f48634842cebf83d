"""Output frame of a structure: a frame fitted to the nodes that carry the end effector.

The nodes have the points a_i in the frame (centred) and the positions p_i. The position is the fitted origin, and the
rotation R is the least squares fit, so that sum_i (R a_i) x (p_i - p_mean) = 0. The derivative of this condition gives
the exact Jacobian. The quaternion of R is the eigenvector of the largest eigenvalue of a symmetric matrix of the
products of both sets of points (B. K. P. Horn: Closed-form solution of absolute orientation using unit quaternions,
1987), computed by Jacobi rotations.

Nodes on one line, such as the two ends of a strut, leave a rotation about this line open. Then R is the one of smallest
angle, which turns the direction u0 of the points straight to the direction u of the nodes: (u0 + u) . w = 0 for its
angular velocity w.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError
from ..numerics.compilation import QuickCall, allocation_free
from ..numerics.linear_algebra import diagonalise, lu_factor, lu_solve
from ..numerics.rotations import cross_matrix, fill_matrix, quaternion_from_matrix
from ..robots.output_frame import AXES, OutputFrame, Pose


@allocation_free
def fit_frame(nodes, chosen, arms, on_line, matrix, vectors, centre, rotation):
    """Fill centre (3,) with the mean of the chosen nodes, and rotation (3, 3) with the least squares fit of the arms
    (k, 3), which are centred, to the nodes; on_line tells whether they are on one line. matrix and vectors (4, 4) are
    scratch."""
    count = chosen.shape[0]
    for k in range(3):
        centre[k] = 0.0
        for i in range(count):
            centre[k] += nodes[chosen[i], k] / count
        for m in range(3):
            rotation[k, m] = 0.0
    for i in range(count):  # S = sum of arm x node, in the scratch of the result
        for k in range(3):
            for m in range(3):
                rotation[k, m] += arms[i, k] * (nodes[chosen[i], m] - centre[m])
    s = rotation
    trace = s[0, 0] + s[1, 1] + s[2, 2]
    matrix[0, 0] = trace
    matrix[0, 1], matrix[0, 2], matrix[0, 3] = s[1, 2] - s[2, 1], s[2, 0] - s[0, 2], s[0, 1] - s[1, 0]
    for k in range(3):
        matrix[k + 1, 0] = matrix[0, k + 1]
        for m in range(3):
            matrix[k + 1, m + 1] = s[k, m] + s[m, k]
        matrix[k + 1, k + 1] -= trace
    largest = diagonalise(matrix, vectors)
    quaternion = vectors[:, largest]
    if on_line:  # all quaternions spanned by two eigenvectors fit; the one nearest to 1, 0, 0, 0
        other = -1
        for k in range(4):
            if k != largest and (other < 0 or matrix[k, k] > matrix[other, other]):
                other = k
        first, second = vectors[0, largest], vectors[0, other]
        length = np.hypot(first, second)
        if length > 0.0:
            for k in range(4):
                quaternion[k] = (first * vectors[k, largest] + second * vectors[k, other]) / length
    fill_matrix(quaternion, rotation)


@allocation_free
def fill_twist(nodes, velocities, chosen, arms, line, middle, centre, rotation, matrix, pivots, turned, twist):
    """Fill twist (6,) of a fitted frame, whose points are the arms (k, 3) about middle (3,), along the unit vector line
    (3,) or not on one line if this is zero; matrix (3, 3), pivots (3,) and turned (2, 3) are scratch."""
    count, moment = chosen.shape[0], 0.0
    for k in range(6):
        twist[k] = 0.0
    for k in range(3):
        for m in range(3):
            matrix[k, m] = 0.0
    arm, offset = turned[0], turned[1]
    for i in range(count):
        node = chosen[i]
        product = 0.0
        for k in range(3):
            arm[k] = 0.0
            for m in range(3):
                arm[k] += rotation[k, m] * arms[i, m]
            offset[k] = nodes[node, k] - centre[k]
            product += arm[k] * offset[k]
            twist[k] += velocities[node, k] / count
        moment += product
        for k in range(3):
            matrix[k, k] += product
            for m in range(3):
                matrix[k, m] -= arm[k] * offset[m]
            twist[3 + k] += (
                arm[(k + 1) % 3] * velocities[node, (k + 2) % 3] - arm[(k + 2) % 3] * velocities[node, (k + 1) % 3]
            )
    for k in range(3):  # (u0 + u) . w = 0 along the line u
        arm[k] = 0.0
        for m in range(3):
            arm[k] += rotation[k, m] * line[m]
    for k in range(3):
        for m in range(3):
            matrix[k, m] += moment * arm[k] * (line[m] + arm[m])
    spin = twist[3:]
    lu_factor(matrix, 3, pivots)
    lu_solve(matrix, 3, pivots, spin)
    for k in range(3):
        arm[k] = 0.0
        for m in range(3):
            arm[k] += rotation[k, m] * middle[m]
    for k in range(3):
        twist[k] += arm[(k + 1) % 3] * spin[(k + 2) % 3] - arm[(k + 2) % 3] * spin[(k + 1) % 3]


_fit_frame, _fill_twist = QuickCall(fit_frame), QuickCall(fill_twist)


@dataclass(frozen=True, eq=False)
class NodeFrame(OutputFrame):
    """Output frame on one node (position only), or on several nodes.

    Nodes on one line, such as the ends of a strut, do not turn the frame about this line (see the module).

    Args:
        name: name of the frame in ROS.
        nodes: (k,) indices of the nodes that carry it.
        points: (k, 3) positions of these nodes in the frame [m].
        controlled: see `OutputFrame`; the other coordinates result from the lengths.
    """

    name: str
    nodes: NDArray[np.int64]
    points: NDArray[np.float64]
    controlled: tuple[str, ...] = AXES
    _middle: NDArray[np.float64] = field(init=False, repr=False)  # (3,) mean of the points
    _arms: NDArray[np.float64] = field(init=False, repr=False)  # (k, 3) points about it
    _line: NDArray[np.float64] = field(init=False, repr=False)  # (3,) direction of points on one line, else zero

    def __post_init__(self) -> None:
        nodes = np.array(self.nodes, dtype=np.int64)
        points = np.array(self.points, dtype=np.float64)
        if nodes.ndim != 1 or points.shape != (nodes.size, 3) or not np.all(np.isfinite(points)):
            raise TensegrityError(f"output {self.name}: points must be finite with shape ({nodes.size}, 3).")
        self._check_controlled()
        middle = points.mean(axis=0) if nodes.size else np.zeros(3)
        arms, line = points - middle, np.zeros(3)
        if nodes.size != 1:
            _, spread, directions = np.linalg.svd(arms) if nodes.size else (None, np.zeros(1), arms)
            if spread[0] < 1e-12:
                raise TensegrityError(f"output {self.name}: name one node, or several that are not all at one point.")
            if spread[1] < 1e-6 * spread[0]:
                line = directions[0]
        if nodes.size == 1 and any(axis.startswith("r") for axis in self.controlled):
            raise TensegrityError(f"output {self.name}: one node has no orientation; control x, y, z only.")
        kept = {"nodes": nodes, "points": points, "_middle": middle, "_arms": arms, "_line": line}
        for name, array in kept.items():
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    def fit(self, nodes: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Position (3,) m and rotation matrix (3, 3) of the frame for node positions (n, 3) m."""
        centre, rotation = self._fit(np.ascontiguousarray(nodes, dtype=np.float64))
        return centre - rotation @ self._middle, rotation

    def _fit(self, nodes: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean (3,) of the nodes of the frame, and its rotation (3, 3)."""
        if self.nodes.size == 1:
            return nodes[self.nodes[0]].copy(), np.eye(3)
        centre, rotation, scratch = np.empty(3), np.empty((3, 3)), np.empty((2, 4, 4))
        on_line = bool(self._line.any())
        _fit_frame(nodes, self.nodes, self._arms, on_line, scratch[0], scratch[1], centre, rotation)
        return centre, rotation

    def pose(self, nodes: NDArray[np.float64]) -> Pose:
        """Position (3,) m and quaternion wxyz (4,) of the frame in the world, for node positions (n, 3) m."""
        position, rotation = self.fit(nodes)
        return position, quaternion_from_matrix(rotation)

    def motion(self, nodes: NDArray[np.float64], velocities: NDArray[np.float64]) -> tuple[Pose, NDArray[np.float64]]:
        """Pose, and twist (6,) as from the Jacobian, for node positions (n, 3) [m] and velocities (n, 3) [m/s]."""
        nodes, velocities = (np.ascontiguousarray(each, dtype=np.float64) for each in (nodes, velocities))
        centre, rotation = self._fit(nodes)
        pose = centre - rotation @ self._middle, quaternion_from_matrix(rotation)
        if self.nodes.size == 1:
            return pose, np.concatenate((velocities[self.nodes[0]], np.zeros(3)))
        twist, scratch, pivots = np.empty(6), np.empty((5, 3)), np.empty(3, dtype=np.int64)
        _fill_twist(
            nodes, velocities, self.nodes, self._arms, self._line, self._middle, centre, rotation, scratch[:3],
            pivots, scratch[3:], twist,
        )  # fmt: skip
        return pose, twist

    def jacobian(self, nodes: NDArray[np.float64]) -> NDArray[np.float64]:
        """(6, 3 n): velocity of the origin [m] and rotation about world axes [rad] per node motion [m]."""
        jacobian = np.zeros((6, nodes.size))
        points = nodes[self.nodes]
        count = self.nodes.size
        columns = (3 * self.nodes[:, None] + np.arange(3)).ravel()
        np.add.at(jacobian.T[:, :3], columns, np.tile(np.eye(3) / count, (count, 1)))
        if count == 1:
            return jacobian
        _, rotation = self.fit(nodes)
        arms = self._arms @ rotation.T
        offsets = points - points.mean(axis=0)
        moment, along = np.sum(arms * offsets), rotation @ self._line
        matrix = moment * np.eye(3) - arms.T @ offsets + moment * np.outer(along, self._line + along)
        turn = np.zeros((3, nodes.size))
        across = np.zeros((count, 3, 3))  # transposed cross matrices of the arms
        across[:, [1, 2, 0], [2, 0, 1]] = arms[:, [0, 1, 2]]
        across[:, [2, 0, 1], [1, 2, 0]] = -arms[:, [0, 1, 2]]
        np.add.at(turn.T, columns, across.reshape(-1, 3))
        jacobian[3:] = np.linalg.solve(matrix, turn)
        jacobian[:3] += cross_matrix(rotation @ self._middle) @ jacobian[3:]
        return jacobian
