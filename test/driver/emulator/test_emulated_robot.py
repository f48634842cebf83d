"""The emulated hardware of a whole robot: what is written to its ports moves its body, and its body pulls back."""

from __future__ import annotations

import math
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import dynamixel_sdk as sdk
import numpy as np
import pytest
import serial
from patience import PATIENCE_S, TURN_S, PatientPort, take, until

from tensegrity_driver.bus.control_tables import MODELS
from tensegrity_driver.bus.potentiometer_protocol import (
    POSITIONS,
    RADIANS_PER_COUNT,
    STATE,
    VELOCITY_ZERO,
    AnswerReader,
    BoardAnswer,
    BoardRequest,
    encode_request,
)
from tensegrity_driver.emulator import EmulatedRobot, WireSettings, emulated_robot, with_servos
from tensegrity_driver.emulator import __main__ as emulator_process
from tensegrity_driver.emulator.fault_commands import COMMANDS, execute
from tensegrity_driver.servos.motors import MOTORS
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import BusError, TensegrityError

CYCLE = 0.02
NAME, ID = "draw_1", 7
OLD, NEW = MODELS["AX-12A"], MODELS["XM430-W350"]
SUCCESS = sdk.COMM_SUCCESS


class Master:
    """dynamixel_sdk on the servo port and plain bytes on the other one."""

    def __init__(self, robot: EmulatedRobot) -> None:
        self.robot = robot
        self.port = PatientPort(robot.servo_port)
        self.host = sdk.PacketHandler(float(robot.protocol))
        self.board = serial.Serial(robot.board_port, 115200, timeout=TURN_S) if robot.board_port else None
        self.reader = AnswerReader()
        self.model = MODELS[robot.identity[0].model]

    def write(self, name: str, value: float, id_: int = ID) -> tuple[int, int]:
        field = self.model.registers[name]
        return self.host.writeTxRx(self.port, id_, field.address, field.size, list(field.encode_bytes(value)))

    def read(self, name: str, id_: int = ID) -> float | None:
        field = self.model.registers[name]
        data, result, _ = self.host.readTxRx(self.port, id_, field.address, field.size)
        return field.decode(int.from_bytes(data, "little")) if result == SUCCESS else None

    def ask(self, request: BoardRequest) -> BoardAnswer | None:
        assert self.board is not None
        self.board.write(encode_request(request))
        found: list[BoardAnswer] = []
        while not found:
            data = take(self.board, 1)
            if not data:
                return None
            found = self.reader.feed(data + self.board.read(self.board.in_waiting))
        return found[-1]

    def counts(self, channel: int) -> int:
        answer = self.ask(BoardRequest(STATE, 5))
        assert answer is not None and answer.state is not None and answer.sequence == 5
        return answer.state.positions[channel]

    def cycles(self, count: int) -> None:
        for _ in range(count):
            self.robot.advance(CYCLE)

    def close(self) -> None:
        self.port.closePort()
        if self.board is not None:
            self.board.close()


@pytest.fixture(scope="module")
def robot():
    return load_robot("tensebot")


@pytest.fixture
def old(robot) -> Iterator[Master]:
    """On the servos of the robot's file: AX-12A with potentiometers."""
    with EmulatedRobot(robot) as emulated:
        master = Master(emulated)
        yield master
        master.close()


@pytest.fixture
def new(robot) -> Iterator[Master]:
    """On servos that count turns and measure current."""
    with EmulatedRobot(with_servos(robot, "XM430-W350")) as emulated:
        master = Master(emulated)
        yield master
        master.close()


def tension(master: Master, name: str = NAME) -> float:
    return float(master.robot.observe().efforts[name])


def length(master: Master, name: str = NAME) -> float:
    return float(master.robot.observe().positions[name])


# -- motion and loads ----------------------------------------------------------------------------------------------


def test_a_scan_finds_what_the_robots_file_says(old: Master) -> None:
    for identity in old.robot.identity:
        assert old.host.ping(old.port, identity.id) == (identity.number, SUCCESS, 0)
    rows = old.robot.robot.servos["servos"]
    assert [(each.actuator, each.id, each.potentiometer) for each in old.robot.identity] == [
        (row["actuator"], row["id"], row["potentiometer"]) for row in rows
    ]


