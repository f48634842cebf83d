"""Who may import whom, which names and versions agree, and how long a file may get."""

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

ROOT = Path(__file__).resolve().parents[2]
MAY_IMPORT = {
    "tensegrity_dynamics": set(),
    "tensegrity_control": {"tensegrity_dynamics"},
    "tensegrity_driver": {"tensegrity_dynamics"},
    "tensegrity_tools": {"tensegrity_dynamics", "tensegrity_control", "tensegrity_driver"},
}
LIBRARIES = ("tensegrity_dynamics", "tensegrity_control", "tensegrity_driver")
ROS_PACKAGES = {
    "rclpy", "launch", "launch_ros", "ament_index_python", "tensegrity", "action_msgs", "builtin_interfaces",
    "diagnostic_msgs", "geometry_msgs", "lifecycle_msgs", "rcl_interfaces", "rosgraph_msgs", "sensor_msgs", "std_msgs",
    "std_srvs", "tf2_msgs", "trajectory_msgs", "visualization_msgs",
}  # fmt: skip
LONGEST = 400


def modules(packages: tuple[str, ...] = tuple(MAY_IMPORT)) -> list[Path]:
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
    return set(imported(ast.parse(path.read_text(encoding="utf-8"))))


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_a_package_imports_only_the_packages_below_it(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0]
    forbidden = imports_of(path) & set(MAY_IMPORT) - MAY_IMPORT[package] - {package}
    assert not forbidden, f"{name_of(path)} imports {sorted(forbidden)}"


def test_relative_imports_stay_inside_their_package() -> None:
    for path in modules():
        depth = len(path.relative_to(ROOT).parts) - 1
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert node.level <= depth, f"{name_of(path)}:{node.lineno} leaves its package"


@pytest.mark.parametrize("path", modules(LIBRARIES), ids=name_of)
def test_ros_is_imported_in_ros_folders_alone(path: Path) -> None:
    if "ros" not in path.relative_to(ROOT).parts:
        assert not imports_of(path) & ROS_PACKAGES


def test_nothing_imports_a_module_of_a_ros_folder_but_ros_folders_and_tools() -> None:
    for path in modules(LIBRARIES):
        if "ros" in path.relative_to(ROOT).parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert "ros" not in (node.module or "").split("."), f"{name_of(path)}:{node.lineno}"


@pytest.mark.parametrize("package", list(MAY_IMPORT))
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
        for line, text in words_of(ast.parse(path.read_text(encoding="utf-8")))
        if (match := pattern.search(text))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("path", [p for p in modules() if p.read_text(encoding="utf-8").strip()], ids=name_of)
def test_a_module_opens_with_a_docstring_and_stays_short(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text)), f"{name_of(path)} does not say what it is"
    assert len(text.splitlines()) <= LONGEST, f"{name_of(path)}: which two things does it hold?"


def test_the_version_is_the_same_everywhere() -> None:
    package = ElementTree.parse(ROOT / "package.xml").getroot().findtext("version")
    project = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    changes = re.search(r"^## \[?(\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert project is not None
    assert changes is not None
    assert package == project[1] == changes[1]


@pytest.mark.parametrize("package", list(MAY_IMPORT))
def test_every_public_name_exists(package: str) -> None:
    module = importlib.import_module(package)
    missing = [name for name in getattr(module, "__all__", []) if not hasattr(module, name)]
    assert not missing
