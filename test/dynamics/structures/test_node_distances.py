"""Node distances (document 004): its theorems with equal and unequal masses, both orders, motion beside positions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.linalg import null_space, subspace_angles

from tensegrity_dynamics import Simulation, load_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.structures.node_distances.constraints import cycle_matrix, orthonormal_basis
from tensegrity_dynamics.structures.node_distances.inertia import apply_inverse, inverse_matrix, pair_masses
from tensegrity_dynamics.structures.node_distances.model import NodeDistanceModel
from tensegrity_dynamics.structures.node_distances.pairs import (
    ORDERS,
    all_pairs,
    connected_pairs,
)
from tensegrity_dynamics.structures.node_distances.sorted_coordinates import SortedCoordinates
from tensegrity_dynamics.structures.structure import make_structure

EYE = np.eye(3)


def centre_matrix(masses) -> sparse.csr_array:
    """J_c of (3.6), (3, 3 n): the centre of mass of the stacked node positions."""
    weights = np.asarray(masses, dtype=np.float64)
    return sparse.csr_array(sparse.kron(weights[None, :] / weights.sum(), sparse.eye_array(3)))


def network(seed: int, count: int, equal: bool = False):
    """A random connected network of bars, tendons and slack tendons, its nodes and masses drawn at random."""
    draw = np.random.default_rng(seed)
    names = [f"n{i}" for i in range(count)]
    ends = [(draw.integers(i), i) for i in range(1, count)]  # a tree
    ends += [(i, j) for i in range(count) for j in range(i + 1, count) if draw.random() < 0.4 and (i, j) not in ends]
    positions = draw.normal(size=(count, 3))
    rows = []
    for k, (i, j) in enumerate(ends):
        length = float(np.linalg.norm(positions[i] - positions[j]))
        kind = "bar" if draw.random() < 0.3 else "tendon"
        # either way round: delta of a member may point against its pair
        first, second = (i, j) if draw.random() < 0.5 else (j, i)
        rows.append(
            (f"m{k}", kind, names[first], names[second], draw.uniform(50, 200), length * draw.uniform(0.8, 1.1))
        )
    masses = np.ones(count) if equal else draw.uniform(0.1, 3.0, count)
    return make_structure(
        dict(zip(names, positions, strict=True)), rows, node_masses=dict(zip(names, masses, strict=True))
    )


networks = st.builds(network, st.integers(0, 10**6), st.integers(3, 8), st.booleans())
few = settings(max_examples=8, deadline=None)


@few
@given(structure=networks, order=st.sampled_from(ORDERS), is_full=st.booleans())
def test_theorem_1_distances_lose_translations_alone_and_the_centre_gives_them_back(structure, order, is_full) -> None:
    pairs = all_pairs(len(structure.node_names)) if is_full else connected_pairs(structure)
    count = 3 * pairs.count
    matrix = pairs.map_matrix(order).toarray()
    assert np.linalg.matrix_rank(matrix) == count - 3
    np.testing.assert_allclose(matrix @ np.tile(EYE, (pairs.count, 1)), 0.0)
    extended = np.vstack((matrix, centre_matrix(structure.lumped_masses()).toarray()))
    assert np.linalg.matrix_rank(extended) == count


@few
@given(structure=networks)
def test_lemma_1_holds_through_the_masses(structure) -> None:
    """J_c H^-1 D^T = 0 always."""
    masses = structure.lumped_masses()
    matrix = all_pairs(masses.size).map_matrix().toarray()
    weighted = centre_matrix(masses).toarray() / np.repeat(masses, 3)
    np.testing.assert_allclose(weighted @ matrix.T, 0.0, atol=1e-12)


def test_lemma_1_without_the_masses_holds_for_equal_ones_alone() -> None:
    """J_c D^T = 0 and "the row space of J_c is the null space of D", as printed: not for masses 1, 2 and 3."""
    matrix = all_pairs(3).map_matrix().toarray()
    equal, unequal = (centre_matrix(masses).toarray() for masses in ([2.0, 2.0, 2.0], [1.0, 2.0, 3.0]))
    np.testing.assert_allclose(equal @ matrix.T, 0.0, atol=1e-15)
    assert np.max(subspace_angles(equal.T, null_space(matrix))) < 1e-7
    assert np.abs(unequal @ matrix.T).max() == pytest.approx(1.0 / 3.0)
    assert np.max(subspace_angles(unequal.T, null_space(matrix))) > 0.3


@few
@given(structure=networks, is_full=st.booleans())
def test_theorem_2_multipliers_do_no_work_in_any_basis(structure, is_full) -> None:
    pairs = all_pairs(len(structure.node_names)) if is_full else connected_pairs(structure)
    cycles, orthonormal = cycle_matrix(pairs), orthonormal_basis(pairs)
    rates = pairs.distances(np.random.default_rng(1).normal(size=(pairs.count, 3)))
    np.testing.assert_allclose(cycles.T @ rates, 0.0, atol=1e-13)
    np.testing.assert_allclose(orthonormal.T @ rates, 0.0, atol=1e-12)
    assert set(np.unique(cycles.data)) <= {-1.0, 1.0}
    assert cycles.shape == orthonormal.shape == (len(pairs), len(pairs) - pairs.count + 1)
    if cycles.shape[1]:
        assert np.linalg.matrix_rank(np.hstack((cycles.toarray(), orthonormal)), tol=1e-9) == cycles.shape[1]


@few
@given(structure=networks)
def test_theorem_3_the_constrained_inverse_solves_the_equations(structure) -> None:
    """D^T H_delta H* f = D^T f (4.7), H = D^T H_delta D + J_c^T M J_c (4.1), and both orders say the same."""
    masses = structure.lumped_masses()
    pairs = all_pairs(masses.size)
    matrix, inertia = pairs.incidence.toarray(), np.diag(pair_masses(pairs, masses))
    inverse = inverse_matrix(pairs, masses, dense=True)
    np.testing.assert_allclose(matrix.T @ inertia @ inverse, matrix.T, atol=1e-12)
    centre = masses / masses.sum()
    whole = matrix.T @ inertia @ matrix + masses.sum() * np.outer(centre, centre)
    np.testing.assert_allclose(whole, np.diag(masses), atol=1e-12)
    free = null_space(orthonormal_basis(pairs).T)  # columns that span those of D
    constrained = free @ np.linalg.solve(free.T @ inertia @ free, free.T)
    np.testing.assert_allclose(inverse, constrained, atol=1e-9)
    forces = np.random.default_rng(0).normal(size=(len(pairs), 3))
    np.testing.assert_allclose(apply_inverse(pairs, 1.0 / masses, forces), inverse @ forces, atol=1e-11)
    np.testing.assert_allclose(inverse_matrix(pairs, masses).toarray(), inverse, atol=1e-12)


def test_the_constrained_inverse_is_no_pseudo_inverse() -> None:
    """With masses 1, 2 and 3 and with equal ones alike: H_delta is regular, its inverse diagonal, H* is not."""
    for masses in ([1.0, 2.0, 3.0], [1.0, 1.0, 1.0]):
        pairs = all_pairs(3)
        pseudo = np.linalg.pinv(np.diag(pair_masses(pairs, masses)))
        assert np.abs(pseudo - inverse_matrix(pairs, masses, dense=True)).max() > 0.5


def test_the_orders_are_those_printed_for_three_nodes() -> None:
    pairs = all_pairs(3)
    digits = np.array([[121, 122, 123], [131, 132, 133], [231, 232, 233]])
    assert digits.ravel()[pairs.vector_order("uvec123")].tolist() == [121, 131, 231, 122, 132, 232, 123, 133, 233]
    assert digits.ravel()[pairs.vector_order("uvec321")].tolist() == [121, 122, 123, 131, 132, 133, 231, 232, 233]
    four = all_pairs(4)
    names = np.repeat([12, 13, 14, 23, 24, 34], 3).reshape(6, 3)
    assert names.ravel()[four.vector_order("uvec123")][:6].tolist() == [12, 13, 23, 14, 24, 34]
    with pytest.raises(TensegrityError, match="uvec123"):
        pairs.vector_order("uvec132")


@few
@given(structure=networks, order=st.sampled_from(ORDERS), is_full=st.booleans())
def test_positions_come_back_from_distances_and_centre(structure, order, is_full) -> None:
    pairs = all_pairs(len(structure.node_names)) if is_full else connected_pairs(structure)
    masses, nodes = structure.lumped_masses(), structure.nodes
    vector = pairs.map_matrix(order) @ nodes.ravel()
    delta = pairs.distances(nodes)
    np.testing.assert_array_equal(delta.ravel()[pairs.vector_order(order)], vector)
    centre = centre_matrix(masses) @ nodes.ravel()
    np.testing.assert_allclose(pairs.positions(delta, centre, masses), nodes, atol=1e-12)


@few
@given(structure=networks)
def test_all_representations_accelerate_alike(structure) -> None:
    full = NodeDistanceModel(structure, all_pairs(len(structure.node_names)))
    sparse = NodeDistanceModel(structure)
    rest = structure.rest_lengths
    by_positions = full.pairs.gathered(full.elasticity.forces(full.pairs.distances(structure.nodes), rest))
    expected = full.pairs.distances(by_positions / full.masses[:, None])
    delta, few_delta = full.pairs.distances(structure.nodes), sparse.pairs.distances(structure.nodes)
    np.testing.assert_allclose(full.accelerations(delta, rest), expected, atol=1e-9)
    np.testing.assert_allclose(full.accelerations_by_multipliers(delta, rest), expected, atol=1e-7)
    full.use_basis(cycle_matrix(full.pairs).toarray())
    np.testing.assert_allclose(full.accelerations_by_multipliers(delta, rest), expected, atol=1e-7)
    rows = [full.pairs.ends.tolist().index(pair) for pair in sparse.pairs.ends.tolist()]
    np.testing.assert_allclose(sparse.accelerations(few_delta, rest), expected[rows], atol=1e-9)


@few
@given(structure=networks)
def test_derivatives_of_forces_are_their_differences_and_nothing_where_slack(structure) -> None:
    model = NodeDistanceModel(structure)
    delta, rest, h = model.pairs.distances(structure.nodes), structure.rest_lengths, 1e-6
    blocks, columns = model.elasticity.jacobian(delta, rest), model.elasticity.control_jacobian(delta, rest)
    for a in range(3):
        up, down = (model.elasticity.forces(delta + side * h * EYE[a], rest) for side in (1, -1))
        np.testing.assert_allclose(blocks[:, :, a], (up - down) / (2 * h), atol=1e-4)
    up, down = (model.elasticity.forces(delta, rest + side * h) for side in (1, -1))
    np.testing.assert_allclose(columns, ((up - down) / (2 * h))[model.elasticity.rows], atol=1e-4)
    slack = model.elasticity.pulls_only & (model.elasticity.lengths(delta) < rest)
    assert not columns[slack].any() and not blocks[model.elasticity.rows[slack]].any()


@pytest.mark.parametrize("pairs", ["all", "connected"])
def test_distances_and_positions_move_within_1e_9(pairs: str) -> None:
    structure = network(4, 6)
    model = NodeDistanceModel(structure, all_pairs(6) if pairs == "all" else None)
    speed = 0.3 * np.random.default_rng(2).normal(size=(6, 3))
    methods = ("applied", "multipliers") if pairs == "all" else ("applied",)
    _, nodes = model.simulate_positions(structure.nodes, speed, 0.1, points=3)
    for method in methods:
        motion = model.simulate(structure.nodes, speed, 0.1, method=method, points=3)
        np.testing.assert_allclose(motion.nodes, nodes, atol=1e-9)


def test_the_simulator_of_node_positions_says_the_same() -> None:
    """Another code altogether: RK4 over compiled forces."""
    structure = replace(network(4, 6), gravity=np.array([0.0, 0.0, -9.80665]))
    speed = 0.2 * np.random.default_rng(3).normal(size=(6, 3))
    simulation = Simulation(structure, 1e-4, "rk4", rigid_bars=False, start=structure.nodes)
    simulation.set_motion(speed)
    simulation.advance(1000)
    motion = NodeDistanceModel(structure).simulate(structure.nodes, speed, 0.1, points=2)
    np.testing.assert_allclose(motion.nodes[-1], simulation.state.nodes, atol=1e-8)


@few
@given(structure=networks, seed=st.integers(0, 99))
def test_sorted_coordinates_put_driven_pairs_first_and_linearise_the_motion(structure, seed) -> None:
    draw = np.random.default_rng(seed)
    driven = draw.permutation(len(structure.kinds))[:2]
    model, rest = NodeDistanceModel(structure, all_pairs(len(structure.node_names))), structure.rest_lengths
    ordered = SortedCoordinates(model, driven)
    point = ordered.linearise(structure.nodes, rest)
    sides = np.sort(structure.members[driven], axis=1)
    np.testing.assert_array_equal(np.sort(ordered.pairs.ends[: len(driven)], axis=1), sides)
    assert point.numbers == 6 * len(ordered.joined) + 3 * len(driven)
    step, turn = 1e-6 * draw.normal(size=structure.nodes.shape), 1e-6 * draw.normal(size=len(driven))
    changed = np.array(rest)
    changed[driven] += turn
    exact = model.accelerations(model.pairs.distances(structure.nodes + step), changed)[ordered.order]
    line = ordered.accelerations(point, ordered.pairs.distances(step), turn)
    np.testing.assert_allclose(line, exact, atol=1e-6)


def test_what_cannot_be_is_refused_by_name() -> None:
    structure = network(0, 4)
    with pytest.raises(TensegrityError, match="node n2 is fixed"):
        NodeDistanceModel(replace(structure, fixed=np.array([False, False, True, False])))
    with pytest.raises(TensegrityError, match="node n0 has no mass"):
        NodeDistanceModel(replace(structure, node_masses=np.array([0.0, 1.0, 1.0, 1.0])))
    with pytest.raises(TensegrityError, match="ground"):
        NodeDistanceModel(load_robot("six_bar").structure)
    with pytest.raises(TensegrityError, match="connected_pairs"):
        all_pairs(1000)
    rows = [("a", "bar", "p", "q", 1.0, 1.0), ("b", "bar", "r", "s", 1.0, 1.0)]
    loose = make_structure(
        {"p": (0, 0, 0), "q": (1, 0, 0), "r": (0, 3, 0), "s": (1, 3, 0)}, rows, node_masses=dict.fromkeys("pqrs", 1.0)
    )
    with pytest.raises(TensegrityError, match="2 parts"):
        NodeDistanceModel(loose)
    with pytest.raises(TensegrityError, match="diagonal"):
        pair_masses(connected_pairs(network(1, 7)), np.ones(7))
