"""The browser view of a mechanism: its scene, its panel, its goals, and what a real browser makes of it."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from headless_browser import HeadlessBrowser, find_chromium
from view_robots import MECHANISMS, WITH_CABLES, WITHOUT_CABLES, moved
from view_visitor import free_port, visit, wait

from tensegrity_dynamics.mechanisms.mechanism_model import BodyPoses, with_cables
from tensegrity_dynamics.robots.load_robot import load_robot
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.visualization.mechanism_picture import COLOURS, MechanismPicture
from tensegrity_tools.view import Answer, View, ViewState
from tensegrity_tools.view.tension_plot import TensionPlot


@pytest.fixture(scope="module", params=MECHANISMS)
def robot(request) -> Robot:
    return load_robot(request.param)


@pytest.fixture(scope="module", params=WITH_CABLES)
def winch(request) -> Robot:
    return load_robot(request.param)


def state_of(robot: Robot, time: float = 1.0, tension: float = 5.0, **more) -> ViewState:
    tensions = np.full(len(robot.model.cable_names), tension)
    return ViewState(time=time, q=np.array(robot.model.start), tensions=tensions, **more)


def test_every_shipped_mechanism_can_be_seen_and_follows_its_coordinates(robot):
    with View(robot, free_port()) as view, visit(view):
        q = moved(robot)
        assert view.show(ViewState(time=1.0, q=q)), view._trouble
        assert wait(lambda: view.drawn > 0)
        picture = MechanismPicture(robot).move(q)
        centres, _ = picture.solid_poses()
        for solids in view._scene._solids:
            np.testing.assert_allclose(solids._handle.batched_positions, centres[solids._rows], atol=1e-6)
        np.testing.assert_allclose(view._scene._frame.position, picture.output_poses()[0][0])
        view._scene.show_names(True)
        assert set(robot.model.cable_names) <= {label.text for label in view._scene._labels}


def test_slack_cable_is_named_dashed_and_plotted(winch):
    names = winch.model.cable_names
    with View(winch, free_port()) as view, visit(view):
        state = state_of(winch)
        state.tensions[1] = 0.0
        assert view.show(state)
        assert wait(lambda: f">{names[1]}</b>" in view._status.content)
        assert view._scene._slack.visible
        hidden = view._scene._cables._handle.batched_scales[:, 0] == 0.0
        assert [name for name, gone in zip(names, hidden, strict=True) if gone] == [names[1]]
        view.show(state_of(winch, time=2.0))
        assert wait(lambda: f">{names[1]}</b>" not in view._status.content)
        assert not view._scene._slack.visible
        assert tuple(view._plot.names) == names
        assert view._plot.svg(10.0).count("<polyline") == len(names)


@pytest.mark.parametrize("name", WITHOUT_CABLES)
def test_robot_without_cables_has_no_scale_of_tensions(name):
    robot = load_robot(name)
    with View(robot, free_port()) as view, visit(view):
        assert view.show(state_of(robot))
        assert wait(lambda: "Position" in view._status.content)
        assert "Tension" not in view._status.content
        assert view._legend is None
    assert TensionPlot(robot).names == []


@pytest.mark.parametrize("bad", ["nodes", "shape", "nan", "tensions"])
def test_state_that_cannot_be_drawn_is_ignored_and_said(bad):
    robot = load_robot("single_strut")
    q, tensions = np.array(robot.model.start), np.zeros(3)
    q[3] = np.nan if bad == "nan" else q[3]
    state = ViewState(
        time=1.0,
        nodes=np.zeros((4, 3)) if bad == "nodes" else None,
        q=None if bad == "nodes" else q[:-1] if bad == "shape" else q,
        tensions=tensions[:2] if bad == "tensions" else tensions,
    )
    words = {"nodes": "no position q", "shape": "(13,)", "nan": "q[3] is not finite", "tensions": "(2,)"}
    with View(robot, free_port()) as view, visit(view):
        assert not view.show(state)
        assert wait(lambda: words[bad] in view._status.content)


def test_goal_of_a_mechanism_is_sent_from_the_handle():
    robot, asked = load_robot("manipulator"), []
    with (
        View(robot, free_port(), on_goal=lambda *goal: Answer(asked.append(goal) is None)) as view,
        visit(view) as visitor,
    ):
        view.show(state_of(robot))
        assert wait(lambda: view.drawn > 0)
        np.testing.assert_allclose(view.goal.pose[0], BodyPoses(robot.model).move(robot.model.start).output(
            robot.output)[0][0])  # fmt: skip
        visitor.drag_goal([0.1, -0.05, 1.1], [1.0, 0.0, 0.0, 0.0])
        assert wait(lambda: np.allclose(view.goal._position.value, [100.0, -50.0, 1100.0]))
        assert not view.goal._angles.visible  # its file lets goals set the position alone
        visitor.press(view.goal._send)
        assert wait(lambda: bool(asked))
        np.testing.assert_allclose(asked[0][0], [0.1, -0.05, 1.1])
        view.show(state_of(robot, time=2.0, goal=(asked[0][0], asked[0][1])))
        assert wait(lambda: view.goal._ghost.visible)


def test_rigid_cables_are_drawn_with_a_tension_that_is_not_known():
    robot = load_robot("single_strut")
    robot = replace(robot, model=with_cables(robot.model, variant="rigid"))
    with View(robot, free_port()) as view, visit(view):
        assert view.show(state_of(robot, tension=np.nan))
        assert wait(lambda: "not known" in view._status.content)


@pytest.mark.skipif(find_chromium() is None, reason="no Chromium on this machine")
def test_real_browser_shows_body_and_cables_in_their_colours():
    image = pytest.importorskip("PIL.Image")
    robot = load_robot("single_strut")
    with View(robot, free_port()) as view, HeadlessBrowser(900, 700) as browser:
        browser.open(view.url)
        view.show(state_of(robot, tension=5.0))
        assert browser.wait(lambda: "Position" in browser.text(), timeout=120.0), browser.text()

        def share(wanted) -> bool:
            picture = np.asarray(image.open(io.BytesIO(browser.picture())).convert("RGB"), dtype=int)
            scene = picture[:, : picture.shape[1] // 2]
            return bool(np.count_nonzero(wanted(*np.moveaxis(scene, 2, 0))) > 40)

        assert COLOURS["pulleys"][2] > COLOURS["pulleys"][0] + 40
        assert browser.wait(lambda: share(lambda r, g, b: (b > r + 25) & (b > g + 5) & (g > r)))  # pulleys
        assert browser.wait(lambda: share(lambda r, g, b: (r > g + 25) & (r > b)))  # cables, at 5 of 6 N
        assert browser.wait(lambda: share(lambda r, g, b: (r < 90) & (abs(r - b) < 30)))  # the strut
        assert browser.errors == []
