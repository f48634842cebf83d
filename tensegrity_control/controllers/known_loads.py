"""Loads that are announced while a plan is held or followed: it is made anew with them, and set points go over to it.

Payloads and wrenches become part of the robot's model, as those of its file are, so that all that plans knows them:
statics, inertia, floors and limits. What is held is held at the same pose, what moves keeps its path and its clock;
only the actuators' set points differ. The difference d between those of both plans at the instant of the change dies
out over T,

    d(t) = d_0 (1 - 10 x^3 + 15 x^4 - 6 x^5),   x = t / T

as quickly as the actuators' rates allow: the load acts already, and what is not held meanwhile sets the robot swinging.
Of impedances only positions go over, without the rate of d, so that nothing carries them on where the next command is
late; efforts answer at once, as the load does.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import numpy as np

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.mechanisms.loads import Load, Payload
from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel
from tensegrity_dynamics.mechanisms.simulation.mechanism_simulator import load_array
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.output_frame import Pose
from tensegrity_dynamics.robots.robot import Robot

from ..controller import Accepted, Command, RobotState, Status
from ..inverse_kinematics.pose_goal import PoseGoal
from ..trajectories.quintic import remaining
from ..trajectories.time_scaling import Progress
from .goal_controller import GoalController, RestPoint
from .goal_taker import PlannedMotion

LEAST_PERIODS = 2.0
"""Control periods in which set points go over to those with other loads, at least."""
FED_BACK = 0.25
"""s, the same where feedback of the state holds the output: nothing swings, and gains hurry no cable."""
STEEPEST = 1.875
"""Largest rate of the transition, in parts of its mean one."""
CHANGED = "other loads were announced while the motion was planned; send it again."


@dataclass(frozen=True, eq=False)
class KnownLoads:
    """What acts on a robot beside the loads of its file.

    Attributes:
        payloads: that bodies carry. wrenches: by body (6,) N and N m on its origin, about world axes.
    """

    payloads: tuple[Payload, ...] = ()
    wrenches: tuple[tuple[str, tuple[float, ...]], ...] = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KnownLoads) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[Any, ...]:
        payloads = tuple(
            (each.name, each.body, each.mass, each.point.tobytes(), each.inertia.tobytes()) for each in self.payloads
        )
        return payloads, self.wrenches

    def on(self, robot: Robot) -> Robot:
        """The robot with these loads."""
        model = robot.model_as(MechanismModel)
        mechanism = model.mechanism
        pushes = tuple(
            Load(f"from outside, on {body}", body, np.array(wrench[:3]), np.array(wrench[3:]))
            for body, wrench in self.wrenches
        )
        # a push and a payload of one body have the same name where both come from outside
        names = {each.name for each in pushes}
        payloads = tuple(
            replace(each, name=f"payload {each.name}") if each.name in names else each for each in self.payloads
        )
        loaded = replace(
            mechanism, payloads=(*mechanism.payloads, *payloads), loads=(*mechanism.loads, *pushes)
        )  # fmt: skip
        return replace(robot, model=replace(model, mechanism=loaded))


def wrenches_of(robot: Robot, forces: Any) -> tuple[tuple[str, tuple[float, ...]], ...]:
    """Wrenches as `KnownLoads` keeps them, of forces as `Simulation.apply_forces` takes them."""
    mechanism = robot.model_as(MechanismModel).mechanism
    rows = load_array(mechanism, forces)
    found = zip((joint.body for joint in mechanism.joints), rows, strict=True)
    return tuple((body, (*row[3:].tolist(), *row[:3].tolist())) for body, row in found if row.any())


class SetPointFade:
    """What is left of the difference between the set points of two plans; see the module.

    Args:
        begin: s. duration: s, above zero. offset: (k,) old minus new.
    """

    def __init__(self, begin: float, duration: float, offset: Array) -> None:
        self.begin, self.end, self._duration, self._offset = begin, begin + duration, duration, offset

    def at(self, time: float) -> Array:
        """(k,) at a time [s]."""
        return np.asarray(remaining((time - self.begin) / self._duration) * self._offset)


@dataclass(frozen=True, eq=False)
class LoadedPlans:
    """Plans that were made anew for other loads.

    Attributes:
        loads: that they know. parts: of the controller, made for the robot with these. trackers: in place of those
            before, by these.
    """

    loads: KnownLoads
    parts: dict[str, Any]
    trackers: dict[Any, Any]


class LoadTakingController(GoalController):
    """A controller whose plans are made anew where payloads or wrenches are announced; see the module.

    Loads that no plan can hold, or that a path cannot be followed with, are named in `status` and `diagnostics`: what
    moves brakes, the actuators hold what they held, and goals are refused until other loads are announced.

    Attributes:
        replans: plans that were taken over because of loads.
    """

    takes_loads = takes_payloads = True

    _robot_alone: Robot
    _announced_loads = _planned_loads = KnownLoads()
    _refused: tuple[KnownLoads, str] | None = None
    _fade: SetPointFade | None = None
    _job: tuple[KnownLoads, Future[LoadedPlans]] | None = None
    _thread: ThreadPoolExecutor | None = None
    replans = 0

    def _begin_loads(self) -> None:
        """At the end of the constructor."""
        self._robot_alone = self.robot
        self._planning = Lock()  # held while a goal is planned, which must see one set of parts all the while

    # -- what a subclass says -------------------------------------------------------------------------------------

    @abstractmethod
    def _parts_for(self, robot: Robot) -> dict[str, Any]:
        """Attributes of the controller that depend on what the robot carries, made for it; in any thread."""

    @abstractmethod
    def _held_anew(self, rest: RestPoint, pose: Pose) -> Any:
        """A tracker that holds a pose with the loads of this controller; in any thread."""

    @abstractmethod
    def _moved_anew(self, tracker: Any) -> Any:
        """A tracker of the same motion with the loads of this controller; in any thread."""

    @abstractmethod
    def _set_points_at(self, time: float) -> Array:
        """(k,) what the plan under way asks for at a time [s]; positions of the actuators (a,) first."""

    # -- the controller's face ------------------------------------------------------------------------------------

    def set_loads(self, forces: Any) -> None:
        """Known wrenches from now on, as `Simulation.apply_forces` takes them: the next command plans with them."""
        self._announced_loads = replace(self._announced_loads, wrenches=wrenches_of(self._robot_alone, forces))

    def carry(self, payloads: Sequence[Payload]) -> None:
        """Payloads that are known beside those of the robot file: the next command, or reset, plans with them."""
        self._announced_loads = replace(self._announced_loads, payloads=tuple(payloads))

    def reset(self, time: float, state: RobotState | None = None) -> None:
        self._job = self._fade = self._refused = None
        if self._announced_loads != self._planned_loads:
            parts = self._parts_for(self._announced_loads.on(self._robot_alone))
            self.__dict__.update(parts)
            self._planned_loads = self._announced_loads
        super().reset(time, state)
        for _, tracker in self._motions:
            tracker.loads = self._planned_loads

    def command(self, time: float, state: RobotState | None = None) -> Command:
        """Set points for a time [s], of plans that know the loads that were announced."""
        self._follow_loads(time)
        if self._fade is not None and time >= self._fade.end:
            self._fade = None
        return super().command(time, state)

    def status(self, time: float) -> Status:
        status = super().status(time)
        return replace(status, relaxed=(*status.relaxed, self._refused[1])) if self._refused else status

    def diagnostics(self) -> dict[str, str]:
        values = super().diagnostics()
        if self.replans:
            values["plans_for_loads"] = str(self.replans)
        if self._refused is not None:
            values["loads_not_planned"] = self._refused[1]
        return values

    def check_goal(self, duration: float | None = None, profile: str = "minimum_jerk") -> None:
        super().check_goal(duration, profile)
        self._refuse_unknown()

    def check_waypoints(self, times: Sequence[float], interpolation: str = "smooth") -> None:
        super().check_waypoints(times, interpolation)
        self._refuse_unknown()

    def plan_goal(self, now: float, goal: PoseGoal, *, rest: RestPoint | None = None, **options: Any) -> PlannedMotion:
        with self._planning:
            planned = super().plan_goal(now, goal, rest=self._of_these_loads(rest or self.rest(now)), **options)
            planned.tracker.loads = self._planned_loads
        return planned

    def plan_through(
        self, now: float, waypoints: Sequence[tuple[float, PoseGoal]], interpolation: str = "smooth",
        rest: RestPoint | None = None,
    ) -> PlannedMotion:  # fmt: skip
        with self._planning:
            rest = self._of_these_loads(rest or self.rest(now))
            planned = super().plan_through(now, waypoints, interpolation, rest)
            planned.tracker.loads = self._planned_loads
        return planned

    def begin(self, now: float, planned: PlannedMotion) -> Accepted:
        if planned.tracker.loads != self._planned_loads:
            raise TensegrityError(CHANGED)
        return super().begin(now, planned)

    # -- inside ---------------------------------------------------------------------------------------------------

    @property
    def _own_period(self) -> float:
        """s between two commands."""
        return self.period or self.default_period

    def _of_these_loads(self, rest: RestPoint) -> RestPoint:
        """The rest point; raises TensegrityError where it is from before other loads were taken over."""
        if rest.tracker.loads != self._planned_loads:
            raise TensegrityError(CHANGED)
        return rest

    def _refuse_unknown(self) -> None:
        """Raise TensegrityError where what the robot carries was announced and cannot be planned with."""
        if self._refused is not None and self._refused[0] == self._announced_loads:
            raise TensegrityError(f"{self._refused[1]} Take them off, or announce others.")

    def _fading(self, time: float) -> Array | None:
        """(k,) what is left of set points before at a time [s], None where nothing is."""
        return None if self._fade is None else self._fade.at(time)

    def _follow_loads(self, time: float) -> None:
        """Plan with loads that are new, and take over what was planned."""
        if self._job is not None and self._job[1].done():
            self._take_over(time)
        if self._refused is not None and self._refused[0] != self._announced_loads:
            self._refused = None
        if (
            self._job is not None
            or self._announced_loads == self._planned_loads
            or self._refused is not None
            or not self._motions
        ):
            return
        first = self._motions.index(self._active(time))
        motions, loads, work = self._motions[first:], self._announced_loads, Future[LoadedPlans]()
        rests = []
        for clock, tracker in motions:
            last = clock.last
            pose = self._reference(tracker, Progress(last, 0.0, 0.0)).pose
            over = time >= clock.end
            rests.append((RestPoint(tracker, last, self._configuration(tracker, last)), pose) if over else None)

        def plan() -> LoadedPlans:
            return self._planned_with(loads, [tracker for _, tracker in motions], rests)

        if self.plans_beside:
            self._thread = self._thread or ThreadPoolExecutor(1, "load planner")
            work = self._thread.submit(plan)
        else:
            try:
                work.set_result(plan())
            except Exception as error:  # as it would be kept by a thread
                work.set_exception(error)
        self._job = loads, work
        if not self.plans_beside:
            self._take_over(time)

    def _planned_with(
        self, loads: KnownLoads, trackers: Sequence[Any], rests: Sequence[tuple[RestPoint, Pose] | None]
    ) -> LoadedPlans:
        """Plans in place of others, by a copy of this controller for the robot with other loads; in any thread."""
        parts = self._parts_for(loads.on(self._robot_alone))
        other = copy(self)
        other.__dict__.update(parts)
        made = {}
        for tracker, rest in zip(trackers, rests, strict=True):
            made[tracker] = other._moved_anew(tracker) if rest is None else other._held_anew(*rest)
        return LoadedPlans(loads, parts, made)

    def _take_over(self, time: float) -> None:
        """Go over to plans that were made, where the motion that they are for is still the one under way."""
        assert self._job is not None
        loads, work = self._job
        try:
            plans = work.result()
        except TensegrityError as error:
            self._job = None
            if loads == self._announced_loads:
                self._refused = (
                    loads,
                    f"the loads that were announced are not planned with: {error}",
                )
                if self.status(time).phase == "moving":
                    self.hold(time)
            return
        now = self._motions[self._motions.index(self._active(time)) :]
        if any(tracker not in plans.trackers for _, tracker in now):
            self._job = None  # another motion has begun since: once more
            return
        if not self._planning.acquire(blocking=False):
            return  # a goal is being planned, which needs the parts as they are
        try:
            before, left = self._set_points_at(time), self._fading(time)
            self.__dict__.update(plans.parts)
            self._motions = [(clock, plans.trackers.get(tracker, tracker)) for clock, tracker in self._motions]
            for _, tracker in self._motions:
                if tracker in plans.trackers.values():
                    self._apply_gains(tracker)
                    tracker.loads = loads
            self._planned_loads, self._job = loads, None
            after = self._set_points_at(time)
        finally:
            self._planning.release()
        self._version += 1
        self.replans += 1
        offset = before - after + (0.0 if left is None else left)
        rates = np.array([each.rate for each in self.robot.actuators])
        fastest = float(np.max(np.abs(offset[: rates.size]) / rates))
        least = FED_BACK if self.output_mode == "effort" else LEAST_PERIODS * self._own_period
        duration = max(STEEPEST * fastest / self.rate_margin, least)
        self._fade = SetPointFade(time - self._own_period, duration, offset)  # this command is the first that moves
