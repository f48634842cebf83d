"""A tour is a success only where nothing was wrong on the way."""

from __future__ import annotations

import pytest

from tensegrity_dynamics import load_robot
from tensegrity_tools.commands.up import _summary
from tensegrity_tools.runtime.tour import Arrival, fault_of

ROBOT = load_robot("manipulator")
FLOORS = {each.drives: each.minimum_tension for each in ROBOT.actuators}


def test_a_tension_below_its_floor_is_named_with_number_and_time():
    assert min(FLOORS.values()) > 0.0
    sound = {name: (1.5 * floor, 1.0) for name, floor in FLOORS.items()}
    assert fault_of(ROBOT, sound, "") == ""
    assert fault_of(ROBOT, {}, "") == ""
    for name, floor in FLOORS.items():
        said = fault_of(ROBOT, {**sound, name: (0.5 * floor, 12.34)}, "")
        assert (
            said.startswith(f"tension floor broken: {name} fell to") and "12.34 s" in said and f"{floor:.3g} N" in said
        )


def test_the_worst_of_several_is_named_and_a_missed_command_counts_alone():
    first, second = list(FLOORS)[:2]
    assert f": {second} " in fault_of(ROBOT, {first: (0.9 * FLOORS[first], 1.0), second: (0.0, 2.0)}, "no command")
    assert fault_of(ROBOT, {}, "no command from controller for 0.5 s") == "no command from controller for 0.5 s"


@pytest.mark.parametrize(
    ("reached", "fault", "success"), [(True, "", True), (True, "no command from controller", False), (False, "", False)]
)
def test_a_tour_with_a_fault_is_no_success(reached, fault, success, capsys):
    good = Arrival("one", True, 0.0, 0.0, 1.0)
    assert _summary([good, Arrival("two", reached, 0.0, 0.0, 1.0, "", fault)]) is success
    assert ("no command from controller" in capsys.readouterr().out) == bool(fault)


def test_a_tour_without_goals_is_no_success():
    assert not _summary([])
