"""Emulated servos in a separate process, at pseudo-terminals, with the calibration of their spools."""

from __future__ import annotations

import time
from collections.abc import Callable

from tensegrity_driver.hardware.emulated_hardware import calibrate_emulated
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import TensegrityError

from .node_graph import Emulator
from .processes import NodeProcesses

PATIENCE = 300.0
"""Longest wall time for the start of the emulator, in parallel with all other nodes [s]."""


def emulator_arguments(emulator: Emulator) -> list[str]:
    """Command line arguments of `tensegrity_driver.emulator`."""
    return [emulator.robot, "--directory", str(emulator.folder), "--no-wire"]


def prepare_emulator(emulator: Emulator) -> None:
    """Save the calibration of its spools for the driver."""
    calibrate_emulated(load_robot(emulator.robot), emulator.folder / "calibration.json")


def start_emulator(nodes: NodeProcesses, emulator: Emulator, check: Callable[[], None] = lambda: None) -> None:
    """Start the emulator and wait until its servos can be reached.

    Args:
        check: function that is called during the wait; an exception from it ends the wait.

    Raises:
        TensegrityError: the emulator did not start; the message contains its last output.
    """
    nodes.run("emulator", ["-m", "tensegrity_driver.emulator", *emulator_arguments(emulator)])
    limit = time.monotonic() + PATIENCE
    while not emulator.is_ready:
        check()
        if "emulator" in nodes.ended() or time.monotonic() > limit:
            raise TensegrityError(f"the emulator did not begin. Its last words:\n{nodes.last_words('emulator')}")
        time.sleep(0.05)
    prepare_emulator(emulator)
