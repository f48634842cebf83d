"""Every fault, injected behind pseudo-terminals: found within its bus cycles, answered as stated, and got over.

What no cycle may break is asserted by the cell in every one of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from bus_fault_cases import CASES, Case, K, N
from emulated_cell import TURNING, emulated_cell

from tensegrity_driver.safety.faults import FaultKind, Reaction
from tensegrity_driver.spools.readings import Drive
from tensegrity_dynamics.errors import BusError, CommandRefused

SETTLED = 12
"""Cycles before anything is injected."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_fault_on_the_bus_is_found_in_time_answered_and_got_over(case: Case, tmp_path: Path) -> None:
    with emulated_cell(tmp_path, case.servos, **case.settings) as cell:
        cell.run(SETTLED)
        assert not cell.faults
        cell.pulled, cell.disobedient = case.pulled, case.disobedient
        before = cell.lengths()
        if case.move is not None:
            cell.goals = {N: before[N] + case.move}
        case.inject(cell)
        fault = cell.until(case.kind, case.tendon, case.within, case.first)
        assert fault.line.startswith(f"{case.tendon or 'bus'}: ") and ";" in fault.line

        # the reaction, on this tendon and on the others
        step = cell.run(1)
        assert step.reactions.get(N) in (case.reaction, case.later)
        assert step.reactions.get("draw_2") == (None if case.reaction is None else Reaction.HOLD)
        if case.reaction is not None:
            if cell.goals is not None:  # commands are not followed any more
                cell.goals = {name: length - 0.003 for name, length in before.items()}
            step = cell.run(case.cycles)
            others = {name: length for name, length in cell.lengths().items() if name != N}
            assert others == pytest.approx({name: before[name] for name in others}, abs=6e-4)
            assert step.reactions[N] in (case.reaction, case.later)
            if step.reactions[N] is Reaction.TORQUE_OFF:
                assert step.commands[N].kind is Drive.TORQUE_OFF
                assert cell.emulated.register(N, "torque_enable") == 0

        # while the cause is there it stays; without it the fault is cleared, at once or by a person
        latched = case.kind in cell.settings.latched
        if latched and not case.gone:
            with pytest.raises(CommandRefused, match="causes are there"):
                cell.driver.clear()
        if cell.goals:
            cell.goals = {}
        case.mend(cell)
        cell.run(8)
        if latched:
            assert case.kind in cell.kinds
            if case.homed:
                cell.home(N)
            cell.driver.recover()
            cell.run(30)
            cell.driver.clear()
        assert cell.kinds <= {K.SLACK}

        # and the robot goes on from where it is, without a jump, and follows again
        cell.pulled = False
        cell.run(2)  # a spool without torque runs out until its servo has heard that it may hold
        stands = cell.lengths()
        cell.run(10)
        assert cell.lengths() == pytest.approx(stands, abs=3e-4)
        cell.goals = {N: stands[N] + 0.002}
        cell.run(50)
        assert cell.length(N) == pytest.approx(stands[N] + 0.002, abs=4e-4)
        assert cell.kinds <= {K.SLACK}


def test_every_kind_of_fault_is_injected_on_the_bus() -> None:
    assert {case.kind for case in CASES} == set(FaultKind)


def test_the_table_of_tests_in_the_documentation_names_every_case_with_its_bound() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "faults.md").read_text(encoding="utf-8")
    part = text[text.index("## How all this is tested") : text.index("## Settings")]
    rows = [[each.strip() for each in line.strip("|").split("|")] for line in part.splitlines() if line[:2] == "| "]
    said = set()
    for name, _, kinds, servos, stated, seen, _ in rows[2:]:
        of, bounds, cycles = servos.split(" / "), stated.split(" / "), seen.split(" / ")
        kind = (kinds.split(" / ") * len(of))[: len(of)]
        for each in zip(of, kind, bounds, cycles, strict=True):
            assert int(each[3]) <= int(each[2]), name
            said.add((name, each[0], each[1].strip("`"), int(each[2])))
    cases = {
        (case.name.removesuffix("_x"), "X" if case.servos == TURNING else "AX", case.kind.value, case.within)
        for case in CASES
    }
    assert said == cases


def test_an_error_that_a_servo_does_not_know_is_refused(tmp_path: Path) -> None:
    with emulated_cell(tmp_path) as cell:
        with pytest.raises(BusError, match="AX-12A"):
            cell.emulated.fail(N, "electrical_shock")
        assert not cell.run(2).faults
