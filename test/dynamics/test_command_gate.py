"""The command gate: every rule of DESIGN section 7, and that nothing outside the limits ever passes."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensegrity_dynamics.command_gate import CommandGate, Mode
from tensegrity_dynamics.errors import CommandRefused, TensegrityError
from tensegrity_dynamics.robots.robot import Actuator

ACTUATORS = (Actuator("draw_1", "draw_1", (0.1, 0.3), 0.02, 30.0), Actuator("draw_2", "draw_2", (0.1, 0.3), 0.02, 30.0))


def gate(**options):
    return CommandGate(ACTUATORS, **options)


def send(gate, values, mode=Mode.POSITION, source="controller", stamp=1.0, now=1.0, **options):
    return gate.check(list(values), list(values.values()), mode, source=source, stamp=stamp, now=now, **options)


def test_a_good_command_passes_unchanged():
    verdict = send(gate(), {"draw_1": 0.2})
    assert verdict.accepted and not verdict.refusals
    assert verdict.set_points == {"draw_1": (Mode.POSITION, 0.2)}


def test_unknown_names_are_refused_with_the_nearest_known_one():
    verdict = send(gate(), {"draw1": 0.2})
    assert not verdict.accepted and "draw_1" in verdict.refusals[0].reason


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_command_that_is_not_finite_is_refused_as_a_whole(value):
    verdict = send(gate(), {"draw_1": 0.2, "draw_2": value})
    assert not verdict.accepted and not verdict.set_points and "draw_2" in verdict.refusals[0].reason


def test_names_and_values_must_be_as_many():
    verdict = gate().check(["draw_1"], [0.2, 0.3], Mode.POSITION, source="a", stamp=0.0, now=0.0)
    assert not verdict.accepted


def test_an_actuator_named_twice_is_refused():
    verdict = gate().check(["draw_1", "draw_1"], [0.2, 0.3], Mode.POSITION, source="a", stamp=0.0, now=0.0)
    assert "twice" in verdict.refusals[0].reason


def test_effort_above_the_ceiling_says_tendon_value_and_ceiling():
    verdict = send(gate(), {"draw_1": 31.2}, Mode.EFFORT)
    assert str(verdict.refusals[0]) == "draw_1: 31.2 N is above its ceiling of 30 N; refused."
    assert verdict.set_points == {}


def test_one_bad_actuator_does_not_stop_the_others():
    verdict = send(gate(), {"draw_1": 0.5, "draw_2": 0.2})
    assert verdict.accepted and list(verdict.set_points) == ["draw_2"]
    assert verdict.refusals[0].actuator == "draw_1"


def test_clipping_brings_values_to_the_limit_and_says_so():
    verdict = send(gate(limits="clip"), {"draw_1": 0.5})
    assert verdict.set_points["draw_1"][1] == 0.3 and "limited" in verdict.refusals[0].reason


def test_a_tendon_is_never_pushed():
    verdict = send(gate(), {"draw_1": -1.0}, Mode.EFFORT)
    assert verdict.set_points["draw_1"][1] == 0.0 and "push" in verdict.refusals[0].reason


def test_velocity_is_limited_and_stops_at_the_end_of_travel():
    assert send(gate(), {"draw_1": 1.0}, Mode.VELOCITY).set_points["draw_1"][1] == 0.02
    at_end = send(gate(), {"draw_1": -0.01}, Mode.VELOCITY, positions={"draw_1": 0.1})
    assert at_end.set_points["draw_1"][1] == 0.0


def test_an_old_command_is_refused_and_the_motion_goes_stale():
    subject = gate(freshness=0.5)
    assert not subject.is_fresh(0.0)
    assert not send(subject, {"draw_1": 0.2}, stamp=1.0, now=1.6).accepted
    send(subject, {"draw_1": 0.2}, stamp=1.0, now=1.0)
    assert subject.is_fresh(1.5) and not subject.is_fresh(1.51)


def test_a_clock_jump_is_refused_with_both_times():
    verdict = send(gate(), {"draw_1": 0.2}, stamp=100.0, now=1.0)
    assert "100.000" in verdict.refusals[0].reason and "1.000" in verdict.refusals[0].reason


def test_a_command_from_before_the_last_one_is_refused():
    subject = gate()
    send(subject, {"draw_1": 0.2}, stamp=1.0, now=1.0)
    assert not send(subject, {"draw_1": 0.2}, stamp=0.9, now=1.0).accepted


def test_a_second_source_waits_until_the_first_is_silent():
    subject = gate(freshness=0.5)
    send(subject, {"draw_1": 0.2}, source="one", stamp=1.0, now=1.0)
    refused = send(subject, {"draw_1": 0.25}, source="two", stamp=1.2, now=1.2)
    assert not refused.accepted and "'one'" in refused.refusals[0].reason
    assert send(subject, {"draw_1": 0.25}, source="two", stamp=1.8, now=1.8).accepted


def test_an_emergency_stop_latches_until_released():
    subject = gate()
    subject.stop("button")
    subject.stop("later reason")
    assert subject.stopped == "button"
    assert "button" in send(subject, {"draw_1": 0.2}).refusals[0].reason
    subject.release()
    assert "before the release" in send(subject, {"draw_1": 0.2}).refusals[0].reason
    assert send(subject, {"draw_1": 0.2}, session=5).accepted
    with pytest.raises(CommandRefused):
        subject.release()


def test_wrong_settings_are_refused():
    with pytest.raises(TensegrityError):
        gate(freshness=0.0)
    with pytest.raises(TensegrityError):
        gate(limits="ignore")


def test_a_clock_that_is_not_a_number_lets_nothing_pass():
    assert not send(gate(), {"draw_1": 0.2}, now=math.nan).accepted
    assert not send(gate(), {"draw_1": 0.2}, stamp=math.nan).accepted


def test_a_stamp_ahead_of_the_clock_is_refused():
    assert send(gate(freshness=0.5), {"draw_1": 0.2}, stamp=1.4, now=1.0).accepted
    verdict = send(gate(freshness=0.5), {"draw_1": 0.2}, stamp=2.0, now=1.0)
    assert not verdict.accepted and "1.000 s ahead" in verdict.refusals[0].reason


def test_nothing_is_fresh_after_the_clock_went_back():
    subject = gate()
    send(subject, {"draw_1": 0.2}, stamp=10.0, now=10.0)
    assert not subject.is_fresh(9.0) and "went back by 1.000 s" in subject.must_hold(9.0)
    assert send(subject, {"draw_1": 0.2}, stamp=9.0, now=9.0).accepted
    assert subject.is_fresh(9.0)


def test_a_source_whose_commands_are_all_refused_is_stopped_like_a_silent_one():
    subject = gate(freshness=0.5)
    send(subject, {"draw_1": 0.01}, Mode.VELOCITY, stamp=1.0, now=1.0)
    for now in (1.4, 1.8):
        assert send(subject, {"draw_1": 31.0}, Mode.EFFORT, stamp=now, now=now).refusals
    assert not subject.is_fresh(1.8)


def test_a_command_without_names_is_a_sign_of_life():
    subject = gate(freshness=0.5)
    send(subject, {"draw_1": 0.2}, stamp=1.0, now=1.0)
    assert send(subject, {}, stamp=1.4, now=1.4).set_points == {}
    assert subject.is_fresh(1.8)


def test_the_gate_says_why_to_hold():
    subject = gate(freshness=0.5)
    assert "no command" in subject.must_hold(0.0)
    send(subject, {"draw_1": 0.2}, stamp=1.0, now=1.0)
    assert subject.must_hold(1.2) is None
    assert "'controller' for 1.000 s" in subject.must_hold(2.0)
    subject.stop("button")
    assert "button" in subject.must_hold(1.2)


def test_a_source_may_leave_to_another():
    subject = gate()
    send(subject, {"draw_1": 0.2}, source="one", stamp=1.0, now=1.0)
    with pytest.raises(CommandRefused, match="'one' does"):
        subject.leave("two")
    subject.leave("one")
    assert send(subject, {"draw_1": 0.2}, source="two", stamp=1.1, now=1.1).accepted


def test_numbers_of_any_real_type_are_taken_and_others_refused():
    assert send(gate(), {"draw_1": np.float32(0.2)}).accepted
    assert send(gate(), {"draw_1": np.float64(0.2)}).accepted
    for value in ("0.2", None, 0.2j):
        assert "finite number" in send(gate(), {"draw_1": value}).refusals[0].reason


def test_a_lead_keeps_positions_within_reach_and_says_so():
    verdict = send(gate(lead=0.5), {"draw_1": 0.29, "draw_2": 0.195}, positions={"draw_1": 0.2, "draw_2": 0.2})
    assert verdict.set_points["draw_1"][1] == pytest.approx(0.21)
    assert verdict.set_points["draw_2"][1] == 0.195
    assert [each.actuator for each in verdict.refusals] == ["draw_1"] and "0.02 m/s" in verdict.refusals[0].reason


def test_a_lead_slows_a_velocity_near_the_end_of_travel():
    verdict = send(gate(lead=0.5), {"draw_1": 0.02}, Mode.VELOCITY, positions={"draw_1": 0.295})
    assert verdict.set_points["draw_1"][1] == pytest.approx(0.01)


@pytest.mark.parametrize("positions", [None, {}, {"draw_1": math.nan}])
def test_a_lead_refuses_motion_from_an_unknown_position(positions):
    for mode, value in ((Mode.POSITION, 0.2), (Mode.VELOCITY, 0.01)):
        verdict = send(gate(lead=0.5), {"draw_1": value}, mode, positions=positions)
        assert not verdict.set_points and "cannot be limited" in verdict.refusals[0].reason


@given(
    st.lists(st.tuples(st.sampled_from(["draw_1", "draw_2", "other"]), st.floats()), max_size=4),
    st.sampled_from(list(Mode)),
    st.sampled_from(["refuse", "clip"]),
    st.floats(allow_nan=True),
)
def test_nothing_outside_the_limits_ever_passes(pairs, mode, limits, stamp):
    names, values = [name for name, _ in pairs], [value for _, value in pairs]
    verdict = gate(limits=limits).check(names, values, mode, source="any", stamp=stamp, now=1.0)
    for _, value in verdict.set_points.values():
        low, high = {Mode.POSITION: (0.1, 0.3), Mode.VELOCITY: (-0.02, 0.02), Mode.EFFORT: (0.0, 30.0)}[mode]
        assert low <= value <= high
    if any(not math.isfinite(value) for value in values) or "other" in names:
        assert not verdict.accepted or not names


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["one", "two"]), st.sampled_from(list(Mode)), st.floats(-1.0, 40.0),
            st.floats(-0.3, 0.8), st.floats(-0.2, 0.2),
        ),
        max_size=12,
    ),
    st.floats(0.09, 0.31),
)  # fmt: skip
def test_a_drive_that_obeys_blindly_never_leaves_its_limits(commands, start):
    """With a lead as long as the freshness: whatever comes, when it comes, and however long nothing comes."""
    subject, now, position = gate(freshness=0.5, lead=0.5), 0.0, start
    mode, value = Mode.POSITION, start
    for source, asked, number, pause, skew in commands:
        for _ in range(max(0, round(pause / 0.05))):
            now += 0.05
            if subject.must_hold(now) is not None:
                mode, value = Mode.POSITION, position
            step = value - position if mode is Mode.POSITION else 0.05 * value if mode is Mode.VELOCITY else 0.0
            if step:
                assert abs(step) <= 0.02 * 0.5 * (1 + 1e-9) or not 0.1 <= position <= 0.3
            position += min(max(step, -0.02 * 0.05), 0.02 * 0.05) if mode is Mode.POSITION else step
        number = number / 100.0 if asked is not Mode.EFFORT else number
        verdict = send(
            subject, {"draw_1": number}, asked, source=source, stamp=now + skew, now=now, positions={"draw_1": position}
        )
        mode, value = verdict.set_points.get("draw_1", (mode, value))
        assert min(start, 0.1) - 1e-9 <= position <= max(start, 0.3) + 1e-9
