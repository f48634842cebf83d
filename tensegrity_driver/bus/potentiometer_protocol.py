"""Messages between the potentiometer board and its host: fixed-length requests and answers (001, section 7.3).

The document specifies the messages and that arrays are sent as unsigned 16-bit integers; byte order, framing and
checksum are defined here:

    host   FF B0 01 sequence crc                            request of the state
    board  FF B1 01 sequence count 3·count·u16 crc          positions, desired positions, velocities
    host   FF B0 02 sequence n·u16 crc                      desired positions, one per channel
    board  FF B1 02 sequence crc                            confirmation

A board that drives the servos itself (see `firmware/`) accepts three more requests, and refuses those that it cannot
execute:

    host   FF B0 03 sequence channel id sense low·u16 high·u16 speed·u16 torque·u16 crc       set a channel up
    host   FF B0 04 sequence action channel crc             release (one, or 255 all), arm or stop
    host   FF B0 05 sequence channel crc                    request of its own state and that of one servo
    board  FF B1 05 sequence mode reason where channel misses errors torque model·u16 position·u16 load·u16
           voltage temperature crc
    board  FF B1 03/04 sequence crc                         confirmation
    board  FF B1 7F sequence reason crc                     refusal of what was asked under this sequence number

Numbers are little-endian. `crc` is the CRC-16 of Dynamixel protocol 2.0 (polynomial 0x8005, start 0) over all bytes
before it, low byte first. The sequence number counts modulo 256 and is repeated in the answer, which identifies late
answers. Positions are counts; velocities are counts per second above `VELOCITY_ZERO`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from tensegrity_dynamics.errors import BusError

STATE, POSITIONS = 1, 2
"""Flags of the requests: read the state, move to new positions."""
SETUP, DRIVE, SERVO, REFUSED = 3, 4, 5, 0x7F
"""Additional flags of a board that drives servos: set up a channel; release, arm or stop; read one servo; refusal."""
ALL_CHANNELS = 255
"""Channel number that means all channels."""
HOST, BOARD = b"\xff\xb0", b"\xff\xb1"
"""First bytes of requests and of answers."""
RADIANS_PER_COUNT = 10.0 * 2.0 * math.pi / 4096.0
"""Rotation of a ten-turn potentiometer per count of its 12-bit converter [rad]."""
VELOCITY_ZERO = 32768
"""Number that represents velocity zero, since the numbers are unsigned."""
MAX_CHANNELS = 255
"""Largest value of the channel count, one byte."""


class BoardAction(IntEnum):
    """Action of a DRIVE request: torque off; follow positions, starting at the present ones; speed zero."""

    RELEASE, ARM, STOP = range(3)


class BoardMode(IntEnum):
    """Operating mode of a board that drives servos."""

    IDLE, ARMING, ARMED, STOPPED, RELEASING = range(5)


class BoardReason(IntEnum):
    """Reason why a board stopped its servos, or refused a request."""

    NONE, HOST_SILENT, REQUESTED, SERVO_SILENT, SERVO_MODEL, SERVO_REFUSES, TORQUE_LOST, SENSOR_BROKEN, LIMIT = range(9)
    NOT_ARMED, NOT_SET_UP, BAD_NUMBERS, IN_USE = range(9, 13)

    @property
    def text(self) -> str:
        """Reason as text."""
        return REASONS[self]


REASONS = {
    BoardReason.NONE: "nothing",
    BoardReason.HOST_SILENT: "the host sent no positions",
    BoardReason.REQUESTED: "the host requested it",
    BoardReason.SERVO_SILENT: "a servo does not answer the board",
    BoardReason.SERVO_MODEL: "a servo is no AX-12A",
    BoardReason.SERVO_REFUSES: "a servo does not take its settings",
    BoardReason.TORQUE_LOST: "a servo lost its torque",
    BoardReason.SENSOR_BROKEN: "a potentiometer is at the end of its range",
    BoardReason.LIMIT: "a spool is beyond its limits",
    BoardReason.NOT_ARMED: "the board is not armed",
    BoardReason.NOT_SET_UP: "no channel is set up",
    BoardReason.BAD_NUMBERS: "a number is out of range or used twice",
    BoardReason.IN_USE: "the board drives its servos",
}
"""Texts of the reasons."""


def _crc_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        value = byte << 8
        for _ in range(8):
            value = ((value << 1) ^ 0x8005) if value & 0x8000 else value << 1
        table.append(value & 0xFFFF)
    return tuple(table)


_TABLE = _crc_table()


def crc16(data: bytes | bytearray) -> int:
    """CRC-16 of the bytes: polynomial 0x8005, most significant bit first."""
    value = 0
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
class ChannelSetup:
    """Servo of one channel of a board that drives servos.

    Attributes:
        channel: channel of the potentiometer. id: id of the servo, an AX-12A.
        sense: whether the counts increase in the positive direction of the servo.
        low, high: limits of the spool [counts].
        speed, torque: largest raw speed and raw torque limit of the servo.
    """

    channel: int
    id: int
    sense: bool
    low: int
    high: int
    speed: int
    torque: int


@dataclass(frozen=True)
class BoardServo:
    """State of a board that drives servos, and of one of its servos.

    Attributes:
        mode: mode of the board. reason: reason of the last stop. where: channel that caused it, or 255.
        channel: channel of the servo. misses: number of successive requests that the servo has not answered.
        errors: error bits of the servo. torque: whether its torque is on. model: its model number.
        position, load: raw values. voltage: in units of 0.1 V. temperature: degrees Celsius.
    """

    mode: BoardMode
    reason: BoardReason
    where: int
    channel: int
    misses: int
    errors: int
    torque: bool
    model: int
    position: int
    load: int
    voltage: int
    temperature: int


@dataclass(frozen=True)
class BoardRequest:
    """Request of the host: `flag` STATE, POSITIONS with one position [counts] per channel, SETUP, DRIVE or SERVO."""

    flag: int
    sequence: int
    positions: tuple[int, ...] = ()
    setup: ChannelSetup | None = None
    number: int = 0
    """Action of DRIVE."""
    channel: int = ALL_CHANNELS
    """Channel of SERVO, and of a DRIVE that releases a single channel."""


@dataclass(frozen=True)
class BoardAnswer:
    """Answer of the board: its state to STATE, the state of a servo to SERVO, a refusal, or a confirmation."""

    flag: int
    sequence: int
    state: BoardState | None = None
    servo: BoardServo | None = None
    reason: BoardReason = BoardReason.NONE


_SETUP = struct.Struct("<BBB4H")
_SERVO = struct.Struct("<7B3H2B")


def encode_request(request: BoardRequest) -> bytes:
    """Bytes of a request. Raises BusError for an unknown flag or numbers that 16 bits cannot hold."""
    if request.flag == STATE:
        return _with_crc(HOST + bytes((STATE, request.sequence & 0xFF)))
    if request.flag == POSITIONS:
        return _with_crc(HOST + bytes((POSITIONS, request.sequence & 0xFF)) + _pack(request.positions))
    head = HOST + bytes((request.flag & 0xFF, request.sequence & 0xFF))
    if request.flag == SETUP and request.setup is not None:
        each = request.setup
        numbers = (each.channel, each.id, int(each.sense), each.low, each.high, each.speed, each.torque)
        try:
            return _with_crc(head + _SETUP.pack(*numbers))
        except struct.error as problem:
            raise BusError(f"potentiometer board: {each} does not fit into bytes and 16-bit numbers.") from problem
    if request.flag == DRIVE:
        return _with_crc(head + bytes((request.number & 0xFF, request.channel & 0xFF)))
    if request.flag == SERVO:
        return _with_crc(head + bytes((request.channel & 0xFF,)))
    raise BusError(
        f"potentiometer board: there is no request {request.flag}; known: {STATE} state, {POSITIONS} move, {SETUP} set "
        f"up, {DRIVE} drive, {SERVO} servo."
    )


def encode_answer(answer: BoardAnswer) -> bytes:
    """Bytes of an answer. Raises BusError for an unknown flag, a missing state or numbers that 16 bits cannot hold."""
    head = BOARD + bytes((answer.flag & 0xFF, answer.sequence & 0xFF))
    if answer.flag == STATE and answer.state is not None:
        state = answer.state
        body = _pack((*state.positions, *state.desired, *state.velocities))
        return _with_crc(head + bytes((len(state.positions),)) + body)
    if answer.flag in (POSITIONS, SETUP, DRIVE) and answer.state is None:
        return _with_crc(head)
    if answer.flag == SERVO and answer.servo is not None:
        return _with_crc(head + _SERVO.pack(*(int(value) for value in vars(answer.servo).values())))
    if answer.flag == REFUSED:
        return _with_crc(head + bytes((answer.reason,)))
    raise BusError(f"potentiometer board: answer {answer.flag} with state {answer.state} is none of those known.")


class RequestReader:
    """Parser of requests in a byte stream, on the board side.

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
        """Requests that are complete with these bytes."""
        self._buffer += data
        requests: list[BoardRequest] = []
        for message in _split(self, HOST, self._length):
            flag, sequence, contents = message[2], message[3], message[4:-2]
            if flag == SETUP:
                channel, id_, sense, *numbers = _SETUP.unpack(contents)
                requests.append(BoardRequest(flag, sequence, setup=ChannelSetup(channel, id_, sense == 1, *numbers)))
            elif flag == DRIVE:
                requests.append(BoardRequest(flag, sequence, number=contents[0], channel=contents[1]))
            elif flag == SERVO:
                requests.append(BoardRequest(flag, sequence, channel=contents[0]))
            else:
                requests.append(BoardRequest(flag, sequence, _unpack(contents)))
        return requests

    def _length(self, start: bytearray) -> int | None:
        if len(start) < 3:
            return None
        lengths = {STATE: 6, POSITIONS: 6 + 2 * self.channels, SETUP: 6 + _SETUP.size, DRIVE: 8, SERVO: 7}
        return lengths.get(start[2], 0)

    def end_of_burst(self) -> None:
        """Discard an incomplete message after a pause on the line."""
        self.skipped += len(self._buffer)
        self._buffer.clear()


