"""What RViz is to draw of a robot, as plain arrays; the markers node only copies it into messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..numerics.rotations import matrix_from_quaternion
from ..robots.output_frame import Pose
from ..robots.robot import Robot
from ..robots.robot_types import type_of
from .structure_picture import (
    BAR_COLOUR,
    FIXED_COLOUR,
    GOAL_COLOUR,
    SLACK_COLOUR,
    Sizes,
    dashes,
    least_ceiling,
    place_cylinders,
    round_ceiling,
    slack_members,
    tension_colours,
)
from .urdf import link_names


@dataclass(frozen=True, eq=False)
class Drawing:
    """One marker.

    Args:
        namespace: what it shows; people switch namespaces on and off.
        number: its number within the namespace.
        kind: "cylinder", "box" or "sphere" at a pose; "lines", "triangles" or "spheres" at points.
        scale: (3,) m; of lines and spheres at points the first is the width.
        colours: (3,) for all or (k, 3) one per point, 0 to 1.
        opacity: 0 to 1.
        points: (k, 3) m; for what has a pose none.
        position, quaternion: of a cylinder along z, a box or a sphere.
        Without points, what is drawn at points is taken away.
    """

    namespace: str
    number: int
    kind: str
    scale: tuple[float, float, float]
    colours: NDArray[np.float64]
    points: NDArray[np.float64]
    opacity: float = 1.0
    position: NDArray[np.float64] | None = None
    quaternion: NDArray[np.float64] | None = None


class RobotDrawing(Protocol):
    """Pictures of one robot for RViz, state by state.

    A shape is a configuration: nodes (n, 3) m of a structure, q (nq,) of a mechanism.
    """

    def draw(self, shape: NDArray[np.float64], tensions: NDArray[np.float64], goal: Pose | None) -> list[Drawing]:
        """All drawings for a shape, tensions [N] with NaN where unknown, and the last accepted goal."""

    def frames(self, shape: NDArray[np.float64]) -> list[tuple[str, Pose]]:
        """Name of every link of the robot description, and its pose in the world."""


def make_drawing(robot: Robot) -> RobotDrawing:
    """The drawing that the robot's type has registered."""
    drawing: RobotDrawing = type_of(robot).picture(robot)
    return drawing


class StructureDrawing:
    """Drawings of one robot, state by state.

    Args:
        robot: a robot whose model is a structure.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._sizes = Sizes.of(robot.structure)
        kinds = np.array(robot.structure.kinds)
        self._bars = np.flatnonzero(kinds == "bar")
        self._kinds = {kind: np.flatnonzero(kinds == kind) for kind in ("tendon", "spring")}
        self._ceiling = least_ceiling(robot.structure)
        self._links = link_names(robot)

    def frames(self, nodes: NDArray[np.float64]) -> list[tuple[str, Pose]]:
        """Link and pose of every bar and output for nodes (n, 3) m."""
        centres, quaternions, _ = place_cylinders(nodes, self._robot.structure.members[self._bars])
        poses = list(zip(centres, quaternions, strict=True)) + [each.pose(nodes) for each in self._robot.outputs]
        return list(zip(self._links, poses, strict=True))

    def draw(
        self, nodes: NDArray[np.float64], tensions: NDArray[np.float64], goal: Pose | None = None
    ) -> list[Drawing]:
        """All drawings for nodes (n, 3) m, tensions (m,) N with NaN where unknown, and the last accepted goal."""
        structure, sizes = self._robot.structure, self._sizes
        known = tensions[structure.unilateral & np.isfinite(tensions)]
        if known.size and known.max() > self._ceiling:
            self._ceiling = round_ceiling(1.1 * float(known.max()))
        slack = slack_members(structure, tensions, self._ceiling)
        colours = tension_colours(tensions, self._ceiling) / 255.0
        drawings = self._draw_bars(nodes)
        for kind, width in (("tendon", 2.0 * sizes.tendon), ("spring", 1.2 * sizes.spring)):
            rows = self._kinds[kind][~slack[self._kinds[kind]]]
            drawings.append(
                Drawing(
                    kind + "s", 0, "lines", (width, 0.0, 0.0), np.repeat(colours[rows], 2, axis=0),
                    nodes[structure.members[rows]].reshape(-1, 3),
                )
            )  # fmt: skip
        loose = dashes(nodes, structure.members[slack]).reshape(-1, 3)
        drawings.append(Drawing("slack", 0, "lines", (1.5 * sizes.tendon, 0.0, 0.0), rgb(SLACK_COLOUR), loose))
        node_colours = np.where(structure.fixed[:, None], rgb(FIXED_COLOUR), rgb(BAR_COLOUR))
        drawings.append(Drawing("nodes", 0, "spheres", (2.0 * sizes.node,) * 3, node_colours, nodes))
        return drawings + self._draw_goal(goal)

    def _draw_bars(self, nodes: NDArray[np.float64]) -> list[Drawing]:
        centres, quaternions, lengths = place_cylinders(nodes, self._robot.structure.members[self._bars])
        width = 2.0 * self._sizes.bar
        none = np.zeros((0, 3))
        return [
            Drawing(
                "bars", k, "cylinder", (width, width, float(lengths[k])), rgb(BAR_COLOUR), none,
                position=centres[k], quaternion=quaternions[k],
            )
            for k in range(len(self._bars))
        ]  # fmt: skip

    def _draw_goal(self, goal: Pose | None) -> list[Drawing]:
        if not self._robot.outputs:
            return []
        span, width = self._sizes.span, 1.5 * self._sizes.tendon
        patch = np.zeros((0, 3))
        if goal is not None:
            turn = matrix_from_quaternion(goal[1])
            corners = goal[0] + self._robot.output.points @ turn.T
            here = np.arange(len(corners))
            if len(corners) >= 3:
                fan = np.stack(
                    (corners, corners[(here + 1) % len(corners)], np.tile(corners.mean(axis=0), (len(corners), 1))),
                    axis=1,
                )
                patch = np.concatenate((fan, fan[:, ::-1])).reshape(-1, 3)  # both faces
        return [
            draw_axes(goal, 0.14 * span, width),
            Drawing("goal", 1, "triangles", (1.0, 1.0, 1.0), rgb(GOAL_COLOUR), patch, opacity=0.35),
        ]


def draw_axes(goal: Pose | None, length: float, width: float) -> Drawing:
    """The axes of a goal, red, green and blue; length and width in m."""
    axes = np.zeros((0, 3))
    if goal is not None:
        ends = goal[0] + length * matrix_from_quaternion(goal[1]).T
        axes = np.stack((np.tile(goal[0], (3, 1)), ends), axis=1).reshape(-1, 3)
    return Drawing("goal", 0, "lines", (width, 0.0, 0.0), np.repeat(np.eye(3), 2, axis=0)[: len(axes)], axes)


def rgb(colour: tuple[int, int, int]) -> NDArray[np.float64]:
    """(3,) colour from 0 to 1 of one from 0 to 255."""
    return np.array(colour) / 255.0
