"""What commands print is whole, wherever it goes."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

from tensegrity_tools import output
from tensegrity_tools.output import without_series


@pytest.mark.parametrize("width", [20, 80, 200])
def test_no_table_cuts_a_digit_a_unit_or_a_name(width, monkeypatch):
    text = io.StringIO()
    monkeypatch.setattr(output, "console", Console(file=text, width=width))
    columns = ("", "starts", "energy J", "output at", "slack")
    rows = [
        (
            f"{label} (upright, turned by 180 deg)",
            1000 + k,
            116.2812345,
            f"-37.{k}, -20.2, -337.7 mm",
            "saddle_3, saddle_1",
        )
        for k, label in enumerate("ABC")
    ]
    output.print_table(output.table("stable equilibria", columns, rows))
    lines = text.getvalue()
    for row in rows:
        for cell in (row[0], str(row[1]), "116.28", row[3], row[4]):
            assert cell in lines
    assert all(column in lines for column in columns) and "…" not in lines
    assert output.console.width == width


def test_figures_are_printed_and_series_are_not() -> None:
    result = {
        "error": 0.5,
        "pose": np.eye(4),
        "times": np.zeros(65),
        "cases": [{"name": "a", "path": np.zeros((30, 3)), "end": [1.0, 2.0]}],
        "rows": [["a", 1.0]] * 70,
    }
    assert without_series(result) | {"pose": None} == {
        "error": 0.5, "pose": None, "cases": [{"name": "a", "end": [1.0, 2.0]}], "rows": [["a", 1.0]] * 70,
    }  # fmt: skip


def test_units_in_brackets_are_printed_in_titles_and_heads() -> None:
    text = io.StringIO()
    Console(file=text, width=200).print(output.table("errors [mm]", ("period [ms]", "until [s]"), [("5", "2")]))
    title, heads = (line.strip() for line in text.getvalue().split("\n")[:2])
    assert (title, heads) == ("errors [mm]", "period [ms]  until [s]")
