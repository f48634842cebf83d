"""Ten minutes of an emulated robot under random faults and random goals, with limits checked in every bus cycle.

Run: python benchmarks/soak.py [--seconds 600] [--seed 1] [--model AX-12A] [--json]

The seconds are those of the robot, shared among the models; by the wall it takes up to twice as long, because
lost answers are waited for. It ends with an error at the first cycle in which a tendon passes its ceiling, a spool its
limits, a fault is not found in time, or one comes without a cause.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "test" / "support"))

from emulated_cell import TURNING, WHEELS, emulated_cell
from emulated_soak import Soak, resident


def soak(model: str, seconds: float, seed: int) -> dict[str, object]:
    """Figures of one run."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, emulated_cell(Path(folder), model) as cell:
        run = Soak(cell, model, seed)
        run.run(round(seconds / cell.period))
        quarter = max(1, len(run.memory) // 4)
        return {
            "model": model,
            "seed": seed,
            "cycles": run.cycles,
            "robot_seconds": round(run.cycles * cell.period, 1),
            "wall_seconds": round(time.monotonic() - began, 1),
            "faults_injected": sum(run.injected.values()),
            "faults_found": sum(run.found.values()),
            "to_be_found": sum(run.expected.values()),
            "by_kind": {name: [run.injected[name], run.found[name]] for name in sorted(run.injected)},
            "most_cycles_until_found": dict(sorted(run.slowest.items())),
            "other_faults": dict(sorted(run.side.items())),
            "worst_tension_over_ceiling": round(cell.worst_tension, 4),
            "worst_mm_beyond_limits": round(1e3 * cell.worst_excursion, 3),
            "memory_after_first_quarter_MB": round(run.memory[quarter - 1] / 1e6, 2),
            "memory_at_end_MB": round(resident() / 1e6, 2),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--model", choices=(WHEELS, TURNING), action="append")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    models = options.model or [WHEELS, TURNING]
    found = [soak(model, options.seconds / len(models), options.seed + k) for k, model in enumerate(models)]
    if options.json:
        print(json.dumps(found))
        return
    for each in found:
        print("\n".join(f"{name:32} {value}" for name, value in each.items()), end="\n\n")


if __name__ == "__main__":
    main()
