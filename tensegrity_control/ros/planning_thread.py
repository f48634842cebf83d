"""Plans for the controller node: in lock-step while the simulator waits, else in a thread beside the control."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent import futures
from threading import Lock
from typing import Any

from rclpy.task import Future

from tensegrity_dynamics.errors import TensegrityError

from ..controller import Accepted
from ..controllers.goal_controller import GoalController, PlannedMotion, RestPoint
from ..inverse_kinematics.pose_goal import PoseGoal


class PlanningThread:
    """Plans one motion at a time; for a controller that plans at once where it controls.

    Args:
        node: with the time (`now`) and the executor. lockstep: plan at once, so that every run gives the same numbers.
    """

    def __init__(self, node: Any, lockstep: bool) -> None:
        self._node, self._lockstep = node, lockstep
        self._thread = futures.ThreadPoolExecutor(1, "planner")
        self._lock, self._closed = Lock(), False
        self.busy = False

    def close(self) -> None:
        """Take no more results; a plan that is being made is abandoned, for it cannot be stopped."""
        with self._lock:
            self._closed = True
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def goal(self, controller: GoalController, goal: PoseGoal, duration: float, profile: str) -> Accepted:
        """Go to a pose. Raises what `GoalController.plan_goal` and `begin` raise."""
        controller.check_goal(duration, profile)

        def plan(now: float, rest: RestPoint | None) -> PlannedMotion:
            return controller.plan_goal(now, goal, duration=duration, profile=profile, rest=rest)

        return await self._begin(controller, plan)

    async def through(
        self, controller: GoalController, waypoints: Sequence[tuple[float, PoseGoal]], interpolation: str
    ) -> Accepted:
        """Pass through poses at times [s]. Raises what `GoalController.plan_through` and `begin` raise."""
        controller.check_waypoints([time for time, _ in waypoints], interpolation)

        def plan(now: float, rest: RestPoint | None) -> PlannedMotion:
            return controller.plan_through(now, waypoints, interpolation, rest)

        return await self._begin(controller, plan)

    async def _begin(
        self, controller: GoalController, plan: Callable[[float, RestPoint | None], PlannedMotion]
    ) -> Accepted:
        """Plan and begin; in the thread a motion under way is braked first, so that the plan's start is certain."""
        now = self._node.now
        if self._lockstep or controller.plans_at_once:
            return controller.begin(now, plan(now, None))
        if self.busy:
            raise TensegrityError("another motion is being planned; wait for its answer.")
        if controller.status(now).phase == "moving":
            controller.hold(now)
            now = controller.status(now).arrival
        done = Future(executor=self._node.executor)
        done.add_done_callback(lambda _: None)  # an executor that waits is woken by callbacks alone
        self.busy = True

        def hand_over(plan_made: futures.Future[Any]) -> None:
            with self._lock:
                if not self._closed:  # else the executor that would take it is gone
                    done.set_result(plan_made)

        self._thread.submit(plan, now, controller.rest(now)).add_done_callback(hand_over)
        try:
            finished = await done
        finally:
            self.busy = False
        return controller.begin(self._node.now, finished.result())
