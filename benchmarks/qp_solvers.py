"""How long one control problem takes: every solver in both forms, along a path on which floors and limits press.

Run: python benchmarks/qp_solvers.py [--steps N] [--json]

Sizes are those of a manipulator (6 inputs, 9 free unknowns, 12 equations, 12 inequality rows besides the limits), of a
single strut (3 inputs, 3 free, 5 equations) and of a manipulator that is asked for more than its limits allow. Wall
times suffer from whatever else runs; the time of the processor in this thread alone stands beside them.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np

from tensegrity_control import FreeUnknowns, Inequalities, InputOptimizer, InputProblem
from tensegrity_control.trajectories.splines import HermiteSpline

METHODS = [(form, solver) for solver in ("daqp", "piqp", "osqp") for form in ("direct", "null_space")]


def path(inputs: int, strains: int, accelerations: int, equations: int, rows: int, limit: float, steps: int):
    """Problems one control period apart: matrices and targets swing slowly, at a few rad/s and a kilohertz."""
    random = np.random.default_rng(1)
    free = strains + accelerations
    base, swing = random.normal(size=(2, equations, inputs + free))
    scale = np.concatenate((np.ones(inputs), np.full(strains, 400.0), np.full(accelerations, 0.3)))
    floors, desired = random.normal(size=(rows, inputs + free)) / scale, random.normal(size=(2, equations))
    names = [f"motor_{i}" for i in range(inputs)]
    for k in range(steps):
        angle = 3e-3 * k
        matrix = (base + 0.2 * np.sin(angle) * swing) * scale
        target = 2.0 * (desired[0] * np.sin(angle) + desired[1] * np.cos(1.7 * angle))
        yield InputProblem(
            matrix[:, :inputs],
            target,
            np.full(inputs, -limit),
            np.full(inputs, limit),
            free=FreeUnknowns(
                matrix[:, inputs:],
                np.concatenate((np.full(strains, 10.0), np.full(accelerations, 0.3))),
                lower=np.concatenate((np.full(strains, -0.05), np.full(accelerations, -np.inf))),
            ),
            rows=Inequalities(floors, np.full(rows, -1.5)) if rows else None,
            names=names,
        )


def measured(problems: list[InputProblem], form: str, solver: str, expected: list[np.ndarray]) -> dict[str, object]:
    """Times of one method, and how far it is from the first one."""
    optimizer = InputOptimizer(form, solver)
    for problem in problems[:20]:
        optimizer.solve(problem)
    wall, processor, solutions = [], [], []
    for problem in problems:
        begin, busy = time.perf_counter(), time.thread_time()
        solutions.append(optimizer.solve(problem))
        processor.append(time.thread_time() - busy)
        wall.append(time.perf_counter() - begin)
    found = [np.concatenate((one.inputs, one.free)) for one in solutions]
    expected = expected or found
    same = [(a, b) for a, b, one in zip(found, expected, solutions, strict=True) if not one.fallback]
    return {
        "form": form,
        "solver": solver,
        "median_us": 1e6 * float(np.median(wall)),
        "p99_us": 1e6 * float(np.percentile(wall, 99)),
        "p99_processor_us": 1e6 * float(np.percentile(processor, 99)),
        "residual": max(one.residual for one in solutions),
        "disagreement": max((float(np.abs(a - b).max()) for a, b in same), default=0.0),
        "relaxed": sum(bool(one.relaxed) for one in solutions) / len(solutions),
        "found": found,
    }


def pressing(problems: list[InputProblem]) -> float:
    """Mean number of bounds that press."""
    optimizer, total = InputOptimizer(), 0
    for problem in problems:
        forces = optimizer.solve(problem).multipliers
        total += sum(int(np.count_nonzero(part)) for part in forces[1:])
    return total / len(problems)


def construction(problem: InputProblem) -> float:
    """Median time to check and assemble a problem [us], its free unknowns and rows included."""
    taken = []
    for _ in range(300):
        begin = time.perf_counter()
        free, rows = problem.free, problem.rows
        InputProblem(
            problem.matrix, problem.target, problem.lower, problem.upper,
            free=free and FreeUnknowns(free.matrix, free.weights, free.preferred, free.lower, free.upper, free.names),
            rows=rows and Inequalities(rows.matrix, rows.lower, rows.upper, rows.names),
        )  # fmt: skip
        taken.append(time.perf_counter() - begin)
    return 1e6 * float(np.median(taken))


def trajectory_sample() -> float:
    """Time of value, rate and acceleration of a spline at one time [us]."""
    spline = HermiteSpline(np.arange(10.0), np.random.default_rng(0).normal(size=(10, 6)))
    out = np.empty((3, 6))
    spline.sample(0.5, out)
    begin = time.perf_counter()
    for k in range(10_000):
        spline.sample(9e-4 * k, out)
    return 1e6 * (time.perf_counter() - begin) / 10_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    sizes = {
        "manipulator": (6, 6, 3, 12, 12, 20.0),
        "single strut": (3, 3, 0, 5, 0, 20.0),
        "manipulator asked for too much": (6, 6, 3, 12, 12, 1.0),
    }
    results: dict[str, object] = {"trajectory_sample_us": trajectory_sample()}
    for name, size in sizes.items():
        problems = list(path(*size, given.steps))
        lines: list[dict] = []
        for form, solver in METHODS:
            lines.append(measured(problems, form, solver, lines[0]["found"] if lines else []))
        for line in lines:
            line["ratio"] = line["median_us"] / lines[0]["median_us"]
        for line in lines:
            del line["found"]
        results[name] = {
            "pressing": pressing(problems), "construction_us": construction(problems[0]), "solvers": lines,
        }  # fmt: skip
        if not given.json:
            report(name, results[name])
    print(json.dumps(results) if given.json else f"\nspline, one sample: {results['trajectory_sample_us']:.2f} us")


def report(name: str, result) -> None:
    """A table of one size."""
    head = f"\n{name}: {result['pressing']:.1f} bounds press, construction {result['construction_us']:.0f} us"
    print(head + "\n  form        solver      median      p99  p99 processor  ratio  residual  disagreement  relaxed")
    for one in result["solvers"]:
        times = f"{one['median_us']:7.1f} us {one['p99_us']:5.0f} us {one['p99_processor_us']:11.0f} us"
        errors = f"{one['ratio']:6.1f}  {one['residual']:8.1e}  {one['disagreement']:12.1e}  {one['relaxed']:7.0%}"
        print(f"  {one['form']:<10}  {one['solver']:<10} {times} {errors}")


if __name__ == "__main__":
    main()
