"""What every simulator of a robot can do: be commanded, pushed, stepped in time and observed."""

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
"""What the values of a command mean."""
SHORT_STEP = 2e-5
"""s, explicit steps below which lock-step takes the implicit method, and `tensegrity simulate` names it."""
IMPLICIT_STEP = 1e-3
"""s, default step of the implicit method. Stability does not limit it; it damps motions that are fast beside it."""


@dataclass(frozen=True)
class Energy:
    """Energies [J], and what was put in and taken out since the start.

    Attributes:
        kinetic, elastic, gravity: of the present state.
        actuators: work of the actuators. forces: work of applied forces, without weight; what
            payloads that come and go and a gravity that changes bring, too.
        damping: what dampers turned to heat, those of joints and of the ground too.
        winding: what stretched cable took along onto pulleys (mechanisms; convention of 000, 3.1.9: winding
            moves the rest length at constant elongation).
        ground: of the present state, what the ground has taken up elastically. friction: what sliding on it, and
            Coulomb friction in joints, turned to heat. collisions: of the present state, what rods that press each
            other have taken up.
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
        """What stays the same [J], but for what an integrator itself takes out (the implicit ones do)."""
        return self.total - self.actuators - self.forces + self.damping + self.winding + self.friction


@dataclass(frozen=True, eq=False, repr=False)
class Observation(ShortRepr):
    """What sensors of an ideal robot would read.

    Attributes:
        time: s. lengths, rest_lengths, tensions: by member or cable name, m and N (bars: negative in compression).
        positions, rates, efforts: by actuator: rest length [m], its rate [m/s] and tension [N] of a tendon; rad or m,
            rad/s or m/s, N m or N of a joint.
        pose: of the output frame, or None. twist: (6,) linear m/s and angular rad/s of it, or None.
        contacts: (3,) N in world axes by name of the node that touches the ground, what the ground exerts on it.
        imus: (3,) m/s^2 by name of the rod, in its axes, see `structures.imu`.
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
    """Of an `Observation`, with the same names, what stands on the bus in every period; quickly made."""

    lengths: dict[str, float]
    rest_lengths: dict[str, float]
    tensions: dict[str, float]
    positions: dict[str, float]
    rates: dict[str, float]
    efforts: dict[str, float]


class Simulator(ABC):
    """One robot in time, in steps of fixed length.

    Attributes:
        integrator: its name. time_step: s. shortest_period: s, of the robot at the start; steps of explicit integrators
            must be well below it.
    """

    integrator: str
    time_step: float
    shortest_period: float

    @property
    def note(self) -> str:
        """What a user should know about the run so far, empty where there is nothing."""
        return ""

    @property
    def details(self) -> dict[str, str]:
        """What diagnostics say of parts of the robot at the present state, by name, such as cables that slip."""
        return {}

    @property
    @abstractmethod
    def time(self) -> float:
        """s since the start; counted in steps, so that it never drifts."""

    @property
    @abstractmethod
    def state(self) -> Any:
        """A copy of the present state: a `ConfigurationState` with its time, of the kind's own class."""

    @abstractmethod
    def command(self, mode: str, values: Mapping[str, Any], *, age: float = 0.0, period: float = 0.0) -> None:
        """Set points of some actuators, held from now on; the others keep theirs.

        Args:
            mode: "position" [m or rad], "velocity" [m/s or rad/s], "effort" [N or N m] or "impedance".
            values: by actuator name: a number, a position also as a `MovingPosition`, or an `ImpedanceSetPoint`.
            age: s that have passed since the command was right; set points that move on have done so meanwhile.
            period: s between two commands of the sender, 0 where unknown; see `impedance`.

        Raises:
            TensegrityError: unknown mode or actuator, a number that is not finite, or an actuator that has no such
                mode (tendons of structures no impedance).
        """

    @property
    def without_impedance(self) -> Mapping[str, str]:
        """Why an actuator has no impedance mode, by name; all where a kind of robot does not know it."""
        return {}

    @abstractmethod
    def apply_forces(self, forces: Mapping[str, ArrayLike] | ArrayLike | None) -> None:
        """Steady forces from now on, beside the weight; None takes all of them away.

        Args:
            forces: by name of what can be pushed: (3,) N on a node or on a body's origin, or (6,) N and N m on a body,
                in world axes.

        Raises:
            TensegrityError: unknown name, wrong shape, or numbers that are not finite.
        """

    def set_gravity(self, gravity: ArrayLike) -> None:
        """Another gravity (3,) m/s^2 from now on. Raises TensegrityError where a kind of robot cannot."""
        raise TensegrityError("the gravity of this kind of robot cannot change while it is simulated.")

    def attach(
        self, name: str, body: str, mass: float, at: ArrayLike = (0.0, 0.0, 0.0), inertia: ArrayLike | None = None
    ) -> None:
        """Fix a payload to a body or node, or move it. Raises TensegrityError where a kind of robot cannot."""
        raise TensegrityError("payloads of this kind of robot cannot change while it is simulated.")

    def detach(self, name: str) -> None:
        """Take a payload away. Raises TensegrityError where a kind of robot cannot, or there is none of that name."""
        raise TensegrityError("payloads of this kind of robot cannot change while it is simulated.")

    @abstractmethod
    def set_state(self, configuration: ArrayLike, velocity: ArrayLike | None = None) -> None:
        """Put the robot somewhere else, at rest without a velocity; what its constraints forbid is taken out.

        Raises:
            TensegrityError: wrong shape, or numbers that are not finite.
        """

    @abstractmethod
    def set_motion(self, velocity: ArrayLike) -> None:
        """Give the robot a velocity, of the shape that its states have; what its constraints forbid is taken out.

        Raises:
            TensegrityError: wrong shape, or numbers that are not finite.
        """

    def linearise(self, inputs: str = "", *, reduced: bool = False) -> LinearModel:
        """The linear model at the present state; see `Simulation.linearise`.

        Raises:
            TensegrityError: the kind of robot has no linear model, or none with these inputs.
        """
        raise TensegrityError("this kind of robot has no linear model.")

    @abstractmethod
    def advance(self, steps: int) -> None:
        """Many steps in one call. Raises TensegrityError where the motion cannot be followed."""

    def step_arrays(
        self, set_points: ArrayLike | None = None, mode: str = "position", steps: int = 1
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Steps with set points (a,) of all actuators in their order, or as before; returns configuration and velocity.

        What it returns may be the simulator's own arrays: read them before the next step, or copy them.

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
    """In the order of set points."""

    @abstractmethod
    def observe(self) -> Observation:
        """Sensors at the present state."""

    def observe_sensors(self) -> SensorReadings | Observation:
        """The part of `observe` that real sensors give, or all of it."""
        return self.observe()

    @abstractmethod
    def energy(self) -> Energy:
        """Energies at the present state [J]."""

    @abstractmethod
    def reset(self) -> None:
        """Back to the start, at rest, actuators holding, without applied forces."""

    @abstractmethod
    def hold(self) -> None:
        """All actuators hold where they are."""


def checked_commands(mode: str, values: Mapping[str, Any], actuators: tuple[str, ...]) -> dict[int, Any]:
    """Commands by actuator index.

    Raises:
        TensegrityError: unknown mode or actuator, or a number that is not finite.
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
