"""Choice of self-stress that gives the output a desired stiffness in one direction.

Of the tensions T + N z that hold a pose, between floor and ceiling, the choice is nearest to a desired level and has
the stiffness s(T) = s*:

    min |T - T_level|^2   s.t.   s + ds/dz (z - z_0) = s*,   T_low <= T <= T_high

Each call makes one Newton step, so that successive calls follow a moving robot. If no self-stress within the limits
gives s*, the nearest one is chosen, and the active limits are named.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from scipy.optimize import linprog

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.mechanisms.statics.tension_stiffness import TensionStiffness
from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.robot import Robot

from ..optimization.quadratic_program import SOLVED, QPSolver, QuadraticProgram, Sizes
from ..optimization.solvers import DEFAULT_SOLVER, make_solver

STEP = 1e-3
"""Step of the finite differences along a self-stress, as a fraction of the mean tension."""
HEAVY = 1e6
"""Weight of the stiffness relative to that of the level."""
TOLERANCE = 0.01
"""Relative error of the stiffness above which it is reported."""
WALKS = 8
"""Largest number of linear programs to find an end of the range; two are typical."""
SMOOTHING = 0.1
"""s, time constant of the transition between tensions, so that a new desired stiffness causes no jerk."""
STEPS_AT_REST = 12
"""Largest number of Newton steps for the tensions of a pose at rest."""


class StiffnessChoice:
    """Choice of self-stress; see the module.

    Args:
        robot: a mechanism with driven cables.
        direction: (3,) in the world frame.
        stiffness: s* [N/m].

    Attributes:
        missing: relative deficit (+) or excess (-) of the stiffness at the last choice.
        pressing: names of the floors and ceilings that were active then, if there is a deficit or excess.

    Raises:
        TensegrityError: a number is out of range, or the robot has no such cables.
    """

    def __init__(self, robot: Robot, direction: Array, stiffness: float) -> None:
        if not (np.isfinite(stiffness) and stiffness > 0.0):
            raise TensegrityError(f"the stiffness is {stiffness}; give N/m above zero.")
        self.model, self.stiffness = TensionStiffness(robot, direction), float(stiffness)
        self.missing, self.pressing = 0.0, ()  # type: float, tuple[str, ...]
        self._solver: QPSolver | None = None
        self._size = 0

    def choose(self, q: Array, tension: Array, level: Array, low: Array, high: Array) -> Array:
        """(c,) N, new tensions at q (nq,), from `tension` (c,), which need not be in balance.

        Args:
            level, low, high: (c,) N, low <= high.
        """
        steps = self.steps(q, tension, level, low, high)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return np.asarray(end.value)

    def steps(self, q: Array, tension: Array, level: Array, low: Array, high: Array) -> Generator[None, None, Array]:
        """Generator of `choose` in parts of about a millisecond, so that a control period has to run only one of
        them."""
        here, stress = self.model.self_stresses(q, tension)
        yield
        value, step = self.model.value(q, here), self._step(here)
        slope = np.zeros(stress.shape[1])
        for k, column in enumerate(stress.T):
            yield
            slope[k] = (self.model.value(q, here + step * column) - value) / step
        yield
        if not stress.shape[1] or not np.any(slope):
            self._judge(value, here, low, high)
            return here
        z = self._nearest(here, stress, slope, level, low, high, self.stiffness - value)
        chosen = here + stress @ z
        foreseen = value + float(slope @ z)
        self._judge(foreseen, chosen, low, high)
        return np.asarray(chosen)

    def settle(self, q: Array, tension: Array, level: Array, low: Array, high: Array) -> Array:
        """As `choose`, repeated until it converges, for a robot at rest.

        Raises:
            TensegrityError: the stiffness is outside the range of the self-stress within the limits.
        """
        for _ in range(STEPS_AT_REST):
            before = tension
            tension = self.choose(q, tension, level, low, high)
            if float(np.max(np.abs(tension - before))) < 1e-6 * max(1.0, float(np.max(np.abs(tension)))):
                break
        self.missing = 1.0 - self.model.value(q, tension) / self.stiffness
        if abs(self.missing) > TOLERANCE:
            self._refuse(q, tension, low, high)
        return tension

    def _refuse(self, q: Array, tension: Array, low: Array, high: Array) -> None:
        if not self.model.self_stresses(q, tension)[1].shape[1]:
            raise TensegrityError(
                f"the cables have no self-stress that could hold a stiffness of {self.stiffness:.4g} N/m: it is "
                f"{self.model.value(q, tension):.4g} N/m along {np.round(self.model.direction, 3).tolist()} here, "
                "whatever their tensions. Set `stiffness` to 0."
            )
        least, most = self.range(q, tension, low, high)
        because = f" ({', '.join(self.pressing)})" if self.pressing else ""
        raise TensegrityError(
            f"a stiffness of {self.stiffness:.4g} N/m along {np.round(self.model.direction, 3).tolist()} is out of "
            f"reach of the self-stress here: between floors and ceilings of the tensions it goes from {least:.4g} to "
            f"{most:.4g} N/m{because}. Choose one in between, or change floor or ceiling."
        )

    def range(self, q: Array, tension: Array, low: Array, high: Array) -> tuple[float, float]:
        """Smallest and largest stiffness [N/m] between floors and ceilings at q (nq,)."""
        high = np.minimum(high, self.model.ceiling)
        start, stress = self.model.self_stresses(q, tension)
        rows, right = np.vstack((stress, -stress)), np.concatenate((high - start, start - low))

        def farthest(slope: Array) -> Array | None:
            found = linprog(slope, A_ub=rows, b_ub=right, bounds=(None, None))
            return np.asarray(start + stress @ found.x) if found.status == 0 else None

        # in symmetric robots the stiffness may be stationary: the ends of each self-stress are tried as well
        corners = [farthest(sign * each) for each in np.eye(stress.shape[1]) for sign in (1.0, -1.0)]
        begins = [start, *(each for each in corners if each is not None)]
        values = [self.model.value(q, each) for each in begins]
        ends = []
        for sign in (1.0, -1.0):
            first = int(np.argmin(sign * np.array(values)))
            here, best = begins[first], sign * values[first]
            for _ in range(WALKS if stress.shape[1] else 0):
                ahead = farthest(sign * self._slope(q, here, stress)[1])
                value = np.inf if ahead is None else sign * self.model.value(q, ahead)
                if ahead is None or value > best - 1e-6 * abs(best):
                    best = min(best, value)
                    break
                here, best = ahead, value
            ends.append(sign * best)
        return min(ends), max(ends)

    def _slope(self, q: Array, tension: Array, stress: Array) -> tuple[float, Array]:
        """s and ds/dz (s,)."""
        value = self.model.value(q, tension)
        step = self._step(tension)
        beside = [self.model.value(q, tension + step * column) for column in stress.T]
        return value, (np.array(beside) - value) / step

    def _step(self, tension: Array) -> float:
        """N, step of the finite differences."""
        return STEP * max(1e-3, float(np.mean(np.abs(tension))))

    def _nearest(
        self, here: Array, stress: Array, slope: Array, level: Array, low: Array, high: Array, missing: float
    ) -> Array:
        """z (s,) of the program of the module."""
        count = stress.shape[1]
        size = float(np.linalg.norm(slope))
        row = slope / size
        program = QuadraticProgram(
            np.eye(count) + HEAVY * np.outer(row, row),
            -stress.T @ (level - here) - HEAVY * (missing / size) * row,
            np.zeros((0, count)), np.zeros(0), np.ascontiguousarray(stress), low - here,
            np.minimum(high, self.model.ceiling) - here, np.full(count, -np.inf), np.full(count, np.inf),
        )  # fmt: skip
        if self._solver is None or self._size != count:
            self._solver, self._size = make_solver(DEFAULT_SOLVER, Sizes(count, 0, len(here))), count
        result = self._solver.solve(program)
        if result.status == SOLVED:
            return np.asarray(result.x)
        return np.asarray(stress.T @ (level - here))  # the limits are infeasible; `qp` reports what is relaxed

    def _judge(self, value: float, tension: Array, low: Array, high: Array) -> None:
        """Store the deficit and the active limits."""
        self.missing = 1.0 - value / self.stiffness
        high = np.minimum(high, self.model.ceiling)
        near = 1e-3 * np.maximum(1.0, np.abs(tension))
        names: list[str] = []
        if abs(self.missing) > TOLERANCE:
            for k, name in enumerate(self.model.cables):
                if tension[k] <= low[k] + near[k]:
                    names.append(f"floor of {name}")
                elif tension[k] >= high[k] - near[k]:
                    names.append(f"ceiling of {name}")
        self.pressing = tuple(names)


class HeldStiffness:
    """A choice for a moving robot: one part of it in every period, with linear transitions in between.

    Args and errors: see `StiffnessChoice`.
    """

    def __init__(self, robot: Robot, direction: Array, stiffness: float) -> None:
        self.choice = StiffnessChoice(robot, direction, stiffness)
        self._from = self._to = self._level = np.zeros(0)
        self._offset, self._time = np.zeros(0), -np.inf
        self._begun = self._began = self._lasts = 0.0
        self._steps: Generator[None, None, Array] | None = None

    def begin(self, q: Array, now: Array, level: Array, low: Array, high: Array) -> None:
        """Start at q (nq,) with present tensions `now` and desired tensions `level`, (c,) N.

        Raises TensegrityError if the stiffness is out of reach.
        """
        self._level, self._steps, self._lasts = np.array(level), None, 0.0
        self._from = self._to = self.choice.settle(q, self._level, self._level, low, high)
        self._offset, self._time = now - self._to, -np.inf

    def tensions(self, time: float, q: Array, low: Array, high: Array) -> Array:
        """(c,) N, tensions at a time [s] at q (nq,)."""
        if self._steps is None:
            self._begun = time
            self._steps = self.choice.steps(np.array(q), self._to, self._level, low.copy(), high.copy())
        try:
            next(self._steps)
        except StopIteration as end:
            now = self._at(time)
            self._from, self._to, self._steps = now, np.asarray(end.value), None
            self._began, self._lasts = time, time - self._begun  # the transition takes as long as the search
        except TensegrityError:  # no finite stiffness at this configuration: the tensions are kept
            self._steps, self.choice.missing, self.choice.pressing = None, 1.0, ("no finite one here",)
        if not np.isfinite(self._time):
            self._time = time
        return self._at(time) + float(np.exp((self._time - time) / SMOOTHING)) * self._offset

    def _at(self, time: float) -> Array:
        share = 1.0 if self._lasts <= 0.0 else min(max((time - self._began) / self._lasts, 0.0), 1.0)
        return np.asarray(self._from + share * (self._to - self._from))

    def relaxed(self) -> list[str]:
        """Message about the error of the stiffness; empty within the tolerance."""
        missing = self.choice.missing
        if abs(missing) <= TOLERANCE:
            return []
        because = f": {', '.join(self.choice.pressing)}" if self.choice.pressing else ""
        return [f"stiffness {'below' if missing > 0.0 else 'above'} by {100.0 * abs(missing):.3g} %{because}"]
