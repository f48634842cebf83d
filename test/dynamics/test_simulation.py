"""Structures in time: energies, momenta, orders of the integrators, bars, spools, and bad input."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_dynamics import (
    Rollout,
    Simulation,
    forward_kinematics,
    load_robot,
    make_estimator,
    make_structure,
    parse_robot,
)
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robots.robot import Actuator, Robot
from tensegrity_dynamics.structures.dynamics.structure_simulator import INTEGRATORS

INTEGRATOR_NAMES = sorted(INTEGRATORS)


def prism(*, damping=0.0, gravity=(0.0, 0.0, 0.0), fixed=True):
    """A three-bar prism with a firm prestress: all tendons stay tight in the motions of these tests."""
    ring = [(np.cos(a), np.sin(a)) for a in np.radians([0.0, 120.0, 240.0])]
    top = [(np.cos(a), np.sin(a)) for a in np.radians([150.0, 270.0, 390.0])]
    nodes = {f"b{i}": (x, y, 0.0) for i, (x, y) in enumerate(ring)} | {
        f"t{i}": (x, y, 1.5) for i, (x, y) in enumerate(top)
    }
    rows = []
    for i in range(3):
        j = (i + 1) % 3
        rows += [
            (f"bar{i}", "bar", f"b{i}", f"t{i}", 1e4, 2.46), (f"side{i}", "tendon", f"b{j}", f"t{i}", 100.0, 1.3),
            (f"base{i}", "tendon", f"b{i}", f"b{j}", 100.0, 1.5), (f"top{i}", "tendon", f"t{i}", f"t{j}", 100.0, 1.5),
        ]  # fmt: skip
    names = [row[0] for row in rows]
    return make_structure(
        nodes, rows, fixed=["b0", "b1", "b2"] if fixed else [], masses={n: 0.6 for n in names if n.startswith("bar")},
        damping={n: damping for n in names if not n.startswith("bar")}, gravity=gravity,
    )  # fmt: skip


def swinging(integrator="rk4", time_step=None, size=0.3, **options):
    """The prism, set in motion."""
    simulation = Simulation(prism(**options), time_step, integrator)
    velocities = size * np.random.default_rng(0).normal(size=(6, 3))
    simulation.set_motion(velocities)
    return simulation


def worst_bar(simulation):
    """Largest relative error of a bar's length."""
    seen, structure = simulation.observe(), simulation.robot.structure
    return max(
        abs(seen.lengths[n] / rest - 1.0)
        for n, kind, rest in zip(structure.member_names, structure.kinds, structure.rest_lengths, strict=True)
        if kind == "bar"
    )


# -- energy -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("damping", [0.0, 2.0])
@pytest.mark.parametrize(("integrator", "order"), [("rk4", 4), ("rattle", 2), ("implicit", 2)])
def test_error_shrinks_at_the_order_of_the_integrator(integrator, order, damping):
    period = swinging().shortest_period
    reference = swinging("rk4", period / 1600, damping=damping)
    reference.advance(1600)
    errors = []
    for parts in (100, 200):
        simulation = swinging(integrator, period / parts, damping=damping)
        simulation.advance(parts)
        errors.append(np.max(np.abs(simulation.state.nodes - reference.state.nodes)))
    assert np.log2(errors[0] / errors[1]) > order - 0.4


@pytest.mark.parametrize(("integrator", "order"), [("rk4", 4), ("rattle", 2), ("implicit", 2)])
def test_energy_error_shrinks_at_least_at_the_order_of_the_integrator(integrator, order):
    period = swinging().shortest_period
    errors = []
    for parts in (25, 50):
        simulation = swinging(integrator, period / parts)
        start, worst = simulation.energy().total, 0.0
        for _ in range(parts):
            simulation.advance(4)
            worst = max(worst, abs(simulation.energy().total - start))
        errors.append(worst)
    assert np.log2(errors[0] / errors[1]) > order - 0.4


