"""What all nodes share: declared parameters, diagnostics, quality of service, and a clean end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor, SetParametersResult
from rclpy.clock import Clock, ClockType
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions

from ..command_streams import publisher_names
from ..ending import Ending, end_within, leave_threads
from ..errors import TensegrityError, unknown_name

# States are published reliably, so that in lock-step nothing is lost; whoever only watches may ask for best effort.
STATE = QoSProfile(depth=5, reliability=ReliabilityPolicy.RELIABLE)
COMMAND = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
WORLD = "world"
CLOSING = 30.0
"""s that a node may take from its end to the last line of its closing; then its process ends all the same."""

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR
LEVELS = {OK: 0, WARN: 1, ERROR: 2}


class RobotNode(Node):
    """A node with checked parameters and diagnostics once a second of wall time."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._choices: dict[str, Sequence[str]] = {}
        self._changed: Callable[[str, Any], None] | None = None
        self._said_level, self._said = WARN, "starting"
        self._said_values: dict[str, Any] = {}
        self._told = ""
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", QoSProfile(depth=10))
        self.add_on_set_parameters_callback(self._check_parameters)
        self.wall_clock = Clock(clock_type=ClockType.STEADY_TIME)
        self._diagnostic_timer = self.create_timer(1.0, self.report, clock=self.wall_clock)

    # -- life -----------------------------------------------------------------------------------------------------

    def spin(self, executor: SingleThreadedExecutor, ending: Ending) -> None:
        """Handle what comes until the end is asked for."""
        while not ending.asked and self.context.ok():
            executor.spin_once()

    def close(self) -> None:
        """Let go of what is not ROS; called once at the end."""

    # -- parameters -----------------------------------------------------------------------------------------------

    def parameter(
        self,
        name: str,
        default: Any,
        text: str,
        *,
        low: float | None = None,
        high: float | None = None,
        choices: Sequence[str] = (),
        live: bool = False,
    ) -> Any:
        """Declare a parameter and give its value; a value out of range or unknown is refused with a reason."""
        descriptor = ParameterDescriptor(description=text, read_only=not live)
        if choices:
            descriptor.additional_constraints = "one of: " + ", ".join(choices)
            self._choices[name] = tuple(choices)
        if low is not None and high is not None:
            descriptor.floating_point_range = [FloatingPointRange(from_value=float(low), to_value=float(high))]
        value = self.declare_parameter(name, default, descriptor).value
        if choices and value not in choices:
            raise TensegrityError(unknown_name(f"value for parameter {name}", value, choices))
        return value

    def on_change(self, function: Callable[[str, Any], None]) -> None:
        """Call function(name, value) before a live parameter changes; a TensegrityError from it refuses the change."""
        self._changed = function

    def _check_parameters(self, parameters: list[Parameter]) -> SetParametersResult:
        for each in parameters:
            if each.name in self._choices and each.value not in self._choices[each.name]:
                reason = unknown_name(f"value for parameter {each.name}", each.value, self._choices[each.name])
                return SetParametersResult(successful=False, reason=reason)
            if self._changed is not None:
                try:
                    self._changed(each.name, each.value)
                except TensegrityError as error:
                    return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    # -- the graph ------------------------------------------------------------------------------------------------

    def command_publishers(self, topic: str = "actuator_command") -> tuple[str, ...]:
        """Names of all publishers of the topic of commands, as the graph knows them; one that was killed stays in it
        until its lease is over."""
        if self.count_publishers(topic) < 2:  # the usual case, in a few microseconds
            return ()
        return publisher_names(
            [(each.node_namespace, each.node_name) for each in self.get_publishers_info_by_topic(topic)]
        )

    # -- diagnostics ----------------------------------------------------------------------------------------------

    def tell(self, level: bytes, message: str, **values: Any) -> None:
        """What the diagnostics say from now on; a new problem is published and logged at once."""
        fresh = message != self._told and level != OK
        self._said_level, self._said = level, message
        self._said_values.update(values)
        if level == OK:
            self._told = ""
        elif fresh:
            self._told = message
            self.get_logger().warning(message)
            self.report()

    def report(self) -> None:
        """Publish the diagnostics now."""
        values = [KeyValue(key=key.replace("_", " "), value=str(value)) for key, value in self._said_values.items()]
        status = DiagnosticStatus(level=self._said_level, name=self.get_name(), message=self._said, values=values)
        array = DiagnosticArray(status=[status])
        array.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics.publish(array)


def run_node(make: Callable[[], RobotNode]) -> int:
    """Run a node until SIGINT or SIGTERM; exit status 0, or 1 with one line where it cannot start.

    Quiet at whatever instant the signal comes. A callback that takes longer than `GRACE` after it is broken off.
    """
    status = 0
    with ExitStack() as release:
        release.callback(rclpy.try_shutdown)
        with Ending() as ending:
            # rclpy's own handlers would shut the context down in another thread, in the middle of callbacks
            rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
            try:
                node = make()
                # the single-threaded executor: in the experimental events executor of the wheels timers never fire
                executor = SingleThreadedExecutor()
                release.callback(executor.shutdown)
                release.callback(node.destroy_node)
                release.callback(node.close)
                executor.add_node(node)
                ending.when_asked(lambda: executor.create_task(lambda: None))
                node.spin(executor, ending)
            except TensegrityError as error:
                if not ending.asked:
                    print(f"{getattr(make, '__name__', 'node')}: {error}", file=sys.stderr)
                    status = 1
            except ExternalShutdownException:
                pass
        end_within(CLOSING, status)
    leave_threads(status)
    return status
