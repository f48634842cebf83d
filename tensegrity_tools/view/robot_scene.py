"""Robot in the 3D scene of the browser, created once from its `Picture` and then only moved and coloured."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import viser
from numpy.typing import NDArray

from tensegrity_dynamics.robots.carried_payload import CarriedPayload
from tensegrity_dynamics.visualization.geometry import cylinders_between, dashes, outline
from tensegrity_dynamics.visualization.picture import LineSet, Picture, Snapshot
from tensegrity_dynamics.visualization.style import (
    CONTACT_COLOUR,
    EDGE_COLOUR,
    LOOKS,
    PAYLOAD_COLOUR,
    PLATE_COLOUR,
    REFUSED_COLOUR,
    SLACK_COLOUR,
    tension_colours,
)

from . import meshes
from .stage import set_up_stage

UNIT_EXTENTS = {"cylinder": (0.5, 0.5, 1.0), "box": (1.0, 1.0, 1.0), "sphere": (0.5, 0.5, 0.5)}
"""Scale factors to extents of 1 for each mesh: cylinder and ball have radius 1, a box has sides of 1."""
SHARP = ("box", "mesh")
"""Kinds of solids whose edges are not rounded by the shading."""


WIDE = 2.0
"""Width factor of tendons that limit a goal; their red colour alone is similar to that of high tensions."""
MOST_CORNERS = 8
"""Largest number of corners of the face on which a robot stands."""


class SolidBatch:
    """Solids of one kind and opacity as one batched mesh, moved by one message. Surfaces are moved one by one.

    Args:
        rows: (k,) indices of the solids in the picture.
    """

    def __init__(
        self, server: viser.ViserServer, name: str, picture: Picture, rows: NDArray[np.int64], start: Snapshot
    ) -> None:
        solids = [picture.solids[row] for row in rows]
        kind, opacity = solids[0].kind, LOOKS[solids[0].role].opacity
        self._rows = rows
        self._sizes = start.solid_sizes[rows]
        if (surface := solids[0].surface) is not None:
            mesh = surface.vertices, surface.triangles
            self._unit = 1.0 / np.where(self._sizes > 0.0, self._sizes, 1.0)
        else:
            make = {"cylinder": lambda: meshes.cylinder(40), "box": meshes.box, "sphere": lambda: meshes.ball(14, 24)}
            mesh = make[kind]()
            self._unit = np.array(UNIT_EXTENTS[kind])
        self._handle = server.scene.add_batched_meshes_simple(
            name,
            *mesh,
            batched_wxyzs=start.solid_quaternions[rows],
            batched_positions=start.solid_positions[rows],
            batched_scales=self._sizes * self._unit,
            batched_colors=np.array([LOOKS[solid.role].colour for solid in solids], dtype=np.uint8),
            opacity=None if opacity == 1.0 else opacity,
            flat_shading=kind in SHARP,
            cast_shadow=opacity == 1.0,
            lod="off",
        )

    def update(self, snapshot: Snapshot) -> None:
        """Move the solids, and scale those with variable length."""
        self._handle.batched_positions = snapshot.solid_positions[self._rows]
        self._handle.batched_wxyzs = snapshot.solid_quaternions[self._rows]
        sizes = snapshot.solid_sizes[self._rows]
        if not np.array_equal(sizes, self._sizes):
            self._sizes = sizes
            self._handle.batched_scales = sizes * self._unit


class LineBatch:
    """Lines of one set as one batched mesh of cylinders or coils."""

    def __init__(self, server: viser.ViserServer, lines: LineSet, points: NDArray[np.float64], wire: float) -> None:
        self.lines = lines
        centres, quaternions, lengths = cylinders_between(points[:, 0], points[:, 1])
        if lines.form == "coil":
            # One coil for all, scaled only along its axis, so that the wire thickness is nearly constant.
            self._length, self._radius = float(np.median(lengths)), 1.0
            mesh = meshes.coil(self._length, lines.radius, wire)
        else:
            self._length, self._radius = 1.0, lines.radius
            mesh = meshes.cylinder(10)
        self._handle = server.scene.add_batched_meshes_simple(
            f"/robot/{lines.name}",
            *mesh,
            batched_wxyzs=quaternions,
            batched_positions=centres,
            batched_scales=self._scales(lengths, np.zeros(len(points), dtype=np.bool_)),
            batched_colors=np.tile(np.array(SLACK_COLOUR, dtype=np.uint8), (len(points), 1)),
            lod="off",
        )

    def _scales(
        self, lengths: NDArray[np.float64], hidden: NDArray[np.bool_], wide: NDArray[np.bool_] | None = None
    ) -> NDArray[np.float64]:
        across = np.where(hidden, 0.0, self._radius)
        if wide is not None:
            across[wide] *= WIDE
        return np.column_stack((across, across, np.where(hidden, 0.0, lengths / self._length)))

    def update(
        self, points: NDArray[np.float64], colours: NDArray[np.uint8], hidden: NDArray[np.bool_],
        wide: NDArray[np.bool_],
    ) -> None:  # fmt: skip
        """Set end points (k, 2, 3) [m], colours (k, 3) from 0 to 255, and flags hidden and wide (k,), in the order of
        the set."""
        centres, quaternions, lengths = cylinders_between(points[:, 0], points[:, 1])
        self._handle.batched_positions = centres
        self._handle.batched_wxyzs = quaternions
        self._handle.batched_scales = self._scales(lengths, hidden, wide)
        self._handle.batched_colors = colours


class RobotScene:
    """Solids, lines, nodes, plates, output frame, names and ground of one robot.

    Args:
        server: viser server.
        picture: picture of any robot.

    Attributes:
        cell: size of a grid cell of the ground [m].
    """

    def __init__(self, server: viser.ViserServer, picture: Picture) -> None:
        self._server, self._picture, sizes = server, picture, picture.sizes
        self._snapshot = start = picture.at(picture.start)
        self.cell, self.grid = set_up_stage(server, picture.outline, sizes.span)
        groups: dict[tuple[str, float, int], list[int]] = {}
        for row, solid in enumerate(picture.solids):
            alone = -1 if solid.surface is None else row
            groups.setdefault((solid.kind, LOOKS[solid.role].opacity, alone), []).append(row)
        self._solids = [
            SolidBatch(server, f"/robot/solids/{k}", picture, np.array(rows), start)
            for k, rows in enumerate(groups.values())
        ]
        self._lines = [
            LineBatch(server, lines, points, 0.75 * sizes.tendon)
            for lines, points in zip(picture.line_sets, start.lines, strict=True)
        ]
        self._slack = server.scene.add_line_segments(
            "/robot/slack",
            np.zeros((1, 2, 3)),
            np.array(SLACK_COLOUR, dtype=np.uint8),
            thickness=1.6 * sizes.tendon,
            visible=False,
        )
        self._edges = self._add_edges(start)
        self._balls = self._add_balls(start)
        self._plates = self._add_plates(start)
        self._output = self._add_output(start)
        self._contacts = self._add_surface()
        self._face = self._add_face()
        self._labels: list[viser.LabelHandle] = []
        self._carried: tuple[CarriedPayload, ...] = ()
        self._payloads: list[viser.IcosphereHandle] = []

    def _add_edges(self, start: Snapshot) -> viser.LineSegmentsHandle | None:
        if not len(start.edges):
            return None
        return self._server.scene.add_line_segments(
            "/robot/edges",
            start.edges,
            np.array(EDGE_COLOUR, dtype=np.uint8),
            thickness=0.5 * self._picture.sizes.tendon,
        )

    def _add_balls(self, start: Snapshot) -> viser.BatchedMeshHandle | None:
        balls = self._picture.balls
        if balls is None:
            return None
        return self._server.scene.add_batched_meshes_simple(
            "/robot/nodes",
            *meshes.ball(),
            batched_wxyzs=np.tile([1.0, 0.0, 0.0, 0.0], (len(balls.radii), 1)),
            batched_positions=start.balls,
            batched_scales=balls.radii,
            batched_colors=balls.colours,
            lod="off",
        )

    def _add_plates(self, start: Snapshot) -> viser.MeshHandle | None:
        if not len(start.plates):
            return None
        return self._add_triangles("/robot/plates", start.plates, 0.45)

    def _add_triangles(self, name: str, corners: NDArray[np.float64], opacity: float) -> viser.MeshHandle:
        """Add translucent triangles (k, 3, 3) [m]."""
        return self._server.scene.add_mesh_simple(
            name, corners.reshape(-1, 3), np.arange(3 * len(corners)).reshape(-1, 3), color=PLATE_COLOUR,
            opacity=opacity, side="double", flat_shading=True, cast_shadow=False,
        )  # fmt: skip

    def _add_output(self, start: Snapshot) -> viser.FrameHandle | None:
        if start.output is None:
            return None
        sizes = self._picture.sizes
        return self._server.scene.add_frame(
            "/robot/output",
            axes_length=sizes.axes,
            axes_radius=sizes.axes_radius,
            origin_radius=2.0 * sizes.axes_radius,
            position=start.output[0],
            wxyz=start.output[1],
        )

    def _add_surface(self) -> viser.LineSegmentsHandle | None:
        """Add the ground on which the robot stands, and its contact forces."""
        picture = self._picture
        if picture.surface is None:
            return None
        surface = self._add_triangles("/surface", picture.surface, 0.35)
        surface.position = (0.0, 0.0, -1e-3 * picture.sizes.span)  # below the grid, which is in the same plane
        return self._server.scene.add_line_segments(
            "/robot/contacts",
            np.zeros((1, 2, 3)),
            np.array(CONTACT_COLOUR, dtype=np.uint8),
            thickness=2.5 * picture.sizes.tendon,
            visible=False,
        )

    def _add_face(self) -> viser.MeshHandle | None:
        """Add the face on which the robot stands."""
        if self._picture.surface is None:
            return None
        row = np.arange(1, MOST_CORNERS - 1)
        return self._server.scene.add_mesh_simple(
            "/robot/face", np.zeros((MOST_CORNERS, 3)), np.column_stack((np.zeros_like(row), row, row + 1)),
            color=CONTACT_COLOUR, opacity=0.35, side="double", flat_shading=True, cast_shadow=False, visible=False,
        )  # fmt: skip

    def follow(self, shift: NDArray[np.float64]) -> None:
        """Move the grid with the camera by whole sections, so that its lines keep their positions."""
        section = 5.0 * self.cell
        x, y = (float(section * np.round(value / section)) for value in shift[:2])
        if (x, y) != (self.grid.position[0], self.grid.position[1]):
            self.grid.position = (x, y, float(self.grid.position[2]))

    def update(
        self, snapshot: Snapshot, tensions: NDArray[np.float64], full_scale: float,
        contacts: NDArray[np.float64] | None = None, feet: NDArray[np.int64] | None = None,
        binding: Sequence[str] = (), payloads: Sequence[CarriedPayload] = (),
    ) -> None:  # fmt: skip
        """Show a snapshot and tensions (m,) [N], NaN where unknown, on a colour scale from 0 to `full_scale` [N].

        contacts: (k, 2, 3) [m], from `Picture.contact_lines`. feet: (k,) from `Picture.footing`. binding: names of
        tendons that limit a goal; they are drawn red and wider. payloads: payloads in addition to those of the robot
        file.
        """
        self._snapshot = snapshot
        if self._face is not None:
            corners = snapshot.label_positions[feet] if feet is not None else np.zeros((0, 3))
            if len(corners) > 2:
                # feet sink slightly into the ground; the face is drawn above it to be visible
                around = outline(corners)[:MOST_CORNERS] + [0.0, 0.0, 5e-3 * self._picture.sizes.span]
                self._face.vertices = np.concatenate((around, np.tile(around[-1], (MOST_CORNERS - len(around), 1))))
            self._face.visible = len(corners) > 2
        if self._contacts is not None and contacts is not None:
            if len(contacts):
                self._contacts.points = contacts
            self._contacts.visible = bool(len(contacts))
        for solids in self._solids:
            solids.update(snapshot)
        self._update_lines(snapshot, tensions, full_scale, binding)
        self._update_payloads(snapshot, payloads)
        if self._edges is not None:
            self._edges.points = snapshot.edges
        if self._balls is not None:
            self._balls.batched_positions = snapshot.balls
        if self._plates is not None:
            self._plates.vertices = snapshot.plates.reshape(-1, 3)
        if self._output is not None and snapshot.output is not None:
            self._output.position, self._output.wxyz = snapshot.output
        for label, position in zip(self._labels, snapshot.label_positions, strict=False):
            label.position = position

    def _update_lines(
        self, snapshot: Snapshot, tensions: NDArray[np.float64], full_scale: float, binding: Sequence[str]
    ) -> None:
        if not self._lines:
            return
        slack = self._picture.slack(tensions, full_scale)
        colours = tension_colours(tensions, full_scale)
        colours[slack] = SLACK_COLOUR
        # slackness is more important than a tendon that limits a goal
        stopping = np.isin(self._picture.tension_names, binding) & ~slack
        colours[stopping] = REFUSED_COLOUR
        loose = [np.zeros((0, 2, 3))]
        for batch, points in zip(self._lines, snapshot.lines, strict=True):
            rows = batch.lines.rows
            # A slack strand is dashed; a slack coil, and a cable on a pulley, is only drawn grey.
            hidden = slack[rows] & (batch.lines.form == "strand")
            loose.append(points[hidden])
            batch.update(points, colours[rows], hidden, stopping[rows] & (batch.lines.form == "strand"))
        dashed = dashes(np.concatenate(loose))
        if len(dashed):
            self._slack.points = dashed
        self._slack.visible = bool(len(dashed))

    def _update_payloads(self, snapshot: Snapshot, payloads: Sequence[CarriedPayload]) -> None:
        """Show each payload as a ball labelled with its mass; they are created again after a change."""
        balls = self._picture.payload_balls(snapshot, payloads)
        if tuple(payloads) != self._carried:
            self._carried = tuple(payloads)
            for old in self._payloads:
                old.remove()
            self._payloads = []
            for k, (each, centre, radius) in enumerate(balls):
                name = f"/robot/payloads/{k}"
                self._payloads.append(
                    self._server.scene.add_icosphere(name, radius, PAYLOAD_COLOUR, subdivisions=3, position=centre)
                )
                self._server.scene.add_label(f"{name}/mass", f"{each.mass:.3g} kg", font_screen_scale=0.8)
        for handle, (_, centre, _) in zip(self._payloads, balls, strict=True):
            handle.position = centre

    def show_names(self, visible: bool) -> None:
        """Show or hide the names of the parts of the robot."""
        if visible and not self._labels:
            named = zip(self._picture.label_names, self._snapshot.label_positions, strict=True)
            self._labels = [
                self._server.scene.add_label(f"/robot/names/{row}", name, position=position, font_screen_scale=0.8)
                for row, (name, position) in enumerate(named)
            ]
        for label in self._labels:
            label.visible = visible
