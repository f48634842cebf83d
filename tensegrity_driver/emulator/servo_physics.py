"""Motor, sensors and protections of one emulated servo: goal registers in, shaft motion and measurement registers out.

The modes are those of the manuals: an AX-12A with both angle limits at zero turns endlessly (wheel mode), else it moves
to positions within 300 deg; the X series has an operating mode register. The manuals leave open, and are modelled so:

- Wheel mode has no velocity loop: the servo loses `DROOP` of its top speed at a load of its stall torque, and reports a
  load only while it turns against it. Brake and gear hold it at rest, within its torque limit.
- Its temperature rises by `HEATING_K` at stall torque, with the square of the load and time constant
  `HEATING_TIME_S`.
- It reports overload after `OVERLOAD_TIME_S` in which it can neither hold nor move its load within its ceiling
  (AX-12A), or gives more than `OVERLOAD_SHARE` of its stall torque (X series, where the current ceiling is no fault).
"""

from __future__ import annotations

import math

from ..bus.control_tables import ServoModel
from ..servos.motors import Motor
from .motor_model import Drive, Shaft, Turn, soft_turn, turn
from .register_file import RegisterFile

NOMINAL_VOLTAGE = 12.0  # V
DROOP = 0.25  # of the top speed, at stall torque
AMBIENT_C, HEATING_K, HEATING_TIME_S = 25.0, 120.0, 300.0
OVERLOAD_TIME_S, OVERLOAD_SHARE = 2.0, 0.9
AX_RANGE_RAD = math.radians(300.0)
TURN = 2.0 * math.pi
VOLTAGE_BIT, OVERHEATING_BIT, OVERLOAD_BIT = 0x01, 0x04, 0x20
CURRENT, VELOCITY, POSITION, EXTENDED, CURRENT_BASED, PWM = 0, 1, 3, 4, 5, 16
"""Operating modes of the X series."""


