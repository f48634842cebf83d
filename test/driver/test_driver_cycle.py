"""A whole cycle, in radians and counts: commands through the gate to the servos and back to tendons."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spool_bench import COUNT, PERIOD, RADIUS, Axis, spool

from tensegrity_driver.bus.statistics import BusReading
from tensegrity_driver.calibration.calibrated_spools import make_loops
from tensegrity_driver.driver_cycle import DriverCycle
from tensegrity_driver.robot_clock import RobotClock
from tensegrity_driver.safety.faults import FaultKind, Reaction
from tensegrity_driver.safety.monitors.motion import sensor_distance
from tensegrity_driver.safety.settings import SafetySettings
from tensegrity_driver.spools.readings import Drive, DriveCommand, ServoCommand, ServoReading
from tensegrity_driver.spools.spool import MULTI_TURN_LIMIT_RAD, Line
from tensegrity_dynamics.command_gate import Mode
from tensegrity_dynamics.errors import BusError, CommandRefused

NAMES = ("draw_1", "draw_2")
JUMPS = [sign * size for size in (1.0, 3600.0, 3.2e8) for sign in (1.0, -1.0)]
"""s by which clocks jump."""
LINE = Line(-RADIUS, 0.21)


class BenchLink:
    """The bench behind what the safety layer knows of a bus; a command stays until the next one, as in a servo."""

    def __init__(self, axes: dict[str, Axis]) -> None:
        self.axes = axes
        self.bus = BusReading(packets=2)
        self.written: dict[str, ServoCommand] = {}
        self.alive = True

    def _open(self) -> None:
        if not self.alive:
            raise BusError("/dev/ttyUSB0 is gone; plug the adapter in again.")

    def read(self) -> tuple[Mapping[str, ServoReading], BusReading]:
        self._open()
        return {name: axis.read() for name, axis in self.axes.items()}, self.bus

    def write(self, commands: Mapping[str, ServoCommand]) -> None:
        self._open()
        self.written.update(commands)

    def move(self) -> None:
        for name, axis in self.axes.items():
            axis.move(self._tendon(axis, self.written.get(name)), PERIOD)

    @staticmethod
    def _tendon(axis: Axis, command: ServoCommand | None) -> DriveCommand | None:
        """The servo's side turned back into that of its tendon, torque limit included."""
        if command is None or command.kind is Drive.TORQUE_OFF:
            return None if command is None else DriveCommand(Drive.TORQUE_OFF)
        assert command.torque_fraction is not None
        tension = command.torque_fraction * 1.5 / RADIUS
        if command.kind is Drive.VELOCITY:
            return DriveCommand(Drive.VELOCITY, -axis.spool.direction * command.speed * RADIUS, 0.015, tension)
        assert axis.spool.encoder is not None
        return DriveCommand(Drive.POSITION, axis.spool.encoder(command.position), 0.015, tension)


class Machine:
    """A driver cycle on a bench, with a clock that the test turns."""

    def __init__(self, *, encoder: bool = False, direction: int = 1, line: Line = LINE) -> None:
        kinds = {name: spool(name, encoder=encoder, direction=direction) for name in NAMES}
        spools = {name: replace(each, encoder=line) for name, each in kinds.items()}
        self.link = BenchLink({name: Axis(each) for name, each in spools.items()})
        self.driver = DriverCycle(self.link, spools, make_loops(spools, PERIOD), SafetySettings(period=PERIOD))
        self.now = 100.0
        self.driver.begin(self.now)

    def run(self, cycles: int):
        for _ in range(cycles):
            self.now += PERIOD
            step = self.driver.run(PERIOD, self.now)
            self.link.move()
        return step

    def ask(self, values: Mapping[str, float], mode: Mode = Mode.POSITION, source: str = "controller", stamp=None):
        stamp = self.now if stamp is None else stamp
        return self.driver.command(list(values), list(values.values()), mode, source=source, stamp=stamp, now=self.now)

    def follow(self, values: Mapping[str, float], cycles: int, **settings):
        """As a controller does: the command again in every cycle."""
        for _ in range(cycles):
            self.ask(values, **settings)
            step = self.run(1)
        return step

    def lengths(self) -> list[float]:
        return [self.link.axes[name].length for name in NAMES]


