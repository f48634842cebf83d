"""From an ActuatorCommand to the values that the command gate checks."""

from __future__ import annotations

from typing import Any

from tensegrity.msg import ActuatorCommand

from ..errors import TensegrityError
from ..impedance import FIELDS, ImpedanceSetPoint, MovingPosition, impedance_set_points


def message_values(message: Any) -> list[float | ImpedanceSetPoint]:
    """One value for each name of an ActuatorCommand. Raises TensegrityError for what is no impedance, and no rate."""
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
    if len(set(names)) != len(names):  # the gate says so, whatever the values are
        return [ImpedanceSetPoint(0.0)] * len(names)
    return list(impedance_set_points(names, columns).values())
