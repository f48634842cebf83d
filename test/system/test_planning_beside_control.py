"""Whatever is planned, the control goes on, and `stop`, `hold` and a reset are obeyed at once.

The node runs in this process and gets its states one by one, so that what happens is counted in states (periods) and
nothing depends on the machine's speed.
"""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from patience import PATIENCE_S

rclpy = pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("tensegrity.msg", reason="the interfaces of this project are not built")

from builtin_interfaces.msg import Duration  # noqa: E402
from controller_cell import PERIOD, EndlessPlan, WaitingPlan, cell  # noqa: E402
from geometry_msgs.msg import Pose, PoseStamped  # noqa: E402
from node_messages import give, published_by  # noqa: E402
from sensor_msgs.msg import JointState, TimeReference  # noqa: E402
from std_msgs.msg import String  # noqa: E402
from tensegrity.action import FollowActuators, FollowTrajectory  # noqa: E402
from tensegrity.srv import SetGoalPose  # noqa: E402

from tensegrity_control.cancellation import PlanCancelledError  # noqa: E402
from tensegrity_control.registry import controller_class, suitable  # noqa: E402
from tensegrity_control.ros import controller_node  # noqa: E402
from tensegrity_dynamics import load_robot  # noqa: E402
from tensegrity_dynamics.errors import TensegrityError  # noqa: E402
from tensegrity_dynamics.ros.geometry_messages import fill_pose, time_message  # noqa: E402
from tensegrity_dynamics.ros.robot_node import STOPPED, stop_in_words  # noqa: E402


def test_a_controller_that_plans_takes_the_newest_goal_of_the_topic_and_drops_those_before_it():
    with cell("three_prism") as made:
        announced = published_by(made.node, "goal")
        plan = WaitingPlan(made)
        for k, height in enumerate((-0.001, -0.002, -0.003)):
            give(made.node, "goal_pose", PoseStamped(pose=fill_pose(Pose(), made.home[0] + [0, 0, height], 4 * [0.0])))
            if k == 0:
                made.spin_until(lambda: made.node.planner.busy)
        plan.may_begin.set()
        made.spin_until(lambda: len(announced) == 2)
        assert [round(1e3 * (each.waypoint[0].position.z - made.home[0][2])) for each in announced] == [-1, -3]
        assert [each.accepted for each in announced] == [True, True], announced[1].reason
        give(made.node, "goal_pose", PoseStamped(pose=fill_pose(Pose(), [0.0, 0.0, 9.0], 4 * [0.0])))
        made.spin_until(lambda: len(announced) == 3)
        assert not announced[2].accepted and announced[2].binding


@pytest.mark.parametrize("word", ["stop", "hold"])
@pytest.mark.parametrize("lockstep", [False, True])
def test_a_plan_that_never_ends_keeps_neither_the_control_nor_stop_and_hold_waiting(word, lockstep):
    with cell("three_prism", lockstep=lockstep) as made:
        plan = EndlessPlan(made)
        answer = made.ask((0.0, 0.0, 0.001))
        made.spin_until(plan.began.is_set)
        answered = sum(made.give_state() for _ in range(5))
        # by the clock every state is answered; in lock-step the time stands still until the plan is made
        assert answered == (0 if lockstep else 5)
        response = made.call(word)
        assert response.success
        assert made.phase == ("stopped" if word == "stop" else "holding")
        made.spin_until(answer.done)
        assert not answer.result().accepted and f"{word} was called" in answer.result().reason
        assert plan.left.wait(PATIENCE_S)
        if lockstep:
            # the state that was withheld has its answer; a command without names only announced the goal
            made.spin_until(lambda: len([each for each in made.commands if each.name]) == 2)
        assert made.give_state() == 1


@pytest.mark.parametrize("before", ["", "stop"])
def test_who_calls_off_a_goal_ends_its_plan_and_never_the_stop_of_another(before):
    with cell("three_prism") as made:
        plan = EndlessPlan(made)
        answer = made.ask((0.0, 0.0, 0.001))
        made.spin_until(plan.began.is_set)
        if before:
            made.call(before)
        assert made.call("call_off").success
        made.spin_until(answer.done)
        assert not answer.result().accepted and f"{before or 'call_off'} was called" in answer.result().reason
        assert made.phase == ("stopped" if before else "holding")
        assert plan.left.wait(PATIENCE_S)


