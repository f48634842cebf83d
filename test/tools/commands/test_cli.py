"""The `tensegrity` command: what it prints, what it refuses, and that it starts quickly."""

from __future__ import annotations

import contextlib
import csv
import json
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from elbow import ELBOW

from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_tools.cli import COMMANDS, app
from tensegrity_tools.commands import push, running_robot
from tensegrity_tools.commands.running_robot import moment, wait_for

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """Run the command in this process: (exit status, standard output, standard error)."""
    monkeypatch.setenv("COLUMNS", "140")

    def call(*words: str) -> tuple[int, str, str]:
        status = 0
        try:
            app(list(words))
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def refused(result: tuple[int, str, str]) -> str:
    """The one message of a refused command: status not zero, nothing on standard output, no traceback."""
    status, out, err = result
    assert status != 0
    assert out == ""
    assert "Traceback" not in err
    return " ".join(err.replace("│", " ").split())


# -- what commands print --------------------------------------------------------------------------------------------


def test_help_lists_the_commands_in_the_order_in_which_they_are_met(run) -> None:
    status, out, _ = run("--help")
    assert status == 0
    listed = re.findall(r"^│ ([a-z][a-z-]*) {2,}\S", out, re.MULTILINE)
    assert listed == list(COMMANDS)
    met = ["new", "check", "simulate", "up", "goal", "stop", "servo"]  # files, runs, robots that run, their servos
    assert [each for each in listed if each in met] == met


@pytest.mark.parametrize("command", list(COMMANDS))
def test_every_command_explains_itself(run, command: str) -> None:
    status, out, _ = run(command, "--help")
    assert status == 0
    assert "Usage" in out


def test_check_says_what_a_robot_is_and_what_is_not_printed_in_its_source(run) -> None:
    status, out, _ = run("check", "tensebot")
    assert status == 0
    for words in ("12 bars, 12 tendons, 6 springs", "prestressed", "rigid bars", "deduced", "assumed", "12 AX-12A"):
        assert words in out
    assert "not prestressed" not in out


@pytest.mark.long
def test_check_names_what_is_wrong_with_a_robot_that_cannot_stand(run) -> None:
    status, out, _ = run("check", "four_prism")
    assert status == 0
    assert "not prestressed" in out
    assert "slack" in out
    assert "e-1" not in out.replace("e-13 N after", "")  # no rounding errors for people


def test_check_says_which_free_node_without_mass_keeps_a_robot_from_simulation(run, tmp_path: Path) -> None:
    path = tmp_path / "load.yaml"
    assert run("new", str(path))[0] == 0
    assert "cannot be simulated" not in run("check", str(path))[1]
    path.write_text(re.sub(r", mass: .*?}", "}", path.read_text(encoding="utf-8")), encoding="utf-8")
    said = " ".join(run("check", str(path))[1].split())
    assert "note: it cannot be simulated: node " in said
    assert re.search(r"node \S+ has no mass", said)[0] in refused(run("simulate", str(path)))


def test_check_tells_weight_from_prestress(run, tmp_path: Path) -> None:
    path = tmp_path / "load.yaml"
    path.write_text(
        "kind: structure\nname: load\nnodes:\n  a: {position: [0, 0, 1], fixed: true}\n"
        "  b: {position: [1, 0, 1], fixed: true}\n  c: {position: [0, 1, 1], fixed: true}\n"
        "  d: {position: [0.3, 0.3, 0.2], mass: 1}\n"
        "defaults:\n  tendon: {stiffness: 1000, rest_length: 0.9}\nmembers:\n"
        + "".join(f"  - {{name: {end}d, kind: tendon, nodes: [{end}, d]}}\n" for end in "abc")
        + "actuators:\n  - {drives: ad, position: [0.5, 1], rate: 0.1, effort: 50}\n"
        "outputs:\n  - {name: d, nodes: {d: [0, 0, 0]}, controlled: [z]}\n",
        encoding="utf-8",
    )
    status, out, _ = run("check", str(path))
    assert status == 0
    assert "stands by its loads alone" in out
    assert "with rigid bars" not in out


