"""Plans that are made anew while the robot moves: what they change, and what calls them off."""

from __future__ import annotations

import numpy as np
import pytest

from tensegrity_control import make_controller
from tensegrity_control.controller import RobotState
from tensegrity_dynamics import Simulation, load_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_tools.experiments.horizon import Case, one_run


@pytest.fixture(scope="module")
def strut():
    return load_robot("single_strut")


def begun(robot, actuation="effort", **parameters):
    """A controller that moves, its simulation, and what it sees."""
    control = make_controller("task", robot, actuation=actuation, **parameters)
    simulation = Simulation(robot, 1e-3)

    def look():
        state = simulation.state
        return RobotState(
            positions=np.array(list(simulation.observe().positions.values())), pose=simulation.observe().pose,
            q=state.q, v=state.v,
        )  # fmt: skip

    control.reset(0.0, look())
    control.set_goal(0.0, control.reference(0.0).pose[0] + np.array([0.03, 0.0, 0.0]), duration=0.5)
    return control, simulation, look


@pytest.mark.long
@pytest.mark.parametrize("case", [Case("push", push=2.0), Case("other cables and masses", error=0.1)])
def test_new_set_points_of_impedances_lessen_unannounced_pushes(case):
    error = {}
    for which in ("offline", "receding"):
        found = one_run("single_strut", which, case, 0.03, 1.0, 0.005, 0.3, 0.05, "impedance")
        assert not found["lost"]
        error[which] = found["rms"]
    assert error["receding"] < 0.85 * error["offline"]


@pytest.mark.long
@pytest.mark.parametrize("push", [5.0, 10.0])
def test_new_set_points_keep_floors_where_a_push_begins_and_ends(strut, push):
    """Taken over at once they let a cable fall to 0.5 N for a period, of a floor of 20 N."""
    error = {}
    for which in ("offline", "receding"):
        found = one_run("single_strut", which, Case("push", push=push), 0.03, 1.0, 0.005, 0.3, 0.05, "impedance")
        assert found["least_tension"] > strut.actuators[0].minimum_tension
        error[which] = found["rms"]
    assert error["receding"] < 0.97 * error["offline"]


@pytest.mark.long
def test_new_plans_keep_floors_where_a_push_has_taken_the_robot_off_its_plan():
    row = one_run("manipulator", "receding", Case("push", push=5.0), 0.03, 1.0, 0.005, 0.3, 0.05)
    assert row["new_plans"] > 10
    assert not row["lost"]
    assert not row["floor"]


@pytest.mark.long
def test_new_plans_lessen_the_error_that_an_unknown_push_makes():
    case = Case("push", push=5.0)
    error = {}
    for which in ("offline", "receding"):
        found = one_run("single_strut", which, case, 0.03, 1.0, 0.005, 0.3, 0.05)
        assert not found["lost"] and found["end"] < 1e-5
        error[which] = found["rms"]
    assert error["receding"] < 0.8 * error["offline"]


@pytest.mark.parametrize("actuation", ["effort", "impedance"])
def test_where_all_is_as_known_new_plans_are_the_old_one(strut, actuation):
    control, simulation, look = begun(strut, actuation, plan="receding_in_step")
    before = control.motion_at(np.inf)[1].plan
    for k in range(60):
        command = control.command(k * 0.005, look())
        timing = {} if actuation == "effort" else {"age": 0.0, "period": 0.005}
        simulation.command(command.mode, command.set_points(), **timing)
        simulation.advance(duration=0.005)
    assert control.replanning.made >= 3
    after = control.motion_at(np.inf)[1].plan
    assert after is not before
    size = before.states.shape[1] // 2
    # what impedances are off their set points is planned for; it is what the elasticity of the loops lets them be
    off = 1.0 if actuation == "effort" else 20.0
    np.testing.assert_allclose(after.states[:, :size], before.states[:, :size], atol=off * 1e-5)
    np.testing.assert_allclose(after.states[:, size:], before.states[:, size:], atol=off * 2e-3)
    np.testing.assert_allclose(after.gains[-1], before.gains[-1])


def test_a_hold_calls_off_the_plan_that_is_being_made(strut):
    control, _, look = begun(strut, plan="receding")
    control.command(0.0, look())
    replanning = control.replanning
    assert replanning.is_planning
    cancellation = replanning.cancellation
    control.hold(0.005)
    assert not replanning.is_planning and "held" in cancellation.reason
    control.command(0.01, look())  # it brakes: nothing is planned anew
    assert not replanning.is_planning and replanning.made == 0


def test_what_cannot_be_planned_anew_is_refused_by_name(strut):
    with pytest.raises(TensegrityError, match="There is no plan 'recedin'"):
        make_controller("task", strut, plan="recedin")
    with pytest.raises(TensegrityError, match=r"horizon is 0\.01"):
        make_controller("task", strut, plan="receding", actuation="effort", horizon=0.01)


def test_offline_plans_take_any_period_since_they_use_no_horizon(strut):
    assert make_controller("task", strut, period=0.05).period == 0.05
