"""Node `controller`: takes goals, publishes actuator commands.

It answers each structure_state with one actuator_command of the same stamp. A repeated state gets the same answer, so
that a lost message changes nothing in lock-step. `stop` latches: goals are refused until `hold` is called. Where a
controller fails, the actuators hold their positions until `hold` is called.
"""

from __future__ import annotations

import secrets
import sys
import time
from collections import deque
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import InertiaStamped, WrenchStamped
from sensor_msgs.msg import JointState, TimeReference
from std_msgs.msg import String
from std_srvs.srv import Trigger
from tensegrity.msg import ActuatorCommand, CarriedPayloads, Goal, Reference, StructureState, TendonState

from tensegrity_dynamics.command_streams import FRESHNESS, KILLED, REMEDY, SEVERAL
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robots.load_robot import load_robot
from tensegrity_dynamics.robots.output_frame import Pose
from tensegrity_dynamics.ros.geometry_messages import (
    carried_from_message,
    fill_payload,
    fill_pose,
    fill_twist,
    nanoseconds,
    payload_from_message,
    state_pose,
    wrench_from_message,
)
from tensegrity_dynamics.ros.robot_node import (
    CARRIED,
    COMMAND,
    ERROR,
    FREE,
    LATCHED,
    NEWEST,
    OK,
    SENSORS,
    STATE,
    STOPPED,
    WARN,
    WORLD,
    WRENCHES,
    RobotNode,
    heard,
    run_node,
    sent_in,
)

from ..command_latency import CommandLatency, FollowedCommands
from ..controller import Accepted, Command, Status
from ..external_loads import ExternalLoads
from ..inverse_kinematics.pose_goal import PoseGoal
from ..registry import load_refusal, make_quickly
from ..rehearsal import rehearse_once
from ..resting_error import RestingError
from ..tension_floor import TensionFloor
from .actuator_motion_server import ActuatorMotionServer
from .controller_parameters import ControllerParameters
from .goal_announcer import GoalAnnouncer
from .goal_requests import PoseGoalRequests
from .planning_thread import PlanningThread
from .state_conversion import StateReader, command_message
from .trajectory_server import TrajectoryServer

FAILURES = (Exception,)
"""Exceptions that a controller may raise for unforeseen numbers; the robot then holds and the node continues."""
READY = "ready: "
"""Prefix of the line that this node logs once it controls the robot."""
BRAKED = "the robot brakes for a new goal"
"""Reason for the end of a trajectory on whose way another goal is planned."""
UNHEARD_RATE = 2.0
"""Rate of `reference` without subscribers [1/s of robot time]; a new subscriber finds a recent message."""
OLDEST_STATE = 0.25
"""Largest age of a state that is extrapolated to the present [s]."""
SPACINGS = 20
"""Number of intervals between states from which their period is estimated."""
RECENT = 16
"""Number of recent actuator readings that are kept, since an estimator needs time for its state."""
RESTING_RATE = 5.0
"""Rate of checks of where the output rests [1/s of robot time]."""
SOURCES = ("joint_states", "structure_state")
"""Topics of the robot's state, each of which has one publisher."""
RIVALS = f"{SEVERAL}, so that motions end on their way; stop all but one ({KILLED})"
SILENT_LOOKS = 20
"""Looks of `_watch` without a new state, 0.5 s apart, after which motions of actions end: nobody else ends them if the
robot is gone. Looks are counted instead of time, so that a computer that was asleep is not taken for a lost robot."""
TIMING_PERIODS = 1.5
"""Periods after which the report of when a command took effect is used."""
LONGEST_STALL, WAKING = 10.0, 2.0
"""Time [s] of a process that stood still after which the senders of goals wait no more, and time after its waking in
which it takes none: those that came meanwhile are handled first."""


def new_session() -> int:
    """Random positive number of a command session."""
    return 1 + secrets.randbelow(2**64 - 1)


