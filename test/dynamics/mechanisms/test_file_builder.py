"""Mechanisms from robot files: what is shipped, how it is assembled, and what is refused with which words."""

from __future__ import annotations

import re

import numpy as np
import pytest
import yaml
from multibody_machines import biglide, manipulator, single_strut

from tensegrity_dynamics import load_robot, parse_robot
from tensegrity_dynamics.errors import RobotFileError
from tensegrity_dynamics.mechanisms.body_poses import BodyPoses
from tensegrity_dynamics.mechanisms.cable_substitution import with_cables
from tensegrity_dynamics.mechanisms.dynamics.equations_of_motion import equations
from tensegrity_dynamics.mechanisms.robot_kinematics import loop_kinematics

SHIPPED = ("single_strut", "manipulator", "biglide")
SEEDS = "../shared/reference"


def raw(name):
    """The file of a shipped robot as a mapping that a test may change."""
    with open(load_robot(name).path, encoding="utf-8") as file:
        return yaml.safe_load(file)


def written_out(name):
    """The same with every cable and actuator stated on its own instead of by repetition."""
    data, robot = raw(name), load_robot(name)
    data.pop("repeat")
    data["cables"] = [
        {
            "name": each.name, "body": each.carrier, "at": each.at.tolist(), "block_axis": each.block_axis.tolist(),
            "pulley_axis": each.pulley_axis.tolist(), "pulley_radius": each.radius, "young": each.young,
            "anchor": {"body": each.anchor_body, "at": each.anchor.tolist()}, "cable_radius": each.cable_radius,
            "damping": each.damping, "length": each.longest, "strain": each.strain,
            "block": [{"kind": solid.kind, "size": list(solid.size)} for solid in each.block],
            "pulley": [{"kind": solid.kind, "size": list(solid.size)} for solid in each.pulley],
        }
        for each in robot.model.entries
    ]  # fmt: skip
    data["actuators"] = [
        {"drives": each.drives, "position": list(each.position), "rate": each.rate, "effort": each.effort}
        for each in robot.actuators
    ]
    return data


def parse(data):
    return parse_robot(yaml.safe_dump(data, sort_keys=False), "bad.yaml")


def refusal(data):
    """The message with which the file is refused; it starts with file and line."""
    with pytest.raises(RobotFileError) as caught:
        parse(data)
    assert re.match(r"bad\.yaml:\d+: ", str(caught.value))
    return str(caught.value)


def still(mechanism):
    return np.zeros(mechanism.velocity_count)


@pytest.mark.parametrize(
    ("name", "counts"), [("single_strut", (14, 9, 5)), ("manipulator", (39, 27, 12)), ("biglide", (4, 2, 2))]
)
def test_shipped_mechanisms_have_the_printed_counts(name, counts):
    mechanism = load_robot(name).model.mechanism
    rows = equations(mechanism, load_robot(name).model.start, still(mechanism)).loop
    rank = np.linalg.matrix_rank(rows)
    assert (mechanism.velocity_count, mechanism.constraint_count, mechanism.velocity_count - rank) == counts


@pytest.mark.parametrize("name", SHIPPED)
def test_loops_of_shipped_mechanisms_are_closed_at_the_start(name):
    model = load_robot(name).model
    assert np.max(np.abs(equations(model.mechanism, model.start, still(model.mechanism)).loop_error)) < 1e-12


def test_manipulator_starts_at_the_printed_height():
    robot = load_robot("manipulator")
    (position, _), _ = BodyPoses(robot.model).update(robot.model.start).output(robot.outputs[0])
    side = 1.0 / np.sqrt(2.0)
    assert np.allclose(position, [0.0, 0.0, side * (1.0 + np.sqrt(2.0 / 3.0))], atol=1e-12)


def test_cables_of_the_upright_strut_rise_at_45_degrees():
    robot = load_robot("single_strut")
    ends = BodyPoses(robot.model).update(robot.model.start).cables()
    along = (ends[:, 1] - ends[:, 0]) / np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)[:, None]
    assert np.allclose(np.degrees(np.arcsin(along[:, 2])), 45.0, atol=1e-10)


@pytest.mark.parametrize(("name", "build"), [("single_strut", single_strut), ("manipulator", manipulator)])
def test_files_describe_the_same_machines_as_the_ones_built_by_hand(name, build):
    model = load_robot(name).model
    mechanism, q = build()[:2]
    one, other = model.mechanism, mechanism
    assert (
        one.topology().replace("top-revoluteJt", "top-pulleyJt").replace("bot-revoluteJt", "bot-pulleyJt")
        == other.topology()
    )
    mine = equations(one, model.start, still(one))
    theirs = equations(other, q, still(other))
    order = [
        other.coordinate_names().index(n.replace("-revoluteJt", "-pulleyJt") if name == "manipulator" else n)
        for n in one.coordinate_names()
    ]
    # cables of another strain differ in their rows of mass and efforts only by that strain
    same = [k for k, n in enumerate(one.coordinate_names()) if "involute" not in n]
    assert np.allclose(mine.mass[np.ix_(same, same)], theirs.mass[np.ix_(order, order)][np.ix_(same, same)], atol=1e-9)


