"""One trajectory with the real nodes in lock-step: simulator, controller and, optionally, observer.

The simulation starts paused, the trajectory is sent by the action, then the simulation runs; all states and commands
are stored. The result is independent of the speed of the computer, so that two runs are equal bit for bit.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tensegrity_dynamics.errors import TensegrityError

from .closed_loop import TrajectoryRun, Waypoint
from .node_graph import Watching, simulation_graph
from .processes import NodeProcesses, own_domain

PATIENCE = 600.0
"""Wall time without a new state after which a run fails [s]; longer than any planning."""


@contextmanager
def ros_domain() -> Iterator[None]:
    """Separate ROS domain for this process and its children."""
    before = dict(os.environ)
    os.environ.update(own_domain())
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def through_nodes(
    robot: Path | str,
    controller: str,
    waypoints: Sequence[Waypoint],
    *,
    period: float,
    time_step: float = 0.0,
    interpolation: str = "cubic",
    hold: float = 0.0,
    plant: Path | str | None = None,
    observer: bool = False,
    delay: int = 0,
    parameters: Mapping[str, Any] | None = None,
    composed: bool = False,
) -> TrajectoryRun:
    """Run one trajectory.

    Args:
        robot: robot of controller and observer. plant: robot of the simulator, if it differs.
        controller: name of the controller. waypoints: (time from the start [s], position, quaternion).
        period: control period [s]. time_step: longest step of the simulation [s]; 0: that of the robot.
        interpolation: interpolation of the action. hold: duration of holding after the end [s].
        observer: whether the state is estimated by the estimator node. delay: delay of commands [periods].
        parameters: further parameters of the controller. composed: whether the nodes share one process.

    Raises:
        TensegrityError: ROS is missing, a node ends, or the trajectory is refused.
    """
    with ros_domain():
        graph = simulation_graph(
            str(robot),
            controller=controller,
            state="observer" if observer else "truth",
            control_period=period,
            lockstep=True,
            watching=Watching(markers=False, view=False),
        )
        simulated = {"robot": str(plant or robot), "time_step": time_step, "command_delay": delay * period}
        graph = graph.with_parameters("simulator", paused=True, **simulated)
        graph = graph.with_parameters("controller", **(parameters or {}))
        graph = graph.as_composed() if composed else graph
        nodes = NodeProcesses()
        try:
            recorder = _Recorder(observer)
            try:
                nodes.start_all(graph)
                return recorder.run(nodes, waypoints, interpolation, hold)
            finally:
                recorder.close()
        finally:
            nodes.stop()


def _state(message: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, v and the output position of a StructureState."""
    position = message.output_pose.position
    return np.array(message.q), np.array(message.v), np.array((position.x, position.y, position.z))


class LockstepListener:
    """Node that stores all states and commands of a lock-step run, and waits while the run makes progress.

    Args:
        name: name of its node. of_truth: function that extracts the stored values from a state of the simulator.

    Attributes:
        node: the ROS node. truth, commands: stored states and commands by stamp [ns].
    """

    def __init__(self, name: str, of_truth: Callable[[Any], Any]) -> None:
        import rclpy
        from rclpy.node import Node
        from rclpy.qos import QoSProfile, ReliabilityPolicy
        from std_srvs.srv import SetBool
        from tensegrity.msg import ActuatorCommand, StructureState

        self._rclpy, self._set_bool = rclpy, SetBool
        rclpy.init()
        self.node = Node(name)
        self._every = QoSProfile(depth=10000, reliability=ReliabilityPolicy.RELIABLE)
        self.truth: dict[int, Any] = {}
        self.commands: dict[int, Any] = {}
        self.keep(StructureState, "simulator/truth", self.truth, of_truth)
        # a command without names only announces a session
        self.keep(
            ActuatorCommand, "actuator_command", self.commands, lambda each: np.array(each.value) if each.name else None
        )
        self._pause = self.node.create_client(SetBool, "simulator/set_paused")

    def keep(self, kind: Any, topic: str, kept: dict[int, Any], of: Callable[[Any], Any]) -> None:
        """Store the values that `of` extracts from the messages of a topic, by stamp; None is not stored."""

        def note(message: Any) -> None:
            value = of(message)
            if value is not None:
                kept[message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec] = value

        self.node.create_subscription(kind, topic, note, self._every)

    def ready(self) -> bool:
        """Whether simulator and controller publish and can be started."""
        return bool(self.truth and self.commands) and self._pause.service_is_ready()

    def set_going(self, nodes: NodeProcesses) -> None:
        """Start the paused simulation."""
        answer = self._pause.call_async(self._set_bool.Request(data=False))
        self.wait(nodes, answer.done)

    def wait(self, nodes: NodeProcesses, condition: Callable[[], Any]) -> None:
        """Wait for a condition.

        Raises:
            TensegrityError: a node ended, or no new state came for `PATIENCE`.
        """
        end, count = time.monotonic() + PATIENCE, len(self.truth)
        while not condition():
            self.spin()
            if len(self.truth) > count:  # progress
                end, count = time.monotonic() + PATIENCE, len(self.truth)
            for name, status in nodes.ended().items():
                raise TensegrityError(f"the {name} ended with status {status}: {nodes.last_words(name)}")
            if time.monotonic() > end:
                raise TensegrityError(f"nothing moves after {PATIENCE:g} s; the nodes are stuck.")

    def spin(self) -> None:
        """Process the next messages."""
        self._rclpy.spin_once(self.node, timeout_sec=0.05)

    def close(self) -> None:
        """Destroy the node and shut ROS down."""
        self.node.destroy_node()
        self._rclpy.try_shutdown()


