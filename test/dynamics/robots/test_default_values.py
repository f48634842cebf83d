"""Values that the parts of a list have in common, given once under `defaults`."""

from __future__ import annotations

import numpy as np
import pytest

from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import RobotFileError
from tensegrity_dynamics.robots.load_robot import parse_robot

STRUCTURE = """
kind: structure
name: mast
nodes:
  foot: {position: [0, 0, 0], fixed: true}
  left: {position: [-1, 0, 0], fixed: true}
  right: {position: [1, 0, 0], fixed: true}
  tip: {position: [0, 0, 1]}
defaults:
  bar: {stiffness: 1e6, mass: 1}
  tendon: {stiffness: 1000}
  members: {rest_length: 1.3}
  actuators:
    position: [1, 2]
    rate: 0.1
    effort: 50
members:
  - {name: mast, kind: bar, nodes: [foot, tip], rest_length: 1}
  - {name: pull_left, kind: tendon, nodes: [left, tip]}
  - {name: pull_right, kind: tendon, nodes: [right, tip]}
actuators:
  - {drives: pull_left}
  - {drives: pull_right, rate: 0.2}
"""
TRIPOD = """
kind: mechanism
name: tripod
density: 1000
bodies:
  hand: {shapes: [{kind: cylinder, size: [0.05, 0.1], frame: {at: [0, 0, 0.1]}}]}
joints: [{name: wrist, kind: universal, parent: world, body: hand, axis: [1, 0, 0]}]
defaults:
  cables: &DEFAULT
repeat:
  count: 3
  about: z
  cables:
    - {name: pull$, body: world, at: [0.2, 0, 0], anchor: {body: hand, at: [0.04, 0, 0.1]} &OWN}
"""
COMMON = {
    "block_axis": "[0, 0, 1]", "pulley_axis": "[0, 1, 0]", "pulley_radius": "0.02", "young": "1 GPa",
    "damping": "1 MPa s", "cable_radius": "1 mm", "length": "1", "strain": "0.01",
    "block": "[{kind: cube, size: [0.02]}]", "pulley": "[{kind: cylinder, size: [0.02, 0.01]}]",
}  # fmt: skip


def tripod(shared, own):
    written = ["".join(f"{name}: {COMMON[name]}, " for name in names) for names in (shared, own)]
    text = TRIPOD.replace("&DEFAULT", "{" + written[0] + "}").replace("&OWN", ", " + written[1])
    return parse_robot(text, "tripod.yaml").mechanism


def refused(old, new, text=STRUCTURE):
    assert old in text
    with pytest.raises(RobotFileError) as error:
        parse_robot(text.replace(old, new), "mast.yaml")
    return str(error.value)


def test_parts_get_what_they_do_not_give_themselves():
    robot = parse_robot(STRUCTURE, "mast.yaml")
    assert [each.rate for each in robot.actuators] == [0.1, 0.2]
    assert [each.position for each in robot.actuators] == [(1.0, 2.0)] * 2
    assert robot.structure.rest_lengths.tolist() == [1.0, 1.3, 1.3]
    assert robot.structure.stiffness.tolist() == [1e6, 1000.0, 1000.0]


@pytest.mark.parametrize("number", range(len(COMMON) + 1))
def test_repeated_parts_are_the_same_wherever_their_fields_are_given(number):
    names = list(COMMON)
    made, plain = tripod(names[:number], names[number:]), tripod([], names)
    assert [each.name for each in made.bodies] == [each.name for each in plain.bodies]
    for one, other in zip(made.joints, plain.joints, strict=True):
        assert np.array_equal(one.placement.axes, other.placement.axes)
        assert np.array_equal(one.placement.origin, other.placement.origin)


def test_a_wrong_value_is_reported_once_with_its_own_line():
    message = refused("rate: 0.1", 'rate: "3 kg"')
    assert message.count("'kg' is a unit of mass") == 1
    assert message.startswith(f"mast.yaml:{STRUCTURE.splitlines().index('    rate: 0.1') + 1}: ")


def test_a_wrong_value_for_repeated_parts_of_two_templates_is_reported_once():
    second = TRIPOD.splitlines()[-1].replace("pull$", "back$").replace("0.2, 0, 0", "0.1, 0, 0")
    fields = ", ".join(f"{name}: {value}" for name, value in COMMON.items())
    text = (TRIPOD + second + "\n").replace("&DEFAULT", "{" + fields + "}").replace(" &OWN", "")
    assert len(parse_robot(text, "tripod.yaml").mechanism.cables) == 6
    message = refused("young: 1 GPa", "young: 1 kg", text)
    assert message.count("'kg' is a unit of mass") == 1


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("  actuators:\n    pos", "  actuator:\n    pos", ["defaults.actuator", "Did you mean 'actuators'?"]),
        ("  tendon:", "  tendn:", ["defaults.tendn", "Did you mean 'tendon'?"]),
        ("members: {rest_length: 1.3}", "members: 3", ["defaults.members", "a mapping is needed"]),
        ("rest_length: 1.3", "name: all", ["defaults.members.name", "name of its own"]),
        ("effort: 50", "efort: 50", ["efort", "Did you mean 'effort'?"]),
    ],
)
def test_defaults_that_belong_to_nothing_are_refused_by_name(old, new, words):
    message = refused(old, new)
    assert all(each in message for each in words)


def test_a_mechanism_without_such_a_list_names_those_that_it_has():
    message = refused("cables: &DEFAULT", "cable: {young: 1}", TRIPOD.replace("&OWN", ""))
    assert "defaults.cable" in message and "Did you mean 'cables'?" in message


@pytest.mark.parametrize("wrong", ["3", "[1]", "text"])
def test_defaults_of_a_mechanism_are_a_mapping(wrong):
    text = TRIPOD.replace("defaults:\n  cables: &DEFAULT", f"defaults: {wrong}").replace("&OWN", "")
    with pytest.raises(RobotFileError, match=r"defaults: a mapping is needed"):
        parse_robot(text, "tripod.yaml")


def test_the_manipulator_gives_what_its_cables_share_once():
    robot = load_robot("manipulator")
    assert len({(each.position, each.rate, each.effort) for each in robot.actuators}) == 1
