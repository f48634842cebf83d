"""Forward dynamics of a robot beside those of an older commit: what additions to the equations cost those without them.

Run: python benchmarks/forward_dynamics_before.py [COMMIT] [--robot manipulator] [--rounds 200]

Without a commit it is the last one before bodies carried loads, joints resisted and cables ran over several pulleys.
The older one stands in a worktree of its own while this runs; both compute in turns, in processes of their own, the
same accelerations at the same states, in processor time. Goal: at most 1.05.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BEFORE_LOADS = "c7b7963"
BATCH = 100
HERE = Path(__file__).resolve().parent.parent


def serve(name: str) -> None:
    """For every line that comes in: microseconds of processor time per call, and the sum of the accelerations."""
    import numpy as np

    from tensegrity_dynamics import load_robot
    from tensegrity_dynamics.mechanisms.dynamics.forward_dynamics import accelerate
    from tensegrity_dynamics.mechanisms.kinematics.loop_reduction import make_reduction_workspace
    from tensegrity_dynamics.mechanisms.workspace import make_workspace
    from tensegrity_dynamics.numerics.compilation import compiled

    @compiled
    def many(flat, q, v, effort, count, work, reduction):
        for _ in range(count):
            accelerate(flat, q, v, effort, 0.0, work, reduction, False)

    model = load_robot(name).model
    flat = model.mechanism.flat
    q, random = np.array(model.start), np.random.default_rng(0)
    v, effort = 0.1 * random.normal(size=(2, model.mechanism.velocity_count))
    work, reduction = make_workspace(flat), make_reduction_workspace(flat)
    for _ in sys.stdin:
        begin = time.thread_time_ns()
        many(flat, q, v, effort, BATCH, work, reduction)
        taken = time.thread_time_ns() - begin
        print(1e-3 * taken / BATCH, np.abs(reduction.acceleration).sum(), flush=True)


def started(tree: Path, robot: str) -> subprocess.Popen[str]:
    """A process that serves with the sources of a tree."""
    command = [sys.executable, __file__, "--serve", "--robot", robot]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tree, env=environment
    )


def asked(process: subprocess.Popen[str]) -> tuple[float, float]:
    """Of one batch of a process."""
    assert process.stdin is not None and process.stdout is not None
    print(file=process.stdin, flush=True)
    taken, total = map(float, process.stdout.readline().split())
    return taken, total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", nargs="?", default=BEFORE_LOADS)
    parser.add_argument("--robot", default="manipulator")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.robot)
        return
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder) / "before"
        git = ["git", "-C", str(HERE), "worktree"]
        subprocess.run([*git, "add", "--detach", str(before), given.commit], check=True, capture_output=True)
        try:
            processes = [started(tree, given.robot) for tree in (before, HERE)]
            rows = np.array([[asked(each) for each in processes] for _ in range(given.rounds + 5)])[5:]
            for each in processes:
                each.communicate()
        finally:
            subprocess.run([*git, "remove", "--force", str(before)], check=True, capture_output=True)
    taken, totals = rows[:, :, 0], rows[0, :, 1]
    if not abs(totals[1] / totals[0] - 1.0) < 1e-9:
        raise SystemExit(f"the accelerations differ: {totals[0]!r} before and {totals[1]!r} now.")
    for name, column in zip((given.commit, "now"), taken.T, strict=True):
        print(f"{name:>10}: least {column.min():.2f} us, median {np.median(column):.2f} us per call")
    print(f"ratio of the least ones {taken[:, 1].min() / taken[:, 0].min():.3f}, ", end="")
    print(f"median of the ratios of neighbours {np.median(taken[:, 1] / taken[:, 0]):.3f}; goal: at most 1.05")


if __name__ == "__main__":
    main()
