"""Calibration finds lines and springs in measured points, and its file is whole, new or old, and of this robot."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tensegrity_driver.bus.identity import BusIdentity
from tensegrity_driver.calibration.calibrated_spools import make_loops, make_spools
from tensegrity_driver.calibration.calibration_file import (
    RobotCalibration,
    SensorCalibration,
    hardware_fingerprint,
    load_calibration,
    save_calibration,
)
from tensegrity_driver.calibration.line_fit import (
    CalibrationError,
    SteadyReading,
    calibrate_spool,
    fit_line,
)
from tensegrity_driver.calibration.spring_rate import STANDARD_GRAVITY, spring_from_weights
from tensegrity_driver.spools.position_loop import FreeRunLoop
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import TensegrityError

SLOPE, INTERCEPT = 7.44e-5, 0.082
BUS = BusIdentity("FT4TFPX1", tuple((k, 12) for k in range(1, 13)))
WHOM = {"robot": "tensebot", "hardware": "abc", "bus": BUS}


def points(count: int, seed: int, noise: float = 3e-4) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    readings = np.linspace(300.0, 3800.0, count) + random.uniform(-50.0, 50.0, count)
    return readings, INTERCEPT + SLOPE * readings + random.normal(0.0, noise, count)


# -- the line ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "bad"), [(6, 0), (8, 1), (15, 3)])
def test_the_slope_lies_in_its_interval_as_often_as_the_confidence_says(count: int, bad: int) -> None:
    random = np.random.default_rng(count)
    inside = 0
    for seed in range(120):
        x, y = points(count, seed)
        y[random.choice(count, bad, replace=False)] += random.choice([-1.0, 1.0]) * random.uniform(0.005, 0.05)
        fit = fit_line(x, y, confidence=0.9)
        inside += fit.slope_interval[0] <= SLOPE <= fit.slope_interval[1]
    # a binomial with 120 trials at 0.9 lies between 96 and 119 but for one case in a thousand
    assert 96 <= inside <= 119


@settings(max_examples=60, deadline=None)
@given(
    slope=st.floats(1e-6, 1e-3).flatmap(lambda s: st.sampled_from([s, -s])),
    intercept=st.floats(-1.0, 1.0),
    count=st.integers(4, 25),
    seed=st.integers(0, 2**32 - 1),
)
def test_points_with_bounded_errors_give_a_slope_within_its_confidence(slope, intercept, count, seed) -> None:
    random = np.random.default_rng(seed)
    x = np.linspace(100.0, 4000.0, count)
    error = random.uniform(-1e-4, 1e-4, count)
    fit = fit_line(x, intercept + slope * x + error, confidence=0.999999)
    assert fit.slope_interval[0] <= slope <= fit.slope_interval[1]
    assert fit.intercept_interval[0] <= intercept <= fit.intercept_interval[1]


@settings(max_examples=60, deadline=None)
@given(index=st.integers(0, 8), off=st.floats(0.003, 0.3), sign=st.sampled_from([-1, 1]), seed=st.integers(0, 10_000))
def test_one_bad_point_anywhere_is_named_and_does_not_bend_the_line(index, off, sign, seed) -> None:
    x, y = points(9, seed, noise=1e-4)
    clean = fit_line(np.delete(x, index), np.delete(y, index))
    y[index] += sign * off
    fit = fit_line(x, y)
    assert index in fit.outliers
    if fit.outliers == (index,) and not clean.outliers:
        assert fit.slope == pytest.approx(clean.slope, rel=1e-9)
    assert fit.residuals[index] == pytest.approx(sign * off, abs=1.5e-3)


def test_exact_points_are_no_outliers_and_residuals_are_of_all_points() -> None:
    x = np.array([100.0, 200.0, 900.0, 3000.0])
    fit = fit_line(x, 0.1 + 2e-5 * x)
    assert fit.outliers == ()
    assert fit.slope == pytest.approx(2e-5, rel=1e-12)
    assert len(fit.residuals) == 4


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        ([1.0, 2.0], [1.0, 2.0], "at least 3 points"),
        ([5.0, 5.0, 5.0, 5.0], [1.0, 2.0, 3.0, 4.0], "all readings are the same"),
        ([1.0, 2.0, np.nan], [1.0, 2.0, 3.0], "not finite"),
        ([-5.0, 1.0, 600.0, 1e300], [1.0, 2.0, 3.0, 4.0], "above 1e[+]15"),
        ([0, 1, 2, 3, 4, 5, 6, 7], [0, 1, 2, 3, 4, 9, 0, -5], "do not lie on the line"),
    ],
)
def test_points_that_make_no_line_are_refused(x, y, words) -> None:
    with pytest.raises(CalibrationError, match=words):
        fit_line(x, y, what="draw_1")


SIZES = st.sampled_from([0.0, 5e-324, 1e-160, 1e-9, 1.0, -5.0, 600.0, 3e9, 1e15, -1e15, 1e300, math.inf])


@pytest.mark.filterwarnings("error")
@given(st.lists(st.tuples(SIZES | st.floats(-1.0, 1.0), SIZES | st.floats(-1.0, 1.0)), min_size=1, max_size=8))
@example(list(zip([-5.0, 0.0, 2.0**31, 1.0, -0.6, 3e9], [2.0**31, -1.0, 1e-160, 3e9, 1e-160, 1e-300], strict=True)))
def test_points_of_any_size_make_a_line_or_are_refused(pairs) -> None:
    with contextlib.suppress(CalibrationError):
        fit = fit_line([x for x, _ in pairs], [y for _, y in pairs])
        assert np.all(np.isfinite([fit.slope, fit.intercept, fit.deviation]))


def test_points_that_leave_the_slope_in_doubt_are_refused_and_few_points_are_named() -> None:
    with pytest.raises(CalibrationError, match=r"known to ±\d+ % only"):
        calibrate_spool("draw_1", [0, 1, 2, 3, 4, 5, 6, 7], [0.0, 2.5, 0.5, 5.0, 2.0, 6.5, 4.0, 8.5])
    x, y = points(4, 3)
    assert any("measure more points" in each for each in calibrate_spool("draw_1", x[:3], y[:3]).warnings)


def test_a_sensor_that_does_not_turn_with_the_spool_is_refused() -> None:
    random = np.random.default_rng(3)
    with pytest.raises(CalibrationError, match="does not turn with the spool"):
        calibrate_spool("draw_1", random.uniform(1999, 2001, 8), np.linspace(0.17, 0.26, 8))


def test_a_backwards_sensor_is_refused_and_a_doubtful_radius_named() -> None:
    x, y = points(6, 1)
    with pytest.raises(CalibrationError, match="backwards"):
        calibrate_spool("draw_1", x, y, expected_slope=-SLOPE)
    for ratio in (2.0, 1.1, 0.9, 0.5):
        assert "radius" in calibrate_spool("draw_1", x, y, expected_slope=SLOPE / ratio).warnings[0]
    assert calibrate_spool("draw_1", x, y, expected_slope=SLOPE, limits=(0.16, 0.27)).warnings == ()
    assert "cover" in calibrate_spool("draw_1", x[:3], y[:3], limits=(0.1, 0.5)).warnings[-1]


def test_an_outlier_is_named_by_its_number_and_place() -> None:
    x, y = points(7, 5)
    y[3] += 0.02
    check = calibrate_spool("saddle_2", x, y)
    assert check.fit.outliers == (3,)
    assert "saddle_2: point 4" in check.warnings[0] and "mm off the line" in check.warnings[0]


def test_a_point_is_read_only_from_a_sensor_that_stands_still() -> None:
    steady = SteadyReading("draw_1", cycles=4)
    assert [steady.add(each) for each in (1000.0, None, 1001.0, 1002.0)] == [None] * 4
    assert steady.add(1001.0, age=1) is None  # nothing new
    assert steady.add(1001.0) == 1001.0
    with pytest.raises(CalibrationError, match="draw_1: its sensor moved by 9"):
        steady.add(1009.0)
    gone = SteadyReading("draw_1", cycles=2)
    assert gone.add(math.nan) is None
    with pytest.raises(CalibrationError, match="no fresh reading"):
        gone.add(None)


# -- springs -----------------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    rate=st.floats(200.0, 5000.0),
    zero=st.floats(0.05, 0.15),
    initial=st.sampled_from([0.0, 8.0, 14.0]),
    seed=st.integers(0, 1000),
)
def test_weights_give_rate_and_zero_force_length_whether_coils_touch_or_not(rate, zero, initial, seed) -> None:
    random = np.random.default_rng(seed)
    masses = np.arange(0.25, 5.01, 0.25)
    forces = masses * STANDARD_GRAVITY
    lengths = zero + np.maximum(forces, initial) / rate + random.uniform(-5e-5, 5e-5, masses.size)
    spring = spring_from_weights(masses, lengths, confidence=0.99999)
    assert spring.rate_interval[0] <= rate <= spring.rate_interval[1]
    assert spring.zero_length_interval[0] <= zero <= spring.zero_length_interval[1]
    assert spring.rate == pytest.approx(rate, rel=0.06)
    if initial and initial / rate > 4e-3:
        assert len(spring.in_contact) >= np.sum(forces < initial - 4e-4 * rate) > 0
        assert spring.initial_tension == pytest.approx(initial, abs=2e-4 * rate)


def test_without_the_contact_points_the_spring_would_be_too_stiff() -> None:
    masses = np.arange(0.2, 3.01, 0.2)
    lengths = 0.1 + np.maximum(masses * STANDARD_GRAVITY, 10.0) / 1000.0
    bent = fit_line(masses * STANDARD_GRAVITY, lengths, resolution=0.01)
    spring = spring_from_weights(masses, lengths, resolution=1e-6)
    assert spring.rate == pytest.approx(1000.0, rel=1e-6)
    assert spring.in_contact == tuple(range(5))
    assert 1.0 / bent.slope > 1100.0


def test_a_spring_that_does_not_get_longer_is_refused() -> None:
    with pytest.raises(CalibrationError, match="heavier weights"):
        spring_from_weights([0.1, 0.2, 0.3, 0.4], [0.1, 0.1001, 0.0999, 0.1])
    with pytest.raises(CalibrationError, match="3 or more weights"):
        spring_from_weights([1.0, 2.0], [0.1, 0.2])


# -- the file ----------------------------------------------------------------------------------------------------------


def calibration(slope: float = SLOPE, **changes: object) -> RobotCalibration:
    x, y = points(8, 2)
    fit = fit_line(x, y * slope / SLOPE)
    empty = RobotCalibration("tensebot", "abc", BUS, {}, "2026-11-21T04:00:00Z")
    full = empty.with_sensor("draw_1", SensorCalibration.of("potentiometer", fit, "2026-11-21T05:00:00Z"))
    return RobotCalibration(**{**full.__dict__, **changes})


def test_what_is_saved_is_loaded_to_the_last_bit(tmp_path: Path) -> None:
    path = tmp_path / "tensebot.json"
    saved = save_calibration(path, calibration())
    assert load_calibration(path, **WHOM) == saved
    assert saved.revision == 1
    again = save_calibration(path, saved)
    assert again.revision == 2
    assert load_calibration(path.with_name("tensebot.json.previous"), **WHOM).revision == 1
    assert json.loads(path.read_text())["date"] == "2026-11-21T05:00:00Z"


@pytest.mark.parametrize(
    ("whom", "words"),
    [
        ({"robot": "six_bar"}, "is for robot 'tensebot', not 'six_bar'"),
        ({"hardware": "def"}, "other servo settings"),
        ({"bus": BusIdentity("A9", BUS.servos)}, "adapter 'A9' instead of 'FT4TFPX1'"),
        ({"bus": BusIdentity("FT4TFPX1", BUS.servos[1:])}, "servo 1 is missing"),
        ({"bus": BusIdentity("FT4TFPX1", (*BUS.servos, (30, 12)))}, "servo 30 is new"),
        ({"bus": BusIdentity("FT4TFPX1", ((1, 1060), *BUS.servos[1:]))}, "servo 1 is of model 1060 instead of 12"),
    ],
)
def test_a_calibration_is_never_used_for_another_robot_or_bus(tmp_path: Path, whom, words) -> None:
    path = tmp_path / "tensebot.json"
    save_calibration(path, calibration())
    with pytest.raises(CalibrationError, match=words) as caught:
        load_calibration(path, **{**WHOM, **whom})
    assert str(path) in str(caught.value) and "calibrate" in str(caught.value)


def test_the_order_of_servos_does_not_matter_but_the_wiring_does() -> None:
    assert BUS.difference(BusIdentity(BUS.adapter, BUS.servos[::-1])) is None
    servos = load_robot("tensebot").servos
    shuffled = {**servos, "servos": list(reversed(servos["servos"]))}
    turned = {**servos, "servos": [{**servos["servos"][0], "direction": -1}, *servos["servos"][1:]]}
    assert hardware_fingerprint(servos) == hardware_fingerprint(shuffled) != hardware_fingerprint(turned)


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_a_damaged_file_is_refused_naming_the_file_and_what_to_do(data, tmp_path_factory) -> None:
    path = tmp_path_factory.mktemp("damaged") / "tensebot.json"
    save_calibration(path, calibration())
    whole = path.read_bytes()
    kind = data.draw(st.sampled_from(["cut", "flip", "noise"]))
    if kind == "cut":
        damaged = whole[: data.draw(st.integers(0, len(whole) - 3))]
    elif kind == "flip":
        k = data.draw(st.integers(0, len(whole) - 1))
        damaged = whole[:k] + bytes([whole[k] ^ data.draw(st.integers(1, 255))]) + whole[k + 1 :]
    else:
        damaged = data.draw(st.binary(max_size=200))
    path.write_bytes(damaged)
    try:
        loaded = load_calibration(path, **WHOM)
    except CalibrationError as error:
        said = str(error)
    else:  # white space between fields may change; values may not
        assert loaded == save_calibration(path.with_name("fresh.json"), calibration())
        return
    assert str(path) in said
    assert "calibrate again" in said or "program that wrote it" in said


def test_a_missing_or_unreadable_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(CalibrationError, match="there is no calibration file"):
        load_calibration(tmp_path / "none.json", **WHOM)
    with pytest.raises(CalibrationError, match="cannot be read"):
        load_calibration(tmp_path, **WHOM)
    with pytest.raises(CalibrationError, match="draw_9 was never calibrated"):
        calibration().line("draw_9", "encoder")


def test_another_format_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tensebot.json"
    save_calibration(path, calibration())
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))
    with pytest.raises(CalibrationError, match="format 99"):
        load_calibration(path, **WHOM)


def test_a_calibration_that_somebody_else_saved_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "tensebot.json"
    mine = save_calibration(path, calibration())
    theirs = save_calibration(path, mine)
    with pytest.raises(CalibrationError, match="another program saved it"):
        save_calibration(path, mine)
    assert load_calibration(path, **WHOM) == theirs


def test_a_damaged_file_can_be_replaced_and_is_kept_beside(tmp_path: Path) -> None:
    path = tmp_path / "tensebot.json"
    path.write_text("{ half a fi")
    saved = save_calibration(path, calibration())
    assert load_calibration(path, **WHOM) == saved
    assert path.with_name("tensebot.json.previous").read_text() == "{ half a fi"


FAILURES = ("open", "write", "short write", "fsync", "replace", "chmod")


@pytest.mark.parametrize("at", FAILURES)
@pytest.mark.parametrize("which", [1, 2])  # the copy of the old file fails, or the new one
def test_a_failed_save_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch, at: str, which: int) -> None:
    path = tmp_path / "tensebot.json"
    old = save_calibration(path, calibration())
    before = path.read_bytes()
    calls = {"count": 0}

    def failing(real, when=lambda calls: calls == which):
        def call(*arguments, **keywords):
            calls["count"] += 1
            if when(calls["count"]):
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(*arguments, **keywords)

        return call

    if at == "open":
        monkeypatch.setattr(tempfile, "mkstemp", failing(tempfile.mkstemp))
    elif at == "short write":  # the disk takes half of it and then is full

        def half(handle: int, data) -> int:
            calls["count"] += 1
            if calls["count"] > 2 * (which - 1) + 1:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real_write(handle, bytes(data)[: (len(data) + 1) // 2])

        real_write = os.write
        monkeypatch.setattr(os, "write", half)
    else:
        # the folder is forced to the disk too, after each file: of fsync, the third call is that of the second file
        desired = {1: 1, 2: 3}[which] if at == "fsync" else which
        monkeypatch.setattr(os, at, failing(getattr(os, at), lambda calls: calls == desired))
    with pytest.raises(CalibrationError, match=r"No space left on device.*untouched"):
        save_calibration(path, calibration(slope=2 * SLOPE, revision=1))
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert load_calibration(path, **WHOM) == old
    assert {each.name for each in tmp_path.iterdir()} <= {
        "tensebot.json", "tensebot.json.previous", "tensebot.json.lock",
    }  # fmt: skip


KILLED = """
import itertools, os, signal, sys
from tensegrity_driver.calibration.calibration_file import RobotCalibration, load_calibration, save_calibration
from tensegrity_driver.bus.identity import BusIdentity
bus = BusIdentity("x", ((1, 12),))
path = sys.argv[1]
revision = save_calibration(path, RobotCalibration("r" * 20000, "h", bus, {}, "today")).revision
CALLS = ("open", "write", "fsync", "close", "chmod", "replace")


