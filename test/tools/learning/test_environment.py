"""Environments for learning: what a member does depends on its seed and its actions, on nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from tensegrity_dynamics import load_robot, shipped_robots
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robots.load_robot import parse_robot
from tensegrity_dynamics.rollout import Rollout
from tensegrity_tools.learning.task import Episode, RobotTask, Transition

PRISM = load_robot("three_prism")


def run(task: RobotTask, episode: Episode, actions: np.ndarray, seed: int) -> np.ndarray:
    """Observations of a whole episode."""
    rows = [episode.begin(np.random.default_rng(seed))]
    for action in actions:
        rows.append(episode.step(action)[0])
    return np.array(rows)


@pytest.fixture(scope="module")
def task() -> RobotTask:
    return RobotTask(PRISM, period=0.01)


def test_observations_have_a_name_for_every_number(task: RobotTask) -> None:
    episode = Episode(task, Rollout(PRISM, 1, separate=True).simulations[0])
    seen = episode.begin(np.random.default_rng(1))
    named = dict(zip(task.observation_names, seen.tolist(), strict=True))
    assert named["position of side_1 [m]"] == pytest.approx(1.0)
    assert named["z of platform [m]"] == pytest.approx(0.954, abs=2e-3)
    assert episode.goal is not None
    assert named["z to the goal [m]"] == pytest.approx(episode.goal[0][2] - named["z of platform [m]"])


def test_actions_stay_within_the_limits_of_the_actuators(task: RobotTask) -> None:
    rates = np.array([each.rate for each in PRISM.actuators])
    assert np.array_equal(task.set_points(np.full(6, 5.0)), rates)
    assert np.array_equal(task.set_points(-np.ones(6)), -rates)
    limits = np.array([each.position for each in PRISM.actuators])
    placed = RobotTask(PRISM, "position")
    assert placed.set_points(np.ones(6)) == pytest.approx(limits[:, 1])
    for wrong in (np.zeros(5), np.full(6, np.nan)):
        with pytest.raises(TensegrityError, match="6 finite numbers"):
            task.set_points(wrong)


def test_goals_can_be_held_and_follow_the_seed(task: RobotTask) -> None:
    first, again, other = (task.draw_goal(np.random.default_rng(seed)) for seed in (4, 4, 5))
    assert first is not None and again is not None and other is not None
    assert np.array_equal(first[0], again[0])
    assert not np.array_equal(first[0], other[0])


def test_members_of_a_batch_have_the_bits_of_one_alone(task: RobotTask) -> None:
    actions = np.random.default_rng(0).uniform(-1.0, 1.0, (4, 6))
    alone = run(task, Episode(task, Rollout(PRISM, 1, separate=True).simulations[0]), actions, 7)
    for threads in (1, 3):
        batch = Rollout(PRISM, 3, threads=threads, separate=True)
        found: dict[int, np.ndarray] = {}
        episodes = [Episode(task, each) for each in batch.simulations]
        starts = [episode.begin(np.random.default_rng(7)) for episode in episodes]
        batch.for_all(lambda _, i: found.__setitem__(i, np.array([episodes[i].step(a)[0] for a in actions])))  # noqa: B023
        for i in range(3):
            assert np.array_equal(alone, np.vstack((starts[i], found[i])))


def test_the_reward_is_what_was_asked_for(task: RobotTask) -> None:
    seen: list[Transition] = []

    def reward(transition: Transition) -> float:
        seen.append(transition)
        return 42.0

    own = RobotTask(PRISM, period=0.01, reward=reward)
    simulation = Rollout(PRISM, 1, separate=True).simulations[0]
    episode = Episode(own, simulation)
    episode.begin(np.random.default_rng(1))
    assert episode.step(np.ones(6))[1] == 42.0
    assert seen[0].action == pytest.approx(np.ones(6))
    usual = Episode(task, simulation)
    usual.begin(np.random.default_rng(1))
    observation, paid, problem = usual.step(np.ones(6))
    assert not problem
    assert paid == pytest.approx(-np.linalg.norm(observation[-3:]))


def test_robots_that_cannot_be_learned_are_refused() -> None:
    bare = "kind: structure\nname: bare\n"
    bare += "nodes: {a: {position: [0, 0, 1], fixed: true}, b: {position: [0, 0, 0], mass: 1}}\n"
    bare += "members: [{name: ab, kind: tendon, nodes: [a, b], rest_length: 1, stiffness: 1000}]\n"
    with pytest.raises(TensegrityError, match="no actuators"):
        RobotTask(parse_robot(bare))
    driven = bare + "actuators: [{drives: ab, position: [0.5, 1.5], rate: 0.1, effort: 50}]\n"
    with pytest.raises(TensegrityError, match="no output, so no goals; give a reward"):
        RobotTask(parse_robot(driven))
    with pytest.raises(TensegrityError, match="Did you mean 'velocity'"):
        RobotTask(PRISM, "velocities")


def test_rollouts_that_share_simulations_hand_none_out() -> None:
    with pytest.raises(TensegrityError, match="separate=True"):
        Rollout(PRISM, 2, threads=1).simulations  # noqa: B018


# -- with gymnasium -------------------------------------------------------------------------------------------------


def test_the_checker_of_gymnasium_is_content() -> None:
    pytest.importorskip("gymnasium", reason="gymnasium is not installed (extra `gymnasium`)")
    from gymnasium.utils.env_checker import check_env

    from tensegrity_tools.learning.environment import RobotEnv

    check_env(RobotEnv(PRISM, period=0.005, episode=3), skip_render_check=True)


def test_members_of_a_vector_environment_begin_anew_and_have_their_seeds() -> None:
    pytest.importorskip("gymnasium", reason="gymnasium is not installed (extra `gymnasium`)")
    from tensegrity_tools.learning.environment import RobotEnv, RobotVectorEnv

    stiffness = np.tile(PRISM.structure.stiffness, (2, 1)) * np.array([[1.0], [0.9]])
    vector = RobotVectorEnv(PRISM, 2, parameters={"stiffness": stiffness}, period=0.005, episode=2, threads=2)
    alone = RobotEnv(PRISM, period=0.005, episode=2, time_step=vector.batch.time_step)
    first, _ = vector.reset(seed=3)
    assert np.array_equal(first[0], alone.reset(seed=3)[0])
    actions = np.ones((2, 6))
    for step in range(2):
        seen, _, terminated, truncated, _ = vector.step(actions)
        assert np.array_equal(seen[0], alone.step(actions[0])[0])
        assert not terminated.any()
        assert truncated.all() == (step == 1)
    assert not np.array_equal(seen[0], seen[1])
    seen, rewards, _, truncated, _ = vector.step(actions)  # this step begins anew
    assert np.array_equal(seen[0], alone.reset()[0])
    assert not truncated.any() and not rewards.any()


CRANE = """
kind: mechanism
name: crane
gravity: [0, 0, -9.81]
bodies:
  drum: {mass: 0.5, inertia: [0.001, 0.001, 0.001]}
  load: {mass: 2.0, inertia: [0.02, 0.02, 0.02]}
