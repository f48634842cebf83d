"""What the documents show is true: programs run, robot files load, names and files exist."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

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


def anchors(document: Path) -> set[str]:
    """The anchors that mkdocs and GitHub make of headings."""
    found = set()
    for heading in re.findall(r"^#+ +(.*?)\s*$", document.read_text(encoding="utf-8"), re.MULTILINE):
        plain = re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "", heading)).strip().lower()
        found.add(plain.replace(" ", "-"))
    return found


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_anchors_that_the_documents_link_exist(document: Path) -> None:
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", document.read_text(encoding="utf-8")):
        page = document.parent / target if target else document
        assert anchor in anchors(page), f"{document.name} links {target}#{anchor}"


def test_every_page_is_in_the_navigation_of_the_manual_once() -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))

    def pages(part: object) -> list[str]:
        if isinstance(part, str):
            return [part]
        return [page for each in (part.values() if isinstance(part, dict) else part) for page in pages(each)]

    listed = pages(settings["nav"])
    assert sorted(listed) == sorted(path.name for path in (ROOT / settings["docs_dir"]).glob("*.md"))


def test_the_programs_in_the_readme_run() -> None:
    programs = blocks(ROOT / "README.md", "python")
    assert programs
    for program in programs:
        done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_the_page_on_python_runs_from_top_to_bottom(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    for program in blocks(ROOT / "docs" / "python.md", "python"):
        exec(compile(program, "python.md", "exec"), names)
    assert np.allclose(names["seen"].pose[0][1:], [0.0, 1.0], atol=1e-3)  # type: ignore[attr-defined]
    assert np.allclose(names["simulation"].observe().pose[0][0], 0.02, atol=1e-4)  # type: ignore[attr-defined]
    assert "nan" not in capsys.readouterr().out


def test_the_robot_files_in_the_readme_load_and_hang_in_equilibrium(tmp_path: Path) -> None:
    from tensegrity_dynamics import forward_kinematics, load_robot

    files = blocks(ROOT / "README.md", "yaml")
    assert files
    for number, text in enumerate(files):
        path = tmp_path / f"robot_{number}.yaml"
        path.write_text(text, encoding="utf-8")
        assert forward_kinematics(load_robot(str(path))).stable
