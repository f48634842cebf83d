"""How far the output can be moved from a pose, along straight lines and with its orientation kept.

As a module (`python -m tensegrity_tools.view.reach`) it is the process of the browser view: robot and pose come by
standard input, progress and result go to standard output, one line of JSON each.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from tensegrity_control.inverse_kinematics.equilibrium_map import EquilibriumMap, equilibrium_map
from tensegrity_control.inverse_kinematics.ik_result import InverseKinematicsOptions
from tensegrity_control.inverse_kinematics.pose_goal import PoseGoal
from tensegrity_control.inverse_kinematics.reach import reach
from tensegrity_dynamics.ending import follow_parent
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robots.output_frame import OutputFrame, Pose
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.structures.structure import Structure

PRECISION = 0.02
"""Relative precision of the distances: the goal at a distance is reachable, the one this much farther is not."""
FIRST, LEAST, FARTHEST = 0.25, 1e-3, 50.0
"""First distance tried, the least one that is told from zero, and the one at which a search ends, in lever arms of the
output (`EquilibriumMap.reach`)."""
IN_PLANE = 24
LOWEST_PRIORITY = 19


@dataclass(frozen=True, eq=False)
class Star:
    """Directions from a centre, and how their ends are joined; of the rows below, 0 is the centre, k + 1 the end of k.

    Args:
        directions: (d, 3) unit vectors along the controlled axes: 42 in space, 24 in a plane, 2 on a line.
        triangles: (t, 3) rows: the surface of a volume, the fan of a plane, none for a line.
        edges: (e, 2) rows: the edges of the surface, the outline of a plane, both halves of a line.
    """

    directions: NDArray[np.float64]
    triangles: NDArray[np.int64]
    edges: NDArray[np.int64]


def star_of(output: OutputFrame) -> Star:
    """Directions in which goals can move an output.

    Raises:
        TensegrityError: goals set no coordinate of its position.
    """
    axes = np.eye(3)[output.rows[output.rows < 3]]
    if len(axes) == 3:
        directions = _sphere()
        triangles = ConvexHull(directions).simplices.astype(np.int64) + 1
        sides = np.sort(np.concatenate([triangles[:, [a, b]] for a, b in ((0, 1), (1, 2), (2, 0))]), axis=1)
        return Star(directions, triangles, np.unique(sides, axis=0))
    if len(axes) == 2:
        angles = 2.0 * np.pi * np.arange(IN_PLANE) / IN_PLANE
        edges = np.column_stack((np.arange(IN_PLANE), np.roll(np.arange(IN_PLANE), -1))) + 1
        fan = np.column_stack((np.zeros(IN_PLANE, dtype=np.int64), edges))
        return Star(np.column_stack((np.cos(angles), np.sin(angles))) @ axes, fan, edges)
    if len(axes) == 1:
        return Star(np.vstack((axes, -axes)), np.zeros((0, 3), dtype=np.int64), np.array([[0, 1], [0, 2]]))
    raise TensegrityError(f"output {output.name}: goals set none of x, y, z; there is no region to reach.")


def _sphere() -> NDArray[np.float64]:
    """(42, 3) unit vectors: the vertices of an icosahedron and the middles of its edges, the world axes among them."""
    golden = 0.5 * (1.0 + np.sqrt(5.0))
    corners = np.array([np.roll((0.0, a, b * golden), turn) for turn in range(3) for a in (-1, 1) for b in (-1, 1)])
    one, other = np.nonzero(np.triu(np.isclose(corners @ corners.T, golden)))
    every = np.vstack((corners, corners[one] + corners[other]))
    return np.asarray(every / np.linalg.norm(every, axis=1)[:, None])


def reachable_points(robot: Robot, pose: Pose, precision: float = PRECISION) -> Iterator[NDArray[np.float64]]:
    """Positions (3,) m of the output: at the pose, then the farthest one along each direction of `star_of`, in order.

    A goal is reachable where sweeps and the paths of controllers (`plan_path`) reach it: through equilibria of the
    robot of the file, without payloads, within the limits of its actuators. Along a direction the distance is doubled
    until a goal is out of reach, then bisected. Every point is reached by one goal sent at the pose. The region is
    star-shaped about the pose: what a direction meets again behind the end of its reach is not part of it.

    Args:
        pose: position (3,) m and quaternion wxyz (4,); the region is that of this orientation, as far as goals set it.
        precision: relative precision of the distances; smaller takes longer, by one goal for each halving.

    Raises:
        TensegrityError: the pose is out of reach, or the robot takes no goals.
    """
    if robot.model.takes_no_goals:
        raise TensegrityError(f"{robot.name} {robot.model.takes_no_goals}.")
    equilibria = equilibrium_map(robot.model, robot)
    home = equilibria.start()
    options = InverseKinematicsOptions(preferred=home if isinstance(robot.model, Structure) else None)
    output: Any = robot.output
    centre, why = reach(equilibria, home, home, PoseGoal(*pose, output), options)
    if centre is None:
        raise TensegrityError(f"the pose itself is out of reach ({why}); start from one within reach.")
    yield centre.pose[0]
    for direction in star_of(output).directions:
        yield _farthest(equilibria, centre, pose, direction, precision, options).pose[0]


def _farthest(
    equilibria: EquilibriumMap[Any],
    centre: Any,
    pose: Pose,
    direction: NDArray[np.float64],
    precision: float,
    options: InverseKinematicsOptions,
) -> Any:
    """Equilibrium at the farthest goal along a direction (3,) that is reachable from the centre."""

    def reached(start: Any, distance: float) -> Any:
        goal = PoseGoal(pose[0] + distance * direction, pose[1], equilibria.robot.output)
        return reach(equilibria, start, start, goal, options)[0]

    def search(continued: bool) -> tuple[float, Any]:
        near, far, last, trial = 0.0, np.inf, centre, FIRST * equilibria.reach
        while far - near > max(precision * near, LEAST * equilibria.reach) and near < FARTHEST * equilibria.reach:
            found = reached(last if continued else centre, trial)
            if found is None:
                far = trial
            else:
                near, last = trial, found
            trial = 2.0 * near if far == np.inf else 0.5 * (near + far)
        return near, last

    distance, last = search(continued=True)
    # continued from goal to goal is faster, but a step can pass a singular shape that no goal from the centre passes
    if last is centre or reached(centre, distance) is not None:
        return last
    return search(continued=False)[1]


def main() -> None:
    """Answer on standard output: {"done", "of"} for each direction, at last {"points", "triangles", "edges"} or
    {"error"}."""
    os.nice(LOWEST_PRIORITY)
    follow_parent()
    robot, pose = pickle.load(sys.stdin.buffer)
    try:
        star, points = star_of(robot.output), []
        for point in reachable_points(robot, pose):
            points.append(point.tolist())
            _say(done=len(points) - 1, of=len(star.directions))
        _say(points=points, triangles=star.triangles.tolist(), edges=star.edges.tolist())
    except Exception as error:  # whatever it is, the user who waits must see it
        _say(error=str(error) if isinstance(error, TensegrityError) else f"{type(error).__name__}: {error}")


def _say(**values: Any) -> None:
    print(json.dumps(values), flush=True)


if __name__ == "__main__":
    main()
