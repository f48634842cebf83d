"""Steps of a replay: inputs of estimator and controller in the order of their answers, and the recorded answers.

The order is that of the publication times, which also holds for goals: a goal follows the last command published before
it. Messages that were repeated while the robot was paused are sent again only if another event occurred in between.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Any

from tensegrity_dynamics.errors import TensegrityError

from .contents import PARAMETERS, Contents
from .decoding import first_difference, nanoseconds, stamp_of
from .reader import Bag

SENSORS = ("/clock", "tendon_states", "joint_states")
"""Topics that a robot publishes, in their order; joint_states is last, since the estimator answers it."""
IMU = "imu"
"""Topic with IMU readings of several rods per stamp, sent before the joint_states of the same or the next stamp."""
TIMING = "command_timing"
"""Topic with the times at which commands took effect; sent to the controller before the next state that it answered."""
LOADS = {"external_wrench": "geometry_msgs/msg/WrenchStamped", "payload": "geometry_msgs/msg/InertiaStamped"}
"""Topics of external loads for estimator and controller, with their types."""
TAKEN = {f"{node}/{name}": kind for node in ("estimator", "controller") for name, kind in LOADS.items()}
"""Topics with which each of them confirms a load, before the first answer that includes it, with their types."""
READING = "controller/joint_states"
"""Topic in lock-step with the joint_states that the controller had when it answered. In real time it predicts from the
newest one, which may be later than the state; the estimator does not receive them twice."""
STATE, COMMAND, REFERENCE, GOAL = "structure_state", "actuator_command", "reference", "goal"

SLOWEST, FASTEST = 0.01, 100.0
"""Limits of the rate of a replay [robot seconds per second]."""
NAMESPACE = "replay"
"""Namespace of all topics in lock-step."""
RECORDED = "recorded/"
"""Prefix of topics in lock-step that only one node must receive: the recorded state and joint_states for the controller
(the replayed estimator also publishes a state), and the loads that each node had received."""


@dataclass(frozen=True)
class Step:
    """Step of a replay.

    Attributes:
        stamp: stamp of the state or the load [ns]. sends: (topic, bytes) to publish, in this order.
        answers: topic of the answer to wait for: `STATE`, `COMMAND` or one of `TAKEN`; "" for loads in bags without the
            topics `TAKEN`.
        recorded: recorded answer.
        goal: request to the controller in place of messages, as a decoded tensegrity/msg/Goal, or None.
        parameters: (node, {name: rcl_interfaces/ParameterValue}), parameters to set in place of messages, or None.
    """

    stamp: int
    sends: tuple[tuple[str, bytes], ...] = ()
    answers: str = ""
    recorded: bytes = b""
    goal: Any = None
    parameters: tuple[str, dict[str, Any]] | None = None


@dataclass
class ReplayPlan:
    """All steps of a replay, and further recorded data of the answers.

    Attributes:
        steps: steps in order. references: recorded references by stamp [ns].
        estimator, controller: whether the node answers. imus: whether the estimator receives IMU readings.
        gaps: pairs of stamps [ns] between which the recording has no sensor messages, see `gaps_between`.
    """

    steps: list[Step] = field(default_factory=list)
    references: dict[int, list[bytes]] = field(default_factory=dict)
    estimator: bool = False
    controller: bool = False
    imus: bool = False
    gaps: list[tuple[int, int]] = field(default_factory=list)


def is_answer(command: Any) -> bool:
    """Whether a command answers a state; a command without names only announces the planning of a goal."""
    return len(command.name) > 0


class _ByStamp:
    """Messages of one topic by stamp."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[list[int], list[bytes]]] = {}

    def add(self, stamp: int, time: int, data: bytes) -> None:
        times, datas = self._found.setdefault(stamp, ([], []))
        times.append(time)
        datas.append(data)

    @property
    def stamps(self) -> list[int]:
        """Stamps of all messages, in order."""
        return sorted(self._found)

    def before(self, stamp: int, time: int) -> bytes | None:
        """Last message of a stamp published up to a time, else the first message of this stamp."""
        if stamp not in self._found:
            return None
        times, datas = self._found[stamp]
        return datas[max(0, bisect_right(times, time) - 1)]


