"""The integrators where they are hard pressed: stiff strings, slack and tight, and what each of them damps."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tensegrity_dynamics import Simulation, forward_kinematics, load_robot, make_structure


def pendulum(kind="tendon", stiffness=1e6, damping=0.0, start=(0.6, 0.0, -0.8)):
    """A mass of 1 kg on a string or bar of 1 m, let go at `start`."""
    return make_structure(
        {"top": (0, 0, 0), "mass": start}, [("string", kind, "top", "mass", stiffness, 1.0)], fixed=["top"],
        node_masses={"mass": 1.0}, damping={"string": damping}, gravity=(0.0, 0.0, -9.81),
    )  # fmt: skip


def run(structure, step, integrator, duration, **options):
    simulation = Simulation(structure, step, integrator, start=structure.nodes, **options)
    simulation.advance(duration=duration)
    return simulation


@pytest.mark.parametrize("thousands", [100, pytest.param(1000, marks=pytest.mark.long)])
def test_a_plucked_robot_keeps_the_energy_of_its_motion_over_symplectic_steps(thousands):
    """Let go from where 9 N held it, without damping: the error stays below 1e-4 of the kinetic energy itself."""
    robot = load_robot("tensebot")
    free = replace(robot.structure, damping=np.zeros_like(robot.structure.damping))
    plate = [free.node_names[i] for i in robot.output.nodes]
    held = forward_kinematics(free, forces=dict.fromkeys(plate, (3.0, 0.0, 0.0)), rigid_bars=True)
    simulation = Simulation(replace(robot, model=free), integrator="rattle", start=held)
    assert simulation.time_step == pytest.approx(simulation.shortest_period / 20)
    bars = [k for k, kind in enumerate(free.kinds) if kind == "bar" and not free.fixed[free.members[k]].all()]
    start, kinetic, error, gap = simulation.energy().total, 0.0, 0.0, 0.0
    for _ in range(thousands):
        simulation.advance(1000)
        energy, nodes = simulation.energy(), simulation.state.nodes
        kinetic, error = max(kinetic, energy.kinetic), max(error, abs(energy.total - start))
        lengths = np.linalg.norm(nodes[free.members[bars, 0]] - nodes[free.members[bars, 1]], axis=1)
        gap = max(gap, np.max(np.abs(lengths / free.rest_lengths[bars] - 1.0)))
    assert kinetic > 0.01
    assert error < 1e-4 * kinetic
    assert gap < 1e-9


@pytest.mark.parametrize("stiffness", [1e6, 1e8, 1e10])
def test_implicit_swings_on_a_stiff_string_as_on_a_bar(stiffness):
    """At 1e10 N/m a step of 2 ms is 30 shortest periods."""
    exact = run(pendulum("bar"), 1e-4, "rk4", 1.0)
    swung = run(pendulum(stiffness=stiffness), 2e-3, "implicit", 1.0)
    np.testing.assert_allclose(swung.state.nodes, exact.state.nodes, atol=5e-5)
    assert swung.observe().tensions["string"] == pytest.approx(exact.observe().tensions["string"], rel=1e-3)


def test_implicit_is_of_second_order_far_above_the_shortest_period():
    exact = run(pendulum("bar"), 1e-4, "rk4", 1.0).state.nodes
    errors = [np.abs(run(pendulum(stiffness=1e10), h, "implicit", 1.0).state.nodes - exact).max() for h in (4e-3, 2e-3)]
    assert np.log2(errors[0] / errors[1]) > 1.8


def test_explicit_steps_above_the_shortest_period_are_reported_as_lost():
    with pytest.raises(Exception, match="shorter steps, or integrator 'implicit'"):
        run(pendulum(stiffness=1e10), 2e-3, "rk4", 1.0)


def bounced(integrator, stiffness, parts):
    """Energies relative to the start's [J per J of fall] of a mass that falls 0.5 m onto its string, for 20 s."""
    structure = pendulum(stiffness=stiffness, start=(0.0, 0.0, -0.5))
    period = Simulation(structure, start=structure.nodes).shortest_period
    simulation = Simulation(structure, period / parts, integrator, start=structure.nodes)
    start, seen = simulation.energy().total, []
    for _ in range(200):
        simulation.advance(duration=0.1)
        seen.append((simulation.energy().total - start) / (9.81 * 0.5))
    return np.array(seen)


@pytest.mark.parametrize("stiffness", [1e2, 1e4])
def test_implicit_gains_no_energy_where_strings_go_slack_and_tight(stiffness):
    assert bounced("implicit", stiffness, 20).max() <= 1e-12


@pytest.mark.parametrize("integrator", ["rk4", "rattle"])
@pytest.mark.parametrize("stiffness", [1e2, 1e4])
def test_explicit_methods_need_shorter_steps_where_strings_go_slack_and_tight(integrator, stiffness):
    """Some per cent at a twentieth of the shortest period, a ten-thousandth at 1/320."""
    rough, fine = np.abs(bounced(integrator, stiffness, 20)).max(), np.abs(bounced(integrator, stiffness, 320)).max()
    assert rough < 0.1
    assert fine < 5e-4 and fine < 0.05 * rough


