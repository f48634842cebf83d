"""Solver for equilibria of one structure, with work arrays that are allocated once."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import NoEquilibriumError, PartError, TensegrityError
from ...numerics.number_array import number_array
from ..energy import free_positions
from ..form_finding.softest_mode import MAX_LANCZOS_STEPS, softest_elastic
from ..form_finding.stability import edge_members, no_stiffness, stiffness_at_the_edge
from ..node_frame import NodeFrame
from ..structure import Structure
from .equilibrium import StructureEquilibrium
from .floating_components import FloatingComponent
from .force_density import rigid_motions
from .newton import (
    BALANCED,
    COINCIDENT,
    Problem,
    make_workspace,
    minimise,
    out_of_balance,
)
from .rigid_bar_solver import RigidSolver, bar_directions
from .rigid_bars import make_rigid_bars
from .sparse_newton import SparseMinimiser, SparseResult
from .standing import StandingSolver

MAX_ASSESSED_NODES = 1500
"""Largest number of nodes for the dense analysis of tendons at the transition to slack and of free bodies."""
MAX_DENSE_COORDINATES = 300
"""Largest number of free coordinates for the dense solver."""


class StructureEquilibriumSolver:
    """Solver of equilibria of one structure: Newton's method in a trust region, with warm starts.

    Args:
        structure: structure to solve; its rest lengths are the default ones.
        rigid_bars: whether bars keep exactly their rest length, with tensions as constraint forces; else they are
            elastic.
        output: frame reported by the equilibria.
        tolerance: largest out-of-balance component [N]; by default 1e-13 of the largest stiffness times rest length, or
            the rounding error if it is larger (coordinates far from the origin, large forces).
        maximum_iterations: iterations of the trust region; by default 500 plus ten for every free node.

    Raises:
        TensegrityError: every node is fixed, a number is out of range, or the bars are rigid in a structure with more
            than `MAX_DENSE_COORDINATES` free coordinates.
    """

    def __init__(
        self,
        structure: Structure,
        *,
        rigid_bars: bool = False,
        output: NodeFrame | None = None,
        tolerance: float | None = None,
        maximum_iterations: int | None = None,
    ) -> None:
        self.structure, self.rigid_bars, self.output = structure, rigid_bars, output
        if not structure.free.size:
            raise TensegrityError("every node is fixed: there is no shape to find. Free at least one node.")
        natural = 1e-13 * float(np.max(structure.stiffness * structure.rest_lengths, initial=1e-300))
        self.tolerance = natural if tolerance is None else float(tolerance)
        if not (np.isfinite(self.tolerance) and self.tolerance > 0.0):
            raise TensegrityError(f"tolerance {tolerance} N must be a finite number above zero.")
        self._explicit = tolerance is not None
        if maximum_iterations is not None and maximum_iterations < 1:
            raise TensegrityError(f"maximum_iterations is {maximum_iterations}, must be at least 1.")
        self.maximum_iterations = maximum_iterations or 500 + 10 * (structure.free.size // 3)
        self._support = FloatingComponent(structure)
        self._weights = structure.steady_forces()
        self._neutral = False
        self._reach = 0.5 * float(np.median(structure.rest_lengths)) if structure.rest_lengths.size else 1.0
        self.problem = Problem(
            np.array(structure.members), np.array(structure.stiffness), np.array(structure.laws),
            free_positions(structure.supports), np.array(structure.free),
        )  # fmt: skip
        self._sparse: SparseMinimiser | None = None
        if structure.free.size > MAX_DENSE_COORDINATES:
            if rigid_bars:
                raise PartError(
                    f"rigid bars are solved up to {MAX_DENSE_COORDINATES} free coordinates, this structure has "
                    f"{structure.free.size}; use elastic bars.",
                    "nodes",
                )
            self._sparse = SparseMinimiser(structure, self.problem, self._reach)
        count = min(structure.free.size, MAX_DENSE_COORDINATES)
        self._work = make_workspace(len(structure.node_names), len(structure.member_names), count)
        self._basis = np.zeros((MAX_LANCZOS_STEPS + 1, count))
        # above this size rigid bars are not supported, and their dense arrays would be too large
        elastic = structure.unilateral if self._sparse is None else np.ones(len(structure.kinds), dtype=np.bool_)
        self._bars = make_rigid_bars(structure.members, elastic, structure.fixed, count)
        self._rigid: RigidSolver | None = None
        if rigid_bars and self._bars.bars.size:
            self._rigid = RigidSolver(structure, self.problem, self._bars, self._work, self._basis, self.tolerance)
        self._standing: StandingSolver | None = None
        if structure.ground is not None:
            most = () if maximum_iterations is None else (maximum_iterations,)
            self._standing = StandingSolver(structure, rigid_bars, self.tolerance, self._reach, *most)
        self._own_lengths = np.array(structure.rest_lengths)  # writable like all others: one compiled version

    def solve(
        self,
        rest_lengths: Mapping[str, float] | ArrayLike | None = None,
        forces: Mapping[str, ArrayLike] | ArrayLike | None = None,
        start: ArrayLike | StructureEquilibrium | None = None,
        *,
        gravity: ArrayLike | None = None,
    ) -> StructureEquilibrium:
        """Equilibrium for rest lengths near a start (by default the nodes of the structure).

        Args:
            rest_lengths: (m,) [m], or some by member name.
            forces: (n, 3) external forces without weight [N], or some by node name.
            start: nodes (n, 3) [m] or an equilibrium.
            gravity: (3,) gravity in place of that of the structure [m/s^2].

        Raises:
            NoEquilibriumError: there is no equilibrium, or it was not reached.
            TensegrityError: a name is unknown, an input is not finite, nodes of one member have the same position, or
                rigid bars are dependent.
        """
        structure = self.structure
        rest = self._own_lengths
        if rest_lengths is not None:
            rest = structure.rest_length_array(rest_lengths)
        total = self.total_forces(forces, gravity)
        nodes = self.start_nodes(start)
        if self._standing is not None:
            return self._stand(nodes, rest, total)
        self._neutral = self._is_neutral(total)
        self._support.check(total, self.tolerance)
        if self._sparse is not None:
            return self._solve_sparse(nodes, rest, total)
        if self._rigid is not None:
            return self._solve_rigid(
                nodes, rest, total, start.tensions if isinstance(start, StructureEquilibrium) else None
            )
        status, iterations, residual = minimise(
            nodes, self.problem, rest, total, self.tolerance, self._reach, self.maximum_iterations, self._work
        )
        self._check(status, iterations, residual, nodes)
        return self._elastic_shape(nodes, rest, iterations, residual)

    def assess(
        self, nodes: NDArray, rest_lengths: NDArray, forces: NDArray, iterations: int, method: str
    ) -> StructureEquilibrium:
        """Force balance and stability at given nodes (n, 3) [m] of any method; forces (n, 3) [N] include the weight."""
        nodes, rest = np.array(nodes), np.array(rest_lengths)
        self._neutral = self._is_neutral(forces)
        if self._sparse is not None:
            shape = self._sparse_shape(nodes, rest, self._sparse.assess(nodes, rest, forces), iterations)
        else:
            residual = out_of_balance(nodes, self.problem, rest, forces, self._work)
            shape = self._elastic_shape(nodes, rest, iterations, residual)
        residual = shape.residual
        return replace(shape, method=method, converged=bool(residual <= self.tolerance))

    def total_forces(self, forces: Mapping[str, ArrayLike] | ArrayLike | None, gravity: ArrayLike | None) -> NDArray:
        """(n, 3) total forces [N]: external forces, loads of the structure, and weight."""
        total = self._weights if gravity is None else _weights(self.structure, gravity)
        if forces is None:
            return total
        return total + self.structure.force_array(forces)

    def start_nodes(self, start: ArrayLike | StructureEquilibrium | None) -> NDArray[np.float64]:
        """(n, 3) copy of the start nodes [m] with the fixed nodes at their positions."""
        structure = self.structure
        source = structure.nodes if start is None else start.nodes if isinstance(start, StructureEquilibrium) else start
        nodes = number_array(source, "nodes of a start in m")
        if nodes.shape != structure.nodes.shape:
            raise TensegrityError(f"start has shape {nodes.shape}, expected {structure.nodes.shape}.")
        if not np.isfinite(nodes).all():
            row = int(np.argwhere(~np.isfinite(nodes))[0][0])
            raise TensegrityError(f"start position of node {structure.node_names[row]} is not finite; give numbers.")
        nodes[structure.supports] = structure.nodes[structure.supports]
        return nodes

    # -- parts ----------------------------------------------------------------------------------------------------

    def _is_neutral(self, forces: NDArray) -> bool:
        """Whether rigid body motions have no stiffness: fewer than three fixed nodes and no forces."""
        return int(np.count_nonzero(self.structure.fixed)) < 3 and not forces.ravel()[self.structure.free].any()

    def _check(self, status: int, iterations: int, residual: float, nodes: NDArray) -> None:
        if status == BALANCED:
            if self._explicit and residual > self.tolerance:
                raise NoEquilibriumError(
                    f"rounding leaves {residual:.3g} N at these coordinates and forces, {self.tolerance:.3g} N were "
                    "required. Raise the tolerance, or move the structure to the origin."
                )
            return
        structure = self.structure
        if status == COINCIDENT:
            apart = np.linalg.norm(nodes[structure.members[:, 0]] - nodes[structure.members[:, 1]], axis=1)
            k = int(np.argmin(apart / structure.rest_lengths))
            first, second = (structure.node_names[i] for i in structure.members[k])
            raise TensegrityError(
                f"nodes {first} and {second} of member {structure.member_names[k]} are at the same position, so that "
                "it has no direction; start with the nodes apart."
            )
        raise NoEquilibriumError(
            f"no equilibrium within {iterations} iterations: {residual:.3g} N are left (limit {self.tolerance:.3g}). "
            "Start nearer to the shape, or raise the tolerance."
        )

    def _elastic_shape(self, nodes: NDArray, rest: NDArray, iterations: int, residual: float) -> StructureEquilibrium:
        work = self._work
        softest, settled = softest_elastic(nodes, self.problem, rest, self._bars, work, self._basis)
        direction = work.direction.copy()
        if not settled:
            values, vectors = np.linalg.eigh(work.matrix)
            softest, direction = float(values[0]), vectors[:, 0]
        largest = float(np.abs(work.matrix.diagonal()).max())
        return self._shape(nodes, rest, iterations, residual, softest, direction, softest > 1e-10 * largest)

    def _shape(
        self, nodes: NDArray, rest: NDArray, iterations: int, residual: float, softest: float, direction: NDArray,
        stable: bool,
    ) -> StructureEquilibrium:  # fmt: skip
        structure, work = self.structure, self._work
        if rest is not self._own_lengths:
            # the rest lengths were checked before; creating the whole structure again would take longer than the
            # solution
            structure = copy.copy(structure)
            rest.setflags(write=False)
            object.__setattr__(structure, "rest_lengths", rest)
        if nodes.size <= 3 * MAX_ASSESSED_NODES:
            stable, softest, direction = self._assess(nodes, rest, structure, stable, softest, direction)
        along = np.zeros(nodes.size)
        along[structure.free] = direction
        balance = work.forces.ravel()[structure.free]
        # factor 1.5, because the stiffness changes on the way to the equilibrium
        error = 1.5 * float(np.linalg.norm(balance)) / softest if stable else np.inf
        return StructureEquilibrium(
            structure, nodes, work.lengths.copy(), work.tensions.copy(), float(residual), int(iterations), True, stable,
            float(softest), along.reshape(nodes.shape), error, "newton", self.output,
        )  # fmt: skip

    def _assess(
        self, nodes: NDArray, rest: NDArray, structure: Structure, stable: bool, softest: float, direction: NDArray
    ) -> tuple[bool, float, NDArray[np.float64]]:
        """Stability in cases not decided by eigenvalues: tendons at the transition to slack, and free bodies."""
        work = self._work
        edge = edge_members(structure, work.lengths, rest)
        neutral = self._neutral and not stable
        if not (edge.size or neutral):
            return stable, softest, direction
        without = rigid_motions(structure, nodes) if self._neutral else np.zeros((structure.free.size, 0))
        if self._rigid is not None:
            normals = bar_directions(nodes, structure, self._bars.bars)
            without = np.linalg.qr(np.hstack((without, normals.T)))[0]
        if without.shape[1] >= structure.free.size:
            return True, np.inf, np.zeros(structure.free.size)
        value, vector = stiffness_at_the_edge(structure, nodes, work.lengths, work.tensions, edge, without)
        return value > no_stiffness(structure), value, vector

    def _solve_rigid(
        self, nodes: NDArray, rest: NDArray, forces: NDArray, warm: NDArray | None
    ) -> StructureEquilibrium:
        assert self._rigid is not None
        result = self._rigid.solve(nodes, rest, forces, warm, self._reach, self.maximum_iterations)
        self._check(result.status, result.iterations, result.residual, result.nodes)
        assert result.direction is not None
        shape = self._shape(
            result.nodes, rest, result.iterations, result.residual, result.softest, result.direction, result.stable
        )
        return shape if result.converged else replace(shape, converged=False)

    def _stand(self, nodes: NDArray, rest: NDArray, forces: NDArray) -> StructureEquilibrium:
        assert self._standing is not None
        found = self._standing.solve(nodes, rest, forces)
        structure = self.structure if rest is self._own_lengths else self.structure.with_rest_lengths(rest)
        along = np.zeros(nodes.size)
        along[structure.free] = found.direction
        left = float(np.linalg.norm(found.out_of_balance))
        return StructureEquilibrium(
            structure, found.nodes, found.lengths, found.tensions, found.residual, found.iterations, True,
            found.stable, found.softest, along.reshape(nodes.shape),
            1.5 * left / found.softest if found.stable else np.inf, "newton", self.output, found.contacts,
        )  # fmt: skip

    def _solve_sparse(self, nodes: NDArray, rest: NDArray, forces: NDArray) -> StructureEquilibrium:
        assert self._sparse is not None
        result = self._sparse.minimise(nodes, rest, forces, self.tolerance, self.maximum_iterations)
        self._check(result.status, result.iterations, result.residual, nodes)
        return self._sparse_shape(nodes, rest, result, result.iterations)

    def _sparse_shape(
        self, nodes: NDArray, rest: NDArray, result: SparseResult, iterations: int
    ) -> StructureEquilibrium:
        self._work = self._work._replace(lengths=result.lengths, tensions=result.tensions, forces=result.forces)
        return self._shape(nodes, rest, iterations, result.residual, result.softest, result.direction, result.stable)


def _weights(structure: Structure, gravity: ArrayLike) -> NDArray[np.float64]:
    vector = np.asarray(gravity, dtype=np.float64)
    if vector.shape != (3,) or not np.isfinite(vector).all():
        raise TensegrityError(f"gravity must be three finite numbers in m/s^2, found {gravity!r}.")
    return structure.lumped_masses()[:, None] * vector + structure.loads
