"""Forward dynamics of the manipulator against Pinocchio's `constraintDynamics` on an equivalent model.

Run: python benchmarks/forward_dynamics.py [--json] [--repeat N]

Both are called in turns in one process, on the same states, and agree before they are timed. Times are medians of
batches: of ours inside a compiled loop, as an integrator calls it, and from Python call by call, as Pinocchio is.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
from multibody_models import PinocchioPeer, moving_state
from numba.core.runtime import _nrt_python, rtsys

from tensegrity_dynamics.mechanisms.dynamics.forward_dynamics import accelerate
from tensegrity_dynamics.mechanisms.kinematics.loop_reduction import make_reduction_workspace
from tensegrity_dynamics.mechanisms.workspace import make_workspace
from tensegrity_dynamics.numerics.compilation import compiled

BATCH = 200


@compiled
def many(flat, q, v, effort, count, work, solver):
    """Forward dynamics `count` times, as an integrator calls it."""
    for _ in range(count):
        accelerate(flat, q, v, effort, 0.0, work, solver, False)


def interleaved(calls: dict[str, Callable[[], object]], repeat: int) -> dict[str, float]:
    """Median seconds of each call, the calls in turns so that a busy machine slows all of them alike."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeat):
        for name, call in calls.items():
            begin = time.perf_counter()
            call()
            taken[name].append(time.perf_counter() - begin)
    return {name: float(np.median(times)) for name, times in taken.items()}


def measured(repeat: int) -> dict[str, float]:
    """Times per call [us], agreement, and what one call allocates."""
    from multibody_machines import manipulator

    mechanism, q, _ = manipulator("length")
    v, effort, passive = moving_state(mechanism, q)
    flat = mechanism.flat
    work, solver = make_workspace(flat), make_reduction_workspace(flat)
    peer = PinocchioPeer(mechanism)
    begin = time.perf_counter()
    many(flat, q, v, effort, 1, work, solver)
    first = time.perf_counter() - begin
    theirs = peer.acceleration(q, v, effort + passive)
    difference = float(np.max(np.abs(solver.acceleration - theirs)) / np.max(np.abs(theirs)))
    if difference > 1e-8:
        raise SystemExit(f"the accelerations differ by {difference:.2g}: the models are not the same.")
    # what 101 calls allocate more than one call: the way into compiled code allocates too, but once
    _nrt_python.memsys_enable_stats()
    counts = []
    for calls in (1, 101):
        before = rtsys.get_allocation_stats().alloc
        many(flat, q, v, effort, calls, work, solver)
        counts.append(rtsys.get_allocation_stats().alloc - before)
    _nrt_python.memsys_disable_stats()
    state = peer.state(q, v, effort + passive)

    def ours_from_python() -> None:
        for _ in range(BATCH):
            accelerate(flat, q, v, effort, 0.0, work, solver, False)

    def theirs_from_python() -> None:
        for _ in range(BATCH):
            peer.call(*state)

    ours_from_python()
    times = interleaved(
        {
            "ours_us": lambda: many(flat, q, v, effort, BATCH, work, solver),
            "pinocchio_us": theirs_from_python,
            "ours_from_python_us": ours_from_python,
        },
        repeat,
    )
    rows = {name: 1e6 * taken / BATCH for name, taken in times.items()}
    return {
        "coordinates": mechanism.velocity_count,
        "loop_rows": mechanism.constraint_count,
        "agreement": difference,
        **rows,
        "ratio": rows["ours_us"] / rows["pinocchio_us"],
        "ratio_from_python": rows["ours_from_python_us"] / rows["pinocchio_us"],
        "allocations_per_call": (counts[1] - counts[0]) / 100,
        "first_call_s": first,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=100, help="batches of each")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--again", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    row = measured(options.repeat)
    if not options.again:  # another process, which finds the machine code on disk
        command = [sys.executable, __file__, "--json", "--again", "--repeat", "1"]
        other = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        row["first_call_from_cache_s"] = other["first_call_s"]
    if options.json:
        print(json.dumps(row, indent=2))
        return
    print(f"manipulator, `length` variant: {row['coordinates']} coordinates, {row['loop_rows']} loop rows")
    print(f"  accelerations agree within {row['agreement']:.1e} of the largest")
    print(f"  pinocchio, from Python     {row['pinocchio_us']:8.2f} us per call")
    print(f"  ours, in a compiled loop   {row['ours_us']:8.2f} us per call, ratio {row['ratio']:.2f}")
    print(
        f"  ours, from Python          {row['ours_from_python_us']:8.2f} us per call, "
        f"ratio {row['ratio_from_python']:.2f}"
    )
    print(f"  ours allocates {row['allocations_per_call']:g} times per call")
    print(
        f"  first call: {row['first_call_s']:.2f} s in this process, "
        f"{row['first_call_from_cache_s']:.2f} s in one that finds the machine code on disk"
    )


if __name__ == "__main__":
    main()
