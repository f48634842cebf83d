"""Payloads carried by bodies and constant wrenches on bodies (W f of 000, 1.2.31)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError, is_finite_number
from ..numerics.number_array import number_array

LOAD_BODY, LOAD_POINT, LOAD_MOMENT, LOAD_FORCE, LOAD_COLUMNS = 0, 1, 4, 7, 10
"""Columns of a load in the arrays of a mechanism: body, first column of point, moment and force, number of columns."""

LARGEST = 1e9
"""Largest accepted value of a payload [kg, m or kg m^2]; with larger values, sums and products can overflow."""


def _zeros() -> NDArray[np.float64]:
    return np.zeros(3)


@dataclass(frozen=True, eq=False)
class Payload:
    """Mass fixed to a body.

    Args:
        name: unique among payloads and loads. body: body that carries it. mass: mass [kg].
        point: (3,) centre of mass in the frame of the body [m].
        inertia: (3, 3) inertia about the centre of mass in axes of the body [kg m^2].
    """

    name: str
    body: str
    mass: float
    point: NDArray[np.float64] = field(default_factory=_zeros)
    inertia: NDArray[np.float64] = field(default_factory=lambda: np.zeros((3, 3)))

    def __post_init__(self) -> None:
        if not is_finite_number(self.mass):
            raise TensegrityError(f"payload {self.name}: mass is {self.mass!r}; give a finite number of kg.")
        if not 0.0 <= self.mass <= LARGEST:
            raise TensegrityError(
                f"payload {self.name}: mass {self.mass} kg must be finite, not below zero and at most {LARGEST:g} kg."
            )
        object.__setattr__(self, "mass", float(self.mass))
        for what, shape, words in (("point", (3,), "position in m"), ("inertia", (3, 3), "inertia in kg m^2")):
            array = number_array(getattr(self, what), f"payload {self.name}: its {words}")
            if array.shape != shape or not np.isfinite(array).all():
                raise TensegrityError(f"payload {self.name}: {what} must be finite with shape {shape}.")
            if np.max(np.abs(array)) > LARGEST:
                raise TensegrityError(f"payload {self.name}: {what} is beyond {LARGEST:g}; give m and kg m^2.")
            array.setflags(write=False)
            object.__setattr__(self, what, array)
        moments = np.linalg.eigvalsh(self.inertia)
        small = 1e-9 * float(np.abs(self.inertia).max())
        if not np.allclose(self.inertia, self.inertia.T) or moments[0] < -small:
            raise TensegrityError(f"payload {self.name}: the inertia must be symmetric and not negative.")
        if moments[2] > moments[0] + moments[1] + small:
            raise TensegrityError(
                f"payload {self.name}: no body has this inertia: the largest principal moment {moments[2]:.4g} kg m^2 "
                f"is above the sum of the others, {moments[0] + moments[1]:.4g}."
            )


@dataclass(frozen=True, eq=False)
class Load:
    """Constant wrench: a force at a point of a body, and a moment.

    Args:
        name: unique among payloads and loads. body: body on which it acts.
        force, moment: (3,) N and N m in world axes, independent of the motion of the body.
        point: (3,) point of application in the frame of the body [m].
    """

    name: str
    body: str
    force: NDArray[np.float64] = field(default_factory=_zeros)
    moment: NDArray[np.float64] = field(default_factory=_zeros)
    point: NDArray[np.float64] = field(default_factory=_zeros)

    def __post_init__(self) -> None:
        for what in ("force", "moment", "point"):
            array = np.array(getattr(self, what), dtype=np.float64)
            if array.shape != (3,) or not np.isfinite(array).all():
                raise TensegrityError(f"load {self.name}: {what} must be three finite numbers.")
            array.setflags(write=False)
            object.__setattr__(self, what, array)
