"""Registers are written for certain, cycles repeat within their budget, losses and doubled ids are noticed."""

from __future__ import annotations

import random

import pytest
from bus_line import ChainPort, make_servo, turned_to
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_driver.bus.control_tables import MODELS
from tensegrity_driver.bus.dynamixel_bus import Bus
from tensegrity_driver.bus.dynamixel_protocol import ALERT, Status
from tensegrity_driver.bus.statistics import WINDOW_CYCLES
from tensegrity_dynamics.errors import BusError

AX, XM = MODELS["AX-12A"], MODELS["XM430-W350"]
MODEL = {1: AX, 2: XM}
BLOCKS = {1: (36, 8), 2: (126, 21)}


def make_bus(protocol: int, ids: tuple[int, ...] = (1, 2, 3, 4), **options: int | bool) -> tuple[Bus, ChainPort]:
    port = ChainPort(protocol, {f"s{i}": make_servo(MODEL[protocol].name, i) for i in ids})
    return Bus(port, protocol, **options), port  # type: ignore[arg-type]


def damage(data: bytes) -> bytes:
    return data[:-1] + bytes((data[-1] ^ 0x10,))


both = pytest.mark.parametrize("protocol", [1, 2])


# -- single registers ------------------------------------------------------------------------------------------------


@both
def test_a_register_is_written_and_reads_back(protocol: int) -> None:
    bus, _ = make_bus(protocol)
    delay = MODEL[protocol].register("return_delay")
    bus.write(3, delay, 20e-6)
    assert bus.read(3, delay) == pytest.approx(20e-6)
    assert bus.read(2, delay) == pytest.approx(500e-6)


@both
def test_what_is_right_already_is_not_written_again(protocol: int) -> None:
    bus, port = make_bus(protocol)
    delay = MODEL[protocol].register("return_delay")
    assert bus.write_if_changed(1, delay, 0.0)
    port.sent.clear()
    assert not bus.write_if_changed(1, delay, 0.0)
    assert len(port.sent) == 1  # a read


@both
def test_a_write_whose_answer_is_lost_is_verified_all_the_same(protocol: int) -> None:
    bus, port = make_bus(protocol)
    size = len(port.chain.servos["s1"].status(0, b""))
    port.spoil = lambda name, data: b"" if len(data) == size else data  # answers to writes carry nothing
    bus.write(1, MODEL[protocol].register("led"), 1.0)
    assert port.chain.servos["s1"].registers.raw("led") == 1


@both
def test_damaged_answers_are_asked_again_and_give_up_in_words(protocol: int) -> None:
    bus, port = make_bus(protocol)
    bad = iter([True, True, False])
    port.spoil = lambda name, data: damage(data) if next(bad) else data
    assert bus.read(1, MODEL[protocol].register("model_number")) == MODEL[protocol].number
    port.spoil = lambda name, data: damage(data)
    with pytest.raises(BusError, match=r"servo 1 .*firmware could not be read: damaged answers in 3 tries"):
        bus.read(1, MODEL[protocol].register("firmware"))
    with pytest.raises(BusError, match=r"servo 77 .*firmware could not be read: no answer"):
        bus.read(77, MODEL[protocol].register("firmware"))


def test_a_refused_write_says_why() -> None:
    bus, _ = make_bus(2)
    bus.write(1, XM.register("torque_enable"), 1.0)
    with pytest.raises(BusError, match=r"operating_mode could not be set to 5: .*cannot be read or written now"):
        bus.write(1, XM.register("operating_mode"), 5.0)
    with pytest.raises(BusError, match="present_position can only be read"):
        bus.write(1, XM.register("present_position"), 0.0)
    with pytest.raises(BusError, match="goal_current"):
        bus.write(1, XM.register("goal_current"), 99.0)


def test_a_value_that_does_not_stick_is_noticed() -> None:
    bus, port = make_bus(2)
    servo = port.chain.servos["s1"]
    servo.answer = lambda packet: servo.status(0, b"\0") if packet.instruction == 2 else servo.status(0, b"")  # type: ignore[method-assign]
    with pytest.raises(BusError, match=r"led was set to 1 but reads 0"):
        bus.write(1, XM.register("led"), 1.0)


