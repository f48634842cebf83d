"""Nodes held along some axes of the world only: planar structures and rollers."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import eigh, null_space

from tensegrity_dynamics import NoEquilibriumError, RobotFileError, Simulation, TensegrityError, make_structure
from tensegrity_dynamics.robots.load_robot import parse_robot
from tensegrity_dynamics.structures.analysis.modes import modes_at_rest
from tensegrity_dynamics.structures.analysis.multiple_equilibria import find_equilibria
from tensegrity_dynamics.structures.analysis.prestress import analyze_prestress
from tensegrity_dynamics.structures.dynamics.linearisation import StructureLinearisation
from tensegrity_dynamics.structures.dynamics.point_masses import accelerations, make_network, make_workspace
from tensegrity_dynamics.structures.energy import (
    add_member_forces,
    free_positions,
    member_tensions,
    tangent_stiffness,
)
from tensegrity_dynamics.structures.form_finding import sparse_newton
from tensegrity_dynamics.structures.form_finding.equilibrium_solver import StructureEquilibriumSolver
from tensegrity_dynamics.structures.form_finding.forward_kinematics import forward_kinematics
from tensegrity_dynamics.structures.matrices import read_matrices, structure_matrices
from tensegrity_dynamics.structures.mjcf import structure_mjcf
from tensegrity_dynamics.structures.node_distances.model import NodeDistanceModel

PLANE = {"a": "y", "b": "y", "c": "y", "d": "y"}
FEET = {"b": "yz", "c": "y", "d": "y"}
"""A pinned foot a, a rolling foot b, all in one plane."""


def crossed(rollers, fixed=(), without=(), **options):
    """Two crossed bars and four cables around them, a unit square in the plane y = 0."""
    nodes = {"a": (0, 0, 0), "b": (1, 0, 0), "c": (1, 0, 1), "d": (0, 0, 1)}
    rows = [(f"{i}{j}", "bar", i, j, 1e5, 2.0**0.5) for i, j in ("ac", "bd")]
    rows += [(f"{i}{j}", "tendon", i, j, 1000.0, 0.95) for i, j in ("ab", "bc", "cd", "da") if i + j not in without]
    masses = {"ac": 0.3, "bd": 0.2}
    return make_structure(
        nodes, rows, fixed=fixed, rollers=rollers, masses=masses, node_masses=dict.fromkeys("abcd", 0.1), **options
    )


@pytest.mark.parametrize(
    ("rollers", "fixed", "without", "freedoms", "rigid", "states", "mechanisms"),
    [
        (PLANE, (), (), 8, 3, 1, 0),  # 6 members, rank 8 - 3
        (FEET, ("a",), (), 5, 0, 1, 0),
        (FEET, ("a",), ("cd",), 5, 0, 0, 0),  # a triangulated truss, statically determinate
        (FEET, ("a",), ("cd", "ab"), 5, 0, 0, 1),  # a linkage of one freedom
        ({}, (), (), 12, 6, 1, 1),  # in space the square folds about a diagonal
    ],
)
def test_states_of_self_stress_and_mechanisms_of_a_planar_x_are_those_counted_by_hand(
    rollers, fixed, without, freedoms, rigid, states, mechanisms
):
    structure = crossed(rollers, fixed, without)
    found = analyze_prestress(structure, structure.nodes)
    assert (found.freedoms, found.rigid) == (freedoms, rigid)
    assert (found.self_stress.shape[1], len(found.mechanisms)) == (states, mechanisms)
    assert not found.mechanisms[:, structure.supports].any()


def test_planar_shape_is_that_of_a_structure_in_space_with_kilometre_long_bars_across():
    load = {"c": (20.0, 0.0, -30.0)}
    planar = crossed(FEET, ("a",), gravity=(0.0, 0.0, -9.81))
    rows = [
        (name, kind, *(planar.node_names[i] for i in ends), stiffness, rest)
        for name, kind, ends, stiffness, rest in zip(
            planar.member_names, planar.kinds, planar.members, planar.stiffness, planar.rest_lengths, strict=True
        )
    ]
    nodes = dict(zip(planar.node_names, planar.nodes, strict=True))
    for name in "bcd":
        nodes[f"far_{name}"] = nodes[name] + (0.0, 1000.0, 0.0)
        rows.append((f"across_{name}", "bar", name, f"far_{name}", 1e4, 1000.0))
    nodes["below"] = nodes["b"] - (0.0, 0.0, 100.0)
    rows.append(("under", "bar", "b", "below", 1e8, 100.0))
    space = make_structure(
        nodes, rows, fixed=["a", "below", *(f"far_{name}" for name in "bcd")], gravity=planar.gravity,
        masses={"ac": 0.3, "bd": 0.2}, node_masses=dict.fromkeys("abcd", 0.1),
    )  # fmt: skip
    one, other = forward_kinematics(planar, forces=load), forward_kinematics(space, forces=load)
    assert one.stable
    assert np.abs(one.nodes[:, 1]).max() == 0.0
    assert one.nodes[1, 0] - 1.0 > 0.01
    np.testing.assert_allclose(one.nodes, other.nodes[:4], atol=1e-5)  # the bar below turns by 13 mm in 100 m
    np.testing.assert_allclose(one.tensions, other.tensions[:6], atol=0.01)


def balance(structure, nodes):
    lengths, tensions = np.zeros(len(structure.kinds)), np.zeros(len(structure.kinds))
    member_tensions(
        nodes, structure.members, structure.stiffness, structure.rest_lengths, structure.laws, lengths, tensions
    )
    forces = np.zeros_like(nodes)
    add_member_forces(nodes, structure.members, lengths, tensions, forces)
    return lengths, tensions, forces


def test_tangent_stiffness_over_free_coordinates_is_the_slope_of_the_forces_along_them():
    rng = np.random.default_rng(4)
    structure = crossed({"a": "x", "b": "yz", "d": "xz"})
    nodes = structure.nodes + 0.1 * rng.normal(size=(4, 3))
    lengths, tensions, _ = balance(structure, nodes)
    matrix = np.zeros((structure.free.size, structure.free.size))
    tangent_stiffness(
        nodes, structure.members, structure.stiffness, structure.laws, lengths, tensions, structure.rest_lengths,
        free_positions(structure.supports), matrix,
    )  # fmt: skip
    assert structure.free.tolist() == [1, 2, 3, 6, 7, 8, 10]
    for column, coordinate in enumerate(structure.free):
        ahead, back = nodes.copy(), nodes.copy()
        ahead.ravel()[coordinate] += 1e-6
        back.ravel()[coordinate] -= 1e-6
        slope = (balance(structure, back)[2] - balance(structure, ahead)[2]).ravel()[structure.free] / 2e-6
        np.testing.assert_allclose(matrix[:, column], slope, atol=1e-3)


@pytest.mark.parametrize("rigid_bars", [False, True])
def test_a_roller_reacts_along_held_axes_only_and_with_what_moments_about_the_pin_say(rigid_bars):
    structure = crossed(FEET, ("a",), gravity=(0.0, 0.0, -9.81))
    push = structure.force_array({"c": (20.0, 5.0, -30.0), "d": (0.0, 0.0, -10.0)})
    shape = forward_kinematics(structure, forces=push, rigid_bars=rigid_bars)
    members = np.zeros((4, 3))
    add_member_forces(shape.nodes, structure.members, shape.lengths, shape.tensions, members)
    load = push + structure.weights()
    reactions = -(members + load)
    assert np.abs(reactions.ravel()[structure.free]).max() < 1e-8  # the roller's x among them
    x, z = shape.nodes[:, 0], shape.nodes[:, 2]
    moment = float(np.sum(z * load[:, 0] - x * load[:, 2]))  # about the y axis through a
    assert reactions[1, 2] == pytest.approx(moment / x[1], rel=1e-6)
    np.testing.assert_allclose(reactions.sum(axis=0), -load.sum(axis=0), atol=1e-8)


@pytest.mark.parametrize("method", ["relaxation", "kinetic"])
def test_relaxation_finds_the_shape_of_the_trust_region_on_rollers(method):
    structure = crossed(FEET, ("a",), gravity=(0.0, 0.0, -9.81))
    push = {"c": (20.0, 0.0, -30.0)}
    expected = forward_kinematics(structure, forces=push)
    found = forward_kinematics(structure, forces=push, method=method, tolerance=1e-7)
    np.testing.assert_allclose(found.nodes, expected.nodes, atol=1e-8)


@pytest.mark.parametrize("kept", [False, True])
def test_sparse_solver_finds_the_dense_shape_on_rollers(kept, monkeypatch):
    if kept:
        monkeypatch.setattr(sparse_newton, "MIN_KEPT", 1)
    structure = crossed(FEET, ("a",), gravity=(0.0, 0.0, -9.81))
    expected = forward_kinematics(structure, forces={"c": (20.0, 0.0, -30.0)})
    solver = StructureEquilibriumSolver(structure)
    sparse = sparse_newton.SparseMinimiser(structure, solver.problem, 0.5)
    nodes = np.array(structure.nodes)
    total = structure.weights() + structure.force_array({"c": (20.0, 0.0, -30.0)})
    found = sparse.minimise(nodes, np.array(structure.rest_lengths), total, 1e-9, 100)
    np.testing.assert_allclose(nodes, expected.nodes, atol=1e-10)
    assert found.stable
    assert found.softest == pytest.approx(expected.softest, rel=1e-6)


def test_forces_on_a_part_that_floats_along_an_axis_must_cancel_along_it():
    sliding = crossed({"a": "yz", "b": "yz", "c": "y", "d": "y"}, gravity=(0.0, -3.0, -9.81))
    assert forward_kinematics(sliding).residual < 1e-9
    with pytest.raises(NoEquilibriumError, match="held along x"):
        forward_kinematics(sliding, forces={"c": (1.0, 0.0, 0.0)})


def test_turned_and_shifted_in_their_plane_shapes_are_one_and_mirrored_ones_are_not():
    found = find_equilibria(crossed(PLANE), count=8, noise=0.3, seed=3)
    lengths = [np.sort(each.shape.lengths) for each in found]
    square = [each for each in lengths if each[0] > 0.9]
    assert len(square) == 1


def network_of(structure, **options):
    network = make_network(structure, **options)
    return network, make_workspace(network)


@pytest.mark.parametrize("rod_mass", ["spread", "ends"])
def test_accelerations_are_those_of_newtons_equations_with_every_support_a_constraint(rod_mass):
    """M a = F + J' t + S' r with J a = -|w|^2 / l and S a = 0, densely, for joined bars of spread mass."""
    rng = np.random.default_rng(2)
    nodes = {f"n{i}": rng.normal(size=3) for i in range(5)}
    pairs = [("bar", 0, 1), ("bar", 1, 2), ("bar", 3, 4), ("tendon", 0, 3), ("tendon", 2, 4), ("tendon", 1, 3)]
    rows = [(f"m{i}{j}", kind, f"n{i}", f"n{j}", 80.0, 0.7) for kind, i, j in pairs]
    structure = make_structure(
        nodes, rows, rollers={"n0": "y", "n1": "xz", "n3": "z"}, fixed=["n2"], gravity=(1.0, 2.0, -9.81),
        masses={f"m{i}{j}": 0.4 for _, i, j in pairs}, node_masses={f"n{i}": 0.1 + 0.1 * i for i in range(5)},
    )  # fmt: skip
    rest = np.linalg.norm(structure.nodes[structure.members[:, 0]] - structure.nodes[structure.members[:, 1]], axis=1)
    structure = structure.with_rest_lengths(np.where(structure.unilateral, 0.7 * rest, rest))
    network, work = network_of(structure, rod_mass=rod_mass)
    still = np.zeros((5, 3))
    independent, _ = accelerations(network, np.array(structure.nodes), still, np.array(structure.rest_lengths), work)
    assert independent
    mass = np.kron(structure.mass_matrix(spread=rod_mass == "spread"), np.eye(3))
    rows = np.zeros((3, 15))
    for row, k in enumerate(np.flatnonzero(~structure.unilateral)):
        i, j = structure.members[k]
        unit = (structure.nodes[i] - structure.nodes[j]) / rest[k]
        rows[row, 3 * i : 3 * i + 3], rows[row, 3 * j : 3 * j + 3] = unit, -unit
    held = np.eye(15)[structure.supports.ravel()]
    constraints = np.vstack((rows, held))
    count = len(constraints)
    whole = np.block([[mass, constraints.T], [constraints, np.zeros((count, count))]])
    expected = np.linalg.solve(whole, np.concatenate((work.forces.ravel(), np.zeros(count))))[:15]
    np.testing.assert_allclose(work.acceleration.ravel(), expected, atol=1e-9)
    assert not work.acceleration[structure.supports].any()


@pytest.mark.parametrize(("integrator", "rigid_bars"), [("rk4", True), ("rattle", True), ("rattle", False)])
def test_a_rod_under_a_roller_swings_at_its_closed_form_frequency(integrator, rigid_bars):
    """A uniform rod below a cart: (M + m) x' = -m l / 2 angle', so J = m l^2 / 3 - (m l / 2)^2 / (M + m)."""
    cart, rod, length, gravity, angle = 0.3, 0.5, 0.8, 9.81, 1e-3
    inertia = rod * length**2 / 3.0 - (0.5 * rod * length) ** 2 / (cart + rod)
    period = 2.0 * np.pi * np.sqrt(inertia / (rod * gravity * 0.5 * length))
    structure = make_structure(
        {"cart": (0, 0, 0), "end": (length * np.sin(angle), 0, -length * np.cos(angle))},
        [("rod", "bar", "cart", "end", 1e6, length)], rollers={"cart": "yz", "end": "y"},
        node_masses={"cart": cart}, masses={"rod": rod}, gravity=(0.0, 0.0, -gravity),
    )  # fmt: skip
    steps = 500 if rigid_bars else 4000
    simulation = Simulation(structure, period / steps, integrator, rigid_bars=rigid_bars, start=structure.nodes)
    before = simulation.energy().total
    centre = cart * structure.nodes[0, 0] + 0.5 * rod * structure.nodes[:, 0].sum()
    simulation.advance(steps // 4)
    quarter = simulation.state
    tilt = (quarter.nodes[1, 0] - quarter.nodes[0, 0]) / (length * angle)
    assert abs(tilt) < 1e-4  # the frequency to 1e-4 of a quarter turn
    momentum = cart * quarter.velocities[0, 0] + 0.5 * rod * quarter.velocities[:, 0].sum()
    assert abs(momentum) < 1e-12
    simulation.advance(steps - steps // 4)
    end = simulation.state
    assert end.nodes[1, 0] - end.nodes[0, 0] == pytest.approx(length * angle, rel=1e-6)
    assert cart * end.nodes[0, 0] + 0.5 * rod * end.nodes[:, 0].sum() == pytest.approx(centre, abs=1e-12)
    assert np.abs(end.nodes[0, 1:]).max() == 0.0
    assert end.nodes[1, 1] == 0.0
    swing = 0.25 * rod * gravity * length * angle**2
    if rigid_bars:
        assert abs(simulation.energy().total - before) < 1e-4 * swing


@pytest.mark.parametrize(("integrator", "rigid_bars"), [("rk4", True), ("rattle", False)])
def test_motion_in_the_plane_is_that_of_the_free_structure_in_space(integrator, rigid_bars):
    velocities = np.array([[0.3, 0, 0.1], [-0.2, 0, 0.5], [0.1, 0, -0.4], [0.2, 0, 0.3]])
    states, simulations = [], []
    for rollers in (PLANE, {}):
        structure = crossed(rollers)
        simulation = Simulation(structure, 1e-4, integrator, rigid_bars=rigid_bars, start=structure.nodes)
        simulation.set_motion(velocities)
        before = simulation.energy().total
        simulation.advance(1000)
        states.append(simulation.state)
        simulations.append((before, simulation.energy().total))
    planar, space = states
    assert np.abs(planar.nodes - crossed(PLANE).nodes).max() > 0.01
    np.testing.assert_allclose(planar.nodes, space.nodes, atol=1e-9)
    assert not planar.nodes[:, 1].any()
    assert simulations[0][1] == pytest.approx(simulations[0][0], rel=1e-5)
    mass = crossed(PLANE).mass_matrix()
    for axis in (0, 2):
        before = (mass @ velocities[:, axis]).sum()
        assert (mass @ planar.velocities[:, axis]).sum() == pytest.approx(before, abs=1e-10)


def test_a_push_along_a_held_axis_moves_nothing_along_it():
    structure = crossed(FEET, ("a",))
    simulation = Simulation(structure, 1e-3, "rattle", rigid_bars=False)
    simulation.apply_forces({"c": (0.0, 50.0, 0.0), "b": (0.0, 0.0, 50.0)})
    simulation.set_motion(np.ones((4, 3)))
    simulation.advance(20)
    state = simulation.state
    assert np.array_equal(state.nodes[structure.supports], structure.nodes[structure.supports])
    assert not state.velocities[structure.supports].any()
    assert state.velocities[structure.free // 3, structure.free % 3].all()


FILE = """
kind: structure
name: planar
nodes:
  a: {position: [0, 0, 0], fixed: true}
  b: {position: [1, 0, 0], fixed: [z, y]}
  c: {position: [1, 0, 1], fixed: [y]}
