"""The driver's cycle moves a simulated robot to its goals: counts and radians here, nodes and tensions there."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from tensegrity_control import inverse_kinematics
from tensegrity_driver.bus.potentiometer_protocol import RADIANS_PER_COUNT
from tensegrity_driver.bus.statistics import BusReading
from tensegrity_driver.calibration.calibrated_spools import make_loops, make_spools
from tensegrity_driver.driver_cycle import DriverCycle
from tensegrity_driver.safety.faults import FaultKind
from tensegrity_driver.safety.settings import SafetySettings
from tensegrity_driver.spools.readings import Drive, ServoCommand, ServoReading
from tensegrity_driver.spools.spool import Line, Spool
from tensegrity_dynamics import Simulation, load_robot
from tensegrity_dynamics.command_gate import Mode

PERIOD = 0.02
DELAY = 2


class SimulatedLink:
    """Servos over a simulated robot: whole counts, commands that come late, loads.

    Free-run servos with potentiometers, or servos that count turns, 4096 counts each.
    """

    def __init__(self, simulation: Simulation, spools: Mapping[str, Spool]) -> None:
        self.simulation, self.spools = simulation, spools
        self.queue: deque[dict[str, ServoCommand]] = deque([{}] * DELAY)
        self.speeds = dict.fromkeys(spools, 0.0)
        self.turns = any(spool.measured_by == "encoder" for spool in spools.values())
        self.dead: set[str] = set()
        self.ages = dict.fromkeys(spools, 0)
        self.last: dict[str, ServoReading] = {}

    def read(self) -> tuple[Mapping[str, ServoReading], BusReading]:
        seen = self.simulation.observe()
        for name, spool in self.spools.items():
            if name in self.dead:
                self.ages[name] += 1
                self.last[name] = ServoReading(**{**self.last[name].__dict__, "age": self.ages[name]})
                continue
            assert spool.stall_torque is not None
            counts = position = None
            if spool.potentiometer is not None:
                counts = float(round(spool.potentiometer.inverse(seen.positions[name])))
            if spool.encoder is not None:
                step = 2.0 * np.pi / 4096.0
                position = step * round(spool.encoder.inverse(seen.positions[name]) / step)
            pushes = spool.load_at_rest or self.speeds[name] < -0.0015
            load = spool.direction * seen.efforts[name] * spool.radius / spool.stall_torque if pushes else 0.0
            self.last[name] = ServoReading(
                name, position, sensor=counts, load=load, temperature=40.0, voltage=11.1, torque_on=True
            )
        return dict(self.last), BusReading(packets=12, bad_packets=0)

    def write(self, commands: Mapping[str, ServoCommand]) -> None:
        self.queue.append({**commands})

    def move(self) -> None:
        goals: dict[str, float] = {}
        for name, command in self.queue.popleft().items():
            spool = self.spools[name]
            if command.kind is Drive.POSITION:
                assert spool.encoder is not None
                goals[name] = spool.encoder(command.position)
            else:
                assert command.kind is Drive.VELOCITY
                self.speeds[name] = -spool.direction * command.speed * spool.radius
        speeds = {name: speed for name, speed in self.speeds.items() if name not in goals}
        self.simulation.advance(velocity={} if self.turns else speeds, position=goals, duration=PERIOD)


class Machine:
    """The driver on a simulated robot, as a controller would use it."""

    def __init__(self, *, turns: bool = False) -> None:
        self.robot = load_robot("tensebot")
        rough = make_spools(self.robot, None)
        # the potentiometers stand wherever they were mounted
        self.spools = {name: _placed(each, 2048.0 + 40.0 * k) for k, (name, each) in enumerate(rough.items())}
        if turns:
            self.spools = {name: _counting(each, 3.0 * k) for k, (name, each) in enumerate(rough.items())}
        self.simulation = Simulation(self.robot)
        self.link = SimulatedLink(self.simulation, self.spools)
        settings = SafetySettings(period=PERIOD)
        self.driver = DriverCycle(self.link, self.spools, make_loops(self.spools, PERIOD), settings)
        self.now = 0.0
        self.driver.begin(self.now)
        self.highest = 0.0
        self.stop_at: tuple[int, str] | None = None  # (cycle of a motion, servo that falls silent then)

    def follow(self, goals: Mapping[str, float], cycles: int, source: str = "controller"):
        names, values = list(goals), list(goals.values())
        for _ in range(cycles):
            self.now += PERIOD
            if names:
                self.driver.command(names, values, Mode.POSITION, source=source, stamp=self.now, now=self.now)
            step = self.driver.run(PERIOD, self.now)
            self.link.move()
            self.highest = max(self.highest, *self.simulation.observe().efforts.values())
        return step


def _placed(spool: Spool, counts: float) -> Spool:
    """A spool whose potentiometer says some counts at the rest length of the robot's file."""
    line = spool.potentiometer
    assert line is not None
    return replace(spool, potentiometer=Line(line.slope, 0.2159 - line.slope * counts))


def _counting(spool: Spool, position: float) -> Spool:
    """The same spool on a servo that counts turns and stands at a position [rad] at that length."""
    encoder = Line(-spool.radius, 0.2159 + spool.radius * position)
    return replace(
        spool, measured_by="encoder", potentiometer=None, encoder=encoder, encoder_turn=False, load_at_rest=True
    )


def go(machine: Machine, move: tuple[float, float, float]):
    """Plan to a pose relative to the one at rest and lead the lengths there in three seconds; returns plan and step."""
    home = Simulation(machine.robot).observe().pose
    plan = inverse_kinematics(machine.robot, position=home[0] + np.array(move), quaternion=home[1], rigid_bars=True)
    before = dict(machine.simulation.observe().positions)
    for k in range(1, 151):
        part = (k / 150) ** 2 * (3.0 - 2.0 * k / 150)
        lengths = {name: before[name] + part * (plan.rest_lengths[name] - before[name]) for name in before}
        machine.follow(lengths, 1)
        if machine.stop_at is not None and k == machine.stop_at[0]:
            machine.link.dead.add(machine.stop_at[1])
    return plan, machine.follow(plan.rest_lengths, 120)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("turns", [False, True])
def test_the_robot_reaches_its_goals_within_half_a_millimetre_of_the_plan_and_under_its_ceilings(turns: bool) -> None:
    machine = Machine(turns=turns)
    for move in ((0.0, 0.0, 0.02), (0.015, 0.01, 0.0)):
        plan, step = go(machine, move)
        seen = machine.simulation.observe()
        assert not step.faults
        assert np.linalg.norm(seen.pose[0] - plan.equilibrium.pose[0]) < 0.5e-3
        for name, length in plan.rest_lengths.items():
            assert abs(seen.positions[name] - length) < 2.0 * RADIANS_PER_COUNT * machine.spools[name].radius
    assert machine.highest < machine.robot.actuators[0].effort


def test_a_servo_that_falls_silent_on_the_way_stops_the_whole_robot_where_it_is() -> None:
    machine = Machine()
    machine.stop_at = (60, "draw_2")
    go(machine, (0.0, 0.0, 0.03))
    faults = machine.driver.layer.latch.faults
    assert [(each.kind, each.tendon) for each in faults] == [(FaultKind.SERVO_SILENT, "draw_2")]
    stands = machine.simulation.observe()
    machine.follow({name: 0.2 for name in machine.spools}, 100)
    after = machine.simulation.observe()
    assert np.linalg.norm(after.pose[0] - stands.pose[0]) < 1e-3
    assert max(abs(after.positions[each] - stands.positions[each]) for each in machine.spools) < 2e-4
    assert machine.highest < machine.robot.actuators[0].effort
