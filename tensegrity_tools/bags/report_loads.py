"""External loads in a bag for its report: carried payloads, and pushes while they act."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.errors import CommandRefused
from tensegrity_dynamics.external_payloads import payload_words
from tensegrity_dynamics.external_wrenches import ExternalWrenches
from tensegrity_dynamics.robots.carried_payload import CarriedPayload
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.visualization.picture import Picture, Snapshot

PAYLOAD, PUSH = 5, 6
"""Number of values at one time. Payload: centre (3,) [m], radius [m], mass [kg]. Push: point [m] and force [N] (3,)."""


class ReportLoads:
    """Loads of one bag; messages are added in their order, then the loads at any time can be queried.

    Args:
        robot: robot with the loads. patience: duration for which a push message acts, as in the recorded simulator [s].

    Attributes:
        carriers, pushed: bodies or nodes that carry a payload or are pushed at any time, in order of occurrence.
    """

    def __init__(self, robot: Robot, patience: float) -> None:
        self._rules = ExternalWrenches(robot.model.load_names, robot.model.takes_moments, patience)
        self._pushes: dict[str, list[tuple[float, NDArray[np.float64]]]] = {}
        self._carried: list[tuple[float, tuple[CarriedPayload, ...]]] = []

    @property
    def carriers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.name for _, carried in self._carried for each in carried))

    @property
    def pushed(self) -> tuple[str, ...]:
        return tuple(self._pushes)

    def push(self, now: float, message: Any) -> Iterator[dict[str, Any]]:
        """Add a geometry_msgs/WrenchStamped at a time [s]; yields an event if a push starts."""
        from tensegrity_dynamics.ros.geometry_messages import wrench_from_message

        name, force, moment, _ = wrench_from_message(message)
        try:
            wrench = self._rules.take(name, force, moment, now, now)
        except CommandRefused:
            return
        begins = not self._acting(name, now).any()
        self._pushes.setdefault(name, []).append((now, wrench))
        if begins and wrench.any():
            sizes = zip(np.linalg.norm(wrench.reshape(2, 3), axis=1).tolist(), ("N", "N m"), strict=True)
            text = " and ".join(f"{size:.3g} {unit}" for size, unit in sizes if size)
            yield {"at": now, "who": name, "level": "load", "text": f"pushed by {text}"}

    def carry(self, now: float, message: Any) -> Iterator[dict[str, Any]]:
        """Add a tensegrity/CarriedPayloads at a time [s]; yields an event for each body whose payload changes."""
        from tensegrity_dynamics.ros.geometry_messages import carried_from_message

        before = {each.name: each for each in self._now(now)}
        after = {each.name: each for each in carried_from_message(message)}
        self._carried.append((now, tuple(after.values())))
        for name in [*after, *(before.keys() - after.keys())]:
            if after.get(name) != before.get(name):
                text = f"carries {payload_words(*after[name][:3])}" if name in after else "carries nothing more"
                yield {"at": now, "who": name, "level": "load", "text": text}

    def at(self, now: float, picture: Picture, snapshot: Snapshot) -> NDArray[np.float64]:
        """`PAYLOAD` values for each of `carriers`, then `PUSH` values for each of `pushed`; NaN without a load."""
        balls = {each.name: (*centre, radius, each.mass) for each, centre, radius in
                 picture.payload_balls(snapshot, self._now(now))}  # fmt: skip
        values = [*(balls.get(each, [np.nan] * PAYLOAD) for each in self.carriers)]
        for name in self.pushed:
            pose, wrench = picture.carrier_pose(snapshot, name), self._acting(name, now)
            if pose is not None and wrench[:3].any():
                values.append((*pose[0], *wrench[:3]))
            else:
                values.append([np.nan] * PUSH)
        return np.concatenate(values) if values else np.zeros(0)

    def _now(self, now: float) -> tuple[CarriedPayload, ...]:
        k = bisect_right(self._carried, now, key=lambda each: each[0])
        return self._carried[k - 1][1] if k else ()

    def _acting(self, name: str, now: float) -> NDArray[np.float64]:
        pushes = self._pushes.get(name, [])
        k = bisect_right(pushes, now, key=lambda each: each[0])
        return pushes[k - 1][1] if k and now - pushes[k - 1][0] <= self._rules.patience else np.zeros(6)
