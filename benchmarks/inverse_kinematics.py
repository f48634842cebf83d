"""How long goal poses take: exact Jacobian against differences, newton against broyden, reachable and not.

Run: python benchmarks/inverse_kinematics.py [robot] [goals]
"""

from __future__ import annotations

import sys
import time

import numpy as np

from tensegrity_control import inverse_kinematics
from tensegrity_control.inverse_kinematics.structure_equilibria import StructureEquilibriumMap
from tensegrity_control.inverse_kinematics.structure_jacobian import sensitivity
from tensegrity_dynamics import UnreachableGoalError, load_robot
from tensegrity_dynamics.numerics.rotations import matrix_from_quaternion, matrix_from_vector, quaternion_from_matrix


def seconds(call, repeat: int = 50) -> float:
    """Median time of a call [s], the first one left out."""
    taken = []
    for _ in range(repeat + 1):
        begin = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begin)
    return float(np.median(taken[1:]))


def main() -> None:
    robot = load_robot(sys.argv[1] if len(sys.argv) > 1 else "tensebot")
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    members = robot.actuated_members()
    for rigid in (False, True):
        equilibria = StructureEquilibriumMap(robot, rigid_bars=rigid)
        home, solver = equilibria.home, equilibria.solver
        print(f"\n{robot.name}, {'rigid' if rigid else 'elastic'} bars")

        def by_differences(solver=solver, home=home) -> None:
            for member in members:
                for sign in (1.0, -1.0):
                    lengths = np.array(home.rest_lengths)
                    lengths[member] += sign * 1e-6
                    solver.solve(lengths, start=home)

        exact = seconds(lambda home=home, rigid=rigid: sensitivity(home, members, rigid_bars=rigid))
        print(f"  Jacobian: exact {1e3 * exact:.3f} ms, by differences {1e3 * seconds(by_differences):.3f} ms")
        random = np.random.default_rng(1)
        goals = []
        for _ in range(count):
            move, turn = 0.01 * random.uniform(-1, 1, 3), 0.1 * random.uniform(-1, 1, 3)
            position, quaternion = home.pose
            matrix = matrix_from_vector(turn) @ matrix_from_quaternion(quaternion)
            goals.append((position + move, quaternion_from_matrix(matrix)))
        for method in ("newton", "broyden"):
            report(robot, goals, home, equilibria, method)
        far = [(position + [0.0, 0.3, 0.0], quaternion) for position, quaternion in goals[:10]]
        report(robot, far, home, equilibria, "newton")


def report(robot, goals, home, equilibria, method: str) -> None:
    """One line: how many goals were reached, in what time and steps."""
    taken, steps, reached = [], [], 0
    for goal in goals:
        begin = time.perf_counter()
        try:
            plan = inverse_kinematics(robot, *goal, start=home, preferred=home, equilibria=equilibria, method=method)
            reached += 1
            steps.append(plan.iterations)
        except UnreachableGoalError:
            pass
        taken.append(1e3 * (time.perf_counter() - begin))
    line = f"  {method}: {reached} of {len(goals)} goals reached, {np.median(taken):.1f} ms (at most {max(taken):.1f})"
    print(line + (f", {np.median(steps):.0f} steps (at most {max(steps)})" if steps else ""))


if __name__ == "__main__":
    main()