@pytest.mark.parametrize("encoder", [False, True])
@pytest.mark.parametrize("direction", [1, -1])
def test_a_goal_is_reached_through_radians_in_both_directions(encoder: bool, direction: int) -> None:
    machine = Machine(encoder=encoder, direction=direction, line=Line(-direction * RADIUS, 0.21))
    step = machine.follow({"draw_1": 0.2065, "draw_2": 0.2115}, 150)
    assert machine.lengths() == pytest.approx([0.2065, 0.2115], abs=2.0 * COUNT)
    assert not step.faults and not step.notes


def test_a_killed_controller_stops_the_spools_within_its_cycles_and_a_new_one_goes_on() -> None:
    machine = Machine()
    machine.follow({"draw_1": 0.23}, 20)
    assert {each.kind for each in machine.run(25).faults} == {FaultKind.SLACK}
    step = machine.run(1)
    assert [each.kind for each in step.new] == [FaultKind.STALE_COMMAND]
    stands = machine.lengths()
    assert not machine.run(50).new
    assert machine.lengths() == pytest.approx(stands, abs=4e-4)
    step = machine.follow({"draw_1": 0.212}, 200, source="another")
    assert not step.faults
    assert machine.lengths()[0] == pytest.approx(0.212, abs=2.0 * COUNT)


def test_a_second_publisher_is_refused_and_holds_the_robot_while_it_speaks() -> None:
    machine = Machine()
    machine.follow({"draw_1": 0.209}, 10)
    machine.ask({"draw_1": 0.209})
    assert not machine.ask({"draw_1": 0.16}, source="rival").accepted
    step = machine.run(1)
    assert step.new[0].kind is FaultKind.TWO_SOURCES
    assert "'rival' commands while 'controller' does" in step.new[0].line
    step = machine.follow({"draw_1": 0.209}, 100)
    assert not step.faults
    assert machine.lengths()[0] == pytest.approx(0.209, abs=2.0 * COUNT)


@pytest.mark.parametrize("value", [math.nan, math.inf, 9.0, -0.1])
def test_values_that_may_not_be_move_nothing_and_going_on_with_them_is_a_fault(value: float) -> None:
    machine = Machine()
    machine.follow({"draw_1": 0.21, "draw_2": 0.21}, 30)
    before = machine.lengths()
    kinds = set()
    for _ in range(60):
        machine.ask({"draw_1": value})
        kinds |= {each.kind for each in machine.run(1).new}
    assert machine.lengths() == pytest.approx(before, abs=2e-4)
    assert kinds == {FaultKind.REFUSED_COMMANDS, FaultKind.STALE_COMMAND}


def test_an_emergency_stop_holds_at_once_and_needs_release_and_clearing() -> None:
    machine = Machine()
    machine.follow({"draw_1": 0.23}, 20)
    machine.driver.gate.stop("pressed")
    step = machine.run(1)
    assert step.reactions == dict.fromkeys(NAMES, Reaction.HOLD)
    with pytest.raises(CommandRefused, match="pressed"):
        machine.driver.clear()
    machine.driver.gate.release()
    machine.run(2)
    assert [each.kind for each in machine.driver.clear()] == [FaultKind.EMERGENCY_STOP]
    stands = machine.lengths()
    machine.run(30)
    assert machine.lengths() == pytest.approx(stands, abs=4e-4)


def test_no_command_is_missed_during_an_emergency_stop_but_after_its_release() -> None:
    machine = Machine()
    machine.follow({"draw_1": 0.205}, 20)
    machine.driver.gate.stop("pressed")
    assert {each.kind for each in machine.run(60).faults} == {FaultKind.EMERGENCY_STOP}
    machine.driver.gate.release()
    assert [each.kind for each in machine.run(1).new] == [FaultKind.STALE_COMMAND]


