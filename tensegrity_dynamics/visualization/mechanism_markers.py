"""What RViz is to draw of a mechanism: solids, pulleys and blocks, cables by their tension, the ground and the goal."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..mechanisms.mechanism_model import MechanismModel
from ..robots.output_frame import Pose
from ..robots.robot import Robot
from .markers import Drawing, draw_axes, rgb
from .mechanism_picture import COLOURS, EDGE_COLOUR, OPACITY, MechanismPicture, least_ceiling
from .structure_picture import (
    GOAL_COLOUR,
    PLATE_COLOUR,
    SLACK_COLOUR,
    SLACK_SHARE,
    dashes,
    round_ceiling,
    tension_colours,
)
from .urdf import link_names

NONE = np.zeros((0, 3))


class MechanismDrawing:
    """Drawings of one robot, state by state.

    Args:
        robot: a robot whose model is a mechanism.
    """

    def __init__(self, robot: Robot) -> None:
        self._picture = MechanismPicture(robot)
        self._ceiling = self._least = least_ceiling(robot.model_as(MechanismModel))
        self._links = link_names(robot)
        self._numbers = _count_within(tuple(solid.role for solid in self._picture.solids))
        self._ground = self._draw_ground()

    def draw(self, q: NDArray[np.float64], tensions: NDArray[np.float64], goal: Pose | None = None) -> list[Drawing]:
        """All drawings for q (nq,), tensions (c,) N with NaN where unknown, and the last accepted goal."""
        self._picture.move(q)
        return [self._ground, *self._draw_solids(), *self._draw_cables(tensions), *self._draw_goal(goal)]

    def frames(self, q: NDArray[np.float64]) -> list[tuple[str, Pose]]:
        """Link and pose of every body and output for q (nq,)."""
        picture = self._picture.move(q)
        return list(zip(self._links, picture.body_poses() + picture.output_poses(), strict=True))

    def _draw_solids(self) -> list[Drawing]:
        centres, quaternions = self._picture.solid_poses()
        edges, width = self._picture.block_edges().reshape(-1, 3), 0.5 * self._picture.sizes.tendon
        outlines = Drawing("edges", 0, "lines", (width, 0.0, 0.0), rgb(EDGE_COLOUR), edges)
        return [outlines] + [
            Drawing(
                solid.role, number, solid.kind, solid.size, rgb(COLOURS[solid.role]), NONE,
                opacity=OPACITY.get(solid.role, 1.0), position=centre, quaternion=quaternion,
            )
            for solid, number, centre, quaternion in zip(
                self._picture.solids, self._numbers, centres, quaternions, strict=True
            )
        ]  # fmt: skip

    def _draw_cables(self, tensions: NDArray[np.float64]) -> list[Drawing]:
        known = tensions[np.isfinite(tensions)]
        if known.size and known.max() > self._ceiling:
            self._ceiling = round_ceiling(1.1 * float(known.max()))
        slack = tensions <= SLACK_SHARE * self._ceiling
        colours = tension_colours(tensions, self._ceiling) / 255.0
        ends, wound, width = self._picture.cable_ends(), self._picture.wound(), 2.0 * self._picture.sizes.tendon
        tight, straight = np.flatnonzero(~slack), ends[~slack].reshape(-1, 3)
        # The wound part stays where it is when its cable is slack, in grey.
        rim_colours = np.where(slack[:, None], rgb(SLACK_COLOUR), colours)
        loose = dashes(ends.reshape(-1, 3), np.arange(2 * len(ends)).reshape(-1, 2)[slack]).reshape(-1, 3)
        return [
            Drawing(
                "cables", 0, "lines", (width, 0.0, 0.0), np.repeat(colours[tight], 2, axis=0), straight
            ),
            Drawing(
                "wound", 0, "lines", (width, 0.0, 0.0),
                np.repeat(rim_colours, 2 * wound.shape[1], axis=0), wound.reshape(-1, 3),
            ),
            Drawing("slack", 0, "lines", (0.75 * width, 0.0, 0.0), rgb(SLACK_COLOUR), loose),
        ]  # fmt: skip

    def _draw_goal(self, goal: Pose | None) -> list[Drawing]:
        sizes = self._picture.sizes
        place = NONE if goal is None else np.array(goal[0]).reshape(1, 3)
        return [
            draw_axes(goal, 0.1 * sizes.span, 1.5 * sizes.tendon),
            Drawing("goal", 1, "spheres", (4.0 * sizes.node,) * 3, rgb(GOAL_COLOUR), place, opacity=0.35),
        ]

    def _draw_ground(self) -> Drawing:
        """A plate under everything at the start."""
        picture = self._picture
        low, high = picture.outline.min(axis=0), picture.outline.max(axis=0)
        (x, y), reach = 0.5 * (low + high)[:2], 0.9 * picture.sizes.span
        z = min(0.0, low[2]) - 1e-3 * picture.sizes.span
        corners = np.array([[x + a * reach, y + b * reach, z] for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))])
        faces = corners[[0, 1, 2, 0, 2, 3]]
        return Drawing("ground", 0, "triangles", (1.0, 1.0, 1.0), rgb(PLATE_COLOUR), faces, opacity=0.25)


def _count_within(roles: tuple[str, ...]) -> list[int]:
    """A number for each, counting within its role."""
    return [roles[:k].count(role) for k, role in enumerate(roles)]
