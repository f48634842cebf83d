"""The shipped robots: what the documents print of them, and that their tours can be driven."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tensegrity_control import inverse_kinematics
from tensegrity_control.inverse_kinematics.structure_jacobian import sensitivity
from tensegrity_dynamics.numerics.rotations import (
    matrix_from_quaternion,
    matrix_from_vector,
    quaternion_from_matrix,
    rotation_vector,
)
from tensegrity_dynamics.robots.load_robot import load_robot, parse_robot, shipped_robots
from tensegrity_dynamics.structures.form_finding.equilibrium import StructureEquilibrium
from tensegrity_dynamics.structures.form_finding.forward_kinematics import forward_kinematics
from tensegrity_dynamics.structures.structure import Structure

INCH = 0.0254
POUND_FORCE = 4.4482216152605
STRUCTURES = [name for name in shipped_robots() if isinstance(load_robot(name).model, Structure)]
DRIVEN = [name for name in STRUCTURES if load_robot(name).tour and not load_robot(name).model.takes_no_goals]


@cache
def at_rest(name: str, rigid_bars: bool = False, weightless: bool = False) -> StructureEquilibrium:
    return forward_kinematics(load_robot(name), rigid_bars=rigid_bars, gravity=(0, 0, 0) if weightless else None)


@pytest.mark.parametrize("name", shipped_robots())
def test_a_robot_names_its_source_and_what_the_source_does_not_print(name: str) -> None:
    robot = load_robot(name)
    assert robot.name == name
    assert robot.description
    assert robot.source
    statuses = {note.status for note in robot.provenance}
    if "document" in robot.source:
        assert statuses >= {"printed", "assumed"}
    else:  # dimensions of our own
        assert statuses == {"assumed"}
    assert all(note.note for note in robot.provenance)


@pytest.mark.parametrize("name", STRUCTURES)
def test_rest_lengths_lie_within_the_limits_of_their_actuators(name: str) -> None:
    robot = load_robot(name)
    for actuator, row in zip(robot.actuators, robot.actuated_members(), strict=True):
        assert actuator.position[0] < robot.structure.rest_lengths[row] < actuator.position[1]


@pytest.mark.parametrize("rigid_bars", [False, True])
@pytest.mark.parametrize("name", DRIVEN)
def test_a_robot_with_a_tour_stands_with_every_tendon_above_its_floor_and_below_its_ceiling(
    name: str, rigid_bars: bool
) -> None:
    robot, shape = load_robot(name), at_rest(name, rigid_bars)
    assert shape.stable
    assert shape.slack == ()
    for actuator, row in zip(robot.actuators, robot.actuated_members(), strict=True):
        assert actuator.minimum_tension < shape.tensions[row] < actuator.effort


@pytest.mark.parametrize("rigid_bars", [False, True])
@pytest.mark.parametrize("name", DRIVEN)
def test_lengths_steer_every_controlled_axis(name: str, rigid_bars: bool) -> None:
    robot, shape = load_robot(name), at_rest(name, rigid_bars)
    pose = sensitivity(shape, robot.actuated_members(), rigid_bars=rigid_bars).pose
    assert pose is not None
    steered = np.linalg.svd(pose[robot.output.rows], compute_uv=False)
    assert steered[-1] > 0.3  # m or rad per m
    assert steered[0] / steered[-1] < 20.0


@pytest.mark.parametrize("rigid_bars", [False, True])
@pytest.mark.parametrize("name", DRIVEN)
def test_every_stop_of_the_tour_can_be_reached_with_tight_tendons(name: str, rigid_bars: bool) -> None:
    robot, home = load_robot(name), at_rest(name, rigid_bars)
    position, quaternion = home.pose
    shape = home
    for stop in robot.tour:
        rotation = matrix_from_vector(stop.turn) @ matrix_from_quaternion(quaternion)
        plan = inverse_kinematics(
            robot, position + np.array(stop.move), quaternion_from_matrix(rotation),
            start=shape, preferred=home, rigid_bars=rigid_bars,
        )  # fmt: skip
        assert np.abs(plan.pose_error).max() < 1e-9
        assert plan.lowest_margin[1] >= 0.0
        shape = plan.equilibrium


@pytest.mark.parametrize("name", DRIVEN)
def test_the_output_is_not_turned_at_rest(name: str) -> None:
    _, quaternion = at_rest(name).pose
    assert np.degrees(np.abs(rotation_vector(matrix_from_quaternion(quaternion)))).max() < 0.25


# -- what document 001 prints ---------------------------------------------------------------------------------------


def test_three_prism_is_as_high_and_as_twisted_as_its_exact_solution() -> None:
    shape = at_rest("three_prism")
    top = shape.nodes[shape.structure.node("top_1")]
    assert top[2] == pytest.approx(0.9543, abs=5e-5)
    assert np.degrees(np.arctan2(top[1], top[0])) == pytest.approx(30.0, abs=1e-6)
    assert shape.residual < 1e-9


def test_four_prism_as_printed_can_move_without_force_and_with_bars_of_1_6_it_stands() -> None:
    robot = load_robot("four_prism")
    assert not at_rest("four_prism").stable
    bars = {f"bar_{i}": 1.6 for i in range(1, 5)}
    taut = forward_kinematics(robot, bars)
    assert taut.stable
    assert taut.slack == ()
    assert np.ptp(taut.nodes[4:, 2]) < 1e-9


def test_tensebot_without_weight_puts_its_flange_at_the_printed_height() -> None:
    position, quaternion = at_rest("tensebot", weightless=True).pose
    assert position / INCH == pytest.approx([0.0, 0.0, 7.5324], abs=5e-5)
    # printed: -0.0029 rad, measured on a base numbered clockwise
    turn = rotation_vector(matrix_from_quaternion(quaternion))
    assert turn[:2] == pytest.approx([0.0, 0.0], abs=1e-6)
    assert turn[2] == pytest.approx(0.0029, abs=0.0015)


def test_tensebot_sinks_under_its_weight_by_less_than_its_tension_can_bear() -> None:
    light, heavy = at_rest("tensebot", weightless=True), at_rest("tensebot")
    sinks = (light.pose[0][2] - heavy.pose[0][2]) / INCH
    assert sinks == pytest.approx(0.187, abs=0.002)
    strings = heavy.tensions[load_robot("tensebot").actuated_members()] / POUND_FORCE
    assert 25.0 < strings.min()
    assert strings.max() < 30.0


def members_by_ends(structure: Structure) -> dict[frozenset[str], tuple[str, float]]:
    """Kind and rest length of each member by the names of its two nodes."""
    return {
        frozenset((structure.node_names[i], structure.node_names[j])): (kind, round(float(length), 9))
        for (i, j), kind, length in zip(structure.members, structure.kinds, structure.rest_lengths, strict=True)
    }


def test_every_tensebot_node_carries_one_strut_and_four_others() -> None:
    structure = load_robot("tensebot").structure
    for row in range(12):
        ending = [name for name, ends in zip(structure.member_names, structure.members, strict=True) if row in ends]
        assert len(ending) == 5
        assert sum(name.startswith("bar_") for name in ending) == 1


def test_tensebot_has_the_symmetry_that_exchanges_base_and_top() -> None:
    """Nodes base_1, top_1, base_2, ... in a ring, each moved on by one: the same members, of the same lengths."""
    structure = load_robot("tensebot").structure
    base, lower, upper, top = ([f"{part}_{i}" for i in (1, 2, 3)] for part in ("base", "lower", "upper", "top"))
    platform = [base[0], top[0], base[1], top[1], base[2], top[2]]
    struts = {**dict(zip(base, lower, strict=True)), **dict(zip(top, upper, strict=True))}
    onward = {name: platform[(k + 1) % 6] for k, name in enumerate(platform)}
    onward |= {struts[name]: struts[onward[name]] for name in platform}
    have = members_by_ends(structure)
    assert {frozenset(onward[name] for name in ends): what for ends, what in have.items()} == have


@pytest.mark.parametrize(("name", "corners"), [("three_prism", 3), ("four_prism", 4)])
def test_a_prism_turned_by_one_corner_is_the_same_prism(name: str, corners: int) -> None:
    structure = load_robot(name).structure
    onward = {f"{part}_{k}": f"{part}_{k % corners + 1}" for part in ("base", "top") for k in range(1, corners + 1)}
    have = members_by_ends(structure)
    assert len(have) == 4 * corners
    turned = {frozenset(onward[name] for name in ends): what for ends, what in have.items()}
    assert turned == have


def test_a_copy_of_a_shipped_file_under_another_path_is_the_same_robot(tmp_path: Path) -> None:
    original = load_robot("three_prism")
    assert original.path is not None
    again = parse_robot(original.path.read_text(encoding="utf-8"))
    assert np.array_equal(again.structure.nodes, original.structure.nodes)
    assert again.path is None
