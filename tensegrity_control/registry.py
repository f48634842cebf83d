"""Controllers by name, so that a node, a file or a command line can ask for one."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

from tensegrity_dynamics.errors import TensegrityError, unknown_name
from tensegrity_dynamics.robots.robot import Robot

from .controller import Controller

# Module and class by name; a module is imported only when its controller is asked for.
CONTROLLERS: dict[str, tuple[str, str]] = {
    "tendon_length": ("tensegrity_control.controllers.tendon_length", "TendonLengthController"),
    "joint_position": ("tensegrity_control.controllers.joint_position", "JointPositionController"),
    "near_rigid": ("tensegrity_control.controllers.near_rigid", "NearRigidController"),
    "task": ("tensegrity_control.controllers.output_tracking", "OutputTrackingController"),
    "computed_torque": ("tensegrity_control.controllers.parallel_robot_controller", "ComputedTorqueController"),
    "kinematic": ("tensegrity_control.controllers.parallel_robot_controller", "KinematicController"),
}
BY_KIND: dict[str, tuple[str, ...]] = {
    "structure": ("tendon_length",),
    "mechanism": ("joint_position", "task", "near_rigid", "computed_torque", "kinematic"),
}
"""Names of the controllers for each kind of robot; the first is the usual one."""


def controllers() -> tuple[str, ...]:
    """Names that `make_controller` knows."""
    return tuple(CONTROLLERS)


def suitable(robot: Robot) -> tuple[str, ...]:
    """Names of the controllers for this kind of robot; the first is the usual one.

    Raises:
        TensegrityError: there is none.
    """
    if robot.kind not in BY_KIND:
        able = " and ".join(f"{kind}s" for kind in BY_KIND)
        raise TensegrityError(f"{robot.name} is a {robot.kind}; controllers are for {able}.")
    return BY_KIND[robot.kind]


def default_gains(name: str) -> dict[str, float]:
    """Gains of a controller that may be changed while it runs, as its constructor has them."""
    module, kind = CONTROLLERS[name]
    make = getattr(import_module(module), kind)
    known = inspect.signature(make).parameters
    return {gain: float(known[gain].default) for gain in make.GAINS}


def parameters_of(name: str) -> tuple[str, ...]:
    """Names of the parameters that the constructor of a controller takes, besides the robot."""
    module, kind = CONTROLLERS[name]
    return tuple(key for key in inspect.signature(getattr(import_module(module), kind)).parameters if key != "robot")


def make_controller(name: str, robot: Robot, **parameters: Any) -> Controller:
    """The controller called `name` for a robot.

    Args:
        parameters: of the controller's own constructor.

    Raises:
        TensegrityError: name or parameter unknown (the nearest known one is named), or a value out of range.
    """
    if name not in CONTROLLERS:
        raise TensegrityError(unknown_name("controller", name, CONTROLLERS))
    module, kind = CONTROLLERS[name]
    make = getattr(import_module(module), kind)
    known = parameters_of(name)
    for key in parameters:
        if key not in known:
            raise TensegrityError(f"controller {name}: " + unknown_name("parameter", key, known))
    controller: Controller = make(robot, **parameters)
    return controller
