"""A driver opens only on the bus and the calibration that belong to its robot, and is calibrated without surprises."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from driver_link import IDENTITY, PERIOD, START, IdealLink, calibration, ideal_lines

from tensegrity_driver.bus.identity import BusIdentity
from tensegrity_driver.calibration.calibration_file import load_calibration, save_calibration
from tensegrity_driver.calibration.line_fit import CalibrationError
from tensegrity_driver.driver import Driver, open_driver
from tensegrity_driver.hardware.settings import calibration_path, hardware_settings
from tensegrity_driver.safety.faults import FaultKind, Reaction
from tensegrity_driver.safety.settings import SafetySettings
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.command_gate import Mode
from tensegrity_dynamics.errors import BusError, CommandRefused, TensegrityError
from tensegrity_dynamics.robots.robot import Robot

SHIPPED = load_robot("tensebot")
ROBOT = replace(SHIPPED, servos={**SHIPPED.servos, "safety": {"identify": 0.0}})


def opened(tmp_path: Path, robot: Robot = ROBOT) -> Driver:
    path = tmp_path / "calibration.json"
    save_calibration(path, calibration(robot))
    return open_driver(robot, IdealLink, calibration=path)


def running(tmp_path: Path) -> Driver:
    driver = opened(tmp_path)
    driver.begin(lambda: 0.0)
    return driver


def link_of(driver: Driver) -> IdealLink:
    assert isinstance(driver.link, IdealLink)
    return driver.link


def points(name: str, count: int = 6, shift: float = 0.0) -> tuple[list[float], list[float]]:
    """Readings and lengths that a rule would show."""
    line = ideal_lines(ROBOT)[name]
    lengths = [0.17 + 0.018 * k for k in range(count)]
    return [line.inverse(length) for length in lengths], [length + shift for length in lengths]


# -- settings -------------------------------------------------------------------------------------------------------


def test_settings_come_from_the_robot_and_what_is_asked_for_goes_before_them() -> None:
    servos = {**ROBOT.servos, "safety": {"period": 0.01, "reactions": {"slack": "hold"}}, "homing": {"look": 30}}
    robot = replace(ROBOT, servos=servos)
    settings = hardware_settings(robot)
    assert settings.safety.period == 0.01
    assert settings.safety.reaction(FaultKind.SLACK) is Reaction.HOLD
    assert settings.homing.look == 30
    assert hardware_settings(robot, period=0.05).safety.period == 0.05
    assert hardware_settings(SHIPPED).safety == SafetySettings()


def test_the_calibration_lies_beside_the_robot_file_or_in_the_home_of_the_user(tmp_path: Path) -> None:
    assert calibration_path(ROBOT) == Path.home() / ".tensegrity" / "tensebot.calibration.json"
    beside = replace(ROBOT, servos={**ROBOT.servos, "calibration": "mine.json"}, path=tmp_path / "robot.yaml")
    assert calibration_path(beside) == tmp_path / "mine.json"
    assert calibration_path(replace(beside, servos={"calibration": "/x/mine.json"})) == Path("/x/mine.json")


def test_a_robot_without_servos_has_no_driver() -> None:
    with pytest.raises(TensegrityError, match="has no servos"):
        open_driver(load_robot("three_prism"), IdealLink)


# -- opening --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: replace(c, robot="other"), "is for robot 'other'"),
        (lambda c: replace(c, hardware="0"), "other servo settings"),
        (lambda c: replace(c, bus=BusIdentity("test", ((1, 12),))), "is for another bus: servo 2 is new"),
    ],
)
def test_a_calibration_of_something_else_is_refused_and_the_port_closed(tmp_path: Path, change, words: str) -> None:
    path = tmp_path / "calibration.json"
    save_calibration(path, change(calibration(ROBOT)))
    links: list[IdealLink] = []

    def make(*arguments) -> IdealLink:
        links.append(IdealLink(*arguments))
        return links[-1]

    with pytest.raises(CalibrationError, match=words):
        open_driver(ROBOT, make, calibration=path)
    assert [link.closed for link in links] == [True]


def test_without_a_calibration_the_driver_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(CalibrationError, match="tensegrity servo calibrate"):
        open_driver(ROBOT, IdealLink, calibration=tmp_path / "none.json")


# -- running --------------------------------------------------------------------------------------------------------


def test_taking_over_moves_nothing(tmp_path: Path) -> None:
    driver = running(tmp_path)
    for k in range(50):
        driver.run(PERIOD, k * PERIOD)
    link = link_of(driver)
    assert link.prepared == 1
    assert all(length == pytest.approx(START, abs=2e-4) for length in link.lengths.values())
    assert all(command.speed == 0.0 for each in link.sent for command in each.values())


def test_a_servo_that_cannot_be_prepared_leaves_all_without_torque(tmp_path: Path) -> None:
    driver = opened(tmp_path)
    link = link_of(driver)
    link.torque["draw_1"] = True
    link.refuses = "servo 7 does not take its mode."
    with pytest.raises(BusError, match="servo 7"):
        driver.begin(lambda: 0.0)
    assert not any(link.torque.values())
    assert not driver.active


def test_a_length_that_is_not_known_leaves_all_without_torque(tmp_path: Path) -> None:
    driver = opened(tmp_path)
    link_of(driver).blind = {"draw_3"}
    with pytest.raises(CommandRefused, match="draw_3"):
        driver.begin(lambda: 0.0)
    assert not any(link_of(driver).torque.values())


@pytest.mark.parametrize("release", [False, True])
def test_the_last_thing_sent_is_rest_or_no_torque_as_chosen(tmp_path: Path, release: bool) -> None:
    driver = running(tmp_path)
    for k in range(20):
        now = k * PERIOD
        driver.command(["draw_1"], [0.2], Mode.POSITION, source="test", stamp=now, now=now)
        driver.run(PERIOD, now)
    assert link_of(driver).speeds["draw_1"] != 0.0
    driver.end(release_torque=release)
    assert set(link_of(driver).speeds.values()) == {0.0}
    assert set(link_of(driver).torque.values()) == {not release}
    driver.close()
    assert link_of(driver).closed


def test_latched_faults_outlive_a_pause_until_they_are_cleared(tmp_path: Path) -> None:
    driver = running(tmp_path)
    link_of(driver).voltage = 5.0
    for k in range(30):
        driver.run(PERIOD, k * PERIOD)
    link_of(driver).voltage = 11.1
    driver.end()
    with pytest.raises(CommandRefused, match="clear the faults first"):
        driver.begin(lambda: 1.0)
    assert {each.kind for each in driver.clear()} == {FaultKind.UNDERVOLTAGE}
    driver.begin(lambda: 1.0)
    assert not driver.run(PERIOD, 1.0 + PERIOD).faults


def test_an_emergency_stop_is_released_and_then_cleared(tmp_path: Path) -> None:
    driver = running(tmp_path)
    driver.stop("pressed")
    assert driver.run(PERIOD, PERIOD).reactions
    assert driver.release_stop()
    assert not driver.release_stop()
    driver.run(PERIOD, 2 * PERIOD)
    assert [each.kind for each in driver.clear()] == [FaultKind.EMERGENCY_STOP]
    assert not driver.run(PERIOD, 3 * PERIOD).reactions


# -- calibrating ----------------------------------------------------------------------------------------------------


def test_a_new_calibration_is_used_and_saved_only_when_asked(tmp_path: Path) -> None:
    driver = opened(tmp_path)
    before = driver.spools["draw_2"].potentiometer
    assert before is not None
    check = driver.calibrate("draw_2", *points("draw_2", shift=0.003))
    assert not check.warnings
    used = driver.spools["draw_2"].potentiometer
    assert used is not None
    assert used.intercept == pytest.approx(before.intercept + 0.003)
    path, hardware = tmp_path / "calibration.json", calibration(ROBOT).hardware
    there = load_calibration(path, robot="tensebot", hardware=hardware, bus=IDENTITY)
    assert there.line("draw_2", "potentiometer") == before
    driver.calibrate("draw_2", *points("draw_2", shift=0.003), save=True)
    driver.calibrate("draw_3", *points("draw_3"), save=True)
    there = load_calibration(path, robot="tensebot", hardware=hardware, bus=IDENTITY)
    assert there.revision == 3
    assert there.line("draw_2", "potentiometer") == used


def test_a_tendon_in_use_is_not_calibrated_until_it_is_stopped(tmp_path: Path) -> None:
    driver = running(tmp_path)
    driver.run(PERIOD, PERIOD)
    with pytest.raises(CommandRefused, match="emergency_stop"):
        driver.calibrate("draw_2", *points("draw_2"))
    driver.stop("calibrating")
    driver.run(PERIOD, 2 * PERIOD)
    driver.calibrate("draw_2", *points("draw_2"))
    driver.release_stop()
    driver.run(PERIOD, 3 * PERIOD)
    driver.clear()
    assert not driver.run(PERIOD, 4 * PERIOD).faults


def test_bad_points_and_bad_names_change_nothing(tmp_path: Path) -> None:
    driver = opened(tmp_path)
    before = driver.spools
    readings, lengths = points("draw_1")
    for name, x, y, words in [
        ("draw_9", readings, lengths, "Did you mean"),
        ("draw_1", readings[:2], lengths[:2], "at least 3"),
        ("draw_1", readings[::-1], lengths, "backwards"),
    ]:
        with pytest.raises(TensegrityError, match=words):
            driver.calibrate(name, x, y, save=True)
    assert driver.spools == before


def test_a_bus_with_known_lines_is_not_saved_over_the_calibration_of_a_real_one() -> None:
    driver = open_driver(ROBOT, IdealLink, make_calibration=lambda identity: calibration(ROBOT, identity))
    with pytest.raises(CalibrationError, match="no calibration file of its own"):
        driver.calibrate("draw_1", *points("draw_1"), save=True)
