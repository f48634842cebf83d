"""Equations of motion reduced to independent coordinates (000, 1.2.35 and 1.2.36).

With a = G w' + g, K G = 0 and K g = k, and with the bias that is missing in the printed right-hand side,

    (G' M G) w' + G' (M g + c) = G' (p + tau + J' f).

"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..kinematics.independent_coordinates import IndependentCoordinates, independent_coordinates
from ..mechanism import Mechanism
from .equations_of_motion import Equations, equations


@dataclass(frozen=True, eq=False)
class ReducedEquations:
    """Equations mass w' + bias = G' tau (+ G' J' f) in independent coordinates; the bias includes the passive efforts.

    Attributes:
        coordinates: independent coordinates, with G and g. mass: (y, y). bias: (y,). full: equations before reduction.
    """

    coordinates: IndependentCoordinates
    mass: NDArray[np.float64]
    bias: NDArray[np.float64]
    full: Equations


def reduced_equations(mechanism: Mechanism, q: NDArray, v: NDArray) -> ReducedEquations:
    """Equations of motion in independent coordinates (000, 1.2.35 and 1.2.36); arguments and errors as `equations`."""
    coordinates = independent_coordinates(mechanism, q, v)
    full = equations(mechanism, q, v)
    basis = coordinates.basis
    bias = basis.T @ (full.mass @ coordinates.offset + full.bias - full.passive)
    return ReducedEquations(coordinates, basis.T @ full.mass @ basis, bias, full)
