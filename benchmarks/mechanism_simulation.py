"""How long one simulated second of the mechanisms takes.

Run: python benchmarks/mechanism_simulation.py [--json] [--repeat N]

RK4 at 0.1 ms with the cables of the robot files, and the implicit method at 1 ms with E = 2e10 Pa. All pulleys are
driven to and fro by 0.05 rad, each against the next, by the position servos of the simulator node.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace

import numpy as np

from tensegrity_dynamics import Robot, Simulation, load_robot
from tensegrity_dynamics.mechanisms.cable_substitution import with_cables

CASES = (
    ("single_strut", None, "rk4", 1e-4),
    ("single_strut", 2e10, "implicit", 1e-3),
    ("manipulator", None, "rk4", 1e-4),
    ("manipulator", 2e10, "implicit", 1e-3),
)
PERIODS = 50  # of commands in the second


def one_second(simulation: Simulation, robot: Robot) -> float:
    """Wall time [s] of one simulated second with a command in every control period."""
    steps = round(1.0 / (PERIODS * simulation.time_step))
    simulation.reset()
    simulation.advance(1)  # what has to be loaded or compiled is, then
    simulation.reset()
    taken = 0.0
    for period in range(PERIODS):
        angle = 0.05 * np.sin(2.0 * np.pi * period / PERIODS)
        goal = {each.name: angle * (-1.0) ** k for k, each in enumerate(robot.actuators)}
        begin = time.perf_counter()
        simulation.advance(steps, position=goal)
        taken += time.perf_counter() - begin
    return taken


def measured(name: str, young: float | None, integrator: str, step: float, repeat: int) -> dict:
    """One row: wall time of a second, and the largest gap of the loops at its end."""
    robot = load_robot(name)
    if young is not None:
        robot = replace(robot, model=with_cables(robot.model, young=young))
    simulation = Simulation(robot, step, integrator)
    taken = [one_second(simulation, robot) for _ in range(repeat)]
    return {
        "robot": name,
        "young_Pa": max(entry.young for entry in robot.model.entries),
        "integrator": integrator,
        "step_us": 1e6 * step,
        "wall_s": float(np.median(taken)),
        "us_per_step": 1e6 * float(np.median(taken)) * step,
        "times_real_time": 1.0 / float(np.median(taken)),
        "loop_error": simulation.observe().constraint_error,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [measured(*case, options.repeat) for case in CASES]
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    print("robot         E [Pa]  integrator  step [us]  us/step  wall for 1 s  times real time  loop error")
    for row in rows:
        print(
            f"{row['robot']:<12} {row['young_Pa']:>7.1e}  {row['integrator']:<10} {row['step_us']:>9.0f} "
            f"{row['us_per_step']:>8.1f} {row['wall_s']:>11.3f} s {row['times_real_time']:>16.2f} "
            f"{row['loop_error']:>11.0e}"
        )


if __name__ == "__main__":
    main()
