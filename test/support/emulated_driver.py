"""A driver and the emulated robot behind its bus, opened together and closed together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensegrity_driver.driver import Driver, open_driver
from tensegrity_driver.hardware.emulated_hardware import EmulatedHardware
from tensegrity_dynamics.robots.robot import Robot


@contextmanager
def driven(robot: Robot, **options: Any) -> Iterator[tuple[EmulatedHardware, Driver]]:
    """The hardware and its driver, with options of `open_driver`."""
    hardware = EmulatedHardware(robot)
    try:
        driver = open_driver(robot, hardware.open_bus, make_calibration=hardware.make_calibration, **options)
        try:
            yield hardware, driver
        finally:
            driver.close()
    finally:
        hardware.close()
