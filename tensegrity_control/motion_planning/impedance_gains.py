"""Stiffness and damping of the actuators' own loops, from the model of the robot and the rate of these loops.

The stiffness of a pulley is `CABLE_SHARE` times that of its cable, so that most of the compliance remains in the cable,
and a configuration that is stable with locked pulleys is stable with these loops. The stiffness of a joint without a
cable is as large as its inertia allows at the rate of the loop:

    k_p = CABLE_SHARE r^2 E A / l_0,   or   k_p = m (RATE_SHARE / h)^2

with m = 1 / (P (G' M G)^-1 P')_ii, the inertia at the actuator, and h the period of its loop. The damping is c sqrt(k
m), with that factor c for which the slowest vibration of the whole robot decays fastest, as long as the sampled loop of
all actuators is stable with up to `DELAY_MARGIN` periods h of additional delay. If there is no such factor, the
stiffness is reduced. The resulting gains hold the configuration without external feedback; if there are none, an error
is raised.

Weight and prestress may take most of the stiffness that cables give to a configuration. Where they do, a compliance in
series with the cables takes much more of the rest than of the cables themselves, and the configuration gives way at
small disturbances. Therefore the softest motion must keep at least `KEPT` of the stiffness per inertia that it has with
locked pulleys. If it does not, the pulleys are made stiffer, up to `MOST_STIFFENED` times, and then the margin of delay
is reduced. If nothing suffices, the gains that keep most are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space

from tensegrity_dynamics.errors import InfeasibleControlError, TensegrityError
from tensegrity_dynamics.mechanisms.dynamics.equations_of_motion import evaluate
from tensegrity_dynamics.mechanisms.dynamics.reduced_model import ReducedModel
from tensegrity_dynamics.mechanisms.mechanism import Mechanism
from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel
from tensegrity_dynamics.mechanisms.routing.columns import FIRST, GRADIENT, REST_NOW, TURNING_V
from tensegrity_dynamics.mechanisms.workspace import make_workspace
from tensegrity_dynamics.numerics.types import Array

from .lqr import discretized

INNER_PERIOD = 1e-3
"""s, period of the loop at the actuator: a step of the simulation, a cycle of the servo."""
CABLE_SHARE = 2.0
"""Ratio of the stiffness of a pulley to that of its cable."""
RATE_SHARE = 0.05
"""Bandwidth of a joint without a cable, times the period of its loop."""
DELAY_MARGIN = 2
"""Largest delay of torques in periods of the inner loop."""
DAMPING_FACTORS = np.geomspace(0.25, 16.0, 13)
KEPT = 0.5
"""Smallest fraction of the stiffness with locked pulleys that remains, per inertia, of the softest motion."""
MOST_STIFFENED = 4.0
"""Largest multiple of `CABLE_SHARE`."""
STIFFENED = 4  # trials from `CABLE_SHARE` to there
SACRIFICED = 0.5
"""Fraction of the largest possible `kept` for which no margin of delay is given up."""
IDLE = 1e-9
"""Stiffness per inertia, as a fraction of the largest, below which nothing drives a motion back."""
LOWERED = 0.8  # factor of the square root of the stiffness per trial, until the loop is stable
MOST_LOWERED = 20  # trials
MOST_SQUARINGS = 30
"""Number of squarings after which a loop whose deviations have not vanished counts as unstable: 12 days at 1 kHz."""


@dataclass(frozen=True, eq=False)
class ImpedanceGains:
    """Gains of the actuators' loops.

    Attributes:
        stiffness: (a,) N m/rad or N/m.
        damping: (a,) N m s/rad or N s/m.
        delay: tolerated delay of torques in periods of the inner loop.
        period: s of the inner loop.
        decay: 1/s, of the slowest vibration of the robot with these gains.
        kept: stiffness per inertia of the softest motion, as a fraction of that with locked actuators.
    """

    stiffness: Array
    damping: Array
    delay: int
    period: float
    decay: float
    kept: float = 1.0


def impedance_gains(
    model: ReducedModel, q: Array, effort: Array, *, period: float = INNER_PERIOD, kept: float = KEPT
) -> ImpedanceGains:
    """Gains for a robot near an equilibrium; see the module.

    Args:
        model: model of the robot, in any independent coordinates.
        q: (nq,) equilibrium configuration.
        effort: (a,) N m or N at this equilibrium.
        period: s of the loop at the actuators.
        kept: smallest fraction of the stiffness with locked pulleys that the softest motion keeps, if possible; 0 if
            another loop holds the configuration.

    Raises:
        InfeasibleControlError: no gains hold the configuration at this rate.
        TensegrityError: the period is out of range.
    """
    if not (np.isfinite(period) and period > 0.0):
        raise TensegrityError(f"the inner period is {period} s; give a time above zero.")
    return _designed(_loops_at(model, q, effort, period), kept)


def gains_for_motion(
    model: ReducedModel, start: tuple[Array, Array], end: tuple[Array, Array], *, period: float = INNER_PERIOD,
    ends: Sequence[tuple[Array, Array]] = (),
) -> ImpedanceGains:  # fmt: skip
    """Gains for both ends of a motion: those for its end, unless those for its start keep more at their worse end.

    Args:
        start, end: equilibrium configuration (nq,) and effort (a,) there. model, period: see `impedance_gains`.
        ends: A and B of `ReducedModel.linearised` at both; empty to compute them.

    Raises: see `impedance_gains`.
    """
    last = _loops_at(model, *end, period, *ends[1:])
    gains = _designed(last)
    if np.array_equal(start[0], end[0]):
        return gains
    first = _loops_at(model, *start, period, *ends[:1])
    if first.kept(gains.stiffness) >= KEPT:
        return gains
    with suppress(InfeasibleControlError):
        others = _designed(first)
        worse = min(first.kept(others.stiffness), last.kept(others.stiffness))
        if last.are_stable(others) and worse > min(first.kept(gains.stiffness), gains.kept):
            return others
    return gains


def _loops_at(
    model: ReducedModel, q: Array, effort: Array, period: float, linear: tuple[Array, Array] | None = None
) -> _Loops:
    rows, inertia = driven_rows(model, q)
    dynamics, push = linear or model.linearised(q, np.zeros(model.index.size), effort)[:2]
    dynamics = model.steadied(q, dynamics, push, RATE_SHARE / period)
    cables = cable_stiffness(model, q)
    share = np.where(cables > 0.0, CABLE_SHARE * cables, inertia * (RATE_SHARE / period) ** 2)
    return _Loops(dynamics, push, rows, inertia, cables, share, _locked_rate(dynamics, rows, model.mass(q)), period)


def _designed(loops: _Loops, kept: float = KEPT) -> ImpedanceGains:
    """See `impedance_gains`."""
    found: list[ImpedanceGains] = []
    for delay in range(DELAY_MARGIN, -1, -1):
        found += loops.stable_gains(delay, kept)
        if found and found[-1].kept >= kept:
            return found[-1]
    if not found:
        raise InfeasibleControlError(
            "no impedance gains of the actuators hold this configuration with control loops of "
            f"{loops.period:g} s and a delay of {DELAY_MARGIN} periods; shorten the period of these loops."
        )
    enough = SACRIFICED * max(each.kept for each in found)
    return next(each for each in found if each.kept >= enough)


@dataclass(frozen=True, eq=False)
class _Loops:
    """Loops of the actuators at a configuration.

    Attributes:
        dynamics, push, rows: linearised robot, see `closed_loop`.
        inertia, cables: (a,) inertia at each actuator, and stiffness of the cables that it winds.
        share: (a,) usual stiffness of the loops.
        locked: 1/s^2, see `_locked_rate`.
        period: s.
    """

    dynamics: Array
    push: Array
    rows: Array
    inertia: Array
    cables: Array
    share: Array
    locked: float
    period: float

    def stable_gains(self, delay: int, kept: float) -> list[ImpedanceGains]:
        """Gains that are stable with up to `delay` periods of delay, the stiffest last; empty if there are none.

        From the usual stiffness it increases until the loops are stable and the softest motion keeps `kept`. With the
        whole margin of delay it decreases if no larger one is stable.
        """
        found: list[ImpedanceGains] = []
        for scale in np.sqrt(np.geomspace(1.0, MOST_STIFFENED, STIFFENED)):
            stiffer = self._best_damping(scale, delay)
            found += [stiffer] if stiffer else []
            if found and (stiffer is None or stiffer.kept >= kept):
                break
        if not found and delay == DELAY_MARGIN:
            lower = filter(None, (self._best_damping(LOWERED**k, delay) for k in range(1, MOST_LOWERED)))
            found += islice(lower, 1)
        return found

    def _best_damping(self, scale: float, delay: int) -> ImpedanceGains | None:
        """Gains with scale^2 times the usual stiffness, and the damping with the fastest decay; None if unstable."""
        stiffness = scale**2 * self.share
        tried = DAMPING_FACTORS[:, None] * np.sqrt((stiffness + self.cables) * self.inertia)
        decays = _decays(self.dynamics, self.push, self.rows, stiffness, tried)
        for k in np.argsort(-decays, kind="stable"):  # the first one with a stable sampled loop is the best
            if not decays[k] > 0.0:
                break
            if _is_stable_sampled(*self._sampled, self.rows, stiffness, tried[k], delay):
                kept = self.kept(stiffness)
                return ImpedanceGains(stiffness, tried[k], delay, self.period, float(decays[k]), kept)
        return None

    @cached_property
    def _sampled(self) -> tuple[Array, Array]:
        """Dynamics and inputs over one period."""
        return discretized(self.dynamics, self.push, self.period)

    def are_stable(self, gains: ImpedanceGains) -> bool:
        """Whether the loops are stable here with gains for another configuration, up to their delay."""
        decay = _decays(self.dynamics, self.push, self.rows, gains.stiffness, gains.damping[None])[0]
        sampled = *self._sampled, self.rows, gains.stiffness, gains.damping, gains.delay
        return bool(decay > 0.0) and _is_stable_sampled(*sampled)

    def kept(self, stiffness: Array) -> float:
        """See `ImpedanceGains`."""
        if not 0.0 < self.locked < np.inf:
            return 1.0
        count = self.rows.shape[1]
        rates = -self.dynamics[count:, :count] + self.push[count:] @ (stiffness[:, None] * self.rows)
        return _softest(rates) / self.locked


def _locked_rate(dynamics: Array, rows: Array, mass: Array) -> float:
    """1/s^2, stiffness per inertia of the softest motion with locked actuators; infinite if they leave no motion.

    Args:
        dynamics: (2n, 2n). rows: (a, n), see `driven_rows`. mass: (n, n).
    """
    count = rows.shape[1]
    motions = null_space(rows)
    if not motions.shape[1]:
        return np.inf
    stiffness = -motions.T @ mass @ dynamics[count:, :count] @ motions
    return _softest(np.linalg.solve(motions.T @ mass @ motions, stiffness))


def _softest(rates: Array) -> float:
    """Smallest eigenvalue of stiffness per inertia (n, n); motions that nothing drives back do not count."""
    values = np.linalg.eigvals(rates).real
    counted = values[np.abs(values) > IDLE * np.max(np.abs(values), initial=0.0)]
    return float(np.min(counted, initial=np.inf))


def driven_rows(model: ReducedModel, q: Array) -> tuple[Array, Array]:
    """P (a, n), velocities of the actuators per w', and the inertia (a,) at each actuator with all others free."""
    rows = model.basis(q)[model.drives]
    mobility = np.einsum("an,na->a", rows, np.linalg.solve(model.mass(q), rows.T))
    return rows, 1.0 / mobility