def test_a_commanded_speed_winds_the_spool_at_speed_times_radius(new: Master) -> None:
    new.write("torque_enable", 0.0)
    new.write("operating_mode", 1)
    new.write("torque_enable", 1.0)
    new.cycles(1)
    before = length(new)
    new.write("goal_velocity", 0.5)
    speed = NEW.registers["goal_velocity"].nearest(0.5)
    new.cycles(25)
    assert length(new) - before == pytest.approx(-0.00485 * speed * 0.5, rel=0.02)


def test_all_spools_reach_their_positions_and_say_so(new: Master) -> None:
    write = sdk.GroupSyncWrite(new.port, new.host, NEW.registers["goal_position"].address, 4)
    goals = {}
    for each in new.robot.identity:
        goals[each.actuator] = 0.2159 - 0.002
        angle = new.robot.lines(each.actuator)["encoder"].inverse(goals[each.actuator])
        assert write.addParam(each.id, list(NEW.registers["goal_position"].encode_bytes(angle)))
    assert write.txPacket() == SUCCESS
    new.cycles(40)
    resolution = 2.0 * math.pi / 4096.0 * 0.00485
    for each in new.robot.identity:
        assert length(new, each.actuator) == pytest.approx(goals[each.actuator], abs=1.1 * resolution)
        seen = new.read("present_position", each.id)
        assert new.robot.lines(each.actuator)["encoder"](seen) == pytest.approx(goals[each.actuator], abs=resolution)


def test_tension_appears_as_current_also_at_rest(new: Master) -> None:
    new.cycles(1)
    constant = MOTORS["XM430-W350"].torque_constant
    current = new.read("present_current")
    assert constant is not None and current is not None
    assert current * constant / 0.00485 == pytest.approx(tension(new), abs=2.69e-3 * constant / 0.00485)


def test_tension_appears_as_load_only_while_a_wheel_pushes(old: Master) -> None:
    old.cycles(1)
    assert old.read("present_load") == 0.0
    old.write("moving_speed", 2.0)
    old.cycles(2)
    load = old.read("present_load")
    assert load is not None
    assert load * 1.5 / 0.00485 == pytest.approx(tension(old), abs=0.5)


def test_a_wheel_under_load_is_slower_than_commanded(old: Master) -> None:
    before = old.robot.angle(NAME)
    old.write("moving_speed", 3.0)
    old.cycles(25)
    assert 0.6 * 1.5 < old.robot.angle(NAME) - before < 0.95 * 1.5


def test_potentiometers_follow_their_spools_wherever_they_were_mounted(robot) -> None:
    with EmulatedRobot(robot, potentiometers={NAME: (3000.0, -1)}) as emulated:
        master = Master(emulated)
        assert master.counts(6) == 3000
        master.write("moving_speed", 3.0)
        master.cycles(25)
        turned = emulated.angle(NAME)
        assert master.counts(6) == round(3000.0 - turned / RADIANS_PER_COUNT)
        line = emulated.lines(NAME)["potentiometer"]
        assert line(master.counts(6)) == pytest.approx(length(master), abs=0.6 * RADIANS_PER_COUNT * 0.00485)
        answer = master.ask(BoardRequest(STATE, 1))
        assert answer is not None and answer.state is not None and answer.state.velocities[6] < VELOCITY_ZERO
        master.close()


def test_the_board_keeps_the_positions_that_it_is_sent(old: Master) -> None:
    desired = tuple(range(1000, 1012))
    assert old.ask(BoardRequest(POSITIONS, 9, desired)) == BoardAnswer(POSITIONS, 9)
    answer = old.ask(BoardRequest(STATE, 10))
    assert answer is not None and answer.state is not None
    assert answer.state.desired == desired


def test_a_torque_limit_stops_winding_in(new: Master) -> None:
    start = tension(new)
    constant = MOTORS["XM430-W350"].torque_constant
    assert constant is not None
    ceiling = 1.3 * start
    new.write("goal_current", ceiling * 0.00485 / constant)
    position = new.read("present_position")
    assert position is not None
    new.write("goal_position", position + 40.0)
    new.cycles(250)
    stalled = length(new)
    assert tension(new) == pytest.approx(ceiling, rel=0.1)
    new.cycles(50)
    assert length(new) == pytest.approx(stalled, abs=2e-4)


