"""Torque control that answers at once: one quadratic program in every control period, and no plan (`qp`).

Each period linearises the state midway through the time for which the command will be held (`tight_cables`) and solves
for the efforts (`motion_program`): the output's acceleration is that of the reference with a proportional-derivative
correction (`output_task`, also for rotations),

    y'' = y_r'' + 2 w (y_r' - y') + w^2 (y_r - y),   f' = w_d L (y'' seen - y'' predicted)

where what the model does not know is learned as a force f at the output (W f of 000, 1.2.31), a moment where it turns,
with its inertia L.
Motions that the output leaves free are damped; tensions, efforts, effort rates, positions and rates of the actuators
keep their bounds. The bandwidth w follows from the period and from the cables, `bandwidth_of`. The reference begins to
move in the period after a goal, from whatever it was doing (`online`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.command_streams import FRESHNESS
from tensegrity_dynamics.errors import InfeasibleControlError, NoEquilibriumError, TensegrityError
from tensegrity_dynamics.mechanisms.dynamics.reduced_model import ReducedModel, choose_independent
from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables
from tensegrity_dynamics.mechanisms.loads import Payload
from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel
from tensegrity_dynamics.mechanisms.simulation.mechanism_simulator import load_array
from tensegrity_dynamics.mechanisms.statics.equilibrium_solver import MechanismEquilibriumSolver
from tensegrity_dynamics.numerics.compilation import QuickCall
from tensegrity_dynamics.numerics.rotations import matrix_from_quaternion, rotation_vector
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.output_frame import Pose
from tensegrity_dynamics.robots.robot import Robot

from ..controller import (
    STIFFNESS_SETTINGS,
    Accepted,
    Command,
    ControlPeriod,
    Reference,
    RobotState,
    Setting,
    Status,
)
from ..inverse_kinematics.mechanism_equilibria import MechanismEquilibriumMap
from ..inverse_kinematics.pose_goal import PoseGoal
from ..inverse_kinematics.solve_ik import plan_path
from ..motion_planning.impedance_gains import (
    CABLE_SHARE,
    INNER_PERIOD,
    RATE_SHARE,
    ImpedanceGains,
    cable_stiffness,
    driven_rows,
    impedance_gains,
)
from ..motion_planning.stiffness_choice import HeldStiffness
from ..optimization.motion_program import TENSION_WEIGHT, MotionProgram, MotionSolution, fill_bounds
from ..optimization.solvers import DEFAULT_SOLVER
from ..trajectories.online import OnlineMotion
from ..trajectories.quintic import remaining
from ..trajectories.splines import PiecewisePolynomial
from ..trajectories.time_scaling import PathClock, Progress
from .answer_delay import AnswerDelay
from .cable_stretch import CableStretch
from .command_timing import FORGETTING, CommandTiming
from .free_motions import FreeMotions
from .gear_losses import GearLosses
from .goal_controller import GoalPath, PlannedMotion, RestPoint, check_ranges, check_settings
from .goal_reach import GoalReach
from .held_growth import LONGEST_PERIOD, SHORTEST_PERIOD, HeldGrowth, longest_period
from .learned_force import LearnedForce
from .loop_bandwidth import DELAYED, LAGS, ON_SERVOS, affordable, bandwidth_of
from .output_task import Limits, OutputPath, OutputTask, measure_errors
from .pending_commands import PendingCommands, Sent
from .sampled_controller import SampledController
from .set_points import CORRECTED, fill_set_points
from .settled_output import SettledOutput
from .singularity_guard import SingularityGuard
from .tension_bounds import TensionBounds

OLDEST = 6.0
"""Periods after a state beyond which no command answers it, and the actuators go on with what is under way."""
SPARED = 1.0
"""Periods more than its own between two commands at which the reference keeps its pace: by the clock a command is often
one period late, which the loop bears by its design."""
MISSED = 1.5
"""Periods between two commands from which on one is missing."""
FADE = 1.0
"""s in which tensions go over from those at the start to those that are asked for."""
SHARED = 2.0
"""Rates of the actuators in parts of what the output takes of them: free motions and tensions need some, too."""
STUCK = 1.0
"""s of standing before the border of what can be reached until the goal is given up."""
STANDING = 0.02
"""Part of its largest speed below which the output stands."""
KEPT_OFF = 0.01
"""Part of their range that actuators keep off its ends, where a hard stop would take over."""
STALLED = 1e-3
"""Part of its rate that an actuator has at least whose motor is about to stall, so that its goals take long."""
LOST = 0.25
"""m of distance between output and reference beyond which this is no longer control."""
LOST_TURN = 0.8
"""rad, the same of rotations."""
OFF = 5.0
"""Times of how far the output may be behind (`_watch_border`), from which on impedances hold it instead."""
TRIED_PERIODS = (LONGEST_PERIOD, 0.5 * LONGEST_PERIOD, 2.0 * SHORTEST_PERIOD, SHORTEST_PERIOD)
"""s, with which a robot is tried whose period is to follow from it."""
LEAST_DURATION = 3.0
"""Time constants of the output's loop that every motion takes at least."""
CALM = 2.0
"""Periods of the slowest motion that springs hold, which every motion of an output that they carry takes at least."""
LEADING_TENSION_WEIGHT = 1e-6
"""Of what tensions do beside what is desired, where free motions are led along shapes at rest: `TENSION_WEIGHT` holds
tensions and lets the posture go."""
WITHOUT_FLOOR = 0.1
"""Of a cable's tension at the start: what it keeps where no floor is stated, since this control knows tight cables
alone."""
UNMOVED = 1e-7
"""Of what efforts do to the axis of the output that they move most: what they move by less, they do not move."""


