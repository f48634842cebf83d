"""Rest lengths for goal poses: reached, safe on the way, symmetric, and honest about what cannot be reached."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tensegrity_control import inverse_kinematics
from tensegrity_control.inverse_kinematics.structure_equilibria import StructureEquilibriumMap
from tensegrity_dynamics import TensegrityError, UnreachableGoalError, forward_kinematics, load_robot, parse_robot
from tensegrity_dynamics.numerics.rotations import matrix_from_quaternion, matrix_from_vector, quaternion_from_matrix
from tensegrity_dynamics.robots.output_frame import pose_error

ROBOT = load_robot("tensebot")
EQUILIBRIA = {rigid: StructureEquilibriumMap(ROBOT, rigid_bars=rigid) for rigid in (False, True)}
HOMES = {rigid: equilibria.home for rigid, equilibria in EQUILIBRIA.items()}
MEMBERS = ROBOT.actuated_members()
NAMES = [actuator.name for actuator in ROBOT.actuators]


def plan_to(pose, rigid_bars=True, **options):
    home = HOMES[rigid_bars]
    options = {"start": home, "preferred": home, **options}
    return inverse_kinematics(ROBOT, *pose, rigid_bars=rigid_bars, equilibria=EQUILIBRIA[rigid_bars], **options)


def goal_from_home(move=(0.0, 0.0, 0.0), turn=(0.0, 0.0, 0.0), rigid_bars=True):
    position, quaternion = HOMES[rigid_bars].pose
    return position + np.array(move), quaternion_from_matrix(
        matrix_from_vector(turn) @ matrix_from_quaternion(quaternion)
    )


def lowest_margin(plan):
    """Smallest margin to any limit of the actuators along the whole path; negative where one is broken."""
    margins = []
    for shape in plan.path:
        for actuator, member in zip(ROBOT.actuators, MEMBERS, strict=True):
            length, tension = shape.rest_lengths[member], shape.tensions[member]
            margins += [length - actuator.position[0], actuator.position[1] - length]
            margins += [tension - actuator.minimum_tension, actuator.effort - tension]
    return min(margins)


@pytest.mark.parametrize("rigid_bars", [False, True])
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(changes=st.lists(st.floats(-0.02, 0.02), min_size=12, max_size=12))
def test_every_pose_that_lengths_can_make_is_found_again(rigid_bars: bool, changes: list[float]) -> None:
    home, solver = HOMES[rigid_bars], EQUILIBRIA[rigid_bars].solver
    lengths, shape = np.array(home.rest_lengths), home
    for _ in range(4):
        lengths[MEMBERS] += 0.25 * np.array(changes)
        shape = solver.solve(lengths, start=shape)
        if not shape.stable or shape.tensions[MEMBERS].min() < 10.0 or shape.tensions[MEMBERS].max() > 190.0:
            return
    plan = plan_to(shape.pose, rigid_bars)
    assert np.abs(pose_error(shape.pose, plan.equilibrium.pose)).max() < 1e-9
    again = forward_kinematics(ROBOT, plan.rest_lengths, start=plan.equilibrium, rigid_bars=rigid_bars)
    assert np.abs(pose_error(shape.pose, again.pose)).max() < 1e-8
    assert all(each.stable and each.converged for each in plan.path)
    assert lowest_margin(plan) > 0.0
    assert min(plan.margins.values()) > 0.0


def test_the_path_begins_at_the_start_bit_for_bit_and_ends_at_the_goal() -> None:
    goal = goal_from_home((0.01, -0.005, 0.01), (0.05, 0.0, 0.1))
    plan = plan_to(goal)
    assert np.array_equal(plan.path[0].rest_lengths, HOMES[True].rest_lengths)
    assert plan.path[-1] is plan.equilibrium
    assert list(plan.rest_lengths) == NAMES
    assert list(plan.rest_lengths.values()) == plan.equilibrium.rest_lengths[MEMBERS].tolist()
    assert plan.commands.shape == (len(plan.path), 12)
    assert np.abs(plan.pose_error).max() < 1e-9


def test_the_pose_stays_near_the_straight_line() -> None:
    plan = plan_to(goal_from_home((0.02, 0.0, 0.0)))
    strays = [pose_error(shape.pose, HOMES[True].pose)[1:3] for shape in plan.path]
    assert np.abs(strays).max() < 1e-3


def test_the_same_goal_has_the_same_lengths_from_wherever_the_way_begins() -> None:
    goal = goal_from_home((0.0, 0.015, 0.01), (0.0, 0.1, 0.0))
    direct = plan_to(goal)
    detour = plan_to(goal, start=plan_to(goal_from_home((-0.02, 0.0, 0.0), (0.1, 0.0, 0.1))).equilibrium)
    assert detour.rest_lengths == pytest.approx(direct.rest_lengths, abs=1e-7)


def test_a_goal_turned_by_the_symmetry_gives_permuted_lengths() -> None:
    third = matrix_from_vector((0.0, 0.0, 2 * np.pi / 3))
    position, quaternion = goal_from_home((0.012, 0.004, 0.006), (0.06, -0.02, 0.03))
    turned = third @ position, quaternion_from_matrix(third @ matrix_from_quaternion(quaternion) @ third.T)
    plain, image = plan_to((position, quaternion)), plan_to(turned)

    # Which member each member becomes, from the nodes that the rotation exchanges.
    home = HOMES[True]
    distance = np.linalg.norm((home.nodes @ third.T)[:, None] - home.nodes[None], axis=2)
    node = distance.argmin(axis=1)
    assert distance.min(axis=1).max() < 1e-5
    ends = [frozenset(pair) for pair in home.structure.members.tolist()]
    becomes = [ends.index(frozenset(node[list(pair)].tolist())) for pair in ends]
    np.testing.assert_allclose(image.equilibrium.rest_lengths[becomes], plain.equilibrium.rest_lengths, atol=1e-7)
    np.testing.assert_allclose(image.equilibrium.tensions[becomes], plain.equilibrium.tensions, atol=0.01)


def test_what_is_not_asked_for_stays() -> None:
    home = HOMES[True].pose
    moved = plan_to((home[0] + [0.0, 0.0, 0.01], None)).equilibrium.pose
    assert np.abs(pose_error((home[0], home[1]), moved)[3:]).max() < 1e-9
    turned = plan_to((None, goal_from_home(turn=(0.1, 0.0, 0.0))[1])).equilibrium.pose
    np.testing.assert_allclose(turned[0], home[0], atol=1e-9)


def test_only_controlled_axes_are_asked_for() -> None:
    prism = load_robot("three_prism")
    assert prism.output.controlled == ("z", "rx", "ry")
    home = StructureEquilibriumMap(prism).home
    far_aside = home.pose[0] + [5.0, 5.0, -0.01]
    plan = inverse_kinematics(
        prism, far_aside, quaternion_from_matrix(matrix_from_vector((0.01, 0.0, 0.0))), start=home
    )
    assert plan.equilibrium.pose[0][2] == pytest.approx(far_aside[2], abs=1e-9)
    assert plan.pose_error.shape == (3,)
    assert np.abs(plan.pose_error).max() < 1e-9


def test_a_higher_tension_floor_is_kept_along_the_whole_path() -> None:
    goal = goal_from_home((0.015, 0.01, 0.0))
    free = plan_to(goal)
    floor = 113.0
    assert free.equilibrium.tensions[MEMBERS].min() < floor
    guarded = plan_to(goal, tension_floor=floor)
    assert np.abs(pose_error(goal, guarded.equilibrium.pose)).max() < 1e-9
    for shape in guarded.path:
        assert shape.tensions[MEMBERS].min() > floor
    assert guarded.lowest_margin[1] > 0.0


def test_a_floor_for_one_tendon_leaves_the_others_alone() -> None:
    plan = plan_to(goal_from_home((0.015, 0.01, 0.0)), tension_floor={"draw_1": 118.0})
    tensions = dict(zip(NAMES, plan.equilibrium.tensions[MEMBERS], strict=True))
    assert tensions["draw_1"] > 118.0
    assert min(tensions.values()) < 118.0


@settings(max_examples=8, deadline=None)
@given(
    direction=st.tuples(*[st.floats(-1.0, 1.0)] * 3).filter(lambda v: np.linalg.norm(v) > 0.2),
    turn=st.tuples(*[st.floats(-0.5, 0.5)] * 3),
)
@example(direction=(-1.0, -0.40625, 0.6875), turn=(0.0, -0.125, 0.0))  # a step whose conditions leave hardly a point
def test_the_nearest_pose_of_an_unreachable_goal_is_reachable_and_nearer(direction, turn) -> None:
    unit = np.array(direction) / np.linalg.norm(direction)
    unit[2] = abs(unit[2])
    goal = goal_from_home(0.3 * unit, turn)
    with pytest.raises(UnreachableGoalError) as caught:
        plan_to(goal)
    error = caught.value
    assert np.linalg.norm(error.nearest.pose[0] - goal[0]) < 0.3
    assert np.abs(plan_to(error.nearest.pose).pose_error).max() < 1e-9
    again = forward_kinematics(ROBOT, error.rest_lengths, start=error.nearest, rigid_bars=True)
    assert np.abs(pose_error(error.nearest.pose, again.pose)).max() < 1e-8


def test_an_unreachable_goal_names_the_tendons_and_limits_that_bind() -> None:
    with pytest.raises(UnreachableGoalError) as caught:
        plan_to(goal_from_home((0.3, 0.0, 0.0)))
    error = caught.value
    lengths = error.nearest.rest_lengths
    assert error.binding
    for name in error.binding:
        actuator, member = ROBOT.actuator(name), ROBOT.structure.member(name)
        margin = min(lengths[member] - actuator.position[0], actuator.position[1] - lengths[member])
        tension = error.nearest.tensions[member]
        margin = min(margin / 0.05, (tension - actuator.minimum_tension) / 100, (actuator.effort - tension) / 100)
        assert margin < 0.02, name
        assert name in str(error)
    assert "nearest reachable pose" in str(error).lower()
    assert "mm" in str(error)
    limits = [each.partition(": ")[2] for each in str(error).partition("Cause: ")[2].split("; ")]
    assert len(limits) == len(set(limits)), "a limit that stops several tendons is said once"


def test_tendons_that_the_same_limit_stops_are_listed_before_it() -> None:
    with pytest.raises(UnreachableGoalError, match=r"saddle_1, saddle_2, .*: rest length [^;]* at its shortest of"):
        plan_to(goal_from_home((0.0, 0.0, 0.2)))


def test_a_goal_at_a_limit_is_reached_and_a_hair_beyond_is_not_far() -> None:
    with pytest.raises(UnreachableGoalError) as caught:
        plan_to(goal_from_home(turn=(0.0, 0.0, 1.0)))
    nearest = caught.value.nearest.pose
    home = HOMES[True].pose
    assert np.abs(plan_to(nearest).pose_error).max() < 1e-9
    displacement = pose_error(nearest, home)
    beyond = (
        home[0] + displacement[:3],
        quaternion_from_matrix(matrix_from_vector(1.02 * displacement[3:]) @ matrix_from_quaternion(home[1])),
    )
    with pytest.raises(UnreachableGoalError) as missed:
        plan_to(beyond)
    assert np.abs(pose_error(beyond, missed.value.nearest.pose)).max() < 0.05


@pytest.mark.parametrize("rigid_bars", [False, True])
def test_broyden_reaches_the_same_pose_and_counts_its_steps(rigid_bars: bool) -> None:
    goal = goal_from_home((0.01, 0.015, 0.005), (0.1, -0.05, 0.05), rigid_bars)
    plan = plan_to(goal, rigid_bars, method="broyden")
    assert plan.method == "broyden"
    assert 0 < plan.iterations < 60
    assert np.abs(pose_error(goal, plan.equilibrium.pose)).max() < 1e-9
    assert all(shape.stable for shape in plan.path)
    assert min(plan.margins.values()) > 0.0


def test_broyden_keeps_tendons_above_the_floor_where_the_pseudo_inverse_would_not() -> None:
    goal = goal_from_home((0.02, 0.01, -0.02), (0.1, 0.1, 0.0))
    floor = 100.0
    free = plan_to(goal, method="broyden")
    assert free.equilibrium.tensions[MEMBERS].min() < floor
    guarded = plan_to(goal, method="broyden", tension_floor=floor)
    assert guarded.equilibrium.tensions[MEMBERS].min() > floor
    assert np.abs(guarded.pose_error).max() < 1e-9


@pytest.mark.parametrize(
    ("position", "quaternion", "words"),
    [
        ((np.nan, 0.0, 0.2), None, "not finite"),
        ((0.0, np.inf, 0.2), None, "not finite"),
        (None, (1.0, 0.0, np.nan, 0.0), "not finite"),
        (None, (0.0, 0.0, 0.0, 0.0), "zero"),
        ((0.0, 0.2), None, "3 numbers"),
        (None, (1.0, 0.0, 0.0), "4 numbers"),
        (("here", "there", "z"), None, "3 numbers"),
        (None, None, "neither"),
    ],
)
def test_a_goal_that_is_no_pose_is_refused_in_words(position, quaternion, words: str) -> None:
    with pytest.raises(TensegrityError, match=words):
        inverse_kinematics(ROBOT, position, quaternion)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "newtn"}, "Did you mean 'newton'"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"length_weight": np.nan}, "length_weight"),
        ({"tension_floor": -1.0}, "tension floor of saddle_1"),
        ({"tension_floor": 1e6}, "below its effort limit"),
        ({"tension_floor": {"drow_1": 3.0}}, "Did you mean 'draw_1'"),
    ],
)
def test_an_option_out_of_range_is_refused_in_words(options: dict, words: str) -> None:
    with pytest.raises(TensegrityError, match=words):
        plan_to(goal_from_home((0.0, 0.0, 0.01)), **options)


def test_a_robot_without_prestress_is_refused_with_the_reason() -> None:
    with pytest.raises(TensegrityError, match="not stable at its start"):
        inverse_kinematics(load_robot("four_prism"), (0.0, 0.0, 1.0))


def test_a_robot_without_actuators_is_refused() -> None:
    with pytest.raises(TensegrityError, match="no actuators"):
        inverse_kinematics(replace(ROBOT, actuators=()), (0.0, 0.0, 0.2))


def test_a_start_with_a_slack_tendon_is_refused_by_its_name() -> None:
    lengths = {"saddle_1": 0.265, "saddle_2": 0.18}
    shape = forward_kinematics(ROBOT, lengths)
    if not shape.stable or "saddle_1" not in shape.slack:
        lengths = {"saddle_1": 0.9}
        shape = forward_kinematics(ROBOT, lengths)
    assert "saddle_1" in shape.slack
    with pytest.raises(TensegrityError, match="saddle_1"):
        inverse_kinematics(ROBOT, (0.0, 0.0, 0.2), start=shape)


def test_a_start_of_another_robot_is_refused() -> None:
    prism = load_robot("three_prism")
    with pytest.raises(TensegrityError, match="not a shape of tensebot"):
        inverse_kinematics(ROBOT, (0.0, 0.0, 0.2), start=forward_kinematics(prism))


LOOSE_SPRING = """
kind: structure
name: pulled_block
gravity: [0, 0, 0]
nodes:
  left: {position: [-1, 0, 0], fixed: true}
  right: {position: [1, 0, 0], fixed: true}
  block: {position: [0, 0, 0], fixed: [y, z], mass: 1}
