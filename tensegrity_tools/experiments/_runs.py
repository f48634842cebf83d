"""Trajectories of the experiments with the libraries or with the nodes, for variants of the shipped robots."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from ruamel.yaml import YAML

from tensegrity_control.registry import controller_class
from tensegrity_dynamics import Robot, load_robot
from tensegrity_dynamics.errors import TensegrityError, unknown_name
from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel
from tensegrity_dynamics.robots.quantities import read_quantity

from ..runtime.closed_loop import TrajectoryRun, Waypoint, through_libraries
from ._progress import report

Change = Callable[[dict[str, Any]], None]


class Variants:
    """Modified robot files in a folder that is removed with this object."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="tensegrity_variants_")
        self._count = 0

    def file(self, name: str, *changes: Change) -> Path:
        """File of a shipped robot with changes to its blocks. The parts of a mechanism have all their fields: those
        from `defaults` are written into them before."""
        yaml = YAML(typ="safe", pure=True)
        yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]  # a parameter is calculated from those before it
        blocks = yaml.load((resources.files("tensegrity_dynamics") / "robots" / f"{name}.yaml").read_text())
        if blocks["kind"] == "mechanism":
            _fill_defaults(blocks, blocks.pop("defaults", {}))
        for change in changes:
            change(blocks)
        self._count += 1
        path = Path(self._folder.name) / f"{name}_{self._count}.yaml"
        with path.open("w") as file:
            yaml.dump(blocks, file)
        return path


def groups(block: Mapping[str, Any]) -> Iterator[Any]:
    """A block and its nested `repeat` blocks; `repeat` is one mapping or a list of mappings."""
    yield block
    repeated = block.get("repeat", ())
    for each in (repeated,) if isinstance(repeated, Mapping) else repeated:
        yield from groups(each)


def _fill_defaults(blocks: Mapping[str, Any], defaults: Mapping[str, Mapping[str, Any]]) -> None:
    for block in groups(blocks):
        for name, fields in defaults.items():
            for part in block.get(name, ()):
                part.update({**deepcopy(fields), **part})


def plant_of(robot: Robot, *, young: float = 1.0, radius: float = 1.0, masses: float = 1.0) -> Robot:
    """Simulated mechanism that differs from the model of controller and observer: factors of Young's modulus and radius
    of all cables and of the masses of all bodies."""
    model, area = robot.model_as(MechanismModel), radius**2
    mechanism = model.mechanism
    bodies = tuple(
        replace(each, mass=masses * each.mass, inertia=masses * np.asarray(each.inertia)) for each in mechanism.bodies
    )
    cables = tuple(replace(each, young=young * each.young, area=area * each.area) for each in mechanism.cables)
    routes = tuple(
        replace(each, stiffness=young * area * each.stiffness, damping=area * each.damping) for each in mechanism.routes
    )
    return replace(
        robot, model=replace(model, mechanism=replace(mechanism, bodies=bodies, cables=cables, routes=routes))
    )


def gravity_vector(size: float) -> list[float]:
    """Downward vector of this size [m/s^2]."""
    return [0.0, 0.0, -size]


def listed(text: str | Sequence[str], what: str, available: Sequence[str]) -> list[str]:
    """Names from a text, separated by commas. Raises TensegrityError if one is unknown, or there are none."""
    names = [part.strip() for part in text.split(",")] if isinstance(text, str) else list(text)
    for name in names:
        if name not in available:
            raise TensegrityError(f"{what}: " + unknown_name("name", name, available))
    return names


def quantities(text: str | Sequence[float], what: str, kind: str) -> list[float]:
    """Positive numbers in SI units from a text such as "200 MPa, 2 GPa". Raises TensegrityError that names `what`."""
    if not isinstance(text, str):
        return [float(value) for value in text]
    values = [read_quantity(part, kind, what) for part in text.split(",")]
    if not all(value > 0.0 for value in values):
        raise TensegrityError(f"{what} {text!r}: give values above zero.")
    return values


def run_trajectory(
    robot: Path | str,
    controller: str,
    waypoints: Sequence[Waypoint],
    *,
    nodes: bool,
    plant: Path | str | None = None,
    parameters: dict[str, Any] | None = None,
    control: Any = None,
    **options: Any,
) -> TrajectoryRun:
    """Run a trajectory, see `through_libraries`; `nodes`: with the real nodes in lock-step."""
    if "actuation" in controller_class(controller).parameters():
        parameters = {"actuation": "effort", **(parameters or {})}  # as in the documents
    if nodes:
        from ..runtime.lockstep_run import through_nodes

        named = {f"{controller}.{key}": value for key, value in (parameters or {}).items()}
        return through_nodes(robot, controller, waypoints, plant=plant, parameters=named, **options)
    return through_libraries(
        load_robot(str(robot)), controller, waypoints, plant=None if plant is None else load_robot(str(plant)),
        parameters=parameters, control=control, **options,
    )  # fmt: skip


def spread(first: float, second: float) -> float:
    """Difference of two numbers relative to the larger one."""
    largest = max(abs(first), abs(second))
    return 0.0 if largest == 0.0 else abs(first - second) / largest


def same_bits(first: TrajectoryRun, second: TrajectoryRun) -> bool:
    """Whether states and commands of two runs are equal bit for bit."""
    return all(
        np.array_equal(getattr(first, name), getattr(second, name)) for name in ("q", "v", "commands", "tensions")
    )


def twice_through_nodes(
    part: str, error: Callable[[TrajectoryRun], float], run: TrajectoryRun, *given: Any, **options: Any
) -> dict[str, Any]:
    """Result of two runs with the real nodes in lock-step, beside the same run with the libraries.

    Args:
        part: what is run, for the progress. error: largest error of a run. given, options: of `run_trajectory`.
    """
    report(f"{part}, through the nodes, twice")
    runs = [run_trajectory(*given, nodes=True, **options) for _ in range(2)]
    return {
        "largest_error": error(runs[0]),
        "apart": spread(error(runs[0]), error(run)),
        "two_runs_have_the_same_bits": same_bits(*runs),
        "simulated_seconds_per_second": float(runs[0].times[-1]) / runs[0].wall,
    }


def through_nodes_in_words(rows: Sequence[dict[str, Any]]) -> str:
    """Result of the runs with the nodes, in one sentence."""
    twice = sum(r["two_runs_have_the_same_bits"] for r in rows)
    text = (
        f"through the nodes in lock-step: {len(rows)} runs, figures {100 * max(r['apart'] for r in rows):.2g} % apart "
        f"at most from those through the libraries; {twice} with the same bits twice"
    )
    pace = [r["simulated_seconds_per_second"] for r in rows if "simulated_seconds_per_second" in r]
    return text + (f"; {min(pace):.2g} to {max(pace):.2g} simulated seconds per second." if pace else ".")