LISTING_5_1 = """\
Spanning tree:
Vertex: world (root)
  Vertex: cross-shaft, Edge: x-revoluteJt
    Vertex: strut, Edge: y-revoluteJt
  Vertex: B1-block, Edge: B1-blockJt
    Vertex: B1-pulley, Edge: B1-pulleyJt
      Vertex: B1-cable, Edge: B1-involuteJt
  Vertex: B2-block, Edge: B2-blockJt
    Vertex: B2-pulley, Edge: B2-pulleyJt
      Vertex: B2-cable, Edge: B2-involuteJt
  Vertex: B3-block, Edge: B3-blockJt
    Vertex: B3-pulley, Edge: B3-pulleyJt
      Vertex: B3-cable, Edge: B3-involuteJt
Non-tree joints:
B1-loopJt, predecessor: strut, successor: B1-cable
B2-loopJt, predecessor: strut, successor: B2-cable
B3-loopJt, predecessor: strut, successor: B3-cable"""


def listing_5_2():
    lines = ["Spanning tree:", "Vertex: world (root)", "  Vertex: end-effector, Edge: floatingJt"]
    lines += [f"    Vertex: B{i}-link, Edge: B{i}-linkJt" for i in (1, 2, 3)]
    for i in (1, 2, 3):
        lines += [f"  Vertex: B{i}-dummy, Edge: B{i}-dummyJt", f"    Vertex: B{i}-strut, Edge: B{i}-strutJt"]
        for where in ("top", "bot"):
            lines += [
                f"      Vertex: B{i}-{where}-block, Edge: B{i}-{where}-blockJt",
                f"        Vertex: B{i}-{where}-pulley, Edge: B{i}-{where}-revoluteJt",
                f"          Vertex: B{i}-{where}-cable, Edge: B{i}-{where}-involuteJt",
            ]
    lines.append("Non-tree joints:")
    before = {1: 3, 2: 1, 3: 2}
    for i in (1, 2, 3):
        for where in ("top", "bot"):
            lines.append(f"B{i}-{where}-loopJt, predecessor: B{before[i]}-strut, successor: B{i}-{where}-cable")
    lines += [f"B{i}-level-loopJt, predecessor: B{before[i]}-strut, successor: B{i}-link" for i in (1, 2, 3)]
    return "\n".join(lines)


def test_topology_of_the_single_strut_is_listing_5_1():
    assert load_robot("single_strut").model.mechanism.topology() == LISTING_5_1


def test_topology_of_the_manipulator_is_listing_5_2():
    assert load_robot("manipulator").model.mechanism.topology() == listing_5_2()


def test_biglide_file_is_the_machine_of_its_document():
    robot = load_robot("biglide")
    kinematics, q = biglide()
    assert np.allclose(robot.model.start, q, atol=1e-12)
    one = equations(robot.model.mechanism, q, still(robot.model.mechanism))
    other = equations(kinematics.mechanism, q, still(kinematics.mechanism))
    assert np.allclose(one.mass, other.mass, atol=1e-12)
    (position, _), _ = BodyPoses(robot.model).update(q).output(robot.outputs[0])
    assert np.allclose(position, [0.0, 0.30005393, 0.0], atol=5e-9)


def test_kinematics_of_a_robot_run_from_its_actuators_to_its_output():
    robot = load_robot("biglide")
    kinematics = loop_kinematics(robot)
    position = kinematics.inverse([0.05, 0.2], robot.model.start)
    by_hand, q = biglide()
    np.testing.assert_allclose(position, by_hand.inverse([0.05, 0.2], q), atol=1e-12)
    assert kinematics.active == ("rail_1", "rail_2")


def test_pulley_angles_count_from_the_start_and_positive_ones_wind():
    robot = load_robot("single_strut")
    mechanism, q = robot.model.mechanism, np.array(robot.model.start)
    for entry in robot.model.entries:
        assert q[mechanism.positions_of(entry.joints[1])][0] == 0.0
    rows = equations(mechanism, q, still(mechanism)).loop
    # with the bodies held still, turning a pulley by 1 takes R of rest length in and stretches the rest
    entry = robot.model.entries[0]
    pulley, involute = mechanism.velocities_of(entry.joints[1]).start, mechanism.velocities_of(entry.joints[2])
    passive = rows[:, involute]
    moved = np.linalg.lstsq(passive, -rows[:, pulley], rcond=None)[0]
    assert np.allclose(passive @ moved + rows[:, pulley], 0.0, atol=1e-12)
    angle, strain = q[mechanism.positions_of(entry.joints[2])]
    assert np.allclose(moved, [-1.0, (1.0 + strain) / angle], atol=1e-12)


