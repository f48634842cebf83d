"""Efforts and actuator motion for the stretch of elastic cables, in addition to the tight motion of `TightCables`.

With e the tension from the strain alone, the law of each cable, T = e + (damping / stiffness) e', is solved forward in
time for e, over the time for which the last command was held. The rate of e is the mean rate over the time for which
this command will be held. Set points that move on by themselves continue the stretch at that rate until the next
command; its value then is the rate times the elapsed time. There is no feedback, so that no delay makes it unstable.
The compliance of the cables is learned from measured strains, since a wrong value would displace the actuators'
impedances.
"""

from __future__ import annotations

import numpy as np

from tensegrity_dynamics.mechanisms import joints
from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables, move
from tensegrity_dynamics.numerics.compilation import Kept, QuickCall, allocation_free, for_compiled_callers, taken
from tensegrity_dynamics.numerics.linear_algebra import lu_factor, lu_solve
from tensegrity_dynamics.numerics.types import Array

SOFTENING, SOFTEST = 0.3, 2.0
"""Time constant with which the measured compliance of the cables replaces the stated one [s], and the largest factor
between both."""
LEAST_LAG, IMPEDANCE_LAG = 0.5, 1.5
"""Shortest time constant of tensions, in control periods, for weakly damped cables: under efforts, which act on the
cables at once, and under impedances, where tensions follow set points that move for one period."""


@for_compiled_callers
def per_newton(parts, springs, softness, q, c, first):
    """Stretch of cable c per newton at positions q; strands of routed cables begin with number `first`."""
    unit = softness[c] / springs[c]
    if c < first and parts.kind[c] != joints.INVOLUTE_EPSILON:
        unit *= parts.radius[c] * q[parts.joint_q[c]]
    return unit


@for_compiled_callers
def fill_seen(parts, tight, springs, softness, q, v, columns, seen):
    """Fill the first two columns (c,) with the stretch at a measured state and its rate, and seen (c,) with the
    tensions from it [N]."""
    joint_q, joint_v, radius = parts.joint_q, parts.joint_v, parts.radius
    first = joint_q.shape[0] - tight.strain.shape[0]
    for c in range(joint_q.shape[0]):
        if c < first:
            columns[c, 0], columns[c, 1] = q[joint_q[c] + 1], v[joint_v[c] + 1]
        else:
            columns[c, 0], columns[c, 1] = tight.strain[c - first], tight.strain_rate[c - first]
        if parts.kind[c] == joints.INVOLUTE_LENGTH:
            columns[c, 0] -= radius[c] * q[joint_q[c]]
            columns[c, 1] -= radius[c] * v[joint_v[c]]
        seen[c] = max(columns[c, 0], 0.0) / per_newton(parts, springs, softness, q, c, first)


