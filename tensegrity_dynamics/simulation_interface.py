"""Interface of the simulators of robots: commands, forces, steps in time and observations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import TensegrityError, is_finite_number, unknown_name
from .impedance import ImpedanceSetPoint, MovingPosition
from .linear_models.linear_model import LinearModel
from .numerics.short_repr import ShortRepr
from .robots.model import Pose

POSITION, VELOCITY, EFFORT, IMPEDANCE = 0, 1, 2, 3
MODES = {"position": POSITION, "velocity": VELOCITY, "effort": EFFORT, "impedance": IMPEDANCE}
STEPPED_MODES = ("position", "velocity", "effort")
"""Meaning of the set points of `step_arrays`."""
SHORT_STEP = 2e-5
"""Explicit step [s] below which lock-step runs use the implicit method, and `tensegrity simulate` recommends it."""
IMPLICIT_STEP = 1e-3
"""Default step of the implicit method [s]. It is not limited by stability; motions fast relative to it are damped."""


@dataclass(frozen=True)
class Energy:
    """Energies [J] of the present state, and works and dissipation since the start.

    Attributes:
        kinetic, elastic, gravity: energies of the present state.
        actuators: work of the actuators.
        forces: work of applied forces without weight, including changes of payloads and of the gravity.
        damping: dissipation of dampers, including those of joints and of the ground.
        winding: elastic energy removed by winding stretched cable onto pulleys (mechanisms; convention of 000, 3.1.9:
            winding changes the rest length at constant elongation).
        ground: elastic energy of the ground at the present state.
        friction: dissipation of sliding on the ground and of Coulomb friction in joints.
        collisions: elastic energy of colliding rods at the present state.
    """

    kinetic: float
    elastic: float
    gravity: float
    actuators: float = 0.0
    damping: float = 0.0
    forces: float = 0.0
    winding: float = 0.0
    ground: float = 0.0
    friction: float = 0.0
    collisions: float = 0.0

    @property
    def total(self) -> float:
        """Energy of the present state [J]."""
        return self.kinetic + self.elastic + self.gravity + self.ground + self.collisions

    @property
    def balance(self) -> float:
        """Conserved energy balance [J], except for the numerical dissipation of an integrator (implicit methods)."""
        return self.total - self.actuators - self.forces + self.damping + self.winding + self.friction


@dataclass(frozen=True, eq=False, repr=False)
class Observation(ShortRepr):
    """Readings of ideal sensors.

    Attributes:
        time: time [s].
        lengths, rest_lengths, tensions: by member or cable name, m and N (bars: negative in compression).
        positions, rates, efforts: by actuator: rest length [m], its rate [m/s] and tension [N] of a tendon; rad or m,
            rad/s or m/s, N m or N of a joint.
        pose: pose of the output frame, or None. twist: (6,) its twist, linear m/s and angular rad/s, or None.
        contacts: (3,) ground forces in world axes [N], by name of the node that touches the ground.
        imus: (3,) readings in the axes of the rod [m/s^2] by name of the rod, see `structures.imu`.
    """

    time: float
    lengths: dict[str, float]
    rest_lengths: dict[str, float]
    tensions: dict[str, float]
    positions: dict[str, float]
    rates: dict[str, float]
    efforts: dict[str, float]
    pose: Pose | None
    twist: NDArray[np.float64] | None
    contacts: dict[str, NDArray[np.float64]] = field(default_factory=dict, kw_only=True)
    imus: dict[str, NDArray[np.float64]] = field(default_factory=dict, kw_only=True)


class SensorReadings(NamedTuple):
    """Part of an `Observation` that is published in every period, with the same names; fast to create."""

    lengths: dict[str, float]
    rest_lengths: dict[str, float]
    tensions: dict[str, float]
    positions: dict[str, float]
    rates: dict[str, float]
    efforts: dict[str, float]


class Simulator(ABC):
    """Base class of simulators of one robot with steps of fixed length.

    Attributes:
        integrator: name of the integrator. time_step: step [s].
        shortest_period: shortest period of the robot at the start [s]; steps of explicit integrators must be well below
            it. step_limit: text on what moves with that period.
    """

    integrator: str
    time_step: float
    shortest_period: float
    step_limit: str = ""

    @property
    def note(self) -> str:
        """Notes for the user on the simulation so far; empty if there are none."""
        return ""

    @property
    def details(self) -> dict[str, str]:
        """Diagnostic texts on parts of the robot at the present state by name, for example slipping cables."""
        return {}

    @property
    @abstractmethod
    def time(self) -> float:
        """Time since the start [s]; computed from the number of steps, so that it does not drift."""

    @property
    @abstractmethod
    def state(self) -> Any:
        """Copy of the present state: a `ConfigurationState` with its time, of the class of the kind of robot."""

    @abstractmethod
    def command(self, mode: str, values: Mapping[str, Any], *, age: float = 0.0, period: float = 0.0) -> None:
        """Command set points of some actuators; the others keep theirs.

        Args:
            mode: "position" [m or rad], "velocity" [m/s or rad/s], "effort" [N or N m] or "impedance".
            values: by actuator name: a number, a position also as a `MovingPosition`, or an `ImpedanceSetPoint`.
            age: age of the command [s]; extrapolated set points include this time.
            period: period of the commands of the sender [s], 0 if unknown; see `impedance`.

        Raises:
            TensegrityError: a mode or actuator is unknown, a number is not finite, or an actuator does not have this
                mode (tendons of structures have no impedance mode).
        """

    @property
    def without_impedance(self) -> Mapping[str, str]:
        """Reasons why actuators have no impedance mode, by name; all actuators if the kind does not support it."""
        return {}

    @abstractmethod
    def apply_forces(self, forces: Mapping[str, ArrayLike] | ArrayLike | None) -> None:
        """Apply constant forces in addition to the weight; None removes all of them.

        Args:
            forces: by name of the node or body: (3,) [N] on a node or on the origin of a body, or (6,) [N and N m] on a
                body, in world axes.

        Raises:
            TensegrityError: a name is unknown, a shape is wrong, or a number is not finite.
        """

    def set_gravity(self, gravity: ArrayLike) -> None:
        """Set the gravity (3,) [m/s^2]. Raises TensegrityError if the kind of robot does not support it."""
        raise TensegrityError("the gravity of this kind of robot cannot change while it is simulated.")

    def attach(
        self, name: str, body: str, mass: float, at: ArrayLike = (0.0, 0.0, 0.0), inertia: ArrayLike | None = None
    ) -> None:
        """Attach a payload to a body or node, or move it. Raises TensegrityError if the kind does not support it."""
        raise TensegrityError("payloads of this kind of robot cannot change while it is simulated.")

    def detach(self, name: str) -> None:
        """Remove a payload. Raises TensegrityError if the kind does not support it, or the name is unknown."""
        raise TensegrityError("payloads of this kind of robot cannot change while it is simulated.")

    @abstractmethod
    def set_state(self, configuration: ArrayLike, velocity: ArrayLike | None = None) -> None:
        """Set configuration and velocity (zero by default), projected onto the constraints.

        Raises:
            TensegrityError: a shape is wrong, or a number is not finite.
        """

    @abstractmethod
    def set_motion(self, velocity: ArrayLike) -> None:
        """Set the velocity in the shape of the states, projected onto the constraints.

        Raises:
            TensegrityError: the shape is wrong, or a number is not finite.
        """

    def linearise(self, inputs: str = "", *, reduced: bool = False) -> LinearModel:
        """Linear model at the present state; see `Simulation.linearise`.

        Raises:
            TensegrityError: the kind of robot has no linear model, or none with these inputs.
        """
        raise TensegrityError("this kind of robot has no linear model.")

    @abstractmethod
    def advance(self, steps: int) -> None:
        """Advance by several steps. Raises TensegrityError if the motion cannot be simulated."""

    def step_arrays(
        self, set_points: ArrayLike | None = None, mode: str = "position", steps: int = 1
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Advance with set points (a,) of all actuators in order, or the last ones; returns configuration and velocity.

        The results can be arrays of the simulator: read them before the next step, or copy them.

        Raises:
            TensegrityError: as `command` and `advance`.
        """
        names = self.actuator_names
        if set_points is not None:
            points = np.asarray(set_points, dtype=np.float64)
            if points.shape != (len(names),):
                raise TensegrityError(f"set_points have shape {points.shape}, expected ({len(names)},).")
            self.command(mode, dict(zip(names, points.tolist(), strict=True)))
        self.advance(steps)
        state = self.state
        return state.configuration, state.velocity

    actuator_names: tuple[str, ...] = ()
    """Names of the actuators in the order of set points."""

    @abstractmethod
    def observe(self) -> Observation:
        """Sensors at the present state."""

    def observe_sensors(self) -> SensorReadings | Observation:
        """Part of `observe` that real sensors measure, or all of it."""
        return self.observe()

    @abstractmethod
    def energy(self) -> Energy:
        """Energies at the present state [J]."""

    @abstractmethod
    def reset(self) -> None:
        """Return to the start, at rest, with holding actuators and without applied forces."""

    @abstractmethod
    def hold(self) -> None:
        """Let all actuators hold their present positions."""


def checked_commands(mode: str, values: Mapping[str, Any], actuators: tuple[str, ...]) -> dict[int, Any]:
    """Commands by actuator index.

    Raises:
        TensegrityError: a mode or actuator is unknown, or a number is not finite.
    """
    if mode not in MODES:
        raise TensegrityError(unknown_name("mode", mode, MODES))
    if not isinstance(values, Mapping):
        raise TensegrityError(
            f"{mode} is {values!r}; give numbers by actuator name, as a dict (step_arrays takes arrays of all)."
        )
    result: dict[int, Any] = {}
    for name, value in values.items():
        try:
            index = actuators.index(name)
        except ValueError:
            raise TensegrityError(unknown_name("actuator", name, actuators)) from None
        if mode == "impedance":
            if not isinstance(value, ImpedanceSetPoint):
                raise TensegrityError(f"impedance of actuator {name} is {value!r}; give an ImpedanceSetPoint.")
            result[index] = value
            continue
        if not is_finite_number(value):
            raise TensegrityError(f"command to actuator {name} is {value!r}; give a finite number.")
        result[index] = value if isinstance(value, MovingPosition) else float(value)
    return result
