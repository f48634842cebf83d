"""Payloads that others put on a robot while it runs, move there and take off again: in simulations and in estimators.

Each body or node carries one of them, beside the payloads of the robot file, until the next message for it: one of mass
zero takes it off.
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
    """Whoever reckons with payloads of one robot."""

    robot: Robot

    def attach(self, name: str, body: str, mass: float, at: ArrayLike, inertia: ArrayLike) -> object:
        """A payload of a body or node, in place of the one of that name."""

    def detach(self, name: str) -> object:
        """The payload of that name is there no more."""


class ExternalPayloads:
    """What others have put on one robot.

    Args:
        carrier: simulation or estimator of the robot, or who keeps them for its controller. patience: s for which a
            message counts.

    Attributes:
        carried: by body or node.
    """

    def __init__(self, carrier: Carrier, patience: float = 0.5) -> None:
        self._carrier, self.patience = carrier, patience
        self.carried: dict[str, CarriedPayload] = {}
        self._heard: set[str] = set()  # bodies or nodes that a message was for

    def take(self, name: str, mass: float, at: ArrayLike, inertia: ArrayLike, stamp: float, now: float) -> None:
        """Put a payload on a body or node in place of the one that it has from here; mass zero takes that off.

        Args:
            mass: kg. at: (3,) m, its centre of mass in the frame of the body. inertia: (3, 3) kg m^2 about that, in
                axes of the body. stamp: s, when it was right. now: s.

        Raises:
            CommandRefused: unknown name, numbers that are not finite or below zero, an inertia that no body has, too
                old or of the future, or a robot that carries none; the message names what it is for.
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
        """Put on what the robot carried before anybody listened here; bodies that a message was for keep what it said.

        Args:
            carried: as `carried` of who heard all of them. now: s.

        Returns:
            those that were put on.

        Raises:
            CommandRefused: as `take`.
        """
        new = tuple(each for each in carried if each.name not in self._heard)
        for name, mass, centre, (xx, xy, xz, yy, yz, zz) in new:
            self.take(name, mass, centre, ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)), now, now)
        return new

    @property
    def words(self) -> str:
        """All of them for people, and for commands that wait until theirs is there."""
        return "; ".join(payload_words(*each[:3]) for each in self.carried.values()) or "none"

    def forget(self) -> None:
        """The carrier was reset, which takes them all off."""
        self.carried.clear()
        self._heard.clear()


def payload_words(name: str, mass: float, at: ArrayLike) -> str:
    """How diagnostics say a payload of a mass [kg] at (3,) m of a body or node."""
    where = np.asarray(at, dtype=np.float64)
    x, y, z = (float(each) + 0.0 for each in where)
    return f"{name}: {mass:g} kg" + (f" at {x:g}, {y:g}, {z:g} m" if math.hypot(x, y, z) else "")
