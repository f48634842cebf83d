"""Picture of a robot: the one description behind its markers, its URDF and the browser view.

What stays the same in all configurations (links, solids, names, colours) stands in the `Picture`; `Picture.at` gives
the `Snapshot` of one configuration. A further kind of robot is seen everywhere as soon as it has a Picture.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ..numerics.rotations import matrix_from_quaternion
from ..robots.carried_payload import CarriedPayload
from ..robots.output_frame import Pose
from ..robots.robot import Robot
from ..robots.robot_types import type_of
from .mount import BASE_LINK
from .style import SLACK_FRACTION, Sizes

WORLD = "world"
STEEL = 7850.0
"""kg/m^3, of which payloads are drawn."""


@dataclass(frozen=True, eq=False)
class Link:
    """A frame of the robot with the mass that it carries.

    Args:
        name: of the bar, body or output; `with_frame_names` makes it one that ROS takes.
        mass: kg.
        centre: centre of mass (3,) [m] in the link's frame.
        inertia: (3, 3) [kg m^2] about the centre of mass, along the link's axes.
        still: it never moves.
    """

    name: str
    mass: float = 0.0
    centre: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))
    inertia: NDArray[np.float64] = field(default_factory=lambda: np.zeros((3, 3)))
    still: bool = False


@dataclass(frozen=True, eq=False)
class Surface:
    """The triangles of a solid, for viewers that draw them, and the file that they come from, for those that read it.

    Args:
        vertices: (v, 3) m from the solid's centre, along its axes. triangles: (t, 3) rows of them.
        origin: (3,) m, where the file's own frame stands, from the solid's centre along its axes.
        uri: of the file, package:// or file://; empty where there is none. scale: m per unit of the file.
    """

    vertices: NDArray[np.float64]
    triangles: NDArray[np.int64]
    origin: NDArray[np.float64]
    uri: str = ""
    scale: float = 1.0


@dataclass(frozen=True, eq=False)
class Solid:
    """A solid fixed to a link.

    Args:
        link: index in `Picture.links`, -1 for the world.
        role: what it is in the robot; a key of `style.LOOKS`.
        kind: "cylinder" (along its z), "box", "sphere" or "mesh", which `size` is the box around.
        size: extents (3,) [m] along its own axes; the nominal ones where they change with the configuration.
        position: of its centre (3,) [m] in the link's frame.
        axes: its axes as columns (3, 3) in the link's frame.
        surface: of a mesh.
    """

    link: int
    role: str
    kind: str
    size: tuple[float, float, float]
    position: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))
    axes: NDArray[np.float64] = field(default_factory=lambda: np.eye(3))
    surface: Surface | None = None


@dataclass(frozen=True, eq=False)
class LineSet:
    """Straight lines coloured by tension.

    Args:
        name: namespace of its marker, such as "tendons", "springs", "cables", "wound".
        rows: (k,) index in `Picture.tension_names` of what each line is a part of.
        form: "strand" (dashed when slack), "coil" (a spring) or "wound" (lies on a pulley, grey when slack).
        radius: m; of a coil the outer one.
    """

    name: str
    rows: NDArray[np.int64]
    form: str
    radius: float


@dataclass(frozen=True, eq=False)
class Balls:
    """Balls that mark points of the robot, such as the nodes of a structure.

    Args:
        radii: (p,) m.
        colours: (p, 3), 0 to 255.
    """

    radii: NDArray[np.float64]
    colours: NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What a robot looks like in one configuration; positions and quaternions (wxyz) are in the world frame.

    Args:
        solid_positions, solid_quaternions, solid_sizes: (s, 3) m, (s, 4), (s, 3) m, in the order of `Picture.solids`.
        lines: for each `LineSet` its lines (k, 2, 3) m.
        link_poses: of each link, in the order of `Picture.links`.
        output: pose of the first output frame; None for a robot without outputs.
        label_positions: (l, 3) m, in the order of `Picture.label_names`.
        edges: (e, 2, 3) m, outlines of solids that are nearly transparent.
        balls: (p, 3) m, centres of `Picture.balls`.
        plates: (t, 3, 3) m, triangles drawn as thin plates.
    """

    solid_positions: NDArray[np.float64]
    solid_quaternions: NDArray[np.float64]
    solid_sizes: NDArray[np.float64]
    lines: tuple[NDArray[np.float64], ...]
    link_poses: Sequence[Pose]
    output: Pose | None
    label_positions: NDArray[np.float64]
    edges: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 2, 3)))
    balls: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 3)))
    plates: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 3, 3)))


