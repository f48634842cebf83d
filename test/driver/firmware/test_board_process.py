"""The firmware as a process of its own, between terminals: its time is counted, whatever else the machine does."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import replace

import pytest
from emulated_cell import TENSEBOT
from firmware_board import built, needs_compiler
from patience import PATIENCE_S, until

from tensegrity_driver.bus.potentiometer_board import PotentiometerBoard
from tensegrity_driver.bus.potentiometer_protocol import BoardMode, BoardReason
from tensegrity_driver.bus.serial_port import SerialPort
from tensegrity_driver.calibration.calibrated_spools import make_spools, servo_rows
from tensegrity_driver.emulator import EmulatedRobot
from tensegrity_driver.servos.board_group import BoardGroup
from tensegrity_driver.spools.readings import Drive, ServoCommand, ServoReading
from tensegrity_driver.spools.spool import Line, Spool

pytestmark = [needs_compiler, pytest.mark.system]
STEP_MS = 5


class World(SerialPort):
    """The board's process and the robot behind it; some milliseconds pass with every request of the host."""

    def __init__(self, emulated: EmulatedRobot, link: str, clock: str = "stdin") -> None:
        super().__init__(link, patience=PATIENCE_S)
        self.emulated, self.counts_time = emulated, clock == "stdin"
        self.process = subprocess.Popen(
            [built("board_host"), "--servos", emulated.servo_port, "--converters", str(emulated.board_port),
             "--link", link, "--clock", clock],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
        )  # fmt: skip
        assert self.process.stdout is not None
        assert self.process.stdout.read(6) == b"ready\n"

    def run(self, milliseconds: int) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        for _ in range(0, milliseconds, STEP_MS):
            self.emulated.advance(1e-3 * STEP_MS)
            for _ in range(STEP_MS):
                self.process.stdin.write(b".")
                assert self.process.stdout.read(1) == b"."

    def writePort(self, packet: list[int] | bytes) -> int:  # noqa: N802
        if self.counts_time:
            self.run(STEP_MS)
        return super().writePort(packet)

    def __exit__(self, *unused: object) -> None:
        self.process.kill()
        self.process.communicate()

    def __enter__(self) -> World:
        return self


def test_the_process_moves_spools_and_stops_them_when_its_host_says_nothing_more(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("tensegrity_driver.servos.board_group.MODE_PATIENCE_S", PATIENCE_S)
    with EmulatedRobot(TENSEBOT) as emulated, World(emulated, str(tmp_path / "board")) as world:
        group = BoardGroup(servo_rows(TENSEBOT), PotentiometerBoard(world, 12))
        group.open()
        world.run(20)
        group.check()
        rough = make_spools(TENSEBOT, None)
        group.spools = {name: _limits_around(rough[name], group, name) for name in rough}
        group.prepare()
        start = {name: reading.sensor for name, reading in _read(group).items()}
        goals = {name: round(counts) + (25 if k % 2 else -25) for k, (name, counts) in enumerate(start.items())}
        for _ in range(50):
            group.write({name: ServoCommand(Drive.POSITION, counts=goal) for name, goal in goals.items()})
            if all(abs(reading.sensor - goals[name]) <= 4 for name, reading in _read(group).items()):
                break
        else:
            raise AssertionError(f"goals {goals} were not reached")
        far = {name: goal + (400 if k % 2 else -400) for k, (name, goal) in enumerate(goals.items())}
        group.write({name: ServoCommand(Drive.POSITION, counts=goal) for name, goal in far.items()})
        world.run(350)
        assert all(emulated.register(name, "moving_speed") for name in far)
        world.run(100)
        assert not any(emulated.register(name, "moving_speed") for name in far)
        servo = group.board.servo(0)
        assert (servo.mode, servo.reason) == (BoardMode.STOPPED, BoardReason.HOST_SILENT)
        assert all(abs(reading.sensor - far[name]) > 20 for name, reading in _read(group).items())
        group.close()


def test_by_its_own_clock_the_process_tells_what_potentiometers_measure(tmp_path) -> None:
    with EmulatedRobot(TENSEBOT) as emulated, World(emulated, str(tmp_path / "board"), clock="own") as world:
        board = PotentiometerBoard(world, 12)
        board.open()
        until(lambda: (state := board.read()) is not None and min(state.positions) > 1000)
        board.close()


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
