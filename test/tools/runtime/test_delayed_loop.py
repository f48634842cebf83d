"""A loop whose messages come late: what arrives, and what the controller makes of it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tensegrity_control import make_controller
from tensegrity_dynamics import Robot, load_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robots.load_robot import parse_robot
from tensegrity_tools.runtime.delayed_loop import DelayedLoop, Delays, freezes


def test_a_goal_is_reached_however_late_and_whoever_stands_still_meanwhile():
    robot = load_robot("biglide")
    control = make_controller("qp", robot, period=0.01)
    loop = DelayedLoop(robot, control, 0.01, Delays((0, 2), (0, 1), freezes=((0.15, 0.2),), seed=4))
    home = np.array(control.reference(0.0).pose[0])
    loop.run(0.05)
    arrival = control.set_goal(loop.stamp, home + [0.01, 0.01, 0.0]).arrival  # type: ignore[attr-defined]
    loop.run(arrival - loop.time)
    assert control.status(loop.stamp).phase == "moving"  # it went slower after the freeze
    while control.status(loop.stamp).phase == "moving":
        loop.run(0.1)
        assert loop.time < arrival + 2.0
    loop.run(0.6)
    assert control.gaps == 1  # after the freeze it went on from where the actuators were
    assert control.status(loop.stamp).phase == "holding" and loop.errors[-1] < 1e-4 and not loop.refused


def test_positions_go_on_after_a_freeze_from_where_the_actuators_came_to_rest():
    robot = load_robot("three_rrr")
    control = make_controller("joint_position", robot, period=0.005)
    loop = DelayedLoop(robot, control, 0.005, Delays(freezes=((0.4, 0.3),)))
    home = np.array(control.reference(0.0).pose[0])
    loop.run(0.05)
    control.set_goal(loop.stamp, home + [0.03, 0.0, 0.0], duration=1.0)  # type: ignore[attr-defined]
    loop.run(0.66)  # until the first commands after it
    assert control.gaps == 1 and loop.errors[-1] < 1e-3 < 5e-3 < max(loop.errors)
    loop.run(1.0)
    assert loop.errors[-1] < 1e-3


def test_freezes_are_as_long_as_was_asked_for_and_do_not_overlap():
    found = freezes(3, 100.0, (0.1, 0.5), 3.0)
    assert len(found) > 10 and all(0.1 <= length <= 0.5 for _, length in found)
    assert all(before + length < after for (before, length), (after, _) in pairwise(found))


def test_delays_that_make_no_sense_are_refused():
    for wrong in ({"states": (2, 1)}, {"busy": (0, 1)}, {"freezes": ((-1.0, 0.1),)}, {"latency": "guessed"}):
        with pytest.raises(TensegrityError):
            Delays(**wrong)


def mast(seed: int) -> Robot:
    """A strut on a universal joint with 3 to 5 stays; its sizes follow from the seed."""
    random = np.random.default_rng(seed)
    size, stays = random.uniform(0.3, 1.8), random.integers(3, 6)
    return parse_robot(f"""
kind: mechanism
name: mast
gravity: [0, 0, -9.81]
density: 2700
bodies:
  cross: {{}}
  strut: {{shapes: [{{kind: cylinder, size: [{0.02 * size}, {size}], frame: {{at: [0, 0, {0.5 * size}]}}}}]}}
joints:
  - {{name: turn_x, kind: revolute, parent: world, body: cross, axis: [1, 0, 0]}}
  - {{name: turn_y, kind: revolute, parent: cross, body: strut, axis: [0, 1, 0]}}
repeat:
  count: {stays}
  about: z
  cables:
    - name: stay$
      body: world
      at: [{0.9 * size}, 0, 0]
      block_axis: [0, 0, 1]
      pulley_axis: [0, 1, 0]
      pulley_radius: {0.07 * size}
      anchor: {{body: strut, at: [0, 0, {size}]}}
      young: "{random.uniform(1.0, 4.0)} GPa"
      damping: "10 MPa s"
      cable_radius: "{size * random.uniform(0.7, 1.2)} mm"
      length: {2.2 * size}
      strain: {random.uniform(0.004, 0.012)}
      block: [{{kind: cube, size: [{0.1 * size}]}}]
      pulley: [{{kind: cylinder, size: [{0.07 * size}, {0.01 * size}]}}]
  actuators:
    - {{drives: stay$, position: [-12, 12], rate: "30 rad/s", effort: {60 * size**3}, minimum_tension: {4 * size**2}}}
outputs:
  - {{name: tip, body: strut, frame: {{at: [0, 0, {size}]}}, controlled: [x, y]}}
""")


SLOW = pytest.mark.long


@pytest.mark.parametrize("late", [3, *(pytest.param(each, marks=SLOW) for each in (0, 1, 2))])
@pytest.mark.parametrize("controller", ["near_rigid", pytest.param("task", marks=SLOW)])
@pytest.mark.parametrize("seed", [5, *(pytest.param(each, marks=SLOW) for each in range(3))])
def test_a_mast_of_any_size_is_not_lost_where_messages_are_late_and_states_are_dropped(seed, controller, late):
    robot, period = mast(seed), 5e-3
    control = make_controller(controller, robot, period=period)
    delays = Delays((0, late // 2), (0, late - late // 2), busy=(1, 4), seed=seed)  # three of four states may be lost
    loop = DelayedLoop(robot, control, period, delays, observer=True)
    loop.run(0.1)
    home = np.array(control.reference(loop.time).pose[0])
    arrival = control.set_goal(loop.stamp, home + 0.05 * home[2] * np.array([1.0, -1.0, 0.0])).arrival
    loop.run(arrival - loop.time + 1.0)
    assert loop.least() > 1.0
    assert max(loop.errors) < 0.01 * home[2] and loop.errors[-1] < 1e-4 * home[2]


def test_least_tension_of_a_structure_does_not_count_its_bars():
    robot = load_robot("tensebot")
    loop = DelayedLoop(robot, make_controller("tendon_length", robot), 0.02, Delays())
    loop.run(0.1)
    seen = loop.simulation.observe().tensions
    floors = robot.model.tension_floors(robot.actuators)
    least = min(seen[name] / (floors.get(name) or 1.0) for name in robot.model.tension_names)
    assert min(seen.values()) < 0.0 < loop.least() <= least * (1.0 + 1e-9)


def test_a_controller_that_refuses_the_state_leaves_the_present_one_in_place():
    robot = load_robot("biglide")
    loop = DelayedLoop(robot, make_controller("qp", robot, period=0.01), 0.01, Delays())
    loop.run(0.05)
    present = loop.control
    with pytest.raises(TensegrityError, match="prism"):
        loop.switch(make_controller("tendon_length", load_robot("three_prism")))
    assert loop.control is present
    loop.run(0.05)
