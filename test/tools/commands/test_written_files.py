"""What commands write is there whole or not at all: a full disk takes nothing that was there before."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.saved_file import save_file
from tensegrity_tools.cli import app, program

COMMANDS = {
    "urdf": ["urdf", "biglide", "--out", "FILE.urdf"],
    "export": ["export", "three_prism", "--to", "mjcf", "--out", "FILE.xml"],
    "matrices": ["export", "three_prism", "--to", "matrices", "--out", "FILE.npz"],
    "picture": ["fk", "three_prism", "--plot-to", "FILE.png"],
    "table": ["simulate", "three_prism", "--duration", "10ms", "--data", "FILE.csv"],
    "new": ["new", "FILE.yaml", "--force"],
}


def fill_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write

    def full(handle: int, data: memoryview) -> int:
        if len(data) < 100:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(handle, data[: len(data) // 2])

    monkeypatch.setattr(os, "write", full)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_leaves_the_old_file_and_is_said_in_one_sentence(name, tmp_path, monkeypatch):
    arguments = [each.replace("FILE", str(tmp_path / "old")) for each in COMMANDS[name]]
    path = Path(next(each for each in arguments if str(tmp_path) in each))
    path.write_text("old")
    fill_disk(monkeypatch)
    with pytest.raises(TensegrityError, match=f"cannot write {path}: No space left on device"):
        CliRunner().invoke(program, arguments, catch_exceptions=False)
    assert [each.name for each in tmp_path.iterdir()] == [path.name] and path.read_text() == "old"


def test_a_file_keeps_its_permissions_and_links_and_a_device_is_written_to(tmp_path):
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path)
    save_file(link, "new")
    assert link.is_symlink() and path.read_text() == "new" and path.stat().st_mode & 0o777 == 0o640
    save_file(Path(os.devnull), b"nothing")


def test_a_disk_that_refuses_what_was_compiled_is_no_traceback(monkeypatch, capsys):
    def compiled() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/cache/kernel.nbc")

    monkeypatch.setattr("tensegrity_tools.cli.program", lambda *_, **__: compiled())
    with pytest.raises(SystemExit, match="1"):
        app(["fk", "three_prism"])
    assert capsys.readouterr().err.startswith("cannot write /cache/kernel.nbc: No space left on device")


def test_a_format_of_another_kind_of_robot_is_refused_with_that_kind():
    with pytest.raises(TensegrityError, match=r"^biglide is a mechanism, and 'matrices' is a format of a structure\."):
        CliRunner().invoke(program, ["export", "biglide", "--to", "matrices"], catch_exceptions=False)
