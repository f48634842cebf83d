"""The set-up resumes and repairs, the wheel is complete, the dependencies are bounded and explained."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("tensegrity_dynamics", "tensegrity_control", "tensegrity_driver", "tensegrity_tools")
ROS_ONLY = re.compile(r"^(?:import|from) (\w+(?:_msgs|_srvs|_interfaces)|rclpy)\b", re.MULTILINE)


def load_script(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    specification = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture
def set_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    module = load_script("set_up", monkeypatch)
    monkeypatch.setattr(module, "STAMPS", tmp_path / "stamps")
    return module


def test_a_step_runs_once_and_again_when_its_inputs_change(set_up: ModuleType) -> None:
    runs: list[str] = []
    for key in ("a", "a", "b", "b"):
        set_up.Step("step", "title", key, lambda key=key: runs.append(key)).perform("[1/1]")
    assert runs == ["a", "b"]


def test_an_interrupted_step_runs_again(set_up: ModuleType) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    runs: list[str] = []
    set_up.Step("step", "title", "a", lambda: runs.append("first")).perform("[1/1]")
    with pytest.raises(KeyboardInterrupt):
        set_up.Step("step", "title", "b", interrupted).perform("[1/1]")
    set_up.Step("step", "title", "a", lambda: runs.append("second")).perform("[1/1]")
    assert runs == ["first", "second"]


def test_a_step_whose_result_was_deleted_runs_again(set_up: ModuleType) -> None:
    runs: list[str] = []
    set_up.Step("step", "title", "a", lambda: runs.append("first")).perform("[1/1]")
    set_up.Step("step", "title", "a", lambda: runs.append("second"), present=False).perform("[1/1]")
    assert runs == ["first", "second"]


def test_the_hash_tells_contents_and_boundaries_apart(set_up: ModuleType, tmp_path: Path) -> None:
    message = tmp_path / "A.msg"
    message.write_text("float64 x\n")
    before = set_up.digest(message)
    message.write_text("float64 y\n")
    assert set_up.digest(message) != before
    assert set_up.digest("ab", "c") != set_up.digest("a", "bc")
    assert set_up.digest(tmp_path / "gone") != before


def test_missing_system_packages_are_named_with_the_line_that_installs_them(
    set_up: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(Exception, match=r"a C\+\+ compiler, cmake, make.*\n.*sudo apt install"):
        set_up.check_system()


def test_a_sourced_ros_is_recognised_but_not_the_own_environment(
    set_up: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for prefix in (tmp_path / "ros", tmp_path / "checkout/.venv"):
        (prefix / "share/rclpy").mkdir(parents=True)
        (prefix / "share/rclpy/package.xml").touch()
    monkeypatch.setattr(set_up, "ENVIRONMENT", tmp_path / "checkout/.venv")
    monkeypatch.setenv("ROS_DISTRO", "jazzy")
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "checkout/.venv"))
    assert set_up.sourced_ros() is None
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"{tmp_path / 'workspace'}{os.pathsep}{tmp_path / 'ros'}")
    assert set_up.sourced_ros() == f"jazzy in {tmp_path / 'ros'}"
    monkeypatch.delenv("ROS_DISTRO")
    assert set_up.sourced_ros() is None


def test_a_failing_command_shows_its_last_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    progress = load_script("set_up_progress", monkeypatch)
    monkeypatch.setattr(progress, "LOGS", tmp_path / "log" / "set_up")
    with pytest.raises(progress.SetUpError, match="no network today"):
        progress.run([sys.executable, "-c", "raise SystemExit('no network today')"], "step")
    with pytest.raises(progress.SetUpError, match="no-such-program"):
        progress.run(["no-such-program"], "step")


def test_wheels_built_elsewhere_get_this_machines_include_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    import sysconfig

    import numpy

    repaired = load_script("patch_wheels", monkeypatch).repaired
    python, numeric = sysconfig.get_path("include"), numpy.get_include()
    built = "/opt/python/cp311-cp311"
    baked = f'"{built}/include/python3.11;{built}/lib/python3.11/site-packages/numpy/_core/include"'
    assert repaired(baked) == f'"{python};{numeric}"'
    assert repaired(repaired(baked)) == repaired(baked)


def test_no_python_is_a_clear_sentence(tmp_path: Path) -> None:
    done = subprocess.run(
        ["sh", str(ROOT / "scripts/setup.sh")],
        env=dict(os.environ, PYTHON="no-such-python"),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "No Python 3.10 to 3.13" in done.stderr
    assert "sudo apt install" in done.stderr


def section(name: str) -> list[str]:
    """The texts of one list in pyproject.toml (tomllib is not in Python 3.10)."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(rf"^{name} = (\[.*?^\])", text, re.MULTILINE | re.DOTALL)
    assert found is not None, name
    return list(ast.literal_eval(re.sub(r"#[^\"\n]*\n", "\n", found[1])))


