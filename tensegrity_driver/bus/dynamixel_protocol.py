"""Packets of both Dynamixel protocols, made and checked by `dynamixel_sdk`; what it lets pass is checked here again.

The library finds packets in the stream and verifies their checksums. It neither says whether an answer has the length
that was asked for nor stops before an answer of another servo; `receive` returns every whole packet, and the caller
takes only the one that it waits for. An instruction and what comes back make one exchange; no exchange waits longer
than its port's timeout.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from dynamixel_sdk import robotis_def as sdk
from dynamixel_sdk.protocol1_packet_handler import Protocol1PacketHandler
from dynamixel_sdk.protocol2_packet_handler import Protocol2PacketHandler

from tensegrity_dynamics.errors import BusError

from .serial_port import SerialPort

BROADCAST = 0xFE
ALERT = 0x80
"""Protocol 2: the servo has an error of its own, to be read from `hardware_error`."""
INSTRUCTION_ERRORS = {
    1: "it failed to process the instruction",
    2: "it does not know the instruction",
    3: "the instruction arrived damaged",
    4: "the value is out of range",
    5: "the value has the wrong length",
    6: "the value is beyond a limit",
    7: "the register cannot be read or written now",
}
"""Protocol 2: what a servo says of the instruction it got."""
REFUSALS_1 = {3: "the value is out of range", 4: "the instruction arrived damaged", 6: "it does not know it"}
"""Protocol 1: the same, by error bit; the other bits are about the servo."""
STUFFED = b"\xff\xff\xfd\xfd"
"""Protocol 2: how a header looks where it is no header."""
MOST_ANSWERS = 1024
"""Packets after which an exchange ends, whatever still comes."""


class PacketError(Enum):
    """Why there is no packet."""

    MISSING = "missing"
    DAMAGED = "damaged"


class Status(NamedTuple):
    """What one servo answered: its id, its error byte, and the registers or whatever else it sends."""

    id: int
    error: int
    data: bytes


class _QuickHandler(Protocol2PacketHandler):
    """The library's handler, which looks at every byte of every answer for stuffing that hardly ever is there."""

    def removeStuffing(self, packet: list[int]) -> list[int]:
        return super().removeStuffing(packet) if STUFFED in bytes(packet) else packet


