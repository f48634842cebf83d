"""Rods with spread masses, in nodes and in five coordinates, the tension law, and what moves rods."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_dynamics import Actuator, Robot, Rollout, Simulation, load_robot, make_structure, parse_robot, start_up
from tensegrity_dynamics.errors import NoEquilibriumError, RobotFileError, TensegrityError
from tensegrity_dynamics.structures.dynamics.minimal_rods import make_rods
from tensegrity_dynamics.structures.dynamics.point_masses import make_network
from tensegrity_dynamics.structures.dynamics.rod_masses import inverse_mass_matrix
from tensegrity_dynamics.structures.tension_law import tension_law
from tensegrity_tools.experiments.six_bar import neutral, thrown


def single_rod(masses=1.0, ends=(0.0, 0.0), smoothness=0.0, fixed=("top",), tilt=0.4):
    """A rod of 1 m on a cable, weightless."""
    u = np.array([np.cos(tilt), 0.0, np.sin(tilt)])
    nodes = {"top": (0.2, 0.1, 1.5), "up": 0.5 * u, "down": -0.5 * u}
    rows = [("rod", "bar", "up", "down", 1e6, 1.0), ("cable", "tendon", "top", "up", 50.0, 0.8)]
    return make_structure(
        nodes, rows, fixed=fixed, masses={"rod": masses}, node_masses=dict(zip(("up", "down"), ends, strict=True)),
        smoothness=smoothness,
    )  # fmt: skip


def six_bar(**changes):
    body = load_robot("six_bar").structure
    return replace(body, gravity=np.zeros(3), ground=None, damping=np.zeros(30), **changes)


def flown(body, duration=0.3, spin=(3.2, 2.4, 0.0), step=2e-4, integrator="rk4", **options):
    simulation = Simulation(body, step, integrator, start=body.nodes, **options)
    simulation.set_motion(np.cross(spin, body.nodes - body.nodes.mean(axis=0)) * ~body.fixed[:, None])
    simulation.advance(duration=duration)
    return simulation


@given(st.floats(0.1, 5.0), st.floats(0.0, 3.0), st.floats(0.0, 3.0))
@settings(max_examples=20, deadline=None)
def test_the_inverse_of_a_rods_mass_block_is_that_of_the_printed_block(m, a, b):
    network = make_network(single_rod(m, (a, b)))
    block = np.array([[m / 3 + a, m / 6], [m / 6, m / 3 + b]])
    np.testing.assert_allclose(inverse_mass_matrix(network)[1:, 1:] @ block, np.eye(2), atol=1e-12)


def test_a_rod_about_its_fixed_end_swings_with_a_third_of_its_mass():
    """Small swing of a uniform rod of 1 m: the pendulum of 2/3 m; with all mass at its ends: of 1 m."""
    rod = make_structure(
        {"top": (0, 0, 0), "tip": (np.sin(1e-3), 0, -np.cos(1e-3))}, [("rod", "bar", "top", "tip", 1e6, 1.0)],
        fixed=["top"], masses={"rod": 2.0}, gravity=(0, 0, -9.81),
    )  # fmt: skip
    for options, length in (({}, 2 / 3), ({"model": "minimal"}, 2 / 3), ({"rod_mass": "ends"}, 1.0)):
        simulation = Simulation(rod, 1e-3, start=rod.nodes, **options)
        simulation.advance(duration=0.4)
        expected = 1e-3 * np.cos(np.sqrt(9.81 / length) * 0.4)
        assert simulation.state.nodes[1, 0] == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("parts", [(1.0, 0.0, 0.0), (0.0, 0.5, 0.5), (0.6, 0.3, 0.1)])
def test_both_models_fly_alike_whatever_the_rods_inertia(parts):
    body = six_bar()
    ends = np.zeros(12)
    ends[body.members[:6, 0]], ends[body.members[:6, 1]] = parts[1:]
    body = replace(body, masses=np.where(body.unilateral, 0.0, parts[0]), node_masses=ends)
    points, rods = flown(body), flown(body, model="minimal")
    np.testing.assert_allclose(points.state.nodes, rods.state.nodes, atol=1e-9)
    assert points.energy().total == pytest.approx(rods.energy().total, rel=1e-8)
    own = make_rods(body)
    own.q[:], own.rates[:], own.chart[:] = (getattr(rods.simulator.rods, x) for x in ("q", "rates", "chart"))
    linear = np.where(own.turns, 0.0, own.mass) * np.sum(own.rates[:, :3] ** 2, axis=1)  # of the coordinates alone
    turning = own.inertia * (own.rates[:, 4] ** 2 + (own.rates[:, 3] * np.sin(own.q[:, 4])) ** 2)
    kinetic = 0.5 * float(np.sum(linear + turning + own.unit_inertia * own.rate**2))
    assert kinetic == pytest.approx(rods.energy().kinetic, rel=1e-12)


def test_a_rod_led_through_its_polar_axis_changes_its_chart_and_nothing_else():
    body = single_rod(tilt=1.2)
    points = flown(body, 0.4, (0.0, -4.0, 0.0))
    chart = flown(body, 0.4, (0.0, -4.0, 0.0), model="minimal")
    np.testing.assert_allclose(chart.state.nodes, points.state.nodes, atol=1e-9)
    assert "rod has changed its polar axis" in chart.note
    guard = flown(body, 0.4, (0.3, -4.0, 0.0), model="minimal", vertical="guard")
    assert "guarded at the vertical" in guard.note
    assert flown(body, 0.001, model="minimal", vertical="none").note == ""


def test_runge_kutta_keeps_angular_momentum_in_both_models_and_loses_what_its_order_says():
    """Of a mode of angular frequency w a step h of any method with four stages and order four leaves the amplitude
    |R(i w h)|, R the first five terms of the exponential: about 1 - (w h)^6 / 144."""
    body = neutral(1.0, 1.0, 500.0, 50.0)
    nodes, _ = thrown(body, 0.005)
    still = Simulation(body, start=body.nodes)
    step, count = still.time_step, 1000
    model = still.linearise("lengths", reduced=True)
    half = model.state.size // 2
    squares, modes = np.linalg.eigh(-model.dense_matrix[half:, :half])
    shape = np.linalg.lstsq(model.lift.toarray()[: nodes.size, :half], (nodes - body.nodes).ravel(), rcond=None)[0]
    angle = 1j * step * np.sqrt(np.maximum(squares, 0.0))
    left = np.abs(1.0 + angle + angle**2 / 2.0 + angle**3 / 6.0 + angle**4 / 24.0) ** (2 * count)
    expected = float(np.sum(0.5 * squares * (modes.T @ shape) ** 2 * (1.0 - left)))
    simulation = Simulation(body, step, "rk4", start=nodes)
    simulation.advance(count)
    assert -simulation.energy_error == pytest.approx(expected, rel=0.1)
    masses = body.mass_matrix()
    for name in ("point_masses", "minimal"):
        simulation = Simulation(body, 2.0 * step, start=nodes, model=name)
        simulation.set_motion(np.cross([3.2, 2.4, 0.0], nodes - nodes.mean(axis=0)))
        kept = []
        for _ in range(2):
            state = simulation.state
            kept.append(np.cross(state.nodes, masses @ state.velocities).sum(axis=0))
            simulation.advance(300)
        np.testing.assert_allclose(kept[1], kept[0], atol=1e-12)


def test_minimal_coordinates_need_every_free_node_on_one_bar_and_name_the_node():
    chain = make_structure(
        {"a": (0, 0, 0), "b": (1, 0, 0), "c": (1, 1, 0)},
        [("ab", "bar", "a", "b", 1, 1.0), ("bc", "bar", "b", "c", 1, 1.0)],
        masses={"ab": 1.0, "bc": 1.0},
    )  # fmt: skip
    with pytest.raises(TensegrityError, match=r"node b is on 2 bars \(ab, bc\)"):
        Simulation(chain, model="minimal", start=chain.nodes)
    loose = single_rod(fixed=())
    loose = replace(loose, node_masses=np.ones(3))
    with pytest.raises(TensegrityError, match="node top is on no bar"):
        Simulation(loose, model="minimal", start=loose.nodes)
    with pytest.raises(TensegrityError, match="no option 'modell' for robots of kind 'structure'"):
        Simulation(chain, modell="minimal")


@given(st.floats(-0.3, 0.3), st.floats(1e-3, 0.1))
@settings(max_examples=40, deadline=None)
def test_tension_is_the_slope_of_energy_and_its_slope_the_curvature(stretch, smoothness):
    h = 1e-6
    for law in (0.0, -smoothness):
        low, here, high = (tension_law(law, 300.0, stretch + x) for x in (-h, 0.0, h))
        assert (high[2] - low[2]) / (2 * h) == pytest.approx(here[0], rel=1e-6, abs=1e-6)
        assert (high[0] - low[0]) / (2 * h) == pytest.approx(here[1], rel=1e-5, abs=1e-5)
    root = np.hypot(stretch, smoothness)
    assert here[0] == pytest.approx(300.0 * 0.5 * (root + stretch), rel=1e-9, abs=1e-12)  # 003, 3.18
    hard = tension_law(1.0, 300.0, stretch)
    assert hard == (
        pytest.approx(300.0 * max(stretch, 0.0)),
        300.0 * (stretch > 0),
        pytest.approx(150.0 * max(stretch, 0.0) ** 2),
    )


def test_a_softplus_structure_balances_in_statics_where_it_rests_in_motion_and_keeps_its_energy():
    body = replace(six_bar(), smoothness=0.02)
    simulation = flown(body, 0.5)
    assert abs(simulation.energy_error) < 1e-7
    heavy = replace(body, damping=np.where(body.unilateral, 10.0, 0.0))
    # to first order no cable is stretched where parallel rods move apart: the air damps that
    simulation = Simulation(heavy, 2e-3, start=body.nodes * 1.01, air_damping=1.0)
    simulation.advance(duration=20.0)
    found = Simulation(heavy).state.nodes
    apart = [np.linalg.norm(n[:, None] - n[None, :], axis=2) for n in (simulation.state.nodes, found)]
    np.testing.assert_allclose(apart[0], apart[1], atol=1e-8)


def test_bars_held_by_gains_stay_and_with_the_sign_of_3_37_run_away():
    body = six_bar()
    pairs = body.members[:6]

    def gap(gains, duration):
        nodes = flown(body, duration, step=1e-3, stabilisation=gains).state.nodes
        return np.abs(np.linalg.norm(nodes[pairs[:, 0]] - nodes[pairs[:, 1]], axis=1) - 1.0).max()

    assert gap((1000.0, 60.0), 0.5) < 1e-9
    assert gap((-1000.0, -60.0), 0.5) > 1e-3
    with pytest.raises(TensegrityError, match="integrator rk4"):
        Simulation(body, integrator="rattle", stabilisation=(1.0, 1.0), start=body.nodes)


@pytest.mark.parametrize(
    ("integrator", "model"), [("rk4", "point_masses"), ("rattle", "point_masses"), ("rk4", "minimal")]
)
def test_a_driven_rod_has_the_length_and_the_work_that_its_motion_takes(integrator, model):
    robot = Robot("jack", single_rod(), (Actuator("push", "rod", (0.8, 1.3), 0.2, 500.0, motion="prismatic"),))
    errors = []
    for step in (1e-3, 2.5e-4):
        simulation = Simulation(robot, step, integrator, start=robot.model.nodes, model=model)
        simulation.set_motion(np.array([np.zeros(3), [0.0, 0.5, 0.2], [0.0, -0.3, 0.1]]))
        before = simulation.energy().balance
        for target, length in ((1.1, 1.1), (0.9, 1.0)):  # the second takes longer than it is given
            simulation.advance(duration=0.5, position={"push": target})
            nodes = simulation.state.nodes
            assert np.linalg.norm(nodes[1] - nodes[2]) == pytest.approx(length, abs=1e-9)
        assert abs(simulation.energy().actuators) > 0.1
        errors.append(abs(simulation.energy().balance - before))
    assert errors[1] < 2e-5 and errors[1] < errors[0] / 8  # of second order or better


def test_both_models_move_alike_with_rods_that_are_driven():
    """Rods of uneven mass and cables driven together, some of them against their effort, spinning on the ground."""
    body = load_robot("six_bar").structure
    ends = np.zeros(12)
    ends[body.members[:6, 0]], ends[body.members[:6, 1]] = 0.3, 0.1
    body = replace(body, node_masses=ends)
    drives = tuple(
        Actuator(name, name, (0.3, 1.5), 0.3, 60.0 if k < 3 else 400.0) for k, name in enumerate(body.member_names)
    )
    found = []
    for model in ("point_masses", "minimal"):
        simulation = Simulation(Robot("legs", body, drives), 5e-4, "rk4", model=model, start=body.nodes)
        simulation.set_motion(np.cross((2.0, 1.0, -1.0), body.nodes - body.nodes.mean(axis=0)))
        for ahead in (0.03, 0.02):
            goals = {each.name: (1.0 + ahead if k < 6 else 0.5) for k, each in enumerate(drives)}
            simulation.advance(duration=0.1, position=goals)
        found.append(simulation)
    points, rods = (each.state for each in found)
    np.testing.assert_allclose(rods.nodes, points.nodes, atol=1e-9)
    np.testing.assert_allclose(rods.velocities, points.velocities, atol=1e-8)
    moved = points.rest_lengths[:6] - 1.0
    assert np.abs(moved[3:]).min() > 0.005 and (np.abs(moved[:3]) < 0.03).all()
    lengths = np.linalg.norm(rods.nodes[body.members[:6, 0]] - rods.nodes[body.members[:6, 1]], axis=1)
    np.testing.assert_allclose(lengths, rods.rest_lengths[:6], atol=1e-12)
    assert found[1].energy().actuators == pytest.approx(found[0].energy().actuators, rel=1e-9)
    assert found[1].observe().tensions["rod_4"] == pytest.approx(found[0].observe().tensions["rod_4"], rel=1e-7)


def jack(**changes):
    """A robot file of one rod on a cable, the rod driven."""
    fields = {"limits": "[0.8, 1.3]", "law": "softplus", "ends": "[top, up]", **changes}
    return f"""