def test_the_tension_of_a_routed_cable_is_given_at_its_drum_and_compared_with_the_floor_of_its_actuator(run, tmp_path):
    path = tmp_path / "elbow.yaml"
    path.write_text(ELBOW.replace('minimum_tension: "5 N"', 'minimum_tension: "41 N"'))
    front = json.loads(run("fk", str(path), "--json")[1])["tensions_N"]["front"]
    assert front < 41.0
    warned = " ".join(run("check", str(path))[1].split())
    assert f"cable front, wound by d2, carries {front:.3g} N, below its floor of 41 N" in warned
    shape = run("fk", str(path))[1].splitlines()
    assert f"{front:.4g} N" in next(line for line in shape if line.startswith("d2"))


@pytest.mark.parametrize(("seconds", "text"), [(5.224, "5.22 s"), (1.8e9 + 0.25, r"\d\d:00:00.25")])
def test_times_of_simulations_are_in_seconds_and_those_of_hardware_are_times_of_day(seconds, text):
    assert re.fullmatch(text, moment(seconds))


def test_check_says_which_controller_is_too_fast_for_real_time_in_the_words_of_up(run, tmp_path) -> None:
    path = tmp_path / "elbow.yaml"
    path.write_text(ELBOW)
    status, out, _ = run("check", str(path), "--controllers")
    said = " ".join(out.split())
    assert status == 0
    assert re.search(r"task takes it (?!, but)", said)
    why = re.search(r"qp takes it, but not in real time: (controller qp, .* overrides this\.)", said)
    assert why and "--lockstep" in why[1]
    assert why[1] in refused(run("up", "sim", str(path), "--controller", "qp", "--no-view"))


def test_check_as_json_is_one_document(run) -> None:
    status, out, err = run("check", "three_prism", "--json")
    figures = json.loads(out)
    assert status == 0
    assert err == ""
    assert set(figures) == {"robot", "shape", "shape_with_rigid_bars", "prestress", "warnings"}
    assert figures["robot"]["members"] == {"bar": 3, "tendon": 9, "spring": 0}
    assert figures["shape"]["stable"] is True
    assert figures["prestress"]["prestressed"] is True
    assert figures["warnings"] == []


def test_fk_takes_lengths_with_units(run) -> None:
    _, inches, _ = run("fk", "tensebot", "--length", "draw_1=8.3in", "--json")
    _, metres, _ = run("fk", "tensebot", "-l", "draw_1=0.21082", "--json")
    first, second = json.loads(inches), json.loads(metres)
    assert first["rest_lengths_m"]["draw_1"] == pytest.approx(0.21082)
    assert first["nodes_m"]["top_1"] == pytest.approx(second["nodes_m"]["top_1"], abs=1e-9)


def test_fk_says_which_actuators_are_beyond_their_limits(run) -> None:
    assert "draw_1 at 83 m is outside of its limits, " in run("fk", "tensebot", "-l", "draw_1=83")[1]
    assert "outside of its limits" not in run("fk", "tensebot", "-l", "draw_1=8.3in")[1]


def test_fk_takes_forces_which_add_up(run) -> None:
    down = json.loads(run("fk", "tensebot", "-f", "top_1=0,0,-5lbf", "-f", "top_1=0,0,-5lbf", "--json")[1])
    once = json.loads(run("fk", "tensebot", "-f", "top_1=0,0,-44.482216152605", "--json")[1])
    free = json.loads(run("fk", "tensebot", "--json")[1])
    assert down["nodes_m"]["top_1"] == pytest.approx(once["nodes_m"]["top_1"], abs=1e-9)
    assert down["nodes_m"]["top_1"][2] < free["nodes_m"]["top_1"][2] - 1e-3


def test_fk_says_that_simulation_takes_bars_as_rigid(run) -> None:
    assert "--rigid-bars" in run("fk", "three_prism")[1]
    assert "--rigid-bars" not in run("fk", "three_prism", "--rigid-bars")[1]


