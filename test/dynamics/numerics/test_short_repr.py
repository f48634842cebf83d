"""What a notebook prints of robots, models and results stays short, however large they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from tensegrity_dynamics import Simulation, forward_kinematics, load_robot, make_estimator, shipped_robots
from tensegrity_dynamics.numerics.short_repr import ShortRepr

LONGEST = 1500
"""Characters."""


@pytest.mark.parametrize("name", shipped_robots())
def test_robots_and_their_models_have_a_short_text(name: str) -> None:
    robot = load_robot(name)
    for each in (robot, robot.model):
        assert len(repr(each)) < LONGEST
    assert f"name='{name}'" in repr(robot)


def test_shapes_states_and_linear_models_have_a_short_text() -> None:
    prism, strut = load_robot("three_prism"), load_robot("single_strut")
    simulation = Simulation(strut)
    for each in (
        forward_kinematics(prism), make_estimator(prism).solve({}), simulation, simulation.state, simulation.observe(),
        simulation.linearise(),
    ):  # fmt: skip
        assert len(repr(each)) < LONGEST


@dataclass(frozen=True, eq=False, repr=False)
class Result(ShortRepr):
    few: np.ndarray
    many: np.ndarray
    names: tuple[str, ...]
    values: dict[str, float]
    nothing: str = ""


def test_small_values_are_printed_and_large_ones_by_their_size() -> None:
    text = repr(Result(np.arange(3.0), np.zeros((40, 3)), tuple("abcde"), {"x": 1.0, "y": 2.0}))
    assert text == (
        "Result(few=[0., 1., 2.], many=array (40, 3), names=('a', 'b', 'c', ... 5 in all), values={'x': 1.0, 'y': 2.0})"
    )