def cable_stiffness(model: ReducedModel, q: Array) -> Array:
    """(a,) N m/rad of the cables that each actuator winds, the sum of r^2 E A / l_0; 0 without cables."""
    mechanism_model = model.robot.model_as(MechanismModel)
    mechanism = model.mechanism
    cables, entries = (
        {each.name: each for each in mechanism.cables},
        {each.name: each for each in mechanism_model.entries},
    )
    result = []
    for actuator in model.robot.actuators:
        entry, cable = entries.get(actuator.drives), cables.get(actuator.drives)
        if entry is None or cable is None:
            result.append(0.0)
            continue
        rest = entry.radius * q[mechanism.positions_of(entry.joints[2]).start]
        result.append(entry.radius**2 * cable.area * cable.young / max(float(rest), 1e-9))
    return np.array(result) + _routed_stiffness(mechanism, q, model.drives)


def _routed_stiffness(mechanism: Mechanism, q: Array, drives: NDArray[np.int64]) -> Array:
    """(a,) N m/rad of the strands of routed cables next to the joints of the actuators, with all else fixed."""
    result = np.zeros(mechanism.velocity_count)
    if mechanism.routes:
        work = make_workspace(mechanism.flat)
        evaluate(mechanism.flat, q, np.zeros(mechanism.velocity_count), work)
    for cable, route in zip(mechanism.flat.routed_cables, mechanism.routes, strict=True):
        if route.rigid:
            continue
        state = work.route_state[int(cable[FIRST]) :][: len(route.elements)]
        for strand, end in zip(route.holding, (*route.holding[1:], len(route.elements) - 1), strict=True):
            for e in (strand, end):
                turning = int(route.elements[e, TURNING_V])
                if turning >= 0:
                    result[turning] += state[e, GRADIENT] ** 2 * route.stiffness / state[strand, REST_NOW]
    return result[drives]