kind: structure
name: jack
tension: {{law: {fields["law"]}, smoothness: "2 mm"}}
nodes:
  top: {{position: [0, 0, 2], fixed: true}}
  up: {{position: [0, 0, 1]}}
  down: {{position: [0, 0, 0]}}
members:
  - {{name: rod, kind: bar, nodes: [up, down], rest_length: 1, stiffness: 1.0e+6, mass: 1}}
  - {{name: cable, kind: tendon, nodes: {fields["ends"]}, rest_length: 0.9, stiffness: 500}}
actuators:
  - {{drives: rod, position: {fields["limits"]}, rate: "0.2 m/s", effort: 100}}
"""


def test_robot_files_state_the_law_of_tension_and_rods_that_are_driven():
    robot = parse_robot(jack())
    assert robot.structure.smoothness == 0.002 and robot.structure.laws.tolist() == [0.0, -0.002]
    assert robot.actuators[0].motion == "prismatic"
    for wrong, message in (
        ({"limits": "[1.1, 1.3]"}, "rod"), ({"limits": "[0, 1.3]"}, r"actuators\[0\].*stays above zero"),
        ({"law": "soft"}, "tension"), ({"ends": "[up, down]"}, "ends of rod already"),
    ):  # fmt: skip
        with pytest.raises(RobotFileError, match=message):
            parse_robot(jack(**wrong))
    endless = replace(robot, actuators=(replace(robot.actuators[0], position=(-0.1, 1.3)),))
    with pytest.raises(TensegrityError, match="rod, a bar, whose length stays above zero"):
        Simulation(endless)


def test_steps_with_arrays_are_the_steps_with_names():
    robot = load_robot("six_bar")
    named, quick = (Simulation(robot, 1e-3, "rattle", start=robot.structure.nodes) for _ in range(2))
    points = np.linspace(0.45, 0.55, 24)
    for _ in range(5):
        named.step(position=dict(zip((each.name for each in robot.actuators), points, strict=True)))
        nodes, velocities = quick.step_arrays(points)
    assert np.array_equal(named.state.nodes, nodes) and np.array_equal(named.state.velocities, velocities)
    assert quick.time == named.time
    with pytest.raises(ValueError, match="read-only"):
        nodes[0, 0] = 0.0
    for wrong, message in ((points[:3], "shape"), (np.where(np.arange(24) == 2, np.nan, points), "cable_3 is nan")):
        with pytest.raises(TensegrityError, match=message):
            quick.step_arrays(wrong)


def test_members_of_a_rollout_move_as_simulations_of_their_own():
    robot = load_robot("six_bar")
    stiffness = np.array([robot.structure.stiffness * x for x in (1.0, 0.8, 1.2)])
    commands = 0.5 + 0.02 * np.sin(np.arange(3 * 2 * 24)).reshape(3, 2, 24)
    rollout = Rollout(
        robot, 3, 1e-3, parameters={"stiffness": stiffness, "ground.friction": [0.1, 0.5, 0.9]},
        start=robot.structure.nodes, threads=2,
    )  # fmt: skip
    result = rollout.run(commands, period=0.01)
    assert result.configurations.shape == (3, 3, 12, 3) and not result.problems
    model = replace(
        robot.structure, stiffness=stiffness[1], ground=replace(robot.structure.ground, friction=0.5)
    )  # fmt: skip
    alone = Simulation(replace(robot, model=model), 1e-3, "rattle", start=robot.structure.nodes)
    for points in commands[1]:
        nodes, _ = alone.step_arrays(points, steps=10)
    assert np.array_equal(result.configurations[1, -1], nodes)
    with pytest.raises(TensegrityError, match=r"stifness.*stiffness"):
        Rollout(robot, 1, 1e-3, parameters={"stifness": [1.0]})
    with pytest.raises(TensegrityError, match="first axis must be 3"):
        Rollout(robot, 3, 1e-3, parameters={"stiffness": stiffness[:2]})


def test_start_up_from_the_icosahedron_loses_what_the_geometry_says():
    """T0 - (2 / (1 + sqrt 5) - sqrt(3/8)) k L in every cable; refused where rest lengths would be negative."""
    body = six_bar()
    golden, cable = 2.0 / (1.0 + np.sqrt(5.0)), np.sqrt(3.0 / 8.0)
    nodes = np.array(body.nodes)
    centre = nodes.mean(axis=0)
    for pair in body.members[:6]:
        middle = nodes[pair].mean(axis=0) - centre
        nodes[pair] += (0.5 * golden / np.linalg.norm(middle) - 1.0) * middle
    done = start_up(body, 40.0, start=nodes)
    np.testing.assert_allclose(done.tensions[6:], 40.0 - (golden - cable) * 500.0, atol=1e-6 * 500.0)
    assert not done.slack and done.peaks > 0
    with pytest.raises(TensegrityError, match=r"cable_1 .* rest length would be negative"):
        start_up(body, 400.0, start=nodes)
    with pytest.raises(NoEquilibriumError, match="velocities were not set to zero"):
        start_up(body, 40.0, start=nodes, zero_velocities=False, maximum_steps=300)


def test_a_node_on_two_bars_is_refused_by_the_minimal_model_with_file_and_line(tmp_path) -> None:
    """Also of a part that a file repeats; a model that has no file is refused all the same."""
    path = tmp_path / "angle.yaml"
    path.write_text("""
kind: structure
name: angle
nodes: {a: {position: [0, 0, 0]}, b: {position: [1, 0, 0]},
  c: {position: [1, 1, 0]}}
defaults: {bar: {stiffness: 1.0e+6, rest_length: 1, mass: 1}, tendon: {stiffness: 100, rest_length: 1}}
members:
  - {name: r1, kind: bar, nodes: [a, b]}
  - {name: r2, kind: bar, nodes: [b, c]}
  - {name: t, kind: tendon, nodes: [a, c]}
""")
    robot = load_robot(path)
    with pytest.raises(TensegrityError, match=r"angle.yaml:4: nodes.b: node b is on 2 bars \(r1, r2\)"):
        Simulation(robot, model="minimal", start=robot.structure.nodes)
    with pytest.raises(TensegrityError, match=r"^node b is on 2 bars"):
        Simulation(robot.structure, model="minimal", start=robot.structure.nodes)
