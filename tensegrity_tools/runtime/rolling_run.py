"""Rolling of a free structure to goal positions, with the libraries or with the real nodes in lock-step.

With the nodes the goal is sent while the simulation is paused, so that two runs are equal bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tensegrity_control.controller import RobotState
from tensegrity_control.controllers.rolling import RollingController
from tensegrity_control.registry import make_controller
from tensegrity_control.rolling.roll_map import RollMap
from tensegrity_dynamics import Robot, Simulation
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.estimation import make_estimator
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.structures.estimation.rolling_estimator import RollingEstimator

from .lockstep_run import LockstepListener, ros_domain
from .node_graph import Watching, simulation_graph
from .processes import NodeProcesses

LONGEST = 600.0
"""Longest time for one goal, in the robot's time [s]."""


@dataclass(frozen=True, eq=False)
class Rolled:
    """Result for one goal position.

    Attributes:
        goal: (2,) goal position [m]. position, seen: (2,) true and estimated position at the end [m].
        rolls: number of rolls. duration: s. gave_up: reason of a failure, or "".
        path_length: length of the path of the output from rest to rest [m].
        work: positive work of the actuators, without recovered energy [J]. peak: largest tension of the actuators [N].
    """

    goal: Array
    position: Array
    seen: Array
    rolls: int
    duration: float
    gave_up: str
    path_length: float
    work: float = 0.0
    peak: float = 0.0

    @property
    def error(self) -> float:
        """Distance from the true position to the goal [m]."""
        return float(np.linalg.norm(self.position - self.goal))


