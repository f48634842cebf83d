"""Base class of all nodes: declared parameters, diagnostics, quality of service, and a clean shutdown.

No input from outside ends a node: no message, service call, parameter or undecodable bytes. An input that a callback
cannot handle is refused and reported in the diagnostics. An error in the node's own work (a timer) does end the node,
because its state is then unknown.
"""

from __future__ import annotations

import functools
import gc
import inspect
import re
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NoReturn

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor, ParameterType, SetParametersResult
from rcl_interfaces.srv import SetParameters, SetParametersAtomically
from rclpy.action import ActionClient, ActionServer
from rclpy.callback_groups import CallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.executors import ExternalShutdownException, ShutdownException, SingleThreadedExecutor, TimeoutException
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from rclpy.time_source import CLOCK_TOPIC
from rclpy.waitable import Waitable

from ..command_streams import publisher_names
from ..ending import Ending, end_within, leave_now
from ..errors import TensegrityError, unknown_name
from .attention import LOOK, Attention, pause
from .hand_over import HandOver, InsidePublisher, InsideSubscription, profile

# States are published reliably, so that lock-step loses nothing; a passive subscriber may ask for best effort.
STATE = QoSProfile(depth=5, reliability=ReliabilityPolicy.RELIABLE)
LOCKSTEP_DEPTH = 1000
"""Messages that lock-step keeps for slow subscribers, such as a recorder on a busy computer."""
NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
"""Subscription to states by controllers: a late controller takes the newest state, since late feedback destabilises."""
WRENCHES = QoSProfile(depth=20)
"""Quality of service of wrenches and payloads: reliable; several bodies may be pushed at once."""
CARRIED = "carried_payloads"
"""Latched topic: payloads of the robot in addition to those of its file."""
SENSORS = QoSProfile(depth=50, reliability=ReliabilityPolicy.RELIABLE)
"""Quality of service of IMU readings; several IMUs publish in every period."""
COMMAND = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
STOPPED = "stopped"
"""Latched topic of the node that moves the robot: `HELD`, reason and remedy; empty while commands are followed."""
HELD, FREE = "the robot is held: ", "the robot is no longer held: holding where it stands"
WORLD = "world"
ANSWERED = "its state is answered"
"""Ending of a paused simulator's reply to `set_paused` in lock-step, sent once its followers stand still, too."""
STARTING = 30.0
"""Wall time [s] that a controller may need until its first command in lock-step; a longer wait is a warning."""
CLOSING = 30.0
"""Longest duration of a node's shutdown [s]; the process ends after it in any case."""

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR


MOST = 50
"""Largest number of callbacks per round of `handle_waiting`, so that a flood of messages cannot block the round."""
NEWS = 20
"""Problems per second that are published and logged at once; of further ones the next diagnostics show the last."""
REPEATED = 10.0
"""Wall time [s] between two lines of the log about a problem of which only numbers change; diagnostics tell all."""
_NUMBER = re.compile(r"[-+]?\d[\d.]*(e[-+]?\d+)?")
LONGEST_WORDS = 2000
"""Longest text in the diagnostics [characters]; names in hostile messages may have any length."""


