"""Velocities that are sampled in step with a vibration, against exact motions, and a mast whose vibration is about as
fast as its control."""

from __future__ import annotations

import numpy as np
import pytest
from damped_mast import damped_mast
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_control import make_controller
from tensegrity_control.controllers.qp.timing.sampled_velocity import SampledVelocity
from tensegrity_dynamics import parse_robot
from tensegrity_tools.runtime.delayed_loop import DelayedLoop

PERIOD, BANDWIDTH, LONGEST = 0.01, 15.0, 0.015
COUNT = 14
"""Coordinates of the mast."""
STIFF_MAST = """
kind: mechanism
name: mast
gravity: [0, 0, -9.80665]
bodies:
  cross: {}
  mast: {shapes: [{kind: cylinder, size: [0.016, 0.8], mass: 1.47, frame: {at: [0, 0, 0.4]}}]}
joints:
  - {name: roll, kind: revolute, parent: world, body: cross, axis: [1, 0, 0]}
  - {name: pitch, kind: revolute, parent: cross, body: mast, axis: [0, 1, 0]}
repeat:
  count: 3
  about: z
  cables:
    - name: stay_$
      body: world
      at: [0.78, 0, 0.057]
      block_axis: [0, 0, 1]
      pulley_axis: [0, 1, 0]
      pulley_radius: 0.0285
      anchor: {body: mast, at: [0, 0, 0.8]}
      young: 69.0e+9
      damping: 48.0e+6
      cable_radius: 0.0014
      length: 2.24
      strain: 0.0002
      block: [{kind: cube, size: [0.0285], mass: 0.03}]
      pulley: [{kind: cylinder, size: [0.0285, 0.0057], mass: 0.03}]
  actuators:
    - {drives: stay_$, position: [-20, 20], rate: 9, effort: 9.2, minimum_tension: 23}
outputs:
  - {name: tip, body: mast, frame: {at: [0, 0, 0.8]}, controlled: [x, y]}
"""


def sampled() -> SampledVelocity:
    return SampledVelocity(damped_mast(1.0).mechanism)


@given(rate=st.floats(-2.0, 2.0), bend=st.floats(-5.0, 5.0), coordinate=st.integers(0, COUNT - 1))
@settings(deadline=None)
def test_steady_acceleration_has_no_ripple(rate, bend, coordinate):
    watched, q, v = sampled(), np.zeros(COUNT), np.zeros(COUNT)
    for k in range(20):
        t = PERIOD * k
        q[coordinate], v[coordinate] = rate * t + 0.5 * bend * t * t, rate + bend * t
        np.testing.assert_allclose(watched.steady(t, q, v, LONGEST, BANDWIDTH), v, atol=1e-9)


@given(size=st.floats(0.01, 1.0), phase=st.floats(-3.0, 3.0), rate=st.floats(-1.0, 1.0), turns=st.integers(1, 3))
@settings(deadline=None)
def test_a_vibration_in_step_with_the_samples_is_taken_out(size, phase, rate, turns):
    watched, fast = sampled(), 2.0 * np.pi * turns / PERIOD
    for k in range(200):
        t = PERIOD * k
        q = np.full(COUNT, rate * t + size / fast * np.sin(fast * t + phase))
        v = np.full(COUNT, rate + size * np.cos(fast * t + phase))
        found = watched.steady(t, q, v, LONGEST, BANDWIDTH)
    np.testing.assert_allclose(found, rate, atol=1e-6)


def test_samples_far_apart_say_nothing_of_a_ripple():
    watched, rng = sampled(), np.random.default_rng(1)
    for k in range(10):
        v = rng.normal(size=COUNT)
        np.testing.assert_array_equal(watched.steady(0.1 * k, rng.normal(size=COUNT), v, LONGEST, BANDWIDTH), v)


@pytest.mark.long  # half a minute; what it is about is stated by the laws above
def test_a_mast_that_vibrates_as_fast_as_its_control_stays_where_it_is():
    robot = parse_robot(STIFF_MAST)
    loop = DelayedLoop(robot, make_controller("qp", robot, period=0.009), 0.009)
    loop.run(0.5)
    goal = loop.simulation.observe().pose[0] + np.array([0.02, 0.015, 0.0])
    loop.run(loop.control.set_goal(loop.stamp, goal).duration + 1.0)
    loop.forget()
    loop.run(6.0)
    assert max(loop.errors) < 2e-4
    assert loop.errors[-1] < 0.2 * max(loop.errors) + 1e-6