@pytest.mark.parametrize("variant", ["u", "epsilon", "length"])
def test_other_cables_leave_the_pose_and_keep_the_loops_closed(variant):
    robot = load_robot("manipulator")
    model = with_cables(robot.model, variant=variant, strain=0.002, young=5e7)
    first = BodyPoses(robot.model).update(robot.model.start)
    second = BodyPoses(model).update(model.start)
    one, other = first.output(robot.outputs[0])[0], second.output(robot.outputs[0])[0]
    assert np.allclose(one[0], other[0], atol=1e-13)
    assert np.allclose(second.strains(), 0.002, atol=1e-12)
    assert np.allclose(second.lengths(), first.lengths(), atol=1e-12)
    assert np.max(np.abs(equations(model.mechanism, model.start, still(model.mechanism)).loop_error)) < 1e-12


# -- what is refused ------------------------------------------------------------------------------------------------


def test_a_file_that_states_every_cable_is_the_same_robot():
    again, shipped = parse(written_out("single_strut")).model, load_robot("single_strut").model
    assert again.mechanism.topology() == shipped.mechanism.topology()
    np.testing.assert_allclose(again.start, shipped.start, atol=1e-12)


def test_unknown_bodies_are_named_with_the_nearest_one():
    data = written_out("single_strut")
    data["joints"][1]["parent"] = "cross-shift"
    data["cables"][0]["anchor"]["body"] = "strt"
    message = refusal(data)
    assert "joints[1] (y-revoluteJt).parent: There is no body 'cross-shift'. Did you mean 'cross-shaft'?" in message
    assert "cables[0] (B1).anchor.body: There is no body 'strt'. Did you mean 'strut'?" in message


def test_loop_that_cannot_close_is_named_with_its_gap():
    data = raw("biglide")
    data["joints"][2]["frame"]["at"] = [0.9, 0, 0]
    data["bodies"]["leg_2"] = {}
    message = refusal(data)
    assert "loops[0] (tip): loop tip cannot close: a gap of" in message and "Check the lengths" in message


def test_negative_mass_is_refused():
    data = raw("biglide")
    data["bodies"]["foot_1"]["shapes"][0]["mass"] = -1
    assert "bodies.foot_1.shapes[0].mass: must be at least 0; found -1." in refusal(data)


def test_negative_density_is_refused():
    data = raw("single_strut")
    data["density"] = -2700
    assert "density: must be at least 0; found -2700." in refusal(data)


def test_dependent_loops_are_named_with_what_to_do():
    data = raw("biglide")
    data["loops"][0]["kind"] = "point"
    message = refusal(data)
    assert "loops[0] (tip): 1 of the motions that loop tip holds are held by the other loops already" in message
    assert "use a kind of loop that leaves them free" in message


def test_two_cables_on_one_pulley_are_refused():
    data = written_out("single_strut")
    data["cables"][1]["at"] = list(data["cables"][0]["at"])
    message = refusal(data)
    assert "cables[1] (B2).at: the pulley of cable B1 is at this point of world already" in message
    assert "give each its own" in message


def test_two_motors_on_one_cable_are_refused_whether_they_name_the_cable_or_its_pulley():
    data = written_out("single_strut")
    driven = data["actuators"][0]["drives"]
    second = {"name": "second", "drives": f"{driven}-pulleyJt", "position": [-1, 1], "rate": 1, "effort": 1}
    data["actuators"].append(second)
    assert f"{driven}-pulleyJt is driven by actuator {driven} already" in refusal(data)


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"variant": "rigid", "young": 2e9}, "young", "a rigid cable does not stretch; leave it out"),
        ({"variant": "rigid", "strain": 0.01}, "strain", "a rigid cable does not stretch; leave it out"),
        ({"variant": "rigid", "damping": 1e7}, "damping", "a rigid cable has no strain to be damped; leave it out"),
        ({"young": 2e9, "strain": 9.0}, "strain", "no cable starts stretched by 900 %; give a strain of at most 0.5"),
        ({"young": 2e9, "strain": -1.0}, "strain", "a strain is above -1; found -1"),
        ({"strain": 0.01}, "young", "a cable that stretches needs it; or say"),
    ],
)
def test_cables_with_blocks_and_routed_ones_are_refused_the_same_impossible_stretch(fields, field, words):
    data = written_out("single_strut")
    for name in ("young", "strain", "damping"):
        data["cables"][0].pop(name, None)
    data["cables"][0] |= fields
    assert f"cables[0] (B1).{field}: {words}" in refusal(data)
    routed = {"rigid": fields.get("variant") == "rigid"} | {k: v for k, v in fields.items() if k != "variant"}
    ends = [{"body": "world", "at": [0, 0, 2]}, {"body": "strut", "at": [0, 0, 1]}]
    data = written_out("single_strut")
    data["routed_cables"] = [{"name": "rope", "cable_radius": 1e-3, "route": ends, **routed}]
    assert f"routed_cables[0] (rope).{field}: {words}" in refusal(data)


