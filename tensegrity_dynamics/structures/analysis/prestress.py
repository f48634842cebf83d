"""Prestress analysis: self-stress, mechanisms, stability, softest direction, and feasibility of tension in all tendons.

With A (f, a) the equilibrium matrix over f free coordinates and a members with a free end, of rank r:
    self-stress states  s = a - r,    mechanisms  k = f - r - (rigid motions that the fixed nodes allow),
so that s - k = a - (f - rigid) (Maxwell and Calladine): these are the counts of the geometry with all members taut. A
tendon without tension constrains nothing, so that the mechanisms of the present state are counted without slack
tendons. A self-stress stiffens a mechanism u against second-order elongation by u' (D kron I) u, with the stress matrix
D of its force densities (Pellegrino and Calladine, product forces).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import NoEquilibriumError, TensegrityError
from ...numerics.short_repr import ShortRepr
from ...robots.robot import Robot
from ..energy import member_tensions
from ..form_finding.equilibrium import StructureEquilibrium
from ..form_finding.equilibrium_solver import StructureEquilibriumSolver
from ..form_finding.force_density import equilibrium_matrix, moving_members, null_space, rigid_motions, stress_matrix
from ..form_finding.stability import (
    edge_members,
    no_force,
    no_stiffness,
    stiffness_at_the_edge,
    stiffness_spectrum,
)
from ..node_frame import NodeFrame
from ..structure import Structure
from .describe_motion import describe_motion
from .feasible_self_stress import tension_only
from .finite_mechanisms import FiniteMechanism, find_free_motion

MAX_FREE_COORDINATES = 1500
"""Largest number of free coordinates for the analysis, which uses dense matrices."""

MAX_FREE_COORDINATES_FOLLOWED = 300
"""Largest number of free coordinates for following mechanisms, which distinguishes finite from infinitesimal ones."""


@dataclass(frozen=True, eq=False, repr=False)
class PrestressAnalysis(ShortRepr):
    """Result of `analyze_prestress`; arrays over all n nodes and m members, zero for fixed parts.

    Attributes:
        structure: structure with the present rest lengths. nodes: (n, 3) m.
        tensions: (m,) tensions at these nodes without loads [N].
        members: number of members with a free end. freedoms: number of free coordinates.
        rank: rank of the equilibrium matrix.
        rigid: number of rigid body motions that the fixed nodes allow (6 without fixed nodes).
        idle: number of tendons and springs among the members without tension.
        present_mechanisms: number of first-order motions without elongation of bars and of tendons under tension,
            rigid body motions excluded; equal to the number of `mechanisms` if no tendon is slack.
        self_stress: (m, s) orthonormal basis of the self-stress states.
        mechanisms: (k, n, 3) orthonormal first-order motions without elongation of any member, rigid body motions
            excluded, softest first: the mechanisms with all tendons taut.
        mechanism_stiffness: (k,) stiffness of each of them due to the present tensions [N/m]; positive if stiffened.
        free_motion: a finite mechanism that was followed, or None.
        followed: whether it was searched, or cannot exist because the shape is stable; False for unstable shapes with
            more than 300 free coordinates.
        eigenvalues: eigenvalues of the tangent stiffness [N/m], ascending, rigid body motions excluded. With tendons at
            the transition to slack, the first one is the least stiffness over all directions, each with the tendons
            that it elongates.
        stable: whether all eigenvalues are positive. softest_direction: (n, 3), unit norm.
        softest_motion: text on this motion.
        feasible: whether a self-stress has tension in every tendon.
        feasible_stress: (m,) tensions of this self-stress [N], at least 1 N in each tendon, or None.
        clash: names of members that no self-stress can tension simultaneously.
        slack: names of tendons and springs without tension.
        bar_factor: least elongation factor of all bars that prestresses a structure without forces; else None.
        prestressed: result. reason: reason for the result, and a remedy.
    """

    structure: Structure
    nodes: NDArray[np.float64]
    tensions: NDArray[np.float64]
    members: int
    freedoms: int
    rank: int
    rigid: int
    idle: int
    present_mechanisms: int
    self_stress: NDArray[np.float64]
    mechanisms: NDArray[np.float64]
    mechanism_stiffness: NDArray[np.float64]
    free_motion: FiniteMechanism | None
    free_motion_words: str
    followed: bool
    eigenvalues: NDArray[np.float64]
    stable: bool
    softest_direction: NDArray[np.float64]
    softest_motion: str
    feasible: bool
    feasible_stress: NDArray[np.float64] | None
    clash: tuple[str, ...]
    slack: tuple[str, ...]
    bar_factor: float | None
    prestressed: bool
    reason: str

    @property
    def self_stress_count(self) -> int:
        """Number of self-stress states s."""
        return self.self_stress.shape[1]

    @property
    def mechanism_count(self) -> int:
        """Number k of infinitesimal and finite mechanisms, without rigid body motions."""
        return self.mechanisms.shape[0]

    @property
    def finite_count(self) -> int:
        """Number of independent free motions at the end of the free motion; 0 if all mechanisms are infinitesimal."""
        return 0 if self.free_motion is None else self.free_motion.dimension

    @property
    def softest(self) -> float:
        """Lowest eigenvalue of the tangent stiffness [N/m]."""
        return float(self.eigenvalues[0]) if self.eigenvalues.size else np.inf

    @property
    def verdict(self) -> str:
        """Result as text: prestressed or not prestressed, and the reason."""
        return f"{'prestressed' if self.prestressed else 'not prestressed'}: {self.reason}"

    def rows(self) -> list[tuple[str, str]]:
        """Table of the analysis for users."""
        stiffened = int(np.count_nonzero(self.mechanism_stiffness > no_stiffness(self.structure)))
        count = self.mechanism_count
        rows = [
            ("verdict", self.verdict),
            ("self-stress states", f"{self.self_stress_count} ({self.members} members, rank {self.rank})"),
            ("mechanisms", self._mechanism_words(stiffened)),
        ]
        if count:
            rows.append(("  stiffness", _listed([f"{x:.4g}" for x in self.mechanism_stiffness]) + " N/m"))
        if self.rigid:
            rows.append(("rigid motions", f"{self.rigid}"))
        if self.free_motion is not None:
            loose = " with tendons going slack" if self.finite_count > count else ""
            rows.append(("free motions", f"{self.finite_count}{loose}; for example {self.free_motion_words}"))
        elif not self.followed:
            rows.append(("free motions", f"not looked for: more than {MAX_FREE_COORDINATES_FOLLOWED} free coordinates"))
        elif count:
            rows.append(("free motions", "none: every mechanism is infinitesimal"))
        rows.append(("stable", "yes" if self.stable else "no"))
        zero = abs(self.softest) <= no_stiffness(self.structure)
        rows.append(("softest", f"{'no stiffness' if zero else f'{self.softest:.4g} N/m'}: {self.softest_motion}"))
        if self.feasible:
            rows.append(("all tendons can pull", "yes"))
        else:
            why = f": {_listed(self.clash)} cannot pull together" if len(self.clash) > 1 else ""
            why = f": {self.clash[0]} carries nothing in any self-stress" if len(self.clash) == 1 else why
            rows.append(("all tendons can pull", "no" + (why or ": there is no self-stress")))
        rows.append(("slack", _listed(self.slack) or "none"))
        return rows

    def _mechanism_words(self, stiffened: int) -> str:
        count = self.mechanism_count
        words = f"{count}" + (f", {stiffened} of them stiffened by the prestress" if count else "")
        if self.present_mechanisms == count:
            return words
        slack = "a slack tendon holds" if self.idle == 1 else f"the {self.idle} slack tendons hold"
        return f"{self.present_mechanisms}, as {slack} nothing (if all were tight: {words})"

    def figures(self) -> dict[str, Any]:
        """Data of the analysis as plain numbers and texts, for JSON."""
        names, nodes = self.structure.member_names, self.structure.node_names
        return {
            "verdict": self.verdict,
            "prestressed": self.prestressed,
            "members": self.members,
            "free_coordinates": self.freedoms,
            "rank": self.rank,
            "rigid_motions": self.rigid,
            "self_stress_states": self.self_stress_count,
            "mechanisms": self.present_mechanisms,
            "mechanisms_if_all_were_tight": self.mechanism_count,
            "mechanism_stiffness_N_per_m": self.mechanism_stiffness.tolist(),
            "free_motions": self.finite_count,
            "free_motion": None if self.free_motion is None else _by_name(nodes, self.free_motion.direction),
            "free_motion_words": self.free_motion_words or None,
            "stable": self.stable,
            "softest_N_per_m": self.softest if np.isfinite(self.softest) else None,
            "softest_motion": self.softest_motion,
            "softest_direction": _by_name(nodes, self.softest_direction),
            "all_tendons_can_pull": self.feasible,
            "feasible_self_stress_N": None if self.feasible_stress is None else _by_name(names, self.feasible_stress),
            "clash": list(self.clash),
            "slack": list(self.slack),
            "critical_bar_factor": self.bar_factor,
            "tensions_N": _by_name(names, self.tensions),
        }

    def __str__(self) -> str:
        return "\n".join(f"{label.strip()}: {text}" for label, text in self.rows())


def analyze_prestress(
    robot: Robot | Structure, nodes_or_shape: ArrayLike | StructureEquilibrium | None = None, *, tolerance: float = 1e-6
) -> PrestressAnalysis:
    """Self-stress, mechanisms and stability of a structure without loads.

    Prestress refers to the state without loads and weight, so that the shape without them is computed first.

    Args:
        nodes_or_shape: a shape (its rest lengths, and its nodes as a start), or nodes (n, 3) [m], which are used
            without changes, in balance or not; by default the rest lengths and the start of the robot.
        tolerance: singular values below this fraction of the largest one count as zero. Nodes with few digits (from a
            printed table) need a larger tolerance.

    Raises:
        TensegrityError: there is no free node, there are more than 1500 free coordinates, or nodes are not finite or
            coincide.
    """
    structure = robot.structure if isinstance(robot, Robot) else robot
    output = robot.outputs[0] if isinstance(robot, Robot) and robot.outputs else None
    if structure.free.size > MAX_FREE_COORDINATES:
        raise TensegrityError(
            f"prestress analysis is dense, up to {MAX_FREE_COORDINATES} free coordinates; this structure has "
            f"{structure.free.size}."
        )
    if isinstance(nodes_or_shape, StructureEquilibrium):
        structure, output = nodes_or_shape.structure, output or nodes_or_shape.output
    structure = replace(structure, ground=None, loads=None)  # the ground also exerts loads
    solver = StructureEquilibriumSolver(structure, output=output)
    nothing = np.zeros(3)
    nodes = solver.start_nodes(nodes_or_shape)
    if nodes_or_shape is None or isinstance(nodes_or_shape, StructureEquilibrium):
        try:
            nodes = solver.solve(start=nodes, gravity=nothing).nodes
        except NoEquilibriumError as error:
            raise NoEquilibriumError(
                f"without loads no shape was reached, so that there is nothing to analyse: {error} Or pass the nodes."
            ) from error
    return _analyse(structure, np.array(nodes), output, tolerance)


def _analyse(
    structure: Structure, nodes: NDArray[np.float64], output: NodeFrame | None, tolerance: float
) -> PrestressAnalysis:
    moving = moving_members(structure)
    free, count = structure.free, nodes.size
    lengths, tensions = np.zeros(len(structure.member_names)), np.zeros(len(structure.member_names))
    member_tensions(
        nodes, structure.members, structure.stiffness, structure.rest_lengths, structure.laws, lengths, tensions
    )
    if not np.all(lengths > 0.0):
        raise TensegrityError(
            f"member {structure.member_names[int(np.argmin(lengths))]} has length zero; pass nodes that are apart."
        )
    tensions[np.setdiff1d(np.arange(lengths.size), moving)] = 0.0
    matrix = equilibrium_matrix(structure, nodes)
    rigid = rigid_motions(structure, nodes)
    states = null_space(matrix, tolerance)
    rank = moving.size - states.shape[1]
    force_scale = no_force(structure)
    holds = ~structure.unilateral[moving] | (tensions[moving] > force_scale)
    basis = null_space(np.vstack((matrix.T, rigid.T)), tolerance)
    present = basis.shape[1] if holds.all() else null_space(np.vstack((matrix.T[holds], rigid.T)), tolerance).shape[1]
    # mechanisms in the order of their stiffness due to the tensions
    values, turn = np.linalg.eigh(basis.T @ stress_matrix(structure, tensions / lengths) @ basis)
    basis = basis @ turn

    eigenvalues, vectors = stiffness_spectrum(structure, nodes, lengths, tensions)
    direction = vectors[:, 0] if eigenvalues.size else np.zeros(free.size)
    edge = edge_members(structure, lengths, structure.rest_lengths)
    if eigenvalues.size and edge.size:
        least, direction = stiffness_at_the_edge(structure, nodes, lengths, tensions, edge, rigid)
        eigenvalues = np.maximum(eigenvalues, least)
    stable = bool(eigenvalues.size == 0 or eigenvalues[0] > no_stiffness(structure))
    softest = _spread(direction, free, count)

    pulls = tension_only(states, structure.unilateral[moving])
    motion = None
    followed = stable or free.size <= MAX_FREE_COORDINATES_FOLLOWED
    if not stable and followed:
        preferred = None if output is None else output.jacobian(nodes)
        motion = find_free_motion(
            structure, nodes, tensions, force_scale=force_scale, tolerance=tolerance, preferred=preferred
        )
    slack = tuple(structure.member_names[k] for k in moving if structure.unilateral[k] and tensions[k] <= force_scale)
    carries = bool(np.abs(tensions).max(initial=0.0) > force_scale)
    unbalanced = float(np.abs(matrix @ tensions[moving]).max(initial=0.0))
    balanced = unbalanced <= max(force_scale, 1e-6 * float(np.abs(tensions).max(initial=0.0)))
    words = "" if motion is None else describe_motion(structure, nodes, motion.direction, output)
    bar_factor = None if carries or motion is None else critical_bar_factor(structure, nodes, force_scale)
    prestressed = carries and stable and balanced
    softest_words = describe_motion(structure, nodes, softest, output)
    if carries and not stable:
        negative = bool(eigenvalues[0] < -no_stiffness(structure))
        words = words or softest_words
        reason = _reason_unstable(negative, words, motion is not None) if balanced else _reason_unbalanced(unbalanced)
    elif not balanced:
        reason = _reason_unbalanced(unbalanced)
    elif carries:
        reason = "every motion is stiff and tensions hold without loads" + (
            f"; slack: {_listed(slack)}" if slack else ""
        )
    else:
        reason = _reason_without_force(structure, motion, words, states.shape[1], pulls.feasible, bar_factor)
    every = np.zeros((lengths.size, states.shape[1]))
    every[moving] = states
    feasible_stress = None
    if pulls.tensions is not None:
        feasible_stress = np.zeros(lengths.size)
        feasible_stress[moving] = pulls.tensions
    return PrestressAnalysis(
        structure=structure, nodes=nodes, tensions=tensions, members=int(moving.size), freedoms=int(free.size),
        rank=rank, rigid=rigid.shape[1], idle=int(np.count_nonzero(~holds)), present_mechanisms=present,
        self_stress=every,
        mechanisms=np.array([_spread(column, free, count) for column in basis.T]).reshape(-1, *nodes.shape),
        mechanism_stiffness=values, free_motion=motion, free_motion_words=words, followed=followed,
        eigenvalues=eigenvalues, stable=stable, softest_direction=softest, softest_motion=softest_words,
        feasible=pulls.feasible, feasible_stress=feasible_stress,
        clash=tuple(structure.member_names[moving[row]] for row in pulls.clash), slack=slack, bar_factor=bar_factor,
        prestressed=prestressed, reason=reason,
    )  # fmt: skip


def critical_bar_factor(structure: Structure, nodes: NDArray[np.float64], force_scale: float) -> float | None:
    """Least factor on all bar lengths with which a structure without forces has tensions, or None up to a factor of 2.

    It is found by continuation from these nodes, so that it is valid for this assembly of the structure.
    """
    bars, moving = ~structure.unilateral, moving_members(structure)
    if not (bars[moving].any() and structure.unilateral[moving].any()):
        return None
    solver, nothing = StructureEquilibriumSolver(structure), np.zeros(3)

    def force(factor: float, start: NDArray) -> tuple[float, NDArray]:
        """Largest tension [N] with this factor on the bars, and the nodes."""
        rest = np.where(bars, factor, 1.0) * structure.rest_lengths
        shape = solver.solve(rest, start=start, gravity=nothing)
        return float(np.abs(shape.tensions[moving]).max()), shape.nodes

    low, high, start = 1.0, 0.0, nodes
    try:
        for growth in (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.0):
            tension, shape = force(1.0 + growth, start)
            if tension > 1e3 * force_scale:
                high = 1.0 + growth
                break
            low, start = 1.0 + growth, shape
        else:
            return None
        while high - low > 1e-5:
            middle = 0.5 * (low + high)
            tension, shape = force(middle, start)
            if tension > 1e3 * force_scale:
                high = middle
            else:
                low, start = middle, shape
        # the force grows linearly from zero: extrapolate to its start
        first, shape = force(high + 1e-4, start)
        second, _ = force(high + 2e-4, shape)
    except NoEquilibriumError:
        return None
    origin = high + 1e-4 - 1e-4 * first / (second - first) if second > first else low
    return float(np.clip(origin, low - 1e-3, high))


def _reason_unbalanced(left: float) -> str:
    return f"the tensions at these nodes do not balance ({left:.3g} N are left); pass a shape, or no nodes"


def _reason_unstable(negative: bool, words: str, free: bool) -> str:
    if negative:
        return f"tensions hold, but the balance is unstable: {words}. Start elsewhere"
    if free:
        return f"tensions hold, but there is a continuum of shapes without stretch: {words}. Add members, or fix nodes"
    return f"tensions hold, but a motion has no stiffness: {words}. Add members, or fix nodes"


def _reason_without_force(
    structure: Structure,
    motion: FiniteMechanism | None,
    words: str,
    states: int,
    feasible: bool,
    bar_factor: float | None,
) -> str:
    if motion is not None:
        cure = "Shorten tendons, or take longer bars"
        if bar_factor is not None:
            longest = _longest_bar(structure, bar_factor)
            cure = f"Shorten tendons, or take bars longer by more than a factor of {bar_factor:.5f} ({longest})"
        return f"no member carries force, and there is a continuum of shapes without stretch: {words}. {cure}"
    if not states:
        return "no member carries force, and there is no self-stress: no rest lengths can prestress this geometry"
    if not feasible:
        return "no member carries force, and no self-stress pulls in all tendons at once"
    return "no member carries force at these rest lengths, though a self-stress exists: shorten the tendons"


def _longest_bar(structure: Structure, factor: float) -> str:
    moving = moving_members(structure)
    bars = moving[~structure.unilateral[moving]]
    k = bars[int(np.argmax(structure.rest_lengths[bars]))]
    return (
        f"{structure.member_names[k]}: {structure.rest_lengths[k]:.5g} m to {factor * structure.rest_lengths[k]:.5g} m"
    )


def _spread(values: NDArray, free: NDArray, count: int) -> NDArray[np.float64]:
    array = np.zeros(count)
    array[free] = values
    return array.reshape(-1, 3)


def _by_name(names: tuple[str, ...], values: NDArray) -> dict[str, Any]:
    return dict(zip(names, values.tolist(), strict=True))


def _listed(names: tuple[str, ...] | list[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