class RobotNode(Node):
    """Node with checked parameters that publishes diagnostics once per second of wall time.

    Attributes:
        attention: decides which callbacks the node checks in each wait; a service that cannot wait takes
            `attention.prompt` as its callback group.
        survived: number of errors that came from outside and that no callback had handled.
        refusals: reason why the last message of a topic was refused, by `TOPIC_refused`.
        status_text, status_values: message of the diagnostics, and its values by name.
    """

    def __init__(self, name: str) -> None:
        self._hand_over = HandOver.current  # before rclpy makes its own publishers and subscriptions
        self.attention = Attention()
        super().__init__(name, cli_args=list(self._hand_over.arguments) if self._hand_over else None)
        self.survived, self.refusals = 0, dict[str, str]()
        self._own_error: Exception | None = None
        self._news, self._news_since = 0, 0.0
        self._logged, self._logged_at = "", -REPEATED
        self._choices: dict[str, Sequence[str]] = {}
        self._changed: Callable[[str, Any], None] | None = None
        self._said_level, self.status_text = WARN, "starting"
        self.status_values: dict[str, Any] = {}
        self._last_problem = ""
        self.later: Callable[[], Mapping[str, Any]] | None = None
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", QoSProfile(depth=10))
        self.add_on_set_parameters_callback(self._check_parameters)
        self.wall_clock = Clock(clock_type=ClockType.STEADY_TIME)
        self._diagnostic_timer = self.create_timer(1.0, self.report, clock=self.wall_clock)

    # -- life -----------------------------------------------------------------------------------------------------

    @property
    def default_callback_group(self) -> CallbackGroup:
        """Callback group of all that the node need not check in every wait, such as rclpy's own services and events."""
        return self.attention.patient

    @property
    def waitables(self) -> Iterator[Waitable]:
        """Waitables for the executor as in rclpy; none while the node waits for messages alone, to save time."""
        return super().waitables if self.attention.everything else iter(())

    def spin(self, executor: SingleThreadedExecutor, ending: Ending) -> None:
        """Handle callbacks until the end is requested."""
        attention = self.attention

        def look() -> None:
            attention.everything = True

        timer, took = self.create_timer(LOOK, look, clock=self.wall_clock), 0.0
        while not ending.asked and self.context.ok():
            taken = attention.taken
            timer.timer_period_ns = round(1e9 * pause(took))
            timer.reset()
            attention.everything = False
            while not (attention.everything or ending.asked) and self.context.ok():
                self.survive(executor.spin_once)
            attention.everything = True
            if taken == attention.taken:  # no messages arrive: wait for anything
                timer.cancel()
            began, idle = time.monotonic(), timer.is_canceled()
            handle_waiting(executor, None if idle else 0.0, lambda _, step: self.survive(step))
            took = 0.0 if idle else time.monotonic() - began

    def begin_inside(self) -> None:
        """Hook that is called instead of `spin` where one executor serves several nodes."""

    def survive(self, step: Callable[[], Any]) -> None:
        """Execute one step of the executor; it raises only errors of the node's own work."""
        try:
            step()
        except ExternalShutdownException:
            raise
        except Exception as error:  # undecodable bytes, an invalid goal, ...
            if error is self._own_error:
                raise
            self.note_survived("what came in could not be read", error)

    def note_survived(self, what: str, error: Exception) -> None:
        self.survived += 1
        words = str(error) or type(error).__name__
        where = traceback.extract_tb(error.__traceback__)[-1:]
        location = "".join(f" ({each.filename.rsplit('/', 1)[-1]}:{each.lineno})" for each in where)
        self.set_status(ERROR, f"{what}: {type(error).__name__}: {words}{location}", survived_errors=self.survived)

    @contextmanager
    def noting_refusal(self, topic: str) -> Iterator[None]:
        """Context for handling a message of a topic; `refusals` keeps the reason of a refusal until a valid message."""
        self.refusals.pop(f"{topic}_refused", None)
        try:
            yield
        except TensegrityError as error:
            self.refusals[f"{topic}_refused"] = str(error)

    def close(self) -> None:
        """Release the resources that do not belong to ROS; called once at the end."""

    def destroy_node(self) -> None:
        """Destroy the node and its actions; rclpy keeps the actions, which others would see until the process ends."""
        for each in [each for each in super().waitables if isinstance(each, (ActionClient, ActionServer))]:
            each.destroy()
        super().destroy_node()

    # -- what comes from outside ----------------------------------------------------------------------------------

    def create_subscription(self, msg_type: Any, topic: str, callback: Any, *options: Any, **more: Any) -> Any:
        """As in rclpy, but an error in the callback does not end the node, and negative times are not taken."""
        is_clock = topic == CLOCK_TOPIC and not more.get("raw", False)  # a recorder takes messages as bytes

        @functools.wraps(callback)  # rclpy inspects the parameters: with or without the middleware's message info
        def shielded(*message: Any) -> None:
            self.attention.taken += 1
            try:
                if is_clock and message[0].clock.sec < 0:  # rclpy has no such time
                    self.set_status(WARN, f"a time of {message[0].clock.sec} s on {topic} is not taken: it is negative")
                else:
                    callback(*message)
            except Exception as error:
                self.note_survived(f"a message of {topic} could not be handled", error)

        if topic != CLOCK_TOPIC:
            more.setdefault("callback_group", self.attention.prompt)
        more.setdefault("event_callbacks", SubscriptionEventCallbacks(incompatible_qos=self._incompatible(topic)))
        join = functools.partial(super().create_subscription, msg_type, topic, shielded, *options, **more)
        quality: Any = options[0] if options else more["qos_profile"]
        if self._hand_over is None or more.get("raw") or len(inspect.signature(callback).parameters) != 1:
            return join()
        return InsideSubscription(
            self._hand_over.topic(self.resolve_topic_name(topic)), msg_type, profile(quality), shielded, join,
            super().destroy_subscription,
        )  # fmt: skip

    def destroy_subscription(self, subscription: Any) -> bool:
        """As in rclpy, also for subscriptions inside the process that do not exist in DDS."""
        if isinstance(subscription, InsideSubscription):
            subscription.destroy()
            return True
        return bool(super().destroy_subscription(subscription))

    def take_waiting(self, subscription: Any) -> None:
        """Handle the waiting messages of a subscription now, before a callback that needs them.

        An executor takes one message of each subscription per round, in the order of creation of the subscriptions.
        Inside a process, messages arrive in the order of publication, so that nothing is left to do.
        """
        joined = subscription.joined if isinstance(subscription, InsideSubscription) else subscription
        more = joined is not None

        def take() -> None:
            nonlocal more
            more = False  # also after a message that cannot be decoded
            with joined.handle:
                taken = joined.handle.take_message(joined.msg_type, joined.raw)
            if taken is not None:
                more = True
                joined.callback(taken[0])

        for _ in range(MOST):
            if not more:
                return
            self.survive(take)

    def create_publisher(self, msg_type: Any, topic: str, *options: Any, **more: Any) -> Any:
        """As in rclpy; composed nodes of the same process receive the messages directly."""
        if self._hand_over is not None:
            inside = self._hand_over.topic(self.resolve_topic_name(topic))
            more.setdefault("publisher_class", functools.partial(InsidePublisher, topic_of=inside))
        return super().create_publisher(msg_type, topic, *options, **more)

    def _incompatible(self, topic: str) -> Callable[[Any], None]:
        """Return the callback that reports a publisher whose quality of service is too low to be received."""

        def note(event: Any) -> None:
            policy = str(event.last_policy_kind).rsplit(".", 1)[-1].lower()
            text = f"{event.total_count} publishers of {topic} cannot be heard: their quality of service ({policy}) is"
            self.set_status(
                WARN, f"{text} less than what this node asks for; publish reliably", unheard_publishers=topic
            )

        return note

    def create_service(self, srv_type: Any, srv_name: str, callback: Any, *options: Any, **more: Any) -> Any:
        """As in rclpy, but a request that the callback cannot handle is refused."""

        def refuse(error: Exception) -> Any:
            self.note_survived(f"a request to {srv_name} could not be handled", error)
            response, reason = srv_type.Response(), f"{type(error).__name__}: {error}"[:LONGEST_WORDS]
            for name in ("reason", "message"):
                if hasattr(response, name):
                    setattr(response, name, reason)
            return response

        def shielded(request: Any, response: Any) -> Any:
            if foreign := foreign_types(request):
                return foreign
            try:
                return callback(request, response)
            except Exception as error:
                return refuse(error)

        async def shielded_coroutine(request: Any, response: Any) -> Any:
            try:
                return await callback(request, response)
            except Exception as error:
                return refuse(error)

        chosen = shielded_coroutine if inspect.iscoroutinefunction(callback) else shielded
        return super().create_service(srv_type, srv_name, chosen, *options, **more)

    def create_timer(self, timer_period_sec: float, callback: Any, *options: Any, **more: Any) -> Any:
        """As in rclpy; an error in the callback counts as the node's own error."""

        def own() -> None:
            try:
                callback()
            except Exception as error:
                self._own_error = error
                raise

        async def own_coroutine() -> None:
            try:
                await callback()
            except Exception as error:
                self._own_error = error
                raise

        if timer_period_sec < 0.1:
            more.setdefault("callback_group", self.attention.prompt)
        chosen = own_coroutine if inspect.iscoroutinefunction(callback) else own
        return super().create_timer(timer_period_sec, chosen, *options, **more)

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
        """Declare a parameter and return its value; an unknown value or one out of range is refused with a reason."""
        descriptor = ParameterDescriptor(description=text, read_only=not live)
        if choices:
            descriptor.additional_constraints = "one of: " + ", ".join(choices)
            self._choices[name] = tuple(choices)
        if low is not None and high is not None:
            descriptor.floating_point_range = [FloatingPointRange(from_value=float(low), to_value=float(high))]
        value = self.declare_parameter(name, default, descriptor).value
        if choices and value not in choices:
            raise TensegrityError(unknown_name("value", value, choices, f"of parameter {name}"))
        return value

    def on_change(self, function: Callable[[str, Any], None]) -> None:
        """Call function(name, value) before a live parameter changes; a TensegrityError from it refuses the change."""
        self._changed = function

    def _check_parameters(self, parameters: list[Parameter]) -> SetParametersResult:
        for each in parameters:
            if each.name in self._choices and each.value not in self._choices[each.name]:
                reason = unknown_name("value", each.value, self._choices[each.name], f"of parameter {each.name}")
                return SetParametersResult(successful=False, reason=reason)
            if self._changed is not None:
                try:
                    self._changed(each.name, each.value)
                except TensegrityError as error:
                    return SetParametersResult(successful=False, reason=str(error))
                except Exception as error:
                    self.note_survived(f"parameter {each.name} could not be set", error)
                    return SetParametersResult(successful=False, reason=f"{type(error).__name__}: {error}")
        return SetParametersResult(successful=True)

    # -- the graph ------------------------------------------------------------------------------------------------

    def command_publishers(self) -> tuple[str, ...]:
        """Names of all publishers of `actuator_command` in the ROS graph; a killed one stays there until its lease
        ends."""
        return self.publishers_of("actuator_command")

    def publishers_of(self, topic: str) -> tuple[str, ...]:
        """Names of all publishers of a topic in the ROS graph; empty for less than two."""
        if self.count_publishers(topic) < 2:  # the usual case, in a few microseconds
            return ()
        return publisher_names(
            [(each.node_namespace, each.node_name) for each in self.get_publishers_info_by_topic(topic)]
        )

    # -- diagnostics ----------------------------------------------------------------------------------------------

    def set_status(self, level: bytes, message: str, **values: Any) -> None:
        """Set level, message and values of the diagnostics; a new problem is published and logged at once."""
        if len(message) > LONGEST_WORDS:
            message = message[:LONGEST_WORDS] + " ..."
        fresh = message != self._last_problem and level != OK
        self._said_level, self.status_text = level, message
        self.status_values.update(values)
        if level == OK:
            self._last_problem = ""
        elif fresh:
            self._last_problem = message
            if self._may_log_now():
                if not self._is_repeated(message):
                    self.get_logger().warning(message)
                self.report()

    def say_silence(self, waited: float, consequence: str, *, commanded: bool) -> None:
        """Report in lock-step that no command has arrived for `waited` s of wall time.

        This is an error once a command has been received. Before the first command it is part of the start, since
        nodes that are started together are not ready at the same time.
        """
        silent_for = f"{waited:.1f} s"
        if commanded:
            self.set_status(ERROR, f"the controller does not answer: {consequence}", silent_for=silent_for)
        else:
            text = f"waiting for the first command of a controller: {consequence}"
            self.set_status(WARN if waited > STARTING else OK, text, silent_for=silent_for)

    def add_status_values(self, values: Callable[[], Mapping[str, Any]]) -> None:
        """Add a function that gives further diagnostic values; it is called only when they are published."""
        self.later = values

    def _is_repeated(self, message: str) -> bool:
        """Whether a problem is that of the last line of the log, within `REPEATED` s, with other numbers."""
        now = time.monotonic()
        same = message != self._logged and _NUMBER.sub("", message) == _NUMBER.sub("", self._logged)
        if same and now - self._logged_at < REPEATED:
            return True
        self._logged, self._logged_at = message, now
        return False

    def _may_log_now(self) -> bool:
        """Whether the number of reports in this second allows one more; a flood must fill neither log nor network."""
        now = time.monotonic()
        if now - self._news_since > 1.0:
            self._news, self._news_since = 0, now
        self._news += 1
        return self._news <= NEWS

    @property
    def diagnostic_name(self) -> str:
        """Name in the diagnostics, with the namespace if there is one, since all robots of a ROS domain share them."""
        return self.get_fully_qualified_name().lstrip("/")

    @property
    def hardware_id(self) -> str:
        """Robot that the diagnostics concern: the parameter `robot` of the node."""
        return str(self.get_parameter("robot").value) if self.has_parameter("robot") else ""

    def report(self) -> None:
        """Publish the diagnostics now."""
        if self.later is not None:
            try:
                self.status_values.update(self.later())
            except Exception as error:  # an error in texts for people must not end the node
                self.status_values["not_said"] = f"{type(error).__name__}: {error}"
        values = [KeyValue(key=key.replace("_", " "), value=str(value)) for key, value in self.status_values.items()]
        status = DiagnosticStatus(
            level=self._said_level, name=self.diagnostic_name, message=self.status_text, values=values,
            hardware_id=self.hardware_id,
        )  # fmt: skip
        array = DiagnosticArray(status=[status])
        array.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics.publish(array)


