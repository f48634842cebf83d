"""Node `view`: the browser view of a running robot.

Subscribes structure_state, tendon_states, joint_states, reference, carried_payloads; calls set_goal_pose, hold, stop,
emergency_stop, release and the action follow_actuators; publishes /diagnostics, in which `url` is the
address of the view.
"""

from __future__ import annotations

import re
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped, WrenchStamped
from numpy.typing import NDArray
from rcl_interfaces.srv import SetParameters
from rclpy.action import ActionClient
from rclpy.client import Client
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from tensegrity.action import FollowActuators
from tensegrity.msg import CarriedPayloads, Playback, Reference, StructureState, TendonState
from tensegrity.srv import SetGoalPose

from tensegrity_control.trajectories.actuator_table import ActuatorTable
from tensegrity_control.trajectories.time_scaling import PEAK
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robots.carried_payload import CarriedPayload
from tensegrity_dynamics.robots.load_robot import load_robot
from tensegrity_dynamics.ros.geometry_messages import (
    carried_from_message,
    fill_pose,
    nanoseconds,
    pose_from_message,
    seconds,
    stated_pose,
    time_message,
)
from tensegrity_dynamics.ros.paced_node import PacedNode
from tensegrity_dynamics.ros.robot_node import CARRIED, ERROR, LATCHED, OK, WARN, WORLD, WRENCHES, run_node
from tensegrity_dynamics.ros.state_decoding import StateDecoder

from ..runtime.actuator_follower import trajectory_message
from ..view import Answer, View, ViewState
from ..view.guard import EXPOSED
from ..view.replay_panel import Playback as ShownPlayback

NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
ANSWER_TIME = 15.0  # longest answer time of a service [s]
MARGIN, SHORTEST = 1.05, 0.5
"""Factor and shortest duration [s] of a motion of one actuator whose duration is left to the view."""
NO_REASON = "the controller gave no reason"
LATE = "should it begin later, it is held"
MORE = re.compile(r" \(and \d+ more\)$")
"""Pattern at the end of a summary."""
FORGOTTEN = 3.0
"""Time after which a warning expires unless it is repeated [s]; nodes repeat warnings every second."""
SILENCE = 2.0  # time without a state before a warning [s]
FACTOR_TIME = 2.0  # averaging time of the real-time factor [s]


class Faults:
    """Faults of the robot and their remedies, from the diagnostics of its nodes.

    A node may report its parts by separate statuses ("driver: bus", "driver: draw_3"), with several faults in one
    status separated by " | ". Each fault is then shown as one line that lists the affected parts, and the summary of
    the node is not shown.

    Args:
        namespace: namespace of the robot. own: name of this node, whose warnings the view shows separately.
    """

    def __init__(self, namespace: str, own: str) -> None:
        self._prefix, self._own = namespace.strip("/"), own
        self._said: dict[str, tuple[float, str, bool]] = {}

    def hear(self, message: DiagnosticArray) -> None:
        """Store warnings and errors, and remove those that have ended."""
        for status in message.status:
            if status.name == self._own or not status.name.startswith(self._prefix):
                continue
            if status.level > OK:
                self._said[status.name] = (time.monotonic(), status.message, status.level >= ERROR)
            else:
                self._said.pop(status.name, None)

    def lines(self, *, errors: bool) -> tuple[str, ...]:
        """One line for each error, or for each warning, without those that have expired."""
        now = time.monotonic()
        fresh = {
            name: said for name, (heard, said, bad) in self._said.items() if now - heard < FORGOTTEN and bad == errors
        }
        with_parts = {name.partition(": ")[0] for name in fresh if ": " in name}
        parts: dict[tuple[str, str], dict[str, None]] = {}  # parts of one node with the same fault, in order
        for name, said in fresh.items():
            node = name.partition(": ")[0].removeprefix(f"{self._prefix}/")
            texts = [MORE.sub("", said)] if name in with_parts else said.split(" | ") if ": " in name else []
            for text in texts:
                part, _, fault = text.partition(": ")
                parts.setdefault((node, fault or text), {})[part if fault else ""] = None
            if not texts:
                parts[node, said] = {"": None}
        return tuple(f"{node}: {', '.join(who)}{': ' if any(who) else ''}{text}" for (node, text), who in parts.items())


