"""How near its goal a pose can be brought by servos that count: what a sensor's steps leave to chance.

A servo rests within half a step of its sensor of where it was sent, so that a pose x lies within

    sum over actuators of |dx/dq_i| · step_i / 2

of the pose of the calibrated model; what is read is uncertain by as much again. Weight, elasticity and everything else
that model and robot share are in both; friction, wear and play of a gear (`play`) come on top.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.estimation import make_estimator
from tensegrity_dynamics.robots.robot import Robot

from .spool import Spool

ENCODER_STEP_RAD = 2.0 * np.pi / 4096.0
"""Step of the encoder of a servo that counts its turns."""


def position_step(spool: Spool) -> float:
    """Step of the sensor of the position loop, in units of the actuator [m or rad]."""
    line = spool.potentiometer if spool.measured_by == "potentiometer" else spool.encoder
    assert line is not None
    reading = 1.0 if spool.measured_by == "potentiometer" else ENCODER_STEP_RAD
    return abs(spool.rate(line.slope * reading))


def position_allowance(
    robot: Robot, spools: Mapping[str, Spool], positions: Mapping[str, float], *, play: float = 0.0
) -> float:
    """Largest distance [m] of the output from where the calibrated model has it, by steps and play alone.

    Args:
        robot: with an output. spools: by actuator. positions: of the actuators, at which it is asked [m or rad].
        play: of every gear, from end to end [rad of the servo].

    Raises:
        TensegrityError: the robot has no output. NoEquilibriumError: there is no shape at these positions.
    """
    if not robot.outputs:
        raise TensegrityError(f"{robot.name} has no output, so its pose is undefined.")
    estimator = make_estimator(robot)
    total = np.zeros(3)
    for name, spool in spools.items():
        step = position_step(spool) + play * spool.radius / spool.lever
        ends = [estimator.solve({**positions, name: positions[name] + side * step}).pose for side in (-0.5, 0.5)]
        assert ends[0] is not None and ends[1] is not None
        total += 0.5 * np.abs(ends[1][0] - ends[0][0])
    return float(np.linalg.norm(total))
