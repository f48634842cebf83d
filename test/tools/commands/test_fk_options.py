"""Options of `tensegrity fk`: each changes what it says, and is refused where it means nothing."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tensegrity_dynamics import TensegrityError
from tensegrity_tools.cli import program
from tensegrity_tools.experiments._progress import figures, listening, report


def fk(*words: str) -> Any:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        program(["fk", *words, "--json"], standalone_mode=False)
    return json.loads(said.getvalue())


def test_a_looser_tolerance_takes_fewer_iterations_and_a_step_too_long_is_refused() -> None:
    relaxed = ("three_prism", "--method", "relaxation")
    exact, rough = fk(*relaxed, "--tolerance", "1e-3"), fk(*relaxed, "--tolerance", "1e-1")
    assert rough["iterations"] < exact["iterations"]
    with pytest.raises(TensegrityError, match="delta 10 m/N"):
        fk(*relaxed, "--delta", "10", "--epsilon", "0.2")


def test_gravity_the_start_and_the_picture_are_taken(tmp_path: Path) -> None:
    start, picture = tmp_path / "start.csv", tmp_path / "shape.png"
    start.write_text("name,x,y,z\ntop_1,0.1,0.1,0.9\n")
    usual = fk("three_prism", "--plot-to", str(picture))
    assert picture.read_bytes().startswith(b"\x89PNG")
    moved = fk("three_prism", "--start", str(start))
    assert moved["iterations"] != usual["iterations"]
    assert moved["pose"]["position_m"] == pytest.approx(usual["pose"]["position_m"], abs=1e-6)
    heavy = fk("tensebot", "--gravity", "0,0,-30")
    assert heavy["pose"]["position_m"][2] < fk("tensebot", "--gravity", "0,0,0")["pose"]["position_m"][2]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("three_prism", "--delta", "0.1"), "--delta and --epsilon are for --method relaxation"),
        (("three_prism", "--seed", "3"), "--starts and --seed are for --competing"),
        (("three_prism", "--competing", "--tolerance", "1"), "--tolerance: not with --competing"),
        (("three_prism", "--gravity", "0,0"), "give three numbers"),
        (("three_prism", "--start", "/nowhere.csv"), "cannot be read"),
        (("single_strut", "--gravity", "0,0,0"), "--gravity: single_strut is a mechanism"),
    ],
)
def test_an_option_that_means_nothing_here_is_refused(words: tuple[str, ...], reason: str) -> None:
    with pytest.raises(TensegrityError, match=reason):
        fk(*words)


def test_experiments_say_what_they_do_and_what_came_of_it_to_whoever_listens() -> None:
    heard: list[tuple[str, bool]] = []
    report("to nobody")
    with listening(lambda text, lasts: heard.append((text, lasts))):
        report("the first of two")
        figures("the first", {"error_mm": 1.0, "over_time": [1.0] * 9})
    figures("to nobody", {"error_mm": 2.0})
    assert heard == [("the first of two", False), ("the first: error_mm 1", True)]
