"""Controllers that answer states which are past: what is under way, what waits, and what is told of loads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from qp_loop import loop, robot_named

from tensegrity_control import make_controller
from tensegrity_control.controllers.qp.controller import SPARED
from tensegrity_control.controllers.qp.timing.loop_bandwidth import DELAYED, affordable
from tensegrity_control.controllers.qp.timing.pending_commands import PendingCommands, Sent
from tensegrity_control.external_loads import ExternalLoads
from tensegrity_control.trajectories.time_scaling import PathClock
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import CommandRefused, TensegrityError
from tensegrity_dynamics.robots.load_robot import parse_robot
from tensegrity_tools.runtime.delayed_loop import DelayedLoop, Delays


@settings(max_examples=20)
@given(st.lists(st.tuples(st.floats(0.002, 0.02), st.floats(-5.0, 5.0)), min_size=1, max_size=8), st.floats(0.0, 0.05))
def test_what_is_under_way_is_the_integral_of_the_accelerations_that_were_sent(commands, wait):
    pending, begin, none = PendingCommands(0.03), 0.0, np.zeros(1)
    edges = []
    for lasts, acceleration in commands:
        pending.send(Sent(begin, lasts, np.array([acceleration]), none, none, none))
        edges.append((begin, begin + lasts, acceleration))
        begin += lasts
    end = begin + wait
    found = pending.change(0.0, end)
    rate = sum(a * (last - first) for first, last, a in edges)
    travel = sum(a * ((end - first) ** 2 - (end - last) ** 2) / 2 for first, last, a in edges)
    assert found is not None
    assert found[0][0] == pytest.approx(rate, abs=1e-12) and found[1][0] == pytest.approx(travel, abs=1e-12)


@settings(max_examples=15)
@given(st.lists(st.tuples(st.integers(0, 4), st.floats(-5.0, 5.0)), min_size=2, max_size=8))
def test_what_was_guessed_of_commands_is_made_good_by_when_they_acted(sent):
    """Commands a period apart that begin later than was thought, some never since they were overtaken."""
    period, none = 0.01, np.zeros(1)
    pending = PendingCommands(6 * period)
    acts: list[tuple[int, float, float]] = []
    for k, (late, acceleration) in enumerate(sent):
        pending.send(Sent(k * period, period, np.array([acceleration]), none, none, none, k * period))
        begin = max([k + late, *(each[0] for each in acts)])
        acts = [each for each in acts if each[0] < begin] + [(begin, k * period, acceleration)]
    for begin, stamp, _ in acts:
        pending.acted(stamp, begin * period)
    last = acts[-1][0] + 1
    expected = sum(
        acceleration * min(period, (following - begin) * period)
        for (begin, _, acceleration), following in zip(acts, [*(each[0] for each in acts[1:]), last], strict=True)
    )
    found = pending.change(acts[0][0] * period, last * period)
    assert found is not None and found[0][0] == pytest.approx(expected, abs=1e-9)


@settings(max_examples=15)
@given(st.lists(st.tuples(st.floats(0.001, 0.1), st.floats(-1.0, 2.0)), min_size=1, max_size=30))
def test_a_motion_that_waits_moves_at_the_rate_that_it_says_and_comes_to_its_end(waits):
    clock, now, slew = PathClock(0.0, 1.0), 0.1, 0.05
    for step, pace in waits:
        before = clock.at(now)
        clock.wait(now, pace, slew)
        here = clock.at(now)
        assert here.time == pytest.approx(before.time, abs=1e-9) and here.pace == pytest.approx(before.pace, abs=1e-9)
        middle, h = now + 0.5 * step, 1e-7
        rate = (clock.at(middle + h).time - clock.at(middle - h).time) / (2 * h)
        assert rate == pytest.approx(clock.at(middle).pace, abs=1e-4)
        if pace > 0.1:
            assert clock.at(clock.end - 1e-3).time < 1.0 and clock.at(clock.end + 1e-9).time == pytest.approx(1.0)
        now += step
    for _ in range(60):
        clock.wait(now, 1.0, slew)
        now += 0.05
    assert clock.at(now).time == pytest.approx(1.0) and clock.at(now).pace == 0.0


def test_an_old_state_is_answered_as_the_present_one_would_be():
    """Commands three periods late: told of it, the controller keeps to its reference as if they were not."""
    errors = []
    for with_age in (False, True):
        made = loop("biglide", delay=3)
        look = made.look
        made.look = lambda look=look, with_age=with_age: replace(look(), age=0.015 if with_age else 0.0)
        here = made.look().pose[0]
        made.control.set_goal(0.0, here + [0.05, -0.05, 0.0], duration=0.3)
        references: list[np.ndarray] = []
        outputs, _ = made.run(0.3, lambda time, made=made, r=references: r.append(made.control.reference(time).pose[0]))
        errors.append(np.max(np.linalg.norm(outputs[:-1] - np.array(references)[1:], axis=1)))
    assert errors[1] < 0.5 * errors[0] or errors[1] < 1e-4


def test_known_wrenches_reach_the_control_and_stale_ones_are_refused_by_name():
    robot = robot_named("biglide")
    control, loads = make_controller("qp", robot), ExternalLoads(robot, patience=0.5)
    name, nothing = robot.output.body, (0.0, 0.0, 0.0)
    for _ in range(2):
        loads.take(control, name, (0.0, 3.0, 0.0), nothing, 1.0, 1.1)
        loads.update(control, 1.1)
        assert np.linalg.norm(control.loads) == pytest.approx(3.0)
    other = make_controller("qp", robot)  # takes over, and is told what acts
    loads.update(other, 1.2)
    assert np.linalg.norm(other.loads) == pytest.approx(3.0)
    loads.update(other, 2.0)
    assert not other.loads.any()
    for force, stamp in (((np.nan, 0.0, 0.0), 1.0), ((1.0, 0.0, 0.0), 0.2), ((1.0, 0.0, 0.0), 5.0)):
        with pytest.raises(CommandRefused, match=name):
            loads.take(control, name, force, nothing, stamp, 1.0)
    with pytest.raises(CommandRefused, match="body"):
        loads.take(control, "nobody", nothing, nothing, 1.0, 1.0)
    with pytest.raises(TensegrityError, match="kinematic commands rates"):
        loads.take(make_controller("kinematic", robot), name, nothing, nothing, 1.0, 1.0)


def test_an_estimated_wrench_counts_from_the_next_state_on_in_bounds_and_fades_when_it_is_stale():
    robot = robot_named("biglide")
    control, loads = make_controller("qp", robot), ExternalLoads(robot, patience=0.1, limit=10.0)
    name, nothing = robot.output.body, (0.0, 0.0, 0.0)
    loads.update(control, 0.0)
    loads.take_estimate(name, (100.0, 0.0, 0.0), nothing, 1.0, 1.0)
    loads.update(control, 1.0)
    assert not control.loads.any()
    before, steps = 0.0, []
    for k in range(1, 200):
        time = 1.0 + 0.005 * k
        loads.take_estimate(name, (100.0, 0.0, 0.0), nothing, time, time)
        loads.update(control, time)
        steps.append(np.linalg.norm(control.loads) - before)
        before = np.linalg.norm(control.loads)
    assert before == pytest.approx(10.0, rel=1e-3)  # the limit
    assert 0.0 < max(steps[1:]) <= 10.0 * 0.02 / 0.1 + 1e-9  # the rate
    loads.take(control, name, (0.0, 3.0, 0.0), nothing, time, time)
    loads.update(control, time + 0.005)
    assert np.linalg.norm(control.loads) == pytest.approx(np.hypot(before, 3.0), rel=1e-3)  # beside what is stated
    for k in range(200):
        loads.update(control, time + 0.7 + 0.005 * k)
    assert np.linalg.norm(control.loads) < 1e-3
    for force in ((np.nan, 0.0, 0.0), (1.0, np.inf, 0.0)):
        with pytest.raises(CommandRefused, match=name):
            loads.take_estimate(name, force, nothing, 3.0, 3.0)
    with pytest.raises(TensegrityError, match="limit"):
        ExternalLoads(robot, limit=-1.0)


def test_an_estimate_that_was_overtaken_by_a_newer_one_is_not_used():
    robot = robot_named("biglide")
    control, loads, nothing = make_controller("qp", robot), ExternalLoads(robot, limit=10.0), (0.0, 0.0, 0.0)
    loads.update(control, 0.99)
    for force, stamp in ((4.0, 1.01), (-4.0, 1.0)):
        loads.take_estimate(robot.output.body, (force, 0.0, 0.0), nothing, stamp, 1.01)
    for k in range(20):
        loads.update(control, 1.02 + 0.01 * k)
        assert loads.estimate[0] > 0.0
    assert np.linalg.norm(control.loads) == pytest.approx(loads.estimate[0])


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_a_computer_that_stalls_now_and_then_takes_little_tension_from_a_platform_on_cables(seed):
    random, robot, time, stalls = np.random.default_rng(seed), load_robot("cable_robot"), 0.5, []
    while time < 3.0:
        stalls.append((time + random.exponential(0.2), random.uniform(0.005, 0.1)))
        time = sum(stalls[-1])
    made = DelayedLoop(
        robot, make_controller("qp", robot, period=0.005), 0.005, Delays(commands=(1, 1), freezes=tuple(stalls))
    )
    made.run(0.05)
    made.control.set_goal(made.stamp, made.simulation.observe().pose[0] + np.array([0.3, 0.0, 0.0]))
    made.run(2.6)
    assert made.least() > 2.3 and max(made.errors) < 5e-3  # 2.17 and 1.70 where set points brake after six periods


def test_goals_of_a_stream_are_followed_as_closely_by_late_commands_as_by_commands_in_time():
    """A goal in every period, while the reference waits for commands that come apart."""
    robot, period, behind = load_robot("manipulator"), 0.01, []
    for delays in (Delays(), Delays(states=(1, 2), commands=(0, 1), busy=(1, 2), seed=1)):
        loop = DelayedLoop(robot, make_controller("qp", robot, period=period), period, delays)
        home = np.array(loop.control.reference(0.0).pose[0])

        def stream(time, loop=loop, home=home):
            loop.control.set_goal(loop.stamp, home + np.array([0.02 * time, 0.0, 0.0]))

        loop.run(3.0, stream)
        behind.append(home[0] + 0.02 * loop.time - loop.simulation.observe().pose[0][0])
        assert loop.least() > 0.95
    assert behind[0] < 0.02 and behind[1] < 1.2 * behind[0]


@pytest.mark.parametrize("gap", [0.2, 0.45])
def test_a_strut_is_back_at_its_reference_after_its_computer_stood_still_in_the_middle_of_a_motion(gap):
    """Once commands come in time again, they must not stretch cables as slowly as for another gap."""
    robot = load_robot("single_strut")
    control = make_controller("qp", robot, period=0.005)
    loop = DelayedLoop(robot, control, 0.005, Delays(freezes=((0.2, gap),)))
    loop.run(0.15)
    control.set_goal(loop.stamp, control.reference(0.0).pose[0] + [0.02, -0.01, 0.0])
    loop.run(0.05 + gap + 0.05)
    loop.forget()
    loop.run(1.0)
    assert max(loop.errors) < 0.01 and loop.errors[-1] < 1e-3 and loop.least() > 2.9


@pytest.mark.parametrize(("apart", "duration"), [(1, None), (2, None), (5, None), (5, 1.5), (5, 4.0)])
def test_while_commands_come_far_apart_the_reference_slows_down_to_what_the_loop_still_follows(apart, duration):
    """Accelerations that are small for the loop are small for a slower one, too."""
    robot, period = load_robot("single_strut"), 0.01
    control = make_controller("qp", robot, period=period)
    loop = DelayedLoop(robot, control, period, Delays(busy=(apart, apart)))
    loop.run(0.2)
    start = np.array(control.reference(loop.stamp).pose[0])
    control.set_goal(loop.stamp, start + [0.1, 0.0, 0.0], duration=duration)
    loop.run(0.8)
    clock, path = control.motion_at(loop.stamp)
    times = np.linspace(0.0, path.motion.end, 500)
    acceleration = np.max(np.linalg.norm(path.motion.value(times, 2), axis=1)) / control.limits.motion[1]
    expected = affordable(period, (apart - SPARED) * period, DELAYED) / np.sqrt(acceleration)
    assert clock.at(loop.stamp).pace == pytest.approx(min(expected, 1.0), rel=5e-3)
    assert (expected < 1.0) == (apart == 5 and duration != 4.0)
    loop.set_delays(Delays())
    while control.status(loop.stamp).phase == "moving":
        loop.run(0.2)
        assert loop.time < 10.0
    loop.run(0.5)
    assert loop.errors[-1] < 1e-4 and loop.least() > 1.0


def test_a_slow_motion_arrives_when_its_answer_said_although_commands_come_at_random_times():
    robot = load_robot("single_strut")
    control = make_controller("qp", robot, period=0.01)
    loop = DelayedLoop(robot, control, 0.01, Delays(states=(0, 2), commands=(0, 2)))
    loop.run(0.2)
    goal = control.reference(loop.stamp).pose[0] + [0.02, 0.0, 0.0]
    loop.run(control.set_goal(loop.stamp, goal, duration=2.5).arrival + 0.1 - loop.time)
    assert control.status(loop.time).phase == "holding" and loop.least() > 1.0
    assert np.linalg.norm(loop.simulation.observe().pose[0] - goal) < 1e-3


DAMPED_ARM = """
kind: mechanism
name: damped_arm
bodies:
  link: {shapes: [{kind: box, size: [0.5, 0.03, 0.03], mass: 0.5, frame: {at: [0.25, 0, 0]}}]}
