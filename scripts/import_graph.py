"""The import graph of the packages: circles between files, arrows between folders, files and lines per folder.

Every import counts, also those inside functions and under TYPE_CHECKING. Each folder counts as one; where a folder
holds other folders, each of its own files counts by itself.

    python scripts/import_graph.py [ROOT]      prints the graph of a checkout; status 1 for circles and imports upwards
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

# What each package consists of, from the ground up: a part may import those named before it, and no other.
LAYERS: dict[str, tuple[str, ...]] = {
    "tensegrity_dynamics": (
        "beat", "ending", "linear_algebra_threads", "errors", "bounded_file", "saved_file", "impedance", "numerics",
        "meshes", "robots", "linear_models",
        "simulation_interface", "estimation_interface", "command_streams", "command_gate", "external_wrenches",
        "late_messages", "contact", "structures", "mechanisms", "visualization", "robot_types", "simulation",
        "external_payloads", "estimation", "tension_fit", "rollout", "ros",
    ),
    "tensegrity_control": (
        "cancellation", "command_latency", "tension_floor", "trajectories", "optimization", "controller",
        "resting_error", "inverse_kinematics", "paths", "motion_planning", "laws", "rolling", "controllers",
        "registry", "external_loads", "rehearsal", "ros",
    ),
    "tensegrity_driver": (
        "robot_clock", "bus", "spools", "servos", "calibration", "safety", "emulator", "hardware", "driver_cycle",
        "driver", "ros", "robot_blocks",
    ),
    "tensegrity_tools": (
        "start_up", "formatting", "output", "shape_plot", "dependency_errors", "network_address", "page_capture",
        "bags", "view", "runtime", "mujoco_judge", "experiments", "sweeps", "learning", "mjcf_import", "templates",
        "commands", "ros", "cli",
    ),
}  # fmt: skip
# The packages that a package may import.
BELOW: dict[str, tuple[str, ...]] = {
    "tensegrity_dynamics": (),
    "tensegrity_control": ("tensegrity_dynamics",),
    "tensegrity_driver": ("tensegrity_dynamics",),
    "tensegrity_tools": ("tensegrity_dynamics", "tensegrity_control", "tensegrity_driver"),
}
PACKAGES = tuple(LAYERS)


@dataclass(frozen=True)
class Import:
    """One import: the file that holds it, the file that it names, and the line."""

    importer: str
    imported: str
    line: int

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.imported}"


def module_files(root: Path) -> dict[str, Path]:
    """Modules of the packages below `root` by dotted name; a package goes by the name of its folder."""
    result: dict[str, Path] = {}
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            result[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return result


@cache
def tree_of(path: Path) -> ast.Module:
    """What Python reads in a file; read once."""
    return ast.parse(path.read_text(encoding="utf-8"))


def _imported_modules(path: Path, name: str, files: Mapping[str, Path]) -> Iterator[tuple[str, int]]:
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *(node.module.split(".") if node.module else [])])
            for alias in node.names:
                member = f"{source}.{alias.name}"
                yield (member if member in files else source), node.lineno


@cache
def read_imports(root: Path) -> list[Import]:
    """All imports between modules of the packages below `root`, in the order of files and lines; read once."""
    files = module_files(root)
    result = []
    for name, path in files.items():
        for imported, line in dict.fromkeys(_imported_modules(path, name, files)):
            if imported in files and imported != name:
                importer, target = (str(each.relative_to(root)) for each in (path, files[imported]))
                result.append(Import(importer, target, line))
    return result


def find_circles(arrows: Mapping[str, set[str]]) -> list[list[str]]:
    """Strongly connected components of more than one node (Tarjan 1972), each sorted."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    circles: list[list[str]] = []

    def visit(start: str) -> None:
        work = [(start, iter(sorted(arrows.get(start, ()))))]
        index[start] = low[start] = len(index)
        stack.append(start)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    work.append((target, iter(sorted(arrows.get(target, ())))))
                    break
                if target in stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    position = stack.index(node)
                    component = sorted(stack[position:])
                    del stack[position:]
                    if len(component) > 1:
                        circles.append(component)

    for node in sorted(arrows):
        if node not in index:
            visit(node)
    return sorted(circles)


def folder_of(path: str, folders_with_folders: set[str]) -> str:
    """The folder of a file: its folder, or the file itself where the folder holds folders."""
    folder = str(Path(path).parent)
    return path.removesuffix(".py") if folder in folders_with_folders else folder


def folders_of(files: list[str]) -> dict[str, str]:
    """The folder of every file; folders of ROS nodes do not make their parent a folder of folders."""
    holding = {str(Path(path).parent.parent) for path in files}
    return {path: folder_of(path, holding) for path in files}


def graph(pairs: Iterator[tuple[str, str]]) -> dict[str, set[str]]:
    """Arrows by origin."""
    arrows: dict[str, set[str]] = defaultdict(set)
    for origin, target in pairs:
        if origin != target:
            arrows[origin].add(target)
            arrows[target]
    return dict(arrows)


def folder_circles(root: Path) -> list[list[str]]:
    """Folders that import each other, directly or round a corner."""
    imports = read_imports(root)
    folder_at = folders_of([str(path.relative_to(root)) for path in module_files(root).values()])
    return find_circles(graph((folder_at[each.importer], folder_at[each.imported]) for each in imports))