joints:
  - {name: turns, kind: revolute, parent: world, body: drum, axis: [0, 1, 0]}
  - {name: rail, kind: prismatic, parent: world, body: load, frame: {at: [0.45, 0, 0.2]}}
routed_cables:
  - name: rope
    young: 2.0e+9
    cable_radius: 0.001
    damping: 1.0e+5
    tension: 15.0
    route:
      - {joint: turns, radius: 0.05, side: 1, wound: 7}
      - {body: world, at: [0.4, 0, 1.0], axis: [0, 1, 0], radius: 0.05, side: 1, friction: 0.3}
      - {body: load, at: [0, 0, 0.1]}
actuators: [{drives: turns, position: [-3, 3], rate: 5.0, effort: 10.0}]
outputs: [{name: load, body: load, controlled: [z]}]
"""
STRETCH = "    young: 2.0e+9\n    cable_radius: 0.001\n    damping: 1.0e+5\n    tension: 15.0\n"
RIGID = CRANE.replace(STRETCH, "    rigid: true\n")


@pytest.mark.long
def test_a_robot_whose_cable_rubs_is_an_environment() -> None:
    pytest.importorskip("gymnasium", reason="gymnasium is not installed (extra `gymnasium`)")
    from gymnasium.utils.env_checker import check_env

    from tensegrity_tools.learning.environment import RobotEnv

    env = RobotEnv(parse_robot(CRANE), episode=3)
    check_env(env, skip_render_check=True)
    heights = [env.reset(seed=seed)[1]["goal"][0][2] for seed in (1, 2, 3, 1)]
    assert heights[0] == heights[3]
    assert np.ptp(heights) > 0.01


HOIST = """
kind: mechanism
name: hoist
gravity: [0, 0, -9.81]
bodies: {weight: {mass: 2, inertia: [0.01, 0.01, 0.01]}}
joints: [{name: guide, kind: prismatic, parent: world, body: weight, axis: [0, 0, 1], start: [-0.8]}]
cables:
  - {name: rope, body: world, at: [0, 0, 0], block_axis: [0, 0, 1], pulley_axis: [0, -1, 0], pulley_radius: 0.05,
     pulley: [{kind: cylinder, size: [0.05, 0.01]}], anchor: {body: weight, at: [0.05, 0, 0]}, cable_radius: 0.001,
     variant: rigid}
