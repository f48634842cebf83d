"""The experiment on late commands, on the mechanism whose plans take the least time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensegrity_tools.experiments.delay import Case, draw, render, run
from tensegrity_tools.output import console


@pytest.mark.long
def test_impedances_keep_their_error_and_come_to_their_goal_however_late_commands_are(tmp_path: Path):
    result = run([Case("biglide", "computed_torque", (0.03, 0.02, 0.0), 0.5)], [0, 3])
    impedances = [each for each in result["runs"] if each["actuation"] == "impedance"]
    assert [each["delay"] for each in impedances] == [0.0, 0.03]
    for each in impedances:
        assert not each["lost"] and each["worst"] < 1e-3 and each["end"] < 1e-4
    assert len(result["runs"]) == 4
    render(result, console)
    draw(result, tmp_path / "delay.png")
    assert (tmp_path / "delay.png").stat().st_size > 1000
