"""Solvers behind one face: optimality at corners and near dependence, ties, proofs of infeasibility."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from tensegrity_control.optimization.infeasibility import CheckedSolver, prove_infeasible
from tensegrity_control.optimization.null_space import NullSpaceSolver
from tensegrity_control.optimization.quadratic_program import Bounds, Equations, Objective, QuadraticProgram, Rows
from tensegrity_control.optimization.solvers import SOLVERS, make_solver

FEW = settings(max_examples=40, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)


def random_program(seed: int, shift: float = 0.0) -> QuadraticProgram:
    """Equations, rows and bounds around a point; `shift` moves the right side of the equations away from it."""
    random = np.random.default_rng(seed)
    n, r = random.integers(1, 9), random.integers(0, 7)
    p = random.integers(0, n)
    A, C, x = random.normal(size=(p, n)), random.normal(size=(r, n)), random.normal(size=n)
    root = random.normal(size=(n, n))
    return QuadraticProgram.of(
        Objective(root.T @ root + 0.1 * np.eye(n), random.normal(size=n)),
        Equations(A, A @ x + shift * random.normal(size=p)),
        Rows(C, C @ x - random.uniform(0.0, 1.0, r), np.full(r, np.inf)),
        Bounds(x - random.uniform(0.0, 1.0, n), x + random.uniform(0.0, 1.0, n)),
    )


def feasible(program: QuadraticProgram) -> bool:
    """Whether any x meets all conditions, by the simplex method of another program."""
    equations = (program.A, program.b) if program.b.size else (None, None)
    sides = (-program.C, -program.c_low) if program.c_low.size else (None, None)
    bounds = np.column_stack((program.x_low, program.x_high))
    return linprog(np.zeros(program.q.size), *sides, *equations, bounds=bounds, method="highs").status == 0


@FEW
@given(SEEDS)
def test_multipliers_prove_infeasibility_exactly_where_there_is_no_solution(seed):
    program = random_program(seed, shift=2.0)
    proof = prove_infeasible(program)
    assert (proof is None) == feasible(program)
    assert (make_solver("daqp", program.sizes).solve(program).status == "solved") == (proof is None)
    if proof is None:
        return
    y, z, w = proof
    size = max(np.abs(part).max(initial=0.0) for part in proof)
    np.testing.assert_allclose(program.A.T @ y + program.C.T @ z + w, 0.0, atol=1e-8 * size)
    assert np.all(z >= 0.0)  # rows have no upper bound
    gap = program.b @ y + program.c_low @ z
    gap += np.maximum(w, 0.0) @ program.x_low + np.minimum(w, 0.0) @ program.x_high
    assert gap > 0.0


@FEW
@given(SEEDS)
def test_no_feasible_point_is_cheaper_than_the_solution(seed):
    program = random_program(seed)
    x = make_solver("daqp", program.sizes).solve(program).x
    slope = program.P @ x + program.q  # a convex objective is least where no feasible direction goes down
    equations = (program.A, program.b) if program.b.size else (None, None)
    sides = (-program.C, -program.c_low) if program.c_low.size else (None, None)
    bounds = np.column_stack((program.x_low, program.x_high))
    best = linprog(slope, *sides, *equations, bounds=bounds, method="highs")
    if best.status == 0:
        assert best.fun >= slope @ x - 1e-6 * (1.0 + abs(slope @ x))


@pytest.mark.parametrize("angle", [1e-2, 1e-4, 1e-6, 1e-8])
def test_rows_that_are_all_but_parallel_meet_in_their_corner(angle):
    for seed in range(10):
        random = np.random.default_rng(seed)
        C, x = random.normal(size=5) + angle * random.normal(size=(3, 5)), random.normal(size=5)
        force = random.uniform(0.1, 1.0, 3)  # of each row at x, which makes x the solution
        program = QuadraticProgram.of(Objective(np.eye(5), C.T @ force - x), rows=Rows(C, C @ x, np.full(3, np.inf)))
        result = make_solver("daqp", program.sizes).solve(program)
        assert result.status == "solved"
        assert np.all(program.C @ result.x >= program.c_low - 1e-9)
        stationary = program.P @ result.x + program.q - program.C.T @ result.z
        np.testing.assert_allclose(stationary, 0.0, atol=1e-8)


@pytest.mark.parametrize("name", SOLVERS)
def test_conditions_that_are_left_out_do_not_bind(name):
    program = QuadraticProgram.of(Objective(np.diag([1.0, 4.0]), np.array([-1.0, -8.0])))
    assert program.sizes == (2, 0, 0)
    assert make_solver(name, program.sizes).solve(program).x == pytest.approx([1.0, 2.0], abs=1e-8)


def test_the_smallest_of_many_solutions_is_taken_and_the_tie_reported():
    program = QuadraticProgram.of(
        Objective(np.zeros((3, 3)), np.zeros(3)), Equations(np.array([[1.0, 1.0, 1.0]]), np.array([3.0]))
    )
    result = make_solver("daqp", program.sizes).solve(program)
    assert result.tie_broken and result.x == pytest.approx([1.0, 1.0, 1.0])


@pytest.mark.parametrize(("bound", "status"), [(1.0, "solved"), (0.5, "infeasible")])
def test_equations_that_leave_no_choice_have_a_solution_within_the_bounds_or_none(bound, status):
    program = QuadraticProgram.of(
        Objective(np.eye(2), np.zeros(2)), Equations(np.eye(2), np.array([0.9, -0.2])),
        bounds=Bounds(np.full(2, -bound), np.full(2, bound)),
    )  # fmt: skip
    assert NullSpaceSolver("daqp", program.sizes).solve(program).status == status
    assert (prove_infeasible(program) is None) == (status == "solved")


def test_numbers_that_are_not_finite_are_neither_solved_nor_called_infeasible():
    program = random_program(3)
    broken = program._replace(q=np.full_like(program.q, np.nan))
    assert make_solver("daqp", program.sizes).solve(broken).status == "numerical"
    assert prove_infeasible(program._replace(C=np.full_like(program.C, np.nan))) is None


def test_conditions_that_leave_one_point_are_not_called_infeasible():
    """A blocked step of the inverse kinematics: a violated limit that no direction without violation mends."""
    for seed in range(40):
        random = np.random.default_rng(seed)
        n, bound = 3, np.full(3, np.inf)
        violation, inward = random.uniform(1e-3, 1e-2), random.uniform(0.2, 1.0, n)
        program = QuadraticProgram.of(
            Objective(np.diag([1.0, 10.0, 10.0, 1e4]), np.array([0.5, 0.9, 0.9, 1e4])),
            rows=Rows(
                np.vstack((np.append(inward, violation), np.append(-inward / 3.0, 0.0))),
                np.array([violation, 0.0]), np.full(2, np.inf),
            ),
            bounds=Bounds(np.append(-bound, 0.0), np.append(bound, 1.0)),
        )  # fmt: skip
        result = CheckedSolver("daqp", program.sizes).solve(program)
        assert result.status == "solved"
        assert result.x[-1] == pytest.approx(1.0, abs=1e-6)


@FEW
@given(SEEDS)
def test_a_checked_solver_is_right_about_what_has_a_solution(seed):
    program = random_program(seed, shift=2.0)
    status = CheckedSolver("piqp", program.sizes).solve(program).status
    assert (status == "solved", status == "infeasible") == (feasible(program), not feasible(program))
