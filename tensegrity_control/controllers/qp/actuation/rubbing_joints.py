"""Compensation of stated friction in joints, along the motion of the reference and towards it.

The joints are taken to rub as at the velocities of the reference plus a part that follows the error: an output that
sticks must come loose. Within the width of a stated friction that part is steep, and adds stiffness to the loop. At the
delay that the loop allows for (`loop_bandwidth`) half of the loop's own stiffness leaves 14 of 22 degrees of phase
margin, and 1.4 times none. At 8 none was left with commands in time: robots without the friction of their files swung
until cables were slack. The force at the output of the part that follows the error counts as learned as long as the
output sticks, where it moves nothing; one that sticks is learned 1 + `RUBBED` x `LOOSENED` times as fast as one that
slides.
"""

from __future__ import annotations

import math

import numpy as np

from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables
from tensegrity_dynamics.numerics.types import Array

RUBBED, LOOSENED = 0.5, 2.0
"""Largest stiffness that compensated friction adds to that of the output's loop, as a multiple of it, and how much
faster than accelerations its effort is learned."""


class RubbingJoints:
    """See the module.

    Args:
        equations: of the robot.

    Attributes:
        loosens: (k,) force at the output [N, N m] of the part that follows the error, at the last `follow`.
    """

    def __init__(self, equations: TightCables) -> None:
        self._equations, self.loosens = equations, np.zeros(equations.parts.axes.size)
        self._slowest = math.inf

    def begin(self, q: Array, directions: Array) -> None:
        """Begin at the position q (nq,) of the last `equations.update`; directions (k, nv): velocities of unit rates of
        the output."""
        slopes = self._equations.friction_slopes(q, directions)
        steepest = float(np.max(np.linalg.eigvals(self._equations.arrays.mobility @ slopes).real, initial=0.0))
        self._slowest = RUBBED / steepest if steepest > 0.0 else math.inf
        self.loosens[:] = 0.0

    def loosening(self, w: float) -> float:
        """Rate [1/s] whose product with an error is the velocity of the part that follows it, for a loop of bandwidth
        w [1/s]."""
        return w * min(0.5, w * self._slowest)

    def follow(self, q: Array, velocity: Array, more: Array, directions: Array) -> None:
        """Let joints rub from the next period on at the position q (nq,), as at `velocity` (nv,) of the reference and
        `more` (nv,), which follows the error; directions as in `begin`."""
        self._equations.slide(q, velocity)
        of_reference = np.array(self._equations.arrays.rubbing)
        self._equations.slide(q, velocity + more)
        self.loosens[:] = directions @ (of_reference - self._equations.arrays.rubbing)

    def learned(self, share: float) -> Array:
        """(k,) force by which what is learned changes in a period, of which a fraction `share` of accelerations is
        learned."""
        return LOOSENED * share * self.loosens
