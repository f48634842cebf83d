"""What one bus cycle tells about every servo, what that means for its tendon, and what may be sent back.

A reading is what the bus delivers, in SI units (temperature in degrees Celsius, as every servo reports it). A spool
turns it into the length and the tension of its tendon,

    length = intercept + slope · reading of the sensor            (001, section 7.4)
    tension = max(0, direction · torque) / radius,   torque = stall torque · load, or torque constant · current

and turns commands in metres and newtons back into radians, radians per second and amperes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from tensegrity_dynamics.errors import TensegrityError, unknown_name
from tensegrity_dynamics.robots.robot import Actuator

MULTI_TURN_LIMIT = 256.0 * 2.0 * math.pi
"""rad to either side of zero that extended position mode reaches."""
PUSHING = 0.1
"""Fraction of the rate with which a servo in wheel mode must be asked to wind in for its load to tell the tension."""
SENSORS = ("potentiometer", "encoder")
HARDWARE_ERRORS = frozenset({"electrical_shock", "encoder", "hardware", "angle_limit"})
"""Error bits of a servo whose cause shows in nothing else that it reports."""


class Drive(Enum):
    """What a drive command asks of a servo."""

    VELOCITY = "velocity"
    POSITION = "position"
    TORQUE_OFF = "torque off"


@dataclass(frozen=True)
class ServoReading:
    """What the bus says about one servo in one cycle; None where the servo or the board did not say.

    Attributes:
        name: its actuator.
        position: of its own encoder [rad], over all turns. speed: of its own [rad/s].
        sensor: the external potentiometer [counts].
        load: torque as a signed fraction of the stall torque. current: A, signed the same way.
        temperature: degrees Celsius. voltage: V.
        errors: names of error bits that are set, such as "overload".
        age: cycles since the servo last answered. sensor_age: cycles since the potentiometer was last read.
        torque_on, watchdog: whether torque is switched on and the servo's own bus watchdog armed.
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
class BusReading:
    """How the bus itself did in one cycle.

    Attributes:
        alive: the port is open.
        packets, bad_packets: status packets expected in this cycle, and those that were missing, damaged or late.
        duplicate_ids: ids under which more than one servo answers.
    """

    alive: bool = True
    packets: int = 0
    bad_packets: int = 0
    duplicate_ids: tuple[int, ...] = ()


@dataclass(frozen=True)
class CommandState:
    """What the command gate knows in this cycle.

    Attributes:
        source: who commands. age: cycles since its last accepted command, or None before the first.
        rival: another source whose command was refused in this cycle.
        refusals: refusals of this cycle, with the actuator they concern (None: the whole command).
        stopped: why the emergency stop holds.
    """

    source: str | None = None
    age: int | None = 0
    rival: str | None = None
    refusals: tuple[tuple[str | None, str], ...] = ()
    stopped: str | None = None


@dataclass(frozen=True)
class TendonReading:
    """One tendon as its sensors see it; nan where they say nothing.

    Attributes:
        length: rest length by the sensor that the position loop uses [m]. second_length: by the other one [m].
        tension: N, estimated from load or current: friction of gear and spool is in it.
        raw: the reading behind it.
    """

    name: str
    length: float
    second_length: float
    tension: float
    raw: ServoReading


@dataclass(frozen=True)
class Readings:
    """Everything that the monitors see in one cycle; period and clock_step in s.

    Attributes:
        period: measured by a clock that never jumps. clock_step: how far the clock that stamps commands went.
    """

    tendons: Mapping[str, TendonReading]
    bus: BusReading = BusReading()
    period: float = 0.0
    clock_step: float | None = None
    command: CommandState = CommandState()


@dataclass(frozen=True)
class DriveCommand:
    """What one tendon is asked to do: a rest length [m] or its rate [m/s], at no more than `rate` and `tension` [N].

    A velocity may say which rest length it serves (`goal`): a servo in wheel mode needs some speed merely to hold.
    """

    kind: Drive
    value: float = 0.0
    rate: float = 0.0
    tension: float = 0.0
    goal: float | None = None


@dataclass(frozen=True)
class ServoCommand:
    """What goes to the bus: torque off, a speed [rad/s], or a position [rad] at no more than speed and current.

    Attributes:
        torque_fraction: ceiling as a fraction of the stall torque, for servos that limit torque; None: not known.
        current: ceiling [A], for servos that limit current; None: not known.
    """

    kind: Drive
    position: float = 0.0
    speed: float = 0.0
    torque_fraction: float | None = None
    current: float | None = None


class ServoLink(Protocol):
    """The little that the safety layer needs of a bus."""

    def read(self) -> tuple[Mapping[str, ServoReading], BusReading]:
        """Read every servo once; a servo that did not answer keeps its last reading with a higher age."""

    def write(self, commands: Mapping[str, ServoCommand]) -> None:
        """Send one command to every servo named."""


def finite(value: float | None) -> bool:
    """Whether a reading says a number."""
    return value is not None and math.isfinite(value)


@dataclass(frozen=True)
class Line:
    """length = intercept + slope · reading; slope in m per count or m per rad, never zero."""

    slope: float
    intercept: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.slope) and math.isfinite(self.intercept) and self.slope != 0.0):
            raise TensegrityError(
                f"slope {self.slope} and intercept {self.intercept} do not make a calibration; both must be finite and "
                "the slope not zero. Calibrate again."
            )

    def __call__(self, reading: float | None) -> float:
        """Length [m] at a reading; nan where there is none."""
        return self.intercept + self.slope * reading if reading is not None and math.isfinite(reading) else math.nan

    def inverse(self, length: float) -> float:
        """Reading at a length [m]."""
        return (length - self.intercept) / self.slope


