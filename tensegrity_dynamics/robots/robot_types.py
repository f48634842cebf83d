"""Registry of robot types: one object contains all data of a kind of robot.

    register_robot_type(RobotType("pendulum", ...))

Structures and mechanisms are registered by `tensegrity_dynamics.robot_types`. Another kind is registered in the same
way from outside, before its first robot file is loaded; docs/architecture.md contains an example.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import TensegrityError, unknown_name
from .model import RobotModel
from .output_frame import OutputFrame
from .robot import Robot

if TYPE_CHECKING:  # keeps the import time of the library short
    from .file_errors import Problems
    from .report import RobotReport
    from .schema import CommonBlock
    from .state_record import StateCodec


@dataclass(frozen=True)
class BuiltModel:
    """Result of a builder.

    Attributes:
        model: model of the robot.
        drivable: parts that an actuator can drive, with their motion ("tendon", "revolute" or "prismatic").
        outputs: frames of the end effector.
        starts: start positions of drivable parts [m or rad]; they must be within the limits of the actuators.
        ranges: (lowest, highest) position that is possible for a part, such as the pulley of a cable with a known
            length. The limits of its actuator are narrowed to it.
    """

    model: RobotModel
    drivable: Mapping[str, str]
    outputs: tuple[OutputFrame, ...] = ()
    starts: Mapping[str, float] = field(default_factory=dict)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)


class Builder(Protocol):
    """Function that builds the model from a block that satisfies the schema; it adds errors to the problems."""

    def __call__(self, block: Any, problems: Problems) -> BuiltModel: ...


@dataclass(frozen=True)
class RobotType:
    """Kind of robot: its schema, builder, simulator, estimators, state codec, report and picture.

    Args:
        name: value of `kind:` in a robot file; equal to `model.kind`.
        model: class of the models.
        schema: fields of the robot file; a `CommonBlock` with the fields of the kind.
        builder: function that builds the model from a block of the schema.
        motions: function from the data of the file to a function from a driven part to its motion ("tendon", "revolute"
            or "prismatic"); it is called before the schema is checked, because the units of plain numbers depend on it.
        simulator: function that creates a `simulation_interface.Simulator` from (robot, time_step, integrator,
            **options), with the options of `Simulation`; options that a kind does not support are ignored.
        integrators: integrators of the simulator; the first is the default.
        node_integrator: default integrator of the simulator node; empty for the first one.
        estimators: by method ("rest", "observer"), functions that create an `estimation_interface.Estimator` from
            (robot, rigid_bars); "observer" also accepts unknown_loads=False.
        codec: function that creates the `StateCodec` of a robot, which converts its states to values for messages.
        report: function that creates the `RobotReport` of a robot, the output of commands.
        picture: function that creates the `visualization.picture.Picture` of a robot for markers, URDF and the browser.
        exports: by format ("mjcf"), functions that create the `robots.mjcf.Export` of a robot.
    """

    name: str
    model: type[RobotModel]
    schema: type[CommonBlock]
    builder: Builder
    motions: Callable[[Mapping[str, Any]], Callable[[Any], str]]
    simulator: Callable[..., Any]
    integrators: tuple[str, ...]
    estimators: Mapping[str, Callable[..., Any]]
    codec: Callable[[Robot], StateCodec]
    report: Callable[[Robot], RobotReport]
    picture: Callable[[Robot], Any]
    exports: Mapping[str, Callable[[Robot], Any]] = field(default_factory=dict)
    node_integrator: str = ""

    def __post_init__(self) -> None:
        if self.model.kind != self.name:
            raise TensegrityError(
                f"robot type {self.name!r} has models of kind {self.model.kind!r}; give both the same name."
            )
        if not self.integrators or "rest" not in self.estimators:
            raise TensegrityError(f"robot type {self.name!r} needs an integrator and an estimator 'rest'.")
        if self.node_integrator not in ("", *self.integrators):
            raise TensegrityError(unknown_name("integrator", self.node_integrator, self.integrators))


_types: dict[str, RobotType | Callable[[], RobotType]] = {}


def register_robot_type(robot_type: RobotType) -> None:
    """Register a kind of robot, so that robot files can use `kind: <name>` and all programs support it.

    Raises:
        TensegrityError: the name is already registered.
    """
    _register(robot_type.name, robot_type)


def register_late(name: str, load: Callable[[], RobotType]) -> None:
    """As `register_robot_type`, for a type that `load` imports when the first robot of its kind is loaded."""
    _register(name, load)


def _register(name: str, robot_type: RobotType | Callable[[], RobotType]) -> None:
    if name in _types:
        raise TensegrityError(f"robots of kind {name!r} are registered already; choose another name.")
    _types[name] = robot_type


def unregister_robot_type(name: str) -> None:
    """Remove a robot type. Raises TensegrityError if the name is not registered."""
    robot_type(name)
    del _types[name]


def robot_types() -> tuple[str, ...]:
    """Names of the registered robot types."""
    return tuple(_types)


def robot_type(name: str) -> RobotType:
    """Robot type with the name `name`. Raises TensegrityError if it is unknown."""
    if name not in _types:
        raise TensegrityError(unknown_name("kind of robot", name, _types))
    found = _types[name]
    if not isinstance(found, RobotType):
        found = _types[name] = found()
    return found


def type_of(robot: Robot) -> RobotType:
    """Type of a robot. Raises TensegrityError if its kind is not registered."""
    return robot_type(robot.kind)
