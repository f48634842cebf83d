"""The experiments on late commands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tensegrity_control import make_controller
from tensegrity_dynamics import load_robot
from tensegrity_tools.experiments import endurance
from tensegrity_tools.experiments.delay import Case, draw, late_run, render, run
from tensegrity_tools.output import console
from tensegrity_tools.runtime.delayed_loop import DelayedLoop, Delays, freezes


@pytest.mark.long
def test_impedances_keep_their_error_and_come_to_their_goal_however_late_commands_are(tmp_path: Path):
    result = run([Case("biglide", "computed_torque", (0.03, 0.02, 0.0), 0.5, 0.01)], [0, 3])
    impedances = [each for each in result["runs"] if each["actuation"] == "impedance"]
    assert [(each["kind"], each["delay"]) for each in impedances] == [
        ("fixed", 0.0),
        ("fixed", 0.03),
        ("varying", 0.03),
    ]
    for each in impedances:
        assert not each["lost"] and each["worst"] < 1e-3 and each["end"] < 1e-4
    assert len(result["runs"]) == 6
    render(result, console)
    draw(result, tmp_path / "delay.png")
    assert (tmp_path / "delay.png").stat().st_size > 1000


@pytest.mark.long
@pytest.mark.parametrize("kind", ["fixed", "varying"])
def test_qp_keeps_its_floors_two_periods_beyond_the_delays_that_it_is_made_for(kind: str):
    case = Case("manipulator", "qp", (0.0, 0.0, -0.03), 1.0, 0.005)
    for observer in (False, True):
        row = late_run(case, "impedance", 5, kind, observer=observer)
        assert not row["lost"] and row["worst"] < 2e-4 and row["least"] > 2.0


NEARLY_ALWAYS = {
    "10 to 80 ms apart, up to 40 ms late": Delays(states=(0, 1), commands=(0, 3), busy=(1, 8)),
    "20 to 100 ms apart, up to 50 ms late": Delays(states=(0, 1), commands=(0, 4), busy=(2, 10)),
    "stalls of 20 to 100 ms with 15 to 45 ms between": Delays(states=(0, 1), commands=(0, 2)),
}


@pytest.mark.parametrize("robot", ["cable_robot", "manipulator"])
@pytest.mark.parametrize("late", NEARLY_ALWAYS)
@pytest.mark.parametrize("seed", [1, 2])
def test_qp_keeps_its_floors_on_a_computer_that_is_nearly_always_late(robot: str, late: str, seed: int):
    """Tensions fell to zero: every gap told the robot's swings to the set points, and stretched cables too far."""
    made, delays = load_robot(robot), replace(NEARLY_ALWAYS[late], seed=seed)
    if late.startswith("stalls"):
        delays = replace(delays, freezes=tuple(freezes(seed, 20.0, (0.02, 0.1), 0.03)))
    loop = DelayedLoop(made, make_controller("qp", made, period=0.01), 0.01, delays)
    loop.run(0.3)
    goal = loop.control.reference(loop.time).pose[0] + np.array(
        [0.0, -0.2, 0.1] if robot == "cable_robot" else [0.0, 0.0, -0.05]
    )
    loop.control.set_goal(loop.stamp, goal)
    while loop.control.status(loop.time).phase == "moving":
        loop.run(0.1)
        assert loop.time < 20.0
    loop.run(0.5)
    assert loop.least() > 1.2 and np.linalg.norm(loop.simulation.observe().pose[0] - goal) < 1e-3


@pytest.mark.long
def test_no_robot_is_lost_in_minutes_of_delays_freezes_and_switches(tmp_path: Path):
    for robot, controllers, reach in (
        ("manipulator", "qp,joint_position", 0.02),
        ("biglide", "qp,computed_torque", 0.05),
    ):
        result = endurance.run(60.0, robot, controllers, reach=reach, stretch=8.0, seed=3)
        assert not result["failures"], result["failures"]
        assert max(each["worst"] for each in result["stretches"]) < 0.05  # a reference goes on while nobody answers
    endurance.render(result, console)
    endurance.draw(result, tmp_path / "endurance.png")


@pytest.mark.long
@pytest.mark.parametrize("late", [2, 4])
def test_tensions_do_not_alternate_from_period_to_period_where_commands_are_late(late: int):
    """With an even number of periods they did, growing by 4 % in each period of any motion."""
    robot = load_robot("manipulator")
    loop = DelayedLoop(robot, make_controller("qp", robot, period=0.005), 0.005, Delays((late, late)), observer=True)
    loop.run(0.05)
    loop.control.set_goal(loop.stamp, loop.control.reference(0.05).pose[0] + np.array([0.02, 0.02, 0.02]))
    loop.run(0.6)
    alternating = np.abs(np.diff(np.array(loop.tensions), 2, axis=0)).max(axis=1) / 4.0
    assert alternating[60:].max() < 0.01 and loop.least() > 2.5


def test_a_robot_without_goals_rests_through_delays_and_freezes():
    stretch = endurance.run(4.0, "single_strut", "qp", goals=False, stretch=4.0, seed=3)["stretches"][0]
    assert stretch["goals"] == stretch["refused"] == 0 and stretch["freezes"] > 0
    assert stretch["worst"] < 1e-4 and not stretch["faults"]


def test_an_experiment_of_endurance_says_what_failed_with_tendon_and_time():
    robot = load_robot("manipulator")
    cables = tuple(each.drives for each in robot.actuators)
    loop = SimpleNamespace(robot=robot, cables=cables, period=0.5, delays=Delays(freezes=((10.0, 0.4),)))
    fine = [np.full(6, 15.0) for _ in range(6)]
    loop.tensions, loop.errors = fine, [1e-3] * 6
    assert endurance.faults(loop, 10.0) == []
    loop.tensions = [each.copy() for each in fine]
    loop.tensions[1][2], loop.tensions[3][0] = 0.0, 4.0
    loop.errors = [0.1, 1e-3, 1e-3, 1e-3, 1e-3, 0.05]  # the first one while nobody answered
    assert endurance.faults(loop, 10.0) == [
        f"{cables[0]} fell to 4 N at 12.00 s, its floor is 5 N",
        f"{cables[2]} was slack at 11.00 s",
        "the output was 50.0 mm off at 13.00 s",
    ]
