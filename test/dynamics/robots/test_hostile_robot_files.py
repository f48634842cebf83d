"""Robot files whose fields are deleted, renamed, doubled or spoiled: a robot, or an error that names the file."""

from __future__ import annotations

import random
import warnings
from typing import Any

import numpy as np
import pytest
from hostile_robots import TEXTS, at, dumped, hostile_text, plain, scaled_text

from tensegrity_dynamics import Simulation
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robots.load_robot import parse_robot
from tensegrity_dynamics.robots.report import Section
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.robots.robot_types import type_of

MOST_STEPS = 2000


def changed(name: str, **values: Any) -> str:
    """A shipped robot file with values at paths such as members__4__rest_length."""
    data = plain(TEXTS[name])
    for path, value in values.items():
        keys = tuple(int(key) if key.isdigit() else key for key in path.split("__"))
        at(data, keys[:-1])[keys[-1]] = value
    return dumped(data)


def loaded(text: str) -> Robot | None:
    """The robot of a text; None where it is refused, which names the file and is no flood of words."""
    try:
        return parse_robot(text, "hostile.yaml")
    except TensegrityError as error:
        said = str(error)
    assert said.startswith("hostile.yaml:") and "Traceback" not in said, said
    assert all(len(line) < 6000 for line in said.splitlines()), said
    return None


def simulated(robot: Robot) -> Any:
    """State after 0.1 s, or after as many steps as there is time for."""
    simulation = Simulation(robot)
    simulation.advance(min(MOST_STEPS, max(1, round(0.1 / simulation.time_step))))
    return simulation.observe()


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(k, marks=pytest.mark.long) for k in range(3, 100))])
def test_a_robot_file_with_anything_in_any_field_is_a_robot_or_refused_naming_the_file(seed: int) -> None:
    draw = random.Random(seed)
    found = [loaded(hostile_text(draw)) for _ in range(30)]
    assert any(each is None for each in found)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(300))
def test_a_robot_with_numbers_of_any_size_is_checked_and_simulated_or_refused(seed: int) -> None:
    robot = loaded(scaled_text(random.Random(seed)))
    if robot is None:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for asked in (lambda: type_of(robot).report(robot).check(), lambda: simulated(robot)):
            try:
                found = asked()
            except TensegrityError:
                continue
            pose = getattr(found, "pose", None)
            assert pose is None or np.isfinite(pose[0]).all()


def test_bars_of_a_length_that_no_motion_reaches_are_refused_in_words() -> None:
    robot = parse_robot(changed("tensebot", members__4__rest_length=5.65e15))
    with pytest.raises(TensegrityError, match="the bars cannot reach their lengths"):
        Simulation(robot)


def test_a_step_to_where_loops_hold_another_number_of_motions_is_shortened() -> None:
    robot = parse_robot(changed("manipulator", parameters__l=1e-6))
    assert type_of(robot).report(robot).check().figures["at_rest"] is None


def test_an_effort_at_rest_is_not_stated_where_no_shape_at_rest_was_found() -> None:
    robot = parse_robot(changed("manipulator", parameters__l=1e-6))
    parts = type_of(robot).report(robot).check().parts
    (actuators,) = (each for each in parts if isinstance(each, Section) and each.title == "actuators")
    assert {row[3] for row in actuators.rows} == {"-"}