class AnswerReader:
    """Parser of answers in a byte stream, on the host side; see `RequestReader`."""

    def __init__(self) -> None:
        self.skipped = 0
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[BoardAnswer]:
        """Answers that are complete with these bytes; bytes that belong to none are counted in `skipped`."""
        self._buffer += data
        answers: list[BoardAnswer] = []
        for message in _split(self, BOARD, self._length):
            flag, sequence = message[2], message[3]
            if flag == STATE:
                count, numbers = message[4], _unpack(message[5:-2])
                state = BoardState(numbers[:count], numbers[count : 2 * count], numbers[2 * count :])
                answers.append(BoardAnswer(flag, sequence, state))
            elif flag == SERVO:
                servo = _servo(message[4:-2])
                if servo is not None:
                    answers.append(BoardAnswer(flag, sequence, servo=servo))
            elif flag == REFUSED:
                answers.append(BoardAnswer(flag, sequence, reason=_reason(message[4])))
            else:
                answers.append(BoardAnswer(flag, sequence))
        return answers

    def _length(self, start: bytearray) -> int | None:
        if len(start) < 3:
            return None
        if start[2] == STATE:
            return 7 + 6 * start[4] if len(start) > 4 else None
        lengths = {POSITIONS: 6, SETUP: 6, DRIVE: 6, SERVO: 6 + _SERVO.size, REFUSED: 7}
        return lengths.get(start[2], 0)

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
        else:  # a message may begin after the first byte
            reader.skipped += 1
            del buffer[:1]


def _reason(number: int) -> BoardReason:
    """Reason of a number; BAD_NUMBERS for an unknown number."""
    return BoardReason(number) if number in REASONS else BoardReason.BAD_NUMBERS


def _servo(contents: bytes) -> BoardServo | None:
    """State of a servo, or None for an unknown mode."""
    mode, reason, where, channel, misses, errors, torque, *numbers = _SERVO.unpack(contents)
    if mode > max(BoardMode):
        return None
    return BoardServo(BoardMode(mode), _reason(reason), where, channel, misses, errors, torque != 0, *numbers)


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
