"""Where the spools stood when a driver ended, so that turns lost while it was off are noticed.

A servo that counts turns forgets all but a part of one when it loses its supply, and nothing on the bus tells how many.
The memory lies beside the calibration file and belongs to one revision of it: homing and calibrating make it void.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from tensegrity_dynamics.errors import CommandRefused

from ..spools.readings import ServoReading, Spool, finite
from .calibration_file import RobotCalibration, save_atomically
from .homing import SpoolMemory, recover_turns


def memory_path(calibration: Path) -> Path:
    """Where the memory of a calibration file lies."""
    return calibration.with_name(calibration.name + ".turns")


def remember_turns(
    path: Path, calibration: RobotCalibration, spools: Mapping[str, Spool], readings: Mapping[str, ServoReading]
) -> None:
    """Save where the spools stand whose servos count turns; nothing where there are none. Raises CalibrationError."""
    known: dict[str, list[float]] = {}
    for name, spool in spools.items():
        reading = readings.get(name)
        if spool.encoder is None or spool.encoder_turn or reading is None or not finite(reading.position):
            continue
        assert reading.position is not None
        known[name] = [reading.position, spool.encoder(reading.position)]
    if known:
        body = {"revision": calibration.revision, "spools": known}
        save_atomically(memory_path(path), json.dumps(body).encode())


def recall_turns(path: Path, calibration: RobotCalibration) -> dict[str, SpoolMemory]:
    """What was saved for this revision of the calibration; nothing where there is no such file, or it is damaged."""
    try:
        body = json.loads(memory_path(path).read_bytes())
        if body["revision"] != calibration.revision:
            return {}
        return {name: SpoolMemory(float(place), float(length)) for name, (place, length) in body["spools"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def check_turns(
    names: Iterable[str],
    spools: Mapping[str, Spool],
    memory: Mapping[str, SpoolMemory],
    readings: Mapping[str, ServoReading],
) -> None:
    """Whether servos that were switched off still stand where they stood.

    Args:
        names: actuators whose servos were switched off. memory: of the driver before; without one there is no telling.

    Raises:
        CommandRefused: a spool stands elsewhere by its encoder, so that turns may be lost; says which one to home.
    """
    wrong = []
    for name in names:
        spool, known = spools[name], memory.get(name)
        if known is None or spool.encoder is None or spool.encoder_turn or name not in readings:
            continue
        try:
            line = recover_turns(spool, known, readings[name])
        except CommandRefused as problem:
            wrong.append(str(problem))
            continue
        if line != spool.encoder:  # a potentiometer tells that turns are lost, and how many
            wrong.append(f"{name} has lost turns while it was switched off; home it again.")
    if wrong:
        raise CommandRefused(" ".join(wrong))
