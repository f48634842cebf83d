"""Shape from lengths: analytic cases, laws, the figures of 001, and what happens with bad input."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tensegrity_dynamics import StructureEquilibriumSolver, forward_kinematics, load_robot, make_structure
from tensegrity_dynamics.errors import NoEquilibriumError, TensegrityError
from tensegrity_dynamics.numerics.rotations import matrix_from_vector
from tensegrity_dynamics.structures.energy import free_positions, member_tensions, stored_energy, tangent_stiffness
from tensegrity_dynamics.structures.form_finding.equilibrium_solver import MAX_DENSE_COORDINATES
from tensegrity_dynamics.structures.form_finding.force_density import null_space
from tensegrity_dynamics.structures.form_finding.rigid_bar_solver import bar_directions


def out_of_balance(shape, forces=None):
    """Largest force component on a free node, added up member by member in plain Python."""
    structure = shape.structure
    total = structure.weights() + structure.force_array(forces)
    for (i, j), tension in zip(structure.members, shape.tensions, strict=True):
        along = (shape.nodes[j] - shape.nodes[i]) / np.linalg.norm(shape.nodes[j] - shape.nodes[i])
        total[i] += tension * along
        total[j] -= tension * along
    return np.max(np.abs(total[~structure.fixed]))


def hanging(mass=2.0, stiffness=100.0):
    return make_structure(
        {"top": (0, 0, 0), "load": (0.1, 0.0, -0.8)},
        [("string", "tendon", "top", "load", stiffness, 1.0)],
        fixed=["top"], node_masses={"load": mass}, gravity=(0, 0, -9.81),
    )  # fmt: skip


def bar_with_two_strings(left=1.0, right=1.0):
    """The planar example of 001, figure 7: a bar of length 1 pulled by two strings, kept in its plane by two more."""
    nodes = {
        "foot": (0, 0, 0),
        "tip": (0.3, 0.05, 0.9),
        "a": (-1, 0, 0),
        "b": (1, 0, 0),
        "c": (0, -2, 0),
        "d": (0, 2, 0),
    }
    rows = [
        ("bar", "bar", "foot", "tip", 1e4, 1.0), ("left", "tendon", "a", "tip", 100.0, left),
        ("right", "tendon", "b", "tip", 100.0, right), ("near", "tendon", "c", "tip", 10.0, 1.0),
        ("far", "tendon", "d", "tip", 10.0, 1.0),
    ]  # fmt: skip
    return make_structure(nodes, rows, fixed=["foot", "a", "b", "c", "d"])


def lattice(size, seed=0):
    """A net of strings and light bars between fixed edges; nodes shifted at random."""
    random = np.random.default_rng(seed)
    nodes = {f"n{i}_{j}": (i + 0.2 * random.normal(), j + 0.2 * random.normal(), 0.1 * random.normal())
             for i in range(size) for j in range(size)}  # fmt: skip
    rows = []
    for i in range(size):
        for j in range(size):
            for di, dj in ((1, 0), (0, 1), (1, 1)):
                if i + di < size and j + dj < size:
                    kind = "tendon" if (di, dj) != (1, 1) else "bar"
                    rows.append(
                        (f"m{i}_{j}_{di}{dj}", kind, f"n{i}_{j}", f"n{i + di}_{j + dj}", 100.0, 0.9 * np.hypot(di, dj))
                    )
    edge = [name for name in nodes if {"0", str(size - 1)} & set(name[1:].split("_"))]
    return make_structure(nodes, rows, fixed=edge)


# -- analytic -----------------------------------------------------------------------------------------------------


def test_a_load_on_a_string_hangs_below_by_its_weight_over_the_stiffness():
    shape = forward_kinematics(hanging())
    np.testing.assert_allclose(shape.nodes[1], [0, 0, -1.0 - 2.0 * 9.81 / 100.0], atol=1e-9)
    assert shape.tensions[0] == pytest.approx(2.0 * 9.81, rel=1e-10)
    assert shape.stable
    # sideways it is a pendulum: tension over length
    assert shape.softest == pytest.approx(2.0 * 9.81 / (1.0 + 2.0 * 9.81 / 100.0), rel=1e-8)


def test_a_bar_between_equal_strings_stands_upright():
    shape = forward_kinematics(bar_with_two_strings())
    np.testing.assert_allclose(shape.nodes[1, :2], 0.0, atol=1e-10)
    assert shape.tensions[0] < 0.0


def test_a_shorter_string_pulls_the_bar_to_its_side():
    shape = forward_kinematics(bar_with_two_strings(left=0.8))
    assert shape.nodes[1, 0] < -0.02
    assert out_of_balance(shape) < 1e-8


def test_a_hanging_chain_carries_the_weight_below_each_link():
    rows = [(f"s{i}", "tendon", f"n{i}", f"n{i + 1}", 1e3, 0.1) for i in range(6)]
    nodes = {f"n{i}": (0.01 * i, 0.0, -0.1 * i) for i in range(7)}
    chain = make_structure(
        nodes, rows, fixed=["n0"], node_masses={f"n{i}": 0.5 for i in range(1, 7)}, gravity=(0, 0, -10)
    )
    shape = forward_kinematics(chain)
    np.testing.assert_allclose(shape.tensions, [5.0 * (6 - i) for i in range(6)], rtol=1e-9)


def test_slack_tendon_carries_no_force():
    structure = bar_with_two_strings(left=5.0)
    shape = forward_kinematics(structure, forces={"tip": (-1, 0, 0)})
    assert shape.tensions[structure.member("left")] == 0.0
    assert "left" in shape.slack


# -- the document -------------------------------------------------------------------------------------------------


def test_three_prism_stands_at_its_exact_twist():
    shape = forward_kinematics(load_robot("three_prism"))
    assert shape.residual < 1e-9
    np.testing.assert_allclose(shape.nodes[3:, 2], 0.9543, atol=5e-5)
    angles = np.degrees(np.arctan2(shape.nodes[3:, 1], shape.nodes[3:, 0]))
    np.testing.assert_allclose(angles, [30.0, -90.0, 150.0], atol=1e-6)  # node 1 started at 180: a twist of 150
    assert shape.stable
    assert shape.position_error < 1e-9


def test_all_three_methods_agree_on_the_three_prism():
    robot = load_robot("three_prism")
    newton = forward_kinematics(robot)
    for method in ("relaxation", "kinetic"):
        other = forward_kinematics(robot, method=method, tolerance=1e-9)
        np.testing.assert_allclose(other.nodes, newton.nodes, atol=1e-7)


@pytest.mark.parametrize("method", ["relaxation", "kinetic"])
def test_error_estimate_of_a_relaxation_stopped_early_covers_its_distance(method):
    robot = load_robot("three_prism")
    exact = forward_kinematics(robot).nodes
    early = forward_kinematics(robot, method=method, tolerance=1e-5)
    distance = np.linalg.norm(early.nodes - exact)
    assert 1e-5 < distance < early.position_error < 10 * distance


def test_the_printed_prism_is_off_by_what_residual_over_softest_stiffness_says():
    printed = np.array([[0.4981, 0.2920, 0.9555], [0.0038, -0.5774, 0.9555], [-0.5019, 0.2854, 0.9555]])
    robot = load_robot("three_prism")
    exact = forward_kinematics(robot)
    turn = np.degrees(np.arctan2(printed[0, 1], printed[0, 0])) - 30.0
    assert turn == pytest.approx(0.38, abs=0.01)
    nodes = np.vstack((exact.nodes[:3], printed))
    solver = StructureEquilibriumSolver(robot.structure)
    judged = solver.assess(nodes, robot.structure.rest_lengths, solver.total_forces(None, None), 0, "printed")
    # four printed digits leave strains of 5e-5: the residual is those of rounding, the estimate still sees the distance
    assert judged.position_error > np.linalg.norm(nodes - exact.nodes)


def test_four_prism_as_printed_has_a_motion_without_stiffness_and_stands_with_longer_bars():
    robot = load_robot("four_prism")
    loose = forward_kinematics(robot)
    assert not loose.stable
    assert abs(loose.softest) < 1e-6
    assert np.max(np.abs(loose.tensions)) < 1e-6
    firm = forward_kinematics(robot, {f"bar_{i}": 1.6 for i in (1, 2, 3, 4)})
    assert firm.stable
    assert firm.softest > 1.0


def test_weightless_tensebot_has_the_printed_height():
    robot = load_robot("tensebot")
    shape = forward_kinematics(robot, gravity=(0, 0, 0))
    np.testing.assert_allclose(shape.pose[0] / 0.0254, [0, 0, 7.5324], atol=5e-5)


def test_tensebot_is_found_from_every_noisy_start():
    robot = load_robot("tensebot")
    solver = StructureEquilibriumSolver(robot.structure, output=robot.output)
    home = solver.solve()
    random = np.random.default_rng(7)
    most = 0
    for _ in range(50):
        start = home.nodes + 0.0254 * random.uniform(-2, 2, size=home.nodes.shape)
        shape = solver.solve(start=start)
        assert shape.stable
        most = max(most, shape.iterations)
        np.testing.assert_allclose(shape.pose[0], home.pose[0], atol=1e-7)
    assert most <= 40


# -- laws ---------------------------------------------------------------------------------------------------------


def random_structure(seed):
    """A few fixed nodes all around, a few free ones within, bars and strings at random between them."""
    random = np.random.default_rng(seed)
    outer = 3.0 * random.normal(size=(6, 3))
    inner = 0.7 * random.normal(size=(4, 3))
    nodes = {f"o{i}": p for i, p in enumerate(outer)} | {f"i{i}": p for i, p in enumerate(inner)}
    names, rows = list(nodes), []
    for i in range(4):
        for j in range(6 + i):
            kind = random.choice(["bar", "tendon", "tendon", "spring"])
            distance = float(np.linalg.norm(nodes[f"i{i}"] - nodes[names[j]]))
            rows.append(
                (f"m{len(rows)}", kind, f"i{i}", names[j], random.uniform(10, 100), distance * random.uniform(0.5, 1.1))
            )
    return make_structure(
        nodes, rows, fixed=names[:6], node_masses={f"i{i}": 0.3 for i in range(4)}, gravity=(0, 0, -9.81)
    )


@given(st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_forces_balance_and_energy_is_least(seed):
    structure = random_structure(seed)
    shape = forward_kinematics(structure)
    assert shape.stable
    assert out_of_balance(shape) < 1e-8
    random = np.random.default_rng(seed)

    def energy(nodes):
        elastic = stored_energy(nodes, structure.members, structure.stiffness, structure.rest_lengths, structure.laws)
        return elastic - np.sum(structure.weights() * nodes)

    least = energy(shape.nodes)
    for _ in range(10):
        moved = shape.nodes.copy()
        moved[~structure.fixed] += 1e-4 * random.normal(size=moved[~structure.fixed].shape)
        assert energy(moved) > least


@given(st.integers(0, 1000), st.lists(st.floats(-3, 3), min_size=3, max_size=3))
@settings(max_examples=25, deadline=None)
def test_turning_everything_turns_the_shape(seed, turn):
    structure = random_structure(seed)
    rotation = matrix_from_vector(turn)
    shape = forward_kinematics(structure, gravity=(0, 0, 0))
    turned = make_structure(
        {n: rotation @ p + [1, 2, 3] for n, p in zip(structure.node_names, structure.nodes, strict=True)},
        [(n, k, structure.node_names[i], structure.node_names[j], s, r)
         for n, k, (i, j), s, r in zip(structure.member_names, structure.kinds, structure.members,
                                       structure.stiffness, structure.rest_lengths, strict=True)],
        fixed=structure.node_names[:6],
    )  # fmt: skip
    other = forward_kinematics(turned, start=shape.nodes @ rotation.T + [1, 2, 3])
    # where a motion without stiffness remains the shape is not one position, and rounding decides which
    assume(shape.stable and other.stable)
    np.testing.assert_allclose(other.nodes, shape.nodes @ rotation.T + [1, 2, 3], atol=1e-7)
    assert other.softest == pytest.approx(shape.softest, rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_tangent_stiffness_is_the_second_derivative_of_the_energy(seed):
    structure = random_structure(seed)
    nodes, count = np.array(structure.nodes), structure.free.size
    lengths, tensions = np.zeros(len(structure.members)), np.zeros(len(structure.members))

    def pull(flat):
        position = nodes.copy()
        position.ravel()[structure.free] = flat
        member_tensions(
            position,
            structure.members,
            structure.stiffness,
            structure.rest_lengths,
            structure.laws,
            lengths,
            tensions,
        )
        total = np.zeros_like(position)
        for (i, j), t, length in zip(structure.members, tensions, lengths, strict=True):
            total[i] += t * (position[i] - position[j]) / length
            total[j] -= t * (position[i] - position[j]) / length
        return total.ravel()[structure.free]

    flat = nodes.ravel()[structure.free].copy()
    pull(flat)
    matrix = np.zeros((count, count))
    tangent_stiffness(
        nodes, structure.members, structure.stiffness, structure.laws, lengths, tensions, structure.rest_lengths,
        free_positions(structure.supports), matrix,
    )  # fmt: skip
    for c, h in enumerate(1e-6 * np.eye(count)):
        np.testing.assert_allclose(matrix[:, c], (pull(flat + h) - pull(flat - h)) / 2e-6, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("rigid_bars", [False, True])
def test_softest_stiffness_is_the_least_eigenvalue(rigid_bars):
    robot = load_robot("tensebot")
    solver = StructureEquilibriumSolver(robot.structure, rigid_bars=rigid_bars)
    shape = solver.solve()
    structure = robot.structure
    matrix = np.zeros((structure.free.size, structure.free.size))
    tangent_stiffness(
        shape.nodes, structure.members, structure.stiffness, structure.laws, shape.lengths, shape.tensions,
        structure.rest_lengths, free_positions(structure.supports), matrix,
    )  # fmt: skip
    if rigid_bars:
        normals = bar_directions(shape.nodes, structure, np.flatnonzero(~structure.unilateral))
        allowed = null_space(normals, 1e-9)
        matrix = allowed.T @ matrix @ allowed
    assert shape.softest == pytest.approx(np.linalg.eigvalsh(matrix)[0], rel=1e-7)


# -- rigid bars ---------------------------------------------------------------------------------------------------


def test_rigid_bars_keep_their_length_and_forces_balance():
    robot = load_robot("tensebot")
    shape = forward_kinematics(robot, rigid_bars=True)
    structure = robot.structure
    bars = ~structure.unilateral & ~structure.fixed[structure.members].all(axis=1)
    np.testing.assert_allclose(shape.lengths[bars], structure.rest_lengths[bars], rtol=1e-13)
    assert out_of_balance(shape) < 1e-7


def test_rigid_bars_are_the_limit_of_stiff_bars():
    robot = load_robot("three_prism")
    rigid = forward_kinematics(robot, rigid_bars=True)
    from dataclasses import replace

    gaps = []
    for factor in (10.0, 100.0):
        structure = robot.structure
        stiff = np.where(structure.unilateral, 1.0, factor) * structure.stiffness
        shape = forward_kinematics(replace(structure, stiffness=stiff), start=rigid.nodes)
        gaps.append(np.max(np.abs(shape.nodes - rigid.nodes)))
    assert gaps[1] < 0.15 * gaps[0] < 1e-4


def test_warm_and_cold_starts_agree():
    robot = load_robot("tensebot")
    for rigid_bars in (False, True):
        solver = StructureEquilibriumSolver(robot.structure, rigid_bars=rigid_bars)
        home = solver.solve()
        moved = np.array(robot.structure.rest_lengths)
        moved[robot.structure.member("draw_1")] *= 0.97
        warm, cold = solver.solve(moved, start=home), solver.solve(moved)
        np.testing.assert_allclose(warm.nodes, cold.nodes, atol=1e-9)
        assert warm.iterations < cold.iterations


# -- large --------------------------------------------------------------------------------------------------------


def test_sparse_and_dense_solvers_agree():
    structure = lattice(9)
    assert structure.free.size <= MAX_DENSE_COORDINATES
    dense = StructureEquilibriumSolver(structure).solve()
    import tensegrity_dynamics.structures.form_finding.equilibrium_solver as module

    limit = module.MAX_DENSE_COORDINATES
    module.MAX_DENSE_COORDINATES = 10
    try:
        sparse = StructureEquilibriumSolver(structure).solve()
    finally:
        module.MAX_DENSE_COORDINATES = limit
    np.testing.assert_allclose(sparse.nodes, dense.nodes, atol=1e-8)
    assert sparse.softest == pytest.approx(dense.softest, rel=1e-6)
    assert sparse.stable == dense.stable


def test_a_large_lattice_comes_to_rest():
    structure = lattice(25)
    assert structure.free.size > MAX_DENSE_COORDINATES
    shape = forward_kinematics(structure)
    assert out_of_balance(shape) < 1e-9
    assert shape.stable


# -- bad input ----------------------------------------------------------------------------------------------------


def test_coincident_nodes_are_named():
    structure = hanging()
    with pytest.raises(TensegrityError, match="top and load of member string"):
        forward_kinematics(structure, start=np.zeros((2, 3)))


def test_numbers_that_are_not_finite_are_refused_by_name():
    structure = hanging()
    with pytest.raises(TensegrityError, match="node load"):
        forward_kinematics(structure, start=[[0, 0, 0], [np.nan, 0, 0]])
    with pytest.raises(TensegrityError, match="rest length of string"):
        forward_kinematics(structure, {"string": np.inf})
    with pytest.raises(TensegrityError, match="force on node load"):
        forward_kinematics(structure, forces={"load": (0, np.nan, 0)})


def test_unknown_names_are_answered_with_the_nearest():
    with pytest.raises(TensegrityError, match="'string'"):
        forward_kinematics(hanging(), {"strnig": 1.0})
    with pytest.raises(TensegrityError, match="newton"):
        forward_kinematics(hanging(), method="newtn")


def test_a_load_that_nothing_holds_has_no_equilibrium():
    falling = make_structure(
        {"a": (0, 0, 0), "b": (1, 0, 0)}, [("bar", "bar", "a", "b", 10.0, 1.0)], node_masses={"a": 1, "b": 1},
        gravity=(0, 0, -9.81),
    )  # fmt: skip
    with pytest.raises(NoEquilibriumError, match=r"nodes a, b to a fixed node.*nothing holds them"):
        forward_kinematics(falling)


def test_a_structure_without_free_nodes_is_refused():
    with pytest.raises(TensegrityError, match="every node is fixed"):
        forward_kinematics(
            make_structure({"a": (0, 0, 0), "b": (1, 0, 0)}, [("s", "tendon", "a", "b", 1.0, 1.0)], fixed=["a", "b"])
        )