def test_a_state_that_a_plan_withheld_is_not_answered_after_a_newer_one():
    """It would look like a reset of the simulation, and the goal that was accepted would be forgotten."""
    with cell("three_prism", lockstep=True) as made:
        plan = WaitingPlan(made)  # else it may have ended before anybody looks
        answer = made.ask((0.0, 0.0, 0.001))
        made.spin_until(lambda: made.node.planner.busy)
        assert made.give_state(PERIOD) == 0
        plan.may_begin.set()
        made.spin_until(answer.done)
        assert answer.result().accepted, answer.result().reason
        # before the executor has come to the withheld state it is sent again, answered, and followed by the next one
        assert [made.give_state(PERIOD), made.give_state()] == [1, 1]
        for _ in range(2):  # rounds of the executor, of which each begins with the newest task
            made.spin_until(made.executor.create_task(lambda: None).done)
        assert made.phase == "moving" and made.node.now == pytest.approx(2e-9 * PERIOD)


def test_a_second_goal_is_refused_at_once_and_a_later_one_planned():
    with cell("three_prism") as made:
        real = made.node.controller.plan_goal
        plan = EndlessPlan(made)
        first = made.ask((0.0, 0.0, 0.001))
        made.spin_until(plan.began.is_set)
        second = made.ask((0.0, 0.0, 0.001))
        made.spin_until(second.done)
        assert "another motion is being planned" in second.result().reason and not first.done()
        made.call("hold")
        made.spin_until(first.done)
        made.node.controller.plan_goal = real
        third = made.ask((0.0, 0.0, 0.001))
        made.spin_until(third.done)
        assert third.result().accepted, third.result().reason
        made.give_state()
        assert made.phase == "moving"


@pytest.mark.parametrize("first", ["watch", "request"])
def test_goals_that_came_while_the_controller_stood_still_are_refused_and_later_ones_taken(monkeypatch, first):
    """Whoever sent them waits no more, and what its sender was told has failed is not carried out."""
    with cell("three_prism") as made:
        real, slept = time.monotonic, 0.0
        monkeypatch.setattr(controller_node, "time", SimpleNamespace(monotonic=lambda: real() + slept))

        def answer() -> SetGoalPose.Response:
            asked = made.ask((0.0, 0.0, 0.001))
            made.spin_until(asked.done)
            return asked.result()

        made.node._watch()
        slept = 18.0
        if first == "watch":
            made.node._watch()
        refused = answer()
        assert not refused.accepted and refused.reason == "the controller stood still for 18 s until now; ask again."
        assert made.call("hold").success  # holds always
        with pytest.raises(TensegrityError, match="stood still for 18 s"):
            made.node.set_points()
        slept += controller_node.WAKING
        made.give_state()
        assert answer().accepted


@pytest.mark.parametrize("lockstep", [False, True])
def test_a_reset_gives_up_the_plan_and_takes_over_at_the_start(lockstep):
    with cell("three_prism", lockstep=lockstep) as made:
        for _ in range(3):
            made.give_state()
        plan = EndlessPlan(made)
        answer = made.ask((0.0, 0.0, 0.001))
        made.spin_until(plan.began.is_set)
        made.give_state(0)
        made.spin_until(answer.done)
        assert "reset" in answer.result().reason
        assert plan.left.wait(PATIENCE_S)
        made.spin_until(lambda: made.node.planner.rests)
        made.give_state(0)  # as the simulator sends it again, or its next one
        assert made.node.now == 0.0 and made.phase == "holding"


@pytest.mark.parametrize(("robot", "controller"), [("three_prism", ""), ("single_strut", "qp")])
def test_a_motion_that_nobody_follows_is_over_and_begins_again_from_where_the_robot_stands(robot, controller):
    """The sender, or whoever moves the robot, stood still for longer than a stream may break off."""
    with cell(robot, controller) as made:

        def give_states(count: int, followed: bool) -> None:
            for _ in range(count):
                assert made.give_state() == 1
                if followed:
                    acted = TimeReference(source="controller", time_ref=made.commands[-1].header.stamp)
                    acted.header.stamp = time_message(made.stamp)
                    give(made.node, "command_timing", acted)

        def set_points() -> Any:
            return np.array(made.commands[-1].position if controller else made.commands[-1].value)

        give_states(2, True)
        began, move = set_points(), (0.15, 0.1, 0.0) if controller else (0.0, 0.0, 0.004)
        answer = made.ask(move, 0.0 if controller else 3.0)
        made.spin_until(answer.done)
        assert answer.result().accepted, answer.result().reason
        give_states(20, True)
        assert made.phase == "moving"
        give_states(48, False)
        assert made.phase == "moving", made.node.status_text  # as long as a stream may break off nothing is over
        gone = np.max(np.abs(set_points() - began))
        give_states(20, False)
        assert made.phase == "holding" and "not followed for 0.7" in made.node.status_text
        assert np.max(np.abs(set_points() - began)) < 0.1 * gone
        give_states(100, False)
        assert np.max(np.abs(set_points() - began)) < 0.1 * gone
        assert made.call("hold").success
        give_states(1, False)
        give_states(60, True)
        assert made.phase == "holding" and "not followed" not in made.node.status_text
        again = made.ask(move, 0.0 if controller else 3.0)
        made.spin_until(again.done)
        give_states(5, True)
        assert again.result().accepted and made.phase == "moving"


