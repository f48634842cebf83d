"""Model of a robot of the kind mechanism: bodies, joints and loops, initial configuration, cables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError
from ..numerics.short_repr import ShortRepr
from ..robots.actuator import Actuator
from ..robots.model import Pose, RobotModel, WoundCable
from .body_frame import BodyFrame
from .body_poses import BodyPoses
from .cable_routing import CableEntry
from .mechanism import Mechanism
from .routing.route import RoutedCable


@dataclass(frozen=True, eq=False, repr=False)
class MechanismModel(ShortRepr, RobotModel):
    """Model described by the robot file of a mechanism.

    Attributes:
        mechanism: bodies, joints, loops, cables.
        start: (nq,) initial configuration with closed loops; the search for the equilibrium starts there.
        entries: cables wound by one pulley, as given in the file. routes: routed cables, as given in the file.
    """

    kind: ClassVar[str] = "mechanism"
    noun: ClassVar[str] = "a mechanism of bodies and joints"
    takes_moments: ClassVar[bool] = True

    mechanism: Mechanism
    start: NDArray[np.float64]
    entries: tuple[CableEntry, ...] = ()
    routes: tuple[RoutedCable, ...] = ()

    @property
    def tension_names(self) -> tuple[str, ...]:
        """Names of all cables, including rigid and routed ones."""
        return (*self.cable_names, *self.route_names)

    @property
    def tension_kinds(self) -> Mapping[str, str]:
        """Kinds of all cables by name, including rigid and routed ones."""
        return dict.fromkeys(self.tension_names, "cable")

    @property
    def initial_configuration(self) -> NDArray[np.float64]:
        """Start configuration (nq,) of the file with closed loops."""
        return self.start

    def output_pose(self, output: BodyFrame, configuration: NDArray[np.float64]) -> Pose:
        """Pose of an output at q (nq,); use `BodyPoses` for many configurations, because it reuses its arrays."""
        return BodyPoses(self).update(configuration).output(output)[0]

    @cached_property
    def cable_names(self) -> tuple[str, ...]:
        """Names of all cables wound by one pulley, including rigid ones."""
        return tuple(entry.name for entry in self.entries)

    @property
    def route_names(self) -> tuple[str, ...]:
        """Names of all routed cables."""
        return tuple(route.name for route in self.routes)

    def need_elastic_cables(self, what: str) -> None:
        """Raise TensegrityError if a cable with a block is rigid; `what` names the function that needs all strains."""
        for entry in self.entries:
            if entry.variant == "rigid":
                raise TensegrityError(
                    f"cable {entry.name} is rigid, and {what} needs the strain of every cable; give it the variant "
                    "epsilon (or u, length) and its Young's modulus."
                )

    def holding_cables(self) -> MechanismModel:
        """Model for control, which needs the strains of all cables; its routed cables slide freely over guides.

        Raises:
            TensegrityError: a cable has no strain, or can slip on a rotating joint, which cannot be observed.
        """
        self.need_elastic_cables("this control")
        for route in self.routes:
            if route.rigid:
                raise TensegrityError(
                    f"cable {route.name} does not stretch (rigid), and this control needs the strain of every cable; "
                    "give it its Young's modulus instead, or take the controller joint_position."
                )
            slips = [point.joint for point in route.route[1:-1] if point.joint and point.friction is not None]
            if slips:
                raise TensegrityError(
                    f"cable {route.name} may slip over joint {slips[0]}, which this controller cannot observe; leave "
                    "out the friction there, so that it holds, or take the controller joint_position."
                )
        free = self.mechanism.sliding_freely()
        return self if free is self.mechanism else replace(self, mechanism=free)

    def tension_floors(self, actuators: Iterable[Actuator]) -> dict[str, float]:
        """Lower tension limit [N] by name of every cable wound by an actuator: the highest `minimum_tension` of
        these."""
        floors: dict[str, float] = {}
        for each in actuators:
            for name in self.wound_by(each):
                floors[name] = max(floors.get(name, 0.0), each.minimum_tension)
        return floors

    def wound_by(self, actuator: Actuator) -> list[str]:
        """Names of the cables that an actuator winds."""
        joint = self.joint_of(actuator.drives)
        wound = [entry.name for entry in self.entries if entry.joints[1] == joint]
        return wound + [route.name for route in self.routes if any(joint == point.joint for point in route.route)]

    @property
    def body_names(self) -> tuple[str, ...]:
        """Names of the bodies in sweep order."""
        return tuple(joint.body for joint in self.mechanism.joints)

    @property
    def load_names(self) -> tuple[str, ...]:
        """Names of all bodies."""
        return self.body_names

    def joint_of(self, driven: str) -> str:
        """Name of the joint that an actuator moves: the pulley joint of a cable, or the joint with this name."""
        for entry in self.entries:
            if entry.name == driven:
                return entry.joints[1]
        return self.mechanism.joint(driven).name

    def driven_ranges(self) -> dict[str, tuple[float, float]]:
        """(lowest, highest) joint position [rad] that cables permit, by part that drives a pulley or drum.

        Beyond one end nothing of the cable would be left on the pulley, beyond the other one nothing between pulley and
        anchor, or no room on the drum. For cables with blocks they hold for the direction in which the cable leaves its
        pulley at the start.
        """
        ranges = {}
        for entry in self.entries:
            _, pulley, involute = entry.joints
            position, turn = (float(self.start[self.mechanism.positions_of(name)][0]) for name in (pulley, involute))
            ranges[entry.name] = ranges[pulley] = (position + turn - entry.longest / entry.radius, position + turn)
        for route in self.routes:
            for point, sense in (
                (route.route[0], -1.0),
                (route.route[-1], 1.0),
            ):  # the first end winds against its side
                if point.joint and np.isfinite(point.wound):
                    most = np.inf if point.layers is None else point.layers.turns * point.layers.count
                    ends = sense * point.side * 2.0 * np.pi * np.array([-point.wound, most - point.wound])
                    position = float(self.start[self.mechanism.positions_of(point.joint)][0])
                    least, largest = ranges.get(point.joint, (-np.inf, np.inf))
                    ranges[point.joint] = (max(least, position + ends.min()), min(largest, position + ends.max()))
        return ranges

    def cable_turns(self, actuators: Iterable[Actuator]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Cables on the pulleys of actuators (a,), for limits that hold for every direction of the cable.

        Returns:
            (a,) indices in q of the part between pulley and anchor [rad of the pulley]; -1 without a cable, or if its
            length is not known; and (a,) length of the whole cable [rad of the pulley].
        """
        entries = {entry.joints[1]: entry for entry in self.entries if np.isfinite(entry.longest)}
        driven = [entries.get(name) for name in self.driven_joints(actuators)]
        places = [-1 if entry is None else self.mechanism.positions_of(entry.joints[2]).start for entry in driven]
        turns = [np.inf if entry is None else entry.longest / entry.radius for entry in driven]
        return np.array(places, dtype=np.int64), np.array(turns, dtype=np.float64)

    def cable_radius(self, actuator: Actuator) -> float:
        """Radius [m] of the pulley that an actuator turns.

        Raises:
            KeyError: it turns no pulley with a cable.
        """
        pulley = self.joint_of(actuator.drives)
        return {entry.joints[1]: entry.radius for entry in self.entries}[pulley]

    def driven_joints(self, actuators: Iterable[Actuator]) -> tuple[str, ...]:
        """Name of the joint that each actuator moves."""
        return tuple(self.joint_of(each.drives) for each in actuators)

    def tendon_stiffness(self, driven: str) -> float | None:
        """Initial stiffness [N/m] of the cable with the pulley `driven`: E A / rest length; None without such a
        cable."""
        for entry in self.entries:
            if driven in (entry.name, entry.joints[1]) and entry.variant != "rigid":
                return entry.young * np.pi * entry.cable_radius**2 / self._start_length(entry)
        return None

    def wound_cable(self, driven: str) -> WoundCable | None:
        """Pulley radius, and rest length at pulley angle zero for the cable direction of the start; None without
        cable."""
        for entry in self.entries:
            if driven in (entry.name, entry.joints[1]):
                turned = self.start[self.mechanism.positions_of(entry.joints[1]).start]
                return WoundCable(entry.radius, float(self._start_length(entry) + entry.radius * turned))
        return None

    def _start_length(self, entry: CableEntry) -> float:
        """Unwound rest length [m] of a cable at the start."""
        return float(entry.radius * self.start[self.mechanism.positions_of(entry.joints[2]).start])

    @cached_property
    def drivable(self) -> Mapping[str, str]:
        """Parts that an actuator can drive, with their motion: cables (by their pulleys) and joints of one
        coordinate."""
        kinds = {entry.name: "revolute" for entry in self.entries}
        of_cables = {name for entry in self.entries for name in entry.joints if name != entry.joints[1]}
        for joint in self.mechanism.joints:
            if joint.kind in ("revolute", "prismatic") and joint.name not in of_cables:
                kinds[joint.name] = joint.kind
        return kinds
