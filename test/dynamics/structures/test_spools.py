"""Spools alone: what they do in each mode, and that no limit is ever exceeded."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensegrity_dynamics import make_structure
from tensegrity_dynamics.robots.robot import Actuator
from tensegrity_dynamics.simulation_interface import EFFORT, POSITION, VELOCITY
from tensegrity_dynamics.structures.dynamics.spools import TENSION_TIME, make_spools, set_speeds, wind, winding_power

STEP = 1e-3


def one_spool(rate=0.1, effort=30.0):
    structure = make_structure(
        {"a": (0, 0, 0), "b": (1, 0, 0)}, [("s", "tendon", "a", "b", 1000.0, 1.0)], fixed=["a"], node_masses={"b": 1.0}
    )
    return make_spools(structure, (Actuator("spool", "s", (0.5, 1.5), rate, effort),))


def speed(mode, target, *, rest=1.0, tension=10.0, **options):
    spools = one_spool(**options)
    spools.mode[0], spools.target[0] = mode, target
    rates = np.zeros(1)
    set_speeds(spools, np.array([rest]), np.array([tension]), STEP, rates)
    assert rates[0] == spools.speed[0]
    return spools.speed[0]


def test_a_new_spool_holds():
    assert set_speeds(one_spool(), np.array([1.0]), np.array([10.0]), STEP, np.zeros(1)) is False


@pytest.mark.parametrize(("target", "expected"), [(1.2, 0.1), (0.8, -0.1), (1.00004, 0.04), (0.99998, -0.02)])
def test_position_moves_at_the_rate_and_lands_exactly(target, expected):
    assert speed(POSITION, target) == pytest.approx(expected)


def test_velocity_is_clipped_to_the_rate():
    assert speed(VELOCITY, 0.05) == 0.05
    assert speed(VELOCITY, -7.0) == -0.1


def test_effort_winds_towards_the_tension_with_its_time_constant():
    """At fixed ends the tension changes by -k times the speed, so that the error decays with TENSION_TIME."""
    error = 2.0
    assert -1000.0 * speed(EFFORT, 10.0 + error) == pytest.approx(error / TENSION_TIME)
    assert speed(EFFORT, 1000.0) == -0.1


@pytest.mark.parametrize("mode", [POSITION, VELOCITY, EFFORT])
def test_a_spool_stalls_winding_in_above_its_effort_but_may_pay_out(mode):
    inwards, outwards = {POSITION: (0.6, 1.4), VELOCITY: (-0.1, 0.1), EFFORT: (1e3, 0.0)}[mode]
    assert speed(mode, inwards, tension=30.1) == 0.0
    assert speed(mode, outwards, tension=30.1) > 0.0


def test_a_spool_outside_its_limits_may_come_back_but_not_go_on():
    assert speed(VELOCITY, -0.1, rest=0.4) == 0.0
    assert speed(VELOCITY, 0.1, rest=0.4) == 0.1
    assert speed(VELOCITY, 0.1, rest=1.6) == 0.0
    assert speed(VELOCITY, -0.1, rest=1.6) == -0.1


@given(st.sampled_from([POSITION, VELOCITY, EFFORT]), st.floats(-1e3, 1e3), st.floats(0.5, 1.5), st.floats(0.0, 100.0))
def test_rate_and_position_limits_hold_whatever_is_asked(mode, target, rest, tension):
    spools, lengths = one_spool(), np.array([rest])
    spools.mode[0], spools.target[0] = mode, target
    set_speeds(spools, lengths, np.array([tension]), STEP, np.zeros(1))
    assert abs(spools.speed[0]) <= 0.1
    assert not (tension > 30.0 and spools.speed[0] < 0.0)
    wind(spools, lengths, STEP)
    assert 0.5 - 1e-12 <= lengths[0] <= 1.5 + 1e-12


def test_winding_in_against_a_tension_is_power_put_in():
    spools = one_spool()
    spools.speed[0] = -0.1
    assert winding_power(spools, np.array([20.0])) == pytest.approx(2.0)
