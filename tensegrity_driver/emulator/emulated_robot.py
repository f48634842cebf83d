"""A robot's hardware in software: its servos and its potentiometer board behind pseudo-terminals, its body simulated.

Time moves in one of two ways. `advance(seconds)` moves the world by hand, for tests that count cycles; with
`realtime=True` a thread moves it with the clock. Either way a thread answers on the ports as soon as bytes come. One
lock stands between bytes, time and faults.

It starts as a driver leaves it: at rest under tension, torque on, servos set up for the driver (wheel mode, or
current-based position, or extended position where the servo measures no current), unless told otherwise.
"""

from __future__ import annotations

import logging
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tensegrity_dynamics.errors import BusError, TensegrityError
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.simulation import Observation

from ..bus.control_tables import ServoModel, model_named
from ..calibration.calibrated_spools import COUNT, MOTORS
from ..spools.readings import Line
from .emulated_servo import EmulatedServo
from .fault_injection import Faults
from .potentiometer_board import Potentiometer, PotentiometerBoard
from .pseudo_terminal import Delivery, PseudoTerminal, Server
from .servo_chain import ServoChain
from .servo_physics import CURRENT_BASED, DROOP, EXTENDED, TURN
from .spooled_robot import SpooledRobot
from .wire_delay import WireDelay, WireSettings

STEP = 0.005
"""s between two looks of the servos at their loads."""
PATIENCE = 0.001
"""s granted to bytes that are still on their way when time is moved by hand."""
LONGEST = 0.1
"""s of world that are caught up at once in real time; a machine that is slower makes the world slower."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Identity:
    """What a scan of the buses finds: actuator, id, model, model number, and the potentiometer's channel or None."""

    actuator: str
    id: int
    model: str
    number: int
    potentiometer: int | None


