"""Replanning in parallel with the controller: one plan at a time, used from the period for which it was computed."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robots.robot import Robot

from ..cancellation import Cancellation, PlanCancelledError, can_be_cancelled
from ..controller import RobotState
from ..motion_planning.output_model import OutputModel
from ..motion_planning.output_planner import OutputPlan, OutputWeights
from ..motion_planning.receding_horizon import LEAD, RecedingHorizon
from ..motion_planning.trajectory_tracking import LinearFeedbackTracker, TrackingPlan
from ..trajectories.time_scaling import Progress

ON_TIME = 1e-6
"""Tolerance of the pace and of a period within which a motion is on schedule; a braking motion is not replanned."""


class Replanning:
    """Replanning of a motion; see the module.

    Args:
        robot: see `OutputModel`.
        horizon: s, horizon of a plan.
        every: s between two plans.
        beside: whether plans are computed in a thread; else within the call.

    Attributes:
        made, late, refused: number of plans that were used, that were late, and that failed.
        cancellation: of the plan in progress.
    """

    def __init__(self, robot: Robot, horizon: float, every: float, beside: bool) -> None:
        self._model, self._horizon, self._every = OutputModel(robot), horizon, every
        self._thread = ThreadPoolExecutor(1, "replanner") if beside else None
        self._tracker: LinearFeedbackTracker | None = None
        self._horizons: RecedingHorizon | None = None
        self._job: tuple[int, Future[TrackingPlan | None]] | None = None
        self.cancellation, self._next = Cancellation(), 0
        self.made = self.late = self.refused = 0

    def for_robot(self, robot: Robot) -> Replanning:
        """The same object for a robot with other loads, with the same thread and counts."""
        other = Replanning(robot, self._horizon, self._every, False)
        other._thread = self._thread
        other.made, other.late, other.refused = self.made, self.late, self.refused
        return other

    @property
    def is_planning(self) -> bool:
        """Whether a plan is in progress."""
        return self._job is not None

    @property
    def times(self) -> list[float]:
        """s of processor time of each plan of the present motion."""
        return [] if self._horizons is None else self._horizons.times

    def cancel(self, reason: str) -> None:
        """Cancel the plan in progress; it is not used."""
        self.cancellation.cancel(reason)
        self._job = self._tracker = None

    def step(
        self, tracker: LinearFeedbackTracker, progress: Progress, state: RobotState | None, weights: OutputWeights
    ) -> None:
        """Use a plan that is due, and start the next one; call it once per period."""
        row = round(progress.time / tracker.period)
        on_time = abs(progress.pace - 1.0) < ON_TIME and abs(progress.time / tracker.period - row) < 0.01
        if not on_time or state is None or state.q is None or state.v is None:
            if self._job is not None:
                self.cancel("the motion brakes, or nothing is seen of it")
            return
        if self._tracker is not tracker:
            self.cancel("another motion runs")
            self._tracker, self._next, self.cancellation = tracker, row, Cancellation()
            plan = tracker.plan
            assert isinstance(plan, OutputPlan)
            self._horizons = RecedingHorizon(
                self._model,
                plan,
                plan.targets,
                weights,
                self._horizon,
                tracker.impedance,
            )
        assert self._horizons is not None
        if self._job is not None and row >= self._job[0]:
            self._take(tracker, row)
        seen = tracker.model.state(state.q, state.v)
        self._horizons.see(row, seen, tracker.plan)
        if self._job is None and row >= self._next:
            self._next = row + max(1, round(self._every / tracker.period))
            late = 0 if tracker.impedance is None else round(max(0.0, state.age) / tracker.period)
            self._begin(row, seen, tracker.plan, LEAD + late)

    def _begin(self, row: int, seen: object, plan: TrackingPlan, lead: int) -> None:
        horizons, cancellation = self._horizons, self.cancellation

        def work() -> TrackingPlan | None:
            assert horizons is not None
            with can_be_cancelled(cancellation):
                return horizons.replanned(row, seen, plan, lead)  # type: ignore[arg-type]

        if self._thread is not None:
            job = self._thread.submit(work)
        else:
            job = Future()
            try:
                job.set_result(work())
            except TensegrityError as error:
                job.set_exception(error)
        self._job = (row + LEAD, job)

    def _take(self, tracker: LinearFeedbackTracker, row: int) -> None:
        assert self._job is not None
        (due, job), self._job = self._job, None
        if not job.done() or row != due:
            self.late += 1
            self.cancellation.cancel("it was late")
            self.cancellation = Cancellation()
            return
        try:
            plan = job.result()
        except (TensegrityError, PlanCancelledError):
            self.refused += 1
            return
        if plan is not None:
            tracker.plan, tracker.end = plan, None  # its end depends on the learned accelerations
            if tracker.impedance is not None:
                tracker.prepare(tracker.impedance)
            self.made += 1
