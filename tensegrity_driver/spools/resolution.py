"""Accuracy of a pose limited by the resolution of the sensors of the servos.

A servo rests within half a sensor step of its commanded position, so that a pose x is within

    sum over actuators of |dx/dq_i| · step_i / 2

of the pose of the calibrated model. The reading has the same uncertainty again. Weight, elasticity and other effects
that the model contains cancel; friction, wear and backlash of a gear (`play`) are additional.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.estimation import make_estimator
from tensegrity_dynamics.robots.robot import Robot

from .spool import Spool

ENCODER_STEP_RAD = 2.0 * np.pi / 4096.0
"""Encoder step of a multi-turn servo."""


def position_step(spool: Spool) -> float:
    """Step of the sensor of the position loop, in units of the actuator [m or rad]."""
    line = spool.potentiometer if spool.measured_by == "potentiometer" else spool.encoder
    assert line is not None
    reading = 1.0 if spool.measured_by == "potentiometer" else ENCODER_STEP_RAD
    return abs(spool.rate(line.slope * reading))


def position_allowance(
    robot: Robot, spools: Mapping[str, Spool], positions: Mapping[str, float], *, play: float = 0.0
) -> float:
    """Largest distance [m] of the output from its position in the calibrated model, due to sensor steps and backlash
    alone.

    Args:
        robot: robot with an output.
        spools: spools by actuator.
        positions: positions of the actuators [m or rad] at which the distance is computed.
        play: backlash of every gear, from end to end [rad of the servo].

    Raises:
        TensegrityError: the robot has no output.
        NoEquilibriumError: there is no equilibrium at these positions.
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