def test_lengths_that_ik_finds_give_the_pose_in_fk(run) -> None:
    _, out, _ = run("ik", "tensebot", "--move", "5, 0, 10 mm", "--turn", "3,0,0", "--json")
    plan = json.loads(out)
    lengths = [word for name, value in plan["rest_lengths_m"].items() for word in ("--length", f"{name}={value!r}")]
    _, out, _ = run("fk", "tensebot", *lengths, "--json")
    there, home = json.loads(out)["pose"], json.loads(run("fk", "tensebot", "--json")[1])["pose"]
    assert there["position_m"] == pytest.approx(plan["shape"]["pose"]["position_m"], abs=1e-9)
    moved = [a - b for a, b in zip(there["position_m"], home["position_m"], strict=True)]
    assert moved == pytest.approx([0.005, 0.0, 0.010], abs=1e-8)


def test_ik_shows_lengths_limits_and_the_axes_that_follow(run) -> None:
    status, out, _ = run("ik", "three_prism", "--move", "0,0,-10mm")
    assert status == 0
    assert "side_1" in out
    assert "platform controls z, rx, ry; x, y, rz follow" in out


def test_a_goal_out_of_reach_names_what_binds_and_the_nearest_pose(run) -> None:
    message = refused(run("ik", "three_prism", "--move", "0,0,2"))
    assert "out of reach" in message
    assert "Nearest reachable pose" in message
    status, out, _ = run("ik", "three_prism", "--move", "0,0,2", "--json")
    figures = json.loads(out)
    assert status == 1
    assert figures["reached"] is False
    assert figures["binding"]
    assert figures["nearest"]["shape"]["stable"] is True


def test_simulate_moves_a_robot_and_draws_it(run, tmp_path: Path) -> None:
    picture = tmp_path / "prism.png"
    status, out, _ = run(
        "simulate",
        "three_prism",
        "--duration",
        "100 ms",
        "--position",
        "side_1=0.999",
        "--plot-to",
        str(picture),
        "--json",
    )
    figures = json.loads(out)
    assert status == 0
    assert figures["end"]["time_s"] == pytest.approx(0.1, abs=figures["time_step_s"])
    assert figures["start"]["position_m"] != figures["end"]["position_m"]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_simulate_writes_a_table_of_what_it_prints_and_takes_forces(run, tmp_path: Path) -> None:
    path = tmp_path / "motion.csv"
    words = ("simulate", "three_prism", "--duration", "20ms", "--force", "top_1=0,0,-0.01N", "--data", str(path))
    figures = json.loads(run(*words, "--json")[1])
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert float(rows[-1]["time_s"]) == figures["end"]["time_s"]
    assert [float(rows[-1][f"{axis}_m"]) for axis in "xyz"] == figures["end"]["position_m"]
    for name, tension in figures["end"]["tensions_N"].items():
        assert float(rows[-1][f"{name}_N"]) == tension
    assert figures["end"]["position_m"][2] < figures["start"]["position_m"][2]  # pushed down


def test_simulate_begins_with_velocities(run) -> None:
    words = ("simulate", "three_prism", "--duration", "1ms", "--json")
    moving = json.loads(run(*words, "--start-velocity", "top_1=0,0,1cm/s")[1])
    assert 0.0 < moving["energy_J"]["kinetic"] > 100.0 * json.loads(run(*words)[1])["energy_J"]["kinetic"]
    turning = ("simulate", "single_strut", "--duration", "1ms", "--json", "--start-velocity")
    coordinate = load_robot("single_strut").mechanism.coordinate_names()[0]
    assert json.loads(run(*turning, f"{coordinate}=10deg/s")[1])["energy_J"]["kinetic"] > 0.0
    code, _, said = run("simulate", "three_prism", "--start-velocity", "top_9=0,0,1")
    assert code and "node" in said and "top_9" in said


def test_simulate_says_which_commands_it_cut_to_the_limits(run) -> None:
    words = ("--velocity", "side_1=50m/s", "--effort", "side_2=-1N", "--position", "side_3=1.0")
    figures = json.loads(run("simulate", "three_prism", "--duration", "1ms", *words, "--json")[1])
    fast, pushed = figures["notes"]
    assert "side_1: 50 m/s is outside its limits" in fast
    assert "side_2: -1 N is outside its limits 0 to" in pushed


def test_simulate_without_commands_stays_where_it_is(run) -> None:
    figures = json.loads(run("simulate", "three_prism", "--duration", "50ms", "--json")[1])
    assert figures["notes"] == []
    assert figures["end"]["position_m"] == pytest.approx(figures["start"]["position_m"], abs=1e-9)


