"""Input optimisation: all forms and solvers agree, optimality holds, clashes are real, limits are never broken."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_control.input_optimization import (
    FreeUnknowns,
    Inequalities,
    InputOptimizer,
    InputProblem,
)
from tensegrity_control.qp_solvers import QuadraticProgram

FEW = settings(max_examples=40, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)
WAYS = [(form, solver) for form in ("null_space", "direct") for solver in ("active_set", "piqp")]


def random_problem(seed: int, feasible: bool = True) -> InputProblem:
    """Inputs, free unknowns and rows of random number and size around a point that meets everything."""
    random = np.random.default_rng(seed)
    m, f, r = random.integers(1, 7), random.integers(0, 7), random.integers(0, 9)
    p = random.integers(0, m + f)
    A, F, C = random.normal(size=(p, m)), random.normal(size=(p, f)), random.normal(size=(r, m + f))
    x = random.normal(size=m + f)
    room = random.uniform(0.0, 1.5, (2, m + f))
    row_room = random.uniform(0.0, 1.0, (2, r))
    shift = np.zeros(p) if feasible else 3.0 * random.normal(size=p)
    upper = np.where(random.random(r) < 0.5, np.inf, C @ x + row_room[1])
    return InputProblem(
        A,
        np.hstack((A, F)) @ x + shift,
        x[:m] - room[0, :m],
        x[:m] + room[1, :m],
        weights=random.uniform(0.5, 2.0, m),
        preferred=2.0 * random.normal(size=m),
        free=FreeUnknowns(
            F, random.uniform(0.3, 1.0, f), random.normal(size=f), x[m:] - room[0, m:], x[m:] + room[1, m:]
        ),
        rows=Inequalities(C, C @ x - row_room[0], upper),
    )


def manipulator_like(seed: int, **changes) -> InputProblem:
    """Sizes and units of a cable-driven manipulator: 12 equations, 6 inputs [N m], 6 strains [1], 3 accelerations."""
    random = np.random.default_rng(seed)
    B = np.vstack((np.eye(6), 0.2 * random.normal(size=(6, 6))))
    stiffness = np.vstack((-440.0 * np.eye(6), 440.0 * random.normal(size=(6, 6))))
    mass = 0.3 * random.normal(size=(12, 3))
    tracked = 0.5 * random.normal(size=(12, 3))
    values = {
        "matrix": B,
        "target": tracked @ random.normal(size=3) + 5.0 * random.normal(size=12),
        "lower": np.full(6, -20.0),
        "upper": np.full(6, 20.0),
        "free": FreeUnknowns(
            np.hstack((-stiffness, -mass)),
            np.concatenate((np.full(6, 1.0), np.full(3, 0.1))),
            lower=np.concatenate((np.full(6, -0.05), np.full(3, -np.inf))),
            names=[f"tendon_{i}" for i in range(6)] + ["a", "b", "c"],
        ),
        "gives": tracked,
        "tracked": ["x", "y", "z"],
    }
    return InputProblem(**{**values, **changes})


def unknowns(solution):
    return np.concatenate((solution.inputs, solution.free))


def assert_optimal(program: QuadraticProgram, x, y, z, w, tolerance: float = 1e-8) -> None:
    """The conditions of Karush, Kuhn and Tucker."""
    P, q, A, b, C, c_low, c_high, x_low, x_high = program
    scale = 1.0 + np.abs(P @ x).max() + np.abs(q).max() + np.abs(A.T @ y).max(initial=0.0)
    np.testing.assert_allclose(P @ x + q, A.T @ y + C.T @ z + w, atol=tolerance * scale)
    np.testing.assert_allclose(A @ x, b, atol=tolerance * (1.0 + np.abs(b).max(initial=0.0)))
    for value, force, low, high in ((C @ x, z, c_low, c_high), (x, w, x_low, x_high)):
        room = tolerance * (1.0 + np.abs(value))
        assert np.all(value >= low - room) and np.all(value <= high + room)
        assert not np.any((force > tolerance * scale) & (value > low + room)), "a force without contact"
        assert not np.any((force < -tolerance * scale) & (value < high - room)), "a force without contact"


@FEW
@given(SEEDS)
def test_both_forms_and_both_solvers_agree_and_are_optimal(seed):
    problem = random_problem(seed)
    first = InputOptimizer("null_space", "active_set").solve(problem)
    for form, solver in WAYS:
        found = InputOptimizer(form, solver).solve(problem)
        assert (found.status, found.fallback) == ("solved", "")
        assert found.residual < 1e-9
        np.testing.assert_allclose(unknowns(found), unknowns(first), atol=1e-8)
        forces = found.multipliers
        w = np.concatenate((forces.inputs, forces.free))
        assert_optimal(problem.program, unknowns(found), forces.equalities, forces.rows, w)


@settings(max_examples=10, deadline=None)
@given(SEEDS)
def test_operator_splitting_agrees_too(seed):
    problem = random_problem(seed)
    expected = unknowns(InputOptimizer().solve(problem))
    np.testing.assert_allclose(unknowns(InputOptimizer("direct", "osqp").solve(problem)), expected, atol=1e-8)
