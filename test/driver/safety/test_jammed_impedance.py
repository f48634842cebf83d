"""A spool with an impedance that is caught in motion: its servo should move, by its command, and does not."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spool_bench import PERIOD, spool

from tensegrity_driver.emulator.motor_model import Shaft, soft_turn
from tensegrity_driver.safety.faults import FaultKind
from tensegrity_driver.safety.monitors import tendon_monitors
from tensegrity_driver.safety.safety_layer import limit_command
from tensegrity_driver.safety.settings import SafetySettings
from tensegrity_driver.servos.motors import INERTIA, LOOP_S, MOTORS
from tensegrity_driver.spools.readings import Drive, DriveCommand, Readings, ServoReading
from tensegrity_dynamics.impedance import ImpedanceSetPoint

MOTOR, R = MOTORS["XM430-W350"], 0.025
STALL, TOP = MOTOR.stall_torque, MOTOR.top_speed
CEILING, RATE, START = 100.0, 0.15, 0.21
BARE = spool(encoder=True)
SPOOL = replace(
    BARE, actuator=replace(BARE.actuator, effort=CEILING, rate=RATE), radius=R, stall_torque=STALL, top_speed=TOP,
    torque_constant=MOTOR.torque_constant, inertia=INERTIA,
    encoder=replace(BARE.encoder, slope=-R),  # type: ignore[type-var]
)  # fmt: skip
SETTINGS = SafetySettings(period=PERIOD)
STIFFNESS, DAMPING = 18_000.0, 100.0  # N/m and N s/m


def found(rate: float, load: float, feed: float, jammed_at: int, cycles: int) -> tuple[int | None, int | None]:
    """Cycle of the fault, and the first at which the servo should have given more than its ceiling over 2 mm.

    Args:
        rate: of the set point [m/s]. load: pull of the tendon [N]. feed: that the command reckons with [N].
    """
    monitor = tendon_monitors(SPOOL, SETTINGS, (FaultKind.STUCK,))[0]
    angle = speed = torque = 0.0
    goal, due, sent = START, None, None
    track = 0.0
    for cycle in range(cycles):
        constant = MOTOR.torque_constant
        assert constant is not None
        tendon = SPOOL.observe(ServoReading("draw_1", angle, speed, current=torque / constant))
        readings = Readings({"draw_1": tendon}, period=PERIOD)
        if monitor.update(cycle, readings, {} if sent is None else {"draw_1": sent}) is not None:
            return cycle, due
        goal += rate * PERIOD
        soft = ImpedanceSetPoint(goal, rate, -feed, STIFFNESS, DAMPING)
        asked = DriveCommand(Drive.POSITION, goal, 1.25 * abs(rate), CEILING, goal, soft)
        force = STIFFNESS * (tendon.length - goal) + feed
        if due is None and cycle >= jammed_at and abs(force) > CEILING + STIFFNESS * SETTINGS.stuck_distance:
            due = cycle
        sent = limit_command(asked, SPOOL, tendon, SETTINGS.lag * PERIOD, PERIOD)
        assert sent is not None
        desired = (START - sent.value) / R + feed / (STIFFNESS * R)
        for _ in range(round(PERIOD / LOOP_S)):
            begin, most = track, 1.25 * abs(rate) / R * LOOP_S
            track += min(max(desired - begin, -most), most)
            shaft = Shaft(
                begin - angle, (track - begin) / LOOP_S, STIFFNESS * R**2, DAMPING * R**2, min(CEILING * R, STALL)
            )
            done = soft_turn(shaft, speed, -load * R, STALL, TOP, 0.0, LOOP_S)
            speed, torque = (0.0 if cycle >= jammed_at else done.speed), done.torque
            angle += speed * LOOP_S
    return None, due


@settings(max_examples=15)
@given(
    rate=st.floats(0.02, 0.12), sign=st.sampled_from((-1.0, 1.0)), load=st.floats(5.0, 40.0), at=st.integers(8, 20),
    wrong=st.floats(-5.0, 5.0),
)  # fmt: skip
def test_a_spool_that_is_caught_in_motion_is_stuck_whatever_its_ceiling_leaves_of_the_command(
    rate, sign, load, at, wrong
) -> None:
    cycle, due = found(sign * rate, load, load + wrong, at, at + 60)
    assert cycle is not None and due is not None
    bound = SETTINGS.lag + math.ceil(SETTINGS.stuck_distance / (rate * PERIOD)) + 1
    assert cycle - due <= bound


@settings(max_examples=15)
@given(
    rate=st.floats(0.02, 0.12), sign=st.sampled_from((-1.0, 1.0)), load=st.floats(5.0, 60.0), wrong=st.floats(-5.0, 5.0)
)
def test_a_spool_that_obeys_is_not_stuck_in_quick_motions(rate, sign, load, wrong) -> None:
    assert found(sign * rate, load, load + wrong, 10**6, 40) == (None, None)


@pytest.mark.parametrize("load", [10.0, 50.0, 95.0])
def test_a_load_that_the_servo_can_carry_may_stand_wherever_its_stiffness_lets_it(load: float) -> None:
    soft = ImpedanceSetPoint(START, 0.0, 0.0, 2000.0, DAMPING)
    held = DriveCommand(Drive.POSITION, START, RATE, CEILING, START, soft)
    monitor = tendon_monitors(SPOOL, SETTINGS, (FaultKind.STUCK,))[0]
    tendon = SPOOL.observe(ServoReading("draw_1", -load / (2000.0 * R), 0.0))
    for cycle in range(100):
        assert monitor.update(cycle, Readings({"draw_1": tendon}, period=PERIOD), {"draw_1": held}) is None