class ServoPhysics:
    """Shaft of one servo.

    Args:
        model, registers: of the servo. motor: with its torque.
        mounted: angle between the zero of the spool and the zero of the encoder [rad].
        droop: part of the top speed that is lost in wheel mode at stall torque.

    Attributes:
        angle: of the shaft over all turns, in the positive direction of the servo [rad]. speed: rad/s.
        torque: of the motor [N m]. voltage: of the supply [V]. temperature: degrees Celsius.
        errors: hardware error bits.
        forced_speed: speed of a runaway servo [rad/s], or None. forced_temperature: of an overheated one, or None.
        jammed: the shaft does not turn.
    """

    def __init__(
        self, model: ServoModel, registers: RegisterFile, motor: Motor, mounted: float = 0.0, droop: float = DROOP
    ) -> None:
        self.model, self.registers, self.motor, self.mounted = model, registers, motor, mounted
        self.droop = droop
        self.angle = self.speed = self.torque = 0.0
        self.voltage, self.temperature = NOMINAL_VOLTAGE, AMBIENT_C
        self.errors = 0
        self.forced_speed: float | None = None
        self.forced_temperature: float | None = None
        self.jammed = False
        self._overload_time = 0.0
        self._time_without_packet = 0.0
        self._turns = 0
        self._trajectory: float | None = None
        self.power_up()

    # -- what the instructions change ------------------------------------------------------------------------------

    def power_up(self) -> None:
        """Supply on: RAM is reset, the turn count restarts, errors are cleared, torque is off."""
        self.registers.power_up()
        self.errors, self._overload_time, self._time_without_packet = 0, 0.0, 0.0
        self.reset_turns()
        self._rest_here()

    def reset_turns(self) -> None:
        """Restart the turn count: the position is within one turn afterwards."""
        self._turns = math.floor((self.angle + self.mounted) / TURN)

    def change_turns(self, turns: int) -> None:
        """Change the turn count by a number of turns, without motion of the shaft."""
        self._turns -= turns

    def torque_switched(self) -> None:
        """Torque was switched on or off; a servo that is switched on holds its position."""
        self._overload_time = self._time_without_packet = 0.0
        self._rest_here()

    def reset_watchdog(self) -> None:
        """An instruction to this servo arrived: restart its bus watchdog and refresh its measurement registers."""
        self._time_without_packet = 0.0
        self.refresh_registers()

    def clear_overload(self) -> None:
        """Clear the overload error, as an AX-12A does when its torque limit is written."""
        self.errors &= ~OVERLOAD_BIT
        self._overload_time = 0.0

    # -- state -----------------------------------------------------------------------------------------------------

    @property
    def torque_on(self) -> bool:
        return self.registers.raw("torque_enable") != 0

    @property
    def watchdog_bit(self) -> bool:
        """Whether its bus watchdog has stopped it."""
        return self.registers.raw("bus_watchdog") == 0xFF

    @property
    def mode(self) -> int:
        """Operating mode with the numbers of the X series; wheel mode is VELOCITY."""
        registers = self.registers
        if self.model.protocol == 1:
            return POSITION if registers.raw("cw_limit") or registers.raw("ccw_limit") else VELOCITY
        return registers.raw("operating_mode")

    @property
    def wheel(self) -> bool:
        """Whether it is in wheel mode, without velocity loop."""
        return self.model.protocol == 1 and self.mode == VELOCITY

    @property
    def stall_torque(self) -> float:
        """At the present voltage [N m]."""
        return self.motor.stall_torque * self.voltage / NOMINAL_VOLTAGE

    @property
    def top_speed(self) -> float:
        """No-load speed at the present voltage [rad/s]."""
        return self.motor.top_speed * self.voltage / NOMINAL_VOLTAGE

    @property
    def position(self) -> float:
        """Position as the servo counts it, without rounding [rad]."""
        if self.model.protocol == 1:
            return (self.angle + self.mounted) % TURN
        counted = self.angle + self.mounted - TURN * self._turns
        return self._direction * counted + self.registers.value("homing_offset")

    @property
    def _direction(self) -> int:
        return -1 if self.registers.raw("drive_mode") & 1 else 1

    # -- time ------------------------------------------------------------------------------------------------------

    def move(self, load: float, stiffness: float, step: float) -> float:
        """Compute one step under a load; returns the speed of the shaft during it [rad/s].

        Args:
            load: torque on the shaft in the positive direction of the servo [N m]. stiffness: of the load [N m/rad].
            step: s.
        """
        self._update_watchdog(step)
        gains = self._gains()
        if gains is None:
            self._trajectory = None
            done = turn(self._drive(step), load, self.stall_torque, self.top_speed, stiffness, step)
        else:
            done = self._yield(gains, load, stiffness, step)
        if self.forced_speed is not None:
            done = Turn(self.forced_speed, -load)
        if self.jammed:
            done = Turn(0.0, done.torque)
        self.speed, self.torque = done.speed, done.torque
        self._update_errors(done, step)
        return self.speed

    def turned(self, angle: float, step: float) -> None:
        """Set the angle of the shaft after the step [rad], and update the temperature."""
        self.angle = angle
        part = abs(self.torque) / self.motor.stall_torque
        if self.forced_temperature is not None:
            self.temperature = self.forced_temperature
        else:
            steady = AMBIENT_C + HEATING_K * part * part
            self.temperature += (steady - self.temperature) * -math.expm1(-step / HEATING_TIME_S)

    def refresh_registers(self) -> None:
        """Write the present measurements to their registers."""
        registers = self.registers
        measured_torque = self.torque if not self.wheel or self._turns_against_load else 0.0
        position = self.position
        if self.model.protocol == 1 and position > AX_RANGE_RAD:  # dead zone of its potentiometer: either end
            position = AX_RANGE_RAD if position < 0.5 * (AX_RANGE_RAD + TURN) else 0.0
        registers.set("present_position", position)
        registers.set("present_velocity", self._direction * self.speed)
        registers.set("present_load", self._direction * measured_torque / self.motor.stall_torque)
        if self.motor.torque_constant is not None:
            registers.set("present_current", self._direction * measured_torque / self.motor.torque_constant)
        registers.set("present_pwm", self._direction * measured_torque / self.motor.stall_torque)
        registers.set("present_voltage", self.voltage)
        registers.set("present_temperature", self.temperature)
        registers.set_raw("moving", int(abs(self.speed) > 0.02))
        registers.set_raw("hardware_error", self.errors)

    # -- parts -----------------------------------------------------------------------------------------------------

    @property
    def is_soft(self) -> bool:
        """Whether gains of its own say how it yields."""
        return self._gains() is not None

    def _gains(self) -> tuple[float, float] | None:
        """Stiffness [N m/rad] and damping [N m s/rad] of the shaft; None where the gains of the factory hold it."""
        registers, motor = self.registers, self.motor
        if motor.stiffness_step is None or motor.damping_step is None or self.mode != CURRENT_BASED:
            return None
        raw = registers.raw("position_p_gain"), registers.raw("position_d_gain")
        tables = self.model.registers
        factory = tables["position_p_gain"].initial or 0, tables["position_d_gain"].initial or 0
        if raw == factory or not self.torque_on or self.watchdog_bit:
            return None
        return raw[0] * motor.stiffness_step, raw[1] * motor.damping_step

    def _yield(self, gains: tuple[float, float], load: float, stiffness: float, step: float) -> Turn:
        """One step of a shaft that yields, see `soft_turn`; its goal moves at no more than the profile velocity."""
        registers = self.registers
        fastest = abs(registers.value("profile_velocity")) or self.top_speed
        goal = registers.value("goal_position")
        begin = self.position if self._trajectory is None else self._trajectory
        self._trajectory = begin + min(max(goal - begin, -fastest * step), fastest * step)
        sign = self._direction
        return soft_turn(
            Shaft(sign * (begin - self.position), sign * (self._trajectory - begin) / step, *gains, self._ceiling()),
            self.speed, load, self.stall_torque, self.top_speed, stiffness, step,
        )  # fmt: skip

    def _rest_here(self) -> None:
        """Set the goals to the present position and to speed zero."""
        self.registers.set("goal_position", self.position)
        self.registers.set_raw("goal_velocity", 0)

    @property
    def _turns_against_load(self) -> bool:
        speed = self.registers.value("moving_speed")
        return self.torque_on and speed != 0.0 and speed * self.torque > 0.0

    def _ceiling(self) -> float:
        """Torque limit by its registers [N m]."""
        registers = self.registers
        if "torque_limit" in registers:
            return registers.value("torque_limit") * self.motor.stall_torque
        duty = min(abs(registers.value("goal_pwm", 1.0)), 1.0) * self.stall_torque  # a ceiling in every mode
        constant = self.motor.torque_constant
        if constant is None:
            return min(registers.value("torque_ceiling", 1.0) * self.motor.stall_torque, duty)
        current = registers.value("torque_ceiling")
        if self.mode == CURRENT_BASED:
            current = min(current, abs(registers.value("goal_current")))
        return min(current * constant, duty)

    def _drive(self, step: float) -> Drive:
        registers, mode = self.registers, self.mode
        if not self.torque_on:
            return Drive()
        ceiling, constant = self._ceiling(), self.motor.torque_constant
        if self.watchdog_bit:
            return Drive(0.0, ceiling)
        if mode == CURRENT and constant is not None:
            return Drive(0.0, ceiling, torque=self._direction * registers.value("goal_current") * constant)
        if mode == PWM:
            return Drive(0.0, ceiling, torque=self._direction * registers.value("goal_pwm") * self.stall_torque)
        if self.wheel:
            return Drive(registers.value("moving_speed"), ceiling, self.droop * self.top_speed)
        if mode == VELOCITY:
            return Drive(self._direction * registers.value("goal_velocity"), ceiling)
        speed_limit = (
            abs(registers.value("moving_speed" if self.model.protocol == 1 else "profile_velocity")) or self.top_speed
        )
        distance = registers.value("goal_position") - self.position
        if self.model.protocol == 1:
            distance = (distance + math.pi) % TURN - math.pi
        return Drive(self._direction * min(max(distance / step, -speed_limit), speed_limit), ceiling)

    def _update_watchdog(self, step: float) -> None:
        """Trigger the bus watchdog after its time without a packet while torque is on."""
        self._time_without_packet += step
        raw = self.registers.raw("bus_watchdog")
        if 0 < raw < 128 and self.torque_on and self._time_without_packet > self.registers.value("bus_watchdog"):
            self.registers.set_raw("bus_watchdog", 0xFF)
            self._rest_here()

    def _update_errors(self, done: Turn, step: float) -> None:
        """Update the error bits, and shut down where the registers say so."""
        registers = self.registers
        live = 0
        if not registers.value("min_voltage") <= self.voltage <= registers.value("max_voltage"):
            live |= VOLTAGE_BIT
        if self.temperature > registers.value("temperature_limit"):
            live |= OVERHEATING_BIT
        old = self.model.protocol == 1
        overloaded = done.overcome if old else abs(done.torque) >= OVERLOAD_SHARE * self.motor.stall_torque
        self._overload_time = self._overload_time + step if overloaded and self.torque_on else 0.0
        if self._overload_time > OVERLOAD_TIME_S:
            live |= OVERLOAD_BIT
        # the X series keeps errors until it reboots, an AX-12A only its overload
        self.errors = live | self.errors & (OVERLOAD_BIT if old else 0xFF)
        if self.errors & registers.raw("shutdown") and self.torque_on:
            registers.set_raw("torque_enable", 0)
            registers.set_raw("torque_limit", 0)
