"""Goals of robots whose output takes all motions: what no tensions hold is refused, by the cable that would push."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_control import RobotState, make_controller
from tensegrity_control.controllers.qp.borders.goal_reach import GoalReach
from tensegrity_dynamics import InfeasibleControlError, Robot, Simulation, parse_robot


def cart(second: bool = False, stiffness: float = 100.0, floor: float = 1.0) -> Robot:
    """A cart on a rail, drawn back by a spring, that a tendon pulls along x from 0.05 m of its rest; `second`: another
    tendon pulls back with it."""
    ropes = "".join(
        f"""
  - name: {name}
    young: 20 GPa
    cable_radius: 1 mm
    damping: 1 MPa s
    tension: {tension}
    route:
      - {{joint: turn_{name}, radius: 0.01, side: 1}}
      - {{body: world, at: [{side * 0.8}, 0, 0]}}
      - {{body: cart, at: [0, 0, 0]}}"""
        for name, side, tension in (("fore", 1, 5.0 + 2.0 * second), ("back", -1, 2.0))[: 1 + second]
    )
    names = ("fore", "back")[: 1 + second]
    reels = "".join(f"\n  reel_{name}: {{mass: 0.01, inertia: [1e-5, 1e-5, 1e-5]}}" for name in names)
    turns = "".join(
        f"\n  - {{name: turn_{name}, kind: revolute, parent: world, body: reel_{name}, axis: [0, 1, 0], "
        f"frame: {{at: [{0.9 if name == 'fore' else -0.9}, 0, -0.05]}}}}"
        for name in names
    )
    motors = "".join(
        f"\n  - {{name: motor_{name}, drives: turn_{name}, position: [-90, 90], rate: 20, effort: 0.5, "
        f"minimum_tension: {floor}}}"
        for name in names
    )
    return parse_robot(
        f"""
kind: mechanism
name: cart
gravity: [0, 0, 0]
bodies:
  cart: {{mass: 0.5, inertia: [1e-3, 1e-3, 1e-3]}}{reels}
joints:
  - {{name: rail, kind: prismatic, parent: world, body: cart, axis: [1, 0, 0], start: [0.05],
     resistance: {{stiffness: {stiffness}, damping: 5}}}}{turns}
routed_cables:{ropes}
actuators:{motors}
outputs:
  - {{name: tip, body: cart, controlled: [x]}}
""",
        "cart.yaml",
    )


ALONE, BETWEEN = GoalReach(cart()), GoalReach(cart(second=True))


def is_refused(reach: GoalReach, robot: Robot, goal: float, floor: float) -> str:
    floors = np.full(len(robot.actuators), floor)
    try:
        reach.refuse(np.array(robot.model.start), (np.array([goal, 0.0, 0.0]), np.array([1.0, 0.0, 0.0, 0.0])), floors)
    except InfeasibleControlError as refused:
        return str(refused)
    return ""


@settings(max_examples=30, deadline=None)
@given(st.floats(-0.05, 0.15), st.floats(0.2, 4.0))
def test_a_goal_is_refused_where_the_spring_would_pull_less_than_the_floor(goal, floor):
    border = floor / 100.0  # m, of F = k x
    found = is_refused(ALONE, cart(), goal, floor)
    if abs(goal - border) > 2e-4:
        assert bool(found) == (goal < border)
        assert not found or "cable fore would fall below" in found


@settings(max_examples=30, deadline=None)
@given(st.floats(-0.15, 0.15), st.floats(0.2, 4.0))
def test_where_another_tendon_pulls_back_no_floor_is_a_border(goal, floor):
    assert not is_refused(BETWEEN, cart(second=True), goal, floor)


def test_a_goal_that_takes_more_effort_than_there_is_names_the_actuator():
    assert "motor_fore exceeds its limit most" in is_refused(ALONE, cart(), 0.502, 1.0)  # 50.2 N of 50 N
    assert not is_refused(ALONE, cart(), 0.498, 1.0)


def test_qp_refuses_at_the_door_and_goes_where_the_spring_lets_it():
    robot = cart()
    simulation, control = Simulation(robot, 1e-3), make_controller("qp", robot, period=0.005)
    control.reset(0.0, RobotState.of(simulation))
    with pytest.raises(InfeasibleControlError, match=r"cable fore would fall below its tension floor of 1\.03 N"):
        control.set_goal(0.0, np.array([0.005, 0.0, 0.0]))
    assert control.set_goal(0.0, np.array([0.03, 0.0, 0.0])).duration > 0.0