actuators: [{drives: rope, position: [-5, 5], rate: 50, effort: 10}]
outputs: [{name: hook, body: weight, controlled: [z]}]
"""


def test_a_cable_that_would_have_to_push_ends_the_episode_and_the_checker_is_content() -> None:
    pytest.importorskip("gymnasium", reason="gymnasium is not installed (extra `gymnasium`)")
    from gymnasium.utils.env_checker import check_env

    from tensegrity_tools.learning.environment import FAILURE, RobotEnv

    env = RobotEnv(parse_robot(HOIST), mode="effort", episode=3)
    check_env(env, skip_render_check=True)
    first = env.reset(seed=1)[0]
    seen, paid, terminated, _, info = env.step(-np.ones(1))  # 200 N against the rope
    assert terminated
    assert paid == FAILURE
    assert "would have to push" in info["problem"]
    assert seen is not first
    assert np.array_equal(seen, first)


@pytest.mark.long
def test_a_robot_without_a_shape_at_rest_is_an_environment_with_a_reward_of_its_own() -> None:
    pytest.importorskip("gymnasium", reason="gymnasium is not installed (extra `gymnasium`)")
    from gymnasium.utils.env_checker import check_env

    from tensegrity_tools.learning.environment import RobotEnv

    with pytest.raises(TensegrityError, match=r"rope slips at .* Goals of an environment are shapes at rest"):
        RobotEnv(parse_robot(RIGID))
    with pytest.raises(TensegrityError, match="four_prism is not stable"):
        RobotEnv("four_prism")

    def height(transition: Transition) -> float:
        assert transition.goal is None
        return float(transition.configuration[:, 2].mean())

    env = RobotEnv("four_prism", reward=height, episode=3)
    check_env(env, skip_render_check=True)


@pytest.mark.long
@pytest.mark.parametrize("name", sorted({*shipped_robots()} - {"four_prism"}))  # which has no stable shape
def test_the_checker_is_content_with_every_shipped_robot(name: str) -> None:
    pytest.importorskip("gymnasium", reason="gymnasium is not installed (extra `gymnasium`)")
    from gymnasium.utils.env_checker import check_env

    from tensegrity_tools.learning.environment import RobotEnv

    check_env(RobotEnv(name, episode=3), skip_render_check=True)