def test_after_clearing_any_source_may_command_at_once() -> None:
    machine = Machine()
    machine.link.axes["draw_2"].override["voltage"] = 5.0
    machine.follow({"draw_1": 0.211}, 20)
    machine.link.axes["draw_2"].override.clear()
    machine.follow({"draw_1": 0.211}, 5)
    machine.driver.clear()
    assert machine.ask({"draw_1": 0.211}, source="another").accepted


@pytest.mark.parametrize("jump", [-3600.0, 10.0, 1e9])
def test_a_clock_jump_holds_in_the_cycle_in_which_it_is_seen(jump: float) -> None:
    machine = Machine()
    machine.follow({"draw_1": 0.22}, 20)
    machine.now += jump
    assert [each.kind for each in machine.run(1).new][-1] is FaultKind.CLOCK_JUMP
    machine.run(1)
    machine.driver.clear()
    machine.follow({"draw_1": 0.22}, 150)
    assert machine.lengths()[0] == pytest.approx(0.22, abs=2.0 * COUNT)


@pytest.mark.parametrize("jump", JUMPS)
def test_a_motion_goes_on_as_if_nothing_had_been_when_the_clock_is_set(jump: float) -> None:
    lengths = []
    for by in (0.0, jump):
        machine, set_by, steady = Machine(), [10**18], [0]
        clock = RobotClock(lambda set_by=set_by, steady=steady: steady[0] + set_by[0], lambda steady=steady: steady[0])
        machine.now = 1e-9 * clock.now
        machine.driver.begin(machine.now)
        for cycle in range(60):
            machine.driver.command(
                ["draw_1"], [0.2085], Mode.POSITION, source="controller", session=7, stamp=machine.now, now=machine.now
            )
            if cycle == 20:
                set_by[0] += round(1e9 * by)
            steady[0] += round(1e9 * PERIOD)
            machine.now = 1e-9 * clock.now
            assert not machine.driver.run(PERIOD, machine.now).faults
            machine.link.move()
        lengths.append(machine.lengths())
    assert lengths[0] == lengths[1]


@pytest.mark.parametrize("jump", [*JUMPS, -0.1])
def test_where_the_stamping_clock_itself_jumps_the_robot_holds_and_goes_on_with_a_new_goal(jump: float) -> None:
    machine = Machine()

    def ask(session: int, goal: float, stamp: float | None = None) -> bool:
        stamp = machine.now if stamp is None else stamp
        return machine.driver.command(
            ["draw_1"], [goal], Mode.POSITION, source="controller", session=session, stamp=stamp, now=machine.now
        ).accepted

    for _ in range(20):
        assert ask(1, 0.2085)
        machine.run(1)
    before, machine.now = machine.now, machine.now + jump
    late = before - PERIOD
    step = machine.run(1)
    assert (FaultKind.CLOCK_JUMP in {each.kind for each in step.new}) == (abs(jump) > 0.5)
    ask(1, 0.2)
    machine.run(2)
    stands = machine.lengths()
    for _ in range(30):  # neither the stream that began before nor what is stamped by the old clock moves anything
        assert not ask(1, 0.2)
        if abs(jump) > 0.5:
            assert not ask(1, 0.2, stamp=late)
        machine.run(1)
    assert machine.lengths() == pytest.approx(stands, abs=3e-4)
    machine.driver.clear()
    for _ in range(150):
        assert ask(2, 0.209)
        step = machine.run(1)
    assert not step.faults
    assert machine.lengths()[0] == pytest.approx(0.209, abs=2e-4)