def test_torque_off_lets_every_spool_be_pulled_loose(old: Master) -> None:
    before = {each.actuator: tension(old, each.actuator) for each in old.robot.identity}
    for each in old.robot.identity:
        old.write("torque_enable", 0.0, each.id)
    old.cycles(100)
    for each in old.robot.identity:
        assert tension(old, each.actuator) < 0.4 * before[each.actuator]
        assert old.robot.angle(each.actuator) < -3.0


def test_a_watchdog_stops_a_robot_whose_master_falls_silent(new: Master) -> None:
    new.write("torque_enable", 0.0)
    new.write("operating_mode", 1)
    new.write("torque_enable", 1.0)
    new.write("bus_watchdog", 0.1)
    new.write("goal_velocity", -0.5)
    new.cycles(4)
    assert new.robot.register(NAME, "present_velocity") < 0.0
    new.cycles(3)
    stands = length(new)
    new.cycles(10)
    assert length(new) == pytest.approx(stands, abs=1e-6)
    assert new.robot.register(NAME, "bus_watchdog") == pytest.approx(-0.02)


def test_a_power_cycle_loses_turns_and_torque_but_keeps_the_eeprom(new: Master) -> None:
    position = new.read("present_position")
    assert position is not None
    new.write("goal_position", position - 2.0 * math.pi)
    new.cycles(150)
    before = new.read("present_position")
    new.robot.faults.power_cycle(NAME)
    after = new.read("present_position")
    assert before is not None and after is not None
    turns = (after - before) / (2.0 * math.pi)
    assert turns == pytest.approx(round(turns), abs=1e-3) and abs(round(turns)) == 1
    assert new.read("torque_enable") == 0.0
    assert new.read("operating_mode") == 5.0
    assert new.read("id") == ID


# -- faults --------------------------------------------------------------------------------------------------------


def test_a_silent_servo_goes_on_with_what_it_did_until_it_is_mended(old: Master) -> None:
    old.write("moving_speed", 2.0)
    old.cycles(1)
    old.robot.faults.silence(NAME)
    assert old.host.ping(old.port, ID)[1] == sdk.COMM_RX_TIMEOUT
    before = old.robot.angle(NAME)
    old.cycles(5)
    assert old.robot.angle(NAME) > before + 0.1
    old.robot.faults.mend(NAME)
    assert old.write("moving_speed", 0.0) == (SUCCESS, 0)


def test_damaged_answers_and_garbage_go_away_when_mended(old: Master) -> None:
    old.robot.faults.damage(NAME)
    assert all(old.read("led") is None for _ in range(3))
    old.robot.faults.mend()
    old.robot.faults.garbage(b"\xff\x00\xff\x55")
    assert old.read("led") == 0.0


@pytest.mark.parametrize("other", [None, "draw_2"])
def test_duplicate_ids_disturb_each_other(old: Master, other: str | None) -> None:
    old.robot.faults.duplicate(NAME, other)
    disturbed = 0
    for _ in range(6):
        old.port.clearPort()
        old.port.writePort(bytes.fromhex("FFFF070201F5"))
        disturbed += len(old.port.take(7)) == 7
    assert disturbed == 6
    old.robot.faults.mend(NAME)
    assert old.host.ping(old.port, ID)[1] == SUCCESS
    assert old.host.ping(old.port, 8)[1] == SUCCESS


def test_heat_and_low_voltage_are_reported(old: Master) -> None:
    old.robot.faults.heat(NAME, 75.0)
    old.robot.faults.sag(9.0)
    old.cycles(1)
    assert old.read("present_temperature") == 75.0
    assert old.read("present_voltage", 1) == pytest.approx(9.0)
    assert old.read("torque_enable") == 0.0  # it shuts down above 70
    old.robot.faults.mend()
    old.cycles(1)
    assert old.read("present_temperature", ID) == 40.0


