"""The experiment on the six-bar robot, shortened, at another size than the usual one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_tools.commands.experiment import experiment
from tensegrity_tools.experiments._six_bar_ground import ground_rows
from tensegrity_tools.experiments.six_bar import draw, render, run
from tensegrity_tools.output import console


@pytest.mark.long
def test_geometry_start_up_and_both_models_are_those_of_the_document_at_any_size(tmp_path: Path):
    result = run(rod=0.6, mass=0.4, stiffness=800.0, pretension=60.0, part=0.005, faces=False)
    for each in result["geometry"]:
        assert each["least"] == pytest.approx(each["expected"], rel=1e-7)
        assert each["largest"] == pytest.approx(each["expected"], rel=1e-7)
    started = {each["what"]: each for each in result["start_up"]}
    for name in ("ramp, velocities zeroed", "no ramp, velocities zeroed", "newton"):
        assert started[name]["error_kL"] < 1e-6 and started[name]["spacing_rods"] == pytest.approx(0.5, abs=1e-6)
    assert "note" in started["ramp, no damping"]
    assert len(started["pretension below the loss"]["slack"]) == 24
    for each in result["models"]:
        assert each["difference_m"] < 1e-8
    spun = {each["what"]: each for each in result["energy"]}
    assert spun["rattle, point masses, spun"]["angular_momentum_Nms"] < 1e-11
    for each in result["energy"]:
        assert each["momentum_Ns"] < 1e-11 and each["bars"] < 1e-9
    curves = result["jacobian"]
    assert max(curves["chart"]["norm"]) < 1e3 < max(curves["guard"]["norm"]) < 1e5 < max(curves["none"]["norm"])
    render(result, console)
    draw(result, tmp_path / "six_bar.png")
    assert (tmp_path / "six_bar.png").stat().st_size > 1000


@pytest.mark.long
def test_on_its_ground_every_figure_is_what_closed_forms_and_statics_say():
    rows = ground_rows(load_robot("six_bar").structure)
    missed = [each for each in rows if each["allowed"] is not None and not each["off"] <= each["allowed"]]
    assert len(rows) == 20 and not missed
    assert next(each["found"] for each in rows if "least push" in each["what"]) >= 0.0


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("rod", "NAME=VALUE"),
        ("rods=1m", "rod"),
        ("rod=-1m", "above zero"),
        ("stiffness=0", "above zero"),
        ("pretension=3kg", "pretension"),
    ],
)
def test_options_that_make_no_sense_are_refused_by_name(setting: str, message: str):
    with pytest.raises(TensegrityError, match=message):
        experiment("six_bar", None, settings=[setting], series=None, nodes=False, as_json=False)


def test_a_pretension_beyond_the_cables_is_refused_before_anything_runs():
    with pytest.raises(TensegrityError, match="rest length would be negative"):
        run(pretension=400.0)
