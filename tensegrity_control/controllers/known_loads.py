"""Announced loads: the plan that is held or followed is recomputed with them, and the set points fade to the new plan.

Payloads and wrenches are added to the model of the robot like the loads of its file, so that statics, inertia, tension
floors and limits all contain them. A held pose stays the same, and a motion keeps its path and its clock; only the set
points of the actuators change. Their difference d at the instant of the change decays over T,

    d(t) = d_0 (1 - 10 x^3 + 15 x^4 - 6 x^5),   x = t / T

T is as short as the rate limits of the actuators allow: the load acts already, and as long as nothing holds it, the
robot swings. In impedance mode d is added to the positions only and its rate is not commanded, so that a late next
command does not extrapolate it. Efforts change at once, like the load.
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

from ..controller import Accepted, Command, RobotState
from ..inverse_kinematics.pose_goal import PoseGoal
from ..trajectories.quintic import remaining
from ..trajectories.time_scaling import Progress
from .goal_controller import GoalController, RestPoint
from .goal_taker import PlannedMotion

LEAST_PERIODS = 2.0
"""Smallest T, in control periods."""
FED_BACK = 0.25
"""s, smallest T if feedback of the state holds the output: nothing swings, and the gains do not pull on the cables
abruptly."""
STEEPEST = 1.875
"""Ratio of the largest rate of the transition to its mean rate."""
CHANGED = "the announced loads changed while the motion was planned; send the goal again."


@dataclass(frozen=True, eq=False)
class KnownLoads:
    """Loads on a robot in addition to those of its file.

    Attributes:
        payloads: payloads on bodies.
        wrenches: pairs of a body and its wrench (6,) N and N m at the origin of the body, about world axes.
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
    """Wrenches in the format of `KnownLoads`, from forces in the format of `Simulation.apply_forces`."""
    mechanism = robot.model_as(MechanismModel).mechanism
    rows = load_array(mechanism, forces)
    found = zip((joint.body for joint in mechanism.joints), rows, strict=True)
    return tuple((body, (*row[3:].tolist(), *row[:3].tolist())) for body, row in found if row.any())


class SetPointFade:
    """Difference between the set points of two plans while it decays; see the module.

    Args:
        begin: s.
        duration: s, above zero.
        offset: (k,) old minus new set points.
    """

    def __init__(self, begin: float, duration: float, offset: Array) -> None:
        self.begin, self.end, self._duration, self._offset = begin, begin + duration, duration, offset

    def at(self, time: float) -> Array:
        """(k,) difference at a time [s]."""
        return np.asarray(remaining((time - self.begin) / self._duration) * self._offset)


@dataclass(frozen=True, eq=False)
class LoadedPlans:
    """Plans recomputed for other loads.

    Attributes:
        loads: loads of the plans.
        parts: attributes of the controller, made for the robot with these loads.
        trackers: new tracker for each old one.
    """

    loads: KnownLoads
    parts: dict[str, Any]
    trackers: dict[Any, Any]


class LoadTakingController(GoalController):
    """Controller that recomputes its plans when payloads or wrenches are announced; see the module.

    If no plan can hold the loads, or a path cannot be followed with them, `status` and `diagnostics` say so. A motion
    then brakes, the actuators hold their set points, and goals are refused until other loads are announced.

    Attributes:
        replans: number of plans that replaced others because of loads.
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
        """Initialise the loads; call it at the end of the constructor."""
        self._robot_alone = self.robot
        self._planning = Lock()  # held while a goal is planned: the parts must not change meanwhile

    # -- to be defined by a subclass ------------------------------------------------------------------------------

    @abstractmethod
    def _parts_for(self, robot: Robot) -> dict[str, Any]:
        """Attributes of the controller that depend on the loads, made for the given robot; called in any thread."""

    @abstractmethod
    def _held_anew(self, rest: RestPoint, pose: Pose) -> Any:
        """Tracker that holds a pose with the loads of this controller; called in any thread."""

    @abstractmethod
    def _moved_anew(self, tracker: Any) -> Any:
        """Tracker of the same motion with the loads of this controller; called in any thread."""

    @abstractmethod
    def _set_points_at(self, time: float) -> Array:
        """(k,) set points of the present plan at a time [s]; positions of the actuators (a,) first."""

    # -- interface of a controller --------------------------------------------------------------------------------

    def set_loads(self, forces: Any) -> None:
        """Announce wrenches, in the format of `Simulation.apply_forces`; the next command plans with them."""
        self._announced_loads = replace(self._announced_loads, wrenches=wrenches_of(self._robot_alone, forces))

    def carry(self, payloads: Sequence[Payload]) -> None:
        """Announce payloads in addition to those of the robot file; the next command, or reset, plans with them."""
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
        """Set points at a time [s] from plans that contain the announced loads."""
        self._follow_loads(time)
        if self._fade is not None and time >= self._fade.end:
            self._fade = None
        return super().command(time, state)

    def relaxed(self) -> tuple[str, ...]:
        return (*super().relaxed(), self._refused[1]) if self._refused else super().relaxed()

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
        """The rest point itself. Raises TensegrityError if it was computed with other loads than the present ones."""
        if rest.tracker.loads != self._planned_loads:
            raise TensegrityError(CHANGED)
        return rest

    def _refuse_unknown(self) -> None:
        """Raise TensegrityError if the announced loads cannot be planned with."""
        if self._refused is not None and self._refused[0] == self._announced_loads:
            raise TensegrityError(f"{self._refused[1]} Remove them, or announce others.")

    def _fading(self, time: float) -> Array | None:
        """(k,) difference to the former set points at a time [s]; None if there is none."""
        return None if self._fade is None else self._fade.at(time)

    def _follow_loads(self, time: float) -> None:
        """Start a plan for new loads, and use finished plans."""
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
        first = self._motions.index(self.motion_at(time))
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
            except Exception as error:  # a thread would store it as well
                work.set_exception(error)
        self._job = loads, work
        if not self.plans_beside:
            self._take_over(time)

    def _planned_with(
        self, loads: KnownLoads, trackers: Sequence[Any], rests: Sequence[tuple[RestPoint, Pose] | None]
    ) -> LoadedPlans:
        """New plans by a copy of this controller for the robot with other loads; called in any thread."""
        parts = self._parts_for(loads.on(self._robot_alone))
        other = copy(self)
        other.__dict__.update(parts)
        made = {}
        for tracker, rest in zip(trackers, rests, strict=True):
            made[tracker] = other._moved_anew(tracker) if rest is None else other._held_anew(*rest)
        return LoadedPlans(loads, parts, made)

    def _take_over(self, time: float) -> None:
        """Replace the plans by the finished ones, provided that the motion has not changed in the meantime."""
        assert self._job is not None
        loads, work = self._job
        try:
            plans = work.result()
        except TensegrityError as error:
            self._job = None
            if loads == self._announced_loads:
                self._refused = (
                    loads,
                    f"no plan holds the announced loads: {error}",
                )
                if self.status(time).phase == "moving":
                    self.hold(time)
            return
        now = self._motions[self._motions.index(self.motion_at(time)) :]
        if any(tracker not in plans.trackers for _, tracker in now):
            self._job = None  # another motion has begun since then: plan again
            return
        if not self._planning.acquire(blocking=False):
            return  # a goal is being planned and needs the present parts
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
        self._fade = SetPointFade(time - self._own_period, duration, offset)  # this command starts the fade
