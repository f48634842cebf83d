"""`tensegrity urdf`: prints or writes the robot description."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_tools.cli import program

FILES = Path(__file__).resolve().parents[3] / "urdf"


def test_the_printed_description_is_the_file_at_the_top_level() -> None:
    result = CliRunner().invoke(program, ["urdf", "biglide"], catch_exceptions=False)
    assert result.exit_code == 0
    assert result.stdout == (FILES / "biglide.urdf").read_text(encoding="utf-8")


def test_a_file_is_written_instead_of_printing(tmp_path: Path) -> None:
    path = tmp_path / "biglide.urdf"
    result = CliRunner().invoke(program, ["urdf", "biglide", "--out", str(path)], catch_exceptions=False)
    assert (result.exit_code, result.stdout) == (0, "")
    assert " ".join(result.stderr.split()) == f"{path} is written."
    assert path.read_bytes() == (FILES / "biglide.urdf").read_bytes()


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "biglide.urdf"
    with pytest.raises(TensegrityError, match=f"cannot write {path}: No such file"):
        CliRunner().invoke(program, ["urdf", "biglide", "--out", str(path)], catch_exceptions=False)
