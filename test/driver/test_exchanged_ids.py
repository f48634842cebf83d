"""Before commands are followed every spool is moved a little, and must be the one that answers."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from pathlib import Path

import pytest
from driver_link import PERIOD, START, IdealLink, calibration
from emulated_cell import WHEELS, emulated_cell

from tensegrity_driver.calibration.calibration_file import save_calibration
from tensegrity_driver.driver import Driver, open_driver
from tensegrity_driver.safety.faults import FaultKind
from tensegrity_driver.spools.readings import ServoCommand
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.command_gate import Mode

ROBOT = load_robot("tensebot")
NAMES = [row["actuator"] for row in ROBOT.servos["servos"]]
DISTANCE = 0.6e-3
CYCLES = 80
"""More than it takes: four rounds of 18."""


class ExchangedLink(IdealLink):
    """Servos that take each other's commands."""

    exchanged: Mapping[str, str] = {}
    moved = 0.0

    def write(self, commands: Mapping[str, ServoCommand]) -> None:
        super().write({self.exchanged.get(name, name): command for name, command in commands.items()})
        self.moved = max(self.moved, *(abs(length - START) for length in self.lengths.values()))


def begun(folder: Path, exchanged: Mapping[str, str]) -> Driver:
    path = folder / "calibration.json"
    if not path.exists():
        save_calibration(path, calibration(ROBOT))
    driver = open_driver(ROBOT, ExchangedLink, calibration=path)
    driver.link.exchanged = exchanged
    driver.begin(lambda: 0.0)
    return driver


def run(driver: Driver, cycles: int, goals: Mapping[str, float] | None = None) -> set[FaultKind]:
    for _ in range(cycles):
        now = (driver.counter.cycles + 1) * PERIOD
        if goals:
            driver.command(list(goals), list(goals.values()), Mode.POSITION, source="c", session=1, stamp=now, now=now)
        driver.run(PERIOD, now)
    return {fault.kind for fault in driver.faults}


def permutations() -> list[dict[str, str]]:
    chance = random.Random(5)
    pairs = [{a: b, b: a} for a, b in itertools.combinations(NAMES, 2)]
    return pairs + [dict(zip(NAMES, chance.sample(NAMES, len(NAMES)), strict=True)) for _ in range(30)]


@pytest.mark.long
def test_every_exchange_of_two_and_any_shuffle_is_found_and_nothing_moves_further_than_the_trial(
    tmp_path: Path,
) -> None:
    for exchanged in permutations():
        driver = begun(tmp_path, exchanged)
        kinds = run(driver, CYCLES, {"draw_1": 0.2, "saddle_3": 0.23})
        wrong = {name for name, taken in exchanged.items() if name != taken}
        assert FaultKind.WRONG_SPOOL in kinds, exchanged
        assert {fault.tendon for fault in driver.faults if fault.kind is FaultKind.WRONG_SPOOL} <= wrong
        assert driver.link.moved <= 1.2 * DISTANCE
        assert all(driver.link.torque.values()), "tight tendons would run out"
        before = dict(driver.link.lengths)
        run(driver, 50, {"draw_1": 0.2})
        assert driver.link.lengths == pytest.approx(before, abs=1e-5)
        release(driver)  # without mending anything
        assert FaultKind.WRONG_SPOOL in run(driver, CYCLES, {"draw_1": 0.2})
        assert driver.link.moved <= 2.4 * DISTANCE


def release(driver: Driver) -> None:
    """What the service driver/release does."""
    driver.recover()
    run(driver, 1)
    driver.clear()


def test_a_release_tries_the_spools_again_and_those_that_were_exchanged_back_follow(tmp_path: Path) -> None:
    driver = begun(tmp_path, {"draw_1": "saddle_3", "saddle_3": "draw_1"})
    assert FaultKind.WRONG_SPOOL in run(driver, CYCLES)
    assert all("driver/release" in fault.line for fault in driver.faults)
    release(driver)
    assert driver.identifying, "and nothing follows commands before that"
    assert FaultKind.WRONG_SPOOL in run(driver, CYCLES, {"draw_1": 0.2})
    assert driver.link.moved <= 2.4 * DISTANCE
    driver.link.exchanged = {}
    release(driver)
    assert not run(driver, CYCLES)
    assert not driver.identifying
    for _ in range(150):
        now = (driver.counter.cycles + 1) * PERIOD
        driver.command(["draw_1"], [0.2], Mode.POSITION, source="c", session=2, stamp=now, now=now)
        driver.run(PERIOD, now)
    assert driver.link.lengths["draw_1"] == pytest.approx(0.2, abs=3e-4)


def test_spools_that_are_what_they_are_called_come_back_and_follow(tmp_path: Path) -> None:
    driver = begun(tmp_path, {})
    assert driver.identifying
    assert not run(driver, CYCLES, {"draw_1": 0.2})
    assert not driver.identifying
    assert driver.link.moved <= 1.2 * DISTANCE + CYCLES * PERIOD * 0.015
    run(driver, 150, {"draw_1": 0.2})
    assert driver.link.lengths["draw_1"] == pytest.approx(0.2, abs=3e-4)
    assert driver.link.lengths["draw_2"] == pytest.approx(START, abs=3e-4)


def test_exchanged_ids_on_a_tight_robot_are_found_and_no_tendon_runs_out(tmp_path: Path) -> None:
    with emulated_cell(tmp_path, WHEELS, identify=DISTANCE) as cell:
        start = cell.lengths()
        while cell.driver.identifying:
            cell.run(1)
            assert not cell.faults
        # loaded servos in wheel mode have crept by 1.2 mm meanwhile
        assert cell.lengths() == pytest.approx(start, abs=0.25e-3)
        tensions = {name: cell.tension(name) for name in cell.driver.spools}
        cell.driver.end()
        cell.driver.close()
        ids = {each.actuator: each.id for each in cell.emulated.identity}
        cell.put_register("draw_1", "id", ids["saddle_2"])
        cell.put_register("saddle_2", "id", ids["draw_1"])
        cell.driver = cell.open()
        cell.driver.begin(lambda: cell.now)
        cell.new_goal()
        before = cell.lengths()
        cell.goals = {"draw_1": before["draw_1"] - 0.005}
        cell.run(CYCLES)
        # the angles of an AX-12A tell of it, too, where they were calibrated, and sooner
        either = {FaultKind.WRONG_SPOOL, FaultKind.SENSORS_DISAGREE}
        assert {(kind in either, tendon) for kind, tendon in cell.faults} == {(True, "draw_1"), (True, "saddle_2")}
        cell.run(100)
        assert cell.lengths() == pytest.approx(before, abs=1.5e-3)
        assert all(cell.emulated.register(name, "torque_enable") == 1.0 for name in before)
        assert max(tensions.values()) > 50.0, "the robot is tight"
