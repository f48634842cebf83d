"""Elastic energy of a structure and its first and second derivatives with respect to the node positions.

E = sum 1/2 K (l - d)^2 over the members that are not slack, or the energy of another `tension_law`. A member has the
unit vector n, the tension t and the slope t' of its law. The forces on its ends are -+ t n, and its block of the
tangent stiffness is t' n n' + (t / l)(I - n n').
"""

from __future__ import annotations

import numpy as np

from ..numerics.compilation import compiled
from .tension_law import tension_law


@compiled
def member_tensions(nodes, members, stiffness, rest_lengths, laws, lengths, tensions):
    """Fill lengths (m,) m and tensions (m,) N by `Structure.laws`; negative tension is compression."""
    for k in range(members.shape[0]):
        i, j = members[k, 0], members[k, 1]
        x = nodes[i, 0] - nodes[j, 0]
        y = nodes[i, 1] - nodes[j, 1]
        z = nodes[i, 2] - nodes[j, 2]
        lengths[k] = np.sqrt(x * x + y * y + z * z)
        tensions[k] = tension_law(laws[k], stiffness[k], lengths[k] - rest_lengths[k])[0]


@compiled
def stored_energy(nodes, members, stiffness, rest_lengths, laws):
    """Elastic energy [J] of the members."""
    energy = 0.0
    for k in range(members.shape[0]):
        i, j = members[k, 0], members[k, 1]
        x = nodes[i, 0] - nodes[j, 0]
        y = nodes[i, 1] - nodes[j, 1]
        z = nodes[i, 2] - nodes[j, 2]
        stretch = np.sqrt(x * x + y * y + z * z) - rest_lengths[k]
        energy += tension_law(laws[k], stiffness[k], stretch)[2]
    return energy


@compiled
def add_member_forces(nodes, members, lengths, tensions, forces):
    """Add the forces of the members on their nodes to forces (n, 3) [N]: the residual of 001, Algorithm 1 line 16."""
    for k in range(members.shape[0]):
        tension = tensions[k]
        if tension == 0.0:
            continue
        i, j = members[k, 0], members[k, 1]
        density = tension / lengths[k]
        for axis in range(3):
            pull = density * (nodes[j, axis] - nodes[i, axis])
            forces[i, axis] += pull
            forces[j, axis] -= pull


@compiled
def tangent_stiffness(nodes, members, stiffness, laws, lengths, tensions, rest_lengths, position, matrix):
    """Fill matrix (f, f) [N/m] with the Hessian of the elastic energy over the free coordinates.

    position (n, 3) is the row in `matrix` of each coordinate, or -1 for held ones. Slack members have no contribution.
    """
    matrix[:, :] = 0.0
    block = np.empty((3, 3))
    for k in range(members.shape[0]):
        if laws[k] > 0.0 and lengths[k] <= rest_lengths[k] and tensions[k] <= 0.0:
            continue
        i, j = members[k, 0], members[k, 1]
        length = lengths[k]
        slope, density = tension_law(laws[k], stiffness[k], length - rest_lengths[k])[1], tensions[k] / length
        for a in range(3):
            first = (nodes[i, a] - nodes[j, a]) / length
            for b in range(3):
                second = (nodes[i, b] - nodes[j, b]) / length
                block[a, b] = (slope - density) * first * second
            block[a, a] += density
        for a in range(3):
            row, column = position[i, a], position[j, a]
            for b in range(3):
                first, second = position[i, b], position[j, b]
                if row >= 0:
                    if first >= 0:
                        matrix[row, first] += block[a, b]
                    if second >= 0:
                        matrix[row, second] -= block[a, b]
                if column >= 0:
                    if second >= 0:
                        matrix[column, second] += block[a, b]
                    if first >= 0:
                        matrix[column, first] -= block[a, b]


def free_positions(supports: np.ndarray) -> np.ndarray:
    """(n, 3) row of each coordinate among the free ones; -1 for coordinates held by supports (n, 3)."""
    position = np.full(supports.shape, -1, dtype=np.int64)
    position[~supports] = np.arange(int(np.count_nonzero(~supports)))
    return position