def test_broken_frozen_slipping_and_noisy_potentiometers_look_like_it(old: Master) -> None:
    names = [each.actuator for each in old.robot.identity]
    start = [old.counts(k) for k in range(12)]
    old.robot.faults.break_potentiometer(names[0])
    old.robot.faults.freeze_potentiometer(names[1])
    old.robot.faults.slip_potentiometer(names[2], 0.5)
    old.robot.faults.disturb_potentiometer(names[3], 30.0)
    for each in range(1, 6):
        old.write("moving_speed", 2.0, each)
    old.cycles(20)
    moved = [old.counts(k) - start[k] for k in range(5)]
    turned = [old.robot.angle(name) / RADIANS_PER_COUNT for name in names[:5]]
    assert old.counts(0) == 4095
    assert moved[1] == 0
    assert moved[2] == pytest.approx(0.5 * turned[2], abs=1.0)
    assert moved[4] == pytest.approx(turned[4], abs=1.0)
    for each in range(1, 6):
        old.write("moving_speed", 0.0, each)
    old.cycles(1)
    noisy = []
    for _ in range(8):
        old.cycles(1)
        noisy.append(old.counts(3))
    assert len(set(noisy)) > 3
    old.robot.faults.mend()
    old.cycles(1)
    for k in range(5):
        assert old.counts(k) - start[k] == pytest.approx(turned[k], abs=2.0)


def test_a_silent_board_says_nothing_until_it_speaks_again(old: Master) -> None:
    old.robot.faults.silence_board()
    assert old.ask(BoardRequest(STATE, 1)) is None
    old.robot.faults.silence_board(False)
    assert old.ask(BoardRequest(STATE, 2)) is not None


def test_runaway_jam_and_pull_turn_or_hold_the_shaft_whatever_is_commanded(old: Master) -> None:
    old.robot.faults.run_away("saddle_1", -3.0)
    old.robot.faults.jam("saddle_2")
    old.robot.faults.pull_shaft("saddle_3", -2.0)
    old.write("moving_speed", 2.0, 2)
    old.cycles(10)
    assert old.robot.angle("saddle_1") == pytest.approx(-3.0 * 0.2, rel=0.02)
    assert old.robot.angle("saddle_2") == 0.0
    assert old.robot.angle("saddle_3") < -0.05
    old.robot.faults.mend()
    stands = old.robot.angle("saddle_1")
    old.cycles(3)
    assert old.robot.angle("saddle_1") == stands


def test_a_servo_that_loses_its_torque_lets_its_tendon_go(old: Master) -> None:
    old.robot.faults.lose_torque(NAME)
    old.cycles(10)
    assert old.read("torque_enable") == 0.0
    assert old.robot.angle(NAME) < -0.1


def test_a_snapped_tendon_carries_nothing_while_its_spool_turns_on(old: Master) -> None:
    old.robot.faults.snap(NAME)
    old.cycles(10)
    assert tension(old) == 0.0
    before = old.robot.angle(NAME)
    old.write("moving_speed", 3.0)
    old.cycles(10)
    assert old.robot.angle(NAME) - before == pytest.approx(0.2 * OLD.registers["moving_speed"].nearest(3.0), rel=0.02)
    assert tension(old) == 0.0
    old.write("moving_speed", 0.0)
    old.robot.faults.mend(NAME)
    old.cycles(120)
    assert tension(old) > 10.0


def test_somebody_who_pushes_moves_the_body_and_changes_tensions(old: Master) -> None:
    before = old.robot.observe().pose
    old.robot.faults.push("top_1", (0.0, 0.0, -60.0))
    old.cycles(50)
    pushed = old.robot.observe().pose
    assert before is not None and pushed is not None
    assert np.linalg.norm(pushed[0] - before[0]) > 1e-4
    old.robot.faults.mend()
    old.cycles(100)
    after = old.robot.observe().pose
    assert after is not None
    assert np.linalg.norm(after[0] - before[0]) < np.linalg.norm(pushed[0] - before[0]) / 3.0
    with pytest.raises(TensegrityError, match="nobody"):
        old.robot.faults.push("nobody", (0.0, 0.0, 1.0))


