"""A calibration whose checksum fits and whose contents do not, and turns that no servo has, are refused in words."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile_json import damaged

from tensegrity_driver.bus.identity import BusIdentity
from tensegrity_driver.calibration.calibrated_spools import (
    check_calibration,
    make_spools,
    nominal_lines,
    servo_rows,
    slope_warnings,
)
from tensegrity_driver.calibration.calibration_file import checksum_of, save_calibration
from tensegrity_driver.calibration.calibration_store import CalibrationStore
from tensegrity_driver.calibration.line_fit import CalibrationError
from tensegrity_driver.calibration.turn_counter import load_turns, save_turns, turns_path
from tensegrity_driver.hardware.emulated_hardware import exact_calibration
from tensegrity_driver.spools.readings import ServoReading
from tensegrity_driver.spools.spool import MULTI_TURN_LIMIT_RAD, Line
from tensegrity_driver.spools.transmission import transmission_of
from tensegrity_dynamics import load_robot

ROBOTS = {name: load_robot(name) for name in ("tensebot", "manipulator")}
MIDDLE = {"potentiometer": 2048.0, "encoder": 0.0}


def store_of(name: str, folder: Path) -> CalibrationStore:
    """With a file whose sensors stand in the middle of their readings and of the limits of their actuators."""
    robot, lines = ROBOTS[name], {}
    for servo in servo_rows(robot):
        transmission = transmission_of(robot, servo)
        middle = 0.5 * sum(transmission.winding.position)
        lines[servo["actuator"]] = {
            sensor: Line(line.slope, middle - line.slope * MIDDLE[sensor])
            for sensor, line in nominal_lines(servo, transmission.radius).items()
        }
    identity = BusIdentity("FT4TFPX1", tuple((servo["id"], 12) for servo in servo_rows(robot)))
    save_calibration(folder / "calibration.json", exact_calibration(robot, lines, identity))
    return CalibrationStore(robot, identity, folder / "calibration.json")


def refuse(call: Any, path: Path) -> Any:
    """What a call returns, or None where it is refused in words that name the file and the way out."""
    try:
        return call()
    except CalibrationError as error:
        said = str(error)
    assert str(path) in said and len(said) < 1500
    assert any(word in said for word in ("calibrate again", "home", "put them back")), said
    return None


@pytest.mark.parametrize("name", ROBOTS)
def test_contents_that_no_robot_can_have_are_refused_whatever_their_checksum(name: str, tmp_path: Path) -> None:
    store, random, accepted = store_of(name, tmp_path), np.random.default_rng(len(name)), 0
    path, refused, missing = tmp_path / "calibration.json", 0, 0
    whole = json.loads(path.read_text())
    body = {key: value for key, value in whole.items() if key not in ("format", "checksum")}
    for k in range(200):
        wrong = damaged(body, random, near=k % 2 == 0)
        checksum = checksum_of(json.loads(json.dumps(wrong)))
        path.write_text(json.dumps({"format": whole["format"], "checksum": checksum, **wrong}))
        loaded = refuse(store.load, path)
        if loaded is None:
            continue
        accepted += 1
        assert loaded.revision >= 0 and loaded.robot == name
        try:
            spools = make_spools(store.robot, loaded)
        except CalibrationError as error:  # an actuator, or the sensor that measures it, is not in the file
            missing += "was never calibrated" in str(error)
            refused += 1
            continue
        for servo in servo_rows(store.robot):
            spool = spools[servo["actuator"]]
            line = {"potentiometer": spool.potentiometer, "encoder": spool.encoder}[spool.measured_by]
            nominal = nominal_lines(servo, spool.radius)[spool.measured_by]
            assert line is not None and 0.5 <= line.slope / nominal.slope <= 2.0 and math.isfinite(line.intercept)
            low, high = spool.actuator.position
            reading = line.inverse(float(np.clip(line(MIDDLE[spool.measured_by]), low, high)))
            assert -MULTI_TURN_LIMIT_RAD <= reading <= 4096.0
    assert refused == missing
    assert 0 < accepted < 100  # dates, names that nobody looks at, numbers within their intervals


@pytest.mark.parametrize("ratio", [0.5, 0.75, 0.9, 1.1, 1.25, 1.5])
@pytest.mark.parametrize("name", ROBOTS)
def test_a_slope_that_is_off_by_a_tenth_or_more_is_named_with_its_spool_when_it_is_loaded(
    name: str, ratio: float, tmp_path: Path
) -> None:
    store = store_of(name, tmp_path)
    loaded = store.load()
    assert slope_warnings(store.robot, loaded) == []
    actuator = servo_rows(store.robot)[2]["actuator"]
    (sensor, own), *_ = loaded.sensors[actuator].items()
    slope = ratio * own.slope
    wrong = loaded.with_sensor(actuator, replace(own, slope=slope, slope_interval=(slope, slope)))
    check_calibration(store.robot, wrong)
    (warning,) = slope_warnings(store.robot, wrong)
    assert f"{sensor} of {actuator}: the slope is {ratio:.2f} times" in warning


def test_saved_turns_that_no_servo_can_have_are_refused(tmp_path: Path) -> None:
    store, random, accepted = store_of("manipulator", tmp_path), np.random.default_rng(3), 0
    calibration = store.load()
    spools = make_spools(store.robot, calibration)
    readings = {
        name: ServoReading(name, position=0.1 * k, torque_on=False, load=0.0, current=0.0)
        for k, name in enumerate(spools)
    }
    save_turns(store.path, calibration, spools, readings)
    file = turns_path(store.path)
    whole = json.loads(file.read_text())
    assert all(whole["spools"].values())
    sound = load_turns(store.path, calibration)
    for k in range(400):
        wrong = damaged(whole, random, near=k % 2 == 0)
        file.write_text(json.dumps(wrong))
        loaded = refuse(lambda: load_turns(store.path, calibration), file)
        if loaded is None:
            continue
        accepted += 1
        for name, position in loaded.items():
            assert position is None or name not in sound or position == sound[name]
    assert 0 < accepted < 200  # other revisions, whose turns are void, and spools that are gone


def test_files_of_turns_that_are_cut_or_flipped_never_tell_another_length(tmp_path: Path) -> None:
    store, random = store_of("manipulator", tmp_path), np.random.default_rng(4)
    calibration = store.load()
    spools = make_spools(store.robot, calibration)
    save_turns(
        store.path,
        calibration,
        spools,
        {name: ServoReading(name, position=1.7, load=0.0, current=0.0) for name in spools},
    )
    file = turns_path(store.path)
    whole, sound = file.read_bytes(), load_turns(store.path, calibration)
    for _ in range(400):
        bad = bytearray(whole[: random.integers(len(whole))] if random.random() < 0.2 else whole)
        if bad:
            bad[random.integers(len(bad))] ^= int(random.integers(1, 256))
        file.write_bytes(bytes(bad))
        loaded = refuse(lambda: load_turns(store.path, calibration), file)
        for name, position in (loaded or {}).items():
            assert position is None or name not in sound or abs(position.length - sound[name].length) < 1e-9
