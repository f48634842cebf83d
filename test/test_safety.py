"""Every fault is found within its bus cycles, stops what it must, and stays until its cause has gone."""

from __future__ import annotations

import pytest
from spool_bench import PERIOD, Bench, spool

from tensegrity_driver.position_loop import FreeRunLoop, PositionLoop
from tensegrity_driver.reactions import FaultKind, SafetySettings
from tensegrity_driver.safety import SafetyLayer, SafetyStep
from tensegrity_dynamics.command_gate import Mode

NAMES = ("draw_1", "draw_2", "saddle_1")


class Cell:
    """A bench under a safety layer."""

    def __init__(self, *, encoder: bool = False, settings: SafetySettings | None = None, **changes: object) -> None:
        self.settings = settings or SafetySettings(period=PERIOD)
        self.spools = [spool(name, encoder=encoder, **changes) for name in NAMES]
        kind = PositionLoop if encoder else FreeRunLoop
        self.loops = {each.name: kind(each, PERIOD) for each in self.spools}
        self.layer = SafetyLayer(self.spools, self.loops, self.settings)
        self.bench = Bench.of(*self.spools)
        self.cycle = 0
        self.layer.take_over(self.bench.read())

    def run(self, cycles: int, set_points=None) -> SafetyStep:
        for k in range(cycles):
            step = self.layer.step(self.cycle, self.bench.read(), (set_points or {}) if k == 0 else {})
            self.bench.move(dict(step.commands))
            self.cycle += 1
        return step

    def until(self, kind: FaultKind, tendon: str | None, within: int) -> int:
        """Cycles until a fault is found; it must be the first new one and come within the bound."""
        for k in range(1, within + 1):
            step = self.run(1)
            if step.new:
                assert (step.new[0].kind, step.new[0].tendon) == (kind, tendon), [each.line for each in step.new]
                return k
        raise AssertionError(f"{kind} was not found within {within} cycles; {self.layer.latch.faults}")


@pytest.mark.parametrize("encoder", [False, True])
def test_a_healthy_spool_reaches_its_goal_without_a_fault(encoder: bool) -> None:
    cell = Cell(encoder=encoder)
    step = cell.run(300, {"draw_1": (Mode.POSITION, 0.207), "draw_2": (Mode.POSITION, 0.2115)})
    assert not step.faults
    assert abs(cell.bench.axes["draw_1"].length - 0.207) < 2e-4
    assert abs(cell.bench.axes["draw_2"].length - 0.2115) < 2e-4
    assert abs(cell.bench.axes["saddle_1"].length - 0.210) < 1e-4


def test_a_runaway_is_found_in_time_and_loses_its_torque() -> None:
    cell = Cell()
    cell.run(50)
    cell.bench.axes["draw_1"].drift = -0.01
    cell.until(FaultKind.RUNAWAY, "draw_1", 16)
