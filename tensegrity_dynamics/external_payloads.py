"""External payloads that are attached, moved and removed by messages at run time, in simulations and estimators.

Each body or node can carry one external payload, in addition to the payloads of the robot file, until the next message
for it. A message with mass zero removes the payload.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from .errors import CommandRefused, TensegrityError, unknown_name
from .external_wrenches import check_stamp
from .robots.carried_payload import CarriedPayload
from .robots.robot import Robot


class Carrier(Protocol):
    """Interface of objects that support payloads of one robot."""

    robot: Robot

    def attach(self, name: str, body: str, mass: float, at: ArrayLike, inertia: ArrayLike) -> object:
        """Attach a payload to a body or node, in place of the payload with this name."""

    def detach(self, name: str) -> object:
        """Remove the payload with this name."""


class ExternalPayloads:
    """External payloads of one robot.

    Args:
        carrier: simulation or estimator of the robot, or object that stores the payloads for its controller.
        patience: largest age of a message [s].

    Attributes:
        carried: payloads by body or node.
    """

    def __init__(self, carrier: Carrier, patience: float = 0.5) -> None:
        self._carrier, self.patience = carrier, patience
        self.carried: dict[str, CarriedPayload] = {}
        self._heard: set[str] = set()  # bodies or nodes with a received message

    def take(self, name: str, mass: float, at: ArrayLike, inertia: ArrayLike, stamp: float, now: float) -> None:
        """Attach a payload to a body or node in place of its external payload; mass zero removes it.

        Args:
            mass: mass [kg]. at: (3,) centre of mass in the frame of the body [m].
            inertia: (3, 3) inertia about the centre of mass, in axes of the body [kg m^2].
            stamp: time of the message [s]. now: present time [s].

        Raises:
            CommandRefused: the name is unknown, a number is not finite or negative, the inertia is not physically
                possible, the message is too old or from the future, or the robot does not support payloads; the message
                contains the name.
        """
        model = self._carrier.robot.model
        if name not in model.load_names:
            raise CommandRefused(unknown_name("body" if model.takes_moments else "node", name, model.load_names))
        check_stamp(f"{name}: the payload", stamp, now, self.patience)
        numbers = np.concatenate([np.ravel(np.asarray(each, dtype=np.float64)) for each in (mass, at, inertia)])
        if not np.isfinite(numbers).all():
            raise CommandRefused(f"{name}: the payload is not finite; give numbers in kg, m and kg m^2.")
        key = f"from outside, on {name}"
        try:
            if mass != 0.0:
                self._carrier.attach(key, name, mass, at, inertia)
                x, y, z = (float(each) for each in np.asarray(at))
                xx, xy, xz, yy, yz, zz = np.asarray(inertia, dtype=np.float64)[np.triu_indices(3)].tolist()
                self.carried[name] = CarriedPayload(name, float(mass), (x, y, z), (xx, xy, xz, yy, yz, zz))
            elif name in self.carried:
                self._carrier.detach(key)
                del self.carried[name]
        except TensegrityError as error:
            raise CommandRefused(str(error)) from None
        self._heard.add(name)

    def begin_with(self, carried: Iterable[CarriedPayload], now: float) -> tuple[CarriedPayload, ...]:
        """Attach the payloads that the robot carried before this object received messages.

        Bodies with a received message are not changed.

        Args:
            carried: payloads from an object that received all messages. now: present time [s].

        Returns:
            The attached payloads.

        Raises:
            CommandRefused: as `take`.
        """
        new = tuple(each for each in carried if each.name not in self._heard)
        for name, mass, centre, (xx, xy, xz, yy, yz, zz) in new:
            self.take(name, mass, centre, ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)), now, now)
        return new

    @property
    def words(self) -> str:
        """Text on all payloads, for users and for commands that wait for their payload."""
        return "; ".join(payload_words(*each[:3]) for each in self.carried.values()) or "none"

    def forget(self) -> None:
        """Delete all payloads after a reset of the carrier, which removes them."""
        self.carried.clear()
        self._heard.clear()


def payload_words(name: str, mass: float, at: ArrayLike) -> str:
    """Text for diagnostics on a payload with a mass [kg] at (3,) [m] of a body or node."""
    where = np.asarray(at, dtype=np.float64)
    x, y, z = (float(each) + 0.0 for each in where)
    return f"{name}: {mass:g} kg" + (f" at {x:g}, {y:g}, {z:g} m" if math.hypot(x, y, z) else "")
