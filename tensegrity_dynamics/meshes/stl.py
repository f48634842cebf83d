"""Reader and writer for STL files, binary and text."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import ArrayLike

from ..errors import TensegrityError
from .mesh import Mesh, make_mesh

HEAD, RECORD = 84, 50  # number of bytes before the triangles, and of each triangle
CORNER = re.compile(rb"\bvertex\s+(\S+)\s+(\S+)\s+(\S+)")


def read_stl(data: bytes) -> Mesh:
    """Mesh from the bytes of an STL file. Raises TensegrityError if it is not an STL file."""
    count = int.from_bytes(data[80:HEAD], "little") if len(data) >= HEAD else 0
    if len(data) >= HEAD and len(data) == HEAD + RECORD * count:
        records = np.frombuffer(data, dtype=np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("", "<u2")]),
                                offset=HEAD)  # fmt: skip
        return make_mesh(records["corners"].astype(np.float64), np.arange(3 * count))
    text = data.lstrip()
    if not (text.startswith(b"solid") and b"facet" in text):
        if len(data) < HEAD:
            raise TensegrityError(f"it is no STL file: it has {len(data)} bytes.")
        raise TensegrityError(
            f"as binary STL it says {count} triangles, which take {HEAD + RECORD * count} bytes; it has {len(data)}. "
            "It is cut off, or no STL."
        )
    found, facets = CORNER.findall(text), len(re.findall(rb"\bendfacet\b", text))
    if not re.search(rb"\bendsolid\b", text) or len(found) != 3 * facets:
        raise TensegrityError(
            f"as text STL it has {len(found)} corners in {facets} triangles"
            f"{'' if b'endsolid' in text else ' and no endsolid'}; it is cut off or broken."
        )
    try:
        corners = np.array(found).astype(np.float64)
    except ValueError as error:
        raise TensegrityError(f"as text STL it has a coordinate that is no number: {error}.") from None
    return make_mesh(corners, np.arange(len(found)))


def stl_bytes(triangles: ArrayLike) -> bytes:
    """Binary STL file from corners of triangles (k, 3, 3); the normals are zero, and programs compute them."""
    corners = np.asarray(triangles, dtype=np.float64).reshape(-1, 3, 3)
    records = np.zeros(len(corners), dtype=np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("", "<u2")]))
    records["corners"] = corners
    return bytes(80) + len(corners).to_bytes(4, "little") + records.tobytes()
