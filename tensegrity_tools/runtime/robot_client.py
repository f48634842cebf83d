"""A ROS node for commands: hears what the robot does and calls its services."""

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
"""s of wall time that a plan may take."""
EVERY = QoSProfile(depth=200, reliability=ReliabilityPolicy.BEST_EFFORT)
REFERENCES = 2000
"""Of the last ones the phases are kept."""
MISSED = "no command from"
"""How simulator and driver begin the sentence that a controller was silent."""
SETTLED, SILENCE = 1.5, 6.0
"""s of wall time without a new node after which all are known, and longest wait for that."""
WATCH = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
BETWEEN = 0.01
"""s of wall time from one look at what came to the next: who watches must not wake for every state of a lock-step run,
and so take a processor from those who are watched."""


def goal_request(position: Any, quaternion: Any | None, duration: float, frame: str = "world") -> SetGoalPose.Request:
    """A request for a position (3,) m, and a quaternion wxyz or None to keep the orientation; duration in s."""
    turn = SetGoalPose.Request.KEEP if quaternion is None else SetGoalPose.Request.SET
    request = SetGoalPose.Request(duration=float(duration), orientation=turn)
    request.target.header.frame_id = frame
    fill_pose(request.target.pose, position, (1.0, 0.0, 0.0, 0.0) if quaternion is None else quaternion)
    return request


