"""A soft servo that winds a tendon in on its own, read once a cycle, and its spool."""

from __future__ import annotations

from dataclasses import replace

from spool_bench import PERIOD, spool

from tensegrity_driver.emulator.motor_model import FRICTION, Shaft, soft_turn
from tensegrity_driver.servos.motors import INERTIA, LOOP_S, MOTORS
from tensegrity_driver.spools.readings import Drive, DriveCommand, ServoReading
from tensegrity_driver.spools.spool import Line
from tensegrity_dynamics.impedance import ImpedanceSetPoint

MOTOR = MOTORS["XM430-W350"]
STALL, TOP = MOTOR.stall_torque, MOTOR.top_speed
R = 0.025
MIDDLE = 0.21  # m, where the shaft is at zero
SPOOL = replace(
    spool(encoder=True), encoder=Line(-R, MIDDLE), radius=R, torque_constant=MOTOR.torque_constant, stall_torque=STALL,
    top_speed=TOP, inertia=INERTIA,
)  # fmt: skip
STIFFNESS, DAMPING = 13.5, 0.073  # N m/rad and N m s/rad of the shaft
FRICTION_N = FRICTION * STALL / R


class Winch:
    """A soft servo that winds in against a force.

    Attributes:
        angle: of the shaft [rad]. track: own set point of the servo [rad]. goal: where it is sent [rad].
    """

    def __init__(self, force: float) -> None:
        self.force, self.angle, self.speed = force, 0.0, 0.0
        self.goal = self.track = force * R / STIFFNESS
        self.sent: DriveCommand | None = None
        self.torque = force * R

    def cycle(self, rate: float) -> None:
        """One cycle with a set point that winds in with a rate [m/s]."""
        self.goal += rate * PERIOD / R
        profile = 1.25 * abs(rate) / R or 0.01
        impedance = ImpedanceSetPoint(MIDDLE - R * self.goal, 0.0, 0.0, STIFFNESS / R**2, DAMPING / R**2)
        self.turn(DriveCommand(Drive.POSITION, MIDDLE - R * self.goal, profile * R, 200.0, None, impedance))

    def turn(self, sent: DriveCommand, time: float = PERIOD) -> None:
        """Turn for some seconds at a command."""
        self.sent, goal, profile = sent, (MIDDLE - sent.value - sent.feed) / R, sent.rate / R
        for _ in range(round(time / LOOP_S)):
            begin = self.track
            self.track += min(max(goal - begin, -profile * LOOP_S), profile * LOOP_S)
            shaft = Shaft(begin - self.angle, (self.track - begin) / LOOP_S, STIFFNESS, DAMPING, STALL)
            done = soft_turn(shaft, self.speed, -self.force * R, STALL, TOP, 0.0, LOOP_S)
            self.angle, self.speed, self.torque = self.angle + done.speed * LOOP_S, done.speed, done.torque

    def reading(self) -> ServoReading:
        """What it reports at present."""
        assert MOTOR.torque_constant is not None
        return ServoReading("draw_1", self.angle, self.speed, current=self.torque / MOTOR.torque_constant)
