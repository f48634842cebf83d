"""Options of `tensegrity experiment`: they take units, and zero where it has a meaning."""

from __future__ import annotations

import contextlib
import io
from importlib import import_module

import numpy as np
import pytest

from tensegrity_dynamics import TensegrityError
from tensegrity_tools.cli import program
from tensegrity_tools.commands.experiment import _read_options


def read(name: str, item: str) -> object:
    return _read_options(name, import_module(f"tensegrity_tools.experiments.{name}"), [item])[item.partition("=")[0]]


@pytest.mark.parametrize(
    ("name", "item", "value"),
    [
        ("biglide", "speed=50 cm/s", 0.5), ("biglide", "acceleration=0", 0.0),
        ("cable_robot", "turn=12 deg", np.radians(12.0)), ("cable_robot", "duration=0 s", 0.0),
        ("endurance", "period=10ms", 0.01), ("endurance", "reach=3cm", 0.03),
        ("horizon", "move=5cm", 0.05), ("horizon", "replan=20 ms", 0.02), ("horizon", "push=0", 0.0),
        ("node_distances", "duration=100ms", 0.1), ("rolling", "slope=3 deg", np.radians(3.0)),
        ("rolling", "slope=0", 0.0), ("robustness", "payload=0", 0.0), ("robustness", "seed=0", 0),
        ("stiffness", "ceiling=0 N", 0.0), ("variants", "step=0.2 ms", 2e-4),
    ],
)  # fmt: skip
def test_an_option_takes_its_units_and_zero_where_it_has_a_meaning(name: str, item: str, value: float) -> None:
    assert read(name, item) == pytest.approx(value)


def test_a_refused_value_is_told_whether_zero_is_allowed() -> None:
    with pytest.raises(TensegrityError, match="seed=-1': give zero or a value above it"):
        read("delay", "seed=-1")
    with pytest.raises(TensegrityError, match="move=0': give a value above zero"):
        read("horizon", "move=0")


def test_the_list_of_experiments_has_the_units_of_all_defaults() -> None:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        program(["experiment"], standalone_mode=False)
    words = " ".join(said.getvalue().split())
    assert all(each in words for each in ("speed=0.7566 m/s,", "reach=0.02 m,", "step=0.0001 s,"))


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("cable_robot", {"points": 1, "duration": 0.0}, "points is 1; give 12 or more"),
        ("endurance", {"state": "truht"}, "There is no state 'truht'. Did you mean 'truth'"),
        ("endurance", {"controllers": "qp,"}, "There is no controller ''"),
        ("endurance", {"stretch": 1.0}, r"stretch is 1 s; give more than 2\.5 s, the rest at its end"),
        ("endurance", {"duration": 0.001}, r"must be at least one period of 0\.005 s"),
        ("robustness", {"error": 1.0}, "error is 1; give less than 1"),
        ("variants", {"step": 1.0, "duration": 0.1}, "duration is 0.1 s; give one step of 1 s or more"),
    ],
)
def test_options_out_of_range_are_refused_by_name(name: str, options: dict[str, float], reason: str) -> None:
    with pytest.raises(TensegrityError, match=reason):
        import_module(f"tensegrity_tools.experiments.{name}").run(**options)


def test_endurance_ends_where_less_than_a_period_is_left() -> None:
    result = import_module("tensegrity_tools.experiments.endurance").run(
        0.0111, "single_strut", "joint_position", state="truth", goals=False
    )
    assert len(result["stretches"]) == 1 and not result["lost"]


def test_rows_of_robustness_are_named_by_the_values_of_the_run() -> None:
    robustness = import_module("tensegrity_tools.experiments.robustness")
    names = [robustness.scaled(each, 0.25, 0.5, 8.0).name for each in robustness.CASES]
    assert "masses - 25 %" in names and "unknown payload, 50 %" in names and "push of 8 N for 0.5 s" in names
    assert robustness.scaled(robustness.CASES[4], 0.1, 0.2, 5.0).name == robustness.CASES[4].name
    doubled = [robustness.scaled(each, 0.2, 0.5, 5.0).name for each in robustness.CASES]
    assert "masses - 20 %" in doubled and "unknown payload, 50 %" in doubled


@pytest.mark.parametrize("name", ["near_rigid", "manipulator"])
def test_options_that_leave_nothing_to_run_are_refused(name: str) -> None:
    with pytest.raises(TensegrityError, match="leave nothing to run; leave out plans=no, laws=no"):
        import_module(f"tensegrity_tools.experiments.{name}").run(plans=False, laws=False)
