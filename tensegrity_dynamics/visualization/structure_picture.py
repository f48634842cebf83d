"""Picture of a structure: bars as cylinders between nodes, tendons and springs as lines, nodes as spheres."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..contact.ground_forces import flatten, point_force
from ..robots.output_frame import Pose
from ..robots.robot import Robot
from ..structures.structure import Structure
from .geometry import cylinders_between, ground_surface
from .picture import Balls, LineSet, Link, Picture, Snapshot, Solid, with_frame_names
from .style import BAR_COLOUR, FIXED_COLOUR, Sizes, smallest_full_scale

FLAT = 1e-3
"""Thickness of a set of points relative to its size, below which it counts as a flat plate."""
FOOTING = 0.02
"""Least fraction of the weight on a node that counts as a foot."""


class StructurePicture(Picture):
    """Picture of a robot whose model is a structure; a configuration is its node positions (n, 3) [m].

    Each bar is a link with its frame at the middle and z from its first to its second node.

    Args:
        robot: robot with a structure as its model. TensegrityError for others.
    """

    def __init__(self, robot: Robot) -> None:
        structure = robot.structure
        kinds = np.array(structure.kinds)
        bars = np.flatnonzero(kinds == "bar")
        self.name = robot.name
        self.start = np.array(structure.nodes)
        self.sizes = sizes = find_sizes(structure)
        self.links = with_frame_names(
            [
                *(_bar_link(structure, int(row), sizes.bar) for row in bars),
                *(Link(each.name, still=bool(structure.fixed[each.nodes].all())) for each in robot.outputs),
            ]
        )
        self.solids = tuple(
            Solid(k, "bars", "cylinder", (2.0 * sizes.bar, 2.0 * sizes.bar, float(structure.rest_lengths[row])))
            for k, row in enumerate(bars)
        )
        sets = (("tendon", "strand", sizes.tendon), ("spring", "coil", sizes.spring))
        self.line_sets = tuple(
            LineSet(f"{kind}s", np.flatnonzero(kinds == kind), form, radius)
            for kind, form, radius in sets
            if np.any(kinds == kind)
        )
        # an axis held for all nodes, as in a planar structure, is not displayed as a support
        held = structure.fixed | (structure.supports & ~structure.supports.all(axis=0)).any(axis=1)
        self.balls = Balls(
            np.where(held, 1.25, 1.0) * sizes.node,
            np.where(held[:, None], FIXED_COLOUR, BAR_COLOUR).astype(np.uint8),
        )
        self.tension_names = structure.member_names
        self.unilateral = structure.unilateral
        self.plotted = robot.actuated_members() if robot.actuators else np.flatnonzero(structure.unilateral)
        axial_stiffness = structure.stiffness * structure.rest_lengths
        self.smallest_full_scale = smallest_full_scale(axial_stiffness[structure.unilateral])
        self.outline = self.start
        self.goal_corners = _goal_corners(robot)
        self.has_orientation = bool(robot.outputs) and len(robot.output.nodes) > 1
        self.goal_sets_orientation = any("r" in axis for output in robot.outputs[:1] for axis in output.controlled)
        self.label_kind, self.label_names = "nodes", structure.node_names
        self._outputs = robot.outputs
        self._bars = structure.members[bars]
        self._lines = [structure.members[each.rows] for each in self.line_sets]
        self._plates = bar_triangles(structure)
        self._structure, self._ground = structure, flatten(structure.ground)
        if structure.ground is not None:
            self.surface = ground_surface(structure.ground, self.start, sizes.span)
        weight = float(np.linalg.norm(structure.weights().sum(axis=0)))
        # a third of the weight, as on one of three feet, has a quarter of the length of the robot
        self.metres_per_newton = 0.75 * sizes.span / weight if weight > 0.0 else 0.0
        self._bar_sizes = np.array([solid.size for solid in self.solids]).reshape(-1, 3)

    def at(self, nodes: NDArray[np.float64]) -> Snapshot:
        """Snapshot of the structure with nodes (n, 3) [m]."""
        nodes = np.asarray(nodes, dtype=np.float64)
        positions, quaternions, lengths = cylinders_between(nodes[self._bars[:, 0]], nodes[self._bars[:, 1]])
        sizes = self._bar_sizes.copy()
        sizes[:, 2] = lengths
        outputs = [output.pose(nodes) for output in self._outputs]
        return Snapshot(
            solid_positions=positions,
            solid_quaternions=quaternions,
            solid_sizes=sizes,
            lines=tuple(nodes[members] for members in self._lines),
            link_poses=[*zip(positions, quaternions, strict=True), *outputs],
            output=outputs[0] if outputs else None,
            label_positions=nodes,
            balls=nodes,
            plates=nodes[self._plates],
        )

    def contact_lines(
        self, nodes: NDArray[np.float64], velocities: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """See `Picture`; velocities (n, 3) [m/s] determine damping and friction and are zero by default."""
        if self._structure.ground is None:
            return np.zeros((0, 2, 3))
        nodes = np.asarray(nodes, dtype=np.float64)
        moving = np.zeros_like(nodes) if velocities is None else np.asarray(velocities, dtype=np.float64)
        away, force, out, lines = np.zeros(3), np.zeros(3), np.zeros(6), []
        for i in np.flatnonzero(~self._structure.fixed):
            if point_force(self._ground, nodes[i, 0], nodes[i, 1], nodes[i, 2], moving[i], 0.0, away, force, out):
                lines.append((nodes[i], nodes[i] + self.metres_per_newton * force))
        return np.array(lines).reshape(-1, 2, 3)

    def footing(self, nodes: NDArray[np.float64], contacts: NDArray[np.float64]) -> NDArray[np.int64]:
        """See `Picture`; nodes that carry a significant fraction of the weight."""
        if not len(contacts):
            return np.zeros(0, dtype=np.int64)
        long = np.linalg.norm(contacts[:, 1] - contacts[:, 0], axis=1) > FOOTING * self.sizes.span
        feet = contacts[long, 0]
        rows = [int(np.argmin(np.linalg.norm(np.asarray(nodes) - foot, axis=1))) for foot in feet]
        return np.array(sorted(rows), dtype=np.int64)

    def carrier_pose(self, snapshot: Snapshot, name: str) -> Pose | None:
        """See `Picture`; the carrier is a node."""
        if name not in self.label_names:
            return None
        return snapshot.balls[self.label_names.index(name)], np.array([1.0, 0.0, 0.0, 0.0])

    def problem(self, nodes: NDArray[np.float64]) -> str | None:
        """Reason why node positions cannot be displayed, or None."""
        nodes = np.asarray(nodes)
        if nodes.shape != self.start.shape:
            return f"node positions have shape {nodes.shape}, this robot needs {self.start.shape}"
        if not np.all(np.isfinite(nodes)):
            row = int(np.argwhere(~np.isfinite(nodes))[0][0])
            return f"the position of node {self.label_names[row]} is not finite"
        return None


def find_sizes(structure: Structure) -> Sizes:
    """Sizes from the longest member, so that small and large robots look similar; many members are drawn thinner."""
    lengths = structure.rest_lengths
    longest, shortest = (float(lengths.max()), float(lengths.min())) if lengths.size else (1.0, 1.0)
    box = np.ptp(structure.nodes, axis=0) if structure.nodes.size else np.ones(3)
    span = max(float(np.linalg.norm(box)), longest)
    unit = min(longest, 3.0 * shortest)
    return Sizes(
        span=span,
        bar=0.016 * unit,
        tendon=0.0055 * unit,
        spring=0.017 * unit,
        node=0.023 * unit,
        axes=0.14 * span,
        axes_radius=0.6 * 0.0055 * unit,
    )


def bar_triangles(structure: Structure) -> NDArray[np.int64]:
    """(t, 3) node indices of the triangles whose three sides are bars; they are drawn as plates."""
    neighbours: dict[int, set[int]] = {}
    for row in np.flatnonzero(~structure.unilateral):
        i, j = (int(k) for k in structure.members[row])
        neighbours.setdefault(i, set()).add(j)
        neighbours.setdefault(j, set()).add(i)
    triangles = [
        (i, j, k)
        for i in sorted(neighbours)
        for j in sorted(neighbours[i])
        for k in sorted(neighbours[i] & neighbours[j])
        if i < j < k
    ]
    return np.array(triangles, dtype=np.int64).reshape(-1, 3)


def _goal_corners(robot: Robot) -> NDArray[np.float64]:
    """Points of the output if they form a flat plate and goals set the orientation; else a sphere at its origin."""
    if not robot.outputs:
        return np.zeros((0, 3))
    points = np.asarray(robot.output.points, dtype=np.float64)
    turned = any("r" in axis for axis in robot.output.controlled)
    size = float(np.abs(points - points.mean(axis=0)).max()) if len(points) >= 3 else 0.0
    flat = size > 0.0 and np.linalg.svd(points - points.mean(axis=0), compute_uv=False)[2] < FLAT * size
    return points if turned and flat else np.zeros((1, 3))


def _bar_link(structure: Structure, row: int, radius: float) -> Link:
    mass, length = float(structure.masses[row]), float(structure.rest_lengths[row])
    # Half of the mass sits at each end, as in the simulation; along its axis a solid cylinder of the shown radius.
    across, along = 0.25 * mass * length**2, 0.5 * mass * radius**2
    still = bool(structure.fixed[structure.members[row]].all())
    return Link(structure.member_names[row], mass, inertia=np.diag([across, across, along]), still=still)
