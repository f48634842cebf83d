"""What a mechanism looks like in every picture: its solids, where they are, and its cables from pulley to anchor.

Bodies with primitives look like them. A body without extent (a point mass, a leg of no mass) becomes thin rods from its
joint to where others are attached to it, so that it is seen; helper bodies on which everything meets in one point draw
nothing. A wound cable lies on its pulley's rim up to where it leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..mechanisms.mechanism import WORLD, Frame
from ..mechanisms.mechanism_model import BodyPoses, MechanismModel
from ..mechanisms.primitives import Primitive
from ..numerics.rotations import matrix_from_quaternion, quaternion_from_matrix
from ..robots.output_frame import Pose
from ..robots.robot import Robot
from .structure_picture import BAR_COLOUR, FIXED_COLOUR, Sizes, place_cylinders, round_ceiling

# Colours of what is no cable, by role.
COLOURS = {
    "bodies": BAR_COLOUR,
    "rods": BAR_COLOUR,
    "points": (84, 158, 214),
    "blocks": (150, 162, 184),
    "pulleys": (84, 158, 214),
    "marks": (38, 52, 70),
    "joints": FIXED_COLOUR,
    "rails": (176, 182, 192),
}
EDGE_COLOUR = (96, 106, 124)
OPACITY = {"blocks": 0.25}  # else the block would hide the pulley that it carries
CORNERS = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])  # of a box of sides 1
EDGES = np.array([[i, i + step] for step in (1, 2, 4) for i in range(8) if not i & step])  # between which corners
RIM = 2.0 * np.pi * np.arange(24) / 24.0
OUTLINES = {
    "box": CORNERS,
    "sphere": 0.5 * np.vstack((np.eye(3), -np.eye(3))),
    "cylinder": 0.5
    * np.vstack([np.column_stack((np.cos(RIM), np.sin(RIM), np.full(RIM.size, end))) for end in (-1.0, 1.0)]),
}
ARC_STEPS = 36  # straight pieces of the cable that is wound on a pulley
FULL_TURN = 0.98 * 2.0 * np.pi  # more turns lie in the same place


@dataclass(frozen=True, eq=False)
class Solid:
    """A solid that moves with a body.

    Args:
        body: index in sweep order, -1 for the world.
        role: what it is; a key of `COLOURS`.
        kind: "cylinder" (along its z), "box" or "sphere".
        size: (3,) m, extents along its own axes.
        placement: its frame on the body, at its centre.
    """

    body: int
    role: str
    kind: str
    size: tuple[float, float, float]
    placement: Frame


def solid_of(primitive: Primitive, body: int, role: str, point: float) -> Solid:
    """The solid that shows a primitive; a mass without size becomes a ball of radius `point` [m]."""
    s, at = primitive.size, primitive.placement
    if primitive.kind == "cylinder":
        return Solid(body, role, "cylinder", (2.0 * s[0], 2.0 * s[0], s[1]), at)
    if primitive.kind == "tube":
        return Solid(body, role, "cylinder", (s[0], s[0], s[2]), at)
    if primitive.kind in ("box", "cube"):
        return Solid(body, role, "box", (s[0], s[1], s[2]) if primitive.kind == "box" else (s[0],) * 3, at)
    radius, shown = (s[0], role) if primitive.kind == "sphere" else (point, "points")
    return Solid(body, shown, "sphere", (2.0 * radius,) * 3, at)


def body_roles(model: MechanismModel) -> dict[str, str]:
    """Whether each body is a block, a pulley or one of the others ("bodies")."""
    roles = dict.fromkeys(model.body_names, "bodies")
    for name in model.cable_names:
        roles[f"{name}-block"], roles[f"{name}-pulley"] = "blocks", "pulleys"
    return roles


class MechanismPicture:
    """Solids and cables of one mechanism, moved from state to state; keeps its arrays, so one for each thread.

    Args:
        robot: a robot whose model is a mechanism.

    Attributes:
        sizes: radii that suit it. start: (nq,), the stated start. solids: in the order of `solid_poses`.
        outline: (n, 3) m, points around everything but rails at the start.
    """

    def __init__(self, robot: Robot) -> None:
        self.model = robot.model_as(MechanismModel)
        self.start = np.array(self.model.start)
        self._outputs = robot.outputs
        self._limits = {self.model.joint_of(each.drives): each.position for each in robot.actuators}
        self._places = BodyPoses(self.model)
        self._index = self.model.mechanism.body_index
        self._pulleys = np.array([self._index[f"{name}-pulley"] for name in self.model.cable_names], dtype=np.int64)
        self._radii = np.array([entry.radius for entry in self.model.entries])
        self._longest = np.array([entry.longest for entry in self.model.entries])
        self.sizes = self._find_sizes()
        self.solids = tuple(self._list_solids())
        self._bodies = np.array([solid.body for solid in self.solids], dtype=np.int64)
        self._blocks = [row for row, solid in enumerate(self.solids) if solid.role == "blocks" and solid.kind == "box"]
        self._origins = np.array([solid.placement.origin for solid in self.solids]).reshape(-1, 3)
        self._turns = np.array([quaternion_from_matrix(solid.placement.axes) for solid in self.solids]).reshape(-1, 4)
        self.move(self.start)
        self.outline = self._outline()

    def move(self, q: NDArray[np.float64]) -> MechanismPicture:
        """Place everything at q (nq,); returns itself."""
        self._places.move(q)
        return self

    def solid_poses(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Centres (s, 3) m and quaternions wxyz (s, 4) of the solids in the world."""
        # The world is the last row, so that index -1 finds it.
        positions = np.vstack((self._places.positions, np.zeros(3)))
        rotations = np.concatenate((self._places.rotations, np.eye(3)[None]))
        quaternions = np.vstack((self._places.quaternions, [1.0, 0.0, 0.0, 0.0]))
        centres = positions[self._bodies] + np.einsum("sij,sj->si", rotations[self._bodies], self._origins)
        return centres, _multiply(quaternions[self._bodies], self._turns)

    def block_edges(self) -> NDArray[np.float64]:
        """(k, 2, 3) m: the edges of the blocks, which are so clear that they need some."""
        centres, quaternions = self.solid_poses()
        corners = [
            centres[row] + (CORNERS * self.solids[row].size) @ matrix_from_quaternion(quaternions[row]).T
            for row in self._blocks
        ]
        return np.array(corners).reshape(-1, 8, 3)[:, EDGES].reshape(-1, 2, 3)

    def body_poses(self) -> list[Pose]:
        """Position (3,) m and quaternion wxyz (4,) of every body in sweep order."""
        return list(zip(self._places.positions, self._places.quaternions, strict=True))

    def output_poses(self) -> list[Pose]:
        """Pose of every output."""
        return [self._places.output(each)[0] for each in self._outputs]

    def cable_ends(self) -> NDArray[np.float64]:
        """(c, 2, 3) m: where every cable leaves its pulley, and where it ends."""
        return self._places.cables()

    def wound(self) -> NDArray[np.float64]:
        """(c, ARC_STEPS, 2, 3) m: the cable on every pulley as lines, from where it leaves, at most one turn."""
        ends = self._places.cables()
        centres = self._places.positions[self._pulleys]
        angles = np.clip((self._longest - self._places.rest_lengths()) / self._radii, 0.0, FULL_TURN)
        along = ends[:, 1] - ends[:, 0]
        along /= np.linalg.norm(along, axis=1)[:, None]
        angle = (angles[:, None] * np.linspace(0.0, 1.0, ARC_STEPS + 1))[:, :, None]
        # Backwards along the cable: from the point where it leaves, the rim goes against its direction.
        arms = (ends[:, 0] - centres)[:, None, :]
        rim = np.cos(angle) * arms - np.sin(angle) * self._radii[:, None, None] * along[:, None, :]
        lines = centres[:, None, None, :] + np.stack((rim[:, :-1], rim[:, 1:]), axis=2)
        # A little longer, so that lines of this width leave no wedges open on the outside.
        middles = lines.mean(axis=2, keepdims=True)
        return middles + (1.0 + self.sizes.tendon / self._radii)[:, None, None, None] * (lines - middles)

    # -- parts ----------------------------------------------------------------------------------------------------

    def _find_sizes(self) -> Sizes:
        places = self._places.move(self.start)
        points = [places.positions, places.cables().reshape(-1, 3)]
        for body, _, end in self._arms():
            points.append((places.positions[body] + places.rotations[body] @ end)[None])
        box = np.ptp(np.vstack(points), axis=0)
        span = max(float(np.linalg.norm(box)), 1e-6)
        thickest = max((entry.cable_radius for entry in self.model.entries), default=0.0)
        return Sizes(
            span=span, bar=0.009 * span, tendon=max(thickest, 0.0032 * span), spring=0.009 * span, node=0.013 * span
        )  # fmt: skip

    def _arms(self) -> Iterator[tuple[int, str, NDArray[np.float64]]]:
        """Body, its name, and each place (3,) m on it, off its own joint, where something is attached."""
        mechanism = self.model.mechanism
        places = [(joint.parent, joint.placement.origin) for joint in mechanism.joints]
        for loop in mechanism.loops:
            places += [(loop.before, loop.placement_before.origin), (loop.after, loop.placement_after.origin)]
        places += [(each.body, each.frame.origin) for each in self._outputs]
        reach = max((float(np.linalg.norm(place)) for _, place in places), default=0.0)
        seen: list[tuple[str, NDArray[np.float64]]] = []
        for name, place in places:
            known = any(name == other and np.allclose(place, at, atol=1e-9) for other, at in seen)
            if name != WORLD and np.linalg.norm(place) > 1e-6 * reach and not known:
                seen.append((name, place))
                yield self._index[name], name, place

    def _list_solids(self) -> Iterator[Solid]:
        model, sizes = self.model, self.sizes
        roles = body_roles(model)
        bodies = {body.name: body for body in model.mechanism.bodies}
        for i, name in enumerate(model.body_names):
            for primitive in bodies[name].shapes:
                yield solid_of(primitive, i, roles[name], 1.5 * sizes.node)
        yield from self._rods(bodies)
        for entry in model.entries:
            yield from self._pulley(entry, bodies[f"{entry.name}-pulley"].shapes)
            ball = (2.2 * max(entry.cable_radius, sizes.tendon),) * 3
            yield Solid(self._index[entry.anchor_body], "joints", "sphere", ball, Frame(entry.anchor))
        yield from self._supports()

    def _rods(self, bodies: dict) -> Iterator[Solid]:
        for i, name, end in self._arms():
            if any(shape.kind != "point" for shape in bodies[name].shapes):
                continue
            centres, turns, lengths = place_cylinders(np.array([np.zeros(3), end]), np.array([[0, 1]]))
            axes = matrix_from_quaternion(turns[0])
            width = 1.6 * self.sizes.bar
            yield Solid(i, "rods", "cylinder", (width, width, float(lengths[0])), Frame(centres[0], axes))
            for at in (np.zeros(3), end):
                yield Solid(i, "joints", "sphere", (1.5 * self.sizes.node,) * 3, Frame(at))

    def _pulley(self, entry, shapes: tuple[Primitive, ...]) -> Iterator[Solid]:
        """The mark by which a pulley is seen to turn; where the file gives it no shape, the disc as well."""
        i = self._index[f"{entry.name}-pulley"]
        round_ones = [shape for shape in shapes if shape.kind in ("cylinder", "tube")]
        if round_ones:
            disc = solid_of(round_ones[0], i, "pulleys", 0.0)
        else:
            disc = Solid(i, "pulleys", "cylinder", (2.0 * entry.radius,) * 2 + (4.0 * self.sizes.tendon,), Frame())
            yield disc
        across, high = disc.size[0], disc.size[2]
        centre = disc.placement.origin + disc.placement.axes @ [0.24 * across, 0.0, 0.0]
        yield Solid(
            i, "marks", "box", (0.42 * across, 0.1 * across, 1.12 * high), replace(disc.placement, origin=centre)
        )

    def _supports(self) -> Iterator[Solid]:
        """Where the world carries a body, and the rails on which bodies slide."""
        blocks = {entry.joints[0] for entry in self.model.entries}
        span = self.sizes.span
        for joint in self.model.mechanism.joints:
            parent, at = self._index[joint.parent], joint.placement
            if joint.kind == "prismatic":
                low, high = np.clip(self._limits.get(joint.name, (-np.inf, np.inf)), -0.7 * span, 0.7 * span)
                along = at.axes @ joint.axis
                ends = np.array([at.origin + low * along, at.origin + high * along])
                centres, turns, lengths = place_cylinders(ends, np.array([[0, 1]]))
                width = 0.7 * self.sizes.bar
                size = (width, width, float(lengths[0]))
                yield Solid(parent, "rails", "cylinder", size, Frame(centres[0], matrix_from_quaternion(turns[0])))
            elif parent < 0 and joint.kind != "floating" and joint.name not in blocks:
                yield Solid(parent, "joints", "sphere", (3.4 * self.sizes.node,) * 3, Frame(at.origin))

    def _outline(self) -> NDArray[np.float64]:
        """(n, 3) m: corners and rims of the solids, ends of the cables and the output."""
        centres, quaternions = self.solid_poses()
        points = [self.cable_ends().reshape(-1, 3), np.array([pose[0] for pose in self.output_poses()]).reshape(-1, 3)]
        for solid, centre, quaternion in zip(self.solids, centres, quaternions, strict=True):
            if solid.role != "rails":
                # A ball is as high turned as it is straight.
                axes = np.eye(3) if solid.kind == "sphere" else matrix_from_quaternion(quaternion)
                points.append(centre + (OUTLINES[solid.kind] * solid.size) @ axes.T)
        return np.vstack(points)


def least_ceiling(model: MechanismModel) -> float:
    """The smallest scale [N] worth drawing: a millionth of what doubling a cable's length would take."""
    forces = [entry.young * np.pi * entry.cable_radius**2 for entry in model.entries]
    return round_ceiling(1e-6 * max(forces)) if forces else 1.0


def _multiply(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """(s, 4) products of quaternions wxyz."""
    w, x, y, z = left.T
    a, b, c, d = right.T
    return np.stack(
        (
            w * a - x * b - y * c - z * d, w * b + x * a + y * d - z * c,
            w * c - x * d + y * a + z * b, w * d + x * c - y * b + z * a,
        ),
        axis=1,
    )  # fmt: skip
