"""Robots from YAML files: `load_robot("name")` or `load_robot("my/robot.yaml")`; the format is in docs/robot_file.md.

Every error names file, line and field, what was found and what is allowed; all errors of a file come together. What
reads files, `file_reader`, is imported with the first one, so that importing the library stays quick.
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
    """Robot from its file: the name of a shipped robot, or a path (any text with a slash or the ending .yaml).

    Raises:
        RobotFileError: there is no such robot, or its file is wrong; see the module.
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
    except (OSError, ValueError, RuntimeError) as error:  # too long, a null byte, an unknown home
        raise RobotFileError(f"{text[:200]!r} is not a path that can be read: {error}.") from None
    if not there:
        what = "this is a folder, not a file" if path.is_dir() else "there is no such file"
        raise RobotFileError(f"{path}: {what}. " + unknown_name("shipped robot", path.stem, available))
    return _read(path)


def _read(path: Path) -> Robot:
    from .yaml_source import read_text  # here, see the module

    return parse_robot(read_text(path), str(path), path)


def parse_robot(text: str, source_name: str = "robot.yaml", path: Path | None = None) -> Robot:
    """Robot from the text of a file; errors name it `source_name`, and its file names are relative to `path`.

    Raises:
        RobotFileError: the text does not describe a robot; see the module.
    """
    from .file_reader import read_robot  # here, see the module

    return read_robot(text, source_name, path)


@contextmanager
def naming_lines(robot: Robot) -> Iterator[None]:
    """What is raised of a part of a robot names its file and line, too, where the robot has a file."""
    try:
        yield
    except PartError as error:
        from .file_reader import line_of  # here, see the module

        where = line_of(robot, error.part)
        raise PartError(where + str(error)) if where else error from None
