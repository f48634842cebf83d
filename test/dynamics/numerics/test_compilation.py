"""Compiled functions on disk: they follow what they call, and the fields of the named tuples that they take."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

LIBRARY = """
from collections import namedtuple
from tensegrity_dynamics.numerics.compilation import compiled
{record}

@compiled
def callee(x):
    return {factor} * x

@compiled
def first(record):
    return callee(record.a[0])
"""
USE = "import numpy as np, library; print(library.first(library.{name}(a=np.array([1.0]), b=np.array([2.0]))))"


@pytest.fixture
def answer(tmp_path):
    """Write the library, run it in a process of its own, and return what it prints."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), os.getcwd()))}
    environment.pop("NUMBA_CACHE_DIR", None)

    def run(record: str, factor: int = 1, name: str = "Record") -> float:
        (tmp_path / "library.py").write_text(LIBRARY.format(record=record, factor=factor))
        done = subprocess.run(
            [sys.executable, "-c", USE.format(name=name)], env=environment, capture_output=True, text=True, cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return float(done.stdout)

    return run


def test_fields_that_change_their_order_are_read_by_name(answer):
    assert answer('Record = namedtuple("Record", "a b")') == 1.0
    assert answer('Record = namedtuple("Record", "b a")') == 1.0


def test_a_named_tuple_may_be_renamed(answer):
    assert answer('Record = namedtuple("Record", "a b")') == 1.0
    assert answer('Other = namedtuple("Other", "b a")', name="Other") == 1.0


def test_a_change_of_a_callee_reaches_its_callers(answer):
    assert answer('Record = namedtuple("Record", "a b")', factor=1) == 1.0
    assert answer('Record = namedtuple("Record", "a b")', factor=3) == 3.0
