"""Mechanisms: bodies on a tree of joints, with loop joints and cables (000, section 1.1).

A mechanism is data. `flat` converts it to the arrays of the compiled sweeps. The order of the bodies is the order of
their joints, so that every parent comes before its children.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..contact.ground import Ground
from ..errors import TensegrityError, unknown_name
from ..numerics.short_repr import ShortRepr
from . import joints
from .frame import Frame
from .joint_coordinates import JOINT_COORDINATES, QUATERNION_KINDS, RATES
from .late_kernels import CONTACTS, ENTRIES, POINTS, RIGID_ROUTES, ROUTES
from .loads import LOAD_COLUMNS, Load, Payload
from .loop_joints import Loop, loop_rows, routed_row
from .resistance import (
    BALL_LOOPS,
    LOOP_BALL,
    LOOP_SLIDE,
    LOOP_TURN,
    RESISTANCE_COLUMNS,
    TREE,
    TREE_BALL,
    Resistance,
)
from .routing.columns import BODY as ROUTE_BODY
from .routing.route_model import RouteModel, rigid_row_count, route_arrays
from .touch.parts import ContactPart, contact_array

WORLD = "world"


@dataclass(frozen=True, eq=False, repr=False)
class Body(ShortRepr):
    """Rigid body. Its frame is the successor frame of the joint that carries it.

    Args:
        name: unique name.
        mass: mass [kg]; zero is allowed if joints and loops leave no motion without inertia.
        centre: (3,) centre of mass in the body frame [m].
        inertia: (3, 3) inertia about the centre of mass in body axes [kg m^2].
        shapes: shapes for display (`Primitive`).
        meshes: meshes for display in place of the shapes (`BodyMesh`).
    """

    name: str
    mass: float = 0.0
    centre: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))
    inertia: NDArray[np.float64] = field(default_factory=lambda: np.zeros((3, 3)))
    shapes: tuple = ()
    meshes: tuple = ()

    def __post_init__(self) -> None:
        centre, inertia = np.array(self.centre, dtype=np.float64), np.array(self.inertia, dtype=np.float64)
        if not np.isfinite(self.mass) or self.mass < 0.0:
            raise TensegrityError(f"body {self.name}: mass {self.mass} kg must be finite and not negative.")
        if centre.shape != (3,) or inertia.shape != (3, 3) or not np.all(np.isfinite(centre)):
            raise TensegrityError(f"body {self.name}: centre must be (3,) and inertia (3, 3), finite.")
        moments = np.linalg.eigvalsh(inertia) if np.all(np.isfinite(inertia)) else np.array([np.nan])
        if not np.allclose(inertia, inertia.T) or not np.all(moments > -1e-12 * max(1.0, moments[-1])):
            raise TensegrityError(f"body {self.name}: the inertia must be finite, symmetric and not negative.")
        for name, array in (("centre", centre), ("inertia", inertia)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)


@dataclass(frozen=True, eq=False)
class Joint:
    """Tree joint from a frame on the parent body to the frame of the body that it carries.

    Args:
        name: unique name.
        kind: one of `joints.JOINT_KINDS`.
        parent, body: names of the bodies; the parent can be "world".
        placement: predecessor frame on the parent.
        axis: (3,) axis of revolute and prismatic joints, in both frames.
        radius: pulley radius of involute joints [m].
        resistance: resistance of each velocity coordinate; for a spherical joint one for its rotation; empty for none.
        armature: reflected inertia of geared rotors [kg m^2 or kg] on each velocity coordinate.
    """

    name: str
    kind: str
    parent: str
    body: str
    placement: Frame = field(default_factory=Frame)
    axis: NDArray[np.float64] = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    radius: float = 0.0
    resistance: tuple[Resistance, ...] = ()
    armature: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in joints.JOINT_KINDS:
            raise TensegrityError(f"joint {self.name}: " + unknown_name("kind of joint", self.kind, joints.JOINT_KINDS))
        axis = np.array(self.axis, dtype=np.float64)
        norm = np.linalg.norm(axis) if axis.shape == (3,) else 0.0
        if not np.isfinite(norm) or norm < 1e-9:
            raise TensegrityError(f"joint {self.name}: the axis must be three finite numbers, not all zero.")
        if self.kind.startswith("involute") and not (np.isfinite(self.radius) and self.radius > 0.0):
            raise TensegrityError(f"joint {self.name}: the pulley radius is {self.radius} m, must be above zero.")
        if not (np.isfinite(self.armature) and self.armature >= 0.0):
            raise TensegrityError(f"joint {self.name}: armature {self.armature} must be finite and not below zero.")
        allowed = JOINT_COORDINATES[self.kind].resistances
        if self.resistance and len(self.resistance) != allowed:
            raise TensegrityError(
                f"joint {self.name}: "
                + (
                    f"a {self.kind} joint takes {allowed} resistances, one for each coordinate."
                    if allowed
                    else f"a {self.kind} joint has no resistance."
                )
            )
        if self.kind == "spherical" and any(each.has_stops or each.rest for each in self.resistance):
            raise TensegrityError(f"joint {self.name}: a spherical joint has neither limits nor a rest angle.")
        axis = axis / norm
        axis.setflags(write=False)
        object.__setattr__(self, "axis", axis)


@dataclass(frozen=True)
class Cable:
    """Elasticity and damping of the cable of an involute joint (000, section 3.1.2).

    Args:
        name: unique name.
        joint: name of its involute joint.
        area: cross section [m^2].
        young: Young's modulus E [Pa].
        damping: coefficient mu [Pa s] of the stress mu times strain rate.
        longest: rest length [m] of the completely unwound cable. A rest length below zero is rejected.
    """

    name: str
    joint: str
    area: float
    young: float
    damping: float = 0.0
    longest: float = np.inf

    def __post_init__(self) -> None:
        if not (self.area > 0.0 and self.young > 0.0 and self.damping >= 0.0 and self.longest > 0.0):
            raise TensegrityError(
                f"cable {self.name}: area {self.area} m^2, Young's modulus {self.young} Pa and length {self.longest} m "
                f"must be above zero and damping {self.damping} Pa s not negative."
            )


FlatMechanism = namedtuple(
    "FlatMechanism",
    "kind parent axis radius q_start v_start v_count origin axes mass centre inertia dof_parent dof_body "
    "cable_joint cable_area cable_young cable_damping "
    "row_kind row_predecessor row_successor row_predecessor_origin row_successor_origin row_first row_second gravity "
    "armature loads resistances route_elements routed_cables contact late_kernels",
)


def with_own_masses(flat: FlatMechanism) -> FlatMechanism:
    """Same arrays, with copies of those that `put_on` changes."""
    return flat._replace(mass=np.array(flat.mass), centre=np.array(flat.centre), inertia=np.array(flat.inertia))


def put_on(flat: FlatMechanism, mechanism: Mechanism, payloads: Collection[Payload]) -> None:
    """Set the payloads of the bodies in place of the previous ones; payloads of the file must be included."""
    bodies = {body.name: body for body in mechanism.bodies}
    for row, joint in enumerate(mechanism.joints):
        mine = [each for each in payloads if each.body == joint.body]
        flat.mass[row], flat.centre[row], flat.inertia[row] = loaded_inertia(bodies[joint.body], mine)


def loaded_inertia(body: Body, payloads: Sequence[Payload]) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Mass [kg], centre of mass (3,) [m] and central inertia (3, 3) [kg m^2] of a body with its payloads."""
    mass = float(body.mass + sum(each.mass for each in payloads))
    if not payloads or mass == 0.0:
        return body.mass, body.centre, body.inertia
    parts = [(body.mass, body.centre, body.inertia), *((each.mass, each.point, each.inertia) for each in payloads)]
    centre = np.sum([own * position for own, position, _ in parts], axis=0) / mass
    inertia = np.zeros((3, 3))
    for own, position, about in parts:
        arm = position - centre
        inertia += about + own * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    return mass, centre, inertia


