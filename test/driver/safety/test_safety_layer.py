"""Nothing leaves the safety layer beyond a limit, and it begins, goes on and ends without a jump."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from fault_cell import NAMES, Cell, S
from hypothesis import given, settings
from hypothesis import strategies as st
from spool_bench import COUNT, PERIOD, RADIUS, spool

from tensegrity_driver.bus.statistics import BusReading
from tensegrity_driver.safety.safety_layer import SafetyLayer, at_rest, limit_command, plausible, torque_off
from tensegrity_driver.spools.position_loop import FreeRunLoop, PositionLoop
from tensegrity_driver.spools.readings import Drive, DriveCommand, Readings, ServoReading, TendonReading
from tensegrity_dynamics.command_gate import Mode
from tensegrity_dynamics.errors import CommandRefused


@pytest.mark.parametrize("encoder", [False, True])
def test_a_healthy_spool_reaches_its_goal_without_a_fault(encoder: bool) -> None:
    cell = Cell(encoder=encoder)
    step = cell.run(300, {"draw_1": (Mode.POSITION, 0.207), "draw_2": (Mode.POSITION, 0.2115)})
    assert not step.faults
    assert abs(cell.bench.axes["draw_1"].length - 0.207) < 2e-4
    assert abs(cell.bench.axes["draw_2"].length - 0.2115) < 2e-4
    assert abs(cell.bench.axes["saddle_1"].length - 0.210) < 1e-4


# -- begin and end -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoder", [False, True])
def test_a_restart_while_tight_goes_on_from_the_measured_state_without_a_jump(encoder: bool) -> None:
    cell = Cell(encoder=encoder)
    for name, length in zip(NAMES, (0.2045, 0.2105, 0.209), strict=True):
        cell.bench.axes[name].length = length
    cell.layer.take_over(cell.bench.read())
    before = {name: cell.bench.axes[name].length for name in NAMES}
    tight = {name: cell.bench.axes[name].tension for name in NAMES}
    assert max(tight.values()) > 150.0
    for _ in range(50):
        step = cell.layer.step(cell.cycle, cell.bench.read(), {})
        for each in step.commands.values():
            if each.kind is Drive.VELOCITY:
                assert abs(each.value) <= 1e-3
        cell.bench.move(dict(step.commands))
    assert not step.faults
    for name in NAMES:
        assert cell.bench.axes[name].length == pytest.approx(before[name], abs=COUNT)


def test_a_set_point_from_before_a_fault_is_not_followed_after_it() -> None:
    cell = Cell()
    cell.run(20, {"draw_1": (Mode.POSITION, 0.2)})
    cell.bench.command = replace(cell.bench.command, stopped="pressed")
    cell.run(50)
    stands = cell.axis.length
    cell.bench.command = replace(cell.bench.command, stopped=None)
    cell.run(2)
    cell.layer.clear(cell.bench.read())
    cell.run(100)
    assert cell.axis.length == pytest.approx(stands, abs=3e-4) != pytest.approx(0.2, abs=3e-4)


@pytest.mark.parametrize(
    "reading", [{"sensor": None}, {"sensor": math.nan}, {"sensor": 1e9}, {"sensor_age": 1}, {"age": 1}]
)
def test_nothing_is_taken_over_from_a_length_that_is_not_known(reading) -> None:
    cell = Cell()
    cell.axis.override.update(reading)
    with pytest.raises(CommandRefused, match="draw_1"):
        cell.layer.take_over(cell.bench.read())
    with pytest.raises(CommandRefused, match="draw_2"):
        cell.layer.take_over(Readings({"draw_1": cell.bench.read().tendons["draw_1"]}))


def test_what_is_sent_last_stops_every_spool() -> None:
    cell = Cell()
    moving = cell.run(5, {"draw_1": (Mode.POSITION, 0.2)}).commands
    assert moving["draw_1"].value < 0.0
    assert {each.value for each in at_rest(moving).values()} == {0.0}
    assert {each.kind for each in torque_off(cell.spools).values()} == {Drive.TORQUE_OFF}


# -- laws --------------------------------------------------------------------------------------------------------------

NUMBER = st.one_of(
    st.none(), st.floats(), st.floats(0.0, 4095.0), st.floats(-20.0, 20.0), st.sampled_from([1750.0, math.nan])
)
READING = st.builds(
    ServoReading,
    name=st.just("draw_1"),
    position=NUMBER,
    sensor=NUMBER,
    load=NUMBER,
    current=NUMBER,
    temperature=NUMBER,
    voltage=NUMBER,
    errors=st.frozensets(st.sampled_from(["overload", "overheating", "voltage", "encoder", "range"]), max_size=1),
    age=st.integers(0, 8),
    sensor_age=st.integers(0, 8),
    torque_on=st.sampled_from([None, True, False]),
    watchdog=st.sampled_from([None, True, False]),
)
POINT = st.one_of(st.none(), st.tuples(st.sampled_from(list(Mode)), st.one_of(st.floats(), st.floats(0.1, 0.3))))


@settings(max_examples=100, deadline=None)
@given(
    encoder=st.booleans(),
    stiffness=st.sampled_from([None, 20e3, 175e3]),
    cycles=st.lists(st.tuples(READING, POINT, st.sampled_from([PERIOD, 0.0, 0.3, math.nan])), max_size=25),
)
def test_no_command_leaves_the_safety_layer_beyond_a_limit_whatever_is_read_or_asked(
    encoder, stiffness, cycles
) -> None:
    each = spool(encoder=encoder, stiffness=stiffness, torque_constant=1.8)
    loop = PositionLoop(each, PERIOD) if encoder else FreeRunLoop(each, PERIOD)
    layer = SafetyLayer([each], {"draw_1": loop}, S)
    low, high = each.actuator.position
    rate, effort, lead = each.actuator.rate, each.actuator.effort, S.lag * PERIOD
    outermost = [low, high]
    for cycle, (reading, point, period) in enumerate(cycles):
        tendon = each.observe(reading)
        points = {} if point is None else {"draw_1": point}
        step = layer.step(cycle, Readings({"draw_1": tendon}, BusReading(packets=1), period), points)
        command = step.commands.get("draw_1")
        if plausible(tendon.length, each):
            outermost = [min(outermost[0], tendon.length), max(outermost[1], tendon.length)]
        if command is None or command.kind is Drive.TORQUE_OFF:
            continue
        assert math.isfinite(command.value) and 0.0 < command.rate <= rate and 0.0 < command.tension <= effort
        is_valid = plausible(tendon.length, each)
        if command.kind is Drive.VELOCITY:
            assert abs(command.value) <= rate
            ahead = tendon.length + command.value * lead
            assert command.value == 0.0 or (is_valid and min(low, tendon.length) - 1e-9 <= ahead)
            assert command.value == 0.0 or ahead <= max(high, tendon.length) + 1e-9
            assert not (tendon.tension >= effort and command.value < 0.0)
            if stiffness is not None and command.value < 0.0 and math.isfinite(tendon.tension):
                assert tendon.tension - stiffness * command.value * lead <= effort * (1.0 + 1e-9)
        else:
            assert outermost[0] - 1e-12 <= command.value <= outermost[1] + 1e-12
        sent = each.command(command)
        assert sent.current is not None and 0.0 <= sent.current <= effort * RADIUS / 1.8 * (1.0 + 1e-12)
        assert abs(sent.speed) <= rate / RADIUS * (1.0 + 1e-12)


@settings(max_examples=60, deadline=None)
@given(
    length=st.floats(0.05, 0.38),
    tension=st.one_of(st.just(math.nan), st.floats(0.0, 400.0)),
    value=st.floats(-1.0, 1.0),
    age=st.integers(0, 5),
)
def test_an_old_reading_leaves_less_room_than_a_fresh_one(length, tension, value, age) -> None:
    each = spool()
    fresh = TendonReading("draw_1", length, math.nan, tension, ServoReading("draw_1"))
    old = replace(fresh, raw=ServoReading("draw_1", age=age))
    asked = DriveCommand(Drive.VELOCITY, value, 0.015, 200.0)
    first, second = (limit_command(asked, each, tendon, S.lag * PERIOD, PERIOD) for tendon in (fresh, old))
    assert first is not None and second is not None
    assert abs(second.value) <= abs(first.value)
