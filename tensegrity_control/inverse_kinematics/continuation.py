"""The way from a start shape to a goal pose, step by step over stable equilibria (see `inverse_kinematics`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tensegrity_dynamics.errors import NoEquilibriumError, UnreachableGoalError
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.structures.form_finding.equilibrium import StructureEquilibrium
from tensegrity_dynamics.structures.form_finding.equilibrium_solver import StructureEquilibriumSolver

from .ik_result import InverseKinematicsResult
from .ik_step import Limits, Posture, Step, solve_step
from .pose_goal import PoseGoal
from .structure_jacobian import Sensitivity, sensitivity
from .tension_limits import TOLERANCE, TendonGuard
from .unreachable import unreachable

Array = NDArray[np.float64]

LARGEST_STEP = 0.1
SMALLEST_STEP = 1e-6
WIDE = 20.0
CURVATURE = 0.25
SETTLED = 1e-6
SETTLING_STEPS = 12
CORRECTIONS = 4
ARRIVED = 1e-10
BLOCKED = 0.02
STALLED_STEPS = 12
CONFIRMATIONS = 3
FINE = 1e-5
MOST_CAUTION = 16.0


class Continuation:
    """The way from a start shape to a goal: `run` walks it, `advance` takes one step.

    Attributes:
        path: shapes so far.
        steps, solves: steps tried and forward kinematics solved.
        trouble: why the last refused step was refused, in words.
    """

    def __init__(
        self,
        robot: Robot,
        goal: PoseGoal,
        start: StructureEquilibrium,
        preferred: StructureEquilibrium,
        tension_floor: float | Mapping[str, float] | None,
        solver: StructureEquilibriumSolver,
        length_weight: float,
    ) -> None:
        self.robot, self.goal, self.solver = robot, goal, solver
        self.preferred, self.tension_floor = preferred, tension_floor
        self.guard = TendonGuard(robot, preferred, tension_floor)
        self.members = self.guard.members
        self.posture = Posture(
            tensions=preferred.tensions[self.members],
            lengths=preferred.rest_lengths[self.members],
            tension_scale=self.guard.tension_scale,
            length_scale=self.guard.length_scale,
            length_weight=length_weight,
        )
        self.path = [start]
        self.steps = self.solves = 0
        self.radius = LARGEST_STEP * self.guard.length_scale
        self.caution = 0.0
        self.blocked = False
        self.trouble = ""
        self._last_change = np.zeros(self.members.size)

    @property
    def shape(self) -> StructureEquilibrium:
        """Where the way has led so far."""
        return self.path[-1]

    def run(self, tolerance: float, max_iterations: int) -> InverseKinematicsResult:
        """The plan of the whole way. Raises UnreachableGoalError where there is none."""
        if self.walk(tolerance, max_iterations):
            return self.plan("newton")
        raise self.give_up(tolerance, max_iterations)

    def walk(self, tolerance: float, max_iterations: int, *, settle: bool = True) -> bool:
        """Walk until the goal is reached and (with `settle`) the posture has settled, or until nothing gets nearer."""
        settling = stalled = 0
        best = np.inf
        while self.steps < max_iterations:
            slopes = self.slopes(self.shape)
            step = self.choose(slopes, self.guard.limits)
            reached = self.reached(tolerance)
            settled = np.abs(step.change).max() < SETTLED * self.guard.length_scale
            if reached and (settled or not settle or settling >= SETTLING_STEPS):
                return True
            settling += reached
            distance = float(np.linalg.norm(self.goal.weights() * self.goal.error(self.shape.nodes)))
            stalled = 0 if distance < 0.99 * best else stalled + 1
            best = min(best, distance)
            if stalled > STALLED_STEPS or (step.weighted and self.stationary(step)):
                break
            if not self.advance(slopes, step, self.guard.limits) and self.radius_spent():
                break
        else:
            self.trouble = f"{max_iterations} steps were not enough"
        return self.reached(tolerance)

    # -- parts of a step ------------------------------------------------------------------------------------------

    def slopes(self, shape: StructureEquilibrium) -> Sensitivity:
        """Derivatives with respect to the actuated rest lengths."""
        return sensitivity(shape, self.members, rigid_bars=self.solver.rigid_bars)

    def reached(self, tolerance: float) -> bool:
        """Whether the present shape is the goal, within the limits."""
        error = np.abs(self.goal.error(self.shape.nodes)).max()
        return error < tolerance and self.guard.limits.violation(self.guard.values(self.shape)) < TOLERANCE

    def choose(self, slopes: Sensitivity, limits: Limits, *, straight: bool = True) -> Step:
        """The straight step where it gets on, else the one that comes nearest."""
        shape = self.shape
        error = self.goal.error(shape.nodes)
        if straight and not self.blocked:
            step = self.straight(shape, slopes, error, limits)
            if step.confined or step.progress > BLOCKED:
                return step
        step = self.solve(shape, slopes, error, limits, self.goal.weights())
        weights = self.goal.weights()
        within_reach = np.linalg.norm(weights * step.remaining) < 1e-3 * np.linalg.norm(weights * error)
        self.blocked = straight and not (self.blocked and within_reach)
        return step

    def solve(
        self,
        shape: StructureEquilibrium,
        slopes: Sensitivity,
        error: Array,
        limits: Limits,
        weights: Array | None,
        posture: Posture | None = None,
        radius: float | None = None,
    ) -> Step:
        """The quadratic program at one shape."""
        assert slopes.pose is not None
        return solve_step(
            error, self.goal.jacobian(shape.nodes, slopes.pose),
            self.guard.values(shape), self.guard.jacobian(slopes), limits,
            (shape.tensions[self.members], slopes.tensions[self.members], shape.rest_lengths[self.members]),
            posture or self.posture, radius or self.radius, weights, self.caution,
        )  # fmt: skip

    def straight(self, shape: StructureEquilibrium, slopes: Sensitivity, error: Array, limits: Limits) -> Step:
        """As far along the straight way as the radius allows, without leaving the preferred posture for speed.

        A radius on the whole step would drive every tendon at its bound; the step to the goal, scaled down, does not.
        """
        whole = self.solve(shape, slopes, error, limits, None, radius=WIDE * self.guard.length_scale)
        size = float(np.abs(whole.change).max())
        if size <= self.radius:
            return whole
        part = self.radius / size
        step = self.solve(shape, slopes, part * error, limits, None)
        assert slopes.pose is not None
        remaining = error - self.goal.jacobian(shape.nodes, slopes.pose) @ step.change
        return replace(step, progress=part * step.progress, remaining=remaining, confined=True)

    def unmoved(self, shape: StructureEquilibrium) -> Posture:
        """The posture that asks for the shortest change of lengths and nothing else."""
        return replace(
            self.posture,
            tensions=shape.tensions[self.members],
            lengths=shape.rest_lengths[self.members],
            tension_scale=1e9 * self.guard.tension_scale,
        )

    def stationary(self, step: Step) -> bool:
        """Whether the nearest pose is found: within the limits the error shrinks no further."""
        if np.abs(step.change).max() < 1e-7 * self.radius:
            return True
        weights = self.goal.weights()
        before = float(np.linalg.norm(weights * self.goal.error(self.shape.nodes)))
        after = float(np.linalg.norm(weights * step.remaining))
        inside = self.guard.limits.violation(self.guard.values(self.shape)) < TOLERANCE
        return before - after < 1e-4 * before and (inside or step.rest > 0.99)

    def advance(self, slopes: Sensitivity, step: Step, limits: Limits) -> bool:
        """Take a step if it leads to a good shape, else halve the radius."""
        self.steps += 1
        moved, deviation = self.attempt(self.shape, slopes, step.change)
        if moved is not None:
            moved = self.correct(moved, limits, step)
        if moved is not None and not self.nearer(moved, step):
            moved = None
        if moved is None:
            self.radius = 0.5 * float(np.abs(step.change).max())
            return False
        self.path.append(moved)
        self.learn(step.change)
        if deviation < 0.2 * CURVATURE and step.confined:
            self.radius = min(2.0 * self.radius, LARGEST_STEP * self.guard.length_scale)
        return True

    def nearer(self, moved: StructureEquilibrium, step: Step) -> bool:
        """Whether the pose error shrank by a fair part of what the step promised; promises of nothing are kept."""
        weights = self.goal.weights()
        before = float(np.linalg.norm(weights * self.goal.error(self.shape.nodes)))
        promised = before - float(np.linalg.norm(weights * step.remaining))
        gained = before - float(np.linalg.norm(weights * self.goal.error(moved.nodes)))
        if promised <= (0.0 if step.weighted else 1e-3 * before) or before < FINE or gained >= 0.1 * promised:
            return True
        self.trouble = "the pose hardly answers to the tendons in that direction"
        return False

    def learn(self, change: Array) -> None:
        """Raise the caution where steps turn back on themselves, since the comfort's curvature is only estimated."""
        sizes = float(np.linalg.norm(change) * np.linalg.norm(self._last_change))
        cosine = float(change @ self._last_change) / sizes if sizes > 0.0 else 0.0
        if cosine < -0.2:
            self.caution = min(max(1.0, 2.0 * self.caution), MOST_CAUTION)
        elif cosine > 0.7:
            self.caution *= 0.5
        self._last_change = change

    def radius_spent(self) -> bool:
        """Whether steps have become too small to go on."""
        return self.radius < SMALLEST_STEP * self.guard.length_scale

    def attempt(
        self, shape: StructureEquilibrium, slopes: Sensitivity, change: Array
    ) -> tuple[StructureEquilibrium | None, float]:
        """The shape after a change of lengths and its relative distance from the prediction; None if it is no good."""
        lengths = np.array(shape.rest_lengths)
        lengths[self.members] += change
        motion = (slopes.nodes @ change).reshape(-1, 3)
        predicted = shape.nodes + motion
        self.solves += 1
        try:
            guess = replace(shape, nodes=predicted, tensions=shape.tensions + slopes.tensions @ change)
            moved = self.solver.solve(lengths, start=guess)
        except NoEquilibriumError as error:
            self.trouble = f"no equilibrium was found: {error}"
            return None, np.inf
        size = float(np.abs(motion).max())
        noise = 1e-9 + 1e-9 * float(np.abs(moved.lengths).max())
        deviation = max(float(np.abs(moved.nodes - predicted).max()) - noise, 0.0) / max(size, noise)
        slackened = self.guard.slackened(moved)
        if not (moved.converged and moved.stable):
            self.trouble = f"the shape loses its stability (softest stiffness {moved.softest:.3g} N/m)"
        elif slackened:
            self.trouble = f"{', '.join(slackened)} would go slack"
        elif deviation > CURVATURE:
            self.trouble = f"the shape jumps (softest stiffness before the jump {shape.softest:.3g} N/m)"
        else:
            return moved, deviation
        return None, deviation

    def correct(self, shape: StructureEquilibrium, limits: Limits, step: Step) -> StructureEquilibrium | None:
        """Undo what the curvature of a step has overrun: limits, and the goal where the step went all the way.

        The shortest change does it, so that the posture, which may pull elsewhere, has no say here.
        """
        allowed = max(TOLERANCE, limits.violation(self.guard.values(self.shape)))
        arriving = step.progress > 0.999
        weights = self.goal.weights() if step.weighted else None
        for _ in range(CORRECTIONS):
            error = self.goal.error(shape.nodes) if arriving else np.zeros(self.goal.output.rows.size)
            if limits.violation(self.guard.values(shape)) < TOLERANCE and np.abs(error).max() < ARRIVED:
                return shape
            slopes = self.slopes(shape)
            correction = self.solve(shape, slopes, error, limits, weights, self.unmoved(shape))
            moved, _ = self.attempt(shape, slopes, correction.change)
            if moved is None:
                return None
            shape = moved
        if limits.violation(self.guard.values(shape)) <= allowed:
            return shape
        self.trouble = "the limits cannot be kept"
        return None

    # -- results --------------------------------------------------------------------------------------------------

    def plan(self, method: str) -> InverseKinematicsResult:
        """The way so far as a plan."""
        shape = self.shape
        lengths = shape.rest_lengths[self.members]
        lowest = [min(self.guard.margins(each).items(), key=lambda item: item[1]) for each in self.path]
        return InverseKinematicsResult(
            rest_lengths={a.name: float(value) for a, value in zip(self.robot.actuators, lengths, strict=True)},
            shape=shape,
            path=tuple(self.path),
            pose_error=self.goal.error(shape.nodes),
            margins=self.guard.margins(shape),
            lowest_margin=min(lowest, key=lambda item: item[1]),
            iterations=self.steps,
            solves=self.solves,
            method=method,
        )

    def give_up(self, tolerance: float, max_iterations: int) -> UnreachableGoalError:
        """The error: what binds where the way ended, and the nearest pose that a plan from the same start reaches."""
        bound, trouble = self.shape, self.trouble
        self.radius = max(self.radius, 0.01 * self.guard.length_scale)
        binding = self.choose(self.slopes(bound), self.guard.limits, straight=False).binding
        nearest = self.drawn_in()
        for _ in range(CONFIRMATIONS):
            again = Continuation(
                self.robot, PoseGoal(*nearest.pose, self.goal.output), self.path[0], self.preferred,
                self.tension_floor, self.solver, self.posture.length_weight,
            )  # fmt: skip
            if again.walk(tolerance, max_iterations, settle=False):
                nearest = again.shape
                break
            nearest = again.drawn_in()
        return unreachable(self.goal, self.guard, bound, nearest, binding, trouble)

    def drawn_in(self) -> StructureEquilibrium:
        """From where the way ended, the nearest shape a little inside the limits, so that it can be asked for."""
        inside = self.guard.drawn_in(1e-3)
        for _ in range(8):
            slopes = self.slopes(self.shape)
            step = self.choose(slopes, inside, straight=False)
            if inside.violation(self.guard.values(self.shape)) < TOLERANCE and self.stationary(step):
                break
            if not self.advance(slopes, step, inside) and self.radius_spent():
                break
        return self.shape