def test_symplectic_energy_error_stays_bounded_over_a_million_steps():
    """Relative to the elastic energy of the shape at rest, at a twentieth of the shortest period.

    A kick like this one excites all motions alike; of its own energy the fastest ones swing by (2 pi / 20)^2 / 8, which
    is what second order leaves, without growth. The slow motions of a plucked robot: `test_integrators`.
    """
    simulation = swinging("rattle", size=0.05)
    assert simulation.time_step == pytest.approx(simulation.shortest_period / 20)
    at_rest = Simulation(prism(), integrator="rattle").energy().elastic
    start, worst = simulation.energy().total, []
    for _ in range(20):
        largest = 0.0
        for _ in range(50):
            simulation.advance(1000)
            largest = max(largest, abs(simulation.energy().total - start) / at_rest)
        worst.append(largest)
    assert max(worst) < 1e-4
    assert max(worst[-5:]) < 2.0 * max(worst[:5])  # no growth
    assert worst_bar(simulation) < 1e-9


@pytest.mark.parametrize("integrator", INTEGRATOR_NAMES)
def test_bars_keep_their_length(integrator):
    simulation = swinging(integrator)
    for _ in range(20):
        simulation.advance(100)
        assert worst_bar(simulation) < 1e-12


@pytest.mark.parametrize("integrator", INTEGRATOR_NAMES)
def test_a_shape_at_rest_stays_at_rest(integrator):
    simulation = Simulation(prism(gravity=(0, 0, -9.81)), integrator=integrator)
    start = simulation.state.nodes
    simulation.advance(2000)
    np.testing.assert_allclose(simulation.state.nodes, start, atol=1e-10)


def test_damping_takes_out_what_the_energy_loses():
    simulation = swinging("rk4", damping=2.0)
    start = simulation.energy()
    simulation.advance(3000)
    end = simulation.energy()
    assert end.total < start.total - 0.01
    assert end.damping == pytest.approx(start.total - end.total, rel=2e-3)


def test_the_damped_motion_ends_at_the_static_shape():
    nodes = {
        "foot": (0, 0, 0),
        "tip": (0.2, 0.1, 0.97),
        "a": (-1, 0, 0),
        "b": (1, 0.2, 0),
        "c": (0, -2, 0),
        "d": (0, 2, 0),
    }
    rows = [("bar", "bar", "foot", "tip", 1e4, 1.0)]
    rows += [(f"guy_{end}", "tendon", end, "tip", 100.0, 1.0) for end in "abcd"]
    mast = make_structure(
        nodes, rows, fixed=["foot", "a", "b", "c", "d"], masses={"bar": 1.0},
        damping={f"guy_{end}": 2.0 for end in "abcd"}, gravity=(0, 0, -9.81),
    )  # fmt: skip
    simulation = Simulation(mast, integrator="rk4")
    simulation.set_motion(np.ones((6, 3)))
    simulation.advance(round(20.0 / simulation.time_step))
    static = forward_kinematics(mast, rigid_bars=True)
    np.testing.assert_allclose(simulation.state.nodes, static.nodes, atol=1e-9)


# -- momentum -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("integrator", INTEGRATOR_NAMES)
def test_a_free_structure_keeps_its_momenta(integrator):
    simulation = Simulation(prism(fixed=False), integrator=integrator)
    simulation.set_motion(np.random.default_rng(1).normal(size=(6, 3)))
    masses = simulation.robot.structure.mass_matrix()

    def momenta():
        state = simulation.state
        impulses = masses @ state.velocities
        return impulses.sum(axis=0), np.cross(state.nodes, impulses).sum(axis=0)

    linear, angular = momenta()
    simulation.advance(500)
    np.testing.assert_allclose(momenta()[0], linear, atol=1e-11)
    # RATTLE keeps the angular momentum exactly, the others to their order
    np.testing.assert_allclose(momenta()[1], angular, atol={"rattle": 1e-10, "rk4": 1e-5, "implicit": 1e-3}[integrator])


def test_a_thrown_bar_flies_a_parabola_and_turns_evenly():
    bar = make_structure(
        {"a": (0, 0, 0), "b": (1, 0, 0)}, [("bar", "bar", "a", "b", 1e3, 1.0)], masses={"bar": 2.0}, gravity=(0, 0, -10)
    )
    simulation = Simulation(bar, 1e-3, "rattle", start=bar.nodes)
    simulation.set_motion([[0, 1, 5], [0, -1, 5]])
    simulation.advance(1000)
    centre = simulation.state.nodes.mean(axis=0)
    np.testing.assert_allclose(centre, [0.5, 0, 0], atol=1e-9)
    arm = simulation.state.nodes[1] - centre
    np.testing.assert_allclose(arm, [0.5 * np.cos(2.0), -0.5 * np.sin(2.0), 0], atol=1e-5)


