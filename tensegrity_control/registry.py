"""Controllers by name, for nodes, files and the command line."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from tensegrity_dynamics import Simulation
from tensegrity_dynamics.errors import TensegrityError, unknown_name
from tensegrity_dynamics.robots.extensions import import_extensions
from tensegrity_dynamics.robots.robot import Robot

from .controller import Controller, RobotState
from .controllers.joint_position import JointPositionController
from .controllers.near_rigid import NearRigidController
from .controllers.output_tracking import OutputTrackingController
from .controllers.parallel_robot_controller import ComputedTorqueController, KinematicController
from .controllers.qp.controller import QPController
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
"""Classes by name. The first one that suits a robot is its default; add further controllers here or from outside."""


def controllers() -> tuple[str, ...]:
    """Names accepted by `make_controller`."""
    return tuple(CONTROLLERS)


def suitable(robot: Robot) -> tuple[str, ...]:
    """Names of the controllers for this kind of robot; the first is the default.

    Raises:
        TensegrityError: there is none.
    """
    names = tuple(name for name, kind in CONTROLLERS.items() if kind.suits(robot))
    if not names:
        models = sorted({kind.model_type.__name__ for kind in CONTROLLERS.values()})
        raise TensegrityError(f"{robot.name} is a {robot.kind}; controllers are for models {' and '.join(models)}.")
    return names


def controller_class(name: str) -> type[Controller]:
    """Class of a controller. Raises TensegrityError with the nearest existing name."""
    if name not in CONTROLLERS:
        import_extensions()
    if name not in CONTROLLERS:
        raise TensegrityError(unknown_name("controller", name, CONTROLLERS))
    return CONTROLLERS[name]


def make_controller(name: str, robot: Robot, **parameters: Any) -> Controller:
    """Controller of a robot by name.

    Args:
        parameters: parameters of the constructor of the controller.

    Raises:
        TensegrityError: a name or parameter is unknown (the message contains the nearest one), a value is out of range,
            or the controller refuses this robot; the message then names controllers that accept it.
    """
    kind = _checked_class(name, parameters)
    try:
        return _made(kind, robot, parameters)
    except TensegrityError:
        try:
            _made(kind, robot, {})  # where this works it was a parameter, and no other controller is asked for
        except TensegrityError as error:
            with suppress(TensegrityError):  # where none can be tried the first reason is the one that counts
                error = TensegrityError(f"{error} {taken_words(robot, refusals(robot))}")
            raise error from None
        raise


def make_quickly(name: str, robot: Robot, **parameters: Any) -> Controller:
    """As `make_controller`, while a robot waits for commands: after a refusal no other controllers are tried."""
    return _made(_checked_class(name, parameters), robot, parameters)


def _checked_class(name: str, parameters: Mapping[str, Any]) -> type[Controller]:
    kind = controller_class(name)
    for key in parameters:
        if key not in kind.parameters():
            raise TensegrityError(f"controller {name}: " + unknown_name("parameter", key, kind.parameters()))
    return kind


def _made(kind: type[Controller], robot: Robot, parameters: Mapping[str, Any]) -> Controller:
    controller: Controller = kind(robot, **parameters)  # type: ignore[call-arg]
    return controller


def refusals(robot: Robot) -> dict[str, str]:
    """Reasons why the controllers for this kind of robot refuse this one; empty text for those that hold it at rest.

    Every controller is created with the control period that follows from the robot, and reset with the state of the
    robot in simulation. Problems of goals are not checked.

    Raises:
        TensegrityError: there is no controller for this kind of robot, or it cannot be simulated.
    """
    state, found = RobotState.of(Simulation(robot)), dict[str, str]()
    for name in suitable(robot):
        kind, found[name] = CONTROLLERS[name], ""
        try:
            period = {"period": kind.period_for(robot).seconds} if kind.is_sampled else {}
            _made(kind, robot, period).reset(0.0, state)
        except TensegrityError as error:
            found[name] = str(error)
    return found


def load_refusal(controller: Controller, robot: Robot) -> str:
    """Reason why a controller takes no loads, and the names of those for this kind of robot that take them."""
    names = [name for name, kind in CONTROLLERS.items() if kind.suits(robot) and kind.takes_loads]
    return f"{controller.no_loads} Controllers that take loads: {', '.join(names)}." if names else controller.no_loads


def taken_words(robot: Robot, refused: Mapping[str, str]) -> str:
    """Sentence that names the controllers that accept a robot, from the result of `refusals`."""
    names = [name for name, why in refused.items() if not why]
    return f"Controllers that support {robot.name}: {', '.join(names) or 'none'}."