class ViewNode(PacedNode):
    """Node of the browser view. Parameters: robot, port, host, rate, replay."""

    def __init__(self) -> None:
        super().__init__("view")
        robot = load_robot(self.parameter("robot", "", "name of a shipped robot, or path of a robot file"))
        port = self.parameter("port", 8080, "port of the browser view; the next free port if it is in use")
        if not 0 < port < 65536:
            raise TensegrityError(f"parameter port is {port}; give a number from 1 to 65535.")
        host = self.parameter(
            "host", "127.0.0.1", "address on which the view listens; 0.0.0.0 admits other machines, see docs/nodes.md"
        )
        self.rate = self.parameter(
            "rate",
            30.0,
            "largest rate of pictures [1/s]; larger is smoother and takes more processor time",
            low=0.5,
            high=60.0,
        )
        self._replay = replay = self.parameter(
            "replay", False, "the view shows a replay: with a time bar, without commands"
        )
        self._decoder = StateDecoder(robot)
        self._state: StructureState | None = None
        self._tendons: TendonState | None = None
        self._joints: JointState | None = None
        self._reference: Reference | None = None
        self._carried: tuple[CarriedPayload, ...] = ()
        self._heard = time.monotonic()
        self._ticks: deque[tuple[float, float]] = deque()
        self._goal_service = self.create_client(SetGoalPose, "set_goal_pose")
        self._goal_stream = self.create_publisher(PoseStamped, "goal_pose", QoSProfile(depth=1))
        self._wrenches = self.create_publisher(WrenchStamped, "external_wrench", WRENCHES)
        self._pushed, self._simulated, self._stamp = "", False, 0
        self._actuator_action = ActionClient(self, FollowActuators, "follow_actuators")
        self._hold_service, self._late_service = (self.create_client(Trigger, name) for name in ("hold", "call_off"))
        self._stop_service = self.create_client(Trigger, "stop")
        self._emergency_service = self.create_client(Trigger, "emergency_stop")
        self._releases = [self.create_client(Trigger, f"{source}/release") for source in ("driver", "simulator")]
        self.view = View(
            robot,
            port,
            host=host,
            rate=self.rate,
            on_goal=None if replay else self._send_goal,
            on_stream=None if replay else self._stream_goal,
            on_move=None if replay else self._move_actuator,
            on_hold=None if replay else lambda: self._trigger(self._hold_service),
            on_stop=None if replay else lambda: self._trigger(self._stop_service),
            on_emergency=None if replay else lambda: self._trigger(self._emergency_service),
            on_release=None if replay else self._release,
            on_steer=self._steer if replay else None,
        )
        self._player: Client | None = None
        if replay:
            self._player = self.create_client(SetParameters, "player/set_parameters")
            self.create_subscription(Playback, "playback", self._keep_playback, LATCHED)
        if self.view.port_note:
            self.get_logger().warning(self.view.port_note)
        if not self.view.guard.is_local:
            self.get_logger().warning(f"the view listens on {host} at port {self.view.port}: {EXPOSED}")
        self.get_logger().info(f"open {self.view.url} in a browser")
        self.create_subscription(StructureState, "structure_state", self._keep_state, NEWEST)
        self.create_subscription(TendonState, "tendon_states", self._keep_tendons, NEWEST)
        self.create_subscription(JointState, "joint_states", self._keep_joints, NEWEST)
        self.create_subscription(Reference, "reference", self._keep_reference, LATCHED)
        self.create_subscription(CarriedPayloads, CARRIED, self._keep_carried, LATCHED)
        self._faults = Faults(self.get_namespace(), self.diagnostic_name)
        self.create_subscription(DiagnosticArray, "/diagnostics", self._faults.hear, QoSProfile(depth=50))
        self.set_status(OK, "waiting for structure_state", robot=robot.name, url=self.view.url)

    def close(self) -> None:
        """Stop the web server."""
        self.view.close()

    # -- from the robot to the browser ----------------------------------------------------------------------------

    def _keep_state(self, message: StructureState) -> None:
        self._state = message
        self._heard = time.monotonic()

    def _keep_tendons(self, message: TendonState) -> None:
        self._tendons = message

    def _keep_joints(self, message: JointState) -> None:
        self._joints = message

    def _keep_reference(self, message: Reference) -> None:
        self._reference = message

    def _keep_carried(self, message: CarriedPayloads) -> None:
        self._carried = carried_from_message(message)

    def _keep_playback(self, message: Playback) -> None:
        self.view.show_playback(
            ShownPlayback(message.position, message.end, message.rate, message.paused, message.loop)
        )

    def work(self) -> None:
        """Show the newest state; warn if none arrives."""
        self._send_push()
        message, self._state = self._state, None
        silent = time.monotonic() - self._heard
        if message is not None:
            self._show(message)
        elif silent > SILENCE and self.view.replay is None:  # a replay may be paused
            self._complain("no structure_state; is the estimator running?", f" (silent for {int(silent)} s)")

    def _show(self, message: StructureState) -> None:
        try:
            decoded = self._decoder.state(message)
            tensions = self._decoder.tensions(self._tendons, decoded.configuration)
        except TensegrityError as error:
            self._complain(str(error))
            return
        now, configuration = seconds(message.header.stamp), decoded.configuration
        self._stamp = nanoseconds(message.header.stamp)
        reference = self._reference
        state = ViewState(
            time=now,
            configuration=configuration,
            tensions=tensions,
            goal=stated_pose(reference.goal) if reference is not None else None,
            mode=reference.mode if reference is not None else "",
            source=message.source,
            real_time_factor=self._real_time_factor(now),
            converged=message.converged,
            velocity=decoded.velocity,
            payloads=self._carried,
            positions=self._positions(),
            strains=self._strains(),
            notes=self._faults.lines(errors=False),
            errors=self._faults.lines(errors=True),
        )
        if self.view.show(state):
            self.view.warn("")
            self.set_status(
                OK, "showing the robot", browsers=self.view.clients, pictures=self.view.drawn, **self._refusals()
            )
        else:
            self.set_status(WARN, "a state cannot be drawn", ignored_states=self.view.ignored)

    def _positions(self) -> dict[str, float]:
        """Positions of the actuators; `joint_states` may have further joints."""
        joints = self._joints
        return {} if joints is None else dict(zip(joints.name, joints.position, strict=False))

    def _strains(self) -> NDArray[np.float64] | None:
        """(m,) strains in the order of the picture, NaN where the lengths are not known."""
        tendons = self._tendons
        if tendons is None:
            return None
        stretched = {
            name: length / rest - 1.0
            for name, length, rest in zip(tendons.name, tendons.length, tendons.rest_length, strict=False)
            if rest > 0.0
        }
        return np.array([stretched.get(name, np.nan) for name in self.view.picture.tension_names])

    def _refusals(self) -> dict[str, int]:
        """Number of requests that the guard refused, by kind; empty if there were none."""
        guard = self.view.guard
        counts = {"refused_requests": guard.refused, "dropped_messages": guard.dropped}
        return {name: count for name, count in counts.items() if count}

    def _complain(self, problem: str, detail: str = "") -> None:
        self.view.warn(problem + detail)
        self.set_status(WARN, problem)

    def _real_time_factor(self, now: float) -> float:
        """Robot seconds per second over the last two seconds; NaN during the first half second."""
        wall = time.monotonic()
        if self._ticks and now < self._ticks[-1][1]:
            self._ticks.clear()  # the simulation was reset
        self._ticks.append((wall, now))
        while wall - self._ticks[0][0] > FACTOR_TIME:
            self._ticks.popleft()
        passed = wall - self._ticks[0][0]
        return (now - self._ticks[0][1]) / passed if passed > 0.5 else float("nan")

    # -- from the browser to the controller; called from threads of the view --------------------------------------

    def _send_goal(self, position: NDArray[np.float64], quaternion: NDArray[np.float64], duration: float) -> Answer:
        request = SetGoalPose.Request(duration=float(duration), orientation=SetGoalPose.Request.SET)
        request.target.header.frame_id = WORLD
        fill_pose(request.target.pose, position, quaternion)
        response = self._call(self._goal_service, request, late=self._hold_late)
        if isinstance(response, str):
            return Answer(False, response)
        if response.accepted:
            return Answer(True, response.reason)
        return Answer(False, response.reason or NO_REASON, pose_from_message(response.nearest), tuple(response.binding))

    def _stream_goal(self, position: NDArray[np.float64], quaternion: NDArray[np.float64]) -> None:
        message = PoseStamped()
        message.header.stamp, message.header.frame_id = time_message(self._stamp), WORLD
        fill_pose(message.pose, position, quaternion)
        self._goal_stream.publish(message)

    def _send_push(self) -> None:
        """Apply the pull of a user to a simulated robot, until it ends."""
        simulated = not self._replay and self.count_publishers("simulator/truth") > 0
        if simulated != self._simulated:
            self._simulated = simulated
            self.view.allow_pushes(simulated)
        push = self.view.push
        name, force = push or (self._pushed, np.zeros(3))
        if self._pushed and name != self._pushed:
            self._publish_wrench(self._pushed, np.zeros(3))
        if name:
            self._publish_wrench(name, force)
        self._pushed = name if push else ""

    def _publish_wrench(self, name: str, force: NDArray[np.float64]) -> None:
        message = WrenchStamped()
        message.header.stamp, message.header.frame_id = time_message(self._stamp), name
        message.wrench.force.x, message.wrench.force.y, message.wrench.force.z = force.tolist()
        self._wrenches.publish(message)

    def _move_actuator(self, name: str, position: float, duration: float) -> Answer:
        """Move one actuator, and wait for its end."""
        if not self._actuator_action.server_is_ready():
            return Answer(False, "the action follow_actuators is not available; is the controller running?")
        present = self._positions().get(name, np.nan)
        if not np.isfinite(present):
            return Answer(False, "its position is not known; joint_states has none")
        (rate,) = (each.rate for each in self.view.robot.actuators if each.name == name)
        duration = duration or max(MARGIN * PEAK * abs(position - present) / rate, SHORTEST)
        table = ActuatorTable((name,), np.array([duration]), np.array([[position]]))
        goal = FollowActuators.Goal(trajectory=trajectory_message(table))
        begun = self._actuator_action.send_goal_async(goal)
        handle = self._wait(begun, ANSWER_TIME)
        result = None if handle is None else self._wait(handle.get_result_async(), duration + ANSWER_TIME)
        if result is None:
            begun.add_done_callback(lambda late: late.result().cancel_goal_async())
            return Answer(False, f"follow_actuators did not answer in time; {LATE}")
        reason = result.result.reason or ("" if result.result.success else NO_REASON)
        return Answer(bool(result.result.success), reason)

    def _trigger(self, client: Client) -> Answer:
        response = self._call(client, Trigger.Request())
        if isinstance(response, str):
            return Answer(False, response)
        return Answer(response.success, response.message or ("" if response.success else NO_REASON))

    def _release(self) -> Answer:
        """Release the driver or the simulator, whichever exists."""
        return self._trigger(next((each for each in self._releases if each.service_is_ready()), self._releases[0]))

    def _steer(self, name: str, value: float | bool) -> Answer:
        """Change a parameter of the player."""
        assert self._player is not None
        response = self._call(
            self._player, SetParameters.Request(parameters=[Parameter(name, value=value).to_parameter_msg()])
        )
        if isinstance(response, str):
            return Answer(False, response)
        (result,) = response.results
        return Answer(result.successful, result.reason)

    def _hold_late(self, goal: Any) -> None:
        """Hold the robot where a goal is accepted whose sender has been told that there was no answer."""
        if goal.result().accepted:
            self._late_service.call_async(Trigger.Request())

    def _call(self, client: Client, request: Any, late: Callable[[Any], None] | None = None) -> Any:
        """Response of a service, or the reason why there is none; `late` is called with a response that comes later."""
        if not client.service_is_ready():
            who = "replay" if client is self._player else "controller"
            who = "driver or simulator" if client in (self._emergency_service, *self._releases) else who
            return f"the service {client.srv_name} is not available; is the {who} running?"
        future = client.call_async(request)
        response = self._wait(future, ANSWER_TIME)
        if response is None:
            problem = f"{client.srv_name} did not answer within {ANSWER_TIME:g} s"
            if late is None:
                client.remove_pending_request(future)
                return problem
            future.add_done_callback(late)
            return f"{problem}; {LATE}"
        return response

    @staticmethod
    def _wait(future: Any, longest: float) -> Any:
        """Result of a future, or None where it has none after so many seconds."""
        done = threading.Event()
        future.add_done_callback(lambda _: done.set())
        return future.result() if done.wait(longest) else None


def main() -> int:
    """Run the node."""
    return run_node(ViewNode)


if __name__ == "__main__":
    sys.exit(main())
