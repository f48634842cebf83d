"""Outputs that turn under `qp`: references and errors on SO(3), equations of angular motion, goals."""

from __future__ import annotations

import numpy as np
import pytest
import qp_loop
from hypothesis import given, settings
from hypothesis import strategies as st
from qp_loop import BALL_MAST, loop, robot_named

from tensegrity_control.controllers.qp.output_task import OutputPath, OutputTask
from tensegrity_control.inverse_kinematics.pose_goal import PoseGoal, make_goal, rotation_error_rate
from tensegrity_control.trajectories.online import OnlineMotion
from tensegrity_control.trajectories.time_scaling import Progress
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.mechanisms.body_frame import BodyFrame
from tensegrity_dynamics.mechanisms.body_poses import BodyPoses
from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables
from tensegrity_dynamics.mechanisms.kinematics.configuration_space import configuration_rate, normalise_quaternions
from tensegrity_dynamics.numerics.rotations import (
    matrix_from_quaternion,
    matrix_from_vector,
    quaternion_from_matrix,
    rotation_vector,
)
from tensegrity_dynamics.robots.load_robot import load_robot, parse_robot
from tensegrity_dynamics.robots.output_frame import pose_error
from tensegrity_tools.experiments._runs import Variants

SEEDS = st.integers(0, 10_000)


def task_of(*axes: str) -> OutputTask:
    return OutputTask(BodyFrame("plate", "plate", controlled=axes))


@settings(max_examples=10)
@given(seed=SEEDS, pace=st.floats(0.2, 1.5))
def test_angular_rates_of_a_reference_are_those_of_its_rotation_through_large_turns(seed, pace):
    rng = np.random.default_rng(seed)
    turn = rng.normal(size=3)
    goal = np.concatenate((rng.normal(size=3), 3.0 * turn / np.linalg.norm(turn)))
    start = np.vstack((np.zeros(6), rng.normal(size=(2, 6))))
    path = OutputPath(OnlineMotion(start, goal, 2.0, 8.0), matrix_from_vector(rng.normal(size=3)), 3)
    middle, h = 0.6 * path.duration, 2e-4

    def at(t):  # a clock whose pace changes
        return path.values(Progress(middle + pace * t + 0.15 * t * t, pace + 0.3 * t, 0.3))

    before, here, after = at(-h), at(0.0), at(h)
    turned = rotation_vector(path.turned(after) @ path.turned(before).T) / (2.0 * h)
    np.testing.assert_allclose(here[1, 3:], turned, atol=2e-5 * (1.0 + np.linalg.norm(turned)))
    np.testing.assert_allclose(here[2], (after[1] - before[1]) / (2.0 * h), atol=1e-4 * (1.0 + np.abs(here[2]).max()))


def test_a_new_motion_begins_as_the_reference_moves():
    start = np.vstack((np.zeros(6), np.full((2, 6), 0.4)))
    path = OutputPath(OnlineMotion(start, np.full(6, 1.2), 2.0, 8.0), np.eye(3), 3)
    values = path.values(Progress(0.5 * path.duration, 1.0, 0.0))
    start, rotation = path.begun_anew(values)
    task = task_of("x", "y", "z", "rx", "ry", "rz")
    motion = task.motion(start, np.ones(6), (2.0, 8.0), (1.0, 4.0), None, 0.01)
    again = OutputPath(motion, rotation, 3).values(Progress(0.0, 1.0, 0.0))
    np.testing.assert_allclose(path.turned(values), rotation, atol=1e-12)
    np.testing.assert_allclose(again[1:], values[1:], atol=1e-9)


@settings(max_examples=15)
@given(seed=SEEDS, axes=st.sampled_from([("rz",), ("rx", "ry"), ("rz", "rx")]))
def test_the_error_about_some_axes_dies_out_as_asked_whatever_the_others_do(seed, axes):
    """(P e)'' = -2 W (P e)' - W^2 P e, by differences of e along a motion with the accelerations of the law."""
    rng = np.random.default_rng(seed)
    task, w, h = task_of(*axes), 3.0, 1e-4
    target, error = matrix_from_vector(rng.normal(size=3)), 0.8 * rng.normal(size=3)
    rotation = matrix_from_vector(error).T @ target
    omega, reference = rng.normal(size=3), rng.normal(size=(2, 3))
    values = np.vstack((np.zeros(3), reference))
    turn = rotation_vector(target @ rotation.T)
    selection = np.zeros((len(axes), 6))
    task.fill_selection(turn, selection)
    acceleration_for = task.follow(values, np.zeros(3), np.append(np.zeros(3), omega), selection, turn, w)[2]
    matrix = selection[:, 3:]
    np.testing.assert_allclose(matrix, rotation_error_rate(turn)[task.turns])
    alpha = np.linalg.lstsq(matrix, acceleration_for, rcond=None)[0]
    free = rng.normal(size=3)
    alpha += free - np.linalg.lstsq(matrix, matrix @ free, rcond=None)[0]  # whatever else happens

    def error_at(t):
        goal = matrix_from_vector(t * reference[0] + 0.5 * t * t * reference[1]) @ target
        here = matrix_from_vector(t * omega + 0.5 * t * t * alpha) @ rotation
        return rotation_vector(goal @ here.T)[task.turns]

    before, now, after = error_at(-h), error_at(0.0), error_at(h)
    rate, bend = (after - before) / (2.0 * h), (after - 2.0 * now + before) / h**2
    np.testing.assert_allclose(bend, -2.0 * w * rate - w * w * now, atol=1e-4 * (1.0 + np.abs(bend).max()))


