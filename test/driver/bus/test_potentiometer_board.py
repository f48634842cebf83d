"""A value of the potentiometer board is always whole and of the question last asked, whatever else arrives."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from bus_line import FedPort, Line
from hypothesis import given
from hypothesis import strategies as st
from patience import PATIENCE_S

from tensegrity_driver.bus.potentiometer_board import PotentiometerBoard
from tensegrity_driver.bus.potentiometer_protocol import (
    POSITIONS,
    STATE,
    BoardAnswer,
    BoardRequest,
    BoardState,
    RequestReader,
    encode_answer,
)
from tensegrity_driver.bus.serial_port import SerialPort
from tensegrity_dynamics.errors import BusError

CHANNELS = 3
STATE_NOW = BoardState((100, 2000, 4095), (110, 2010, 4000), (32768, 32760, 32800))


def answer_to(request: BoardRequest, state: BoardState = STATE_NOW) -> bytes:
    return encode_answer(BoardAnswer(request.flag, request.sequence, state if request.flag == STATE else None))


class BoardPort(FedPort):
    """A port with a board behind it; `spoil` changes what it answers."""

    def __init__(self, spoil: Callable[[bytes], bytes] = lambda data: data) -> None:
        super().__init__()
        self.spoil = spoil
        self.reader = RequestReader(CHANNELS)
        self.moved: list[tuple[int, ...]] = []
        self.gone = False

    def open(self) -> None:
        if self.gone and not self.is_open:
            raise BusError("port fed cannot be opened")
        self.is_open = True

    def feed(self, packet: bytes) -> None:
        if self.gone:
            raise self._lost("unplugged")
        for request in self.reader.feed(packet):
            if request.flag == POSITIONS:
                self.moved.append(request.positions)
            self.data += self.spoil(answer_to(request))


def make_board(spoil: Callable[[bytes], bytes] = lambda data: data) -> tuple[PotentiometerBoard, BoardPort]:
    port = BoardPort(spoil)
    return PotentiometerBoard(port, CHANNELS), port


def test_the_state_is_read_again_and_again_beyond_all_sequence_numbers() -> None:
    board, _ = make_board()
    for _ in range(600):
        assert board.read() == STATE_NOW
    assert (board.statistics.asked, board.statistics.answered) == (600, 600)


def test_positions_are_sent_and_acknowledged() -> None:
    board, port = make_board()
    board.move_to((1, 2, 65535))
    assert port.moved == [(1, 2, 65535)]
    with pytest.raises(BusError, match="3 channels, not 2"):
        board.move_to((1, 2))
    port.spoil = lambda data: data[:-1]
    with pytest.raises(BusError, match="did not take the positions"):
        board.move_to((1, 2, 3))


@given(st.binary(max_size=200))
def test_random_bytes_are_never_a_value(noise: bytes) -> None:
    board, _ = make_board(lambda data: noise)
    assert board.read() is None


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_the_answer_is_found_between_garbage(before: bytes, after: bytes) -> None:
    board, _ = make_board(lambda data: before + data + after)
    found = board.read()
    assert found in (None, STATE_NOW)
    if b"\xff" not in before:
        assert found == STATE_NOW
    board.port.spoil = lambda data: data  # type: ignore[attr-defined]
    assert board.read() == STATE_NOW  # whatever was left over


@given(st.data())
def test_a_single_wrong_bit_is_never_a_value(data: st.DataObject) -> None:
    def spoil(packet: bytes) -> bytes:
        damaged = bytearray(packet)
        damaged[data.draw(st.integers(0, len(packet) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        return bytes(damaged)

    board, _ = make_board(spoil)
    assert board.read() is None


@given(st.integers(0, 26))
def test_a_truncated_answer_is_no_value_and_the_next_one_is_whole(length: int) -> None:
    board, port = make_board(lambda data: data[: min(length, len(data) - 1)])
    assert board.read() is None
    port.spoil = lambda data: data
    assert board.read() == STATE_NOW


@given(st.integers(0, 255), st.booleans())
def test_an_answer_to_another_question_is_never_taken(sequence: int, with_right_one: bool) -> None:
    old = BoardState((9, 9, 9), (9, 9, 9), (9, 9, 9))
    board, port = make_board()
    for _ in range(5):
        board.read()
    expected = 6

    def spoil(data: bytes) -> bytes:
        late = encode_answer(BoardAnswer(STATE, sequence, old))
        return (late if sequence != expected else b"") + (data if with_right_one else b"")

    port.spoil = spoil
    assert board.read() == (STATE_NOW if with_right_one else None)
    assert board.statistics.late == (sequence != expected)


def test_a_late_answer_is_not_the_answer_to_the_next_question() -> None:
    held: list[bytes] = []

    def hold(data: bytes) -> bytes:
        held.append(data)
        return held[-2] if len(held) > 1 else b""

    board, _ = make_board(hold)
    assert [board.read() for _ in range(5)] == [None] * 5
    assert board.statistics.late == 4


def test_a_board_with_another_number_of_channels_is_not_believed() -> None:
    port = BoardPort()
    assert PotentiometerBoard(port, CHANNELS + 1).read() is None


def test_a_lost_port_is_reported_and_opened_again() -> None:
    board, port = make_board()
    assert board.read() == STATE_NOW
    port.gone = True
    assert not board.request()
    assert board.problem is not None
    assert "is gone" in board.problem
    assert board.collect() is None
    assert board.read() is None
    assert board.statistics.port_losses == 1
    port.gone = False
    assert board.read() == STATE_NOW
    assert board.problem is None


def test_nothing_is_collected_that_was_not_asked_for() -> None:
    board, _ = make_board()
    assert board.collect() is None


def test_over_a_terminal_the_board_is_read_in_pieces() -> None:
    reader = RequestReader(CHANNELS)
    with Line(lambda data: b"".join(b"\x00noise" + answer_to(request) for request in reader.feed(data))) as line:
        board = PotentiometerBoard(SerialPort(line.path, 115_200, patience=PATIENCE_S), CHANNELS)
        board.open()
        for _ in range(20):
            assert board.read() == STATE_NOW
        board.close()
        assert board.collect() is None
