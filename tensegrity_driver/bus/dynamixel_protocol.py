"""Packets of both Dynamixel protocols, encoded and checked by `dynamixel_sdk`, with additional checks.

The library finds packets in the byte stream and verifies their checksums. It neither compares the length of a status
packet with the request nor rejects a packet of another servo; both are done here. Every method is one exchange, i.e. an
instruction and its status packets, and waits no longer than the timeout of its port.
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
"""Id that addresses all servos."""
ALERT = 0x80
"""Protocol 2: bit of the error byte for a hardware error of the servo, see register `hardware_error`."""
INSTRUCTION_ERRORS = {
    1: "it failed to process the instruction",
    2: "it does not know the instruction",
    3: "the instruction arrived damaged",
    4: "the value is out of range",
    5: "the value has the wrong length",
    6: "the value is beyond a limit",
    7: "the register cannot be read or written now",
}
"""Protocol 2: error numbers of a rejected instruction."""
INSTRUCTION_ERROR_BITS_1 = {
    3: "the value is out of range",
    4: "the instruction arrived damaged",
    6: "it does not know it",
}
"""Protocol 1: error bits of a rejected instruction; the other bits concern the servo."""
STUFFED_HEADER = b"\xff\xff\xfd\xfd"
"""Protocol 2: a header inside a packet after byte stuffing."""
MAX_PACKETS = 1024
"""Largest number of packets of an exchange; later packets are ignored."""
PING_SLOT_S = 3e-3
"""Time slot of one id for its answer to a broadcast ping [s], as in the library of the manufacturer."""
_PING_SIZE = {1: 0, 2: 3}
"""Bytes of a status packet that answers a ping, by protocol."""


class PacketError(Enum):
    """Reason why no valid packet was received."""

    TIMEOUT = "timeout"
    CORRUPT = "corrupt"


class Status(NamedTuple):
    """Status packet of one servo: its id, its error byte, and register contents or other parameters."""

    id: int
    error: int
    data: bytes


class _QuickHandler(Protocol2PacketHandler):
    """Handler of the library, without its bytewise search for stuffing in packets that contain none."""

    def removeStuffing(self, packet: list[int]) -> list[int]:
        return super().removeStuffing(packet) if STUFFED_HEADER in bytes(packet) else packet


class ServoProtocol:
    """One of the two protocols over one port.

    Args:
        port: open or not.
        number: 1 or 2.

    Raises:
        BusError: another number. The methods raise it when the port is lost.
    """

    def __init__(self, port: SerialPort, number: int) -> None:
        if number not in (1, 2):
            raise BusError(f"There is no Dynamixel protocol {number}; use 1 or 2.")
        self.port, self.number = port, number
        self._one = Protocol1PacketHandler()
        self._two = _QuickHandler()
        self._handler: Protocol1PacketHandler | Protocol2PacketHandler = self._one if number == 1 else self._two

    # -- exchanges ---------------------------------------------------------------------------------------------------

    def read(self, servo: int, address: int, size: int) -> Status | PacketError:
        """Read a block of `size` bytes of registers from one servo."""
        self._check(self._handler.readTx(self.port, servo, address, size), "read")
        return self.receive_status(servo, size)

    def write(self, servo: int, address: int, data: bytes) -> Status | PacketError:
        """Write registers of one servo; with a low status return level it does not answer, which gives a TIMEOUT."""
        self._check(self._handler.writeTxOnly(self.port, servo, address, len(data), list(data)), "write")
        self._start_timeout(0)
        return self.receive_status(servo, 0)

    def sync_read(self, ids: Sequence[int], address: int, size: int) -> tuple[dict[int, Status], set[int], int]:
        """Read the same block from several servos (protocol 2); returns the values of `receive_group`."""
        self._send_sync_read(ids, address, size, fast=False)
        return self.receive_group(ids, size)

    def fast_sync_read(self, ids: Sequence[int], address: int, size: int) -> dict[int, Status]:
        """Read the same block from several servos in one common status packet (protocol 2); empty if any part fails."""
        self._send_sync_read(ids, address, size, fast=True)
        return self._receive_fast_group(ids, size)

    def sync_write(self, address: int, size: int, values: Mapping[int, bytes]) -> None:
        """Write the same registers of several servos, by id; there is no status packet."""
        parameters: list[int] = []
        for servo, data in values.items():
            parameters.append(servo)
            parameters += data
        self._check(
            self._handler.syncWriteTxOnly(self.port, address, size, parameters, len(parameters)),
            "sync write",
        )

    def ping(self, servo: int) -> Status | PacketError:
        """Ping one servo; returns the first answer."""
        self._send_instruction(servo, sdk.INST_PING, _PING_SIZE[self.number])
        return self.receive_status(servo, _PING_SIZE[self.number])

    def ping_all_answers(self, servo: int) -> tuple[list[Status], bool]:
        """Ping one id and wait until the timeout.

        Returns:
            All status packets with this id, more than one for a duplicate id, and whether corrupt packets arrived as
            well.
        """
        self._send_instruction(servo, sdk.INST_PING, _PING_SIZE[self.number])
        answers: list[Status] = []
        corrupt = False
        while True:
            status = self.receive()
            if isinstance(status, Status):
                if status.id == servo:
                    answers.append(status)
                continue
            corrupt = corrupt or status is PacketError.CORRUPT
            if status is PacketError.TIMEOUT or self.port.isPacketTimeout():
                return answers, corrupt

    def broadcast_ping(self, highest_id: int) -> set[int] | None:
        """Ping all servos at once (protocol 2); returns the ids that answer, or None if packets were corrupt.

        Args:
            highest_id: highest id whose answer is waited for.
        """
        self._send_instruction(BROADCAST, sdk.INST_PING, _PING_SIZE[self.number])
        wire_time_ms = 14 * (highest_id + 1) * self.port.tx_time_per_byte
        self.port.setPacketTimeoutMillis(wire_time_ms + 1e3 * (PING_SLOT_S * (highest_id + 1) + self.port.patience))
        ids: set[int] = set()
        while True:
            status = self.receive()
            if isinstance(status, Status):
                ids.add(status.id)
            elif status is PacketError.CORRUPT:
                if not self.port.isPacketTimeout():
                    self.port.drain()
                return None
            else:
                return ids

    def reboot(self, servo: int) -> Status | PacketError:
        """Reboot one servo of protocol 2."""
        self._send_instruction(servo, sdk.INST_REBOOT, 0)
        return self.receive_status(servo, 0)

    # -- sending -----------------------------------------------------------------------------------------------------

    def _send_sync_read(self, ids: Sequence[int], address: int, size: int, *, fast: bool) -> None:
        if self.number == 1:
            raise BusError("protocol 1 cannot read from several servos at once; read them one by one.")
        self._check(self._two.syncReadTx(self.port, address, size, list(ids), len(ids), fast), "sync read")

    def _send_instruction(self, servo: int, instruction: int, answer_size: int) -> None:
        if self.number == 1:
            packet = [0, 0, servo, 2, instruction, 0]
        else:
            packet = [0, 0, 0, 0, servo, 3, 0, instruction, 0, 0]
        self._check(self._handler.txPacket(self.port, packet), "instruction")
        self._start_timeout(answer_size)

    def _start_timeout(self, size: int) -> None:
        """Start the timeout for one status packet with `size` parameters."""
        self.port.setPacketTimeout(size + (6 if self.number == 1 else 11))

    def _check(self, result: int, what: str) -> None:
        self.port.is_using = False
        if result != sdk.COMM_SUCCESS:
            raise BusError(
                f"port {self.port.path}: a {what} packet could not be sent ({self._handler.getTxRxResult(result)}). "
                "Send fewer or smaller values, or open the port again."
            )

    # -- receiving ---------------------------------------------------------------------------------------------------

    def receive(self) -> Status | PacketError:
        """Next valid packet before the timeout of the exchange."""
        if self.number == 1:
            packet, result = self._one.rxPacket(self.port)
            if result == sdk.COMM_SUCCESS and bytes(packet) == self.port.sent_last:
                # echo of the adapter: in this protocol an instruction has the form of a status packet
                packet, result = self._one.rxPacket(self.port)
            if result == sdk.COMM_SUCCESS:
                length = packet[3]
                if length >= 2:
                    return Status(packet[2], packet[4], bytes(packet[5 : 3 + length]))
                return PacketError.CORRUPT
        else:
            packet, result = self._two.rxPacket(self.port, False)
            if result == sdk.COMM_SUCCESS:
                length = packet[5] | packet[6] << 8
                if length >= 4:
                    return Status(packet[4], packet[8], bytes(packet[9 : 5 + length]))
                return PacketError.CORRUPT
        return PacketError.TIMEOUT if result == sdk.COMM_RX_TIMEOUT else PacketError.CORRUPT

    def receive_status(self, servo: int, size: int) -> Status | PacketError:
        """Status packet of one servo with `size` bytes of parameters; other packets are skipped.

        A servo that rejects the instruction answers without parameters; that packet is returned, too.
        """
        error = PacketError.TIMEOUT
        for _ in range(MAX_PACKETS):
            status = self.receive()
            if isinstance(status, PacketError):
                return error if status is PacketError.TIMEOUT else status
            if status.id == servo and (len(status.data) == size or (not status.data and self.rejection(status))):
                return status
            error = PacketError.CORRUPT  # a packet arrived, but not the requested one
        return error

    def receive_group(self, ids: Iterable[int], size: int) -> tuple[dict[int, Status], set[int], int]:
        """Status packets of a group, each with `size` bytes of parameters, until all have arrived or the timeout.

        Returns:
            Status packets by id, ids that answered twice, number of corrupt packets.
        """
        expected = set(ids)
        answers: dict[int, Status] = {}
        repeated: set[int] = set()
        corrupt = 0
        for _ in range(MAX_PACKETS):
            if len(answers) == len(expected):
                break
            status = self.receive()
            if status is PacketError.TIMEOUT:
                break
            if isinstance(status, PacketError):
                corrupt += 1
                if self.port.isPacketTimeout():
                    break
                continue
            if status.id in expected and len(status.data) == size:
                if status.id in answers:
                    repeated.add(status.id)
                answers[status.id] = status
        return answers, repeated, corrupt

    def _receive_fast_group(self, ids: Sequence[int], size: int) -> dict[int, Status]:
        packet, result = self._two.rxPacket(self.port, True)
        part = size + 4  # error byte, id, registers, checksum so far
        if result != sdk.COMM_SUCCESS or packet[4] != BROADCAST:
            return {}
        if packet[5] | packet[6] << 8 != 1 + part * len(ids):
            return {}
        answers: dict[int, Status] = {}
        for index, servo in enumerate(ids):
            start = 8 + index * part
            if packet[start + 1] != servo:
                return {}
            answers[servo] = Status(servo, packet[start], bytes(packet[start + 2 : start + 2 + size]))
        return answers

    def rejection(self, status: Status) -> str | None:
        """Reason why a servo rejected the instruction that it answers, or None for an accepted one."""
        if self.number == 1:
            for bit, text in INSTRUCTION_ERROR_BITS_1.items():
                if status.error >> bit & 1:
                    return text
            return None
        number = status.error & ~ALERT
        return INSTRUCTION_ERRORS.get(number, f"error {number}") if number else None

    def decode(self, data: bytes) -> list[Status]:
        """Valid packets in bytes that were left unread."""
        if len(data) < (6 if self.number == 1 else 11):
            return []
        port, self.port = self.port, _UnreadBytes(data)
        packets: list[Status] = []
        try:
            while not self.port.isPacketTimeout():
                status = self.receive()
                if not isinstance(status, PacketError):
                    packets.append(status)
        finally:
            self.port = port
        return packets


class _UnreadBytes(SerialPort):
    """Port substitute that supplies bytes received before."""

    # ruff: noqa: N802 (names of the library)

    def __init__(self, data: bytes) -> None:
        super().__init__("leftover bytes", patience=0.0)
        self._data = data

    def readPort(self, length: int) -> bytes:
        data, self._data = self._data[: max(length, 0)], self._data[max(length, 0) :]
        return data

    def isPacketTimeout(self) -> bool:
        return not self._data
