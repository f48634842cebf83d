"""The handle that pulls a part of a simulated robot, and a robot that follows the goal handle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from patience import until
from view_robots import prism_robot
from view_visitor import Visitor, free_port, visit

from tensegrity_dynamics.robots.load_robot import load_robot, shipped_robots
from tensegrity_dynamics.visualization.picture import make_picture
from tensegrity_tools.view import Answer, View, ViewState


@pytest.fixture
def view() -> Iterator[View]:
    with View(prism_robot(), free_port()) as opened:
        opened.allow_pushes(True)
        yield opened


def state_of(view: View, time: float = 1.0, moved: float = 0.0, **more: Any) -> ViewState:
    return ViewState(time=time, configuration=np.array(view.robot.structure.nodes) + (0.0, 0.0, moved), **more)


def drag(visitor: Visitor, position: np.ndarray) -> None:
    place = {"wxyz": [1.0, 0.0, 0.0, 0.0], "position": position.tolist()}
    visitor.send("TransformControlsUpdateMessage", name="/push/handle", owner="", **place)


def rests_at(visitor: Visitor, place: np.ndarray) -> bool:
    return np.allclose(visitor.scene["/push/handle"].get("position", np.inf), place, atol=1e-6)


def begin(view: View, visitor: Visitor, part: str, stiffness: float) -> np.ndarray:
    """Choose a part and show its handle; returns the position of the part."""
    visitor.type("Part", part)
    visitor.type("Stiffness [N/m]", stiffness)
    visitor.type("Push handle", True)
    view.show(state_of(view))
    place = view.robot.structure.nodes[view.robot.structure.node(part)]
    until(lambda: rests_at(visitor, place))
    return np.array(place)


def test_the_handle_pulls_like_a_spring_that_follows_the_part_until_it_is_let_go(view: View) -> None:
    with visit(view) as visitor:
        place = begin(view, visitor, "e", 200.0)
        assert view.push is None
        until(lambda: drag(visitor, place + (0.1, 0.0, 0.0)) or (view.show(state_of(view)) and view.push is not None))
        name, force = view.push
        assert name == "e"
        np.testing.assert_allclose(force, [20.0, 0.0, 0.0], atol=1e-9)
        until(lambda: "e is pulled with 20 N" in visitor.text())
        view.show(state_of(view, 2.0, moved=0.05))
        until(lambda: np.allclose(view.push[1], [20.0, 0.0, -10.0], atol=1e-9))
        visitor.send("TransformControlsDragEndMessage", name="/push/handle", owner="")
        until(lambda: view.push is None)
        view.show(state_of(view, 3.0))
        until(lambda: rests_at(visitor, place))


@pytest.mark.parametrize("end", ["browser", "owner", "box", "part"])
def test_a_push_ends_with_its_browser_its_permission_its_box_and_its_part(view: View, end: str) -> None:
    with visit(view) as visitor:
        place = begin(view, visitor, "d", 100.0)
        until(lambda: drag(visitor, place + (0.0, 0.1, 0.0)) or (view.show(state_of(view)) and view.push is not None))
        if end == "owner":
            view.allow_pushes(False)
        elif end == "box":
            visitor.type("Push handle", False)
        elif end == "part":
            visitor.type("Part", "f")
        if end != "browser":
            until(lambda: view.push is None)
    until(lambda: view.push is None)


@pytest.mark.parametrize("does", ["leaves", "drags", "lets go", "drags and leaves"])
def test_a_push_belongs_to_the_page_that_began_it_whatever_another_page_does(view: View, does: str) -> None:
    with visit(view) as visitor:
        place = begin(view, visitor, "e", 200.0)
        until(lambda: drag(visitor, place + (0.1, 0.0, 0.0)) or (view.show(state_of(view)) and view.push is not None))
        with visit(view) as other:
            until(lambda: view.clients == 2)
            if "drags" in does:
                drag(other, place + (0.0, 0.0, 0.3))
            if does == "lets go":
                other.send("TransformControlsDragEndMessage", name="/push/handle", owner="")
            other.type("Stiffness [N/m]", 300.0)  # looked at after what was sent before it
            until(lambda: visitor.part("Stiffness [N/m]")["value"] == 300.0)
            if "leaves" not in does:
                view.show(state_of(view, 2.0, moved=0.05))
                until(lambda: view.push is None or view.push[1][2] != 0.0)
                np.testing.assert_allclose(view.push[1], [30.0, 0.0, -15.0], atol=1e-9)
        until(lambda: view.clients == 1)
        view.show(state_of(view, 3.0, moved=0.1))
        until(lambda: view.push is None or view.push[1][2] < -20.0)
        np.testing.assert_allclose(view.push[1], [30.0, 0.0, -30.0], atol=1e-9)
        assert rests_at(visitor, place + (0.1, 0.0, 0.0)) or "drags" not in does
        visitor.send("TransformControlsDragEndMessage", name="/push/handle", owner="")
        until(lambda: view.push is None)


def test_nobody_pushes_where_that_is_not_allowed() -> None:
    with View(prism_robot(), free_port()) as view, visit(view) as visitor:
        assert "Push" not in visitor.labels()
        visitor.send("GuiUpdateMessage", uuid=visitor.part("Push handle")["uuid"], updates={"value": True})
        for k in range(5):
            drag(visitor, np.array([0.1, 0.0, 0.0]))
            drawn = view.drawn
            view.show(state_of(view, 1.0 + k))
            until(lambda: view.drawn > drawn)  # noqa: B023
            assert view.push is None


def test_no_drag_counts_after_its_end_however_fast_they_come() -> None:
    """Seen by a second page, which is told of a field once all that was sent before it has been looked at."""
    robot = prism_robot()
    with (
        View(robot, free_port(), on_goal=lambda *_: Answer(True), on_stream=lambda *_: None) as view,
        visit(view) as visitor,
        visit(view) as other,
    ):
        view.allow_pushes(True)
        place = begin(view, visitor, "e", 200.0)
        visitor.type("Follow handle", True)
        for k in range(40):
            for step in range(8):
                drag(visitor, place + (0.01 * step, 0.0, 0.0))
                visitor.move_handle([0.001 * step, 0.0, 0.2], [1.0, 0.0, 0.0, 0.0])
            visitor.send("TransformControlsDragEndMessage", name="/push/handle", owner="")
            visitor.let_go()
            visitor.type("Stiffness [N/m]", 201.0 + k)
            until(lambda: other.part("Stiffness [N/m]")["value"] == 201.0 + k)  # noqa: B023
            accepted = (np.array([0.0, 0.001 * k, 0.2]), np.array([1.0, 0.0, 0.0, 0.0]))
            view.show(state_of(view, 1.0 + k, goal=accepted))
            until(lambda: np.allclose(view.goal.pose[0], accepted[0], atol=1e-9))  # noqa: B023 - after older pictures
            assert view.push is None
            np.testing.assert_allclose(view.goal.pose[0], accepted[0], atol=1e-9)  # no longer held by the user


@pytest.mark.parametrize("name", shipped_robots())
def test_every_part_that_can_carry_a_load_can_be_pushed(name: str) -> None:
    robot = load_robot(name)
    picture = make_picture(robot)
    snapshot = picture.at(picture.start)
    assert robot.model.load_names
    for part in robot.model.load_names:
        pose = picture.carrier_pose(snapshot, part)
        assert pose is not None and np.all(np.isfinite(pose[0]))


def test_a_robot_follows_the_handle_only_where_its_user_says_so() -> None:
    streamed: list[np.ndarray] = []
    with (
        View(
            prism_robot(), free_port(), on_goal=lambda *_: Answer(True),
            on_stream=lambda position, _: streamed.append(position),
        ) as view,
        visit(view) as visitor,
    ):  # fmt: skip
        visitor.drag_goal([0.01, 0.0, 0.2])
        visitor.let_go()
        visitor.type("Follow handle", True)
        visitor.drag_goal([0.02, 0.0, 0.2])
        until(lambda: bool(streamed))
        assert all(np.allclose(each, [0.02, 0.0, 0.2]) for each in streamed)


def test_the_goal_handle_gives_way_to_the_push_handle_and_comes_back_only_where_it_was_shown(view: View) -> None:
    with View(prism_robot(), free_port(), on_goal=lambda *_: Answer(True)) as steered, visit(steered) as visitor:
        steered.allow_pushes(True)
        visitor.type("Push handle", True)
        until(lambda: not visitor.scene["/goal"]["visible"])
        visitor.type("Push handle", False)
        until(lambda: visitor.scene["/goal"]["visible"])
        visitor.type("Goal handle", False)
        until(lambda: not visitor.scene["/goal"]["visible"])
        visitor.type("Push handle", True)
        until(lambda: visitor.scene["/push/handle"]["visible"])
        visitor.type("Push handle", False)
        until(lambda: not visitor.scene["/push/handle"]["visible"])
        assert not visitor.scene["/goal"]["visible"]
    with visit(view) as visitor:  # takes no goals, and never shows their handle
        visitor.type("Push handle", True)
        until(lambda: visitor.scene["/push/handle"]["visible"])
        visitor.type("Push handle", False)
        until(lambda: not visitor.scene["/push/handle"]["visible"])
        assert not visitor.scene["/goal"]["visible"]
