"""Tensions that are told beside a shape at rest: a robot that is not what its shape says is named."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from tensegrity_dynamics import Simulation, load_robot, make_estimator
from tensegrity_dynamics.tension_fit import AVERAGED, TensionFit

LAMP = """
kind: structure
name: lamp
nodes:
  a: {position: [-0.4, -0.3, 0.9], fixed: true}
  b: {position: [0.5, -0.2, 0.9], fixed: true}
  c: {position: [0.1, 0.5, 0.8], fixed: true}
  lamp: {position: [0.05, 0.02, 0.3], mass: "0.7 kg"}
defaults: {tendon: {stiffness: "3000 N/m", damping: "20 N s/m"}}
members:
  - {name: from_a, kind: tendon, nodes: [a, lamp], rest_length: 0.81}
  - {name: from_b, kind: tendon, nodes: [b, lamp], rest_length: 0.78}
  - {name: from_c, kind: tendon, nodes: [c, lamp], rest_length: 0.69}
actuators:
  - {drives: from_a, position: [0.3, 1.2], rate: "10 cm/s", effort: "60 N"}
  - {drives: from_b, position: [0.3, 1.2], rate: "10 cm/s", effort: "60 N"}
  - {drives: from_c, position: [0.3, 1.2], rate: "10 cm/s", effort: "60 N"}
outputs: [{name: lamp, nodes: {lamp: [0, 0, 0]}, controlled: [x, y, z]}]
"""


@pytest.fixture(scope="module")
def lamp(tmp_path_factory):
    path = tmp_path_factory.mktemp("lamp") / "lamp.yaml"
    path.write_text(LAMP)
    return load_robot(path)


def watched(robot, seconds, each=lambda simulation, time: None, told=lambda tensions: tensions, estimated=False):
    """What is said in every 20 ms of a simulated robot, of which the estimator knows the actuators alone."""
    simulation, estimator, fit, said = Simulation(robot, 0.002), make_estimator(robot), TensionFit(), []
    for k in range(round(seconds / 0.02)):
        each(simulation, 0.02 * k)
        simulation.advance(10)
        seen = simulation.observe()
        shape = estimator.update(seen.time, seen.positions)
        said.append(fit.look(seen.time, shape.tensions, told(seen.tensions), estimated))
    return said


def test_a_shape_that_actuators_move_fits_the_tensions_in_it(lamp):
    def wind(simulation, time):
        simulation.command("velocity", {"from_a": -0.1 if 1.0 < time < 3.0 else 0.02})

    assert not any(watched(lamp, 3.5, wind))


@pytest.mark.parametrize("force", [(0.0, 0.0, -9.0), (4.0, 0.0, 0.0), (0.0, -5.0, 3.0)])
def test_a_load_that_nobody_told_is_said_with_tendon_tension_and_that_of_the_shape(lamp, force):
    def push(simulation, time):
        simulation.apply_forces({"lamp": force} if time > 1.0 else None)

    said = watched(lamp, 3.5, push)
    begins = next(k for k, words in enumerate(said) if words)
    assert 1.0 < 0.02 * begins < 1.0 + 2.0 * AVERAGED and all(said[begins:])
    shape = make_estimator(lamp).solve({}).tensions
    loaded = replace(lamp, model=replace(lamp.model, loads=np.array([[0, 0, 0], [0, 0, 0], [0, 0, 0], force], float)))
    off = {name: each - shape[name] for name, each in make_estimator(loaded).solve({}).tensions.items()}
    worst = max(off, key=lambda name: abs(off[name]))
    words = re.findall(rf"{worst} carries (\S+) N, the shape (\S+) N", said[-1])
    assert [float(each) for each in words[0]] == pytest.approx([shape[worst] + off[worst], shape[worst]], rel=0.02)


def test_what_motor_currents_say_may_be_off_by_the_friction_of_gears(lamp):
    friction = {"from_a": 1.3, "from_b": 0.7, "from_c": 1.3}

    def told(tensions):
        return {name: friction[name] * tension for name, tension in tensions.items()}

    assert watched(lamp, 2.0, told=told)[-1].startswith("measured tensions do not fit the shape: ")
    assert not any(watched(lamp, 2.0, told=told, estimated=True))
    gone = watched(lamp, 2.0, told=lambda tensions: {**tensions, "from_a": 0.0, "from_b": 0.0}, estimated=True)
    assert "from_a carries 0 N" in gone[-1]


def test_what_is_not_told_or_not_a_number_is_not_said(lamp):
    assert not any(watched(lamp, 1.0, told=lambda tensions: {"from_a": np.nan, "other": 300.0}))
    assert not any(watched(lamp, 1.0, told=lambda tensions: {}))


def test_a_time_that_went_back_forgets_what_was(lamp):
    fit, shape = TensionFit(), {"from_a": 10.0}
    for time in np.arange(0.0, 5.0, 0.1):
        fit.look(time, shape, {"from_a": 20.0}, False)
    assert fit.look(5.0, shape, {"from_a": 20.0}, False)
    assert not fit.look(0.0, shape, {"from_a": 10.0}, False)
