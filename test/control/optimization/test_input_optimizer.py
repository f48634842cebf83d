"""Input optimisation: all forms and solvers agree, optimality holds, clashes are real, limits are never broken."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from tensegrity_control.optimization import solvers
from tensegrity_control.optimization.backends import Daqp, sharpened
from tensegrity_control.optimization.control_problem import FreeUnknowns, Inequalities, InputProblem, Task
from tensegrity_control.optimization.input_optimizer import InputOptimizer
from tensegrity_control.optimization.nonlinear import solve_nonlinear
from tensegrity_control.optimization.quadratic_program import QPResult, QuadraticProgram
from tensegrity_control.optimization.relaxation import hold
from tensegrity_control.optimization.solvers import SOLVERS, make_solver
from tensegrity_dynamics.errors import InfeasibleControlError, TensegrityError

FEW = settings(max_examples=40, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)
METHODS = [(form, solver) for form in ("null_space", "direct") for solver in ("daqp", "piqp")]


def random_problem(seed: int, feasible: bool = True) -> InputProblem:
    """Inputs, free unknowns and rows of random number and size around a point that meets everything."""
    random = np.random.default_rng(seed)
    m, f, r = random.integers(1, 7), random.integers(0, 7), random.integers(0, 9)
    p = random.integers(0, m + f)
    A, F, C = random.normal(size=(p, m)), random.normal(size=(p, f)), random.normal(size=(r, m + f))
    x = random.normal(size=m + f)
    margin = random.uniform(0.0, 1.5, (2, m + f))
    row_margin = random.uniform(0.0, 1.0, (2, r))
    shift = np.zeros(p) if feasible else 3.0 * random.normal(size=p)
    upper = np.where(random.random(r) < 0.5, np.inf, C @ x + row_margin[1])
    weights, preferred = random.uniform(0.5, 2.0, m), 2.0 * random.normal(size=m)
    low, high = x - margin[0], x + margin[1]
    free = FreeUnknowns(F, random.uniform(0.3, 1.0, f), random.normal(size=f), low[m:], high[m:])
    rows = Inequalities(C, C @ x - row_margin[0], upper)
    return InputProblem(A, np.hstack((A, F)) @ x + shift, low[:m], high[:m], weights, preferred, free, rows)


def manipulator_like(seed: int, **changes) -> InputProblem:
    """Sizes and units of a cable-driven manipulator: 12 equations, 6 inputs [N m], 6 strains [1], 3 accelerations."""
    random = np.random.default_rng(seed)
    B = np.vstack((np.eye(6), 0.2 * random.normal(size=(6, 6))))
    stiffness = np.vstack((-440.0 * np.eye(6), 440.0 * random.normal(size=(6, 6))))
    mass, tracked = 0.3 * random.normal(size=(12, 3)), 0.5 * random.normal(size=(12, 3))
    free = FreeUnknowns(
        np.hstack((-stiffness, -mass)),
        np.concatenate((np.full(6, 1.0), np.full(3, 0.1))),
        lower=np.concatenate((np.full(6, -0.05), np.full(3, -np.inf))),
        names=[f"tendon_{i}" for i in range(6)] + ["a", "b", "c"],
    )
    target = tracked @ random.normal(size=3) + 5.0 * random.normal(size=12)
    values = {"matrix": B, "target": target, "lower": np.full(6, -20.0), "upper": np.full(6, 20.0), "free": free}
    return InputProblem(**{**values, "tracking_directions": tracked, "tracked": ["x", "y", "z"], **changes})


def unknowns(solution):
    return np.concatenate((solution.inputs, solution.free))


def assert_optimal(program: QuadraticProgram, x, y, z, w, tolerance: float = 1e-8) -> None:
    """The conditions of Karush, Kuhn and Tucker."""
    P, q, A, b, C, c_low, c_high, x_low, x_high = program
    scale = 1.0 + np.abs(P @ x).max() + np.abs(q).max() + np.abs(A.T @ y).max(initial=0.0)
    np.testing.assert_allclose(P @ x + q, A.T @ y + C.T @ z + w, atol=tolerance * scale)
    np.testing.assert_allclose(A @ x, b, atol=tolerance * (1.0 + np.abs(b).max(initial=0.0)))
    for value, force, low, high in ((C @ x, z, c_low, c_high), (x, w, x_low, x_high)):
        margin = tolerance * (1.0 + np.abs(value))
        assert np.all(value >= low - margin) and np.all(value <= high + margin)
        assert not np.any((force > tolerance * scale) & (value > low + margin)), "a force without contact"
        assert not np.any((force < -tolerance * scale) & (value < high - margin)), "a force without contact"


@FEW
@given(SEEDS)
def test_both_forms_and_both_solvers_agree_and_are_optimal(seed):
    problem = random_problem(seed)
    first = InputOptimizer("null_space", "daqp").solve(problem)
    for form, solver in METHODS:
        found = InputOptimizer(form, solver).solve(problem)
        assert (found.status, found.fallback) == ("solved", "")
        assert found.residual < 1e-9
        np.testing.assert_allclose(unknowns(found), unknowns(first), atol=1e-8)
        forces = found.multipliers
        w = np.concatenate((forces.inputs, forces.free))
        assert_optimal(problem.program, unknowns(found), forces.equalities, forces.rows, w)
    splitting = InputOptimizer("null_space", "osqp").solve(problem)  # slow to converge at times, which it must say
    assert (splitting.status, splitting.fallback) in {("solved", ""), ("iteration limit", "second solver")}
    np.testing.assert_allclose(unknowns(splitting), unknowns(first), atol=1e-8)


@FEW
@given(SEEDS)
def test_a_program_solved_again_or_after_another_has_the_same_solution(seed):
    first, second = random_problem(seed).program, random_problem(seed).program
    nearby = second._replace(q=second.q + 0.3 * np.random.default_rng(seed).normal(size=second.q.size))
    for name in ("daqp", "piqp"):
        used = make_solver(name, first.sizes)
        for program in (first, nearby, first, first):
            found, fresh = used.solve(program), make_solver(name, program.sizes).solve(program)
            assert found.status == fresh.status == "solved"
            np.testing.assert_allclose(found.x, fresh.x, atol=1e-9)


@FEW
@given(SEEDS)
def test_corners_where_many_rows_meet_and_equations_repeat_are_solved_alike(seed):
    random = np.random.default_rng(seed)
    n, r = random.integers(2, 12), random.integers(1, 12)
    p = random.integers(0, n)
    C, A, x = (random.integers(-1, 2, size).astype(float) for size in ((r, n), (p, n), n))
    low, high = x - random.integers(0, 2, n), x + random.integers(0, 2, n)
    rows = Inequalities(C, C @ x)
    problem = InputProblem(A, A @ x, low, high, preferred=random.integers(-3, 4, n), rows=rows)
    first, second = (InputOptimizer(form).solve(problem) for form in ("null_space", "direct"))
    assert first.status == second.status == "solved"
    np.testing.assert_allclose(first.inputs, second.inputs, atol=1e-9)
    for found in (first, second):
        forces = found.multipliers
        assert_optimal(problem.program, found.inputs, forces.equalities, forces.rows, forces.inputs)


@pytest.mark.parametrize("seed", range(8))
def test_lowered_floors_are_lowered_least_and_the_equations_hold(seed):
    random = np.random.default_rng(seed)
    problem = manipulator_like(seed)
    lower = np.concatenate((random.uniform(0.1, 0.3, 6), np.full(3, -np.inf)))
    problem = replace(problem, free=replace(problem.free, lower=lower))
    found = InputOptimizer().solve(problem)
    assert found.status == "infeasible" and found.residual < 1e-9 and np.all(np.abs(found.inputs) <= 20.0)
    if found.fallback != "floor relaxed":
        return
    # By another solver: least squares of the floors' shortfalls, with the part of the equations tracking cannot move.
    program, n = problem.program, problem.program.q.size
    beyond = np.linalg.svd(problem.tracking_directions)[0][:, 3:].T
    low = np.concatenate((program.x_low[:6], np.full(n, -np.inf)))
    least = QuadraticProgram(
        np.diag(np.concatenate((np.full(n, 1e-10), np.ones(6)))), np.zeros(n + 6),
        np.ascontiguousarray(np.hstack((beyond @ program.A, np.zeros((9, 6))))), beyond @ program.b,
        np.hstack((np.eye(n)[6:12], np.diag(lower[:6]))), lower[:6], np.full(6, np.inf), low,
        np.concatenate((program.x_high[:6], np.full(n, np.inf))),
    )  # fmt: skip
    other = make_solver("piqp", least.sizes).solve(least).x[n:]
    short = np.maximum(lower[:6] - found.free[:6], 0.0) / lower[:6]
    assert short @ short == pytest.approx(other @ other, rel=1e-4)
    lowered = {one.name for one in found.relaxed if one.what == "floor"}
    assert lowered == {f"tendon_{i}" for i in np.flatnonzero(short > 1e-9)}


@pytest.mark.parametrize("seed", range(4))
def test_inputs_do_not_jump_where_tracking_begins_to_give_way(seed):
    problem, optimizer = manipulator_like(seed), InputOptimizer()
    low, high = 0.0, 50.0  # parts of the target; the border of what is possible lies between
    for _ in range(60):
        middle = 0.5 * (low + high)
        possible = optimizer.solve(replace(problem, target=middle * problem.target)).status == "solved"
        low, high = (middle, high) if possible else (low, middle)
    before, after = (optimizer.solve(replace(problem, target=(low + s) * problem.target)) for s in (-1e-9, 1e-9))
    assert (before.fallback, after.fallback) == ("", "tracking relaxed")
    np.testing.assert_allclose(unknowns(before), unknowns(after), atol=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_strains_and_free_accelerations_of_a_manipulator_are_found_by_all(seed):
    random = np.random.default_rng(seed)
    problem = manipulator_like(seed)
    tight = np.asarray(problem.free.lower)
    tight[:6] = InputOptimizer().solve(problem).free[:6] + random.uniform(-1e-4, 1e-3, 6) * (np.arange(6) < 2)
    problem = replace(problem, free=replace(problem.free, lower=tight))
    first = InputOptimizer().solve(problem)
    assert first.status == "solved"
    assert np.count_nonzero(first.multipliers.free) >= 1, "no floor presses, which tests nothing"
    for method in [*METHODS, ("null_space", "osqp"), ("direct", "osqp")]:
        found = InputOptimizer(*method).solve(problem)
        assert found.residual < 1e-9
        np.testing.assert_allclose(unknowns(found), unknowns(first), atol=1e-8)


@FEW
@given(SEEDS)
def test_least_squares_inputs_within_their_limits_are_the_solution(seed):
    # 000 (2.2.9). There N'u_0 = 0, so that the factor 2 printed in (2.2.10) does not show; with other u_0 it does.
    random = np.random.default_rng(seed)
    B, desired = random.normal(size=(3, 6)), random.normal(size=3)
    least = np.linalg.pinv(B) @ desired
    limit = 1.01 * np.full(6, np.abs(least).max())
    np.testing.assert_allclose(
        InputOptimizer().solve(InputProblem(B, desired, -limit, limit)).inputs, least, atol=1e-12
    )
    preferred, N = random.normal(size=6), np.linalg.svd(B)[2][3:].T
    found = InputOptimizer().solve(InputProblem(B, desired, preferred=preferred)).inputs
    np.testing.assert_allclose(found, least + N @ (N.T @ preferred), atol=1e-12)


def bounds_of(problem: InputProblem):
    g = problem.program
    rows = np.vstack((g.C, np.eye(g.q.size)))
    return rows, np.concatenate((g.c_low, g.x_low)), np.concatenate((g.c_high, g.x_high))


def possible(rows, low, high, A, b) -> bool:
    """Whether A x = b has a solution within the bounds, by a linear program of another kind."""
    below, above = np.isfinite(low), np.isfinite(high)
    sides, ends = np.vstack((-rows[below], rows[above])), np.concatenate((-low[below], high[above]))
    equations = (A, b) if A.size else (None, None)
    found = linprog(np.zeros(rows.shape[1]), sides, ends, *equations, bounds=(None, None), method="highs")
    assert found.status in (0, 2), found.message
    return found.status == 0


@FEW
@given(SEEDS)
def test_a_problem_is_called_infeasible_when_it_is_and_the_named_rows_alone_clash(seed):
    problem = random_problem(seed, feasible=False)
    program = problem.program
    rows, low, high = bounds_of(problem)
    feasible = possible(rows, low, high, program.A, program.b)
    for form, solver in METHODS:
        found = InputOptimizer(form, solver).solve(problem)
        assert (found.status == "solved") == feasible
        if feasible:
            continue
        names = (*problem.row_names, *problem.all_names)
        named = np.array([name in found.clashing for name in names])
        tracked = np.array([name in found.clashing for name in problem.tracked])
        assert named.any() and found.fallback

        def clash(which, equations) -> bool:
            return not possible(rows[which], low[which], high[which], program.A[equations], program.b[equations])

        assert clash(named, tracked)
        for one in np.flatnonzero(named):  # and without any one of them nothing clashes
            assert not clash(named & (np.arange(named.size) != one), tracked)


@FEW
@given(SEEDS)
def test_a_relaxed_answer_keeps_limits_and_floors_and_reports_what_tracking_lost(seed):
    problem = random_problem(seed, feasible=False)
    found = InputOptimizer().solve(problem)
    program, x = problem.program, unknowns(found)
    assert np.all(found.inputs >= problem.lower) and np.all(found.inputs <= problem.upper)
    if found.status == "solved":
        assert not found.relaxed
        return
    # The random problems have a point within all bounds, so that tracking alone need yield.
    assert found.fallback == "tracking relaxed" and {one.what for one in found.relaxed} == {"tracking"}
    values = program.C @ x
    assert np.all(values >= program.c_low - 1e-8) and np.all(values <= program.c_high + 1e-8)
    lost = dict.fromkeys(problem.tracked, 0.0) | {one.name: one.amount for one in found.relaxed}
    given = np.array(list(lost.values()))
    np.testing.assert_allclose(program.A @ x, program.b + given, atol=1e-8)
    # No answer loses less: the sum of squares against another solver's.
    n, p = x.size, given.size
    least = QuadraticProgram(
        np.diag(np.concatenate((np.zeros(n), np.ones(p)))) + 1e-12 * np.eye(n + p),
        np.zeros(n + p), np.hstack((program.A, -np.eye(p))), program.b,
        np.hstack((program.C, np.zeros((program.c_low.size, p)))), program.c_low, program.c_high,
        np.concatenate((program.x_low, np.full(p, -np.inf))), np.concatenate((program.x_high, np.full(p, np.inf))),
    )  # fmt: skip
    other = make_solver("piqp", least.sizes).solve(least)
    assert given @ given <= other.x[n:] @ other.x[n:] * (1 + 1e-3) + 1e-8


def one_tendon(**changes) -> InputProblem:
    """Two motors in [-1, 1] whose sum is tracked, and a tendon whose tension is their difference."""
    rows = Inequalities([[1.0, -1.0]], [0.2], names=["draw"])
    values = {"matrix": [[1.0, 1.0]], "target": [0.5], "lower": [-1.0, -1.0], "upper": [1.0, 1.0], "rows": rows}
    return InputProblem(**{**values, "names": ["left", "right"], "tracked": ["angle"], **changes})


@pytest.mark.parametrize("method", METHODS)
def test_tracking_gives_way_before_a_floor_and_a_floor_before_a_limit(method):
    optimizer, difference = InputOptimizer(*method), [[1.0, -1.0]]
    assert optimizer.solve(one_tendon()).inputs == pytest.approx([0.35, 0.15])
    # u_left + u_right = 1.5 needs a difference of at most 0.5; a floor of 1.2 wins against tracking.
    found = optimizer.solve(one_tendon(target=[1.5], rows=Inequalities(difference, [1.2], names=["draw"])))
    assert found.inputs == pytest.approx([1.0, -0.2], abs=1e-6)
    assert set(found.clashing) == {"left", "draw", "angle"}
    assert [(one.what, one.name) for one in found.relaxed] == [("tracking", "angle")]
    assert found.relaxed[0].amount == pytest.approx(-0.7, abs=1e-6) and "draw" in found.describe()
    # A difference of 2.6 is beyond the limits: the floor yields by 0.6, and tracking with it.
    found = optimizer.solve(one_tendon(rows=Inequalities(difference, [2.6], names=["draw"])))
    assert found.inputs == pytest.approx([1.0, -1.0], abs=1e-6) and np.all(np.abs(found.inputs) <= 1.0)
    assert found.fallback == "floor relaxed" and "draw" in found.clashing
    lost = {(one.what, one.name): one.amount for one in found.relaxed}
    assert lost == pytest.approx({("floor", "draw"): -0.6, ("tracking", "angle"): -0.5}, abs=1e-5)


def test_relaxations_make_no_solver_twice_and_keep_nothing_of_the_problem_before(monkeypatch):
    optimizer, made = InputOptimizer(), []
    hard = [one_tendon(target=[target], rows=Inequalities([[1.0, -1.0]], [2.6])) for target in (0.5, 0.9)]
    optimizer.solve(hard[0])
    monkeypatch.setattr(solvers, "make_solver", lambda *given: made.append(given) or make_solver(*given))
    again = optimizer.solve(hard[1])
    assert not made
    alone = InputOptimizer().solve(hard[1])
    assert made and again.relaxed == alone.relaxed
    np.testing.assert_array_equal(again.inputs, alone.inputs)


def test_limits_without_equations_are_relaxed_too():
    rows = Inequalities([[1.0, -1.0]], [2.6], names=["draw"])
    found = InputOptimizer().solve(InputProblem(np.zeros((0, 2)), [], [-1, -1], [1, 1], rows=rows))
    assert found.fallback == "floor relaxed" and found.inputs == pytest.approx([1.0, -1.0], abs=1e-6)


def test_equations_that_tracking_cannot_restore_are_met_as_well_as_limits_allow():
    # The second equation is out of reach of the inputs, and nothing that is tracked moves it.
    problem = InputProblem(
        [[1.0, 0.0], [0.0, 1.0]], [0.5, 3.0], [-1, -1], [1, 1], tracking_directions=[[1.0], [0.0]], tracked=["x"]
    )
    found = InputOptimizer().solve(problem)
    assert (found.status, found.fallback) == ("infeasible", "equations relaxed")
    assert found.inputs == pytest.approx([0.5, 1.0], abs=1e-5)
    assert [(one.what, one.name) for one in found.relaxed if abs(one.amount) > 1e-4] == [("equations", "equation 2")]


def test_limits_that_contradict_themselves_are_named():
    with pytest.raises(InfeasibleControlError, match=r"input 'right' must be at least 1 and at most -1"):
        one_tendon(lower=[-1.0, 1.0], upper=[1.0, -1.0])
    rows = Inequalities([[1.0, -1.0]], [2.6], names=["draw"], priority="limit")
    with pytest.raises(InfeasibleControlError, match=r"draw, left, right contradict"):
        InputOptimizer().solve(one_tendon(rows=rows))


NONSENSE = [
    ({"target": [np.nan]}, "target must be finite"), ({"target": [1.0, 2.0]}, r"target must have shape \(1,\)"),
    ({"matrix": [[1.0, np.inf]]}, "matrix of the inputs"), ({"lower": [np.nan, 0.0]}, "bound of input 'left' is NaN"),
    ({"weights": [1.0]}, "weights of the inputs"), ({"names": ["left"]}, "1 names given for 2"),
    ({"rows": Inequalities([[1.0]], [0.0])}, "inequalities have 1 columns; there are 2"),
    ({"free": FreeUnknowns([[1.0], [2.0]])}, "enter 2 equations of 1"),
    ({"tasks": [Task([[1.0]], [0.0])]}, "task has 1 columns"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "words"), NONSENSE)
def test_nonsense_is_refused_with_its_name(changes, words):
    with pytest.raises(TensegrityError, match=words):
        one_tendon(**changes)


@pytest.mark.parametrize("names", [("direkt",), ("direct", "pigp")])
def test_unknown_names_are_refused_with_the_known_ones(names):
    with pytest.raises(TensegrityError, match=r"Did you mean '(direct|piqp)'"):
        InputOptimizer(*names)
    with pytest.raises(TensegrityError, match="trust-constr"):
        solve_nonlinear(one_tendon(), np.sum, method="slsqp")
    with pytest.raises(TensegrityError, match="limit, floor"):
        Inequalities([[1.0]], [0.0], priority="flor")


@pytest.mark.parametrize("form", ["null_space", "direct"])
def test_equations_said_twice_are_one_and_equations_that_disagree_are_named(form):
    twice = InputProblem([[1.0, 1.0, 0.0], [2.0, 2.0, 0.0]], [1.0, 2.0], tracked=["x", "y"])
    found = InputOptimizer(form).solve(twice)
    assert found.status == "solved" and found.inputs == pytest.approx([0.5, 0.5, 0.0])
    found = InputOptimizer(form).solve(replace(twice, target=[1.0, 3.0]))
    assert found.status == "infeasible" and set(found.clashing) == {"x", "y"} and found.fallback == "tracking relaxed"
    np.testing.assert_allclose(twice.matrix @ found.inputs, [1.4, 2.8], atol=1e-6)  # the nearest that agree


def failing(status: str, value: float):
    """A solver that never has an answer."""

    def make(sizes):
        n, p, r = sizes
        answer = QPResult(status, np.full(n, value), np.zeros(p), np.zeros(r), np.zeros(n), 7)
        return SimpleNamespace(solve=lambda _: answer)

    return make


# The inputs zero do not meet the equations, and what is called infeasible has a solution.
FAILURES = [("iteration limit", 0.0, "iteration limit"), ("numerical", np.nan, "numerical")]
FAILURES += [("solved", np.nan, "numerical"), ("solved", 0.0, "numerical"), ("infeasible", 0.0, "numerical")]


@pytest.mark.parametrize(("status", "value", "reported"), FAILURES)
def test_a_failing_solver_is_reported_and_another_one_answers(monkeypatch, status, value, reported):
    monkeypatch.setitem(SOLVERS, "failing", failing(status, value))
    optimizer = InputOptimizer(solver="failing")
    found = optimizer.solve(one_tendon())
    assert (found.status, found.fallback) == (reported, "second solver") and reported in found.describe()
    assert found.inputs == pytest.approx([0.35, 0.15])
    hard = one_tendon(target=[7.0])
    assert (optimizer.solve(hard).status, optimizer.solve(hard).fallback) == ("infeasible", "tracking relaxed")


def test_held_inputs_stay_within_their_limits():
    answer = hold(one_tendon(preferred=[5.0, 0.0]))
    assert answer.fallback == "held" and list(answer.x) == [1.0, 0.0]
    assert answer.relaxed[-1].amount == pytest.approx(0.5)


def test_running_out_of_iterations_is_not_called_infeasible():
    program = one_tendon(rows=Inequalities([[1.0, -1.0]], [0.6])).program
    assert Daqp(program.sizes, iteration_limit=1).solve(program).status == "iteration limit"
    assert Daqp(program.sizes).solve(program._replace(b=np.full_like(program.b, np.nan))).status == "numerical"


def test_open_inputs_are_small_and_the_tie_is_reported():
    for form in ("null_space", "direct"):
        found = InputOptimizer(form).solve(one_tendon(weights=[0.0, 0.0], rows=None))
        assert found.tie_broken and found.inputs == pytest.approx([0.25, 0.25], abs=1e-6)
    assert not InputOptimizer().solve(one_tendon()).tie_broken


def test_a_task_moves_the_inputs_as_far_as_it_weighs():
    free = one_tendon(rows=None, tasks=[Task([[100.0, -100.0]], [40.0])])
    found = InputOptimizer().solve(free).inputs  # min |u|^2 / 2 + (100 (u_1 - u_2) - 40)^2 / 2 with u_1 + u_2 = 1 / 2
    assert found[0] - found[1] == pytest.approx(4000.0 / 10000.5, rel=1e-12)


def test_sharpening_leaves_alone_what_it_would_move_far():
    program = one_tendon().program
    wrong = QPResult("solved", np.array([1.0, -0.5]), np.zeros(1), np.zeros(1), np.array([-1.0, 0.0]), 1)
    assert sharpened(program, wrong) is wrong


@pytest.mark.filterwarnings("ignore:delta_grad")
@pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
def test_the_general_form_agrees_where_the_objective_is_quadratic(method):
    for seed in range(4):
        problem = random_problem(seed)
        program = problem.program
        expected = InputOptimizer().solve(problem)
        value, slope = (lambda x, g=program: 0.5 * x @ g.P @ x + g.q @ x), (lambda x, g=program: g.P @ x + g.q)
        found = solve_nonlinear(problem, value, slope, method=method)
        assert found.status == "solved" and found.residual < 1e-9
        np.testing.assert_allclose(unknowns(found), unknowns(expected), atol=1e-4)


def test_the_general_form_takes_other_objectives():
    found = solve_nonlinear(one_tendon(rows=None), lambda x: float(np.sum((x - [1.0, 0.0]) ** 4)))
    assert found.inputs == pytest.approx([0.75, -0.25], abs=1e-3)
    assert solve_nonlinear(one_tendon(target=[7.0]), np.sum).fallback == "tracking relaxed"