class ControllerNode(RobotNode):
    """Parameters: robot, lockstep, deadline, and those of `ControllerParameters`."""

    def __init__(self) -> None:
        super().__init__("controller")
        self._own_name = self.get_name()
        self._robot = load_robot(self.parameter("robot", "", "name of a shipped robot, or path of a robot file"))
        if self.parameter("servo_motors", False, "plans respect the speed-torque line of the servos of the robot file"):
            self._robot = self._robot.with_servo_motors()
        self._settings = ControllerParameters(self, self._robot)
        self._deadline = self.parameter(
            "deadline", 0.1, "wall time without a state after which it counts as late [s]", low=0.001, high=60.0
        )
        nominal = self.parameter(
            "command_delay", 0.0, "delay from a command to its effect [s], used until it is measured",
            low=0.0, high=1.0,
        )  # fmt: skip
        self._latency, self._acted = CommandLatency(nominal), deque[tuple[int, int]](maxlen=RECENT)
        self._follows, self._away, self._stood = FollowedCommands(FRESHNESS), 0.0, -np.inf
        self._reference_rate = self.parameter(
            "reference_rate", 50.0, "rate of the topic `reference` [1/s of the robot's time]; 0: with every command",
            low=0.0, high=10000.0,
        )  # fmt: skip
        self._shown: tuple[Any, ...] = ()
        lockstep = self.parameter(
            "lockstep",
            False,
            "lock-step: the simulator waits for every answer, also for those that need a plan",
        )
        self.planner = PlanningThread(self, lockstep)
        self._plans_beside = not lockstep
        self.controller = self._settings.make(self._settings.name)
        self.controller.plans_beside = self._plans_beside
        if not lockstep:  # there time stands still while functions are loaded
            name = self._settings.name
            rehearse_once(lambda: self._settings.make(name), name, self._robot)
        self.failed: str | None = None
        self.on_change(self._parameter_changed)
        self._reader = StateReader(self._robot)
        self._joints: JointState | None = None
        self._recent: deque[JointState] = deque(maxlen=RECENT)
        self._state: StructureState | None = None
        self.stamp: int | None = None
        self._answer: ActuatorCommand | None = None
        # changed by each goal and `hold`: after a release only these move a robot
        self._session = new_session()
        self._withheld: StructureState | None = None
        self._heard, self._late, self._missed, self._answered = time.monotonic(), 0, 0, 0
        self._spacings: deque[int] = deque(maxlen=SPACINGS)
        self._looks, self._looked = 0, -1.0
        self._awake, self._woke, self._slept = np.inf, -np.inf, 0.0  # wall times [s]; known from the first `_watch`
        self._rivals = ""
        self._robot_stopped = ""
        self.create_subscription(String, STOPPED, self._take_stop, LATCHED)
        self._commands = self.create_publisher(ActuatorCommand, "actuator_command", sent_in(lockstep, COMMAND))
        self._reference = self.create_publisher(Reference, "reference", LATCHED)
        self.asked = GoalAnnouncer(self, lambda: self.stamp)
        self._readings = self.create_subscription(JointState, "joint_states", self._keep_joints, STATE)
        self.floor, self._broken = TensionFloor(self._robot), ""
        self._resting, self._off = RestingError(self._robot), (-1, "")
        self.create_subscription(TendonState, "tendon_states", self._look_at_tensions, STATE)
        self._timings = self.create_subscription(TimeReference, "command_timing", self._keep_timing, STATE)
        self.create_subscription(StructureState, "structure_state", self._control, NEWEST)
        patience = self.parameter(
            "wrench_timeout",
            0.5,
            "time after its stamp for which a wrench of external_wrench acts [s]",
            low=0.01,
            high=60.0,
        )
        largest = self.parameter(
            "estimated_load_limit", -1.0, "largest part of estimated_wrench that is compensated [N; moments N m]; "
            "0: none, -1: half of the robot's weight", low=-1.0, high=1e9,
        )  # fmt: skip
        self.loads = ExternalLoads(self._robot, patience, None if largest < 0.0 else largest)
        # accepted goals, before the first answer that uses them: a replay needs the order
        self._load_publisher = self.create_publisher(WrenchStamped, "~/external_wrench", WRENCHES)
        self._payload_publisher = self.create_publisher(InertiaStamped, "~/payload", WRENCHES)
        self._estimates: Any = None
        self._hear_estimates()
        if self.parameter(
            "known_wrenches", True, "use external_wrench and payload as known loads, if the controller supports it"
        ):
            self.create_subscription(WrenchStamped, "external_wrench", self._take_wrench, WRENCHES)
            self.create_subscription(InertiaStamped, "payload", self._take_payload, WRENCHES)
            self.create_subscription(CarriedPayloads, CARRIED, self.begin_with, LATCHED)
        self._begun_with = False
        self.pose_goals = PoseGoalRequests(self, FAILURES)
        self.create_service(Trigger, "hold", self._hold, callback_group=self.attention.prompt)
        self.create_service(Trigger, "stop", self._stop, callback_group=self.attention.prompt)
        self.create_service(Trigger, "call_off", self._call_off, callback_group=self.attention.prompt)
        self.trajectories = TrajectoryServer(self, FAILURES)
        self.actuator_motions = ActuatorMotionServer(self, self._robot)
        self._sent: Command | None = None  # last command
        self.create_timer(0.5, self._watch, clock=self.wall_clock)
        self.set_status(OK, "waiting for structure_state")

    def _announce(self) -> int:
        """Open a session for a goal before it is planned: the plan is void after a release in the meantime
        (`tensegrity_dynamics.command_streams`)."""
        session = new_session()
        if self._state is not None:
            announcement = ActuatorCommand(source=self.get_name(), session=session)
            announcement.header.stamp, announcement.header.frame_id = self._state.header.stamp, WORLD
            self._commands.publish(announcement)
        return session

    def open_session(self) -> None:
        """Open a session: after a release, only commands of later sessions move the robot."""
        self._session = new_session()

    def close(self) -> None:
        """Cancel plans."""
        self.pose_goals.close()
        self.planner.close()

    # -- control --------------------------------------------------------------------------------------------------

    def _keep_joints(self, message: JointState) -> None:
        if self._reader.names_actuators(message):
            self._joints = message
        self._recent.append(message)
        if self.stamp is None and self._state is not None:
            self._control(self._state)

    def _take_stop(self, message: String) -> None:
        """The simulator or driver reports that it holds the robot, which voids goals, or that it follows commands
        again, which then start where the robot stands."""
        before, self._robot_stopped = self._robot_stopped, message.data
        if self._robot_stopped == before:
            return
        if self._robot_stopped:
            self.planner.cancel(self._robot_stopped)
            self.trajectories.finish(False, self._robot_stopped)
            self.actuator_motions.break_off(self.now, self._robot_stopped)
            self.asked.trigger(Goal.STOP, f"topic {STOPPED}", True, self._robot_stopped)
            return
        if self._state is not None and self.stamp is not None:
            self._stand_here(self._state)
        self.asked.trigger(Goal.HOLD, f"topic {STOPPED}", True, FREE)

    def _stand_here(self, state: StructureState) -> None:
        """Drop all motions and hold the present position; where that is impossible, wait for `hold`."""
        self.actuator_motions.forget("the robot was held")
        stopped = self.controller.status(self.now).phase == "stopped"
        try:
            if not self.planner.rests:
                raise TensegrityError("a plan was being given up when the robot was released.")
            self.controller.reset(self.now, self._reader.read(state, self._joints))
            if stopped:
                self.controller.stop(self.now)
        except TensegrityError as error:
            self._fail(self.failed or str(error))
        self._answer = None

    def _look_whether_followed(self, message: StructureState) -> None:
        """Where commands have expired, start from the present position: what was not executed did not move the
        robot."""
        self._follows.patience = max(FRESHNESS, 3.0 * self._settings.period)
        before, self._away = self._away, self._follows.away(self.now, self._session)
        if not self._away or self._robot_stopped or self.failed is not None:
            return
        if not before:
            why = f"commands were not followed for {self._away:.2f} s, what moves the robot holds it; {REMEDY}"
            self.get_logger().warning(why)
            self.planner.cancel(why)
            self.trajectories.finish(False, why)
            self._stood = -np.inf
        if self.planner.rests and not self.planner.busy and not 0.0 <= self.now - self._stood < FRESHNESS:
            self._stood = self.now
            self._stand_here(message)

    def _keep_timing(self, message: TimeReference) -> None:
        if message.source == self._own_name:
            self._acted.append((nanoseconds(message.time_ref), nanoseconds(message.header.stamp)))
            self._follows.acted(1e-9 * nanoseconds(message.header.stamp))

    def _take_timing(self, stamp: int) -> None:
        """Report of when commands took effect, used up to one period before a state; in lock-step it has then arrived
        in whatever order the topics are delivered."""
        while self._acted and self._acted[0][1] < stamp - TIMING_PERIODS * 1e9 * self._settings.period:
            answered, began = (1e-9 * each for each in self._acted.popleft())
            if self._latency.acted(answered, began):
                self.controller.acted(answered, began)

    def _look_at_tensions(self, message: TendonState) -> None:
        time = 1e-9 * nanoseconds(message.header.stamp)
        self._broken = self.floor.look(time, message.name, message.tension)

    def _control(self, message: StructureState) -> None:
        try:
            self._reader.check(message)
        except TensegrityError as error:  # of another robot: no answer
            self.set_status(ERROR, f"a state is not taken: {error}")
            return
        if self.planner.withholds:
            self._withheld = message
            if self.stamp is not None and nanoseconds(message.header.stamp) < self.stamp:
                self.planner.cancel("the simulation was reset")
            return
        self._withheld = None  # answered after a newer state it would look like a reset, which drops the goal
        stamp = nanoseconds(message.header.stamp)
        wall = time.monotonic()
        if stamp == self.stamp and self._answer is not None:
            self._heard = wall
            self._commands.publish(self._answer)
            return
        self._state = message
        since = 0 if self.stamp is None else stamp - self.stamp
        if self.stamp is None or stamp < self.stamp:
            if not self._start(message, stamp):
                return
        elif wall - self._heard > self._deadline:
            self._late += 1
        self._heard = wall
        self.stamp = stamp
        self.take_waiting(self._readings)  # after a busy period they may be queued behind this state
        self.take_waiting(self._timings)
        if self._estimates is not None:
            self.take_waiting(self._estimates)
        self._look_whether_followed(message)
        self.loads.update(self.controller, self.now)
        command = self._sent = self._command(message)
        period = float(self._settings.period)
        newest = message.header.stamp if self._joints is None else self._joints.header.stamp
        self._answer = command_message(command, self._own_name, self._session, period, message.header.stamp, newest)
        self._commands.publish(self._answer)
        status = self.controller_status()
        self._publish_reference(message.header.stamp, command, status)
        with suppress(TensegrityError):  # without a reference, as reported by the command
            self.trajectories.publish_feedback()
        self.actuator_motions.publish_feedback(self.now)
        phase, given = status.phase, status.relaxed
        self.add_status_values(self._values)
        if self.failed is not None:
            self.set_status(ERROR, f"the actuators hold, call hold to go on: {self.failed}")
        elif self._away:
            away = f"commands are not followed for {self._away:.1f} s"
            self.set_status(WARN, f"{away}, what moves the robot holds it; {REMEDY}: {self._robot_stopped or phase}")
        elif self._period_mismatch(since):
            periods = f"{1e-9 * self._spacing():.3g} s, the controller was made for {self._settings.period:g} s"
            self.set_status(WARN, f"states come every {periods}; set control_period alike")
        elif self._rivals:
            self.set_status(WARN, self._rivals)
        elif self._broken:
            self.set_status(WARN, self._broken)
        elif given:
            self.set_status(WARN, f"{phase}; relaxed: {'; '.join(given)}")
        elif message.converged:
            off = self._off_rest(status, message)
            self.set_status(WARN if off else OK, f"{phase}; {off}" if off else phase)
        else:
            self.set_status(WARN, "the estimator has no shape; commands go on without feedback")
        self._answered += 1
        self._missed += time.monotonic() - wall > 1e-9 * max(since, 0) > 0.0

    def _values(self) -> dict[str, Any]:
        """Values of the diagnostics."""
        values = {"controller": self._settings.name, "late_states": self._late, "missed_deadlines": self._missed}
        values["answered_states"] = self._answered
        values |= {"phase": self.controller_status().phase, "gaps": self.controller.gaps}
        values["command_latency"] = (
            f"{1e3 * self._latency.delay:.3g} ms, {'measured' if self._latency.measured else 'nominal'}"
        )
        values |= {"floors_broken": self.floor.breaches, "last_broken": self.floor.last or "none"}
        distance = self.controller.singularity_distance
        if distance is not None:
            values["distance_to_singularity"] = f"{distance:.3g}"
        values.update(self.controller.diagnostics())
        values |= self.pose_goals.diagnostics()
        if self.loads.estimate.any():
            force = " ".join(f"{each:.3g}" for each in self.loads.estimate[:3].tolist())
            values["estimated_load"] = f"{force} N on {self.loads.estimate_of}"
        return values | self.refusals

    def _period_mismatch(self, since: int) -> bool:
        """Whether the period of states differs from that of a torque or rate controller."""
        if since > 0:
            self._spacings.append(since)
        period = 1e9 * self._settings.period
        full = self.controller.is_sampled and len(self._spacings) == SPACINGS
        return full and abs(self._spacing() - period) > 0.2 * period

    def _spacing(self) -> int:
        """Interval between states [ns]: lower quartile of the recent ones, since some states are dropped under load."""
        return sorted(self._spacings)[SPACINGS // 4]

    def _command(self, message: StructureState) -> Command:
        """Command of the controller; the present positions where it fails."""
        if self.failed is None:
            try:
                self._take_timing(self.stamp or 0)
                if self.actuator_motions.moving and (command := self._follow_actuators(message)) is not None:
                    return command
                newest = self._newest(message)
                state = self._reader.observe(message, self._latency.age(self.now, newest))
                command = self.controller.command(self.now, state)
                self._latency.sent(self.now, newest)
                return command
            except FAILURES as error:
                self.trajectories.finish(False, str(error))
                self.actuator_motions.forget(str(error))
                with suppress(TensegrityError):
                    self.controller.stop(self.now)
                self._fail(str(error))
        return Command("position", tuple(each.name for each in self._robot.actuators), self._held)

    def _fail(self, reason: str) -> None:
        """Hold the actuators where they are until `hold` is called."""
        self._held = self._within_limits(self._reader.positions(self._joints))
        self.failed = reason

    def controller_status(self) -> Status:
        """Present activity, of a motion of actuators or of the controller."""
        return (
            self.actuator_motions.status(self.now) if self.actuator_motions.moving else self.controller.status(self.now)
        )

    def _off_rest(self, status: Status, message: StructureState) -> str:
        """Distance of the output from its rest pose, checked at `RESTING_RATE`; empty in motion or at rest pose."""
        if status.phase == "moving":
            return ""
        slot = int(RESTING_RATE * self.now)
        if slot != self._off[0]:
            off = ""
            with suppress(TensegrityError):  # without a reference, as reported by the command
                held = self.controller.reference(self.now).pose
                off = self._resting.look(self.now, status, held, state_pose(message))
            self._off = slot, off
        return self._off[1]

    def _follow_actuators(self, message: StructureState) -> Command | None:
        """Command of a motion of actuators; None after its end, when the controller is active."""
        joints = self._joints
        positions = {} if joints is None else dict(zip(joints.name, joints.position, strict=False))
        command = self.actuator_motions.command(self.now, positions)
        if command is None:
            stopped = self.controller.status(self.now).phase == "stopped"
            self.controller.reset(self.now, self._reader.read(message, joints))
            if stopped:
                self.controller.stop(self.now)
        return command

    def set_points(self) -> tuple[float, np.ndarray, np.ndarray | None]:
        """Time [s], set points and rates of the actuators at it, for a motion that begins there.

        Raises:
            TensegrityError: motions of actuators are refused at present.
        """
        self.ready(whole=True, among_actuators=True)
        phase = self.controller.status(self.now).phase
        if phase == "stopped":
            raise TensegrityError("the controller is stopped; call hold before sending a trajectory.")
        if self.actuator_motions.motion is not None:
            return self.now, *self.actuator_motions.motion.set_points(self.now)
        if phase == "moving" or self.planner.busy:
            raise TensegrityError("the robot moves to a goal; wait for its end, or call hold first.")
        sent = self._sent
        if sent is not None and sent.mode == "position":
            return self.now, np.array(sent.values), None
        return self.now, self._within_limits(self._reader.positions(self._joints)), None

    def announce_actuators(
        self, asked_by: str, trajectory: Any, tolerance: float, refused: str | None, arrival: float = 0.0
    ) -> None:
        """Report the result of a request for a trajectory of actuators; commands from now on belong to it."""
        if refused is None:
            self._answer = None
            self.open_session()
        self.asked.actuators(asked_by, trajectory, tolerance, refused, arrival)

    def cancel_actuators(self, asked_by: str) -> None:
        """Brake the present motion of actuators."""
        self.actuator_motions.break_off(self.now, "cancelled: holding")
        self.asked.trigger(Goal.CANCEL, asked_by, True, "holding")

    def _take_wrench(self, message: WrenchStamped) -> None:
        """Take a known load; an invalid one is reported in the diagnostics until a valid one arrives."""
        with self.noting_refusal("external_wrench"):
            self.loads.take(self.controller, *wrench_from_message(message), self.now)
            self._load_publisher.publish(message)

    def _take_payload(self, message: InertiaStamped) -> None:
        """Take a known payload, at once or when a controller that uses payloads becomes active."""
        with self.noting_refusal("payload"):
            self.loads.take_payload(*payload_from_message(message), self.now)
            self._payload_publisher.publish(message)
            if not self.controller.takes_payloads:
                raise TensegrityError(f"{message.header.frame_id}: {load_refusal(self.controller, self._robot)}")

    def begin_with(self, message: CarriedPayloads) -> None:
        """Payloads before this node subscribed: the first message lists all, `payload` reports later changes."""
        if self._begun_with:
            return
        self._begun_with = True
        with self.noting_refusal("payload"):
            for each in self.loads.begin_with(carried_from_message(message), self.now):
                self._payload_publisher.publish(fill_payload(InertiaStamped(), each, self.stamp or 0))
                if not self.controller.takes_payloads:
                    raise TensegrityError(f"{each.name}: {load_refusal(self.controller, self._robot)}")

    def _newest(self, message: StructureState) -> float:
        """Time of the newest actuator reading, at least of the state [s]."""
        stamp = nanoseconds(message.header.stamp)
        read = stamp if self._joints is None else nanoseconds(self._joints.header.stamp)
        return 1e-9 * (read if 0 < read - stamp < 1e9 * OLDEST_STATE else stamp)

    def _hear_estimates(self) -> None:
        """Subscribe to `estimated_wrench` while the controller uses it."""
        if not self.controller.takes_estimates:
            if self._estimates is not None:
                self.destroy_subscription(self._estimates)
            self._estimates = None
        elif self._estimates is None:
            self._estimates = self.create_subscription(WrenchStamped, "estimated_wrench", self._take_estimate, SENSORS)

    def _take_estimate(self, message: WrenchStamped) -> None:
        """Unknown wrench by the observer; used from the next state on."""
        with self.noting_refusal("estimated_wrench"):
            self.loads.take_estimate(*wrench_from_message(message), self.now)

    def _within_limits(self, positions: np.ndarray) -> np.ndarray:
        """Positions clipped to their limits, as the command gate accepts them."""
        low, high = np.array([each.position for each in self._robot.actuators]).T
        return np.clip(positions, low, high)

    def _start(self, message: StructureState, stamp: int) -> bool:
        """Become active at the present actuator positions, which must have the same stamp."""
        joints = next((each for each in self._recent if nanoseconds(each.header.stamp) == stamp), None)
        if joints is None:
            return False
        self.planner.cancel("the simulation was reset")
        self.actuator_motions.forget("the simulation was reset")
        if not self.planner.rests:
            return False  # it shares arrays with the controller that is reset; the next state follows soon
        try:
            if self.stamp is not None:
                self.loads.forget()
            self.loads.carry(self.controller)
            self.controller.reset(1e-9 * stamp, self._reader.read(message, joints))
            self._latency.forget()
            self._acted.clear()
            self._follows.forget()
        except TensegrityError as error:
            self.set_status(ERROR, f"cannot take over: {error}")
            return False
        self.failed = None
        if self.stamp is not None:
            self.trajectories.finish(False, "the simulation was reset")
        else:  # logged last of all nodes, as it needs the others
            self.get_logger().info(f"{READY}{self._robot.name} is held by the controller {self._settings.name}")
        return True

    def _publish_reference(self, stamp: Time, command: Command, status: Status) -> None:
        """Publish for displays: at `reference_rate` of robot time, and whenever the motion begins, ends or changes."""
        rate = self._reference_rate if heard(self._reference) else UNHEARD_RATE
        slot = int(self.now * rate) if self._reference_rate > 0.0 else self.stamp
        goal = None if status.goal is None else (*status.goal[0], *status.goal[1])
        shown = (self._settings.name, status.phase, goal, slot)
        if shown == self._shown:
            return
        self._shown = shown
        try:
            reference = self.controller.reference(self.now)
        except TensegrityError:
            return  # there is no reference, as reported by the command
        message = Reference(
            controller=self._settings.name, mode=status.phase, progress=float(status.progress),
            name=list(command.names),
            value=command.values.tolist(),
        )  # fmt: skip
        message.header.stamp, message.header.frame_id = stamp, WORLD
        message.goal.orientation.w = 0.0  # none, unlike the identity
        if status.goal is not None:
            fill_pose(message.goal, *status.goal)
        if not self.actuator_motions.moving:  # motions of actuators have no pose
            fill_pose(message.pose, *reference.pose)
            fill_twist(message.twist, reference.twist)
        elif self._state is not None:
            message.pose, message.twist = self._state.output_pose, self._state.output_twist
        self._reference.publish(message)

    def _watch(self) -> None:
        """Report missing states, and states of several nodes: each older one looks like a reset, which ends motions."""
        self._look_whether_awake()
        names = {topic: self.publishers_of(topic) for topic in SOURCES}
        self._rivals = next(
            (RIVALS.format(len(each), topic, ", ".join(each)) for topic, each in names.items() if len(each) > 1), ""
        )
        silent = time.monotonic() - self._heard
        if self.stamp is not None and silent > 2.0:
            text = "no structure_state comes any more; did the simulator, driver or estimator end?"
            self.set_status(WARN, text, silent_for=f"{silent:.0f} s")
        waits = self.planner.withholds or self._heard != self._looked
        self._looks, self._looked = 0 if waits else self._looks + 1, self._heard
        if self.stamp is not None and self._looks == SILENT_LOOKS:
            self._end_motions("no state of the robot comes any more")

    def _look_whether_awake(self) -> float:
        """Note a gap in the life of this process; returns the time since the end of the last long one [s]."""
        now = time.monotonic()
        if now - self._awake > LONGEST_STALL:
            self._woke, self._slept = now, now - self._awake
        self._awake = now
        return now - self._woke

    def _end_motions(self, reason: str) -> None:
        """End the motions of both actions at once with a reason."""
        if self.trajectories.moving:
            self.controller.hold(self.now)
        self.trajectories.finish(False, reason)
        self.actuator_motions.forget(reason)

    # -- parameters -----------------------------------------------------------------------------------------------

    def _parameter_changed(self, name: str, value: Any) -> None:
        """Gains change at once; a new controller becomes active where the robot rests. Raises TensegrityError:
        refused."""
        try:
            if self._settings.is_gain(name):
                self._settings.set_gain(self.controller, name, value)
            elif name == "controller":
                self._switch(value)
        except FAILURES as error:
            raise error if isinstance(error, TensegrityError) else TensegrityError(f"refused: {error}") from error

    def _switch(self, name: str) -> None:
        if (name or self._settings.names[0]) == self._settings.name:
            return
        if self.actuator_motions.moving:
            raise TensegrityError("the actuators follow a trajectory; wait for its end, or call hold, then switch.")
        if self.planner.busy:
            raise TensegrityError("a motion is being planned; wait for its answer, or call hold, then switch.")
        if self.stamp is not None and self.controller.status(self.now).phase == "moving":
            raise TensegrityError(f"the robot moves under {self._settings.name}; call hold first, then switch.")
        before = self._settings.name
        controller = self._settings.make(name, make_quickly)  # the robot is held meanwhile
        controller.plans_beside = self._plans_beside
        if self.stamp is not None and self._state is not None:
            try:
                self.loads.carry(controller)
                controller.reset(self.now, self._reader.read(self._state, self._joints))
                if self.controller.status(self.now).phase == "stopped":
                    controller.stop(self.now)
            except TensegrityError:
                self._settings.name = before
                raise
        self.controller, self.failed = controller, None
        self._hear_estimates()

    # -- services -------------------------------------------------------------------------------------------------

    async def planned(self, plan: Coroutine[Any, Any, Accepted]) -> Accepted:
        """Wait for a plan to begin, then answer what was deferred."""
        session = self._announce()
        try:
            accepted = await plan
            self._answer = None  # where the simulation is stopped, the same state gets an answer that moves
            self._session = session
            return accepted
        finally:  # as a task: subscribers of `goal` must first receive that this goal belongs before that state
            if self.executor is not None:
                self.executor.create_task(self._answer_withheld)

    def _answer_withheld(self) -> None:
        message, self._withheld = self._withheld, None
        if message is not None and not self.planner.withholds:
            self._control(message)

    def goals(self, frame: str, times: Sequence[float], poses: Sequence[Any]) -> list[tuple[float, PoseGoal]]:
        """Goals of a message, checked only here. Raises TensegrityError for an invalid pose."""
        if frame not in ("", WORLD):
            raise TensegrityError(f"goals are taken in the frame {WORLD!r}, not in {frame!r}; transform it first.")
        waypoints = []
        for time_from_start, pose in zip(times, poses, strict=True):
            quaternion = [pose.orientation.w, pose.orientation.x, pose.orientation.y, pose.orientation.z]
            position = [pose.position.x, pose.position.y, pose.position.z]
            waypoints.append((time_from_start, position, quaternion if any(quaternion) else None))
        return self.controller.make_waypoints(self.now, waypoints)

    def _hold(self, _: Any, response: Trigger.Response) -> Trigger.Response:
        return self._release_or_stop(response, "hold")

    def _stop(self, _: Any, response: Trigger.Response) -> Trigger.Response:
        return self._release_or_stop(response, "stop")

    def _call_off(self, _: Any, response: Trigger.Response) -> Trigger.Response:
        """As `hold`, for who waits no longer for a goal: what another one has stopped stays stopped."""
        if self.failed is not None or self.controller.status(self.now).phase == "stopped":
            response.success, response.message = True, "nothing moves until hold is called"
            return response
        return self._release_or_stop(response, "call_off")

    def _release_or_stop(self, response: Trigger.Response, service: str) -> Trigger.Response:
        release = service != "stop"
        try:
            self.ready(among_actuators=True)
            self.actuator_motions.break_off(self.now, "stopped by service")
            self.planner.cancel(f"{service} was called")
            if release:
                self._recover()
                self.controller.release()
                self.controller.hold(self.now)
                self._answer = None
                self.open_session()
            else:
                self.controller.stop(self.now)
            self.trajectories.finish(False, "stopped by service")
            response.success = True
            response.message = "holding" if release else "stopped; call hold to take goals again"
        except TensegrityError as error:
            response.success, response.message = False, str(error)
        request = Goal.HOLD if release else Goal.STOP
        self.asked.trigger(request, f"service {service}", response.success, response.message)
        return response

    def _recover(self) -> None:
        """Restart after a failure at the robot's present position."""
        if self.failed is not None and self._state is not None:
            if not self.planner.rests:
                raise TensegrityError("a plan is still being given up; call hold again.")
            self.controller.reset(self.now, self._reader.read(self._state, self._joints))
            self.failed = None

    def ready(self, *, whole: bool = False, among_actuators: bool = False) -> None:
        if self.stamp is None:
            raise TensegrityError("no structure_state has come yet; start the simulator or driver and the estimator.")
        if whole and self.failed is not None:
            raise TensegrityError(f"the actuators hold, call hold to go on: {self.failed}")
        if whole and self._robot_stopped:
            raise TensegrityError(f"{self._robot_stopped}.")
        if whole and self._look_whether_awake() < WAKING:
            raise TensegrityError(f"the controller stood still for {self._slept:.0f} s until now; ask again.")
        if self.actuator_motions.moving and not among_actuators:
            raise TensegrityError("the actuators follow a trajectory; wait for its end, or call hold first.")

    def brakes_for_goal(self) -> None:
        """The planner has braked the robot for a new goal, which ends a running trajectory even if the goal is then
        refused."""
        self.trajectories.finish(False, BRAKED)

    @property
    def now(self) -> float:
        """Time of the last state [s]."""
        return 1e-9 * (self.stamp or 0)

    @property
    def output_pose(self) -> Pose | None:
        """Pose of the output in the last state; None where it is unknown."""
        return None if self._state is None else state_pose(self._state)


def main() -> int:
    """Run the node."""
    return run_node(ControllerNode)


if __name__ == "__main__":
    sys.exit(main())
