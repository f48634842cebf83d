"""Figures 7 to 13 of 001: what they print, and what must hold for any of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensegrity_tools.experiments import kinematics


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return kinematics.run(starts=4, noise=0.01)


def test_the_bar_swings_past_its_equilibrium_and_comes_to_rest_upright(found: dict[str, Any]) -> None:
    bar = found["figure_7"]
    assert bar["swings_to_deg"] > 91.0
    assert bar["end_deg"] == pytest.approx(90.0, abs=1e-4)
    assert bar["ours_deg"] == pytest.approx(90.0, abs=1e-6)


def test_the_moments_of_the_tendons_balance_where_the_bar_was_led(found: dict[str, Any]) -> None:
    bar = found["figure_12"]
    assert bar["end_deg"] == pytest.approx(45.0, abs=1e-6)
    assert bar["stable"]
    assert bar["moment_left_Nm"] == pytest.approx(-bar["moment_right_Nm"], rel=1e-9)
    assert abs(bar["moment_left_Nm"]) > 1.0


def test_the_prism_and_the_flange_are_where_the_document_prints_them(found: dict[str, Any]) -> None:
    prism = found["figure_8"]
    assert prism["printed_error_m"] < 5e-3  # it turns with hardly any force, and the printed one is not quite at rest
    assert prism["bars_m"] == pytest.approx([1.468, 1.468], abs=5e-4)
    assert prism["tendons_m"] == pytest.approx([1.0, 1.0], abs=1e-4)
    assert np.array(prism["nodes_m"])[3:, 2] == pytest.approx(0.9555, abs=2e-3)
    assert found["figure_10"]["height_in"] == pytest.approx(kinematics.FLANGE_HEIGHT, abs=5e-5)


def test_small_disturbances_of_the_start_lead_to_one_shape(found: dict[str, Any]) -> None:
    assert found["figure_11"]["same_by_relaxation"] == found["figure_11"]["same_by_newton"] == 4


def test_goals_of_tensebot_are_where_relaxation_of_their_lengths_puts_the_flange(found: dict[str, Any]) -> None:
    assert len(found["figure_13"]) == 6
    for each in found["figure_13"]:
        assert each["error_m"] < 1e-6, each["move"]
        assert each["least_tension_N"] > 50.0, each["move"]
        assert np.ptp(list(each["lengths_in"].values())) > 0.01


def test_the_figures_are_drawn(found: dict[str, Any], tmp_path: Path) -> None:
    kinematics.draw(found, tmp_path / "figures.png")
    assert (tmp_path / "figures.png").stat().st_size > 20_000
