"""A servo that holds its position does not feed the vibrations of undamped cables."""

import numpy as np
import pytest

from tensegrity_dynamics import Simulation, parse_robot

HUNG = """
kind: mechanism
name: hung
gravity: [0, 0, -9.81]
bodies:
  carriage: {{shapes: [{{kind: point, size: [], mass: {carriage}}}]}}
  load: {{shapes: [{{kind: point, size: [], mass: 4}}]}}
joints:
  - {{name: hoist, kind: prismatic, parent: world, body: carriage, axis: [0, 0, 1]}}
  - {{name: fall, kind: prismatic, parent: world, body: load, axis: [0, 0, 1], start: [-3.0]}}
routed_cables:
  - {{name: rope, young: 1.0e+9, cable_radius: 0.001, tension: 39.24,
     route: [{{body: carriage, at: [0, 0, 0]}}, {{body: load, at: [0, 0, 0]}}]}}
actuators:
  - {{drives: hoist, position: [-2, 2], rate: 1, effort: 500}}
"""


@pytest.mark.parametrize("carriage", [0.3, 4.0, 20.0])
@pytest.mark.parametrize("step", [2e-4, 1e-3])
def test_a_load_on_an_undamped_rope_gains_no_energy_from_the_servo_that_holds_it(carriage: float, step: float) -> None:
    simulation = Simulation(parse_robot(HUNG.format(carriage=carriage), "hung.yaml"), step, integrator="rk4")
    simulation.set_motion(np.array([0.0, 0.04]))
    before = simulation.energy()
    simulation.advance(duration=4.0, position={"hoist": 0.0})
    after = simulation.energy()
    assert after.actuators < 1e-4 * before.kinetic
    assert after.actuators > -0.15 * before.kinetic