members:
  - {name: pull, kind: tendon, nodes: [left, block], stiffness: 1000, rest_length: 0.95}
  - {name: back, kind: tendon, nodes: [block, right], stiffness: 1000, rest_length: 0.95}
  - {name: light, kind: spring, nodes: [left, block], stiffness: 10, rest_length: 0.9}
actuators:
  - {drives: pull, position: [SHORTEST, 1.5], rate: 1, effort: 1000, minimum_tension: 20}
  - {drives: back, position: [SHORTEST, 1.5], rate: 1, effort: 1000, minimum_tension: 20}
outputs: [{name: block, nodes: {block: [0, 0, 0]}, controlled: [x]}]
"""


@pytest.mark.parametrize(("shortest", "binds"), [(0.5, "light"), (0.94, "pull")])
def test_a_floor_that_no_file_states_says_where_it_comes_from(shortest, binds) -> None:
    """A spring goes slack 0.1 m to the left: a plan stops before, and no limit of the file helps there."""
    robot = parse_robot(LOOSE_SPRING.replace("SHORTEST", f"{shortest}"))
    with pytest.raises(UnreachableGoalError) as caught:
        inverse_kinematics(robot, position=[-0.2, 0.0, 0.0])
    said = str(caught.value)
    assert binds in caught.value.binding
    assert ("(1% of the mean tension: plans keep every tendon and spring tight)" in said) == (binds == "light")
    assert ("widen these limits in the robot file" in said) == (binds == "pull")


def test_limits_that_are_not_reached_are_not_the_cause_of_a_goal_beyond_the_length_of_a_strut():
    robot = load_robot("single_strut")  # it lies down along -y, its cables well above their floors
    with pytest.raises(UnreachableGoalError, match="the pose does not answer to the actuators") as caught:
        inverse_kinematics(robot, position=[0.0, -3.0, 1.0])
    assert caught.value.binding == ()


def test_a_tension_floor_above_what_the_effort_holds_is_refused_by_name():
    robot = load_robot("single_strut")
    robot = replace(robot, actuators=tuple(replace(each, minimum_tension=5000.0) for each in robot.actuators))
    with pytest.raises(TensegrityError, match=r"B1: its minimum_tension of 5000 N is above the .* N that its effort"):
        inverse_kinematics(robot, position=[0.01, 0.0, 1.0])
