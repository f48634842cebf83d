"""Quadratic program of one control period: efforts for a desired output acceleration, with all cables tight.

    min  1/2 |y'' - y*''|^2_L W + 1/2 |w'' + k w'|^2_M + 1/2 |T - T_want|^2 t / m
    s.t. u_low <= u <= u_high,  T_low <= T <= T_high,  a_low <= q_a'' <= a_high           T, w'', y'' affine in u

(000 (3.2.5)-(3.2.8) and (5.4.2)-(5.4.5); everything but u is eliminated, see `tight_cables`.) L and M are the inertias
at the output and in all coordinates, so that both terms have the same unit and the choice of coordinates and scale has
no effect. The second term is Gauss' principle for the motions that the output leaves free, with a damping k, or with a
posture where they need one (`free_motions`). The third term, with the mean inertia m at the output, couples the free
motions to the desired tensions: if these make a stable shape, the shape stays stable under control even with model
errors. The term also selects among any number of self-stresses. Efforts never leave their bounds. If tensions or joints
cannot stay within theirs, these bounds are relaxed as little as possible by a second program with one slack for each;
tracking is relaxed before them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables
from tensegrity_dynamics.numerics.compilation import Kept, QuickCall, allocation_free, taken
from tensegrity_dynamics.numerics.linear_algebra import cholesky, cholesky_solve
from tensegrity_dynamics.numerics.types import Array

from .free_optimum import free_optimum
from .quadratic_program import INFEASIBLE, SOLVED, QuadraticProgram, Sizes
from .solvers import DEFAULT_SOLVER, make_solver

TRACKING_WEIGHT = 1e4
"""W: weight of the output's acceleration relative to that of the free motions."""
TENSION_WEIGHT = 1e-3
"""t: weight of the deviation of tensions. A larger one keeps tensions closer and damps free motions less."""
CONDITION = 1e-11
"""Weight of the squared efforts, relative to the largest entry of the program, which tracking makes `TRACKING_WEIGHT`
times larger than the others. It chooses the least efforts where nothing else does. At 1e-9 it took 0.4 % off all
tensions at rest, again at every start of the control."""
SLACK_WEIGHT = 1e6
"""Weight of a slack, relative to the largest entry of the program."""
RELAXATION_LIMIT = 1e-6
"""Relaxation of a bound, relative to its scale, above which it is reported."""
TRACKING_TOLERANCE = 0.02
"""Missing acceleration of the output above which tracking counts as relaxed [m/s^2]."""
TURNING_TOLERANCE = 0.1
"""The same for its angular acceleration [rad/s^2]."""


class MotionSolution(NamedTuple):
    """Efforts and their predicted effects.

    Attributes:
        effort: (a,) N m or N. tension: (c,) N of the driven cables.
        output: (k,) predicted acceleration of the output [m/s^2 and rad/s^2].
        actuator: (a,) predicted accelerations of the actuators [rad/s^2 or m/s^2].
        motion: (nv + k,) accelerations of all coordinates, then those of the output again.
        missing: (k,) desired minus predicted acceleration. status: of the program as posed.
        broken: cables and actuators whose tension or motion leaves its bounds, with the amount.
        active: names of the active bounds, as "floor of B1-top", "effort of B1-bot".
    """

    effort: Array
    tension: Array
    output: Array
    actuator: Array
    motion: Array
    missing: Array
    status: str
    broken: tuple[tuple[str, float], ...]
    active: tuple[str, ...]


