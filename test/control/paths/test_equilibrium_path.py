"""Between the equilibria of a path tendons stay tight, although rest lengths are interpolated there."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_control import inverse_kinematics
from tensegrity_control.inverse_kinematics.structure_equilibria import StructureEquilibriumMap
from tensegrity_control.paths.equilibrium_path import EquilibriumPath
from tensegrity_dynamics import parse_robot
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
