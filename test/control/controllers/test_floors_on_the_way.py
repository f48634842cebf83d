"""Planned motions keep the tension floors where moving itself takes from the tensions: they take longer, and say so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tensegrity_control import make_controller
from tensegrity_dynamics import Robot, load_robot, parse_robot
from tensegrity_tools.runtime.delayed_loop import DelayedLoop, Delays

MAST = """
kind: mechanism
name: mast
gravity: [0, 0, -9.81]
bodies:
  cross: {{}}
  mast: {{shapes: [{{kind: cylinder, size: [0.012, 0.6], mass: 0.4, frame: {{at: [0, 0, 0.3]}}}}]}}
joints:
  - {{name: roll, kind: revolute, parent: world, body: cross, axis: [1, 0, 0], resistance: {{damping: {damping}}}}}
  - {{name: pitch, kind: revolute, parent: cross, body: mast, axis: [0, 1, 0], resistance: {{damping: {damping}}}}}
repeat:
  count: 3
  about: z
  cables:
    - name: stay_$
      body: world
      at: [0.5, 0, 0]
      block_axis: [0, 0, 1]
      pulley_axis: [0, 1, 0]
      pulley_radius: 0.04
      anchor: {{body: mast, at: [0, 0, 0.6]}}
      young: 2.0e+9
      damping: 1.0e+7
      cable_radius: 0.0005
      length: 1.3
      strain: 0.01
      block: [{{kind: cube, size: [0.04], mass: 0.2}}]
      pulley: [{{kind: cylinder, size: [0.04, 0.008], mass: 0.1}}]
  actuators:
    - {{drives: stay_$, position: [-8, 8], rate: 6, effort: 8, minimum_tension: 4}}
outputs:
  - {{name: tip, body: mast, frame: {{at: [0, 0, 0.6]}}, controlled: [x, y]}}
"""


def moved(robot: Robot, step: np.ndarray, **goal: float) -> tuple[DelayedLoop, str]:
    loop = DelayedLoop(robot, make_controller("task", robot), 0.005, Delays())
    loop.run(0.2)
    accepted = loop.control.set_goal(loop.stamp, loop.simulation.observe().pose[0] + step, **goal)
    loop.run(accepted.duration + 0.5)
    return loop, accepted.note


@pytest.mark.parametrize("damping", [1.0, 30.0, 120.0])
def test_a_viscous_joint_makes_a_motion_longer_instead_of_a_cable_slack(damping: float):
    loop, note = moved(parse_robot(MAST.format(damping=damping)), np.array([0.08, 0.0, 0.0]))
    assert loop.least() > 0.98
    assert ("tension floor of stay_" in note) == (damping > 100.0)


def test_a_duration_that_breaks_a_floor_is_lengthened_and_both_durations_are_said():
    loop, note = moved(parse_robot(MAST.format(damping=120.0)), np.array([0.08, 0.0, 0.0]), duration=0.9)
    assert loop.least() > 0.98
    assert "0.9 s asked for" in note and "needed by the tension floor of stay_" in note


def test_floors_of_routed_cables_count_like_those_of_others():
    robot = load_robot("examples/finger.yaml")
    level = float(DelayedLoop(robot, make_controller("task", robot), 0.005).simulation.observe().tensions["flexor"])
    floor = [replace(each, minimum_tension=0.97 * level) for each in robot.actuators]
    loop, note = moved(replace(robot, actuators=tuple(floor)), np.array([0.0, 0.0, 0.004]))
    assert loop.least() > 0.98 and "broken" not in note
