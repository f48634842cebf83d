"""Derivatives of nodes, tensions and pose by the rest lengths: exact, by implicit differentiation of the equilibrium.

At an equilibrium the gradient of the energy vanishes, g(x, d) = A t - f = 0, with A (f, m) the directions dl/dx of the
members and t = K (l - d). Differentiation gives, with the tangent stiffness K_t,

    elastic bars:  K_t dx = A K dd                  dt = K (A' dx - dd)
    rigid bars:    N' H N z = N' (A_c K dd_c - H y)  dx = y + N z,  A_b' y = dd_b,  A_b' N = 0

with b the bars and c the tight tendons and springs. H is the tangent stiffness without the bars' own stiffness, and the
multipliers dt_b of the bars follow from A_b dt_b = A_c K dd_c - H dx. One factorisation is enough for all rest lengths;
document 001 (section 6) solves the forward kinematics once per column instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.structures.energy import free_positions, tangent_stiffness
from tensegrity_dynamics.structures.form_finding.equilibrium import StructureEquilibrium
from tensegrity_dynamics.structures.form_finding.standing import ground_stiffness
from tensegrity_dynamics.structures.structure import Structure


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Derivatives of an equilibrium by the rest lengths of some members, in the requested order.

    Attributes:
        members: (a,) indices of these members.
        nodes: (3 n, a) m/m, motion of the nodes (x, y, z of the first node first); zero rows for fixed nodes.
        tensions: (m, a) N/m.
        pose: (6, a) m/m and rad/m of the output frame about world axes, or None without an output.
    """

    members: NDArray[np.int64]
    nodes: Array
    tensions: Array
    pose: Array | None


def sensitivity(
    shape: StructureEquilibrium, members: NDArray[np.int64] | None = None, *, rigid_bars: bool = False
) -> Sensitivity:
    """Differentiate an equilibrium by rest lengths.

    Args:
        shape: a stable equilibrium.
        members: (a,) indices of the members with variable rest length; None for all.
        rigid_bars: whether bars keep exactly their rest length and carry the constraint forces.

    Raises:
        TensegrityError: the equilibrium is not a strict minimum of the energy, so that it does not follow its rest
            lengths.
    """
    structure = shape.structure
    columns = np.arange(len(structure.member_names)) if members is None else np.asarray(members, dtype=np.int64)
    bars = ~structure.unilateral
    stiffness = structure.tension_slopes(shape.lengths)
    directions = _directions(shape)
    drive = np.zeros((len(structure.member_names), columns.size))
    drive[columns, np.arange(columns.size)] = 1.0

    matrix = _tangent(shape, rigid_bars)
    if rigid_bars:
        motion, tensions = _rigid(matrix, directions, stiffness, drive, bars, shape)
    else:
        motion = _solve(matrix, directions @ (stiffness[:, None] * drive), shape)
        tensions = stiffness[:, None] * (directions.T @ motion - drive)

    nodes = np.zeros((shape.nodes.size, columns.size))
    nodes[structure.free] = motion
    pose = None if shape.output is None else shape.output.jacobian(shape.nodes) @ nodes
    return Sensitivity(columns, nodes, tensions, pose)


def longest_period(shape: StructureEquilibrium, *, rigid_bars: bool = False) -> float:
    """Period [s] of the slowest small oscillation about a stable equilibrium, from its stiffness and masses.

    Raises:
        TensegrityError: the equilibrium is not stable.
    """
    structure = shape.structure
    stiffness = _tangent(shape, rigid_bars)
    masses = _masses(structure)
    if rigid_bars:
        allowed = _rigid_motions(shape)
        stiffness, masses = allowed.T @ stiffness @ allowed, allowed.T @ masses @ allowed
    # Inverse squares of the frequencies are finite for nodes without mass.
    try:
        squares = eigh(masses, stiffness, eigvals_only=True)
    except LinAlgError:
        raise _unstable(shape) from None
    return float(2.0 * np.pi * np.sqrt(max(squares[-1], 0.0)))


def compliance(shape: StructureEquilibrium, *, rigid_bars: bool = False) -> Array:
    """(6, 6) m and rad of the output per N and N m on it, with constant rest lengths.

    Raises:
        TensegrityError: the equilibrium is not stable, or has no output.
    """
    if shape.output is None:
        raise TensegrityError("this shape has no output frame, so no stiffness of it.")
    along = shape.output.jacobian(shape.nodes)[:, shape.structure.free]
    matrix = _tangent(shape, rigid_bars)
    if rigid_bars:
        allowed = _rigid_motions(shape)
        matrix, along = allowed.T @ matrix @ allowed, along @ allowed
    return np.asarray(along @ _solve(matrix, along.T, shape))