class RollingLoop:
    """Simulation, controller and, optionally, estimator in one process.

    Args:
        robot: model of controller and estimator. plant: simulated robot, if it differs from `robot`.
        sees: state source: "truth", or "rest" for the estimator, which also uses the IMUs of the plant.
        period: control period [s]. rolls: `RollMap` of the same robot with computed rolls, for reuse.
        controller: name of a rolling controller. parameters: its parameters.
    """

    def __init__(
        self, robot: Robot, *, plant: Robot | None = None, sees: str = "truth", period: float = 0.02,
        rolls: RollMap | None = None, controller: str = "rolling", **parameters: Any,
    ) -> None:  # fmt: skip
        natural = Simulation(plant or robot, integrator="rattle")
        self._steps, self._period = max(1, int(np.ceil(period / natural.time_step - 1e-9))), period
        self.simulation = Simulation(plant or robot, period / self._steps, "rattle")
        made = make_controller(controller, robot, **parameters)
        if not isinstance(made, RollingController):
            raise TensegrityError(f"controller {controller} does not roll; name rolling or rolling_mpc.")
        self.controller: RollingController = made
        if rolls is not None:
            self.controller.rolls = rolls
        self._estimator = None if sees == "truth" else make_estimator(robot)
        self._ticks, self.seen, self.work, self.peak, self._wound = 0, np.zeros(2), 0.0, 0.0, 0.0
        self.controller.reset(0.0, self._look())

    def _look(self) -> RobotState:
        seen = self.simulation.observe()
        positions = np.array(list(seen.positions.values()))
        wound = self.simulation.energy().actuators
        self.work += max(0.0, wound - self._wound)
        self.peak, self._wound = max(self.peak, *seen.efforts.values()), wound
        nodes, pose = self.simulation.state.nodes, seen.pose
        if self._estimator is not None:
            if isinstance(self._estimator, RollingEstimator):
                for rod in seen.imus.keys() & set(self._estimator.readings.names):
                    self._estimator.readings.take(rod, seen.imus[rod], self._ticks * self._period)
            estimate = self._estimator.update(self._ticks * self._period, seen.positions)
            nodes, pose = (estimate.configuration if estimate.converged else None), estimate.pose
        self.seen = np.array(pose[0][:2])
        return RobotState(positions=positions, nodes=nodes, pose=pose)

    @property
    def position(self) -> Array:
        """(2,) true position of the output [m]."""
        return np.array(self.simulation.observe().pose[0][:2])

    def step(self) -> None:
        """Simulate one control period."""
        command = self.controller.command(self._ticks * self._period, self._look())
        self.simulation.command("position", command.set_points())
        self.simulation.advance(self._steps)
        self._ticks += 1

    def go(self, position: Array) -> Rolled:
        """Roll to a position (2,) [m]. Raises TensegrityError if the goal is refused."""
        control, start = self.controller, self._ticks
        before, made, last = self.position, control.done, self.position
        control.set_goal(self._ticks * self._period, np.append(position, 0.0))
        path_length, self.work, self.peak = 0.0, 0.0, 0.0
        while control.status(self._ticks * self._period).phase == "moving":
            if (self._ticks - start) * self._period > LONGEST:
                raise TensegrityError(f"it still rolls after {LONGEST:g} s.")
            rolls = control.done
            self.step()
            if control.done > rolls:
                path_length += float(np.linalg.norm(self.position - last))
                last = self.position
        self._look()
        status = control.status(self._ticks * self._period)
        return Rolled(
            np.asarray(position, dtype=np.float64), self.position, self.seen, control.done - made,
            (self._ticks - start) * self._period, "; ".join(status.relaxed),
            path_length or float(np.linalg.norm(self.position - before)), self.work, self.peak,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class NodesRun:
    """Result with the nodes, for every period: stamps (k,) [ns], nodes (k, n, 3) [m] and commands (k, a) [m]."""

    stamps: Array
    nodes: Array
    commands: Array
    accepted: str


def roll_through_nodes(robot: Path | str, position: Array, *, duration: float) -> NodesRun:
    """Roll to a position (2,) [m] in lock-step with the true state, for `duration` s of the robot's time.

    Raises:
        TensegrityError: ROS is missing, a node ends, or the goal is refused.
    """
    with ros_domain():
        watching = Watching(markers=False, view=False)
        graph = simulation_graph(str(robot), controller="rolling", state="truth", lockstep=True, watching=watching)
        graph = graph.with_parameters("simulator", paused=True)
        nodes, listener = NodeProcesses(), None
        try:
            listener = _Listener()
            nodes.start_all(graph)
            return listener.run(nodes, position, duration)
        finally:
            if listener is not None:
                listener.close()
            nodes.stop()


def _nodes(message: Any) -> Array:
    """(n, 3) node positions of a StructureState [m]."""
    return np.array(message.node_position).reshape(-1, 3)


class _Listener(LockstepListener):
    """Sends the goal and stores the messages."""

    def __init__(self) -> None:
        from tensegrity.srv import SetGoalPose

        super().__init__("rolling_run", _nodes)
        self._goal_type = SetGoalPose
        self._goal = self.node.create_client(SetGoalPose, "set_goal_pose")

    def run(self, nodes: NodeProcesses, position: Array, duration: float) -> NodesRun:
        """Wait for all nodes, send the goal, run, and return the stored messages."""
        self.wait(nodes, lambda: self.ready() and self._goal.service_is_ready())
        request = self._goal_type.Request()
        request.target.pose.position.x, request.target.pose.position.y = float(position[0]), float(position[1])
        sent = self._goal.call_async(request)
        self.wait(nodes, sent.done)
        answer = sent.result()
        if not answer.accepted:
            raise TensegrityError(answer.reason)
        self.set_going(nodes)
        last = round(1e9 * duration)
        self.wait(nodes, lambda: max(self.truth) >= last and max(self.commands) >= last)
        stamps = sorted(stamp for stamp in self.truth if stamp <= last)
        lost = [stamp for stamp in stamps if stamp not in self.commands]
        if lost:
            raise TensegrityError(f"{len(lost)} messages were lost in transit; run it again on a quieter machine.")
        return NodesRun(
            np.array(stamps), np.array([self.truth[each] for each in stamps]),
            np.array([self.commands[each] for each in stamps]), answer.reason,
        )  # fmt: skip