@settings(max_examples=100, deadline=None)
@given(
    st.floats(2.0, 9.0).map(lambda power: 10.0**power), st.floats(-4.0, -1.7).map(lambda power: 10.0**power),
    st.just(0.0) | st.floats(0.0, 4.0).map(lambda power: 10.0**power), st.floats(-0.9, 0.9), st.floats(-1.2, -0.3),
)  # fmt: skip
@example(1e5, 10.0**-1.703125, 0.0, 0.0, -0.5)
@example(6.07e7, 0.01528, 7500.0, 0.0, -0.8966)
def test_implicit_never_gains_energy_whatever_string_damper_and_step(stiffness, step, damping, x, z):
    """Caught by its string at full speed within one long step, as often as it likes."""
    structure = pendulum(stiffness=stiffness, damping=damping, start=(x, 0.0, z))
    simulation = Simulation(structure, step, "implicit", start=structure.nodes)
    start = simulation.energy().total
    for _ in range(20):
        simulation.advance(10)
        assert simulation.energy().total <= start + 1e-6 * (abs(start) + 10.0)


def test_a_damper_that_catches_a_string_is_the_same_for_all_integrators_in_short_steps():
    ends = []
    for integrator in ("rk4", "rattle", "implicit"):
        structure = pendulum(stiffness=1e3, damping=20.0, start=(0.0, 0.0, -0.8))
        ends.append(run(structure, 2e-5, integrator, 0.5).state.nodes[1, 2])
    assert max(ends) - min(ends) < 2e-5


def amplitude_left(integrator, angle, steps):
    """What is left of an oscillation after so many steps of `angle` rad each."""
    structure = make_structure(
        {"wall": (0, 0, 0), "mass": (1.1, 0, 0)}, [("rod", "bar", "wall", "mass", 1.0, 1.0)], fixed=["wall"],
        node_masses={"mass": 1.0},
    )  # fmt: skip
    simulation = Simulation(structure, angle, integrator, start=structure.nodes, rigid_bars=False)
    first = simulation.energy().total
    simulation.advance(steps)
    return np.sqrt(simulation.energy().total / first)


def test_implicit_damps_fast_motions_as_its_description_says():
    for angle, lost in ((2.0, 0.238), (5.0, 0.536), (20.0, 0.804)):
        # the ratio of two runs leaves the first step (Euler) out
        steps = 8 if angle < 10.0 else 4
        left = amplitude_left("implicit", angle, 2 * steps) / amplitude_left("implicit", angle, steps)
        assert 1.0 - left ** (1 / steps) == pytest.approx(lost, abs=0.08)
    slow = (amplitude_left("implicit", 0.1, 1100) / amplitude_left("implicit", 0.1, 100)) ** 1e-3
    assert 1.0 - slow == pytest.approx(0.1**4 / 4, rel=0.1)


@pytest.mark.parametrize("integrator", ["rk4", "rattle"])
def test_explicit_methods_hardly_damp_what_they_can_follow(integrator):
    assert amplitude_left(integrator, 0.1, 1000) == pytest.approx(1.0, abs=2e-3)


@pytest.mark.parametrize("step", [1e-3, 2e-2])
def test_implicit_brings_a_robot_to_rest_in_steps_above_its_shortest_period(step):
    robot = load_robot("tensebot")
    simulation = Simulation(robot, step, "implicit")
    assert step > 0.7 * simulation.shortest_period
    goals = {"draw_1": 0.20, "saddle_3": 0.23}
    simulation.advance(duration=12.0, position=goals)
    static = forward_kinematics(robot, goals, rigid_bars=True)
    np.testing.assert_allclose(simulation.state.nodes, static.nodes, atol=1e-6)


def test_all_integrators_tell_the_same_story():
    robot, ends = load_robot("three_prism"), []
    drive = {robot.actuators[0].name: 0.97 * robot.structure.rest_lengths[robot.actuated_members()[0]]}
    for integrator, parts in (("rk4", 20), ("rattle", 40), ("implicit", 80)):
        step = Simulation(robot).shortest_period / parts
        simulation = Simulation(robot, step, integrator)
        simulation.advance(duration=0.2, position=drive)
        ends.append(simulation.state.nodes)
    moved = np.abs(ends[0] - Simulation(robot).state.nodes).max()
    for other in ends[1:]:
        np.testing.assert_allclose(other, ends[0], atol=2e-3 * moved)


@pytest.mark.parametrize(("integrator", "part"), [("rk4", np.sqrt(2.0) / np.pi), ("rattle", 1.0 / np.pi)])
def test_a_step_longer_than_an_explicit_method_bears_is_reported_with_what_limits_it(integrator, part):
    """Beyond 2 sqrt 2 and 2 over the frequency the energy of a mass on a spring grows in every step."""
    spring = replace(pendulum("bar", 400.0, start=(1.0, 0.0, 0.0)), gravity=np.zeros(3))
    for times, grows in ((0.98, False), (1.02, True)):
        step = times * part * 2.0 * np.pi / np.sqrt(400.0)
        simulation = Simulation(spring, step, integrator, start=spring.nodes * 1.001, rigid_bars=False)
        simulation.advance(400)
        assert (np.abs(simulation.state.nodes[1, 0] - 1.0) > 0.002) == grows
        assert ("too long" in simulation.note and "the stiffest member" in simulation.note) == grows
