"""What stands for the robot under the nodes of `tensegrity up`: a simulator, servos at a port, or emulated servos."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tensegrity_dynamics.errors import TensegrityError, unknown_name
from tensegrity_dynamics.estimation import estimator_methods
from tensegrity_dynamics.robots.robot import Robot

from .processes import NodeProcesses

EMULATED = "emulated"
STATES = ("rest", "observer", "truth")
PATIENCE = 60.0
"""s of wall time that the emulator may take to begin."""
PACKET_TIMEOUT = 0.1
"""s to wait for an answer of an emulated servo: its process may have to wait for a processor."""


@dataclass
class Source:
    """The node that publishes joint_states, and what it needs.

    Attributes:
        node: its name. parameters: its own ones.
        simulated_time: it publishes /clock. waits: it starts when the others are ready, as servos wait for nobody.
        prepare: called once before it starts.
    """

    node: str
    parameters: dict[str, Any]
    simulated_time: bool = True
    waits: bool = False
    prepare: Callable[[NodeProcesses], None] = field(default=lambda nodes: None)


@dataclass(frozen=True)
class Choice:
    """Which controller gets which state how often: its name, "rest", "observer" or "truth", and s."""

    controller: str
    state: str
    period: float


def choose(robot: Robot, controller: str, state: str, period: float) -> Choice:
    """What was asked for, and what the controller needs where nothing was.

    Raises:
        TensegrityError: a name is unknown, or the state does not go with the controller or the robot.
    """
    from tensegrity_control.registry import suitable

    names = suitable(robot)
    name = controller or names[0]
    if name not in names:
        raise TensegrityError(unknown_name(f"controller for {robot.name}", name, names))
    moving = name in ("task", "near_rigid", "computed_torque")
    kind = state or ("observer" if moving else "rest")
    if kind not in STATES:
        raise TensegrityError(unknown_name("state", kind, STATES))
    if kind == "observer" and kind not in estimator_methods(robot):
        raise TensegrityError(f"{robot.name} is a {robot.kind}, known by shapes at rest; choose --state rest or truth.")
    if moving and kind == "rest":
        raise TensegrityError(f"{name} needs velocities; choose --state observer or truth.")
    if period != 0.0 and not 0.0005 <= period <= 1.0:
        raise TensegrityError(f"--control-period is {period} s; give 0.0005 to 1, or 0 for what the controller needs.")
    return Choice(name, kind, period or (0.01 if moving else 0.02))


def simulated(lockstep: bool, factor: float, period: float, truth: bool) -> Source:
    """The simulator; `truth`: what it knows is the state, and no estimator is needed."""
    return Source(
        "simulator",
        {"lockstep": lockstep, "real_time_factor": factor, "control_period": period, "truth_as_state": truth},
    )


def hardware(robot: Robot, name: str, port: str, board: str, calibration: str, lockstep: bool) -> Source:
    """The driver.

    Args:
        robot: with servos. name: what it was called on the command line.
        port, board: serial ports of servos and potentiometer board; EMULATED and "" start the emulator.
        calibration: file, or "" for the robot's own. lockstep: on an emulated bus inside the driver.

    Raises:
        TensegrityError: no servos, or no port.
    """
    if not robot.servos:
        raise TensegrityError(f"{robot.name} has no servos; add a servos block to its file (docs/robot_file.md).")
    if not port:
        raise TensegrityError("name the port of the servos: --port /dev/ttyUSB0, or --port emulated.")
    asked = {"port": port, "board_port": board, "calibration": calibration, "lockstep": lockstep}
    parameters = {key: value for key, value in asked.items() if value != ""}
    if port != EMULATED or lockstep:
        return Source("driver", parameters, simulated_time=lockstep, waits=not lockstep)
    from tensegrity_driver.hardware.emulated_hardware import OVERRUN

    folder = tempfile.TemporaryDirectory(prefix="tensegrity_emulated_")
    place = Path(folder.name)

    def prepare(nodes: NodeProcesses) -> None:
        _start_emulator(nodes, robot, name, place)
        nodes.keep(folder)

    ports: dict[str, Any] = {"port": str(place / "servos"), "calibration": str(place / "calibration.json")}
    ports.update(packet_timeout=PACKET_TIMEOUT, overrun=OVERRUN)
    if any(servo["potentiometer"] is not None for servo in robot.servos["servos"]):
        ports["board_port"] = str(place / "potentiometers")
    return Source("driver", ports, simulated_time=False, waits=True, prepare=prepare)


def _start_emulator(nodes: NodeProcesses, robot: Robot, name: str, place: Path) -> None:
    """Start the emulator as a process of its own, and write down the calibration that its spools have."""
    from tensegrity_driver.hardware.emulated_hardware import calibrate_emulated

    nodes.run("emulator", ["-m", "tensegrity_driver.emulator", name, "--directory", str(place), "--no-wire"])
    limit = time.monotonic() + PATIENCE
    while not (place / "servos").exists():
        if "emulator" in nodes.ended() or time.monotonic() > limit:
            raise TensegrityError(f"the emulator did not begin. Its last words:\n{nodes.last_words('emulator')}")
        time.sleep(0.05)
    calibrate_emulated(robot, place / "calibration.json")
