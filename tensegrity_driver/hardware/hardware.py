"""Interfaces between a driver and its hardware: `Hardware` before it is opened, `HardwareLink` while it is open."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from tensegrity_dynamics.robots.robot import Robot

from ..bus.identity import BusIdentity
from ..calibration.calibration_file import RobotCalibration
from ..spools.readings import ServoLink
from .settings import HardwareSettings


class HardwareLink(ServoLink, Protocol):
    """An open bus as the driver uses it: besides reading and writing, the life cycle of its servos."""

    @property
    def identity(self) -> BusIdentity:
        """Adapter, ids and models as read from the bus when it was opened."""

    @property
    def switched_off(self) -> Sequence[str]:
        """Actuators with multi-turn servos that lost their supply since they were last driven, by the check at open."""

    def prepare(self, names: Iterable[str] | None = None) -> None:
        """Set modes, limits and watchdogs and switch torque on without motion; None: all servos.

        Raises:
            BusError: names the servo and the setting that failed.
        """

    def unprepared(self) -> Sequence[str]:
        """Actuators whose servos have rebooted and receive no commands until they are prepared."""

    def torque_off(self) -> None:
        """Switch the torque of all servos off."""

    def close(self) -> None:
        """Close the ports; the servos keep the last command."""

    def warnings(self) -> Sequence[str]:
        """Properties of this bus that cost time or put a position in doubt, one sentence each."""

    def statistics(self) -> Mapping[str, object]:
        """Counts and rates since the bus was opened, by name."""


class Hardware(ABC):
    """Hardware of a robot before it is opened.

    Attributes:
        overrun: longest bus cycle, in planned periods, for hardware on which a long cycle is harmless; None: the limit
            of the robot file.
        steps_time: time of this hardware passes only by `advance`; False: it follows the wall clock.
    """

    overrun: float | None = None
    steps_time: bool = False

    @abstractmethod
    def open_bus(self, robot: Robot, settings: HardwareSettings) -> HardwareLink:
        """Open the ports and check every servo; nothing moves. Raises BusError."""

    def make_calibration(self, identity: BusIdentity) -> RobotCalibration | None:
        """Exact calibration of simulated spools; None where it has to be measured and is loaded from its file."""
        return None

    def advance(self, seconds: float) -> None:  # noqa: B027 (optional)
        """Advance the time of hardware that steps its own time; no effect on real hardware."""

    def close(self) -> None:  # noqa: B027 (optional)
        """Release everything that outlives an open bus."""
