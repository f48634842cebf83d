"""Strains of the cables along a path, planned with a view ahead, and the inputs that go with them.

What the drives cannot do, N' (M w'' + c) = N' S T, must come from the tensions T. Along the null space of N' S they
are lifted until all are above their floor; the maximum over the cables is taken smoothly (log-sum-exp), so that T is
as smooth as the path. Where there are several such self-stresses, or a level is wanted, `self_stress_choice` takes
one. Then each cable's own law, T = E A (strain + mu/E strain'), is solved for the strain: a filter that is run
forward in time and never falls below a floor that its input keeps. With w and its derivatives for all times the
inputs are B u = M w'' + c - S T, and nothing is neglected: where 000 (3.2.3) drops M_s strain'' at the instant, a
plan over time has it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import make_interp_spline

from tensegrity_dynamics.errors import InfeasibleControlError, TensegrityError
from tensegrity_dynamics.numerics.types import Array

from ..cancellation import checkpoint
from ..trajectories.smoothing import smoothed
from ..trajectories.splines import PiecewisePolynomial
from .near_rigid_model import NearRigidModel
from .self_stress_choice import choose_tensions

SHARPNESS = 30.0
"""Of the smooth maximum: it lies above the true one by at most log(cables) / SHARPNESS of the floor."""


@dataclass(frozen=True, eq=False)
class StrainPlan:
    """A motion of a near-rigid mechanism on a grid of times.

    Attributes:
        times: (k,) s, evenly spaced. coordinates, rates: (k, n), w and w'. inputs: (k, u).
        positions: (k, nq). tensions: (k, c) N.
        residual: largest part of the equations of motion that the inputs leave [N m or N].
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
        trajectory: (y,) values over time; made smooth first (`smoothing.smoothed`).
        step: s, of the grid. floor: (c,) tension [N] that every cable keeps, above zero.
        smoothing: s, width of the kernel; at least some steps. start: (nq,) near the path's start; else the robot's.

    Raises:
        InfeasibleControlError: no self-stress lifts all cables above the floor, or the equations cannot be met.
        TensegrityError: the loops cannot close on the path.
    """
    if not (step > 0.0 and smoothing >= 4.0 * step):
        raise TensegrityError(f"a grid of {step} s cannot hold a smoothing of {smoothing} s; take a quarter or less.")
    times = trajectory.start + step * np.arange(int(np.ceil((trajectory.end - trajectory.start) / step - 1e-9)) + 1)
    y, y_rate, y_acceleration = smoothed(trajectory, smoothing, times)
    count, cables = times.size, model.radii.size
    floor = np.broadcast_to(np.asarray(floor, dtype=np.float64), (cables,))
    if not np.all(floor > 0.0):
        raise InfeasibleControlError("the floor of the tensions must be above zero in every cable.")
    strains = np.tile(floor / model.stiffness, (count, 1))
    rates, accelerations = np.zeros_like(strains), np.zeros_like(strains)
    first = model.robot.model.initial_configuration if start is None else start
    # The first pass has no strain rates; they hardly enter what the drives cannot do, so the second one is enough.
    for _ in range(2):
        tensions, q = np.zeros((count, cables)), first
        for i in range(count):
            checkpoint()
            rate = np.concatenate((y_rate[i], rates[i]))
            q, velocity, _ = model.state_at(q, np.concatenate((y[i], strains[i])), rate)
            reduced = model.reduced(q, rate, velocity)
            load = reduced.mass @ np.concatenate((y_acceleration[i], accelerations[i])) + reduced.bias
            before = tensions[i - 1] if i else None
            tensions[i] = _tensions(model, reduced.inputs, reduced.cables, load, floor, float(times[i]), before)
        strains = _strains(tensions / model.stiffness, model.damping_time, step)
        curve = make_interp_spline(times, strains, k=5)
        rates, accelerations = curve(times, 1), curve(times, 2)
    q, positions, inputs, residual = first, [], [], 0.0
    for i in range(count):
        checkpoint()
        rate = np.concatenate((y_rate[i], rates[i]))
        q, velocity, _ = model.state_at(q, np.concatenate((y[i], strains[i])), rate)
        reduced = model.reduced(q, rate, velocity)
        right = reduced.mass @ np.concatenate((y_acceleration[i], accelerations[i])) + reduced.bias - reduced.passive
        effort = np.linalg.lstsq(reduced.inputs, right, rcond=None)[0]
        residual = max(residual, float(np.max(np.abs(reduced.inputs @ effort - right))))
        positions.append(q)
        inputs.append(effort)
    return StrainPlan(
        np.asarray(times, dtype=np.float64), np.hstack((y, strains)), np.hstack((y_rate, rates)), np.array(inputs),
        np.array(positions), tensions, residual,
    )  # fmt: skip


def rest_at(model: NearRigidModel, q: Array, floor: Array) -> tuple[Array, Array]:
    """w (n,) at rest with the tracked coordinates as at q (nq,) and tensions on their floor, and inputs (u,) for it.

    Raises:
        InfeasibleControlError: as `plan_strains`.
    """
    still = np.zeros(model.index.size)
    tensions = np.zeros(model.radii.size)
    for _ in range(2):  # the strains move the bodies, which hardly changes the forces
        reduced = model.reduced(q, still)
        tensions = _tensions(model, reduced.inputs, reduced.cables, reduced.bias, floor, 0.0)
        q = model.closed_configuration(q, np.concatenate((q[model.q_y], tensions / model.stiffness)))
    reduced = model.reduced(q, still)
    effort = np.linalg.lstsq(reduced.inputs, reduced.bias - reduced.cables @ tensions, rcond=None)[0]
    return q[model.q_index].copy(), np.asarray(effort, dtype=np.float64)


def _tensions(
    model: NearRigidModel,
    inputs: Array,
    cables: Array,
    load: Array,
    floor: Array,
    time: float,
    before: Array | None = None,
) -> Array:
    """(c,) N that give what the inputs cannot: the least that keep the floor, or those nearest to the model's level."""
    size = inputs.shape[1]
    passive = np.linalg.qr(inputs, mode="complete")[0][:, size:]
    needed, pull = passive.T @ load, passive.T @ cables
    left, values, right = np.linalg.svd(pull)
    rank = int(np.count_nonzero(values > values[0] * max(pull.shape) * np.finfo(float).eps)) if values.size else 0
    particular = right[:rank].T @ ((left[:, :rank].T @ needed) / values[:rank])
    if np.max(np.abs(pull @ particular - needed), initial=0.0) > 1e-6 * (1.0 + np.max(np.abs(needed), initial=0.0)):
        raise InfeasibleControlError(f"at {time:.4g} s the cables cannot give the force that the path needs.")
    stress = right[rank:]
    tightens = stress.shape[0] == 1 and (np.all(stress[0] > 1e-9) or np.all(stress[0] < -1e-9))
    if not tightens or model.tension_level is not None or np.any(np.isfinite(model.tension_ceiling)):
        try:
            return choose_tensions(particular, stress, floor, model.tension_ceiling, model.tension_level, before)
        except InfeasibleControlError as error:
            raise InfeasibleControlError(
                f"at {time:.4g} s {error} (there are {stress.shape[0]} self-stresses); lower the floor or raise the "
                "ceiling."
            ) from None
    lift = np.abs(stress[0])
    scale = SHARPNESS / float(np.mean(floor / lift))
    raised = scale * (floor - particular) / lift
    highest = float(np.max(raised))
    amount = (highest + np.log(np.sum(np.exp(raised - highest)))) / scale
    return np.asarray(particular + amount * lift)


def _strains(elastic: Array, damping_time: Array, step: float) -> Array:
    """Strains (k, c) with strain + damping_time strain' = elastic (k, c), exact for linear pieces, started at rest."""
    strains = elastic.copy()
    for c, time in enumerate(damping_time):
        if time <= 0.0:
            continue
        decay = np.exp(-step / time)
        slopes = np.diff(elastic[:, c]) / step
        value = elastic[0, c]
        for i, slope in enumerate(slopes):
            value = decay * value + (1.0 - decay) * elastic[i, c] + slope * (step - time * (1.0 - decay))
            strains[i + 1, c] = value
    return strains
