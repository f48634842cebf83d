"""Messages between the potentiometer board and its host: fixed-length requests and answers (001, section 7.3).

The document specifies the messages and that arrays are sent as unsigned 16-bit integers; byte order, framing and
checksum are defined here:

    host   FF B0 01 sequence crc                            request of the state
    board  FF B1 01 sequence count 3·count·u16 crc          positions, desired positions, velocities
    host   FF B0 02 sequence n·u16 crc                      desired positions, one per channel
    board  FF B1 02 sequence crc                            confirmation

Numbers are little-endian. `crc` is the CRC-16 of Dynamixel protocol 2.0 (polynomial 0x8005, start 0) over all bytes
before it, low byte first. The sequence number counts modulo 256 and is repeated in the answer, which identifies late
answers. Positions are counts; velocities are counts per second above `VELOCITY_ZERO`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tensegrity_dynamics.errors import BusError

STATE, POSITIONS = 1, 2
"""Flags of the requests: read the state, move to new positions."""
HOST, BOARD = b"\xff\xb0", b"\xff\xb1"
"""First bytes of requests and of answers."""
RADIANS_PER_COUNT = 10.0 * 2.0 * math.pi / 4096.0
"""rad of a ten-turn potentiometer for one count of its 12-bit converter."""
VELOCITY_ZERO = 32768
"""Number that stands for velocity zero, since the numbers are unsigned."""
MAX_CHANNELS = 255
"""Largest value of the channel count, one byte."""


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
    """State of the board by channel: positions and desired positions [counts], velocities (see the module)."""

    positions: tuple[int, ...]
    desired: tuple[int, ...]
    velocities: tuple[int, ...]

    def __post_init__(self) -> None:
        if not len(self.positions) == len(self.desired) == len(self.velocities) <= MAX_CHANNELS:
            raise BusError(
                f"potentiometer board: {len(self.positions)} positions, {len(self.desired)} desired ones and "
                f"{len(self.velocities)} velocities; give the same number of each, at most {MAX_CHANNELS}."
            )


@dataclass(frozen=True)
class BoardRequest:
    """Request of the host: `flag` STATE, or POSITIONS with one position [counts] per channel."""

    flag: int
    sequence: int
    positions: tuple[int, ...] = ()


@dataclass(frozen=True)
class BoardAnswer:
    """Answer of the board: its state to STATE, a confirmation to POSITIONS."""

    flag: int
    sequence: int
    state: BoardState | None = None


def encode_request(request: BoardRequest) -> bytes:
    """Bytes of a request. Raises BusError for an unknown flag or numbers that 16 bits cannot hold."""
    if request.flag == STATE:
        return _with_crc(HOST + bytes((STATE, request.sequence & 0xFF)))
    if request.flag == POSITIONS:
        return _with_crc(HOST + bytes((POSITIONS, request.sequence & 0xFF)) + _pack(request.positions))
    raise BusError(f"potentiometer board: there is no request {request.flag}; known: {STATE} state, {POSITIONS} move.")


def encode_answer(answer: BoardAnswer) -> bytes:
    """Bytes of an answer. Raises BusError for an unknown flag, a missing state or numbers that 16 bits cannot hold."""
    head = BOARD + bytes((answer.flag & 0xFF, answer.sequence & 0xFF))
    if answer.flag == STATE and answer.state is not None:
        state = answer.state
        body = _pack((*state.positions, *state.desired, *state.velocities))
        return _with_crc(head + bytes((len(state.positions),)) + body)
    if answer.flag == POSITIONS and answer.state is None:
        return _with_crc(head)
    raise BusError(f"potentiometer board: answer {answer.flag} with state {answer.state} is neither of the two known.")


class RequestReader:
    """Finds requests in a stream of bytes, on the side of the board.

    Args:
        channels: number of positions in a move request.

    Attributes:
        skipped: number of bytes that belong to no message.
    """

    def __init__(self, channels: int) -> None:
        self.channels = channels
        self.skipped = 0
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[BoardRequest]:
        """Requests that these bytes complete."""
        self._buffer += data
        requests: list[BoardRequest] = []
        for message in _split(self, HOST, self._length):
            requests.append(BoardRequest(message[2], message[3], _unpack(message[4:-2])))
        return requests

    def _length(self, start: bytearray) -> int | None:
        if len(start) < 3:
            return None
        return {STATE: 6, POSITIONS: 6 + 2 * self.channels}.get(start[2], 0)

    def end_of_burst(self) -> None:
        """Discard an incomplete message after a pause on the line."""
        self.skipped += len(self._buffer)
        self._buffer.clear()


class AnswerReader:
    """Finds answers in a stream of bytes, on the side of the host; see `RequestReader`."""

    def __init__(self) -> None:
        self.skipped = 0
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[BoardAnswer]:
        """Answers that are complete with these bytes; bytes that belong to none are counted in `skipped`."""
        self._buffer += data
        answers: list[BoardAnswer] = []
        for message in _split(self, BOARD, self._length):
            state = None
            if message[2] == STATE:
                count, numbers = message[4], _unpack(message[5:-2])
                state = BoardState(numbers[:count], numbers[count : 2 * count], numbers[2 * count :])
            answers.append(BoardAnswer(message[2], message[3], state))
        return answers

    def _length(self, start: bytearray) -> int | None:
        if len(start) < 3:
            return None
        if start[2] == STATE:
            return 7 + 6 * start[4] if len(start) > 4 else None
        return 6 if start[2] == POSITIONS else 0

    def end_of_burst(self) -> None:
        """Discard an incomplete message after a pause on the line."""
        self.skipped += len(self._buffer)
        self._buffer.clear()


def _split(
    reader: RequestReader | AnswerReader, head: bytes, length_of: Callable[[bytearray], int | None]
) -> list[bytes]:
    """Complete messages at the front of the buffer; the rest may be the start of another."""
    buffer = reader._buffer
    messages: list[bytes] = []
    while True:
        start = buffer.find(head)
        if start < 0:
            start = len(buffer) - (1 if buffer[-1:] == head[:1] else 0)
        reader.skipped += start
        del buffer[:start]
        length = length_of(buffer)
        if length is None or (length and len(buffer) < length):
            return messages
        message = bytes(buffer[:length])
        if length and crc16(message[:-2]) == int.from_bytes(message[-2:], "little"):
            messages.append(message)
            del buffer[:length]
        else:  # only the first byte is certainly wrong: a message may begin right after it
            reader.skipped += 1
            del buffer[:1]


def _with_crc(body: bytes) -> bytes:
    return body + crc16(body).to_bytes(2, "little")


def _pack(values: Sequence[int]) -> bytes:
    try:
        return struct.pack(f"<{len(values)}H", *values)
    except struct.error as problem:
        raise BusError(
            f"potentiometer board: {list(values)} does not fit into unsigned 16-bit numbers; give whole numbers from 0 "
            "to 65535."
        ) from problem


def _unpack(data: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(data) // 2}H", data)
