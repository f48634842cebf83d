"""Gymnasium environments for any robot file: `RobotEnv`, and `RobotVectorEnv` in threads.

    env = RobotEnv("tensebot")
    observation, info = env.reset(seed=1)
    observation, reward, terminated, truncated, info = env.step(env.action_space.sample())

The same seed and actions give results that are equal bit for bit, for one robot or as a member of a batch of any size
in any number of threads: member i of `RobotVectorEnv.reset(seed=s)` corresponds to `RobotEnv.reset(seed=s + i)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robots.load_robot import load_robot
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.rollout import Rollout

from .task import Episode, Reward, RobotTask

FAILURE = -100.0
"""Reward of a period in which the simulation fails, which ends the episode."""


def _spaces(task: RobotTask) -> tuple[Any, Any]:
    size = len(task.observation_names)
    return (
        gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float64),
        gymnasium.spaces.Box(-1.0, 1.0, (task.action_size,), np.float64),
    )


class RobotEnv(gymnasium.Env[NDArray[np.float64], NDArray[np.float64]]):
    """Environment of one robot; see `RobotTask` for actions, observations and rewards.

    Args:
        robot: name, file, or robot. episode: number of periods after which an episode is truncated.
        mode, period, goals, reward: see `RobotTask`. time_step, integrator, options: see `Rollout`.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - as gymnasium declares it

    def __init__(
        self,
        robot: str | Path | Robot,
        *,
        mode: str = "velocity",
        period: float = 0.02,
        goals: float = 0.3,
        reward: Reward | None = None,
        episode: int = 500,
        time_step: float | None = None,
        integrator: str | None = None,
        **options: Any,
    ) -> None:
        loaded = robot if isinstance(robot, Robot) else load_robot(robot)
        self.task = RobotTask(loaded, mode, period, goals, reward)
        self._limit = _checked_limit(episode)
        batch = Rollout(loaded, 1, time_step, integrator, separate=True, **options)
        self._episode = Episode(self.task, batch.simulations[0])
        self.observation_space, self.action_space = _spaces(self.task)
        self.render_mode = None

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        """Reset to rest at the start, with a new random goal; the same seed gives the same goal."""
        super().reset(seed=seed)
        return self._episode.begin(self.np_random), {"goal": self._episode.goal}

    def step(self, action: NDArray[np.float64]) -> tuple[NDArray[np.float64], float, bool, bool, dict[str, Any]]:
        """Simulate one period."""
        observation, reward, problem = self._episode.step(action)
        info: dict[str, Any] = {"problem": problem} if problem else {}
        return observation, FAILURE if problem else reward, bool(problem), self._episode.steps >= self._limit, info


class RobotVectorEnv(VectorEnv[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]):
    """Batch of one robot in threads; a member whose episode has ended is reset at its next step.

    Args:
        robot, mode, period, goals, reward, episode, time_step, integrator, options: see `RobotEnv`.
        count: number of members. parameters: parameters that differ between members, (count, ...), see `Rollout`.
            threads: number of threads; None: number of cores available to this process.
    """

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP, "render_modes": []}  # noqa: RUF012 - as gymnasium declares it

    def __init__(
        self,
        robot: str | Path | Robot,
        count: int,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        threads: int | None = None,
        mode: str = "velocity",
        period: float = 0.02,
        goals: float = 0.3,
        reward: Reward | None = None,
        episode: int = 500,
        time_step: float | None = None,
        integrator: str | None = None,
        **options: Any,
    ) -> None:
        loaded = robot if isinstance(robot, Robot) else load_robot(robot)
        self.task = RobotTask(loaded, mode, period, goals, reward)
        self._limit = _checked_limit(episode)
        self.batch = Rollout(
            loaded, count, time_step, integrator, parameters=parameters, threads=threads, separate=True, **options
        )
        self._episodes = [Episode(self.task, each) for each in self.batch.simulations]
        self._randoms = [np.random.default_rng() for _ in range(count)]
        self._ended = np.zeros(count, dtype=np.bool_)
        self.num_envs = count
        self.single_observation_space, self.single_action_space = _spaces(self.task)
        self.observation_space = batch_space(self.single_observation_space, count)
        self.action_space = batch_space(self.single_action_space, count)
        self.render_mode = None

    def reset(  # type: ignore[override]
        self, *, seed: int | Sequence[int | None] | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        """Reset all members; member i uses seed + i, or its entry of a list."""
        seeds = [None if seed is None else seed + i for i in range(self.num_envs)] if not _is_list(seed) else list(seed)  # type: ignore[operator,arg-type]
        if len(seeds) != self.num_envs:
            raise TensegrityError(f"{len(seeds)} seeds for {self.num_envs} members; give one for each.")
        for i, each in enumerate(seeds):
            if each is not None:
                self._randoms[i] = gymnasium.utils.seeding.np_random(each)[0]
        self._ended[:] = False
        observations = [episode.begin(random) for episode, random in zip(self._episodes, self._randoms, strict=True)]
        return np.array(observations), {}

    def step(
        self, actions: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], Any, Any, dict[str, Any]]:
        """Simulate one period of all members; terminated and truncated are bool (n,)."""
        requested = np.asarray(actions, dtype=np.float64)
        if requested.shape != (self.num_envs, self.task.action_size):
            raise TensegrityError(
                f"actions have shape {requested.shape}, expected ({self.num_envs}, {self.task.action_size})."
            )
        observations = np.zeros((self.num_envs, len(self.task.observation_names)))
        rewards = np.zeros(self.num_envs)
        terminated, truncated = np.zeros(self.num_envs, np.bool_), np.zeros(self.num_envs, np.bool_)
        problems = [""] * self.num_envs

        def work(_: Any, i: int) -> None:
            if self._ended[i]:
                return
            observations[i], rewards[i], problems[i] = self._episodes[i].step(requested[i])

        self.batch.for_all(work)
        for i, episode in enumerate(self._episodes):  # goals are drawn one by one, with one equilibrium map
            if self._ended[i]:
                observations[i] = episode.begin(self._randoms[i])
                continue
            terminated[i], truncated[i] = bool(problems[i]), episode.steps >= self._limit
            if problems[i]:
                rewards[i] = FAILURE
        self._ended = terminated | truncated
        return observations, rewards, terminated, truncated, {"problem": problems} if any(problems) else {}


def _is_list(seed: object) -> bool:
    return isinstance(seed, (list, tuple, np.ndarray))


def _checked_limit(episode: int) -> int:
    if not (isinstance(episode, int) and episode >= 1):
        raise TensegrityError(f"episode is {episode!r}; give a whole number of periods, 1 or more.")
    return episode
