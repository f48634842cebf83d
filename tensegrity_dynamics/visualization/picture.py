"""Picture of a robot: common description for its markers, its URDF and the browser view.

The `Picture` contains the data that are equal in all configurations (links, solids, names, colours); `Picture.at` gives
the `Snapshot` of one configuration. A new kind of robot only needs a Picture for all displays.
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
"""Density of the spheres that represent payloads [kg/m^3]."""


@dataclass(frozen=True, eq=False)
class Link:
    """Frame of the robot with its mass.

    Args:
        name: name of the bar, body or output; `with_frame_names` converts it to a valid ROS name.
        mass: mass [kg].
        centre: (3,) centre of mass in the frame of the link [m].
        inertia: (3, 3) inertia about the centre of mass, along the axes of the link [kg m^2].
        still: whether it never moves.
    """

    name: str
    mass: float = 0.0
    centre: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))
    inertia: NDArray[np.float64] = field(default_factory=lambda: np.zeros((3, 3)))
    still: bool = False


@dataclass(frozen=True, eq=False)
class Surface:
    """Triangles of a solid for viewers that draw them, and their file for viewers that read it.

    Args:
        vertices: (v, 3) positions relative to the centre of the solid, along its axes [m].
        triangles: (t, 3) rows of `vertices`.
        origin: (3,) origin of the frame of the file, relative to the centre of the solid along its axes [m].
        uri: address of the file, package:// or file://; empty without a file. scale: m per unit of the file.
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
        role: role in the robot; a key of `style.LOOKS`.
        kind: "cylinder" (along its z axis), "box", "sphere" or "mesh" (with `size` as its bounding box).
        size: (3,) extents along its axes [m]; nominal values if they change with the configuration.
        position: (3,) position of its centre in the frame of the link [m].
        axes: (3, 3) its axes as columns in the frame of the link.
        surface: surface of a mesh.
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
        rows: (k,) index in `Picture.tension_names` of the element of each line.
        form: "strand" (dashed when slack), "coil" (a spring) or "wound" (on a pulley, grey when slack).
        radius: radius [m]; for a coil the outer radius.
    """

    name: str
    rows: NDArray[np.int64]
    form: str
    radius: float


@dataclass(frozen=True, eq=False)
class Balls:
    """Spheres that mark points of the robot, such as the nodes of a structure.

    Args:
        radii: (p,) m.
        colours: (p, 3), 0 to 255.
    """

    radii: NDArray[np.float64]
    colours: NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Picture data of a robot in one configuration; positions and quaternions (wxyz) are in the world frame.

    Args:
        solid_positions, solid_quaternions, solid_sizes: (s, 3) m, (s, 4), (s, 3) m, in the order of `Picture.solids`.
        lines: lines (k, 2, 3) m of each `LineSet`.
        link_poses: pose of each link, in the order of `Picture.links`.
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
    """Display data of one robot. It can own work arrays: use one Picture per thread.

    Attributes:
        name: name of the robot.
        start: configuration of its file: nodes (n, 3) [m] of a structure, q (nq,) of a mechanism.
        sizes: display dimensions for this robot.
        links: bars or bodies, then the output frames.
        solids, line_sets, balls: displayed objects; `balls` is None if there are none.
        tension_names: (m,) names of members of a structure or cables of a mechanism.
        unilateral: (m,) bool, whether they carry tension only.
        plotted: rows of `tension_names` that are plotted over time.
        smallest_full_scale: smallest useful full scale of tension [N].
        outline: (n, 3) points around the robot at the start, for cameras and grids [m].
        ground: (4, 3) corners of the plate that markers show below it [m], or None.
        surface: (t, 3, 3) triangles of the ground [m], or None.
        metres_per_newton: length of contact lines per force, from the weight; 0 without weight.
        goal_corners: (k, 3) points in the output frame that show a goal [m]: a patch of three or more, else a sphere.
        has_orientation: whether the output frame has an orientation.
        goal_sets_orientation: whether goals set the orientation.
        label_kind: kind of the objects in `label_names`, such as "nodes".
        label_names: (l,) names that can be displayed at the parts of the robot.
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
        """Snapshot of the robot in a configuration (in the form of `start`)."""

    @abstractmethod
    def problem(self, configuration: NDArray[np.float64]) -> str | None:
        """Reason why a configuration cannot be displayed (wrong shape, not finite), or None."""

    def contact_lines(
        self, configuration: NDArray[np.float64], velocity: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """(k, 2, 3) m, a line for each contact force: from its point of action along the force, length by magnitude."""
        return np.zeros((0, 2, 3))

    def footing(self, configuration: NDArray[np.float64], contacts: NDArray[np.float64]) -> NDArray[np.int64]:
        """(k,) rows of `label_names` on which the robot stands.

        Args:
            contacts: (c, 2, 3) m, from `contact_lines` at the same configuration.
        """
        return np.zeros(0, dtype=np.int64)

    def carrier_pose(self, snapshot: Snapshot, name: str) -> Pose | None:
        """Frame of the body or node with this name, to which a payload can be attached; None if it does not exist."""
        return None

    def payload_balls(
        self, snapshot: Snapshot, payloads: Iterable[CarriedPayload]
    ) -> list[tuple[CarriedPayload, NDArray[np.float64], float]]:
        """Payloads as steel spheres with centre (3,) [m] and radius [m], at least as large as a displayed node."""
        balls = []
        for each in payloads:
            pose = self.carrier_pose(snapshot, each.name)
            if pose is not None:
                centre = pose[0] + matrix_from_quaternion(pose[1]) @ np.array(each.centre)
                radius = float(np.cbrt(0.75 * each.mass / (np.pi * STEEL)))
                balls.append((each, centre, max(radius, 1.5 * self.sizes.node)))
        return balls

    def slack(self, tensions: NDArray[np.float64], full_scale: float) -> NDArray[np.bool_]:
        """(m,) bool, slack unilateral elements; unknown tensions (NaN) are not slack."""
        return np.asarray(self.unilateral & (tensions <= SLACK_FRACTION * full_scale), dtype=np.bool_)


def make_picture(robot: Robot) -> Picture:
    """Picture registered for the type of the robot. Raises TensegrityError if its kind is not registered."""
    picture: Picture = type_of(robot).picture(robot)
    return picture


def with_frame_names(links: Iterable[Link]) -> tuple[Link, ...]:
    """Links with names that are valid in ROS; repeated names get a number.

    Names that differ only by `-` and `_` count as equal, because users do not distinguish them.
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
    """Valid name of a ROS frame: spaces, slashes and other characters become underscores."""
    return "".join(letter if letter.isalnum() or letter in "_-." else "_" for letter in name)
