"""Relaxation by Algorithm 1 of 001, by kinetic damping, their tuner, and the experiment beside table 7."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from tensegrity_dynamics import forward_kinematics, load_robot, make_structure
from tensegrity_dynamics.errors import NoEquilibriumError, TensegrityError
from tensegrity_dynamics.structures.form_finding.kinetic_damping import fictitious_masses, relax_kinetic
from tensegrity_dynamics.structures.form_finding.relaxation_tuning import tune_relaxation
from tensegrity_dynamics.structures.form_finding.viscous_relaxation import (
    NORMS,
    largest_stiffness,
    relax,
    stable_delta,
    stiffness_bound,
)
from tensegrity_tools.experiments import relaxation as experiment
from tensegrity_tools.output import plain

PRISM = load_robot("three_prism")
TENSEBOT = load_robot("tensebot")
METHODS = {"relaxation": relax, "kinetic": relax_kinetic}


def hanging(mass: float = 2.0, stiffness: float = 500.0):
    """A mass on a tendon of 1 m under a fixed hook, slack at the start."""
    return make_structure(
        {"hook": (0, 0, 0), "mass": (0.1, 0, -0.5)},
        [("string", "tendon", "hook", "mass", stiffness, 1.0)],
        fixed=["hook"],
        node_masses={"mass": mass},
        gravity=(0, 0, -10.0),
    )


@pytest.mark.parametrize("method", METHODS)
def test_all_methods_agree_on_the_prism_along_its_soft_twist(method: str) -> None:
    exact = forward_kinematics(PRISM)
    shape = forward_kinematics(PRISM, method=method, tolerance=1e-9)
    assert shape.residual <= 1e-9 and shape.converged and shape.stable
    assert np.abs(shape.nodes - exact.nodes).max() < 1e-7
    top, foot = shape.nodes[PRISM.structure.node("top_1")], shape.nodes[PRISM.structure.node("base_1")]
    assert top[2] == pytest.approx(0.9543, abs=5e-5)
    twist = np.degrees(np.arctan2(top[1], top[0]) - np.arctan2(foot[1], foot[0])) % 360.0
    assert min(twist, 360.0 - twist) == pytest.approx(150.0, abs=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_all_methods_agree_on_the_platform_under_its_weight(method: str) -> None:
    exact = forward_kinematics(TENSEBOT)
    shape = forward_kinematics(TENSEBOT, method=method, tolerance=1e-6)
    assert np.abs(shape.nodes - exact.nodes).max() < 1e-7


@pytest.mark.parametrize("robot", [PRISM, TENSEBOT], ids=lambda robot: robot.name)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("threshold", [1e-4, 1e-5, 1e-6])
def test_stopped_early_the_error_estimate_covers_the_distance(robot, method: str, threshold: float) -> None:
    exact = forward_kinematics(robot)
    shape = forward_kinematics(robot, method=method, tolerance=threshold)
    distance = np.linalg.norm(shape.nodes - exact.nodes)
    assert 1e-12 < distance <= shape.position_error


def test_a_small_residual_alone_hides_an_error_along_the_soft_twist() -> None:
    # the printed threshold; the pose printed in 001, section 5.4.1, is off in the same way
    exact = forward_kinematics(PRISM)
    shape = forward_kinematics(PRISM, method="relaxation", tolerance=1e-5)
    assert shape.residual <= 1e-5
    assert np.abs(shape.nodes - exact.nodes).max() > 3e-5


@pytest.mark.parametrize("method", METHODS.values())
def test_a_hanging_mass_stretches_its_string_by_weight_over_stiffness(method) -> None:
    structure = hanging()
    nodes, iterations, residual = method(structure, structure.weights(), structure.nodes, 1e-9)
    np.testing.assert_allclose(nodes[1], (0.0, 0.0, -1.04), atol=1e-9)
    np.testing.assert_array_equal(nodes[0], 0.0)
    assert iterations > 0 and residual <= 1e-9


@pytest.mark.parametrize("method", METHODS.values())
def test_a_slack_tendon_does_not_push(method) -> None:
    structure = hanging()
    nodes, iterations, _ = method(structure, np.zeros((2, 3)), structure.nodes, 1e-9)
    assert iterations == 0
    np.testing.assert_array_equal(nodes, structure.nodes)


@pytest.mark.parametrize("method", METHODS.values())
def test_the_start_is_left_as_it_was(method) -> None:
    start = np.array(PRISM.structure.nodes)
    method(PRISM.structure, np.zeros((6, 3)), start, 1e-3)
    np.testing.assert_array_equal(start, PRISM.structure.nodes)


@pytest.mark.parametrize("method", METHODS.values())
def test_the_norms_are_ordered_and_a_stricter_one_takes_longer(method) -> None:
    structure, still = PRISM.structure, np.zeros((6, 3))
    counts = [method(structure, still, structure.nodes, 1e-6, norm=norm)[1] for norm in NORMS]
    assert counts == sorted(counts) and counts[0] < counts[2]


def test_the_printed_tuned_pair_diverges_and_the_error_names_the_limit() -> None:
    with pytest.raises(NoEquilibriumError, match=r"diverged.*4 - 2 epsilon = 3\.361.*delta below"):
        forward_kinematics(PRISM, method="relaxation", delta=0.0234, epsilon=0.3193)


@given(epsilon=st.floats(0.02, 1.6))
@settings(max_examples=25, deadline=None)
def test_stability_ends_exactly_at_the_linear_limit(epsilon: float) -> None:
    exact = forward_kinematics(PRISM)
    structure = PRISM.structure
    limit = stable_delta(epsilon, largest_stiffness(structure, exact.nodes))
    start = exact.nodes + 1e-9 * np.where(structure.fixed[:, None], 0.0, np.random.default_rng(1).normal(size=(6, 3)))

    def left(delta: float) -> float:
        """What is out of balance after many iterations [N]."""
        run = {"delta": delta, "epsilon": epsilon, "maximum_iterations": 4000}
        with pytest.raises(NoEquilibriumError) as caught:  # no residual is that small
            relax(structure, np.zeros((6, 3)), start, 1e-300, **run)
        message = str(caught.value)
        return np.inf if "diverged" in message else float(message.split(" N are left")[0].split()[-1])

    # force left [N]: rounding or the slow twist below the limit; above it, until tendons go slack and soften it
    assert left(0.97 * limit) < 1e-6
    assert left(1.03 * limit) > 1e-4


@given(scale=st.floats(-6.0, 9.0))
@settings(max_examples=20, deadline=None)
def test_default_options_do_the_same_at_any_stiffness(scale: float) -> None:
    factor = 10.0**scale
    structure = replace(PRISM.structure, stiffness=factor * PRISM.structure.stiffness)
    for method in METHODS.values():
        reference = method(PRISM.structure, np.zeros((6, 3)), structure.nodes, 1e-3)
        scaled = method(structure, np.zeros((6, 3)), structure.nodes, 1e-3 * factor)
        assert abs(scaled[1] - reference[1]) <= 2
        np.testing.assert_allclose(scaled[0], reference[0], atol=1e-7)


@given(seed=st.integers(0, 10_000), spread=st.floats(0.01, 3.0))
@settings(max_examples=40, deadline=None)
def test_the_stiffness_bound_holds_at_every_position(seed: int, spread: float) -> None:
    generator = np.random.default_rng(seed)
    for structure in (PRISM.structure, TENSEBOT.structure):
        nodes = structure.nodes + generator.normal(scale=spread, size=structure.nodes.shape)
        assert largest_stiffness(structure, nodes) <= stiffness_bound(structure)


@pytest.mark.parametrize("robot", [PRISM, TENSEBOT], ids=lambda robot: robot.name)
def test_no_motion_is_faster_than_the_time_step_of_kinetic_damping(robot) -> None:
    # undamped steps of 1 s are stable for squared frequencies up to 4; C'KC bounds the stiffness at every position
    structure = robot.structure
    free = ~structure.fixed
    connectivity = structure.connectivity()[:, free]
    scale = 1.0 / np.sqrt(fictitious_masses(structure)[free])
    stiffest = connectivity.T @ (structure.stiffness[:, None] * connectivity)
    fastest = np.linalg.eigvalsh(scale[:, None] * stiffest * scale)[-1]
    assert 1.0 < fastest <= 4.0 * (1.0 + 1e-12)


@given(seed=st.integers(0, 10_000), spread=st.floats(0.0, 0.5))
@settings(max_examples=25, deadline=None)
def test_the_energy_never_grows_over_an_accepted_cycle_of_kinetic_damping(seed: int, spread: float) -> None:
    structure = TENSEBOT.structure
    noise = np.random.default_rng(seed).uniform(-spread, spread, structure.nodes.shape) * ~structure.fixed[:, None]
    energies = np.zeros(3000)
    relax_kinetic(structure, structure.weights(), structure.nodes + noise, 1e-4, energies=energies)
    energies = energies[np.isfinite(energies)]
    assert energies.size > 3
    assert np.all(np.diff(energies) <= 1e-12 * np.abs(energies[:-1]))


@pytest.mark.parametrize("method", METHODS)
def test_methods_that_know_no_ground_are_refused_where_there_is_one(method: str) -> None:
    robot = load_robot("six_bar")
    with pytest.raises(TensegrityError, match=f"'{method}' does not support a ground.*'newton'"):
        forward_kinematics(robot, method=method)


@pytest.mark.parametrize("part", [0.25, 0.1, 0.03])
def test_kinetic_damping_shortens_its_steps_where_masses_are_too_light(part: float) -> None:
    structure = TENSEBOT.structure
    energies = np.zeros(3000)
    masses = part * fictitious_masses(structure)
    nodes, _, _ = relax_kinetic(
        structure,
        structure.weights(),
        structure.nodes,
        1e-5,
        masses=masses,
        energies=energies,
        maximum_iterations=20_000,
    )
    np.testing.assert_allclose(nodes, forward_kinematics(TENSEBOT).nodes, atol=1e-6)
    energies = energies[np.isfinite(energies)]
    assert np.all(np.diff(energies) <= 1e-12 * np.abs(energies[:-1]))


def test_kinetic_damping_puts_the_nodes_back_to_the_peak_of_kinetic_energy() -> None:
    # one spring, one direction: released from rest, the peak is the equilibrium but for half a step of the swing
    structure = make_structure(
        {"wall": (0, 0, 0), "end": (1.1, 0, 0)}, [("spring", "bar", "wall", "end", 100.0, 1.0)], fixed=["wall"]
    )
    energies = np.zeros(1)
    masses = np.full(2, 100.0 * 50.0)
    half_step = 0.5 * np.sqrt(1.0 / 50.0)  # rad
    relax_kinetic(structure, np.zeros((2, 3)), structure.nodes, 1e-6, masses=masses, energies=energies)
    assert energies[0] <= 1.05 * np.sin(half_step) ** 2 * 0.5 * 100.0 * 0.1**2


@given(seed=st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_every_method_ends_at_a_stable_shape_from_noisy_starts(seed: int) -> None:
    structure = TENSEBOT.structure
    noise = np.random.default_rng(seed).uniform(-0.05, 0.05, structure.nodes.shape)
    shapes = [forward_kinematics(TENSEBOT, start=structure.nodes + noise, method=m, tolerance=1e-5) for m in METHODS]
    for shape in shapes:
        assert shape.stable and shape.residual <= 1e-5
        np.testing.assert_array_equal(shape.nodes[structure.fixed], structure.nodes[structure.fixed])


@pytest.mark.parametrize("method", METHODS.values())
def test_running_out_of_iterations_says_what_is_left(method) -> None:
    structure = PRISM.structure
    with pytest.raises(NoEquilibriumError, match=r"N are left after 20 iterations.*1e-09 N are required"):
        method(structure, np.zeros((6, 3)), structure.nodes, 1e-9, maximum_iterations=20)


@pytest.mark.parametrize("method", METHODS.values())
def test_coincident_nodes_are_named(method) -> None:
    structure, nodes = hanging(), np.zeros((2, 3))
    with pytest.raises(TensegrityError, match="nodes hook and mass of member string are at the same position"):
        method(structure, structure.weights(), nodes, 1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"norm": "largest"}, "no norm 'largest'.*component"),
        ({"delta": -1.0}, "delta is -1"),
        ({"delta": np.nan}, "delta is nan"),
        ({"epsilon": 2.0}, "epsilon is 2, must lie between 0 and 2"),
        ({"maximum_iterations": 0}, "maximum_iterations is 0"),
    ],
)
def test_wrong_options_are_named(options: dict, message: str) -> None:
    structure = PRISM.structure
    with pytest.raises(TensegrityError, match=message):
        relax(structure, np.zeros((6, 3)), structure.nodes, 1e-6, **options)


def test_a_structure_in_which_no_member_moves_is_refused() -> None:
    structure = make_structure(
        {"a": (0, 0, 0), "b": (1, 0, 0), "lost": (0, 1, 0)}, [("bar", "bar", "a", "b", 10.0, 1.0)], fixed=["a", "b"]
    )
    with pytest.raises(TensegrityError, match="nothing holds the nodes"):
        relax(structure, np.ones((3, 3)), structure.nodes, 1e-6)


def test_the_tuner_beats_the_default_pair_and_its_count_can_be_repeated() -> None:
    tuning = tune_relaxation(PRISM, threshold=1e-4, maximum_evaluations=60)
    structure = PRISM.structure
    untuned = relax(structure, np.zeros((6, 3)), structure.nodes, 1e-4)
    assert tuning.iterations < 0.5 * untuned[1] and tuning.margin < 1.0
    again = relax(structure, np.zeros((6, 3)), structure.nodes, 1e-4, delta=tuning.delta, epsilon=tuning.epsilon)
    assert again[1] == tuning.iterations


def test_the_tuner_finds_its_way_back_from_an_unstable_pair() -> None:
    unstable = (0.0234, 0.3193)
    tuning = tune_relaxation(PRISM, threshold=1e-4, pairs=(unstable, (1e6, 1.0)), maximum_evaluations=40)
    assert tuning.margin < 1.0


def test_the_tuner_takes_no_pair_that_arrives_by_luck() -> None:
    # a flat arch: some unstable pairs jump into the threshold within a few iterations
    feet = {"l": (-1, 0, 0), "r": (1, 0, 0), "b": (0, 1, 0), "f": (0, -1, 0)}
    arch = make_structure(
        {**feet, "top": (0, 0, 0.02)}, [(foot, "bar", foot, "top", 1000.0, 1.02) for foot in feet], fixed=tuple(feet)
    )
    tuning = tune_relaxation(arch, threshold=1e-6, maximum_evaluations=60)
    assert tuning.margin < 1.0
    nodes, _, _ = relax(arch, np.zeros((5, 3)), arch.nodes, 1e-6, delta=tuning.delta, epsilon=tuning.epsilon)
    assert nodes[-1, 2] == pytest.approx(np.sqrt(1.02**2 - 1.0), abs=1e-6)


def test_the_tuner_says_when_no_pair_arrives() -> None:
    with pytest.raises(NoEquilibriumError, match="raise maximum_iterations or the threshold"):
        tune_relaxation(PRISM, threshold=1e-9, maximum_iterations=5, maximum_evaluations=10)
    with pytest.raises(TensegrityError, match="epsilon between 0 and 2"):
        tune_relaxation(PRISM, threshold=1e-4, pairs=((0.01, 3.0),))


def test_the_experiment_prints_our_counts_beside_table_7() -> None:
    result = experiment.run(evaluations=30)
    json.dumps(plain(result))
    prism, tensebot = result["robots"]
    assert [row["printed_iterations"] for row in prism["rows"][:2]] == [644, 91]
    assert [row["printed_iterations"] for row in tensebot["rows"][:2]] == [3241, 925]
    assert prism["printed_pair_stable_below_k"] == pytest.approx(122.0, abs=1.0)
    assert prism["lambda_max_over_k"] == pytest.approx(3.693, abs=2e-3)
    plain_row, printed_row, tuned_row = prism["rows"][:3]
    assert printed_row["iterations"] is None and printed_row["margin"] > 1.0
    assert tuned_row["iterations"] < plain_row["iterations"]
    for item in result["robots"]:
        assert item["threshold"] == 1e-5 and item["stiffness"] == 1000.0
        for row in item["rows"]:
            assert row["iterations"] is None or row["distance_mm"] <= row["estimate_mm"]
    console = Console(width=140, record=True, file=open("/dev/null", "w"))
    experiment.render(result, console)
    text = console.export_text()
    for word in ("644", "3241", "unstable at k = 1000", "below 122", "1e-05"):
        assert word in text


@pytest.mark.parametrize("masses", [np.ones(3), np.zeros(6), np.full(6, np.nan)])
def test_wrong_masses_are_refused(masses: np.ndarray) -> None:
    structure = PRISM.structure
    with pytest.raises(TensegrityError, match="masses must be 6 finite numbers above zero"):
        relax_kinetic(structure, np.zeros((6, 3)), structure.nodes, 1e-6, masses=masses)
