"""The servos of a robot over real packets: nothing jumps, nothing old passes for new, what restarted is left alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bus_line import ChainPort, make_servo, turned_to

from tensegrity_driver.bus.control_tables import MODELS
from tensegrity_driver.bus.dynamixel_bus import Bus
from tensegrity_driver.bus.potentiometer_board import PotentiometerBoard
from tensegrity_driver.bus.usb_adapter import UsbAdapter
from tensegrity_driver.emulator import EmulatedRobot, with_servos
from tensegrity_driver.emulator.emulated_servo import EmulatedServo
from tensegrity_driver.hardware.emulated_hardware import EmulatedPort
from tensegrity_driver.servos.servo import MEASURED, STATE, RegisterBlock
from tensegrity_driver.servos.servo_group import SILENT_CYCLES, ServoGroup
from tensegrity_driver.spools.readings import Drive, ServoCommand, ServoReading
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import BusError

COUNT = 2.0 * math.pi / 4096.0
X_MODELS = ["XL430-W250", "XM430-W350", "XM430-W210"]
ALL = ["AX-12A", *X_MODELS]


class Bench:
    """Three servos as delivered, without time: what is written stays, and nothing moves by itself."""

    def __init__(self, model: str, **options: object) -> None:
        self.model = MODELS[model]
        self.parts: dict[str, EmulatedServo] = {name: make_servo(model, i) for i, name in enumerate("abc", 1)}
        self.port = ChainPort(self.model.protocol, self.parts)
        rows = [{"actuator": name, "id": i, "model": model} for i, name in enumerate("abc", 1)]
        self.link = ServoGroup({"servos": rows}, Bus(self.port, self.model.protocol), **options)  # type: ignore[arg-type]

    def ready(self) -> Bench:
        self.link.check()
        self.link.prepare()
        self.link.read()
        return self

    def raw(self, name: str, field: str) -> int:
        return self.parts[name].registers.raw(field)

    def set(self, name: str, field: str, value: float) -> None:
        self.parts[name].registers.set(field, value)

    def reading(self, name: str) -> ServoReading:
        return self.link.read()[0][name]

    def command(self, value: float = 0.1, fraction: float | None = None, current: float | None = None) -> ServoCommand:
        if self.model.counts_turns:
            return ServoCommand(Drive.POSITION, value, 0.5, fraction, current)
        return ServoCommand(Drive.VELOCITY, 0.0, value, fraction, current)

    def written(self) -> int:
        """Packets that changed something since the last call."""
        instruction = 4 if self.model.protocol == 1 else 7
        count = sum(packet[instruction] in (0x03, 0x83) for packet in self.port.sent)
        self.port.sent.clear()
        return count


models = pytest.mark.parametrize("model", ALL)
turning = pytest.mark.parametrize("model", X_MODELS)


# -- preparing -------------------------------------------------------------------------------------------------------


@models
def test_preparing_sets_the_mode_and_holds_where_it_is(model: str) -> None:
    bench = Bench(model)
    for number, part in enumerate(bench.parts.values()):
        turned_to(part, 0.4 * number)
    bench.ready()
    for name, part in bench.parts.items():
        assert part.registers.raw("torque_enable") == 1
        assert part.registers.raw("return_delay") == 0
        if bench.model.counts_turns:
            assert part.registers.raw("operating_mode") == (4 if model == "XL430-W250" else 5)
            assert part.registers.raw("goal_position") == part.registers.raw("present_position")
            assert part.registers.raw("profile_velocity") == 1
            assert part.registers.value("bus_watchdog") == pytest.approx(0.5)
            assert bench.link.servos[name].reading.watchdog is True
        else:
            assert part.motion.wheel
            assert part.registers.raw("moving_speed") == 0
            assert bench.link.servos[name].reading.watchdog is None
        assert bench.reading(name).torque_on is True
    assert bench.link.unprepared() == ()


@models
def test_the_last_words_of_wheels_stop_all_of_them_and_servos_with_a_watchdog_have_none(model: str) -> None:
    bench, left = Bench(model, last_words=True), []
    bench.port.leave = lambda packet, silence: left.append((packet, silence))  # type: ignore[method-assign]
    bench.ready()
    assert bool(left) != bench.model.counts_turns
    for packet, silence in left:
        assert silence == pytest.approx(0.5)
        for name in bench.parts:
            bench.set(name, "moving_speed", 1.0)
        bench.port.writePort(packet)
        assert [bench.raw(name, "moving_speed") for name in bench.parts] == [0, 0, 0]


@models
def test_preparing_again_leaves_eeprom_and_torque_alone(model: str) -> None:
    bench = Bench(model).ready()
    torque_off = []
    for name, part in bench.parts.items():
        written, write = part.registers, part.write

        def watched(address: int, data: bytes, write: Callable = write, name: str = name) -> None:
            torque_off.append(name)
            write(address, data)

        part.write = watched  # type: ignore[method-assign]
        assert written.raw("torque_enable") == 1
    bench.port.sent.clear()
    bench.link.prepare()
    index = 5 if bench.model.protocol == 1 else 8
    instruction = 4 if bench.model.protocol == 1 else 7
    for packet in bench.port.sent:
        if packet[instruction] == 0x03:
            address = packet[index]
            assert address >= (24 if bench.model.protocol == 1 else 64), "written to EEPROM"
            if address == bench.model.register("torque_enable").address:
                assert packet[index + (1 if bench.model.protocol == 1 else 2)] == 1, "torque went off"


@models
def test_ceilings_to_begin_with_are_set_before_torque_comes_on(model: str) -> None:
    ceiling = ServoCommand(Drive.VELOCITY, torque_fraction=0.3, current=0.5)
    bench = Bench(model, ceilings={"b": ceiling}).ready()
    register = {"AX-12A": "torque_limit", "XL430-W250": "goal_pwm"}.get(model, "goal_current")
    expected = 0.5 if register == "goal_current" else 0.3
    field = bench.model.register(register)
    assert bench.parts["b"].registers.value(register) == pytest.approx(expected, abs=field.factor)
    assert bench.raw("a", register) == bench.raw("a", "torque_ceiling")


@models
def test_a_servo_that_answers_only_pings_is_made_to_answer(model: str) -> None:
    bench = Bench(model)
    for level, name in enumerate("abc"):
        bench.parts[name].registers.set_raw("status_return_level", level)
    bench.ready()
    assert [bench.raw(name, "status_return_level") for name in "abc"] == [2, 2, 2]


def test_a_locked_eeprom_is_reported() -> None:
    bench = Bench("AX-12A")
    bench.parts["b"].registers.set_raw("lock", 1)
    bench.link.check()
    with pytest.raises(BusError, match=r"servo 2 .*could not be set"):
        bench.link.prepare()
    assert bench.link.unprepared() == ("b", "c")


@turning
def test_a_servo_with_an_error_of_its_own_is_not_prepared(model: str) -> None:
    bench = Bench(model)
    bench.link.check()
    bench.parts["c"].registers.set_raw("hardware_error", 0b100100)
    with pytest.raises(BusError, match=r"servo 3 \(c\) reports overheating, overload.*reboot"):
        bench.link.prepare()
    assert bench.raw("c", "torque_enable") == 0
    bench.link.reboot("c")
    bench.parts["c"].registers.set_raw("hardware_error", 0)
    bench.link.prepare(["c"])
    assert bench.raw("c", "torque_enable") == 1


@turning
def test_a_servo_beyond_the_turns_that_it_can_be_sent_to_is_named_with_the_way_back(model: str) -> None:
    bench = Bench(model).ready()
    bench.set("c", "present_position", -1612.0)
    with pytest.raises(BusError, match=r"servo 3 \(c\) stands at -1612 rad, beyond .*Switch it off and on"):
        bench.link.prepare()
    bench.set("c", "present_position", 0.5)  # as after its supply was off
    bench.link.prepare(["c"])
    assert bench.raw("c", "torque_enable") == 1


@turning
def test_a_watchdog_that_has_stopped_a_servo_is_cleared_and_armed_again(model: str) -> None:
    bench = Bench(model, watchdog=0.2).ready()
    bench.parts["a"].registers.set_raw("bus_watchdog", 0xFF)
    assert bench.reading("a").watchdog is False
    assert bench.link.unprepared() == ("a",)
    bench.link.prepare(["a"])
    assert bench.reading("a").watchdog is True
    assert bench.parts["a"].registers.value("bus_watchdog") == pytest.approx(0.2)


def test_an_overload_of_an_ax_12a_is_cleared_by_preparing_it_again() -> None:
    bench = Bench("AX-12A").ready()
    bench.link.write({"a": bench.command(fraction=0.4)})
    bench.link.read()
    bench.parts["a"].motion.errors = 0x20
    bench.parts["a"].registers.set_raw("torque_limit", 0)
    assert bench.reading("a").errors == {"overload"}
    bench.link.write({"a": bench.command(fraction=0.4)})
    assert bench.raw("a", "torque_limit") == 0, "an overload is never cleared by the way"
    bench.link.prepare(["a"])
    assert bench.reading("a").errors == frozenset()
    assert bench.parts["a"].registers.value("torque_limit") > 0.0


# -- checking --------------------------------------------------------------------------------------------------------


def test_everything_wrong_is_reported_at_once() -> None:
    bench = Bench("XM430-W350")
    bench.port.chain.servos["b"] = make_servo("XM430-W210", 2)
    bench.port.chain.deaf.add("c")
    with pytest.raises(BusError) as caught:
        bench.link.check()
    assert "servo 2 (b) is a XM430-W210, not a XM430-W350" in str(caught.value)
    assert "servo 3 (c) does not answer" in str(caught.value)


def test_a_doubled_id_is_found_by_a_ping() -> None:
    bench = Bench("XL430-W250")
    bench.port.chain.servos["ghost"] = make_servo("XL430-W250", 2)
    with pytest.raises(BusError, match=r"2 servos answer under id 2.*one by one"):
        bench.link.check()


@models
def test_return_delays_are_reported_until_they_are_gone(model: str) -> None:
    bench = Bench(model)
    bench.link.check()
    assert any("servo 1 (a), servo 2 (b), servo 3 (c)" in note and "1.5 ms" in note for note in bench.link.warnings())
    bench.link.prepare()
    bench.link.check()
    assert bench.link.warnings() == ()
    assert bench.link.identity.servos == tuple((i, bench.model.number) for i in (1, 2, 3))


@models
def test_a_slow_adapter_is_reported_with_what_makes_it_quick(model: str) -> None:
    bench = Bench(model, return_delay=0.0)
    file = Path("/sys/bus/usb-serial/devices/ttyUSB0/latency_timer")
    bench.port.adapter = UsbAdapter("FT3M9STO", 0.016, file)
    bench.ready()
    bench.link.check()
    (note,) = bench.link.warnings()
    assert f"up to 16 ms, with {3 if model == 'AX-12A' else 2} exchanges" in note
    assert f"echo 1 | sudo tee {file}" in note
    assert bench.link.identity.adapter == "FT3M9STO"
    bench.port.adapter = UsbAdapter("FT3M9STO", 0.001, file)
    bench.link.check()
    assert bench.link.warnings() == ()


def test_models_of_the_other_protocol_and_unknown_ones_are_refused() -> None:
    row = {"actuator": "a", "id": 1, "model": "XM430-W350"}
    with pytest.raises(BusError, match="speaks protocol 2, but the bus speaks 1"):
        ServoGroup({"servos": [row]}, Bus(ChainPort(1, {}), 1))
    with pytest.raises(BusError, match="no servo model 'XM431'"):
        ServoGroup({"servos": [{**row, "model": "XM431"}]}, Bus(ChainPort(2, {}), 2))
    with pytest.raises(BusError, match="at least 1 cycle"):
        ServoGroup({"servos": [row]}, Bus(ChainPort(2, {}), 2), state_period=0)


# -- reading ---------------------------------------------------------------------------------------------------------


@models
def test_blocks_decode_as_single_fields_do(model: str) -> None:
    part = make_servo(model, 1)
    memory = part.registers.memory
    memory[:] = bytes((37 * i + 11) % 256 for i in range(len(memory)))
    for field in MODELS[model].registers.values():
        if field.coding == "direction bit":
            memory[field.end - 1] &= 0x07  # there are no more bits in it
    for names in (MEASURED, STATE + MEASURED):
        block = RegisterBlock(MODELS[model], names)
        data = bytes(memory[block.address : block.address + block.size])
        values = block.values(block.numbers(data))
        for index, (name, number) in enumerate(zip(block.names, block.numbers(data), strict=True)):
            field = MODELS[model].register(name)
            assert number % (1 << 8 * field.size) == int.from_bytes(memory[field.address : field.end], "little")
            assert values[index] == pytest.approx(field.decode(number % (1 << 8 * field.size)))


@turning
def test_turns_and_directions_are_read_as_they_are(model: str) -> None:
    bench = Bench(model).ready()
    for raw in (0, 4096, -1, -200_000, 1_000_000):
        bench.parts["a"].registers.set_raw("present_position", raw & 0xFFFFFFFF)
        assert bench.reading("a").position == pytest.approx(raw * COUNT)
    power = "present_load" if model == "XL430-W250" else "present_current"
    bench.parts["a"].registers.set_raw(power, 0xFFFF & -100)
    reading = bench.reading("a")
    assert (reading.load, reading.current) == ((-0.1, None) if power == "present_load" else (None, -0.269))


def test_an_ax_12a_does_not_know_its_angle_in_the_dead_zone() -> None:
    bench = Bench("AX-12A").ready()
    for raw, is_valid in (
        (0, False),
        (1, True),
        (512, True),
        (1022, True),
        (1023, False),
        (1100, False),
        (65535, False),
    ):
        bench.parts["a"].registers.set_raw("present_position", raw)
        position = bench.reading("a").position
        assert (position is not None) is is_valid
        assert position is None or position == pytest.approx(math.radians(300.0) * raw / 1023)
    bench.parts["a"].registers.set_raw("present_load", 1024 + 300)
    assert bench.reading("a").load == pytest.approx(-0.3)


@models
@pytest.mark.parametrize("state_period", [1, 4])
def test_a_silent_servo_keeps_its_last_reading_and_gets_older(model: str, state_period: int) -> None:
    bench = Bench(model, state_period=state_period).ready()
    before = bench.reading("b")
    bench.port.chain.deaf.add("b")
    for age in range(1, 12):
        readings, health = bench.link.read()
        assert readings["b"].age == age
        assert readings["b"].position == before.position
        assert readings["a"].age == readings["c"].age == 0
        assert health.bad_packets >= 1
    bench.port.chain.deaf.clear()
    assert bench.reading("b").age == 0


@models
def test_many_silent_servos_cost_one_question_in_a_cycle(model: str) -> None:
    bench = Bench(model).ready()
    bench.port.chain.deaf = {"b", "c"}
    for _ in range(SILENT_CYCLES + 1):
        bench.link.read()
    for _ in range(6):
        _, health = bench.link.read()
        assert (health.packets, health.bad_packets) == (2, 1)
    bench.port.chain.deaf.clear()
    for _ in range(2):
        readings, _ = bench.link.read()
    assert [each.age for each in readings.values()] == [0, 0, 0]


def test_errors_of_x_servos_are_named_and_go_with_their_bit() -> None:
    for period in (1, 50):
        bench = Bench("XL430-W250", state_period=period).ready()
        bench.parts["a"].registers.set_raw("hardware_error", 0b1001)
        bench.parts["a"].motion.errors = 0b1001
        bench.link.read()
        assert bench.reading("a").errors == {"voltage", "encoder"}
        bench.parts["a"].registers.set_raw("hardware_error", 0)
        bench.parts["a"].motion.errors = 0
        assert bench.reading("a").errors == frozenset()


def test_errors_of_an_ax_12a_come_with_every_answer() -> None:
    bench = Bench("AX-12A", state_period=50).ready()
    bench.parts["a"].motion.errors = 0b101
    assert bench.reading("a").errors == {"voltage", "overheating"}
    bench.parts["a"].motion.errors = 0
    assert bench.reading("a").errors == frozenset()


@models
def test_a_lost_port_makes_all_readings_older_until_it_is_back(model: str) -> None:
    bench = Bench(model).ready()
    bench.port.gone = True
    for age in range(1, 4):
        with pytest.raises(BusError):
            bench.link.read()
        assert all(servo.reading.age == age for servo in bench.link.servos.values())
        with pytest.raises(BusError):
            bench.link.write({"a": bench.command()})
    bench.port.gone = False
    assert bench.reading("a").age == 0
    bench.link.write({"a": bench.command()})
    assert bench.link.statistics()["reopenings"] == 1


# -- writing ---------------------------------------------------------------------------------------------------------


@models
def test_commands_arrive_and_ceilings_are_written_when_they_change(model: str) -> None:
    bench = Bench(model).ready()
    goal = "goal_position" if bench.model.counts_turns else "moving_speed"
    ceiling = {"AX-12A": "torque_limit", "XL430-W250": "goal_pwm"}.get(model, "goal_current")
    first = {name: bench.command(0.3, 0.5, 0.9) for name in "abc"}
    bench.written()
    bench.link.write(first)
    factor = bench.model.register(goal).factor
    assert bench.parts["b"].registers.value(goal) == pytest.approx(0.3, abs=factor)
    expected = 0.9 if ceiling == "goal_current" else 0.5
    assert bench.parts["b"].registers.value(ceiling) == pytest.approx(
        expected, abs=bench.model.register(ceiling).factor
    )
    if bench.model.counts_turns:
        assert bench.parts["b"].registers.value("profile_velocity") == pytest.approx(0.5, abs=0.03)
    bench.written()
    bench.link.write(first)
    assert bench.written() == 1  # the goals alone
    bench.link.write({**first, "c": bench.command(0.3, 0.4, 0.8)})
    assert bench.written() == 2


@models
def test_a_ceiling_that_got_lost_on_the_way_is_written_again(model: str) -> None:
    bench = Bench(model).ready()
    ceiling = {"AX-12A": "torque_limit", "XL430-W250": "goal_pwm"}.get(model, "goal_current")
    command = {"a": bench.command(0.1, 0.5, 0.5)}
    bench.port.chain.deaf.add("a")
    bench.link.write(command)
    bench.port.chain.deaf.clear()
    bench.link.read()
    bench.link.write(command)
    expected = 0.5
    assert bench.parts["a"].registers.value(ceiling) == pytest.approx(
        expected, abs=bench.model.register(ceiling).factor
    )


@models
def test_what_a_servo_cannot_do_is_reported_and_the_others_are_commanded(model: str) -> None:
    bench = Bench(model).ready()
    wrong = Drive.VELOCITY if bench.model.counts_turns else Drive.POSITION
    good = bench.command(0.2)
    with pytest.raises(BusError, match=r"servo 1 \(a\).*is driven by"):
        bench.link.write({"a": ServoCommand(wrong), "b": good})
    goal = "goal_position" if bench.model.counts_turns else "moving_speed"
    assert bench.parts["b"].registers.value(goal) == pytest.approx(0.2, abs=bench.model.register(goal).factor)
    with pytest.raises(BusError, match="cannot be written"):
        bench.link.write({"a": bench.command(math.nan)})
    with pytest.raises(BusError, match="no actuator with a servo 'd'"):
        bench.link.write({"d": good})


def test_speeds_and_currents_beyond_what_a_register_holds_are_limited() -> None:
    bench = Bench("AX-12A").ready()
    bench.link.write({"a": bench.command(1e3, 7.0), "b": bench.command(-1e3)})
    assert bench.raw("a", "moving_speed") == 1023
    assert bench.raw("b", "moving_speed") == 2047
    assert bench.raw("a", "torque_limit") == 1023
    bench = Bench("XM430-W350")
    bench.parts["a"].registers.set_raw("torque_ceiling", 400)
    bench.ready()
    bench.link.write({"a": bench.command(0.1, current=1e3)})
    assert bench.raw("a", "goal_current") == 400


# -- torque and restarts ---------------------------------------------------------------------------------------------


@models
def test_torque_goes_off_at_once_and_comes_on_where_the_shaft_is(model: str) -> None:
    bench = Bench(model).ready()
    bench.link.write({name: bench.command(2.2) for name in "abc"})
    off = {name: ServoCommand(Drive.TORQUE_OFF) for name in "abc"}
    bench.link.write(off)
    assert [bench.raw(name, "torque_enable") for name in "abc"] == [0, 0, 0]
    assert bench.reading("a").torque_on is False
    bench.written()
    bench.link.write(off)
    assert bench.written() == 0
    rests: list[int] = []
    if bench.model.counts_turns:
        part = bench.parts["a"]
        keep = part.keep_goals
        part.keep_goals = lambda names: (rests.append(part.registers.raw("goal_position")), keep(names))  # type: ignore[method-assign,assignment,func-returns-value]
    bench.link.read()
    here = bench.raw("a", "present_position")
    bench.link.write({"a": bench.command(2.5)})
    assert bench.raw("a", "torque_enable") == 1
    assert rests == ([here] if bench.model.counts_turns else [])
    assert bench.reading("a").torque_on is True
    assert bench.link.unprepared() == ()


@models
def test_a_torque_command_that_got_lost_is_repeated(model: str) -> None:
    bench = Bench(model).ready()
    bench.port.chain.deaf.add("a")
    bench.link.write({"a": ServoCommand(Drive.TORQUE_OFF)})
    bench.port.chain.deaf.clear()
    assert bench.reading("a").torque_on is True
    bench.link.write({"a": ServoCommand(Drive.TORQUE_OFF)})
    assert bench.reading("a").torque_on is False
    bench.port.chain.deaf.add("a")
    bench.link.write({"a": bench.command()})
    bench.port.chain.deaf.clear()
    assert bench.reading("a").torque_on is False
    bench.link.write({"a": bench.command()})
    assert bench.reading("a").torque_on is True
    assert bench.link.unprepared() == ()


@models
def test_a_servo_that_restarted_gets_no_command_until_it_is_prepared(model: str) -> None:
    bench = Bench(model).ready()
    bench.parts["b"].power_cycle()
    reading = bench.reading("b")
    assert reading.torque_on is False
    assert bench.link.unprepared() == ("b",)
    before = bytes(bench.parts["b"].registers.memory)
    for _ in range(3):
        bench.link.write({name: bench.command(0.2, 0.5, 0.5) for name in "abc"})
        bench.link.read()
    assert bytes(bench.parts["b"].registers.memory) == before
    bench.link.prepare(["b"])
    bench.link.write({name: bench.command(0.2, 0.5, 0.5) for name in "abc"})
    assert bench.reading("b").torque_on is True
    assert bytes(bench.parts["b"].registers.memory) != before


@models
def test_a_servo_that_was_away_gets_no_command_before_its_state_is_known(model: str) -> None:
    bench = Bench(model, state_period=50).ready()
    bench.port.chain.deaf.add("b")
    for _ in range(SILENT_CYCLES):
        bench.link.read()
    bench.parts["b"].power_cycle()
    bench.port.chain.deaf.clear()
    before = bytes(bench.parts["b"].registers.memory)
    bench.link.write({"b": bench.command(0.2)})
    assert bytes(bench.parts["b"].registers.memory) == before
    bench.link.read()
    bench.link.write({"b": bench.command(0.2)})
    assert bytes(bench.parts["b"].registers.memory) == before
    assert bench.link.unprepared() == ("b",)


@models
def test_torque_off_is_verified_servo_by_servo(model: str) -> None:
    bench = Bench(model).ready()
    bench.link.torque_off()
    assert [bench.raw(name, "torque_enable") for name in "abc"] == [0, 0, 0]
    bench.ready()
    bench.port.chain.deaf.add("c")
    with pytest.raises(BusError, match=r"may still be on \(c: .*supply off"):
        bench.link.torque_off()
    assert [bench.raw(name, "torque_enable") for name in "abc"] == [0, 0, 1]


# -- a whole robot behind terminals ----------------------------------------------------------------------------------


class Hardware:
    """The emulated robot and the link to it."""

    def __init__(self, model: str) -> None:
        robot = load_robot("tensebot")
        if model != "AX-12A":
            robot = with_servos(robot, model)
        self.robot = EmulatedRobot(robot, prepared=False, torque_on=False)
        board = None
        if self.robot.board_port is not None:
            board = PotentiometerBoard(EmulatedPort(self.robot.board_port, 115_200, self.robot), 12)
        bus = Bus(EmulatedPort(self.robot.servo_port, 1_000_000, self.robot), MODELS[model].protocol)
        self.link = ServoGroup(robot.servos, bus, board, watchdog=2.54)


@pytest.fixture(params=["AX-12A", "XM430-W350"])
def hardware(request: pytest.FixtureRequest) -> Iterator[Hardware]:
    made = Hardware(request.param)
    yield made
    made.link.close()
    made.robot.close()


@pytest.mark.sampled(1)
def test_the_servos_of_a_robot_are_driven_over_terminals(hardware: Hardware) -> None:
    link, robot = hardware.link, hardware.robot
    link.open()
    link.check()
    assert link.identity.adapter == "emulated"
    assert link.identity.servos == tuple((each.id, each.number) for each in robot.identity)
    link.prepare()
    readings, health = link.read()
    assert (health.bad_packets, health.duplicate_ids) == (0, ())
    starts = {name: robot.angle(name) for name in readings}
    name = next(iter(readings))
    for _ in range(25):
        command = (
            ServoCommand(Drive.VELOCITY, 0.0, 3.0, 1.0)
            if link.board is not None
            else ServoCommand(Drive.POSITION, (readings[name].position or 0.0) + 0.05, 1.0, 1.0, 2.0)
        )
        link.write({name: command})
        robot.advance(0.02)
        readings, health = link.read()
        assert health.bad_packets == 0
    assert robot.angle(name) - starts[name] > 0.05
    if link.board is not None:
        assert all(each.sensor is not None and each.sensor_age == 0 for each in readings.values())
    assert robot.register(name, "torque_enable") == 1.0
    link.torque_off()
    assert all(robot.register(each, "torque_enable") == 0.0 for each in readings)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("trouble", ["damage", "garbage", "echo", "duplicate", "silence", "power_cycle"])
def test_troubles_on_the_wire_are_seen_as_what_they_are(hardware: Hardware, trouble: str) -> None:
    link, robot = hardware.link, hardware.robot
    if trouble == "echo":
        robot.faults.echo()
    link.open()
    link.prepare()
    readings, _ = link.read()
    name, other = list(readings)[:2]
    if trouble not in ("echo", "garbage"):
        getattr(robot.faults, trouble)(name)
    found: set[int] = set()
    bad, packets = 0, 0
    for _ in range(15):
        if trouble == "garbage":
            robot.faults.garbage(b"\x00\xff\xff\x01noise")
        readings, health = link.read()
        bad, packets = bad + health.bad_packets, packets + health.packets
        found.update(health.duplicate_ids)
        assert readings[other].age <= 1
        assert (readings[other].position or 0.0) == pytest.approx(
            robot.register(other, "present_position"), abs=7.0 if readings[other].position is None else 1e-9
        )
    if trouble == "power_cycle":
        assert link.unprepared() == (name,)
        assert readings[name].torque_on is False
    elif trouble == "silence":
        assert readings[name].age == 15
        assert found == set()
    elif trouble == "duplicate":
        assert found == {link.servos[name].id}
    elif trouble == "damage":
        assert bad >= 10
    else:
        assert found == set()
        assert link.unprepared() == ()
    if trouble == "echo":
        assert bad == 0


def test_an_adapter_may_be_unplugged_and_plugged_in_again(hardware: Hardware) -> None:
    link, robot = hardware.link, hardware.robot
    link.open()
    link.prepare()
    link.read()
    robot.faults.unplug()
    for _ in range(3):
        with pytest.raises(BusError):
            link.read()
    robot.faults.plug()
    readings, _ = link.read()
    assert all(each.age == 0 for each in readings.values())
    if link.board is not None:
        link.read()
        assert all(each.reading.sensor_age == 0 for each in link.servos.values())
