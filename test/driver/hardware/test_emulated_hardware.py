"""The whole driver on emulated servos, by bytes and in counted cycles: goals, determinism, faults, refusals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from emulated_driver import driven

from tensegrity_control import inverse_kinematics
from tensegrity_driver.calibration.calibration_file import hardware_fingerprint, load_calibration
from tensegrity_driver.driver import Driver, open_driver
from tensegrity_driver.emulator import EmulatedRobot, with_servos
from tensegrity_driver.hardware.emulated_hardware import EmulatedHardware, EmulatedPort, calibrate_emulated
from tensegrity_driver.hardware.open_hardware import choose_hardware
from tensegrity_driver.hardware.serial_hardware import SerialHardware
from tensegrity_driver.safety.faults import FaultKind
from tensegrity_driver.spools.readings import Drive
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.command_gate import Mode
from tensegrity_dynamics.errors import BusError, TensegrityError
from tensegrity_dynamics.robots.robot import Robot

TENSEBOT = load_robot("tensebot")
# its tight and stiff tendons leave servos in wheel mode no speed at the usual lag
WHEELS = replace(TENSEBOT, servos={**TENSEBOT.servos, "safety": {"lag": 2}})
# without the trial in which every spool is moved a little to tell whose sensor it has
UNTRIED = replace(WHEELS, servos={**WHEELS.servos, "safety": {"lag": 2, "identify": 0}})
TURNING = with_servos(TENSEBOT, "XM430-W350")


class Machine:
    """A driver and the emulated robot that it drives, moved by hand."""

    def __init__(self, robot: Robot, hardware: EmulatedHardware, driver: Driver) -> None:
        self.robot, self.hardware, self.driver = robot, hardware, driver
        self.emulated = hardware.emulated
        self.now, self.session = 0.0, 1
        self.driver.begin(lambda: self.now)

    def follow(self, goals: Mapping[str, float], cycles: int):
        period = self.driver.period
        for _ in range(cycles):
            self.hardware.advance(period)
            self.now += period
            if goals:
                self.driver.command(
                    list(goals), list(goals.values()), Mode.POSITION, source="test", session=self.session,
                    stamp=self.now, now=self.now,
                )  # fmt: skip
            step = self.driver.run(period, self.now)
        return step

    def lengths(self) -> dict[str, float]:
        return {name: self.emulated.observe().positions[name] for name in self.driver.spools}


@contextmanager
def machine(robot: Robot) -> Iterator[Machine]:
    with driven(robot) as (hardware, driver):
        yield Machine(robot, hardware, driver)


def pose_of(running: Machine) -> tuple[np.ndarray, np.ndarray]:
    """Where the output frame really is."""
    pose = running.emulated.observe().pose
    assert pose is not None
    return pose


def go(running: Machine, move: tuple[float, float, float], cycles: int = 100):
    """Plan to a pose relative to the one at rest and lead the lengths there."""
    position, quaternion = pose_of(running)
    plan = inverse_kinematics(running.robot, position=position + np.array(move), quaternion=quaternion, rigid_bars=True)
    before = running.lengths()
    for k in range(1, cycles + 1):
        part = (k / cycles) ** 2 * (3.0 - 2.0 * k / cycles)
        running.follow({n: before[n] + part * (plan.rest_lengths[n] - before[n]) for n in before}, 1)
    return plan, running.follow(plan.rest_lengths, 100)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("robot", "within"), [(WHEELS, 2e-3), (TURNING, 2e-4)], ids=["AX-12A", "XM430-W350"])
def test_the_emulated_robot_goes_to_its_goal(robot: Robot, within: float) -> None:
    with machine(robot) as running:
        plan, step = go(running, (0.008, 0.0, 0.012))
        assert not step.faults
        assert np.linalg.norm(pose_of(running)[0] - plan.equilibrium.pose[0]) < within


@pytest.mark.sampled(1)
@pytest.mark.parametrize("robot", [UNTRIED, TURNING], ids=["AX-12A", "XM430-W350"])
def test_taking_over_moves_nothing_and_two_runs_are_bit_equal(robot: Robot) -> None:
    runs = []
    for _ in range(2):
        with machine(robot) as running:
            before = running.lengths()
            running.follow({}, 25)
            rests = running.lengths()
            assert max(abs(rests[name] - before[name]) for name in before) < 3e-4
            running.follow({"draw_1": before["draw_1"] + 0.01}, 50)
            runs.append((list(rests.values()), list(running.lengths().values())))
    assert runs[0] == runs[1]


def test_a_servo_that_restarts_is_found_and_after_release_it_is_set_up_again() -> None:
    with machine(TURNING) as running:
        running.follow({}, 10)
        running.emulated.faults.power_cycle("draw_2")
        step = running.follow({}, 10)
        kinds = {fault.kind for fault in step.faults if fault.tendon == "draw_2"}
        assert kinds & {FaultKind.SERVO_RESTARTED, FaultKind.TURNS_LOST, FaultKind.WATCHDOG_UNARMED}
        assert "draw_2" in running.driver.link.unprepared() or running.emulated.register("draw_2", "bus_watchdog") == 0
        running.driver.recover()
        assert not running.driver.link.unprepared()
        assert running.emulated.register("draw_2", "torque_enable") == 1
        assert running.emulated.register("draw_2", "bus_watchdog") > 0


def test_an_unplugged_adapter_stops_the_robot_and_it_goes_on_after_it_is_back_and_released() -> None:
    with machine(WHEELS) as running:
        running.follow({"draw_1": running.lengths()["draw_1"] + 0.004}, 20)
        running.emulated.faults.unplug()
        step = running.follow({}, 5)
        assert FaultKind.PORT_LOST in {fault.kind for fault in step.faults}
        running.emulated.faults.plug()
        running.follow({}, 10)
        running.driver.recover()
        running.follow({}, 5)
        running.driver.clear()
        running.session += 1  # after a release only a goal that came after it counts
        goal = running.lengths()["draw_1"] + 0.004
        step = running.follow({"draw_1": goal}, 200)  # the spools are tried again first, and wound back
        assert not step.faults
        assert running.lengths()["draw_1"] == pytest.approx(goal, abs=5e-4)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("release", [False, True])
def test_the_end_leaves_servos_that_hold_or_have_no_torque(release: bool) -> None:
    with machine(WHEELS) as running:
        running.follow({"draw_1": running.lengths()["draw_1"] + 0.01}, 10)
        running.driver.end(release_torque=release)
        running.hardware.advance(0.1)
        stands = running.lengths()
        running.hardware.advance(0.2)
        for name in stands:
            assert running.emulated.register(name, "torque_enable") == (0 if release else 1)
            if not release:
                assert running.lengths()[name] == pytest.approx(stands[name], abs=1e-6)


def test_potentiometers_need_a_board(tmp_path: Path) -> None:
    with EmulatedRobot(WHEELS) as emulated, pytest.raises(BusError, match="board_port"):
        open_driver(WHEELS, SerialHardware(emulated.servo_port).open_bus, calibration=tmp_path / "none.json")


def from_elsewhere(emulated: EmulatedRobot) -> SerialHardware:
    """What another process makes of the ports of an emulated robot; an answer counts however late it is."""
    serial = SerialHardware(emulated.servo_port, emulated.board_port)
    serial.make_port = lambda path, baud_rate: EmulatedPort(path, baud_rate, emulated)  # type: ignore[method-assign]
    return serial


def test_a_servo_of_another_model_is_named_and_the_ports_are_free_again(tmp_path: Path) -> None:
    with EmulatedRobot(with_servos(TENSEBOT, "XL430-W250")) as emulated:
        wrong = from_elsewhere(emulated)
        with pytest.raises(BusError, match="XL430"):
            open_driver(TURNING, wrong.open_bus, calibration=tmp_path / "none.json")
        right = with_servos(TENSEBOT, "XL430-W250")
        path = tmp_path / "calibration.json"
        calibrate_emulated(right, path)
        open_driver(right, wrong.open_bus, calibration=path).close()


@pytest.mark.parametrize("robot", [WHEELS, TURNING], ids=["AX-12A", "XM430-W350"])
def test_the_calibration_written_for_another_process_is_that_of_the_emulated_robot(
    robot: Robot, tmp_path: Path
) -> None:
    path = tmp_path / "calibration.json"
    written = calibrate_emulated(robot, path)
    with EmulatedRobot(robot) as emulated:
        serial = from_elsewhere(emulated)
        driver = open_driver(robot, serial.open_bus, calibration=path)
        hardware = hardware_fingerprint(robot.servos)
        assert driver.calibration == load_calibration(path, robot=robot.name, hardware=hardware, bus=written.bus)
        for name, spool in driver.spools.items():
            assert {"potentiometer": spool.potentiometer, "encoder": spool.encoder}[spool.measured_by] == pytest.approx(
                emulated.lines(name)[spool.measured_by]
            )
        driver.close()


def test_only_emulated_servos_can_wait_and_a_port_must_be_named() -> None:
    with pytest.raises(TensegrityError, match="needs port:=emulated"):
        choose_hardware(TENSEBOT, "/dev/ttyUSB0", None, own_time=True)
    with pytest.raises(TensegrityError, match="no port is given"):
        choose_hardware(TENSEBOT, "", None)


def test_what_is_sent_carries_the_ceiling_of_the_actuator() -> None:
    with machine(TURNING) as running:
        running.follow({"draw_1": running.lengths()["draw_1"]}, 5)
        spool = running.driver.spools["draw_1"]
        sent = running.driver.sent["draw_1"]
        assert sent.kind is Drive.POSITION
        ceiling = spool.command(sent).current
        assert ceiling is not None
        assert running.emulated.register("draw_1", "goal_current") == pytest.approx(ceiling, rel=0.01)
