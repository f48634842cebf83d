"""Efforts of the actuators' impedances between two measured states, in addition to those of the program.

Actuators that close impedances hold the output at their set points. A force that the program does not know, or that it
knows wrongly, moves the output only until their offsets balance it: the output rests, and the program commands hardly
any acceleration. The force shows in the mean efforts of the impedances,

    u = k_p (p - q_a - s) + k_d (p' - q_a')

with p the set points as the plant has them, which catch up with commands at a limited rate (`impedance.CATCH_UP`), the
feed-forward efforts with them. Cables that stretch otherwise than their model keep the actuators off their set points
forever. The mean s of that difference, over the time constant of learning, counts as a force to be learned.
"""

from __future__ import annotations

import numpy as np

from tensegrity_dynamics.impedance import CATCH_UP
from tensegrity_dynamics.numerics.compilation import QuickCall, allocation_free
from tensegrity_dynamics.numerics.types import Array

from ....motion_planning.impedance_gains import ImpedanceGains
from ..timing.pending_commands import PendingCommands


@allocation_free
def fill_effort(
    stiffness, damping, reach, time, begin, end, feed, before, now, moved, share, known, set_point, fed, lasting, result
):
    """Fill result (a,) with the mean efforts over `time` [s]; see `ImpedanceEffort`.

    Args:
        reach: (a,) rates at which set points catch up. begin, end: (a,) commanded set points. feed: (a,) commanded
            efforts. before, now: (a,) positions of the actuators.
        known: whether the last set points (a,) and efforts `fed` (a,) of the plant are known; they are updated.
        lasting: (a,) s, updated.
    """
    takes = 0.0
    for a in range(reach.shape[0]):
        if not known:
            set_point[a], fed[a] = begin[a], feed[a]
        takes = max(takes, abs(begin[a] - set_point[a]) / (reach[a] * time))
    left, mean = (0.0, 0.5 * takes) if takes < 1.0 else (1.0 - 1.0 / takes, 1.0 - 0.5 / takes)
    for a in range(reach.shape[0]):
        behind, unfed, last = begin[a] - set_point[a], feed[a] - fed[a], set_point[a]
        set_point[a], fed[a] = end[a] - left * behind, feed[a] - left * unfed
        lasting[a] += share * (moved[a, 2] - moved[a, 0] - lasting[a])
        off = 0.5 * (begin[a] + end[a] - before[a] - now[a]) - mean * behind - lasting[a]
        rate = (set_point[a] - last - now[a] + before[a]) / time
        result[a] = stiffness[a] * off + damping[a] * rate - mean * unfed


class ImpedanceEffort:
    """See the module.

    Args:
        gains: of the impedances. rate: (a,) rate limits of the actuators [rad/s or m/s].
    """

    def __init__(self, gains: ImpedanceGains, rate: Array) -> None:
        self._gains, self._reach = gains, CATCH_UP * rate
        self._set_point, self._fed, self._lasting = np.zeros((3, rate.size))
        self._known, self._fill = False, QuickCall(fill_effort)

    def begin(self) -> None:
        """Begin anew, with cables that stretch as their model."""
        self._lasting[:] = 0.0

    def forget(self) -> None:
        """Forget the set points of the plant: they are where they are commanded next."""
        self._known = False

    def mean(
        self, pending: PendingCommands, begin: float, end: float, before: Array, now: Array, moved: Array, share: float
    ) -> Array | None:
        """Mean efforts (a,) from `begin` to `end` [s] [N m or N]; None where no command is known to act.

        Args:
            before, now: (a,) positions of the actuators at these times. moved: of `CableStretch`. share: fraction by
                which the lasting difference of the stretch is learned.
        """
        commanded = pending.set_points(begin, end)
        if commanded is None:
            return None
        result = np.empty_like(self._reach)
        self._fill(
            self._gains.stiffness, self._gains.damping, self._reach, end - begin, *commanded, before, now, moved,
            share, self._known, self._set_point, self._fed, self._lasting, result,
        )  # fmt: skip
        self._known = True
        return result
