"""Learning task: scales of actions, layout of observations, goals and rewards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensegrity_control.inverse_kinematics.equilibrium_map import EquilibriumMap, equilibrium_map
from tensegrity_dynamics.errors import TensegrityError, unknown_name
from tensegrity_dynamics.robots.output_frame import AXES, Pose, pose_error
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.simulation import Simulation
from tensegrity_dynamics.simulation_interface import Observation

MODES = ("velocity", "position", "effort")
GOAL_TRIES = 12
"""Number of times that the step to a goal is halved until there is an equilibrium."""


@dataclass(frozen=True)
class Transition:
    """Inputs of a reward function.

    Attributes:
        robot: the robot. observation: observation after the period. action: (a,) action between -1 and 1.
        configuration, velocity: state after the period in the format of the robot's states; read-only, valid only now.
        before: configuration at the start of the period. goal: goal pose, or None.
        error: (k,) error from the output to the goal along the controlled axes [m], with rotations multiplied by the
            reach; empty without a goal.
        period: s.
    """

    robot: Robot
    observation: Observation
    action: NDArray[np.float64]
    configuration: NDArray[np.float64]
    velocity: NDArray[np.float64]
    before: NDArray[np.float64]
    goal: Pose | None
    error: NDArray[np.float64]
    period: float


Reward = Callable[[Transition], float]


def goal_reward(transition: Transition) -> float:
    """Negative distance to the goal [m], with rotations multiplied by the reach of the output."""
    return -float(np.linalg.norm(transition.error))


def forward_reward(transition: Transition) -> float:
    """Speed of the mean of the nodes along x [m/s], for free-standing structures, which accept no goals."""
    return float((transition.configuration - transition.before).mean(axis=0)[0]) / transition.period


class RobotTask:
    """Learning task for a robot: actions between -1 and 1, observations as one array, random reachable goals.

    Args:
        robot: robot with actuators.
        mode: meaning of actions from -1 to 1: "velocity", fraction of the largest rate; "position", from the lowest to
            the highest position; "effort", from minus to plus the largest effort for joints, from the minimum tension
            to the largest effort for tendons.
        period: duration of one action [s].
        goals: width of the range of goals around the pose at rest, as a fraction of the travel of the actuators; zero:
            the pose at rest.
        reward: reward of one period; None: `goal_reward`, or `forward_reward` for free-standing structures. With a
            custom reward, a robot without a stable shape at rest is possible as well, without goals.

    Attributes:
        observation_names: name of every number of an observation, with its unit. reward: reward function in use.

    Raises:
        TensegrityError: no actuators, an unknown mode, a number out of range, no default reward for this robot, or no
            shape at rest from which goals could be drawn.
    """

    def __init__(
        self,
        robot: Robot,
        mode: str = "velocity",
        period: float = 0.02,
        goals: float = 0.3,
        reward: Reward | None = None,
    ) -> None:
        if not robot.actuators:
            raise TensegrityError(f"{robot.name} has no actuators, so nothing can be done; add some to its file.")
        if mode not in MODES:
            raise TensegrityError(unknown_name("mode of actions", mode, MODES))
        for what, value, least in (("period", period, 1e-9), ("goals", goals, 0.0)):
            if not (np.isfinite(value) and value >= least):
                raise TensegrityError(f"{what} is {value}; give a finite number{' above zero' if least else ''}.")
        self.robot, self.mode, self.period, self.goals = robot, mode, float(period), float(goals)
        self._takes_goals = bool(robot.outputs) and not robot.model.takes_no_goals
        self._equilibria: EquilibriumMap[Any] | None = None
        low, high = _action_limits(robot, mode)
        self._middle, self._half = 0.5 * (high + low), 0.5 * (high - low)
        if self._takes_goals:
            try:
                self._equilibria = equilibrium_map(robot.model, robot, shapes_only=True)
                self._home = self._equilibria.start()
            except TensegrityError as reason:
                if reward is None:
                    raise TensegrityError(
                        f"{reason} Goals of an environment are shapes at rest: give a reward of your own, and there "
                        "are none."
                    ) from reason
                self._equilibria, self._takes_goals = None, False
        if reward is None:
            if not self._takes_goals and not robot.model.takes_no_goals:
                raise TensegrityError(f"{robot.name} has no output, so no goals; give a reward of your own.")
            reward = goal_reward if self._takes_goals else forward_reward
        self.reward: Reward = reward
        if self._equilibria is not None:
            reach = self._equilibria.reach
            self._rows = robot.output.rows
            self._weights = np.where(self._rows < 3, 1.0, reach)
        self._tension_names = robot.model.tension_names
        self.observation_names = self._names()

    @property
    def action_size(self) -> int:
        """Number of actuators."""
        return len(self.robot.actuators)

    def _names(self) -> tuple[str, ...]:
        units = {each.name: each.units for each in self.robot.actuators}
        names = [
            f"{what} of {name} [{unit[k]}]"
            for k, what in enumerate(("position", "rate", "effort"))
            for name, unit in units.items()
        ]
        names += [f"tension of {name} [N]" for name in self._tension_names]
        if self.robot.outputs:
            output = self.robot.output
            names += [f"{axis} of {output.name} [m]" for axis in "xyz"]
            names += [f"quaternion {part} of {output.name}" for part in "wxyz"]
            names += [f"rate of {axis} of {output.name} [{'m/s' if axis in 'xyz' else 'rad/s'}]" for axis in AXES]
        if self._takes_goals:
            names += [f"{AXES[row]} to the goal [m{'' if row < 3 else ', at the reach'}]" for row in self._rows]
        return tuple(names)

    def set_points(self, action: NDArray[np.float64]) -> NDArray[np.float64]:
        """(a,) set points of an action, which is clipped to -1 and 1.

        Raises:
            TensegrityError: wrong shape, or not finite.
        """
        values = np.asarray(action, dtype=np.float64)
        if values.shape != (self.action_size,) or not np.all(np.isfinite(values)):
            raise TensegrityError(
                f"an action has {self.action_size} finite numbers between -1 and 1, found {action!r}."
            )
        return np.asarray(self._middle + self._half * np.clip(values, -1.0, 1.0))

    def draw_goal(self, random: np.random.Generator) -> Pose | None:
        """Random pose that is an equilibrium for some positions of the actuators; None for robots that accept no
        goals."""
        if self._equilibria is None:
            return None
        home = self._equilibria.positions(self._home)
        spans = np.array([each.position for each in self.robot.actuators])
        requested = home + random.uniform(-1.0, 1.0, home.size) * self.goals * 0.5 * (spans[:, 1] - spans[:, 0])
        offset = np.clip(requested, spans[:, 0], spans[:, 1]) - home
        for halvings in range(GOAL_TRIES):
            try:
                return self._equilibria.solve(home + 0.5**halvings * offset, self._home).pose  # type: ignore[no-any-return]
            except TensegrityError:
                continue
        return self._home.pose  # type: ignore[no-any-return]

    def error(self, observation: Observation, goal: Pose | None) -> NDArray[np.float64]:
        """(k,) error from the output to the goal [m]; empty without a goal."""
        if goal is None or observation.pose is None:
            return np.zeros(0)
        return np.asarray(self._weights * pose_error(goal, observation.pose)[self._rows])

    def observed(self, observation: Observation, error: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) observation array in the order of `observation_names`, including the error (k,) to the goal."""
        tensions = [observation.tensions[name] for name in self._tension_names]
        parts: list[Any] = [*observation.positions.values(), *observation.rates.values(), *observation.efforts.values()]
        parts += tensions
        if self.robot.outputs and observation.pose is not None and observation.twist is not None:
            parts += [*observation.pose[0], *observation.pose[1], *observation.twist]
        return np.concatenate((np.array(parts, dtype=np.float64), error))


