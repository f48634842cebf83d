"""Kernels are compiled before nodes start, once for a state of the code, and not again while that stays."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from tensegrity_dynamics import TensegrityError
from tensegrity_dynamics.numerics.compilation import Kept
from tensegrity_dynamics.numerics.late_call import WITHOUT_COMPILATION
from tensegrity_tools.commands.up import compile_missing
from tensegrity_tools.runtime.compiled_kernels import CompiledKernels, library_folders

pytestmark = pytest.mark.skipif(WITHOUT_COMPILATION, reason="compilation is switched off")


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """Sources that kernels are made of."""
    code = tmp_path / "code"
    (code / "part").mkdir(parents=True)
    (code / "part" / "kernel.py").write_text("STEP = 0.1\n")
    (code / "other.py").write_text("STEP = 0.2\n")
    return code


def kernels(code: Path, robot: str = "three_prism", controller: str = "tendon_length") -> CompiledKernels:
    return CompiledKernels(robot, controller, code.parent / "kept", [code])


CHANGES = {
    "an edit": lambda code: (code / "part" / "kernel.py").write_text("STEP = 0.3\n"),
    "a new file": lambda code: (code / "part" / "more.py").touch(),
    "a file that is gone": lambda code: (code / "other.py").unlink(),
    "another name": lambda code: (code / "other.py").rename(code / "another.py"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_of_the_code_is_compiled_once(change: str, code: Path) -> None:
    assert not kernels(code).are_ready
    kernels(code).note()
    assert kernels(code).are_ready
    CHANGES[change](code)
    assert not kernels(code).are_ready
    kernels(code).note()
    assert kernels(code).are_ready
    assert len(list((code.parent / "kept").iterdir())) == 1  # what was noted of the old code is gone


def test_each_robot_and_controller_has_kernels_of_its_own(code: Path) -> None:
    kernels(code).note()
    assert not kernels(code, robot="tensebot").are_ready
    assert not kernels(code, controller="qp").are_ready
    kernels(code, controller="qp").note()
    assert kernels(code).are_ready and kernels(code, controller="qp").are_ready


def test_machine_code_that_was_removed_or_replaced_is_compiled_again(code: Path) -> None:
    Kept(np.zeros(2))  # a kernel that this process has used
    kernels(code).note()
    (noted,) = (code.parent / "kept").iterdir()
    index, _, stamp = noted.read_text().splitlines()[0].partition("\t")
    mine = Path(shutil.copy(index, code.parent))
    noted.write_text(f"{mine}\t{stamp}\n")
    assert kernels(code).are_ready
    mine.write_bytes(mine.read_bytes().replace(stamp.encode(), b"0" * len(stamp)))  # that of another state of the code
    assert not kernels(code).are_ready
    mine.unlink()
    assert not kernels(code).are_ready


def program(text: str) -> list[str]:
    return [sys.executable, "-S", "-c", f"import signal, time; signal.pthread_sigmask(1, [15]); {text}"]


def test_up_compiles_with_a_line_of_progress_and_the_second_time_says_nothing(code: Path, capsys) -> None:
    stand_in = kernels(code)
    stand_in.command = program("print('three_prism: equilibrium: 7 s'); print('a warning of some library')")
    compile_missing(stand_in, "three_prism", stand_in.note)
    said = capsys.readouterr().out
    assert "three_prism: equilibrium: 7 s" in said and "library" not in said
    stand_in.command = ["a program that nobody has"]
    compile_missing(stand_in, "three_prism", stand_in.note)
    assert not capsys.readouterr().out


def test_a_cache_that_cannot_be_written_is_said_and_the_robot_starts(code: Path, capsys) -> None:
    stand_in = kernels(code)
    (code.parent / "kept").write_text("a file")
    assert not stand_in.are_ready
    with pytest.raises(TensegrityError, match="NUMBA_CACHE_DIR") as refused:
        stand_in.note()
    stand_in.command = program(f"raise SystemExit({f'three_prism: {refused.value}'!r})")
    compile_missing(stand_in, "three_prism", lambda: None)
    assert capsys.readouterr().out.count("NUMBA_CACHE_DIR") == 1


def test_up_that_is_ended_while_it_compiles_leaves_nothing_behind(code: Path) -> None:
    stand_in = kernels(code)
    stand_in.command = program(f"time.sleep(600)  # {code}")

    def check() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compile_missing(stand_in, "three_prism", check)
    living = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not any(f"# {code}".encode() in each for each in living)


@pytest.mark.parametrize("robot", ["nobody", "no/such/file.yaml", "\0", "."])
def test_a_robot_that_there_is_not_is_left_to_who_refuses_it(robot: str, code: Path) -> None:
    assert kernels(code, robot=robot).are_ready


def test_the_library_s_own_sources_are_looked_at() -> None:
    names = {path.name for folder in library_folders() for path in folder.rglob("*.py")}
    assert {"linear_algebra.py", "equations_of_motion.py", "set_points.py"} <= names


def test_a_robot_that_is_a_pipe_or_a_device_is_not_waited_for(code: Path) -> None:
    os.mkfifo(code.parent / "robot.yaml")
    assert kernels(code, robot=str(code.parent / "robot.yaml")).are_ready  # nothing to compile; `up` refuses it
    assert kernels(code, robot="/dev/zero").are_ready
