"""Growth rate of the output's error while the efforts are held constant, and its largest admissible value.

Prestress, and weight above its support, amplify a small displacement from rest. Linearised about the efforts that hold
the output, with tight cables (`tight_cables`) and y along the motions that move the output with the least inertia, the
displacement and its growth rate p are

    dy'' = S dy,   p = max Re sqrt(eig S)

until a command reacts. `qp` compensates S dy in every command, so that an exact model of S would need no margin. Two
errors remain: the growth before a command reacts, and the error of the model. Both limit the rate:

    p (T + L) <= GROWN,   p <= FASTER w

with the control period T, the time L from a state to its command, and the bandwidth w of the output's loop. Where
actuators close impedances and `set_point_offset` removes the delay from S, neither error matters as long as the
impedances resist: K - S draws the output to its set points, and only the growth that a share of K leaves counts,

    p = max Re sqrt(eig (S - RESISTED K))

The rate rises steeply towards poses that no effort holds. Its trend counts, too: a motion ends where the trend exceeds
the admissible rate of the design within the braking time. At `1 + BEYOND` times the admissible rate the loop is given
up, and the actuators' impedances alone hold a robot that has them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tensegrity_dynamics.errors import InfeasibleControlError, TensegrityError
from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables
from tensegrity_dynamics.numerics.compilation import QuickCall, allocation_free, for_compiled_callers, taken
from tensegrity_dynamics.numerics.linear_algebra import eigenvalues, lu_factor, lu_solve, orthogonalise_rows
from tensegrity_dynamics.numerics.types import Array

GROWN = 0.5
"""Logarithm of the largest growth within period and delay."""
FASTER = 4.0
"""Multiple of the bandwidth of the output, which corrects errors of the model: 1/16 of S may be wrong."""
CONTINUED = 0.5 / FASTER
"""Logarithm of the largest growth within a command that may have to last longer than a period, L. Its tensions follow
within L, so that they compensate S dy late: this takes p^2 L <= w / 2 of the damping 2 w, even at p = FASTER w."""
RESISTED = 1.0 / 16.0
"""Share of the stiffness K of actuators with impedances that counts against S. A robot with this share is stable by
itself, with S and K far from those of the model, and its vibrations are much faster than its growth."""
UNREPORTED = 2.0
"""Unreported delay [periods] that a loop tolerates."""
RISE = 2.0
"""Margin of a period that follows from the robot, as a multiple of the initial growth rate: it rises along a path."""
SHORTEST_PERIOD, LONGEST_PERIOD = 0.001, 0.01
"""Limits of periods that follow from the robot [s], in whole multiples of the shortest. No actuator closes its own loop
faster, and with longer periods the output follows less closely."""
LEAST_MARGIN = 0.05
"""Fraction of the admissible rate that must be left at the start; a robot with less is refused."""
BEYOND = 0.5
"""Fraction of the admissible rate above which the loop is given up, in excess of it."""
LOOKS = 2
"""Periods between two steps of an evaluation, which begins in a period without a check of `SingularityGuard`."""
TOWARDS = 1e-3
"""Distance towards a goal [m or rad] over which the rate must not rise where no margin is left."""
UNMOVED = 1e-3
"""Change of the coordinates [rad and m], and of the efforts as a fraction of the limits, above which the rate is
evaluated again."""
STEP = 1e-5
"""Step of the largest coordinate in finite differences [rad or m]."""
IMMOBILE = 1e-9
"""Fraction of the output's mobility with slack cables below which the output with tight cables counts as immobile."""
DEPENDENT = 1e-12
"""Square of the effect of efforts, relative to the largest, below which it counts as zero."""


