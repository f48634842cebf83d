"""Robot files: what they may say, and that everything else is refused with file, line and field."""

from __future__ import annotations

import copy
import io
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tensegrity_dynamics.errors import RobotFileError, TensegrityError
from tensegrity_dynamics.robots.load_robot import load_robot, parse_robot, shipped_robots
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.robots.robot_types import register_robot_type, robot_type

TRIPOD = """\
kind: structure
name: tripod
source: none, made for tests
units: {length: in, force: lbf, mass: lb, angle: deg}
nodes:
  left: {position: [0, 0, 0], fixed: true}
  right: {position: [10, 0, 0], fixed: true}
  back: {position: [5, 8, 0], fixed: true}
  load: {position: [5, 3, "200 mm"], mass: 2}
defaults:
  tendon: {stiffness: "2 kN/m", damping: 0.1}
members:
  - {name: pull_left, kind: tendon, nodes: [left, load], rest_length: 6}
  - {name: pull_right, kind: tendon, nodes: [right, load], rest_length: "15 cm"}
  - {name: mast, kind: bar, nodes: [back, load], rest_length: 9, stiffness: 1000, mass: 0.5}
actuators:
  - {drives: pull_left, position: [4, 8], rate: "10 cm/s", effort: "20 N", minimum_tension: 0.1}
  - {name: winch, drives: pull_right, position: [4, 8], rate: 2, effort: 5}
outputs:
  - {name: tip, nodes: {load: [0, 0, 0]}, controlled: [x, y]}
tour:
  - {name: aside, move: [1, 0, 0], duration: "2 s"}
servos:
  protocol: 1
  defaults: {model: AX-12A, spool_radius: "5 mm"}
  servos:
    - {actuator: pull_left, id: 1, potentiometer: 0}
    - {actuator: winch, id: 2, direction: -1, spool_radius: 0.25}
provenance:
  - {fields: nodes, status: assumed, note: made up}
"""


def problem(text: str) -> str:
    with pytest.raises(RobotFileError) as caught:
        parse_robot(text, "tripod.yaml")
    return str(caught.value)


def changed(old: str, new: str) -> str:
    assert old in TRIPOD
    return TRIPOD.replace(old, new, 1)


# -- what a good file gives -----------------------------------------------------------------------------------------


def test_plain_numbers_are_in_the_units_of_the_file_and_texts_in_their_own() -> None:
    robot = parse_robot(TRIPOD)
    structure = robot.structure
    assert structure.nodes[1] == pytest.approx([0.254, 0.0, 0.0])
    assert structure.nodes[3] == pytest.approx([0.127, 0.0762, 0.2])
    assert structure.rest_lengths == pytest.approx([6 * 0.0254, 0.15, 9 * 0.0254])
    pound_force = 0.45359237 * 9.80665
    assert structure.stiffness == pytest.approx([2000.0, 2000.0, 1000 * pound_force / 0.0254])
    assert structure.damping == pytest.approx([0.1 * pound_force / 0.0254] * 2 + [0.0])
    assert structure.masses == pytest.approx([0.0, 0.0, 0.5 * 0.45359237])
    assert structure.node_masses[3] == pytest.approx(2 * 0.45359237)
    assert structure.gravity == pytest.approx([0.0, 0.0, -9.80665])
    assert structure.fixed.tolist() == [True, True, True, False]


def test_actuators_take_the_name_of_what_they_drive_unless_they_have_one() -> None:
    robot = parse_robot(TRIPOD)
    assert [actuator.name for actuator in robot.actuators] == ["pull_left", "winch"]
    assert robot.actuated_members().tolist() == [0, 1]
    left, winch = robot.actuators
    assert (left.rate, left.effort) == pytest.approx((0.1, 20.0))
    assert winch.rate == pytest.approx(2 * 0.0254)
    assert winch.position == pytest.approx((4 * 0.0254, 8 * 0.0254))


def test_servos_take_what_they_do_not_say_from_the_defaults() -> None:
    first, second = parse_robot(TRIPOD).servos["servos"]
    assert (first["model"], first["spool_radius"], first["direction"]) == ("AX-12A", pytest.approx(0.005), 1)
    assert (second["model"], second["spool_radius"], second["direction"]) == (
        "AX-12A",
        pytest.approx(0.25 * 0.0254),
        -1,
    )


