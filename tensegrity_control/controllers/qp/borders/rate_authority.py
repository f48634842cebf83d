"""Output rates that the actuators reach, and their loss near a fold: an arm that is stretched, a leg in line with its
crank.

The accelerations p = B u of the output and j = A u of the actuators under efforts u give the actuator motion per motion
of the output, S = A B' (B B')^-1 (a, k). The output's slowest direction with all actuators within their rate limits R
is that of the largest singular value of R^-1 S D^-1, with D the norms of the columns of R^-1 S at the start. Its speed,
relative to the start, is the distance of this module. It is proportional to the angle that is left before a stretched
arm, so to the square root of the output's distance; efforts tell of such a fold only very close to it, where the
inertia of the actuators exceeds that of the robot.

At constant rate of the output the rate of an actuator grows like r ~ 1 / sqrt(t_f - t) before the time t_f of a fold.
With c the acceleration of the actuator while the output does not accelerate, t_f - t = r / (2 c). The pace of a motion
is limited such that this time stays above `AHEAD` time constants of the reference: it then approaches a fold like an
exponential. Farther away c is small, and the limit is inactive.

Free motions of a robot take actuator rates as well, which are not distinguished here: such a robot has no limit.
"""

from __future__ import annotations

import numpy as np

from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables
from tensegrity_dynamics.numerics.compilation import QuickCall, allocation_free
from tensegrity_dynamics.numerics.linear_algebra import cholesky, cholesky_solve, orthogonalise_rows
from tensegrity_dynamics.numerics.types import Array

AHEAD = 4.0
"""Time constants of the reference's pace before a fold from which on the motion slows down. The pace follows its limit
with one time constant, so 4 is the critically damped approach."""
SEEN = 0.02
"""Fraction of its rate limit below which the rate of an actuator does not count."""


@allocation_free
def actuator_motions(output_1, joint_1, rates, square, right, motions):
    """Fill R^-1 S, transposed, into motions (k, a); False where the efforts do not move the output. square (k, k) and
    right (k,) are scratch."""
    rows, inputs = output_1.shape
    for k in range(rows):
        for m in range(k + 1):
            total = 0.0
            for a in range(inputs):
                total += output_1[k, a] * output_1[m, a]
            square[k, m] = total
    if cholesky(square, rows) >= 0:
        return False
    for a in range(inputs):
        for k in range(rows):
            right[k] = 0.0
            for b in range(inputs):
                right[k] += output_1[k, b] * joint_1[a, b]
        cholesky_solve(square, rows, right)
        for k in range(rows):
            motions[k, a] = right[k] / rates[a]
    return True


@allocation_free
def slowest(output_1, joint_1, rates, sizes, square, right, motions):
    """Speed of the output in its slowest direction; 0 where the efforts do not move it."""
    if not actuator_motions(output_1, joint_1, rates, square, right, motions):
        return 0.0
    rows, inputs = motions.shape
    for k in range(rows):
        for a in range(inputs):
            motions[k, a] /= sizes[k]
    _, largest = orthogonalise_rows(motions, inputs)
    return 1.0 / np.sqrt(largest) if largest > 0.0 else np.inf


@allocation_free
def growth(v, drive, actuator, output, output_1, joint_1, rates, square, right, motions):
    """Largest c / r [1/s] of the actuators; 0 where no rate grows."""
    if not actuator_motions(output_1, joint_1, rates, square, right, motions):
        return 0.0
    rows, inputs = motions.shape
    largest = 0.0
    for a in range(inputs):
        rate, more = v[drive[a]] / rates[a], actuator[a] / rates[a]
        if abs(rate) < SEEN:
            continue
        for k in range(rows):
            more -= motions[k, a] * output[k]
        largest = max(largest, more / rate)
    return largest


class RateAuthority:
    """Output rates that the actuators reach; see the module.

    Args:
        equations: equations of the robot, at the state of their last `update`.
        rates: (a,) rate limits of the actuators, rad/s or m/s.
    """

    def __init__(self, equations: TightCables, rates: Array) -> None:
        self._equations, self._rates = equations, rates
        self._growth, self._slowest = QuickCall(growth), QuickCall(slowest)
        rows, inputs = equations.arrays.output_1.shape
        self._scratch = np.zeros((rows, rows)), np.zeros(rows), np.zeros((rows, inputs))
        self._sizes, self._start = np.ones(rows), 0.0
        self._has_free_motions = equations.count > rows + len(equations.arrays.stretch)

    def begin(self) -> None:
        """Use the state of the last `update` as the start."""
        self._sizes, self._start = np.ones(len(self._sizes)), 0.0
        if self._has_free_motions or not self._motions():
            return
        sizes = np.linalg.norm(self._scratch[2], axis=1)
        if np.all(sizes > 0.0):
            self._sizes = sizes
            self._start = self._speed()

    @property
    def applies(self) -> bool:
        """Whether the robot has no free motions, and its actuators move the output at the start."""
        return self._start > 0.0

    def distance(self) -> float:
        """Speed of the output in its slowest direction, relative to that at the start; infinite where this does not
        apply."""
        return self._speed() / self._start if self.applies else np.inf

    def slowest_direction(self) -> Array:
        """(k,) direction of the output in which the actuators move it most slowly, in units of the start."""
        self._motions()
        return np.asarray(np.linalg.svd(self._scratch[2] / self._sizes[:, None])[0][:, 0])

    def excess(self, v: Array, actuator: Array, output: Array, settles: float) -> float:
        """`AHEAD` time constants over the time to the fold: above 1 the motion has to slow down.

        Args:
            v: (nv,) velocity.
            actuator, output: (a,) and (k,) accelerations of the actuators and of the output at this state.
            settles: s, time constant of the reference's pace.
        """
        if not self.applies:
            return 0.0
        arrays, drive = self._equations.arrays, self._equations.parts.drive
        found = self._growth(v, drive, actuator, output, arrays.output_1, arrays.joint_1, self._rates, *self._scratch)
        return float(2.0 * AHEAD * settles * found)

    def _motions(self) -> bool:
        arrays = self._equations.arrays
        return bool(actuator_motions(arrays.output_1, arrays.joint_1, self._rates, *self._scratch))

    def _speed(self) -> float:
        arrays = self._equations.arrays
        return float(self._slowest(arrays.output_1, arrays.joint_1, self._rates, self._sizes, *self._scratch))
