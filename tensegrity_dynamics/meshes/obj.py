"""Reader for Wavefront OBJ files: vertices and faces; materials, normals, curves and groups are ignored."""

from __future__ import annotations

from itertools import pairwise

from ..errors import TensegrityError
from .mesh import Mesh, make_mesh


def read_obj(data: bytes) -> Mesh:
    """Mesh from the bytes of an OBJ file; a face with more than three corners becomes a fan of triangles.

    Raises:
        TensegrityError: a line cannot be read (with its number), or there is no face.
    """
    vertices: list[list[float]] = []
    triangles: list[tuple[int, int, int]] = []
    text = data.decode("utf-8", errors="replace").replace("\\\n", " ")
    for number, line in enumerate(text.splitlines(), start=1):
        word, _, rest = line.strip().partition(" ")
        try:
            if word == "v":
                x, y, z, *_ = map(float, rest.split())
                vertices.append([x, y, z])
            elif word == "f":
                corners = [_row(each, len(vertices)) for each in rest.split()]
                if len(corners) < 3:
                    raise ValueError("a face has three corners at least")
                triangles += [(corners[0], a, b) for a, b in pairwise(corners[1:])]
        except ValueError as error:
            raise TensegrityError(f"line {number}, {line.strip()[:60]!r}, is not readable as OBJ: {error}.") from None
    if not triangles:
        raise TensegrityError("it is no OBJ file with faces (lines that begin with 'f').")
    return make_mesh(vertices, triangles)


def _row(corner: str, count: int) -> int:
    """Row of the vertex of a corner such as 7, 7/1, 7//3 or -1."""
    number = int(corner.split("/")[0])
    row = count + number if number < 0 else number - 1
    if number == 0 or not 0 <= row < count:
        raise ValueError(f"there is no vertex {number}; {count} stand above")
    return row
