"""Whatever arrives, an answer is taken only if it is whole, from the servo asked, and as long as what was asked for."""

from __future__ import annotations

import pytest
from bus_line import ChainPort, FedPort, make_servo
from hypothesis import given
from hypothesis import strategies as st

from tensegrity_driver.bus.control_tables import MODELS
from tensegrity_driver.bus.dynamixel_protocol import PacketError, ServoProtocol, Status
from tensegrity_driver.emulator.packets import encode_status
from tensegrity_dynamics.errors import BusError

PROTOCOLS = st.sampled_from((1, 2))
IDS = st.integers(0, 252)
DATA = st.binary(max_size=40)
AWKWARD = st.lists(st.sampled_from([b"\xff\xff\xfd", b"\xff\xff", b"\xfd", b"\x00", b"\x55"]), max_size=8).map(b"".join)
NOISE = st.one_of(st.binary(max_size=60), AWKWARD)


def received(protocol: int, data: bytes, servo: int, size: int) -> Status | PacketError:
    return ServoProtocol(FedPort(data), protocol).receive_status(servo, size)


def error_byte(protocol: int, error: int) -> int:
    return error & (0x5F if protocol == 1 else 0x80)  # not one that refuses


@given(PROTOCOLS, IDS, st.one_of(DATA, AWKWARD), st.integers(0, 255))
def test_a_whole_answer_is_taken_as_it_is(protocol: int, servo: int, data: bytes, error: int) -> None:
    error = error_byte(protocol, error)
    packet = encode_status(protocol, servo, error, data)
    assert received(protocol, packet, servo, len(data)) == Status(servo, error, data)


@given(PROTOCOLS, IDS, st.integers(0, 40), NOISE)
def test_no_value_comes_from_noise(protocol: int, servo: int, size: int, noise: bytes) -> None:
    found = received(protocol, noise, servo, size)
    if isinstance(found, Status):  # noise may happen to hold a packet, as the checksum of protocol 1 is one byte
        assert encode_status(protocol, found.id, found.error, found.data) in noise


@given(PROTOCOLS, st.binary(max_size=300))
def test_random_bytes_never_raise_and_always_end(protocol: int, noise: bytes) -> None:
    for found in ServoProtocol(FedPort(), protocol).decode(noise):
        assert encode_status(protocol, found.id, found.error, found.data) in noise


@given(PROTOCOLS, st.lists(st.tuples(IDS, DATA), max_size=4), NOISE, st.data())
def test_cut_and_merged_packets_give_original_answers_or_nothing(
    protocol: int, answers: list[tuple[int, bytes]], noise: bytes, data: st.DataObject
) -> None:
    packets = [encode_status(protocol, servo, 0, content) for servo, content in answers]
    pieces = [packet[: data.draw(st.integers(0, len(packet)))] + noise for packet in packets]
    stream = b"".join(pieces)
    for found in ServoProtocol(FedPort(), protocol).decode(stream):
        assert encode_status(protocol, found.id, found.error, found.data) in stream


@given(PROTOCOLS, IDS, st.one_of(DATA, AWKWARD), st.data())
def test_a_single_wrong_bit_is_never_a_wrong_value(
    protocol: int, servo: int, content: bytes, data: st.DataObject
) -> None:
    packet = bytearray(encode_status(protocol, servo, 0, content))
    index, bit = data.draw(st.integers(0, len(packet) - 1)), data.draw(st.integers(0, 7))
    packet[index] ^= 1 << bit
    found = received(protocol, bytes(packet), servo, len(content))
    assert isinstance(found, PacketError) or found.data == content


@given(PROTOCOLS, IDS, IDS, DATA, DATA)
def test_answers_of_other_servos_and_of_other_lengths_pass_by(
    protocol: int, servo: int, other: int, content: bytes, foreign: bytes
) -> None:
    expected = encode_status(protocol, servo, 0, content)
    if other != servo or len(foreign) != len(content):
        merged = encode_status(protocol, other, 0, foreign) + expected
        assert received(protocol, merged, servo, len(content)) == Status(servo, 0, content)
        assert received(protocol, merged[: -len(expected)], servo, len(content)) is PacketError.CORRUPT


@pytest.mark.parametrize("protocol", [1, 2])
def test_silence_is_a_timeout_and_half_a_packet_is_corrupt(protocol: int) -> None:
    packet = encode_status(protocol, 3, 0, b"abc")
    assert received(protocol, b"", 3, 3) is PacketError.TIMEOUT
    assert received(protocol, packet[:-1], 3, 3) is PacketError.CORRUPT