def test_experiments_are_listed_with_what_they_show(run) -> None:
    figures = json.loads(run("experiment", "--json")[1])
    assert "relaxation" in figures
    assert all(figures.values())


# -- what commands refuse -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("check", "tensbot"), "Did you mean 'tensebot'?"),
        (("check", "nowhere/x.yaml"), "no such file"),
        (("fk", "tensebot", "-l", "draw_9=1"), "Did you mean 'draw_"),
        (("fk", "tensebot", "-l", "draw_1"), "NAME=LENGTH"),
        (("fk", "tensebot", "-l", "draw_1=3kg"), "a length is needed"),
        (("fk", "tensebot", "-l", "draw_1=nan"), "finite"),
        (("fk", "tensebot", "-l", "draw_1=-1"), "above zero"),
        (("fk", "tensebot", "-l", "draw_1=1", "-l", "draw_1=2"), "given twice"),
        (("fk", "tensebot", "-f", "top1=0,0,1N"), "Did you mean 'top_1'?"),
        (("fk", "tensebot", "-f", "top_1=0,0,1mm"), "a force is needed"),
        (("fk", "tensebot", "--method", "newtn"), "Did you mean 'newton'?"),
        (("ik", "tensebot"), "name a goal"),
        (("ik", "tensebot", "--move", "1, 2"), "write 3 numbers"),
        (("ik", "tensebot", "--move", "0, 0, 3kg"), "a length is needed"),
        (("ik", "tensebot", "--turn", "0, 0, 3mm"), "an angle is needed"),
        (("ik", "tensebot", "--move", "0, 0, nan"), "finite"),
        (("ik", "tensebot", "--move", "0, 0, 0", "--position", "0, 0, 1"), "not both"),
        (("ik", "four_prism", "--move", "0, 0, 1mm"), "four_prism"),
        (("ik", "single_strut", "--move", "0, 0, 1mm"), "z is not controlled by the output; it controls x, y"),
        (("ik", "three_prism", "--turn", "0, 0, 1"), "rz is not controlled by the output"),
        (("simulate", "tensebot", "--duration", "0"), "above zero"),
        (("simulate", "tensebot", "--integrator", "euler"), "rk4"),
        (("simulate", "tensebot", "--position", "drw_1=1"), "Did you mean 'draw_1'?"),
        (("simulate", "tensebot", "--plot-to", "/nowhere/at/all.png"), "no folder"),
        (("simulate", "tensebot", "--plot-to", "all.xyz"), ".png"),
        (("experiment", "relaxtion"), "Did you mean 'relaxation'?"),
        (("experiment", "linear", "--set", "dorp=0.1"), "Did you mean 'drop'?"),
        (("experiment", "linear", "--set", "drop=3kg"), "a length is needed"),
        (("up", "simm"), "there are sim"),
        (("up", "replay"), "name the bag"),
        (("up", "replay", "/nowhere/bag"), "does not exist"),
        (("up", "replay", "/nowhere/bag", "--tour"), "not for `up replay`"),
        (("up", "sim", "three_prism", "--loop"), "--loop is for `up replay`, not for `up sim`"),
        (("up", "sim", "three_prism", "--bag", "/tmp"), "exists already"),
        (("up", "sim", "three_prism", "--bag", "/nowhere/at/all"), "no folder"),
        (("bag", "info", "/nowhere/bag"), "does not exist"),
        (("bag", "repair", "/"), "no .mcap"),
        (("bag", "compare", "/nowhere/a", "/nowhere/b", "--plot-to", "all.xyz"), ".png"),
        (("bag", "record", "/tmp"), "exists already"),
        (("checkk", "tensebot"), "Did you mean 'check'?"),
        (("goal", "0", "0", "-1cm", "--relatve"), "Did you mean '--relative'?"),
        (("push", "plate", "--force", "-1,0,0", "--durations=1s"), "Did you mean '--duration'?"),
        (("goal", "0", "0", "-5mm", "--duration", "2 mm"), "a time is needed"),
        (("check",), "robot"),
        (("check", "tensebot", "--view-port", "9000"), "--animate"),
        (("up", "sim", "--control-period", "abc"), "--control-period 'abc': a time is needed"),
        (("up", "sim", "--state-delay", "3kg"), "--state-delay '3kg': 'kg' is a unit of mass"),
        (("up", "sim", "--real-time-factor", "2 s"), "a number is needed"),
        (("up", "replay", "bag", "--rate", "nan"), "--rate 'nan': the number must be finite"),
        (("simulate", "tensebot", "--air-damping", "much"), "a damping is needed"),
        (("fk", "tensebot", "--tolerance", "1mm"), "a force is needed"),
        (("bag", "compare", "a", "b", "--tolerance", "few"), "--tolerance 'few': a number is needed"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_words_are_refused_with_what_is_right(run, words: tuple[str, ...], message: str) -> None:
    assert message.lower() in refused(run(*words)).lower()


@pytest.mark.parametrize(
    ("old", "new", "command", "message"),
    [
        ("tendon: {stiffness: 1000", "tendon: {stiffness: 1e300", "check", "stiffness: a number above 1e+15"),
        ("mass: 0.01}", "mass: 1e-28}", "simulate", "very light nodes need short steps"),
    ],
)  # fmt: skip
def test_numbers_that_nobody_can_compute_with_are_refused(run, tmp_path, old, new, command, message) -> None:
    source = (files("tensegrity_dynamics.robots") / "three_prism.yaml").read_text(encoding="utf-8")
    assert old in source
    path = tmp_path / "mine.yaml"
    path.write_text(source.replace(old, new), encoding="utf-8")
    assert message in refused(run(command, str(path)))


def test_a_folder_with_the_name_of_the_default_robot_is_a_bag_like_any_other(run, tmp_path, monkeypatch) -> None:
    (tmp_path / "tensebot").mkdir()
    monkeypatch.chdir(tmp_path)
    assert "name the bag" in refused(run("up", "replay"))
    assert "tensebot is no bag" in refused(run("up", "replay", "tensebot"))


def test_a_wrong_file_is_reported_by_file_line_and_field(run, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("kind: structure\nname: mine\nnodes: {}\nmembers: []\ncolour: red\n", encoding="utf-8")
    lines = run("check", str(path))[2].splitlines()
    assert lines[0].startswith(f"{path}:3: nodes: ")
    assert lines[1].startswith(f"{path}:4: members: ")
    assert lines[2].startswith(f"{path}:5: colour: unknown field.")


# -- without ROS, and from a cold start -----------------------------------------------------------------------------


def separately(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)


def test_commands_that_need_ros_say_how_to_get_it() -> None:
    commands = (["goal", "-0.01", "0", "0.2"], ["status"], ["stop"], ["up", "sim", "three_prism"])
    done = separately(
        "import sys; sys.modules.update(rclpy=None, tensegrity=None)\n"
        "from tensegrity_tools.cli import app\n"
        f"for words in {commands}:\n"
        "    try:\n"
        "        app(words)\n"
        "    except SystemExit as end:\n"
        "        print('status', end.code, file=sys.stderr)\n"
    )
    assert done.stderr.count("status 1") == len(commands)
    assert "Traceback" not in done.stderr
    assert done.stderr.count("make setup") == len(commands)
    assert done.stderr.count("ROS") >= len(commands)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["hardware", "tensebot"], "name the port"),
        (["hardware", "three_prism", "--port", "emulated"], "has no servos"),
        (["sim", "tensebot", "--port", "8081"], "--view-port"),
        (["sim", "four_prism", "--tour"], "has no tour"),
    ],
)
def test_what_cannot_be_started_is_refused_before_any_process_starts(words: list[str], reason: str, run) -> None:
    pytest.importorskip("tensegrity.msg", reason="the interfaces of this project are not built")
    status, out, err = run("up", *words, "--no-view")
    assert status == 1
    assert reason in " ".join((out + err).split())
    assert "Traceback" not in err


