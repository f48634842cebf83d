"""What is accepted by `follow_trajectory` and `follow_actuators` is followed, or ends with a reason that is true.

The node runs in this process and gets its states one by one; its robot stands still.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("tensegrity.msg", reason="the interfaces of this project are not built")

from builtin_interfaces.msg import Duration  # noqa: E402
from controller_cell import EndlessPlan, cell  # noqa: E402
from geometry_msgs.msg import Pose, PoseStamped  # noqa: E402
from node_messages import give  # noqa: E402
from tensegrity.action import FollowActuators, FollowTrajectory  # noqa: E402
from tensegrity.msg import TendonState  # noqa: E402
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint  # noqa: E402

from tensegrity_control.ros.controller_node import SILENT_LOOKS  # noqa: E402
from tensegrity_dynamics.ros.geometry_messages import fill_pose  # noqa: E402


class Handle:
    """What an action server hands to its callbacks, with the end that it got."""

    count = 0

    def __init__(self, request: Any) -> None:
        Handle.count += 1
        self.request, self.goal_id, self.is_cancel_requested, self.end = request, Handle.count, False, ""

    def publish_feedback(self, _: Any) -> None:
        pass

    def abort(self) -> None:
        self.end = "aborted"

    def succeed(self) -> None:
        self.end = "succeeded"

    def canceled(self) -> None:
        self.end = "canceled"


def followed(made: Any, moves: list[float], **options: Any) -> tuple[Handle, Any]:
    """A trajectory through heights above home [m], a second apart, and the task with its result."""
    poses = [fill_pose(Pose(), made.home[0] + np.array([0.0, 0.0, move]), 4 * [0.0]) for move in moves]
    times = [Duration(sec=k + 1) for k in range(len(moves))]
    handle = Handle(FollowTrajectory.Goal(waypoint=poses, time_from_start=times, **options))
    return handle, made.executor.create_task(made.node.trajectories.follow(handle))


def begun(made: Any, moves: list[float], **options: Any) -> tuple[Handle, Any]:
    handle, task = followed(made, moves, **options)
    made.spin_until(lambda: made.phase == "moving" and not made.node.planner.busy)
    for _ in range(5):
        made.give_state()
    return handle, task


def actuated(made: Any, seconds: int, names: Any = None, goal: Any = None) -> tuple[Handle, Any]:
    """A motion of actuators, by default to where they are, and the task with its result."""
    goal = list(made.seen.positions.values()) if goal is None else list(goal)
    points = [JointTrajectoryPoint(positions=goal, time_from_start=Duration(sec=seconds))]
    trajectory = JointTrajectory(joint_names=list(names or made.seen.positions), points=points)
    handle = Handle(FollowActuators.Goal(trajectory=trajectory))
    return handle, made.executor.create_task(made.node.actuator_motions.follow(handle))


def rest(made: Any) -> None:
    made.give_state()
    while made.phase == "moving":
        made.give_state()
    made.give_state()


@pytest.mark.parametrize("refused", [False, True])
def test_a_closed_path_that_was_braked_for_another_goal_is_no_success(refused):
    """It ends where it began, so that the place of the robot tells nothing."""
    with cell("three_prism") as made:
        _, task = begun(made, [-0.002, 0.0])
        plan = EndlessPlan(made)
        asked = made.ask((0.0, 0.0, 10.0 if refused else -0.001))
        made.spin_until(plan.began.is_set)
        rest(made)
        made.spin_until(task.done)
        assert not task.result().success and "brakes for a new goal" in task.result().reason
        made.call("hold")
        made.spin_until(asked.done)


def test_a_motion_that_its_controller_ends_early_is_no_success():
    with cell("three_prism") as made:
        _, task = begun(made, [-0.002, 0.0])
        made.node.controller.hold(made.node.now)
        rest(made)
        made.spin_until(task.done)
        assert not task.result().success and "before its last waypoint" in task.result().reason


def test_a_path_that_is_followed_to_its_end_is_a_success():
    with cell("three_prism") as made:
        handle, task = begun(made, [-0.002, 0.0])
        rest(made)
        made.spin_until(task.done)
        assert task.result().success and task.result().reason == "" and handle.end == "succeeded"


@pytest.mark.parametrize("while_planning", [False, True])
def test_the_cancel_of_another_trajectory_ends_nothing(while_planning):
    with cell("three_prism") as made:
        if while_planning:
            handle, task = followed(made, [-0.002, 0.0])
        else:
            handle, task = begun(made, [-0.002, 0.0])
        made.node.trajectories.cancel(Handle(None))
        made.spin_until(lambda: made.phase == "moving")
        rest(made)
        made.spin_until(task.done)
        assert task.result().success and handle.end == "succeeded"


def test_the_cancel_of_a_trajectory_that_runs_ends_it():
    with cell("three_prism") as made:
        handle, task = begun(made, [-0.002, 0.0])
        handle.is_cancel_requested = True
        made.node.trajectories.cancel(handle)
        made.spin_until(task.done)
        assert handle.end == "canceled" and task.result().reason == "cancelled: holding"
        rest(made)
        assert made.phase == "holding"


@pytest.mark.parametrize("tolerance", [float("nan"), -1.0])
@pytest.mark.parametrize("name", ["position_tolerance", "orientation_tolerance"])
def test_a_tolerance_that_nothing_can_be_compared_with_is_refused_by_name(name, tolerance):
    with cell("three_prism") as made:
        handle, task = followed(made, [-0.002], **{name: tolerance})
        made.spin_until(task.done)
        assert handle.end == "aborted" and name in task.result().reason


@pytest.mark.parametrize(("arrives", "slowed"), [(False, False), (True, False), (True, True)])
def test_a_robot_that_lags_behind_gets_a_second_to_arrive(arrives, slowed):
    with cell("three_prism") as made:
        _, task = begun(made, [-0.002])
        if slowed:  # the motion takes longer than was told, by more than this second
            made.node.controller.motion_at(made.node.now)[0].wait(made.node.now, 0.2, 0.01)
        made.node.trajectories.errors = lambda _: (0.002, 0.0)
        rest(made)
        for _ in range(50):
            made.give_state()
            made.executor.spin_once(timeout_sec=0.0)
        assert not task.done()
        if arrives:
            made.node.trajectories.errors = lambda _: (0.0005, 0.0)
        for _ in range(2 if arrives else 60):
            made.give_state()
        made.spin_until(task.done)
        assert task.result().success == arrives
        assert arrives or "2 mm" in task.result().reason


def test_an_end_at_which_the_pose_is_not_known_is_no_success():
    with cell("three_prism") as made:
        _, task = begun(made, [-0.002, 0.0])
        made.node.trajectories.errors = lambda _: (float("nan"), float("nan"))
        rest(made)
        for _ in range(101):
            made.give_state()
        made.spin_until(task.done)
        assert not task.result().success and task.result().reason


def test_the_result_names_axes_that_the_robot_does_not_control():
    with cell("single_strut", "near_rigid") as made:
        _, task = begun(made, [0.01])
        rest(made)
        for _ in range(101):
            made.give_state()
        made.spin_until(task.done)
        assert not task.result().success and "z of tip are not controlled" in task.result().reason


def test_a_goal_of_a_stream_ends_a_trajectory_with_its_reason():
    with cell("manipulator", "qp") as made:
        _, task = begun(made, [-0.002, 0.0])
        give(made.node, "goal_pose", PoseStamped(pose=fill_pose(Pose(), made.home[0], 4 * [0.0])))
        made.spin_until(task.done)
        assert not task.result().success and "a new goal replaced it" in task.result().reason


def test_after_a_stop_no_trajectory_of_actuators_is_taken_even_while_another_one_brakes():
    with cell("three_prism") as made:
        _, first = actuated(made, 2)
        made.spin_until(lambda: made.node.actuator_motions.moving)
        made.give_state()
        assert made.call("stop").success
        _, second = actuated(made, 2)
        made.spin_until(second.done)
        assert not second.result().success and "call hold" in second.result().reason
        while made.node.actuator_motions.moving:
            made.give_state()
        made.spin_until(first.done)
        assert first.result().reason == "stopped by service"


def test_a_motion_that_another_one_replaces_reports_its_own_distance_to_its_own_goal():
    with cell("three_prism") as made:
        names, here = list(made.seen.positions), np.array(list(made.seen.positions.values()))
        goal = here + 0.001 * np.arange(len(names))
        _, first = actuated(made, 2, names, goal)
        made.spin_until(lambda: made.node.actuator_motions.moving)
        made.give_state()
        _, second = actuated(made, 1, names[:1], here[:1])
        made.spin_until(first.done)
        assert np.allclose(first.result().error, here - goal) and "replaced" in first.result().reason
        while made.node.actuator_motions.moving:
            made.give_state()
        made.spin_until(second.done)
        assert second.result().success and np.allclose(second.result().error, [0.0], atol=1e-6)


@pytest.mark.parametrize("of_actuators", [False, True])
def test_motions_end_with_a_reason_when_no_states_come_any_more(of_actuators):
    with cell("three_prism") as made:
        if of_actuators:
            _, task = actuated(made, 2)
            made.spin_until(lambda: made.node.actuator_motions.moving)
            made.give_state()
        else:
            _, task = begun(made, [-0.002, 0.0])
        for _ in range(SILENT_LOOKS):
            made.node._watch()
            made.give_state(made.stamp)  # of a paused simulator
        assert not task.done()
        for _ in range(SILENT_LOOKS + 1):
            made.node._watch()
        made.spin_until(task.done)
        assert not task.result().success and "no state of the robot" in task.result().reason
        rest(made)
        assert made.phase == "holding"


@pytest.mark.parametrize("of_actuators", [False, True])
def test_the_result_of_a_motion_names_the_floor_that_was_broken_on_its_way(of_actuators):
    with cell("manipulator") as made:
        floors = made.node._robot.model.tension_floors(made.node._robot.actuators)
        name = max(floors, key=lambda each: floors[each])
        if of_actuators:
            _, task = actuated(made, 1)
            made.spin_until(lambda: made.node.actuator_motions.moving)
        else:
            _, task = begun(made, [0.001, 0.0])
        made.give_state()
        for part in (1.5, 0.5, 0.25, 1.5):
            give(made.node, "tendon_states", TendonState(name=[name], tension=[part * floors[name]]))
        while not task.done():
            made.give_state()
            made.executor.spin_once(timeout_sec=0.0)
        assert task.result().success
        assert f"{name} fell to {0.25 * floors[name]:.3g} N" in task.result().reason
