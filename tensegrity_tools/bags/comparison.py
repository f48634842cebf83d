"""Comparison of two bags: errors of all numeric fields of all common topics over the robot's time.

Messages with equal stamps are compared with each other. If the stamps of the two runs are unrelated (two runs with
hardware), both are shifted to start at zero, and the first run is interpolated at the times of the second.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.errors import TensegrityError

from ..output import save_picture
from .contents import PARAMETERS, Contents, read_contents
from .decoding import RUN_FIELDS, leaves, stamp_of
from .reader import Bag

SHARED_STAMPS = 0.5
"""Smallest fraction of common stamps, relative to the shorter run, for a comparison by equal stamps."""
UNCOMPARED = ("/rosout", PARAMETERS, "/diagnostics", "/clock")


@dataclass
class Series:
    """Numeric fields of one topic over time.

    Attributes:
        stamps: (n,) increasing stamps [ns]. fields: (n, k) values of each field with all its components, such as the
            three coordinates of `output_pose.position`.
    """

    stamps: NDArray[np.int64]
    fields: dict[str, NDArray[np.float64]]


@dataclass(frozen=True)
class FieldError:
    """Differences of one field of a topic.

    Attributes:
        topic, field: names. times: (n,) times [s].
        errors: (n,) largest difference of any component, for orientations the angle [rad]; NaN if only one bag has a
            value.
        missing: number of messages that only one of the bags has.
    """

    topic: str
    field: str
    times: NDArray[np.float64]
    errors: NDArray[np.float64]
    missing: int

    @property
    def largest(self) -> float:
        """Largest error; infinite if only one bag has a value."""
        return float(np.max(np.where(np.isnan(self.errors), np.inf, self.errors))) if len(self.errors) else 0.0

    @property
    def mean_square(self) -> float:
        """Root mean square of the errors for which both bags have a value."""
        there = self.errors[np.isfinite(self.errors)]
        return float(np.sqrt(np.mean(there**2))) if len(there) else 0.0

    @property
    def when(self) -> float:
        """Time of the largest error [s]."""
        return float(self.times[int(np.argmax(np.nan_to_num(self.errors, nan=np.inf)))]) if len(self.errors) else 0.0


@dataclass
class Comparison:
    """Errors of all fields of all common topics, and the topics that only one of the bags has."""

    errors: list[FieldError] = field(default_factory=list)
    only_first: list[str] = field(default_factory=list)
    only_second: list[str] = field(default_factory=list)
    interpolated: bool = False


def read_series(bag: Bag, topic: str) -> dict[str, Series]:
    """Numeric fields of a topic by frame, since several sensors may share a topic; "" without frame names.

    Messages without a stamp use the time of the bag; for equal stamps in a frame the last message counts. Fields with a
    varying number of components are left out.
    """
    decode, passed = bag.decoder(topic), RUN_FIELDS.get(bag.topics[topic].type, frozenset())
    frames: dict[str, dict[int, dict[str, list[float]]]] = {}
    for message in bag.messages([topic]):
        decoded = decode(message.data)
        stamp = stamp_of(decoded)
        rows = frames.setdefault(str(getattr(getattr(decoded, "header", None), "frame_id", "")), {})
        rows[message.time - bag.start if stamp is None else stamp] = _numbers(decoded, passed)
    return {frame: _series(rows) for frame, rows in sorted(frames.items())}


def _series(rows: dict[int, dict[str, list[float]]]) -> Series:
    """Series from the numbers by stamp, at least one."""
    stamps = np.array(sorted(rows), dtype=np.int64)
    fields = {}
    for name, values in rows[int(stamps[0])].items():
        column = [rows[int(stamp)].get(name, []) for stamp in stamps]
        if all(len(each) == len(values) for each in column):
            fields[name] = np.array(column, dtype=np.float64).reshape(len(stamps), len(values))
    return Series(stamps, fields)


def _numbers(message: Any, passed: frozenset[str]) -> dict[str, list[float]]:
    """Numbers by field: x, y and z of a vector together, and all items of a list."""
    found: dict[str, list[float]] = {}
    for path, value in leaves(message):
        if path in passed or path.startswith("header.") or path[:1].isupper():
            continue
        name = re.sub(r"\[\d+\]", "", path)
        stem, _, last = name.rpartition(".")
        if stem and last in ("x", "y", "z", "w", "sec", "nanosec"):
            name = stem
        if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
            found.setdefault(name, []).extend(value.astype(np.float64).tolist())
        elif isinstance(value, (bool, int, float)):
            found.setdefault(name, []).append(float(value))
    return found


def compare_bags(first: Bag, second: Bag) -> Comparison:
    """Compare all common topics.

    Raises:
        TensegrityError: there is no common topic, or the numbers of the states belong to different names.
    """
    result = Comparison()
    contents = [read_contents(each) for each in (first, second)]
    layouts = [each.layout for each in contents]
    if all(layouts) and layouts[0] != layouts[1]:
        raise TensegrityError(
            f"{first.path} holds states of the layout {layouts[0]}, {second.path} of {layouts[1]}: their numbers "
            "belong to different names (robot_layout of both says which)."
        )
    a, b = (_topics(bag, each) for bag, each in zip((first, second), contents, strict=True))
    result.only_first, result.only_second = sorted(a.keys() - b.keys()), sorted(b.keys() - a.keys())
    shared = sorted(a.keys() & b.keys())
    if not shared:
        raise TensegrityError(f"{first.path} and {second.path} have no topic in common.")
    for name in shared:
        if first.topics[a[name]].type != second.topics[b[name]].type:
            result.only_first.append(name)
            result.only_second.append(name)
            continue
        ones, twos = read_series(first, a[name]), read_series(second, b[name])
        if len(ones) == len(twos) == 1:  # same sensor, even if the frame names differ
            pairs = {name: (*ones.values(), *twos.values())}
        else:
            pairs = {f"{name} ({frame})": (ones[frame], twos[frame]) for frame in ones if frame in twos}
            result.only_first += [f"{name} ({frame})" for frame in ones if frame not in twos]
            result.only_second += [f"{name} ({frame})" for frame in twos if frame not in ones]
        for title, (one, two) in pairs.items():
            errors, interpolated = _compare(title, one, two)
            result.interpolated = result.interpolated or interpolated
            result.errors += errors
    return result


def _topics(bag: Bag, contents: Contents) -> dict[str, str]:
    """Full topic names by names without the robot's namespace."""
    return {
        name.removeprefix(contents.namespace): name for name, topic in bag.topics.items()
        if topic.count and name not in UNCOMPARED
    }  # fmt: skip


