"""`tensegrity servo home`: finds where tendons become tight, says why where it cannot, and corrects the calibration."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from tensegrity_driver.calibration.calibration_file import RobotCalibration, SensorCalibration
from tensegrity_driver.calibration.homing import TightPosition
from tensegrity_driver.calibration.line_fit import CalibrationError
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import TensegrityError

from ...output import console, print_json, progress
from .jog import home
from .measurement_files import read_length
from .prompts import agreed, interactive
from .session import Rig, now, open_rig


def run_home(
    robot_name: str,
    actuators: list[str],
    port: str,
    board: str,
    calibration: Path | None,
    length: str,
    save: bool,
    as_json: bool,
) -> None:
    """The command; see `servo.home_command`."""
    robot = load_robot(robot_name)
    tight = read_length(length, "--length") if length else None
    if tight is not None and len(actuators) != 1:
        raise TensegrityError("--length is the length of one tendon; home one at a time with it.")
    results: dict[str, Any] = {}
    failed = False
    with open_rig(robot, port, board, calibration) as rig:
        names = rig.names(actuators)
        known = _known(rig, needed=tight is not None)
        for name in names:
            with progress.status(f"homing {name}: it pays out a little, then winds in slowly; Ctrl-C stops it"):
                homing = home(rig, name)
            if homing.result is None:
                failed = True
                results[name] = {"tight": False, "reason": homing.reason}
                if not as_json:
                    console.print(f"! {homing.reason}", highlight=False, markup=False)
                continue
            results[name] = _figures(rig, known, homing.result)
            if not as_json:
                _show(rig, known, homing.result)
            if tight is not None and known is not None:
                saved = _correct(rig, known, homing.result, tight, save, as_json)
                results[name]["saved"] = saved
    if as_json:
        print_json({"robot": robot.name, "tendons": results})
    if failed:
        sys.exit(1)


def _known(rig: Rig, *, needed: bool) -> RobotCalibration | None:
    """The calibration of this bus; raises CalibrationError where one is needed and there is none."""
    try:
        found = rig.calibration()
    except CalibrationError:
        if needed:
            raise
        return None
    if found is None and needed:
        raise CalibrationError(
            f"there is no calibration file {rig.path} to correct; homing gives the intercept alone. Calibrate it "
            "first with `tensegrity servo calibrate`."
        )
    return found


def _sensor(rig: Rig, known: RobotCalibration | None, name: str) -> SensorCalibration | None:
    measured_by = rig.rough_spools()[name].measured_by
    return None if known is None else known.sensors.get(name, {}).get(measured_by)


def _figures(rig: Rig, known: RobotCalibration | None, result: TightPosition) -> dict[str, Any]:
    sensor = _sensor(rig, known, result.tendon)
    return {
        "tight": True,
        "reading": result.reading,
        "tension_n": result.tension,
        "friction_n": result.friction,
        "cycles": result.cycles,
        "length_by_calibration_m": None if sensor is None else sensor.line(result.reading),
    }


def _show(rig: Rig, known: RobotCalibration | None, result: TightPosition) -> None:
    spool = rig.rough_spools()[result.tendon]
    unit = "counts" if spool.measured_by == "potentiometer" else "rad"
    console.print(
        f"{result.tendon} is tight at {result.reading:.2f} {unit}, with {result.tension:.0f} N above the "
        f"{result.friction:.0f} N of friction; it was paid out again a little.",
        highlight=False,
    )
    sensor = _sensor(rig, known, result.tendon)
    if sensor is None:
        console.print("It has no calibration yet: `tensegrity servo calibrate` makes one.")
    else:
        console.print(
            f"By its calibration of {sensor.date[:10]} it is {1e3 * sensor.line(result.reading):.1f} mm long there; if "
            "you know better, home it again with --length.",
            highlight=False,
        )


def _correct(rig: Rig, known: RobotCalibration, result: TightPosition, length: float, save: bool, quiet: bool) -> bool:
    """Put the line of the calibration through the place found; whether it was saved."""
    old = _sensor(rig, known, result.tendon)
    if old is None:
        raise CalibrationError(
            f"{result.tendon} was never calibrated: homing gives the intercept alone. Calibrate it first with "
            "`tensegrity servo calibrate`."
        )
    line = result.line(old.line, length)
    shift = line.intercept - old.intercept
    low, high = old.intercept_interval
    fresh = replace(old, intercept=line.intercept, intercept_interval=(low + shift, high + shift), date=now())
    if not quiet:
        console.print(f"That moves all lengths of {result.tendon} by {1e3 * shift:+.1f} mm.", highlight=False)
    if not save and (quiet or not interactive() or not agreed(f"Save this to {rig.path}?")):
        if not quiet:
            console.print("Nothing was saved.")
        return False
    rig.save(known.with_sensor(result.tendon, fresh))
    if not quiet:
        console.print(f"Saved to {rig.path}.", highlight=False)
    return True
