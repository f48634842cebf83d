"""A spool: conversion between readings and commands of its servo and length and tension of its tendon.

length = intercept + slope · reading of the sensor            (001, section 7.4)
tension = max(0, direction · torque) / radius,   torque = stall torque · load, or torque constant · current
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from tensegrity_dynamics.command_gate import MODE_INDEX, Mode
from tensegrity_dynamics.errors import TensegrityError, unknown_name
from tensegrity_dynamics.impedance import ImpedanceSetPoint
from tensegrity_dynamics.robots.robot import Actuator

from .readings import Drive, DriveCommand, ServoCommand, ServoReading, TendonReading
from .transmission import Transmission

MULTI_TURN_LIMIT_RAD = 256.0 * 2.0 * math.pi
"""Range of extended position mode on either side of zero [rad]."""
MIN_LOADED_RATE = 0.1
"""Smallest velocity command (fraction of the rate limit) at which the load of a servo in wheel mode indicates
tension."""
MAX_GAIN = 16_383
"""Highest position gain of an X servo."""
SENSORS = ("potentiometer", "encoder")


@dataclass(frozen=True)
class Line:
    """Line length = intercept + slope · reading.

    Attributes:
        slope: m per count or m per rad, not zero.
        intercept: m.

    Raises:
        TensegrityError: the slope is zero, or a value is not finite.
    """

    slope: float
    intercept: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.slope) and math.isfinite(self.intercept) and self.slope != 0.0):
            raise TensegrityError(
                f"the calibration with slope {self.slope} and intercept {self.intercept} is invalid: both must be "
                "finite and the slope not zero. Calibrate again."
            )

    def __call__(self, reading: float | None) -> float:
        """Length at a reading [m]; nan without a reading."""
        return self.intercept + self.slope * reading if reading is not None and math.isfinite(reading) else math.nan

    def inverse(self, length: float) -> float:
        """Reading at a length [counts or rad]."""
        return (length - self.intercept) / self.slope


@dataclass(frozen=True)
class Spool:
    """One spool: limits of its tendon, calibration of its sensors, torque of its servo.

    Args:
        actuator: limits of length, rate and tension.
        measured_by: sensor of the position loop, "potentiometer" or "encoder".
        potentiometer, encoder: calibrations; the one of the position loop is required.
        radius: m.
        direction: +1 if positive rotation of the servo winds in, else −1.
        stall_torque: torque at load 1 [N m], or None.
        torque_constant: N m/A, or None. Tensions need one of the two.
        sensor_range: lowest and highest counts of a healthy potentiometer.
        encoder_turn: whether the encoder repeats every turn (AX-12A in wheel mode).
        stiffness: stiffness of the tendon [N/m], or None; it distinguishes a snapped tendon from one that was paid out.
        load_at_rest: whether load or current indicate the tension at rest as well. False in wheel mode, where a servo
            reports a load only while it turns against it.
        on_board: whether the potentiometer board closes the position loop, so that the servo is driven by positions.
        impedance_steps: N m/rad and N m s/rad of one unit of the gains of its servo; None if gains do not correspond to
            torques.
        top_speed: no-load speed of its servo [rad/s], or None.
        speed_step: resolution of the speed limit of a position command [rad/s]; 0 for continuous.
        inertia: inertia of rotor and gear at the shaft of the servo [kg m²], which the current accelerates as well; 0
            if unknown.
        no_impedance: why the servo accepts no impedance; empty if it does.
        transmission: conversion to the units in which the actuator is commanded; None for lengths and tensions of a
            tendon (identity).

    Raises:
        TensegrityError: a sensor has no calibration, or a value is out of range.
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
    on_board: bool = False
    impedance_steps: tuple[float, float] | None = None
    top_speed: float | None = None
    speed_step: float = 0.0
    inertia: float = 0.0
    no_impedance: str = ""
    transmission: Transmission | None = None
    _line: Line = field(init=False, repr=False)
    _through: Transmission = field(init=False, repr=False)

    def __post_init__(self) -> None:
        name = self.actuator.name
        if self.measured_by not in SENSORS:
            raise TensegrityError(f"spool {name}: " + unknown_name("sensor", self.measured_by, SENSORS))
        line = self.potentiometer if self.measured_by == "potentiometer" else self.encoder
        if line is None:
            raise TensegrityError(f"spool {name}: its {self.measured_by} is not calibrated; calibrate it first.")
        if not (math.isfinite(self.radius) and self.radius > 0.0) or self.direction not in (1, -1):
            raise TensegrityError(
                f"spool {name}: radius is {self.radius}, must be above zero; direction is {self.direction}, must be 1 "
                "or -1."
            )
        for what, value in (("stall torque", self.stall_torque), ("torque constant", self.torque_constant)):
            if value is not None and not (math.isfinite(value) and value > 0.0):
                raise TensegrityError(f"spool {name}: the {what} is {value}; it must be above zero, or left out.")
        object.__setattr__(self, "_line", line)
        identity = Transmission(self.actuator, self.actuator, self.radius, stiffness=self.stiffness)
        object.__setattr__(self, "_through", self.transmission or identity)

    @property
    def name(self) -> str:
        """Name of the actuator."""
        return self.actuator.name

    @property
    def driven(self) -> Actuator:
        """The actuator with limits in the units of its commands; `actuator` has them in the units of the spool."""
        return self._through.driven

    @property
    def pulls(self) -> bool:
        """Whether it can only pull, like everything that winds a tendon or a cable; other joints can push, too."""
        return self._through.pulls

    def position(self, length: float) -> float:
        """Position of the actuator [m or rad] at a length [m]."""
        return self._through.position(length)

    def rate(self, speed: float) -> float:
        """Rate of the actuator [m/s or rad/s] at a speed of winding [m/s]."""
        return self._through.rate(speed)

    def effort(self, tension: float) -> float:
        """Effort of the actuator [N or N m] at a tension [N]."""
        return self._through.effort(tension)

    def set_point(self, mode: Mode, value: Any) -> tuple[Mode, Any]:
        """Convert a set point of the actuator into one of the spool."""
        return mode, self._through.set_point(value, MODE_INDEX.get(mode, 0))

    def impedance_problem(self, asked: ImpedanceSetPoint) -> str | None:
        """Why its servo cannot realise an impedance of the spool [N/m, N s/m]; None if it can."""
        if self.no_impedance or self.impedance_steps is None:
            return self.no_impedance or "its servo has no current-based position mode"
        square, lever = self.radius**2, self.lever
        step, damping_step = self.impedance_steps
        for name, value, least, most in (
            ("stiffness", asked.stiffness * square, step, MAX_GAIN * step),
            ("damping", asked.damping * square, 0.0, MAX_GAIN * damping_step),
        ):
            if not least <= value <= most:
                scale = lever * lever / square
                return (
                    f"{name} {value * scale:.4g} is outside the {least * scale:.4g} to {most * scale:.4g} that the "
                    f"gains of its servo allow (no stiffness would mean no torque)"
                )
        return None

    @property
    def lever(self) -> float:
        """m of length per unit of the actuator, absolute value."""
        return abs(self._through.slope)

    @property
    def count_sense(self) -> int:
        """+1 if the counts of the potentiometer increase in the positive direction of the servo, else −1."""
        if self.potentiometer is None:
            raise TensegrityError(f"spool {self.name}: its potentiometer is not calibrated; calibrate it first.")
        return -self.direction if self.potentiometer.slope > 0.0 else self.direction

    def counts(self, length: float) -> int:
        """Counts of the potentiometer at a length [m], within the range of a healthy one."""
        assert self.potentiometer is not None
        low, high = self.sensor_range
        return round(min(max(self.potentiometer.inverse(length), low), high))

    @property
    def wrap(self) -> float | None:
        """Length after which the reading of the second sensor repeats [m]; None if it does not repeat."""
        return 2.0 * math.pi * self.radius if self.encoder_turn else None

    def profile(self, speed: float) -> float:
        """The speed limit nearest to a speed [m/s] that the servo accepts; not zero, which would mean no limit."""
        step = self.radius * self.speed_step
        return speed if step == 0.0 else step * max(1.0, round(speed / step))

    def observe(self, reading: ServoReading) -> TendonReading:
        """Length and tension from a reading, independently of its age."""
        by_sensor = self.potentiometer(reading.sensor) if self.potentiometer is not None else math.nan
        by_encoder = self.encoder(reading.position) if self.encoder is not None else math.nan
        first, second = (by_sensor, by_encoder) if self.measured_by == "potentiometer" else (by_encoder, by_sensor)
        return TendonReading(self.name, first, second, self.tension(reading), reading)

    def pull(self, reading: ServoReading) -> float:
        """Winding force of the servo [N], negative outward; nan without current and load."""
        for value, constant in ((reading.current, self.torque_constant), (reading.load, self.stall_torque)):
            if value is not None and constant is not None and math.isfinite(value):
                return self.direction * constant * value / self.radius
        return math.nan

    def winding_speed(self, reading: ServoReading) -> float:
        """Measured speed of winding in [m/s]; nan if the servo does not report it."""
        speed = reading.speed
        return self.direction * self.radius * speed if speed is not None and math.isfinite(speed) else math.nan

    def strongest_pull(self, speed: float) -> float:
        """Largest force [N] of the servo while it winds at a speed [m/s]; infinite if unknown."""
        if self.stall_torque is None or self.top_speed is None or math.isnan(speed):
            return math.inf
        return max(0.0, 1.0 - abs(speed) / (self.radius * self.top_speed)) * self.stall_torque / self.radius

    def tension(self, reading: ServoReading) -> float:
        """Estimated tension [N], not negative if the spool can only pull; nan without current and load."""
        pull = self.pull(reading)
        return pull if math.isnan(pull) or not self.pulls else max(0.0, pull)

    def reports_tension(self, sent: DriveCommand | None) -> bool:
        """Whether the load of a cycle indicates the tension, after the command of the cycle before."""
        if self.load_at_rest:
            return True
        return sent is not None and sent.kind is Drive.VELOCITY and sent.value <= -MIN_LOADED_RATE * self.actuator.rate

    def command(self, drive: DriveCommand) -> ServoCommand:
        """Servo command for a drive command.

        Raises:
            TensegrityError: the position is outside the multi-turn range, or the encoder is not calibrated.
        """
        if drive.kind is Drive.TORQUE_OFF:
            return ServoCommand(Drive.TORQUE_OFF)
        torque = drive.tension * self.radius
        fraction = None if self.stall_torque is None else min(1.0, torque / self.stall_torque)
        current = None if self.torque_constant is None else torque / self.torque_constant
        if drive.kind is Drive.VELOCITY:
            speed = -self.direction * drive.value / self.radius
            return ServoCommand(Drive.VELOCITY, 0.0, speed, fraction, current)
        if self.on_board and self.potentiometer is not None and math.isfinite(drive.value):
            return ServoCommand(
                Drive.POSITION, 0.0, drive.rate / self.radius, fraction, current, self.counts(drive.value)
            )
        if self.encoder is None or self.encoder_turn:
            raise TensegrityError(
                f"spool {self.name} cannot be commanded by position: its servo does not count turns, or its encoder is "
                "not calibrated. Command a velocity, or calibrate the encoder."
            )
        impedance, stiffness, damping = drive.impedance, None, None
        if impedance is not None:
            square = self.radius * self.radius
            stiffness, damping = impedance.stiffness * square, impedance.damping * square
        position = self.encoder.inverse(drive.value + drive.feed)  # the servo has no input for a feed-forward
        if abs(position) > MULTI_TURN_LIMIT_RAD:
            raise TensegrityError(
                f"spool {self.name}: a length of {drive.value:g} m needs the servo at {position:.1f} rad, beyond its "
                f"multi-turn range of {MULTI_TURN_LIMIT_RAD:.1f} rad; wind it to the middle of this range and home it "
                "again."
            )
        return ServoCommand(
            Drive.POSITION, position, drive.rate / self.radius, fraction, current, None, stiffness, damping
        )
