"""The servos of a robot on their bus: one `read` and one `write` per cycle, in SI units and by the names of actuators.

    bus = ServoBus(robot.servos, Bus(SerialPort("/dev/ttyUSB0"), 1), board)
    bus.open(); bus.check(); bus.prepare()       every servo is there, is the one named, holds where it is
    readings, health = bus.read()                once per cycle
    bus.write({name: ServoCommand(...), ...})

A servo that stays silent is left out of the groups, so that it does not keep the others waiting, and asked by itself
now and then. One that may have restarted gets no commands until `prepare` has set it up again, but always torque off.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from tensegrity_dynamics.errors import BusError, unknown_name

from ..bus.control_tables import Field, model_named
from ..bus.dynamixel_bus import Bus
from ..bus.dynamixel_protocol import Status
from ..bus.potentiometer_board import PotentiometerBoard
from ..calibration.calibration_file import BusIdentity
from ..spools.readings import BusReading, Drive, ServoCommand, ServoReading
from .configuration import arm_watchdogs, check_servo, cost_notes, prepare_servo, restart_notes, switched_off
from .servo import Servo, Torque

SILENT = 3
"""Cycles without an answer after which a servo is asked by itself only, and may have restarted."""
EMULATED = "emulated"
PSEUDO = "/dev/pts/"
Writes = dict[tuple[int, int, int], dict[int, bytes]]
"""What is to be written, by stage, address and size, then by id."""
CEILING_STAGE, REST_STAGE, TORQUE_STAGE, GOAL_STAGE = range(4)
"""In this order: ceilings, where torque shall come on (or at which speed), torque, and where to go from there."""


class ServoGroup:
    """A `ServoLink` over real packets.

    Args:
        servos: the servos block of a robot: protocol, and rows with actuator, id, model and potentiometer channel.
        bus: with the same protocol.
        board: reads the potentiometers, or None.
        state_period: cycles after which the state of a servo is read besides its measurements, if nothing is wrong; a
            larger one saves wire time, and finds a servo that lost its torque that much later.
        watchdog: s without a packet after which servos that have a watchdog stop by themselves.
        return_delay: s that servos are told to wait before they answer.
        ceilings: torque fraction and current to begin with, by actuator; others begin as they were last.

    Raises:
        BusError: unknown models, a model of the other protocol, or settings that make no sense.
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
        self._by_id = {servo.id: servo for servo in self._order}
        self._numbers: tuple[tuple[int, int], ...] = ()
        self._notes: tuple[str, ...] = ()
        self.switched_off: tuple[str, ...] = ()
        """Actuators whose servos lost their supply since they were last driven, and turns with it; by `check`."""
        self._cycle = 0
        self._turn = 0
        self._port_was_away = False
        self._ask_all = False

    # -- before and after --------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Open the ports; raises BusError."""
        self.bus.open()
        if self.board is not None:
            self.board.open()

    def close(self) -> None:
        """Let go of the ports; what was sent last holds."""
        self.bus.close()
        if self.board is not None:
            self.board.close()

    def check(self) -> None:
        """Look at every servo and at the board; nothing moves.

        Raises:
            BusError: says everything that is wrong: servos that are missing, doubled or of another model, a board that
                does not answer or has too few channels.
        """
        problems: list[str] = []
        numbers: list[tuple[int, int]] = []
        for servo in self._order:
            try:
                numbers.append((servo.id, check_servo(self.bus, servo)))
            except BusError as problem:
                problems.append(str(problem))
                if not self.bus.port.is_open:
                    raise
        channels = [servo.channel for servo in self._order if servo.channel is not None]
        if self.board is not None and channels:
            if max(channels) >= self.board.channels:
                problems.append(
                    f"the potentiometer board has {self.board.channels} channels, the robot's file names channel "
                    f"{max(channels)}."
                )
            elif not any(self.board.read() for _ in range(SILENT)):
                why = self.board.problem or "no whole answer came"
                problems.append(
                    f"the potentiometer board at {self.board.port.path} does not answer: {why}. Check plug and supply."
                )
        if problems:
            raise BusError(" ".join(problems))
        self._numbers = tuple(numbers)
        fresh = switched_off(self.bus, self._order)
        self.switched_off = tuple(each.name for each in fresh)
        self._notes = (*restart_notes(fresh), *cost_notes(self.bus, self._order))

    def notes(self) -> tuple[str, ...]:
        """What `check` found: servos whose turns are in doubt, and what costs time."""
        return self._notes

    @property
    def identity(self) -> BusIdentity:
        """Which bus this is; known after `check`."""
        port = self.bus.port
        name = EMULATED if port.device.startswith(PSEUDO) else f"without serial number at {port.path}"
        return BusIdentity(port.adapter.serial_number or name, self._numbers)

    def prepare(self, names: Iterable[str] | None = None) -> None:
        """Set servos up and switch torque on where they are, so that nothing jumps; watchdogs are armed last.

        Ends watchdog errors of X servos and overloads of AX-12A.

        Raises:
            BusError: names the servo and what it did not take; the servos prepared before it have torque.
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

    def torque_off(self) -> None:
        """All servos without torque, verified one by one.

        Raises:
            BusError: names those that may still have torque.
        """
        writes: Writes = {}
        for servo in self._order:
            _add(writes, TORQUE_STAGE, servo, servo.model.field("torque_enable"), b"\0")
        for (_, address, size), values in writes.items():
            self.bus.write_group(address, size, values)
        doubtful = []
        for servo in self._order:
            try:
                self.bus.ensure(servo.id, servo.model.field("torque_enable"), 0.0)
                servo.torque = Torque.OFF
            except BusError as problem:
                doubtful.append(f"{servo.name}: {problem}")
        if doubtful:
            raise BusError(f"torque may still be on ({'; '.join(doubtful)}). Switch the servo supply off.")

    def reboot(self, name: str) -> None:
        """Restart one servo of protocol 2 after an error of its own; then prepare it and home its tendon."""
        servo = self._servo(name)
        servo.prepared = False
        self.bus.reboot(servo.id)

    def unprepared(self) -> tuple[str, ...]:
        """Actuators whose servos get no commands until they are prepared."""
        return tuple(servo.name for servo in self._order if not servo.prepared)

    def statistics(self) -> dict[str, object]:
        """How the bus has done so far: counts, cycles per second, s."""
        counts = self.bus.statistics
        found = {**asdict(counts), "rate": counts.rate, "latency_mean": counts.latency_mean}
        found["alerts"] = {self._by_id[i].name if i in self._by_id else str(i): n for i, n in counts.alerts.items()}
        if self.board is not None:
            found["board"] = asdict(self.board.statistics)
        return found

    # -- cycles ------------------------------------------------------------------------------------------------------

    def read(self) -> tuple[Mapping[str, ServoReading], BusReading]:
        """Read every servo and every potentiometer once; raises BusError while the port is gone."""
        board = self.board
        asked = board is not None and board.ask()
        try:
            self._port_was_away |= self.bus.begin_cycle()
            if self._port_was_away:
                self._port_was_away, self._ask_all = False, True
                for servo in self._order:  # with the adapter, the supply may have been away
                    servo.unsure = servo.state_due = True
            self._read_groups()
        except BusError:
            for servo in self._order:
                servo.missed()
                servo.take_sensor(None)
            raise
        if board is not None:
            state = board.collect() if asked else None
            for servo in self._order:
                if servo.channel is not None:
                    known = state is not None and servo.channel < len(state.positions)
                    servo.take_sensor(float(state.positions[servo.channel]) if known and state is not None else None)
        return {servo.name: servo.reading for servo in self._order}, self.bus.end_cycle()

    def _read_groups(self) -> None:
        self._cycle += 1
        groups: dict[tuple[int, int, bool], list[int]] = {}
        silent: list[Servo] = []
        for place, servo in enumerate(self._order):
            if servo.age >= SILENT and not self._ask_all:
                silent.append(servo)
                continue
            with_state = servo.state_due or (self._cycle + place) % self.state_period == 0
            block = servo.state if with_state else servo.measured
            groups.setdefault((block.address, block.size, with_state), []).append(servo.id)
        self._ask_all = False
        for (address, size, with_state), ids in groups.items():
            answers = self.bus.read_group(ids, address, size)
            for servo_id in ids:
                self._take(self._by_id[servo_id], answers.get(servo_id), with_state=with_state)
        if silent:
            self._turn += 1
            asked = silent[self._turn % len(silent)]
            for servo in silent:
                status = None
                if servo is asked:
                    status = self.bus.read_one(servo.id, servo.state.address, servo.state.size, retry=False)
                    self._ask_all = status is not None  # where one is back, the others may be, too
                self._take(servo, status, with_state=True)

    def _take(self, servo: Servo, status: Status | None, *, with_state: bool) -> None:
        if status is None:
            servo.missed()
            servo.unsure = servo.unsure or servo.age >= SILENT
        else:
            servo.take(status, with_state=with_state)

    def write(self, commands: Mapping[str, ServoCommand]) -> None:
        """Send one command to every servo named; ceilings and torque only where they change.

        Raises:
            BusError: the port is gone, or a command that a servo cannot take; all others have been sent then.
        """
        self._port_was_away |= self.bus.open()
        problems: list[str] = []
        writes: Writes = {}
        for name, command in commands.items():
            servo = self._servo(name)
            try:
                self._collect(servo, command, writes)
            except BusError as problem:
                problems.append(f"{servo.label}: {problem}")
        for key in sorted(writes):
            _, address, size = key
            self.bus.write_group(address, size, writes[key])
        if problems:
            raise BusError(" ".join(problems))

    def _collect(self, servo: Servo, command: ServoCommand, writes: Writes) -> None:
        """What has to be written for one command."""
        if command.kind is Drive.TORQUE_OFF:
            if servo.torque is not Torque.OFF or servo.reading.torque_on is not False:
                _add(writes, TORQUE_STAGE, servo, servo.model.field("torque_enable"), b"\0")
                servo.torque, servo.state_due = Torque.OFF, True
            return
        if not servo.prepared or servo.unsure:
            return
        goal = servo.goal
        if servo.model.counts_turns:
            if command.kind is not Drive.POSITION:
                raise BusError(f"a {servo.model.name} is driven by positions here, not by {command.kind.value}.")
            data = goal.encode_bytes(command.position)
            profile = servo.model.fields["profile_velocity"]
            speed = max(abs(command.speed), profile.factor)  # zero would mean without limit
            changed = servo.changed(profile, speed)
            if changed is not None:
                _add(writes, CEILING_STAGE, servo, profile, changed)
            if "goal_current" in servo.model.fields:
                self._ceiling(servo, "goal_current", command.current, writes)
            else:
                self._ceiling(servo, "goal_pwm", command.torque_fraction, writes)
            if servo.torque is not Torque.ON:
                if servo.reading.position is None or servo.age > 0:
                    return  # nobody knows where torque would come on
                _add(writes, REST_STAGE, servo, goal, goal.encode_bytes(servo.reading.position))
            _add(writes, GOAL_STAGE, servo, goal, data)
        else:
            if command.kind is not Drive.VELOCITY:
                raise BusError(f"an {servo.model.name} is driven by speeds here, not by {command.kind.value}.")
            self._ceiling(servo, "torque_limit", command.torque_fraction, writes)
            _add(writes, REST_STAGE, servo, goal, goal.encode_nearest(command.speed).to_bytes(2, "little"))
        if servo.torque is not Torque.ON:
            _add(writes, TORQUE_STAGE, servo, servo.model.field("torque_enable"), b"\1")
            servo.torque, servo.state_due = Torque.ASKED, True

    @staticmethod
    def _ceiling(servo: Servo, name: str, value: float | None, writes: Writes) -> None:
        """A ceiling where it changes; not for an overloaded servo, whose ceiling must be set again on purpose."""
        if value is None or "overload" in servo.reading.errors:
            return
        register = servo.model.fields[name]
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


def _add(writes: Writes, stage: int, servo: Servo, field: Field, data: bytes) -> None:
    key = (stage, field.address, field.size)
    if key in writes:
        writes[key][servo.id] = data
    else:
        writes[key] = {servo.id: data}
