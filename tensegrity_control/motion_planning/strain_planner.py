"""Plans of the strains of all cables along a path, over its whole length, and of the inputs that belong to them.

Loads that the drives cannot apply, N' (M w'' + c) = N' S T with N' B = 0, must come from the tensions T. T is raised
along the null space of N' S until all tensions are above their floors. A smooth maximum over the cables (log-sum-exp)
keeps T as smooth as the path. If there are several self-stresses, or a desired tension level, `self_stress_choice`
selects one. Then the law of each cable, T = E A (strain + mu/E strain'), is solved for the strain. This is a filter
forward in time, and its output stays above any floor that its input keeps.

With w and its derivatives at all times the inputs follow from B u = M w'' + c - S T without approximation: document 000
(3.2.3) neglects M_s strain'' at each instant, a plan over time contains it. The equations are evaluated at nodes.
Intervals between nodes are halved until a quintic spline through the nodes is accurate (`KEPT`), so that nodes are as
dense as the grid at the begin and at sharp turns of a path, and sparse elsewhere.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline, make_interp_spline

from tensegrity_dynamics.errors import InfeasibleControlError, TensegrityError
from tensegrity_dynamics.numerics.short_repr import ShortRepr
from tensegrity_dynamics.numerics.types import Array

from ..cancellation import checkpoint
from ..trajectories.smoothing import smoothed
from ..trajectories.splines import PiecewisePolynomial
from .near_rigid_model import NearRigidModel, Reduced
from .self_stress_choice import choose_tensions, farthest

SHARPNESS = 30.0
"""Sharpness of the smooth maximum: it exceeds the true maximum by at most log(cables) / SHARPNESS of the floor."""
COARSE = 16
"""Number of initial intervals between nodes of a path."""
KEPT = 1e-4
"""Allowed interpolation error, as a fraction of the floors and of the largest load; above it, nodes are added."""
NO_PULL = 1e-10
"""Fraction of the largest singular value of the cable forces below which a singular value is rounding."""
SAMPLES = 4
"""Number of points between nodes at which the residual is evaluated."""


@dataclass(frozen=True, eq=False, repr=False)
class StrainPlan(ShortRepr):
    """Motion of a near-rigid mechanism on a grid of times.

    Attributes:
        times: (k,) s, equally spaced.
        coordinates, rates: (k, n), w and w'.
        inputs: (k, u) N m or N.
        positions: (k, nq).
        tensions: (k, c) N.
        residual: largest residual of the equations of motion [N m or N].
    """

    times: Array
    coordinates: Array
    rates: Array
    inputs: Array
    positions: Array
    tensions: Array
    residual: float


def plan_strains(
    model: NearRigidModel,
    trajectory: PiecewisePolynomial,
    step: float,
    floor: Array,
    smoothing: float,
    start: Array | None = None,
) -> StrainPlan:
    """Strains, tensions and inputs for tracked coordinates along a trajectory.

    Args:
        trajectory: (y,) values over time; smoothed first (`smoothing.smoothed`).
        step: s, of the grid.
        floor: (c,) tension [N] that every cable keeps, above zero.
        smoothing: s, width of the smoothing kernel, at least four grid steps.
        start: (nq,) configuration near the start of the path; None for the initial configuration of the robot.

    Raises:
        InfeasibleControlError: no self-stress raises all cables above the floor, or the equations cannot be satisfied.
        TensegrityError: the loops cannot close on the path.
    """
    if not (step > 0.0 and smoothing >= 4.0 * step):
        raise TensegrityError(
            f"a grid step of {step} s is too coarse for a smoothing of {smoothing} s; use a quarter of it or less."
        )
    times = trajectory.start + step * np.arange(int(np.ceil((trajectory.end - trajectory.start) / step - 1e-9)) + 1)
    y, y_rate, y_acceleration = smoothed(trajectory, smoothing, times)
    count, cables = times.size, model.radii.size
    floor = np.broadcast_to(np.asarray(floor, dtype=np.float64), (cables,))
    if not np.all(floor > 0.0):
        raise InfeasibleControlError("the tension floor of every cable must be above zero.")
    coordinates = np.hstack((y, np.tile(floor / model.stiffness, (count, 1))))
    rates = np.hstack((y_rate, np.zeros((count, cables))))
    accelerations = np.hstack((y_acceleration, np.zeros((count, cables))))
    path = _Path(
        model,
        np.asarray(times, dtype=np.float64),
        floor,
        np.array(model.robot.model.initial_configuration if start is None else start),
    )
    # The first pass has no strain rates. They hardly change the loads of the cables, so few nodes are enough for it.
    bends = (np.asarray(trajectory.knots)[:, None] + smoothing * np.array([-0.5, 0.0, 0.5]) - trajectory.start) / step
    at = np.append(np.linspace(0, count - 1, COARSE + 1), bends).round().astype(np.int64)
    nodes = path.nodes(np.unique(np.clip(at, 0, count - 1)))
    for is_last in (False, True):
        nodes.pass_through(coordinates, rates, accelerations, refine=is_last)
        tensions = nodes.between(nodes.tensions)
        strains = _strains(tensions / model.stiffness, model.damping_time, step)
        curve = make_interp_spline(times, strains, k=5)
        size = y.shape[1]
        coordinates[:, size:], rates[:, size:], accelerations[:, size:] = strains, curve(times, 1), curve(times, 2)
    positions = model.closed_configurations(path.start, coordinates, evenly=True)
    inputs = nodes.inputs_for(positions, rates, accelerations)
    plan = StrainPlan(np.asarray(times, dtype=np.float64), coordinates, rates, inputs, positions, tensions, 0.0)
    return replace(plan, residual=_residual(model, plan, accelerations, nodes.at))


def rest_at(model: NearRigidModel, q: Array, floor: Array, near: Array | None = None) -> tuple[Array, Array]:
    """w (n,) at rest with the tracked coordinates of q (nq,) and tensions at their floor, and the inputs (u,) for it.

    Args:
        near: (c,) N, tensions near those at rest, from which their search starts; None if there are none.

    Raises:
        InfeasibleControlError: as `plan_strains`.
    """
    coordinates, inputs = rest_along(model, q[None], floor, None if near is None else near[None])
    return coordinates[0], inputs[0]


def rest_along(model: NearRigidModel, positions: Array, floor: Array, near: Array | None = None) -> tuple[Array, Array]:
    """`rest_at` at positions (k, nq), near tensions (k, c): w (k, n) and inputs (k, u)."""
    still, none = np.zeros((len(positions), model.index.size)), np.zeros(len(positions))
    tensions: Sequence[Array | None] = [None] * len(positions) if near is None else list(near)
    for _ in range(2):  # strains displace the bodies, which hardly changes the forces
        checkpoint()
        reduced = model.reduced_along(positions, still)
        found = _open_tensions(model, reduced, reduced.bias, none)
        tensions = [
            lowest_tensions(model, q, particular, stress, floor, 0.0, before)
            for q, (particular, stress), before in zip(positions, found, tensions, strict=True)
        ]
        tracked = model.coordinates_at(positions)[:, : len(model.y)]
        positions = model.closed_configurations(positions, np.hstack((tracked, tensions / model.stiffness)))
    reduced = model.reduced_along(positions, still)
    open_forces = reduced.bias - (reduced.cables @ np.array(tensions)[..., None])[..., 0]
    return model.coordinates_at(positions), (np.linalg.pinv(reduced.inputs) @ open_forces[..., None])[..., 0]


def own_floor(model: NearRigidModel, q: Array, usual: Array, least: Array) -> Array:
    """(c,) N: `usual` if a self-stress raises all cables, so that this floor can be kept at any pose; else `least`.

    Raises:
        TensegrityError: the cables cannot keep `least` at q (nq,) either, or an entry of it is not above zero.
    """
    reduced = model.reduced_along(q[None], np.zeros((1, model.index.size)))
    ((particular, stress),) = _open_tensions(model, reduced, reduced.bias, np.zeros(1))
    free = np.full(usual.size, np.inf)
    if farthest(np.zeros(usual.size), stress, np.ones(usual.size), free)[1] > 0.0:
        return usual
    if np.all(least > 0.0) and farthest(particular, stress, least, model.tension_ceiling)[1] > 0.0:
        return least
    most = farthest(particular, stress, np.zeros(usual.size), free, np.inf)[1]
    advice = (
        f"set floor={0.8 * most:.3g} or less"
        if most > 0.0
        else "start it in another configuration, where no cable is slack"
    )
    raise TensegrityError(
        f"{model.robot.name} has no self-stress that tightens all its cables, and near_rigid cannot keep the tension "
        f"floors of its actuators there (`minimum_tension`: {', '.join(f'{each:.3g}' for each in least)} N); {advice}."
    )


def _open_tensions(model: NearRigidModel, reduced: Reduced, load: Array, times: Array) -> list[tuple[Array, Array]]:
    """Tensions (c,) N for loads (k, n) that the inputs cannot apply, and self-stresses (s, c) with orthonormal rows, at
    times (k,) s."""
    inputs, cables = reduced.inputs, reduced.cables
    passive = np.swapaxes(np.linalg.qr(inputs, mode="complete")[0][:, :, inputs.shape[2] :], 1, 2)
    needed, pull = passive @ load[..., None], passive @ cables
    left, values, right = np.linalg.svd(pull)
    size = values.shape[1]
    counts = values > NO_PULL * values[:, :1]
    inverse = np.where(counts, 1.0 / np.where(counts, values, 1.0), 0.0)
    ranks = np.count_nonzero(counts, axis=1)
    particular = np.swapaxes(right[:, :size], 1, 2) @ (
        inverse[..., None] * (np.swapaxes(left[:, :, :size], 1, 2) @ needed)
    )
    left_over = needed - pull @ particular
    # idle rotations: their inertia carries this part
    idle = (np.arange(left.shape[1]) >= ranks[:, None]) & (left.shape[1] - ranks == model.idle_count)[:, None]
    beside = left * idle[:, None]
    left_over = left_over - beside @ (np.swapaxes(beside, 1, 2) @ left_over)
    missed = np.max(np.abs(left_over), axis=(1, 2), initial=0.0)
    missing = missed > 1e-6 * (1.0 + np.max(np.abs(needed), axis=(1, 2), initial=0.0))
    if np.any(missing):
        raise InfeasibleControlError(
            f"at {times[np.argmax(missing)]:.4g} s the cables cannot apply the force that the path needs; choose "
            "another path."
        )
    return [(base[:, 0], rows[rank:]) for base, rows, rank in zip(particular, right, ranks, strict=True)]


def lowest_tensions(
    model: NearRigidModel, q: Array, particular: Array, stress: Array, floor: Array, time: float,
    before: Array | None = None,
) -> Array:  # fmt: skip
    """(c,) N, tensions that differ from particular ones (c,) by self-stresses (s, c): the smallest above the floor, or
    those nearest to the desired level of the model, with the stiffness that the model holds."""
    held = model.held_stiffness
    tightens = stress.shape[0] == 1 and (np.all(stress[0] > 1e-9) or np.all(stress[0] < -1e-9))
    if not tightens or model.tension_level is not None or held or np.any(np.isfinite(model.tension_ceiling)):
        excess = None if held is None else partial(held.excess, q)
        ceiling, level = model.tension_ceiling, model.tension_level
        try:
            return choose_tensions(particular, stress, floor, ceiling, level, before, excess)
        except InfeasibleControlError as error:
            raise InfeasibleControlError(
                f"at {time:.4g} s {error} (there are {stress.shape[0]} self-stresses); lower the floor or raise the "
                + ("ceiling." if held is None else "ceiling, or choose another stiffness.")
            ) from None
    lift = np.abs(stress[0])
    scale = SHARPNESS / float(np.mean(floor / lift))
    raised = scale * (floor - particular) / lift
    highest = float(np.max(raised))
    amount = (highest + np.log(np.sum(np.exp(raised - highest)))) / scale
    return np.asarray(particular + amount * lift)


@dataclass(frozen=True, eq=False)
class _Path:
    """Data that all nodes of a plan share: grid of times, floors (c,) N, and a configuration (nq,) near the start."""

    model: NearRigidModel
    times: Array
    floor: Array
    start: Array

    def nodes(self, at: NDArray[np.int64]) -> _Nodes:
        return _Nodes(self, at)


class _Nodes:
    """Grid points at which the equations are evaluated; between them everything is interpolated.

    Args:
        at: indices of the initial nodes, increasing, including both ends of the grid.

    Attributes:
        at: (m,) indices of the present nodes.
        tensions: (m, c) N of the last pass.
    """

    def __init__(self, path: _Path, at: NDArray[np.int64]) -> None:
        self._path, self.at = path, at
        self.tensions = np.zeros((0, path.floor.size))
        self._seen: dict[int, tuple[Array, Array, Array]] = {}  # configuration, tensions, loads left to the inputs

    def pass_through(self, coordinates: Array, rates: Array, accelerations: Array, *, refine: bool) -> None:
        """Choose tensions for a motion (k, n); with `refine`, add nodes until the interpolation is accurate."""
        self._seen.clear()
        self._look(self.at.tolist(), coordinates, rates, accelerations)
        open_ones = list(pairwise(self.at.tolist())) if refine else []
        while open_ones := [(low, high) for low, high in open_ones if high - low > 1]:
            middles = [(low + high) // 2 for low, high in open_ones]
            foreseen = _spline(self.at, self._rows(self.at))(middles)
            self._look(middles, coordinates, rates, accelerations)
            self.at = np.array(sorted(self._seen), dtype=np.int64)
            largest = np.max(np.abs(self._rows(self.at)), axis=0)
            cables = self._path.floor.size
            unit = np.append(self._path.floor, np.full(largest.size - cables, np.max(largest[cables:])))
            missed = np.max(np.abs(self._rows(np.array(middles)) - foreseen) / unit, axis=1) > KEPT
            open_ones = [
                half for (low, high), middle, again in zip(open_ones, middles, missed, strict=True) if again
                for half in ((low, middle), (middle, high))
            ]  # fmt: skip
        self.tensions = np.array([self._seen[k][1] for k in self.at.tolist()])

    def between(self, values: Array) -> Array:
        """(k, ...) values on the whole grid, interpolated from values (m, ...) at the nodes."""
        return np.ascontiguousarray(_spline(self.at, values)(np.arange(self._path.times.size)))

    def inputs_for(self, positions: Array, rates: Array, accelerations: Array) -> Array:
        """(k, u) inputs for a motion on the grid. The factors of the accelerations are interpolated, not the inputs."""
        checkpoint()
        reduced = self._path.model.reduced_along(positions[self.at], rates[self.at])
        still = reduced.bias - reduced.passive
        factors = np.concatenate((reduced.mass, still[..., None]), axis=2)
        rows = np.asarray(np.linalg.pinv(reduced.inputs) @ factors, dtype=np.float64)
        matrices = self.between(rows)
        return np.asarray((matrices[:, :, :-1] @ accelerations[:, :, None])[:, :, 0] + matrices[:, :, -1])

    def _look(self, at: list[int], coordinates: Array, rates: Array, accelerations: Array) -> None:
        """Evaluate the equations at indices of the grid; each search starts from the node before."""
        checkpoint()
        model, seen = self._path.model, sorted(self._seen)
        before = [seen[bisect_left(seen, k) - 1] for k in at] if seen else []
        starts = np.array([self._seen[k][0] for k in before]) if seen else self._path.start
        positions = model.closed_configurations(starts, coordinates[at])
        reduced = model.reduced_along(positions, rates[at])
        loads = (reduced.mass @ accelerations[at][..., None])[..., 0] + reduced.bias
        found = _open_tensions(model, reduced, loads, self._path.times[at])
        tensions = self.tensions[0] if len(self.tensions) else None
        for i, (k, (particular, stress)) in enumerate(zip(at, found, strict=True)):
            tensions = self._seen[before[i]][1] if seen else tensions
            tensions = lowest_tensions(
                model, positions[i], particular, stress, self._path.floor, float(self._path.times[k]), tensions
            )
            self._seen[k] = positions[i], tensions, loads[i] - reduced.cables[i] @ tensions

    def _rows(self, at: NDArray[np.int64]) -> Array:
        """(m, c + n) tensions and loads left to the inputs, at the nodes."""
        return np.array([np.concatenate(self._seen[k][1:]) for k in at.tolist()])


def _spline(at: NDArray[np.int64], values: Array) -> BSpline:
    """Spline through values (m, ...) at indices (m,) of a grid; quintic, or of lower degree with few nodes."""
    return make_interp_spline(at, values, k=min(5, (len(at) - 1) // 2 * 2 - 1) if len(at) > 2 else 1)


def _residual(model: NearRigidModel, plan: StrainPlan, accelerations: Array, at: NDArray[np.int64]) -> float:
    """Largest residual of the equations midway between some nodes [N m or N]."""
    middles = (at[1:] + at[:-1]) // 2
    middles = middles[np.unique(np.linspace(0, middles.size - 1, SAMPLES).round().astype(np.int64))]
    reduced = model.reduced_along(plan.positions[middles], plan.rates[middles])
    needed = (reduced.mass @ accelerations[middles][..., None])[..., 0] + reduced.bias - reduced.passive
    given = (reduced.inputs @ plan.inputs[middles][..., None])[..., 0]
    return float(np.max(np.abs(given - needed)))


def _strains(elastic: Array, damping_time: Array, step: float) -> Array:
    """Strains (k, c) with strain + damping_time strain' = elastic (k, c), from rest; exact for piecewise linear
    input."""
    strains = elastic.copy()
    for c, time in enumerate(damping_time.tolist()):
        if time <= 0.0:
            continue
        decay = math.exp(-step / time)
        before, slopes = elastic[:-1, c], np.diff(elastic[:, c]) / step
        pushed = ((1.0 - decay) * before + slopes * (step - time * (1.0 - decay))).tolist()
        value = float(elastic[0, c])
        for i, push in enumerate(pushed):
            value = strains[i + 1, c] = decay * value + push
    return strains
