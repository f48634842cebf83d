"""The face of controllers that take goals: what the controller node, its planning thread and tours ask of them.

Planning (`plan_goal`) and beginning (`begin`) are two steps, so that a plan may be made in another thread while the
control goes on. What is planned is checked before anything changes: a refused goal leaves the motion as it was.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from tensegrity_dynamics.robots.output_frame import Pose

from ..controller import Accepted, Controller
from ..inverse_kinematics.pose_goal import PoseGoal

Waypoint = tuple[float, "ArrayLike | None", "ArrayLike | None"]


@dataclass(frozen=True, eq=False)
class PlannedMotion:
    """A motion that can begin.

    Attributes:
        tracker: its plan and feedback. duration: s. note: for whoever asked; may be empty. goal: pose at its end.
        version: of the motion that it continues.
    """

    tracker: Any
    duration: float
    note: str
    goal: Pose
    version: int


class GoalTaker(Controller):
    """See the module.

    Attributes:
        gaps: how often no command was asked for so long that the actuators braked, where they do so by themselves.
    """

    gaps: int = 0

    @property
    def needs_equilibria(self) -> bool:
        """Whether a goal of a controller that takes streams of them needs `equilibria_to` first."""
        return False

    def equilibria_to(self, goal: PoseGoal) -> Any:
        """Equilibria along the path to a pose, slow to find; may run in any thread. Raises as `plan_goal`."""
        raise NotImplementedError(f"{type(self).__name__} needs no equilibria.")

    @abstractmethod
    def make_goal(self, now: float, position: ArrayLike | None, quaternion: ArrayLike | None = None) -> PoseGoal:
        """A pose to go to: position (3,) m, quaternion (4,) w, x, y, z; None keeps what the present motion rests at.

        Raises:
            TensegrityError: goals cannot be taken now, or this is no pose.
        """

    @abstractmethod
    def make_waypoints(self, now: float, waypoints: Sequence[Waypoint]) -> list[tuple[float, PoseGoal]]:
        """Poses to pass; what is None stays as at the one before. Raises as `make_goal`."""

    @abstractmethod
    def check_goal(self, duration: float | None = None, profile: str = "minimum_jerk") -> None:
        """Raise TensegrityError for what is wrong with a goal whatever its pose."""

    @abstractmethod
    def check_waypoints(self, times: Sequence[float], interpolation: str = "smooth") -> None:
        """Raise TensegrityError for what is wrong with waypoints whatever their poses; times [s] from the start."""

    @abstractmethod
    def rest(self, now: float) -> Any:
        """Where the present motion will rest, if it is braked now; for `plan_goal`."""

    @abstractmethod
    def plan_goal(
        self,
        now: float,
        goal: PoseGoal,
        *,
        duration: float | None = None,
        profile: str = "minimum_jerk",
        rest: Any = None,
    ) -> PlannedMotion:
        """A motion to a pose, for `begin`; nothing changes yet, so that it may be planned in another thread.

        Raises:
            UnreachableGoalError, InfeasibleControlError, TensegrityError: refused.
        """

    @abstractmethod
    def plan_through(
        self,
        now: float,
        waypoints: Sequence[tuple[float, PoseGoal]],
        interpolation: str = "smooth",
        rest: Any = None,
    ) -> PlannedMotion:
        """A motion through poses at times from its start [s], for `begin`. Raises as `plan_goal`."""

    @abstractmethod
    def begin(self, now: float, planned: PlannedMotion) -> Accepted:
        """Begin a planned motion. Raises TensegrityError: something else has been begun since it was planned."""

    @abstractmethod
    def hold(self, now: float) -> None:
        """End the present motion as soon as it can be ended, and hold what is reached then."""

    @abstractmethod
    def stop(self, now: float) -> None:
        """As `hold`, and refuse goals until `release`."""

    @abstractmethod
    def release(self) -> None:
        """Allow goals again after `stop`."""

    def set_goal(
        self,
        now: float,
        position: ArrayLike | None = None,
        quaternion: ArrayLike | None = None,
        *,
        duration: float | None = None,
        profile: str = "minimum_jerk",
    ) -> Accepted:
        """Go to a pose: `make_goal`, `plan_goal` and `begin`; refused, it leaves the present motion as it was."""
        goal = self.make_goal(now, position, quaternion)
        return self.begin(now, self.plan_goal(now, goal, duration=duration, profile=profile))

    def follow(self, now: float, waypoints: Sequence[Waypoint], interpolation: str = "smooth") -> Accepted:
        """Pass through poses: `make_waypoints`, `plan_through` and `begin`; refused, the present motion goes on.

        Args:
            waypoints: time from the start [s], position (3,) m, quaternion (4,). The times count from `now`, or from
                the end of braking where a motion is under way.
        """
        self.check_waypoints([float(waypoint[0]) for waypoint in waypoints], interpolation)
        goals = self.make_waypoints(now, waypoints)
        return self.begin(now, self.plan_through(now, goals, interpolation))
