"""Torque of the servo models: what their load and current readings stand for, from the data sheets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Motor:
    """Torque of one servo model, from its data sheet.

    Attributes:
        stall_torque: at load 1 [N m]. torque_constant: N m/A, or None for servos without current sensor.
        counts_turns: driven by positions over many turns. False: driven by velocities in wheel mode; such a servo
            reports a load only while it turns against it.
    """

    stall_torque: float
    torque_constant: float | None = None
    counts_turns: bool = True


MOTORS: Mapping[str, Motor] = {
    "AX-12A": Motor(1.5, counts_turns=False),  # at 12 V
    "XL430-W250": Motor(1.5),  # at 12 V; it measures load
    "XM430-W350": Motor(4.1, 4.1 / 2.3),  # at 12 V and 2.3 A
    "XM430-W210": Motor(3.0, 3.0 / 2.3),
}
"""Motors by servo model."""
