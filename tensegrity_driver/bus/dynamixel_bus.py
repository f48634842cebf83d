"""A bus of servos: cyclic reading and writing of groups with bounded retries, single registers with verification.

A cycle reads blocks of registers of many servos and writes others. Answers that fail are requested again, at most
`retries` times per cycle, which bounds the duration of a cycle. Outside of cycles one register at a time is read or
written, with up to `MAX_TRIES` tries, and every write is read back. A lost port raises BusError and is opened again at
the next use.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from tensegrity_dynamics.errors import BusError

from .control_tables import Register
from .dynamixel_protocol import PacketError, ServoProtocol, Status
from .serial_port import SerialPort
from .statistics import BusReading, BusStatistics, DuplicateIdDetector

MAX_TRIES = 3
"""Tries of an instruction outside of cycles."""
LATE_ANSWER_CYCLES = 5
"""Cycles in which a missing answer may still arrive."""
FAILURES = {PacketError.TIMEOUT: "no answer", PacketError.CORRUPT: "damaged answers"}


class Bus:
    """All servos at one port.

    Args:
        port: open or not.
        protocol: 1 or 2.
        retries: largest number of repeated instructions per cycle. A higher number tolerates a worse line and lengthens
            the longest cycle.
        fast: protocol 2: read groups by fast sync read, which all servos must support.

    Raises:
        BusError: negative retries, or another protocol. The methods raise it when the port is lost.
    """

    def __init__(self, port: SerialPort, protocol: int, *, retries: int = 3, fast: bool = False) -> None:
        if retries < 0:
            raise BusError(f"port {port.path}: {retries} retries per cycle; give zero or more.")
        self.port = port
        self.protocol = ServoProtocol(port, protocol)
        self.retries, self.fast = retries, fast and protocol == 2
        self.statistics = BusStatistics()
        self._duplicates = DuplicateIdDetector()
        self._answered: set[int] = set()
        self._overdue: dict[int, int] = {}
        self._retries_left = retries
        self._packets = self._bad_packets = 0
        self._cycle_start: float | None = None
        self._was_open = port.is_open

    # -- port --------------------------------------------------------------------------------------------------------

    def open(self) -> bool:
        """Open the port if it is closed; returns whether it was opened again after a loss. Raises BusError."""
        if self.port.is_open:
            self._was_open = True
            return False
        again = self._was_open
        self.port.open()
        self._was_open = True
        self.statistics.reopenings += again
        self._answered.clear()
        return again

    def close(self) -> None:
        """Close the port; the servos keep the last command."""
        self.port.close()
        self._was_open = False

    # -- cycles ------------------------------------------------------------------------------------------------------

    def begin_cycle(self) -> bool:
        """Begin a cycle; returns whether the port had to be opened again. Raises BusError if it does not exist any
        more."""
        now = time.monotonic()
        if self._cycle_start is not None:
            self.statistics.elapsed += now - self._cycle_start
        self._cycle_start = now
        self.statistics.cycles += 1
        self._retries_left = self.retries
        self._packets = self._bad_packets = 0
        return self.open()

    def end_cycle(self) -> BusReading:
        """End a cycle; returns its packet counts and the ids that appear to be duplicate."""
        return BusReading(True, self._packets, self._bad_packets, self._duplicates.end_cycle())

    def sync_read(self, ids: Sequence[int], address: int, size: int) -> dict[int, Status]:
        """Read the same block of several servos; ids without a valid answer are absent.

        Protocol 1 has no sync read: its servos are read one after the other.
        """
        if not ids:
            return {}
        if self.protocol.number == 1:
            return {servo: status for servo in ids if (status := self.read_block(servo, address, size)) is not None}
        answers: dict[int, Status] = {}
        if self.fast and len(ids) > 1:
            answers = self._exchange_group(ids, address, size, fast=True)
            if not answers and self._may_retry():  # one silent servo corrupts the common packet
                answers = self._exchange_group(ids, address, size, fast=False)
                self.statistics.recovered += len(answers)
        else:
            answers = self._exchange_group(ids, address, size, fast=False)
        if len(answers) < len(ids):
            for servo in ids:
                if servo not in answers and self._may_retry():
                    again = self._exchange(servo, address, size)
                    if isinstance(again, Status):
                        answers[servo] = again
                        self.statistics.recovered += 1
        return answers

    def read_block(self, servo: int, address: int, size: int, *, retry: bool = True) -> Status | None:
        """Read a block of one servo within the retries of the cycle; None without a valid answer."""
        status = self._exchange(servo, address, size)
        if isinstance(status, Status):
            return status
        while retry and self._may_retry():
            status = self._exchange(servo, address, size)
            if isinstance(status, Status):
                self.statistics.recovered += 1
                return status
        return None

    def sync_write(self, address: int, size: int, values: Mapping[int, bytes]) -> None:
        """Write `size` bytes, starting at an address, to several servos in one packet, which is not answered."""
        if not values:
            return
        try:
            self.protocol.sync_write(address, size, values)
        except BusError:
            self._count_loss()
            raise
        if self.port.leftover:
            self._examine_leftover()
        self._answered.clear()

    def write_block(self, servo: int, address: int, data: bytes) -> bool:
        """Write registers of one servo in a cycle, without retry; returns whether the servo confirmed it."""
        try:
            status = self.protocol.write(servo, address, data)
        except BusError:
            self._count_loss()
            raise
        self._answered.clear()
        if isinstance(status, Status):
            return self.protocol.rejection(status) is None
        self.port.drain()
        return False

    def _may_retry(self) -> bool:
        if self._retries_left <= 0:
            return False
        self._retries_left -= 1
        self.statistics.retries += 1
        return True

    def _exchange(self, servo: int, address: int, size: int) -> Status | PacketError:
        """One counted read of one servo."""
        statistics = self.statistics
        begin = time.monotonic()
        try:
            status = self.protocol.read(servo, address, size)
        except BusError:
            self._count_loss()
            raise
        end = time.monotonic()
        if self.port.leftover:
            self._examine_leftover()
        self._packets += 1
        statistics.packets += 1
        self._answered.clear()
        if isinstance(status, Status) and len(status.data) == size:
            statistics.exchange(end - begin)
            self._answered.add(servo)
            self._duplicates.answered(servo)
            if status.error:
                statistics.alerts[servo] += 1
            return status
        # a rejected read carries no registers
        error = status if isinstance(status, PacketError) else PacketError.CORRUPT
        self._bad_packets += 1
        if error is PacketError.TIMEOUT:
            statistics.missing += 1
            self._overdue[servo] = statistics.cycles
        else:
            statistics.damaged += 1
            self._duplicates.damaged(servo)
            self.port.drain()
        return error

    def _exchange_group(self, ids: Sequence[int], address: int, size: int, *, fast: bool) -> dict[int, Status]:
        """One counted read of a group."""
        statistics = self.statistics
        begin = time.monotonic()
        repeated: set[int] = set()
        corrupt = 0
        try:
            if fast:
                answers = self.protocol.fast_sync_read(ids, address, size)
            else:
                answers, repeated, corrupt = self.protocol.sync_read(ids, address, size)
        except BusError:
            self._count_loss()
            raise
        end = time.monotonic()
        if self.port.leftover:
            self._examine_leftover()
        count, failed = len(ids), len(ids) - len(answers)
        self._packets += count
        statistics.packets += count
        if failed:
            self._bad_packets += failed
            self._count_failed([servo for servo in ids if servo not in answers], corrupt)
        else:
            statistics.exchange(end - begin)
        self._answered = set(answers)
        for servo in repeated:
            self._count_second_answer(servo)
        for servo, status in answers.items():
            self._duplicates.answered(servo)
            if status.error:
                statistics.alerts[servo] += 1
        return answers

    def _count_failed(self, ids: Sequence[int], corrupt: int) -> None:
        """Count servos of a group without valid answer; with as many corrupt packets none is counted as silent."""
        if corrupt >= len(ids):
            self.statistics.damaged += len(ids)
            for servo in ids:
                self._duplicates.damaged(servo)
        else:
            self.statistics.missing += len(ids)
            self._overdue.update(dict.fromkeys(ids, self.statistics.cycles))

    def _examine_leftover(self) -> None:
        """Count second answers of servos that had already answered in the exchange before."""
        leftover, self.port.leftover = self.port.leftover, b""
        if leftover and self._answered:
            for status in self.protocol.decode(leftover):
                if status.id in self._answered:
                    self._count_second_answer(status.id)

    def _count_second_answer(self, servo: int) -> None:
        """Count an answer without request; shortly after a missing answer it may be that answer, delayed."""
        if self.statistics.cycles - self._overdue.get(servo, -LATE_ANSWER_CYCLES) >= LATE_ANSWER_CYCLES:
            self._duplicates.second_answer(servo)

    def _count_loss(self) -> None:
        if not self.port.is_open:
            self.statistics.port_losses += 1

    # -- single instructions -----------------------------------------------------------------------------------------

    def ping(self, servo: int) -> list[Status]:
        """Ping one id and collect answers until the timeout; more than one answer means a duplicate id."""
        self.open()
        size = 0 if self.protocol.number == 1 else 3
        self.port.drain()
        answers, _ = self.protocol.ping_all_answers(servo)
        return [status for status in answers if len(status.data) == size]

    def responds(self, servo: int) -> bool:
        """Whether a servo answers one of several pings."""
        self.open()
        return any(isinstance(self.protocol.ping(servo), Status) for _ in range(MAX_TRIES))

    def read_raw(self, servo: int, register: Register) -> int:
        """Read the raw value of one register of one servo.

        Raises:
            BusError: no answer, a rejected instruction, or no port.
        """
        self.open()
        status: Status | PacketError = PacketError.TIMEOUT
        for number in range(MAX_TRIES):
            status = self.protocol.read(servo, register.address, register.size)
            if number or isinstance(status, PacketError):  # the answer to an earlier try may still arrive
                self.port.drain(self.port.patience)
            if isinstance(status, Status) and len(status.data) == register.size:
                return int.from_bytes(status.data, "little")
        raise self._failure(servo, f"{register.name} could not be read", status)

    def read(self, servo: int, register: Register) -> float:
        """Read one register of one servo, in the unit of the register; raises BusError as `read_raw` does."""
        return register.decode(self.read_raw(servo, register))

    def write(self, servo: int, register: Register, value: float, *, verify: bool = True) -> None:
        """Write one register of one servo and read it back.

        Args:
            value: in the unit of the register. verify: read back; False for a register that changes the id or speed.

        Raises:
            BusError: a register or value that cannot be written, a rejected instruction, no answer, or another value
                read back.
        """
        if not register.writable:
            raise BusError(f"servo {servo}: {register.name} can only be read.")
        raw = register.encode(value)
        self.open()
        status: Status | PacketError = PacketError.TIMEOUT
        for _ in range(MAX_TRIES):
            status = self.protocol.write(servo, register.address, raw.to_bytes(register.size, "little"))
            if isinstance(status, Status) and self.protocol.rejection(status):
                continue
            if not verify:
                return
            if self.read_raw(servo, register) == raw:  # the answer to the write itself may be switched off
                return
            status = PacketError.TIMEOUT if isinstance(status, Status) else status
        if isinstance(status, Status):
            raise self._failure(servo, f"{register.name} could not be set to {value:g}", status)
        raise BusError(
            f"servo {servo}: {register.name} was set to {value:g} but reads {self.read(servo, register):g}. It may be "
            "locked until the servo is switched off and on, or torque has to be off."
        )

    def write_if_changed(self, servo: int, register: Register, value: float) -> bool:
        """Write a register only if it reads another value; returns whether it was written. Raises BusError."""
        if self.read_raw(servo, register) == register.encode(value):
            return False
        self.write(servo, register, value)
        return True

    def reboot(self, servo: int) -> None:
        """Reboot one servo of protocol 2, which loses its turn count and all registers outside EEPROM.

        Raises:
            BusError: protocol 1, or no answer.
        """
        if self.protocol.number == 1:
            raise BusError(f"servo {servo}: protocol 1 knows no reboot; switch its supply off and on.")
        self.open()
        status = self.protocol.reboot(servo)
        if isinstance(status, PacketError):
            raise self._failure(servo, "did not take the reboot", status)

    def _failure(self, servo: int, what: str, status: Status | PacketError) -> BusError:
        if isinstance(status, PacketError):
            why = f"{FAILURES[status]} in {MAX_TRIES} tries"
            remedy = "Check its plug, its id, the baud rate and the supply."
        else:
            why = self.protocol.rejection(status) or "it answered something else"
            remedy = "Check that its model is the one named, and clear its error."
        return BusError(f"servo {servo} at {self.port.path}: {what}: {why}. {remedy}")
