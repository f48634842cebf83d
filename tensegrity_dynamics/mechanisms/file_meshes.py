"""Reader for the meshes of the bodies of a robot file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import TensegrityError
from ..meshes.mesh_file import find_mesh, read_mesh
from ..robots.file_errors import Problems
from .body_mesh import BodyMesh
from .file_schema import BodyBlock, FrameBlock
from .frame import Frame

Path = tuple[Any, ...]


def read_meshes(
    item: BodyBlock, frame_of: Callable[[FrameBlock, Path, Problems], Frame], path: Path, problems: Problems
) -> tuple[BodyMesh, ...]:
    """Meshes of a body; errors are added to the problems."""
    made = []
    for i, block in enumerate(item.mesh):
        where = (*path, "mesh") if _is_one(problems.source.data, path) else (*path, "mesh", i)
        if block.density is not None and block.mass is not None:
            problems.add(where, "give either its density or its mass, not both.")
            continue
        placement = frame_of(block.frame, (*where, "frame"), problems)
        try:
            found = find_mesh(block.file, problems.folder)
            mesh = read_mesh(found).scaled(block.scale)
        except TensegrityError as error:
            problems.add((*where, "file"), str(error))
            continue
        each = BodyMesh(mesh, placement, block.density, block.mass, block.file, found, block.scale)
        if block.density or block.mass:
            field = "density" if block.density else "mass"
            try:
                _ = each.solid
            except TensegrityError as error:
                problems.add((*where, field), f"{found} has no volume that could weigh something: {error}")
                continue
        made.append(each)
    return tuple(made)


def _is_one(data: Any, path: Path) -> bool:
    """Whether the file contains a single mesh at this path, not a list of meshes."""
    for step in path:
        data = data[step]
    return isinstance(data["mesh"], dict)
