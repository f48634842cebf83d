"""What cables that stretch add to the tight motion of `TightCables`: efforts, and where the actuators stand for it.

Each cable's law, T = e + (damping / stiffness) e' with e what its strain alone pulls, is solved forward in time for e,
over the time for which the last command was held; its rate is the mean one of the time for which this command will be
held. Set points that move on by themselves carry the stretch on at that rate, however long the next command is away:
what it is then is that rate times the time for which they did. Nothing is fed back, so that no delay makes it unstable.
How much cables stretch under a newton is learned from what is seen, since other than stated they would bend the
actuators' impedances.
"""

from __future__ import annotations

import numpy as np

from tensegrity_dynamics.mechanisms import joints
from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables, move
from tensegrity_dynamics.numerics.compilation import Kept, QuickCall, allocation_free, taken
from tensegrity_dynamics.numerics.linear_algebra import lu_factor, lu_solve
from tensegrity_dynamics.numerics.types import Array

SOFTENING, SOFTEST = 0.3, 2.0
"""s in which the stretch of cables that is seen takes over from the one that was stated, and how far it may differ."""
LEAST_LAG, IMPEDANCE_LAG = 0.5, 1.5
"""Shortest time constant of tensions, in control periods, however little a cable is damped: under efforts, which act
on the cables at once, and under impedances, through which tensions follow set points that move for a period."""


@allocation_free
def stretch_cables(
    equations, own, floor, q, v, seen_q, seen_v, kept, grown, faded, tension, elapsed, held, gone, begun, effort
):
    """Take tensions (c,) that the cables will have; see `CableStretch`, whose arrays are `own`.

    Args:
        equations: what `TightCables` has kept.
        kept, grown, faded: (c,) what is left of a difference after `elapsed` s, what it has grown by after `held` s,
            and what is left of a rate where the two differ. gone: s for which the rate went on, below zero where the
            cables' law says what came of it.

    Fills columns (c, 4) and moved (a, 4) of the stretch as it was seen, seen (c,) with what it pulls, and effort (a,);
    False where tension_1 is not square or singular, then pull stands for it.
    """
    _, parts, _, _, tight = taken(equations)
    joint_q, joint_v, kind, radius = parts.joint_q, parts.joint_v, parts.kind, parts.radius
    coupling, pivots, pull_solved, inputs = tight.coupling, tight.pivots, tight.pull_solved, tight.inputs
    column, tension_1 = tight.column, tight.tension_1
    springs, softness, elastic, rate, pulling, square, order, columns, moved, pull, bend_moved, seen = taken(own)
    cables = joint_q.shape[0]
    first = cables - tight.strain.shape[0]
    share = min(1.0, elapsed / SOFTENING)
    for c in range(cables):
        before = rate[c] * faded[c]
        now = elastic[c]
        if begun:
            now = now + gone * rate[c] if gone >= 0.0 else pulling[c] + (now - pulling[c]) * kept[c]
        change = (tension[c] - now) * grown[c] / held
        if not begun:  # begun anew, without a jump
            before = change
        elastic[c], pulling[c], rate[c] = now, tension[c], change
        unit = softness[c] / springs[c]
        amount, rest = 0.0, 1.0
        if c < first:
            amount, rest = q[joint_q[c] + 1], radius[c] * q[joint_q[c]]
        else:
            amount = tight.strain[c - first]  # that was seen, which the tight motion leaves as it is
        if kind[c] != joints.INVOLUTE_EPSILON:
            unit *= rest
        if kind[c] == joints.INVOLUTE_LENGTH:
            amount -= rest
        ratio = 1.0
        if now > 0.5 * floor[c] and now > 0.0 and amount > 0.0:
            ratio = amount / (unit * now)
        soft = softness[c] * (1.0 + share * (min(max(ratio, 1.0 / SOFTEST), SOFTEST) - 1.0))
        softness[c] = min(max(soft, 1.0 / SOFTEST), SOFTEST)
        unit = softness[c] / springs[c]
        if kind[c] != joints.INVOLUTE_EPSILON:
            unit *= rest
        pull[c, 0] = unit * (change - before) / held
        unit = softness[c] / springs[c]
        if c < first:
            rest = radius[c] * seen_q[joint_q[c]]
            columns[c, 0], columns[c, 1] = seen_q[joint_q[c] + 1], seen_v[joint_v[c] + 1]
        else:
            columns[c, 0], columns[c, 1] = tight.strain[c - first], tight.strain_rate[c - first]
        if kind[c] != joints.INVOLUTE_EPSILON:
            unit *= rest
        if kind[c] == joints.INVOLUTE_LENGTH:
            columns[c, 0] -= rest
            columns[c, 1] -= radius[c] * seen_v[joint_v[c]]
        seen[c] = max(columns[c, 0], 0.0) / unit
        columns[c, 2], columns[c, 3] = unit * now, unit * change
    move(coupling, pivots, pull_solved, inputs, column, columns, moved)
    move(coupling, pivots, pull_solved, inputs, column, pull, bend_moved)
    if square.shape[0] != tension_1.shape[1]:
        return False
    for c in range(cables):
        effort[c] = pull[c, 0]
        for a in range(cables):
            square[c, a] = tension_1[c, a]
    lu_factor(square, cables, order)
    for c in range(cables):
        if square[c, c] == 0.0:
            return False
    lu_solve(square, cables, order, effort)
    return True