# -- bars as springs, stiff strings -------------------------------------------------------------------------------


def test_elastic_bars_swing_about_the_elastic_shape():
    structure = prism()
    simulation = Simulation(structure, rigid_bars=False)
    elastic = forward_kinematics(structure)
    np.testing.assert_allclose(simulation.state.nodes, elastic.nodes, atol=1e-9)
    simulation.advance(1000)
    np.testing.assert_allclose(simulation.state.nodes, elastic.nodes, atol=1e-9)


def test_implicit_steps_far_above_the_shortest_period_stay_stable():
    period = swinging().shortest_period
    simulation = swinging("implicit", 2.0 * period, size=0.1)
    start = simulation.energy().total
    simulation.advance(3000)
    assert simulation.energy().total <= start * (1.0 + 1e-6)
    explicit = swinging("rk4", 2.0 * period, size=0.1)
    with pytest.raises(TensegrityError, match="shorter steps"):
        explicit.advance(3000)


# -- spools -------------------------------------------------------------------------------------------------------


def winch(effort=50.0, rate=0.05):
    """A load on a string that a spool winds."""
    structure = make_structure(
        {"top": (0, 0, 0), "load": (0, 0, -1.0)}, [("string", "tendon", "top", "load", 500.0, 1.0)], fixed=["top"],
        node_masses={"load": 2.0}, damping={"string": 20.0}, gravity=(0, 0, -10.0),
    )  # fmt: skip
    return Robot("winch", structure, (Actuator("spool", "string", (0.5, 1.5), rate, effort),))


def test_a_spool_moves_at_its_rate_and_stops_at_its_goal():
    simulation = Simulation(winch())
    simulation.advance(round(1.0 / simulation.time_step), position={"spool": 0.9})
    assert simulation.observe().rest_lengths["string"] == pytest.approx(
        1.0 - 0.05 * simulation.observe().time, abs=1e-9
    )
    simulation.advance(round(2.0 / simulation.time_step))
    assert simulation.observe().rest_lengths["string"] == pytest.approx(0.9, abs=1e-12)


def test_a_spool_never_leaves_its_position_limits():
    simulation = Simulation(winch())
    simulation.advance(round(20.0 / simulation.time_step), velocity={"spool": 0.05})
    assert simulation.observe().rest_lengths["string"] == pytest.approx(1.5)


def test_a_spool_stalls_above_its_effort():
    simulation = Simulation(winch(effort=15.0))
    start = simulation.observe().rest_lengths["string"]
    simulation.advance(5000, position={"spool": 0.6})
    assert simulation.observe().tensions["string"] > 15.0
    assert simulation.observe().rest_lengths["string"] == start


def test_effort_mode_brings_the_tension_to_what_is_asked():
    robot = Robot("guyed", prism(damping=2.0), (Actuator("side0", "side0", (1.0, 1.6), 0.1, 100.0),))
    simulation = Simulation(robot)
    simulation.advance(round(20.0 / simulation.time_step), effort={"side0": 40.0})
    assert simulation.observe().tensions["side0"] == pytest.approx(40.0, rel=1e-3)


def test_spool_work_is_the_energy_put_in():
    simulation = Simulation(winch(), integrator="rk4")
    start = simulation.energy().total
    simulation.advance(round(4.0 / simulation.time_step), position={"spool": 0.85})
    energy = simulation.energy()
    assert energy.actuators == pytest.approx(20.0 * 0.15, rel=0.05)  # weight times lift
    assert energy.total - energy.actuators + energy.damping == pytest.approx(start, abs=1e-5)


@given(st.lists(st.tuples(st.sampled_from(["position", "velocity", "effort"]), st.floats(-100, 100)), max_size=6))
@settings(max_examples=25, deadline=None)
def test_whatever_is_commanded_limits_hold(commands):
    simulation = Simulation(winch())
    before = simulation.observe().rest_lengths["string"]
    for mode, value in commands:
        simulation.advance(50, **{mode: {"spool": value}})
        now = simulation.observe().rest_lengths["string"]
        assert 0.5 - 1e-12 <= now <= 1.5 + 1e-12
        assert abs(now - before) <= 0.05 * 50 * simulation.time_step * (1 + 1e-9)
        before = now


