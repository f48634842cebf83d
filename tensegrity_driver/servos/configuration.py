"""Looks at every servo before it is used, and sets it up so that nothing moves.

What is kept in EEPROM is written only where it differs, because EEPROM wears out; only then torque has to be switched
off. Everything that is written is read back.
"""

from __future__ import annotations

from collections.abc import Sequence

from tensegrity_dynamics.errors import BusError

from ..bus.control_tables import model_of_number
from ..bus.dynamixel_bus import Bus
from .servo import Servo, Torque

EXTENDED, CURRENT_BASED = 4, 5
"""Operating modes of the X series that count turns."""
FEW = 3
"""Servos that are named one by one in a note."""
SLOW_DELAY = 20e-6
"""s of return delay that is not worth a word."""
SLOW_LATENCY = 2e-3
"""s of latency timer that is not worth a word."""


def check_servo(bus: Bus, servo: Servo) -> int:
    """Whether a servo is there, alone under its id, answers reads, and is of the model named; its model number.

    Raises:
        BusError: it is not.
    """
    answers = bus.ping(servo.id)
    if len(answers) > 1:
        answers = bus.ping(servo.id)  # an answer to an earlier question, come late, does not come twice
    if len(answers) > 1:
        raise BusError(
            f"{servo.label}: {len(answers)} servos answer under id {servo.id}. Connect them one by one and give each "
            "its own id."
        )
    if not answers and not bus.answers(servo.id):
        raise BusError(
            f"{servo.label} does not answer at {bus.port.path}, {bus.port.baudrate} bit/s. Check its plug, its id, the "
            "baud rate and the supply, or scan the bus."
        )
    _make_it_answer(bus, servo)
    number = bus.read_raw(servo.id, servo.model.field("model_number"))
    if number != servo.model.number:
        found = model_of_number(number).name
        raise BusError(f"{servo.label} is a {found}, not a {servo.model.name}. Correct its model in the robot's file.")
    servo.ceiling = bus.read_raw(servo.id, servo.model.field("torque_ceiling"))
    return number


def _make_it_answer(bus: Bus, servo: Servo) -> None:
    """A servo whose status return level lets it answer nothing but pings is told to answer everything."""
    level = servo.model.field("status_return_level")
    try:
        found = bus.read(servo.id, level)
    except BusError:
        found = -1.0  # it answers pings, so that its level is the likely reason; the write below reads back
    if found != 2.0:
        bus.write(servo.id, level, 2.0)


def cost_notes(bus: Bus, servos: Sequence[Servo]) -> list[str]:
    """What settings of servos and adapter cost, in words: return delays and the latency timer. Raises BusError."""
    notes = []
    delays = {each.label: bus.read(each.id, each.model.field("return_delay")) for each in servos}
    slow = {label: delay for label, delay in delays.items() if delay > SLOW_DELAY}
    if slow:
        which = ", ".join(slow) if len(slow) <= FEW else f"{len(slow)} servos"
        notes.append(
            f"{which}: return delays of up to {max(slow.values()) * 1e6:.0f} us cost "
            f"{sum(slow.values()) * 1e3:.1f} ms of every cycle; preparing the servos sets them to zero"
        )
    latency, file = bus.port.adapter.latency_timer, bus.port.adapter.latency_file
    if latency is not None and latency > SLOW_LATENCY:
        exchanges = len(servos) if bus.protocol.number == 1 else 2
        notes.append(
            f"the USB adapter keeps every answer back for up to {latency * 1e3:.0f} ms, with {exchanges} exchanges "
            f"{latency * exchanges * 1e3:.0f} ms of every cycle; make it 1 ms: echo 1 | sudo tee {file}"
        )
    return notes


def switched_off(bus: Bus, servos: Sequence[Servo]) -> list[Servo]:
    """Servos that count turns and were switched off since a driver last armed their watchdogs. Raises BusError.

    They have lost all but a part of a turn, and nothing on the bus tells how many (`turns_memory` may).
    """
    return [
        each
        for each in servos
        if each.model.counts_turns
        and bus.read_raw(each.id, each.model.field("torque_enable")) == 0
        and bus.read_raw(each.id, each.model.field("bus_watchdog")) == 0
    ]


def restart_notes(fresh: Sequence[Servo]) -> list[str]:
    """What a person should know of servos that were switched off."""
    if not fresh:
        return []
    which = ", ".join(each.label for each in fresh) if len(fresh) <= FEW else f"{len(fresh)} servos"
    return [f"{which}: switched off and on since they were last driven, so turns may be lost; home their tendons first"]


