"""Own set points of servos: counted from commands, corrected by what was measured."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from soft_winch import DAMPING, MIDDLE, SPOOL, STIFFNESS, R, Winch
from spool_bench import PERIOD

from tensegrity_driver.servos.motors import LOOP_S
from tensegrity_driver.spools.own_set_point import OwnSetPoint
from tensegrity_driver.spools.position_loop import PositionLoop
from tensegrity_dynamics.impedance import ImpedanceSetPoint

SOFT = {"stiffness": STIFFNESS / R**2, "damping": DAMPING / R**2}


@settings(max_examples=25)
@given(
    force=st.floats(2.0, 60.0), rates=st.lists(st.floats(-0.08, 0.08), min_size=4, max_size=8),
    cycles=st.integers(1, 12),
)  # fmt: skip
def test_a_measurement_never_corrects_a_count_that_is_right(force, rates, cycles) -> None:
    winch, own = Winch(force), OwnSetPoint()
    own.restart(MIDDLE - R * winch.track)
    for rate in [0.0] + [each for each in rates for _ in range(cycles)]:
        winch.cycle(rate)
        assert winch.sent is not None
        own.advance(winch.sent, PERIOD)
        counted = own.at
        own.correct(SPOOL, winch.sent, SPOOL.observe(winch.reading()), PERIOD)
        assert own.at == counted
        assert abs(own.at - MIDDLE + R * winch.track) <= 2.0 * LOOP_S * winch.sent.rate + 1e-9


@settings(max_examples=25)
@given(
    force=st.floats(2.0, 40.0), rate=st.floats(0.005, 0.014), sign=st.sampled_from((-1.0, 1.0)),
    missed=st.integers(5, 15),
)  # fmt: skip
def test_a_servo_that_missed_commands_makes_up_for_them(force, rate, sign, missed) -> None:
    winch, goal = Winch(force), MIDDLE
    loop, sent = PositionLoop(SPOOL, PERIOD), None
    loop.take_over(MIDDLE)
    for cycle in range(100):
        speed = sign * rate if cycle < 10 + missed else 0.0  # of the goal [m/s], which then stands
        goal += speed * PERIOD
        tendon = SPOOL.observe(winch.reading())
        impedance = ImpedanceSetPoint(goal, speed, -force, **SOFT)
        sent = loop.update(goal, tendon.length, PERIOD, sent, speed, None, impedance, tendon)
        if not 10 <= cycle < 10 + missed:  # it stands meanwhile
            winch.turn(sent)
    assert abs(MIDDLE - R * winch.angle - goal) < 2e-4