def test_a_servo_model_without_control_table_is_refused_with_its_line() -> None:
    said = problem(changed("model: AX-12A", "model: AX-12B"))
    assert "model: There is no servo model 'AX-12B'. Did you mean 'AX-12A'?" in said


HARDWARE = """\
  safety: {period: "10 ms", jump: 0.1, snap_drop: "8 N", voltages: [9.5, 12.6], stale: 40, others: release,
           reactions: {slack: hold, runaway: release}, latched: [snapped, runaway]}
  homing: {threshold: "12 N", speed: "3 mm/s", look: 20}
  board: {baud_rate: 57600, channels: 8}
"""


def with_hardware(block: str) -> str:
    return changed("  protocol: 1\n", "  protocol: 1\n" + block)


def test_safety_and_homing_carry_what_the_file_says_in_si_and_nothing_else() -> None:
    servos = parse_robot(with_hardware(HARDWARE)).servos
    assert servos["safety"] == {
        "period": 0.01, "jump": 0.1 * 0.0254, "snap_drop": 8.0, "voltages": [9.5, 12.6], "stale": 40,
        "others": "release", "reactions": {"slack": "hold", "runaway": "release"}, "latched": ["snapped", "runaway"],
    }  # fmt: skip
    assert servos["homing"] == {"threshold": 12.0, "speed": pytest.approx(0.003), "look": 20}
    assert servos["board"] == {"baud_rate": 57600, "channels": 8}
    plain = parse_robot(TRIPOD).servos
    assert plain["safety"] == plain["homing"] == {}
    assert plain["board"] == {"baud_rate": 115_200, "channels": None}


def test_a_potentiometer_beyond_the_channels_of_the_board_is_refused() -> None:
    said = problem(with_hardware(HARDWARE).replace("potentiometer: 0", "potentiometer: 8", 1))
    assert "servos.servos[0] (pull_left).potentiometer: the board has 8 channels" in said


@pytest.mark.parametrize(
    ("old", "new", "field", "words"),
    [
        ('period: "10 ms"', 'perod: "10 ms"', "servos.safety.perod", ["Did you mean 'period'?"]),
        ('period: "10 ms"', 'period: "10 mm"', "servos.safety.period", ["unit of length", "a time is needed"]),
        ("jump: 0.1", "jump: 0", "servos.safety.jump", ["above 0"]),
        ("stale: 40", "stale: 0.5", "servos.safety.stale", ["whole number"]),
        ("[9.5, 12.6]", "[12.6, 9.5]", "servos.safety.voltages", ["lower one first"]),
        ("others: release", "others: warn", "servos.safety.others", ["'hold', 'release', 'torque off'"]),
        ("runaway: release", "runawy: release", "servos.safety.reactions.runawy", ["Did you mean 'runaway'?"]),
        ("runaway: release", "runaway: warn", "servos.safety.reactions.runaway", ["hold, release or torque off"]),
        ("[snapped, runaway]", "[snaped]", "servos.safety.latched[0]", ["Did you mean 'snapped'?"]),
        ("look: 20", 'ceiling: "10 N"', "servos.homing.ceiling", ["threshold of 12 N", "raise it"]),
        ("57600", "fast", "servos.board.baud_rate", ["whole number"]),
    ],
)
def test_wrong_hardware_settings_are_named_with_line_and_remedy(
    old: str, new: str, field: str, words: list[str]
) -> None:
    assert old in HARDWARE
    text = with_hardware(HARDWARE.replace(old, new, 1))
    line = next(i for i, each in enumerate(text.splitlines(), 1) if new in each)
    said = problem(text)
    assert said.startswith(f"tripod.yaml:{line}: {field}")
    for word in words:
        assert word in said


def test_a_file_without_units_is_in_si() -> None:
    text = re.sub(r"^units:.*\n", "", TRIPOD, flags=re.MULTILINE).replace('"15 cm"', "6")
    assert parse_robot(text).structure.nodes[1].tolist() == [10.0, 0.0, 0.0]


