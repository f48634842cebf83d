"""What is left of the efforts that hold an output; `qp` on an arm of cables that reaches where nothing holds it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import qp_loop
from scipy.optimize import linprog

from tensegrity_control import RobotState, make_controller
from tensegrity_control.controllers.qp.borders.holding_reserve import HoldingReserve
from tensegrity_control.optimization.quadratic_program import ITERATION_LIMIT
from tensegrity_dynamics import Simulation
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables
from tensegrity_dynamics.robots.load_robot import parse_robot

CABLE = """{{name: {}, body: world, at: [{}, 0, {}], anchor: {{body: {}, at: [0, 0, {}]}}, block_axis: [0, 0, 1],
     pulley_axis: [0, 1, 0], pulley_radius: 0.02, cable_radius: 0.0015, young: "2 GPa", damping: "5 MPa s", length: 1.0,
     strain: 0.0006, block: [{{kind: cube, size: [0.02]}}], pulley: [{{kind: cylinder, size: [0.02, 0.01]}}]}}"""
CABLES = (
    ("shoulder_front", 0.25, 0.0, "upper", 0.35), ("shoulder_back", -0.25, 0.0, "upper", 0.35),
    ("elbow_front", 0.2, 0.05, "fore", 0.28), ("elbow_back", -0.2, 0.05, "fore", 0.28),
)  # fmt: skip
ARM = """
kind: mechanism
name: cable_arm
gravity: [0, 0, -9.81]
density: 2700
bodies:
  upper: {shapes: [{kind: tube, size: [0.02, 0.018, 0.4], frame: {at: [0, 0, 0.2]}}]}
  fore: {shapes: [{kind: tube, size: [0.02, 0.018, 0.3], frame: {at: [0, 0, 0.15]}}]}
joints:
  - {name: shoulder, kind: revolute, parent: world, body: upper, axis: [0, 1, 0]}
  - {name: elbow, kind: revolute, parent: upper, body: fore, axis: [0, 1, 0], frame: {at: [0, 0, 0.4]}, start: [0.35]}
outputs:
  - {name: hand, body: fore, frame: {at: [0, 0, 0.3]}, controlled: [x, z]}
"""
KEPT = 0.1


def arm_with(effort=2.0):
    """The arm with actuators of an effort limit [N m]."""
    cables = "".join(f"  - {CABLE.format(*each)}\n" for each in CABLES)
    driven = "".join(
        f'  - {{drives: {name}, position: [-10, 10], rate: "6 rad/s", effort: {effort}, minimum_tension: "3 N"}}\n'
        for name, *_ in CABLES
    )
    return parse_robot(f"{ARM}cables:\n{cables}actuators:\n{driven}", "cable_arm.yaml")


@pytest.fixture(scope="module")
def arm():
    """Two struts in a plane, each held by two cables from the ground: where the elbow comes under the line of the cable
    that holds it, no tension does."""
    return arm_with()


def test_the_share_of_the_efforts_is_that_of_a_linear_program(arm):
    equations = TightCables(arm)
    effort, floor = np.array([each.effort for each in arm.actuators]), np.full(4, 3.0)
    reserve, still = HoldingReserve(equations, effort, floor), np.zeros(arm.mechanism.velocity_count)
    arrays = equations.update(np.array(arm.model.initial_configuration), still)
    random, found = np.random.default_rng(3), []
    for _ in range(30):
        rates = equations.reduction.basis[:, : equations.count] @ random.normal(size=equations.count)
        here = equations.moved(np.array(arm.model.initial_configuration), rates, 0.2 * random.random())
        arrays = equations.update(here, still)
        bounds = np.vstack((
            np.hstack((-arrays.tension_1 * effort, np.zeros((4, 1)))),
            np.hstack((np.eye(4), -np.ones((4, 1)))), np.hstack((-np.eye(4), -np.ones((4, 1)))),
        ))  # fmt: skip
        judge = linprog(
            np.array([0.0, 0.0, 0.0, 0.0, 1.0]), bounds, np.concatenate((arrays.tension_0 - floor, np.zeros(8))),
            np.hstack((arrays.output_1 * effort, np.zeros((2, 1)))), -arrays.output_0, bounds=(None, None),
        )  # fmt: skip
        share = reserve.share()
        found.append(share)
        assert (share == np.inf) == (judge.status == 2)
        if judge.status == 0:
            reserve.refuse()
            assert share == pytest.approx(judge.fun, rel=1e-4, abs=1e-6)
        else:
            with pytest.raises(TensegrityError, match="no cable tensions hold the output of cable_arm"):
                reserve.refuse()
    assert min(found) < 0.3 and max(found) > 0.5


def test_what_no_solver_decides_is_proved(arm):
    equations = TightCables(arm)
    effort, floor = np.array([each.effort for each in arm.actuators]), np.full(4, 3.0)
    sure, unsure = (HoldingReserve(equations, effort, floor) for _ in range(2))
    unsure.solvers = (SimpleNamespace(solve=lambda program: SimpleNamespace(status=ITERATION_LIMIT)),)
    random, found, still = np.random.default_rng(3), [], np.zeros(arm.mechanism.velocity_count)
    for _ in range(12):
        rates = equations.reduction.basis[:, : equations.count] @ random.normal(size=equations.count)
        here = equations.moved(np.array(arm.model.initial_configuration), rates, 0.2 * random.random())
        equations.update(here, still)
        unsure.last_share = 0.0
        found.append(np.isfinite(sure.share()))
        assert np.isfinite(unsure.share()) == found[-1]
    assert any(found) and not all(found)


@pytest.mark.parametrize(("share", "refused"), [(0.9, True), (1.1, False)])
def test_a_start_at_which_a_cable_pulls_more_than_its_actuator_holds_is_refused(arm, share, refused):
    most = max(map(abs, Simulation(arm).observe().efforts.values()))
    weaker = arm_with(share * most)
    control, start = make_controller("qp", weaker, period=0.001), RobotState.of(Simulation(weaker))
    if not refused:
        control.reset(0.0, start)
        return
    with pytest.raises(TensegrityError, match=r"of cable_arm pulls with 1\.11 times what its actuator \w+ can hold"):
        control.reset(0.0, start)


@pytest.mark.long
def test_an_arm_of_cables_stops_before_no_tension_holds_it_and_comes_home(arm, monkeypatch):
    monkeypatch.setattr(qp_loop, "robot_named", lambda name: arm)
    made = qp_loop.loop("cable_arm", period=0.0007)  # at longer ones it stops before: it falls away too fast
    made.run(1.5)
    home = made.look().pose[0]
    made.control.set_goal(made.time, home + np.array([0.05, 0.0, -0.02]))
    said, least = set(), 1.0

    def look(time):
        nonlocal least
        least = min(least, made.control.singularity_distance)
        said.update(made.control.relaxed())

    made.run(5.0, look)
    assert least > 0.9 * KEPT and "of the effort limit of elbow_back" in " ".join(said)
    made.run(made.control.set_goal(made.time, home).duration + 0.5)
    assert np.linalg.norm(made.look().pose[0] - home) < 1e-4