@pytest.mark.parametrize("name", ["dependencies", "test", "benchmark", "gymnasium", "cluster", "ros", "build"])
def test_every_dependency_has_both_bounds_and_is_explained(name: str) -> None:
    explained = (ROOT / "docs/dependencies.md").read_text(encoding="utf-8")
    for requirement in section(name):
        assert re.fullmatch(r"[\w.-]+(\[\w+\])?>=[\d.]+,<[\d.]+", requirement), requirement
        project = re.split(r"[\[>]", requirement)[0]
        assert f"`{project}`" in explained, f"docs/dependencies.md does not say why {project} is there"


def test_ros_packages_that_the_code_imports_are_declared() -> None:
    declared = {
        entry.text for entry in ElementTree.parse(ROOT / "package.xml").getroot() if entry.tag.endswith("depend")
    }
    used = {
        name
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        for name in ROS_ONLY.findall(path.read_text(encoding="utf-8"))
    }
    assert used <= declared


def test_every_node_is_installed_with_the_environments_interpreter() -> None:
    installed = ROOT / "install/tensegrity"
    if not installed.is_dir():
        pytest.skip("the interfaces are not built here: make setup")
    nodes = {path.stem for path in ROOT.glob("tensegrity_*/*/*_node.py") if "\ndef main(" in path.read_text()}
    executables = {path.name: path for path in (installed / "lib/tensegrity").glob("*")}
    assert nodes | {"emulator"} <= set(executables)
    for path in [*executables.values(), installed / "bin/tensegrity"]:
        assert os.access(path, os.X_OK), path
        interpreter = re.search(r'^exec "(.+?)"', path.read_text(), re.MULTILINE)
        assert interpreter is not None
        assert os.access(interpreter[1], os.X_OK)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in (*PACKAGES, "setup.py", "package.xml", "pyproject.toml", "README.md", "LICENSE"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        str(folder),
    ]
    subprocess.run([*command, str(source)], check=True, stdin=subprocess.DEVNULL)
    return next(folder.glob("*.whl"))


def test_the_wheel_holds_the_libraries_their_robots_and_nothing_else(wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    tops = {name.split("/")[0] for name in held if ".dist-info/" not in name}
    assert tops == set(PACKAGES)
    shipped = {
        f"tensegrity_dynamics/robots/{path.name}" for path in (ROOT / "tensegrity_dynamics/robots").glob("*.yaml")
    }
    assert shipped
    shipped |= {f"tensegrity_tools/templates/{kind}.yaml" for kind in ("structure", "mechanism")}
    assert shipped | {f"{package}/py.typed" for package in PACKAGES} <= held
    modules = {str(path.relative_to(ROOT)) for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    assert modules <= held


def test_a_read_only_copy_without_ros_checks_a_robot(wheel: Path, tmp_path: Path) -> None:
    copy = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(copy)
    for path in [*copy.rglob("*"), copy]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    program = (
        f"import sys; sys.path.insert(0, {str(copy)!r}); sys.modules.update(rclpy=None, tensegrity=None)\n"
        "import tensegrity_dynamics; from tensegrity_tools.cli import app\n"
        f"assert tensegrity_dynamics.__file__.startswith({str(copy)!r})\n"
        "app(['check', 'three_prism'])\n"
    )
    uncompiled = {**os.environ, "NUMBA_DISABLE_JIT": "1"}  # half a minute of compilation would prove no more
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=uncompiled, capture_output=True, text=True)
    for path in [copy, *copy.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    assert done.returncode == 0, done.stderr
    assert "three_prism" in done.stdout
