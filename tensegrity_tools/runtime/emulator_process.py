"""Emulated servos as a process of their own, behind pseudo-terminals, with the calibration that their spools have."""

from __future__ import annotations

import time
from collections.abc import Callable

from tensegrity_driver.hardware.emulated_hardware import calibrate_emulated
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import TensegrityError

from .node_graph import Emulator
from .processes import NodeProcesses

PATIENCE = 300.0
"""s of wall time that the emulator may take to begin, beside all that start with it."""


def emulator_arguments(emulator: Emulator) -> list[str]:
    """What `tensegrity_driver.emulator` is started with."""
    return [emulator.robot, "--directory", str(emulator.folder), "--no-wire"]


def prepare_emulator(emulator: Emulator) -> None:
    """Write down the calibration that its spools have, for the driver."""
    calibrate_emulated(load_robot(emulator.robot), emulator.folder / "calibration.json")


def start_emulator(nodes: NodeProcesses, emulator: Emulator, check: Callable[[], None] = lambda: None) -> None:
    """Start the emulator and wait until its servos can be reached.

    Args:
        check: called while waiting; raises where the wait shall end.

    Raises:
        TensegrityError: it did not begin, with its last output.
    """
    nodes.run("emulator", ["-m", "tensegrity_driver.emulator", *emulator_arguments(emulator)])
    limit = time.monotonic() + PATIENCE
    while not emulator.is_ready:
        check()
        if "emulator" in nodes.ended() or time.monotonic() > limit:
            raise TensegrityError(f"the emulator did not begin. Its last words:\n{nodes.last_words('emulator')}")
        time.sleep(0.05)
    prepare_emulator(emulator)
