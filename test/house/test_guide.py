"""The guide to a robot of your own: its commands run, one after the other, in an empty folder."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tensegrity_dynamics import load_robot
from tensegrity_tools.cli import app

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "your_own_robot.md"
QUICK = ("new", "export")
"""Commands that take no time to speak of."""


def commands() -> list[list[str]]:
    """Words of every command of the guide."""
    blocks = re.findall(r"^```sh\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [shlex.split(line) for block in blocks for line in block.splitlines() if line]


def test_the_quick_commands_of_the_guide_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = [words for words in commands() if words[1] in QUICK]
    assert len(run) == 3
    for words in run:
        assert words[0] == "tensegrity"
        with pytest.raises(SystemExit) as ended:
            app(words[1:])
        assert not ended.value.code, words
    assert load_robot("my_robot.yaml").actuators


@pytest.mark.long
@pytest.mark.system
def test_the_whole_guide_runs(tmp_path: Path) -> None:
    for words in commands():
        extra = ["--no-view"] if words[1] == "up" else []
        done = subprocess.run(
            [sys.executable, "-m", "tensegrity_tools.cli", *words[1:], *extra],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{words}: {done.stdout[-1500:]}{done.stderr[-1500:]}"
    assert list(tmp_path.glob("my_tour*.html"))
    assert (tmp_path / "my_robot_sweep" / "report.html").is_file()
