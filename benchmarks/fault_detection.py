"""How soon every fault is found on the emulated bus: bus cycles from its cause to its name, and what is found besides.

Run: python benchmarks/fault_detection.py [CASE ...]

The faults are those of test/driver/test_bus_faults.py. Prints a table in Markdown; X: servos that count turns.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "test" / "support"))

from bus_fault_cases import CASES, SETTLED, Case, N
from emulated_cell import TURNING, emulated_cell

from tensegrity_dynamics.errors import unknown_name


def detect(case: Case) -> tuple[int, set[str]]:
    """Bus cycles until a fault is found, and the kinds of all others that hold eight cycles later."""
    with tempfile.TemporaryDirectory() as folder, emulated_cell(Path(folder), case.servos, **case.settings) as cell:
        cell.run(SETTLED)
        cell.pulled, cell.disobedient = case.pulled, case.disobedient
        if case.move is not None:
            cell.goals = {N: cell.length(N) + case.move}
        case.inject(cell)
        cycles = 0
        while (case.kind, case.tendon) not in cell.faults:
            cell.run(1)
            cycles += 1
            if cycles > case.within:
                raise SystemExit(f"{case.name} was not found within {case.within} cycles")
        cell.run(8)
        return cycles, {kind.value for kind in cell.kinds} - {case.kind.value}


def table(cases: list[Case]) -> Iterator[str]:
    """Rows of the table, one by one as they are measured."""
    yield "| case | servos | found as | within | found after | found besides |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for case in cases:
        cycles, besides = detect(case)
        servos = "X" if case.servos == TURNING else "AX"
        others = ", ".join(f"`{each}`" for each in sorted(besides))
        yield f"| {case.name} | {servos} | `{case.kind.value}` | {case.within} | {cycles} | {others} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE")
    chosen = parser.parse_args().cases
    for name in chosen:
        if name not in [case.name for case in CASES]:
            parser.error(unknown_name("case", name, [case.name for case in CASES]))
    for row in table([case for case in CASES if not chosen or case.name in chosen]):
        print(row, flush=True)


if __name__ == "__main__":
    main()
