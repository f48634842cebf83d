"""Node `view`: the browser view of a running robot.

Subscribes structure_state, tendon_states, reference; calls set_goal_pose, hold, stop; publishes /diagnostics, in which
`url` says where the view is.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from typing import Any

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from numpy.typing import NDArray
from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.client import Client
from rclpy.clock import Clock, ClockType
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from std_srvs.srv import Trigger
from tensegrity.msg import Reference, StructureState, TendonState
from tensegrity.srv import SetGoalPose

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robot_file import load_robot
from tensegrity_dynamics.ros.shape_messages import ShapeReader, fill_pose, pose_from_message, seconds

from ..view import View, ViewState

SENSOR = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
ANSWER_TIME = 15.0  # s that a service may take
SILENCE = 2.0  # s without a state before the view says so
FACTOR_TIME = 2.0  # s over which the real-time factor is measured


class ViewNode(Node):
    """Parameters: robot, port, host, rate; see their descriptions."""

    def __init__(self) -> None:
        super().__init__("view")
        self._declare()
        robot = load_robot(self.get_parameter("robot").value)
        self._reader = ShapeReader(robot)
        self._state: StructureState | None = None
        self._tendons: TendonState | None = None
        self._reference: Reference | None = None
        self._shown: ViewState | None = None
        self._heard = time.monotonic()
        self._ticks: deque[tuple[float, float]] = deque()
        self._problem = ""
        self._goal_service = self.create_client(SetGoalPose, "set_goal_pose")
        self._hold_service = self.create_client(Trigger, "hold")
        self._stop_service = self.create_client(Trigger, "stop")
        self.view = View(
            robot,
            self.get_parameter("port").value,
            host=self.get_parameter("host").value,
            rate=self.get_parameter("rate").value,
            on_goal=self._send_goal,
            on_hold=lambda: self._trigger(self._hold_service),
            on_stop=lambda: self._trigger(self._stop_service),
        )
        if self.view.port_note:
            self.get_logger().warning(self.view.port_note)
        self.get_logger().info(f"open {self.view.url} in a browser")
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", QoSProfile(depth=10))
        self.create_subscription(StructureState, "structure_state", self._keep_state, SENSOR)
        self.create_subscription(TendonState, "tendon_states", self._keep_tendons, SENSOR)
        self.create_subscription(Reference, "reference", self._keep_reference, LATCHED)
        # People look at the wall clock's rate, whatever the simulated clock does.
        wall = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(1.0 / self.get_parameter("rate").value, self._show, clock=wall)
        self.create_timer(1.0, self._report, clock=wall)

    def _declare(self) -> None:
        def declare(name: str, value: Any, text: str, **limits: Any) -> None:
            self.declare_parameter(name, value, ParameterDescriptor(description=text, read_only=True, **limits))

        declare("robot", "tensebot", "a shipped robot or a robot file")
        declare(
            "port",
            8080,
            "where browsers find the view; the next free one where it is in use",
            integer_range=[IntegerRange(from_value=1, to_value=65535)],
        )
        declare(
            "host", "127.0.0.1", "address to listen on; 0.0.0.0 opens the view, and its stop button, to the network"
        )
        declare(
            "rate",
            30.0,
            "largest number of pictures per second",
            floating_point_range=[FloatingPointRange(from_value=0.5, to_value=60.0)],
        )

    # -- from the robot to the browser ----------------------------------------------------------------------------

    def _keep_state(self, message: StructureState) -> None:
        self._state = message
        self._heard = time.monotonic()

    def _keep_tendons(self, message: TendonState) -> None:
        self._tendons = message

    def _keep_reference(self, message: Reference) -> None:
        self._reference = message

    def _show(self) -> None:
        message, self._state = self._state, None
        if message is None:
            return
        try:
            nodes = self._reader.nodes(message)
        except TensegrityError as error:
            self._problem = str(error)
            return
        self._problem = ""
        now = seconds(message.header.stamp)
        reference = self._reference
        self._shown = ViewState(
            time=now,
            nodes=nodes,
            tensions=self._reader.tensions(self._tendons, nodes),
            goal=pose_from_message(reference.goal) if reference is not None else None,
            mode=reference.mode if reference is not None else "",
            source=message.source,
            real_time_factor=self._real_time_factor(now),
            converged=message.converged,
        )
        self.view.show(self._shown)

    def _real_time_factor(self, now: float) -> float:
        """Robot seconds per second over the last two seconds; NaN until half a second has passed."""
        wall = time.monotonic()
        if self._ticks and now < self._ticks[-1][1]:
            self._ticks.clear()  # the simulation was reset
        self._ticks.append((wall, now))
        while wall - self._ticks[0][0] > FACTOR_TIME:
            self._ticks.popleft()
        passed = wall - self._ticks[0][0]
        return (now - self._ticks[0][1]) / passed if passed > 0.5 else float("nan")

    def _report(self) -> None:
        silent = time.monotonic() - self._heard
        problem = self._problem
        if not problem and silent > SILENCE:
            problem = f"no structure_state for {silent:.0f} s; is the estimator or the simulator running?"
        self.view.warn(problem)
        status = DiagnosticStatus(
            level=DiagnosticStatus.WARN if problem else DiagnosticStatus.OK,
            name="view",
            message=problem or "showing the robot",
            values=[
                KeyValue(key="url", value=self.view.url),
                KeyValue(key="browsers", value=str(self.view.clients)),
                KeyValue(key="pictures", value=str(self.view.drawn)),
                KeyValue(key="ignored states", value=str(self.view.ignored)),
            ],
        )
        message = DiagnosticArray(status=[status])
        message.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics.publish(message)

    # -- from the browser to the controller; called from threads of the view --------------------------------------

    def _send_goal(self, position: NDArray[np.float64], quaternion: NDArray[np.float64], duration: float) -> str | None:
        request = SetGoalPose.Request(duration=float(duration))
        request.target.header.frame_id = "world"
        fill_pose(request.target.pose, position, quaternion)
        answer = self._call(self._goal_service, request)
        if isinstance(answer, str):
            return answer
        return None if answer.accepted else (answer.reason or "the controller gave no reason")

    def _trigger(self, client: Client) -> str | None:
        answer = self._call(client, Trigger.Request())
        if isinstance(answer, str):
            return answer
        return None if answer.success else (answer.message or "the controller gave no reason")

    def _call(self, client: Client, request: Any) -> Any:
        """The answer, or a text that says why there is none."""
        if not client.service_is_ready():
            return f"nobody offers the service {client.srv_name}; is the controller running?"
        done = threading.Event()
        future = client.call_async(request)
        future.add_done_callback(lambda _: done.set())
        if not done.wait(ANSWER_TIME):
            client.remove_pending_request(future)
            return f"{client.srv_name} did not answer within {ANSWER_TIME:g} s"
        return future.result()


def main() -> int:
    """Run the node until it is interrupted; 1 where the robot cannot be loaded or shown."""
    rclpy.init()
    node = None
    try:
        node = ViewNode()
        rclpy.spin(node)
    except TensegrityError as error:
        print(f"view: {error}", file=sys.stderr)
        return 1
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    finally:
        if node is not None:
            node.view.close()
        rclpy.try_shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
