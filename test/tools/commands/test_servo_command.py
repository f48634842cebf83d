"""`tensegrity servo` on emulated servos: what a builder sees, what is saved, and what is refused with a reason."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from bus_line import ChainPort, make_servo

from tensegrity_driver.bus.scan import FoundServo, scan
from tensegrity_driver.bus.serial_port import SerialPort
from tensegrity_driver.calibration.calibration_file import hardware_fingerprint, load_calibration
from tensegrity_driver.emulator import EmulatedRobot, with_servos
from tensegrity_driver.hardware.emulated_hardware import EmulatedHardware, EmulatedPort, calibrate_emulated
from tensegrity_dynamics import Robot, load_robot
from tensegrity_dynamics.errors import BusError, TensegrityError
from tensegrity_tools.cli import app
from tensegrity_tools.commands.servo import calibrate as servo_calibrate
from tensegrity_tools.commands.servo import reboot as servo_reboot
from tensegrity_tools.commands.servo import scan as servo_scan
from tensegrity_tools.commands.servo.scan import PortOptions, ScannedServo, compare, read_ids
from tensegrity_tools.commands.servo.set_id import find_one, set_identity

TENSEBOT = load_robot("tensebot")
COUNT_SLOPE = -7.44e-5  # m per count, about what the spool radius gives
Result = tuple[int, str, str]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run the command in this process: (exit status, standard output, standard error)."""
    monkeypatch.setenv("COLUMNS", "160")

    def call(*words: str) -> Result:
        status = 0
        try:
            app(["servo", *words])
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


@pytest.fixture
def emulate(monkeypatch: pytest.MonkeyPatch) -> Callable[..., EmulatedRobot]:
    """Makes emulated servos and board behind ports, in a world that stands still; no answer of theirs is too late."""

    def make(robot: Robot, **settings: bool) -> EmulatedRobot:
        emulated = EmulatedRobot(robot, **settings)
        monkeypatch.setattr(SerialPort, "grace", lambda port: EmulatedPort.grace(SimpleNamespace(_emulated=emulated)))
        return emulated

    return make


@pytest.fixture
def robot(emulate: Callable[..., EmulatedRobot]) -> Iterator[EmulatedRobot]:
    with emulate(TENSEBOT) as emulated:
        yield emulated


def ports(robot: EmulatedRobot) -> list[str]:
    assert robot.board_port is not None
    return ["--port", robot.servo_port, "--board", robot.board_port]


def refused(result: Result) -> str:
    """The message of a refused command: one line, no traceback."""
    status, out, err = result
    assert status == 1
    assert out == ""
    assert "Traceback" not in err
    return err.strip()