@allocation_free
def fill_program(equations, kept, desired, drag, weight, total_mass):
    """Write the objective and the constraint rows of the module; `desired` (k,) is the output's acceleration, `drag`
    (n,) the acceleration that opposes the free motions.

    Returns the largest entry of the diagonal of P, whether the objective is finite, and whether `free_optimum` has
    solved the program. `equations` are those that `TightCables` has kept. `kept` are the arrays of `MotionProgram`:
    desired tensions, rows, low and high bounds of tensions (c,) and of the actuators' accelerations (a,), results, and
    scratch. The mean inertia at the output is that of its translational rows `shifts`; without any, `total_mass`.
    """
    tight = taken(equations)[4]
    desired_tension, shifts, bounds, program, residual, inertia, _, low, high, free = taken(kept)
    P, q, C, c_low, c_high = program
    n, inputs = tight.rate_1.shape
    cables, outputs = tight.tension_1.shape[0], tight.output_1.shape[0]
    largest = 0.0
    per_mass = 0.0 if shifts.shape[0] else 1.0 / total_mass
    for k in shifts:
        per_mass += tight.mobility[k, k] / shifts.shape[0]
    weight = weight * per_mass
    for k in range(outputs):
        residual[k] = desired[k] - tight.output_0[k]
        for m in range(outputs):
            inertia[k, m] = tight.mobility[k, m]
        largest = max(largest, inertia[k, k])
    for k in range(outputs):
        inertia[k, k] += 1e-9 * largest
    cholesky(inertia, outputs)
    cholesky_solve(inertia, outputs, residual)  # L times the desired acceleration minus the drift
    for a in range(inputs):
        total = 0.0
        for k in range(outputs):
            total -= TRACKING_WEIGHT * tight.output_1[k, a] * residual[k]
        for i in range(n):
            total += tight.momentum[i, a] * (tight.rate_0[i] + drag[i])
        for c in range(cables):
            part = weight * tight.tension_1[c, a]
            total += part * (tight.tension_0[c] - desired_tension[c])
        q[a] = total
    for b in range(inputs):
        for k in range(outputs):
            residual[k] = tight.output_1[k, b]
        cholesky_solve(inertia, outputs, residual)
        for a in range(b + 1):
            total = 0.0
            for k in range(outputs):
                total += TRACKING_WEIGHT * tight.output_1[k, a] * residual[k]
            for i in range(n):
                total += 0.5 * tight.rate_1[i, a] * tight.momentum[i, b]
                total += 0.5 * tight.rate_1[i, b] * tight.momentum[i, a]
            for c in range(cables):
                part = weight * tight.tension_1[c, a]
                total += part * tight.tension_1[c, b]
            P[a, b] = P[b, a] = total
    largest = 0.0
    for a in range(inputs):
        largest = max(largest, P[a, a])
    for a in range(inputs):
        P[a, a] += CONDITION * largest
        for c in range(cables):
            C[c, a] = tight.tension_1[c, a]
        for b in range(inputs):
            C[cables + a, b] = tight.joint_1[a, b]
    tension_low, tension_high, joint_low, joint_high = bounds
    for c in range(cables):
        c_low[c], c_high[c] = tension_low[c] - tight.tension_0[c], tension_high[c] - tight.tension_0[c]
    total = 0.0
    for a in range(inputs):
        c_low[cables + a] = joint_low[a] - tight.joint_0[a]
        c_high[cables + a] = joint_high[a] - tight.joint_0[a]
        total += q[a]
    finite = np.isfinite(total)
    return largest, finite, finite and free_optimum(P, q, C, c_low, c_high, low, high, *free)


@allocation_free
def fill_slack(hard, largest, soft):
    """Write a program with a slack for each of its rows, all scaled to one, into another program (n + r unknowns).

    Args:
        largest: largest entry of the program, to which the weight of the slacks is relative.
    """
    inputs, rows = hard.q.shape[0], hard.c_low.shape[0]
    for a in range(inputs):
        soft.q[a], soft.x_low[a], soft.x_high[a] = hard.q[a], hard.x_low[a], hard.x_high[a]
        for b in range(inputs):
            soft.P[a, b] = hard.P[a, b]
    for r in range(rows):
        size = 0.0
        for a in range(inputs):
            size = max(size, abs(hard.C[r, a]))
        size = size if size > 0.0 else 1.0
        for a in range(inputs):
            soft.C[r, a] = hard.C[r, a] / size
        soft.c_low[r], soft.c_high[r] = hard.c_low[r] / size, hard.c_high[r] / size
        soft.P[inputs + r, inputs + r] = SLACK_WEIGHT * largest


@allocation_free
def fill_solution(equations, kept, desired, effort, tension, output, joints, motion, missing):
    """Clip efforts (a,) to their bounds and fill the effects: tension (c,), output (k,), joints (a,), motion (nv + k,)
    of all coordinates w'' = G w'' + g and of the output, and the part `missing` (k,) of `desired` (k,).

    Returns whether more than the tolerances (k,) is missing. `equations`, `kept`: see `fill_program`.
    """
    _, _, _, reduction, tight = taken(equations)
    tolerances, low, high = taken(kept)[6:9]
    basis, offset = reduction.basis, reduction.offset
    inputs, misses = effort.shape[0], False
    for a in range(inputs):
        effort[a] = min(max(effort[a], low[a]), high[a])
    for c in range(tension.shape[0]):
        tension[c] = tight.tension_0[c]
        for a in range(inputs):
            tension[c] += tight.tension_1[c, a] * effort[a]
    for k in range(output.shape[0]):
        output[k] = tight.output_0[k]
        for a in range(inputs):
            output[k] += tight.output_1[k, a] * effort[a]
        missing[k] = desired[k] - output[k]
        misses |= abs(missing[k]) > tolerances[k]
        motion[offset.shape[0] + k] = output[k]
    for b in range(inputs):
        joints[b] = tight.joint_0[b]
        for a in range(inputs):
            joints[b] += tight.joint_1[b, a] * effort[a]
    for d in range(offset.shape[0]):
        motion[d] = offset[d]
    for i in range(tight.rate_0.shape[0]):
        rate = tight.rate_0[i]
        for a in range(inputs):
            rate += tight.rate_1[i, a] * effort[a]
        for d in range(offset.shape[0]):
            motion[d] += basis[d, i] * rate
    return misses