class CableStretch:
    """The stretch of the driven cables of one robot.

    Args:
        equations: of the robot, whose `softness` is learned. period: s between two commands.
        impedance: whether the actuators close impedances around the efforts.

    Attributes:
        lag: (c,) s in which tensions follow what is asked for. elastic: (c,) N that the strains pull at the last
            command. seen: (c,) N that they pulled as they were seen.
        moved: (a, 4) of the last `efforts`: by what the stretch that was seen has moved the actuators, its rate, and
            the same of the stretch that was reckoned with.
    """

    def __init__(self, equations: TightCables, period: float, *, impedance: bool) -> None:
        self._equations, count = equations, len(equations.cables)
        self._inputs = len(equations.robot.actuators)
        self.lag = np.maximum(equations.relaxation, (IMPEDANCE_LAG if impedance else LEAST_LAG) * period)
        self._held = period
        self.elastic, self._rate, self._pulling = np.zeros(count), np.zeros(count), np.zeros(count)
        self.seen = np.zeros(count)
        self._begun = False
        self._decays: dict[float, Array] = {}
        self._ones = np.ones(count)
        self._square, self._order = np.zeros((count, count)), np.zeros(count, dtype=np.int64)
        self._columns, self.moved = np.zeros((count, 4)), np.zeros((self._inputs, 4))
        self._pull, self._bend = np.zeros((count, 1)), np.zeros((self._inputs, 1))
        self._kept = Kept(
            equations.springs, equations.softness, self.elastic, self._rate, self._pulling, self._square, self._order,
            self._columns, self.moved, self._pull, self._bend, self.seen,
        )  # fmt: skip
        self._stretch = QuickCall(stretch_cables)

    def begin(self, q: Array, v: Array) -> None:
        """Take what the cables' strains pull from a state."""
        amount, _, unit = self._equations.stretches(q, v)
        self.elastic[:], self._rate[:], self._begun = np.maximum(amount, 0.0) / unit, 0.0, False

    def efforts(
        self,
        q: Array,
        v: Array,
        seen: tuple[Array, Array],
        tension: Array,
        floor: Array,
        elapsed: float,
        held: float,
        carried: tuple[float, float] | None = None,
    ) -> Array:
        """(a,) efforts that stretch the cables as the tensions change: what tight cables leave out (000, 3.2.3).

        Args:
            q, v: when the command acts. seen: q and v as they were seen. tension, floor: (c,) N, floor and what
                comes next. elapsed: s since the last command. held: s for which this one will be.
            carried: where set points carry the stretch on at its rate, s for which they have since the last command,
                and the part of the rate that is left; None: efforts, under which it follows the cables' law.
        """
        effort = np.zeros(self._inputs)
        if not tension.size:
            return effort
        self._equations.see(*seen)
        gone, faded = -1.0, self._ones
        if carried is not None:
            gone, faded = carried[0], carried[1] * self._ones
        elif elapsed != self._held:
            faded = np.exp((self._held - elapsed) / self.lag)
        solved = self._stretch(
            self._equations.kept, self._kept, floor, q, v, *seen, self._decay(elapsed), 1.0 - self._decay(held), faded,
            tension, elapsed, held, gone, self._begun, effort,
        )  # fmt: skip
        self._begun, self._held = True, held
        if solved:
            return effort
        tension_1 = self._equations.arrays.tension_1
        if tension_1.shape[0] == tension_1.shape[1]:
            return np.linalg.solve(tension_1, self._pull[:, 0])
        return np.asarray(np.linalg.lstsq(tension_1, self._pull[:, 0], rcond=1e-9)[0])

    def _decay(self, time: float) -> Array:
        """(c,) what is left of a difference after a time [s]; nearly always the same one."""
        found = self._decays.get(time)
        if found is None:
            if len(self._decays) > 1:
                self._decays.clear()
            found = self._decays[time] = np.exp(-time / self.lag)
        return found
