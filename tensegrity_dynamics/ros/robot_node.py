"""What all nodes share: declared parameters, diagnostics, quality of service, and a clean end.

Nothing that comes from outside ends a node: not a message, a call, a parameter, nor bytes that are no message. What a
callback did not foresee is answered by a refusal and said in the diagnostics. An error in the node's own work (a timer)
does end it, since nobody knows what it would do next.
"""

from __future__ import annotations

import functools
import gc
import inspect
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

# States are published reliably, so that in lock-step nothing is lost; whoever only watches may ask for best effort.
STATE = QoSProfile(depth=5, reliability=ReliabilityPolicy.RELIABLE)
LOCKSTEP_DEPTH = 1000
"""Messages that are kept in lock-step for who is not quick enough, such as a recorder on a busy machine."""
NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
"""Of states, for whoever answers them: one that is behind takes the newest, since late feedback destroys."""
WRENCHES = QoSProfile(depth=20)
"""And payloads. Reliable; several bodies may be pushed at once."""
CARRIED = "carried_payloads"
"""Latched topic: what the robot carries beside the payloads of its file."""
SENSORS = QoSProfile(depth=50, reliability=ReliabilityPolicy.RELIABLE)
"""Of IMUs; several tell in every period."""
COMMAND = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
STOPPED = "stopped"
"""Latched topic of whoever moves the robot: `HELD`, why, and what ends it; an empty text where it follows commands."""
HELD, FREE = "the robot is held: ", "the robot is no longer held: holding where it stands"
WORLD = "world"
ANSWERED = "its state is answered"
"""How a simulator that stands still in lock-step ends its answer to `set_paused` once its followers do, too."""
STARTING = 30.0
"""s of wall time that a controller may take to its first command in lock-step before it is missed."""
CLOSING = 30.0
"""s that a node may take from its end to the last line of its closing; then its process ends all the same."""

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR


MOST = 50
"""Callbacks per round of `handle_waiting`, so that a flood cannot keep the round from its end."""
NEWS = 20
"""Problems that are published and logged at once per second; of more the last one is in the next diagnostics."""
LONGEST_WORDS = 2000
"""Characters of one text in the diagnostics; names in hostile messages may be of any length."""


