"""How fast structures are simulated: seconds simulated per second of wall time, for each integrator.

Run: python benchmarks/simulation.py [robot ...] [--json] [--steps N]

Each at its default step (a twentieth of the shortest period) and at a millisecond for the implicit method, in one
compiled call, and in control periods of 20 ms with a command and an observation each, as the simulator node does.
"""

from __future__ import annotations

import argparse
import json
import time

from tensegrity_dynamics import Robot, Simulation, load_robot
from tensegrity_dynamics.structures.dynamics.structure_simulator import INTEGRATORS

CONTROL_PERIOD = 0.02


def measured(robot: Robot, integrator: str, steps: int, time_step: float | None = None) -> dict[str, float | str]:
    """Speed and accuracy of one integrator: best of three runs, without compilation."""
    simulation = Simulation(robot, time_step, integrator)
    simulation.advance(10)
    best = float("inf")
    for _ in range(3):
        begin = time.perf_counter()
        simulation.advance(steps)
        best = min(best, time.perf_counter() - begin)
    held = {each.name: simulation.observe().rest_lengths[each.drives] for each in robot.actuators}
    each, periods = max(1, round(CONTROL_PERIOD / simulation.time_step)), 50
    begin = time.perf_counter()
    for _ in range(periods):
        simulation.advance(each, position=held)
        simulation.observe()
    controlled = time.perf_counter() - begin
    return {
        "robot": robot.name,
        "integrator": integrator,
        "step_us": 1e6 * simulation.time_step,
        "steps_per_shortest_period": simulation.shortest_period / simulation.time_step,
        "us_per_step": 1e6 * best / steps,
        "times_real_time": steps * simulation.time_step / best,
        "times_real_time_with_commands": periods * each * simulation.time_step / controlled,
    }


def start_up(robot: Robot) -> float:
    """Time to make a simulation at its equilibrium [ms], everything compiled."""
    Simulation(robot)
    begin = time.perf_counter()
    Simulation(robot)
    return 1e3 * (time.perf_counter() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("robots", nargs="*", default=["tensebot", "three_prism"])
    parser.add_argument("--steps", type=int, default=20000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = []
    for robot in map(load_robot, options.robots):
        rows += [measured(robot, integrator, options.steps) for integrator in INTEGRATORS]
        rows.append(measured(robot, "implicit", max(1, options.steps // 10), 1e-3))
        rows[-1]["start_up_ms"] = start_up(robot)
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    print("robot         integrator  step [us]  per period  us/step  times real time  with commands and observations")
    for row in rows:
        print(
            f"{row['robot']:<13} {row['integrator']:<10} {row['step_us']:>10.1f} "
            f"{row['steps_per_shortest_period']:>11.1f} {row['us_per_step']:>8.2f} {row['times_real_time']:>16.1f} "
            f"{row['times_real_time_with_commands']:>15.1f}"
        )
        if "start_up_ms" in row:
            print(f"              start at the equilibrium: {row['start_up_ms']:.1f} ms")


if __name__ == "__main__":
    main()
