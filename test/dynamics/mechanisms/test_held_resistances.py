"""Springs and dampers of joints over the time for which a command is held: against exponentials, energy and each other,
and whether a controller keeps a robot whose joints are faster than its period and its latency."""

from __future__ import annotations

import math

import numpy as np
import pytest
from damped_mast import damped_mast
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_control import make_controller
from tensegrity_dynamics import load_robot, parse_robot
from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables
from tensegrity_tools.runtime.delayed_loop import DelayedLoop, Delays

HINGED = """
kind: mechanism
name: link
gravity: [0, 0, 0]
bodies:
  link: {shapes: [{kind: box, size: [0.02, 0.02, 0.4], mass: 0.3, frame: {at: [0, 0, 0.2]}}]}
"""
MOTOR = """
actuators:
  - {drives: hinge, position: [-3, 3], rate: 5, effort: 3}
outputs:
  - {name: tip, body: link, frame: {at: [0, 0, 0.4]}, controlled: [x]}
"""
INERTIA = 0.3 * (0.02**2 + 0.4**2) / 12 + 0.3 * 0.2**2


def link(resistance: str) -> TightCables:
    joint = f"{{name: hinge, kind: revolute, parent: world, body: link, axis: [0, 1, 0], resistance: {resistance}}}"
    return TightCables(parse_robot(f"{HINGED}joints:\n  - {joint}\n{MOTOR}"))


@given(ratio=st.floats(-6.0, 4.0), held=st.floats(1e-4, 0.1))
@settings(deadline=None)
def test_a_damper_slows_a_joint_down_as_its_exponential_says(ratio: float, held: float):
    damping = 10.0**ratio * INERTIA / held
    tight = link(f"{{damping: {damping:.17g}}}")
    arrays = tight.update(np.zeros(1), np.ones(1), 0.5 * held, held=held)
    left = 1.0 + held * float(arrays.rate_0[0])
    assert left == pytest.approx(math.exp(-(10.0**ratio)), abs=1e-6)


@given(ratio=st.floats(-3.0, 3.0), speed=st.floats(-1.0, 1.0), turn=st.floats(-0.2, 0.2))
@settings(deadline=None)
def test_a_spring_never_gains_energy_however_long_the_step(ratio: float, speed: float, turn: float):
    held = 0.02
    stiffness = (10.0**ratio / held) ** 2 * INERTIA
    tight = link(f"{{stiffness: {stiffness:.17g}}}")
    q, v = np.array([turn]), np.array([speed])

    def energy() -> float:
        return 0.5 * INERTIA * v[0] ** 2 + 0.5 * stiffness * q[0] ** 2

    before = energy()
    for _ in range(20):
        q, v, _ = tight.moved_under(q, v, np.zeros(1), held)
    assert energy() == pytest.approx(before, rel=1e-6, abs=1e-12)


@given(damping=st.floats(100.0, 1e4), held=st.floats(0.01, 0.1), speed=st.floats(-1.0, 1.0))
@settings(deadline=None, max_examples=10)
def test_a_damper_in_a_loop_holds_as_the_same_one_in_the_tree_does(damping: float, held: float, speed: float):
    """An elbow that is a joint of the tree, or that ties a body which is free in space to the arm."""
    law, found = f"{{damping: {damping:.17g}}}", []
    arm = "  arm: {mass: 0.2, inertia: [1.0e-3, 1.0e-3, 1.0e-3]}\njoints:\n"
    arm += "  - {name: hinge, kind: revolute, parent: world, body: arm, axis: [0, 1, 0]}\n"
    for elbow in (
        f"  - {{name: elbow, kind: revolute, parent: arm, body: link, axis: [0, 1, 0], frame: {{at: [0, 0, 0.3]}}, "
        f"resistance: {law}}}\n",
        "  - {name: free, kind: floating, parent: world, body: link, start: [0, 0, 0.3, 0, 0, 0]}\nloops:\n"
        "  - {name: elbow, kind: revolute, before: arm, after: link, frame_before: {at: [0, 0, 0.3], z: [0, 1, 0]}, "
        f"frame_after: {{z: [0, 1, 0]}}, turning: {law}}}\n",
    ):
        tight = TightCables(parse_robot(HINGED + arm + elbow + MOTOR))
        rates = np.zeros(tight.mechanism.velocity_count)
        rates[tight.mechanism.velocities_of("hinge")] = speed
        if "elbow" in elbow.split("loops")[0]:
            rates[tight.mechanism.velocities_of("elbow")] = -speed  # the link stays as it is turned
        else:
            rates[tight.mechanism.velocities_of("free")] = [0.3 * speed, 0, 0, 0, 0, 0]
        arrays = tight.update(np.array(tight.model.start), rates, held=held)
        found.append(np.append(arrays.joint_1[0], arrays.joint_0))
    # the one in the loop counts as fast: it lacks the inertia that the exponential of the other one takes off
    np.testing.assert_allclose(found[0], found[1], rtol=0.05, atol=1e-6)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("late", [0, 1, 3], ids="{} periods late".format)
@pytest.mark.parametrize(("damping", "mass"), [(3.0, 0.4), (30.0, 0.4), (2.0, 0.02)])
def test_qp_keeps_a_robot_whose_joints_stop_faster_than_its_period(damping: float, mass: float, late: int):
    """Tensions fell to zero: within a period dampers were foreseen to push their joints beyond rest."""
    robot = damped_mast(damping, mass)
    delays = Delays(states=(late, late), commands=(late, late))
    loop = DelayedLoop(robot, make_controller("qp", robot), 0.005, delays)
    loop.run(0.3)
    goal = loop.simulation.observe().pose[0] + np.array([0.04, 0.0, 0.0])
    loop.run(loop.control.set_goal(loop.stamp, goal).duration + 1.0 + late)  # a loop of late commands is slower
    assert loop.least() > 1.0
    assert np.linalg.norm((loop.simulation.observe().pose[0] - goal)[:2]) < 1e-3


def test_qp_keeps_a_hand_at_rest_however_late_its_commands_are():
    robot = load_robot("examples/tendon_hand.yaml")
    loop = DelayedLoop(robot, make_controller("qp", robot), 0.005, Delays((0, 3), (0, 3), (1, 3), seed=3))
    loop.run(0.8)
    assert loop.least() > 1.0 and not loop.refused
