"""Interface of the estimators of robot configurations."""

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
"""Largest valid reading [m, rad, N or N m]; results computed from smaller values are finite."""


def is_reading(value: float) -> bool:
    """Whether a number is a valid reading: finite and not larger than `LARGEST_READING`."""
    return abs(value) <= LARGEST_READING


def check_readings(positions: Mapping[str, float]) -> None:
    """Raise TensegrityError if a position [m or rad by actuator] is not a valid reading; the message contains it."""
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
    """Estimated configuration and motion.

    Attributes:
        time: time [s].
        configuration: nodes (n, 3) [m] of a structure, q (nq,) of a mechanism.
        velocity: (n, 3) [m/s] or (nv,), from the last two configurations or from an observer.
        pose, twist: pose of the output and its twist (6,) [m/s and rad/s]; None without an output.
        tensions: tensions by member or cable [N]; NaN if the model does not provide them.
        slack: tendons, springs and cables without tension.
        residual: largest remaining force [N or N m]. softest: lowest stiffness. NaN if they are not computed.
        stable: whether the equilibrium is stable.
        converged: whether the configuration belongs to the readings of this time; if not, it is the last valid one.
        reason: reason if not converged, or empty.
        equilibrium: equilibrium of the class of the kind of robot, with further data.
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
    """Last estimate as a result for readings with an invalid time [s]."""
    return replace(last, converged=False, reason=f"readings at {time} s; their time must be a finite number.")


class Estimator(ABC):
    """Base class of estimators of configurations from actuator readings."""

    takes_payloads: ClassVar[bool] = False
    """Whether it supports payloads that change at run time, by `attach` and `detach`."""

    @property
    @abstractmethod
    def actuators(self) -> tuple[str, ...]:
        """Names of the actuators whose positions are inputs of `update`."""

    @property
    def notes(self) -> dict[str, str]:
        """Notes for the user on the estimation, for diagnostics; empty by default."""
        return {}

    @abstractmethod
    def reset(self) -> None:
        """Reset to the initial state; the search for the next configuration starts from the equilibrium."""

    @abstractmethod
    def solve(self, positions: Mapping[str, float], method: str = "newton") -> Estimate:
        """Equilibrium for positions of some actuators [m or rad]; the others have the positions of the robot file.

        Raises:
            TensegrityError: a name or the method is unknown.
            NoEquilibriumError: there is no equilibrium.
        """

    @abstractmethod
    def update(
        self,
        time: float,
        positions: Mapping[str, float],
        efforts: Mapping[str, float] | None = None,
        tensions: Mapping[str, float] | None = None,
    ) -> Estimate:
        """Estimate at a time [s].

        Args:
            positions: positions by actuator [m or rad].
            efforts: efforts by actuator since the last time [N or N m]. tensions: measured tensions by cable [N]. Only
                observers use these two.

        A call with the same time returns the same estimate. A time before the last one restarts the estimator. A time
        that is not finite has no effect. Readings that are not finite, too large, unknown or without an equilibrium
        give the last configuration with `converged` False and the reason. Efforts and tensions that are not finite or
        too large are ignored.
        """


class QuasiStaticEstimator(Estimator):
    """Estimator of equilibria, each computed from the last one; velocities are finite differences."""

    last: Any
    """The last estimate."""

    @abstractmethod
    def _next(self, positions: Mapping[str, float], last: Any) -> Any:
        """Equilibrium at positions [m or rad by actuator], starting from the last one. Raises TensegrityError."""

    @abstractmethod
    def _travel(self, last: Any, equilibrium: Any) -> NDArray[np.float64]:
        """Displacement from the last estimate to an equilibrium, as a velocity times 1 s."""

    @abstractmethod
    def _estimate(self, time: float, equilibrium: Any, velocity: NDArray[np.float64], reason: str = "") -> Any:
        """Estimate at a time [s]; `reason` is the reason if the equilibrium does not belong to its readings."""

    def update(
        self,
        time: float,
        positions: Mapping[str, float],
        efforts: Mapping[str, float] | None = None,
        tensions: Mapping[str, float] | None = None,
    ) -> Any:
        """See `Estimator.update`; efforts and tensions are ignored."""
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
