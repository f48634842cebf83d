"""Plans for the controller node: in lock-step while the simulator waits, else in a thread beside the control."""

from __future__ import annotations

from collections.abc import Callable
from concurrent import futures
from threading import Lock
from typing import Any

from rclpy.task import Future

from tensegrity_dynamics.errors import TensegrityError

from ..controllers.goal_controller import MotionController


class Planner:
    """Plans one motion at a time; controllers other than `MotionController` plan where they control: they are quick.

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

    async def goal(self, controller: Any, position: Any, quaternion: Any, options: dict[str, Any]) -> Any:
        """`set_goal` of the controller. Raises what it raises."""
        if self._lockstep or not isinstance(controller, MotionController):
            return controller.set_goal(self._node.now, position, quaternion, **options)
        controller.check_goal(options["duration"], options["profile"])
        return await self._apart(
            controller, lambda now, q: controller.plan_goal(now, position, quaternion, q=q, **options)
        )

    async def through(self, controller: Any, points: Any, interpolation: str) -> Any:
        """`follow` of the controller. Raises what it raises."""
        if self._lockstep or not isinstance(controller, MotionController):
            return controller.follow(self._node.now, points, interpolation)
        controller.check_waypoints(points, interpolation)
        return await self._apart(controller, lambda now, q: controller.plan_through(now, points, interpolation, q))

    async def _apart(self, controller: Any, plan: Callable[[float, Any], Any]) -> Any:
        """Plan in the thread; a motion under way is broken off first, so that it is known where the plan begins."""
        if self.busy:
            raise TensegrityError("another motion is being planned; wait for its answer.")
        now = self._node.now
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