joints:
  - {name: hinge, kind: revolute, parent: world, body: link, axis: [0, 1, 0], start: [0.8],
     resistance: {damping: DAMPING}}
actuators: [{drives: hinge, position: [-3, 3], rate: 4, effort: 20}]
outputs: [{name: tip, body: link, frame: {at: [0.5, 0, 0]}, controlled: [z]}]
"""


@pytest.mark.parametrize("damping", [0.1, 10.0])
def test_dampers_faster_than_the_latency_do_not_take_an_arm_off_its_reference(damping):
    """Its prediction was that of efforts alone, without the set points that its actuators follow: it swung off."""
    robot = parse_robot(DAMPED_ARM.replace("DAMPING", str(damping)), "damped_arm.yaml")
    loop = DelayedLoop(robot, make_controller("qp", robot, period=0.01), 0.01, Delays(states=(3, 3), commands=(2, 2)))
    loop.run(0.2)
    goal = loop.simulation.observe().pose[0] + np.array([0.0, 0.0, 0.02])
    loop.run(loop.control.set_goal(loop.stamp, goal).duration + 1.0)
    assert max(loop.errors) < 1e-3 and loop.errors[-1] < 1e-4 and loop.control.relaxed() == ()


@settings(max_examples=4)
@given(gap=st.floats(0.07, 0.45), shaken=st.floats(0.01, 0.05))
@pytest.mark.parametrize("name", ["manipulator", "ball_mast"])
def test_after_a_gap_a_swing_of_the_robot_moves_set_points_by_the_part_that_is_fed_back_alone(name, gap, shaken):
    """They were taken from where actuators were seen to be, which told each swing of the robot to them again."""
    found = []
    for far in (0.0, shaken):
        made = loop(name, period=0.01)
        control = made.control
        control.set_goal(0.0, control.reference(0.0).pose[0] + np.array([0.02, 0.01, 0.0]))
        made.run(0.1)
        seen = made.look()
        q = np.array(seen.q)
        q[control.equations.drive_q] += far
        found.append(control.command(made.time - control.period + gap, replace(seen, q=q, age=control.period)))
    swung = found[1].position - found[0].position
    assert np.max(np.abs(swung)) < 0.35 * shaken  # all of it and more, when they began from what was seen


@pytest.mark.parametrize("late", [1, 3])
@pytest.mark.parametrize("name", ["stewart", "three_rrr"])
def test_a_robot_rests_where_commands_are_late_and_nothing_reports_it(name, late):
    """Set points at the measured rate repeated what dampers of the actuators had just realised."""
    made = loop(name, delay=late)
    made.run(2.0)
    assert np.max(np.abs(made.simulation.state.v)) < 1e-3
