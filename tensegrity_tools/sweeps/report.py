"""Results of a finished sweep: key figures, a table of all points, plots, and a report page."""

from __future__ import annotations

import base64
import csv
import html
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.saved_file import save_file

from .axes import SweepAxis
from .samples import COLUMNS, NO_ROBOT, REACHED, SweepPlan

WORDS = {
    "lowest_margin": "tension above its floor [N]",
    "tension_min": "least tension [N]",
    "tension_max": "largest tension [N]",
    "stiffness_min": "least stiffness of the output [N/m]",
    "singular_min": "least singular value, actuators to output",
    "singular_max": "largest singular value, actuators to output",
    "wrench": "force taken along every controlled axis [N]",
}
"""Readable names of the columns."""
MAPS = ("lowest_margin", "stiffness_min", "singular_min", "wrench")
"""Columns that are plotted over the points, in addition to reachability."""
STYLE = (
    "body{font:15px sans-serif;max-width:72em;margin:2em auto;padding:0 1em}"
    "td,th{text-align:left;padding:2px 1em}img{max-width:100%}"
)
MOST_PANELS = 9
"""Largest number of panels in one plot, i.e. slices along a third axis."""


def sweep_figures(plan: SweepPlan, results: Mapping[str, NDArray]) -> dict[str, Any]:
    """Key figures of a sweep."""
    figures, table = results["figures"], _axis_values(plan, results)
    status = figures[:, 0]
    reached = status == REACHED
    result: dict[str, Any] = {
        "points": len(status),
        "reached": int(reached.sum()),
        "out_of_reach": int(np.count_nonzero(status == 0)),
        "no_robot": int(np.count_nonzero(status == NO_ROBOT)),
        "binding": dict(Counter(name for text in results["binding"] for name in _names(str(text))).most_common(12)),
    }
    for column, name in enumerate(COLUMNS[1:], 1):
        values = figures[reached, column]
        values = values[np.isfinite(values)]
        if values.size:
            at = np.flatnonzero(reached & np.isfinite(figures[:, column]))[int(np.argmin(values))]
            result[name] = {
                "least": float(values.min()),
                "median": float(np.median(values)),
                "largest": float(values.max()),
                "least_at": {axis.name: value for axis, value in zip(plan.axes, table[at].tolist(), strict=True)},
            }
    return result


def _names(text: str) -> list[str]:
    """Names of the limits of a motion; a cause given as a sentence counts as one name."""
    return [name for name in text.split(", ") if name] if " " not in text.replace(", ", "") else [text]


def _axis_values(plan: SweepPlan, results: Mapping[str, NDArray]) -> NDArray[np.float64]:
    """(n, a) values of the axes, in their order, at every point."""
    outer, inner = iter(results["outer"].T), iter(results["inner"].T)
    return np.column_stack([next(inner) if axis.is_pose else next(outer) for axis in plan.axes])


def write_table(plan: SweepPlan, results: Mapping[str, NDArray], actuators: tuple[str, ...], path: Path) -> None:
    """Write a CSV file with one line per point. Raises TensegrityError if it cannot be written."""
    heads = [
        *(axis.name for axis in plan.axes), *COLUMNS, "px", "py", "pz", "qw", "qx", "qy", "qz", *actuators, "binding"
    ]  # fmt: skip
    numbers = np.column_stack((_axis_values(plan, results), results["figures"], results["pose"], results["positions"]))
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(heads)
    for row, binding in zip(numbers, results["binding"], strict=True):
        writer.writerow([*(f"{value:.9g}" for value in row.tolist()), binding])
    save_file(path, text.getvalue())


def summary(plan: SweepPlan, figures: dict[str, Any]) -> list[tuple[str, str]]:
    """Rows of the summary of a sweep: names with units, and values with the point of the least one.

    Args:
        figures: see `sweep_figures`.
    """
    axes = {axis.name: axis for axis in plan.axes}
    stops = ", ".join(f"{key} ({n})" for key, n in figures["binding"].items())
    rows = [
        ("points", str(figures["points"])), ("reached", str(figures["reached"])),
        ("out of reach", str(figures["out_of_reach"])), ("no robot or no equilibrium", str(figures["no_robot"])),
        ("what stops the motion there", stops or "nothing"),
    ]  # fmt: skip
    for column in COLUMNS[1:]:
        if column in figures:
            each = figures[column]
            where = ", ".join(_in_words(axes[key], value) for key, value in each["least_at"].items())
            value = f"{each['least']:.4g} (at {where}) to {each['largest']:.4g}, median {each['median']:.4g}"
            rows.append((WORDS[column], value))
    return rows


def _in_words(axis: SweepAxis, value: float) -> str:
    """Value of an axis with its unit, angles in degrees as in the options; parameters in the unit of their text."""
    if axis.name in ("rx", "ry", "rz"):
        return f"{axis.name} {np.degrees(value):.4g} deg"
    unit = "m" if axis.is_pose else "N" if axis.name.startswith("load.") else axis.unit
    return f"{axis.name} {value:.4g} {unit}".rstrip()


