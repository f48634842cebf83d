"""Controllers by name: what refuses a robot says so before it runs, and which controllers take it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensegrity_control.registry import controllers, make_controller, make_quickly, refusals, suitable
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robots.load_robot import shipped_robots

EXAMPLES = sorted(str(path) for path in (Path(__file__).parents[2] / "examples").glob("*.yaml"))
OTHERS = [
    pytest.param(name, marks=pytest.mark.long) for name in (*shipped_robots(), *EXAMPLES) if name != "single_strut"
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["single_strut", *OTHERS])
def test_each_controller_holds_a_robot_or_says_in_a_sentence_why_not_and_which_ones_do(name: str) -> None:
    robot = load_robot(name)
    refused = refusals(robot)
    taken = [each for each in suitable(robot) if not refused[each]]
    assert set(refused) == set(suitable(robot))
    said = f"Controllers that support {robot.name}: {', '.join(taken) or 'none'}."
    for each in controllers():
        assert "\n" not in refused.get(each, "")
        message = ""
        try:
            make_controller(each, robot)
        except TensegrityError as error:
            message = str(error)
        assert message.endswith(said) if message else each in refused


def test_a_wrong_parameter_is_no_reason_for_another_controller() -> None:
    with pytest.raises(TensegrityError) as caught:
        make_controller("qp", load_robot("single_strut"), damping=-1.0)
    assert "damping" in str(caught.value) and "Controllers that support" not in str(caught.value)


def test_where_no_controller_can_be_tried_the_first_reason_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise TensegrityError("this robot cannot be simulated")

    monkeypatch.setattr("tensegrity_control.registry.Simulation", fail)
    with pytest.raises(TensegrityError, match=r"near_rigid is for mechanisms with stiff cables\.$"):
        make_controller("near_rigid", load_robot("biglide"))


def test_a_refusal_while_a_robot_waits_tries_no_other_controllers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tensegrity_control.registry.refusals", lambda _: pytest.fail("tried"))
    with pytest.raises(TensegrityError, match=r"near_rigid is for mechanisms with stiff cables\.$"):
        make_quickly("near_rigid", load_robot("biglide"))