ALL = [
    ("tensebot", "tendon_length"), ("single_strut", "joint_position"), ("single_strut", "task"),
    ("single_strut", "near_rigid"), ("biglide", "joint_position"), ("biglide", "kinematic"),
    ("biglide", "computed_torque"), ("biglide", "task"),
]  # fmt: skip


def test_every_controller_is_among_those_whose_plans_are_called_off():
    names = {name for robot in ("tensebot", "single_strut", "biglide") for name in suitable(load_robot(robot))}
    names = {each for each in names if not controller_class(each).streams_goals}  # those plan nothing
    assert {name for _, name in ALL} == names


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("robot", "controller"), ALL, ids=lambda each: each)
def test_the_plan_of_every_controller_can_be_called_off(robot, controller):
    """Real plans, given up at their first checkpoint: the thread is free again and the robot stands still."""
    with cell(robot, controller) as made:
        move = (0.0, 0.0, 0.004) if robot == "tensebot" else (0.004, 0.0, 0.0)
        state_before = np.array(made.commands[-1].value)
        plan, stopped = made.node.controller.plan_goal, threading.Event()
        made.node.controller.plan_goal = lambda *given, **options: (  # else a quick plan is ready before the stop
            plan(*given, **options) if stopped.wait(PATIENCE_S) else None
        )
        answer = made.ask(move, 2.0)
        made.executor.spin_once(timeout_sec=0.0)
        assert made.call("stop").success
        stopped.set()
        made.spin_until(answer.done)
        assert not answer.result().accepted
        assert "stop" in answer.result().reason
        made.spin_until(lambda: made.node.planner.rests)
        running = made.node.planner.running
        if running is not None:
            given_up = running.exception()  # None: it was ready before the stop; refused: it had not begun
            assert isinstance(given_up, PlanCancelledError | None) or "the controller is stopped" in str(given_up)
        for _ in range(3):
            assert made.give_state() == 1
        if made.commands[-1].mode == 0:
            np.testing.assert_allclose(made.commands[-1].value, state_before)
        assert made.call("hold").success
        later = made.ask(move, 2.0)
        made.spin_until(later.done)
        assert later.result().accepted or later.result().reason


def test_a_storm_of_goals_cancels_stops_and_resets_leaves_a_controller_that_works():
    random = np.random.default_rng(7)
    with cell("three_prism") as made:
        tasks: list[Any] = []
        for _ in range(400):
            what = random.integers(7)
            if what == 0:
                tasks.append(made.ask(tuple(random.normal(0.0, 2e-3, 3)), float(random.choice([0.0, 0.5]))))
            elif what in (1, 2):
                made.call(("stop", "hold")[what - 1])
            elif what == 3:
                made.node.trajectories.cancel(None)
            elif what == 4 and random.random() < 0.2:
                made.give_state(0)
            else:
                made.give_state()
            made.executor.spin_once(timeout_sec=0.0)
        made.spin_until(lambda: all(each.done() for each in tasks) and made.node.planner.rests)
        for each in tasks:
            assert each.result().accepted or each.result().reason
        assert made.node.survived == 0
        made.give_state()
        assert made.call("hold").success
        last = made.ask((0.0, 0.0, 0.0005))
        made.spin_until(last.done)
        assert last.result().accepted, last.result().reason


HELD_BY_A_STOP = String(data=stop_in_words("driver", "called by service"))


class Asked:
    """What an action server hands to its callback."""

    def __init__(self, request: Any) -> None:
        self.request, self.is_cancel_requested, self.goal_id = request, False, 0

    def abort(self) -> None:
        self.request = None


