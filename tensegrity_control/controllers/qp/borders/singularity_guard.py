"""Guard that stops the output before singular configurations, with enough distance to brake.

The efforts u within their limits U accelerate the output by y'' = b_0 + B u. The distance to a singularity is

    d = s_min / max(s_max, s_max of the start) of D^-1 B U,   scaled to 1 at the start

with D the norms of its rows at the start. s_max of the start is included because a loss that all rows share counts as
well; otherwise an output of one axis would never come near a singularity. d is zero if the output cannot move along
some direction (a stretched arm, J loses rank) or if the actuators do not hold it along some direction (a parallel robot
with aligned links), and it does not depend on the choice of coordinates.

Before a stretched arm the output's rates are lost much earlier than its accelerations, so d is at most the part that
is left of them (`rate_authority`).

Cables cannot push. So d is at most the remaining part of the efforts that hold the output (`holding_reserve`, limited
to one at the start), and for a robot that hangs in its cables at most the distance of the tensions from their floors
(`tension_headroom`, limited to one floor at the start). With h = d - margin the law is a brake that limits the speed of
the approach,

    h' >= -r(h),   r(h) = sqrt(2 a h + (a/k)^2) - a/k  (k h where h < 0),   e = h' + r(h),   e' >= -2 k e

so that the acceleration limit a is enough to stop before the margin; nearer than a / k^2 the approach decays like
exp(-k t). The law bounds the acceleration of the output along the gradient of each of these distances, since one that
is kept may lead to another. It changes the desired acceleration as little as possible in the metric of the robot's
inertia, so that motions along the borders or away from them continue.

Where that is a rotation of a robot that hangs, it only lets the robot go on with its reference, against the loop. So
the reference itself brakes before tension floors, at a rate r(h) with twice the margin and the deceleration a of the
output, and its goal is given up there.
"""

from __future__ import annotations

import math

import numpy as np

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables
from tensegrity_dynamics.numerics.compilation import QuickCall, allocation_free
from tensegrity_dynamics.numerics.linear_algebra import orthogonalise_rows
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.output_frame import AXES

from .holding_reserve import HoldingReserve
from .rate_authority import RateAuthority
from .tension_headroom import TensionHeadroom

NEAR = 4.0
"""Distance in margins below which the gradient is evaluated."""
FORESEEN = 6.0
"""Time to the margin, in time constants of the output's loop, below which the gradient is evaluated as well."""
IN_MOTION = 0.5
"""Fraction of the headroom at the start by which efforts that brake a motion may leave more than efforts that hold the
output."""
FAR_LOOKS = 4
"""Number of periods between two evaluations of the distance while it is large."""
STEP, SMALL_STEP = 1e-3, 1e-5
"""rad or m of the largest coordinate: steps of the second differences along the motion, and of the gradient."""
NO_AUTHORITY = 1e-9
"""Fraction of the largest singular value below which the start itself is singular and the guard is off."""
LEAST_AUTHORITY = 1e-3
"""Fraction of the largest singular value, with rows of equal norm, below which axes cannot be controlled separately: an
effort along one of them would need the exact balance of efforts a thousand times larger, which no motor achieves."""
ROUNDING = 1e-12
"""Fraction of it that counts as zero."""
WEAK = 0.02
"""Fraction of the largest singular value below which a direction of the output is reported as slow, since its speed is
proportional to it."""
SWEEPS = 30
"""Number of passes over the constraints that may act at the same time."""
TINY = 1e-300
NO_BOUND = np.array(np.inf)
LEAST_PART = 0.3
"""Component of the lost direction above which messages name an axis."""


@allocation_free
def authority(rows, output, effort, least_largest, scaled):
    """s_min / s_max of D^-1 B U (k, a), which is written into `scaled`, with s_max at least `least_largest`; 0 with
    fewer efforts than rows."""
    count, inputs = output.shape
    for k in range(count):
        for a in range(inputs):
            scaled[k, a] = rows[k] * output[k, a] * effort[a]
    if inputs < count:
        return 0.0
    least, largest = orthogonalise_rows(scaled, inputs)
    largest = max(largest, least_largest * least_largest)
    return np.sqrt(least / largest) if largest > 0.0 else 0.0


@allocation_free
def least_change(matrix, shorts, multipliers):
    """Fill multipliers (m,), zero or positive, of the smallest change that satisfies all constraints.

    It is Hildreth's method for matrix @ multipliers >= shorts with complementarity. Constraints that contradict each
    other are met as far as the passes lead.
    """
    multipliers[:] = 0.0
    for _ in range(SWEEPS):
        for k in range(shorts.shape[0]):
            if not matrix[k, k] > 0.0:
                continue
            left = shorts[k]
            for m in range(shorts.shape[0]):
                left -= matrix[k, m] * multipliers[m]
            multipliers[k] = max(0.0, multipliers[k] + left / matrix[k, k])