defaults: {bar: {stiffness: 1e5, rest_length: 1.4}, tendon: {stiffness: 1000, rest_length: 0.95}}
members:
  - {name: ac, kind: bar, nodes: [a, c]}
  - {name: ab, kind: tendon, nodes: [a, b]}
  - {name: bc, kind: tendon, nodes: [b, c]}
"""


def test_a_file_names_the_axes_along_which_nodes_are_held():
    structure = parse_robot(FILE, "here").structure
    assert structure.supports.tolist() == [[True] * 3, [False, True, True], [False, True, False]]
    assert structure.fixed.tolist() == [True, False, False]
    with pytest.raises(RobotFileError, match=r"nodes.b.fixed.*true, false or axes of the world.*\['q'\]"):
        parse_robot(FILE.replace("[z, y]", "[q]"), "here")
    with pytest.raises(RobotFileError, match=r"nodes.c.fixed.*with a ground"):
        parse_robot(FILE + "contact: {stiffness: 1e4, damping: 10, friction: 0.5}\n", "here")
    whole = parse_robot(FILE.replace("[z, y]", "[x, y, z]"), "here").structure
    assert whole.fixed.tolist() == [True, True, False]


def test_copies_hold_along_the_axes_that_they_are_turned_to():
    text = FILE + "repeat: {count: COUNT, about: z, nodes: {'e_$': {position: [3, 0, 0], fixed: [x]}}}\n"
    held = parse_robot(text.replace("COUNT", "4"), "here").structure.supports[3:]
    assert held.tolist() == [[True, False, False], [False, True, False]] * 2
    with pytest.raises(RobotFileError, match=r"nodes.e_2.fixed.*turned"):
        parse_robot(text.replace("COUNT", "3"), "here")


def test_what_knows_no_single_axes_refuses_them_by_node():
    structure = crossed(FEET, ("a",))
    nodes = structure.nodes
    for refused in (
        lambda: Simulation(structure, 1e-3, "implicit"),
        lambda: Simulation(structure, 1e-3, "rk4", model="minimal"),
        lambda: StructureLinearisation(structure).model(nodes, 0.0 * nodes, structure.rest_lengths),
        lambda: NodeDistanceModel(crossed(PLANE)),
    ):
        with pytest.raises(TensegrityError, match=r"node [ab] is held along y.*only.*fix it whole, or"):
            refused()


def test_matrices_and_mjcf_keep_the_axes(tmp_path):
    robot = parse_robot(FILE, "here")
    structure_matrices(robot).write(tmp_path / "out")
    assert read_matrices(tmp_path / "out").held.tolist() == robot.structure.supports.tolist()
    text = structure_mjcf(robot).text
    assert [axis for axis in ("b.x", "b.y", "b.z", "c.x", "c.y", "c.z") if f'"{axis}"' in text] == ["b.x", "c.x", "c.z"]


@pytest.mark.parametrize("rigid_bars", [True, False])
@pytest.mark.parametrize(("rollers", "fixed"), [(FEET, ("a",)), (PLANE, ()), ({}, ("a", "b", "c"))])
def test_frequencies_are_those_of_the_stiffness_matrix_on_the_motions_that_bars_and_supports_allow(
    rollers, fixed, rigid_bars
):
    loads = np.zeros((4, 3))
    loads[2] = 3.0, 0.0, -8.0
    if not fixed:
        loads[0] = -loads[2]
    structure = replace(crossed(rollers, fixed, gravity=(0, 0, 0)), loads=loads)
    shape = forward_kinematics(structure, rigid_bars=rigid_bars)
    found = [mode for mode in modes_at_rest(shape, rigid_bars=rigid_bars) if not mode.is_free]

    nodes, size = shape.nodes, shape.nodes.size
    stiffness = np.zeros((structure.free.size, structure.free.size))
    tangent_stiffness(
        nodes, structure.members, structure.stiffness, structure.laws, shape.lengths, shape.tensions,
        structure.rest_lengths, free_positions(structure.supports), stiffness,
    )  # fmt: skip
    bars = [k for k, kind in enumerate(structure.kinds) if kind == "bar"]
    held = np.zeros((len(bars), size))
    for row, k in enumerate(bars):
        i, j = structure.members[k]
        unit = (nodes[i] - nodes[j]) / shape.lengths[k]
        held[row, 3 * i : 3 * i + 3], held[row, 3 * j : 3 * j + 3] = unit, -unit
    basis = null_space(held[:, structure.free]) if rigid_bars else np.eye(structure.free.size)
    mass = np.kron(structure.mass_matrix(), np.eye(3))[np.ix_(structure.free, structure.free)]
    values = eigh(basis.T @ stiffness @ basis, basis.T @ mass @ basis, eigvals_only=True)
    expected = np.sqrt(values[values > 1e-6 * values[-1]]) / (2 * np.pi)
    np.testing.assert_allclose(sorted(mode.frequency for mode in found), expected, rtol=1e-6)
    assert all(mode.shape.shape == structure.free.shape for mode in found)
