"""Task plans of elastic mechanisms: their model, their optimality, and what following them reaches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tensegrity_control import make_controller
from tensegrity_control.inverse_kinematics.pose_goal import PoseGoal
from tensegrity_control.motion_planning import lqr, output_planner
from tensegrity_control.motion_planning.lqr import LinearPieces, RiccatiSweep, discretized_with_drift, regulator
from tensegrity_control.motion_planning.output_model import OutputModel
from tensegrity_control.motion_planning.output_planner import OutputWeights, equilibria_on_line, plan_output
from tensegrity_control.motion_planning.trajectory_tracking import LinearFeedbackTracker
from tensegrity_control.trajectories.splines import HermiteSpline
from tensegrity_dynamics import Simulation, load_robot
from tensegrity_dynamics.errors import InfeasibleControlError, TensegrityError, UnreachableGoalError
from tensegrity_dynamics.mechanisms import forward_dynamics
from tensegrity_dynamics.mechanisms.cable_substitution import with_cables

PERIOD = 5e-3


def path_around(robot, moves, times):
    """A cubic spline of the output through places relative to the one at rest."""
    home = OutputModel(robot)
    rest = Simulation(robot).observe().pose[0][home.rows]
    return HermiteSpline(times, rest + np.array(moves), np.zeros_like(np.array(moves)))


@pytest.fixture(scope="module")
def manipulator():
    return load_robot("manipulator")


@pytest.fixture(scope="module")
def planned(manipulator):
    model = OutputModel(manipulator)
    path = path_around(manipulator, [[0, 0, 0], [0.0, -0.03, -0.03], [0, 0, 0]], [0.0, 0.6, 1.2])
    return model, path, plan_output(model, path.value, 1.2, PERIOD)


def follow(robot, path, control, start, duration):
    """Largest distance from the path [m] on the way and at the end, and the least tension [N]."""
    simulation = Simulation(robot, 1e-3, start=start)
    errors, least = [], np.inf
    for _ in range(round(duration / PERIOD)):
        state = simulation.state
        simulation.advance(5, effort=control.as_dict(control.effort(state.time, state.q, state.v)))
        seen = simulation.observe()
        errors.append(np.linalg.norm(seen.pose[0][control.model.rows] - path.value(min(seen.time, path.end))))
        least = min(least, *seen.tensions.values())
    return max(errors), errors[-1], least


# -- the model ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["manipulator", "single_strut", "biglide"])
def test_chosen_coordinates_are_all_independent_ones_with_the_drives_among_them(name):
    robot = load_robot(name)
    model = OutputModel(robot)
    freedom = {"manipulator": 12, "single_strut": 5, "biglide": 2}[name]
    assert len(model.names) == freedom
    assert {robot.model.joint_of(each.drives) for each in robot.actuators} <= set(model.names)


def test_linearisation_is_the_derivative_of_the_forward_dynamics(manipulator):
    model, mechanism = OutputModel(manipulator), manipulator.mechanism
    simulation = Simulation(manipulator)
    q = simulation.state.q
    effort = np.array(list(simulation.observe().efforts.values()))
    rate = 0.05 * np.random.default_rng(0).normal(size=12)
    matrix, inputs, acceleration = model.linearised(q, rate, effort)
    jacobian = model.output_jacobian(q)

    def slope(w, speed, torques):
        position = model.closed_configuration(q, w)
        v = model.basis(position) @ speed
        full = np.zeros(39)
        full[model.drives] = torques
        return forward_dynamics(mechanism, position, v, full).acceleration[model.index]

    w = q[model.q_index]
    np.testing.assert_allclose(acceleration, slope(w, rate, effort), atol=1e-7 * np.max(np.abs(acceleration)))
    random, h = np.random.default_rng(1), 1e-5
    change, speed, push = random.normal(size=12), random.normal(size=12), random.normal(size=6)
    sides = [slope(w + s * h * change, rate + s * h * speed, effort + s * h * push) for s in (1.0, -1.0)]
    found = (sides[0] - sides[1]) / (2 * h)
    own = (matrix @ np.concatenate((change, speed)) + inputs @ push)[12:]
    np.testing.assert_allclose(own, found, atol=1e-4 * np.max(np.abs(found)))
    ahead, behind = (model.output_position(model.closed_configuration(q, w + s * h * change)) for s in (1.0, -1.0))
    np.testing.assert_allclose(jacobian @ change, (ahead - behind) / (2 * h), atol=1e-7)


def test_states_along_a_path_are_those_found_one_by_one(manipulator):
    model, random = OutputModel(manipulator), np.random.default_rng(4)
    q = Simulation(manipulator).state.q
    w = q[model.q_index] + np.linspace(0.0, 1.0, 4)[:, None] * 0.01 * random.normal(size=12)
    rates, efforts = 0.1 * random.normal(size=(4, 12)), random.normal(size=(4, 6))
    states = model.outputs_along(q, np.hstack((w, rates)), efforts)
    matrices, _, accelerations = model.linearised_along(states.positions, rates, efforts)
    for k in range(4):
        own = model.closed_configuration(q, w[k])
        np.testing.assert_allclose(states.positions[k], own, atol=1e-11)
        np.testing.assert_allclose(states.points[k, model.rows], model.output_position(own), atol=1e-12)
        np.testing.assert_allclose(states.jacobians[k], model.output_jacobian(own), atol=1e-10)
        alone = model.accelerations(own, rates[k], efforts[k])
        scale = np.max(np.abs(alone))
        np.testing.assert_allclose(states.accelerations[k], alone, atol=1e-8 * scale)
        np.testing.assert_allclose(accelerations[k], alone, atol=1e-8 * scale)
        np.testing.assert_array_equal(matrices[k, :12, 12:], np.eye(12))


def test_configurations_where_loops_do_not_close_are_refused_with_the_first_of_them():
    model = OutputModel(load_robot("biglide"))
    q = np.array(model.robot.model.start)
    w = np.tile(model.coordinates_at(q), (3, 1))
    w[1:, 0] += [5.0, 7.0]
    for starts in (q, np.tile(q, (3, 1))):
        with pytest.raises(TensegrityError, match=rf"cannot close where {model.names[0]} = \S+ \(moved by 5\)"):
            model.closed_configurations(starts, w)


@pytest.mark.parametrize("name", ["stewart", "three_rrr"])
def test_errors_of_outputs_that_turn_are_those_found_one_by_one(name):
    model, random = OutputModel(load_robot(name)), np.random.default_rng(1)
    count = model.index.size
    rows = model.coordinates_at(np.array(model.robot.model.start)) + 0.02 * random.normal(size=(4, count))
    start, inputs = np.array(model.robot.model.start), np.zeros((4, model.drives.size))
    moved = model.outputs_along(start, np.hstack((rows, np.zeros_like(rows))), inputs)
    values = np.array([model.output_position(q) for q in moved.positions])
    values += 0.3 * random.normal(size=values.shape)
    found = [model.output_error(q, each) for q, each in zip(moved.positions, values, strict=True)]
    np.testing.assert_allclose(model.errors_along(moved, values), found, rtol=0, atol=1e-13)


def test_coordinates_that_are_no_choice_are_named(manipulator):
    names = list(OutputModel(manipulator).names)
    with pytest.raises(TensegrityError, match="missing B1-dummyJt"):
        OutputModel(manipulator, names[1:])
    with pytest.raises(TensegrityError, match="There is no coordinate 'B1-dumyJt'"):
        OutputModel(manipulator, ["B1-dumyJt", *names[1:]])
    with pytest.raises(TensegrityError, match=r"floatingJt.wx would be independent without the others"):
        OutputModel(manipulator, ["floatingJt.wx", *names[1:]])


# -- the plan -------------------------------------------------------------------------------------------------------


def test_riccati_sweeps_give_the_least_cost():
    """Against the same quadratic program solved at once as one linear system."""
    random = np.random.default_rng(3)
    size, drives, rows, count = 4, 2, 1, 6
    pieces = LinearPieces(
        np.eye(size) + 0.2 * random.normal(size=(count - 1, size, size)),
        random.normal(size=(count - 1, size, drives)), random.normal(size=(count, rows, size)),
    )  # fmt: skip
    error, defect = random.normal(size=(count, rows)), random.normal(size=(count - 1, size))
    state_cost, effort_cost, output = 0.3 * np.eye(size), 0.7 * np.eye(drives), 0.5
    sweep = RiccatiSweep(pieces, state_cost, effort_cost, output)
    states, inputs = sweep.deviations(defect, error)

    def cost(changes, terminal):
        x, total = np.zeros(size), 0.0
        for k in range(count):
            miss = pieces.jacobian[k] @ x + error[k]
            if k < count - 1:
                total += miss @ miss / output**2 + x @ state_cost @ x + changes[k] @ effort_cost @ changes[k]
                x = pieces.ahead[k] @ x + pieces.push[k] @ changes[k] + defect[k]
        return total + x @ terminal @ x + 2.0 * x @ (pieces.jacobian[-1].T @ error[-1]) / output**2

    from scipy.linalg import solve_discrete_are

    last = pieces.jacobian[-1].T @ pieces.jacobian[-1] / output**2 + state_cost
    terminal = solve_discrete_are(pieces.ahead[-1], pieces.push[-1], last, effort_cost)
    changes = list(inputs[:-1])
    for k in range(count - 1):
        np.testing.assert_allclose(
            states[k + 1], pieces.ahead[k] @ states[k] + pieces.push[k] @ inputs[k] + defect[k], atol=1e-12
        )
    best = cost(changes, terminal)
    for _ in range(50):
        other = [each + 0.01 * random.normal(size=drives) for each in changes]
        assert cost(other, terminal) > best


def test_stacks_are_discretised_as_the_exponential_of_each():
    from scipy.linalg import expm

    random = np.random.default_rng(5)
    matrix, inputs = 30.0 * random.normal(size=(3, 4, 4)), random.normal(size=(3, 4, 2))
    matrix[1, 2] *= 1e2
    matrix[1, 2, 2] = -1e4  # a stiff direction
    ahead, push, drift = discretized_with_drift(matrix, inputs, 0.01)
    for k in range(3):
        block = np.zeros((8, 8))
        block[:4, :4], block[:4, 4:] = matrix[k], np.eye(4)
        whole = expm(0.01 * block)
        scale = np.max(np.abs(whole))
        np.testing.assert_allclose(ahead[k], whole[:4, :4], rtol=1e-9, atol=1e-12 * scale)
        np.testing.assert_allclose(drift[k], whole[:4, 4:], rtol=1e-9, atol=1e-12 * scale)
        np.testing.assert_allclose(push[k], drift[k] @ inputs[k], rtol=1e-12)


def test_digits_that_the_doubling_of_a_regulator_loses_are_recovered(monkeypatch):
    random = np.random.default_rng(0)
    ahead, push = 0.3 * random.normal(size=(6, 6)), random.normal(size=(6, 2))
    exact, gain = regulator(ahead, push, np.eye(6), np.eye(2))
    doubled = lqr._doubled
    monkeypatch.setattr(lqr, "_doubled", lambda *given: doubled(*given) * (1.0 + 1e-8))
    monkeypatch.setattr(lqr, "solve_discrete_are", None)  # which takes several times as long
    value, found = regulator(ahead, push, np.eye(6), np.eye(2))
    np.testing.assert_allclose(value, exact, rtol=0, atol=1e-8 * np.max(exact))
    np.testing.assert_allclose(found, gain, rtol=0, atol=1e-8)


def test_regulators_of_a_stack_solve_their_riccati_equations():
    from scipy.linalg import solve_discrete_are

    random = np.random.default_rng(6)
    ahead, push = np.eye(5) + 0.3 * random.normal(size=(4, 5, 5)), random.normal(size=(4, 5, 2))
    cost, effort = np.diag([1e10, 1e8, 1.0, 1.0, 1e-3]), 100.0 * np.eye(2)
    values, gains = regulator(ahead, push, cost, effort)
    for a, b, value, gain in zip(ahead, push, values, gains, strict=True):
        np.testing.assert_allclose(value, solve_discrete_are(a, b, cost, effort), rtol=1e-6, atol=1e-6 * value.max())
        assert np.max(np.abs(np.linalg.eigvals(a - b @ gain))) < 1.0


def test_plan_keeps_its_output_on_the_path_and_meets_the_dynamics(planned):
    _, _, plan = planned
    assert plan.miss < 1e-5
    assert plan.defect < 1e-5


def test_path_is_followed_and_held_at_its_end(manipulator, planned):
    model, path, plan = planned
    worst, last, least = follow(manipulator, path, LinearFeedbackTracker(model, plan), plan.position, 2.4)
    assert worst < 5e-5 and last < 2e-5
    assert least > 5.0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("scale", [0.9, 1.1])
def test_same_gains_follow_with_other_cables(manipulator, planned, scale):
    model, path, plan = planned
    young = 2e9 * scale
    other = replace(manipulator, model=with_cables(manipulator.model, young=young))
    worst, _, least = follow(other, path, LinearFeedbackTracker(model, plan), plan.position, 1.2)
    assert worst < 2e-4 and least > 5.0


def test_robots_without_free_motions_are_led_alike():
    robot = load_robot("single_strut")
    path = path_around(robot, [[0, 0], [0.1, -0.05], [0, 0]], [0.0, 0.5, 1.0])
    model = OutputModel(robot)
    plan = plan_output(model, path.value, 1.0, PERIOD)
    worst, _, least = follow(robot, path, LinearFeedbackTracker(model, plan), plan.position, 1.5)
    assert worst < 1e-4 and least > 10.0


def test_efforts_beyond_the_limits_are_refused_by_name():
    robot = load_robot("single_strut")
    weak = replace(robot, actuators=tuple(replace(each, effort=4.5) for each in robot.actuators))
    path = path_around(robot, [[0, 0], [0.1, 0.0], [0, 0]], [0.0, 0.15, 0.3])
    with pytest.raises(InfeasibleControlError, match=r"the path needs .* N m of B\d, above its limit of 4\.5"):
        plan_output(OutputModel(weak), path.value, 0.3, PERIOD)


def test_paths_beyond_the_reach_are_refused():
    robot = load_robot("single_strut")
    path = path_around(robot, [[0, 0], [1.5, 0.0], [0, 0]], [0.0, 1.0, 2.0])
    with pytest.raises(UnreachableGoalError, match="out of reach"):
        plan_output(OutputModel(robot), path.value, 2.0, PERIOD)


def test_weights_and_periods_are_checked():
    with pytest.raises(TensegrityError, match="weight output is 0"):
        OutputWeights(output=0.0)
    robot = load_robot("single_strut")
    with pytest.raises(TensegrityError, match="at most a tenth of it"):
        plan_output(OutputModel(robot), lambda t: np.zeros(2), 1.0, 0.5)


@pytest.mark.parametrize(("name", "axis"), [("manipulator", 0), ("single_strut", 1)])
def test_a_goal_out_of_reach_is_refused_with_its_own_distance_however_the_line_to_it_is_divided(name, axis):
    control = make_controller("task", load_robot(name))
    start = control.equilibria.start()
    goal = PoseGoal(start.pose[0] + 5.0 * np.eye(3)[axis], start.pose[1], control.model.output)
    with pytest.raises(UnreachableGoalError) as refused:
        equilibria_on_line(control.model, control.equilibria, start, goal)
    missed = 1e3 * np.linalg.norm(goal.error(refused.value.nearest.pose))
    assert missed > 3000.0
    assert f"it misses the goal by {missed:.5g} mm" in str(refused.value)


def test_a_goal_within_reach_to_which_no_straight_line_leads_is_refused_as_that(monkeypatch):
    control = make_controller("task", load_robot("single_strut"))
    start = control.equilibria.start()
    goal = PoseGoal(start.pose[0] + [0.0, 0.05, 0.0], start.pose[1], control.model.output)
    module = "tensegrity_control.motion_planning.output_planner.plan_path"

    def blocked(equilibria, begin, asked):
        if asked is goal:
            return None
        raise UnreachableGoalError("the goal pose is out of reach.", nearest=start, cause="a cable", binding=("B1",))

    monkeypatch.setattr(module, blocked)
    with pytest.raises(
        UnreachableGoalError, match=r"not on a straight line, which ends near .* Cause: a cable\."
    ) as no:
        equilibria_on_line(control.model, control.equilibria, start, goal)
    assert no.value.binding == ("B1",)


def test_equilibria_of_a_line_that_is_divided_further_are_not_searched_again(monkeypatch):
    control = make_controller("task", load_robot("biglide"))
    start, model, searched = control.equilibria.start(), control.model, []
    goal = PoseGoal(start.pose[0] - [0.01, 0.0, 0.0], start.pose[1], model.output)
    usual = output_planner.plan_path
    monkeypatch.setattr(output_planner, "plan_path", lambda *given: searched.append(1) or usual(*given))
    monkeypatch.setattr(output_planner, "_misfit_between", lambda *_: 2.0)
    line = equilibria_on_line(model, control.equilibria, start, goal)
    assert len(searched) == len(line) - 1 == output_planner.MOST_PIECES
    outputs = np.array([model.coordinates(each.pose) for each in line])
    np.testing.assert_allclose(np.diff(outputs, axis=0), np.tile(outputs[-1] - outputs[0], (64, 1)) / 64, atol=1e-6)


def test_equilibria_between_which_the_loops_do_not_close_are_divided_further(monkeypatch):
    control = make_controller("task", load_robot("single_strut"))
    start, model = control.equilibria.start(), control.model
    goal = PoseGoal(start.pose[0] + [0.0, 0.002, 0.0], start.pose[1], model.output)
    usual, asked = model.outputs_along, []

    def closing_nearby(q, states, efforts):
        asked.append(len(states))
        if len(states) < 30:
            raise TensegrityError("the loops cannot close there.")
        return usual(q, states, efforts)

    monkeypatch.setattr(type(model), "outputs_along", lambda _, *args: closing_nearby(*args))
    assert len(equilibria_on_line(model, control.equilibria, start, goal)) >= 9
    assert asked[0] < 30 <= asked[-1]
