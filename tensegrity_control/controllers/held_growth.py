"""How fast an output falls away from rest where the efforts stay as they are, and how fast that may be.

Prestress, and weight above its support, push what is off rest further off. With the efforts that hold the output, the
cables tight (`tight_cables`) and y along the motions that move it with the least inertia,

    dy'' = S dy,   p = max Re sqrt(eig S)

is the rate at which it grows until a command answers. `qp` takes S dy back in every command, so that a model of S that
is exact needs no room; what is left is what grows before a command that knows of it acts, and what the model has wrong.
The law for both:

    p (T + L) <= GROWN,   p <= FASTER w

with T the period of control, L the time from a state to its command, and w the bandwidth of the output's loop.
"""

from __future__ import annotations

import numpy as np

from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables
from tensegrity_dynamics.numerics.types import Array

GROWN = 0.5
"""Logarithm of the growth within period and delay."""
FASTER = 4.0
"""Of the output's bandwidth, which is what errors of the model are taken back with: 1/16 of S may be wrong."""
STEP = 1e-5
"""rad or m of the largest coordinate, of differences."""


class HeldGrowth:
    """See the module.

    Args:
        equations: of the robot; every look leaves them at another state. effort: (a,) limits, N m or N.

    Attributes:
        rate: p [1/s] of the last look that was finished.
    """

    def __init__(self, equations: TightCables, effort: Array) -> None:
        self._equations, self._effort = equations, effort
        outputs = equations.parts.axes.size
        self._still = np.zeros(equations.mechanism.velocity_count)
        self._slopes = np.zeros((outputs, outputs))
        self.rate = 0.0
        self._next = -1

    @staticmethod
    def allowed(period: float, late: float, bandwidth: float) -> float:
        """p [1/s] that a loop affords. period, late: s. bandwidth: w [1/s]."""
        return min(GROWN / (period + max(late, 0.0)), FASTER * bandwidth)

    def begin(self, q: Array, effort: Array) -> float:
        """p at position q (nq,) under efforts (a,), changed as little as possible so that they hold the output."""
        self._next = -1
        while True:
            if self.look(q, effort):
                return self.rate

    def look(self, q: Array, effort: Array) -> bool:
        """A part of a look, which is as much work as one update; True where it was the last one.

        What belongs together is of the q and the efforts of the first part.
        """
        equations = self._equations
        if self._next < 0:
            arrays = equations.update(q, self._still)
            basis = equations.reduction.basis[:, : equations.count]
            self._q = np.array(q)
            self._ways = (basis @ np.linalg.solve(arrays.mobility, arrays.output_solved).T).T
            free = arrays.output_0 + arrays.output_1 @ effort
            self._u = effort - self._effort * (np.linalg.pinv(arrays.output_1 * self._effort, rcond=1e-6) @ free)
            self._base = arrays.output_0 + arrays.output_1 @ self._u
            self._next = 0
            return False
        way = self._ways[self._next]
        step = STEP / max(float(np.max(np.abs(way))), 1e-12)
        arrays = equations.update(equations.moved(self._q, way, step), self._still)
        self._slopes[:, self._next] = (arrays.output_0 + arrays.output_1 @ self._u - self._base) / step
        self._next += 1
        if self._next < len(self._ways):
            return False
        self._next = -1
        self.rate = float(np.max(np.sqrt(np.linalg.eigvals(self._slopes).astype(complex)).real))
        return True

    def holding(self, tension: Array) -> Array:
        """(a,) efforts nearest to tensions (c,) among those that hold the output, at the last `equations.update`."""
        arrays, size = self._equations.arrays, self._effort
        if not tension.size:
            return np.asarray(np.linalg.lstsq(arrays.output_1, -arrays.output_0, rcond=1e-9)[0])
        scale = max(float(np.max(tension)), 1e-9)
        near = np.linalg.lstsq(arrays.tension_1 * size / scale, (tension - arrays.tension_0) / scale, rcond=1e-6)[0]
        effort = size * near
        free = arrays.output_0 + arrays.output_1 @ effort
        return np.asarray(effort - size * (np.linalg.pinv(arrays.output_1 * size, rcond=1e-6) @ free))