class _Recorder(LockstepListener):
    """Sends the trajectory and stores the messages."""

    def __init__(self, observer: bool) -> None:
        from rclpy.action import ActionClient
        from tensegrity.action import FollowTrajectory
        from tensegrity.msg import StructureState, TendonState

        super().__init__("lockstep_run", _state)
        self._seen: dict[int, Any] = self.truth  # without an observer both are the message of the simulator
        self._tendons: dict[int, Any] = {}
        if observer:
            self._seen = {}
            self.keep(StructureState, "structure_state", self._seen, _state)
        self.keep(TendonState, "tendon_states", self._tendons, lambda message: np.array(message.tension))
        self._action_type = FollowTrajectory
        self._action = ActionClient(self.node, FollowTrajectory, "follow_trajectory")

    def run(
        self, nodes: NodeProcesses, waypoints: Sequence[Waypoint], interpolation: str, hold: float
    ) -> TrajectoryRun:
        """Wait for all nodes, send the trajectory, run, and return the result."""
        from tensegrity_dynamics.ros.geometry_messages import fill_pose

        self.wait(nodes, lambda: self.ready() and self._action.server_is_ready())
        goal = self._action_type.Goal(interpolation=interpolation, position_tolerance=1e3, orientation_tolerance=1e3)
        from builtin_interfaces.msg import Duration
        from geometry_msgs.msg import Pose

        for when, position, quaternion in waypoints:
            nanoseconds = round(1e9 * when)
            goal.time_from_start.append(Duration(sec=nanoseconds // 10**9, nanosec=nanoseconds % 10**9))
            goal.waypoint.append(fill_pose(Pose(), position, (0.0,) * 4 if quaternion is None else quaternion))
        asked = time.monotonic()
        sent = self._action.send_goal_async(goal)
        self.wait(nodes, sent.done)
        result = sent.result().get_result_async()
        first = max(self.truth)
        # planning precedes the answer; the controller reports its start by its reference, a refusal ends the action
        self.wait(nodes, lambda: result.done() or self._moving(nodes))
        if result.done():
            raise TensegrityError(f"the trajectory was refused: {result.result().result.reason}")
        began = time.monotonic()
        self.set_going(nodes)
        last = first + round(1e9 * (waypoints[-1][0] + hold))
        self.wait(nodes, lambda: all(last in each for each in (self.truth, self._seen, self._tendons)))
        wall = time.monotonic() - began
        return self._gathered(first, last, wall, began - asked)

    def _moving(self, nodes: NodeProcesses) -> bool:
        if not hasattr(self, "_phase"):
            from rclpy.qos import DurabilityPolicy, QoSProfile
            from tensegrity.msg import Reference

            self._phase = ""

            def keep(message: Any) -> None:
                self._phase = message.mode

            latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
            self.node.create_subscription(Reference, "reference", keep, latched)
        return self._phase == "moving"

    def _gathered(self, first: int, last: int, wall: float, planning: float) -> TrajectoryRun:
        for _ in range(100):  # messages of different topics may arrive in another order
            stamps = sorted(stamp for stamp in self.truth if first <= stamp <= last)
            missing = [s for s in stamps if s not in self._seen or s not in self._tendons]
            missing += [s for s in stamps[:-1] if s not in self.commands]
            if not missing:
                break
            self.spin()
        if missing:
            raise TensegrityError(f"{len(missing)} messages were lost in transit; run it again on a quieter machine.")
        q, v, poses = (np.array(each) for each in zip(*(self.truth[s] for s in stamps), strict=True))
        seen_q, seen_v, _ = (np.array(each) for each in zip(*(self._seen[s] for s in stamps), strict=True))
        return TrajectoryRun(
            1e-9 * (np.array(stamps) - first), q, v, poses, seen_q, seen_v,
            np.array([self.commands[s] for s in stamps[:-1]]), np.array([self._tendons[s] for s in stamps]), wall,
            planning,
        )  # fmt: skip
