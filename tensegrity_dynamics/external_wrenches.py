"""Wrenches that others put on a robot while it is simulated: which of them count, and how long.

Each names the body or node that it acts on, at its origin, in world axes, and carries the time at which it was right.
It acts until the next one for the same body, or until it is `patience` old: who pushes on sends on. So a sender that
dies does not push for ever.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import CommandRefused, unknown_name


def check_stamp(what: str, stamp: float, now: float, patience: float) -> None:
    """Raise CommandRefused where what was right at `stamp` [s] is older than `patience` [s], or of the future."""
    if not np.isfinite(stamp) or now - stamp > patience:
        raise CommandRefused(
            f"{what} is of {stamp:.3f} s, {now - stamp:.3f} s ago, and counts for {patience:g} s; "
            "stamp it with the time of the robot's states."
        )
    if stamp - now > patience:
        raise CommandRefused(f"{what} is of {stamp:.3f} s, which is still to come (now {now:.3f} s).")


class ExternalWrenches:
    """The wrenches in force on one robot.

    Args:
        names: what can be pushed. takes_moments: whether that are bodies, not nodes. patience: s.
    """

    def __init__(self, names: Sequence[str], takes_moments: bool, patience: float = 0.5) -> None:
        self._names, self._takes_moments, self.patience = tuple(names), takes_moments, patience
        self._held: dict[str, tuple[float, NDArray[np.float64]]] = {}
        self._changed = False

    def take(self, name: str, force: ArrayLike, moment: ArrayLike, stamp: float, now: float) -> NDArray[np.float64]:
        """A wrench from now on; returns it, (6,) N and N m.

        Args:
            force, moment: (3,) N and N m in world axes. stamp: s, when it was right. now: s.

        Raises:
            CommandRefused: unknown name, numbers that are not finite, a moment on a node, too old, or of the future;
                the message names what it is for.
        """
        if name not in self._names:
            what = "body" if self._takes_moments else "node"
            raise CommandRefused(unknown_name(what, name, self._names))
        wrench = np.concatenate((np.asarray(force, dtype=np.float64), np.asarray(moment, dtype=np.float64)))
        if wrench.shape != (6,) or not np.isfinite(wrench).all():
            raise CommandRefused(f"{name}: the wrench is not finite; give numbers in N and N m.")
        if wrench[3:].any() and not self._takes_moments:
            raise CommandRefused(f"{name}: it is a node, on which no moment can act; give a force alone.")
        check_stamp(f"{name}: the wrench", stamp, now, self.patience)
        self._held[name] = (stamp, wrench)
        self._changed = True
        return wrench

    def changed(self, now: float) -> dict[str, NDArray[np.float64]] | None:
        """What acts at a time [s], as `Simulation.apply_forces` takes it, where that is new; else None."""
        # of the future: the clock has gone back since
        old = [name for name, (stamp, _) in self._held.items() if abs(now - stamp) > self.patience]
        for name in old:
            del self._held[name]
        if not (old or self._changed):
            return None
        self._changed = False
        return self.held

    @property
    def held(self) -> dict[str, NDArray[np.float64]]:
        """What acted when `changed` was last asked, in the same form."""
        return {name: wrench if self._takes_moments else wrench[:3] for name, (_, wrench) in self._held.items()}

    def forget(self) -> None:
        """None acts any more, and that is no news."""
        self._held, self._changed = {}, False