# -- the face -----------------------------------------------------------------------------------------------------


def test_the_same_inputs_give_the_same_bits():
    runs = []
    for _ in range(2):
        simulation = Simulation(load_robot("tensebot"), integrator="rattle")
        simulation.advance(300, position={"draw_1": 0.21})
        runs.append(simulation.state.nodes.tobytes())
    assert runs[0] == runs[1]


@pytest.mark.parametrize("integrator", INTEGRATOR_NAMES)
def test_one_call_and_many_give_the_same_bits(integrator):
    """With dampers and a spool that winds: what one step leaves is all that the next one needs."""
    one, many = (Simulation(load_robot("tensebot"), integrator=integrator) for _ in range(2))
    one.advance(50, position={"draw_1": 0.2})
    for _ in range(50):
        many.observe()
        many.step(position={"draw_1": 0.2})
    assert one.state.nodes.tobytes() == many.state.nodes.tobytes()


def test_reset_goes_back_to_the_start():
    simulation = Simulation(load_robot("tensebot"))
    start = simulation.state
    simulation.advance(200, position={"draw_1": 0.2})
    simulation.reset()
    assert simulation.state.time == 0.0
    np.testing.assert_array_equal(simulation.state.nodes, start.nodes)
    np.testing.assert_array_equal(simulation.state.rest_lengths, start.rest_lengths)


def test_a_free_node_without_mass_is_named():
    structure = make_structure({"a": (0, 0, 0), "b": (1, 0, 0)}, [("s", "tendon", "a", "b", 1.0, 0.9)], fixed=["a"])
    with pytest.raises(TensegrityError, match="node b has no mass"):
        Simulation(structure)


def test_wrong_input_is_refused_with_the_nearest_name():
    robot = load_robot("tensebot")
    with pytest.raises(TensegrityError, match="'rattle'"):
        Simulation(robot, integrator="rattel")
    with pytest.raises(TensegrityError, match="time_step"):
        Simulation(robot, time_step=-1.0)
    simulation = Simulation(robot)
    with pytest.raises(TensegrityError, match="'draw_1'"):
        simulation.step(position={"draw1": 0.2})
    with pytest.raises(TensegrityError, match="finite"):
        simulation.step(position={"draw_1": float("nan")})


# -- forces and air ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("integrator", INTEGRATOR_NAMES)
def test_applied_forces_do_the_work_that_the_energy_gains(integrator):
    simulation = Simulation(prism(), swinging().shortest_period / 400, integrator)
    start = simulation.energy().total
    simulation.apply_forces({"t0": (5.0, 2.0, -3.0)})
    simulation.advance(1000)
    energy = simulation.energy()
    assert energy.forces > 0.05
    assert energy.total - energy.forces == pytest.approx(start, abs=1e-3)
    simulation.reset()
    simulation.advance(100)
    assert simulation.energy().total == pytest.approx(start, abs=1e-9)


@pytest.mark.parametrize("integrator", INTEGRATOR_NAMES)
def test_a_steady_force_ends_in_the_static_shape_under_it(integrator):
    structure, forces = prism(damping=20.0), {"t0": (0.5, 0.2, -0.3)}
    simulation = Simulation(structure, integrator=integrator, air_damping=1.0)
    simulation.apply_forces(forces)
    simulation.advance(duration=30.0)
    static = forward_kinematics(structure, forces=forces, rigid_bars=True)
    np.testing.assert_allclose(simulation.state.nodes, static.nodes, atol=1e-8)


@pytest.mark.parametrize("integrator", INTEGRATOR_NAMES)
def test_air_slows_a_free_mass_exponentially(integrator):
    mass = make_structure({"a": (0, 0, 0)}, [], node_masses={"a": 2.0})
    simulation = Simulation(mass, 1e-3, integrator, start=mass.nodes, air_damping=0.5)
    simulation.set_motion([[1.0, 0.0, 0.0]])
    simulation.advance(2000)
    assert simulation.state.velocities[0, 0] == pytest.approx(np.exp(-0.5), rel=1e-6)
    assert simulation.energy().damping == pytest.approx(1.0 - np.exp(-1.0), rel=1e-5)


