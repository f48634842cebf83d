"""Plans for the controller node, made in a thread beside the control, whatever the controller.

By the clock the control goes on meanwhile. In lock-step the time stands still: the state that comes meanwhile is
answered once the plan has begun, so that every run gives the same numbers. In both cases the node answers its services,
and a plan can be called off.

The kernels release the interpreter lock; what the plan does in Python itself gives it up after `TURN` at most, for
which the control may have to wait.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent import futures
from threading import Lock
from typing import Any

from rclpy.task import Future

from tensegrity_dynamics.errors import TensegrityError

from ..cancellation import Cancellation, PlanCancelledError, can_be_cancelled
from ..controller import Accepted
from ..controllers.goal_taker import GoalTaker, PlannedMotion
from ..inverse_kinematics.pose_goal import PoseGoal

TURN = 0.0005
"""s for which the plan may keep the interpreter lock while the control waits for it."""


class PlanningThread:
    """Plans one motion at a time.

    Args:
        node: with the time (`now`) and the executor. lockstep: the time stands still meanwhile.

    Attributes:
        busy: a plan is being made for somebody.
    """

    def __init__(self, node: Any, lockstep: bool) -> None:
        self._node, self._lockstep = node, lockstep
        self._thread = futures.ThreadPoolExecutor(1, "planner")
        self._lock, self._closed = Lock(), False
        self._cancellation = Cancellation()
        self._running: futures.Future[Any] | None = None
        self._done: Future | None = None
        self.busy = False
        sys.setswitchinterval(TURN)

    @property
    def withholds(self) -> bool:
        """Whether states must wait for their answer until the plan is made."""
        return self._lockstep and self.busy

    def close(self) -> None:
        """Take no more results; a plan that is being made is given up."""
        with self._lock:
            self._closed = True
        self._cancellation.cancel("the node ends")
        self._thread.shutdown(wait=False, cancel_futures=True)

    def cancel(self, reason: str) -> None:
        """Give up the plan that is being made; whoever asked for it is answered at once, the thread ends soon."""
        self._cancellation.cancel(reason)
        done = self._done
        if done is not None and not done.done():
            given_up: futures.Future[Any] = futures.Future()
            given_up.set_exception(PlanCancelledError(f"the plan was given up: {reason}"))
            with self._lock:
                if not done.done():
                    done.set_result(given_up)

    @property
    def rests(self) -> bool:
        """Whether the thread has left the arrays that it shares with the controller, cancelled plans included."""
        return self._running is None or self._running.done()

    async def goal(self, controller: GoalTaker, goal: PoseGoal, duration: float, profile: str) -> Accepted:
        """Go to a pose. Raises what `GoalTaker.plan_goal` and `begin` raise, PlanCancelledError.

        A controller that takes streams of goals goes there from whatever it is doing: nothing has to brake, and all
        that may take long is finding equilibria.
        """
        controller.check_goal(duration, profile)
        if controller.streams_goals:
            found = {}
            if controller.needs_equilibria:
                found["equilibria"] = await self._beside(lambda: controller.equilibria_to(goal))
            now = self._node.now
            return controller.begin(now, controller.plan_goal(now, goal, duration=duration, profile=profile, **found))

        def plan(now: float, rest: Any) -> PlannedMotion:
            return controller.plan_goal(now, goal, duration=duration, profile=profile, rest=rest)

        return await self._begin(controller, plan)

    async def through(
        self, controller: GoalTaker, waypoints: Sequence[tuple[float, PoseGoal]], interpolation: str
    ) -> Accepted:
        """Pass through poses at times [s]. Raises as `goal` and `GoalTaker.plan_through`."""
        controller.check_waypoints([time for time, _ in waypoints], interpolation)

        def plan(now: float, rest: Any) -> PlannedMotion:
            return controller.plan_through(now, waypoints, interpolation, rest)

        return await self._begin(controller, plan)

    async def _begin(self, controller: GoalTaker, plan: Callable[[float, Any], PlannedMotion]) -> Accepted:
        """Plan and begin; by the clock a motion under way is braked first, so that the plan's start is certain."""
        self._refuse_busy()
        now = self._node.now
        if not self._lockstep and controller.status(now).phase == "moving":
            controller.hold(now)
            now = controller.status(now).arrival
        rest = controller.rest(now)
        planned = await self._beside(lambda: plan(now, rest))
        return controller.begin(now if self._lockstep else self._node.now, planned)

    def _refuse_busy(self) -> None:
        if self.busy:
            raise TensegrityError("another motion is being planned; wait for its answer, or call hold.")

    async def _beside(self, plan: Callable[[], Any]) -> Any:
        """What a function returns in the thread. Raises what it raises, PlanCancelledError."""
        self._refuse_busy()
        done = self._done = Future(executor=self._node.executor)
        done.add_done_callback(lambda _: None)  # an executor that waits is woken by callbacks alone
        cancellation = self._cancellation = Cancellation()
        self.busy = True

        def work() -> Any:
            with can_be_cancelled(cancellation):
                return plan()

        def hand_over(plan_made: futures.Future[Any]) -> None:
            with self._lock:
                if not self._closed and not done.done():  # else the executor that would take it is gone
                    done.set_result(plan_made)

        self._running = self._thread.submit(work)
        self._running.add_done_callback(hand_over)
        try:
            return (await done).result()
        finally:
            self.busy, self._done = False, None
