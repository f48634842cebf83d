"""States of a structure as records: nodes and their velocities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..errors import TensegrityError, unknown_name
from ..numerics.types import Array
from ..robots.layout import RobotLayout
from ..robots.model import Pose
from ..robots.robot import Robot
from ..robots.state_record import ConfigurationState, DecodedState, StateCodec, StateRecord
from .structure import Structure


class StructureCodec(StateCodec):
    """Codec for nodes (n, 3) [m] and velocities (n, 3) [m/s] by node name.

    Args:
        robot: robot whose model is a structure.
    """

    def __init__(self, robot: Robot) -> None:
        self._structure = structure = robot.model_as(Structure)
        self._rows = {name: row for row, name in enumerate(structure.member_names)}
        for actuator in robot.actuators:  # tendons can also be listed by the names of their actuators
            self._rows.setdefault(actuator.name, structure.member(actuator.drives))
        driven = robot.actuated_members() if robot.actuators else np.zeros(0, dtype=np.int64)
        self._passive = np.setdiff1d(np.flatnonzero(structure.unilateral), driven)
        self._order: dict[tuple[str, ...], NDArray[np.int64]] = {}
        self._output = robot.outputs[0].name if robot.outputs else ""
        self.layout: RobotLayout = RobotLayout(
            structure.kind, structure.node_names, tendon_name=structure.tension_names
        )

    def encode(self, state: ConfigurationState, pose: Pose | None = None, twist: Array | None = None) -> StateRecord:
        """Record of nodes (n, 3) [m] and velocities (n, 3) [m/s]."""
        return StateRecord(
            node_name=self._structure.node_names, node_position=state.configuration, node_velocity=state.velocity,
            output_name=self._output, output_pose=pose, output_twist=twist,
            layout=self.layout.hash,
        )  # fmt: skip

    def decode(self, record: StateRecord) -> DecodedState:
        """Nodes and velocities in the order of the structure.

        Raises:
            TensegrityError: the record lacks a node, or names one that this robot does not have.
        """
        names = tuple(record.node_name)
        order = self._order.get(names)
        if order is None:
            node_names = self._structure.node_names
            for name in names:
                if name not in node_names:
                    raise TensegrityError(unknown_name("node", name, node_names) + " Do all nodes run the same robot?")
            missing = [name for name in node_names if name not in names]
            if missing:
                raise TensegrityError(f"the state lacks the nodes {', '.join(missing)}.")
            order = np.array([names.index(name) for name in node_names], dtype=np.int64)
            self._order = {names: order}
        if len(record.node_position) != len(names):
            raise TensegrityError(f"the state lists {len(names)} nodes but {len(record.node_position)} positions.")
        still = len(record.node_velocity) != len(names)
        positions = record.node_position[order]
        return DecodedState(positions, np.zeros_like(positions) if still else record.node_velocity[order])

    def tensions(self, names: Sequence[str], tensions: Sequence[float], configuration: Array) -> Array:
        """(m,) tensions [N] by member: the given ones; for other springs and passive tendons from their elongation.

        Bars, and driven tendons that are not named, have the value NaN.
        """
        structure, rows = self._structure, self._passive
        found = np.full(len(structure.member_names), np.nan)
        ends = structure.members[rows]
        lengths = np.linalg.norm(configuration[ends[:, 0]] - configuration[ends[:, 1]], axis=1)
        found[rows] = structure.tensions_at(lengths, rows)
        for name, tension in zip(names, tensions, strict=False):
            row = self._rows.get(name)
            if row is not None:
                found[row] = tension
        return found
