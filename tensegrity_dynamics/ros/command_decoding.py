"""Conversion of an ActuatorCommand to the values for the command gate."""

from __future__ import annotations

from typing import Any

from tensegrity.msg import ActuatorCommand

from ..command_gate import Mode
from ..errors import TensegrityError
from ..impedance import FIELDS, ImpedanceSetPoint, MovingPosition, impedance_set_points

MODES = {getattr(ActuatorCommand, each.name): each for each in Mode}


def mode_and_values(message: Any) -> tuple[Mode, list[float | ImpedanceSetPoint]]:
    """Mode of an ActuatorCommand, and a value for each of its names.

    Raises:
        TensegrityError: the mode is unknown, the values of an impedance are invalid, or rates are missing.
    """
    mode = MODES.get(message.mode)
    if mode is None:
        raise TensegrityError(f"mode {message.mode} is unknown; 0 to 3, see ActuatorCommand")
    return mode, _values(message)


def _values(message: Any) -> list[float | ImpedanceSetPoint]:
    if message.mode == ActuatorCommand.POSITION and len(message.velocity):
        if len(message.velocity) != len(message.value):
            raise TensegrityError(
                f"{len(message.velocity)} of velocity for {len(message.value)} positions; give one for each, or none."
            )
        return [MovingPosition(*pair) for pair in zip(message.value, message.velocity, strict=True)]
    if message.mode != ActuatorCommand.IMPEDANCE:
        return list(message.value)
    columns = {field: getattr(message, field) for field in FIELDS}
    names = list(message.name)
    if len(set(names)) != len(names):  # rejected by the gate, independent of the values
        return [ImpedanceSetPoint(0.0)] * len(names)
    return list(impedance_set_points(names, columns).values())
