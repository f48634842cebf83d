"""Linear models of structures: against differences, analytic motions and the laws that they must keep."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import expm

from tensegrity_dynamics import Actuator, Robot, Simulation, TensegrityError, load_robot, make_structure
from tensegrity_dynamics.contact.ground import Ground, HeightField
from tensegrity_dynamics.linear_models.discretization import discretise
from tensegrity_dynamics.linear_models.linear_model import LinearModel
from tensegrity_dynamics.structures.analysis.modes import structure_modes
from tensegrity_dynamics.structures.dynamics.bar_constraints import project_velocities
from tensegrity_dynamics.structures.dynamics.linearisation import StructureLinearisation
from tensegrity_dynamics.structures.dynamics.point_masses import accelerations, make_network, make_workspace

HILLS = HeightField(0.05 * np.random.default_rng(5).normal(size=(5, 6)), np.array([-0.6, -0.6]), 0.3)
GROUNDS = {
    "flight": None,
    "linear": Ground(1e4, damping=80.0, friction=0.5, viscous=3.0),
    "softplus on a slope": Ground(2e4, law="softplus", damping=50.0, smoothness=2e-3, slope=0.2, downhill=0.7),
    "exponential": Ground(5e3, law="exponential", length=0.05, damping=10.0, friction_speed=0.05),
    "hills": Ground(1e4, damping=20.0, friction=0.8, viscous=1.0, hills=HILLS),
}


def six_bar(ground: Ground | None):
    """The six-bar with another ground, its structure and the names of its cables."""
    from dataclasses import replace

    structure = replace(load_robot("six_bar").structure, ground=ground)
    return structure, [
        name for name, kind in zip(structure.member_names, structure.kinds, strict=True) if kind != "bar"
    ]


def random_state(structure, seed: int = 1):
    """A state in motion with slack cables among others, part of the nodes under the ground."""
    rng = np.random.default_rng(seed)
    nodes = structure.nodes + 0.02 * rng.normal(size=structure.nodes.shape) - np.array([0.0, 0.0, 0.02])
    nodes[structure.fixed] = structure.nodes[structure.fixed]
    velocities = np.where(structure.fixed[:, None], 0.0, rng.normal(size=nodes.shape))
    rest = structure.rest_lengths * (1.2 + 0.2 * rng.normal(size=structure.rest_lengths.size))
    return nodes, velocities, rest


def equation_of_motion(structure, linear, rest, rigid_bars=True, air_damping=0.0, stabilisation=None):
    """x' = f(x, u) of a linearisation from the simulator's own accelerations."""
    network = make_network(structure, rigid_bars=rigid_bars, air_damping=air_damping, stabilisation=stabilisation)
    work, free = make_workspace(network), network.free
    f, chosen = free.size, [structure.member(name) for name in linear.driven]
    e = len(chosen)

    def rate(x, u):
        nodes, velocities, lengths = structure.nodes.copy(), np.zeros_like(structure.nodes), rest.copy()
        nodes.ravel()[free], velocities.ravel()[free] = x[:f], x[f : 2 * f]
        lengths[chosen] = u if linear.inputs == "lengths" else x[2 * f : 2 * f + e]
        rates = {"rates": u, "accelerations": x[2 * f + e :], "lengths": np.zeros(e)}[linear.inputs]
        work.rest_rates[chosen] = rates
        network.bar_lengths[:] = lengths[network.bars]
        accelerations(network, nodes, velocities, lengths, work)
        parts = [x[f : 2 * f], work.acceleration.ravel()[free]]
        parts += [] if linear.inputs == "lengths" else [rates]
        parts += [u] if linear.inputs == "accelerations" else []
        return np.concatenate(parts)

    return rate


def differences(function, point, step=3e-6):
    """Jacobian by central differences of fourth order."""
    columns = []
    for k in range(point.size):
        aside = np.zeros(point.size)
        aside[k] = step
        near, far = (function(point + j * aside) - function(point - j * aside) for j in (1, 2))
        columns.append((8.0 * near - far) / (12.0 * step))
    return np.array(columns).T


def assert_equal_columns(exact, other):
    """Every column within 1e-7 of its largest entry; a column of zeros within what rounding makes of differences."""
    size = np.maximum(np.abs(other).max(axis=0), 1e-4 * np.abs(other).max())
    assert (np.abs(exact - other) <= 1e-7 * size).all()


@pytest.mark.parametrize(
    ("ground", "inputs"),
    [*((ground, "rates") for ground in GROUNDS), ("linear", "accelerations"), ("linear", "lengths")],
)
def test_jacobians_are_those_of_the_equation_of_motion(ground, inputs):
    structure, cables = six_bar(GROUNDS[ground])
    nodes, velocities, rest = random_state(structure)
    linear = StructureLinearisation(structure, cables, inputs=inputs)
    rates = None if inputs == "lengths" else np.linspace(-0.3, 0.4, len(cables))
    model = linear.model(nodes, velocities, rest, rates)
    rate = equation_of_motion(structure, linear, rest)
    assert np.allclose(model.rate, rate(model.state, model.input), rtol=1e-12, atol=1e-9)
    assert_equal_columns(model.dense_matrix, differences(lambda x: rate(x, model.input), model.state))
    assert_equal_columns(model.dense_inputs, differences(lambda u: rate(model.state, u), model.input, 1e-5))
    lengths = np.linalg.norm(nodes[structure.members[:, 0]] - nodes[structure.members[:, 1]], axis=1)
    assert 3 <= np.count_nonzero(structure.unilateral & (lengths < rest)) <= 20  # some slack, some tight
    if structure.ground is not None:
        assert np.count_nonzero(linear.work.ground[:, 6] > 0.0) >= 2


def chain(fixed: bool = True):
    """Bars joined to each other, one of them at the end of a tendon, with and without a fixed node."""
    return make_structure(
        {"a": (0, 0, 0), "b": (0.3, 0, 0.4), "c": (0.8, 0.1, 0.3), "d": (0.9, 0.5, 0), "e": (0.2, 0.6, 0.1)},
        [
            ("bar_1", "bar", "a", "b", 1e3, 0.5), ("bar_2", "bar", "b", "c", 1e3, 0.52),
            ("bar_3", "bar", "c", "d", 1e3, 0.51), ("t_1", "tendon", "d", "e", 300.0, 0.5),
            ("t_2", "tendon", "e", "a", 200.0, 0.4), ("t_3", "spring", "b", "e", 100.0, 0.3),
        ],
        fixed=["a"] if fixed else (), damping={"t_1": 2.0, "bar_2": 4.0}, gravity=(0, 0, -9.81),
        node_masses={"a": 0.3, "b": 0.5, "c": 0.2, "d": 0.7, "e": 0.4},
    )  # fmt: skip


@pytest.mark.parametrize(("fixed", "rigid_bars"), [(True, True), (False, True), (False, False)])
def test_joined_bars_fixed_nodes_elastic_bars_and_air_are_in_the_jacobians(fixed, rigid_bars):
    structure = chain(fixed)
    nodes, velocities, rest = random_state(structure, 3)
    linear = StructureLinearisation(structure, rigid_bars=rigid_bars, air_damping=0.7)
    model = linear.model(nodes, velocities, rest)
    rate = equation_of_motion(structure, linear, rest, rigid_bars, 0.7)
    assert_equal_columns(model.dense_matrix, differences(lambda x: rate(x, model.input), model.state))
    assert_equal_columns(model.dense_inputs, differences(lambda u: rate(model.state, u), model.input, 1e-5))


def test_soft_tendons_and_stabilised_driven_rods_are_in_the_jacobians():
    from dataclasses import replace

    structure = replace(chain(), smoothness=0.02)
    nodes, velocities, rest = random_state(structure, 6)
    gains = (900.0, 40.0)
    linear = StructureLinearisation(structure, ["t_1", "bar_2", "t_2"], stabilisation=gains)
    rates = np.array([0.2, -0.3, 0.1])
    model = linear.model(nodes, velocities, rest, rates)
    rate = equation_of_motion(structure, linear, rest, stabilisation=gains)
    assert np.allclose(model.rate, rate(model.state, model.input), rtol=1e-12, atol=1e-9)
    assert_equal_columns(model.dense_matrix, differences(lambda x: rate(x, model.input), model.state))
    assert_equal_columns(model.dense_inputs, differences(lambda u: rate(model.state, u), model.input, 1e-5))
    assert np.abs(model.dense_matrix[:, model.index("length of bar_2")]).max() > 1.0


def test_zeros_are_known_in_advance():
    structure, cables = six_bar(GROUNDS["linear"])
    linear = StructureLinearisation(structure, cables)
    model = linear.model(*random_state(structure))
    assert model.matrix.shape == (96, 96) and model.zeros == (9156, 96 * 120)
    # a rod's ends meet the cables of both: nothing of any other node is in their rows
    columns = model.matrix[model.index("velocity of n1 x")].indices
    assert {model.state_names[k] for k in columns}.isdisjoint({"n3 x", "n4 y", "n11 z", "n12 x", "velocity of n3 x"})
    assert model.index("n8 x") in columns


@pytest.mark.parametrize("ground", ["flight", "linear"])
def test_reduced_model_is_the_jacobian_along_what_the_bars_allow(ground):
    structure, _ = six_bar(GROUNDS[ground])
    simulation = Simulation(structure, start=structure.nodes)
    start = simulation.state
    simulation.set_state(start.nodes - [0.0, 0.0, 0.01], random_state(structure)[1])
    state = simulation.state
    model = simulation.linearise("lengths", reduced=True)
    count = model.state.size
    assert count == 60
    linear = StructureLinearisation(structure, inputs="lengths")
    full = linear.model(state.nodes, state.velocities, state.rest_lengths)
    rate = equation_of_motion(structure, linear, state.rest_lengths)
    _, restrict, _ = linear.reduction(state.velocities)

    def reduced_rate(z):
        # another way onto the bars: the simulator closes them and takes out what would stretch them
        x = full.state + linear_lift @ z
        simulation.set_state(x[:36].reshape(12, 3), x[36:].reshape(12, 3))
        there = simulation.state
        return restrict @ rate(np.concatenate((there.nodes.ravel(), there.velocities.ravel())), full.input)

    linear_lift = model.lift
    assert np.abs((restrict @ model.lift).toarray() - np.eye(count)).max() < 1e-13
    assert_equal_columns(model.dense_matrix, differences(reduced_rate, np.zeros(count), 1e-4))


def test_full_model_has_two_zeros_more_for_each_bar_and_one_for_each_length():
    simulation = Simulation(load_robot("six_bar"))
    full, reduced = simulation.linearise(), simulation.linearise(reduced=True)
    zeros = [np.count_nonzero(np.abs(each.eigenvalues()) < 1e-3) for each in (full, reduced)]
    assert (full.state.size, reduced.state.size) == (96, 84)
    assert zeros[0] - zeros[1] == 12 and zeros[1] == 24 + 3  # lengths; feet that creep in the plane, and about z
    assert np.abs(full.rate).max() < 1e-9


def test_translations_change_nothing_in_flight():
    structure, cables = six_bar(None)
    model = StructureLinearisation(structure, cables).model(*random_state(structure))
    shift = np.zeros((96, 3))
    shift[:36] = np.tile(np.eye(3), (12, 1))
    assert np.abs(model.matrix @ shift).max() < 1e-9 * np.abs(model.dense_matrix).max()


def test_acceleration_of_a_driven_rod_is_its_input():
    structure = chain()
    linear = StructureLinearisation(structure, ["bar_2", "t_1"], inputs="accelerations")
    nodes, velocities, rest = random_state(structure, 4)
    model = linear.model(nodes, velocities, rest)
    unit = (nodes[1] - nodes[2]) / np.linalg.norm(nodes[1] - nodes[2])
    column = model.dense_inputs[:, 0]
    b, c = model.index("velocity of b x"), model.index("velocity of c x")
    assert np.isclose(unit @ (column[b : b + 3] - column[c : c + 3]), 1.0, rtol=1e-12)
    assert not model.dense_inputs[:24, 1].any()  # a spool's acceleration does not reach the nodes at once
    with pytest.raises(TensegrityError, match="kind of inputs"):
        StructureLinearisation(structure, inputs="rate")


@pytest.mark.parametrize(("inputs", "states"), [("rates", 102), ("lengths", 72)])
def test_driven_rods_and_cables_are_the_102_states_of_the_document(inputs, states):
    structure, _ = six_bar(GROUNDS["linear"])
    linear = StructureLinearisation(structure, structure.member_names, inputs=inputs)
    nodes, velocities, rest = random_state(structure)
    model = linear.model(nodes, velocities, rest, None if inputs == "lengths" else np.linspace(-0.3, 0.4, 30))
    assert model.matrix.shape == (states, states) and model.inputs.shape == (states, 30)
    rate, jump = equation_of_motion(structure, linear, rest), model.jump.toarray()

    def smooth_rate(x, u):
        return rate(x + jump @ (u - model.input), u)

    assert_equal_columns(model.dense_matrix, differences(lambda x: smooth_rate(x, model.input), model.state))
    assert_equal_columns(model.dense_inputs, differences(lambda u: smooth_rate(model.state, u), model.input, 1e-5))
    if inputs == "rates":  # the jump is what the simulation makes of a new rate
        network, pushed = make_network(structure), np.zeros_like(nodes)
        work = make_workspace(network)
        work.rest_rates[:6] = np.arange(1.0, 7.0)
        assert project_velocities(network, nodes, pushed, work)
        np.testing.assert_allclose(jump[36:72, :6] @ np.arange(1.0, 7.0), pushed.ravel(), atol=1e-12)


@pytest.mark.parametrize("reduced", [False, True])
def test_a_step_with_driven_rods_is_that_of_their_linear_model_to_third_order(reduced):
    structure, _ = six_bar(None)
    drives = tuple(Actuator(name, name, (0.2, 1.5), 9.0, 1e4) for name in structure.member_names)
    errors = []
    for step in (2e-3, 1e-3):
        simulation = Simulation(Robot("legs", structure, drives), step / 20, "rk4", start=structure.nodes)
        simulation.set_motion(random_state(structure)[1])
        model, before = simulation.linearise(reduced=reduced), simulation.state
        assert model.state.size == (90 if reduced else 102)
        push = 100.0 * step * np.sin(np.arange(30.0))
        simulation.advance(20, velocity=dict(zip(structure.member_names, push, strict=True)))
        end = simulation.state
        ahead = discretise(model, step).advance(np.zeros(model.state.size), push)
        parts = [(getattr(end, x) - getattr(before, x)).ravel() for x in ("nodes", "velocities", "rest_lengths")]
        moved = np.concatenate(parts) - model.jump @ push
        if reduced:  # what bars allow bends: seen along the motions, the full state would be of second order
            linear = StructureLinearisation(structure, structure.member_names)
            linear.update(before.nodes, before.velocities, before.rest_lengths)
            moved = linear.reduction(before.velocities)[1] @ moved
        else:
            np.testing.assert_array_equal(model.full(ahead, push), ahead + model.jump @ push)
        errors.append(np.abs(ahead - moved).max())
    assert 6.0 < errors[0] / errors[1] < 10.0


def test_discretisations_have_their_orders_and_the_exponential_is_exact():
    structure, cables = six_bar(None)
    model = StructureLinearisation(structure, cables).model(*random_state(structure))
    duration, push = 0.02, np.linspace(-0.1, 0.1, 24)
    truth = discretise(model, duration).advance(np.zeros(96), push)
    errors = {
        method: [
            np.abs(discretise(model, duration / n, method).advance(np.zeros(96), push, n) - truth).max()
            for n in (64, 128)
        ]
        for method in ("euler", "trapezoidal", "exponential")
    }
    slopes = {name: float(np.log2(pair[0] / pair[1])) for name, pair in errors.items() if name != "exponential"}
    assert abs(slopes["euler"] - 1.0) < 0.05 and abs(slopes["trapezoidal"] - 2.0) < 0.05
    assert max(errors["exponential"]) < 1e-11 * np.abs(truth).max()
    with pytest.raises(TensegrityError, match="method of discretisation"):
        discretise(model, 0.01, "tustin")
    with pytest.raises(TensegrityError, match="step is"):
        discretise(model, 0.0)


@pytest.mark.parametrize("held", [0, 3, 7])
def test_the_exponential_is_that_of_states_and_inputs_together(held):
    """Also where some states only integrate inputs, units differ by decades, and nothing brings some of them back."""
    rng = np.random.default_rng(held)
    matrix = rng.normal(size=(7, 7)) * 10.0 ** rng.uniform(-2.0, 2.0, size=(7, 1))
    matrix[7 - held :] = 0.0
    names = tuple(f"x{i}" for i in range(7))
    model = LinearModel(matrix, rng.normal(size=(7, 2)), rng.normal(size=7), np.zeros(7), np.zeros(2), names, names[:2])
    step, whole = discretise(model, 0.03), np.zeros((10, 10))
    whole[:7] = np.column_stack((matrix, model.inputs, model.rate))
    expected = expm(0.03 * whole)[:7]
    found = np.column_stack((step.matrix, step.inputs, step.offset))
    np.testing.assert_allclose(found, expected, atol=1e-12 * np.abs(expected).max())


def test_a_step_of_the_simulation_is_that_of_its_linear_model_to_third_order():
    structure, _ = six_bar(None)
    errors = []
    for step in (2e-3, 1e-3):
        simulation = Simulation(structure, step / 20, start=structure.nodes)
        simulation.set_motion(random_state(structure)[1])
        model = simulation.linearise("lengths")
        simulation.advance(20)
        end = simulation.state
        ahead = discretise(model, step).advance(np.zeros(72))
        errors.append(np.abs(ahead - (np.concatenate((end.nodes.ravel(), end.velocities.ravel())) - model.state)).max())
    assert 6.0 < errors[0] / errors[1] < 10.0


def modes_of(structure, rigid_bars=True):
    """Modes at the structure's own nodes."""
    model = StructureLinearisation(structure, (), inputs="lengths", rigid_bars=rigid_bars).model(
        structure.nodes, np.zeros_like(structure.nodes), structure.rest_lengths, reduced=True
    )
    lengths = np.linalg.norm(np.diff(structure.nodes[structure.members], axis=1)[:, 0], axis=1)
    return structure_modes(structure, model, structure.nodes, lengths > structure.rest_lengths)


