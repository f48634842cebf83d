"""Routing of a cable by a block, a pulley, an involute joint and a loop joint (000, sections 3 and 5.1.3).

The block turns about an axis of its carrier body, so that the plane of the pulley follows the anchor. The pulley turns
in the block. A ball joint connects the end of the cable to its anchor on another body. Block frame: z is the block
axis, y the pulley axis. Pulley frame: z is the pulley axis, x the block axis. If the axes are skew, y and x are the
components perpendicular to z. The pulley centre may be off the block axis and turn about it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError
from .frame import Frame
from .loop_joints import Loop
from .mechanism import Body, Cable, Joint
from .primitives import Primitive, body_from
from .resistance import Resistance

VARIANTS = ("rigid", "u", "epsilon", "length")
LEAST_SQUARE = 0.05
"""Sine of the angle between block and pulley axis. Below it the block cannot turn the pulley to the anchor."""


@dataclass(frozen=True, eq=False)
class CableEntry:
    """Cable entry of a robot file.

    Args:
        name: name of the cable, and prefix of the names of its bodies and joints.
        carrier: body that carries the block; "world" is allowed.
        at: (3,) m on the carrier, a point of the block axis.
        block_axis, pulley_axis: (3,) on the carrier at block angle zero, not parallel. The cross product (cable
            direction) x (vector from pulley centre to the departure point) points along the pulley axis.
        swivel: (3,) m on the carrier, from `at` to the centre of the pulley at block angle zero.
        radius: pulley radius [m].
        anchor_body, anchor: body and point (3,) m on it at which the cable ends.
        young, damping: E [Pa] and mu [Pa s]; cable_radius: m.
        variant: "rigid", "u", "epsilon" or "length".
        longest: rest length [m] when the cable is completely unwound.
        strain: initial strain; a higher strain starts with a shorter free rest length.
        block, pulley: primitives of their bodies, in their frames.
        pulley_joint: name of the pulley joint; NAME-pulleyJt by default.
        block_resistance, pulley_resistance: resistance of the block and pulley joints. pulley_armature: kg m^2, inertia
            coupled to the pulley by a gear.
    """

    name: str
    carrier: str
    at: NDArray[np.float64]
    block_axis: NDArray[np.float64]
    pulley_axis: NDArray[np.float64]
    radius: float
    anchor_body: str
    anchor: NDArray[np.float64]
    young: float
    cable_radius: float
    damping: float = 0.0
    variant: str = "epsilon"
    longest: float = np.inf
    strain: float = 0.0
    block: tuple[Primitive, ...] = field(default=())
    pulley: tuple[Primitive, ...] = field(default=())
    pulley_joint: str = ""
    block_resistance: Resistance | None = None
    pulley_resistance: Resistance | None = None
    pulley_armature: float = 0.0
    swivel: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))

    @property
    def joints(self) -> tuple[str, str, str]:
        """Names of the joints of block, pulley and cable."""
        return f"{self.name}-blockJt", self.pulley_joint or f"{self.name}-pulleyJt", f"{self.name}-involuteJt"

    def parts(self) -> tuple[list[Body], list[Joint], Loop, Cable | None]:
        """Bodies, joints from block to cable, loop, and elastic cable (None for the rigid variant)."""
        if self.variant not in VARIANTS:
            raise TensegrityError(f"cable {self.name}: variant {self.variant!r} is not one of {', '.join(VARIANTS)}.")
        name = self.name
        block, pulley, joint = self.joints
        turn, spin = self._frames()
        bodies = [
            body_from(f"{name}-block", self.block),
            body_from(f"{name}-pulley", self.pulley),
            Body(f"{name}-cable"),
        ]
        made = [
            Joint(block, "revolute", self.carrier, f"{name}-block", turn, resistance=_given(self.block_resistance)),
            Joint(
                pulley,
                "revolute",
                f"{name}-block",
                f"{name}-pulley",
                spin,
                resistance=_given(self.pulley_resistance),
                armature=self.pulley_armature,
            ),
            Joint(joint, f"involute_{self.variant}", f"{name}-pulley", f"{name}-cable", radius=self.radius),
        ]
        loop = Loop(f"{name}-loopJt", "point", self.anchor_body, f"{name}-cable", Frame(self.anchor))
        if self.variant == "rigid":
            return bodies, made, loop, None
        area = np.pi * self.cable_radius**2
        return bodies, made, loop, Cable(name, joint, area, self.young, self.damping, self.longest)

    def _frames(self) -> tuple[Frame, Frame]:
        """Frames of the block on its carrier, and of the pulley in the block."""
        block_axis, pulley_axis = _unit(self.block_axis), _unit(self.pulley_axis)
        skew = float(block_axis @ pulley_axis)
        square = float(np.sqrt(max(0.0, 1.0 - skew * skew)))
        if square < LEAST_SQUARE:
            raise TensegrityError(
                f"cable {self.name}: the pulley axis lies along the block axis, so that the block cannot turn the "
                "pulley towards its anchor; turn one of them."
            )
        if abs(skew) < 1e-9:
            skew, square = 0.0, 1.0
        y = (pulley_axis - skew * block_axis) / square
        turn = Frame(self.at, np.column_stack((np.cross(y, block_axis), y, block_axis)))
        axes = np.array([[0.0, 1.0, 0.0], [-skew, 0.0, square], [square, 0.0, skew]])
        return turn, Frame(turn.axes.T @ np.asarray(self.swivel, dtype=np.float64), axes)

    def start(self, target: NDArray[np.float64]) -> tuple[float, float, NDArray[np.float64]]:
        """Block angle [rad], pulley angle [rad] and involute position for an anchor at target (3,) m in carrier axes.

        Raises:
            TensegrityError: the anchor lies within the pulley, or the cable is too short.
        """
        turn, spin = self._frames()
        x, y, z = turn.axes.T @ (np.asarray(target, dtype=np.float64) - turn.origin)
        square, skew = spin.axes[1, 2], spin.axes[2, 2]
        # The block turns by the smaller angle that brings the anchor into the plane of the pulley.
        arm = float(np.hypot(x, y))
        across = spin.origin[1] - skew / square * (z - spin.origin[2])
        if abs(across) > arm * (1.0 + 1e-12) + 1e-12:
            raise TensegrityError(
                f"cable {self.name}: however its block turns, its anchor stays {abs(across) - arm:.4g} m away from the "
                "pulley's plane; move the anchor, the swivel or the pulley's axis."
            )
        lean = float(np.arcsin(np.clip(across / arm, -1.0, 1.0))) if arm else 0.0
        angles = np.arctan2(y, x) - np.array([lean, np.pi - lean])
        angles -= 2.0 * np.pi * np.round(angles / (2.0 * np.pi))
        block = float(angles[np.argmin(np.abs(angles))]) if arm else 0.0
        c, s = np.cos(block), np.sin(block)
        local = spin.axes.T @ (np.array([c * x + s * y, c * y - s * x, z]) - spin.origin)
        z, reach = float(local[0]), float(local[1])
        distance = float(np.hypot(reach, z))
        if distance <= self.radius:
            raise TensegrityError(
                f"cable {self.name}: its anchor is {distance:.4g} m from the pulley's centre, within the pulley radius "
                f"{self.radius:.4g} m; move the anchor or the pulley."
            )
        length = float(np.sqrt(distance**2 - self.radius**2))
        # In the plane of the pulley, x is the block axis and y is `side`.
        leaving = np.arctan2(reach, z) - np.arctan2(self.radius, length)
        rest = length / (1.0 + self.strain)
        if rest > self.longest:
            raise TensegrityError(
                f"cable {self.name}: {rest:.4g} m would have to be unwound, but it is only {self.longest:.4g} m long."
            )
        angle = rest / self.radius
        second = {"rigid": [], "u": [length - rest], "epsilon": [self.strain], "length": [length]}[self.variant]
        return float(block), float(leaving - angle), np.array([angle, *second])


def _given(resistance: Resistance | None) -> tuple[Resistance, ...]:
    return () if resistance is None else (resistance,)


def _unit(vector: NDArray[np.float64]) -> NDArray[np.float64]:
    array = np.asarray(vector, dtype=np.float64)
    return array / np.linalg.norm(array)
