"""Controllers and states that are not of their robot."""

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
        ("joint_position", "single_strut"),
        ("computed_torque", "biglide"),
        ("kinematic", "biglide"),
        ("tendon_length", "three_prism"),
        ("rolling", "six_bar"),
    ],
)
def test_a_state_of_another_robot_is_refused(name, robot):
    """Compiled functions wrote beyond its arrays, which ended the process later; others raised IndexError, or took
    it."""
    robot = load_robot(robot)
    control, state = make_controller(name, robot), RobotState.of(Simulation(robot))
    control.reset(0.0, state)
    whats = {"q": "coordinates", "v": "velocities", "positions": "actuators", "nodes": "nodes"}
    for field, what in whats.items():
        if (value := getattr(state, field)) is None:
            continue
        wrong = replace(state, **{field: np.zeros((len(value) + 1, *value.shape[1:]))})
        for call in (control.command, control.reset):
            with pytest.raises(TensegrityError, match=rf"{field} of shape .*; {robot.name} has {len(value)} {what}"):
                call(0.0, wrong)
    for call in (control.command, control.reset):
        with pytest.raises(TensegrityError, match=r"a pose of shapes \(2,\), \(4,\)"):
            call(0.0, replace(state, pose=(np.zeros(2), state.pose[1])))
