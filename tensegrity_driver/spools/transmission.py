"""Transmission between a servo and its actuator: spool or pulley, gear, lead of a screw.

The driver treats every actuator as a winding spool with lengths in m and forces in N, so that thresholds of the safety
layer have the same meaning for all. A tendon of a structure needs no conversion. The joint of a mechanism is converted
by

    length = zero + slope · position,   force = -effort / slope,   slope = -lever

If the joint winds a cable, the lever is the radius of its pulley; the length is then the rest length of the cable in
the direction in which it leaves the pulley at the start, and the actuator can only pull. A joint without cable acts in
both directions; its lever is 1 for prismatic joints and `LEVER` for revolute joints. The servo rotates `gear` times as
fast as pulley, spool or joint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.impedance import ImpedanceSetPoint, MovingPosition
from tensegrity_dynamics.robots.actuator import Actuator
from tensegrity_dynamics.robots.robot import Robot

LEVER = 0.05
"""Lever that converts the motion of a revolute joint without cable to a length [m]; thresholds in m refer to it."""


@dataclass(frozen=True)
class Transmission:
    """Conversion between a servo and its actuator.

    Attributes:
        driven: actuator in the units of commands and messages. winding: same actuator as a spool, in m, m/s and N.
        radius: length wound per rotation of the servo [m/rad]. slope: length per unit of position [m/m or m/rad].
        zero: length at position zero [m].
        stiffness: stiffness of the wound tendon or cable [N/m], or None. pulls: whether it can only pull.
    """

    driven: Actuator
    winding: Actuator
    radius: float
    slope: float = 1.0
    zero: float = 0.0
    stiffness: float | None = None
    pulls: bool = True

    @property
    def is_tendon(self) -> bool:
        """Whether commands are lengths and tensions, without conversion."""
        return self.driven.motion == "tendon"

    def length(self, position: float) -> float:
        """Length [m] at a position [m or rad]."""
        return self.zero + self.slope * position

    def position(self, length: float) -> float:
        """Position [m or rad] at a length [m]."""
        return (length - self.zero) / self.slope

    def rate(self, speed: float) -> float:
        """Rate of the position [m/s or rad/s] at a speed of winding [m/s]."""
        return speed / self.slope

    def effort(self, force: float) -> float:
        """Effort [N or N m] for a winding force [N]."""
        return force if self.is_tendon else -self.slope * force

    def force(self, effort: float) -> float:
        """Winding force [N] for an effort [N or N m]."""
        return effort if self.is_tendon else -effort / self.slope

    def set_point(self, value: Any, index: int) -> Any:
        """Set point in units of the spool: m, m/s or N for `index` 0, 1, 2, or an impedance."""
        if self.is_tendon:
            return value
        if isinstance(value, ImpedanceSetPoint):
            square = self.slope * self.slope
            return ImpedanceSetPoint(
                self.length(value.position), self.slope * value.velocity, value.effort / self.slope,
                value.stiffness / square, value.damping / square,
            )  # fmt: skip
        if isinstance(value, MovingPosition):
            return MovingPosition(self.length(value), self.slope * value.rate)
        return (self.length, self.slope.__mul__, self.force)[index](float(value))


def transmission_of(robot: Robot, row: Mapping[str, Any]) -> Transmission:
    """Transmission of one row of the servo block.

    Raises:
        TensegrityError: the spool radius is missing, or given although the mechanism defines it.
    """
    actuator, model = robot.actuator(row["actuator"]), robot.model
    stated, gear = row.get("spool_radius"), float(row.get("gear") or 1.0)
    label = f"servo {row['id']} ({actuator.name})"
    if actuator.motion == "tendon":
        if stated is None:
            raise TensegrityError(f"{label} has no `spool_radius`; give it in the robot file.")
        stiffness = model.tendon_stiffness(actuator.drives)
        return Transmission(actuator, actuator, float(stated) / gear, stiffness=stiffness)
    wound = model.wound_cable(actuator.drives)
    if wound is not None:
        if stated is not None:
            raise TensegrityError(
                f"{label} turns the pulley of {actuator.drives}, whose radius ({wound.radius:g} m) is given by the "
                "cable; remove `spool_radius`, and give as `gear` the turns of the servo per turn of the pulley."
            )
        lever, zero, stiffness = wound.radius, wound.length, model.tendon_stiffness(actuator.drives)
    elif actuator.motion == "prismatic":
        if stated is None:
            raise TensegrityError(
                f"{label} drives the prismatic joint {actuator.drives}; give as `spool_radius` its travel in m per rad "
                "of the servo."
            )
        lever, zero, stiffness, gear = 1.0, 0.0, None, gear / float(stated)
    else:
        if stated is not None:
            raise TensegrityError(
                f"{label} drives the joint {actuator.drives}, which winds no cable; remove `spool_radius`."
            )
        lever, zero, stiffness = LEVER, 0.0, None
    low, high = actuator.position
    winding = replace(
        actuator, motion="tendon", position=(zero - lever * high, zero - lever * low), rate=actuator.rate * lever,
        effort=actuator.effort / lever, minimum_tension=actuator.minimum_tension if wound is not None else 0.0,
        motor=None,
    )  # fmt: skip
    return Transmission(actuator, winding, lever / gear, -lever, zero, stiffness, wound is not None)
