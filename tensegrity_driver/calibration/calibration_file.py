"""Calibration file of a robot: saved atomically, and loaded only for the robot and bus for which it was made.

A new file is written to the same folder, flushed to the disk and renamed, so that a full disk or a power failure keeps
the old file; the previous version remains as `<file>.previous`. A file contains a format version, an increasing
revision, the date, the robot, the bus (serial number of the adapter, ids and models of the servos) and a checksum.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.saved_file import replace_file

from ..bus.identity import BusIdentity
from ..spools.spool import SENSORS, Line
from .file_lock import file_lock
from .line_fit import CalibrationError, LineFit

FORMAT = 1
"""Version of the file format."""
AGAIN = "calibrate again with `tensegrity servo calibrate`"


def _finite(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise CalibrationError(f"{name} {value!r} is no finite number")
    return float(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise CalibrationError(f"{value!r} is no text")
    return value


def _whole(value: Any, least: int = 0) -> int:
    if type(value) is not int or value < least:
        raise CalibrationError(f"{value!r} is no whole number from {least}")
    return value


@dataclass(frozen=True)
class SensorCalibration:
    """Calibrated sensor of one spool.

    Attributes:
        sensor: "potentiometer" or "encoder".
        slope: [m per count, or m/rad]. intercept: [m].
        slope_interval, intercept_interval: confidence intervals (low, high) at the level `confidence`.
        deviation: standard deviation of the points [m]. points: number of points used.
        outliers: number of points left out. date: ISO 8601.
    """

    sensor: str
    slope: float
    intercept: float
    slope_interval: tuple[float, float]
    intercept_interval: tuple[float, float]
    confidence: float
    deviation: float
    points: int
    outliers: int
    date: str

    def __post_init__(self) -> None:
        for name in ("slope_interval", "intercept_interval"):
            low, high = (_finite(name, each) for each in getattr(self, name))
            object.__setattr__(self, name, (low, high))
        for name in ("slope", "intercept", "confidence", "deviation"):
            object.__setattr__(self, name, _finite(name, getattr(self, name)))
        whole = all(type(each) is int for each in (self.points, self.outliers))
        if not (whole and self.points >= 2 and self.outliers >= 0):
            raise CalibrationError(f"a line through {self.points} points without {self.outliers} others is none")
        if self.sensor not in SENSORS or not isinstance(self.date, str):
            raise CalibrationError(
                f"sensor {self.sensor!r} of {self.date!r} is none of {', '.join(SENSORS)} with a date"
            )
        if not (0.0 < self.confidence < 1.0 and self.deviation >= 0.0):
            raise CalibrationError(
                f"confidence {self.confidence} is not between 0 and 1, or deviation {self.deviation} m is below 0"
            )
        for name in ("slope", "intercept"):
            value, interval = getattr(self, name), getattr(self, f"{name}_interval")
            if not interval[0] <= value <= interval[1]:
                raise CalibrationError(f"{name} {value} lies outside its interval {interval}")
        if self.slope == 0.0:
            raise CalibrationError("slope 0 is none")

    @property
    def line(self) -> Line:
        """Line without its statistics."""
        return Line(self.slope, self.intercept)

    @classmethod
    def of(cls, sensor: str, fit: LineFit, date: str) -> SensorCalibration:
        """Calibration of a sensor by a fitted line."""
        return cls(
            sensor=sensor,
            slope=fit.slope,
            intercept=fit.intercept,
            slope_interval=fit.slope_interval,
            intercept_interval=fit.intercept_interval,
            confidence=fit.confidence,
            deviation=fit.deviation,
            points=len(fit.residuals) - len(fit.outliers),
            outliers=len(fit.outliers),
            date=date,
        )


@dataclass(frozen=True)
class RobotCalibration:
    """Calibration of all sensors of one robot on one bus.

    Attributes:
        robot: name of the robot. hardware: fingerprint of its servo block, see `hardware_fingerprint`.
        bus: identity of the bus. sensors: calibrations by actuator, then by sensor.
        date: date of the last change. revision: number that increases with every save.
    """

    robot: str
    hardware: str
    bus: BusIdentity
    sensors: Mapping[str, Mapping[str, SensorCalibration]]
    date: str
    revision: int = 0

    def with_sensor(self, actuator: str, calibration: SensorCalibration) -> RobotCalibration:
        """Copy with one sensor added or replaced."""
        of_actuator = {**self.sensors.get(actuator, {}), calibration.sensor: calibration}
        return replace(self, sensors={**self.sensors, actuator: of_actuator}, date=calibration.date)

    def line(self, actuator: str, sensor: str) -> Line:
        """Line of one sensor; raises CalibrationError if it is not calibrated."""
        try:
            return self.sensors[actuator][sensor].line
        except KeyError:
            raise CalibrationError(f"the {sensor} of {actuator} was never calibrated; {AGAIN}.") from None


def hardware_fingerprint(servos: Mapping[str, Any]) -> str:
    """Hash of the fields of a servo block that affect calibrations: ids, models, radii, gears, directions, channels."""
    defaults = servos.get("defaults") or {}
    rows = []
    for servo in servos.get("servos") or ():
        row = []
        for key in ("actuator", "id", "model", "spool_radius", "direction", "potentiometer"):
            own = servo.get(key)
            row.append(defaults.get(key) if own is None else own)
        gear = servo.get("gear") or defaults.get("gear") or 1.0
        row += [gear] if gear != 1.0 else []
        rows.append(row)
    return hashlib.sha256(json.dumps(sorted(rows, key=str), default=str).encode()).hexdigest()[:16]


def save_calibration(
    path: str | Path,
    calibration: RobotCalibration,
    *,
    before_it_counts: Callable[[RobotCalibration | None, RobotCalibration], None] | None = None,
) -> RobotCalibration:
    """Save a calibration to a file; returns it with its new revision. One program at a time, see `file_lock`.

    Args:
        before_it_counts: function that is called directly before the replacement with the present content of the file
            (None: nothing readable) and the new one. If it raises, nothing is saved.

    Raises:
        CalibrationError: the file could not be written (the old file is unchanged), it has changed since this
            calibration was loaded, or another program holds its lock.
    """
    path = Path(path).resolve()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise CalibrationError(
            f"the folder {path.parent} cannot be made ({problem.strerror}); name another calibration file."
        ) from problem
    with file_lock(path):
        return _replace(path, calibration, before_it_counts)


def _replace(
    path: Path,
    calibration: RobotCalibration,
    before_it_counts: Callable[[RobotCalibration | None, RobotCalibration], None] | None,
) -> RobotCalibration:
    old: bytes | None = None
    there: RobotCalibration | None = None
    if path.exists():
        old = _read(path)
        with contextlib.suppress(CalibrationError):  # a damaged file may be replaced; it is kept as .previous
            there = _parse(path, old)
        if there is not None and there.revision != calibration.revision:
            raise CalibrationError(
                f"{path} holds revision {there.revision}, this calibration came from {calibration.revision}: another "
                "program saved it meanwhile. Load it again and repeat the last step."
            )
    saved = replace(calibration, revision=calibration.revision + 1)
    if old is not None:
        save_atomically(path.with_name(path.name + ".previous"), old)
    if before_it_counts is not None:
        before_it_counts(there, saved)
    save_atomically(path, _serialise(saved))
    return saved


def load_calibration(path: str | Path, *, robot: str, hardware: str, bus: BusIdentity) -> RobotCalibration:
    """Load the calibration of a robot on a bus.

    Raises:
        CalibrationError: no file, or the file is damaged, has another format, or is for another robot, wiring or bus.
    """
    path = Path(path)
    loaded = _parse(path, _read(path))
    if loaded.robot != robot:
        raise CalibrationError(f"{path} is for robot {loaded.robot!r}, not {robot!r}; name its own file, or {AGAIN}.")
    if loaded.hardware != hardware:
        raise CalibrationError(
            f"{path} was made for other servo settings of {robot!r} (ids, directions, radii or channels); put them "
            f"back, or {AGAIN}."
        )
    difference = loaded.bus.difference(bus)
    if difference is not None:
        raise CalibrationError(f"{path} is for another bus: {difference}. Connect that bus, or {AGAIN}.")
    return loaded


def save_atomically(path: Path, data: bytes) -> None:
    """Write a file atomically.

    Raises:
        CalibrationError: the file could not be written; the old file is unchanged.
    """
    try:
        replace_file(path, data)
    except OSError as problem:
        raise CalibrationError(
            f"{path} could not be saved ({problem.strerror or problem}); what was there before is untouched. Free some "
            "space or choose a folder that may be written, and save again."
        ) from problem


def _serialise(calibration: RobotCalibration) -> bytes:
    body = json.loads(json.dumps(asdict(calibration), allow_nan=False))
    return (json.dumps({"format": FORMAT, "checksum": checksum_of(body), **body}, indent=2) + "\n").encode()


def checksum_of(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise CalibrationError(f"there is no calibration file {path}; {AGAIN}.") from None
    except OSError as problem:
        text = problem.strerror or problem
        raise CalibrationError(f"{path} cannot be read ({text}); correct its permissions.") from problem


def _parse(path: Path, data: bytes) -> RobotCalibration:
    """Calibration from the bytes of a file, after verification of the checksum."""
    mend = f"put {path.name}.previous in its place if it is there, or {AGAIN}"
    try:
        body = json.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, ValueError, RecursionError) as problem:
        raise CalibrationError(f"{path} is damaged ({problem}); {mend}.") from problem
    if not isinstance(body, dict) or "format" not in body or "checksum" not in body:
        raise CalibrationError(f"{path} is no calibration file (it carries no format or checksum); {mend}.")
    version, checksum = body.pop("format"), body.pop("checksum")
    if version != FORMAT:
        raise CalibrationError(
            f"{path} is of format {version!r}, this program reads format {FORMAT}; use the program that wrote it, or "
            f"{AGAIN}."
        )
    try:
        fits = checksum == checksum_of(body)
    except RecursionError:
        fits = False
    if not fits:
        raise CalibrationError(f"{path} is damaged or was edited (its checksum does not fit); {mend}.")
    try:
        sensors = {
            actuator: {name: _sensor(actuator, name, each) for name, each in of.items()}
            for actuator, of in body["sensors"].items()
        }
        servos = tuple((_whole(a), _whole(b)) for a, b in body["bus"]["servos"])
        bus = BusIdentity(_text(body["bus"]["adapter"]), servos)
        robot, hardware, date = (_text(body[each]) for each in ("robot", "hardware", "date"))
        return RobotCalibration(robot, hardware, bus, sensors, date, _whole(body["revision"]))
    except KeyError as problem:
        raise CalibrationError(f"{path} lacks the field {problem}; {mend}.") from problem
    except (TypeError, ValueError, AttributeError, OverflowError, TensegrityError) as problem:
        raise CalibrationError(f"{path} has a wrong field ({problem}); {mend}.") from problem


def _sensor(actuator: str, name: str, row: Mapping[str, Any]) -> SensorCalibration:
    try:
        loaded = SensorCalibration(**row)
    except (TypeError, ValueError, OverflowError, CalibrationError) as problem:
        raise CalibrationError(f"{actuator}, {name}: {problem}") from problem
    if loaded.sensor != name:
        raise CalibrationError(f"{actuator}, {name}: it is a {loaded.sensor}")
    return loaded
