"""Symmetric parts of robot files: copies are what would be written by hand, turned and shifted."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from tensegrity_dynamics import RobotFileError, parse_robot
from tensegrity_dynamics.robots import repetition

RING = """kind: structure
name: ring
nodes: {}
members: []
repeat:
  count: COUNT
  about: AXIS
  through: THROUGH
  nodes: {n_$: {position: [0.3, -0.1, 0.2], fixed: true}}
  members: [{name: m_$, kind: tendon, nodes: [n_$, n_$+1], rest_length: 0.1, stiffness: 100}]
"""


@given(st.integers(2, 9), st.sampled_from("xyz"), st.lists(st.floats(-1, 1), min_size=3, max_size=3))
@settings(deadline=None)
def test_copies_of_a_ring_are_turned_about_its_axis(count: int, axis: str, through: list[float]) -> None:
    text = RING.replace("COUNT", str(count)).replace("AXIS", axis).replace("THROUGH", str(through))
    center, first = np.array(through), np.array([0.3, -0.1, 0.2])
    turns = [Rotation.from_rotvec(2 * math.pi * k / count * np.eye(3)["xyz".index(axis)]) for k in range(count)]
    positions = [center + turn.apply(first - center) for turn in turns]
    if np.linalg.norm(positions[0] - positions[1]) < 1e-9:
        return  # on the axis: the copies coincide, which is an error of its own
    structure = parse_robot(text).structure
    np.testing.assert_allclose(structure.nodes, positions, atol=1e-14)
    ends = [(structure.node_names[i], structure.node_names[j]) for i, j in structure.members]
    assert ends == [(f"n_{k}", f"n_{k % count + 1}") for k in range(1, count + 1)]


TOWER = """kind: structure
name: tower
gravity: [0, 0, 0]
parameters: {height: 0.3, stages: 4}
defaults: {tendon: {stiffness: 100}}
nodes: {top: {position: [0, 0, 2], fixed: true}}
members: []
repeat:
  count: stages
  along: [0, 0, height]
  mark: "@"
  repeat:
    count: 3
    about: z
    nodes: {n_@_$: {position: [0.2, 0, 0], fixed: true}}
    members: [{name: ring_@_$, kind: tendon, nodes: [n_@_$, n_@_$+1], rest_length: 0.1 * $}]
"""


def test_a_tower_is_so_many_times_one_stage() -> None:
    structure = parse_robot(TOWER).structure
    assert len(structure.node_names) == 13 and len(structure.member_names) == 12
    for stage in range(4):
        for corner in range(3):
            at = structure.nodes[structure.node_names.index(f"n_{stage + 1}_{corner + 1}")]
            angle = 2 * math.pi * corner / 3
            np.testing.assert_allclose(at, [0.2 * math.cos(angle), 0.2 * math.sin(angle), 0.3 * stage], atol=1e-15)
    assert structure.rest_lengths.tolist() == pytest.approx([0.1, 0.2, 0.3] * 4)


MACHINE = """kind: mechanism
name: machine
density: 1000
gravity: [0, 0, 0]
bodies: {plate: {shapes: [{kind: box, size: [0.1, 0.1, 0.1]}]}}
joints: [{name: free, kind: floating, parent: world, body: plate}]
BY_HAND
"""
BY_REPETITION = """
repeat:
  count: 3
  about: z
  bodies: {arm_$: {shapes: [{kind: box, size: [0.1, 0.02, 0.02], frame: {at: [0.05, 0, 0]}}]}}
  joints:
    - {name: hinge_$, kind: revolute, parent: plate, body: arm_$, axis: [0, 1, 0], frame: {at: [0.1, 0, 0]}}
