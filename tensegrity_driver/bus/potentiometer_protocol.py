"""What the potentiometer board and its host say to each other: fixed-length messages that the host begins (001, 7.3).

The document gives the messages and that arrays travel as unsigned 16-bit integers, but neither byte order nor checksum;
byte order, framing and checksum are ours:

    host   FF B0 01 sequence crc                            what is the state?
    board  FF B1 01 sequence count 3·count·u16 crc          potentiometers, desired ones, velocities
    host   FF B0 02 sequence n·u16 crc                      new positions, one for every channel
    board  FF B1 02 sequence crc                            taken

Numbers are little-endian. `crc` is the CRC-16 of Dynamixel protocol 2.0 (polynomial 0x8005, start 0) over all bytes
before it, low byte first. The sequence counts modulo 256 and comes back in the answer, so that a late answer is never
taken for a new one. Positions are counts; velocities are counts per second above `VELOCITY_ZERO`. No clock, no port.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tensegrity_dynamics.errors import BusError

BAUD_RATE = 115200
"""bit/s of the board's serial port."""
STATE, POSITIONS = 1, 2
"""Flags: what is the state; new positions."""
HOST, BOARD = b"\xff\xb0", b"\xff\xb1"
"""First bytes of what either side sends."""
VELOCITY_ZERO = 32768
"""What the board says of a channel at rest; the numbers carry no sign."""
MOST_CHANNELS = 255
"""As many as the count, one byte, can say."""


def _crc_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        value = byte << 8
        for _ in range(8):
            value = ((value << 1) ^ 0x8005) if value & 0x8000 else value << 1
        table.append(value & 0xFFFF)
    return tuple(table)


_TABLE = _crc_table()


def crc16(data: bytes | bytearray, start: int = 0) -> int:
    """CRC-16 of the bytes: polynomial 0x8005, most significant bit first; `start` continues an earlier one."""
    value = start
    for byte in data:
        value = ((value << 8) & 0xFFFF) ^ _TABLE[(value >> 8) ^ byte]
    return value


@dataclass(frozen=True)
class BoardState:
    """The three arrays of the board, by channel: potentiometers and desired ones [counts], velocities (see above)."""

    positions: tuple[int, ...]
    desired: tuple[int, ...]
    velocities: tuple[int, ...]

    def __post_init__(self) -> None:
        if not len(self.positions) == len(self.desired) == len(self.velocities) <= MOST_CHANNELS:
            raise BusError(
                f"potentiometer board: {len(self.positions)} positions, {len(self.desired)} desired ones and "
                f"{len(self.velocities)} velocities; give the same number of each, at most {MOST_CHANNELS}."
            )


@dataclass(frozen=True)
class BoardRequest:
    """What the host wants: `flag` STATE, or POSITIONS with one number of counts for every channel."""

    flag: int
    sequence: int
    positions: tuple[int, ...] = ()


@dataclass(frozen=True)
class BoardAnswer:
    """What the board says: to STATE its state, to POSITIONS that it took them."""

    flag: int
    sequence: int
    state: BoardState | None = None


def encode_request(request: BoardRequest) -> bytes:
    """Bytes of a request. Raises BusError for an unknown flag or numbers that 16 bits cannot hold."""
    if request.flag == STATE:
        return _closed(HOST + bytes((STATE, request.sequence & 0xFF)))
    if request.flag == POSITIONS:
        return _closed(HOST + bytes((POSITIONS, request.sequence & 0xFF)) + _words(request.positions))
    raise BusError(f"potentiometer board: there is no request {request.flag}; known: {STATE} state, {POSITIONS} move.")


def encode_answer(answer: BoardAnswer) -> bytes:
    """Bytes of an answer. Raises BusError for an unknown flag, a missing state or numbers that 16 bits cannot hold."""
    head = BOARD + bytes((answer.flag & 0xFF, answer.sequence & 0xFF))
    if answer.flag == STATE and answer.state is not None:
        state = answer.state
        body = _words((*state.positions, *state.desired, *state.velocities))
        return _closed(head + bytes((len(state.positions),)) + body)
    if answer.flag == POSITIONS and answer.state is None:
        return _closed(head)
    raise BusError(f"potentiometer board: answer {answer.flag} with state {answer.state} is neither of the two known.")


class RequestReader:
    """Finds requests in a stream of bytes; the board's side.

    Args:
        channels: how many positions every move names.
    """

    def __init__(self, channels: int) -> None:
        self.channels = channels
        self.skipped = 0
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[BoardRequest]:
        """Requests that are complete with these bytes; bytes that belong to none are counted in `skipped`."""
        self._buffer += data
        found: list[BoardRequest] = []
        for message in _split(self, HOST, self._length):
            found.append(BoardRequest(message[2], message[3], _numbers(message[4:-2])))
        return found

    def _length(self, start: bytearray) -> int | None:
        if len(start) < 3:
            return None
        return {STATE: 6, POSITIONS: 6 + 2 * self.channels}.get(start[2], 0)

    def quiet(self) -> None:
        """The line was quiet for long: what is incomplete will never be completed."""
        self.skipped += len(self._buffer)
        self._buffer.clear()


class AnswerReader:
    """Finds answers in a stream of bytes; the host's side."""

    def __init__(self) -> None:
        self.skipped = 0
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[BoardAnswer]:
        """Answers that are complete with these bytes; bytes that belong to none are counted in `skipped`."""
        self._buffer += data
        found: list[BoardAnswer] = []
        for message in _split(self, BOARD, self._length):
            state = None
            if message[2] == STATE:
                count, numbers = message[4], _numbers(message[5:-2])
                state = BoardState(numbers[:count], numbers[count : 2 * count], numbers[2 * count :])
            found.append(BoardAnswer(message[2], message[3], state))
        return found

    def _length(self, start: bytearray) -> int | None:
        if len(start) < 3:
            return None
        if start[2] == STATE:
            return 7 + 6 * start[4] if len(start) > 4 else None
        return 6 if start[2] == POSITIONS else 0

    def quiet(self) -> None:
        """The line was quiet for long: what is incomplete will never be completed."""
        self.skipped += len(self._buffer)
        self._buffer.clear()


def _split(
    reader: RequestReader | AnswerReader, head: bytes, length_of: Callable[[bytearray], int | None]
) -> list[bytes]:
    """Whole messages at the front of the reader's buffer; what remains may be the start of another."""
    buffer = reader._buffer
    found: list[bytes] = []
    while True:
        place = buffer.find(head)
        if place < 0:
            place = len(buffer) - (1 if buffer[-1:] == head[:1] else 0)
        reader.skipped += place
        del buffer[:place]
        length = length_of(buffer)
        if length is None or (length and len(buffer) < length):
            return found
        message = bytes(buffer[:length])
        if length and crc16(message[:-2]) == int.from_bytes(message[-2:], "little"):
            found.append(message)
            del buffer[:length]
        else:  # only the first byte is surely wrong: another message may begin right behind it
            reader.skipped += 1
            del buffer[:1]


def _closed(body: bytes) -> bytes:
    return body + crc16(body).to_bytes(2, "little")


def _words(values: Sequence[int]) -> bytes:
    try:
        return struct.pack(f"<{len(values)}H", *values)
    except struct.error as problem:
        raise BusError(
            f"potentiometer board: {list(values)} does not fit into unsigned 16-bit numbers; give whole numbers from 0 "
            "to 65535."
        ) from problem


def _numbers(data: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(data) // 2}H", data)
