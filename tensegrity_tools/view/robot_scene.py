"""The robot in the browser's three-dimensional scene, made once and then only moved and coloured."""

from __future__ import annotations

import numpy as np
import viser
from numpy.typing import NDArray

from tensegrity_dynamics.robots.output_frame import Pose
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.visualization.structure_picture import (
    BAR_COLOUR,
    FIXED_COLOUR,
    PLATE_COLOUR,
    SLACK_COLOUR,
    Sizes,
    bar_triangles,
    dashes,
    place_cylinders,
    slack_members,
    tension_colours,
)

from . import meshes
from .stage import set_up_stage


class Cylinders:
    """Many cylinders (or coils) between nodes as one batched mesh: one message moves them all."""

    def __init__(
        self,
        server: viser.ViserServer,
        name: str,
        members: NDArray[np.int64],
        nodes: NDArray[np.float64],
        mesh: meshes.Mesh,
        radius: float,
        nominal: float,
        colour: tuple[int, int, int],
    ) -> None:
        self.members = members
        self._radius = radius
        self._nominal = nominal
        centres, quaternions, lengths = place_cylinders(nodes, members)
        self._handle = server.scene.add_batched_meshes_simple(
            name,
            *mesh,
            batched_wxyzs=quaternions,
            batched_positions=centres,
            batched_scales=self._scales(lengths, np.zeros(len(members), dtype=bool)),
            batched_colors=np.tile(np.array(colour, dtype=np.uint8), (len(members), 1)),
            lod="off",
        )

    def _scales(self, lengths: NDArray[np.float64], hidden: NDArray[np.bool_]) -> NDArray[np.float64]:
        across = np.where(hidden, 0.0, self._radius)
        return np.column_stack((across, across, np.where(hidden, 0.0, lengths / self._nominal)))

    def update(
        self,
        nodes: NDArray[np.float64],
        colours: NDArray[np.uint8] | None = None,
        hidden: NDArray[np.bool_] | None = None,
    ) -> None:
        """Move to the nodes (n, 3) m; colours (k, 3) and hidden (k,) are those of this batch's members."""
        centres, quaternions, lengths = place_cylinders(nodes, self.members)
        self._handle.batched_positions = centres
        self._handle.batched_wxyzs = quaternions
        self._handle.batched_scales = self._scales(
            lengths, np.zeros(len(self.members), dtype=bool) if hidden is None else hidden
        )
        if colours is not None:
            self._handle.batched_colors = colours


