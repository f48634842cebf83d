"""Time of one control period of the single strut and of the manipulator, and simulated time per wall time with them.

    python benchmarks/control_period.py [--periods 2000]

The peer is the document's law, whose quadratic program must be solved in every period; goals: below 150 us for the
single strut and 300 us for the manipulator, and three simulated seconds per second with the manipulator's controller.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from tensegrity_control import make_controller
from tensegrity_control.controller import RobotState
from tensegrity_control.laws.near_rigid_extended_law import ExtendedNearRigidLaw
from tensegrity_control.laws.near_rigid_law import NearRigidLaw
from tensegrity_control.motion_planning.near_rigid_tracker import NearRigidTracker
from tensegrity_control.motion_planning.output_model import OutputModel
from tensegrity_control.motion_planning.output_planner import plan_output
from tensegrity_control.motion_planning.trajectory_tracking import LinearFeedbackTracker
from tensegrity_control.optimization.solvers import SOLVERS, make_solver
from tensegrity_dynamics import Simulation, load_robot
from tensegrity_tools.experiments import manipulator, near_rigid
from tensegrity_tools.experiments._runs import Variants


def measure(name, step, periods):
    """Median and 99th percentile of a call, printed and returned [us]."""
    for _ in range(20):
        step()
    taken = np.zeros(periods)
    for k in range(periods):
        began = time.perf_counter()
        step()
        taken[k] = 1e6 * (time.perf_counter() - began)
    median, tail = np.percentile(taken, [50, 99])
    print(f"{name:44s} median {median:8.1f} us   p99 {tail:8.1f} us")
    return median


def of_qp(robot, periods):
    """The whole period of `qp`, model included, and its program alone under each solver."""
    own = make_controller("qp", robot, period=manipulator.PERIOD)
    state = Simulation(robot, 1e-3).state
    seen = RobotState(q=state.q, v=state.v)
    own.reset(0.0, seen)
    ours = measure("  qp: whole period", lambda: own.command(2.0, seen), periods)
    measure("    its model", lambda: own.equations.update(state.q, state.v, 0.0025), periods)
    program = own.program.program
    for name in SOLVERS:
        solver = make_solver(name, program.sizes)
        measure(f"    its program alone, {name}", lambda solver=solver: solver.solve(program), periods)
    print(f"  goal below 150 us: {'met' if ours < 150 else 'missed'}")


def main():
    """Print all of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--periods", type=int, default=2000)
    periods = parser.parse_args().periods

    variants = Variants()
    strut = load_robot(str(near_rigid.strut_file(variants, 2e9)))
    floor = near_rigid.STRESS * strut.mechanism.cables[0].area
    own = NearRigidTracker(strut, near_rigid.TRACKED, near_rigid.path(), period=1e-3, floor=floor)
    law = NearRigidLaw(strut, near_rigid.TRACKED, near_rigid.STRESS / 2e9)
    q, v = np.array(strut.model.start), np.zeros(14)
    print("single strut")
    ours = measure("  planned strains and regulator", lambda: own.effort(2.0, q, v), periods)
    theirs = measure("  the document's law", lambda: law.effort(q, v, np.array([0.1, -0.2])), periods)
    print(f"  ratio {ours / theirs:.3f}; goal below 150 us: {'met' if ours < 150 else 'missed'}\n")

    robot = load_robot("manipulator")
    model, path = OutputModel(robot), manipulator.path("vertical", 0.1)
    plan = plan_output(model, path.value, path.end, manipulator.PERIOD)
    control = LinearFeedbackTracker(model, plan)
    stiffness = np.array([cable.young * cable.area for cable in robot.mechanism.cables])
    extended = ExtendedNearRigidLaw(robot, manipulator.STRUTS, manipulator.FLOOR / stiffness)
    q, v = plan.position, np.zeros(39)
    print("manipulator")
    ours = measure("  planned motion with its feedback", lambda: control.effort(0.5, q, v), periods)
    theirs = measure("  the document's law", lambda: extended.effort(q, v, np.array([0.0, 0.0, 0.1])), periods)
    print(f"  ratio {ours / theirs:.3f}; goal below 300 us: {'met' if ours < 300 else 'missed'}")

    of_qp(robot, periods)

    simulation = Simulation(robot, 1e-3, start=plan.position)
    began, simulated = time.perf_counter(), 4.0
    for _ in range(round(simulated / manipulator.PERIOD)):
        state = simulation.state
        effort = control.effort(state.time, state.q, state.v)
        simulation.advance(duration=manipulator.PERIOD, effort=control.as_dict(effort))
    factor = simulated / (time.perf_counter() - began)
    print(f"  {factor:.1f} simulated seconds per second in steps of 1 ms; goal 3: {'met' if factor >= 3 else 'missed'}")
    try:
        from tensegrity_tools.runtime.lockstep_run import through_nodes
    except ImportError as problem:
        print(f"  not through the nodes: {problem}")
        return
    begin_position = path.value(0.0)
    through = through_nodes(
        "manipulator", "task", [(1.0, begin_position, None), (2.0, begin_position - [0.0, 0.0, 0.05], None)],
        period=manipulator.PERIOD, time_step=1e-3,
    )  # fmt: skip
    print(f"  {through.times[-1] / through.wall:.2f} simulated seconds per second through the nodes in lock-step")


if __name__ == "__main__":
    main()
