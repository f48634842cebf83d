"""The potentiometer board at a serial port of its own, read once per bus cycle.

The board answers one request at a time (see `potentiometer_protocol`), and its answer repeats the sequence number of
the request. Answers that are late, damaged or of another length are counted and discarded, so that a value always
belongs to the last request. Request and answer are two steps, so that the servos are read while the board sends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tensegrity_dynamics.errors import BusError

from .potentiometer_protocol import (
    POSITIONS,
    STATE,
    AnswerReader,
    BoardAnswer,
    BoardRequest,
    BoardState,
    encode_request,
)
from .serial_port import SerialPort

ANSWER_BYTES = 7
"""Bytes of a state answer without channels."""
CHANNEL_BYTES = 6
"""Bytes of a state answer per channel."""


@dataclass
class BoardStatistics:
    """Counts so far: requests, accepted answers, answers to older requests, discarded bytes, port losses."""

    asked: int = 0
    answered: int = 0
    late: int = 0
    skipped: int = 0
    port_losses: int = 0


class PotentiometerBoard:
    """The board on the side of the host.

    Args:
        port: of the board, open or not.
        channels: number of its potentiometers; answers with another number are discarded.

    Attributes:
        problem: error of the last request, or None.
    """

    def __init__(self, port: SerialPort, channels: int) -> None:
        self.port, self.channels = port, channels
        self.statistics = BoardStatistics()
        self.problem: str | None = None
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
        """Request the state; returns whether that could be sent, else see `problem`. Opens a lost port again."""
        return self._send(BoardRequest(STATE, self._next_sequence()), CHANNEL_BYTES * self.channels)

    def collect(self) -> BoardState | None:
        """Answer to the last request, or None where no valid one arrived in time."""
        answer = self._receive(STATE)
        return None if answer is None else answer.state

    def read(self) -> BoardState | None:
        """Request the state and wait for it; None where no valid answer arrived in time."""
        return self.collect() if self.request() else None

    def move_to(self, positions: Sequence[int]) -> None:
        """Send desired positions [counts] of all channels to the position controllers of the board.

        Raises:
            BusError: the wrong number of positions, no port, or no confirmation.
        """
        if len(positions) != self.channels:
            raise BusError(f"the potentiometer board has {self.channels} channels, not {len(positions)}.")
        sent = self._send(BoardRequest(POSITIONS, self._next_sequence(), tuple(positions)), 0)
        if not sent or self._receive(POSITIONS) is None:
            why = self.problem or "it did not answer"
            raise BusError(
                f"the potentiometer board at {self.port.path} did not take the positions: {why}. Send again."
            )

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
        self.problem, self._pending = None, True
        return True

    def _note_error(self, error: BusError) -> None:
        self.statistics.port_losses += self.problem is None
        self.problem = str(error)

    def _receive(self, flag: int) -> BoardAnswer | None:
        if not self._pending:
            return None
        self._pending = False
        missing = ANSWER_BYTES + CHANNEL_BYTES * self.channels if flag == STATE else ANSWER_BYTES - 1
        reader, accepted = self._reader, None
        try:
            while accepted is None:
                data = self.port.readPort(missing)
                if not data:
                    break
                for answer in reader.feed(data):
                    if self._matches(answer, flag):
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
        return flag == POSITIONS or (answer.state is not None and len(answer.state.positions) == self.channels)
