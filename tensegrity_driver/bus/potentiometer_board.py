"""The potentiometer board on its own port: asked for its state in every cycle, believed only where all is right.

The board answers one question at a time (`board_packets`), and its answer carries the sequence number of the question:
what comes late, damaged, short or merged with something else is counted and left aside, so that a value is always of
the question last asked. Asking and collecting are two steps, so that the servos can be read while the board sends.
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
"""Bytes of an answer without channels; every channel adds six."""


@dataclass
class BoardStatistics:
    """Counts since the board was made: questions, answers taken, answers to older questions, bytes left aside."""

    asked: int = 0
    answered: int = 0
    late: int = 0
    skipped: int = 0
    port_losses: int = 0


class PotentiometerBoard:
    """The board, as its host sees it.

    Args:
        port: of the board, open or not.
        channels: how many potentiometers it has; an answer with another number is not believed.
    """

    def __init__(self, port: SerialPort, channels: int) -> None:
        self.port, self.channels = port, channels
        self.statistics = BoardStatistics()
        self.problem: str | None = None
        self._reader = AnswerReader()
        self._sequence = 0
        self._waiting = False

    def open(self) -> None:
        """Open the port, or do nothing if it is open; raises BusError."""
        self.port.open()

    def close(self) -> None:
        """Close the port."""
        self.port.close()
        self._waiting = False

    def ask(self) -> bool:
        """Ask for the state; returns whether that was possible. A lost port is opened again; `problem` says why not."""
        return self._send(BoardRequest(STATE, self._next()), 6 * self.channels)

    def collect(self) -> BoardState | None:
        """The answer to the last question, or None where none came whole within its time."""
        answer = self._receive(STATE)
        return None if answer is None else answer.state

    def read(self) -> BoardState | None:
        """Ask and collect."""
        return self.collect() if self.ask() else None

    def move_to(self, positions: Sequence[int]) -> None:
        """Send new positions [counts] for all channels to the board's own controllers.

        Raises:
            BusError: the wrong number of positions, no port, or no answer that they were taken.
        """
        if len(positions) != self.channels:
            raise BusError(f"the potentiometer board has {self.channels} channels, not {len(positions)}.")
        sent = self._send(BoardRequest(POSITIONS, self._next(), tuple(positions)), 0)
        if not sent or self._receive(POSITIONS) is None:
            why = self.problem or "it did not answer"
            raise BusError(
                f"the potentiometer board at {self.port.path} did not take the positions: {why}. Send again."
            )

    def _next(self) -> int:
        self._sequence = (self._sequence + 1) & 0xFF
        return self._sequence

    def _send(self, request: BoardRequest, size: int) -> bool:
        packet = encode_request(request)
        self._waiting = False
        try:
            self.port.open()
            self.port.clearPort()
            self.port.writePort(packet)
        except BusError as problem:
            self._lost(problem)
            return False
        self.statistics.skipped += len(self.port.leftover)
        self._reader = AnswerReader()
        self.port.setPacketTimeout(ANSWER_BYTES + size + len(packet))
        self.statistics.asked += 1
        self.problem, self._waiting = None, True
        return True

    def _lost(self, problem: BusError) -> None:
        self.statistics.port_losses += self.problem is None
        self.problem = str(problem)

    def _receive(self, flag: int) -> BoardAnswer | None:
        if not self._waiting:
            return None
        self._waiting = False
        wanted = ANSWER_BYTES + 6 * self.channels if flag == STATE else ANSWER_BYTES - 1
        reader, found = self._reader, None
        try:
            while found is None:
                data = self.port.readPort(wanted)
                if not data:
                    break
                for answer in reader.feed(data):
                    if self._fits(answer, flag):
                        found = answer
                wanted = max(1, wanted - len(data))
        except BusError as problem:
            self._lost(problem)
        self.statistics.skipped += reader.skipped
        self.statistics.answered += found is not None
        return found

    def _fits(self, answer: BoardAnswer, flag: int) -> bool:
        if answer.flag != flag or answer.sequence != self._sequence:
            self.statistics.late += 1
            return False
        return flag == POSITIONS or (answer.state is not None and len(answer.state.positions) == self.channels)