@dataclass(frozen=True)
class Spool:
    """One spool: its tendon's limits, what measures it, and what its servo's torque means.

    Args:
        actuator: limits of length, rate and tension.
        measured_by: "potentiometer" or "encoder": the sensor that the position loop uses.
        potentiometer, encoder: calibrations; the one that measures must be there.
        radius: m. direction: +1 where positive rotation of the servo winds in, else −1.
        stall_torque: N m at load 1, or None. torque_constant: N m/A, or None. At least one makes tensions known.
        sensor_range: lowest and highest counts that a healthy potentiometer can say.
        encoder_turn: the servo's own sensor repeats every turn (AX-12A in wheel mode).
        stiffness: of the tendon [N/m], or None; tells a snapped tendon from one that was paid out.
        load_at_rest: load or current tell the tension also at rest; not so where a servo in wheel mode stops pushing.
    """

    actuator: Actuator
    measured_by: str
    radius: float
    potentiometer: Line | None = None
    encoder: Line | None = None
    direction: int = 1
    stall_torque: float | None = None
    torque_constant: float | None = None
    sensor_range: tuple[float, float] = (20.0, 4075.0)
    encoder_turn: bool = False
    stiffness: float | None = None
    load_at_rest: bool = True
    _line: Line = field(init=False, repr=False)

    def __post_init__(self) -> None:
        name = self.actuator.name
        if self.measured_by not in SENSORS:
            raise TensegrityError(f"spool {name}: " + unknown_name("sensor", self.measured_by, SENSORS))
        line = self.potentiometer if self.measured_by == "potentiometer" else self.encoder
        if line is None:
            raise TensegrityError(f"spool {name} has no calibration of its {self.measured_by}; calibrate it first.")
        if not (math.isfinite(self.radius) and self.radius > 0.0) or self.direction not in (1, -1):
            raise TensegrityError(
                f"spool {name}: radius {self.radius} must be above zero and direction {self.direction} be 1 or -1."
            )
        for what, value in (("stall torque", self.stall_torque), ("torque constant", self.torque_constant)):
            if value is not None and not (math.isfinite(value) and value > 0.0):
                raise TensegrityError(f"spool {name}: the {what} is {value}, must be above zero, or left out.")
        object.__setattr__(self, "_line", line)

    @property
    def name(self) -> str:
        """The actuator's name."""
        return self.actuator.name

    @property
    def wrap(self) -> float | None:
        """Length [m] after which the second sensor reads the same again, or None where it never does."""
        return 2.0 * math.pi * self.radius if self.encoder_turn else None

    def observe(self, reading: ServoReading) -> TendonReading:
        """The tendon behind a reading; what is too old to be of this cycle still counts, its age says how old."""
        by_sensor = self.potentiometer(reading.sensor) if self.potentiometer is not None else math.nan
        by_encoder = self.encoder(reading.position) if self.encoder is not None else math.nan
        first, second = (by_sensor, by_encoder) if self.measured_by == "potentiometer" else (by_encoder, by_sensor)
        return TendonReading(self.name, first, second, self.tension(reading), reading)

    def pull(self, reading: ServoReading) -> float:
        """Force [N] with which the servo winds in (negative: out), or nan where neither current nor load tells it."""
        for value, constant in ((reading.current, self.torque_constant), (reading.load, self.stall_torque)):
            if value is not None and constant is not None and math.isfinite(value):
                return self.direction * constant * value / self.radius
        return math.nan

    def tension(self, reading: ServoReading) -> float:
        """Estimated tension [N], or nan where it is not known; a tendon cannot push."""
        pull = self.pull(reading)
        return pull if math.isnan(pull) else max(0.0, pull)

    def tells_tension(self, sent: DriveCommand | None) -> bool:
        """Whether the load in a cycle tells the tension, given what was sent in the one before."""
        if self.load_at_rest:
            return True
        return sent is not None and sent.kind is Drive.VELOCITY and sent.value <= -PUSHING * self.actuator.rate

    def command(self, drive: DriveCommand) -> ServoCommand:
        """The servo's side of a drive command.

        Raises:
            TensegrityError: a position beyond the turns that the servo counts, or without a calibrated encoder.
        """
        if drive.kind is Drive.TORQUE_OFF:
            return ServoCommand(Drive.TORQUE_OFF)
        torque = drive.tension * self.radius
        fraction = None if self.stall_torque is None else min(1.0, torque / self.stall_torque)
        current = None if self.torque_constant is None else torque / self.torque_constant
        if drive.kind is Drive.VELOCITY:
            speed = -self.direction * drive.value / self.radius
            return ServoCommand(Drive.VELOCITY, 0.0, speed, fraction, current)
        if self.encoder is None or self.encoder_turn:
            raise TensegrityError(
                f"spool {self.name} cannot be sent to a position: its servo counts no turns or its encoder has no "
                "calibration. Drive it by velocity, or calibrate the encoder."
            )
        position = self.encoder.inverse(drive.value)
        if abs(position) > MULTI_TURN_LIMIT:
            raise TensegrityError(
                f"spool {self.name}: {drive.value:g} m lies at {position:.1f} rad, beyond the {MULTI_TURN_LIMIT:.1f} "
                "rad that the servo counts; wind it to the middle and home it again."
            )
        return ServoCommand(Drive.POSITION, position, drive.rate / self.radius, fraction, current)
