"""Reader for mesh files, selected by the file suffix, and search for files of installed ROS packages."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import TensegrityError
from .gltf import read_gltf
from .mesh import Mesh
from .obj import read_obj
from .stl import read_stl

PACKAGE = "package://"
ENDINGS = (".stl", ".obj", ".glb", ".gltf")
MOST_BYTES = 200_000_000


def find_mesh(name: str, folder: Path) -> Path:
    """Path of a mesh in a robot file: relative to it, absolute, or package://NAME/... of an installed ROS package.

    Raises:
        TensegrityError: the package is not installed.
    """
    if not name.startswith(PACKAGE):
        return folder / Path(name).expanduser()
    package, _, rest = name[len(PACKAGE) :].partition("/")
    prefixes = [each for each in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if each]
    for prefix in prefixes:
        share = Path(prefix) / "share" / package
        if package and share.is_dir():
            return share / rest
    where = ", ".join(prefixes) or "nothing: AMENT_PREFIX_PATH is empty; source the workspace's setup file"
    raise TensegrityError(f"there is no ROS package {package!r} in {where}.")


def read_mesh(path: Path) -> Mesh:
    """Mesh of a file, in the unit of the file.

    Raises:
        TensegrityError: the file does not exist, is too large or not readable, or its suffix is not supported; the
            message contains the path.
    """
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise TensegrityError(f"{path}: meshes are read from {', '.join(ENDINGS)}, not {ending or 'no ending'!r}.")
    try:
        if not path.is_file():
            there = "this is no file" if path.exists() else "there is no such file"
            raise TensegrityError(f"{path}: {there}.")
        size = path.stat().st_size
        if size > MOST_BYTES:
            most = f"{1e-6 * MOST_BYTES:.0f} at most; make it coarser"
            raise TensegrityError(f"{path}: it has {1e-6 * size:.0f} MB, {most}.")
        data = path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        raise TensegrityError(f"{path}: it cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    try:
        if ending == ".stl":
            return read_stl(data)
        return read_obj(data) if ending == ".obj" else read_gltf(data, path.parent)
    except TensegrityError as error:
        raise TensegrityError(f"{path}: {error}") from None
