"""The firmware as a process of its own, between terminals, in real time: what comes out, not how long it took."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from emulated_cell import TENSEBOT
from firmware_board import built, needs_compiler

from tensegrity_driver.bus.potentiometer_board import PotentiometerBoard
from tensegrity_driver.bus.potentiometer_protocol import BoardMode, BoardReason
from tensegrity_driver.bus.serial_port import SerialPort
from tensegrity_driver.calibration.calibrated_spools import make_spools, servo_rows
from tensegrity_driver.emulator import EmulatedRobot
from tensegrity_driver.servos.board_group import BoardGroup
from tensegrity_driver.spools.readings import Drive, ServoCommand, ServoReading
from tensegrity_driver.spools.spool import Line, Spool

pytestmark = [needs_compiler, pytest.mark.system]
PATIENCE_S = 60.0


def until(done: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def test_the_process_moves_spools_and_stops_them_when_its_host_says_nothing_more(tmp_path, monkeypatch) -> None:
    # a busy computer keeps the emulated servos waiting, too
    monkeypatch.setattr("tensegrity_driver.servos.board_group.MODE_PATIENCE_S", PATIENCE_S)
    program = built("board_host")
    link = tmp_path / "board"
    with EmulatedRobot(TENSEBOT, realtime=True) as emulated:
        process = subprocess.Popen(
            [program, "--servos", emulated.servo_port, "--converters", str(emulated.board_port), "--link", link],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            group = BoardGroup(servo_rows(TENSEBOT), PotentiometerBoard(SerialPort(str(link), patience=0.5), 12))
            group.open()
            _drive_and_fall_silent(emulated, group)
            group.close()
        finally:
            process.kill()
            process.wait()


def _drive_and_fall_silent(emulated: EmulatedRobot, group: BoardGroup) -> None:
    until(lambda: group.board.read() is not None and min(group.board.read().positions) > 1000, "no potentiometers")
    group.check()
    rough = make_spools(TENSEBOT, None)
    group.spools = {name: _limits_around(rough[name], group, name) for name in rough}
    group.prepare()
    start = {name: reading.sensor for name, reading in _read(group).items()}
    goals = {name: round(counts) + (25 if k % 2 else -25) for k, (name, counts) in enumerate(start.items())}

    def reached() -> bool:
        if group.unprepared():  # this machine was too busy to send something for 0.4 s, which is what the board is for
            group.prepare()
        group.write({name: ServoCommand(Drive.POSITION, counts=goal) for name, goal in goals.items()})
        return all(abs(reading.sensor - goals[name]) <= 4 for name, reading in _read(group).items())

    until(reached, f"goals {goals} were not reached")
    group.prepare()
    far = {name: goal + (400 if k % 2 else -400) for k, (name, goal) in enumerate(goals.items())}
    group.write({name: ServoCommand(Drive.POSITION, counts=goal) for name, goal in far.items()})

    def stopped() -> bool:
        _read(group)
        return bool(group.unprepared())

    until(stopped, "the board goes on without its host")
    assert group.board.servo(0).mode is BoardMode.STOPPED
    assert group.board.servo(0).reason is BoardReason.HOST_SILENT
    until(lambda: not any(emulated.register(name, "moving_speed") for name in far), "servos turn on")
    assert any(abs(reading.sensor - far[name]) > 20 for name, reading in _read(group).items())


def _read(group: BoardGroup) -> Mapping[str, ServoReading]:
    return group.read()[0]


def _limits_around(spool: Spool, group: BoardGroup, name: str) -> Spool:
    """The spool with its intercept so that it stands in the middle of its limits."""
    state = group.board.read()
    assert state is not None
    counts = state.positions[next(row["potentiometer"] for row in servo_rows(TENSEBOT) if row["actuator"] == name)]
    assert spool.potentiometer is not None
    slope = spool.potentiometer.slope
    return replace(spool, on_board=True, potentiometer=Line(slope, 0.5 * sum(spool.actuator.position) - slope * counts))
