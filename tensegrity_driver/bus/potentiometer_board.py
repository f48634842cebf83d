"""Potentiometer board at a separate serial port, read once per bus cycle.

The board answers one request at a time (see `potentiometer_protocol`), and its answer repeats the sequence number of
the request. Answers that are late, damaged or of another length are counted and discarded, so that a value always
belongs to the last request. Sending the request and reading the answer are separate steps, so that the servos are read
while the board sends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tensegrity_dynamics.errors import BusError

from .potentiometer_protocol import (
    ALL_CHANNELS,
    DRIVE,
    POSITIONS,
    REFUSED,
    SERVO,
    SETUP,
    STATE,
    AnswerReader,
    BoardAction,
    BoardAnswer,
    BoardReason,
    BoardRequest,
    BoardServo,
    BoardState,
    ChannelSetup,
    encode_request,
)
from .serial_port import SerialPort

ANSWER_BYTES = 7
"""Bytes of a state answer without channels."""
CHANNEL_BYTES = 6
"""Bytes of a state answer per channel."""
SERVO_BYTES = 14
"""Additional bytes of a servo answer, compared with a state answer without channels."""


@dataclass
class BoardStatistics:
    """Counts since the start: requests, accepted answers, answers to older requests, discarded bytes, port losses."""

    asked: int = 0
    answered: int = 0
    late: int = 0
    skipped: int = 0
    port_losses: int = 0


class PotentiometerBoard:
    """Host side of the communication with the board.

    Args:
        port: serial port of the board, open or not.
        channels: number of its potentiometers; answers with another number are discarded.

    Attributes:
        problem: error of the last request, or None. refusal: reason why the board refused it, or None.
    """

    def __init__(self, port: SerialPort, channels: int) -> None:
        self.port, self.channels = port, channels
        self.statistics = BoardStatistics()
        self.problem: str | None = None
        self.refusal: BoardReason | None = None
        self._reader = AnswerReader()
        self._sequence = 0
        self._pending = False

    def open(self) -> None:
        """Open the port if it is closed; raises BusError."""
        self.port.open()

    def close(self) -> None:
        """Close the port."""
        self.port.close()
        self._pending = False

    def request(self) -> bool:
        """Request the state; returns whether the request was sent; if not, see `problem`. Opens a lost port again."""
        return self._send(BoardRequest(STATE, self._next_sequence()), CHANNEL_BYTES * self.channels)

    def collect(self) -> BoardState | None:
        """Answer to the last request, or None if no valid answer arrived in time."""
        answer = self._receive(STATE)
        return None if answer is None else answer.state

    def read(self) -> BoardState | None:
        """Request the state and wait for it; None if no valid answer arrived in time."""
        return self.collect() if self.request() else None

    def move_to(self, positions: Sequence[int]) -> None:
        """Send desired positions [counts] of all channels to the position controllers of the board.

        Raises:
            BusError: the wrong number of positions, no port, or no confirmation.
        """
        if len(positions) != self.channels:
            raise BusError(f"the potentiometer board has {self.channels} channels, not {len(positions)}.")
        self._ask(BoardRequest(POSITIONS, self._next_sequence(), tuple(positions)), 0, "positions")

    def set_up(self, setup: ChannelSetup) -> None:
        """Send servo and limits of one channel to a board that drives servos; raises BusError, see `move_to`."""
        self._ask(BoardRequest(SETUP, self._next_sequence(), setup=setup), 0, f"setting of channel {setup.channel}")

    def drive(self, action: BoardAction, channel: int = ALL_CHANNELS) -> None:
        """Arm, stop or release the servos of a board that drives servos. A release of one channel stops all others.

        Raises:
            BusError: see `move_to`.
        """
        request = BoardRequest(DRIVE, self._next_sequence(), number=int(action), channel=channel)
        self._ask(request, 0, f"request to {action.name.lower()}")

    def servo(self, channel: int) -> BoardServo:
        """State of a board that drives servos, and of the servo of one channel; raises BusError, see `move_to`."""
        request = BoardRequest(SERVO, self._next_sequence(), channel=channel)
        answer = self._ask(request, SERVO_BYTES, f"question about channel {channel}")
        assert answer.servo is not None
        return answer.servo

    def _ask(self, request: BoardRequest, size: int, what: str) -> BoardAnswer:
        answer = self._receive(request.flag) if self._send(request, size) else None
        if answer is None:
            why = self.problem or (self.refusal.text if self.refusal else "it did not answer")
            raise BusError(f"the potentiometer board at {self.port.path} did not take the {what}: {why}. Send again.")
        return answer

    def _next_sequence(self) -> int:
        self._sequence = (self._sequence + 1) & 0xFF
        return self._sequence

    def _send(self, request: BoardRequest, size: int) -> bool:
        packet = encode_request(request)
        self._pending = False
        try:
            self.port.open()
            self.port.clearPort()
            self.port.writePort(packet)
        except BusError as error:
            self._note_error(error)
            return False
        self.statistics.skipped += len(self.port.leftover)
        self._reader = AnswerReader()
        self.port.setPacketTimeout(ANSWER_BYTES + size + len(packet))
        self.statistics.asked += 1
        self.problem, self.refusal, self._pending = None, None, True
        return True

    def _note_error(self, error: BusError) -> None:
        self.statistics.port_losses += self.problem is None
        self.problem = str(error)

    def _receive(self, flag: int) -> BoardAnswer | None:
        if not self._pending:
            return None
        self._pending = False
        sizes = {STATE: ANSWER_BYTES + CHANNEL_BYTES * self.channels, SERVO: ANSWER_BYTES + SERVO_BYTES}
        missing = sizes.get(flag, ANSWER_BYTES - 1)
        reader, accepted = self._reader, None
        try:
            while accepted is None and self.refusal is None:
                data = self.port.readPort(missing)
                if not data:
                    break
                for answer in reader.feed(data):
                    if answer.flag == REFUSED and answer.sequence == self._sequence:
                        self.refusal = answer.reason
                    elif self._matches(answer, flag):
                        accepted = answer
                missing = max(1, missing - len(data))
        except BusError as error:
            self._note_error(error)
        self.statistics.skipped += reader.skipped
        self.statistics.answered += accepted is not None
        return accepted

    def _matches(self, answer: BoardAnswer, flag: int) -> bool:
        if answer.flag != flag or answer.sequence != self._sequence:
            self.statistics.late += 1
            return False
        return flag != STATE or (answer.state is not None and len(answer.state.positions) == self.channels)