def gaps_between(stamps: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs of neighbouring stamps [ns] with a distance above 1.5 times the median distance; stamps increase."""
    pairs = list(pairwise(stamps))
    usual = median([after - before for before, after in pairs]) if pairs else 0
    return [(before, after) for before, after in pairs if after - before > 1.5 * usual]


def compared_pair(recorded: Sequence[bytes], given: Sequence[bytes]) -> tuple[bytes, bytes]:
    """Pair of messages of one stamp to compare: two equal ones if they exist, else the last ones.

    A goal between two answers to the same state leads to two references with this stamp. References are published at a
    low rate for display, so that one of them may be missing on either side.
    """
    common = next((each for each in given if each in recorded), None)
    return (recorded[-1], given[-1]) if common is None else (common, common)


def make_plan(bag: Bag, contents: Contents) -> ReplayPlan:
    """Replay plan of a bag.

    Raises:
        TensegrityError: the bag has no joint_states, or no node answered them.
    """
    plan = ReplayPlan()
    taken = any(contents.topic(each) in bag.topics for each in TAKEN)
    loads = tuple(TAKEN if taken else LOADS)
    names = {contents.topic(each): each for each in (*SENSORS, IMU, TIMING, *loads, STATE, COMMAND, REFERENCE, GOAL)}
    present = [each for each in (*names, PARAMETERS) if each in bag.topics and bag.topics[each].count]
    if contents.topic("joint_states") not in present:
        raise TensegrityError(f"{bag.path} has no joint_states; there is nothing that a replay could start from.")
    decoders = {each: bag.decoder(each) for each in present}
    plan.controller = contents.topic(COMMAND) in present
    sensors = {each: _ByStamp() for each in (*SENSORS, STATE)}
    imus: dict[tuple[int, str], bytes] = {}  # by stamp and rod; repeated messages are equal
    timings: list[tuple[int, bytes]] = []
    events = []
    for message in bag.messages(present):
        decoded = decoders[message.topic](message.data)
        if message.topic == PARAMETERS:
            if len(decoded.changed_parameters):
                events.append((PARAMETERS, 0, message, decoded))
            continue
        name, stamp = names[message.topic], stamp_of(decoded)
        assert stamp is not None
        if name == IMU:
            imus[stamp, decoded.header.frame_id] = message.data
        if name == TIMING:
            timings.append((message.time, message.data))
        if name in sensors:
            sensors[name].add(stamp, message.time, message.data)
        if name == STATE:
            plan.estimator = plan.estimator or decoded.source == "estimator"
        if name == REFERENCE:
            plan.references.setdefault(stamp, []).append(message.data)
        if name in (STATE, GOAL, *loads) or (name == COMMAND and is_answer(decoded)):
            events.append((name, stamp, message, decoded))
    plan.imus = bool(imus) and plan.estimator
    plan.gaps = gaps_between(sensors["joint_states"].stamps)
    plan.steps = list(_steps(plan, contents, events, sensors, imus, timings))
    if not plan.steps:
        raise TensegrityError(f"{bag.path} has neither states of an estimator nor commands; nothing can be compared.")
    return plan


def _steps(
    plan: ReplayPlan,
    contents: Contents,
    events: list[tuple[str, int, Any, Any]],
    sensors: dict[str, _ByStamp],
    imus: dict[tuple[int, str], bytes],
    timings: list[tuple[int, bytes]],
) -> Iterator[Step]:
    last: dict[str, Any] = {STATE: None, COMMAND: None}  # decoded messages
    felt: int | None = None  # stamp of the last sensor messages that were sent
    read = answered = None  # stamps of the last joint_states and state that were sent to the controller
    estimated: set[int] = set()  # stamps that the estimator has to answer
    turned = sorted((stamp, rod, data) for (stamp, rod), data in imus.items())
    stamps = [stamp for stamp, _, _ in turned]
    sent = 0  # number of timings sent to the controller

    def repeated(name: str, decoded: Any) -> bool:
        # comparison of fields, since padding bytes between fields are undefined
        return last[name] is not None and first_difference(last[name], decoded) is None

    def frame(stamp: int, time: int) -> tuple[tuple[str, bytes], ...]:
        found = ((each, sensors[each].before(stamp, time)) for each in SENSORS)
        sends = [(topic, data) for topic, data in found if data is not None]
        # all IMU readings since the last ones, as some states may have none; after a reset only those of this stamp
        since = stamp - 1 if felt is None or felt >= stamp else felt
        readings = turned[bisect_right(stamps, since) : bisect_right(stamps, stamp)]
        last_of_all = [each for each in sends if each[0] == SENSORS[-1]]
        before = [each for each in sends if each[0] != SENSORS[-1]]
        return (*before, *((IMU, data) for _, _, data in readings), *last_of_all)

    def newest_readings(stamp: int, message: Any, newest: int) -> Iterator[tuple[str, bytes]]:
        """joint_states of the controller: at its start that of the state, and at last the newest one that it had."""
        nonlocal read, answered
        starts, answered = answered is None or stamp < answered, stamp
        for each in dict.fromkeys((stamp, newest)) if starts else (newest,):
            data = sensors["joint_states"].before(each, message.time)
            if data is not None and (each != read or starts):
                read = each
                yield READING, data

    for name, stamp, message, decoded in events:
        if name == PARAMETERS:
            node = decoded.node.rsplit("/", 1)[-1]
            if decoded.node in (contents.topic("controller"), contents.topic("estimator")):
                last[COMMAND] = None
                yield Step(stamp, parameters=(node, {each.name: each.value for each in decoded.changed_parameters}))
        elif name == GOAL:
            if plan.controller:
                last[COMMAND] = None
                yield Step(stamp, goal=decoded, recorded=message.data)
        elif name in TAKEN:
            if plan.controller if name.startswith("controller/") else plan.estimator:
                last[COMMAND if name.startswith("controller/") else STATE] = None
                yield Step(stamp, ((name, message.data),), name, message.data)
        elif name in LOADS:  # receiver and time are unknown: sent to both nodes now
            nodes = [each for each in TAKEN if each.endswith(f"/{name}")]
            yield Step(stamp, tuple((each, message.data) for each in nodes))
        elif name == STATE and plan.estimator:
            if not repeated(STATE, decoded):
                sends = frame(stamp, message.time)
                if any(topic == "joint_states" for topic, _ in sends):  # otherwise the recorder started later
                    felt, last[STATE] = stamp, decoded
                    estimated.add(stamp)
                    yield Step(stamp, sends, STATE, message.data)
        elif name == COMMAND and not repeated(COMMAND, decoded):
            state = sensors[STATE].before(stamp, message.time)
            if state is not None:
                # a repeated late state is not sent to the estimator, since it would set its time back
                before = () if felt == stamp or stamp in estimated else frame(stamp, message.time)
                felt, last[COMMAND] = stamp if before else felt, decoded
                new = timings[sent : bisect_right(timings, message.time, key=lambda each: each[0])]
                sent += len(new)
                given = (
                    *newest_readings(stamp, message, _newest(decoded, stamp)),
                    *((TIMING, data) for _, data in new),
                )
                yield Step(stamp, (*before, *given, (STATE, state)), COMMAND, message.data)


def _newest(command: Any, stamp: int) -> int:
    """Stamp [ns] of the newest joint_states at a command; that of its state in bags that do not contain it."""
    newest = getattr(command, "newest_reading", None)
    return (0 if newest is None else nanoseconds(newest)) or stamp
