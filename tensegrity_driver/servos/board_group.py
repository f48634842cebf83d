"""Servos behind the potentiometer board, which closes their position loops: one `read` and one `write` per cycle.

The board (`firmware/`) receives a set point per spool in every cycle and stops all servos if none arrives for half a
second, for whatever reason. It reads its servos one after the other; in each cycle the host requests the state of one
of them. Encoder positions are not reported, since they would be too old for a comparison with the potentiometers.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from tensegrity_dynamics.errors import BusError, unknown_name

from ..bus.control_tables import ServoModel, model_named
from ..bus.identity import EMULATED_ADAPTER, PSEUDO_TERMINALS, BusIdentity
from ..bus.potentiometer_board import PotentiometerBoard
from ..bus.potentiometer_protocol import (
    RADIANS_PER_COUNT,
    VELOCITY_ZERO,
    BoardAction,
    BoardMode,
    BoardReason,
    BoardServo,
    BoardState,
    ChannelSetup,
)
from ..bus.statistics import BusReading
from ..spools.readings import Drive, DriveCommand, ServoCommand, ServoReading
from ..spools.spool import Spool
from .servo import HARDWARE_ERRORS_1

MODE_PATIENCE_S = 3.0
"""Time for the board to arm or to release all its servos [s]; with twelve servos it takes a tenth of a second."""
MAX_TRIES = 3
"""Number of requests to the board before `check` reports it as silent, and before `prepare` or `torque_off` fail."""


class BoardGroup:
    """Servos driven by a potentiometer board, as a `HardwareLink`.

    Args:
        rows: rows of the servo block of a robot file.
        board: board with at least the channels in these rows.

    Attributes:
        spools: calibrated spools by actuator; `prepare` passes their limits to the board.
    """

    switched_off: Sequence[str] = ()

    def __init__(self, rows: Sequence[Mapping[str, Any]], board: PotentiometerBoard) -> None:
        self.board = board
        self.spools: Mapping[str, Spool] = {}
        self._channels = {str(row["actuator"]): int(row["potentiometer"]) for row in rows}
        self._ids = {str(row["actuator"]): int(row["id"]) for row in rows}
        self._models: dict[str, ServoModel] = {str(row["actuator"]): model_named(row["model"]) for row in rows}
        self._names = tuple(self._channels)
        self._readings = {name: ServoReading(name) for name in self._names}
        self._goals = [0] * board.channels
        self._mode, self._reason = BoardMode.IDLE, BoardReason.NONE
        self._prepared = False
        self._silence = 0  # cycles without any answer of the board
        self._misses = dict.fromkeys(self._names, 0)  # unanswered requests per servo, as the board reports
        self._cycle = 0
        self._where: str | None = None

    # -- before and after --------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Open the port of the board; raises BusError."""
        self.board.open()

    def close(self) -> None:
        """Make the board stop its servos, and close the port."""
        if self._prepared and self._mode is BoardMode.ARMED:
            with contextlib.suppress(BusError):  # its watchdog does the same a little later
                self.board.drive(BoardAction.STOP)
        self.board.close()

    def check(self) -> None:
        """Check that the board answers, has the channels and can drive, without motion. Raises BusError."""
        if not any(self.board.read() for _ in range(MAX_TRIES)):
            why = self.board.problem or "no whole answer came"
            raise BusError(
                f"the potentiometer board at {self.board.port.path} does not answer: {why}. Check plug, supply and the "
                f"number of its channels, which must be {self.board.channels}."
            )
        try:
            self._ask(0)
        except BusError as error:
            raise BusError(
                f"{error} A board that closes the position loop needs the program in firmware/; with another one say "
                "position_loop: driver."
            ) from error

    @property
    def identity(self) -> BusIdentity:
        """Adapter of the board, ids and models of the robot file; the board refuses to arm other models."""
        port = self.board.port
        name = EMULATED_ADAPTER if port.device.startswith(PSEUDO_TERMINALS) else f"without serial number at {port.path}"
        numbers = tuple((self._ids[each], self._models[each].number) for each in self._names)
        return BusIdentity(port.adapter.serial_number or name, numbers)

    def warnings(self) -> tuple[str, ...]:
        """None: the board makes the settings that cost time."""
        return ()

    def prepare(self, names: Iterable[str] | None = None) -> None:
        """Configure the board and arm it: wheel mode, torque limits, torque on, every spool held at its position.

        An armed board is not changed.

        Args:
            names: without effect, since the board stops all its servos or none.

        Raises:
            BusError: the board or a servo refuses; the board has then stopped all servos.
        """
        state = self._ask(self._channels[self._names[0]])
        if state.mode is not BoardMode.ARMED:
            for name in self._names:
                self._repeat(partial(self.board.set_up, self._setup(name)))
            self._repeat(partial(self.board.drive, BoardAction.ARM))
            state = self._until(BoardMode.ARMED, BoardMode.STOPPED)
            if state.mode is not BoardMode.ARMED:
                raise BusError(
                    f"the board does not arm: {self.stopped_by()}. Check plug, id, model and supply of that servo."
                )
        measured = self.board.read()
        if measured is None:
            raise BusError(f"the potentiometer board at {self.board.port.path} was armed, but reports no positions.")
        self._goals = list(measured.desired)
        self._prepared = True
        self._readings = {name: replace(each, torque_on=True, watchdog=True) for name, each in self._readings.items()}

    def _setup(self, name: str) -> ChannelSetup:
        """Servo and limits of one calibrated spool."""
        if name not in self.spools:
            raise BusError(f"{name} is not calibrated, so that the board cannot know its limits; calibrate it.")
        spool, registers = self.spools[name], self._models[name].registers
        actuator = spool.actuator
        ends = [spool.counts(length) for length in actuator.position]
        command = spool.command(DriveCommand(Drive.VELOCITY, 0.0, actuator.rate, actuator.effort))
        speed = registers["moving_speed"]
        fastest = int(actuator.rate / spool.radius / speed.factor)
        limit = registers["torque_limit"]
        torque = limit.high if command.torque_fraction is None else limit.encode_nearest(command.torque_fraction)
        if not min(ends) < max(ends) or fastest < 1:
            raise BusError(
                f"{name}: limits of {actuator.position[0]:g} to {actuator.position[1]:g} m lie at {ends[0]} and "
                f"{ends[1]} counts of its potentiometer, {actuator.rate:g} m/s are {fastest} steps of speed; the board "
                "needs a gap between them. Check its calibration, or say position_loop: driver."
            )
        return ChannelSetup(
            self._channels[name], self._ids[name], spool.count_sense > 0, min(ends), max(ends),
            min(fastest, 1023), torque,
        )  # fmt: skip

    def torque_off(self) -> None:
        """Switch the torque of all servos off; the board repeats this until each of them confirms.

        Raises:
            BusError: not all of them have confirmed.
        """
        try:
            self._repeat(partial(self.board.drive, BoardAction.RELEASE))
            self._until(BoardMode.IDLE)
        except BusError as error:
            if self.board.refusal is BoardReason.NOT_SET_UP:
                return  # a board that was never set up has never switched torque on
            raise BusError(f"torque may still be on ({error}). Switch the servo supply off.") from error

    def unprepared(self) -> tuple[str, ...]:
        """All actuators while the board does not drive; else none."""
        return self._names if self._prepared and self._mode is not BoardMode.ARMED else ()

    def stopped_by(self) -> str:
        """Why the board stopped, with the actuator that caused it."""
        return self._reason.text if self._where is None else f"{self._where}: {self._reason.text}"

    def statistics(self) -> dict[str, object]:
        """Counts since construction, and the mode of the board."""
        what = self._mode.name.lower()
        why = f", {self.stopped_by()}" if self._mode is BoardMode.STOPPED else ""
        return {"board": {**asdict(self.board.statistics), "mode": what + why}}

    # -- cycles ------------------------------------------------------------------------------------------------------

    def read(self) -> tuple[Mapping[str, ServoReading], BusReading]:
        """Read every potentiometer and one of the servos; raises BusError while the port is missing."""
        state = self.board.read()
        if state is None and not self.board.port.is_open:
            self._missed()
            raise BusError(self.board.problem or f"port {self.board.port.path} is closed.")
        self._cycle += 1
        name = self._names[self._cycle % len(self._names)]
        missing = int(state is None)
        servo: BoardServo | None = None
        try:
            servo = self._ask(self._channels[name])
        except BusError:
            missing += 1
        if state is None and servo is None:
            self._missed()
        else:
            self._take(state, name, servo)
        return dict(self._readings), BusReading(packets=2, bad_packets=missing)

    def write(self, commands: Mapping[str, ServoCommand]) -> None:
        """Send the set points; a spool without one keeps its last. Torque off releases one servo, and the board stops
        the others.

        Raises:
            BusError: the board did not accept them; the message says why it stopped.
        """
        errors: list[str] = []
        released = [name for name, command in commands.items() if command.kind is Drive.TORQUE_OFF]
        for name in released:
            if self._readings[name].torque_on is not False:
                self._note(errors, partial(self.board.drive, BoardAction.RELEASE, self._channels[name]))
        for name, command in commands.items():
            if name not in self._channels:
                errors.append(unknown_name("actuator with a servo", name, self._names))
            elif command.kind is Drive.VELOCITY:
                errors.append(f"{name}: the board closes its position loop; give positions, not {command.kind.value}.")
            elif command.counts is not None:
                self._goals[self._channels[name]] = command.counts
        if self._prepared and self._mode is BoardMode.ARMED and not released:
            self._note(errors, partial(self.board.move_to, self._goals))
        elif self._mode is BoardMode.STOPPED:
            errors.append(f"the potentiometer board has stopped all servos ({self.stopped_by()}); clear the faults.")
        if errors:
            raise BusError(" ".join(errors))

    # -- parts -------------------------------------------------------------------------------------------------------

    def _missed(self) -> None:
        self._silence += 1
        self._readings = {
            name: replace(each, age=self._misses[name] + self._silence, sensor_age=each.sensor_age + 1)
            for name, each in self._readings.items()
        }

    def _take(self, state: BoardState | None, name: str, servo: BoardServo | None) -> None:
        """Store potentiometers of all spools, mode of the board, and state of one servo."""
        armed = self._mode is BoardMode.ARMED if self._prepared else None
        self._silence = 0
        if servo is not None:
            self._misses[name] = servo.misses
        for each, channel in self._channels.items():
            old = self._readings[each]
            if state is None:
                self._readings[each] = replace(
                    old, age=self._misses[each], sensor_age=old.sensor_age + 1, watchdog=armed
                )
                continue
            speed = (state.velocities[channel] - VELOCITY_ZERO) * RADIANS_PER_COUNT
            self._readings[each] = replace(
                old, age=self._misses[each], sensor=float(state.positions[channel]), sensor_age=0, watchdog=armed,
                speed=self.spools[each].count_sense * speed if each in self.spools else None,
            )  # fmt: skip
        if servo is None:
            return
        model = self._models[name]
        is_model = servo.model == model.number
        registers = model.registers
        self._readings[name] = replace(
            self._readings[name],
            load=registers["present_load"].decode(servo.load) if is_model else None,
            voltage=registers["present_voltage"].decode(servo.voltage) if is_model else None,
            temperature=registers["present_temperature"].decode(servo.temperature) if is_model else None,
            errors=model.errors(servo.errors) & HARDWARE_ERRORS_1 if servo.errors else frozenset(),
            torque_on=servo.torque if is_model else None,
        )

    def _ask(self, channel: int) -> BoardServo:
        """State of the board and of one servo; stores mode and reason of the board."""
        servo = self.board.servo(channel)
        self._mode, self._reason = servo.mode, servo.reason
        names = {number: name for name, number in self._channels.items()}
        self._where = names.get(servo.where)
        return servo

    def _until(self, *modes: BoardMode) -> BoardServo:
        """Wait until the board is in one of these modes; raises BusError after `MODE_PATIENCE_S`."""
        deadline = time.monotonic() + MODE_PATIENCE_S
        while True:
            servo = self._ask(self._channels[self._names[0]])
            if servo.mode in modes:
                return servo
            if time.monotonic() >= deadline:
                raise BusError(
                    f"the potentiometer board is {servo.mode.name.lower()} and not {modes[0].name.lower()} after "
                    f"{MODE_PATIENCE_S:g} s; one of its servos may not answer."
                )

    @staticmethod
    def _repeat(request: Callable[[], None]) -> None:
        """Repeat an idempotent request up to `MAX_TRIES` times; raises the last BusError."""
        for left in reversed(range(MAX_TRIES)):
            try:
                request()
                return
            except BusError:
                if left == 0:
                    raise

    @staticmethod
    def _note(errors: list[str], request: Callable[[], None]) -> None:
        try:
            request()
        except BusError as error:
            errors.append(str(error))
