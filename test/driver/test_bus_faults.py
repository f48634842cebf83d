"""Every fault, injected behind pseudo-terminals: found within its bus cycles, answered as stated, and cleared.

What no cycle may break is asserted by the cell in every one of them.
"""

from __future__ import annotations

from pathlib import Path

import fault_cell
import pytest
from bus_fault_cases import CASES, PERIOD, SETTLED, Case, K, N, S
from emulated_cell import emulated_cell
from fault_detection import detect

from tensegrity_driver.safety.faults import FaultKind, Reaction
from tensegrity_driver.spools.readings import Drive
from tensegrity_dynamics.errors import BusError, CommandRefused

CYCLES_LEFT_THERE = 8
"""Cycles for which the fault is left there after it was found."""
OTHERS = {None: None, Reaction.TORQUE_OFF: Reaction.RELEASE}
"""What the tendons without a fault of their own do, by the reaction of the one that has it, where they do not hold."""


@pytest.mark.sampled(6)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_fault_is_found_in_time_stops_its_tendon_and_ends_only_with_its_cause(case: Case, tmp_path: Path) -> None:
    with emulated_cell(tmp_path, case.servos, **case.settings) as cell:
        cell.run(SETTLED)
        assert not cell.faults
        cell.pulled, cell.disobedient = case.pulled, case.disobedient
        before = cell.lengths()
        if case.move is not None:
            cell.goals = {N: before[N] + case.move}
        case.inject(cell)
        fault = cell.until(case.kind, case.tendon, case.within, case.first)
        assert fault.line.startswith(f"{case.tendon or 'bus'}: ")
        # all that brings the robot back below is in that line
        assert ("driver/release" in fault.line) == (case.kind in cell.settings.latched)
        assert "home" in fault.line or not case.homed

        # the reaction, on this tendon and on the others
        step = cell.run(1)
        here = cell.length(N)
        assert step.reactions.get(N) is case.reaction
        assert step.reactions.get("draw_2") is OTHERS.get(case.reaction, Reaction.HOLD)
        if case.reaction is not None:
            if cell.goals is not None:  # commands are not followed any more
                cell.goals = {name: length - 0.003 for name, length in before.items()}
            step = cell.run(CYCLES_LEFT_THERE)
            others = {name: length for name, length in cell.lengths().items() if name != N}
            let_go = step.reactions[N] is Reaction.TORQUE_OFF  # then all others pay out, slowly and at one rate
            slack = cell.settings.release_rate * PERIOD * (CYCLES_LEFT_THERE + 1) if let_go else 0.0
            assert others == pytest.approx({name: before[name] for name in others}, abs=6e-4 + slack)
            assert step.reactions[N] is (case.later or case.reaction)
            if step.reactions[N] is Reaction.TORQUE_OFF:
                assert step.commands[N].kind is Drive.TORQUE_OFF
                assert cell.emulated.register(N, "torque_enable") == (case.kind is K.TORQUE_STAYS_ON)
            elif step.reactions[N] is Reaction.RELEASE:
                assert 0.0 < cell.length(N) - here <= cell.settings.release_distance
            elif N not in cell.disobedient:
                assert cell.length(N) == pytest.approx(here, abs=1e-4)

        # while the cause is there it stays; without it the fault is cleared, at once or by a person
        latched = case.kind in cell.settings.latched
        if latched and not case.gone:
            with pytest.raises(CommandRefused, match="causes are there"):
                cell.driver.clear()
        if cell.goals:
            cell.goals = {}
        case.mend(cell)
        cell.new_goal()
        cell.run(8 if case.kind is not K.TWO_SOURCES else 1 + S.stale)
        if latched:
            assert case.kind in cell.kinds
            if case.homed:
                cell.home(N)
            cell.driver.recover()
            cell.clear(within=30)
            cell.run(2)
        assert cell.kinds <= {K.SLACK}

        # and the robot goes on from where it is, without a jump, and follows again
        cell.pulled = False
        cell.run(2)  # a spool without torque runs out until its servo has heard that it may hold
        stands = cell.lengths()
        cell.run(10)
        assert cell.lengths() == pytest.approx(stands, abs=3e-4)
        cell.go_to(N, stands[N] + 0.002, within=50)
        assert cell.kinds <= {K.SLACK}


def test_every_kind_of_fault_is_injected_on_the_bus_or_on_ideal_spools() -> None:
    assert {case.kind for case in (*CASES, *fault_cell.CASES)} == set(FaultKind)


def test_an_error_that_a_servo_does_not_know_is_refused(tmp_path: Path) -> None:
    with emulated_cell(tmp_path) as cell:
        with pytest.raises(BusError, match="AX-12A"):
            cell.emulated.faults.fail(N, "electrical_shock")
        assert not cell.run(2).faults


def test_the_time_to_find_a_fault_is_measured_in_bus_cycles() -> None:
    case = next(each for each in CASES if each.name == "hot_x")
    assert detect(case) == (case.within, set())  # the tendons of the others are let out with it: none goes slack alone
