"""Repairs the ROS wheels' CMake files, which name the include folders of the machine that built the wheels.

CMake refuses to generate while a folder does not exist. Run by the environment's Python with the environment's path;
running it again changes nothing.
"""

from __future__ import annotations

import re
import sys
import sysconfig
from pathlib import Path

import numpy

PYTHON_INCLUDE = re.compile(r"/opt/(?:python|_internal)/[^\";:]*?/include/python3\.\d+")
NUMPY_INCLUDE = re.compile(r"/opt/(?:python|_internal)/[^\";:]*?/numpy/_?core/include")


def repaired(text: str) -> str:
    """The text with this machine's include folders in place of the build machine's."""
    text = PYTHON_INCLUDE.sub(lambda _: sysconfig.get_path("include"), text)
    return NUMPY_INCLUDE.sub(lambda _: numpy.get_include(), text)


def main() -> None:
    changed = 0
    for path in Path(sys.argv[1], "share").rglob("*.cmake"):
        text = path.read_text(encoding="utf-8")
        new = repaired(text)
        if new != text:
            path.unlink()  # the file may be shared with the cache of the installer, and with other environments
            path.write_text(new, encoding="utf-8")
            changed += 1
    print(f"{changed} files changed")


if __name__ == "__main__":
    main()
