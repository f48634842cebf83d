"""Trajectory files with anything in any field: a motion with finite values, or one sentence with file, line and
field."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensegrity_control.trajectories import trajectory_file
from tensegrity_control.trajectories.trajectory_file import MAXIMUM_CHARACTERS, NamedTrajectory, parse_trajectory
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_tools.cli import app

KINDS = ("cubic Hermite", "quintic", "minimum jerk", "pose", "orientation")
ODD = (
    ".nan", ".inf", "-.inf", "1e300", "-1e300", "1e-300", "1e155", "1e9", "1e-9", "-1", "0", '"1 m"', '"1 furlong"',
    "nan", '""', "null", "true", "[]", "{}", '"2 s"', '"1e300 s"', '"5 deg"', "9" * 400, '"1/0"', "é", '"1e-9 s"',
    "-0.0",
)  # fmt: skip
ENTRIES = (
    "1",
    "null",
    "x",
    "[]",
    "{}",
    "[[]]",
    "[t]",
    "[t, t]",
    "[t, 1]",
    "[[0, 0, 0], [1]]",
    "{x: 1}",
    "pose",
    "&a [*a]",
)
MARKS = ("&a ", "*a", "!!x ", "\x00", "\t", "{", "]", "\n---\n", "<<: ", "\ufeff", "- ", "é")


def hostile_text(draw: random.Random, actuators: list[str]) -> str:
    kind = draw.choice(KINDS)
    plain = draw.choice((["x", "y", "z"], actuators, actuators[:1], ["x", "y", "z", *actuators[:1]]))
    names = {"pose": ["x", "y", "z", "qw", "qx", "qy", "qz"], "orientation": ["w", "x", "y", "z"]}.get(kind, plain)
    columns = ["t", *names]
    if kind in ("cubic Hermite", "quintic") and draw.random() < 0.4:
        columns += [f"{name}_rate" for name in names]
    count, now = draw.choice((2, 3, 5, 20)), 0.0
    rows = []
    for _ in range(count):
        rows.append(
            [repr(now), *("1" if each in ("w", "qw") else draw.choice(("0", "0.001", "-0.01")) for each in columns[1:])]
        )
        now += draw.choice((1.0, 1.0, 0.1, 1e-9, 1e9))
    for _ in range(draw.choice((0, 1, 1, 2))):
        row, at = draw.choice(rows), draw.randrange(6)
        if at == 0:
            draw.shuffle(rows)
        elif at == 1:
            rows.append(rows[-1])
        elif at == 2 and row:
            row.pop()
        elif row:
            row[draw.randrange(len(row))] = draw.choice(ODD)
    parts = {"kind": kind, "columns": f"[{', '.join(columns)}]"}
    if draw.random() < 0.3:
        limit = draw.choice(("1", "1e-9", "1e-300", "0", "-1", ".nan", '"1 m/s"', "[1, 2]", "null", "{}"))
        parts["limits"] = f"{{{draw.choice(('velocity', 'acceleration', 'x'))}: {limit}}}"
    if draw.random() < 0.3:
        parts["units"] = (
            f"{{{draw.choice(('length', 'angle', 'x'))}: {draw.choice(('mm', 'deg', 'ms', '1', 'null', '[]'))}}}"
        )
    parts["rows"] = "\n" + "\n".join(f"- [{', '.join(row)}]" for row in rows)
    if draw.random() < 0.2:
        parts[draw.choice((*parts, "extra", "quantities"))] = draw.choice(ENTRIES)
    text = "".join(f"{name}: {part}\n" for name, part in parts.items())
    if draw.random() < 0.1:
        k = draw.randrange(len(text))
        text = text[:k] + draw.choice(MARKS) + text[k:]
    return text


def motion_of(text: str) -> NamedTrajectory | None:
    try:
        return parse_trajectory(text, "way.yaml")
    except TensegrityError as error:
        said = str(error)
    assert re.match(r"way\.yaml:\d+: ", said) and "\n" not in said and len(said) < 600, said
    return None


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(k, marks=pytest.mark.long) for k in range(3, 60))])
def test_a_file_with_anything_in_any_field_is_a_motion_or_refused_naming_file_line_and_field(seed: int) -> None:
    draw, made = random.Random(seed), 0
    actuators = [each.name for each in load_robot("three_prism").actuators]
    for _ in range(50):
        motion = motion_of(hostile_text(draw, actuators))
        if motion is not None:
            made += 1
            assert len(motion.lines) == len(motion.knots)
            assert np.isfinite(motion.trajectory.value(np.array(motion.knots))).all()
    assert 0 < made < 50


def test_a_file_with_far_too_many_waypoints_is_refused_before_its_lines_are_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "columns: [t, x, y, z]\nrows:\n" + "".join(f"- [{k}, 0, 0, 0]\n" for k in range(50_000))
    assert len(text) > MAXIMUM_CHARACTERS
    monkeypatch.setattr(trajectory_file, "YamlSource", lambda *_: pytest.fail("minutes of reading"))
    with pytest.raises(TensegrityError, match=r"way\.yaml: rows: .* cut the motion"):
        parse_trajectory(text, "way.yaml")


def follow(text: str, folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    file = folder / "way.yaml"
    file.write_text(text, encoding="utf-8")
    status: Any = 0
    try:
        app(["follow", "three_prism", str(file), "--check", "--json", *options])
    except SystemExit as end:
        status = end.code or 0
    out, err = capsys.readouterr()
    return status, out if status == 0 else err


def test_an_unreachable_waypoint_is_named_with_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "columns: [t, x, y, z]\nrows:\n- [0, 0, 0, 0]\n- [1, 0, 0, 0.001]\n- [2, 0, 0, 3]\n"
    status, said = follow(text, tmp_path, capsys, "--relative")
    assert status == 1 and "way.yaml:5: rows.2: at 2 s: the goal pose is out of reach" in said
    status, said = follow(text.replace("0, 0, 3]", "0, 0, 0.002]"), tmp_path, capsys, "--relative")
    assert status == 0 and json.loads(said)["waypoints"] == 3


def test_a_motion_longer_than_controllers_take_is_refused_by_the_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "columns: [t, x, y, z]\nrows:\n- [0, 0, 0, 0]\n- [5000, 0, 0, 0.001]\n"
    status, said = follow(text, tmp_path, capsys, "--relative")
    assert status == 1 and "the motion takes 5000 s, and one motion at most 600 s" in said


def test_columns_of_actuators_beside_those_of_the_output_are_refused_as_such(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "columns: [t, x, top_1]\nrows:\n- [0, 0, 1]\n- [1, 0, 1]\n"
    status, said = follow(text, tmp_path, capsys)
    assert status == 1 and "columns: x is no actuator of three_prism" in said and "not of both" in said


def test_times_that_print_alike_and_long_numbers_are_shown_as_they_are_and_cut() -> None:
    with pytest.raises(TensegrityError, match=r"1000000000\.0 s does not come after 1000000000\.5 s"):
        parse_trajectory("columns: [t, x]\nrows:\n- [1000000000.5, 0]\n- [1000000000.0, 0]\n")
    with pytest.raises(TensegrityError, match=r"found 9{57}\.\.\.; "):
        parse_trajectory(f"columns: [t, x]\nrows:\n- [0, 0]\n- [1, {'9' * 400}]\n")