def test_angles_count_in_degrees_where_the_file_says_so() -> None:
    plate = "{name: tip, nodes: {left: [0, 0, 0], right: [10, 0, 0], load: [5, 3, 0]}, controlled: [x, rz]}"
    text = changed("{name: tip, nodes: {load: [0, 0, 0]}, controlled: [x, y]}", plate)
    text = text.replace("move: [1, 0, 0]", "turn: [0, 0, 90]").replace('"2 s"', "2")
    assert parse_robot(text).tour[0].turn == pytest.approx((0.0, 0.0, np.pi / 2))
    with pytest.raises(RobotFileError, match=r"tour\[0\].*turn: 181 deg is more than half a turn.*units"):
        parse_robot(text.replace("[0, 0, 90]", "[0, 0, 181]"))


# -- what a wrong file gives ----------------------------------------------------------------------------------------

WRONG = [
    ("rest_length: 6", 'rest_length: "3 kg"', 13, "members[0] (pull_left).rest_length", ["unit of mass", "'3 kg'"]),
    ("rest_length: 6", "rest_length: -6", 13, "members[0] (pull_left).rest_length", ["above 0", "-6"]),
    ("rest_length: 6", "rest_length: .nan", 13, "members[0] (pull_left).rest_length", ["length", "finite", "nan"]),
    ("rest_length: 6", "rest_length: .inf", 13, "members[0] (pull_left).rest_length", ["length", "finite", "inf"]),
    ("rest_length: 6", "rest_length: 1e999", 13, "members[0] (pull_left).rest_length", ["finite"]),
    ("rest_length: 6", "rest_length: true", 13, "members[0] (pull_left).rest_length", ["a length is needed", "True"]),
    ("rest_length: 6", "rest_lenght: 6", 13, "members[0] (pull_left).rest_lenght", ["Did you mean 'rest_length'?"]),
    ("rest_length: 9, ", "", 15, "members[2] (mast)", ["no rest_length is given", "m apart", "`form`"]),
    ("stiffness: 1000, ", "", 15, "members[2] (mast)", ["no stiffness is given", "defaults.bar"]),
    ("kind: bar", "kind: rod", 15, "members[2] (mast).kind", ["'rod'", "'bar', 'tendon', 'spring'"]),
    ("[back, load]", "[bak, load]", 15, "members[2] (mast).nodes[0]", ["no node 'bak'", "Did you mean 'back'?"]),
    ("[back, load]", "[load, load]", 15, "members[2] (mast).nodes", ["both ends are load"]),
    ("[back, load]", "[back]", 15, "members[2] (mast).nodes", ["at least 2", "found 1"]),
    ("[5, 8, 0]", '[5, 3, "200 mm"]', 15, "members[2] (mast).nodes", ["same position"]),
    ("name: mast", "name: pull_left", 15, "members[2] (pull_left).name", ["members[0]"]),
    ("name: mast", "name: 3 masts", 15, "members[2] (3 masts).name", ["no name"]),
    ("fixed: true", "fixed: 1", 6, "nodes.left.fixed", ["true, false or axes", "found 1"]),
    ("back:", "left:", 8, "", ["the key 'left' appears twice"]),
    ("length: in", "length: kg", 4, "units.length", ["unit of mass"]),
    ("length: in", "lenght: in", 4, "units.lenght", ["Did you mean 'length'?"]),
    ("kind: structure", "kind: structur", 1, "kind", ["Did you mean 'structure'?"]),
    ("effort: 5", "effort: 5, efficiency: 0.8", 18, "actuators[1] (winch).efficiency", ["neither inertia nor"]),
    ("effort: 5", "effort: 5, motor_friction: 1", 18, "actuators[1] (winch).motor_friction", ["neither inertia nor"]),
    ("drives: pull_left", "drives: mast", 17, "actuators[0] (mast).position", ["the start of mast", "outside"]),
    ("drives: pull_left", "drives: back", 17, "actuators[0] (back).drives", ["pull_left, pull_right"]),
    ("drives: pull_left", "drives: pull_right", 18, "actuators[1] (winch)", ["driven by actuator pull_right already"]),
    ("position: [4, 8], rate: \"10", "position: [8, 4], rate: \"10", 17, "actuators[0] (pull_left)", ["empty range"]),
    ("left, position: [4, 8]", "left, position: [7, 8]", 17, "actuators[0] (pull_left).position", ["outside"]),
    ("minimum_tension: 0.1", "minimum_tension: 9", 17, "actuators[0] (pull_left)", ["minimum tension"]),
    ('"10 cm/s"', '"10 deg/s"', 17, "actuators[0] (pull_left).rate", ["unit of angular speed", "a speed is needed"]),
    ("load: [0, 0, 0]}", "lod: [0, 0, 0]}", 20, "outputs[0] (tip).nodes.lod", ["Did you mean 'load'?"]),
    ("controlled: [x, y]", "controlled: [x, rz]", 20, "outputs[0] (tip)", ["no orientation"]),
    ("controlled: [x, y]", "controlled: [q]", 20, "outputs[0] (tip).controlled[0]", ["'q'", "'rz'"]),
    ("move: [1, 0, 0]", "move: [1, 0, 1]", 22, "tour[0] (aside).move[2]", ["z is not controlled"]),
    ('"2 s"', "0", 22, "tour[0] (aside).duration", ["above 0"]),
    ("actuator: winch", "actuator: wnch", 28, "servos.servos[1] (wnch).actuator", ["Did you mean 'winch'?"]),
    ("id: 2", "id: 1", 28, "servos.servos[1] (winch).id", ["used twice"]),
    ("id: 2", "id: 300", 28, "servos.servos[1] (winch).id", ["at most 253", "300"]),
    ("id: 2", "id: true", 28, "servos.servos[1] (winch).id", ["whole number"]),
    (', spool_radius: "5 mm"', "", 27, "servos.servos[0] (pull_left)", ["no spool_radius", "servos.defaults"]),
    ("status: assumed", "status: guessed", 30, "provenance[0].status", ["'printed', 'deduced', 'assumed'"]),
    ("name: tripod", "name: [tripod]", 2, "name", ["text"]),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line", "field", "words"), WRONG, ids=[f"{w[1][:30]} at {w[3]}" for w in WRONG])
def test_an_error_names_file_line_field_and_what_is_allowed(
    old: str, new: str, line: int, field: str, words: list[str]
) -> None:
    message = problem(changed(old, new))
    assert message.startswith(f"tripod.yaml:{line}: {field}"), message
    assert len(message.splitlines()) == 1, message
    for word in words:
        assert word in message


def test_all_errors_of_a_file_come_together_in_its_order() -> None:
    text = (
        changed("rest_length: 6", "rest_length: x")
        .replace("kind: bar", "kind: rod")
        .replace("fixed: true", "fixd: true")
    )
    lines = problem(text).splitlines()
    positions = [int(line.split(":")[1]) for line in lines]
    assert positions == [6, 7, 8, 13, 15]


def test_wrong_names_come_together_too() -> None:
    text = changed("[back, load]", "[bak, load]").replace("[left, load]", "[left, lod]")
    assert [line.split(":")[1] for line in problem(text).splitlines()] == ["13", "15"]


def test_many_errors_are_counted_not_all_listed() -> None:
    members = "\n".join(f"  - {{name: m{i}, kind: x}}" for i in range(500))
    lines = problem(f"kind: structure\nname: a\nnodes: {{}}\nmembers:\n{members}\n").splitlines()
    assert len(lines) < 30
    assert "more" in lines[-1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "found nothing"),
        ("- 1", "found list"),
        ("3", "found int"),
        ("name: a", "kind: missing"),
        ("name: a\nbodies: {}\njoints: []", "add 'kind: mechanism'"),
        ("kind: [a]", "no kind of robot"),
        ("a: [", "not readable as YAML"),
        (
            "a: 1\n\tb: 2",
            "yaml:2: not readable as YAML: found character '\\t' that cannot start any token. Tabs are not",
        ),
        ("a: {b: 1\nc: 2", "A bracket is not closed, or a comma or colon is missing in it. It opens in line 1."),
        ('a: "b\nc: 2', "A quote is not closed. It opens in line 1."),
        ('a {b: "1"}', "Check colons, brackets, quotes and the indentation"),
        ("a: \0", "not readable as YAML"),
        ("a: 1\n---\nb: 2", "not readable as YAML"),
        ("a: !!python/object/apply:os.system [ls]", "tags"),
        ("a: !mine 3", "tags"),
        ("a: &x 1\nb: *x", "anchors and aliases"),
        ("a: " + "[" * 60 + "]" * 60, "nested deeper"),
        ("a: " + "[" * 50_000, "nested deeper"),
        ("? [a]\n: 1", "a key must be a plain word"),
        ("kind: structure\nkind: structure", "appears twice"),
        ("x" * 4_000_001, "larger than"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_what_is_no_robot_file_is_refused(text: str, words: str) -> None:
    message = problem(text)
    assert message.startswith("tripod.yaml:")
    assert words in message


def test_powers_and_code_in_units_are_no_units() -> None:
    for unit in ("m^9^9^9", "m**(9**9**9)", "__import__('os')", "m" * 70, "m; 1", "furlongs per"):
        message = problem(changed("rest_length: 6", f"rest_length: {json.dumps('1 ' + unit)}"))
        assert "is not a unit" in message or "a length is needed" in message


def test_a_mechanism_has_bodies_and_no_nodes() -> None:
    message = problem("kind: mechanism\nname: a\nnodes: {}\n")
    assert "nodes: unknown field." in message and "bodies: missing; add it." in message


def test_an_axis_that_an_output_of_a_mechanism_names_twice_is_told_with_its_line() -> None:
    text = "kind: mechanism\nname: a\nbodies: {b: {mass: 1}}\njoints:\n"
    text += "  - {name: j, kind: prismatic, parent: world, body: b, axis: [0, 0, 1]}\n"
    message = problem(text + "outputs:\n  - {name: tip, body: b, controlled: [z, z]}\n")
    assert "7: outputs[0] (tip)" in message and "must be named once each" in message


def test_a_kind_is_registered_once() -> None:
    with pytest.raises(TensegrityError, match="'structure' are registered already"):
        register_robot_type(robot_type("structure"))


def test_the_ground_of_a_mechanism_needs_something_that_touches_it() -> None:
    joints = "joints: [{name: b, kind: floating, parent: world, body: c}]"
    text = f"kind: mechanism\nname: a\nbodies: {{c: {{mass: 1}}}}\n{joints}\ncontact: {{stiffness: 1e4}}\n"
    assert "5: contact: nothing touches this ground; give contact_parts" in problem(text)


def test_a_structure_has_the_ground_of_its_file(tmp_path: Path) -> None:
    block = "contact: {stiffness: 20 kN/m, law: softplus, slope: 10 deg, height: -2 m, friction: 0.3}\n"
    ground = parse_robot(TRIPOD + block, "tripod.yaml").structure.ground
    assert (ground.stiffness, ground.law, ground.height, ground.friction) == (2e4, "softplus", -2.0, 0.3)
    assert ground.slope == pytest.approx(np.radians(10.0))
    np.savetxt(tmp_path / "hills.csv", np.full((3, 4), -2.0), delimiter=",")
    path = tmp_path / "tripod.yaml"
    path.write_text(TRIPOD + "contact: {stiffness: 1e4, heights: {file: hills.csv, spacing: 5 m}}\n")
    hills = load_robot(path).structure.ground.hills
    assert hills.heights.shape == (3, 4) and hills.origin.tolist() == [-7.5, -5.0]


def _archive() -> bytes:
    kept = io.BytesIO()
    np.savez(kept, heights=np.zeros((3, 3)))
    return kept.getvalue()


def _array(values: object) -> bytes:
    kept = io.BytesIO()
    np.save(kept, values)
    return kept.getvalue()


HEIGHT_FILES = {
    "empty.npy": b"", "noise.npy": b"\x93NUMPY\x01\x00\x10", "archive.npy": _archive(),
    "objects.npy": _array(np.array([[{}, 1], [2, 3]], dtype=object)), "complex.npy": _array(np.full((3, 3), 1j)),
    "texts.npy": _array(np.full((3, 3), "1")), "times.npy": _array(np.zeros((3, 3), "M8[s]")),
    "cube.npy": _array(np.zeros((3, 3, 3))), "infinite.npy": _array(np.full((3, 3), np.inf)),
    "one.npy": _array(np.float64(1.0)), "none.npy": _array(np.zeros((0, 3))), "yes.npy": _array(np.full((3, 3), True)),
    "empty.csv": b"", "words.csv": b"a,b\nc,d\n", "nan.csv": b"0,nan\n0,0\n", "ragged.csv": b"0,0\n0\n",
    "bytes.csv": b"\xff\xfe\x00", "row.csv": b"0 0 0\n", "huge.csv": b"0 1e400\n0 0\n",
}  # fmt: skip


@pytest.mark.parametrize("name", HEIGHT_FILES)
@pytest.mark.filterwarnings("ignore:loadtxt")
def test_a_file_of_heights_that_holds_none_is_refused_with_its_line(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(HEIGHT_FILES[name])
    robot = tmp_path / "tripod.yaml"
    robot.write_text(TRIPOD + f"contact: {{stiffness: 1e4, heights: {{file: {name}, spacing: 1}}}}\n")
    with pytest.raises(RobotFileError, match="height") as refused:
        load_robot(robot)
    assert f"{robot}:" in str(refused.value) and len(str(refused.value)) < 800


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("{}", "contact.stiffness: missing"),
        ("{stiffness: 0}", "stiffness: must be above 0"),
        ("{stiffness: 1e4, friction: -0.1}", "friction: must be at least 0"),
        ("{stiffness: 1e4, smoothness: 0}", "smoothness: must be above 0"),
        ("{stiffness: 1e4, slope: 90 deg, height: -9}", "contact.slope: a slope of 90 deg is a wall"),
        ("{stiffness: 1e4, law: hard}", "allowed: 'linear', 'exponential', 'softplus'"),
        ("{stiffness: 1e4, height: 9}", "under the ground; lift it"),
        ("{stiffness: 1e4, heights: {values: [[0, 0]], spacing: 1}}", "heights: a height field has two rows"),
        ("{stiffness: 1e4, heights: {values: [[0, 0], [0]], spacing: 1}}", "differ in length"),
        ("{stiffness: 1e4, heights: {values: [[0, .nan], [0, 0]], spacing: 1}}", "heights"),
        ("{stiffness: 1e4, heights: {values: [[-9, -9], [-9, -9]], spacing: 1 mm}}", "beyond the heights"),
        ("{stiffness: 1e4, heights: {spacing: 1}}", "give either values or file"),
        ("{stiffness: 1e4, heights: {file: none.csv, spacing: 1}}", "there is no file"),
    ],
)
def test_a_wrong_ground_is_named_with_its_line(block: str, message: str) -> None:
    found = problem(TRIPOD + f"contact: {block}\n")
    assert found.startswith("tripod.yaml:") and message in found, found


# -- files ----------------------------------------------------------------------------------------------------------


def test_a_robot_loads_from_a_path(tmp_path: Path) -> None:
    path = tmp_path / "tripod.yaml"
    path.write_text("\ufeff" + TRIPOD, encoding="utf-8")
    robot = load_robot(path)
    assert robot.name == "tripod"
    assert robot.path == path


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("tensbot", "Did you mean 'tensebot'?"),
        ("folder/tensbot.yaml", "Did you mean 'tensebot'?"),
        ("", "There is no robot ''"),
        ("/", "folder"),
        ("a\0b.yaml", "a"),
        ("~nobody-of-that-name/x.yaml", "path"),
        ("x" * 5000 + ".yaml", "path"),
    ],
)
def test_a_missing_robot_is_named_with_the_nearest_one(name: str, words: str) -> None:
    with pytest.raises(RobotFileError) as caught:
        load_robot(name)
    assert words in str(caught.value)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "noise.yaml"
    path.write_bytes(b"name: \xff\xfe\x00")
    with pytest.raises(RobotFileError, match="not a text file"):
        load_robot(path)


