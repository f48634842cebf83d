"""What every estimator of a robot's configuration takes and gives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from .errors import TensegrityError, is_finite_number
from .numerics.short_repr import ShortRepr
from .robots.model import Pose

LARGEST_READING = 1e9
"""m, rad, N or N m beyond which a number is no reading of any robot; what is computed from smaller ones is finite."""


def is_reading(value: float) -> bool:
    """Whether a number can have been read: finite, and no larger than `LARGEST_READING`."""
    return abs(value) <= LARGEST_READING


def check_readings(positions: Mapping[str, float]) -> None:
    """Raise TensegrityError where a position [m or rad by actuator] can have been read from no robot; says which."""
    if not isinstance(positions, Mapping):
        raise TensegrityError(f"positions are {positions!r}; give numbers by actuator name, as a dict.")
    for name, value in positions.items():
        if not is_finite_number(value):
            raise TensegrityError(f"{name} is reported to be at {value!r}; give a finite number in m or rad.")
        if not is_reading(value):
            raise TensegrityError(
                f"{name} is reported to be at {value:g} m or rad; finite numbers up to {LARGEST_READING:g} can be read."
            )


@dataclass(frozen=True, eq=False, repr=False)
class Estimate(ShortRepr):
    """An estimated configuration in motion.

    Attributes:
        time: s.
        configuration: nodes (n, 3) m of a structure, q (nq,) of a mechanism.
        velocity: (n, 3) m/s or (nv,), from the last two configurations or by an observer.
        pose, twist: of the output and its motion, (6,) m/s and rad/s; None without one.
        tensions: N by member or cable; NaN where the model does not tell.
        slack: tendons, springs and cables that carry nothing.
        residual: largest force left [N or N m]. softest: lowest stiffness; NaN where neither is computed.
        stable: whether the robot stays in this configuration.
        converged: the configuration belongs to the readings of this time; False: it is the last one that did.
        reason: why not, or empty.
        equilibrium: of the kind's own class, with what else it knows.
    """

    time: float
    configuration: NDArray[np.float64]
    velocity: NDArray[np.float64]
    pose: Pose | None
    twist: NDArray[np.float64] | None
    tensions: Mapping[str, float]
    slack: tuple[str, ...]
    residual: float
    softest: float
    stable: bool
    converged: bool
    reason: str = ""
    equilibrium: Any = None


E = TypeVar("E", bound=Estimate)


def without_time(last: E, time: float) -> E:
    """The last estimate, as an answer to readings of a time [s] that is none."""
    return replace(last, converged=False, reason=f"readings at {time} s; their time must be a finite number.")


class Estimator(ABC):
    """Configurations from what actuators say."""

    takes_payloads: ClassVar[bool] = False
    """Whether it reckons with payloads that come and go, by `attach` and `detach`."""

    @property
    @abstractmethod
    def actuators(self) -> tuple[str, ...]:
        """Names of the actuators whose positions `update` takes."""

    @property
    def notes(self) -> dict[str, str]:
        """What a user should know about how the estimates come about, for diagnostics; nothing by itself."""
        return {}

    @abstractmethod
    def reset(self) -> None:
        """Forget the past; the next configuration is sought from the one at rest."""

    @abstractmethod
    def solve(self, positions: Mapping[str, float], method: str = "newton") -> Estimate:
        """The equilibrium for positions of some actuators [m or rad]; the others keep those of the robot file.

        Raises:
            TensegrityError: a name or the method is unknown. NoEquilibriumError: there is no equilibrium.
        """

    @abstractmethod
    def update(
        self,
        time: float,
        positions: Mapping[str, float],
        efforts: Mapping[str, float] | None = None,
        tensions: Mapping[str, float] | None = None,
    ) -> Estimate:
        """The estimate at a time [s].

        Args:
            positions: m or rad by actuator. efforts: N or N m by actuator since the last time, and tensions: N by cable
                where they are measured; only observers look at these two.

        The same time again gives the same answer. A time before the last one starts anew; one that is not finite is
        none, and changes nothing. Readings that are not finite,
        too large for any robot, unknown or without an equilibrium give the last configuration with `converged` False
        and the reason; efforts and tensions that are not finite or too large count as not read.
        """


class QuasiStaticEstimator(Estimator):
    """An estimator of equilibria, each solved for from the last one; velocities are differences between them."""

    last: Any
    """The last estimate."""

    @abstractmethod
    def _next(self, positions: Mapping[str, float], last: Any) -> Any:
        """The equilibrium at positions [m or rad by actuator], from the last one. Raises TensegrityError."""

    @abstractmethod
    def _travel(self, last: Any, equilibrium: Any) -> NDArray[np.float64]:
        """From the last estimate to an equilibrium, as a velocity times 1 s."""

    @abstractmethod
    def _estimate(self, time: float, equilibrium: Any, velocity: NDArray[np.float64], reason: str = "") -> Any:
        """The estimate at a time [s]; `reason` says why the equilibrium does not belong to its readings."""

    def update(
        self,
        time: float,
        positions: Mapping[str, float],
        efforts: Mapping[str, float] | None = None,
        tensions: Mapping[str, float] | None = None,
    ) -> Any:
        """See `Estimator.update`; efforts and tensions do not count."""
        last = self.last
        if time == last.time:
            return last
        if not np.isfinite(time):
            return without_time(last, time)
        if time < last.time:
            self.reset()
            last = self.last
        still = np.zeros_like(last.velocity)
        try:
            check_readings(positions)
            found = self._next(positions, last)
        except TensegrityError as error:
            self.last = self._estimate(time, last.equilibrium, still, str(error))
            return self.last
        interval = time - last.time
        moving = np.isfinite(interval) and last.converged
        self.last = self._estimate(time, found, self._travel(last, found) / interval if moving else still)
        return self.last
