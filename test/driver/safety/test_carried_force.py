"""What a servo accelerates is no tension: its current, its motion and its command say together what a tendon takes."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spool_bench import PERIOD, spool

from tensegrity_driver.emulator.motor_model import FRICTION, Shaft, soft_turn
from tensegrity_driver.safety.faults import FaultKind
from tensegrity_driver.safety.monitors import tendon_monitors
from tensegrity_driver.safety.monitors.carried_force import CarriedForce
from tensegrity_driver.safety.settings import SafetySettings
from tensegrity_driver.servos.motors import INERTIA, LOOP_S, MOTORS
from tensegrity_driver.spools.readings import Drive, DriveCommand, Readings, ServoReading
from tensegrity_dynamics.impedance import ImpedanceSetPoint

MOTOR = MOTORS["XM430-W350"]
STALL, TOP = MOTOR.stall_torque, MOTOR.top_speed
R = 0.025
SPOOL = replace(
    spool(encoder=True), radius=R, torque_constant=MOTOR.torque_constant, stall_torque=STALL, top_speed=TOP,
    inertia=INERTIA,
)  # fmt: skip
STIFFNESS, DAMPING = 13.5, 0.073  # N m/rad and N m s/rad of the shaft
FRICTION_N = FRICTION * STALL / R


class Winch:
    """A soft servo that winds in against a force, read once a cycle."""

    def __init__(self, force: float) -> None:
        self.force, self.angle, self.speed = force, 0.0, 0.0
        self.goal = self.track = force * R / STIFFNESS
        self.sent: DriveCommand | None = None
        self.torque = force * R

    def cycle(self, rate: float, period: float = PERIOD) -> None:
        """One cycle with a set point that winds in with a rate [m/s]."""
        self.goal += rate * period / R
        profile = 1.25 * abs(rate) / R or 0.01
        impedance = ImpedanceSetPoint(-R * self.goal, 0.0, 0.0, STIFFNESS / R**2, DAMPING / R**2)
        self.sent = DriveCommand(Drive.POSITION, -R * self.goal, profile * R, 200.0, None, impedance)
        for _ in range(round(period / LOOP_S)):
            begin = self.track
            self.track += min(max(self.goal - begin, -profile * LOOP_S), profile * LOOP_S)
            shaft = Shaft(begin - self.angle, (self.track - begin) / LOOP_S, STIFFNESS, DAMPING, STALL)
            done = soft_turn(shaft, self.speed, -self.force * R, STALL, TOP, 0.0, LOOP_S)
            self.angle, self.speed, self.torque = self.angle + done.speed * LOOP_S, done.speed, done.torque

    def reading(self) -> ServoReading:
        assert MOTOR.torque_constant is not None
        return ServoReading("draw_1", self.angle, self.speed, current=self.torque / MOTOR.torque_constant)


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
            fault = monitor.update(k, readings, {"draw_1": winch.sent})
            if fault is not None and fault.kind is FaultKind.SNAPPED:
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


def faults_of(forces: list[float], periods: list[float], sway: float = 0.0) -> list[tuple[int, str]]:
    """Faults "snapped" with the cycles in which they are found, of a spool that sways with a speed [m/s]."""
    watched = replace(SPOOL, friction=FRICTION_N)
    winch, monitors = (
        Winch(forces[0]),
        tendon_monitors(watched, SafetySettings(period=PERIOD), (FaultKind.SLACK, FaultKind.SNAPPED)),
    )
    found: list[tuple[int, str]] = []
    for k, (force, period) in enumerate(zip(forces, periods, strict=True)):
        winch.force = force
        winch.cycle(sway * math.sin(2.0 * math.pi * k / 9.0), period)
        readings = Readings({"draw_1": watched.observe(winch.reading())}, period=period)
        assert winch.sent is not None
        each = [monitor.update(k, readings, {"draw_1": winch.sent}) for monitor in monitors]
        found += [(k, one.happened) for one in each if one is not None and one.kind is FaultKind.SNAPPED]
    return found


def uneven(seed: int) -> list[float]:
    """s of cycles, some of them two or three periods long."""
    return [PERIOD * each for each in random.Random(seed).choices((1, 2, 3), (6, 1, 1), k=70)]


@settings(max_examples=8)
@given(sway=st.floats(0.0, 0.1), seed=st.integers(0, 9999))
def test_a_tendon_that_carries_nothing_is_found_within_little_more_than_a_second_whatever_its_spool_does(
    sway, seed
) -> None:
    periods = uneven(seed)
    found = faults_of([0.0] * 70, periods, sway)
    assert found and sum(periods[: found[0][0] + 1]) < 1.2


@settings(max_examples=8)
@given(force=st.floats(12.0, 40.0), sway=st.floats(0.0, 0.1), seed=st.integers(0, 9999))
def test_a_tight_tendon_is_never_said_to_be_lost_whatever_its_spool_does(force, sway, seed) -> None:
    assert not faults_of([force] * 70, uneven(seed), sway)


def test_what_a_driver_missed_is_no_snapped_tendon_but_a_lost_one_is_found_after_it() -> None:
    periods = [PERIOD] * 10 + [0.4] + [PERIOD] * 60
    found = faults_of([16.0] * 10 + [0.0] * 61, periods)
    assert found and 10 + 20 < found[0][0] < 10 + 40
    assert "carried nothing" in found[0][1]