def _approach(gap: float, brake: float, pace: float) -> float:
    """r(h), see the module: rate [1/s] at which a gap h may close with a deceleration [1/s^2] and k = `pace` [1/s]."""
    soft = brake / pace
    return pace * gap if gap < 0.0 else math.sqrt(2.0 * brake * gap + soft * soft) - soft


class SingularityGuard:
    """Guard of the output; see the module.

    Args:
        equations: equations of the robot at the state of their last `update`.
        effort: (a,) effort limits, N m or N.
        floor: (c,) N, tension floors of the actuated cables.
        margin: smallest d, as a fraction of d at the start; 0 switches the guard off.
        rates: output rates that the actuators reach.

    Attributes:
        distance: d as a fraction of d at the start, at the last evaluation.
        reason: why the output is held, "" if it is not.
        by_floors: whether tension floors were near at the last evaluation.
        spare: (c,) N, largest reserve above tension floors where the last motion was braked before them: higher ones
            would push a robot that hangs off that border; infinite elsewhere.
        pace: of the reference that the law allows towards tension floors; infinite elsewhere.
        within: s, time in which the reference brakes from its full pace.
    """

    def __init__(
        self, equations: TightCables, effort: Array, floor: Array, margin: float, rates: RateAuthority
    ) -> None:
        self._rates = rates
        self._equations, self._effort, self.margin = equations, effort, margin
        self._ratio, self._turned = QuickCall(authority), np.zeros_like(equations.arrays.output_1)
        self.reserve = HoldingReserve(equations, effort, floor)
        self.headroom = TensionHeadroom(equations, effort, floor)
        self.begin()

    def begin(self) -> None:
        """Use the state of the last `update` as the start."""
        authority = self._equations.arrays.output_1 * self._effort
        size = np.linalg.norm(authority, axis=1)
        self._rows = 1.0 / np.where(size > 0.0, size, 1.0)
        self._start, self.distance, self.reason, self._looked = 1.0, 1.0, "", FAR_LOOKS
        self.pace, self.within, self.spare = np.inf, 0.0, NO_BOUND
        self._coming, self._acts = 0.0, False  # rate towards floors at full pace [1/s]; whether the law itself is near
        self._braked = False  # whether floors brake the reference, or did so at the end of its last motion
        self._largest = float(np.linalg.norm(self._rows[:, None] * authority, 2))
        start, reserve = self._authority(), self.reserve.value()
        self._guards = start > NO_AUTHORITY
        self._start = start if self._guards else 1.0
        self._rates.begin()
        self._reserve_start, self._strained = min(max(reserve, 0.0), 1.0), False
        self._headroom_start, self._above, self.by_floors = 0.0, np.inf, False
        self._apart, self._found = 1.0, np.ones(1)
        self.headroom.begin(self._equations.tension)
        if self.headroom.hangs:
            self._headroom_start = min(max(self.headroom.value(), 0.0), 1.0)

    def refuse_singular(self) -> None:
        """Raise TensegrityError if the robot cannot move a controlled axis of its output at all, or not separately from
        others."""
        still = np.diagonal(self._equations.arrays.mobility)
        if not np.all(still > NO_AUTHORITY**2 * np.max(still, initial=0.0)):
            axes = [AXES[row] for row, size in zip(self._equations.parts.axes, still, strict=True) if not size > 0.0]
            raise TensegrityError(
                f"{self._equations.robot.name} is in a singular configuration: no actuator moves its output along "
                f"{' and '.join(axes) or 'an axis'}. Start it in another configuration, or move it to one by its "
                "actuators first (controller joint_position)."
            )
        efforts = self._equations.arrays.output_1 * self._effort
        size = np.linalg.norm(efforts, axis=1)
        directions, values, _ = np.linalg.svd(efforts / np.where(size > 0.0, size, 1.0)[:, None])
        if efforts.shape[0] <= efforts.shape[1] and values[-1] < LEAST_AUTHORITY * values[0]:
            axes, share = self._axes_of(directions[:, -1]), float(values[-1] / values[0])
            takes = "is not possible"
            if share > ROUNDING:
                takes = f"takes {1.0 / share:.1g} times the effort of other directions"
            raise TensegrityError(
                f"{self._equations.robot.name} is in a singular configuration: to move {' and '.join(axes)} of its "
                f"output independently {takes}. Start it in another configuration, remove {' or '.join(axes)} from "
                "`controlled` of the output, or move the robot by its actuators first (controller joint_position)."
            )

    def slow_axes(self) -> list[str]:
        """Axes along or about which efforts hardly move the output at the state of the last `update`; empty for most
        robots."""
        axes = np.array(self._equations.parts.axes)
        efforts = self._equations.arrays.output_1 * self._effort
        for rows in (axes < 3, axes >= 3):  # m and rad are not comparable
            directions, values, _ = np.linalg.svd(efforts[rows])
            if values.size and values[-1] < WEAK * values[0]:
                weak = zip(axes[rows], np.abs(directions[:, values.size - 1]), strict=True)
                return [AXES[axis] for axis, part in weak if part > LEAST_PART]
        return []

    def keep(
        self, desired: Array, q: Array, v: Array, ahead: float, bandwidth: float, most: Array, effort: Array | None,
        reference: Array,
    ) -> Array:  # fmt: skip
        """(k,) desired acceleration of the output, modified by the law if necessary.

        Args:
            desired: (k,) m/s^2, rad/s^2.
            q, v, ahead: arguments of the last `equations.update`, which is repeated.
            bandwidth: 1/s of the output's loop.
            most: (k,) m/s^2, rad/s^2, deceleration limits of the output.
            effort: (a,) of the last period. If they leave more than the reserve at the start, the reserve is not
                computed.
            reference: (k,) m/s, rad/s of the reference at its full pace.
        """
        self.reason, self.pace = "", np.inf
        if not self._guards or not self.margin > 0.0:
            return desired
        self._looked += 1
        if self._looked < FAR_LOOKS and self.distance > NEAR * self.margin and not self.by_floors:
            return desired
        used = 1.0 if effort is None else max(np.abs(effort / self._effort).tolist(), default=0.0)
        self._strained = self._reserve_start > 0.0 and used * (1.0 + self._reserve_start) > 1.0
        elapsed, self._looked = 2.0 * ahead * self._looked, 0
        self.within = max(float(np.max(np.abs(reference) / most)), FORESEEN / bandwidth)
        distance = self._choose(effort, elapsed, FORESEEN / bandwidth)
        if not np.isfinite(distance):
            return desired
        slopes, rates, bends, mobility = self.derivatives(q, v, ahead)
        pace, shorts = 0.5 * bandwidth, np.empty(len(self._found))
        for k, (found, slope, rate, bend) in enumerate(zip(self._found, slopes, rates, bends, strict=True)):
            gap, brake = found - self.margin, float(np.linalg.norm(most * slope))
            soft = brake / pace
            allowed = _approach(gap, brake, pace)
            if self.by_floors:
                self._coming = approach = max(-float(slope @ reference), 0.0)
                if approach > TINY:  # a margin before that of the output
                    self.pace = max(_approach(gap - self.margin, approach / self.within, pace), 0.0) / approach
                if reference.any():
                    self._braked = self.pace < 1.0
                if self._braked:
                    self.spare = self.headroom.above(found * self._headroom_start)
            steepness = pace if gap < 0.0 else brake / max(allowed + soft, TINY)
            shorts[k] = -steepness * rate - 2.0 * pace * (rate + allowed) - bend - float(slope @ desired)
        if not np.any(shorts > 0.0) or (self.by_floors and not self._acts):
            return desired
        away = slopes @ mobility
        held = np.empty_like(shorts)
        least_change(np.ascontiguousarray(away @ slopes.T), shorts, held)
        if not np.any(held > 0.0):
            return desired
        self.reason = self.words()
        return np.asarray(desired + held @ away)

    def _near(self, approach: float, elapsed: float, ahead: float) -> float:
        """Distance below which the law may matter within `ahead` s, if it decreased by `approach` in `elapsed` s."""
        return self.margin + max((NEAR - 1.0) * self.margin, ahead * approach / elapsed)

    def _choose(self, effort: Array | None, elapsed: float, ahead: float) -> float:
        """Distance by the measure that the law uses, which is selected here; infinite if no measure is near its limit.

        Whether a measure is near depends on its own decrease in `elapsed` s. The distance from the tension floors is
        taken from the efforts (a,) of the last period first, and if that is near, from the best efforts.
        """
        before, near_floors, self.by_floors, self.spare = self._apart, self.by_floors, False, NO_BOUND
        self._found = self.seen()
        self._apart = float(np.min(self._found))
        near = self._apart <= self._near(before - self._apart, elapsed, ahead)
        self.distance = self._apart
        if self._headroom_start > 0.0 and effort is not None:
            before, self._above = self._above, self.headroom.least(effort) / self._headroom_start
            approach = before - self._above if np.isfinite(before) else 0.0
            within = self._near(approach, elapsed, ahead + self.within)
            headroom = np.inf
            if near_floors or self._above <= within + IN_MOTION:
                headroom = self.headroom.value() / self._headroom_start
                self._acts = headroom <= self._near(before - headroom if near_floors else approach, elapsed, ahead)
            if near_floors:  # while the reference brakes, efforts and rates tell nothing
                self._above = headroom
                within = self._near(self._coming, 1.0, ahead + self.within) + IN_MOTION
            self.distance = min(self._apart, headroom)
            self.by_floors = headroom <= within and not (near and self._apart < headroom)
            if self.by_floors:
                self._found = np.array([headroom])
                return headroom
        return self._apart if near else np.inf

    def seen(self) -> Array:
        """(m,) distances at the state of the last `update`, by the measures that the law uses."""
        if self.by_floors:
            return np.array([self.headroom.value() / self._headroom_start])
        seen = [self._authority()]
        if self._rates.applies:
            seen.append(self._rates.distance())
        if self._strained:
            seen.append(self.reserve.value() / self._reserve_start)
        return np.array(seen)

    def _scaled(self) -> Array:
        """(k, a) D^-1 B U at the state of the last `update`."""
        return np.asarray(self._rows[:, None] * self._equations.arrays.output_1 * self._effort)

    def _authority(self) -> float:
        ratio = self._ratio(self._rows, self._equations.arrays.output_1, self._effort, self._largest, self._turned)
        return float(ratio) / self._start

    def words(self) -> str:
        """What the output is kept away from, at the state of the last `update`."""
        kept = f"distance {self.distance:.3g} relative to the start, smallest allowed {self.margin:.3g}"
        return f"kept away from {'the tension floors' if self.by_floors else 'a singularity'} ({self._lost()}; {kept})"

    def _lost(self) -> str:
        """Text that names what is lost."""
        if self.by_floors:
            return f"cable {self.headroom.tightest()} reaches its tension floor"
        if self._strained and self.distance < min(self._authority(), self._rates.distance()):
            return (
                f"holding takes {min(self.reserve.share(), 9.99):.0%} of the effort limit of {self.reserve.strained()}"
            )
        if self._rates.distance() < self._authority():
            lost = self._rates.slowest_direction()
        else:
            lost = np.linalg.svd(self._scaled())[0][:, -1]
        return f"the actuators hardly move the output along {' and '.join(self._axes_of(lost))}"

    def _axes_of(self, direction: Array) -> list[str]:
        """Names of the axes with large components in a direction (k,) of the output."""
        parts = np.abs(direction)
        return [AXES[row] for row, part in zip(self._equations.parts.axes, parts, strict=True) if part > LEAST_PART]

    def derivatives(self, q: Array, v: Array, ahead: float) -> tuple[Array, Array, Array, Array]:
        """Of the distances: gradients (m, k) by the output, rates (m,), and second derivatives (m,) without
        acceleration of the output; and the mobility (k, k). The equations return to their state before the call."""
        equations, arrays = self._equations, self._equations.arrays
        count, here = equations.count, arrays.q_ahead.copy()
        mobility = arrays.mobility.copy()
        basis, offset = equations.reduction.basis[:, :count].copy(), equations.reduction.offset.copy()
        bias = arrays.output_0 - arrays.jacobian @ arrays.rate_0  # output's acceleration for w'' = 0
        directions = (
            basis @ np.linalg.solve(mobility, arrays.output_solved).T
        )  # velocities that move one row of the output
        still = np.zeros_like(v)

        def at(rate: Array, time: float) -> Array:
            equations.update(here, still, time, rate, 2.0 * ahead)
            return self.seen()

        distance = at(still, 0.0)
        slopes = np.empty((distance.size, directions.shape[1]))
        for k, direction in enumerate(directions.T):
            step = SMALL_STEP / float(np.max(np.abs(direction)))
            slopes[:, k] = (at(direction, step) - distance) / step
        rate = bend = np.zeros(distance.size)
        fastest = float(np.max(np.abs(v), initial=0.0))
        if fastest > 0.0:
            step = STEP / fastest
            after, before = at(v + 0.5 * step * offset, step), at(v - 0.5 * step * offset, -step)
            rate, bend = (after - before) / (2.0 * step), (after - 2.0 * distance + before) / step**2
        equations.update(q, v, ahead, held=2.0 * ahead)
        return slopes, rate, bend - slopes @ bias, mobility
