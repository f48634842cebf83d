"""`ShapeSolver`: finds the shapes of one structure again and again without building anything anew."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import NoEquilibriumError, TensegrityError
from ..output_frame import OutputFrame
from ..structure import Structure
from .energy import free_positions
from .equilibrium import (
    BALANCED,
    COINCIDENT,
    RUNAWAY,
    Problem,
    make_room,
    minimise,
    out_of_balance,
)
from .rigid_bars import make_rigid, newton_rigid, rigid_residual
from .shape import Shape
from .softest import STEPS, softest_elastic, softest_mode
from .sparse_equilibrium import SparseMinimiser

DENSE_LIMIT = 300
"""Free coordinates up to which the dense solver is used."""


class ShapeSolver:
    """Newton's method on one structure, with warm starts.

    Args:
        structure: what is solved; its rest lengths are the default ones.
        rigid_bars: bars keep exactly their rest length, their tensions are what holds them; else they are elastic.
        output: frame that the shapes report.
        tolerance: N on the largest out-of-balance component; by default 1e-13 of the largest stiffness times rest
            length, a few times what rounding leaves.
        maximum_iterations: of the trust region.
    """

    def __init__(
        self,
        structure: Structure,
        *,
        rigid_bars: bool = False,
        output: OutputFrame | None = None,
        tolerance: float | None = None,
        maximum_iterations: int = 500,
    ) -> None:
        self.structure, self.rigid_bars, self.output = structure, rigid_bars, output
        if not structure.free.size:
            raise TensegrityError("every node is fixed: there is no shape to find. Free at least one node.")
        natural = 1e-13 * float(np.max(structure.stiffness * structure.rest_lengths, initial=1e-300))
        self.tolerance = natural if tolerance is None else float(tolerance)
        if not (np.isfinite(self.tolerance) and self.tolerance > 0.0):
            raise TensegrityError(f"tolerance {tolerance} N must be a finite number above zero.")
        self.maximum_iterations = maximum_iterations
        self._weights = structure.weights()
        self._reach = 0.5 * float(np.median(structure.rest_lengths)) if structure.rest_lengths.size else 1.0
        self._problem = Problem(
            np.array(structure.members), np.array(structure.stiffness), np.array(structure.unilateral),
            free_positions(structure.fixed), np.array(structure.free),
        )  # fmt: skip
        self._sparse: SparseMinimiser | None = None
        if structure.free.size > DENSE_LIMIT:
            if rigid_bars:
                raise TensegrityError(
                    f"rigid bars are solved up to {DENSE_LIMIT} free coordinates, this structure has "
                    f"{structure.free.size}; use elastic bars."
                )
            self._sparse = SparseMinimiser(structure, self._problem, self._reach)
        count = min(structure.free.size, DENSE_LIMIT)
        self._room = make_room(len(structure.node_names), len(structure.member_names), count)
        self._rigid = make_rigid(structure.members, structure.unilateral, structure.fixed, count)
        self._basis = np.zeros((STEPS + 1, count))

    def solve(
        self,
        rest_lengths: Mapping[str, float] | ArrayLike | None = None,
        forces: Mapping[str, ArrayLike] | ArrayLike | None = None,
        start: ArrayLike | Shape | None = None,
        *,
        gravity: ArrayLike | None = None,
    ) -> Shape:
        """The shape for rest lengths, from a start (the structure's own nodes, nodes (n, 3) m, or a former shape).

        Args:
            rest_lengths: (m,) m or some by member name; forces: (n, 3) N or some by node name, weight not included;
            gravity: (3,) m/s^2 instead of the structure's own.

        Raises:
            NoEquilibriumError: there is none within reach. TensegrityError: input that is not finite, or nodes of one
            member at the same place.
        """
        structure = self.structure
        rest = structure.rest_lengths if rest_lengths is None else structure.rest_length_array(rest_lengths)
        total = self.total_forces(forces, gravity)
        nodes = self.start_nodes(start)
        if self._sparse is not None:
            return self._solve_sparse(nodes, rest, total)
        if self.rigid_bars and self._rigid.bars.size:
            return self._solve_rigid(nodes, rest, total, start if isinstance(start, Shape) else None)
        status, iterations, residual = minimise(
            nodes, self._problem, rest, total, self.tolerance, self._reach, self.maximum_iterations, self._room
        )
        self._check(status, iterations, residual, nodes)
        return self._elastic_shape(nodes, rest, iterations, residual)

    def judge(self, nodes: NDArray, rest_lengths: NDArray, forces: NDArray, iterations: int, method: str) -> Shape:
        """The shape at given nodes (n, 3) m as it is, whoever found them; forces (n, 3) N include the weight."""
        if self._sparse is not None:
            result = self._sparse.minimise(nodes, rest_lengths, forces, np.inf, 0)
            self._room = self._room._replace(lengths=result.lengths, tensions=result.tensions, forces=result.forces)
            residual = result.residual
            shape = self._shape(
                nodes, rest_lengths, iterations, residual, result.softest, result.direction, result.stable
            )
        else:
            residual = out_of_balance(nodes, self._problem, rest_lengths, forces, self._room)
            shape = self._elastic_shape(nodes, np.array(rest_lengths), iterations, residual)
        return replace(shape, method=method, converged=bool(residual <= self.tolerance))

    def total_forces(self, forces: Mapping[str, ArrayLike] | ArrayLike | None, gravity: ArrayLike | None) -> NDArray:
        """(n, 3) N: external forces and weight."""
        total = self._weights if gravity is None else _weights(self.structure, gravity)
        return total if forces is None else total + self.structure.force_array(forces)

    def start_nodes(self, start: ArrayLike | Shape | None) -> NDArray[np.float64]:
        structure = self.structure
        source = structure.nodes if start is None else start.nodes if isinstance(start, Shape) else start
        nodes = np.array(source, dtype=np.float64)
        if nodes.shape != structure.nodes.shape:
            raise TensegrityError(f"start has shape {nodes.shape}, expected {structure.nodes.shape}.")
        if not np.isfinite(nodes).all():
            row = int(np.argwhere(~np.isfinite(nodes))[0][0])
            raise TensegrityError(f"start position of node {structure.node_names[row]} is not finite; give numbers.")
        nodes[structure.fixed] = structure.nodes[structure.fixed]
        return nodes

    # -- parts ----------------------------------------------------------------------------------------------------

    def _check(self, status: int, iterations: int, residual: float, nodes: NDArray) -> None:
        if status == BALANCED:
            return
        structure = self.structure
        if status == COINCIDENT:
            apart = np.linalg.norm(nodes[structure.members[:, 0]] - nodes[structure.members[:, 1]], axis=1)
            k = int(np.argmin(apart / structure.rest_lengths))
            first, second = (structure.node_names[i] for i in structure.members[k])
            raise TensegrityError(
                f"nodes {first} and {second} of member {structure.member_names[k]} are at the same place, so that it "
                "has no direction; start with the nodes apart."
            )
        if status == RUNAWAY:
            raise NoEquilibriumError(
                "the structure moves away without end under its forces: nothing holds it. Fix nodes, add members, or "
                "take the forces away."
            )
        raise NoEquilibriumError(
            f"no equilibrium within {iterations} iterations: {residual:.3g} N are left (limit {self.tolerance:.3g}). "
            "Start nearer to the shape, or raise the tolerance."
        )

    def _elastic_shape(self, nodes: NDArray, rest: NDArray, iterations: int, residual: float) -> Shape:
        room = self._room
        softest, settled = softest_elastic(nodes, self._problem, rest, self._rigid, room, self._basis)
        direction = room.direction.copy()
        if not settled:
            values, vectors = np.linalg.eigh(room.matrix)
            softest, direction = float(values[0]), vectors[:, 0]
        largest = float(np.abs(room.matrix.diagonal()).max())
        return self._shape(nodes, rest, iterations, residual, softest, direction, softest > 1e-10 * largest)

    def _shape(
        self, nodes: NDArray, rest: NDArray, iterations: int, residual: float, softest: float, direction: NDArray,
        stable: bool,
    ) -> Shape:  # fmt: skip
        structure, room = self.structure, self._room
        if rest is not structure.rest_lengths:
            # the rest lengths were checked on the way in; building the whole structure again would cost more than
            # solving it
            structure = copy.copy(structure)
            rest.setflags(write=False)
            object.__setattr__(structure, "rest_lengths", rest)
        along = np.zeros(nodes.size)
        along[structure.free] = direction
        balance = room.forces.ravel()[structure.free]
        # half as much again, because the stiffness changes on the way to the equilibrium
        error = 1.5 * float(np.linalg.norm(balance)) / softest if stable else np.inf
        return Shape(
            structure, nodes, room.lengths.copy(), room.tensions.copy(), float(residual), int(iterations), True, stable,
            float(softest), along.reshape(nodes.shape), error, "newton", self.output,
        )  # fmt: skip

    def _solve_rigid(self, nodes: NDArray, rest: NDArray, forces: NDArray, warm: Shape | None) -> Shape:
        problem, rigid, room = self._problem, self._rigid, self._room
        newton = (problem, rest, forces, self.tolerance, 0.2 * self._reach, 25, rigid, room)
        taken = 0
        if warm is not None:
            rigid.tensions[:] = warm.tensions[rigid.bars]
            trial = nodes.copy()
            found, taken, residual = newton_rigid(trial, *newton)
            if found:
                return self._rigid_shape(trial, rest, taken, residual)
        # method of multipliers: elastic bars whose rest lengths are shifted until they are as long as they should be
        stiffness, shifted = problem.stiffness[rigid.bars], np.array(rest)
        rough = max(self.tolerance, 1e-10 * float(np.max(stiffness * rest[rigid.bars])))
        rigid.tensions[:] = 0.0
        tensions = rigid.tensions.copy()
        for _ in range(30):
            shifted[rigid.bars] = rest[rigid.bars] - tensions / stiffness
            status, iterations, residual = minimise(
                nodes, problem, shifted, forces, rough,
                self._reach, self.maximum_iterations, room,
            )  # fmt: skip
            taken += iterations
            self._check(status, taken, residual, nodes)
            tensions = room.tensions[rigid.bars].copy()
            rigid.tensions[:] = tensions
            trial = nodes.copy()
            found, iterations, residual = newton_rigid(trial, *newton)
            taken += iterations
            if found:
                return self._rigid_shape(trial, rest, taken, residual)
        # force-free motions leave the last system singular: say so through a shape that is not stable
        rigid.tensions[:] = tensions
        residual, gap = rigid_residual(nodes, problem, rest, forces, rigid, room)
        if residual <= 1e-6 * float(np.max(problem.stiffness * rest)) and gap <= 1e-6 * float(np.max(rest)):
            zero = np.zeros(self.structure.free.size)
            return self._shape(nodes, rest, taken, residual, 0.0, zero, False)
        raise NoEquilibriumError(
            f"no stable equilibrium with rigid bars was found: {residual:.3g} N and a gap of {gap:.3g} m are left. "
            "Tighten the tendons, or start nearer."
        )

    def _rigid_shape(self, nodes: NDArray, rest: NDArray, iterations: int, residual: float) -> Shape:
        problem, rigid, room = self._problem, self._rigid, self._room
        balance = room.residual.copy()
        softest, _ = softest_mode(problem, rigid, room, True, self._basis)
        room.residual[:] = balance
        largest = float(np.abs(room.matrix.diagonal()).max())
        return self._shape(nodes, rest, iterations, residual, softest, room.direction.copy(), softest > 1e-10 * largest)

    def _solve_sparse(self, nodes: NDArray, rest: NDArray, forces: NDArray) -> Shape:
        assert self._sparse is not None
        result = self._sparse.minimise(nodes, rest, forces, self.tolerance, self.maximum_iterations)
        self._check(result.status, result.iterations, result.residual, nodes)
        self._room = self._room._replace(lengths=result.lengths, tensions=result.tensions, forces=result.forces)
        return self._shape(
            nodes, rest, result.iterations, result.residual, result.softest, result.direction, result.stable
        )


def _weights(structure: Structure, gravity: ArrayLike) -> NDArray[np.float64]:
    vector = np.asarray(gravity, dtype=np.float64)
    if vector.shape != (3,) or not np.isfinite(vector).all():
        raise TensegrityError(f"gravity must be three finite numbers in m/s^2, found {gravity!r}.")
    return structure.lumped_masses()[:, None] * vector
