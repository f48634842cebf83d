"""Impedance at the actuators: its numbers, the gate's ceilings, and what a simulated joint makes of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensegrity_dynamics import Simulation, load_robot, parse_robot
from tensegrity_dynamics.command_gate import CommandGate, Mode
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.impedance import (
    EXTRAPOLATED_PERIODS,
    ImpedanceSetPoint,
    MovingPosition,
    impedance_set_points,
    lead_of,
    travelled,
)
from tensegrity_dynamics.robots.actuator import Actuator

WHEEL = """
kind: mechanism
name: wheel
gravity: [0, 0, 0]
bodies: {wheel: {shapes: [{kind: point, mass: 2, frame: {at: [0.5, 0, 0]}}]}}
joints: [{name: axle, kind: revolute, parent: world, body: wheel, axis: [0, 0, 1]}]
actuators: [{drives: axle, position: [-20, 20], rate: 10, effort: 50}]
outputs: [{name: rim, body: wheel, frame: {at: [0.5, 0, 0]}, controlled: [x, y]}]
"""
INERTIA = 0.5  # kg m^2 about the axle
HINGE = Actuator("hinge", "hinge", (-1.0, 1.0), 2.0, 10.0, motion="revolute")


def wheel(integrator: str, step: float = 1e-3) -> Simulation:
    return Simulation(parse_robot(WHEEL), step, integrator, start="file")


def send(set_point: ImpedanceSetPoint, mode: Mode = Mode.IMPEDANCE, **options):
    return CommandGate([HINGE], **options).check(["hinge"], [set_point], mode, source="a", stamp=0.0, now=0.0)


@pytest.mark.parametrize("field", ["position", "velocity", "effort", "stiffness", "damping"])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_set_point_that_is_not_finite_is_refused_by_its_field(field, value):
    with pytest.raises(TensegrityError, match=field):
        ImpedanceSetPoint(**{"position": 0.0, field: value})


@pytest.mark.parametrize("field", ["stiffness", "damping"])
def test_gains_below_zero_are_refused(field):
    with pytest.raises(TensegrityError, match="below zero"):
        ImpedanceSetPoint(0.0, **{field: -1e-3})


def test_columns_of_another_length_than_the_names_are_refused_by_field():
    columns = {field: [0.0] for field in ("position", "velocity", "effort", "stiffness")} | {"damping": []}
    with pytest.raises(TensegrityError, match="0 of damping for 1 names"):
        impedance_set_points(["hinge"], columns)


@given(age=st.floats(0.0, 10.0), more=st.floats(0.0, 1.0), lead=st.floats(1e-3, 1.0))
def test_a_set_point_moves_on_evenly_then_brakes_and_never_turns_back(age, more, lead):
    first, second = travelled(age, lead), travelled(age + more, lead)
    assert 0.0 <= second - first <= more * (1.0 + 1e-9) + 1e-12
    assert first == pytest.approx(age) if age <= lead else lead <= first <= 2.0 * lead + 1e-12
    if age >= 3.0 * lead:
        assert second == pytest.approx(2.0 * lead)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("stiffness", 1e9, "ceiling"),
        ("damping", 1e9, "ceiling"),
        ("position", 2.0, "limit"),
        ("effort", 11.0, "ceiling"),
    ],
)
def test_the_gate_refuses_what_the_actuator_cannot_do_and_names_it(field, value, words):
    verdict = send(ImpedanceSetPoint(**{"position": 0.0, field: value}))
    assert not verdict.set_points and words in str(verdict.refusals[0]) and "hinge" in str(verdict.refusals[0])


def test_the_gate_limits_rates_and_lets_the_rest_pass():
    asked = ImpedanceSetPoint(0.5, 5.0, 1.0, 20.0, 2.0)
    mode, passed = send(asked).set_points["hinge"]
    assert (mode, passed) == (Mode.IMPEDANCE, ImpedanceSetPoint(0.5, 2.0, 1.0, 20.0, 2.0))


def test_the_gate_refuses_numbers_for_an_impedance_and_an_impedance_for_a_number():
    assert not send(0.1).accepted
    verdict = send(ImpedanceSetPoint(0.1), Mode.EFFORT)
    assert not verdict.accepted and "effort" in str(verdict.refusals[0])


def test_an_actuator_without_impedance_is_refused_by_name():
    verdict = send(ImpedanceSetPoint(0.0), without_impedance={"hinge": "its servo has no current loop"})
    assert not verdict.set_points and "hinge: its servo has no current loop" in str(verdict.refusals[0])


@given(periods=st.floats(0.0, 10.0), period=st.floats(1e-3, 0.03))
def test_efforts_older_than_three_periods_are_refused_and_impedances_are_not(periods, period):
    for mode, value in ((Mode.EFFORT, 1.0), (Mode.IMPEDANCE, ImpedanceSetPoint(0.0))):
        verdict = CommandGate([HINGE]).check(
            ["hinge"], [value], mode, source="a", stamp=0.0, now=periods * period, period=period
        )
        if abs(periods - 3.0) > 1e-3:
            assert verdict.accepted == (mode is Mode.IMPEDANCE or periods < 3.0)


@pytest.mark.parametrize(("integrator", "end"), [("rk4", 0.4), ("implicit", 0.4), ("adaptive", 0.1)])
def test_a_wheel_on_an_impedance_swings_like_a_damped_oscillator(integrator, end):
    stiffness, damping = 20.0, 1.0
    simulation = wheel(integrator)
    simulation.command("impedance", {"axle": ImpedanceSetPoint(0.1, 0.0, 0.0, stiffness, damping)})
    simulation.advance(duration=0.0)
    simulation.set_state([-0.2])
    simulation.simulator.drives.set_point[:] = 0.1  # as after it has caught up
    simulation.advance(duration=end)
    decay, rate = damping / (2.0 * INERTIA), math.sqrt(stiffness / INERTIA - (damping / (2.0 * INERTIA)) ** 2)
    wave = math.cos(rate * end) + decay / rate * math.sin(rate * end)
    assert simulation.state.q[0] == pytest.approx(0.1 - 0.3 * math.exp(-decay * end) * wave, abs=3e-3)


@pytest.mark.parametrize("integrator", ["rk4", "implicit"])
@pytest.mark.parametrize("gains", [(1e5, 1.0), (1e5, 5e3), (0.0, 1e4), (1e6, 0.0)])
def test_no_gain_makes_a_step_unstable(integrator, gains):
    simulation = wheel(integrator)
    simulation.set_state([0.01], [0.5])
    simulation.command("impedance", {"axle": ImpedanceSetPoint(0.01, 0.0, 0.0, *gains)})
    before = 0.5 * INERTIA * 0.25 + 1e-9
    for _ in range(50):
        simulation.advance(10)
        assert 0.5 * INERTIA * simulation.state.v[0] ** 2 < 4.0 * before


def test_efforts_keep_their_limit_and_the_feed_forward_acts_alone_without_gains():
    simulation = wheel("implicit")
    simulation.command("impedance", {"axle": ImpedanceSetPoint(0.0, 0.0, 200.0)})
    simulation.advance(duration=0.01)
    assert simulation.observe().efforts["axle"] == pytest.approx(50.0)
    assert simulation.state.v[0] == pytest.approx(0.01 * 50.0 / INERTIA, rel=1e-6)


def test_when_commands_stop_the_joint_stays_where_the_stated_time_has_led_it():
    simulation = wheel("rk4")
    set_point = ImpedanceSetPoint(0.0, 1.0, 0.0, 500.0, 30.0)
    simulation.command("impedance", {"axle": set_point}, period=0.01)
    simulation.advance(duration=2.0)
    assert simulation.state.q[0] == pytest.approx(2.0 * EXTRAPOLATED_PERIODS * 0.01, abs=1e-4)
    assert abs(simulation.state.v[0]) < 1e-4


@pytest.mark.parametrize("late", [0.01, 0.03])
def test_a_late_command_leads_where_one_in_time_leads(late):
    ends = []
    for age in (0.0, late):
        simulation = wheel("rk4")
        for k in range(100):
            at = 0.01 * k - age  # the sender's time
            asked = ImpedanceSetPoint(0.3 * max(at, 0.0), 0.3 if at >= 0.0 else 0.0, 0.0, 500.0, 30.0)
            simulation.command("impedance", {"axle": asked}, age=age, period=0.01)
            simulation.advance(duration=0.01)
        ends.append(simulation.state.q[0])
    assert ends[1] == pytest.approx(ends[0], abs=2e-4)


def test_catching_up_after_a_gap_is_limited_in_rate():
    simulation = wheel("rk4")
    simulation.command("impedance", {"axle": ImpedanceSetPoint(0.0, 0.0, 0.0, 500.0, 60.0)})
    simulation.advance(duration=0.1)
    simulation.command("impedance", {"axle": ImpedanceSetPoint(0.5, 0.0, 0.0, 500.0, 60.0)})
    fastest = 0.0
    for _ in range(100):
        simulation.advance(duration=0.01)
        fastest = max(fastest, simulation.state.v[0])
    assert fastest < 1.1 * 0.1 * 10.0  # a tenth of the actuator's rate
    assert simulation.state.q[0] == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize("stiffness", [500.0, 1e-6])
def test_a_held_impedance_stays_where_it_is_however_soft_it_was(stiffness):
    simulation = wheel("implicit")
    simulation.command("impedance", {"axle": ImpedanceSetPoint(0.0, 0.0, 5.0, stiffness, 5.0)})
    simulation.advance(duration=0.02)
    simulation.hold()
    where = simulation.state.q[0]
    simulation.advance(duration=2.0)
    assert simulation.state.q[0] == pytest.approx(where, abs=0.02)
    assert abs(simulation.state.v[0]) < 1e-3


def test_a_spool_of_a_structure_refuses_an_impedance_by_name():
    simulation = Simulation(load_robot("three_prism"))
    name = simulation.robot.actuators[0].name
    with pytest.raises(TensegrityError, match=name):
        simulation.command("impedance", {name: ImpedanceSetPoint(0.2)})
    assert name in simulation.without_impedance


def test_a_command_that_is_no_set_point_is_refused():
    with pytest.raises(TensegrityError, match="ImpedanceSetPoint"):
        wheel("rk4").command("impedance", {"axle": 0.1})
    with pytest.raises(TensegrityError, match="age"):
        wheel("rk4").command("impedance", {"axle": ImpedanceSetPoint(0.0)}, age=np.nan)


@pytest.mark.parametrize("rate", [1.0, -0.4])
def test_a_position_with_a_rate_moves_on_by_itself_then_stays(rate):
    simulation = wheel("rk4")
    simulation.command("position", {"axle": MovingPosition(0.0, rate)}, period=0.01)
    simulation.advance(duration=0.05)
    assert simulation.state.v[0] == pytest.approx(rate, rel=2e-2)
    simulation.advance(duration=1.0)
    assert simulation.state.q[0] == pytest.approx(2.0 * rate * lead_of(0.01), abs=1e-4)
    there = float(simulation.state.q[0])
    simulation.command("position", {"axle": there + 1e-3})  # a plain one is a step, as ever
    simulation.advance(duration=0.3)
    assert simulation.state.q[0] == pytest.approx(there + 1e-3, abs=1e-4)


def test_a_late_position_makes_no_jump():
    """0.3 rad/s, every second command missing and the others up to three periods late: the joint keeps its rate."""
    simulation, random, worst = wheel("rk4"), np.random.default_rng(1), 0.0
    for k in range(100):
        if k % 2 == 0:
            at = max(0, k - int(random.integers(0, 4)))
            asked = MovingPosition(0.003 * at, 0.3)
            simulation.command("position", {"axle": asked}, age=0.01 * (k - at), period=0.01)
        simulation.advance(duration=0.01)
        worst = max(worst, abs(simulation.state.v[0] - 0.3)) if k > 20 else worst  # it started with a jerk
    assert worst < 3e-3
    assert simulation.state.q[0] == pytest.approx(0.3, abs=1e-3)


def test_the_gate_limits_the_rate_of_a_position_and_takes_it_from_one_at_a_limit():
    def passed(position: float, rate: float, **options) -> MovingPosition:
        return send(MovingPosition(position, rate), Mode.POSITION, **options).set_points["hinge"][1]

    assert (passed(0.5, 1.0), passed(0.5, 1.0).rate) == (0.5, 1.0)
    assert passed(0.5, -9.0).rate == -2.0
    assert (passed(3.0, 1.0, limits="clip"), passed(3.0, 1.0, limits="clip").rate) == (1.0, 0.0)
    with pytest.raises(TensegrityError, match="rate"):
        MovingPosition(0.0, math.nan)


@pytest.mark.parametrize("period", [0.0, 0.001, 0.005, 0.01, 0.02])
def test_set_points_move_on_for_six_periods_and_never_for_less_than_a_computer_is_away(period):
    assert lead_of(period) == pytest.approx(max(EXTRAPOLATED_PERIODS * period, 0.06))


@given(period=st.floats(0.001, 0.05), parts=st.floats(0.0, 5.0), after=st.floats(0.0, 1.0))
def test_a_late_command_leads_on_from_its_arrival_and_an_old_one_no_farther_than_it_would_have_gone(
    period, parts, after
):
    lead = lead_of(period)
    age, much = parts * lead, 1e-6 * lead
    reached = travelled(age + after, lead_of(period, age))
    if parts <= 1.0:
        assert lead_of(period, age) == pytest.approx(age + lead)
    if parts >= 2.0:
        assert reached == pytest.approx(travelled(age + after, lead))
    assert travelled(age + after, lead) - 1e-12 <= reached <= 4.0 * lead
    assert lead_of(period, age + much) == pytest.approx(lead_of(period, age), abs=1.01 * much)  # without a jump
