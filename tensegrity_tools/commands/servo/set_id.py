"""`tensegrity servo set-id`: gives one servo its id and speed, so that a chain of them can be driven."""

from __future__ import annotations

from tensegrity_driver.bus.control_tables import MODELS, ServoModel, model_of_number
from tensegrity_driver.bus.dynamixel_bus import TRIES, Bus
from tensegrity_driver.bus.scan import BAUD_RATES, FoundServo, scan
from tensegrity_driver.bus.serial_port import SerialPort
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import BusError, TensegrityError

from ...output import console, print_json, progress
from .scan import open_port

MODEL_NUMBER = MODELS["AX-12A"].field("model_number")
"""At the same place in all control tables."""


def run_set_id(
    port: str,
    robot_name: str,
    old: int,
    new: int,
    baud_rates: list[int] | None,
    protocol: int | None,
    new_baud_rate: int | None,
    as_json: bool,
) -> None:
    """The command; see `servo.set_id_command`."""
    robot = load_robot(robot_name) if robot_name else None
    with open_port(port, robot) as line:
        with progress.status(f"looking for servo {old}"):
            found = find_one(line, old, baud_rates, protocol)
        model, speed = set_identity(line, found, new, new_baud_rate)
    if as_json:
        print_json({"old_id": old, "id": new, "model": model.name, "protocol": found.protocol, "baud_rate": speed})
    else:
        console.print(
            f"The {model.name} that had id {old} has id {new} now and answers at {speed} bit/s without return delay.",
            highlight=False,
        )


def find_one(line: SerialPort, number: int, baud_rates: list[int] | None, protocol: int | None) -> FoundServo:
    """The one servo with an id, wherever it answers; raises BusError where there is none, or more than one."""
    protocols = [protocol] if protocol else [1, 2]
    found: tuple[FoundServo, ...] = ()
    for _ in range(TRIES):  # a single answer may be lost
        found = found or scan(line, protocols=protocols, baud_rates=baud_rates or BAUD_RATES, ids=(number,))
    if not found:
        raise BusError(
            f"no servo answers under id {number} at {line.path}. Check its plug and the supply; `tensegrity servo "
            "scan` shows which ids there are."
        )
    if len(found) > 1 or found[0].doubled:
        raise BusError(
            f"more than one servo answers under id {number} at {line.path}. Connect one alone and set its id, or tell "
            "them apart by --baud-rate or --protocol."
        )
    return found[0]


def set_identity(line: SerialPort, found: FoundServo, new: int, new_baud_rate: int | None) -> tuple[ServoModel, int]:
    """Set id, return delay and speed of a servo, with its torque off; returns its model and its speed [bit/s].

    Raises:
        BusError: the new id is taken, the servo is locked or does not take a setting.
        TensegrityError: a speed that it does not know.
    """
    line.set_baud_rate(found.baud_rate)
    bus = Bus(line, found.protocol)
    model = model_of_number(found.number if found.number is not None else bus.read_raw(found.id, MODEL_NUMBER))
    raws = {rate: raw for raw, rate in model.baud_rates.items()}
    if new_baud_rate is not None and new_baud_rate not in raws:
        raise TensegrityError(f"a {model.name} knows no {new_baud_rate} bit/s; it knows {sorted(raws)}.")
    if new != found.id and bus.ping(new):
        raise BusError(f"id {new} is taken already at {line.path}. Choose another id, or unplug that servo first.")
    if "lock" in model.fields and bus.read_raw(found.id, model.field("lock")):
        raise BusError(f"servo {found.id} is locked. Switch its supply off and on, then set its id.")
    bus.ensure(found.id, model.field("torque_enable"), 0.0)
    bus.ensure(found.id, model.field("return_delay"), 0.0)
    if new != found.id:
        bus.write(found.id, model.field("id"), float(new), verify=False)  # it answers under the new one
        _found_again(bus, new, f"id {new}")
    if new_baud_rate is None or new_baud_rate == found.baud_rate:
        return model, found.baud_rate
    bus.write(new, model.field("baud_rate"), float(raws[new_baud_rate]), verify=False)
    line.set_baud_rate(new_baud_rate)
    _found_again(bus, new, f"{new_baud_rate} bit/s")
    return model, new_baud_rate


def _found_again(bus: Bus, number: int, what: str) -> None:
    bus.port.settle()
    if not bus.answers(number):
        raise BusError(
            f"the servo does not answer with its new {what}. Switch its supply off and on, and scan the bus to see how "
            "it is set."
        )
