"""`tensegrity servo calibrate`: measured points from a user or a file, a robust fit, and the calibration file."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer

from tensegrity_driver.bus.potentiometer_protocol import RADIANS_PER_COUNT
from tensegrity_driver.calibration.calibrated_spools import fit_spool, make_spools
from tensegrity_driver.calibration.calibration_file import RobotCalibration
from tensegrity_driver.calibration.calibration_store import CalibrationStore, with_fit
from tensegrity_driver.calibration.line_fit import CalibrationCheck, CalibrationError, SteadyReading
from tensegrity_driver.spools.readings import ServoReading
from tensegrity_driver.spools.spool import Spool
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robots.robot import Robot

from ...output import console, print_json, print_table, table
from .jog import DEFAULT_TENSION_SHARE, jog, torque_off
from .measurement_files import Point, read_amount, read_length, read_points
from .prompts import agreed, ask, interactive
from .session import NO_FILE, BusOptions, ServoSession, open_session, select_actuators

RECOMMENDED_POINTS = 5
"""Number of points requested from a user; fewer points give a warning."""
MAX_SCATTER = {"potentiometer": 3.0, "encoder": 0.02}
"""Largest difference between readings of a sensor at rest [counts, rad]."""
UNITS = {"potentiometer": "counts", "encoder": "rad"}
HELP = """\
  215 mm     the measured length: adds a point            undo   remove the last point
  +5, -5     pay out, wind in, by this many mm            done   fit the line
  off        torque off, to turn the spool by hand        skip   leave this spool unchanged
                                                          quit   end; saved calibrations stay"""


@dataclass(frozen=True)
class CalibrateOptions:
    """Options of the command.

    Attributes:
        bus: ports and calibration file. points: file of measured points; None: a user enters the points.
        save: save without a question. anew: replace a file that is damaged or for another bus or robot.
        tension: tension limit of jogs, with its unit; empty: a fifth of the effort.
        rule: resolution of lengths, with its unit. as_json: print only results as JSON.
    """

    bus: BusOptions = field(default_factory=BusOptions)
    points: Path | None = None
    save: bool = False
    anew: bool = False
    tension: str = ""
    rule: str = "0.2 mm"
    as_json: bool = False

    @property
    def resolution(self) -> float:
        """Resolution of measured lengths [m]; raises TensegrityError if it is not a length."""
        return read_amount(self.rule, "length", "--rule")


@dataclass(frozen=True)
class Fitted:
    """One spool with its points and its fit."""

    spool: Spool
    points: Sequence[Point]
    check: CalibrationCheck

    @property
    def radius(self) -> float:
        """Radius of the spool by the fitted slope [m]."""
        slope = abs(self.check.fit.slope)
        return slope / RADIANS_PER_COUNT if self.spool.measured_by == "potentiometer" else slope


def run_calibrate(robot_name: str, actuators: list[str], options: CalibrateOptions) -> None:
    """Calibrate the named spools, or all, with a file of points or a user at the terminal."""
    robot = load_robot(robot_name)
    resolution = options.resolution
    names = select_actuators(robot, actuators)
    if options.points is not None:
        _from_file(robot, names, options.points, options)
        return
    if options.as_json:
        raise TensegrityError("--json needs --points, which asks no questions; leave it out, or name a file.")
    tension = read_amount(options.tension, "force", "--tension") if options.tension else None
    with open_session(robot, options.bus) as session:
        changes = CalibrationChanges(session.store, options.anew)
        for name in names:
            fitted = _guided(session, name, resolution, tension)
            if fitted is None:
                continue
            if session.store.path is None:
                console.print(f"Nothing is saved: {NO_FILE}", highlight=False)
                continue
            changes.add(fitted)
            if options.save or agreed(f"Save this calibration of {name} to {session.store.path}?"):
                changes.save()
                console.print(f"Saved to {session.store.path}.", highlight=False)
            else:
                changes.discard()


class CalibrationChanges:
    """Fits to add to the calibration of a bus, saved together.

    Args:
        store: store of the calibration. anew: replace a file that is damaged or for another bus or robot.

    Raises:
        CalibrationError: there is a file that is not for this bus, and not `anew`.
    """

    def __init__(self, store: CalibrationStore, anew: bool) -> None:
        self.store = store
        try:
            self._saved = store.load() if store.exists else store.empty()
        except CalibrationError as error:
            if not anew:
                raise CalibrationError(f"{error} (--anew replaces it by a new file.)") from error
            self._saved = store.empty(_revision(store.path))
        self._changed: RobotCalibration = self._saved

    def add(self, fitted: Fitted) -> None:
        """Add one fit."""
        self._changed = with_fit(self._changed, fitted.spool.name, fitted.spool.measured_by, fitted.check.fit)

    def discard(self) -> None:
        """Discard the fits that were not saved."""
        self._changed = self._saved

    def save(self) -> None:
        """Save all fits; raises CalibrationError."""
        self._saved = self._changed = self.store.save(self._changed)


def _revision(path: Path | None) -> int:
    """Revision of a file that is to be replaced; zero for a damaged one."""
    if path is not None:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            return int(json.loads(path.read_bytes())["revision"])
    return 0


def fit_points(robot: Robot, spool: Spool, points: Sequence[Point], resolution: float) -> Fitted:
    """Line fit to the points of one spool, compared with its radius; raises CalibrationError."""
    readings, lengths = [each.reading for each in points], [each.length for each in points]
    return Fitted(spool, points, fit_spool(robot, spool, readings, lengths, resolution=resolution))


# -- points from a file ----------------------------------------------------------------------------------------------


def _from_file(robot: Robot, names: list[str], path: Path, options: CalibrateOptions) -> None:
    spools = make_spools(robot, None)
    points = {name: each for name, each in read_points(path, list(spools)).items() if name in names}
    if not points:
        raise TensegrityError(f"{path} holds no points of {', '.join(names)}.")
    fits: dict[str, Fitted] = {}
    refused: dict[str, str] = {}
    for name, each in points.items():
        try:
            fits[name] = fit_points(robot, spools[name], each, options.resolution)
        except CalibrationError as error:
            refused[name] = str(error)
    if not options.as_json:
        for fitted in fits.values():
            show_fit(fitted)
        for reason in refused.values():
            console.print(f"! {reason}", highlight=False, markup=False)
    file = _save_fits(robot, list(fits.values()), options) if fits else None
    if options.as_json:
        print_json({
            "robot": robot.name, "points": str(path), "saved": file is not None, "file": file,
            "spools": {name: fit_figures(each) for name, each in fits.items()}, "refused": refused,
        })  # fmt: skip
    if refused:
        sys.exit(1)


def _save_fits(robot: Robot, fits: Sequence[Fitted], options: CalibrateOptions) -> str | None:
    """Save fits for the bus at the port, after a check of it; returns the path of the file, or None."""
    names, quiet = ", ".join(each.spool.name for each in fits), options.as_json
    if not options.save and (quiet or not interactive() or not options.bus.port):
        if not quiet:
            console.print("Nothing was saved: add --save, and the --port of the servos that this is for.")
        return None
    with open_session(robot, options.bus) as session:
        path = session.store.path
        if path is None:
            raise CalibrationError(NO_FILE)
        changes = CalibrationChanges(session.store, options.anew)
        for fitted in fits:
            changes.add(fitted)
        if not options.save and not agreed(f"Save the calibration of {names} to {path}?"):
            return None
        changes.save()
        if not quiet:
            console.print(f"Saved the calibration of {names} to {path}.", highlight=False)
        return str(path)


# -- points from a user ----------------------------------------------------------------------------------------------


def _guided(session: ServoSession, name: str, resolution: float, tension: float | None) -> Fitted | None:
    """Points of one spool from a user, and their fit; None for a skipped spool."""
    spool = session.uncalibrated_spools()[name]
    effort = spool.actuator.effort
    limit = DEFAULT_TENSION_SHARE * effort if tension is None else min(tension, effort)
    low, high = spool.actuator.position
    servo = session.bus.servos[name]
    console.print(f"\n[bold]{name}[/bold]: servo {servo.id}, measured by its {spool.measured_by}", highlight=False)
    console.print(
        f"Measure the string, straight and just tight, at {RECOMMENDED_POINTS} or more positions between "
        f"{1e3 * low:.0f} and {1e3 * high:.0f} mm.\n{HELP}\n"
        f"Jogs pull with at most {limit:.0f} N (--tension); a tighter string pulls the spool along.",
        highlight=False,
    )
    points: list[Point] = []
    while True:
        answer = ask(f"{name} {len(points) + 1}>", lambda: _live(session, spool))
        try:
            if answer == "skip":
                return None
            if answer == "quit":
                raise typer.Exit()
            if answer == "done":
                fitted = fit_points(session.robot, spool, points, resolution)
                show_fit(fitted)
                return fitted
            _execute(session, spool, answer, points, limit)
        except TensegrityError as error:
            if not session.bus.bus.port.is_open:
                raise
            console.print(f"! {error}", highlight=False, markup=False)


def _execute(session: ServoSession, spool: Spool, answer: str, points: list[Point], tension: float) -> None:
    """Execute one answer of the user; raises TensegrityError if this is impossible."""
    name, unit = spool.name, UNITS[spool.measured_by]
    if not answer:
        return
    if answer in ("help", "?"):
        console.print(HELP, highlight=False)
    elif answer == "off":
        torque_off(session, name)
        console.print("Torque is off; turn the spool by hand.")
    elif answer == "undo":
        if points:
            removed = points.pop()
            console.print(f"Removed {removed.reading:.2f} {unit}, {1e3 * removed.length:.1f} mm.", highlight=False)
    elif answer[0] in "+-":
        distance = 1e-3 * read_amount(answer, "number", "jog")
        moved = jog(session, name, distance, tension)
        short = "" if abs(moved) > 0.8 * abs(distance) else f"; more than the {tension:.0f} N of --tension held it"
        console.print(f"It moved by {1e3 * moved:+.1f} mm{short}.", highlight=False)
    else:
        length = read_length(answer, answer)
        reading = _steady(session, spool)
        points.append(Point(reading, length, f"point {len(points) + 1}"))
        console.print(f"Point {len(points)}: {reading:.2f} {unit}, {1e3 * length:.1f} mm.", highlight=False)


def _reading(spool: Spool, raw: ServoReading) -> tuple[float | None, int]:
    """Reading of the position-loop sensor of a spool, and its age [cycles]."""
    if spool.measured_by == "potentiometer":
        return raw.sensor, raw.sensor_age
    return raw.position, raw.age


def _steady(session: ServoSession, spool: Spool) -> float:
    """Mean reading of a sensor at rest; raises CalibrationError if it moves or gives no reading."""
    steady = SteadyReading(spool.name, scatter=MAX_SCATTER[spool.measured_by])
    while True:
        mean = steady.add(*_reading(spool, session.read()[spool.name]))
        if mean is not None:
            return mean


def _live(session: ServoSession, spool: Spool) -> str:
    """Text with the present readings of the sensors of a spool, one line."""
    raw = session.read()[spool.name]
    reading, age = _reading(spool, raw)
    text = "no reading" if reading is None or age > 0 else f"{reading:8.2f} {UNITS[spool.measured_by]}"
    parts = [f"reading {text}"]
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


# -- output ----------------------------------------------------------------------------------------------------------


def fit_figures(fitted: Fitted) -> Mapping[str, Any]:
    """Results of a fit for JSON."""
    fit = fitted.check.fit
    return {
        "sensor": fitted.spool.measured_by, "slope": fit.slope, "slope_interval": fit.slope_interval,
        "intercept_m": fit.intercept, "intercept_interval": fit.intercept_interval, "confidence": fit.confidence,
        "deviation_m": fit.deviation, "residuals_m": fit.residuals, "outliers": fit.outliers,
        "spool_radius_m": fitted.radius, "warnings": fitted.check.warnings,
    }  # fmt: skip


def show_fit(fitted: Fitted) -> None:
    """Print a fit: points, residuals, line, warnings."""
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
    print_table(table(title, ("point", unit, "length", "residual", ""), rows, right=(1, 2, 3)))
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
    if len(fitted.points) < RECOMMENDED_POINTS:
        console.print(f"! {len(fitted.points)} points are few; {RECOMMENDED_POINTS} or more reveal outliers.")
    for warning in fitted.check.warnings:
        console.print(f"! {warning}", highlight=False, markup=False)