# -- refusals ---------------------------------------------------------------------------------------------------------


def test_bars_that_depend_on_each_other_are_named():
    square = {"a": (0, 0, 0), "b": (1, 0, 0), "c": (1, 1, 0), "d": (0, 1, 0)}
    edges = ("ab", "bc", "cd", "da", "ac", "bd")
    lengths = {"ac": np.sqrt(2.0), "bd": np.sqrt(2.0)}
    rows = [(name, "bar", name[0], name[1], 1e4, lengths.get(name, 1.0)) for name in edges]
    rows.append(("free", "bar", "a", "e", 1e4, 1.0))
    structure = make_structure(square | {"e": (0, 0, 1)}, rows, node_masses=dict.fromkeys("abcde", 1.0))
    with pytest.raises(TensegrityError, match=r"\(ab, bc, cd, da, ac, bd\).*rigid_bars=False"):
        Simulation(structure, start=structure.nodes)
    Simulation(structure, start=structure.nodes, rigid_bars=False).advance(10)


def test_a_rod_of_variable_length_is_refused_by_the_implicit_method():
    robot = Robot("odd", prism(), (Actuator("push", "bar0", (2.0, 3.0), 0.1, 100.0),))
    with pytest.raises(TensegrityError, match="actuator push drives bar0"):
        Simulation(robot, integrator="implicit")


@pytest.mark.parametrize(
    "wrong",
    [{"steps": -1}, {"steps": 1.5}, {"steps": 1.0}, {"duration": float("nan")}, {}, {"steps": 1, "duration": 1.0}],
)
def test_wrong_numbers_of_steps_are_refused(wrong):
    with pytest.raises(TensegrityError, match="steps"):
        Simulation(winch()).advance(**wrong)


@pytest.mark.parametrize("take", [Simulation, forward_kinematics])
def test_a_name_is_no_robot_and_the_message_says_how_to_get_one(take):
    with pytest.raises(TensegrityError, match="load_robot"):
        take("three_prism")


def test_the_shape_of_a_mechanism_is_refused_with_what_finds_it():
    with pytest.raises(TensegrityError, match="make_estimator"):
        forward_kinematics(load_robot("single_strut"))


def test_a_command_that_is_partly_wrong_changes_nothing():
    robot = load_robot("tensebot")
    simulation, untouched = Simulation(robot), Simulation(robot)
    with pytest.raises(TensegrityError, match="'draw_1'"):
        simulation.advance(5, position={"draw_2": 0.2}, velocity={"draw1": 0.01})
    with pytest.raises(TensegrityError, match="two modes"):
        simulation.advance(5, position={"draw_2": 0.2}, velocity={"draw_2": 0.01})
    simulation.advance(20)
    untouched.advance(20)
    assert simulation.state.nodes.tobytes() == untouched.state.nodes.tobytes()


def test_forces_and_air_that_are_not_finite_are_refused():
    with pytest.raises(TensegrityError, match="air_damping"):
        Simulation(prism(), air_damping=float("nan"))
    with pytest.raises(TensegrityError, match="node t0 is not finite"):
        Simulation(prism()).apply_forces({"t0": (0.0, float("inf"), 0.0)})


def test_the_report_names_integrator_step_and_shortest_period():
    simulation = Simulation(prism(), integrator="rattle")
    assert simulation.report.startswith("rattle, steps of") and "0.05 of the shortest period" in simulation.report


# -- large structures -------------------------------------------------------------------------------------------------


def net(size):
    """A square net of strings, held at its edge."""
    spots = {f"n{i}_{j}": (float(i), float(j), 0.0) for i in range(size) for j in range(size)}
    here = [(i, j) for i in range(size) for j in range(size)]
    rows = [(f"x{i}_{j}", "tendon", f"n{i}_{j}", f"n{i + 1}_{j}", 100.0, 0.9) for i, j in here if i + 1 < size]
    rows += [(f"y{i}_{j}", "tendon", f"n{i}_{j}", f"n{i}_{j + 1}", 90.0, 0.9) for i, j in here if j + 1 < size]
    edge = [f"n{i}_{j}" for i in range(size) for j in range(size) if {i, j} & {0, size - 1}]
    return make_structure(spots, rows, fixed=edge, node_masses=dict.fromkeys(spots, 0.1), gravity=(0.0, 0.0, -1.0))