class EmulatedRobot(Faults):
    """The hardware of a robot.

    Args:
        robot: a structure with servos.
        directory: where `servos` and `potentiometers` appear; None takes a temporary one.
        realtime: a thread moves the world with the clock. step: s, see `STEP`.
        wire: delays on the servo bus. seed: of all that is left to chance.
        start: where the robot starts, see `Simulation`.
        potentiometers: counts at the start and direction (+1 or -1) by actuator; others stand near the middle.
        prepared: servos are set up for the driver; else only their id and baud rate differ from the factory's.
        torque_on: torque is on at the start. droop: of servos in wheel mode under load, see `ServoPhysics`.

    Raises:
        BusError: a mechanism, no servos, an unknown model, servos of another protocol than the bus.
    """

    def __init__(
        self,
        robot: Robot,
        *,
        directory: Path | str | None = None,
        realtime: bool = False,
        wire: WireSettings | None = None,
        start: Any = None,
        potentiometers: Mapping[str, tuple[float, int]] | None = None,
        prepared: bool = True,
        torque_on: bool = True,
        droop: float = DROOP,
        step: float = STEP,
        seed: int = 0,
    ) -> None:
        self.robot, self._step = robot, step
        self._pulls, self._ghosts, self._true_ids = {}, {}, {}
        self._plant = SpooledRobot(robot, start)
        self.protocol = int(robot.servos.get("protocol") or 2)
        self._servos: dict[str, EmulatedServo] = {}
        self._channels: dict[str, int] = {}
        found: dict[int, Potentiometer] = {}
        for number, row in enumerate(robot.servos["servos"]):
            name = row["actuator"]
            model = self._model(row)
            servo = EmulatedServo(model, MOTORS[model.name], mounted=(1.0 + 0.37 * number) % TURN, droop=droop)
            _set_up(servo, int(row["id"]), int(robot.servos.get("baud_rate") or 1_000_000), prepared)
            servo.power_cycle()
            servo.registers.set_raw("torque_enable", int(torque_on))
            self._servos[name] = servo
            if row.get("potentiometer") is not None:
                offset, way = (potentiometers or {}).get(name, (1840.0 + 40.0 * number, 1))
                found[int(row["potentiometer"])] = Potentiometer(offset, way)
                self._channels[name] = int(row["potentiometer"])
        self._look()
        self._lock = threading.RLock()
        self._chain = ServoChain(self._servos, self.protocol)
        self._wire = WireDelay(wire or WireSettings(), seed)
        self._board = PotentiometerBoard(found, seed) if found else None
        self._temporary = tempfile.TemporaryDirectory(prefix="tensegrity-") if directory is None else None
        self.directory = Path(self._temporary.name if self._temporary else str(directory))
        self.directory.mkdir(parents=True, exist_ok=True)
        self._terminals = {"servos": PseudoTerminal(self.directory / "servos", self._hear_servos, self._quiet_servos)}
        if self._board is not None:
            self._terminals["potentiometers"] = PseudoTerminal(
                self.directory / "potentiometers", self._hear_board, self._quiet_board
            )
        try:
            for terminal in self._terminals.values():
                terminal.plug()
        except (BusError, OSError):
            for terminal in self._terminals.values():
                terminal.unplug()
            raise
        self._server = Server(list(self._terminals.values()), self._lock)
        self._failure: TensegrityError | None = None
        self._owed = 0.0
        self._closing = threading.Event()
        self.behind = 0.0
        self._clock: threading.Thread | None = None
        if realtime:
            self._clock = threading.Thread(target=self._run, name="emulated time", daemon=True)
            self._clock.start()

    # -- what users need -------------------------------------------------------------------------------------------

    @property
    def servo_port(self) -> str:
        """Path of the servo bus."""
        return str(self._terminals["servos"].link)

    @property
    def board_port(self) -> str | None:
        """Path of the potentiometer board, or None where the robot has none."""
        terminal = self._terminals.get("potentiometers")
        return None if terminal is None else str(terminal.link)

    @property
    def identity(self) -> tuple[Identity, ...]:
        """Servos as a scan finds them."""
        return tuple(
            Identity(name, servo.id, servo.model.name, servo.model.number, self._channels.get(name))
            for name, servo in self._servos.items()
        )

    @property
    def time(self) -> float:
        """s of the world since the start."""
        return self._plant.time

    def observe(self) -> Observation:
        """Where the simulated robot really is."""
        with self._lock:
            return self._plant.observe()

    def angle(self, name: str) -> float:
        """rad that a spool has turned since the start, in its servo's positive direction."""
        with self._lock:
            return self._plant.windings[self._known(name)].angle

    def lines(self, name: str) -> dict[str, Line]:
        """The true calibration of a spool by sensor, as a perfect one would find it now (an X: until it reboots)."""
        with self._lock:
            winding, servo = self._plant.windings[self._known(name)], self._servos[name]
            slope = -winding.direction * winding.radius
            lines = {"encoder": Line(slope, winding.length - slope * servo.motion.position)}
            if name in self._channels and self._board is not None:
                each = self._board.potentiometers[self._channels[name]]
                lines["potentiometer"] = Line(
                    slope * COUNT * each.direction, winding.start - slope * COUNT * each.direction * each.offset
                )
            return lines

    def register(self, name: str, field: str) -> float:
        """What a register of a servo holds now, in SI units."""
        with self._lock:
            servo = self._servos[self._known(name)]
            servo.motion.show()
            return servo.registers.value(field)

    def advance(self, seconds: float) -> None:
        """Take in what was sent so far, then move the world by hand.

        Raises:
            BusError: the world moves with the clock. TensegrityError: the simulation lost its way.
        """
        if self._clock is not None:
            raise BusError("this emulated robot moves with the clock; make it with realtime=False to move it by hand.")
        if self._server.failure is not None:
            raise BusError(f"the emulated ports ended: {self._server.failure!r}.") from self._server.failure
        self._server.settle(PATIENCE)
        with self._lock:
            self._move(seconds)

    def check(self) -> None:
        """Raises what ended the thread that moves the world or the one that serves the ports, if anything did."""
        if self._failure is not None:
            raise self._failure
        if self._server.failure is not None:
            raise BusError(f"the emulated ports ended: {self._server.failure!r}.") from self._server.failure

    def close(self) -> None:
        """End the threads and take the ports away."""
        self._closing.set()
        if self._clock is not None:
            self._clock.join()
        self._server.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    def __enter__(self) -> EmulatedRobot:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    # -- time ------------------------------------------------------------------------------------------------------

    def _move(self, seconds: float) -> None:
        """Whole steps of the simulation; what is left over is owed to the next call. The lock is held."""
        self._owed += seconds
        inner = self._plant.simulation.time_step
        while self._owed >= 0.5 * inner:
            steps = max(1, round(min(self._owed, self._step) / inner))
            self._owed -= steps * inner
            step = steps * inner
            speeds = {}
            for name, servo in self._servos.items():
                load, stiffness = self._plant.load(name)
                speeds[name] = servo.motion.move(load + self._pulls.get(name, 0.0), stiffness, step)
            self._plant.turn(speeds, steps)
            by_channel = {}
            for name, servo in self._servos.items():
                angle = self._plant.windings[name].angle
                servo.motion.turned(angle, step)
                if self._board is not None and name in self._channels:
                    channel = self._channels[name]
                    self._board.potentiometers[channel].move(angle)
                    by_channel[channel] = speeds[name]
            if self._board is not None:
                self._board.convert(by_channel)
            for ghost in self._ghosts.values():
                ghost.motion.turned(ghost.motion.angle + step * ghost.motion.move(0.0, 0.0, step), step)

    def _look(self) -> None:
        """What the sensors say before any time has passed."""
        for name, servo in self._servos.items():
            servo.motion.move(*self._plant.load(name), 1e-6)

    def _run(self) -> None:
        before = time.monotonic()
        while not self._closing.wait(self._step):
            now = time.monotonic()
            elapsed, before = now - before, now
            self.behind += max(0.0, elapsed - LONGEST)
            done = 0.0
            while done < min(elapsed, LONGEST) and not self._closing.is_set():
                part = min(self._step, min(elapsed, LONGEST) - done)
                done += part
                try:
                    with self._lock:
                        self._move(part)
                except TensegrityError as problem:
                    self._failure = problem
                    _log.error("the emulated robot stands still: %s", problem)
                    return

    # -- bytes, under the lock -------------------------------------------------------------------------------------

    def _hear_servos(self, data: bytes) -> Delivery:
        if self._wire.settings.check_baud_rate:
            self._chain.baud_rate = self._terminals["servos"].baud_rate
        return self._wire.deliver(data, self._chain.feed(data))

    def _quiet_servos(self) -> Delivery:
        return self._wire.deliver(b"", self._chain.quiet())

    def _hear_board(self, data: bytes) -> Delivery:
        return [(0.0, each) for each in self._board.feed(data)] if self._board is not None else []

    def _quiet_board(self) -> Delivery:
        if self._board is not None:
            self._board.quiet()
        return []

    def _model(self, row: Mapping[str, Any]) -> ServoModel:
        model = model_named(row["model"])
        if model.protocol != self.protocol:
            raise BusError(
                f"servo {row['id']} ({row['actuator']}) is a {model.name}, which speaks protocol {model.protocol}, on "
                f"a bus of protocol {self.protocol}; mend the robot file."
            )
        return model


