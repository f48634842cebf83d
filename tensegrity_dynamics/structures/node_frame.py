"""Output frame of a structure: a frame fitted to the nodes that carry the end effector.

The nodes have the points a_i in the frame (centred) and the positions p_i. The position is the fitted origin, and the
rotation R is the least squares fit, so that sum_i (R a_i) x (p_i - p_mean) = 0. The derivative of this condition gives
the exact Jacobian.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError
from ..numerics.rotations import cross_matrix, quaternion_from_matrix
from ..robots.output_frame import AXES, OutputFrame, Pose


@dataclass(frozen=True, eq=False)
class NodeFrame(OutputFrame):
    """Output frame on one node (position only), or on three or more nodes that are not collinear.

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

    def __post_init__(self) -> None:
        nodes = np.array(self.nodes, dtype=np.int64)
        points = np.array(self.points, dtype=np.float64)
        if nodes.ndim != 1 or points.shape != (nodes.size, 3) or not np.all(np.isfinite(points)):
            raise TensegrityError(f"output {self.name}: points must be finite with shape ({nodes.size}, 3).")
        self._check_controlled()
        spread = np.linalg.svd(points - points.mean(axis=0), compute_uv=False) if nodes.size else np.zeros(1)
        flat = nodes.size < 3 or spread[1] < 1e-6 * max(spread[0], 1e-12)
        if nodes.size != 1 and flat:
            raise TensegrityError(f"output {self.name}: name one node, or three and more that are not on one line.")
        if nodes.size == 1 and any(axis.startswith("r") for axis in self.controlled):
            raise TensegrityError(f"output {self.name}: one node has no orientation; control x, y, z only.")
        for name, array in (("nodes", nodes), ("points", points)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    def fit(self, nodes: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Position (3,) m and rotation matrix (3, 3) of the frame for node positions (n, 3) m."""
        points = nodes[self.nodes]
        centre = points.mean(axis=0)
        middle = self.points.mean(axis=0)
        if self.nodes.size == 1:
            return centre - middle, np.eye(3)
        u, _, vt = np.linalg.svd((points - centre).T @ (self.points - middle))
        u[:, 2] *= np.sign(np.linalg.det(u @ vt))
        rotation = u @ vt
        return centre - rotation @ middle, rotation

    def pose(self, nodes: NDArray[np.float64]) -> Pose:
        """Position (3,) m and quaternion wxyz (4,) of the frame in the world, for node positions (n, 3) m."""
        position, rotation = self.fit(nodes)
        return position, quaternion_from_matrix(rotation)

    def motion(self, nodes: NDArray[np.float64], velocities: NDArray[np.float64]) -> tuple[Pose, NDArray[np.float64]]:
        """Pose, and twist (6,) from the Jacobian, for node positions (n, 3) [m] and velocities (n, 3) [m/s]."""
        position, rotation = self.fit(nodes)
        pose = position, quaternion_from_matrix(rotation)
        moving = velocities[self.nodes]
        if self.nodes.size == 1:
            return pose, np.concatenate((moving[0], np.zeros(3)))
        points, middle = nodes[self.nodes], self.points.mean(axis=0)
        arms, offsets = (self.points - middle) @ rotation.T, points - points.mean(axis=0)
        matrix = np.sum(arms * offsets) * np.eye(3) - arms.T @ offsets
        (_, xy, xz), (yx, _, yz), (zx, zy, _) = (arms.T @ moving).tolist()
        spin = np.linalg.solve(matrix, np.array((yz - zy, zx - xz, xy - yx)))  # of the sum of arm x velocity
        return pose, np.concatenate((moving.mean(axis=0) + cross_matrix(rotation @ middle) @ spin, spin))

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
        arms = (self.points - self.points.mean(axis=0)) @ rotation.T
        offsets = points - points.mean(axis=0)
        matrix = np.sum(arms * offsets) * np.eye(3) - arms.T @ offsets
        turn = np.zeros((3, nodes.size))
        across = np.zeros((count, 3, 3))  # transposed cross matrices of the arms
        across[:, [1, 2, 0], [2, 0, 1]] = arms[:, [0, 1, 2]]
        across[:, [2, 0, 1], [1, 2, 0]] = -arms[:, [0, 1, 2]]
        np.add.at(turn.T, columns, across.reshape(-1, 3))
        jacobian[3:] = np.linalg.solve(matrix, turn)
        jacobian[:3] += cross_matrix(rotation @ self.points.mean(axis=0)) @ jacobian[3:]
        return jacobian