@pytest.mark.parametrize("encoder", [False, True])
def test_an_adapter_that_is_unplugged_and_comes_back_loses_nothing(encoder: bool) -> None:
    machine = Machine(encoder=encoder)
    machine.follow({"draw_1": 0.2095, "draw_2": 0.211}, 60)
    machine.link.alive = False
    machine.ask({"draw_1": 0.2})
    step = machine.run(1)
    assert [each.kind for each in step.new] == [FaultKind.PORT_LOST]
    assert "plug the adapter in again" in step.notes[0]
    step = machine.run(30)  # the servos do what they were commanded last
    assert {each.kind for each in step.faults} >= {FaultKind.PORT_LOST, FaultKind.SERVO_SILENT}
    with pytest.raises(CommandRefused, match="serial port is gone"):
        machine.driver.clear()
    machine.link.alive = True
    machine.run(3)
    machine.driver.clear()
    stands = machine.lengths()
    machine.run(20)
    assert machine.lengths() == pytest.approx(stands, abs=2e-4)
    machine.follow({"draw_1": 0.2095, "draw_2": 0.211}, 100)
    assert machine.lengths() == pytest.approx([0.2095, 0.211], abs=2.0 * COUNT)


@pytest.mark.parametrize("encoder", [False, True])
def test_the_last_thing_sent_stops_every_motor(encoder: bool) -> None:
    machine = Machine(encoder=encoder)
    machine.follow({"draw_1": 0.23}, 20)
    machine.driver.end()
    machine.link.move()
    stands = machine.lengths()
    for _ in range(50):
        machine.link.move()
    assert machine.lengths() == pytest.approx(stands, abs=4e-4)
    machine.driver.end(release_torque=True)
    assert {each.kind for each in machine.link.written.values()} == {Drive.TORQUE_OFF}


def test_a_position_that_the_servo_cannot_count_is_said_and_not_sent() -> None:
    machine = Machine(encoder=True)
    machine.driver.gate.stop("service")
    machine.run(2)
    axis = machine.link.axes["draw_1"]
    axis.spool = replace(axis.spool, encoder=Line(-RADIUS, 0.21 + 260.0 * 2.0 * math.pi * RADIUS))
    machine.driver.layer.replace_spool(axis.spool, make_loops({"draw_1": axis.spool}, PERIOD)["draw_1"])
    machine.link.written.clear()
    step = machine.run(1)
    assert "wind it to the middle" in step.notes[0]
    assert set(machine.link.written) == {"draw_2"}


@settings(max_examples=40, deadline=None)
@given(
    commands=st.lists(
        st.tuples(
            st.lists(st.sampled_from(["draw_1", "draw_2", "draw_9"]), max_size=3),
            st.one_of(st.floats(), st.floats(0.1, 0.3)),
            st.sampled_from(list(Mode)),
            st.sampled_from(["a", "b"]),
            st.one_of(st.floats(-2.0, 2.0), st.floats()),
        ),
        max_size=25,
    ),
    encoder=st.booleans(),
)
def test_no_message_at_all_moves_a_spool_beyond_its_limits_or_its_rate(commands, encoder) -> None:
    machine = Machine(encoder=encoder)
    before = machine.lengths()
    for names, value, mode, source, age in commands:
        machine.driver.command(
            names, [value] * len(names), mode, source=source, stamp=machine.now - age, now=machine.now
        )
        machine.run(3)
        after = machine.lengths()
        for was, now, axis in zip(before, after, machine.link.axes.values(), strict=True):
            assert abs(now - was) <= 3 * 0.015 * PERIOD + 1e-9
            assert 0.16 <= now <= 0.27
            assert axis.tension <= 200.0 + 1e-9
        before = after


@pytest.mark.parametrize("end", [1.0, -1.0])
def test_a_servo_at_the_end_of_its_turns_goes_no_further_and_comes_back(end: float) -> None:
    line = Line(-RADIUS, 0.21 + end * RADIUS * (MULTI_TURN_LIMIT_RAD - 0.2))
    machine = Machine(encoder=True, line=line)
    step = machine.follow({"draw_1": 0.21 - end * 2e-3}, 100)
    assert any("wind it to the middle" in each for each in step.notes)
    assert abs(machine.lengths()[0] - 0.21) <= 0.2 * RADIUS + 1e-9
    machine.follow({"draw_1": 0.21}, 100)
    assert machine.lengths()[0] == pytest.approx(0.21, abs=2.0 * COUNT)


