"""Servos of a robot on their bus: one `read` and one `write` per cycle, in SI units and by the names of actuators.

    group = ServoGroup(robot.servos, Bus(SerialPort("/dev/ttyUSB0"), 1), board)
    group.open(); group.check(); group.prepare()     every servo answers, has its model, and holds its position
    readings, bus_reading = group.read()             once per cycle
    group.write({name: ServoCommand(...), ...})

Silent servos are read separately, one per cycle, so that they do not delay the others. A servo that may have rebooted
receives no commands except torque off until `prepare` has configured it again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from tensegrity_dynamics.errors import BusError, unknown_name

from ..bus.control_tables import Register, model_named
from ..bus.dynamixel_bus import Bus
from ..bus.dynamixel_protocol import Status
from ..bus.identity import EMULATED_ADAPTER, PSEUDO_TERMINALS, BusIdentity
from ..bus.potentiometer_board import PotentiometerBoard
from ..bus.statistics import BusReading
from ..spools.readings import Drive, ServoCommand, ServoReading
from .configuration import (
    arm_watchdogs,
    check_servo,
    latency_warnings,
    prepare_servo,
    switched_off,
    turn_warnings,
)
from .motors import MOTORS
from .servo import Servo, Torque

MAX_UNANSWERED = 2
"""Largest number of acknowledged writes without an answer in one cycle; it limits the duration of the cycle."""
SILENT_CYCLES = 3
"""Number of cycles without an answer after which a servo is read separately and may have rebooted."""
MAX_BOARD_TRIES = 3
"""Number of requests to the potentiometer board before `check` reports it as silent."""
ASTRAY_CYCLES, ASTRAY_SPEED = 5, 0.05
"""Number of cycles in which a wheel turns faster than this [rad/s], but not as commanded, after which a group write may
not have reached it."""
Writes = dict[tuple[int, int, int], dict[int, bytes]]
"""Register contents to write, by stage, address and size, then by id."""
CEILING_STAGE, REST_STAGE, TORQUE_STAGE, GOAL_STAGE = range(4)
"""Order of the writes: ceilings; position or speed at which torque is switched on; torque; goal."""


class ServoGroup:
    """Servos at one port, as a `ServoLink`.

    Args:
        servos: servo block of a robot file: protocol, and rows with actuator, id, model and potentiometer channel.
        bus: bus with the same protocol.
        board: potentiometer board, or None.
        state_period: number of cycles between two readings of the state of a servo; more cycles save wire time and
            delay the detection of a servo that lost its torque.
        watchdog: time without a packet after which servos with a watchdog stop [s].
        return_delay: time that servos wait before they answer [s]; it adds to the cycle once per servo.
        ceilings: initial torque fraction and current by actuator; others keep their last values.
        last_words: wheels, which have no watchdog, are stopped by a separate process if this one ends or sends nothing
            for the time of the watchdog.

    Attributes:
        identity_port: port whose adapter identifies this bus: that of the servos unless the board drives them.
        switched_off: actuators of multi-turn servos that lost their supply since they were last driven; set by `check`.

    Raises:
        BusError: a model is unknown or has the other protocol, or a setting is out of range.
    """

    def __init__(
        self,
        servos: Mapping[str, Any],
        bus: Bus,
        board: PotentiometerBoard | None = None,
        *,
        state_period: int = 1,
        watchdog: float = 0.5,
        return_delay: float = 0.0,
        ceilings: Mapping[str, ServoCommand] | None = None,
        last_words: bool = False,
    ) -> None:
        if state_period < 1 or not watchdog > 0.0:
            raise BusError(f"state period {state_period} must be at least 1 cycle, watchdog {watchdog} s above zero.")
        self.bus, self.board = bus, board
        self.state_period, self.watchdog, self.return_delay = state_period, watchdog, return_delay
        self.ceilings = dict(ceilings or {})
        self.servos: dict[str, Servo] = {}
        for row in servos["servos"]:
            model = model_named(row["model"])
            if model.protocol != bus.protocol.number:
                raise BusError(
                    f"servo {row['id']} ({row['actuator']}) is a {model.name}, which speaks protocol {model.protocol}, "
                    f"but the bus speaks {bus.protocol.number}. Correct protocol or model in the robot's file."
                )
            channel = row.get("potentiometer") if board is not None else None
            self.servos[row["actuator"]] = Servo(row["actuator"], int(row["id"]), model, channel)
        self._order = tuple(self.servos.values())
        self.last_words = last_words
        self._by_id = {servo.id: servo for servo in self._order}
        self._numbers: tuple[tuple[int, int], ...] = ()
        self._warnings: tuple[str, ...] = ()
        self.switched_off: tuple[str, ...] = ()
        self.identity_port = bus.port
        self._cycle = 0
        self._silent_index = self._single_index = 0
        self._port_was_lost = False
        self._read_all = False

    # -- before and after --------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Open the ports; raises BusError."""
        self.bus.open()
        if self.board is not None:
            self.board.open()

    def close(self) -> None:
        """Close the ports; the servos keep the last command."""
        self.bus.close()
        if self.board is not None:
            self.board.close()

    def check(self) -> None:
        """Check every servo and the board without motion.

        Raises:
            BusError: lists all problems: servos that are missing, duplicate or of another model; a board that does not
                answer or has too few channels.
        """
        errors: list[str] = []
        numbers: list[tuple[int, int]] = []
        for servo in self._order:
            try:
                numbers.append((servo.id, check_servo(self.bus, servo)))
            except BusError as error:
                errors.append(str(error))
                if not self.bus.port.is_open:
                    raise
        channels = [servo.channel for servo in self._order if servo.channel is not None]
        if self.board is not None and channels:
            if max(channels) >= self.board.channels:
                errors.append(
                    f"the potentiometer board has {self.board.channels} channels, the robot's file names channel "
                    f"{max(channels)}."
                )
            elif not any(self.board.read() for _ in range(MAX_BOARD_TRIES)):
                why = self.board.problem or "no whole answer came"
                errors.append(
                    f"the potentiometer board at {self.board.port.path} does not answer: {why}. Check plug and supply."
                )
        if errors:
            raise BusError(" ".join(errors))
        self._numbers = tuple(numbers)
        without_supply = switched_off(self.bus, self._order)
        self.switched_off = tuple(each.name for each in without_supply)
        self._warnings = (*turn_warnings(without_supply), *latency_warnings(self.bus, self._order))

    def warnings(self) -> tuple[str, ...]:
        """Warnings of `check`: servos with doubtful turn counts, and settings that cost time."""
        return self._warnings

    @property
    def identity(self) -> BusIdentity:
        """Adapter, ids and models; complete after `check`."""
        port = self.identity_port
        name = EMULATED_ADAPTER if port.device.startswith(PSEUDO_TERMINALS) else f"without serial number at {port.path}"
        return BusIdentity(port.adapter.serial_number or name, self._numbers)

    def prepare(self, names: Iterable[str] | None = None) -> None:
        """Configure servos and switch torque on at their present positions; watchdogs are armed last.

        Clears watchdog errors of X servos and overloads of AX-12A.

        Args:
            names: actuators; None: all.

        Raises:
            BusError: names the servo and the setting; the servos prepared before it have torque.
        """
        chosen = self._order if names is None else tuple(self._servo(name) for name in names)
        for servo in chosen:
            ceiling = self.ceilings.get(servo.name)
            prepare_servo(
                self.bus,
                servo,
                return_delay=self.return_delay,
                torque_fraction=None if ceiling is None else ceiling.torque_fraction,
                current=None if ceiling is None else ceiling.current,
            )
        arm_watchdogs(self.bus, chosen, self.watchdog)
        wheels = [servo for servo in self._order if servo.prepared and not servo.model.counts_turns]
        if wheels and self.last_words:
            goal = wheels[0].goal
            self.bus.sync_write(goal.address, goal.size, {servo.id: b"\0\0" for servo in wheels})
            self.bus.port.leave(self.bus.port.sent_last, self.watchdog)

    def torque_off(self) -> None:
        """Switch the torque of all servos off, verified one by one.

        Raises:
            BusError: names the servos that may still have torque.
        """
        writes: Writes = {}
        for servo in self._order:
            _add(writes, TORQUE_STAGE, servo, servo.model.register("torque_enable"), b"\0")
        for (_, address, size), values in writes.items():
            with contextlib.suppress(BusError):  # each servo is reported separately below
                self.bus.sync_write(address, size, values)
        doubtful = []
        for servo in self._order:
            try:
                self.bus.write_if_changed(servo.id, servo.model.register("torque_enable"), 0.0)
                servo.torque = Torque.OFF
            except BusError as error:
                doubtful.append(f"{servo.name}: {error}")
        if doubtful:
            raise BusError(f"torque may still be on ({'; '.join(doubtful)}). Switch the servo supply off.")

    def reboot(self, name: str) -> None:
        """Reboot one servo of protocol 2 after a hardware error; then prepare it and home its tendon."""
        servo = self._servo(name)
        servo.prepared = False
        self.bus.reboot(servo.id)

    def unprepared(self) -> tuple[str, ...]:
        """Actuators whose servos receive no commands until they are prepared."""
        return tuple(servo.name for servo in self._order if not servo.prepared)

    def statistics(self) -> dict[str, object]:
        """Counts and latencies since construction, by name: see `BusStatistics` and `BoardStatistics`."""
        counts = self.bus.statistics
        figures = {**asdict(counts), "rate": counts.rate, "latency_mean": counts.latency_mean}
        figures["alerts"] = {self._by_id[i].name if i in self._by_id else str(i): n for i, n in counts.alerts.items()}
        if self.board is not None:
            figures["board"] = asdict(self.board.statistics)
        return figures

    # -- cycles ------------------------------------------------------------------------------------------------------

    def read(self) -> tuple[Mapping[str, ServoReading], BusReading]:
        """Read every servo and every potentiometer once; raises BusError while the port is missing."""
        board = self.board
        requested = board is not None and board.request()
        try:
            self._port_was_lost |= self.bus.begin_cycle()
            if self._port_was_lost:
                self._port_was_lost, self._read_all = False, True
                for servo in self._order:  # the supply may have been off together with the adapter
                    servo.may_have_rebooted = servo.state_due = True
            self._read_groups()
        except BusError:
            for servo in self._order:
                servo.missed()
                servo.take_sensor(None)
            raise
        if board is not None:
            state = board.collect() if requested else None
            for servo in self._order:
                if servo.channel is not None:
                    valid = state is not None and servo.channel < len(state.positions)
                    servo.take_sensor(float(state.positions[servo.channel]) if valid and state is not None else None)
        return {servo.name: servo.reading for servo in self._order}, self.bus.end_cycle()

    def _read_groups(self) -> None:
        self._cycle += 1
        groups: dict[tuple[int, int, bool], list[int]] = {}
        silent: list[Servo] = []
        for index, servo in enumerate(self._order):
            if servo.age >= SILENT_CYCLES and not self._read_all:
                silent.append(servo)
                continue
            with_state = servo.state_due or (self._cycle + index) % self.state_period == 0
            block = servo.state if with_state else servo.measured
            groups.setdefault((block.address, block.size, with_state), []).append(servo.id)
        self._read_all = False
        for (address, size, with_state), ids in groups.items():
            answers = self.bus.sync_read(ids, address, size)
            for servo_id in ids:
                self._take(self._by_id[servo_id], answers.get(servo_id), with_state=with_state)
        if silent:
            self._silent_index += 1
            tried = silent[self._silent_index % len(silent)]
            for servo in silent:
                status = None
                if servo is tried:
                    status = self.bus.read_block(servo.id, servo.state.address, servo.state.size, retry=False)
                    self._read_all = status is not None  # if one answers again, the others may as well
                self._take(servo, status, with_state=True)

    def _take(self, servo: Servo, status: Status | None, *, with_state: bool) -> None:
        if status is None:
            servo.missed()
            servo.may_have_rebooted = servo.may_have_rebooted or servo.age >= SILENT_CYCLES
        else:
            servo.take(status, with_state=with_state)

    def write(self, commands: Mapping[str, ServoCommand]) -> None:
        """Send one command to every named servo; ceilings and torque only if they change.

        Raises:
            BusError: the port is missing, or a servo cannot follow a command; all other commands have been sent.
        """
        self._port_was_lost |= self.bus.open()
        errors: list[str] = []
        writes: Writes = {}
        again: list[tuple[Servo, Register, bytes]] = [  # servos with torque although torque off was sent before
            (servo, servo.model.register("torque_enable"), b"\0")
            for servo in map(self._servo, (name for name, each in commands.items() if each.kind is Drive.TORQUE_OFF))
            if servo.torque is Torque.OFF and servo.reading.torque_on is not False
        ]
        for name, command in commands.items():
            servo = self._servo(name)
            try:
                self._collect(servo, command, writes)
                if servo.astray > ASTRAY_CYCLES and command.kind is Drive.VELOCITY:
                    again.append((servo, servo.goal, _speed(servo, command)))
            except BusError as error:
                errors.append(f"{servo.label}: {error}")
        for key in sorted(writes):
            _, address, size = key
            self.bus.sync_write(address, size, writes[key])
        self._write_one_by_one(again)
        if errors:
            raise BusError(" ".join(errors))

    def _write_one_by_one(self, writes: list[tuple[Servo, Register, bytes]]) -> None:
        """Second method where a group write has had no effect: one acknowledged write to each servo."""
        unanswered = 0
        for k in range(len(writes)):
            if unanswered >= MAX_UNANSWERED:
                self._single_index += k  # the next cycle starts with the others
                return
            servo, register, data = writes[(self._single_index + k) % len(writes)]
            unanswered += not self.bus.write_block(servo.id, register.address, data)

    def _collect(self, servo: Servo, command: ServoCommand, writes: Writes) -> None:
        """Add the writes for one command."""
        if command.kind is Drive.TORQUE_OFF:
            servo.astray = 0
            if servo.torque is not Torque.OFF or servo.reading.torque_on is not False:
                _add(writes, TORQUE_STAGE, servo, servo.model.register("torque_enable"), b"\0")
                servo.torque, servo.state_due = Torque.OFF, True
            return
        goal = servo.goal
        if servo.prepared and servo.may_have_rebooted and not servo.model.counts_turns:
            # it may receive although its answers are lost, and without this its wheel goes on at the last speed
            _add(writes, REST_STAGE, servo, goal, b"\0\0")
            return
        if not servo.prepared or servo.may_have_rebooted:
            servo.astray = 0
            return
        if servo.model.counts_turns:
            if command.kind is not Drive.POSITION:
                raise BusError(f"a {servo.model.name} is driven by positions here, not by {command.kind.value}.")
            data = goal.encode_bytes(command.position)
            profile = servo.model.registers["profile_velocity"]
            speed = max(abs(command.speed), profile.factor)  # zero would mean without limit
            changed = servo.changed(profile, speed)
            if changed is not None:
                _add(writes, CEILING_STAGE, servo, profile, changed)
            if "goal_current" in servo.model.registers:
                self._gains(servo, command, writes)
                self._ceiling(servo, "goal_current", command.current, writes)
            else:
                self._ceiling(servo, "goal_pwm", command.torque_fraction, writes)
            if servo.torque is not Torque.ON:
                if servo.reading.position is None or servo.age > 0:
                    return  # the position at which torque would come on is unknown
                _add(writes, REST_STAGE, servo, goal, goal.encode_bytes(servo.reading.position))
            _add(writes, GOAL_STAGE, servo, goal, data)
        else:
            if command.kind is not Drive.VELOCITY:
                raise BusError(f"an {servo.model.name} is driven by speeds here, not by {command.kind.value}.")
            self._ceiling(servo, "torque_limit", command.torque_fraction, writes)
            turns = servo.reading.speed or 0.0
            servo.astray = servo.astray + 1 if abs(turns) > ASTRAY_SPEED and turns * command.speed <= 0.0 else 0
            _add(writes, REST_STAGE, servo, goal, _speed(servo, command))
        if servo.torque is not Torque.ON:
            _add(writes, TORQUE_STAGE, servo, servo.model.register("torque_enable"), b"\1")
            servo.torque, servo.state_due = Torque.REQUESTED, True

    @staticmethod
    def _gains(servo: Servo, command: ServoCommand, writes: Writes) -> None:
        """Add the gains of its own position loop if they change; without an impedance the factory gains."""
        motor = MOTORS[servo.model.name]
        for name, value, step in (
            ("position_p_gain", command.stiffness, motor.stiffness_step),
            ("position_d_gain", command.damping, motor.damping_step),
        ):
            register = servo.model.registers[name]
            if value is None and name not in servo.sent:
                continue  # as prepared
            raw = float(register.initial or 0) if value is None or step is None else value / step
            changed = servo.changed(register, raw)
            if changed is not None:
                _add(writes, CEILING_STAGE, servo, register, changed)

    @staticmethod
    def _ceiling(servo: Servo, name: str, value: float | None, writes: Writes) -> None:
        """Add a ceiling if it changes; not for an overloaded servo, for which only `prepare` sets it again."""
        if value is None or "overload" in servo.reading.errors:
            return
        register = servo.model.registers[name]
        if servo.ceiling is not None:
            value = min(value, register.factor * servo.ceiling)
        changed = servo.changed(register, value)
        if changed is not None:
            _add(writes, CEILING_STAGE, servo, register, changed)

    def _servo(self, name: str) -> Servo:
        try:
            return self.servos[name]
        except KeyError:
            raise BusError(unknown_name("actuator with a servo", name, self.servos)) from None


def _speed(servo: Servo, command: ServoCommand) -> bytes:
    return servo.goal.encode_nearest(command.speed).to_bytes(2, "little")


def _add(writes: Writes, stage: int, servo: Servo, register: Register, data: bytes) -> None:
    key = (stage, register.address, register.size)
    if key in writes:
        writes[key][servo.id] = data
    else:
        writes[key] = {servo.id: data}
