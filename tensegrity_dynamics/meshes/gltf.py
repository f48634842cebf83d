"""Reader for glTF 2.0 files, binary (.glb) and JSON (.gltf): triangles of the scene, in metres, with y upwards.

Materials, cameras, skins and animations are ignored. Compressed and sparse data are rejected with a message.
Source: Khronos Group, glTF 2.0 Specification, 3.5 (scenes), 3.6 (binary data), 3.7 (geometry), 4 (GLB).
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError
from ..numerics.rotations import matrix_from_quaternion
from .mesh import MOST_TRIANGLES, Mesh, make_mesh

COMPONENTS = {5120: "i1", 5121: "u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
TRIANGLES, STRIP, FAN = 4, 5, 6  # modes of primitives with an area
DEEPEST = 100
"""Largest depth of nested nodes; a deeper tree has a cycle."""


def read_gltf(data: bytes, folder: Path) -> Mesh:
    """Mesh from the bytes of a .glb or .gltf file, whose buffers can be files in `folder`.

    Raises:
        TensegrityError: the file is not readable, is truncated, or uses an unsupported feature.
    """
    try:
        document, binary = _split(data)
        return _Reader(document, binary, folder).mesh()
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError) as error:
        what = f"{type(error).__name__}: {error}"
        raise TensegrityError(f"it is not readable as glTF 2.0 ({what[:100]}).") from None


def _split(data: bytes) -> tuple[dict[str, Any], bytes]:
    """The JSON document and the binary chunk of a .glb file, or the document of a .gltf file."""
    if not data.startswith(b"glTF"):
        return json.loads(data), b""
    if len(data) < 20 or int.from_bytes(data[8:12], "little") > len(data):
        raise TensegrityError(
            f"as .glb it says {int.from_bytes(data[8:12], 'little')} bytes and has {len(data)}; it is cut off."
        )
    chunks, at = [], 12
    while at + 8 <= len(data):
        size = int.from_bytes(data[at : at + 4], "little")
        chunks.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + size]))
        at += 8 + size
    document = next((content for kind, content in chunks if kind == b"JSON"), b"")
    return json.loads(document), next((content for kind, content in chunks if kind == b"BIN\0"), b"")


class _Reader:
    def __init__(self, document: dict[str, Any], binary: bytes, folder: Path) -> None:
        self.document, self.folder = document, folder
        version = str(document["asset"]["version"])
        if not version.startswith("2"):
            raise TensegrityError(f"it is glTF {version}; 2.0 is read here.")
        needed = document.get("extensionsRequired") or []
        if needed:
            raise TensegrityError(f"it needs {', '.join(map(str, needed))}, which is not read here; save it without.")
        self.buffers = [self._buffer(each, binary) for each in document.get("buffers", [])]

    def mesh(self) -> Mesh:
        document = self.document
        nodes = document.get("nodes", [])
        if "scenes" in document:
            roots = document["scenes"][document.get("scene", 0)].get("nodes", [])
        else:
            children = {child for node in nodes for child in node.get("children", [])}
            roots = [row for row in range(len(nodes)) if row not in children]
        vertices: list[NDArray[np.float64]] = []
        triangles: list[NDArray[np.int64]] = []
        count = total = 0
        for matrix, row in (each for root in roots for each in self._walk(root, np.eye(4), 0)):
            for primitive in document["meshes"][row]["primitives"]:
                points, corners = self._primitive(primitive)
                if np.linalg.det(matrix[:3, :3]) < 0.0:  # a reflection reverses the orientation of triangles
                    corners = corners[:, ::-1]
                vertices.append(points @ matrix[:3, :3].T + matrix[:3, 3])
                triangles.append(corners + count)
                count, total = count + len(points), total + len(corners)
                if total > MOST_TRIANGLES:
                    raise TensegrityError(f"it has more than {MOST_TRIANGLES} triangles; make it coarser.")
        if not triangles:
            raise TensegrityError("its scene holds no triangles.")
        return make_mesh(np.concatenate(vertices), np.concatenate(triangles))

    def _walk(self, row: int, above: NDArray[np.float64], depth: int) -> Iterator[tuple[NDArray[np.float64], int]]:
        """Meshes below a node, each with its transform to the scene (4, 4)."""
        if depth > DEEPEST:
            raise TensegrityError(f"its nodes stand in each other more than {DEEPEST} deep.")
        node = self.document["nodes"][row]
        matrix = above @ _transform(node)
        if "mesh" in node:
            yield matrix, node["mesh"]
        for child in node.get("children", []):
            yield from self._walk(child, matrix, depth + 1)

    def _primitive(self, primitive: dict[str, Any]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        extensions = primitive.get("extensions") or {}
        if "KHR_draco_mesh_compression" in extensions:
            raise TensegrityError("its triangles are compressed (KHR_draco_mesh_compression); save it without.")
        points = self._accessor(primitive["attributes"]["POSITION"], "VEC3").astype(np.float64)
        rows = (
            np.ravel(self._accessor(primitive["indices"], "SCALAR")).astype(np.int64)
            if "indices" in primitive
            else np.arange(len(points))
        )
        mode = primitive.get("mode", TRIANGLES)
        if mode == TRIANGLES:
            if len(rows) % 3:
                raise TensegrityError(f"its triangles have {len(rows)} corners, not three each.")
            return points, rows.reshape(-1, 3)
        if mode == STRIP:
            corners = np.column_stack((rows[:-2], rows[1:-1], rows[2:]))
            corners[1::2] = corners[1::2, [1, 0, 2]]
            return points, corners
        if mode == FAN:
            return points, np.column_stack((np.full(max(len(rows) - 2, 0), rows[0]), rows[1:-1], rows[2:]))
        return points, np.zeros((0, 3), dtype=np.int64)  # points and lines

    def _accessor(self, row: int, kind: str) -> NDArray[Any]:
        accessor = self.document["accessors"][row]
        if "sparse" in accessor or "bufferView" not in accessor:
            raise TensegrityError("it has sparse accessors, which are not read here; save it without.")
        if accessor["type"] != kind or (kind == "VEC3" and accessor["componentType"] != 5126):
            raise TensegrityError(
                f"its positions are no vectors of floats, or its indices no numbers (accessor {row})."
            )
        view = self.document["bufferViews"][accessor["bufferView"]]
        width = 3 if kind == "VEC3" else 1
        item = np.dtype(COMPONENTS[accessor["componentType"]])
        stride, count = view.get("byteStride") or item.itemsize * width, accessor["count"]
        begin, end = accessor.get("byteOffset", 0), view.get("byteOffset", 0) + view["byteLength"]
        held = self.buffers[view["buffer"]][view.get("byteOffset", 0) : end]
        if begin < 0 or count < 0 or begin + (count - 1) * stride + item.itemsize * width > len(held):
            raise TensegrityError(f"its data are cut off: accessor {row} reaches past the end of its buffer.")
        shape, strides = (count, width), (stride, item.itemsize)
        return np.ndarray(shape, item, held, begin, strides)

    def _buffer(self, buffer: dict[str, Any], binary: bytes) -> bytes:
        uri = buffer.get("uri")
        if uri is None:
            return binary
        if uri.startswith("data:"):
            try:
                return base64.b64decode(uri.partition(",")[2], validate=True)
            except binascii.Error as error:
                raise TensegrityError(f"a buffer within it is not readable: {error}.") from None
        path = self.folder / unquote(uri)
        try:
            return path.read_bytes()
        except (OSError, ValueError) as error:
            raise TensegrityError(f"its buffer {path} cannot be read: {getattr(error, 'strerror', error)}.") from None


def _transform(node: dict[str, Any]) -> NDArray[np.float64]:
    """(4, 4) transform from the frame of a node to that of its parent."""
    if "matrix" in node:
        return np.array(node["matrix"], dtype=np.float64).reshape(4, 4).T
    result = np.eye(4)
    x, y, z, w = node.get("rotation", (0.0, 0.0, 0.0, 1.0))
    result[:3, :3] = matrix_from_quaternion(np.array([w, x, y, z])) * np.array(node.get("scale", (1.0, 1.0, 1.0)))
    result[:3, 3] = node.get("translation", (0.0, 0.0, 0.0))
    return result
