"""Independent coordinates w of all kinds of joints, and the relation between their rates and the velocities v.

For most joints w is part of q, and w' = v. For a spherical joint, and for the rotation of a floating joint, w is the
rotation vector r from a centre R_0. The position p of a floating joint in the predecessor frame is also part of w:

    R = R_0 exp(r),   omega = J(r) r',   v_p = R' p'

with the right Jacobian J of the rotation group. C(w) collects these blocks: v = C w' and v' = C w'' + g(w, w'). The
chart is regular up to one turn from its centre and is best conditioned near the centre.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import TensegrityError
from ...numerics.compilation import QuickCall, allocation_free
from ...numerics.rotations import (
    matrix_from_quaternion,
    quaternion_from_matrix,
    rotation_vector,
    turned_by,
    vectors_between,
)
from ...numerics.types import Array
from ..joint_coordinates import QUATERNION_KINDS
from ..mechanism import Mechanism

FAR = 1.0
"""Rotation [rad] from the centre of a chart beyond which a new centre is better."""
MOST = 0.95 * np.pi
"""Largest rotation [rad] from the centre for which the (shortest) rotation vector stays continuous."""
SMALL = 1e-2
"""Rotation [rad] below which coefficients are computed by their series."""
STEP = 1e-5
"""Step of the central differences, in rad, m and per s."""


@allocation_free
def fill_block(r, skew, outer, at, c):
    """Fill the block of c at the rows and columns `at` (3,) with 1 + skew [r] + outer (r r' - r.r 1) of a vector r."""
    x, y, z = r
    c[at[0], at[0]] = 1.0 - outer * (y * y + z * z)
    c[at[1], at[1]] = 1.0 - outer * (x * x + z * z)
    c[at[2], at[2]] = 1.0 - outer * (x * x + y * y)
    c[at[0], at[1]], c[at[1], at[0]] = outer * x * y - skew * z, outer * x * y + skew * z
    c[at[0], at[2]], c[at[2], at[0]] = outer * x * z + skew * y, outer * x * z - skew * y
    c[at[1], at[2]], c[at[2], at[1]] = outer * y * z - skew * x, outer * y * z + skew * x


@allocation_free
def fill_chart_matrices(w, numbers, turns, centres, moves, moved_turns, out):
    """Fill out (k, n, n) with C at w (k, n).

    Args:
        numbers: columns of w with v = w'. turns: (t, 3) columns of rotation vectors from the centres (t, 3, 3).
        moves: (m, 3) columns of the positions of floating joints. moved_turns: (m,) their rows in `turns`.
    """
    for k in range(w.shape[0]):
        values, c = w[k], out[k]
        for i in range(c.shape[0]):
            for j in range(c.shape[1]):
                c[i, j] = 0.0
        for n in range(numbers.shape[0]):
            c[numbers[n], numbers[n]] = 1.0
        for n in range(turns.shape[0]):  # J(r)
            at = turns[n]
            r = values[at[0]], values[at[1]], values[at[2]]
            square = r[0] * r[0] + r[1] * r[1] + r[2] * r[2]
            if square < SMALL**2:
                a = 0.5 - square / 24.0 + square**2 / 720.0
                b = 1.0 / 6.0 - square / 120.0 + square**2 / 5040.0
            else:
                t = np.sqrt(square)
                a, b = (1.0 - np.cos(t)) / square, (t - np.sin(t)) / (t * square)
            fill_block(r, -a, b, at, c)
        for n in range(moves.shape[0]):  # R' = exp(r)' R_0'
            at, turn, centre = moves[n], turns[moved_turns[n]], centres[moved_turns[n]]
            r = values[turn[0]], values[turn[1]], values[turn[2]]
            square = r[0] * r[0] + r[1] * r[1] + r[2] * r[2]
            if square < SMALL**2:
                s = 1.0 - square / 6.0 + square**2 / 120.0
                a = 0.5 - square / 24.0 + square**2 / 720.0
            else:
                t = np.sqrt(square)
                s, a = np.sin(t) / t, (1.0 - np.cos(t)) / square
            fill_block(r, -s, a, at, c)
            for i in range(3):
                first, second, third = c[at[i], at[0]], c[at[i], at[1]], c[at[i], at[2]]
                for j in range(3):
                    c[at[i], at[j]] = centre[j, 0] * first + centre[j, 1] * second + centre[j, 2] * third


_fill_chart_matrices = QuickCall(fill_chart_matrices)


class CoordinateCharts:
    """Charts around a position; see the module.

    Args:
        index: (n,) independent coordinates in v; all or none of a joint with a quaternion. q: (nq,) centres of the
            charts.

    Attributes:
        q_index: indices in q that w determines. turning: whether any of them belong to a quaternion.

    Raises:
        TensegrityError: only some of the coordinates of a joint with a quaternion are independent.
    """

    def __init__(self, mechanism: Mechanism, index: ArrayLike, q: Array) -> None:
        chosen = [int(k) for k in np.asarray(index, dtype=np.int64)]
        column = {k: n for n, k in enumerate(chosen)}
        numbers: list[tuple[int, int]] = []
        self._turns: list[tuple[NDArray[np.int64], int, Array]] = []  # columns of r, first of four in q, R_0
        self._moves: list[tuple[int, NDArray[np.int64], int]] = []  # of which turn, columns of p, first of three in q
        for joint in mechanism.joints:
            at_v, at_q = mechanism.velocities_of(joint.name), mechanism.positions_of(joint.name)
            inside = [k for k in range(at_v.start, at_v.stop) if k in column]
            if joint.kind not in QUATERNION_KINDS:
                numbers.extend((column[k], at_q.start + k - at_v.start) for k in inside)
                continue
            if not inside:
                continue
            if len(inside) < at_v.stop - at_v.start:
                names = mechanism.coordinate_names()
                raise TensegrityError(
                    f"{', '.join(names[k] for k in inside)} would be independent without the others of {joint.name}, "
                    "which turns freely: its coordinates have numbers together or not at all. The controller qp takes "
                    "such robots, or choose other coordinates."
                )
            columns = np.array([column[k] for k in range(at_v.start, at_v.stop)], dtype=np.int64)
            first = at_q.stop - 4
            self._turns.append((columns[:3], first, matrix_from_quaternion(q[first : first + 4])))
            if joint.kind == "floating":
                self._moves.append((len(self._turns) - 1, columns[3:], at_q.start))
        self._columns = np.array([n for n, _ in numbers], dtype=np.int64)
        self._numbers = np.array([k for _, k in numbers], dtype=np.int64)
        self._count = len(chosen)
        self.turning = bool(self._turns)
        if not self.turning:  # in the order of w
            order = np.argsort(self._columns)
            self._columns, self._numbers = self._columns[order], self._numbers[order]
        self._parts = (
            self._columns,
            np.array([columns for columns, _, _ in self._turns], dtype=np.int64).reshape(-1, 3),
            np.array([centre for _, _, centre in self._turns], dtype=np.float64).reshape(-1, 3, 3),
            np.array([columns for _, columns, _ in self._moves], dtype=np.int64).reshape(-1, 3),
            np.array([turn for turn, _, _ in self._moves], dtype=np.int64),
        )
        self.q_index = np.concatenate(
            (
                self._numbers,
                *(np.arange(first, first + 4) for _, first, _ in self._turns),
                *(np.arange(first, first + 3) for _, _, first in self._moves),
            )
        ).astype(np.int64)

    def numbers(self, q: Array) -> Array:
        """w (..., n) at positions (..., nq)."""
        if not self.turning:
            return np.asarray(q[..., self.q_index])
        rows = np.atleast_2d(q)
        w = np.empty((len(rows), self._count))
        w[:, self._columns] = rows[:, self._numbers]
        for columns, first, centre in self._turns:
            w[:, columns] = vectors_between(quaternion_from_matrix(centre), rows[:, first : first + 4])
        for _, columns, first in self._moves:
            w[:, columns] = rows[:, first : first + 3]
        return w if q.ndim > 1 else w[0]

    def positions(self, w: Array) -> Array:
        """(..., m) entries of q at `q_index` for w (..., n)."""
        if not self.turning:
            return w
        rows = np.atleast_2d(w)
        turned = [turned_by(quaternion_from_matrix(centre), rows[:, columns]) for columns, _, centre in self._turns]
        moved = [rows[:, columns] for _, columns, _ in self._moves]
        found = np.concatenate((rows[:, self._columns], *turned, *moved), axis=1)
        return found if w.ndim > 1 else found[0]

    def is_far(self, q: Array) -> bool:
        """Whether a rotation is more than `FAR` from the centre of its chart, so that a new centre is better."""
        return any(
            np.linalg.norm(rotation_vector(centre.T @ matrix_from_quaternion(q[first : first + 4]))) > FAR
            for _, first, centre in self._turns
        )

    def check(self, q: Array) -> None:
        """Raise TensegrityError if a rotation is more than `MOST` from the centre of its chart."""
        for _, first, centre in self._turns:
            turn = np.linalg.norm(rotation_vector(centre.T @ matrix_from_quaternion(q[first : first + 4])))
            if turn > MOST:
                raise TensegrityError(
                    f"a joint would turn by {np.degrees(turn):.0f} deg within one motion, more than "
                    f"{np.degrees(MOST):.0f}; go there in two parts."
                )

    def matrix(self, w: Array) -> Array:
        """C (..., n, n) at w (..., n)."""
        rows = np.ascontiguousarray(w, dtype=np.float64).reshape(-1, self._count)
        result = np.empty((*rows.shape, self._count))
        _fill_chart_matrices(rows, *self._parts, result)
        return result.reshape(*w.shape, self._count)

    def velocities(self, w: Array, rate: Array) -> Array:
        """(..., n) entries of v for rates w' (..., n)."""
        return np.asarray((self.matrix(w) @ rate[..., None])[..., 0]) if self.turning else rate

    def rates(self, q: Array, velocity: Array) -> Array:
        """w' (n,) for velocities (n,), entries of v, at a position q."""
        return np.asarray(np.linalg.solve(self.matrix(self.numbers(q)), velocity)) if self.turning else velocity

    def bias(self, w: Array, rate: Array) -> Array:
        """g (..., n) = v' - C w'', by central differences along the motion."""
        if not self.turning:
            return np.zeros_like(w)
        size = STEP / np.maximum(1.0, np.max(np.abs(rate), axis=-1, keepdims=True))
        ahead, behind = self.matrix(w + size * rate), self.matrix(w - size * rate)
        return np.asarray(((ahead - behind) @ rate[..., None])[..., 0] / (2.0 * size))

    def accelerations(self, w: Array, rate: Array, change: Array) -> Array:
        """w'' (..., n) for the accelerations v' (..., n)."""
        if not self.turning:
            return change
        return np.asarray(np.linalg.solve(self.matrix(w), (change - self.bias(w, rate))[..., None])[..., 0])

    def linearised(
        self, w: Array, rate: Array, matrices: Array, inputs: Array, change: Array
    ) -> tuple[Array, Array, Array]:
        """Convert linear models in small rotations and velocities to A, B and w'' in (w, w'), for k states at once.

        Args:
            w, rate: (k, n). matrices, inputs: (k, 2n, 2n) and (k, 2n, u); their lower halves are the slopes of v' along
                displacements along v, along velocities v and along the inputs. change: (k, n) v'.
        """
        if not self.turning:
            return matrices, inputs, change
        n = self._count
        c = self.matrix(w)
        back = np.linalg.inv(c)
        bend = self.accelerations(w, rate, change)
        by_position, by_speed = matrices[:, n:, :n] @ c, matrices[:, n:, n:] @ c
        columns = sorted({int(each) for columns, _, _ in self._turns for each in columns} | self._moving())
        sides = np.zeros((len(columns), 1, n))
        sides[np.arange(len(columns)), 0, columns] = STEP
        slope = (self.matrix(w + sides) - self.matrix(w - sides)) / (2.0 * STEP)
        bent = (self.bias(w + sides, rate) - self.bias(w - sides, rate)) / (2.0 * STEP)
        changed = matrices[:, n:, n:] @ (slope @ rate[..., None]) - slope @ bend[..., None] - bent[..., None]
        by_position[:, :, columns] += np.moveaxis(changed[..., 0], 0, 2)
        bent = (self.bias(w, rate + sides) - self.bias(w, rate - sides)) / (2.0 * STEP)
        by_speed[:, :, columns] -= np.moveaxis(bent, 0, 2)
        found, pushed = matrices.copy(), inputs.copy()
        found[:, n:, :n], found[:, n:, n:] = back @ by_position, back @ by_speed
        pushed[:, n:] = back @ inputs[:, n:]
        return found, pushed, bend

    def _moving(self) -> set[int]:
        return {int(each) for _, columns, _ in self._moves for each in columns}
