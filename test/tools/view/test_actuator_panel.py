"""The panel of the actuators: what its table says, and what moves one of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from patience import until
from view_robots import prism_robot
from view_visitor import Visitor, free_port, visit

from tensegrity_dynamics.robots.actuator import Actuator
from tensegrity_dynamics.robots.load_robot import load_robot
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_tools.view import Answer, View, ViewState


class Moves:
    """Moves that were asked for, and the answer to them."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, float, float]] = []
        self.answer = Answer(True)

    def __call__(self, name: str, position: float, duration: float) -> Answer:
        self.asked.append((name, position, duration))
        return self.answer


@pytest.fixture
def moves() -> Moves:
    return Moves()


@pytest.fixture
def view(moves: Moves) -> Iterator[View]:
    with View(prism_robot(), free_port(), on_move=moves) as opened:
        yield opened


def state_of(robot: Robot, time: float = 1.0, **more) -> ViewState:
    return ViewState(time=time, configuration=np.array(robot.structure.nodes), **more)


def cells(visitor: Visitor, name: str) -> list[str]:
    """Position, tension and strain beside the name of an actuator; the bar has no text."""
    match = re.search(rf">{re.escape(name)}</td>(.*?)</tr>", visitor.text())
    texts = [re.sub("<[^>]*>", "", cell) for cell in re.findall("<td>(.*?)</td>", match[1])] if match else []
    return [texts[k] for k in (0, 2, 3)] if texts else []


def test_the_table_shows_position_tension_and_strain_of_what_each_actuator_winds(view: View) -> None:
    structure = view.robot.structure
    tensions, strains = np.full((2, len(structure.member_names)), np.nan)
    tensions[structure.member("side_1")], strains[structure.member("side_1")] = 12.34, 0.00321
    with visit(view) as visitor:
        view.show(state_of(view.robot, positions={"spool_1": 0.2004}, tensions=tensions, strains=strains))
        until(lambda: cells(visitor, "spool_1") == ["200.4 mm", "12.3", "0.32"])
        assert cells(visitor, "spool_0") == [" mm", "", ""]


def test_of_several_cables_on_one_actuator_the_loosest_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = load_robot("manipulator")
    names = robot.model.cable_names
    monkeypatch.setattr(
        type(robot.model), "tension_floors", lambda _, spools: {each.drives: 5.0 for each in spools} | {names[1]: 5.0}
    )
    with View(robot, free_port()) as view, visit(view) as visitor:
        tensions = 20.0 + np.arange(len(names))
        tensions[1] = 7.0
        view.show(ViewState(time=1.0, configuration=np.array(robot.model.start), tensions=tensions))
        until(lambda: cells(visitor, robot.actuators[0].name)[1:] == ["7.0", ""])
        assert cells(visitor, robot.actuators[2].name)[1] == "7.0"


def test_one_actuator_is_moved_to_the_position_of_the_field(view: View, moves: Moves) -> None:
    with visit(view) as visitor:
        view.show(state_of(view.robot, positions={"spool_0": 0.2, "spool_2": 0.21}))
        until(lambda: visitor.part("To [mm]")["value"] == 200.0)
        visitor.type("Actuator", "spool_2")
        until(lambda: visitor.part("To [mm]")["value"] == 210.0)
        visitor.type("To [mm]", 215.5)
        visitor.type("In [s]", 2.0)
        moves.answer = Answer(True, "tension floor broken")
        visitor.press("Move actuator")
        until(lambda: "Moved spool_2 to 215.5 mm. tension floor broken" in visitor.text())
        assert moves.asked == [("spool_2", pytest.approx(0.2155), 2.0)]
        moves.answer = Answer(False, "it is held")
        visitor.press("Move actuator")
        until(lambda: "Not moved: spool_2 to 215.5 mm: it is held" in visitor.text())


def test_a_turning_actuator_is_moved_in_degrees(moves: Moves) -> None:
    robot = load_robot("three_rrr")
    with View(robot, free_port(), on_move=moves) as view, visit(view) as visitor:
        until(lambda: "To [°]" in visitor.labels())
        visitor.type("To [°]", 5.0)
        visitor.press("Move actuator")
        until(lambda: bool(moves.asked))
        assert moves.asked == [(robot.actuators[0].name, pytest.approx(np.pi / 36.0), 0.0)]


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("To [mm]", 300.1, "its limits are 100.0 to 300.0 mm"),
        ("To [mm]", -1e6, "its limits are 100.0 to 300.0 mm"),
        ("In [s]", 601.0, "the duration is 601 s"),
    ],
)
def test_no_actuator_moves_beyond_its_limits_whatever_a_page_sends(view, moves, field, value, said) -> None:
    with visit(view) as visitor:
        view.show(state_of(view.robot, positions={"spool_0": 0.2}))
        until(lambda: visitor.part("To [mm]")["value"] == 200.0)
        visitor.type(field, value)
        visitor.press("Move actuator")
        until(lambda: said in visitor.text())
        assert not moves.asked


def test_a_view_that_moves_nothing_has_the_table_alone() -> None:
    robot = prism_robot()
    with View(robot, free_port()) as view, visit(view) as visitor:
        view.show(state_of(robot, positions={"spool_0": 0.2}))
        until(lambda: cells(visitor, "spool_0")[:1] == ["200.0 mm"])
        assert "Move actuator" not in visitor.labels()


def test_of_many_actuators_those_nearest_to_their_limits_are_shown() -> None:
    robot = prism_robot()
    spools = tuple(Actuator(f"spool_{k}", f"side_{k % 3}", (0.1, 0.3), 0.05, 50.0) for k in range(40))
    with View(replace(robot, actuators=spools), free_port()) as view, visit(view) as visitor:
        positions = {f"spool_{k}": 0.2 + 0.0025 * k * (-1) ** k for k in range(40)}
        view.show(state_of(robot, positions=positions))
        until(lambda: cells(visitor, "spool_39")[:1] == ["102.5 mm"])
        assert "16 more, farther from their limits" in visitor.text()
        assert cells(visitor, "spool_16") and not cells(visitor, "spool_15")
