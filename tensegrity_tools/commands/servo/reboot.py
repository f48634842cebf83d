"""`tensegrity servo reboot`: reboot of servos of protocol 2 after a hardware error."""

from __future__ import annotations

import time

from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import BusError

from ...output import console, print_json, progress
from .session import BusOptions, ServoSession, open_session, select_actuators

MAX_REBOOT_S = 3.0
"""Longest time until a servo must answer again [s]."""


def run_reboot(robot_name: str, actuators: list[str], options: BusOptions, *, as_json: bool) -> None:
    """Reboot the servos of the named actuators one after the other; each must answer again without an error.

    Raises:
        BusError: protocol 1, a servo that does not answer again, or one that still reports its error.
    """
    robot = load_robot(robot_name)
    with open_session(robot, options, allow_problems=True) as session:
        names = select_actuators(robot, actuators)
        for name in names:
            with progress.status(f"rebooting {name}"):
                _reboot(session, name)
            if not as_json:
                servo = session.bus.servos[name]
                console.print(
                    f"{servo.label} has rebooted without an error. Its torque is off and its turns are lost: home its "
                    f"tendon with `tensegrity servo home {robot_name} {name}`.",
                    highlight=False,
                )
    if as_json:
        print_json({"robot": robot.name, "rebooted": names})


def _reboot(session: ServoSession, name: str) -> None:
    servo, bus = session.bus.servos[name], session.bus.bus
    session.bus.reboot(name)
    end = time.monotonic() + MAX_REBOOT_S
    while not bus.responds(servo.id):
        if time.monotonic() > end:
            raise BusError(f"{servo.label} does not answer after its reboot. Switch its supply off and on.")
    errors = servo.model.errors(bus.read_raw(servo.id, servo.model.register("hardware_error")))
    if errors:
        raise BusError(
            f"{servo.label} reports {', '.join(sorted(errors))} again after its reboot. Remove the cause, such as "
            "heat, load or supply voltage, then reboot it again."
        )