def prepare_servo(
    bus: Bus, servo: Servo, *, return_delay: float, torque_fraction: float | None, current: float | None
) -> None:
    """Set one servo up and switch its torque on where it is; its watchdog is armed later, with those of all others.

    Args:
        return_delay: s. torque_fraction, current: ceilings to begin with [A]; None: as they were last, or the largest.

    Raises:
        BusError: it does not answer, keeps an error, or does not take a setting.
    """
    servo.prepared, servo.watchdog = False, False
    servo.torque = Torque.ON  # for all that is known
    if servo.model.counts_turns:
        _prepare_turning(bus, servo, return_delay, torque_fraction, current)
    else:
        _prepare_wheel(bus, servo, return_delay, torque_fraction)
    servo.torque, servo.prepared, servo.unsure, servo.state_due = Torque.ON, True, False, True


def _prepare_wheel(bus: Bus, servo: Servo, return_delay: float, torque_fraction: float | None) -> None:
    """An AX-12A in wheel mode: it turns at a speed as long as nobody says otherwise; here at none."""
    field = servo.model.field
    shutdown = _delivered(servo, "shutdown")
    _set_lasting(bus, servo, {"cw_limit": 0.0, "ccw_limit": 0.0, "return_delay": return_delay, "shutdown": shutdown})
    bus.write(servo.id, field("moving_speed"), 0.0)
    limit = field("torque_limit")
    raw = servo.sent.get("torque_limit", servo.ceiling)
    if torque_fraction is not None:
        raw = limit.encode(limit.nearest(torque_fraction))
    raw = min(limit.high if raw is None else raw, limit.high if servo.ceiling is None else servo.ceiling)
    bus.write(servo.id, limit, limit.decode(raw))  # also ends an overload, which had set it to zero
    bus.write(servo.id, field("torque_enable"), 1.0)
    servo.sent = {"torque_limit": raw}


def _prepare_turning(
    bus: Bus, servo: Servo, return_delay: float, torque_fraction: float | None, current: float | None
) -> None:
    """An X servo that goes to positions over many turns, within a current or a duty cycle."""
    field = servo.model.field
    errors = servo.model.errors(bus.read_raw(servo.id, field("hardware_error")))
    if errors:
        raise BusError(
            f"{servo.label} reports {', '.join(sorted(errors))}. Remove the cause, reboot it or switch it off and on, "
            "and home its tendon."
        )
    bus.write(servo.id, field("bus_watchdog"), 0.0)  # one that has stopped the servo must be cleared first
    by_current = "goal_current" in servo.model.fields
    _set_lasting(
        bus,
        servo,
        {
            "operating_mode": CURRENT_BASED if by_current else EXTENDED,
            "drive_mode": 0.0,
            "return_delay": return_delay,
            "shutdown": _delivered(servo, "shutdown"),
        },
    )
    profile = field("profile_velocity")
    slowest = profile.decode(1)  # zero would mean without limit
    bus.write(servo.id, profile, slowest)
    bus.write(servo.id, field("goal_position"), bus.read(servo.id, field("present_position")))
    ceiling = field("goal_current" if by_current else "goal_pwm")
    asked = current if by_current else torque_fraction
    raw = servo.sent.get(ceiling.name, servo.ceiling)
    if asked is not None:
        raw = ceiling.encode(ceiling.nearest(asked))
    raw = min(ceiling.high if raw is None else raw, ceiling.high if servo.ceiling is None else servo.ceiling)
    bus.write(servo.id, ceiling, ceiling.decode(raw))
    bus.write(servo.id, field("torque_enable"), 1.0)
    servo.sent = {ceiling.name: raw, "profile_velocity": 1}


def _set_lasting(bus: Bus, servo: Servo, wanted: dict[str, float]) -> None:
    """Set registers in EEPROM where they differ; torque goes off only for that."""
    fields = {servo.model.field(name): value for name, value in wanted.items()}
    differing = [each for each, value in fields.items() if bus.read_raw(servo.id, each) != each.encode(value)]
    if not differing:
        return
    bus.write(servo.id, servo.model.field("torque_enable"), 0.0)
    for each in differing:
        bus.write(servo.id, each, fields[each])


def _delivered(servo: Servo, name: str) -> float:
    field = servo.model.field(name)
    return field.decode(field.initial or 0)


def arm_watchdogs(bus: Bus, servos: Sequence[Servo], time: float) -> None:
    """Arm the bus watchdogs [s] of the servos that have one, shortly one after the other; raises BusError."""
    for servo in servos:
        if "bus_watchdog" in servo.model.fields:
            field = servo.model.field("bus_watchdog")
            bus.write(servo.id, field, field.nearest(max(time, field.factor)))
            servo.watchdog = True
