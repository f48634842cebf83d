"""Node `player`: plays a recorded robot instead of a running one.

In lock-step, estimator and controller run again: the player publishes the recorded sensor readings and states, sends
the recorded goals at the same states, waits for every answer and compares it bit for bit with the recorded one. All
topics are in the namespace `replay`, so that no robot receives anything of a replay. Otherwise the player plays the bag
along the robot's time at a rate, for the view, the markers and RViz, under the names of a robot.

The player refuses to play where another node publishes joint_states or actuator_command, which means a robot. It checks
for a robot before every publication. DDS may discover a robot late, and this must cause no harm: in lock-step the
namespace separates a replay from a robot; otherwise only nodes that the player has discovered receive it.
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import Any

import numpy as np
from rcl_interfaces.msg import Parameter, ParameterValue
from rcl_interfaces.srv import SetParameters
from rclpy.action import ActionClient
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import String
from std_srvs.srv import Trigger
from tensegrity.action import FollowActuators, FollowTrajectory
from tensegrity.msg import ActuatorCommand, Goal, Playback, Reference, StructureState
from tensegrity.srv import SetGoalPose

from tensegrity_dynamics.ending import Ending
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.ros.robot_node import ERROR, FREE, HELD, LATCHED, OK, STOPPED, RobotNode, run_node

from ..bags.contents import PARAMETERS, ROBOT_FILE, ROBOT_LAYOUT, read_contents
from ..bags.decoding import first_difference, largest_difference, stamp_of
from ..bags.message_types import MessageTypes
from ..bags.reader import Bag
from ..bags.replay_plan import (
    COMMAND,
    FASTEST,
    GOAL,
    IMU,
    NAMESPACE,
    READING,
    RECORDED,
    REFERENCE,
    SENSORS,
    SLOWEST,
    STATE,
    TAKEN,
    TIMING,
    ReplayPlan,
    Step,
    compared_pair,
    is_answer,
    make_plan,
)  # fmt: skip
from ..bags.timeline import along_robot_time
from .recorder_node import message_class

ROBOT = ("joint_states", "actuator_command")
"""A node that publishes one of these topics is a robot."""
TAKING = 0.02
"""Time for estimator and controller to receive a load of an old bag, before the messages recorded after it [s]."""
REFUSAL = 30.0
"""Wall time after which a load that had been accepted in the recording counts as refused [s]."""
DISCOVERY = 4.0
"""Time to discover a robot [s]: a robot that is not discovered at once announces itself every 3 s (Fast DDS)."""
NAMING = 2.0
"""Time until the name of a discovered robot is known [s]."""
PATIENCE = 5.0
"""Wall time after which a step is sent again [s]."""
LISTENING = 60.0
"""Wall time for the view and the markers to start [s]; the bag is then played without them."""
HEARING = 3.0
"""Time within which the subscription of an estimator that reads IMUs is discovered [s]."""
SILENCE = 300.0
"""Wall time without an answer after which a replay ends [s]; planning may take long."""
EVERY = QoSProfile(depth=1000, reliability=ReliabilityPolicy.RELIABLE)
DESCRIPTION = (ROBOT_FILE, ROBOT_LAYOUT)
"""Latched topics that describe the robot once."""
TELLING = 0.1
"""Interval between two progress messages of a replay [s]."""
NEVER = (COMMAND, "/rosout", PARAMETERS, "/diagnostics")
"""Topics that are not played: commands, and reports of the recorded nodes about themselves."""


class PlayerNode(RobotNode):
    """Parameters: bag, lockstep; for playing at a rate: rate, position, paused, loop, which may change at run time."""

    def __init__(self) -> None:
        super().__init__("player")
        path = self.parameter("bag", "", "path of the bag to play")
        self._lockstep = self.parameter(
            "lockstep", True, "run estimator and controller again, and compare their answers"
        )
        self.rate = self.parameter(
            "rate", 1.0, "robot seconds per second of real time", low=SLOWEST, high=FASTEST, live=True
        )
        start = self.parameter("position", 0.0, "time in the bag [s]; set it to seek", live=True)
        self.paused = self.parameter("paused", False, "playback is paused", live=True)
        self._listeners = self.parameter(
            "listeners", 0, "number of subscribers of structure_state to wait for before playback"
        )
        self.loop = self.parameter("loop", False, "start again at the end of the bag", live=True)
        self.stays = self._ended = False  # if a user controls it, the player waits at the end
        self._steering: tuple[Any, ...] = ()
        self._steering_at = 0.0
        self.on_change(self._steer)
        if not path:
            raise TensegrityError("parameter bag is empty; name the bag to play.")
        namespace = self.get_namespace().rstrip("/")
        if self._lockstep and not namespace.endswith(f"/{NAMESPACE}"):
            raise TensegrityError(
                f"a replay in lock-step runs in the namespace {NAMESPACE}, where no robot receives it: start all of "
                f"its nodes with -r __ns:=/{NAMESPACE}, or by `tensegrity up replay`."
            )
        self._robot = namespace.removesuffix(f"/{NAMESPACE}") if self._lockstep else namespace
        self._began = time.monotonic()
        self._bag = Bag(path)
        self._contents = read_contents(self._bag)
        self._changed_types = changed_types(self._bag)
        self.sought: float | None = float(start)
        self._played: dict[str, Any] = {}
        self._answers: dict[str, list[bytes]] = {name: [] for name in (STATE, COMMAND, REFERENCE, GOAL, *TAKEN)}
        self._references: dict[int, list[bytes]] = {}
        self._turns: SingleThreadedExecutor | None = None
        self._ending: Ending | None = None
        self.set_status(OK, "waiting for the nodes")

    def close(self) -> None:
        """Close the bag."""
        self._bag.close()

    def _steer(self, name: str, value: Any) -> None:
        if name == "position":
            if not 0.0 <= value < float("inf"):
                raise TensegrityError(f"position is {value} s; give a finite time from 0 on.")
            self.sought = float(value)
        elif name in ("rate", "paused", "loop"):
            setattr(self, name, value)
        if self._ended and name in ("paused", "loop") and not self.paused:
            self.sought = 0.0  # play at the end of the bag: start again
        self.stays, self._ended = True, False

    def spin(self, executor: SingleThreadedExecutor, ending: Ending) -> None:
        """Play to the end of the bag, or until the end is requested."""
        self._turns, self._ending = executor, ending
        if self._lockstep:
            self._answer_again()
        else:
            self._look_around()
            self._play()

    # -- check that there is no robot -----------------------------------------------------------------------------

    def _look_around(self) -> None:
        """Wait for the time that the discovery of a robot takes."""
        self._wait(self._began + DISCOVERY - time.monotonic())

    def _robots(self) -> set[str]:
        """Full names of the nodes that publish the topics of a robot."""
        found = set()
        for name in ROBOT:
            own = not self._lockstep and name in self._played
            if self.count_publishers(f"{self._robot}/{name}") > own:  # a few microseconds
                found |= {
                    (f"{each.node_namespace.rstrip('/')}/{each.node_name}", name)
                    for each in self.get_publishers_info_by_topic(f"{self._robot}/{name}")
                }
        return {f"{who} publishes {name}" for who, name in found if who != self.get_fully_qualified_name()}

    def _alone(self) -> None:
        """Raises TensegrityError if there is a robot."""
        if not (others := self._robots()):
            return
        self.set_status(ERROR, "a robot is running here")
        assert self._turns is not None
        until = time.monotonic() + NAMING
        while any("_UNKNOWN_" in each for each in others) and time.monotonic() < until:
            self._turns.spin_once(timeout_sec=0.1)
            others = self._robots() or others
        raise TensegrityError(
            f"{', '.join(sorted(others))}: a robot is running in this ROS domain, so the replay is refused. End it, or "
            "replay in another ROS_DOMAIN_ID."
        )

    def _spin(self, longest: float) -> None:
        """Handle incoming messages for at most `longest` s, and check for a robot."""
        assert self._turns is not None and self._ending is not None
        if self._ending.asked:
            raise KeyboardInterrupt
        self._turns.spin_once(timeout_sec=longest)
        self._alone()

    def _wait(self, duration: float) -> None:
        end = time.monotonic() + duration
        while (left := end - time.monotonic()) > 0.0:
            self._spin(min(left, 0.1))

    def _until(self, condition: Any, what: str) -> None:
        end = time.monotonic() + SILENCE
        while not condition():
            self._spin(0.1)
            if time.monotonic() > end:
                raise TensegrityError(f"{what} after {SILENCE:g} s; the replay ends here.")

    def _same_messages(self) -> None:
        """Raises TensegrityError if compared topics were recorded with other message definitions than the installed
        ones."""
        names = ("joint_states", "tendon_states", STATE, COMMAND, REFERENCE, GOAL)
        old = [
            self._bag.topics[topic].type for topic in map(self._contents.topic, names) if topic in self._changed_types
        ]
        if old:
            raise TensegrityError(
                f"{self._bag.path} was recorded with other definitions of {', '.join(dict.fromkeys(old))} than those "
                "that are installed: its bytes cannot be compared with those of now. It can be watched: add --rate 1."
            )

    def _topic(self, name: str) -> str:
        """Recorded topic of a name."""
        return self._contents.topic("joint_states" if name == READING else name)

    def _of_now(self, name: str, data: bytes) -> Any:
        """A message for publication: its bytes, or its recorded fields if the definition of its type has changed."""
        topic = self._topic(name)
        if topic not in self._changed_types:
            return data
        return _rebuilt(message_class(self._bag.topics[topic].type), self._decoded(name, data))

    def _publish(self, name: str, data: bytes) -> None:
        publisher = self._played.get(name)
        if publisher is None:
            topic = self._bag.topics[self._topic(name)]
            quality = QoSProfile(
                depth=max(5, topic.quality.depth) if not topic.quality.latched else topic.quality.depth,
                reliability=ReliabilityPolicy.RELIABLE,
                durability=DurabilityPolicy.TRANSIENT_LOCAL if topic.quality.latched else DurabilityPolicy.VOLATILE,
            )
            publisher = self._played[name] = self.create_publisher(
                message_class(topic.type), self._sent_as(name), quality
            )
        publisher.publish(self._of_now(name, data))

    # -- in lock-step ---------------------------------------------------------------------------------------------

    def _answer_again(self) -> None:
        self._same_messages()
        plan = make_plan(self._bag, self._contents)
        for message in self._bag.messages([self._contents.topic(name) for name in DESCRIPTION]):
            self._publish(self._relative(message.topic), message.data)
        loads = {name for step in plan.steps for name, _ in step.sends} & TAKEN.keys()
        sent = (*SENSORS, IMU, TIMING, STATE, READING, *loads)  # discovered by all subscribers before the first message
        for name in sent:
            topic = self._bag.topics.get(self._topic(name))
            if name in loads or (topic is not None and topic.count):
                self._prepare(name)
        kinds = {STATE: (StructureState, EVERY), COMMAND: (ActuatorCommand, EVERY)}
        kinds |= {REFERENCE: (Reference, LATCHED), GOAL: (Goal, EVERY)}
        kinds |= {name: (message_class(TAKEN[name]), EVERY) for name in loads}
        for name, (kind, quality) in kinds.items():
            self.create_subscription(kind, name, self._keeper(name), quality, raw=True)
        self._goal_services = {
            Goal.POSE: self.create_client(SetGoalPose, "set_goal_pose"),
            Goal.HOLD: self.create_client(Trigger, "hold"),
            Goal.STOP: self.create_client(Trigger, "stop"),
        }
        self._stop_publisher = self.create_publisher(String, STOPPED, LATCHED)
        self._action = ActionClient(self, FollowTrajectory, "follow_trajectory")
        self._actuator_action = ActionClient(self, FollowActuators, "follow_actuators")
        self._setters = {
            name: self.create_client(SetParameters, f"{name}/set_parameters") for name in ("estimator", "controller")
        }
        self._handle: Any = None
        self._until(lambda: self._matched(plan), "estimator or controller are not there")
        patience = time.monotonic() + HEARING  # only robots that roll subscribe to IMUs
        while plan.imus and not self._played[IMU].get_subscription_count() and time.monotonic() < patience:
            self._spin(0.1)
        tallies = {STATE: Tally("estimator", STATE), COMMAND: Tally("controller", COMMAND), GOAL: Tally("goals", GOAL)}
        tallies |= {name: Tally(name, name) for name in TAKEN}
        for k, step in enumerate(plan.steps):
            if step.goal is not None:
                self._compare(tallies[GOAL], step, self._ask(step))
            elif step.parameters is not None:
                self._set(*step.parameters)
            elif step.answers:
                self._compare(tallies[step.answers], step, self._answer_to(step))
            else:  # a bag that does not record who received the load, and when
                for name, data in step.sends:
                    self._publish(name, data)
                self._wait(TAKING)
            if k % 50 == 0:
                self.set_status(OK, "replaying", step=f"{k} of {len(plan.steps)}")
        self._wait(0.3)
        self._look_around()
        tallies[REFERENCE] = self._reference_tally(plan)
        self._conclude([each for each in tallies.values() if each.count], plan.gaps)

    def _prepare(self, name: str) -> None:
        kinds = {STATE: "tensegrity/msg/StructureState", **TAKEN}
        topic = self._topic(name)
        kind = self._bag.topics[topic].type if topic in self._bag.topics else kinds[name]
        self._played[name] = self.create_publisher(message_class(kind), self._sent_as(name), EVERY)

    def _sent_as(self, name: str) -> str:
        return RECORDED + name if self._lockstep and name in (STATE, READING, *TAKEN) else name

    def _keeper(self, name: str) -> Any:
        def keep(data: bytes) -> None:
            self._answers[name].append(data)
            if name == REFERENCE:
                stamp = stamp_of(self._decoded(REFERENCE, data))
                if stamp is not None:
                    self._references.setdefault(stamp, []).append(data)

        return keep

    def _decoded(self, name: str, data: bytes) -> Any:
        return self._bag.decoder(self._contents.topic(name))(data)

    def _matched(self, plan: ReplayPlan) -> bool:
        taken = {step.answers for step in plan.steps} & TAKEN.keys()
        listeners = {"joint_states": int(plan.estimator), READING: int(plan.controller), STATE: int(plan.controller)}
        listeners |= dict.fromkeys(taken, 1)
        speakers = {STATE: plan.estimator, COMMAND: plan.controller, **dict.fromkeys(taken, True)}
        return (
            all(self._played[name].get_subscription_count() >= count for name, count in listeners.items() if count)
            and all(self.count_publishers(name) for name, goal in speakers.items() if goal)
            and (not plan.controller or all(each.service_is_ready() for each in self._goal_services.values()))
        )

    def _answer_to(self, step: Step) -> bytes:
        """Send a step and wait for the answer with its stamp."""
        answers = self._answers[step.answers]
        answers.clear()
        sent = began = time.monotonic()
        for name, data in step.sends:
            self._publish(name, data)
        while True:
            while answers:
                data = answers.pop(0)
                decoded = self._decoded(step.answers, data)
                if stamp_of(decoded) == step.stamp and (step.answers != COMMAND or is_answer(decoded)):
                    return data
            self._spin(0.1)
            now = time.monotonic()
            if now - sent > PATIENCE:
                sent = now
                for name, data in step.sends:
                    self._publish(name, data)
            if now - began > (REFUSAL if step.answers in TAKEN else SILENCE):
                node, _, load = step.answers.partition("/")
                what = f"take {load}" if load else "answer the state"
                who = node if load else "estimator" if step.answers == STATE else "controller"
                raise TensegrityError(f"the {who} does not {what} of {1e-9 * step.stamp:.3f} s; the replay ends here.")

    def _ask(self, step: Step) -> bytes:
        """Send the recorded request to the controller, and wait for its announcement."""
        goal, answers = step.goal, self._answers[GOAL]
        answers.clear()
        request = _rebuilt(Goal, goal)
        if goal.request == Goal.POSE:
            asked = SetGoalPose.Request(duration=request.duration, profile=request.profile)
            asked.orientation = request.orientation
            asked.target.header = request.header
            asked.target.pose = request.waypoint[0]
            self._goal_services[Goal.POSE].call_async(asked)
        elif goal.request == Goal.TRAJECTORY:
            desired = FollowTrajectory.Goal(
                header=request.header, time_from_start=request.time_from_start, waypoint=request.waypoint,
                interpolation=request.profile, position_tolerance=request.position_tolerance,
                orientation_tolerance=request.orientation_tolerance,
            )  # fmt: skip
            self._action.send_goal_async(desired).add_done_callback(self._took)
        elif goal.request == Goal.ACTUATORS:
            asked_for = FollowActuators.Goal(trajectory=request.trajectory, tolerance=request.position_tolerance)
            sent = self._actuator_action.send_goal_async(asked_for)
            sent.add_done_callback(self._took)
        elif goal.request == Goal.CANCEL and self._handle is not None:
            self._handle.cancel_goal_async()
        elif goal.reason == FREE or goal.reason.startswith(HELD):  # reported by the node that moved the robot
            self._stop_publisher.publish(String(data="" if goal.reason == FREE else goal.reason))
        else:
            self._goal_services[Goal.STOP if goal.request == Goal.STOP else Goal.HOLD].call_async(Trigger.Request())
        self._until(lambda: bool(answers), "the controller has not answered a goal")
        return answers.pop(0)

    def _took(self, future: Any) -> None:
        self._handle = future.result()

    def _set(self, node: str, values: dict[str, Any]) -> None:
        parameters = [Parameter(name=name, value=_rebuilt(ParameterValue, value)) for name, value in values.items()]
        answer = self._setters[node].call_async(SetParameters.Request(parameters=parameters))
        self._until(answer.done, f"the {node} has not taken a parameter")

    def _compare(self, tally: Tally, step: Step, data: bytes) -> None:
        tally.count += 1
        if data == step.recorded:
            return
        recorded, given = self._decoded(tally.topic, step.recorded), self._decoded(tally.topic, data)
        difference = first_difference(recorded, given)
        if difference is not None:
            tally.note(step.stamp, difference, largest_difference(recorded, given))

    def _reference_tally(self, plan: ReplayPlan) -> Tally:
        tally = Tally("references", REFERENCE)
        for stamp in sorted(self._references.keys() & plan.references.keys()):
            recorded, given = compared_pair(plan.references[stamp], self._references[stamp])
            self._compare(tally, Step(stamp, recorded=recorded), given)
        return tally

    def _conclude(self, tallies: list[Tally], gaps: list[tuple[int, int]]) -> None:
        for each in tallies:
            print(each, flush=True)
        different = [each for each in tallies if each.different]
        if different:
            first = min(different, key=lambda each: each.first[0] if each.first else 0)
            self.set_status(ERROR, "the replay differs")
            words = f"the replay differs from the recording, first in {first.where}"
            raise TensegrityError(words + in_words(gaps, first.first[0] if first.first else 0))
        self.set_status(OK, "the replay equals the recording bit for bit")

    # -- at a rate ------------------------------------------------------------------------------------------------

    def _play(self) -> None:
        prefix = self._contents.namespace + "/"
        topics = [
            name for name in self._bag.topics
            if (name == "/clock" or name.startswith(prefix)) and self._relative(name) not in NEVER
        ]  # fmt: skip
        played = [(at, self._relative(each.topic), each.data) for at, each in
                  along_robot_time(self._bag, self._contents, topics)]  # fmt: skip
        if not played:
            raise TensegrityError(f"{self._bag.path} has nothing to play.")
        end, k, now, wall = played[-1][0], 0, 0.0, time.monotonic()
        if self.sought is not None and self.sought > end:
            raise TensegrityError(
                f"the replay was to start at {self.sought:g} s, but {self._bag.path} ends at {end:.2f} s."
            )
        self._prepare(STATE)
        until = time.monotonic() + LISTENING
        while self._played[STATE].get_subscription_count() < self._listeners and time.monotonic() < until:
            self._spin(0.1)
        self.get_logger().info(f"ready: {self._bag.path} plays, {end:.2f} s at rate {self.rate:g}")
        progress = self.create_publisher(Playback, "playback", LATCHED)
        latched = {self._relative(name) for name in topics if self._bag.topics[name].quality.latched}
        while True:
            before, wall = wall, time.monotonic()
            if self.sought is not None:
                now, self.sought = min(self.sought, end), None
                k = self._seek(played, now, latched)
            elif not self.paused:
                now += self.rate * (wall - before)
            while k < len(played) and played[k][0] <= now:
                self._publish(played[k][1], played[k][2])
                k += 1
            state = "paused" if self.paused else "playing"
            self.set_status(OK, state, position=f"{min(now, end):.2f} of {end:.2f} s", rate=f"{self.rate:g}")
            self._publish_progress(progress, Playback(
                position=min(now, end), end=end, rate=float(self.rate), paused=bool(self.paused),
                loop=bool(self.loop),
            ))  # fmt: skip
            if k >= len(played) and not self.paused:
                if self.stays and not self.loop:
                    self.paused = self._ended = True
                elif not self.loop:
                    self._wait(0.3)
                    print(f"played {end:.2f} s of the robot's time, {len(played)} messages", flush=True)
                    return
                else:
                    self.sought = 0.0
            self._spin(0.005 if not self.paused else 0.05)

    def _publish_progress(self, publisher: Any, message: Playback) -> None:
        """Publish ten times per second, and at once if more than the position has changed."""
        steering = (message.rate, message.paused, message.loop, message.paused and message.position)
        if steering != self._steering or time.monotonic() - self._steering_at > TELLING:
            self._steering, self._steering_at = steering, time.monotonic()
            publisher.publish(message)

    def _relative(self, name: str) -> str:
        return name if name == "/clock" else name.removeprefix(self._contents.namespace + "/")

    def _seek(self, played: list[tuple[float, str, bytes]], now: float, latched: set[str]) -> int:
        """Index of the first message after an instant; the last earlier message of each topic is published."""
        last: dict[str, bytes] = {}
        k = 0
        while k < len(played) and played[k][0] <= now:
            last[played[k][1]] = played[k][2]
            k += 1
        for name in sorted(last, key=lambda each: (each != "/clock", each not in latched)):
            self._publish(name, last[name])
        return k


def in_words(gaps: list[tuple[int, int]], stamp: int) -> str:
    """Gaps of a recording before a stamp [ns], after which no answer can be equal; empty if there are none."""
    lacking = [(before, after) for before, after in gaps if before < stamp]
    if not lacking:
        return ""
    (before, after), more = lacking[0], len(lacking) - 1
    others = f", and {more} more such gaps before that" if more else ""
    return (
        f" The recording has nothing between {1e-9 * before:.3f} s and {1e-9 * after:.3f} s{others}: where messages "
        "were lost on the way to the recorder the answers cannot be equal. Record again while the machine is less busy."
    )


class Tally:
    """Number of equal answers, and the first difference."""

    def __init__(self, who: str, topic: str) -> None:
        self.who, self.topic = who, topic
        self.count = self.different = 0
        self.largest = 0.0
        self.first: tuple[int, tuple[str, Any, Any]] | None = None

    def note(self, stamp: int, difference: tuple[str, Any, Any], largest: float) -> None:
        """Add an answer that differs: its first differing field, and the largest difference of a number in it."""
        self.different += 1
        self.largest = max(self.largest, largest)
        if self.first is None:
            self.first = stamp, difference

    @property
    def where(self) -> str:
        """The first difference as text."""
        if self.first is None:
            return ""
        stamp, (path, recorded, now) = self.first
        return f"{self.topic} at {1e-9 * stamp:.3f} s: {path} was {recorded!r} and is {now!r} now."

    def __str__(self) -> str:
        text = f"{self.who}: {self.count - self.different} of {self.count} equal bit for bit"
        if not self.different:
            return text
        size = f", others by at most {self.largest:.2g}" if np.isfinite(self.largest) else ""
        return f"{text}{size}; first difference in {self.where}"


def _rebuilt(kind: Any, decoded: Any) -> Any:
    """Message of rclpy with the fields of a message that rosbags has decoded."""
    message = kind()
    for name, declared in message.get_fields_and_field_types().items():
        if not hasattr(decoded, name):
            continue  # the field did not exist at the time of the recording
        value = getattr(decoded, name)
        current = getattr(message, name)
        if hasattr(current, "get_fields_and_field_types"):
            value = _rebuilt(type(current), value)
        elif declared.startswith("sequence<") and "/" in declared:
            value = [_rebuilt(message_class(declared[9:-1].replace("/", "/msg/")), each) for each in value]
        elif hasattr(value, "tolist"):
            value = value.tolist()
        setattr(message, name, value)
    return message


def changed_types(bag: Bag) -> set[str]:
    """Topics whose installed message type differs in its definition from the recorded one."""
    installed, changed = MessageTypes(), set()
    for name, topic in bag.topics.items():
        with suppress(TensegrityError):  # a type that is not installed is not played either
            if topic.digest and topic.digest != installed[topic.type].digest:
                changed.add(name)
    return changed


def player() -> PlayerNode:
    """Create the node."""
    return PlayerNode()


def main() -> int:
    """Run the node."""
    return run_node(player)


if __name__ == "__main__":
    sys.exit(main())
