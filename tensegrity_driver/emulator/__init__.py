"""Servos and potentiometer board of a robot behind pseudo-terminals: what the driver meets instead of hardware.

`EmulatedRobot` couples them to the simulated robot; `python -m tensegrity_driver.emulator ROBOT` runs one as a process.
Nothing here shares code with the driver's side of the bus but the control tables and the board's messages.
"""

from .emulated_robot import EmulatedRobot, Identity, with_servos
from .wire_delay import WireSettings

__all__ = ["EmulatedRobot", "Identity", "WireSettings", "with_servos"]
