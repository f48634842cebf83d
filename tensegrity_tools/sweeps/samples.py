"""One chunk of a sweep: its points are computed one after the other, each starting from the last solution.

A chunk depends only on the plan and its number, so that the results are the same for any number of processes.
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
"""Status of a point; NO_ROBOT: the robot with its loads and parameters cannot be built or has no equilibrium."""


@dataclass(frozen=True)
class SweepPlan:
    """Complete definition of a sweep; equal plans give equal results.

    Args:
        text: text of the robot file. source: its name in errors. path: its path, for files that it names.
        axes: varied quantities. random: number of random poses in place of a grid; zero: grid. seed: seed of the poses.
        chunk: number of points per chunk.
        wrench: whether the largest force that the output can bear along every axis is computed as well (structures).
        rigid_bars: whether bars are rigid, as in simulation.
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
        """Points in the order of computation."""
        return _points(self.axes, self.random, self.seed)

    @property
    def pieces(self) -> tuple[tuple[int, int, int], ...]:
        """(row of the outer axes, first inner point, end of the inner points) of every chunk."""
        points = self.points
        return _pieces(len(points.outer), len(points.inner), self.chunk)

    def robot(self, values: Sequence[float]) -> Robot:
        """Robot with the values of the axes that do not belong to the pose.

        Raises:
            TensegrityError: an unknown parameter, node or body, or an error of `load_robot`.
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
            # not in the file, since the rest lengths computed for a desired shape are those without these loads
            robot = replace(
                robot, model=replace(robot.model, loads=robot.model.loads + robot.model.force_array(forces))
            )
        return robot


@lru_cache(maxsize=2)
def _points(axes: tuple[SweepAxis, ...], random: int, seed: int) -> SweepPoints:
    """Points, computed once for all chunks; for 10^5 points this takes as long as half a pose."""
    return make_points(axes, random, seed)


@lru_cache(maxsize=2)
def _pieces(outer: int, inner: int, size: int) -> tuple[tuple[int, int, int], ...]:
    """Chunks, computed once, since every chunk needs its entry."""
    return tuple((row, begin, min(begin + size, inner)) for row in range(outer) for begin in range(0, inner, size))


COLUMNS = (
    "status", "lowest_margin", "tension_min", "tension_max", "stiffness_min", "singular_min", "singular_max", "wrench"
)  # fmt: skip
"""Results for every point: smallest margin between a tension and its floor [N]; smallest and largest tension [N];
smallest eigenvalue of the stiffness along the controlled axes [N/m]; singular values of the map from actuators to
these axes; force that the output can bear along every controlled axis in both directions [N]. Rotations are converted
to lengths at the reach of the output."""


def sample_chunk(plan: SweepPlan, number: int) -> dict[str, NDArray]:
    """Compute the points of one chunk.

    Returns:
        `figures` (p, len(COLUMNS)), `pose` (p, 7), `positions` (p, a) of the actuators, and `binding` (p,), names of
            the limits of the motion for poses out of reach.
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
    """Equilibrium with the output displaced from home by offsets [m, rad] along axes (indices of `AXES`), or None.

    The search starts from the `last` equilibrium. The second value names the limits of the motion for a pose out of
    reach.
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
    """Names of the actuators of the robot of a plan."""
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
