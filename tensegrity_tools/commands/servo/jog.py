"""Jogs: slow motions of one uncalibrated spool at low tension, which end at any implausible reading.

The safety layer needs lengths, which an uncalibrated spool does not have. Changes of length by the radius show the
distance and direction of a jog.
"""

from __future__ import annotations

import math

from tensegrity_driver.calibration.homing import STOPPING_ERRORS, Homing, Phase
from tensegrity_driver.spools.readings import Drive, DriveCommand, TendonReading, finite
from tensegrity_driver.spools.spool import Spool
from tensegrity_dynamics.errors import BusError, TensegrityError

from .session import ServoSession

MAX_JOG_M = 0.05
"""Longest jog [m]."""
MAX_OPPOSITE_MOTION_M = 1.5e-3
"""Motion against the command that ends a jog [m]."""
SETTLING_CYCLES = 10
"""Cycles at rest after a jog."""
DEFAULT_TENSION_SHARE = 0.2
"""Tension limit of a jog without --tension, as a fraction of the effort of the actuator."""


def prepare(session: ServoSession, name: str, tension: float) -> None:
    """Configure one servo and switch its torque on at its position, with a tension limit [N]; raises BusError."""
    spool = session.uncalibrated_spools()[name]
    rest = DriveCommand(Drive.VELOCITY, 0.0, spool.actuator.rate, tension)
    session.bus.ceilings[name] = spool.command(rest)
    session.bus.prepare([name])


def torque_off(session: ServoSession, name: str) -> None:
    """Switch the torque of one servo off and verify it; raises BusError."""
    servo = session.bus.servos[name]
    session.bus.bus.write_if_changed(servo.id, servo.model.register("torque_enable"), 0.0)


def jog(session: ServoSession, name: str, distance: float, tension: float) -> float:
    """Pay out (positive) or wind in (negative) by a distance and stop.

    Args:
        distance: distance of the motion [m], at most `MAX_JOG_M`.
        tension: tension limit [N]. If it prevents the motion, the jog ends before its goal, after twice the time of the
            motion.

    Returns:
        Change of length [m].

    Raises:
        BusError: the servo does not answer or does not accept its settings. TensegrityError: too far, no sensor, a
            hardware error, or motion in the opposite direction; the spool is at rest.
    """
    if not 0.0 < abs(distance) <= MAX_JOG_M:
        raise TensegrityError(f"{1e3 * distance:+g} mm is no jog; take steps of at most {1e3 * MAX_JOG_M:g} mm.")
    spool = session.uncalibrated_spools()[name]
    prepare(session, name, tension)
    speed = math.copysign(min(session.settings.homing.speed, spool.actuator.rate), distance)
    start = _fresh_reading(session, spool)
    now, goal = start, start.length
    try:
        for _ in range(math.ceil(2.0 * distance / (speed * session.period)) + SETTLING_CYCLES):
            goal += speed * session.period
            if (goal - start.length - distance) * speed > 0.0:
                goal = start.length + distance
            _send(session, spool, _motion(spool, speed, goal, tension))
            now = _fresh_reading(session, spool)
            moved = (now.length - start.length) * math.copysign(1.0, distance)
            if moved < -MAX_OPPOSITE_MOTION_M:
                raise TensegrityError(
                    f"{name} moved by {1e3 * (now.length - start.length):+.1f} mm when {1e3 * distance:+.1f} mm were "
                    "commanded; check the direction of servo and sensor in the robot file, and whether its tendon "
                    f"pulls with more than the {tension:.0f} N allowed (--tension)."
                )
            if moved >= abs(distance):
                break
    finally:
        _hold(session, spool, now, tension)
    for _ in range(SETTLING_CYCLES):
        now = _fresh_reading(session, spool)
    return now.length - start.length


def home(session: ServoSession, name: str) -> Homing:
    """Home one tendon; returns the finished homing, with its result or its reason. The spool is at rest.

    Raises:
        BusError: the port is gone, or the servo does not accept its settings.
    """
    spool = session.uncalibrated_spools()[name]
    drive = Drive.VELOCITY if spool.encoder_turn else Drive.POSITION
    homing = Homing(spool, session.period, session.settings.homing, drive=drive)
    prepare(session, name, homing.ceiling)
    tendon = spool.observe(session.read()[name])
    try:
        while homing.phase not in (Phase.DONE, Phase.FAILED):
            _send(session, spool, homing.update(tendon, session.period))
            tendon = spool.observe(session.read()[name])
    finally:
        _hold(session, spool, tendon, homing.ceiling)
    return homing


def _motion(spool: Spool, speed: float, goal: float, tension: float) -> DriveCommand:
    if spool.encoder_turn:
        return DriveCommand(Drive.VELOCITY, speed, abs(speed), tension)
    return DriveCommand(Drive.POSITION, goal, abs(speed), tension)


def _hold(session: ServoSession, spool: Spool, tendon: TendonReading, tension: float) -> None:
    rate = spool.actuator.rate
    if spool.encoder_turn:
        _send(session, spool, DriveCommand(Drive.VELOCITY, 0.0, rate, tension))
    elif finite(tendon.length):
        _send(session, spool, DriveCommand(Drive.POSITION, tendon.length, rate, tension))


def _send(session: ServoSession, spool: Spool, command: DriveCommand) -> None:
    session.bus.write({spool.name: spool.command(command)})


def _fresh_reading(session: ServoSession, spool: Spool) -> TendonReading:
    """New reading of one tendon within a few cycles; raises BusError or TensegrityError without a valid one."""
    for _ in range(session.settings.homing.silent):
        tendon = spool.observe(session.read()[spool.name])
        raw = tendon.raw
        errors = raw.errors & STOPPING_ERRORS
        if errors:
            raise TensegrityError(f"the servo of {spool.name} reports {', '.join(sorted(errors))}; clear that first.")
        old = spool.measured_by == "potentiometer" and raw.sensor_age > 0
        if raw.age == 0 and not old and finite(tendon.length):
            return tendon
    if tendon.raw.age > 0:
        raise BusError(f"the servo of {spool.name} does not answer; check its plug.")
    raise TensegrityError(f"the {spool.measured_by} of {spool.name} gives no reading; check its plug.")
