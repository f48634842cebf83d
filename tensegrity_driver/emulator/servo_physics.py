"""The motor, sensors and guards of one servo in time: registers in, turning shaft out, measurements back in registers.

Modes are those of the manuals: an AX-12A turns endlessly where both angle limits are zero (wheel mode), else it goes to
positions within 300 deg; the X series has an operating mode register. What no manual states is stated here:

- A servo in wheel mode closes no loop on its speed; it loses `DROOP` of its top speed at a load of its stall torque,
  and reports a load only while it pushes. Brake and gear hold it at rest, within its torque limit.
- It warms up by `HEATING` K at stall torque, with the square of its load, and with `WARMING` s as time constant.
- It reports overload when it cannot hold or move its load within its ceiling for `OVERLOAD_TIME` s (AX-12A), or gives
  more than `OVERLOADED` of its stall torque for as long (X series, whose current ceiling is no fault).
"""

from __future__ import annotations

import math

from ..bus.control_tables import ServoModel
from ..calibration.calibrated_spools import Motor
from .motor_model import Drive, Turn, turn
from .register_file import RegisterFile

TOP_SPEED = {"AX-12A": 59.0, "XL430-W250": 61.0, "XM430-W350": 46.0, "XM430-W210": 77.0}
"""rev/min without load at 12 V, from the manuals, by model; others are taken to reach `USUAL_SPEED`."""
USUAL_SPEED = 60.0
NOMINAL_VOLTAGE = 12.0
DROOP = 0.25
AMBIENT, HEATING, WARMING = 25.0, 120.0, 300.0
OVERLOAD_TIME, OVERLOADED = 2.0, 0.9
AX_RANGE = math.radians(300.0)
TURN = 2.0 * math.pi
VOLTAGE_BIT, OVERHEATING_BIT, OVERLOAD_BIT = 0x01, 0x04, 0x20
CURRENT, VELOCITY, POSITION, EXTENDED, CURRENT_BASED, PWM = 0, 1, 3, 4, 5, 16
"""Operating modes of the X series."""