def test_an_unplugged_port_is_gone_and_comes_back_under_its_name(old: Master) -> None:
    path = Path(old.robot.servo_port)
    old.robot.faults.unplug()
    assert not path.exists()
    with pytest.raises((OSError, serial.SerialException)):
        old.port.ser.write(b"\xff")
    old.cycles(2)  # the world goes on
    old.robot.faults.plug()
    again = Master(old.robot)
    assert again.host.ping(again.port, ID)[1] == SUCCESS
    again.close()


def test_spikes_delay_every_so_many_deliveries(old: Master) -> None:
    old.robot.faults.spike(59.0, every=2)
    results = [old.read("led") is None for _ in range(2)]
    assert sorted(results) == [False, True]


def test_an_echo_returns_what_was_sent(old: Master) -> None:
    old.robot.faults.echo()
    packet = bytes.fromhex("FFFF070201F5")
    old.port.writePort(packet)
    assert old.port.take(6) == packet
    assert len(old.port.take(6)) == 6


def test_faults_as_text_are_the_faults(old: Master) -> None:
    execute(old.robot.faults, "silent draw_1\n")
    assert old.host.ping(old.port, ID)[1] == sdk.COMM_RX_TIMEOUT
    execute(old.robot.faults, "mend")
    assert old.host.ping(old.port, ID)[1] == SUCCESS
    execute(old.robot.faults, "set_register draw_1 model_number 18")
    assert old.host.ping(old.port, ID)[0] == 18
    for line, part in (
        ("silnt draw_1", "silent"), ("heat draw_1", "CELSIUS"), ("heat draw_1 x", "x"), ("jam x", "x"),
        ("set_register draw_1 modle_number 18", "model_number"), ("set_register draw_1 id 256", "0 to 255"),
    ):  # fmt: skip
        with pytest.raises(BusError, match=part):
            execute(old.robot.faults, line)
    assert all(each.usage.split()[0] == word for word, each in COMMANDS.items())


# -- what cannot be emulated ---------------------------------------------------------------------------------------


def test_robots_without_servos_are_refused() -> None:
    with pytest.raises(BusError, match="no servos"):
        EmulatedRobot(load_robot("three_prism"))
    with pytest.raises(BusError, match="no servos"):
        with_servos(load_robot("three_prism"), "XM430-W350")


def test_servos_of_the_wrong_protocol_are_refused(robot) -> None:
    from dataclasses import replace

    with pytest.raises(BusError, match="protocol"):
        EmulatedRobot(replace(robot, servos={**robot.servos, "protocol": 2}))


def test_unknown_names_are_refused_and_nothing_changes(old: Master) -> None:
    for fault in (old.robot.faults.silence, old.robot.faults.snap, old.robot.faults.jam, old.robot.faults.mend):
        with pytest.raises(BusError, match="draw_1"):
            fault("draw_l")
    with pytest.raises(BusError, match="servos"):
        old.robot.faults.unplug("servo")


def test_servos_as_delivered_are_not_set_up(robot) -> None:
    with EmulatedRobot(with_servos(robot, "XL430-W250"), prepared=False, torque_on=False) as emulated:
        assert emulated.register(NAME, "operating_mode") == 3.0
        assert emulated.register(NAME, "return_delay") == pytest.approx(500e-6)
        assert emulated.register(NAME, "torque_enable") == 0.0
        assert emulated.register(NAME, "id") == ID


# -- with the clock, and as a process ------------------------------------------------------------------------------


def test_with_the_clock_the_world_moves_by_itself_and_not_by_hand(robot) -> None:
    wire = WireSettings(baud_rate=1_000_000, return_delay=True, latency_timer=0.001, check_baud_rate=True)
    with EmulatedRobot(robot, realtime=True, wire=wire) as emulated:
        master = Master(emulated)
        with pytest.raises(BusError, match="clock"):
            emulated.advance(0.1)
        assert master.write("moving_speed", -2.0) == (SUCCESS, 0)
        before = emulated.time
        until(lambda: master.read("led") == 0.0 and emulated.time > before + 0.1)
        assert emulated.angle(NAME) < 0.0
        emulated.check()
        master.close()


SLOW_END = """
import time
from tensegrity_driver.emulator import __main__ as program
close = program.EmulatedRobot.close
program.EmulatedRobot.close = lambda robot: (time.sleep(1.2), close(robot))  # as on a busy computer
program.main()
"""


