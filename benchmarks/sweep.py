"""A sweep's time per pose and core beside a plain loop over `ik`: processor time, after compilation.

Run: python benchmarks/sweep.py [robot] [values per axis]
"""

from __future__ import annotations

import sys
import time

from tensegrity_control import inverse_kinematics
from tensegrity_control.inverse_kinematics.equilibrium_map import equilibrium_map
from tensegrity_dynamics import TensegrityError, load_robot
from tensegrity_tools.sweeps.axes import SweepAxis
from tensegrity_tools.sweeps.samples import COLUMNS, REACHED, SweepPlan, sample_chunk

REACH = {"tensebot": 0.02, "manipulator": 0.1, "three_prism": 0.02, "single_strut": 0.2}  # m to either side


def main() -> None:
    robot = load_robot(sys.argv[1] if len(sys.argv) > 1 else "tensebot")
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    reach = REACH.get(robot.name, 0.01)
    axes = tuple(SweepAxis(name, -reach, reach, count) for name in robot.output.controlled if name in "xyz")
    assert robot.path is not None
    plan = SweepPlan(robot.path.read_text(encoding="utf-8"), robot.path.name, str(robot.path), axes)
    sample_chunk(SweepPlan(plan.text, plan.source, plan.path, axes, chunk=2), 0)  # compiled before the clock runs

    begin, reached, points = time.process_time(), 0, 0
    for number in range(len(plan.pieces)):
        status = sample_chunk(plan, number)["figures"][:, COLUMNS.index("status")]
        reached, points = reached + int((status == REACHED).sum()), points + len(status)
    swept = (time.process_time() - begin) / points
    print(f"{robot.name}: {points} poses, {reached} reached; sweep {1e3 * swept:.2f} ms a pose, figures included")

    equilibria = equilibrium_map(robot.model, robot)
    home, offsets = equilibria.start(), plan.points.inner
    begin, found = time.process_time(), 0
    for row in offsets:
        position = home.pose[0].copy()
        for axis, value in zip(axes, row, strict=True):
            position["xyz".index(axis.name)] += value
        try:
            inverse_kinematics(robot, position, start=home, equilibria=equilibria)
            found += 1
        except TensegrityError:
            pass
    plain = (time.process_time() - begin) / points
    print(f"  plain loop over ik, without the figures: {1e3 * plain:.2f} ms a pose, {found} reached")


if __name__ == "__main__":
    main()
