"""What the shaft of a loaded servo does, quasi-static: the motor's line from speed to torque, gear friction, slipping.

With stall torque T and speed without load w0 at the present voltage, and the load's torque L on the shaft:

    a drive gives what balances the load, cut at its ceiling:   m = clip(-L, ±ceiling),   rest r = L + m
    |r| <= friction: it moves as commanded, working against the load at no more than w0 (1 - |m| / T)
    |r| >  friction: the load turns it, w0 (|r| - friction) / T
    torque off, m = 0: nothing brakes but friction, and it turns `LOOSE` times as fast

The last line never carries a tendon beyond the point where its pull and friction balance, however long the step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

FRICTION = 0.01
"""Torque [1 of the stall torque] that gear and spool hold by themselves."""
LOOSE = 4.0
"""How much faster a load turns a motor that is switched off than one that brakes."""


@dataclass(frozen=True)
class Drive:
    """What the electronics ask of the motor in one step.

    Attributes:
        speed: rad/s that it tries to turn with. ceiling: N m that it may give.
        droop: rad/s that it loses at a load of the stall torque, where no loop closes on the speed.
        torque: N m that it gives whatever the speed, instead of all that; None in other modes.
    """

    speed: float = 0.0
    ceiling: float = 0.0
    droop: float = 0.0
    torque: float | None = None


@dataclass(frozen=True)
class Turn:
    """What came of it: speed [rad/s], torque of the motor [N m], and whether it gave way to its load."""

    speed: float
    torque: float
    overcome: bool = False


def turn(drive: Drive, load: float, stall: float, top_speed: float, stiffness: float, step: float) -> Turn:
    """One step.

    Args:
        drive: what is asked. load: torque on the shaft [N m], in the servo's positive direction.
        stall, top_speed: N m and rad/s of the motor at its present voltage.
        stiffness: of the load [N m/rad]: by how much it gives way when the shaft follows it. step: s.
    """
    if stall <= 0.0 or top_speed <= 0.0:
        return Turn(0.0, 0.0)
    friction = FRICTION * stall
    ceiling = min(drive.ceiling, stall)
    if drive.torque is None:
        torque = min(max(-load, -ceiling), ceiling)
    else:
        torque = min(max(drive.torque, -ceiling), ceiling)
    rest = load + torque
    if abs(rest) > friction:
        excess = abs(rest) - friction
        carried = top_speed * excess / stall * (LOOSE if ceiling <= 0.0 else 1.0)
        if carried * stiffness * step > excess:
            carried = excess / (stiffness * step)
        speed = math.copysign(carried, rest)
        if drive.torque is None and drive.speed * rest > 0.0:  # it is asked to go there anyway
            speed = math.copysign(max(carried, min(abs(drive.speed), top_speed)), rest)
        return Turn(speed, torque, drive.torque is None and ceiling > 0.0)
    if drive.torque is not None:
        return Turn(0.0, torque)
    return _asked(drive, load, torque, stall, top_speed)


def _asked(drive: Drive, load: float, torque: float, stall: float, top_speed: float) -> Turn:
    part = abs(torque) / stall
    if drive.speed == 0.0 or drive.ceiling <= 0.0:
        return Turn(0.0, torque)
    against = drive.speed * load < 0.0
    if against and drive.ceiling <= abs(load):
        return Turn(0.0, torque, True)
    if not against:
        return Turn(math.copysign(min(abs(drive.speed), top_speed), drive.speed), torque)
    speed = min(max(0.0, abs(drive.speed) - drive.droop * part), top_speed * (1.0 - part))
    return Turn(math.copysign(speed, drive.speed), torque)
