"""Robust line fit between the readings of a sensor and rest lengths (001, section 7.4).

    length = intercept + slope · reading

Least squares with soft-l1 loss yield a line that is robust against outliers. Points with a larger distance from it than
random errors explain are reported and left out. Ordinary least squares on the remaining points yield slope, intercept
and their confidence intervals (Student's t with n − 2 degrees of freedom).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robots.units import LARGEST

from ..spools.spool import Line

MIN_POINTS = 3
"""Smallest number of points for a line with residuals."""
MAX_OUTLIER_SHARE = 1.0 / 3.0
"""Largest share of outliers; with a larger share the line is ambiguous."""
SUSPECT_DEVIATIONS = 3.5
"""Distance from the line, in robust standard deviations, above which a point is tested as an outlier."""
FALSE_OUTLIER_PROBABILITY = 0.01
"""Largest probability that one point of a valid set is rejected as an outlier."""
MAX_STEPS = 200
"""Largest number of iterations in the search for the line with the smallest loss."""
PLAUSIBLE_SLOPE = 1.08
"""Largest ratio between a slope and that by the spool radius, or its inverse, without a warning."""
WARNING_UNCERTAINTY, MAX_UNCERTAINTY = 0.02, 0.2
"""Half width of the confidence interval of the slope, relative to the slope, that causes a warning, or an error."""


class CalibrationError(TensegrityError):
    """Calibration that cannot be made, saved or loaded; the message states the calibration, the reason and the
    remedy."""


@dataclass(frozen=True)
class LineFit:
    """Fitted line y = intercept + slope · x, with its uncertainty.

    Attributes:
        slope, intercept: parameters of the line.
        slope_interval, intercept_interval: confidence intervals (low, high) at the level `confidence`.
        residuals: (n,) measured minus fitted y, including outliers. outliers: indices of points left out.
        deviation: standard deviation of the points used. confidence: level of the intervals.
    """

    slope: float
    intercept: float
    slope_interval: tuple[float, float]
    intercept_interval: tuple[float, float]
    residuals: tuple[float, ...]
    outliers: tuple[int, ...]
    deviation: float
    confidence: float

    @property
    def line(self) -> Line:
        """Line without its statistics; raises TensegrityError if the slope is zero."""
        return Line(self.slope, self.intercept)


def fit_line(
    x: Sequence[float] | NDArray[np.float64],
    y: Sequence[float] | NDArray[np.float64],
    *,
    confidence: float = 0.95,
    resolution: float = 0.0,
    what: str = "the line",
) -> LineFit:
    """Fit a line robustly.

    Args:
        x, y: (n,) at least three points with at least two different x; only y has errors.
        confidence: level of the confidence intervals, between 0 and 1.
        resolution: resolution of y; smaller deviations count as zero, so that rounded points are not outliers.
        what: name of the line in error messages.

    Raises:
        CalibrationError: too few, equal, non-finite or contradictory points.
    """
    xs, ys = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if xs.ndim != 1 or xs.shape != ys.shape or xs.size < MIN_POINTS:
        raise CalibrationError(
            f"{what}: {xs.size} readings for {ys.size} values; give at least {MIN_POINTS} points, better five or more."
        )
    if not (np.all(np.isfinite(xs)) and np.all(np.isfinite(ys))):
        raise CalibrationError(f"{what}: some points are not finite numbers; measure them again.")
    if max(np.max(np.abs(xs)), np.max(np.abs(ys))) > LARGEST:
        raise CalibrationError(f"{what}: a point has a number above {LARGEST:g}; look at the units.")
    if not 0.0 < confidence < 1.0:
        raise CalibrationError(f"{what}: confidence is {confidence}, must lie between 0 and 1, such as 0.95.")
    middle, spread = float(np.median(xs)), float(np.ptp(xs))
    if spread <= 1e-9 * max(1.0, float(np.max(np.abs(xs)))):
        raise CalibrationError(f"{what}: all readings are the same; move it to positions far apart and measure there.")
    u = (xs - middle) / spread
    floor = max(resolution, 1e-12 * float(np.max(np.abs(ys))), np.finfo(np.float64).tiny)
    robust = _soft(u, ys, _start(u, ys), floor)
    keep = _inliers(u, ys, np.abs(robust), SUSPECT_DEVIATIONS * _scale(robust, floor), floor)
    outliers = np.flatnonzero(~keep)
    if outliers.size > MAX_OUTLIER_SHARE * xs.size or np.unique(xs[keep]).size < 2 or keep.sum() < MIN_POINTS:
        raise CalibrationError(
            f"{what}: {outliers.size} of {xs.size} points do not lie on the line that the others make; measure again, "
            "and look for a slipping coupling or a stretched string."
        )
    return _report(ys, u, keep, middle, spread, confidence, floor)


def _start(u: NDArray[np.float64], ys: NDArray[np.float64]) -> NDArray[np.float64]:
    """Theil-Sen line (median slope of all pairs), robust against one third of outliers."""
    i, j = np.triu_indices(u.size, 1)
    apart = np.abs(u[i] - u[j]) > 1e-12
    slope = float(np.median((ys[j] - ys[i])[apart] / (u[j] - u[i])[apart]))
    return np.array([float(np.median(ys - slope * u)), slope])


def _soft(
    u: NDArray[np.float64], ys: NDArray[np.float64], line: NDArray[np.float64], floor: float
) -> NDArray[np.float64]:
    """(n,) residuals of the line with the smallest soft-l1 loss, by iteratively reweighted least squares."""
    off = ys - line[0] - line[1] * u
    scale = _scale(off, floor)
    for _ in range(MAX_STEPS):
        weights = 1.0 / np.hypot(1.0, off / scale)
        weights /= weights.sum()
        middle, height = float(weights @ u), float(weights @ ys)
        spread = float(weights @ (u - middle) ** 2)
        slope = float(weights @ ((u - middle) * (ys - height))) / spread if spread > 0.0 else 0.0
        before, off = off, ys - height - slope * (u - middle)
        if np.max(np.abs(off - before)) <= 1e-9 * scale:
            break
    return off


def _scale(residuals: NDArray[np.float64], floor: float) -> float:
    """Standard deviation, estimated from the median absolute deviation, for two fitted parameters."""
    size = residuals.size
    middle = 1.4826 * float(np.median(np.abs(residuals)))
    return max(middle * math.sqrt(size / max(size - 2, 1)), floor)


def _student(probability: float, freedom: int) -> float:
    """Quantile of Student's t distribution."""
    from scipy.special import stdtrit  # local: scipy.stats would take longer to import than the driver

    return float(stdtrit(freedom, probability))


