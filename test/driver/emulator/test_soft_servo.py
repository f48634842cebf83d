"""A servo whose gains were changed yields as they say, within current, speed and friction of its motor."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensegrity_driver.emulator.motor_model import FRICTION, INERTIA, Shaft, soft_turn

STALL, TOP = 4.1, 4.8
STEP = 0.005


def run(shaft, load: float, seconds: float, stiffness: float = 0.0, step: float = STEP):
    """Angle, and the turns on the way, of a shaft with a steady goal at `shaft.error` from its start."""
    angle = speed = 0.0
    turns = []
    for _ in range(round(seconds / step)):
        now = Shaft(shaft.error - angle, 0.0, shaft.stiffness, shaft.damping, shaft.ceiling)
        done = soft_turn(now, speed, load - stiffness * angle, STALL, TOP, stiffness, step)
        angle, speed = angle + done.speed * step, done.speed
        turns.append(done)
    return angle, turns


@given(load=st.floats(-1.5, 1.5), stiffness=st.floats(5.0, 200.0), damping=st.floats(0.2, 1.0))
def test_it_rests_where_its_spring_carries_the_load(load: float, stiffness: float, damping: float) -> None:
    angle, turns = run(Shaft(0.0, 0.0, stiffness, damping, STALL), load, 2.0)  # ten of its slowest time constants
    assert angle == pytest.approx(load / stiffness, abs=1.01 * FRICTION * STALL / stiffness + 1e-3 * abs(load))
    assert abs(turns[-1].speed) < 1e-3


@given(
    load=st.floats(-6.0, 6.0), error=st.floats(-3.0, 3.0), stiffness=st.floats(0.1, 400.0),
    damping=st.floats(0.0, 3.0), ceiling=st.floats(0.0, 4.1),
)  # fmt: skip
def test_it_never_gives_more_than_its_current_and_its_speed_allow(load, error, stiffness, damping, ceiling) -> None:
    _, turns = run(Shaft(error, 0.0, stiffness, damping, ceiling), load, 0.3)
    for turn in turns:
        assert abs(turn.torque) <= ceiling + 1e-12
        if turn.torque * turn.speed > 0.0:  # what it drives by itself, it drives below the line of its motor
            drawn = STALL * (1.0 - abs(turn.speed) / TOP)
            assert abs(turn.torque) <= max(drawn, 0.0) + STALL * abs(turn.torque) * STEP / (INERTIA * TOP) + 1e-9


def test_without_stiffness_of_its_own_a_small_load_does_not_overcome_its_friction() -> None:
    angle, _ = run(Shaft(0.0, 0.0, 0.1, 0.0, STALL), 0.9 * FRICTION * STALL, 1.0)
    assert angle == 0.0


def test_its_period_does_not_depend_on_the_step_of_the_world() -> None:
    ends = [run(Shaft(0.5, 0.0, 10.0, 0.5, STALL), 0.3, 0.2, 12.0, step)[0] for step in (0.001, 0.005)]
    assert ends[0] == pytest.approx(ends[1], rel=2e-2)
