"""A structure as the matrices of document 001, chapter 4 (TR-parameters), in CSV files or in one NPZ file.

| matrix | size | content |
| --- | --- | --- |
| `C` | m x n | a row for each member: 1 and -1 at the nodes that it connects |
| `d` | m | undeformed length [m] |
| `t` | m | 1 for members that can carry compression (bars), 0 for the others |
| `k` | m | stiffness [N/m] |
| `m` | m | mass [kg] |

Optional arrays: `N` (n x 3) positions of the nodes [m], which are a separate input of the algorithm in the document;
`fixed` (n) 1 for fixed nodes, or (n x 3) 1 for held axes; `gravity` (3) [m/s^2]; `nodes` and `members` with names.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError
from ..robots.mjcf import Export
from ..robots.robot import Robot
from ..saved_file import save_file
from .structure import Structure

NEEDED = ("C", "d", "t", "k", "m")
OPTIONAL = ("N", "fixed", "gravity")
NAMES = ("nodes", "members")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, eq=False)
class StructureMatrices:
    """Data of a structure from its matrices, in SI units.

    Attributes:
        members: (m, 2) node indices, the node with the entry 1 first. rest_lengths, stiffness, masses: (m,).
        pushes: (m,) bool, whether a member is a bar. nodes: (n, 3) m, or None. held: (n, 3) bool, held coordinates.
        node_names, member_names: names. gravity: (3,) m/s^2, or None.
    """

    members: NDArray[np.int64]
    rest_lengths: NDArray[np.float64]
    pushes: NDArray[np.bool_]
    stiffness: NDArray[np.float64]
    masses: NDArray[np.float64]
    nodes: NDArray[np.float64] | None
    held: NDArray[np.bool_]
    node_names: tuple[str, ...]
    member_names: tuple[str, ...]
    gravity: NDArray[np.float64] | None = None

    def start_nodes(self) -> NDArray[np.float64]:
        """(n, 3) start nodes [m]: the given ones, or a guess with distances near the lengths (classical scaling)."""
        return self.nodes if self.nodes is not None else _guess(self)


def read_matrices(path: str | Path) -> StructureMatrices:
    """Read matrices from a directory with C.csv, d.csv, t.csv, k.csv and m.csv, or from an .npz file with these arrays.

    Numbers in a line are separated by commas, semicolons or blanks; text after # is a comment. A vector can be a column
    or a row; N can have one node per row or one node per column.

    Raises:
        TensegrityError: a file is missing or does not contain numbers, or the matrices are inconsistent or do not
            describe a structure; the message contains file, row and column.
    """
    source = Path(path).expanduser()
    if source.is_dir():
        arrays, where = _from_folder(source)
    elif source.is_file() and source.suffix == ".npz":
        arrays, where = _from_npz(source)
    else:
        what = "is neither a folder nor an .npz file" if source.exists() else "does not exist"
        raise TensegrityError(f"{source} {what}; give a folder with {_listed('.csv')}, or one .npz file with these.")
    return _checked(arrays, where)


def _listed(ending: str) -> str:
    return ", ".join(f"{name}{ending}" for name in NEEDED[:-1]) + f" and {NEEDED[-1]}{ending}"


def _from_folder(folder: Path) -> tuple[dict[str, Any], Callable[[str], str]]:
    arrays: dict[str, Any] = {}
    for name in (*NEEDED, *OPTIONAL, *NAMES):
        file = folder / f"{name}.csv"
        if not file.is_file():
            if name in NEEDED:
                raise TensegrityError(f"{file}: there is no such file; a structure needs {_listed('.csv')}.")
            continue
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise TensegrityError(f"{file}: cannot be read: {error}.") from None
        rows = [line.partition("#")[0].strip() for line in text.splitlines()]
        rows = [row for row in rows if row]
        if name in NAMES:
            arrays[name] = [row.strip().strip('"') for row in rows]
            continue
        values: list[list[float]] = []
        for number, row in enumerate(rows, 1):
            cells = [cell for cell in re.split(r"\s*[,;]\s*|\s+", row) if cell != ""]
            values.append([_number(cell, f"{file}, row {number}, column {k}") for k, cell in enumerate(cells, 1)])
            if len(values[-1]) != len(values[0]):
                raise TensegrityError(
                    f"{file}, row {number}: {len(values[-1])} numbers, but row 1 has {len(values[0])}; give all rows "
                    "the same count."
                )
        arrays[name] = np.array(values, dtype=np.float64).reshape(len(values), -1)
    return arrays, lambda name: str(folder / f"{name}.csv")


def _number(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise TensegrityError(f"{where}: {text[:40]!r} is no number; a heading needs a # before it.") from None


def _from_npz(file: Path) -> tuple[dict[str, Any], Callable[[str], str]]:
    arrays: dict[str, Any] = {}
    try:
        with np.load(file, allow_pickle=False) as data:
            for name in NEEDED:
                if name not in data.files:
                    raise TensegrityError(
                        f"{file}: there is no array {name!r}; a structure needs {_listed('')}. Found: "
                        f"{', '.join(data.files) or 'none'}."
                    )
            for name in (*NEEDED, *OPTIONAL):
                if name in data.files:
                    if data[name].dtype.kind not in "buif" or data[name].ndim not in (1, 2):
                        raise TensegrityError(f"{file}, array {name}: numbers in one or two dimensions are needed.")
                    array = np.array(data[name], dtype=np.float64)
                    arrays[name] = array if array.ndim == 2 else array[:, None]
            for name in NAMES:
                if name in data.files:
                    arrays[name] = [str(each) for each in data[name].ravel()]
    except (OSError, ValueError, EOFError) as error:
        raise TensegrityError(f"{file}: this is no .npz file that can be read: {error}.") from None
    except Exception as error:
        if isinstance(error, TensegrityError):
            raise
        raise TensegrityError(f"{file}: this is no .npz file that can be read: {error}.") from None
    return arrays, lambda name: f"{file}, array {name}"


def _checked(arrays: Mapping[str, Any], where: Callable[[str], str]) -> StructureMatrices:
    for name in (*NEEDED, *OPTIONAL):
        if name in arrays and not np.all(np.isfinite(arrays[name])):
            row, column = np.argwhere(~np.isfinite(arrays[name]))[0] + 1
            raise TensegrityError(f"{where(name)}, row {row}, column {column}: not a finite number.")
    connectivity = np.asarray(arrays["C"])
    count, size = connectivity.shape
    if not count or size < 2:
        raise TensegrityError(
            f"{where('C')}: it is {count} x {size}; a row for each member and a column for each node."
        )
    members = np.zeros((count, 2), dtype=np.int64)
    for k, row in enumerate(connectivity, 1):
        odd = np.flatnonzero(~np.isin(row, (-1.0, 0.0, 1.0)))
        if odd.size:
            raise TensegrityError(
                f"{where('C')}, row {k}, column {odd[0] + 1}: {row[odd[0]]:g} is none of -1, 0 and 1."
            )
        plus, minus = np.flatnonzero(row == 1.0), np.flatnonzero(row == -1.0)
        if plus.size != 1 or minus.size != 1:
            raise TensegrityError(
                f"{where('C')}, row {k}: a member has one 1 and one -1, here are {plus.size} and {minus.size}"
                f"{_columns(plus, minus)}; mark the two nodes that it joins."
            )
        members[k - 1] = plus[0], minus[0]
    loose = np.flatnonzero(~connectivity.any(axis=0))
    if loose.size:
        raise TensegrityError(
            f"{where('C')}, column {loose[0] + 1}: no member ends at this node; leave the column out, or join it."
        )
    vectors = {name: _vector(arrays[name], count, where(name)) for name in ("d", "t", "k", "m")}
    for name, what, allowed in (
        ("d", "a length above zero", vectors["d"] > 0.0),
        ("t", "1 (it can push) or 0 (it only pulls)", np.isin(vectors["t"], (0.0, 1.0))),
        ("k", "a stiffness above zero", vectors["k"] > 0.0),
        ("m", "a mass, not below zero", vectors["m"] >= 0.0),
    ):
        for k in np.flatnonzero(~allowed).tolist():
            raise TensegrityError(f"{where(name)}, row {k + 1}: {vectors[name][k]:g} is not {what}.")
    nodes = _nodes(arrays.get("N"), size, where("N"))
    if nodes is not None:
        apart = np.linalg.norm(nodes[members[:, 0]] - nodes[members[:, 1]], axis=1)
        for k in np.flatnonzero(apart == 0.0).tolist():
            i, j = members[k] + 1
            raise TensegrityError(
                f"{where('N')}: nodes {i} and {j}, which member {k + 1} joins, are at the same position; move one."
            )
    held = _held(arrays.get("fixed"), size, where("fixed"))
    if held.any() and nodes is None:
        raise TensegrityError(f"{where('fixed')}: nodes that are held need their positions; add N.")
    bars = vectors["t"] == 1.0
    usual = [f"{'bar' if is_bar else 'tendon'}_{k}" for k, is_bar in enumerate(bars, 1)]
    return StructureMatrices(
        members, vectors["d"], bars, vectors["k"], vectors["m"], nodes, held,
        _names(arrays.get("nodes"), [f"node_{i}" for i in range(1, size + 1)], where("nodes")),
        _names(arrays.get("members"), usual, where("members")),
        _vector(arrays["gravity"], 3, where("gravity"), "it has three axes") if "gravity" in arrays else None,
    )  # fmt: skip


def _columns(plus: NDArray, minus: NDArray) -> str:
    found = sorted([*plus.tolist(), *minus.tolist()])
    return f" (in column{'s' * (len(found) > 1)} {', '.join(str(i + 1) for i in found)})" if found else ""


def _vector(array: NDArray, count: int, where: str, why: str = "C has as many rows") -> NDArray[np.float64]:
    if array.shape not in ((count, 1), (1, count)):
        rows, columns = array.shape
        raise TensegrityError(f"{where}: it is {rows} x {columns}; {count} numbers are needed, for {why}.")
    return np.asarray(array.ravel())


def _nodes(array: NDArray | None, size: int, where: str) -> NDArray[np.float64] | None:
    if array is None:
        return None
    if array.shape == (size, 3):
        return np.array(array)
    if array.shape == (3, size):
        return np.array(array.T)
    raise TensegrityError(f"{where}: it is {array.shape[0]} x {array.shape[1]}; C has {size} columns, so {size} x 3.")


def _held(array: NDArray | None, size: int, where: str) -> NDArray[np.bool_]:
    """(n, 3) held coordinates, from one or three flags for each node."""
    if array is None:
        return np.zeros((size, 3), dtype=np.bool_)
    if array.shape == (size, 3) and size > 1:
        flags = np.asarray(array, dtype=np.float64)
    else:
        flags = np.repeat(_vector(array, size, where, "C has as many columns")[:, None], 3, axis=1)
    for row, axis in np.argwhere(~np.isin(flags, (0.0, 1.0))):
        raise TensegrityError(f"{where}, row {row + 1}: {flags[row, axis]:g} is neither 0 nor 1.")
    return np.asarray(flags == 1.0)


def _names(given: list[str] | None, usual: list[str], where: str) -> tuple[str, ...]:
    if given is None:
        return tuple(usual)
    if len(given) != len(usual):
        raise TensegrityError(f"{where}: {len(given)} names, C says {len(usual)}.")
    for row, name in enumerate(given, 1):
        if not NAME.fullmatch(name):
            raise TensegrityError(
                f"{where}, row {row}: {name[:70]!r} is no name: letters, digits, _ and -, 64 at most."
            )
        if name in given[: row - 1]:
            raise TensegrityError(f"{where}, row {row}: the name {name!r} is used twice.")
    return tuple(given)


def _guess(matrices: StructureMatrices) -> NDArray[np.float64]:
    """(n, 3) nodes [m] by classical scaling, with distances along members as distances in space."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import shortest_path

    size = len(matrices.node_names)
    graph = coo_matrix((matrices.rest_lengths, matrices.members.T), shape=(size, size)).tocsr()
    distances = shortest_path(graph, directed=False)
    distances[~np.isfinite(distances)] = 2.0 * matrices.rest_lengths.sum()
    centre = np.eye(size) - 1.0 / size
    values, vectors = np.linalg.eigh(-0.5 * centre @ distances**2 @ centre)
    best = np.argsort(values)[::-1][:3]
    nodes = np.zeros((size, 3))
    nodes[:, : best.size] = vectors[:, best] * np.sqrt(np.maximum(values[best], 0.0))
    # paths along members are longer than the straight distance
    lengths = np.linalg.norm(nodes[matrices.members[:, 0]] - nodes[matrices.members[:, 1]], axis=1)
    nodes *= float(matrices.rest_lengths @ lengths) / max(float(lengths @ lengths), 1e-300)
    # a planar guess or coincident nodes are no valid start: every node gets a separate position in space
    away = np.cos(1.0 + 1.7 * np.arange(3 * size)).reshape(size, 3)
    return np.asarray(nodes + 0.02 * float(np.median(matrices.rest_lengths)) * away)