def closed_loop(dynamics: Array, push: Array, rows: Array, stiffness: Array, damping: Array) -> Array:
    """(..., 2n, 2n) dynamics of (w, w') with the impedances closed without delay, for damping (..., a)."""
    count = rows.shape[1]
    result = np.broadcast_to(dynamics, (*damping.shape[:-1], *dynamics.shape)).copy()
    result[..., :count] -= push @ (stiffness[:, None] * rows)
    result[..., count:] -= push @ (damping[..., None] * rows)
    return np.asarray(result)


def _decays(dynamics: Array, push: Array, rows: Array, stiffness: Array, damping: Array) -> Array:
    """(k,) 1/s, decay of the slowest vibration with damping (k, a)."""
    values = np.linalg.eigvals(closed_loop(dynamics, push, rows, stiffness, damping))
    return np.asarray(-np.max(values.real, axis=-1))


def _is_stable_sampled(ahead: Array, moved: Array, rows: Array, stiffness: Array, damping: Array, delay: int) -> bool:
    """Whether the loop with torques held over a period and delayed by 0 to `delay` periods is stable.

    Args:
        ahead, moved: dynamics and inputs over one period.
    """
    gain = np.hstack((stiffness[:, None] * rows, damping[:, None] * rows))
    size, inputs = ahead.shape[0], moved.shape[1]
    for late in range(delay, 0, -1):  # the largest delay is the most likely to be unstable
        whole = np.zeros((size + late * inputs, size + late * inputs))
        whole[:size, :size] = ahead
        whole[:size, size : size + inputs] = moved  # the oldest torque acts now
        whole[size:-inputs, size + inputs :] = np.eye((late - 1) * inputs)
        whole[-inputs:, :size] = -gain
        if not _vanishes(whole):
            return False
    return _vanishes(ahead - moved @ gain)


def _vanishes(matrix: Array) -> bool:
    """Whether the powers of a matrix vanish, which is that its eigenvalues are inside of the unit circle.

    An eigenvalue outside makes the trace of a power larger than the number of eigenvalues. Both are found after a few
    squarings, several times as fast as the eigenvalues.
    """
    size = len(matrix)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(MOST_SQUARINGS):
            matrix = matrix @ matrix
            if not abs(matrix.trace()) <= size:
                return False
            if size * max(matrix.max(), -matrix.min()) < 1.0:
                return True
    return False
