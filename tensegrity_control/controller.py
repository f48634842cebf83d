"""Interface of all controllers: states in, commands and status out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tensegrity_dynamics.errors import TensegrityError, unknown_name
from tensegrity_dynamics.impedance import ImpedanceSetPoint, MovingPosition
from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel
from tensegrity_dynamics.numerics.short_repr import ShortRepr
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.output_frame import Pose
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.simulation import Simulation
from tensegrity_dynamics.simulation_interface import Observation
from tensegrity_dynamics.structures.structure import Structure


@dataclass(frozen=True, eq=False, repr=False)
class RobotState(ShortRepr):
    """State of the robot as a controller receives it; values that are not measured or estimated are None.

    Attributes:
        positions: (a,) actuator positions in the robot's order: rest lengths [m] of tendons, rad or m of joints.
        nodes: (n, 3) m, estimated or measured.
        pose: of the output frame, estimated or measured.
        q, v: coordinates and velocities of a mechanism, estimated or measured.
        age: time from the state to the action of the command that answers it, as far as known [s].
    """

    positions: Array | None = None
    nodes: Array | None = None
    pose: Pose | None = None
    q: Array | None = None
    v: Array | None = None
    age: float = 0.0

    @classmethod
    def of(cls, simulation: Simulation, estimate: Any = None, seen: Observation | None = None) -> RobotState:
        """State of a simulated robot.

        Args:
            estimate: of an estimator; None: the simulation's own state. seen: `simulation.observe()`, if available.
        """
        seen = simulation.observe() if seen is None else seen
        state = simulation.state if estimate is None else estimate
        positions = np.array(list(seen.positions.values()))
        if simulation.robot.kind == Structure.kind:
            return cls(positions=positions, pose=seen.pose, nodes=state.configuration)
        return cls(positions=positions, pose=seen.pose, q=state.configuration, v=state.velocity)


@dataclass(frozen=True, eq=False)
class Command:
    """Set points for the actuators.

    Attributes:
        mode: "position" (rest length of a tendon, m), "velocity" (m/s), "effort" (N; N m for joints) or "impedance"
            (stiffness (position - q) + damping (velocity - v) + values, closed at the plant's own rate).
        names: actuator names.
        values: (a,) in the order of the names; in impedance mode the feed-forward efforts.
        velocity: (a,) in impedance mode, and in position mode, where there is one: positions move on with it until the
            next command. position, stiffness, damping: (a,) each in impedance mode, None in the others.
    """

    mode: str
    names: tuple[str, ...]
    values: Array
    position: Array | None = None
    velocity: Array | None = None
    stiffness: Array | None = None
    damping: Array | None = None

    def set_points(self) -> dict[str, Any]:
        """Set points by actuator name for `Simulation.command(mode, ...)`, with their rates where they move on."""
        if self.mode == "position" and self.velocity is not None:
            pairs = zip(self.values.tolist(), self.velocity.tolist(), strict=True)
            return {name: MovingPosition(*pair) for name, pair in zip(self.names, pairs, strict=True)}
        if self.mode != "impedance":
            return self.as_dict()
        assert self.position is not None and self.velocity is not None
        assert self.stiffness is not None and self.damping is not None
        columns = (self.position, self.velocity, self.values, self.stiffness, self.damping)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return {name: ImpedanceSetPoint(*row) for name, row in zip(self.names, rows, strict=True)}

    def as_dict(self) -> dict[str, float]:
        """Value by actuator name."""
        return dict(zip(self.names, self.values.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class Reference:
    """Reference pose of the output frame.

    Attributes:
        pose: position (3,) m and quaternion wxyz (4,).
        twist: (6,) m/s and rad/s about world axes.
    """

    pose: Pose
    twist: Array


@dataclass(frozen=True, eq=False)
class Status:
    """Status of a controller.

    Attributes:
        phase: "idle" before the first state, then "holding", "moving" or "stopped" (latched until released).
        progress: 0 to 1 along the present motion; 1 when there is none.
        arrival: time [s] at which the present motion ends, or ended.
        goal: the last accepted goal pose, or None.
        relaxed: names of the constraints that the last command relaxed; empty if it met all of them.
    """

    phase: str
    progress: float
    arrival: float
    goal: Pose | None
    relaxed: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Accepted:
    """Answer to an accepted goal.

    Attributes:
        arrival: time [s] at which the goal will be reached.
        duration: s from now until then, braking included.
        note: what the caller should know, such as a duration longer than requested; may be empty.
    """

    arrival: float
    duration: float
    note: str = ""


@dataclass(frozen=True)
class Setting:
    """Parameter of a controller: its meaning, the meaning of zero, and its range [SI units]."""

    text: str = ""
    low: float = 0.0
    high: float = 1e6


STIFFNESS_SETTINGS = {
    "stiffness": Setting(
        "stiffness of the output along stiffness_x, _y, _z [N/m], held by choice of self-stress; 0: not controlled",
        high=1e12,
    ),
    **{
        f"stiffness_{axis}": Setting(
            f"{axis} component of the direction of `stiffness` (world axes, any length, not all zero); 0: direction "
            f"perpendicular to {axis}", low=-1e9, high=1e9,
        )
        for axis in "xyz"
    },
}  # fmt: skip
"""Settings of controllers that hold a stiffness."""


class ControlPeriod(NamedTuple):
    """Time between two commands [s], and the reason for it."""

    seconds: float
    reason: str


class Controller(ABC):
    """Controller: computes actuator commands from states.

    `reset` comes first, then `command` once per control period with times that do not decrease. Goals are methods of
    the concrete controller; a refused goal raises and leaves the present motion unchanged.
    """

    robot: Robot
    model_type: ClassVar[type] = object
    """Type of the robot's model that the controller supports."""
    output_mode: ClassVar[str] = "position"
    """Mode of its commands: position, velocity, effort or impedance."""
    is_sampled: ClassVar[bool] = False
    """Whether it is designed for one control period, a parameter of its constructor called `period`."""
    needs_velocities: ClassVar[bool] = False
    """Whether its feedback needs the velocities of the robot, which an estimate of equilibria does not contain."""
    streams_goals: ClassVar[bool] = False
    """Whether goals may arrive at any rate, each continuing from the present motion."""
    plans_beside: bool = False
    """Whether it plans for announced loads in a separate thread."""
    takes_payloads: ClassVar[bool] = False
    """Whether it takes payloads into account that are added at run time, by `carry`."""
    takes_loads: ClassVar[bool] = False
    """Whether it takes loads into account that are set at run time, by `set_loads`."""
    takes_estimates: ClassVar[bool] = False
    """Whether these loads may be estimates of an observer, which change all the time."""
    no_loads: ClassVar[str] = "this controller takes no payloads and no wrenches that are announced while it runs."
    """Reason for the refusal of loads if it takes none, one sentence."""
    default_period: ClassVar[float] = 0.02
    """Default period of the commands [s]."""
    GAINS: ClassVar[tuple[str, ...]] = ()
    """Parameters of the constructor that `set_gains` changes."""
    SETTINGS: ClassVar[tuple[str, ...]] = ()
    """Parameters of the constructor that are fixed from its start on."""
    ABOUT: ClassVar[Mapping[str, Setting]] = {}
    """Text and range of gains and settings; those without an entry are gains of at least zero."""
    _phase: str = "idle"

    def __repr__(self) -> str:
        robot = getattr(self, "robot", None)
        gains = "".join(f", {name} {value:.6g}" for name, value in self.gains().items())
        return f"<{type(self).__name__}{f' of {robot.name}' if robot is not None else ''}: {self._phase}{gains}>"

    @abstractmethod
    def reset(self, time: float, state: RobotState) -> None:
        """Reset to a state at a time [s], and hold this state."""

    @abstractmethod
    def command(self, time: float, state: RobotState | None = None) -> Command:
        """Command for a time [s]; `state` is the latest state, or None without a state."""

    @abstractmethod
    def reference(self, time: float) -> Reference:
        """Reference pose of the output frame at a time [s]."""

    @abstractmethod
    def status(self, time: float) -> Status:
        """Status at a time [s]."""

    def set_loads(self, forces: Any) -> None:
        """Set the known loads, as in `Simulation.apply_forces`. Raises TensegrityError: the controller takes none."""
        raise TensegrityError(self.no_loads)

    def carry(self, payloads: Sequence[Any]) -> None:
        """Set the payloads that bodies carry in addition to the file's. Raises TensegrityError: it takes none."""
        raise TensegrityError(self.no_loads)

    def acted(self, stamp: float, begin: float) -> None:  # noqa: B027  # most have no use for it
        """Report of the plant: the command that answered the state of `stamp` [s] acts from `begin` [s] on."""

    @cached_property
    def _shapes(self) -> tuple[tuple[str, str, tuple[int, ...]], ...]:
        """Fields of a `RobotState`, what they are of, and their shapes for this robot."""
        model, found = self.robot.model, [("positions", "actuators", (len(self.robot.actuators),))]
        if isinstance(model, Structure):
            found.append(("nodes", "nodes", np.shape(model.initial_configuration)))
        if isinstance(model, MechanismModel):
            found.append(("q", "coordinates", (model.mechanism.position_count,)))
            found.append(("v", "velocities", (model.mechanism.velocity_count,)))
        return tuple(found)

    def refuse_other_state(self, state: RobotState | None) -> None:
        """Raise TensegrityError where a state is not of this robot: compiled functions would write beyond arrays."""
        if state is None:
            return
        for field, what, expected in self._shapes:
            value = getattr(state, field)
            if value is None or getattr(value, "shape", None) == expected:
                continue
            if np.shape(value) != expected and not isinstance(value, Mapping):
                raise TensegrityError(
                    f"the state has {field} of shape {np.shape(value)}; {self.robot.name} has {expected[0]} {what}."
                )
        if state.pose is not None and [np.shape(each) for each in state.pose] != [(3,), (4,)]:
            raise TensegrityError(
                f"the state has a pose of shapes {', '.join(str(np.shape(each)) for each in state.pose)}; give the "
                "position (3,) and the quaternion (4,)."
            )

    def _ready(self) -> None:
        """Raise TensegrityError if no goals can be accepted."""
        if self._phase == "idle":
            raise TensegrityError("the controller has not received a state yet; call reset with a state first.")
        if self._phase == "stopped":
            raise TensegrityError(
                "the controller is stopped; release it (service and command `hold`) before sending a goal."
            )

    @property
    def singularity_distance(self) -> float | None:
        """Distance to the nearest singularity of the mechanism, 0 on it; None if it has none to check."""
        return None

    def diagnostics(self) -> dict[str, str]:
        """Further values for the diagnostics by name; "relaxed": the constraints that the last command relaxed."""
        return {}

    @classmethod
    def period_for(cls, robot: Robot) -> ControlPeriod:
        """Default period of the commands for this robot."""
        return ControlPeriod(cls.default_period, "usual for this controller")

    @classmethod
    def caution_for(cls, robot: Robot, period: float) -> str:
        """Why a period [s] that is given leaves this robot without a margin, and which one would not; "" if it does
        not."""
        return ""

    @classmethod
    def suits(cls, robot: Robot) -> bool:
        """Whether the controller supports this kind of robot."""
        return isinstance(robot.model, cls.model_type)

    @classmethod
    def parameters(cls) -> tuple[str, ...]:
        """Names of the parameters of its constructor besides the robot."""
        return tuple(name for name in signature(cls).parameters if name != "robot")

    @classmethod
    def default_gains(cls) -> dict[str, float]:
        """Default gains by name."""
        return cls._defaults(cls.GAINS)

    @classmethod
    def default_settings(cls) -> dict[str, float]:
        """Default values by name of the parameters that are fixed from its start on."""
        return cls._defaults(cls.SETTINGS)

    @classmethod
    def _defaults(cls, names: tuple[str, ...]) -> dict[str, float]:
        parameters = signature(cls).parameters
        return {name: float(parameters[name].default) for name in names}

    def gains(self) -> dict[str, float]:
        """Gains by name, which may be changed at run time."""
        return {}

    def set_gains(self, **values: float) -> None:
        """Change some gains. Raises TensegrityError for unknown gains or values out of range, and changes nothing."""
        self.checked_gains(values)

    def checked_gains(self, values: Mapping[str, float]) -> dict[str, float]:
        """The values, if all are gains of this controller within range; otherwise raises TensegrityError."""
        gains = self.gains()
        for name in values:
            if name not in gains:
                raise TensegrityError(unknown_name("gain", name, gains) if gains else f"there is no gain {name!r}.")
        return {name: float(value) for name, value in values.items()}


def positions_of(robot: Robot, positions: Mapping[str, float] | Array | None) -> Array:
    """Actuator positions (a,) in the robot's order, from an array or by name; None: the rest lengths of the file.

    Raises:
        TensegrityError: an actuator is missing or unknown, or a value is not finite.
    """
    names = [actuator.name for actuator in robot.actuators]
    if positions is None:
        return np.array(robot.structure.rest_lengths[robot.actuated_members()])
    if isinstance(positions, Mapping):
        for name in positions:
            robot.actuator(name)
        missing = [name for name in names if name not in positions]
        if missing:
            raise TensegrityError(f"no position of {', '.join(missing)}; give one for every actuator of {robot.name}.")
        positions = np.array([positions[name] for name in names])
    values = np.array(positions, dtype=np.float64)
    if values.shape != (len(names),):
        raise TensegrityError(f"positions have shape {values.shape}; {robot.name} has {len(names)} actuators.")
    for name, value in zip(names, values, strict=True):
        if not (np.isfinite(value) and value > 0.0):
            raise TensegrityError(f"rest length of {name} is {value}; give a finite length above zero.")
    return values
