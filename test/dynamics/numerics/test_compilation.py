"""Compiled functions on disk: they follow what they call, and the fields of the named tuples that they take."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections import namedtuple
from copy import deepcopy
from pickle import dumps, loads

import numpy as np
import pytest
from numba.core import config

from tensegrity_dynamics.numerics.compilation import Kept, QuickCall, allocation_free, compiled, compiled_part, taken
from tensegrity_dynamics.numerics.linear_algebra import lu_solve

LIBRARY = """
from collections import namedtuple
from tensegrity_dynamics.numerics.compilation import compiled, compiled_part
{record}

@{kind}
def callee(x):
    return {factor} * x

@compiled
def first(record):
    return callee(record.a[0])
"""


@pytest.fixture
def answer(tmp_path, monkeypatch):
    """Write the library, read it anew as another process would, and return what it answers and whether it compiled."""
    monkeypatch.setattr(config, "CACHE_DIR", "")

    def run(record: str, factor: int = 1, name: str = "Record", kind: str = "compiled") -> tuple[float, bool]:
        path = tmp_path / "library.py"
        path.write_text(LIBRARY.format(record=record, factor=factor, kind=kind))
        specification = importlib.util.spec_from_loader("library", loader=None, origin=str(path))
        assert specification is not None
        library = importlib.util.module_from_spec(specification)
        library.__file__ = str(path)
        monkeypatch.setitem(sys.modules, "library", library)
        exec(compile(path.read_text(), path, "exec"), vars(library))
        result = library.first(getattr(library, name)(a=np.array([1.0]), b=np.array([2.0])))
        return result, not library.first.stats.cache_hits

    return run


def test_a_fresh_process_reads_what_another_one_compiled(answer):
    assert answer('Record = namedtuple("Record", "a b")') == (1.0, True)
    assert answer('Record = namedtuple("Record", "a b")') == (1.0, False)


def test_fields_that_change_their_order_are_read_by_name(answer):
    assert answer('Record = namedtuple("Record", "a b")') == (1.0, True)
    assert answer('Record = namedtuple("Record", "b a")') == (1.0, True)


def test_a_named_tuple_may_be_renamed(answer):
    assert answer('Record = namedtuple("Record", "a b")')[0] == 1.0
    assert answer('Other = namedtuple("Other", "b a")', name="Other")[0] == 1.0


def test_a_change_of_a_callee_reaches_its_callers(answer):
    assert answer('Record = namedtuple("Record", "a b")', factor=1)[0] == 1.0
    assert answer('Record = namedtuple("Record", "a b")', factor=3)[0] == 3.0


def test_a_quick_call_answers_as_the_function_for_other_arrays_and_in_copies():
    call = QuickCall(lu_solve)
    factor, pivots = np.array([[2.0, 1.0], [0.5, 3.0]]), np.zeros(2, dtype=np.int64)
    for matrix, twin in ((factor, call), (2.0 * factor, call), (factor, deepcopy(call)), (factor, loads(dumps(call)))):
        ours, theirs = np.array([1.0, 2.0]), np.array([1.0, 2.0])
        twin(matrix, 2, pivots, ours)
        lu_solve(matrix, 2, pivots, theirs)
        np.testing.assert_array_equal(ours, theirs)


Record = namedtuple("Record", "a b")


@allocation_free
def add_to(kept, factor):
    record, number, target = taken(kept)
    for k in range(target.shape[0]):
        target[k] += number * factor * (record.a[k] - record.b[k, 1])


def test_what_is_kept_is_shared_with_its_owner_and_copied_with_it():
    record, target = Record(np.array([1.0, 2.0]), np.arange(4.0).reshape(2, 2)), np.zeros(2)
    owner = (QuickCall(add_to), Kept(record, 2.0, target), record, target)
    for call, kept, own, result in (owner, deepcopy(owner), loads(dumps(owner))):
        expected = result.copy()
        for factor in (1.0, 3.0):
            own.a[0] += 5.0
            expected += 2.0 * factor * (own.a - own.b[:, 1])
            call(kept, factor)
            np.testing.assert_array_equal(result, expected)
        own.a[0] -= 10.0
    assert np.array_equal(target, [70.0, -8.0])  # copies have written into arrays of their own


def test_a_part_of_compiled_functions_answers_python_too_after_its_callers_and_before():
    def double(x):
        return 2.0 * x

    first, second = compiled_part(double), compiled_part(double)

    @compiled
    def caller(x):
        return first(x) + 1.0

    assert (caller(1.0), first(1.0), first(2.0)) == (3.0, 2.0, 4.0)
    assert (second(1.0), second(3)) == (2.0, 6)


def test_a_part_that_is_read_from_disk_is_taken_in_by_a_caller_that_is_compiled(answer):
    assert answer('Record = namedtuple("Record", "a b")', kind="compiled_part") == (1.0, True)
    assert answer('Record = namedtuple("Record", "b a")', kind="compiled_part") == (1.0, True)
    assert sys.modules["library"].callee.stats.cache_hits


@pytest.mark.parametrize(("kind", "has_machine_code"), [(compiled, True), (compiled_part, False)])
def test_machine_code_of_its_own_is_made_of_what_python_calls(kind, has_machine_code):
    @kind
    def halve(x):
        return 0.5 * x

    @compiled
    def caller(x):
        return halve(x)

    assert caller(3.0) == 1.5
    [made] = halve.overloads.values()
    _, _, (machine_code, _) = made.library.serialize_using_object_code()
    assert (made.fndesc.llvm_func_name.encode() in machine_code) is has_machine_code


ANOTHER_NUMBA = """
import llvmlite.binding as llvm
from numba.core import codegen
{change}
from tensegrity_dynamics.numerics.compilation import PartCompiler, compiled, compiled_part
assert PartCompiler is None

@compiled_part
def halve(x):
    return 0.5 * x

@compiled
def caller(x):
    return halve(x)

print(caller(3.0), halve(5.0))
"""


@pytest.mark.parametrize(
    "change",
    [
        "del codegen.JITCodeLibrary",
        "class Codegen: pass\ncodegen.Codegen = Codegen",
        "parse = llvm.parse_assembly\ndef refuse(text):\n    if 'ptr null' in text: raise RuntimeError\n"
        "    return parse(text)\nllvm.parse_assembly = refuse",
    ],
    ids=["without its class", "without its method", "with another LLVM"],
)
def test_parts_compile_as_other_functions_with_a_numba_that_lacks_a_private_piece(change, tmp_path):
    script = tmp_path / "another.py"
    script.write_text(ANOTHER_NUMBA.format(change=change))
    answer = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert answer.stdout == "1.5 2.5\n", answer.stderr


def test_an_array_of_another_shape_is_refused_by_a_slice():
    @compiled
    def fill(target, source):
        target[:] = source

    fill(np.zeros(2), np.ones(2))
    with pytest.raises(ValueError, match="another shape"):
        fill(np.zeros(2), np.ones(3))


def test_settings_of_compilation_are_the_same_where_every_value_is_set_or_not():
    from numba.core.compiler import Flags

    default, written_out, other = Flags(), Flags(), Flags()
    written_out.nrt = default.nrt  # a default that is set is the same as one that is not
    other.nrt = not default.nrt
    assert default == written_out and hash(default) == hash(written_out)
    assert default != other and other == other.copy() and default != "settings"
