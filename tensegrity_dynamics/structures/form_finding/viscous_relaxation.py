"""Equilibrium by damped relaxation: 001, Algorithm 1, with corrected misprints.

    v <- (1 - epsilon) v + epsilon R,   x <- x + delta v,   until max |R| <= tolerance

R is the out-of-balance force including the weight, v starts at zero, supports are fixed, and a tendon that is shorter
than its rest length has no tension. Near an equilibrium with the stiffness eigenvalues lambda, the iteration is stable
exactly if 0 < epsilon < 2 and delta epsilon lambda_max < 4 - 2 epsilon.

The stiffness of a member at its ends is at most K in any direction, for all positions of the nodes. Therefore the
largest eigenvalue of C' K C over the free nodes is a bound of lambda_max for every position, taut or slack. The default
delta is computed from it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import NoEquilibriumError, TensegrityError, unknown_name
from ...numerics.compilation import compiled, compiled_part
from ..energy import add_member_forces, free_positions, member_tensions, tangent_stiffness
from ..structure import Structure

NORMS = ("component", "node", "total")
"""Quantity compared with the tolerance: largest force component, largest force on a node, or norm of all forces."""

DEFAULT_EPSILON = 0.05
SAFETY_FACTOR = 0.5
"""Default delta relative to the largest stable one."""

RELAXED, EXHAUSTED, DIVERGED, COINCIDENT = 0, 1, 2, 3
MEMBER_STEPS_PER_CALL = 50_000_000  # a few tenths of a second, so that Ctrl-C can interrupt


@compiled_part
def out_of_balance_norm(forces, supports, norm):
    """Size of the free forces (n, 3) N; norm 0: largest component, 1: largest on one node, 2: norm of all."""
    worst, total = 0.0, 0.0
    for i in range(forces.shape[0]):
        node = 0.0
        for axis in range(3):
            if supports[i, axis]:
                continue
            value = forces[i, axis]
            node += value * value
            # this form keeps NaN values
            if norm == 0 and not abs(value) <= worst:
                worst = abs(value)
        if norm == 1 and not np.sqrt(node) <= worst:
            worst = np.sqrt(node)
        total += node
    return np.sqrt(total) if norm == 2 else worst


@compiled
def balance(nodes, members, stiffness, rest_lengths, laws, external, lengths, tensions, forces):
    """Fill lengths, tensions and out-of-balance forces (n, 3) [N]; False if the ends of a member coincide."""
    member_tensions(nodes, members, stiffness, rest_lengths, laws, lengths, tensions)
    for k in range(lengths.shape[0]):
        if lengths[k] == 0.0:
            return False
    forces[:, :] = external
    add_member_forces(nodes, members, lengths, tensions, forces)
    return True


@compiled
def relax_steps(
    nodes, velocities, members, stiffness, rest_lengths, laws, supports, external, lengths, tensions, forces,
    delta, epsilon, tolerance, norm, ceiling, steps,
):  # fmt: skip
    """Make up to `steps` iterations in place; returns (status, number of iterations, size of the last residual)."""
    residual = np.inf
    for iteration in range(steps + 1):
        if not balance(nodes, members, stiffness, rest_lengths, laws, external, lengths, tensions, forces):
            return COINCIDENT, iteration, residual
        residual = out_of_balance_norm(forces, supports, norm)
        if residual <= tolerance:
            return RELAXED, iteration, residual
        if not residual < ceiling:
            return DIVERGED, iteration, residual
        if iteration == steps:
            break
        for i in range(nodes.shape[0]):
            for axis in range(3):
                if supports[i, axis]:
                    continue
                velocities[i, axis] += epsilon * (forces[i, axis] - velocities[i, axis])
                nodes[i, axis] += delta * velocities[i, axis]
    return EXHAUSTED, steps, residual


def check_settings(structure: Structure, method: str, norm: str, tolerance: float, maximum_iterations: int) -> None:
    """Raise TensegrityError for a setting out of range, or for a ground, which these methods do not support."""
    if structure.ground is not None and structure.free.size:
        raise TensegrityError(
            f"method {method!r} does not support a ground, and the structure has one: nodes would sink through it. Use "
            "method 'newton', which finds how it stands, or take the block contact: out of the robot file."
        )
    if norm not in NORMS:
        raise TensegrityError(unknown_name("norm", norm, NORMS))
    if not (np.isfinite(tolerance) and tolerance > 0.0):
        raise TensegrityError(f"tolerance {tolerance} N must be a finite number above zero.")
    if maximum_iterations < 1:
        raise TensegrityError(f"maximum_iterations is {maximum_iterations}, must be at least 1.")


def iterate(
    structure: Structure, nodes: NDArray[np.float64], maximum_iterations: int,
    advance: Callable[[int], tuple[int, int, float]],
) -> tuple[int, int, float]:  # fmt: skip
    """Call `advance(steps)` while its status is EXHAUSTED; returns status, number of iterations and residual [N]."""
    done, residual, status = 0, np.inf, EXHAUSTED
    while done < maximum_iterations and status == EXHAUSTED:
        longest = max(1000, MEMBER_STEPS_PER_CALL // max(len(structure.member_names), 1))
        status, taken, residual = advance(min(maximum_iterations - done, longest))
        done += taken
    if status == COINCIDENT:
        raise coincident(structure, nodes)
    return status, done, float(residual)


def relax(
    structure: Structure,
    forces: ArrayLike,
    start: ArrayLike,
    tolerance: float,
    *,
    delta: float | None = None,
    epsilon: float | None = None,
    maximum_iterations: int = 3_000_000,
    norm: str = "component",
) -> tuple[NDArray[np.float64], int, float]:
    """Equilibrium by relaxation: nodes (n, 3) [m], number of iterations, and size of the last residual [N].

    Args:
        structure: structure with the rest lengths to use.
        forces: (n, 3) all external forces including the weight [N].
        start: (n, 3) start nodes [m].
        tolerance: tolerance of the residual [N], see `norm`.
        delta: displacement of a node per force [m/N]; by default half of the limit that is stable for any position.
        epsilon: fraction of the velocity that is replaced in each iteration, between 0 and 2; small values oscillate
            for a long time, values near 1 converge slowly along soft motions.
        maximum_iterations: number of iterations after which NoEquilibriumError is raised, with the remaining residual.
        norm: "component" (largest component of the force on a node), "node" or "total".

    Raises:
        NoEquilibriumError: the iteration diverged or did not converge; the message contains the stability limit.
        TensegrityError: an option is out of range, two nodes of one member have the same position, or there is a
            ground.
    """
    check_settings(structure, "relaxation", norm, tolerance, maximum_iterations)
    epsilon = DEFAULT_EPSILON if epsilon is None else float(epsilon)
    if not 0.0 < epsilon < 2.0:
        raise TensegrityError(f"epsilon is {epsilon:g}, must lie between 0 and 2.")
    delta = SAFETY_FACTOR * stable_delta(epsilon, stiffness_bound(structure)) if delta is None else float(delta)
    if not (np.isfinite(delta) and delta > 0.0):
        raise TensegrityError(f"delta is {delta:g} m/N, must be a finite number above zero.")

    nodes, external = np.array(start, dtype=np.float64), np.array(forces, dtype=np.float64)
    velocities, out, m = np.zeros_like(nodes), np.zeros_like(nodes), len(structure.member_names)
    problem = (
        structure.members, structure.stiffness, structure.rest_lengths, structure.laws, structure.supports, external,
        np.zeros(m), np.zeros(m), out,
    )  # fmt: skip
    size = max(float(np.ptp(nodes, axis=0).max()), float(structure.rest_lengths.max(initial=0.0)))
    ceiling = 1e4 * (float(structure.stiffness.sum()) * size + float(np.abs(external).max(initial=0.0)))
    settings = (delta, epsilon, tolerance, NORMS.index(norm), ceiling)
    status, done, residual = iterate(
        structure, nodes, maximum_iterations, lambda steps: relax_steps(nodes, velocities, *problem, *settings, steps)
    )
    if status != RELAXED:
        raise _failure(structure, start, status, done, residual, tolerance, delta, epsilon)
    return nodes, done, residual


def stable_delta(epsilon: float, largest_stiffness: float) -> float:
    """Limit of delta [m/N] above which the iteration is unstable for this epsilon and largest stiffness [N/m]."""
    return (4.0 - 2.0 * epsilon) / (epsilon * largest_stiffness)


def stiffness_bound(structure: Structure) -> float:
    """Upper bound of the largest eigenvalue of the tangent stiffness [N/m] for all positions of the nodes."""
    free = np.flatnonzero(~structure.fixed)
    diagonal = np.zeros(len(structure.node_names))
    for end in (0, 1):
        np.add.at(diagonal, structure.members[:, end], structure.stiffness)
    held = np.where(structure.fixed, 0.0, diagonal)
    # the eigenvalues of such a matrix are at most the largest sum over the two ends of a member
    ends = structure.members[~structure.fixed[structure.members].all(axis=1)]
    bound = float(np.max(held[ends].sum(axis=1), initial=0.0))
    if 0 < free.size <= 200:
        connectivity = structure.connectivity()[:, free]
        laplacian = connectivity.T @ (structure.stiffness[:, None] * connectivity)
        bound = min(bound, float(np.linalg.eigvalsh(laplacian)[-1]) * (1.0 + 1e-12))
    if bound <= 0.0:
        raise TensegrityError("no member ends at a free node: nothing holds the nodes. Add members, or free a node.")
    return bound


def largest_stiffness(structure: Structure, nodes: NDArray[np.float64]) -> float:
    """Largest eigenvalue of the tangent stiffness [N/m] at nodes (n, 3) m: the lambda_max of the stability limit."""
    if structure.free.size > 3000:
        return stiffness_bound(structure)
    m = len(structure.member_names)
    lengths, tensions = np.zeros(m), np.zeros(m)
    nodes = np.ascontiguousarray(nodes, dtype=np.float64)
    member_tensions(
        nodes, structure.members, structure.stiffness, structure.rest_lengths, structure.laws, lengths, tensions
    )
    matrix = np.zeros((structure.free.size, structure.free.size))
    tangent_stiffness(
        nodes, structure.members, structure.stiffness, structure.laws, lengths, tensions, structure.rest_lengths,
        free_positions(structure.supports), matrix,
    )  # fmt: skip
    return float(np.linalg.eigvalsh(matrix)[-1])


def coincident(structure: Structure, nodes: NDArray[np.float64]) -> TensegrityError:
    """Error for a member whose ends have the same position."""
    apart = np.linalg.norm(nodes[structure.members[:, 0]] - nodes[structure.members[:, 1]], axis=1)
    k = int(np.argmin(apart))
    i, j = structure.members[k]
    return TensegrityError(
        f"nodes {structure.node_names[i]} and {structure.node_names[j]} of member {structure.member_names[k]} are at "
        "the same position, so that it has no direction; start with them apart."
    )


def _failure(
    structure: Structure, start: ArrayLike, status: int, done: int, residual: float, tolerance: float,
    delta: float, epsilon: float,
) -> NoEquilibriumError:  # fmt: skip
    # at the start, because the stiffness is meaningless at the positions of a diverged run
    stiffness = max(largest_stiffness(structure, np.array(start, dtype=np.float64)), 1e-300)
    limit, sure = stable_delta(epsilon, stiffness), stable_delta(epsilon, stiffness_bound(structure))
    what = f"relaxation with delta {delta:.4g} m/N and epsilon {epsilon:.4g}"
    condition = (
        f"delta * epsilon * lambda_max is {delta * epsilon * stiffness:.4g} and must stay below 4 - 2 epsilon = "
        f"{4.0 - 2.0 * epsilon:.4g} (lambda_max {stiffness:.4g} N/m at the start)"
    )
    cure = f"With this epsilon take delta below {limit:.3g} m/N; below {sure:.3g} m/N it is stable at any position."
    if status == DIVERGED:
        return NoEquilibriumError(f"{what} diverged after {done} iterations: {condition}. {cure}")
    left = f"{what}: {residual:.3g} N are left after {done} iterations, {tolerance:.3g} N are required"
    if delta >= sure:
        return NoEquilibriumError(f"{left}. The pair may be unstable: {condition}. {cure}")
    return NoEquilibriumError(
        f"{left}. Raise maximum_iterations or delta (stable below {sure:.3g} m/N), tune the pair, or use method "
        "'newton'."
    )
