"""Mechanisms on emulated servos, by bytes and in counted cycles: pulleys and joints go where the model has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensegrity_control import inverse_kinematics
from tensegrity_driver.calibration.calibrated_spools import make_spools
from tensegrity_driver.driver import Driver, open_driver
from tensegrity_driver.hardware.emulated_hardware import EmulatedHardware
from tensegrity_driver.safety.faults import FaultKind
from tensegrity_driver.spools.resolution import position_allowance
from tensegrity_driver.spools.transmission import transmission_of
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.command_gate import Mode
from tensegrity_dynamics.errors import RobotFileError, TensegrityError
from tensegrity_dynamics.robots.robot import Robot

MANIPULATOR = load_robot("manipulator")


class Machine:
    """A driver and the emulated mechanism that it drives, moved by hand."""

    def __init__(self, hardware: EmulatedHardware, driver: Driver) -> None:
        self.hardware, self.driver, self.emulated = hardware, driver, hardware.emulated
        self.now, self.faults = 0.0, []
        driver.begin(lambda: self.now)

    def follow(self, start: Mapping[str, float], goal: Mapping[str, float], cycles: int, mode: Mode = Mode.POSITION):
        for part in np.linspace(0.0, 1.0, cycles):
            self.hardware.advance(self.driver.period)
            self.now += self.driver.period
            values = [start[name] + part * (goal[name] - start[name]) for name in goal]
            verdict = self.driver.command(
                list(goal), values, mode, source="test", session=1, stamp=self.now, now=self.now
            )
            assert not verdict.refusals
            self.faults += self.driver.run(self.driver.period, self.now).new


@contextmanager
def machine(robot: Robot) -> Iterator[Machine]:
    hardware = EmulatedHardware(robot)
    try:
        driver = open_driver(robot, hardware.open_bus, make_calibration=hardware.make_calibration)
        try:
            yield Machine(hardware, driver)
        finally:
            driver.close()
    finally:
        hardware.close()


def with_rows(name: str, gear: float = 1.0, radius: float | None = None) -> Robot:
    """A mechanism with an XM430-W350 on every actuator, every other one turned round."""
    robot = load_robot(name)
    rows = [
        {"actuator": each.name, "id": k + 1, "model": "XM430-W350", "spool_radius": radius, "gear": gear,
         "direction": (-1) ** k, "potentiometer": None}
        for k, each in enumerate(robot.actuators)
    ]  # fmt: skip
    return replace(robot, servos={"protocol": 2, "baud_rate": 1_000_000, "servos": rows})


def reaches(robot: Robot, move: list[float]) -> None:
    """The output comes to within the steps of the encoders of where the model has it."""
    with machine(robot) as running:
        home = running.emulated.observe()
        goal = inverse_kinematics(robot, position=home.pose[0] + np.array(move)).positions
        running.follow(home.positions, goal, 100)
        running.follow(goal, goal, 40)
        assert not running.faults
        seen = running.emulated.observe()
        allowed = position_allowance(robot, running.driver.spools, goal)
        assert np.linalg.norm(seen.pose[0] - home.pose[0] - move) <= allowed < 1e-3
        for name, spool in running.driver.spools.items():
            assert spool.position(running.driver.readings.tendons[name].length) == pytest.approx(
                seen.positions[name], abs=2e-3
            )
            effort = spool.effort(running.driver.tension(name))
            assert effort == pytest.approx(seen.efforts[name], abs=0.05 + 0.1 * abs(seen.efforts[name]))


def test_the_manipulator_comes_to_its_goal_within_the_steps_of_its_encoders() -> None:
    reaches(MANIPULATOR, [0.02, 0.0, -0.03])


@pytest.mark.long
@pytest.mark.parametrize(
    ("robot", "move"),
    [
        (with_rows("stewart", radius=0.005), [0.02, 0.0, 0.03]),
        (with_rows("three_rrr", gear=2.0), [0.02, 0.02, 0.0]),
        (with_rows("biglide", radius=0.02), [0.02, 0.02, 0.0]),
        (with_rows("cable_robot"), [0.05, 0.0, 0.02]),
    ],
    ids=["stewart", "three_rrr", "biglide", "cable_robot"],
)
def test_joints_with_and_without_cables_come_to_their_goals(robot: Robot, move: list[float]) -> None:
    reaches(robot, move)


def test_a_cable_that_snaps_and_one_wound_backwards_are_faults_of_a_mechanism_too() -> None:
    with machine(MANIPULATOR) as running:
        start = running.emulated.observe().positions
        running.follow(start, start, 10)
        running.emulated.faults.snap("B1-top")
        running.follow(start, start, 30)
        assert {(each.kind, each.tendon) for each in running.faults} >= {(FaultKind.SNAPPED, "B1-top")}


# -- the transmission ----------------------------------------------------------------------------------------------


@given(angle=st.floats(-10.0, 10.0), effort=st.floats(-6.0, 6.0), gear=st.floats(0.1, 50.0))
def test_a_transmission_keeps_power_and_gives_back_what_it_took(angle: float, effort: float, gear: float) -> None:
    row = {**MANIPULATOR.servos["servos"][0], "gear": gear}
    made = transmission_of(MANIPULATOR, row)
    assert made.position(made.length(angle)) == pytest.approx(angle, abs=1e-12)
    assert made.effort(made.force(effort)) == pytest.approx(effort)
    # a force that winds in does work against the length; the servo gives the same power at its own speed
    assert made.force(effort) * -made.slope == pytest.approx(effort)
    assert made.radius * gear == pytest.approx(0.05)


def test_limits_of_a_joint_are_those_of_its_spool() -> None:
    for spool in make_spools(MANIPULATOR, None).values():
        ends = sorted(spool.position(each) for each in spool.actuator.position)
        assert ends == pytest.approx(spool.driven.position)
        assert spool.actuator.effort * 0.05 == pytest.approx(spool.driven.effort)
        assert spool.stiffness == pytest.approx(2e9 * np.pi * 1e-6 / 0.6234, rel=1e-2)  # at the start, not at rest


@pytest.mark.parametrize(
    ("name", "radius", "part"),
    [("manipulator", 0.05, "gear"), ("three_rrr", 0.05, "winds nothing"), ("stewart", None, "spool_radius")],
)
def test_radii_that_do_not_go_with_a_joint_are_refused_by_name(name: str, radius: float | None, part: str) -> None:
    robot = with_rows(name, radius=radius)
    with pytest.raises(TensegrityError, match=part) as caught:
        make_spools(robot, None)
    assert robot.actuators[0].name in str(caught.value)


def test_a_spool_radius_for_a_pulley_is_refused_where_it_stands(tmp_path) -> None:
    path = tmp_path / "robot.yaml"
    text = MANIPULATOR.path.read_text(encoding="utf-8")
    path.write_text(text.replace("gear: 2}", 'spool_radius: "5 cm"}'), encoding="utf-8")
    with pytest.raises(RobotFileError, match="Leave spool_radius out"):
        load_robot(path)
