"""One chunk of a sweep: its points one after the other, each searched for from where the last one was found.

A chunk depends on nothing but the plan and its number, so that any count of processes gives the same numbers.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from ruamel.yaml import YAML

from tensegrity_control.inverse_kinematics.equilibrium_map import EquilibriumMap, equilibrium_map
from tensegrity_control.inverse_kinematics.ik_result import InverseKinematicsOptions
from tensegrity_control.inverse_kinematics.pose_goal import PoseGoal
from tensegrity_control.inverse_kinematics.reach import reach
from tensegrity_dynamics.errors import TensegrityError, unknown_name
from tensegrity_dynamics.linear_models.output_stiffness import stiffness_of
from tensegrity_dynamics.numerics.rotations import matrix_from_quaternion, matrix_from_vector, quaternion_from_matrix
from tensegrity_dynamics.robots.load_robot import parse_robot
from tensegrity_dynamics.robots.output_frame import AXES
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.structures.structure import Structure

from .axes import SweepAxis, SweepPoints, make_points

REACHED, OUT_OF_REACH, NO_ROBOT = 1, 0, -1
"""What became of a point; NO_ROBOT: the robot of its loads and parameters cannot be built or has no equilibrium."""


@dataclass(frozen=True)
class SweepPlan:
    """All that a sweep is; two equal plans give equal numbers.

    Args:
        text: of the robot file. source: its name in errors. path: where it is, for files that it names.
        axes: what varies. random: poses drawn instead of a grid, zero for the grid. seed: of the draw.
        chunk: points in one piece of work.
        wrench: whether the largest force that can be taken in every direction is looked for, too (structures).
        rigid_bars: as in simulation.
    """

    text: str
    source: str
    path: str
    axes: tuple[SweepAxis, ...]
    random: int = 0
    seed: int = 0
    chunk: int = 50
    wrench: bool = False
    rigid_bars: bool = False

    @property
    def points(self) -> SweepPoints:
        """In the order of the visits."""
        return _points(self.axes, self.random, self.seed)

    @property
    def pieces(self) -> tuple[tuple[int, int, int], ...]:
        """(row of the outer axes, first inner point, end) of every chunk."""
        points = self.points
        return _pieces(len(points.outer), len(points.inner), self.chunk)

    def robot(self, values: Sequence[float]) -> Robot:
        """The robot with the values of the axes that are no pose.

        Raises:
            TensegrityError: an unknown parameter, node or body, or what `load_robot` refuses.
        """
        others = [axis for axis in self.axes if not axis.is_pose]
        path = Path(self.path) if self.path else None
        if not others:
            return parse_robot(self.text, self.source, path)
        yaml = YAML(typ="safe", pure=True)
        yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]  # parameters stand in their order
        data = yaml.load(self.text)
        forces: dict[str, list[float]] = {}
        for axis, value in zip(others, values, strict=True):
            group, name, *rest = axis.name.split(".")
            if group == "parameter":
                parameters = data.get("parameters") or {}
                if name not in parameters:
                    raise TensegrityError(f"--over {axis.name}: " + unknown_name("parameter", name, parameters))
                parameters[name] = f"{float(value)!r} {axis.unit}" if axis.unit else float(value)
            else:
                forces.setdefault(name, [0.0, 0.0, 0.0])["xyz".index(rest[0])] = float(value)
        plain = parse_robot(self.text, self.source, path)
        carrier = "node" if isinstance(plain.model, Structure) else "body"
        for name in forces:
            if name not in plain.model.load_names:
                raise TensegrityError(f"--over load.{name}: " + unknown_name(carrier, name, plain.model.load_names))
        if forces and carrier == "body":
            loads = [
                {"name": f"sweep_{name}", "body": name, "force": [f"{each!r} N" for each in force]}
                for name, force in forces.items()
            ]
            data["loads"] = [*(data.get("loads") or []), *loads]
        out = io.StringIO()
        yaml.dump(data, out)
        robot = parse_robot(out.getvalue(), self.source, path)
        if forces and isinstance(robot.model, Structure):
            # not by the file: rest lengths that it finds for a desired shape are those without these loads
            robot = replace(
                robot, model=replace(robot.model, loads=robot.model.loads + robot.model.force_array(forces))
            )
        return robot


@lru_cache(maxsize=2)
def _points(axes: tuple[SweepAxis, ...], random: int, seed: int) -> SweepPoints:
    """Made once for all chunks: of 10^5 points that takes as long as half a pose."""
    return make_points(axes, random, seed)


@lru_cache(maxsize=2)
def _pieces(outer: int, inner: int, size: int) -> tuple[tuple[int, int, int], ...]:
    """Made once, too: every chunk asks for its own."""
    return tuple((row, begin, min(begin + size, inner)) for row in range(outer) for begin in range(0, inner, size))


COLUMNS = (
    "status", "lowest_margin", "tension_min", "tension_max", "stiffness_min", "singular_min", "singular_max", "wrench"
)  # fmt: skip
"""Figures of every point: margin of the tension that is nearest to its floor [N]; least and largest tension [N]; least
eigenvalue of the stiffness along the controlled axes [N/m, turning measured at the reach]; singular values of the map
from actuators to these axes [turning measured at the reach]; force that can be taken along every controlled axis,
either way [N]."""


def sample_chunk(plan: SweepPlan, number: int) -> dict[str, NDArray]:
    """The points of one chunk.

    Returns:
        `figures` (p, len(COLUMNS)), `pose` (p, 7), `positions` (p, a) of the actuators, and `binding`, (p,) names of
        what stops the motion where a pose is out of reach.
    """
    row, begin, end = plan.pieces[number]
    points = plan.points
    inner = points.inner[begin:end]
    count = len(inner)
    figures = np.full((count, len(COLUMNS)), np.nan)
    poses = np.full((count, 7), np.nan)
    binding = np.full(count, "", dtype="<U80")
    try:
        equilibria = _equilibria(plan, tuple(points.outer[row].tolist()))
        home = equilibria.start()
    except TensegrityError as error:
        figures[:, 0] = NO_ROBOT
        binding[:] = str(error)[:80]
        actuators = len(actuator_names(plan))
        return {"figures": figures, "pose": poses, "positions": np.full((count, actuators), np.nan), "binding": binding}
    robot = equilibria.robot
    positions = np.full((count, len(robot.actuators)), np.nan)
    axes = [AXES.index(axis.name) for axis in plan.axes if axis.is_pose]
    last = home
    for k, offsets in enumerate(inner):
        found, why = home, ""
        if axes:
            found, why = reach_beside(equilibria, last, home, axes, offsets)
        if found is None:
            figures[k, 0], binding[k] = OUT_OF_REACH, why[:80]
            continue
        last = found
        poses[k] = np.concatenate(found.pose)
        positions[k] = equilibria.positions(found)
        figures[k] = _figures(equilibria, found, plan.wrench)
    return {"figures": figures, "pose": poses, "positions": positions, "binding": binding}


def reach_beside(
    equilibria: EquilibriumMap[Any], last: Any, home: Any, axes: Sequence[int], offsets: ArrayLike
) -> tuple[Any, str]:
    """The equilibrium with the output moved from home by offsets [m, rad] along axes (indices of `AXES`), or None.

    It is searched for from the `last` one found; beside it what stops the motion where it is out of reach.
    """
    moved, robot = np.zeros(6), equilibria.robot
    moved[axes] = offsets
    turned = matrix_from_vector(moved[3:]) @ matrix_from_quaternion(home.pose[1])
    goal = PoseGoal(home.pose[0] + moved[:3], quaternion_from_matrix(turned), robot.output)
    preferred = InverseKinematicsOptions(preferred=home if isinstance(robot.model, Structure) else None)
    return reach(equilibria, last, home, goal, preferred)


@lru_cache(maxsize=4)
def _equilibria(plan: SweepPlan, values: tuple[float, ...]) -> EquilibriumMap[Any]:
    robot = plan.robot(values)
    return equilibrium_map(robot.model, robot, **({"rigid_bars": True} if plan.rigid_bars else {}))


@lru_cache(maxsize=4)
def actuator_names(plan: SweepPlan) -> tuple[str, ...]:
    """Of the robot of a plan."""
    return tuple(each.name for each in parse_robot(plan.text, plan.source).actuators)


def _figures(equilibria: EquilibriumMap[Any], found: Any, wrench: bool) -> NDArray[np.float64]:
    """One row of `COLUMNS`."""
    output, margin, least, most = equilibria.robot.output, np.nan, np.nan, np.nan
    readings = np.array(list(equilibria.tensions_and_floors(found).values()))
    if readings.size:
        tensions, floors = readings.T
        margin, least, most = float(np.min(tensions - floors)), float(tensions.min()), float(tensions.max())
    weight = np.where(output.rows < 3, 1.0, equilibria.reach)
    jacobian = equilibria.pose_jacobian(found)[output.rows]
    values = np.linalg.svd(weight[:, None] * jacobian, compute_uv=False)
    smallest = float(values[-1]) if values.size == len(output.rows) else 0.0
    stiffness = np.nan
    compliance = equilibria.compliance(found)
    if compliance is not None:
        try:
            matrix = stiffness_of(compliance, output.rows) / np.outer(weight, weight)
            stiffness = float(np.linalg.eigvalsh(0.5 * (matrix + matrix.T))[0])
        except TensegrityError:
            stiffness = np.inf
    force = equilibria.force_capacity(found) if wrench else np.nan
    return np.array([REACHED, margin, least, most, stiffness, smallest, float(values[0]), force])