def test_a_reboot_is_for_protocol_2() -> None:
    bus, port = make_bus(2)
    bus.write(2, XM.register("torque_enable"), 1.0)
    bus.reboot(2)
    assert port.chain.servos["s2"].registers.raw("torque_enable") == 0
    with pytest.raises(BusError, match="no answer"):
        bus.reboot(77)
    with pytest.raises(BusError, match="protocol 1 knows no reboot"):
        make_bus(1)[0].reboot(1)


# -- cycles ----------------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("fast", [False, True])
def test_a_group_reads_what_each_servo_alone_says(protocol: int, fast: bool) -> None:
    bus, port = make_bus(protocol, fast=fast)
    for i, servo in enumerate(port.chain.servos.values()):
        turned_to(servo, 0.3 * i)
    bus.begin_cycle()
    found = bus.sync_read((3, 1, 4), *BLOCKS[protocol])
    assert set(found) == {3, 1, 4}
    for servo_id, status in found.items():
        assert status == bus.read_block(servo_id, *BLOCKS[protocol])
    health = bus.end_cycle()
    assert (health.packets, health.bad_packets) == (6, 0)
    assert bus.statistics.rate == 0.0
    assert bus.statistics.exchanges == (6 if protocol == 1 else 4)


@both
def test_a_group_is_written_in_one_packet(protocol: int) -> None:
    bus, port = make_bus(protocol)
    led = MODEL[protocol].register("led")
    bus.sync_write(led.address, led.size, {1: b"\1", 3: b"\1"})
    bus.sync_write(led.address, led.size, {})
    assert len(port.sent) == 1
    assert [each.registers.raw("led") for each in port.chain.servos.values()] == [1, 0, 1, 0]


@both
def test_a_damaged_answer_is_recovered_within_the_cycle(protocol: int) -> None:
    bus, port = make_bus(protocol)
    state = {"bad": True}

    def spoil(name: str, data: bytes) -> bytes:
        if name == "s2" and state["bad"]:
            state["bad"] = False
            return damage(data)
        return data

    port.spoil = spoil
    bus.begin_cycle()
    assert set(bus.sync_read((1, 2, 3), *BLOCKS[protocol])) == {1, 2, 3}
    health = bus.end_cycle()
    assert (health.packets, health.bad_packets) == (4, 1)
    assert (bus.statistics.retries, bus.statistics.recovered) == (1, 1)


def test_one_silent_servo_does_not_spoil_a_fast_group() -> None:
    bus, port = make_bus(2, fast=True)
    port.chain.deaf.add("s3")
    bus.begin_cycle()
    assert set(bus.sync_read((1, 2, 3, 4), *BLOCKS[2])) == {1, 2, 4}


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from((1, 2)), st.booleans(), st.integers(0, 5), st.floats(0.0, 1.0), st.integers(0, 2**31),
    st.sets(st.integers(1, 4)),
)  # fmt: skip
def test_a_cycle_never_sends_more_than_its_budget_and_takes_no_wrong_value(
    protocol: int, fast: bool, retries: int, share: float, seed: int, deaf: set[int]
) -> None:
    bus, port = make_bus(protocol, retries=retries, fast=fast)
    chance = random.Random(seed)
    port.chain.deaf = {f"s{i}" for i in deaf}

    def spoil(name: str, data: bytes) -> bytes:
        if chance.random() >= share:
            return data
        how = chance.randrange(4)
        if how == 0:
            return data[: chance.randrange(len(data))]
        if how == 1:
            return bytes(chance.randrange(256) for _ in range(chance.randrange(20))) + data
        if how == 2:
            return damage(data)
        return data + data

    port.spoil = spoil
    for _ in range(5):
        port.sent.clear()
        bus.begin_cycle()
        found = bus.sync_read((1, 2, 3, 4), *BLOCKS[protocol])
        health = bus.end_cycle()
        assert len(port.sent) <= (4 if protocol == 1 else 1) + retries
        assert not set(found) & deaf
        start, size = BLOCKS[protocol]
        for i, status in found.items():
            assert status.data == bytes(port.chain.servos[f"s{i}"].registers.memory[start : start + size])
        assert health.bad_packets <= health.packets


# -- port ------------------------------------------------------------------------------------------------------------


