"""Spools of a robot, made from its servo block and its calibration, and their position loops.

A spool without calibration has the slope of its radius,

    length = −direction · radius · turned angle,   one count of a ten-turn potentiometer = 10 · 2π / 4096

and intercept zero: its changes of length are valid, its lengths are not. It is used for homing and calibration.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tensegrity_dynamics.errors import TensegrityError, unknown_name
from tensegrity_dynamics.robots.robot import Robot

from ..bus.control_tables import model_named
from ..bus.potentiometer_protocol import RADIANS_PER_COUNT
from ..servos.motors import MOTORS, Motor
from ..spools.position_loop import FreeRunLoop, Loop, PositionLoop
from ..spools.spool import MULTI_TURN_LIMIT_RAD, Line, Spool
from ..spools.transmission import Transmission, transmission_of
from .calibration_file import AGAIN, RobotCalibration
from .line_fit import CalibrationCheck, CalibrationError, calibrate_spool, doubtful_slope

LARGEST_SLOPE_RATIO = 2.0
"""Largest ratio between a calibrated slope and the slope by the spool radius, or its inverse; above a smaller
one (`line_fit.PLAUSIBLE_SLOPE`) calibration and driver warn."""
READINGS = {"potentiometer": (0.0, 4095.0), "encoder": (-MULTI_TURN_LIMIT_RAD, MULTI_TURN_LIMIT_RAD)}
"""Smallest and largest reading of a sensor [counts, rad]."""


def servo_rows(robot: Robot) -> tuple[Mapping[str, Any], ...]:
    """Rows of the servo block of a robot file; raises TensegrityError for a robot without servos."""
    rows = tuple(robot.servos.get("servos") or ())
    if not rows:
        raise TensegrityError(f"{robot.name} has no servos; add a `servos` block to its robot file.")
    return rows


def nominal_lines(servo: Mapping[str, Any], radius: float) -> dict[str, Line]:
    """Uncalibrated lines of one servo row by sensor: slope by the length wound per servo rotation [m/rad], intercept
    zero.

    Both sensors are assumed to increase in the positive direction of the servo.
    """
    slope = -float(servo["direction"] or 1) * radius
    lines = {"encoder": Line(slope, 0.0)}
    if servo.get("potentiometer") is not None:
        lines["potentiometer"] = Line(slope * RADIANS_PER_COUNT, 0.0)
    return lines


def fit_spool(
    robot: Robot, spool: Spool, readings: Sequence[float], lengths: Sequence[float], *, resolution: float = 0.0
) -> CalibrationCheck:
    """Line fit to measured points of the position-loop sensor of a spool, compared with the spool radius.

    Args:
        robot: robot of the spool.
        readings: (n,) sensor readings [counts or rad]. lengths: (n,) rest lengths [m].
        resolution: resolution of the measured lengths [m].

    Raises:
        CalibrationError: no valid line, or a line that contradicts the wiring; see `calibrate_spool`.
    """
    row = next(each for each in servo_rows(robot) if each["actuator"] == spool.name)
    return calibrate_spool(
        spool.name,
        readings,
        lengths,
        expected_slope=nominal_lines(row, spool.radius)[spool.measured_by].slope,
        limits=spool.actuator.position,
        resolution=resolution,
    )


def check_calibration(robot: Robot, calibration: RobotCalibration) -> None:
    """Refuse lines that are impossible for the sensors of the robot, such as with wrong units or a reversed sensor.

    Args:
        robot: robot with servos. calibration: calibration of this robot.

    Raises:
        CalibrationError: a slope differs from the slope by the spool radius in sign or by more than a factor of
            `LARGEST_SLOPE_RATIO`, or no reading of the sensor gives a length within the limits of its actuator.
    """
    ratios = slope_ratios(robot, calibration)
    for (name, sensor), ratio in ratios.items():
        if not 1.0 / LARGEST_SLOPE_RATIO <= ratio <= LARGEST_SLOPE_RATIO:
            slope = calibration.sensors[name][sensor].slope
            raise CalibrationError(
                f"the {sensor} of {name} has a slope of {slope:.3g} m per unit, {ratio:.3g} times that from its spool "
                f"radius ({slope / ratio if ratio else math.nan:.3g}); {AGAIN}."
            )
    for servo in servo_rows(robot):
        transmission, name = transmission_of(robot, servo), servo["actuator"]
        for sensor, own in calibration.sensors.get(name, {}).items():
            if (name, sensor) not in ratios:
                continue
            if sensor == "encoder" and not MOTORS[servo["model"]].counts_turns:
                continue  # it repeats every turn, so its intercept is ambiguous
            low, high = sorted(own.line(each) for each in READINGS[sensor])
            least, most = transmission.winding.position
            if high < least or low > most:
                raise CalibrationError(
                    f"the {sensor} of {name} has an intercept of {own.intercept:.6g} m, with which it can measure only "
                    f"{low:.3g} to {high:.3g} m, all outside the position limits of its actuator ({least:g} to "
                    f"{most:g} m); {AGAIN}."
                )


def slope_ratios(robot: Robot, calibration: RobotCalibration) -> dict[tuple[str, str], float]:
    """Calibrated slopes relative to those by spool radius and wiring, by (actuator, sensor)."""
    ratios = {}
    for servo in servo_rows(robot):
        nominal = nominal_lines(servo, transmission_of(robot, servo).radius)
        for sensor, own in calibration.sensors.get(servo["actuator"], {}).items():
            if sensor in nominal:
                ratios[servo["actuator"], sensor] = own.slope / nominal[sensor].slope
    return ratios


def slope_warnings(robot: Robot, calibration: RobotCalibration) -> list[str]:
    """Warnings about calibrated slopes that the spool radii do not explain; empty if all are plausible."""
    ratios = slope_ratios(robot, calibration)
    return [text for (name, sensor), each in ratios.items() if (text := doubtful_slope(f"{sensor} of {name}", each))]


def make_spools(robot: Robot, calibration: RobotCalibration | None) -> dict[str, Spool]:
    """Spools by actuator.

    Args:
        robot: robot with servos.
        calibration: calibration for this robot and bus; None: uncalibrated spools, for homing and calibration.

    Raises:
        TensegrityError: no servos, an unknown model, or a wheel-mode servo without potentiometer.
        CalibrationError: the sensor of the position loop is not calibrated.
    """
    spools: dict[str, Spool] = {}
    for servo in servo_rows(robot):
        name, model = servo["actuator"], servo["model"]
        if model not in MOTORS:
            raise TensegrityError(f"servo {servo['id']} ({name}): " + unknown_name("servo model", model, MOTORS))
        motor = MOTORS[model]
        measured_by = "encoder" if motor.counts_turns else "potentiometer"
        transmission = transmission_of(robot, servo)
        nominal = nominal_lines(servo, transmission.radius)
        if measured_by not in nominal:
            raise TensegrityError(
                f"servo {servo['id']} ({name}) is a {model}, which does not count turns; give the channel of its "
                "`potentiometer` in the robot file."
            )
        if calibration is None:
            lines = nominal
        else:
            calibrated = calibration.sensors.get(name, {})
            lines = {sensor: calibrated[sensor].line for sensor in nominal if sensor in calibrated}
            lines[measured_by] = calibration.line(name, measured_by)
        spools[name] = Spool(
            actuator=transmission.winding,
            measured_by=measured_by,
            radius=transmission.radius,
            potentiometer=lines.get("potentiometer"),
            encoder=lines.get("encoder"),
            direction=int(servo["direction"] or 1),
            stall_torque=motor.stall_torque,
            torque_constant=motor.torque_constant,
            encoder_turn=not motor.counts_turns,
            stiffness=transmission.stiffness,
            load_at_rest=motor.counts_turns,
            on_board=robot.servos.get("position_loop") == "board",
            impedance_steps=_impedance_steps(motor),
            top_speed=motor.top_speed,
            speed_step=_speed_step(model),
            inertia=motor.inertia,
            no_impedance=_no_impedance(robot, model, motor, transmission),
            transmission=transmission,
        )
    return spools


def _speed_step(model: str) -> float:
    """Resolution of the speed limit of position commands [rad/s]; 0 for servos without this limit."""
    register = model_named(model).registers.get("profile_velocity")
    return 0.0 if register is None else register.factor


def _impedance_steps(motor: Motor) -> tuple[float, float] | None:
    if motor.stiffness_step is None or motor.damping_step is None:
        return None
    return motor.stiffness_step, motor.damping_step


def _no_impedance(robot: Robot, model: str, motor: Motor, transmission: Transmission) -> str:
    """Reason why an actuator accepts no impedance; empty if it does."""
    if transmission.is_tendon:
        return "it winds a tendon, and impedance is for joints and pulleys of mechanisms; command positions"
    if robot.servos.get("position_loop") == "board":
        return "its position loop runs on the potentiometer board, which takes positions only; command positions"
    if motor.stiffness_step is None:
        return (
            f"its {model} has no current loop, so its gains define no torque; command positions, or use a servo of "
            "the XM series"
        )
    return ""


def make_loops(spools: Mapping[str, Spool], period: float, gains: Mapping[str, float] | None = None) -> dict[str, Loop]:
    """Position loop of every spool: position commands for multi-turn servos and boards, velocity commands in wheel
    mode.

    Args:
        spools: spools by actuator. period: period of the bus cycle [s].
        gains: `proportional` and `integral` of servos in wheel mode, see `FreeRunLoop`; missing gains have their
            default values.
    """
    return {
        name: PositionLoop(spool, period)
        if spool.measured_by == "encoder" or spool.on_board
        else FreeRunLoop(spool, period, **(gains or {}))
        for name, spool in spools.items()
    }