def test_compile_names_what_it_prepares_and_notes_it_for_the_nodes_of_a_robot_file_of_ones_own(run, tmp_path) -> None:
    from tensegrity_tools.runtime.compiled_kernels import CompiledKernels

    robot = tmp_path / "my_prism.yaml"
    own = Path(load_robot("three_prism").path).read_text() + f"\n# in {tmp_path}\n"
    robot.write_text(own)
    assert not CompiledKernels(str(robot), "tendon_length").are_ready
    status, out, _ = run("compile", str(robot), "--controller", "tendon_length")
    assert status == 0
    for title in ("equilibrium", "simulation", "controller tendon_length"):
        assert f"{robot}: {title}" in out
    assert CompiledKernels(str(robot), "tendon_length").are_ready
    robot.write_text(own + "# changed\n")
    assert not CompiledKernels(str(robot), "tendon_length").are_ready
    assert "nobody" in refused(run("compile", "nobody"))
    assert "tendon_length" in refused(run("compile", str(robot), "--controller", "tendon_lengths"))
    assert "name the robot" in refused(run("compile", "--controller", "qp"))


def test_help_loads_no_more_than_the_public_face_of_the_libraries() -> None:
    done = separately(
        "import sys\nfrom tensegrity_tools.cli import app\n"
        "try: app(['--help'])\nexcept SystemExit: pass\n"
        "heavy = ('scipy.linalg', 'scipy.sparse', 'scipy.optimize', 'pint', 'matplotlib', 'viser', 'rclpy')\n"
        "print([name for name in heavy if name in sys.modules], file=sys.stderr)"
    )
    assert done.stderr.strip() == "[]"


