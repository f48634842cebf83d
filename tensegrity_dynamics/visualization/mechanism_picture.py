"""Picture of a mechanism: its solids, and its cables from pulley to anchor.

Bodies are displayed with their primitives. A body without extent (a point mass, a massless leg) is displayed with thin
rods from its joint to the attachment points of other bodies. Auxiliary bodies with all attachments in one point are not
displayed. A wound cable is drawn on the rim of its pulley or on its drum, up to its exit point, and marks show the
rotation of pulleys and drums.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ..mechanisms.body_mesh import BodyMesh
from ..mechanisms.body_poses import BodyPoses
from ..mechanisms.cable_routing import CableEntry
from ..mechanisms.contact_readings import contacts_at
from ..mechanisms.loads import Payload
from ..mechanisms.mechanism import WORLD, Body, Joint, loaded_inertia
from ..mechanisms.mechanism_model import MechanismModel
from ..mechanisms.primitives import Primitive
from ..mechanisms.route_readings import ARC_PIECES, drum_ends
from ..mechanisms.routing.route import RoutePoint
from ..mechanisms.workspace import make_workspace
from ..meshes.mesh_file import PACKAGE
from ..numerics.rotations import matrix_from_quaternion
from ..robots.output_frame import Pose
from ..robots.robot import Robot
from .geometry import OUTLINES, box_edges, cylinders_between, ground_surface
from .picture import LineSet, Link, Picture, Snapshot, Solid, Surface, with_frame_names
from .style import Sizes, smallest_full_scale

ARC_STEPS = 36  # number of straight segments of the cable wound on a pulley
FULL_TURN = 0.98 * 2.0 * np.pi  # rad; further turns would coincide with the first one
LABELLED = ("bodies", "rods", "points")  # roles; blocks and pulleys are identified by the names of their cables


class MechanismPicture(Picture):
    """Picture of a robot whose model is a mechanism; a configuration is its position q (nq,).

    Each body is a link with its own frame. It keeps work arrays: use one per thread.

    Args:
        robot: robot with a mechanism as its model. TensegrityError for others.
    """

    def __init__(self, robot: Robot) -> None:
        self.model = model = robot.model_as(MechanismModel)
        self._outputs = robot.outputs
        self._poses = BodyPoses(model)
        self._index = model.mechanism.body_index
        self._radii = np.array([entry.radius for entry in model.entries])
        self._longest = np.array([entry.longest for entry in model.entries])
        self._pulleys = np.array([self._index[f"{name}-pulley"] for name in model.cable_names], dtype=np.int64)
        bodies = {body.name: body for body in model.mechanism.bodies}
        self.name = robot.name
        self.start = np.array(model.start)
        self.sizes = self._find_sizes()
        still = _still_bodies(model)
        self.links = with_frame_names(
            [
                *(_body_link(bodies[name], model.mechanism.payloads, name in still) for name in model.body_names),
                *(Link(output.name, still=output.body in still) for output in robot.outputs),
            ]
        )
        limits = {model.joint_of(each.drives): each.position for each in robot.actuators}
        self._discs: list[Solid | None] = []  # of the drums
        self.solids = tuple(self._list_solids(bodies, limits))
        self._drums = [-1 if disc is None else self.solids.index(disc) for disc in self._discs]
        cables = np.arange(len(model.entries))
        self.line_sets = (
            (
                LineSet("cables", cables, "strand", self.sizes.tendon),
                LineSet("wound", np.repeat(cables, ARC_STEPS), "wound", self.sizes.tendon),
            )
            if cables.size
            else ()
        )
        self.tension_names = model.tension_names
        routed = [len(line) - 1 for line in self._poses.update(self.start).routes()]
        if routed:
            rows = len(cables) + np.repeat(np.arange(len(routed)), routed)
            self.line_sets += (LineSet("routed", rows, "strand", self.sizes.tendon),)
        if self._drums:
            drums = [len(cables) + k for k, route in enumerate(model.mechanism.routes) for _ in drum_ends(route)]
            self.line_sets += (LineSet("drums", np.repeat(drums, ARC_PIECES), "wound", self.sizes.tendon),)
        self.unilateral = np.ones(len(self.tension_names), dtype=np.bool_)
        driven = {each.drives for each in robot.actuators}
        plotted = [row for row, name in enumerate(model.cable_names) if name in driven]
        every = np.arange(len(self.tension_names))
        self.plotted = np.array([*plotted, *every[len(cables) :]] if plotted else every, dtype=np.int64)
        self.smallest_full_scale = smallest_full_scale(
            [
                *(entry.young * np.pi * entry.cable_radius**2 for entry in model.entries),
                *(route.stiffness for route in model.routes if not route.rigid),
            ]
        )
        self.has_orientation = bool(robot.outputs)
        self.goal_sets_orientation = any("r" in axis for output in robot.outputs[:1] for axis in output.controlled)
        self.goal_corners = np.zeros((len(robot.outputs[:1]), 3))
        self._solid_links = np.array([solid.link for solid in self.solids], dtype=np.int64)
        self._solid_sizes = np.array([solid.size for solid in self.solids]).reshape(-1, 3)
        self._solid_positions = np.array([solid.position for solid in self.solids]).reshape(-1, 3)
        self._solid_axes = np.array([solid.axes for solid in self.solids]).reshape(-1, 3, 3)
        self._blocks = [k for k, solid in enumerate(self.solids) if solid.role == "blocks" and solid.kind == "box"]
        self.label_kind = "bodies and cables"
        labelled: dict[str, int] = {}
        for k, solid in enumerate(self.solids):
            if solid.role in LABELLED and solid.link >= 0:
                labelled.setdefault(model.body_names[solid.link], k)
        self._labelled = list(labelled.values())
        self.label_names = (*labelled, *model.tension_names)
        start = self.at(self.start)
        self.outline = self._find_outline(start)
        self._contact_work = make_workspace(model.mechanism.flat)
        ground, flat = model.mechanism.ground, model.mechanism.flat
        weight = float(flat.mass.sum() * np.linalg.norm(flat.gravity))
        self.metres_per_newton = 0.75 * self.sizes.span / weight if weight > 0.0 else 0.0
        if ground is None:
            self.ground = self._find_ground()
            return
        self.surface = ground_surface(ground, self.outline, self.sizes.span)

    def at(self, q: NDArray[np.float64]) -> Snapshot:
        """Snapshot of the mechanism at q (nq,); open loops are allowed."""
        from scipy.spatial.transform import Rotation  # imported here to keep the package import fast

        poses = self._poses.update(q)
        # The world is the last row, so that index -1 finds it.
        origins = np.vstack((poses.positions, np.zeros(3)))[self._solid_links]
        rotations = np.concatenate((poses.rotations, np.eye(3)[None]))[self._solid_links]
        positions = origins + np.einsum("sij,sj->si", rotations, self._solid_positions)
        axes = rotations @ self._solid_axes
        quaternions = Rotation.from_matrix(axes).as_quat()[:, [3, 0, 1, 2]] if len(axes) else np.zeros((0, 4))
        cables, routes = poses.cables(), poses.routes()
        lines: tuple[NDArray[np.float64], ...] = (cables, self._wound(cables)) if len(cables) else ()
        if routes:
            lines += (np.vstack([np.stack((each[:-1], each[1:]), axis=1) for each in routes]),)
        sizes = self._solid_sizes
        if self._drums:
            rims, radii = poses.drums(FULL_TURN)
            lines += (np.stack((rims[:, :-1], rims[:, 1:]), axis=2).reshape(-1, 2, 3),)
            sizes = sizes.copy()
            for row, radius in zip(self._drums, radii, strict=True):
                if row >= 0:  # radius including the layers below the cable
                    sizes[row, :2] = 2.0 * max(radius - self.sizes.tendon, 0.0)
        labels = [positions[self._labelled], cables.mean(axis=1), *(each.mean(axis=0)[None] for each in routes)]
        outputs = [poses.output(each)[0] for each in self._outputs]
        edges = [box_edges(positions[k], axes[k], self._solid_sizes[k]) for k in self._blocks]
        return Snapshot(
            solid_positions=positions,
            solid_quaternions=quaternions,
            solid_sizes=sizes,
            lines=lines,
            link_poses=[*zip(poses.positions, poses.quaternions, strict=True), *outputs],
            output=outputs[0] if outputs else None,
            label_positions=np.vstack(labels),
            edges=np.concatenate(edges) if edges else np.zeros((0, 2, 3)),
        )

    def contact_lines(self, q: NDArray[np.float64], velocity: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """See `Picture`; velocities (nv,) determine damping and friction and are zero by default."""
        mechanism = self.model.mechanism
        if mechanism.ground is None:
            return np.zeros((0, 2, 3))
        v = np.zeros(mechanism.velocity_count) if velocity is None else velocity
        touching = contacts_at(mechanism, q, v, self._contact_work).values()
        lines = [(point, point + self.metres_per_newton * force) for each in touching for point, force in each]
        return np.array(lines).reshape(-1, 2, 3)

    def carrier_pose(self, snapshot: Snapshot, name: str) -> Pose | None:
        """See `Picture`; the carrier is a body."""
        return snapshot.link_poses[self._index[name]] if name in self._index else None

    def problem(self, q: NDArray[np.float64]) -> str | None:
        """Reason why a configuration q cannot be displayed, or None."""
        q = np.asarray(q)
        if q.shape != self.start.shape:
            return f"the position q has shape {q.shape}, this robot needs {self.start.shape}"
        if not np.all(np.isfinite(q)):
            return f"q[{int(np.flatnonzero(~np.isfinite(q))[0])}] is not finite"
        return None

    def _wound(self, cables: NDArray[np.float64]) -> NDArray[np.float64]:
        """(c * ARC_STEPS, 2, 3) m: cable on every pulley as lines, from its exit point, at most one turn."""
        centres = self._poses.positions[self._pulleys]
        angles = np.clip((self._longest - self._poses.rest_lengths()) / self._radii, 0.0, FULL_TURN)
        along = cables[:, 1] - cables[:, 0]
        along /= np.linalg.norm(along, axis=1)[:, None]
        angle = (angles[:, None] * np.linspace(0.0, 1.0, ARC_STEPS + 1))[:, :, None]
        # Backwards along the cable: from the exit point, the rim goes against the direction of the cable.
        arms = (cables[:, 0] - centres)[:, None, :]
        rim = np.cos(angle) * arms - np.sin(angle) * self._radii[:, None, None] * along[:, None, :]
        lines = centres[:, None, None, :] + np.stack((rim[:, :-1], rim[:, 1:]), axis=2)
        # Slightly longer, so that wide lines have no gaps on the outside.
        middles = lines.mean(axis=2, keepdims=True)
        stretched = middles + (1.0 + self.sizes.tendon / self._radii)[:, None, None, None] * (lines - middles)
        return np.asarray(stretched.reshape(-1, 2, 3))

    # -- parts ----------------------------------------------------------------------------------------------------

    def _find_sizes(self) -> Sizes:
        poses = self._poses.update(self.start)
        points = [poses.positions, poses.cables().reshape(-1, 3), *poses.routes()]
        for body, _, end in self._attachments():
            points.append((poses.positions[body] + poses.rotations[body] @ end)[None])
        span = max(float(np.linalg.norm(np.ptp(np.vstack(points), axis=0))), 1e-6)
        thick = [entry.cable_radius for entry in self.model.entries]
        thickest = max([*thick, *(route.cable_radius for route in self.model.routes)], default=0.0)
        tendon = max(thickest, 0.0032 * span)
        return Sizes(
            span=span, bar=0.009 * span, tendon=tendon, spring=0.009 * span, node=0.013 * span, axes=0.1 * span,
            axes_radius=0.9 * tendon,
        )  # fmt: skip

    def _attachments(self) -> Iterator[tuple[int, str, NDArray[np.float64]]]:
        """Body, its name, and each attachment point (3,) [m] on it that is not at its own joint."""
        mechanism = self.model.mechanism
        points = [(joint.parent, joint.placement.origin) for joint in mechanism.joints]
        for loop in mechanism.loops:
            points += [(loop.predecessor, loop.predecessor_frame.origin), (loop.successor, loop.successor_frame.origin)]
        points += [(each.body, each.frame.origin) for each in self._outputs]
        reach = max((float(np.linalg.norm(point)) for _, point in points), default=0.0)
        seen: list[tuple[str, NDArray[np.float64]]] = []
        for name, point in points:
            repeated = any(name == other and np.allclose(point, at, atol=1e-9) for other, at in seen)
            if name != WORLD and np.linalg.norm(point) > 1e-6 * reach and not repeated:
                seen.append((name, point))
                yield self._index[name], name, point

    def _list_solids(self, bodies: Mapping[str, Body], limits: Mapping[str, tuple[float, float]]) -> Iterator[Solid]:
        roles = _body_roles(self.model)
        for i, name in enumerate(self.model.body_names):
            if bodies[name].meshes:  # meshes are displayed in place of primitives
                yield from (solid_of_mesh(mesh, i, roles[name]) for mesh in bodies[name].meshes)
                continue
            for primitive in bodies[name].shapes:
                yield solid_of(primitive, i, roles[name], 1.5 * self.sizes.node)
        yield from self._rods(bodies)
        for entry in self.model.entries:
            yield from self._pulley(entry, bodies[f"{entry.name}-pulley"].shapes)
            ball = (2.2 * max(entry.cable_radius, self.sizes.tendon),) * 3
            yield Solid(self._index[entry.anchor_body], "joints", "sphere", ball, entry.anchor)
        yield from self._sheaves(bodies)
        yield from self._supports(limits)

    def _sheaves(self, bodies: Mapping[str, Body]) -> Iterator[Solid]:
        """Pulleys of routed cables without shape, marks on rotating ones, and holes."""
        mechanism = self.model.mechanism
        marked: set[int] = set()
        for route, model in zip(self.model.routes, mechanism.routes, strict=True):
            for k, point in enumerate(route.route):
                joint = mechanism.joint(point.joint) if point.joint else None
                link = self._index[point.body if joint is None else joint.body]
                if joint is not None and _has_extent(bodies[joint.body]):
                    drawn, disc = None, _disc(bodies[joint.body].shapes, link)
                else:
                    drawn = disc = self._sheave(point, joint, link)
                    yield drawn
                if k in drum_ends(model):
                    self._discs.append(drawn)
                if joint is not None and disc is not None and link not in marked:
                    marked.add(link)
                    yield _mark(disc)

    def _sheave(self, point: RoutePoint, joint: Joint | None, link: int) -> Solid:
        """Element of a route as a disc or a hole."""
        if not point.is_pulley:
            return Solid(link, "joints", "sphere", (3.0 * self.sizes.tendon,) * 3, np.array(point.at))
        axis = np.array(point.axis if joint is None else joint.axis, dtype=np.float64)
        axis /= np.linalg.norm(axis)
        across = np.linalg.svd(axis[None])[2][1:]
        axes = np.column_stack((across[0], np.cross(axis, across[0]), axis))
        size = (2.0 * point.radius, 2.0 * point.radius, 4.0 * self.sizes.tendon)
        return Solid(link, "pulleys", "cylinder", size, np.zeros(3) if joint else np.array(point.at), axes)

    def _rods(self, bodies: Mapping[str, Body]) -> Iterator[Solid]:
        for i, name, end in self._attachments():
            if _has_extent(bodies[name]):
                continue
            yield _rod(i, "rods", np.zeros(3), end, 1.6 * self.sizes.bar)
            for at in (np.zeros(3), end):
                yield Solid(i, "joints", "sphere", (1.5 * self.sizes.node,) * 3, at)

    def _pulley(self, entry: CableEntry, shapes: tuple[Primitive, ...]) -> Iterator[Solid]:
        """Mark that shows the rotation of a pulley; without a shape in the file, also its disc."""
        i = self._index[f"{entry.name}-pulley"]
        disc = _disc(shapes, i)
        if disc is None:
            disc = Solid(i, "pulleys", "cylinder", (2.0 * entry.radius, 2.0 * entry.radius, 4.0 * self.sizes.tendon))
            yield disc
        yield _mark(disc)

    def _supports(self, limits: Mapping[str, tuple[float, float]]) -> Iterator[Solid]:
        """Supports of bodies on the world, and rails of sliding bodies."""
        blocks = {entry.joints[0] for entry in self.model.entries}
        span = self.sizes.span
        for joint in self.model.mechanism.joints:
            parent, at = self._index[joint.parent], joint.placement
            if joint.kind == "prismatic":
                low, high = np.clip(limits.get(joint.name, (-np.inf, np.inf)), -0.7 * span, 0.7 * span)
                along = at.axes @ joint.axis
                yield _rod(parent, "rails", at.origin + low * along, at.origin + high * along, 0.7 * self.sizes.bar)
            elif parent < 0 and joint.kind != "floating" and joint.name not in blocks:
                yield Solid(parent, "joints", "sphere", (3.4 * self.sizes.node,) * 3, at.origin)

    def _find_outline(self, start: Snapshot) -> NDArray[np.float64]:
        """(n, 3) m: corners and rims of the solids without rails, ends of the cables, and the output."""
        points = [lines.reshape(-1, 3) for lines in start.lines[:1]]
        points += [np.array([pose[0]]) for pose in start.link_poses[len(self.model.body_names) :]]
        for solid, centre, quaternion in zip(self.solids, start.solid_positions, start.solid_quaternions, strict=True):
            if solid.role != "rails":
                # The extent of a sphere does not depend on its rotation.
                axes = np.eye(3) if solid.kind == "sphere" else matrix_from_quaternion(quaternion)
                points.append(centre + (OUTLINES[solid.kind] * solid.size) @ axes.T)
        return np.vstack(points)

    def _find_ground(self) -> NDArray[np.float64]:
        """(4, 3) m: corners of a plate below the robot at the start."""
        low, high = self.outline.min(axis=0), self.outline.max(axis=0)
        (x, y), reach = 0.5 * (low + high)[:2], 0.9 * self.sizes.span
        z = min(0.0, low[2]) - 1e-3 * self.sizes.span
        return np.array([[x + a * reach, y + b * reach, z] for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))])


def solid_of(primitive: Primitive, link: int, role: str, point_radius: float) -> Solid:
    """Solid for the display of a primitive; a point mass becomes a sphere of `point_radius` [m]."""
    s, origin, axes = primitive.size, primitive.placement.origin, primitive.placement.axes
    if primitive.kind == "cylinder":
        return Solid(link, role, "cylinder", (2.0 * s[0], 2.0 * s[0], s[1]), origin, axes)
    if primitive.kind == "tube":
        return Solid(link, role, "cylinder", (s[0], s[0], s[2]), origin, axes)
    if primitive.kind in ("box", "cube"):
        sides = (s[0], s[1], s[2]) if primitive.kind == "box" else (s[0], s[0], s[0])
        return Solid(link, role, "box", sides, origin, axes)
    radius, shown = (s[0], role) if primitive.kind == "sphere" else (point_radius, "points")
    return Solid(link, shown, "sphere", (2.0 * radius,) * 3, origin, axes)


def solid_of_mesh(mesh: BodyMesh, link: int, role: str) -> Solid:
    """Solid for the display of a mesh."""
    low, high = mesh.mesh.box
    centre, (x, y, z) = 0.5 * (low + high), (high - low).tolist()
    uri = mesh.uri
    if not uri.startswith(PACKAGE):
        uri = "" if mesh.path is None else mesh.path.resolve().as_uri()
    surface = Surface(mesh.mesh.vertices - centre, mesh.mesh.triangles, -centre, uri, mesh.scale)
    at = mesh.placement.origin + mesh.placement.axes @ centre
    return Solid(link, role, "mesh", (x, y, z), at, mesh.placement.axes, surface)


def _has_extent(body: Body) -> bool:
    return bool(body.meshes) or any(shape.kind != "point" for shape in body.shapes)


def _disc(shapes: tuple[Primitive, ...], link: int) -> Solid | None:
    """First round shape of a pulley."""
    round_ones = [shape for shape in shapes if shape.kind in ("cylinder", "tube")]
    return solid_of(round_ones[0], link, "pulleys", 0.0) if round_ones else None


def _mark(disc: Solid) -> Solid:
    """Mark that shows the rotation of a disc."""
    across, high = disc.size[0], disc.size[2]
    centre = disc.position + disc.axes @ [0.24 * across, 0.0, 0.0]
    return Solid(disc.link, "marks", "box", (0.42 * across, 0.1 * across, 1.12 * high), centre, disc.axes)


def _rod(link: int, role: str, first: NDArray[np.float64], second: NDArray[np.float64], width: float) -> Solid:
    centres, quaternions, lengths = cylinders_between(first[None], second[None])
    size = (width, width, float(lengths[0]))
    return Solid(link, role, "cylinder", size, centres[0], matrix_from_quaternion(quaternions[0]))


def _body_link(body: Body, payloads: Sequence[Payload], still: bool) -> Link:
    return Link(body.name, *loaded_inertia(body, [each for each in payloads if each.body == body.name]), still)


def _still_bodies(model: MechanismModel) -> set[str]:
    """Names of bodies connected to the world by fixed joints; a joint comes after that of its parent."""
    still = {WORLD}
    for joint in model.mechanism.joints:
        if joint.kind == "fixed" and joint.parent in still:
            still.add(joint.body)
    return still


def _body_roles(model: MechanismModel) -> dict[str, str]:
    """Role of each body by name: block, pulley, or "bodies" for the others."""
    roles = dict.fromkeys(model.body_names, "bodies")
    for name in model.cable_names:
        roles[f"{name}-block"], roles[f"{name}-pulley"] = "blocks", "pulleys"
    return roles