def die_at(instant):
    count = 0
    def dying(name, real):
        def call(*arguments, **keywords):
            nonlocal count
            count += 1
            if count == instant:
                if name == "write":  # the first half is on the disk
                    real(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **keywords)
        return call
    for name in CALLS:
        setattr(os, name, dying(name, getattr(os, name)))


killed = 0
for instant in itertools.count(1):
    found = load_calibration(path, robot="r" * 20000, hardware="h", bus=bus)
    assert found.revision in (revision, revision + 1), (found.revision, revision)
    revision = found.revision
    child = os.fork()
    if child == 0:
        die_at(instant)
        save_calibration(path, found)
        os._exit(0)
    if os.WIFEXITED(os.waitpid(child, 0)[1]):
        break
    killed += 1
after = load_calibration(path, robot="r" * 20000, hardware="h", bus=bus)
assert after.revision == revision + 1
print(killed)
"""


def test_a_process_that_is_killed_at_any_instant_of_a_save_leaves_a_whole_file(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "robot.json")],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).resolve().parents[3],
    )
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) >= 12  # two files, each opened, written, forced to the disk, closed, given its rights, put


def test_a_really_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "tensebot.json"
    old = save_calibration(path, calibration())
    full = os.open("/dev/full", os.O_WRONLY)
    real = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: real(full, data))
    with pytest.raises(CalibrationError, match="No space left"):
        save_calibration(path, old)
    monkeypatch.undo()
    os.close(full)
    assert load_calibration(path, **WHOM) == old


def test_a_linked_calibration_file_stays_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    saved = save_calibration(real, calibration())
    link.symlink_to(real)
    again = save_calibration(link, saved)
    assert link.is_symlink()
    assert load_calibration(real, **WHOM) == again


# -- spools from a robot's file ----------------------------------------------------------------------------------------


def test_spools_come_from_the_robot_file_and_its_calibration() -> None:
    robot = load_robot("tensebot")
    rough = make_spools(robot, None)
    assert len(rough) == 12
    first = rough["draw_1"]
    assert first.potentiometer is not None
    assert first.potentiometer.slope == pytest.approx(-7.44e-5, rel=1e-3)  # 4.85 mm, ten turns, 12 bits
    assert first.stiffness == pytest.approx(1000 * 4.4482216 / 0.0254, rel=1e-6)
    assert not first.load_at_rest  # an AX-12A pushes only while it is asked to move
    assert first.wrap == pytest.approx(2.0 * np.pi * 4.85e-3)
    assert {type(each).__name__ for each in make_loops(rough, 0.02).values()} == {"FreeRunLoop"}
    tuned = make_loops(rough, 0.02, {"proportional": 4.0})["draw_1"]
    assert isinstance(tuned, FreeRunLoop) and (tuned.proportional, tuned.integral) == (4.0, 4.0)
    with pytest.raises(TensegrityError, match="at most 25 1/s with a cycle of"):
        make_loops(rough, 0.02, {"proportional": 26.0})
    with pytest.raises(CalibrationError, match="saddle_1 was never calibrated"):
        make_spools(robot, calibration())
    full = calibration()
    for name in rough:
        full = full.with_sensor(name, full.sensors["draw_1"]["potentiometer"])
    spools = make_spools(robot, full)
    assert spools["saddle_3"].potentiometer == full.line("saddle_3", "potentiometer")
    assert spools["saddle_3"].encoder is None  # never calibrated, so that it is not compared


def test_a_robot_whose_servos_cannot_be_driven_is_refused() -> None:
    robot = load_robot("tensebot")
    unknown = [{**each, "model": "AX-99"} for each in robot.servos["servos"]]
    with pytest.raises(TensegrityError, match="no servo model 'AX-99'"):
        make_spools(dataclasses.replace(robot, servos={**robot.servos, "servos": unknown}), None)
    with pytest.raises(TensegrityError, match="has no servos"):
        make_spools(load_robot("three_prism"), None)
    servos = [{**each, "potentiometer": None} for each in robot.servos["servos"]]
    with pytest.raises(TensegrityError, match="channel of its `potentiometer`"):
        make_spools(dataclasses.replace(robot, servos={**robot.servos, "servos": servos}), None)
