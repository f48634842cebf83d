"""Every fault is found within its bus cycles and never without a cause, on ideal spools without bytes.

What a fault does to the robot and how it ends: test_bus_faults.py.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from fault_cell import CASES, NAMES, Case, Cell, K, S, loosen, lose_turns, put_outside
from hypothesis import given, settings
from hypothesis import strategies as st
from spool_bench import COUNT, PERIOD, spool

from tensegrity_driver.safety.faults import Fault, FaultKind, Reaction
from tensegrity_driver.safety.monitors import bus_monitors, tendon_monitors
from tensegrity_driver.safety.monitors.motion import FollowingErrorMonitor, StuckMonitor
from tensegrity_driver.safety.monitors.sensors import SensorFrozenMonitor
from tensegrity_driver.safety.settings import SafetySettings
from tensegrity_driver.spools.readings import Drive, DriveCommand, Readings, ServoReading, TendonReading
from tensegrity_dynamics.command_gate import Mode
from tensegrity_dynamics.errors import CommandRefused, TensegrityError
from tensegrity_dynamics.robots.file_errors import validate_block

TEXT = (Path(__file__).resolve().parents[3] / "docs" / "faults.md").read_text(encoding="utf-8")
MANUAL = {
    row[0].strip("`"): row
    for line in TEXT[: TEXT.index("## Settings")].splitlines()
    if line.startswith("| `") and (row := [cell.strip() for cell in line.strip("|").split("|")])
}
"""Rows of the table of faults for builders, by kind."""


def found_within(kind: FaultKind) -> int:
    """Bus cycles that the manual promises."""
    return int(MANUAL[kind.value][3])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.kind.value)
def test_a_fault_is_found_within_the_cycles_of_the_manual_and_not_before_it_has_persisted(case: Case) -> None:
    cell = Cell(encoder=case.encoder, safety=SafetySettings(period=PERIOD, **case.settings))
    cell.run(40)
    assert not cell.layer.latch.faults
    begun = cell.cycle
    case.inject(cell)
    points = {} if case.move is None else {"draw_1": (Mode.POSITION, case.move)}
    fault = cell.until(case.kind, case.tendon, case.shows_after + found_within(case.kind), points, case.first)
    assert cell.settings.persistence(case.kind) <= fault.cycle - begun + 1
    assert fault.line.startswith(f"{case.tendon or 'bus'}: {fault.happened}; {case.kind.row.remedy}")


PERSISTENT = [
    case
    for case in CASES
    if isinstance(case.kind.row.persistence, str)
    and not (case.shows_after or case.first or case.kind in (K.TENSION_CEILING, K.SNAPPED))  # these show gradually
]


@pytest.mark.parametrize("case", PERSISTENT, ids=lambda case: case.kind.value)
def test_what_ends_one_cycle_before_it_has_persisted_is_no_fault(case: Case) -> None:
    cell = Cell(encoder=case.encoder, safety=SafetySettings(period=PERIOD, **case.settings))
    cell.run(40)
    healthy = cell.bench.command
    case.inject(cell)
    cell.run(cell.settings.persistence(case.kind) - 1)
    cell.axis.override.clear()
    cell.axis.silent, cell.bench.command = False, healthy
    assert not cell.run(40).faults


UNCOMMANDED = [case for case in CASES if case.kind.row.shown_by and case.move is None]


@pytest.mark.parametrize("case", UNCOMMANDED, ids=lambda case: case.kind.value)
def test_what_readings_alone_show_is_found_without_knowing_the_commands(case: Case) -> None:
    cell = Cell(encoder=case.encoder, safety=SafetySettings(period=PERIOD, **case.settings))
    cell.run(40)
    spool = cell.layer.spools["draw_1"]
    monitors = bus_monitors(cell.settings, {case.kind}) + tendon_monitors(spool, cell.settings, {case.kind})
    for monitor in monitors:
        assert monitor.update(cell.cycle, cell.bench.read(), {}) is None
    case.inject(cell)
    found = []
    for _ in range(case.shows_after + found_within(case.kind)):
        cell.run(1)
        found += [monitor.update(cell.cycle, cell.bench.read(), {}) for monitor in monitors]
    assert case.kind in {fault.kind for fault in found if fault is not None}


def test_the_bus_and_every_tendon_are_watched() -> None:
    assert {each.name for each in Cell().layer.monitors} == {None, *NAMES}


def test_only_a_tendon_with_a_fault_that_allows_it_is_jogged_and_only_within_its_limits() -> None:
    cell = Cell()
    put_outside(cell)
    step = cell.run(2)
    assert [(each.kind, each.tendon) for each in step.new] == [(K.SPOOL_LIMIT, "draw_1")]
    with pytest.raises(CommandRefused, match="may not be moved by hand"):
        cell.layer.jog("draw_2", 0.2)
    with pytest.raises(CommandRefused, match="outside its limits"):
        cell.layer.jog("draw_1", 0.3)
    cell.layer.jog("draw_1", 0.268)
    before = cell.axis.length
    for _ in range(150):
        cell.run(1)
        assert cell.axis.length <= before + 1e-9 or abs(cell.axis.length - 0.268) < 1e-3  # never further out
        before = cell.axis.length
    assert cell.axis.length == pytest.approx(0.268, abs=5e-4)


@pytest.mark.parametrize("turns", [-3, 1, 7])
def test_lost_turns_are_counted_and_take_the_torque_off(turns: int) -> None:
    cell = Cell(encoder=True)
    cell.run(40)
    lose_turns(turns)(cell)
    fault = cell.until(K.TURNS_LOST, "draw_1", 1)
    assert f"{abs(turns)} whole turns" in fault.line and "home this tendon again" in fault.line
    assert cell.layer.sent["draw_1"].kind is Drive.TORQUE_OFF  # else the servo would run after the lost turns


def test_a_calibration_in_use_is_not_changed() -> None:
    cell = Cell()
    cell.run(3)
    with pytest.raises(CommandRefused, match="is in use"):
        cell.layer.replace_spool(cell.axis.spool, cell.loops["draw_1"])


def test_a_tendon_that_gets_slack_slowly_is_named_but_goes_on() -> None:
    cell = Cell()
    loosen(cell)
    cell.run(20, {"draw_2": (Mode.POSITION, 0.209)})
    fault = cell.until(K.SLACK, "draw_1", 120 + S.persist)
    assert "slack" in fault.line
    cell.run(200)
    assert cell.bench.axes["draw_2"].length == pytest.approx(0.209, abs=2e-4)
    cell.each_cycle = None
    cell.axis.reach = 0.2125
    cell.run(2)
    assert not cell.layer.latch.faults  # it ends with its cause


def test_paying_out_is_not_a_snapped_tendon_even_where_it_is_stiff() -> None:
    cell = Cell()
    cell.axis.reach = 0.2115
    cell.run(100)
    step = cell.run(150, {"draw_1": (Mode.POSITION, 0.2145)})
    assert cell.axis.tension == 0.0
    assert {each.kind for each in step.faults} == {K.SLACK}


def test_a_fault_of_one_tendon_never_hides_that_of_another() -> None:
    cell = Cell()
    cell.run(10)
    cell.bench.axes["draw_2"].silent = True
    cell.until(K.SERVO_SILENT, "draw_2", S.silent)
    cell.axis.override["temperature"] = 90.0
    cell.until(K.OVERHEATING, "draw_1", S.persist)
    step = cell.run(1)
    assert step.reactions == {"draw_1": Reaction.RELEASE, "draw_2": Reaction.HOLD, "saddle_1": Reaction.HOLD}
    cell.axis.override.clear()
    cell.run(10)
    with pytest.raises(CommandRefused, match="draw_2"):
        cell.layer.clear(cell.bench.read())
    assert {each.tendon for each in cell.layer.latch.faults} >= {"draw_1", "draw_2"}  # all stay, not only the one


def test_reactions_are_those_that_the_robot_file_chooses() -> None:
    block = {"period": PERIOD, "reactions": {"overheating": "hold", "runaway": "hold"}, "others": "torque off"}
    chosen = validate_block(SafetySettings, block, "safety")
    cell = Cell(safety=chosen)
    cell.run(5)
    cell.axis.override["temperature"] = 90.0
    cell.until(K.OVERHEATING, "draw_1", S.persist)
    assert cell.run(1).reactions["draw_1"] is Reaction.HOLD
    assert cell.run(1).commands["draw_2"].kind is Drive.TORQUE_OFF


@pytest.mark.parametrize(
    ("block", "words"),
    [
        ({"silnet": 3}, "safety.silnet: unknown field. Did you mean 'silent'"),
        ({"reactions": {"runawy": "hold"}}, "safety.reactions.runawy: .* Did you mean 'runaway'"),
        ({"reactions": {"runaway": "wait"}}, "safety.reactions.runaway: found 'wait'; allowed: 'warn', 'hold'"),
        ({"reactions": {"runaway": "warn"}}, "safety.reactions.runaway: choose hold, release or torque off"),
        ({"reactions": {"stuck": "warn", "snapped": "warn"}}, "reactions.stuck: .*\n.*reactions.snapped: "),
        ({"others": "warn"}, "safety.others: found 'warn'; allowed: 'hold', 'release', 'torque off'"),
        ({"silent": 0}, "above 0"),
        ({"silent": 2.5}, "whole number"),
        ({"silent": "5"}, "whole number"),
        ({"window": True}, "whole number"),
        ({"period": "20 mm"}, "a time is needed"),
        ({"slack_tension": -1.0}, "above 0"),
        ({"temperatures": 70.0}, "a list is needed"),
        ({"temperatures": [60.0, 70.0, 80.0]}, "entries must be at most 2; found 3"),
        ({"period": math.nan}, "must be finite"),
        ({"voltages": [12.0, 9.0]}, "put the lower one first"),
        ({"latched": ["slack", "bliss"]}, r"safety.latched\[1\]: There is no fault 'bliss'"),
        ({"latched": 3}, "a list is needed"),
        ({"reactions": 3}, "a mapping is needed"),
    ],
)
def test_settings_that_make_no_sense_are_refused_naming_the_field(block, words) -> None:
    with pytest.raises(TensegrityError, match=words):
        validate_block(SafetySettings, block, "safety")


@pytest.mark.parametrize("kind", FaultKind)
def test_a_warning_alone_is_enough_only_about_what_harms_nothing_yet(kind: FaultKind) -> None:
    if MANUAL[kind.value][4] == "warn":
        assert SafetySettings(reactions={kind: Reaction.WARN}).reaction(kind) is Reaction.WARN
    else:
        with pytest.raises(ValueError, match="choose hold, release or torque off"):
            SafetySettings(reactions={kind: Reaction.WARN})


# -- how soon, and how rarely for nothing ------------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(speed=st.floats(2.2e-3, 30e-3), sign=st.sampled_from([-1, 1]), moving=st.booleans(), encoder=st.booleans())
def test_a_spool_that_moves_by_itself_is_found_as_soon_as_stated_at_every_speed(speed, sign, moving, encoder) -> None:
    cell = Cell(encoder=encoder)
    window, lag = cell.settings.window, cell.settings.lag
    assert speed > cell.settings.motion_tolerance / ((window - 1) * PERIOD)  # slower ones are left to other limits
    cell.run(40, {"draw_1": (Mode.POSITION, 0.2085)} if moving else None)
    cell.axis.gain, cell.axis.drift = 0.0, sign * speed
    asked_until = 0
    for k in range(1, lag + window + 60):
        step = cell.run(1)
        if step.commands["draw_1"].kind is not Drive.TORQUE_OFF and sign * commanded(cell) > 0.0:
            asked_until = k  # as long as the loop asks for motion that way, it is not without a command
        found = [each for each in step.new if each.kind in (K.RUNAWAY, K.WRONG_SIGN)]
        if found:
            break
    assert found, "not found"
    shows = math.ceil(cell.settings.motion_tolerance / (speed * PERIOD) + 1e-9)  # as docs/faults.md says
    assert k - asked_until <= lag + shows + 2
    assert k <= lag + window + 9


def commanded(cell: Cell) -> float:
    """Speed [m/s] that the last command of the first tendon asks for."""
    sent = cell.layer.sent["draw_1"]
    return sent.value if sent.kind is Drive.VELOCITY else sent.value - cell.axis.length


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    delay=st.integers(0, 4),
    gain=st.floats(0.7, 1.3),
    encoder=st.booleans(),
    mode=st.sampled_from([Mode.POSITION, Mode.VELOCITY]),
    at_rest=st.booleans(),
)
def test_healthy_spools_with_delay_noise_and_wrong_gain_are_never_stopped(
    seed, delay, gain, encoder, mode, at_rest
) -> None:
    random = Random(seed)
    # slow servos need the `lag` that they have: delay and the cycle in which a command acts, 1.4 periods long, gain 1.3
    safety = SafetySettings(period=PERIOD, lag=max(SafetySettings().lag, math.ceil(1.4 * 1.3 * (delay + 1))))
    cell = Cell(encoder=encoder, safety=safety, axis={"delay": delay, "gain": gain}, load_at_rest=at_rest or encoder)
    noise = 0.0 if encoder else COUNT

    def shake() -> None:
        for axis in cell.bench.axes.values():
            axis.slipped = random.uniform(-noise, noise)

    cell.each_cycle = shake
    for _ in range(8):
        span = (0.2035, 0.235) if mode is Mode.POSITION else (-0.015, 0.015)
        points = {name: (mode, random.uniform(*span)) for name in NAMES}
        cell.bench.period = random.choice([PERIOD, 0.7 * PERIOD, 1.4 * PERIOD])
        step = cell.run(random.randint(1, 120), points)
        assert {each.kind for each in step.faults} <= {K.SLACK}, [each.line for each in step.faults]


def test_a_servo_that_still_turns_as_long_as_a_command_takes_is_no_runaway_however_short_the_cycles_are() -> None:
    motion, length, last = FollowingErrorMonitor(K.RUNAWAY, S, spool()), 0.22, 0.0
    for cycle, time in enumerate([*(0.02 * k for k in range(40)), *(0.78 + 0.004 * k for k in range(1, 60))]):
        length -= 0.015 * max(0.0, min(time, 0.78 + 0.095) - last)  # it obeys 95 ms late, within five periods of 20 ms
        command = DriveCommand(Drive.VELOCITY, -0.015 if time <= 0.78 else 0.0, 0.015, 200.0)
        tendon = TendonReading("draw_1", length, math.nan, math.nan, ServoReading("draw_1"))
        readings = Readings({"draw_1": tendon}, period=time - last)
        assert motion.update(cycle, readings, {"draw_1": command}) is None
        last = time


@pytest.mark.parametrize("late", [True, False])
def test_a_spool_that_was_read_late_may_have_moved_on_at_its_commanded_speed(late: bool) -> None:
    motion, length, found = FollowingErrorMonitor(K.RUNAWAY, S, spool()), 0.22, None
    for cycle in range(22):
        speed, read_time = (-0.03, 0.055) if cycle == 21 else (0.0, 0.0)
        length += speed * (0.02 + read_time)
        tendon = TendonReading("draw_1", length, math.nan, math.nan, ServoReading("draw_1"))
        readings = Readings({"draw_1": tendon}, period=0.02, read_time=read_time if late else 0.0)
        found = motion.update(cycle, readings, {"draw_1": DriveCommand(Drive.VELOCITY, speed, 0.03, 200.0)})
    assert (found is None) == late


def test_a_finding_that_is_false_moves_nothing_and_no_servo_lets_go() -> None:
    for encoder in (False, True):
        cell = Cell(encoder=encoder)
        cell.run(40)
        before = [each.length for each in cell.bench.axes.values()]
        motion = next(each for each in cell.layer.monitors if isinstance(each, FollowingErrorMonitor))
        motion.update = lambda cycle, *_: Fault(K.RUNAWAY, "draw_1", cycle, "so it seems")  # type: ignore[method-assign]
        for _ in range(100):
            assert {each.kind for each in cell.run(1).commands.values()} <= {Drive.VELOCITY, Drive.POSITION}
        assert [each.length for each in cell.bench.axes.values()] == pytest.approx(before, abs=2e-4)


def test_a_spool_whose_sensor_alone_moves_is_held_and_not_let_go() -> None:
    cell = Cell()
    cell.run(40)
    cell.axis.override["speed"] = 0.0  # of the servo, which stands
    cell.each_cycle = lambda: setattr(cell.axis, "slipped", cell.axis.slipped - 2e-4)
    kinds = {each.kind for _ in range(60) for each in cell.run(1).new}
    assert K.RUNAWAY in kinds and K.DISOBEYS_HOLD not in kinds
    assert cell.layer.sent["draw_1"].kind is Drive.VELOCITY


def test_where_one_servo_has_let_go_all_others_pay_out_at_one_rate_unless_the_emergency_stop_holds_them() -> None:
    for stopped in (None, "pressed"):
        cell = Cell()
        cell.run(40)
        cell.bench.command = replace(cell.bench.command, stopped=stopped)
        cell.axis.override["errors"] = frozenset({"encoder"})
        cell.until(K.HARDWARE_ERROR, "draw_1", 2, first=(K.EMERGENCY_STOP,))
        others = [cell.bench.axes[name] for name in NAMES[1:]]
        for axis in others:
            axis.reach += 5e-3  # tight, so that neither is slack meanwhile
        cell.pulled = 1000.0
        before = [axis.length for axis in others]
        cell.run(30)
        paid = [axis.length - length for axis, length in zip(others, before, strict=True)]
        expected = 0.0 if stopped else 30 * PERIOD * S.release_rate
        assert paid == pytest.approx([expected, expected], abs=1e-3) and abs(paid[0] - paid[1]) < 1e-4


def test_a_servo_that_tells_its_load_while_it_winds_in_tells_no_tension_until_it_has_done_so_for_the_lag() -> None:
    cell = Cell(load_at_rest=False)
    cell.axis.reach = 0.2145
    cell.run(50)
    assert math.isnan(cell.layer.tension("draw_1"))  # tight, and its load reads zero
    reported = []
    for k in range(60):
        cell.run(1, {"draw_1": (Mode.POSITION, 0.2075)} if k == 0 else None)
        tension = cell.layer.tension("draw_1")
        if not math.isnan(tension):
            reported.append(tension - cell.axis.tension)
    assert reported and max(map(abs, reported)) < 2.0 * cell.axis.stiffness * 0.015 * PERIOD


# -- the table for builders --------------------------------------------------------------------------------------------


def test_the_fault_table_says_what_the_code_does() -> None:
    assert set(MANUAL) == {kind.value for kind in FaultKind}
    for kind in FaultKind:
        row = MANUAL[kind.value]
        assert row[4] == kind.row.reaction.value, kind
        assert (row[5] == "by itself") == (kind not in SafetySettings().latched), kind
        assert all(row), kind


def test_a_servo_that_pushes_only_while_it_winds_in_does_not_seem_snapped_when_it_stops() -> None:
    cell = Cell(load_at_rest=False)
    cell.axis.reach = 0.2145
    cell.run(50)
    step = cell.run(200, {"draw_1": (Mode.POSITION, 0.2075)})
    assert cell.axis.tension > 100.0 and cell.axis.read().load == 0.0
    assert not step.faults
    cell.axis.reach += 0.004  # pulled above the ceiling: seen as soon as it winds in, and not followed
    cell.pulled = cell.axis.tension
    stands = cell.axis.length
    cell.run(100, {"draw_1": (Mode.POSITION, 0.2005)})
    assert cell.axis.length > stands - 1e-3


def test_a_servo_that_stops_pushing_at_its_ceiling_does_not_creep_past_it() -> None:
    cell = Cell(load_at_rest=False, axis={"limited": False}, stiffness=None)
    cell.axis.reach = 0.2165
    cell.pulled = 1000.0  # the servo has no torque limit here; what is asked of it must be enough
    highest = []

    def watch() -> None:
        highest.append(cell.axis.tension)

    cell.each_cycle = watch
    cell.run(300, {"draw_1": (Mode.POSITION, 0.2)})
    # 15 mm/s go on for three cycles when the ceiling is met; then a slow try after 25, 50, 100... cycles
    assert max(highest) <= 200.0 + cell.axis.stiffness * PERIOD * 3 * (0.015 + 4 * 0.0018)


def test_a_spool_that_turns_under_a_frozen_sensor_is_not_called_stuck() -> None:
    each = spool()
    stuck = StuckMonitor(K.STUCK, S, each)
    asked = {"draw_1": DriveCommand(Drive.VELOCITY, -0.015, 0.015, 200.0)}
    for moves, found in ((True, False), (False, True)):
        stuck.finding(TendonReading("draw_1", math.nan, math.nan, 0.0, ServoReading("draw_1")), Readings({}), None)
        faults = []
        for k in range(40):
            second = 0.2 - 0.0003 * k if moves else 0.2
            tendon = TendonReading("draw_1", 0.2, second, 0.0, ServoReading("draw_1"))
            faults.append(stuck.update(k, Readings({"draw_1": tendon}, period=PERIOD), asked))
        assert any(faults) == found


def test_a_servo_that_speaks_again_after_its_spool_has_moved_does_not_make_its_potentiometer_seem_frozen() -> None:
    frozen = SensorFrozenMonitor(K.SENSOR_FROZEN, S, spool())
    length = second = 0.2
    for k in range(60):
        silent = 10 <= k < 30
        length += 0.0003 if 10 <= k < 25 else 0.0
        second = second if silent else length
        raw = ServoReading("draw_1", age=k - 9 if silent else 0)
        tendon = TendonReading("draw_1", length, second, 0.0, raw)
        assert frozen.update(k, Readings({"draw_1": tendon}, period=PERIOD), {}) is None


def test_the_settings_in_the_documentation_are_those_of_the_code() -> None:
    said: dict[str, str] = {}
    for line in TEXT[TEXT.index("## Settings") :].splitlines():
        if line.startswith("| `"):
            names, values = (cell.strip() for cell in line.strip("|").split("|")[:2])
            each = [name.strip(" `") for name in names.split(",")]
            said.update(zip(each, values.split(", ") if len(each) > 1 else [values], strict=True))
    defaults = SafetySettings()
    assert list(said) == list(SafetySettings.model_fields)
    for name, value in said.items():
        default = getattr(defaults, name)
        if isinstance(default, (int, float)):
            assert float(value) == default, name
        elif name in ("temperatures", "voltages"):
            assert value == str(list(default)), name
    assert (said["others"], defaults.others) == ("hold; release where a servo has let go", None)