def test_cable_that_is_too_short_to_reach_its_anchor_is_refused():
    data = written_out("single_strut")
    data["cables"][2]["length"] = 1.0
    message = refusal(data)
    assert "cables[2] (B3): cable B3: 1.331 m would have to be unwound, but it is only 1 m long." in message


def test_anchor_within_the_pulley_is_refused():
    data = written_out("single_strut")
    data["cables"][0]["at"] = [0.0, 0.03, 1.0]
    assert "its anchor is 0.03 m from the pulley's centre, within the pulley radius 0.07 m" in refusal(data)


def test_body_without_joint_and_body_with_two_are_named():
    data = raw("single_strut")
    data["bodies"]["lonely"] = {}
    data["joints"].append({"name": "again", "kind": "revolute", "parent": "world", "body": "strut"})
    message = refusal(data)
    assert "bodies.lonely: no joint carries it" in message
    assert "joints[2] (again).body: strut is carried by joint y-revoluteJt already" in message


def test_joints_that_hang_on_each_other_are_refused():
    data = raw("biglide")
    data["joints"][0]["parent"] = "leg_1"
    assert "it hangs on itself through its parents" in refusal(data)


def test_motion_without_mass_is_named():
    data = raw("biglide")
    data["loops"] = []
    data["bodies"]["leg_2"] = {}
    message = refusal(data)
    assert "coordinate pin_2 can move without moving any mass" in message and "Give leg_2 a mass" in message


def test_pulley_without_mass_is_named_and_not_the_cable_that_no_file_can_give_one():
    data = raw("single_strut")
    data["repeat"]["cables"][0].pop("pulley")
    message = refusal(data)
    assert "its pulley has none" in message and "pulley: [{kind: cylinder" in message


def test_order_of_the_joints_in_the_file_does_not_matter():
    data = raw("single_strut")
    data["joints"].reverse()
    turned, usual = parse(data).model, load_robot("single_strut").model
    assert turned.mechanism.topology() == usual.mechanism.topology()
    assert np.allclose(turned.start, usual.start)


def test_units_of_an_actuator_follow_what_it_drives():
    data = raw("biglide")
    data["units"] = {"length": "mm", "angle": "deg"}
    data["parameters"] = {"leg": 360.6, "rail": 200}
    data["actuators"][0].update({"position": [-100, 100], "rate": 50, "effort": 200})
    data["actuators"].append({"drives": "pin_1", "position": [-90, 180], "rate": "180 deg/s", "effort": "2 N m"})
    robot = parse(data)
    slide, turn = robot.actuator("foot_1"), robot.actuator("pin_1")
    assert np.allclose((*slide.position, slide.rate), (-0.1, 0.1, 0.05)) and slide.units == ("m", "m/s", "N")
    assert np.allclose((*turn.position, turn.rate), (-np.pi / 2, np.pi, np.pi)) and turn.units == (
        "rad",
        "rad/s",
        "N m",
    )


def test_frames_by_directions_must_be_square():
    data = raw("manipulator")
    data["repeat"][0]["joints"][0]["frame"]["y"] = [1, 1, 1]
    assert "joints[1] (B1-linkJt).frame: z and y must be square to each other" in refusal(data)


def test_sizes_of_a_primitive_are_counted():
    data = raw("single_strut")
    data["bodies"]["strut"]["shapes"][0]["size"] = [0.02]
    assert "a cylinder has 2 dimensions (radius, height); found 1." in refusal(data)


def test_limits_of_an_actuator_must_hold_its_start():
    data = raw("biglide")
    data["actuators"][1]["position"] = [0.1, 0.2]
    assert "actuators[1] (foot_2).position: the start of rail_2, 0 m, is outside its limits 0.1 to 0.2 m" in refusal(
        data
    )


def test_an_actuator_of_nothing_is_named_whatever_the_units_of_its_limits():
    text = """
kind: mechanism
name: slide
bodies: {cart: {shapes: [{kind: point, size: [], mass: 1}]}}
joints: [{name: rail, kind: prismatic, parent: world, body: cart, axis: [1, 0, 0]}]
actuators: [{drives: rial, position: ["-10 mm", "10 mm"], rate: "1 m/s", effort: "6 kN"}]
"""
    with pytest.raises(RobotFileError) as caught:
        parse_robot(text, "slide.yaml")
    assert "actuators[0] (rial)" in str(caught.value) and "rail" in str(caught.value)
    assert "unit" not in str(caught.value)