class RobotNode(Node):
    """A node with checked parameters and diagnostics once a second of wall time.

    Attributes:
        attention: what it looks at; give `attention.prompt` as callback group of a service that cannot wait.
        survived: errors that came from outside and that no callback had foreseen.
        refusals: why the last message of a topic was refused, by `TOPIC_refused`.
        status_text, status_values: what its diagnostics say, in words and by name.
    """

    def __init__(self, name: str) -> None:
        self._hand_over = HandOver.current  # before rclpy makes its own publishers and subscriptions
        self.attention = Attention()
        super().__init__(name, cli_args=list(self._hand_over.arguments) if self._hand_over else None)
        self.survived, self.refusals = 0, dict[str, str]()
        self._own_error: Exception | None = None
        self._news, self._news_since = 0, 0.0
        self._choices: dict[str, Sequence[str]] = {}
        self._changed: Callable[[str, Any], None] | None = None
        self._said_level, self.status_text = WARN, "starting"
        self.status_values: dict[str, Any] = {}
        self._last_problem = ""
        self._later: Callable[[], Mapping[str, Any]] | None = None
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", QoSProfile(depth=10))
        self.add_on_set_parameters_callback(self._check_parameters)
        self.wall_clock = Clock(clock_type=ClockType.STEADY_TIME)
        self._diagnostic_timer = self.create_timer(1.0, self.report, clock=self.wall_clock)

    # -- life -----------------------------------------------------------------------------------------------------

    @property
    def default_callback_group(self) -> CallbackGroup:
        """Of what this node need not look at each time it waits, rclpy's own services and events among it."""
        return self.attention.patient

    @property
    def waitables(self) -> Iterator[Waitable]:
        """As rclpy's, for its executor; while this node looks at messages alone none, so that they cost nothing."""
        return super().waitables if self.attention.everything else iter(())

    def spin(self, executor: SingleThreadedExecutor, ending: Ending) -> None:
        """Handle what comes until the end is asked for."""
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
            if taken == attention.taken:  # nothing flows: wait for anything
                timer.cancel()
            began, idle = time.monotonic(), timer.is_canceled()
            handle_waiting(executor, None if idle else 0.0, lambda _, step: self.survive(step))
            took = 0.0 if idle else time.monotonic() - began

    def begin_inside(self) -> None:
        """Called instead of `spin` where an executor works for several nodes."""

    def survive(self, step: Callable[[], Any]) -> None:
        """Do a step of the executor; only errors of the node's own work come out of it."""
        try:
            step()
        except ExternalShutdownException:
            raise
        except Exception as error:  # bytes that are no message, a goal that is none, ...
            if error is self._own_error:
                raise
            self._note_survived("what came in could not be read", error)

    def _note_survived(self, what: str, error: Exception) -> None:
        self.survived += 1
        words = str(error) or type(error).__name__
        where = traceback.extract_tb(error.__traceback__)[-1:]
        location = "".join(f" ({each.filename.rsplit('/', 1)[-1]}:{each.lineno})" for each in where)
        self.set_status(ERROR, f"{what}: {type(error).__name__}: {words}{location}", survived_errors=self.survived)

    @contextmanager
    def noting_refusal(self, topic: str) -> Iterator[None]:
        """Take a message of a topic; why it was refused stands in `refusals` until a good one of that topic comes."""
        self.refusals.pop(f"{topic}_refused", None)
        try:
            yield
        except TensegrityError as error:
            self.refusals[f"{topic}_refused"] = str(error)

    def close(self) -> None:
        """Let go of what is not ROS; called once at the end."""

    def destroy_node(self) -> None:
        """As rclpy's, which leaves actions alone: then the others would see this node until its process is gone."""
        for each in [each for each in super().waitables if isinstance(each, (ActionClient, ActionServer))]:
            each.destroy()
        super().destroy_node()

    # -- what comes from outside ----------------------------------------------------------------------------------

    def create_subscription(self, msg_type: Any, topic: str, callback: Any, *options: Any, **more: Any) -> Any:
        """As rclpy's, but no message makes the callback end the node."""

        @functools.wraps(callback)  # rclpy looks at the parameters: with what the middleware reports a message, or not
        def shielded(*message: Any) -> None:
            self.attention.taken += 1
            try:
                callback(*message)
            except Exception as error:
                self._note_survived(f"a message of {topic} could not be handled", error)

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
        """As rclpy's, also for those that are not on the bus."""
        if isinstance(subscription, InsideSubscription):
            subscription.destroy()
            return True
        return bool(super().destroy_subscription(subscription))

    def take_waiting(self, subscription: Any) -> None:
        """Handle now what has come for a subscription, before something that must know of it.

        An executor takes one message of each subscription a round, in the order in which they were made. Inside a
        process messages come in the order in which they were published, and there is nothing to do.
        """
        joined = subscription.joined if isinstance(subscription, InsideSubscription) else subscription
        more = joined is not None

        def take() -> None:
            nonlocal more
            more = False  # also after one that cannot be read
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
        """As rclpy's; what it publishes is handed over to the nodes of the same process, where they are composed."""
        if self._hand_over is not None:
            inside = self._hand_over.topic(self.resolve_topic_name(topic))
            more.setdefault("publisher_class", functools.partial(InsidePublisher, topic_of=inside))
        return super().create_publisher(msg_type, topic, *options, **more)

    def _incompatible(self, topic: str) -> Callable[[Any], None]:
        """Says that a publisher of a topic offers less than this node asks for, so that nothing of it arrives."""

        def note(event: Any) -> None:
            policy = str(event.last_policy_kind).rsplit(".", 1)[-1].lower()
            text = f"{event.total_count} publishers of {topic} cannot be heard: their quality of service ({policy}) is"
            self.set_status(
                WARN, f"{text} less than what this node asks for; publish reliably", unheard_publishers=topic
            )

        return note

    def create_service(self, srv_type: Any, srv_name: str, callback: Any, *options: Any, **more: Any) -> Any:
        """As rclpy's, but a request that the callback did not foresee is refused."""

        def refuse(error: Exception) -> Any:
            self._note_survived(f"a request to {srv_name} could not be handled", error)
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
        """As rclpy's; an error in the callback is the node's own."""

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
                except Exception as error:
                    self._note_survived(f"parameter {each.name} could not be set", error)
                    return SetParametersResult(successful=False, reason=f"{type(error).__name__}: {error}")
        return SetParametersResult(successful=True)

    # -- the graph ------------------------------------------------------------------------------------------------

    def command_publishers(self) -> tuple[str, ...]:
        """Names of all publishers of `actuator_command`, as the graph knows them; one that was killed stays in it
        until its lease is over."""
        topic = "actuator_command"
        if self.count_publishers(topic) < 2:  # the usual case, in a few microseconds
            return ()
        return publisher_names(
            [(each.node_namespace, each.node_name) for each in self.get_publishers_info_by_topic(topic)]
        )

    # -- diagnostics ----------------------------------------------------------------------------------------------

    def set_status(self, level: bytes, message: str, **values: Any) -> None:
        """What the diagnostics say from now on; a new problem is published and logged at once."""
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
                self.get_logger().warning(message)
                self.report()

    def say_silence(self, waited: float, consequence: str, *, commanded: bool) -> None:
        """In lock-step no command has come for `waited` s of wall time: a fault once somebody has commanded.

        Before, it is a start: those that are started together are not ready together.
        """
        silent_for = f"{waited:.1f} s"
        if commanded:
            self.set_status(ERROR, f"the controller does not answer: {consequence}", silent_for=silent_for)
        else:
            text = f"waiting for the first command of a controller: {consequence}"
            self.set_status(WARN if waited > STARTING else OK, text, silent_for=silent_for)

    def add_status_values(self, values: Callable[[], Mapping[str, Any]]) -> None:
        """Values that the diagnostics say as well; made when they are published, and not in every period."""
        self._later = values

    def _may_log_now(self) -> bool:
        """Whether there were not too many news within a second: a flood must fill neither the log nor the network."""
        now = time.monotonic()
        if now - self._news_since > 1.0:
            self._news, self._news_since = 0, now
        self._news += 1
        return self._news <= NEWS

    @property
    def diagnostic_name(self) -> str:
        """Name in the diagnostics, which all robots of a domain share: with the namespace, where there is one."""
        return self.get_fully_qualified_name().lstrip("/")

    @property
    def hardware_id(self) -> str:
        """The robot that the diagnostics are of, as the node was given it."""
        return str(self.get_parameter("robot").value) if self.has_parameter("robot") else ""

    def report(self) -> None:
        """Publish the diagnostics now."""
        if self._later is not None:
            try:
                self.status_values.update(self._later())
            except Exception as error:  # words for people end no node
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
    """Quality of service of what is published in every period.

    In lock-step nobody's feedback is late, and the robot's time may run much faster than the clock: what somebody who
    only listens has not taken yet is kept, so that a recording has all of it.
    """
    return QoSProfile(depth=LOCKSTEP_DEPTH, reliability=ReliabilityPolicy.RELIABLE) if lockstep else usual


