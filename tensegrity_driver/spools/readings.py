"""Readings and commands of one bus cycle, in the units of the servos and in the units of the tendons.

All units are SI units, except temperatures in degrees Celsius, as every servo reports them. `ServoReading` and
`ServoCommand` use radians and amperes, `TendonReading` and `DriveCommand` metres and newtons; a `Spool` converts.
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
"""Error bits of a servo with causes that no other reading shows."""


class Drive(Enum):
    """Kind of a command: velocity, position, or torque off."""

    VELOCITY = "velocity"
    POSITION = "position"
    TORQUE_OFF = "torque off"


@dataclass(frozen=True)
class ServoReading:
    """Reading of one servo in one cycle; None for values that the servo or the board has not reported.

    Attributes:
        name: name of its actuator.
        position: encoder position over all turns [rad].
        speed: rad/s.
        sensor: external potentiometer [counts].
        load: torque as a signed fraction of the stall torque.
        current: A, with the same sign.
        temperature: degrees Celsius.
        voltage: V.
        errors: names of the active error bits, such as "overload".
        age: cycles since the servo last answered.
        sensor_age: cycles since the potentiometer was last read.
        torque_on, watchdog: whether torque is on and the bus watchdog of the servo is armed.
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
        source: name of the present sender.
        age: s since its last accepted command; None before the first one.
        contest: which commands conflict, so that none is followed; or None.
        refusals: (actuator, reason) of this cycle; actuator None for the whole command.
        stopped: reason of the latched emergency stop, or None.
        waits: reason why incoming commands are ignored until a goal or `hold`, or None.
    """

    source: str | None = None
    age: float | None = 0.0
    contest: str | None = None
    refusals: tuple[tuple[str | None, str], ...] = ()
    stopped: str | None = None
    waits: str | None = None


@dataclass(frozen=True)
class TendonReading:
    """Length and tension of one tendon from its sensors; nan without a valid reading.

    Attributes:
        name: name of its actuator.
        length: rest length by the sensor of the position loop [m].
        second_length: rest length by the other sensor [m].
        tension: tension estimated from load or current [N], including the friction of gear and spool.
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
        tendons: readings by actuator.
        bus: state of the bus.
        command: state of the command gate.
        period: time since the last cycle by a monotonic clock [s].
        read_time: time from the start of the cycle to the last answer [s]; the servos were read within it.
        clock_step: time since the last cycle by the clock that stamps commands [s], or None.
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
        kind: kind of the command.
        value: m or m/s, by kind.
        rate: rate limit [m/s].
        tension: tension limit [N].
        goal: rest length behind a velocity command [m], or None. Under load a servo in wheel mode needs a non-zero
            velocity to hold it.
        impedance: impedance of the servo's own loop for a position command, in units of the length (m, N); None for a
            stiff position.
    """

    kind: Drive
    value: float = 0.0
    rate: float = 0.0
    tension: float = 0.0
    goal: float | None = None
    impedance: ImpedanceSetPoint | None = None

    @property
    def compliance(self) -> float:
        """Largest distance [m] between the actual and the commanded position; zero without an impedance."""
        soft = self.impedance
        return 0.0 if soft is None else (self.tension + abs(soft.effort)) / soft.stiffness

    @property
    def feed(self) -> float:
        """Offset [m] of the position sent to the servo from the commanded one, for the feed-forward of an impedance."""
        soft = self.impedance
        return 0.0 if soft is None else soft.effort / soft.stiffness

    def carried_on(self, begin: float, time: float) -> float:
        """Own set point of the servo [m], `time` s after a position command that found it at `begin` [m]."""
        ahead = self.value + self.feed - begin
        return begin + min(max(ahead, -self.rate * time), self.rate * time)


@dataclass(frozen=True)
class ServoCommand:
    """Command for one servo: torque off, a speed, or a position.

    Attributes:
        kind: kind of the command.
        position: rad.
        speed: rad/s; for a position command its speed limit.
        torque_fraction: torque limit as a fraction of the stall torque; None for servos without this limit.
        current: current limit [A]; None for servos without this limit.
        counts: position in counts of the potentiometer if the board closes the loop; else None.
        stiffness: gain of its own position loop [N m/rad]; None for the factory setting.
        damping: N m s/rad; None for the factory setting.
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
    """Interface of a bus for the bus cycle."""

    def read(self) -> tuple[Mapping[str, ServoReading], BusReading]:
        """Read every servo once; a servo without answer keeps its last reading with a higher age. Raises BusError."""

    def write(self, commands: Mapping[str, ServoCommand]) -> None:
        """Send one command to every servo named. Raises BusError."""


def finite(value: float | None) -> bool:
    """Whether a reading is a finite number."""
    return value is not None and math.isfinite(value)
