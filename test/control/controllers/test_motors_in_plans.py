"""Plans know what motors can do: speed over torque lengthens a motion, or refuses it by the name of the servo."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_control.controller import RobotState
from tensegrity_control.controllers.actuator_motion import ActuatorMotion
from tensegrity_control.registry import make_controller
from tensegrity_control.trajectories.time_scaling import Progress
from tensegrity_driver.emulator.motor_model import Drive, turn
from tensegrity_dynamics import RobotFileError, load_robot, parse_robot
from tensegrity_dynamics.errors import InfeasibleControlError, TensegrityError
from tensegrity_dynamics.robots.actuator import Actuator, Motor
from tensegrity_dynamics.robots.motor_limits import MotorLimits


def with_motors(robot, free_rate, stall_effort):
    return replace(
        robot,
        actuators=tuple(
            replace(each, motor=Motor(f"servo {k} (weak)", free_rate, stall_effort))
            for k, each in enumerate(robot.actuators)
        ),
    )


@settings(max_examples=25, deadline=None)
@given(st.floats(0.05, 0.95), st.floats(0.1, 10.0), st.floats(0.1, 10.0), st.sampled_from([1.0, -1.0]))
def test_limits_are_those_of_the_emulated_servo(part, stall, free, sense):
    limits = MotorLimits(
        [Actuator("joint", "joint", (-1, 1), 5.0, 9.0, motion="revolute", motor=Motor("m", free, stall))]
    )
    load = -sense * part * stall
    moved = turn(Drive(speed=100.0 * sense * free, ceiling=stall), load, stall, free, 0.0, 1e-3)
    assert limits.rates([[-load]], [[sense]])[0, 0] == pytest.approx(abs(moved.speed), rel=1e-9)
    assert limits.rates([[load]], [[sense]])[0, 0] == free  # with its load
    assert limits.efforts([abs(moved.speed)])[0] == pytest.approx(part * stall, rel=1e-9)


def test_servos_of_a_file_are_the_motors_of_its_actuators():
    robot = load_robot("manipulator")
    assert robot.actuators[0].motor is None  # drives of a simulation do all that their limits allow
    motor = robot.with_servo_motors().actuators[0].motor
    assert motor.name == "servo 1 (XM430-W350)"
    assert (motor.free_rate, motor.stall_effort) == pytest.approx((46 * 2 * np.pi / 60 / 2, 2 * 4.1))
    motor = load_robot("tensebot").with_servo_motors().actuators[6].motor
    assert (motor.name, motor.stall_effort) == ("servo 7 (AX-12A)", pytest.approx(1.5 / 4.85e-3))
    assert motor.free_rate == pytest.approx(59 * 2 * np.pi / 60 * 4.85e-3)


def test_half_a_motor_is_refused_by_field():
    text = """
name: arm
kind: mechanism
bodies: {arm: {mass: 1, inertia: [1, 1, 1]}}
joints: [{name: hinge, kind: revolute, parent: world, body: arm, axis: [0, 1, 0]}]
actuators: [{drives: hinge, position: [-1, 1], rate: 5, effort: 9, free_rate: "60 deg/s", stall_effort: 12}]
"""
    assert parse_robot(text).actuators[0].motor == Motor("the motor of hinge", np.pi / 3, 12.0)
    with pytest.raises(RobotFileError, match="give stall_effort, too"):
        parse_robot(text.replace(", stall_effort: 12", ""))
    with pytest.raises(RobotFileError, match="free_rate"):
        parse_robot(text.replace("60 deg/s", "0 deg/s"))


def test_a_slow_servo_lengthens_motions_of_tendons_and_a_weak_one_is_refused():
    robot = load_robot("three_prism")
    usual = make_controller("tendon_length", robot, swing_periods=0.0)
    usual.reset(0.0)
    raised = usual.make_goal(0.0, np.array(usual.reference(0.0).pose[0]) + [0.0, 0.0, 2e-3])
    quick = usual.plan_goal(0.0, raised, duration=1e-3)
    highest = max(usual.equilibria.efforts(each).max() for each in quick.tracker.path.equilibria_on_it)

    slow = make_controller("tendon_length", with_motors(robot, 2e-3, 1.3 * highest), swing_periods=0.0)
    slow.reset(0.0)
    plan = slow.plan_goal(0.0, raised, duration=1e-3)
    assert plan.duration > 2.0 * quick.duration
    assert "(weak) of" in plan.note
    path, times = plan.tracker, np.linspace(0.0, plan.duration, 301)
    worst = slow.motors.use(
        [path.rates(Progress(t, 1.0, 0.0)) for t in times],
        [slow.equilibria.efforts(path.equilibrium(t)) for t in times[::1]],
    )
    assert worst.factor == pytest.approx(slow.rate_margin, rel=1e-3)

    weak = make_controller("tendon_length", with_motors(robot, 1.0, 0.9 * highest), swing_periods=0.0)
    weak.reset(0.0)
    with pytest.raises(InfeasibleControlError, match=r"servo \d \(weak\) of .*, which stalls at"):
        weak.plan_goal(0.0, raised)


def test_a_motion_of_actuators_is_refused_where_a_servo_is_too_slow():
    robot = with_motors(load_robot("three_rrr"), 0.5, 10.0)
    names = [each.name for each in robot.actuators]
    with pytest.raises(TensegrityError, match=r"too fast for servo 1 \(weak\) of hinge_2.*stretch all times"):
        ActuatorMotion(robot, 0.0, np.zeros(3), None, names, [1.0], [[0.1, 0.6, 0.0]])
    assert ActuatorMotion(robot, 0.0, np.zeros(3), None, names, [4.0], [[0.1, 0.6, 0.0]]).duration == 4.0


@pytest.mark.long
def test_computed_torque_takes_the_time_that_its_servos_need():
    robot = with_motors(load_robot("three_rrr"), 0.8, 20.0)
    controller = make_controller("computed_torque", robot, actuation="effort")
    q = np.array(robot.model.initial_configuration)
    controller.reset(0.0, RobotState(q=q, v=np.zeros(robot.mechanism.velocity_count)))
    goal = controller.make_goal(0.0, np.array(controller.reference(0.0).pose[0]) + [0.05, 0.0, 0.0])
    plan = controller.plan_goal(0.0, goal, duration=0.2)
    assert plan.duration > 0.2
    assert "(weak) of hinge" in plan.note
