"""The experiment `robustness`: its plants are not the robot that controller and observer were told of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tensegrity_dynamics import load_robot, parse_robot
from tensegrity_tools.experiments._runs import plant_of
from tensegrity_tools.experiments.robustness import Case, run_case

PAIR = """
kind: mechanism
name: pair
gravity: [0, 0, -9.81]
density: 1000
bodies:
  lever: {shapes: [{kind: box, size: [0.04, 0.04, 0.4], mass: 0.8, frame: {at: [0, 0, 0.2]}}]}
joints:
  - {name: hinge, kind: revolute, parent: world, body: lever, axis: [0, 1, 0]}
defaults:
  cables: {block_axis: [0, 0, 1], pulley_radius: 0.02, young: "2 GPa", damping: "4 MPa s", cable_radius: "1 mm",
    length: 2, strain: 0.01, block: [{kind: cube, size: [0.03]}], pulley: [{kind: cylinder, size: [0.02, 0.01]}]}
cables:
  - {name: front, body: world, at: [0.3, 0, 0.05], pulley_axis: [0, 1, 0], anchor: {body: lever, at: [0, 0, 0.3]}}
  - {name: back, body: world, at: [-0.3, 0, 0.05], pulley_axis: [0, -1, 0], young: "1 GPa", strain: 0.02,
     anchor: {body: lever, at: [0, 0, 0.3]}}
actuators:
  - {drives: hinge, position: [-1, 1], rate: 3, effort: 2}
  - {drives: front, position: [-20, 20], rate: "15 rad/s", effort: "8 N m", minimum_tension: 8}
  - {drives: back, position: [-20, 20], rate: "15 rad/s", effort: "8 N m", minimum_tension: 4}
outputs: [{name: tip, body: lever, frame: {at: [0, 0, 0.4]}, controlled: [x]}]
"""
"""Two cables of different modulus, and a motor that winds none."""


@pytest.mark.parametrize("name", ["single_strut", "cable_robot", "pair"])
def test_every_cable_of_a_plant_is_as_much_stiffer_as_the_case_says(name):
    robot = parse_robot(PAIR, "pair.yaml") if name == "pair" else load_robot(name)
    for each, own in zip(plant_of(robot, young=1.1, radius=0.9).mechanism.cables, robot.mechanism.cables, strict=True):
        np.testing.assert_allclose([each.young, each.area], [1.1 * own.young, 0.81 * own.area])


def test_a_robot_file_runs_with_other_cables_and_its_floors_are_those_of_its_cables(tmp_path):
    path = tmp_path / "pair.yaml"
    path.write_text(PAIR)
    case = replace(Case("softer", young=0.9, state="truth"), move=(0.02, 0.0, 0.0))
    found = run_case(case, str(path))
    assert not found["lost"] and found["end_m"] < 1e-3 and found["least"] > 1.0
