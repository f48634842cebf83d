"""Rate and zero-force length of a spring from its lengths under weights (001, section 7.4).

    length = zero-force length + force / rate,   force = mass · g

The lengths have measuring errors, the weights do not, so the line is fitted to the lengths. The coils of a closed
spring are in contact up to its initial tension; such points lie above the line of the others. They are detected,
starting with the lightest weight, and left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tensegrity_dynamics.robots.units import STANDARD_GRAVITY

from .line_fit import MIN_POINTS, CalibrationError, LineFit, fit_line


@dataclass(frozen=True)
class SpringFit:
    """Fit of a spring to its lengths under weights.

    Attributes:
        rate: spring rate [N/m]; `rate_interval`: its confidence interval (low, high).
        zero_length: length extrapolated to zero force [m], with its interval.
        initial_tension: force that opens the coils [N]; zero if no point has coils in contact.
        in_contact: indices of points with coils in contact. outliers: indices of other points left out.
        residuals: (n,) measured minus fitted length [m]. deviation: standard deviation [m].
        confidence: level of the confidence intervals.
    """

    rate: float
    rate_interval: tuple[float, float]
    zero_length: float
    zero_length_interval: tuple[float, float]
    initial_tension: float
    in_contact: tuple[int, ...]
    outliers: tuple[int, ...]
    residuals: tuple[float, ...]
    deviation: float
    confidence: float


def spring_from_weights(
    masses: Sequence[float],
    lengths: Sequence[float],
    *,
    resolution: float = 1.0e-4,
    confidence: float = 0.95,
    name: str = "the spring",
) -> SpringFit:
    """Fit a spring to its lengths under weights.

    Args:
        masses: (n,) masses including the hook [kg]. lengths: (n,) lengths between the eyes [m].
        resolution: resolution of the rule [m]. confidence: level of the confidence intervals.
        name: name of the spring in messages.

    Raises:
        CalibrationError: too few points in the linear region, or a spring that does not get longer.
    """
    forces = np.asarray(masses, dtype=np.float64) * STANDARD_GRAVITY
    measured = np.asarray(lengths, dtype=np.float64)
    if forces.shape != measured.shape or forces.ndim != 1 or forces.size < MIN_POINTS:
        raise CalibrationError(
            f"{name}: {forces.size} weights for {measured.size} lengths; hang {MIN_POINTS} or more weights on it."
        )
    if not (np.all(np.isfinite(forces)) and np.all(np.isfinite(measured)) and np.all(forces >= 0.0)):
        raise CalibrationError(f"{name}: masses must be finite and not negative, lengths finite; measure again.")
    order = np.argsort(forces, kind="stable")
    contact = _contact(forces[order], measured[order], resolution)
    linear = np.sort(order[contact:])
    fit = fit_line(
        forces[linear], measured[linear], confidence=confidence, resolution=resolution, what=f"{name}, linear region"
    )
    low, high = fit.slope_interval
    if low <= 0.0:
        raise CalibrationError(
            f"{name} does not surely get longer with weight ({fit.slope * 1e3:.3g} mm/N, or {low * 1e3:.3g}); use "
            "heavier weights that stretch it by several millimetres."
        )
    residuals = measured - fit.intercept - fit.slope * forces
    closed = order[:contact]
    initial = 0.0
    if contact:
        initial = max(0.0, (float(np.median(measured[closed])) - fit.intercept) / fit.slope)
    return SpringFit(
        rate=1.0 / fit.slope,
        rate_interval=(1.0 / high, 1.0 / low),
        zero_length=fit.intercept,
        zero_length_interval=fit.intercept_interval,
        initial_tension=initial,
        in_contact=tuple(int(k) for k in np.sort(closed)),
        outliers=tuple(int(linear[k]) for k in fit.outliers),
        residuals=tuple(float(each) for each in residuals),
        deviation=fit.deviation,
        confidence=confidence,
    )


def _contact(forces: np.ndarray, lengths: np.ndarray, resolution: float) -> int:
    """Number of the lightest points with coils in contact, i.e. clearly above the line of all heavier ones."""
    count = 0
    for k in range(1, forces.size - MIN_POINTS + 1):
        heavier: LineFit = fit_line(forces[k:], lengths[k:], resolution=resolution, what="the heavier weights")
        if heavier.slope <= 0.0:
            continue
        expected = heavier.intercept + heavier.slope * forces[:k]
        spread = math.hypot(max(heavier.deviation, resolution), resolution)
        # all points are above the line, the lightest clearly
        above = lengths[:k] - expected
        if np.all(above > 2.0 * spread) and above[0] > 4.0 * spread:
            count = k
    return count