class ServoProtocol:
    """One of the two protocols over one port.

    Args:
        port: open or not.
        number: 1 or 2.
    """

    def __init__(self, port: SerialPort, number: int) -> None:
        if number not in (1, 2):
            raise BusError(f"There is no Dynamixel protocol {number}; use 1 or 2.")
        self.port, self.number = port, number
        self._one = Protocol1PacketHandler()
        self._two = _QuickHandler()
        self._handler: Protocol1PacketHandler | Protocol2PacketHandler = self._one if number == 1 else self._two

    # -- sending -----------------------------------------------------------------------------------------------------

    def ask(self, servo: int, address: int, size: int) -> None:
        """Ask one servo for a block of registers."""
        self._check(self._handler.readTx(self.port, servo, address, size), "read")

    def ask_group(self, ids: Sequence[int], address: int, size: int, *, fast: bool = False) -> None:
        """Ask several servos for the same block; protocol 2 alone can."""
        if self.number == 1:
            raise BusError("protocol 1 cannot read from several servos at once; read them one by one.")
        self._check(self._two.syncReadTx(self.port, address, size, list(ids), len(ids), fast), "sync read")

    def order(self, servo: int, address: int, data: bytes) -> None:
        """Write registers of one servo; its answer, if it gives one, is received afterwards."""
        self._check(self._handler.writeTxOnly(self.port, servo, address, len(data), list(data)), "write")
        self.expect(0)

    def order_group(self, address: int, size: int, values: Mapping[int, bytes]) -> None:
        """Write the same registers of several servos, without an answer."""
        parameters: list[int] = []
        for servo, data in values.items():
            parameters.append(servo)
            parameters += data
        self._check(
            self._handler.syncWriteTxOnly(self.port, address, size, parameters, len(parameters)),
            "sync write",
        )

    def call(self, servo: int) -> None:
        """Ping one servo, or all of them with `BROADCAST` (protocol 2)."""
        self._instruct(servo, sdk.INST_PING)
        self.expect(0 if self.number == 1 else 3)

    def restart(self, servo: int) -> None:
        """Reboot one servo of protocol 2; its answer is received afterwards."""
        self._instruct(servo, sdk.INST_REBOOT)
        self.expect(0)

    def _instruct(self, servo: int, instruction: int) -> None:
        if self.number == 1:
            packet = [0, 0, servo, 2, instruction, 0]
        else:
            packet = [0, 0, 0, 0, servo, 3, 0, instruction, 0, 0]
        self._check(self._handler.txPacket(self.port, packet), "instruction")
        self.port.is_using = False

    def expect(self, size: int, count: int = 1) -> None:
        """Begin to wait for `count` answers with `size` bytes each."""
        self.port.setPacketTimeout(count * (size + (6 if self.number == 1 else 11)))

    def _check(self, result: int, what: str) -> None:
        self.port.is_using = False
        if result != sdk.COMM_SUCCESS:
            raise BusError(
                f"port {self.port.path}: a {what} packet could not be sent ({self._handler.getTxRxResult(result)}). "
                "Send fewer or smaller values, or open the port again."
            )

    # -- receiving ---------------------------------------------------------------------------------------------------

    def receive(self) -> Status | PacketError:
        """The next whole packet within the time of the exchange, or why there is none."""
        if self.number == 1:
            packet, result = self._one.rxPacket(self.port)
            if result == sdk.COMM_SUCCESS and bytes(packet) == self.port.sent_last:
                # an adapter that returns what it sends: in this protocol an instruction looks like an answer
                packet, result = self._one.rxPacket(self.port)
            if result == sdk.COMM_SUCCESS:
                length = packet[3]
                if length >= 2:
                    return Status(packet[2], packet[4], bytes(packet[5 : 3 + length]))
                return PacketError.DAMAGED
        else:
            packet, result = self._two.rxPacket(self.port, False)
            if result == sdk.COMM_SUCCESS:
                length = packet[5] | packet[6] << 8
                if length >= 4:
                    return Status(packet[4], packet[8], bytes(packet[9 : 5 + length]))
                return PacketError.DAMAGED
        return PacketError.MISSING if result == sdk.COMM_RX_TIMEOUT else PacketError.DAMAGED

    def receive_from(self, servo: int, size: int) -> Status | PacketError:
        """The answer of one servo with `size` bytes; packets of others and of other lengths pass by.

        A servo that refuses answers without its bytes; that answer is returned, too.
        """
        lack = PacketError.MISSING
        for _ in range(MOST_ANSWERS):
            status = self.receive()
            if isinstance(status, PacketError):
                return lack if status is PacketError.MISSING else status
            if status.id == servo and (len(status.data) == size or (not status.data and self.refusal(status))):
                return status
            lack = PacketError.DAMAGED  # something came, but not what was asked for
        return lack

    def receive_group(self, ids: Iterable[int], size: int) -> tuple[dict[int, Status], set[int], int]:
        """Answers of a group with `size` bytes each, the ids that answered twice, and how many answers were damaged.

        Ends when all have answered, or when the time is over.
        """
        wanted = set(ids)
        answers: dict[int, Status] = {}
        twice: set[int] = set()
        damaged = 0
        for _ in range(MOST_ANSWERS):
            if len(answers) == len(wanted):
                break
            status = self.receive()
            if status is PacketError.MISSING:
                break
            if isinstance(status, PacketError):
                damaged += 1
                if self.port.isPacketTimeout():
                    break
                continue
            if status.id in wanted and len(status.data) == size:
                if status.id in answers:
                    twice.add(status.id)
                answers[status.id] = status
        return answers, twice, damaged

    def receive_fast_group(self, ids: Sequence[int], size: int) -> dict[int, Status]:
        """Answers of a group asked with `fast`: one packet for all, or nothing where anything in it is wrong."""
        packet, result = self._two.rxPacket(self.port, True)
        part = size + 4  # error byte, id, registers, checksum so far
        if result != sdk.COMM_SUCCESS or packet[4] != BROADCAST:
            return {}
        if packet[5] | packet[6] << 8 != 1 + part * len(ids):
            return {}
        answers: dict[int, Status] = {}
        for place, servo in enumerate(ids):
            start = 8 + place * part
            if packet[start + 1] != servo:
                return {}
            answers[servo] = Status(servo, packet[start], bytes(packet[start + 2 : start + 2 + size]))
        return answers

    def refusal(self, status: Status) -> str | None:
        """What a servo has against the instruction it answers, in words, or None."""
        if self.number == 1:
            for bit, words in REFUSALS_1.items():
                if status.error >> bit & 1:
                    return words
            return None
        number = status.error & ~ALERT
        return INSTRUCTION_ERRORS.get(number, f"error {number}") if number else None

    def whole_packets(self, data: bytes) -> list[Status]:
        """Whole packets in bytes that were left over."""
        if len(data) < (6 if self.number == 1 else 11):
            return []
        port, self.port = self.port, _Leftover(data)
        found: list[Status] = []
        try:
            while not self.port.isPacketTimeout():
                status = self.receive()
                if not isinstance(status, PacketError):
                    found.append(status)
        finally:
            self.port = port
        return found


class _Leftover(SerialPort):
    """Bytes that have come already, in place of a port."""

    # ruff: noqa: N802 (the library gives the names)

    def __init__(self, data: bytes) -> None:
        super().__init__("leftover bytes", patience=0.0)
        self._data = data

    def readPort(self, length: int) -> bytes:
        data, self._data = self._data[: max(length, 0)], self._data[max(length, 0) :]
        return data

    def isPacketTimeout(self) -> bool:
        return not self._data
