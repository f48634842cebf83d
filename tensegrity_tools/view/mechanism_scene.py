"""A mechanism in the browser's three-dimensional scene: solids made once and then only moved, cables coloured."""

from __future__ import annotations

import numpy as np
import viser
from numpy.typing import NDArray

from tensegrity_dynamics.robots.output_frame import Pose
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.visualization.mechanism_picture import COLOURS, EDGE_COLOUR, OPACITY, MechanismPicture
from tensegrity_dynamics.visualization.structure_picture import SLACK_COLOUR, SLACK_SHARE, dashes, tension_colours

from . import meshes
from .robot_scene import Cylinders
from .stage import set_up_stage

NAMED = ("bodies", "rods", "points")  # blocks and pulleys are known by their cables


class Solids:
    """Solids of one form as one batched mesh: one message moves them all."""

    def __init__(
        self,
        server: viser.ViserServer,
        name: str,
        kind: str,
        opacity: float,
        picture: MechanismPicture,
        rows: list[int],
    ) -> None:
        self._rows = np.array(rows)
        solids = [picture.solids[row] for row in rows]
        sizes = np.array([solid.size for solid in solids])
        mesh = {"cylinder": lambda: meshes.cylinder(40), "box": meshes.box, "sphere": lambda: meshes.ball(14, 24)}[
            kind
        ]()
        # Cylinder and ball have radius 1, a box has sides of 1.
        scales = sizes * {"cylinder": (0.5, 0.5, 1.0), "box": (1.0, 1.0, 1.0), "sphere": (0.5, 0.5, 0.5)}[kind]
        centres, quaternions = picture.solid_poses()
        self._handle = server.scene.add_batched_meshes_simple(
            name,
            *mesh,
            batched_wxyzs=quaternions[self._rows],
            batched_positions=centres[self._rows],
            batched_scales=scales,
            batched_colors=np.array([COLOURS[solid.role] for solid in solids], dtype=np.uint8),
            opacity=None if opacity == 1.0 else opacity,
            flat_shading=kind == "box",
            cast_shadow=opacity == 1.0,
            lod="off",
        )

    def update(self, centres: NDArray[np.float64], quaternions: NDArray[np.float64]) -> None:
        """Move to centres (s, 3) m and quaternions wxyz (s, 4) of all solids of the picture."""
        self._handle.batched_positions = centres[self._rows]
        self._handle.batched_wxyzs = quaternions[self._rows]


class MechanismScene:
    """Bodies, blocks, pulleys, cables, output frame and ground of one mechanism.

    Args:
        server: the viser server.
        robot: any robot whose model is a mechanism.
    """

    def __init__(self, server: viser.ViserServer, robot: Robot) -> None:
        self.robot = robot
        self._server = server
        self._picture = picture = MechanismPicture(robot)
        self.sizes = picture.sizes
        self.cell = set_up_stage(server, picture.outline, self.sizes.span)
        groups: dict[tuple[str, float], list[int]] = {}
        for row, solid in enumerate(picture.solids):
            groups.setdefault((solid.kind, OPACITY.get(solid.role, 1.0)), []).append(row)
        self._solids = [
            Solids(server, f"/robot/solids/{number}", kind, opacity, picture, rows)
            for number, ((kind, opacity), rows) in enumerate(groups.items())
        ]
        self._cables, self._wound = self._add_cables()
        edges = picture.block_edges()
        self._edges = None
        if len(edges):
            self._edges = server.scene.add_line_segments(
                "/robot/edges", edges, np.array(EDGE_COLOUR, dtype=np.uint8), thickness=0.5 * self.sizes.tendon
            )
        self._slack = server.scene.add_line_segments(
            "/robot/slack",
            np.zeros((1, 2, 3)),
            np.array(SLACK_COLOUR, dtype=np.uint8),
            thickness=1.6 * self.sizes.tendon,
            visible=False,
        )
        self._frame = None
        if robot.outputs:
            position, quaternion = picture.output_poses()[0]
            self._frame = server.scene.add_frame(
                "/robot/output",
                axes_length=0.09 * self.sizes.span,
                axes_radius=0.9 * self.sizes.tendon,
                origin_radius=2.0 * self.sizes.tendon,
                position=position,
                wxyz=quaternion,
            )
        self._labels: list[viser.LabelHandle] = []

    def _add_cables(self) -> tuple[Cylinders | None, Cylinders | None]:
        """The straight part of every cable, and the part that is wound on its pulley."""
        made: list[Cylinders | None] = []
        for name, paths in (("cables", self._picture.cable_ends()), ("wound", self._picture.wound())):
            if not len(paths):
                made.append(None)
                continue
            points = paths.reshape(-1, 3)
            members = np.arange(len(points)).reshape(-1, 2)
            made.append(
                Cylinders(
                    self._server, f"/robot/{name}", members, points, meshes.cylinder(10), self.sizes.tendon, 1.0,
                    SLACK_COLOUR,
                )
            )  # fmt: skip
        return made[0], made[1]

    def update(self, q: NDArray[np.float64], tensions: NDArray[np.float64], ceiling: float) -> None:
        """Show q (nq,) and tensions (c,) N, NaN where unknown, on a colour scale from 0 to ceiling [N]."""
        picture = self._picture.move(q)
        poses = picture.solid_poses()
        for solids in self._solids:
            solids.update(*poses)
        if self._edges is not None:
            self._edges.points = picture.block_edges()
        if self._cables is not None and self._wound is not None:
            slack = tensions <= SLACK_SHARE * ceiling
            colours = tension_colours(tensions, ceiling)
            colours[slack] = SLACK_COLOUR
            ends, wound = picture.cable_ends(), picture.wound()
            self._cables.update(ends.reshape(-1, 3), colours, slack)
            self._wound.update(wound.reshape(-1, 3), np.repeat(colours, wound.shape[1], axis=0))
            if slack.any():
                self._slack.points = dashes(ends[slack].reshape(-1, 3), np.arange(2 * slack.sum()).reshape(-1, 2))
            self._slack.visible = bool(slack.any())
        if self._frame is not None:
            self._frame.position, self._frame.wxyz = picture.output_poses()[0]
        for label, (_, place) in zip(self._labels, self._named(), strict=False):
            label.position = place

    def pose(self, q: NDArray[np.float64]) -> Pose | None:
        """Pose of the output for q (nq,), None where there is no output."""
        return self._picture.move(q).output_poses()[0] if self.robot.outputs else None

    def show_names(self, visible: bool) -> None:
        """Write the names beside bodies and cables, or take them away."""
        if visible and not self._labels:
            self._labels = [
                self._server.scene.add_label(f"/robot/names/{row}", name, position=place, font_screen_scale=0.8)
                for row, (name, place) in enumerate(self._named())
            ]
        for label in self._labels:
            label.visible = visible

    def _named(self) -> list[tuple[str, NDArray[np.float64]]]:
        """Names with their places: each body that is seen at its first solid, each cable at its middle."""
        picture = self._picture
        centres, _ = picture.solid_poses()
        names = picture.model.body_names
        places: dict[str, NDArray[np.float64]] = {}
        for solid, centre in zip(picture.solids, centres, strict=True):
            if solid.role in NAMED and solid.body >= 0:
                places.setdefault(names[solid.body], centre)
        middles = picture.cable_ends().mean(axis=1)
        return [*places.items(), *zip(picture.model.cable_names, middles, strict=True)]
