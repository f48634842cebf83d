"""A process that stands still for a while: what moves meanwhile, what is latched on waking, and how it goes on.

Clocks are injected: nobody sleeps. The table of docs/reliability.md is `python test/driver/test_stalls.py`.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from emulated_cell import TURNING, WHEELS, EmulatedCell, emulated_cell

from tensegrity_driver.safety.faults import FaultKind
from tensegrity_dynamics import Simulation, load_robot
from tensegrity_dynamics.command_gate import CommandGate, Mode
from tensegrity_dynamics.errors import TensegrityError

K, N = FaultKind, "draw_1"
GAPS = (0.1, 0.3, 1.0, 3.0, 10.0)
SERVOS = {"AX": WHEELS, "X": TURNING}
STALE = 0.5
"""s: `stale` cycles of 20 ms."""
WATCHDOG = 0.5
"""s after which an X servo stops by itself."""


@dataclass
class Stall:
    """What one stall did: m beyond the goal, faults on waking, m moved by the streams that went on, m by a new goal."""

    beyond: float
    faults: set[str]
    by_itself: float
    after_a_goal: float


def driver_stall(cell: EmulatedCell, gap: float) -> Stall:
    """The driver stands still and the servos go on; then the period that it measures is the gap."""
    cell.run(5)
    goal = cell.length(N) + 0.004
    cell.goals = {N: goal}
    cell.run(8)
    cell.disobedient, cell.pulled = (N,), True  # nobody tells it anything meanwhile
    cell.run_world_only(round(gap / cell.period) - 1)
    planned = cell.period
    cell.world(planned)
    cell.now += planned
    cell.command(cell.goals)
    faults = {each.kind for each in cell.driver.run(gap, cell.now).faults}
    beyond = max(cell.length(N) - goal, 0.0)
    cell.run(4)
    return recovered(cell, beyond, faults)


def controller_stall(cell: EmulatedCell, gap: float) -> Stall:
    """The controller stands still, and goes on with the stream of before."""
    cell.run(5)
    goals = {N: cell.length(N) + 0.004}
    cell.goals = goals
    cell.run(8)
    cell.goals = None
    cell.run(round(gap / cell.period))
    beyond = max(cell.length(N) - goals[N], 0.0)
    cell.goals = goals
    faults = {each.kind for each in cell.run(3).faults}
    return recovered(cell, beyond, faults)


def recovered(cell: EmulatedCell, beyond: float, faults: set[FaultKind]) -> Stall:
    """What people do: clear what is latched, and send a goal."""
    serious = {each.value for each in faults if each is not K.SLACK}
    before = cell.length(N)
    cell.goals = {N: before - 0.004}
    cell.run(25)
    by_itself = abs(cell.length(N) - before)
    if {each.kind for each in cell.driver.faults} & set(cell.settings.latched):
        low, high = cell.driver.spools[N].actuator.position
        for _ in range(40):
            try:
                cell.driver.recover()
                cell.run(2)
                if K.SPOOL_LIMIT in cell.kinds:
                    cell.driver.jog(N, min(max(cell.length(N), low), high))
                    cell.run(20)
                cell.driver.clear()
                break
            except TensegrityError:  # a cause is still there
                cell.run(5)
    before = cell.length(N)
    cell.goals = {N: before - 0.002}
    cell.new_goal()
    cell.run(60)
    return Stall(beyond, serious, by_itself, abs(cell.length(N) - before))


def simulated_stall(gap: float) -> Stall:
    """The controller of a simulated robot stands still: the simulator's rules, in its own time."""
    robot = load_robot("tensebot")
    simulation, period = Simulation(robot), 0.02
    gate = CommandGate(robot.actuators, freshness=STALE)
    now, session, start = 0.0, 1, simulation.observe().positions[N]
    goal = start + 0.004

    def run(seconds: float, commanded: float | None) -> bool:
        nonlocal now
        held = False
        for _ in range(round(seconds / period)):
            now += period
            if commanded is not None:
                asked = gate.check([N], [commanded], Mode.POSITION, source="c", session=session, stamp=now, now=now)
                for name, (mode, value) in asked.set_points.items():
                    simulation.command(mode.value, {name: value})
                held = asked.holds is not None
            if held or gate.must_hold(now) is not None:
                simulation.hold()
            simulation.advance(duration=period)
        return held

    run(0.2, goal)
    run(gap, None)
    beyond = max(simulation.observe().positions[N] - goal, 0.0)
    held = run(0.1, goal)
    before = simulation.observe().positions[N]
    run(0.5, before - 0.004)
    by_itself = abs(simulation.observe().positions[N] - before)
    session, before = 2, simulation.observe().positions[N]
    run(1.0, before - 0.002)
    moved = abs(simulation.observe().positions[N] - before)
    return Stall(beyond, {"the actuators hold"} if held else set(), by_itself, moved)


def stall(process: str, hardware: str, gap: float, folder: Path) -> Stall:
    if hardware == "simulation":
        return simulated_stall(gap)
    with emulated_cell(folder, SERVOS[hardware]) as cell:
        return (driver_stall if process == "driver" else controller_stall)(cell, gap)


CASES = [
    (process, hardware, gap)
    for process, hardware in [("driver", "AX"), ("driver", "X"), ("controller", "AX"), ("controller", "X"),
                              ("controller", "simulation")]
    for gap in GAPS
]  # fmt: skip
QUICK = {("driver", "AX", 1.0), ("driver", "X", 1.0), ("controller", "AX", 0.3), ("controller", "X", 1.0)}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("process", "hardware", "gap"),
    [
        each if each in QUICK or each[1] == "simulation" else pytest.param(*each, marks=pytest.mark.long)
        for each in CASES
    ],
)
def test_every_gap_above_the_stale_time_is_latched_on_waking_and_ends_with_a_goal(
    process: str, hardware: str, gap: float, tmp_path: Path
) -> None:
    done = stall(process, hardware, gap, tmp_path)
    if gap <= STALE:
        assert not done.faults
        return
    assert done.faults, f"{gap} s and nobody says so"
    if process == "driver":
        assert "overrun" in done.faults
    elif hardware != "simulation":
        assert "stale_command" in done.faults
    assert done.by_itself <= 3e-4
    assert done.after_a_goal > 1.5e-3
    if process == "controller" or hardware == "X":
        assert done.beyond <= 3e-4


if __name__ == "__main__":
    print("| process | hardware | gap | beyond the goal | found on waking | moved by itself then |")
    print("| --- " * 6 + "|")
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            seen = stall(*case, Path(folder))
        found = ", ".join(sorted(seen.faults)) or "-"
        print(f"| {case[0]} | {case[1]} | {case[2]:g} s | {1e3 * seen.beyond:.1f} mm | {found} | "
              f"{1e3 * seen.by_itself:.2f} mm |")  # fmt: skip
