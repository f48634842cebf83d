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


def test_the_board_moves_every_spool_to_its_set_point(cell) -> None:
    start = cell.lengths()
    goals = {name: length + (0.004 if k % 2 else -0.004) for k, (name, length) in enumerate(start.items())}
    cell.goals = goals
    cell.run(150)
    assert not cell.faults
    for name, goal in goals.items():
        assert cell.length(name) == pytest.approx(goal, abs=4e-4), name
