"""Kinematic control and computed torque of parallel mechanisms, on the machine of document 002."""

from __future__ import annotations

import numpy as np
import pytest
from multibody_machines import FOOT_MASS, LEG, TIP_MASS, WIDTH

from tensegrity_control import RobotState, make_controller
from tensegrity_control.controllers.computed_torque import ComputedTorqueTracker
from tensegrity_control.controllers.kinematic import KinematicTracker
from tensegrity_control.trajectories.quintic import QuinticSpline
from tensegrity_control.trajectories.splines import HermiteSpline
from tensegrity_dynamics import Simulation, load_robot
from tensegrity_dynamics.errors import InfeasibleControlError, TensegrityError, UnreachableGoalError
from tensegrity_dynamics.mechanisms.robot_kinematics import loop_kinematics
from tensegrity_tools.runtime.delayed_loop import DelayedLoop

START, END, DURATION = (0.0, 0.30005393), (0.1, 0.1), 2.0


@pytest.fixture(scope="module")
def robot():
    return load_robot("biglide")


@pytest.fixture(scope="module")
def path():
    return QuinticSpline([0.0, DURATION], [START, END], rates=np.zeros((2, 2)), accelerations=np.zeros((2, 2)))


def jacobian(position):
    """p' = J q' of the closed form, working mode (-1, -1): each foot stands one leg below the tip's circle."""
    x, _ = position
    sides = (x + 0.5 * WIDTH, x - 0.5 * WIDTH)
    rises = [np.sqrt(LEG**2 - side**2) for side in sides]
    a = np.array([[side, rise] for side, rise in zip(sides, rises, strict=True)])
    return np.linalg.solve(a, np.diag(rises))


def largest_error(robot, path, period, gain=2.0):
    """m, at the instants of communication, with the active joints moving at held rates in between."""
    kinematics = loop_kinematics(robot)
    control, q = KinematicTracker(kinematics, path, robot.model.start, gain=gain), np.array(robot.model.start)
    active, worst = np.zeros(2), 0.0
    for k in range(round(DURATION / period)):
        active = active + period * control.velocity(k * period, q)
        q = kinematics.direct(active, q)
        worst = max(worst, float(np.linalg.norm(kinematics.output_values(q) - path.value((k + 1) * period))))
    return worst


def test_rates_are_those_of_the_closed_form(robot, path):
    kinematics = loop_kinematics(robot)
    control = KinematicTracker(kinematics, path, robot.model.start, gain=0.0)
    for time in (0.3, 1.0, 1.7):
        q = kinematics.inverse(path.value(time), robot.model.start)
        own = jacobian(path.value(time)) @ control.velocity(time, q)
        np.testing.assert_allclose(own, path.value(time, 1), atol=1e-9)


def test_error_is_proportional_to_the_communication_time(robot, path):
    errors = [largest_error(robot, path, period) for period in (0.1, 0.05, 0.025)]
    assert 1.7 < errors[0] / errors[1] < 2.4
    assert 1.8 < errors[1] / errors[2] < 2.3


def test_an_error_dies_out_with_the_gain(robot):
    kinematics = loop_kinematics(robot)
    still = HermiteSpline([0.0, 4.0], [[0.02, 0.28], [0.02, 0.28]], np.zeros((2, 2)))
    left = {}
    for gain in (2.0, 0.0):
        control, q, active = (
            KinematicTracker(kinematics, still, robot.model.start, gain=gain),
            np.array(robot.model.start),
            np.zeros(2),
        )
        for k in range(200):
            active = active + 0.02 * control.velocity(0.02 * k, q)
            q = kinematics.direct(active, q)
        left[gain] = np.linalg.norm(kinematics.output_values(q) - still.value(4.0))
    assert left[2.0] < 1.1 * np.exp(-2.0 * 4.0) * left[0.0]


def test_edge_of_the_reach_is_refused_with_the_joint_that_lost_its_hold(robot):
    kinematics = loop_kinematics(robot)
    edge = LEG - 0.5 * WIDTH
    q = kinematics.inverse([edge - 1e-7, 0.1], robot.model.start)
    still = HermiteSpline([0.0, 1.0], [[0.0, 0.3], [0.0, 0.3]], np.zeros((2, 2)))
    with pytest.raises(InfeasibleControlError, match=r"joint rail_\d cannot move the output any more \(Type 1"):
        KinematicTracker(kinematics, still, q).velocity(0.0, q)


@pytest.mark.parametrize("name", ["kinematic", "computed_torque"])
def test_a_goal_out_of_reach_is_named_as_it_was_asked(robot, name):
    simulation = Simulation(robot)
    control = make_controller(name, robot)
    control.reset(0.0, RobotState.of(simulation))
    goal = simulation.observe().pose[0] + np.array([3.0, 0.0, 0.0])
    with pytest.raises(UnreachableGoalError, match=rf"output \({goal[0]:.6g}, .* can be followed to"):
        control.set_goal(0.0, goal)