def sent_in(lockstep: bool, usual: QoSProfile = STATE) -> QoSProfile:
    """Quality of service of messages that are published in every period.

    In lock-step no feedback is late, and robot time may run much faster than wall time. Messages are therefore kept
    until slow subscribers have taken them, so that a recording is complete.
    """
    return QoSProfile(depth=LOCKSTEP_DEPTH, reliability=ReliabilityPolicy.RELIABLE) if lockstep else usual


def stop_in_words(node: str, reason: str | None) -> str:
    """Text on `STOPPED` for an emergency stop with this reason; empty for None (no emergency stop)."""
    if reason is None:
        return ""
    return (
        f"{HELD}emergency stop ({reason}); when it is safe call {node}/release (`tensegrity release`), then ask again"
    )


def heard(publisher: Any) -> bool:
    """Whether the publisher has subscribers; without any, only latched messages need to be published."""
    return bool(publisher.get_subscription_count())


def handle_waiting(
    executor: SingleThreadedExecutor,
    timeout: float | None,
    survive: Callable[[RobotNode | None, Callable[[], Any]], None],
) -> None:
    """Execute at most `MOST` waiting callbacks of the executor; wait up to `timeout` s for the first (None: no limit).

    Args:
        survive: executes one step of a node (None if the node is unknown), see `RobotNode.survive`.
    """
    nothing = False
    owner: Any = None
    handler: Any = None

    def wait() -> None:
        nonlocal nothing, owner, handler
        handler = None
        try:
            handler, _, owner = executor.wait_for_ready_callbacks(timeout_sec=timeout)
        except (TimeoutException, ShutdownException):
            nothing = True

    def do() -> None:
        handler()
        if (problem := handler.exception()) is not None:
            raise problem

    for _ in range(MOST):
        survive(None, wait)
        if nothing:
            return
        if handler is not None:
            survive(owner, do)
        timeout = 0.0