@allocation_free
def fill_nearest(output_0, output_1, size, effort, rows, held):
    """Fill held (a,) with the efforts that hold the output and are nearest to `effort` (a,), relative to the limits
    `size`.

    Args:
        rows: (k, a + 1), scratch.
    """
    outputs, inputs = output_1.shape
    for k in range(outputs):
        rows[k, inputs] = output_0[k]
        for a in range(inputs):
            rows[k, a] = output_1[k, a] * size[a]
            rows[k, inputs] += output_1[k, a] * effort[a]
    _, largest = orthogonalise_rows(rows, inputs)
    for a in range(inputs):
        held[a] = effort[a]
    for k in range(outputs):
        square = 0.0
        for a in range(inputs):
            square += rows[k, a] * rows[k, a]
        if square > DEPENDENT * largest:
            for a in range(inputs):
                held[a] -= size[a] * rows[k, a] * rows[k, inputs] / square


@for_compiled_callers
def fill_directions(tight, basis, inertia, order, solved, directions):
    """Fill directions (k, nv) with the velocities that each move one row of the output with the least inertia, with
    tight cables.

    Args:
        inertia: (k, k), order: (k,), solved: (k + 1, n), scratch.

    Returns whether such directions exist.
    """
    outputs, n = tight.jacobian.shape
    cables, column, moved = tight.stretch.shape[0], tight.column, solved[outputs]
    for k in range(outputs):
        for c in range(cables):
            column[c] = 0.0
            for i in range(n):
                column[c] += tight.stretch[c, i] * tight.output_solved[k, i]
        lu_solve(tight.coupling, cables, tight.pivots, column)
        for i in range(n):
            solved[k, i] = tight.output_solved[k, i]
            for c in range(cables):
                solved[k, i] -= tight.pull_solved[c, i] * column[c]
        for m in range(outputs):
            inertia[k, m] = 0.0
            for i in range(n):
                inertia[k, m] += tight.jacobian[m, i] * solved[k, i]
    lu_factor(inertia, outputs, order)
    for k in range(outputs):
        if not abs(inertia[k, k]) > IMMOBILE * tight.mobility[k, k]:
            return False
    for i in range(n):
        for k in range(outputs):
            moved[k] = solved[k, i]
        lu_solve(inertia, outputs, order, moved)
        for k in range(outputs):
            solved[k, i] = moved[k]
    for k in range(outputs):
        for d in range(directions.shape[1]):
            directions[k, d] = 0.0
            for i in range(n):
                directions[k, d] += basis[d, i] * solved[k, i]
    return True


@allocation_free
def begin_look(
    equations, size, effort, stiffness, inertia, order, solved, directions, steps, rows, held, base, restoring
):  # fmt: skip
    """First step of an evaluation: fill directions (k, nv), steps (k,) along them, efforts `held` (a,) that hold the
    output, its acceleration `base` (k,) under these, and restoring (k, k), its acceleration towards set points at unit
    distances, by actuators of a stiffness (a,). Returns whether there are directions. `equations` are those that
    `TightCables` has kept."""
    _, parts, _, reduction, tight = taken(equations)
    if not fill_directions(tight, reduction.basis, inertia, order, solved, directions):
        return False
    for k in range(directions.shape[0]):
        largest = 1e-12
        for d in range(directions.shape[1]):
            largest = max(largest, abs(directions[k, d]))
        steps[k] = STEP / largest
        for m in range(directions.shape[0]):
            restoring[m, k] = 0.0
            for a in range(stiffness.shape[0]):
                restoring[m, k] += tight.output_1[m, a] * stiffness[a] * directions[k, parts.drive[a]]
    fill_nearest(tight.output_0, tight.output_1, size, effort, rows, held)
    fill_motion(tight, held, base)
    return True


@for_compiled_callers
def fill_motion(tight, effort, motion):
    """Fill motion (k,) with the output's acceleration under efforts (a,)."""
    for k in range(motion.shape[0]):
        motion[k] = tight.output_0[k]
        for a in range(effort.shape[0]):
            motion[k] += tight.output_1[k, a] * effort[a]


@allocation_free
def growth_of(slopes, work, values):
    """max Re sqrt(eig S) of slopes (k, k), negative if not found; work (k, k) and values (k,) are complex scratch."""
    for k in range(slopes.shape[0]):
        for m in range(slopes.shape[0]):
            work[k, m] = slopes[k, m]
    if not eigenvalues(work, values):
        return -1.0
    largest = 0.0
    for value in values:
        largest = max(largest, np.sqrt(value).real)
    return largest