def broken_layers(root: Path) -> list[str]:
    """Imports that run upwards, and parts of a package that stand in no layer."""
    found = []
    for path in module_files(root).values():
        package, part = _part_of(path.relative_to(root))
        if part and part not in LAYERS[package]:
            found.append(f"{path.relative_to(root)}: {part} stands in no layer of {package}; name it in LAYERS")
    for each in read_imports(root):
        (package, part), (other, target) = _part_of(Path(each.importer)), _part_of(Path(each.imported))
        if package != other:
            if other not in BELOW[package]:
                found.append(f"{each}: {package} stands below {other}")
        elif part and part != target:  # the package's own face imports whatever it shows
            order = LAYERS[package]
            if not target:
                found.append(f"{each}: a module inside a package does not import the package's face")
            elif part in order and target in order and order.index(target) > order.index(part):
                found.append(f"{each}: {target} stands above {part}")
    return sorted(set(found))


def _part_of(path: Path) -> tuple[str, str]:
    """Package and part (folder or file directly in it) of a module; the part of the package's face is empty."""
    part = path.parts[1].removesuffix(".py")
    return path.parts[0], "" if part == "__init__" else part


def describe(root: Path) -> tuple[str, bool]:
    """The graph as text, and whether it has a circle."""
    imports = read_imports(root)
    files = {str(path.relative_to(root)): path for path in module_files(root).values()}
    circles = find_circles(graph((each.importer, each.imported) for each in imports))
    folder_at = folders_of(list(files))
    arrows = graph((folder_at[each.importer], folder_at[each.imported]) for each in imports)
    between = find_circles(arrows)
    count = sum(map(len, arrows.values()))
    texts = [f"{len(files)} files, {len(set(folder_at.values()))} folders, {count} arrows between folders"]
    texts.append(f"circles of files: {len(circles)}")
    texts += [f"  {' <-> '.join(circle)}" for circle in circles]
    texts.append(f"circles of folders: {len(between)}")
    for circle in between:
        members = set(circle)
        texts.append(f"  {' <-> '.join(circle)}")
        inner = [each for each in imports if {folder_at[each.importer], folder_at[each.imported]} <= members]
        texts += [f"    {each}" for each in inner if folder_at[each.importer] != folder_at[each.imported]]
    broken = broken_layers(root)
    texts.append(f"imports that run upwards: {len(broken)}")
    texts += [f"  {each}" for each in broken]
    texts.append("folder: files, lines")
    folders: dict[str, list[Path]] = defaultdict(list)
    for name, path in files.items():
        folders[str(Path(name).parent)].append(path)
    for folder, members_of in sorted(folders.items()):
        held = [path for path in members_of if path.name != "__init__.py"]
        lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in members_of)
        texts.append(f"  {folder}: {len(held)}, {lines}")
    total = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files.values())
    tests = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in (root / "test").rglob("*.py"))
    texts.append(f"lines: library {total}, tests {tests}")
    return "\n".join(texts), bool(circles or between or broken)


def draw(root: Path, target: Path) -> None:
    """The packages as columns, their parts as boxes from the ground up, with the number of files in each."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    count: dict[tuple[str, str], int] = defaultdict(int)
    for path in module_files(root).values():
        package, part = _part_of(path.relative_to(root))
        if part and path.name != "__init__.py":
            count[package, part] += 1
    figure, axes = plt.subplots(figsize=(11, 6.2), dpi=110)
    tallest = max(map(len, LAYERS.values()))
    for column, (package, parts) in enumerate(LAYERS.items()):
        left = 3.0 * column
        axes.text(left + 1.2, tallest + 0.35, package, ha="center", fontsize=11, fontweight="bold")
        for height, part in enumerate(parts):
            is_file = (root / package / f"{part}.py").is_file()
            color = "#f4f4f4" if is_file else "#dbe9f6" if part != "ros" else "#e6f3dd"
            box = plt.Rectangle((left, height + 0.08), 2.4, 0.84, facecolor=color, edgecolor="#667788", linewidth=0.8)
            axes.add_patch(box)
            files = "" if is_file else f"  ({count[package, part]})"
            axes.text(left + 1.2, height + 0.5, part + files, ha="center", va="center", fontsize=9)
    names = list(LAYERS)
    pairs = [(package, other) for package, below in BELOW.items() for other in below]
    for number, (package, other) in enumerate(pairs):
        start, end = (3.0 * names.index(each) + 0.5 + 0.28 * number for each in (package, other))
        depth = -0.35 - 0.22 * number
        axes.annotate("", (end, -0.02), (end, depth), arrowprops={"arrowstyle": "->", "color": "#445566"})
        axes.plot([start, start, end], [0.0, depth, depth], color="#445566", linewidth=0.9)
    axes.set_xlim(-0.2, 3.0 * len(LAYERS) - 0.4)
    axes.set_ylim(-1.6, tallest + 0.8)
    axes.axis("off")
    figure.savefig(target, bbox_inches="tight")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(__file__).resolve().parent.parent
    parser.add_argument("root", nargs="?", type=Path, default=default, help="a checkout; default: this one")
    parser.add_argument("--draw", type=Path, metavar="PICTURE", help="draw the parts of the packages into a file too")
    options = parser.parse_args()
    text, circular = describe(options.root)
    print(text)
    if options.draw is not None:
        draw(options.root, options.draw)
    return int(circular)


if __name__ == "__main__":
    sys.exit(main())
