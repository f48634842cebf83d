"""A loop whose messages come late: what arrives, and what the controller makes of it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tensegrity_control import make_controller
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_tools.runtime.delayed_loop import DelayedLoop, Delays, freezes


def test_a_goal_is_reached_however_late_and_whoever_stands_still_meanwhile():
    robot = load_robot("biglide")
    control = make_controller("qp", robot, period=0.01)
    loop = DelayedLoop(robot, control, 0.01, Delays((0, 2), (0, 1), freezes=((0.15, 0.2),), seed=4))
    home = np.array(control.reference(0.0).pose[0])
    loop.run(0.05)
    arrival = control.set_goal(loop.stamp, home + [0.01, 0.01, 0.0]).arrival  # type: ignore[attr-defined]
    loop.run(arrival - loop.time)
    assert control.status(loop.stamp).phase == "moving"  # it went slower after the freeze
    while control.status(loop.stamp).phase == "moving":
        loop.run(0.1)
        assert loop.time < arrival + 2.0
    loop.run(0.6)
    assert control.gaps == 1  # after the freeze it went on from where the actuators were
    assert control.status(loop.stamp).phase == "holding" and loop.errors[-1] < 1e-4 and not loop.refused


def test_positions_go_on_after_a_freeze_from_where_the_actuators_came_to_rest():
    robot = load_robot("three_rrr")
    control = make_controller("joint_position", robot, period=0.005)
    loop = DelayedLoop(robot, control, 0.005, Delays(freezes=((0.4, 0.3),)))
    home = np.array(control.reference(0.0).pose[0])
    loop.run(0.05)
    control.set_goal(loop.stamp, home + [0.03, 0.0, 0.0], duration=1.0)  # type: ignore[attr-defined]
    loop.run(0.66)  # until the first commands after it
    assert control.gaps == 1 and loop.errors[-1] < 1e-3 < 5e-3 < max(loop.errors)
    loop.run(1.0)
    assert loop.errors[-1] < 1e-3


def test_freezes_are_as_long_as_was_asked_for_and_do_not_overlap():
    found = freezes(3, 100.0, (0.1, 0.5), 3.0)
    assert len(found) > 10 and all(0.1 <= length <= 0.5 for _, length in found)
    assert all(before + length < after for (before, length), (after, _) in pairwise(found))


def test_delays_that_make_no_sense_are_refused():
    for wrong in ({"states": (2, 1)}, {"busy": (0, 1)}, {"freezes": ((-1.0, 0.1),)}, {"latency": "guessed"}):
        with pytest.raises(TensegrityError):
            Delays(**wrong)