@allocation_free
def stretch_cables(
    equations, own, floor, q, v, seen_q, seen_v, kept, grown, faded, tension, elapsed, held, gone, begun, effort
):
    """Change the tensions (c,) to those that the cables will have; see `CableStretch`, whose arrays are `own`.

    Args:
        equations: those that `TightCables` has kept.
        kept, grown, faded: (c,) remainder of a difference after `elapsed` s, its growth after `held` s, and the
            remainder of a rate where the two differ. gone: time for which the rate continued [s]; below zero: the
            cables' law gives the result.

    Fills columns (c, 4) and moved (a, 4) of the measured stretch, seen (c,) with its tensions, and effort (a,). Returns
    False if tension_1 is not square or is singular; pull then replaces it.
    """
    _, parts, _, _, tight = taken(equations)
    joint_q, kind, radius = parts.joint_q, parts.kind, parts.radius
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
        if not begun:  # start without a jump
            before = change
        elastic[c], pulling[c], rate[c] = now, tension[c], change
        amount = q[joint_q[c] + 1] if c < first else tight.strain[c - first]  # tight motion leaves measured strains
        if kind[c] == joints.INVOLUTE_LENGTH:
            amount -= radius[c] * q[joint_q[c]]
        ratio = 1.0
        if now > 0.5 * floor[c] and now > 0.0 and amount > 0.0:
            ratio = amount / (per_newton(parts, springs, softness, q, c, first) * now)
        soft = softness[c] * (1.0 + share * (min(max(ratio, 1.0 / SOFTEST), SOFTEST) - 1.0))
        softness[c] = min(max(soft, 1.0 / SOFTEST), SOFTEST)
        pull[c, 0] = per_newton(parts, springs, softness, q, c, first) * (change - before) / held
        unit = per_newton(parts, springs, softness, seen_q, c, first)
        columns[c, 2], columns[c, 3] = unit * now, unit * change
    fill_seen(parts, tight, springs, softness, seen_q, seen_v, columns, seen)
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
    """Stretch of the driven cables of one robot.

    Args:
        equations: of the robot, whose `softness` is learned. period: s between two commands.
        impedance: whether the actuators close impedances around the efforts.

    Attributes:
        lag: (c,) time constant with which tensions follow their command [s]. elastic: (c,) tensions from the strains at
            the last command [N]. seen: (c,) tensions from the measured strains [N].
        moved: (a, 4) of the last `efforts`: actuator displacement by the measured stretch, its rate, and both for the
            predicted stretch. kept: arrays, as `stretch_cables` takes them.
    """

    def __init__(self, equations: TightCables, period: float, *, impedance: bool) -> None:
        self._equations, count = equations, len(equations.cables)
        self._inputs = len(equations.robot.actuators)
        self.lag = np.maximum(equations.relaxation, (IMPEDANCE_LAG if impedance else LEAST_LAG) * period)
        self._held = period
        self.elastic, self._rate, self._pulling = np.zeros(count), np.zeros(count), np.zeros(count)
        self.seen = np.zeros(count)
        self._begun = False
        self._decays: dict[float, tuple[Array, Array]] = {}
        self._ones = np.ones(count)
        self._square, self._order = np.zeros((count, count)), np.zeros(count, dtype=np.int64)
        self._columns, self.moved = np.zeros((count, 4)), np.zeros((self._inputs, 4))
        self._pull, self._bend = np.zeros((count, 1)), np.zeros((self._inputs, 1))
        self.kept = Kept(
            equations.springs, equations.softness, self.elastic, self._rate, self._pulling, self._square, self._order,
            self._columns, self.moved, self._pull, self._bend, self.seen,
        )  # fmt: skip
        self._stretch = QuickCall(stretch_cables)

    def begin(self, q: Array, v: Array) -> None:
        """Initialise the tensions of the strains from a state."""
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
        """Efforts (a,) that stretch the cables as the tensions change, which tight cables neglect (000, 3.2.3).

        Args:
            q, v: when the command acts. seen: measured q and v, those of the last `equations.see`. tension, floor: (c,)
                N, floor and next tension.
            elapsed: time since the last command [s]. held: time for which this command will be held [s].
            carried: for set points that continue the stretch at its rate: the time for which they have done so since
                the last command [s], and the remaining fraction of the rate; None: efforts, under which the stretch
                follows the cables' law.
        """
        effort = np.zeros(self._inputs)
        if not tension.size:
            return effort
        gone, faded = -1.0, self._ones
        if carried is not None:
            gone, faded = carried[0], self._ones if carried[1] == 1.0 else carried[1] * self._ones
        elif elapsed != self._held:
            faded = np.exp((self._held - elapsed) / self.lag)
        (kept, _), (_, grown) = self._decay(elapsed), self._decay(held)
        solved = self._stretch(
            self._equations.kept, self.kept, floor, q, v, *seen, kept, grown, faded, tension, elapsed, held, gone,
            self._begun, effort,
        )  # fmt: skip
        self._begun, self._held = True, held
        if solved:
            return effort
        tension_1 = self._equations.arrays.tension_1
        if tension_1.shape[0] == tension_1.shape[1]:
            return np.linalg.solve(tension_1, self._pull[:, 0])
        return np.asarray(np.linalg.lstsq(tension_1, self._pull[:, 0], rcond=1e-9)[0])

    def _decay(self, time: float) -> tuple[Array, Array]:
        """Remainder (c,) of a difference after a time [s], and what is gone of it; the last results are kept, as the
        time rarely changes."""
        found = self._decays.get(time)
        if found is None:
            if len(self._decays) > 1:
                self._decays.clear()
            left = np.exp(-time / self.lag)
            found = self._decays[time] = left, 1.0 - left
        return found
