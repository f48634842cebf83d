"""Export of a routed cable as spatial tendons of MuJoCo: one tendon for each strand between holding elements.

MuJoCo's tendons run from site to site and wrap round a cylinder between two sites. A pulley that turns with the cable,
a drum, or a guide at which the cable sticks holds a strand at a site on its rim, a quarter turn along the arc. The site
moves with the rotation and winds the strand, by the radius for each radian. The rest length is longer by the length of
this arc. Winding takes strain e along: a joint that turns bears (T + 1/2 E A e^2) per metre of rest length, and the
elongation falls by 1 + e per metre. So the tendon has a branch with the divisor 1 / e for each turning end, from the
site on the rim to a site that stands still, and the joint gets the constant effort 1/2 E A e^2 R, opposite to the pull.
Then force and stiffness are those of the cable in the exported shape. Between two pulleys, the tangent is fixed in a
body in which both axes are fixed (the axis of a hinge is fixed in two bodies); a site in its middle has no effect on
the path, but lets MuJoCo wrap both pulleys. Full turns are excluded from length and rest length.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError
from ..numerics.rotations import matrix_from_vector
from ..robots.formatting import listing
from ..robots.mjcf import add, orientation
from .mechanism import WORLD, Mechanism
from .routing.columns import (
    GRADIENT,
    REST_NOW,
    STRAIN,
    TOUCHES,
    W_AXIS,
    W_CENTRE,
    W_ENTRY,
    W_EXIT,
    W_IN,
    W_OUT,
    W_RADIUS,
    W_TURN_IN,
    W_TURN_OUT,
    WRAP,
)
from .routing.route import RoutedCable, RoutePoint

Array = NDArray[np.float64]
QUARTER = 0.5 * np.pi
"""Arc [rad] from the exit point of a strand at a holding pulley to the site on its rim."""
PROUD = 1e-6
"""Distance of such a site from the rim, relative to the radius; MuJoCo does not wrap sites inside a cylinder."""
WIDEST = 0.9 * np.pi
"""Largest wrap angle [rad] of a cylinder without a site in its middle."""
SAME_AXIS = 1e-9
"""Tolerance for equal axes: angle [rad], and distance relative to a radius."""
WIDTH = 0.2
"""Half of the width of a cylinder, relative to its radius."""


@dataclass(frozen=True)
class RouteWriter:
    """Writer of routed cables into a document.

    Args:
        mechanism: mechanism of the robot. bodies: XML elements of the bodies by name.
        poses: origins and axes of the bodies in the world by name.
        efforts: constant efforts of joints [N m] that belong to the cables written so far, by joint.
    """

    mechanism: Mechanism
    bodies: Mapping[str, ET.Element]
    poses: Mapping[str, tuple[Array, Array]]
    efforts: dict[str, float] = field(default_factory=dict)
    _differences: dict[str, list[str]] = field(default_factory=dict)  # names of cables by difference

    @property
    def differences(self) -> list[str]:
        """Differences of the cables written so far from the original model, each with the names of its cables."""
        return [
            f"cable{'s' if len(names) > 1 else ''} {listing(names)}: {what}."
            for what, names in self._differences.items()
        ]

    def _differs(self, cable: RoutedCable, what: str) -> None:
        self._differences.setdefault(what, []).append(cable.name)

    def write(self, tendons: ET.Element, cable: RoutedCable, state: Array) -> None:
        """Add a cable whose elements have the states (n, STATE_COLUMNS) in the exported configuration."""
        points = cable.route
        touched = [k for k in range(len(points)) if not points[k].is_pulley or state[k, TOUCHES]]
        for k in sorted(set(range(len(points))) - set(touched)):
            self._differs(cable, f"{cable.point_name(k)}, from which it runs clear, is left out")
        held = [k for k in touched if _holds(points, k)]
        if cable.rubs:
            self._differs(cable, "no slip on guides and pulleys with friction")
        if any(points[k].is_pulley for k in held):
            self._differs(
                cable,
                "exact within a quarter turn of the pulleys; the stiffness is that of the exported shape",
            )
        if any(point.layers is not None for point in points):
            self._differs(cable, "the radius of the drum stays that of the exported shape")
        for number, (first, last) in enumerate(pairwise(held)):
            name = cable.name if len(held) == 2 else f"{cable.name}.{number}"
            between = touched[touched.index(first) : touched.index(last) + 1]
            self._strand(tendons, cable, name, between, state)

    def _strand(self, tendons: ET.Element, cable: RoutedCable, name: str, rows: list[int], state: Array) -> None:
        first, last = rows[0], rows[-1]
        rest = float(state[first, REST_NOW])
        longer = 0.0
        strain = 0.0 if cable.rigid else max(float(state[first, STRAIN]), 0.0)
        branches: list[list[tuple[str, dict[str, object]]]] = []
        path: list[tuple[str, dict[str, object]]] = []
        for n, k in enumerate(rows):
            point, own, ends = cable.route[k], state[k], k in (first, last)
            label = f"{name}.{n}"
            if n and point.is_pulley and cable.route[rows[n - 1]].is_pulley:
                before = state[rows[n - 1]]
                middle = 0.5 * (before[W_EXIT : W_EXIT + 3] + own[W_ENTRY : W_ENTRY + 3])
                path.append(self._site(self._common(cable, rows[n - 1], k, state), f"{label}.line", middle))
            if not point.is_pulley:
                path.append(self._site(point.body, label, own[W_CENTRE : W_CENTRE + 3]))
                continue
            radius = abs(float(own[W_RADIUS]))
            along = own[W_OUT : W_OUT + 3] if k == first else own[W_IN : W_IN + 3]
            if ends:
                turn = -QUARTER if k == first else QUARTER
                carrier = self.mechanism.joint(point.joint).body if point.joint else point.body
                longer += radius * (QUARTER - float(own[W_TURN_OUT if k == first else W_TURN_IN]))
                holds = self._site(carrier, f"{label}.rim", _rim(own, along, turn, 1.0 + PROUD))
                wrap = self._cylinder(cable, point, own, label, along, 0.5 * turn)
                path += [holds, wrap] if k == first else [wrap, holds]
                if point.joint and strain > 0.0:
                    still = self._beside(self.mechanism.joint(point.joint).parent, own, label, k == first)
                    branches.append([holds, wrap, still])
                    longer += strain * radius * (QUARTER + 1.0)
                    bears = 0.5 * cable.stiffness * strain**2 * float(own[GRADIENT])
                    self.efforts[point.joint] = self.efforts.get(point.joint, 0.0) + (-bears if k == first else bears)
                continue
            turns = np.floor(float(own[WRAP]) / (2.0 * np.pi))
            arc = float(own[WRAP]) - 2.0 * np.pi * turns
            longer -= 2.0 * np.pi * turns * radius
            wrap = self._cylinder(cable, point, own, label, along, 0.5 * arc)
            path.append(wrap)
            if arc > WIDEST:
                path += [self._site(point.body, f"{label}.arc", _rim(own, along, 0.5 * arc, 1.0 + PROUD)), wrap]
        if not rest + longer > 0.0:
            raise TensegrityError(f"cable {name}: it is shorter than what lies on its pulleys, which MJCF cannot say.")
        if cable.rigid:
            spatial = add(tendons, "spatial", name=name, limited="true", range=[0.0, rest + longer])
        else:
            spatial = add(
                tendons, "spatial", name=name, stiffness=cable.stiffness / rest,
                damping=cable.damping * cable.area / rest or None, springlength=[0.0, rest + longer],
            )  # fmt: skip
        for branch in branches:
            path += [("pulley", {"divisor": 1.0 / strain}), *branch]
        for tag, values in path:
            add(spatial, tag, **values)

    def _beside(self, body: str, own: Array, name: str, leaves: bool) -> tuple[str, dict[str, object]]:
        """Site on the carrier of a pulley on the line of the cable, one radius away from where it leaves or arrives."""
        at, along = (W_EXIT, W_OUT) if leaves else (W_ENTRY, W_IN)
        step = abs(float(own[W_RADIUS])) * own[along : along + 3]
        return self._site(body, f"{name}.still", own[at : at + 3] + (step if leaves else -step))

    def _carriers(self, point: RoutePoint, own: Array) -> set[str]:
        """Bodies in which the axis of a pulley is fixed: its carrier, and the bodies that rotate about this axis."""
        own_body = self.mechanism.joint(point.joint).parent if point.joint else point.body
        bodies = {own_body}
        for joint in self.mechanism.joints:
            if joint.kind != "revolute" or own_body not in (joint.parent, joint.body):
                continue
            origin, axes = self._pose(joint.parent)
            axis = axes @ joint.placement.axes @ joint.axis
            off = own[W_CENTRE : W_CENTRE + 3] - origin - axes @ joint.placement.origin
            turned, aside = np.cross(axis, own[W_AXIS : W_AXIS + 3]), np.cross(axis, off)
            if np.abs(turned).max() < SAME_AXIS and np.abs(aside).max() < SAME_AXIS * abs(float(own[W_RADIUS])):
                bodies |= {joint.parent, joint.body}
        return bodies

    def _common(self, cable: RoutedCable, one: int, other: int, state: Array) -> str:
        both = self._carriers(cable.route[one], state[one]) & self._carriers(cable.route[other], state[other])
        if not both:
            raise TensegrityError(
                f"cable {cable.name}: MJCF has no tangent between pulleys of two bodies that move against each other, "
                f"as from {cable.point_name(one)} to {cable.point_name(other)}; put a point between them."
            )
        return min(both)

    def _pose(self, body: str) -> tuple[Array, Array]:
        return (np.zeros(3), np.eye(3)) if body == WORLD else self.poses[body]

    def _site(self, body: str, name: str, at: Array) -> tuple[str, dict[str, object]]:
        """Site on a body at a point (3,) of the world, and the path element that passes through it."""
        origin, axes = self._pose(body)
        add(self.bodies[body], "site", name=name, pos=axes.T @ (at - origin))
        return "site", {"site": name}

    def _cylinder(
        self, cable: RoutedCable, point: RoutePoint, own: Array, name: str, along: Array, turn: float
    ) -> tuple[str, dict[str, object]]:
        """Cylinder of a pulley, and the path element that wraps it on the side of its arc, `turn` from `along`."""
        body = self.mechanism.joint(point.joint).parent if point.joint else point.body
        origin, axes = self._pose(body)
        axis, radius = axes.T @ own[W_AXIS : W_AXIS + 3], abs(float(own[W_RADIUS]))
        across = np.linalg.svd(axis[None])[2][1]
        frame = np.column_stack((across, np.cross(axis, across), axis))
        add(
            self.bodies[body], "geom", name=name, type="cylinder", size=[radius, WIDTH * radius],
            pos=axes.T @ (own[W_CENTRE : W_CENTRE + 3] - origin), quat=orientation(frame), contype="0",
            conaffinity="0", mass="0", group="1",
        )  # fmt: skip
        _, side = self._site(body, f"{name}.side", _rim(own, along, turn, 1.5))
        return "geom", {"geom": name, "sidesite": side["site"]}


def _holds(points: tuple[RoutePoint, ...], k: int) -> bool:
    return k in (0, len(points) - 1) or bool(points[k].joint) or bool(points[k].friction)


def _rim(own: Array, along: Array, turn: float, radii: float) -> Array:
    """(3,) point in the world [m] where the cable direction is `turn` [rad] beyond `along`, at `radii` radii."""
    axis, radius = own[W_AXIS : W_AXIS + 3], float(own[W_RADIUS])
    turned = matrix_from_vector(np.sign(radius) * turn * axis) @ along
    return np.asarray(own[W_CENTRE : W_CENTRE + 3] + radii * radius * np.cross(turned, axis))
