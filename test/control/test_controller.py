"""The values that controllers take and give."""

from __future__ import annotations

import numpy as np
import pytest

from tensegrity_control import RobotState
from tensegrity_control.controller import Command, Controller, Reference, Status
from tensegrity_control.controllers.goal_taker import GoalTaker, checked_goal_taker
from tensegrity_control.inverse_kinematics.pose_goal import make_goal
from tensegrity_control.registry import CONTROLLERS, make_controller, refusals
from tensegrity_control.rehearsal import rehearse
from tensegrity_dynamics import Simulation, load_robot, make_estimator
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robots.robot import Robot


@pytest.mark.parametrize("name", ["three_prism", "single_strut"])
def test_the_state_of_a_simulation_has_its_actuators_pose_and_coordinates(name: str) -> None:
    simulation = Simulation(load_robot(name))
    simulation.advance(5)
    seen, state, found = simulation.observe(), simulation.state, RobotState.of(simulation)
    assert found.pose is not None and found.positions is not None
    assert found.positions.tolist() == list(seen.positions.values())
    assert np.array_equal(found.pose[0], seen.pose[0]) and np.array_equal(found.pose[1], seen.pose[1])
    own = found.nodes if name == "three_prism" else found.q
    assert own is not None and np.array_equal(own, state.configuration)
    assert (found.v is None) == (name == "three_prism")


def test_with_an_estimate_the_state_is_the_estimated_one() -> None:
    robot = load_robot("single_strut")
    simulation, estimator = Simulation(robot), make_estimator(robot)
    simulation.advance(20, velocity={"B1": 0.5})
    estimate = estimator.update(simulation.time, simulation.observe().positions)
    found = RobotState.of(simulation, estimate)
    assert found.q is not None and np.array_equal(found.q, estimate.configuration)
    assert not np.array_equal(found.q, simulation.state.q)


def test_a_goal_says_which_of_its_numbers_the_output_does_not_take() -> None:
    robot = load_robot("single_strut")  # x and y are controlled
    goal = make_goal(robot.output, [0.02, 0.0, 1.005], [1.0, 0.0, 0.0, 0.0])
    upright = np.array([1.0, 0.0, 0.0, 0.0])
    assert goal.note((np.array([0.0, 0.0, 1.0]), upright)).startswith("z of ")
    assert goal.note((np.array([0.5, 0.3, 1.005]), upright)) == ""


class Still(GoalTaker):
    """The least that a controller must say: it keeps the actuators where they are."""

    def __init__(self, robot: Robot) -> None:
        self.robot, self.phase = robot, "idle"

    def reset(self, time: float, state: RobotState) -> None:
        self.state, self.phase = state, "holding"

    def command(self, time: float, state: RobotState | None = None) -> Command:
        assert self.state.positions is not None
        return Command("position", tuple(each.name for each in self.robot.actuators), self.state.positions)

    def reference(self, time: float) -> Reference:
        assert self.state.pose is not None
        return Reference(self.state.pose, np.zeros(6))

    def status(self, time: float) -> Status:
        return Status(self.phase, 1.0, time, None)

    def hold(self, now: float) -> None:
        self.phase = "holding"

    def stop(self, now: float) -> None:
        self.phase = "stopped"

    def release(self) -> None:
        self.phase = "holding"


def test_a_controller_without_goals_refuses_them_and_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CONTROLLERS, "still", Still)
    robot = load_robot("three_prism")
    assert refusals(robot)["still"] == ""
    made = checked_goal_taker(make_controller("still", robot), "still")
    rehearse(made, robot)
    assert made.status(0.0).phase == "stopped"
    with pytest.raises(TensegrityError, match="Still accepts no goals"):
        made.set_goal(0.0, [0.0, 0.0, 0.1])
    with pytest.raises(TensegrityError, match="Still accepts no goals"):
        made.follow(0.0, [(1.0, None, None)])


@pytest.mark.parametrize("name", list(CONTROLLERS))
def test_a_controller_says_what_it_drives_and_with_which_gains(name: str) -> None:
    robots = map(load_robot, ("three_prism", "biglide", "single_strut", "six_bar"))
    robot = next(each for each in robots if refusals(each).get(name) == "")
    made = make_controller(name, robot)
    words = repr(made)
    assert words.startswith(f"<{type(made).__name__} of {robot.name}: idle") and words.endswith(">")
    assert all(f", {gain} {value:.6g}" in words for gain, value in made.gains().items())


def test_a_controller_that_nodes_cannot_stop_is_refused_with_the_class_that_it_needs() -> None:
    bare: Controller = type("Bare", (Controller,), dict(vars(Still)))(load_robot("three_prism"))
    with pytest.raises(TensegrityError, match=r"bare, because they cannot stop it: let Bare .* be a GoalTaker"):
        checked_goal_taker(bare, "bare")
