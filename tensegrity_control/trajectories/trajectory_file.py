"""Trajectories from waypoints in YAML.

    kind: cubic Hermite            # or quintic, minimum jerk, orientation, pose
    columns: [t, phi, psi, phi_rate, psi_rate]
    quantities: {phi: angle, psi: angle}     # length, angle or number for each coordinate; number where left out
    units: {angle: deg}            # of plain numbers; SI where left out
    limits: {velocity: 30 deg/s, acceleration: [2, 3]}   # of each coordinate, or of all; slows the motion down
    rows:
    - [0, 0, 0, 0, 0]
    - ["2 s", "45 deg", 0, 0, 0]

The first column is the time t. A coordinate may have a column of rates (its name with _rate) and of accelerations
(_acceleration); without them they are zero (cubic Hermite) or open (quintic). An orientation has the columns t, w,
x, y, z; its limits are those of the norms of angular velocity and acceleration. A pose has the columns t, x, y, z, qw,
qx, qy, qz and moves with least jerk, its limits are those of x, y, z and of that norm. Both may have columns of the
angular velocity (rx_rate, ry_rate, rz_rate) and acceleration (rx_acceleration, ...) about world axes, a pose also those
of x, y, z. Errors name file, line and field, what was found and what is allowed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from tensegrity_dynamics.errors import RobotFileError, TensegrityError, unknown_name
from tensegrity_dynamics.robots.file_errors import shown
from tensegrity_dynamics.robots.units import BaseUnits
from tensegrity_dynamics.robots.yaml_source import YamlSource, read_text

from .orientation import OrientationSpline
from .pose_trajectory import POSE, POSITION, QUATERNION, PoseTrajectory
from .quintic import QuinticSpline
from .splines import Array, HermiteSpline, Trajectory, within_limits

MAPPING = "a trajectory is a YAML mapping, such as {kind: quintic, columns: [t, x, y, z], rows: [[0, 0, 0, 0], ...]}"
KINDS = ("cubic Hermite", "quintic", "minimum jerk", "orientation", "pose")
FIELDS = ("kind", "columns", "quantities", "units", "limits", "rows", "name")
LIMITS = ("velocity", "acceleration")
MAXIMUM_CHARACTERS = 500_000
"""Longest text that is read. 500 waypoints, as many as controllers accept, of 24 actuators with rates and accelerations
need less; the lines of longer texts take minutes to find."""
OF_COORDINATES = ("length", "angle", "number")
DERIVED = {("length", 1): "speed", ("length", 2): "acceleration", ("angle", 1): "angular speed"}
TURN = ("rx", "ry", "rz")
"""Names of the angular velocities and accelerations about world axes, without their endings."""
ENDINGS = ("_rate", "_acceleration")


@dataclass(frozen=True, eq=False)
class NamedTrajectory:
    """Trajectory with the names of its components.

    Attributes:
        names: (n,) names of the coordinates, such as phi and psi; w, x, y, z for an orientation.
        trajectory: motion in SI units. knots: times of its waypoints [s].
        stretched: factor by which the motion was slowed down to satisfy limits; 1 if it was not.
        lines: lines of the waypoints in their file.
    """

    names: tuple[str, ...]
    trajectory: Trajectory
    stretched: float = 1.0
    knots: tuple[float, ...] = ()
    lines: tuple[int, ...] = ()


def load_trajectory(path: str | Path) -> NamedTrajectory:
    """Trajectory from a YAML file; see the module.

    Raises:
        RobotFileError: the file cannot be read or does not describe a trajectory.
    """
    return parse_trajectory(read_text(Path(path).expanduser()), str(path))


def parse_trajectory(text: str, source_name: str = "trajectory.yaml") -> NamedTrajectory:
    """Trajectory from YAML text; errors name it `source_name`. Raises RobotFileError."""
    if isinstance(text, str) and len(text) > MAXIMUM_CHARACTERS:
        raise RobotFileError(
            f"{source_name}: rows: the file has {len(text)} characters, up to {MAXIMUM_CHARACTERS} are read; cut the "
            "motion into several files, with fewer waypoints each."
        )
    try:
        source = YamlSource(text, source_name)
    except RobotFileError as error:  # its text is written for robot files
        text = str(error).replace("a robot file is a mapping that starts with 'name:'", MAPPING)
        raise RobotFileError(text.replace("robot files", "trajectories").replace("the robot", "it")) from None
    with np.errstate(all="ignore"):  # non-finite results are rejected later
        return _Reader(source).read()


class _Reader:
    """Conversion of the fields of a file to a trajectory; errors state the line."""

    def __init__(self, source: YamlSource) -> None:
        self.source = source
        self.data: dict[str, Any] = source.data

    def refuse(self, text: str, *path: Any) -> RobotFileError:
        where = ".".join(str(part) for part in path)
        return RobotFileError(f"{self.source.name}:{self.source.line(path)}: {where}{': ' if where else ''}{text}")

    def read(self) -> NamedTrajectory:
        for field in self.data:
            if field not in FIELDS:
                raise self.refuse(unknown_name("field", field, FIELDS), field)
        kind = self._kind()
        columns = self._columns(kind)
        names = _plain(columns)
        units, kinds = self._units(), self._quantities(names)
        of_columns = kinds | dict.fromkeys(TURN, "angle") if kind in ("orientation", "pose") else kinds
        table = self._table(columns, [_quantity_of(name, of_columns) for name in columns], units)
        times, values = table[:, 0], table[:, [columns.index(name) for name in names]]
        given = [[self._derivatives(table, columns, each, end) for end in ENDINGS] for each in _groups(kind, columns)]
        try:
            made: Trajectory
            if kind == "orientation":
                made = OrientationSpline(times, values, *given[0])
            elif kind == "pose":
                along = QuinticSpline(times, values[:, :3], *given[0])
                made = PoseTrajectory(along, OrientationSpline(times, values[:, 3:], *given[1]))
            elif kind == "cubic Hermite":
                made = HermiteSpline(times, values, given[0][0])
            else:
                made = QuinticSpline(times, values, *given[0])
        except RobotFileError:
            raise
        except TensegrityError as error:
            raise self.refuse(str(error), "rows") from None
        limited = {"orientation": ["angle"], "pose": ["length"] * 3 + ["angle"]}.get(kind, list(kinds.values()))
        return self._limited(made, kinds, units, limited, times)

    def _kind(self) -> str:
        entry = self.data.get("kind", KINDS[0])
        word = str(entry).replace("_", " ").strip().lower()
        for kind in KINDS:
            if kind.lower() == word:
                return kind
        raise self.refuse(unknown_name("kind", entry, KINDS), "kind")

    def _columns(self, kind: str) -> list[str]:
        columns = self.data.get("columns")
        if not isinstance(columns, list) or not all(isinstance(name, str) for name in columns) or len(columns) < 2:
            raise self.refuse("a list of names is needed, such as [t, x, y, x_rate, y_rate].", "columns")
        if columns[0] != "t":
            raise self.refuse(f"the first column is {columns[0]!r}; it must be the time t.", "columns", 0)
        allowed, groups = _allowed(kind), _groups(kind, columns)
        rated = [name for group in groups for name in group]
        for i, name in enumerate(columns):
            if name in columns[:i]:
                raise self.refuse(f"the column {name!r} appears twice; keep one.", "columns", i)
            for end in ENDINGS:
                if name.endswith(end) and end not in allowed:
                    raise self.refuse(f"{kind} has no column {name!r}; leave it out.", "columns", i)
                if name.endswith(end) and name[: -len(end)] not in rated:
                    raise self.refuse(f"{name!r} has no coordinate {name[: -len(end)]!r} to belong to.", "columns", i)
        for end, group in product(allowed, groups):
            missing = [name + end for name in group if name + end not in columns]
            if missing and len(missing) < len(group):
                text = f"the column {missing[0]!r} is missing; give all columns of one kind or none."
                raise self.refuse(text, "columns")
        for word, needed in (("orientation", QUATERNION), ("pose", POSE)):
            if kind == word and tuple(_plain(columns)) != needed:
                text = f"{word} has the columns t, {', '.join(needed)}; found {', '.join(['t', *_plain(columns)])}."
                raise self.refuse(text, "columns")
        return columns

    def _units(self) -> BaseUnits:
        units = self.data.get("units", {})
        if not isinstance(units, Mapping):
            raise self.refuse("a mapping is needed, such as {angle: deg}.", "units")
        try:
            return BaseUnits({str(name): str(unit) for name, unit in units.items()})
        except ValueError as error:
            raise self.refuse(f"{error}.", "units") from None

    def _quantities(self, names: list[str]) -> dict[str, str]:
        quantities = self.data.get("quantities", {})
        if not isinstance(quantities, Mapping):
            raise self.refuse("a mapping is needed, such as {x: length}.", "quantities")
        for name, kind in quantities.items():
            if name not in names:
                raise self.refuse(unknown_name("coordinate", name, names), "quantities", name)
            if kind not in OF_COORDINATES:
                raise self.refuse(unknown_name("quantity", kind, OF_COORDINATES), "quantities", name)
        usual = dict.fromkeys(POSITION, "length") if tuple(names) == POSE else {}
        return {name: quantities.get(name, usual.get(name, "number")) for name in names}

    def _table(self, columns: list[str], quantities: list[tuple[str, int]], units: BaseUnits) -> Array:
        rows = self.data.get("rows")
        if not isinstance(rows, list) or len(rows) < 2:
            raise self.refuse("at least two waypoints are needed, each a list with one number per column.", "rows")
        table = np.empty((len(rows), len(columns)))
        for i, row in enumerate(rows):
            if not isinstance(row, list) or len(row) != len(columns):
                found = len(row) if isinstance(row, list) else type(row).__name__
                raise self.refuse(f"{len(columns)} numbers are needed, found {found}.", "rows", i)
            for j, cell in enumerate(row):
                try:
                    table[i, j] = _to_si(cell, quantities[j], units)
                except ValueError as error:
                    text = f"column {columns[j]}: found {shown(cell)}; {error}."
                    raise self.refuse(text, "rows", i, j) from None
            if i and table[i, 0] <= table[i - 1, 0]:
                raise self.refuse(
                    f"the time {float(table[i, 0])!r} s does not come after {float(table[i - 1, 0])!r} s; let times "
                    "increase.",
                    "rows", i, 0,
                )  # fmt: skip
        return table

    @staticmethod
    def _derivatives(table: Array, columns: list[str], names: Sequence[str], end: str) -> Array | None:
        if names[0] + end not in columns:
            return None
        return table[:, [columns.index(name + end) for name in names]]

    def _limited(
        self, made: Trajectory, kinds: dict[str, str], units: BaseUnits, limited: list[str], times: Array
    ) -> NamedTrajectory:
        limits = self.data.get("limits", {})
        if not isinstance(limits, Mapping):
            raise self.refuse("a mapping is needed, such as {velocity: 0.5, acceleration: 2}.", "limits")
        for name in limits:
            if name not in LIMITS:
                raise self.refuse(unknown_name("limit", name, LIMITS), "limits", name)
        limit_of = {name: self._limit(name, limit, limited, units) for name, limit in limits.items()}
        try:
            motion, factor = within_limits(made, limit_of.get("velocity"), limit_of.get("acceleration"))
        except TensegrityError as error:
            raise self.refuse(str(error), "limits") from None
        knots = times[0] + factor * (times - times[0])
        lines = tuple(self.source.line(("rows", i)) for i in range(len(times)))
        return NamedTrajectory(tuple(kinds), motion, factor, tuple(knots.tolist()), lines)

    def _limit(self, name: str, entry: Any, each: list[str], units: BaseUnits) -> Array:
        """Limits of all values of `Trajectory.largest` in SI units, from one limit for all or a list with one each."""
        order = LIMITS.index(name) + 1
        cells = entry if isinstance(entry, list) else [entry] * len(each)
        if len(cells) != len(each):
            raise self.refuse(f"{len(each)} limits are needed, or one for all; found {len(cells)}.", "limits", name)
        try:
            return np.array([_to_si(cell, (kind, order), units) for cell, kind in zip(cells, each, strict=True)])
        except ValueError as error:
            raise self.refuse(f"found {shown(entry)}; {error}.", "limits", name) from None


def _allowed(kind: str) -> tuple[str, ...]:
    """Suffixes of the derivative columns that a kind accepts."""
    return {"cubic Hermite": ("_rate",), "minimum jerk": ()}.get(kind, ENDINGS)


def _plain(columns: Sequence[str]) -> list[str]:
    """Columns of values, without the time and the derivatives."""
    return [name for name in columns[1:] if not name.endswith(ENDINGS)]


def _groups(kind: str, columns: Sequence[str]) -> list[Sequence[str]]:
    """Groups of names without endings whose columns of derivatives are given together or not at all."""
    of_poses: dict[str, list[Sequence[str]]] = {"orientation": [TURN], "pose": [POSITION, TURN]}
    return of_poses.get(kind, [_plain(columns)])


def _quantity_of(column: str, kinds: Mapping[str, str]) -> tuple[str, int]:
    """Physical quantity of the coordinate of a column, and order of its time derivative."""
    if column == "t":
        return "time", 0
    for order, end in enumerate(ENDINGS, 1):
        if column.endswith(end):
            return kinds[column[: -len(end)]], order
    return kinds[column], 0


def _to_si(cell: Any, quantity: tuple[str, int], units: BaseUnits) -> float:
    """Value of a cell in SI units. Raises ValueError that states what is needed."""
    kind, order = quantity
    if order == 0:
        return units.to_si(cell, kind)
    if quantity in DERIVED:
        return units.to_si(cell, DERIVED[quantity])
    # These derivatives have no named unit; plain numbers use the units of the file.
    return units.to_si(cell, "number") * units.to_si(1.0, kind) / units.to_si(1.0, "time") ** order
