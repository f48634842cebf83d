"""Markers of a robot for RViz, created from its Picture: solids, lines with tension colours, nodes, ground and goal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..numerics.rotations import matrix_from_quaternion
from ..robots.carried_payload import CarriedPayload
from ..robots.output_frame import Pose
from .geometry import dashes, patch
from .marker import Marker
from .picture import LineSet, Picture, Snapshot, Solid, Surface
from .style import (
    CONTACT_COLOUR,
    EDGE_COLOUR,
    GOAL_COLOUR,
    LOOKS,
    PAYLOAD_COLOUR,
    PLATE_COLOUR,
    REFUSED_COLOUR,
    SLACK_COLOUR,
    TEXT_COLOUR,
    TRACE_COLOUR,
    Colour,
    round_up,
    tension_colours,
)

LINE_WIDTHS = {"strand": 2.0, "wound": 2.0, "coil": 1.2}  # relative to the radius; coils are thinner than in reality
GROUND_OPACITY, GOAL_OPACITY = 0.25, 0.35


class MarkerDrawer:
    """Creation of the markers of one robot for each snapshot. It stores the full scale of tension, which only
    increases.

    Args:
        picture: picture of the robot.
    """

    def __init__(self, picture: Picture) -> None:
        self._picture = picture
        self._full_scale = picture.smallest_full_scale
        self._payloads = 0  # largest number drawn so far
        roles = [solid.role for solid in picture.solids]
        self._numbers = [roles[:k].count(role) for k, role in enumerate(roles)]
        self._colours = [rgb(LOOKS[role].colour) for role in roles]

    def draw(
        self, snapshot: Snapshot, tensions: NDArray[np.float64], goal: Pose | None = None,
        contacts: NDArray[np.float64] | None = None, *, refused: Pose | None = None,
        trace: NDArray[np.float64] | None = None, words: str = "", payloads: Sequence[CarriedPayload] = (),
    ) -> list[Marker]:  # fmt: skip
        """All markers of a snapshot.

        Args:
            snapshot: from `Picture.at`.
            tensions: (m,) N in the order of `Picture.tension_names`, NaN if unknown.
            goal: last accepted goal, or None.
            contacts: (k, 2, 3) m, from `Picture.contact_lines`.
            refused: last goal if it was rejected, or None.
            trace: (k, 3) past positions of the output [m].
            words: text above the robot.
            payloads: payloads in addition to those of the robot file.
        """
        return [
            *self._draw_ground(),
            *self._draw_contacts(contacts),
            *self._draw_solids(snapshot),
            *self._draw_balls(snapshot),
            *self._draw_payloads(snapshot, payloads),
            *self._draw_lines(snapshot, tensions),
            *self._draw_goal("goal", goal, GOAL_COLOUR),
            *self._draw_goal("refused", refused, REFUSED_COLOUR),
            *self._draw_trace(trace),
            *self._draw_words(snapshot, words),
        ]

    def _draw_trace(self, trace: NDArray[np.float64] | None) -> list[Marker]:
        if trace is None:
            return []
        points = trace if len(trace) > 1 else np.zeros((0, 3))  # a line has two ends
        return [Marker("trace", 0, "strip", (self._picture.sizes.tendon, 0.0, 0.0), rgb(TRACE_COLOUR), points)]

    def _draw_words(self, snapshot: Snapshot, words: str) -> list[Marker]:
        """Text above the present position of the robot."""
        if not words:
            return []
        size = 0.06 * self._picture.sizes.span
        shown = [snapshot.label_positions, snapshot.solid_positions, self._picture.outline[:1]]
        points = next((each for each in shown if len(each)), np.zeros((1, 3)))
        above = np.array([*points[:, :2].mean(axis=0), points[:, 2].max() + 2.5 * size])
        return [
            Marker(
                "text", 0, "text", (0.0, 0.0, size), rgb(TEXT_COLOUR), position=above,
                quaternion=np.array([1.0, 0.0, 0.0, 0.0]), text=words,
            )
        ]  # fmt: skip

    def _draw_contacts(self, contacts: NDArray[np.float64] | None) -> list[Marker]:
        """Contact forces of a robot on a ground; without contact, lines of zero length replace the previous ones."""
        if self._picture.surface is None:
            return []
        points = np.zeros((0, 3)) if contacts is None else contacts.reshape(-1, 3)
        return [
            Marker("contacts", 0, "lines", (2.0 * self._picture.sizes.tendon, 0.0, 0.0), rgb(CONTACT_COLOUR), points)
        ]

    def _draw_ground(self) -> list[Marker]:
        if self._picture.surface is not None:
            faces = self._picture.surface.reshape(-1, 3)
            return [Marker("ground", 0, "triangles", (1.0, 1.0, 1.0), rgb(PLATE_COLOUR), faces, opacity=GROUND_OPACITY)]
        corners = self._picture.ground
        if corners is None:
            return []
        scale, faces = (1.0, 1.0, 1.0), corners[[0, 1, 2, 0, 2, 3]]
        return [Marker("ground", 0, "triangles", scale, rgb(PLATE_COLOUR), faces, opacity=GROUND_OPACITY)]

    def _draw_solids(self, snapshot: Snapshot) -> list[Marker]:
        markers = []
        if len(snapshot.edges):
            width = 0.5 * self._picture.sizes.tendon
            edges = snapshot.edges.reshape(-1, 3)
            markers.append(Marker("edges", 0, "lines", (width, 0.0, 0.0), rgb(EDGE_COLOUR), edges))
        poses = zip(
            snapshot.solid_sizes.tolist(), snapshot.solid_positions, snapshot.solid_quaternions, strict=True
        )  # fmt: skip
        for solid, number, colour, (size, position, quaternion) in zip(
            self._picture.solids, self._numbers, self._colours, poses, strict=True
        ):
            opacity = LOOKS[solid.role].opacity
            if solid.surface is not None:
                markers.append(_draw_mesh(solid, solid.surface, number, colour, opacity, position, quaternion))
                continue
            markers.append(
                Marker(
                    solid.role, number, solid.kind, (size[0], size[1], size[2]), colour, opacity=opacity,
                    position=position, quaternion=quaternion,
                )
            )  # fmt: skip
        return markers

    def _draw_balls(self, snapshot: Snapshot) -> list[Marker]:
        balls = self._picture.balls
        if balls is None:
            return []
        width = 2.0 * self._picture.sizes.node  # a sphere list has one width for all spheres
        return [Marker("nodes", 0, "spheres", (width, width, width), balls.colours / 255.0, snapshot.balls)]

    def _draw_payloads(self, snapshot: Snapshot, payloads: Sequence[CarriedPayload]) -> list[Marker]:
        """One sphere for each payload; those of removed payloads are deleted."""
        markers = [
            Marker(
                "payloads", k, "sphere", (2.0 * radius, 2.0 * radius, 2.0 * radius), rgb(PAYLOAD_COLOUR),
                position=centre, quaternion=np.array([1.0, 0.0, 0.0, 0.0]),
            )
            for k, (_, centre, radius) in enumerate(self._picture.payload_balls(snapshot, payloads))
        ]  # fmt: skip
        self._payloads = max(self._payloads, len(markers))
        gone = range(len(markers), self._payloads)
        return [*markers, *(Marker("payloads", k, "sphere", (0.0, 0.0, 0.0), rgb(PAYLOAD_COLOUR)) for k in gone)]

    def _draw_lines(self, snapshot: Snapshot, tensions: NDArray[np.float64]) -> list[Marker]:
        picture = self._picture
        if not picture.line_sets:
            return []
        finite = tensions[picture.unilateral & np.isfinite(tensions)]
        if finite.size and finite.max() > self._full_scale:
            self._full_scale = round_up(1.1 * float(finite.max()))
        slack = picture.slack(tensions, self._full_scale)
        colours = np.where(slack[:, None], rgb(SLACK_COLOUR), tension_colours(tensions, self._full_scale) / 255.0)
        markers, loose = [], [np.zeros((0, 2, 3))]
        for lines, points in zip(picture.line_sets, snapshot.lines, strict=True):
            shown = np.full(len(lines.rows), True)
            if lines.form != "wound":  # the wound part of a cable stays on its pulley also when the cable is slack
                shown = ~slack[lines.rows]
                loose.append(points[~shown])
            markers.append(_draw_line_set(lines, points[shown], colours[lines.rows[shown]]))
        width, dashed = 1.5 * picture.sizes.tendon, dashes(np.concatenate(loose)).reshape(-1, 3)
        return [*markers, Marker("slack", 0, "lines", (width, 0.0, 0.0), rgb(SLACK_COLOUR), dashed)]

    def _draw_goal(self, name: str, goal: Pose | None, colour: Colour) -> list[Marker]:
        """Axes in red, green and blue, and a patch or a sphere; both are deleted without a goal."""
        corners, sizes = self._picture.goal_corners, self._picture.sizes
        if not len(corners):
            return []
        axes, points = np.zeros((0, 3)), np.zeros((0, 3))
        if goal is not None:
            rotation = matrix_from_quaternion(goal[1])
            axes = np.stack((np.tile(goal[0], (3, 1)), goal[0] + sizes.axes * rotation.T), axis=1).reshape(-1, 3)
            points = goal[0] + corners @ rotation.T
        kind, scale = "spheres", (4.0 * sizes.node,) * 3
        if len(corners) >= 3:
            kind, scale = "triangles", (1.0, 1.0, 1.0)
            if goal is not None:
                vertices, triangles = patch(points)
                points = vertices[np.concatenate((triangles, triangles[:, ::-1]))].reshape(-1, 3)  # both faces
        axes_colours = np.repeat(np.eye(3), 2, axis=0)[: len(axes)]
        return [
            Marker(name, 0, "lines", (1.5 * sizes.tendon, 0.0, 0.0), axes_colours, axes),
            Marker(name, 1, kind, scale, rgb(colour), points, opacity=GOAL_OPACITY),
        ]


def _draw_mesh(
    solid: Solid, surface: Surface, number: int, colour: NDArray[np.float64], opacity: float,
    position: NDArray[np.float64], quaternion: NDArray[np.float64],
) -> Marker:  # fmt: skip
    """Marker of a mesh: by the address of its file, or by its triangles without a file."""
    if not surface.uri:
        points = surface.vertices[surface.triangles].reshape(-1, 3)
        return Marker(
            solid.role, number, "triangles", (1.0, 1.0, 1.0), colour, points, opacity=opacity, position=position,
            quaternion=quaternion,
        )  # fmt: skip
    origin = position + matrix_from_quaternion(quaternion) @ surface.origin
    return Marker(
        solid.role, number, "mesh", (surface.scale,) * 3, colour, opacity=opacity, position=origin,
        quaternion=quaternion, resource=surface.uri,
    )  # fmt: skip


def _draw_line_set(lines: LineSet, points: NDArray[np.float64], colours: NDArray[np.float64]) -> Marker:
    width = LINE_WIDTHS[lines.form] * lines.radius
    return Marker(
        lines.name, 0, "lines", (width, 0.0, 0.0), np.repeat(colours, 2, axis=0), points.reshape(-1, 3)
    )  # fmt: skip


def rgb(colour: Colour) -> NDArray[np.float64]:
    """(3,) colour from 0 to 1, from a colour from 0 to 255."""
    return np.array(colour) / 255.0