def _set_up(servo: EmulatedServo, id_: int, baud_rate: int, prepared: bool) -> None:
    """EEPROM as the builder leaves it."""
    registers, model = servo.registers, servo.model
    raws = {rate: raw for raw, rate in model.baud_rates.items()}
    if baud_rate not in raws:
        raise BusError(f"{model.name} knows no {baud_rate} bit/s; it knows {sorted(raws)}. Mend the robot file.")
    registers.set_raw("id", id_)
    registers.set_raw("baud_rate", raws[baud_rate])
    if not prepared:
        return
    registers.set_raw("return_delay", 0)
    if model.protocol == 1:
        registers.set_raw("cw_limit", 0)
        registers.set_raw("ccw_limit", 0)
    else:
        registers.set_raw("operating_mode", CURRENT_BASED if "goal_current" in registers else EXTENDED)


def with_servos(robot: Robot, model: str) -> Robot:
    """The robot with servos of another model, without potentiometers; the protocol is the model's own."""
    known = model_named(model)
    rows = [{**row, "model": known.name, "potentiometer": None} for row in robot.servos.get("servos") or ()]
    if not rows:
        raise BusError(f"{robot.name} has no servos to exchange; add a servos block to its file.")
    return replace(robot, servos={**robot.servos, "protocol": known.protocol, "servos": rows})