class HeldGrowth:
    """See the module.

    Args:
        equations: of the robot; every evaluation leaves them at another state. effort: limits (a,) [N m or N].

    Attributes:
        rate: p [1/s] of the last complete evaluation; bare: that without impedances. slopes: S (k, k). directions: (k,
            nv) velocities of unit rates of the output, of the last evaluation that began. allowed: admissible rate of
            the design; affords: the present one. Both may be changed. held: efforts (a,) that hold the output, of the
            last evaluation. stiffness: (a,) [N m/rad or N/m] with which actuators and cables draw the output to its set
            points; zero without impedances.
    """

    def __init__(self, equations: TightCables, effort: Array) -> None:
        self._equations, self._effort = equations, effort
        outputs, count = equations.parts.axes.size, equations.mechanism.velocity_count
        self._still, self.directions = np.zeros(count), np.zeros((outputs, count))
        self.slopes, self._slopes, self._inertia, self._restoring = np.zeros((4, outputs, outputs))
        self._steps, self._base, self._motion = np.zeros((3, outputs))
        self._spectrum = np.zeros((outputs, outputs), dtype=np.complex128), np.zeros(outputs, dtype=np.complex128)
        self._load, self._now = np.zeros((2, *equations.work.load.shape))
        self._rows, self._order = np.zeros((outputs, effort.size + 1)), np.zeros(outputs, dtype=np.int64)
        self._solved = np.zeros((outputs + 1, max(equations.count, outputs)))
        self._nearest, self._begin_look = QuickCall(fill_nearest), QuickCall(begin_look)
        self._growth_of = QuickCall(growth_of)
        self.rate, self.bare, self.allowed, self.affords = 0.0, 0.0, np.inf, np.inf
        self.stiffness = np.zeros(effort.size)
        self.held = np.zeros(effort.size)
        self._next = -1
        self._looked, self._before = 1, (-np.inf, 0.0)
        self._coming = 0.0

    @staticmethod
    def afforded(period: float, late: float, bandwidth: float) -> float:
        """Admissible rate [1/s] of a loop with this period [s], delay `late` [s] and bandwidth w [1/s]."""
        return min(GROWN / (period + max(late, 0.0)), FASTER * bandwidth)

    @staticmethod
    def designed(period: float, bandwidth: float) -> float:
        """Admissible rate [1/s] of a loop with the unreported delay that it tolerates; period in s, w in 1/s."""
        return HeldGrowth.afforded(period, UNREPORTED * period, bandwidth)

    def interval(self, most: float, repeated: float) -> float:
        """Time [s] that tensions may take to follow a command.

        Args:
            most: s, longest recent interval between commands; it counts as far as it costs no damping.
            repeated: s, second longest one. An interval that came twice will come again, and tensions that followed a
                command sooner would leave their bounds before the next one; it counts up to the admissible growth.
        """
        if not self.bare > 0.0:
            return most
        return max(min(most, CONTINUED / self.bare), min(repeated, GROWN / self.bare))

    def least_bandwidth(self, most: float) -> float:
        """w [1/s], up to `most`, that the output's loop needs for the present rate."""
        return min(self.bare / FASTER, most)

    def begin(self, q: Array, efforts: Sequence[Array]) -> None:
        """Evaluate the rate at q (nq,) for each of the efforts (a,) that may hold the output; the largest counts."""
        found = [(self.rate_at(q, each), self.bare) for each in efforts]
        self.rate, self.bare = (max(each) for each in zip(*found, strict=True))
        self._before = -np.inf, 0.0
        self.held = np.array(efforts[0])

    def rate_at(self, q: Array, effort: Array) -> float:
        """p [1/s] at position q (nq,) under the efforts nearest to `effort` (a,) that hold the output."""
        kept, self._next = self.rate, -1
        while not self.look(q, effort):
            pass
        found, self.rate = self.rate, kept
        return found

    def refuse(self, period: float) -> None:
        """Raise TensegrityError if the initial rate exceeds the admissible one of a loop with this period [s]."""
        if self.rate > (1.0 - LEAST_MARGIN) * self.allowed:
            factor = self.rate / (self.allowed * (1.0 - LEAST_MARGIN))
            raise TensegrityError(
                f"{self._equations.robot.name} diverges from rest with {self.rate:.3g} 1/s under a held command, and a "
                f"loop with a period of {period:g} s and a delay of {UNREPORTED:g} periods holds up to "
                f"{self.allowed:.3g} 1/s. Shorten the period by a factor of {factor:.2g} or more, use a larger "
                "bandwidth, or reduce the prestress."
            )

    def refuse_goal(self, q: Array, direction: Array) -> None:
        """Raise InfeasibleControlError if commands come too late for the rate, or if no margin is left and motion of
        the output along `direction` (k,) raises it."""
        size = float(np.linalg.norm(direction))
        if not size > 0.0:
            return
        if self.too_late:
            raise InfeasibleControlError(f"{self.words()}; it takes goals again when commands come sooner.")
        if self.rate <= (1.0 - LEAST_MARGIN) * self.allowed:
            return
        here = self.rate_at(q, self.held)
        velocity = self.directions.T @ (direction / size)
        there = self.rate_at(self._equations.moved(q, velocity, min(TOWARDS, size)), self.held)
        self._equations.update(q, self._still)
        if there > here:
            raise InfeasibleControlError(f"on the path to this goal {self.words()}; choose another goal.")

    def words(self) -> str:
        """Reason for which motions are refused or stopped."""
        most = (1.0 - LEAST_MARGIN) * min(self.affords, self.allowed)
        coming = f", {self._coming:.3g} 1/s before it could stop" if self.rate <= most < self._coming else ""
        return (
            f"the output diverges under a held command faster than the loop can hold it ({self.rate:.3g} 1/s in this "
            f"configuration{coming}, up to {most:.3g} 1/s can be held)"
        )

    @property
    def for_period(self) -> float:
        """p [1/s] for which a period is chosen: without impedances, unless half of their share leaves no growth.

        Under random delays an arm that its impedances held with K of 9 to 24 times S was lost at the period for the
        growth that they left, and held at the period for all of S; with 37 times S it was held at any.
        """
        rests = self._growth(self.slopes - 0.5 * RESISTED * self._restoring) > 0.0
        return self.bare if rests else self.rate

    @property
    def too_late(self) -> bool:
        """Whether commands come too late for the rate."""
        return self._exceeds((1.0 - LEAST_MARGIN) * self.affords)

    @property
    def beyond(self) -> bool:
        """Whether the rate clearly exceeds the present admissible one."""
        return self._exceeds((1.0 + BEYOND) * self.affords)

    def _exceeds(self, most: float) -> bool:
        """Whether the rate exceeds `most` [1/s], also where twice the share of the impedances counts."""
        if self.rate <= most or not self.stiffness.any():
            return self.rate > most
        return self._growth(self.slopes - 2.0 * RESISTED * self._restoring) > most

    def watch(self, time: float, q: Array, effort: Array, ahead: float) -> bool:
        """Continue the evaluation at time [s] with the present efforts (a,). Returns whether the rate exceeds the
        admissible one within `ahead` s. The equations may be at another state afterwards."""
        self._looked += 1
        if self._looked < LOOKS:
            return False
        self._looked = 0
        if self._next < 0 and self._is_as_before(q, effort):
            return False
        if not self.look(q, effort):
            return False
        before, square = self._before
        now = self.rate * self.rate  # an eigenvalue of S, which is smooth; its root rises steeply where it passes zero
        trend = (now - square) / (time - before) if time > before else 0.0
        self._before = time, now
        self._coming = math.sqrt(now + ahead * max(trend, 0.0))
        return trend > 0.0 and self._coming > (1.0 - LEAST_MARGIN) * self.allowed

    def _is_as_before(self, q: Array, effort: Array) -> bool:
        """Whether nothing that the rate depends on has changed since the last evaluation began."""
        moved, pulled = q - self._q, (effort - self._pulled) / self._effort
        return bool(moved @ moved < UNMOVED**2 and pulled @ pulled < UNMOVED**2)

    def look(self, q: Array, effort: Array) -> bool:
        """One step of an evaluation, which costs at most as much as one update; returns True for the last step.

        All steps of an evaluation use the q, efforts and loads of the first step.

        Raises:
            InfeasibleControlError: in some direction nothing moves the output here.
        """
        equations, count = self._equations, self._steps.size
        if self._next < 0:
            equations.update(q, self._still)
            self._q, self._pulled, self.held = np.array(q), np.array(effort), np.empty_like(self._effort)
            self._load[:] = equations.work.load
            if not self._begin_look(
                equations.kept, self._effort, self._pulled, self.stiffness, self._inertia, self._order, self._solved,
                self.directions, self._steps, self._rows, self.held, self._base, self._restoring,
            ):  # fmt: skip
                raise InfeasibleControlError(
                    "the actuators cannot move the output in this configuration (singularity)."
                )
            self._next = 0
            return False
        if self._next == count:
            self._next = -1
            self.slopes[:] = self._slopes
            self.bare = self.rate = self._growth(self._slopes)
            if self.bare > 0.0 and self.stiffness.any():
                self.rate = self._growth(self._slopes - RESISTED * self._restoring)
            return True
        load, direction, step = equations.work.load, self._next, float(self._steps[self._next])
        self._now[:], load[:] = load, self._load  # a changed load would falsify the finite differences
        equations.held(self._q, self.held, step, self.directions[direction], self._motion)
        load[:] = self._now
        self._slopes[:, direction] = (self._motion - self._base) / step
        self._next += 1
        return False

    def _growth(self, slopes: Array) -> float:
        """max Re sqrt(eig S) [1/s] of slopes (k, k)."""
        found = self._growth_of(slopes, *self._spectrum)
        return found if found >= 0.0 else float(np.max(np.sqrt(np.linalg.eigvals(slopes).astype(complex)).real))

    def holding(self, tension: Array) -> Array:
        """Efforts (a,) that hold the output, nearest to tensions (c,) [N], at the last `equations.update`."""
        arrays, size = self._equations.arrays, self._effort
        if not tension.size:
            return np.asarray(np.linalg.lstsq(arrays.output_1, -arrays.output_0, rcond=1e-9)[0])
        scale = max(float(np.max(tension)), 1e-9)
        near = np.linalg.lstsq(arrays.tension_1 * size / scale, (tension - arrays.tension_0) / scale, rcond=1e-6)[0]
        return self._nearest_holding(size * near)

    def _nearest_holding(self, effort: Array) -> Array:
        """Efforts (a,) that hold the output at the state of the equations, nearest to `effort` (a,) relative to the
        limits."""
        arrays, held = self._equations.arrays, np.empty_like(self._effort)
        self._nearest(arrays.output_0, arrays.output_1, self._effort, np.asarray(effort), self._rows, held)
        return held


def longest_period(rate: float, bandwidth: Callable[[float], float]) -> float:
    """Control period [s] that a robot needs at its start.

    Args:
        rate: p [1/s]. bandwidth: w [1/s] as a function of the period [s], not rising with it.

    The longest multiple of `SHORTEST_PERIOD` up to `LONGEST_PERIOD` for which a loop is designed for `RISE` p; the
    shortest if there is none. A robot whose error grows faster never gets a longer period.
    """
    for count in range(round(LONGEST_PERIOD / SHORTEST_PERIOD), 1, -1):
        period = count * SHORTEST_PERIOD
        if RISE * rate <= (1.0 - LEAST_MARGIN) * HeldGrowth.designed(period, bandwidth(period)):
            return period
    return SHORTEST_PERIOD
