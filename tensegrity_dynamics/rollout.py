"""`Rollout`: batch of simulations of one robot in parallel threads, with individual parameters of each member."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import TensegrityError, unknown_name
from .numerics.number_array import number_array
from .robots.model import RobotModel
from .robots.robot import Robot, robot_of
from .simulation import Simulation
from .simulation_interface import STEPPED_MODES


@dataclass(frozen=True, eq=False)
class Rollouts:
    """Result of `Rollout.run`.

    Attributes:
        times: (p + 1,) s.
        configurations, velocities: (count, p + 1, ...) of every member at these times, in the form of its states; NaN
            after the failure of a member.
        problems: reasons of failures by member; empty if there are none.
    """

    times: NDArray[np.float64]
    configurations: NDArray[np.float64]
    velocities: NDArray[np.float64]
    problems: Mapping[int, str]


class Rollout:
    """Batch of simulations of one robot, stepped by threads: for sampling-based predictive control and learning.

    Args:
        robot: robot, or model; or a list with a robot for each member. The robots can differ in everything except
            coordinates and actuators (masses, friction, loads, cables).
        count: number of members, one or more.
        time_step: common step [s]; by default the shortest default step of the members.
        integrator: as in `Simulation`; by default "rattle" if the kind of robot has it.
        parameters: parameters that differ between members, by field of the model, such as "stiffness", "rest_lengths",
            "masses", "damping", "node_masses" or "gravity" of a structure, or "ground.friction" of its ground; each
            with the members along the first axis, (count, ...).
        start: start configuration of all members, as in `Simulation`; by default the equilibrium of each member with
            its parameters.
        threads: number of threads; by default the number of cores available to the process.
        separate: whether every member has a separate simulation (`simulations`), for callers that continue them.
        options: as in `Simulation`.

    Raises:
        TensegrityError: a parameter is unknown, the length of a first axis is not `count`, or an error of `Simulation`,
            with the member.
    """

    def __init__(
        self,
        robot: Robot | RobotModel | list[Robot] | tuple[Robot, ...],
        count: int,
        time_step: float | None = None,
        integrator: str | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        start: Any = None,
        threads: int | None = None,
        separate: bool = False,
        **options: Any,
    ) -> None:
        if not (isinstance(count, int) and count >= 1):
            raise TensegrityError(f"count is {count!r}; give how many members there are, a whole number from 1 on.")
        robots = [robot_of(each) for each in robot] if isinstance(robot, (list, tuple)) else [robot_of(robot)]
        if isinstance(robot, (list, tuple)) and len(robots) != count:
            raise TensegrityError(f"there are {len(robots)} robots for {count} members; give one for each.")
        self.robot = robots[0]
        self.count = count
        self._pool: ThreadPoolExecutor | None = None
        self.threads = threads or len(os.sched_getaffinity(0))
        if integrator is None:
            from .robots.robot_types import type_of

            integrator = "rattle" if "rattle" in type_of(self.robot).integrators else None
        varied = {name: np.asarray(values, dtype=np.float64) for name, values in (parameters or {}).items()}
        for name, values in varied.items():
            if values.shape[:1] != (count,):
                raise TensegrityError(
                    f"parameter {name} has shape {values.shape}, its first axis must be {count} long."
                )

        def make(i: int, step: float | None, model: RobotModel) -> Simulation:
            try:
                base = robots[i % len(robots)]
                robot = base if model is base.model else replace(base, model=model)
                return Simulation(robot, step, integrator, start=start, **options)
            except TensegrityError as error:
                raise TensegrityError(f"member {i}: {error}") from error

        # without individual parameters, members differ in start and commands only: one simulation per thread
        self._has_own = bool(varied) or separate or len(robots) > 1
        made = count if self._has_own else min(count, self.threads)
        bases = [robots[i % len(robots)].model for i in range(made)]
        models = [_with(base, varied, i) if varied else base for i, base in enumerate(bases)]
        members = [make(i, time_step, model) for i, model in enumerate(models)]
        for i, each in enumerate(members):
            one, other = ([a.name for a in member.robot.actuators] for member in (members[0], each))
            if one != other or members[0].state.configuration.shape != each.state.configuration.shape:
                raise TensegrityError(f"member {i} has other coordinates or actuators than member 0.")
        self.time_step = min(each.time_step for each in members)
        self._members = [
            each if each.time_step == self.time_step else make(i, self.time_step, models[i])
            for i, each in enumerate(members)
        ]

    @property
    def simulations(self) -> tuple[Simulation, ...]:
        """Simulations of the members in order. Raises TensegrityError if they have no separate simulations."""
        if not self._has_own:
            raise TensegrityError("members share simulations; make the rollout with separate=True.")
        return tuple(self._members)

    def for_all(self, work: Callable[[Simulation, int], None]) -> None:
        """Call work(simulation, i) for every member with a separate simulation, distributed over the threads."""
        simulations = self.simulations
        count = min(self.threads, self.count)

        def some(thread: int) -> None:
            for i in range(thread, self.count, count):
                work(simulations[i], i)

        if count == 1:
            some(0)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(count)
        list(self._pool.map(some, range(count)))

    def run(
        self,
        set_points: ArrayLike | None = None,
        mode: str = "position",
        *,
        periods: int | None = None,
        period: float,
        start: ArrayLike | None = None,
        velocity: ArrayLike | None = None,
    ) -> Rollouts:
        """Simulate all members from the start, at rest or with a velocity.

        Args:
            set_points: (p, a) for all members, or (count, p, a): set points of all actuators in order, for each period;
                None to hold the positions.
            mode: "position", "velocity" or "effort".
            periods: number of periods if there are no set points.
            period: period [s], rounded to one or more whole steps.
            start, velocity: configuration and velocity, for all members or with the members along the first axis.

        Raises:
            TensegrityError: shapes do not match, a value is not a number, the mode is unknown, or the period is shorter
                than half a step.
        """
        if mode not in STEPPED_MODES:
            raise TensegrityError(unknown_name("mode", mode, STEPPED_MODES))
        actuators = len(self.robot.actuators)
        steps = round(period / self.time_step) if np.isfinite(period) else 0
        if steps < 1:
            raise TensegrityError(f"period is {period} s; give one step ({self.time_step:.3g} s) or more.")
        points: NDArray[np.float64] | None = None
        if set_points is not None:
            points = number_array(set_points, "set_points")
            if points.ndim == 2:
                points = np.broadcast_to(points, (self.count, *points.shape))
            if points.ndim != 3 or points.shape[0] != self.count or points.shape[2] != actuators:
                raise TensegrityError(
                    f"set_points have shape {np.shape(set_points)}, expected (p, {actuators}) or ({self.count}, p, "
                    f"{actuators})."
                )
        if (points is None) == (periods is None):
            raise TensegrityError("give either set_points or periods.")
        number = int(periods or 0) if points is None else points.shape[1]
        shape = np.shape(self._members[0].state.configuration)
        rates = np.shape(self._members[0].state.velocity)
        starts, velocities = self._spread(start, shape, "start"), self._spread(velocity, rates, "velocity")
        configurations = np.full((self.count, number + 1, *shape), np.nan)
        motions = np.full((self.count, number + 1, *rates), np.nan)
        problems: dict[int, str] = {}

        def roll(simulation: Simulation, i: int) -> None:
            simulation.reset()
            if starts is not None:
                simulation.set_state(starts[i])
            if velocities is not None:
                simulation.set_motion(velocities[i])
            configurations[i, 0], motions[i, 0] = simulation.step_arrays(steps=0)
            for p in range(number):
                command = None if points is None else points[i, p]
                configurations[i, p + 1], motions[i, p + 1] = simulation.step_arrays(command, mode, steps)

        def work(thread: int) -> None:
            for i in range(thread, self.count, self.threads):
                try:
                    roll(self._members[i if self._has_own else thread], i)
                except TensegrityError as error:
                    problems[i] = str(error)

        with ThreadPoolExecutor(self.threads) as pool:
            list(pool.map(work, range(min(self.threads, self.count))))
        times = self.time_step * steps * np.arange(number + 1)
        return Rollouts(times, configurations, motions, dict(sorted(problems.items())))

    def _spread(self, values: ArrayLike | None, shape: tuple[int, ...], what: str) -> NDArray[np.float64] | None:
        if values is None:
            return None
        array = number_array(values, what)
        if array.shape not in (shape, (self.count, *shape)):
            raise TensegrityError(f"{what} has shape {array.shape}, expected {shape} or {(self.count, *shape)}.")
        return np.broadcast_to(array, (self.count, *shape))


def _numeric(owner: Any) -> list[str]:
    """Fields of a model, or of a part of it, with numbers or arrays of numbers."""
    values = {key: getattr(owner, key) for key, each in owner.__dataclass_fields__.items() if each.init}
    kinds = {
        key: np.asarray(value).dtype.kind for key, value in values.items() if isinstance(value, float | np.ndarray)
    }
    return [key for key, kind in kinds.items() if kind == "f"]


def _with(model: Any, varied: Mapping[str, NDArray[np.float64]], i: int) -> Any:
    """Model of member i."""
    for name, values in varied.items():
        value: Any = values[i] if values[i].ndim else float(values[i])
        part, _, field = name.partition(".")
        owner: Any = getattr(model, part, None) if field else model
        fields = {key: each for key, each in getattr(owner, "__dataclass_fields__", {}).items() if each.init}
        if (field or part) not in fields:
            raise TensegrityError(unknown_name("parameter", name, _numeric(owner if fields else model)))
        changed = replace(owner, **{field or part: value})
        model = replace(model, **{part: changed}) if field else changed
    return model