def test_a_rotation_of_nearly_half_a_turn_dies_out_along_its_axis_as_a_critically_damped_mass():
    task, w, step = task_of("rx", "ry", "rz"), 4.0, 1e-4
    axis, target = np.array([0.6, -0.64, 0.48]), matrix_from_vector([0.3, 1.0, -0.4])
    rotation, omega = matrix_from_vector(-3.0 * axis) @ target, np.zeros(3)
    still, selection = np.zeros((3, 3)), np.eye(6)[3:].copy()
    for _ in range(5000):
        turn = rotation_vector(target @ rotation.T)
        moves = np.append(np.zeros(3), omega)
        half = omega + 0.5 * step * task.follow(still, np.zeros(3), moves, selection, turn, w)[2]
        rotation = matrix_from_vector(step * half) @ rotation
        omega = omega + 2.0 * (half - omega)
    angle = 3.0 * (1.0 + w * 0.5) * np.exp(-w * 0.5)
    np.testing.assert_allclose(rotation_vector(target @ rotation.T), angle * axis, atol=1e-3)


def test_angular_accelerations_of_the_equations_are_differences_of_the_angular_velocity():
    text = BALL_MAST.replace("controlled: [x, y]", "controlled: [ry, x, rx, rz]")
    robot = parse_robot(text, "turning.yaml")
    equations, poses, rng = TightCables(robot), BodyPoses(robot.model), np.random.default_rng(3)
    q, independent = np.array(robot.model.start), rng.normal(size=equations.count)
    arrays = equations.update(q, np.zeros(robot.mechanism.velocity_count))
    v = equations.reduction.basis[:, : equations.count] @ (0.2 * independent)
    arrays = equations.update(q, v)
    effort = rng.normal(size=4)
    foreseen = arrays.output_0 + arrays.output_1 @ effort
    rates = arrays.rate_0 + arrays.rate_1 @ effort
    acceleration = equations.reduction.basis[:, : equations.count] @ rates + equations.reduction.offset
    h, twists = 1e-5, []
    for sign in (-1.0, 1.0):
        rate, moved, there = np.zeros_like(q), q.copy(), v + sign * h * acceleration
        for part in range(4):  # along the acceleration, so that the loops stay closed to second order
            configuration_rate(robot.mechanism.flat, moved, v + sign * h * (part + 0.5) / 4 * acceleration, rate)
            moved = moved + sign * h / 4 * rate
            normalise_quaternions(robot.mechanism.flat, moved)
        twists.append(poses.update(moved, there).output(robot.output)[1][robot.output.rows])
    np.testing.assert_allclose(foreseen, (twists[1] - twists[0]) / (2.0 * h), rtol=1e-5, atol=1e-4)


def reached(name: str, move: list[float], turn: list[float] | None, **parameters: float) -> np.ndarray:
    """Largest errors (m, rad) against the reference on the way, and against the goal at the end."""
    made = loop(name, **parameters)
    made.run(0.05)
    position, quaternion = made.look().pose
    rotation = matrix_from_quaternion(quaternion)
    goal = None if turn is None else quaternion_from_matrix(matrix_from_vector(turn) @ rotation)
    accepted = made.control.set_goal(made.time, position + np.array(move), goal)
    worst = np.zeros(2)
    for _ in range(int((accepted.duration + 0.4) / made.control.period)):
        made.run(made.control.period)
        error = pose_error(made.control.reference(made.time).pose, made.look().pose)
        worst = np.maximum(worst, [np.linalg.norm(error[:3]), np.linalg.norm(error[3:])])
    error = pose_error((position + np.array(move), quaternion if goal is None else goal), made.look().pose)
    assert made.control.status(made.time).phase == "holding" and not made.control.relaxed()
    return np.array([worst, [np.linalg.norm(error[:3]), np.linalg.norm(error[3:])]])


def test_a_planar_robot_is_led_to_a_pose_that_turns_it_and_to_one_that_keeps_its_orientation():
    worst, end = reached("three_rrr", [0.02, 0.01, 0.0], [0.0, 0.0, 0.3])
    assert worst[0] < 2e-5 and worst[1] < 3e-4 and max(end) < 1e-5
    _, end = reached("three_rrr", [0.004, -0.002, 0.0], None)
    assert max(end) < 1e-5


