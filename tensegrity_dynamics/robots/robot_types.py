"""The registry of robot types: all that the project needs to know of a kind of robot, in one object.

    register_robot_type(RobotType("pendulum", ...))

Structures and mechanisms are registered by `tensegrity_dynamics.robot_types`. Another kind is registered likewise
from outside, before its first robot file is loaded; docs/architecture.md walks through one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import TensegrityError, unknown_name
from .model import RobotModel
from .output_frame import OutputFrame
from .robot import Robot

if TYPE_CHECKING:  # so that importing the library stays quick
    from .file_errors import Problems
    from .report import RobotReport
    from .schema import CommonBlock
    from .state_record import StateCodec


@dataclass(frozen=True)
class BuiltModel:
    """What a builder makes of a file's block.

    Attributes:
        model: of the robot.
        drivable: what an actuator can drive, with its motion ("tendon", "revolute" or "prismatic").
        outputs: frames of the end effector.
        starts: position at the start [m or rad] of what can be driven; the limits of an actuator must hold it.
    """

    model: RobotModel
    drivable: Mapping[str, str]
    outputs: tuple[OutputFrame, ...] = ()
    starts: Mapping[str, float] = field(default_factory=dict)


class Builder(Protocol):
    """Builds the model of a block that satisfies the schema; adds to the problems what it finds wrong."""

    def __call__(self, block: Any, problems: Problems) -> BuiltModel: ...


@dataclass(frozen=True)
class RobotType:
    """Kind of robot: its schema, builder, simulator, estimators, state codec, report and picture.

    Args:
        name: what `kind:` of a robot file says; equal to `model.kind`.
        model: class of the models.
        schema: fields of the robot file; a `CommonBlock` with the fields of the kind.
        builder: makes the model from a block of the schema.
        motions: of the mapping in the file, a function from what an actuator drives to its motion ("tendon", "revolute"
            or "prismatic"); asked before the schema is checked, because the units of plain numbers depend on it.
        simulator: makes a `simulation_interface.Simulator` from (robot, time_step, integrator, **options), with the
            options of `Simulation`; what a kind has no use for, it ignores.
        integrators: that the simulator knows; the first is the usual one. node_integrator: of the simulator node, where
            another one is usual; empty for the first.
        estimators: by method ("rest", "observer"): makes an `estimation_interface.Estimator` from (robot, rigid_bars);
            "observer" also with unknown_loads=False.
        codec: makes the `StateCodec` of a robot: its states as the plain values that messages carry.
        report: makes the `RobotReport` of a robot: what commands print.
        picture: makes the `visualization.picture.Picture` of a robot: what markers, URDF and the browser view show.
        exports: by name of a format ("mjcf"): makes the `robots.mjcf.Export` of a robot.
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
    """Register a kind of robot, so that robot files may use `kind: <name>` and all programs support it.

    Raises:
        TensegrityError: the name is taken.
    """
    _register(robot_type.name, robot_type)


def register_late(name: str, load: Callable[[], RobotType]) -> None:
    """As `register_robot_type`, for a type that `load` imports when the first robot of its kind is there."""
    _register(name, load)


def _register(name: str, robot_type: RobotType | Callable[[], RobotType]) -> None:
    if name in _types:
        raise TensegrityError(f"robots of kind {name!r} are registered already; choose another name.")
    _types[name] = robot_type


def unregister_robot_type(name: str) -> None:
    """Forget a robot type. Raises TensegrityError where there is none of that name."""
    robot_type(name)
    del _types[name]


def robot_types() -> tuple[str, ...]:
    """Names of the registered robot types."""
    return tuple(_types)


def robot_type(name: str) -> RobotType:
    """The robot type called `name`. Raises TensegrityError for an unknown one."""
    if name not in _types:
        raise TensegrityError(unknown_name("kind of robot", name, _types))
    found = _types[name]
    if not isinstance(found, RobotType):
        found = _types[name] = found()
    return found


def type_of(robot: Robot) -> RobotType:
    """The type of a robot. Raises TensegrityError where its kind is not registered."""
    return robot_type(robot.kind)
