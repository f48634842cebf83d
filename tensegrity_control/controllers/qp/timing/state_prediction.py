"""State at the time when the command for a measured state will act."""

from __future__ import annotations

from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables
from tensegrity_dynamics.numerics.types import Array

from ..settled_output import SettledOutput
from .pending_commands import PendingCommands


class StatePrediction:
    """Prediction with the commands on their way; see `pending_commands` for the formula.

    Cables stretch faster than the latency of commands; their stretch follows from their law, not from these rates.
    Actuators with impedances make the commanded accelerations against springs and dampers, too. Where efforts alone
    act, or springs carry the output, springs and dampers may be faster than the latency; the efforts are integrated.

    Args:
        follows: whether actuators close impedances.
    """

    def __init__(self, equations: TightCables, settled: SettledOutput, pending: PendingCommands, follows: bool) -> None:
        self._equations, self._settled, self._pending, self._follows = equations, settled, pending, follows

    def at(self, q: Array, v: Array, time: float, acts: float) -> tuple[Array, Array, Array | None]:
        """q (nq,) and v (nv,) at `acts` [s] from those at `time`, and the change (k,) of the output's rate until then,
        or None."""
        if acts <= time:
            return q, v, None
        equations, count = self._equations, v.size
        v = equations.without_stretching(v)
        if equations.resists and (self._settled.needed or not self._follows):
            forces = self._pending.mean_forces(time, acts)
            if forces is not None:
                there, then, faster = equations.moved_under(q, v, forces[:-count], acts - time, forces[-count:])
                return there, then, self._settled.rate(then - v) if self._settled.needed else faster
        change = self._pending.change(time, acts)
        if change is None:
            return equations.moved(q, v, acts - time), v, None
        rate, travel = change
        mean = v + travel[:count] / (acts - time)
        return equations.moved(q, mean, acts - time), v + rate[:count], rate[count:]
