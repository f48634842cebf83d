"""Small motions of one spool without calibration: slow, under a low tension, ended by every doubt.

A spool that was never calibrated cannot be watched by the safety layer, which needs lengths. What is known here are
changes of length, by the radius; they say how far a jog has come, and whether it goes the right way.
"""

from __future__ import annotations

import math

from tensegrity_driver.calibration.homing import STOPPING_ERRORS, Homing, Phase
from tensegrity_driver.spools.readings import Drive, DriveCommand, Spool, TendonReading, finite
from tensegrity_dynamics.errors import BusError, TensegrityError

from .session import Rig

FURTHEST = 0.05
"""m of one jog."""
WRONG_WAY = 1.5e-3
"""m against the command that end a jog."""
SETTLING = 10
"""Cycles at rest after a jog."""
SHARE = 0.2
"""Of an actuator's effort, that a jog may pull with unless told otherwise."""


def prepare(rig: Rig, name: str, tension: float) -> None:
    """Set one servo up and switch its torque on where it is, at no more than a tension [N]; raises BusError."""
    spool = rig.rough_spools()[name]
    rest = DriveCommand(Drive.VELOCITY, 0.0, spool.actuator.rate, tension)
    rig.bus.ceilings[name] = spool.command(rest)
    rig.bus.prepare([name])


def let_go(rig: Rig, name: str) -> None:
    """Switch the torque of one servo off, verified; raises BusError."""
    servo = rig.bus.servos[name]
    rig.bus.bus.ensure(servo.id, servo.model.field("torque_enable"), 0.0)


def jog(rig: Rig, name: str, distance: float, tension: float) -> float:
    """Pay out (positive) or wind in by a distance [m] and stop; returns the change of length that came of it [m].

    Args:
        tension: N that is not exceeded. It may end before: pulling with all of that, or after twice the time.

    Raises:
        BusError: the servo does not answer or take its settings. TensegrityError: too far, no sensor, an error of the
            servo, or motion the wrong way; the spool is at rest then.
    """
    if not 0.0 < abs(distance) <= FURTHEST:
        raise TensegrityError(f"{1e3 * distance:+g} mm is no jog; take steps of at most {1e3 * FURTHEST:g} mm.")
    spool = rig.rough_spools()[name]
    prepare(rig, name, tension)
    speed = math.copysign(min(rig.settings.homing.speed, spool.actuator.rate), distance)
    start = _seen(rig, spool)
    now, goal = start, start.length
    try:
        for _ in range(math.ceil(2.0 * distance / (speed * rig.period)) + SETTLING):
            goal += speed * rig.period
            if (goal - start.length - distance) * speed > 0.0:
                goal = start.length + distance
            _send(rig, spool, _toward(spool, speed, goal, tension))
            now = _seen(rig, spool)
            done = (now.length - start.length) * math.copysign(1.0, distance)
            if done < -WRONG_WAY:
                raise TensegrityError(
                    f"{name} moved by {1e3 * (now.length - start.length):+.1f} mm when {1e3 * distance:+.1f} mm were "
                    "asked for; check the direction of servo and sensor in the robot file, and whether its tendon "
                    f"pulls with more than the {tension:.0f} N allowed (--tension)."
                )
            if done >= abs(distance):
                break
    finally:
        _rest(rig, spool, now, tension)
    for _ in range(SETTLING):
        now = _seen(rig, spool)
    return now.length - start.length


def home(rig: Rig, name: str) -> Homing:
    """Home one tendon; the homing that has ended, with its result or its reason. The spool is at rest then.

    Raises:
        BusError: the port is gone, or the servo does not take its settings.
    """
    spool = rig.rough_spools()[name]
    drive = Drive.VELOCITY if spool.encoder_turn else Drive.POSITION
    homing = Homing(spool, rig.period, rig.settings.homing, drive=drive)
    prepare(rig, name, homing.ceiling)
    tendon = spool.observe(rig.read()[name])
    try:
        while homing.phase not in (Phase.DONE, Phase.FAILED):
            _send(rig, spool, homing.update(tendon, rig.period))
            tendon = spool.observe(rig.read()[name])
    finally:
        _rest(rig, spool, tendon, homing.ceiling)
    return homing


def _toward(spool: Spool, speed: float, goal: float, tension: float) -> DriveCommand:
    if spool.encoder_turn:
        return DriveCommand(Drive.VELOCITY, speed, abs(speed), tension)
    return DriveCommand(Drive.POSITION, goal, abs(speed), tension)


def _rest(rig: Rig, spool: Spool, tendon: TendonReading, tension: float) -> None:
    rate = spool.actuator.rate
    if spool.encoder_turn:
        _send(rig, spool, DriveCommand(Drive.VELOCITY, 0.0, rate, tension))
    elif finite(tendon.length):
        _send(rig, spool, DriveCommand(Drive.POSITION, tendon.length, rate, tension))


def _send(rig: Rig, spool: Spool, command: DriveCommand) -> None:
    rig.bus.write({spool.name: spool.command(command)})


def _seen(rig: Rig, spool: Spool) -> TendonReading:
    """A fresh reading of one tendon; raises BusError, TensegrityError where nothing can be said of it."""
    for _ in range(rig.settings.homing.silent):
        tendon = spool.observe(rig.read()[spool.name])
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
