"""From an ActuatorCommand to the values that the command gate checks."""

from __future__ import annotations

from typing import Any

from tensegrity.msg import ActuatorCommand

from ..impedance import FIELDS, ImpedanceSetPoint, impedance_set_points


def message_values(message: Any) -> list[float | ImpedanceSetPoint]:
    """One value for each name of an ActuatorCommand. Raises TensegrityError for what is no impedance."""
    if message.mode != ActuatorCommand.IMPEDANCE:
        return list(message.value)
    columns = {field: getattr(message, field) for field in FIELDS}
    names = list(message.name)
    if len(set(names)) != len(names):  # the gate says so, whatever the values are
        return [ImpedanceSetPoint(0.0)] * len(names)
    return list(impedance_set_points(names, columns).values())
