"""Emulated servos on a bench: dynamixel_sdk is the master, so that their bytes are checked by somebody else's."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import dynamixel_sdk as sdk
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from patience import PatientPort, until

from tensegrity_driver.bus.control_tables import MODELS
from tensegrity_driver.emulator.emulated_servo import EmulatedServo
from tensegrity_driver.emulator.motor_model import Drive, turn
from tensegrity_driver.emulator.packets import (
    Instruction,
    InstructionPacket,
    encode_packet,
    instruction_reader,
    stuffed,
    unstuffed,
)
from tensegrity_driver.emulator.pseudo_terminal import PseudoTerminal, Server
from tensegrity_driver.emulator.register_file import RegisterFile
from tensegrity_driver.emulator.servo_chain import ServoChain
from tensegrity_driver.emulator.servo_physics import OVERHEATING_BIT, OVERLOAD_BIT, OVERLOAD_TIME_S, ServoPhysics
from tensegrity_driver.emulator.wire_delay import WireDelay, WireSettings
from tensegrity_driver.servos.motors import MOTORS
from tensegrity_dynamics.errors import BusError

SUCCESS, TIMEOUT, CORRUPT = sdk.COMM_SUCCESS, sdk.COMM_RX_TIMEOUT, sdk.COMM_RX_CORRUPT


def encode_instruction(protocol: int, packet: InstructionPacket) -> bytes:
    """Bytes of an instruction, as a host sends it."""
    return encode_packet(protocol, packet.id, bytes((packet.instruction,)) + packet.parameters)


class Bench:
    """Servos without load on a bus, and the SDK as master."""

    def __init__(self, folder: Path, model: str, count: int = 3, wire: WireSettings | None = None) -> None:
        self.servos = {str(k): EmulatedServo(MODELS[model], MOTORS[model], mounted=1.0) for k in range(1, count + 1)}
        for name, servo in self.servos.items():
            servo.registers.set_raw("id", int(name))
            servo.registers.set_raw("return_delay", 0)
        self.protocol = MODELS[model].protocol
        self.chain, self.wire = ServoChain(self.servos, self.protocol), WireDelay(wire or WireSettings())
        self.terminal = PseudoTerminal(
            folder / "bus",
            lambda data: self.wire.deliver(data, self.chain.feed(data)),
            lambda: self.wire.deliver(b"", self.chain.end_of_burst()),
        )
        self.terminal.plug()
        self.lock = threading.RLock()
        self.server = Server([self.terminal], self.lock)
        self.port = PatientPort(str(folder / "bus"))
        self.host = sdk.PacketHandler(float(self.protocol))

    def address(self, name: str) -> int:
        return next(iter(self.servos.values())).model.registers[name].address

    def write(self, id_: int, name: str, raw: int) -> tuple[int, int]:
        size = self.servos["1"].model.registers[name].size
        data = list(raw.to_bytes(size, "little"))
        result, error = self.host.writeTxRx(self.port, id_, self.address(name), size, data)
        return result, error

    def read(self, id_: int, name: str) -> tuple[int, int, int]:
        size = self.servos["1"].model.registers[name].size
        data, result, error = self.host.readTxRx(self.port, id_, self.address(name), size)
        return int.from_bytes(bytes(data), "little"), result, error

    def raw(self, data: bytes, length: int) -> bytes:
        """Send bytes as they are; returns what comes back, up to `length` bytes."""
        self.port.clearPort()
        self.port.writePort(data)
        return self.port.take(length)

    def close(self) -> None:
        self.port.closePort()
        self.server.close()


@pytest.fixture
def bench(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Bench]:
    made = Bench(tmp_path, request.param)
    yield made
    made.close()


old = pytest.mark.parametrize("bench", ["AX-12A"], indirect=True)
new = pytest.mark.parametrize("bench", ["XM430-W350"], indirect=True)
both = pytest.mark.parametrize("bench", ["AX-12A", "XL430-W250", "XM430-W350", "XM430-W210"], indirect=True)


# -- bytes ---------------------------------------------------------------------------------------------------------

packets = st.builds(
    InstructionPacket, st.integers(0, 0xFE), st.sampled_from([1, 2, 3, 4, 0x83]), st.binary(max_size=30)
)
marked = st.lists(st.sampled_from([b"\xff", b"\xff\xff", b"\xfd", b"\x00", b"\x01", b"\x07", b"\x55"]), max_size=12)
garbage = st.one_of(st.binary(max_size=40), marked.map(b"".join))


@pytest.mark.parametrize("protocol", [1, 2])
@given(sent=st.lists(packets, max_size=4), cuts=st.lists(st.integers(0, 300), max_size=5))
def test_packets_come_out_as_they_went_in_however_the_stream_is_cut(protocol: int, sent, cuts) -> None:
    stream = b"".join(encode_instruction(protocol, each) for each in sent)
    reader, found, before = instruction_reader(protocol), [], 0
    for cut in [*sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]:
        found += reader.feed(stream[before:cut])
        before = cut
    assert found == sent
    assert reader.skipped == 0


@pytest.mark.parametrize("protocol", [1, 2])
@given(before=garbage, packet=packets)
def test_a_whole_packet_behind_garbage_is_found_once_the_line_is_quiet(protocol: int, before: bytes, packet) -> None:
    reader = instruction_reader(protocol)
    found = reader.feed(before + encode_instruction(protocol, packet)) + reader.end_of_burst()
    whole = [each for each in found if each.whole]
    assume(not whole or whole[0] == packet)  # one byte of checksum lets some garbage pass as a packet
    assert whole == [packet]


@pytest.mark.parametrize("protocol", [1, 2])
@given(chunks=st.lists(st.one_of(garbage, packets.map(lambda each: encode_instruction(1, each)[:-2])), max_size=6))
def test_no_bytes_make_the_reader_fail(protocol: int, chunks: list[bytes]) -> None:
    reader = instruction_reader(protocol)
    for chunk in chunks:
        reader.feed(chunk)
    reader.end_of_burst()
    ping = InstructionPacket(1, Instruction.PING)
    assert reader.feed(encode_instruction(protocol, ping)) == [ping]


@given(data=st.binary(max_size=60))
@settings(max_examples=50)
def test_no_bytes_make_the_servos_fail(data: bytes) -> None:
    for model, protocol in (("AX-12A", 1), ("XM430-W350", 2)):
        servo = EmulatedServo(MODELS[model], MOTORS[model])
        chain = ServoChain({"one": servo}, protocol)
        chain.feed(data)
        chain.end_of_burst()
        for instruction in (*range(0, 12), 0x10, 0x82, 0x83, 0x8A, 0x92, 0x93):
            for id_ in (servo.id, 0xFE):
                chain.feed(encode_instruction(protocol, InstructionPacket(id_, instruction, data)))


@given(data=st.one_of(st.binary(max_size=40), st.lists(st.sampled_from([255, 253, 0]), max_size=30).map(bytes)))
def test_stuffing_hides_every_header_and_is_undone(data: bytes) -> None:
    assert b"\xff\xff\xfd\x00" not in stuffed(data)
    assert unstuffed(stuffed(data)) == data


def test_packets_are_those_of_the_descriptions() -> None:
    ping = InstructionPacket(1, Instruction.PING)
    assert encode_instruction(1, ping) == bytes.fromhex("FFFF010201FB")
    assert encode_instruction(2, ping) == bytes.fromhex("FFFFFD00010300014E19".replace("014E19", "01194E"))
    read = InstructionPacket(1, Instruction.READ, bytes.fromhex("84000400"))
    assert encode_instruction(2, read) == bytes.fromhex("FFFFFD0001070002840004001D15")


def test_an_unknown_protocol_is_refused() -> None:
    with pytest.raises(BusError, match="protocol"):
        instruction_reader(3)


# -- the bus -------------------------------------------------------------------------------------------------------


@both
def test_a_ping_tells_the_model(bench: Bench) -> None:
    number, result, error = bench.host.ping(bench.port, 2)
    assert (number, result, error) == (bench.servos["1"].model.number, SUCCESS, 0)
    assert bench.host.ping(bench.port, 77)[1] == TIMEOUT


@both
def test_what_is_written_is_read(bench: Bench) -> None:
    assert bench.write(2, "led", 1) == (SUCCESS, 0)
    assert bench.read(2, "led") == (1, SUCCESS, 0)
    assert bench.read(1, "led") == (0, SUCCESS, 0)


@both
def test_a_registered_write_waits_for_action(bench: Bench) -> None:
    address = bench.address("led")
    assert bench.host.regWriteTxRx(bench.port, 1, address, 1, [1]) == (SUCCESS, 0)
    assert bench.read(1, "led")[0] == 0
    assert bench.read(1, "registered")[0] == 1
    bench.host.action(bench.port, 0xFE)
    assert bench.read(1, "led")[0] == 1
    assert bench.read(1, "registered")[0] == 0


@both
@pytest.mark.parametrize(("level", "answers"), [(0, (True, False, False)), (1, (True, True, False)), (2, (True,) * 3)])
def test_the_status_return_level_says_what_is_answered(bench: Bench, level: int, answers) -> None:
    for servo in bench.servos.values():
        servo.registers.set_raw("status_return_level", level)
    ping = bench.raw(encode_instruction(bench.protocol, InstructionPacket(1, Instruction.PING)), 6)
    seen = len(ping) == 6, bench.read(1, "led")[1] == SUCCESS, bench.write(1, "led", 1)[0] == SUCCESS
    assert seen == answers
    until(lambda: bench.servos["1"].registers.raw("led") == 1)


@both
def test_an_unknown_instruction_is_an_instruction_error(bench: Bench) -> None:
    packet = encode_instruction(bench.protocol, InstructionPacket(1, 0x44))
    back = bench.raw(packet, 6 if bench.protocol == 1 else 11)
    assert back[4 if bench.protocol == 1 else 8] == (0x40 if bench.protocol == 1 else 2)


@both
def test_a_wrong_checksum_is_answered_with_its_error(bench: Bench) -> None:
    packet = bytearray(encode_instruction(bench.protocol, InstructionPacket(1, Instruction.PING)))
    packet[-1] ^= 0x40
    back = bench.raw(bytes(packet), 6 if bench.protocol == 1 else 11)
    assert back[4 if bench.protocol == 1 else 8] == (0x10 if bench.protocol == 1 else 3)


@both
def test_a_packet_that_never_ended_does_not_swallow_the_next_ones(bench: Bench) -> None:
    packet = encode_instruction(bench.protocol, InstructionPacket(1, Instruction.WRITE, bytes(40)))
    bench.raw(packet[:20], 1)
    results = [bench.host.ping(bench.port, 2)[1] for _ in range(3)]
    assert results[-1] == SUCCESS


@both
def test_what_lies_outside_the_table_or_its_limits_is_refused(bench: Bench) -> None:
    outside = bench.host.readTxRx(bench.port, 1, 250, 4)[2]
    read_only = bench.write(1, "present_position", 0)[1]
    too_much = bench.write(1, "led", 9)[1]
    assert (outside, read_only, too_much) == ((8, 8, 8) if bench.protocol == 1 else (4, 7, 4))


@new
def test_the_eeprom_is_locked_while_torque_is_on(bench: Bench) -> None:
    assert bench.write(1, "torque_enable", 1) == (SUCCESS, 0)
    assert bench.write(1, "operating_mode", 4) == (SUCCESS, 7)
    assert bench.write(1, "torque_enable", 0) == (SUCCESS, 0)
    assert bench.write(1, "operating_mode", 4) == (SUCCESS, 0)
    assert bench.read(1, "operating_mode")[0] == 4


@old
def test_a_lock_holds_until_the_next_power_cycle(bench: Bench) -> None:
    assert bench.write(1, "lock", 1) == (SUCCESS, 0)
    assert bench.write(1, "cw_limit", 5) == (SUCCESS, 8)
    assert bench.write(1, "lock", 0) == (SUCCESS, 8)
    bench.servos["1"].power_cycle()
    assert bench.write(1, "cw_limit", 5) == (SUCCESS, 0)


@old
def test_old_servos_know_no_reboot_and_no_bulk_read(bench: Bench) -> None:
    packet = encode_instruction(1, InstructionPacket(1, Instruction.REBOOT))
    assert bench.raw(packet, 6)[4] == 0x40


@both
def test_a_sync_write_reaches_everybody_at_once(bench: Bench) -> None:
    group = sdk.GroupSyncWrite(bench.port, bench.host, bench.address("led"), 1)
    for id_ in (1, 3):
        assert group.addParam(id_, [1])
    assert group.txPacket() == SUCCESS
    assert [bench.read(id_, "led")[0] for id_ in (1, 2, 3)] == [1, 0, 1]


@new
def test_sync_reads_fast_or_not_tell_everybody_in_order(bench: Bench) -> None:
    group = sdk.GroupSyncRead(bench.port, bench.host, bench.address("id"), 1)
    for id_ in (3, 1, 2):
        assert group.addParam(id_)
    for read in (group.txRxPacket, group.fastSyncRead):
        assert read() == SUCCESS
        assert [group.getData(id_, bench.address("id"), 1) for id_ in (1, 2, 3)] == [1, 2, 3]


@new
def test_bulk_instructions_read_and_write_different_registers(bench: Bench) -> None:
    write = sdk.GroupBulkWrite(bench.port, bench.host)
    assert write.addParam(1, bench.address("led"), 1, [1])
    assert write.addParam(2, bench.address("profile_velocity"), 4, [9, 0, 0, 0])
    assert write.txPacket() == SUCCESS
    read = sdk.GroupBulkRead(bench.port, bench.host)
    assert read.addParam(1, bench.address("led"), 1)
    assert read.addParam(2, bench.address("profile_velocity"), 4)
    assert read.txRxPacket() == SUCCESS
    assert read.getData(1, bench.address("led"), 1) == 1
    assert read.getData(2, bench.address("profile_velocity"), 4) == 9


@new
def test_a_broadcast_ping_finds_all_servos(bench: Bench) -> None:
    found, result = bench.host.broadcastPing(bench.port)
    assert result == SUCCESS
    assert found == {id_: [1020, 45] for id_ in (1, 2, 3)}


@new
def test_headers_within_data_are_stuffed_both_ways(bench: Bench) -> None:
    bench.write(1, "operating_mode", 4)
    raw = int.from_bytes(b"\xff\xff\xfd\xff", "little")  # about -32 turns
    assert bench.write(1, "goal_position", raw) == (SUCCESS, 0)
    assert bench.read(1, "goal_position") == (raw, SUCCESS, 0)


@new
def test_a_reboot_forgets_ram_and_turns_but_keeps_the_eeprom(bench: Bench) -> None:
    bench.write(1, "operating_mode", 4)
    bench.write(1, "led", 1)
    bench.servos["1"].motion.turned(1.0 + 6.0 * 3.141592653589793, 0.0)  # three turns
    before = bench.read(1, "present_position")[0]
    assert bench.host.reboot(bench.port, 1) == (SUCCESS, 0)
    after = bench.read(1, "present_position")[0]
    assert (before - after, after < 4096) == (3 * 4096, True)
    assert (bench.read(1, "led")[0], bench.read(1, "operating_mode")[0], bench.read(1, "id")[0]) == (0, 4, 1)


@new
def test_clear_forgets_the_turns(bench: Bench) -> None:
    bench.write(1, "operating_mode", 4)
    bench.servos["1"].motion.turned(20.0, 0.0)
    assert bench.read(1, "present_position")[0] > 4096
    assert bench.host.clearMultiTurn(bench.port, 1) == (SUCCESS, 0)
    assert bench.read(1, "present_position")[0] < 4096


@both
def test_a_factory_reset_is_obeyed(bench: Bench) -> None:
    bench.write(2, "return_delay", 7)
    bench.host.factoryReset(bench.port, 2, 0x02) if bench.protocol == 2 else bench.host.factoryReset(bench.port, 2)
    servo = bench.servos["2"]
    until(lambda: servo.registers.raw("return_delay") == 250)
    assert servo.id == (2 if bench.protocol == 2 else 1)


@both
def test_two_servos_with_one_id_are_heard_as_damage_or_as_bytes_too_many(bench: Bench) -> None:
    bench.servos["3"].registers.set_raw("id", 2)
    length = len(bench.servos["2"].answer(InstructionPacket(2, Instruction.PING)) or b"")
    seen = [
        bench.raw(encode_instruction(bench.protocol, InstructionPacket(2, Instruction.PING)), 3 * length)
        for _ in range(3)
    ]
    assert all(len(each) > length for each in seen)


@both
def test_damage_is_noticed_by_the_master(bench: Bench) -> None:
    bench.wire.damaged["2"] = 1.0
    results = {bench.host.ping(bench.port, 2)[1] for _ in range(3)}
    assert SUCCESS not in results
    assert bench.host.ping(bench.port, 1)[1] == SUCCESS


@both
def test_garbage_before_an_answer_is_skipped_by_the_master(bench: Bench) -> None:
    bench.wire.garbage = b"\x00\x12\xff\x33"
    assert bench.host.ping(bench.port, 1)[1] == SUCCESS


@new
def test_a_missing_servo_ends_a_sync_read_only_where_the_chain_breaks(bench: Bench) -> None:
    bench.chain.deaf.add("2")
    request = InstructionPacket(0xFE, Instruction.SYNC_READ, bytes((7, 0, 1, 0, 1, 2, 3)))
    assert [each.name for each in bench.chain.feed(encode_instruction(2, request))] == ["1", "3"]
    bench.chain.breaks = True
    assert [each.name for each in bench.chain.feed(encode_instruction(2, request))] == ["1"]


def test_the_wire_takes_its_time() -> None:
    servo = EmulatedServo(MODELS["AX-12A"], MOTORS["AX-12A"])  # 500 us return delay
    chain = ServoChain({"one": servo}, 1)
    request = encode_instruction(1, InstructionPacket(1, Instruction.PING))
    answers = chain.feed(request)
    assert [time for time, _ in WireDelay().deliver(request, answers)] == [0.0]
    at_once = WireDelay(WireSettings(baud_rate=1_000_000, return_delay=True)).deliver(request, answers)
    assert at_once == [(pytest.approx(60e-6 + 500e-6 + 60e-6), answers[0].data)]
    later = WireDelay(WireSettings(baud_rate=1_000_000, return_delay=True, latency_timer=0.016)).deliver(
        request, answers
    )
    assert later == [(pytest.approx(570e-6 + 0.016), answers[0].data)]


def test_a_servo_at_another_baud_rate_hears_nothing() -> None:
    servo = EmulatedServo(MODELS["XM430-W350"], MOTORS["XM430-W350"])  # 57600 bit/s as delivered
    chain = ServoChain({"one": servo}, 2)
    ping = encode_instruction(2, InstructionPacket(1, Instruction.PING))
    chain.baud_rate = 1_000_000
    assert chain.feed(ping) == []
    chain.baud_rate = 57_600
    assert len(chain.feed(ping)) == 1


# -- motion --------------------------------------------------------------------------------------------------------

STEP = 0.005


def moved(motion: ServoPhysics, load: float, steps: int, stiffness: float = 0.0) -> float:
    """Turn under a steady load; returns the angle [rad] passed."""
    before = motion.angle
    for _ in range(steps):
        motion.turned(motion.angle + STEP * motion.move(load, stiffness, STEP), STEP)
    motion.refresh_registers()
    return motion.angle - before


def wheel(model: str = "AX-12A") -> ServoPhysics:
    motion = ServoPhysics(MODELS[model], RegisterFile(MODELS[model]), MOTORS[model])
    for name in ("cw_limit", "ccw_limit"):
        motion.registers.set_raw(name, 0)
    motion.registers.set_raw("torque_enable", 1)
    return motion


def x_series(mode: int, model: str = "XM430-W350") -> ServoPhysics:
    motion = ServoPhysics(MODELS[model], RegisterFile(MODELS[model]), MOTORS[model])
    motion.registers.set_raw("operating_mode", mode)
    motion.registers.set_raw("torque_enable", 1)
    return motion


@given(st.floats(-8.0, 8.0), st.floats(0.0, 1.5), st.floats(-2.0, 2.0), st.floats(0.0, 50.0))
def test_a_motor_never_gives_more_than_its_ceiling(speed: float, ceiling: float, load: float, stiffness: float) -> None:
    done = turn(Drive(speed, ceiling, 1.0), load, 1.5, 6.2, stiffness, STEP)
    assert abs(done.torque) <= ceiling
    if abs(load) > ceiling + 0.03:  # nothing holds this: it goes where the load wants
        assert done.speed * load > 0.0
    if abs(load) < ceiling and done.speed:  # everything is in hand: it goes where it is told
        assert (done.speed > 0.0) == (speed > 0.0) and abs(done.speed) <= abs(speed)


@given(st.floats(0.1, 1.4), st.floats(0.1, 1e4))
def test_a_load_that_turns_the_shaft_comes_to_rest_and_never_turns_it_back(load: float, stiffness: float) -> None:
    motion = ServoPhysics(MODELS["AX-12A"], RegisterFile(MODELS["AX-12A"]), MOTORS["AX-12A"])  # torque off
    for _ in range(400):
        pull = load - stiffness * motion.angle
        assert pull > 0.0
        motion.turned(motion.angle + STEP * motion.move(pull, stiffness, STEP), STEP)


def test_a_wheel_loses_speed_under_load_and_tells_it_only_while_it_pushes() -> None:
    motion = wheel()
    motion.registers.set("moving_speed", 3.0)
    asked = motion.registers.value("moving_speed")
    assert moved(motion, 0.0, 100) == pytest.approx(asked * 0.5)
    loaded = moved(motion, -0.6, 100)
    assert 0.5 * asked * 0.5 < loaded < 0.9 * asked * 0.5
    assert motion.registers.value("present_load") == pytest.approx(0.4, abs=1e-3)
    motion.registers.set_raw("moving_speed", 0)
    assert moved(motion, -0.6, 100) == 0.0
    assert motion.registers.value("present_load") == 0.0


def test_a_wheel_stalls_and_slips_at_its_torque_limit_and_shuts_down_when_that_lasts() -> None:
    motion = wheel()
    motion.registers.set("moving_speed", 3.0)
    motion.registers.set("torque_limit", 0.3)
    assert moved(motion, -0.305 * 1.5, 20) == 0.0
    assert moved(motion, -0.5 * 1.5, 20) < 0.0
    moved(motion, -0.5 * 1.5, int(OVERLOAD_TIME_S / STEP))
    assert motion.errors & OVERLOAD_BIT
    assert not motion.torque_on and motion.registers.raw("torque_limit") == 0


def test_the_angle_of_a_wheel_is_known_over_300_of_360_degrees() -> None:
    motion = wheel()
    for degrees, seen in ((10.0, 10.0), (299.0, 299.0), (305.0, 300.0), (355.0, 0.0), (370.0, 10.0)):
        motion.turned(degrees * 3.141592653589793 / 180.0, STEP)
        motion.refresh_registers()
        assert motion.registers.value("present_position") * 180.0 / 3.141592653589793 == pytest.approx(seen, abs=0.2)


def test_a_position_is_reached_at_the_profile_velocity_and_over_many_turns() -> None:
    motion = x_series(5)
    motion.registers.set("goal_position", 12.0)
    motion.registers.set("profile_velocity", 2.0)
    assert moved(motion, -0.5, 200) == pytest.approx(2.0, abs=0.03)
    assert moved(motion, -0.5, 1200) == pytest.approx(10.0, abs=0.03)
    assert motion.registers.value("present_position") == pytest.approx(12.0, abs=2e-3)
    constant = MOTORS["XM430-W350"].torque_constant
    assert constant is not None
    assert motion.registers.value("present_current") == pytest.approx(0.5 / constant, abs=2e-3)


def test_goal_current_is_a_ceiling_of_torque_and_no_fault() -> None:
    motion = x_series(5)
    motion.registers.set("goal_position", 5.0)
    motion.registers.set("goal_current", 0.2)
    assert moved(motion, -1.0, 50) < 0.0
    assert moved(motion, -0.2, 1000) > 0.0
    assert motion.errors == 0 and motion.torque_on


@pytest.mark.parametrize("model", ["XL430-W250", "XM430-W350", "XM430-W210"])
def test_velocity_mode_holds_its_speed_under_load(model: str) -> None:
    motion = x_series(1, model)
    motion.registers.set("goal_velocity", 2.0)
    asked = motion.registers.value("goal_velocity")
    assert moved(motion, -0.4, 100) == pytest.approx(0.5 * asked)


def test_drive_mode_turns_everything_round() -> None:
    motion = x_series(1)
    motion.registers.set_raw("drive_mode", 1)
    motion.registers.set("goal_velocity", 2.0)
    assert moved(motion, 0.0, 10) < 0.0
    assert motion.registers.value("present_velocity") > 0.0


def test_the_bus_watchdog_stops_the_motor_and_refuses_goals_until_it_is_cleared(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "XM430-W350", 1)
    try:
        motion = bench.servos["1"].motion
        bench.write(1, "operating_mode", 1)
        bench.write(1, "torque_enable", 1)
        assert bench.write(1, "bus_watchdog", 5) == (SUCCESS, 0)  # 100 ms
        assert bench.write(1, "goal_velocity", 50) == (SUCCESS, 0)
        assert moved(motion, 0.0, 20) > 0.0
        moved(motion, 0.0, 1)
        assert moved(motion, 0.0, 10) == 0.0
        assert bench.read(1, "bus_watchdog")[0] == 0xFF
        assert bench.write(1, "goal_velocity", 50) == (SUCCESS, 4)
        assert bench.write(1, "bus_watchdog", 0) == (SUCCESS, 0)
        assert bench.write(1, "goal_velocity", 50) == (SUCCESS, 0)
        assert moved(motion, 0.0, 10) > 0.0
    finally:
        bench.close()


def test_every_instruction_that_is_heard_winds_the_watchdog_up_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "XM430-W350", 1)
    try:
        bench.write(1, "torque_enable", 1)
        bench.write(1, "bus_watchdog", 5)
        for _ in range(5):
            moved(bench.servos["1"].motion, 0.0, 15)
            assert bench.read(1, "bus_watchdog")[0] == 5
    finally:
        bench.close()


def test_a_servo_warms_up_under_load_and_cools_down_again() -> None:
    motion = x_series(5)
    moved(motion, -2.0, 4000)
    warm = motion.temperature
    assert warm > 26.0
    moved(motion, 0.0, 4000)
    assert 25.0 <= motion.temperature < warm
    assert motion.registers.value("present_temperature") == round(motion.temperature)


def test_an_overheated_servo_lets_go_until_it_is_rebooted(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "XM430-W350", 1)
    try:
        servo = bench.servos["1"]
        bench.write(1, "torque_enable", 1)
        servo.motion.forced_temperature = 90.0
        moved(servo.motion, 0.0, 2)
        assert bench.read(1, "hardware_error") == (OVERHEATING_BIT, SUCCESS, 0x80)
        assert bench.read(1, "torque_enable")[0] == 0
        servo.motion.forced_temperature = 30.0
        moved(servo.motion, 0.0, 2)
        assert bench.write(1, "torque_enable", 1) == (SUCCESS, 0x81)
        bench.host.reboot(bench.port, 1)
        assert bench.write(1, "torque_enable", 1) == (SUCCESS, 0)
    finally:
        bench.close()


def test_low_voltage_is_an_error_bit_in_every_answer(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "AX-12A", 1)
    try:
        bench.servos["1"].motion.voltage = 5.5
        moved(bench.servos["1"].motion, 0.0, 1)
        assert bench.host.ping(bench.port, 1) == (12, SUCCESS, 1)
        assert bench.read(1, "present_voltage")[0] == 55
    finally:
        bench.close()


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(sorted(MODELS)), st.data())
def test_registers_hold_what_they_can_say(model: str, data: st.DataObject) -> None:
    registers = RegisterFile(MODELS[model])
    field = data.draw(st.sampled_from(sorted(MODELS[model].registers)))
    registers.set(field, data.draw(st.floats(-1e6, 1e6)))
    held = registers.value(field)
    registers.set(field, held)
    assert registers.value(field) == held
