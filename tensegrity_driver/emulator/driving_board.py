"""Emulated potentiometer board that closes the position loops itself, like the firmware in `firmware/`.

It is written from docs/hardware.md, not from the firmware; both pass the same tests. It communicates with the emulated
servos by packets, which arrive without delay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..bus.control_tables import DIRECTION_BIT, MODELS
from ..bus.potentiometer_protocol import (
    ALL_CHANNELS,
    DRIVE,
    POSITIONS,
    REFUSED,
    SERVO,
    SETUP,
    STATE,
    BoardAction,
    BoardAnswer,
    BoardMode,
    BoardReason,
    BoardRequest,
    BoardServo,
    BoardState,
    ChannelSetup,
    encode_answer,
)
from .potentiometer_board import FULL_SCALE, Potentiometer, PotentiometerBoard
from .servo_chain import ServoChain

PERIOD_S = 0.01
"""Period of the loops [s]."""
HOST_SILENCE_S = 0.4
"""Time without set points after which all servos stop [s]."""
PROPORTIONAL, INTEGRAL = 10.0, 25.0
"""Gains of the loops [1/s, 1/s²]: 0.1 per period, and a quarter of its square."""
COUNTS_PER_SPEED = 0.75776
"""Counts per second of one step of the speed register, 0.111 rpm."""
MAX_MISSES = 5
SENSOR_RANGE = (20, 4075)
LIMIT_MARGIN = 32
"""Distance beyond the limits at which the board stops its servos [counts]."""
POLLS = 3
"""Number of servos read per period; a real board reads about eight, which would cost computing time here."""
AX = MODELS["AX-12A"]
TABLE_BYTES = 44


@dataclass
class BoardLoop:
    """One channel: its servo, its set point, and the integral part of its loop [counts/s]."""

    setup: ChannelSetup
    desired: int = 0
    sum: float = 0.0
    cut: float = 0.0
    misses: int = 0
    errors: int = 0
    table: bytes = b""
    releasing: bool = False

    def speed(self, counts: int) -> int:
        """Speed for the servo, positive in the direction of increasing counts."""
        low, high = self.setup.low, self.setup.high
        error = min(max(self.desired, min(low, counts)), max(high, counts)) - counts
        rate = COUNTS_PER_SPEED * self.setup.speed
        if self.cut * error <= 0.0:
            self.sum = min(max(self.sum + INTEGRAL * PERIOD_S * error, -0.5 * rate), 0.5 * rate)
        target = PROPORTIONAL * error + self.sum
        sent = min(max(target, -rate), rate)
        if (counts >= high and sent > 0.0) or (counts <= low and sent < 0.0):
            sent = 0.0
        self.cut = target - sent
        return round(sent / COUNTS_PER_SPEED)


class DrivingBoard(PotentiometerBoard):
    """Board with servos at its own bus.

    Args:
        potentiometers: potentiometers by channel. chain: servos at its bus. seed: seed of the noise.
    """

    def __init__(self, potentiometers: Mapping[int, Potentiometer], chain: ServoChain, seed: int = 0) -> None:
        super().__init__(potentiometers, seed)
        self._chain = chain
        self._loops: dict[int, BoardLoop] = {}
        self.mode, self.reason, self.where = BoardMode.IDLE, BoardReason.NONE, ALL_CHANNELS
        self._time = self._silence = 0.0
        self._turn = 0

    # -- the host ----------------------------------------------------------------------------------------------------

    def feed(self, data: bytes) -> list[bytes]:
        """Execute bytes from the host; returns the answers."""
        if self.silent:
            return []
        return [encode_answer(self._answer(request)) for request in self._reader.feed(data)]

    def _answer(self, request: BoardRequest) -> BoardAnswer:
        flag, sequence = request.flag, request.sequence
        if flag == STATE:
            armed = self.mode is BoardMode.ARMED
            desired = [
                self._loops[channel].desired if armed and channel in self._loops else counts
                for channel, counts in enumerate(self._positions)
            ]
            return BoardAnswer(
                flag, sequence, BoardState(tuple(self._positions), tuple(desired), tuple(self._velocities))
            )
        if flag == SERVO and request.channel < self.channels:
            return BoardAnswer(flag, sequence, servo=self._servo(request.channel))
        reason = self._execute(request)
        return BoardAnswer(flag if reason is BoardReason.NONE else REFUSED, sequence, reason=reason)

    def _execute(self, request: BoardRequest) -> BoardReason:
        if request.flag == POSITIONS:
            if self.mode is not BoardMode.ARMED:
                return BoardReason.NOT_ARMED
            if any(request.positions[channel] > FULL_SCALE for channel in self._loops):
                return BoardReason.BAD_NUMBERS
            for channel, loop in self._loops.items():
                loop.desired = request.positions[channel]
            self._silence = 0.0
            return BoardReason.NONE
        if request.flag == SETUP and request.setup is not None:
            return self._set_up(request.setup)
        if request.flag != DRIVE or request.number > max(BoardAction):
            return BoardReason.BAD_NUMBERS
        if not self._loops:
            return BoardReason.NOT_SET_UP
        return self._drive(BoardAction(request.number), request.channel)

    def _set_up(self, setup: ChannelSetup) -> BoardReason:
        if self.mode not in (BoardMode.IDLE, BoardMode.STOPPED):
            return BoardReason.IN_USE
        twins = [
            each for channel, each in self._loops.items() if channel != setup.channel and each.setup.id == setup.id
        ]
        if twins or not (
            setup.channel < self.channels and setup.id < 254 and setup.low < setup.high <= FULL_SCALE
            and 1 <= setup.speed <= 1023 and setup.torque <= 1023
        ):  # fmt: skip
            return BoardReason.BAD_NUMBERS
        self._loops[setup.channel] = BoardLoop(setup)
        return BoardReason.NONE

    def _drive(self, action: BoardAction, channel: int) -> BoardReason:
        if action is BoardAction.STOP:
            self._stop(BoardReason.REQUESTED, ALL_CHANNELS)
        elif action is BoardAction.RELEASE and channel == ALL_CHANNELS:
            self.mode, self.reason, self.where = BoardMode.RELEASING, BoardReason.NONE, ALL_CHANNELS
            self._release()
        elif action is BoardAction.RELEASE and channel in self._loops:
            self._stop(BoardReason.REQUESTED, channel)
            self._loops[channel].releasing = True
        elif action is BoardAction.RELEASE:
            return BoardReason.BAD_NUMBERS
        elif self.mode is BoardMode.RELEASING:
            return BoardReason.IN_USE
        elif self.mode is not BoardMode.ARMED:
            self._arm()
        return BoardReason.NONE

    def _servo(self, channel: int) -> BoardServo:
        loop = self._loops.get(channel)
        table = loop.table if loop is not None and loop.table else bytes(TABLE_BYTES)

        def number(name: str) -> int:
            register = AX.register(name)
            return int.from_bytes(table[register.address : register.end], "little")

        return BoardServo(
            self.mode, self.reason, self.where, channel,
            loop.misses if loop else 0, loop.errors if loop else 0, number("torque_enable") != 0,
            number("model_number"), number("present_position"), number("present_load"),
            number("present_voltage"), number("present_temperature"),
        )  # fmt: skip

    # -- the servos --------------------------------------------------------------------------------------------------

    def run(self, seconds: float) -> None:
        """Advance the time of the board by `seconds`, with the last readings of the converters."""
        self._time += seconds
        while self._time >= PERIOD_S - 1e-9:
            self._time -= PERIOD_S
            self._silence += PERIOD_S
            self._tick()

    def _tick(self) -> None:
        if self.mode is BoardMode.RELEASING:
            self._release()
        if self.mode is BoardMode.ARMED and self._silence >= HOST_SILENCE_S - 1e-9:
            self._stop(BoardReason.HOST_SILENT, ALL_CHANNELS)
        for channel, loop in self._loops.items():
            counts = self._positions[channel]
            if self.mode is not BoardMode.ARMED:
                break
            if not SENSOR_RANGE[0] <= counts <= SENSOR_RANGE[1]:
                self._stop(BoardReason.SENSOR_BROKEN, channel)
            elif not loop.setup.low - LIMIT_MARGIN <= counts <= loop.setup.high + LIMIT_MARGIN:
                self._stop(BoardReason.LIMIT, channel)
        if self.mode in (BoardMode.ARMED, BoardMode.STOPPED):
            rows = bytearray()
            for channel, loop in self._loops.items():
                speed = loop.speed(self._positions[channel]) if self.mode is BoardMode.ARMED else 0
                speed = speed if loop.setup.sense else -speed
                raw = speed if speed >= 0 else DIRECTION_BIT - speed
                rows += bytes((loop.setup.id,)) + raw.to_bytes(2, "little")
            self._write(0xFE, 0x83, bytes((32, 2)) + rows)
        for channel in self._next_channels(POLLS):
            self._poll(channel)

    def _next_channels(self, count: int) -> list[int]:
        """The next channels whose servos are read."""
        channels = tuple(self._loops)
        chosen = [channels[(self._turn + k) % len(channels)] for k in range(min(count, len(channels)))]
        self._turn += len(chosen)
        return chosen

    def _poll(self, channel: int) -> None:
        loop = self._loops[channel]
        if loop.releasing and self._write(loop.setup.id, 3, b"\x18\0") is not None:
            loop.releasing = False
        answer = self._write(loop.setup.id, 2, bytes((0, TABLE_BYTES)))
        if answer is None:
            loop.misses = min(loop.misses + 1, 255)
            if loop.misses >= MAX_MISSES and self.mode in (BoardMode.ARMED, BoardMode.STOPPED):
                self._stop(BoardReason.SERVO_SILENT, channel)
            return
        loop.misses, loop.errors, loop.table = 0, answer[0], answer[1:]
        if self.mode is BoardMode.ARMED and not loop.table[24]:
            self._stop(BoardReason.TORQUE_LOST, channel)

    def _arm(self) -> None:
        self.mode, self.reason, self.where = BoardMode.ARMING, BoardReason.NONE, ALL_CHANNELS
        for channel, loop in self._loops.items():
            id_, torque = loop.setup.id, loop.setup.torque.to_bytes(2, "little")
            table = self._write(id_, 2, bytes((0, TABLE_BYTES)))
            if table is None:
                return self._stop(BoardReason.SERVO_SILENT, channel)
            if int.from_bytes(table[1:3], "little") != AX.number:
                return self._stop(BoardReason.SERVO_MODEL, channel)
            if any(table[6:11]):
                self._write(id_, 3, b"\x18\0")
                self._write(id_, 3, b"\x05\0\0\0\0\0")
            self._write(id_, 3, b"\x20\0\0" + torque)
            self._write(id_, 3, b"\x18\1")
            table = self._write(id_, 2, bytes((0, TABLE_BYTES)))
            if table is None or any(table[7:11]) or not table[25] or table[35:37] != torque:
                return self._stop(BoardReason.SERVO_REFUSES, channel)
            loop.errors, loop.table, loop.misses, loop.releasing = table[0], table[1:], 0, False
            loop.desired, loop.sum, loop.cut = self._positions[channel], 0.0, 0.0
        self.mode, self._silence = BoardMode.ARMED, 0.0
        return None

    def _stop(self, reason: BoardReason, where: int) -> None:
        if self.mode not in (BoardMode.RELEASING, BoardMode.STOPPED):
            self.mode, self.reason, self.where = BoardMode.STOPPED, reason, where

    def _release(self) -> None:
        for loop in self._loops.values():
            if self._write(loop.setup.id, 3, b"\x18\0") is None:
                return
            loop.table = loop.table[:24] + b"\0" + loop.table[25:]
        self.mode = BoardMode.IDLE

    def _write(self, id_: int, instruction: int, parameters: bytes) -> bytes | None:
        """Send an instruction; returns error byte and parameters of its answer, or None."""
        body = bytes((id_, len(parameters) + 2, instruction)) + parameters
        answers = self._chain.feed(b"\xff\xff" + body + bytes((~sum(body) & 0xFF,)))
        return answers[0].data[4:-1] if len(answers) == 1 else None