class Picture(ABC):
    """Everything that is drawn of one robot. It may keep work arrays: use one Picture per thread.

    Attributes:
        name: of the robot.
        start: the configuration of its file: nodes (n, 3) [m] of a structure, q (nq,) of a mechanism.
        sizes: dimensions that suit it.
        links: bars or bodies, then the output frames.
        solids, line_sets, balls: what is drawn; `balls` is None where there are none.
        tension_names: (m,) what carries forces: members of a structure, cables of a mechanism.
        unilateral: (m,) bool, which of them can only pull.
        plotted: rows of `tension_names` that are worth a line over time.
        smallest_full_scale: N, smallest full scale of tension worth drawing.
        outline: (n, 3) m, points around the robot at the start, for cameras and grids.
        ground: (4, 3) m, corners of the plate that markers show beneath it, or None.
        surface: (t, 3, 3) m, triangles of the ground that it stands on, or None. metres_per_newton: of contact lines; 0
            without a ground.
        goal_corners: (k, 3) m in the output frame, what shows a goal: a patch of three or more, else a ball.
        has_orientation: whether the output frame has one.
        goal_sets_orientation: whether goals set it.
        label_kind: what `label_names` names, such as "nodes".
        label_names: (l,) names that can be written beside the parts of the robot.
    """

    name: str
    start: NDArray[np.float64]
    sizes: Sizes
    links: tuple[Link, ...]
    solids: tuple[Solid, ...]
    line_sets: tuple[LineSet, ...]
    balls: Balls | None = None
    tension_names: tuple[str, ...]
    unilateral: NDArray[np.bool_]
    plotted: NDArray[np.int64]
    smallest_full_scale: float
    outline: NDArray[np.float64]
    ground: NDArray[np.float64] | None = None
    surface: NDArray[np.float64] | None = None
    metres_per_newton: float = 0.0
    goal_corners: NDArray[np.float64]
    has_orientation: bool
    goal_sets_orientation: bool
    label_kind: str
    label_names: tuple[str, ...]

    @abstractmethod
    def at(self, configuration: NDArray[np.float64]) -> Snapshot:
        """What the robot looks like in a configuration (the form of `start`)."""

    @abstractmethod
    def problem(self, configuration: NDArray[np.float64]) -> str | None:
        """Why a configuration cannot be drawn (wrong shape, not finite), or None."""

    def contact_lines(
        self, configuration: NDArray[np.float64], velocity: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """(k, 2, 3) m, a line for each contact force: from where it acts along it, as long as it is strong."""
        return np.zeros((0, 2, 3))

    def footing(self, configuration: NDArray[np.float64], contacts: NDArray[np.float64]) -> NDArray[np.int64]:
        """(k,) rows of `label_names` on which the robot stands.

        Args:
            contacts: (c, 2, 3) m, from `contact_lines` at the same configuration.
        """
        return np.zeros(0, dtype=np.int64)

    def carrier_pose(self, snapshot: Snapshot, name: str) -> Pose | None:
        """Frame of the body, or the node, on which a payload can be put; None where there is none of that name."""
        return None

    def payload_balls(
        self, snapshot: Snapshot, payloads: Iterable[CarriedPayload]
    ) -> list[tuple[CarriedPayload, NDArray[np.float64], float]]:
        """Payloads as balls of steel: each with centre (3,) m and radius m, never smaller than a node is drawn."""
        balls = []
        for each in payloads:
            pose = self.carrier_pose(snapshot, each.name)
            if pose is not None:
                centre = pose[0] + matrix_from_quaternion(pose[1]) @ np.array(each.centre)
                radius = float(np.cbrt(0.75 * each.mass / (np.pi * STEEL)))
                balls.append((each, centre, max(radius, 1.5 * self.sizes.node)))
        return balls

    def slack(self, tensions: NDArray[np.float64], full_scale: float) -> NDArray[np.bool_]:
        """(m,) bool: what can only pull and carries nothing; unknown tensions (NaN) are not slack."""
        return np.asarray(self.unilateral & (tensions <= SLACK_FRACTION * full_scale), dtype=np.bool_)


def make_picture(robot: Robot) -> Picture:
    """The picture that the robot's type has registered. Raises TensegrityError where its kind is not registered."""
    picture: Picture = type_of(robot).picture(robot)
    return picture


def with_frame_names(links: Iterable[Link]) -> tuple[Link, ...]:
    """The same links with names that are valid in ROS; a name that is taken gets a number.

    Names that differ by `-` and `_` alone count as one, since people do not distinguish them.
    """
    taken, renamed = {WORLD, BASE_LINK}, []
    for link in links:
        base = frame_name(link.name)
        name, number = base, 2
        while name.replace("-", "_") in taken:
            name, number = f"{base}_{number}", number + 1
        taken.add(name.replace("-", "_"))
        renamed.append(replace(link, name=name))
    return tuple(renamed)


def frame_name(name: str) -> str:
    """A name that frames in ROS may have: spaces, slashes and other signs become underscores."""
    return "".join(letter if letter.isalnum() or letter in "_-." else "_" for letter in name)
