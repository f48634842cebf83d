"""Axes of a sweep with their values, and the order of the points.

Points are visited in boustrophedon order (alternating directions), so that each point is a neighbour of the previous
one; the search for a pose starts from the last solution.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.errors import TensegrityError, unknown_name
from tensegrity_dynamics.robots.output_frame import AXES
from tensegrity_dynamics.robots.quantities import read_quantity

FORM = "write NAME=LOW:HIGH:COUNT, for example z=-2cm:2cm:9, load.tip.z=-5N:0N:6 or parameter.height=20cm:30cm:5"


@dataclass(frozen=True)
class SweepAxis:
    """One varied quantity.

    Args:
        name: "x", "y", "z" [m] or "rx", "ry", "rz" [rad], displacement of the output from its pose at rest;
            "load.NAME.x", force on a node or body [N]; "parameter.NAME", parameter of the robot file.
        low, high: range in SI units; for parameters in `unit`. count: number of values, at least 1.
        unit: unit of a parameter, as in its text.
    """

    name: str
    low: float
    high: float
    count: int
    unit: str = ""

    @property
    def is_pose(self) -> bool:
        """Whether it is an axis of the output pose."""
        return self.name in AXES

    @property
    def values(self) -> NDArray[np.float64]:
        """(count,) evenly spaced values."""
        return np.linspace(self.low, self.high, self.count)

    @property
    def label(self) -> str:
        """Label: the name with the unit of its values."""
        if self.is_pose:
            return f"{self.name} [{'m' if self.name in 'xyz' else 'rad'}]"
        return f"{self.name} [{'N' if self.name.startswith('load.') else self.unit or '-'}]"


def read_axis(text: str, option: str = "--over") -> SweepAxis:
    """Axis from "NAME=LOW:HIGH:COUNT" or "NAME=VALUE".

    Raises:
        TensegrityError: another format, an unknown name, a quantity of another kind, or a count below one.
    """
    name, equals, range_text = (part.strip() for part in text.partition("="))
    parts = [part.strip() for part in range_text.split(":")]
    if not equals or len(parts) not in (1, 3) or not all(parts):
        raise TensegrityError(f"{option} {text!r}: {FORM}.")
    if len(parts) == 1:
        parts = [parts[0], parts[0], "1"]
    if not re.fullmatch(r"\d{1,7}", parts[2]) or int(parts[2]) < 1:
        raise TensegrityError(f"{option} {text!r}: {parts[2]!r} is no count of values; {FORM}.")
    count, unit = int(parts[2]), ""
    what = f"{option} {text!r}:"
    if name in AXES:
        kind = "length" if name in "xyz" else "angle"
        worded = [_with_degrees(part) if kind == "angle" else part for part in parts[:2]]
        low, high = (read_quantity(part, kind, what) for part in worded)
    elif re.fullmatch(r"load\.[A-Za-z_][\w-]*\.[xyz]", name):
        low, high = (read_quantity(part, "force", what) for part in parts[:2])
    elif re.fullmatch(r"parameter\.[A-Za-z_][\w-]*", name):
        (low, unit), (high, other) = (_number_and_unit(part, text) for part in parts[:2])
        if unit != other:
            raise TensegrityError(f"{option} {text!r}: give both ends the same unit.")
    else:
        raise TensegrityError(
            f"{option} {text!r}: " + unknown_name("axis", name, (*AXES, "load.NAME.z", "parameter.NAME"))
        )
    if not (math.isfinite(low) and math.isfinite(high)):
        raise TensegrityError(f"{option} {text!r}: both ends must be finite numbers.")
    if count == 1 and low != high:
        raise TensegrityError(f"{option} {text!r}: one value has one end; give NAME=VALUE, or a count of 2 and more.")
    return SweepAxis(name, low, high, count, unit)


def _with_degrees(text: str) -> str:
    """Text with degrees as the unit of plain angles, as in all options of the command line."""
    try:
        float(text)
    except ValueError:
        return text
    return f"{text} deg"


def _number_and_unit(part: str, text: str) -> tuple[float, str]:
    match = re.fullmatch(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(.*)", part)
    if match is None:
        raise TensegrityError(f"--over {text!r}: {part!r} is no number; {FORM}.")
    return float(match[1]), match[2]


@dataclass(frozen=True, eq=False)
class SweepPoints:
    """All points of a sweep in the order of computation.

    Attributes:
        outer: (v, a) values of the axes that change the robot (loads, parameters), one row per robot.
        inner: (p, b) values of the pose axes; one row if there are none.
        cells: (p,) index of each inner point in the grid of the pose axes, last axis fastest; -1 for random points.
    """

    outer: NDArray[np.float64]
    inner: NDArray[np.float64]
    cells: NDArray[np.int64]

    @property
    def count(self) -> int:
        """Number of all points."""
        return len(self.outer) * len(self.inner)


def make_points(axes: Sequence[SweepAxis], random: int = 0, seed: int = 0) -> SweepPoints:
    """Grid over all axes, or `random` poses within the pose axes for each point of the other axes."""
    outer = [axis for axis in axes if not axis.is_pose]
    inner = [axis for axis in axes if axis.is_pose]
    rows, _ = _to_and_fro([axis.values for axis in outer])
    if not random:
        poses, cells = _to_and_fro([axis.values for axis in inner])
        return SweepPoints(rows, poses, cells)
    if not inner:
        raise TensegrityError("--random needs axes of the output to draw from, such as --over x=-2cm:2cm:2.")
    low, high = (np.array([getattr(axis, end) for axis in inner]) for end in ("low", "high"))
    drawn = np.random.default_rng(seed).uniform(low, high, (random, len(inner)))
    return SweepPoints(rows, _by_neighbourhood(drawn, low, high), np.full(random, -1, dtype=np.int64))


def _to_and_fro(values: Sequence[NDArray[np.float64]]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Points (p, a) of a grid, each a neighbour of the previous one, and their indices with the last axis fastest."""
    indices = np.zeros((1, 0), dtype=np.int64)
    for axis in reversed(values):
        there, back = indices, indices[::-1]
        blocks = [np.column_stack((np.full(len(indices), k), there if k % 2 == 0 else back)) for k in range(len(axis))]
        indices = np.concatenate(blocks)
    shape = [len(axis) for axis in values]
    points = np.column_stack([axis[indices[:, k]] for k, axis in enumerate(values)]) if values else np.zeros((1, 0))
    cells = np.ravel_multi_index(tuple(indices.T), shape) if values else np.zeros(1, dtype=np.int64)
    return points, np.asarray(cells, dtype=np.int64)


def _by_neighbourhood(points: NDArray[np.float64], low: NDArray, high: NDArray) -> NDArray[np.float64]:
    """Same points, ordered by coarse cells in boustrophedon order."""
    count, size = points.shape
    bins = max(1, round(count ** (1.0 / size)))
    span = np.where(high > low, high - low, 1.0)
    cells = np.minimum((bins * (points - low) / span).astype(np.int64), bins - 1)
    key, parity = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    for k in range(size):
        step = np.where(parity % 2 == 0, cells[:, k], bins - 1 - cells[:, k])
        key, parity = key * bins + step, parity + cells[:, k]
    return points[np.argsort(key, kind="stable")]


def axis_record(axis: SweepAxis) -> dict[str, Any]:
    """Axis in JSON types."""
    return {"name": axis.name, "low": axis.low, "high": axis.high, "count": axis.count, "unit": axis.unit}