class RobotScene:
    """Bars, tendons, springs, nodes, plates, output frame and ground of one structure.

    Args:
        server: the viser server.
        robot: any robot whose model is a structure.
    """

    def __init__(self, server: viser.ViserServer, robot: Robot) -> None:
        structure = robot.structure
        self.robot = robot
        self.sizes = Sizes.of(structure)
        self._server = server
        nodes = np.array(structure.nodes)
        kinds = np.array(structure.kinds)
        self._rows = {kind: np.flatnonzero(kinds == kind) for kind in ("bar", "tendon", "spring")}
        self.cell = set_up_stage(server, nodes, self.sizes.span)
        self._batches = {kind: self._add_members(kind, rows, nodes) for kind, rows in self._rows.items() if rows.size}
        self._slack = server.scene.add_line_segments(
            "/robot/slack",
            dashes(nodes, structure.members[:1]),
            np.array(SLACK_COLOUR, dtype=np.uint8),
            thickness=1.6 * self.sizes.tendon,
            visible=False,
        )
        self._nodes = server.scene.add_batched_meshes_simple(
            "/robot/nodes",
            *meshes.ball(),
            batched_wxyzs=np.tile([1.0, 0.0, 0.0, 0.0], (len(nodes), 1)),
            batched_positions=nodes,
            batched_scales=np.where(structure.fixed, 1.25, 1.0) * self.sizes.node,
            batched_colors=np.where(structure.fixed[:, None], FIXED_COLOUR, BAR_COLOUR).astype(np.uint8),
            lod="off",
        )
        self._triangles = bar_triangles(structure)
        self._plates = self._add_plates(nodes)
        self._frame = None
        if robot.outputs:
            position, quaternion = robot.output.pose(nodes)
            self._frame = server.scene.add_frame(
                "/robot/output",
                axes_length=0.14 * self.sizes.span,
                axes_radius=0.6 * self.sizes.tendon,
                origin_radius=1.2 * self.sizes.tendon,
                position=position,
                wxyz=quaternion,
            )
        self._labels: list[viser.LabelHandle] = []
        self._last_nodes = nodes

    def _add_members(self, kind: str, rows: NDArray[np.int64], nodes: NDArray[np.float64]) -> Cylinders:
        structure, sizes = self.robot.structure, self.sizes
        members = structure.members[rows]
        if kind == "spring":
            # One coil for all: stretched along its axis only, so that its wire keeps about its thickness.
            nominal = float(np.median(np.linalg.norm(nodes[members[:, 0]] - nodes[members[:, 1]], axis=1)))
            mesh = meshes.coil(nominal, sizes.spring, 0.75 * sizes.tendon)
            return Cylinders(self._server, "/robot/springs", members, nodes, mesh, 1.0, nominal, SLACK_COLOUR)
        radius, colour = (sizes.bar, BAR_COLOUR) if kind == "bar" else (sizes.tendon, SLACK_COLOUR)
        mesh = meshes.cylinder(18 if kind == "bar" else 10)
        return Cylinders(self._server, f"/robot/{kind}s", members, nodes, mesh, radius, 1.0, colour)

    def _add_plates(self, nodes: NDArray[np.float64]) -> viser.MeshHandle | None:
        if not len(self._triangles):
            return None
        return self._server.scene.add_mesh_simple(
            "/robot/plates",
            nodes[self._triangles].reshape(-1, 3),
            np.arange(3 * len(self._triangles)).reshape(-1, 3),
            color=PLATE_COLOUR,
            opacity=0.45,
            side="double",
            flat_shading=True,
            cast_shadow=False,
        )

    def update(self, nodes: NDArray[np.float64], tensions: NDArray[np.float64], ceiling: float) -> None:
        """Show nodes (n, 3) m and tensions (m,) N, NaN where unknown, on a colour scale from 0 to ceiling [N]."""
        structure = self.robot.structure
        slack = slack_members(structure, tensions, ceiling)
        colours = tension_colours(tensions, ceiling)
        colours[slack] = SLACK_COLOUR
        for kind, batch in self._batches.items():
            rows = self._rows[kind]
            if kind == "bar":
                batch.update(nodes)
            else:
                # A slack tendon is dashed; a slack spring stays a coil, in grey.
                batch.update(nodes, colours[rows], slack[rows] if kind == "tendon" else None)
        loose = np.flatnonzero(slack & (np.array(structure.kinds) == "tendon"))
        if loose.size:
            self._slack.points = dashes(nodes, structure.members[loose])
        self._slack.visible = bool(loose.size)
        self._nodes.batched_positions = nodes
        if self._plates is not None:
            self._plates.vertices = nodes[self._triangles].reshape(-1, 3)
        if self._frame is not None:
            self._frame.position, self._frame.wxyz = self.robot.output.pose(nodes)
        for label, place in zip(self._labels, nodes, strict=False):
            label.position = place
        self._last_nodes = nodes

    def pose(self, nodes: NDArray[np.float64]) -> Pose | None:
        """Pose of the output for nodes (n, 3) m, None where there is no output."""
        return self.robot.output.pose(nodes) if self.robot.outputs else None

    def show_names(self, visible: bool) -> None:
        """Write the names beside the nodes, or take them away."""
        if visible and not self._labels:
            self._labels = [
                self._server.scene.add_label(f"/robot/names/{row}", name, position=place, font_screen_scale=0.8)
                for row, (name, place) in enumerate(zip(self.robot.structure.node_names, self._last_nodes, strict=True))
            ]
        for label in self._labels:
            label.visible = visible
