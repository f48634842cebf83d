"""States of a mechanism as records: coordinates, and poses of its bodies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import TensegrityError
from ..numerics.types import Array
from ..robots.layout import RobotLayout
from ..robots.model import Pose
from ..robots.robot import Robot
from ..robots.state_record import ConfigurationState, DecodedState, StateCodec, StateRecord
from .body_poses import BodyPoses
from .joint_coordinates import QUATERNION_KINDS
from .mechanism_model import MechanismModel

UNIT_TOLERANCE = 1e-3
"""Tolerance of the norm of a quaternion."""


class MechanismCodec(StateCodec):
    """Codec for q (nq,) and v (nv,) with the names of the coordinates, and with poses and twists of the bodies.

    Args:
        robot: robot whose model is a mechanism.
    """

    def __init__(self, robot: Robot) -> None:
        model = robot.model_as(MechanismModel)
        mechanism = model.mechanism
        self._name = robot.name
        self._bodies, self._poses = model.body_names, BodyPoses(model)
        self._coordinates = mechanism.coordinate_names()
        self._sizes = mechanism.position_count, mechanism.velocity_count
        self._quaternions = [
            (joint.name, slice(mechanism.positions_of(joint.name).stop - 4, mechanism.positions_of(joint.name).stop))
            for joint in mechanism.joints
            if joint.kind in QUATERNION_KINDS
        ]
        self._rows = {name: row for row, name in enumerate(model.tension_names)}
        for actuator in robot.actuators:  # cables can also be listed by the names of their actuators
            if actuator.drives in self._rows:
                self._rows.setdefault(actuator.name, self._rows[actuator.drives])
        self._cables = len(model.tension_names)
        self._checked: tuple[str, ...] | None = None
        self._frame: Any = robot.outputs[0] if robot.outputs else None
        self._output = "" if self._frame is None else self._frame.name
        self.layout: RobotLayout = RobotLayout(
            model.kind, (), tuple(self._bodies), tuple(self._coordinates), tuple(model.tension_names)
        )

    def encode(self, state: ConfigurationState, pose: Pose | None = None, twist: Array | None = None) -> StateRecord:
        """Record of q (nq,) and v (nv,)."""
        poses = self._poses.update(state.configuration, state.velocity)
        if pose is None and self._frame is not None:
            pose, twist = poses.output(self._frame)
        return StateRecord(
            body_name=self._bodies, body_position=poses.positions, body_quaternion=poses.quaternions,
            body_twist=poses.twists, coordinate_name=self._coordinates, q=state.configuration, v=state.velocity,
            output_name=self._output, output_pose=pose, output_twist=twist,
            layout=self.layout.hash,
        )  # fmt: skip

    def decode(self, record: StateRecord) -> DecodedState:
        """q (nq,) and v (nv,); v is zero if the record has no velocities.

        Raises:
            TensegrityError: the coordinates are not those of this robot, their number is wrong, or a quaternion does
                not have unit norm.
        """
        names = tuple(record.coordinate_name)
        if names != self._checked:
            self._check_names(names)
            self._checked = names
        q, v = record.q, record.v
        if q.shape != (self._sizes[0],):
            raise TensegrityError(f"the state has {q.size} positions q, {self._name} has {self._sizes[0]}.")
        for joint, at in self._quaternions:
            size = math.hypot(*q[at].tolist())
            if abs(size - 1.0) > UNIT_TOLERANCE:  # a value that is not finite is handled by the node
                raise TensegrityError(f"the state's quaternion of joint {joint} has length {size:.3g}.")
        return DecodedState(q, v if v.size == self._sizes[1] else np.zeros(self._sizes[1]))

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

    def tensions(self, names: Sequence[str], tensions: Sequence[float], configuration: Array) -> Array:
        """(c,) tensions [N] by cable from the record; NaN for cables without a value."""
        found = np.full(self._cables, np.nan)
        for name, tension in zip(names, tensions, strict=False):
            row = self._rows.get(name)
            if row is not None:
                found[row] = tension
        return found