@pytest.mark.long
@pytest.mark.parametrize(("name", "angle"), [("stewart", 2e-4), ("cable_robot", 1e-4), ("three_rrr", 3e-4)])
def test_platforms_go_round_their_tours(name, angle):
    for pose in robot_named(name).tour:
        if pose.name != "home":
            worst, end = reached(name, list(pose.move), list(pose.turn))
            assert worst[0] < 1e-4 and worst[1] < angle and max(end) < 3e-5


def turning_loop(monkeypatch) -> qp_loop.Loop:
    """The manipulator with `rz` among what it controls, two motions left free, at rest."""

    def change(blocks):
        blocks["outputs"][0]["controlled"] = ["x", "y", "z", "rz"]
        del blocks["provenance"]

    variants = Variants()
    robot = load_robot(str(variants.file("manipulator", change)))
    monkeypatch.setattr(qp_loop, "robot_named", lambda _: robot)
    made = qp_loop.loop("manipulator")
    made.run(1.2)
    return made


def turned_goal(made: qp_loop.Loop, offset, turn: float) -> PoseGoal:
    position, quaternion = made.look().pose
    turned = quaternion_from_matrix(matrix_from_vector([0.0, 0.0, turn]) @ matrix_from_quaternion(quaternion))
    return make_goal(made.control.robot.output, position + np.array(offset), turned)


def test_a_turn_about_one_axis_is_led_while_the_others_stay_free(monkeypatch):
    made = turning_loop(monkeypatch)
    goal = turned_goal(made, [0.02, 0.01, -0.02], 0.08)
    accepted = made.control.begin(made.time, made.control.plan_goal(made.time, goal))
    _, tensions = made.run(accepted.duration + 0.6)
    pose = made.look().pose
    assert np.max(np.abs(goal.error(pose))) < 1e-6
    assert np.linalg.norm(pose_error(goal.pose, pose)[3:5]) > 0.01  # tilted as it likes
    assert np.min(tensions) > 0.99 * 5.0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("offset", [(0.02, 0.01, -0.03), (0.0, 0.0, 0.0), (0.03, -0.02, -0.02)])
def test_a_turn_beyond_the_floors_stops_at_their_border_and_stays_there(monkeypatch, offset):
    made = turning_loop(monkeypatch)
    goal = turned_goal(made, offset, 0.15)
    accepted = made.control.begin(made.time, made.control.plan_goal(made.time, goal))
    _, on_the_way = made.run(accepted.duration + 2.0)
    before = made.look().pose
    _, at_rest = made.run(2.0)
    assert min(on_the_way.min(), at_rest.min()) > 0.99 * 5.0
    assert np.max(np.abs(pose_error(before, made.look().pose))) < 2e-3
    assert any("reaches its tension floor" in each for each in made.control.relaxed())
    assert 0.005 < np.max(np.abs(goal.error(before))) < 0.1


def test_a_path_that_turns_more_than_can_be_told_apart_is_refused():
    task = task_of("rx", "ry", "rz")
    near = np.zeros(3)
    for angle in np.linspace(0.5, 5.5, 6):
        near = task.coordinates(np.zeros(3), matrix_from_vector([0.0, 0.0, angle]), np.eye(3), near)
        np.testing.assert_allclose(near, [0.0, 0.0, angle], atol=1e-9)
    with pytest.raises(TensegrityError, match="send it in two parts"):
        task.coordinates(np.zeros(3), matrix_from_vector([0.0, 0.0, 6.2]), np.eye(3), near)


@settings(max_examples=20)
@given(seed=SEEDS, speed=st.floats(0.03, 0.1), turning=st.floats(-0.2, 0.2))
def test_a_goal_behind_an_output_that_turns_brakes_it_within_the_limits_of_both(seed, speed, turning):
    line, axis = np.random.default_rng(seed).normal(size=(2, 3))
    line, axis = line / np.linalg.norm(line), axis / np.linalg.norm(axis)
    start = np.zeros((3, 6))
    start[1] = np.concatenate((speed * line, turning * axis))
    goal = np.concatenate((-0.6 * line, axis))
    motion = task_of("x", "y", "z", "rx", "ry", "rz").motion(start, goal, (0.12, 0.1), (1.5, 1.2), None, 0.2, 0.5)
    times = np.linspace(0.0, motion.end, 400)
    assert motion.knots.size == 3
    for part, (rate, bend) in ((slice(0, 3), (0.12, 0.1)), (slice(3, 6), (1.5, 1.2))):
        assert np.max(np.linalg.norm(motion.value(times, 1)[:, part], axis=1)) <= 1.001 * rate
        # beside a brake from the largest rate a motion keeps a part of its limit
        assert np.max(np.linalg.norm(motion.value(times, 2)[:, part], axis=1)) <= 1.31 * bend
    assert np.max(motion.value(times)[:, :3] @ line) <= 0.5 * speed * max(0.5, 1.5 * speed / 0.1) * 1.001
