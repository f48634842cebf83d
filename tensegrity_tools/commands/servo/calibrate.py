"""`tensegrity servo calibrate`: points from a person or a file, a robust fit, and the calibration file."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from tensegrity_driver.calibration.calibrated_spools import COUNT, make_spools, rough_lines
from tensegrity_driver.calibration.calibration_file import RobotCalibration, SensorCalibration
from tensegrity_driver.calibration.line_fit import CalibrationCheck, CalibrationError, SteadyReading, calibrate_spool
from tensegrity_driver.hardware.settings import servo_rows
from tensegrity_driver.spools.readings import Spool
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robots.robot import Robot

from ...output import console, print_json, table
from .jog import SHARE, jog, let_go
from .measurement_files import Point, read_amount, read_length, read_points
from .prompts import agreed, ask, interactive
from .session import NO_FILE, Rig, known_names, now, open_rig

ENOUGH = 5
"""Points that a person is asked for; fewer are said to be few."""
SCATTER = {"potentiometer": 3.0, "encoder": 0.02}
"""How far readings of a resting sensor may lie apart: counts, rad."""
UNITS = {"potentiometer": "counts", "encoder": "rad"}
HELP = """\
  215 mm     the length that you measure now: a point     undo   forget the last point
  +5, -5     pay out, wind in, by so many mm              done   fit the line
  off        let go of the servo, to turn it by hand      skip   leave this spool as it is
                                                          quit   end; what was saved stays"""


@dataclass(frozen=True)
class Fitted:
    """One spool with its points and its fit."""

    spool: Spool
    points: Sequence[Point]
    check: CalibrationCheck

    @property
    def radius(self) -> float:
        """m of the spool that the slope stands for."""
        slope = abs(self.check.fit.slope)
        return slope / COUNT if self.spool.measured_by == "potentiometer" else slope


def run_calibrate(
    robot_name: str,
    actuators: list[str],
    port: str,
    board: str,
    points: Path | None,
    calibration: Path | None,
    save: bool,
    anew: bool,
    tension: str,
    rule: str,
    as_json: bool,
) -> None:
    """The command; see `servo.calibrate_command`."""
    robot = load_robot(robot_name)
    resolution = read_amount(rule, "length", "--rule")
    names = known_names([str(row["actuator"]) for row in servo_rows(robot)], actuators)
    if points is not None:
        _from_file(robot, names, points, port, board, calibration, save, anew, resolution, as_json)
        return
    if as_json:
        raise TensegrityError("--json goes with --points, where nobody is asked; leave it out, or name a file.")
    pull = read_amount(tension, "force", "--tension") if tension else None
    with open_rig(robot, port, board, calibration) as rig:
        keeper = Keeper(rig, anew)
        for name in names:
            fitted = _guided(rig, name, resolution, pull)
            if fitted is None:
                continue
            if rig.path is None:
                console.print(f"Nothing is saved: {NO_FILE}", highlight=False)
                continue
            keeper.take(fitted)
            if save or agreed(f"Save this calibration of {name} to {keeper.where}?"):
                keeper.save()
                console.print(f"Saved to {keeper.where}.", highlight=False)
            else:
                keeper.forget()


class Keeper:
    """Puts fits into the calibration of a bus, and saves that.

    Args:
        rig: the bus. anew: start a new file where the old one is for another bus or robot, or damaged.

    Raises:
        CalibrationError: there is a file, but not for this bus.
    """

    def __init__(self, rig: Rig, anew: bool) -> None:
        self.rig = rig
        try:
            self.saved = rig.calibration() or rig.empty_calibration()
        except CalibrationError as problem:
            if not anew:
                raise CalibrationError(f"{problem} (--anew puts a new file in its place.)") from problem
            self.saved = rig.empty_calibration(_revision(rig.path))
        self.fresh: RobotCalibration = self.saved

    @property
    def where(self) -> str:
        """The file, for messages."""
        return str(self.rig.path)

    def take(self, fitted: Fitted) -> None:
        """Put one fit in."""
        sensor = SensorCalibration.of(fitted.spool.measured_by, fitted.check.fit, now())
        self.fresh = self.fresh.with_sensor(fitted.spool.name, sensor)

    def forget(self) -> None:
        """Go back to what was saved."""
        self.fresh = self.saved

    def save(self) -> None:
        """Save all that was taken; raises CalibrationError."""
        self.saved = self.fresh = self.rig.save(self.fresh)


def _revision(path: Path | None) -> int:
    """Revision of a file that is to be replaced; zero for a damaged one, which has none."""
    if path is not None:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            return int(json.loads(path.read_bytes())["revision"])
    return 0


def fit_points(robot: Robot, spool: Spool, points: Sequence[Point], resolution: float) -> Fitted:
    """The line through the points of one spool, compared with what its radius gives; raises CalibrationError."""
    row = next(each for each in servo_rows(robot) if each["actuator"] == spool.name)
    check = calibrate_spool(
        spool.name,
        [each.reading for each in points],
        [each.length for each in points],
        expected_slope=rough_lines(row)[spool.measured_by].slope,
        limits=spool.actuator.position,
        resolution=resolution,
    )
    return Fitted(spool, points, check)


# -- from a file -----------------------------------------------------------------------------------------------------


def _from_file(
    robot: Robot,
    names: list[str],
    path: Path,
    port: str,
    board: str,
    calibration: Path | None,
    save: bool,
    anew: bool,
    resolution: float,
    as_json: bool,
) -> None:
    spools = make_spools(robot, None)
    points = {name: each for name, each in read_points(path, list(spools)).items() if name in names}
    if not points:
        raise TensegrityError(f"{path} holds no points of {', '.join(names)}.")
    fits: dict[str, Fitted] = {}
    refused: dict[str, str] = {}
    for name, each in points.items():
        try:
            fits[name] = fit_points(robot, spools[name], each, resolution)
        except CalibrationError as problem:
            refused[name] = str(problem)
    if not as_json:
        for fitted in fits.values():
            show_fit(fitted)
        for reason in refused.values():
            console.print(f"! {reason}", highlight=False, markup=False)
    where = _save_fits(robot, list(fits.values()), port, board, calibration, save, anew, as_json) if fits else None
    if as_json:
        print_json({
            "robot": robot.name, "points": str(path), "saved": where is not None, "file": where,
            "spools": {name: fit_figures(each) for name, each in fits.items()}, "refused": refused,
        })  # fmt: skip
    if refused:
        sys.exit(1)


def _save_fits(
    robot: Robot,
    fits: Sequence[Fitted],
    port: str,
    board: str,
    calibration: Path | None,
    save: bool,
    anew: bool,
    quiet: bool,
) -> str | None:
    """Save after a look at the bus that the calibration is for; where it was saved, or None."""
    names = ", ".join(each.spool.name for each in fits)
    if not save and (quiet or not interactive() or not port):
        if not quiet:
            console.print("Nothing was saved: add --save, and the --port of the servos that this is for.")
        return None
    with open_rig(robot, port, board, calibration) as rig:
        if rig.path is None:
            raise CalibrationError(NO_FILE)
        keeper = Keeper(rig, anew)
        for fitted in fits:
            keeper.take(fitted)
        if not save and not agreed(f"Save the calibration of {names} to {keeper.where}?"):
            return None
        keeper.save()
        if not quiet:
            console.print(f"Saved the calibration of {names} to {keeper.where}.", highlight=False)
        return str(rig.path)


# -- with a person ---------------------------------------------------------------------------------------------------


def _guided(rig: Rig, name: str, resolution: float, tension: float | None) -> Fitted | None:
    """Points of one spool from a person, and their fit; None where the spool is left out."""
    spool = rig.rough_spools()[name]
    pull = SHARE * spool.actuator.effort if tension is None else min(tension, spool.actuator.effort)
    low, high = spool.actuator.position
    servo = rig.bus.servos[name]
    console.print(f"\n[bold]{name}[/bold]: servo {servo.id}, measured by its {spool.measured_by}", highlight=False)
    console.print(
        f"Measure the string, straight and just tight, at {ENOUGH} or more places between {1e3 * low:.0f} and "
        f"{1e3 * high:.0f} mm.\n{HELP}\n"
        f"Jogs pull with at most {pull:.0f} N (--tension); a tighter string pulls the spool along.",
        highlight=False,
    )
    points: list[Point] = []
    while True:
        answer = ask(f"{name} {len(points) + 1}>", lambda: _live(rig, spool))
        try:
            if answer == "skip":
                return None
            if answer == "quit":
                raise typer.Exit()
            if answer == "done":
                fitted = fit_points(rig.robot, spool, points, resolution)
                show_fit(fitted)
                return fitted
            _obey(rig, spool, answer, points, pull)
        except TensegrityError as problem:
            if not rig.bus.bus.port.is_open:
                raise
            console.print(f"! {problem}", highlight=False, markup=False)


def _obey(rig: Rig, spool: Spool, answer: str, points: list[Point], tension: float) -> None:
    """Do what was typed; raises TensegrityError for what cannot be done."""
    name, unit = spool.name, UNITS[spool.measured_by]
    if not answer:
        return
    if answer in ("help", "?"):
        console.print(HELP, highlight=False)
    elif answer == "off":
        let_go(rig, name)
        console.print("The servo lets go; turn the spool by hand.")
    elif answer == "undo":
        if points:
            gone = points.pop()
            console.print(f"Forgot {gone.reading:.2f} {unit}, {1e3 * gone.length:.1f} mm.", highlight=False)
    elif answer[0] in "+-":
        distance = 1e-3 * read_amount(answer, "number", "jog")
        moved = jog(rig, name, distance, tension)
        came = "" if abs(moved) > 0.8 * abs(distance) else f"; more than the {tension:.0f} N of --tension held it"
        console.print(f"It moved by {1e3 * moved:+.1f} mm{came}.", highlight=False)
    else:
        length = read_length(answer, answer)
        reading = _steady(rig, spool)
        points.append(Point(reading, length, f"point {len(points) + 1}"))
        console.print(f"Point {len(points)}: {reading:.2f} {unit}, {1e3 * length:.1f} mm.", highlight=False)


def _reading(spool: Spool, raw: Any) -> tuple[float | None, int]:
    """What the measuring sensor of a spool says, and for how many cycles it has said nothing new."""
    if spool.measured_by == "potentiometer":
        return raw.sensor, raw.sensor_age
    return raw.position, raw.age


def _steady(rig: Rig, spool: Spool) -> float:
    """The reading of a resting sensor; raises CalibrationError where it moves or is silent."""
    steady = SteadyReading(spool.name, scatter=SCATTER[spool.measured_by])
    while True:
        mean = steady.add(*_reading(spool, rig.read()[spool.name]))
        if mean is not None:
            return mean


def _live(rig: Rig, spool: Spool) -> str:
    """One line on what the sensors of a spool say now."""
    raw = rig.read()[spool.name]
    reading, age = _reading(spool, raw)
    said = "no reading" if reading is None or age > 0 else f"{reading:8.2f} {UNITS[spool.measured_by]}"
    parts = [f"reading {said}"]
    if raw.load is not None:
        parts.append(f"load {100 * raw.load:+.0f} %")
    if raw.current is not None:
        parts.append(f"current {raw.current:+.2f} A")
    if raw.temperature is not None:
        parts.append(f"{raw.temperature:.0f} °C")
    parts.append("torque on" if raw.torque_on else "torque off")
    if raw.errors:
        parts.append("! " + ", ".join(sorted(raw.errors)))
    return "  ".join(parts)


# -- showing ---------------------------------------------------------------------------------------------------------


def fit_figures(fitted: Fitted) -> Mapping[str, Any]:
    """A fit as JSON holds it."""
    fit = fitted.check.fit
    return {
        "sensor": fitted.spool.measured_by, "slope": fit.slope, "slope_interval": fit.slope_interval,
        "intercept_m": fit.intercept, "intercept_interval": fit.intercept_interval, "confidence": fit.confidence,
        "deviation_m": fit.deviation, "residuals_m": fit.residuals, "outliers": fit.outliers,
        "spool_radius_m": fitted.radius, "warnings": fitted.check.warnings,
    }  # fmt: skip


def show_fit(fitted: Fitted) -> None:
    """A fit for people: points, residuals, line, warnings."""
    fit, spool = fitted.check.fit, fitted.spool
    unit = UNITS[spool.measured_by]
    rows = [
        (
            k + 1,
            f"{point.reading:.2f}",
            f"{1e3 * point.length:.1f} mm",
            f"{1e3 * off:+.2f} mm",
            "left out" if k in fit.outliers else "",
        )
        for k, (point, off) in enumerate(zip(fitted.points, fit.residuals, strict=True))
    ]
    title = f"{spool.name}, {spool.measured_by}"
    console.print(table(title, ("point", unit, "length", "off the line", ""), rows, right=(1, 2, 3)))
    low, high = (1e3 * each for each in fit.slope_interval)
    one = "count" if unit == "counts" else unit
    console.print(
        f"length = {1e3 * fit.intercept:.2f} mm {'-' if fit.slope < 0 else '+'} {1e3 * abs(fit.slope):.5f} mm/{one} · "
        f"reading",
        highlight=False,
    )
    console.print(
        f"slope, {100 * fit.confidence:.0f} %: {low:.5f} to {high:.5f}; points scatter by {1e3 * fit.deviation:.2f} "
        f"mm; spool radius by this {1e3 * fitted.radius:.3f} mm, by the robot file {1e3 * spool.radius:.3f} mm",
        highlight=False,
    )
    if len(fitted.points) < ENOUGH:
        console.print(f"! {len(fitted.points)} points are few; {ENOUGH} or more tell bad ones from good.")
    for warning in fitted.check.warnings:
        console.print(f"! {warning}", highlight=False, markup=False)