def test_mass_between_two_tendons_swings_along_and_across_them():
    stiffness, mass, damping, stretch, length = 400.0, 0.25, 3.0, 0.1, 0.6
    structure = make_structure(
        {"left": (-length, 0, 0), "mass": (0, 0, 0), "right": (length, 0, 0)},
        [("t_1", "tendon", "left", "mass", stiffness, length - stretch),
         ("t_2", "tendon", "mass", "right", stiffness, length - stretch)],
        fixed=["left", "right"], node_masses={"mass": mass}, damping={"t_1": damping, "t_2": damping},
    )  # fmt: skip
    found = modes_of(structure)
    across = np.sqrt(2.0 * stiffness * stretch / length / mass)
    along = np.sqrt(2.0 * stiffness / mass)
    ratio = damping / np.sqrt(2.0 * stiffness * mass)
    assert [mode.kind for mode in found] == ["vibration"] * 3
    assert np.allclose([mode.frequency for mode in found[:2]], across / (2.0 * np.pi), rtol=1e-9)
    assert np.isclose(found[2].damping, ratio, rtol=1e-9) and max(abs(mode.damping) for mode in found[:2]) < 1e-9
    assert np.isclose(found[2].frequency, along * np.sqrt(1.0 - ratio**2) / (2.0 * np.pi), rtol=1e-9)
    assert found[2].what == "mass" and found[2].cables == pytest.approx({"t_1": 0.5, "t_2": 0.5})
    assert not found[0].cables  # to first order nothing stretches: prestress alone brings it back


