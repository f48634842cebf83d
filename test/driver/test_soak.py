"""Random faults and random goals with fixed seeds: every fault is found and cleared, and no cycle breaks a limit.

The same for ten minutes of the robot's time: benchmarks/soak.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from emulated_cell import TURNING, WHEELS, emulated_cell
from emulated_soak import Soak

SHORT, LONG = 250, 5000
"""Bus cycles: 5 s and 100 s of the robot's time with each kind of servos."""


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("servos", "seed", "cycles"),
    [
        (WHEELS, 1, SHORT),
        (TURNING, 2, SHORT),
        pytest.param(WHEELS, 3, LONG, marks=pytest.mark.long),
        pytest.param(TURNING, 4, LONG, marks=pytest.mark.long),
    ],
)
def test_random_faults_are_found_and_cleared_and_no_limit_is_passed(
    servos: str, seed: int, cycles: int, tmp_path: Path
) -> None:
    with emulated_cell(tmp_path, servos) as cell:
        soak = Soak(cell, servos, seed)
        soak.run(cycles)
        assert sum(soak.injected.values()) >= 2
        assert dict(soak.found) == soak.expected
        assert 0.0 < cell.worst_tension <= cell.settings.tension_margin
        assert cell.worst_excursion <= cell.settings.limit_margin