def _inliers(
    u: NDArray[np.float64], ys: NDArray[np.float64], away: NDArray[np.float64], limit: float, floor: float
) -> NDArray[np.bool_]:
    """(n,) mask of points on the line: within `limit`, or within the prediction interval of the points that are."""
    keep = away <= limit
    if u.size == MIN_POINTS:
        keep[:] = True  # with three points no outlier can be identified
    for k in np.argsort(away):
        if keep[k] or keep.sum() < MIN_POINTS:
            continue
        count = int(keep.sum())
        centre = float(u[keep].mean())
        spread = float(((u[keep] - centre) ** 2).sum())
        if spread == 0.0:
            continue
        slope = float(((u[keep] - centre) * ys[keep]).sum()) / spread
        off = ys - ys[keep].mean() - slope * (u - centre)
        deviation = max(math.sqrt(float((off[keep] ** 2).sum()) / (count - 2)), floor)
        distance = deviation * math.sqrt(1.0 + 1.0 / count + (u[k] - centre) ** 2 / spread)
        if abs(off[k]) / distance <= _student(1.0 - 0.5 * FALSE_OUTLIER_PROBABILITY / u.size, count - 2):
            keep[k] = True
    return keep


def _report(
    ys: NDArray[np.float64],
    u: NDArray[np.float64],
    keep: NDArray[np.bool_],
    middle: float,
    spread: float,
    confidence: float,
    floor: float,
) -> LineFit:
    """Least squares on the points of the mask `keep`, with confidence intervals."""
    count = int(keep.sum())
    centre = float(u[keep].mean())
    lever = float(((u[keep] - centre) ** 2).sum())
    slope = float(((u[keep] - centre) * (ys[keep] - ys[keep].mean())).sum()) / lever
    height = float(ys[keep].mean())
    residuals = ys - height - slope * (u - centre)
    deviation = math.sqrt(float((residuals[keep] ** 2).sum()) / (count - 2))
    quantile = _student(0.5 + 0.5 * confidence, count - 2)
    # rounding to the resolution is an additional error, which equal points do not show
    error = max(deviation, floor / math.sqrt(12.0))
    zero = -middle / spread  # u at x = 0
    slope_half = quantile * error / math.sqrt(lever)
    intercept_half = quantile * error * math.sqrt(1.0 / count + (zero - centre) ** 2 / lever)
    intercept = height + slope * (zero - centre)
    slope, slope_half = slope / spread, slope_half / spread
    return LineFit(
        slope=slope,
        intercept=intercept,
        slope_interval=(slope - slope_half, slope + slope_half),
        intercept_interval=(intercept - intercept_half, intercept + intercept_half),
        residuals=tuple(float(each) for each in residuals),
        outliers=tuple(int(each) for each in np.flatnonzero(~keep)),
        deviation=deviation,
        confidence=confidence,
    )


@dataclass(frozen=True)
class CalibrationCheck:
    """Usable fit of a spool, with warnings.

    Attributes:
        fit: fitted line. warnings: one sentence each; empty for a good calibration.
    """

    fit: LineFit
    warnings: tuple[str, ...]


