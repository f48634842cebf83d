"""Torque control without a plan: one quadratic program in every control period (`qp`).

Each period linearises the state in the middle of the interval for which the command will be held (`tight_cables`) and
solves for the efforts (`motion_program`). The desired acceleration of the output is that of the reference plus a
proportional-derivative correction (`output_task`, also for rotations),

    y'' = y_r'' + 2 w (y_r' - y') + w^2 (y_r - y),   f' = w_d L (y'' measured - y'' predicted)

The model error is learned as a force f at the output (W f of 000, 1.2.31), or a moment where the output rotates, with
the inertia L of the output.
Motions that the output leaves free are damped. Tensions, efforts, effort rates, actuator positions and actuator rates
keep their bounds. The bandwidth w follows from the period and the cables, see `bandwidth_of`. The reference begins to
move one period after a goal, from its present motion (`online`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar

import numpy as np

from tensegrity_dynamics.command_streams import FRESHNESS
from tensegrity_dynamics.errors import InfeasibleControlError, NoEquilibriumError, TensegrityError
from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables
from tensegrity_dynamics.mechanisms.loads import Payload
from tensegrity_dynamics.mechanisms.simulation.mechanism_simulator import load_array
from tensegrity_dynamics.mechanisms.statics.equilibrium_solver import MechanismEquilibriumSolver
from tensegrity_dynamics.numerics.compilation import QuickCall
from tensegrity_dynamics.numerics.rotations import (
    matrix_from_quaternion,
    matrix_from_vector,
    quaternion_from_matrix,
    rotation_vector,
)
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.output_frame import Pose
from tensegrity_dynamics.robots.robot import Robot

from ...controller import (
    STIFFNESS_SETTINGS,
    Accepted,
    Command,
    ControlPeriod,
    Reference,
    RobotState,
    Setting,
)
from ...inverse_kinematics.pose_goal import PoseGoal
from ...motion_planning.impedance_gains import ImpedanceGains
from ...motion_planning.stiffness_choice import HeldStiffness
from ...optimization.motion_program import TENSION_WEIGHT, MotionProgram, MotionSolution, fill_bounds
from ...optimization.solvers import DEFAULT_SOLVER
from ...trajectories.online import OnlineMotion
from ...trajectories.splines import PiecewisePolynomial
from ...trajectories.time_scaling import PathClock, Progress
from ..goal_controller import GoalPath, PlannedMotion, RestPoint, check_ranges, check_settings
from ..sampled_controller import SampledController
from .actuation.cable_stretch import CableStretch
from .actuation.gear_losses import GearLosses
from .actuation.rubbing_joints import RubbingJoints
from .actuation.set_point_offset import SetPointOffset
from .actuation.set_points import CORRECTED, fill_set_points
from .actuation.tension_bounds import FADE, TensionBounds
from .borders.actuator_border import ActuatorBorder
from .borders.goal_reach import shapes_towards
from .borders.obstacle_watch import ObstacleWatch
from .borders.rate_authority import RateAuthority
from .borders.singularity_guard import SingularityGuard
from .free_motions import FreeMotions
from .goal_equilibria import GoalEquilibria
from .held_growth import LONGEST_PERIOD, SHORTEST_PERIOD, HeldGrowth, longest_period
from .impedance_hold import ImpedanceHold, impedances_at_rest
from .learned_force import LearnedForce
from .output_limits import SHARED, OutputLimits
from .output_task import OutputPath, OutputTask, measure_errors
from .settled_output import SettledOutput
from .timing.answer_delay import AnswerDelay
from .timing.command_timing import CommandTiming
from .timing.last_command import LastCommand
from .timing.loop_bandwidth import DELAYED, LAGS, ON_SERVOS, affordable, bandwidth_of
from .timing.pending_commands import PendingCommands, Sent
from .timing.sampled_velocity import SampledVelocity
from .timing.state_prediction import StatePrediction

OLDEST = 6.0
"""Age of a state in periods beyond which it is not answered; the actuators then continue with the last command."""
SPARED = 1.0
"""Periods beyond its own between two commands up to which the reference keeps its pace. In real time a command is often
one period late, which the loop tolerates by design."""
MISSED = 1.5
"""Periods between two commands above which one counts as missing."""
STUCK = 1.0
"""Time at the border of the reachable region after which the goal is given up [s]."""
RESUMES = 2.0
"""Time in which a reference that slowed down before tension floors would regain its full pace [s]."""
STANDING = 0.02
"""Fraction of the output's largest speed below which it counts as standing."""
FASTEST = 0.6
"""Fraction of its rate limit at which an actuator slows the reference down."""
LEAST_PACE = 0.1
"""Pace from which a reference that stands begins anew."""
LOST = 0.25
"""Distance between output and reference at which control is aborted [m]."""
LOST_TURN = 0.8
"""Rotation between output and reference at which control is aborted [rad]."""
OFF = 5.0
"""Multiple of the tolerated lag of the output (`_watch_border`) above which impedances hold it instead."""
TRIED_PERIODS = (LONGEST_PERIOD, 0.5 * LONGEST_PERIOD, 2.0 * SHORTEST_PERIOD, SHORTEST_PERIOD)
"""Control periods [s] that are tried for a robot whose period is not given."""
DEPARTS = 0.15
"""Time from the start of a motion from rest, in which friction and acceleration change the efforts in one step while
the pose hardly changes [s]. The trend of the growth rate is that of the efforts then, and does not count."""
LEAST_DURATION = 3.0
"""Least duration of a motion, in time constants of the output's loop."""
CALM = 2.0
"""Least duration of a motion, in periods of the slowest oscillation, of an output that springs carry."""
LEADING_TENSION_WEIGHT = 1e-6
"""Weight of tension errors where free motions follow shapes at rest. `TENSION_WEIGHT` would hold the tensions and
neglect the posture."""
WITHOUT_FLOOR = 0.1
"""Fraction of its initial tension that a cable keeps where no floor is given. This control needs tight cables."""


