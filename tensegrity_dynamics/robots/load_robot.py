"""Robots from YAML files: `load_robot("name")` or `load_robot("my/robot.yaml")`; the format is in docs/robot_file.md.

Every error contains file, line and field, the given value and the allowed values. All errors of a file are reported
together. The module `file_reader` is imported with the first file, to keep the import time of the library short.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

from ..errors import PartError, RobotFileError, unknown_name
from .robot import Robot


def shipped_robots() -> tuple[str, ...]:
    """Names of the shipped robots."""
    folder = resources.files("tensegrity_dynamics") / "robots"
    return tuple(sorted(item.name[:-5] for item in folder.iterdir() if item.name.endswith(".yaml")))


def load_robot(robot: str | Path) -> Robot:
    """Load a robot by the name of a shipped robot, or by a path (any text with a slash or the suffix .yaml).

    Raises:
        RobotFileError: there is no such robot, or its file is invalid; see the module.
    """
    text, available = str(robot), shipped_robots()
    if text in available:
        path = Path(str(resources.files("tensegrity_dynamics") / "robots" / f"{text}.yaml"))
        return _read(path)
    if not (text.endswith((".yaml", ".yml")) or "/" in text or "\\" in text):
        raise RobotFileError(unknown_name("robot", text, available) + " Or give the path of a .yaml file.")
    try:
        path = Path(text).expanduser()
        there = path.is_file()
    except (OSError, ValueError, RuntimeError) as error:  # name too long, null byte, unknown home directory
        raise RobotFileError(f"{text[:200]!r} is not a path that can be read: {error}.") from None
    if not there:
        what = "there is no such file"
        if path.exists():
            what = f"this is a {'folder' if path.is_dir() else 'pipe or a device'}, not a file"
        raise RobotFileError(f"{path}: {what}. " + unknown_name("shipped robot", path.stem, available))
    return _read(path)


def _read(path: Path) -> Robot:
    from .yaml_source import read_text  # imported here, see the module

    return parse_robot(read_text(path), str(path), path)


def parse_robot(text: str, source_name: str = "robot.yaml", path: Path | None = None) -> Robot:
    """Create a robot from the text of a file.

    Args:
        text: YAML text. source_name: file name in error messages. path: base of relative file names in the text.

    Raises:
        RobotFileError: the text does not describe a robot; see the module.
    """
    from .file_reader import read_robot  # imported here, see the module

    return read_robot(text, source_name, path)


@contextmanager
def naming_lines(robot: Robot) -> Iterator[None]:
    """Context that adds file and line to errors about a part of a robot, if the robot has a file."""
    try:
        yield
    except PartError as error:
        from .file_reader import line_of  # imported here, see the module

        where = line_of(robot, error.part)
        raise PartError(where + str(error)) if where else error from None