@allocation_free
def fill_bounds(
    effort, last, change, left, beyond, rate, v, drive_v, horizon, floor, reserve, effort_low, effort_high, joint_low,
    joint_high, tension_low, tension_high,
):  # fmt: skip
    """Fill bounds of efforts (a,), bounds of the accelerations that keep actuators within ranges and rates for
    `horizon` s, and lower bounds of tensions (c,).

    Args:
        effort, rate: (a,) limits. left: (2, a) ranges left downwards and upwards, see `ActuatorBorder`, and `beyond`
            (2, a) what may be used in addition. last: (a,) previous efforts. change: largest change of an effort, as a
            fraction of its limit. floor, reserve: (c,) least tensions [N], and the reserve above them
            as far as the ceilings `tension_high` permit.
    """
    for c in range(floor.shape[0]):
        tension_low[c] = min(floor[c] + reserve[c], max(floor[c], 0.97 * tension_high[c]))
    for a in range(effort.shape[0]):
        most = effort[a]
        effort_low[a], effort_high[a] = max(-most, last[a] - change * most), min(most, last[a] + change * most)
        speed = v[drive_v[a]]
        low = -2.0 * (left[0, a] + beyond[0, a] + horizon * speed) / horizon**2
        high = 2.0 * (left[1, a] + beyond[1, a] - horizon * speed) / horizon**2
        high = min(high, (rate[a] - speed) / horizon)
        joint_high[a], joint_low[a] = high, min(max(low, (-rate[a] - speed) / horizon), high)