def _action_limits(robot: Robot, mode: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rows = {
        "velocity": [(-each.rate, each.rate) for each in robot.actuators],
        "position": [each.position for each in robot.actuators],
        "effort": [
            (each.minimum_tension if each.motion == "tendon" else -each.effort, each.effort) for each in robot.actuators
        ],
    }[mode]
    return np.array([low for low, _ in rows]), np.array([high for _, high in rows])


class Episode:
    """One run of a task on a separate simulation.

    Attributes:
        goal: goal pose, or None. steps: number of periods. observation: last observation (n,).
    """

    def __init__(self, task: RobotTask, simulation: Simulation) -> None:
        self.task, self._simulation = task, simulation
        self._count = max(1, round(task.period / simulation.time_step))
        self.goal: Pose | None = None
        self.steps = 0
        self.observation = np.zeros(len(task.observation_names))

    def begin(self, random: np.random.Generator) -> NDArray[np.float64]:
        """Reset to rest at the start, with a new goal; returns the observation."""
        self._simulation.reset()
        self.goal, self.steps = self.task.draw_goal(random), 0
        seen = self._simulation.observe()
        self.observation = self.task.observed(seen, self.task.error(seen, self.goal))
        return self.observation

    def step(self, action: NDArray[np.float64]) -> tuple[NDArray[np.float64], float, str]:
        """Simulate one period; returns observation, reward, and the reason of a failed simulation ("" without a
        failure).

        Raises:
            TensegrityError: the action has a wrong shape or is not finite.
        """
        task = self.task
        points = task.set_points(action)
        before = np.array(self._simulation.step_arrays(steps=0)[0])
        try:
            configuration, velocity = self._simulation.step_arrays(points, task.mode, self._count)
            seen = self._simulation.observe()
        except TensegrityError as trouble:
            return self.observation.copy(), 0.0, str(trouble)
        self.steps += 1
        period = self._count * self._simulation.time_step
        error = task.error(seen, self.goal)
        reward = task.reward(
            Transition(
                task.robot,
                seen,
                np.asarray(action, np.float64),
                configuration,
                velocity,
                before,
                self.goal,
                error,
                period,
            )
        )
        self.observation = task.observed(seen, error)
        if not np.all(np.isfinite(self.observation)):
            return np.nan_to_num(self.observation), 0.0, "the motion has left all bounds."
        return self.observation, float(reward), ""
