"""Messages of the potentiometer board survive any stream around them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensegrity_driver.bus.potentiometer_protocol import (
    DRIVE,
    POSITIONS,
    REFUSED,
    SERVO,
    SETUP,
    STATE,
    AnswerReader,
    BoardAnswer,
    BoardMode,
    BoardReason,
    BoardRequest,
    BoardServo,
    BoardState,
    ChannelSetup,
    RequestReader,
    crc16,
    encode_answer,
    encode_request,
)
from tensegrity_dynamics.errors import BusError

WORD, BYTE = st.integers(0, 65535), st.integers(0, 255)


@st.composite
def states(draw, most: int = 14) -> BoardState:
    count = draw(st.integers(0, most))
    arrays = [tuple(draw(st.lists(WORD, min_size=count, max_size=count))) for _ in range(3)]
    return BoardState(*arrays)


answers = st.one_of(
    st.builds(BoardAnswer, st.just(STATE), st.integers(0, 255), states()),
    st.builds(BoardAnswer, st.sampled_from((POSITIONS, SETUP, DRIVE)), st.integers(0, 255)),
    st.builds(BoardAnswer, st.just(REFUSED), st.integers(0, 255), reason=st.sampled_from(BoardReason)),
    st.builds(
        BoardAnswer,
        st.just(SERVO),
        st.integers(0, 255),
        servo=st.builds(
            BoardServo, st.sampled_from(BoardMode), st.sampled_from(BoardReason), BYTE, BYTE, BYTE, BYTE, st.booleans(),
            WORD, WORD, WORD, BYTE, BYTE,
        ),
    ),
)  # fmt: skip


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    cuts_at = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[a:b] for a, b in pairwise(cuts_at)]


def test_the_checksum_is_the_one_of_protocol_two() -> None:
    # ping of servo 1, from the description of protocol 2.0
    assert crc16(bytes.fromhex("FFFFFD00010300 01".replace(" ", ""))) == 0x4E19


@given(st.lists(answers, max_size=4), st.lists(st.integers(0, 400), max_size=6))
def test_answers_come_out_as_they_went_in_however_the_stream_is_cut(sent: list[BoardAnswer], cuts: list[int]) -> None:
    reader, found = AnswerReader(), []
    for piece in pieces(b"".join(encode_answer(each) for each in sent), cuts):
        found += reader.feed(piece)
    assert found == sent
    assert reader.skipped == 0


@given(st.binary(max_size=60), answers, st.integers(0, 255))
def test_a_whole_answer_behind_garbage_is_found(garbage: bytes, answer: BoardAnswer, fill: int) -> None:
    reader = AnswerReader()
    # enough bytes behind it that no false start in the garbage can still be waiting for more
    found = reader.feed(garbage + encode_answer(answer) + bytes([fill]) * 1600)
    assert answer in found


@given(st.integers(1, 14), st.integers(0, 255), st.data())
def test_requests_come_out_as_they_went_in(channels: int, sequence: int, data: st.DataObject) -> None:
    move = BoardRequest(POSITIONS, sequence, tuple(data.draw(st.lists(WORD, min_size=channels, max_size=channels))))
    numbers = [data.draw(WORD) for _ in range(4)]
    setup = ChannelSetup(data.draw(BYTE), data.draw(BYTE), data.draw(st.booleans()), *numbers)
    sent = [
        move,
        BoardRequest(STATE, sequence),
        BoardRequest(SETUP, sequence, setup=setup),
        BoardRequest(DRIVE, sequence, number=data.draw(BYTE), channel=data.draw(BYTE)),
        BoardRequest(SERVO, sequence, channel=data.draw(BYTE)),
    ]
    stream = b"".join(map(encode_request, sent))
    cut = data.draw(st.integers(0, len(stream)))
    reader = RequestReader(channels)
    assert reader.feed(stream[:cut]) + reader.feed(stream[cut:]) == sent


@given(answers, st.integers(0, 10_000), st.integers(1, 255))
def test_a_damaged_answer_is_never_taken_for_another(answer: BoardAnswer, index: int, change: int) -> None:
    data = bytearray(encode_answer(answer))
    data[index % len(data)] ^= change  # a change within one byte: a CRC-16 finds all of them
    assert AnswerReader().feed(bytes(data)) == []


@given(st.lists(st.binary(max_size=40), max_size=5))
def test_no_bytes_make_the_readers_fail(chunks: list[bytes]) -> None:
    request, answer = RequestReader(12), AnswerReader()
    for chunk in chunks:
        request.feed(chunk)
        answer.feed(chunk)
    request.end_of_burst()
    answer.end_of_burst()
    assert request.feed(encode_request(BoardRequest(STATE, 7))) == [BoardRequest(STATE, 7)]
    assert answer.feed(encode_answer(BoardAnswer(POSITIONS, 7))) == [BoardAnswer(POSITIONS, 7)]


def test_numbers_that_do_not_fit_are_refused() -> None:
    with pytest.raises(BusError, match="16-bit"):
        encode_request(BoardRequest(POSITIONS, 0, (70000,)))
    with pytest.raises(BusError, match="no request 9"):
        encode_request(BoardRequest(9, 0))
    with pytest.raises(BusError, match="same number"):
        BoardState((1,), (), ())
