"""Check whether the kernels used by a robot and its controller are compiled for the present code.

Compilation of a kernel at its first use stops the control loop for seconds, which may destabilise the robot. Programs
that start nodes therefore check this first, and run `tensegrity compile` if necessary. The result of a compilation is
recorded in the folder of numba's machine code, in a file whose name is a hash of everything that affects it: sources,
interpreter, numba, processor, robot file and controller. The record lists the kernels that were used, since their
machine code may be missing although the sources are the same: it may have been removed, or replaced by that of another
version of the sources.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from importlib import resources
from importlib.util import find_spec
from pathlib import Path

import numba
from llvmlite import binding

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.numerics import compilation
from tensegrity_dynamics.saved_file import replace_file

PACKAGES = ("tensegrity_dynamics", "tensegrity_control")
"""Packages with kernels, or with constants that are compiled into kernels."""


def library_folders() -> list[Path]:
    """Folders of the packages with kernels, found without importing them."""
    found = [find_spec(name) for name in PACKAGES]
    return [Path(spec.origin).parent for spec in found if spec is not None and spec.origin is not None]


class CompiledKernels:
    """Kernels of one robot with one controller.

    Attributes:
        command: command line of a program that compiles them, prints its progress and records the result at its end.
        why: reason for the compilation, one sentence to show before it runs.

    Args:
        robot: name of a shipped robot, or a file. controller: name of the controller; "" for the default of the robot.
        folder: folder of the record; default: the folder of numba's machine code.
        sources: folders of the Python files with kernels; default: those of the library.
    """

    def __init__(
        self, robot: str, controller: str, folder: Path | None = None, sources: list[Path] | None = None
    ) -> None:
        self.command = [sys.executable, "-m", "tensegrity_tools.cli", "compile", robot, f"--controller={controller}"]
        self.why = (
            f"compiling what {robot} uses under {controller or 'its usual controller'}: once for this state of the "
            "code; a minute or more where much of it is new"
        )
        self._folder = folder or compilation.kept_in()
        self._code = _digest(
            part
            for top in sources or library_folders()
            for path in sorted(top.rglob("*.py"))
            for part in (str(path.relative_to(top)).encode(), path.read_bytes())
        )
        shipped = Path(str(resources.files("tensegrity_dynamics"))) / "robots" / f"{robot}.yaml"
        processor = binding.get_host_cpu_name() + binding.get_host_cpu_features().flatten()
        own = "\0".join((controller, sys.version, numba.__version__, processor)).encode()
        try:
            file = shipped if shipped.is_file() else Path(robot).expanduser()
            # a device or a pipe may never end; it is refused, like a missing file, by the program that starts it
            self._name = f"compiled-{self._code}-{_digest((own, file.read_bytes()))}" if file.is_file() else ""
        except (OSError, ValueError, RuntimeError):  # no such file: reported by the program that starts it
            self._name = ""

    @property
    def are_ready(self) -> bool:
        """Whether no compilation is needed; also true without a robot, or if compilation is disabled."""
        if compilation.PLAIN or not self._name:
            return True
        if self._folder is None:
            return False
        try:
            lines = (self._folder / self._name).read_text(encoding="utf-8").splitlines()
            used = [line.split("\t") for line in lines]
            return all(stamp.encode() in Path(path).read_bytes() for path, stamp in used)
        except (OSError, ValueError):
            return False

    def note(self) -> None:
        """Record that all kernels are compiled, with the list of those used in this process.

        Raises:
            TensegrityError: the record cannot be written; one sentence with the remedy.
        """
        text = "".join(f"{path}\t{stamp}\n" for path, stamp in compilation.used_kernels().items())
        try:
            if self._folder is None:
                raise PermissionError(0, "neither the library's folder nor the user's cache can be written")
            self._folder.mkdir(parents=True, exist_ok=True)
            for old in self._folder.glob("compiled-*"):
                if not old.name.startswith(f"compiled-{self._code}-"):
                    old.unlink(missing_ok=True)
            replace_file(self._folder / self._name, text.encode())
        except OSError as error:
            raise TensegrityError(
                f"what is compiled cannot be kept ({error.strerror or error}): every process compiles it again, nodes "
                "too; set NUMBA_CACHE_DIR to a folder that can be written."
            ) from None


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()[:24]
