"""How the cost of forward dynamics grows with the number of struts in a tower of 1 to 30 stages.

Run: python benchmarks/mechanism_tower.py [stages ...] [--json] [--repeat N]

A stage is three struts that stand on those below, and six wound cables. Pinocchio's `constraintDynamics` on the same
tower runs in turns with ours up to the height where its constraint data still fit into memory (3 GB for 12 stages,
more than 20 GB for 30). The exponent is the slope of the logarithm of the time over that of the struts.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import numpy as np
from forward_dynamics import interleaved, many
from multibody_models import PinocchioPeer, moving_state, tower

from tensegrity_dynamics.mechanisms.dynamics.equations_of_motion import equations
from tensegrity_dynamics.mechanisms.kinematics.loop_reduction import make_reduction_workspace
from tensegrity_dynamics.mechanisms.workspace import make_workspace

STAGES = (1, 2, 3, 5, 8, 12, 20, 30)
PEER_STAGES = 8
CLOSED = 1e-12


def measured(stages: int, repeat: int) -> dict[str, float]:
    """One row: size, gap of the loops, agreement, times."""
    begin = time.perf_counter()
    mechanism, q = tower(stages)
    built = time.perf_counter() - begin
    v, effort, passive = moving_state(mechanism, q)
    error = float(np.max(np.abs(equations(mechanism, q, v).loop_error)))
    if error > CLOSED:
        raise SystemExit(f"the tower of {stages} stages leaves a gap of {error:.2g} m.")
    flat = mechanism.flat
    work, solver = make_workspace(flat), make_reduction_workspace(flat)
    batch = max(1, 400 // stages**2)
    many(flat, q, v, effort, 1, work, solver)
    calls: dict[str, Callable[[], object]] = {"ours_us": lambda: many(flat, q, v, effort, batch, work, solver)}
    row: dict[str, float] = {}
    if stages <= PEER_STAGES:
        peer = PinocchioPeer(mechanism)
        state = peer.state(q, v, effort + passive)
        theirs = peer.acceleration(q, v, effort + passive)
        row["agreement"] = float(np.max(np.abs(solver.acceleration - theirs)) / np.max(np.abs(theirs)))
        calls["pinocchio_us"] = lambda: [peer.call(*state) for _ in range(batch)]
    row |= {name: 1e6 * taken / batch for name, taken in interleaved(calls, repeat).items()}
    return {
        "stages": stages,
        "struts": 3 * stages,
        "coordinates": mechanism.velocity_count,
        "loop_rows": mechanism.constraint_count,
        "loop_error": error,
        "built_s": built,
        **row,
    }


def exponent(rows: list[dict[str, float]], name: str) -> float:
    """Slope of log time over log struts."""
    struts = np.array([row["struts"] for row in rows])
    return float(np.polyfit(np.log(struts), np.log([row[name] for row in rows]), 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stages", nargs="*", type=int, default=STAGES)
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [measured(stages, options.repeat) for stages in options.stages]
    fits = {}
    for name in ("ours_us", "pinocchio_us"):
        some = [row for row in rows if name in row]
        if len(some) > 1:
            fits[name] = exponent(some, name)
    tall = [row for row in rows if row["struts"] >= 24]
    if len(tall) > 1:
        fits["ours_us from 24 struts"] = exponent(tall, "ours_us")
    if options.json:
        print(json.dumps({"rows": rows, "exponents": fits}, indent=2))
        return
    print("stages  struts  coordinates  loop rows  loop error  built [s]  ours [us]  pinocchio [us]  ratio  agreement")
    for row in rows:
        line = (
            f"{row['stages']:>6} {row['struts']:>7} {row['coordinates']:>12} {row['loop_rows']:>10} "
            f"{row['loop_error']:>11.0e} {row['built_s']:>10.2f} {row['ours_us']:>10.1f}"
        )
        if "pinocchio_us" in row:
            ratio = row["ours_us"] / row["pinocchio_us"]
            line += f" {row['pinocchio_us']:>15.1f} {ratio:>6.2f} {row['agreement']:>10.0e}"
        print(line)
    print("exponents: " + ", ".join(f"{name} {value:.2f}" for name, value in fits.items()))


if __name__ == "__main__":
    main()