def test_a_command_whose_module_misses_something_still_stands_in_the_help(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMMANDS, "broken", ("no_such_module", "broken"))
    status, out, _ = run("--help")
    assert status == 0
    assert "broken" in out
    assert "no_such_module" in refused(run("broken", "--any", "thing"))


# -- mechanisms -----------------------------------------------------------------------------------------------------


def test_check_says_what_a_mechanism_is_and_how_it_stands(run) -> None:
    status, out, _ = run("check", "manipulator")
    assert status == 0
    words = " ".join(out.split())
    assert "39, held by 27 loop rows" in words and "degrees of freedom 12" in words
    assert "B3-level-loopJt, predecessor: B2-strut, successor: B3-link" in words
    assert "every cable is tight and within its limits" in words


def test_check_of_a_mechanism_as_json_has_its_shape_at_rest(run) -> None:
    status, out, _ = run("check", "single_strut", "--json")
    found = json.loads(out)
    assert status == 0
    assert (found["coordinates"], found["loop_rows"], found["degrees_of_freedom"]) == (14, 9, 5)
    assert abs(found["at_rest"]["position_m"][2] - 1.0) < 1e-9 and found["at_rest"]["stable"]


def test_simulate_drives_pulleys_by_torque_and_draws_tensions(run, tmp_path: Path) -> None:
    picture = tmp_path / "strut.png"
    words = (
        "simulate",
        "single_strut",
        "--duration",
        "0.1",
        "--effort",
        "B1=5 N m",
        "--plot-to",
        str(picture),
        "--json",
    )
    status, out, _ = run(*words)
    found = json.loads(out)
    assert status == 0 and picture.stat().st_size > 10_000
    assert found["end"]["tensions_N"]["B1"] > found["start"]["tensions_N"]["B1"]


def test_torque_of_a_pulley_has_its_unit(run) -> None:
    message = refused(run("simulate", "single_strut", "--effort", "B1=5 kg"))
    assert "--effort 'B1=5 kg'" in message and "torque is needed" in message


@pytest.mark.long
def test_variants_of_the_involute_joint_agree_as_the_document_says(run, tmp_path: Path) -> None:
    picture = tmp_path / "variants.png"
    status, out, _ = run("experiment", "variants", "--json", "--plot-to", str(picture))
    found = json.loads(out)
    assert status == 0 and picture.stat().st_size > 20_000
    for case in found["cases"]:
        assert max(case["largest_phi_rad"].values()) < 1e-12
        assert all(own["largest"] < 1e-10 for own in case["deviations"].values())
        assert case["psi_at_the_end_rad"] > 1e-4