# -- out ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MatrixExport(Export):
    """Export of matrices as text and as files.

    Attributes:
        arrays: matrices by name; numbers or names.
    """

    arrays: Mapping[str, NDArray]

    def write(self, out: Path) -> None:
        """Write one .npz file, or a directory with a CSV file for each matrix.

        Raises:
            TensegrityError: writing fails.
        """
        if out.suffix == ".npz":
            packed = io.BytesIO()
            np.savez(packed, **self.arrays)  # type: ignore[arg-type]
            save_file(out, packed.getvalue())
            return
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TensegrityError(f"cannot write {out}: {error.strerror or error}.") from error
        for name, array in self.arrays.items():
            save_file(out / f"{name}.csv", _csv(array))


def structure_matrices(robot: Robot) -> MatrixExport:
    """Matrices of a structure with the rest lengths and the nodes of its file."""
    structure = robot.model_as(Structure)
    arrays: dict[str, NDArray] = {
        "C": structure.connectivity().astype(np.int64),
        "d": structure.rest_lengths,
        "t": (~structure.unilateral).astype(np.int64),
        "k": structure.stiffness,
        "m": structure.masses,
        "N": structure.nodes,
        "fixed": (structure.supports if structure.rollers.any() else structure.fixed).astype(np.int64),
        "gravity": structure.gravity,
        "nodes": np.array(structure.node_names),
        "members": np.array(structure.member_names),
    }
    lost = []
    if "spring" in structure.kinds:
        lost.append("springs, which are members that only pull like tendons")
    for what, values in (
        ("damping of members", structure.damping), ("masses of nodes", structure.node_masses),
        ("loads", structure.loads),
    ):  # fmt: skip
        if np.any(values):
            lost.append(what)
    if structure.ground is not None:
        lost.append("the ground")
    if structure.smoothness:
        lost.append("the soft-plus law of tension")
    for what, items in (("actuators", robot.actuators), ("outputs", robot.outputs), ("tour", robot.tour)):
        if items:
            lost.append(what)
    text = "".join(f"# {name}\n{_csv(array)}" for name, array in arrays.items())
    return MatrixExport(text, tuple(lost), arrays)


def _csv(array: NDArray) -> str:
    """CSV text with one row per line, without loss of precision."""
    rows = array if array.ndim == 2 else array[:, None]
    return "".join(",".join(str(value) for value in row) + "\n" for row in rows.tolist())
