"""From messages to the coordinates and tensions of a mechanism; needs no rclpy, because it only reads fields."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError
from ..robots.robot import Robot

UNIT_TOLERANCE = 1e-3  # of the length of a quaternion


class MechanismReader:
    """Reads StructureState and TendonState of one robot.

    Args:
        robot: a robot whose model is a mechanism.
    """

    def __init__(self, robot: Robot) -> None:
        model = robot.mechanism
        mechanism = model.mechanism
        self._name = robot.name
        self._coordinates = mechanism.coordinate_names()
        self._count = mechanism.position_count
        self._quaternions = [
            (joint.name, slice(mechanism.positions_of(joint.name).stop - 4, mechanism.positions_of(joint.name).stop))
            for joint in mechanism.joints
            if joint.kind in ("spherical", "floating")
        ]
        self._rows = {name: row for row, name in enumerate(model.cable_names)}
        for actuator in robot.actuators:  # cables may be listed by their actuators
            if actuator.drives in self._rows:
                self._rows.setdefault(actuator.name, self._rows[actuator.drives])
        self._cables = len(model.cable_names)
        self._known: tuple[str, ...] | None = None

    def shape(self, message: Any) -> NDArray[np.float64]:
        """q (nq,) of a StructureState.

        Raises:
            TensegrityError: the coordinates are not those of this robot, or their number is wrong, or a quaternion
                among them is not one.
        """
        names = tuple(message.coordinate_name)
        if names != self._known:
            self._check_names(names)
            self._known = names
        q = np.array(message.q, dtype=np.float64)
        if q.shape != (self._count,):
            raise TensegrityError(f"the state has {q.size} positions q, {self._name} has {self._count}.")
        for joint, at in self._quaternions:
            if abs(float(np.linalg.norm(q[at])) - 1.0) > UNIT_TOLERANCE:  # one that is not finite passes on to the node
                raise TensegrityError(
                    f"the state's quaternion of joint {joint} has length {np.linalg.norm(q[at]):.3g}."
                )
        return q

    def _check_names(self, names: tuple[str, ...]) -> None:
        if names == self._coordinates:
            return
        again = " Do all nodes run the same robot?"
        if not names:
            raise TensegrityError(f"the state lists no coordinates, {self._name} has {len(self._coordinates)}." + again)
        strange = [name for name in names if name not in self._coordinates]
        if strange:
            raise TensegrityError(f"{self._name} has no coordinate {strange[0]!r} that the state names." + again)
        missing = [name for name in self._coordinates if name not in names]
        if missing:
            raise TensegrityError(f"the state lacks the coordinates {', '.join(missing[:8])}." + again)
        raise TensegrityError(f"the state lists the coordinates of {self._name} in another order." + again)

    def tensions(self, message: Any | None, shape: NDArray[np.float64]) -> NDArray[np.float64]:
        """(c,) N by cable, as the TendonState says; NaN where nothing is known. Unknown names are passed over."""
        tensions = np.full(self._cables, np.nan)
        if message is not None:
            for name, tension in zip(message.name, message.tension, strict=False):
                row = self._rows.get(name)
                if row is not None:
                    tensions[row] = tension
        return tensions
