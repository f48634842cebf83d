"""Planning for the controller node in a thread beside the control, for all controllers.

In real time the control continues while a plan is computed. In lock-step the time stands still: a state that arrives in
the meantime is answered after the plan has begun, so that every run gives the same numbers. In both cases the node
answers its services, and a plan can be cancelled.

Compiled kernels release the interpreter lock. Python code of a plan releases it after `TURN` at most, which the control
may have to wait.
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
"""s, longest time for which a plan keeps the interpreter lock while the control waits for it."""


class PlanningThread:
    """Plans one motion at a time.

    Args:
        node: node with the time (`now`) and the executor; `brakes_for_goal` is called when a motion was braked.
        lockstep: whether the time stands still during planning.

    Attributes:
        busy: whether a plan is being computed.
    """

    def __init__(self, node: Any, lockstep: bool) -> None:
        self._node, self._lockstep = node, lockstep
        self._thread = futures.ThreadPoolExecutor(1, "planner")
        self._lock, self._closed = Lock(), False
        self._cancellation = Cancellation()
        self.running: futures.Future[Any] | None = None
        self._done: Future | None = None
        self.busy = False
        sys.setswitchinterval(TURN)

    @property
    def withholds(self) -> bool:
        """Whether states must wait for their answer until the plan is finished."""
        return self._lockstep and self.busy

    def close(self) -> None:
        """Accept no more results; a plan in progress is cancelled."""
        with self._lock:
            self._closed = True
        self._cancellation.cancel("the node ends")
        self._thread.shutdown(wait=False, cancel_futures=True)

    def cancel(self, reason: str) -> None:
        """Cancel the plan in progress. Its caller is answered at once; the thread ends soon after."""
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
        """Whether the thread no longer uses the arrays that it shares with the controller; false during a cancelled
        plan."""
        return self.running is None or self.running.done()

    async def goal(self, controller: GoalTaker, goal: PoseGoal, duration: float, profile: str) -> Accepted:
        """Go to a pose. Raises the errors of `GoalTaker.plan_goal` and `begin`, and PlanCancelledError.

        A controller that accepts streams of goals moves there from its present motion without a brake. Only the search
        of equilibria may take long.
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
        """Pass through poses at times [s]. Raises the errors of `goal` and `GoalTaker.plan_through`."""
        controller.check_waypoints([time for time, _ in waypoints], interpolation)

        def plan(now: float, rest: Any) -> PlannedMotion:
            return controller.plan_through(now, waypoints, interpolation, rest)

        return await self._begin(controller, plan)

    async def _begin(self, controller: GoalTaker, plan: Callable[[float, Any], PlannedMotion]) -> Accepted:
        """Plan and begin a motion. In real time a running motion is braked first, so that the start of the plan is
        known."""
        self._refuse_busy()
        now = self._node.now
        if not self._lockstep and controller.status(now).phase == "moving":
            controller.hold(now)
            self._node.brakes_for_goal()
            now = controller.status(now).arrival
        rest = controller.rest(now)
        planned = await self._beside(lambda: plan(now, rest))
        return controller.begin(now if self._lockstep else self._node.now, planned)

    def _refuse_busy(self) -> None:
        if self.busy:
            raise TensegrityError("another motion is being planned; wait for its answer, or call hold.")

    async def _beside(self, plan: Callable[[], Any]) -> Any:
        """Result of a function that runs in the thread. Raises its errors and PlanCancelledError."""
        self._refuse_busy()
        done = self._done = Future(executor=self._node.executor)
        done.add_done_callback(lambda _: None)  # only callbacks wake a waiting executor
        cancellation = self._cancellation = Cancellation()
        self.busy = True

        def work() -> Any:
            with can_be_cancelled(cancellation):
                return plan()

        def hand_over(plan_made: futures.Future[Any]) -> None:
            with self._lock:
                if not self._closed and not done.done():  # otherwise the executor no longer exists
                    done.set_result(plan_made)

        self.running = self._thread.submit(work)
        self.running.add_done_callback(hand_over)
        try:
            return (await done).result()
        finally:
            self.busy, self._done = False, None