def written(folder: Path, text: str, name: str = "points.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


# -- scan ------------------------------------------------------------------------------------------------------------

QUICK = ("--ids", "1-13", "--baud-rate", "1000000")


def test_a_scan_tells_every_servo_and_that_they_are_those_of_the_robot(run, robot: EmulatedRobot) -> None:
    status, out, _ = run("scan", "--port", robot.servo_port, "--robot", "tensebot", *QUICK, "--json")
    figures = json.loads(out)
    assert status == 0
    assert [(each["id"], each["actuator"], each["model"]) for each in figures["servos"]] == [
        (each.id, each.actuator, each.model) for each in robot.identity
    ]
    first = figures["servos"][0]
    assert (first["protocol"], first["baud_rate"], first["return_delay_s"]) == (1, 1_000_000, 0.0)
    assert first["voltage_v"] == pytest.approx(12.0, abs=0.5)
    assert figures["missing"] == figures["extra"] == figures["other_model"] == figures["other_speed"] == []


def test_a_scan_names_missing_and_doubled_servos(run, robot: EmulatedRobot) -> None:
    robot.faults.silence("draw_1")
    robot.faults.duplicate("saddle_2")
    status, out, _ = run("scan", "--port", robot.servo_port, "--robot", "tensebot", *QUICK, "--protocol", "1")
    assert status == 1
    assert "servo 7 (draw_1) does not answer" in out
    assert "more than one servo answers under id 2" in out


def test_a_servo_whose_answer_was_lost_is_asked_again_and_the_scan_ends_when_all_are_found(
    run, robot: EmulatedRobot, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[tuple[int, ...], tuple[int, ...]]] = []

    def forgetful(port, *, protocols, baud_rates, ids):
        asked.append((baud_rates, tuple(ids)))
        return scan(port, protocols=protocols, baud_rates=baud_rates, ids=[k for k in ids if k != 5 or len(asked) > 1])

    monkeypatch.setattr(servo_scan, "scan", forgetful)
    status, out, _ = run("scan", "--port", robot.servo_port, "--robot", "tensebot", "--ids", "1-12")
    assert status == 0
    assert "These are the servos of tensebot" in out
    assert asked[:2] == [((1_000_000,), tuple(range(1, 13))), ((1_000_000,), (5,))]
    assert {rates for rates, ids in asked if ids} == {(1_000_000,)}


def test_slow_servos_are_reported_with_what_they_cost(run, emulate) -> None:
    with emulate(TENSEBOT, prepared=False) as robot:
        _, out, _ = run("scan", "--port", robot.servo_port, *QUICK, "--protocol", "1", "--json")
    assert any("12 servos: return delays of up to 500 us cost 6.0 ms" in note for note in json.loads(out)["notes"])


def test_servos_that_are_not_as_the_file_says_are_told_apart() -> None:
    found = [ScannedServo(FoundServo(k, 1, 1_000_000, 12, 1, False), None, {}) for k in range(2, 13)]
    found[0] = ScannedServo(FoundServo(2, 2, 57_600, 1060, 1, False), None, {})
    found.append(ScannedServo(FoundServo(40, 1, 1_000_000, 12, 1, False), None, {}))
    differences = compare(found, TENSEBOT)
    assert {kind: len(lines) for kind, lines in differences.items()} == {
        "missing": 1,
        "extra": 1,
        "other_model": 1,
        "other_speed": 1,
    }
    assert "servo 1 (saddle_1)" in differences["missing"][0]
    assert "XL430-W250" in differences["other_model"][0]
    assert compare(found, TENSEBOT, ids=range(2, 41))["missing"] == []


def test_ids_are_ranges_and_lists() -> None:
    assert read_ids("1-3, 7") == (1, 2, 3, 7)
    assert len(read_ids("")) == 253
    for text in ("a", "3-1", "1-300"):
        with pytest.raises(TensegrityError, match="--ids"):
            read_ids(text)


def test_a_port_that_is_not_there_or_no_port_is_said(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "plugged in" in refused(run("scan", "--port", str(tmp_path / "ttyUSB0")))
    assert "--robot" in refused(run("scan", "--port", "emulated"))
    monkeypatch.setattr("serial.tools.list_ports.comports", lambda: [])
    assert "--port emulated" in refused(run("scan"))


# -- ids -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["AX-12A", "XM430-W350"])
def test_a_servo_gets_its_id_without_return_delay(model: str) -> None:
    servo = make_servo(model, 1)
    port = ChainPort(servo.model.protocol, {"one": servo})
    found = find_one(port, 1, PortOptions(baud_rates=[1_000_000], protocol=servo.model.protocol))
    named, speed = set_identity(port, found, 9, 57_600)
    assert (named.name, speed) == (model, 57_600)
    assert servo.registers.raw("id") == 9
    assert servo.registers.raw("return_delay") == 0
    assert servo.model.baud_rates[servo.registers.raw("baud_rate")] == 57_600


def test_an_id_that_is_taken_and_an_unknown_speed_are_refused() -> None:
    servos = {"one": make_servo("AX-12A", 1), "two": make_servo("AX-12A", 2)}
    port = ChainPort(1, servos)
    found = find_one(port, 1, PortOptions(baud_rates=[1_000_000], protocol=1))
    with pytest.raises(BusError, match="taken already"):
        set_identity(port, found, 2, None)
    with pytest.raises(TensegrityError, match="does not support 12345"):
        set_identity(port, found, 3, 12_345)
    with pytest.raises(BusError, match="no servo answers under id 77"):
        find_one(port, 77, PortOptions(baud_rates=[1_000_000], protocol=1))
    assert servos["one"].registers.raw("id") == 1


# -- calibrate -------------------------------------------------------------------------------------------------------


def rows(name: str, spoiled: int | None = None) -> str:
    text = ""
    for k, reading in enumerate(range(1400, 2400, 125)):
        length = 0.36 + COUNT_SLOPE * reading + (0.006 if k == spoiled else 0.0)
        text += f"{name},{reading},{1e3 * length:.1f} mm\n"
    return text


def test_points_from_a_file_are_fitted_and_a_bad_one_is_named(run, tmp_path: Path) -> None:
    path = written(tmp_path, "actuator,reading,length\n" + rows("saddle_1", spoiled=3) + rows("draw_1"))
    status, out, _ = run("calibrate", "tensebot", "--points", str(path), "--json")
    figures = json.loads(out)
    assert status == 0
    assert figures["saved"] is False
    assert figures["spools"]["saddle_1"]["outliers"] == [3]
    assert figures["spools"]["draw_1"]["slope"] == pytest.approx(COUNT_SLOPE, rel=5e-3)
    status, out, _ = run("calibrate", "tensebot", "saddle_1", "--points", str(path))
    assert status == 0
    assert "point 4" in out
    assert "left out" in out
    assert "Nothing was saved" in out


def test_a_spool_that_cannot_be_fitted_is_reported_beside_those_that_can(run, tmp_path: Path) -> None:
    text = "actuator,reading,length\n" + rows("saddle_1")
    text += "draw_1,1500,0.18\ndraw_1,1900,0.21\ndraw_1,2300,0.24\n"
    status, out, _ = run("calibrate", "tensebot", "--points", str(written(tmp_path, text)), "--json")
    figures = json.loads(out)
    assert status == 1
    assert list(figures["spools"]) == ["saddle_1"]
    assert "runs backwards" in figures["refused"]["draw_1"]


def test_a_calibration_is_saved_for_its_bus_and_refused_on_another(run, robot: EmulatedRobot, tmp_path: Path) -> None:
    points = written(tmp_path, "actuator,reading,length\n" + rows("saddle_1") + rows("draw_1"))
    path = tmp_path / "new" / "calibration.json"
    words = ["calibrate", "tensebot", "--points", str(points), "--calibration", str(path), "--save", *ports(robot)]
    status, out, _ = run(*words)
    assert status == 0
    assert f"to {path}" in out.replace("\n", "")
    identity = json.loads(path.read_text(encoding="utf-8"))
    assert identity["bus"]["adapter"] == "emulated"
    assert identity["sensors"].keys() == {"saddle_1", "draw_1"}

    fingerprint = identity["hardware"]
    path.write_text(path.read_text(encoding="utf-8").replace("saddle_1", "saddle_9"), encoding="utf-8")
    assert "--anew" in run(*words)[2]
    assert run(*words, "--anew")[0] == 0
    assert json.loads(path.read_text(encoding="utf-8"))["hardware"] == fingerprint
    assert path.with_name("calibration.json.previous").exists()


class Builder:
    """Somebody who measures the true length at every position, and types what is planned."""

    def __init__(self, plan: list[str]) -> None:
        self.plan = plan
        self.said: list[str] = []
        self.hardware: EmulatedHardware | None = None

    def ask(self, question: str, live: Callable[[], str] | None = None) -> str:
        if live is not None:
            self.said.append(live())
        word = self.plan.pop(0)
        if word != "measure":
            return word
        assert self.hardware is not None
        return f"{1e3 * self.hardware.emulated.observe().positions['draw_2']:.2f} mm"


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> Builder:
    somebody = Builder([])

    class Shown(EmulatedHardware):
        def __init__(self, *given: object, **named: object) -> None:
            super().__init__(*given, **named)  # type: ignore[arg-type]
            somebody.hardware = self

    monkeypatch.setattr("tensegrity_driver.hardware.emulated_hardware.EmulatedHardware", Shown)
    monkeypatch.setattr(servo_calibrate, "ask", somebody.ask)
    monkeypatch.setattr(servo_calibrate, "agreed", lambda question: True)
    return somebody


def test_a_person_calibrates_a_spool_by_jogs_and_measured_lengths(run, builder: Builder, tmp_path: Path) -> None:
    builder.plan = ["measure", "+9", "measure", "9 mm", "undo", "+9", "measure", "done"]
    path = tmp_path / "calibration.json"
    calibrate_emulated(TENSEBOT, path)
    before = json.loads(path.read_text(encoding="utf-8"))["sensors"]
    status, out, err = run(
        "calibrate", "tensebot", "draw_2", "--port", "emulated", "--calibration", str(path), "--tension", "200 N"
    )
    assert status == 0, err
    assert "Saved to" in out
    after = json.loads(path.read_text(encoding="utf-8"))["sensors"]
    assert builder.hardware is not None
    true = before["draw_2"]["potentiometer"]
    assert after["draw_2"]["potentiometer"]["points"] == 3
    assert after["draw_2"]["potentiometer"]["slope"] == pytest.approx(true["slope"], rel=0.02)
    assert after["saddle_1"] == before["saddle_1"]
    assert all("counts" in line for line in builder.said)


def test_jogs_that_make_no_sense_move_nothing_and_quit_saves_nothing(run, builder: Builder, tmp_path: Path) -> None:
    builder.plan = ["+500", "-x", "17 kg", "done", "undo", "help", "", "quit"]
    path = tmp_path / "calibration.json"
    status, out, _ = run("calibrate", "tensebot", "draw_2", "--port", "emulated", "--calibration", str(path))
    assert status == 0
    assert "is no jog" in out
    assert "at least 3 points" in out
    assert not path.exists()
    assert len(set(builder.said)) == 1


def test_calibrating_without_board_or_by_json_alone_is_refused(run, robot: EmulatedRobot) -> None:
    assert "--board" in refused(run("calibrate", "tensebot", "--port", robot.servo_port))
    assert "--points" in refused(run("calibrate", "tensebot", "--port", "emulated", "--json"))
    assert "Did you mean" in refused(run("calibrate", "tensebot", "sadle_1", "--port", "emulated"))
    assert "no servos" in refused(run("calibrate", "three_prism", "--port", "emulated"))


def test_an_emulated_calibration_needs_a_file_to_be_saved(run, tmp_path: Path) -> None:
    points = written(tmp_path, "actuator,reading,length\n" + rows("saddle_1"))
    status, _, err = run("calibrate", "tensebot", "--points", str(points), "--port", "emulated", "--save")
    assert status == 1
    assert "--calibration" in err


# -- springs ---------------------------------------------------------------------------------------------------------


def test_a_spring_follows_from_weights(run, tmp_path: Path) -> None:
    weights = "".join(f"{m} kg,{101.6 + 1e3 * m * 9.80665 / 1990.0:.2f} mm\n" for m in (0.5, 1.0, 1.5, 2.0, 3.0))
    path = written(tmp_path, "mass,length\n" + weights)
    figures = json.loads(run("spring", "--points", str(path), "--json")[1])
    assert figures["rate_n_per_m"] == pytest.approx(1990.0, rel=5e-3)
    assert figures["zero_length_m"] == pytest.approx(0.1016, abs=1e-4)
    assert "stiffness:" in run("spring", "--points", str(path))[1]


# -- watch -----------------------------------------------------------------------------------------------------------


def registers(robot: EmulatedRobot) -> dict[str, list[float]]:
    names = ("torque_enable", "moving_speed", "torque_limit", "goal_position", "return_delay", "cw_limit")
    return {each.actuator: [robot.register(each.actuator, name) for name in names] for each in robot.identity}


def test_watching_reads_and_changes_nothing(run, robot: EmulatedRobot, tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    calibrate_emulated(TENSEBOT, path)
    before = registers(robot)
    status, out, _ = run("watch", "tensebot", *ports(robot), "--calibration", str(path), "--json")
    figures = json.loads(out)
    assert status == 0
    assert registers(robot) == before
    assert figures["faults"] == figures["remarks"] == []
    assert len(figures["servos"]) == 12
    true = robot.observe().positions["draw_1"]
    assert figures["servos"]["draw_1"]["length_m"] == pytest.approx(true, abs=1e-4)
    assert figures["bus"]["missing"] == 0


@pytest.mark.long
def test_watching_says_what_is_wrong_and_what_to_do(run, robot: EmulatedRobot, tmp_path: Path) -> None:
    robot.faults.silence("saddle_3")
    robot.faults.heat("draw_1", 75.0)
    robot.faults.break_potentiometer("draw_2", 0)
    robot.advance(0.1)
    path = tmp_path / "none.json"
    status, out, _ = run("watch", "tensebot", *ports(robot), "--calibration", str(path), "--json")
    figures = json.loads(out)
    assert status == 0
    found = {(each["fault"], each["actuator"]) for each in figures["faults"]}
    assert {("servo_silent", "saddle_3"), ("overheating", "draw_1"), ("sensor_broken", "draw_2")} <= found
    assert all(each["remedy"] for each in figures["faults"])
    assert any("tensegrity servo calibrate" in each for each in figures["remarks"])
    assert figures["servos"]["draw_1"]["length_m"] is None
    _, out, _ = run("watch", "tensebot", *ports(robot), "--calibration", str(path), "--cycles", "8")
    assert "servo_silent: saddle_3" in out


# -- home ------------------------------------------------------------------------------------------------------------


def test_homing_tells_where_a_tendon_is_tight_and_corrects_the_calibration(run, tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    calibrate_emulated(TENSEBOT, path)
    words = ["home", "tensebot", "draw_1", "--port", "emulated", "--calibration", str(path)]
    status, out, _ = run(*words, "--length", "230 mm", "--save", "--json")
    found = json.loads(out)["tendons"]["draw_1"]
    assert status == 0
    assert found["tight"] is True
    assert found["saved"] is True
    sensor = json.loads(path.read_text(encoding="utf-8"))["sensors"]["draw_1"]["potentiometer"]
    assert sensor["intercept"] + sensor["slope"] * found["reading"] == pytest.approx(0.230)


def test_homing_corrects_nothing_that_was_never_calibrated(run, tmp_path: Path) -> None:
    path = tmp_path / "none.json"
    words = ["--port", "emulated", "--calibration", str(path), "--length", "230 mm"]
    assert "Calibrate it first" in refused(run("home", "tensebot", "draw_1", *words))
    assert "one at a time" in refused(run("home", "tensebot", "draw_1", "draw_2", *words))


def test_saved_calibrations_are_those_that_the_driver_loads(run, tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    made = calibrate_emulated(TENSEBOT, path)
    points = written(tmp_path, "actuator,reading,length\n" + rows("saddle_1"))
    words = ["--points", str(points), "--calibration", str(path), "--port", "emulated", "--save"]
    assert run("calibrate", "tensebot", *words)[0] == 0
    fingerprint = hardware_fingerprint(TENSEBOT.servos)
    loaded = load_calibration(path, robot="tensebot", hardware=fingerprint, bus=made.bus)
    assert loaded.revision == made.revision + 1
    assert loaded.line("saddle_1", "potentiometer").slope == pytest.approx(COUNT_SLOPE, rel=5e-3)


# -- reboot ----------------------------------------------------------------------------------------------------------


def test_a_servo_that_shut_down_is_rebooted_and_its_error_is_gone(run, emulate, monkeypatch) -> None:
    turning = with_servos(TENSEBOT, "XM430-W350")
    monkeypatch.setattr(servo_reboot, "load_robot", lambda name: turning)
    with emulate(turning) as emulated:
        emulated.faults.fail("draw_1", "overload")
        emulated.advance(0.02)
        assert emulated.register("draw_1", "hardware_error") > 0
        status, out, _ = run("reboot", "tensebot", "draw_1", "--port", emulated.servo_port)
        assert status == 0
        assert "tensegrity servo home tensebot draw_1" in " ".join(out.split())
        assert emulated.register("draw_1", "hardware_error") == 0
        assert emulated.register("draw_1", "torque_enable") == 0


def test_servos_of_protocol_1_cannot_be_rebooted(run, robot: EmulatedRobot) -> None:
    assert "switch its supply off and on" in refused(run("reboot", "tensebot", "draw_1", *ports(robot)))