def test_shape_of_a_mechanism_follows_its_pulleys_and_back(run) -> None:
    status, out, _ = run("ik", "manipulator", "--move", "20mm,0,-10mm", "--json")
    found = json.loads(out)
    assert status == 0 and found["reached"]
    given = [word for name, value in found["positions"].items() for word in ("-l", f"{name}={value!r} rad")]
    status, out, _ = run("fk", "manipulator", *given, "--json")
    again = json.loads(out)
    assert status == 0
    assert all(abs(a - b) < 1e-6 for a, b in zip(found["position_m"], again["position_m"], strict=True))
    status, out, _ = run("fk", "single_strut", "-l", "B1=30 deg")
    assert status == 0 and "0.5236 rad" in out and "stable" in out


def test_goals_and_positions_of_mechanisms_are_checked(run) -> None:
    assert "There is no actuator 'B4'" in refused(run("fk", "single_strut", "-l", "B4=1"))
    assert "an angle is needed" in refused(run("fk", "single_strut", "-l", "B1=5 mm"))
    assert "is a mechanism" in refused(run("fk", "single_strut", "--competing"))
    assert "out of reach" in refused(run("ik", "single_strut", "--move", "1.5,0,0"))


@pytest.mark.long
def test_experiments_with_the_parallel_mechanism_find_what_the_document_says(run) -> None:
    status, out, _ = run("experiment", "biglide", "--json")
    found = json.loads(out)
    assert status == 0
    errors = [row["largest_error_m"] for row in found["kinematic"]]
    assert 0.45 < errors[1] / errors[0] < 0.55 and 0.45 < errors[2] / errors[1] < 0.55
    assert found["computed_torque"]["largest_error_m"] < 1e-3
    crossing = found["crossing"]
    assert crossing["largest_force_without_criterion_N"] > 10 * crossing["largest_force_with_criterion_N"]
    assert not crossing["refused"]["with the criterion"] and "Type 2" in crossing["refused"]["y'' = 0"]
    forces = {(row["path"], row["period_s"]): row["largest_force_N"] for row in crossing["followed"]}
    assert forces["with the criterion", 2e-3] < 40.0 < 400.0 < forces["y'' = 0", 2e-3]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["plate"], "give --mass"),
        (["plate", "--off", "--mass", "1 kg"], "give --mass"),
        (["plate", "--off", "--at", "0,0,1"], "give --mass"),
        (["plate", "--mass", "0"], "--mass '0': it must be above zero; --off takes"),
        (["plate", "--mass", "nan"], "--mass"),
        (["plate", "--mass", "3 N"], "--mass '3 N'"),
        (["plate", "--mass", "1", "--at", "0,0"], "--at '0,0': write 3 numbers"),
        (["plaet", "--mass", "1"], "plaet.*plate"),
        (["tip", "--mass", "1", "--at", "0,0,5 cm"], "tip is a node, and a node has no frame"),
        (["plate", "--mass", "200 g"], "has not taken the payload of plate within .*; it says: paused"),
        ([], "no simulator is running"),
    ],
)
def test_a_payload_that_cannot_be_put_on_is_refused(run, monkeypatch, words: list[str], reason: str) -> None:
    simulator = SimpleNamespace(values=[SimpleNamespace(key="payloads", value="plate: 0.3 kg")], message="paused")
    watcher = SimpleNamespace(
        truth=object(), load_names=(("plate",), ("tip",)), diagnostics={}, payload_sender=lambda: lambda *_: None,
        wait_for_robot=lambda condition: bool(words) and condition(),
        wait_until=lambda condition, _: watcher.diagnostics.update(simulator=simulator) or condition(),
    )  # fmt: skip
    monkeypatch.setattr(push, "watching", lambda _: contextlib.nullcontext(watcher))
    assert re.search(reason, refused(run("payload", *(words or ["plate", "--mass", "1"]))))


