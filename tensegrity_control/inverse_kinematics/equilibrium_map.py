"""The map from actuator positions to equilibria, with its derivatives: what the kinds of robot have in common.

An equilibrium that was solved for is kept with its derivatives as long as somebody holds it, so that the inverse
kinematics, the path and the feedback that follow each other on it linearise it once.
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
    """Equilibria E of one robot by the positions of its actuators; an equilibrium has at least a `pose`.

    Attributes:
        robot: with actuators and an output.
        home: the equilibrium with the actuators as the robot file has them.
    """

    robot: Robot
    home: E
    path_tolerance: ClassVar[float | None] = None
    """m and rad by which poses between two equilibria of a path may differ from the interpolated ones; where they do,
    more equilibria are solved in between. None: those of the inverse kinematics are dense enough."""

    def __init__(self) -> None:
        self._sensitivities: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        self._periods: WeakKeyDictionary[Any, float] = WeakKeyDictionary()
        self._own = threading.local()

    def _in_this_thread(self, name: str, make: Callable[[], T]) -> T:
        """Something with arrays of its own, made once in every thread: plans are made beside the control."""
        if not hasattr(self._own, name):
            setattr(self._own, name, make())
        made: T = getattr(self._own, name)
        return made

    @abstractmethod
    def positions(self, equilibrium: E) -> Array:
        """(a,) positions of the actuators: rest lengths [m] of tendons, rad or m of joints."""

    @abstractmethod
    def start(self, equilibrium: E | None = None) -> E:
        """The equilibrium, or `home` for None, from which a motion may start; it is solved anew unless this map did.

        Raises:
            TensegrityError: nothing can start from it, with the reason.
        """

    @abstractmethod
    def solve(self, positions: Array, start: E) -> E:
        """The stable equilibrium near another one for actuator positions (a,), fit to be on a path.

        Raises:
            TensegrityError: there is none.
        """

    def tensions(self, equilibrium: E) -> Array:
        """(c,) N of what must stay tight, in the order of `tension_floors`; empty where a kind has nothing such."""
        return np.zeros(0)

    def tension_dynamics(self, equilibrium: E) -> tuple[Array, Array]:
        """What motions of the actuators add to `tensions`, both (c, a).

        The first: N per m/s^2 or rad/s^2, by the masses where they follow; the second: N per m or rad, while they have
        not followed yet.
        """
        none = np.zeros((0, len(self.robot.actuators)))
        return none, none

    def efforts(self, equilibrium: E) -> Array:
        """(a,) N or N m with which the actuators hold it, tensions of tendons; zeros where a kind does not say."""
        return np.zeros(len(self.robot.actuators))

    def compliance(self, equilibrium: E) -> Array | None:
        """(6, 6) m and rad of the output per N and N m on it, actuators held; None where a kind does not say."""
        return None

    def force_capacity(self, equilibrium: E) -> float:
        """N that the output can take along its controlled axes with tensions within their limits; NaN where unknown."""
        return float("nan")

    def modes(self, equilibrium: E) -> list[Mode]:
        """Modes about it with the actuators held.

        Raises:
            TensegrityError: a kind does not say, or a motion without inertia remains.
        """
        raise TensegrityError(f"{self.robot.name}: robots of kind {self.robot.kind} have no modes to report.")

    @property
    def reach(self) -> float:
        """m, at which turning of the output counts like shifting."""
        return 1.0

    @property
    def tension_floors(self) -> dict[str, float]:
        """N by name, below which a tension shall not fall."""
        return {}

    @abstractmethod
    def _differentiate(self, equilibrium: E) -> Any:
        """Derivatives of an equilibrium with respect to the actuators, with an attribute `pose` (6, a)."""

    @abstractmethod
    def _slowest_period(self, equilibrium: E) -> float:
        """Period [s] of its slowest small oscillation."""

    def sensitivity(self, equilibrium: E) -> Any:
        """Derivatives of an equilibrium with respect to the actuators; made once."""
        if equilibrium not in self._sensitivities:
            self._sensitivities[equilibrium] = self._differentiate(equilibrium)
        return self._sensitivities[equilibrium]

    def pose_jacobian(self, equilibrium: E) -> Array:
        """(6, a) m and rad of the output (about world axes) per m or rad of the actuators."""
        return np.asarray(self.sensitivity(equilibrium).pose)

    def slowest_period(self, equilibrium: E) -> float:
        """Period [s] of the slowest small oscillation about an equilibrium; made once."""
        if equilibrium not in self._periods:
            self._periods[equilibrium] = self._slowest_period(equilibrium)
        return self._periods[equilibrium]


@singledispatch
def equilibrium_map(model: object, robot: Robot, **options: Any) -> EquilibriumMap[Any]:
    """The map of a robot; another kind of model registers its own: `equilibrium_map.register(Model, make)`.

    Args:
        model: of the robot, whose type decides. options: `shapes_only` where `solve` alone is needed and no plan is
            made, which takes robots that no plan can be made for; and those of the kind, as `rigid_bars` of structures.

    Raises:
        TensegrityError: no map is registered for this kind of model.
    """
    kinds = ", ".join(sorted(each.__name__ for each in equilibrium_map.registry if each is not object))
    raise TensegrityError(
        f"{robot.name}: there is no equilibrium map for a model of type {type(model).__name__}; registered are {kinds}."
    )
