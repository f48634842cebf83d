"""The experiments on late commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensegrity_tools.experiments import endurance
from tensegrity_tools.experiments.delay import Case, draw, late_run, render, run
from tensegrity_tools.output import console


@pytest.mark.long
def test_impedances_keep_their_error_and_come_to_their_goal_however_late_commands_are(tmp_path: Path):
    result = run([Case("biglide", "computed_torque", (0.03, 0.02, 0.0), 0.5)], [0, 3])
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


@pytest.mark.long
def test_no_robot_is_lost_in_minutes_of_delays_freezes_and_switches(tmp_path: Path):
    for robot, controllers, reach in (
        ("manipulator", "qp,joint_position", 0.02),
        ("biglide", "qp,computed_torque", 0.05),
    ):
        result = endurance.run(60.0, robot, controllers, reach=reach, stretch=8.0, seed=3)
        assert not result["lost"], result["lost"]
        if robot == "manipulator":
            assert min(each["least"] for each in result["stretches"]) > 1.0
        assert max(each["worst"] for each in result["stretches"]) < 0.05  # a reference goes on while nobody answers
    endurance.render(result, console)
    endurance.draw(result, tmp_path / "endurance.png")
