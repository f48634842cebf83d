"""Turn counts of multi-turn servos across power cycles: saved when a driver ends, compared when the next one begins.

A servo without supply loses all but a part of one turn, and no register shows how many. Encoder position and length of
every spool are therefore saved beside the calibration file, for one revision of it; homing and calibrating, which
raise the revision, invalidate them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tensegrity_dynamics.errors import CommandRefused

from ..spools.readings import ServoReading, finite
from ..spools.spool import Line, Spool
from .calibration_file import RobotCalibration, save_atomically
from .line_fit import CalibrationError

SAME_POSITION_TURNS = 0.02
"""Largest distance from the saved length at which a spool counts as unmoved [turn]."""
MAX_TURN_REMAINDER = 0.25
"""Largest deviation from a whole number of lost turns that still identifies the number [turn]."""


@dataclass(frozen=True)
class SavedPosition:
    """Position of one spool when a driver ended: encoder [rad] and rest length [m]."""

    position: float
    length: float


def turns_path(calibration: Path) -> Path:
    """Path of the turn counts that belong to a calibration file."""
    return calibration.with_name(calibration.name + ".turns")


def save_turns(
    path: Path, calibration: RobotCalibration, spools: Mapping[str, Spool], readings: Mapping[str, ServoReading]
) -> None:
    """Save the positions of spools with multi-turn servos; without such spools no file is written.

    Args:
        path: of the calibration file. calibration: its revision is saved along. spools, readings: by actuator.

    Raises:
        CalibrationError: the file could not be written.
    """
    positions: dict[str, list[float]] = {}
    for name, spool in spools.items():
        reading = readings.get(name)
        if spool.encoder is None or spool.encoder_turn or reading is None or not finite(reading.position):
            continue
        assert reading.position is not None
        positions[name] = [reading.position, spool.encoder(reading.position)]
    if positions:
        body = {"revision": calibration.revision, "spools": positions}
        save_atomically(turns_path(path), json.dumps(body).encode())


def load_turns(path: Path, calibration: RobotCalibration) -> dict[str, SavedPosition]:
    """Saved positions by actuator; empty for another revision of the calibration, and for no file or a damaged one."""
    try:
        body = json.loads(turns_path(path).read_bytes())
        if body["revision"] != calibration.revision:
            return {}
        spools = body["spools"].items()
        return {name: SavedPosition(float(position), float(length)) for name, (position, length) in spools}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def check_turns(
    names: Iterable[str],
    spools: Mapping[str, Spool],
    saved: Mapping[str, SavedPosition],
    readings: Mapping[str, ServoReading],
) -> None:
    """Compare servos that were switched off with their saved positions.

    Args:
        names: actuators whose servos were switched off. saved: by the last driver; others are not checked.

    Raises:
        CommandRefused: a spool reads another position, so that turns may be lost; names the one to home.
    """
    errors = []
    for name in names:
        spool, before = spools[name], saved.get(name)
        if before is None or spool.encoder is None or spool.encoder_turn or name not in readings:
            continue
        try:
            line = recover_turns(spool, before, readings[name])
        except CommandRefused as error:
            errors.append(str(error))
            continue
        if line != spool.encoder:  # the potentiometer shows that turns are lost, and how many
            errors.append(f"{name} has lost turns while it was switched off; home it again.")
    if errors:
        raise CommandRefused(" ".join(errors))


def recover_turns(spool: Spool, saved: SavedPosition | None, reading: ServoReading) -> Line:
    """Calibration of an encoder after a power cycle, in which a servo loses all but a part of one turn.

    Only a potentiometer shows the number of lost turns; without one an unchanged position is accepted alone.

    Args:
        spool: with a calibrated encoder that counts turns.
        saved: position before the power cycle, or None.
        reading: of the present.

    Raises:
        CalibrationError: no encoder; CommandRefused: the number of turns is ambiguous; home the tendon again.
    """
    if spool.encoder is None or spool.encoder_turn:
        raise CalibrationError(f"{spool.name} has no encoder that counts turns; there is nothing to recover.")
    if reading.position is None or not math.isfinite(reading.position):
        raise CommandRefused(f"{spool.name} does not tell its position; check its plug, then home it.")
    turn = abs(spool.encoder.slope) * 2.0 * math.pi
    now = spool.encoder(reading.position)
    if spool.potentiometer is not None and finite(spool.potentiometer(reading.sensor)):
        reference = spool.potentiometer(reading.sensor)
    elif saved is not None and abs(now - saved.length) <= SAME_POSITION_TURNS * turn:
        return spool.encoder  # nothing was lost and nothing has moved
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