def _compare(topic: str, one: Series, two: Series) -> tuple[list[FieldError], bool]:
    shared, in_one, in_two = np.intersect1d(one.stamps, two.stamps, return_indices=True)
    exact = len(shared) >= SHARED_STAMPS * min(len(one.stamps), len(two.stamps))
    if exact:
        stamps, missing = shared, len(one.stamps) + len(two.stamps) - 2 * len(shared)
    else:
        begin = two.stamps - two.stamps[0]
        inside = begin <= one.stamps[-1] - one.stamps[0]
        stamps, missing = begin[inside], int(np.sum(~inside))
    errors = []
    for name in one.fields.keys() & two.fields.keys():
        left, right = one.fields[name], two.fields[name]
        if left.shape[1] != right.shape[1]:
            continue
        if exact:
            left, right = left[in_one], right[in_two]
        else:
            own = (one.stamps - one.stamps[0]).astype(np.float64)
            left = np.stack([np.interp(stamps.astype(np.float64), own, column) for column in left.T], axis=1) \
                if left.shape[1] else np.zeros((len(stamps), 0))  # fmt: skip
            right = right[inside]
        errors.append(
            FieldError(
                topic, name, (1e-9 * (stamps - stamps[:1])).astype(np.float64), _distance(name, left, right), missing
            )
        )
    described = len(one.stamps) == len(two.stamps) == 1  # published once, at any time
    return sorted(errors, key=lambda each: each.field), not (exact or described)


def _distance(name: str, left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) largest difference; equal infinities and values missing in both are equal."""
    if not left.shape[1]:
        return np.zeros(len(left))
    if name.endswith("orientation") and left.shape[1] % 4 == 0:
        a, b = (each.reshape(len(each), -1, 4) for each in (left, right))
        difference = np.minimum(np.linalg.norm(a - b, axis=2), np.linalg.norm(a + b, axis=2))
        return np.asarray(np.max(4.0 * np.arcsin(np.clip(0.5 * difference, 0.0, 1.0)), axis=1))
    with np.errstate(invalid="ignore"):
        difference = np.abs(left - right)
    difference = np.where((left == right) | (np.isnan(left) & np.isnan(right)), 0.0, difference)
    return np.asarray(np.max(difference, axis=1))


def plot_comparison(comparison: Comparison, path: Path, names: Sequence[str]) -> None:
    """Plot the errors over time to a file (.png, .svg, .pdf): one panel per topic, one line per field.

    Args:
        names: names of the two bags.
    """
    from matplotlib.figure import Figure

    topics = list(dict.fromkeys(each.topic for each in comparison.errors if each.largest > 0.0))
    figure = Figure(figsize=(9.0, 2.2 + 2.2 * max(1, len(topics))), layout="constrained")
    figure.suptitle(f"{names[1]} beside {names[0]}")
    if not topics:
        figure.add_subplot().text(0.5, 0.5, "no numbers differ", ha="center", va="center")
    for k, topic in enumerate(topics):
        axes = figure.add_subplot(len(topics), 1, k + 1)
        axes.set_title(topic, loc="left", fontsize="medium")
        for each in comparison.errors:
            if each.topic == topic and each.largest > 0.0:
                axes.semilogy(each.times, np.where(each.errors > 0.0, each.errors, np.nan), label=each.field)
        axes.set_ylabel("difference (SI)")
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
        if k == len(topics) - 1:
            axes.set_xlabel("time [s]")
    save_picture(figure, path)