def inertial_tensions(shape: StructureEquilibrium, slopes: Sensitivity, *, rigid_bars: bool = False) -> Array:
    """(m, a) N, change of the tensions by inertia per m/s^2 of the rest lengths of `slopes`.

    The nodes follow the equilibria with accelerations dx/dd dd''. The inertial load is carried by an additional
    displacement, K_t dx = -M dx/dd dd''.

    Raises:
        TensegrityError: the equilibrium is not stable.
    """
    structure = shape.structure
    allowed = _rigid_motions(shape) if rigid_bars else np.eye(structure.free.size)
    needed = _masses(structure) @ slopes.nodes[structure.free]
    moved = allowed @ _solve(allowed.T @ _tangent(shape, rigid_bars) @ allowed, -allowed.T @ needed, shape)
    slopes_of_law = np.where(structure.unilateral, structure.tension_slopes(shape.lengths), 0.0)
    return slopes_of_law[:, None] * (_directions(shape).T @ moved)


def _masses(structure: Structure) -> Array:
    """(f, f) kg over the free coordinates."""
    return np.asarray(np.kron(structure.mass_matrix(), np.eye(3))[np.ix_(structure.free, structure.free)], np.float64)


def _rigid_motions(shape: StructureEquilibrium) -> Array:
    """(f, k) orthonormal motions of the free coordinates that keep the lengths of all bars."""
    left, singular, _ = np.linalg.svd(_directions(shape)[:, ~shape.structure.unilateral])
    return left[:, int(np.count_nonzero(singular > 1e-10)) :]


def _tangent(shape: StructureEquilibrium, rigid_bars: bool) -> Array:
    """(f, f) tangent stiffness; with rigid bars without the bars' own stiffness, which the constraint replaces."""
    structure = shape.structure
    material = np.where(~structure.unilateral & rigid_bars, 0.0, structure.stiffness)
    matrix = np.empty((structure.free.size, structure.free.size))
    tangent_stiffness(
        shape.nodes, structure.members, material, structure.laws, shape.lengths, shape.tensions,
        structure.rest_lengths, free_positions(structure.supports), matrix,
    )  # fmt: skip
    return matrix if structure.ground is None else matrix + ground_stiffness(structure, shape.nodes)


def _directions(shape: StructureEquilibrium) -> Array:
    """A, (f, m): derivative of the length of each member by each free coordinate."""
    structure = shape.structure
    first, second = structure.members.T
    unit = (shape.nodes[first] - shape.nodes[second]) / shape.lengths[:, None]
    full = np.zeros((len(structure.node_names), 3, len(structure.member_names)))
    rows = np.arange(len(structure.member_names))
    full[first, :, rows] = unit
    full[second, :, rows] = -unit
    return full.reshape(-1, rows.size)[structure.free]


def _rigid(
    matrix: Array,
    directions: Array,
    stiffness: Array,
    drive: Array,
    bars: NDArray[np.bool_],
    shape: StructureEquilibrium,
) -> tuple[Array, Array]:
    """Motion (f, a) and tensions (m, a) with bars of constant length; dependent bars are allowed."""
    held = directions[:, bars]
    left, singular, right = np.linalg.svd(held)
    rank = int(np.count_nonzero(singular > 1e-10))
    allowed = left[:, rank:]
    # pinv(held) and pinv(held') share one decomposition; members between fixed nodes have no singular value.
    inverse = right[:rank].T @ (left[:, :rank] / singular[:rank]).T
    forced = inverse.T @ drive[bars]
    cables = ~bars
    force = directions[:, cables] @ (stiffness[cables, None] * drive[cables])
    reduced = _solve(allowed.T @ matrix @ allowed, allowed.T @ (force - matrix @ forced), shape)
    motion = forced + allowed @ reduced
    tensions = stiffness[:, None] * (directions.T @ motion - drive)
    tensions[bars] = inverse @ (force - matrix @ motion)
    return motion, tensions


def _solve(matrix: Array, right: Array, shape: StructureEquilibrium) -> Array:
    try:
        return cho_solve(cho_factor(matrix, lower=True), right)
    except LinAlgError:
        raise _unstable(shape) from None


def _unstable(shape: StructureEquilibrium) -> TensegrityError:
    return TensegrityError(
        f"the shape is not stable (softest stiffness {shape.softest:.3g} N/m), so it does not follow its rest "
        "lengths; start from a stable shape, with more tension in the tendons."
    )