@both
def test_a_lost_port_is_an_error_until_it_is_back(protocol: int) -> None:
    bus, port = make_bus(protocol)
    assert not bus.begin_cycle()
    port.gone = True
    with pytest.raises(BusError, match="is gone"):
        bus.sync_read((1, 2), *BLOCKS[protocol])
    for _ in range(3):
        with pytest.raises(BusError, match="cannot be opened"):
            bus.begin_cycle()
    port.gone = False
    assert bus.begin_cycle()
    assert set(bus.sync_read((1, 2), *BLOCKS[protocol])) == {1, 2}
    assert not bus.begin_cycle()
    assert (bus.statistics.port_losses, bus.statistics.reopenings) == (1, 1)


def test_a_port_that_was_closed_on_purpose_is_not_a_loss() -> None:
    bus, _ = make_bus(2)
    bus.open()
    bus.close()
    assert not bus.open()
    assert bus.statistics.reopenings == 0


# -- doubled ids and other troubles ----------------------------------------------------------------------------------


@both
def test_a_second_answer_to_one_question_is_a_doubled_id(protocol: int) -> None:
    bus, port = make_bus(protocol)
    port.spoil = lambda name, data: data + data if name == "s2" else data
    found: tuple[int, ...] = ()
    for _ in range(4):
        bus.begin_cycle()
        bus.sync_read((1, 2, 3), *BLOCKS[protocol])
        found = bus.end_cycle().duplicate_ids
    assert found == (2,)
    port.spoil = lambda name, data: data
    for _ in range(WINDOW_CYCLES + 1):
        bus.begin_cycle()
        bus.sync_read((1, 2, 3), *BLOCKS[protocol])
        found = bus.end_cycle().duplicate_ids
    assert found == ()
    port.spoil = lambda name, data: data + data
    assert len(bus.ping(3)) == 2


@both
def test_an_answer_that_comes_late_is_no_doubled_id(protocol: int) -> None:
    bus, port = make_bus(protocol)
    held: list[bytes] = []

    def late(name: str, data: bytes) -> bytes:
        if name != "s2":
            return data
        if not held:
            held.append(data)
            return b""
        return held.pop() + data

    port.spoil = late
    for _ in range(WINDOW_CYCLES):
        bus.begin_cycle()
        bus.sync_read((1, 2, 3), *BLOCKS[protocol])
        assert bus.end_cycle().duplicate_ids == ()


@both
def test_answers_of_one_id_alone_that_are_always_damaged_are_a_doubled_id(protocol: int) -> None:
    bus, port = make_bus(protocol)
    port.spoil = lambda name, data: damage(data) if name == "s2" else data
    found: tuple[int, ...] = ()
    for _ in range(12):
        bus.begin_cycle()
        bus.sync_read((1, 2, 3), *BLOCKS[protocol])
        found = bus.end_cycle().duplicate_ids
    assert found == (2,)


@both
def test_a_silent_servo_and_a_noisy_line_are_no_doubled_ids(protocol: int) -> None:
    for spoil in (lambda name, data: b"" if name == "s2" else data, lambda name, data: damage(data)):
        bus, port = make_bus(protocol)
        port.spoil = spoil
        for _ in range(WINDOW_CYCLES):
            bus.begin_cycle()
            bus.sync_read((1, 2, 3), *BLOCKS[protocol])
            assert bus.end_cycle().duplicate_ids == ()


@both
def test_statistics_tell_missing_from_damaged(protocol: int) -> None:
    bus, port = make_bus(protocol, retries=0)
    port.spoil = lambda name, data: b"" if name == "s2" else data
    bus.begin_cycle()
    assert bus.read_block(1, *BLOCKS[protocol]) is not None
    assert bus.read_block(2, *BLOCKS[protocol]) is None
    port.spoil = lambda name, data: damage(data)
    assert bus.read_block(3, *BLOCKS[protocol]) is None
    counts = bus.statistics
    assert (counts.packets, counts.missing, counts.damaged, counts.retries) == (3, 1, 1, 0)
    assert counts.exchanges == 1
    assert 0.0 < counts.latency_mean <= counts.latency_worst


def test_error_bits_are_counted_by_servo() -> None:
    bus, port = make_bus(2)
    port.chain.servos["s2"].motion.errors = 32
    bus.begin_cycle()
    found = bus.sync_read((1, 2, 3), *BLOCKS[2])
    assert {servo for servo, status in found.items() if status.error & ALERT} == {2}
    assert bus.statistics.alerts == {2: 1}
    assert isinstance(found[2], Status)


def test_senseless_settings_are_refused() -> None:
    with pytest.raises(BusError, match="zero or more"):
        make_bus(2, retries=-1)