@pytest.mark.parametrize("distance", [1.0, -1.0])
def test_a_counter_that_wraps_is_lost_turns_and_moves_nothing(distance: float) -> None:
    counts = 2.0**31 * distance - distance * 40.0  # of 4096 a turn, as an int32
    line = Line(-RADIUS, 0.21 + RADIUS * counts * 2.0 * math.pi / 4096.0)
    machine = Machine(encoder=True, line=line)
    axis, read = machine.link.axes["draw_1"], machine.link.axes["draw_1"].read

    def as_int32() -> ServoReading:
        reading = read()
        assert reading.position is not None
        number = round(reading.position * 4096.0 / (2.0 * math.pi))
        return replace(reading, position=((number + 2**31) % 2**32 - 2**31) * 2.0 * math.pi / 4096.0)

    axis.read = as_int32
    kinds = set()
    axis.drift = -distance * 0.005  # something turns it on, as nothing can command it there
    for _ in range(40):
        step = machine.run(1)
        kinds |= {each.kind for each in step.new}
        if FaultKind.TURNS_LOST in kinds:
            break
    assert FaultKind.TURNS_LOST in kinds
    assert step.commands["draw_1"].kind is Drive.TORQUE_OFF
    axis.drift = 0.0
    machine.run(3)
    with pytest.raises(CommandRefused):
        machine.driver.clear()


@settings(max_examples=25)
@given(turns=st.integers(0, 10**7), step=st.floats(-0.02, 0.02))
def test_an_angle_that_repeats_every_turn_says_the_same_after_any_number_of_turns(turns: int, step: float) -> None:
    watched = spool()
    assert watched.wrap is not None
    before, after = 0.21, 0.21 + step + turns * watched.wrap
    assert sensor_distance(watched, after, before) == pytest.approx(
        sensor_distance(watched, 0.21 + step, before), abs=1e-7
    )


@pytest.mark.parametrize("value", [0.2085, 9.0, math.nan])
def test_a_flood_of_commands_moves_no_faster_and_is_not_remembered(value: float) -> None:
    machine = Machine()
    machine.follow({"draw_1": 0.2095}, 10)
    worst = 0.0
    for _ in range(5):
        before = machine.lengths()[0]
        for _ in range(200):  # 10 kHz
            machine.ask({"draw_1": value})
        assert len(machine.driver.refusals) <= 100
        machine.run(1)
        worst = max(worst, abs(machine.lengths()[0] - before))
    assert worst <= 1.01 * 0.015 * PERIOD
    step = machine.follow({"draw_1": 0.2095}, 100)
    assert not step.faults


@pytest.mark.parametrize("slip", [2e-3, 5e-3, 20e-3])
@pytest.mark.parametrize("at", [5, 12, 30])
def test_a_gear_that_slips_is_found_by_its_tension_where_that_is_gone(slip: float, at: int) -> None:
    machine = Machine(encoder=True)
    machine.follow({"draw_1": 0.2108}, at + 30)
    machine.link.axes["draw_1"].reach -= slip  # the spool runs back under a servo that has not turned
    kinds = {each.kind for each in machine.follow({"draw_1": 0.2108}, 6).faults}
    assert kinds & {FaultKind.SNAPPED, FaultKind.SLACK}


def test_a_gear_that_slips_in_jerks_under_a_potentiometer_is_found_by_its_two_sensors() -> None:
    machine = Machine()
    machine.follow({"draw_1": 0.2095}, 30)
    axis, kinds = machine.link.axes["draw_1"], set()
    for _ in range(10):
        axis.slipped += 0.3e-3  # of the spool, which carries the potentiometer, against the servo
        kinds |= {each.kind for each in machine.follow({"draw_1": 0.2095}, 3).new}
    machine.follow({"draw_1": 0.2095}, 5)
    assert FaultKind.SENSORS_DISAGREE in kinds | {each.kind for each in machine.driver.faults}
