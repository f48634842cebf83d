"""Planned motions keep the tension floors where moving itself takes from the tensions: they take longer, and say so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from damped_mast import damped_mast
from planar_arm import PLANAR_ARM

from tensegrity_control import RobotState, make_controller
from tensegrity_control.controllers.goal_controller import PlannedMotion
from tensegrity_control.motion_planning import output_planner
from tensegrity_dynamics import Robot, Simulation, load_robot, parse_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_tools.runtime.delayed_loop import DelayedLoop, Delays


def moved(robot: Robot, step: np.ndarray, **goal: float) -> tuple[DelayedLoop, str]:
    loop = DelayedLoop(robot, make_controller("task", robot), 0.005, Delays())
    loop.run(0.2)
    accepted = loop.control.set_goal(loop.stamp, loop.simulation.observe().pose[0] + step, **goal)
    loop.run(accepted.duration + 0.5)
    return loop, accepted.note


@pytest.mark.parametrize("damping", [1.0, 30.0, 120.0])
def test_a_viscous_joint_makes_a_motion_longer_instead_of_a_cable_slack(damping: float):
    loop, note = moved(damped_mast(damping), np.array([0.08, 0.0, 0.0]))
    assert loop.least() > 0.98
    assert ("tension floor of stay_" in note) == (damping > 100.0)


def test_a_duration_that_breaks_a_floor_is_lengthened_and_both_durations_are_said():
    loop, note = moved(damped_mast(120.0), np.array([0.08, 0.0, 0.0]), duration=0.9)
    assert loop.least() > 0.98
    assert "0.9 s requested" in note and "needed by the tension floor of stay_" in note


def test_floors_of_routed_cables_count_like_those_of_others():
    robot = load_robot("examples/finger.yaml")
    level = float(DelayedLoop(robot, make_controller("task", robot), 0.005).simulation.observe().tensions["flexor"])
    floor = [replace(each, minimum_tension=0.97 * level) for each in robot.actuators]
    loop, note = moved(replace(robot, actuators=tuple(floor)), np.array([0.0, 0.0, 0.004]))
    assert loop.least() > 0.98 and "broken" not in note


def planned_past_a_kink(aside: float = 0.05) -> tuple[PlannedMotion, float]:
    robot = parse_robot(PLANAR_ARM)
    control, simulation = make_controller("task", robot, period=0.01), Simulation(robot)
    control.reset(0.0, RobotState.of(simulation))
    goal = control.make_goal(0.0, simulation.observe().pose[0] + [aside, 0.0, -0.03])
    planned = control.plan_goal(0.0, goal)
    model, plan = planned.tracker.model, planned.tracker.plan
    coordinates, rates = np.split(plan.states[::5], 2, axis=1)
    passed = zip(plan.positions[::5], coordinates, rates, strict=True)
    return planned, min(min(model.least_tensions(*each).values()) for each in passed) / 30.0


def test_where_tensions_of_a_path_reach_their_floors_the_plan_keeps_them_in_a_usual_duration():
    planned, least = planned_past_a_kink()
    assert 0.99 < least < 1.03
    assert planned.duration < 7.0  # it was 120 s, at 0.98 of the floor


def test_a_plan_that_rests_below_a_floor_on_the_way_is_said_to(monkeypatch):
    monkeypatch.setattr(output_planner, "DIP", 1.0)
    planned, least = planned_past_a_kink(0.07)
    assert least < 0.99
    assert "on the way ef is below its tension floor" in planned.note


def test_near_rigid_keeps_stated_floors_where_tensions_of_the_start_take_too_much_effort():
    robot = parse_robot(PLANAR_ARM)
    control, simulation = make_controller("near_rigid", robot, period=0.01), Simulation(robot)
    control.reset(0.0, RobotState.of(simulation))
    home = simulation.observe().pose[0]
    planned = control.plan_goal(0.0, control.make_goal(0.0, home + [0.05, 0.0, -0.03]))
    plan, model = planned.tracker.plan, control.model
    tensions = model.stiffness * plan.positions[:, model.q_strains]
    assert 1.15 * 30.0 < np.min(tensions) < 1.25 * 30.0 < 200.0 < np.min(control.floor)
    assert np.max(np.abs(plan.inputs)) < 40.0
    own = make_controller("near_rigid", robot, period=0.01, floor=control.floor)  # floors of the caller's are kept
    own.reset(0.0, RobotState.of(simulation))
    with pytest.raises(TensegrityError, match="at rest, above its limit of 40"):
        own.plan_goal(0.0, own.make_goal(0.0, home + [0.05, 0.0, -0.03]))
