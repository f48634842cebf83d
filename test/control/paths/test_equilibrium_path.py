"""Between the equilibria of a path tendons stay tight, although rest lengths are interpolated there."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_control import inverse_kinematics, make_controller
from tensegrity_control.controller import RobotState
from tensegrity_control.inverse_kinematics.structure_equilibria import StructureEquilibriumMap
from tensegrity_control.paths.equilibrium_path import EquilibriumPath
from tensegrity_dynamics import Simulation, parse_robot
from tensegrity_dynamics.errors import UnreachableGoalError

SUSPENDED = """
kind: structure
name: suspended
nodes:
  p1: {{position: [0, 0, 6], fixed: true}}
  p2: {{position: [9, 0, 6], fixed: true}}
  p3: {{position: [9, 9, 6], fixed: true}}
  p4: {{position: [0, 9, 6], fixed: true}}
  load: {{position: [4.4, 4.6, 2.6], mass: 11}}
defaults: {{tendon: {{stiffness: {stiffness}}}}}
form: {{tensions: {{w1: 70}}}}
members:
  - {{name: w1, kind: tendon, nodes: [p1, load]}}
  - {{name: w2, kind: tendon, nodes: [p2, load]}}
  - {{name: w3, kind: tendon, nodes: [p3, load]}}
  - {{name: w4, kind: tendon, nodes: [p4, load]}}
actuators:
  - {{drives: w1, position: [1, 15], rate: 0.9, effort: 450, minimum_tension: {floor}}}
  - {{drives: w2, position: [1, 15], rate: 0.9, effort: 450, minimum_tension: {floor}}}
  - {{drives: w3, position: [1, 15], rate: 0.9, effort: 450, minimum_tension: {floor}}}
  - {{drives: w4, position: [1, 15], rate: 0.9, effort: 450, minimum_tension: {floor}}}
outputs:
  - {{name: load, nodes: {{load: [0, 0, 0]}}, controlled: [x, y, z]}}
"""
NEAR = st.tuples(*[st.floats(-0.9, 0.9)] * 3).map(np.array)


@settings(deadline=None, max_examples=10)
@given(first=NEAR, second=NEAR, stiffness=st.floats(2e3, 2e4), floor=st.sampled_from([0.0, 8.0]))
def test_long_stiff_tendons_stay_tight_between_equilibria_from_any_goal_to_any_other(first, second, stiffness, floor):
    robot = parse_robot(SUSPENDED.format(stiffness=stiffness, floor=floor), "suspended")
    equilibria = StructureEquilibriumMap(robot, rigid_bars=True)
    rest, here = equilibria.home.pose[0], equilibria.home
    for goal in (rest + first, rest + second):
        try:
            found = inverse_kinematics(robot, goal, start=here, equilibria=equilibria)
        except UnreachableGoalError:
            return
        path, here = EquilibriumPath(equilibria, found.path), found.equilibrium
        for parameter in np.linspace(0.0, 1.0, 61):
            tensions = equilibria.tensions(path.equilibrium(float(parameter)))
            assert tensions.min() > 0.9 * max(floor, 0.0)


@settings(deadline=None, max_examples=10)
@given(move=NEAR, stiffness=st.floats(2e4, 1e6))
def test_redundant_stiff_tendons_keep_their_tensions_on_the_way_to_a_goal(move, stiffness):
    """A step along a linear prediction errs by micrometres, which are newtons in stiff tendons."""
    robot = parse_robot(SUSPENDED.format(stiffness=stiffness, floor=1.0), "suspended")
    equilibria = StructureEquilibriumMap(robot, rigid_bars=True)
    home = equilibria.home
    found = inverse_kinematics(robot, home.pose[0] + 0.5 * move, equilibria=equilibria)
    ends = np.minimum(equilibria.tensions(home), equilibria.tensions(found.equilibrium))
    for each in found.path:
        assert np.all(equilibria.tensions(each) > 0.9 * ends)


@settings(deadline=None, max_examples=6)
@given(move=NEAR, stiffness=st.floats(5e3, 1e5))
def test_a_load_on_stiff_tendons_moves_in_seconds_and_keeps_the_floors(move, stiffness):
    """Set points that move on at their rates load stiff tendons by their accelerations alone."""
    robot, period = parse_robot(SUSPENDED.format(stiffness=stiffness, floor=1.0), "suspended"), 0.02
    control = make_controller("tendon_length", robot, swing_periods=0.0)
    simulation = Simulation(robot, period / 40)
    control.reset(0.0, RobotState.of(simulation))
    accepted = control.set_goal(0.0, control.home.pose[0] + 0.5 * move)
    assert accepted.duration < 10.0
    floors, least = control.equilibria.tension_floors, np.inf
    for k in range(round((accepted.duration + 0.5) / period)):
        command = control.command(k * period)
        simulation.command(command.mode, command.set_points(), period=period)
        for _ in range(8):
            simulation.advance(5)
            seen = simulation.observe()
            least = min(least, *(seen.tensions[name] - floor for name, floor in floors.items()))
    assert least > 0.0
    np.testing.assert_allclose(seen.pose[0], control.home.pose[0] + 0.5 * move, atol=1e-3)
