"""Holding by the actuators' impedances alone, where the loop of the program cannot hold the output."""

from __future__ import annotations

import numpy as np

from tensegrity_dynamics.errors import InfeasibleControlError
from tensegrity_dynamics.mechanisms.dynamics.reduced_model import ReducedModel, choose_independent
from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.output_frame import Pose

from ...motion_planning.impedance_gains import (
    CABLE_SHARE,
    INNER_PERIOD,
    RATE_SHARE,
    ImpedanceGains,
    cable_stiffness,
    driven_rows,
    impedance_gains,
)
from .timing.command_timing import FORGETTING


class ImpedanceHold:
    """Whether impedances hold the output, and until when.

    Attributes:
        reason: why they do; empty where the loop holds it.
        goal: of the motion that goes on afterwards; None for none.
        ended: whether the loop has to begin anew, since impedances held the output before.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """The loop holds the output, as it did before."""
        self.reason, self.ended = "", False
        self.goal: Pose | None = None
        self._for_good, self._in_time_since = False, np.inf

    def begin(self, reason: str, goal: Pose | None, for_good: bool) -> None:
        """Hold by impedances.

        Args:
            goal: see the attributes. for_good: until a new goal; otherwise until commands come in time again.
        """
        self.reason, self.goal, self._for_good, self._in_time_since = reason, goal, for_good, np.inf

    def is_over(self, time: float, late: bool) -> bool:
        """Whether commands have been in time for `FORGETTING`, so that the loop goes on.

        Args:
            time: s. late: whether commands come too late for the loop at present.
        """
        self.ended = True
        if late or self._for_good:
            self._in_time_since = np.inf
            return False
        self._in_time_since = min(self._in_time_since, time)
        return time - self._in_time_since > FORGETTING


def impedances_at_rest(equations: TightCables, q: Array, effort: Array) -> tuple[ImpedanceGains, Array]:
    """Impedance gains of the actuators at q (nq,) with holding efforts (a,), each by itself where an unstable free
    motion prevents the joint check; and the stiffness (a,) of each actuator in series with its cables."""
    model = ReducedModel(equations.robot, choose_independent(equations.robot, equations.parts.drive), counted=False)
    cables = cable_stiffness(model, q)
    try:
        gains = impedance_gains(model, q, effort, kept=0.0)  # the loop of the program holds the output
    except InfeasibleControlError:
        _, inertia = driven_rows(model, q)
        stiffness = np.where(cables > 0.0, CABLE_SHARE * cables, inertia * (RATE_SHARE / INNER_PERIOD) ** 2)
        gains = ImpedanceGains(stiffness, np.sqrt((stiffness + cables) * inertia), 0, INNER_PERIOD, 0.0)
    with_cables = gains.stiffness * cables / np.maximum(gains.stiffness + cables, 1e-300)
    return gains, np.where(cables > 0.0, with_cables, gains.stiffness)
