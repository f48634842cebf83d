"""Emulated hardware of a robot: servos and potentiometer board behind pseudo-terminals, and a simulated body.

Its time advances by `advance(seconds)`, for tests that count cycles, or with the clock (`realtime=True`). In real time
a thread advances it regularly, and so does every read or write, so that an instruction acts at its time of arrival,
independently of the scheduling of threads. In both cases another thread answers on the ports as soon as bytes arrive.
One lock protects bytes, time and faults.

By default it starts in the state in which a driver leaves it: at rest under tension, torque on, servos configured for
the driver (wheel mode; current-based position; extended position for servos without current sensor).
"""

from __future__ import annotations

import logging
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tensegrity_dynamics.errors import BusError, TensegrityError
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.simulation import Observation

from ..bus.control_tables import ServoModel, model_named
from ..bus.potentiometer_protocol import RADIANS_PER_COUNT
from ..servos.motors import LOOP_S, MOTORS
from ..spools.spool import Line
from .driving_board import DrivingBoard
from .emulated_servo import EmulatedServo
from .fault_injection import EmulatedParts, FaultInjection
from .potentiometer_board import Potentiometer, PotentiometerBoard
from .pseudo_terminal import Delivery, PseudoTerminal, Server
from .servo_chain import ServoChain
from .servo_physics import CURRENT_BASED, DROOP, EXTENDED, TURN
from .spooled_robot import SpooledRobot
from .wire_delay import WireDelay, WireSettings

STEP_S = 0.005
"""Period at which the servos read their loads [s]."""
MEASURING_STEP_S = 1e-6
"""Step of the first measurement, before time starts [s]."""
BYTES_PATIENCE_S = 0.001
"""Time to wait for arriving bytes before `advance` [s]."""
MAX_CATCH_UP_S = 0.4
"""Longest time that is caught up at once in real time [s]; shorter than the silence after which servos stop by
themselves. On a slower machine the emulated time falls behind."""
MakeBoard = Callable[[Mapping[int, Potentiometer], ServoChain], PotentiometerBoard]
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Identity:
    """Identity of one servo: actuator, id, model, model number, and channel of its potentiometer or None."""

    actuator: str
    id: int
    model: str
    number: int
    potentiometer: int | None


