"""Layout of the states of a robot: names of nodes, bodies, coordinates and tendons, and their hash.

States are published often and the names never change. So the names are published once (topic `robot_layout`, latched),
and every state contains the hash. A receiver uses the hash to check that values and names belong together.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property

from ..errors import TensegrityError

DIGITS = 16
"""Number of hexadecimal digits of the hash in states: 64 bits, so that equal hashes of different layouts are
unlikely."""


@dataclass(frozen=True)
class RobotLayout:
    """Names of the entries of the states of a robot, each list in the order of the values; a list can be empty.

    Attributes:
        kind: kind of the robot, such as "structure".
        node_name: names for positions and velocities of nodes. body_name: names for poses and twists.
        coordinate_name: names for the velocities v. tendon_name: names for tensions.
    """

    kind: str
    node_name: tuple[str, ...] = ()
    body_name: tuple[str, ...] = ()
    coordinate_name: tuple[str, ...] = ()
    tendon_name: tuple[str, ...] = ()

    @cached_property
    def hash(self) -> str:
        """First 16 hexadecimal digits of the SHA-256 of the JSON text of [kind, node_name, body_name, coordinate_name,
        tendon_name], without blanks and in ASCII. Stiffness, masses and the name of the robot have no effect."""
        fields = [self.kind, self.node_name, self.body_name, self.coordinate_name, self.tendon_name]
        return hashlib.sha256(json.dumps(fields, separators=(",", ":")).encode()).hexdigest()[:DIGITS]

    def check(self, found: str, robot: str = "") -> None:
        """Check that a state with the hash `found` has this layout.

        Args:
            found: hash of the state. robot: name of the robot for the message.

        Raises:
            TensegrityError: the hash differs.
        """
        if found != self.hash:
            raise TensegrityError(
                f"the state has the layout {found[:DIGITS]!r}, {robot or 'this robot'} has {self.hash!r}: its numbers "
                "belong to other names. Do all nodes run the same robot?"
            )
