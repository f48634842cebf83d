"""What an integrator does to the energy is said where it is much."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from tensegrity_dynamics import Simulation, parse_robot
from tensegrity_dynamics.errors import AccuracyWarning
from tensegrity_dynamics.simulation import pace
from tensegrity_dynamics.structures.structure import make_structure


def chain(stiffness: float):
    """Two weights on springs between two posts, without damping."""
    nodes = {"left": (0, 0, 0), "a": (1.1, 0, 0), "b": (1.9, 0, 0), "right": (3, 0, 0)}
    rows = [
        (f"s{k}", "spring", *ends, stiffness, 0.8) for k, ends in enumerate(zip(nodes, list(nodes)[1:], strict=False))
    ]
    return make_structure(nodes, rows, fixed=("left", "right"), node_masses={"a": 0.01, "b": 0.01})


def run(integrator: str, step: float, duration: float) -> Simulation:
    simulation = Simulation(chain(2000.0), step, integrator)
    velocities = np.zeros((4, 3))
    velocities[1:3, 0] = 0.5, -0.5
    simulation.set_motion(velocities)
    simulation.advance(duration=duration)
    return simulation


def test_the_implicit_method_says_what_it_takes_out_of_an_undamped_chain() -> None:
    with pytest.warns(AccuracyWarning, match=r"taken .* J out of the motion, \d+ % of what was in motion"):
        simulation = run("implicit", 1e-3, 0.3)
    before, energy = run("implicit", 1e-3, 0.0).energy().total, simulation.energy()
    assert simulation.energy_error < -0.3 * 0.0025 and "implicit" in simulation.note
    assert energy.total + energy.damping == pytest.approx(before + simulation.energy_error)
    simulation.reset()
    assert simulation.note == ""


def test_short_steps_and_explicit_methods_say_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", AccuracyWarning)
        assert abs(run("implicit", 1e-6, 0.003).energy_error) < 1e-4
        for integrator in ("rk4", "rattle"):
            simulation = run(integrator, 1e-5, 0.3)
            assert abs(simulation.energy_error) < 1e-5 and simulation.note == ""


ARM = """
kind: mechanism
name: spinning_arm
gravity: [0, 0, -9.80665]
bodies:
  near: {mass: 1, centre: [0.3, 0, 0], inertia: [0.001, 0.01, 0.01]}
  far: {mass: 1, centre: [0.3, 0, 0], inertia: [0.001, 0.01, 0.01]}
joints:
  - {name: shoulder, kind: revolute, parent: world, body: near, axis: [0, 1, 0]}
  - {name: elbow, kind: revolute, parent: near, body: far, axis: [0, 1, 0], frame: {at: [0.3, 0, 0]}}
"""


@pytest.mark.parametrize(("step", "error"), [(0.02, 0.1), (0.002, 1e-4)])
def test_energy_that_steps_add_to_a_spinning_arm_is_said_where_it_is_much(step: float, error: float) -> None:
    simulation = Simulation(parse_robot(ARM), step, "implicit", start="file")
    simulation.set_motion([5.0, -25.0])
    moving = simulation.energy().kinetic
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", AccuracyWarning)
        for _ in range(round(0.8 / step)):
            simulation.step_arrays()
    if error < 0.05:
        assert abs(simulation.energy_error) < error * moving and not said and simulation.note == ""
    else:
        assert simulation.energy_error > error * moving and len(said) == 1
        assert "the implicit integrator has added" in simulation.note and "steps of 20 ms" in simulation.note


BOX = """
kind: mechanism
name: thrown_box
bodies: {box: {mass: 2, inertia: [0.01, 0.02, 0.03]}}
joints: [{name: flight, kind: floating, parent: world, body: box, start: [0, 0, 0.5, 0.3, 0.2, 0]}]
contact: {stiffness: 1e5, damping: 0, friction: 0.5}
contact_parts: [{body: box, kind: box, size: [0.2, 0.3, 0.1]}]
"""


@pytest.mark.parametrize("steps", [1, 50])
def test_energy_that_explicit_steps_add_in_impacts_is_said_where_it_is_much(steps: int) -> None:
    robot = parse_robot(BOX)
    quiet, simulation = Simulation(robot, 1e-5, "rk4", start="file"), Simulation(robot, 1e-3, "rk4", start="file")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", AccuracyWarning)
        quiet.advance(duration=0.8)
        assert abs(quiet.energy_error) < 5e-3 and quiet.note == "" and not said
        for _ in range(800 // steps):
            simulation.advance(steps)
    assert simulation.energy_error > 0.5 and len(said) == 1
    assert "the rk4 integrator has added" in simulation.note and simulation.note.endswith("take shorter steps.")


def test_the_joint_that_moves_with_the_shortest_period_is_named() -> None:
    stiff = ARM.replace("[0.3, 0, 0]}}", "[0.3, 0, 0]}, resistance: {stiffness: 1e6}}")
    assert "from the motion of joint elbow)" in Simulation(parse_robot(stiff), start="file").report


def test_the_work_of_servos_in_implicit_steps_is_what_the_arm_takes_up() -> None:
    limits = "position: [-9, 9], rate: 100, effort: 1e5"
    servos = f"actuators: [{{drives: shoulder, {limits}}}, {{drives: elbow, {limits}}}]"
    simulation = Simulation(parse_robot(ARM + servos), 5e-4, "implicit", start="file")
    simulation.advance(duration=0.024, position={"shoulder": 1.0, "elbow": -1.0})
    assert simulation.energy().kinetic > 3.0
    assert abs(simulation.energy_error) < 2e-4  # 1.5e-2 as mean torque of a step times its motion


def test_the_pace_is_measured_without_moving_anything() -> None:
    simulation = Simulation(chain(2000.0), 1e-5, "rattle")
    before = simulation.state.nodes
    assert pace(simulation, 10) > 0.0
    np.testing.assert_array_equal(simulation.state.nodes, before)
    assert simulation.time == 0.0
