"""Controllers of mechanisms and the states that they are given."""

from dataclasses import replace

import numpy as np
import pytest

from tensegrity_control.controller import RobotState
from tensegrity_control.registry import make_controller
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robots.load_robot import load_robot
from tensegrity_dynamics.simulation import Simulation


@pytest.mark.parametrize(
    ("name", "robot"),
    [
        ("qp", "single_strut"),
        ("near_rigid", "single_strut"),
        ("task", "single_strut"),
        ("computed_torque", "biglide"),
        ("kinematic", "biglide"),
    ],
)
def test_a_state_of_another_robot_is_refused(name, robot):
    """Compiled functions wrote beyond its arrays, which ended the process later; others raised IndexError."""
    robot = load_robot(robot)
    control, state = make_controller(name, robot), RobotState.of(Simulation(robot))
    control.reset(0.0, state)
    for field, what in (("q", "coordinates"), ("v", "velocities"), ("positions", "actuators")):
        count = getattr(state, field).size
        wrong = replace(state, **{field: np.zeros(count + 1)})
        for call in (control.command, control.reset):
            with pytest.raises(TensegrityError, match=rf"{field} of shape .*; {robot.name} has {count} {what}"):
                call(0.0, wrong)
