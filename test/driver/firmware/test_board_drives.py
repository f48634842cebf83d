"""A robot whose potentiometer board closes the position loops: the firmware and the emulated board obey the same laws.

Everything passes through the project's own driver, over a pseudo-terminal, to emulated AX-12A at the board's own bus.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from emulated_cell import EmulatedCell, robot_with
from firmware_board import FirmwareBoard, needs_compiler

from tensegrity_driver.emulator.driving_board import DrivingBoard
from tensegrity_driver.hardware.emulated_hardware import EmulatedHardware
from tensegrity_driver.safety.faults import FaultKind
from tensegrity_dynamics.errors import BusError

BOARDS = [pytest.param(FirmwareBoard, id="firmware", marks=needs_compiler), pytest.param(DrivingBoard, id="emulated")]
ROBOT = robot_with("AX-12A")
ROBOT = replace(ROBOT, servos={**ROBOT.servos, "position_loop": "board"})


@pytest.fixture(params=BOARDS)
def cell(request, tmp_path, monkeypatch) -> Iterator[EmulatedCell]:
    monkeypatch.setattr(
        "emulated_cell.EmulatedHardware", lambda robot: EmulatedHardware(robot, make_board=request.param)
    )
    made = EmulatedCell(ROBOT, tmp_path)
    yield made
    made.close()


@pytest.mark.sampled(1)
def test_the_board_moves_every_spool_to_its_set_point(cell) -> None:
    start = cell.lengths()
    goals = {name: length + (0.004 if k % 2 else -0.004) for k, (name, length) in enumerate(start.items())}
    cell.goals = goals
    cell.run(150)
    assert not cell.faults
    for name, goal in goals.items():
        assert cell.length(name) == pytest.approx(goal, abs=4e-4), name


@pytest.mark.sampled(1)
def test_a_long_fast_move_neither_overshoots_nor_raises_a_fault(cell) -> None:
    name, start = "draw_1", cell.length("draw_1")
    farthest = []
    cell.each_cycle = lambda: farthest.append(cell.length(name))
    cell.goals = {name: start + 0.02}
    cell.run(150)
    assert not cell.faults
    assert max(farthest) < start + 0.02 + 8e-4
    assert cell.length(name) == pytest.approx(start + 0.02, abs=4e-4)


def send_away(cell: EmulatedCell, by: float = 0.03) -> dict[str, float]:
    """Every spool on its way to a position far from here, in full speed."""
    cell.goals = {name: length - by * (1 if k % 2 else -1) for k, (name, length) in enumerate(cell.lengths().items())}
    cell.run(12)
    return cell.lengths()


def speeds(cell: EmulatedCell) -> dict[str, float]:
    return {name: cell.emulated.register(name, "moving_speed") for name in cell.driver.spools}


@pytest.mark.sampled(1)
def test_a_silent_host_stops_every_servo_within_half_a_second_of_board_time(cell) -> None:
    send_away(cell)
    assert all(speed != 0.0 for speed in speeds(cell).values())
    for _ in range(25):  # 0.5 s in which the driver says nothing
        cell.world(0.02)
    assert not any(speeds(cell).values())
    stopped = cell.lengths()
    for _ in range(100):
        cell.world(0.02)
    assert cell.lengths() == pytest.approx(stopped, abs=5e-5)  # stopped, and held against the tension


def test_reading_alone_does_not_keep_the_servos_turning(cell) -> None:
    send_away(cell)
    for _ in range(25):
        cell.world(0.02)
        cell.driver.link.read()  # a program that still reads, but whose control is dead
    assert not any(speeds(cell).values())


def test_after_silence_nothing_moves_until_the_faults_are_cleared(cell) -> None:
    send_away(cell)
    cell.run_world_only(30)
    cell.goals = {name: length + 0.01 for name, length in cell.lengths().items()}
    before = cell.lengths()
    step = cell.run(20)
    assert FaultKind.WATCHDOG_UNARMED in cell.kinds
    assert cell.lengths() == pytest.approx(before, abs=5e-5)
    assert "the host sent no positions" in " ".join(step.notes)
    cell.goals = {}
    cell.driver.recover()
    cell.clear(within=30)
    cell.go_to("draw_1", cell.length("draw_1") + 0.005, within=100)


def test_a_silent_servo_stops_all_others_and_is_named(cell) -> None:
    cell.emulated.faults.silence("draw_3")
    step = cell.run(40)
    assert "draw_3: a servo does not answer the board" in " ".join(step.notes)
    assert (FaultKind.SERVO_SILENT, "draw_3") in cell.faults
    others = [speed for name, speed in speeds(cell).items() if name != "draw_3"]
    assert not any(others)


def test_a_servo_that_lost_its_torque_is_found_and_prepared_again(cell) -> None:
    cell.emulated.faults.lose_torque("draw_2")
    step = cell.run(30)
    assert "draw_2: a servo lost its torque" in " ".join(step.notes)
    cell.driver.recover()
    cell.clear(within=40)
    assert cell.emulated.register("draw_2", "torque_enable") == 1.0


@pytest.mark.parametrize("counts", [0, 4095])
def test_a_broken_potentiometer_stops_the_board_in_one_period(cell, counts: int) -> None:
    send_away(cell)
    cell.emulated.faults.break_potentiometer("saddle_1", counts)
    cell.world(0.02)
    assert not any(speeds(cell).values())


def test_torque_off_is_confirmed_by_every_servo(cell) -> None:
    cell.driver.end(release_torque=True)
    assert not any(cell.emulated.register(name, "torque_enable") for name in cell.driver.spools)


def test_torque_off_of_a_servo_that_hears_nothing_says_so(cell, monkeypatch) -> None:
    monkeypatch.setattr("tensegrity_driver.servos.board_group.MODE_PATIENCE_S", 0.05)
    cell.emulated.faults.silence("draw_3")
    with pytest.raises(BusError, match=r"torque may still be on.*Switch the servo supply off"):
        cell.driver.end(release_torque=True)


def test_one_runaway_is_let_go_and_the_others_stop(cell) -> None:
    cell.disobedient = ("draw_1",)
    cell.pulled = True
    cell.emulated.faults.run_away("draw_1", 1.0)
    cell.until(FaultKind.WRONG_SIGN, "draw_1", within=60)  # the loop of the board turns against it
    cell.run(5)
    assert cell.emulated.register("draw_1", "torque_enable") == 0.0
    assert all(cell.emulated.register(name, "torque_enable") for name in cell.driver.spools if name != "draw_1")
    assert not any(speeds(cell)[name] for name in cell.driver.spools if name != "draw_1")


def test_a_servo_of_another_model_is_not_armed(cell) -> None:
    cell.driver.end(release_torque=True)
    cell.emulated.faults.set_register("draw_4", "model_number", 18)
    with pytest.raises(BusError, match="draw_4: a servo is no AX-12A"):
        cell.driver.begin(lambda: cell.now)


def test_servos_in_joint_mode_are_set_to_wheel_mode_before_they_get_torque(cell) -> None:
    cell.driver.end(release_torque=True)
    cell.emulated.faults.set_register("draw_4", "ccw_limit", 1023)
    cell.driver.begin(lambda: cell.now)
    assert cell.emulated.register("draw_4", "ccw_limit") == 0.0
    assert cell.emulated.register("draw_4", "torque_enable") == 1.0


def test_the_torque_limit_is_the_effort_of_the_actuator(cell) -> None:
    for name, spool in cell.driver.spools.items():
        allowed = spool.actuator.effort * spool.radius / 1.5
        assert cell.emulated.register(name, "torque_limit") == pytest.approx(min(1.0, allowed), abs=2e-3)


@pytest.mark.sampled(1)
def test_single_lost_answers_of_the_board_do_not_add_up_to_a_silent_servo(cell) -> None:
    for _ in range(8):
        cell.emulated.faults.silence_board()
        cell.run(1)
        cell.emulated.faults.silence_board(False)
        cell.run(1)
        assert {reading.raw.age for reading in cell.driver.readings.tendons.values()} == {0}
    assert FaultKind.SERVO_SILENT not in cell.kinds


@pytest.mark.sampled(1)
def test_a_silent_board_is_a_silent_servo_for_every_tendon(cell) -> None:
    cell.emulated.faults.silence_board()
    cell.run(6)
    assert {name for kind, name in cell.faults if kind is FaultKind.SERVO_SILENT} == set(cell.driver.spools)


def test_readings_tell_what_the_board_tells(cell) -> None:
    cell.emulated.faults.heat("draw_1", 55.0)
    cell.run(30)
    reading = cell.driver.readings.tendons["draw_1"].raw
    assert reading.temperature == 55.0
    assert reading.voltage == 12.0
    assert reading.torque_on
    assert reading.watchdog
