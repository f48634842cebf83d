"""Output of commands: tables for users, JSON for programs."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from tensegrity_dynamics.saved_file import save_file

if TYPE_CHECKING:  # `--help` must not import the library
    from matplotlib.figure import Figure

    from tensegrity_dynamics.robots.report import Report

console = Console()
progress = Console(stderr=True)
"""Console for all output except results, so that programs can read standard output."""


def plain(value: Any) -> Any:
    """Value converted to JSON types; numbers that are not finite become null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def print_json(value: Any) -> None:
    """Print one JSON document to standard output."""
    print(json.dumps(plain(value), indent=2))


def write_json(value: Any, path: Path) -> None:
    """Write one JSON document to a file. Raises TensegrityError if this is impossible."""
    save_file(path, json.dumps(plain(value)))


def save_picture(figure: Figure, path: Path, dpi: int | Literal["figure"] = "figure") -> None:
    """Save a figure in the format of its file extension. Raises TensegrityError if it cannot be written."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format=path.suffix[1:].lower(), dpi=dpi)
    save_file(path, drawn.getvalue())


LONGEST_FIGURE = 64
"""Largest count of numbers in one result, such as a matrix; longer lists are series over time or over a sweep."""


def without_series(value: Any) -> Any:
    """Copy of results without series: lists of more than `LONGEST_FIGURE` numbers are removed from their mappings."""
    if isinstance(value, Mapping):
        return {name: without_series(item) for name, item in value.items() if not _is_series(item)}
    if isinstance(value, (list, tuple)):
        return [without_series(item) for item in value]
    return value


def _is_series(value: Any) -> bool:
    if isinstance(value, (list, tuple, np.ndarray)):
        try:
            numbers = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):  # rows of a table, or of different lengths
            return (
                len(value) > 0
                and all(isinstance(each, (list, tuple, np.ndarray)) for each in value)
                and any(_is_series(each) for each in value)
            )
        return numbers.size > LONGEST_FIGURE
    return False


def print_report(report: Report) -> None:
    """Print a report: heading, tables and sentences separated by blank lines, notes or the conclusion."""
    if report.heading is not None:
        bold, words = report.heading
        console.print(f"[bold]{escape(bold)}[/bold]  {escape(words)}\n", highlight=False)
    for k, part in enumerate(report.parts):
        if k:
            console.print()
        if isinstance(part, str):
            console.print(part, highlight=False, markup=False)
        else:
            print_table(table(part.title, part.columns, part.rows, part.right))
    if report.notes or report.verdict:
        console.print()
    for note in report.notes:
        console.print(f"[yellow]note:[/yellow] {escape(note)}", highlight=False)
    if report.verdict and not report.notes:
        console.print(f"[green]{escape(report.verdict)}[/green]", highlight=False)


def print_table(made: Table) -> None:
    """Print a table; if it is wider than the terminal or an 80-column pipe, its lines continue, and no digit is cut.

    The title uses the whole width, even if the table is narrower.
    """
    if made.title:
        console.print(made.title, style="bold", highlight=False, markup=False)
        made.title = None
    width = console.width
    needed = sum(
        max(cell_len(str(cell)) for cell in (column.header, *column.cells)) + 2 if column.no_wrap else 22
        for column in made.columns
    )
    console.width = max(width, needed)
    try:
        console.print(made)
    finally:
        console.width = width


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], right: Sequence[int] = ()) -> Table:
    """Table; columns of numbers, and those listed in `right`, are right-aligned."""
    result = Table(
        title=Text(title), title_justify="left", title_style="bold", header_style="dim", box=None, pad_edge=False,
        padding=(0, 2, 0, 0), show_header=any(columns),
    )  # fmt: skip
    for i, name in enumerate(columns):
        numbers = bool(rows) and all(isinstance(row[i], (int, float)) for row in rows)
        # names, types and numbers are not wrapped; the remaining width is for sentences
        plain_words = bool(rows) and all(len(str(row[i])) <= 32 or " " not in str(row[i]) for row in rows)
        result.add_column(
            Text(name), justify="right" if numbers or i in right else "left", overflow="fold", no_wrap=plain_words
        )
    for row in rows:
        result.add_row(*(escape(item if isinstance(item, str) else number(item)) for item in row))
    return result


def panels(rows: int = 1, columns: int = 1, **options: Any) -> tuple[Any, Any]:
    """Matplotlib figure and its axes, without a display and without a global reference.

    Args:
        options: `figsize` [inch] and `layout` (default: constrained) of `Figure`; all others are passed to
            `Figure.subplots`.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=options.pop("figsize", None), layout=options.pop("layout", "constrained"))
    return figure, figure.subplots(rows, columns, **options)


def number(value: Any) -> str:
    """Number as readable text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, np.integer)):
        return str(value)
    return f"{float(value):.5g}"
