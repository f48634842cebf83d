"""Quasi-static motion of the shaft of a loaded servo: linear speed-torque line of the motor, gear friction, slipping.

With stall torque T and no-load speed w0 at the present voltage, and the torque L of the load on the shaft:

    motor torque balances the load up to its ceiling:   m = clip(-L, ±ceiling),   rest r = L + m
    |r| <= friction: moves as commanded, against the load at no more than w0 (1 - |m| / T)
    |r| >  friction: driven by the load at w0 (|r| - friction) / T
    torque off, m = 0: braked by friction alone, `LOOSE` times as fast

A servo whose position gains were changed is a shaft with the inertia `INERTIA` instead, on which its own loop acts
every `LOOP_S` (`soft_turn`):

    torque = clip(k_p (q_d - q) + k_d (v_d - v), ±ceiling),  in the direction of motion at most T (1 - |v| / w0)

A driven shaft stops where the pull of its tendon equals friction, whatever the length of the step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..servos.motors import INERTIA, LOOP_S

FRICTION = 0.01
"""Torque that gear and spool hold without current, as a fraction of the stall torque."""
LOOSE = 4.0
"""Ratio of the speeds at which a load turns a motor without torque and a braking one."""


@dataclass(frozen=True)
class Drive:
    """Command of the electronics to the motor in one step.

    Attributes:
        speed: rad/s. ceiling: torque limit [N m].
        droop: speed lost at a load of the stall torque, without velocity loop [rad/s].
        torque: torque at any speed [N m], in torque modes; None in other modes.
    """

    speed: float = 0.0
    ceiling: float = 0.0
    droop: float = 0.0
    torque: float | None = None


@dataclass(frozen=True)
class Turn:
    """Result of one step: speed [rad/s], torque of the motor [N m], and whether the load overcame it."""

    speed: float
    torque: float
    overcome: bool = False


def turn(drive: Drive, load: float, stall: float, top_speed: float, stiffness: float, step: float) -> Turn:
    """Compute one step of the shaft.

    Args:
        drive: command. load: torque on the shaft in the positive direction of the servo [N m].
        stall, top_speed: stall torque [N m] and no-load speed [rad/s] at the present voltage.
        stiffness: of the load [N m/rad]. step: s.
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
        if drive.torque is None and drive.speed * rest > 0.0:  # commanded in the direction of the load
            speed = math.copysign(max(carried, min(abs(drive.speed), top_speed)), rest)
        return Turn(speed, torque, drive.torque is None and ceiling > 0.0)
    if drive.torque is not None:
        return Turn(0.0, torque)
    return _commanded(drive, load, torque, stall, top_speed)


def _commanded(drive: Drive, load: float, torque: float, stall: float, top_speed: float) -> Turn:
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


@dataclass(frozen=True)
class Shaft:
    """Command of a servo's own position loop in one step.

    Attributes:
        error: goal minus position at the start of the step [rad]. rate: of the goal [rad/s].
        stiffness: N m/rad. damping: N m s/rad. ceiling: torque limit [N m].
    """

    error: float
    rate: float
    stiffness: float
    damping: float
    ceiling: float


def soft_turn(
    shaft: Shaft, speed: float, load: float, stall: float, top_speed: float, stiffness: float, step: float
) -> Turn:
    """Compute one step of a shaft that yields.

    Args:
        shaft: command. speed: of the shaft at the start [rad/s].
        load, stall, top_speed, stiffness, step: see `turn`; the load falls by `stiffness` per rad that the shaft turns.

    Returns:
        The mean speed, so that the shaft arrives; and the last torque.
    """
    if stall <= 0.0 or top_speed <= 0.0:
        return Turn(0.0, 0.0)
    count = max(1, round(step / LOOP_S))
    h, friction, ceiling = step / count, FRICTION * stall, min(shaft.ceiling, stall)
    turned, torque = 0.0, 0.0
    for k in range(count):
        error = shaft.error + shaft.rate * h * k - turned
        desired = shaft.stiffness * error + shaft.damping * (shaft.rate - speed)
        torque = min(max(desired, -ceiling), ceiling)
        most = max(0.0, stall * (1.0 - abs(speed) / top_speed))
        if torque * speed > 0.0:
            torque = min(max(torque, -most), most)
        own = (shaft.stiffness, shaft.damping) if torque == desired else (0.0, 0.0)
        # backward Euler in what depends on the motion, so that no gain makes the step unstable
        weight = INERTIA + h * (own[1] + h * (own[0] + stiffness))
        rest = torque + load - stiffness * turned - h * (own[0] + stiffness) * speed + own[0] * shaft.rate * h
        free = speed + h * rest / weight
        brake = h * friction / weight
        before, speed = speed, math.copysign(max(0.0, abs(free) - brake), free)
        turned += h * speed
        given = (
            torque + own[0] * h * (shaft.rate - speed) - own[1] * (speed - before)
        )  # at the end of the step, as acts
        torque = min(max(given, -ceiling), ceiling)
    return Turn(turned / step, torque)