def stop_in_words(node: str, reason: str | None) -> str:
    """What a node tells on `STOPPED` where its emergency stop holds for a reason, or does not (None)."""
    if reason is None:
        return ""
    return f"{HELD}emergency stop ({reason}); when it is safe call {node}/release, then ask again"


def heard(publisher: Any) -> bool:
    """Whether anybody subscribes; a message that nobody gets need not be made, unless it is latched."""
    return bool(publisher.get_subscription_count())


def handle_waiting(
    executor: SingleThreadedExecutor,
    timeout: float | None,
    survive: Callable[[RobotNode | None, Callable[[], Any]], None],
) -> None:
    """Do what waits in the executor, at most `MOST` things; wait for the first for `timeout` s, None for ever.

    Args:
        survive: does one step of a node (None where nobody knows whose it is), see `RobotNode.survive`.
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
    """Run a node until SIGINT or SIGTERM and end the process; exit status 0, or 1 with one line where it cannot start.

    Quiet at whatever instant the signal comes. A callback that takes longer than `GRACE` after it is broken off.
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
    """Let Python's garbage collector no longer look at what there is now (imports and kernels, some half million
    objects): it would stop a control loop for 0.1 s each time it looks at all of them."""
    gc.freeze()


def run_in_ros(work: Callable[[SingleThreadedExecutor, Ending, ExitStack], None]) -> NoReturn:
    """Do work in ROS that ends quietly by SIGINT and SIGTERM, and with it the process: exit status 0, or 1 with the
    line of a TensegrityError.

    Args:
        work: with an executor, the end that it looks at, and where it leaves what is to be closed, last in first out.
    """
    status = 0
    with ExitStack() as release:
        release.callback(rclpy.try_shutdown)
        with Ending() as ending:
            # rclpy's own handlers would shut the context down in another thread, in the middle of callbacks
            rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
            # the single-threaded executor: in the experimental events executor of the wheels timers never fire
            executor = SingleThreadedExecutor()
            release.callback(executor.shutdown)
            ending.when_asked(lambda: executor.create_task(lambda: None))
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
    """The refusal of a request that sets parameters of a type that there is none of, else None; rclpy knows no answer
    to it."""
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