class QPController(SampledController):
    """Controller `qp`; see the module.

    Args:
        robot: mechanism with actuators and an output, of which positions, rotations or both are controlled.
        period, rate_margin, brake_time: see `SampledController`.
        bandwidth: w [1/s]; 0 takes that of `bandwidth_of`. A higher one follows more closely and tolerates less delay.
        damping: of the motions that the output leaves free [1/s]. More stops them sooner and changes tensions more.
        learning: w_d as a fraction of w, the rate at which the unknown force is learned; 0 for never.
        floor: least tension of every driven cable [N]; 0 takes the robot's own (`minimum_tension`), or `WITHOUT_FLOOR`
            of the initial tension for cables without one.
        ceiling: largest tension of every driven cable [N]; 0 for none.
        level: desired tension of every driven cable [N] where the motion leaves it free; 0 takes the initial tensions,
            at least what `tension_bounds.TENSION_LEVEL` gives.
        floor_margin: fraction of the floor that is kept as a reserve for the time between two commands. The reserve
            grows by the shortfall of measured tensions.
        effort_rate: largest change of efforts per second, as a fraction of their limits.
        stiffness: of the output [N/m] along stiffness_x, _y, _z (world, of any length). The self-stress is chosen such
            that it is held while the pose moves; 0 leaves it free. A stiffness that cannot be reached is refused.
        singularity: least distance of the output to singular positions, relative to the initial one
            (`singularity_guard`); 0 for none.
        actuation: "impedance" or "effort", see `SampledController`. solver: of `optimization.solvers`.

    Attributes:
        solution: of the last period, see `MotionSolution`; None before the first.
        loads: external, as `load_array` makes them. limits: of the output's rates and accelerations, `OutputLimits`.
        bounds: present bounds of the cable tensions, see `TensionBounds`.

    Raises:
        TensegrityError: a parameter is out of range, or a property of the robot, which is named, prevents this control.
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
        period = float(period)  # compiled functions are specialised on the types of their first call
        super().__init__(robot, period=period, rate_margin=rate_margin, brake_time=brake_time, actuation=actuation)
        self.equations = TightCables(robot, slides=True)
        self.program = MotionProgram(self.equations, solver)
        self._rows, self._task = self.equations.parts.axes, OutputTask(robot.output)  # type: ignore[arg-type]
        self.free_motions = FreeMotions(self.program)
        self.limits = OutputLimits(self.equations, self._task, self.free_motions, rate_margin)
        self._own_floor = self.equations.floors
        self._at_border = False
        self.border, self._no_acceleration = ActuatorBorder(self.equations), np.zeros(len(robot.actuators))
        self._beyond = 0.5 * self.border.kept  # the program's bounds lie between the border and the ends
        self._rate = np.array([each.rate for each in robot.actuators])
        self._effort = np.array([each.effort for each in robot.actuators])
        self._rates = RateAuthority(self.equations, self._rate)
        self._oldest = (OLDEST + 1e-5) * period
        self._sticks = robot.driven_by_servos
        self._delayed = ON_SERVOS if self._sticks else DELAYED
        self._automatic = bandwidth_of(self.equations, period, self._delayed)
        self.guard = SingularityGuard(self.equations, self._effort, self._own_floor, singularity, self._rates)
        self.growth = HeldGrowth(self.equations, self._effort)
        self._settled, self._gears = SettledOutput(self.equations), GearLosses(self.equations)
        self._equilibria = GoalEquilibria(self.equations)
        self._leads = False  # whether free motions follow shapes at rest
        self._gains = {
            "bandwidth": bandwidth, "damping": damping, "learning": learning, "floor": floor, "ceiling": ceiling,
            "level": level, "floor_margin": floor_margin, "effort_rate": effort_rate, "stiffness": stiffness,
            "stiffness_x": stiffness_x, "stiffness_y": stiffness_y, "stiffness_z": stiffness_z,
            "singularity": singularity,
        }  # fmt: skip
        self.bounds = TensionBounds(self.program, self._own_floor)
        self._at = self._equilibrium()[0] if stiffness > 0.0 else np.array(robot.model.initial_configuration)
        self._stiff: HeldStiffness | None = None
        self.solution: MotionSolution | None = None
        self.set_gains(**self._gains)
        self.stretch = CableStretch(self.equations, period, impedance=actuation == "impedance")
        self._timing = CommandTiming(period, self._oldest)
        self._pending = PendingCommands(self.lead)
        self._last = LastCommand(self._pending)
        self._prediction = StatePrediction(self.equations, self._settled, self._pending, actuation == "impedance")
        self._learned = LearnedForce(self._rows.size)
        self._sampled = SampledVelocity(robot.mechanism)
        self._fill_bounds, self._measure_errors = QuickCall(fill_bounds), QuickCall(measure_errors)
        self._none, self._still_turn = np.zeros(self._rows.size), np.zeros(3)
        self._set_points = QuickCall(fill_set_points)
        self.loads = np.array(self.equations.work.load)
        self._rate_seen: Array | None = None
        self._last_effort: Array | None = None
        self._stuck, self._note = 0.0, ""
        self._obstacle, self._rubbing = ObstacleWatch(self._learned.force, self._oldest), RubbingJoints(self.equations)
        self._answer, self._more_late = AnswerDelay(self._rows.size), 0.0
        self._planned = np.zeros(self._rows.size)
        self._retreat = ImpedanceHold()
        self._seen_at, self._departed = 0.0, -math.inf
        self._period_caution = ""
        self._bounded: dict[str, float] | None = None  # gains whose tension bounds stay valid
        self._stands = False  # whether actuators that hold their positions hold the robot at rest
        self._impedance: ImpedanceGains | None = None
        self._offset: SetPointOffset | None = None
        self._reach = np.full_like(self._effort, math.inf)  # where the effort bounds equal the full capability
        if actuation == "impedance":
            self._impedance, with_cables = impedances_at_rest(self.equations, *self._equilibrium())
            self._reach = self._effort / self._impedance.stiffness
            if not self._sticks:  # the offset of a geared servo is its friction
                self.growth.stiffness = with_cables
                self._offset = SetPointOffset(self.equations, self.stretch, self.growth, self._impedance.stiffness)

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
                    f"the tension floor of cable {name} with its margin ({least:.4g} N) is above its tension ceiling "
                    f"of {ceiling:.4g} N; raise the ceiling or lower the floor."
                )
        stiff = self._stiffness_of(gains, (1.0 + gains["floor_margin"]) * floor, ceiling)
        self._stiff, self._gains = stiff, gains
        self.bounds.floor = np.asarray(floor, dtype=np.float64)
        self._bandwidth = gains["bandwidth"] or self._automatic
        self.program.tension_high[:] = ceiling
        self.growth.allowed = HeldGrowth.designed(self.period, self._bandwidth)
        self._fold = 0.0
        self.guard.margin, self.guard.reserve.floor = gains["singularity"], self.bounds.floor
        self.guard.headroom.low = (1.0 + gains["floor_margin"]) * self.bounds.floor

    def _stiffness_of(self, gains: dict[str, float], low: Array, ceiling: float) -> HeldStiffness | None:
        """Tension choice that holds the requested stiffness. Raises TensegrityError where it cannot be reached here."""
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
        """Set the known loads, as `Simulation.apply_forces` takes them: W f of 000 (1.2.31), (3.2.8)."""
        self.loads = load_array(self.robot.mechanism, forces)
        self.equations.work.load[:] = self.loads

    def carry(self, payloads: Sequence[Payload]) -> None:
        """Set known payloads beyond those of the robot file, from the next command on. Efforts follow within
        `effort_rate`. A learned force stays and is unlearned where it was caused by these payloads."""
        self.equations.carry(tuple(payloads))
        self._equilibria.carry(payloads)

    # -- interface of GoalController ---------------------------------------------------------------------------------

    def reset(self, time: float, state: RobotState | None = None) -> None:
        if state is None or state.q is None:
            raise TensegrityError("this controller needs q and v in structure_state; is the robot a mechanism?")
        self.refuse_other_state(state)
        q = np.array(state.q, dtype=np.float64)
        v = np.zeros(self.robot.mechanism.velocity_count) if state.v is None else np.array(state.v)
        self.equations.update(q, v)
        self._take_start()
        self._refuse_slack()
        self._begin_stretch(q, v)
        self._at, self._stiff, self.solution = q, None, None
        self.set_gains()
        self._began_at, self._departed = time, -math.inf
        self._last.forget(time)
        self.bounds.begin()
        self._learned.force[:] = 0.0
        self._sampled.forget()
        self._rate_seen = self._last_effort = self.solution = None
        self._pending.clear()
        self.equations.softness[:] = 1.0
        self._stuck, self._note, self._bounded = 0.0, "", None
        self._obstacle.begin()
        self._timing.forget_latencies()
        self._answer.forget()
        self._more_late, self._seen_at = 0.0, time
        self._retreat.clear()
        self.equations.work.load[:] = self.loads
        self.equations.slide(q, 0.0 * v)
        growth = self.growth
        growth.affords = HeldGrowth.afforded(self.period, 0.0, self._bandwidth)
        self._begin_growth(q)
        growth.refuse(self.period)
        self._begin_free(q, growth.affords)
        self.equations.update(q, v)
        self._rubbing.begin(q, self.growth.directions)
        self._period_caution = self._caution(self._rate_for_period)
        super().reset(time, state)

    def _take_start(self) -> None:
        """Take the initial tensions, and the floors of cables without one, from the last `equations.update`."""
        self.bounds.start = start = self.equations.tension
        self._own_floor = np.where(self.equations.floors > 0.0, self.equations.floors, WITHOUT_FLOOR * start)
        self._equilibria.begin(self._own_floor)

    def _begin_growth(self, q: Array) -> None:
        """Find how fast the output diverges from rest at q (nq,). Raises TensegrityError where no effort holds it
        there."""
        settled, growth = self._settled, self.growth
        settled.begin(q, self.bounds.start)
        self.equations.update(q, np.zeros(self.robot.mechanism.velocity_count), held=self.period)
        if settled.needed:
            settled.write()
        self._find_limits()
        self.guard.begin()
        self.guard.reserve.refuse()
        if settled.needed:
            growth.rate = growth.bare = settled.growth
            growth.held = settled.effort
        else:
            keeps_floors, held = self.guard.reserve.effort(), growth.holding(self.bounds.start)
            self.guard.reserve.refuse_start(held)
            growth.begin(q, (held, keeps_floors))  # tensions start from the initial ones

    def _begin_free(self, q: Array, allowed: float) -> None:
        """Start the free motions at q (nq,); between two commands they may diverge with `allowed` 1/s."""
        self._set_tensions(0.0)
        held, follows = None if self._stands else self.growth.held, not self._settled.needed
        routed = len(self.equations.parts.strands) > 0
        if follows:
            always = routed or self.free_motions.driven
            self.free_motions.begin(q, self._gains["damping"], self._bandwidth, held, allowed, always=always)
        else:
            self.free_motions.stiffness = self.free_motions.between = 0.0
        # routed cables: the posture is held against tensions, which are large relative to the inertia of light robots
        self._leads = routed and self.free_motions.stiffness > 0.0
        self.program.tension_weight = LEADING_TENSION_WEIGHT if self._leads else TENSION_WEIGHT

    @classmethod
    def period_for(cls, robot: Robot) -> ControlPeriod:
        """Longest period at which the loop holds this robot at rest in its initial shape and at the stops of its tour,
        see `held_growth`.

        A robot that is refused at a long period may be held at a shorter one. For a robot that is refused at every
        period this is the longest one; the controller then reports the reason.
        """
        for period in TRIED_PERIODS:
            try:
                control, rate = cls._begun(robot, period)
            except TensegrityError:
                continue
            falls = f"diverges from rest with up to {rate:.3g} 1/s" if round(rate, 3) > 0.0 else "does not diverge"
            return ControlPeriod(min(period, control._fitting(rate)), f"under a held command {robot.name} {falls}")
        return ControlPeriod(LONGEST_PERIOD, "usual for this controller")

    @classmethod
    def caution_for(cls, robot: Robot, period: float) -> str:
        try:
            control, rate = cls._begun(robot, period)
        except TensegrityError:  # said by `reset`
            return ""
        return control._caution(rate)

    @classmethod
    def _begun(cls, robot: Robot, period: float) -> tuple[QPController, float]:
        """A controller of this period [s] with the robot at rest in its initial shape, and the rate [1/s] that its
        period is chosen for. The equations are at that shape. Raises TensegrityError where it is refused."""
        control = cls(robot, period=period)
        q, _ = control._equilibrium()
        still = np.zeros(robot.mechanism.velocity_count)
        control.equations.update(q, still)
        control._take_start()
        control.set_gains()
        control._begin_growth(q)
        control._begin_free(q, math.inf)
        rate = max(control._rate_for_period, control._rate_on_tour(q))
        control.equations.update(q, still)
        return control, rate

    def _rate_on_tour(self, q: Array) -> float:
        """Largest growth rate [1/s] at the stops of the robot's tour, as far as straight lines from the pose at rest
        lead there. It ends motions, and a robot should get to its own goals."""
        here, found = self._poses.update(q).output(self.robot.output)[0], 0.0  # type: ignore[arg-type]
        for stop in () if self._settled.needed else self.robot.tour:
            turned = matrix_from_vector(np.array(stop.turn)) @ matrix_from_quaternion(here[1])
            goal = here[0] + np.array(stop.move), quaternion_from_matrix(turned)
            for part, shape in shapes_towards(self.equations, q, goal):
                if part == 1.0:
                    with suppress(InfeasibleControlError):  # singular there: the goal will be refused
                        found = max(found, self.growth.rate_at(shape, self.growth.holding(self.bounds.start)))
        return found

    @property
    def _rate_for_period(self) -> float:
        return max(self.growth.for_period, self.free_motions.between)

    def _fitting(self, rate: float) -> float:
        """Longest control period [s] for a rate [1/s], at the state of the equations."""
        return longest_period(rate, partial(bandwidth_of, self.equations, delayed=self._delayed))

    def _caution(self, rate: float) -> str:
        """What `caution_for` says for a rate [1/s], at the state of the equations."""
        fits = self._fitting(rate)
        if not rate > 0.0 or self.period <= fits or fits == LONGEST_PERIOD:
            return ""
        return (
            f"a control period of {1e3 * self.period:g} ms leaves too little margin for late commands: under a held "
            f"command {self.robot.name} diverges from rest with up to {rate:.3g} 1/s; take {1e3 * fits:g} ms"
        )

    def _refuse_slack(self) -> None:
        """Raise TensegrityError where cables are slack: the length to reel in is unknown."""
        slack = [
            name for name, pull in zip(self.equations.cables, self.bounds.start.tolist(), strict=True) if not pull > 0.0
        ]
        if slack:
            raise TensegrityError(
                f"cables of {self.robot.name} are slack: {', '.join(slack)}. This control begins with all of them "
                "tight; tighten them first (strain in the robot file, or the controller joint_position)."
            )

    def _begin_stretch(self, q: Array, v: Array) -> None:
        """Initialise the stretch of the cables from a state."""
        self.stretch.begin(q, v)
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
        position = np.array(self.equations.arrays.position[:3])  # axes that are not controlled keep their position
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
            (rates[:, :count], self.limits.motion, "m/s"), (rates[:, count:], self.limits.turn, "rad/s"),
        ):  # fmt: skip
            speed = float(np.max(np.linalg.norm(part, axis=1), initial=0.0))
            allowed = SHARED * limit / self.rate_margin
            if speed > allowed:
                raise InfeasibleControlError(
                    f"the path moves the output at {speed:.3g} {unit}; {self.limits.words} about "
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
        """Motion of the reference to a goal, from its present motion; see `GoalController.plan_goal`.

        Args:
            equilibria: of `equilibria_to`; None: computed here where needed.
        """
        self.check_goal(duration, profile)
        if self._retreat.reason and self.growth.beyond:
            why = self._retreat.reason
            raise InfeasibleControlError(f"the output is held by the actuators' impedances alone: {why}.")
        if equilibria is None and self.needs_equilibria:
            equilibria = self.equilibria_to(goal)
        clock, tracker = self.motion_at(now)
        progress = clock.at(now)
        if not clock.brakes:  # waits for the robot, or before a fold, end with a motion; goals of a stream would add up
            progress = progress._replace(change=0.0)
        start, rotation = self._held_start() or tracker.begun_anew(tracker.values(progress))
        end = self._task.coordinates(goal.position, matrix_from_quaternion(goal.quaternion), rotation)
        motion = self._task.motion(
            start, end, self.limits.motion, self.limits.turn, duration, self._least_duration, self.brake_time
        )
        note = ""
        if motion.asked_too_short:
            note = f"{duration:.3g} s requested, {motion.end:.3g} s needed by the limits of speed and acceleration"
        slow = ""
        if axes := self.guard.slow_axes():
            slow = f"near a singularity: the actuators hardly move the output along {' and '.join(axes)}"
        if motion.end > self.longest:
            raise InfeasibleControlError(
                f"the motion would take {motion.end:.3g} s, above {self.longest:g} s, for the limits of speed and "
                f"acceleration{f' ({slow})' if slow else ''}; move the robot to a configuration where its actuators "
                "move the output faster (controller joint_position), or go in several steps."
            )
        note = "; ".join(filter(None, (note, slow)))
        path = OutputPath(motion, rotation, tracker.translations, equilibria or None)
        return PlannedMotion(path, path.duration, note, self._end_pose(path, goal), self._version)

    @property
    def needs_equilibria(self) -> bool:
        """Whether free motions, springs or routed cables limit which goals can be held, see `equilibria_to`."""
        return self._leads or self._settled.needed or len(self.equations.parts.strands) > 0

    def equilibria_to(self, goal: PoseGoal) -> tuple[Array, Array, Array] | tuple[()]:
        """Shapes at rest along the path to a goal, as `OutputPath` takes them; empty where they are not needed.

        Raises UnreachableGoalError or InfeasibleControlError where no sequence of shapes at rest with tight cables
        leads to a goal: springs do not carry the output there, no tensions hold the free motions, or nothing holds the
        output.
        """
        if not (self._leads or self._settled.needed):
            self._equilibria.refuse(self._at, goal, self.guard.headroom.low)
            return ()
        return self._equilibria.path(self._at, goal)

    def _refuse_faster(self, distance: Array) -> None:
        """Raise InfeasibleControlError where a motion by (m,) ends where the loop cannot hold the output."""
        if self._settled.needed:
            return
        direction, count = np.zeros(self._rows.size), self._task.translations.size
        direction[self._task.translation_rows] = distance[:count]
        if self._task.turns.size:
            direction[self._task.turn_rows] = distance[count:][self._task.turns]
        self.growth.refuse_goal(self._at, direction)

    def _held_start(self) -> tuple[Array, Array] | None:
        """Position and orientation of the output at rest, where it is held away from the reference; else None.

        A motion that began at the position or speed of the reference would be held back again.
        """
        if not (self.guard.reason or self._obstacle.found):
            return None
        rotation = np.array(self.equations.rotation)
        values = self._task.coordinates(self.equations.arrays.position[:3], rotation, rotation)
        return np.stack((values, 0.0 * values, 0.0 * values)), rotation

    def begin(self, now: float, planned: PlannedMotion) -> Accepted:
        """Begin at once where the motion continues that of the reference; else brake first."""
        tracker: OutputPath = planned.tracker
        if not isinstance(tracker.motion, OnlineMotion):
            accepted = super().begin(now, planned)
            self._forget_trouble()
            return accepted
        self._ready()
        if planned.version != self._version:
            raise TensegrityError("another command came while the motion was planned; send it again.")
        motion = tracker.motion
        self._refuse_faster(motion.value(motion.end) - motion.value(motion.start))
        if self._at_border and self.border.is_beyond(self._at, planned.goal, self._version + 1):
            raise InfeasibleControlError(f"the goal is out of reach: {self.border.words}, and the output stands there.")
        self._at_border = False
        self._forget_trouble()
        if now >= self.motion_at(now)[0].end:
            self._departed = now
        self._motions = [(PathClock(now, planned.duration), tracker)]
        self._goal, self._began = planned.goal, now
        self._version += 1
        return Accepted(now + planned.duration, planned.duration, planned.note)

    def _forget_trouble(self) -> None:
        """Forget why the last motion ended or was held back; a new one begins."""
        self._note, self._stuck, self._retreat.reason, self._retreat.goal = "", 0.0, "", None
        self._obstacle.forget()

    # -- control ----------------------------------------------------------------------------------------------------

    def command(self, time: float, state: RobotState | None = None) -> Command:
        """Efforts for one period; without a finite state, those of the last period.

        Raises:
            InfeasibleControlError: the output is far from its reference, so the model does not describe this robot.
            TensegrityError: the state is not of this robot.
        """
        if not _is_finite(state):
            self.blind += 1
            self._rate_seen = None
            return self._last.repeated(time)
        assert state is not None and state.q is not None and state.v is not None
        self.refuse_other_state(state)
        acts = time + max(0.0, state.age) + self._more_late
        since, self._seen_at = max(time - self._seen_at, self.period), time
        if acts - time > self._oldest and self._last.command is not None:
            self.blind += 1
            self._rate_seen = None
            return self._last.braked(time, acts)
        q, v = np.ascontiguousarray(state.q, dtype=np.float64), np.ascontiguousarray(state.v, dtype=np.float64)
        timing = self._timing
        timing.acts_after(acts - time)
        if self._retreat.reason:
            timing.interval(since)
        self.growth.affords = HeldGrowth.afforded(timing.held, timing.usual_latency, self._bandwidth)
        if self.growth.beyond and self._impedance is not None and not self._retreat.reason:
            self._give_up(self.growth.words(), for_good=False)
        if self._retreat.reason:
            return self._impedance_command(time, acts, q, v)
        if self._retreat.ended:
            self._begin_anew(time, q, v)
        self._apply_force()
        clock, tracker = self.motion_at(time)
        if self.waits_for_robot:
            self._wait_for_robot(time, clock)
            clock, tracker = self.motion_at(time)
        timing.came(time - self._last.time)
        if timing.elapsed > MISSED * self.period:  # something else may have moved the actuators
            self._rate_seen = None
        if timing.elapsed > (FRESHNESS if self._impedance is not None else self._oldest):  # the command has expired
            self._begin_stretch(q, v)
            self._pending.clear()
        v = self._sampled.steady(time, q, v, MISSED * self.period, self._bandwidth)
        before = q, v
        q, v, changed = self._prediction.at(q, v, time, acts)
        if self._last_effort is not None:
            starts = time <= max(self._began_at + FADE, self._departed + DEPARTS)  # only efforts change it, no pose
            ahead = 0.0 if starts else self.brake_time
            ahead = ahead if tracker.shapes is None else 0.0  # its motion is known, extrapolation is less accurate
            if self._settled.needed:
                self._look_where_it_settles(time, q, self._last_effort)
                clock, tracker = self.motion_at(time)
            elif self.growth.watch(time, q, self._last_effort, ahead):
                self._stop_short(time, f"stopped short of the goal: {self.growth.words()}")
                clock, tracker = self.motion_at(time)
        half = 0.5 * self.period
        now, then = clock.at(acts), clock.at(acts + half)
        here = tracker.values(now)
        middle = here if then == now else tracker.values(then)
        turn = self._turn_error(q, here, tracker)  # before the equations, which use it to weigh rotations
        here[2] = middle[2]
        arrays = self.equations.update(q, v, half, held=self.period)
        foreseen = self.growth.interval(timing.latest, timing.repeated)
        w = self._bandwidth * affordable(self.period, foreseen, self._delayed, timing.usual_latency)
        w = max(w, self.growth.least_bandwidth(self._bandwidth))
        error, rate, desired = self._task.follow(
            here, arrays.position, arrays.velocity, arrays.selection, turn, w, half
        )  # fmt: skip
        if self._settled.needed:
            error, rate, desired = self._settle(v, error, rate, desired, w)
        rates = self._task.by_row(here[1])
        behind, beside, total = self._measure_errors(self.limits.weights, error, rates)
        if self._is_off(behind, w) and not self.guard.reason:  # an output that is held back on purpose may be far off
            self._give_up(
                "the robot does not respond to commands as its model does, and the output is far from its reference"
            )
            return self._impedance_command(time, acts, *before)
        if not total < min(LOST, LOST_TURN):
            self._check_distance(error)
        brakes = 0.5 * self.brake_time + timing.latest + self.period  # distance to a standstill, over the rate
        coming = self._no_acceleration if self.solution is None else self.solution.actuator
        used = self.border.look(q, v, coming, 2.0 / w, brakes)
        timed = not isinstance(tracker.motion, OnlineMotion)  # trajectories keep the rates that they ask for
        self._watch_border(time, beside, rate, w, 0.0 if timed else max(used, FASTEST * self._fold))
        learning, elapsed = self._gains["learning"] * w, timing.elapsed
        if self._obstacle.look(time, error, rate, total, learning, elapsed, bool(self.guard.reason)):
            self._stop_here(time, ["something holds it back"])
        if self.border.is_near and self._goal is not None:
            self._stop_at_border(time, q, v, self._goal, rates, brakes)
        self._learn(time, rate if changed is None else rate - changed, w)
        effort = None if self.solution is None else self.solution.effort
        if not self._settled.needed:
            in_time = self._bandwidth * affordable(self.period, foreseen, self._delayed)  # limits excite no vibrations
            paced = now.pace == 1.0 or acts >= clock.end
            whole = rates if paced else self._task.by_row(tracker.values(now._replace(pace=1.0))[1])
            desired = self.guard.keep(desired, q, v, half, in_time, self.limits.strongest, effort, whole)
        if self._leads and tracker.shapes is not None:  # free motions and self-stress follow the shapes at rest
            shape, self.bounds.start = tracker.shape(here[0])
            self.free_motions.aim(shape)
            self._bounded = None
        self._set_bounds(time, q, v)
        commanded = self._pending.commanded(time, acts)
        self.equations.see(*before)
        drag = self.free_motions.drag(q, v)
        self.solution = solution = self._solved(desired, drag, before, commanded, acts - time)
        self._fold = (
            self._rates.excess(v, solution.actuator, solution.output, 1.0 / w) if self.guard.margin > 0.0 else 0.0
        )
        self._planned = self._task.by_row(here[2])
        self._answer.record(self.period, self.limits.fastest, solution.output, self._planned)
        self._last_effort = solution.effort
        lasts, carried = timing.held, None
        if self._impedance is not None:  # set points continue at the remaining rate until the next command arrives
            lasts = max(lasts, foreseen)
            carried = self._pending.gone(max(acts - self._last.acts, 0.0))
        more = self.stretch.efforts(q, v, before, solution.tension, self.bounds.floor, timing.elapsed, lasts, carried)
        if self._gears.any:
            moves = self._moves(rates + 0.5 * w * error)
            more += self._gears.more(solution.effort + more, moves[self.equations.parts.drive])
        self.watch_tensions(time, acts)
        command = self._made(*before, time, acts, commanded, solution, more)
        self._last.keep(command, time, acts)
        if self.equations.rubs:
            more = self._moves(self._rubbing.loosening(w) * error)
            self._rubbing.follow(q, self._moves(rates), more, self.growth.directions)
        return command

    def _moves(self, rate: Array) -> Array:
        """(nv,) velocities with which the output moves at a rate (k,)."""
        return self._settled.moves(rate) if self._settled.needed else rate @ self.growth.directions

    def _solved(
        self, desired: Array, drag: Array | None, before: tuple[Array, Array],
        commanded: tuple[Array, Array, Array, Array] | None, late: float,
    ) -> MotionSolution:  # fmt: skip
        """Solution of the program, with efforts for the position at which set points hold the output, where they do.

        Args:
            before: measured q and v. commanded: of `PendingCommands`, None for nothing. late: s until the command acts.
        """
        damping = self._gains["damping"]
        if commanded is None or self._offset is None or self._settled.needed:
            return self.program.solve(desired, damping, drag)
        push = self._offset.push(*before, *commanded[:2], late)
        return self._offset.expected(self.program.solve(desired - push, damping, drag), push)

    def _look_where_it_settles(self, time: float, q: Array, effort: Array) -> None:
        """Find where springs would carry the output; end the motion where the actuators no longer move it."""
        before = self.guard.distance
        self._settled.look(q, effort)
        self.guard.distance = self._settled.distance
        lost = self._settled.lost(self._gains["singularity"], before)
        if lost and time < self.motion_at(time)[0].end:
            self.hold(time)
            self._note = f"stopped short of the goal: {lost}"

    def _settle(self, v: Array, error: Array, rate: Array, desired: Array, w: float) -> tuple[Array, Array, Array]:
        """Errors, rates and accelerations (k,) at the settled output (`settled_output`) for velocity v (nv,); replaces
        the rows of the output in the equations."""
        settled = self._settled
        settled.write(self._learned.force)
        moves, off = settled.rate(v), error - settled.ahead - settled.bias
        return off, moves, desired + 2.0 * w * (rate - moves) + w * w * (off - error)

    def _turn_error(self, q: Array, here: Array, tracker: OutputPath) -> Array:
        """(3,) rotation from the output's orientation at q (nq,) to the reference [rad]; zero where none is
        controlled."""
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

    def _learn(self, time: float, rate: Array, w: float) -> None:
        """Learn the force at the output from its rate (k,) at a time [s] and the commanded accelerations."""
        before, self._rate_seen = self._rate_seen, rate
        if before is None:
            return
        self._watch_answer(rate, before)
        if not self._gains["learning"] > 0.0 or self._obstacle.found:
            return
        if self._settled.needed:
            self._settled.learn(self._gains["learning"] * w, self._timing.elapsed)
        lasts, foreseen = self._pending.rate_change(self._last.time, time) or (0.0, self._none)
        share = min(1.0, self._gains["learning"] * w * self.period)
        mobility, elapsed = self.equations.arrays.mobility, self._timing.elapsed
        if self.equations.rubs:
            self._learned.force -= self._rubbing.learned(share)
        if not self._learned.learn(mobility, rate, before, lasts, foreseen, share / elapsed):
            raise InfeasibleControlError("the actuators cannot move the output in this configuration (singularity).")

    def _watch_answer(self, rate: Array, before: Array) -> None:
        """Check whether the output's rate (k,), which was `before` (k,) at the last state, follows the commands."""
        solution = self.solution
        timing = self._timing
        if timing.elapsed > MISSED * self.period or (solution is not None and (solution.active or solution.broken)):
            self._answer.forget()  # at active bounds actuators do less than was commanded
            return
        expected = round(timing.late / self.period)
        if not self._answer.see(self.period, self.limits.fastest, rate, before, self._planned, expected):
            return
        found = float(self._answer.periods or 0) * self.period
        self._more_late = max(0.0, self._more_late + found - timing.late)
        self._answer.forget()
        if self._impedance is not None and found > self._oldest:
            self._give_up(f"the robot responds to commands only after {1e3 * found:.3g} ms")

    # -- fallback: impedances hold where the loop cannot --------------------------------------------------------------

    def _is_off(self, behind: float, w: float) -> bool:
        """Whether the output is farther from its reference than a loop of bandwidth w should let it be."""
        return self._impedance is not None and behind > OFF * self.limits.motion[0] / w

    def _stop_at_border(self, time: float, q: Array, v: Array, goal: Pose, rate: Array, brakes: float) -> None:
        """End the present motion before an actuator gets to the end of its range, if the goal lies beyond."""
        decided = self.border.is_decided(self._version)
        reached = self.border.is_reached(q, goal, self._version, rate, brakes)
        if not decided:
            self.equations.update(q, v, 0.5 * self.period, held=self.period)
        if reached:
            self._stop_short(time, f"the goal is out of reach: the output stopped where it is ({self.border.words})")
            self._at_border = True

    def _stop_short(self, time: float, note: str) -> None:
        """End the present motion before the output gets to where it cannot be held, and report it by a note."""
        clock, _ = self.motion_at(time)
        if time >= clock.end:
            return
        self.hold(time)
        self._note = note

    def _give_up(self, why: str, for_good: bool = True) -> None:
        """Let the actuators hold by their impedances from now on, which needs no state, and report the reason."""
        goal = self._goal if isinstance(self._motions[-1][1].motion, OnlineMotion) else None
        self._retreat.begin(why, goal, for_good)
        self._note = f"braked, and held by the actuators' impedances alone: {why}"
        self._stuck = self._more_late = 0.0  # without commands nothing is measured
        self._obstacle.unlearn()  # a push that the robot did not stand is over when it goes on
        self._version += 1

    def hold(self, now: float) -> None:
        self._retreat.goal = None
        super().hold(now)

    def _impedance_command(self, time: float, acts: float, q: Array, v: Array) -> Command:
        """Actuators brake and hold. The reference stays at the output, and new goals are refused.

        Where command latency was the reason and has been short for `FORGETTING`, the loop resumes and the motion to the
        goal continues.
        """
        gains = self._impedance
        assert gains is not None
        if self._last.command is None:
            here = q[self.equations.drive_q].copy()
            held = Command("impedance", self.names, self.growth.held, here, 0.0 * here, gains.stiffness, gains.damping)
            self._last.keep(held, time, acts)
        tracker = self._hold_tracker(RobotState(q=q, v=v))
        self._motions = [(PathClock(time, 0.0), tracker)]
        self._goal = self._retreat.goal or self._reference(tracker, Progress(0.0, 0.0, 0.0)).pose
        self._rate_seen = None
        if not self._settled.needed:
            self.growth.watch(time, q, self.growth.held, 0.0)
        if self._retreat.is_over(time, self.growth.beyond):
            self._retreat.reason = self._note = ""
        return self._last.braked(time, acts)

    def _begin_anew(self, time: float, q: Array, v: Array) -> None:
        """Restart after impedances have held the output: estimates made before are invalid."""
        self._retreat.ended = False
        self.equations.update(q, v)
        self._begin_stretch(q, v)
        self._pending.clear()
        self._answer.forget()
        self._more_late, self._rate_seen = 0.0, None
        self._last.time = self._last.acts = time - self.period
        self._sampled.forget()
        self._timing.begin_anew()
        if self._retreat.goal is None or self._phase == "stopped":
            return
        self._at = q
        try:
            self.begin(time, self.plan_goal(time, PoseGoal(*self._retreat.goal, self.robot.output)))
        except TensegrityError as error:
            self._note = f"stays where impedances held it: {error}"
            self._goal = self._reference(self._motions[-1][1], Progress(0.0, 0.0, 0.0)).pose

    def _apply_force(self) -> None:
        """Enter the known loads and the learned force at the output into the equations."""
        arrays, work = self.equations.arrays, self.equations.work
        force = self._none if self._settled.needed else self._learned.force  # that acts on the actuators, see `_settle`
        self._learned.apply(
            self.loads, self.equations.parts.body, arrays.position, work.position, force, arrays.selection, work.load
        )

    def acted(self, stamp: float, begin: float) -> None:
        self._pending.acted(stamp, begin)
        self._obstacle.acted(begin)

    def _made(
        self, q: Array, v: Array, time: float, acts: float, before: tuple[Array, Array, Array, Array] | None,
        solution: MotionSolution, more: Array,
    ) -> Command:  # fmt: skip
        """Command from `acts` [s] on for the state measured at `time`: a solution and `more` (a,) efforts.

        Args:
            before: what is `commanded` at these times, None for nothing.
        """
        moved, gains, lasts = self.stretch.moved, self._impedance, self._timing.held
        elapsed = self._timing.elapsed
        effort, position, rate, left, commanded_position, commanded_rate = np.empty((6, more.size))
        self._set_points(
            q, v, self.equations.drive_q, self.equations.parts.drive, moved, gains is not None, solution.actuator,
            lasts, acts - time, CORRECTED * elapsed / (elapsed + acts - time), self._sticks, self._reach,
            before is not None, *(before or (position, rate, position, rate)), solution.effort, more, self._effort,
            position, rate, left, commanded_position, commanded_rate, effort,
        )  # fmt: skip
        self.solution = MotionSolution(effort, *solution[1:])
        forces = np.concatenate((solution.effort, self.equations.arrays.rubbing)) if self.equations.resists else None
        self._pending.send(Sent(acts, lasts, solution.motion, position, rate, left, time, forces=forces))
        if gains is None:
            return Command(self.output_mode, self.names, effort)
        return Command(
            "impedance", self.names, effort, commanded_position, commanded_rate, gains.stiffness, gains.damping
        )

    def watch_tensions(self, time: float, acts: float) -> None:
        """Record how far the tensions measured at `time` [s] were below those commanded for that time."""
        timing = self._timing
        late = max(acts - time, DELAYED * self.period)  # a delay may be unreported
        self.bounds.watch(time, acts, late + timing.held, timing.elapsed, self.stretch)
        np.minimum(self.bounds.reserve, self.guard.spare, out=self.bounds.reserve)

    def _set_tensions(self, left: float) -> None:
        """Set floors and desired tensions; `left` is the fraction of their initial transition that remains."""
        self.bounds.fill(self._gains["floor_margin"], self._gains["level"], left)

    def _set_bounds(self, time: float, q: Array, v: Array) -> None:
        """Set the bounds of this period: tensions that still rise to their floors, efforts, actuator motion."""
        program = self.program
        left = self.bounds.left_of_start(self._last_effort, self._effort, self._timing.elapsed)
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
            self._effort, self._effort if self._last_effort is None else self._last_effort, change, self.border.left,
            self._beyond, self._rate, v, self.equations.parts.drive, 2.0 / self._bandwidth, self.bounds.low,
            self.bounds.reserve, program.effort_low, program.effort_high, program.joint_low,
            program.joint_high, program.tension_low, program.tension_high,
        )  # fmt: skip

    def _watch_border(self, time: float, distance: float, rate: Array, w: float, used: float) -> None:
        """Slow the reference down for an output that lags, or for actuators that use up a large fraction of their rates
        (`used`, near singularities); and give up a goal that cannot be reached.

        The distance counts the lag of the output along its path and its offset beside it, not its lead.

        Where commands come far apart the reference slows down as far as the motion needs the bandwidth that this costs
        (`OutputPath.demand`), or with the bandwidth where set points brake by themselves before the next command, from
        any speed: stopped and restarted at full speed, they take tensions below their floors.
        The tolerated lag follows from the present capability of the loop. Lag alone may be due to a late computer; a
        goal is given up only where a bound is active or the output stands still.
        """
        clock, tracker = self.motion_at(time)
        leash = self.limits.motion[0] / w
        apart = self._timing.latest - SPARED * self.period
        pace, behind = affordable(self.period, apart, self._delayed), 2.0 - distance / leash
        if self._timing.latest <= self.lead:
            pace /= tracker.demand
        behind = min(behind, max(clock.at(time).pace, LEAST_PACE) * FASTEST / max(used, 1e-6))
        within, waits = 1.0 / w, self.guard.pace < LEAST_PACE  # the reference stands at the border
        if self.guard.pace < behind:
            behind = self.guard.pace
            within = self.guard.within if behind < clock.at(time).pace else RESUMES
        clock.wait(time, min(behind, pace), within if behind < pace else self.brake_time)
        solution = self.solution
        presses = bool(self.guard.reason) or (solution is not None and bool(solution.active))
        if distance >= leash:
            rate = self.limits.weights * rate
        if (distance < leash and not waits) or time >= clock.end or not (
            presses or math.sqrt(rate @ rate) < STANDING * self.limits.motion[0]
        ):  # fmt: skip
            self._stuck = 0.0
            return
        self._stuck += self._timing.elapsed
        if self._stuck < max(STUCK, LAGS / w):
            return
        if self._turns_back(time):
            return
        held = [self.guard.words()] if self.guard.reason or waits else []
        held += [] if solution is None else solution.active
        self._stop_here(time, held)

    def _stop_here(self, time: float, held: Sequence[str]) -> None:
        """Give the present goal up: the reference stays at the output. `held`: what keeps it there."""
        because = f" ({', '.join(held)})" if held else ""
        position, rotation = self.equations.arrays.position[:3].copy(), self.equations.rotation
        self._note = f"the goal is out of reach: the output stopped where it is{because}"
        still = self._still(position, rotation)  # pushing on brings it no closer
        self._motions = [(PathClock(time, 0.0), still)]
        self._goal, self._began = (position, self._task.quaternion(rotation)), time
        self._version += 1

    def _turns_back(self, time: float) -> bool:
        """Begin the motion to the present goal again from where the output is held, if the present one first had to
        brake a rate away from its goal, which led beyond the border."""
        _, tracker = self.motion_at(time)
        held, goal = self._held_start(), self._goal
        if held is None or goal is None or tracker.shapes is not None:
            return False
        if not (isinstance(tracker.motion, OnlineMotion) and tracker.motion.brake):
            return False
        start, rotation = held
        end = self._task.coordinates(goal[0], matrix_from_quaternion(goal[1]), rotation)
        motion = self._task.motion(start, end, self.limits.motion, self.limits.turn, None, self._least_duration)
        path = OutputPath(motion, rotation, tracker.translations)
        self._motions, self._began, self._stuck = [(PathClock(time, path.duration), path)], time, 0.0
        self._version += 1
        return True

    def _equilibrium(self) -> tuple[Array, Array]:
        """q (nq,) and efforts (a,) of the shape at rest with the actuators as in the file."""
        joints = self.equations.model.driven_joints(self.robot.actuators)
        try:
            shape = MechanismEquilibriumSolver(self.equations.mechanism, joints).solve(
                self.robot.model.initial_configuration
            )
        except NoEquilibriumError:
            return np.array(self.robot.model.initial_configuration), np.zeros(len(joints))
        self._stands = shape.stable
        return shape.q, shape.effort[self.equations.parts.drive]

    # -- reports ----------------------------------------------------------------------------------------------------

    def relaxed(self) -> tuple[str, ...]:
        late = self.growth.words() if self.growth.too_late and not self._retreat.reason else ""
        found = [each for each in (self._note, late, self.guard.reason, self._low_floors()) if each]
        solution = self.solution
        if solution is not None:
            found += [f"{what} by {by:.3g}" for what, by in solution.broken]
            found += [] if self._stiff is None else self._stiff.relaxed()
            if solution.active:
                missing = float(np.linalg.norm(solution.missing))
                found.append(f"tracking by {missing:.3g} m/s^2: {', '.join(solution.active)}")
        return tuple(found)

    def _low_floors(self) -> str:
        """What says that floors cannot be reached from the initial tensions; else empty."""
        if not self.bounds.rising or self._last.time < self._began_at + 2.0 * FADE:
            return ""
        low = [
            name
            for name, least, floor in zip(self.equations.cables, self.bounds.low, self.bounds.floor, strict=True)
            if least < floor
        ]
        used = np.abs(np.zeros_like(self._effort) if self._last_effort is None else self._last_effort) / self._effort
        return (
            f"floors of {', '.join(low)}: {self.names[int(np.argmax(used))]} has no more effort for them" if low else ""
        )

    @property
    def singularity_distance(self) -> float:
        """Distance to singularity of `singularity_guard`, relative to the initial one."""
        return self.guard.distance

    def diagnostics(self) -> dict[str, str]:
        values = {"blind_periods": str(self.blind), "infeasible_programs": str(self.program.infeasible)}
        values["unsolved_programs"] = str(self.program.failed)
        if self._more_late > 0.0:
            values["unreported_delay"] = (
                f"{1e3 * self._more_late:.3g} ms, found from how the robot responds to commands"
            )
        if self._period_caution:
            values["control_period"] = self._period_caution
        given = self.relaxed()
        if given:
            values["relaxed"] = "; ".join(given)
        return values

    # -- limits -----------------------------------------------------------------------------------------------------

    def _find_limits(self) -> None:
        """Find the limits of the output at the last state of the equations."""
        self.guard.refuse_singular()
        frequency = self._settled.frequency if self._settled.needed else np.inf
        effort = np.zeros_like(self._effort) if self._last_effort is None else self._last_effort
        self.limits.update(min(self._bandwidth, frequency), effort)

    @property
    def _least_duration(self) -> float:
        calm = CALM * 2.0 * math.pi / self._settled.frequency if self._settled.needed else 0.0
        return max(LEAST_DURATION / self._bandwidth, 20.0 * self.period, calm)


def _is_finite(state: RobotState | None) -> bool:
    """Whether q and v are given and finite; other values would persist in the controller's memory."""
    if state is None or state.q is None or state.v is None:
        return False
    return math.isfinite(float(np.vdot(state.q, state.q)) + float(np.vdot(state.v, state.v)) + state.age)
