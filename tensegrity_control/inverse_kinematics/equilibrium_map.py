"""Map from actuator positions to equilibria, with derivatives: the interface that all kinds of robots share.

The derivatives of an equilibrium are cached as long as a reference to it exists, so that inverse kinematics, path and
feedback linearise it only once.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import singledispatch
from typing import Any, ClassVar, Generic, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.linear_models.modes import Mode
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.robot import Robot

E = TypeVar("E")
T = TypeVar("T")


class EquilibriumMap(ABC, Generic[E]):
    """Equilibria E of one robot for positions of its actuators; an equilibrium has at least a `pose`.

    Attributes:
        robot: robot with actuators and an output.
        home: equilibrium with the actuator positions of the robot file.
    """

    robot: Robot
    home: E
    path_tolerance: ClassVar[float | None] = None
    """m and rad, allowed difference between interpolated and actual poses between two equilibria of a path; above it,
    equilibria are added. None: the equilibria of the inverse kinematics are dense enough."""

    def __init__(self) -> None:
        self._sensitivities: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        self._periods: WeakKeyDictionary[Any, float] = WeakKeyDictionary()
        self._own = threading.local()

    def _in_this_thread(self, name: str, make: Callable[[], T]) -> T:
        """An object with arrays of its own, created once per thread, since plans are computed beside the controller."""
        if not hasattr(self._own, name):
            setattr(self._own, name, make())
        made: T = getattr(self._own, name)
        return made

    @abstractmethod
    def positions(self, equilibrium: E) -> Array:
        """(a,) positions of the actuators: rest lengths [m] of tendons, rad or m of joints."""

    @abstractmethod
    def start(self, equilibrium: E | None = None) -> E:
        """Equilibrium from which a motion may start, `home` for None; solved again unless this map computed it.

        Raises:
            TensegrityError: no motion can start from it; the message says why.
        """

    @abstractmethod
    def solve(self, positions: Array, start: E) -> E:
        """Stable equilibrium for actuator positions (a,) near another equilibrium, suitable for a path.

        Raises:
            TensegrityError: there is none.
        """

    def tensions(self, equilibrium: E) -> Array:
        """(c,) N of the members that must stay tight, in the order of `tension_floors`; empty for robots without
        them."""
        return np.zeros(0)

    def tensions_and_floors(self, equilibrium: E) -> dict[str, tuple[float, float]]:
        """Tension and tension floor [N] of every cable by name; of routed cables of every strand."""
        floors = self.tension_floors
        return dict(zip(floors, zip(self.tensions(equilibrium).tolist(), floors.values(), strict=True), strict=True))

    def tension_dynamics(self, equilibrium: E) -> tuple[Array, Array]:
        """Contributions of actuator motions to `tensions`, both (c, a).

        The first in N per m/s^2 or rad/s^2, by inertia, when the robot follows the actuators; the second in N per m or
        rad, as long as the robot has not followed.
        """
        none = np.zeros((0, len(self.robot.actuators)))
        return none, none

    def efforts(self, equilibrium: E) -> Array:
        """(a,) N or N m, efforts of the actuators at the equilibrium (tensions for tendons); zeros for robots that do
        not provide them."""
        return np.zeros(len(self.robot.actuators))

    def compliance(self, equilibrium: E) -> Array | None:
        """(6, 6) m and rad of the output per N and N m on it, with the actuators held; None for robots that do not
        provide it."""
        return None

    def force_capacity(self, equilibrium: E) -> float:
        """N, force on the output along its controlled axes that keeps tensions within their limits; NaN if unknown."""
        return float("nan")

    def modes(self, equilibrium: E) -> list[Mode]:
        """Vibration modes about the equilibrium with the actuators held.

        Raises:
            TensegrityError: the kind of robot does not provide them, or a motion without inertia remains.
        """
        raise TensegrityError(f"{self.robot.name}: robots of kind {self.robot.kind} have no modes to report.")

    @property
    def reach(self) -> float:
        """m, lever arm with which rotations of the output count like translations."""
        return 1.0

    @property
    def tension_floors(self) -> dict[str, float]:
        """N by name, tension floors."""
        return {}

    @abstractmethod
    def differentiate(self, equilibrium: E) -> Any:
        """Derivatives of an equilibrium by the actuator positions, with an attribute `pose` (6, a)."""

    @abstractmethod
    def _slowest_period(self, equilibrium: E) -> float:
        """Period [s] of its slowest small oscillation."""

    def sensitivity(self, equilibrium: E) -> Any:
        """Derivatives of an equilibrium by the actuator positions; computed once."""
        if equilibrium not in self._sensitivities:
            self._sensitivities[equilibrium] = self.differentiate(equilibrium)
        return self._sensitivities[equilibrium]

    def pose_jacobian(self, equilibrium: E) -> Array:
        """(6, a) m and rad of the output (about world axes) per m or rad of the actuators."""
        return np.asarray(self.sensitivity(equilibrium).pose)

    def slowest_period(self, equilibrium: E) -> float:
        """Period [s] of the slowest small oscillation about an equilibrium; computed once."""
        if equilibrium not in self._periods:
            self._periods[equilibrium] = self._slowest_period(equilibrium)
        return self._periods[equilibrium]


@singledispatch
def equilibrium_map(model: object, robot: Robot, **options: Any) -> EquilibriumMap[Any]:
    """Map of a robot; other kinds of models register theirs: `equilibrium_map.register(Model, make)`.

    Args:
        model: model of the robot; its type selects the map.
        options: `shapes_only` if only `solve` is needed and no plan, which allows robots that cannot be planned for;
            and options of the kind, such as `rigid_bars` of structures.

    Raises:
        TensegrityError: no map is registered for this kind of model.
    """
    kinds = " and ".join(f"{each.kind}s" for each in equilibrium_map.registry if each is not object)
    raise TensegrityError(
        f"{robot.name} is a {robot.kind}, for which no equilibrium map is registered; there are maps for {kinds}."
    )
