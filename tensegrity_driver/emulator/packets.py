"""Packets of Dynamixel protocols 1.0 and 2.0 on the side of the servos.

    1.0   FF FF id length instruction parameters checksum            checksum = ~(sum from id on), one byte
          FF FF id length error parameters checksum
    2.0   FF FF FD 00 id length length instruction parameters crc crc
          FF FF FD 00 id length length 55 error parameters crc crc   FF FF FD inside becomes FF FF FD FD

Sources: protocol descriptions of ROBOTIS. The readers accept any bytes: bytes that belong to no packet are skipped and
counted, and a valid packet behind them is returned.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from tensegrity_dynamics.errors import BusError, unknown_name

from ..bus.potentiometer_protocol import crc16

BROADCAST = 0xFE
MAX_LENGTH = {1: 253, 2: 1024}
"""Largest valid length field, by protocol."""
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
    """Numbers in the error byte of protocol 2.0; bit 7, ALERT, is set while the hardware error register is not zero."""

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
    """Received instruction; `whole` is False for a wrong checksum."""

    id: int
    instruction: int
    parameters: bytes = b""
    whole: bool = True


class InstructionReader(Protocol):
    """Finds instructions in a stream of bytes; `skipped` counts bytes that belong to none."""

    skipped: int

    def feed(self, data: bytes) -> list[InstructionPacket]:
        """Packets that these bytes complete."""

    def end_of_burst(self) -> list[InstructionPacket]:
        """Discard an incomplete packet after a pause; returns packets behind its beginning."""


def instruction_reader(protocol: int) -> InstructionReader:
    """Reader for protocol 1 or 2; raises BusError for another."""
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
        packets: list[InstructionPacket] = []
        while True:
            self._skip_to_header()
            end = self._end()
            if end is None:
                return packets
            if end == 0:
                self._drop(1)
                continue
            packet = _decode(self.protocol, bytes(self._buffer[:end]))
            # the same wire carries status packets of other servos
            if packet.whole:
                del self._buffer[:end]
                if not (self.protocol == 2 and packet.instruction == Instruction.STATUS):
                    packets.append(packet)
            else:
                packets.append(packet)
                self._drop(1)  # a valid packet may begin inside the damaged one

    def end_of_burst(self) -> list[InstructionPacket]:
        packets: list[InstructionPacket] = []
        while self._buffer:
            self._drop(1)
            packets += self.feed(b"")
        return packets

    def _drop(self, count: int) -> None:
        self.skipped += count
        del self._buffer[:count]

    def _skip_to_header(self) -> None:
        buffer, header = self._buffer, self.header
        start = buffer.find(header)
        if start < 0:
            start = len(buffer)
            for part in range(min(len(header) - 1, len(buffer)), 0, -1):
                if buffer.endswith(header[:part]):
                    start = len(buffer) - part
                    break
        self._drop(start)

    def _end(self) -> int | None:
        """End of the packet at the front of the buffer; None: incomplete; 0: not a packet."""
        buffer = self._buffer
        if self.protocol == 1:
            if len(buffer) < 4:
                return 0 if len(buffer) > 2 and buffer[2] == 0xFF else None
            if buffer[2] == 0xFF or not 2 <= buffer[3] <= MAX_LENGTH[1]:
                return 0
            end = 4 + buffer[3]
        else:
            if len(buffer) < 7:
                return None
            length = int.from_bytes(buffer[5:7], "little")
            if buffer[4] == 0xFF or not 3 <= length <= MAX_LENGTH[2]:
                return 0
            end = 7 + length
        return end if len(buffer) >= end else None


def _decode(protocol: int, data: bytes) -> InstructionPacket:
    if protocol == 1:
        return InstructionPacket(data[2], data[4], data[5:-1], checksum(data[2:-1]) == data[-1])
    whole = crc16(data[:-2]) == int.from_bytes(data[-2:], "little")
    body = unstuffed(data[7:-2])
    return InstructionPacket(data[4], body[0] if body else 0, body[1:], whole)


def checksum(data: bytes) -> int:
    """Checksum of protocol 1.0 over all bytes from the id on."""
    return ~sum(data) & 0xFF


def stuffed(data: bytes) -> bytes:
    """Data with byte stuffing: FD after every FF FF FD, so that no header occurs inside a packet."""
    return data.replace(b"\xff\xff\xfd", b"\xff\xff\xfd\xfd")


def unstuffed(data: bytes) -> bytes:
    """Inverse of `stuffed`."""
    return data.replace(b"\xff\xff\xfd\xfd", b"\xff\xff\xfd")


def encode_status(protocol: int, id_: int, error: int, parameters: bytes = b"") -> bytes:
    """Bytes of a status packet."""
    body = bytes((error,)) + parameters
    return encode_packet(protocol, id_, body if protocol == 1 else bytes((Instruction.STATUS,)) + body)


def encode_fast_status(parts: list[bytes]) -> bytes:
    """Common status packet of a fast sync read.

    Args:
        parts: error, id and data of every servo, in the order of the request. Each is followed by the checksum over
            all bytes before it; there is no byte stuffing.
    """
    length = 1 + sum(len(part) + 2 for part in parts)
    packet = _HEADERS[2] + bytes((BROADCAST,)) + length.to_bytes(2, "little") + bytes((Instruction.STATUS,))
    for part in parts:
        packet += part
        packet += crc16(packet).to_bytes(2, "little")
    return packet


def encode_packet(protocol: int, id_: int, body: bytes) -> bytes:
    """Bytes of a packet from its body, instruction or error first, with header, length, stuffing and checksum."""
    if protocol == 1:
        packet = bytes((id_, len(body) + 1)) + body
        return _HEADERS[1] + packet + bytes((checksum(packet),))
    body = stuffed(body)
    packet = _HEADERS[2] + bytes((id_,)) + (len(body) + 2).to_bytes(2, "little") + body
    return packet + crc16(packet).to_bytes(2, "little")
