"""A servo needs its lag to begin a motion, however much of it one long cycle commands: only then is it stuck."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from spool_bench import PERIOD, spool

from tensegrity_driver.safety.faults import FaultKind
from tensegrity_driver.safety.monitors import tendon_monitors
from tensegrity_driver.safety.settings import SafetySettings
from tensegrity_driver.spools.readings import Drive, DriveCommand, Readings, ServoReading

SPOOL = spool(encoder=True)
SETTINGS = SafetySettings(period=PERIOD)
RATE = SPOOL.actuator.rate


@settings(max_examples=60)
@given(cycles=st.lists(st.floats(0.25, 6.0), min_size=20, max_size=40), share=st.floats(0.2, 1.0))
def test_a_spool_is_stuck_when_what_was_commanded_before_its_lag_was_not_moved_and_never_before(cycles, share) -> None:
    monitor = tendon_monitors(SPOOL, SETTINGS, (FaultKind.STUCK,))[0]
    tendon = SPOOL.observe(ServoReading(SPOOL.name, 0.0, 0.0))
    command = DriveCommand(Drive.POSITION, tendon.length + 1.0, share * RATE, 100.0, tendon.length + 1.0)
    periods = [each * PERIOD for each in cycles]
    for cycle, period in enumerate(periods):
        fault = monitor.update(cycle, Readings({SPOOL.name: tendon}, period=period), {SPOOL.name: command})
        begun = periods[: cycle + 1]
        while begun and not (
            cycle + 1 - len(begun) >= SETTINGS.lag
            and sum(periods[len(begun) : cycle + 1]) >= (SETTINGS.lag - 0.5) * PERIOD
        ):
            begun.pop()
        due = share * RATE * sum(begun) - SETTINGS.stuck_distance
        if abs(due) > 1e-9:
            assert (fault is not None) == (due > 0.0)
        if fault is not None:
            return
