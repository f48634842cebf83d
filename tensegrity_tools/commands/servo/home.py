"""`tensegrity servo home`: detection of the reading at which tendons become tight, and correction of the
calibration."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from typing import Any

from tensegrity_driver.calibration.calibration_file import RobotCalibration, SensorCalibration
from tensegrity_driver.calibration.calibration_store import timestamp
from tensegrity_driver.calibration.homing import TightPosition
from tensegrity_driver.calibration.line_fit import CalibrationError
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import TensegrityError

from ...output import console, print_json, progress
from .jog import home
from .measurement_files import read_length
from .prompts import agreed, interactive
from .session import NO_FILE, BusOptions, ServoSession, open_session, select_actuators


@dataclass(frozen=True)
class HomeOptions:
    """Options of the command.

    Attributes:
        bus: ports and calibration file. length: rest length when tight, with its unit; empty: no correction.
        save: save without a question. as_json: print only results as JSON.
    """

    bus: BusOptions = field(default_factory=BusOptions)
    length: str = ""
    save: bool = False
    as_json: bool = False


def run_home(robot_name: str, actuators: list[str], options: HomeOptions) -> None:
    """Home the named tendons one after the other; exits with status 1 if one fails."""
    robot = load_robot(robot_name)
    tight_length = read_length(options.length, "--length") if options.length else None
    if tight_length is not None and len(actuators) != 1:
        raise TensegrityError("--length is the length of one tendon; home one at a time with it.")
    results: dict[str, Any] = {}
    failed = False
    with open_session(robot, options.bus) as session:
        names = select_actuators(robot, actuators)
        calibration = _load_calibration(session, required=tight_length is not None)
        for name in names:
            with progress.status(f"homing {name}: it pays out a little, then winds in slowly; Ctrl-C stops it"):
                homing = home(session, name)
            if homing.result is None:
                failed = True
                results[name] = {"tight": False, "reason": homing.reason}
                if not options.as_json:
                    console.print(f"! {homing.reason}", highlight=False, markup=False)
                continue
            results[name] = _figures(session, calibration, homing.result)
            if not options.as_json:
                _show(session, calibration, homing.result)
            if tight_length is not None and calibration is not None:
                results[name]["saved"] = _correct(session, calibration, homing.result, tight_length, options)
    if options.as_json:
        print_json({"robot": robot.name, "tendons": results})
    if failed:
        sys.exit(1)


def _load_calibration(session: ServoSession, *, required: bool) -> RobotCalibration | None:
    """Calibration of this bus, or None; raises CalibrationError if it is required and cannot be loaded."""
    if not session.store.exists:
        if required:
            raise CalibrationError(
                f"there is no calibration file {session.store.path} to correct; homing gives the intercept alone. "
                "Calibrate it first with `tensegrity servo calibrate`."
            )
        return None
    try:
        return session.store.load()
    except CalibrationError:
        if required:
            raise
        return None


def _sensor(session: ServoSession, calibration: RobotCalibration | None, name: str) -> SensorCalibration | None:
    measured_by = session.uncalibrated_spools()[name].measured_by
    return None if calibration is None else calibration.sensors.get(name, {}).get(measured_by)


def _figures(session: ServoSession, calibration: RobotCalibration | None, result: TightPosition) -> dict[str, Any]:
    sensor = _sensor(session, calibration, result.tendon)
    return {
        "tight": True,
        "reading": result.reading,
        "tension_n": result.tension,
        "friction_n": result.friction,
        "cycles": result.cycles,
        "length_by_calibration_m": None if sensor is None else sensor.line(result.reading),
    }


def _show(session: ServoSession, calibration: RobotCalibration | None, result: TightPosition) -> None:
    spool = session.uncalibrated_spools()[result.tendon]
    unit = "counts" if spool.measured_by == "potentiometer" else "rad"
    console.print(
        f"{result.tendon} is tight at {result.reading:.2f} {unit}, with {result.tension:.0f} N above the "
        f"{result.friction:.0f} N of friction; it was paid out again a little.",
        highlight=False,
    )
    sensor = _sensor(session, calibration, result.tendon)
    if sensor is None:
        console.print("It has no calibration yet: `tensegrity servo calibrate` makes one.")
    else:
        console.print(
            f"By its calibration of {sensor.date[:10]} it is {1e3 * sensor.line(result.reading):.1f} mm long there; if "
            "you know better, home it again with --length.",
            highlight=False,
        )


def _correct(
    session: ServoSession, calibration: RobotCalibration, result: TightPosition, length: float, options: HomeOptions
) -> bool:
    """Shift the calibrated line to the tight position; returns whether the calibration was saved."""
    old = _sensor(session, calibration, result.tendon)
    if old is None:
        raise CalibrationError(
            f"{result.tendon} was never calibrated: homing gives the intercept alone. Calibrate it first with "
            "`tensegrity servo calibrate`."
        )
    line = result.line(old.line, length)
    shift = line.intercept - old.intercept
    low, high = old.intercept_interval
    corrected = replace(old, intercept=line.intercept, intercept_interval=(low + shift, high + shift), date=timestamp())
    quiet, path = options.as_json, session.store.path
    if not quiet:
        console.print(f"That moves all lengths of {result.tendon} by {1e3 * shift:+.1f} mm.", highlight=False)
    if not options.save and (quiet or not interactive() or not agreed(f"Save this to {path}?")):
        if not quiet:
            console.print("Nothing was saved.")
        return False
    if path is None:
        raise CalibrationError(NO_FILE)
    session.store.save(calibration.with_sensor(result.tendon, corrected))
    if not quiet:
        console.print(f"Saved to {path}.", highlight=False)
    return True
