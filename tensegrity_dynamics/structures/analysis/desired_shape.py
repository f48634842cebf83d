"""Rest lengths for a desired shape: its self-stress, computed with force densities (001, table 6 and section 8.2).

With force densities q_k = t_k / l_k the force balance of the free coordinates is (C' diag(q) C) x = f: linear in q for
given nodes x, and linear in x for given q. The nodes are given. From the tensions in balance at these nodes, the most
uniform ones with the desired prestress are chosen. The rest lengths follow from them, d = l - t / K. If no tensions
balance at the nodes, Newton's method on nodes and tensions, with minimum-norm steps, finds the nearest nodes in
balance. For a structure that stands freely on its ground, the ground forces act at its lowest nodes, with the
distribution of a rigid body on equal springs at these nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...contact.ground_forces import depth, flatten
from ...errors import NoEquilibriumError, TensegrityError
from ..form_finding.force_density import (
    equilibrium_matrix,
    member_directions,
    moving_members,
    null_space,
    stress_matrix,
)
from ..structure import Structure
from ..tension_law import CLOSED, tension_law
from .feasible_self_stress import tension_only
from .footing import TOUCH

EVENNESS_OF_BARS = 1e-3
"""Weight of the force of a bar relative to the deviation of a tendon from the prestress."""
LEAST_PART = 0.02
"""Least tension of every tendon relative to the prestress, if the force balance allows it."""
MAX_STEPS = 60
"""Largest number of Newton steps to the nearest equilibrium."""
BALANCED = 1e-11
"""Tolerance of the force balance, relative to the largest force."""
USUAL_MOVE = 1e-2
"""Default limit of the node displacement relative to the size of the structure, for rounded coordinates and sag."""


@dataclass(frozen=True, eq=False)
class DesiredShape:
    """Equilibrium at the desired nodes or very near to them.

    Attributes:
        nodes: (n, 3) m. tensions: (m,) N. rest_lengths: (m,) m. moved: largest displacement of a node [m].
        states: number of independent self-stress states at these nodes.
    """

    nodes: NDArray[np.float64]
    tensions: NDArray[np.float64]
    rest_lengths: NDArray[np.float64]
    moved: float
    states: int


def find_rest_lengths(
    structure: Structure,
    *,
    prestress: float | None = None,
    tensions: Mapping[str, float] | None = None,
    kept: NDArray[np.bool_] | None = None,
    move: float | None = None,
) -> DesiredShape:
    """Rest lengths with which the structure is in equilibrium at its nodes, under its own weight and loads.

    Args:
        structure: structure whose nodes are the desired shape, as it stands on the ground if only the ground supports
            it.
        prestress: mean tension of tendons and springs [N]; not needed if `tensions` define it.
        tensions: tensions of some members by name [N], negative for a bar under compression.
        kept: (m,) members with fixed rest length, and so with a given tension at these nodes.
        move: largest displacement of a node to find an equilibrium [m]; by default 0.01 of the size of the structure.

    Raises:
        NoEquilibriumError: the structure would fall over, no tensions balance at these nodes, the nearest nodes in
            balance are farther than `move`, or tendons would be under compression; the message contains the cause.
        TensegrityError: a member is unknown, a number is out of range, or the prestress is not defined.
    """
    problem = _Problem(structure, prestress, dict(tensions or {}), kept)
    allowed = _size(structure.nodes) * USUAL_MOVE if move is None else float(move)
    if not (np.isfinite(allowed) and allowed >= 0.0):
        raise TensegrityError(f"nodes may move by {move} m; give a finite length, zero or more.")
    nodes, found = problem.solve(allowed)
    _, lengths = member_directions(structure, nodes)
    rest = np.where(problem.kept, structure.rest_lengths, lengths - stretches_at(structure, found))
    for k in np.flatnonzero(~(rest > 0.0)):
        raise NoEquilibriumError(
            f"{structure.member_names[k]} would need to stretch by {lengths[k] - rest[k]:.3g} m, more than its length "
            f"of {lengths[k]:.3g} m, to pull with {found[k]:.3g} N: make it stiffer, or choose less prestress."
        )
    moved = float(np.linalg.norm(nodes - structure.nodes, axis=1).max())
    states = null_space(equilibrium_matrix(structure, nodes), 1e-8).shape[1]
    return DesiredShape(nodes, found, rest, moved, states)


def ground_pushes(structure: Structure) -> NDArray[np.float64]:
    """(n, 3) ground forces [N] on the lowest nodes of a structure that only the ground supports; else zero.

    The force at every foot is opposite to the load; friction carries the component parallel to the ground. From the
    forces in balance with the load, the least squares solution is chosen, which is that of equal springs under a rigid
    body.

    Raises:
        NoEquilibriumError: the structure would fall over; the message contains the nodes.
    """
    pushes = np.zeros_like(structure.nodes)
    if structure.ground is None or structure.free.size < structure.nodes.size:
        return pushes
    forces = structure.steady_forces()
    load = forces.sum(axis=0)
    weight = float(np.linalg.norm(load))
    if weight <= 1e-12 * float(np.abs(forces).max(initial=0.0)):
        return pushes
    nodes, ground, away = structure.nodes, flatten(structure.ground), np.zeros(3)
    size, middle, up = _size(nodes), nodes.mean(axis=0), -load / weight
    depths = np.array([depth(ground, x, y, z, away) for x, y, z in nodes.tolist()])
    feet = np.flatnonzero(depths > depths.max() - TOUCH * size)
    arms = (nodes - middle) / size
    matrix = np.vstack((np.ones(feet.size), np.cross(arms[feet], up).T))
    right = np.concatenate(([weight], -np.cross(arms, forces).sum(axis=0)))
    found = np.linalg.lstsq(matrix, right, rcond=1e-9)[0]
    if found.min() < 0.0:
        from scipy.optimize import nnls  # imported here to keep the package import fast

        found = nnls(matrix, right)[0]
    if np.abs(matrix @ found - right).max() > 1e-9 * weight:
        raise NoEquilibriumError(
            f"at these nodes it does not stand on {', '.join(structure.node_names[i] for i in feet)}, its lowest ones: "
            "its weight lies outside them. Put at least three nodes on the ground, with the rest above them."
        )
    pushes[feet] = found[:, None] * up
    return pushes


class _Problem:
    """Problem with unknown nodes and tensions of the moving members; the other members carry no force."""

    def __init__(
        self,
        structure: Structure,
        prestress: float | None,
        tensions: dict[str, float],
        kept: NDArray[np.bool_] | None,
    ) -> None:
        self.structure = structure
        self.moving = moving_members(structure)
        self.kept = np.zeros(len(structure.member_names), np.bool_) if kept is None else np.array(kept, np.bool_)
        self.loads = self._carried_loads()
        if prestress is not None and not (np.isfinite(prestress) and prestress > 0.0):
            raise TensegrityError(f"prestress is {prestress} N, must be a finite force above zero.")
        self.named: dict[int, float] = {}
        rows = {int(k): row for row, k in enumerate(self.moving)}
        for name, value in tensions.items():
            k = structure.member(name)
            if not np.isfinite(value) or (structure.unilateral[k] and value < 0.0):
                raise TensegrityError(f"the tension of {name} is {value} N; give a number, of a tendon not below zero.")
            if self.kept[k] or k not in rows:
                why = "it has a rest length already" if self.kept[k] else "both its ends are fixed"
                raise TensegrityError(f"the tension of {name} cannot be chosen: {why}.")
            self.named[rows[k]] = float(value)
        self.pulls = np.flatnonzero(structure.unilateral[self.moving])
        if prestress is None and not self.named and not self.kept[self.moving].any():
            raise TensegrityError("give the prestress, or the tension of a member.")
        self.prestress = prestress
        named = [abs(value) for value in self.named.values()]
        self.force = max([prestress or 0.0, *named, float(np.abs(self.loads).max(initial=0.0)), 1e-300])

    def _carried_loads(self) -> NDArray:
        """Weight, loads and ground forces on the free coordinates.

        Raises:
            NoEquilibriumError: neither supports nor the ground carry the loads.
        """
        structure = self.structure
        forces, free = structure.steady_forces() + ground_pushes(structure), structure.free
        arms = structure.nodes - structure.nodes.mean(axis=0)
        size = float(np.ptp(structure.nodes, axis=0).max())
        turns = [np.cross(axis, arms) / size for axis in np.eye(3)]
        rigid = np.array([*(np.tile(axis, (len(arms), 1)) for axis in np.eye(3)), *turns]).reshape(6, -1).T
        held = np.ones(rigid.shape[0], np.bool_)
        held[free] = False
        loose = rigid @ null_space(rigid[held], 1e-9)  # rigid motions that the supports allow
        work = np.abs(loose.T @ forces.ravel()).max(initial=0.0)
        if work > 1e-9 * np.abs(structure.steady_forces()).sum():
            raise NoEquilibriumError(
                f"nothing carries the weight and loads of {np.linalg.norm(forces.sum(axis=0)):.3g} N: its supports let "
                "all of it move as one body. Fix nodes, give it a ground (contact), or take gravity and loads away."
            )
        return np.asarray(forces.ravel()[free])

    def solve(self, allowed: float) -> tuple[NDArray, NDArray]:
        structure = self.structure
        nodes = np.array(structure.nodes)
        tensions = self._even(nodes)
        if self._imbalance(nodes, tensions) > BALANCED:
            size = _size(nodes)
            nodes, tensions = self._nearest(nodes, tensions, size)
            moved = np.linalg.norm(nodes - structure.nodes, axis=1)
            if moved.max() > allowed:
                worst = int(np.argmax(moved))
                raise NoEquilibriumError(
                    f"no tensions balance at these nodes. The nearest nodes found where they do move "
                    f"{structure.node_names[worst]} by {moved[worst]:.3g} m, to "
                    f"({', '.join(f'{x:.5g}' for x in nodes[worst])}); {allowed:.3g} m are allowed. Put the nodes "
                    "there, or let them move further."
                )
            tensions = self._even(nodes)
            if self._imbalance(nodes, tensions) > 1e-6:  # more than rounding errors
                nodes, tensions = self._nearest(nodes, tensions, size)
        self._check_pulls(tensions)
        full = np.zeros(len(structure.member_names))
        full[self.moving] = tensions
        return nodes, full

    def _check_pulls(self, tensions: NDArray) -> None:
        pushing = [k for k in self.pulls.tolist() if not tensions[k] > 0.0 and k not in self.named]
        if pushing:
            raise self._pushing(pushing)

    # -- tensions at given nodes ------------------------------------------------------------------------------------

    def _rows(self, nodes: NDArray) -> tuple[NDArray, NDArray]:
        """Prescribed quantities besides the force balance, as rows over the tensions: named, kept, and the mean."""
        rows, right = self._member_rows(nodes)
        if self.prestress is None or not self.pulls.size:
            return rows, right
        return np.vstack((rows, self._mean_row())), np.append(right, self.prestress)

    def _mean_row(self) -> NDArray:
        """(a,) row that gives the mean of the tensions of tendons and springs."""
        mean = np.zeros(self.moving.size)
        mean[self.pulls] = 1.0 / max(self.pulls.size, 1)
        return mean

    def _member_rows(self, nodes: NDArray) -> tuple[NDArray, NDArray]:
        """Rows for single members: named tensions and kept rest lengths."""
        structure, count = self.structure, self.moving.size
        rows, right = [], []
        _, lengths = member_directions(structure, nodes)
        for row, value in self.named.items():
            rows.append(np.eye(count)[row])
            right.append(value)
        for row in np.flatnonzero(self.kept[self.moving]).tolist():
            k = int(self.moving[row])
            stretch = lengths[k] - structure.rest_lengths[k]
            rows.append(np.eye(count)[row])
            right.append(_tension(structure, k, float(stretch)))
        return np.array(rows).reshape(-1, count), np.array(right)

    def _even(self, nodes: NDArray) -> NDArray:
        """Tensions (a,) [N] at nodes: best force balance and prescribed values first, then most uniform."""
        prescribed, values = self._rows(nodes)
        balance = equilibrium_matrix(self.structure, nodes)
        count = self.moving.size
        weights = np.full(count, EVENNESS_OF_BARS)
        weights[self.pulls] = 1.0
        target = np.zeros(count)
        target[self.pulls] = self.force if self.prestress is None else self.prestress
        # balance and prescribed values have priority over uniformity: a large weight instead of two stages, because at
        # nodes without equilibrium both cannot be satisfied
        firm = 1e5
        matrix = np.vstack((firm * balance, firm * prescribed, np.diag(weights)))
        right = np.concatenate((firm * self.loads, firm * values, weights * target))
        tensions = _bounded(matrix, right, self.pulls, LEAST_PART * float(target.max(initial=0.0)), self.force)
        # exact solution: the smallest correction within the balanced tensions
        both = np.vstack((balance, prescribed))
        short = np.concatenate((self.loads, values)) - both @ tensions
        return np.asarray(tensions + np.linalg.lstsq(both, short, rcond=1e-9)[0])

    def _imbalance(self, nodes: NDArray, tensions: NDArray) -> float:
        """Largest relative error of the force balance, or of a prescribed value."""
        prescribed, values = self._rows(nodes)
        left = np.concatenate(
            (equilibrium_matrix(self.structure, nodes) @ tensions - self.loads, prescribed @ tensions - values)
        )
        return float(np.abs(left).max(initial=0.0)) / max(self.force, float(np.abs(tensions).max(initial=0.0)))

    # -- the nearest nodes in balance -------------------------------------------------------------------------------

    def _nearest(self, nodes: NDArray, tensions: NDArray, size: float) -> tuple[NDArray, NDArray]:
        """Nearest nodes and tensions in balance."""
        structure, free = self.structure, self.structure.free
        nodes, tensions = np.array(nodes), np.array(tensions)
        cheap = (
            0.1  # a change of tension equal to the prestress has the weight of a displacement of this part of the size
        )
        for _ in range(MAX_STEPS):
            if self._imbalance(nodes, tensions) <= BALANCED:
                return nodes, tensions
            balance = equilibrium_matrix(structure, nodes)
            _, lengths = member_directions(structure, nodes)
            full = np.zeros(len(structure.member_names))
            full[self.moving] = tensions
            densities = full / lengths
            turning = stress_matrix(structure, densities) - (balance * densities[self.moving]) @ balance.T
            prescribed, values = self._rows(nodes)
            stretching = np.zeros((len(values), free.size))
            for at, row in enumerate(np.flatnonzero(self.kept[self.moving]), len(self.named)):
                stretching[at] = -structure.stiffness[self.moving[row]] * balance[:, row]
            unit = self.force / cheap
            matrix = np.block([[size * turning, unit * balance], [size * stretching, unit * prescribed]])
            short = np.concatenate((self.loads - balance @ tensions, values - prescribed @ tensions))
            step = np.linalg.lstsq(matrix, short, rcond=1e-12)[0]
            move = size * step[: free.size]
            part = min(1.0, 0.1 * size / max(float(np.abs(move).max()), 1e-300))
            nodes.ravel()[free] += part * move
            tensions = tensions + part * unit * step[free.size :]
        clash = self._clash()
        if clash:
            raise self._pushing(clash)
        raise NoEquilibriumError(
            "no tensions balance at these nodes, and no nodes nearby were found where they do. Every free node needs "
            "members that can pull it to all sides: check the nodes, or add members."
        )

    def _clash(self) -> list[int]:
        """Rows of tendons that no self-stress at the desired nodes can tension simultaneously."""
        structure = self.structure
        states = null_space(equilibrium_matrix(structure, structure.nodes), 1e-9)
        if not states.shape[1]:
            return []
        return list(tension_only(states, structure.unilateral[self.moving]).clash)

    def _pushing(self, rows: Sequence[int]) -> NoEquilibriumError:
        names = ", ".join(self.structure.member_names[self.moving[k]] for k in list(rows)[:8])
        low, high = self._possible_means()
        if self.prestress is not None and high > 1e-9 * self.force and not low <= self.prestress <= high:
            allowed = f"above {low:.4g} N" if np.isinf(high) else f"of {low:.4g} to {high:.4g} N"
            return NoEquilibriumError(
                f"with a mean tension of {self.prestress:.4g} N {names} would carry nothing or push: at these nodes "
                f"weight and loads allow means {allowed}. Change it, give `tensions` of members instead, or move the "
                "nodes."
            )
        return NoEquilibriumError(
            f"at these nodes no tensions balance in which every tendon pulls: {names} would carry nothing or push. "
            "Take out what does not pull, make it a bar, or move the nodes."
        )

    def _possible_means(self) -> tuple[float, float]:
        """Lowest and highest mean tension [N] in balance with all tendons under tension; (inf, -inf) if there is
        none."""
        from scipy.optimize import linprog  # imported here to keep the package import fast

        nodes, count = self.structure.nodes, self.moving.size
        rows, right = self._member_rows(nodes)
        lowest = np.full(count, -np.inf)
        lowest[self.pulls] = 0.0
        ends = []
        for sign in (1.0, -1.0):
            found = linprog(
                sign * self._mean_row(),
                A_eq=np.vstack((equilibrium_matrix(self.structure, nodes), rows)),
                b_eq=np.concatenate((self.loads, right)) / self.force,
                bounds=np.column_stack((lowest, np.full(count, np.inf))),
                method="highs",
            )
            if found.status not in (0, 3):
                return np.inf, -np.inf
            ends.append(-sign * np.inf if found.status == 3 else self.force * sign * float(found.fun))
        return ends[0], ends[1]


def _bounded(matrix: NDArray, right: NDArray, pulls: NDArray, least: float, scale: float) -> NDArray:
    """Least squares with x[pulls] >= least; without the bound if it cannot be satisfied."""
    from scipy.optimize import lsq_linear  # imported here to keep the package import fast

    free = np.linalg.lstsq(matrix, right, rcond=None)[0]
    if not pulls.size or free[pulls].min() >= least:
        return np.asarray(free)
    low = np.full(matrix.shape[1], -np.inf)
    low[pulls] = least / scale
    found = lsq_linear(matrix * scale, right, bounds=(low, np.inf), method="bvls", tol=1e-14)
    return np.asarray(scale * found.x)


def stretches_at(structure: Structure, tensions: NDArray[np.float64]) -> NDArray[np.float64]:
    """(m,) m by which each member is longer than its rest length at these tensions, the inverse of `tension_law`."""
    hard = tensions / structure.stiffness
    if structure.smoothness == 0.0:
        opening = structure.initial_tensions / structure.stiffness
        closed = (opening > 0.0) & (hard < opening)
        return np.asarray(np.where(closed, (hard - opening) / CLOSED, hard - opening))
    double = np.where(structure.unilateral, np.maximum(2.0 * hard, 1e-300), 1.0)
    return np.asarray(np.where(structure.unilateral, (double**2 - structure.smoothness**2) / (2.0 * double), hard))


def _tension(structure: Structure, k: int, stretch: float) -> float:
    if not structure.unilateral[k]:
        return float(structure.stiffness[k] * stretch)
    if structure.initial_tensions[k] > 0.0:
        return float(tension_law(structure.laws[k], structure.stiffness[k], stretch)[0])
    smooth = structure.smoothness
    return float(structure.stiffness[k] * 0.5 * (np.hypot(stretch, smooth) + stretch))


def _size(nodes: NDArray[np.float64]) -> float:
    """Longest edge of the bounding box of the nodes [m]."""
    return float(np.ptp(nodes, axis=0).max())