def write_report(plan: SweepPlan, results: Mapping[str, NDArray], name: str, folder: Path) -> dict[str, Any]:
    """Write the page `report.html` with embedded plots; returns the key figures.

    Raises:
        TensegrityError: the page cannot be written.
    """
    figures = sweep_figures(plan, results)
    pictures = [
        (title, _picture(plan, results, column, title))
        for column, title in (("status", "reached"), *((each, WORDS[each]) for each in MAPS))
        if column == "status" or np.isfinite(results["figures"][:, COLUMNS.index(column)]).any()
    ]
    rows = [(axis.label, f"{axis.low:.5g} to {axis.high:.5g}", str(axis.count)) for axis in plan.axes]
    facts = summary(plan, figures)
    kind = f"{plan.random} random poses, seed {plan.seed}" if plan.random else "grid"
    body = [
        f"<h1>{html.escape(name)}: sweep</h1><p>{kind}; lengths in m, angles in rad, from the pose at rest.</p>",
        _table(("axis", "range", "values"), rows), _table(("", ""), facts),
        *(f'<h2>{html.escape(title)}</h2><img alt="{html.escape(title)}" src="data:image/png;base64,{data}">'
          for title, data in pictures),
    ]  # fmt: skip
    head = (
        '<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(name)}: sweep</title><style>{STYLE}</style>"
    )
    page = head + "".join(body)
    save_file(folder / "report.html", page)
    return figures


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    head = "".join(f"<th>{html.escape(each)}</th>" for each in heads)
    lines = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{lines}</table>"


def _picture(plan: SweepPlan, results: Mapping[str, NDArray], column: str, title: str) -> str:
    """Plot of one column as a PNG in base64: a curve for one axis, a map for two, slices along a third axis."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    values = np.array(results["figures"][:, COLUMNS.index(column)])
    values[~np.isfinite(values)] = np.nan
    if column == "status":
        values = (values == REACHED).astype(np.float64)
    table = _axis_values(plan, results)
    varied = [k for k, axis in enumerate(plan.axes) if axis.count > 1]
    figure = Figure(figsize=(9, 5), constrained_layout=True)
    FigureCanvasAgg(figure)
    if len(varied) <= 1:
        drawn = figure.add_subplot()
        x = varied[0] if varied else 0
        order = np.argsort(table[:, x], kind="stable")
        drawn.plot(table[order, x], values[order], ".-")
        drawn.set_xlabel(plan.axes[x].label)
        drawn.set_ylabel(title)
        if column == "status":
            drawn.set_yticks((0.0, 1.0), ("no", "yes"))
            drawn.set_ylim(-0.1, 1.1)
    else:
        x, y = varied[-2], varied[-1]
        others = table[:, [k for k in varied if k not in (x, y)]]
        slices = np.unique(others, axis=0) if others.shape[1] and not plan.random else np.zeros((1, 0))
        slices = slices[np.unique(np.linspace(0, len(slices) - 1, min(len(slices), MOST_PANELS)).astype(int))]
        columns = int(np.ceil(np.sqrt(len(slices))))
        finite = values[np.isfinite(values)]
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
        if column == "status":
            low, high = 0.0, 1.0
        panels: list[Any] = []
        mapped: Any = None
        for number, piece in enumerate(slices, 1):
            drawn = figure.add_subplot(int(np.ceil(len(slices) / columns)), columns, number)
            rows = np.all(others == piece, axis=1) if piece.size else np.ones(len(values), dtype=np.bool_)
            if plan.random:
                mapped = drawn.scatter(table[rows, x], table[rows, y], c=values[rows], s=6, vmin=low, vmax=high)
            else:
                xs, ys = plan.axes[x].values, plan.axes[y].values
                grid = grid_of(xs, ys, table[rows][:, [x, y]], values[rows])
                mapped = drawn.pcolormesh(xs, ys, grid, shading="nearest", vmin=low, vmax=high)
            drawn.set_xlabel(plan.axes[x].label)
            drawn.set_ylabel(plan.axes[y].label)
            if piece.size:
                names = [plan.axes[k].name for k in varied if k not in (x, y)]
                drawn.set_title(", ".join(f"{n} = {v:.4g}" for n, v in zip(names, piece, strict=True)), fontsize=8)
            panels.append(drawn)
        if mapped is not None:
            figure.colorbar(mapped, ax=panels, label=title)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=100, metadata={"Software": None})
    return base64.b64encode(out.getvalue()).decode()


def grid_of(
    xs: NDArray[np.float64], ys: NDArray[np.float64], points: NDArray[np.float64], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Values (n,) at grid points (n, 2) as an array (len(ys), len(xs)), NaN without a point; axes may be decreasing."""
    grid = np.full((len(ys), len(xs)), np.nan)
    columns, rows = (np.abs(points[:, k, None] - axis).argmin(axis=1) for k, axis in enumerate((xs, ys)))
    grid[rows, columns] = values
    return grid
