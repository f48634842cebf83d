"""Files of meshes: what other programs write is read, and what is broken is refused by what is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import trimesh
from solids import ball, box, stl_of

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.meshes import mesh_file
from tensegrity_dynamics.meshes.mass_properties import solid_properties
from tensegrity_dynamics.meshes.mesh_file import find_mesh, read_mesh


@pytest.fixture(scope="module")
def ring() -> trimesh.Trimesh:
    """A part with a hole, off its origin."""
    part = trimesh.creation.annulus(0.02, 0.05, 0.03)
    part.apply_transform(trimesh.transformations.rotation_matrix(0.7, [1.0, 2.0, 3.0], [0.1, 0.0, 0.05]))
    return part


@pytest.mark.parametrize("form", ["stl", "stl_ascii", "obj", "glb", "gltf"])
def test_a_file_of_another_program_has_the_mass_that_it_reckons(form, ring, tmp_path):
    path = tmp_path / f"ring.{form.removesuffix('_ascii')}"
    if form == "gltf":
        for name, content in trimesh.exchange.gltf.export_gltf(trimesh.Scene(ring)).items():
            (tmp_path / name).write_bytes(content)
        path = tmp_path / "model.gltf"
    else:
        made = ring.export(file_type=form)
        path.write_bytes(made.encode() if isinstance(made, str) else made)
    mesh = read_mesh(path)
    found = solid_properties(mesh)
    assert (len(mesh.vertices), len(mesh.triangles)) == (len(ring.vertices), len(ring.faces))
    assert found.volume == pytest.approx(ring.volume, rel=1e-5)  # files keep single precision
    np.testing.assert_allclose(found.centre, ring.center_mass, atol=1e-6)
    np.testing.assert_allclose(found.volume * found.inertia, ring.moment_inertia, rtol=1e-4, atol=1e-9)


def test_nodes_of_a_scene_move_turn_stretch_and_mirror(tmp_path):
    scene = trimesh.Scene()
    mirror = np.diag([-2.0, 1.0, 1.0, 1.0])
    mirror[:3, 3] = 1.0, 2.0, 3.0
    scene.add_geometry(trimesh.creation.box((0.1, 0.2, 0.3)), transform=mirror)
    (tmp_path / "scene.glb").write_bytes(scene.export(file_type="glb"))
    found = solid_properties(read_mesh(tmp_path / "scene.glb"))
    assert found.volume == pytest.approx(2.0 * 0.1 * 0.2 * 0.3, rel=1e-5)
    np.testing.assert_allclose(found.centre, [1.0, 2.0, 3.0], atol=1e-6)


def test_obj_counts_from_either_end_and_splits_polygons(tmp_path):
    lines = [f"v {x} {y} {z}" for x, y, z in box().vertices]
    corners = [(1, 2, 4, 3), (5, 7, 8, 6), (1, 5, 6, 2), (3, 4, 8, 7), (1, 3, 7, 5)]
    lines += [f"f {' '.join(f'{row}/1/2' for row in face)}" for face in corners]
    lines += ["# the last one from the end", "usemtl red", "f -7 -3 -1 -5"]
    path = tmp_path / "box.obj"
    path.write_text("\n".join(lines))
    assert solid_properties(read_mesh(path)).volume == pytest.approx(1.0)


def glb_with(change) -> bytes:
    document = {
        "asset": {"version": "2.0"}, "scenes": [{"nodes": [0]}], "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3"}],
        "bufferViews": [{"buffer": 0, "byteLength": 36}], "buffers": [{"byteLength": 36}],
    }  # fmt: skip
    change(document)
    text = json.dumps(document).encode()
    text += b" " * (-len(text) % 4)
    points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], dtype="<f4").tobytes()
    chunks = len(text).to_bytes(4, "little") + b"JSON" + text + (36).to_bytes(4, "little") + b"BIN\0" + points
    return b"glTF" + (2).to_bytes(4, "little") + (12 + len(chunks)).to_bytes(4, "little") + chunks


BROKEN = {
    "cut.stl": (stl_of(box())[:-3], "12 triangles, which take 684 bytes; it has 681"),
    "text.stl": (b"solid a\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\n", "no endsolid"),
    "word.stl": (
        b"solid a\nfacet normal 0 0 1\nvertex 0 0 0\nvertex 1 0 x\nvertex 0 1 0\nendfacet\nendsolid", "no number"),
    "short.stl": (b"hello", "no STL file"),
    "nan.stl": (stl_of(box())[:96] + np.float32(np.nan).tobytes() + stl_of(box())[100:], "triangle 0 is not finite"),
    "empty.obj": (b"v 0 0 0\n", "no OBJ file with faces"),
    "row.obj": (b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\n", "line 4.*there is no vertex 9"),
    "line.obj": (b"v 0 0 zero\n", "line 1"),
    "cut.glb": (glb_with(lambda _: None)[:-8], "cut off"),
    "past.glb": (glb_with(lambda d: d["accessors"][0].update(count=4)), "past the end"),
    "draco.glb": (
        glb_with(lambda d: d.update(extensionsRequired=["KHR_draco_mesh_compression"])), "KHR_draco_mesh_compression"),
    "circle.glb": (glb_with(lambda d: d["nodes"][0].update(children=[0])), "deep"),
    "sparse.glb": (glb_with(lambda d: d["accessors"][0].update(sparse={})), "sparse"),
    "none.glb": (glb_with(lambda d: d["nodes"].clear()), "not readable as glTF"),
    "text.gltf": (b"{", "not readable as glTF"),
    "file.gltf": (b'{"asset":{"version":"2.0"},"buffers":[{"uri":"gone.bin"}]}', "gone.bin cannot be read"),
    "old.gltf": (b'{"asset":{"version":"1.0"}}', "glTF 1.0"),
    "part.step": (b"", "read from .stl, .obj, .glb, .gltf"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_refused_by_its_fault(name, tmp_path: Path):
    content, message = BROKEN[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TensegrityError, match=message) as refused:
        read_mesh(tmp_path / name)
    assert str(tmp_path / name) in str(refused.value)


def test_a_file_that_is_missing_or_huge_is_refused(tmp_path, monkeypatch):
    with pytest.raises(TensegrityError, match="no such file"):
        read_mesh(tmp_path / "gone.stl")
    (tmp_path / "folder.stl").mkdir()
    with pytest.raises(TensegrityError, match="this is no file"):
        read_mesh(tmp_path / "folder.stl")
    (tmp_path / "large.stl").write_bytes(stl_of(ball(1.0, 8)))
    monkeypatch.setattr(mesh_file, "MOST_BYTES", 10_000)
    with pytest.raises(TensegrityError, match="make it coarser"):
        read_mesh(tmp_path / "large.stl")


def test_a_file_of_a_ros_package_is_found_where_it_is_installed(tmp_path, monkeypatch):
    folder = tmp_path / "share" / "my_robot" / "meshes"
    folder.mkdir(parents=True)
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"/nowhere:{tmp_path}")
    assert find_mesh("package://my_robot/meshes/a.stl", tmp_path) == folder / "a.stl"
    with pytest.raises(TensegrityError, match="no ROS package 'other' in /nowhere"):
        find_mesh("package://other/a.stl", tmp_path)
    assert find_mesh("/there/a.stl", tmp_path) == Path("/there/a.stl")
