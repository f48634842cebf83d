"""Bytes of Dynamixel protocols 1.0 and 2.0, as the servos' side reads and writes them.

    1.0   FF FF id length instruction parameters checksum            checksum = ~(sum from id on), one byte
          FF FF id length error parameters checksum
    2.0   FF FF FD 00 id length length instruction parameters crc crc
          FF FF FD 00 id length length 55 error parameters crc crc   FF FF FD inside becomes FF FF FD FD

Written from ROBOTIS' descriptions of both protocols. The readers never fail on any bytes: what fits nothing is skipped
and counted, and a whole packet behind it is found.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from tensegrity_dynamics.errors import BusError, unknown_name

from ..bus.potentiometer_protocol import crc16

BROADCAST = 0xFE
LONGEST = {1: 253, 2: 1024}
"""Largest length field that a servo takes, by protocol: what claims more is no packet."""
_HEADERS = {1: b"\xff\xff", 2: b"\xff\xff\xfd\x00"}


class Instruction(IntEnum):
    """Instructions of both protocols."""

    PING = 0x01
    READ = 0x02
    WRITE = 0x03
    REG_WRITE = 0x04
    ACTION = 0x05
    FACTORY_RESET = 0x06
    REBOOT = 0x08
    CLEAR = 0x10
    STATUS = 0x55
    SYNC_READ = 0x82
    SYNC_WRITE = 0x83
    FAST_SYNC_READ = 0x8A
    BULK_READ = 0x92
    BULK_WRITE = 0x93


class ErrorBit(IntEnum):
    """Bits of the error byte of protocol 1.0."""

    VOLTAGE = 0x01
    ANGLE_LIMIT = 0x02
    OVERHEATING = 0x04
    RANGE = 0x08
    CHECKSUM = 0x10
    OVERLOAD = 0x20
    INSTRUCTION = 0x40


class ErrorNumber(IntEnum):
    """Numbers in the error byte of protocol 2.0; bit 7, ALERT, says that the hardware error register is not zero."""

    NONE = 0
    RESULT_FAIL = 1
    INSTRUCTION = 2
    CRC = 3
    DATA_RANGE = 4
    DATA_LENGTH = 5
    DATA_LIMIT = 6
    ACCESS = 7
    ALERT = 0x80


@dataclass(frozen=True)
class InstructionPacket:
    """One instruction as it arrived; `whole` is False where its checksum is wrong."""

    id: int
    instruction: int
    parameters: bytes = b""
    whole: bool = True


class InstructionReader(Protocol):
    """Finds instructions in a stream of bytes; `skipped` counts those that belong to none."""

    skipped: int

    def feed(self, data: bytes) -> list[InstructionPacket]:
        """Packets that are complete with these bytes."""

    def quiet(self) -> list[InstructionPacket]:
        """The line was quiet for long: what began last never ends; packets that it hid."""


def instruction_reader(protocol: int) -> InstructionReader:
    """A reader for protocol 1 or 2. Raises BusError for another."""
    if protocol not in _HEADERS:
        raise BusError(unknown_name("Dynamixel protocol", protocol, [str(each) for each in _HEADERS]))
    return _Reader(protocol)


class _Reader:
    def __init__(self, protocol: int) -> None:
        self.protocol, self.header = protocol, _HEADERS[protocol]
        self.skipped = 0
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[InstructionPacket]:
        self._buffer += data
        found: list[InstructionPacket] = []
        while True:
            self._skip_to_header()
            end = self._end()
            if end is None:
                return found
            if end == 0:
                self._drop(1)
                continue
            packet = _take_apart(self.protocol, bytes(self._buffer[:end]))
            # status packets of other servos pass by on the same wire, and an echo of ours
            if packet.whole:
                del self._buffer[:end]
                if not (self.protocol == 2 and packet.instruction == Instruction.STATUS):
                    found.append(packet)
            else:
                found.append(packet)
                self._drop(1)  # a whole packet may begin inside the damaged one

    def quiet(self) -> list[InstructionPacket]:
        found: list[InstructionPacket] = []
        while self._buffer:
            self._drop(1)
            found += self.feed(b"")
        return found

    def _drop(self, count: int) -> None:
        self.skipped += count
        del self._buffer[:count]

    def _skip_to_header(self) -> None:
        buffer, header = self._buffer, self.header
        place = buffer.find(header)
        if place < 0:
            place = len(buffer)
            for part in range(min(len(header) - 1, len(buffer)), 0, -1):
                if buffer.endswith(header[:part]):
                    place = len(buffer) - part
                    break
        self._drop(place)

    def _end(self) -> int | None:
        """Where the packet at the front ends; None: not known yet, or not there yet; 0: it is none."""
        buffer = self._buffer
        if self.protocol == 1:
            if len(buffer) < 4:
                return 0 if len(buffer) > 2 and buffer[2] == 0xFF else None
            if buffer[2] == 0xFF or not 2 <= buffer[3] <= LONGEST[1]:
                return 0
            end = 4 + buffer[3]
        else:
            if len(buffer) < 7:
                return None
            length = int.from_bytes(buffer[5:7], "little")
            if buffer[4] == 0xFF or not 3 <= length <= LONGEST[2]:
                return 0
            end = 7 + length
        return end if len(buffer) >= end else None


def _take_apart(protocol: int, data: bytes) -> InstructionPacket:
    if protocol == 1:
        return InstructionPacket(data[2], data[4], data[5:-1], checksum(data[2:-1]) == data[-1])
    whole = crc16(data[:-2]) == int.from_bytes(data[-2:], "little")
    body = unstuffed(data[7:-2])
    return InstructionPacket(data[4], body[0] if body else 0, body[1:], whole)


def checksum(data: bytes) -> int:
    """Of protocol 1.0, over everything from the id on."""
    return ~sum(data) & 0xFF


def stuffed(data: bytes) -> bytes:
    """With FD behind every FF FF FD, so that no header appears inside a packet."""
    return data.replace(b"\xff\xff\xfd", b"\xff\xff\xfd\xfd")


def unstuffed(data: bytes) -> bytes:
    """The reverse of `stuffed`."""
    return data.replace(b"\xff\xff\xfd\xfd", b"\xff\xff\xfd")


def encode_instruction(protocol: int, packet: InstructionPacket) -> bytes:
    """Bytes of an instruction, as a host sends it."""
    body = bytes((packet.instruction,)) + packet.parameters
    return _close(protocol, packet.id, body)


def encode_status(protocol: int, id_: int, error: int, parameters: bytes = b"") -> bytes:
    """Bytes of a status packet."""
    body = bytes((error,)) + parameters
    return _close(protocol, id_, body if protocol == 1 else bytes((Instruction.STATUS,)) + body)


def encode_fast_status(parts: list[bytes]) -> bytes:
    """The one status packet that answers a fast sync read.

    Args:
        parts: of every servo, in the order in which they were asked: error, id, data. Each is followed by the checksum
            over all before it; nothing is stuffed.
    """
    length = 1 + sum(len(part) + 2 for part in parts)
    packet = _HEADERS[2] + bytes((BROADCAST,)) + length.to_bytes(2, "little") + bytes((Instruction.STATUS,))
    for part in parts:
        packet += part
        packet += crc16(packet).to_bytes(2, "little")
    return packet


def _close(protocol: int, id_: int, body: bytes) -> bytes:
    if protocol == 1:
        packet = bytes((id_, len(body) + 1)) + body
        return _HEADERS[1] + packet + bytes((checksum(packet),))
    body = stuffed(body)
    packet = _HEADERS[2] + bytes((id_,)) + (len(body) + 2).to_bytes(2, "little") + body
    return packet + crc16(packet).to_bytes(2, "little")
