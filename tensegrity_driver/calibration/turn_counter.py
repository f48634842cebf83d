"""Turn counts of multi-turn servos across power cycles: saved at the end of a driver, compared at the start of the next
one.

A servo without supply loses all whole turns, and no register shows how many. So encoder position and length of every
spool are saved in a file beside the calibration file, for one revision of it. From the start of a driver, before torque
is switched on, until its end the saved values are void. Those of a spool with a tight tendon remain void at the end,
since it unwinds without supply. If a saved value is void and its servo was switched off, the spool is refused. Homing
or calibrating a spool saves its present position and leaves those of the other spools unchanged.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tensegrity_dynamics.errors import CommandRefused

from ..spools.readings import ServoReading, finite
from ..spools.spool import MULTI_TURN_LIMIT_RAD, Line, Spool
from .calibration_file import RobotCalibration, save_atomically
from .line_fit import CalibrationError

SAME_POSITION_TURNS = 0.02
"""Largest distance from the saved length for an unmoved spool [turn]."""
SAME_LENGTH = 1e-9
"""Largest rounding difference between a saved length and the length measured at the saved position [m]."""
MAX_FILE_BYTES = 1_000_000
MAX_LOOSE_TENSION = 0.02
"""Largest tension for a spool to keep its position without supply, as a fraction of the effort of its actuator."""
MAX_TURN_REMAINDER = 0.25
"""Largest deviation from a whole number of lost turns that still identifies the number [turn]."""


@dataclass(frozen=True)
class SavedPosition:
    """Position of one spool at the end of a driver: encoder [rad] and rest length [m]."""

    position: float
    length: float


def turns_path(calibration: Path) -> Path:
    """Path of the file of turn counts for a calibration file."""
    return calibration.with_name(calibration.name + ".turns")


def _counts_turns(spool: Spool) -> bool:
    return spool.encoder is not None and not spool.encoder_turn


def void_turns(path: Path, calibration: RobotCalibration, spools: Mapping[str, Spool]) -> None:
    """Mark the positions of all spools with multi-turn servos as void; without such spools nothing is written.

    Args:
        path: path of the calibration file.
        calibration: calibration; its revision is saved as well.
        spools: spools by actuator.

    Raises:
        CalibrationError: the file could not be written; without it lost turns would remain undetected.
    """
    _save(path, calibration.revision, {name: None for name, spool in spools.items() if _counts_turns(spool)})


def save_turns(
    path: Path,
    calibration: RobotCalibration,
    spools: Mapping[str, Spool],
    readings: Mapping[str, ServoReading],
    doubtful: Collection[str] = (),
) -> None:
    """Save the positions of spools with multi-turn servos; without such spools no file is written.

    Args:
        path: path of the calibration file.
        calibration: calibration; its revision is saved as well.
        spools, readings: spools and readings by actuator.
        doubtful: actuators with doubtful lengths. They remain void, like those with tight tendons.

    Raises:
        CalibrationError: the file could not be written.
    """
    positions = {
        name: None if name in doubtful else _saved_position(spool, spool.encoder, readings.get(name))
        for name, spool in spools.items()
        if _counts_turns(spool)
    }
    _save(path, calibration.revision, positions)


def _saved_position(spool: Spool, encoder: Line | None, reading: ServoReading | None) -> SavedPosition | None:
    """Position of a spool, if it will keep it without supply; else None."""
    if reading is None or encoder is None or reading.age > 0 or not finite(reading.position):
        return None
    loose = spool.tension(reading) <= MAX_LOOSE_TENSION * spool.actuator.effort
    assert reading.position is not None
    return SavedPosition(reading.position, encoder(reading.position)) if loose else None


def renew_turns(
    path: Path,
    before: RobotCalibration | None,
    saved: RobotCalibration,
    spools: Mapping[str, Spool],
    readings: Mapping[str, ServoReading],
) -> None:
    """Save the positions of the spools that were calibrated between two revisions; the others remain unchanged, void or
    not.

    Args:
        path: path of the calibration file.
        before: present content of the file; None if there is none.
        saved: future content of the file.
        spools: spools by actuator, with any calibration.
        readings: present readings of the servos; spools without a reading become void.

    Raises:
        CalibrationError: the file could not be written.
    """
    old = {} if before is None else before.sensors
    try:
        kept = {} if before is None else load_turns(path, before)
    except CalibrationError:  # all positions are unknown; calibrating repairs the file
        kept = dict.fromkeys(spools)
    positions: dict[str, SavedPosition | None] = {}
    for name, spool in spools.items():
        encoder = saved.sensors.get(name, {}).get("encoder")
        if spool.encoder is None or spool.encoder_turn or encoder is None:
            continue
        if old.get(name) != saved.sensors.get(name):
            reading = readings.get(name)
            if reading is not None and reading.torque_on is False:
                reading = replace(reading, load=0.0, current=0.0)  # the reading was taken without torque
            positions[name] = _saved_position(spool, encoder.line, reading)
        elif name in kept:
            positions[name] = kept[name]
    _save(path, saved.revision, positions)


def _save(path: Path, revision: int, positions: Mapping[str, SavedPosition | None]) -> None:
    if positions or turns_path(path).exists():
        spools = {name: each and [each.position, each.length] for name, each in positions.items()}
        save_atomically(turns_path(path), json.dumps({"revision": revision, "spools": spools}).encode())


def load_turns(path: Path, calibration: RobotCalibration) -> dict[str, SavedPosition | None]:
    """Saved positions by actuator; None for void ones and for those of another revision; empty without a file.

    Raises:
        CalibrationError: the file cannot be read, or is damaged.
    """
    file = turns_path(path)
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise ValueError("it is far too long")
        body = json.loads(file.read_bytes())
        if type(body["revision"]) is not int:
            raise ValueError("its revision is no number")
        positions = {str(name): _position(each) for name, each in body["spools"].items()}
        if body["revision"] != calibration.revision:
            return dict.fromkeys(positions)
        for name, saved in positions.items():
            encoder = calibration.sensors.get(name, {}).get("encoder")
            if saved is not None and encoder is not None:
                _check_pair(name, saved, encoder.line)
        return positions
    except FileNotFoundError:
        return {}
    except OSError as problem:
        raise CalibrationError(
            f"{file} cannot be read ({problem.strerror or problem}); correct its permissions."
        ) from problem
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as problem:
        raise CalibrationError(
            f"{file} is damaged ({type(problem).__name__}: {problem}), so it is unknown whether turns were lost; "
            "home the tendons of the servos that were switched off, or delete it if you know that none was."
        ) from problem


def _position(row: object) -> SavedPosition | None:
    if row is None:
        return None
    if not isinstance(row, list) or len(row) != 2 or not all(type(each) in (int, float) for each in row):
        raise ValueError(f"{str(row)[:40]} is no position with a length")
    position, length = (float(each) for each in row)
    if not (math.isfinite(position) and math.isfinite(length)):
        raise ValueError(f"{position:g} rad and {length:g} m are no position with a length")
    return SavedPosition(position, length)


def _check_pair(name: str, saved: SavedPosition, line: Line) -> None:
    measured = line(saved.position)
    if abs(measured - saved.length) > SAME_LENGTH or abs(saved.position) > MULTI_TURN_LIMIT_RAD:
        raise ValueError(f"{saved.length:g} m is not what {name} measures at {saved.position:g} rad")


def check_turns(
    names: Iterable[str],
    spools: Mapping[str, Spool],
    saved: Mapping[str, SavedPosition | None],
    readings: Mapping[str, ServoReading],
) -> None:
    """Compare servos that were switched off with their saved positions.

    Args:
        names: actuators with servos that were switched off.
        spools, readings: spools and readings by actuator.
        saved: positions saved by the last driver; actuators without an entry are not checked.

    Raises:
        CommandRefused: a spool reads another position, so that turns may be lost; the message names the tendon to home.
    """
    errors = []
    for name in names:
        spool = spools[name]
        if name not in saved or not _counts_turns(spool) or name not in readings:
            continue
        before = saved[name]
        if before is None and not finite(spool.potentiometer(readings[name].sensor) if spool.potentiometer else None):
            errors.append(
                f"{name} lost power and may have lost turns: it was being driven, or its tendon was tight, when its "
                "position was last known; home it again."
            )
            continue
        try:
            line = recover_turns(spool, before, readings[name])
        except CommandRefused as error:
            errors.append(str(error))
            continue
        if line != spool.encoder:  # the potentiometer shows the number of lost turns
            errors.append(f"{name} has lost turns while it was switched off; home it again.")
    if errors:
        raise CommandRefused(" ".join(errors))


def recover_turns(spool: Spool, saved: SavedPosition | None, reading: ServoReading) -> Line:
    """Calibration of an encoder after a power cycle, in which a servo loses all whole turns.

    Only a potentiometer shows the number of lost turns; without it only an unchanged position is accepted.

    Args:
        spool: spool with a calibrated multi-turn encoder.
        saved: position before the power cycle, or None.
        reading: present reading.

    Raises:
        CalibrationError: there is no such encoder.
        CommandRefused: the number of turns is ambiguous; home the tendon again.
    """
    if spool.encoder is None or spool.encoder_turn:
        raise CalibrationError(f"{spool.name} has no encoder that counts turns; there is nothing to recover.")
    if reading.position is None or not math.isfinite(reading.position):
        raise CommandRefused(f"{spool.name} does not report its position; check its plug, then home it.")
    turn = abs(spool.encoder.slope) * 2.0 * math.pi
    now = spool.encoder(reading.position)
    if spool.potentiometer is not None and finite(spool.potentiometer(reading.sensor)):
        reference = spool.potentiometer(reading.sensor)
    elif saved is not None and abs(now - saved.length) <= SAME_POSITION_TURNS * turn:
        return spool.encoder  # no turns were lost and the spool has not moved
    else:
        raise CommandRefused(
            f"{spool.name} lost power and may have lost turns: {now * 1e3:.1f} mm now"
            + (f", {saved.length * 1e3:.1f} mm before" if saved is not None else "")
            + "; home it again."
        )
    turns = round((reference - now) / turn)
    remainder = reference - now - turns * turn
    if abs(remainder) > MAX_TURN_REMAINDER * turn:
        raise CommandRefused(
            f"{spool.name} stands {abs(remainder) * 1e3:.1f} mm from its potentiometer even after whole turns; home it "
            "again."
        )
    return Line(spool.encoder.slope, spool.encoder.intercept + turns * turn)