@pytest.mark.parametrize("controller", ["", "qp"])  # the second one takes streams of goals
def test_while_an_emergency_stop_holds_every_interface_refuses_goals_and_says_what_to_do(controller):
    with cell("manipulator" if controller else "three_prism", controller) as made:
        node = made.node
        give(node, STOPPED, HELD_BY_A_STOP)
        pose = fill_pose(Pose(), made.home[0] - [0, 0, 0.001], 4 * [0.0])
        asked = made.ask((0.0, 0.0, -0.001))
        posed, actuated = Asked(FollowTrajectory.Goal(waypoint=[pose])), Asked(FollowActuators.Goal())
        followed = made.executor.create_task(node.trajectories.follow(posed))
        posed.request.time_from_start = [Duration(sec=2)]
        driven = made.executor.create_task(node.actuator_motions.follow(actuated))
        give(node, "goal_pose", PoseStamped(pose=pose))
        made.spin_until(lambda: asked.done() and followed.done() and driven.done() and node.pose_goals.refused)
        for reason in (
            asked.result().reason,
            followed.result().reason,
            driven.result().reason,
            node.pose_goals.refused,
        ):
            assert reason == f"{HELD_BY_A_STOP.data}."
            assert "call driver/release (`tensegrity release`), then ask again" in reason
        give(node, STOPPED, String())
        again = made.ask((0.0, 0.0, -0.001))
        made.spin_until(again.done)
        assert again.result().accepted


@pytest.mark.parametrize("asked_for", ["hold", "goal"])
def test_after_a_release_a_robot_goes_on_from_where_it_stands_and_not_from_where_it_would_have_been(asked_for):
    """The robot of the cell does not move, as one whose emergency stop came at the beginning of its motion."""
    with cell("three_prism") as made:
        asked = made.ask((0.0, 0.0, -0.005))
        made.spin_until(asked.done)
        made.give_state()
        give(made.node, STOPPED, HELD_BY_A_STOP)
        while made.phase == "moving":
            made.give_state()
        ahead = dict(zip(made.commands[-1].name, made.commands[-1].value, strict=True))
        stands = made.seen.positions
        assert max(abs(ahead[name] - stands[name]) for name in stands) > 1e-3
        give(made.node, STOPPED, String())
        session = made.commands[-1].session
        made.give_state()
        assert made.commands[-1].session == session  # what it sends on its own accord belongs to before
        if asked_for == "hold":
            assert made.call("hold").success
        else:
            asked = made.ask((0.0, 0.0, -0.005))
            made.spin_until(asked.done)
            assert asked.result().accepted
        made.give_state()
        assert made.commands[-1].session != session
        sent = dict(zip(made.commands[-1].name, made.commands[-1].value, strict=True))
        assert max(abs(sent[name] - stands[name]) for name in stands) < 1e-6


def test_a_plan_that_is_made_when_the_robot_is_stopped_is_given_up():
    with cell("three_prism") as made:
        plan = EndlessPlan(made)
        asked = made.ask((0.0, 0.0, -0.005))
        made.spin_until(plan.began.is_set)
        give(made.node, STOPPED, HELD_BY_A_STOP)
        made.spin_until(asked.done)
        assert not asked.result().accepted and HELD_BY_A_STOP.data in asked.result().reason


def test_a_robot_that_no_controller_can_hold_where_it_was_released_is_held_by_its_actuators_until_hold():
    with cell("three_prism") as made:
        reset = made.node.controller.reset

        def refuse(*_: Any) -> None:
            raise TensegrityError("slack at the start")

        give(made.node, STOPPED, HELD_BY_A_STOP)
        made.node.controller.reset = refuse
        give(made.node, STOPPED, String())
        assert made.give_state() == 1
        sent = dict(zip(made.commands[-1].name, made.commands[-1].value, strict=True))
        assert sent == pytest.approx(made.seen.positions)
        assert "slack at the start" in made.node.status_text and made.node.survived == 0
        made.node.controller.reset = reset
        assert made.call("hold").success
        asked = made.ask((0.0, 0.0, -0.001))
        made.spin_until(asked.done)
        assert asked.result().accepted


def test_readings_of_other_actuators_do_not_replace_those_of_the_robot():
    with cell("tensebot") as made:
        give(made.node, "joint_states", JointState(name=["elsewhere"], position=[1.0]))
        give(made.node, STOPPED, HELD_BY_A_STOP)
        give(made.node, STOPPED, String())
        assert made.node.failed is None and made.give_state() == 1