class ServoPhysics:
    """One servo's shaft.

    Args:
        model, registers: of the servo. motor: what its torque means.
        mounted: rad between the spool's zero and the zero of the servo's own sensor, however it was put on.
        droop: part of its top speed that a servo in wheel mode loses at its stall torque.

    Attributes:
        angle: rad that the shaft has turned in the servo's positive direction, over all turns. speed: rad/s.
        torque: N m that the motor gives. voltage: V of its supply. temperature: degrees Celsius inside.
        errors: error bits that are set.
    """

    def __init__(
        self, model: ServoModel, registers: RegisterFile, motor: Motor, mounted: float = 0.0, droop: float = DROOP
    ) -> None:
        self.model, self.registers, self.motor, self.mounted = model, registers, motor, mounted
        self.droop = droop
        self.angle = self.speed = self.torque = 0.0
        self.voltage, self.temperature = NOMINAL_VOLTAGE, AMBIENT
        self.errors = 0
        self.forced_speed: float | None = None  # runs away with this speed
        self.forced_temperature: float | None = None
        self.jammed = False
        self._strained = 0.0
        self._quiet = 0.0
        self._turns = 0
        self.power_up()

    # -- what the instructions change ------------------------------------------------------------------------------

    def power_up(self) -> None:
        """Supply comes back: RAM as delivered, turns counted from this one, errors forgotten, torque off."""
        self.registers.power_up()
        self.errors, self._strained, self._quiet = 0, 0.0, 0.0
        self.forget_turns()
        self._rest_here()

    def forget_turns(self) -> None:
        """Count turns anew: the position is within one turn from here."""
        self._turns = math.floor((self.angle + self.mounted) / TURN)

    def torque_switched(self) -> None:
        """Torque was switched on or off; a servo that is switched on holds where it is."""
        self._strained = self._quiet = 0.0
        self._rest_here()

    def heard(self) -> None:
        """An instruction for this servo came: its bus watchdog starts anew, and its registers tell the present."""
        self._quiet = 0.0
        self.show()

    def forgive(self) -> None:
        """The host wrote a torque limit again: an AX-12A forgets its overload."""
        self.errors &= ~OVERLOAD_BIT
        self._strained = 0.0

    # -- state -----------------------------------------------------------------------------------------------------

    @property
    def torque_on(self) -> bool:
        return self.registers.raw("torque_enable") != 0

    @property
    def watchdog_bit(self) -> bool:
        """Its bus watchdog has stopped it."""
        return self.registers.raw("bus_watchdog") == 0xFF

    @property
    def mode(self) -> int:
        """Operating mode as a number of the X series; wheel mode is velocity."""
        registers = self.registers
        if self.model.protocol == 1:
            return POSITION if registers.raw("cw_limit") or registers.raw("ccw_limit") else VELOCITY
        return registers.raw("operating_mode")

    @property
    def wheel(self) -> bool:
        """Follows speeds without a loop."""
        return self.model.protocol == 1 and self.mode == VELOCITY

    @property
    def stall_torque(self) -> float:
        """N m at the present voltage."""
        return self.motor.stall_torque * self.voltage / NOMINAL_VOLTAGE

    @property
    def top_speed(self) -> float:
        """rad/s without load at the present voltage."""
        return TOP_SPEED.get(self.model.name, USUAL_SPEED) / 60.0 * TURN * self.voltage / NOMINAL_VOLTAGE

    @property
    def position(self) -> float:
        """rad, as the servo counts it, before any rounding."""
        if self.model.protocol == 1:
            return (self.angle + self.mounted) % TURN
        counted = self.angle + self.mounted - TURN * self._turns
        return self._sense * counted + self.registers.value("homing_offset")

    @property
    def _sense(self) -> int:
        return -1 if self.registers.raw("drive_mode") & 1 else 1

    # -- time ------------------------------------------------------------------------------------------------------

    def move(self, load: float, stiffness: float, step: float) -> float:
        """One step under a load; returns the speed [rad/s] with which the shaft turns during it.

        Args:
            load: torque on the shaft [N m], in the servo's positive direction. stiffness: of the load [N m/rad].
            step: s.
        """
        self._watch(step)
        done = turn(self._drive(step), load, self.stall_torque, self.top_speed, stiffness, step)
        if self.forced_speed is not None:
            done = Turn(self.forced_speed, -load)
        if self.jammed:
            done = Turn(0.0, done.torque)
        self.speed, self.torque = done.speed, done.torque
        self._guard(done, step)
        return self.speed

    def turned(self, angle: float, step: float) -> None:
        """The shaft stands at this angle [rad] after the step."""
        self.angle = angle
        part = abs(self.torque) / self.motor.stall_torque
        if self.forced_temperature is not None:
            self.temperature = self.forced_temperature
        else:
            warm = AMBIENT + HEATING * part * part
            self.temperature += (warm - self.temperature) * -math.expm1(-step / WARMING)

    def show(self) -> None:
        """Bring the registers that tell measurements up to date."""
        registers = self.registers
        tells = self.torque if not self.wheel or self._pushes else 0.0
        position = self.position
        if self.model.protocol == 1 and position > AX_RANGE:  # the open part of its potentiometer: either end
            position = AX_RANGE if position < 0.5 * (AX_RANGE + TURN) else 0.0
        registers.set("present_position", position)
        registers.set("present_velocity", self._sense * self.speed)
        registers.set("present_load", self._sense * tells / self.motor.stall_torque)
        if self.motor.torque_constant is not None:
            registers.set("present_current", self._sense * tells / self.motor.torque_constant)
        registers.set("present_pwm", self._sense * tells / self.motor.stall_torque)
        registers.set("present_voltage", self.voltage)
        registers.set("present_temperature", self.temperature)
        registers.set_raw("moving", int(abs(self.speed) > 0.02))
        registers.set_raw("hardware_error", self.errors)

    # -- parts -----------------------------------------------------------------------------------------------------

    def _rest_here(self) -> None:
        """Goals that keep it where it is."""
        self.registers.set("goal_position", self.position)
        self.registers.set_raw("goal_velocity", 0)

    @property
    def _pushes(self) -> bool:
        asked = self.registers.value("moving_speed")
        return self.torque_on and asked != 0.0 and asked * self.torque > 0.0

    def _ceiling(self) -> float:
        """N m that it may give by its registers."""
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
            return Drive(0.0, ceiling, torque=self._sense * registers.value("goal_current") * constant)
        if mode == PWM:
            return Drive(0.0, ceiling, torque=self._sense * registers.value("goal_pwm") * self.stall_torque)
        if self.wheel:
            return Drive(registers.value("moving_speed"), ceiling, self.droop * self.top_speed)
        if mode == VELOCITY:
            return Drive(self._sense * registers.value("goal_velocity"), ceiling)
        most = (
            abs(registers.value("moving_speed" if self.model.protocol == 1 else "profile_velocity")) or self.top_speed
        )
        way = registers.value("goal_position") - self.position
        if self.model.protocol == 1:
            way = (way + math.pi) % TURN - math.pi
        return Drive(self._sense * min(max(way / step, -most), most), ceiling)

    def _watch(self, step: float) -> None:
        """The bus watchdog: an error once nothing was heard for its time while torque is on."""
        self._quiet += step
        raw = self.registers.raw("bus_watchdog")
        if 0 < raw < 128 and self.torque_on and self._quiet > self.registers.value("bus_watchdog"):
            self.registers.set_raw("bus_watchdog", 0xFF)
            self._rest_here()

    def _guard(self, done: Turn, step: float) -> None:
        """Error bits and shutdown."""
        registers = self.registers
        live = 0
        if not registers.value("min_voltage") <= self.voltage <= registers.value("max_voltage"):
            live |= VOLTAGE_BIT
        if self.temperature > registers.value("temperature_limit"):
            live |= OVERHEATING_BIT
        old = self.model.protocol == 1
        strained = done.overcome if old else abs(done.torque) >= OVERLOADED * self.motor.stall_torque
        self._strained = self._strained + step if strained and self.torque_on else 0.0
        if self._strained > OVERLOAD_TIME:
            live |= OVERLOAD_BIT
        # an X keeps its errors until it is rebooted, an AX only its overload
        self.errors = live | self.errors & (OVERLOAD_BIT if old else 0xFF)
        if self.errors & registers.raw("shutdown") and self.torque_on:
            registers.set_raw("torque_enable", 0)
            registers.set_raw("torque_limit", 0)
