"""A bus of servos: registers by name with verification, groups of servos in cycles with a limit on repetitions.

A cycle reads blocks of registers of many servos and writes others. What does not come whole is asked for again, but
never more often than `retries` per cycle, so that a cycle has a longest duration. Outside of cycles, one register at a
time is read or written, `TRIES` times at most, and every write is read back. A port that is lost raises BusError, and
is opened again by itself at the next use.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

from tensegrity_dynamics.errors import BusError

from ..spools.readings import BusReading
from .control_tables import Field
from .dynamixel_protocol import ALERT, PacketError, ServoProtocol, Status
from .serial_port import SerialPort
from .statistics import BusStatistics, DoubledIds

TRIES = 3
"""Tries of an instruction outside of cycles."""
OVERDUE = 5
"""Cycles for which a missing answer may still come."""
REASONS = {PacketError.MISSING: "no answer", PacketError.DAMAGED: "damaged answers"}


class Bus:
    """All servos at one port.

    Args:
        port: open or not.
        protocol: 1 or 2.
        retries: instructions that a cycle may send again.
        fast: protocol 2: ask for groups with fast sync read, where all servos know it.
    """

    def __init__(self, port: SerialPort, protocol: int, *, retries: int = 3, fast: bool = False) -> None:
        if retries < 0:
            raise BusError(f"port {port.path}: {retries} retries per cycle; give zero or more.")
        self.port = port
        self.protocol = ServoProtocol(port, protocol)
        self.retries, self.fast = retries, fast and protocol == 2
        self.statistics = BusStatistics()
        self._doubled = DoubledIds()
        self._answered: set[int] = set()
        self._overdue: dict[int, int] = {}
        self._left = retries
        self._packets = self._bad = 0
        self._began: float | None = None
        self._was_open = port.is_open

    # -- port --------------------------------------------------------------------------------------------------------

    def open(self) -> bool:
        """Open the port if it is not; returns whether it was opened again after a loss. Raises BusError."""
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
        """Close the port; the servos stay as they are."""
        self.port.close()
        self._was_open = False

    # -- cycles ------------------------------------------------------------------------------------------------------

    def begin_cycle(self) -> bool:
        """Begin a cycle; returns whether the port had to be opened again. Raises BusError when it is gone."""
        now = time.monotonic()
        if self._began is not None:
            self.statistics.elapsed += now - self._began
        self._began = now
        self.statistics.cycles += 1
        self._left = self.retries
        self._packets = self._bad = 0
        return self.open()

    def end_cycle(self) -> BusReading:
        """How the cycle went."""
        return BusReading(True, self._packets, self._bad, self._doubled.end_cycle())

    def read_group(self, ids: Sequence[int], address: int, size: int) -> dict[int, Status]:
        """The same block of several servos; those whose answer is missing or damaged are left out."""
        if not ids:
            return {}
        if self.protocol.number == 1:
            return {servo: status for servo in ids if (status := self.read_one(servo, address, size)) is not None}
        answers: dict[int, Status] = {}
        if self.fast and len(ids) > 1:
            answers = self._ask_group(ids, address, size, fast=True)
            if not answers and self._may_retry():  # one silent servo spoils the packet of all
                answers = self._ask_group(ids, address, size, fast=False)
                self.statistics.recovered += len(answers)
        else:
            answers = self._ask_group(ids, address, size, fast=False)
        if len(answers) < len(ids):
            for servo in ids:
                if servo not in answers and self._may_retry():
                    again = self._ask(servo, address, size)
                    if isinstance(again, Status):
                        answers[servo] = again
                        self.statistics.recovered += 1
        return answers

    def read_one(self, servo: int, address: int, size: int, *, retry: bool = True) -> Status | None:
        """A block of one servo, or None where it does not answer whole."""
        status = self._ask(servo, address, size)
        if isinstance(status, Status):
            return status
        while retry and self._may_retry():
            status = self._ask(servo, address, size)
            if isinstance(status, Status):
                self.statistics.recovered += 1
                return status
        return None

    def write_group(self, address: int, size: int, values: Mapping[int, bytes]) -> None:
        """Write `size` bytes from an address on, of several servos, in one packet that nobody answers."""
        if not values:
            return
        try:
            self.protocol.order_group(address, size, values)
        except BusError:
            self._note_loss()
            raise
        if self.port.leftover:
            self._look_at_leftover()
        self._answered.clear()

    def _may_retry(self) -> bool:
        if self._left <= 0:
            return False
        self._left -= 1
        self.statistics.retries += 1
        return True

    def _ask(self, servo: int, address: int, size: int) -> Status | PacketError:
        """One exchange with one servo, counted."""
        statistics = self.statistics
        begin = time.monotonic()
        try:
            self.protocol.ask(servo, address, size)
            if self.port.leftover:
                self._look_at_leftover()
            status = self.protocol.receive_from(servo, size)
        except BusError:
            self._note_loss()
            raise
        self._packets += 1
        statistics.packets += 1
        self._answered.clear()
        if isinstance(status, Status) and len(status.data) == size:
            statistics.exchange(time.monotonic() - begin)
            self._answered.add(servo)
            self._doubled.answered(servo)
            if status.error:
                statistics.alerts[servo] += 1
            return status
        lack = (
            status if isinstance(status, PacketError) else PacketError.DAMAGED
        )  # a refused read has no registers in it
        self._bad += 1
        if lack is PacketError.MISSING:
            statistics.missing += 1
            self._overdue[servo] = statistics.cycles
        else:
            statistics.damaged += 1
            self._doubled.damaged(servo)
            self.port.settle()
        return lack

    def _ask_group(self, ids: Sequence[int], address: int, size: int, *, fast: bool) -> dict[int, Status]:
        """One exchange with a group, counted."""
        statistics = self.statistics
        begin = time.monotonic()
        twice: set[int] = set()
        damaged = 0
        try:
            self.protocol.ask_group(ids, address, size, fast=fast)
            if self.port.leftover:
                self._look_at_leftover()
            if fast:
                answers = self.protocol.receive_fast_group(ids, size)
            else:
                answers, twice, damaged = self.protocol.receive_group(ids, size)
        except BusError:
            self._note_loss()
            raise
        count, lack = len(ids), len(ids) - len(answers)
        self._packets += count
        statistics.packets += count
        if lack:
            self._bad += lack
            self._count_lacking([servo for servo in ids if servo not in answers], damaged)
        else:
            statistics.exchange(time.monotonic() - begin)
        self._answered = set(answers)
        for servo in twice:
            self._second_answer(servo)
        for servo, status in answers.items():
            self._doubled.answered(servo)
            if status.error:
                statistics.alerts[servo] += 1
        return answers

    def _count_lacking(self, ids: Sequence[int], damaged: int) -> None:
        """Servos of a group that lack; with as many damaged answers nobody can be said to have been silent."""
        if damaged >= len(ids):
            self.statistics.damaged += len(ids)
            for servo in ids:
                self._doubled.damaged(servo)
        else:
            self.statistics.missing += len(ids)
            self._overdue.update(dict.fromkeys(ids, self.statistics.cycles))

    def _look_at_leftover(self) -> None:
        """A second answer of a servo that had already answered in the exchange before."""
        leftover, self.port.leftover = self.port.leftover, b""
        if leftover and self._answered:
            for status in self.protocol.whole_packets(leftover):
                if status.id in self._answered:
                    self._second_answer(status.id)

    def _second_answer(self, servo: int) -> None:
        """One answer more than was asked for; after a missing one it may just be that one, late."""
        if self.statistics.cycles - self._overdue.get(servo, -OVERDUE) >= OVERDUE:
            self._doubled.second_answer(servo)

    def _note_loss(self) -> None:
        if not self.port.is_open:
            self.statistics.port_losses += 1

    # -- single instructions -----------------------------------------------------------------------------------------

    def ping(self, servo: int) -> list[Status]:
        """Every whole answer that a ping of one id brings within the time for it; more than one: a doubled id.

        Waits until that time is over. Raises BusError when the port is gone.
        """
        self.open()
        size = 0 if self.protocol.number == 1 else 3
        self.port.settle()
        self.protocol.call(servo)
        answers: list[Status] = []
        while True:
            status = self.protocol.receive()
            if isinstance(status, Status):
                if status.id == servo and len(status.data) == size:
                    answers.append(status)
            elif status is PacketError.MISSING or self.port.isPacketTimeout():
                return answers

    def answers(self, servo: int) -> bool:
        """Whether a servo answers a ping, tried several times."""
        self.open()
        for _ in range(TRIES):
            self.protocol.call(servo)
            if isinstance(self.protocol.receive_from(servo, 0 if self.protocol.number == 1 else 3), Status):
                return True
        return False

    def read_raw(self, servo: int, field: Field) -> int:
        """The raw value of one register of one servo.

        Raises:
            BusError: no answer, a refusal, or no port.
        """
        self.open()
        status: Status | PacketError = PacketError.MISSING
        for number in range(TRIES):
            self.protocol.ask(servo, field.address, field.size)
            status = self.protocol.receive_from(servo, field.size)
            if number or isinstance(status, PacketError):  # the answer to an earlier try may still be on its way
                self.port.settle(self.port.patience)
            if isinstance(status, Status) and len(status.data) == field.size:
                return int.from_bytes(status.data, "little")
        raise self._failure(servo, f"{field.name} could not be read", status)

    def read(self, servo: int, field: Field) -> float:
        """The value of one register of one servo, in the unit of the field; raises BusError as `read_raw` does."""
        return field.decode(self.read_raw(servo, field))

    def write(self, servo: int, field: Field, value: float, *, verify: bool = True) -> None:
        """Write one register of one servo and read it back.

        Raises:
            BusError: a register or a value that cannot be written, a refusal, no answer, or another value read back.
        """
        if not field.writable:
            raise BusError(f"servo {servo}: {field.name} can only be read.")
        raw = field.encode(value)
        self.open()
        status: Status | PacketError = PacketError.MISSING
        for _ in range(TRIES):
            self.protocol.order(servo, field.address, raw.to_bytes(field.size, "little"))
            status = self.protocol.receive_from(servo, 0)
            refused = isinstance(status, Status) and self.protocol.refusal(status)
            if refused:
                continue
            if not verify:
                return
            found = self.read_raw(servo, field)  # an answer to the write itself may be switched off
            if found == raw:
                return
            status = PacketError.MISSING if isinstance(status, Status) else status
        if isinstance(status, Status):
            raise self._failure(servo, f"{field.name} could not be set to {value:g}", status)
        raise BusError(
            f"servo {servo}: {field.name} was set to {value:g} but reads {self.read(servo, field):g}. It may be locked "
            "until the servo is switched off and on, or torque has to be off."
        )

    def ensure(self, servo: int, field: Field, value: float) -> bool:
        """Write a register only where it reads something else; returns whether it was written. Raises BusError."""
        if self.read_raw(servo, field) == field.encode(value):
            return False
        self.write(servo, field, value)
        return True

    def reboot(self, servo: int) -> None:
        """Restart one servo of protocol 2: it forgets its turns and everything that is not in EEPROM."""
        if self.protocol.number == 1:
            raise BusError(f"servo {servo}: protocol 1 knows no reboot; switch its supply off and on.")
        self.open()
        self.protocol.restart(servo)
        status = self.protocol.receive_from(servo, 0)
        if isinstance(status, PacketError):
            raise self._failure(servo, "did not take the reboot", status)

    def _failure(self, servo: int, what: str, status: Status | PacketError) -> BusError:
        if isinstance(status, PacketError):
            why = f"{REASONS[status]} in {TRIES} tries"
            remedy = "Check its plug, its id, the baud rate and the supply."
        else:
            why = self.protocol.refusal(status) or "it answered something else"
            remedy = "Check that its model is the one named, and clear its error."
        return BusError(f"servo {servo} at {self.port.path}: {what}: {why}. {remedy}")


def alerting(statuses: Iterable[Status]) -> set[int]:
    """Ids of protocol 2 whose answer says that they have an error of their own."""
    return {status.id for status in statuses if status.error & ALERT}
