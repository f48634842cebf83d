"""The core of the firmware, byte by byte and millisecond by millisecond: what it does with whatever arrives."""

from __future__ import annotations

import subprocess
from itertools import pairwise

import pytest
from firmware_board import BoardBench, Firmware, built, needs_compiler
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_driver.bus.potentiometer_protocol import (
    DRIVE,
    POSITIONS,
    REFUSED,
    SERVO,
    SETUP,
    STATE,
    BoardAction,
    BoardMode,
    BoardReason,
    BoardRequest,
    ChannelSetup,
    encode_request,
)
from tensegrity_driver.emulator.driving_board import BoardLoop

pytestmark = needs_compiler
CHANNELS = 2
GOOD = ChannelSetup(0, 1, True, 500, 3500, 300, 1023)


def bench(channels: int = CHANNELS, start_ms: int = 0) -> BoardBench:
    made = BoardBench(Firmware(channels, start_ms), channels)
    made.run(20)
    return made


def armed(channels: int = CHANNELS, start_ms: int = 0) -> BoardBench:
    made = bench(channels, start_ms)
    made.arm()
    return made


def test_the_example_of_the_documentation() -> None:
    board = Firmware(2)
    for channel, counts in enumerate((1840, 1880)):
        board.convert(channel, counts)
    answer = board.host(bytes.fromhex("FF B0 01 05 F6 03"))
    assert answer.startswith(bytes.fromhex("FF B1 01 05 02 30 07 58 07"))
    assert board.host(bytes.fromhex("FF B0 02 06 30 07 6C 07 41 90"))[2] == REFUSED  # nobody has armed it


requests = st.one_of(
    st.builds(BoardRequest, st.just(STATE), st.integers(0, 255)),
    st.builds(BoardRequest, st.just(POSITIONS), st.integers(0, 255), st.tuples(*[st.integers(0, 65535)] * CHANNELS)),
    st.builds(BoardRequest, st.just(SETUP), st.integers(0, 255), setup=st.just(GOOD)),
    st.builds(BoardRequest, st.just(DRIVE), st.integers(0, 255), number=st.integers(0, 255)),
    st.builds(BoardRequest, st.just(SERVO), st.integers(0, 255), channel=st.integers(0, 255)),
)  # fmt: skip


@given(requests, st.data())
def test_a_request_with_a_wrong_bit_is_ignored(request_, data) -> None:
    packet = bytearray(encode_request(request_))
    packet[data.draw(st.integers(0, len(packet) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    board = Firmware(CHANNELS)
    assert board.host(bytes(packet)) == b""
    assert board.mode == BoardMode.IDLE


@given(requests, st.lists(st.integers(0, 20), max_size=5))
def test_every_whole_request_has_one_answer_however_it_is_cut(request_, cuts: list[int]) -> None:
    packet = encode_request(request_)
    cuts_at = sorted({0, len(packet), *(min(cut, len(packet)) for cut in cuts)})
    board, answer = Firmware(CHANNELS), b""
    for first, end in pairwise(cuts_at):
        answer += board.host(packet[first:end])
    assert answer[:2] == b"\xff\xb1"
    assert answer[2] in (request_.flag, REFUSED)
    assert answer[3] == request_.sequence


@settings(max_examples=50)
@given(st.binary(max_size=300), st.binary(max_size=100))
def test_noise_on_both_wires_never_moves_an_armed_board(from_host: bytes, from_servos: bytes) -> None:
    moved = armed()
    before = list(moved.counts)
    moved.board.host(from_host)
    moved.board.servos(from_servos)
    moved.run(50)
    assert moved.counts == before
    assert moved.speeds() == [0, 0]
    moved.run(120)
    assert moved.state().desired == moved.state().positions  # and it still answers


def test_nothing_gets_torque_or_speed_before_the_board_is_armed() -> None:
    quiet = bench()
    assert quiet.ask(DRIVE, number=BoardAction.ARM).reason is BoardReason.NOT_SET_UP
    assert quiet.ask(SETUP, setup=GOOD).flag == SETUP
    assert quiet.ask(POSITIONS, positions=(3000, 3000)).reason is BoardReason.NOT_ARMED
    quiet.run(200)
    assert quiet.speeds() == [0, 0]
    assert not any(servo.registers.raw("torque_enable") for servo in quiet.servos)


def test_servos_that_turned_when_the_board_restarted_are_stopped() -> None:
    running = BoardBench(Firmware(CHANNELS), CHANNELS)
    for servo in running.servos:
        servo.registers.set_raw("torque_enable", 1)
        servo.registers.set_raw("moving_speed", 200)
    running.run(15)
    assert running.speeds() == [0, 0]


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(0, 600), st.integers(1, 40))
def test_servos_stop_within_half_a_second_after_the_last_set_point_at_any_time(
    start: int, lasting: int, period: int
) -> None:
    board = armed(start_ms=start)
    for _ in range(0, lasting, period):
        board.send(POSITIONS, positions=(3400, 600))
        board.run(period)
    board.send(POSITIONS, positions=(3400, 600))
    board.run(380)
    assert board.status().mode is BoardMode.ARMED
    board.run(80)
    assert board.speeds() == [0, 0]
    assert (board.status().mode, board.status().reason) == (BoardMode.STOPPED, BoardReason.HOST_SILENT)
    stopped = list(board.counts)
    assert board.ask(POSITIONS, positions=(3400, 600)).reason is BoardReason.NOT_ARMED
    board.run(300)
    assert board.counts == pytest.approx(stopped, abs=1.0)


def test_requests_other_than_set_points_do_not_keep_it_going() -> None:
    board = armed()
    board.send(POSITIONS, positions=(3400, 600))
    for _ in range(25):
        board.send(STATE)
        board.send(SERVO, channel=1)
        board.board.host(encode_request(BoardRequest(POSITIONS, 1, (3400, 600)))[:-1] + b"\0")  # a wrong checksum
        board.run(20)
    assert board.speeds() == [0, 0]


def test_a_set_point_beyond_the_limits_leads_to_the_limit() -> None:
    board = armed()
    for _ in range(400):
        board.send(POSITIONS, positions=(4095, 0))
        board.run(20)
    assert board.counts == pytest.approx([3500, 500], abs=2.0)
    assert board.status().mode is BoardMode.ARMED


def test_a_spool_that_turns_by_itself_past_its_limit_stops_the_board() -> None:
    board = armed()
    board.counts[0] = 3540.0
    board.run(20)
    assert (board.status().mode, board.status().reason) == (BoardMode.STOPPED, BoardReason.LIMIT)
    assert board.status().where == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"channel": 2}, {"id": 254}, {"low": 3500}, {"high": 4096}, {"speed": 0}, {"speed": 1024}, {"torque": 1024},
    ],
)  # fmt: skip
def test_a_setting_out_of_range_is_refused(wrong: dict[str, int]) -> None:
    setting = ChannelSetup(**{**vars(GOOD), **wrong})
    assert bench().ask(SETUP, setup=setting).reason is BoardReason.BAD_NUMBERS