class MotionProgram:
    """Sequence of programs of one robot.

    Args:
        equations: of the robot. solver: of `solvers.SOLVERS`.

    Attributes:
        effort_low, effort_high: (a,) N m or N. tension_low, tension_high: (c,) N. joint_low, joint_high: (a,)
            accelerations. desired_tension: (c,) N; tension_scale: (c,) reference tension [N] of its deviations. The
            entries of all may be changed before each `solve`.
        infeasible, failed: number of programs so far in which floors were relaxed, and that no solver solved.

    Raises:
        TensegrityError: no such solver.
    """

    def __init__(self, equations: TightCables, solver: str = DEFAULT_SOLVER) -> None:
        self.equations = equations
        robot = equations.robot
        inputs, cables = len(robot.actuators), len(equations.cables)
        outputs = equations.parts.axes.size
        self._shifts = np.flatnonzero(equations.parts.axes < 3)
        self._mass = float(sum(body.mass for body in equations.mechanism.bodies))
        self._tolerances = np.where(equations.parts.axes < 3, TRACKING_TOLERANCE, TURNING_TOLERANCE)
        self.effort_high = np.array([each.effort for each in robot.actuators])
        self.effort_low = -self.effort_high
        self.tension_low, self.tension_high = np.zeros(cables), np.full(cables, np.inf)
        self.desired_tension, self.tension_scale = np.zeros(cables), np.ones(cables)
        self.tension_weight = TENSION_WEIGHT
        self.joint_low, self.joint_high = np.full(inputs, -np.inf), np.full(inputs, np.inf)
        rows = cables + inputs
        self._hard = _empty(inputs, rows)._replace(x_low=self.effort_low, x_high=self.effort_high)
        self._soft = _empty(inputs + rows, rows)
        self._soft.C[:, inputs:] = np.eye(rows)
        self._residual, self._inertia = np.zeros(outputs), np.zeros((outputs, outputs))
        self._free = np.zeros(inputs)
        self._solver = make_solver(solver, Sizes(inputs, 0, rows))
        self._kept = Kept(
            self.desired_tension, self._shifts, (self.tension_low, self.tension_high, self.joint_low, self.joint_high),
            (self._hard.P, self._hard.q, self._hard.C, self._hard.c_low, self._hard.c_high), self._residual,
            self._inertia, self._tolerances, self.effort_low, self.effort_high,
            (np.zeros((inputs, inputs)), np.zeros(inputs), np.zeros(inputs), self._free),
        )  # fmt: skip
        self._soft_solver = make_solver(solver, Sizes(inputs + rows, 0, rows))
        self._actuators = tuple(each.name for each in robot.actuators)
        self._fill, self._evaluate = QuickCall(fill_program), QuickCall(fill_solution)
        self._fill_slack = QuickCall(fill_slack)
        self._fill_slack(self._hard, 1.0, self._soft)  # compiled now, not at the first infeasible program
        self.infeasible = self.failed = 0
        self._last = np.zeros(inputs)

    @property
    def program(self) -> QuadraticProgram:
        """The last program as posed; the next `solve` overwrites its arrays."""
        return self._hard

    def solve(self, desired: Array, damping: float, drag: Array | None = None) -> MotionSolution:
        """Efforts at the state of the last `equations.update`.

        Args:
            desired: (k,) acceleration of the output [m/s^2]. damping: k [1/s] of the free motions.
            drag: (n,) acceleration that opposes the free motions, instead of k w'; None: k w'.

        Raises:
            TensegrityError: an input is not finite.
        """
        program = self._hard
        inputs, desired = self._last.size, np.ascontiguousarray(desired, dtype=np.float64)
        largest, finite, solved = self._write(desired, damping * self.equations.arrays.rates if drag is None else drag)
        if not finite:
            raise TensegrityError("the state or the desired acceleration is not finite; there are no efforts for it.")
        if solved:
            return self._solution(desired, self._free.copy(), SOLVED)
        result = self._solver.solve(program)
        status = result.status
        if status != SOLVED:
            self.infeasible += status == INFEASIBLE
            self._fill_slack(program, largest, self._soft)
            result = self._soft_solver.solve(self._soft)
        effort = result.x[:inputs] if result.status == SOLVED else self._held()
        return self._solution(desired, effort, status)

    def unbounded(self, drag: Array) -> Array:
        """Accelerations (n,) for an output that is held, without any bounds; drag: (n,), see `solve`."""
        self._write(np.zeros(self._residual.size), drag)
        effort = np.linalg.solve(self._hard.P, -self._hard.q)
        return np.asarray(self.equations.arrays.rate_0 + self.equations.arrays.rate_1 @ effort)

    def _write(self, desired: Array, drag: Array) -> tuple[float, bool, bool]:
        """Fill the program; returns as `fill_program`."""
        kept, equations = self._kept, self.equations.kept
        found: tuple[float, bool, bool] = self._fill(equations, kept, desired, drag, self.tension_weight, self._mass)
        return found

    def _held(self) -> Array:
        """Command if no solver solves a program: the last efforts."""
        self.failed += 1
        return self._last.copy()

    def _solution(self, desired: Array, effort: Array, status: str) -> MotionSolution:
        names = self.equations.cables
        joints, (output, missing) = np.empty(effort.size), np.empty((2, desired.size))
        tension, motion = np.empty(len(names)), np.empty(self.equations.reduction.offset.size + desired.size)
        misses = self._evaluate(
            self.equations.kept, self._kept, desired, effort, tension, output, joints, motion, missing
        )
        self._last = effort
        broken: list[tuple[str, float]] = []
        active: list[str] = []
        if status != SOLVED:
            low, high = (self.tension_low - tension).tolist(), (tension - self.tension_high).tolist()
            for name, below, above, scale in zip(names, low, high, self.tension_scale.tolist(), strict=True):
                by = max(below, above)
                if by > RELAXATION_LIMIT * scale:
                    broken.append((f"{'floor' if below > above else 'ceiling'} of {name}", by))
        if broken or misses:
            active = self._active(effort, tension, joints)
        return MotionSolution(effort, tension, output, joints, motion, missing, status, tuple(broken), tuple(active))

    def _active(self, effort: Array, tension: Array, joints: Array) -> list[str]:
        """Names of the active bounds."""
        found = []
        for names, what, value, low, high in (
            (self._actuators, ("effort",) * 2, effort, self.effort_low, self.effort_high),
            (self.equations.cables, ("floor", "ceiling"), tension, self.tension_low, self.tension_high),
            (self._actuators, ("position or rate",) * 2, joints, self.joint_low, self.joint_high),
        ):
            rows = zip(names, value.tolist(), low.tolist(), high.tolist(), strict=True)
            for name, here, least, most in rows:
                near = RELAXATION_LIMIT * (1.0 + abs(here))
                if here <= least + near:
                    found.append(f"{what[0]} of {name}")
                elif here >= most - near:
                    found.append(f"{what[1]} of {name}")
        return found


def _empty(unknowns: int, rows: int) -> QuadraticProgram:
    return QuadraticProgram(
        np.zeros((unknowns, unknowns)), np.zeros(unknowns), np.zeros((0, unknowns)), np.zeros(0),
        np.zeros((rows, unknowns)), np.zeros(rows), np.zeros(rows), np.full(unknowns, -np.inf),
        np.full(unknowns, np.inf),
    )  # fmt: skip