# -- whatever comes -------------------------------------------------------------------------------------------------


def survives(text: str) -> None:
    """The loader gives a robot or a RobotFileError, nothing else."""
    try:
        robot = parse_robot(text, "any.yaml")
    except RobotFileError as error:
        message = str(error)
    else:
        assert isinstance(robot, Robot)
        for array in (robot.structure.nodes, robot.structure.stiffness, robot.structure.rest_lengths):
            assert np.isfinite(array).all()
        return
    assert message.startswith("any.yaml")


FIELDS = sorted(set(re.findall(r"\w+(?=:)", TRIPOD)) | {"mechanism", "bodies", "joints", "gravity", "contact"})
WORDS = st.one_of(
    st.sampled_from([*FIELDS, "structure", "tendon", "3 kg", "1 m", "x", "load", "~", "<<"]), st.text(max_size=8)
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), WORDS),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(WORDS, inner, max_size=4)),
    max_leaves=12,
)
MANY = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@MANY
@given(st.text(max_size=200))
def test_any_text_gives_a_robot_or_a_robot_file_error(text: str) -> None:
    survives(text)
    survives("kind: structure\n" + text)


@MANY
@given(st.binary(max_size=200))
def test_any_bytes_give_a_robot_or_a_robot_file_error(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(content)
    with pytest.raises(RobotFileError):
        load_robot(path)


@MANY
@given(st.dictionaries(WORDS, VALUES, max_size=6), st.sampled_from(["structure", "mechanism", None]))
def test_any_mapping_gives_a_robot_or_a_robot_file_error(data: dict, kind: str | None) -> None:
    survives(json.dumps({**data, "kind": kind} if kind else data))


def as_data(text: str) -> dict:
    from ruamel.yaml import YAML

    return YAML(typ="safe", pure=True).load(text)


def positions(data: object, path: tuple = ()) -> list[tuple]:
    """Every place of a tree."""
    children = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path] + [position for key, child in children for position in positions(child, (*path, key))]


