"""External wrenches on a simulated robot from messages: validity and duration.

Each message contains the body or node on which the wrench acts, at its origin, in world axes, and its time stamp. The
wrench acts until the next one for the same body, or until its age is `patience`; a longer wrench needs repeated
messages. So a wrench ends if its sender fails.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import CommandRefused, unknown_name


def check_stamp(what: str, stamp: float, now: float, patience: float) -> None:
    """Raise CommandRefused if a message with the time `stamp` [s] is older than `patience` [s], or from the future."""
    if not math.isfinite(stamp) or now - stamp > patience:
        raise CommandRefused(
            f"{what} is of {stamp:.3f} s, {now - stamp:.3f} s ago, and counts for {patience:g} s; "
            "stamp it with the time of the robot's states."
        )
    if stamp - now > patience:
        raise CommandRefused(f"{what} is of {stamp:.3f} s, which is still to come (now {now:.3f} s).")


class ExternalWrenches:
    """Active external wrenches on one robot.

    Args:
        names: names of the bodies or nodes. takes_moments: whether these are bodies, not nodes.
        patience: largest age of a wrench [s].
    """

    def __init__(self, names: Sequence[str], takes_moments: bool, patience: float = 0.5) -> None:
        self._names, self._takes_moments, self.patience = tuple(names), takes_moments, patience
        self._held: dict[str, tuple[float, NDArray[np.float64]]] = {}
        self._changed = False

    def take(self, name: str, force: ArrayLike, moment: ArrayLike, stamp: float, now: float) -> NDArray[np.float64]:
        """Set a wrench; returns it as (6,) [N and N m].

        Args:
            force, moment: (3,) [N and N m] in world axes. stamp: time of the message [s]. now: present time [s].

        Raises:
            CommandRefused: the name is unknown, a number is not finite, a moment acts on a node, or the message is too
                old or from the future; the message contains the name.
        """
        if name not in self._names:
            what = "body" if self._takes_moments else "node"
            raise CommandRefused(unknown_name(what, name, self._names))
        wrench = np.array((*force, *moment), dtype=np.float64)  # type: ignore[misc]
        if wrench.shape != (6,) or not all(map(math.isfinite, wrench.tolist())):
            raise CommandRefused(f"{name}: the wrench is not finite; give numbers in N and N m.")
        if not self._takes_moments and wrench[3:].any():
            raise CommandRefused(f"{name}: it is a node, on which no moment can act; give a force alone.")
        check_stamp(f"{name}: the wrench", stamp, now, self.patience)
        self._held[name] = (stamp, wrench)
        self._changed = True
        return wrench

    def changed(self, now: float) -> dict[str, NDArray[np.float64]] | None:
        """Active wrenches at a time [s] in the form of `Simulation.apply_forces` if they have changed; else None."""
        # stamps in the future: the clock was set back
        old = [name for name, (stamp, _) in self._held.items() if abs(now - stamp) > self.patience]
        for name in old:
            del self._held[name]
        if not (old or self._changed):
            return None
        self._changed = False
        return self.held

    @property
    def held(self) -> dict[str, NDArray[np.float64]]:
        """Active wrenches at the last call of `changed`, in the same form."""
        return {name: wrench if self._takes_moments else wrench[:3] for name, (_, wrench) in self._held.items()}

    def forget(self) -> None:
        """Delete all wrenches without reporting a change."""
        self._held, self._changed = {}, False
