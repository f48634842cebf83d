"""Programs of one control period at random states: against equations solved in another way, and by their conditions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from qp_loop import robot_named
from scipy.optimize import linprog

from tensegrity_control.optimization.motion_program import MotionProgram
from tensegrity_control.optimization.quadratic_program import SOLVED
from tensegrity_control.optimization.solvers import make_solver
from tensegrity_dynamics.mechanisms.body_poses import BodyPoses
from tensegrity_dynamics.mechanisms.dynamics.equations_of_motion import equations
from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables
from tensegrity_dynamics.mechanisms.kinematics.configuration_space import displaced
from tensegrity_dynamics.mechanisms.kinematics.loop_closure import assemble

ROBOTS = ("manipulator", "single_strut", "ball_mast", "biglide")
MADE = {name: TightCables(robot_named(name)) for name in ROBOTS}


def random_state(name, seed):
    """A state near the start with loops closed and rates that keep them closed."""
    model, random = robot_named(name).model, np.random.default_rng(seed)
    mechanism = model.mechanism
    q = assemble(mechanism, displaced(mechanism, model.start, random.normal(scale=0.03, size=mechanism.velocity_count)))
    v = random.normal(scale=0.3, size=mechanism.velocity_count)
    loop = equations(mechanism, q, v).loop
    return q, v - np.linalg.pinv(loop) @ (loop @ v)


@pytest.mark.parametrize("name", ["manipulator", "single_strut"])
def test_stretches_move_the_actuators_as_momentum_says(name):
    made, (q, v) = MADE[name], random_state(name, 7)
    arrays = made.update(q, v)
    stretch = np.random.default_rng(7).normal(size=(len(made.cables), 2))
    pulled = np.linalg.solve(arrays.stretch @ arrays.pull_solved.T, stretch)
    moved, efforts = made.stretched(stretch)
    np.testing.assert_allclose(moved, arrays.inputs @ arrays.pull_solved.T @ pulled, rtol=1e-9)
    np.testing.assert_allclose(arrays.tension_1 @ efforts, pulled, atol=1e-8 * np.max(np.abs(pulled)))


@pytest.mark.parametrize("name", ["manipulator", "single_strut"])
def test_a_velocity_without_stretching_stretches_no_cable_and_has_lost_what_their_pulls_give(name):
    made, (q, v) = MADE[name], random_state(name, 8)
    arrays, basis = made.update(q, v), made.reduction.basis[:, : made.count]
    kept = made.without_stretching(v)
    rate = made.stretches(q, v)[1]
    np.testing.assert_allclose(made.stretches(q, kept)[1], 0.0, atol=1e-9 * np.max(np.abs(rate)))
    pulls = np.linalg.lstsq(basis @ arrays.pull_solved.T, v - kept, rcond=None)[0]
    np.testing.assert_allclose(basis @ (arrays.pull_solved.T @ pulls), v - kept, atol=1e-9 * np.max(np.abs(v)))


def whole(made, q, v, effort):
    """Tensions and accelerations (nv,) from all equations at once: M a + c = B u - P'T + K'z, K a = k, E a = 0."""
    mechanism, parts = made.mechanism, made.parts
    full = equations(mechanism, q, v)
    count, cables, rows = v.size, parts.cable.size, full.loop.shape[0]
    stretch, pull = np.zeros((cables, count)), np.zeros((cables, count))
    for c in range(cables):  # epsilon: T does the work of lengthening r phi (1 + strain) at constant phi and winding
        a, b = parts.joint_q[c], parts.joint_v[c]
        stretch[c, b + 1] = 1.0
        pull[c, b], pull[c, b + 1] = parts.radius[c] * q[a + 1], parts.radius[c] * q[a]
    push = np.zeros(count)
    push[parts.drive] = effort
    matrix = np.block(
        [
            [full.mass, pull.T, -full.loop.T],
            [full.loop, np.zeros((rows, cables + rows))],
            [stretch, np.zeros((cables, cables + rows))],
        ]
    )
    right = np.concatenate((push - full.bias, full.loop_bias, np.zeros(cables)))
    found = np.linalg.lstsq(matrix, right, rcond=1e-13)[0]
    assert np.max(np.abs(matrix @ found - right)) < 1e-6 * (1.0 + np.max(np.abs(right)))
    return found[count : count + cables], found[:count]


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("seed", range(3))
def test_tight_equations_are_those_of_the_whole_mechanism(name, seed):
    made, (q, v) = MADE[name], random_state(name, seed)
    arrays = made.update(q, v)
    effort = np.random.default_rng(seed + 100).normal(size=made.parts.drive.size)
    tension, acceleration = whole(made, q, v, effort)
    scale = 1.0 + np.max(np.abs(tension), initial=0.0)
    assert np.allclose(arrays.tension_0 + arrays.tension_1 @ effort, tension, atol=1e-7 * scale)
    actuators = arrays.joint_0 + arrays.joint_1 @ effort
    assert np.allclose(actuators, acceleration[made.parts.drive], atol=1e-6 * (1.0 + np.max(np.abs(actuators))))
    # the output by differences of its velocity along the motion
    poses, output, h = BodyPoses(made.robot.model), made.robot.output, 1e-5
    sides = []
    for sign in (1.0, -1.0):
        # second order in q matters for the velocity's products: q(t) = q + v t, the loops' own curvature is in a
        later = displaced(made.mechanism, q, sign * h * (v + 0.5 * sign * h * acceleration))
        sides.append(poses.update(later, v + sign * h * acceleration).output(output)[1][:3])
    seen = ((sides[0] - sides[1]) / (2.0 * h))[made.parts.axes]
    predicted = arrays.output_0 + arrays.output_1 @ effort
    assert np.allclose(predicted, seen, rtol=1e-4, atol=1e-4 * (1.0 + np.max(np.abs(seen))))


@pytest.mark.parametrize("name", ["manipulator", "single_strut"])
def test_the_motion_of_a_solution_is_that_of_the_whole_mechanism_under_its_efforts(name):
    made, (q, v) = MADE[name], random_state(name, 11)
    made.update(q, v)
    solution = MotionProgram(made).solve(np.zeros(made.parts.axes.size), 10.0)
    _, acceleration = whole(made, q, v, solution.effort)
    size = 1.0 + np.max(np.abs(acceleration))
    np.testing.assert_allclose(solution.motion[: v.size], acceleration, atol=1e-6 * size)
    np.testing.assert_array_equal(solution.motion[v.size :], solution.output)


@pytest.mark.parametrize("name", ["single_strut", "ball_mast"])
def test_tensions_at_rest_stay_what_they_are(name):
    made, robot = MADE[name], robot_named(name)
    made.update(np.array(robot.model.initial_configuration), np.zeros(made.mechanism.velocity_count))
    program = MotionProgram(made)
    program.desired_tension[:] = made.tension
    found = program.solve(np.zeros(made.parts.axes.size), 10.0)
    np.testing.assert_allclose(found.tension, made.tension, rtol=1e-4)


@pytest.mark.parametrize("name", ["manipulator", "ball_mast"])
def test_no_choice_of_coordinates_changes_what_inputs_do(name):
    robot = robot_named(name)
    q, v = random_state(name, 7)
    first = MADE[name].update(q, v)
    chosen = set(MADE[name].reduction.independent[: MADE[name].count].tolist())
    other = TightCables(robot)
    other.reduction.weight[:] = np.random.default_rng(3).uniform(0.1, 10.0, other.reduction.weight.size)
    other.chooses_anew = True
    second = other.update(q, v)
    assert chosen != set(other.reduction.independent[: other.count].tolist())
    for field in ("tension_0", "tension_1", "output_0", "output_1", "joint_0", "joint_1", "mobility"):
        a, b = getattr(first, field), getattr(second, field)
        assert np.allclose(a, b, rtol=1e-7, atol=1e-7 * (1.0 + np.max(np.abs(a)))), field


def test_pivots_stay_along_a_motion_until_they_are_poor():
    made = TightCables(robot_named("manipulator"))
    q, v = np.array(made.robot.model.initial_configuration), np.zeros(made.mechanism.velocity_count)
    made.update(q, v)
    before = made.reduction.pivot.copy()
    for seed in range(5):
        made.update(*random_state("manipulator", seed))
        assert np.max(np.abs(made.reduction.basis[:, : made.count])) <= 20.0 * made.arrays.scale[0]
    made.update(q, v)
    assert np.array_equal(before, made.reduction.pivot)
    made.arrays.scale[0] = 1e-9  # as if they had been far better once
    made.update(q, v)
    assert made.arrays.scale[0] > 0.1


@settings(max_examples=60)
@given(
    st.sampled_from(ROBOTS), st.integers(0, 10**6), st.floats(-30.0, 30.0), st.floats(0.0, 60.0), st.floats(0.05, 1.0),
    st.booleans(),
)  # fmt: skip
def test_programs_meet_their_conditions_and_floors_give_way_only_where_they_must(
    name, seed, desired, floor, strength, ceiling
):
    made = MADE[name]
    made.update(*random_state(name, seed))
    program = MotionProgram(made)
    program.effort_high *= strength
    program.effort_low *= strength
    program.tension_low[:] = floor
    program.tension_high[:] = 3.0 * floor + 20.0 if ceiling else np.inf
    program.tension_scale[:] = max(floor, 1.0)
    axes = made.parts.axes.size
    found = program.solve(np.full(axes, desired), 10.0)
    asked = program.program
    assert np.all(found.effort >= program.effort_low) and np.all(found.effort <= program.effort_high)
    # is there an input at all, says a linear program
    rows = np.vstack((asked.C, -asked.C))
    bounds = np.concatenate((asked.c_high, -asked.c_low))
    kept = np.isfinite(bounds)
    limits = list(zip(asked.x_low, asked.x_high, strict=True))
    size = np.maximum(np.max(np.abs(rows), axis=1), 1e-12)
    possible = linprog(
        np.zeros(asked.q.size), A_ub=(rows / size[:, None])[kept], b_ub=(bounds / size)[kept], bounds=limits
    )
    if found.status == SOLVED:
        assert possible.status == 0 and not found.broken
        _check_conditions(asked, found.effort)
    else:
        tighter = linprog(
            np.zeros(asked.q.size), A_ub=(rows / size[:, None])[kept], b_ub=(bounds / size)[kept] - 1e-6, bounds=limits
        )
        assert tighter.status == 2, "floors gave way although some input keeps all"
        assert found.broken
        assert all(what.split(" of ")[1] in made.cables for what, _ in found.broken)


def _check_conditions(asked, x):
    """Optimal: the slope is a sum of what the reached bounds can press, of the right signs; feasible."""
    values = np.concatenate((asked.C @ x, x))
    low, high = np.concatenate((asked.c_low, asked.x_low)), np.concatenate((asked.c_high, asked.x_high))
    rows = np.vstack((asked.C, np.eye(x.size)))
    size = np.maximum(np.linalg.norm(rows, axis=1), 1e-12)
    near = 1e-6 * (1.0 + np.abs(values))
    assert np.all(values >= low - near) and np.all(values <= high + near)
    pressing = [rows[k] / size[k] for k in np.flatnonzero(values <= low + near)]
    pressing += [-rows[k] / size[k] for k in np.flatnonzero(values >= high - near)]
    slope = asked.P @ x + asked.q
    terms = 1.0 + np.max(np.abs(asked.P) @ np.abs(x) + np.abs(asked.q))
    if not pressing:
        assert np.max(np.abs(slope)) < 1e-6 * terms
        return
    from scipy.optimize import nnls

    _, left = nnls(np.array(pressing).T, slope / terms)
    assert left < 1e-6


@pytest.mark.parametrize("name", ROBOTS)
def test_without_active_bounds_the_efforts_are_those_that_a_solver_finds(name):
    made, differences = MADE[name], []
    for seed in range(20):
        made.update(*random_state(name, seed))
        program = MotionProgram(made)
        program.effort_high[:], program.effort_low[:] = 1e6, -1e6
        program.tension_low[:] = -1e9
        found = program.solve(np.full(made.parts.axes.size, 0.5), 10.0).effort
        assert program._write(np.full(made.parts.axes.size, 0.5), 10.0 * made.arrays.rates)[2], "a solver was needed"
        other = make_solver("daqp", program.program.sizes).solve(program.program).x
        P, q = program.program.P, program.program.q
        gap = 0.5 * (found - other) @ P @ (found - other)
        differences.append(gap / max(abs(0.5 * other @ P @ other + q @ other), 1e-12))
    assert max(differences) < 1e-12


def test_a_program_without_a_feasible_input_keeps_efforts_and_names_the_floors():
    made = MADE["ball_mast"]
    made.update(np.array(made.robot.model.start), np.zeros(made.mechanism.velocity_count))
    program = MotionProgram(made)
    program.tension_low[:] = 1e4  # N, far above what 8 N m wind
    program.tension_scale[:] = 1e4
    found = program.solve(np.zeros(2), 10.0)
    assert program.infeasible == 1 and len(found.broken) == 4
    assert np.allclose(found.effort, program.effort_high)
    assert {name for name, _ in found.broken} == {f"floor of stay{k}" for k in (1, 2, 3, 4)}
