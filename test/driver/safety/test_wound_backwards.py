"""A servo that is pulled inwards while it winds in has its tendon on the other side of its spool."""

from __future__ import annotations

import math

from hypothesis import example, given, settings
from hypothesis import strategies as st
from spool_bench import PERIOD, RADIUS, STALL, spool

from tensegrity_driver.safety.faults import FaultKind
from tensegrity_driver.safety.monitors import tendon_monitors
from tensegrity_driver.safety.settings import SafetySettings
from tensegrity_driver.spools.readings import Drive, DriveCommand, Readings, ServoReading
from tensegrity_dynamics.impedance import ImpedanceSetPoint

SPOOL = spool(encoder=True)
RATE = SPOOL.actuator.rate
MASS = 80.0  # kg: rotor, gear and drum at the spool
WRONG_PULL = 0.25 * SPOOL.actuator.effort


def found(
    speeds: list[float],
    tension: float,
    friction: float,
    side: float,
    soft: ImpedanceSetPoint | None = None,
    pushed: float = 0.0,
) -> list[int]:
    """Cycles of `wound_backwards`, at speeds of winding in [m/s] and a tension [N].

    The servo pulls against tendon, friction and inertia; side is -1 where the tendon leaves the spool on the other one.
    At rest it pushes outwards with `pushed` [N] more, which friction resists.
    """
    monitors = tendon_monitors(SPOOL, SafetySettings(period=PERIOD), (FaultKind.WOUND_BACKWARDS,))
    length, before, cycles = 0.21, 0.0, []
    for k, speed in enumerate(speeds):
        length -= speed * PERIOD
        dry = friction * (speed > 0.0) - friction * (speed < 0.0) - pushed * (speed == 0.0)
        pull = side * tension + dry + MASS * (speed - before) / PERIOD
        before = speed
        raw = ServoReading("draw_1", position=(0.21 - length) / RADIUS, load=min(max(pull * RADIUS / STALL, -1.0), 1.0))
        readings = Readings({"draw_1": SPOOL.observe(raw)}, period=PERIOD)
        sent = {"draw_1": DriveCommand(Drive.POSITION, length, RATE, SPOOL.actuator.effort, impedance=soft)}
        if any(each.update(k, readings, sent) is not None for each in monitors):
            cycles.append(k)
    return cycles


@settings(max_examples=40)
@given(
    amplitude=st.floats(0.1, 1.0),
    cycles=st.integers(10, 60),
    tight=st.floats(0.0, 150.0),
    friction=st.floats(0.0, 40.0),
)
def test_a_tendon_that_is_wound_on_as_configured_is_never_called_backwards(amplitude, cycles, tight, friction) -> None:
    speeds = [amplitude * RATE * math.sin(2.0 * math.pi * k / cycles) for k in range(3 * cycles)]
    assert not found([*speeds, 0.0, 0.0, RATE, RATE, 0.0], tight, friction, 1.0)


@settings(max_examples=40)
@given(share=st.floats(0.1, 1.0), tight=st.floats(0.45, 0.95), rest=st.integers(1, 10))
@example(share=0.5, tight=0.45, rest=1)
def test_one_that_is_wound_on_backwards_is_found_in_two_cycles_of_winding_in_far_below_the_wrong_pull(
    share, tight, rest
) -> None:
    speeds = [0.0] * rest + [share * RATE] * 3
    cycles = found(speeds, tight * WRONG_PULL, 0.1 * tight * WRONG_PULL, -1.0)
    assert cycles and cycles[0] <= rest + 2


def test_a_servo_that_brakes_a_heavy_drum_is_not_pulled_inwards() -> None:
    fast = [min(k, 5) * 0.2 * RATE for k in range(10)]
    braked = [(5 - k) * 0.2 * RATE for k in range(1, 6)]
    assert 0.2 * WRONG_PULL < MASS * 0.2 * RATE / PERIOD < WRONG_PULL
    assert not found(fast + braked, 0.0, 0.0, 1.0)


WOUND_IN = [0.02 * RATE * k for k in range(6)] + [0.1 * RATE] * 4
"""Speeds [m/s] of a motion inwards that ends at a steady speed."""


@settings(max_examples=20)
@given(share=st.floats(0.51, 0.95), friction=st.floats(0.0, 0.5), softness=st.floats(1.0, 1e4))
def test_one_that_is_wound_on_backwards_is_found_at_rest_with_an_impedance_as_well(share, friction, softness) -> None:
    window = SafetySettings(period=PERIOD).window
    soft = ImpedanceSetPoint(0.21, stiffness=softness)
    tight = share * WRONG_PULL
    for motion in ([], WOUND_IN):
        (first, *_) = found(motion + [0.0] * (window + 10), tight, friction * tight, -1.0, soft)
        assert window <= first + 1 - len(motion) <= window + 2
    short = WOUND_IN + [0.0] * (window - 1) + [-RATE] + [0.0] * (window - 1)
    assert not found(short, tight, friction * tight, -1.0, soft)


@settings(max_examples=60)
@given(
    friction=st.floats(0.0, 0.95),
    tight=st.floats(0.0, 0.3),
    softness=st.none() | st.floats(1.0, 1e4),
    wound=st.booleans(),
)
@example(friction=0.9, tight=0.0, softness=None, wound=True)
@example(friction=0.9, tight=0.0, softness=None, wound=False)
def test_a_push_outwards_at_rest_that_the_friction_of_a_gear_holds_is_no_fault(friction, tight, softness, wound):
    soft = None if softness is None else ImpedanceSetPoint(0.21, stiffness=softness)
    dry, tension = friction * WRONG_PULL, tight * WRONG_PULL
    motion = (WOUND_IN if wound else []) + [-each for each in WOUND_IN[:6]]
    assert not found(motion + [0.0] * 100, tension, dry, 1.0, soft, pushed=max(dry, tension))