def test_rod_on_a_pivot_swings_as_a_pendulum_or_falls_as_one():
    for side, kind in ((-1.0, "vibration"), (1.0, "growth")):
        structure = make_structure(
            {"pivot": (0, 0, 0), "bob": (0, 0, side * 0.7)}, [("rod", "bar", "pivot", "bob", 1e6, 0.7)],
            fixed=["pivot"], node_masses={"bob": 1.3}, gravity=(0, 0, -9.81),
        )  # fmt: skip
        found = modes_of(structure)
        assert [mode.kind for mode in found][:2] == [kind, kind] and found[0].what == "rod"
        assert np.isclose(abs(found[0].eigenvalue), np.sqrt(9.81 / 0.7), rtol=1e-9)


def test_free_body_has_six_free_motions_named_so():
    structure, _ = six_bar(None)
    simulation = Simulation(structure, gravity=(0.0, 0.0, 0.0))
    state = simulation.state
    model = simulation.linearise("lengths", reduced=True)
    found = structure_modes(structure, model, state.nodes, structure.unilateral)
    assert [mode.kind for mode in found].count("free") == 6 and found[6].kind == "vibration"
    assert all(mode.what.startswith("all of it") and not mode.cables for mode in found[:6])
    assert len(found) == 6 + 24


def test_a_payload_is_in_the_linear_model_of_a_simulation():
    simulation = Simulation(load_robot("three_prism"))
    before = simulation.linearise().dense_matrix
    simulation.attach("brick", "top_1", 0.05)
    after = simulation.linearise().dense_matrix
    structure = load_robot("three_prism").structure
    masses = structure.node_masses + 0.05 * (np.arange(len(structure.node_names)) == structure.node("top_1"))
    heavier = StructureLinearisation(
        replace(structure, node_masses=masses), [each.drives for each in load_robot("three_prism").actuators]
    )
    state = simulation.state
    expected = heavier.model(state.nodes, state.velocities, state.rest_lengths).dense_matrix
    np.testing.assert_allclose(after, expected, atol=1e-9 * np.abs(expected).max())
    assert np.abs(after - before).max() > 0.1 * np.abs(before).max()