def test_two_channels_with_one_servo_are_refused() -> None:
    board = bench()
    assert board.ask(SETUP, setup=GOOD).flag == SETUP
    assert board.ask(SETUP, setup=ChannelSetup(1, 1, True, 500, 3500, 300, 1023)).reason is BoardReason.BAD_NUMBERS


def test_settings_do_not_change_while_it_drives() -> None:
    assert armed().ask(SETUP, setup=GOOD).reason is BoardReason.IN_USE


def test_an_answer_of_another_servo_is_none() -> None:
    board = armed()
    board.chain.deaf.add("1")
    for _ in range(20):
        board.send(POSITIONS, positions=(2000, 2050))
        board.run(20)
        board.board.servos(bytes.fromhex("FF FF 01 02 00 FC"))
    assert (board.status().reason, board.status().where) == (BoardReason.SERVO_SILENT, 1)


counts = st.integers(21, 4074)


@settings(max_examples=60)
@given(st.lists(st.tuples(counts, counts), min_size=1, max_size=60), st.integers(1, 1023), st.booleans())
def test_the_loop_in_integers_is_the_law_of_the_document(steps, fastest: int, sense: bool) -> None:
    """Against the law in real numbers of the emulated board, for any course of set point and reading."""
    setting = ChannelSetup(0, 1, sense, 1000, 3000, fastest, 1023)
    law = BoardLoop(setting, desired=steps[0][1])
    board = BoardBench(Firmware(1), 1)
    board.run(20)
    board.counts[0] = 2000.0
    board.ask(SETUP, setup=setting)
    board.ask(DRIVE, number=BoardAction.ARM)
    board.run(5)
    if board.status().mode is not BoardMode.ARMED:
        board.run(10)
    while board.board.now % 10:  # periods begin where the board began
        board.run(1)
    for reading, desired in steps:
        reading = min(max(reading, 970), 3030)  # within the margin beyond which it stops
        board.send(POSITIONS, positions=(desired,))
        board.counts[0] = float(reading)
        board.servos[0].motion.jammed = True
        law.desired = desired
        board.run(10)
        expected = law.speed(reading) * (1 if sense else -1)
        assert board.speeds()[0] == pytest.approx(expected, abs=1.0)


@pytest.mark.parametrize("seed", [1, 2])
def test_random_traffic_under_sanitizers_breaks_no_law(seed: int) -> None:
    program = built("fuzz", SANITIZE="address,undefined")
    done = subprocess.run([program, str(seed), "200000"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    figures = dict(zip(done.stdout.split()[::2], map(int, done.stdout.split()[1::2]), strict=True))
    assert figures["armed"] > 10000
    assert figures["moves"] > 1000