def test_sparse_and_dense_shortest_periods_agree(monkeypatch):
    structure = net(9)
    dense = Simulation(structure, start=structure.nodes).shortest_period
    monkeypatch.setattr("tensegrity_dynamics.structures.dynamics.structure_simulator.MAX_DENSE_COORDINATES", 10)
    sparse = Simulation(structure, start=structure.nodes).shortest_period
    assert 0.0 <= dense / sparse - 1.0 < 1e-3


def test_a_net_of_a_thousand_nodes_keeps_its_energy_and_the_implicit_method_says_where_it_ends():
    structure = net(32)
    simulation = Simulation(structure, integrator="rattle", start=structure.nodes)
    start = simulation.energy()
    simulation.advance(500)
    energy = simulation.energy()
    assert energy.kinetic > 0.1
    assert energy.total == pytest.approx(start.total, abs=1e-3 * energy.kinetic)
    with pytest.raises(TensegrityError, match="2700; use rk4 or rattle"):
        Simulation(structure, integrator="implicit", start=structure.nodes)


@pytest.mark.parametrize("how", [deepcopy, lambda simulation: pickle.loads(pickle.dumps(simulation))])
def test_copy_of_a_simulation_goes_on_as_the_original_and_leaves_it_alone(how):
    simulation = swinging(damping=1.0)
    simulation.advance(20)
    copied, nodes = how(simulation), simulation.state.nodes
    copied.advance(30)
    assert np.array_equal(simulation.state.nodes, nodes)
    simulation.advance(30)
    assert np.array_equal(simulation.state.nodes, copied.state.nodes)
    assert simulation.energy() == copied.energy()


def test_what_is_no_number_is_refused_in_a_sentence():
    simulation = Simulation(load_robot("three_prism"))
    name = simulation.robot.actuators[0].name
    for call, words in (
        (lambda: Simulation(prism(), "1ms"), "time_step is '1ms'"),
        (lambda: Simulation(prism(), start="file"), "give nodes"),
        (lambda: simulation.advance(1, position={name: "0.5"}), "give a finite number"),
        (lambda: simulation.advance(1, position={name: np.array([0.5])}), "give a finite number"),
        (lambda: simulation.advance(1, position=[0.5]), "by actuator name"),
        (lambda: simulation.advance(duration="1s"), "duration is '1s'"),
        (lambda: simulation.step_arrays(steps=-1), "steps is -1"),
        (lambda: make_estimator(simulation.robot).solve([0.5]), "by actuator name"),
        (lambda: parse_robot(None), "the text of a robot file is needed"),
        (lambda: simulation.advance(1, effort=np.zeros(9)), "by actuator name"),
        (lambda: forward_kinematics(simulation.robot, {name: [1, 2]}), rf"rest length of {name} is \[1, 2\]; give one"),
        (lambda: Rollout(simulation.robot, 2).run("x", period=0.01), "set_points must be real numbers; found 'x'"),
        (lambda: Rollout(simulation.robot, 2).run(np.zeros((1, 6)), "speed", period=0.01), "There is no mode 'speed'"),
    ):
        with pytest.raises(TensegrityError, match=words):
            call()


@pytest.mark.parametrize(("robot", "body"), [("three_prism", "top_1"), ("single_strut", "strut")])
def test_loads_that_are_no_numbers_are_refused_in_a_sentence(robot, body):
    simulation = Simulation(load_robot(robot))
    with pytest.raises(TensegrityError, match=f"force on (node|body) {body} in N.* must be real numbers; found 'abc'"):
        simulation.apply_forces({body: "abc"})
    with pytest.raises(TensegrityError, match="payload tool: mass is '1 kg'; give a finite number of kg"):
        simulation.attach("tool", body, "1 kg")
    with pytest.raises(TensegrityError, match="payload tool: its position in m must be real numbers; found 'up'"):
        simulation.attach("tool", body, 1.0, "up")
