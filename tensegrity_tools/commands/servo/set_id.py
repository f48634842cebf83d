"""`tensegrity servo set-id`: change of id, speed and return delay of one servo."""

from __future__ import annotations

from tensegrity_driver.bus.control_tables import ServoModel, model_of_number
from tensegrity_driver.bus.dynamixel_bus import MAX_TRIES, Bus
from tensegrity_driver.bus.scan import MODEL_NUMBER, FoundServo, scan
from tensegrity_driver.bus.serial_port import SerialPort
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import BusError, TensegrityError

from ...output import console, print_json, progress
from .scan import PortOptions, open_port


def run_set_id(old: int, new: int, options: PortOptions, new_baud_rate: int | None, *, as_json: bool) -> None:
    """Change the id of the servo `old` to `new`, and its speed if `new_baud_rate` [bit/s] is not None."""
    robot = load_robot(options.robot) if options.robot else None
    with open_port(options.port, robot) as line:
        with progress.status(f"looking for servo {old}"):
            found = find_one(line, old, options)
        model, speed = set_identity(line, found, new, new_baud_rate)
    if as_json:
        print_json({"old_id": old, "id": new, "model": model.name, "protocol": found.protocol, "baud_rate": speed})
    else:
        console.print(
            f"The {model.name} that had id {old} has id {new} now and answers at {speed} bit/s without return delay.",
            highlight=False,
        )


def find_one(line: SerialPort, number: int, options: PortOptions) -> FoundServo:
    """Servo with an id, searched at the speeds and protocols of the options; raises BusError unless there is exactly
    one."""
    servos: tuple[FoundServo, ...] = ()
    for _ in range(MAX_TRIES):  # a single answer may be lost
        servos = servos or scan(line, protocols=options.protocols, baud_rates=options.speeds, ids=(number,))
    if not servos:
        raise BusError(
            f"no servo answers under id {number} at {line.path}. Check its plug and the supply; `tensegrity servo "
            "scan` shows which ids there are."
        )
    if len(servos) > 1 or servos[0].doubled:
        raise BusError(
            f"more than one servo answers under id {number} at {line.path}. Connect one alone and set its id, or "
            "distinguish them by --baud-rate or --protocol."
        )
    return servos[0]


def set_identity(line: SerialPort, found: FoundServo, new: int, new_baud_rate: int | None) -> tuple[ServoModel, int]:
    """Change id, return delay and speed of a servo with its torque off; returns its model and its speed [bit/s].

    Raises:
        BusError: the new id is in use, the servo is locked or does not accept a setting.
        TensegrityError: the servo does not support the speed.
    """
    line.set_baud_rate(found.baud_rate)
    bus = Bus(line, found.protocol)
    model = model_of_number(found.number if found.number is not None else bus.read_raw(found.id, MODEL_NUMBER))
    raws = {rate: raw for raw, rate in model.baud_rates.items()}
    if new_baud_rate is not None and new_baud_rate not in raws:
        raise TensegrityError(f"a {model.name} does not support {new_baud_rate} bit/s, only {sorted(raws)}.")
    if new != found.id and bus.ping(new):
        raise BusError(f"id {new} is taken already at {line.path}. Choose another id, or unplug that servo first.")
    if "lock" in model.registers and bus.read_raw(found.id, model.register("lock")):
        raise BusError(f"servo {found.id} is locked. Switch its supply off and on, then set its id.")
    bus.write_if_changed(found.id, model.register("torque_enable"), 0.0)
    bus.write_if_changed(found.id, model.register("return_delay"), 0.0)
    if new != found.id:
        bus.write(found.id, model.register("id"), float(new), verify=False)  # it answers with the new id
        _check_answer(bus, new, f"id {new}")
    if new_baud_rate is None or new_baud_rate == found.baud_rate:
        return model, found.baud_rate
    bus.write(new, model.register("baud_rate"), float(raws[new_baud_rate]), verify=False)
    line.set_baud_rate(new_baud_rate)
    _check_answer(bus, new, f"{new_baud_rate} bit/s")
    return model, new_baud_rate


def _check_answer(bus: Bus, number: int, what: str) -> None:
    bus.port.drain()
    if not bus.responds(number):
        raise BusError(
            f"the servo does not answer with its new {what}. Switch its supply off and on, and scan the bus to see how "
            "it is set."
        )