@given(st.lists(st.tuples(st.integers(1, 5), st.booleans()), max_size=8))
def test_a_group_is_collected_in_any_order_and_second_answers_are_reported(answers: list[tuple[int, bool]]) -> None:
    stream, whole = b"", []
    for servo, good in answers:
        packet = encode_status(2, servo, 0, bytes((servo, 7)))
        stream += packet if good else packet[:-1] + bytes((packet[-1] ^ 1,))
        whole += [servo] * good
    found, twice, damaged = ServoProtocol(FedPort(stream), 2).receive_group((1, 2, 3, 4, 5), 2)
    assert all(status.data == bytes((servo, 7)) for servo, status in found.items())
    assert set(found) == set(whole)
    assert damaged <= len(answers) - len(whole)
    assert twice <= {servo for servo in whole if whole.count(servo) > 1}


def chain(model: str, ids: tuple[int, ...]) -> tuple[ServoProtocol, ChainPort]:
    port = ChainPort(MODELS[model].protocol, {f"s{i}": make_servo(model, i) for i in ids})
    return ServoProtocol(port, MODELS[model].protocol), port


@pytest.mark.parametrize("model", MODELS)
def test_instructions_reach_servos_and_come_back(model: str) -> None:
    protocol, _ = chain(model, (4, 9))
    number, led = MODELS[model].register("model_number"), MODELS[model].register("led")
    status = protocol.read(9, number.address, 2)
    assert isinstance(status, Status)
    assert int.from_bytes(status.data, "little") == MODELS[model].number
    assert isinstance(protocol.write(4, led.address, b"\1"), Status)
    protocol.sync_write(led.address, 1, {4: b"\0", 9: b"\1"})
    for servo, value in ((4, b"\0"), (9, b"\1")):
        assert protocol.read(servo, led.address, 1) == Status(servo, 0, value)
    assert isinstance(protocol.ping(4), Status)
    assert [each.id for each in protocol.ping_all_answers(9)[0]] == [9]
    assert protocol.ping(5) is PacketError.TIMEOUT


@pytest.mark.parametrize("fast", [False, True])
def test_a_group_of_protocol_2_answers_one_request(fast: bool) -> None:
    protocol, port = chain("XM430-W350", (4, 9, 2))
    ids = (4, 9, 2)
    found = protocol.fast_sync_read(ids, 126, 21) if fast else protocol.sync_read(ids, 126, 21)[0]
    assert set(found) == {4, 9, 2}
    for servo, status in found.items():
        assert protocol.read(servo, 126, 21) == status
    assert len(port.sent) == 4


def fast_answer() -> bytes:
    protocol, port = chain("XM430-W350", (4, 9, 2))
    answers: list[bytes] = []

    def keep(name: str, data: bytes) -> bytes:
        answers.append(data)
        return data

    port.spoil = keep
    protocol.fast_sync_read((4, 9, 2), 126, 21)
    return b"".join(answers)


class AnsweringPort(FedPort):
    """A port that answers every packet with the same bytes."""

    def __init__(self, answer: bytes) -> None:
        super().__init__()
        self.answer = answer

    def feed(self, packet: bytes) -> None:
        self.data += self.answer


FAST = fast_answer()


@given(st.integers(0, len(FAST) - 1), st.integers(0, 7), st.booleans())
def test_a_fast_group_with_anything_wrong_is_nothing(index: int, bit: int, cut: bool) -> None:
    data = bytearray(FAST)
    data[index] ^= 1 << bit
    port = AnsweringPort(bytes(data[:index] if cut else data))
    assert ServoProtocol(port, 2).fast_sync_read((4, 9, 2), 126, 21) == {}


def test_a_fast_group_of_other_servos_is_nothing() -> None:
    assert ServoProtocol(AnsweringPort(FAST), 2).fast_sync_read((9, 4, 2), 126, 21) == {}
    assert ServoProtocol(AnsweringPort(FAST), 2).fast_sync_read((4, 9), 126, 21) == {}


def test_protocol_1_reads_no_groups_and_there_is_no_protocol_3() -> None:
    with pytest.raises(BusError, match="one by one"):
        ServoProtocol(FedPort(), 1).sync_read((1, 2), 36, 8)
    with pytest.raises(BusError, match="no Dynamixel protocol 3"):
        ServoProtocol(FedPort(), 3)


def test_a_rejected_instruction_has_a_reason() -> None:
    one, two = ServoProtocol(FedPort(), 1), ServoProtocol(FedPort(), 2)
    assert two.rejection(Status(1, 0x80 | 4, b"")) == "the value is out of range"
    assert two.rejection(Status(1, 0x80, b"")) is None
    assert one.rejection(Status(1, 0b1000, b"")) == "the value is out of range"
    assert one.rejection(Status(1, 0b100100, b"")) is None


def test_all_servos_of_protocol_2_answer_one_ping() -> None:
    protocol, _ = chain("XL430-W250", (4, 9, 2))
    assert protocol.broadcast_ping(252) == {2, 4, 9}
