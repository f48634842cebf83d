"""Interface of controllers that nodes run and that may accept goals: controller node, planning thread and tours.

Planning (`plan_goal`) and starting (`begin`) are two steps, so that a plan can be computed in another thread while the
controller runs. A plan is checked before anything changes: a refused goal does not affect the present motion.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robots.output_frame import Pose

from ..controller import Accepted, Controller
from ..inverse_kinematics.pose_goal import PoseGoal

Waypoint = tuple[float, "ArrayLike | None", "ArrayLike | None"]


@dataclass(frozen=True, eq=False)
class PlannedMotion:
    """A motion that is ready to begin.

    Attributes:
        tracker: its plan and feedback.
        duration: s.
        note: message for the sender of the goal; may be empty.
        goal: pose at its end.
        version: version of the motion that it continues.
    """

    tracker: Any
    duration: float
    note: str
    goal: Pose
    version: int


def checked_goal_taker(controller: Controller, name: str) -> GoalTaker:
    """The controller, if nodes can run it. Raises TensegrityError: it cannot be held, stopped and released."""
    if not isinstance(controller, GoalTaker):
        made = type(controller)
        raise TensegrityError(
            f"nodes cannot run the controller {name}, because they cannot stop it: let {made.__name__} "
            f"({made.__module__}) be a {GoalTaker.__name__} with `hold`, `stop` and `release`, or a GoalController."
        )
    return controller


class GoalTaker(Controller):
    """Controller that nodes can run: it is held, stopped and released, and accepts goals or refuses them.

    The methods about goals refuse all of them, so that a controller without goals has to say nothing about them.

    Attributes:
        gaps: number of intervals without commands that were long enough for the actuators to brake by themselves.
    """

    gaps: int = 0

    @property
    def needs_equilibria(self) -> bool:
        """Whether goals in a stream need `equilibria_to` first."""
        return False

    def equilibria_to(self, goal: PoseGoal) -> Any:
        """Equilibria along the path to a pose, a slow computation that may run in any thread. Raises as `plan_goal`."""
        raise NotImplementedError(f"{type(self).__name__} needs no equilibria.")

    def _no_goals(self) -> TensegrityError:
        return TensegrityError(f"{type(self).__name__} accepts no goals.")

    def make_goal(self, now: float, position: ArrayLike | None, quaternion: ArrayLike | None = None) -> PoseGoal:
        """Goal pose: position (3,) m, quaternion (4,) w, x, y, z; None keeps that of the pose at which the present
        motion rests.

        Raises:
            TensegrityError: goals are not accepted now, or the pose is invalid.
        """
        raise self._no_goals()

    def make_waypoints(self, now: float, waypoints: Sequence[Waypoint]) -> list[tuple[float, PoseGoal]]:
        """Waypoint poses; None keeps the value of the waypoint before. Raises as `make_goal`."""
        raise self._no_goals()

    def check_goal(self, duration: float | None = None, profile: str = "minimum_jerk") -> None:
        """Raise TensegrityError if a goal is invalid independently of its pose."""
        raise self._no_goals()

    def check_waypoints(self, times: Sequence[float], interpolation: str = "smooth") -> None:
        """Raise TensegrityError if waypoints are invalid independently of their poses; times [s] from the start."""
        raise self._no_goals()

    def rest(self, now: float) -> Any:
        """Rest point of the present motion if it is braked now; for `plan_goal`."""
        raise self._no_goals()

    def plan_goal(
        self,
        now: float,
        goal: PoseGoal,
        *,
        duration: float | None = None,
        profile: str = "minimum_jerk",
        rest: Any = None,
    ) -> PlannedMotion:
        """Motion to a pose, for `begin`. It changes nothing, so that it may run in another thread.

        Raises:
            UnreachableGoalError, InfeasibleControlError, TensegrityError: the goal is refused.
        """
        raise self._no_goals()

    def plan_through(
        self,
        now: float,
        waypoints: Sequence[tuple[float, PoseGoal]],
        interpolation: str = "smooth",
        rest: Any = None,
    ) -> PlannedMotion:
        """Motion through poses at times from its start [s], for `begin`. Raises as `plan_goal`."""
        raise self._no_goals()

    def begin(self, now: float, planned: PlannedMotion) -> Accepted:
        """Start a planned motion. Raises TensegrityError if another motion has started since it was planned."""
        raise self._no_goals()

    @abstractmethod
    def hold(self, now: float) -> None:
        """Stop the present motion as soon as possible and hold the configuration reached."""

    @abstractmethod
    def stop(self, now: float) -> None:
        """As `hold`; goals are refused until `release`."""

    @abstractmethod
    def release(self) -> None:
        """Accept goals again after `stop`."""

    def set_goal(
        self,
        now: float,
        position: ArrayLike | None = None,
        quaternion: ArrayLike | None = None,
        *,
        duration: float | None = None,
        profile: str = "minimum_jerk",
    ) -> Accepted:
        """Go to a pose: `make_goal`, `plan_goal` and `begin`; a refused goal does not affect the present motion."""
        goal = self.make_goal(now, position, quaternion)
        return self.begin(now, self.plan_goal(now, goal, duration=duration, profile=profile))

    def follow(self, now: float, waypoints: Sequence[Waypoint], interpolation: str = "smooth") -> Accepted:
        """Pass through poses: `make_waypoints`, `plan_through` and `begin`; if refused, the present motion continues.

        Args:
            waypoints: time from the start [s], position (3,) m, quaternion (4,). Times count from `now`, or from the
                end of braking if a motion is running.
        """
        self.check_waypoints([float(waypoint[0]) for waypoint in waypoints], interpolation)
        goals = self.make_waypoints(now, waypoints)
        return self.begin(now, self.plan_through(now, goals, interpolation))
