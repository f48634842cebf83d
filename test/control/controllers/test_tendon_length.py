"""Tendon length control: exact ends, kept limits, smooth changes of mind, and an honest reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_control import RobotState, inverse_kinematics, make_controller
from tensegrity_control.controllers.tendon_length import TendonLengthController
from tensegrity_control.inverse_kinematics.structure_equilibria import StructureEquilibriumMap
from tensegrity_control.trajectories.time_scaling import Cubic, MinimumJerk, Waypoints
from tensegrity_dynamics import InfeasibleControlError, TensegrityError, UnreachableGoalError, load_robot
from tensegrity_dynamics.numerics.rotations import matrix_from_quaternion, matrix_from_vector, quaternion_from_matrix
from tensegrity_dynamics.robots.output_frame import pose_error

ROBOT = load_robot("tensebot")
MEMBERS = ROBOT.actuated_members()
RATES = np.array([actuator.rate for actuator in ROBOT.actuators])
HOME = np.array(ROBOT.structure.rest_lengths[MEMBERS])
EQUILIBRIA = StructureEquilibriumMap(ROBOT, rigid_bars=True)


@pytest.fixture
def controller() -> TendonLengthController:
    made = make_controller("tendon_length", ROBOT)
    assert isinstance(made, TendonLengthController)
    made.reset(0.0)
    return made


def goal_from(controller, move=(0.0, 0.0, 0.0), turn=(0.0, 0.0, 0.0)):
    position, quaternion = controller.home.pose
    return position + np.array(move), quaternion_from_matrix(
        matrix_from_vector(turn) @ matrix_from_quaternion(quaternion)
    )


def commands(controller, times):
    return np.array([controller.command(float(time)).values for time in times])


def shape_of(values, start):
    return EQUILIBRIA.solve_lengths(EQUILIBRIA.rest_lengths(values, start), start)


def test_commands_begin_and_end_bit_for_bit(controller) -> None:
    odd = HOME + np.linspace(-1e-3, 1e-3, 12) / 3.0
    controller.reset(2.0, RobotState(positions=odd))
    assert np.array_equal(controller.command(2.0).values, odd)
    goal = goal_from(controller, (0.01, 0.0, 0.01))
    answer = controller.set_goal(3.0, *goal)
    assert np.array_equal(controller.command(3.0).values, odd)
    lengths = EQUILIBRIA.rest_lengths(odd, controller.home)
    start = EQUILIBRIA.solve_lengths(lengths, controller.home.nodes)
    found = inverse_kinematics(ROBOT, *goal, start=start, preferred=controller.home, equilibria=EQUILIBRIA)
    last = controller.command(answer.arrival).values
    np.testing.assert_allclose(last, list(found.positions.values()), atol=1e-9)
    assert np.array_equal(controller.command(answer.arrival + 100.0).values, last)
    assert controller.status(answer.arrival).phase == "holding"
    assert controller.command(answer.arrival).names == tuple(actuator.name for actuator in ROBOT.actuators)


def test_the_reference_is_the_pose_of_the_commanded_lengths_and_each_is_a_safe_shape(controller) -> None:
    answer = controller.set_goal(0.0, *goal_from(controller, (0.015, -0.01, 0.01), (0.08, 0.0, -0.1)))
    shape = controller.home
    for time in np.linspace(0.0, answer.arrival, 40):
        shape = shape_of(controller.command(time).values, shape)
        assert shape.stable
        assert not shape.slack
        assert np.abs(pose_error(controller.reference(time).pose, shape.pose)).max() < 5e-6


def test_the_reference_twist_is_the_rate_of_its_pose(controller) -> None:
    answer = controller.set_goal(0.0, *goal_from(controller, (0.015, -0.01, 0.01), (0.08, 0.2, -0.1)))
    step = 1e-5
    for part in (0.11, 0.37, 0.5, 0.83):
        time = part * answer.duration
        ends = [controller.reference(time + sign * step).pose for sign in (1.0, -1.0)]
        rate = pose_error(*ends) / (2 * step)
        np.testing.assert_allclose(controller.reference(time).twist, rate, atol=1e-6)
    assert np.abs(controller.reference(0.5 * answer.duration).twist).max() > 1e-3


@pytest.mark.parametrize("profile", ["minimum_jerk", "cubic"])
def test_the_shortest_duration_uses_the_rate_up_to_its_margin(profile: str) -> None:
    controller = TendonLengthController(ROBOT, swing_periods=0.0, rate_margin=0.8)
    controller.reset(0.0)
    answer = controller.set_goal(0.0, *goal_from(controller, (0.02, 0.0, 0.0)), profile=profile)
    times = np.linspace(0.0, answer.duration, 801)
    used = (np.abs(np.diff(commands(controller, times), axis=0)) / np.diff(times)[:, None] / RATES).max()
    assert 0.78 < used < 0.801


def test_a_small_motion_takes_several_of_the_slowest_periods(controller) -> None:
    answer = controller.set_goal(0.0, *goal_from(controller, (0.0, 0.0, 1e-4)))
    longer = TendonLengthController(ROBOT, swing_periods=8.0)
    longer.reset(0.0)
    assert longer.set_goal(0.0, *goal_from(longer, (0.0, 0.0, 1e-4))).duration == pytest.approx(2 * answer.duration)


def test_a_duration_is_kept_where_rates_allow_and_lengthened_with_a_note_where_not(controller) -> None:
    goal = goal_from(controller, (0.02, 0.0, 0.0))
    slow = controller.set_goal(0.0, *goal, duration=20.0)
    assert slow.duration == 20.0
    assert slow.note == ""
    controller.reset(0.0)
    fast = controller.set_goal(0.0, *goal, duration=0.01)
    assert fast.duration > 0.5
    assert "rate limit of" in fast.note


@settings(max_examples=10, deadline=None)
@given(
    first=st.tuples(*[st.floats(-0.015, 0.015)] * 3),
    second=st.tuples(*[st.floats(-0.015, 0.015)] * 3),
    part=st.floats(0.02, 0.98),
)
def test_a_new_goal_on_the_way_keeps_place_and_rate_of_every_tendon(first, second, part: float) -> None:
    controller = TendonLengthController(ROBOT)
    controller.reset(0.0)
    old = controller.set_goal(0.0, *goal_from(controller, first))
    now = part * old.duration
    step = 1e-4
    before = commands(controller, [now - step, now])
    goal = goal_from(controller, second)
    new = controller.set_goal(now, *goal)
    after = commands(controller, [now, now + step])
    assert np.array_equal(after[0], before[1])
    np.testing.assert_allclose(np.diff(after, axis=0), np.diff(before, axis=0), atol=2e-3 * step)
    times = np.arange(now, new.arrival + 0.02, 0.01)
    rates = np.abs(np.diff(commands(controller, times), axis=0)) / 0.01
    assert (rates <= RATES * (1 + 1e-9)).all()
    assert np.abs(pose_error(goal, controller.reference(new.arrival).pose)).max() < 1e-8


def test_a_refused_goal_leaves_the_motion_as_it_was(controller) -> None:
    answer = controller.set_goal(0.0, *goal_from(controller, (0.01, 0.0, 0.0)))
    times = np.linspace(0.3, answer.arrival, 7)
    undisturbed = commands(controller, times[:-1])
    for bad in (
        {"position": (np.nan, 0.0, 0.0)},
        {"position": (9.0, 0.0, 0.0)},
        {"position": controller.home.pose[0], "duration": -1.0},
        {"position": controller.home.pose[0], "profile": "minimum_jork"},
        {},
    ):
        with pytest.raises(TensegrityError):
            controller.set_goal(0.3, **bad)
    assert np.array_equal(commands(controller, times[:-1]), undisturbed)


def test_an_unreachable_goal_is_refused_with_the_nearest_pose(controller) -> None:
    with pytest.raises(UnreachableGoalError) as caught:
        controller.set_goal(0.0, *goal_from(controller, (0.0, 0.2, 0.0)))
    assert controller.set_goal(0.0, *caught.value.nearest.pose).arrival > 0.0


def test_hold_comes_to_rest_on_the_way_and_stop_latches_until_released(controller) -> None:
    answer = controller.set_goal(0.0, *goal_from(controller, (0.02, 0.0, 0.0)))
    now = 0.5 * answer.duration
    controller.command(now)
    controller.stop(now)
    assert controller.status(now).phase == "stopped"
    held = commands(controller, [now + 1.0, now + 2.0])
    assert np.array_equal(held[0], held[1])
    distance = pose_error(controller.reference(now + 2.0).pose, controller.home.pose)[0]
    assert 0.01 < distance < 0.018
    with pytest.raises(TensegrityError, match="release it"):
        controller.set_goal(now + 2.0, *goal_from(controller))
    controller.reset(now + 2.0, RobotState(positions=held[1]))
    with pytest.raises(TensegrityError, match="release it"):
        controller.set_goal(now + 2.0, *goal_from(controller))
    controller.release()
    assert controller.set_goal(now + 2.0, *goal_from(controller)).arrival > now + 2.0


def test_holding_twice_does_not_prolong_the_braking(controller) -> None:
    answer = controller.set_goal(0.0, *goal_from(controller, (0.02, 0.0, 0.0)))
    now = 0.5 * answer.duration
    controller.hold(now)
    end = controller.status(now).arrival
    controller.hold(now + 0.5 * (end - now))
    assert controller.status(now).arrival == end


def test_following_waypoints_passes_through_each_at_its_time(controller) -> None:
    waypoints = [
        (3.0, *goal_from(controller, (0.01, 0.0, 0.0))),
        (6.0, *goal_from(controller, (0.01, 0.01, 0.0))),
        (9.0, *goal_from(controller, (0.0, 0.01, 0.005), (0.0, 0.05, 0.0))),
    ]
    answer = controller.follow(1.0, waypoints)
    assert answer.arrival == 10.0
    for time, position, quaternion in waypoints:
        assert np.abs(pose_error((position, quaternion), controller.reference(1.0 + time).pose)).max() < 1e-8
    assert np.abs(controller.reference(1.0 + 3.0).twist[0]) > 1e-5


@pytest.mark.parametrize(
    ("times", "kind", "words"),
    [
        ((0.05, 0.1), InfeasibleControlError, "stretch all times"),
        ((2.0, 1.0), TensegrityError, "increase"),
        ((-1.0, 1.0), TensegrityError, "above zero"),
        ((np.nan, 1.0), TensegrityError, "seconds"),
        ((), TensegrityError, "one or more"),
    ],
)
def test_waypoint_times_that_cannot_be_kept_are_refused(controller, times, kind, words: str) -> None:
    moves = ((0.01, 0.0, 0.0), (0.0, 0.01, 0.0))
    waypoints = [(time, *goal_from(controller, move)) for time, move in zip(times, moves, strict=False)]
    with pytest.raises(kind, match=words):
        controller.follow(0.0, waypoints)
    assert np.array_equal(controller.command(5.0).values, HOME)


def test_feedback_removes_the_error_of_a_wrong_stiffness_and_without_it_the_error_stays() -> None:
    structure = ROBOT.structure
    softer = np.where([kind == "spring" for kind in structure.kinds], 0.9, 1.0) * structure.stiffness
    softer_robot = replace(ROBOT, model=replace(structure, stiffness=softer))
    plant = StructureEquilibriumMap(softer_robot, rigid_bars=True)
    left = {}
    for gain in (0.0, 1.0):
        controller = TendonLengthController(ROBOT, feedback_gain=gain)
        controller.reset(0.0)
        goal = goal_from(controller, (0.01, 0.0, 0.01), (0.05, 0.0, 0.0))
        arrival = controller.set_goal(0.0, *goal).arrival
        shape, time, pose = controller.home, 0.0, None
        while time < arrival + 12.0:
            values = controller.command(time, RobotState(pose=pose)).values
            shape = plant.solve_lengths(plant.rest_lengths(values, shape), shape)
            assert not shape.slack
            pose, time = shape.pose, time + 0.05
        left[gain] = np.abs(pose_error(goal, pose)).max()
    assert left[0.0] > 5e-4
    assert left[1.0] < 1e-6


def test_feedback_stops_at_its_limit_and_ignores_a_pose_that_is_no_number() -> None:
    controller = TendonLengthController(ROBOT, feedback_gain=5.0, feedback_limit=1e-3)
    controller.reset(0.0)
    position, quaternion = controller.home.pose
    for step in range(200):
        controller.command(0.1 * step, RobotState(pose=(position + [0.05, 0.0, 0.0], quaternion)))
    settled = controller.command(20.0).values
    assert 1e-4 < np.abs(settled - HOME).max() <= 1e-3
    for step in range(20):
        controller.command(20.0 + 0.1 * step, RobotState(pose=(position * np.nan, quaternion)))
    assert np.array_equal(controller.command(22.0).values, settled)


def test_goals_before_the_first_state_are_refused() -> None:
    controller = make_controller("tendon_length", ROBOT)
    with pytest.raises(TensegrityError, match="call reset"):
        controller.set_goal(0.0, (0.0, 0.0, 0.2))
    assert controller.status(0.0).phase == "idle"


@pytest.mark.parametrize(
    ("positions", "words"),
    [
        (HOME[:5], "12 actuators"),
        (HOME * np.nan, "finite"),
        ({"saddle_1": 0.2}, "no position of"),
        (HOME * 2, "not stable|slack"),
    ],
)
def test_a_state_that_cannot_be_held_is_refused(controller, positions, words: str) -> None:
    with pytest.raises(TensegrityError, match=words):
        controller.reset(0.0, RobotState(positions=positions))


@pytest.mark.parametrize(
    ("name", "parameters", "words"),
    [
        ("tendon_lenght", {}, "Did you mean 'tendon_length'"),
        ("tendon_length", {"rate_margn": 0.5}, "Did you mean 'rate_margin'"),
        ("tendon_length", {"rate_margin": 1.5}, "from 1e-06 to 1"),
        ("tendon_length", {"feedback_gain": np.nan}, "feedback_gain"),
    ],
)
def test_make_controller_refuses_what_it_does_not_know(name: str, parameters: dict, words: str) -> None:
    with pytest.raises(TensegrityError, match=words):
        make_controller(name, ROBOT, **parameters)


@pytest.mark.parametrize("law", [MinimumJerk(2.5), Cubic(0.7), Waypoints([0.0, 1.0, 1.5, 4.0], [0.0, 0.2, 0.7, 1.0])])
def test_time_laws_start_where_they_say_end_at_rest_and_their_rate_is_their_derivative(law) -> None:
    start, end = law.at(0.0)[0], law.at(law.duration)
    assert start == 0.0
    assert end[1] == pytest.approx(0.0, abs=1e-12)
    assert end[0] == 1.0
    assert law.at(law.duration + 5.0) == law.at(law.duration)
    times = np.linspace(0.01, 0.99, 41) * law.duration
    rates = [(law.at(time + 1e-6)[0] - law.at(time - 1e-6)[0]) / 2e-6 for time in times]
    np.testing.assert_allclose([law.at(time)[1] for time in times], rates, atol=1e-6)
    assert min(rates) > -1e-9
