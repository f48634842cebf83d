"""Self-stress, mechanisms, stability and tension-only feasibility, on structures whose answers are known."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_dynamics import forward_kinematics, load_robot, make_structure
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.structures.analysis.feasible_self_stress import tension_only
from tensegrity_dynamics.structures.analysis.finite_mechanisms import find_free_motion
from tensegrity_dynamics.structures.analysis.prestress import analyze_prestress
from tensegrity_dynamics.structures.form_finding.force_density import (
    equilibrium_matrix,
    moving_members,
    rigid_motions,
    stress_matrix,
)
from tensegrity_tools.output import plain

# Six bars of length 1 in three parallel pairs, half a length apart (003, sections 3.3.2 and 3.1, corrected).
SIX_BAR_NODES = np.array(
    [
        [0.5, 0, 0.25], [-0.5, 0, 0.25], [-0.5, 0, -0.25], [0.5, 0, -0.25],
        [0.25, 0.5, 0], [0.25, -0.5, 0], [-0.25, -0.5, 0], [-0.25, 0.5, 0],
        [0, 0.25, 0.5], [0, -0.25, 0.5], [0, -0.25, -0.5], [0, 0.25, -0.5],
    ]
)  # fmt: skip
SIX_BARS = ((1, 2), (4, 3), (5, 6), (8, 7), (9, 12), (10, 11))
SIX_BAR_CABLES = (
    (1, 5), (1, 6), (1, 9), (1, 10), (2, 7), (2, 8), (2, 9), (2, 10), (3, 7), (3, 8), (3, 11), (3, 12),
    (4, 5), (4, 6), (4, 11), (4, 12), (5, 9), (5, 12), (6, 10), (6, 11), (7, 10), (7, 11), (8, 9), (8, 12),
)  # fmt: skip


def six_bar(pull: float = 0.98):
    """The six-bar structure with cables that are shorter than their place by the factor `pull`."""
    cable = np.sqrt(3.0 / 8.0)
    return make_structure(
        {f"n{i + 1}": position for i, position in enumerate(SIX_BAR_NODES)},
        [(f"bar_{k}", "bar", f"n{i}", f"n{j}", 1e5, 1.0) for k, (i, j) in enumerate(SIX_BARS)]
        + [(f"cable_{k}", "tendon", f"n{i}", f"n{j}", 1e3, pull * cable) for k, (i, j) in enumerate(SIX_BAR_CABLES)],
    )


def loose(structure):
    """The same structure with nothing fixed."""
    return replace(structure, fixed=np.zeros_like(structure.fixed))


def cross(edges: str = "tendon", diagonals: str = "bar", pull: float = 0.99):
    """A planar square with its diagonals, nothing fixed."""
    nodes = {"a": (0, 0, 0), "b": (1, 0, 0), "c": (1, 1, 0), "d": (0, 1, 0)}
    rows = [
        (f"edge_{i}{j}", edges, i, j, 1000.0, pull if edges == "tendon" else 1.0) for i, j in ("ab", "bc", "cd", "da")
    ]
    length = np.sqrt(2.0)
    rest = pull * length if diagonals == "tendon" else length
    return make_structure(
        nodes, [*rows, ("ac", diagonals, "a", "c", 1000.0, rest), ("bd", diagonals, "b", "d", 1000.0, rest)]
    )


def string(pull: float = 1.0, kind: str = "tendon"):
    """A node on a straight line between two walls."""
    return make_structure(
        {"left": (-1, 0, 0), "middle": (0, 0, 0), "right": (1, 0, 0)},
        [("first", kind, "left", "middle", 100.0, pull), ("second", kind, "middle", "right", 100.0, pull)],
        fixed=["left", "right"],
    )


def four_prism(bar: float):
    robot = load_robot("four_prism")
    return replace(robot, model=robot.structure.with_rest_lengths({f"bar_{i}": bar for i in (1, 2, 3, 4)}))


# -- known structures -------------------------------------------------------------------------------------------------


def test_the_prism_has_one_self_stress_and_one_mechanism_that_it_stiffens() -> None:
    analysis = analyze_prestress(load_robot("three_prism"))
    assert (analysis.self_stress_count, analysis.mechanism_count, analysis.rigid) == (1, 1, 0)
    assert analysis.finite_count == 0 and analysis.prestressed and analysis.stable
    # all motion of the soft mode is the mechanism: its stiffness is the softest there is
    assert analysis.mechanism_stiffness[0] == pytest.approx(analysis.softest, rel=1e-3)
    assert "turns about z" in analysis.softest_motion
    assert analysis.verdict.startswith("prestressed")


def test_the_prism_with_nothing_fixed_has_six_rigid_motions_and_the_same_answer() -> None:
    structure = load_robot("three_prism").structure
    analysis = analyze_prestress(loose(structure))
    assert (analysis.members, analysis.rigid) == (12, 6)
    assert (analysis.self_stress_count, analysis.mechanism_count, analysis.finite_count) == (1, 1, 0)
    assert analysis.prestressed


def test_the_six_bar_structure_has_one_self_stress_with_equal_tension_in_every_cable() -> None:
    analysis = analyze_prestress(six_bar())
    assert (analysis.self_stress_count, analysis.mechanism_count, analysis.rigid) == (1, 1, 6)
    assert analysis.feasible and analysis.feasible_stress is not None
    np.testing.assert_allclose(analysis.feasible_stress[6:], 1.0, rtol=1e-6)
    np.testing.assert_allclose(analysis.feasible_stress[:6], -np.sqrt(6.0), rtol=1e-6)
    assert analysis.prestressed and analysis.mechanism_stiffness[0] > 0.0
    np.testing.assert_allclose(analysis.tensions[6:], analysis.tensions[6], rtol=1e-9)


def test_the_planar_cross_is_stiff_out_of_its_plane_only_by_prestress() -> None:
    analysis = analyze_prestress(cross())
    assert (analysis.self_stress_count, analysis.mechanism_count, analysis.rigid) == (1, 1, 6)
    motion = analysis.mechanisms[0]
    np.testing.assert_allclose(motion[:, :2], 0.0, atol=1e-6)  # it folds along a diagonal
    np.testing.assert_allclose(np.abs(motion[:, 2]), 0.5, atol=1e-6)
    # force density q in the edges and -q in the diagonals: u'Du = 4 q at u = (1, -1, 1, -1)/2
    edge = analysis.tensions[0] / np.linalg.norm(analysis.nodes[0] - analysis.nodes[1])
    assert analysis.mechanism_stiffness[0] == pytest.approx(4.0 * edge, rel=1e-6)
    assert analysis.prestressed


def test_the_cross_with_ties_across_and_bars_around_folds_up() -> None:
    structure = cross("bar", "tendon")
    tied = analyze_prestress(structure, _balanced(structure))
    assert tied.mechanism_stiffness[0] < 0.0 and not tied.stable and not tied.prestressed
    assert "unstable" in tied.reason


def _balanced(structure) -> np.ndarray:
    """The planar balance of a cross, found by shrinking it: edges and diagonals are similar at every size."""
    nodes, low, high = structure.nodes, 0.5, 1.5
    for _ in range(80):
        middle = 0.5 * (low + high)
        pulls = structure.stiffness * (
            middle * np.linalg.norm(nodes[structure.members[:, 0]] - nodes[structure.members[:, 1]], axis=1)
            - structure.rest_lengths
        )
        inward = pulls[0] * 1.0 + pulls[3] * 0.0 + pulls[4] / np.sqrt(2.0)  # x component at corner a
        low, high = (low, middle) if inward > 0.0 else (middle, high)
    return middle * nodes


def test_a_tripod_has_neither_self_stress_nor_mechanism() -> None:
    feet = {f"foot_{i}": (np.cos(a), np.sin(a), 0.0) for i, a in enumerate((0.0, 2.1, 4.2))}
    rows = [(f"leg_{i}", "bar", f"foot_{i}", "top", 1000.0, np.sqrt(2.0)) for i in range(3)]
    tripod = make_structure({**feet, "top": (0, 0, 1)}, rows, fixed=tuple(feet))
    analysis = analyze_prestress(tripod)
    assert (analysis.self_stress_count, analysis.mechanism_count) == (0, 0)
    assert analysis.stable and not analysis.prestressed and "no self-stress" in analysis.reason


def test_a_tight_string_is_stiff_across_by_its_tension_over_its_lengths() -> None:
    analysis = analyze_prestress(string(0.9))
    assert (analysis.self_stress_count, analysis.mechanism_count) == (1, 2)
    np.testing.assert_allclose(analysis.mechanism_stiffness, 2.0 * 10.0, rtol=1e-9)  # 10 N over 1 m on either side
    assert analysis.prestressed and "middle moves most" in analysis.softest_motion


def test_a_straight_pair_of_bars_without_force_moves_infinitesimally_but_not_freely() -> None:
    analysis = analyze_prestress(string(1.0, "bar"))
    assert analysis.mechanism_count == 2 and not analysis.stable
    assert analysis.finite_count == 0 and analysis.free_motion is None
    assert not analysis.prestressed


def test_a_chain_of_bars_moves_freely_in_as_many_ways_as_it_has_mechanisms() -> None:
    chain = make_structure(
        {"a": (0, 0, 0), "b": (0.1, 0, 1), "c": (1.1, 0, 1.2), "d": (1, 0, 0)},
        [("ab", "bar", "a", "b", 100.0, 1.0), ("bc", "bar", "b", "c", 100.0, 1.0), ("cd", "bar", "c", "d", 100.0, 1.2)],
        fixed=["a", "d"],
    )
    analysis = analyze_prestress(chain)
    # besides turning as a whole about the line through its fixed ends
    assert analysis.rigid == 1 and analysis.mechanism_count == 2 and analysis.finite_count == 2
    assert not analysis.prestressed and "continuum of shapes" in analysis.reason


@pytest.mark.long
def test_the_four_prism_as_printed_is_not_prestressed_and_shows_its_free_motion() -> None:
    analysis = analyze_prestress(four_prism(1.5))
    assert not analysis.prestressed and analysis.verdict.startswith("not prestressed")
    motion = analysis.free_motion
    assert motion is not None and analysis.finite_count >= 1 and motion.travel > 0.01
    structure = analysis.structure
    lengths = np.linalg.norm(motion.nodes[structure.members[:, 0]] - motion.nodes[structure.members[:, 1]], axis=1)
    bars = ~structure.unilateral
    np.testing.assert_allclose(lengths[bars], 1.5, atol=1e-8)
    assert np.all(lengths[~bars] <= structure.rest_lengths[~bars] + 1e-8)
    # with its bars leaning further, the platform sinks and turns
    assert "turns about z" in analysis.reason and "continuum of shapes" in analysis.reason
    # the printed lengths stop short of the critical ones, which have a closed form
    assert analysis.bar_factor == pytest.approx(1.55377 / 1.5, abs=5e-6)
    assert "1.5538 m" in analysis.reason


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(4))
def test_the_four_prism_is_not_prestressed_from_any_start(seed: int) -> None:
    robot = four_prism(1.5)
    start = robot.structure.nodes + np.random.default_rng(seed).uniform(-0.1, 0.1, robot.structure.nodes.shape)
    analysis = analyze_prestress(robot, forward_kinematics(robot, start=start))
    assert not analysis.prestressed and not analysis.stable and analysis.finite_count >= 1


def test_the_four_prism_with_longer_bars_is_prestressed() -> None:
    analysis = analyze_prestress(four_prism(1.6))
    assert analysis.prestressed and analysis.stable and analysis.slack == ()
    assert analysis.self_stress_count == 1 and analysis.finite_count == 0 and analysis.bar_factor is None
    assert np.all(analysis.tensions[analysis.structure.unilateral][4:] > 1.0)


def test_the_platform_is_prestressed_whatever_its_weight_does_to_the_shape() -> None:
    robot = load_robot("tensebot")
    loaded = forward_kinematics(robot)
    analysis = analyze_prestress(robot, loaded)
    assert analysis.prestressed and analysis.self_stress_count == 1
    # the shape without weight, not the one that was passed
    assert np.abs(analysis.nodes - loaded.nodes).max() > 1e-3
    assert analyze_prestress(robot).softest == pytest.approx(analysis.softest, rel=1e-6)


def test_shorter_bars_are_called_slack_and_not_prestressed() -> None:
    structure = loose(load_robot("three_prism").structure)
    analysis = analyze_prestress(structure.with_rest_lengths({f"bar_{i}": 1.3 for i in (1, 2, 3)}))
    assert not analysis.prestressed and analysis.slack and analysis.free_motion is not None


# -- tension only -----------------------------------------------------------------------------------------------------


def test_two_tendons_to_the_same_side_clash() -> None:
    both = make_structure(
        {"node": (0, 0, 0), "near": (1, 0, 0), "far": (2, 0, 0)},
        [("short", "tendon", "node", "near", 100.0, 1.0), ("long", "tendon", "node", "far", 100.0, 2.0)],
        fixed=["near", "far"],
    )
    analysis = analyze_prestress(both, both.nodes)
    assert not analysis.feasible and set(analysis.clash) == {"short", "long"}


def test_a_tendon_that_no_self_stress_reaches_is_named_alone() -> None:
    structure = make_structure(
        {"left": (-1, 0, 0), "middle": (0, 0, 0), "right": (1, 0, 0), "above": (0, 0, 1)},
        [(f"to_{end}", "tendon", "middle", end, 100.0, 1.0) for end in ("left", "right", "above")],
        fixed=["left", "right", "above"],
    )
    analysis = analyze_prestress(structure, structure.nodes)
    assert analysis.clash == ("to_above",)
    assert any("to_above carries nothing" in text for _, text in analysis.rows())


@given(seed=st.integers(0, 10_000), members=st.integers(2, 9), states=st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_either_all_tendons_pull_or_the_named_ones_never_do_together(seed: int, members: int, states: int) -> None:
    generator = np.random.default_rng(seed)
    basis = np.linalg.qr(generator.normal(size=(members, min(states, members))))[0]
    unilateral = generator.random(members) < 0.8
    answer = tension_only(basis, unilateral)
    if answer.feasible:
        assert answer.tensions is not None
        assert np.all(answer.tensions[unilateral] >= 1.0 - 1e-6)
        assert np.linalg.matrix_rank(np.column_stack((basis, answer.tensions)), tol=1e-6) == basis.shape[1]
    else:
        rows = list(answer.clash)
        assert rows and unilateral[rows].all()
        tensions = basis @ generator.normal(size=(basis.shape[1], 2000))
        assert not np.any(np.all(tensions[rows] > 1e-9, axis=0))


# -- laws -------------------------------------------------------------------------------------------------------------


@st.composite
def structures(draw):
    """Small random structures, some with fixed nodes, some planar (where self-stress and mechanisms abound)."""
    generator = np.random.default_rng(draw(st.integers(0, 100_000)))
    count = draw(st.integers(3, 6))
    nodes = generator.normal(size=(count, 3))
    if draw(st.booleans()):
        nodes[:, 2] = 0.0
    distances = np.linalg.norm(nodes[:, None] - nodes, axis=2)
    pairs = list(combinations(range(count), 2))
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=2, unique=True))
    fixed = draw(st.integers(0, count - 1))
    rows = [
        (f"m{i}{j}", draw(st.sampled_from(("bar", "tendon"))), f"n{i}", f"n{j}", 100.0, float(distances[i, j]))
        for i, j in chosen
    ]
    return make_structure(
        {f"n{i}": position for i, position in enumerate(nodes)}, rows, fixed=[f"n{i}" for i in range(fixed)]
    )


@given(structure=structures())
@settings(max_examples=25, deadline=None)
def test_self_stress_balances_mechanisms_do_not_stretch_and_the_counts_add_up(structure) -> None:
    moving = moving_members(structure)
    matrix = equilibrium_matrix(structure, structure.nodes)
    analysis = analyze_prestress(structure, structure.nodes)
    states = analysis.self_stress[moving]
    np.testing.assert_allclose(matrix @ states, 0.0, atol=1e-5)
    np.testing.assert_allclose(states.T @ states, np.eye(states.shape[1]), atol=1e-9)
    for motion in analysis.mechanisms:
        step = 1e-4
        ends = structure.members

        def lengths(nodes: np.ndarray, ends: np.ndarray = ends) -> np.ndarray:
            return np.linalg.norm(nodes[ends[:, 0]] - nodes[ends[:, 1]], axis=1)

        nodes = structure.nodes
        change = (lengths(nodes + step * motion) - lengths(nodes - step * motion)) / (2.0 * step)
        np.testing.assert_allclose(change, 0.0, atol=1e-5)
        np.testing.assert_array_equal(motion[structure.fixed], 0.0)
    # Maxwell and Calladine: s - k = members - (free coordinates - rigid motions)
    surplus = analysis.self_stress_count - analysis.mechanism_count
    assert surplus == analysis.members - (analysis.freedoms - analysis.rigid)
    assert analysis.rank == np.linalg.matrix_rank(matrix, tol=1e-6 * max(np.linalg.norm(matrix, 2), 1e-300))
    motion = analysis.free_motion
    if motion is not None:
        now = lengths_of(structure, motion.nodes)[moving]
        was = lengths_of(structure, structure.nodes)[moving]
        bars = ~structure.unilateral[moving]
        np.testing.assert_allclose(now[bars], was[bars], atol=1e-7)
        assert np.all(now <= was + 1e-7) and motion.travel > 1e-3
    json.dumps(plain(analysis.figures()))
    assert str(analysis).startswith("verdict: ")


def lengths_of(structure, nodes: np.ndarray) -> np.ndarray:
    return np.linalg.norm(nodes[structure.members[:, 0]] - nodes[structure.members[:, 1]], axis=1)


@given(structure=structures())
@settings(max_examples=60, deadline=None)
def test_rigid_motions_stretch_nothing_and_there_are_as_many_as_the_fixed_nodes_leave(structure) -> None:
    rigid = rigid_motions(structure, structure.nodes)
    matrix = equilibrium_matrix(structure, structure.nodes)
    np.testing.assert_allclose(matrix.T @ rigid, 0.0, atol=1e-9)
    left = {0: 6, 1: 3, 2: 1}.get(int(structure.fixed.sum()), 0)
    assert rigid.shape[1] == left


@given(seed=st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_product_forces_are_what_second_order_stretch_costs_under_tension(seed: int) -> None:
    # along a motion u the lengths grow by l2 h^2; the tensions' work on that is h^2/2 u'(D kron I)u on a mechanism
    analysis = analyze_prestress(six_bar())
    structure, u = analysis.structure, analysis.mechanisms[0]
    tensions = np.random.default_rng(seed).uniform(0.5, 2.0) * analysis.tensions
    lengths = lengths_of(structure, analysis.nodes)
    step = 1e-3
    ahead, back = (lengths_of(structure, analysis.nodes + sign * step * u) for sign in (1.0, -1.0))
    work = tensions @ (ahead + back - 2.0 * lengths) / step**2
    flat = u.ravel()[structure.free]
    assert flat @ stress_matrix(structure, tensions / lengths) @ flat == pytest.approx(work, rel=1e-3)


def test_free_motions_are_followed_as_far_as_asked() -> None:
    structure = four_prism(1.5).structure
    shape = forward_kinematics(structure)
    motion = find_free_motion(structure, shape.nodes, shape.tensions, force_scale=1e-5, distance=0.3)
    assert motion is not None and motion.travel > 0.1


def test_a_slack_tendon_lets_a_free_motion_go_until_it_is_taut() -> None:
    def pendulum(rest: float):
        return make_structure(
            {"wall": (0, 0, 0), "tip": (0, 0, 1), "side": (0, -1, 1)},
            [("rod", "bar", "wall", "tip", 100.0, 1.0), ("tie", "tendon", "side", "tip", 100.0, rest)],
            fixed=["wall", "side"],
        )

    away = np.zeros((1, 9))
    away[0, 3 + 1] = 1.0
    reached = {}
    for rest in (1.02, 2.0):
        structure = pendulum(rest)
        found = find_free_motion(
            structure, structure.nodes, np.zeros(2), force_scale=1e-6, distance=0.3, preferred=away
        )
        assert found is not None and found.dimension == 1  # besides turning about the line of the fixed nodes
        tip = found.nodes[1]
        assert np.linalg.norm(tip) == pytest.approx(1.0, abs=1e-8)
        assert np.linalg.norm(tip - found.nodes[2]) <= rest + 1e-8
        reached[rest] = tip[1]
    assert reached[2.0] == pytest.approx(0.3, abs=1e-6)  # straight away from the side
    assert reached[1.02] < 0.03  # the tie is taut before that: another motion was taken


# -- input ------------------------------------------------------------------------------------------------------------


def test_nodes_that_do_not_balance_are_called_so() -> None:
    structure = string(0.9)
    nodes = np.array(structure.nodes)
    nodes[1, 0] = 0.2
    analysis = analyze_prestress(structure, nodes)
    assert not analysis.prestressed and "do not balance" in analysis.reason


def test_bad_nodes_are_refused_by_name() -> None:
    structure = string(0.9)
    with pytest.raises(TensegrityError, match=r"expected \(3, 3\)"):
        analyze_prestress(structure, np.zeros((2, 3)))
    with pytest.raises(TensegrityError, match="middle is not finite"):
        analyze_prestress(structure, [[-1, 0, 0], [np.nan, 0, 0], [1, 0, 0]])
    with pytest.raises(TensegrityError, match="member first has length zero"):
        analyze_prestress(structure, [[-1, 0, 0], [-1, 0, 0], [1, 0, 0]])
