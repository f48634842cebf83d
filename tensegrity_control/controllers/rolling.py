"""Control of structures that stand free on their ground: they roll to a position, with one cable per roll.

A goal is a position in the plane (x and y of a pose), or a heading with a distance. The rolls to the goal are searched
in the simulated rolls (`rolling.roll_map`). After each roll, at rest, the search starts again from the actual stand, so
that errors of rolls do not add up. A search inside the control loop runs at most one simulation per period. A goal is
reached within a tolerance, by default half a roll.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from tensegrity_dynamics.errors import TensegrityError, UnreachableGoalError
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.output_frame import Pose
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.structures.structure import Structure

from ..controller import Accepted, Command, Reference, RobotState, Setting, Status, positions_of
from ..inverse_kinematics.pose_goal import PoseGoal, make_goal
from ..rolling.gait import DONE, GaitSettings, Roll
from ..rolling.hill_map import make_roll_map
from ..rolling.roll_map import Outcome, RollMap, Stand
from ..rolling.roll_search import RollPlan, search_rolls
from .goal_controller import check_ranges
from .goal_taker import GoalTaker, PlannedMotion, Waypoint

ATTEMPTS = 3
"""Number of successive rolls that may fail before a goal is given up."""


class RollingController(GoalTaker):
    """Rolling to positions; see the module.

    Args:
        robot: a structure without fixed nodes, with ground, actuators and an output.
        rigid_bars: whether the bars of the model keep their length, as in the simulator.
        rate_margin: fraction of the rate limits of the actuators that is used, above 0 and at most 1.
        tolerance: m, distance from a goal within which it is reached; 0 for half a roll.

    Attributes:
        rolls: `RollMap` of the model.
        done: number of rolls made.

    Raises:
        TensegrityError: the robot cannot roll (the message says why), or a parameter is out of range.
    """

    model_type = Structure
    output_mode = "position"
    GAINS: ClassVar[tuple[str, ...]] = ("tolerance",)
    ABOUT: ClassVar[Mapping[str, Setting]] = {
        "tolerance": Setting("distance from a goal within which it is reached [m]; 0: half a roll"),
    }

    def __init__(
        self, robot: Robot, *, rigid_bars: bool = True, rate_margin: float = 0.9, tolerance: float = 0.0
    ) -> None:
        check_ranges(("rate_margin", rate_margin, 1e-6, 1.0), ("tolerance", tolerance, 0.0, 1e6))
        self.robot, self.tolerance = robot, tolerance
        self._settings = GaitSettings(rate_margin=rate_margin)
        self.rolls = self._make_rolls(rigid_bars)
        assert robot.output is not None  # checked here rather than at the first goal
        self.names = self.rolls.body.names
        self._phase, self._version, self.done = "idle", 0, 0
        self._roll: Roll | None = None
        self._nodes: Array = self.rolls.home
        self._positions: Array = self.rolls.body.neutral
        self._rest_pose: Pose = robot.output_pose(self.rolls.home)
        self._search: Iterator[RollPlan | None] | None = None
        self._plan: RollPlan | None = None
        self._goal: Pose | None = None
        self._target: Array | None = None
        self._from: Stand | None = None
        self._began, self._arrival, self._failures, self._gave_up = -np.inf, -np.inf, 0, ""

    @classmethod
    def suits(cls, robot: Robot) -> bool:
        model = robot.model
        if not (isinstance(model, Structure) and robot.actuators and robot.outputs):
            return False
        return model.ground is not None and not model.fixed.any()

    # -- interface of a controller --------------------------------------------------------------------------------

    def reset(self, time: float, state: RobotState) -> None:
        """Return to the neutral rest lengths and wait for rest, without a goal. A stop remains active.

        Raises:
            TensegrityError: the state has no nodes, or is of another robot.
        """
        self.refuse_other_state(state)
        if state.nodes is None or not np.isfinite(state.nodes).all():
            raise TensegrityError(
                "rolling needs the positions of the nodes, which are not in the state; start an estimator, or use "
                "--state truth."
            )
        self._nodes = np.array(state.nodes)
        body = self.rolls.body
        self._positions = np.clip(positions_of(self.robot, state.positions), body.low, body.high)
        self._rest_pose = self.robot.output_pose(self._nodes)
        self._drop_goal()
        self._roll = Roll(body, None, self._settings, time, self._nodes, self._positions)
        self._began = self._arrival = time
        self._goal, self._gave_up, self._failures = self._rest_pose, "", 0
        self._version += 1
        self._phase = "stopped" if self._phase == "stopped" else "holding"

    def command(self, time: float, state: RobotState | None = None) -> Command:
        """Rest lengths at a time [s]; unchanged if the state has no nodes."""
        if self._phase == "idle":
            raise TensegrityError("the controller has not received a state yet; call reset with a state first.")
        self.refuse_other_state(state)
        nodes = None if state is None else state.nodes
        if nodes is not None and np.isfinite(nodes).all():
            self._nodes = np.array(nodes)
            if self._roll is not None:
                self._positions = self._roll.command(time, self._nodes)
                if self._roll.phase == DONE:
                    self._finish(time, self._roll)
            elif self._target is not None:
                self._think(time)
        return Command("position", self.names, self._positions.copy())

    def reference(self, time: float) -> Reference:
        """Pose at the last rest; there is no reference during a roll."""
        return Reference(self._rest_pose, np.zeros(6))

    def status(self, time: float) -> Status:
        """Status of the controller at a time [s]."""
        relaxed = (self._gave_up,) if self._gave_up else ()
        if not self._moves:
            return Status(self._phase, 1.0, self._arrival, self._goal, relaxed)
        phase = "stopped" if self._phase == "stopped" else "moving"
        arrival = max(self._arrival, time)
        progress = (time - self._began) / max(arrival - self._began, 1e-9)
        return Status(phase, min(max(progress, 0.0), 1.0), arrival, self._goal, relaxed)

    def diagnostics(self) -> dict[str, str]:
        body = self.rolls.body
        values = {"stands_on": body.face_words(body.reader.touching(self._nodes)), "rolls": str(self.done)}
        if self._roll is not None and self._roll.cable is not None:
            values["roll"] = f"{self.names[self._roll.cable]}: {self._roll.phase}"
        if self._gave_up:
            values["relaxed"] = self._gave_up
        return values

    def gains(self) -> dict[str, float]:
        return {"tolerance": self.tolerance}

    def set_gains(self, **values: float) -> None:
        checked = self.checked_gains(values)
        check_ranges(*((name, value, 0.0, 1e6) for name, value in checked.items()))
        self.tolerance = checked.get("tolerance", self.tolerance)

    # -- goals ----------------------------------------------------------------------------------------------------

    def make_goal(self, now: float, position: ArrayLike | None, quaternion: ArrayLike | None = None) -> PoseGoal:
        """Goal to roll to: x and y of the position (3,) m.

        Raises:
            TensegrityError: goals are not accepted now, there is no position, or it is outside the height field.
        """
        self._ready()
        if position is None:
            raise TensegrityError("a goal for rolling needs a position; give x and y.")
        goal = make_goal(self.robot.output, position, quaternion, self._rest_pose)
        ground = self.rolls.body.structure.ground
        assert ground is not None
        x, y = goal.position[:2].tolist()
        if ground.hills is not None and not ground.hills.holds(x, y):
            raise TensegrityError(
                f"the goal ({x:.3g}, {y:.3g}) m lies outside the height field of the robot file; choose one inside."
            )
        return goal

    def make_waypoints(self, now: float, waypoints: Sequence[Waypoint]) -> list[tuple[float, PoseGoal]]:
        return [(float(time), self.make_goal(now, position, quaternion)) for time, position, quaternion in waypoints]

    def check_goal(self, duration: float | None = None, profile: str = "minimum_jerk") -> None:
        self._ready()
        if duration is not None and not (np.isfinite(duration) and duration >= 0.0):
            raise TensegrityError(
                f"the duration is {duration}; give seconds, zero or more (0: as long as the rolls need)."
            )

    def check_waypoints(self, times: Sequence[float], interpolation: str = "smooth") -> None:
        self._ready()
        raise TensegrityError(
            "rolls take their own time, so waypoints with times are not possible; send the positions one after the "
            "other."
        )

    def plan_through(
        self,
        now: float,
        waypoints: Sequence[tuple[float, PoseGoal]],
        interpolation: str = "smooth",
        rest: object = None,
    ) -> PlannedMotion:
        self.check_waypoints([time for time, _ in waypoints], interpolation)
        raise AssertionError("unreachable")

    def rest(self, now: float) -> Stand:
        """Stand now, or after the present roll."""
        stand = self.rolls.stand(self._nodes)
        if self._roll is None or self._roll.cable is None or self._from is None:
            return stand
        found = self.rolls.outcome(self._from, self._roll.cable)
        return stand if found is None else self.rolls.after(self._from, found)

    def plan_goal(
        self,
        now: float,
        goal: PoseGoal,
        *,
        duration: float | None = None,
        profile: str = "minimum_jerk",
        rest: Stand | None = None,
    ) -> PlannedMotion:
        """Plan the rolls to a position.

        Args:
            duration: s, requested; rolls take their own time, and the note says so if this is longer.

        Raises:
            UnreachableGoalError: no cable tips the face, or no rolls lead to the position.
            TensegrityError: goals are not accepted now, or the duration is invalid.
        """
        version = self._version
        self.check_goal(duration, profile)
        plan: RollPlan | None = None
        for found in self._searched(rest or self.rest(now), goal.position[:2]):
            plan = found
        assert plan is not None
        count = len(plan.rolls)
        note = f"{count} roll{'s' if count != 1 else ''}, which end {plan.distance:.2g} m from the goal"
        if plan.is_short:
            note += "; no rolls end closer to it"
        if duration and plan.duration > duration:
            note += f"; {duration:.3g} s requested, {plan.duration:.3g} s needed by the rolls"
        return PlannedMotion(plan, plan.duration, note, goal.pose, version)

    def begin(self, now: float, planned: PlannedMotion) -> Accepted:
        self._ready()
        if planned.version != self._version:
            raise TensegrityError("another command came while the motion was planned; send it again.")
        self._version += 1
        self._goal, self._target = planned.goal, np.array(planned.goal[0][:2])
        self._began, self._arrival = now, now + planned.duration
        self._gave_up, self._failures = "", 0
        self._plan, self._search = planned.tracker, None
        if self._roll is None:
            self._search = iter((planned.tracker,))  # the robot rests at the start of the plan
        return Accepted(self._arrival, planned.duration, planned.note)

    def hold(self, now: float) -> None:
        """Drop the goal. A roll that has not tipped yet is aborted, another one runs to its end."""
        if self._phase == "idle":
            return
        self._drop_goal()
        if self._roll is not None:
            self._roll.give_up(now)
        self._goal, self._arrival = self._rest_pose, now
        self._version += 1

    def stop(self, now: float) -> None:
        self.hold(now)
        self._phase = "stopped"

    def release(self) -> None:
        if self._phase == "stopped":
            self._phase = "holding"

    # -- inside ---------------------------------------------------------------------------------------------------

    @property
    def _moves(self) -> bool:
        return self._target is not None or (self._roll is not None and self._roll.cable is not None)

    def _searched(self, start: Stand, position: Array) -> Iterator[RollPlan | None]:
        return search_rolls(self.rolls, start, position, self.tolerance or None)

    def _drop_goal(self) -> None:
        self._target, self._search, self._plan = None, None, None

    def _finish(self, time: float, roll: Roll) -> None:
        """Handle rest after a roll."""
        self._roll = None
        if not roll.late:
            self.rolls.note_rest(self._nodes)
        self._rest_pose = self.robot.output_pose(self._nodes)
        if roll.cable is not None:
            self.done += 1
            if self.rolls.body.reader.touching(self._nodes) != roll.start:
                self._failures = 0
            elif self._from is not None and self._target is not None:
                self._failures += 1
                self.rolls.learn_failure(self._from, roll.cable)
        if self._target is None:
            self._arrival = time
        elif self._failures >= ATTEMPTS:
            self._give_up(time, f"{self._failures} rolls in a row did not tip the robot over")
        self._search = None

    def _think(self, time: float) -> None:
        """One step of the search; at its end the next roll starts, or the goal is reached or given up."""
        assert self._target is not None
        if self._search is None:
            self._search = self._searched(self.rolls.stand(self._nodes), self._target)
        try:
            plan = next(self._search)
        except UnreachableGoalError as error:
            self._give_up(time, str(error))
            return
        if plan is None:
            return
        self._search, self._plan, self._arrival = None, plan, time + plan.duration
        if not plan.rolls:
            self._drop_goal()
            return
        self._from = self.rolls.stand(self._nodes)
        self._roll = self._make_roll(time, self._from, plan.rolls[0])

    def _make_rolls(self, rigid_bars: bool) -> RollMap:
        """Map of the rolls that this controller makes."""
        return make_roll_map(self.robot, self._settings, rigid_bars=rigid_bars)

    def _make_roll(self, time: float, stand: Stand, roll: Outcome) -> Roll:
        """Start the first roll of a plan."""
        return Roll(self.rolls.body, roll.cable, self._settings, time, self._nodes, self._positions)

    def _give_up(self, time: float, reason: str) -> None:
        self._gave_up, self._arrival = f"the goal was given up: {reason}", time
        self._drop_goal()
