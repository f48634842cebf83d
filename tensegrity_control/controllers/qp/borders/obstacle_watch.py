"""Obstacles that hold the output back, told from loads by what the output does.

A load that grows is learned (`learned_force`), and the output returns to its reference with the rate of learning. An
obstacle moves no output: learned as a load, its force would grow up to the limits of the efforts. So an output counts
as held back that is farther than `RESISTS` from its reference, moves slower than learning a load would let it, and
approaches the reference with less than `CLOSES` of that rate, for `LASTS` time constants of learning. What was learned
since it was within `FOLLOWS` for one time constant is no load and is forgotten.
"""

from __future__ import annotations

import math

from tensegrity_dynamics.numerics.types import Array

FOLLOWS, RESISTS = 1e-4, 1e-3
"""Distances of the output from its reference [m and rad], see the module."""
CLOSES, LASTS = 0.3, 2.0
"""Fraction of the rate of learning, and number of its time constants, see the module."""
UNHEARD = 0.1
"""Time since the last report of a command that acts, at least that of the oldest state, after which nothing counts as
held back where there are reports: a robot that gets no commands stands still, too [s]."""


class ObstacleWatch:
    """See the module.

    Args:
        force: learned at the output (k,) [N, N m]; changed where an obstacle is found. oldest: age [s] of a state up to
            which it is answered.

    Attributes:
        found: whether an obstacle ended the last motion; up to the next one nothing is to be learned.
    """

    def __init__(self, force: Array, oldest: float) -> None:
        self._force, self._before, self._unheard = force, force.copy(), max(UNHEARD, oldest)
        self.begin()

    def begin(self) -> None:
        """Begin anew, with nothing learned and without reports."""
        self._before[:], self._followed, self._acts_since = 0.0, 0.0, -math.inf
        self.forget()

    def forget(self) -> None:
        """Forget what was found; a new motion begins."""
        self.found, self._held = False, 0.0

    def unlearn(self) -> None:
        """Forget what was learned since the output followed its reference."""
        self._force[:] = self._before

    def acted(self, begin: float) -> None:
        """Note a report: a command acts from `begin` [s] on."""
        self._acts_since = begin

    def look(
        self, time: float, error: Array, rate: Array, distance: float, learning: float, elapsed: float, on_purpose: bool
    ) -> bool:
        """Whether an obstacle is found now, at a time [s].

        Args:
            error, rate: (k,) of the output. distance: m and rad of the error. learning: rate [1/s] at which loads are
                learned. elapsed: s since the last call. on_purpose: whether the control itself holds the output back.
        """
        if not distance > RESISTS or on_purpose:
            self._held = 0.0
            self._followed = self._followed + elapsed if distance < FOLLOWS else 0.0
            if self._followed * learning > 1.0:  # a motion that begins beside an old goal has not followed yet
                self._before[:] = self._force
            return False
        self._followed = 0.0
        off = error @ error
        moves = rate @ error >= CLOSES * learning * off or rate @ rate >= learning * learning * off
        if moves or self._unheard <= time - self._acts_since < math.inf:
            self._held = 0.0
            return False
        self._held += elapsed
        if self.found or not self._held * learning > LASTS:
            return False
        self.unlearn()
        self.found = True
        return True
