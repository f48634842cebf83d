"""Homing finds where a tendon becomes tight, never pulls too hard, and refuses sensors that cannot be believed."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spool_bench import COUNT, PERIOD, RADIUS, Axis, spool

from tensegrity_driver.calibration.homing import Homing, HomingSettings, Phase
from tensegrity_driver.calibration.line_fit import CalibrationError
from tensegrity_driver.calibration.turn_counter import SavedPosition, recover_turns
from tensegrity_driver.spools.readings import Drive, ServoReading
from tensegrity_driver.spools.spool import Line
from tensegrity_dynamics.errors import CommandRefused, TensegrityError
from tensegrity_dynamics.robots.file_errors import validate_block

TURN = 2.0 * math.pi * RADIUS


def home(homing: Homing, axis: Axis, *, each=None, cycles: int = 6000) -> float:
    """Run a homing on a bench axis; returns the largest tension on the way."""
    highest = 0.0
    for cycle in range(cycles):
        if each is not None:
            each(cycle, homing)
        command = homing.update(axis.spool.observe(axis.read()), PERIOD)
        axis.move(command, PERIOD)
        highest = max(highest, axis.tension)
        if homing.phase in (Phase.DONE, Phase.FAILED):
            break
    for _ in range(20):  # what is still on its way
        axis.move(homing.update(axis.spool.observe(axis.read()), PERIOD), PERIOD)
    return max(highest, axis.tension)


@settings(max_examples=40, deadline=None)
@given(
    stiffness=st.floats(2e3, 200e3),
    slack=st.floats(-0.5e-3, 0.03),
    delay=st.integers(0, 3),
    encoder=st.booleans(),
    informed=st.booleans(),
    at_rest=st.booleans(),
)
def test_the_tight_place_is_found_without_overdriving(stiffness, slack, delay, encoder, informed, at_rest) -> None:
    each = spool(
        encoder=encoder,
        stiffness=stiffness if informed or stiffness > 20e3 else None,
        load_at_rest=at_rest or encoder,
    )
    axis = Axis(each, length=0.2125 + slack, stiffness=stiffness, delay=delay)
    homing = Homing(each, PERIOD, drive=Drive.POSITION if encoder else Drive.VELOCITY)
    before = axis.tension
    highest = home(homing, axis)
    assert homing.phase is Phase.DONE, homing.reason
    assert homing.cycles <= homing.longest
    assert highest <= max(homing.ceiling, before) + 1e-9
    result = homing.result
    assert result is not None
    line = each.encoder if encoder else each.potentiometer
    assert line is not None
    found = line(result.reading)
    true = axis.reach - result.tension / stiffness
    assert abs(found - true) <= 0.1e-3 + 2 * homing.settings.lag * homing.crawl * PERIOD
    assert axis.tension < result.tension + result.friction  # paid out again at the end


@settings(max_examples=30, deadline=None)
@given(stiffness=st.floats(2e3, 400e3), delay=st.integers(0, 3), encoder=st.booleans())
def test_a_known_stiff_tendon_is_not_overdriven_even_by_a_servo_without_torque_limit(stiffness, delay, encoder) -> None:
    each = spool(encoder=encoder, stiffness=stiffness)
    axis = Axis(each, length=0.2165, stiffness=stiffness, delay=delay, limited=False)
    homing = Homing(each, PERIOD, drive=Drive.POSITION if encoder else Drive.VELOCITY)
    assert home(homing, axis) <= homing.ceiling
    assert homing.phase is Phase.DONE, homing.reason


def test_the_line_through_the_tight_place_gives_its_length() -> None:
    each = spool(potentiometer=Line(COUNT, 0.0))  # rough: the slope of the radius, no intercept
    axis = Axis(spool(), length=0.22)
    real = axis.spool

    def read() -> ServoReading:
        return axis.read()

    homing = Homing(each, PERIOD)
    while homing.phase not in (Phase.DONE, Phase.FAILED):
        axis.move(homing.update(each.observe(read()), PERIOD), PERIOD)
    assert homing.result is not None, homing.reason
    assert each.potentiometer is not None and real.potentiometer is not None
    line = homing.result.line(each.potentiometer, axis.reach - homing.result.tension / axis.stiffness)
    assert line(2000.0) == pytest.approx(real.potentiometer(2000.0), abs=1.5e-4)


def test_friction_of_the_spool_is_not_taken_for_tension() -> None:
    each = spool()
    axis = Axis(each, length=0.222)
    homing = Homing(each, PERIOD)

    def drag(cycle: int, homing: Homing) -> None:
        pulls = 12.0 if homing.phase in (Phase.WIND, Phase.CONFIRM) else 0.0
        axis.override["load"] = (axis.tension + pulls) * RADIUS / 1.5

    home(homing, axis, each=drag)
    assert homing.result is not None, homing.reason
    assert homing.result.friction == pytest.approx(12.0, abs=0.5)
    assert each.potentiometer is not None
    assert each.potentiometer(homing.result.reading) < axis.reach


def test_a_tendon_that_is_tight_already_is_paid_out_until_it_is_loose_before_it_is_wound_in() -> None:
    axis = Axis(spool(), length=0.2125 - 0.0075)  # 150 N, far above the threshold, and above the ceiling of homing
    homing = Homing(axis.spool, PERIOD)
    highest_winding = [0.0]

    def watch(cycle: int, homing: Homing) -> None:
        if homing.phase in (Phase.WIND, Phase.CONFIRM):
            highest_winding.append(axis.tension)

    home(homing, axis, each=watch)
    assert homing.result is not None, homing.reason
    assert homing.result.friction == 0.0 and homing.result.tension < 60.0  # else it wound in while still tight
    assert max(highest_winding) <= homing.ceiling


def test_a_pull_above_the_ceiling_from_outside_ends_the_homing_at_once() -> None:
    axis = Axis(spool(), length=0.23)
    pulled: list[int] = []

    def pull(cycle: int, homing: Homing) -> None:
        if homing.phase is Phase.WIND and axis.length < 0.227 and not pulled:
            axis.reach += 0.03
            pulled.append(homing.cycles)

    refused(axis, "above the 100 N of homing", each=pull)


def test_a_rough_place_on_the_way_is_not_the_end() -> None:
    each = spool()
    axis = Axis(each, length=0.23)
    homing = Homing(each, PERIOD)

    def knot(cycle: int, homing: Homing) -> None:
        at_knot = 0.2249 < axis.length < 0.2251
        axis.override["load"] = (axis.tension + (30.0 if at_knot else 0.0)) * RADIUS / 1.5

    home(homing, axis, each=knot)
    assert homing.result is not None and each.potentiometer is not None
    assert each.potentiometer(homing.result.reading) == pytest.approx(axis.reach, abs=1.2e-3)


# -- refusals ----------------------------------------------------------------------------------------------------------


def refused(axis: Axis, words: str, *, each=None, start: Phase | None = None) -> float:
    homing = Homing(axis.spool, PERIOD)
    begun = axis.length
    home(homing, axis, each=each)
    assert homing.phase is Phase.FAILED and homing.result is None
    assert homing.reason is not None and words in homing.reason and "draw_1" in homing.reason
    return begun - axis.length


def test_a_frozen_sensor_is_refused_before_anything_is_wound_in() -> None:
    wound = refused(Axis(spool(), length=0.22, frozen=1800.0), "stands still")
    assert wound <= 0.0


def test_a_backwards_sensor_is_refused_before_anything_is_wound_in() -> None:
    class Backwards(Axis):
        def read(self) -> ServoReading:
            reading = super().read()
            return ServoReading(**{**reading.__dict__, "sensor": 4095.0 - (reading.sensor or 0.0)})

    assert refused(Backwards(spool(), length=0.22), "runs backwards") <= 0.0


@pytest.mark.parametrize("counts", [None, math.nan])
def test_a_missing_sensor_is_refused_at_once(counts) -> None:
    axis = Axis(spool(), length=0.22)
    axis.override["sensor"] = counts
    assert refused(axis, "gives no reading") == 0.0


def test_a_sensor_at_its_end_is_refused_at_once() -> None:
    assert refused(Axis(spool(), length=0.22, frozen=4095.0), "outside 20 to 4075") == 0.0


def test_a_sensor_that_freezes_on_the_way_ends_the_homing() -> None:
    axis = Axis(spool(), length=0.25)

    def freeze(cycle: int, homing: Homing) -> None:
        if homing.phase is Phase.WIND and axis.length < 0.245 and axis.frozen is None:
            axis.frozen = axis.read().sensor

    wound = refused(axis, "stands still", each=freeze)
    assert wound < 0.25 - 0.245 + 2.0 * HomingSettings().nudge


def test_a_servo_that_tells_no_load_is_refused() -> None:
    axis = Axis(spool(), length=0.22)
    axis.override["load"] = None
    assert refused(axis, "neither load nor current") == 0.0


def test_a_tendon_that_is_not_there_ends_the_homing_within_its_travel() -> None:
    axis = Axis(spool(), length=0.25, snapped=True)
    wound = refused(axis, "never became tight")
    assert wound <= HomingSettings().travel + HomingSettings().nudge


def test_a_tendon_that_its_neighbours_keep_tight_is_given_up_within_its_travel() -> None:
    axis = Axis(spool(), length=0.2125 - 0.004)

    def follow(cycle: int, homing: Homing) -> None:
        axis.reach = axis.length + 0.004

    paid_out = -refused(axis, "loosen its neighbours", each=follow)
    assert HomingSettings().travel <= paid_out <= HomingSettings().travel + 1e-3


def test_a_servo_that_turns_the_wrong_way_is_refused_before_it_pulls_hard() -> None:
    axis = Axis(spool(), length=0.2126, gain=-1.0)
    homing = Homing(axis.spool, PERIOD)
    highest = home(homing, axis)
    assert homing.phase is Phase.FAILED
    assert highest <= homing.ceiling


def test_a_spool_that_moves_by_itself_is_refused() -> None:
    refused(Axis(spool(), length=0.22, drift=0.004), "while nothing was commanded")


def test_a_servo_that_falls_silent_ends_the_homing_within_its_cycles() -> None:
    axis = Axis(spool(), length=0.23)
    fell: list[int] = []

    def silence(cycle: int, homing: Homing) -> None:
        if homing.phase is Phase.WIND and not fell:
            fell.append(cycle)
            axis.silent = True
        if homing.phase is Phase.WIND and fell:
            assert cycle - fell[0] <= homing.settings.silent

    refused(axis, "does not answer", each=silence)
    assert fell


def test_errors_of_the_servo_end_the_homing() -> None:
    axis = Axis(spool(), length=0.22)
    axis.override["errors"] = frozenset({"overheating"})
    assert refused(axis, "overheating") == 0.0


def test_a_jammed_spool_is_refused() -> None:
    assert refused(Axis(spool(), length=0.22, jammed=True), "stands still") == 0.0


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_whatever_is_read_homing_ends_in_time_and_never_asks_for_more_than_its_speed(data) -> None:
    homing = Homing(spool(), PERIOD)
    number = st.one_of(st.none(), st.floats(), st.floats(0.0, 4095.0), st.floats(-0.2, 0.2))
    bits = st.sampled_from([frozenset(), frozenset({"overload"})])
    for _ in range(data.draw(st.integers(1, 60))):
        reading = ServoReading(
            "draw_1", data.draw(number), None, data.draw(number), data.draw(number), age=data.draw(st.integers(0, 2)),
            errors=data.draw(bits),
        )  # fmt: skip
        command = homing.update(homing.spool.observe(reading), data.draw(st.sampled_from([PERIOD, 0.0, math.nan, 1e9])))
        assert command.kind is Drive.VELOCITY
        assert abs(command.value) <= homing.speed
        assert 0.0 < command.tension <= homing.ceiling
        if homing.phase is Phase.FAILED:
            assert command.value == 0.0


def test_a_threshold_without_room_below_the_ceiling_is_refused() -> None:
    with pytest.raises(TensegrityError, match="leaves no margin"):
        Homing(spool(), PERIOD, HomingSettings(threshold=150.0))
    with pytest.raises(TensegrityError, match=r"homing\.ceiling: 40 N is not above the threshold of 50 N"):
        validate_block(HomingSettings, {"threshold": 50.0, "ceiling": 40.0}, "homing")


# -- turns lost by a power cycle ---------------------------------------------------------------------------------------


@given(turns=st.integers(-6, 6), length=st.floats(0.17, 0.26))
def test_a_potentiometer_tells_the_turns_that_an_encoder_lost(turns: int, length: float) -> None:
    each = spool(encoder=True, potentiometer=Line(COUNT, 0.08))
    assert each.encoder is not None and each.potentiometer is not None
    position = each.encoder.inverse(length) - 2.0 * math.pi * turns
    reading = ServoReading("draw_1", position=position, sensor=round(each.potentiometer.inverse(length)))
    assert recover_turns(each, None, reading)(position) == pytest.approx(length, abs=1e-9)


def test_without_a_potentiometer_lost_turns_are_not_guessed() -> None:
    each = spool(encoder=True)
    assert each.encoder is not None
    before = each.encoder.inverse(0.2)
    memory = SavedPosition(before, 0.2)
    lost = ServoReading("draw_1", position=before + 4.0 * math.pi)
    with pytest.raises(CommandRefused, match="home it again"):
        recover_turns(each, memory, lost)
    with pytest.raises(CommandRefused, match="home it again"):
        recover_turns(each, None, lost)
    kept = ServoReading("draw_1", position=before)
    assert recover_turns(each, memory, kept) == each.encoder


def test_a_spool_that_stands_between_turns_is_homed_again() -> None:
    each = spool(encoder=True, potentiometer=Line(COUNT, 0.08))
    assert each.encoder is not None and each.potentiometer is not None
    reading = ServoReading("draw_1", each.encoder.inverse(0.2), sensor=each.potentiometer.inverse(0.2 + 0.4 * TURN))
    with pytest.raises(CommandRefused, match="even after whole turns"):
        recover_turns(each, None, reading)
    with pytest.raises(CalibrationError, match="no encoder that counts turns"):
        recover_turns(spool(), None, reading)
