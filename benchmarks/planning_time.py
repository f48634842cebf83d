"""Planning time of the controllers that plan, over the time of the motion that they plan.

    OPENBLAS_NUM_THREADS=1 python benchmarks/planning_time.py [--repeats 3] [--robots manipulator single_strut]

For every mechanism that `task` or `near_rigid` takes: goals along every controlled axis, at the duration that the
controller chooses and at twice and four times that; the path that is searched, the motion, its feedback and the check
of what is left all count. Times are of the process, the least of some repeats, so that other work on the machine hardly
counts; libraries of linear algebra had better keep to one thread, as threads that wait count as work. Goal: a tenth.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np

from tensegrity_control import make_controller
from tensegrity_control.controller import RobotState
from tensegrity_dynamics import Simulation, load_robot
from tensegrity_dynamics.errors import TensegrityError

ROBOTS = ("manipulator", "single_strut", "biglide", "cable_robot", "three_rrr", "stewart")
DISTANCE = 0.03
"""m of a goal from the pose at rest."""
STRETCHES = (1.0, 2.0, 4.0)


def planned(controller, pose, offset, duration, repeats):
    """The least planning time [s] of a goal, and its plan."""
    best, plan = np.inf, None
    for _ in range(repeats):
        began = time.process_time()
        goal = controller.make_goal(0.0, pose[0] + offset, None)
        plan = controller.plan_goal(0.0, goal, duration=duration)
        best = min(best, time.process_time() - began)
    return best, plan


def measure(name, kind, repeats):
    """Print one line a goal and duration; returns the ratios."""
    try:
        robot = load_robot(name)
        controller = make_controller(kind, robot)
        state = Simulation(robot, 1e-3).state
        controller.reset(0.0, RobotState(q=state.q, v=state.v))
    except TensegrityError as refused:
        print(f"{name:14s} {kind:10s} refused: {str(refused)[:90]}")
        return []
    pose, ratios = controller.reference(0.0).pose, []
    for row in (row for row in robot.output.rows if row < 3):
        offset = np.zeros(3)
        offset[row] = -DISTANCE
        try:
            planned(controller, pose, offset, None, 1)  # whatever is compiled on first use
            usual = planned(controller, pose, offset, None, 1)[1].duration
        except TensegrityError as refused:
            print(f"{name:14s} {kind:10s} {'xyz'[row]} refused: {str(refused)[:80]}")
            continue
        for stretch in STRETCHES:
            took, plan = planned(controller, pose, offset, stretch * usual, repeats)
            ratios.append(took / plan.duration)
            left = getattr(plan.tracker.plan, "defect", getattr(plan.tracker, "strains", None))
            left = getattr(left, "residual", left)
            print(
                f"{name:14s} {kind:10s} {'xyz'[row]} {plan.duration:7.3f} s  planning {took:7.4f} s  "
                f"ratio {ratios[-1]:6.3f}  left {left if left is None else format(left, '.1e')}"
            )
    return ratios


def main():
    """Print all of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--robots", nargs="+", default=ROBOTS)
    arguments = parser.parse_args()
    for kind in ("task", "near_rigid"):
        ratios = [ratio for name in arguments.robots for ratio in measure(name, kind, arguments.repeats)]
        if ratios:
            print(f"{kind}: worst {max(ratios):.3f}, median {np.median(ratios):.3f}; goal 0.1\n")


if __name__ == "__main__":
    main()
