"""Mechanisms on emulated servos, by bytes and in counted cycles: pulleys and joints go where the model has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from emulated_driver import driven
from hypothesis import given
from hypothesis import strategies as st

from tensegrity_control import inverse_kinematics
from tensegrity_driver.calibration.calibrated_spools import make_spools
from tensegrity_driver.driver import Driver
from tensegrity_driver.emulator import with_servos
from tensegrity_driver.emulator.motor_model import FRICTION
from tensegrity_driver.hardware.emulated_hardware import EmulatedHardware
from tensegrity_driver.safety.faults import FaultKind
from tensegrity_driver.servos.motors import MOTORS
from tensegrity_driver.spools.readings import Drive, DriveCommand
from tensegrity_driver.spools.resolution import position_allowance
from tensegrity_driver.spools.transmission import transmission_of
from tensegrity_dynamics import Simulation, load_robot
from tensegrity_dynamics.command_gate import Mode
from tensegrity_dynamics.errors import RobotFileError, TensegrityError
from tensegrity_dynamics.impedance import ImpedanceSetPoint
from tensegrity_dynamics.robots.robot import Robot

MANIPULATOR = load_robot("manipulator")
SPOOLS = make_spools(MANIPULATOR, None)


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
    with driven(robot) as (hardware, driver):
        yield Machine(hardware, driver)


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
    [("manipulator", 0.05, "gear"), ("three_rrr", 0.05, "winds no cable"), ("stewart", None, "spool_radius")],
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


# -- impedances ----------------------------------------------------------------------------------------------------


def send_impedance(running: Machine, points: Mapping[str, ImpedanceSetPoint], cycles: int) -> list[str]:
    """Send one impedance per actuator for some cycles; returns what was refused."""
    refused: list[str] = []
    for _ in range(cycles):
        running.hardware.advance(running.driver.period)
        running.now += running.driver.period
        verdict = running.driver.command(
            list(points), list(points.values()), Mode.IMPEDANCE, source="test", session=1, stamp=running.now,
            now=running.now, period=running.driver.period,
        )  # fmt: skip
        refused += [str(each) for each in verdict.refusals]
        running.faults += running.driver.run(running.driver.period, running.now).new
    return refused


@pytest.mark.long
def test_a_servo_with_the_gains_of_an_impedance_gives_way_as_the_simulated_actuator_does() -> None:
    stiffness, damping, push = 40.0, 0.2, (0.0, 0.0, -10.0)
    simulation = Simulation(MANIPULATOR)
    rest = simulation.observe()
    points = {n: ImpedanceSetPoint(q, 0.0, rest.efforts[n], stiffness, damping) for n, q in rest.positions.items()}
    simulation.apply_forces({"end-effector": push})
    simulation.advance(duration=3.0, impedance=points)
    ideal = simulation.observe().pose[0] - rest.pose[0]
    with machine(MANIPULATOR) as running:
        running.follow(rest.positions, rest.positions, 5)
        assert not send_impedance(running, points, 30)
        assert running.emulated.register("B1-top", "position_p_gain") == pytest.approx(
            stiffness / 4.0 / MOTORS["XM430-W350"].stiffness_step, abs=0.5
        )
        before = running.emulated.observe()
        assert np.linalg.norm(before.pose[0] - rest.pose[0]) < 2e-4  # steps of the goal, friction
        for part in np.linspace(0.1, 1.0, 10):  # slowly, so that no overshoot is held by friction
            running.emulated.faults.push("end-effector", part * np.array(push))
            send_impedance(running, points, 8)
        after = running.emulated.observe()
        # friction of a gear lets a shaft rest 2 FRICTION stall / stiffness away from where its spring would have it
        friction = 2.0 * FRICTION * MOTORS["XM430-W350"].stall_torque / stiffness
        for name, q in after.positions.items():
            assert q - rest.positions[name] == pytest.approx(
                simulation.observe().positions[name] - rest.positions[name], abs=1.2 * friction + 1e-3
            )
        # steps of the goal, and twice the friction in rad of the servo as if it were play
        allowed = position_allowance(MANIPULATOR, running.driver.spools, after.positions, play=4.0 * friction)
        assert np.linalg.norm(after.pose[0] - rest.pose[0] - ideal) < allowed < np.linalg.norm(ideal)
        assert not running.faults
        # commands stop: the pulleys stay where they are, and the gains are those of the factory again
        for _ in range(60):
            running.hardware.advance(running.driver.period)
            running.now += running.driver.period
            running.faults += running.driver.run(running.driver.period, running.now).new
        assert {each.kind for each in running.faults} == {FaultKind.STALE_COMMAND}
        held = running.emulated.observe().positions
        assert all(abs(held[name] - q) < 2e-3 for name, q in after.positions.items())
        assert running.emulated.register("B1-top", "position_p_gain") == 800.0


def impedance_refusal(robot: Robot, **numbers: float) -> str:
    """Why the driver refuses an impedance of the first actuator; empty: it does not."""
    spools = make_spools(robot, None)
    spool = next(iter(spools.values()))
    asked = ImpedanceSetPoint(spool.driven.position[0], **numbers)
    return spool.impedance_problem(spool.set_point(Mode.IMPEDANCE, asked)[1]) or ""


def test_impedances_that_a_servo_cannot_do_are_refused_by_what_it_is() -> None:
    assert impedance_refusal(MANIPULATOR, stiffness=40.0, damping=0.2) == ""
    assert "stiffness 0 " in impedance_refusal(MANIPULATOR)
    assert "damping 1e+04 " in impedance_refusal(MANIPULATOR, stiffness=40.0, damping=1e4)
    assert "tendon" in impedance_refusal(load_robot("tensebot"), stiffness=40.0)
    assert "XL430-W250 has no current loop" in impedance_refusal(with_servos(MANIPULATOR, "XL430-W250"), stiffness=40.0)
    wheels = with_servos(MANIPULATOR, "AX-12A")
    rows = [{**each, "potentiometer": k} for k, each in enumerate(wheels.servos["servos"])]
    wheels = replace(wheels, servos={**wheels.servos, "servos": rows})
    assert "AX-12A has no current loop" in impedance_refusal(wheels, stiffness=40.0)


@given(stiffness=st.floats(0.2, 1000.0), damping=st.floats(0.0, 10.0), effort=st.floats(-6.0, 6.0))
def test_the_gains_of_a_servo_give_the_torque_of_the_impedance(stiffness: float, damping: float, effort: float) -> None:
    spool = SPOOLS["B1-top"]
    point = spool.set_point(Mode.IMPEDANCE, ImpedanceSetPoint(0.5, 0.0, effort, stiffness, damping))[1]
    sent = spool.command(DriveCommand(Drive.POSITION, point.position, 0.1, 100.0, None, point))
    assert sent.stiffness is not None and sent.damping is not None and spool.encoder is not None
    assert sent.stiffness * 4.0 == pytest.approx(stiffness)  # a gear of 2 squared
    assert sent.damping * 4.0 == pytest.approx(damping)
    at = 0.3  # rad of the pulley
    shaft = spool.encoder.inverse(spool.transmission.length(at))
    torque = sent.stiffness * (sent.position - shaft)
    assert 2.0 * spool.direction * torque == pytest.approx(stiffness * (0.5 - at) + effort, abs=1e-9 * stiffness)
