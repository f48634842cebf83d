"""Torque off is confirmed by every servo within three cycles, if need be by a second way, or is a fault."""

from __future__ import annotations

from pathlib import Path

import pytest
from bus_fault_cases import K, N, fast
from emulated_cell import TURNING, WHEELS, emulated_cell

from tensegrity_dynamics.errors import BusError


@pytest.mark.sampled(1)
@pytest.mark.parametrize("servos", [WHEELS, TURNING])
def test_a_runaway_whose_group_writes_are_lost_is_switched_off_by_a_write_of_its_own(
    servos: str, tmp_path: Path
) -> None:
    with emulated_cell(tmp_path, servos) as cell:
        cell.run(5)
        cell.disobedient = (N,)
        cell.emulated.faults.lose_writes(N, singles=False)
        cell.emulated.faults.run_away(N, fast(0.01))
        for _ in range(62):  # first it is told to stand, which does not arrive either
            if K.DISOBEYS_HOLD in {each.kind for each in cell.run(1).new}:
                break
        else:
            raise AssertionError("it is not found")
        cell.run(2)
        assert cell.emulated.register(N, "torque_enable") == 0.0
        cell.run(3)
        assert K.TORQUE_STAYS_ON not in cell.kinds


@pytest.mark.sampled(1)
@pytest.mark.parametrize("servos", [WHEELS, TURNING])
def test_where_no_write_arrives_it_says_within_three_cycles_to_cut_the_supply(servos: str, tmp_path: Path) -> None:
    with emulated_cell(tmp_path, servos) as cell:
        cell.run(5)
        cell.disobedient = (N,)
        cell.emulated.faults.lose_writes(N)
        cell.emulated.faults.run_away(N, fast(0.01))
        for _ in range(62):
            if K.DISOBEYS_HOLD in {each.kind for each in cell.run(1).new}:
                break
        fault = cell.until(K.TORQUE_STAYS_ON, N, 3)
        assert "cut the supply" in fault.line
        cell.driver.stop("test")
        with pytest.raises(BusError, match=r"torque may still be on \(draw_1.*Switch the servo supply off"):
            cell.driver.end(release_torque=True)


@pytest.mark.parametrize("way", [-0.01, 0.01])
def test_a_wheel_whose_group_writes_are_lost_on_the_way_is_stopped_by_writes_of_its_own(
    way: float, tmp_path: Path
) -> None:
    """At its last speed it would pay out until its tendon is slack, held in vain by group writes."""
    with emulated_cell(tmp_path, WHEELS) as cell:
        cell.run(5)
        cell.goals = {N: cell.length(N) + way}
        cell.run(10)
        cell.emulated.faults.lose_writes(N, singles=False)
        cell.goals = {N: cell.length(N)}
        cell.run(15)
        stands = cell.length(N)
        cell.run(60)
        assert abs(cell.length(N) - stands) < 2e-3