def test_a_payload_is_put_on_once_the_simulator_says_so(run, monkeypatch) -> None:
    sent: list[tuple[str, float, list[float]]] = []
    value = SimpleNamespace(key="payloads", value="none")

    def send(name: str, mass: float, at: Any) -> None:
        sent.append((name, mass, at.tolist()))
        value.value = f"plate: {mass:g} kg at 0, 0, 0.05 m" if mass else "none"

    watcher = SimpleNamespace(
        truth=object(), load_names=(("plate",), ()), payload_sender=lambda: send,
        diagnostics={"simulator": SimpleNamespace(values=[value], message="running")},
        wait_for_robot=lambda condition: condition(), spin=lambda _: None,
    )  # fmt: skip
    said = watcher.diagnostics["simulator"]
    watcher.wait_until = lambda condition, _: watcher.diagnostics.update(simulator=said) or condition()
    monkeypatch.setattr(push, "watching", lambda _: contextlib.nullcontext(watcher))
    status, out, _ = run("payload", "plate", "--mass", "200 g", "--at", "0,0,5 cm")
    assert status == 0 and "put on plate: 0.2 kg at 0, 0, 0.05 m" in out
    status, out, _ = run("payload", "plate", "--off")
    assert status == 0 and "plate carries no payload" in out
    assert sent == [("plate", 0.2, [0.0, 0.0, 0.05]), ("plate", 0.0, [0.0, 0.0, 0.0])]


@pytest.mark.parametrize("words", [(), ("nowhere",), ("nowhere", "--rate", "nan")])
def test_bag_replay_is_another_name_of_up_replay(run, words: tuple[str, ...]) -> None:
    assert refused(run("bag", "replay", *words)) == refused(run("up", "replay", *words))


def test_a_push_ends_where_the_simulation_starts_again(run, monkeypatch) -> None:
    sent: list[Any] = []
    watcher = SimpleNamespace(
        truth=object(), load_names=(("plate",), ()), wait_for_robot=lambda condition: condition(), time=20.0,
        wrench_sender=lambda: lambda *values: sent.append(values), check_there=lambda _: None,
    )  # fmt: skip
    watcher.spin = lambda _: setattr(watcher, "time", watcher.time + 1.0 if watcher.time < 25.0 else 0.0)
    monkeypatch.setattr(push, "watching", lambda _: contextlib.nullcontext(watcher))
    assert "the simulation has started again" in refused(run("push", "plate", "--force", "0,0,-5N", "--duration", "1h"))
    assert len(sent) == 6


@pytest.mark.parametrize(
    ("words", "offered", "called"),
    [
        (["stop"], ["stop"], "stop"),
        (["stop", "--emergency"], ["emergency_stop"], "emergency_stop"),
        (["release"], ["driver/release"], "driver/release"),
        (["release"], ["simulator/release"], "simulator/release"),
    ],
)
def test_stops_and_releases_call_the_service_that_the_robot_offers(run, monkeypatch, words, offered, called) -> None:
    watcher = SimpleNamespace(
        offered=offered.__contains__, wait_until=lambda condition, _: condition(),
        call=lambda name: SimpleNamespace(success=True, message=f"called {name}"),
    )  # fmt: skip
    monkeypatch.setattr(running_robot, "watching", lambda _: contextlib.nullcontext(watcher))
    assert run(*words) == (0, f"called {called}\n", "")


def test_the_status_of_hardware_gives_the_tensions_that_are_known(run, monkeypatch) -> None:
    watcher = SimpleNamespace(
        state=object(), time=1.0, pose=(np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])), diagnostics={},
        tensions=np.array([np.nan, 12.0, 15.0]),
        wait_for_robot=lambda condition: condition(), wait_for_diagnostics=lambda: None,
    )  # fmt: skip
    monkeypatch.setattr(running_robot, "watching", lambda _: contextlib.nullcontext(watcher))
    assert "12 to 15 N" in run("status")[1]
    assert json.loads(run("status", "--json")[1])["tension_N"] == [12.0, 15.0]


@pytest.mark.parametrize(
    ("runs", "words"),
    [("tensebot", "tensebot is running, not manipulator; name tensebot"), ("", "no robot is running"), (None, "")],
)
def test_a_file_for_another_robot_than_the_running_one_is_refused(runs: str | None, words: str) -> None:
    name = "manipulator" if runs is None else runs
    watcher = SimpleNamespace(
        state=object() if name else None, layout=SimpleNamespace(robot=name),
        wait_for_robot=lambda condition: condition(),
    )  # fmt: skip
    if not words:
        wait_for(watcher, "manipulator")
        return
    with pytest.raises(TensegrityError, match=words):
        wait_for(watcher, "manipulator")