"""


def test_what_stands_on_a_shared_body_is_turned_and_what_stands_on_a_copy_is_not() -> None:
    mechanism = parse_robot(MACHINE.replace("BY_HAND", BY_REPETITION)).model.mechanism
    hinges = {joint.name: joint for joint in mechanism.joints if joint.name.startswith("hinge")}
    arms = {body.name: body for body in mechanism.bodies if body.name.startswith("arm")}
    assert sorted(hinges) == ["hinge_1", "hinge_2", "hinge_3"] and sorted(arms) == ["arm_1", "arm_2", "arm_3"]
    for k in range(3):
        turn = Rotation.from_rotvec([0, 0, 2 * math.pi * k / 3])
        frame = hinges[f"hinge_{k + 1}"].placement
        np.testing.assert_allclose(frame.origin, turn.apply([0.1, 0, 0]), atol=1e-15)
        np.testing.assert_allclose(frame.axes, turn.as_matrix(), atol=1e-15)
        assert arms[f"arm_{k + 1}"].mass == arms["arm_1"].mass


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("stages: 4", "stages: 2.5", "robot.yaml:9: repeat.count: a whole number is needed"),
        ("count: stages", "count: -1", "robot.yaml:9: repeat.count: must be at least 1; found -1"),
        ("count: stages", "count: 100000000", "repeat.count: must be at most 100000"),
        ("along:", "alongside:", "robot.yaml:10: repeat.alongside: cannot be repeated. Allowed: count, about"),
        ("about: z", "about: w", "robot.yaml:14: repeat.repeat.about: found 'w'; allowed: 'x', 'y', 'z'"),
        ("about: z", "along: [0, 0, 1]", "There is no node 'n_1_4'"),
        ("n_@_$:", "n_$:", "robot.yaml:15: repeat.repeat.nodes.n_$: makes 'n_1', which is there already; put $ into"),
        ("0.1 * $", "width", "robot.yaml:16: members[0] (ring_1_1).rest_length: There is no parameter 'width'"),
        ("nodes: {n_", "nodes: 3\n    x: {n_", "robot.yaml:15: repeat.repeat.nodes: a list or a mapping of parts"),
        ("members: []", "members: {}", "robot.yaml:7: members: a list is needed, since repeated parts are added to it"),
    ],
)
def test_errors_name_the_line_where_the_part_is_written(before: str, after: str, message: str) -> None:
    assert before in TOWER
    with pytest.raises(RobotFileError) as raised:
        parse_robot(TOWER.replace(before, after))
    assert message in str(raised.value)


def test_a_repetition_cannot_fill_the_memory() -> None:
    nested = "repeat: {count: 100000, mark: '@', repeat: {count: 100000, nodes: {n_@_$: {}}}}\n"
    with pytest.raises(RobotFileError, match="50000 at most"):
        parse_robot("kind: structure\nname: large\nnodes: {}\nmembers: []\n" + nested)


def test_all_repetitions_of_a_file_count_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repetition, "MAX_PARTS", 10)
    begin = "kind: structure\nname: large\nnodes: {}\nmembers: []\nrepeat:\n"
    part = "- {count: %d, along: [1, 0, 0], nodes: {%s_$: {position: [0, 0, 0]}}}\n"
    with pytest.raises(RobotFileError, match=r"robot.yaml:7: repeat\[1\]: with those before .* 12 parts; 10 at most"):
        parse_robot(begin + part % (6, "a") + part % (6, "b"))


def test_a_mistake_in_a_repeated_part_is_one_line_and_that_of_one_copy_as_well() -> None:
    def lines(text: str) -> list[str]:
        with pytest.raises(RobotFileError) as caught:
            parse_robot(text, "ring.yaml")
        return str(caught.value).splitlines()

    ring = RING.replace("COUNT", "3").replace("  about: AXIS\n  through: THROUGH\n", "  along: [1, 0, 0]\n")
    (line,) = lines(ring.replace("[n_$, n_$+1]", "[k_$, n_$]"))
    assert line.startswith("ring.yaml:9: members[0] (m_1).nodes[0]: There is no node 'k_1'")
    (line,) = lines(ring)
    assert "There is no node 'n_4'" in line  # of the last copy alone
