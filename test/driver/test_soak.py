"""Random faults and random goals with fixed seeds: every fault is found and got over, and no cycle breaks a limit.

The same for ten minutes of the robot's time: benchmarks/soak.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from emulated_cell import TURNING, WHEELS, emulated_cell
from emulated_soak import Soak

CYCLES = 500
"""10 s of the robot's time with each kind of servos."""


@pytest.mark.parametrize(("servos", "seed"), [(WHEELS, 1), (TURNING, 2)])
def test_random_faults_are_found_and_got_over_and_no_limit_is_passed(servos: str, seed: int, tmp_path: Path) -> None:
    with emulated_cell(tmp_path, servos) as cell:
        soak = Soak(cell, servos, seed)
        soak.run(CYCLES)
        assert sum(soak.injected.values()) >= 3
        assert dict(soak.found) == soak.expected
        assert 0.0 < cell.worst_tension <= cell.settings.tension_margin
        assert cell.worst_excursion <= cell.settings.limit_margin
