"""Emulated servos and potentiometer board of a robot behind pseudo-terminals, byte-compatible with the hardware.

`EmulatedRobot` couples them to the simulated robot; `python -m tensegrity_driver.emulator ROBOT` runs one as a process.
Apart from the control tables and the messages of the board it shares no code with the bus side of the driver.
"""

from __future__ import annotations

import tensegrity_dynamics  # noqa: F401  first of all, as it makes nodes end quietly while they import the rest

from .emulated_robot import EmulatedRobot, Identity, with_servos
from .wire_delay import WireSettings

__all__ = ["EmulatedRobot", "Identity", "WireSettings", "with_servos"]
