"""What a servo accelerates is no tension: its current, its motion and its command say together what a tendon takes."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from soft_winch import FRICTION_N, MOTOR, SPOOL, STALL, STIFFNESS, TOP, Winch
from spool_bench import PERIOD

from tensegrity_driver.emulator.motor_model import FRICTION, Shaft, soft_turn
from tensegrity_driver.safety.faults import FaultKind
from tensegrity_driver.safety.monitors import tendon_monitors
from tensegrity_driver.safety.monitors.carried_force import CarriedForce
from tensegrity_driver.safety.settings import SafetySettings
from tensegrity_driver.servos.motors import INERTIA, LOOP_S
from tensegrity_driver.spools.readings import CommandState, Readings, ServoReading


@given(
    torque=st.floats(-2.0, 2.0), load=st.floats(-1.0, 1.0), speed=st.floats(-2.0, 2.0), rate=st.floats(-3.0, 3.0),
    damping=st.floats(0.0, 0.5),
)  # fmt: skip
def test_the_torque_that_an_emulated_servo_reports_is_the_one_that_turned_it(
    torque, load, speed, rate, damping
) -> None:
    shaft = Shaft(torque / STIFFNESS, rate, STIFFNESS, damping, STALL)
    done = soft_turn(shaft, speed, load, STALL, TOP, 0.0, LOOP_S)
    driven = INERTIA * (done.speed - speed) / LOOP_S
    if abs(done.torque) < 0.5 * STALL and done.torque * speed <= 0.0:  # neither its current nor its speed limits it
        assert abs(done.torque + load - driven) <= FRICTION * STALL + 1e-9


@settings(max_examples=15)
@given(
    force=st.floats(0.0, 40.0), speed=st.floats(0.02, 0.08), cycles=st.integers(8, 20), cycle=st.integers(3, 5),
    sign=st.sampled_from((-1.0, 1.0)),
)  # fmt: skip
def test_the_carried_force_is_that_of_the_tendon_however_the_servo_is_accelerated(
    force, speed, cycles, cycle, sign
) -> None:
    winch, carried = Winch(force), CarriedForce(SPOOL, cycle)
    worst = plain = 0.0
    for k in range(3 * cycles):
        rate = sign * speed * max(0.0, math.sin(math.pi * min(k, 2 * cycles) / (2 * cycles)))
        winch.cycle(rate if k < cycles else 0.5 * rate)
        carried.update(SPOOL.observe(winch.reading()), winch.sent, PERIOD)
        if k > cycle:
            worst = max(worst, abs(carried.mean - force))
            plain = max(plain, abs(SPOOL.pull(winch.reading()) - force))
    assert worst < FRICTION_N + 0.15 * plain + 0.5


def found(force_after: float, speed: float, brake: int, at: int, inertia: float = INERTIA) -> list[int]:
    """Cycles of the fault "snapped" of a tendon that is wound in, braked, and carries another force from a cycle on."""
    watched = replace(SPOOL, inertia=inertia)
    winch, monitors = Winch(16.0), tendon_monitors(watched, SafetySettings(period=PERIOD), (FaultKind.SNAPPED,))
    cycles = []
    for k in range(40):
        if k == at:
            winch.force = force_after
        pace = min(1.0, k / 10.0) if k < 20 else max(0.0, 1.0 - (k - 20) / brake)
        winch.cycle(speed * pace)
        readings = Readings({"draw_1": watched.observe(winch.reading())}, period=PERIOD)
        assert winch.sent is not None
        for monitor in monitors:
            if monitor.update(k, readings, {"draw_1": winch.sent}) is not None:
                cycles.append(k)
    return cycles


@pytest.mark.parametrize("speed", [0.06, 0.12])
@pytest.mark.parametrize("brake", [2, 4, 8])
def test_a_hard_brake_of_a_tight_tendon_is_no_fault_though_the_current_falls_to_nothing(brake, speed) -> None:
    assert not found(16.0, speed, brake, 99)


def test_the_current_alone_would_say_that_it_has_snapped() -> None:
    assert found(16.0, 0.12, 2, 99, inertia=0.0)


@pytest.mark.parametrize("speed", [0.06, 0.08, 0.12])
@pytest.mark.parametrize("at", [12, 18, 21, 24, 30])
def test_a_tendon_that_snaps_in_a_quick_motion_is_found_as_soon_as_by_its_current_alone(at: int, speed: float) -> None:
    new = found(0.0, speed, 4, at)
    old = [each for each in found(0.0, speed, 4, at, inertia=0.0) if each >= at]
    assert bool(new) == bool(old)  # in the middle of a brake neither finds it
    assert not new or at < new[0] <= old[0]


@pytest.mark.parametrize("radius", [0.01, 0.025])
@pytest.mark.parametrize("late", ["cycles", "commands", ""])
@pytest.mark.parametrize("gone", [4, 12, 20, 99])
def test_a_whole_tendon_that_a_late_computer_slackened_carries_again_and_only_one_that_never_does_has_snapped(
    radius, late, gone
) -> None:
    watched, limits = replace(SPOOL, radius=radius, inertia=0.0), SafetySettings(period=PERIOD)
    assert MOTOR.torque_constant is not None
    monitors, first = tendon_monitors(watched, limits, (FaultKind.SNAPPED,)), None
    for k in range(80):
        force = 0.0 if 20 <= k < 20 + gone else 30.0
        was_late = 15 <= k < 25
        period = 2.0 * PERIOD if was_late and late == "cycles" else PERIOD
        age = 5.0 * PERIOD if was_late and late == "commands" else 0.5 * PERIOD
        raw = ServoReading("draw_1", 0.0, 0.0, current=force * radius / MOTOR.torque_constant)
        readings = Readings({"draw_1": watched.observe(raw)}, period=period, command=CommandState("c", age))
        if any(monitor.update(k, readings, {}) is not None for monitor in monitors) and first is None:
            first = k
    within = limits.window if late else limits.snap_cycles
    assert first == (19 + within if gone >= within else None)