def run_node(make: Callable[[], RobotNode]) -> NoReturn:
    """Run a node until SIGINT or SIGTERM, then end the process: status 0, or 1 with an error line if it cannot start.

    It prints nothing whenever the signal arrives. A callback that takes longer than `GRACE` after it is interrupted.
    """

    def work(executor: SingleThreadedExecutor, ending: Ending, release: ExitStack) -> None:
        try:
            node = make()
            release.callback(node.destroy_node)
            release.callback(node.close)
            executor.add_node(node)
            spare_collections()
            node.spin(executor, ending)
        except TensegrityError as error:
            raise TensegrityError(f"{getattr(make, '__name__', 'node')}: {error}") from error

    run_in_ros(work)


def spare_collections() -> None:
    """Exclude all present objects (imports and kernels, about half a million) from Python's garbage collection, which
    would otherwise stop a control loop for 0.1 s at each full collection."""
    gc.freeze()


def run_in_ros(work: Callable[[SingleThreadedExecutor, Ending, ExitStack], None]) -> NoReturn:
    """Run a function in ROS until SIGINT or SIGTERM, then end the process: status 0, or 1 with the line of a
    TensegrityError.

    Args:
        work: function of the executor, the ending that it must check, and the stack of resources to close (last in,
            first out).
    """
    status = 0
    with ExitStack() as release:
        release.callback(rclpy.try_shutdown)
        with Ending() as ending:
            # rclpy's own signal handlers would shut the context down in another thread, while callbacks run
            rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
            # the single-threaded executor: timers never fire in the experimental events executor of the wheels
            executor = SingleThreadedExecutor()
            release.callback(executor.shutdown)
            for waking in (ending.when_asked, ending.when_clock_was_set_back):
                waking(lambda: executor.create_task(lambda: None))
            try:
                work(executor, ending, release)
            except TensegrityError as error:
                if not ending.asked:
                    print(error, file=sys.stderr)
                    status = 1
            except ExternalShutdownException:
                pass
        end_within(CLOSING, status)
    leave_now(status)


def foreign_types(request: Any) -> Any:
    """Refusal of a request that sets parameters of an unknown type, else None; rclpy would not answer such a
    request."""
    if not isinstance(request, (SetParameters.Request, SetParametersAtomically.Request)):
        return None
    wrong = [each for each in request.parameters if each.value.type > ParameterType.PARAMETER_STRING_ARRAY]
    if not wrong:
        return None
    reason = f"parameter {wrong[0].name!r}: {wrong[0].value.type} is no type of parameters (0 to 9); nothing was set"
    refused = SetParametersResult(successful=False, reason=reason[:LONGEST_WORDS])
    if isinstance(request, SetParametersAtomically.Request):
        return SetParametersAtomically.Response(result=refused)
    return SetParameters.Response(results=[refused] * len(request.parameters))
