"""Importing the library is quick, since it loads nothing that only some of its functions use."""

from __future__ import annotations

import subprocess
import sys

HEAVY = (
    "scipy.linalg", "scipy.optimize", "scipy.integrate", "scipy.sparse", "pydantic", "ruamel.yaml", "pint",
    "matplotlib", "viser", "rclpy", "tensegrity_dynamics.mechanisms", "tensegrity_dynamics.robots.file_reader",
)  # fmt: skip


def test_importing_the_library_loads_no_part_that_few_functions_use() -> None:
    code = f"import sys, tensegrity_dynamics; print([each for each in {HEAVY} if each in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
