"""Picture of a structure: bars, plates, slack members, sizes."""

from __future__ import annotations

import numpy as np
import pytest
from view_robots import prism_robot

from tensegrity_dynamics.numerics.rotations import matrix_from_quaternion
from tensegrity_dynamics.structures.structure import make_structure
from tensegrity_dynamics.visualization.structure_picture import StructurePicture, bar_triangles, find_sizes
from tensegrity_dynamics.visualization.style import Sizes


def test_links_are_the_bars_from_node_to_node_and_the_output():
    robot = prism_robot()
    structure, picture = robot.structure, StructurePicture(robot)
    snapshot = picture.at(structure.nodes)
    bars = np.flatnonzero(~structure.unilateral)
    assert [link.name for link in picture.links] == [*(structure.member_names[row] for row in bars), "flange"]
    for row, (position, quaternion), size in zip(bars, snapshot.link_poses, snapshot.solid_sizes, strict=False):
        half = 0.5 * size[2] * matrix_from_quaternion(quaternion)[:, 2]
        ends = structure.nodes[structure.members[row]]
        np.testing.assert_allclose([position - half, position + half], ends, atol=1e-12)
    np.testing.assert_array_equal(snapshot.link_poses[-1][0], robot.output.pose(structure.nodes)[0])


def test_only_tendons_and_springs_without_tension_are_slack():
    structure = prism_robot().structure
    tensions = np.full(len(structure.member_names), -5.0)
    tensions[structure.unilateral] = 3.0
    tensions[structure.member("side_1")] = 0.0
    tensions[structure.member("coil")] = np.nan
    slack = StructurePicture(prism_robot()).slack(tensions, 10.0)
    assert [structure.member_names[row] for row in np.flatnonzero(slack)] == ["side_1"]


def test_node_positions_that_cannot_be_drawn_are_named():
    picture = StructurePicture(prism_robot())
    assert picture.problem(picture.start) is None
    assert "(5, 3)" in picture.problem(picture.start[:-1])
    nodes = np.array(picture.start)
    nodes[2, 1] = np.nan
    assert "node c" in picture.problem(nodes)


def test_three_bars_in_a_ring_are_a_plate():
    structure = prism_robot().structure
    triangles = bar_triangles(structure)
    assert [sorted(structure.node_names[k] for k in row) for row in triangles] == [["a", "b", "c"]]


def test_sizes_follow_the_size_of_the_robot():
    def stick(length: float) -> Sizes:
        nodes = {"a": (0.0, 0.0, 0.0), "b": (0.0, 0.0, length)}
        return find_sizes(make_structure(nodes, [("bar", "bar", "a", "b", 1.0, length)]))

    assert stick(3.0).bar == pytest.approx(10.0 * stick(0.3).bar)
    assert stick(3.0).tendon < stick(3.0).bar < stick(3.0).node < stick(3.0).span
