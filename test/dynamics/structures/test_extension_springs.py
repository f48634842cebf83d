"""Springs with an initial tension: closed they hold, open they add it, and nothing is lost where they close."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_dynamics import RobotFileError, Simulation, TensegrityError, forward_kinematics, parse_robot
from tensegrity_dynamics.structures.analysis.desired_shape import stretches_at
from tensegrity_dynamics.structures.state_codec import StructureCodec
from tensegrity_dynamics.structures.tension_law import CLOSED, extension_law, tension_law

STIFFNESS, OPENS, REST, GRAVITY = 200.0, 4.0, 0.1, 9.81
FILE = """
kind: structure
name: scale
gravity: [0, 0, -9.81]
nodes:
  top: {{position: [0, 0, 0], fixed: true}}
  load: {{position: [0, 0, -0.13], mass: {mass}}}
members:
  - {{name: spring, kind: {kind}, nodes: [top, load], rest_length: 100 mm, stiffness: 0.2 N/mm, initial_tension: 4 N}}
{more}
"""


def scale(mass: float, more: str = "", kind: str = "spring"):
    return parse_robot(FILE.format(mass=mass, more=more, kind=kind))


@settings(max_examples=40)
@given(st.floats(-0.05, 0.05), st.floats(0.1, 20.0))
def test_the_law_is_the_slope_of_its_energy_and_has_no_jump(stretch: float, opens: float) -> None:
    law, step = float(extension_law(opens, STIFFNESS)), 1e-7
    (low, _, before), (tension, slope, _), (high, _, after) = (
        tension_law(law, STIFFNESS, stretch + d) for d in (-step, 0.0, step)
    )
    assert (after - before) / (2.0 * step) == pytest.approx(tension, abs=2e-3)
    assert abs(high - low) <= 2.0 * step * CLOSED * STIFFNESS * 1.001
    assert 0.0 <= tension and slope in (0.0, STIFFNESS, CLOSED * STIFFNESS)
    assert tension == pytest.approx(
        opens + STIFFNESS * stretch if stretch >= 0.0 else max(0.0, opens + CLOSED * STIFFNESS * stretch), abs=1e-9
    )


@pytest.mark.parametrize("mass", [0.1, 0.3, 0.5, 1.0, 2.0])
def test_a_spring_scale_begins_to_show_above_the_initial_tension(mass: float) -> None:
    weight = mass * GRAVITY
    over = weight - OPENS
    expected = REST + over / (STIFFNESS if over >= 0.0 else CLOSED * STIFFNESS)
    shape = forward_kinematics(scale(mass))
    assert -shape.nodes[1, 2] == pytest.approx(expected, abs=1e-9)
    assert shape.tensions[0] == pytest.approx(weight)
    assert shape.softest > 0.0
    robot = scale(mass)
    assert StructureCodec(robot).tensions((), (), shape.nodes)[0] == pytest.approx(weight)
    assert stretches_at(robot.structure, shape.tensions)[0] == pytest.approx(expected - REST, abs=1e-12)


def test_small_swings_of_an_open_spring_have_its_own_stiffness_alone() -> None:
    mass = 1.0
    simulation = Simulation(scale(mass), 1e-4)
    nodes = forward_kinematics(scale(mass)).nodes
    simulation.set_state(nodes + [[0.0, 0.0, 0.0], [0.0, 0.0, 1e-3]])
    period = 2.0 * np.pi * np.sqrt(mass / STIFFNESS)
    simulation.advance(round(0.5 * period / 1e-4))
    assert simulation.state.configuration[1, 2] - nodes[1, 2] == pytest.approx(-1e-3, rel=1e-4)


def test_a_load_that_bounces_through_the_closed_spring_keeps_its_energy() -> None:
    simulation = Simulation(scale(1.0), 1e-4)
    simulation.set_state(np.array([[0.0, 0.0, 0.0], [0.0, 0.0, -0.25]]))
    before, lengths = simulation.energy(), []
    for _ in range(60):
        simulation.advance(100)
        lengths.append(-simulation.state.configuration[1, 2])
    after = simulation.energy()
    assert min(lengths) < REST < max(lengths)  # it closed, and opened
    total = [each.kinetic + each.elastic + each.gravity for each in (before, after)]
    assert total[1] == pytest.approx(total[0], abs=1e-4 * before.elastic)


@pytest.mark.parametrize(
    ("kind", "more", "words"),
    [
        ("bar", "", "members.0. .spring.: an initial tension is given.*a bar has none"),
        ("spring", "tension: {law: softplus, smoothness: 1 mm}", "hard law"),
    ],
)
def test_an_initial_tension_where_there_can_be_none_is_refused_by_name(kind: str, more: str, words: str) -> None:
    with pytest.raises(RobotFileError, match=words):
        scale(1.0, more, kind)


def test_a_negative_initial_tension_is_refused() -> None:
    with pytest.raises(TensegrityError, match="initial_tension"):
        parse_robot(FILE.format(mass=1.0, more="", kind="spring").replace("4 N", "-4 N"))
