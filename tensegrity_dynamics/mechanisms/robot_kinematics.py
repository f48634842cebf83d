"""Kinematics of a robot between its actuated joints and its output."""

from __future__ import annotations

import numpy as np

from ..errors import TensegrityError
from ..robots.robot import Robot
from .body_frame import BodyFrame
from .kinematics.parallel_kinematics import LoopKinematics
from .mechanism_model import MechanismModel


def loop_kinematics(robot: Robot) -> LoopKinematics:
    """Geometric, first- and second-order models of a robot between its actuators and its output.

    The characteristic length that weighs rotations is the root mean square distance between the origin of the output
    and the joints and loops of its body.

    Raises:
        TensegrityError: the robot has no output, or the numbers of actuators and of controlled axes differ.
    """
    model = robot.model_as(MechanismModel)
    active = model.driven_joints(robot.actuators)
    output: BodyFrame = robot.output  # type: ignore[assignment]
    return LoopKinematics(model.mechanism, active, output, length=_reach(model, output))


def determined_kinematics(robot: Robot) -> LoopKinematics | None:
    """`loop_kinematics` of a robot whose actuators determine its output and vice versa; None for other robots."""
    model = robot.model_as(MechanismModel)
    if not robot.outputs or model.mechanism.cables or len(robot.actuators) != len(robot.outputs[0].controlled):
        return None
    kinematics = loop_kinematics(robot)
    try:
        kinematics.first_order(model.start)
    except TensegrityError:  # other degrees of freedom
        return None
    return kinematics


def _reach(model: MechanismModel, output: BodyFrame) -> float:
    mechanism, points = model.mechanism, []
    for loop in mechanism.loops:
        if loop.predecessor == output.body:
            points.append(loop.predecessor_frame.origin)
        if loop.successor == output.body:
            points.append(loop.successor_frame.origin)
    points += [joint.placement.origin for joint in mechanism.joints if joint.parent == output.body]
    away = [float(np.linalg.norm(point - output.frame.origin)) for point in points]
    reach = float(np.sqrt(np.mean(np.square(away)))) if away else 0.0
    return reach if reach > 1e-6 else 1.0
