"""Measured points from a file: a table with a header line (.csv) or a list of mappings (.yaml); errors state file and
line."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensegrity_dynamics.bounded_file import read_bounded
from tensegrity_dynamics.errors import TensegrityError, unknown_name
from tensegrity_dynamics.robots.units import BaseUnits

SEPARATORS = ",;\t"
MAX_LENGTH_M = 10.0
"""Largest plausible length; a larger number without unit indicates another unit [m]."""


@dataclass(frozen=True)
class Point:
    """One calibration point: reading of the sensor [counts or rad], rest length [m], and its source (file and line)."""

    reading: float
    length: float
    source: str


def read_points(path: Path, names: Sequence[str]) -> dict[str, list[Point]]:
    """Calibration points by actuator, from columns actuator, reading, length (m unless it carries a unit).

    Args:
        path: path of the file. names: names of the allowed actuators.

    Raises:
        TensegrityError: no such file, or an invalid row; the message states file and line.
    """
    points: dict[str, list[Point]] = {}
    for source, row in read_rows(path, ("actuator", "reading", "length")):
        name = row["actuator"]
        if name not in names:
            raise TensegrityError(f"{source}: {unknown_name('actuator with a servo', name, names)}")
        try:
            reading = float(row["reading"])
        except ValueError:
            reading = math.nan
        if not math.isfinite(reading):
            raise TensegrityError(
                f"{source}: reading {row['reading']!r} is no number; write counts, or rad of encoders."
            )
        points.setdefault(name, []).append(Point(reading, read_length(row["length"], source), source))
    return points


def read_weights(path: Path) -> tuple[list[float], list[float]]:
    """Masses [kg] and lengths [m] of a spring under weights, from columns mass, length; raises TensegrityError."""
    masses, lengths = [], []
    for source, row in read_rows(path, ("mass", "length")):
        masses.append(read_amount(row["mass"], "mass", source))
        lengths.append(read_length(row["length"], source))
    return masses, lengths


def read_length(text: str, source: str) -> float:
    """Length from a text, above zero and up to `MAX_LENGTH_M` [m]; raises TensegrityError that starts with `source`."""
    length = read_amount(text, "length", source)
    if not 0.0 < length <= MAX_LENGTH_M:
        raise TensegrityError(
            f"{source}: a length of {length:g} m cannot be right; plain numbers are metres, so write the unit: "
            f"{text.strip()} mm."
        )
    return length


def read_amount(text: str, kind: str, source: str) -> float:
    """Quantity from a text in SI units; raises TensegrityError that starts with `source`."""
    try:
        return BaseUnits().to_si(text.strip(), kind)
    except ValueError as problem:
        raise TensegrityError(f"{source}: {kind} {text!r}: {problem}.") from None


def read_rows(path: Path, columns: Sequence[str]) -> list[tuple[str, dict[str, str]]]:
    """Rows as mappings by column, each with its source (file and line); raises TensegrityError for another format."""
    try:
        text = read_bounded(path).decode("utf-8-sig")
    except OSError as problem:
        raise TensegrityError(f"{path} cannot be read ({problem.strerror}); name a file of points.") from problem
    except UnicodeDecodeError as problem:
        raise TensegrityError(f"{path} is no text ({problem.reason}); save it as CSV in UTF-8.") from problem
    rows = _listed(path, text, columns) if path.suffix.lower() in (".yaml", ".yml") else _table(path, text, columns)
    if not rows:
        raise TensegrityError(f"{path} holds no points; write one row with {', '.join(columns)} for each.")
    return rows


def _table(path: Path, text: str, columns: Sequence[str]) -> list[tuple[str, dict[str, str]]]:
    lines = [(k, line) for k, line in enumerate(text.splitlines(), 1) if line.strip() and line.lstrip()[0] != "#"]
    if not lines:
        return []
    separator = max(SEPARATORS, key=lines[0][1].count)
    parsed = [
        (number, [each.strip() for each in cells])
        for number, line in lines
        for cells in csv.reader([line], delimiter=separator)
    ]
    heading = [each.lower() for each in parsed[0][1]]
    missing = [name for name in columns if name not in heading]
    if missing:
        raise TensegrityError(
            f"{path}:{parsed[0][0]}: the heading {', '.join(heading)!r} lacks {', '.join(missing)}; begin the table "
            f"with {','.join(columns)}."
        )
    rows = []
    for number, cells in parsed[1:]:
        if len(cells) != len(heading):
            raise TensegrityError(
                f"{path}:{number}: {len(cells)} cells where the heading has {len(heading)}; separate them by "
                f"{separator!r} and write decimals with a point."
            )
        rows.append((f"{path}:{number}", dict(zip(heading, cells, strict=True))))
    return rows


def _listed(path: Path, text: str, columns: Sequence[str]) -> list[tuple[str, dict[str, str]]]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        content: Any = YAML(typ="safe", pure=True).load(text)
    except YAMLError as error:
        text = " ".join(str(error).split())
        raise TensegrityError(f"{path} is no YAML ({text}); correct it, or write a .csv.") from error
    if not isinstance(content, list):
        raise TensegrityError(f"{path} must be a list of points: - {{{', '.join(f'{c}: ...' for c in columns)}}}.")
    rows = []
    for number, entry in enumerate(content, 1):
        missing = [name for name in columns if not isinstance(entry, dict) or entry.get(name) is None]
        if missing:
            raise TensegrityError(f"{path}, point {number}: it lacks {', '.join(missing)}.")
        rows.append((f"{path}, point {number}", {name: str(entry[name]) for name in columns}))
    return rows