def test_efforts_on_the_path_are_those_of_the_closed_form(robot, path):
    """tau = m_f q'' + m_p J' P'' (002, 2.32) without deviations."""
    kinematics = loop_kinematics(robot)
    control = ComputedTorqueTracker(kinematics, path, robot.model.start)
    for time in (0.4, 1.0, 1.6):
        desired = control.reference(time)
        found = control.effort(time, desired.q, desired.v)
        position = path.value(time)
        expected = FOOT_MASS * desired.acceleration + TIP_MASS * jacobian(position).T @ path.value(time, 2)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.long
def test_computed_torque_follows_the_path_in_simulation(robot, path):
    kinematics = loop_kinematics(robot)
    control = ComputedTorqueTracker(kinematics, path, robot.model.start)
    simulation, worst = Simulation(robot, 1e-3), 0.0
    for _ in range(1000):
        state = simulation.state
        force = control.effort(state.time, state.q, state.v)
        for _ in range(2):
            state = simulation.step(effort={"foot_1": force[0], "foot_2": force[1]})
        worst = max(worst, float(np.linalg.norm(kinematics.output_values(state.q) - path.value(state.time))))
    assert worst < 1e-3


@pytest.mark.long
def test_deviations_die_out_as_the_gains_say(robot):
    """K_p = 1, K_d = 2: critically damped with one second, whatever the mass."""
    kinematics = loop_kinematics(robot)
    still = HermiteSpline([0.0, 10.0], [[0.0, 0.30005393]] * 2, np.zeros((2, 2)))
    control = ComputedTorqueTracker(kinematics, still, robot.model.start)
    simulation = Simulation(robot, 1e-3, start=kinematics.direct([0.01, 0.01], robot.model.start))
    for _ in range(3000):
        state = simulation.state
        force = control.effort(state.time, state.q, state.v)
        simulation.step(effort={"foot_1": force[0], "foot_2": force[1]})
    position = simulation.observe().positions["foot_1"]
    assert abs(position / 0.01 - (1.0 + 3.0) * np.exp(-3.0)) < 5e-3


def test_efforts_stay_within_their_limits(robot, path):
    control = ComputedTorqueTracker(loop_kinematics(robot), path, robot.model.start, limits=np.array([0.01, 0.01]))
    desired = control.reference(0.5)
    assert np.max(np.abs(control.effort(0.5, desired.q, desired.v))) == 0.01


def test_gains_and_limits_are_checked(robot, path):
    kinematics, start = loop_kinematics(robot), robot.model.start
    with pytest.raises(TensegrityError, match="stiffness is -1"):
        ComputedTorqueTracker(kinematics, path, start, stiffness=-1.0)
    with pytest.raises(TensegrityError, match="limits must be 2 efforts above zero"):
        ComputedTorqueTracker(kinematics, path, start, limits=np.array([1.0, 0.0]))
    with pytest.raises(TensegrityError, match="must not be negative"):
        KinematicTracker(kinematics, path, start, gain=-2.0)


ARM = """
kind: mechanism
name: arm
density: 1200
bodies:
  upper: {shapes: [{kind: box, size: [0.03, 0.03, 0.26], frame: {at: [0, 0, 0.13]}}]}
  lower: {shapes: [{kind: box, size: [0.02, 0.02, 0.21], frame: {at: [0, 0, 0.105]}}]}
joints:
  - {name: shoulder, kind: revolute, parent: world, body: upper, axis: [0, 1, 0], start: 0.5}
  - {name: elbow, kind: revolute, parent: upper, body: lower, axis: [0, 1, 0], frame: {at: [0, 0, 0.26]}, start: 0.8}
actuators:
  - {drives: shoulder, position: [-3, 3], rate: 4, effort: 12}
  - {drives: elbow, position: [-3, 3], rate: 4, effort: 8}
outputs:
  - {name: tip, body: lower, frame: {at: [0, 0, 0.21]}, controlled: [x, z]}
"""


@pytest.mark.parametrize("name", ["kinematic", "computed_torque"])
def test_a_goal_at_a_singular_position_is_refused_before_anything_moves(name, tmp_path):
    """The path ends where the arm is stretched: nothing is crossed, but its controller could not stand there."""
    path = tmp_path / "arm.yaml"
    path.write_text(ARM)
    control = make_controller(name, load_robot(str(path)))
    loop = DelayedLoop(control.robot, control, control.period)
    loop.run(5 * control.period)
    turn = loop.simulation.observe().pose[1]
    for reach, words in ((0.47, "singularity"), (0.469, "")):
        goal = control.make_goal(loop.stamp, reach * np.array([np.sin(0.7), 0.0, np.cos(0.7)]), turn)
        if words:
            with pytest.raises(InfeasibleControlError, match=words):
                control.plan_goal(loop.stamp, goal, duration=2.0)
        else:
            control.plan_goal(loop.stamp, goal, duration=2.0)
