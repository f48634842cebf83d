"""The page of the experiment `biglide`: every figure comes from the run that its words name."""

from __future__ import annotations

import pytest
from rich.console import Console

from tensegrity_dynamics import TensegrityError
from tensegrity_tools.experiments import biglide
from tensegrity_tools.experiments._progress import listening


def test_the_crossing_that_the_controller_drives_is_reported_with_its_own_figures():
    result = {
        "kinematic": [],
        "computed_torque": {"largest_error_m": 1.1e-3, "largest_force_N": 22.0},
        "crossing": {
            "velocity_at_the_crossing_m_per_s": [0.1, 0.2],
            "acceleration_at_the_crossing_m_per_s2": [0.1, 0.2],
            "beside_the_crossing": [],
            "controlled": {"largest_error_m": 3.3e-3, "largest_force_N": 44.0},
            "refused": {},
            "followed": [],
        },
    }
    console = Console(width=200, file=None)
    with console.capture() as printed:
        biglide.render(result, console)
    lines = printed.get().splitlines()
    assert any("K_p" in line and "1.1 mm" in line and "22 N" in line for line in lines)
    assert any("on the crossing" in line and "3.3 mm" in line and "44 N" in line for line in lines)


def test_a_crossing_that_leaves_the_workspace_is_refused_with_its_options_before_other_cases_run():
    heard: list[str] = []
    with (
        listening(lambda text, _: heard.append(text)),
        pytest.raises(TensegrityError, match=r"speed=6 m/s and acceleration=2 m/s\^2: output .* cannot be reached"),
    ):
        biglide.run(speed=6.0, acceleration=2.0)
    assert heard == []
