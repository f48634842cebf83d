"""Controllers by name, so that a node, a file or a command line can ask for one."""

from __future__ import annotations

from typing import Any

from tensegrity_dynamics.errors import TensegrityError, unknown_name
from tensegrity_dynamics.robots.extensions import import_extensions
from tensegrity_dynamics.robots.robot import Robot

from .controller import Controller
from .controllers.joint_position import JointPositionController
from .controllers.near_rigid import NearRigidController
from .controllers.output_tracking import OutputTrackingController
from .controllers.parallel_robot_controller import ComputedTorqueController, KinematicController
from .controllers.qp import QPController
from .controllers.rolling import RollingController
from .controllers.rolling_mpc import RollingMPCController
from .controllers.tendon_length import TendonLengthController

CONTROLLERS: dict[str, type[Controller]] = {
    "rolling": RollingController,
    "rolling_mpc": RollingMPCController,
    "tendon_length": TendonLengthController,
    "joint_position": JointPositionController,
    "task": OutputTrackingController,
    "near_rigid": NearRigidController,
    "computed_torque": ComputedTorqueController,
    "kinematic": KinematicController,
    "qp": QPController,
}
"""Classes by name. The first that suits a robot is its usual one; another controller is added here, or from outside."""


def controllers() -> tuple[str, ...]:
    """Names that `make_controller` takes."""
    return tuple(CONTROLLERS)


def suitable(robot: Robot) -> tuple[str, ...]:
    """Names of the controllers for this kind of robot; the first is the usual one.

    Raises:
        TensegrityError: there is none.
    """
    names = tuple(name for name, kind in CONTROLLERS.items() if kind.suits(robot))
    if not names:
        models = sorted({kind.model_type.__name__ for kind in CONTROLLERS.values()})
        raise TensegrityError(f"{robot.name} is a {robot.kind}; controllers are for models {' and '.join(models)}.")
    return names


def controller_class(name: str) -> type[Controller]:
    """The class of a controller. Raises TensegrityError with the nearest name there is."""
    if name not in CONTROLLERS:
        import_extensions()
    if name not in CONTROLLERS:
        raise TensegrityError(unknown_name("controller", name, CONTROLLERS))
    return CONTROLLERS[name]


def make_controller(name: str, robot: Robot, **parameters: Any) -> Controller:
    """The controller called `name` for a robot.

    Args:
        parameters: of the controller's own constructor.

    Raises:
        TensegrityError: there is no such name or parameter (the nearest one is named), or a value is out of range.
    """
    kind = controller_class(name)
    for key in parameters:
        if key not in kind.parameters():
            raise TensegrityError(f"controller {name}: " + unknown_name("parameter", key, kind.parameters()))
    controller: Controller = kind(robot, **parameters)  # type: ignore[call-arg]
    return controller
