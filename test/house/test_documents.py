"""What the documents show is true: programs run, robot files load, names and files exist, commands are there."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(document: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", document.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_names_that_the_documents_import_exist(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for module, names in re.findall(r"^from (tensegrity_\w[\w.]*) import ([\w, ]+)$", text, re.MULTILINE):
        for name in names.split(","):
            found = hasattr(importlib.import_module(module), name.strip())
            assert found, f"{document.name}: {module}.{name.strip()}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_files_that_the_documents_link_exist(document: Path) -> None:
    for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)", document.read_text(encoding="utf-8")):
        assert (document.parent / target).exists(), f"{document.name} links {target}"


def test_the_programs_in_the_readme_run() -> None:
    programs = blocks(ROOT / "README.md", "python")
    assert programs
    for program in programs:
        done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_the_robot_files_in_the_readme_load_and_hang_in_equilibrium(tmp_path: Path) -> None:
    from tensegrity_dynamics import forward_kinematics, load_robot

    files = blocks(ROOT / "README.md", "yaml")
    assert files
    for number, text in enumerate(files):
        path = tmp_path / f"robot_{number}.yaml"
        path.write_text(text, encoding="utf-8")
        assert forward_kinematics(load_robot(str(path))).stable


def test_the_commands_in_the_readme_exist() -> None:
    from tensegrity_tools.cli import app

    lines = "\n".join(blocks(ROOT / "README.md", "sh"))
    commands = set(re.findall(r"^tensegrity (\w+)", lines, re.MULTILINE))
    targets = set(re.findall(r"^make (\w+)", lines, re.MULTILINE))
    assert commands
    for command in commands:
        with pytest.raises(SystemExit) as ended:
            app([command, "--help"])
        assert not ended.value.code, command
    assert targets <= set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
