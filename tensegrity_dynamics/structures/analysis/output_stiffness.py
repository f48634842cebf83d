"""Stiffness of the output of a structure at rest with fixed rest lengths (see `linear_models.output_stiffness`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...errors import TensegrityError
from ...linear_models.output_stiffness import OutputStiffness, SelfStress, stiffness_of
from ...robots.robot import Robot
from ..energy import free_positions, tangent_stiffness
from ..form_finding.equilibrium import StructureEquilibrium
from ..form_finding.force_density import equilibrium_matrix, moving_members, null_space
from ..form_finding.rigid_bar_solver import bar_directions
from ..form_finding.stability import no_force
from ..form_finding.standing import ground_stiffness
from ..structure import Structure

SELF_STRESSES = 6
"""Largest number of evaluated self-stresses; the first one is the self-stress part of the present tensions."""


def output_stiffness(robot: Robot, shape: StructureEquilibrium, *, rigid_bars: bool) -> OutputStiffness:
    """Stiffness of the output of a robot at an equilibrium with elastic or rigid bars; feet on the ground do not move.

    Along a self-stress the nodes and the elastic stiffness of every member are constant; only the geometric stiffness
    changes.

    Raises:
        TensegrityError: the robot has no output, or the equilibrium is not stable.
    """
    structure = shape.structure
    if not robot.outputs:
        raise TensegrityError(f"{robot.name} has no output, so no stiffness of it; name one in its file.")
    if not structure.supports.any() and structure.ground is None:
        raise TensegrityError(f"{robot.name} floats freely, so that its output has no stiffness; fix a node.")
    output = robot.outputs[0]
    free, nodes = structure.free, shape.nodes
    bars = np.flatnonzero(~structure.unilateral & ~structure.fixed[structure.members].all(axis=1))
    allowed = (
        null_space(bar_directions(nodes, structure, bars), 1e-9) if rigid_bars and bars.size else np.eye(free.size)
    )
    taut = ~structure.unilateral | (shape.tensions > no_force(structure))
    elastic = np.where(taut, structure.stiffness, 0.0)
    if rigid_bars:
        elastic[bars] = 0.0
    tensions = np.where(taut, shape.tensions, 0.0)
    matrix = allowed.T @ (_tangent(structure, nodes, elastic, tensions) + ground_stiffness(structure, nodes)) @ allowed
    values = np.linalg.eigvalsh(0.5 * (matrix + matrix.T))
    if values.size and not values[0] > 1e-12 * values[-1]:
        raise TensegrityError(f"{robot.name} is not stable at rest, so that its output has no stiffness.")
    full = output.jacobian(nodes)
    along = full[:, free] @ allowed
    solved = np.linalg.solve(matrix, along.T)
    compliance = along @ solved
    axes = tuple(axis for axis in output.controlled if output.nodes.size > 1 or not axis.startswith("r"))
    rows = np.array([output.rows[k] for k, axis in enumerate(output.controlled) if axis in axes], dtype=np.int64)
    # rest lengths: shortening increases the tension by the stiffness
    driven = [structure.member(each.drives) for each in robot.actuators]
    pushes = np.zeros((nodes.size, len(driven)))
    for column, k in enumerate(driven):
        i, j = structure.members[k].tolist()
        unit = (nodes[i] - nodes[j]) / shape.lengths[k]
        pushes[3 * i : 3 * i + 3, column] += elastic[k] * unit
        pushes[3 * j : 3 * j + 3, column] -= elastic[k] * unit
    jacobian = solved.T @ (allowed.T @ pushes[free])
    stresses = _self_stresses(structure, shape, elastic, allowed, solved, compliance, rows, taut)
    spread = nodes[output.nodes] - nodes[output.nodes].mean(axis=0)
    reach = float(np.sqrt(np.mean(np.sum(spread**2, axis=1)))) or 1.0
    return OutputStiffness(
        output.name, axes, compliance, stresses, jacobian, tuple(each.name for each in robot.actuators), reach
    )


def _tangent(
    structure: Structure, nodes: NDArray[np.float64], elastic: NDArray[np.float64], tensions: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(f, f) tangent stiffness [N/m] for given stiffnesses and tensions of all members, independent of rest lengths."""
    lengths = np.linalg.norm(nodes[structure.members[:, 0]] - nodes[structure.members[:, 1]], axis=1)
    matrix = np.zeros((structure.free.size, structure.free.size))
    never_slack = np.zeros(lengths.size, dtype=np.bool_)
    tangent_stiffness(
        np.array(nodes), np.array(structure.members), elastic, never_slack, lengths, tensions, lengths,
        free_positions(structure.supports), matrix,
    )  # fmt: skip
    return matrix


def _self_stresses(
    structure: Structure,
    shape: StructureEquilibrium,
    elastic: NDArray[np.float64],
    allowed: NDArray[np.float64],
    solved: NDArray[np.float64],
    compliance: NDArray[np.float64],
    rows: NDArray[np.int64],
    taut: NDArray[np.bool_],
) -> tuple[SelfStress, ...]:
    """Self-stresses of the taut members at these nodes, and the slope of the stiffness along each."""
    moving = moving_members(structure)
    chosen = moving[taut[moving]]
    balance = equilibrium_matrix(structure, shape.nodes)[:, np.searchsorted(moving, chosen)]
    states = null_space(balance, 1e-9)
    if not states.shape[1]:
        return ()
    try:
        stiffness = stiffness_of(compliance, rows)
    except TensegrityError:
        return ()
    # first the self-stress part of the present tensions, then orthogonal directions
    present = states.T @ shape.tensions[chosen]
    if np.linalg.norm(present) > 0.0:
        turned, _ = np.linalg.qr(np.column_stack((present, np.eye(states.shape[1]))))
        states = states @ turned
        states[:, 0] *= np.sign(states[:, 0] @ shape.tensions[chosen]) or 1.0
    result = []
    for state in states.T[:SELF_STRESSES]:
        tensions = np.zeros(structure.stiffness.size)
        tensions[chosen] = state
        change = allowed.T @ _tangent(structure, shape.nodes, np.zeros_like(elastic), tensions) @ allowed
        less = -solved.T @ change @ solved
        slope = -stiffness @ less[np.ix_(rows, rows)] @ stiffness
        named = {structure.member_names[k]: float(tensions[k]) for k in chosen}
        result.append(SelfStress(named, slope))
    return tuple(result)
