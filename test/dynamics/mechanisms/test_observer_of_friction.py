"""The observer of a robot whose passive joints have Coulomb friction."""

import numpy as np
import pytest

from tensegrity_dynamics import Simulation, make_estimator, parse_robot

DRAGGED = """
kind: mechanism
name: dragged
gravity: [0, 0, -9.81]
bodies:
  carriage: {{shapes: [{{kind: point, size: [], mass: 1}}]}}
  load: {{shapes: [{{kind: point, size: [], mass: 4}}]}}
joints:
  - {{name: pull, kind: prismatic, parent: world, body: carriage, axis: [1, 0, 0], start: [3.0]}}
  - {{name: slide, kind: prismatic, parent: world, body: load, axis: [1, 0, 0],
     resistance: {{friction: {friction}, stiffness: 30}}}}
routed_cables:
  - {{name: rope, young: 1.0e+9, cable_radius: 0.001, damping: 1.0e+6, tension: 40,
     route: [{{body: carriage, at: [0, 0, 0]}}, {{body: load, at: [0, 0, 0]}}]}}
actuators:
  - {{drives: pull, position: [0, 6], rate: 5, effort: 200}}
outputs:
  - {{name: load, body: load, controlled: [x]}}
"""


@pytest.mark.parametrize("friction", [0, 2, 10])
def test_an_observer_that_took_a_sliding_load_for_still_finds_its_speed(friction: float) -> None:
    robot = parse_robot(DRAGGED.format(friction=friction), "dragged.yaml")
    simulation, observer = Simulation(robot, 2e-4), make_estimator(robot, observer=True)
    seen = simulation.observe()
    observer.update(0.0, seen.positions, seen.efforts)
    simulation.set_motion(np.array([0.3, 0.3]))
    late = []
    for k in range(60):
        simulation.advance(duration=0.01, effort={"pull": 20.0 + friction})
        seen = simulation.observe()
        estimate = observer.update(0.01 * (k + 1), seen.positions, seen.efforts)
        if k >= 20:
            late.append(float(np.max(np.abs(estimate.v - simulation.state.v))))
    assert max(late) < 0.02  # m/s, of up to 2; 0.1 to 0.5 if friction at rest counts as a damper


def test_an_observer_changes_no_law_of_friction_that_others_use() -> None:
    robot = parse_robot(DRAGGED.format(friction=2), "dragged.yaml")
    laws = robot.mechanism.flat.resistances
    observer = make_estimator(robot, observer=True)
    assert laws.size
    assert not np.shares_memory(observer.reduced.flat.resistances, laws)
    assert not np.shares_memory(observer.reduced.flat.resistances, observer.simulated.flat.resistances)
