"""Torque control of elastic mechanisms whose output follows a planned path (`output_planner`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from tensegrity_dynamics.errors import TensegrityError, unknown_name
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.robot import Robot

from ..controller import Accepted, Command, RobotState, Setting
from ..inverse_kinematics.mechanism_equilibria import PathEquilibrium
from ..inverse_kinematics.pose_goal import PoseGoal
from ..inverse_kinematics.solve_ik import plan_path
from ..motion_planning.output_model import OutputModel
from ..motion_planning.output_planner import OutputPlan, OutputWeights, equilibria_on_line, plan_output, rest_gain
from ..motion_planning.receding_horizon import LEAST_ROWS
from ..motion_planning.trajectory_tracking import LinearFeedbackTracker
from ..tension_floor import TOLERANCE, TensionFloor
from ..trajectories.splines import PiecewisePolynomial
from ..trajectories.time_scaling import Progress
from .elastic_torque_controller import ElasticTorqueController
from .goal_controller import RestPoint, check_ranges
from .goal_taker import PlannedMotion
from .replanning import Replanning

PLANS = ("offline", "receding", "receding_in_step")
LENGTHENED, MOST_FACTOR = 3, 4.0
"""Number of times that a motion is lengthened to keep the tension floors, and largest factor each time."""
FLOOR_SAMPLES = 60
"""Number of times along a plan at which tensions are compared with their floors."""


class OutputTracker(LinearFeedbackTracker):
    """Tracker of a plan of the output that keeps the data from which the plan was made.

    Args:
        model, plan: see `LinearFeedbackTracker`.
        trajectory: trajectory of the output's coordinates.
        start: equilibrium at its start.
        last: equilibrium at its end if it is a straight line with equilibria on it; else None.
    """

    def __init__(
        self, model: OutputModel, plan: OutputPlan, trajectory: PiecewisePolynomial, start: PathEquilibrium,
        last: PathEquilibrium | None,
    ) -> None:  # fmt: skip
        super().__init__(model, plan)
        self.trajectory, self.start, self.last, self.end = trajectory, start, last, plan.end


class OutputTrackingController(ElasticTorqueController):
    """Tracking of an output path, see `SampledController`; the gains are the deviations of `OutputWeights` and take
    effect with the next motion.

    Args:
        robot: see `OutputModel`.
        period, rate_margin, brake_time, actuation: see `SampledController`.
        output, position, rate, effort: see `OutputWeights`.
        plan: "offline", or "receding" to plan again while the robot moves, in a thread (`receding_horizon`); a new plan
            that is late is dropped. "receding_in_step" plans within the control period, for lock-step simulation and
            comparisons. With impedances new plans are new set points of the actuators.
        horizon: s, horizon of a new plan.
        replan: s between two new plans.

    Raises:
        TensegrityError: a parameter is out of range, or the robot has no `OutputModel`.
    """

    model: OutputModel

    GAINS = ("output", "position", "rate", "effort")
    ABOUT: ClassVar[Mapping[str, Setting]] = {
        "output": Setting("tolerated deviation of the output from its path [m and rad]; smaller: stiffer feedback"),
        "position": Setting("tolerated deviation of the coordinates from the equilibria [rad or m]"),
        "rate": Setting("tolerated deviation of their rates [rad/s or m/s]; smaller: more damping"),
        "effort": Setting("tolerated deviation of the efforts [N m or N]; larger: stronger feedback"),
    }

    def __init__(
        self,
        robot: Robot,
        *,
        period: float = 0.005,
        rate_margin: float = 0.5,
        brake_time: float = 0.5,
        actuation: str = "impedance",
        output: float = OutputWeights.output,
        position: float = OutputWeights.position,
        rate: float = OutputWeights.rate,
        effort: float = OutputWeights.effort,
        plan: str = "offline",
        horizon: float = 0.3,
        replan: float = 0.05,
    ) -> None:
        if plan not in PLANS:
            raise TensegrityError(unknown_name("plan", plan, PLANS))
        if plan != "offline":
            check_ranges(("horizon", horizon, LEAST_ROWS * period, 60.0), ("replan", replan, period, 60.0))
        self.weights = OutputWeights(output, position, rate, effort)
        super().__init__(robot, OutputModel(robot), OutputModel(robot), period, rate_margin, brake_time, actuation)
        self.replanning = None if plan == "offline" else Replanning(robot, horizon, replan, plan == "receding")

    def reset(self, time: float, state: RobotState | None = None) -> None:
        self._give_up("the controller was reset")
        super().reset(time, state)

    def plan_goal(self, now: float, goal: PoseGoal, **options: Any) -> PlannedMotion:
        """Plan as the base class does. If the motion takes a tendon below its tension floor, it is lengthened and the
        note says so. The note also names tendons that are below their floors at the goal, or still are during the
        motion."""
        planned, asked, note = super().plan_goal(now, goal, **options), options.get("duration"), ""
        factor, tendon, sunk = self._slower(planned.tracker)
        for _ in range(LENGTHENED):
            longer = min(factor, MOST_FACTOR) * planned.duration
            if factor <= 1.0 or longer > self.longest:
                break
            planned = super().plan_goal(now, goal, **{**options, "duration": longer})
            begin = f"{asked:.3g} s requested, " if asked else ""
            note = f"{begin}{planned.duration:.3g} s needed by the tension floor of {tendon}"
            factor, tendon, sunk = self._slower(planned.tracker)
        return self._with_floors(now, planned, note, tendon, sunk)

    def plan_through(
        self, now: float, waypoints: Sequence[tuple[float, PoseGoal]], interpolation: str = "smooth",
        rest: RestPoint | None = None,
    ) -> PlannedMotion:  # fmt: skip
        """Plan as the base class does; the note names tendons that the motion takes below their floors."""
        planned = super().plan_through(now, waypoints, interpolation, rest)
        return self._with_floors(now, planned, "", *self._slower(planned.tracker)[1:])

    def _with_floors(self, now: float, planned: PlannedMotion, note: str, tendon: str, sunk: str) -> PlannedMotion:
        """Planned motion with a note on tendons below their floors at its end, or during it (see `_slower`)."""
        tensions = planned.tracker.end.tensions
        broken = TensionFloor(self.robot).look(now + planned.duration, self.robot.model.tension_names, tensions)
        if tendon and not broken:
            broken = f"the motion takes {tendon} below its tension floor; take more time for it"
        elif sunk and not broken:
            broken = f"on the way {sunk} is below its tension floor, however slow the motion is; go by another way"
        return replace(planned, note="; ".join(each for each in (note or planned.note, broken) if each))

    def _slower(self, tracker: OutputTracker) -> tuple[float, str, str]:
        """Factor of the duration with which the motion keeps the tension floors, the tendon that determines it, and one
        that is below its floor on the way also at rest, though not at the start.

        The change of the tensions from those at rest is at least proportional to the speed (by dampers; to its square
        by inertia). Half of the tolerance of `TensionFloor` is left to what happens on the way.
        """
        floors = self.robot.model.tension_floors(self.robot.actuators)
        floors = {name: (1.0 - 0.5 * TOLERANCE) * floor for name, floor in floors.items() if floor > 0.0}
        if not floors:
            return 1.0, "", ""
        plan, model = tracker.plan, tracker.model
        count, worst, sunk, first = model.index.size, (1.0, ""), (1.0, ""), dict[str, float]()
        for k in np.unique(np.linspace(0, len(plan.times) - 1, FLOOR_SAMPLES).astype(int)):
            q, state = plan.positions[k], plan.states[k]
            moving = model.least_tensions(q, state[:count], state[count:])
            first = first or moving
            if all(moving.get(name, floor) >= floor for name, floor in floors.items()):
                continue
            resting = model.least_tensions(q, plan.rest_coordinates[k], np.zeros(count))
            for name, floor in floors.items():
                if name in moving and moving[name] < floor < resting[name]:
                    factor = (resting[name] - moving[name]) / (resting[name] - floor)
                    worst = max(worst, (1.01 * factor, name))
                elif name in moving and resting[name] < floor <= first[name]:
                    sunk = min(sunk, (resting[name] / floor, name))
        return *worst, sunk[1]

    def begin(self, now: float, planned: PlannedMotion) -> Accepted:
        accepted = super().begin(now, planned)
        self._give_up("another motion begins")
        return accepted

    def hold(self, now: float) -> None:
        self._give_up("the motion is held")
        super().hold(now)

    def _give_up(self, reason: str) -> None:
        if self.replanning is not None:
            self.replanning.cancel(reason)

    def _make_command(
        self, time: float, tracker: LinearFeedbackTracker, progress: Progress, state: RobotState | None
    ) -> Command:
        # while set points fade to a plan with other loads, a new plan would react to the rest of the old one
        if self.replanning is not None and self._fade is None and isinstance(tracker.plan, OutputPlan):
            self.replanning.step(tracker, progress, state, self.weights)
        return super()._make_command(time, tracker, progress, state)

    def diagnostics(self) -> dict[str, str]:
        values = super().diagnostics()
        if self.replanning is not None:
            values["new_plans"], values["late_plans"] = str(self.replanning.made), str(self.replanning.late)
        return values

    def gains(self) -> dict[str, float]:
        return dict(vars(self.weights))

    def set_gains(self, **values: float) -> None:
        self.weights = replace(self.weights, **self.checked_gains(values))

    def _in_coordinates(self, robot: Robot, index: ArrayLike, centre: Array) -> OutputModel:
        model = OutputModel(robot)
        model.take_coordinates(index, centre)
        return model

    def _hold_gain(self, equilibrium: PathEquilibrium, model: OutputModel | None = None) -> Array:
        effort = equilibrium.effort[self.model.drives]
        return rest_gain(model or self.model, equilibrium.q, effort, self.weights, self.period)

    def _coordinates(self, equilibrium: PathEquilibrium, model: OutputModel) -> Array:
        return model.coordinates(equilibrium.pose)

    def _equilibrium_at(self, rest: RestPoint) -> PathEquilibrium:
        """As the base class; an equilibrium that is solved again has exactly the output of the rest point."""
        equilibrium = super()._equilibrium_at(rest)
        if equilibrium is rest.tracker.end:
            return equilibrium
        pose = self.model.pose_at(self.model.output_position(rest.configuration), equilibrium.pose)
        goal = PoseGoal(*pose, self.model.output)
        corrected: PathEquilibrium = plan_path(self.equilibria, equilibrium, goal).equilibrium
        return corrected

    def _find_path(self, start: PathEquilibrium, goal: PoseGoal) -> Sequence[PathEquilibrium]:
        return equilibria_on_line(self.model, self.equilibria, start, goal)

    def _waypoint_coordinates(
        self, rest: RestPoint, goals: Sequence[PoseGoal]
    ) -> tuple[Array, Sequence[PathEquilibrium]]:
        # whether they can be reached is checked by the plan
        start = self._coordinates(self._equilibrium_at(rest), self.model)
        return np.array([start, *(self.model.coordinates(goal.pose) for goal in goals)]), ()

    def _track(
        self, rest: RestPoint, trajectory: PiecewisePolynomial, equilibria: Sequence[PathEquilibrium]
    ) -> LinearFeedbackTracker:
        initial = equilibria or (self._equilibrium_at(rest),)
        model, _ = self._models_at(np.array([each.q for each in initial]))
        assert isinstance(model, OutputModel)
        return self._tracked(model, trajectory, initial[0], equilibria)

    def _tracked(
        self, model: OutputModel, trajectory: PiecewisePolynomial, start: PathEquilibrium,
        line: Sequence[PathEquilibrium],
    ) -> OutputTracker:  # fmt: skip
        """Tracker of a trajectory of the output from an equilibrium, with the equilibria on its line if it is
        straight."""
        plan = plan_output(
            model, trajectory.value, trajectory.end, self.period, weights=self.weights, start=start,
            equilibrium_map=self.equilibria, line=line,
        )  # fmt: skip
        self._check_plan(plan)
        tracker = OutputTracker(model, plan, trajectory, start, line[-1] if len(line) else None)
        self._prepared(tracker, model, plan.ends)
        return tracker

    def _parts_for(self, robot: Robot) -> dict[str, Any]:
        parts = super()._parts_for(robot)
        again = self.replanning
        return parts if again is None else parts | {"replanning": again.for_robot(robot)}

    def _moved_anew(self, tracker: OutputTracker) -> OutputTracker:
        model, _ = self._models_in(tracker.model.index, tracker.model.centre)
        assert isinstance(model, OutputModel)
        start, last = self._at_pose(tracker.start.q, tracker.start.pose), tracker.last
        line = () if last is None else equilibria_on_line(
            model, self.equilibria, start, PoseGoal(*last.pose, model.output)
        )  # fmt: skip
        return self._tracked(model, tracker.trajectory, start, line)
