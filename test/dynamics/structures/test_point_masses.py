"""The equations of motion of point masses and bars against formulations of their own."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_dynamics import load_robot, make_structure
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.structures.dynamics.bar_constraints import (
    close_bars,
    couple_bars,
    dependent_bars,
    project_velocities,
)
from tensegrity_dynamics.structures.dynamics.point_masses import (
    accelerations,
    make_network,
    make_workspace,
    spring_forces,
)
from tensegrity_dynamics.structures.dynamics.rod_masses import inverse_mass_matrix
from tensegrity_dynamics.structures.energy import stored_energy


def plate(seed=0, **options):
    """Two plates of three bars each, one on fixed feet, and strings between: bars that couple and bars that do not."""
    rng = np.random.default_rng(seed)
    nodes = {f"n{i}": rng.normal(size=3) for i in range(9)}
    pairs = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (2, 3), (6, 7), (7, 8)]
    rows = []
    for a, b in pairs:
        length = float(np.linalg.norm(nodes[f"n{a}"] - nodes[f"n{b}"]))
        rows.append((f"bar{a}{b}", "bar", f"n{a}", f"n{b}", 1e4, length))
    for a, b in [(0, 4), (1, 6), (2, 8), (3, 7), (5, 8), (0, 6)]:
        length = float(np.linalg.norm(nodes[f"n{a}"] - nodes[f"n{b}"]))
        rows.append((f"string{a}{b}", "tendon", f"n{a}", f"n{b}", 50.0, 0.8 * length))
    names = [row[0] for row in rows]
    return make_structure(
        nodes, rows, fixed=["n6", "n8"], masses={n: 0.3 for n in names},
        damping={n: 2.0 for n in names if n.startswith("string")}, gravity=(0.3, -0.2, -9.81), **options,
    )  # fmt: skip


def evaluated(structure, velocities, **options):
    network = make_network(structure, **options)
    work = make_workspace(network)
    nodes = np.array(structure.nodes)
    velocities = np.array(velocities)
    velocities[structure.fixed] = 0.0
    assert project_velocities(network, nodes, velocities, work)
    independent, _ = accelerations(network, nodes, velocities, np.array(structure.rest_lengths), work)
    assert independent
    return network, work, nodes, velocities


def test_accelerations_are_those_of_equation_3_36_in_003_with_its_own_jacobian():
    """G = |bar|^2 - L^2, J = dG/dp, J W J' mu = -J' v - J W F (Baumgarte terms zero on the constraint), densely."""
    structure = plate()
    network, work, nodes, v = evaluated(structure, np.random.default_rng(1).normal(size=(9, 3)))
    W = np.kron(inverse_mass_matrix(network), np.eye(3))
    J, Jdot = np.zeros((network.bars.size, 27)), np.zeros((network.bars.size, 27))
    for c, k in enumerate(network.bars):
        i, j = structure.members[k]
        for matrix, what in ((J, nodes), (Jdot, v)):
            matrix[c, 3 * i : 3 * i + 3] = 2.0 * (what[i] - what[j])
            matrix[c, 3 * j : 3 * j + 3] = -2.0 * (what[i] - what[j])
    F = work.forces.ravel()
    multipliers = np.linalg.solve(J @ W @ J.T, -Jdot @ v.ravel() - J @ (W @ F))
    expected = W @ (F + J.T @ multipliers)
    np.testing.assert_allclose(work.acceleration.ravel(), expected, atol=1e-9 * np.abs(expected).max())
    lengths = np.array([work.lengths[k] for k in network.bars])
    np.testing.assert_allclose(work.tensions[network.bars], -2.0 * lengths * multipliers, atol=1e-8)


def test_bars_keep_their_length_to_second_order_in_time():
    """d^2/dt^2 |bar|^2 = 0, by differences along the parabola that the accelerations give."""
    structure = plate(2)
    network, work, nodes, v = evaluated(structure, np.random.default_rng(2).normal(size=(9, 3)))
    h = 1e-4
    for k in network.bars:
        i, j = structure.members[k]

        def square(t, i=i, j=j):
            p = nodes + t * v + 0.5 * t * t * work.acceleration
            return np.sum((p[i] - p[j]) ** 2)

        curvature = (square(h) - 2.0 * square(0.0) + square(-h)) / h**2
        # of the parabola itself the difference sees h^2 |a_i - a_j|^2 / 2 besides
        beside = 0.5 * h * h * np.sum((work.acceleration[i] - work.acceleration[j]) ** 2)
        assert curvature - beside == pytest.approx(0.0, abs=1e-6)


def test_forces_are_the_slope_of_energy_and_dampers_oppose_motion():
    structure = plate(3)
    still, moving = (evaluated(structure, x * np.random.default_rng(3).normal(size=(9, 3))) for x in (0.0, 1.0))
    network, nodes = still[0], still[2]

    def energy(p):
        elastic = stored_energy(p, network.members, network.stiffness, np.array(structure.rest_lengths), network.laws)
        return elastic - np.sum(network.weight * p)

    slope = np.zeros_like(nodes)
    for index in np.ndindex(*nodes.shape):
        shift = np.zeros_like(nodes)
        shift[index] = 1e-6
        slope[index] = (energy(nodes + shift) - energy(nodes - shift)) / 2e-6
    np.testing.assert_allclose(still[1].forces, -slope, atol=1e-6)
    assert np.sum((moving[1].forces - still[1].forces) * moving[3]) < 0.0


@given(st.floats(0.5, 1.5), st.floats(-50.0, 50.0), st.floats(-5.0, 5.0))
@settings(max_examples=60, deadline=None)
def test_a_string_never_pushes_and_a_slack_one_carries_nothing(length, rate, winding):
    structure = make_structure(
        {"a": (0, 0, 0), "b": (length, 0, 0)}, [("s", "tendon", "a", "b", 100.0, 1.0)], fixed=["a"],
        node_masses={"b": 1.0}, damping={"s": 10.0},
    )  # fmt: skip
    network = make_network(structure)
    work = make_workspace(network)
    work.rest_rates[0] = winding
    velocities = np.array([[0.0, 0, 0], [rate, 0, 0]])
    lost = spring_forces(network, np.array(structure.nodes), velocities, np.array([1.0]), work)
    tension = max(0.0, 100.0 * (length - 1.0) + 10.0 * (rate - winding)) if length > 1.0 else 0.0
    assert work.tensions[0] == pytest.approx(tension, abs=1e-9)
    assert work.forces[1, 0] == pytest.approx(-tension, abs=1e-9)
    assert lost >= -1e-9 or length > 1.0


def test_a_damper_takes_energy_out_only():
    structure = plate(4)
    network = make_network(structure, air_damping=0.5)
    work, rng = make_workspace(network), np.random.default_rng(4)
    for _ in range(50):
        v = rng.normal(size=(9, 3)) * ~structure.fixed[:, None]
        nodes = structure.nodes + 0.1 * rng.normal(size=(9, 3))
        assert spring_forces(network, nodes, v, np.array(structure.rest_lengths), work) >= 0.0


def test_bars_between_fixed_nodes_are_left_out_and_others_grouped_by_shared_nodes():
    network = make_network(load_robot("tensebot").structure)
    structure = load_robot("tensebot").structure
    names = [structure.member_names[k] for k in network.bars]
    assert not [name for name in names if name.startswith("base")]
    # the three lower bars stand on fixed nodes and move alone; the plate and the upper bars are one group
    sizes = np.bincount(network.first)
    assert sorted(sizes[sizes > 0].tolist()) == [1, 1, 1, 6]


def test_factor_within_its_envelope_equals_the_dense_one():
    structure = plate(5)
    network, work, _, _ = evaluated(structure, np.zeros((9, 3)))
    rows = np.zeros((network.bars.size, 27))
    for c, k in enumerate(network.bars):
        i, j = structure.members[k]
        rows[c, 3 * i : 3 * i + 3], rows[c, 3 * j : 3 * j + 3] = work.units[c], -work.units[c]
    dense = rows @ np.kron(inverse_mass_matrix(network), np.eye(3)) @ rows.T
    root = np.sqrt(1.0 / np.diag(work.factor))
    lower = np.tril(work.factor, -1) + np.eye(root.size)
    np.testing.assert_allclose(lower * root, np.linalg.cholesky(dense), atol=1e-12)
    np.testing.assert_allclose(np.tril(work.matrix, -1), np.tril(lower * root**2, -1), atol=1e-12)


def test_projection_moves_only_along_the_bars_weighted_by_mass():
    structure = plate(6)
    network, work = make_network(structure), make_workspace(make_network(structure))
    v = np.random.default_rng(6).normal(size=(9, 3))
    v[structure.fixed] = 0.0
    before, nodes = v.copy(), np.array(structure.nodes)
    project_velocities(network, nodes, v, work)
    for k in network.bars:
        i, j = structure.members[k]
        assert np.dot(nodes[i] - nodes[j], v[i] - v[j]) == pytest.approx(0.0, abs=1e-12)
    # the change is orthogonal to what is left, in the metric of the masses: the nearest allowed motion
    assert np.sum((structure.mass_matrix() @ (v - before)) * v) == pytest.approx(0.0, abs=1e-10)


def test_bars_close_from_a_rough_start_to_round_off():
    structure = plate(7)
    network = make_network(structure)
    work, totals = make_workspace(network), np.zeros(network.bars.size)
    free = ~structure.fixed[:, None]
    nodes = structure.nodes + 1e-3 * np.random.default_rng(7).normal(size=(9, 3)) * free
    assert couple_bars(network, nodes, work)
    assert close_bars(network, nodes, totals, work) < 1e-14
    np.testing.assert_array_equal(nodes[structure.fixed], structure.nodes[structure.fixed])


def test_dependent_bars_are_found_and_independent_ones_are_not():
    assert dependent_bars(make_network(plate()), plate().nodes) == ()
    line = make_structure(
        {"a": (0, 0, 0), "b": (1, 0, 0), "c": (2, 0, 0), "d": (1, 1, 0)},
        [("ab", "bar", "a", "b", 1.0, 1.0), ("bc", "bar", "b", "c", 1.0, 1.0), ("bd", "bar", "b", "d", 1.0, 1.0)],
        fixed=["a", "c"], node_masses={"b": 1.0, "d": 1.0},
    )  # fmt: skip
    assert dependent_bars(make_network(line), line.nodes) == (0, 1)


def test_a_free_node_without_mass_is_refused_by_name():
    structure = make_structure({"a": (0, 0, 0), "b": (1, 0, 0)}, [("s", "tendon", "a", "b", 1.0, 0.9)], fixed=["a"])
    with pytest.raises(TensegrityError, match=r"node b has no mass.*give it or a member"):
        make_network(structure)