class Watcher:
    """The latest of everything, and calls that wait for their answer. Spins only while it waits.

    Attributes:
        lowest: N and s by name, the lowest tension of each tendon and when, since `forget`.
        missed: what simulator or driver said of a command that did not come since `forget`; "" where none was missed.

    Args:
        check: called again and again while it waits; what it raises ends the wait. namespace: of the robot's nodes.
    """

    def __init__(
        self, name: str = "tensegrity_command", check: Callable[[], None] = lambda: None, namespace: str = ""
    ) -> None:
        # rclpy's own handlers would shut the context down in another thread, in the middle of a call
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
        self.lowest: dict[str, tuple[float, float]] = {}
        self.missed = ""
        self.node.create_subscription(StructureState, "simulator/truth", self._keep_truth, WATCH)
        self.node.create_subscription(StructureState, "structure_state", self._keep_estimate, WATCH)
        self.node.create_subscription(RobotLayout, "robot_layout", self._keep_layout, LATCHED)
        self.node.create_subscription(TendonState, "tendon_states", self._keep_tendons, EVERY)
        self.node.create_subscription(DiagnosticArray, "/diagnostics", self._keep_diagnostics, QoSProfile(depth=20))
        self._clients: dict[str, Any] = {
            "set_goal_pose": self.node.create_client(SetGoalPose, "set_goal_pose"),
            "hold": self.node.create_client(Trigger, "hold"),
            "stop": self.node.create_client(Trigger, "stop"),
            "simulator/set_paused": self.node.create_client(SetBool, "simulator/set_paused"),
            "simulator/set_parameters": self.node.create_client(SetParameters, "simulator/set_parameters"),
        }
        self._phases: list[tuple[float, str]] = []  # s, phase of the controller, of the last references

    # -- listening ------------------------------------------------------------------------------------------------

    def _keep_truth(self, message: StructureState) -> None:
        self.truth = message
        now = time.monotonic()
        self._marks.append((now, seconds(message.header.stamp)))
        while now - self._marks[0][0] > 2.0:
            self._marks.pop(0)

    def _keep_estimate(self, message: StructureState) -> None:
        self.estimate = message

    def _keep_layout(self, message: RobotLayout) -> None:
        self.layout = message

    def _keep_tendons(self, message: TendonState) -> None:
        self.tendons = message
        now = seconds(message.header.stamp)
        for name, tension in zip(message.name, message.tension, strict=False):
            if tension < self.lowest.get(name, (np.inf, 0.0))[0]:  # never for NaN
                self.lowest[name] = (tension, now)

    def _keep_diagnostics(self, message: DiagnosticArray) -> None:
        own = self.node.get_namespace().strip("/")
        for status in message.status:
            namespace, _, name = status.name.rpartition("/")
            if namespace != own:
                continue  # of another robot in this domain
            self.diagnostics[name] = status
            if status.level > DiagnosticStatus.OK and status.message.startswith(MISSED):
                self.missed = status.message

    def warning(self, node: str) -> str:
        """What the diagnostics of a node last warned of; empty where all was well, or nothing was heard."""
        said = self.diagnostics.get(node)
        return said.message if said is not None and said.level > DiagnosticStatus.OK else ""

    def forget(self) -> None:
        """Begin anew to keep the lowest tensions and whether a command was missed."""
        self.lowest, self.missed = {}, ""

    def hear_references(self) -> None:
        """From here on keep what the controller says of each state (`phase_at`)."""
        every = QoSProfile(depth=1000, reliability=ReliabilityPolicy.RELIABLE)
        self.node.create_subscription(Reference, "reference", self._keep_reference, every)

    def _keep_reference(self, message: Reference) -> None:
        now = seconds(message.header.stamp)
        while self._phases and self._phases[-1][0] > now:  # the simulation was reset
            self._phases.pop()
        self._phases.append((now, message.mode))
        del self._phases[:-REFERENCES]

    def phase_at(self, time: float) -> str | None:
        """Phase of the controller at a state [s], the first one reported at it or after; None where none came yet."""
        reported = [(at, phase) for at, phase in self._phases if at >= time - 1e-9]
        # the state at which a goal came is answered twice; the second answer counts
        return None if not reported else [phase for at, phase in reported if at == reported[0][0]][-1]

    def spin_once(self, patience: float = 0.1) -> None:
        """Take all that has come, waiting for the first of it for `patience` s; no sooner than `BETWEEN` s after the
        last time."""
        time.sleep(min(max(0.0, self._looked + BETWEEN - time.monotonic()), patience))
        self._looked = time.monotonic()
        handle_waiting(self._executor, patience, lambda _, step: step())
        self._check()

    def spin(self, duration: float) -> None:
        """Listen for so many seconds of wall time."""
        end = time.monotonic() + duration
        while (left := end - time.monotonic()) > 0.0:
            self.spin_once(min(left, 0.1))

    def wait_until(self, condition: Callable[[], bool], patience: float) -> bool:
        """Listen until a condition holds; False where it does not within `patience` s of wall time."""
        end = time.monotonic() + patience
        while not condition():
            if time.monotonic() > end:
                return False
            self.spin_once()
        return True

    def wait_for_robot(self, condition: Callable[[], bool]) -> bool:
        """As `wait_until`, for what a running robot says at once: 5 s, and 25 s more where one is there on a busy
        machine."""
        if self.wait_until(condition, 5.0):
            return True
        there = any(self.node.count_publishers(topic) for topic in ("simulator/truth", "structure_state"))
        return there and self.wait_until(condition, 25.0)

    def wait_for_diagnostics(self) -> None:
        """Wait until every node of the robot has reported: none is new for `SETTLED` s, and at most `SILENCE` s.

        Each node reports once a second, and a process that has just started discovers them one after the other.
        """
        end = time.monotonic() + SILENCE
        known = -1
        while known < len(self.diagnostics) and (left := end - time.monotonic()) > 0.0:
            known = len(self.diagnostics)
            self.wait_until(lambda last=known: len(self.diagnostics) > last, min(SETTLED, left))  # type: ignore[misc]

    # -- what was heard -------------------------------------------------------------------------------------------

    @property
    def state(self) -> StructureState | None:
        """The truth of a simulator, else the estimate."""
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
                "no state of the robot has come yet; is it running? Start it with `tensegrity up sim`."
            )
        return pose

    @property
    def load_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the bodies and of the nodes of the simulated robot; both empty before its first state."""
        for named in (self.truth, self.layout):
            if named is not None and (named.body_name or named.node_name):
                return tuple(named.body_name), tuple(named.node_name)
        return (), ()

    @property
    def moving(self) -> bool:
        """Whether the controller's diagnostics say that a motion is under way; they come once a second."""
        controller = self.diagnostics.get("controller")
        return controller is not None and any(
            each.key == "phase" and each.value == "moving" for each in controller.values
        )

    @property
    def tensions(self) -> np.ndarray:
        """Tensions [N] of all tendons and springs, empty before the first message."""
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
        """Answer of set_goal_pose."""
        request = goal_request(position, quaternion, duration, frame)
        return self.call("set_goal_pose", request, PLANNING)

    def pause(self, stand_still: bool) -> bool:
        """Let the simulation stand still, or run on; whether the state that it stands at has been answered."""
        answer = self.call("simulator/set_paused", SetBool.Request(data=stand_still))
        return stand_still and str(answer.message).endswith(ANSWERED)

    def pause_at(self, time: float) -> None:
        """Let the simulation stand still when it comes to a time [s]; 0: never. Raises TensegrityError: refused."""
        value = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=float(time))
        request = SetParameters.Request(parameters=[ParameterMessage(name="pause_at", value=value)])
        for each in self.call("simulator/set_parameters", request).results:
            if not each.successful:
                raise TensegrityError(f"the simulator does not pause at {time:g} s: {each.reason}")

    def wrench_sender(self) -> Callable[[str, Any, Any], None]:
        """A function that puts a force and a moment (3,) on a body or node, stamped with the latest state."""

        def fill(message: WrenchStamped, force: Any, moment: Any) -> None:
            for part, values in ((message.wrench.force, force), (message.wrench.torque, moment)):
                part.x, part.y, part.z = (float(value) for value in values)

        return self._load_sender(WrenchStamped, "external_wrench", fill)

    def payload_sender(self) -> Callable[[str, float, Any], None]:
        """A function that puts a mass [kg] at (3,) m of a body or node, stamped with the latest state."""

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
        """Answer of a service. Raises TensegrityError where nobody offers it or it does not answer."""
        client = self._clients[name]
        if not client.wait_for_service(timeout_sec=min(patience, 5.0)):
            raise TensegrityError(
                f"no node offers the service {name}; is the robot running? Start it with `tensegrity up sim`."
            )
        future = client.call_async(Trigger.Request() if request is None else request)
        if not self.wait_until(future.done, patience):
            raise TensegrityError(f"the service {name} did not answer within {patience:g} s.")
        return future.result()

    def offered(self, name: str) -> bool:
        """Whether somebody offers a service."""
        return bool(self._clients[name].service_is_ready())

    def close(self) -> None:
        """Leave ROS."""
        self._executor.shutdown()
        self.node.destroy_node()
        rclpy.try_shutdown()
