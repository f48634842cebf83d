"""The latency of commands, measured by what the plant reports."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_control.command_latency import TIMED, CommandLatency, CommandTiming, FollowedCommands

PERIOD = 0.005


@settings(max_examples=25)
@given(st.integers(0, 6), st.integers(0, 3))
def test_what_is_measured_is_the_way_that_commands_take_and_old_states_come_on_top(delay, behind):
    latency = CommandLatency(nominal=0.1)
    assert latency.age(1.0, 1.0) == pytest.approx(0.1) and not latency.measured
    for k in range(40):
        newest = k * PERIOD
        stamp = (k - behind) * PERIOD  # the state that is answered is older than what is known of the actuators
        latency.sent(stamp, newest)
        if k >= delay:
            sent = (k - delay - behind) * PERIOD
            latency.acted(sent, newest)
            latency.acted(sent, newest)  # told twice: no news
    assert latency.measured and latency.spread == pytest.approx(0.0, abs=1e-12)
    assert latency.age(1.0, 1.0 + behind * PERIOD) == pytest.approx((delay + behind) * PERIOD)


def test_reports_of_commands_that_nobody_sent_say_nothing():
    latency = CommandLatency(nominal=0.01)
    latency.sent(0.0, 0.0)
    assert not latency.acted(0.7, 0.8) and latency.delay == 0.01
    for impossible in (-0.5, 3.0, float("nan"), float("inf")):
        assert not latency.acted(0.0, impossible) and latency.delay == 0.01
    assert latency.acted(0.0, 0.02) and latency.delay == pytest.approx(0.02)
    latency.forget()
    assert not latency.acted(0.0, 0.5) and latency.delay == pytest.approx(0.02)


def test_the_timing_of_commands_is_three_periods_uncertain_or_as_much_as_was_measured() -> None:
    timing = CommandTiming(0.02, 0.12)
    assert timing.uncertainty == pytest.approx(0.06)
    timing.sent(1.0, 0.02)
    timing.acted(1.0, 1.03)  # 10 ms late
    assert timing.uncertainty == pytest.approx(0.06)
    timing.sent(1.02, 0.02)
    timing.acted(1.02, 1.11)  # 70 ms late
    timing.acted(1.5, 9.0)  # nobody's
    assert timing.uncertainty == pytest.approx(0.09)
    for k in range(TIMED):  # a pause is no lateness: set points stand by then
        timing.sent(2.0 + 0.02 * k, 0.02)
        timing.acted(2.0 + 0.02 * k, 2.02 + 0.02 * k + 0.02 * (k > 150))
    assert timing.uncertainty == pytest.approx(0.06)  # what was long ago is forgotten
    timing.sent(900.0, 0.02)
    timing.acted(900.0, 910.0)
    assert timing.uncertainty == 0.12  # set points have braked by then


def test_motions_go_slower_while_commands_act_for_longer_than_they_were_planned_for():
    timing = CommandTiming(0.02, 0.2)

    def pass_by(times):
        for time in times:
            timing.sent(time, 0.03)
            timing.acted(time, time + 0.03)

    pass_by(0.02 * np.arange(40))
    reckoned = timing.uncertainty
    assert reckoned == pytest.approx(0.06) and timing.pace(reckoned) == 1.0
    timing.sent(0.9, 0.03)  # the command before is still acting 0.12 s after the one before that was to begin
    assert timing.pace(reckoned) == pytest.approx(0.5)  # at once, and not when the plant has told so
    timing.acted(0.9, 0.93)
    pass_by(0.9 + 0.02 * np.arange(1, 30))
    assert timing.pace(reckoned) == 1.0
    assert timing.uncertainty == pytest.approx(0.12)  # the next plan is made for it
    assert timing.pace(timing.uncertainty) == 1.0


@given(start=st.floats(0.0, 1e6), gap=st.floats(0.0, 20.0), periods=st.integers(1, 50))
def test_commands_that_nobody_follows_for_longer_than_the_patience_are_found_whoever_stood_still(start, gap, periods):
    follows = FollowedCommands(0.5)
    assert follows.away(start, 7) == 0.0  # nothing has acted yet, so nothing is known
    for k in range(periods):
        follows.acted(start + 0.01 * k)
        assert follows.away(start + 0.01 * k, 7) == 0.0
    last, now = start + 0.01 * (periods - 1), start + 0.01 * (periods - 1) + gap
    found = follows.away(now, 7)
    assert found == (pytest.approx(now - last) if now - last > 0.5 else 0.0)
    assert follows.away(now, 8) == 0.0  # a goal or `hold` opens a session, which is waited for as long again
    assert follows.away(now + 0.4, 8) == 0.0 and follows.away(now + 0.6, 8) > 0.5
    follows.acted(now + 0.7)
    assert follows.away(now + 0.7, 8) == 0.0
    assert follows.away(start - 10.0, 8) == 0.0  # the clock has gone back
    follows.forget()
    assert follows.away(now + 99.0, 8) == 0.0
