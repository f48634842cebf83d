"""Equilibrium of a structure standing on its ground, with unilateral normal forces and static friction.

A structure without fixed nodes slides and turns on its ground until friction holds it, so that its position depends on
its history. The equilibrium determines only its shape and its ground forces. All feet together carry the load, which is
not possible with the normal forces N_i alone if the ground is not perpendicular to the load. Friction is assumed such
that the force at each foot is opposite to the load: the ground force at foot i is N_i w_i, where w_i is opposite to the
load and has a component of 1 along the normal. On a plane, friction is the same fraction of N_i at every foot; this is
the limit of creep with regularised friction. It is valid if each ground force is within its friction cone. If nodes are
fixed, or without load, the ground forces are along the normals only.

On a slope, the residual F(x) = members + load + sum N_i w_i is not a gradient. It is followed like an overdamped
motion, (s + J) dx = F with s proportional to the residual (pseudo-transient continuation; Kelley and Keyes 1998), which
does not end at unstable shapes, and finished with Newton's method. Motions without stiffness are kept as small as
possible.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...contact.ground_forces import depth, flatten, normal_law
from ...errors import NoEquilibriumError, TensegrityError
from ..energy import add_member_forces, free_positions, member_tensions, tangent_stiffness
from ..structure import Structure
from .force_density import null_space, rigid_motions
from .rigid_bar_solver import bar_directions
from .stability import edge_members, no_stiffness, stiffness_at_the_edge

MAX_COORDINATES = 900
"""Largest number of free coordinates of a standing structure; the systems are dense."""
MAX_STEPS, MAX_NEWTON_STEPS = 3000, 60


@dataclass(frozen=True, eq=False)
class StandingShape:
    """Equilibrium of a structure that stands on the ground, or floats without load.

    Attributes:
        nodes: (n, 3) m. lengths, tensions: (m,) m and N. out_of_balance: (n, 3) N, zero at fixed nodes.
        contacts: (n, 3) ground forces on the nodes [N]. residual: largest out-of-balance component [N].
        iterations: number of steps. stable: strict minimum, apart from motions without stiffness or held by friction.
        softest: least stiffness with fixed feet [N/m]. direction: (f,) its direction.
    """

    nodes: NDArray[np.float64]
    lengths: NDArray[np.float64]
    tensions: NDArray[np.float64]
    out_of_balance: NDArray[np.float64]
    contacts: NDArray[np.float64]
    residual: float
    iterations: int
    stable: bool
    softest: float
    direction: NDArray[np.float64]


@dataclass(eq=False)
class _State:
    """Result of one evaluation: forces, stiffness and contacts at given nodes."""

    lengths: NDArray[np.float64]
    tensions: NDArray[np.float64]
    forces: NDArray[np.float64]
    contacts: NDArray[np.float64]
    away: NDArray[np.float64]
    push: NDArray[np.float64]
    slope: NDArray[np.float64]
    depth: NDArray[np.float64]
    toward: NDArray[np.float64]

    def worst(self, free: NDArray[np.int64]) -> float:
        return float(np.abs(self.forces.ravel()[free]).max(initial=0.0))


class StandingSolver:
    """Solver for standing equilibria of one structure with ground.

    Args:
        structure: structure with a ground. rigid_bars: whether bars keep exactly their rest length.
        tolerance: tolerance of the residual [N]. reach: reference length of the steps [m]. most: largest number of
            steps.

    Raises:
        TensegrityError: more than `MAX_COORDINATES` free coordinates.
    """

    def __init__(
        self, structure: Structure, rigid_bars: bool, tolerance: float, reach: float, most: int = MAX_STEPS
    ) -> None:
        if structure.free.size > MAX_COORDINATES:
            raise TensegrityError(
                f"how a structure stands is solved densely, up to {MAX_COORDINATES} free coordinates; this one has "
                f"{structure.free.size}. Simulate it, or take the contact away."
            )
        self.structure, self.tolerance, self.reach, self._most = structure, tolerance, reach, most
        self._flat = flatten(structure.ground)
        self._position = free_positions(structure.supports)
        movable = ~structure.fixed[structure.members].all(axis=1)
        self._bars = np.flatnonzero(~structure.unilateral & movable) if rigid_bars else np.zeros(0, dtype=np.int64)
        self._may_slide = not structure.fixed.any()

    def solve(self, nodes: NDArray[np.float64], rest: NDArray[np.float64], load: NDArray[np.float64]) -> StandingShape:
        """Solve from nodes (n, 3) [m], for rest lengths (m,) [m] and load (n, 3) [N] including the weight.

        Raises:
            NoEquilibriumError: the structure slides, is lifted off, tips over, or the solution was not reached.
        """
        structure, free = self.structure, self.structure.free
        nodes = np.array(nodes)
        nothing = np.zeros(0)
        total = load[~structure.fixed].sum(axis=0)
        toward = self._against(total)
        if self._may_slide and float(np.linalg.norm(total)) > self.tolerance:
            self._check_pressed(toward)
        state, steps = self._settle(nodes, rest, load, toward)
        tensions = state.tensions[self._bars]
        state, more = self._newton(nodes, rest, load, toward, tensions if self._bars.size else nothing)
        steps += more
        residual = state.worst(free)
        self._check_friction(state)
        stable, softest, direction = self._stability(nodes, rest, state)
        out = np.where(structure.fixed[:, None], 0.0, state.forces)
        return StandingShape(
            nodes, state.lengths, state.tensions, out, state.contacts, residual, steps, stable, softest, direction
        )

    # -- parts ----------------------------------------------------------------------------------------------------

    def _against(self, total: NDArray) -> NDArray[np.float64]:
        """(3,) unit vector opposite to the load, or zero if the ground forces are along the normals."""
        size = float(np.linalg.norm(total))
        if not self._may_slide or not size > self.tolerance:
            return np.zeros(3)
        return -total / size

    def _check_pressed(self, toward: NDArray) -> None:
        ground = self.structure.ground
        assert ground is not None
        if ground.hills is None and not toward @ ground.normal > 0.0:
            raise NoEquilibriumError(
                "the forces lift the structure off its ground, and no node is fixed: nothing holds it. Fix a node, or "
                "take the forces away."
            )
        if ground.hills is None:
            need = np.sqrt(max(0.0, 1.0 / float(toward @ ground.normal) ** 2 - 1.0))
            if need > ground.friction * (1.0 + 1e-12) and need > 1e-9:
                raise NoEquilibriumError(
                    f"it slides: to stand it needs a friction coefficient of {need:.4g}, its ground has "
                    f"{ground.friction:.4g}. Make the slope or the push smaller, or the friction larger."
                )

    def _evaluate(self, nodes: NDArray, rest: NDArray, load: NDArray, toward: NDArray, bar_tensions: NDArray) -> _State:
        structure, n = self.structure, nodes.shape[0]
        lengths, tensions = np.zeros(rest.size), np.zeros(rest.size)
        member_tensions(nodes, structure.members, structure.stiffness, rest, structure.laws, lengths, tensions)
        if bar_tensions.size:
            tensions[self._bars] = bar_tensions
        forces = np.array(load)
        add_member_forces(nodes, structure.members, lengths, tensions, forces)
        state = _State(
            lengths, tensions, forces, np.zeros((n, 3)), np.zeros((n, 3)), np.zeros(n), np.zeros(n),
            np.full(n, -np.inf), np.zeros((n, 3)),
        )  # fmt: skip
        for i in np.flatnonzero(~structure.fixed):
            away = state.away[i]
            state.depth[i] = depth(self._flat, nodes[i, 0], nodes[i, 1], nodes[i, 2], away)
            push, slope, _ = normal_law(self._flat, state.depth[i])
            state.push[i], state.slope[i] = push, slope
            square, along = float(away @ away), float(toward @ away)
            # on ground that is too steep relative to the load (side of a hill), the force is along the normal
            state.toward[i] = square / along * toward if along > 0.05 * np.sqrt(square) else away
            state.contacts[i] = push * state.toward[i]
        state.forces += state.contacts
        return state

    def _jacobian(self, nodes: NDArray, rest: NDArray, state: _State) -> NDArray[np.float64]:
        """J (f, f) [N/m]: negative derivative of the residual, without the elastic stiffness of rigid bars."""
        structure = self.structure
        matrix = np.zeros((structure.free.size, structure.free.size))
        stiffness = np.array(structure.stiffness)
        stiffness[self._bars] = 0.0
        tangent_stiffness(
            nodes, structure.members, stiffness, structure.laws, state.lengths, state.tensions, rest,
            self._position, matrix,
        )  # fmt: skip
        for i in np.flatnonzero(state.slope > 0.0):
            row = self._position[i, 0]
            matrix[row : row + 3, row : row + 3] += state.slope[i] * np.outer(state.toward[i], state.away[i])
        return matrix

    def _settle(self, nodes: NDArray, rest: NDArray, load: NDArray, toward: NDArray) -> tuple[_State, int]:
        """Move nodes in place with elastic bars, from any start, until Newton's method converges."""
        bars, self._bars = self._bars, np.zeros(0, dtype=np.int64)
        try:
            return self._follow(nodes, rest, load, toward)
        finally:
            self._bars = bars

    def _follow(self, nodes: NDArray, rest: NDArray, load: NDArray, toward: NDArray) -> tuple[_State, int]:
        structure, free, flat = self.structure, self.structure.free, nodes.ravel()
        none = np.zeros(0)
        state = self._evaluate(nodes, rest, load, toward, none)
        scale = float(structure.stiffness[~structure.fixed[structure.members].all(axis=1)].max(initial=1.0))
        ground = structure.ground
        assert ground is not None
        weight = float(np.linalg.norm(load[~structure.fixed].sum(axis=0)))
        sink = max(2.0 * weight / ground.stiffness, 1e-6 * self.reach)
        rough = max(self.tolerance, 1e-9 * scale * self.reach)
        shift, worst = 1e-3 * scale, state.worst(free)
        for step in range(self._most):
            if worst <= rough:
                return state, step
            jacobian = self._jacobian(nodes, rest, state)
            least = float(np.linalg.eigvalsh(0.5 * (jacobian + jacobian.T))[0])
            used = max(shift, -1.5 * least + 1e-9 * scale)
            move = np.linalg.solve(jacobian + used * np.eye(free.size), state.forces.ravel()[free])
            largest = float(np.abs(move).max())
            part = min(1.0, 0.3 * self.reach / largest) if largest > 0.0 else 1.0
            part = self._without_diving(nodes, move, part, state, sink)
            for _ in range(30):
                trial = flat.copy()
                trial[free] += part * move
                after = self._evaluate(trial.reshape(nodes.shape), rest, load, toward, none)
                if np.isfinite(after.forces).all() and after.worst(free) < 4.0 * worst + 0.1 * weight + rough:
                    break
                part *= 0.5
            flat[:] = trial
            now = after.worst(free)
            shift = min(max(shift * min(max(now / max(worst, 1e-300), 0.2), 5.0), 1e-9 * scale), scale)
            if part < 1.0 and now >= worst:
                shift = max(0.5 * shift, 1e-9 * scale)  # long distance: the steps are limited by their length
            state, worst = after, now
        raise NoEquilibriumError(
            f"no standing shape was found in {self._most} steps: {worst:.3g} N are left. It may roll or fall; "
            "start nearer to how it stands, or give it more friction or a level ground."
        )

    def _without_diving(self, nodes: NDArray, move: NDArray, part: float, state: _State, sink: float) -> float:
        """Largest fraction of a move after which no node that is now above the ground is far below it."""
        moved = np.zeros_like(nodes)
        moved.ravel()[self.structure.free] = move
        down = -np.einsum("ij,ij->i", moved, state.away)
        margin = np.maximum(sink - state.depth, 0.25 * sink)
        falls = (down > 0.0) & np.isfinite(state.depth) & (state.depth < sink)
        return float(np.min(np.where(falls, margin / np.where(falls, down, 1.0), part), initial=part))

    def _newton(
        self, nodes: NDArray, rest: NDArray, load: NDArray, toward: NDArray, tensions: NDArray
    ) -> tuple[_State, int]:
        """Newton's method on nodes (in place) and tensions of rigid bars; least norm for motions without stiffness."""
        structure, free, flat, count = self.structure, self.structure.free, nodes.ravel(), self._bars.size
        tensions = np.array(tensions)
        best = np.inf
        state = self._evaluate(nodes, rest, load, toward, tensions)
        for step in range(MAX_NEWTON_STEPS):
            gaps = state.lengths[self._bars] - rest[self._bars]
            gap = float(np.abs(gaps).max(initial=0.0))
            worst = state.worst(free)
            closed = gap <= 1e-13 * float(rest[self._bars].max(initial=1.0)) + 4.4e-16 * float(np.abs(nodes).max())
            if worst <= self.tolerance and closed:
                return state, step
            settled = worst >= 0.5 * best and (closed or not count)
            if settled and worst <= self._rounding(nodes, load):
                return state, step
            best = min(best, worst)
            jacobian = self._jacobian(nodes, rest, state)
            if count:
                normals = bar_directions(nodes, structure, self._bars)
                jacobian = np.block([[jacobian, normals.T], [normals, np.zeros((count, count))]])
            right = np.concatenate((state.forces.ravel()[free], -gaps))
            # rows of forces and of lengths with the same scale, so that the threshold of zero is the same for both
            measure = np.concatenate((np.ones(free.size), np.full(count, float(np.abs(jacobian).max()))))
            scaled = jacobian * measure[:, None] * measure[None, :]
            move = measure * np.linalg.lstsq(scaled, measure * right, rcond=1e-12)[0]
            largest = float(np.abs(move[: free.size]).max(initial=0.0))
            part = min(1.0, 0.3 * self.reach / largest) if largest > 0.0 else 1.0
            flat[free] += part * move[: free.size]
            tensions = tensions + part * move[free.size :]
            state = self._evaluate(nodes, rest, load, toward, tensions)
            if not np.isfinite(state.forces).all():
                break
        raise NoEquilibriumError(
            f"no standing shape was found: {state.worst(free):.3g} N are left (limit {self.tolerance:.3g}). It may be "
            "at the edge of tipping; start nearer, or change the rest lengths."
        )

    def _rounding(self, nodes: NDArray, load: NDArray) -> float:
        stiffest = float(self.structure.stiffness.max(initial=0.0)) + float(self._flat[0])
        return 4.4e-15 * (stiffest * float(np.abs(nodes).max()) + float(np.abs(load).max(initial=0.0)))

    def _check_friction(self, state: _State) -> None:
        ground = self.structure.ground
        assert ground is not None
        for i in feet(state.push):
            square = float(state.away[i] @ state.away[i])
            along = float(state.contacts[i] @ state.away[i]) / np.sqrt(square)
            across = float(np.sqrt(max(0.0, state.contacts[i] @ state.contacts[i] - along * along)))
            if across > (ground.friction + 1e-9) * along:
                raise NoEquilibriumError(
                    f"it slides: node {self.structure.node_names[i]} needs a friction coefficient of "
                    f"{across / along:.4g}, its ground has {ground.friction:.4g}."
                )

    def _stability(self, nodes: NDArray, rest: NDArray, state: _State) -> tuple[bool, float, NDArray[np.float64]]:
        structure, ground = self.structure, self.structure.ground
        assert ground is not None
        held = feet(state.push)
        extra = ground_stiffness(structure, nodes)
        without = np.zeros((structure.free.size, 0))
        rigid = rigid_motions(structure, nodes)
        if rigid.shape[1] and not held.size:
            without = rigid
        elif rigid.shape[1] and ground.friction == 0.0 and ground.hills is None:
            without = rigid @ null_space(_off_the_plane(structure, ground.normal) @ rigid, 1e-9)
        if self._bars.size:
            normals = bar_directions(nodes, structure, self._bars)
            without = np.linalg.qr(np.hstack((without, normals.T)))[0]
        if without.shape[1] >= structure.free.size:
            return True, np.inf, np.zeros(structure.free.size)
        edge = edge_members(structure, state.lengths, rest)
        same = structure.with_rest_lengths(rest)
        value, vector = stiffness_at_the_edge(same, nodes, state.lengths, state.tensions, edge, without, extra)
        return value > no_stiffness(structure), value, vector


