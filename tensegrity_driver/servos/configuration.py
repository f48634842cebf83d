"""Checks of a servo before it is driven, and its configuration without motion.

Registers in EEPROM are written only where they differ, as EEPROM wears out; torque is switched off for that alone.
Every write is read back.
"""

from __future__ import annotations

from collections.abc import Sequence

from tensegrity_dynamics.errors import BusError

from ..bus.control_tables import model_of_number
from ..bus.dynamixel_bus import Bus
from ..spools.spool import MULTI_TURN_LIMIT_RAD
from .servo import Servo, Torque

EXTENDED, CURRENT_BASED = 4, 5
"""Operating modes of the X series that count turns."""
MAX_NAMED = 3
"""Number of servos up to which a warning names each of them."""
MAX_RETURN_DELAY_S = 20e-6
"""Return delay up to which there is no warning [s]."""
MAX_LATENCY_S = 2e-3
"""Latency timer of the USB adapter up to which there is no warning [s]."""


def check_servo(bus: Bus, servo: Servo) -> int:
    """Check that a servo answers pings and reads, alone with its id, and has the model of the robot file.

    Returns:
        Its model number.

    Raises:
        BusError: one of these fails.
    """
    answers = bus.ping(servo.id)
    if len(answers) > 1:
        answers = bus.ping(servo.id)  # a late answer to an earlier request does not come twice
    if len(answers) > 1:
        raise BusError(
            f"{servo.label}: {len(answers)} servos answer under id {servo.id}. Connect them one by one and give each "
            "its own id."
        )
    if not answers and not bus.responds(servo.id):
        raise BusError(
            f"{servo.label} does not answer at {bus.port.path}, {bus.port.baudrate} bit/s. Check its plug, its id, the "
            "baud rate and the supply, or scan the bus."
        )
    _enable_answers(bus, servo)
    number = bus.read_raw(servo.id, servo.model.register("model_number"))
    if number != servo.model.number:
        actual = model_of_number(number).name
        raise BusError(f"{servo.label} is a {actual}, not a {servo.model.name}. Correct its model in the robot's file.")
    servo.ceiling = bus.read_raw(servo.id, servo.model.register("torque_ceiling"))
    return number


def _enable_answers(bus: Bus, servo: Servo) -> None:
    """Set the status return level to 2, at which a servo answers every instruction."""
    level = servo.model.register("status_return_level")
    try:
        value = bus.read(servo.id, level)
    except BusError:
        value = -1.0  # it answers pings, so that its level is the likely reason; the write below reads back
    if value != 2.0:
        bus.write(servo.id, level, 2.0)


def latency_warnings(bus: Bus, servos: Sequence[Servo]) -> list[str]:
    """Settings that lengthen every cycle: return delays and the latency timer of the adapter. Raises BusError."""
    warnings = []
    delays = {each.label: bus.read(each.id, each.model.register("return_delay")) for each in servos}
    slow = {label: delay for label, delay in delays.items() if delay > MAX_RETURN_DELAY_S}
    if slow:
        which = ", ".join(slow) if len(slow) <= MAX_NAMED else f"{len(slow)} servos"
        warnings.append(
            f"{which}: return delays of up to {max(slow.values()) * 1e6:.0f} us cost "
            f"{sum(slow.values()) * 1e3:.1f} ms of every cycle; preparing the servos sets them to zero"
        )
    latency, file = bus.port.adapter.latency_timer, bus.port.adapter.latency_file
    if latency is not None and latency > MAX_LATENCY_S:
        exchanges = len(servos) if bus.protocol.number == 1 else 2
        warnings.append(
            f"the USB adapter keeps every answer back for up to {latency * 1e3:.0f} ms, with {exchanges} exchanges "
            f"{latency * exchanges * 1e3:.0f} ms of every cycle; make it 1 ms: echo 1 | sudo tee {file}"
        )
    return warnings


def switched_off(bus: Bus, servos: Sequence[Servo]) -> list[Servo]:
    """Multi-turn servos that lost their supply since a driver last armed their watchdogs. Raises BusError.

    They have lost all but a part of a turn; no register shows how many turns (see `turn_counter`).
    """
    return [
        each
        for each in servos
        if each.model.counts_turns
        and bus.read_raw(each.id, each.model.register("torque_enable")) == 0
        and bus.read_raw(each.id, each.model.register("bus_watchdog")) == 0
    ]


def turn_warnings(servos: Sequence[Servo]) -> list[str]:
    """Warning for servos that were switched off; empty without such servos."""
    if not servos:
        return []
    which = ", ".join(each.label for each in servos) if len(servos) <= MAX_NAMED else f"{len(servos)} servos"
    return [f"{which}: switched off and on since they were last driven, so turns may be lost; home their tendons first"]