def calibrate_spool(
    name: str,
    readings: Sequence[float],
    lengths: Sequence[float],
    *,
    expected_slope: float | None = None,
    limits: tuple[float, float] | None = None,
    resolution: float = 0.0,
    confidence: float = 0.95,
) -> CalibrationCheck:
    """Calibrate the sensor of one spool from measured rest lengths.

    Args:
        name: name of the actuator, for messages.
        readings: (n,) sensor readings [counts or rad]. lengths: (n,) rest lengths, measured with a rule [m].
        expected_slope: slope by spool radius and wiring [m per count or rad], or None.
        limits: limits (low, high) of the actuator [m]; the points should span at least half of them. None: not checked.
        resolution: resolution of the rule [m]. confidence: level of the confidence intervals.

    Raises:
        CalibrationError: no line, or a slope that is zero, uncertain or of the wrong sign.
    """
    fit = fit_line(readings, lengths, confidence=confidence, resolution=resolution, what=name)
    low, high = fit.slope_interval
    if low <= 0.0 <= high:
        raise CalibrationError(
            f"{name}: the length does not depend on the reading (slope {low:.3g} to {high:.3g}); "
            "the sensor does not turn with the spool, or the points lie too close together."
        )
    uncertainty = 0.5 * (high - low) / abs(fit.slope)
    if uncertainty > MAX_UNCERTAINTY:
        raise CalibrationError(
            f"{name}: the slope is known to ±{uncertainty * 100:.0f} % only, deviations are "
            f"{fit.deviation * 1e3:.1f} mm; measure more points, further apart, with the tendon tight."
        )
    warnings = [
        f"{name}: point {k + 1} ({readings[k]:g}, {lengths[k] * 1e3:.1f} mm) is {fit.residuals[k] * 1e3:+.1f} mm off "
        "the line and was left out; measure it again."
        for k in fit.outliers
    ]
    if uncertainty > WARNING_UNCERTAINTY:
        warnings.append(
            f"{name}: the slope is known to ±{uncertainty * 100:.1f} % only; measure more points, further apart."
        )
    if expected_slope is not None:
        if expected_slope * fit.slope < 0.0:
            raise CalibrationError(
                f"{name}: the length changes by {fit.slope:.3g} m per unit where {expected_slope:.3g} is expected: the "
                "sensor runs backwards. Exchange its outer wires, or set its direction in the robot file."
            )
        if doubt := doubtful_slope(name, fit.slope / expected_slope):
            warnings.append(doubt)
    if limits is not None:
        kept = [lengths[k] for k in range(len(lengths)) if k not in fit.outliers]
        covered = (max(kept) - min(kept)) / (limits[1] - limits[0])
        if covered < 0.5:
            warnings.append(
                f"{name}: the points cover {covered * 100:.0f} % of its range; measure near both limits as well."
            )
    return CalibrationCheck(fit, tuple(warnings))


def doubtful_slope(name: str, ratio: float) -> str:
    """Warning about the slope of a sensor [relative to that by the spool radius], "" if it is plausible."""
    if 1.0 / PLAUSIBLE_SLOPE <= ratio <= PLAUSIBLE_SLOPE:
        return ""
    return (
        f"{name}: the slope is {ratio:.2f} times what the spool radius gives; check the radius in the robot file, and "
        "that the string winds in one layer."
    )


class SteadyReading:
    """Reading of a calibration point: mean over several cycles of a sensor at rest.

    Args:
        name: name of the actuator, for messages.
        cycles: number of new readings. scatter: largest difference between two of them [counts or rad].
    """

    def __init__(self, name: str, *, cycles: int = 25, scatter: float = 3.0) -> None:
        self.name, self.cycles, self.scatter = name, cycles, scatter
        self._readings: list[float] = []
        self._missing = 0

    def add(self, reading: float | None, age: int = 0) -> float | None:
        """Add the reading of one cycle; returns the mean when there are enough readings, else None.

        Args:
            reading: sensor reading [counts or rad], or None. age: cycles since it was measured.

        Raises:
            CalibrationError: the sensor moved, or gave no reading for `cycles` cycles.
        """
        if reading is None or not math.isfinite(reading) or age > 0:
            self._missing += 1
            if self._missing >= self.cycles:
                raise CalibrationError(f"{self.name}: its sensor gives no fresh reading; check its plug.")
            return None
        self._readings.append(reading)
        moved = max(self._readings) - min(self._readings)
        if moved > self.scatter:
            self._readings.clear()
            raise CalibrationError(
                f"{self.name}: its sensor moved by {moved:g} while it was read; let it rest, then read it again."
            )
        return math.fsum(self._readings) / len(self._readings) if len(self._readings) >= self.cycles else None
