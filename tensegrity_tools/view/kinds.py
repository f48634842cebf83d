"""What panel, plot and scene need to know of a robot, whether its model is a structure or a mechanism."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import viser
from numpy.typing import NDArray

from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel
from tensegrity_dynamics.robots.output_frame import Pose
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.visualization import mechanism_picture as mechanism_visual
from tensegrity_dynamics.visualization.structure_picture import (
    SLACK_SHARE,
    Sizes,
    least_ceiling,
    shows_mechanism,
    slack_members,
)

from .mechanism_scene import MechanismScene
from .robot_scene import RobotScene
from .state import ViewState

StructureEquilibrium = NDArray[np.float64]  # nodes (n, 3) m of a structure, q (nq,) of a mechanism


class Scene(Protocol):
    """A robot in the browser's three-dimensional scene.

    Attributes:
        sizes: radii that suit it. cell: m, of the ground.
    """

    sizes: Sizes
    cell: float

    def update(self, shape: StructureEquilibrium, tensions: NDArray[np.float64], ceiling: float) -> None:
        """Show a shape and tensions (m,) N, NaN where unknown, on a colour scale from 0 to ceiling [N]."""

    def pose(self, shape: StructureEquilibrium) -> Pose | None:
        """Pose of the output for a shape, None where there is no output."""

    def show_names(self, visible: bool) -> None:
        """Write names into the picture, or take them away."""


class Kind(Protocol):
    """One robot, as the view sees it.

    Attributes:
        names: (m,) what carries forces: members or cables.
        pulls: (m,) bool, which of them only pull.
        plotted: rows whose tension is worth a line over time.
        least: N, the smallest colour scale worth drawing.
        start: the shape before there is a state.
        labelled: what `Scene.show_names` names.
        attitude: whether the output has an orientation. turns: whether goals set it.
        corners: (k, 3) m, what is shown of the output, in its frame.
    """

    names: tuple[str, ...]
    pulls: NDArray[np.bool_]
    plotted: NDArray[np.int64]
    least: float
    start: StructureEquilibrium
    labelled: str
    attitude: bool
    turns: bool
    corners: NDArray[np.float64]

    def slack(self, tensions: NDArray[np.float64], ceiling: float) -> NDArray[np.bool_]:
        """(m,) bool: what pulls and is known to carry nothing."""

    def shape(self, state: ViewState) -> StructureEquilibrium:
        """The shape that a state says."""

    def check(self, state: ViewState) -> str | None:
        """Why the shape of a state cannot be drawn, or None where it can."""

    def scene(self, server: viser.ViserServer) -> Scene:
        """The robot in a new scene."""


class StructureKind:
    """A pin-jointed structure; its shape is its nodes. Raises TensegrityError for other robots."""

    def __init__(self, robot: Robot) -> None:
        structure = robot.structure
        self._robot = robot
        self.names = structure.member_names
        self.pulls = structure.unilateral
        self.plotted = robot.actuated_members() if robot.actuators else np.flatnonzero(structure.unilateral)
        self.least = least_ceiling(structure)
        self.start = np.array(structure.nodes)
        self.labelled = "nodes"
        self.attitude = self.turns = bool(robot.outputs) and len(robot.output.nodes) > 1
        self.corners = robot.output.points if robot.outputs else np.zeros((0, 3))

    def slack(self, tensions: NDArray[np.float64], ceiling: float) -> NDArray[np.bool_]:
        return slack_members(self._robot.structure, tensions, ceiling)

    def shape(self, state: ViewState) -> StructureEquilibrium:
        return np.asarray(state.nodes, dtype=np.float64)

    def check(self, state: ViewState) -> str | None:
        structure = self._robot.structure
        if state.nodes is None:
            return "it has no node positions"
        nodes = np.asarray(state.nodes)
        if nodes.shape != structure.nodes.shape:
            return f"node positions have shape {nodes.shape}, this robot needs {structure.nodes.shape}"
        if not np.all(np.isfinite(nodes)):
            row = int(np.argwhere(~np.isfinite(nodes))[0][0])
            return f"the position of node {structure.node_names[row]} is not finite"
        return None

    def scene(self, server: viser.ViserServer) -> Scene:
        return RobotScene(server, self._robot)


class MechanismKind:
    """A mechanism; its shape is its position q."""

    def __init__(self, robot: Robot) -> None:
        model = robot.model_as(MechanismModel)
        self._robot = robot
        self.names = model.cable_names
        self.pulls = np.ones(len(self.names), dtype=np.bool_)
        driven = {each.drives for each in robot.actuators}
        rows = [row for row, name in enumerate(self.names) if name in driven]
        self.plotted = np.array(rows or range(len(self.names)), dtype=np.int64)
        self.least = mechanism_visual.least_ceiling(model)
        self.start = np.array(model.start)
        self.labelled = "bodies and cables"
        self.attitude = bool(robot.outputs)
        self.turns = bool(robot.outputs) and any(axis.startswith("r") for axis in robot.output.controlled)
        self.corners = np.zeros((1, 3))

    def slack(self, tensions: NDArray[np.float64], ceiling: float) -> NDArray[np.bool_]:
        return np.asarray(tensions <= SLACK_SHARE * ceiling, dtype=np.bool_)

    def shape(self, state: ViewState) -> StructureEquilibrium:
        return np.asarray(state.q, dtype=np.float64)

    def check(self, state: ViewState) -> str | None:
        if state.q is None:
            return "it has no position q, by which a mechanism is drawn"
        q = np.asarray(state.q)
        if q.shape != self.start.shape:
            return f"q has shape {q.shape}, this robot needs {self.start.shape}"
        if not np.all(np.isfinite(q)):
            return f"q[{int(np.flatnonzero(~np.isfinite(q))[0])}] is not finite"
        return None

    def scene(self, server: viser.ViserServer) -> Scene:
        return MechanismScene(server, self._robot)


def kind_of(robot: Robot) -> Kind:
    """How the view sees a robot. Raises TensegrityError where it is neither a structure nor a mechanism."""
    return MechanismKind(robot) if shows_mechanism(robot) else StructureKind(robot)
