"""Inverse kinematics of a structure: continuation along stable equilibria from a start to a goal pose.

The exact Jacobian (`structure_jacobian`) predicts the response to changes of the rest lengths, a quadratic program
(`ik_step`) chooses the next change within the limits (`tension_limits`), and the equilibrium is solved again. A step is
accepted only if it leads to a stable equilibrium close to the predicted one with every guarded tendon tight; otherwise
it is repeated with half the size. So the path never jumps to another equilibrium, and every point of it can be held.
Near the goal the same steps are Newton steps and converge quadratically (document 001, section 6, Algorithm 2,
corrected).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tensegrity_dynamics.errors import NoEquilibriumError, UnreachableGoalError
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.structures.form_finding.equilibrium import StructureEquilibrium

from .ik_result import InverseKinematicsOptions, InverseKinematicsResult
from .ik_step import Posture, Step, solve_step
from .limits import Limits, unreachable_goal
from .pose_goal import PoseGoal
from .structure_equilibria import StructureEquilibriumMap
from .structure_jacobian import Sensitivity
from .tension_limits import TOLERANCE, TendonGuard


@dataclass(frozen=True)
class ContinuationSettings:
    """Step control of the continuation. The length unit "travel" is half the mean travel of the actuators.

    Attributes:
        largest_step, smallest_step: fraction of the travel, change of a rest length in one step. Larger steps are fewer
            but fail more often; below the smallest step the path ends.
        unbounded_step: multiple of the travel that no step to the goal exceeds.
        tolerance_curvature: deviation of the nodes from the linear prediction, as a fraction of the step; a larger one
            counts as a jump to another equilibrium.
        tolerance_sag: fraction of its reserve above the floor that a tendon may lose halfway between two equilibria,
            where rest lengths are interpolated. Long stiff tendons need this check: small errors of length take all
            their tension.
        least_sag: allowed loss as a fraction of the mean tension, for tendons near their floor.
        tolerance_tension: fraction of the mean tension by which a step may miss its prediction; beyond it the tensions
            of redundant tendons are restored.
        tolerance_settled: fraction of the travel; redundant tendons have settled when a step is smaller.
        max_settling_steps: number of steps at the goal for settling.
        max_corrections: Newton steps that bring one step back to its limits and to the goal.
        tolerance_arrival: m and rad, pose error after such a correction.
        minimum_progress: fraction of the error that a straight step must remove; below it the motion slides along its
            limits.
        max_stalled_steps: steps with less than one percent of progress before the search ends.
        max_confirmations: attempts to reach the nearest pose of an unreachable goal from the start.
        fine_error: m and rad below which any progress is sufficient.
        max_caution: largest extra cost of change, in units of the length weight.
    """

    largest_step: float = 0.1
    smallest_step: float = 1e-6
    unbounded_step: float = 20.0
    tolerance_curvature: float = 0.1
    tolerance_sag: float = 0.25
    least_sag: float = 1e-3
    tolerance_tension: float = 0.1
    tolerance_settled: float = 1e-6
    max_settling_steps: int = 12
    max_corrections: int = 4
    tolerance_arrival: float = 1e-10
    minimum_progress: float = 0.02
    max_stalled_steps: int = 12
    max_confirmations: int = 3
    fine_error: float = 1e-5
    max_caution: float = 16.0


SETTINGS = ContinuationSettings()


class Continuation:
    """Path from a start to a goal: `run` computes all of it, `advance` one step.

    Args:
        equilibria: equilibria of the robot.
        start: one of them.
        goal: goal pose.
        options: preferences and tolerances.

    Attributes:
        path: equilibria so far.
        steps, solves: number of steps tried and of equilibria solved.
        trouble: why the last rejected step was rejected, as text.
    """

    def __init__(
        self,
        equilibria: StructureEquilibriumMap,
        start: StructureEquilibrium,
        goal: PoseGoal,
        options: InverseKinematicsOptions,
    ) -> None:
        preferred = start if options.preferred is None else options.preferred
        self.equilibria, self.robot, self.goal, self.options = equilibria, equilibria.robot, goal, options
        self.guard = TendonGuard(self.robot, preferred, options.tension_floor)
        self.members = self.guard.members
        self.posture = Posture(
            tensions=preferred.tensions[self.members],
            lengths=preferred.rest_lengths[self.members],
            tension_scale=self.guard.tension_scale,
            length_scale=self.guard.length_scale,
            length_weight=options.length_weight,
        )
        self.path = [start]
        self.steps = self.solves = 0
        self.radius = SETTINGS.largest_step * self.guard.length_scale
        self.caution = 0.0
        self.blocked = False
        self.trouble = ""
        self._last_change = np.zeros(self.members.size)

    @property
    def equilibrium(self) -> StructureEquilibrium:
        """Last equilibrium of the path."""
        return self.path[-1]

    def run(self) -> InverseKinematicsResult:
        """Compute the whole path. Raises UnreachableGoalError if there is none."""
        if self.walk():
            return self.result("newton")
        raise self.give_up()

    def walk(self, *, settle: bool = True) -> bool:
        """Take steps until the goal is reached and (with `settle`) the posture has settled, or until there is no
        progress."""
        settling = stalled = 0
        best = np.inf
        while self.steps < self.options.max_iterations:
            slopes = self.slopes(self.equilibrium)
            step = self.choose(slopes, self.guard.limits)
            reached = self.reached()
            settled = np.abs(step.change).max() < SETTINGS.tolerance_settled * self.guard.length_scale
            if reached and (settled or not settle or settling >= SETTINGS.max_settling_steps):
                return True
            settling += reached
            distance = float(np.linalg.norm(self.goal.weights() * self.goal.error(self.equilibrium.pose)))
            stalled = 0 if distance < 0.99 * best else stalled + 1
            best = min(best, distance)
            if stalled > SETTINGS.max_stalled_steps or (step.weighted and self.stationary(step)):
                break
            if not self.advance(slopes, step, self.guard.limits) and self.radius_spent():
                break
        else:
            self.trouble = f"{self.options.max_iterations} steps were not enough"
        return self.reached()

    # -- parts of a step ------------------------------------------------------------------------------------------

    def slopes(self, equilibrium: StructureEquilibrium) -> Sensitivity:
        """Derivatives by the actuated rest lengths."""
        return self.equilibria.sensitivity(equilibrium)

    def reached(self) -> bool:
        """Whether the present equilibrium has the goal pose and keeps the limits."""
        error = np.abs(self.goal.error(self.equilibrium.pose)).max()
        return (
            error < self.options.tolerance
            and self.guard.limits.violation(self.guard.values(self.equilibrium)) < TOLERANCE
        )

    def choose(self, slopes: Sensitivity, limits: Limits, *, straight: bool = True) -> Step:
        """The straight step if it makes progress, else the step that comes nearest to the goal."""
        equilibrium = self.equilibrium
        error = self.goal.error(equilibrium.pose)
        if straight and not self.blocked:
            step = self.straight(equilibrium, slopes, error, limits)
            if step.confined or step.progress > SETTINGS.minimum_progress:
                return step
        step = self.solve(equilibrium, slopes, error, limits, self.goal.weights())
        weights = self.goal.weights()
        within_reach = np.linalg.norm(weights * step.remaining) < 1e-3 * np.linalg.norm(weights * error)
        self.blocked = straight and not (self.blocked and within_reach)
        return step

    def solve(
        self,
        equilibrium: StructureEquilibrium,
        slopes: Sensitivity,
        error: Array,
        limits: Limits,
        weights: Array | None,
        posture: Posture | None = None,
        radius: float | None = None,
    ) -> Step:
        """Solve the quadratic program at one equilibrium."""
        assert slopes.pose is not None
        return solve_step(
            error, self.goal.jacobian(equilibrium.pose, slopes.pose),
            self.guard.values(equilibrium), self.guard.jacobian(slopes), limits,
            (equilibrium.tensions[self.members], slopes.tensions[self.members], equilibrium.rest_lengths[self.members]),
            posture or self.posture, radius or self.radius, weights, self.caution,
        )  # fmt: skip

    def straight(self, equilibrium: StructureEquilibrium, slopes: Sensitivity, error: Array, limits: Limits) -> Step:
        """Step along the straight line to the goal as far as the radius allows, with the preferred posture.

        A radius as a constraint on the whole step would push every tendon to its bound; scaling the step to the goal
        does not.
        """
        whole = self.solve(
            equilibrium, slopes, error, limits, None, radius=SETTINGS.unbounded_step * self.guard.length_scale
        )
        size = float(np.abs(whole.change).max())
        if size <= self.radius:
            return whole
        part = self.radius / size
        step = self.solve(equilibrium, slopes, part * error, limits, None)
        assert slopes.pose is not None
        remaining = error - self.goal.jacobian(equilibrium.pose, slopes.pose) @ step.change
        return replace(step, progress=part * step.progress, remaining=remaining, confined=True)

    def unmoved(self, equilibrium: StructureEquilibrium) -> Posture:
        """Posture that only prefers the smallest change of lengths."""
        return replace(
            self.posture,
            tensions=equilibrium.tensions[self.members],
            lengths=equilibrium.rest_lengths[self.members],
            tension_scale=1e9 * self.guard.tension_scale,
        )

    def stationary(self, step: Step) -> bool:
        """Whether this is the nearest pose: no step within the limits reduces the error further."""
        if np.abs(step.change).max() < 1e-7 * self.radius:
            return True
        weights = self.goal.weights()
        before = float(np.linalg.norm(weights * self.goal.error(self.equilibrium.pose)))
        after = float(np.linalg.norm(weights * step.remaining))
        inside = self.guard.limits.violation(self.guard.values(self.equilibrium)) < TOLERANCE
        return before - after < 1e-4 * before and (inside or step.rest > 0.99)

    def advance(self, slopes: Sensitivity, step: Step, limits: Limits) -> bool:
        """Take a step if it leads to an acceptable equilibrium, else halve the radius."""
        self.steps += 1
        moved, deviation = self.attempt(self.equilibrium, slopes, step.change)
        if moved is not None:
            moved = self.correct(self.restore(moved, slopes, step, limits), limits, step)
        if moved is not None and not (self.nearer(moved, step) and self.stays_tight(slopes, moved)):
            moved = None
        if moved is None:
            self.radius = 0.5 * float(np.abs(step.change).max())
            return False
        self.path.append(moved)
        self.learn(step.change)
        if deviation < 0.5 * SETTINGS.tolerance_curvature and step.confined:
            self.radius = min(2.0 * self.radius, SETTINGS.largest_step * self.guard.length_scale)
        return True

    def restore(
        self, moved: StructureEquilibrium, slopes: Sensitivity, step: Step, limits: Limits
    ) -> StructureEquilibrium:
        """The tensions that a step predicted, at the pose that it reached; `moved` if it has them or has no redundancy.

        Stiff tendons lose or gain much tension by the small difference between a step and its linear prediction.
        """
        predicted = (self.equilibrium.tensions + slopes.tensions @ step.change)[self.members]
        lost = np.abs(moved.tensions[self.members] - predicted).max() / self.guard.tension_scale
        if lost <= SETTINGS.tolerance_tension or self.members.size <= self.goal.output.rows.size:
            return moved
        there = self.slopes(moved)
        posture = replace(self.posture, tensions=predicted, lengths=moved.rest_lengths[self.members])
        change = self.solve(moved, there, np.zeros(self.goal.output.rows.size), limits, None, posture).change
        restored, _ = self.attempt(moved, there, change)
        return moved if restored is None else restored

    def nearer(self, moved: StructureEquilibrium, step: Step) -> bool:
        """Whether the pose error decreased by a sufficient part of the predicted decrease; true if no decrease was
        predicted."""
        weights = self.goal.weights()
        before = float(np.linalg.norm(weights * self.goal.error(self.equilibrium.pose)))
        promised = before - float(np.linalg.norm(weights * step.remaining))
        gained = before - float(np.linalg.norm(weights * self.goal.error(moved.pose)))
        if (
            promised <= (0.0 if step.weighted else 1e-3 * before)
            or before < SETTINGS.fine_error
            or gained >= 0.1 * promised
        ):
            return True
        self.trouble = "the pose hardly answers to the tendons in that direction"
        return False

    def stays_tight(self, slopes: Sensitivity, moved: StructureEquilibrium) -> bool:
        """Whether tendons keep their reserve halfway to an equilibrium, where rest lengths are interpolated.

        Along the straight line between both rest lengths the tensions are cubics, given by values and slopes at the
        ends.
        """
        before, guarded = self.equilibrium, self.guard.guarded
        change = self.equilibria.positions(moved) - self.equilibria.positions(before)
        bend = (slopes.tensions[guarded] - self.slopes(moved).tensions[guarded]) @ change
        ends = np.minimum(before.tensions[guarded], moved.tensions[guarded])
        reserve = np.maximum(ends - self.guard.floors, 0.0)
        allowed = SETTINGS.tolerance_sag * reserve + SETTINGS.least_sag * self.guard.tension_scale
        low = np.flatnonzero(-bend / 8.0 > allowed)
        if low.size == 0:
            return True
        names = ", ".join(moved.structure.member_names[k] for k in guarded[low])
        self.trouble = f"{names} would lose tension between two steps"
        return False

    def learn(self, change: Array) -> None:
        """Increase the caution when steps reverse their direction, since the curvature of the posture's cost is only
        estimated."""
        sizes = float(np.linalg.norm(change) * np.linalg.norm(self._last_change))
        cosine = float(change @ self._last_change) / sizes if sizes > 0.0 else 0.0
        if cosine < -0.2:
            self.caution = min(max(1.0, 2.0 * self.caution), SETTINGS.max_caution)
        elif cosine > 0.7:
            self.caution *= 0.5
        self._last_change = change

    def radius_spent(self) -> bool:
        """Whether steps have become too small to continue."""
        return self.radius < SETTINGS.smallest_step * self.guard.length_scale

    def attempt(
        self, equilibrium: StructureEquilibrium, slopes: Sensitivity, change: Array
    ) -> tuple[StructureEquilibrium | None, float]:
        """Equilibrium after a change of lengths, and its relative distance from the prediction; None if the step
        fails."""
        lengths = np.array(equilibrium.rest_lengths)
        lengths[self.members] += change
        motion = (slopes.nodes @ change).reshape(-1, 3)
        predicted = equilibrium.nodes + motion
        self.solves += 1
        try:
            guess = replace(equilibrium, nodes=predicted, tensions=equilibrium.tensions + slopes.tensions @ change)
            moved = self.equilibria.solve_lengths(lengths, guess)
        except NoEquilibriumError as error:
            self.trouble = f"no equilibrium was found: {error}"
            return None, np.inf
        size = float(np.abs(motion).max())
        noise = 1e-9 + 1e-9 * float(np.abs(moved.lengths).max())
        deviation = max(float(np.abs(moved.nodes - predicted).max()) - noise, 0.0) / max(size, noise)
        slackened = self.guard.slackened(moved)
        if not (moved.converged and moved.stable):
            self.trouble = f"the equilibrium loses its stability (softest stiffness {moved.softest:.3g} N/m)"
        elif slackened:
            self.trouble = f"{', '.join(slackened)} would go slack"
        elif deviation > SETTINGS.tolerance_curvature:
            self.trouble = f"the equilibrium jumps (softest stiffness before the jump {equilibrium.softest:.3g} N/m)"
        else:
            return moved, deviation
        return None, deviation

    def correct(self, equilibrium: StructureEquilibrium, limits: Limits, step: Step) -> StructureEquilibrium | None:
        """Correct the violation of limits by a curved step, and the pose error if the step leads to the goal.

        The correction is the smallest change of lengths, without regard to the posture.
        """
        allowed = max(TOLERANCE, limits.violation(self.guard.values(self.equilibrium)))
        arriving = step.progress > 0.999
        weights = self.goal.weights() if step.weighted else None
        for _ in range(SETTINGS.max_corrections):
            error = self.goal.error(equilibrium.pose) if arriving else np.zeros(self.goal.output.rows.size)
            if (
                limits.violation(self.guard.values(equilibrium)) < TOLERANCE
                and np.abs(error).max() < SETTINGS.tolerance_arrival
            ):
                return equilibrium
            slopes = self.slopes(equilibrium)
            correction = self.solve(equilibrium, slopes, error, limits, weights, self.unmoved(equilibrium))
            moved, _ = self.attempt(equilibrium, slopes, correction.change)
            if moved is None:
                return None
            equilibrium = moved
        if limits.violation(self.guard.values(equilibrium)) <= allowed:
            return equilibrium
        self.trouble = "the limits cannot be kept"
        return None

    # -- results --------------------------------------------------------------------------------------------------

    def result(self, method: str) -> InverseKinematicsResult:
        """Result for the path so far."""
        lengths = self.equilibria.positions(self.equilibrium)
        lowest = [min(self.guard.margins(each).items(), key=lambda item: item[1]) for each in self.path]
        return InverseKinematicsResult(
            positions={a.name: float(value) for a, value in zip(self.robot.actuators, lengths, strict=True)},
            equilibrium=self.equilibrium,
            path=tuple(self.path),
            commands=np.array([self.equilibria.positions(each) for each in self.path]),
            pose_error=self.goal.error(self.equilibrium.pose),
            margins=self.guard.margins(self.equilibrium),
            lowest_margin=min(lowest, key=lambda item: item[1]),
            iterations=self.steps,
            solves=self.solves,
            method=method,
        )

    def give_up(self) -> UnreachableGoalError:
        """The error: active limits at the end of the path, and the nearest pose that a path from the same start
        reaches."""
        bound, trouble = self.equilibrium, self.trouble
        self.radius = max(self.radius, 0.01 * self.guard.length_scale)
        binding = self.choose(self.slopes(bound), self.guard.limits, straight=False).binding
        nearest = self.drawn_in()
        for _ in range(SETTINGS.max_confirmations):
            goal = PoseGoal(*nearest.pose, self.goal.output)
            again = Continuation(self.equilibria, self.path[0], goal, self.options)
            if again.walk(settle=False):
                nearest = again.equilibrium
                break
            nearest = again.drawn_in()
        guard, values = self.guard, self.guard.values(bound)
        lengths = {nearest.structure.member_names[k]: float(nearest.rest_lengths[k]) for k in guard.members}
        rows = binding or tuple(guard.limits.touched(values, 1e-3))
        return unreachable_goal(
            self.goal, nearest, guard.limits, values, rows, trouble, reachable=True, rest_lengths=lengths
        )

    def drawn_in(self) -> StructureEquilibrium:
        """Nearest equilibrium slightly inside the limits, searched from the end of the path; it is a valid goal."""
        inside = self.guard.drawn_in(1e-3)
        for _ in range(8):
            slopes = self.slopes(self.equilibrium)
            step = self.choose(slopes, inside, straight=False)
            if inside.violation(self.guard.values(self.equilibrium)) < TOLERANCE and self.stationary(step):
                break
            if not self.advance(slopes, step, inside) and self.radius_spent():
                break
        return self.equilibrium
