"""Readings of one bus cycle and commands of one cycle, on the side of the servos and on the side of the tendons.

Everything is in SI units, but for temperatures in degrees Celsius, as every servo reports them. `ServoReading` and
`ServoCommand` are in radians and amperes, `TendonReading` and `DriveCommand` in metres and newtons; a `Spool` converts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from tensegrity_dynamics.impedance import ImpedanceSetPoint

from ..bus.statistics import BusReading

HARDWARE_ERRORS = frozenset({"electrical_shock", "encoder", "hardware", "angle_limit"})
"""Error bits of a servo whose cause shows in nothing else that it reports."""


class Drive(Enum):
    """Kind of a command: velocity, position, or torque off."""

    VELOCITY = "velocity"
    POSITION = "position"
    TORQUE_OFF = "torque off"


@dataclass(frozen=True)
class ServoReading:
    """Reading of one servo in one cycle; None for what the servo or the board has not reported.

    Attributes:
        name: its actuator.
        position: of its encoder over all turns [rad]. speed: rad/s.
        sensor: external potentiometer [counts].
        load: torque as a signed fraction of the stall torque. current: A, with the same sign.
        temperature: degrees Celsius. voltage: V.
        errors: names of error bits that are set, such as "overload".
        age: cycles since the servo last answered. sensor_age: cycles since the potentiometer was last read.
        torque_on, watchdog: whether torque is switched on and the bus watchdog of the servo is armed.
    """

    name: str
    position: float | None = None
    speed: float | None = None
    sensor: float | None = None
    load: float | None = None
    current: float | None = None
    temperature: float | None = None
    voltage: float | None = None
    errors: frozenset[str] = frozenset()
    age: int = 0
    sensor_age: int = 0
    torque_on: bool | None = None
    watchdog: bool | None = None


@dataclass(frozen=True)
class CommandState:
    """State of the command gate in one cycle.

    Attributes:
        source: name of the present sender. age: s since its last accepted command, or None before the first.
        contest: which commands contradict each other, so that nobody's count; or None.
        refusals: (actuator, reason) of this cycle; actuator None: the whole command.
        stopped: reason of the latched emergency stop, or None.
        waits: why the commands that come do not count until a goal or `hold`, or None.
    """

    source: str | None = None
    age: float | None = 0.0
    contest: str | None = None
    refusals: tuple[tuple[str | None, str], ...] = ()
    stopped: str | None = None
    waits: str | None = None


@dataclass(frozen=True)
class TendonReading:
    """Length and tension of one tendon by its sensors; nan without a valid reading.

    Attributes:
        length: rest length by the sensor of the position loop [m]. second_length: by the other one [m].
        tension: estimated from load or current [N], with the friction of gear and spool.
        raw: reading of the servo.
    """

    name: str
    length: float
    second_length: float
    tension: float
    raw: ServoReading


@dataclass(frozen=True)
class Readings:
    """Input of the monitors in one cycle.

    Attributes:
        tendons: by actuator. bus: state of the bus. command: state of the command gate.
        period: since the last cycle by a monotonic clock [s].
        read_time: from the begin of the cycle until the last answer [s]; the servos were read at some time within it.
        clock_step: since the last cycle by the clock that stamps commands [s], or None.
    """

    tendons: Mapping[str, TendonReading]
    bus: BusReading = field(default_factory=BusReading)
    period: float = 0.0
    clock_step: float | None = None
    command: CommandState = CommandState()
    read_time: float = 0.0


@dataclass(frozen=True)
class DriveCommand:
    """Command for one tendon: a rest length [m] or its rate [m/s].

    Attributes:
        value: m or m/s by kind. rate: limit of the rate [m/s]. tension: limit of the tension [N].
        goal: rest length that a velocity serves [m], or None; under load a servo in wheel mode needs a velocity above
            zero to hold it.
        impedance: of a position: what the servo's own loop makes of the distance to it, in m and N along the length;
            None: it holds the position.
    """

    kind: Drive
    value: float = 0.0
    rate: float = 0.0
    tension: float = 0.0
    goal: float | None = None
    impedance: ImpedanceSetPoint | None = None

    @property
    def compliance(self) -> float:
        """m by which what is driven may be away from the position commanded; zero but for impedances."""
        soft = self.impedance
        return 0.0 if soft is None else (self.tension + abs(soft.effort)) / soft.stiffness

    @property
    def feed(self) -> float:
        """m beyond the position commanded to which its servo is sent, for the feed-forward of an impedance."""
        soft = self.impedance
        return 0.0 if soft is None else soft.effort / soft.stiffness

    def carried_on(self, begin: float, time: float) -> float:
        """Where the servo's own set point is [m], `time` s after a position command that found it at `begin` [m]."""
        ahead = self.value + self.feed - begin
        return begin + min(max(ahead, -self.rate * time), self.rate * time)


@dataclass(frozen=True)
class ServoCommand:
    """Command for one servo: torque off, a speed, or a position.

    Attributes:
        position: rad. speed: rad/s, of a position command its limit.
        counts: position by the potentiometer, where its board closes the loop; else None.
        torque_fraction: torque limit as a fraction of the stall torque, or None for servos without this limit.
        current: current limit [A], or None for servos without this limit.
        stiffness: of its own position loop [N m/rad], damping: [N m s/rad]; None for those of the factory.
    """

    kind: Drive
    position: float = 0.0
    speed: float = 0.0
    torque_fraction: float | None = None
    current: float | None = None
    counts: int | None = None
    stiffness: float | None = None
    damping: float | None = None


class ServoLink(Protocol):
    """A bus as the bus cycle uses it."""

    def read(self) -> tuple[Mapping[str, ServoReading], BusReading]:
        """Read every servo once; a servo without answer keeps its last reading with a higher age. Raises BusError."""

    def write(self, commands: Mapping[str, ServoCommand]) -> None:
        """Send one command to every servo named. Raises BusError."""


def finite(value: float | None) -> bool:
    """Whether a reading is a finite number."""
    return value is not None and math.isfinite(value)
