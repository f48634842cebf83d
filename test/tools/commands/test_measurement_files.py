"""Tables of measured points: units, separators, and a name for the place of every mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_tools.commands.servo.measurement_files import read_points, read_weights


def written(folder: Path, text: str, name: str = "points.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_points_come_from_tables_and_lists_with_units(tmp_path: Path) -> None:
    table = written(tmp_path, "# by hand\nActuator;reading;length\nsaddle_1; 1500; 8.5 in\n\nsaddle_1;1600;0.2\n")
    listed = written(tmp_path, "- {actuator: saddle_1, reading: 1500, length: 8.5 in}\n", "points.yaml")
    first = read_points(table, ["saddle_1"])["saddle_1"]
    assert [(each.reading, each.length) for each in first] == [(1500.0, pytest.approx(0.2159)), (1600.0, 0.2)]
    assert read_points(listed, ["saddle_1"])["saddle_1"][0].length == pytest.approx(0.2159)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("actuator,reading,length\nsaddle_1,abc,0.2\n", ["points.csv:2", "'abc'"]),
        ("actuator,reading,length\nsaddle_1,100,0.2\nsaddle_1,100,215\n", ["points.csv:3", "215 mm"]),
        ("actuator,reading,length\nsadle_1,100,0.2\n", ["points.csv:2", "Did you mean 'saddle_1'"]),
        ("actuator,reading,length\nsaddle_1,100,211,4 mm\n", ["points.csv:2", "4 cells"]),
        ("actuator,reading,length\nsaddle_1,100,2 kg\n", ["points.csv:2", "length"]),
        ("actuator,counts\nsaddle_1,100\n", ["points.csv:1", "reading, length"]),
        ("actuator,reading,length\n", ["no points"]),
        ("", ["no points"]),
    ],
)
def test_a_bad_row_is_named_with_its_file_and_line(tmp_path: Path, text: str, words: list[str]) -> None:
    with pytest.raises(TensegrityError) as problem:
        read_points(written(tmp_path, text), ["saddle_1", "draw_1"])
    for word in words:
        assert word in str(problem.value)


@pytest.mark.parametrize("text", ["a: 1\n", "- {actuator: saddle_1, reading: 1}\n", "- [\n"])
def test_a_bad_list_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(TensegrityError, match=r"points\.yaml"):
        read_points(written(tmp_path, text, "points.yaml"), ["saddle_1"])


def test_a_file_that_is_not_there_or_is_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TensegrityError, match="cannot be read"):
        read_weights(tmp_path / "none.csv")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TensegrityError, match="is no text"):
        read_weights(tmp_path / "binary.csv")