@dataclass(frozen=True, eq=False, repr=False)
class Mechanism(ShortRepr):
    """Bodies, tree joints, loops and cables.

    Args:
        bodies: all bodies except the world, in any order.
        joints: one joint per body; the joint of a parent comes before those of its children.
        loops: loop joints.
        cables: cables of involute joints.
        gravity: (3,) gravity in the world [m/s^2].
        payloads: additional masses carried by bodies. loads: constant wrenches on bodies.
        routes: routed cables, from `route_initialization`.
        ground: ground, or None. contact_parts: shapes on bodies that can touch it.

    Raises:
        TensegrityError: a name is repeated or unknown, a body has no joint or two, or a joint comes before its parent.
    """

    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...]
    loops: tuple[Loop, ...] = ()
    cables: tuple[Cable, ...] = ()
    gravity: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))
    payloads: tuple[Payload, ...] = ()
    loads: tuple[Load, ...] = ()
    routes: tuple[RouteModel, ...] = ()
    ground: Ground | None = None
    contact_parts: tuple[ContactPart, ...] = ()

    def __post_init__(self) -> None:
        held: tuple[Payload | Load, ...] = (*self.payloads, *self.loads)
        gravity = np.array(self.gravity, dtype=np.float64)
        if gravity.shape != (3,) or not np.all(np.isfinite(gravity)):
            raise TensegrityError("gravity must be three finite numbers in m/s^2.")
        gravity.setflags(write=False)
        object.__setattr__(self, "gravity", gravity)
        parts: dict[str, Sequence[Any]] = {
            "body": self.bodies, "joint": self.joints, "loop": self.loops, "cable": self.cables,
            "payload or load": held, "contact part": self.contact_parts,
        }  # fmt: skip
        for what, items in parts.items():
            names = [item.name for item in items]
            for name in names:
                if names.count(name) > 1 or (what == "body" and name == WORLD):
                    raise TensegrityError(f"{what} name {name!r} is used twice or reserved; give each its own.")
        names_of_bodies = [body.name for body in self.bodies]
        carried: list[str] = []
        for joint in self.joints:
            for name in (joint.parent, joint.body):
                if name not in (WORLD, *names_of_bodies) or joint.body == WORLD:
                    raise TensegrityError(f"joint {joint.name}: " + unknown_name("body", name, names_of_bodies))
            if joint.parent not in (WORLD, *carried):
                raise TensegrityError(f"joint {joint.name}: its parent {joint.parent} has no joint before it; reorder.")
            if joint.body in carried:
                raise TensegrityError(f"joint {joint.name}: body {joint.body} already has a tree joint; use a loop.")
            carried.append(joint.body)
        for name in names_of_bodies:
            if name not in carried:
                raise TensegrityError(f"body {name} has no tree joint; add one from a body that has.")
        for loop in self.loops:
            for name in (loop.predecessor, loop.successor):
                if name not in (WORLD, *names_of_bodies):
                    raise TensegrityError(f"loop {loop.name}: " + unknown_name("body", name, (WORLD, *names_of_bodies)))
        for each in held:
            if each.body not in names_of_bodies:
                raise TensegrityError(f"load {each.name}: " + unknown_name("body", each.body, names_of_bodies))
        for part in self.contact_parts:
            if part.body not in names_of_bodies:
                raise TensegrityError(f"contact part {part.name}: " + unknown_name("body", part.body, names_of_bodies))
        used: dict[str, str] = {}
        for cable in self.cables:
            joint = self.joint(cable.joint)
            if not joint.kind.startswith("involute"):
                raise TensegrityError(f"cable {cable.name}: joint {joint.name} is {joint.kind}, an involute is needed.")
            if cable.joint in used:
                raise TensegrityError(
                    f"cables {used[cable.joint]} and {cable.name} share one pulley; give each its own."
                )
            used[cable.joint] = cable.name

    def __getstate__(self) -> dict[str, Any]:
        """State for pickling without the arrays, because addresses of compiled functions are valid in this process
        only.
        """
        return {name: value for name, value in self.__dict__.items() if name != "flat"}

    # -- names and layout -----------------------------------------------------------------------------------------

    def joint(self, name: str) -> Joint:
        """Joint with the name `name`."""
        for joint in self.joints:
            if joint.name == name:
                return joint
        raise TensegrityError(unknown_name("joint", name, [joint.name for joint in self.joints]))

    @cached_property
    def body_index(self) -> Mapping[str, int]:
        """Index by body name in sweep order; the world is -1."""
        return {WORLD: -1, **{joint.body: i for i, joint in enumerate(self.joints)}}

    @cached_property
    def _layout(self) -> dict[str, tuple[slice, slice]]:
        layout, q, v = {}, 0, 0
        for joint in self.joints:
            kind = joints.JOINT_KINDS[joint.kind]
            layout[joint.name] = (
                slice(q, q + joints.POSITION_COUNTS[kind]),
                slice(v, v + joints.VELOCITY_COUNTS[kind]),
            )
            q, v = layout[joint.name][0].stop, layout[joint.name][1].stop
        return layout

    def positions_of(self, joint: str) -> slice:
        """Slice of q (nq,) with the coordinates of a joint."""
        self.joint(joint)
        return self._layout[joint][0]

    def velocities_of(self, joint: str) -> slice:
        """Slice of v (nv,) with the coordinates of a joint."""
        self.joint(joint)
        return self._layout[joint][1]

    @property
    def position_count(self) -> int:
        """Number of position coordinates nq."""
        return int(sum(joints.POSITION_COUNTS[joints.JOINT_KINDS[joint.kind]] for joint in self.joints))

    @property
    def velocity_count(self) -> int:
        """Number of velocity coordinates nv."""
        return int(sum(joints.VELOCITY_COUNTS[joints.JOINT_KINDS[joint.kind]] for joint in self.joints))

    @property
    def constraint_count(self) -> int:
        """Number of constraint rows nc of all loops."""
        return int(self.flat.row_kind.shape[0])

    def coordinate_names(self) -> tuple[str, ...]:
        """Name of every velocity coordinate: name of the joint, with a suffix if it has several coordinates."""
        names: list[str] = []
        for joint in self.joints:
            if joint.kind != "fixed":
                parts = JOINT_COORDINATES[joint.kind].names
                names += [f"{joint.name}.{part}" for part in parts] or [joint.name]
        return tuple(names)

    def coordinate_speeds(self) -> tuple[str, ...]:
        """The quantity of every velocity coordinate: "angular speed", "speed", or "number" of a strain per second."""
        return tuple(RATES[each] for joint in self.joints for each in JOINT_COORDINATES[joint.kind].quantities)

    @property
    def touches(self) -> bool:
        """Whether the mechanism has a ground and contact parts."""
        return self.ground is not None and bool(self.contact_parts)

    @property
    def contact_points(self) -> NDArray[np.float64]:
        """(p, POINT_COLUMNS) points that can touch the ground, in the order of the contact parts."""
        return np.asarray(self.flat.contact[: self.flat.late_kernels[POINTS]])

    def _late_kernels(self) -> NDArray[np.int64]:
        entries = np.zeros(ENTRIES, dtype=np.int64)
        if self.routes:
            from .routing.late_call import kernel_address  # imported here to avoid compilation for others

            entries[ROUTES] = kernel_address()
        if rigid_row_count(self.routes):
            from .routing.late_call import rigid_kernel_address  # as above

            entries[RIGID_ROUTES] = rigid_kernel_address()
        if self.touches:
            from .touch.late_call import kernel_address as contact_address  # as above

            entries[CONTACTS] = contact_address()
            entries[POINTS] = sum(len(part.balls[0]) for part in self.contact_parts)
        return entries

    @property
    def is_free(self) -> bool:
        """Whether only the ground can support it: no joint, loop or routed cable connects it to the world."""
        rooted = any(joint.parent == WORLD and joint.kind != "floating" for joint in self.joints)
        looped = any(WORLD in (loop.predecessor, loop.successor) for loop in self.loops)
        tied = any((route.elements[:, ROUTE_BODY] < 0).any() for route in self.routes)
        return not (rooted or looped or tied)

    def sliding_freely(self) -> Mechanism:
        """Copy of the mechanism whose routed cables slide freely over guides; contacts on joints are unchanged."""
        routes = tuple(route.sliding_freely() for route in self.routes)
        if all(a is b for a, b in zip(routes, self.routes, strict=True)):
            return self
        return replace(self, routes=routes)

    def neutral(self) -> NDArray[np.float64]:
        """(nq,) configuration with zero coordinates, identity quaternions, and a cable length of one pulley radius."""
        q = np.zeros(self.position_count)
        for joint in self.joints:
            part = q[self.positions_of(joint.name)]
            if joint.kind in QUATERNION_KINDS:
                part[-4] = 1.0
            elif joint.kind.startswith("involute"):
                part[0] = 1.0
                if joint.kind == "involute_length":
                    part[1] = joint.radius
        return q

    def topology(self) -> str:
        """Tree and loops as text, as in 000, listings 5.1 and 5.2."""
        lines = ["Spanning tree:", "Vertex: world (root)"]

        def walk(parent: str, depth: int) -> None:
            for joint in self.joints:
                if joint.parent == parent:
                    lines.append("  " * depth + f"Vertex: {joint.body}, Edge: {joint.name}")
                    walk(joint.body, depth + 1)

        walk(WORLD, 1)
        lines.append("Non-tree joints:")
        lines += [f"{loop.name}, predecessor: {loop.predecessor}, successor: {loop.successor}" for loop in self.loops]
        return "\n".join(lines)

    # -- arrays ---------------------------------------------------------------------------------------------------

    @cached_property
    def flat(self) -> FlatMechanism:
        """Arrays of the mechanism for the compiled sweeps."""
        index, by_name = self.body_index, {body.name: body for body in self.bodies}
        ordered = [by_name[joint.body] for joint in self.joints]
        kinds = np.array([joints.JOINT_KINDS[joint.kind] for joint in self.joints], dtype=np.int64)
        counts = joints.VELOCITY_COUNTS[kinds].astype(np.int64)
        parents = np.array([index[joint.parent] for joint in self.joints], dtype=np.int64)
        v_start = np.concatenate(([0], np.cumsum(counts)))[:-1].astype(np.int64)
        dof_parent, dof_body = [], []
        last = np.full(len(ordered), -1, dtype=np.int64)
        for i in range(len(ordered)):
            above = last[parents[i]] if parents[i] >= 0 else -1
            for d in range(counts[i]):
                dof_parent.append(above)
                dof_body.append(i)
                above = v_start[i] + d
            last[i] = above
        rows = [row for loop in self.loops for row in loop_rows(loop, index)]
        first_routed = len(rows)
        rows += [routed_row()] * rigid_row_count(self.routes)
        cable_joint = [index[self.joint(cable.joint).body] for cable in self.cables]
        inertias = [
            loaded_inertia(body, [each for each in self.payloads if each.body == body.name]) for body in ordered
        ]
        return FlatMechanism(
            kind=kinds,
            parent=parents,
            axis=np.array([joint.axis for joint in self.joints]).reshape(-1, 3),
            radius=np.array([joint.radius for joint in self.joints], dtype=np.float64),
            q_start=np.concatenate(([0], np.cumsum(joints.POSITION_COUNTS[kinds])))[:-1].astype(np.int64),
            v_start=v_start,
            v_count=counts,
            origin=np.array([joint.placement.origin for joint in self.joints]).reshape(-1, 3),
            axes=np.array([joint.placement.axes for joint in self.joints]).reshape(-1, 3, 3),
            mass=np.array([mass for mass, _, _ in inertias], dtype=np.float64),
            centre=np.array([centre for _, centre, _ in inertias]).reshape(-1, 3),
            inertia=np.array([inertia for _, _, inertia in inertias]).reshape(-1, 3, 3),
            dof_parent=np.array(dof_parent, dtype=np.int64),
            dof_body=np.array(dof_body, dtype=np.int64),
            cable_joint=np.array(cable_joint, dtype=np.int64),
            cable_area=np.array([cable.area for cable in self.cables], dtype=np.float64),
            cable_young=np.array([cable.young for cable in self.cables], dtype=np.float64),
            cable_damping=np.array([cable.damping for cable in self.cables], dtype=np.float64),
            row_kind=np.array([row.kind for row in rows], dtype=np.int64),
            row_predecessor=np.array([row.predecessor for row in rows], dtype=np.int64),
            row_successor=np.array([row.successor for row in rows], dtype=np.int64),
            row_predecessor_origin=np.array([row.predecessor_origin for row in rows]).reshape(-1, 3),
            row_successor_origin=np.array([row.successor_origin for row in rows]).reshape(-1, 3),
            row_first=np.array([row.first for row in rows]).reshape(-1, 3),
            row_second=np.array([row.second for row in rows]).reshape(-1, 3),
            gravity=np.array(self.gravity),
            armature=np.repeat([joint.armature for joint in self.joints], counts).astype(np.float64),
            loads=np.array(
                [[index[load.body], *load.point, *load.moment, *load.force] for load in self.loads], dtype=np.float64
            ).reshape(-1, LOAD_COLUMNS),
            resistances=np.array(self._resistances(v_start), dtype=np.float64).reshape(-1, RESISTANCE_COLUMNS),
            **route_arrays(self.routes, first_routed),
            contact=contact_array(self.ground, self.contact_parts, index),
            late_kernels=self._late_kernels(),
        )

    @property
    def resistance_parts(self) -> list[tuple[str, str]]:
        """(block, name) in the robot file of the joint or loop of every row of `flat.resistances`."""
        loops = [("loops", loop.name) for loop in self.loops for law in (loop.turning, loop.sliding) if law is not None]
        return [("joints", joint.name) for joint in self.joints for _ in joint.resistance] + loops

    def _resistances(self, v_start: NDArray[np.int64]) -> list[NDArray[np.float64]]:
        """Rows of all resistances, in the columns of `resistance`."""
        rows = []
        for i, joint in enumerate(self.joints):
            for k, each in enumerate(joint.resistance):
                kind = TREE_BALL if joint.kind == "spherical" else TREE
                indices = [v_start[i] + k, self._layout[joint.name][0].start + k]
                rows.append(np.concatenate(([kind], indices, np.zeros(15), each.law)))
        index = self.body_index
        for loop in self.loops:
            before, after = loop.predecessor_frame, loop.successor_frame
            ends = [index[loop.predecessor], index[loop.successor]]
            frames = (before.origin, after.origin, before.axes[:, 2], before.axes[:, 0], after.axes[:, 0])
            if loop.turning is not None:
                kind = LOOP_BALL if loop.kind in BALL_LOOPS else LOOP_TURN
                rows.append(np.concatenate(([kind], ends, *frames, loop.turning.law)))
            if loop.sliding is not None:
                rows.append(np.concatenate(([LOOP_SLIDE], ends, *frames, loop.sliding.law)))
        return rows


def check_state(mechanism: Mechanism, q: NDArray, v: NDArray) -> tuple[NDArray, NDArray]:
    """q (nq,) and v (nv,) as contiguous arrays.

    Raises:
        TensegrityError: a shape is wrong or a number is not finite.
    """
    q, v = np.ascontiguousarray(q, dtype=np.float64), np.ascontiguousarray(v, dtype=np.float64)
    for name, array, count in (("q", q, mechanism.position_count), ("v", v, mechanism.velocity_count)):
        if array.shape != (count,):
            raise TensegrityError(f"{name} has shape {array.shape}, this mechanism needs ({count},).")
        if not np.all(np.isfinite(array)):
            raise TensegrityError(f"{name}[{int(np.flatnonzero(~np.isfinite(array))[0])}] is not finite.")
    return q, v
