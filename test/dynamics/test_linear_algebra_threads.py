"""Linear algebra in the processes of a robot uses one thread, unless its user says otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tensegrity_dynamics.linear_algebra_threads import VARIABLES

PROBE = """
import os
import numpy
print(len(os.listdir("/proc/self/task")), os.environ.get("OPENBLAS_NUM_THREADS"))
"""


def told(module: str, folder: Path, **given: str) -> list[str]:
    (folder / "probe").mkdir()
    (folder / "probe" / "__init__.py").write_text("import tensegrity_dynamics\n")
    (folder / "probe" / f"{module}.py").write_text(PROBE)
    others = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    done = subprocess.run(
        [sys.executable, "-m", f"probe.{module}"],
        cwd=folder,
        env={**others, **given},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert not done.returncode, done.stderr
    return done.stdout.split()


def test_a_node_uses_one_thread_for_its_linear_algebra(tmp_path: Path) -> None:
    if not Path("/proc/self/task").exists():
        pytest.skip("threads are counted in /proc")
    assert told("robot_node", tmp_path) == ["1", "1"]


def test_what_the_user_has_set_is_kept(tmp_path: Path) -> None:
    assert told("robot_node", tmp_path, OPENBLAS_NUM_THREADS="2")[1] == "2"


def test_a_program_of_a_user_that_imports_the_libraries_is_left_alone(tmp_path: Path) -> None:
    assert told("notebook", tmp_path)[1] == "None"