GOOD = as_data(TRIPOD)
PATHS = positions(GOOD)[1:]


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.tuples(st.sampled_from(PATHS), st.sampled_from(["set", "remove", "swap"]), VALUES), min_size=1, max_size=3
    )
)
def test_a_good_file_with_any_fields_changed_gives_a_robot_or_a_robot_file_error(changes: list) -> None:
    data = copy.deepcopy(GOOD)
    for path, action, value in changes:
        parent = data
        try:
            for step in path[:-1]:
                parent = parent[step]
            if action == "remove":
                del parent[path[-1]]
            else:
                parent[path[-1]] = value if action == "set" else copy.deepcopy(GOOD[path[0]])
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took this place away
    survives(json.dumps(data))


@MANY
@given(st.integers(0, len(TRIPOD)), st.integers(0, 12), st.text(max_size=6))
def test_a_good_file_with_any_characters_changed_gives_a_robot_or_a_robot_file_error(
    at: int, cut: int, new: str
) -> None:
    survives(TRIPOD[:at] + new + TRIPOD[at + cut :])


def test_the_tree_that_the_changes_start_from_is_a_robot() -> None:
    assert parse_robot(json.dumps(GOOD)).name == "tripod"
    assert "tripod" not in shipped_robots()


@pytest.mark.parametrize("word", [".nan", ".NaN", ".inf", "-.INF", "+.inf"])
def test_what_yaml_reads_as_no_finite_number_is_neither_a_name_nor_a_quantity(word: str) -> None:
    named = GOOD_TOUR.replace("NAME", word)
    with pytest.raises(RobotFileError, match=r"tour\[0\].name: a text is needed; found [-+]?(nan|inf)"):
        parse_robot(named, "tour.yaml")
    assert parse_robot(GOOD_TOUR.replace("NAME", f"'{word}'"), "tour.yaml").tour[0].name == word
    with pytest.raises(RobotFileError, match="must be finite"):
        parse_robot(GOOD_TOUR.replace("NAME", "up").replace("0.25", word), "tour.yaml")


GOOD_TOUR = """
kind: structure
name: swing
nodes:
  hook: {position: [0, 0, 1], fixed: true}
  seat: {position: [0, 0, 0.5], mass: 0.25}
members:
  - {name: rope, kind: tendon, nodes: [hook, seat], rest_length: 0.49, stiffness: 500}
actuators:
  - {drives: rope, position: [0.2, 0.9], rate: 0.1, effort: 30}
outputs: [{name: seat, nodes: {seat: [0, 0, 0]}, controlled: [z]}]
tour: [{name: NAME, move: [0, 0, 0.01]}]
"""


@pytest.mark.parametrize("kind", ["/dev/null", "/dev/zero", "pipe"])
def test_a_device_or_a_pipe_is_called_so_and_is_not_waited_for(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "pipe.yaml" if kind == "pipe" else Path(kind)
    if kind == "pipe":
        os.mkfifo(path)
    with pytest.raises(RobotFileError, match="this is a pipe or a device, not a file"):
        load_robot(path)