def prepare_servo(
    bus: Bus, servo: Servo, *, return_delay: float, torque_fraction: float | None, current: float | None
) -> None:
    """Set one servo up and switch its torque on at its present position; its watchdog is armed by `arm_watchdogs`.

    Args:
        return_delay: time that it waits before it answers [s].
        torque_fraction: first torque ceiling (0 to 1). current: first current ceiling [A]. None for the last ceiling,
            or the highest one.

    Raises:
        BusError: it does not answer, keeps an error, or does not accept a setting.
    """
    servo.prepared, servo.watchdog = False, False
    servo.torque = Torque.ON  # until its state has been read
    if servo.model.counts_turns:
        _prepare_multi_turn(bus, servo, return_delay, torque_fraction, current)
    else:
        _prepare_wheel(bus, servo, return_delay, torque_fraction)
    servo.torque, servo.prepared, servo.may_have_rebooted, servo.state_due = Torque.ON, True, False, True


def _prepare_wheel(bus: Bus, servo: Servo, return_delay: float, torque_fraction: float | None) -> None:
    """Wheel mode of an AX-12A at speed zero."""
    register = servo.model.register
    shutdown = _factory_value(servo, "shutdown")
    _set_eeprom(bus, servo, {"cw_limit": 0.0, "ccw_limit": 0.0, "return_delay": return_delay, "shutdown": shutdown})
    bus.write(servo.id, register("moving_speed"), 0.0)
    limit = register("torque_limit")
    raw = servo.sent.get("torque_limit", servo.ceiling)
    if torque_fraction is not None:
        raw = limit.encode(limit.nearest(torque_fraction))
    raw = min(limit.high if raw is None else raw, limit.high if servo.ceiling is None else servo.ceiling)
    bus.write(servo.id, limit, limit.decode(raw))  # also clears an overload, which sets it to zero
    bus.write(servo.id, register("torque_enable"), 1.0)
    servo.sent = {"torque_limit": raw}


def _prepare_multi_turn(
    bus: Bus, servo: Servo, return_delay: float, torque_fraction: float | None, current: float | None
) -> None:
    """Multi-turn position mode of an X servo, with a ceiling of current or, without current sensor, of duty cycle."""
    register = servo.model.register
    errors = servo.model.errors(bus.read_raw(servo.id, register("hardware_error")))
    if errors:
        raise BusError(
            f"{servo.label} reports {', '.join(sorted(errors))}. Remove the cause, reboot it or switch it off and on, "
            "and home its tendon."
        )
    bus.write(servo.id, register("bus_watchdog"), 0.0)  # a triggered watchdog must be cleared first
    by_current = "goal_current" in servo.model.registers
    _set_eeprom(
        bus,
        servo,
        {
            "operating_mode": CURRENT_BASED if by_current else EXTENDED,
            "drive_mode": 0.0,
            "return_delay": return_delay,
            "shutdown": _factory_value(servo, "shutdown"),
        },
    )
    if by_current:  # an impedance may be left from before
        for name in ("position_p_gain", "position_d_gain"):
            bus.write_if_changed(servo.id, register(name), _factory_value(servo, name))
    profile = register("profile_velocity")
    slowest = profile.decode(1)  # zero would mean without limit
    bus.write(servo.id, profile, slowest)
    stands = bus.read(servo.id, register("present_position"))
    if abs(stands) > MULTI_TURN_LIMIT_RAD:
        raise BusError(
            f"{servo.label} stands at {stands:.0f} rad, beyond its multi-turn range of {MULTI_TURN_LIMIT_RAD:.0f} rad. "
            "Switch it off and on, which returns it to its first turn, and home its tendon."
        )
    bus.write(servo.id, register("goal_position"), stands)
    ceiling = register("goal_current" if by_current else "goal_pwm")
    requested = current if by_current else torque_fraction
    raw = servo.sent.get(ceiling.name, servo.ceiling)
    if requested is not None:
        raw = ceiling.encode(ceiling.nearest(requested))
    raw = min(ceiling.high if raw is None else raw, ceiling.high if servo.ceiling is None else servo.ceiling)
    bus.write(servo.id, ceiling, ceiling.decode(raw))
    bus.write(servo.id, register("torque_enable"), 1.0)
    servo.sent = {ceiling.name: raw, "profile_velocity": 1}


def _set_eeprom(bus: Bus, servo: Servo, values: dict[str, float]) -> None:
    """Write registers in EEPROM where they differ; torque is switched off for that alone."""
    registers = {servo.model.register(name): value for name, value in values.items()}
    differing = [each for each, value in registers.items() if bus.read_raw(servo.id, each) != each.encode(value)]
    if not differing:
        return
    bus.write(servo.id, servo.model.register("torque_enable"), 0.0)
    for each in differing:
        bus.write(servo.id, each, registers[each])


def _factory_value(servo: Servo, name: str) -> float:
    register = servo.model.register(name)
    return register.decode(register.initial or 0)


def arm_watchdogs(bus: Bus, servos: Sequence[Servo], time: float) -> None:
    """Arm the bus watchdogs of the servos that have one, in quick succession. Raises BusError.

    Args:
        time: without a packet after which a servo stops [s].
    """
    for servo in servos:
        if "bus_watchdog" in servo.model.registers:
            register = servo.model.register("bus_watchdog")
            bus.write(servo.id, register, register.nearest(max(time, register.factor)))
            servo.watchdog = True
