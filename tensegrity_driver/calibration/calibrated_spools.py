"""From a robot's file and its calibration to the spools that are driven.

Without a calibration a spool is only good for homing and calibrating: its slope comes from the radius,

    length = −direction · radius · turned angle,   one count of a ten-turn potentiometer = 10 · 2π / 4096

and says nothing about where the tendon stands.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tensegrity_dynamics.errors import TensegrityError, unknown_name
from tensegrity_dynamics.robots.robot import Robot

from ..spools.position_loop import FreeRunLoop, Loop, PositionLoop
from ..spools.readings import Line, Spool
from .calibration_file import RobotCalibration

COUNT = 10.0 * 2.0 * math.pi / 4096.0
"""rad of a ten-turn potentiometer for one count of a 12-bit converter."""


@dataclass(frozen=True)
class Motor:
    """What a servo model's torque means, from its data sheet.

    Attributes:
        stall_torque: N m at load 1. torque_constant: N m/A, where the servo measures current.
        counts_turns: it goes to positions over many turns; else it only follows speeds, and pushes only while it moves.
    """

    stall_torque: float
    torque_constant: float | None = None
    counts_turns: bool = True


MOTORS: Mapping[str, Motor] = {
    "AX-12A": Motor(1.5, counts_turns=False),  # at 12 V
    "XL430-W250": Motor(1.5),  # at 12 V; it measures load
    "XM430-W350": Motor(4.1, 4.1 / 2.3),  # at 12 V and 2.3 A
    "XM430-W210": Motor(3.0, 3.0 / 2.3),
}


def rough_lines(servo: Mapping[str, Any]) -> dict[str, Line]:
    """Lines by sensor from the radius alone; sensors turn with the servo's positive direction."""
    slope = -float(servo["direction"] or 1) * float(servo["spool_radius"])
    lines = {"encoder": Line(slope, 0.0)}
    if servo.get("potentiometer") is not None:
        lines["potentiometer"] = Line(slope * COUNT, 0.0)
    return lines


def make_spools(
    robot: Robot,
    calibration: RobotCalibration | None,
    *,
    motors: Mapping[str, Motor] = MOTORS,
) -> dict[str, Spool]:
    """Spools by actuator.

    Args:
        robot: with servos.
        calibration: loaded for this robot and this bus; None for rough spools, to home and to calibrate.
        motors: by servo model.

    Raises:
        TensegrityError: no servos, an unknown model, or a wheel-mode servo without potentiometer.
        CalibrationError: the sensor that measures was never calibrated.
    """
    rows = robot.servos.get("servos") or ()
    if not rows:
        raise TensegrityError(f"{robot.name} has no servos; add a servos block to its file.")
    actuators = {each.name: each for each in robot.actuators}
    spools: dict[str, Spool] = {}
    for servo in rows:
        name, model = servo["actuator"], servo["model"]
        if model not in motors:
            raise TensegrityError(f"servo {servo['id']} ({name}): " + unknown_name("servo model", model, motors))
        motor = motors[model]
        measured_by = "encoder" if motor.counts_turns else "potentiometer"
        rough = rough_lines(servo)
        if measured_by not in rough:
            raise TensegrityError(
                f"servo {servo['id']} ({name}) is a {model}, which counts no turns; give the channel of its "
                "potentiometer."
            )
        if calibration is None:
            lines = rough
        else:
            known = calibration.sensors.get(name, {})
            lines = {sensor: known[sensor].line for sensor in rough if sensor in known}
            lines[measured_by] = calibration.line(name, measured_by)
        spools[name] = Spool(
            actuator=actuators[name],
            measured_by=measured_by,
            radius=float(servo["spool_radius"]),
            potentiometer=lines.get("potentiometer"),
            encoder=lines.get("encoder"),
            direction=int(servo["direction"] or 1),
            stall_torque=motor.stall_torque,
            torque_constant=motor.torque_constant,
            encoder_turn=not motor.counts_turns,
            stiffness=robot.model.tendon_stiffness(actuators[name].drives),
            load_at_rest=motor.counts_turns,
        )
    return spools


def make_loops(spools: Mapping[str, Spool], period: float) -> dict[str, Loop]:
    """A loop for every spool, as its servo is driven: by positions where it counts turns, else by speeds."""
    return {
        name: PositionLoop(spool, period) if spool.measured_by == "encoder" else FreeRunLoop(spool, period)
        for name, spool in spools.items()
    }
