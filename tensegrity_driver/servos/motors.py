"""Torque of the servo models: what their load and current readings stand for, from the data sheets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tensegrity_dynamics.robots.actuator import Actuator
from tensegrity_dynamics.robots.actuator import Motor as ActuatorMotor

RPM = 2.0 * math.pi / 60.0
TOP_SPEED = 60.0 * RPM
"""No-load speed of models that state none [rad/s]."""
INERTIA = 0.01
"""Of rotor and gear of the servos with a current loop, at the shaft [kg m^2]; assumed."""
LOOP_S = 0.001
"""Period of a servo's own position loop [s]."""


@dataclass(frozen=True)
class Motor:
    """Torque of one servo model, from its data sheet.

    Attributes:
        stall_torque: at load 1 [N m]. torque_constant: N m/A, or None for servos without current sensor.
        counts_turns: driven by positions over many turns. False: driven by velocities in wheel mode; such a servo
            reports a load only while it turns against it.
        top_speed: without load at 12 V [rad/s].
        inertia: of rotor and gear at the shaft [kg m^2], assumed, as makers do not state it; 0 where the load that the
            servo tells is too coarse and too late to show what accelerates it.
        stiffness_step: N m/rad of a unit of the P gain of its position loop, damping_step: N m s/rad of a unit of its D
            gain; None for servos without current loop, whose gains are no torques.
    """

    stall_torque: float
    torque_constant: float | None = None
    counts_turns: bool = True
    top_speed: float = TOP_SPEED
    inertia: float = 0.0
    stiffness_step: float | None = None
    damping_step: float | None = None


_PULSES = 4096.0 / (2.0 * math.pi)
_CURRENT_STEP_A = 2.69e-3


def _by_current(stall_torque: float, constant: float, top_speed: float) -> Motor:
    """A servo with a current loop: its position gains, in units of current per pulse, are torques per angle.

    The maker's block diagram of current-based position control turns P gain / 128 times the error [pulses] and D gain
    / 16 times the change of the error in a period of the loop into a goal current [units]. That the period is
    `LOOP_S` is assumed.
    """
    unit = constant * _CURRENT_STEP_A * _PULSES
    return Motor(stall_torque, constant, True, top_speed, INERTIA, unit / 128.0, unit / 16.0 * LOOP_S)


MOTORS: Mapping[str, Motor] = {
    "AX-12A": Motor(1.5, counts_turns=False, top_speed=59.0 * RPM),  # at 12 V
    "XL430-W250": Motor(1.5, top_speed=61.0 * RPM),  # at 12 V; it measures load
    "XM430-W350": _by_current(4.1, 4.1 / 2.3, 46.0 * RPM),  # at 12 V and 2.3 A
    "XM430-W210": _by_current(3.0, 3.0 / 2.3, 77.0 * RPM),
}
"""Motors by servo model."""


def actuator_motors(block: Mapping[str, Any], actuators: tuple[Actuator, ...]) -> dict[str, ActuatorMotor]:
    """What the servos of a block of a robot file do at their actuators, by name; servos without a model do not tell.

    A servo turns `gear` times for one turn of a pulley or joint, and moves what it winds or slides by `spool_radius`
    / `gear` per rad.
    """
    motions = {each.name: each.motion for each in actuators}
    reported = {}
    for row in block["servos"]:
        motor, gear = MOTORS.get(row["model"]), float(row["gear"] or 1.0)
        radius = 1.0 if motions.get(row["actuator"]) == "revolute" else row["spool_radius"]
        if motor is not None and radius is not None and row["actuator"] in motions:
            reported[row["actuator"]] = ActuatorMotor(
                f"servo {row['id']} ({row['model']})", motor.top_speed * radius / gear,
                motor.stall_torque * gear / radius, motor.inertia * (gear / radius) ** 2,
            )  # fmt: skip
    return reported