class QPController(SampledController):
    """See the module.

    Args:
        robot: a mechanism with actuators and an output; positions, rotations or both of it are controlled.
        period, rate_margin, brake_time: see `SampledController`.
        bandwidth: w [1/s]; 0 takes that of `bandwidth_of`. More follows more closely and tolerates less delay.
        damping: 1/s of the motions that the output leaves free. More stops them sooner, with more changing tensions.
        learning: w_d in parts of w: how fast the force that the model does not know is learned; 0 for never.
        floor: N that every driven cable keeps; 0 takes the robot's own (`minimum_tension`), and of cables without one
            `WITHOUT_FLOOR` of their tension at the start.
        ceiling: N that no driven cable exceeds; 0 for none.
        level: N that is desired in every driven cable, as far as what it does leaves it free; 0 takes what each had at
            the start, at least what `tension_bounds.TENSION_LEVEL` says.
        floor_margin: part of the floor that is kept in hand for what happens between two commands; by as much as
            tensions were seen below what they should be of late, more is kept.
        effort_rate: change of efforts, in parts of their limit per s.
        stiffness: N/m of the output along stiffness_x, _y, _z (world, of any length), which is held by choice of
            self-stress while the pose moves; 0 for whatever it is. Out of reach it is refused.
        singularity: distance to singular positions that the output keeps, in parts of that at the start
            (`singularity_guard`); 0 for none.
        actuation: "impedance" or "effort", see `SampledController`. solver: of `optimization.solvers`.

    Attributes:
        solution: of the last period, see `MotionSolution`; None before the first.
        loads: from outside, as `load_array` makes them. motion_limits: largest speed and acceleration of the output,
            m/s and m/s², of one that only turns rad/s and rad/s².
        bounds: of the cables' tensions at present, see `TensionBounds`.

    Raises:
        TensegrityError: a parameter is out of range, or the robot has no such control; says which part prevents it.
    """

    streams_goals = takes_loads = takes_payloads = takes_estimates = True
    default_period = LONGEST_PERIOD
    ABOUT: ClassVar[Mapping[str, Setting]] = {
        "bandwidth": Setting(
            "bandwidth of the output loop [1/s], at most half the control rate; 0: from period and cables"
        ),
        "damping": Setting("damping of motions that the output leaves free [1/s]; 0: none", high=1e4),
        "learning": Setting("rate of learning unknown forces, as a fraction of the bandwidth; 0: off", high=1.0),
        "floor": Setting("smallest tension of every driven cable [N]; 0: minimum_tension", high=1e9),
        "ceiling": Setting("largest tension of every driven cable [N]; 0: no limit", high=1e9),
        "level": Setting("desired tension of every driven cable [N]; 0: that at the start", high=1e9),
        "floor_margin": Setting("margin above the floor between commands, as a fraction of it; 0: none", high=1.0),
        "effort_rate": Setting("rate limit of efforts, as a fraction of their limits [1/s]", low=1e-3, high=1e9),
        **STIFFNESS_SETTINGS,
        "singularity": Setting("smallest singularity distance, relative to the start; 0: no limit", high=0.9),
    }  # fmt: skip
    GAINS = tuple(ABOUT)

    def __init__(
        self,
        robot: Robot,
        *,
        period: float = 0.005,
        rate_margin: float = 0.5,
        brake_time: float = 0.5,
        bandwidth: float = 0.0,
        damping: float = 10.0,
        learning: float = 0.3,
        floor: float = 0.0,
        ceiling: float = 0.0,
        level: float = 0.0,
        floor_margin: float = 0.03,
        effort_rate: float = 50.0,
        stiffness: float = 0.0,
        stiffness_x: float = 0.0,
        stiffness_y: float = 0.0,
        stiffness_z: float = 1.0,
        singularity: float = 0.1,
        actuation: str = "impedance",
        solver: str = DEFAULT_SOLVER,
    ) -> None:
        period = float(period)  # compiled functions keep to the types of their first call
        super().__init__(robot, period=period, rate_margin=rate_margin, brake_time=brake_time, actuation=actuation)
        self.equations = TightCables(robot)
        self.program = MotionProgram(self.equations, solver)
        self._rows, self._task = self.equations.parts.axes, OutputTask(robot.output)  # type: ignore[arg-type]
        self._weights = np.ones(self._rows.size)
        self._check_turns()
        self._own_floor = self.equations.floors
        self._position = np.array([each.position for each in robot.actuators]).T
        self._position += KEPT_OFF * np.diff(self._position, axis=0) * np.array([[1.0], [-1.0]])
        self._rate = np.array([each.rate for each in robot.actuators])
        self._effort = np.array([each.effort for each in robot.actuators])
        self._limited_by = "the actuators' rates allow"
        self._oldest = (OLDEST + 1e-5) * period
        self._sticks = robot.driven_by_servos
        self._delayed = ON_SERVOS if self._sticks else DELAYED
        self._automatic = bandwidth_of(self.equations, period, self._delayed)
        self._guard = SingularityGuard(self.equations, self._effort, self._own_floor, singularity)
        self._growth = HeldGrowth(self.equations, self._effort)
        self._free = FreeMotions(self.program)
        self._settled, self._gears = SettledOutput(self.equations), GearLosses(self.equations)
        self._equilibria: MechanismEquilibriumMap | None = None
        self._reached: GoalReach | None = None
        self._carried: tuple[Payload, ...] = ()
        self._leads = False  # whether free motions follow shapes at rest
        self._gains = {
            "bandwidth": bandwidth, "damping": damping, "learning": learning, "floor": floor, "ceiling": ceiling,
            "level": level, "floor_margin": floor_margin, "effort_rate": effort_rate, "stiffness": stiffness,
            "stiffness_x": stiffness_x, "stiffness_y": stiffness_y, "stiffness_z": stiffness_z,
            "singularity": singularity,
        }  # fmt: skip
        self.bounds = TensionBounds(self.program, self._own_floor)
        self._at = np.array(robot.model.initial_configuration)
        self._stiff: HeldStiffness | None = None
        self.solution: MotionSolution | None = None
        self.set_gains(**self._gains)
        self._stretch = CableStretch(self.equations, period)
        self._timing = CommandTiming(period, self._oldest)
        self._pending = PendingCommands(self._lead)
        self._learned = LearnedForce(self._rows.size)
        self._fill_bounds, self._measure_errors = QuickCall(fill_bounds), QuickCall(measure_errors)
        self._none, self._still_turn = np.zeros(self._rows.size), np.zeros(3)
        self._set_points = QuickCall(fill_set_points)
        self.loads = np.array(self.equations.work.load)
        self._rate_seen: Array | None = None
        self._last_effort: Array | None = None
        self._last_command: Command | None = None
        self._last_time = self._last_acts = 0.0
        self._stuck, self._note = 0.0, ""
        self._answer, self._more_late = AnswerDelay(self._rows.size), 0.0
        self._planned, self._fastest = np.zeros(self._rows.size), np.ones(self._rows.size)
        self._given_up, self._in_time_since, self._anew = "", np.inf, False
        self._bound_for: Pose | None = None  # goal of the motion during which the loop was given up
        self._seen_at = 0.0
        self.motion_limits = self._turn_limits = (1.0, 1.0)
        self._bounded: dict[str, float] | None = None  # the gains that the bounds of the tensions belong to for good
        self._stands = False  # whether actuators that hold their positions hold the robot
        self._impedance: ImpedanceGains | None = None
        self._reach = np.full_like(self._effort, math.inf)  # where efforts ask for no more than there is
        if actuation == "impedance":
            self._impedance = self._impedance_gains()
            self._reach = self._effort / self._impedance.stiffness

    # -- gains ------------------------------------------------------------------------------------------------------

    def gains(self) -> dict[str, float]:
        return dict(self._gains)

    def set_gains(self, **values: float) -> None:
        gains = {**self._gains, **self.checked_gains(values)}
        check_ranges(("bandwidth", gains["bandwidth"], 0.0, 0.5 / self.period))
        check_settings(self.ABOUT, gains)
        floor = np.full_like(self._own_floor, gains["floor"]) if gains["floor"] else self._own_floor
        ceiling = gains["ceiling"] or np.inf
        for name, least in zip(self.equations.cables, (1.0 + gains["floor_margin"]) * floor, strict=True):
            if not least < ceiling:
                raise TensegrityError(
                    f"cable {name} shall keep {least:.4g} N (floor and its margin) and at most {ceiling:.4g} N; raise "
                    "the ceiling or lower the floor."
                )
        stiff = self._stiffness_of(gains, (1.0 + gains["floor_margin"]) * floor, ceiling)
        self._stiff, self._gains = stiff, gains
        self.bounds.floor = np.asarray(floor, dtype=np.float64)
        self._bandwidth = gains["bandwidth"] or self._automatic
        self.program.tension_high[:] = ceiling
        self._growth.allowed = HeldGrowth.designed(self.period, self._bandwidth)
        self._guard.margin, self._guard.reserve.floor = gains["singularity"], self.bounds.floor
        self._guard.headroom.low = (1.0 + gains["floor_margin"]) * self.bounds.floor

    def _stiffness_of(self, gains: dict[str, float], low: Array, ceiling: float) -> HeldStiffness | None:
        """What holds the stiffness that gains ask for. Raises TensegrityError where it is out of reach here."""
        if not gains["stiffness"] > 0.0:
            return None
        if not self.equations.cables:
            raise TensegrityError(f"{self.robot.name} has no cables whose self-stress could hold a stiffness.")
        if len(self.equations.parts.strands):
            name = self.equations.cables[-1]
            raise TensegrityError(f"cable {name} is routed, and a stiffness is held by cables with blocks alone.")
        same = ("stiffness", "stiffness_x", "stiffness_y", "stiffness_z", "floor", "floor_margin", "ceiling", "level")
        if self._stiff is not None and all(gains[name] == self._gains[name] for name in same):
            return self._stiff
        direction = np.array([gains[f"stiffness_{axis}"] for axis in "xyz"])
        stiff = HeldStiffness(self.robot, direction, gains["stiffness"])
        level = np.maximum(np.full_like(low, gains["level"]) if gains["level"] > 0.0 else self.bounds.start, low)
        now = level if self.solution is None else self.solution.tension
        stiff.begin(self._at, now, level, low, np.full_like(low, ceiling))
        return stiff

    def set_loads(self, forces: Any) -> None:
        """Known loads from now on, as `Simulation.apply_forces` takes them: W f of 000 (1.2.31), (3.2.8)."""
        self.loads = load_array(self.robot.mechanism, forces)
        self.equations.work.load[:] = self.loads

    def carry(self, payloads: Sequence[Payload]) -> None:
        """Payloads that are known beside those of the robot file, from the next command on. Efforts follow within
        `effort_rate`; the force that was learned stays, and is unlearned where they were it."""
        self._carried = tuple(payloads)
        self.equations.carry(self._carried)
        self._equilibria = self._reached = None

    # -- what GoalController asks for -------------------------------------------------------------------------------

    def reset(self, time: float, state: RobotState | None = None) -> None:
        if state is None or state.q is None:
            raise TensegrityError("this controller needs q and v in structure_state; is the robot a mechanism?")
        q = np.array(state.q, dtype=np.float64)
        v = np.zeros(self.robot.mechanism.velocity_count) if state.v is None else np.array(state.v)
        self.equations.update(q, v)
        self._take_start()
        self._refuse_slack()
        self._begin_stretch(q, v)
        self._at, self._stiff, self.solution = q, None, None
        self.set_gains()
        self._began_at = self._last_time = self._last_acts = time
        self._learned.force[:] = 0.0
        self._rate_seen = self._last_effort = self._last_command = self.solution = None
        self._pending.clear()
        self.bounds.reserve[:] = 0.0
        self.equations.softness[:] = 1.0
        self._stuck, self._note, self._bounded = 0.0, "", None
        self._timing.forget_latencies()
        self._answer.forget()
        self._more_late, self._given_up, self._in_time_since, self._anew = 0.0, "", np.inf, False
        self._bound_for, self._seen_at = None, time
        self.equations.work.load[:] = self.loads
        growth = self._growth
        growth.affords = HeldGrowth.afforded(self.period, 0.0, self._bandwidth)
        self._begin_growth(q)
        growth.refuse(self.period)
        self._begin_free(q, growth.affords)
        self.equations.update(q, v)
        super().reset(time, state)

    def _take_start(self) -> None:
        """Take tensions of the last `equations.update` as those at the start, and floors of cables that have none."""
        self.bounds.start = start = self.equations.tension
        self._own_floor = np.where(self.equations.floors > 0.0, self.equations.floors, WITHOUT_FLOOR * start)
        self._equilibria = None

    def _begin_growth(self, q: Array) -> None:
        """Look how fast the output falls away at rest at q (nq,). Raises TensegrityError where no effort holds it
        there."""
        settled, growth = self._settled, self._growth
        settled.begin(q, self.bounds.start)
        self.equations.update(q, np.zeros(self.robot.mechanism.velocity_count))
        if settled.needed:
            settled.write()
        self._set_output_limits()
        self._guard.begin()
        self._guard.reserve.refuse()
        if settled.needed:
            growth.rate, growth.held = settled.growth, settled.effort
        else:
            keeps_floors = self._guard.reserve.effort()  # where tensions go from those at the start
            growth.begin(q, (growth.holding(self.bounds.start), keeps_floors))

    def _begin_free(self, q: Array, allowed: float) -> None:
        """Let free motions begin at q (nq,), that may fall away with `allowed` 1/s between two commands."""
        self._set_tensions(0.0)
        held, follows = None if self._stands else self._growth.held, not self._settled.needed
        routed = len(self.equations.parts.strands) > 0
        if follows:
            always = routed or self._free.driven
            self._free.begin(q, self._gains["damping"], self._bandwidth, held, allowed, always=always)
        else:
            self._free.stiffness = self._free.between = 0.0
        # routed cables: a posture is held against tensions, which are large beside the inertia of light robots
        self._leads = routed and self._free.stiffness > 0.0
        self.program.tension_weight = LEADING_TENSION_WEIGHT if self._leads else TENSION_WEIGHT

    @classmethod
    def period_for(cls, robot: Robot) -> ControlPeriod:
        """The longest period with which the loop holds this robot at rest where its file puts it, see `held_growth`.

        What is refused at a long period may be held at a shorter one. A robot that is refused whatever the period gets
        the longest one, and the reason from the controller.
        """
        for period in TRIED_PERIODS:
            try:
                control = cls(robot, period=period, actuation="effort")
                equations, (q, _) = control.equations, control._equilibrium()
                still = np.zeros(robot.mechanism.velocity_count)
                equations.update(q, still)
                control._take_start()
                control.set_gains()
                control._begin_growth(q)
                control._begin_free(q, math.inf)
            except TensegrityError:
                continue
            rate = max(control._growth.rate, control._free.between)
            equations.update(q, still)
            fits = longest_period(rate, partial(bandwidth_of, equations, delayed=control._delayed))
            falls = f"falls away from rest with {rate:.3g} 1/s" if rate > 0.0 else "stays where it is"
            return ControlPeriod(min(period, fits), f"at held efforts {robot.name} {falls}")
        return ControlPeriod(LONGEST_PERIOD, "usual for this controller")

    def _refuse_slack(self) -> None:
        """Raise TensegrityError where cables are slack: nothing tells how much of them is to be reeled in."""
        slack = [
            name for name, pull in zip(self.equations.cables, self.bounds.start.tolist(), strict=True) if not pull > 0.0
        ]
        if slack:
            raise TensegrityError(
                f"cables of {self.robot.name} are slack: {', '.join(slack)}. This control begins with all of them "
                "tight; tighten them first (strain in the robot file, or the controller joint_position)."
            )

    def _begin_stretch(self, q: Array, v: Array) -> None:
        """Take what the cables' strains pull from a state."""
        self._stretch.begin(q, v)
        self.bounds.forget_commands()

    def _hold_tracker(self, state: RobotState | None) -> OutputPath:
        assert state is not None and state.q is not None
        position, quaternion = self._poses.update(np.array(state.q)).output(self.robot.output)[0]  # type: ignore[arg-type]
        return self._still(position, matrix_from_quaternion(quaternion))

    def _still(self, position: Array, rotation: Array) -> OutputPath:
        values = self._task.coordinates(position, rotation, rotation)
        start = np.stack((values, 0.0 * values, 0.0 * values))
        return OutputPath(
            OnlineMotion(start, values, 1.0, 1.0, least=self.period), rotation, self._task.translations.size
        )

    def _configuration(self, tracker: OutputPath, time: float) -> Array:
        return np.array(tracker.motion.value(time))

    def _reference(self, tracker: OutputPath, progress: Progress) -> Reference:
        values = tracker.values(progress)
        count, twist = self._task.translations.size, np.zeros(6)
        twist[self._task.translations] = values[1, :count]
        if self._task.turns.size:
            twist[3:] = values[1, count:]
        return Reference((self._output_position(values[0]), self._task.quaternion(tracker.turned(values))), twist)

    def _output_position(self, values: Array) -> Array:
        position = np.array(self.equations.arrays.position[:3])  # axes that nobody controls stay where they are
        position[self._task.translations] = values[: self._task.translations.size]
        return position

    def _end_pose(self, tracker: OutputPath, goal: PoseGoal) -> Pose:
        values = tracker.motion.value(tracker.motion.end)
        return self._output_position(values), self._task.quaternion(tracker.turned(values))

    def _plan_path(self, rest: RestPoint, goal: PoseGoal, profile: str) -> GoalPath:
        raise AssertionError("plan_goal answers goals itself")

    def _waypoint_coordinates(self, rest: RestPoint, goals: Sequence[PoseGoal]) -> tuple[Array, Sequence[Any]]:
        origin, rows = rest.tracker.turned(rest.configuration), [np.array(rest.configuration)]
        rows[0][self._task.translations.size :] = 0.0
        for goal in goals:
            rows.append(
                self._task.coordinates(goal.position, matrix_from_quaternion(goal.quaternion), origin, rows[-1])
            )
        return np.array(rows), ()

    def _track(self, rest: RestPoint, trajectory: PiecewisePolynomial, equilibria: Sequence[Any]) -> OutputPath:
        rates = trajectory.value(np.linspace(trajectory.start, trajectory.end, 200), 1)
        count = self._task.translations.size
        for part, (limit, _), unit in (
            (rates[:, :count], self.motion_limits, "m/s"), (rates[:, count:], self._turn_limits, "rad/s"),
        ):  # fmt: skip
            speed = float(np.max(np.linalg.norm(part, axis=1), initial=0.0))
            allowed = SHARED * limit / self.rate_margin
            if speed > allowed:
                raise InfeasibleControlError(
                    f"the path moves the output at {speed:.3g} {unit}; {self._limited_by} about "
                    f"{allowed:.3g} {unit} here. Stretch all times by a factor of {speed / allowed:.3g} or more."
                )
        return OutputPath(trajectory, rest.tracker.turned(rest.configuration), count)

    def plan_goal(
        self,
        now: float,
        goal: PoseGoal,
        *,
        duration: float | None = None,
        profile: str = "minimum_jerk",
        rest: RestPoint | None = None,
        equilibria: tuple[Array, Array, Array] | tuple[()] | None = None,
    ) -> PlannedMotion:
        """The motion of the reference to a goal, from what it does now; see `GoalController.plan_goal`.

        Args:
            equilibria: of `equilibria_to`; None: found here where they are needed.
        """
        self.check_goal(duration, profile)
        if self._given_up and self._growth.beyond:
            raise InfeasibleControlError(f"the output is held by the actuators' impedances alone: {self._given_up}.")
        if equilibria is None and self.needs_equilibria:
            equilibria = self.equilibria_to(goal)
        clock, tracker = self._active(now)
        start, rotation = self._held_start() or tracker.begun_anew(tracker.values(clock.at(now)))
        end = self._task.coordinates(goal.position, matrix_from_quaternion(goal.quaternion), rotation)
        motion = self._task.motion(start, end, self.motion_limits, self._turn_limits, duration, self._least_duration)
        note = ""
        if motion.asked_too_short:
            note = f"{duration:.3g} s asked for, {motion.end:.3g} s needed by the limits of speed and acceleration"
        slow = ""
        if axes := self._guard.slow_axes():
            slow = f"nearly singular here: actuators hardly move the output along {' and '.join(axes)}"
        if motion.end > self.longest:
            raise InfeasibleControlError(
                f"the motion would take {motion.end:.3g} s, above {self.longest:g} s, for the limits of speed and "
                f"acceleration{f' ({slow})' if slow else ''}; lead the robot to where its actuators move the output "
                "faster (joint_position), or go in steps."
            )
        note = "; ".join(filter(None, (note, slow)))
        path = OutputPath(motion, rotation, tracker.translations, equilibria or None)
        return PlannedMotion(path, path.duration, note, self._end_pose(path, goal), self._version)

    @property
    def needs_equilibria(self) -> bool:
        """Whether free motions, springs or routed cables decide which goals can be held, see `equilibria_to`."""
        return self._leads or self._settled.needed or len(self.equations.parts.strands) > 0

    def equilibria_to(self, goal: PoseGoal) -> tuple[Array, Array, Array] | tuple[()]:
        """Shapes at rest along the path to a goal, as `OutputPath` takes them; none where they are not needed.

        Raise UnreachableGoalError or InfeasibleControlError where no shapes at rest with tight cables lead to a goal:
        springs do not carry the output there, motions that it leaves free find no tensions that hold them, or the
        output takes all motions and nothing holds it there.
        """
        if not (self._leads or self._settled.needed):
            if self._reached is None:
                self._reached = GoalReach(self.robot, self._carried)
            if self._reached.applies:
                self._reached.refuse(self._at, goal.pose, self._guard.headroom.low)
            return ()
        if self._equilibria is None:
            model = self.robot.model_as(MechanismModel)
            mechanism = replace(model.mechanism, payloads=(*model.mechanism.payloads, *self._carried))
            self._equilibria = MechanismEquilibriumMap(
                replace(self.robot, model=replace(model, mechanism=mechanism)) if self._carried else self.robot
            )
            strands = self.equations.parts.strands[:, 0].tolist()
            for strand, floor in zip(strands, self._own_floor[self._own_floor.size - len(strands) :], strict=True):
                self._equilibria.strand_floors.setdefault(mechanism.routes[strand].name, float(floor))
        q = self._at
        here = self._equilibria.solve(q[self.equations.drive_q], q)
        path = plan_path(self._equilibria, here, goal, None).path
        tensions = np.array([self._equilibria.tensions_of(shape, self.equations.cables) for shape in path])
        for name, least in zip(self.equations.cables, np.min(tensions, axis=0), strict=True):
            if not least > 0.0:
                raise InfeasibleControlError(
                    f"cable {name} would be slack on the way to the goal, and this control keeps all cables tight; "
                    "choose a goal nearer to here, tighten the cable, or take the controller joint_position."
                )
        travel = np.cumsum([0.0, *(np.linalg.norm(b.pose[0] - a.pose[0]) for a, b in itertools.pairwise(path))])
        return travel / max(float(travel[-1]), 1e-300), np.array([shape.q for shape in path]), tensions

    def _refuse_faster(self, distance: Array) -> None:
        """Raise InfeasibleControlError where a motion by (m,) leads to where the loop cannot hold the output."""
        if self._settled.needed:
            return
        direction, count = np.zeros(self._rows.size), self._task.translations.size
        direction[self._task.translation_rows] = distance[:count]
        if self._task.turns.size:
            direction[self._task.turn_rows] = distance[count:][self._task.turns]
        self._growth.refuse_goal(self._at, direction)

    def _held_start(self) -> tuple[Array, Array] | None:
        """Position of the output at rest, and its orientation, where it is held back from the reference; else None.

        A motion that began where the reference was about to go, or as fast, would not get away from there.
        """
        if not self._guard.reason:
            return None
        rotation = np.array(self.equations.rotation)
        values = self._task.coordinates(self.equations.arrays.position[:3], rotation, rotation)
        return np.stack((values, 0.0 * values, 0.0 * values)), rotation

    def begin(self, now: float, planned: PlannedMotion) -> Accepted:
        """Begin at once where the motion begins as the reference moves; others after braking, as everywhere."""
        tracker: OutputPath = planned.tracker
        if not isinstance(tracker.motion, OnlineMotion):
            accepted = super().begin(now, planned)
            self._note, self._stuck, self._given_up, self._bound_for = "", 0.0, "", None
            return accepted
        self._ready()
        if planned.version != self._version:
            raise TensegrityError("another command came while the motion was planned; send it again.")
        motion = tracker.motion
        self._refuse_faster(motion.value(motion.end) - motion.value(motion.start))
        self._note, self._stuck, self._given_up, self._bound_for = "", 0.0, "", None
        self._motions = [(PathClock(now, planned.duration), tracker)]
        self._goal, self._began = planned.goal, now
        self._version += 1
        return Accepted(now + planned.duration, planned.duration, planned.note)

    # -- control ----------------------------------------------------------------------------------------------------

    def command(self, time: float, state: RobotState | None = None) -> Command:
        """Efforts for one period; without a state, or with one that is not finite, those of the last one.

        Raises:
            InfeasibleControlError: the output is far from its reference: what is controlled is not this robot.
        """
        if not _is_finite(state):
            self.blind += 1
            self._rate_seen = None
            return self._blind_command(time)
        assert state is not None and state.q is not None and state.v is not None
        acts = time + max(0.0, state.age) + self._more_late
        since, self._seen_at = max(time - self._seen_at, self.period), time
        if acts - time > self._oldest and self._last_command is not None:
            return self._braking_command(time, acts)
        q, v = np.ascontiguousarray(state.q, dtype=np.float64), np.ascontiguousarray(state.v, dtype=np.float64)
        timing = self._timing
        timing.acts_after(acts - time)
        if self._given_up:
            timing.interval(since)
        self._growth.affords = HeldGrowth.afforded(timing.held, timing.usual_latency, self._bandwidth)
        if self._growth.beyond and self._impedance is not None and not self._given_up:
            self._give_up(self._growth.words(), for_good=False)
        if self._given_up:
            return self._impedance_command(time, acts, q, v)
        if self._anew:
            self._begin_anew(time, q, v)
        self._apply_force()
        clock, tracker = self._active(time)
        if self.waits_for_robot:
            self._wait_for_robot(time, clock)
            clock, tracker = self._active(time)
        timing.came(time - self._last_time)
        if timing.elapsed > MISSED * self.period:  # what the actuators did since then was not commanded alone
            self._rate_seen = None
        if timing.elapsed > (FRESHNESS if self._impedance is not None else self._oldest):  # what was commanded is over
            self._begin_stretch(q, v)
            self._pending.clear()
        before = q, v
        q, v, changed = self._moved_on(q, v, time, acts)
        if self._last_effort is not None:
            ahead = self.brake_time if time > self._began_at + FADE else 0.0  # before, tensions alone change it
            ahead = ahead if tracker.shapes is None else 0.0  # where it goes is known, its trend says less
            if self._settled.needed:
                self._look_where_it_settles(time, q, self._last_effort)
                clock, tracker = self._active(time)
            elif self._growth.watch(time, q, self._last_effort, ahead):
                self._stop_short(time)
                clock, tracker = self._active(time)
        half = 0.5 * self.period
        here, middle = tracker.values(clock.at(acts)), tracker.values(clock.at(acts + half))
        turn = self._turn_error(q, here, tracker)  # before the equations, which weigh rotations with it
        here[2] = middle[2]
        arrays = self.equations.update(q, v, half)
        w = self._bandwidth * affordable(self.period, timing.latest, self._delayed)
        error, rate, desired = self._task.follow(
            here, arrays.position, arrays.velocity, arrays.selection, turn, w, half
        )  # fmt: skip
        if self._settled.needed:
            error, rate, desired = self._settle(v, error, rate, desired, w)
        rates = self._task.by_row(here[1])
        behind, beside, total = self._measure_errors(self._weights, error, rates)
        if self._is_off(behind, w) and not self._guard.reason:  # what is held off its way is off by design
            self._give_up("motion does not answer to commands as it should, the output is far from its reference")
            return self._impedance_command(time, acts, *before)
        if not total < min(LOST, LOST_TURN):
            self._check_distance(error)
        self._watch_border(time, beside, rate, w)
        self._learn(time, rate if changed is None else rate - changed, w)
        effort = None if self.solution is None else self.solution.effort
        if not self._settled.needed:
            desired = self._guard.keep(desired, q, v, half, w, self.motion_limits[1], effort)
        if self._leads and tracker.shapes is not None:  # free motions and self-stress go where shapes at rest have them
            shape, self.bounds.start = tracker.shape(here[0])
            self._free.aim(shape)
            self._bounded = None
        self._set_bounds(time, q, v)
        self.solution = solution = self.program.solve(desired, self._gains["damping"], self._free.drag(q, v))
        self._planned = self._task.by_row(here[2])
        self._answer.record(self.period, self._fastest, solution.output, self._planned)
        self._last_effort = solution.effort
        lasts, carried = timing.held, None
        if self._impedance is not None:  # set points go on with what they are left with until the next command comes
            lasts, carried = max(lasts, timing.latest), self._pending.gone(max(acts - self._last_acts, 0.0))
        more = self._stretch.efforts(q, v, before, solution.tension, self.bounds.floor, timing.elapsed, lasts, carried)
        if self._gears.any:
            more += self._gears.more(solution.effort + more, rates + 0.5 * w * error)
        self._watch_tensions(time, acts)
        self._last_command = self._made(*before, time, acts, solution, more)
        self._last_time, self._last_acts = time, acts
        return self._last_command

    def _look_where_it_settles(self, time: float, q: Array, effort: Array) -> None:
        """Where springs carry the output: to where; ends the motion where the actuators no longer move it."""
        before = self._guard.distance
        self._settled.look(q, effort)
        self._guard.distance = self._settled.distance
        lost = self._settled.lost(self._gains["singularity"], before)
        if lost and time < self._active(time)[0].end:
            self.hold(time)
            self._note = f"stopped short of the goal: {lost}"

    def _settle(self, v: Array, error: Array, rate: Array, desired: Array, w: float) -> tuple[Array, Array, Array]:
        """Errors, rates and accelerations (k,) of the output as those of where it settles (`settled_output`), at
        velocity v (nv,); its rows stand in the equations then."""
        settled = self._settled
        settled.write(self._learned.force)
        moves, off = settled.rate(v), error - settled.ahead - settled.bias
        return off, moves, desired + 2.0 * w * (rate - moves) + w * w * (off - error)

    def _turn_error(self, q: Array, here: Array, tracker: OutputPath) -> Array:
        """(3,) rad from the output's orientation at q (nq,) to that of the reference; zero where none is controlled."""
        if not self._task.turns.size:
            return self._still_turn
        body, axes = self.equations.parts.body, self.robot.output.frame.axes  # type: ignore[union-attr]
        rotation = self._poses.update(q).rotations[body] @ axes
        turn = rotation_vector(tracker.turned(here) @ rotation.T)
        self._task.fill_selection(turn, self.equations.arrays.selection)
        return turn

    def _check_distance(self, error: Array) -> None:
        """Raise InfeasibleControlError where errors (k,) are too large for a control."""
        for rows, most, unit in ((self._task.translation_rows, LOST, "m"), (self._task.turn_rows, LOST_TURN, "rad")):
            if rows.size and not (distance := math.hypot(*error[rows].tolist())) < most:
                raise InfeasibleControlError(
                    f"the output is {distance:.3g} {unit} from its reference; hold, then go on."
                )

    def _moved_on(self, q: Array, v: Array, time: float, acts: float) -> tuple[Array, Array, Array | None]:
        """q and v when the command will act, and (k,) by how much the output's rate changes until then; None: not.

        Cables stretch faster than commands come late; how they do follows from their law and not from these rates.
        """
        if acts <= time:
            return q, v, None
        count = v.size
        v = self.equations.without_stretching(v)
        change = self._pending.change(time, acts)
        if change is None:
            return self.equations.moved(q, v, acts - time), v, None
        rate, travel = change
        mean = v + travel[:count] / (acts - time)
        return self.equations.moved(q, mean, acts - time), v + rate[:count], rate[count:]

    def _learn(self, time: float, rate: Array, w: float) -> None:
        """Learn the force at the output from its rate (k,) m/s at a time [s], and from what commands did to it."""
        before, self._rate_seen = self._rate_seen, rate
        if before is None:
            return
        self._watch_answer(rate, before)
        if not self._gains["learning"] > 0.0:
            return
        if self._settled.needed:
            self._settled.learn(self._gains["learning"] * w, self._timing.elapsed)
        lasts, foreseen = self._pending.rate_change(self._last_time, time) or (0.0, self._none)
        share = min(1.0, self._gains["learning"] * w * self.period)
        mobility, elapsed = self.equations.arrays.mobility, self._timing.elapsed
        if not self._learned.learn(mobility, rate, before, lasts, foreseen, share / elapsed):
            raise InfeasibleControlError("the actuators cannot move the output here: a singular position.")

    def _watch_answer(self, rate: Array, before: Array) -> None:
        """Look whether the output's rate (k,), which was `before` (k,) at the last state, follows the commands."""
        solution = self.solution
        timing = self._timing
        if timing.elapsed > MISSED * self.period or (solution is not None and (solution.active or solution.broken)):
            self._answer.forget()  # where bounds press, actuators do not do all that was commanded
            return
        expected = round(timing.late / self.period)
        if not self._answer.see(self.period, self._fastest, rate, before, self._planned, expected):
            return
        found = float(self._answer.periods or 0) * self.period
        self._more_late = max(0.0, self._more_late + found - timing.late)
        self._answer.forget()
        if self._impedance is not None and found > self._oldest:
            self._give_up(f"motion answers to commands only after {1e3 * found:.3g} ms")

    # -- where the loop cannot hold the output, but impedances can ---------------------------------------------------

    def _is_off(self, behind: float, w: float) -> bool:
        """Whether the output is farther from its reference than a loop of bandwidth w ever lets it be."""
        return self._impedance is not None and behind > OFF * self.motion_limits[0] / w

    def _stop_short(self, time: float) -> None:
        """End the present motion before the output comes to where the loop cannot hold it, and say so."""
        clock, _ = self._active(time)
        if time >= clock.end:
            return
        self.hold(time)
        self._note = f"stopped short of the goal: {self._growth.words()}"

    def _give_up(self, why: str, for_good: bool = True) -> None:
        """Let the actuators hold by their impedances from now on, which needs no state, and say why."""
        self._given_up, self._in_time_since, self._given_up_for_good = why, np.inf, for_good
        self._note = f"braked, and held by the actuators' impedances alone: {why}"
        self._stuck = self._more_late = 0.0  # nothing measures while nothing is commanded
        self._bound_for = self._goal if isinstance(self._motions[-1][1].motion, OnlineMotion) else None
        self._version += 1

    def hold(self, now: float) -> None:
        self._bound_for = None
        super().hold(now)

    def _impedance_command(self, time: float, acts: float, q: Array, v: Array) -> Command:
        """Actuators that brake and stay; the reference stays where the output is, and what asks for more is refused.

        Where the delay of commands was the reason, and it has gone for `FORGETTING`, the loop takes over again, and the
        output goes on to where it was bound for.
        """
        gains, last = self._impedance, self._last_command
        assert gains is not None
        if last is None:
            here = q[self.equations.drive_q].copy()
            last = Command("impedance", self.names, self._growth.held, here, 0.0 * here, gains.stiffness, gains.damping)
            self._last_command, self._last_time, self._last_acts = last, time, acts
        tracker = self._hold_tracker(RobotState(q=q, v=v))
        self._motions = [(PathClock(time, 0.0), tracker)]
        self._goal = self._bound_for or self._reference(tracker, Progress(0.0, 0.0, 0.0)).pose
        self._anew, blind = True, self.blind
        command = self._braking_command(time, acts)
        self.blind = blind
        if not self._settled.needed:
            self._growth.watch(time, q, self._growth.held, 0.0)
        if self._growth.beyond or self._given_up_for_good:
            self._in_time_since = np.inf
        else:
            self._in_time_since = min(self._in_time_since, time)
            if time - self._in_time_since > FORGETTING:
                self._given_up = self._note = ""
        return command

    def _begin_anew(self, time: float, q: Array, v: Array) -> None:
        """After impedances have held the output: what was stated before says nothing any more."""
        self._anew = False
        self.equations.update(q, v)
        self._begin_stretch(q, v)
        self._pending.clear()
        self._answer.forget()
        self._more_late, self._rate_seen = 0.0, None
        self._last_time = self._last_acts = time - self.period
        self._timing.begin_anew()
        if self._bound_for is None or self._phase == "stopped":
            return
        self._at = q
        try:
            self.begin(time, self.plan_goal(time, PoseGoal(*self._bound_for, self.robot.output)))
        except TensegrityError as error:
            self._note = f"stays where impedances held it: {error}"
            self._goal = self._reference(self._motions[-1][1], Progress(0.0, 0.0, 0.0)).pose

    def _apply_force(self) -> None:
        """Put the known loads and the force that was learned, at the output, into the equations."""
        arrays, work = self.equations.arrays, self.equations.work
        force = self._none if self._settled.needed else self._learned.force  # that acts on the actuators, see `_settle`
        self._learned.apply(
            self.loads, self.equations.parts.body, arrays.position, work.position, force, arrays.selection, work.load
        )

    def acted(self, stamp: float, begin: float) -> None:
        self._pending.acted(stamp, begin)

    def _blind_command(self, time: float) -> Command:
        """Without a state: the last command goes on as it was."""
        last = self._last_command
        if last is None:
            raise TensegrityError("the controller has had no state since its reset; there is nothing to go on with.")
        if last.position is None or last.velocity is None:
            return last
        return replace(last, position=last.position + (time - self._last_time) * last.velocity)

    def _braking_command(self, time: float, acts: float) -> Command:
        """For a state so old that the actuators have begun to brake since then: they go on with that.

        Late feedback destroys, missing feedback does not: the next state that is fresh finds them near where they are.
        """
        self.blind += 1
        self._rate_seen = None
        last = self._last_command
        assert last is not None
        if last.position is None or last.velocity is None:
            return self._blind_command(time)
        began = self._last_acts
        gone, pace = self._pending.gone(acts - began)
        position = last.position + (began - self._last_time + gone) * last.velocity
        return replace(last, position=position - (acts - time) * pace * last.velocity, velocity=pace * last.velocity)

    def _made(self, q: Array, v: Array, time: float, acts: float, solution: MotionSolution, more: Array) -> Command:
        """A solution and `more` (a,) efforts as a command from `acts` [s] on, for the state seen at `time`."""
        moved, gains, lasts = self._stretch.moved, self._impedance, self._timing.held
        elapsed = self._timing.elapsed
        effort, position, rate, left, commanded_position, commanded_rate = np.empty((6, more.size))
        before = self._pending.commanded(time, acts) if acts > time else None
        self._set_points(
            q, v, self.equations.drive_q, self.equations.parts.drive, moved, gains is not None, solution.actuator,
            lasts, acts - time, CORRECTED * elapsed / (elapsed + acts - time), self._sticks, self._reach,
            before is not None, *(before or (position, rate, position, rate)), solution.effort, more, self._effort,
            position, rate, left, commanded_position, commanded_rate, effort,
        )  # fmt: skip
        self.solution = MotionSolution(effort, *solution[1:])
        self._pending.send(Sent(acts, lasts, solution.motion, position, rate, left, time))
        if gains is None:
            return Command(self.output_mode, self.names, effort)
        return Command(
            "impedance", self.names, effort, commanded_position, commanded_rate, gains.stiffness, gains.damping
        )

    def _watch_tensions(self, time: float, acts: float) -> None:
        """Keep in mind by how much the tensions seen at `time` [s] were below those commanded for then."""
        timing = self._timing
        late = max(acts - time, DELAYED * self.period)  # a delay may be unreported
        self.bounds.watch(time, acts, late + timing.held, timing.elapsed, self._stretch)

    def _set_tensions(self, left: float) -> None:
        """Floors and desired tensions, with that part of their transition from the start still to come."""
        self.bounds.fill(self._gains["floor_margin"], self._gains["level"], left)

    def _set_bounds(self, time: float, q: Array, v: Array) -> None:
        """Bounds of this period: tensions on their way up to their floors, efforts, motion of the actuators."""
        program = self.program
        left = remaining((time - self._began_at) / FADE)
        if left > 0.0 or self._bounded is not self._gains:
            self._set_tensions(left)
            self._bounded = self._gains if left == 0.0 else None
        self._at = q
        if self._stiff is not None:
            low = (1.0 + self._gains["floor_margin"]) * self.bounds.floor
            held = self._stiff.tensions(time, q, low, program.tension_high)
            program.desired_tension[:] = held + left * (self.bounds.start - held)
        change = math.inf if self._last_effort is None else self._gains["effort_rate"] * self.period
        self._fill_bounds(
            self._effort, self._effort if self._last_effort is None else self._last_effort, change, self._position,
            self._rate, q, v, self.equations.drive_q, self.equations.parts.drive, 2.0 / self._bandwidth,
            self.bounds.low, self.bounds.reserve, program.effort_low, program.effort_high, program.joint_low,
            program.joint_high, program.tension_low, program.tension_high,
        )  # fmt: skip

    def _watch_border(self, time: float, distance: float, rate: Array, w: float) -> None:
        """Let the reference wait for an output that is behind, and give up a goal that cannot be reached.

        The distance is what counts of its errors: where it is ahead, what it is beside its path.

        Where commands come far apart the reference goes as much slower as the loop has become: set points that brake by
        themselves at full speed, and set off again, take tensions below their floors whatever is commanded then.
        How far the output may be behind follows from what its loop affords now. That it is behind is no reason to give
        up, as it may be late for its computer's sake alone: only where a bound presses, or the output stands still.
        """
        clock, _ = self._active(time)
        leash = self.motion_limits[0] / w
        apart = self._timing.latest - SPARED * self.period
        pace, behind = affordable(self.period, apart, self._delayed), 2.0 - distance / leash
        clock.wait(time, min(behind, pace), 1.0 / w if behind < pace else self.brake_time)
        solution = self.solution
        presses = bool(self._guard.reason) or (solution is not None and bool(solution.active))
        if distance >= leash:
            rate = self._weights * rate
        if distance < leash or time >= clock.end or not (
            presses or math.sqrt(rate @ rate) < STANDING * self.motion_limits[0]
        ):  # fmt: skip
            self._stuck = 0.0
            return
        self._stuck += self._timing.elapsed
        if self._stuck < max(STUCK, LAGS / w):
            return
        held = [self._guard.reason] if self._guard.reason else []
        held += [] if solution is None else solution.active
        because = f" ({', '.join(held)})" if held else ""
        position, rotation = self.equations.arrays.position[:3].copy(), self.equations.rotation
        self._note = f"the goal is out of reach: the output stopped where it is{because}"
        still = self._still(position, rotation)  # to press on would not get it any nearer
        self._motions = [(PathClock(time, 0.0), still)]
        self._goal, self._began = (position, self._task.quaternion(rotation)), time
        self._version += 1

    def _impedance_gains(self) -> ImpedanceGains:
        """Of the actuators' loops; where a motion that nothing holds forbids the check of them all, each for itself."""
        index = choose_independent(self.equations.robot, self.equations.parts.drive)
        model = ReducedModel(self.equations.robot, index, counted=False)
        q, effort = self._equilibrium()
        try:
            return impedance_gains(model, q, effort)
        except InfeasibleControlError:
            _, inertia = driven_rows(model, q)
            cables = cable_stiffness(model, q)
            stiffness = np.where(cables > 0.0, CABLE_SHARE * cables, inertia * (RATE_SHARE / INNER_PERIOD) ** 2)
            return ImpedanceGains(stiffness, np.sqrt((stiffness + cables) * inertia), 0, INNER_PERIOD, 0.0)

    def _equilibrium(self) -> tuple[Array, Array]:
        """q (nq,) and efforts (a,) of the shape at rest with the actuators as the file has them."""
        joints = self.equations.model.driven_joints(self.robot.actuators)
        try:
            shape = MechanismEquilibriumSolver(self.equations.mechanism, joints).solve(
                self.robot.model.initial_configuration
            )
        except NoEquilibriumError:
            return np.array(self.robot.model.initial_configuration), np.zeros(len(joints))
        self._stands = shape.stable
        return shape.q, shape.effort[self.equations.parts.drive]

    # -- what it says -----------------------------------------------------------------------------------------------

    def status(self, time: float) -> Status:
        return replace(super().status(time), relaxed=self.relaxed())

    def relaxed(self) -> tuple[str, ...]:
        """What the last period gave up, by name; empty where all was met."""
        found = [each for each in (self._note, self._guard.reason) if each]
        solution = self.solution
        if solution is not None:
            found += [f"{what} by {by:.3g}" for what, by in solution.broken]
            found += [] if self._stiff is None else self._stiff.relaxed()
            if solution.active:
                missing = float(np.linalg.norm(solution.missing))
                found.append(f"tracking by {missing:.3g} m/s^2: {', '.join(solution.active)}")
        return tuple(found)

    @property
    def singularity_distance(self) -> float:
        """Of `singularity_guard`, in parts of that at the start."""
        return self._guard.distance

    def diagnostics(self) -> dict[str, str]:
        values = {"blind_periods": str(self.blind), "infeasible_programs": str(self.program.infeasible)}
        values["unsolved_programs"] = str(self.program.failed)
        if self._more_late > 0.0:
            values["unreported_delay"] = f"{1e3 * self._more_late:.3g} ms, found from how motion answers to commands"
        given = self.relaxed()
        if given:
            values["relaxed"] = "; ".join(given)
        return values

    # -- limits -----------------------------------------------------------------------------------------------------

    @property
    def _least_duration(self) -> float:
        calm = CALM * 2.0 * math.pi / self._settled.frequency if self._settled.needed else 0.0
        return max(LEAST_DURATION / self._bandwidth, 20.0 * self.period, calm)

    def _check_turns(self) -> None:
        """Raise TensegrityError where the actuators do not turn the output about an axis that it controls."""
        arrays, output = self.equations.arrays, self.robot.output
        size = np.sqrt(np.diagonal(arrays.mobility))
        reached = np.linalg.norm(arrays.output_1, axis=1) / np.where(size > 0.0, size, np.inf)
        idle = [k for k in self._task.turn_rows if not reached[k] > UNMOVED * float(np.max(reached))]
        if idle:
            axes = ", ".join(output.controlled[k] for k in idle)  # type: ignore[union-attr]
            raise TensegrityError(
                f"output {output.name} controls {axes}, about which no actuator turns it at its start; "  # type: ignore[union-attr]
                "name the axes without."
            )

    def _set_output_limits(self) -> None:
        """Rates and accelerations of the output that the actuators allow at the last state, and what a radian counts.

        Positions and turns have limits of their own; where both are controlled, a turn counts as what takes the
        actuators as long.
        """
        task = self._task
        both = [self._output_limits(rows) if rows.size else None for rows in (task.translation_rows, task.turn_rows)]
        translations, turns = both
        self.motion_limits = translations or turns or self.motion_limits
        self._turn_limits = turns or self._turn_limits
        self._fastest = np.where(self._rows < 3, self.motion_limits[0], self._turn_limits[0])
        if translations and turns:
            self._weights[task.turn_rows] = translations[0] / turns[0]

    def _output_limits(self, rows: NDArray[np.int64]) -> Limits:
        """m/s and m/s^2, or rad/s and rad/s^2, of some rows that rates and efforts allow, with a margin."""
        arrays = self.equations.arrays
        self._guard.refuse_singular()
        size = np.sqrt(np.diagonal(arrays.mobility))  # rows of one unit, so that small ones are not taken for nothing
        needed = self._efforts_for(arrays.output_1 / size[:, None]) / size
        needed = needed[:, rows]
        turned = arrays.joint_1 @ needed  # and what the actuators turn for it
        # goals go as fast as the motors are against what they hold now
        held = np.zeros_like(self._rate) if self._last_effort is None else self._last_effort
        able = self.motors.rates(np.abs(held), np.ones_like(held))
        able = np.maximum(np.minimum(self._rate, able), STALLED * self._rate)
        speeds = able / np.maximum(np.linalg.norm(turned, axis=1), 1e-9)
        slowest = int(np.argmin(speeds))
        speed, motor = float(speeds[slowest]), self.robot.actuators[slowest].motor
        if motor is not None and able[slowest] < self._rate[slowest]:
            self._limited_by = f"{motor.name} of {self.names[slowest]} allows"
        strength = float(np.min(self._effort / np.maximum(np.linalg.norm(needed, axis=1), 1e-9)))
        rate = self.rate_margin * speed / SHARED
        pace = min(self._bandwidth, self._settled.frequency if self._settled.needed else np.inf)
        return rate, min(0.2 * strength, rate * pace / LAGS**2)

    def _efforts_for(self, output: Array) -> Array:
        """(a, k) efforts that move the output by what efforts do to it, (k, a), and by nothing else: the least ones, or
        those with which joints move least where motors drive more of them than the output takes, see `free_motions`."""
        arrays = self.equations.arrays
        if not self._free.driven or output.shape[0] >= output.shape[1]:
            return np.asarray(np.linalg.pinv(output, rcond=1e-3))
        _, size, efforts = np.linalg.svd(arrays.joint_1)
        easy = efforts.T / np.maximum(size, 1e-6 * size[0])  # efforts that move the joints by one
        return np.asarray(easy @ np.linalg.pinv(output @ easy, rcond=1e-3))


def _is_finite(state: RobotState | None) -> bool:
    """Whether there are q and v, all of it finite: what is not would stay in everything that the control remembers."""
    if state is None or state.q is None or state.v is None:
        return False
    return math.isfinite(float(np.sum(state.q)) + float(np.sum(state.v)) + state.age)
