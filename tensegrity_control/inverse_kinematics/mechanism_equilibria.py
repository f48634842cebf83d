"""Equilibria of a mechanism for given actuator positions, with poses, tensions and derivatives by the actuator
positions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tensegrity_dynamics.errors import NoEquilibriumError, TensegrityError
from tensegrity_dynamics.linear_models.modes import Mode
from tensegrity_dynamics.mechanisms.body_frame import BodyFrame
from tensegrity_dynamics.mechanisms.body_poses import BodyPoses
from tensegrity_dynamics.mechanisms.dynamics.rigid_tensions import RigidTensions
from tensegrity_dynamics.mechanisms.dynamics.sliding_floors import sliding_floors
from tensegrity_dynamics.mechanisms.kinematics.configuration_space import configuration_rate, normalise_quaternions
from tensegrity_dynamics.mechanisms.kinematics.independent_coordinates import wrench_jacobian
from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel
from tensegrity_dynamics.mechanisms.statics.equilibrium_solver import MechanismEquilibrium, MechanismEquilibriumSolver
from tensegrity_dynamics.mechanisms.statics.modes import mechanism_modes
from tensegrity_dynamics.mechanisms.statics.output_stiffness import output_compliance
from tensegrity_dynamics.mechanisms.statics.sensitivity import sensitivity
from tensegrity_dynamics.mechanisms.statics.standing_motion import follow
from tensegrity_dynamics.mechanisms.workspace import Workspace, make_workspace
from tensegrity_dynamics.numerics.short_repr import ShortRepr
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.output_frame import Pose
from tensegrity_dynamics.robots.robot import Robot

from ..cancellation import checkpoint
from .equilibrium_map import EquilibriumMap, equilibrium_map


@dataclass(frozen=True, eq=False, repr=False)
class PathEquilibrium(ShortRepr):
    """An equilibrium at given actuator positions.

    Attributes:
        positions: (a,) rad or m of the actuators.
        pose: pose of the output.
        tensions: (c,) N of the cables.
        statics: equilibrium of the whole mechanism.
    """

    positions: Array
    pose: Pose
    tensions: Array
    statics: MechanismEquilibrium

    @property
    def q(self) -> Array:
        """(nq,) configuration of the mechanism."""
        return self.statics.q

    @property
    def effort(self) -> Array:
        """(nv,) N or N m that hold the mechanism."""
        return self.statics.effort


@dataclass(frozen=True, eq=False)
class PathSensitivity:
    """Derivatives of an equilibrium by the actuator positions [rad or m].

    Attributes:
        pose: (6, a) m and rad of the output.
        tensions: (c, a) N.
        slowest_period: s, of small oscillations.
        inertia, stretch: see `EquilibriumMap.tension_dynamics`.
        motion: (nv, a) of all coordinates.
    """

    pose: Array
    tensions: Array
    slowest_period: float
    inertia: Array
    stretch: Array
    motion: Array


NO_STIFFNESS = 1e-6
"""N m/rad or N/m, stiffness below which it is rounding and a motion counts as free."""
MOVES = 1e-6
"""m or rad of the output per rad or m of a free motion, above which the output counts as moved by it."""
STRAND_STEP = 1e-6
"""rad or m of the largest coordinate, step of the finite differences of strand tensions."""
SLID = 1e-5
"""m, distance of a foot along the ground above which it counts as sliding."""
FRICTION_MARGIN = 0.1
"""Fraction of the available static friction that feet must not use at rest."""
FORESEEN = 0.3
"""rad or m of a coordinate, largest step for which derivatives predict a good start for the next equilibrium."""


class MechanismEquilibriumMap(EquilibriumMap[PathEquilibrium]):
    """Equilibria of a mechanism, see `EquilibriumMap`; every thread has its own arrays.

    Args:
        robot: a mechanism with actuators and an output.
        shapes_only: whether only `solve` is used and no plan is made. Block cables may then be rigid, and equilibria
            are those on a straight path of the actuators from the start of the file, including friction. In plans
            routed cables slide over guides without friction: with friction the equilibria form a set around that one
            (`FrictionBand`), and the actual one depends on the history.

    Attributes:
        joints: (a,) names of the actuated joints.
        strand_floors: N by routed cable whose actuator has a `minimum_tension`, increased for friction
            (`sliding_floors`); plans keep all strands of these cables above.

    Raises:
        TensegrityError: the robot has no actuators, no stable equilibrium with its actuators at their start, or cables
            for which no plan can be made.
    """

    def __init__(self, robot: Robot, *, shapes_only: bool = False) -> None:
        super().__init__()
        if not robot.actuators:
            raise TensegrityError(
                f"{robot.name} has no actuators; list its driven joints under `actuators` in the robot file."
            )
        self.robot, self.model = robot, robot.model_as(MechanismModel)
        if not shapes_only:
            self.model.need_elastic_cables("a plan that keeps tensions")
            self.model = replace(self.model, mechanism=self.model.mechanism.sliding_freely())
        floors = sliding_floors(robot.model_as(MechanismModel), robot.actuators)
        elastic = {route.name for route in self.model.mechanism.routes if not route.rigid and not route.line_mass}
        self.strand_floors = {
            name: floor for name, floor in floors.items() if floor > 0.0 and name in elastic and not shapes_only
        }
        self.output: BodyFrame = robot.output  # type: ignore[assignment]
        self.joints = self.model.driven_joints(robot.actuators)
        starts = [self.model.start[self.model.mechanism.positions_of(name)][0] for name in self.joints]
        self.home = self.solve(np.array(starts), self.model.start)

    @property
    def _solver(self) -> MechanismEquilibriumSolver:
        return self._in_this_thread("solver", lambda: MechanismEquilibriumSolver(self.model.mechanism, self.joints))

    @property
    def stands(self) -> bool:
        """Whether only the ground holds the robot."""
        return self._solver.stands

    @property
    def _work(self) -> Workspace:
        return self._in_this_thread("work", lambda: make_workspace(self.model.mechanism.flat))

    @property
    def _poses(self) -> BodyPoses:
        return self._in_this_thread("poses", lambda: BodyPoses(self.model))

    def positions(self, equilibrium: PathEquilibrium) -> Array:
        return equilibrium.positions

    def start(self, equilibrium: PathEquilibrium | None = None) -> PathEquilibrium:
        return self.home if equilibrium is None else equilibrium

    def solve(self, positions: Array, start: PathEquilibrium | Array) -> PathEquilibrium:
        """Stable equilibrium near another one, or near q (nq,), for positions (a,) rad or m.

        Raises:
            TensegrityError: there is none.
        """
        checkpoint()
        q = start.q if isinstance(start, PathEquilibrium) else start
        by_joint = dict(zip(self.joints, np.asarray(positions, dtype=np.float64), strict=True))
        slid, drag = np.zeros(0), np.zeros(0)
        try:
            if self._solver.stands and isinstance(start, PathEquilibrium):
                statics, slid, drag = follow(self._solver, start.statics, by_joint)
            else:
                statics = self._from_foreseen(start, positions, by_joint) or self._solver.solve(q, by_joint)
            rigid = self._in_this_thread("rigid", lambda: RigidTensions(self.model))
            rigid.refuse_pushing_at_rest(self._work, statics.q, statics.effort)
        except NoEquilibriumError as error:
            raise TensegrityError(
                f"{self.robot.name} has no equilibrium with these actuator positions: {error}"
            ) from error
        if not statics.stable:
            hint = "; no stiffness resists one of its motions, such as the spin of a strut; use the controller qp"
            loose = abs(statics.softest) < NO_STIFFNESS and statics.standing is None
            raise TensegrityError(
                f"the equilibrium of {self.robot.name} is not stable (smallest stiffness {statics.softest:.3g}): "
                f"nothing resists a motion of {statics.loose}{hint if loose else ''}."
            )
        self._refuse_drift(statics)
        if statics.standing is not None:
            self._refuse_sliding(start, statics, slid, drag)
        pose, _ = self._poses.update(statics.q).output(self.output)
        return PathEquilibrium(np.array(positions, dtype=np.float64), pose, statics.tension, statics)

    def tensions_of(self, equilibrium: PathEquilibrium, names: Sequence[str]) -> list[float]:
        """N of cables with blocks, and of the strands of routed cables, named `rope`, or `rope[1]` if there are
        several."""
        found = self.tensions_and_floors(equilibrium)
        return [found[name][0] for name in names]

    def strand_tensions(self, equilibrium: PathEquilibrium) -> Array:
        """(s,) N of the strands of routed cables whose actuators have a `minimum_tension`."""
        return self.pulls(equilibrium, self.strand_floors)

    def strand_slopes(self, equilibrium: PathEquilibrium, motion: Array) -> Array:
        """(s, a) derivatives of `strand_tensions` along motions (nv, a), by finite differences."""
        return self.pull_slopes(equilibrium, motion, self.strand_floors)

    @property
    def elastic_routes(self) -> list[str]:
        """Names of the routed cables whose tensions follow from the shape, those that sag included."""
        return [route.name for route in self.model.mechanism.routes if not route.rigid]

    def pulls(self, equilibrium: PathEquilibrium, names: Iterable[str]) -> Array:
        """(s,) N of the strands of routed cables; those of a cable that sags are its two ends."""
        return np.array([pull for name in names for pull in equilibrium.statics.routes[name].tensions])

    def pull_slopes(self, equilibrium: PathEquilibrium, motion: Array, names: Iterable[str]) -> Array:
        """(s, a) derivatives of `pulls` along motions (nv, a), by finite differences."""
        names = list(names)
        solver, slopes = self._solver, np.zeros((self.pulls(equilibrium, names).size, motion.shape[1]))
        if not slopes.size:
            return slopes
        for k, direction in enumerate(motion.T):
            step = STRAND_STEP / max(1.0, float(np.max(np.abs(direction))))
            there, back = (
                solver.route_tensions_at(solver.moved(equilibrium.q, sign * step * direction)) for sign in (1.0, -1.0)
            )
            pulls = [a - b for name in names for a, b in zip(there[name], back[name], strict=True)]
            slopes[:, k] = np.array(pulls) / (2.0 * step)
        return slopes

    def _refuse_drift(self, statics: MechanismEquilibrium) -> None:
        """Raise TensegrityError if the output moves in a free motion."""
        if not statics.idle.shape[1]:
            return
        moves = wrench_jacobian(self.model.mechanism, statics.q, self.output.body, self.output.frame.origin)
        twist = (moves @ statics.idle)[[3, 4, 5, 0, 1, 2]][self.output.rows] / np.max(np.abs(statics.idle), axis=0)
        if np.max(np.abs(twist)) > MOVES:
            raise TensegrityError(
                f"{self.robot.name} does not hold its output {self.output.name}: no stiffness resists one of its "
                "motions; use the controller qp."
            )

    def _refuse_sliding(
        self, start: PathEquilibrium | Array, statics: MechanismEquilibrium, slid: Array, drag: Array
    ) -> None:
        """Raise TensegrityError if friction does not hold a robot that only the ground holds, with a margin.

        Args:
            slid: (p,) m that the contact points have slid from the start.
            drag: (nv,) N or N m, largest efforts of their friction.
        """
        name, standing = self.robot.name, statics.standing
        assert standing is not None
        if standing.used > 1.0 - FRICTION_MARGIN:
            raise TensegrityError(
                f"{name} may slide: its foot {standing.foot} uses {100.0 * standing.used:.3g} % of the friction of the "
                f"ground at rest, and {100.0 * (1.0 - FRICTION_MARGIN):.3g} % are allowed. Make the slope or the loads "
                "smaller, or the friction larger."
            )
        if not slid.size or not isinstance(start, PathEquilibrium):
            return
        before = start.statics.standing
        loose = standing.loose or (before.loose if before is not None else "")
        if loose and np.max(slid) > SLID:
            raise TensegrityError(
                f"{name} stands in a singular shape: nothing but friction resists a motion of {loose}. On the way its "
                f"feet slide (by {1e3 * np.max(slid):.3g} mm), friction of sliding feet has no stiffness, and the "
                "robot would collapse. Bend the joints away from this shape (their start in the robot file), give them "
                "a stiffness (`resistance`) or an actuator."
            )
        for each, joint in zip(self.robot.actuators, self.joints, strict=True):
            at = self.model.mechanism.velocities_of(joint).start
            needed = abs(float(statics.effort[at])) + float(drag[at])
            if drag[at] > 0.0 and needed > each.effort:
                raise TensegrityError(
                    f"{each.name} needs up to {needed:.3g} {each.units[2]} on the way, where feet slide against "
                    f"friction ({drag[at]:.3g} {each.units[2]}), above its limit of {each.effort:.3g}."
                )

    def _from_foreseen(
        self, start: PathEquilibrium | Array, positions: Array, by_joint: dict[str, float]
    ) -> MechanismEquilibrium | None:
        """Equilibrium found from the prediction by the derivatives at the start, if these are available; None without
        success.

        It is the one that a search from the start itself finds, in half the number of steps.
        """
        if not isinstance(start, PathEquilibrium) or start not in self._sensitivities:
            return None
        change = np.asarray(positions, dtype=np.float64) - start.positions
        step = self._sensitivities[start].motion @ change
        if not np.max(np.abs(step), initial=0.0) <= FORESEEN:
            return None
        solver, q = self._solver, start.q.copy()
        moving = np.empty_like(q)
        configuration_rate(solver.mechanism.flat, q, step, moving)
        q += moving
        normalise_quaternions(solver.mechanism.flat, q)
        try:
            found = solver.solve(q, by_joint)
        except NoEquilibriumError:
            return None
        return found if found.stable else None

    def differentiate(self, equilibrium: PathEquilibrium) -> PathSensitivity:
        slopes = sensitivity(self._solver, equilibrium.statics)
        mechanism = self.model.mechanism
        order = [int(np.flatnonzero(slopes.held == mechanism.velocities_of(name).start)[0]) for name in self.joints]
        motion = slopes.motion[:, order]
        jacobian = wrench_jacobian(mechanism, equilibrium.q, self.output.body, self.output.frame.origin)
        twist = np.vstack((jacobian[3:], jacobian[:3])) @ motion
        return PathSensitivity(
            twist, slopes.tension[:, order], slopes.slowest_period, slopes.inertia[:, order], slopes.stretch[:, order],
            motion,
        )  # fmt: skip

    def compliance(self, equilibrium: PathEquilibrium) -> Array | None:
        try:
            return np.asarray(output_compliance(self._solver, equilibrium.statics, self.output))
        except TensegrityError:
            return None

    @property
    def reach(self) -> float:
        points = self.home.statics.positions - self.home.statics.positions.mean(axis=0)
        return max(float(np.sqrt(np.mean(np.sum(points**2, axis=1)))), 1e-9)

    def tensions(self, equilibrium: PathEquilibrium) -> Array:
        return equilibrium.tensions

    def tensions_and_floors(self, equilibrium: PathEquilibrium) -> dict[str, tuple[float, float]]:
        found, floors = super().tensions_and_floors(equilibrium), self.model.tension_floors(self.robot.actuators)
        for name, reading in equilibrium.statics.routes.items():
            for k, pull in enumerate(reading.tensions):
                found[f"{name}[{k}]" if len(reading.tensions) > 1 else name] = float(pull), floors.get(name, 0.0)
        return found

    def efforts(self, equilibrium: PathEquilibrium) -> Array:
        velocities = [self.model.mechanism.velocities_of(name).start for name in self.joints]
        return np.asarray(equilibrium.effort[velocities])

    def tension_dynamics(self, equilibrium: PathEquilibrium) -> tuple[Array, Array]:
        slopes: PathSensitivity = self.sensitivity(equilibrium)
        return slopes.inertia, slopes.stretch

    @property
    def tension_floors(self) -> dict[str, float]:
        floors = self.model.tension_floors(self.robot.actuators)
        return {cable.name: floors.get(cable.name, 0.0) for cable in self.model.mechanism.cables}

    def modes(self, equilibrium: PathEquilibrium) -> list[Mode]:
        return mechanism_modes(self._solver, equilibrium.statics, self.output)

    def _slowest_period(self, equilibrium: PathEquilibrium) -> float:
        return float(self.sensitivity(equilibrium).slowest_period)

    def cable_of(self, actuator: int) -> int:
        """Index among the elastic cables of the one that an actuator winds; -1 if it drives another joint."""
        names = [cable.name for cable in self.model.mechanism.cables]
        driven = self.robot.actuators[actuator].drives
        return names.index(driven) if driven in names else -1


@equilibrium_map.register
def _(model: MechanismModel, robot: Robot, *, shapes_only: bool = False, **options: Any) -> MechanismEquilibriumMap:
    if options:
        raise TensegrityError(f"{robot.name} is a mechanism; {', '.join(options)} is for structures only.")
    return MechanismEquilibriumMap(robot, shapes_only=shapes_only)