def ground_stiffness(structure: Structure, nodes: NDArray[np.float64]) -> NDArray[np.float64]:
    """(f, f) contribution of the ground to the tangent stiffness [N/m] at nodes (n, 3), with static friction at the
    feet.

    With friction, the tangential stiffness of a foot equals its normal stiffness; without friction it slides freely.
    """
    matrix = np.zeros((structure.free.size, structure.free.size))
    if structure.ground is None:
        return matrix
    flat, position, away = flatten(structure.ground), free_positions(structure.supports), np.zeros(nodes.shape)
    push, slope = np.zeros(len(nodes)), np.zeros(len(nodes))
    for i in np.flatnonzero(~structure.fixed):
        push[i], slope[i], _ = normal_law(flat, depth(flat, nodes[i, 0], nodes[i, 1], nodes[i, 2], away[i]))
    for i in feet(push):
        row, along = position[i, 0], np.outer(away[i], away[i])
        block = along if structure.ground.friction == 0.0 else float(away[i] @ away[i]) * np.eye(3)
        matrix[row : row + 3, row : row + 3] += slope[i] * block
    return matrix


def feet(push: NDArray[np.float64]) -> NDArray[np.int64]:
    """Feet of a structure from the normal force on each node (n,) [N]: more than a millionth of the largest force."""
    return np.flatnonzero(push > 1e-6 * float(push.max(initial=0.0)))


def _off_the_plane(structure: Structure, normal: NDArray) -> NDArray[np.float64]:
    """(n', f): derivative of the distance of each free node from a plane, over the free coordinates."""
    return np.kron(np.eye(structure.free.size // 3), normal)
