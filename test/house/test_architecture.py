"""Who may import whom, and which names and versions agree."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import pytest
from import_graph import PACKAGES, broken_layers, describe, find_circles, folder_circles, graph, read_imports, tree_of

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = ("tensegrity_dynamics", "tensegrity_control", "tensegrity_driver")
ROS_PACKAGES = {
    "rclpy", "launch", "launch_ros", "ament_index_python", "tensegrity", "action_msgs", "builtin_interfaces",
    "diagnostic_msgs", "geometry_msgs", "lifecycle_msgs", "rcl_interfaces", "rosgraph_msgs", "sensor_msgs", "std_msgs",
    "std_srvs", "tf2_msgs", "trajectory_msgs", "visualization_msgs",
}  # fmt: skip


def modules(packages: tuple[str, ...] = PACKAGES) -> list[Path]:
    return sorted(path for package in packages for path in (ROOT / package).rglob("*.py"))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imported(tree: ast.AST) -> Iterator[str]:
    """Top names of everything imported from outside the module's own package, also inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.split(".")[0]


def imports_of(path: Path) -> set[str]:
    return set(imported(tree_of(path)))


def test_no_file_imports_itself_round_a_corner() -> None:
    circles = find_circles(graph((each.importer, each.imported) for each in read_imports(ROOT)))
    assert not circles, "\n".join(" <-> ".join(circle) for circle in circles)


def test_no_folder_imports_itself_round_a_corner() -> None:
    circles = folder_circles(ROOT)
    assert not circles, "\n".join(" <-> ".join(circle) for circle in circles)


def test_no_import_runs_upwards() -> None:
    broken = broken_layers(ROOT)
    assert not broken, "\n".join(broken)


def write_tree(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / "tensegrity_dynamics" / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "from ..structures.structure import Structure\n",
        "def late():\n    from ..structures import structure\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..structures.structure import Structure\n",
        "import tensegrity_dynamics.structures.structure\n",
    ],
)
def test_imports_in_functions_and_for_types_alone_count(tmp_path: Path, text: str) -> None:
    structure = "from ..robots.robot import Robot\n"
    write_tree(tmp_path, robots__robot=text, structures__structure=structure, structures__other="")
    (broken,) = broken_layers(tmp_path)
    assert "tensegrity_dynamics/robots/robot.py" in broken and "structures stands above robots" in broken
    assert folder_circles(tmp_path) == [["tensegrity_dynamics/robots", "tensegrity_dynamics/structures"]]
    described, failed = describe(tmp_path)
    assert failed and "circles of files: 1" in described and "imports that run upwards: 1" in described


def test_a_part_without_a_layer_is_named(tmp_path: Path) -> None:
    write_tree(tmp_path, novelty="")
    assert "novelty stands in no layer" in broken_layers(tmp_path)[0]


def test_ros_is_imported_in_ros_folders_alone() -> None:
    outside = [path for path in modules(LIBRARIES) if "ros" not in path.relative_to(ROOT).parts]
    assert outside
    found = {name_of(path): ros for path in outside if (ros := imports_of(path) & ROS_PACKAGES)}
    assert not found


def test_nothing_imports_a_module_of_a_ros_folder_but_ros_folders_and_tools() -> None:
    for path in modules(LIBRARIES):
        if "ros" in path.relative_to(ROOT).parts:
            continue
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ImportFrom):
                assert "ros" not in (node.module or "").split("."), f"{name_of(path)}:{node.lineno}"


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imports_without_ros(package: str) -> None:
    command = [package, f"{package}.cli"] if package == "tensegrity_tools" else [package]
    program = (
        "import sys, importlib\n"
        f"blocked = {sorted(ROS_PACKAGES)!r}\n"
        "sys.modules.update(dict.fromkeys(blocked))\n"
        f"[importlib.import_module(name) for name in {command!r}]\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def words_of(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Identifiers and texts of a module, without its docstrings (they may give examples)."""
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value
        elif isinstance(node, ast.Name):
            yield node.lineno, node.id
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.lineno, node.name


def test_library_code_knows_no_robot_by_name() -> None:
    robots = [path.stem for path in (ROOT / "tensegrity_dynamics" / "robots").glob("*.yaml")]
    assert robots
    pattern = re.compile(rf"\b({'|'.join(robots)})\b", re.IGNORECASE)
    found = [
        f"{name_of(path)}:{line} says {match[0]!r}"
        for path in modules(LIBRARIES)
        for line, text in words_of(tree_of(path))
        if (match := pattern.search(text))
    ]
    assert not found, "\n".join(found)


def test_a_module_opens_with_a_docstring() -> None:
    filled = [path for path in modules() if path.read_text(encoding="utf-8").strip()]
    assert filled
    silent = [name_of(path) for path in filled if not ast.get_docstring(tree_of(path))]
    assert not silent, f"without a word on what they are: {', '.join(silent)}"


def test_the_newest_change_is_that_of_the_version() -> None:
    version = ElementTree.parse(ROOT / "package.xml").getroot().findtext("version")
    changes = re.search(r"^## \[?(\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert changes is not None
    assert version == changes[1]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_exists(package: str) -> None:
    module = importlib.import_module(package)
    missing = [name for name in getattr(module, "__all__", []) if not hasattr(module, name)]
    assert not missing