class EmulatedRobot:
    """Emulated hardware of a robot.

    Args:
        robot: a structure with servos.
        directory: directory of the ports `servos` and `potentiometers`; None: a temporary one.
        realtime: whether time advances with the clock.
        step: period of the servos [s], see `STEP_S`.
        wire: delays on the servo bus.
        seed: seed of noise, damage and collisions.
        start: initial configuration, see `Simulation`.
        potentiometers: (counts at the start, direction +1 or -1) by actuator; others start near the middle.
        prepared: whether servos are configured for the driver; else all settings but id and baud rate are the factory
            ones.
        make_board: creates the board from these potentiometers, with the servos on its own bus. None: a board that
            closes the position loops if the robot file says so, else one that only measures.
        torque_on: whether torque is on at the start.
        droop: droop of servos in wheel mode under load, see `ServoPhysics`.
        waits: whether time stops `MAX_CATCH_UP_S` after the last bytes, for a driver in this process.

    Attributes:
        faults: injects faults into this robot.

    Raises:
        BusError: the robot is a mechanism or has no servos, a model is unknown, or a servo has another protocol than
            the bus.
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
        step: float = STEP_S,
        seed: int = 0,
        make_board: MakeBoard | None = None,
        waits: bool = False,
    ) -> None:
        self.robot, self._step, self._waits = robot, step, waits
        self._alone = 0.0  # s of its time since the last bytes
        self._failure: TensegrityError | None = None
        self._time_left = 0.0
        self._closing = threading.Event()
        self._present = time.monotonic()  # clock time to which the emulation has advanced
        self._clock: threading.Thread | None = None
        self.protocol = int(robot.servos.get("protocol") or 2)
        body = SpooledRobot(robot, start)
        servos: dict[str, EmulatedServo] = {}
        channels: dict[str, int] = {}
        by_channel: dict[int, Potentiometer] = {}
        for number, row in enumerate(robot.servos["servos"]):
            name = row["actuator"]
            model = self._model(row)
            servo = EmulatedServo(model, MOTORS[model.name], mounted=(1.0 + 0.37 * number) % TURN, droop=droop)
            _configure(servo, int(row["id"]), int(robot.servos.get("baud_rate") or 1_000_000), prepared)
            servo.power_cycle()
            servo.registers.set_raw("torque_enable", int(torque_on))
            servo.motion.move(*body.load(name), MEASURING_STEP_S)
            servos[name] = servo
            if row.get("potentiometer") is not None:
                offset, direction = (potentiometers or {}).get(name, (1840.0 + 40.0 * number, 1))
                by_channel[int(row["potentiometer"])] = Potentiometer(offset, direction)
                channels[name] = int(row["potentiometer"])
        chain = ServoChain(servos, self.protocol)
        if make_board is None and robot.servos.get("position_loop") == "board":
            make_board = DrivingBoard
        board = None
        if by_channel:
            board = make_board(by_channel, chain) if make_board else PotentiometerBoard(by_channel, seed)
        self._temporary = tempfile.TemporaryDirectory(prefix="tensegrity-") if directory is None else None
        self.directory = Path(self._temporary.name if self._temporary else str(directory))
        self.directory.mkdir(parents=True, exist_ok=True)
        terminals = {"servos": PseudoTerminal(self.directory / "servos", self._receive_servos, self._pause_servos)}
        if board is not None:
            terminals["potentiometers"] = PseudoTerminal(
                self.directory / "potentiometers", self._receive_board, self._pause_board
            )
        try:
            for terminal in terminals.values():
                terminal.plug()
        except (BusError, OSError):
            for terminal in terminals.values():
                terminal.unplug()
            raise
        lock = threading.RLock()
        with lock:  # the server answers once all parts are in place
            self._parts = EmulatedParts(
                lock, servos, channels, chain, WireDelay(wire or WireSettings(), seed),
                body, board, terminals, Server(list(terminals.values()), lock),
            )  # fmt: skip
        self.faults = FaultInjection(self._parts)
        self._present = time.monotonic()
        if realtime:
            self._clock = threading.Thread(target=self.keep_time, name="emulated time", daemon=True)
            self._clock.start()

    # -- state -----------------------------------------------------------------------------------------------------

    @property
    def servo_port(self) -> str:
        """Path of the port of the servos."""
        return str(self._parts.terminals["servos"].link)

    @property
    def board_port(self) -> str | None:
        """Path of the port of the potentiometer board, or None without one."""
        terminal = self._parts.terminals.get("potentiometers")
        return None if terminal is None else str(terminal.link)

    @property
    def silence(self) -> float:
        """Time since the last bytes at a port [s of the computer's clock]; inf before the first ones."""
        return time.monotonic() - max(each.last_bytes for each in self._parts.terminals.values())

    @property
    def identity(self) -> tuple[Identity, ...]:
        """Identities of the servos, as a scan finds them."""
        return tuple(
            Identity(name, servo.id, servo.model.name, servo.model.number, self._parts.channels.get(name))
            for name, servo in self._parts.servos.items()
        )

    @property
    def time(self) -> float:
        """Simulated time since the start [s]."""
        return self._parts.body.time

    def observe(self) -> Observation:
        """True state of the simulated robot."""
        with self._parts.lock:
            return self._parts.body.observe()

    def angle(self, name: str) -> float:
        """Angle of a spool since the start, in the positive direction of its servo [rad]."""
        with self._parts.lock:
            return self._parts.winding(name).angle

    def lines(self, name: str) -> dict[str, Line]:
        """Exact calibration of a spool by sensor at the present turn count (X series: valid until the servo
        reboots)."""
        with self._parts.lock:
            winding, servo = self._parts.winding(name), self._parts.servos[name]
            slope = -winding.direction * winding.radius
            lines = {"encoder": Line(slope, winding.length - slope * servo.motion.position)}
            if name in self._parts.channels and self._parts.board is not None:
                each = self._parts.board.potentiometers[self._parts.channels[name]]
                lines["potentiometer"] = Line(
                    slope * RADIANS_PER_COUNT * each.direction,
                    winding.start - slope * RADIANS_PER_COUNT * each.direction * each.offset,
                )
            return lines

    def register(self, name: str, register: str) -> float:
        """Present value of a register of a servo, in SI units."""
        with self._parts.lock:
            servo = self._parts.servo(name)
            servo.motion.refresh_registers()
            return servo.registers.value(register)

    def advance(self, seconds: float) -> None:
        """Execute the instructions sent so far, then advance the time.

        Args:
            seconds: s.

        Raises:
            BusError: the time follows the clock.
            TensegrityError: the simulation diverged.
        """
        if self._clock is not None:
            raise BusError(
                "this emulated robot runs in real time by the clock; create it with realtime=False to call advance()."
            )
        if self._parts.server.failure is not None:
            raise BusError(
                f"the thread of the emulated ports ended: {self._parts.server.failure!r}."
            ) from self._parts.server.failure
        self.execute_pending()
        with self._parts.lock:
            self._move(seconds)

    def execute_pending(self) -> None:
        """Execute all instructions sent so far and send their answers, without waiting for the serving thread."""
        self._parts.server.receive_pending(BYTES_PATIENCE_S)

    def check(self) -> None:
        """Raise the error that ended the thread of the time or of the ports, if any."""
        if self._failure is not None:
            raise self._failure
        if self._parts.server.failure is not None:
            raise BusError(
                f"the thread of the emulated ports ended: {self._parts.server.failure!r}."
            ) from self._parts.server.failure

    def close(self) -> None:
        """End the threads and remove the ports."""
        self._closing.set()
        if self._clock is not None:
            self._clock.join()
        self._parts.server.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    def __enter__(self) -> EmulatedRobot:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    # -- time ------------------------------------------------------------------------------------------------------

    def _move(self, seconds: float) -> None:
        """Advance by whole steps of the simulation and keep the remainder; the lock must be held."""
        self._time_left += seconds
        inner = self._parts.body.simulation.time_step
        while self._time_left >= 0.5 * inner:
            soft = any(servo.motion.is_soft for servo in self._parts.servos.values())
            steps = max(1, round(min(self._time_left, LOOP_S if soft else self._step) / inner))
            self._time_left -= steps * inner
            step = steps * inner
            speeds = {}
            for name, servo in self._parts.servos.items():
                load, stiffness = self._parts.body.load(name)
                speeds[name] = servo.motion.move(load + self._parts.shaft_torques.get(name, 0.0), stiffness, step)
            self._parts.body.turn(speeds, steps)
            by_channel = {}
            for name, servo in self._parts.servos.items():
                angle = self._parts.body.windings[name].angle
                servo.motion.turned(angle, step)
                if self._parts.board is not None and name in self._parts.channels:
                    channel = self._parts.channels[name]
                    self._parts.board.potentiometers[channel].move(angle)
                    by_channel[channel] = speeds[name]
            if self._parts.board is not None:
                self._parts.board.convert(by_channel)
                self._parts.board.run(step)
            for second in self._parts.second_servos.values():
                second.motion.turned(second.motion.angle + step * second.motion.move(0.0, 0.0, step), step)

    def catch_up(self) -> None:
        """Advance to the present if the time follows the clock.

        Raises:
            TensegrityError: the simulation diverged, or the thread of the time or of the ports has ended.
        """
        self.check()
        with self._parts.lock:
            self._catch_up()
        self.check()

    def _catch_up(self) -> None:
        """As `catch_up`, with the lock held; an error is stored, and the robot then stands still."""
        if self._clock is None or self._failure is not None:
            return
        now = time.monotonic()
        longest = max(MAX_CATCH_UP_S - self._alone, 0.0) if self._waits else MAX_CATCH_UP_S
        elapsed, self._present = min(now - self._present, longest), now
        self._alone += elapsed
        try:
            self._move(elapsed)
        except TensegrityError as problem:
            self._failure = problem
            _log.error("the emulated robot stopped, because its simulation failed: %s", problem)
        done = time.monotonic()
        if done - now > elapsed:  # slow machine: do not catch up the computing time, which would grow
            self._present = done

    def keep_time(self) -> None:
        while self._failure is None and not self._closing.wait(self._step):
            with self._parts.lock:
                self._catch_up()

    # -- bytes, under the lock -------------------------------------------------------------------------------------

    def _receive_servos(self, data: bytes) -> Delivery:
        if self._parts.wire.settings.check_baud_rate:
            self._parts.chain.baud_rate = self._parts.terminals["servos"].baud_rate
        self._catch_up()
        self._alone = 0.0
        return self._parts.wire.deliver(data, self._parts.chain.feed(data))

    def _pause_servos(self) -> Delivery:
        return self._parts.wire.deliver(b"", self._parts.chain.end_of_burst())

    def _receive_board(self, data: bytes) -> Delivery:
        self._catch_up()
        self._alone = 0.0
        return [(0.0, each) for each in self._parts.board.feed(data)] if self._parts.board is not None else []

    def _pause_board(self) -> Delivery:
        if self._parts.board is not None:
            self._parts.board.end_of_burst()
        return []

    def _model(self, row: Mapping[str, Any]) -> ServoModel:
        model = model_named(row["model"])
        if model.protocol != self.protocol:
            raise BusError(
                f"servo {row['id']} ({row['actuator']}) is a {model.name}, with protocol {model.protocol}, but the "
                f"bus uses protocol {self.protocol}; correct `protocol` or `model` in the servos block of the robot "
                "file."
            )
        return model


def _configure(servo: EmulatedServo, id_: int, baud_rate: int, prepared: bool) -> None:
    """Write the EEPROM: id and baud rate, and with `prepared` everything that the driver sets."""
    registers, model = servo.registers, servo.model
    raws = {rate: raw for raw, rate in model.baud_rates.items()}
    if baud_rate not in raws:
        raise BusError(
            f"{model.name} does not support {baud_rate} bit/s, only {sorted(raws)}; correct `baud_rate` in the robot "
            "file."
        )
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
    """Copy of a robot with servos of another model and without potentiometers; the protocol is that of the model."""
    servo_model = model_named(model)
    rows = [{**row, "model": servo_model.name, "potentiometer": None} for row in robot.servos.get("servos") or ()]
    if not rows:
        raise BusError(f"{robot.name} has no servos to replace; add a `servos` block to its robot file.")
    settings = {"protocol": servo_model.protocol, "position_loop": "driver", "servos": rows}
    return replace(robot, servos={**robot.servos, **settings})
