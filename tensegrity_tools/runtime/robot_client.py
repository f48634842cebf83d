"""ROS node for commands: subscribes to the topics of the robot and calls its services."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import InertiaStamped, WrenchStamped
from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.msg import ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from std_srvs.srv import SetBool, Trigger
from tensegrity.msg import Reference, RobotLayout, StructureState, TendonState
from tensegrity.srv import SetGoalPose

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robots.output_frame import Pose
from tensegrity_dynamics.ros.geometry_messages import fill_pose, seconds, state_pose
from tensegrity_dynamics.ros.robot_node import ANSWERED, LATCHED, handle_waiting

PLANNING = 120.0
"""Longest wall time for planning [s]."""
EVERY = QoSProfile(depth=200, reliability=ReliabilityPolicy.BEST_EFFORT)
REFERENCES = 2000
"""Number of last references whose phases are stored."""
MISSED = "no command from"
"""Start of the sentence with which simulator and driver report missing commands of a controller."""
GONE = 15.0
"""Wall time without a state, or without the node that is to answer, after which a robot counts as gone [s]; longer than
the 10 s after which a controller ends a motion itself."""
SETTLED, SILENCE = 1.5, 6.0
"""Wall time without a new node after which all nodes count as discovered, and longest wait for this [s]."""
WATCH = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
BETWEEN = 0.01
"""Shortest wall time between two checks for messages [s]. Without it the client would wake up for every state of a
lock-step run, and take processor time from the nodes."""


def goal_request(position: Any, quaternion: Any | None, duration: float, frame: str = "world") -> SetGoalPose.Request:
    """A request for a position (3,) m, and a quaternion wxyz or None to keep the orientation; duration in s."""
    turn = SetGoalPose.Request.KEEP if quaternion is None else SetGoalPose.Request.SET
    request = SetGoalPose.Request(duration=float(duration), orientation=turn)
    request.target.header.frame_id = frame
    fill_pose(request.target.pose, position, (1.0, 0.0, 0.0, 0.0) if quaternion is None else quaternion)
    return request


class Watcher:
    """Latest messages of the robot, and service calls that wait for the answer. The node spins only during waits.

    Attributes:
        lowest: smallest tension [N] and its time [s] by tendon, since `forget`.
        missed: report of simulator or driver about a missing command since `forget`; "" if there was none.

    Args:
        check: function that is called repeatedly during waits; an exception from it ends the wait. namespace: namespace
            of the nodes of the robot.
    """

    def __init__(
        self, name: str = "tensegrity_command", check: Callable[[], None] = lambda: None, namespace: str = ""
    ) -> None:
        # the signal handlers of rclpy would shut the context down in another thread, during a call
        rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
        self._check = check
        self.node = Node(name, namespace=namespace)
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self.node)
        self._looked = 0.0
        self.truth: StructureState | None = None
        self.estimate: StructureState | None = None
        self.layout: RobotLayout | None = None
        self.tendons: TendonState | None = None
        self.diagnostics: dict[str, DiagnosticStatus] = {}
        self._marks: list[tuple[float, float]] = []
        self._there = self._spun = time.monotonic()
        self._states = self._states_then = 0
        self.lowest: dict[str, tuple[float, float]] = {}
        self.missed = ""
        self.node.create_subscription(StructureState, "simulator/truth", self._keep_truth, WATCH)
        self.node.create_subscription(StructureState, "structure_state", self._keep_estimate, WATCH)
        self.node.create_subscription(RobotLayout, "robot_layout", self._keep_layout, LATCHED)
        self.node.create_subscription(TendonState, "tendon_states", self._keep_tendons, EVERY)
        self.node.create_subscription(DiagnosticArray, "/diagnostics", self._keep_diagnostics, QoSProfile(depth=20))
        self._clients: dict[str, Any] = {
            "set_goal_pose": self.node.create_client(SetGoalPose, "set_goal_pose"),
            **{
                name: self.node.create_client(Trigger, name)
                for name in ("hold", "stop", "call_off", "emergency_stop", "driver/release", "simulator/release")
            },
            "simulator/set_paused": self.node.create_client(SetBool, "simulator/set_paused"),
            "simulator/set_parameters": self.node.create_client(SetParameters, "simulator/set_parameters"),
        }
        self._phases: list[tuple[float, str]] = []  # time [s] and phase of the controller of the last references

    # -- listening ------------------------------------------------------------------------------------------------

    def _keep_truth(self, message: StructureState) -> None:
        self.truth = message
        self._states += 1
        now = time.monotonic()
        self._marks.append((now, seconds(message.header.stamp)))
        while now - self._marks[0][0] > 2.0:
            self._marks.pop(0)

    def _keep_estimate(self, message: StructureState) -> None:
        self.estimate = message
        self._states += 1

    def _keep_layout(self, message: RobotLayout) -> None:
        self.layout = message

    def _keep_tendons(self, message: TendonState) -> None:
        self.tendons = message
        now = seconds(message.header.stamp)
        for name, tension in zip(message.name, message.tension, strict=False):
            if tension < self.lowest.get(name, (np.inf, 0.0))[0]:  # false for NaN
                self.lowest[name] = (tension, now)

    def _keep_diagnostics(self, message: DiagnosticArray) -> None:
        own = self.node.get_namespace().strip("/")
        for status in message.status:
            namespace, _, name = status.name.rpartition("/")
            if namespace != own:
                continue  # from another robot in this domain
            self.diagnostics[name] = status
            if status.level > DiagnosticStatus.OK and status.message.startswith(MISSED):
                self.missed = status.message

    def warning(self, node: str) -> str:
        """Last warning in the diagnostics of a node; empty without a warning or without diagnostics."""
        said = self.diagnostics.get(node)
        return said.message if said is not None and said.level > DiagnosticStatus.OK else ""

    def forget(self) -> None:
        """Reset the smallest tensions and the report of a missing command."""
        self.lowest, self.missed = {}, ""

    def hear_references(self) -> None:
        """Start to store the phase that the controller reports for each state (`phase_at`)."""
        every = QoSProfile(depth=1000, reliability=ReliabilityPolicy.RELIABLE)
        self.node.create_subscription(Reference, "reference", self._keep_reference, every)

    def _keep_reference(self, message: Reference) -> None:
        now = seconds(message.header.stamp)
        while self._phases and self._phases[-1][0] > now:  # the simulation was reset
            self._phases.pop()
        self._phases.append((now, message.mode))
        del self._phases[:-REFERENCES]

    def phase_at(self, time: float) -> str | None:
        """Phase of the controller at a state [s]: the first phase reported for it or later; None if there is none
        yet."""
        reported = [(at, phase) for at, phase in self._phases if at >= time - 1e-9]
        # the state at which a goal arrived is answered twice; the second answer counts
        return None if not reported else [phase for at, phase in reported if at == reported[0][0]][-1]

    def spin_once(self, patience: float = 0.1) -> None:
        """Process all arrived messages, after a wait of at most `patience` s for the first one.

        Two calls process messages at an interval of at least `BETWEEN` s.
        """
        time.sleep(min(max(0.0, self._looked + BETWEEN - time.monotonic()), patience))
        self._looked = time.monotonic()
        handle_waiting(self._executor, patience, lambda _, step: step())
        self._check()

    def spin(self, duration: float) -> None:
        """Process messages for `duration` s of wall time."""
        end = time.monotonic() + duration
        while (left := end - time.monotonic()) > 0.0:
            self.spin_once(min(left, 0.1))

    def check_there(self, answering: bool) -> None:
        """To be called repeatedly in a wait whose length the robot determines.

        Args:
            answering: whether the node that is to answer is present.

        Raises:
            TensegrityError: this node has been missing, or no state has come, for `GONE` s.
        """
        now = time.monotonic()
        slept, self._spun = now - self._spun > 1.0, now  # this process stood still: nothing is known of that time
        if slept or (answering and self._states != self._states_then):
            self._there, self._states_then = now, self._states
        if now - self._there > GONE:
            missing = "sends no more states" if answering else "does not answer any more: its controller has ended"
            raise TensegrityError(f"the robot {missing}; whether it moves is not known. See `tensegrity status`.")

    def wait_until(self, condition: Callable[[], bool], patience: float) -> bool:
        """Process messages until a condition holds; returns False if it does not within `patience` s of wall time."""
        end = time.monotonic() + patience
        while not condition():
            if time.monotonic() > end:
                return False
            self.spin_once()
        return True

    def wait_for_robot(self, condition: Callable[[], bool]) -> bool:
        """Like `wait_until`, for messages that a running robot publishes at once.

        It waits for 5 s, and for 25 s more if a robot is present, since the computer may be busy.
        """
        if self.wait_until(condition, 5.0):
            return True
        there = any(self.node.count_publishers(topic) for topic in ("simulator/truth", "structure_state"))
        return there and self.wait_until(condition, 25.0)

    def wait_for_diagnostics(self) -> None:
        """Wait until all nodes of the robot have reported: no new node for `SETTLED` s, but at most `SILENCE` s.

        Each node reports once per second, and a process that has just started discovers the nodes one after the other.
        """
        end = time.monotonic() + SILENCE
        known = -1
        while known < len(self.diagnostics) and (left := end - time.monotonic()) > 0.0:
            known = len(self.diagnostics)
            self.wait_until(lambda last=known: len(self.diagnostics) > last, min(SETTLED, left))  # type: ignore[misc]

    # -- received data --------------------------------------------------------------------------------------------

    @property
    def state(self) -> StructureState | None:
        """True state of a simulator, else the estimated state."""
        return self.truth or self.estimate

    @property
    def time(self) -> float:
        """Time of the state [s]."""
        return 0.0 if self.state is None else seconds(self.state.header.stamp)

    @property
    def pose(self) -> Pose:
        """Pose of the output frame. Raises TensegrityError before the first state."""
        pose = None if self.state is None else state_pose(self.state)
        if pose is None:
            raise TensegrityError(
                f"no state of the robot has come yet{self._where}; is it running? Start it with `tensegrity up sim`."
            )
        return pose

    @property
    def load_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the bodies and nodes of the simulated robot; both are empty before the first state."""
        for named in (self.truth, self.layout):
            if named is not None and (named.body_name or named.node_name):
                return tuple(named.body_name), tuple(named.node_name)
        return (), ()

    @property
    def moving(self) -> bool:
        """Whether the diagnostics of the controller report a motion; they arrive once per second."""
        controller = self.diagnostics.get("controller")
        return controller is not None and any(
            each.key == "phase" and each.value == "moving" for each in controller.values
        )

    @property
    def answered(self) -> bool:
        """Whether the controller has answered a state, as its diagnostics say. Its message does not tell: it may begin
        with a warning, of a tension below its floor or of states of several nodes."""
        controller = self.diagnostics.get("controller")
        return controller is not None and any(
            each.key == "answered states" and each.value != "0" for each in controller.values
        )

    @property
    def tensions(self) -> np.ndarray:
        """Tensions of all tendons and springs [N]; empty before the first message."""
        return np.array([] if self.tendons is None else self.tendons.tension, dtype=np.float64)

    @property
    def real_time_factor(self) -> float:
        """Simulated seconds per second over the last two seconds."""
        if len(self._marks) < 2 or self._marks[-1][0] - self._marks[0][0] < 0.2:
            return float("nan")
        (wall, start), (now, end) = self._marks[0], self._marks[-1]
        return (end - start) / (now - wall)

    # -- calls ----------------------------------------------------------------------------------------------------

    def send_goal(self, position: Any, quaternion: Any | None, duration: float = 0.0, frame: str = "world") -> Any:
        """Send a goal pose; returns the answer of set_goal_pose. Where this wait ends without one, the robot is asked
        to hold, so that the motion does not begin afterwards."""
        request = goal_request(position, quaternion, duration, frame)
        try:
            return self.call("set_goal_pose", request, PLANNING)
        except BaseException:
            self.call_off()
            raise

    def call_off(self) -> None:
        """Ask the controller to hold unless it is stopped, without waiting for its answer: nobody waits for what was
        asked before."""
        if self.offered("call_off"):
            self._clients["call_off"].call_async(Trigger.Request())

    def pause(self, stand_still: bool) -> bool:
        """Pause or resume the simulation; returns whether the state at which it is paused has been answered."""
        answer = self.call("simulator/set_paused", SetBool.Request(data=stand_still))
        return stand_still and str(answer.message).endswith(ANSWERED)

    def pause_at(self, time: float) -> None:
        """Pause the simulation at a time [s]; 0: never. Raises TensegrityError if this is refused."""
        value = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=float(time))
        request = SetParameters.Request(parameters=[ParameterMessage(name="pause_at", value=value)])
        for each in self.call("simulator/set_parameters", request).results:
            if not each.successful:
                raise TensegrityError(f"the simulator does not pause at {time:g} s: {each.reason}")

    def wrench_sender(self) -> Callable[[str, Any, Any], None]:
        """Function that applies a force and a moment (3,) to a body or node, stamped with the latest state."""

        def fill(message: WrenchStamped, force: Any, moment: Any) -> None:
            for part, values in ((message.wrench.force, force), (message.wrench.torque, moment)):
                part.x, part.y, part.z = (float(value) for value in values)

        return self._load_sender(WrenchStamped, "external_wrench", fill)

    def payload_sender(self) -> Callable[[str, float, Any], None]:
        """Function that adds a mass [kg] at (3,) [m] to a body or node, stamped with the latest state."""

        def fill(message: InertiaStamped, mass: float, at: Any) -> None:
            centre = message.inertia.com
            message.inertia.m, (centre.x, centre.y, centre.z) = float(mass), (float(value) for value in at)

        return self._load_sender(InertiaStamped, "payload", fill)

    def _load_sender(self, kind: Any, topic: str, fill: Callable[..., None]) -> Callable[..., None]:
        publisher = self.node.create_publisher(kind, topic, QoSProfile(depth=20))
        self.wait_until(lambda: publisher.get_subscription_count() > 0, 2.0)

        def send(name: str, *values: Any) -> None:
            message = kind()
            assert self.state is not None
            message.header.stamp, message.header.frame_id = self.state.header.stamp, name
            fill(message, *values)
            publisher.publish(message)

        return send

    def call(self, name: str, request: Any | None = None, patience: float = 30.0) -> Any:
        """Call a service and return its answer. Raises TensegrityError if no node offers it or it does not answer."""
        client = self._clients[name]
        if not client.wait_for_service(timeout_sec=min(patience, 5.0)):
            raise TensegrityError(
                f"no node offers the service {name}{self._where}; is the robot running? "
                "Start it with `tensegrity up sim`."
            )
        future = client.call_async(Trigger.Request() if request is None else request)
        if not self.wait_until(future.done, patience):
            raise TensegrityError(f"the service {name} did not answer within {patience:g} s.")
        return future.result()

    @property
    def _where(self) -> str:
        """The namespace in which the robot is looked for, in words; empty without a namespace."""
        inside = self.node.get_namespace().strip("/")
        return f" in the namespace {inside}" if inside else ""

    def offered(self, name: str) -> bool:
        """Whether a node offers a service."""
        return bool(self._clients[name].service_is_ready())

    def close(self) -> None:
        """Destroy the node and shut ROS down."""
        self._executor.shutdown()
        self.node.destroy_node()
        rclpy.try_shutdown()
