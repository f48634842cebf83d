"""Node `driver`: drives the servos of a robot, with the same topics as the simulator.

It is a lifecycle node: configure opens the bus and checks every servo, activate starts from the measured lengths,
deactivate holds (or switches torque off), cleanup closes the port. In every period it reads all servos, publishes their
state and writes the last command within the limits of the safety layer. At the start it identifies every spool by a
small motion. Meanwhile it publishes no states: a controller that received them would begin motions that the driver does
not follow. In lock-step, with emulated servos in this process, each cycle waits for the command with the stamp of the
last state, as in the simulator.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.lifecycle import LifecycleNodeMixin, LifecycleState, TransitionCallbackReturn
from rosgraph_msgs.msg import Clock as ClockMessage
from sensor_msgs.msg import JointState, TimeReference
from std_msgs.msg import String
from std_srvs.srv import Trigger
from tensegrity.msg import ActuatorCommand, TendonState
from tensegrity.srv import Calibrate

from tensegrity_dynamics.errors import BusError, TensegrityError
from tensegrity_dynamics.robots.load_robot import load_robot
from tensegrity_dynamics.ros.command_decoding import mode_and_values
from tensegrity_dynamics.ros.geometry_messages import nanoseconds, time_message
from tensegrity_dynamics.ros.robot_description import DescriptionPublisher
from tensegrity_dynamics.ros.robot_node import (
    COMMAND,
    ERROR,
    HELD,
    LATCHED,
    OK,
    STOPPED,
    WARN,
    RobotNode,
    run_node,
    sent_in,
    stop_in_words,
)

from ..driver import Driver, open_driver
from ..hardware.hardware import Hardware
from ..hardware.open_hardware import choose_hardware
from ..robot_clock import RobotClock, steady_time
from ..safety.faults import Fault, Reaction
from ..safety.safety_layer import SafetyStep
from .driver_messages import DriverMessages

DEACTIVATE = ("hold", "torque off")
TRIES, BETWEEN = 5, 1.0
"""Number of attempts to open the bus at the start of the node, and wall time [s] between them: the supply may be
switched on with the computer, and emulated servos share the computer with all other processes that start."""
LOOKS, LONGEST_WAIT = 0.2, 120.0
"""s of wall time: interval between two checks for nodes that the driver waits for, and longest wait after the last of
them appeared. Then it starts without the missing ones; servos without commands hold."""
Transition = Callable[["DriverNode", LifecycleState], TransitionCallbackReturn]
SUCCESS, FAILURE, FAILED = (
    TransitionCallbackReturn.SUCCESS,
    TransitionCallbackReturn.FAILURE,
    TransitionCallbackReturn.ERROR,
)


def report_errors(transition: Transition) -> Transition:
    """Wrap a transition so that unexpected errors are reported, as rclpy only marks it as failed."""

    def run(node: DriverNode, state: LifecycleState) -> TransitionCallbackReturn:
        try:
            return transition(node, state)
        except Exception as error:
            node.note_failure(error)
            return FAILED

    return run


class DriverNode(LifecycleNodeMixin, RobotNode):
    """Lifecycle node of the driver, see the module; its parameters have descriptions.

    Args:
        choose: returns the hardware for the parameters.
    """

    def __init__(self, choose: Callable[..., Hardware] = choose_hardware) -> None:
        RobotNode.__init__(self, "driver")
        LifecycleNodeMixin.__init__(self)
        for service in self.services:
            if service.srv_name.endswith("/change_state"):
                service.callback = partial(self._change_state, service.callback)
        self._robot = load_robot(self.parameter("robot", "", "name of a shipped robot, or path of a robot file"))
        port = self.parameter("port", "", "serial port of the servos, or `emulated` for servos inside this node")
        board = self.parameter("board_port", "", "serial port of the potentiometer board, if there is one")
        self._calibration = self.parameter("calibration", "", "calibration file; empty: that of the robot file")
        autostart = self.parameter("autostart", True, "configure and activate by itself")
        followers = self.parameter(
            "wait_for",
            "",
            "node names, separated by blanks, whose diagnostics must arrive before it configures by itself",
        ).split()
        self._period = self.parameter(
            "period", 0.0, "period of the bus cycle [s]; 0: that of the robot file", low=0.0, high=1.0
        )
        self._overrun = self.parameter(
            "overrun", 0.0, "largest duration of a cycle, in periods; 0: that of the robot file", low=0.0, high=1000.0
        )
        timeout = self.parameter(
            "packet_timeout",
            0.0,
            "timeout of an answer of the bus [s]; 0: as its adapter needs",
            low=0.0,
            high=10.0,
        )
        ending = self.parameter(
            "deactivate", "hold", "state of the servos after the driver is deactivated", choices=DEACTIVATE
        )
        self._release_torque = ending == "torque off"
        identify = self.parameter("identify", True, "test every spool at the start by a small motion")
        if not identify:
            servos = self._robot.servos
            safety = {**(servos.get("safety") or {}), "identify": 0.0}
            self._robot = replace(self._robot, servos={**servos, "safety": safety})
        self._lockstep = self.parameter(
            "lockstep", False, "lock-step: wait for the controller's answer to every state; emulated servos only"
        )
        self._patience = self.parameter(
            "patience", 0.25, "wall time until a state is sent again in lock-step [s]", low=0.01, high=10.0
        )
        self._silence = self.parameter(
            "silence",
            2.0,
            "wall time without an answer after which the controller is reported in lock-step [s]",
            low=0.1,
            high=600.0,
        )
        self._hardware = choose(self._robot, port, board or None, own_time=self._lockstep, patience=timeout or None)
        self._tries = TRIES if autostart else 0  # remaining attempts
        self.driver: Driver | None = None
        self._messages: DriverMessages | None = None
        self._timer: Any = None
        self._active = False
        self._stopped: str | None = None
        self._failed: str | None = None
        self._faults: tuple[Fault, ...] = ()
        self._reactions: dict[str, Reaction] = {}
        self._ticks, self._tick = 0, 0  # cycles in lock-step so far, and ns of one
        self._published = self._answered = time.monotonic()
        self._commanded = False  # whether a command has arrived since activation, in lock-step
        self.robot_clock = RobotClock(lambda: int(self.get_clock().now().nanoseconds))
        self._last = steady_time()
        self._stamp = -1
        self._state: tuple[TendonState, JointState] | None = None
        self._description = DescriptionPublisher(self, self._robot)
        sent = sent_in(self._lockstep)
        self._joint_states = self.create_publisher(JointState, "joint_states", sent)
        self._tendon_states = self.create_publisher(TendonState, "tendon_states", sent)
        self._timing = self.create_publisher(TimeReference, "command_timing", sent)
        self._taken: TimeReference | None = None  # newest command not yet sent to the servos
        self._clock_publisher = self.create_publisher(ClockMessage, "/clock", sent) if self._lockstep else None
        self._stop_publisher, self._published_stop = self.create_publisher(String, STOPPED, LATCHED), "?"
        self._publish_stop()
        self.create_subscription(ActuatorCommand, "actuator_command", self._command, COMMAND)
        self.create_service(Trigger, "emergency_stop", self._emergency_stop, callback_group=self.attention.prompt)
        self.create_service(Trigger, "~/release", self._release)
        self.create_service(Calibrate, "~/calibrate", self._calibrate)
        self.set_status(OK, "unconfigured")
        self._missing = {f"{self.get_namespace()}/{each}".lstrip("/") for each in followers if autostart}
        self._heard_last = time.monotonic()
        self._hears: Any = None
        if self._missing:
            self._hears = self.create_subscription(DiagnosticArray, "/diagnostics", self._hear, 50)
        if autostart:
            self._starter = self.create_timer(0.0, self._start, clock=self.wall_clock)

    # -- lifecycle ------------------------------------------------------------------------------------------------

    def _hear(self, message: DiagnosticArray) -> None:
        """Note which of the awaited nodes have appeared."""
        there = self._missing.intersection(each.name for each in message.status)
        if there:
            self._missing -= there
            self._heard_last = time.monotonic()

    def _waits(self) -> bool:
        """Whether awaited nodes are still missing."""
        if self._hears is None:
            return False
        missing = ", ".join(sorted(self._missing))
        if missing and time.monotonic() - self._heard_last < LONGEST_WAIT:
            self.set_status(OK, f"unconfigured: waiting for {missing}")
            return True
        if missing:
            self.set_status(WARN, f"starting without {missing}: no diagnostics of a new node for {LONGEST_WAIT:g} s")
        self.destroy_subscription(self._hears)
        self._hears = None
        return False

    def _start(self) -> None:
        """Configure and activate when the awaited nodes have appeared; a bus that refuses is tried `TRIES` times."""
        self.destroy_timer(self._starter)
        if not self._tries:  # activated or shut down by a service call in the meantime
            return
        if self.driver is None and self._waits():
            self._starter = self.create_timer(LOOKS, self._start, clock=self.wall_clock)
            return
        self._tries -= 1
        if self.driver is not None or self.trigger_configure() == SUCCESS:
            self.trigger_activate()
        if self._tries:
            self._starter = self.create_timer(BETWEEN, self._start, clock=self.wall_clock)

    def _refuse(self, what: str, error: TensegrityError) -> TransitionCallbackReturn:
        """Report why the node is not configured or activated, and whether there is another attempt."""
        if not isinstance(error, BusError):
            self._tries = 0
        if self._tries:
            self.set_status(WARN, f"not {what} yet: {error} Trying again.")
        else:
            self.set_status(ERROR, f"cannot be {what}: {error}")
        return FAILURE

    def _change_state(self, change: Callable[..., Any], request: Any, response: Any) -> Any:
        """As in rclpy, which sends no answer for a transition that does not exist or is not allowed in this state."""
        with self.noting_refusal("transition"):
            try:
                return change(request, response)
            except Exception as error:
                asked = request.transition.label or request.transition.id
                raise TensegrityError(
                    f"lifecycle transition {asked!r} is not possible in the present state: {error}"
                ) from error
        response.success = False
        return response

    @report_errors
    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Open the bus and check it, its servos and its calibration; a failure is reported as a diagnostic."""
        try:
            hardware = self._hardware
            self.driver = open_driver(
                self._robot, hardware.open_bus, period=self._period or None, overrun=self._overrun or hardware.overrun,
                calibration=self._calibration or None, make_calibration=hardware.make_calibration,
            )  # fmt: skip
        except TensegrityError as error:
            return self._refuse("configured", error)
        self._messages = DriverMessages(self.driver)
        self._tick = round(1e9 * self.driver.period)
        self._faults, self._reactions = (), {}
        warnings = self.driver.warnings()
        for warning in warnings:
            self.get_logger().warning(warning)
        values = {"period": f"{1e3 * self.driver.period:g} ms", "warnings": " ".join(warnings) or "none"}
        self.set_status(OK, "inactive: the bus is open and nothing moves", **values)
        return SUCCESS

    @report_errors
    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Prepare the servos and start from the measured lengths."""
        driver = self.driver
        assert driver is not None
        self.robot_clock.begin()
        try:
            driver.begin(self._begins)
        except TensegrityError as error:
            return self._refuse("activated", error)
        self._tries = 0
        if self._stopped is not None:
            driver.stop(self._stopped)
        self._active, self._failed = True, None
        self._answered, self._commanded = time.monotonic(), False
        self._state = None  # an earlier state is outdated
        tick = 0.02 if self._lockstep else driver.period
        work = self._tick_lockstep if self._lockstep else self._cycle
        self._timer = self.create_timer(tick, work, clock=self.wall_clock)
        self.set_status(OK, "active")
        if self._lockstep:
            self._cycle()
        return SUCCESS

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Hold, or switch torque off, depending on the parameter `deactivate`."""
        return FAILED if self._failed is not None or not self._end() else SUCCESS

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Close the port."""
        self._close()
        self.set_status(OK, "unconfigured")
        return SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Deactivate and clean up."""
        self._tries = 0
        self._end()
        self._close()
        return SUCCESS

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """After an error: send the last command if possible and close the port; the node may be configured again."""
        self._end()
        self._close()
        self.set_status(
            ERROR, f"stopped by an error: {self._failed}; remove its cause, then configure and activate again"
        )
        return SUCCESS

    def note_failure(self, error: Exception) -> None:
        """Store the error that ended a transition or a cycle; log the traceback of an unexpected one."""
        self._failed = str(error) if isinstance(error, TensegrityError) else f"{type(error).__name__}: {error}"
        if not isinstance(error, TensegrityError):
            self.get_logger().error("".join(traceback.format_exception(error)))

    def _end(self) -> bool:
        """Stop the cycle and send the last command; returns whether that succeeded."""
        self._active = False
        if self._timer is not None:
            self.destroy_timer(self._timer)
            self._timer = None
        try:
            if self.driver is not None:
                self.driver.end(release_torque=self._release_torque)
        except TensegrityError as error:
            self._failed = self._failed or str(error)
            return False
        self.set_status(OK, f"inactive: {'torque is off' if self._release_torque else 'the servos hold'}")
        return True

    def _close(self) -> None:
        if self.driver is not None:
            self.driver.close()
        self.driver = self._messages = None

    def destroy_node(self) -> None:
        """Send the last command and close the port, however the node ends."""
        self._end()
        self._close()
        self._hardware.close()
        super().destroy_node()

    # -- running --------------------------------------------------------------------------------------------------

    @property
    def _now(self) -> int:
        """Time of the clock that stamps states and commands [ns]."""
        if self._lockstep:
            return self._ticks * self._tick
        return self.robot_clock.now

    def _begins(self) -> float:
        """Time [s] at which the first cycle starts."""
        self._last = steady_time()
        return 1e-9 * (self._now if self._lockstep else self.robot_clock.at(self._last))

    def _cycle(self) -> None:
        """Run one bus cycle and publish its state."""
        driver, messages = self.driver, self._messages
        if not self._active or driver is None or messages is None:
            return
        try:
            self._hardware.advance(driver.period)  # emulated servos advance to the present before a reading
            wall = steady_time()
            period, self._last = 1e-9 * (wall - self._last), wall
            if self._lockstep:
                period = driver.period
                self._ticks += 1
            # one reading of the clock for both: a pause between two readings would look like a clock jump
            self._stamp = self._now if self._lockstep else self.robot_clock.at(wall)
            if not self._lockstep:
                driver.see_publishers(self.command_publishers())
            step = driver.run(
                period, 1e-9 * self._stamp, None if self._lockstep else lambda: 1e-9 * (steady_time() - wall)
            )
            if self._taken is not None:
                self._taken.header.stamp = time_message(self._now)
                self._timing.publish(self._taken)
                self._taken = None
        except Exception as error:  # after any error the servos must stop
            self.note_failure(error)
            self.trigger_deactivate()
            return
        if driver.identifying and all(self._harmless(each) for each in step.faults):
            self._state = None  # states are published as soon as commands are followed
            self._report_step(step)
            return
        messages.update(period)
        stamp = time_message(self._stamp)
        self._state = messages.tendons(stamp), messages.joints(stamp)
        self._publish()
        self._report_step(step)

    def _publish(self) -> None:
        """Publish the state of the last cycle, after the clock."""
        if self._state is None:
            return
        tendons, joints = self._state
        if self._clock_publisher is not None:
            self._clock_publisher.publish(ClockMessage(clock=joints.header.stamp))
        self._tendon_states.publish(tendons)
        self._joint_states.publish(joints)
        self._published = time.monotonic()

    def _tick_lockstep(self) -> None:
        """Publish the state again if no command answers it, and report a longer silence."""
        wall = time.monotonic()
        if self.driver is not None:
            self.driver.see_publishers(self.command_publishers())
            if self.driver.identifying and self._state is None:
                self._cycle()  # no answer is expected
                return
        if wall - self._published < self._patience:
            return
        self._publish()
        if wall - self._answered > self._silence:
            waited = wall - self._answered
            self.say_silence(waited, "the emulated servos and their time are paused", commanded=self._commanded)

    def _report_step(self, step: SafetyStep) -> None:
        """Log new faults and report the state of the driver."""
        self._faults, self._reactions = step.faults, dict(step.reactions)
        self._publish_stop()
        for fault in step.new:
            self.get_logger().error(fault.line)
        for note in step.notes:
            self.get_logger().warning(note, throttle_duration_sec=1.0)
        if not step.faults and (set_by := self._clock_was_set()):
            self.set_status(WARN, set_by)
            return
        if not step.faults:
            identifying = self.driver is not None and self.driver.identifying
            self.set_status(
                OK, "identification: each spool is moved a little, to check its wiring" if identifying else "running"
            )
            return
        serious = [each for each in step.faults if not self._harmless(each)]
        shown = (serious or list(step.faults))[0].line
        more = f" (and {len(step.faults) - 1} more)" if len(step.faults) > 1 else ""
        self.set_status(ERROR if serious else WARN, shown + more)

    def _clock_was_set(self) -> str:
        """Message that the computer's clock was set, which the robot does not follow; empty if it was not."""
        assert self.driver is not None
        seconds = 0.0 if self._lockstep else 1e-9 * self.robot_clock.set_by
        if abs(seconds) <= self.driver.settings.safety.clock_jump:
            return ""
        return (
            f"the computer's clock was changed by {seconds:+.1f} s; states and commands still use the time from "
            "before: deactivate and activate the driver to use the new time"
        )

    def _harmless(self, fault: Fault) -> bool:
        assert self.driver is not None
        return self.driver.settings.safety.reaction(fault.kind) is Reaction.WARN

    def report(self) -> None:
        """Publish the diagnostics of the node, the bus and every servo."""
        super().report()
        if self._messages is not None:
            array = DiagnosticArray(status=self._messages.statuses(self.diagnostic_name, self._faults, self._reactions))
            for each in array.status:
                each.hardware_id = self.hardware_id
            array.header.stamp = self.get_clock().now().to_msg()
            self._diagnostics.publish(array)

    # -- commands -------------------------------------------------------------------------------------------------

    def _command(self, message: ActuatorCommand) -> None:
        driver, stamp = self.driver, nanoseconds(message.header.stamp)
        if driver is None:
            return
        if not self._active or (self._lockstep and stamp != self._stamp):
            driver.hear(message.source, int(message.session), 1e-9 * self._now, names=message.name)
            return
        try:
            mode, values = mode_and_values(message)
        except TensegrityError as error:
            self.set_status(WARN, f"command from {message.source or 'an unnamed source'} refused: {error}")
            return
        verdict = driver.command(
            message.name, values, mode, source=message.source, session=int(message.session),
            stamp=1e-9 * stamp, now=1e-9 * self._now, period=message.period,
        )  # fmt: skip
        for refusal in () if verdict.holds is not None else verdict.refusals:
            self.get_logger().warning(
                f"command from {message.source or 'an unnamed source'}: {refusal}", throttle_duration_sec=1.0
            )
        if verdict.accepted and verdict.set_points:
            self._taken = TimeReference(time_ref=message.header.stamp, source=message.source)
        if self._lockstep and (verdict.accepted or verdict.holds is not None):
            self._answered, self._commanded = time.monotonic(), True
            self._cycle()

    # -- services -------------------------------------------------------------------------------------------------

    def _emergency_stop(self, _: Any, response: Trigger.Response) -> Trigger.Response:
        self._stopped = "called by service"
        self._publish_stop()
        if self.driver is not None:
            self.driver.stop(self._stopped)
        response.success, response.message = True, "the servos hold until driver/release is called"
        return response

    def _publish_stop(self) -> None:
        """Publish changes of the reason why the robot holds until a release: an emergency stop, or a latched fault."""
        driver, text = self.driver, stop_in_words("driver", self._stopped)
        if driver is not None and not text:
            safety = driver.settings.safety
            stay = (each for each in driver.faults if each.kind in safety.latched)
            text = next((HELD + each.line for each in stay if safety.reaction(each.kind) is not Reaction.WARN), "")
        if text != self._published_stop:
            self._published_stop = text
            self._stop_publisher.publish(String(data=text))

    def _release(self, _: Any, response: Trigger.Response) -> Trigger.Response:
        """End the emergency stop and clear the faults whose causes have gone."""
        driver = self.driver
        was_stopped, self._stopped = self._stopped is not None, None
        if driver is None:
            self._publish_stop()
            response.success, response.message = True, "released; the driver is not configured"
            return response
        driver.release_stop(1e-9 * self._now)
        try:
            driver.recover()
            self._cycle()  # the causes must be absent in a separate cycle
            cleared = driver.clear()
        except TensegrityError as error:
            response.message = str(error)
            return response
        self._publish_stop()
        texts = [f"cleared {fault.kind.value}" + (f" of {fault.tendon}" if fault.tendon else "") for fault in cleared]
        response.success = bool(cleared) or was_stopped
        response.message = "; ".join(texts) or (
            "released" if was_stopped else "nothing to release: no emergency stop and no latched fault"
        )
        if response.success:
            response.message += "; each spool is moved a little, to check its wiring" if driver.identifying else ""
            response.message += (
                "; the robot holds its position until the next goal or until `hold` of the controller is called"
            )
        return response

    def _calibrate(self, request: Calibrate.Request, response: Calibrate.Response) -> Calibrate.Response:
        driver = self.driver
        try:
            if driver is None:
                raise TensegrityError("the driver is not configured; configure it first.")
            check = driver.calibrate(request.servo, list(request.reading), list(request.length), save=request.save)
        except TensegrityError as error:
            response.success, response.reason = False, str(error)
            return response
        fit = check.fit
        kept = [abs(each) for k, each in enumerate(fit.residuals) if k not in fit.outliers]
        response.success, response.reason = True, " ".join(check.warnings)
        response.slope, response.intercept, response.residual = fit.slope, fit.intercept, max(kept)
        return response


def main() -> int:
    """Run the node."""
    return run_node(DriverNode)


if __name__ == "__main__":
    sys.exit(main())
