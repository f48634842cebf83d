"""Modes along a path of the output (`tensegrity check ROBOT --modes --along`)."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tensegrity_dynamics import TensegrityError, load_robot, parse_robot
from tensegrity_dynamics.robots.robot_types import type_of
from tensegrity_tools.cli import app
from tensegrity_tools.sweeps.axes import read_axis
from tensegrity_tools.sweeps.modes_along import modes_along

LIFT = """
kind: mechanism
name: lift
gravity: [0, 0, -9.81]
bodies: {weight: {shapes: [{kind: point, mass: 2.0}]}, drum: {mass: 1, inertia: [0.01, 0.01, 0.01]}}
joints:
  - {name: guide, kind: prismatic, parent: world, body: weight, axis: [0, 0, 1]}
  - {name: drumJt, kind: revolute, parent: world, body: drum, axis: [0, 1, 0], frame: {at: [0.05, 0, 1]}}
routed_cables:
  - {name: rope, young: "50 MPa", cable_radius: "1 mm", length: 1.0,
     route: [{joint: drumJt, radius: 0.05, side: -1}, {body: weight, at: [0, 0, 0]}]}
actuators: [{drives: drumJt, position: [-20, 20], rate: "30 rad/s", effort: "50 N m"}]
outputs: [{name: hook, body: weight, controlled: [z]}]
"""


def test_a_lift_swings_faster_the_higher_it_hangs():
    robot = parse_robot(LIFT, "here")
    report = modes_along(robot, read_axis("z=-30cm:30cm:3", "--along"))
    stiffness, weight = 50e6 * np.pi * 1e-6, 2.0 * 9.81
    home = type_of(robot).report(robot).modes().figures["modes"]
    for entry in report.figures["path"]:
        [mode] = entry["modes"]
        rest = 1.0 - entry["offset"] / (1.0 + weight / stiffness)  # all that is off the drum is stretched
        assert mode["frequency_Hz"] == pytest.approx(np.sqrt(stiffness / rest / 2.0) / (2.0 * np.pi), rel=1e-6)
        assert mode["cable_energy_shares"] == {"rope": 1.0}
    assert report.figures["path"][1]["modes"][0]["frequency_Hz"] == pytest.approx(home[0]["frequency_Hz"], rel=1e-9)


def test_a_pose_out_of_reach_and_an_axis_that_is_not_controlled_are_said():
    robot = parse_robot(LIFT.replace("[-20, 20]", "[-2, 2]"), "here")
    far, near = modes_along(robot, read_axis("z=-90cm:0cm:2", "--along")).figures["path"]
    assert not far["reached"] and "drumJt" in far["stopped_by"] and near["reached"]
    with pytest.raises(TensegrityError, match="--along x: hook does not control it; it controls z"):
        modes_along(robot, read_axis("x=0:1cm:2", "--along"))


def test_a_structure_at_home_has_the_modes_of_check():
    robot = load_robot("three_prism")
    there = modes_along(robot, read_axis("z=0mm:1mm:2", "--along")).figures["path"][0]
    own = type_of(robot).report(robot).modes().figures["modes"]
    ours, theirs = ([mode["frequency_Hz"] for mode in modes] for modes in (there["modes"], own))
    assert ours == pytest.approx(theirs, rel=1e-6)


def test_the_command_says_them_for_programs_and_asks_for_both_options(tmp_path, capsys):
    path = tmp_path / "lift.yaml"
    path.write_text(LIFT, encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        app(["check", str(path), "--modes", "--along", "z=-5cm:5cm:2", "--json"])
    assert not ended.value.code
    low, high = (each["modes"][0]["frequency_Hz"] for each in json.loads(capsys.readouterr().out)["path"])
    assert low < high
    with pytest.raises(SystemExit) as ended:
        app(["check", str(path), "--along", "z=-5cm:5cm:2"])
    assert ended.value.code
    assert "--along says where --modes are computed; give both" in capsys.readouterr().err