@pytest.mark.system
def test_the_process_serves_ports_takes_faults_and_leaves_nothing_behind(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_END, "tensebot", "--directory", str(tmp_path), "--no-wire"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).resolve().parents[3],
    )  # fmt: skip
    try:
        assert process.stdin is not None and process.stdout is not None
        said = [process.stdout.readline().strip() for _ in range(3)]
        assert said == [f"servos {tmp_path / 'servos'}", f"potentiometers {tmp_path / 'potentiometers'}", "ready"]
        port = os.open(tmp_path / "servos", os.O_RDWR | os.O_NOCTTY)
        ping = bytes.fromhex("FFFF070201F5")
        os.write(port, ping)
        assert select.select([port], [], [], PATIENCE_S)[0]
        assert os.read(port, 16) == bytes.fromhex("FFFF070200F6")
        for line, answer in (("silent draw_1", "done"), ("nonsense", "refused"), ("unplug", "done")):
            process.stdin.write(line + "\n")
            process.stdin.flush()
            assert process.stdout.readline().startswith(answer)
        os.close(port)
        assert not (tmp_path / "servos").exists()
        process.stdin.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
        assert list(tmp_path.iterdir()) == []
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


@pytest.mark.parametrize(("silences", "answered"), [([0.0, 0.1, 0.0, 9.0], 3), ([0.0] * 100, 4)])
def test_at_its_end_a_driver_that_still_sends_gets_answers_for_a_while(old, monkeypatch, silences, answered) -> None:
    assert old.robot.silence == math.inf
    assert old.write("led", 1.0) == (SUCCESS, 0)
    assert old.robot.silence < math.inf
    said, answers, clock = iter(silences), [], [100.0]

    def sleep(_: float) -> None:
        answers.append(old.write("led", 1.0))
        clock[0] += 0.25 * emulator_process.LONGEST_END_S

    monkeypatch.setattr(EmulatedRobot, "silence", property(lambda self: next(said)))
    monkeypatch.setattr(emulator_process, "time", SimpleNamespace(monotonic=lambda: clock[0], sleep=sleep))
    with open(os.devnull) as nothing, open(os.devnull) as stop:
        monkeypatch.setattr(sys, "stdin", nothing)
        emulator_process.serve(old.robot, stop.fileno())
    assert answers == [(SUCCESS, 0)] * answered


def test_with_the_clock_instructions_act_when_they_arrive_whoever_had_its_turn_last(robot, monkeypatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(emulated_robot, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(EmulatedRobot, "keep_time", lambda self: None)  # its thread never has a turn
    with EmulatedRobot(robot, realtime=True) as emulated:
        master = Master(emulated)
        clock[0] += 0.1
        assert master.write("moving_speed", -2.0) == (SUCCESS, 0)
        assert emulated.time == pytest.approx(0.1, abs=2e-3) and emulated.angle(NAME) == pytest.approx(0.0, abs=1e-9)
        clock[0] += 0.1
        emulated.catch_up()
        assert emulated.time == pytest.approx(0.2, abs=2e-3) and emulated.angle(NAME) < 0.0
        clock[0] += 60.0  # a computer that slept: no longer than its servos would go on by themselves
        emulated.catch_up()
        assert emulated.time == pytest.approx(0.6, abs=2e-3)
        master.close()


def test_servos_of_a_driver_in_this_process_wait_for_it_however_long_it_stands_still(robot, monkeypatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(emulated_robot, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(EmulatedRobot, "keep_time", lambda self: None)
    with EmulatedRobot(robot, realtime=True, waits=True) as emulated:
        master = Master(emulated)
        for _ in range(10):  # the thread of its time goes on, the driver does not
            clock[0] += 0.1
            emulated.catch_up()
        assert emulated.time == pytest.approx(0.4, abs=2e-3)  # below the silence after which a bus watchdog bites
        assert master.write("moving_speed", 0.0) == (SUCCESS, 0)
        clock[0] += 0.1
        emulated.catch_up()
        assert emulated.time == pytest.approx(0.5, abs=2e-3)
        master.close()
