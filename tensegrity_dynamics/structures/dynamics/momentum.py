"""Correction of the angular momentum, for integration methods that do not conserve it.

Forces of members, of bars and between rods act along the line of two points and have no total torque. So the angular
momentum about the origin, H = sum r_i x p_i with p = M v, changes only by the torque of all other forces:
H' = sum r_i x f_i. A Runge-Kutta method integrates this equation with the same stages and the same order; without
torque exactly. H of the resulting nodes differs from this, due to the error of the method and the projection onto the
bar lengths. The difference is corrected with one rotation of all velocities about the centre of mass,

    v_i += w x (r_i - c),   I w = H - sum r_i x p_i,

which changes neither the momentum nor the rates of lengths. It is of the size of the error of the method (Hairer,
Lubich, Wanner: Geometric Numerical Integration, IV.4). Held nodes exert torques that are not included, so that it is
valid only for structures without held nodes.
"""

from __future__ import annotations

from ...numerics.compilation import allocation_free, for_compiled_callers


@allocation_free
def is_free(network):
    """Whether no node is held along any axis."""
    if network.inverse_value.shape[0] > 1:
        return False
    for i in range(network.position.shape[0]):
        if network.position[i] < 0:
            return False
    return True


@for_compiled_callers
def add_torque(nodes, forces, scale, target):
    """target (3,) += scale times the torque [N m] of forces (n, 3) [N] about the origin."""
    for i in range(nodes.shape[0]):
        x, y, z = nodes[i, 0], nodes[i, 1], nodes[i, 2]
        target[0] += scale * (y * forces[i, 2] - z * forces[i, 1])
        target[1] += scale * (z * forces[i, 0] - x * forces[i, 2])
        target[2] += scale * (x * forces[i, 1] - y * forces[i, 0])


@for_compiled_callers
def add_moment(scale, x, y, z, u, v, w, target):
    target[0] += scale * (y * w - z * v)
    target[1] += scale * (z * u - x * w)
    target[2] += scale * (x * v - y * u)


@for_compiled_callers
def add_angular_momentum(network, nodes, velocities, scale, target):
    """target (3,) += scale times the angular momentum [N m s] about the origin."""
    for i in range(nodes.shape[0]):
        add_moment(
            scale * network.node_masses[i], nodes[i, 0], nodes[i, 1], nodes[i, 2],
            velocities[i, 0], velocities[i, 1], velocities[i, 2], target,
        )  # fmt: skip
    for k in range(network.spread.shape[0]):
        if network.spread[k] > 0.0:
            i, j = network.members[k, 0], network.members[k, 1]
            add_moment(
                -scale * network.spread[k], nodes[i, 0] - nodes[j, 0], nodes[i, 1] - nodes[j, 1],
                nodes[i, 2] - nodes[j, 2], velocities[i, 0] - velocities[j, 0], velocities[i, 1] - velocities[j, 1],
                velocities[i, 2] - velocities[j, 2], target,
            )  # fmt: skip


@for_compiled_callers
def restore_angular_momentum(network, nodes, velocities, target, scratch):
    """Add a rotation to all node velocities so that the angular momentum is the desired one (3,); scratch (7, 3)."""
    miss, turn, ahead, pushed, centre, first, second = (
        scratch[0], scratch[1], scratch[2], scratch[3], scratch[4], scratch[5], scratch[6]
    )  # fmt: skip
    total = 0.0
    for a in range(3):
        miss[a], turn[a], centre[a], first[a], second[a] = target[a], 0.0, 0.0, 0.0, 0.0
    add_angular_momentum(network, nodes, velocities, -1.0, miss)
    for i in range(nodes.shape[0]):
        total += network.node_masses[i]
        for a in range(3):
            centre[a] += network.node_masses[i] * nodes[i, a]
    for a in range(3):
        centre[a] /= total
    # second moments: squares, then products of the two other axes
    for i in range(nodes.shape[0]):
        for a in range(3):
            b, c = (a + 1) % 3, (a + 2) % 3
            first[a] += network.node_masses[i] * (nodes[i, a] - centre[a]) ** 2
            second[a] += network.node_masses[i] * (nodes[i, b] - centre[b]) * (nodes[i, c] - centre[c])
    for k in range(network.spread.shape[0]):
        if network.spread[k] > 0.0:
            i, j = network.members[k, 0], network.members[k, 1]
            for a in range(3):
                b, c = (a + 1) % 3, (a + 2) % 3
                first[a] -= network.spread[k] * (nodes[i, a] - nodes[j, a]) ** 2
                second[a] -= network.spread[k] * (nodes[i, b] - nodes[j, b]) * (nodes[i, c] - nodes[j, c])
    # conjugate gradients: three steps are exact, also without inertia about one axis (a single rod)
    square = 0.0
    for a in range(3):
        ahead[a] = miss[a]
        square += miss[a] * miss[a]
    small = 1e-24 * square
    for _ in range(4):
        if not square > small:
            break
        along = 0.0
        for a in range(3):
            b, c = (a + 1) % 3, (a + 2) % 3
            pushed[a] = (first[b] + first[c]) * ahead[a] - second[c] * ahead[b] - second[b] * ahead[c]
            along += pushed[a] * ahead[a]
        if not along > 0.0:
            break
        part, before = square / along, square
        square = 0.0
        for a in range(3):
            turn[a] += part * ahead[a]
            miss[a] -= part * pushed[a]
            square += miss[a] * miss[a]
        for a in range(3):
            ahead[a] = miss[a] + square / before * ahead[a]
    for i in range(nodes.shape[0]):
        x, y, z = nodes[i, 0] - centre[0], nodes[i, 1] - centre[1], nodes[i, 2] - centre[2]
        velocities[i, 0] += turn[1] * z - turn[2] * y
        velocities[i, 1] += turn[2] * x - turn[0] * z
        velocities[i, 2] += turn[0] * y - turn[1] * x
