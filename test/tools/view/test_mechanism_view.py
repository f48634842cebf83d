"""The browser view of a mechanism: its scene, its panel, its goals, and what a real browser makes of it."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from headless_browser import HeadlessBrowser, find_chromium
from patience import until
from view_robots import MECHANISMS, WITH_CABLES, WITHOUT_CABLES, moved
from view_visitor import free_port, visit

from tensegrity_dynamics.mechanisms.body_poses import BodyPoses
from tensegrity_dynamics.mechanisms.cable_substitution import with_cables
from tensegrity_dynamics.robots.load_robot import load_robot
from tensegrity_dynamics.robots.robot import Robot
from tensegrity_dynamics.visualization.mechanism_picture import MechanismPicture
from tensegrity_dynamics.visualization.style import PULLEY_COLOUR
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
    return ViewState(time=time, configuration=np.array(robot.model.start), tensions=tensions, **more)


def test_every_shipped_mechanism_can_be_seen_and_follows_its_coordinates(robot):
    with View(robot, free_port()) as view, visit(view) as visitor:
        q = moved(robot)
        snapshot = MechanismPicture(robot).at(q)

        def follows() -> bool:
            batches = [name for name in visitor.scene if name.startswith("/robot/solids/")]
            drawn = np.vstack([visitor.array(name, "batched_positions") for name in batches])
            assert drawn.shape == snapshot.solid_positions.shape
            apart = np.linalg.norm(drawn[:, None, :] - snapshot.solid_positions[None, :, :], axis=2)
            return bool(max(apart.min(axis=0).max(), apart.min(axis=1).max()) < 1e-5)

        assert not follows()
        assert view.show(ViewState(time=1.0, configuration=q))
        until(follows)
        until(lambda: np.allclose(visitor.scene["/robot/output"]["position"], snapshot.output[0]))
        visitor.type("Names of bodies and cables", True)
        until(lambda: set(robot.model.cable_names) < visitor.names_in_scene())


def test_slack_cable_is_named_dashed_and_plotted(winch):
    names = winch.model.cable_names
    with View(winch, free_port()) as view, visit(view) as visitor:
        state = state_of(winch)
        state.tensions[1] = 0.0
        assert view.show(state)
        until(lambda: visitor.row("Slack") == names[1])
        assert visitor.scene["/robot/slack"]["visible"]
        hidden = visitor.array("/robot/cables", "batched_scales")[:, 0] == 0.0
        assert [name for name, gone in zip(names, hidden, strict=True) if gone] == [names[1]]
        view.show(state_of(winch, time=2.0))
        until(lambda: visitor.row("Slack") == "none")
        assert not visitor.scene["/robot/slack"]["visible"]
        until(lambda: visitor.text().count("<polyline") == len(names))
        assert all(f"<title>{name}</title>" in visitor.text() for name in names)


@pytest.mark.parametrize("name", WITHOUT_CABLES)
def test_robot_without_cables_has_no_scale_of_tensions(name):
    robot = load_robot(name)
    with View(robot, free_port()) as view, visit(view) as visitor:
        assert view.show(state_of(robot))
        until(lambda: visitor.row("Position") != "")
        assert "ension" not in visitor.text()
        assert "Tension" not in visitor.labels()
    assert TensionPlot(MechanismPicture(robot)).names == []


@pytest.mark.parametrize("bad", ["nodes", "shape", "nan", "tensions"])
def test_state_that_cannot_be_drawn_is_ignored_and_said(bad):
    robot = load_robot("single_strut")
    q, tensions = np.array(robot.model.start), np.zeros(3)
    q[3] = np.nan if bad == "nan" else q[3]
    state = ViewState(
        time=1.0,
        configuration=np.zeros((4, 3)) if bad == "nodes" else q[:-1] if bad == "shape" else q,
        tensions=tensions[:2] if bad == "tensions" else tensions,
    )
    reasons = {"nodes": "(4, 3)", "shape": "(13,)", "nan": "q[3] is not finite", "tensions": "(2,)"}
    with View(robot, free_port()) as view, visit(view) as visitor:
        assert not view.show(state)
        until(lambda: reasons[bad] in visitor.text())


def test_goal_of_a_mechanism_is_sent_from_the_handle():
    robot, asked = load_robot("manipulator"), []
    with (
        View(robot, free_port(), on_goal=lambda *goal: Answer(asked.append(goal) is None)) as view,
        visit(view) as visitor,
    ):
        view.show(state_of(robot))
        until(lambda: view.drawn > 0)
        output = BodyPoses(robot.model).update(robot.model.start).output(robot.output)[0][0]
        np.testing.assert_allclose(view.goal.pose[0], output)
        visitor.drag_goal([0.1, -0.05, 1.1])
        assert "Orientation [°]" not in visitor.labels()  # its file lets goals set the position alone
        visitor.press("Send goal")
        until(lambda: bool(asked))
        np.testing.assert_allclose(asked[0][0], [0.1, -0.05, 1.1])
        view.show(state_of(robot, time=2.0, goal=(asked[0][0], asked[0][1])))
        until(lambda: visitor.scene["/accepted"]["visible"])


def test_rigid_cables_are_drawn_with_an_unknown_tension():
    robot = load_robot("single_strut")
    robot = replace(robot, model=with_cables(robot.model, variant="rigid"))
    with View(robot, free_port()) as view, visit(view) as visitor:
        assert view.show(state_of(robot, tension=np.nan))
        until(lambda: visitor.row("Tension") == "unknown")


@pytest.mark.long
@pytest.mark.skipif(find_chromium() is None, reason="no Chromium on this machine")
def test_real_browser_shows_body_and_cables_in_their_colours():
    image = pytest.importorskip("PIL.Image")
    robot = load_robot("single_strut")
    with View(robot, free_port()) as view, HeadlessBrowser(900, 700) as browser:
        browser.open(view.url)
        view.show(state_of(robot, tension=5.0))
        assert browser.wait(lambda: "Position" in browser.text()), browser.text()

        def share(desired) -> bool:
            picture = np.asarray(image.open(io.BytesIO(browser.picture())).convert("RGB"), dtype=int)
            scene = picture[:, : picture.shape[1] // 2]
            return bool(np.count_nonzero(desired(*np.moveaxis(scene, 2, 0))) > 40)

        assert PULLEY_COLOUR[2] > PULLEY_COLOUR[0] + 40
        assert browser.wait(lambda: share(lambda r, g, b: (b > r + 25) & (b > g + 5) & (g > r)))  # pulleys
        assert browser.wait(lambda: share(lambda r, g, b: (r > g + 25) & (r > b)))  # cables, at 5 of 6 N
        assert browser.wait(lambda: share(lambda r, g, b: (r < 90) & (abs(r - b) < 30)))  # the strut
        assert browser.errors == []
