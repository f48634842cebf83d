"""Kinematics of a robot: its mechanism between the joints that its actuators drive and its output."""

from __future__ import annotations

from ..robots.robot import Robot
from .kinematics.parallel_kinematics import LoopKinematics
from .mechanism_model import MechanismModel


def loop_kinematics(robot: Robot) -> LoopKinematics:
    """Geometric, first- and second-order models of a robot between its actuators and its output.

    Raises:
        TensegrityError: it has no output, or the numbers of actuators and of controlled axes differ.
    """
    model = robot.model_as(MechanismModel)
    active = tuple(model.joint_of(each.drives) for each in robot.actuators)
    return LoopKinematics(model.mechanism, active, robot.output)  # type: ignore[arg-type]
