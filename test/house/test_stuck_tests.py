"""A test, or a process, that never ends costs itself and not the run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SUPPORT = Path(__file__).resolve().parents[1] / "support"
TESTS = """
import threading
import pytest

@pytest.fixture
def stays():
    yield
    threading.Event().wait()

def test_that_waits():
    threading.Event().wait()

def test_whose_fixture_waits(stays):
    assert stays, "it has failed before"

def test_of_others():
    pass
"""
LEAVES_A_THREAD = """
import threading, time
import stuck_tests

stuck_tests.ENDING_S = 1.0

def test_that_leaves_a_thread():
    threading.Thread(target=time.sleep, args=(1e6,)).start()
"""


def run(folder: Path, text: str, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_waits.py").write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(SUPPORT), "TEST_LIMIT_S": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "stuck_tests", "-p", "no:cacheprovider", *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_a_test_that_is_stuck_fails_by_name_with_all_stacks_and_the_others_run(tmp_path: Path) -> None:
    done = run(tmp_path, TESTS, "-n", "1")
    assert done.returncode == 1
    assert "3 failed, 1 passed" in done.stdout
    for name in ("test_that_waits", "test_whose_fixture_waits"):
        assert f"crashed while running 'test_waits.py::{name}'" in done.stdout
    assert "in test_that_waits" in done.stderr and "in stays" in done.stderr


def test_a_process_that_does_not_end_after_its_last_test_is_ended_with_all_stacks(tmp_path: Path) -> None:
    done = run(tmp_path, LEAVES_A_THREAD, "-n", "0")
    assert done.returncode == 1
    assert "1 passed" in done.stdout and "Timeout" in done.stderr
