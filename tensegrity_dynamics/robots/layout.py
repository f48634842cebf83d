"""What the numbers of a robot's states belong to: names of nodes, bodies, coordinates and tendons, and their hash.

States are many and their names never change, so names are published once (`robot_layout`, latched) and every state
carries the hash. Whoever reads a state checks by it that numbers and names belong together.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property

from ..errors import TensegrityError

DIGITS = 16
"""Of the hash that states carry; 64 bits, so that two layouts that differ do not share one by chance."""


@dataclass(frozen=True)
class RobotLayout:
    """Names of what a robot's states count, each list in the order of its numbers; a list may be empty.

    Attributes:
        kind: of the robot, such as "structure". node_name: of positions and velocities of nodes. body_name: of poses
            and twists. coordinate_name: of the velocities v. tendon_name: of what carries tensions.
    """

    kind: str
    node_name: tuple[str, ...] = ()
    body_name: tuple[str, ...] = ()
    coordinate_name: tuple[str, ...] = ()
    tendon_name: tuple[str, ...] = ()

    @cached_property
    def hash(self) -> str:
        """First 16 hexadecimal digits of the SHA-256 of the JSON text of [kind, node_name, body_name, coordinate_name,
        tendon_name], without blanks and in ASCII. Stiffness, masses and the robot's name do not count."""
        fields = [self.kind, self.node_name, self.body_name, self.coordinate_name, self.tendon_name]
        return hashlib.sha256(json.dumps(fields, separators=(",", ":")).encode()).hexdigest()[:DIGITS]

    def check(self, found: str, robot: str = "") -> None:
        """Raises TensegrityError where a state with the hash `found` is not of this layout; robot: its name."""
        if found != self.hash:
            raise TensegrityError(
                f"the state has the layout {found[:DIGITS]!r}, {robot or 'this robot'} has {self.hash!r}: its numbers "
                "belong to other names. Do all nodes run the same robot?"
            )
